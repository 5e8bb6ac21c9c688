//! The health of a server: whether it takes writes, and what keeps it from that, or will.

use frond_db::Fault;
use frond_store::SendFailure;

use crate::shared::Shared;

/// See the module.
pub enum Health<'a> {
    /// It takes writes.
    Well,
    /// A fault has closed the databases for writing.
    ClosedForWriting(&'a Fault),
    /// Packs can't be sent to the store in which they live.
    StoreIsAway(SendFailure),
}

impl Health<'_> {
    /// Returns the health of `server`.
    pub fn of(server: &Shared) -> Health<'_> {
        let store = server.frond.engine().store();
        match (server.frond.fault(), store.maintenance().send_failure()) {
            (Some(fault), _) => Health::ClosedForWriting(fault),
            (None, Some(failure)) => Health::StoreIsAway(failure),
            (None, None) => Health::Well,
        }
    }

    /// As `serverStatus` calls it.
    pub fn state(&self) -> &'static str {
        match self {
            Health::Well => "writable",
            Health::ClosedForWriting(_) => "closedForWriting",
            Health::StoreIsAway(failure) if failure.is_full => "storeIsAwayAndDiskIsFull",
            Health::StoreIsAway(_) => "writableWhileStoreIsAway",
        }
    }
}
