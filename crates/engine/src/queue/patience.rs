//! How long a commit waits.

/// How long a commit waits: as long as these say so, which are asked now and then.
#[derive(Clone, Copy)]
pub(crate) struct Patience<'a> {
    /// For room in memory: nothing is written else.
    pub for_room: &'a dyn Fn() -> bool,
    /// For a bucket that has the log: what becomes of it is unknown else.
    pub for_log: &'a dyn Fn() -> bool,
}

impl Patience<'_> {
    /// Waits for everything.
    pub const ENDLESS: Patience<'static> = Patience { for_room: &|| true, for_log: &|| true };
}
