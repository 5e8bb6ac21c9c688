//! The time that a commit waits for memory, and for durability.

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
}

impl CommitWait<'_> {
    /// Waits for everything.
    pub const ENDLESS: CommitWait<'static> =
        CommitWait { for_room: &|| true, for_log: DurabilityWait::While(&|| true) };
}
