//! Objects with the outlines of packs' indexes ([`outline`](crate::pack::outline)), so that a
//! directory opens without reading the indexes: a seventh of their bytes, and few requests.
//!
//! 1. *Young packs* have none: an opening reads their indexes. Once they are many or large, a
//!    sending puts one object with the outlines of all, and HEAD lists it.
//! 2. *Merging*. The object takes in those before it that aren't twice as large as it, and any of
//!    whose packs most are gone. So they are few, and a pack's outline is put again a few times, as
//!    in an LSM tree. What has grown large is left alone.
//! 3. *At an opening* an object comes from a file of its own in the directory, or from the bucket,
//!    and then gets that file. One that is damaged or missing in both is done without: the indexes
//!    of its packs are read, which have it all.
//! 4. *What it names counts* only if HEAD lists the pack as the object knows it. An object of which
//!    nothing counts leaves HEAD, and goes as packs do.

mod format;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::sync::Arc;

use bytes::Bytes;

use self::format::{Outlined, encode, outlines_offset, parse};
use super::format::{Head, Locations, Owner, PackObject, hex};
use super::head::nonce;
use super::pins::Places;
use super::{Line, TieredDisk};
use crate::bucket::create_until_known;
use crate::error::StoreError;
use crate::io::{Disk, StoredBytes};
use crate::location::PackNumber;
use crate::pack::outline::Outline;
use crate::pack::table::format::parse_index;
use crate::tiered::errors::store_error;

/// The suffix of the names of files that have an object.
pub(super) const LOCATIONS_SUFFIX: &str = ".locations";
/// The number of young packs: an opening fetches 16 at a time.
const YOUNG_PACKS_MAX: usize = 64;
/// The bytes of their indexes: 100,000 chunks, which a second fetches.
const YOUNG_INDEX_BYTES_MAX: u64 = 4 << 20;
/// The bytes of the indexes of one object's packs: its own are a seventh.
const INDEX_BYTES_MAX: u64 = 256 << 20;

/// Where the outlines lie that an opening has, by pack.
pub(super) type Outlines = BTreeMap<PackNumber, StoredBytes>;

/// The name of the file in which a directory keeps an object.
pub(super) fn file_name(locations: &Locations) -> String {
    hex(&locations.own) + LOCATIONS_SUFFIX
}

/// The bytes of a pack's index.
fn index_bytes(pack: &PackObject) -> u64 {
    pack.bytes - u64::from(pack.index)
}

/// The outlines of packs that HEAD lists, but for those that are `lost` and those whose files are
/// on the disk. Removes files of objects that it doesn't list.
///
/// # Errors
/// An error of the disk.
pub(super) fn open(
    disk: &dyn Disk,
    places: &Places,
    head: &Head,
    lost: &[PackNumber],
) -> io::Result<Outlines> {
    let names: BTreeSet<String> = disk.list()?.into_iter().collect();
    let listed: BTreeSet<String> = head.locations.iter().map(file_name).collect();
    for name in names.iter().filter(|name| name.ends_with(LOCATIONS_SUFFIX)) {
        if !listed.contains(name) {
            disk.remove(name)?;
        }
    }
    let mut outlines = Outlines::new();
    for locations in &head.locations {
        let Some(Loaded { outlined: found, is_kept }) = load(disk, places, locations) else {
            continue;
        };
        // All of them together are too much for memory.
        let file = is_kept.then(|| disk.open(&file_name(locations)).ok()).flatten();
        let mut offset = outlines_offset(found.len()) as u64;
        for Outlined { number, own, outline } in found {
            let is_listed = head.packs.get(&number).is_some_and(|pack| pack.own == own);
            if is_listed && !lost.contains(&number) && !names.contains(&number.to_string()) {
                let bytes = outline.len();
                let place = match &file {
                    Some(file) => StoredBytes::InFile(Arc::clone(file), offset, bytes),
                    None => StoredBytes::Held(outline.clone()),
                };
                outlines.insert(number, place);
            }
            offset += outline.len() as u64;
        }
    }
    Ok(outlines)
}

/// Removes the files of objects that HEAD listed, and doesn't any more. One that stays goes at the
/// next opening.
pub(super) fn remove_files(disk: &dyn Disk, before: &Head, now: &Head) {
    let gone = before
        .locations
        .iter()
        .filter(|locations| now.locations.iter().all(|listed| listed.own != locations.own));
    gone.for_each(|locations| drop(disk.remove(&file_name(locations))));
}

/// What an object has.
struct Loaded {
    outlined: Vec<Outlined>,
    /// Whether its file has it, too.
    is_kept: bool,
}

/// What an object has, if it is there whole.
fn load(disk: &dyn Disk, places: &Places, locations: &Locations) -> Option<Loaded> {
    let name = file_name(locations);
    let kept = read_file(disk, &name, locations.bytes).ok().and_then(|it| parse(&it, &name).ok());
    if let Some(outlined) = kept {
        return Some(Loaded { outlined, is_kept: true });
    }
    let bucket = places.bucket(locations.owner);
    let (bytes, _) = bucket.load(&locations.name()).ok()??;
    let outlined = parse(&bytes, &name).ok()?;
    // It saves the next opening a request.
    let is_kept = write_file(disk, &name, &bytes).is_ok();
    Some(Loaded { outlined, is_kept })
}

fn read_file(disk: &dyn Disk, name: &str, bytes: u64) -> io::Result<Bytes> {
    let mut read = vec![0; usize::try_from(bytes).map_err(|_| ErrorKind::OutOfMemory)?];
    disk.open(name)?.read_exact_at(0, &mut read)?;
    Ok(Bytes::from(read))
}

/// Not synced: its checksum shows what a power cut made of it.
fn write_file(disk: &dyn Disk, name: &str, bytes: &[u8]) -> io::Result<()> {
    match disk.remove(name) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = disk.create(name)?.write_all_at(0, bytes);
    // A full disk needs its space for other things.
    written.or_else(|error| disk.remove(name).and(Err(error)))
}

impl TieredDisk {
    /// The locations of `packs`, which HEAD is to list: those that it has, as far as they count;
    /// and a new object, which is put, if young packs are many.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the bucket doesn't answer.
    pub(super) fn locate(
        &self,
        line: &Line,
        packs: &BTreeMap<PackNumber, PackObject>,
    ) -> Result<Vec<Locations>, StoreError> {
        let counts = |number: &PackNumber| packs.get(number) == line.head.packs.get(number);
        let mut kept = line.head.locations.clone();
        kept.iter_mut().for_each(|locations| locations.packs.retain(counts));
        kept.retain(|locations| !locations.packs.is_empty());
        let located: BTreeSet<PackNumber> =
            kept.iter().flat_map(|locations| &locations.packs).copied().collect();
        let young = packs.keys().filter(|number| !located.contains(number));
        let mut gathered: BTreeSet<PackNumber> = young.copied().collect();
        let bytes_of = |number: &PackNumber| packs.get(number).map_or(0, index_bytes);
        let mut bytes: u64 = gathered.iter().map(bytes_of).sum();
        if gathered.len() <= YOUNG_PACKS_MAX && bytes <= YOUNG_INDEX_BYTES_MAX {
            return Ok(kept);
        }
        let mut outlines = BTreeMap::new();
        // The newest are the last.
        for position in (0..kept.len()).rev() {
            let own_bytes: u64 = kept[position].packs.iter().map(bytes_of).sum();
            let is_mostly_gone = 2 * kept[position].packs.len() < kept[position].held as usize;
            if (own_bytes <= 2 * bytes || is_mostly_gone) && own_bytes + bytes <= INDEX_BYTES_MAX {
                let merged = kept.remove(position);
                bytes += own_bytes;
                gathered.extend(&merged.packs);
                let has = load(&*self.disk, &self.places, &merged);
                let has = has.into_iter().flat_map(|loaded| loaded.outlined);
                outlines.extend(has.map(|it| ((it.number, it.own), it.outline)));
            }
        }
        let mut outlined = Vec::with_capacity(gathered.len());
        for number in gathered {
            let own = packs[&number].own;
            let known = outlines.remove(&(number, own));
            // One that can't be read now stays young.
            let outline = known.or_else(|| self.outline_of(number, &packs[&number]));
            outlined.extend(outline.map(|outline| Outlined { number, own, outline }));
        }
        kept.extend(self.put_locations(line, &outlined)?);
        Ok(kept)
    }

    fn outline_of(&self, number: PackNumber, pack: &PackObject) -> Option<Bytes> {
        let mut index = vec![0; usize::try_from(index_bytes(pack)).ok()?];
        let file = self.open(&number.to_string()).ok()?;
        file.read_exact_at(u64::from(pack.index), &mut index).ok()?;
        let entries = parse_index(&index, u64::from(pack.index)).ok()?;
        Some(Bytes::from(Outline::new(pack.index, &entries).encode()))
    }

    fn put_locations(
        &self,
        line: &Line,
        outlined: &[Outlined],
    ) -> Result<Option<Locations>, StoreError> {
        if outlined.is_empty() {
            return Ok(None);
        }
        let bytes = encode(outlined);
        let locations = Locations {
            epoch: line.head.epoch,
            own: nonce(&*self.chance),
            bytes: bytes.len() as u64,
            held: u32::try_from(outlined.len()).expect("far fewer packs"),
            packs: outlined.iter().map(|pack| pack.number).collect(),
            owner: Owner::THIS,
        };
        let put = create_until_known(&*self.bucket, &locations.name(), &bytes);
        let taken = || io::Error::other("its object's name is taken");
        put.map_err(store_error)?.ok_or_else(|| StoreError::io(locations.name(), taken()))?;
        let _ = write_file(&*self.disk, &file_name(&locations), &bytes);
        Ok(Some(locations))
    }
}
