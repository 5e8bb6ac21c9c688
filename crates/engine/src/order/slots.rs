//! The order of transactions of a directory whose log lies in a bucket: a group is agreed on once
//! its slots are there.

use std::sync::Arc;

use bytes::Bytes;
use frond_store::home::Slots;
use frond_store::{ChunkHash, StoreError};

use super::Order;
use super::format::last_sequence;
use crate::ids::Sequence;

/// See the module.
pub struct SlotOrder {
    slots: Arc<Slots>,
}

impl SlotOrder {
    /// The order that `slots` keep.
    pub fn new(slots: Arc<Slots>) -> SlotOrder {
        SlotOrder { slots }
    }
}

impl Order for SlotOrder {
    fn agree(&self, entries: Vec<Bytes>, told: &dyn Fn(StoreError)) -> Result<(), StoreError> {
        for entry in entries {
            let through = last_sequence(&entry)?;
            self.slots.put(entry, through.0, told)?;
        }
        Ok(())
    }

    fn is_set(&self) -> bool {
        false
    }

    fn note_whole(&self, root: ChunkHash, horizon: Sequence) {
        self.slots.note_root(root, horizon.0);
    }

    fn give_up(&self) {
        self.slots.give_up();
    }
}
