//! The engine: one data directory, open.

use std::sync::Arc;

use frond_store::ChunkStore;
use frond_store::io::Machine;
use frond_tree::{Tree, TreeFormat};

use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::transaction::{Snapshot, Transaction};

/// Settings of an [`Engine`].
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Bytes of decompressed chunks kept in memory.
    pub cache_bytes: u64,
    /// The memtable is sealed and folded when it has grown to this.
    pub memtable_bytes_max: u64,
    /// How often relaxed commits are synced, in milliseconds.
    pub relaxed_sync_millis: u64,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            cache_bytes: 128 << 20,
            memtable_bytes_max: 64 << 20,
            relaxed_sync_millis: 100,
        }
    }
}

/// One data directory, open. Cloning shares it.
///
/// *Thread safety*: every method may be called from any number of threads at once.
#[derive(Clone)]
pub struct Engine {}

impl Engine {
    /// Opens the data directory, recovering from its log; makes an empty one where there is none.
    pub fn open(_machine: &Machine, _options: EngineOptions) -> Result<Engine, EngineError> {
        todo!()
    }

    /// Where chunks lie.
    pub fn store(&self) -> &Arc<dyn ChunkStore> {
        todo!()
    }

    /// The format of the trees that are local to this data directory.
    pub fn local_format(&self) -> TreeFormat {
        todo!()
    }

    /// What is visible now.
    pub fn snapshot(&self) -> Snapshot {
        todo!()
    }

    /// Begins a transaction at what is visible now.
    pub fn begin(&self) -> Transaction {
        todo!()
    }

    /// The Sequence of the last visible transaction.
    pub fn visible(&self) -> Sequence {
        todo!()
    }

    /// Reserves an id for a new tree. It exists once a transaction that called
    /// [`Transaction::set_base`] for it has committed.
    pub fn reserve_tree_id(&self) -> TreeId {
        todo!()
    }

    /// Folds `trees` as they are at `snapshot` and returns, for each, the resulting tree; its
    /// chunks are durable. Writers go on. The cost follows what changed since the last fold: the
    /// result becomes the base.
    pub fn fold(&self, _snapshot: &Snapshot, _trees: &[TreeId]) -> Result<Vec<Tree>, EngineError> {
        todo!()
    }

    /// Folds everything and empties the log; for tests and a clean shutdown.
    pub fn checkpoint(&self) -> Result<(), EngineError> {
        todo!()
    }

    /// Checks every invariant that can be checked at rest.
    pub fn check(&self) -> Result<(), EngineError> {
        todo!()
    }

    /// What the engine has done since it was opened.
    pub fn counters(&self) -> EngineCounters {
        todo!()
    }

    /// Syncs, stops the background threads and lets go of the directory. Later calls fail with
    /// [`EngineError::Closed`].
    pub fn close(&self) -> Result<(), EngineError> {
        todo!()
    }
}

/// What the engine has done since it was opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineCounters {
    /// Transactions committed.
    pub commits: u64,
    /// Transactions refused because another was first.
    pub conflicts: u64,
    /// Syncs of the log: `commits / log_syncs` is the mean size of a group.
    pub log_syncs: u64,
    /// Bytes written to the log.
    pub log_bytes: u64,
    /// Folds of a tree.
    pub folds: u64,
    /// Bytes in memtables now.
    pub memtable_bytes: u64,
}
