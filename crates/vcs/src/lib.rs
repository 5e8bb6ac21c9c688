//! Frond's versions: commits, branches, diff, merge, remotes; what keeps, checks and saves them.
//!
//! Stands on databases (`frond_db`): [`open()`] opens a data directory with versions, and a
//! [`Repository`] is a version of a database with its history. The services of databases to this
//! crate alone are `frond_db::inside`; those that they need of it are its trait `Versions`
//! (`layer`).
//!
//! Reading order: a version of a database ([`Repository`]), names of versions (`refs`), the way
//! back from one (`history`), a branch at one moment (`state`), what compares (`diff`, `status`),
//! what makes history (`commit`, `branch`, `adopt`, `reset`; by rule, `policy`), `merge` with all
//! that merges and replays, `conflict`, taking back (`undo`) and taking out (`erase`), what
//! databases ask of all this (`layer`), [`remote`], and what looks after a whole directory:
//! [`reclaim()`] (disk space), [`undoable()`] (what can be undone), [`fsck()`] (is all of it
//! whole?), [`repair()`] (whole again, from elsewhere), [`salvage()`] (what is left of it),
//! [`health`] (how it is).
//!
//! *One idea carries it*: a version is a catalog, a tree of collections; the working state has one
//! too, once its changes are folded. The same content has the same root, so comparing costs what
//! differs.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod fields;
mod repository;
mod three_way;

pub(crate) mod history;
mod refs;

pub(crate) mod conflict;
mod past;
pub(crate) mod state;

mod diff;
mod document_history;
mod status;

pub mod rows;
pub(crate) mod source;

mod adopt;
mod branch;
mod collection_rules;
mod commit;
mod policy;
mod reset;
mod restore;

mod merge;

mod erase;
mod undo;

mod layer;

pub mod remote;

mod doctor;
mod fsck;
mod handover;
mod open;
mod reclaim;
mod repair;
mod salvage;

pub use commit::{CommitRequest, CommitToJudge};
pub use diff::rows::{DiffDetail, DiffRequest, DiffRow, DiffRows};
pub use doctor::{Health, health};
pub use document_history::{DocumentHistory, DocumentVersion};
pub use erase::{EraseRequest, Erased, Replaced};
pub use frond_db::inside::CommitId;
pub use frond_db::inside::merge_rules::{
    EqualChanges, FieldRule, Granularity, MergeRules, MergeSide, parse_field_rules,
};
use frond_doc::{DocumentBuf, ValueBuf};
pub use frond_store::unrelated_file;
pub use fsck::{FsckReport, fsck, fsck_on};
pub use handover::{Handover, HandoverBranch};
pub use history::NOTHING;
pub use history::blame::{Blame, BlamedField};
pub use history::log::{Log, LogRequest};
pub use merge::judged::JudgedMerge;
pub use merge::pick::{PickKind, PickRequest};
pub use merge::rebase::Rebased;
pub use merge::resolve::ConflictSelection;
pub use open::{lead, open, open_in_set, open_on, open_reader, open_with_slots};
pub use policy::BranchPolicy;
pub use policy::automatic::{
    DueCommit, PolicyRun, commit_due, due_commits, expire_branches, run_policies,
};
pub use policy::commit_policy::CommitPolicy;
pub use reclaim::{Reclaimed, forget, reclaim, reclaim_until};
pub use refs::naming::{naming_branch, naming_branch_of};
pub use refs::reflog::RefChangeInfo;
pub use refs::tag::TagInfo;
pub use repair::{ChunkSource, RepairReport, mend_on, repair};
pub use repository::Repository;
pub use restore::Restored;
pub use salvage::{
    LostPart, PartRequest, SalvageReport, SalvagedCollection, restore_part, salvage, salvage_from,
    survey_backup,
};
pub use undo::UndoReport;
pub use undo::dropped::DroppedDatabase;
pub use undo::undoable::{Undoable, undoable};

/// A commit as `frondLog` shows it.
#[derive(Clone, Debug)]
pub struct CommitInfo {
    /// Its name.
    pub id: CommitId,
    /// The parents: none for the first, two for a merge.
    pub parents: Vec<CommitId>,
    /// `Name <mail>` or whatever was given.
    pub author: String,
    /// The message.
    pub message: String,
    /// The time when it was made: milliseconds since 1970.
    pub timestamp_millis: i64,
    /// Its author; mostly the author.
    pub committer: String,
    /// The time when the changes were made; mostly when it was.
    pub authored_millis: i64,
    /// Whether a policy made it.
    pub automatic: bool,
    /// The commit it takes back, if a revert made it. An amended commit has none.
    pub reverts: Option<CommitId>,
}

/// The differences in one collection.
#[derive(Clone, Debug)]
pub struct CollectionDiff {
    /// Its name.
    pub collection: String,
    /// The change to the collection itself.
    pub change: CollectionChange,
    /// Documents that are only on the right side.
    pub added: Vec<DocumentBuf>,
    /// Documents that are only on the left side.
    pub removed: Vec<DocumentBuf>,
    /// Documents on both sides that differ.
    pub modified: Vec<DocumentDiff>,
    /// Indexes that were added, removed or changed.
    pub indexes: Vec<IndexChange>,
    /// Its options on both sides, where they differ.
    pub options: Option<(DocumentBuf, DocumentBuf)>,
}

/// An index that differs.
#[derive(Clone, PartialEq, Debug)]
pub struct IndexChange {
    /// Its name.
    pub name: String,
    /// As `listIndexes` shows it, on the left side.
    pub from: Option<DocumentBuf>,
    /// On the right side.
    pub to: Option<DocumentBuf>,
}

/// The change to a collection between two versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum CollectionChange {
    Added,
    Removed,
    Modified,
}

impl CollectionChange {
    /// `added`, `removed` or `modified`.
    pub fn name(self) -> &'static str {
        match self {
            CollectionChange::Added => "added",
            CollectionChange::Removed => "removed",
            CollectionChange::Modified => "modified",
        }
    }

    /// Returns the change to a thing that is on one side or both.
    fn between(is_left: bool, is_right: bool) -> CollectionChange {
        match (is_left, is_right) {
            (false, _) => CollectionChange::Added,
            (_, false) => CollectionChange::Removed,
            _ => CollectionChange::Modified,
        }
    }
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
    /// `added`, `removed` or `modified`; `reordered` if the document at the path has its fields in
    /// another order: `from` and `to` are their names.
    pub kind: FieldChangeKind,
    /// Dotted path.
    pub path: String,
    /// The value on the left side.
    pub from: Option<ValueBuf>,
    /// The value on the right side.
    pub to: Option<ValueBuf>,
}

/// The change to a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum FieldChangeKind {
    Added,
    Removed,
    Modified,
    Reordered,
}

/// The answer of `frondStatus`.
#[derive(Clone, Debug)]
pub struct Status {
    /// The branch.
    pub branch: String,
    /// Its HEAD; `None` before the first commit.
    pub head: Option<CommitId>,
    /// Changed documents a collection, against HEAD: (collection, change, added, removed,
    /// modified).
    pub collections: Vec<CollectionStatus>,
    /// The commit being merged, if a merge waits for its conflicts to be resolved.
    pub merging: Option<CommitId>,
    /// The kind of operation that waits: a merge, a squash, a cherry-pick, a revert or a rebase.
    pub operation: Option<&'static str>,
    /// Conflicts left, a collection.
    pub conflicts: Vec<(String, u64)>,
}

/// One collection's changes against HEAD.
#[derive(Clone, Debug)]
pub struct CollectionStatus {
    /// Its name.
    pub collection: String,
    /// The change to it.
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

/// The options of a merge.
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
    /// Refuse if the branch has changes that are not committed; else they are committed first.
    pub refuse_dirty: bool,
    /// Make a commit of one parent, with all that the other side did.
    pub squash: bool,
    /// The rules for merging documents, where they aren't the usual ones.
    pub rules: MergeRules,
    /// What was judged: just that is merged, into the branch as it was.
    pub judged: Option<JudgedMerge>,
}

/// The outcome of a merge.
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
        /// The number of conflicts, a collection.
        counts: Vec<(String, u64)>,
    },
}

/// A conflict, kept as data.
#[derive(Clone, PartialEq, Debug)]
pub struct Conflict {
    /// Names it: base32 letters.
    pub id: String,
    /// The collection.
    pub collection: String,
    /// The kind of thing that is in conflict.
    pub kind: ConflictKind,
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

/// The kinds of things that can be in conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConflictKind {
    /// A document.
    Document,
    /// A collection that one side dropped and the other changed.
    Collection,
    /// The options of a collection.
    Options,
    /// An index of a collection.
    Index,
    /// A document that a unique index won't have beside another one.
    Unique,
    /// A document that the collection's validator refuses as it was merged.
    Validator,
    /// A document that an index can't file as it was merged.
    IndexKey,
}

impl ConflictKind {
    /// All kinds.
    pub(crate) const ALL: [ConflictKind; 7] = [
        ConflictKind::Document,
        ConflictKind::Collection,
        ConflictKind::Options,
        ConflictKind::Index,
        ConflictKind::Unique,
        ConflictKind::Validator,
        ConflictKind::IndexKey,
    ];

    /// Whether it is about a document, and not about the collection itself.
    pub fn is_document(self) -> bool {
        use ConflictKind::{Document, IndexKey, Unique, Validator};
        matches!(self, Document | Unique | Validator | IndexKey)
    }

    /// `document`, `collection`, `options`, `index`, `unique`, `validator` or `indexKey`.
    pub fn name(self) -> &'static str {
        match self {
            ConflictKind::Document => "document",
            ConflictKind::Collection => "collection",
            ConflictKind::Options => "options",
            ConflictKind::Index => "index",
            ConflictKind::Unique => "unique",
            ConflictKind::Validator => "validator",
            ConflictKind::IndexKey => "indexKey",
        }
    }
}

/// The resolution of a conflict.
#[derive(Clone, Debug)]
pub enum Resolution {
    /// Keep ours on the paths in conflict.
    Ours,
    /// Take theirs on the paths in conflict.
    Theirs,
    /// This document, or none.
    Value(Option<DocumentBuf>),
    /// The document as it is now, changed by this update.
    Update(ValueBuf),
}
