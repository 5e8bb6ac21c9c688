//! Merges three ways: `ours` with the changes from `base` to `theirs`.
//!
//! 1. Of the two differences from `base` only theirs is walked. Their changes are taken in batches,
//!    and the keys of a batch are looked up in `ours` together: those leaves are what is rewritten
//!    anyway, so what only we changed is never read.
//! 2. Where ours is what the base had, only they changed it: that is an edit. Where it is what they
//!    have, both agree. Anything else is for the caller to resolve.
//! 3. The edits are applied while they are found: nothing is gathered but a few batches. Of many
//!    changes the next ones are looked for by another thread meanwhile.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::{thread, vec};

use bytes::Bytes;
use frond_store::ChunkStore;

use crate::error::TreeError;
use crate::map::{Change, Diff, Edit, MergeConflict, Tree};
use crate::value::Value;

/// Changes that are looked up together; no thread is started for fewer.
const BATCH_COUNT: usize = 256;
/// Batches that wait for being applied.
const AHEAD_COUNT: usize = 2;

type Resolve<'a> = dyn FnMut(MergeConflict) -> Result<Option<Edit>, TreeError> + 'a;
/// A callback for each edit of [`Tree::merge_noting`]: its key, the value on our side, and the
/// value in the new tree.
pub type MergeNote<'a> = dyn FnMut(&Bytes, Option<&Value>, Option<&Value>) + 'a;
/// Changes of theirs, each with what ours has.
type Batch = Vec<(Change, Option<Value>)>;

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
        Tree::merge_noting(store, [base, ours, theirs], resolve, &mut |_, _, _| ())
    }

    /// As [`Tree::merge`] of base, ours and theirs. `note` is called for each edit to `ours`, by
    /// ascending keys: the value on our side, and the one in the new tree.
    ///
    /// # Errors
    /// As there.
    pub fn merge_noting(
        store: &Arc<dyn ChunkStore>,
        [base, ours, theirs]: [&Tree; 3],
        resolve: &mut dyn FnMut(MergeConflict) -> Result<Option<Edit>, TreeError>,
        note: &mut MergeNote<'_>,
    ) -> Result<Tree, TreeError> {
        let mut changes = Changes { store, ours: *ours, theirs: base.diff(store, theirs) };
        let first = changes.next_batch()?;
        if first.len() < BATCH_COUNT {
            let mut edits = MergeEdits { batch: first.into_iter(), more: None, resolve, note };
            return ours.apply(&**store, &mut edits);
        }
        thread::scope(|scope| {
            let (sender, more) = sync_channel(AHEAD_COUNT);
            scope.spawn(move || {
                loop {
                    let batch = changes.next_batch();
                    let keep_going = batch.as_ref().is_ok_and(|batch| batch.len() == BATCH_COUNT);
                    // The receiver is gone once the other thread has failed.
                    if sender.send(batch).is_err() || !keep_going {
                        return;
                    }
                }
            });
            let mut edits =
                MergeEdits { batch: first.into_iter(), more: Some(more), resolve, note };
            ours.apply(&**store, &mut edits)
        })
    }
}

/// Finds what theirs changed.
struct Changes<'a> {
    store: &'a Arc<dyn ChunkStore>,
    ours: Tree,
    theirs: Diff,
}

impl Changes<'_> {
    /// The next changes: fewer than a whole batch if there are no more.
    fn next_batch(&mut self) -> Result<Batch, TreeError> {
        let changes: Result<Vec<Change>, TreeError> =
            self.theirs.by_ref().take(BATCH_COUNT).collect();
        let changes = changes?;
        let keys: Vec<&[u8]> = changes.iter().map(|change| &change.key[..]).collect();
        let ours = self.ours.get_many(&**self.store, &keys)?;
        Ok(changes.into_iter().zip(ours).collect())
    }
}

/// The edits that turn ours into the merged tree.
struct MergeEdits<'a> {
    batch: vec::IntoIter<(Change, Option<Value>)>,
    /// The batches behind it, if there are any.
    more: Option<Receiver<Result<Batch, TreeError>>>,
    resolve: &'a mut Resolve<'a>,
    note: &'a mut MergeNote<'a>,
}

impl MergeEdits<'_> {
    fn advance(&mut self) -> Result<Option<(Bytes, Edit)>, TreeError> {
        while let Some((theirs, ours)) = self.next_change()? {
            if ours == theirs.from {
                (self.note)(&theirs.key, ours.as_ref(), theirs.to.as_ref());
                return Ok(Some((theirs.key, edit_to(theirs.to))));
            }
            if ours == theirs.to {
                continue;
            }
            let key = theirs.key.clone();
            let (base, theirs) = (theirs.from, theirs.to);
            let conflict = MergeConflict { key: key.clone(), base, ours: ours.clone(), theirs };
            if let Some(edit) = (self.resolve)(conflict)? {
                let to = match &edit {
                    Edit::Put(value) => Some(value),
                    Edit::Delete => None,
                };
                (self.note)(&key, ours.as_ref(), to);
                return Ok(Some((key, edit)));
            }
        }
        Ok(None)
    }

    fn next_change(&mut self) -> Result<Option<(Change, Option<Value>)>, TreeError> {
        loop {
            if let Some(next) = self.batch.next() {
                return Ok(Some(next));
            }
            // The other thread ends behind the last batch; its panic is passed on where it is
            // joined.
            match self.more.as_ref().and_then(|more| more.recv().ok()) {
                Some(batch) => self.batch = batch?.into_iter(),
                None => return Ok(None),
            }
        }
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
