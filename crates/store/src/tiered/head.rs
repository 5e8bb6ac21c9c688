//! HEAD as it lies in the bucket, and what all need who read or swap it.

use std::io;

use super::errors::{ATTEMPTS_MAX, store_error};
use super::format::{HEAD_NAME, Head, Nonce};
use crate::bucket::{Bucket, ObjectVersion};
use crate::error::StoreError;
use crate::io::Chance;

/// The name of a directory's record of its bucket.
pub(crate) const DEPOT_NAME: &str = "DEPOT";

/// Returns the reason for which a directory can't have the line.
pub(super) fn refused(what: String) -> StoreError {
    StoreError::io(DEPOT_NAME, io::Error::other(what))
}

/// A number that no other has.
pub(super) fn nonce(chance: &dyn Chance) -> Nonce {
    let mut nonce = Nonce::default();
    chance.fill(&mut nonce);
    nonce
}

/// HEAD, if there is one. One that is damaged is fetched again first.
pub(super) fn load_head(bucket: &dyn Bucket) -> Result<Option<(Head, ObjectVersion)>, StoreError> {
    for attempt in 1.. {
        let Some((bytes, version)) = bucket.load(HEAD_NAME).map_err(store_error)? else {
            return Ok(None);
        };
        match Head::parse(&bytes) {
            Err(_) if attempt < ATTEMPTS_MAX => {}
            parsed => return Ok(Some((parsed?, version))),
        }
    }
    unreachable!("the last attempt returns")
}
