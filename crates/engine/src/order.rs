//! The order of transactions where several machines agree on it.
//!
//! On one machine a transaction's place is its place in the log, and the log's sync makes it last.
//! In a set, a group of transactions is *proposed* first ([`Order::agree`]): once a majority holds
//! it durably it can't be lost, and only then is it written to the engine's own log, which gets
//! nothing that may be taken back, and which need not be synced: what a crash takes of it comes
//! from the set's again.
//!
//! A directory whose log lies in a bucket ([`SlotOrder`]) has no others: a group is agreed on once
//! the bucket has it, and a directory that takes over applies it.
//!
//! *Alone is enough*: an entry ([`format`]) carries the payloads that the log gets, and all chunks
//! that these name and don't bring: of trees that get a base, of values that lie in chunks. So
//! a member that has applied all entries before it can apply it, whatever its packs hold. More of
//! these than an entry takes come by entries before (`crate::commit`'s `staging`); a transaction
//! that brings more itself is refused before it has a place.

pub(crate) mod format;
mod referenced_chunks;
mod slots;

use bytes::Bytes;
use frond_store::{ChunkHash, StoreError};

pub use format::{ENTRY_BYTES_MAX, SetEntry, first_sequence};
pub(crate) use referenced_chunks::{ChunkBatch, ReferencedChunks, SharedChunks};
pub use slots::SlotOrder;

use crate::ids::Sequence;
use crate::log::writer::PendingRecord;

/// An entry takes transactions up to so many bytes; a larger transaction has one of its own.
const ENTRY_BYTES_TARGET: usize = 8 << 20;

/// Decides the order of transactions: the members of a set, or the log in a bucket.
///
/// *Thread safety*: one thread at a time calls `agree`, which may take as long as there is no
/// majority; the others may be called meanwhile.
pub trait Order: Send + Sync {
    /// Proposes entries, in their order, and returns once all are committed: then every member
    /// will apply them. `report_delay` gets why that takes long.
    ///
    /// # Errors
    /// Why that isn't known. Some of them may be committed yet, so nothing more can be proposed by
    /// this engine: it is closed, and opened again behind what was committed.
    fn agree(
        &self,
        entries: Vec<Bytes>,
        report_delay: &dyn Fn(StoreError),
    ) -> Result<(), StoreError>;

    /// Is called when nothing waits to be agreed on: others that learn with the next entries what
    /// is committed would learn it late.
    fn pause(&self) {}

    /// Whether other machines apply what is agreed on: nothing is visible before it is.
    fn is_set(&self) -> bool {
        true
    }

    /// Is called with a state, before it is sent to a store's tier, that has all up to a moment.
    fn note_self_contained(&self, _root: ChunkHash, _horizon: Sequence) {}

    /// The slots of a log in a bucket: groups are led beside each other then, and `agree` isn't
    /// called.
    fn slots(&self) -> Option<&SlotOrder> {
        None
    }
}

/// The entries that carry `records`. One that names chunks which it doesn't bring has an entry of
/// its own: what they lead to is there when those before it are applied.
pub(crate) fn entries_of(records: &[PendingRecord]) -> Vec<Bytes> {
    let mut bytes = 0;
    let together = records.chunk_by(move |left, right| {
        bytes += left.carried_bytes();
        let is_alone = [left, right].iter().any(|record| !record.referenced_chunks.is_empty());
        let keep_going = !is_alone && bytes + right.carried_bytes() <= ENTRY_BYTES_TARGET;
        bytes = if keep_going { bytes } else { 0 };
        keep_going
    });
    together.map(format::encode).collect()
}
