//! Goal: a history that is larger than an answer may be is listed whole, and searched. Method: 53
//! commits whose messages have a megabyte each.

use frond_doc::{Value, document};
use frond_server::Client;

use crate::serving::Server;
use crate::{Directory, frond};

const COMMITS: usize = 53;

#[test]
fn commits_beyond_an_answer_are_listed() {
    let directory = Directory::new();
    let server = Server::start(&directory);
    let mut client = Client::connect(&server.address).unwrap();
    let mut run = |database: &str, command: frond_doc::DocumentBuf| {
        client.command(database, command.view()).unwrap()
    };
    let insert = |id: i32| {
        let documents = [document! { "_id": id }];
        let mut command = frond_doc::DocumentBuilder::new();
        command.append("insert", Value::String("c")).begin_array("documents");
        command.push(Value::from(&documents[0])).end();
        command.build()
    };
    let rest = "y".repeat((1 << 20) - 40);
    for number in 0..COMMITS {
        // Agent's alone changes anything.
        if number == 3 {
            run("v", insert(1));
        }
        let author = if number == 3 { "agent" } else { "ada" };
        let message = format!("number {number}\n{rest}");
        run(
            "v",
            document! {
                "frondCommit": 1_i32, "message": message.as_str(), "author": author,
                "allowEmpty": true,
            },
        );
    }
    let uri = format!("--uri {}", server.address);
    let lines = frond(&directory, &format!("log v --oneline {uri}")).ok();
    assert_eq!(lines.lines().count(), COMMITS);
    assert!(lines.lines().next().unwrap().ends_with(" number 52"));
    let graph = frond(&directory, &format!("log v --graph {uri}")).ok();
    assert_eq!(graph.matches(" number ").count(), COMMITS);
    let json = frond(&directory, &format!("log v --json {uri}")).ok();
    assert!(json.starts_with("{\"commits\":[{\"commitId\":\"") && json.ends_with("}]}\n"));
    assert_eq!(json.matches("\"commitId\":").count(), COMMITS);
    let page = frond(&directory, &format!("log v --json -n 2 {uri}")).ok();
    let next = page.rsplit_once("\"next\":\"").unwrap().1.split('"').next().unwrap();
    let after = frond(&directory, &format!("log v --oneline -n 1 --after {next} {uri}")).ok();
    assert!(after.ends_with(" number 50\n"), "{after}");
    // The command's pages follow one another, too.
    let (mut after, mut count, mut pages) = (String::new(), 0, 0);
    loop {
        let mut command = document! { "frondLog": 1_i32, "after": after.as_str() };
        if after.is_empty() {
            command = document! { "frondLog": 1_i32 };
        }
        let answer = run("v", command);
        count += answer.get("commits").and_then(|it| it.as_array()).unwrap().iter().count();
        pages += 1;
        let Some(next) = answer.get("next").and_then(|next| next.as_str()) else { break };
        next.clone_into(&mut after);
    }
    assert_eq!((count, pages), (COMMITS, 2));
    let reflog = frond(&directory, &format!("reflog v {uri}")).ok();
    assert_eq!(reflog.lines().count(), COMMITS);
    frond(&directory, &format!("undo v --user agent --since yesterday {uri}")).ok();
    assert_eq!(frond(&directory, &format!("export -d v -c c {uri}")).ok(), "");
    server.stop();
}
