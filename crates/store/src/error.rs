//! Errors of the chunk store.

use rustix::io::Errno;

use crate::hash::ChunkHash;

/// An error of the chunk store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No chunk of this name is stored.
    #[error("chunk {0} is not stored")]
    Missing(ChunkHash),
    /// Stored bytes are not what was written.
    #[error("{file}: damaged at offset {offset}: {what}")]
    Damaged {
        /// The file's name inside the data directory.
        file: String,
        /// The offset in the file.
        offset: u64,
        /// Expected and found.
        what: String,
    },
    /// The file was written by a version of Frond that this one can't read.
    #[error("{file}: format version {found}, but this build reads version {readable} only")]
    Version {
        /// The file's name inside the data directory.
        file: String,
        /// The version found.
        found: u16,
        /// The version that this build reads.
        readable: u16,
    },
    /// A root was changed by another caller.
    #[error("root {name} is {found:?}, expected {expected:?}")]
    RootChanged {
        /// The root's name.
        name: String,
        /// The root that the caller expected.
        expected: Option<ChunkHash>,
        /// The present root.
        found: Option<ChunkHash>,
    },
    /// Something failed before, a sync or the lead of a depot: what is stored is unknown until the
    /// directory is opened again.
    #[error("closed, open the data directory again: {reason}")]
    Poisoned {
        /// The failure.
        reason: String,
    },
    /// Another process, or another part of this one, has the data directory open.
    #[error("LOCK: the data directory is in use")]
    InUse,
    /// The disk answered with an error.
    #[error("{file}: {source}")]
    Io {
        /// The file's name inside the data directory.
        file: String,
        /// The error of the disk.
        source: std::io::Error,
    },
}

impl StoreError {
    /// Wraps what the disk said about `file`.
    pub fn io(file: impl Into<String>, source: std::io::Error) -> StoreError {
        StoreError::Io { file: file.into(), source }
    }

    /// Whether the disk is full, or the process may open no more files, so that none is made: the
    /// only failures of a write that leave everything as it was.
    pub fn is_full(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        let StoreError::Io { source, .. } = self else { return false };
        let is_code = |code: Errno| source.raw_os_error() == Some(code.raw_os_error());
        let no_more_files = is_code(Errno::MFILE) || is_code(Errno::NFILE);
        no_more_files || matches!(source.kind(), StorageFull | QuotaExceeded)
    }

    /// Whether the file is one that is never changed, as a pack in a bucket.
    pub(crate) fn is_immutable(&self) -> bool {
        let StoreError::Io { source, .. } = self else { return false };
        source.kind() == std::io::ErrorKind::Unsupported
    }

    /// Makes the error of a [`Disk`](crate::Disk) that was to be locked.
    pub(crate) fn of_lock(error: std::io::Error) -> StoreError {
        match error.kind() {
            std::io::ErrorKind::WouldBlock => StoreError::InUse,
            _ => StoreError::io("LOCK", error),
        }
    }

    /// Says that `file` is damaged at `offset`.
    pub fn damaged(file: &str, offset: u64, what: &str) -> StoreError {
        StoreError::Damaged { file: file.to_owned(), offset, what: what.to_owned() }
    }
}
