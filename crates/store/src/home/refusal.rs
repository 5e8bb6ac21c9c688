//! What a depot's answers are as errors of the store.

use std::io;

use crate::depot::DepotError;
use crate::error::StoreError;

/// What a depot said.
pub(super) fn told(error: DepotError) -> StoreError {
    StoreError::io("the depot", io::Error::other(error))
}

/// Another directory leads.
pub(super) fn deposed() -> StoreError {
    let what = "another directory took the lead: what it writes from now on would be lost";
    StoreError::io("the depot", io::Error::other(what))
}
