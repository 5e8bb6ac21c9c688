//! Looks into the index, whose keys may lie in part in a file; and sends keys there.
//!
//! What a look needs of the file is read before the index is locked; where the file was replaced
//! meanwhile, it is read again.

use std::sync::RwLockWriteGuard;
use std::sync::atomic::Ordering;

use super::LocalStore;
use crate::chunk::ChunkHash;
use crate::error::StoreError;
use crate::index::{Index, KeysRead};
use crate::location::{PackNumber, PackedChunk};

/// After an attempt that failed, another is made once the keys take such a part more.
const AGAIN_SHARE: u64 = 8;
/// The bytes on the disk of a key.
const KEY_BYTES: u64 = 8;

impl LocalStore {
    /// Does `look` with the index, for `names`.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::Damaged`]: the file of keys can't be read.
    pub(super) fn index_for<T>(
        &self,
        names: impl Iterator<Item = ChunkHash> + Clone,
        look: impl FnOnce(&Index, &KeysRead) -> T,
    ) -> Result<T, StoreError> {
        let mut read = KeysRead::default();
        loop {
            let spilled = {
                let index = self.index.read().expect("no panic while the lock is held");
                if index.keys().is_same_file(&read) {
                    return Ok(look(&index, &read));
                }
                index.keys().spilled()
            };
            read = KeysRead::of(spilled, names.clone())?;
        }
    }

    /// The index, for changes that concern `names`.
    ///
    /// # Errors
    /// As [`LocalStore::index_for`].
    pub(super) fn index_mut_for(
        &self,
        names: impl Iterator<Item = ChunkHash> + Clone,
    ) -> Result<(RwLockWriteGuard<'_, Index>, KeysRead), StoreError> {
        let mut read = KeysRead::default();
        loop {
            let spilled = {
                let index = self.index_mut();
                if index.keys().is_same_file(&read) {
                    return Ok((index, read));
                }
                index.keys().spilled()
            };
            read = KeysRead::of(spilled, names.clone())?;
        }
    }

    /// Returns for each of `entries`, the index of the sealed pack `pack`, whether its chunk is in
    /// force there.
    ///
    /// # Errors
    /// As [`LocalStore::index_for`].
    pub(super) fn are_in_force(
        &self,
        pack: PackNumber,
        entries: &[PackedChunk],
    ) -> Result<Vec<bool>, StoreError> {
        let names = entries.iter().map(|entry| entry.hash);
        self.index_for(names.clone(), |index, read| {
            names.map(|hash| index.lies_in(hash, pack, read)).collect()
        })
    }

    /// Moves the keys in memory to the file, if they take more than they may: then one thread is at
    /// it, and readers wait for nothing. Where the disk is full or fails they stay.
    pub(super) fn spill_keys_when_due(&self) {
        let due_at = |index: &Index| index.keys().memory() > self.spill_at.load(Ordering::Relaxed);
        if !self.index(due_at) {
            return;
        }
        let Ok(_one) = self.spiller.try_lock() else { return };
        let frozen = self.index_mut().keys_mut().freeze();
        let is_room = self.writable_bytes().is_none_or(|free| frozen.count() * KEY_BYTES < free);
        let merged = is_room.then(|| frozen.merge(&*self.disk));
        let next = match merged {
            Some(Ok(merged)) => {
                self.index_mut().keys_mut().thaw(&frozen, merged);
                self.keys_memory_max
            }
            _ => {
                let memory = self.index(|index| index.keys().memory());
                memory.saturating_add(memory / AGAIN_SHARE).max(self.keys_memory_max)
            }
        };
        self.spill_at.store(next, Ordering::Relaxed);
    }
}
