//! Writes of a transaction: each is checked, its key locked where that is the way, and staged.
//!
//! A caller that knows whether a key had a value says so by the method that it calls. A count then
//! needn't look that up, and no check here would notice where it is wrong: [`Engine::check`] does.
//!
//! [`Engine::check`]: crate::Engine::check

use bytes::Bytes;
use frond_store::StoreError;
use frond_tree::format::KEY_BYTES_MAX;
use frond_tree::{TreeError, Value};

use super::Transaction;
use crate::change_event::ChangeEvent;
use crate::error::EngineError;
use crate::ids::TreeId;
use crate::overlay::run::DELETION_FLAG;
use crate::transaction::difference::Difference;
use crate::transaction::write_set::StagedWrite;

impl Transaction {
    /// Gives `key` a value. The highest of its flags is the engine's and must not be set.
    ///
    /// # Errors
    /// [`EngineError::NoTree`] if there is no such tree; [`EngineError::Conflict`] if another
    /// transaction has locked or changed the key; [`EngineError::TooLarge`]; [`EngineError::Tree`]
    /// with `KeyTooLong`; [`EngineError::Store`] with `Damaged` if the value has the engine's flag.
    pub fn put(&mut self, tree: TreeId, key: Bytes, value: Value) -> Result<(), EngineError> {
        self.write(tree, key, StagedWrite::of(Some(value)))
    }

    /// As [`Transaction::put`], of a key of which the caller knows, by what this transaction reads,
    /// that it has no value: a count needn't look.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn put_new(&mut self, tree: TreeId, key: Bytes, value: Value) -> Result<(), EngineError> {
        self.note_read();
        self.write(tree, key, StagedWrite::knowing(Some(value), false))
    }

    /// As [`Transaction::put_new`], with the event whose content the value is
    /// ([`EventContent::Written`](crate::EventContent::Written)); as
    /// [`Transaction::record_event`], but it needn't look the value up.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn put_new_recorded(
        &mut self,
        tree: TreeId,
        key: Bytes,
        value: Value,
        event: ChangeEvent,
    ) -> Result<(), EngineError> {
        self.note_read();
        let write = StagedWrite::knowing(Some(value), false);
        self.prepare(tree, &key, write.value.as_ref())?;
        match self.shared.kept.is_on() {
            true => self.own.write_recorded((tree, key), write, event),
            false => self.own.write(tree, key, write),
        }
        self.check_size()
    }

    /// As [`Transaction::put_new`], of a key that has a value.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn put_existing(
        &mut self,
        tree: TreeId,
        key: Bytes,
        value: Value,
    ) -> Result<(), EngineError> {
        self.note_read();
        self.write(tree, key, StagedWrite::knowing(Some(value), true))
    }

    /// As [`Transaction::put`], of a key whose value, if it has one, the new one is probably much
    /// like: where that is so, the log gets what differs.
    ///
    /// # Errors
    /// As [`Transaction::put`]; as [`Transaction::get`], since the old value is read.
    pub fn put_changed(
        &mut self,
        tree: TreeId,
        key: Bytes,
        value: Value,
    ) -> Result<(), EngineError> {
        self.write_changed(tree, key, StagedWrite::of(Some(value)))
    }

    /// As [`Transaction::put_changed`], of a key that the caller has read, and that has a value.
    ///
    /// # Errors
    /// As [`Transaction::put_changed`].
    pub fn put_changed_existing(
        &mut self,
        tree: TreeId,
        key: Bytes,
        value: Value,
    ) -> Result<(), EngineError> {
        self.write_changed(tree, key, StagedWrite::knowing(Some(value), true))
    }

    /// Removes `key`.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete(&mut self, tree: TreeId, key: Bytes) -> Result<(), EngineError> {
        self.write(tree, key, StagedWrite::of(None))
    }

    /// Removes `key`, of which the caller knows, by what this transaction reads, that it has a
    /// value: a count needn't look.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete_existing(&mut self, tree: TreeId, key: Bytes) -> Result<(), EngineError> {
        self.note_read();
        self.write(tree, key, StagedWrite::knowing(None, true))
    }

    fn write_changed(
        &mut self,
        tree: TreeId,
        key: Bytes,
        mut write: StagedWrite,
    ) -> Result<(), EngineError> {
        self.note_read();
        self.prepare(tree, &key, write.value.as_ref())?;
        if let Some(value) = &write.value {
            write.difference = self.difference(tree, &key, value)?.map(Box::new);
        }
        self.own.write(tree, key, write);
        self.check_size()
    }

    fn write(&mut self, tree: TreeId, key: Bytes, write: StagedWrite) -> Result<(), EngineError> {
        self.prepare(tree, &key, write.value.as_ref())?;
        self.own.write(tree, key, write);
        self.check_size()
    }

    /// Refuses what can't be written, and locks the key.
    fn prepare(
        &mut self,
        tree: TreeId,
        key: &[u8],
        value: Option<&Value>,
    ) -> Result<(), EngineError> {
        self.check_tree(tree)?;
        if let Some(flags) = value.map(|value| value.flags)
            && flags & DELETION_FLAG != 0
        {
            // Only what came from elsewhere, as a clone, can have it.
            let what = format!("a value with flags {flags:02x}: the highest is reserved");
            let file = format!("tree {}", tree.0);
            return Err(StoreError::Damaged { file, offset: 0, what }.into());
        }
        if key.len() > KEY_BYTES_MAX {
            return Err(TreeError::KeyTooLong { bytes: key.len(), max: KEY_BYTES_MAX }.into());
        }
        // No other transaction knows a tree that has its base from here.
        if self.own.base(tree).is_none() {
            let since = self.since();
            self.held_locks.lock(&self.shared, tree, key, since)?;
        }
        Ok(())
    }

    /// Returns the difference between the value that `key` has in the snapshot, own writes aside,
    /// and `value`.
    fn difference(
        &self,
        tree: TreeId,
        key: &[u8],
        value: &Value,
    ) -> Result<Option<Difference>, EngineError> {
        if self.own.base(tree).is_some() || !Difference::may_be_little(value) {
            return Ok(None);
        }
        // Not in the list of what must be unchanged for the snapshot to move: the key is locked.
        let snapshot = &self.open.snapshot;
        let Some(old) = snapshot.get(tree, key)? else { return Ok(None) };
        let own = |hash| self.own.chunk(hash);
        let difference = Difference::find(&**snapshot.store(), &own, &old, value);
        snapshot.check_age()?;
        difference.map(Some)
    }
}
