//! Servers that we start on loopback, on a directory of ours, and stop again.
//!
//! A program is found by `--peer-bin NAME=PATH`, on the path, or where Debian keeps it. Each server
//! has its data and its log in the target's directory, and its configuration is what its module
//! here writes on the command line; nothing else is read. All are reached by TCP: a Unix socket
//! would spare its server, not the others, a good part of a small operation.

use std::fs::{self, File};
use std::io::{self, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::target::Failure;
use crate::targets::Places;

#[cfg(feature = "mysql")]
pub mod dolt;
pub mod ferretdb;
pub mod frond;
#[cfg(feature = "mysql")]
pub mod mariadb;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod relay;

const START_PATIENCE: Duration = Duration::from_secs(60);
const STOP_PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
const LOG_BYTES_SHOWN: usize = 600;

/// A server that runs. Dropping it stops it.
pub struct Server {
    child: Child,
    log: PathBuf,
    name: String,
    /// Those that it works with, stopped after it.
    companions: Vec<Server>,
}

impl Server {
    /// Starts `command` with its output in a log in `directory`.
    pub fn start(name: &str, mut command: Command, directory: &Path) -> Result<Server, Failure> {
        let log = directory.join(format!("{name}.log"));
        let output = File::create(&log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command
            .spawn()
            .map_err(|error| Failure::Other(format!("{name} could not be started: {error}")))?;
        Ok(Server { child, log, name: name.into(), companions: Vec::new() })
    }

    /// Waits until `try_connect` succeeds.
    pub fn ready<T>(
        &mut self,
        mut try_connect: impl FnMut() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let deadline = Instant::now() + START_PATIENCE;
        loop {
            let failure = match try_connect() {
                Ok(connected) => return Ok(connected),
                Err(failure) => failure,
            };
            let ended = self.child.try_wait()?;
            if ended.is_some() || Instant::now() > deadline {
                let ended = ended.map_or("doesn't answer".into(), |status| status.to_string());
                let log = self.log_end();
                return Err(Failure::Other(format!("{}: {ended}; {failure}; {log}", self.name)));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Has `companion` run as long as this one does.
    pub fn with(mut self, companion: Server) -> Server {
        self.companions.push(companion);
        self
    }

    /// Its process, and those of its companions.
    pub fn processes(&self) -> Vec<u32> {
        let companions = self.companions.iter().flat_map(Server::processes);
        [self.child.id()].into_iter().chain(companions).collect()
    }

    fn log_end(&self) -> String {
        let mut text = String::new();
        let read = File::open(&self.log).and_then(|mut file| file.read_to_string(&mut text));
        if read.is_err() {
            return "no log".into();
        }
        let begin = text.len().saturating_sub(LOG_BYTES_SHOWN);
        let begin = (begin..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text[begin..].trim().replace('\n', " | ")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let process = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(process) = process {
            // It may have ended by itself; then there is nothing to stop.
            let _ = kill_process(process, Signal::TERM);
        }
        let deadline = Instant::now() + STOP_PATIENCE;
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(POLL),
                _ => return,
            }
        }
        eprintln!("{} doesn't stop, and is killed", self.name);
        // Nothing more can be done if that fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port of loopback that no process listens on now.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The program called `program`, for the target called `target`.
///
/// # Errors
/// [`Failure::Missing`] if servers may not be started, or it isn't installed.
pub fn find_program(places: &Places, target: &str, program: &str) -> Result<PathBuf, Failure> {
    if !places.managed {
        let text = format!("a server: start it by --managed, or give --uri {target}=...");
        return Err(Failure::Missing(text));
    }
    let given = places.programs.get(target).or_else(|| places.programs.get(program));
    if let Some(path) = given {
        return match path.is_file() {
            true => Ok(path.clone()),
            false => Err(Failure::Missing(format!("{} is not there", path.display()))),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    // What was built beside us is what belongs to us.
    if let Ok(own) = std::env::current_exe() {
        directories.insert(0, own.parent().map(Path::to_path_buf).unwrap_or_default());
    }
    directories.push("/usr/sbin".into());
    let mut versions: Vec<_> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    versions.sort_unstable_by(|left, right| right.cmp(left));
    directories.extend(versions);
    let found = directories.iter().map(|directory| directory.join(program));
    found.filter(|path| path.is_file()).find_map(|path| fs::canonicalize(path).ok()).ok_or_else(
        || {
            Failure::Missing(format!(
                "{program} is not installed (or give --peer-bin {target}=...)"
            ))
        },
    )
}

/// Runs a program to its end.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub fn run_to_end(mut command: Command) -> Result<(), Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::Other(format!("{name} could not be started: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text += &String::from_utf8_lossy(&output.stderr);
    Err(Failure::Other(format!("{name}: {}: {}", output.status, text.trim().replace('\n', " | "))))
}

/// Whether this process is root's.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
