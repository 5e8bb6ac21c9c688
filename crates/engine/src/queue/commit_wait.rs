//! The time that a commit waits for memory, and for durability.

use std::cell::Cell;
use std::sync::Arc;

use super::group::Group;

/// The conditions under which a commit waits: while these closures, which are called now and then,
/// say so.
#[derive(Clone, Copy)]
pub(crate) struct CommitWait<'a> {
    /// For room in memory: nothing is written else.
    pub for_room: &'a dyn Fn() -> bool,
    /// The wait until it is as durable as asked.
    pub for_log: DurabilityWait<'a>,
}

/// Whether a queued commit waits until it is as durable as asked.
#[derive(Clone, Copy)]
pub(crate) enum DurabilityWait<'a> {
    /// It does, but for a bucket that has the log only as long as this says so: what becomes of it
    /// is unknown else.
    While(&'a dyn Fn() -> bool),
    /// It doesn't: its caller asks later what became of it.
    Never,
    /// It doesn't: its caller has what becomes of it handed on, by the group that is put here. None
    /// is where it is known already, and where a bucket has the log: a commit waits there.
    HandedOn(&'a Cell<Option<Arc<Group>>>),
}

impl CommitWait<'_> {
    /// Waits for everything.
    pub const ENDLESS: CommitWait<'static> =
        CommitWait { for_room: &|| true, for_log: DurabilityWait::While(&|| true) };
}
