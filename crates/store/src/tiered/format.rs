//! The bytes of HEAD, and of the file that says which bucket a directory's packs lie in. The
//! authority is docs/format/bucket.md.
//!
//! ```text
//! HEAD  = prefix generation epoch nonce leader pack-count manifest-bytes slot pack* manifest
//!         checksum
//! DEPOT = prefix id place-bytes place checksum
//! ```

use std::collections::BTreeMap;

use bytes::Bytes;
use twox_hash::XxHash3_64;

use crate::error::StoreError;
use crate::field::{
    Magic, PREFIX_BYTES, array_at, check_prefix, checksum_holds, prefix, u32_at, u64_at,
};
use crate::location::PackNumber;

/// HEAD's name.
pub(crate) const HEAD_NAME: &str = "lines/main/HEAD";
/// The prefix of the names of all slots of the log.
pub(crate) const LOG_PREFIX: &str = "lines/main/log/";
/// The prefix of the names of all packs.
pub(crate) const PACKS_PREFIX: &str = "packs/";
/// The line that they belong to, in their names.
const LINE: &str = "main";

const HEAD_MAGIC: Magic = *b"FRNDHD\x1A\n";
const DEPOT_MAGIC: Magic = *b"FRNDDP\x1A\n";
/// A random number that no other has.
pub(crate) type Nonce = [u8; 16];
pub(super) const CHECKSUM_BYTES: usize = size_of::<u64>();

const OFFSET_GENERATION: usize = PREFIX_BYTES;
const OFFSET_EPOCH: usize = OFFSET_GENERATION + size_of::<u64>();
const OFFSET_NONCE: usize = OFFSET_EPOCH + size_of::<u64>();
const OFFSET_LEADER: usize = OFFSET_NONCE + size_of::<Nonce>();
const OFFSET_PACK_COUNT: usize = OFFSET_LEADER + size_of::<Nonce>();
const OFFSET_MANIFEST_BYTES: usize = OFFSET_PACK_COUNT + size_of::<u32>();
const OFFSET_SLOT_EPOCH: usize = OFFSET_MANIFEST_BYTES + size_of::<u32>();
const OFFSET_SLOT_NUMBER: usize = OFFSET_SLOT_EPOCH + size_of::<u64>();
const OFFSET_PACKS: usize = OFFSET_SLOT_NUMBER + size_of::<u64>();
const _: () = assert!(OFFSET_PACKS == 88); // Stored: change only with a new version.

/// Stands where there is none: epochs begin with 1.
const NO_SLOT: SlotId = SlotId { epoch: 0, number: 0 };

const OFFSET_PACK_NUMBER: usize = 0;
const OFFSET_PACK_INDEX: usize = OFFSET_PACK_NUMBER + size_of::<u32>();
const OFFSET_PACK_EPOCH: usize = OFFSET_PACK_INDEX + size_of::<u32>();
const OFFSET_PACK_OWN: usize = OFFSET_PACK_EPOCH + size_of::<u64>();
const OFFSET_PACK_BYTES: usize = OFFSET_PACK_OWN + size_of::<Nonce>();
const PACK_BYTES: usize = OFFSET_PACK_BYTES + size_of::<u64>();
const _: () = assert!(PACK_BYTES == 40); // Stored: change only with a new version.

const OFFSET_ID: usize = PREFIX_BYTES;
const OFFSET_PLACE_BYTES: usize = OFFSET_ID + size_of::<Nonce>();
const OFFSET_PLACE: usize = OFFSET_PLACE_BYTES + size_of::<u32>();

/// A pack as an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PackObject {
    /// The epoch in which it was put.
    pub(crate) epoch: u64,
    /// Distinguishes its name from all others.
    pub(crate) own: Nonce,
    /// Its length.
    pub(crate) bytes: u64,
    /// The offset of its index.
    pub(crate) index: u32,
}

impl PackObject {
    /// Its name: the first letters spread the names.
    pub(crate) fn name(&self) -> String {
        let own: String = self.own.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{PACKS_PREFIX}{}/{LINE}-{:x}-{own}", &own[..2], self.epoch)
    }
}

/// The epoch in which the object `name` was put, if it is a pack of this line.
pub(crate) fn epoch_of(name: &str) -> Option<u64> {
    let (_, name) = name.strip_prefix(PACKS_PREFIX)?.split_once('/')?;
    let (epoch, _) = name.strip_prefix(LINE)?.strip_prefix('-')?.split_once('-')?;
    u64::from_str_radix(epoch, 16).ok()
}

/// The id of a slot of a line's log: ids ascend.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct SlotId {
    /// The epoch in which it was made.
    pub(crate) epoch: u64,
    /// Its number in that.
    pub(crate) number: u64,
}

impl SlotId {
    /// Its object's name.
    pub(crate) fn name(self) -> String {
        format!("{LOG_PREFIX}{:x}/{:x}", self.epoch, self.number)
    }

    /// The slot of this name, if it is one.
    pub(crate) fn of_name(name: &str) -> Option<SlotId> {
        let (epoch, number) = name.strip_prefix(LOG_PREFIX)?.split_once('/')?;
        let number_of = |digits| u64::from_str_radix(digits, 16).ok();
        Some(SlotId { epoch: number_of(epoch)?, number: number_of(number)? })
    }
}

/// The content of HEAD. *Invariant*: `manifest` is empty, or one whose packs are all among `packs`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Head {
    /// Counts its states.
    pub(crate) generation: u64,
    /// Rises with each opening.
    pub(crate) epoch: u64,
    /// Drawn for each state.
    pub(crate) nonce: Nonce,
    /// The directory that leads.
    pub(crate) leader: Nonce,
    /// The object of each pack.
    pub(crate) packs: BTreeMap<PackNumber, PackObject>,
    /// The manifest with which an empty directory begins; empty: nothing whole has been put yet.
    pub(crate) manifest: Bytes,
    /// The first slot that is needed besides the manifest; `None`: the log isn't in the bucket.
    pub(crate) slot: Option<SlotId>,
}

impl Head {
    /// Its bytes.
    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&prefix(HEAD_MAGIC));
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&self.epoch.to_le_bytes());
        bytes.extend_from_slice(&self.nonce);
        bytes.extend_from_slice(&self.leader);
        let count = |count: usize| u32::try_from(count).expect("far fewer packs").to_le_bytes();
        bytes.extend_from_slice(&count(self.packs.len()));
        bytes.extend_from_slice(&count(self.manifest.len()));
        let SlotId { epoch, number } = self.slot.unwrap_or(NO_SLOT);
        bytes.extend_from_slice(&epoch.to_le_bytes());
        bytes.extend_from_slice(&number.to_le_bytes());
        for (number, pack) in &self.packs {
            bytes.extend_from_slice(&number.0.to_le_bytes());
            bytes.extend_from_slice(&pack.index.to_le_bytes());
            bytes.extend_from_slice(&pack.epoch.to_le_bytes());
            bytes.extend_from_slice(&pack.own);
            bytes.extend_from_slice(&pack.bytes.to_le_bytes());
        }
        bytes.extend_from_slice(&self.manifest);
        sealed(bytes)
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`StoreError::Damaged`]; [`StoreError::Version`].
    pub(crate) fn parse(bytes: &Bytes) -> Result<Head, StoreError> {
        let body = body(bytes, HEAD_MAGIC, HEAD_NAME)?;
        let contradicts = || StoreError::damaged(HEAD_NAME, 0, "contradicts itself");
        Head::parse_body(&bytes.slice(..body)).ok_or_else(contradicts)
    }

    fn parse_body(bytes: &Bytes) -> Option<Head> {
        let pack_count = usize::try_from(u32_at(bytes, OFFSET_PACK_COUNT)?).ok()?;
        let manifest_bytes = usize::try_from(u32_at(bytes, OFFSET_MANIFEST_BYTES)?).ok()?;
        let packs_end = OFFSET_PACKS.checked_add(pack_count.checked_mul(PACK_BYTES)?)?;
        let packs = bytes.get(OFFSET_PACKS..packs_end)?;
        let mut listed = BTreeMap::new();
        for pack in packs.chunks_exact(PACK_BYTES) {
            let object = PackObject {
                epoch: u64_at(pack, OFFSET_PACK_EPOCH)?,
                own: array_at(pack, OFFSET_PACK_OWN)?,
                bytes: u64_at(pack, OFFSET_PACK_BYTES)?,
                index: u32_at(pack, OFFSET_PACK_INDEX)?,
            };
            let is_sound = u64::from(object.index) < object.bytes;
            listed.insert(PackNumber(u32_at(pack, OFFSET_PACK_NUMBER)?), object);
            is_sound.then_some(())?;
        }
        let is_whole = listed.len() == pack_count && bytes.len() == packs_end + manifest_bytes;
        let epoch = u64_at(bytes, OFFSET_SLOT_EPOCH)?;
        let slot = SlotId { epoch, number: u64_at(bytes, OFFSET_SLOT_NUMBER)? };
        is_whole.then_some(Head {
            generation: u64_at(bytes, OFFSET_GENERATION)?,
            epoch: u64_at(bytes, OFFSET_EPOCH)?,
            nonce: array_at(bytes, OFFSET_NONCE)?,
            leader: array_at(bytes, OFFSET_LEADER)?,
            packs: listed,
            manifest: bytes.slice(packs_end..),
            slot: Some(slot).filter(|slot| *slot != NO_SLOT),
        })
    }
}

/// A directory's memory of its bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Membership {
    /// The id of this directory.
    pub(crate) id: Nonce,
    /// The bucket's name.
    pub(crate) place: String,
}

impl Membership {
    /// Its bytes.
    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&prefix(DEPOT_MAGIC));
        bytes.extend_from_slice(&self.id);
        let place_bytes = u32::try_from(self.place.len()).expect("a place is short");
        bytes.extend_from_slice(&place_bytes.to_le_bytes());
        bytes.extend_from_slice(self.place.as_bytes());
        sealed(bytes)
    }

    /// Reads it from the file `name`.
    ///
    /// # Errors
    /// [`StoreError::Damaged`]; [`StoreError::Version`].
    pub(crate) fn parse(bytes: &[u8], name: &str) -> Result<Membership, StoreError> {
        let body = body(bytes, DEPOT_MAGIC, name)?;
        let parse = || {
            let place_bytes = usize::try_from(u32_at(bytes, OFFSET_PLACE_BYTES)?).ok()?;
            let place = bytes.get(OFFSET_PLACE..body)?;
            let place = String::from_utf8(place.to_vec()).ok()?;
            let id = array_at(bytes, OFFSET_ID)?;
            (place.len() == place_bytes).then_some(Membership { id, place })
        };
        parse().ok_or_else(|| StoreError::damaged(name, 0, "contradicts itself"))
    }
}

/// Puts a checksum behind `bytes`.
pub(super) fn sealed(mut bytes: Vec<u8>) -> Bytes {
    let checksum = XxHash3_64::oneshot(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    Bytes::from(bytes)
}

/// Checks prefix and checksum; where the checksum begins.
pub(super) fn body(bytes: &[u8], magic: Magic, name: &str) -> Result<usize, StoreError> {
    check_prefix(bytes, magic, name)?;
    let end = bytes.len().saturating_sub(CHECKSUM_BYTES);
    let holds = |checksum| checksum_holds(checksum, XxHash3_64::oneshot(&bytes[..end]));
    match end < PREFIX_BYTES || !u64_at(bytes, end).is_some_and(holds) {
        true => Err(StoreError::damaged(name, 0, "its checksum is wrong")),
        false => Ok(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        let pack = |own| PackObject { epoch: 0x1f, own: [own; 16], bytes: 5000, index: 4000 };
        Head {
            generation: 7,
            epoch: 0x20,
            nonce: [3; 16],
            leader: [4; 16],
            packs: [(PackNumber(1), pack(0xab)), (PackNumber(9), pack(0xcd))].into(),
            manifest: Bytes::from_static(b"a manifest"),
            slot: Some(SlotId { epoch: 0x1f, number: 77 }),
        }
    }

    #[test]
    fn written_bytes_are_read_back() {
        let bytes = head().encode();
        assert_eq!(Head::parse(&bytes).unwrap(), head());
        assert_eq!(Head::parse(&Head::default().encode()).unwrap(), Head::default());
        let bucket = Membership { id: [5; 16], place: "s3://bucket/prefix".to_owned() };
        assert_eq!(Membership::parse(&bucket.encode(), DEPOT_NAME).unwrap(), bucket);
        for end in 0..bytes.len() {
            assert!(Head::parse(&bytes.slice(..end)).is_err(), "{end} bytes");
        }
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Head::parse(&Bytes::from(changed)).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn names_say_which_slot_it_is() {
        let id = SlotId { epoch: 0x1f, number: 10 };
        assert_eq!(id.name(), "lines/main/log/1f/a");
        assert_eq!(SlotId::of_name(&id.name()), Some(id));
        for other in ["lines/main/HEAD", "lines/main/log/1f", "lines/main/log/x/1", "log/1f/a"] {
            assert_eq!(SlotId::of_name(other), None, "{other}");
        }
    }

    const DEPOT_NAME: &str = "DEPOT";

    #[test]
    fn an_object_has_its_epoch() {
        let name = head().packs[&PackNumber(1)].name();
        assert_eq!(name, format!("packs/ab/main-1f-{}", "ab".repeat(16)));
        assert_eq!(epoch_of(&name), Some(0x1f));
        for other in
            ["packs/ab/other-1f-ab", "lines/main/HEAD", "packs/main-1f-ab", "packs/ab/main-"]
        {
            assert_eq!(epoch_of(other), None, "{other}");
        }
    }
}
