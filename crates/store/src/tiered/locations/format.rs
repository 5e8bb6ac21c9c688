//! The bytes of an object with the outlines of packs' indexes, and of its file. The authority is
//! docs/format/bucket.md.
//!
//! ```text
//! locations = prefix pack-count pack* outline* checksum
//! ```

use bytes::Bytes;

use super::super::format::{Nonce, body, sealed};
use crate::error::StoreError;
use crate::field::{Magic, PREFIX_BYTES, array_at, prefix, u32_at, u64_at};
use crate::location::PackNumber;

const LOCATIONS_MAGIC: Magic = *b"FRNDLC\x1A\n";

const OFFSET_PACK_COUNT: usize = PREFIX_BYTES;
const OFFSET_PACKS: usize = OFFSET_PACK_COUNT + size_of::<u64>();
const _: () = assert!(OFFSET_PACKS == 24); // Stored: change only with a new version.

const OFFSET_PACK_NUMBER: usize = 0;
const OFFSET_PACK_OUTLINE_BYTES: usize = OFFSET_PACK_NUMBER + size_of::<u32>();
const OFFSET_PACK_OWN: usize = OFFSET_PACK_OUTLINE_BYTES + size_of::<u32>();
const PACK_BYTES: usize = OFFSET_PACK_OWN + size_of::<Nonce>();
const _: () = assert!(PACK_BYTES == 24); // Stored: change only with a new version.

/// The outline of a pack's index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Outlined {
    pub(super) number: PackNumber,
    /// Distinguishes its object from all others: numbers may come to be another's.
    pub(super) own: Nonce,
    pub(super) outline: Bytes,
}

/// Returns the object that has these.
pub(super) fn encode(packs: &[Outlined]) -> Bytes {
    let outlines_bytes: usize = packs.iter().map(|pack| pack.outline.len()).sum();
    let mut bytes = Vec::with_capacity(OFFSET_PACKS + packs.len() * PACK_BYTES + outlines_bytes);
    bytes.extend_from_slice(&prefix(LOCATIONS_MAGIC));
    bytes.extend_from_slice(&(packs.len() as u64).to_le_bytes());
    for pack in packs {
        let outline_bytes = u32::try_from(pack.outline.len()).expect("less than its index");
        bytes.extend_from_slice(&pack.number.0.to_le_bytes());
        bytes.extend_from_slice(&outline_bytes.to_le_bytes());
        bytes.extend_from_slice(&pack.own);
    }
    packs.iter().for_each(|pack| bytes.extend_from_slice(&pack.outline));
    sealed(bytes)
}

/// The offset of the first outline in an object with so many; the others follow in their order.
pub(super) fn outlines_offset(pack_count: usize) -> usize {
    OFFSET_PACKS + pack_count * PACK_BYTES
}

/// Reads the object `name`.
///
/// # Errors
/// [`StoreError::Damaged`]; [`StoreError::Version`].
pub(super) fn parse(bytes: &Bytes, name: &str) -> Result<Vec<Outlined>, StoreError> {
    let body = body(bytes, LOCATIONS_MAGIC, name)?;
    let contradicts = || StoreError::damaged(name, 0, "contradicts itself");
    parse_body(&bytes.slice(..body)).ok_or_else(contradicts)
}

fn parse_body(bytes: &Bytes) -> Option<Vec<Outlined>> {
    let count = usize::try_from(u64_at(bytes, OFFSET_PACK_COUNT)?).ok()?;
    let mut start = count.checked_mul(PACK_BYTES)?.checked_add(OFFSET_PACKS)?;
    let mut found = Vec::new();
    for pack in bytes.get(OFFSET_PACKS..start)?.chunks_exact(PACK_BYTES) {
        let end = start.checked_add(u32_at(pack, OFFSET_PACK_OUTLINE_BYTES)? as usize)?;
        bytes.get(start..end)?;
        found.push(Outlined {
            number: PackNumber(u32_at(pack, OFFSET_PACK_NUMBER)?),
            own: array_at(pack, OFFSET_PACK_OWN)?,
            outline: bytes.slice(start..end),
        });
        start = end;
    }
    (start == bytes.len()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bytes_are_read_back_and_no_others() {
        let pack = |number: u32, outline: &'static [u8]| Outlined {
            number: PackNumber(number),
            own: [number as u8; 16],
            outline: Bytes::from_static(outline),
        };
        let packs = [pack(3, b"of one"), pack(9, b""), pack(4, b"of another")];
        let bytes = encode(&packs);
        assert_eq!(parse(&bytes, "locations").unwrap(), packs);
        assert_eq!(parse(&encode(&[]), "locations").unwrap(), []);
        for end in 0..bytes.len() {
            assert!(parse(&bytes.slice(..end), "locations").is_err(), "{end} bytes");
        }
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&Bytes::from(changed), "locations").is_err(), "bit {bit}");
        }
    }
}
