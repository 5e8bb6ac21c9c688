//! Goal: clients' JavaScript runs in processes without rights, which end when their request does,
//! or the server; a fault of one harms its request alone. Method: `frond serve`, and what the
//! system reports of its processes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use frond_doc::{DocumentBuf, document, extended_json};
use frond_server::{Client, ClientError};

use crate::Directory;
use crate::serving::Server;

/// One step of the engine that takes longer than any test.
const ENDLESS: &str = "for (;;) (2n ** 1000000n).toString()";

fn client(server: &Server) -> Client {
    let mut client = Client::connect(&server.address).unwrap();
    let insert = extended_json::parse(r#"{"insert": "c", "documents": [{"a": 1}]}"#).unwrap();
    client.command("test", insert.view()).unwrap();
    client
}

fn run(client: &mut Client, script: &str, max_time_millis: i32) -> Result<DocumentBuf, i32> {
    let query = document! { "$where": script };
    let count = document! { "count": "c", "query": query.view(), "maxTimeMS": max_time_millis };
    client.command("test", count.view()).map_err(|error| match error {
        ClientError::Command { code, .. } => code,
        other => panic!("{other}"),
    })
}

/// Returns the processes that run scripts for a server.
fn workers(server: u32) -> Vec<PathBuf> {
    let processes = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let is_worker = |process: &PathBuf| {
        let text = |name| std::fs::read_to_string(process.join(name)).unwrap_or_default();
        text("cmdline").ends_with("\0script-worker\0")
            && text("status").lines().any(|line| line == format!("PPid:\t{server}"))
    };
    processes.filter(is_worker).collect()
}

fn kill(process: &str) {
    assert!(Command::new("kill").args(["-KILL", process]).status().unwrap().success());
}

fn pid(process: &Path) -> &str {
    process.file_name().unwrap().to_str().unwrap()
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_process_of_scripts_has_no_rights_and_serves_several_requests() {
    let directory = Directory::new();
    let server = Server::start(&directory);
    let mut client = client(&server);
    run(&mut client, "kept = 1; this.a == 1", 60_000).unwrap();
    let first = workers(server.pid());
    assert_eq!(first.len(), 1);
    let limits = std::fs::read_to_string(first[0].join("limits")).unwrap();
    let limit = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).expect(name);
        line[name.len()..].split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(limit("Max open files"), "1");
    assert_eq!(limit("Max file size"), "0");
    assert_eq!(limit("Max processes"), "0");
    assert_eq!(std::fs::read(first[0].join("environ")).unwrap(), b"");
    let open = std::fs::read_dir(first[0].join("fd")).unwrap();
    let mut files = open.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    assert!(files.all(|file| !file.starts_with(directory.path())), "nothing of the data");
    let kept = run(&mut client, "typeof kept == 'undefined'", 60_000).unwrap();
    assert_eq!(kept.get("n").unwrap().as_integer(), Some(1), "the engine is new");
    assert_eq!(workers(server.pid()), first);
    server.stop();
}

#[test]
fn a_script_that_never_asks_ends_with_its_request() {
    let directory = Directory::new();
    let server = Server::start(&directory);
    let mut client = client(&server);
    let begin = Instant::now();
    assert_eq!(run(&mut client, ENDLESS, 300), Err(50));
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert_eq!(workers(server.pid()), Vec::<PathBuf>::new());
    assert!(run(&mut client, "true", 60_000).is_ok());
    server.stop();
}

#[test]
fn a_process_that_ends_costs_its_request_an_error() {
    let directory = Directory::new();
    let server = Server::start(&directory);
    let mut client = client(&server);
    let begun = thread::spawn({
        let mut other = Client::connect(&server.address).unwrap();
        move || run(&mut other, ENDLESS, 600_000)
    });
    wait_until("it begins", || workers(server.pid()).len() == 1);
    kill(pid(&workers(server.pid())[0]));
    assert_eq!(begun.join().unwrap(), Err(139));
    assert!(run(&mut client, "true", 60_000).is_ok());
    // One that ends while no request has it: also where the next finds it not quite gone.
    for _ in 0..20 {
        kill(pid(&workers(server.pid())[0]));
        assert!(run(&mut client, "true", 60_000).is_ok());
    }
    server.stop();
}

#[test]
fn no_script_outlives_its_server() {
    let directory = Directory::new();
    let server = Server::start(&directory);
    let _ = client(&server);
    let begun = thread::spawn({
        let mut other = Client::connect(&server.address).unwrap();
        move || {
            let query = document! { "$where": ENDLESS };
            let _ = other.command("test", document! { "count": "c", "query": query.view() }.view());
        }
    });
    wait_until("it begins", || workers(server.pid()).len() == 1);
    let worker = workers(server.pid()).remove(0);
    drop(server);
    begun.join().unwrap();
    wait_until("it ends", || !worker.exists());
}

#[test]
fn scripts_can_be_refused() {
    let directory = Directory::new();
    let server = Server::start_with(&directory, "--noscripting");
    let mut client = client(&server);
    assert!(run(&mut client, "true", 60_000).is_err());
    assert_eq!(workers(server.pid()), Vec::<PathBuf>::new());
    server.stop();
}
