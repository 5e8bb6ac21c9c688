//! The health of a data directory: what it holds and what of its disk is needed.

use std::path::Path;

use frond_db::inside::refs::repositories;
use frond_db::inside::{ClockState, Error, FrondOptions, Reader, TreeRef, open_machine, system};
use frond_engine::TreeId;
use frond_store::field::FORMAT_VERSION;
use frond_store::io::Disk;
use frond_tree::{Bounds, Direction};

/// The health of a data directory.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// The version of its format.
    pub format_version: u16,
    /// Databases, and among all of them branches and commits.
    pub databases: u64,
    /// See `databases`.
    pub branches: u64,
    /// See `databases`.
    pub commits: u64,
    /// Pack files.
    pub packs: u64,
    /// Bytes of all packs.
    pub bytes_packs: u64,
    /// Bytes of packs that can be reached; about.
    pub bytes_live: u64,
    /// Log segments.
    pub log_segments: u64,
    /// Bytes of the log.
    pub bytes_log: u64,
    /// Places in packs that are known to be damaged and weren't healed.
    pub damages: u64,
    /// The damage that was mended when it was opened.
    pub mended: Vec<String>,
    /// The reading of the machine's clock, beside the directory's own knowledge of time.
    pub clock: ClockState,
}

/// Opens `directory`, which no process may have open, and looks at it. Reads what refers to other
/// chunks, about a hundredth of the data.
///
/// # Errors
/// Errors of opening; `Damaged` if something reachable can't be read.
pub fn health(directory: &Path) -> Result<Health, Error> {
    let machine = open_machine(directory)?;
    let mut health = Health { format_version: FORMAT_VERSION, ..Health::default() };
    count_files(&*machine.disk, &mut health)?;
    let frond = crate::open::open_on(&machine, FrondOptions::default())?;
    let reader = Reader::now(frond.engine());
    for (name, _) in repositories(&reader)? {
        health.databases += 1;
        health.branches += count(&reader, Bounds::prefix(&system::branches_prefix(&name)))?;
        health.commits += count(&reader, Bounds::prefix(&system::commit_key(&name, &[])))?;
    }
    health.clock = frond.clock_state();
    let damages = frond.engine().store().maintenance().damages();
    health.damages = damages.len() as u64;
    let findings = frond.engine().store().maintenance().take_findings().into_iter();
    let mended = findings.filter(|finding| !damages.contains(finding));
    health.mended = mended.map(|finding| finding.error().to_string()).collect();
    let needed = frond.engine().gc_dry_run()?;
    health.bytes_live = needed.bytes_live;
    health.bytes_packs = needed.bytes_before;
    frond.engine().close()?;
    Ok(health)
}

fn count_files(disk: &dyn Disk, health: &mut Health) -> Result<(), Error> {
    let io = |name: &str, error| Error::from(frond_store::StoreError::io(name, error));
    for name in disk.list().map_err(|error| io(".", error))? {
        if name.ends_with(".pack") {
            health.packs += 1;
        } else if name.starts_with("log-") {
            let bytes = disk.open(&name).and_then(|file| file.bytes());
            health.bytes_log += bytes.map_err(|error| io(&name, error))?;
            health.log_segments += 1;
        }
    }
    Ok(())
}

fn count(reader: &Reader<'_>, bounds: Bounds) -> Result<u64, Error> {
    let mut count = 0;
    for entry in reader.range(TreeRef::Live(TreeId::SYSTEM), bounds, Direction::Ascending)? {
        entry?;
        count += 1;
    }
    Ok(count)
}
