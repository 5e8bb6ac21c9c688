//! Reads a whole store from the disk and lists what is damaged.
//!
//! Chunks are read by the index in memory, so that one damaged frame doesn't hide those behind it;
//! headers, the indexes of sealed packs and the manifest are read again beside them.

use super::LocalStore;
use crate::chunk::ChunkHash;
use crate::error::StoreError;
use crate::index::Location;
use crate::manifest::{self, MANIFEST_NAME, PackEntry, PackState};
use crate::pack::Pack;
use crate::pack::reader::{Naming, check_header, pick, read_frame, read_index};

/// How often `progress` hears of it.
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
    let (durable, roots) = {
        // Held while the file is read, so that it isn't being replaced.
        let publisher = store.publisher();
        note(check_manifest(store))?;
        (publisher.packs.clone(), publisher.manifest.roots.clone())
    };
    let (packs, mut chunks) = store.index(|index| {
        let chunks: Vec<_> = index.chunks.iter().map(|(hash, at)| (*at, *hash)).collect();
        (index.packs.clone(), chunks)
    });
    for pack in packs.values() {
        let is_it = |entry: &&PackEntry| entry.number == pack.number;
        note(match durable.iter().find(is_it) {
            Some(entry) if entry.state == PackState::Sealed => {
                read_index(pack, entry.bytes).map(drop)
            }
            _ => check_header(pack),
        })?;
    }
    for hash in roots.into_values() {
        note(store.locate(&[hash]).map(drop))?;
    }
    chunks.sort_unstable();
    let mut done = 0;
    for frame in chunks
        .chunk_by(|(left, _), (right, _)| (left.pack, left.place) == (right.pack, right.place))
    {
        note(verify_frame(&packs[&frame[0].0.pack], frame))?;
        let reports = done / CHUNKS_A_REPORT;
        done += frame.len() as u64;
        if reports < done / CHUNKS_A_REPORT {
            progress(done);
        }
    }
    progress(done);
    Ok(damages)
}

/// Checks the frame that should hold all of `chunks`.
fn verify_frame(pack: &Pack, chunks: &[(Location, ChunkHash)]) -> Result<(), StoreError> {
    let place = chunks[0].0.place;
    let found = read_frame(pack, place, Naming::ByHash)?;
    for (at, hash) in chunks {
        let chunk = pick(pack, u64::from(place.offset), &found, *hash)?;
        if (chunk.reference_count() > 0) != at.slot.refers() {
            let what = format!("the index is wrong about the references of chunk {hash}");
            return Err(pack.damaged(u64::from(place.offset), &what));
        }
    }
    Ok(())
}

fn check_manifest(store: &LocalStore) -> Result<(), StoreError> {
    match manifest::read(&*store.disk)? {
        Some(_) => Ok(()),
        None => Err(StoreError::damaged(MANIFEST_NAME, 0, "missing")),
    }
}
