//! Reads a whole data directory and lists what is damaged.
//!
//! 1. Every chunk is read from the disk and hashed; pack headers, pack indexes, manifest and roots
//!    are checked with them.
//! 2. Every chunk that can be reached from the roots must be there. A commit references its catalog
//!    and its parents, a catalog its collections, a tree's node its children: with 1 and 2, each
//!    version is whole.
//! 3. If nothing was found so far, the engine opens (replaying its log) and checks the order and
//!    the counts of every working tree.
//! 4. If something was found, what it holds up is listed: by branch, collection and `_id`, as a
//!    salvage would ([`mod@crate::salvage`]). Nothing is written for that.
//!
//! A store that is too damaged to be opened is examined without: each frame of each pack, also
//! behind damage, so that all of it is listed.

use std::path::Path;

use frond_db::inside::refs::shallow;
use frond_db::inside::{Error, ErrorKind, open_machine};
use frond_engine::{Engine, EngineOptions};
use frond_store::io::Machine;
use frond_store::local::examine::examine;
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::{ChunkStore, StoreError};

use crate::salvage::{SalvageReport, survey_directory};

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct FsckReport {
    /// Chunks that were read.
    pub chunks: u64,
    /// The damage found, one text each.
    pub damages: Vec<String>,
    /// The documents, commits and collections that it concerns; `None` if nothing is damaged, or so
    /// much that this can't be found out.
    pub lost: Option<SalvageReport>,
}

/// Checks `directory`, which no process may have open. `progress` is called with how many chunks
/// are done, again and again.
///
/// # Errors
/// If the directory can't be opened or the disk does not answer. Damage is in the report.
pub fn fsck(directory: &Path, progress: &mut dyn FnMut(u64)) -> Result<FsckReport, Error> {
    fsck_on(&open_machine(directory)?, progress)
}

/// As [`fsck`], of the data directory on `machine`'s disk.
///
/// # Errors
/// As [`fsck`].
pub fn fsck_on(machine: &Machine, progress: &mut dyn FnMut(u64)) -> Result<FsckReport, Error> {
    let mut report = check_on(machine, progress)?;
    if !report.damages.is_empty() {
        report.lost = match survey_directory(machine) {
            Err(error) if error.kind == ErrorKind::Damaged => None,
            lost => Some(lost?),
        };
    }
    Ok(report)
}

fn check_on(machine: &Machine, progress: &mut dyn FnMut(u64)) -> Result<FsckReport, Error> {
    let store = match LocalStore::open(machine, LocalOptions::default()) {
        Err(StoreError::Damaged { .. }) => return check_unopened(machine, progress),
        opened => opened?,
    };
    let found_by_opening = store.maintenance().take_findings();
    let mut report = FsckReport::default();
    let damages = store.verify(&mut |done| {
        report.chunks = done;
        progress(done);
    })?;
    report.damages = damages.iter().map(ToString::to_string).collect();
    // Damage that opening has mended: headers and indexes of packs.
    for finding in found_by_opening.iter().map(|finding| finding.error().to_string()) {
        if !report.damages.contains(&finding) {
            report.damages.push(finding);
        }
    }
    if report.damages.is_empty() {
        let mut missing = store.missing_parts()?;
        // Chunks that a shallow clone left at its source.
        let absent = shallow::listed(&*store)?;
        missing.retain(|hash| !absent.contains(hash));
        let lost = |hash| format!("chunk {hash} is not stored, but others refer to it");
        report.damages = missing.into_iter().map(lost).collect();
    }
    if report.damages.is_empty() {
        let checked = Engine::open_over(machine, store, EngineOptions::default())
            .and_then(|engine| engine.check().and_then(|()| engine.close()));
        report.damages.extend(checked.err().map(|error| error.to_string()));
    }
    Ok(report)
}

/// Examines the packs of a store that is too damaged to be opened.
fn check_unopened(machine: &Machine, progress: &mut dyn FnMut(u64)) -> Result<FsckReport, Error> {
    let examined = examine(machine, progress)?;
    let damages = examined.damages.iter().map(ToString::to_string).collect();
    Ok(FsckReport { chunks: examined.chunks, damages, lost: None })
}
