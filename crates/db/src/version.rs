//! History: commits, branches, diff, merge, reset.

use std::fmt;

use frond_doc::{DocumentBuf, ValueBuf};

use crate::database::Database;
use crate::error::Error;

/// The first 160 bits of a commit chunk's name; printed as 32 letters of base32 (`0-9a-v`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct CommitId(pub [u8; 20]);

impl fmt::Display for CommitId {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        todo!()
    }
}

/// Finds the commit that `version` (a revision: an id, a unique prefix of one, a branch, `HEAD`, each
/// with steps to ancestors) names in `database`, and its chunk.
pub(crate) fn resolve(
    _reader: &crate::reader::Reader<'_>,
    _database: &str,
    _version: &str,
) -> Result<Option<(CommitId, frond_store::ChunkHash)>, Error> {
    todo!()
}

/// A commit as `frondLog` tells it.
#[derive(Clone, Debug)]
pub struct CommitInfo {
    /// Its name.
    pub id: CommitId,
    /// None for the first, two for a merge.
    pub parents: Vec<CommitId>,
    /// `Name <mail>` or whatever was given.
    pub author: String,
    /// Why.
    pub message: String,
    /// Milliseconds since 1970.
    pub timestamp_millis: i64,
}

/// What differs in one collection.
#[derive(Clone, Debug)]
pub struct CollectionDiff {
    /// Its name.
    pub collection: String,
    /// What happened to the collection itself.
    pub change: CollectionChange,
    /// Documents that are only on the right side.
    pub added: Vec<DocumentBuf>,
    /// Documents that are only on the left side.
    pub removed: Vec<DocumentBuf>,
    /// Documents on both sides that differ.
    pub modified: Vec<DocumentDiff>,
    /// Names of indexes that were added, removed or changed.
    pub indexes: Vec<String>,
}

/// What happened to a collection between two versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum CollectionChange {
    Added,
    Removed,
    Modified,
}

/// A document that differs.
#[derive(Clone, Debug)]
pub struct DocumentDiff {
    /// Its `_id`.
    pub id: ValueBuf,
    /// Field by field, recursively through documents; arrays element by element.
    pub changes: Vec<FieldChange>,
}

/// A field that differs.
#[derive(Clone, Debug)]
pub struct FieldChange {
    /// `added`, `removed` or `modified`.
    pub kind: FieldChangeKind,
    /// Dotted path.
    pub path: String,
    /// The value on the left side.
    pub from: Option<ValueBuf>,
    /// The value on the right side.
    pub to: Option<ValueBuf>,
}

/// What happened to a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum FieldChangeKind {
    Added,
    Removed,
    Modified,
}

/// What `frondStatus` tells.
#[derive(Clone, Debug)]
pub struct Status {
    /// The branch.
    pub branch: String,
    /// Its HEAD; `None` before the first commit.
    pub head: Option<CommitId>,
    /// Changed documents a collection, against HEAD: (collection, change, added, removed, modified).
    pub collections: Vec<CollectionStatus>,
    /// The commit being merged, if a merge waits for its conflicts to be resolved.
    pub merging: Option<CommitId>,
    /// Conflicts left, a collection.
    pub conflicts: Vec<(String, u64)>,
}

/// One collection's changes against HEAD.
#[derive(Clone, Debug)]
pub struct CollectionStatus {
    /// Its name.
    pub collection: String,
    /// What happened to it.
    pub change: CollectionChange,
    /// Documents added.
    pub added: u64,
    /// Documents removed.
    pub removed: u64,
    /// Documents modified.
    pub modified: u64,
}

/// A branch.
#[derive(Clone, Debug)]
pub struct BranchInfo {
    /// Its name.
    pub name: String,
    /// Its HEAD; `None` before the first commit.
    pub head: Option<CommitId>,
}

/// How to merge.
#[derive(Clone, Debug, Default)]
pub struct MergeRequest {
    /// Branch or revision to merge into this branch.
    pub merge_in: String,
    /// The merge commit's message.
    pub message: Option<String>,
    /// Its author.
    pub author: Option<String>,
    /// Make a merge commit even where a fast-forward would do.
    pub no_fast_forward: bool,
    /// Refuse if a fast-forward won't do.
    pub fast_forward_only: bool,
}

/// How a merge ended.
#[derive(Clone, Debug)]
pub enum MergeOutcome {
    /// Nothing to merge.
    UpToDate {
        /// HEAD, unchanged.
        head: CommitId,
    },
    /// The branch moved to the other side's commit.
    FastForward {
        /// HEAD now.
        head: CommitId,
    },
    /// A commit with two parents was made.
    Merged {
        /// It.
        commit: CommitInfo,
    },
    /// Conflicts wait to be resolved; the branch's working state holds all that merged cleanly.
    Conflicts {
        /// How many, a collection.
        counts: Vec<(String, u64)>,
    },
}

/// A conflict, kept as data.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// Names it: base32 letters.
    pub id: String,
    /// The collection.
    pub collection: String,
    /// The document's `_id`.
    pub document_id: ValueBuf,
    /// The paths on which the two sides differ; empty if one side removed the document.
    pub paths: Vec<String>,
    /// The document as it was.
    pub base: Option<DocumentBuf>,
    /// As we have it.
    pub ours: Option<DocumentBuf>,
    /// As they have it.
    pub theirs: Option<DocumentBuf>,
}

/// How a conflict is resolved.
#[derive(Clone, Debug)]
pub enum Resolution {
    /// Keep ours on the paths in conflict.
    Ours,
    /// Take theirs on the paths in conflict.
    Theirs,
    /// This document, or none.
    Value(Option<DocumentBuf>),
}

impl Database {
    /// Records the branch's working state as a commit. `Invalid` if nothing changed.
    pub fn commit(&self, _message: &str, _author: &str) -> Result<CommitInfo, Error> {
        todo!()
    }

    /// The commits reachable from this version, newest first, at most `limit`; with `path`
    /// (a collection, and a document's `_id` in it) those that changed it.
    pub fn log(
        &self,
        _limit: Option<u64>,
        _path: Option<(&str, Option<&ValueBuf>)>,
    ) -> Result<Vec<CommitInfo>, Error> {
        todo!()
    }

    /// How the working state differs from HEAD.
    pub fn status(&self) -> Result<Status, Error> {
        todo!()
    }

    /// The branches, by name.
    pub fn list_branches(&self) -> Result<Vec<BranchInfo>, Error> {
        todo!()
    }

    /// Makes a branch at `start` (default: this version's commit; never dirty state). O(1).
    pub fn create_branch(&self, _name: &str, _start: Option<&str>) -> Result<BranchInfo, Error> {
        todo!()
    }

    /// Deletes a branch; one that isn't merged into the default branch, or has changes that aren't
    /// committed, only with `force`.
    pub fn delete_branch(&self, _name: &str, _force: bool) -> Result<(), Error> {
        todo!()
    }

    /// How two versions differ: revisions, `WORKING` or branch names' working states; `from`
    /// defaults to HEAD, `to` to this branch's working state. Cost follows the difference.
    pub fn diff(
        &self,
        _from: Option<&str>,
        _to: Option<&str>,
    ) -> Result<Vec<CollectionDiff>, Error> {
        todo!()
    }

    /// Merges another version into this branch. The working state must have no changes.
    pub fn merge(&self, _request: &MergeRequest) -> Result<MergeOutcome, Error> {
        todo!()
    }

    /// Ends a merge whose conflicts are all resolved.
    pub fn merge_continue(
        &self,
        _message: Option<&str>,
        _author: Option<&str>,
    ) -> Result<CommitInfo, Error> {
        todo!()
    }

    /// Gives a merge up: the working state is HEAD's again.
    pub fn merge_abort(&self) -> Result<(), Error> {
        todo!()
    }

    /// The conflicts that wait, of one collection or all.
    pub fn conflicts(&self, _collection: Option<&str>) -> Result<Vec<Conflict>, Error> {
        todo!()
    }

    /// Resolves one conflict; answers how many are left.
    pub fn resolve_conflict(&self, _id: &str, _resolution: &Resolution) -> Result<u64, Error> {
        todo!()
    }

    /// Moves the branch to `target` (default HEAD). Hard: the working state becomes the target's;
    /// soft: the working state stays as it is.
    pub fn reset(&self, _target: Option<&str>, _hard: bool) -> Result<CommitId, Error> {
        todo!()
    }
}
