//! One end of the windows as they move along a partition that is read from a [`Spool`].

use std::sync::Arc;

use frond_doc::DocumentBuf;

use crate::error::QueryError;
use crate::pipeline::spool::{Spool, SpoolReader};

/// Stands before a document, and only goes on.
pub(super) struct Edge {
    reader: SpoolReader,
    next: Option<DocumentBuf>,
    /// The position of the document that it stands before.
    position: usize,
    has_begun: bool,
}

impl Edge {
    /// Stands before the first document.
    pub(super) fn new(spool: &Arc<Spool>) -> Edge {
        Edge { reader: spool.read(), next: None, position: 0, has_begun: false }
    }

    /// Returns how many documents it has passed.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// The document that it stands before; `None` at the end.
    pub(super) fn peek(&mut self) -> Result<Option<&DocumentBuf>, QueryError> {
        if !self.has_begun {
            self.has_begun = true;
            self.next = self.reader.next_document()?;
        }
        Ok(self.next.as_ref())
    }

    /// Passes the document that it stands before.
    pub(super) fn pass(&mut self) -> Result<(), QueryError> {
        if self.peek()?.is_some() {
            self.position += 1;
            self.next = self.reader.next_document()?;
        }
        Ok(())
    }
}
