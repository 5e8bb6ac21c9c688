//! Goal: `frond shell` passes mongosh the server's address, our script, and the user's arguments.
//! Method: a stand-in for mongosh, which prints its arguments. conformance/run.py tests the script
//! in mongosh itself.

use std::os::unix::fs::PermissionsExt;

use crate::serving::Server;
use crate::{Directory, command};

const SCRIPT: &str = include_str!("../../../server/data/frond.mongosh.js");

/// A directory whose `bin` has a mongosh that prints its arguments, one a paragraph.
fn with_mongosh() -> Directory {
    let directory = Directory::new();
    let bin = directory.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let mongosh = bin.join("mongosh");
    std::fs::write(
        &mongosh,
        "#!/bin/sh\nprintf '%s\\n\\n' \"$@\"\necho \"$FROND_SHELL_URI\" >&2\nexit 7\n",
    )
    .unwrap();
    std::fs::set_permissions(&mongosh, std::fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

/// Runs `frond shell LINE` with that mongosh, or without: exit code, output and errors.
fn shell(directory: &Directory, line: &str) -> (i32, String, String) {
    let mut command = command(directory, &format!("shell {line}"));
    let output = command.env("PATH", directory.path().join("bin")).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn mongosh_is_started_on_the_server() {
    let directory = with_mongosh();
    let server = Server::start(&directory);
    let address = &server.address;
    let begin = format!("mongodb://{address}\n\n--eval\n\n{SCRIPT}\n\n");
    let database = "--eval\n\ndb = db.getSiblingDB(\"shop@sale\"); undefined\n\n";
    for (line, expected) in [
        ("", "--shell\n\n".to_owned()),
        ("shop@sale", format!("{database}--shell\n\n")),
        ("--eval db.log() -f a.js", "--eval\n\ndb.log()\n\n--file\n\na.js\n\n".to_owned()),
        ("-- --quiet", "--shell\n\n--quiet\n\n".to_owned()),
    ] {
        let ran = shell(&directory, &format!("--uri {address} {line}"));
        // The exit code is mongosh's.
        assert_eq!(ran, (7, format!("{begin}{expected}"), "\n".to_owned()), "{line}");
    }
    // Without an address it is the server of the data directory, as for the other commands.
    let (_, output, _) = shell(&directory, "shop");
    let uri = output.lines().next().unwrap_or_default();
    assert!(uri.starts_with("mongodb://%2F") && uri.ends_with(".sock/"), "{output}");
    let (code, _, error) = shell(&directory, "--uri 27017");
    assert!(code == 2 && error.contains("27017 is a port alone"), "{error}");
    // What only mongosh understands is its own affair.
    let (_, output, _) = shell(&directory, "--uri mongodb://127.0.0.1:1/?tls=true");
    assert!(output.starts_with("mongodb://127.0.0.1:1/?tls=true\n"), "{output}");

    std::fs::remove_file(directory.path().join("bin/mongosh")).unwrap();
    let (code, _, error) = shell(&directory, &format!("--uri {address}"));
    assert!(code == 1 && error.contains("npm install --global mongosh"), "{error}");
    let (code, output, _) = shell(&directory, "--print-script");
    assert_eq!((code, output.as_str()), (0, SCRIPT));
    server.stop();
}

/// Every user of a machine reads command lines.
#[test]
fn a_password_is_on_no_command_line() {
    let directory = with_mongosh();
    let uri = "mongodb://ada:secret@127.0.0.1:1/?tls=true";
    for (given, variable) in [(uri, ""), ("mongodb://ada@127.0.0.1:1/?tls=true", "secret")] {
        let mut command = command(&directory, &format!("shell --uri {given} -f a.js"));
        command.env("PATH", directory.path().join("bin")).env("FROND_PASSWORD", variable);
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (error, errors) = (text(output.stdout), text(output.stderr));
        assert_eq!(errors, format!("{uri}\n"));
        assert!(error.starts_with("--nodb\n\n--eval\n\ndb = connect("), "{error}");
        assert!(error.ends_with("--file\n\na.js\n\n") && !error.contains("secret"), "{error}");
    }
}

#[test]
fn a_server_that_is_not_there_is_reported() {
    let directory = with_mongosh();
    // Port 1 is no user's.
    let (code, output, error) = shell(&directory, "--uri 127.0.0.1:1");
    assert!(
        code == 1 && output.is_empty() && error.contains("is a server running there?"),
        "{error}"
    );
}
