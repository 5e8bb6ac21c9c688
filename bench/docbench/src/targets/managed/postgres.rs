//! PostgreSQL: a cluster made by `initdb`, a server on a port of loopback, as every server that we
//! start; also with two standbys, one of which must have synced a commit.
//!
//! It refuses to run as root, so that root starts it as the user `postgres`.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::target::Failure;
use crate::targets::managed::{Server, find_program, free_port, is_root, relay, run_to_end};
use crate::targets::{Places, Settings};

const USER: &str = "postgres";
/// More than the most clients of any workload.
const CONNECTIONS_MAX: u32 = 1_200;
/// The standbys of a set.
const STANDBYS: [&str; 2] = ["standby_1", "standby_2"];

/// Starts it; answers the server and its address.
pub fn start(places: &Places, settings: &Settings<'_>) -> Result<(Server, String), Failure> {
    let programs = Programs::find(places, settings)?;
    let port = free_port()?;
    let server = programs.primary(port, settings, &[])?;
    let (server, port) = relay::reached(server, port, settings)?;
    Ok((server, address(port)))
}

/// Starts a primary and two standbys, each of which has the same cache; answers the servers and the
/// primary's address. A commit is acknowledged once a standby has synced it, too.
pub fn start_set(places: &Places, settings: &Settings<'_>) -> Result<(Server, String), Failure> {
    let programs = Programs::find(places, settings)?;
    let port = free_port()?;
    let names = format!("synchronous_standby_names=ANY 1 ({})", STANDBYS.join(", "));
    let mut primary = programs.primary(port, settings, &[names])?;
    primary.ready(|| {
        let mut ask = Command::new(programs.directory.join("pg_isready"));
        ask.args(["-h", "127.0.0.1", "-p", &port.to_string()]);
        run_to_end(ask)
    })?;
    let (mut primary, port) = relay::reached(primary, port, settings)?;
    for name in STANDBYS {
        primary = primary.with(programs.standby(name, port, settings)?);
    }
    Ok((primary, address(port)))
}

fn address(port: u16) -> String {
    format!("host=127.0.0.1 port={port} user={USER} dbname=postgres")
}

/// PostgreSQL's programs, and who runs them.
struct Programs {
    directory: PathBuf,
    user: Option<(u32, u32)>,
}

impl Programs {
    /// Finds them, and gives the target's directory to who runs them.
    fn find(places: &Places, settings: &Settings<'_>) -> Result<Programs, Failure> {
        let initdb = find_program(places, "postgres", "initdb")?;
        let user = if is_root() { Some(user()?) } else { None };
        if let Some((user, group)) = user {
            chown(settings.directory, Some(user), Some(group))?;
        }
        Ok(Programs { directory: initdb.parent().unwrap_or(Path::new("/")).into(), user })
    }

    fn command(&self, program: &str, data: &Path, settings: &Settings<'_>) -> Command {
        let mut command = Command::new(self.directory.join(program));
        command.current_dir(settings.directory).arg("-D").arg(data);
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }

    /// Starts the server that takes writes, on a cluster that is made where none is.
    fn primary(
        &self,
        port: u16,
        settings: &Settings<'_>,
        more: &[String],
    ) -> Result<Server, Failure> {
        let data = settings.directory.join("data");
        if !data.exists() {
            let mut make = self.command("initdb", &data, settings);
            // Its own syncs of the empty cluster are of no use to us.
            make.args(["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
            run_to_end(make)?;
        }
        self.serve("postgres", &data, port, settings, more)
    }

    /// Starts a standby of the primary at `primary`, from a copy that is made where none is.
    fn standby(
        &self,
        name: &str,
        primary: u16,
        settings: &Settings<'_>,
    ) -> Result<Server, Failure> {
        let data = settings.directory.join(format!("data-{name}"));
        if !data.exists() {
            let mut copy = self.command("pg_basebackup", &data, settings);
            copy.args(["-h", "127.0.0.1", "-p", &primary.to_string(), "-U", USER]);
            // The primary keeps what the standby lacks.
            copy.args(["--create-slot", "--slot", name, "--checkpoint=fast", "--no-sync"]);
            copy.arg("--write-recovery-conf");
            run_to_end(copy)?;
        }
        // Its primary may have another port now.
        let to = format!("host=127.0.0.1 port={primary} user={USER} application_name={name}");
        let more = [format!("primary_conninfo={to}"), format!("primary_slot_name={name}")];
        self.serve(name, &data, free_port()?, settings, &more)
    }

    fn serve(
        &self,
        name: &str,
        data: &Path,
        port: u16,
        settings: &Settings<'_>,
        more: &[String],
    ) -> Result<Server, Failure> {
        let mut serve = self.command("postgres", data, settings);
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
        for setting in more {
            serve.arg("-c").arg(setting);
        }
        Server::start(name, serve, settings.directory)
    }
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
