//! Reads a whole data directory and lists what is damaged.
//!
//! 1. Every chunk is read from the disk and hashed; pack headers, pack indexes, manifest and roots
//!    are checked with them.
//! 2. Every chunk that a chunk references must be there. A commit references its catalog and its
//!    parents, a catalog its collections, a tree's node its children: with 1 and 2, each version is
//!    whole.
//! 3. If nothing was found so far, the engine opens (replaying its log) and checks the order and
//!    the counts of every working tree.

use std::path::Path;

use frond_engine::{Engine, EngineOptions};
use frond_store::ChunkStore;
use frond_store::io::Machine;
use frond_store::local::{LocalOptions, LocalStore};

use crate::error::Error;
use crate::frond::open_machine;

/// Chunks whose references are looked up together.
const BATCH: usize = 256;

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct FsckReport {
    /// Chunks that were read.
    pub chunks: u64,
    /// What is damaged; nothing, it is to be hoped.
    pub damages: Vec<String>,
}

/// Checks `directory`, which no process may have open. `progress` is told how many chunks are done,
/// again and again.
///
/// # Errors
/// If the directory can't be opened or the disk does not answer. Damage is in the report.
pub fn fsck(directory: &Path, progress: &mut dyn FnMut(u64)) -> Result<FsckReport, Error> {
    let machine = open_machine(directory)?;
    check_on(&machine, progress)
}

fn check_on(machine: &Machine, progress: &mut dyn FnMut(u64)) -> Result<FsckReport, Error> {
    let store = LocalStore::open(machine, LocalOptions::default())?;
    let mut report = FsckReport::default();
    let damages = store.verify(&mut |done| {
        report.chunks = done;
        progress(done);
    })?;
    report.damages = damages.iter().map(ToString::to_string).collect();
    if report.damages.is_empty() {
        report.damages = missing_references(&store)?;
    }
    if report.damages.is_empty() {
        let checked = Engine::open_over(machine, store, EngineOptions::default())
            .and_then(|engine| engine.check().and_then(|()| engine.close()));
        report.damages.extend(checked.err().map(|error| error.to_string()));
    }
    Ok(report)
}

fn missing_references(store: &LocalStore) -> Result<Vec<String>, Error> {
    let mut missing = Vec::new();
    for hashes in store.chunk_hashes().chunks(BATCH) {
        for chunk in store.get_many(hashes)? {
            let references: Vec<_> = chunk.references().collect();
            let found = store.has_many(&references)?;
            for (reference, _) in references.iter().zip(found).filter(|(_, found)| !found) {
                missing.push(format!("chunk {} lacks its part {reference}", chunk.hash()));
            }
        }
    }
    Ok(missing)
}
