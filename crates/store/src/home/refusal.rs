//! What a depot's answers are as errors of the store.

use std::io;

use crate::depot::DepotError;
use crate::error::StoreError;

/// What arrives damaged is asked for so often before it counts as damaged in the depot: a reply may
/// be what went wrong.
pub(super) const ASKED_MAX: u32 = 3;

/// What a depot said.
pub(super) fn told(error: DepotError) -> StoreError {
    StoreError::io("the depot", io::Error::other(error))
}

/// Another directory leads.
pub(super) fn deposed() -> StoreError {
    let what = "another directory took the lead: what it writes from now on would be lost";
    StoreError::io("the depot", io::Error::other(what))
}
