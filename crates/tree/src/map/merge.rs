//! Merges three ways: `ours` with the changes from `base` to `theirs`.
//!
//! The two differences from `base` are interleaved by key. What only they changed becomes an edit;
//! what both changed to the same is agreed; what both changed otherwise is for the caller to
//! resolve. The edits are applied while they are found: nothing is gathered.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::sync::Arc;

use bytes::Bytes;
use frond_store::ChunkStore;

use crate::error::TreeError;
use crate::map::{Change, Diff, Edit, MergeConflict, Tree};
use crate::value::Value;

type Resolve<'a> = dyn FnMut(MergeConflict) -> Result<Option<Edit>, TreeError> + 'a;

impl Tree {
    /// Three-way merge: `ours` with the changes from `base` to `theirs`. `resolve` is asked for
    /// each key that both sides changed differently, and answers with the edit to `ours`, or
    /// `None` to leave it as it is. Returns the new tree. Cost follows the two differences.
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
            ours: base.diff(store, ours).peekable(),
            theirs: base.diff(store, theirs).peekable(),
            resolve,
        };
        ours.apply(&**store, &mut edits)
    }
}

/// The edits that turn ours into the merged tree.
struct MergeEdits<'a> {
    ours: Peekable<Diff>,
    theirs: Peekable<Diff>,
    resolve: &'a mut Resolve<'a>,
}

impl MergeEdits<'_> {
    fn advance(&mut self) -> Result<Option<(Bytes, Edit)>, TreeError> {
        loop {
            let order = match (self.ours.peek(), self.theirs.peek()) {
                // Without changes of theirs the rest of ours is not read.
                (_, None) => return Ok(None),
                (None, Some(_)) => Ordering::Greater,
                (Some(Ok(ours)), Some(Ok(theirs))) => ours.key.cmp(&theirs.key),
                (Some(Err(_)), Some(_)) => Ordering::Less,
                (Some(Ok(_)), Some(Err(_))) => Ordering::Greater,
            };
            match order {
                Ordering::Less => drop(self.ours.next().transpose()?),
                Ordering::Greater => {
                    return Ok(self.theirs.next().transpose()?.map(|change| {
                        let edit = edit_to(change.to);
                        (change.key, edit)
                    }));
                }
                Ordering::Equal => {
                    let ours = self.ours.next().transpose()?;
                    let theirs = self.theirs.next().transpose()?;
                    if let (Some(ours), Some(theirs)) = (ours, theirs)
                        && let Some(edit) = self.resolve_both(ours, theirs)?
                    {
                        return Ok(Some(edit));
                    }
                }
            }
        }
    }

    fn resolve_both(
        &mut self,
        ours: Change,
        theirs: Change,
    ) -> Result<Option<(Bytes, Edit)>, TreeError> {
        if ours.to == theirs.to {
            return Ok(None);
        }
        let key = ours.key.clone();
        let conflict =
            MergeConflict { key: ours.key, base: ours.from, ours: ours.to, theirs: theirs.to };
        Ok((self.resolve)(conflict)?.map(|edit| (key, edit)))
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
