//! The answer of a `find` or `aggregate`.

use frond_doc::DocumentBuf;

use crate::error::Error;

/// The documents of a `find` or `aggregate`, at the snapshot when it began. Owns what it needs and
/// can be kept between batches and moved between threads. Ends after an error.
pub struct Cursor {
    documents: Option<Box<dyn Iterator<Item = Result<DocumentBuf, Error>> + Send>>,
    /// Given before them.
    first: Option<DocumentBuf>,
}

impl Cursor {
    /// A cursor over what `documents` gives.
    pub(crate) fn new(
        documents: impl Iterator<Item = Result<DocumentBuf, Error>> + Send + 'static,
    ) -> Cursor {
        Cursor { documents: Some(Box::new(documents)), first: None }
    }

    /// A cursor over one document.
    pub(crate) fn one(document: DocumentBuf) -> Cursor {
        Cursor { documents: None, first: Some(document) }
    }

    /// A cursor over nothing.
    pub(crate) fn empty() -> Cursor {
        Cursor { documents: None, first: None }
    }
}

impl Iterator for Cursor {
    type Item = Result<DocumentBuf, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        let next = self.documents.as_mut()?.next();
        // A cursor at its end releases its snapshot at once.
        if !matches!(next, Some(Ok(_))) {
            self.documents = None;
        }
        next
    }
}
