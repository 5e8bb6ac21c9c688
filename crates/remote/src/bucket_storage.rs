//! The files of a plain remote as objects of a bucket.
//!
//! A pack is an object that is made once; the refs are one object, which is replaced by a
//! conditional put: only if its entity tag is the one that was read, or only if there is none. So
//! of two writers one fails, if the store keeps that promise, which `frond doctor --store` finds
//! out.

use std::sync::Arc;

use bytes::Bytes;
use frond_db::Error;
use frond_vcs::remote::{FilePart, FileVersion, PlainStorage};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    UpdateVersion,
};

use crate::runtime::{block_on, choose_cryptography};

/// Requests that are on their way at once.
const REQUESTS_MAX: usize = 16;

/// A bucket, or a part of one below a prefix.
pub struct BucketStorage {
    store: Arc<dyn ObjectStore>,
    prefix: String,
}

/// Variables that name another store than Amazon's.
const ENDPOINTS: [&str; 3] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];

/// Returns where the object `name` lies below `prefix`.
pub(crate) fn object_path(prefix: &str, name: &str) -> Path {
    match prefix.is_empty() {
        true => Path::from(name),
        false => Path::from(format!("{prefix}/{name}")),
    }
}

/// Returns how to reach a bucket, by the usual variables; an empty one counts as none.
///
/// # Errors
/// `BadValue` if one that names the store is no URL.
pub(crate) fn s3_builder(bucket: &str) -> Result<AmazonS3Builder, Error> {
    choose_cryptography();
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut builder = AmazonS3Builder::new().with_bucket_name(bucket);
    for (name, value) in std::env::vars().filter(|(_, value)| !value.is_empty()) {
        let key = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>();
        if let (true, Ok(key)) = (name.starts_with("AWS_"), key) {
            builder = builder.with_config(key, value);
        }
    }
    let Some((name, url)) = ENDPOINTS.iter().find_map(|name| Some((name, set(name)?))) else {
        return Ok(builder);
    };
    // A store given without TLS is meant so.
    let is_plain = url.starts_with("http://");
    if !is_plain && !url.starts_with("https://") {
        return Err(Error::bad_value(format!("{name}={url}: http(s)://HOST[:PORT] is expected")));
    }
    Ok(builder.with_allow_http(is_plain))
}

/// Credentials that no variable names are asked of the machine that Amazon rents out, at an address
/// of its own, which means nothing elsewhere.
pub fn without_credentials(what: &str) -> String {
    const OF_MACHINE: &str = "169.254.169.254";
    if what.contains(OF_MACHINE) {
        format!("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY ({what})")
    } else {
        what.to_owned()
    }
}

/// Returns the error that an object store reports.
fn failed(name: &str, error: &StoreError) -> Error {
    let message = match error {
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
            format!(
                "{name}: the store refuses access: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY \
                     must be those of a user who has access ({error})"
            )
        }
        _ => format!("{name}: {}", without_credentials(&error.to_string())),
    };
    Error::unavailable(message)
}

/// The entity tag and version of an object, in one text.
fn version_of(e_tag: Option<String>, version: Option<String>) -> FileVersion {
    FileVersion(format!("{}\n{}", e_tag.unwrap_or_default(), version.unwrap_or_default()))
}

fn update_version(version: &FileVersion) -> UpdateVersion {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (e_tag, version) = version.0.split_once('\n').unwrap_or((&version.0, ""));
    UpdateVersion { e_tag: some(e_tag), version: some(version) }
}

impl BucketStorage {
    /// The objects of `store` below `prefix`.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str) -> BucketStorage {
        BucketStorage { store, prefix: prefix.to_owned() }
    }

    /// A bucket of S3, or of what speaks its protocol at `AWS_ENDPOINT_URL`. Region and credentials
    /// are those of the usual variables: `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`
    /// and so on.
    ///
    /// # Errors
    /// `Unavailable` if these don't fit together.
    pub fn s3(bucket: &str, prefix: &str) -> Result<BucketStorage, Error> {
        let store = s3_builder(bucket)?.build().map_err(|error| failed(bucket, &error))?;
        Ok(BucketStorage::new(Arc::new(store), prefix))
    }

    /// Puts an object as `mode` says. Returns whether it did, and what it is then.
    async fn put(
        &self,
        name: &str,
        mode: PutMode,
        bytes: Bytes,
    ) -> Result<Option<FileVersion>, Error> {
        let options = PutOptions { mode, ..PutOptions::default() };
        let done = self
            .store
            .put_opts(&object_path(&self.prefix, name), PutPayload::from(bytes), options)
            .await;
        match done {
            Ok(done) => Ok(Some(version_of(done.e_tag, done.version))),
            // A store that gets two requests at once may ask one client to try again: it lost, too.
            Err(
                StoreError::AlreadyExists { .. }
                | StoreError::Precondition { .. }
                | StoreError::NotFound { .. },
            ) => Ok(None),
            Err(error) if is_conflict(&error) => Ok(None),
            Err(StoreError::NotImplemented { .. } | StoreError::NotSupported { .. }) => {
                let message = "the store has no conditional put: it can't hold a remote";
                Err(Error::bad_value(message))
            }
            Err(error) => Err(failed(name, &error)),
        }
    }

    /// Replaces the object `name` if it is `expected` now. Returns what it is then, if it was.
    pub(crate) fn swap_version(
        &self,
        name: &str,
        expected: Option<&FileVersion>,
        bytes: Bytes,
    ) -> Result<Option<FileVersion>, Error> {
        let mode = match expected {
            None => PutMode::Create,
            Some(version) => PutMode::Update(update_version(version)),
        };
        block_on(self.put(name, mode, bytes))
    }

    async fn read(&self, part: &FilePart) -> Result<Option<Bytes>, Error> {
        if part.range.is_empty() {
            return Ok(Some(Bytes::new()));
        }
        match self.store.get_range(&object_path(&self.prefix, &part.name), part.range.clone()).await
        {
            Ok(bytes) if bytes.len() as u64 == part.range.end - part.range.start => Ok(Some(bytes)),
            Ok(_) => Err(Error::damaged(format!("remote: {}: is cut", part.name))),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed(&part.name, &error)),
        }
    }
}

/// Whether a store says that two requests met (409), as S3 does of conditional puts at once.
fn is_conflict(error: &StoreError) -> bool {
    let text = error.to_string();
    text.contains("ConditionalRequestConflict") || text.contains("409 Conflict")
}

impl PlainStorage for BucketStorage {
    fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>, Error> {
        let below = (!self.prefix.is_empty()).then(|| Path::from(self.prefix.as_str()));
        let failed = |error| failed("the bucket", &error);
        let found =
            block_on(async { self.store.list(below.as_ref()).try_collect::<Vec<_>>().await })
                .map_err(failed)?;
        let mut names = Vec::new();
        for object in found {
            let text = object.location.as_ref();
            let name = match &below {
                Some(below) => text.strip_prefix(below.as_ref()).and_then(|n| n.strip_prefix('/')),
                None => Some(text),
            };
            if let Some(name) = name.filter(|name| name.starts_with(prefix) && !name.contains('/'))
            {
                names.push((name.to_owned(), object.size));
            }
        }
        names.sort();
        Ok(names)
    }

    fn read_many(&self, parts: &[FilePart]) -> Result<Option<Vec<Bytes>>, Error> {
        let reads = parts.iter().map(|part| self.read(part));
        let read = block_on(stream::iter(reads).buffered(REQUESTS_MAX).try_collect::<Vec<_>>())?;
        Ok(read.into_iter().collect())
    }

    fn create(&self, name: &str, bytes: Bytes) -> Result<(), Error> {
        // No other writer uses the name, so it may be put twice if an answer is lost.
        match block_on(self.put(name, PutMode::Overwrite, bytes))? {
            Some(_) => Ok(()),
            None => Err(Error::unavailable(format!("{name}: the store didn't take it"))),
        }
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        match block_on(self.store.delete(&object_path(&self.prefix, name))) {
            Ok(()) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(name, &error)),
        }
    }

    fn load(&self, name: &str, bytes_max: usize) -> Result<Option<(Bytes, FileVersion)>, Error> {
        block_on(async {
            let found = match self.store.get(&object_path(&self.prefix, name)).await {
                Ok(found) => found,
                Err(StoreError::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(failed(name, &error)),
            };
            if bytes_max as u64 <= found.meta.size {
                return Err(Error::damaged(format!("{name} is too large")));
            }
            let version = version_of(found.meta.e_tag.clone(), found.meta.version.clone());
            let bytes = found.bytes().await.map_err(|error| failed(name, &error))?;
            Ok(Some((bytes, version)))
        })
    }

    fn swap(
        &self,
        name: &str,
        expected: Option<&FileVersion>,
        bytes: Bytes,
    ) -> Result<bool, Error> {
        Ok(self.swap_version(name, expected, bytes)?.is_some())
    }

    fn sweep(&self) -> Result<(), Error> {
        // An object is there as a whole or not at all.
        Ok(())
    }
}
