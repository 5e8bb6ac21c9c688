//! Listening on a socket of the Unix domain: a file, whose permissions decide which users may
//! connect.
//!
//! 1. The socket is bound beside its path, given its permissions, and only then moved there: no
//!    client connects before they hold, and clients find the old socket or the new one.
//! 2. A socket that a server left behind is replaced; one on which a process listens isn't, nor is
//!    any other file.
//! 3. The file is removed when the server stops, unless it is another's by then.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

/// The path to listen on, and the users who may connect.
#[derive(Clone, Debug)]
pub struct UnixSocketOptions {
    /// The file.
    pub path: PathBuf,
    /// Its permissions, as of any file: a user who may write may connect.
    pub permissions: u32,
}

/// A socket that is listened on; its file is removed when it is dropped.
pub struct UnixSocket {
    /// The listener that accepts connections.
    pub listener: UnixListener,
    path: PathBuf,
    /// The identity of the file: its device and number.
    file: (u64, u64),
}

impl UnixSocket {
    /// Listens. To be called within the runtime.
    ///
    /// # Errors
    /// `AddrInUse` where another process listens, `AlreadyExists` where another file is; others of
    /// the system.
    pub fn bind(options: &UnixSocketOptions) -> io::Result<UnixSocket> {
        let path = options.path.clone();
        check_free(&path)?;
        let beside = beside(&path);
        remove_if_there(&beside)?;
        let listener = UnixListener::bind(&beside)?;
        let moved = fs::set_permissions(&beside, Permissions::from_mode(options.permissions))
            .and_then(|()| fs::symlink_metadata(&beside))
            .and_then(|found| fs::rename(&beside, &path).map(|()| (found.dev(), found.ino())));
        match moved {
            Ok(file) => Ok(UnixSocket { listener, path, file }),
            Err(error) => {
                let _ = fs::remove_file(&beside);
                Err(error)
            }
        }
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        let found = fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| (found.dev(), found.ino()) == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The name under which a socket is bound at first.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

/// Refuses a path at which something is, unless it is a socket on which no process listens.
fn check_free(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if !found.file_type().is_socket() => {
            let what = "there is a file that isn't a socket";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens there")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(error),
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
