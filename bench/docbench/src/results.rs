//! The results file: JSON lines, one object each, distinguished by `type`.
//!
//! The schema is documented in `docs/benchmarks/schema.md`; what stands here is its authority.
//! Lines are written as soon as they are known, so that a run that was ended has what it measured:
//!
//! 1. one `run` ([`RunHeader`]) first;
//! 2. a `target` ([`TargetLine`]) for each target, when it was first started, or why it wasn't;
//! 3. `row`s ([`Row`]) after each workload, all its repetitions together;
//! 4. one `end` ([`End`]) last; a file without it was cut off.
//!
//! Unknown fields are to be ignored, a missing optional field is absent, not null.

mod file;
mod histogram;
mod recorder;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::file::{Results, Writer};
pub use self::histogram::{decode_histogram, encode_histogram};
pub use self::recorder::{Case, Recorder};

/// The version of the schema: raised when a field changes its meaning.
pub const SCHEMA: u32 = 1;

/// A line of a results file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Line {
    /// The first line.
    Run(RunHeader),
    /// A database that was measured.
    Target(TargetLine),
    /// A figure.
    Row(Row),
    /// The last line.
    End(End),
}

/// The circumstances of the run: place, time and settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunHeader {
    /// [`SCHEMA`].
    pub schema: u32,
    /// This program's version.
    pub docbench: String,
    /// The commit of its sources; `with changes` behind it if the tree differed.
    pub commit: String,
    /// Seconds since 1970.
    pub started: u64,
    /// The same, as a person reads it, in UTC.
    pub started_utc: String,
    /// The command line.
    pub command: Vec<String>,
    /// `smoke`, `small` or `full`.
    pub scale: String,
    /// The number of repetitions of each workload on each target.
    pub repetitions: u32,
    /// The seed from which all random numbers follow.
    pub seed: u64,
    /// Workloads asked for, in order.
    pub workloads: Vec<String>,
    /// Targets asked for, in order.
    pub targets: Vec<String>,
    /// The durability of every row.
    pub durability: String,
    /// The machine.
    pub machine: Machine,
    /// The times that the disk took to append and sync 4 KB, in microseconds, in order.
    pub fsync_probe_micros: Vec<f64>,
    /// Whether the disk counts flushes, so that unsynced writes are found.
    pub flushes_counted: bool,
    /// The generator's own cost, without a database.
    pub generator: GeneratorCost,
}

/// The machine on which all ran.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// The number of logical processors.
    pub processors: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// The kernel's version.
    pub kernel: String,
    /// The operating system's name.
    pub system: String,
    /// The file system and device of the working directory.
    pub disk: String,
    /// Load averages over 1, 5 and 15 minutes when the run began.
    pub load: String,
}

/// The generator's own cost, measured with a database that does nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GeneratorCost {
    /// Closed loop, one client: nanoseconds an operation.
    pub closed_nanos: f64,
    /// Open loop, 500 connections at 2,000 a second: the 50th and 95th and 99.9th percentile in
    /// microseconds. No database's open-loop figure can be below.
    pub open_micros: [f64; 3],
}

/// A database as it was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TargetLine {
    /// The name on the command line.
    pub name: String,
    /// `ok`, or `not run`.
    pub status: Status,
    /// The reason why it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// [`About`](crate::target::About), as it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<serde_json::Value>,
    /// Flushes of the disk for each of some acknowledged writes by one client; below 1: not synced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes_a_write: Option<f64>,
    /// The time of one synced write of one client, in microseconds (median).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_micros: Option<f64>,
}

/// The status of a row: whether it has a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Status {
    /// It has.
    #[serde(rename = "ok")]
    Ok,
    /// An answer was wrong: disqualified, whatever the figure.
    #[serde(rename = "wrong")]
    Wrong,
    /// The target isn't there, or can't do it.
    #[serde(rename = "not run")]
    NotRun,
    /// It ended with an error.
    #[serde(rename = "failed")]
    Failed,
}

/// The direction in which a figure is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// It is a fact, not a merit.
    Neither,
}

/// One figure of one target, over all repetitions. Its key is workload, target, parameters and
/// metric.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The workload's name.
    pub workload: String,
    /// The target's name, or that of a format (field-access).
    pub target: String,
    /// The varied parameters, such as `clients`; values are numbers or text.
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// The name of the metric, such as `throughput`, `latency_p95`, `disk`. Empty in a row that
    /// stands for a whole workload that has no figures (`not run`, `failed`, `wrong`).
    pub metric: String,
    /// Its unit, such as `operations/s`, `ms`, `bytes`.
    pub unit: String,
    /// The direction in which it is better.
    pub better: Better,
    /// Stands in the summary matrix.
    #[serde(default)]
    pub headline: bool,
    /// The status: whether the figure counts.
    pub status: Status,
    /// The reason why it doesn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A value for each repetition, in order.
    pub samples: Vec<f64>,
    /// Their median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<f64>,
    /// Its 95 % bootstrap interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// All repetitions' latencies in microseconds: HdrHistogram V2, compressed, base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
    /// The number of operations that ended in each step, for each repetition, the warm-up's first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Vec<f64>>,
    /// The length of a step in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series_step: Option<f64>,
    /// The number of steps at the beginning that are the warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series_warm_up: Option<f64>,
    /// The number of answers that were checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<u64>,
}

/// The record that the run came to its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct End {
    /// The seconds from the first line to this one.
    pub seconds: f64,
    /// Load averages at the end.
    pub load: String,
    /// Rows with status `wrong` or `failed`.
    pub faults: u64,
}
