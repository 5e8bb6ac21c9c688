//! The log: commits, newest first, those that a request asks for.
//!
//! `walk` orders them and leaves out what a range (`a..b`, `a...b`) doesn't want; `path_filter`
//! finds which of them changed a collection or a document. The other commits are filtered by
//! author, message and time. Nothing is read beyond the limit, and nothing older than `since`: no
//! commit is older than its parents.
//!
//! *Paging*: a page ends with a commit; the next one is asked for with `after` that commit. The
//! order depends on the history alone, so pages fit together while new commits come on top. A page
//! costs reading the commits of the pages before it, but not comparing what they changed.

use frond_db::inside::{Commit, Error, Reader};
use frond_doc::ValueBuf;
use frond_store::ChunkHash;

use crate::history::base;
use crate::history::path_filter::PathFilter;
use crate::history::range::Range;
use crate::history::walk::{VisitOrder, Walk, visit_order_of};
use crate::repository::Repository;
use crate::{CommitInfo, history};

/// The commits that are wanted, and how many.
#[derive(Clone, Debug, Default)]
pub struct LogRequest {
    /// A revision to begin at, or `a..b`: what `b` has and `a` hasn't, or `a...b`: what only one of
    /// them has; a side that is left out is this version. Default: this version.
    pub range: Option<String>,
    /// Only commits that changed this collection.
    pub collection: Option<String>,
    /// Only commits that changed the document with this `_id` in it.
    pub document: Option<ValueBuf>,
    /// Only commits whose author holds this text, in upper or lower case.
    pub author: Option<String>,
    /// Only commits whose message holds this text, in upper or lower case.
    pub message: Option<String>,
    /// Only commits made then or later, in milliseconds since 1970.
    pub since_millis: Option<i64>,
    /// Only commits made then or before.
    pub until_millis: Option<i64>,
    /// Whether only the first parent of merges is followed.
    pub first_parent: bool,
    /// The commit behind which the list begins: the last one of the page before.
    pub after: Option<String>,
    /// The number of them that are skipped first.
    pub skip: u64,
    /// The greatest number.
    pub limit: Option<u64>,
}

/// Commits, newest first, read as they are asked for. Ends after an error.
pub struct Log {
    walk: Option<Walk>,
    filter: Option<PathFilter>,
    request: LogRequest,
    after: Option<VisitOrder>,
    skip: u64,
    left: u64,
}

impl Repository {
    /// The commits reachable from this version, newest first, at most `limit`; with `path`
    /// (a collection, and a document's `_id` in it) those that changed it.
    ///
    /// # Errors
    /// `Damaged` if a commit, or what lies at `path` in one, can't be read; as
    /// [`Repository::log_of`].
    pub fn log(
        &self,
        limit: Option<u64>,
        path: Option<(&str, Option<&ValueBuf>)>,
    ) -> Result<Vec<CommitInfo>, Error> {
        let request = LogRequest {
            limit,
            collection: path.map(|(collection, _)| collection.to_owned()),
            document: path.and_then(|(_, id)| id.cloned()),
            ..LogRequest::default()
        };
        self.log_of(request)?.collect()
    }

    /// The commits that `request` asks for, newest first.
    ///
    /// # Errors
    /// `BadValue` if a revision names nothing.
    pub fn log_of(&self, mut request: LogRequest) -> Result<Log, Error> {
        let reader = self.reader();
        let store = reader.store();
        let (tips, without) = match request.range.as_deref() {
            None => (Vec::from_iter(self.head(&reader)?), Vec::new()),
            Some(range) => self.tips_of(&reader, range)?,
        };
        let after = match &request.after {
            Some(after) => {
                let hash = self.revision(&reader, after)?;
                Some(visit_order_of(hash, &history::load(&**store, hash)?))
            }
            None => None,
        };
        for text in [&mut request.author, &mut request.message].into_iter().flatten() {
            *text = text.to_lowercase();
        }
        let filter = request
            .collection
            .as_ref()
            .map(|collection| PathFilter::new(store, collection, request.document.as_ref()));
        Ok(Log {
            walk: Some(Walk::begin(store, &tips, &without, request.first_parent)?),
            filter,
            after,
            skip: request.skip,
            left: request.limit.unwrap_or(u64::MAX),
            request,
        })
    }

    /// Returns where a range's commits begin, and where they end: the tips whose commits are left
    /// out.
    fn tips_of(
        &self,
        reader: &Reader<'_>,
        text: &str,
    ) -> Result<(Vec<ChunkHash>, Vec<ChunkHash>), Error> {
        let Some(range) = Range::of(text) else {
            return Ok((Vec::from_iter(self.revision_or_nothing(reader, text)?), Vec::new()));
        };
        let left = Vec::from_iter(self.revision_or_nothing(reader, range.left)?);
        let right = Vec::from_iter(self.revision_or_nothing(reader, range.right)?);
        if !range.is_from_base {
            return Ok((right, left));
        }
        let store = reader.store();
        let bases = match right.first() {
            Some(right) => {
                base::merge_bases(&left, *right, &mut |hash| history::load(&**store, hash))?
            }
            None => Vec::new(),
        };
        Ok(([left, right].concat(), bases))
    }
}

impl Log {
    /// The next commit, with its chunk's name and itself.
    pub(crate) fn next_commit(&mut self) -> Result<Option<(ChunkHash, Commit)>, Error> {
        while self.left > 0
            && let Some(walk) = &mut self.walk
        {
            let Some((hash, commit)) = walk.next()? else { break };
            let is_too_old =
                self.request.since_millis.is_some_and(|since| commit.timestamp_millis < since);
            if is_too_old {
                break;
            }
            if !self.is_listed(hash, &commit)? {
                continue;
            }
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            self.left -= 1;
            return Ok(Some((hash, commit)));
        }
        self.walk = None;
        Ok(None)
    }

    /// The dear question, what the commit changed, comes last.
    fn is_listed(&mut self, hash: ChunkHash, commit: &Commit) -> Result<bool, Error> {
        let request = &self.request;
        let holds = |text: &str, part: &Option<String>| {
            part.as_ref().is_none_or(|part| text.to_lowercase().contains(part.as_str()))
        };
        let is_wanted = self.after.is_none_or(|after| visit_order_of(hash, commit) < after)
            && request.until_millis.is_none_or(|until| commit.timestamp_millis <= until)
            && holds(&commit.author, &request.author)
            && holds(&commit.message, &request.message);
        match &mut self.filter {
            _ if !is_wanted => Ok(false),
            Some(filter) => filter.changed(hash, commit),
            None => Ok(true),
        }
    }

    /// Returns the state in one commit of the path that the log was asked for.
    pub(crate) fn path(&mut self) -> Option<&mut PathFilter> {
        self.filter.as_mut()
    }
}

impl Iterator for Log {
    type Item = Result<CommitInfo, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_commit();
        if next.is_err() {
            self.walk = None;
        }
        let info_of = |(hash, commit): (ChunkHash, Commit)| history::info(hash, &commit);
        next.map(|found| found.map(info_of)).transpose()
    }
}
