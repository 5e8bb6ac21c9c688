//! Converts a bucket's errors to those of the store.

use std::io;

use crate::bucket::BucketError;
use crate::error::StoreError;

/// The number of requests for a damaged object before it counts as damaged in the bucket: the reply
/// may be at fault.
pub(super) const ATTEMPTS_MAX: u32 = 3;

/// Returns the store's error for one of a bucket.
pub(super) fn store_error(error: BucketError) -> StoreError {
    StoreError::io("the bucket", io::Error::other(error))
}

/// Another directory leads.
pub(super) fn deposed() -> StoreError {
    let what = "another directory took the lead: what it writes from now on would be lost";
    StoreError::io("the bucket", io::Error::other(what))
}
