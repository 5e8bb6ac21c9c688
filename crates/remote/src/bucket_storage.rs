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
use object_store::path::Path;
use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    UpdateVersion,
};

use crate::object_client::{Patience, failure, object_client, object_path, refusal};
use crate::remote_url::{BucketUrl, Protocol};
use crate::runtime::block_on;

/// Requests that are on their way at once.
const REQUESTS_MAX: usize = 16;

/// A bucket, or a part of one below a prefix.
pub struct BucketStorage {
    store: Arc<dyn ObjectStore>,
    protocol: Protocol,
    prefix: String,
}

/// Returns the error that an object store reports.
fn failed(protocol: Protocol, name: &str, error: &StoreError) -> Error {
    let what = match error {
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
            refusal(protocol, error)
        }
        _ => failure(protocol, error),
    };
    Error::unavailable(format!("{name}: {what}"))
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
        BucketStorage { store, protocol: Protocol::S3, prefix: prefix.to_owned() }
    }

    /// The bucket at `url`, with the endpoint and credentials that the usual variables name:
    /// `AWS_ACCESS_KEY_ID`, `AZURE_STORAGE_ACCOUNT`, `GOOGLE_APPLICATION_CREDENTIALS` and so on.
    ///
    /// # Errors
    /// `BadValue` if one of them can't be read; `Unavailable` if these don't fit together.
    pub fn open(url: &BucketUrl) -> Result<BucketStorage, Error> {
        let store = object_client(url, &Patience::default())?;
        let protocol = url.protocol;
        Ok(BucketStorage { protocol, ..BucketStorage::new(store, &url.prefix) })
    }

    fn failed(&self, name: &str, error: &StoreError) -> Error {
        failed(self.protocol, name, error)
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
            Err(error) => Err(self.failed(name, &error)),
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
            Err(error) => Err(self.failed(&part.name, &error)),
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
        let failed = |error| self.failed("the bucket", &error);
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
            Err(error) => Err(self.failed(name, &error)),
        }
    }

    fn load(&self, name: &str, bytes_max: usize) -> Result<Option<(Bytes, FileVersion)>, Error> {
        block_on(async {
            let found = match self.store.get(&object_path(&self.prefix, name)).await {
                Ok(found) => found,
                Err(StoreError::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(self.failed(name, &error)),
            };
            if bytes_max as u64 <= found.meta.size {
                return Err(Error::damaged(format!("{name} is too large")));
            }
            let version = version_of(found.meta.e_tag.clone(), found.meta.version.clone());
            let bytes = found.bytes().await.map_err(|error| self.failed(name, &error))?;
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
