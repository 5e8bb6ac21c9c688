//! The order of transactions where the log lies in a bucket: a group is committed once its slots
//! are there, and all before them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use frond_store::tiered::{PlacedSlots, Slots};
use frond_store::{ChunkHash, StoreError};

use super::Order;
use super::format::last_sequence;
use crate::ids::Sequence;

/// The number of groups that are on their way at once.
const GROUPS_MAX: usize = 4;

/// The order that the slots of a bucket give.
pub struct SlotOrder {
    slots: Arc<Slots>,
}

impl SlotOrder {
    /// The order that `slots` keep.
    pub fn new(slots: Arc<Slots>) -> SlotOrder {
        SlotOrder { slots }
    }

    pub(crate) fn groups_max(&self) -> usize {
        GROUPS_MAX
    }

    /// A group is put so long after the one before it at the soonest, if that is on its way yet.
    pub(crate) fn linger(&self) -> Duration {
        self.slots.linger()
    }

    /// Gives entries their places, behind all that have theirs. One thread at a time calls it.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if one is none.
    pub(crate) fn place(&self, entries: Vec<Bytes>) -> Result<PlacedSlots, StoreError> {
        let through = |entry: Bytes| Ok((last_sequence(&entry)?.0, entry));
        let entries = entries.into_iter().map(through).collect::<Result<Vec<_>, StoreError>>()?;
        Ok(self.slots.place(entries))
    }

    /// Has `put` end soon, as a thing unknown if there is no answer: the engine is being closed.
    pub(crate) fn give_up(&self) {
        self.slots.give_up();
    }

    /// Puts what has its place, and returns once it and all before it are there.
    ///
    /// # Errors
    /// As [`Order::agree`].
    pub(crate) fn put(
        &self,
        placed: PlacedSlots,
        report_delay: &dyn Fn(StoreError),
    ) -> Result<(), StoreError> {
        self.slots.make(&placed, report_delay)?;
        self.slots.await_before(placed)
    }
}

impl Order for SlotOrder {
    fn agree(
        &self,
        entries: Vec<Bytes>,
        report_delay: &dyn Fn(StoreError),
    ) -> Result<(), StoreError> {
        self.put(self.place(entries)?, report_delay)
    }

    fn is_set(&self) -> bool {
        false
    }

    fn note_self_contained(&self, root: ChunkHash, horizon: Sequence) {
        self.slots.note_root(root, horizon.0);
    }

    fn slots(&self) -> Option<&SlotOrder> {
        Some(self)
    }
}
