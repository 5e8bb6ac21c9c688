//! An entry of a sequence's node: an item, whose name at its end is kept apart, or a child.

use bytes::Bytes;
use frond_store::chunk::HASH_BYTES;

use crate::boundary;
use crate::sequence::Refers;
use crate::sequence::node::{CHILD_ENTRY_BYTES, ITEM_END_BYTES};

/// See the module.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    /// An item without the name that it ends with; of a child nothing.
    pub(super) front: &'a [u8],
    /// That name, or the child's.
    pub(super) reference: Option<&'a [u8; HASH_BYTES]>,
}

impl<'a> Entry<'a> {
    /// An item as its owner gives it.
    pub(super) fn of_item(item: &'a [u8], refers: Refers) -> Entry<'a> {
        match item.split_last_chunk() {
            Some((front, reference)) if refers(item) => Entry { front, reference: Some(reference) },
            _ => Entry { front: item, reference: None },
        }
    }

    /// Returns how long it is.
    pub(super) fn bytes(&self) -> usize {
        self.front.len() + self.reference.map_or(0, |reference| reference.len())
    }

    /// Returns how large the boundary rule takes it to be in a node of `level`.
    pub(super) fn bytes_in_node(&self, level: u8) -> u64 {
        let place_bytes = if level == 0 { ITEM_END_BYTES } else { CHILD_ENTRY_BYTES };
        (place_bytes + self.bytes()) as u64
    }

    /// Its own hash for the boundary rule.
    pub(super) fn hash(&self, seed: u64) -> u64 {
        match (self.front, self.reference) {
            ([], Some(reference)) => boundary::hash(reference, seed),
            (front, Some(reference)) => boundary::hash(reference, boundary::hash(front, seed)),
            (front, None) => boundary::hash(front, seed),
        }
    }

    /// As its owner has it, in `bytes` if it isn't in one place.
    pub(super) fn whole<'b>(&self, bytes: &'b mut Vec<u8>) -> &'b [u8]
    where
        'a: 'b,
    {
        if self.reference.is_none() {
            return self.front;
        }
        bytes.clear();
        self.append_to(bytes);
        bytes
    }

    pub(super) fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.front);
        self.reference.into_iter().for_each(|reference| bytes.extend_from_slice(reference));
    }

    /// The same, on its own.
    pub(super) fn to_bytes(self) -> Bytes {
        Bytes::copy_from_slice(self.whole(&mut Vec::with_capacity(self.bytes())))
    }
}
