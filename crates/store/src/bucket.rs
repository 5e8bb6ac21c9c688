//! A bucket (object storage), as the store uses it: conditional puts, reads, lists, and what their
//! answers mean.
//!
//! Two conditional puts decide everything: an object is made if there is none of its name, or
//! replaced if it is what the caller has read. No lease, clock or list does.
//!
//! *Three answers*. A put whose reply is lost may have been done, or will be. So [`Bucket::create`]
//! and [`Bucket::swap`] may answer that they don't know, and nothing here takes that for a yes or a
//! no: [`create_until_known`] and [`swap_until_known`] look what lies there, and put the same bytes
//! again where the question is still open. That is harmless, since
//! 1. no two writers put the same bytes under one name: a name or the bytes hold a nonce;
//! 2. bytes that lie there are therefore this writer's own, however late they came;
//! 3. once an object was replaced, what it was before never lies there again, so a put that is late
//!    finds its condition broken.
//!
//! A plain no isn't believed either before it is looked up: stores say it (409) of two requests
//! that met, and of a put that was done when the first of two replies was lost.

mod answer;
mod requests;

pub use answer::{create_until_known, swap_until_known};
pub(crate) use requests::MeteredBucket;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::io::pause;

/// The wait after a first attempt; it doubles from one to the next.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The version of an object that was read or written: only compared, never interpreted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectVersion(pub String);

/// The outcome of a put that creates an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Created {
    /// It was made.
    Made(ObjectVersion),
    /// The store says that there is one of this name.
    Exists,
    /// The reply is lost, or says nothing: it may have been made, or may yet be.
    Unknown,
}

/// The outcome of a put that replaces an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Swapped {
    /// It was replaced.
    Yes(ObjectVersion),
    /// The store says that it is another than was expected.
    No,
    /// The reply is lost, or says nothing: it may have been replaced, or may yet be.
    Unknown,
}

/// A part of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectPart {
    /// The object's name.
    pub name: String,
    /// The range of its bytes.
    pub range: Range<u64>,
}

/// An error of a bucket.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BucketError {
    /// It does not answer, or answers that it can't now: another attempt may succeed.
    #[error("{name}: the store doesn't answer: {what}")]
    Unavailable {
        /// The object.
        name: String,
        /// The bucket's message.
        what: String,
    },
    /// It refuses, and will again: access, or a condition that it doesn't know.
    #[error("{name}: {what}")]
    Refused {
        /// The object.
        name: String,
        /// The bucket's message.
        what: String,
    },
}

/// A bucket, or a part of one: objects by name.
///
/// *Thread safety*: every method may be called from any number of threads at once.
pub trait Bucket: Send + Sync {
    /// Puts an object if there is none of this name.
    ///
    /// # Errors
    /// [`BucketError::Refused`]: it was not put.
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, BucketError>;

    /// Puts an object if the one of this name is still `was`.
    ///
    /// # Errors
    /// As `create`.
    fn swap(&self, name: &str, was: &ObjectVersion, bytes: Bytes) -> Result<Swapped, BucketError>;

    /// A whole object, if there is one.
    ///
    /// # Errors
    /// [`BucketError`].
    fn load(&self, name: &str) -> Result<Option<(Bytes, ObjectVersion)>, BucketError>;

    /// Whole objects, in the order of their names; `None` where there is none.
    ///
    /// # Errors
    /// [`BucketError`].
    fn load_many(&self, names: &[String]) -> Result<Vec<Option<Bytes>>, BucketError> {
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            found.push(self.load(name)?.map(|(bytes, _)| bytes));
        }
        Ok(found)
    }

    /// Parts of objects, in their order; `None` where there is no such object, or it is shorter.
    ///
    /// # Errors
    /// [`BucketError`].
    fn read_many(&self, parts: &[ObjectPart]) -> Result<Vec<Option<Bytes>>, BucketError>;

    /// Removes an object, if there is one.
    ///
    /// # Errors
    /// [`BucketError`]: whether it is gone is unknown.
    fn remove(&self, name: &str) -> Result<(), BucketError>;

    /// Removes objects, those of them that there are.
    ///
    /// # Errors
    /// [`BucketError`]: which of them are gone is unknown.
    fn remove_many(&self, names: &[String]) -> Result<(), BucketError> {
        names.iter().try_for_each(|name| self.remove(name))
    }

    /// The names that begin with `prefix`, which ends with a slash; what was put or removed lately
    /// may be listed as it was before.
    ///
    /// # Errors
    /// [`BucketError`].
    fn list(&self, prefix: &str) -> Result<Vec<String>, BucketError>;

    /// The part of this store, or of another one that the same keys open, that is called `place`;
    /// `None` if that can't be reached from here.
    fn beside(&self, _place: &str) -> Option<Arc<dyn Bucket>> {
        None
    }

    /// Waits before an attempt is repeated for the `attempt`th time.
    fn wait(&self, attempt: u32) {
        pause(pause_before(attempt));
    }

    /// Waits for no answer to a put any more, nor before an attempt is repeated: what is on its way
    /// ends as unknown.
    fn hang_up(&self) {}
}

/// Returns how long to wait before an attempt is repeated for the `attempt`th time.
pub fn pause_before(attempt: u32) -> Duration {
    PAUSE.saturating_mul(1 << attempt.min(10)).min(PAUSE_MAX)
}
