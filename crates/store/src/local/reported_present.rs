//! The chunks that were reported to callers as present, since the last sync.
//!
//! A chunk that is durable says nothing of what it refers to: it may be what a crash or a
//! collection left of a tree. A writer that puts that tree again puts what is gone from it, and
//! learns that the rest, its root perhaps, is there. So the root is *settled* only with the next
//! sync ([`crate::ChunkStore::sync_these`]). A chunk that was reported to no caller is known only
//! from something lasting that refers to it, and so is all below it.

use std::collections::HashSet;
use std::sync::Mutex;

use crate::chunk::ChunkHash;
use crate::hash::NameHasherBuilder;

/// The number above which all count as reported: 2 MB.
const REPORTED_MAX: usize = 32 << 10;

/// Names of chunks that refer to others.
///
/// *Locks*: its own is taken last, and held for a few operations of a set.
#[derive(Default)]
pub(super) struct ReportedPresent(Mutex<HashSet<ChunkHash, NameHasherBuilder>>);

impl ReportedPresent {
    /// Notes that these, which refer to others, were reported as there.
    pub(super) fn note(&self, hashes: impl Iterator<Item = ChunkHash>) {
        let mut hashes = hashes.peekable();
        if hashes.peek().is_some() {
            let mut names = self.0.lock().expect("no panic while the lock is held");
            let left = REPORTED_MAX.saturating_sub(names.len());
            names.extend(hashes.take(left));
        }
    }

    /// Whether one of `hashes` was reported as there.
    pub(super) fn has_any(&self, mut hashes: impl Iterator<Item = ChunkHash>) -> bool {
        let names = self.0.lock().expect("no panic while the lock is held");
        names.len() == REPORTED_MAX || hashes.any(|hash| names.contains(&hash))
    }

    /// Forgets all: what was put so far is about to be made durable.
    pub(super) fn clear(&self) {
        self.0.lock().expect("no panic while the lock is held").clear();
    }
}
