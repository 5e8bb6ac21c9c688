//! FerretDB 1.x over SQLite: MongoDB's protocol. It doesn't sync each write, so that it is measured
//! with `--any-durability` only.

use std::process::Command;

use crate::target::Failure;
use crate::targets::managed::{Server, find_program, free_port, relay};
use crate::targets::{Places, Settings};

/// Starts it; answers the server and its address.
pub fn start(places: &Places, settings: &Settings<'_>) -> Result<(Server, String), Failure> {
    let program = find_program(places, "ferretdb", "ferretdb")?;
    let port = free_port()?;
    let data = settings.directory.join("data");
    let state = settings.directory.join("state");
    std::fs::create_dir_all(&data)?;
    std::fs::create_dir_all(&state)?;
    let mut command = Command::new(program);
    command.args(["--handler=sqlite", "--telemetry=disable", "--debug-addr=-"]);
    command.arg(format!("--sqlite-url=file:{}/", data.display()));
    command.arg(format!("--state-dir={}", state.display()));
    command.arg(format!("--listen-addr=127.0.0.1:{port}"));
    command.args(["--log-level=error"]);
    let server = Server::start("ferretdb", command, settings.directory)?;
    let (server, port) = relay::reached(server, port, settings)?;
    Ok((server, format!("mongodb://127.0.0.1:{port}/?directConnection=true")))
}
