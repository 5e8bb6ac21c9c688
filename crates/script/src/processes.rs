//! The processes that run scripts, seen from outside.
//!
//! 1. [`run_in`] sets their program. A [`Worker`] is one, for one request; it is kept for another
//!    once its engine is forgotten.
//! 2. While calls run, their request asks every [`CHECK_EVERY`] whether to go on. Is it to stop,
//!    the process is killed, whatever it does.
//! 3. A process that ends by itself, or answers what is no answer, costs its calls an error, unless
//!    it was kept from another request: it may have ended before. Another runs the calls then.
//!
//! *Thread safety*: any thread may ask; no lock is held while a call runs.

use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use frond_doc::DocumentBuf;

use crate::socket::receive;
use crate::{Limits, ScriptError};

/// The word that makes the program run scripts: [`crate::worker::run`].
pub const COMMAND: &str = "script-worker";

/// The interval at which a request asks whether to go on while a script runs.
const CHECK_EVERY: Duration = Duration::from_millis(5);
/// Idle processes that are kept.
const IDLE_COUNT_MAX: usize = 4;
/// A result, the shorter ones before it, and what is around them.
const ANSWER_BYTES_MAX: usize = Limits::LARGEST.result_bytes + (256 << 10);

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Scripts that begin from now on run in processes of this program.
pub fn run_in(program: PathBuf) {
    // The first program that is set stays.
    let _ = PROGRAM.set(program);
}

/// The program of processes that run scripts.
pub(crate) fn program() -> Option<&'static Path> {
    PROGRAM.get().map(PathBuf::as_path)
}

/// Those that no request has.
static IDLE: Mutex<Vec<Worker>> = Mutex::new(Vec::new());

fn idle() -> MutexGuard<'static, Vec<Worker>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process that runs scripts. It is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    socket: UnixStream,
    child: Child,
    /// Whether it was kept from another request and has answered none of this one's calls yet.
    is_kept: bool,
}

impl Worker {
    /// One that is idle, or a new one.
    ///
    /// # Errors
    /// [`ScriptError::Ended`] if none can be begun.
    pub(crate) fn take(program: &Path) -> Result<Worker, ScriptError> {
        loop {
            let kept = idle().pop();
            let Some(mut kept) = kept else {
                return Worker::begin(program).map_err(|_| ScriptError::Ended);
            };
            if matches!(kept.child.try_wait(), Ok(None)) {
                kept.is_kept = true;
                return Ok(kept);
            }
        }
    }

    fn begin(program: &Path) -> io::Result<Worker> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_read_timeout(Some(CHECK_EVERY))?;
        socket.set_write_timeout(Some(CHECK_EVERY))?;
        let mut command = Command::new(program);
        command.arg(COMMAND).env_clear().current_dir("/");
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Worker { socket, child: command.spawn()?, is_kept: false })
    }

    /// Keeps it for another request.
    pub(crate) fn give_back(mut self) {
        let forget = DocumentBuf::empty();
        if self.socket.write_all(forget.as_bytes()).is_err() {
            return;
        }
        let mut idle = idle();
        if idle.len() < IDLE_COUNT_MAX {
            idle.push(self);
        }
    }

    /// Sends a message and returns the answer. After an error the worker must be dropped.
    ///
    /// # Errors
    /// [`ScriptError::Interrupted`] when `go_on` says no; [`ScriptError::Ended`].
    pub(crate) fn call(
        &mut self,
        message: &DocumentBuf,
        go_on: &impl Fn() -> bool,
    ) -> Result<DocumentBuf, ScriptError> {
        let answer = self.exchange(message, go_on);
        match (answer, program()) {
            // A script changes nothing: it can run twice.
            (Err(ScriptError::Ended), Some(program)) if self.is_kept => {
                *self = Worker::begin(program).map_err(|_| ScriptError::Ended)?;
                self.exchange(message, go_on)
            }
            (answer, _) => {
                self.is_kept = false;
                answer
            }
        }
    }

    fn exchange(
        &mut self,
        message: &DocumentBuf,
        go_on: &impl Fn() -> bool,
    ) -> Result<DocumentBuf, ScriptError> {
        let mut rest = message.as_bytes();
        while !rest.is_empty() {
            let written = (&self.socket).write(rest);
            rest = &rest[passed(written, go_on)?..];
        }
        let bytes = receive(&self.socket, ANSWER_BYTES_MAX, |step| passed(step, go_on))?;
        DocumentBuf::validated_answer(bytes.into()).map_err(|_| ScriptError::Ended)
    }
}

/// Returns how many bytes passed; none where it took longer than [`CHECK_EVERY`] and may go on.
pub(crate) fn passed(
    result: io::Result<usize>,
    go_on: &impl Fn() -> bool,
) -> Result<usize, ScriptError> {
    match result {
        Ok(count) => Ok(count),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted if go_on() => {
                Ok(0)
            }
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                Err(ScriptError::Interrupted)
            }
            _ => Err(ScriptError::Ended),
        },
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
