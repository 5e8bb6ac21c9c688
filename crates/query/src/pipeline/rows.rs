//! Documents on their way into a pipeline, lent one by one.
//!
//! A stage that only looks at documents (a filter, a group, a count) needs none of its own: copying
//! or even sharing one costs more than looking at a field of it. So a source that can lend its
//! documents is asked to show them one after the other ([`Rows::visit`]); stages that stand first
//! and only look pass them on, or keep what they want of them. The first stage that needs its own
//! documents gets an iterator.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf};

use super::Documents;
use crate::cores::{Cores, Workers};
use crate::error::QueryError;
use crate::large::{Large, NeededPaths};

/// Is shown a document; answers whether to go on.
pub type Visit<'v> = dyn FnMut(Document<'_>) -> Result<bool, QueryError> + 'v;

/// Documents that can be lent.
pub trait Rows: Send {
    /// Shows the documents that are left, until `visit` answers false or fails.
    ///
    /// # Errors
    /// The error of reading, and what `visit` fails with; nothing follows an error.
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), QueryError>;

    /// The next document, to be kept.
    ///
    /// # Errors
    /// The error of reading.
    fn next(&mut self) -> Result<Option<DocumentBuf>, QueryError>;

    /// Returns the number of documents left, if it is known without reading them; where there are
    /// more than `enough`, any number from there on. None comes afterwards.
    ///
    /// # Errors
    /// An error of counting.
    fn remaining(&mut self, _enough: u64) -> Result<Option<u64>, QueryError> {
        Ok(None)
    }

    /// All documents in parts that follow one another, if reading hasn't begun, they can be read
    /// apart and it is worth it: each is worked on at its place among `workers`, which it asks
    /// whether to go on. These rows stay as they are.
    ///
    /// # Errors
    /// An error of cutting.
    fn parts(&self, _workers: &Arc<Workers>) -> Result<Option<Parts<'_>>, QueryError> {
        Ok(None)
    }

    /// All documents in pieces, if reading hasn't begun, they can be read apart and it is worth it
    /// on `cores`. Then these rows are left alone.
    ///
    /// # Errors
    /// An error of cutting.
    fn pieces(&mut self, _cores: &Cores) -> Result<Option<Box<dyn Pieces>>, QueryError> {
        Ok(None)
    }
}

/// Documents in pieces that follow one another. Each can be read as often as one likes.
pub trait Pieces: Send {
    /// Returns how many there are: at least one.
    fn count(&self) -> usize;

    /// Checks that they may still be read.
    ///
    /// # Errors
    /// What they are read from is gone.
    fn check(&mut self) -> Result<(), QueryError>;

    /// The piece at `position`. Where a worker reads it, it stands at its place among them.
    fn rows(&self, position: usize, worker: Option<(&Arc<Workers>, usize)>) -> Box<dyn Rows>;
}

/// Rows in parts that follow one another.
pub type Parts<'p> = Vec<Box<dyn Rows + 'p>>;

/// The input of a stage.
pub enum Input<'a> {
    /// Documents of their own.
    Documents(Documents<'a>),
    /// Documents that are lent.
    Rows(Box<dyn Rows + 'a>),
}

impl<'a> Input<'a> {
    /// Shows each document.
    pub(super) fn visit(self, visit: &mut Visit<'_>) -> Result<(), QueryError> {
        match self {
            Input::Documents(documents) => {
                for document in documents {
                    if !visit(document?.view())? {
                        break;
                    }
                }
                Ok(())
            }
            Input::Rows(mut rows) => rows.visit(visit),
        }
    }

    /// The documents with what is asked for: values that are references are opened.
    pub(super) fn with(self, needed: NeededPaths, large: &Large) -> Input<'a> {
        if !large.may_have_references() {
            return self;
        }
        let large = large.clone();
        match self {
            Input::Documents(documents) => Input::Documents(Box::new(
                documents.map(move |document| large.open_document(&needed, document?)),
            )),
            Input::Rows(rows) => Input::Rows(Box::new(Opened { rows, needed, large })),
        }
    }

    /// The documents, each its own.
    pub fn into_documents(self) -> Documents<'a> {
        match self {
            Input::Documents(documents) => documents,
            Input::Rows(mut rows) => Box::new(std::iter::from_fn(move || rows.next().transpose())),
        }
    }
}

impl<'a> From<Documents<'a>> for Input<'a> {
    fn from(documents: Documents<'a>) -> Input<'a> {
        Input::Documents(documents)
    }
}

/// Rows with what is asked for.
struct Opened<'a> {
    rows: Box<dyn Rows + 'a>,
    needed: NeededPaths,
    large: Large,
}

impl Rows for Opened<'_> {
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), QueryError> {
        let (needed, large) = (&self.needed, &self.large);
        self.rows.visit(&mut |document| match large.opened(needed, document)? {
            Some(opened) => visit(opened.view()),
            None => visit(document),
        })
    }

    fn next(&mut self) -> Result<Option<DocumentBuf>, QueryError> {
        let document = self.rows.next()?;
        document.map(|document| self.large.open_document(&self.needed, document)).transpose()
    }

    fn remaining(&mut self, enough: u64) -> Result<Option<u64>, QueryError> {
        self.rows.remaining(enough)
    }
}

/// A run of a stage that makes at most one document of each.
pub(super) trait Pass: Send {
    /// Shows `visit` what `document` becomes.
    fn pass(&self, document: Document<'_>, visit: &mut Visit<'_>) -> Result<bool, QueryError>;

    /// Returns the next document that is made of `rows`, to be kept.
    fn next(&self, rows: &mut dyn Rows) -> Result<Option<DocumentBuf>, QueryError>;
}

/// Rows that pass a stage.
pub(super) struct Passed<'a, P> {
    pub(super) rows: Box<dyn Rows + 'a>,
    pub(super) stage: P,
}

impl<P: Pass> Rows for Passed<'_, P> {
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<(), QueryError> {
        let stage = &self.stage;
        self.rows.visit(&mut |document| stage.pass(document, visit))
    }

    fn next(&mut self) -> Result<Option<DocumentBuf>, QueryError> {
        self.stage.next(&mut *self.rows)
    }
}
