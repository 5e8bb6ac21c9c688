//! The five published results, one module each.

use crate::workload::Workload;

mod showdown;
mod updates;
mod ycsb;

/// All workloads, in the order of the report.
pub const ALL: &[&dyn Workload] = &[&showdown::Showdown, &ycsb::Ycsb, &updates::Updates];

/// The workload called `name`.
pub fn find(name: &str) -> Option<&'static dyn Workload> {
    ALL.iter().copied().find(|workload| workload.name() == name)
}
