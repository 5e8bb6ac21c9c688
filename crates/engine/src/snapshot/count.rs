//! Counts the entries of a tree, or of a range of it, without reading them.
//!
//! A tree in a snapshot is its base's tree, under the runs, under the memtables' entries of it.
//! Each of these is counted by itself, and the three are added:
//!
//! 1. The tree's nodes know how many entries lie below them: two ranks are subtracted.
//! 2. A run changes that by keys that it gives a value or takes one from ([`Base::run_change`]).
//! 3. So does each entry of a memtable, compared with what was just before it. Most are asked for
//!    once only: what was found is kept beside the entry.
//!
//! A count that repeats another therefore looks at the memtables' entries within its range, in
//! order and where they lie, and looks none of their keys up.

use std::sync::Arc;

use bytes::Bytes;
use frond_tree::{Bounds, Direction, Entry, TreeError};

use super::Snapshot;
use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::overlay::memtable::{Memtable, Unknown, Window};
use crate::overlay::stored::Stored;
use crate::state::Base;

/// The number of keys that are looked up at once.
const LOOK_UP_COUNT: usize = 1024;

impl Snapshot {
    /// Returns the number of entries: O(log n), and a look at what memtables hold of this tree.
    /// Keys that were written or flushed since the last count are looked up.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn count(&self, tree: TreeId) -> Result<u64, EngineError> {
        self.count_range(tree, &Bounds::all())
    }

    /// Returns how many entries lie in `bounds`; costs as [`Snapshot::count`] of what lies in them.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn count_range(&self, tree: TreeId, bounds: &Bounds) -> Result<u64, EngineError> {
        self.aged(|| {
            let base = self.base(tree)?;
            if let (Some(start), Some(end)) = (&bounds.start, &bounds.end)
                && start >= end
            {
                return Ok(0);
            }
            base.note_read();
            let store = &self.view.store;
            let below = base.tree.count_range(&**store, bounds)?;
            let mut change = base.run_change(store, bounds)?;
            let window = self.window(base);
            let memtables = self.view.state.memtables();
            let memtables: Vec<&Arc<Memtable>> =
                memtables.filter(|memtable| memtable.touches(tree, window)).collect();
            for position in 0..memtables.len() {
                let memtables = &memtables[position..];
                change += self.memtable_change(memtables, (tree, base), bounds, window)?;
            }
            Ok(below.saturating_add_signed(change))
        })
    }

    /// `bounds` without entries that come first in `direction`, and how many these are: `count`, or
    /// fewer by what the overlay alone has in one place. O(log n) counts at most, as a rule few.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn without_first(
        &self,
        tree: TreeId,
        bounds: &Bounds,
        direction: Direction,
        count: u64,
    ) -> Result<(Bounds, u64), EngineError> {
        let (base, store) = (self.base(tree)?, &*self.view.store);
        let ranks = base.tree.ranks(store, bounds)?;
        let mut best = (bounds.clone(), 0);
        // Those of the tree's keys within the bounds, in the direction, that may be the first that
        // is left.
        let (mut low, mut high) = (0, ranks.end.saturating_sub(ranks.start));
        let (mut guess, mut is_by_halves) = (count, false);
        while low < high {
            let place = guess.clamp(low, high - 1);
            let position = match direction {
                Direction::Ascending => ranks.start + place,
                Direction::Descending => ranks.end - 1 - place,
            };
            let Some(Entry { key, .. }) = base.tree.select(store, position)? else { break };
            let (passed, left) = divide(bounds, direction, key);
            let found = self.count_range(tree, &passed)?;
            if count < found {
                high = place;
            } else {
                best = (left, found);
                low = if found == count { high } else { place + 1 };
            }
            // The overlay lies about evenly, so that most is done by the first two guesses.
            guess = match is_by_halves {
                true => low + high.saturating_sub(low) / 2,
                false => place.saturating_add(count).saturating_sub(found),
            };
            is_by_halves = !is_by_halves;
        }
        self.unless_expired(Ok(best))
    }

    /// Returns by how much the entries of the first memtable, the others being older, change how
    /// many keys have a value.
    fn memtable_change(
        &self,
        memtables: &[&Arc<Memtable>],
        (tree, base): (TreeId, &Base),
        bounds: &Bounds,
        window: Window,
    ) -> Result<i64, TreeError> {
        let (mut change, mut start) = (0, None);
        loop {
            let mut counted = memtables[0].count(tree, bounds, window, start, LOOK_UP_COUNT);
            self.look_before(memtables, (tree, base), window.after, &mut counted.unknown)?;
            let found = counted.unknown.iter().filter_map(|unknown| unknown.entry.change());
            change += counted.change + found.sum::<i64>();
            memtables[0].note_replaces(tree, &counted.unknown);
            start = counted.rest;
            if start.is_none() {
                return Ok(change);
            }
        }
    }

    /// Looks up whether the keys of `entries`, of the first memtable and in order, had a value just
    /// before them.
    fn look_before(
        &self,
        memtables: &[&Arc<Memtable>],
        (tree, base): (TreeId, &Base),
        after: Sequence,
        entries: &mut [Unknown],
    ) -> Result<(), TreeError> {
        let mut below: Vec<&mut Stored> = Vec::new();
        for Unknown { entry, is_oldest } in entries {
            if entry.stored.replaces().is_some() {
                continue;
            }
            let window = Window { after, up_to: entry.sequence.preceding() };
            let key = entry.stored.key();
            let mut others = memtables[usize::from(*is_oldest)..].iter();
            match others.find_map(|memtable| memtable.get(tree, key, window)) {
                Some(written) => entry.stored.note_replaces(written.is_some()),
                // Only the oldest of a key's entries comes here: these ascend strictly.
                None => below.push(&mut entry.stored),
            }
        }
        let keys: Vec<&[u8]> = below.iter().map(|stored| stored.key()).collect();
        let had = base.have(&*self.view.store, 0, &keys)?;
        for (stored, had) in below.into_iter().zip(had) {
            stored.note_replaces(had);
        }
        Ok(())
    }
}

/// Divides `bounds` into the part that is passed before `key` is reached in `direction`, and the
/// rest. Descending, the key itself is passed.
fn divide(bounds: &Bounds, direction: Direction, key: Bytes) -> (Bounds, Bounds) {
    let below = Bounds { start: bounds.start.clone(), end: Some(key.clone()) };
    let above = Bounds { start: Some(key), end: bounds.end.clone() };
    match direction {
        Direction::Ascending => (below, above),
        Direction::Descending => (above, below),
    }
}

#[cfg(test)]
mod tests;
