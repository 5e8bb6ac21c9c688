//! The five published results, one module each.

use crate::workload::Workload;

mod field_access;
mod indexed_insert;
mod showdown;
mod tpcc;
mod updates;
mod ycsb;

/// All workloads, in the order of the report.
pub const ALL: &[&dyn Workload] = &[
    &showdown::Showdown,
    &ycsb::Ycsb,
    &indexed_insert::IndexedInsert,
    &field_access::FieldAccess,
    &updates::Updates,
    &tpcc::Tpcc,
];

/// The workload called `name`.
pub fn find(name: &str) -> Option<&'static dyn Workload> {
    ALL.iter().copied().find(|workload| workload.name() == name)
}
