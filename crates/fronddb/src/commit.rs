//! Commits of a branch, and going back: log, status, tags, reset and undo.

use std::fmt;

use bson::DateTime;
use frond_vcs::{CommitId, CommitInfo, CommitRequest, Log as InnerLog, LogRequest, Status};

use crate::{Bson, Database, Result, convert};

/// A commit.
#[derive(Clone, PartialEq, Debug)]
pub struct Commit {
    /// Its name.
    pub id: CommitId,
    /// Its parents: none for the first commit, two for a merge.
    pub parents: Vec<CommitId>,
    /// Its author.
    pub author: String,
    /// The message.
    pub message: String,
    /// The time.
    pub time: DateTime,
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = self.message.lines().next().unwrap_or_default();
        let time = self.time.try_to_rfc3339_string().unwrap_or_else(|_| self.time.to_string());
        write!(f, "{} {time} {}: {title}", self.id, self.author)
    }
}

impl From<CommitInfo> for Commit {
    fn from(info: CommitInfo) -> Commit {
        Commit {
            id: info.id,
            parents: info.parents,
            author: info.author,
            message: info.message,
            time: DateTime::from_millis(info.timestamp_millis),
        }
    }
}

/// The options of a commit.
#[derive(Clone, Debug, Default)]
pub struct CommitOptions {
    /// The committer, if not whom [`Options::author`](crate::Options::author) names.
    pub author: Option<String>,
    /// Take the place of the last commit, with what it changed and what has changed since.
    pub amend: bool,
    /// Commit even if nothing has changed.
    pub allow_empty: bool,
}

/// Selects the commits of a log.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    /// A version to begin at, or `a..b`: what `b` has and `a` hasn't.
    pub range: Option<String>,
    /// Only commits that changed this collection.
    pub collection: Option<String>,
    /// Only commits that changed the document with this `_id` in it.
    pub document: Option<Bson>,
    /// Only commits whose author holds this text.
    pub author: Option<String>,
    /// Only commits whose message holds this text.
    pub message: Option<String>,
    /// Only commits made then or later.
    pub since: Option<DateTime>,
    /// Only commits made then or before.
    pub until: Option<DateTime>,
}

impl LogOptions {
    pub(crate) fn request(&self) -> Result<LogRequest> {
        Ok(LogRequest {
            range: self.range.clone(),
            collection: self.collection.clone(),
            document: convert::value_any(self.document.as_ref())?,
            author: self.author.clone(),
            message: self.message.clone(),
            since_millis: self.since.map(DateTime::timestamp_millis),
            until_millis: self.until.map(DateTime::timestamp_millis),
            ..LogRequest::default()
        })
    }
}

/// Commits, newest first, read as they are asked for. Ends after an error.
pub struct Log(InnerLog);

impl Iterator for Log {
    type Item = Result<Commit>;

    fn next(&mut self) -> Option<Result<Commit>> {
        Some(self.0.next()?.map(Commit::from).map_err(Into::into))
    }
}

/// A name that stays with a commit.
#[derive(Clone, PartialEq, Debug)]
pub struct Tag {
    /// Its name.
    pub name: String,
    /// The commit.
    pub commit: CommitId,
}

impl Database {
    /// Records the branch's working state as a commit. Writers go on meanwhile; the cost follows
    /// what has changed.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1, "price": 30 })?;
    /// let id = shop.commit("first items")?;
    /// items.update_one(doc! { "_id": 1 }, doc! { "$set": { "price": 35 } })?;
    /// let then = shop.checkout(id)?.collection::<Document>("items");
    /// assert_eq!(then.get(1)?, Some(doc! { "_id": 1, "price": 30 }));
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `BadValue` if nothing has changed since the last commit; `UserWritesBlocked` if this version
    /// can only be read; `IllegalOperation` if conflicts of a merge wait.
    pub fn commit(&self, message: &str) -> Result<CommitId> {
        self.commit_with(message, CommitOptions::default())
    }

    /// As [`Database::commit`], as `options` say.
    ///
    /// ```
    /// use fronddb::{CommitOptions, Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1 })?;
    /// shop.commit("first itmes")?;
    /// let corrected = CommitOptions { amend: true, ..CommitOptions::default() };
    /// let id = shop.commit_with("first items", corrected)?;
    ///
    /// let log = shop.log()?.collect::<fronddb::Result<Vec<_>>>()?;
    /// assert_eq!(log.len(), 1);
    /// assert_eq!((log[0].id, log[0].message.as_str()), (id, "first items"));
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn commit_with(&self, message: &str, options: CommitOptions) -> Result<CommitId> {
        let CommitOptions { author, amend, allow_empty } = options;
        let request = CommitRequest {
            message: Some(message.to_owned()),
            author: Some(self.settings.author(&author)),
            amend,
            allow_empty,
            ..CommitRequest::default()
        };
        Ok(self.inner.commit_as(&request)?.id)
    }

    /// The commits that led to this version, newest first.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1 })?;
    /// shop.commit("first items")?;
    /// for commit in shop.log()? {
    ///     assert_eq!(commit?.message, "first items");
    /// }
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the disk fails, or damage.
    pub fn log(&self) -> Result<Log> {
        self.log_with(LogOptions::default())
    }

    /// As [`Database::log`], of the commits that `options` ask for.
    ///
    /// # Errors
    /// As there; `BadValue` if a version names nothing.
    pub fn log_with(&self, options: LogOptions) -> Result<Log> {
        Ok(Log(self.inner.log_of(options.request()?)?))
    }

    /// The last commit of this version; `None` before the first.
    ///
    /// # Errors
    /// If the disk fails, or damage.
    pub fn head(&self) -> Result<Option<CommitId>> {
        Ok(self.log()?.next().transpose()?.map(|commit| commit.id))
    }

    /// Returns how the working state differs from the last commit, counted, and whether a merge
    /// waits. [`Database::diff_with`] lists the differences.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1 })?;
    /// let status = shop.status()?;
    /// assert_eq!(status.collections[0].collection, "items");
    /// shop.commit("first items")?;
    /// assert!(shop.status()?.collections.is_empty());
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `IllegalOperation` if this version can only be read.
    pub fn status(&self) -> Result<Status> {
        Ok(self.inner.status()?)
    }

    /// Moves the branch to `version`, its working state too. `"HEAD"` throws away what isn't
    /// committed. It can be [undone](Database::undo).
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1 })?;
    /// shop.commit("first items")?;
    /// items.insert_one(doc! { "_id": 2 })?;
    /// shop.reset("HEAD")?;
    /// assert_eq!(items.count(doc! {})?, 1);
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// `WORKING@{TIME}` is the branch as it was then; the answer is its last commit at that time,
    /// if it had one.
    ///
    /// # Errors
    /// `BadValue` if the version names nothing; `SnapshotTooOld` if the log doesn't reach the time;
    /// `UserWritesBlocked` if this one can only be read.
    pub fn reset(&self, version: impl fmt::Display) -> Result<Option<CommitId>> {
        Ok(self.inner.reset(Some(&version.to_string()), true)?)
    }

    /// Moves the branch to `version` and leaves its working state as it is.
    ///
    /// # Errors
    /// As [`Database::reset`]; `IllegalOperation` if conflicts of a merge wait.
    pub fn reset_soft(&self, version: impl fmt::Display) -> Result<CommitId> {
        let head = self.inner.reset(Some(&version.to_string()), false)?;
        Ok(head.expect("a soft reset moves to a commit"))
    }

    /// Undoes the last change of this branch: a commit, a merge, a reset, a dropped collection.
    /// Called again it goes back further. Answers what was undone.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1 })?;
    /// items.clone().drop()?;
    /// shop.undo()?;
    /// assert_eq!(items.count(doc! {})?, 1);
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NoSuchKey` if there is nothing to undo; `IllegalOperation` if conflicts of a merge wait.
    pub fn undo(&self) -> Result<String> {
        Ok(self.inner.undo(None, None)?.change.why)
    }

    /// Names the last commit of this version; it can be read as `shop@name` from then on.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1 })?;
    /// shop.commit("first items")?;
    /// shop.tag("v1")?;
    /// items.delete_many(doc! {})?;
    /// let then = shop.checkout("v1")?.collection::<Document>("items");
    /// assert_eq!(then.count(doc! {})?, 1);
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NamespaceExists` if there is a tag or a branch of that name; `BadValue` if there is no
    /// commit.
    pub fn tag(&self, name: &str) -> Result<Tag> {
        let tag = self.inner.create_tag(name, None, None, false)?;
        Ok(Tag { name: tag.name, commit: tag.commit })
    }

    /// The tags, by name.
    ///
    /// # Errors
    /// If the disk fails, or damage.
    pub fn list_tags(&self) -> Result<Vec<Tag>> {
        let tags = self.inner.list_tags()?.into_iter();
        Ok(tags.map(|tag| Tag { name: tag.name, commit: tag.commit }).collect())
    }

    /// Removes a tag; the commit stays.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such tag.
    pub fn delete_tag(&self, name: &str) -> Result<()> {
        self.inner.delete_tag(name)?;
        Ok(())
    }
}
