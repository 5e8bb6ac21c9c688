//! The hash that an item of a sequence has for the boundary rule: its own, or that of the items
//! around it.
//!
//! The authority is docs/format/boundary.md. The *window* of an item is the fewest last items of
//! its level, itself included, that together have a quarter of the node's target in bytes, but
//! [`WINDOW_ITEMS`] at most.
//!
//! 1. An item with no equal in its window has its own hash. So of a change nothing behind the
//!    changed item is decided anew, but where that makes or ends a repetition.
//! 2. One that has an equal there has the hash of the whole window: of few kinds of items, each of
//!    which would otherwise end every node or none, windows differ. It combines the items' hashes
//!    by a cyclic polynomial (Cohen, *Recursive hashing functions for n-grams*, 1997).
//!
//! The window runs on across nodes, so that a boundary doesn't depend on where the node began.

use crate::boundary::{self, BoundaryRule, Seeded};
use crate::format::TreeFormat;
use crate::sequence::entry::Entry;

/// The number of items a boundary depends on at most: even of items that are single bits the window
/// has 2^16 contents, more than a node has items.
pub(super) const WINDOW_ITEMS: usize = 16;
const _: () = assert!(WINDOW_ITEMS.is_power_of_two());

/// The window of one level.
pub(super) struct Window {
    seed: u64,
    /// A window with so many bytes needs no further item; above zero, so that it has one.
    bytes_wanted: u64,
    /// The hash and the bytes of each item: of `count` that go around, the newest before `next`.
    items: [(u64, u64); WINDOW_ITEMS],
    next: usize,
    count: usize,
    bytes: u64,
    combined: u64,
    unchanged: Extent,
}

/// The extent of a window's last items that also followed each other in the old sequence.
#[derive(Clone, Copy)]
enum Extent {
    /// To the beginning of the level, or further than any window.
    Whole,
    Some {
        count: usize,
        bytes: u64,
    },
}

impl Window {
    /// The window before a level's first item.
    pub(super) fn new(format: &TreeFormat, level: u8) -> Window {
        Window {
            seed: boundary::seed(format, Seeded::Sequence, level),
            bytes_wanted: BoundaryRule::new(format, level).window_bytes(),
            items: [(0, 0); WINDOW_ITEMS],
            next: 0,
            count: 0,
            bytes: 0,
            combined: 0,
            unchanged: Extent::Whole,
        }
    }

    /// As before a level's first item, or where old items are put in that stand before the next
    /// one.
    pub(super) fn clear(&mut self) {
        (self.count, self.bytes, self.combined) = (0, 0, 0);
        self.unchanged = Extent::Whole;
    }

    /// Takes an item in; `old` if it stood after the one before it in the old sequence too. Returns
    /// the hash for the boundary rule.
    pub(super) fn push(&mut self, item: &Entry<'_>, old: bool) -> u64 {
        self.push_hashed(self.hash(item), item.bytes() as u64, old)
    }

    /// Returns the hash of an item that `push_hashed` takes.
    pub(super) fn hash(&self, item: &Entry<'_>) -> u64 {
        item.hash(self.seed)
    }

    /// As `push`, of an item that was hashed.
    pub(super) fn push_hashed(&mut self, hash: u64, bytes: u64, old: bool) -> u64 {
        if self.count == WINDOW_ITEMS {
            self.drop_oldest();
        }
        while 0 < self.count && self.bytes_wanted <= self.bytes + bytes - self.back(self.count).1 {
            self.drop_oldest();
        }
        let is_repeated = (1..=self.count).any(|back| self.back(back).0 == hash);
        self.items[self.next] = (hash, bytes);
        self.next = (self.next + 1) % WINDOW_ITEMS;
        self.count += 1;
        self.bytes += bytes;
        self.combined = self.combined.rotate_left(1) ^ hash;
        self.note(old, bytes);
        if is_repeated { self.combined } else { hash }
    }

    /// The item that is so many back; the newest is one back.
    fn back(&self, back: usize) -> (u64, u64) {
        self.items[(self.next + WINDOW_ITEMS - back) % WINDOW_ITEMS]
    }

    fn drop_oldest(&mut self) {
        let (hash, bytes) = self.back(self.count);
        self.count -= 1;
        self.bytes -= bytes;
        self.combined ^= hash.rotate_left(self.count as u32);
    }

    fn note(&mut self, old: bool, item_bytes: u64) {
        self.unchanged = match self.unchanged {
            _ if !old => Extent::Some { count: 0, bytes: 0 },
            Extent::Some { count, bytes } => {
                let (count, bytes) = (count + 1, bytes + item_bytes);
                match is_full(count, bytes, self.bytes_wanted) {
                    true => Extent::Whole,
                    false => Extent::Some { count, bytes },
                }
            }
            Extent::Whole => Extent::Whole,
        };
    }

    /// Notes that items of the old sequence are left out here.
    pub(super) fn note_gap(&mut self) {
        self.unchanged = Extent::Some { count: 0, bytes: 0 };
    }

    /// Returns whether the next item of the old sequence would see the window that it saw there.
    pub(super) fn is_in_step(&self) -> bool {
        matches!(self.unchanged, Extent::Whole)
    }

    /// Whether so many items fill the window of the next one, whatever that is.
    pub(super) fn is_filled_by(&self, count: usize, bytes: u64) -> bool {
        is_full(count, bytes, self.bytes_wanted)
    }
}

fn is_full(count: usize, bytes: u64, bytes_wanted: u64) -> bool {
    WINDOW_ITEMS <= count + 1 || bytes_wanted <= bytes
}
