//! The places that a running server fetches from and pushes to.
//!
//! How a place is reached (HTTP, a bucket) is not this crate's concern: the program that starts the
//! server hands in a function that opens one. Directories are refused whatever that function can
//! do: a client must not choose what the server's process reads and writes on its disk.
//!
//! *A transfer that runs* is a command like any other: `currentOp` shows how far it is, `killOp`
//! and `maxTimeMS` stop it between two requests. Chunks that came before stay, and the next
//! transfer goes on from there.

use std::fmt;
use std::sync::Arc;

use frond_db::{Error, Interrupt};
use frond_query::Code;
use frond_vcs::remote::{Moved, Remote, WatchedRemote};

use crate::operations::{Operation, Progress};

/// Opens the repository at a place (its URL, the database's name where the URL says none, a token
/// that the client gave).
pub type OpenRemote =
    dyn Fn(&str, &str, Option<&str>) -> Result<Box<dyn Remote>, Error> + Send + Sync;

/// Opens remotes; reaches none if there is no opener.
#[derive(Clone, Default)]
pub struct RemoteOpener(Option<Arc<OpenRemote>>);

impl fmt::Debug for RemoteOpener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = if self.0.is_some() { "RemoteOpener(..)" } else { "RemoteOpener(none)" };
        formatter.write_str(known)
    }
}

impl RemoteOpener {
    /// Places that `open` opens.
    pub fn new(
        open: impl Fn(&str, &str, Option<&str>) -> Result<Box<dyn Remote>, Error>
        + Send
        + Sync
        + 'static,
    ) -> RemoteOpener {
        RemoteOpener(Some(Arc::new(open)))
    }

    /// Opens the repository at `url` for `operation`, which may be interrupted.
    ///
    /// # Errors
    /// `BadValue` if it is a directory; `CommandNotSupported` where no place is reached; as the
    /// place says.
    pub fn open(
        &self,
        url: &str,
        database: &str,
        token: Option<&str>,
        operation: &Arc<Operation>,
    ) -> Result<WatchedRemote, Error> {
        check(url)?;
        let Some(open) = &self.0 else {
            let message = "this process can't reach other places: frond serve can";
            return Err(Error::invalid(Code::CommandNotSupported, message));
        };
        let remote = open(url, database, token)?;
        let operation = operation.clone();
        Ok(WatchedRemote::new(remote, Interrupt::new(move || operation.check())))
    }
}

/// Refuses a place that a server doesn't go to.
///
/// # Errors
/// `BadValue`.
pub fn check(url: &str) -> Result<(), Error> {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    if matches!(scheme, Some("http" | "https" | "s3" | "az" | "gs")) {
        return Ok(());
    }
    let message = "a running server connects to http://, https://, s3://, az:// and gs:// only, not \
                   to directories: use the command line on a data directory that no server is using \
                   (frond fetch, pull, push)";
    Err(Error::invalid(Code::BadValue, message))
}

/// Notes how much has moved, for `currentOp`.
pub fn show(operation: &Operation, moved: &Moved) {
    let (done, total) = (moved.looked_at(), moved.found);
    let message = format!(
        "{} of {} commits, {done} of {total} chunks, {} bytes",
        moved.commits_done, moved.commits, moved.bytes
    );
    operation.show(Progress { message, done, total, moved: Some(*moved) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_refused() {
        for url in ["http://h/x", "https://h:1/x", "s3://b/p", "az://b/p", "gs://b/p"] {
            assert!(check(url).is_ok(), "{url}");
        }
        for url in ["/data", "data#shop", "file:///data", "", "http:/x"] {
            assert!(check(url).is_err(), "{url}");
        }
    }
}
