//! A bucket as a bucket: conditional puts without retries, and their answers by what is known.
//!
//! `object_store` repeats a put that was answered by an error of the server, and then reports the
//! second answer: "it exists", because of the first put. So puts under a condition go through a
//! client that never repeats them, and an unknown outcome is reported as unknown
//! ([`frond_store::bucket`]). Reads are repeated: they change nothing.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use frond_db::Error;
use frond_store::bucket::{
    Bucket, BucketError, Created, ObjectPart, ObjectVersion, Swapped, pause_before,
};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, RetryConfig,
    UpdateVersion,
};
use tokio::sync::watch;

use crate::object_client::{Patience, failure, object_client, object_path, refusal};
use crate::remote_url::{BucketUrl, Protocol};
use crate::runtime::block_on;

/// Requests of one call that are on their way at once.
const REQUESTS_MAX: usize = 16;
/// A request that takes so long has failed: a pack of 64 MB has to fit.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// A request whose answer doesn't begin in this time, its repetitions included, has none. One that
/// takes bytes along has more for each megabyte.
const ANSWER_TIME: Duration = Duration::from_secs(10);
const TIME_A_MEGABYTE: Duration = Duration::from_secs(1);
/// Reads that are refused are repeated so often, and for so long.
const READ_RETRIES_MAX: usize = 5;
const READ_SECONDS_MAX: u64 = 30;

/// A bucket, or a part of one below a prefix.
pub struct ObjectBucket {
    /// Repeats what fails.
    reads: Arc<dyn ObjectStore>,
    /// Repeats nothing.
    puts: Arc<dyn ObjectStore>,
    protocol: Protocol,
    prefix: String,
    has_hung_up: watch::Sender<bool>,
}

impl ObjectBucket {
    /// The objects of `store`, which repeats no put, below `prefix`.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str) -> ObjectBucket {
        ObjectBucket {
            reads: Arc::clone(&store),
            puts: store,
            protocol: Protocol::S3,
            prefix: prefix.to_owned(),
            has_hung_up: watch::Sender::new(false),
        }
    }

    /// The bucket at `url`, by the variables that
    /// [`BucketStorage::open`](crate::bucket_storage::BucketStorage::open) reads.
    ///
    /// # Errors
    /// `BadValue` if one of them can't be read; `Unavailable` if these don't fit together.
    pub fn open(url: &BucketUrl) -> Result<ObjectBucket, Error> {
        let client = |max_retries: usize| {
            let retry_timeout = Duration::from_secs(READ_SECONDS_MAX);
            let retry = RetryConfig { max_retries, retry_timeout, ..RetryConfig::default() };
            object_client(url, &Patience { timeout: Some(REQUEST_TIMEOUT), retry })
        };
        let (reads, puts) = (client(READ_RETRIES_MAX)?, client(0)?);
        let protocol = url.protocol;
        Ok(ObjectBucket { puts, protocol, ..ObjectBucket::new(reads, &url.prefix) })
    }

    fn failed(&self, name: &str, error: &StoreError) -> BucketError {
        failed(self.protocol, name, error)
    }

    /// Awaits `request`, for at most `time` and until the store hangs up.
    async fn within<T>(&self, time: Duration, request: impl Future<Output = T>) -> Option<T> {
        let mut has_hung_up = self.has_hung_up.subscribe();
        tokio::select! {
            done = tokio::time::timeout(time, request) => done.ok(),
            _ = has_hung_up.wait_for(|it| *it) => None,
        }
    }

    fn put(&self, name: &str, mode: PutMode, bytes: Bytes) -> Result<Answer, BucketError> {
        let time = time_for(bytes.len() as u64);
        let put = self.within(time, self.put_once(name, mode, bytes));
        block_on(put).unwrap_or(Ok(Answer::Unknown))
    }

    /// As [`Bucket::swap`] whose reply nothing waits for longer than `wait`: it is lost then, or
    /// not even sent.
    pub(crate) fn swap_impatiently(
        &self,
        name: &str,
        was: &ObjectVersion,
        bytes: Bytes,
        wait: Duration,
    ) -> Result<Swapped, BucketError> {
        let put = self.put_once(name, PutMode::Update(update_version(was)), bytes);
        match block_on(async { tokio::time::timeout(wait, put).await }) {
            Ok(answer) => answer.map(Answer::swapped),
            Err(_) => Ok(Swapped::Unknown),
        }
    }

    async fn put_once(
        &self,
        name: &str,
        mode: PutMode,
        bytes: Bytes,
    ) -> Result<Answer, BucketError> {
        let options = PutOptions { mode, ..PutOptions::default() };
        let put = self
            .puts
            .put_opts(&object_path(&self.prefix, name), PutPayload::from(bytes), options)
            .await;
        match put {
            Ok(done) => Ok(Answer::Yes(version_of(done.e_tag, done.version))),
            Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => {
                Ok(Answer::No)
            }
            Err(StoreError::NotImplemented { .. } | StoreError::NotSupported { .. }) => {
                let what = "the store has no conditional put".to_owned();
                Err(BucketError::Refused { name: name.to_owned(), what })
            }
            Err(error) => match self.failed(name, &error) {
                refused @ BucketError::Refused { .. } => Err(refused),
                BucketError::Unavailable { .. } => Ok(Answer::Unknown),
            },
        }
    }

    async fn load_one(&self, name: &str) -> Result<Option<(Bytes, ObjectVersion)>, BucketError> {
        let path = object_path(&self.prefix, name);
        let found = match self.within(ANSWER_TIME, self.reads.get(&path)).await {
            Some(Ok(found)) => found,
            Some(Err(StoreError::NotFound { .. })) => return Ok(None),
            Some(Err(error)) => return Err(self.failed(name, &error)),
            None => return Err(silent(name)),
        };
        let version = version_of(found.meta.e_tag.clone(), found.meta.version.clone());
        let bytes = self.within(time_for(found.meta.size), found.bytes()).await;
        let bytes =
            bytes.ok_or_else(|| silent(name))?.map_err(|error| self.failed(name, &error))?;
        Ok(Some((bytes, version)))
    }

    async fn remove_one(&self, name: &str) -> Result<(), BucketError> {
        match self.within(ANSWER_TIME, self.reads.delete(&object_path(&self.prefix, name))).await {
            Some(Ok(()) | Err(StoreError::NotFound { .. })) => Ok(()),
            Some(Err(error)) => Err(self.failed(name, &error)),
            None => Err(silent(name)),
        }
    }

    async fn read(&self, part: &ObjectPart) -> Result<Option<Bytes>, BucketError> {
        if part.range.is_empty() {
            return Ok(Some(Bytes::new()));
        }
        let path = object_path(&self.prefix, &part.name);
        let read = self.reads.get_range(&path, part.range.clone());
        let time = time_for(part.range.end - part.range.start);
        let read = tokio::time::timeout(time, read).await.map_err(|_| silent(&part.name))?;
        match read {
            Ok(bytes) => {
                Ok(Some(bytes).filter(|it| it.len() as u64 == part.range.end - part.range.start))
            }
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(&part.name, &error)),
        }
    }
}

/// Returns how long a request may take that carries so many bytes.
fn time_for(bytes: u64) -> Duration {
    ANSWER_TIME + TIME_A_MEGABYTE * u32::try_from(bytes >> 20).unwrap_or(u32::MAX)
}

/// Returns the error that no answer came.
fn silent(name: &str) -> BucketError {
    BucketError::Unavailable { name: name.to_owned(), what: "no answer came".to_owned() }
}

/// The outcome of a put.
enum Answer {
    Yes(ObjectVersion),
    No,
    Unknown,
}

impl Answer {
    fn swapped(self) -> Swapped {
        match self {
            Answer::Yes(version) => Swapped::Yes(version),
            Answer::No => Swapped::No,
            Answer::Unknown => Swapped::Unknown,
        }
    }
}

/// The entity tag and version of an object, in one text.
fn version_of(e_tag: Option<String>, version: Option<String>) -> ObjectVersion {
    ObjectVersion(format!("{}\n{}", e_tag.unwrap_or_default(), version.unwrap_or_default()))
}

fn update_version(version: &ObjectVersion) -> UpdateVersion {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (e_tag, version) = version.0.split_once('\n').unwrap_or((&version.0, ""));
    UpdateVersion { e_tag: some(e_tag), version: some(version) }
}

fn failed(protocol: Protocol, name: &str, error: &StoreError) -> BucketError {
    let name = name.to_owned();
    match error {
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
            BucketError::Refused { name, what: refusal(protocol, error) }
        }
        // For a put, this is what stands above the object.
        StoreError::NotFound { .. } => {
            BucketError::Refused { name, what: format!("no such bucket ({error})") }
        }
        _ => BucketError::Unavailable { name, what: failure(protocol, error) },
    }
}

impl Bucket for ObjectBucket {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, BucketError> {
        Ok(match self.put(name, PutMode::Create, bytes)? {
            Answer::Yes(version) => Created::Made(version),
            Answer::No => Created::Exists,
            Answer::Unknown => Created::Unknown,
        })
    }

    fn swap(&self, name: &str, was: &ObjectVersion, bytes: Bytes) -> Result<Swapped, BucketError> {
        self.put(name, PutMode::Update(update_version(was)), bytes).map(Answer::swapped)
    }

    fn load(&self, name: &str) -> Result<Option<(Bytes, ObjectVersion)>, BucketError> {
        block_on(self.load_one(name))
    }

    fn load_many(&self, names: &[String]) -> Result<Vec<Option<Bytes>>, BucketError> {
        let loads = names.iter().map(|name| self.load_one(name));
        let found = stream::iter(loads).buffered(REQUESTS_MAX).try_collect::<Vec<_>>();
        Ok(block_on(found)?.into_iter().map(|found| found.map(|(bytes, _)| bytes)).collect())
    }

    fn read_many(&self, parts: &[ObjectPart]) -> Result<Vec<Option<Bytes>>, BucketError> {
        let reads = parts.iter().map(|part| self.read(part));
        block_on(stream::iter(reads).buffered(REQUESTS_MAX).try_collect::<Vec<_>>())
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        block_on(self.remove_one(name))
    }

    fn remove_many(&self, names: &[String]) -> Result<(), BucketError> {
        let removals = names.iter().map(|name| self.remove_one(name));
        block_on(stream::iter(removals).buffered(REQUESTS_MAX).try_for_each(|()| ready(Ok(()))))
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, BucketError> {
        let below = object_path(&self.prefix, prefix);
        let found = block_on(async { self.reads.list(Some(&below)).try_collect::<Vec<_>>().await })
            .map_err(|error| self.failed(prefix, &error))?;
        let start = match self.prefix.is_empty() {
            true => 0,
            false => Path::from(self.prefix.as_str()).as_ref().len() + "/".len(),
        };
        let names = found.iter().filter_map(|object| object.location.as_ref().get(start..));
        Ok(names.map(str::to_owned).collect())
    }

    fn beside(&self, place: &str) -> Option<Arc<dyn Bucket>> {
        Some(Arc::new(ObjectBucket::open(&BucketUrl::parse(place).ok()?).ok()?))
    }

    fn wait(&self, attempt: u32) {
        block_on(self.within(pause_before(attempt), std::future::pending::<()>()));
    }

    fn hang_up(&self) {
        self.has_hung_up.send_replace(true);
    }
}
