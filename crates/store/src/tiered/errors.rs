//! Converts a bucket's errors to those of the store.

use std::io;

use crate::bucket::BucketError;
use crate::error::StoreError;

/// What arrives damaged is asked for so often before it counts as damaged in the bucket: a reply
/// may be what went wrong.
pub(super) const ASKED_MAX: u32 = 3;

/// What a bucket said.
pub(super) fn store_error(error: BucketError) -> StoreError {
    StoreError::io("the bucket", io::Error::other(error))
}

/// Another directory leads.
pub(super) fn deposed() -> StoreError {
    let what = "another directory took the lead: what it writes from now on would be lost";
    StoreError::io("the bucket", io::Error::other(what))
}
