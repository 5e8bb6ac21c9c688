//! Frond's own server: `frond serve`, also with TLS and users.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::target::Failure;
use crate::targets::managed::{Server, find_program, free_port};
use crate::targets::{Places, Settings};

/// Who logs in to a secured server.
pub const USER: &str = "bench";
/// Their password.
pub const PASSWORD: &str = "Marsh 4 lantern";

/// Starts it; answers the server and its address.
pub fn start(places: &Places, settings: &Settings<'_>) -> Result<(Server, String), Failure> {
    let (command, port) = command(places, settings)?;
    let server = Server::start("frond", command, settings.directory)?;
    Ok((server, format!("mongodb://127.0.0.1:{port}/?directConnection=true")))
}

/// Starts it so that clients must speak TLS and log in; answers the server and its address, without
/// the user.
#[cfg(feature = "mongo")]
pub fn start_secured(
    places: &Places,
    settings: &Settings<'_>,
) -> Result<(Server, String), Failure> {
    let (mut command, port) = command(places, settings)?;
    let (pair, authority) = certificate(settings.directory)?;
    command.args(["--auth", "--tls-mode", "requireTLS", "--tls-certificate-key-file", &pair]);
    let server = Server::start("frond", command, settings.directory)?;
    let options = format!("directConnection=true&tls=true&tlsCAFile={authority}");
    Ok((server, format!("mongodb://localhost:{port}/?{options}")))
}

/// The program with what every start has, and the port that it listens on.
fn command(places: &Places, settings: &Settings<'_>) -> Result<(Command, u16), Failure> {
    let program = find_program(places, "frond", "frond")?;
    let port = free_port()?;
    let mut command = Command::new(program);
    command.arg("serve").arg("--data").arg(settings.directory.join("data"));
    command.args(["--listen", &format!("127.0.0.1:{port}")]);
    command.args(["--cache", &(settings.cache_bytes >> 20).to_string()]);
    Ok((command, port))
}

/// Makes a certificate, unless an earlier start did; answers the file of it and its key, and that
/// of what clients trust.
#[cfg(feature = "mongo")]
fn certificate(directory: &Path) -> Result<(String, String), Failure> {
    let (pair, authority) = (directory.join("server.pem"), directory.join("authority.pem"));
    if !pair.is_file() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let made = made.map_err(Failure::other)?;
        fs::write(&authority, made.cert.pem())?;
        fs::write(&pair, made.cert.pem() + &made.signing_key.serialize_pem())?;
    }
    Ok((pair.display().to_string(), authority.display().to_string()))
}
