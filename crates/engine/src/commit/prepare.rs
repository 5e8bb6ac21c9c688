//! Prepares a commit before the queue's lock is taken: the transaction's record for the log, its
//! entries for the memtable, and the keys that other commits may conflict with.

use std::sync::Arc;

use bytes::Bytes;

use crate::commit::staging::Staged;
use crate::error::EngineError;
use crate::ids::TreeId;
use crate::log::record::Record;
use crate::log::writer::PendingRecord;
use crate::overlay::before::Befores;
use crate::overlay::pending::NewChunks;
use crate::overlay::recycled::Recycler;
use crate::queue::conflicts::ConflictSet;
use crate::shared::Shared;
use crate::transaction::write_set::WriteSet;

/// A transaction that is ready to be queued.
pub(super) struct Prepared {
    pub record: Record,
    pub conflict_set: ConflictSet,
    pub payloads: Payloads,
    pub staged: Staged,
}

/// A transaction's payload for the log, and the one for the memtable.
pub(super) struct Payloads {
    pub logged: PendingRecord,
    pub for_memtable: Bytes,
    /// What is known of the keys in `for_memtable`.
    pub befores: Befores,
    pub new_chunks: NewChunks,
}

impl Shared {
    /// Prepares the writes of a transaction; what they refer to in the store is synced.
    ///
    /// # Errors
    /// [`EngineError::TooLargeForSet`]; [`EngineError::Store`].
    pub(super) fn prepare(&self, mut own: WriteSet) -> Result<Prepared, EngineError> {
        let validated: Vec<(TreeId, Vec<u8>)> =
            own.validated().map(|(tree, key)| (tree, key.to_vec())).collect();
        let validated_trees: Vec<TreeId> = own.validated_trees().collect();
        let has_unsynced_base = own.has_unsynced_base();
        let (have, carried) = (std::mem::take(&mut own.members_have), own.carried.take());
        let (record, befores) = own.into_record(self.tree_ids.next().0);
        let new_chunks = NewChunks::of(&record, record.origins(), &*self.store)?;
        if has_unsynced_base {
            self.store_synced(self.store.sync())?;
        }
        let mut payloads = Payloads::of(&record, new_chunks, &self.recycler);
        payloads.befores = befores;
        let logged = &mut payloads.logged;
        let staged = match (&self.order, carried) {
            (None, _) => Staged::default(),
            (Some(_), Some(carried)) => {
                self.carry(&record, carried, logged)?;
                Staged::default()
            }
            (Some(_), None) => self.attach_referenced_chunks(&record, &have, logged)?,
        };
        let conflict_set =
            ConflictSet::new(self.conflict_seed, &record, validated, validated_trees);
        Ok(Prepared { record, conflict_set, payloads, staged })
    }
}

impl Payloads {
    /// Those of `record`, of whose keys nothing is known.
    pub(super) fn of(record: &Record, new_chunks: NewChunks, recycler: &Arc<Recycler>) -> Payloads {
        let payload = record.encode_into(|bytes| recycler.payload(bytes));
        let logged = PendingRecord::new(recycler.share(payload));
        let for_memtable = match record.is_for_memtable() {
            true => logged.payload.clone(),
            false => recycler.share(record.writes_alone(|bytes| recycler.payload(bytes))),
        };
        Payloads { logged, for_memtable, befores: Befores::default(), new_chunks }
    }
}
