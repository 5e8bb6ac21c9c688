//! docs/remotes.md is run, as docs/walkthrough.md is: with a server that it starts. The server
//! takes a free port, and its address replaces the one that the page shows.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::{Directory, command, frond, frond_with, walkthrough};

const PAGE: &str = include_str!("../../../../docs/remotes.md");
const SHOWN: &str = "127.0.0.1:4224";

/// A server that serves remotes, killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(directory: &Directory, line: &str) -> Server {
        let mut child = command(directory, line).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.map(Result::unwrap).find_map(|line| {
            let url = line.trim().strip_prefix("clone from")?.trim().to_owned();
            url.strip_prefix("http://")?.strip_suffix("/DATABASE").map(str::to_owned)
        });
        Server { child, address: address.expect("the server tells its address") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_page_about_remotes_is_true() {
    let directory = Directory::new();
    let token = "0123456789abcdef-of-the-page";
    directory.file("tokens", &format!("{token} # everything\n"));
    directory.file("my-token", &format!("{token}\n"));
    let steps = walkthrough::read(PAGE, &directory);
    assert!(steps.len() > 15, "{} commands", steps.len());
    let (mut wrong, mut server) = (String::new(), None::<Server>);
    for step in &steps {
        if let Some(line) = step.line.strip_suffix(" &") {
            let line = line.strip_prefix("frond ").unwrap().replace(SHOWN, "127.0.0.1:0");
            server = Some(Server::start(&directory, &line));
            continue;
        }
        let address = server.as_ref().map_or(SHOWN, |server| &server.address);
        wrong.push_str(&walkthrough::difference(&directory, step, &|text| {
            text.replace(SHOWN, address)
        }));
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn a_directory_in_use_is_refused_with_its_address() {
    let directory = Directory::new();
    let _server =
        Server::start(&directory, "serve --listen 127.0.0.1:0 --remote-listen 127.0.0.1:0");
    let error = frond(&directory, "clone frond-data#shop shop --data mine").fails(1);
    assert!(error.contains("--remote-listen") && error.contains("http://"), "{error}");
    let error = frond(&directory, "serve --data x --remote-listen 0.0.0.0:0").fails(1);
    assert!(error.contains("tokens"), "{error}");
    let error = frond(&directory, "clone http://127.0.0.1:1/shop shop --data mine").fails(1);
    assert!(error.contains("127.0.0.1"), "{error}");
    for place in ["ftp://x/y", "http://u:p@h/shop", "s3://"] {
        frond(&directory, &format!("clone {place} shop --data mine")).fails(1);
    }
}

/// One branch that can't be pushed doesn't keep the others.
#[test]
fn all_branches_are_pushed() {
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c items --commit first", "{\"_id\":1}").ok();
    frond(&directory, "branch shop a%b").ok();
    frond(&directory, "branch shop sale").ok();
    std::fs::create_dir(directory.path().join("plain")).unwrap();
    frond(&directory, "remote shop add origin plain").ok();
    let pushed = frond(&directory, "push shop --all").ok();
    let branches: Vec<&str> = pushed.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(branches, ["a%b", "main", "sale"]);
    frond(&directory, "push shop --all --branch main").fails(2);
    // The remote's main gets a commit that is not here.
    frond(&directory, "clone plain shop --data other").ok();
    frond(&directory, "commit shop -m theirs --allow-empty --data other").ok();
    frond(&directory, "push shop --data other").ok();
    for branch in ["shop", "shop@sale"] {
        frond(&directory, &format!("commit {branch} -m ours --allow-empty")).ok();
    }
    let ran = frond(&directory, "push shop --all");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("frond: main: ") && ran.err.contains("pull them first"), "{ran:?}");
    assert!(ran.out.contains("a%b of origin is at ") && ran.out.contains("already"), "{ran:?}");
    assert!(ran.out.contains("sale of origin is at ") && ran.out.contains(" now ("), "{ran:?}");
    // Where there is nothing to push, that is reported.
    let ran = frond(&directory, "push shp --all");
    assert!(ran.code == 1 && ran.err.contains("database shp doesn't exist"), "{ran:?}");
    frond_with(&directory, "import -d bare -c items", "{\"_id\":1}").ok();
    let ran = frond(&directory, "push bare --all");
    assert!(ran.code == 1 && ran.err.contains("no branch of bare has a commit"), "{ran:?}");
}

/// What this process does on a directory, the server that has it does, and it is printed alike.
#[test]
fn a_server_on_the_data_directory_does_it_itself() {
    let directory = Directory::new();
    let write = |data: &str, document: &str| {
        let line = format!("import -d shop -c items --mode upsert --commit {data} --data {data}");
        frond_with(&directory, &line, document).ok();
    };
    write("far", "{\"_id\":1}");
    let serve = |data: &str| {
        let listen = "--listen 127.0.0.1:0 --remote-listen 127.0.0.1:0";
        Server::start(&directory, &format!("serve --data {data} {listen}"))
    };
    let (far, _near) = (serve("far"), serve("near"));
    let place = format!("http://{}/shop", far.address);
    let run = |line: &str| frond(&directory, &format!("{line} --data near"));
    let cloned = run(&format!("clone {place} shop")).ok();
    assert!(cloned.starts_with("origin/main is at ") && cloned.contains("  (new)\n1 commit, "));
    assert!(cloned.ends_with("cloned into shop\n"), "{cloned}");
    assert_eq!(run("remote shop").ok(), format!("origin           {place}\n"));
    assert_eq!(run("fetch shop").ok(), "nothing new\n");
    write("near", "{\"_id\":2}");
    let pushed = run("push shop").ok();
    assert!(pushed.starts_with("main of origin is at ") && pushed.contains(" now (1 commit, "));
    assert!(run("push shop --all").ok().ends_with(" already\n"));
    write("far", "{\"_id\":3}");
    let pulled = run("pull shop --json").ok();
    assert!(
        pulled.starts_with("{\"branches\":[{\"branch\":\"origin/main\",\"from\":\""),
        "{pulled}"
    );
    assert!(pulled.contains("\"commits\":1,") && pulled.contains("\"result\":\"fastForward\""));
    write("far", "{\"_id\":1,\"price\":4}");
    write("near", "{\"_id\":1,\"price\":5}");
    let refused = run("push shop").fails(1);
    assert!(refused.contains("has commits that this branch lacks"), "{refused}");
    let ran = run("pull shop");
    assert!(ran.code == 1 && ran.out.starts_with("Conflicts wait to be resolved:"), "{ran:?}");
    run("resolve shop --all --theirs").ok();
    run("merge shop --continue").ok();
    assert!(run("push shop").ok().contains(" now (2 commits, "));
    let error = run("remote shop add disk ./plain").fails(1);
    assert!(error.contains("stop it first, or name http"), "{error}");
    assert_eq!(run("remote shop remove origin").ok(), "removed remote origin\n");
    assert!(run("fetch shop").fails(1).contains("no remote origin"));
}
