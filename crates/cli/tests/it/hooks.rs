//! Goal: hooks of the data directory run where the work is done, can refuse it, and are reported.
//! Method: scripts that write down what they were given; an address that answers as it is wanted.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use crate::serving::Server;
use crate::{Directory, frond, frond_with};

/// A hook that writes down its input, and then does as `script` says.
fn hook(directory: &Directory, name: &str, script: &str, mode: u32) {
    let hooks = directory.path().join("frond-data/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let log = directory.path().join(format!("told-{name}")).display().to_string();
    let file = hooks.join(name);
    fs::write(&file, format!("#!/bin/sh\ncat >> {log}\n{script}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
}

fn log_of(directory: &Directory, name: &str) -> String {
    fs::read_to_string(directory.path().join(format!("told-{name}"))).unwrap_or_default()
}

fn shop() -> Directory {
    let directory = Directory::new();
    frond_with(&directory, "import -d shop -c items --commit first", "{\"_id\": 1}").ok();
    frond(&directory, "branch shop sale").ok();
    directory
}

#[test]
fn a_commit_is_refused_and_reported() {
    let directory = shop();
    let refusal = "if [ $FROND_BRANCH = main ]; then echo by review only >&2; exit 1; fi";
    hook(&directory, "pre-commit", refusal, 0o700);
    hook(&directory, "post-commit", "echo $FROND_COMMIT > last; exit 7", 0o700);
    let server = Server::start(&directory);
    let uri = format!("--uri {}", server.address);
    for name in ["shop", "shop@sale"] {
        frond_with(&directory, &format!("import -d {name} -c items {uri}"), "{\"_id\": 2}").ok();
    }
    let error = frond(&directory, &format!("commit shop -m second {uri}")).fails(1);
    assert!(error.contains("the hook pre-commit refuses: by review only"), "{error}");
    let ran = frond(&directory, &format!("commit shop@sale -m second {uri}"));
    assert!(ran.err.contains("the hook post-commit: exit status: 7"), "{ran:?}");
    assert!(ran.ok().contains("[sale "));
    server.stop();
    let before = log_of(&directory, "pre-commit");
    assert_eq!(before.lines().count(), 2, "{before}");
    let facts = "\"branch\":\"main\",\"message\":\"second\",\"commitId\":\"";
    assert!(before.contains(facts), "{before}");
    assert!(log_of(&directory, "post-commit").contains("\"commitId\":\""));
    // In this process, too.
    frond_with(&directory, "import -d shop@sale -c items", "{\"_id\": 9}").ok();
    frond(&directory, "commit shop@sale -m third").ok();
    let error = frond(&directory, "commit shop -m third").fails(1);
    assert!(error.contains("by review only"), "{error}");
    let last = fs::read_to_string(directory.path().join("last")).unwrap();
    assert!(frond(&directory, "log shop@sale -1 --json").ok().contains(last.trim()));

    let server = Server::start_with(&directory, "--no-hooks");
    frond(&directory, &format!("commit shop -m fourth --uri {}", server.address)).ok();
    server.stop();
}

/// A writer goes on while the hook reads what is to be committed: just that becomes the commit, and
/// the rest is what isn't committed. If another commit was first, or the hook says no, nothing is.
#[test]
fn a_commit_holds_what_its_hook_judged() {
    let directory = shop();
    let server = Server::start(&directory);
    let uri = format!("--uri {}", server.address);
    let insert = |name: &str, document: &str| {
        frond_with(&directory, &format!("import -d {name} -c items {uri}"), document).ok();
    };
    let program = env!("CARGO_BIN_EXE_frond");
    let export = format!("{program} export -d shop@$FROND_COMMIT -c items {uri}");
    let late = "{\"_id\": 77, \"late\": 1}";
    let import = format!("echo '{late}' | {program} import -d shop -c items {uri}");
    let judge = format!("{import} >&2 || exit 9\n{export} > judged || exit 8\nexit 0");
    hook(&directory, "pre-commit", &judge, 0o700);
    insert("shop", "{\"_id\": 2}");
    frond(&directory, &format!("commit shop -m judged {uri}")).ok();
    let judged = fs::read_to_string(directory.path().join("judged")).unwrap();
    assert_eq!(judged.lines().count(), 2, "{judged}");
    let head = frond(&directory, &format!("export -d shop@HEAD -c items {uri}")).ok();
    assert_eq!(head, judged);
    let now = frond(&directory, &format!("export -d shop -c items {uri}")).ok();
    assert!(now.contains("late") && now.lines().count() == 3, "{now}");
    let status = frond(&directory, &format!("status shop {uri}")).ok();
    assert!(status.contains("items"), "{status}");
    // Another commit is first.
    let other = format!("commit shop -m other --allow-empty {uri}");
    let script = format!("[ -e ran ] && exit 0; touch ran; {program} {other} >&2");
    hook(&directory, "pre-commit", &script, 0o700);
    let error = frond(&directory, &format!("commit shop -m mine {uri}")).fails(1);
    assert!(error.contains("has moved while the commit was judged"), "{error}");
    let log = frond(&directory, &format!("log shop {uri}")).ok();
    assert!(log.contains("other") && !log.contains("mine"), "{log}");
    // Nothing is left of what was refused but what isn't committed.
    hook(&directory, "pre-commit", "exit 1", 0o700);
    insert("shop", "{\"_id\": 5}");
    frond(&directory, &format!("commit shop -m refused {uri}")).fails(1);
    hook(&directory, "pre-commit", "exit 0", 0o600);
    frond(&directory, &format!("commit shop -m last {uri}")).ok();
    let head = frond(&directory, &format!("export -d shop@HEAD -c items {uri}")).ok();
    assert_eq!(head.lines().count(), 4, "{head}");
    server.stop();
}

/// What comes to either branch while the hook runs isn't merged: of the one that comes in just the
/// commit that was judged is; the other must not have moved; a merge that waits ends as it was.
#[test]
fn a_merge_takes_what_its_hook_judged() {
    let directory = shop();
    let server = Server::start(&directory);
    let uri = format!("--uri {}", server.address);
    let program = env!("CARGO_BIN_EXE_frond");
    let import = |name: &str, document: &str, how: &str| {
        let command = format!("import -d {name} -c items {how} {uri}");
        frond_with(&directory, &command, document).ok();
    };
    let late = |name: &str, document: &str, how: &str| {
        format!(
            "[ -e once ] && exit 0; touch once\n\
             echo '{document}' | {program} import -d {name} -c items {how} {uri} >&2 || exit 9\n\
             [ -z $FROND_MERGE_IN ] || {program} export -d shop@$FROND_MERGE_IN -c items {uri} \
             > judged || exit 8"
        )
    };
    let again = || fs::remove_file(directory.path().join("once")).unwrap();
    let export = || frond(&directory, &format!("export -d shop@HEAD -c items {uri}")).ok();
    import("shop@sale", "{\"_id\": 21, \"v\": \"sale\"}", "--commit s1");
    let script = late("shop@sale", "{\"_id\": 22}", "--commit s2");
    hook(&directory, "pre-merge", &script, 0o700);
    frond(&directory, &format!("merge shop sale {uri}")).ok();
    let judged = fs::read_to_string(directory.path().join("judged")).unwrap();
    assert!(judged.contains("21") && !judged.contains("22"), "{judged}");
    assert_eq!(export(), judged);
    // The branch itself moves: nothing is merged, and a second try is.
    again();
    hook(&directory, "pre-merge", &late("shop", "{\"_id\": 31}", "--commit m"), 0o700);
    let error = frond(&directory, &format!("merge shop sale {uri}")).fails(1);
    assert!(error.contains("main has changed while the merge was judged"), "{error}");
    assert!(!export().contains("22"));
    frond(&directory, &format!("merge shop sale {uri}")).ok();
    assert!(export().contains("22") && export().contains("31"));
    // A merge that waits is ended as it was judged.
    again();
    fs::write(directory.path().join("once"), "").unwrap();
    import("shop@sale", "{\"_id\": 21, \"v\": \"theirs\"}", "--mode upsert --commit t");
    import("shop", "{\"_id\": 21, \"v\": \"ours\"}", "--mode upsert --commit o");
    frond(&directory, &format!("merge shop sale {uri}")).fails(1);
    frond(&directory, &format!("resolve shop --all --theirs {uri}")).ok();
    again();
    hook(&directory, "pre-merge", &late("shop", "{\"_id\": 41}", ""), 0o700);
    let error = frond(&directory, &format!("merge shop --continue {uri}")).fails(1);
    assert!(error.contains("main has changed while the merge was judged"), "{error}");
    assert!(!export().contains("theirs"));
    frond(&directory, &format!("merge shop --continue {uri}")).ok();
    assert!(export().contains("theirs") && export().contains("41"));
    server.stop();
}

#[test]
fn merges_and_pushes_have_theirs() {
    let directory = shop();
    frond_with(&directory, "import -d shop@sale -c items --commit more", "{\"_id\": 2}").ok();
    frond(&directory, "remote shop add origin plain").ok();
    hook(&directory, "pre-merge", "exit 1", 0o700);
    hook(&directory, "pre-push", "echo not today >&2; exit 1", 0o700);
    let refused = frond(&directory, "merge shop sale -m unchecked").fails(1);
    assert!(refused.contains("the hook pre-merge refuses"), "{refused}");
    assert!(log_of(&directory, "pre-merge").contains("\"message\":\"unchecked\""));
    assert!(frond(&directory, "push shop").fails(1).contains("not today"));
    assert!(!directory.path().join("plain").join("REFS").exists());
    // As git: what isn't executable is off.
    hook(&directory, "pre-merge", "exit 1", 0o600);
    hook(&directory, "pre-push", "exit 0", 0o700);
    hook(&directory, "post-merge", "exit 0", 0o700);
    hook(&directory, "post-push", "exit 0", 0o700);
    frond(&directory, "merge shop sale").ok();
    frond(&directory, "push shop").ok();
    assert!(log_of(&directory, "post-merge").contains("\"mergeIn\":\"sale\""));
    assert!(log_of(&directory, "post-push").contains("\"remote\":\"origin\""));
    // That there was nothing to merge isn't told.
    frond(&directory, "merge shop sale").ok();
    assert_eq!(log_of(&directory, "post-merge").lines().count(), 1);
    // What others may write to isn't run.
    hook(&directory, "pre-push", "exit 0", 0o722);
    let error = frond(&directory, "push shop").fails(1);
    assert!(error.contains("may be written to by others"), "{error}");
}

#[test]
fn an_address_is_asked() {
    let directory = shop();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let requested = thread::spawn(move || {
        let mut requested = Vec::new();
        for answer in ["403 Forbidden\r\n\r\nnot on Fridays", "204 No Content\r\n\r\n"] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut bytes) = (String::new(), 0);
            while !head.ends_with("\r\n\r\n") {
                let from = head.len();
                reader.read_line(&mut head).unwrap();
                if let Some(length) = head[from..].strip_prefix("Content-Length: ") {
                    bytes = length.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; bytes];
            reader.read_exact(&mut body).unwrap();
            requested.push(format!("{head}{}", String::from_utf8(body).unwrap()));
            write!(stream, "HTTP/1.1 {answer}").unwrap();
        }
        requested
    });
    let hooks = directory.path().join("frond-data/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let url = hooks.join("pre-commit.url");
    fs::write(&url, format!("http://127.0.0.1:{port}/ask?it\n")).unwrap();
    let commit = "commit shop -m asked --allow-empty";
    let error = frond(&directory, commit).fails(1);
    assert!(error.contains("the hook pre-commit refuses: not on Fridays"), "{error}");
    frond(&directory, commit).ok();
    let requested = requested.join().unwrap();
    assert!(requested[0].starts_with("POST /ask?it HTTP/1.1\r\n"), "{requested:?}");
    assert!(requested[1].contains("\"message\":\"asked\",\"commitId\":\""), "{requested:?}");
    // That it can't be asked is a refusal.
    assert!(frond(&directory, commit).fails(1).contains("refuses"));
    fs::write(&url, "ftp://127.0.0.1/\n").unwrap();
    assert!(frond(&directory, commit).fails(1).contains("http://HOST"));
}

/// A commit passes unchecked by no hook that was linked, and waits for no pipe.
#[test]
fn a_hook_that_is_no_file_refuses() {
    let directory = shop();
    let hooks = directory.path().join("frond-data/hooks");
    fs::create_dir_all(&hooks).unwrap();
    frond_with(&directory, "import -d shop -c items", "{\"_id\": 2}").ok();
    std::os::unix::fs::symlink("gone", hooks.join("pre-commit")).unwrap();
    let error = frond(&directory, "commit shop -m second").fails(1);
    assert!(error.contains("pre-commit: the link leads nowhere"), "{error}");
    fs::remove_file(hooks.join("pre-commit")).unwrap();
    fs::create_dir(hooks.join("pre-commit.url")).unwrap();
    let error = frond(&directory, "commit shop -m second").fails(1);
    assert!(error.contains("pre-commit.url is not a file"), "{error}");
    fs::remove_dir(hooks.join("pre-commit.url")).unwrap();
    frond(&directory, "commit shop -m second").ok();
}
