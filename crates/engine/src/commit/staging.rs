//! Stages chunks that a replica set's transaction refers to but doesn't contain, where they exceed
//! what an entry carries.
//!
//! 1. It is *staged*: transactions before it, of this engine's own, carry it piece by piece, what
//!    lies below first. Each names the tops of its piece under keys of the system tree that no
//!    layer above has ([`PREFIX`]), so that every member keeps the piece, over crashes and
//!    collections.
//! 2. The transaction itself carries the rest, and the keys go behind it, whatever became of it.
//! 3. Keys that an ended process left go when the next one leads ([`Shared::remove_left_staging`]).
//!
//! So a transaction may name any amount, in the memory of one piece.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash};
use frond_tree::{Bounds, Content, Direction, Value};

use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::log::record::Record;
use crate::log::writer::PendingRecord;
use crate::order::{ChunkBatch, ENTRY_BYTES_MAX, ReferencedChunks, SharedChunks};
use crate::queue::commit_wait::CommitWait;
use crate::queue::conflicts::TransactionStart;
use crate::shared::Shared;
use crate::transaction::Durability;
use crate::transaction::held_locks::{HeldLocks, LockMode};
use crate::transaction::write_set::{StagedWrite, WriteSet};

/// A piece has about so many bytes, and not much more than a memtable: a member that receives,
/// writes and syncs one hears no leader meanwhile.
const PIECE_BYTES: usize = 4 << 20;
/// Keys of the layers above begin with a letter.
const PREFIX: &[u8] = b"\0staged";

/// Keys that keep what was staged.
#[derive(Default)]
pub(super) struct Staged {
    keys: Vec<Bytes>,
}

impl Shared {
    /// Has a record carry the chunks that the other members of the set may not have.
    ///
    /// # Errors
    /// [`EngineError::TooLargeForSet`]; what staging fails with.
    pub(super) fn attach_referenced_chunks(
        &self,
        record: &Record,
        have: &SharedChunks,
        logged: &mut PendingRecord,
    ) -> Result<Staged, EngineError> {
        let mut walk = ReferencedChunks::new(record, &*self.store, have)?;
        let mut staged = Staged::default();
        while let Some(piece) = self.next_piece(&mut walk).transpose() {
            let kept = piece.and_then(|piece| self.stage(piece, &mut staged));
            if let Err(error) = kept {
                self.unstage(staged);
                return Err(error);
            }
        }
        match self.carry(record, walk.take().chunks, logged) {
            Ok(()) => Ok(staged),
            Err(error) => {
                self.unstage(staged);
                Err(error)
            }
        }
    }

    /// Has a record carry these chunks.
    ///
    /// # Errors
    /// [`EngineError::TooLargeForSet`]; [`EngineError::Store`] if they can't be made durable.
    pub(super) fn carry(
        &self,
        record: &Record,
        chunks: Vec<Chunk>,
        logged: &mut PendingRecord,
    ) -> Result<(), EngineError> {
        // As on the members that get them by the entry: the log must not name what a power cut may
        // take.
        let is_own = |hash| record.chunks.binary_search_by_key(&hash, Chunk::hash).is_ok();
        let names = chunks.iter().map(Chunk::hash).filter(|hash| !is_own(*hash));
        let names: Vec<ChunkHash> = names.collect();
        if !names.is_empty() {
            self.store_synced(self.store.sync_these(&names))?;
        }
        logged.referenced_chunks = chunks;
        match logged.carried_bytes() <= ENTRY_BYTES_MAX {
            true => Ok(()),
            false => Err(EngineError::TooLargeForSet { max: ENTRY_BYTES_MAX as u64 }),
        }
    }

    /// The next piece, if there is more than the record itself may carry.
    fn next_piece(
        &self,
        walk: &mut ReferencedChunks<'_>,
    ) -> Result<Option<ChunkBatch>, EngineError> {
        let bytes_max = usize::try_from(self.options.memtable_bytes_max).unwrap_or(PIECE_BYTES);
        let is_more = walk.gather(bytes_max.min(PIECE_BYTES))?;
        if !is_more || !walk.reaches_own {
            return Ok(is_more.then(|| walk.take()));
        }
        // No key can name what leads to a chunk that only the record brings.
        match walk.gather(ENTRY_BYTES_MAX)? {
            true => Err(EngineError::TooLargeForSet { max: ENTRY_BYTES_MAX as u64 }),
            false => Ok(None),
        }
    }

    fn stage(&self, piece: ChunkBatch, staged: &mut Staged) -> Result<(), EngineError> {
        let mut own = WriteSet::default();
        for (hash, bytes) in piece.tops {
            let number = self.staged.fetch_add(1, Ordering::Relaxed);
            let key = [&self.own_prefix()[..], &number.to_be_bytes()].concat();
            staged.keys.push(key.clone().into());
            let value = Some(Value { flags: 0, content: Content::Chunk { hash, bytes } });
            own.write(TreeId::SYSTEM, key.into(), StagedWrite::of(value));
        }
        own.carried = Some(piece.chunks);
        self.commit_own(own, false)
    }

    /// Has the members keep no longer what was staged. If this fails, the chunks stay until another
    /// process leads.
    pub(super) fn unstage(&self, staged: Staged) {
        // The operation before this has its own outcome.
        let _ = self.delete_keys(staged.keys);
    }

    /// Has the members keep no longer what processes have staged that have ended: no transaction
    /// will name it. Returns how many keys that were.
    ///
    /// # Errors
    /// As a commit's: they stay until another process leads.
    pub fn remove_left_staging(&self) -> Result<usize, EngineError> {
        let keys = self.left_by_others()?;
        let count = keys.len();
        self.delete_keys(keys).map(|()| count)
    }

    fn delete_keys(&self, keys: Vec<Bytes>) -> Result<(), EngineError> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut own = WriteSet::default();
        for key in keys {
            own.write(TreeId::SYSTEM, key, StagedWrite::of(None));
        }
        self.commit_own(own, true)
    }

    fn left_by_others(&self) -> Result<Vec<Bytes>, EngineError> {
        let prefix = self.own_prefix();
        let mut keys = Vec::new();
        let all = Bounds::prefix(PREFIX);
        for entry in self.snapshot().range(TreeId::SYSTEM, all, Direction::Ascending)? {
            let key = entry?.key;
            if !key.starts_with(&prefix) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    fn own_prefix(&self) -> Vec<u8> {
        [PREFIX, &self.conflict_seed.to_be_bytes()].concat()
    }

    fn commit_own(&self, own: WriteSet, gives_back: bool) -> Result<(), EngineError> {
        let beginning = TransactionStart {
            sequence: self.visible_sequence(),
            has_read: false,
            without_claims: None,
            gives_back,
            ahead: None,
            term: self.kept.term(),
            requires: None,
        };
        let mut locks = HeldLocks::new(LockMode::Optimistic, self.key_locks.owner());
        self.commit(beginning, own, Durability::Synced, &mut locks, CommitWait::ENDLESS).map(drop)
    }

    fn visible_sequence(&self) -> Sequence {
        self.queue().visible
    }
}
