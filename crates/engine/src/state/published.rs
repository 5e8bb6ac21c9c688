//! The engine's state that the store's root names, and the bases that wait to be published.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use frond_store::ChunkHash;

use crate::ids::{Sequence, TreeId};
use crate::log::format::SegmentNumber;
use crate::overlay::memtable::Memtable;
use crate::state::format::EngineState;
use crate::state::unpublished::UnpublishedBases;

/// The published state, to be changed only under its lock.
pub(crate) struct Publisher {
    pub root: ChunkHash,
    pub published: EngineState,
    /// Log segments below this one are gone. It trails `published.segment`.
    pub first_segment: SegmentNumber,
    /// Trees whose published base reaches beyond the published horizon, and how far: while there
    /// are any, what is published is no moment without the log.
    pub beyond: BTreeMap<TreeId, Sequence>,
}

/// The owner of all that publications share.
///
/// *Locks*: `flusher` before `publisher`, both before the engine's others. Each keeps two of its
/// kind apart, across writes and syncs; no writer or reader waits for them.
pub(crate) struct Published {
    /// Memtables that were flushed and may still be read.
    flusher: Mutex<Vec<Arc<Memtable>>>,
    publisher: Mutex<Publisher>,
    /// Bases that trees got and that are not published yet.
    pub unpublished: UnpublishedBases,
}

const NO_PANIC: &str = "no panic while the lock is held";

impl Published {
    /// Takes the findings of an opening.
    pub fn new(publisher: Publisher, unpublished: UnpublishedBases) -> Published {
        let publisher = Mutex::new(publisher);
        Published { flusher: Mutex::default(), publisher, unpublished }
    }

    /// Locks what is published.
    pub fn publisher(&self) -> MutexGuard<'_, Publisher> {
        self.publisher.lock().expect(NO_PANIC)
    }

    /// Lets no other flush begin; returns memtables that were flushed and may still be read.
    pub fn flusher(&self) -> MutexGuard<'_, Vec<Arc<Memtable>>> {
        self.flusher.lock().expect(NO_PANIC)
    }
}
