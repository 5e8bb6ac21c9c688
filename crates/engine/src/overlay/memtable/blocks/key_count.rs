//! Counts by how many keys a tree's entries in the memtable change its count.
//!
//! An entry changes it by one, or not at all: its key has a value, or none, and had one just
//! before, or none. The state *just before* is a fact about the entry, which no later write and no
//! fold alters. So it is found out once, for the first count that meets the entry, and kept beside
//! it; the changes of any entries then add up, whichever of them are of one key.

use crossbeam_epoch::pin;
use frond_tree::Bounds;

use super::{Block, Blocks, BorrowedPlace, EntryKey, NO_PANIC, OwnedPlace, Versioned};
use crate::ids::Sequence;
use crate::overlay::memtable::Window;

/// The change of a count.
#[derive(Default)]
pub(crate) struct KeyCount {
    /// The change by the entries for which it is known.
    pub change: i64,
    /// Entries about which it wasn't known, in order.
    pub unknown: Vec<Unknown>,
    /// The place of the first entry that wasn't counted, if there is one.
    pub rest: Option<OwnedPlace>,
}

/// An entry for which it wasn't known what was just before it.
pub(crate) struct Unknown {
    /// The entry. It holds by now what the memtable's next entry says of it.
    pub entry: Versioned,
    /// Whether the memtable has no older entry of its key within the window.
    pub is_oldest: bool,
}

impl Versioned {
    /// Returns by how much it changes how many keys have a value, if it is known what was just
    /// before.
    pub fn change(&self) -> Option<i64> {
        let replaces = self.stored.replaces()?;
        Some(i64::from(self.stored.has_value()) - i64::from(replaces))
    }
}

impl Block {
    /// The entry at `position`, with what the next one says of what was before it.
    fn unknown(&self, position: usize, window: Window) -> Unknown {
        let mut entry = self.entries[position].clone();
        let next = self.entries.get(position + 1);
        let is_of_key = |next: &&Versioned| {
            self.heads[position + 1] == self.heads[position]
                && next.stored.key() == entry.stored.key()
        };
        let older = next.filter(|next| window.contains(next.sequence)).filter(is_of_key);
        if let Some(older) = older {
            entry.stored.note_replaces(older.stored.has_value());
        }
        // Another block may begin with older entries of its key.
        Unknown { entry, is_oldest: next.is_some() }
    }
}

impl Blocks {
    /// Counts the entries within `bounds` and `window`, from `start` on if there is one, until
    /// `unknown_max` or a few more have changes that aren't known.
    pub fn count(
        &self,
        bounds: &Bounds,
        window: Window,
        start: Option<OwnedPlace>,
        unknown_max: usize,
    ) -> KeyCount {
        let newest = Sequence(u64::MAX);
        let first =
            || BorrowedPlace::new(bounds.start.as_deref().unwrap_or_default(), newest).to_owned();
        let mut next = start.unwrap_or_else(first);
        let end = bounds.end.as_deref().map(|end| BorrowedPlace::new(end, newest));
        let (mut counted, guard) = (KeyCount::default(), pin());
        loop {
            let block = self.block_of(&next.place(), &guard);
            let found = block.0.read().expect(NO_PANIC);
            if found.is_beyond(&next.place()) {
                continue;
            }
            let start = found.position(&next.place());
            let stop = end.map_or(found.own.entries.len(), |end| found.position(&end));
            let entries = found.own.entries.iter().enumerate();
            for (position, entry) in entries.take(stop).skip(start) {
                if window.contains(entry.sequence) {
                    match entry.change() {
                        Some(change) => counted.change += change,
                        None => counted.unknown.push(found.own.unknown(position, window)),
                    }
                }
            }
            let Some(following) = found.end.clone() else { return counted };
            if end.is_some_and(|end| end <= following.place()) {
                return counted;
            }
            if unknown_max <= counted.unknown.len() {
                return KeyCount { rest: Some(following), ..counted };
            }
            next = following;
        }
    }

    /// Keeps what `entries`, which are in order, know of what was just before them.
    pub fn note_replaces(&self, entries: &[Unknown]) {
        let (mut rest, guard) = (entries, pin());
        while let Some(first) = rest.first() {
            let block = self.block_of(&first.entry.place(), &guard);
            let mut found = block.0.write().expect(NO_PANIC);
            if found.is_beyond(&first.entry.place()) {
                continue;
            }
            let here = rest.partition_point(|unknown| !found.is_beyond(&unknown.entry.place()));
            let (noted, behind) = rest.split_at(here);
            for Unknown { entry, .. } in noted {
                let position = found.position(&entry.place());
                // Entries that were refused meanwhile are gone.
                let kept = found.own.entries.get_mut(position);
                if let (Some(kept), Some(replaces)) = (kept, entry.stored.replaces())
                    && kept.place() == entry.place()
                {
                    kept.stored.note_replaces(replaces);
                }
            }
            rest = behind;
        }
    }
}
