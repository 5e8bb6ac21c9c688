//! A data directory, open, and the settings to open it with.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use frond_db::{ChangeRetention, Durability, FrondOptions, ReclaimOptions};
use frond_vcs::Reclaimed;

use crate::{Database, Result};

/// The time that [`Frond::gc`] keeps what was dropped, so that it can be undone: two weeks.
const UNDO: Duration = Duration::from_secs(14 * 24 * 3600);

/// Settings of an open data directory.
///
/// ```
/// use fronddb::{Frond, Options};
/// # let data = tempfile::tempdir()?;
///
/// let frond = Frond::open_with(
///     &data,
///     Options {
///         memory_bytes: Some(256 << 20),
///         author: "Ada <ada@example.org>".to_owned(),
///         ..Options::default()
///     },
/// )?;
/// # drop(frond);
/// # Ok::<(), fronddb::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// One budget for caches, recent writes and queries together. `None`: as much as a server with
    /// defaults uses, somewhat more than 1 GB under load.
    pub memory_bytes: Option<u64>,
    /// The author of commits and merges that name none; empty is `frond`.
    pub author: String,
    /// The durability of writes: whether a write returns when it is on the disk (the default), or
    /// at once.
    pub durability: Durability,
}

/// A data directory, open: many databases, each a repository. Cloning shares it; it is closed when
/// the last clone, and the last [`Database`] and [`Collection`](crate::Collection) of it, are gone.
/// One process opens a directory at a time.
///
/// *Thread safety*: every method, of whatever comes from here too, may be called from any number of
/// threads at once.
#[derive(Clone)]
pub struct Frond {
    pub(crate) inner: frond_db::Frond,
    pub(crate) settings: Arc<Settings>,
}

/// The options that are needed later.
pub(crate) struct Settings {
    pub author: String,
    pub durability: Durability,
}

impl Settings {
    /// The author that is named, or else the one of the options.
    pub fn author(&self, named: &Option<String>) -> String {
        named.clone().unwrap_or_else(|| self.author.clone())
    }
}

impl Frond {
    /// Opens `directory`, making it where it is missing.
    ///
    /// ```
    /// use fronddb::Frond;
    /// # let data = tempfile::tempdir()?;
    ///
    /// let frond = Frond::open(&data)?;
    /// assert!(frond.list_databases()?.is_empty());
    /// frond.close()?;
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `DBPathInUse` if another process has it open; if it can't be read or written;
    /// [`Damaged`](crate::ErrorKind::Damaged).
    pub fn open(directory: impl AsRef<Path>) -> Result<Frond> {
        Frond::open_with(directory, Options::default())
    }

    /// As [`Frond::open`], with other settings than the default ones.
    ///
    /// # Errors
    /// As there.
    pub fn open_with(directory: impl AsRef<Path>, options: Options) -> Result<Frond> {
        let mut engine =
            options.memory_bytes.map_or_else(FrondOptions::default, FrondOptions::for_memory);
        engine.engine.changes = ChangeRetention::OF_A_DAY;
        let inner = frond_vcs::open(directory.as_ref(), engine)?;
        let Options { author, durability, .. } = options;
        Ok(Frond { inner, settings: Arc::new(Settings { author, durability }) })
    }

    /// The database that `name` names, at its default branch; or, as `shop@sale`, at another
    /// branch; or, as `shop@main~2`, `shop@v1` or `shop@<commit>`, at a version that can only be
    /// read.
    ///
    /// A database begins to exist with the first write to it.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    ///
    /// let frond = fronddb::open(&data)?;
    /// let shop = frond.database("shop")?;
    /// shop.collection::<Document>("items").insert_one(doc! { "_id": 1 })?;
    /// let first = shop.commit("first items")?;
    /// shop.branch("sale")?;
    /// assert!(!frond.database("shop@sale")?.is_read_only());
    /// assert!(frond.database(&format!("shop@{first}"))?.is_read_only());
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidNamespace` if there can't be such a name; `NamespaceNotFound` if there is no such
    /// branch or version.
    pub fn database(&self, name: &str) -> Result<Database> {
        Ok(Database::new(self.inner.database(name)?.into(), &self.settings))
    }

    /// The names of all databases, sorted; branches aren't listed.
    ///
    /// # Errors
    /// If the disk fails, or damage.
    pub fn list_databases(&self) -> Result<Vec<String>> {
        Ok(self.inner.list_databases()?.into_iter().map(|info| info.name).collect())
    }

    /// Gives back the disk space of what nothing needs any more; everything else goes on meanwhile.
    /// Data dropped, deleted or reset less than two weeks ago is kept, for [`Database::undo`].
    ///
    /// Nothing does this by itself: call it now and then from a thread of your own.
    ///
    /// # Errors
    /// [`Damaged`](crate::ErrorKind::Damaged) if something that is needed can't be read.
    pub fn gc(&self) -> Result<Reclaimed> {
        self.gc_with(GcOptions::default())
    }

    /// As [`Frond::gc`], as `options` say.
    ///
    /// # Errors
    /// As there.
    pub fn gc_with(&self, options: GcOptions) -> Result<Reclaimed> {
        let GcOptions { keep_undo, thorough, bytes_a_second } = options;
        let keep_millis = u64::try_from(keep_undo.as_millis()).unwrap_or(u64::MAX);
        let options = ReclaimOptions { thorough, bytes_a_second, purge: false };
        Ok(frond_vcs::reclaim(&self.inner, keep_millis, options)?)
    }

    /// Removes the documents that have expired by their TTL indexes; answers how many.
    ///
    /// Nothing does this by itself (a server does, each minute): call it as often as you want it
    /// done.
    ///
    /// # Errors
    /// The first failure; the other collections were looked after all the same.
    pub fn expire_documents(&self) -> Result<u64> {
        Ok(self.inner.expire_documents(&frond_db::Interrupt::default())?)
    }

    /// Makes everything durable that was written under [`Durability::Relaxed`].
    ///
    /// # Errors
    /// If the disk fails.
    pub fn flush(&self) -> Result<()> {
        Ok(self.inner.flush()?)
    }

    /// Writes what is in memory to its files and lets go of the directory; what is still held of it
    /// fails with [`Closed`](crate::ErrorKind::Closed) from then on. Not needed for durability,
    /// only so that the next open is fast.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn close(self) -> Result<()> {
        Ok(self.inner.close()?)
    }
}

impl fmt::Debug for Frond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frond").finish_non_exhaustive()
    }
}

/// The options of garbage collection.
#[derive(Clone, Copy, Debug)]
pub struct GcOptions {
    /// The time that what was dropped, deleted or reset can be undone. The default is two weeks.
    pub keep_undo: Duration,
    /// Whether history is packed in groups of related chunks: the smallest disk, for the time that
    /// it takes to read and write it once. The default.
    pub thorough: bool,
    /// Bytes read and written a second at most.
    pub bytes_a_second: Option<u64>,
}

impl Default for GcOptions {
    fn default() -> GcOptions {
        GcOptions { keep_undo: UNDO, thorough: true, bytes_a_second: None }
    }
}
