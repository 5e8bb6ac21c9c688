//! The table of what a file of extents has, so that a restart goes on with it. The authority is
//! docs/format/bucket.md.
//!
//! ```text
//! EXTENTS.table = prefix pack-count slot-count pack* slot* checksum
//! ```
//!
//! A pack is named by what tells its object's name from all others, too: the number alone may come
//! to be another's.

use std::collections::BTreeMap;

use super::super::format::{CHECKSUM_BYTES, Nonce, body, sealed};
use crate::error::StoreError;
use crate::field::{Magic, PREFIX_BYTES, array_at, prefix, u8_at, u32_at, u64_at};
use crate::location::PackNumber;

/// An extent's bytes, but for a pack's last.
pub(in crate::tiered) const EXTENT_BYTES: u64 = 64 << 10;
/// The table of the file.
pub(super) const TABLE_NAME: &str = "EXTENTS.table";

/// A part of a pack, by the pack's number and its own.
pub(in crate::tiered) type Extent = (PackNumber, u32);

/// A slot of the file.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(super) struct Slot {
    /// `None`: free, or being written.
    pub(super) extent: Option<Extent>,
    pub(super) checksum: u64,
    pub(super) bytes: u32,
    pub(super) uses: u8,
    pub(super) is_being_written: bool,
}

const TABLE_MAGIC: Magic = *b"FRNDEX\x1A\n";

const OFFSET_PACK_COUNT: usize = PREFIX_BYTES;
const OFFSET_SLOT_COUNT: usize = OFFSET_PACK_COUNT + size_of::<u32>();
const OFFSET_PACKS: usize = OFFSET_SLOT_COUNT + size_of::<u32>();
const _: () = assert!(OFFSET_PACKS == 24); // Stored: change only with a new version.

const OFFSET_PACK_OWN: usize = size_of::<u32>();
const PACK_BYTES: usize = OFFSET_PACK_OWN + size_of::<Nonce>();
const _: () = assert!(PACK_BYTES == 20); // Stored: change only with a new version.

const OFFSET_SLOT_EXTENT: usize = size_of::<u32>();
const OFFSET_SLOT_BYTES: usize = OFFSET_SLOT_EXTENT + size_of::<u32>();
const OFFSET_SLOT_USES: usize = OFFSET_SLOT_BYTES + size_of::<u32>();
/// Three bytes behind the uses are zero.
const OFFSET_SLOT_CHECKSUM: usize = OFFSET_SLOT_USES + size_of::<u32>();
const SLOT_BYTES: usize = OFFSET_SLOT_CHECKSUM + size_of::<u64>();
const _: () = assert!(SLOT_BYTES == 24); // Stored: change only with a new version.

/// What a table says.
#[derive(Default, PartialEq, Debug)]
pub(super) struct Table {
    /// What tells the objects' names from all others, of the packs that slots have parts of.
    pub(super) packs: BTreeMap<PackNumber, Nonce>,
    /// The slots, in their order in the file.
    pub(super) slots: Vec<Slot>,
}

impl Table {
    /// Its bytes. What is being written counts as free.
    pub(super) fn encode(&self) -> Vec<u8> {
        let room = OFFSET_PACKS + PACK_BYTES * self.packs.len() + SLOT_BYTES * self.slots.len();
        let mut bytes = Vec::with_capacity(room + CHECKSUM_BYTES);
        bytes.extend_from_slice(&prefix(TABLE_MAGIC));
        let count = |count: usize| u32::try_from(count).expect("far fewer slots").to_le_bytes();
        bytes.extend_from_slice(&count(self.packs.len()));
        bytes.extend_from_slice(&count(self.slots.len()));
        for (number, own) in &self.packs {
            bytes.extend_from_slice(&number.0.to_le_bytes());
            bytes.extend_from_slice(own);
        }
        for slot in &self.slots {
            let known = slot.extent.filter(|(pack, _)| self.packs.contains_key(pack));
            let Some((pack, extent)) = known else {
                bytes.extend_from_slice(&[0; SLOT_BYTES]);
                continue;
            };
            bytes.extend_from_slice(&pack.0.to_le_bytes());
            bytes.extend_from_slice(&extent.to_le_bytes());
            bytes.extend_from_slice(&slot.bytes.to_le_bytes());
            bytes.extend_from_slice(&u32::from(slot.uses).to_le_bytes());
            bytes.extend_from_slice(&slot.checksum.to_le_bytes());
        }
        sealed(bytes).into()
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`StoreError::Damaged`]; [`StoreError::Version`].
    pub(super) fn parse(bytes: &[u8]) -> Result<Table, StoreError> {
        let end = body(bytes, TABLE_MAGIC, TABLE_NAME)?;
        let contradicts = || StoreError::damaged(TABLE_NAME, 0, "contradicts itself");
        Table::parse_body(&bytes[..end]).ok_or_else(contradicts)
    }

    fn parse_body(bytes: &[u8]) -> Option<Table> {
        let count = |offset| usize::try_from(u32_at(bytes, offset)?).ok();
        let (pack_count, slot_count) = (count(OFFSET_PACK_COUNT)?, count(OFFSET_SLOT_COUNT)?);
        let packs_end = OFFSET_PACKS.checked_add(pack_count.checked_mul(PACK_BYTES)?)?;
        let slots_end = packs_end.checked_add(slot_count.checked_mul(SLOT_BYTES)?)?;
        if slots_end != bytes.len() {
            return None;
        }
        let mut table = Table::default();
        for pack in bytes[OFFSET_PACKS..packs_end].chunks_exact(PACK_BYTES) {
            table.packs.insert(PackNumber(u32_at(pack, 0)?), array_at(pack, OFFSET_PACK_OWN)?);
        }
        for slot in bytes[packs_end..].chunks_exact(SLOT_BYTES) {
            let part = u32_at(slot, OFFSET_SLOT_BYTES)?;
            let extent = (PackNumber(u32_at(slot, 0)?), u32_at(slot, OFFSET_SLOT_EXTENT)?);
            let is_sound = u64::from(part) <= EXTENT_BYTES;
            is_sound.then_some(())?;
            table.slots.push(match part {
                0 => Slot::default(),
                _ => Slot {
                    extent: table.packs.contains_key(&extent.0).then_some(extent),
                    checksum: u64_at(slot, OFFSET_SLOT_CHECKSUM)?,
                    bytes: part,
                    uses: u8_at(slot, OFFSET_SLOT_USES)?,
                    is_being_written: false,
                },
            });
        }
        Some(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_it_was_written_and_a_changed_one_is_not() {
        let slot = |pack, extent| Slot {
            extent: Some((PackNumber(pack), extent)),
            checksum: 0x1234_5678_9abc_def0,
            bytes: 65_536,
            uses: 3,
            is_being_written: false,
        };
        let packs = [(PackNumber(1), [7; 16]), (PackNumber(9), [8; 16])].into();
        let table = Table { packs, slots: vec![slot(1, 0), Slot::default(), slot(9, 77)] };
        let bytes = table.encode();
        assert_eq!(Table::parse(&bytes).unwrap(), table);
        assert_eq!(bytes.len(), 24 + 2 * 20 + 3 * 24 + 8);
        for end in 0..bytes.len() {
            assert!(Table::parse(&bytes[..end]).is_err(), "{end} bytes");
        }
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Table::parse(&changed).is_err(), "bit {bit}");
        }
        // Of a pack that it doesn't name, a slot has nothing.
        let unnamed = Table { packs: [(PackNumber(9), [8; 16])].into(), slots: vec![slot(1, 0)] };
        assert_eq!(Table::parse(&unnamed.encode()).unwrap().slots, [Slot::default()]);
    }
}
