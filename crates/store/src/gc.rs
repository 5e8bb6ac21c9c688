//! Garbage collection: the options of [`crate::ChunkStore::collect`], and its report.

pub(crate) mod bitmap;
pub(crate) mod live_set;
pub(crate) mod session;

use std::ops::ControlFlow;

use crate::chunk::ChunkHash;
use crate::error::StoreError;

/// A collection to be made.
pub struct GarbageCollection<'a> {
    /// Asked once, after the collection has begun: what must be kept besides the store's named
    /// roots and what sessions protect. All that these refer to is kept, too.
    pub roots: &'a mut dyn FnMut() -> Result<Vec<ChunkHash>, StoreError>,
    /// Called again and again with how many bytes were read or written since the last time; may
    /// take its time before it answers, and may stop the collection. The work so far stays done.
    pub throttle: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
    /// The options, which decide how thorough it is.
    pub options: GcOptions,
}

/// Options of a collection.
#[derive(Clone, Copy, Debug)]
pub struct GcOptions {
    /// A pack with a smaller reachable share is rewritten: at 50, packs take at most twice what is
    /// reachable. Without `pack_history` no more of them than bring all packs together to a third
    /// above that.
    pub live_percent_min: u8,
    /// Whether it only finds out what is reachable: nothing is changed.
    pub dry_run: bool,
    /// Whether all history that isn't packed yet is packed in groups of related chunks, small packs
    /// are put together, and the working state is compressed harder. Without it, only packs that
    /// version commits wrote and that are mostly history by now are packed, some of them each time.
    pub pack_history: bool,
}

impl Default for GcOptions {
    fn default() -> Self {
        GcOptions { live_percent_min: 50, dry_run: false, pack_history: false }
    }
}

/// The report of a collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GcReport {
    /// Chunks that were found reachable.
    pub chunks_live: u64,
    /// About how many bytes of packs these take; set by `dry_run`.
    pub bytes_live: u64,
    /// Chunks that are gone.
    pub chunks_dead: u64,
    /// Chunks that moved to another pack.
    pub chunks_moved: u64,
    /// Packs that are gone.
    pub packs_removed: u64,
    /// Bytes of all packs before and after.
    pub bytes_before: u64,
    /// See `bytes_before`.
    pub bytes_after: u64,
    /// Stopped by the caller that paces it.
    pub stopped: bool,
}
