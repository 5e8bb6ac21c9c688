//! Fields at fixed offsets of stored bytes, little-endian, read without panicking, and the prefix
//! that every file of Frond begins with.
//!
//! The prefix is the same in all versions to come, so that any build can distinguish "another
//! version" from "damaged": magic, the version that wrote the file, the oldest version that may
//! read it, and a checksum of these.

use twox_hash::XxHash3_64;

use crate::error::StoreError;

/// The version of every stored thing until the format freezes: readable by the same version only.
pub const FORMAT_VERSION: u16 = 0;

/// Bytes that distinguish one kind of file from another.
pub type Magic = [u8; 8];

const OFFSET_WRITE_VERSION: usize = size_of::<Magic>();
const OFFSET_READ_VERSION: usize = OFFSET_WRITE_VERSION + size_of::<u16>();
const OFFSET_CHECKSUM: usize = OFFSET_READ_VERSION + size_of::<u16>();
/// Bytes of the prefix.
pub const PREFIX_BYTES: usize = OFFSET_CHECKSUM + size_of::<u32>();
const _: () = assert!(PREFIX_BYTES == 16); // Stored: change only with a new version.

/// Returns the prefix of a new file.
pub fn prefix(magic: Magic) -> [u8; PREFIX_BYTES] {
    prefix_of_version(magic, FORMAT_VERSION)
}

fn prefix_of_version(magic: Magic, version: u16) -> [u8; PREFIX_BYTES] {
    let mut prefix = [0; PREFIX_BYTES];
    prefix[..OFFSET_WRITE_VERSION].copy_from_slice(&magic);
    prefix[OFFSET_WRITE_VERSION..OFFSET_READ_VERSION].copy_from_slice(&version.to_le_bytes());
    prefix[OFFSET_READ_VERSION..OFFSET_CHECKSUM].copy_from_slice(&version.to_le_bytes());
    let checksum = XxHash3_64::oneshot(&prefix[..OFFSET_CHECKSUM]) as u32;
    prefix[OFFSET_CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
    prefix
}

/// Checks the prefix of `file`, which begins with `bytes`.
///
/// # Errors
/// [`StoreError::Damaged`] if this isn't a file of `magic`'s kind, or its prefix was changed;
/// [`StoreError::Version`] if another version wrote it.
pub fn check_prefix(bytes: &[u8], magic: Magic, file: &str) -> Result<(), StoreError> {
    let damaged = |what: &str| StoreError::damaged(file, 0, what);
    let (Some(found), Some(write_version), Some(read_version), Some(checksum)) = (
        bytes.get(..size_of::<Magic>()),
        u16_at(bytes, OFFSET_WRITE_VERSION),
        u16_at(bytes, OFFSET_READ_VERSION),
        u32_at(bytes, OFFSET_CHECKSUM),
    ) else {
        return Err(damaged("shorter than its header"));
    };
    if found != magic {
        return Err(damaged("does not begin as such a file does"));
    }
    let computed = XxHash3_64::oneshot(&bytes[..OFFSET_CHECKSUM]) as u32;
    if !checksum_holds(checksum.into(), computed.into()) {
        return Err(damaged("checksum of the header is wrong"));
    }
    for found in [read_version, write_version] {
        if found != FORMAT_VERSION {
            let file = file.to_owned();
            return Err(StoreError::Version { file, found, readable: FORMAT_VERSION });
        }
    }
    Ok(())
}

/// Whether a checksum that was stored is the one of what is there. Always, for a fuzzer that tries
/// decoders with mutated bytes: hardly any would get past a checksum.
pub fn checksum_holds(stored: u64, computed: u64) -> bool {
    cfg!(fuzzing) || stored == computed
}

/// The byte at `offset`, if there is one.
pub fn u8_at(bytes: &[u8], offset: usize) -> Option<u8> {
    bytes.get(offset).copied()
}

/// The two bytes at `offset` as a number, if they are there.
pub fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    array_at(bytes, offset).map(u16::from_le_bytes)
}

/// The four bytes at `offset` as a number, if they are there.
pub fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    array_at(bytes, offset).map(u32::from_le_bytes)
}

/// The eight bytes at `offset` as a number, if they are there.
pub fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    array_at(bytes, offset).map(u64::from_le_bytes)
}

/// The `N` bytes at `offset`, if they are there.
pub fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: Magic = *b"FRNDTEST";

    #[test]
    fn a_prefix_is_accepted_as_written_and_refused_otherwise() {
        let good = prefix(MAGIC);
        check_prefix(&good, MAGIC, "f").unwrap();
        assert!(matches!(check_prefix(&good, *b"FRNDNOPE", "f"), Err(StoreError::Damaged { .. })));
        for bytes in 0..PREFIX_BYTES {
            let error = check_prefix(&good[..bytes], MAGIC, "f").unwrap_err();
            assert!(matches!(error, StoreError::Damaged { .. }));
        }
        for bit in 0..PREFIX_BYTES * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            let error = check_prefix(&bad, MAGIC, "f").unwrap_err();
            assert!(matches!(error, StoreError::Damaged { .. }), "bit {bit}");
        }
    }

    #[test]
    fn another_version_is_named() {
        let error = check_prefix(&prefix_of_version(MAGIC, 7), MAGIC, "f").unwrap_err();
        assert_eq!(error.to_string(), "f: format version 7, but this build reads version 0 only");
        let prefix = prefix_of_version(MAGIC, 7);
        assert_eq!(prefix[OFFSET_WRITE_VERSION..OFFSET_CHECKSUM], [7, 0, 7, 0]);
    }

    #[test]
    fn fields_past_the_end_are_none() {
        assert_eq!(u32_at(&[1, 0, 0, 0], 0), Some(1));
        assert_eq!(u32_at(&[1, 0, 0, 0], 1), None);
        assert_eq!(u64_at(&[0; 8], usize::MAX), None);
    }
}
