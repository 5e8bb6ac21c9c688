//! `--fork`: the server goes on in a process of its own, once clients are served.
//!
//! 1. The program is started again, without `--fork`, in a process group of its own, which signals
//!    of the terminal don't reach.
//! 2. It reports on a socket when it is ready, as it reports to systemd (`NOTIFY_SOCKET`).
//! 3. Then this process ends, with mongod's words; if the other ends before, with its words.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::commands::serve::process::own_program;
use crate::failure::Failure;

/// The interval at which it checks whether the other process is still there.
const LOOK: Duration = Duration::from_millis(50);
const NOTIFY: &str = "NOTIFY_SOCKET";
const READY: &str = "READY=1";

/// Starts a server by these words, `mongod` first, and returns what to print.
///
/// # Errors
/// [`Failure::Failed`] if it doesn't come to serve clients, with what it said.
pub fn run(words: &[OsString]) -> Result<String, Failure> {
    let failed = |error: io::Error| Failure::failed(format!("--fork: {error}"));
    let directory = tempfile::tempdir().map_err(failed)?;
    let (socket, mut child) = start(words, &directory.path().join("notify")).map_err(failed)?;
    while !is_ready(&socket).map_err(failed)? {
        if let Some(status) = child.try_wait().map_err(failed)? {
            let errors = error_output(&mut child);
            let code = status.code().map_or_else(|| status.to_string(), |code| code.to_string());
            let message =
                format!("child process failed, exited with {code}\n{}", errors.trim_end());
            return Err(Failure::failed(message));
        }
    }
    Ok(format!(
        "about to fork child process, waiting until server is ready for connections.\nforked \
         process: {}\nchild process started successfully, parent exiting",
        child.id()
    ))
}

/// Starts the other process, which reports on the socket at `notify`.
fn start(words: &[OsString], notify: &Path) -> io::Result<(UnixDatagram, Child)> {
    let socket = UnixDatagram::bind(notify)?;
    socket.set_read_timeout(Some(LOOK))?;
    let program = own_program().ok_or(io::ErrorKind::NotFound)?;
    let child = Command::new(program)
        .args(words)
        .env(NOTIFY, notify)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    Ok((socket, child))
}

/// Whether the other process has reported that it is ready; waits a moment.
fn is_ready(socket: &UnixDatagram) -> io::Result<bool> {
    let mut bytes = [0; 1_024];
    match socket.recv(&mut bytes) {
        Ok(count) => {
            let output = String::from_utf8_lossy(&bytes[..count]);
            Ok(output.lines().any(|line| line == READY))
        }
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => {
                Ok(false)
            }
            _ => Err(error),
        },
    }
}

fn error_output(child: &mut Child) -> String {
    let mut errors = Vec::new();
    if let Some(mut stream) = child.stderr.take() {
        // What couldn't be read is missing in a message about something else.
        let _ = stream.read_to_end(&mut errors);
    }
    String::from_utf8_lossy(&errors).into_owned()
}
