//! Frond's own server: `frond serve`, also with TLS and users, or three as a replica set.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use crate::target::Failure;
use crate::targets::managed::{Server, find_program, free_port, relay};
use crate::targets::{Places, Settings};

/// Who logs in to a secured server.
pub const USER: &str = "bench";
/// Their password.
pub const PASSWORD: &str = "Marsh 4 lantern";

/// How many members a set has.
const MEMBERS: u16 = 3;
/// The file with the addresses of a set's members: these keep theirs.
const MEMBERS_FILE: &str = "members";

/// Starts it; answers the server and its address.
pub fn start(places: &Places, settings: &Settings<'_>) -> Result<(Server, String), Failure> {
    let (command, port) = command(places, settings)?;
    let server = Server::start("frond", command, settings.directory)?;
    let (server, port) = relay::reached(server, port, settings)?;
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
    let (server, port) = relay::reached(server, port, settings)?;
    let options = format!("directConnection=true&tls=true&tlsCAFile={authority}");
    Ok((server, format!("mongodb://localhost:{port}/?{options}")))
}

/// Starts a replica set, each of whose members has the same cache; answers the servers and the
/// address of all.
pub fn start_set(places: &Places, settings: &Settings<'_>) -> Result<(Server, String), Failure> {
    let program = find_program(places, "frond", "frond")?;
    let key = cluster_key(settings.directory)?;
    let members = members(settings.directory)?;
    let mut all: Option<Server> = None;
    for (number, address) in members.split(',').enumerate() {
        let mut command = Command::new(&program);
        let data = settings.directory.join(format!("data-{number}"));
        command.arg("serve").arg("--data").arg(data);
        let listen = match settings.delay.is_zero() {
            true => address.to_owned(),
            false => format!("127.0.0.1:{}", free_port()?),
        };
        command.args(["--listen", &listen, "--advertise", address]);
        command.args(["--cache", &(settings.cache_bytes >> 20).to_string()]);
        command.args(["--replica-set", "rs0", "--members", &members, "--cluster-key", &key]);
        let mut server = Server::start(&format!("frond-{number}"), command, settings.directory)?;
        if listen != address {
            server = server.with(relay::start(port_of(address)?, port_of(&listen)?, settings)?);
        }
        all = Some(match all {
            Some(first) => first.with(server),
            None => server,
        });
    }
    let all = all.ok_or_else(|| Failure::Other("a set without members".into()))?;
    Ok((all, format!("mongodb://{members}/?replicaSet=rs0")))
}

/// The addresses of a set's members: those of an earlier start, or new ones.
fn members(directory: &Path) -> Result<String, Failure> {
    let file = directory.join(MEMBERS_FILE);
    if let Ok(known) = fs::read_to_string(&file) {
        return Ok(known);
    }
    // All are taken before one is given back: no two are the same.
    let held: Vec<TcpListener> =
        (0..MEMBERS).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect::<Result<_, _>>()?;
    let addresses: Vec<String> = held
        .iter()
        .map(|listener| Ok(listener.local_addr()?.to_string()))
        .collect::<Result<_, std::io::Error>>()?;
    let members = addresses.join(",");
    fs::write(file, &members)?;
    Ok(members)
}

fn port_of(address: &str) -> Result<u16, Failure> {
    let (_, port) = address.rsplit_once(':').unwrap_or_default();
    port.parse().map_err(|_| Failure::Other(format!("{address} has no port")))
}

/// The file of the key that a set's members know, which only its owner may read.
fn cluster_key(directory: &Path) -> Result<String, Failure> {
    let file = directory.join("cluster-key");
    if !file.is_file() {
        let key = "a set that lives as long as its benchmark";
        OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&file)?
            .write_all(key.as_bytes())?;
    }
    Ok(file.display().to_string())
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
