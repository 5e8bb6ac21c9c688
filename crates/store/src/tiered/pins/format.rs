//! The bytes of a pin. The authority is docs/format/bucket.md.
//!
//! ```text
//! pin = prefix since nonce lease silent state place-bytes names-bytes place names checksum
//! ```

use std::collections::BTreeSet;

use bytes::Bytes;

use super::super::format::{Nonce, body, sealed};
use crate::error::StoreError;
use crate::field::{Magic, PREFIX_BYTES, array_at, prefix, u32_at, u64_at};

const PIN_MAGIC: Magic = *b"FRNDPN\x1A\n";

const OFFSET_SINCE: usize = PREFIX_BYTES;
const OFFSET_NONCE: usize = OFFSET_SINCE + size_of::<i64>();
const OFFSET_LEASE: usize = OFFSET_NONCE + size_of::<Nonce>();
const OFFSET_SILENT: usize = OFFSET_LEASE + size_of::<i64>();
const OFFSET_STATE: usize = OFFSET_SILENT + size_of::<i64>();
const OFFSET_PLACE_BYTES: usize = OFFSET_STATE + size_of::<u32>();
const OFFSET_NAMES_BYTES: usize = OFFSET_PLACE_BYTES + size_of::<u32>();
const OFFSET_PLACE: usize = OFFSET_NAMES_BYTES + size_of::<u32>();
const _: () = assert!(OFFSET_PLACE == 68); // Stored: change only with a new version.

const HELD: u32 = 0; // Stored: never renumber.
const LET_GO: u32 = 1;

/// What a pin says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pinned {
    /// When it was made, by the clock of the machine that did.
    pub(super) since_micros: i64,
    /// Drawn for each state, so that none is there twice: a put that comes late, or one that
    /// replaces what was read, takes no state for an earlier one.
    pub(super) nonce: Nonce,
    /// The time without a renewal after which it is let go.
    pub(super) lease_micros: i64,
    /// The time for which its source has seen no renewal.
    pub(super) silent_micros: i64,
    /// It keeps nothing any more.
    pub(super) is_let_go: bool,
    /// Where the clone lies.
    pub(super) place: String,
    /// The objects that the clone relies on.
    pub(super) names: BTreeSet<String>,
}

impl Pinned {
    /// Its bytes.
    pub(super) fn encode(&self) -> Bytes {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let names = names.join("\n");
        let count = |bytes: &str| u32::try_from(bytes.len()).expect("far fewer").to_le_bytes();
        let mut bytes = prefix(PIN_MAGIC).to_vec();
        bytes.extend_from_slice(&self.since_micros.to_le_bytes());
        bytes.extend_from_slice(&self.nonce);
        bytes.extend_from_slice(&self.lease_micros.to_le_bytes());
        bytes.extend_from_slice(&self.silent_micros.to_le_bytes());
        bytes.extend_from_slice(&if self.is_let_go { LET_GO } else { HELD }.to_le_bytes());
        bytes.extend_from_slice(&count(&self.place));
        bytes.extend_from_slice(&count(&names));
        bytes.extend_from_slice(self.place.as_bytes());
        bytes.extend_from_slice(names.as_bytes());
        sealed(bytes)
    }

    /// Reads the object `name`.
    ///
    /// # Errors
    /// [`StoreError::Damaged`]; [`StoreError::Version`].
    pub(super) fn parse(bytes: &Bytes, name: &str) -> Result<Pinned, StoreError> {
        let body = body(bytes, PIN_MAGIC, name)?;
        let contradicts = || StoreError::damaged(name, 0, "contradicts itself");
        Pinned::parse_body(&bytes[..body]).ok_or_else(contradicts)
    }

    fn parse_body(bytes: &[u8]) -> Option<Pinned> {
        let length = |offset| usize::try_from(u32_at(bytes, offset)?).ok();
        let (place_bytes, names_bytes) = (length(OFFSET_PLACE_BYTES)?, length(OFFSET_NAMES_BYTES)?);
        let (place, names) = bytes.get(OFFSET_PLACE..)?.split_at_checked(place_bytes)?;
        let names = str::from_utf8(names).ok()?.split('\n').filter(|name| !name.is_empty());
        let is_let_go = match u32_at(bytes, OFFSET_STATE)? {
            HELD => false,
            LET_GO => true,
            _ => return None,
        };
        (bytes.len() == OFFSET_PLACE + place_bytes + names_bytes).then_some(Pinned {
            since_micros: u64_at(bytes, OFFSET_SINCE)?.cast_signed(),
            nonce: array_at(bytes, OFFSET_NONCE)?,
            lease_micros: u64_at(bytes, OFFSET_LEASE)?.cast_signed(),
            silent_micros: u64_at(bytes, OFFSET_SILENT)?.cast_signed(),
            is_let_go,
            place: str::from_utf8(place).ok()?.to_owned(),
            names: names.map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bytes_are_read_back_and_no_others() {
        let names = ["packs/ab/main-1-ab", "locations/cd/main-2-cd"].map(str::to_owned).into();
        let place = "s3://bucket/clone".to_owned();
        let pin = Pinned {
            since_micros: -7,
            nonce: [5; 16],
            lease_micros: 30,
            silent_micros: 4,
            is_let_go: true,
            place,
            names,
        };
        let bytes = pin.encode();
        assert_eq!(Pinned::parse(&bytes, "pin").unwrap(), pin);
        let bare = Pinned { names: BTreeSet::new(), is_let_go: false, ..pin };
        assert_eq!(Pinned::parse(&bare.encode(), "pin").unwrap(), bare);
        for end in 0..bytes.len() {
            assert!(Pinned::parse(&bytes.slice(..end), "pin").is_err(), "{end} bytes");
        }
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Pinned::parse(&Bytes::from(changed), "pin").is_err(), "bit {bit}");
        }
    }
}
