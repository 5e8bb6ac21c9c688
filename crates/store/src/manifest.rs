//! The manifest: which packs belong to the store, how much of each is durable, and the named roots.
//!
//! It is one small file that is replaced as a whole, and lies there twice, so that no single damage
//! takes the roots away: write and sync `MANIFEST.new` and `MANIFEST.copy.new`, rename both, sync
//! the directory. Each copy is the old one or the new one, whatever a power cut does.
//!
//! 1. Acknowledged changes stand in both: either is enough.
//! 2. Of two whole copies that differ, the one of the higher generation is in force: a crash left
//!    the other. It is whole and may be believed, since what it names was durable before.
//! 3. So a copy that is damaged, unreadable, missing or behind is written again by the next
//!    publishing, which opening begins with.
//! 4. A copy that is alone should be as new as the other was. A copy that a fault left behind, or
//!    an operator put back, may be older: it is believed as far as nothing else contradicts
//!    ([`LoadedManifest::is_alone`]).

mod format;

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use crate::chunk::ChunkHash;
use crate::error::StoreError;
use crate::io::{Disk, DiskFile};
use crate::location::{PackNumber, Purpose};

/// The manifest's file.
pub(crate) const MANIFEST_NAME: &str = "MANIFEST";
/// Its second copy.
const MANIFEST_COPY_NAME: &str = "MANIFEST.copy";
/// Both: every data directory has one of them from its first moment on.
pub const MANIFEST_NAMES: [&str; 2] = [MANIFEST_NAME, MANIFEST_COPY_NAME];
/// The name of the next manifest until it is complete.
const MANIFEST_NEW_NAME: &str = "MANIFEST.new";
const MANIFEST_COPY_NEW_NAME: &str = "MANIFEST.copy.new";
/// The copies, and what they are called until they are complete.
const COPIES: [(&str, &str); 2] =
    [(MANIFEST_NAME, MANIFEST_NEW_NAME), (MANIFEST_COPY_NAME, MANIFEST_COPY_NEW_NAME)];
/// The generation of a store's first manifest.
const GENERATION_FIRST: u64 = 1;
/// The longest name of a root: its length is stored in one byte.
pub const ROOT_NAME_BYTES_MAX: usize = u8::MAX as usize;

/// The state of a pack: whether frames may still be appended. Stored: never renumber.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub(crate) enum PackState {
    Open = 0,
    Sealed = 1,
}

impl PackState {
    fn from_stored(number: u16) -> Option<PackState> {
        [PackState::Open, PackState::Sealed].into_iter().find(|state| *state as u16 == number)
    }
}

/// A frame that was set aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SetAside {
    /// The offset of the next frame, or one behind it: no frame reaches across.
    pub(crate) end: u32,
    /// The reason why it was.
    pub(crate) why: SetAsideReason,
}

/// The reason why a frame was set aside. Stored: never renumber.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum SetAsideReason {
    /// It is damaged.
    Damaged = 0,
    /// It is damaged, or a crash left it of a write that wasn't acknowledged.
    DamagedOrTorn = 1,
}

impl SetAsideReason {
    fn from_stored(number: u32) -> Option<SetAsideReason> {
        [SetAsideReason::Damaged, SetAsideReason::DamagedOrTorn]
            .into_iter()
            .find(|it| *it as u32 == number)
    }
}

/// A pack that belongs to the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PackEntry {
    pub(crate) number: PackNumber,
    pub(crate) state: PackState,
    pub(crate) purpose: Purpose,
    /// The bytes of it that were durable when the manifest was written: all of a sealed pack.
    pub(crate) bytes: u64,
}

/// The content of the file. *Invariants*: packs ascend; at most one of each purpose is open; frames
/// that were set aside lie in its packs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Manifest {
    /// Counts the manifests that this store has had.
    pub(crate) generation: u64,
    pub(crate) packs: Vec<PackEntry>,
    pub(crate) roots: BTreeMap<String, ChunkHash>,
    /// The offsets of frames that were found damaged, or of bytes that are no frame: nothing in
    /// force lies there.
    pub(crate) aside: BTreeMap<(PackNumber, u32), SetAside>,
}

impl Manifest {
    /// The places in `pack` that were set aside, and where they begin.
    pub(crate) fn aside_in(&self, pack: PackNumber) -> impl Iterator<Item = (u32, SetAside)> {
        let places = self.aside.range((pack, 0)..=(pack, u32::MAX));
        places.map(|((_, offset), aside)| (*offset, *aside))
    }
}

/// An error while a manifest was published.
pub(crate) enum PublishError {
    /// The old manifest is still in force.
    Unchanged(StoreError),
    /// The next opening may find the old or the new one.
    Unknown(StoreError),
}

/// A manifest as it was found on the disk.
pub(crate) struct LoadedManifest {
    /// The one in force.
    pub(crate) manifest: Manifest,
    /// The faults of the copies that are damaged, unreadable or missing, each a
    /// [`StoreError::Damaged`].
    pub(crate) damages: Vec<StoreError>,
    /// Whether only one copy could be read: nothing here says that no later one was in force. So
    /// packs that it doesn't list are kept, and what has the log shows whether all of it is there.
    pub(crate) is_alone: bool,
}

/// Whether `name` is a manifest that was never complete.
pub(crate) fn is_half_made(name: &str) -> bool {
    COPIES.iter().any(|(_, new)| *new == name)
}

/// The bytes of a manifest.
pub(crate) fn encode(manifest: &Manifest) -> Vec<u8> {
    format::encode(manifest)
}

/// Reads the manifest that is `bytes`; `name` is where they lie.
///
/// # Errors
/// [`StoreError::Version`]; [`StoreError::Damaged`].
pub(crate) fn parse(bytes: &[u8], name: &str) -> Result<Manifest, StoreError> {
    format::parse(bytes, name)
}

/// Reads the manifest, if there is one.
///
/// # Errors
/// [`StoreError::Version`] if another version wrote one of the copies; [`StoreError::Damaged`] if
/// both are, or [`StoreError::Io`] if neither can be read.
pub(crate) fn read(disk: &dyn Disk) -> Result<Option<LoadedManifest>, StoreError> {
    let (mut whole, mut damages, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    let mut unreadable = None;
    for (name, _) in COPIES {
        match read_copy(disk, name) {
            Ok(Some(manifest)) => whole.push(manifest),
            Ok(None) => missing.push((name.to_owned(), 0, "missing".to_owned())),
            Err(StoreError::Damaged { file, offset, what }) => damages.push((file, offset, what)),
            Err(StoreError::Io { file, source }) => {
                damages.push((file.clone(), 0, format!("can't be read: {source}")));
                unreadable.get_or_insert(StoreError::Io { file, source });
            }
            Err(other) => return Err(other),
        }
    }
    let is_alone = whole.len() == 1;
    let Some(manifest) = whole.into_iter().max_by_key(|manifest| manifest.generation) else {
        // A copy that the disk doesn't return may be whole. With one damaged and one missing, the
        // damaged one says more.
        let damaged = |(file, offset, what)| StoreError::Damaged { file, offset, what };
        let error = unreadable.or_else(|| damages.into_iter().next().map(damaged));
        return error.map_or(Ok(None), Err);
    };
    // The first publishing may have been cut short between the two.
    if GENERATION_FIRST < manifest.generation {
        damages.append(&mut missing);
    }
    let with_other = |(file, offset, what)| {
        let what = format!("{what}; the other copy is in force");
        StoreError::Damaged { file, offset, what }
    };
    let damages = damages.into_iter().map(with_other).collect();
    Ok(Some(LoadedManifest { manifest, damages, is_alone }))
}

fn read_copy(disk: &dyn Disk, name: &str) -> Result<Option<Manifest>, StoreError> {
    let io = |error| StoreError::io(name, error);
    let file = match disk.open(name) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
    };
    let too_large = |_| StoreError::damaged(name, 0, "too large");
    let mut bytes = vec![0; usize::try_from(file.bytes().map_err(io)?).map_err(too_large)?];
    file.read_exact_at(0, &mut bytes).map_err(io)?;
    format::parse(&bytes, name).map(Some)
}

/// Replaces the manifest, durably. Returns how many bytes were written.
pub(crate) fn publish(disk: &dyn Disk, manifest: &Manifest) -> Result<u64, PublishError> {
    let bytes = format::encode(manifest);
    // Both, before either takes an old one's place: a full disk changes nothing.
    let mut files = Vec::with_capacity(COPIES.len());
    for (_, new) in COPIES {
        let file = write_new(disk, new, &bytes);
        files.push(file.map_err(|error| PublishError::Unchanged(StoreError::io(new, error)))?);
    }
    let replace = || {
        files.iter().try_for_each(|file| file.sync())?;
        COPIES.iter().try_for_each(|(name, new)| disk.rename(new, name))?;
        disk.sync_directory()
    };
    replace().map_err(|error| PublishError::Unknown(StoreError::io(MANIFEST_NAME, error)))?;
    Ok((bytes.len() * COPIES.len()) as u64)
}

fn write_new(disk: &dyn Disk, name: &str, bytes: &[u8]) -> io::Result<Arc<dyn DiskFile>> {
    let file = match disk.create(name) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            disk.remove(name)?;
            disk.create(name)
        }
        other => other,
    }?;
    file.write_all_at(0, bytes)?;
    Ok(file)
}
