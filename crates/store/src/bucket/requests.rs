//! Counts the requests to a bucket, by what they cost.
//!
//! A request that the client repeats by itself counts once; a list counts once for each thousand
//! names, as stores answer it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::{Bucket, BucketError, Created, ObjectPart, ObjectVersion, Swapped};
use crate::io::Requests;

/// Names that a store lists in one answer.
const LISTED_AT_ONCE: u64 = 1000;

/// A bucket whose requests are counted.
///
/// *Thread safety*: as [`Bucket`].
pub(crate) struct MeteredBucket<D> {
    bucket: D,
    counts: Arc<Counts>,
}

/// What is counted, of a bucket and of those beside it.
#[derive(Default)]
struct Counts {
    puts: AtomicU64,
    gets: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
    bytes_put: AtomicU64,
    bytes_got: AtomicU64,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl<D> MeteredBucket<D> {
    pub(crate) fn new(bucket: D) -> MeteredBucket<D> {
        MeteredBucket { bucket, counts: Arc::default() }
    }

    /// Returns the counts of requests so far.
    pub(crate) fn requests(&self) -> Requests {
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = &self.counts;
        Requests {
            puts: now(&counts.puts),
            gets: now(&counts.gets),
            lists: now(&counts.lists),
            deletes: now(&counts.deletes),
            bytes_put: now(&counts.bytes_put),
            bytes_got: now(&counts.bytes_got),
        }
    }

    fn note_put(&self, bytes: &Bytes) {
        add(&self.counts.puts, 1);
        add(&self.counts.bytes_put, bytes.len() as u64);
    }
}

impl Bucket for MeteredBucket<Arc<dyn Bucket>> {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, BucketError> {
        self.note_put(&bytes);
        self.bucket.create(name, bytes)
    }

    fn swap(&self, name: &str, was: &ObjectVersion, bytes: Bytes) -> Result<Swapped, BucketError> {
        self.note_put(&bytes);
        self.bucket.swap(name, was, bytes)
    }

    fn load(&self, name: &str) -> Result<Option<(Bytes, ObjectVersion)>, BucketError> {
        add(&self.counts.gets, 1);
        let loaded = self.bucket.load(name);
        if let Ok(Some((bytes, _))) = &loaded {
            add(&self.counts.bytes_got, bytes.len() as u64);
        }
        loaded
    }

    fn load_many(&self, names: &[String]) -> Result<Vec<Option<Bytes>>, BucketError> {
        add(&self.counts.gets, names.len() as u64);
        let loaded = self.bucket.load_many(names)?;
        add(&self.counts.bytes_got, loaded.iter().flatten().map(|bytes| bytes.len() as u64).sum());
        Ok(loaded)
    }

    fn read_many(&self, parts: &[ObjectPart]) -> Result<Vec<Option<Bytes>>, BucketError> {
        add(&self.counts.gets, parts.len() as u64);
        let read = self.bucket.read_many(parts)?;
        add(&self.counts.bytes_got, read.iter().flatten().map(|part| part.len() as u64).sum());
        Ok(read)
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        add(&self.counts.deletes, 1);
        self.bucket.remove(name)
    }

    fn remove_many(&self, names: &[String]) -> Result<(), BucketError> {
        add(&self.counts.deletes, names.len() as u64);
        self.bucket.remove_many(names)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, BucketError> {
        let listed = self.bucket.list(prefix);
        let names = listed.as_ref().map_or(0, |names| names.len() as u64);
        add(&self.counts.lists, names.div_ceil(LISTED_AT_ONCE).max(1));
        listed
    }

    fn beside(&self, place: &str) -> Option<Arc<dyn Bucket>> {
        let bucket = self.bucket.beside(place)?;
        Some(Arc::new(MeteredBucket { bucket, counts: Arc::clone(&self.counts) }))
    }

    fn wait(&self, attempt: u32) {
        self.bucket.wait(attempt);
    }

    fn hang_up(&self) {
        self.bucket.hang_up();
    }
}
