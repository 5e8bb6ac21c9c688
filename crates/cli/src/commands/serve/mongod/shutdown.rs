//! `--shutdown`: ends the server of a data directory, and waits until it has ended.
//!
//! Its process is found by the directory's own socket, which is there where clients don't log in;
//! otherwise by `--pidfilepath`. It is ended by SIGTERM, if it runs this program.

#[cfg(target_os = "linux")]
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use frond_server::announced::socket_of;
use rustix::process::{Pid, Signal, kill_process};

use crate::failure::Failure;

/// A server that takes longer still ends: only no caller waits for it.
const WAIT_MAX: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);

/// Ends the server, and returns what to print.
///
/// # Errors
/// [`Failure::Failed`] if none is found, or it doesn't end.
pub fn run(data: &Path, pid_file: Option<&Path>) -> Result<String, Failure> {
    let found = pid_file.and_then(pid_in).or_else(|| pid_behind(&socket_of(data)?));
    let Some(pid) = found.filter(|pid| is_own(*pid)) else {
        let message = format!(
            "There doesn't seem to be a server running with dbpath: {} (with --auth or TLS it is \
             found by --pidfilepath)",
            data.display()
        );
        return Err(Failure::failed(message));
    };
    let number = pid.as_raw_nonzero();
    kill_process(pid, Signal::TERM)
        .map_err(|error| Failure::failed(format!("process {number}: {error}")))?;
    wait(|| !is_own(pid)).map(|()| format!("killed process with pid: {number}"))
}

fn wait(has_ended: impl Fn() -> bool) -> Result<(), Failure> {
    let end = Instant::now() + WAIT_MAX;
    while !has_ended() {
        if end < Instant::now() {
            return Err(Failure::failed("the server goes on, after two minutes".to_owned()));
        }
        sleep(LOOK);
    }
    Ok(())
}

/// The process that a file names.
fn pid_in(file: &Path) -> Option<Pid> {
    let number = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
    Pid::from_raw(number)
}

/// The process that listens on a socket.
#[cfg(target_os = "linux")]
fn pid_behind(socket: &Path) -> Option<Pid> {
    let stream = UnixStream::connect(socket).ok()?;
    rustix::net::sockopt::socket_peercred(&stream).ok().map(|process| process.pid)
}

/// Elsewhere the system doesn't say.
#[cfg(not(target_os = "linux"))]
fn pid_behind(_: &Path) -> Option<Pid> {
    None
}

/// Whether a process runs this program: another may have got its number, and one that has ended
/// runs none.
fn is_own(pid: Pid) -> bool {
    let program = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let found = program(&pid.as_raw_nonzero().to_string());
    found.is_some() && found == program("self")
}
