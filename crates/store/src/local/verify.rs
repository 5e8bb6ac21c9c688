//! Reads a whole store from the disk and lists what is damaged.
//!
//! Pack by pack: the index of a sealed one is read anew, of an open one that in memory is taken;
//! each frame is read by it, so that one damaged frame doesn't hide those behind it. Headers and
//! the manifest are read again, too.

use std::sync::Arc;

use super::LocalStore;
use crate::damage::Damage;
use crate::error::StoreError;
use crate::location::PackedChunk;
use crate::manifest::{self, LoadedManifest, MANIFEST_NAME};
use crate::pack::Pack;
use crate::pack::reader::{Naming, check_header, pick, read_frame, read_index};
use crate::pack::recover::recover;

/// The number of chunks between two calls of `progress`.
const CHUNKS_A_REPORT: u64 = 256;

pub(super) fn verify(
    store: &LocalStore,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<StoreError>, StoreError> {
    let mut damages = Vec::new();
    let mut note = |result: Result<(), StoreError>| match result {
        Ok(()) => Ok(()),
        Err(error @ StoreError::Io { .. }) => Err(error),
        Err(error) => {
            damages.push(error);
            Ok(())
        }
    };
    let roots = {
        // Held while the file is read, so that it isn't being replaced.
        let publisher = store.publisher();
        for damage in check_manifest(store)? {
            note(Err(damage))?;
        }
        publisher.manifest.roots.clone()
    };
    for hash in roots.into_values() {
        // Damage on the way is found below, once.
        if let Ok(None) = store.find(hash) {
            note(Err(store.absent(hash)))?;
        }
    }
    for damage in store.copies.check() {
        note(Err(damage))?;
    }
    let mut done = 0;
    let packs: Vec<Arc<Pack>> = store.index(|index| index.packs().values().cloned().collect());
    for pack in packs {
        let (chunks, is_whole) = chunks_of(store, &pack)?;
        note(is_whole)?;
        for frame in chunks.chunk_by(|left, right| left.place == right.place) {
            note(verify_frame(store, &pack, frame))?;
            let reports = done / CHUNKS_A_REPORT;
            done += frame.len() as u64;
            if reports < done / CHUNKS_A_REPORT {
                progress(done);
            }
        }
    }
    progress(done);
    // Frames that were set aside were found before, or just now.
    for damage in store.all_damages() {
        if !is_listed(&damages, &damage) {
            damages.push(damage.error());
        }
    }
    Ok(damages)
}

fn is_listed(damages: &[StoreError], damage: &Damage) -> bool {
    damages.iter().any(|error| {
        matches!(error, StoreError::Damaged { file, offset, .. }
            if *file == damage.file && *offset == damage.offset)
    })
}

/// The chunks of a pack by their places, and whether the index that lists them is whole; if not
/// they are those that a scan finds.
fn chunks_of(
    store: &LocalStore,
    pack: &Pack,
) -> Result<(Vec<PackedChunk>, Result<(), StoreError>), StoreError> {
    let listed = match pack.table.get() {
        Some(table) => sealed_chunks(store, pack, table.pack_bytes),
        None => check_header(pack).map(|()| open_chunks(store, pack)),
    };
    let (mut chunks, is_whole) = match listed {
        Ok(chunks) => (chunks, Ok(())),
        Err(error @ StoreError::Io { .. }) => return Err(error),
        Err(error) => (found_by_scanning(pack)?, Err(error)),
    };
    chunks.sort_unstable_by_key(|chunk| chunk.place);
    Ok((chunks, is_whole))
}

/// The chunks in force of a sealed pack.
fn sealed_chunks(
    store: &LocalStore,
    pack: &Pack,
    pack_bytes: u64,
) -> Result<Vec<PackedChunk>, StoreError> {
    let mut chunks = read_index(pack, pack_bytes)?;
    let mut are_in_force = store.are_in_force(pack.number, &chunks)?.into_iter();
    chunks.retain(|_| are_in_force.next() == Some(true));
    Ok(chunks)
}

fn open_chunks(store: &LocalStore, pack: &Pack) -> Vec<PackedChunk> {
    store.index(|index| {
        let here = index.open_chunks().filter(|(_, at)| at.pack == pack.number);
        here.map(|(hash, at)| PackedChunk { hash: *hash, place: at.place, refers: at.refers })
            .collect()
    })
}

/// The chunks of a pack whose index is damaged.
fn found_by_scanning(pack: &Pack) -> Result<Vec<PackedChunk>, StoreError> {
    let bytes = pack.file.bytes().map_err(|error| pack.io(error))?;
    Ok(recover(pack, bytes)?.entries)
}

/// Checks the frame that should hold all of `chunks`, and sets it aside if it is damaged.
fn verify_frame(store: &LocalStore, pack: &Pack, chunks: &[PackedChunk]) -> Result<(), StoreError> {
    let checked = check_chunks(pack, chunks);
    if let Err(StoreError::Damaged { what, .. }) = &checked {
        store.set_frame_aside(pack, chunks, what)?;
    }
    checked
}

fn check_chunks(pack: &Pack, chunks: &[PackedChunk]) -> Result<(), StoreError> {
    let place = chunks[0].place;
    let found = read_frame(pack, place, Naming::ByHash)?;
    for PackedChunk { hash, refers, .. } in chunks {
        let chunk = pick(pack, u64::from(place.offset), &found, *hash)?;
        if (chunk.reference_count() > 0) != *refers {
            let what = format!("the index is wrong about the references of chunk {hash}");
            return Err(pack.damaged(u64::from(place.offset), &what));
        }
    }
    Ok(())
}

/// Returns the faults in the manifest's copies. The caller holds the publisher's lock.
pub(super) fn check_manifest(store: &LocalStore) -> Result<Vec<StoreError>, StoreError> {
    match manifest::read(&*store.disk) {
        Ok(Some(LoadedManifest { damages, .. })) => Ok(damages),
        Ok(None) => Ok(vec![StoreError::damaged(MANIFEST_NAME, 0, "missing")]),
        Err(error @ StoreError::Io { .. }) => Err(error),
        Err(error) => Ok(vec![error]),
    }
}

impl LocalStore {
    /// Reads everything, past the cache, and returns each damage that it finds. `progress` is
    /// called with how many chunks are done, again and again.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the disk does not answer.
    pub fn verify(&self, progress: &mut dyn FnMut(u64)) -> Result<Vec<StoreError>, StoreError> {
        verify(self, progress)
    }
}
