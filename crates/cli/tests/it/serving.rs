//! Goal: the command line does on a running server what it does on a data directory, and the two
//! keep out of each other's way.
//! Method: `frond serve` as a child process on a free port, ended by SIGTERM.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::{Directory, command, frond, frond_with};

/// A server on a directory's `frond-data`.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(directory: &Directory) -> Server {
        let mut child = command(directory, "serve --listen 127.0.0.1:0")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.map(Result::unwrap).find_map(|line| {
            line.trim().strip_prefix("listening on").map(|address| address.trim().to_owned())
        });
        Server { child, address: address.expect("the server tells its address") }
    }

    /// Ends the server as a service manager would; it must end well.
    fn stop(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Gone already, unless a test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_running_server_is_used_by_its_address() {
    let directory = Directory::new();
    let server = Server::start(&directory);
    let uri = format!("--uri {}", server.address);
    let lines: String = (0..3000).map(|id| format!("{{\"_id\":{id}}}\n")).collect();
    let import = format!("import -d shop -c items --commit first {uri}");
    assert!(frond_with(&directory, &import, &lines).ok().contains("3,000 documents"));
    assert_eq!(frond(&directory, &format!("export -d shop -c items {uri}")).ok(), lines);
    frond(&directory, &format!("branch shop sale {uri}")).ok();
    frond_with(&directory, &format!("import -d shop@sale -c items {uri}"), "{\"_id\":-1}").ok();
    let diff = frond(&directory, &format!("diff shop@sale {uri}")).ok();
    assert_eq!(diff, "items\n  + {\"_id\":-1}\n");
    let error = frond(&directory, &format!("commit shop -m again {uri}")).fails(1);
    assert!(error.contains("nothing to commit"), "{error}");

    let error = frond(&directory, "log shop").fails(1);
    assert!(error.contains("in use by another process") && error.contains("--uri"), "{error}");
    server.stop();
    assert!(frond(&directory, "log shop --oneline").ok().contains("first"));
    let error = frond(&directory, &format!("log shop {uri}")).fails(1);
    assert!(error.contains("is a server running there?"), "{error}");
}

#[test]
fn only_loopback_addresses_are_served() {
    let directory = Directory::new();
    let error = frond(&directory, "serve --listen 0.0.0.0:0").fails(1);
    assert!(error.contains("no authentication yet"), "{error}");
    let error = frond(&directory, "serve --listen nonsense").fails(1);
    assert!(error.contains("can't listen on nonsense"), "{error}");
}
