//! The hash of a level's last 16 items, which decides where a sequence's nodes end.
//!
//! Each item is hashed; the hashes are combined by a cyclic polynomial (Cohen, *Recursive hashing
//! functions for n-grams*, 1997): rotate by one, remove the oldest, add the newest. The window
//! runs on across nodes, so that a boundary doesn't depend on where the node began.

use crate::boundary;

/// How many items a boundary depends on: even of items that are single bits the window has 2^16
/// contents, more than a node has items.
pub(super) const WINDOW_ITEMS: usize = 16;

/// The window of one level.
pub(super) struct Window {
    seed: u64,
    /// The last items' hashes; `next` is the oldest, which goes next. Zero before there are items.
    hashes: [u64; WINDOW_ITEMS],
    next: usize,
    combined: u64,
    /// How many of the last items followed each other in the old sequence too; saturates.
    unchanged: usize,
}

impl Window {
    /// The window before a level's first item.
    pub(super) fn new(seed: u64) -> Window {
        let hashes = [0; WINDOW_ITEMS];
        Window { seed, hashes, next: 0, combined: 0, unchanged: WINDOW_ITEMS }
    }

    /// Takes an item in; `old` if it stood after the one before it in the old sequence too. Returns
    /// the hash for the boundary rule.
    pub(super) fn push(&mut self, item: &[u8], old: bool) -> u64 {
        let hash = boundary::hash(item, self.seed);
        let oldest = std::mem::replace(&mut self.hashes[self.next], hash);
        self.next = (self.next + 1) % WINDOW_ITEMS;
        self.combined =
            self.combined.rotate_left(1) ^ oldest.rotate_left(WINDOW_ITEMS as u32) ^ hash;
        self.unchanged = if old { (self.unchanged + 1).min(WINDOW_ITEMS) } else { 0 };
        self.combined
    }

    /// Notes that items of the old sequence are left out here.
    pub(super) fn note_gap(&mut self) {
        self.unchanged = 0;
    }

    /// Tells whether the next item of the old sequence would see the window that it saw there.
    pub(super) fn is_in_step(&self) -> bool {
        self.unchanged >= WINDOW_ITEMS - 1
    }
}
