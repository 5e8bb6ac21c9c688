//! The socket of a served data directory: other processes of the same user that want the directory
//! find it there, and reach the data through the one that has it.
//!
//! 1. The process that has the directory listens on a socket of the Unix domain, in a directory of
//!    its own that only this user may enter, whose name no other ever had.
//! 2. The file [`SOCKET_FILE`] of the data directory names it, for as long as it is listened on,
//!    and identifies its directory: a copy of the data is distinguished from the original.
//! 3. Files that a killed process leaves are removed by the next that opens the directory.
//!
//! *Invariants*
//! 1. A process that finds a socket reaches this directory's data or nothing: not those of its
//!    original, nor of a later process with the same number, nor what another user has put there.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};

use crate::unix_socket::UnixSocketOptions;

/// The file in a data directory that names the socket. Stored, and read by other versions of us.
pub const SOCKET_FILE: &str = "SOCKET";
/// The file by which a process has the directory: never replaced, and another one in each copy.
const LOCK_FILE: &str = "LOCK";

/// The beginning of the name of a socket's directory; a number follows.
const SCRATCH_PREFIX: &str = "fronddb-";
const SOCKET_NAME: &str = "mongodb.sock";
/// The longest path of a socket, by the system's rule, and what it is called while it is made.
const SOCKET_PATH_BYTES_MAX: usize = 103;
const SOCKET_NAME_AT_FIRST: &str = "mongodb.sock.new";
/// The directory of sockets if the directory for temporary files has too long a name.
const SHORT_DIRECTORY: &str = "/tmp";

/// The permissions: only the user whose process it is may connect.
const SOCKET_PERMISSIONS: u32 = 0o600;
const SCRATCH_PERMISSIONS: u32 = 0o700;
/// The permissions: only that user may say where the socket is, whatever the process lets others do
/// with new files.
const NOTE_PERMISSIONS: u32 = 0o600;
const OTHERS: u32 = 0o077;

/// A socket of a data directory, until it is removed. Dropping it does nothing: a child that was
/// forked has one, too, and it is its parent's.
pub struct Announced {
    scratch: PathBuf,
    note: PathBuf,
    identity: String,
}

impl Announced {
    /// A socket for `data`, which this process has opened: nothing is listened on where its file
    /// says.
    ///
    /// # Errors
    /// If its directory can't be made, or has too long a path.
    pub fn new(data: &Path) -> io::Result<Announced> {
        let identity = identity_of(data)?;
        remove_left_over(data);
        Ok(Announced { scratch: create_scratch()?, note: data.join(SOCKET_FILE), identity })
    }

    /// The socket's path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.scratch.join(SOCKET_NAME)
    }

    /// Returns how to listen on it.
    #[must_use]
    pub fn socket(&self) -> UnixSocketOptions {
        UnixSocketOptions { path: self.path(), permissions: SOCKET_PERMISSIONS }
    }

    /// Announces it to other processes, now that it is listened on.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn announce(&self) -> io::Result<()> {
        let beside = self.note.with_extension("new");
        let mut note = create_note(&beside)?;
        note.write_all(format!("{}\n{}\n", self.path().display(), self.identity).as_bytes())?;
        fs::rename(&beside, &self.note)
    }

    /// Withdraws the announcement: a process that asks for the directory from now on waits until it
    /// is free.
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
    let socket = named_by(data)?;
    UnixStream::connect(&socket).is_ok().then_some(socket)
}

/// The socket that the note of `data` names: `None` if the note is of another directory, and this
/// is its copy, or if the socket isn't its writer's alone.
fn named_by(data: &Path) -> Option<PathBuf> {
    let note = data.join(SOCKET_FILE);
    let written = fs::symlink_metadata(&note).ok().filter(Metadata::is_file)?;
    let text = fs::read_to_string(&note).ok()?;
    let mut lines = text.lines();
    let socket = PathBuf::from(lines.next()?);
    if lines.next()? != identity_of(data).ok()? {
        return None;
    }
    let scratch = fs::symlink_metadata(socket.parent()?).ok().filter(Metadata::is_dir)?;
    (scratch.uid() == written.uid() && scratch.mode() & OTHERS == 0).then_some(socket)
}

/// Makes a file that no other user may write, in the place of one that a killed process left.
fn create_note(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => OpenOptions::new().write(true).create_new(true).mode(NOTE_PERMISSIONS).open(path),
    }
}

/// Returns an identity of `data` that its copies don't share.
fn identity_of(data: &Path) -> io::Result<String> {
    let lock = fs::metadata(data.join(LOCK_FILE))?;
    Ok(format!("{}:{}", lock.dev(), lock.ino()))
}

/// Removes the socket of a process that was killed, and its directory. For the process that has
/// `data`.
pub fn remove_left_over(data: &Path) {
    if let Some(scratch) = named_by(data).as_deref().and_then(Path::parent) {
        let name = scratch.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(SCRATCH_PREFIX) {
            remove_scratch(scratch);
        }
    }
    let _ = fs::remove_file(data.join(SOCKET_FILE));
}

/// Makes a directory with a name that none had before.
fn create_scratch() -> io::Result<PathBuf> {
    let mut random = [0; 8];
    SystemRandom::new().fill(&mut random).map_err(|_| io::Error::other("no randomness"))?;
    let name = format!("{SCRATCH_PREFIX}{:016x}", u64::from_le_bytes(random));
    let made = scratch_in(&std::env::temp_dir(), &name);
    made.or_else(|_| scratch_in(Path::new(SHORT_DIRECTORY), &name))
}

fn scratch_in(directory: &Path, name: &str) -> io::Result<PathBuf> {
    let scratch = std::path::absolute(directory)?.join(name);
    if SOCKET_PATH_BYTES_MAX < scratch.join(SOCKET_NAME_AT_FIRST).as_os_str().len() {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    DirBuilder::new().mode(SCRATCH_PERMISSIONS).create(&scratch)?;
    Ok(scratch)
}

fn remove_scratch(scratch: &Path) {
    let _ = fs::remove_file(scratch.join(SOCKET_NAME));
    let _ = fs::remove_dir(scratch);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A directory that goes when the test ends.
    struct TempDir(PathBuf);

    impl TempDir {
        fn new() -> TempDir {
            TempDir(create_scratch().expect("a directory"))
        }

        fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for TempDir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// A directory that a process has, and its socket, on which it listens.
    fn announced(data: &Path) -> (Announced, UnixListener) {
        fs::create_dir_all(data).expect("made");
        fs::write(data.join(LOCK_FILE), "").expect("written");
        let announced = Announced::new(data).expect("a socket");
        let listener = UnixListener::bind(announced.path()).expect("bound");
        announced.announce().expect("written");
        (announced, listener)
    }

    #[test]
    fn a_copy_of_the_data_leads_to_no_socket_and_removes_none() {
        let temp = TempDir::new();
        let (data, copy) = (temp.path().join("data"), temp.path().join("copy"));
        let (original, _listener) = announced(&data);
        assert_eq!(socket_of(&data), Some(original.path()));
        fs::create_dir(&copy).expect("made");
        for name in [LOCK_FILE, SOCKET_FILE] {
            fs::copy(data.join(name), copy.join(name)).expect("copied");
        }
        assert_eq!(socket_of(&copy), None);
        let of_copy = Announced::new(&copy).expect("a socket");
        assert_eq!(socket_of(&data), Some(original.path()));
        of_copy.remove();
        original.remove();
        assert_eq!(socket_of(&data), None);
    }

    #[test]
    fn no_other_user_reads_or_writes_where_the_socket_is() {
        let temp = TempDir::new();
        // Files that a killed process left are removed.
        fs::write(temp.path().join("SOCKET.new"), "").expect("written");
        let (announced, _listener) = announced(temp.path());
        let note = fs::metadata(temp.path().join(SOCKET_FILE)).expect("it is there");
        assert_eq!(note.mode() & 0o777, NOTE_PERMISSIONS);
        assert_eq!(socket_of(temp.path()), Some(announced.path()));
        announced.remove();
    }

    #[test]
    fn a_socket_that_others_may_reach_is_none() {
        let temp = TempDir::new();
        let (announced, _listener) = announced(temp.path());
        let permissions = fs::Permissions::from_mode(0o711);
        fs::set_permissions(&announced.scratch, permissions).expect("set");
        assert_eq!(socket_of(temp.path()), None);
        announced.remove();
    }

    #[test]
    fn leftovers_of_a_killed_process_are_removed() {
        let temp = TempDir::new();
        let (killed, listener) = announced(temp.path());
        drop(listener);
        assert_eq!(socket_of(temp.path()), None);
        let next = Announced::new(temp.path()).expect("a socket");
        assert_ne!(killed.path(), next.path());
        assert!(!killed.scratch.exists());
        next.remove();
    }

    #[test]
    fn a_directory_with_too_long_a_path_has_no_socket() {
        let temp = TempDir::new();
        let long = temp.path().join("x".repeat(SOCKET_PATH_BYTES_MAX));
        fs::create_dir(&long).expect("made");
        assert!(scratch_in(&long, "fronddb-1").is_err());
        assert!(scratch_in(temp.path(), "fronddb-1").is_ok());
    }
}
