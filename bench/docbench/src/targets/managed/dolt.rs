//! Dolt: `dolt init` and `dolt sql-server` on loopback.
//!
//! It has no setting for its cache. Statistics are not collected in the background.

use std::process::Command;

use crate::target::Failure;
use crate::targets::managed::{Server, find_program, free_port, relay, run_to_end};
use crate::targets::{Places, Settings};

const CONNECTIONS_MAX: u32 = 1_200;

/// Starts it; answers the server and its address.
pub fn start(places: &Places, settings: &Settings<'_>) -> Result<(Server, String), Failure> {
    let program = find_program(places, "dolt", "dolt")?;
    // The directory's name is the database's.
    let data = settings.directory.join("docbench");
    std::fs::create_dir_all(&data)?;
    let dolt = || {
        let mut command = Command::new(&program);
        command.current_dir(&data).env("DOLT_ROOT_PATH", settings.directory);
        command.env("DOLT_DISABLE_EVENT_FLUSH", "1");
        command
    };
    if !data.join(".dolt").exists() {
        let mut make = dolt();
        make.args(["init", "--name", "docbench", "--email", "docbench@localhost"]);
        run_to_end(make)?;
    }
    let port = free_port()?;
    let configuration = format!(
        "log_level: warning\nlistener:\n  host: 127.0.0.1\n  port: {port}\n  \
         max_connections: {CONNECTIONS_MAX}\nbehavior:\n  autocommit: true\n"
    );
    let file = settings.directory.join("dolt.yaml");
    std::fs::write(&file, configuration)?;
    let mut serve = dolt();
    serve.arg("sql-server").arg("--config").arg(&file);
    let server = Server::start("dolt", serve, settings.directory)?;
    let (server, port) = relay::reached(server, port, settings)?;
    Ok((server, format!("mysql://root@127.0.0.1:{port}/docbench")))
}
