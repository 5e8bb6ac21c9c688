//! Turns three answers (yes, no, unknown) into two: a put is repeated, with the same bytes, until
//! what lies there shows whose it is.

use std::time::Duration;

use bytes::Bytes;

use super::{Bucket, BucketError, Created, ObjectVersion, Swapped};
use crate::io::steady_now;

/// Attempts before the question is left open: some ten seconds of a store that is away.
const ATTEMPTS_MAX: u32 = 9;
/// Nor is there another attempt after so long: a store that takes requests and answers none holds
/// up all that writes.
const TIME_MAX: Duration = Duration::from_secs(30);

/// Makes the object `name`, and finds out whether that worked: its version if it is this caller's,
/// `None` if it is another's.
///
/// No other writer puts the same bytes under this name.
///
/// # Errors
/// [`BucketError::Refused`]; [`BucketError::Unavailable`]: whether it was made, or will be, is
/// unknown.
pub fn create_until_known(
    bucket: &dyn Bucket,
    name: &str,
    bytes: &Bytes,
) -> Result<Option<ObjectVersion>, BucketError> {
    until_known(
        bucket,
        name,
        || match bucket.create(name, bytes.clone())? {
            Created::Made(version) => Ok(Some(version)),
            Created::Exists | Created::Unknown => Ok(None),
        },
        |found| match found {
            Some((there, version)) if there == *bytes => Seen::Mine(version),
            Some(_) => Seen::Other,
            None => Seen::Open,
        },
    )
}

/// Replaces the object `name`, which was `was`, and finds out whether that worked: its version if
/// it is this caller's, `None` if another writer was first, or came since.
///
/// No other writer puts the same bytes under this name, ever.
///
/// # Errors
/// As [`create_until_known`].
pub fn swap_until_known(
    bucket: &dyn Bucket,
    name: &str,
    was: &ObjectVersion,
    bytes: &Bytes,
) -> Result<Option<ObjectVersion>, BucketError> {
    until_known(
        bucket,
        name,
        || match bucket.swap(name, was, bytes.clone())? {
            Swapped::Yes(version) => Ok(Some(version)),
            Swapped::No | Swapped::Unknown => Ok(None),
        },
        |found| match found {
            Some((there, version)) if there == *bytes => Seen::Mine(version),
            Some((_, version)) if version == *was => Seen::Open,
            _ => Seen::Other,
        },
    )
}

/// The object that a put finds.
enum Seen {
    /// The object that was put.
    Mine(ObjectVersion),
    /// Another's.
    Other,
    /// Neither: it was not put, or not yet.
    Open,
}

fn until_known(
    bucket: &dyn Bucket,
    name: &str,
    put: impl Fn() -> Result<Option<ObjectVersion>, BucketError>,
    see: impl Fn(Option<(Bytes, ObjectVersion)>) -> Seen,
) -> Result<Option<ObjectVersion>, BucketError> {
    let mut last = None;
    let begun = steady_now();
    for attempt in 0..ATTEMPTS_MAX {
        if begun.elapsed() > TIME_MAX {
            break;
        }
        if attempt > 0 {
            bucket.wait(attempt);
        }
        if let Some(version) = put()? {
            return Ok(Some(version));
        }
        match bucket.load(name) {
            Ok(found) => match see(found) {
                Seen::Mine(version) => return Ok(Some(version)),
                Seen::Other => return Ok(None),
                Seen::Open => {}
            },
            Err(error @ BucketError::Refused { .. }) => return Err(error),
            Err(error) => last = Some(error),
        }
    }
    let what = "whether it took what was put is unknown".to_owned();
    Err(last.unwrap_or(BucketError::Unavailable { name: name.to_owned(), what }))
}
