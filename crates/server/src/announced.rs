//! Where a data directory is served: other processes of the same user that want the directory find
//! a socket there, and reach the data through the one that has it.
//!
//! 1. The process that has the directory listens on a socket of the Unix domain, in a directory of
//!    its own that only this user may enter. No other server ever listens there: who finds a socket
//!    reaches this directory's data or nothing.
//! 2. The file [`SOCKET_FILE`] of the data directory names it, for as long as it is listened on.
//! 3. What a killed process leaves of both is removed by the next that opens the directory.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::unix_socket::UnixSocketOptions;

/// The file in a data directory that names the socket. Stored, and read by other versions of us.
pub const SOCKET_FILE: &str = "SOCKET";

/// What the directory of a socket is called, before its numbers. Paths of sockets are short by the
/// system's rule (107 bytes), those of data directories aren't.
const SCRATCH_PREFIX: &str = "fronddb-";
const SOCKET_NAME: &str = "mongodb.sock";

/// Only the user whose process it is may connect.
const SOCKET_PERMISSIONS: u32 = 0o600;
const SCRATCH_PERMISSIONS: u32 = 0o700;

/// A socket of a data directory, until it is removed. Dropping it does nothing: a child that was
/// forked has one, too, and it is its parent's.
pub struct Announced {
    scratch: PathBuf,
    note: PathBuf,
}

impl Announced {
    /// A socket for `data`, which this process has opened: nothing is listened on where its file
    /// says.
    ///
    /// # Errors
    /// If its directory can't be made.
    pub fn new(data: &Path) -> io::Result<Announced> {
        let note = data.join(SOCKET_FILE);
        remove_left_over(&note);
        Ok(Announced { scratch: create_scratch()?, note })
    }

    /// The socket's path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.scratch.join(SOCKET_NAME)
    }

    /// How to listen on it.
    #[must_use]
    pub fn socket(&self) -> UnixSocketOptions {
        UnixSocketOptions { path: self.path(), permissions: SOCKET_PERMISSIONS }
    }

    /// Tells others of it, now that it is listened on.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn announce(&self) -> io::Result<()> {
        let beside = self.note.with_extension("new");
        fs::write(&beside, format!("{}\n", self.path().display()))?;
        fs::rename(&beside, &self.note)
    }

    /// Tells no others any more: who wants the directory from now on waits until it is free.
    pub fn withdraw(&self) {
        let _ = fs::remove_file(&self.note);
    }

    /// Removes it, once it isn't listened on any more.
    pub fn remove(&self) {
        self.withdraw();
        remove_scratch(&self.scratch);
    }
}

/// The socket of the process that has `data`, if it listens.
#[must_use]
pub fn socket_of(data: &Path) -> Option<PathBuf> {
    let socket = named_by(&data.join(SOCKET_FILE))?;
    UnixStream::connect(&socket).is_ok().then_some(socket)
}

fn named_by(note: &Path) -> Option<PathBuf> {
    Some(PathBuf::from(fs::read_to_string(note).ok()?.trim_end()))
}

/// Removes the socket of a process that was killed, and its directory.
fn remove_left_over(note: &Path) {
    let Some(socket) = named_by(note) else { return };
    let Some(scratch) = socket.parent() else { return };
    let name = scratch.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with(SCRATCH_PREFIX) {
        remove_scratch(scratch);
    }
    let _ = fs::remove_file(note);
}

/// Makes a directory that wasn't there before.
fn create_scratch() -> io::Result<PathBuf> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{SCRATCH_PREFIX}{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        match DirBuilder::new().mode(SCRATCH_PERMISSIONS).create(&path) {
            Ok(()) => return Ok(path),
            // Of an earlier process with this number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn remove_scratch(scratch: &Path) {
    let _ = fs::remove_file(scratch.join(SOCKET_NAME));
    let _ = fs::remove_dir(scratch);
}
