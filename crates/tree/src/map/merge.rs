//! Merges three ways: `ours` with the changes from `base` to `theirs`.
//!
//! 1. Of the two differences from `base` only theirs is walked. Their changes are taken in batches, and
//!    the keys of a batch are looked up in `ours` together: those leaves are what is rewritten anyway, so
//!    what only we changed is never read.
//! 2. Where ours is what the base had, only they changed it: that is an edit. Where it is what they have,
//!    both agree. Anything else is for the caller to resolve.
//! 3. The edits are applied while they are found: nothing is gathered but a batch.

use std::sync::Arc;
use std::vec;

use bytes::Bytes;
use frond_store::ChunkStore;

use crate::error::TreeError;
use crate::map::{Change, Diff, Edit, MergeConflict, Tree};
use crate::value::Value;

/// Changes that are looked up together.
const BATCH_COUNT: usize = 256;

type Resolve<'a> = dyn FnMut(MergeConflict) -> Result<Option<Edit>, TreeError> + 'a;

impl Tree {
    /// Three-way merge: `ours` with the changes from `base` to `theirs`. `resolve` is asked for
    /// each key that both sides changed differently, and answers with the edit to `ours`, or
    /// `None` to leave it as it is. Returns the new tree. Cost follows what theirs changed.
    ///
    /// # Errors
    /// As the store and `resolve`; [`TreeError::Damaged`].
    pub fn merge(
        store: &Arc<dyn ChunkStore>,
        base: &Tree,
        ours: &Tree,
        theirs: &Tree,
        resolve: &mut dyn FnMut(MergeConflict) -> Result<Option<Edit>, TreeError>,
    ) -> Result<Tree, TreeError> {
        let mut edits = MergeEdits {
            store,
            ours,
            theirs: base.diff(store, theirs),
            looked_up: Vec::new().into_iter(),
            resolve,
        };
        ours.apply(&**store, &mut edits)
    }
}

/// The edits that turn ours into the merged tree.
struct MergeEdits<'a> {
    store: &'a Arc<dyn ChunkStore>,
    ours: &'a Tree,
    theirs: Diff,
    /// Their next changes, each with what ours has.
    looked_up: vec::IntoIter<(Change, Option<Value>)>,
    resolve: &'a mut Resolve<'a>,
}

impl MergeEdits<'_> {
    fn advance(&mut self) -> Result<Option<(Bytes, Edit)>, TreeError> {
        while let Some((theirs, ours)) = self.next_change()? {
            if ours == theirs.from {
                return Ok(Some((theirs.key, edit_to(theirs.to))));
            }
            if ours == theirs.to {
                continue;
            }
            let key = theirs.key.clone();
            let (base, theirs) = (theirs.from, theirs.to);
            let conflict = MergeConflict { key: key.clone(), base, ours, theirs };
            if let Some(edit) = (self.resolve)(conflict)? {
                return Ok(Some((key, edit)));
            }
        }
        Ok(None)
    }

    fn next_change(&mut self) -> Result<Option<(Change, Option<Value>)>, TreeError> {
        if let Some(next) = self.looked_up.next() {
            return Ok(Some(next));
        }
        let changes: Result<Vec<Change>, TreeError> =
            self.theirs.by_ref().take(BATCH_COUNT).collect();
        let changes = changes?;
        let keys: Vec<&[u8]> = changes.iter().map(|change| &change.key[..]).collect();
        let ours = self.ours.get_many(&**self.store, &keys)?;
        self.looked_up = changes.into_iter().zip(ours).collect::<Vec<_>>().into_iter();
        Ok(self.looked_up.next())
    }
}

fn edit_to(value: Option<Value>) -> Edit {
    value.map_or(Edit::Delete, Edit::Put)
}

impl Iterator for MergeEdits<'_> {
    type Item = Result<(Bytes, Edit), TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}
