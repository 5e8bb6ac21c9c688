//! The bytes of a slot. The authority is docs/format/bucket.md.
//!
//! ```text
//! slot = prefix epoch number before closed-by through entry checksum
//! ```

use bytes::Bytes;

use crate::error::StoreError;
use crate::field::{Magic, PREFIX_BYTES, prefix, u64_at};
use crate::tiered::format::{CHECKSUM_BYTES, SlotId, body, sealed};

const SLOT_MAGIC: Magic = *b"FRNDSL\x1A\n";

const OFFSET_EPOCH: usize = PREFIX_BYTES;
const OFFSET_NUMBER: usize = OFFSET_EPOCH + size_of::<u64>();
const OFFSET_BEFORE: usize = OFFSET_NUMBER + size_of::<u64>();
const OFFSET_CLOSED_BY: usize = OFFSET_BEFORE + size_of::<u64>();
const OFFSET_THROUGH: usize = OFFSET_CLOSED_BY + size_of::<u64>();
const OFFSET_ENTRY: usize = OFFSET_THROUGH + size_of::<u64>();
const _: () = assert!(OFFSET_ENTRY == 56); // Stored: change only with a new version.

/// Stands for the checksum of the slot before the first of an epoch.
pub(super) const NONE_BEFORE: u64 = 0;
/// The mark in the place of the epoch that closed it, where a slot has an entry.
const NOT_CLOSED: u64 = 0;

/// A slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Slot {
    /// The slot's id.
    pub(super) id: SlotId,
    /// The checksum of the one before it in its epoch.
    pub(super) before: u64,
    pub(super) content: Content,
}

/// The purpose of a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Content {
    /// An entry of the log, and how far the log is with it.
    Entry { through: u64, entry: Bytes },
    /// No later slot of this epoch counts: one that leads in another epoch made it.
    Tombstone { closed_by: u64 },
}

impl Slot {
    /// Its bytes.
    pub(super) fn encode(&self) -> Bytes {
        let none = Bytes::new();
        let (closed_by, through, entry) = match &self.content {
            Content::Entry { through, entry } => (NOT_CLOSED, *through, entry),
            Content::Tombstone { closed_by } => (*closed_by, 0, &none),
        };
        let mut bytes = Vec::with_capacity(OFFSET_ENTRY + entry.len() + CHECKSUM_BYTES);
        bytes.extend_from_slice(&prefix(SLOT_MAGIC));
        for field in [self.id.epoch, self.id.number, self.before, closed_by, through] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.extend_from_slice(entry);
        sealed(bytes)
    }

    /// Reads the slot `id`, with its checksum.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], if it is another slot too; [`StoreError::Version`].
    pub(super) fn parse(bytes: &Bytes, id: SlotId) -> Result<(Slot, u64), StoreError> {
        let name = id.name();
        let end = body(bytes, SLOT_MAGIC, &name)?;
        let parse = || {
            let (epoch, number) = (u64_at(bytes, OFFSET_EPOCH)?, u64_at(bytes, OFFSET_NUMBER)?);
            let is_entry = OFFSET_ENTRY <= end && SlotId { epoch, number } == id;
            is_entry.then_some(())?;
            let content = match u64_at(bytes, OFFSET_CLOSED_BY)? {
                NOT_CLOSED => Content::Entry {
                    through: u64_at(bytes, OFFSET_THROUGH)?,
                    entry: bytes.slice(OFFSET_ENTRY..end),
                },
                closed_by => Content::Tombstone { closed_by },
            };
            Some((Slot { id, before: u64_at(bytes, OFFSET_BEFORE)?, content }, checksum(bytes)))
        };
        parse().ok_or_else(|| StoreError::damaged(&name, 0, "contradicts itself"))
    }
}

/// The checksum at a slot's end, by which the next one names it.
pub(super) fn checksum(bytes: &Bytes) -> u64 {
    u64_at(bytes, bytes.len() - CHECKSUM_BYTES).expect("a slot ends with a checksum")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: SlotId = SlotId { epoch: 0x1f, number: 10 };

    #[test]
    fn written_bytes_are_read_back() {
        let entry = Content::Entry { through: 9, entry: Bytes::from_static(b"an entry") };
        for content in [entry, Content::Tombstone { closed_by: 0x20 }] {
            let slot = Slot { id: ID, before: 77, content };
            let bytes = slot.encode();
            assert_eq!(Slot::parse(&bytes, ID).unwrap(), (slot, checksum(&bytes)));
            for other in [SlotId { number: 11, ..ID }, SlotId { epoch: 1, ..ID }] {
                assert!(Slot::parse(&bytes, other).is_err(), "it is another one");
            }
            for end in 0..bytes.len() {
                assert!(Slot::parse(&bytes.slice(..end), ID).is_err(), "{end} bytes");
            }
            for bit in 0..8 * bytes.len() {
                let mut changed = bytes.to_vec();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert!(Slot::parse(&Bytes::from(changed), ID).is_err(), "bit {bit}");
            }
        }
    }
}
