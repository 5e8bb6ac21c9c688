//! Repairs a damaged data directory in place, with chunks that lie elsewhere: in its own log, in a
//! place of backups, in a clone, with a server.
//!
//! 1. Everything is read, as fsck does; what is damaged is set aside.
//! 2. Chunks that are lost by name, and those that others refer to and that aren't there, are asked
//!    for at each source in turn. A chunk is named by its content: one that hashes to its name is
//!    the one that was lost, wherever it comes from. It is put, and so stored anew.
//! 3. Below a chunk that came others may be missing: so 2 is repeated until nothing more comes.
//! 4. The engine is opened, which replays the log, and flushed: what the log has is stored then. A
//!    tree with the same content has the same chunks, so that brings back those of commits, too.
//!    Then 2 again, for what only the log refers to.
//! 5. A collection moves what is whole out of the packs that were damaged. They go, unless
//!    something in them is still lost.
//! 6. The rest is reported as fsck does: by file, then by branch, collection and `_id`.
//!
//! Whatever fails halfway, what was put stays, and nothing that can be read was removed. Where
//! packs lie in a bucket all is the same; what is damaged there stays until HEAD lists it no more.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use frond_db::inside::refs::shallow;
use frond_db::inside::{Error, ErrorKind, open_machine};
use frond_engine::order::{SetEntry, SlotOrder};
use frond_engine::{Engine, EngineError, EngineOptions, ReclaimOptions};
use frond_store::io::Machine;
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::tiered::Slots;
use frond_store::{Chunk, ChunkHash, ChunkStore, Damage, Lifetime, StoreError};

use crate::fsck::{FsckReport, fsck_on};
use crate::remote::saved;

/// Chunks that are asked for together.
const BATCH: usize = 256;

/// Gets chunks by their names, in their order; `Damaged` if one isn't there.
pub type ChunkSource = Box<dyn Fn(&[ChunkHash]) -> Result<Vec<Chunk>, Error>>;

/// The result of a repair.
#[derive(Clone, Debug, Default)]
pub struct RepairReport {
    /// The damage found before.
    pub damages: Vec<String>,
    /// Chunks that each source had, in the sources' order.
    pub brought: Vec<u64>,
    /// Chunks that no source had, and that the log brought back.
    pub from_log: u64,
    /// What a check found afterwards.
    pub left: FsckReport,
}

/// Repairs `directory`, which no process may have open, from `sources`. `progress` is called with
/// how many chunks are read, again and again.
///
/// # Errors
/// `Damaged` if neither copy of the manifest can be read: a salvage is all that is left then;
/// `Unavailable` if a source or the disk doesn't answer. Chunks brought by then stay.
pub fn repair(
    directory: &Path,
    sources: &[ChunkSource],
    progress: &mut dyn FnMut(u64),
) -> Result<RepairReport, Error> {
    repair_on(&open_machine(directory)?, sources, progress)
}

/// As [`repair`], of the data directory on `machine`'s disk.
pub(crate) fn repair_on(
    machine: &Machine,
    sources: &[ChunkSource],
    progress: &mut dyn FnMut(u64),
) -> Result<RepairReport, Error> {
    let mut report = mend_on(machine, None, sources, progress)?;
    report.left = fsck_on(machine, progress)?;
    Ok(report)
}

/// As [`repair`], of the data directory on `machine`'s disk, whose log lies in `slots` where there
/// are any; without the check of what is left.
///
/// # Errors
/// As [`repair`].
pub fn mend_on(
    machine: &Machine,
    slots: Option<&Arc<Slots>>,
    sources: &[ChunkSource],
    progress: &mut dyn FnMut(u64),
) -> Result<RepairReport, Error> {
    let store = LocalStore::open(machine, LocalOptions::default())?;
    let mut report = RepairReport { brought: vec![0; sources.len()], ..RepairReport::default() };
    let found = store.verify(progress)?;
    report.damages = found.iter().map(ToString::to_string).collect();
    let is_listed = |finding: &Damage| {
        found.iter().any(|error| {
            matches!(error, StoreError::Damaged { file, offset, .. }
                if *file == finding.file && *offset == finding.offset)
        })
    };
    for finding in store.maintenance().take_findings().iter().filter(|finding| !is_listed(finding))
    {
        report.damages.push(finding.error().to_string());
    }
    let mut repair = Repair { store: &store, sources, lost: HashSet::new(), report: &mut report };
    repair.bring_all()?;
    match open_engine(machine, slots, Arc::clone(&store) as _) {
        Ok(engine) => {
            let settled = repair.settle(&engine);
            let closed = engine.close();
            tolerate(settled)?;
            tolerate(closed.map_err(Error::from))?;
        }
        Err(error) => tolerate(Err(error.into()))?,
    }
    Ok(report)
}

/// The engine over a store, with all that its log has.
fn open_engine(
    machine: &Machine,
    slots: Option<&Arc<Slots>>,
    store: Arc<dyn ChunkStore>,
) -> Result<Engine, EngineError> {
    let options = EngineOptions { scrub_bytes_a_second: None, ..EngineOptions::default() };
    let Some(slots) = slots else { return Engine::open_over(machine, store, options) };
    let order = Arc::new(SlotOrder::new(Arc::clone(slots)));
    let engine = Engine::open_over_in_set(machine, store, options, order)?;
    slots.replay(&mut |entry| engine.apply(SetEntry::decode(&entry)?))?;
    engine.lead();
    engine.remove_left_staging()?;
    Ok(engine)
}

/// Lets damage pass, which the check at the end reports.
fn tolerate(done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Err(error) if error.kind != ErrorKind::Damaged => Err(error),
        _ => Ok(()),
    }
}

struct Repair<'a> {
    store: &'a Arc<LocalStore>,
    sources: &'a [ChunkSource],
    /// The chunks that no source has.
    lost: HashSet<ChunkHash>,
    report: &'a mut RepairReport,
}

impl Repair<'_> {
    /// Steps 2 and 3.
    fn bring_all(&mut self) -> Result<(), Error> {
        loop {
            let wanted = self.wanted()?;
            if wanted.is_empty() {
                return Ok(());
            }
            let mut left = wanted;
            for (source, brought) in self.sources.iter().zip(&mut self.report.brought) {
                let (count, lost) = bring(&**self.store, &left, source)?;
                *brought += count;
                left = lost;
            }
            self.store.sync()?;
            self.lost.extend(left);
        }
    }

    /// Returns the chunks that aren't there and weren't asked for yet.
    fn wanted(&self) -> Result<Vec<ChunkHash>, Error> {
        let mut wanted: HashSet<ChunkHash> = self
            .store
            .maintenance()
            .damages()
            .iter()
            .filter_map(|damage: &Damage| damage.chunk)
            .collect();
        wanted.extend(self.missing()?);
        // Chunks that a shallow clone left at its source.
        let absent = match shallow::listed(&**self.store) {
            Err(StoreError::Damaged { .. }) => Default::default(),
            listed => listed?,
        };
        wanted.retain(|hash| !self.lost.contains(hash) && !absent.contains(hash));
        Ok(wanted.into_iter().collect())
    }

    fn missing(&self) -> Result<Vec<ChunkHash>, Error> {
        let mut queried = HashSet::new();
        loop {
            let before = self.store.maintenance().damages().len();
            match self.store.missing_parts() {
                // It was set aside just now, and is noted as missing next time.
                Err(StoreError::Damaged { .. })
                    if before < self.store.maintenance().damages().len() => {}
                missing => {
                    let missing = missing?;
                    // A chunk that has a second copy here comes back from it, and leads to those
                    // below.
                    let new = missing.iter().filter(|hash| queried.insert(**hash));
                    if new.filter(|hash| self.store.get(**hash).is_ok()).count() == 0 {
                        return Ok(missing);
                    }
                }
            }
        }
    }

    /// Steps 4 and 5.
    fn settle(&mut self, engine: &Engine) -> Result<(), Error> {
        engine.checkpoint().or_else(pass_damage)?;
        let lost = std::mem::take(&mut self.lost);
        let lost_count = lost.len();
        self.lost = lost.into_iter().filter(|hash| self.store.get(*hash).is_err()).collect();
        self.report.from_log = (lost_count - self.lost.len()) as u64;
        self.bring_all()?;
        if self.report.damages.is_empty() {
            return Ok(());
        }
        engine.reclaim(ReclaimOptions::default())?;
        Ok(())
    }
}

fn pass_damage(error: EngineError) -> Result<(), Error> {
    tolerate(Err(error.into()))
}

/// Puts those of `hashes` that `source` has; returns how many, and the others.
fn bring(
    store: &dyn ChunkStore,
    hashes: &[ChunkHash],
    source: &ChunkSource,
) -> Result<(u64, Vec<ChunkHash>), Error> {
    let (mut count, mut lost) = (0, Vec::new());
    for batch in hashes.chunks(BATCH) {
        let mut chunks = saved(batch, source, &mut |hash| lost.push(hash))?;
        // A reader believes a checksum; what is stored for good is hashed.
        chunks.retain(|chunk| {
            let again = Chunk::from_encoded(chunk.encoded().clone(), ("a source", 0));
            let is_right = again.is_ok_and(|again| again.hash() == chunk.hash());
            if !is_right {
                lost.push(chunk.hash());
            }
            is_right
        });
        store.put_many_for(Lifetime::Lasting, &chunks)?;
        count += chunks.len() as u64;
    }
    Ok((count, lost))
}

#[cfg(test)]
mod tests;
