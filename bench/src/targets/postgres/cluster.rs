//! A PostgreSQL cluster of our own: made by `initdb`, started and stopped by `pg_ctl`.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::target::Failure;

/// Where Debian keeps the programs that aren't on everyone's path, one directory a version.
const DEBIAN_PROGRAMS: &str = "/usr/lib/postgresql";
/// The user's name inside the cluster, and outside it for a server that root starts.
const USER: &str = "postgres";

/// A running server. Dropping it stops the server.
pub struct Cluster {
    programs: PathBuf,
    directory: PathBuf,
    data: PathBuf,
    process: u32,
    user: Option<(u32, u32)>,
}

impl Cluster {
    /// Makes a cluster in `directory` and starts its server with `settings`.
    pub fn start(directory: &Path, settings: &[&str]) -> Result<Cluster, Failure> {
        let programs = programs().ok_or("PostgreSQL is not installed: there is no initdb")?;
        let user = user_of_server()?;
        if let Some((user, group)) = user {
            chown(directory, Some(user), Some(group))?;
        }
        let mut cluster = Cluster {
            programs,
            directory: directory.into(),
            data: directory.join("data"),
            process: 0,
            user,
        };
        let data = cluster.data.to_string_lossy().into_owned();
        cluster.run("initdb", &["-D", &data, "-U", USER, "-A", "trust", "-E", "UTF8"])?;
        let mut options = format!(
            "-c listen_addresses='' -c unix_socket_directories='{}'",
            cluster.directory.display()
        );
        for setting in settings {
            options += &format!(" -c {setting}");
        }
        let log = cluster.directory.join("log").to_string_lossy().into_owned();
        cluster.run("pg_ctl", &["-D", &data, "-l", &log, "-o", &options, "-w", "start"])?;
        let process = fs::read_to_string(cluster.data.join("postmaster.pid"))?;
        cluster.process = process.lines().next().unwrap_or_default().trim().parse()?;
        Ok(cluster)
    }

    /// What a client connects to.
    pub fn address(&self) -> String {
        format!("host={} user={USER} dbname=postgres", self.directory.display())
    }

    /// The server's first process.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Where its data and its log are.
    pub fn data(&self) -> &Path {
        &self.data
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<(), Failure> {
        let mut command = Command::new(self.programs.join(program));
        // The server keeps the streams of pg_ctl: a pipe would stay open as long as it runs.
        command.args(arguments).current_dir(&self.directory);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        let status = command.status()?;
        if !status.success() {
            let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            return Err(format!("{program} failed: {status} {log}").into());
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let data = self.data.to_string_lossy().into_owned();
        // Fails where the server never ran, and then there is nothing to stop.
        if let Err(error) = self.run("pg_ctl", &["-D", &data, "-m", "fast", "-w", "stop"])
            && self.process != 0
        {
            eprintln!("PostgreSQL's server {} was not stopped: {error}", self.process);
        }
    }
}

/// The directory of `initdb`: on the path, or the newest of Debian's.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let on_path = std::env::split_paths(&path).map(|directory| directory.join("initdb"));
    let mut debian: Vec<_> = fs::read_dir(DEBIAN_PROGRAMS)
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin/initdb"))
        .collect();
    debian.sort_unstable_by(|left, right| right.cmp(left));
    // A link on the path leads to the directory that has the other programs too.
    let program = on_path.chain(debian).find_map(|program| fs::canonicalize(program).ok())?;
    program.parent().map(Path::to_path_buf)
}

/// Whose process the server is, if not ours: the user and group of `postgres` for root.
fn user_of_server() -> Result<Option<(u32, u32)>, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let is_root = status.lines().any(|line| {
        line.strip_prefix("Uid:").is_some_and(|ids| ids.split_whitespace().next() == Some("0"))
    });
    if !is_root {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let fields = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.first() == Some(&USER))
        .ok_or("PostgreSQL may not run as root, and there is no user postgres")?;
    match fields.as_slice() {
        [_, _, user, group, ..] => Ok(Some((user.parse()?, group.parse()?))),
        _ => Err("/etc/passwd has a line without user and group".into()),
    }
}
