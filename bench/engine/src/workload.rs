//! The workloads, by name. Each is one function that measures an open target.

mod commits;
mod hot;
mod indexed_insert;
mod records;
mod recovery;
mod scan;
mod small_memory;
mod tree;
mod versions;
mod ycsb;

use std::path::Path;
use std::time::Duration;

use crate::figures::Figures;
use crate::target::Failure;

/// The amount of work.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Documents of `indexed-insert`; the other workloads' data follow.
    pub documents: u64,
    /// `indexed-insert` ends when this is over, however many there are.
    pub insert_time: Duration,
    /// The time that each measurement of a rate takes.
    pub rate_time: Duration,
    /// Records of 1 KB of the `ycsb` workloads.
    pub records: u64,
    /// Entries of about 120 bytes of `scan`.
    pub scan_entries: u64,
    /// Entries of the larger tree of `versions`; the smaller has a tenth.
    pub version_entries: u64,
    /// `commits`, `hot` and `ycsb` run with so many threads only, if it is said.
    pub threads: Option<u64>,
    /// The number of eighths of all memory that engines' caches get where it is limited, instead of
    /// what is best for each.
    pub cache_eighths: Option<u64>,
}

impl Scale {
    /// Returns the numbers of threads to measure, of those that a workload has.
    pub fn threads<const COUNT: usize>(&self, all: [u64; COUNT]) -> Vec<u64> {
        self.threads.map_or_else(|| all.to_vec(), |only| vec![only])
    }
}

/// The surroundings of a running workload.
pub struct Context<'a> {
    /// The target's name.
    pub target: &'a str,
    /// An empty directory.
    pub directory: &'a Path,
    /// The amount of work.
    pub scale: Scale,
}

type Run = fn(&Context<'_>, &mut Figures) -> Result<bool, Failure>;

/// A workload.
pub struct Workload {
    /// As the command line has it.
    pub name: &'static str,
    /// The table's title.
    pub title: &'static str,
    /// Measures one target; false if it isn't there, or can't do this.
    pub run: Run,
    /// The memory that all of it may use, the file system's cache included; `None` if that isn't
    /// limited.
    pub memory_bytes: Option<fn(&Scale) -> u64>,
}

/// Returns the workloads that run by default: those that need no privileges.
pub fn names_by_default() -> Vec<String> {
    let free = ALL.iter().filter(|workload| workload.memory_bytes.is_none());
    free.map(|workload| workload.name.to_owned()).collect()
}

/// All of them, in the order of the report.
pub const ALL: [Workload; 12] = [
    Workload {
        name: "indexed-insert",
        title: "Insert with four indexes, cache 128 MB",
        run: indexed_insert::run,
        memory_bytes: None,
    },
    Workload {
        name: "commits",
        title: "Durable commits of five entries",
        run: commits::run,
        memory_bytes: None,
    },
    Workload {
        name: "hot",
        title: "Durable additions to one entry (Frond alone)",
        run: hot::run,
        memory_bytes: None,
    },
    Workload {
        name: "ycsb-memory",
        title: "YCSB, records of 1 KB, all in the cache",
        run: ycsb::run_in_memory,
        memory_bytes: None,
    },
    Workload {
        name: "ycsb-4x",
        title: "YCSB, records of 1 KB, four times the cache",
        run: ycsb::run_beyond_memory,
        memory_bytes: None,
    },
    Workload {
        name: "ycsb-limited",
        title: "YCSB, records of 1 KB, four times all memory",
        run: ycsb::run_in_limits,
        memory_bytes: Some(ycsb::limit_bytes),
    },
    Workload {
        name: "scan",
        title: "Load, full scan, size: all in the cache",
        run: scan::run_in_memory,
        memory_bytes: None,
    },
    Workload {
        name: "scan-4x",
        title: "Load, full scan: four times the cache",
        run: scan::run_beyond_memory,
        memory_bytes: None,
    },
    Workload {
        name: "tree",
        title: "Prolly tree alone (Frond)",
        run: tree::run,
        memory_bytes: None,
    },
    Workload {
        name: "versions",
        title: "Versions (Frond alone)",
        run: versions::run,
        memory_bytes: None,
    },
    Workload {
        name: "small-memory",
        title: "Data of eighty times the memory (Frond alone)",
        run: small_memory::run,
        memory_bytes: None,
    },
    Workload {
        name: "recovery",
        title: "Opening after a crash (Frond alone)",
        run: recovery::run,
        memory_bytes: None,
    },
];
