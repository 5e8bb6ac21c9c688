//! What the keys that memtables have were before the oldest entry of each, in the order of the
//! keys: with a run's entries this gives by how much it changes the count of what is below it.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use crossbeam_epoch::pin;

use super::{Memtable, Window};
use crate::ids::TreeId;

/// The keys that are read at once.
const BATCH_COUNT: usize = 512;

/// A key, and whether it had a value before, if that is known.
type KnownKey = (Bytes, Option<bool>);

/// The keys of one tree in some memtables.
pub(crate) struct KeyBefores {
    /// Of the newest memtable first.
    cursors: Vec<BeforeCursor>,
}

impl KeyBefores {
    /// Of the entries of `tree` within `window`; the newest memtable comes first.
    pub fn new<'a>(
        memtables: impl Iterator<Item = &'a Arc<Memtable>>,
        tree: TreeId,
        window: Window,
    ) -> KeyBefores {
        let cursor = |memtable: &Arc<Memtable>| BeforeCursor {
            memtable: Arc::clone(memtable),
            tree,
            window,
            batch: VecDeque::new(),
            rest: Some(Bytes::new()),
        };
        KeyBefores { cursors: memtables.map(cursor).collect() }
    }

    /// Whether `key` had a value before the oldest of its entries, if that is known. All keys that
    /// the memtables have are to be asked for, ascending.
    pub fn of(&mut self, key: &[u8]) -> Option<bool> {
        let mut had_value = None;
        for cursor in &mut self.cursors {
            if let Some((_, older)) = cursor.next_if(key) {
                had_value = older;
            }
        }
        had_value
    }
}

struct BeforeCursor {
    memtable: Arc<Memtable>,
    tree: TreeId,
    window: Window,
    batch: VecDeque<KnownKey>,
    /// Where the next batch begins; `None`: there is none.
    rest: Option<Bytes>,
}

impl BeforeCursor {
    fn next_if(&mut self, key: &[u8]) -> Option<KnownKey> {
        if self.batch.is_empty()
            && let Some(start) = self.rest.take()
        {
            self.rest = self.memtable.befores(self.tree, self.window, &start, &mut self.batch);
        }
        self.batch.pop_front_if(|(next, _)| next == key)
    }
}

impl Memtable {
    /// Appends to `out` what is known of the next keys of `tree` from `start` on; returns where the
    /// others begin, if there are any.
    fn befores(
        &self,
        tree: TreeId,
        window: Window,
        start: &[u8],
        out: &mut VecDeque<KnownKey>,
    ) -> Option<Bytes> {
        let guard = pin();
        let table = self.table(tree, &guard)?;
        let (mut last, mut rest): (Option<KnownKey>, _) = (None, None);
        table.blocks.ascend(Some(start), |entry| {
            if !window.contains(entry.sequence) {
                return true;
            }
            let had_value = entry.stored.replaces();
            if let Some((_, older)) = last.as_mut().filter(|(key, _)| key == entry.stored.key()) {
                *older = had_value;
                return true;
            }
            out.extend(last.take());
            if out.len() == BATCH_COUNT {
                rest = Some(entry.stored.owned_key());
                return false;
            }
            last = Some((entry.stored.owned_key(), had_value));
            true
        });
        out.extend(last);
        rest
    }
}
