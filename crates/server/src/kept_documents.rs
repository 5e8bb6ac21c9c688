//! A document that a cursor has read and not answered with: it waits for the next batch.
//!
//! 1. A small one is kept in memory, free.
//! 2. A larger one takes its memory from what cursors share.
//! 3. Where that is taken (by cursors whose clients stall, say), it goes to a file. These files
//!    have room of their own, so that idle cursors leave the others to clients that stall inside
//!    an answer ([`crate::stalled_bytes`]).

use bytes::Bytes;
use frond_db::Error;
use frond_db::memory_queue::{MemoryQueue, MemoryShare};
use frond_doc::DocumentBuf;

use crate::limits::FREE_BYTES;
use crate::stalled_bytes::{StalledBytes, StalledFiles};

/// The memory and the files that documents of all cursors share.
#[derive(Clone, Copy)]
pub struct KeptRoom<'a> {
    /// The memory.
    pub memory: &'a MemoryQueue,
    /// The files.
    pub files: &'a StalledFiles,
}

/// See the module.
pub enum KeptDocument {
    /// In memory, with its share if it is large.
    InMemory(DocumentBuf, Option<MemoryShare>),
    /// In a file.
    InFile(StalledBytes),
}

impl KeptRoom<'_> {
    /// Whether a document of so many bytes would stay in memory.
    pub fn has_memory(&self, bytes: usize) -> bool {
        bytes <= FREE_BYTES || self.memory.try_take(bytes).is_some()
    }

    /// Keeps a document.
    ///
    /// # Errors
    /// The document, if there is no room for it anywhere.
    pub fn keep(&self, document: DocumentBuf) -> Result<KeptDocument, DocumentBuf> {
        let bytes = document.as_bytes().len();
        if bytes <= FREE_BYTES {
            return Ok(KeptDocument::InMemory(document, None));
        }
        if let Some(share) = self.memory.try_take(bytes) {
            return Ok(KeptDocument::InMemory(document, Some(share)));
        }
        self.files.put(&[document.as_bytes()]).map(KeptDocument::InFile).ok_or(document)
    }
}

impl KeptDocument {
    /// Returns how many bytes it has.
    pub fn bytes(&self) -> usize {
        match self {
            KeptDocument::InMemory(document, _) => document.as_bytes().len(),
            KeptDocument::InFile(stalled) => stalled.bytes(),
        }
    }

    /// Takes the document; its memory, or its file, is free then.
    ///
    /// # Errors
    /// The file can't be read, or isn't what was written.
    pub fn take(self) -> Result<DocumentBuf, Error> {
        match self {
            KeptDocument::InMemory(document, _) => Ok(document),
            KeptDocument::InFile(stalled) => {
                let failed = |what| format!("a document that a cursor keeps in a file: {what}");
                let bytes = stalled
                    .read(0, stalled.bytes())
                    .map_err(|error| Error::unavailable(failed(error.to_string())))?;
                DocumentBuf::validated_answer(Bytes::from(bytes))
                    .map_err(|error| Error::damaged(failed(error.to_string())))
            }
        }
    }
}
