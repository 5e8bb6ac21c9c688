//! Documents on their way to another repository, which cuts otherwise: their references become
//! such as mean the same there, to pieces that are made of those here ([`Recut`]).
//!
//! New pieces are put many at a time, so all of them are in the store only after
//! [`ReferenceTranslator::flush`]. The caller has a session that keeps it from being collected.

use frond_doc::DocumentBuf;
use frond_doc::pieces::{Recut, has_references};
use frond_engine::Durability;
use frond_store::Layered;

use crate::catalog::adopt;
use crate::database::Database;
use crate::error::Error;
use crate::large::batching_store::BatchingStore;
use crate::large::unreadable;

/// The owner of the pieces that documents refer to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Referring {
    /// Those of the repository that they are stored in.
    Here,
    /// Those of another.
    Elsewhere,
}

/// Makes references such as mean something in the repository that documents go to.
pub(super) struct ReferenceTranslator<'a> {
    target: &'a Database,
    referring: Referring,
    durability: Durability,
    gathered: Layered<BatchingStore<'a>>,
    /// Once a document has references.
    recut: Option<Recut>,
}

impl<'a> ReferenceTranslator<'a> {
    /// Documents go to `target`, which is made if it isn't there.
    pub fn new(
        target: &'a Database,
        referring: Referring,
        durability: Durability,
    ) -> ReferenceTranslator<'a> {
        let gathered = BatchingStore::new(&**target.frond().engine().store());
        ReferenceTranslator { target, referring, durability, gathered, recut: None }
    }

    /// The document as it may be stored there.
    ///
    /// # Errors
    /// `Damaged` if its pieces can't be read; as the store's, which takes chunks.
    pub fn document(&mut self, document: DocumentBuf) -> Result<DocumentBuf, Error> {
        if self.referring == Referring::Here || !has_references(document.view()) {
            return Ok(document);
        }
        let recut = match &mut self.recut {
            Some(recut) => recut,
            None => {
                let branch = self.target.writable_branch()?;
                let format = adopt::ensure_format(self.target, branch, self.durability)?;
                self.recut.insert(Recut::new(format))
            }
        };
        recut.document(&self.gathered, document.view()).map_err(unreadable)
    }

    /// Puts what is left.
    ///
    /// # Errors
    /// As the store's.
    pub fn flush(&self) -> Result<(), Error> {
        Ok(self.gathered.flush()?)
    }
}
