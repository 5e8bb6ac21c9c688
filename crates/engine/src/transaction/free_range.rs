//! Whether keys are free, asked for in ascending order, as inserts of new documents do.
//!
//! Looking for one key that isn't there costs a search of each memtable, a filter of each run, and
//! a way down the tree. Once some keys in a row have ascended and were free, the key that comes
//! next in the snapshot is looked for: up to that one all are free, whatever is asked. A snapshot
//! never changes, so what was found holds as long as the transaction reads it; own writes are
//! looked up for each key.

use bytes::Bytes;
use frond_tree::{Bounds, Direction};

use super::Transaction;
use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};

/// So many keys ascend before the next one in the snapshot is looked for, which costs about as much
/// as two or three keys: of keys in no order one in 40,000 is behind so many that ascend.
const ASCENDING_COUNT_MIN: u32 = 8;

/// The free keys that a transaction knows of in its snapshot.
#[derive(Default)]
pub(super) struct FreeRange {
    /// The snapshot, and the tree: what is known of any other is nothing.
    of: Option<(Sequence, TreeId)>,
    /// The last key that was asked for and free, and the number of keys before it that ascended.
    last: Bytes,
    ascending_count: u32,
    /// Whether all keys above `last` up to `end`, or all, are free.
    is_known: bool,
    end: Option<Bytes>,
}

impl FreeRange {
    fn has(&self, of: (Sequence, TreeId), key: &[u8]) -> bool {
        let is_before_end = || self.end.as_deref().is_none_or(|end| key < end);
        self.is_known && self.of == Some(of) && &self.last[..] < key && is_before_end()
    }

    /// Notes a key that was looked for and is free; returns whether it is time to look for the next
    /// that isn't.
    fn note_free(&mut self, of: (Sequence, TreeId), key: &Bytes) -> bool {
        let ascends = self.of == Some(of) && self.last < *key;
        let ascending_count = if ascends { self.ascending_count + 1 } else { 0 };
        *self =
            FreeRange { of: Some(of), last: key.clone(), ascending_count, ..FreeRange::default() };
        ASCENDING_COUNT_MIN <= ascending_count
    }

    fn note_next(&mut self, next: Option<Bytes>) {
        (self.is_known, self.end, self.ascending_count) = (true, next, 0);
    }
}

impl Transaction {
    /// Whether `key` has no value, own writes included: as [`Transaction::get`], and faster where
    /// keys are asked for in ascending order.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn is_free(&mut self, tree: TreeId, key: &Bytes) -> Result<bool, EngineError> {
        // What an interactive transaction reads is noted key by key.
        if self.reads.is_some() || self.own.base(tree).is_some() {
            return Ok(self.get(tree, key)?.is_none());
        }
        if let Some(written) = self.own.get(tree, key) {
            return Ok(written.is_none());
        }
        self.note_read();
        let snapshot = &self.open.snapshot;
        let of = (snapshot.sequence(), tree);
        if self.free_range.has(of, key) {
            return Ok(true);
        }
        if snapshot.get(tree, key)?.is_some() {
            return Ok(false);
        }
        if self.free_range.note_free(of, key) {
            let above = Bounds { start: Some(key.clone()), end: None };
            let mut cursor = snapshot.range(tree, above, Direction::Ascending)?;
            let next = cursor.step()?.then(|| cursor.entry()).flatten();
            self.free_range.note_next(next.map(|entry| entry.key));
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether each key needs a look, and which it then finds next.
    #[test]
    fn keys_that_ascend_are_looked_for_once() {
        let of = |tree: u64| (Sequence(5), TreeId(tree));
        let key = |number: u32| Bytes::from(format!("{number:03}"));
        let mut range = FreeRange::default();
        let mut looks = |of, number: u32, next: Option<u32>| {
            if range.has(of, &key(number)) {
                return 0;
            }
            if range.note_free(of, &key(number)) {
                range.note_next(next.map(key));
                return 2;
            }
            1
        };
        let row: Vec<u32> = (100..120).map(|number| looks(of(1), number, Some(115))).collect();
        assert_eq!(row, [[1; 8].as_slice(), &[2], &[0; 6], &[1; 5]].concat());
        // Some more of the row; all above are free.
        let row: Vec<u32> = (120..140).map(|number| looks(of(1), number, None)).collect();
        assert_eq!(row, [[1; 2].as_slice(), &[2], &[0; 17]].concat());
        assert_eq!(looks(of(2), 150, None), 1, "another tree");
        assert_eq!(looks(of(1), 151, None), 1, "what is known is of one tree");
        for number in (0..50).rev() {
            assert_eq!(looks(of(1), number, None), 1, "they descend");
        }
        assert_eq!(looks((Sequence(6), TreeId(1)), 200, None), 1, "another snapshot");
    }
}
