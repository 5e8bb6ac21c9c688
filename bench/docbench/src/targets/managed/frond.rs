//! Frond's own server: `frond serve`.

use std::process::Command;

use crate::target::Failure;
use crate::targets::managed::{Server, find_program, free_port};
use crate::targets::{Places, Settings};

/// Starts it; answers the server and its address.
pub fn start(places: &Places, settings: &Settings<'_>) -> Result<(Server, String), Failure> {
    let program = find_program(places, "frond", "frond")?;
    let port = free_port()?;
    let mut command = Command::new(program);
    command.arg("serve").arg("--data").arg(settings.directory.join("data"));
    command.args(["--listen", &format!("127.0.0.1:{port}")]);
    command.args(["--cache", &(settings.cache_bytes >> 20).to_string()]);
    let server = Server::start("frond", command, settings.directory)?;
    Ok((server, format!("mongodb://127.0.0.1:{port}/?directConnection=true")))
}
