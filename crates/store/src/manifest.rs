//! The manifest: which packs belong to the store, how much of each is durable, and the named roots.
//!
//! It is one small file that is replaced as a whole: write `MANIFEST.new`, sync it, rename it over
//! `MANIFEST`, sync the directory. So a power cut leaves the old one or the new one.

mod format;

use std::collections::BTreeMap;
use std::io::ErrorKind;

use crate::chunk::ChunkHash;
use crate::error::StoreError;
use crate::io::Disk;
use crate::location::{PackNumber, Purpose};

/// The manifest's file.
pub(crate) const MANIFEST_NAME: &str = "MANIFEST";
/// What the next manifest is called until it is complete.
pub(crate) const MANIFEST_NEW_NAME: &str = "MANIFEST.new";
/// Longest name of a root: its length is stored in one byte.
pub const ROOT_NAME_BYTES_MAX: usize = u8::MAX as usize;

/// Whether frames may still be appended. Stored: never renumber.
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

/// A place that was set aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Aside {
    /// Where the next frame begins, or behind it: no frame reaches across.
    pub(crate) end: u32,
    /// Why it was.
    pub(crate) why: AsideWhy,
}

/// Why a place was set aside. Stored: never renumber.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum AsideWhy {
    /// It is damaged.
    Damaged = 0,
    /// It is damaged, or a crash left it of a write that wasn't acknowledged.
    DamagedOrTorn = 1,
}

impl AsideWhy {
    fn from_stored(number: u32) -> Option<AsideWhy> {
        [AsideWhy::Damaged, AsideWhy::DamagedOrTorn].into_iter().find(|it| *it as u32 == number)
    }
}

/// A pack that belongs to the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PackEntry {
    pub(crate) number: PackNumber,
    pub(crate) state: PackState,
    pub(crate) purpose: Purpose,
    /// How much of it was durable when the manifest was written: all of a sealed pack.
    pub(crate) bytes: u64,
}

/// What the file holds. *Invariants*: packs ascend; at most one of each purpose is open; frames
/// that were set aside lie in its packs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Manifest {
    /// Counts the manifests that this store has had.
    pub(crate) generation: u64,
    pub(crate) packs: Vec<PackEntry>,
    pub(crate) roots: BTreeMap<String, ChunkHash>,
    /// Where frames begin that were found damaged, or bytes that are no frame: nothing in force
    /// lies there.
    pub(crate) aside: BTreeMap<(PackNumber, u32), Aside>,
}

impl Manifest {
    /// The places in `pack` that were set aside, and where they begin.
    pub(crate) fn aside_in(&self, pack: PackNumber) -> impl Iterator<Item = (u32, Aside)> {
        let places = self.aside.range((pack, 0)..=(pack, u32::MAX));
        places.map(|((_, offset), aside)| (*offset, *aside))
    }
}

/// How publishing a manifest went wrong.
pub(crate) enum PublishError {
    /// The old manifest is still in force.
    Unchanged(StoreError),
    /// Whether the old or the new one will be found by the next opening is unknown.
    Unknown(StoreError),
}

/// Reads the manifest, if there is one.
pub(crate) fn read(disk: &dyn Disk) -> Result<Option<Manifest>, StoreError> {
    let io = |error| StoreError::io(MANIFEST_NAME, error);
    let file = match disk.open(MANIFEST_NAME) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
    };
    let too_large = |_| StoreError::damaged(MANIFEST_NAME, 0, "too large");
    let mut bytes = vec![0; usize::try_from(file.bytes().map_err(io)?).map_err(too_large)?];
    file.read_exact_at(0, &mut bytes).map_err(io)?;
    format::parse(&bytes, MANIFEST_NAME).map(Some)
}

/// Replaces the manifest, durably. Returns its length.
pub(crate) fn publish(disk: &dyn Disk, manifest: &Manifest) -> Result<u64, PublishError> {
    let bytes = format::encode(manifest);
    let write = || {
        let file = match disk.create(MANIFEST_NEW_NAME) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                disk.remove(MANIFEST_NEW_NAME)?;
                disk.create(MANIFEST_NEW_NAME)
            }
            other => other,
        }?;
        file.write_all_at(0, &bytes)?;
        Ok(file)
    };
    let new_io = |error| StoreError::io(MANIFEST_NEW_NAME, error);
    let file = write().map_err(new_io).map_err(PublishError::Unchanged)?;
    file.sync()
        .and_then(|()| disk.rename(MANIFEST_NEW_NAME, MANIFEST_NAME))
        .and_then(|()| disk.sync_directory())
        .map_err(|error| PublishError::Unknown(StoreError::io(MANIFEST_NAME, error)))?;
    Ok(bytes.len() as u64)
}
