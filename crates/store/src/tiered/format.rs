//! The bytes of HEAD, and of the file that says which bucket a directory's packs lie in. The
//! authority is docs/format/bucket.md.
//!
//! ```text
//! HEAD  = prefix generation epoch nonce leader pack-count manifest-bytes slot locations-count
//!         pin-count source-count pack* locations* pin* source* manifest checksum
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
/// The prefix of the names of all objects with outlines of packs' indexes.
pub(crate) const LOCATIONS_PREFIX: &str = "locations/";
/// The prefix of the names of all pins.
pub(crate) const PINS_PREFIX: &str = "pins/";
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
const OFFSET_LOCATIONS_COUNT: usize = OFFSET_SLOT_NUMBER + size_of::<u64>();
const OFFSET_PIN_COUNT: usize = OFFSET_LOCATIONS_COUNT + size_of::<u64>();
const OFFSET_SOURCE_COUNT: usize = OFFSET_PIN_COUNT + size_of::<u32>();
const OFFSET_PACKS: usize = OFFSET_SOURCE_COUNT + size_of::<u32>();
const _: () = assert!(OFFSET_PACKS == 104); // Stored: change only with a new version.

/// Stands where there is none: epochs begin with 1.
const NO_SLOT: SlotId = SlotId { epoch: 0, number: 0 };

const OFFSET_PACK_NUMBER: usize = 0;
const OFFSET_PACK_INDEX: usize = OFFSET_PACK_NUMBER + size_of::<u32>();
const OFFSET_PACK_EPOCH: usize = OFFSET_PACK_INDEX + size_of::<u32>();
const OFFSET_PACK_OWN: usize = OFFSET_PACK_EPOCH + size_of::<u64>();
const OFFSET_PACK_BYTES: usize = OFFSET_PACK_OWN + size_of::<Nonce>();
const OFFSET_PACK_OWNER: usize = OFFSET_PACK_BYTES + size_of::<u64>();
const PACK_BYTES: usize = OFFSET_PACK_OWNER + size_of::<u32>();
const _: () = assert!(PACK_BYTES == 44); // Stored: change only with a new version.

const OFFSET_LOCATIONS_EPOCH: usize = 0;
const OFFSET_LOCATIONS_OWN: usize = OFFSET_LOCATIONS_EPOCH + size_of::<u64>();
const OFFSET_LOCATIONS_BYTES: usize = OFFSET_LOCATIONS_OWN + size_of::<Nonce>();
const OFFSET_LOCATIONS_HELD: usize = OFFSET_LOCATIONS_BYTES + size_of::<u64>();
const OFFSET_LOCATIONS_PACK_COUNT: usize = OFFSET_LOCATIONS_HELD + size_of::<u32>();
const OFFSET_LOCATIONS_OWNER: usize = OFFSET_LOCATIONS_PACK_COUNT + size_of::<u32>();
const OFFSET_LOCATIONS_PACKS: usize = OFFSET_LOCATIONS_OWNER + size_of::<u32>();
const _: () = assert!(OFFSET_LOCATIONS_PACKS == 44); // Stored: change only with a new version.
const PACK_NUMBER_BYTES: usize = size_of::<u32>();

const OFFSET_ID: usize = PREFIX_BYTES;
const OFFSET_PLACE_BYTES: usize = OFFSET_ID + size_of::<Nonce>();
const OFFSET_PLACE: usize = OFFSET_PLACE_BYTES + size_of::<u32>();

/// The line among whose objects one lies: this one, or one of the sources that its HEAD lists.
/// Stored as 0, or that source's position and 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Owner(u32);

impl Owner {
    /// This line.
    pub(crate) const THIS: Owner = Owner(0);

    /// A source, by its position.
    pub(crate) fn source(position: usize) -> Owner {
        Owner(u32::try_from(position + 1).expect("a line has few sources"))
    }

    /// The same line, as a clone of this one has it: there, this one is the first source.
    pub(crate) fn of_clone(self) -> Owner {
        Owner(self.0 + 1)
    }

    /// The position of the source; `None`: it is this line.
    pub(crate) fn position(self) -> Option<usize> {
        self.0.checked_sub(1).map(|position| position as usize)
    }
}

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
    /// The line that put it, and removes it.
    pub(crate) owner: Owner,
}

impl PackObject {
    /// Its name: the first letters spread the names.
    pub(crate) fn name(&self) -> String {
        object_name(PACKS_PREFIX, self.epoch, &self.own)
    }
}

/// A nonce's digits.
pub(crate) fn hex(nonce: &Nonce) -> String {
    nonce.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name of an object of this line, below `prefix`.
fn object_name(prefix: &str, epoch: u64, own: &Nonce) -> String {
    let own = hex(own);
    format!("{prefix}{}/{LINE}-{epoch:x}-{own}", &own[..2])
}

/// An object with the outlines of packs' indexes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Locations {
    /// The epoch in which it was put.
    pub(crate) epoch: u64,
    /// Distinguishes its name from all others.
    pub(crate) own: Nonce,
    /// Its length.
    pub(crate) bytes: u64,
    /// The number of packs of which it was made.
    pub(crate) held: u32,
    /// Those of them that HEAD lists yet, ascending.
    pub(crate) packs: Vec<PackNumber>,
    /// The line that put it, and removes it.
    pub(crate) owner: Owner,
}

impl Locations {
    /// Its name.
    pub(crate) fn name(&self) -> String {
        object_name(LOCATIONS_PREFIX, self.epoch, &self.own)
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        let count = u32::try_from(self.packs.len()).expect("far fewer packs");
        bytes.extend_from_slice(&self.epoch.to_le_bytes());
        bytes.extend_from_slice(&self.own);
        bytes.extend_from_slice(&self.bytes.to_le_bytes());
        bytes.extend_from_slice(&self.held.to_le_bytes());
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(&self.owner.0.to_le_bytes());
        self.packs.iter().for_each(|pack| bytes.extend_from_slice(&pack.0.to_le_bytes()));
    }

    /// Reads one that `bytes` begin with, which go on behind it.
    fn parse(bytes: &mut &[u8]) -> Option<Locations> {
        let count = usize::try_from(u32_at(bytes, OFFSET_LOCATIONS_PACK_COUNT)?).ok()?;
        let end = count.checked_mul(PACK_NUMBER_BYTES)?.checked_add(OFFSET_LOCATIONS_PACKS)?;
        let (one, rest) = bytes.split_at_checked(end)?;
        *bytes = rest;
        let packs = one[OFFSET_LOCATIONS_PACKS..].chunks_exact(PACK_NUMBER_BYTES);
        let packs: Option<Vec<_>> = packs.map(|pack| u32_at(pack, 0).map(PackNumber)).collect();
        let packs = packs?;
        packs.is_sorted().then_some(Locations {
            epoch: u64_at(one, OFFSET_LOCATIONS_EPOCH)?,
            own: array_at(one, OFFSET_LOCATIONS_OWN)?,
            bytes: u64_at(one, OFFSET_LOCATIONS_BYTES)?,
            held: u32_at(one, OFFSET_LOCATIONS_HELD)?,
            packs,
            owner: Owner(u32_at(one, OFFSET_LOCATIONS_OWNER)?),
        })
    }
}

/// The epoch in which the object `name` was put, if it is a pack of this line, or locations.
pub(crate) fn epoch_of(name: &str) -> Option<u64> {
    let below = [PACKS_PREFIX, LOCATIONS_PREFIX].into_iter().find_map(|it| name.strip_prefix(it));
    let (_, name) = below?.split_once('/')?;
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

/// A line among whose objects a clone has some.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Source {
    /// The bucket's name.
    pub(crate) place: String,
    /// The pin there that keeps what the clone relies on. Zeros: the clone has given it back, and
    /// has nothing there any more.
    pub(crate) pin: Nonce,
}

/// Stands for a pin that was given back.
pub(crate) const NO_PIN: Nonce = [0; 16];

impl Source {
    fn encode(&self, bytes: &mut Vec<u8>) {
        let place_bytes = u32::try_from(self.place.len()).expect("a place is short");
        bytes.extend_from_slice(&self.pin);
        bytes.extend_from_slice(&place_bytes.to_le_bytes());
        bytes.extend_from_slice(self.place.as_bytes());
    }

    /// Reads one that `bytes` begin with, which go on behind it.
    fn parse(bytes: &mut &[u8]) -> Option<Source> {
        let place_bytes = usize::try_from(u32_at(bytes, size_of::<Nonce>())?).ok()?;
        let start = size_of::<Nonce>() + size_of::<u32>();
        let (one, rest) = bytes.split_at_checked(start.checked_add(place_bytes)?)?;
        *bytes = rest;
        let place = str::from_utf8(&one[start..]).ok()?.to_owned();
        Some(Source { place, pin: array_at(one, 0)? })
    }
}

/// The content of HEAD.
///
/// *Invariants*
/// 1. `manifest` is empty, or one whose packs are all among `packs`.
/// 2. So are those of `locations`, each of which is in one of them at most.
/// 3. The owner of each object is among `sources`, or it is this line.
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
    /// The objects with outlines of their indexes.
    pub(crate) locations: Vec<Locations>,
    /// The pins of clones, which keep objects that this doesn't list.
    pub(crate) pins: Vec<Nonce>,
    /// The line of which this is a clone, if it is one, and those of which that was one; none goes
    /// from here, so their positions stay.
    pub(crate) sources: Vec<Source>,
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
        bytes.extend_from_slice(&(self.locations.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&count(self.pins.len()));
        bytes.extend_from_slice(&count(self.sources.len()));
        for (number, pack) in &self.packs {
            bytes.extend_from_slice(&number.0.to_le_bytes());
            bytes.extend_from_slice(&pack.index.to_le_bytes());
            bytes.extend_from_slice(&pack.epoch.to_le_bytes());
            bytes.extend_from_slice(&pack.own);
            bytes.extend_from_slice(&pack.bytes.to_le_bytes());
            bytes.extend_from_slice(&pack.owner.0.to_le_bytes());
        }
        self.locations.iter().for_each(|locations| locations.encode(&mut bytes));
        self.pins.iter().for_each(|pin| bytes.extend_from_slice(pin));
        self.sources.iter().for_each(|source| source.encode(&mut bytes));
        bytes.extend_from_slice(&self.manifest);
        sealed(bytes)
    }

    /// The names of all objects of this line that it lists.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.names_of(Owner::THIS)
    }

    /// The names of all objects of `owner`'s that it lists.
    pub(crate) fn names_of(&self, owner: Owner) -> impl Iterator<Item = String> {
        let packs = self.packs.values().filter(move |pack| pack.owner == owner);
        let locations = self.locations.iter().filter(move |it| it.owner == owner);
        packs.map(PackObject::name).chain(locations.map(Locations::name))
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
                owner: Owner(u32_at(pack, OFFSET_PACK_OWNER)?),
            };
            let is_sound = u64::from(object.index) < object.bytes;
            listed.insert(PackNumber(u32_at(pack, OFFSET_PACK_NUMBER)?), object);
            is_sound.then_some(())?;
        }
        let mut rest = bytes.get(packs_end..)?;
        let mut locations = Vec::new();
        for _ in 0..u64_at(bytes, OFFSET_LOCATIONS_COUNT)? {
            locations.push(Locations::parse(&mut rest)?);
        }
        let pins = parse_pins(&mut rest, u32_at(bytes, OFFSET_PIN_COUNT)?)?;
        let mut sources = Vec::new();
        for _ in 0..u32_at(bytes, OFFSET_SOURCE_COUNT)? {
            sources.push(Source::parse(&mut rest)?);
        }
        let owners = listed.values().map(|pack| pack.owner);
        let mut owners = owners.chain(locations.iter().map(|it| it.owner));
        let owners_exist = owners.all(|owner| owner.0 as usize <= sources.len());
        let mut located: Vec<PackNumber> =
            locations.iter().flat_map(|locations| &locations.packs).copied().collect();
        located.sort_unstable();
        let is_located_once = located.is_sorted_by(|left, right| left < right)
            && located.iter().all(|number| listed.contains_key(number));
        let is_whole = listed.len() == pack_count
            && owners_exist
            && is_located_once
            && rest.len() == manifest_bytes;
        let manifest_start = bytes.len() - rest.len();
        let epoch = u64_at(bytes, OFFSET_SLOT_EPOCH)?;
        let slot = SlotId { epoch, number: u64_at(bytes, OFFSET_SLOT_NUMBER)? };
        is_whole.then_some(Head {
            generation: u64_at(bytes, OFFSET_GENERATION)?,
            epoch: u64_at(bytes, OFFSET_EPOCH)?,
            nonce: array_at(bytes, OFFSET_NONCE)?,
            leader: array_at(bytes, OFFSET_LEADER)?,
            packs: listed,
            locations,
            pins,
            sources,
            manifest: bytes.slice(manifest_start..),
            slot: Some(slot).filter(|slot| *slot != NO_SLOT),
        })
    }
}

fn parse_pins(rest: &mut &[u8], count: u32) -> Option<Vec<Nonce>> {
    let bytes = usize::try_from(count).ok()?.checked_mul(size_of::<Nonce>())?;
    let (pins, behind) = rest.split_at_checked(bytes)?;
    *rest = behind;
    pins.chunks_exact(size_of::<Nonce>()).map(|pin| array_at(pin, 0)).collect()
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
        let pack = |own| PackObject {
            epoch: 0x1f,
            own: [own; 16],
            bytes: 5000,
            index: 4000,
            owner: if own == 0xcd { Owner::source(1) } else { Owner::THIS },
        };
        let locations = |epoch, number| Locations {
            epoch,
            own: [epoch as u8; 16],
            bytes: 70,
            held: 5,
            packs: vec![PackNumber(number)],
            owner: Owner::THIS,
        };
        let source = |place: &str, pin| Source { place: place.to_owned(), pin };
        Head {
            generation: 7,
            epoch: 0x20,
            nonce: [3; 16],
            leader: [4; 16],
            packs: [(PackNumber(1), pack(0xab)), (PackNumber(9), pack(0xcd))].into(),
            locations: vec![locations(3, 9), locations(4, 1)],
            pins: vec![[8; 16], [9; 16]],
            sources: vec![
                source("s3://bucket/source", NO_PIN),
                source("s3://bucket/further", [10; 16]),
            ],
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
        let mut other = head();
        other.locations[1].packs.push(PackNumber(9));
        assert!(Head::parse(&other.encode()).is_err(), "a pack is located twice");
        other.locations[1].packs[1] = PackNumber(10);
        assert!(Head::parse(&other.encode()).is_err(), "a pack that isn't listed");
        other = Head { sources: head().sources[..1].to_vec(), ..head() };
        assert!(Head::parse(&other.encode()).is_err(), "a pack of no line");
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
        assert_eq!(epoch_of(&head().locations[0].name()), Some(3));
        for other in
            ["packs/ab/other-1f-ab", "lines/main/HEAD", "packs/main-1f-ab", "packs/ab/main-"]
        {
            assert_eq!(epoch_of(other), None, "{other}");
        }
    }
}
