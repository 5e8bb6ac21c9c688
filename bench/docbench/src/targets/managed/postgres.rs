//! PostgreSQL: a cluster made by `initdb`, a server on a port of loopback, as every server that we
//! start.
//!
//! It refuses to run as root, so that root starts it as the user `postgres`.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::target::Failure;
use crate::targets::managed::{Server, find_program, free_port, is_root, run_to_end};
use crate::targets::{Places, Settings};

const USER: &str = "postgres";
/// More than the most clients of any workload.
const CONNECTIONS_MAX: u32 = 1_200;

/// Starts it; answers the server and its address.
pub fn start(places: &Places, settings: &Settings<'_>) -> Result<(Server, String), Failure> {
    let initdb = find_program(places, "postgres", "initdb")?;
    let programs = initdb.parent().unwrap_or(Path::new("/"));
    let user = if is_root() { Some(user()?) } else { None };
    if let Some((user, group)) = user {
        chown(settings.directory, Some(user), Some(group))?;
    }
    let data = settings.directory.join("data");
    let as_user = |program: &str| {
        let mut command = Command::new(programs.join(program));
        command.current_dir(settings.directory).arg("-D").arg(&data);
        if let Some((user, group)) = user {
            command.uid(user).gid(group);
        }
        command
    };
    if !data.exists() {
        let mut make = as_user("initdb");
        // Its own syncs of the empty cluster are of no use to us.
        make.args(["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        run_to_end(make)?;
    }
    let mut serve = as_user("postgres");
    let port = free_port()?;
    for setting in [
        "listen_addresses=127.0.0.1".to_owned(),
        format!("port={port}"),
        "unix_socket_directories=".to_owned(),
        format!("shared_buffers={}MB", settings.cache_bytes >> 20),
        format!("max_connections={CONNECTIONS_MAX}"),
        "fsync=on".to_owned(),
        "synchronous_commit=on".to_owned(),
        "max_wal_size=4GB".to_owned(),
    ] {
        serve.arg("-c").arg(setting);
    }
    let server = Server::start("postgres", serve, settings.directory)?;
    Ok((server, format!("host=127.0.0.1 port={port} user={USER} dbname=postgres")))
}

/// The user and group that the server runs as.
fn user() -> Result<(u32, u32), Failure> {
    let users = fs::read_to_string("/etc/passwd")?;
    let fields = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.first() == Some(&USER));
    match fields.as_deref() {
        Some([_, _, user, group, ..]) => {
            Ok((user.parse().map_err(Failure::other)?, group.parse().map_err(Failure::other)?))
        }
        _ => Err(Failure::Missing("it may not run as root, and there is no user postgres".into())),
    }
}
