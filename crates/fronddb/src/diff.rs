//! The differences between two versions.

use std::fmt;

use bson::Bson;
use frond_doc::DocumentBuf;
use frond_vcs::{
    CollectionChange, DiffDetail, DiffRequest, DiffRow, DiffRows, FieldChange as InnerFieldChange,
    FieldChangeKind,
};

use crate::{Database, Document, Result, convert};

/// The kind of change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeKind {
    /// It is only in the later version.
    Added,
    /// It is only in the earlier version.
    Removed,
    /// It is in both, and different.
    Modified,
    /// A document, or one within it, has its fields in another order: what there was and is are
    /// their names.
    Reordered,
}

/// One difference between two versions.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// The collection.
    pub collection: String,
    /// The kind of change.
    pub kind: ChangeKind,
    /// The change.
    pub what: Changed,
}

/// A difference.
#[derive(Clone, PartialEq, Debug)]
pub enum Changed {
    /// The collection itself came or went; its documents and indexes follow.
    Collection,
    /// The collection's options.
    Options {
        /// The options in the earlier version.
        before: Document,
        /// The options in the later version.
        after: Document,
    },
    /// An index.
    Index {
        /// Its name.
        name: String,
        /// The definition in the earlier version.
        before: Option<Document>,
        /// The definition in the later version.
        after: Option<Document>,
    },
    /// A document.
    Document {
        /// Its `_id`.
        id: Bson,
        /// The document in the earlier version.
        before: Option<Document>,
        /// The document in the later version.
        after: Option<Document>,
        /// The changed fields, if both versions have the document.
        fields: Vec<FieldChange>,
    },
}

/// A field that differs.
#[derive(Clone, PartialEq, Debug)]
pub struct FieldChange {
    /// The kind of change.
    pub kind: ChangeKind,
    /// Its dotted path.
    pub path: String,
    /// Its value in the earlier version.
    pub before: Option<Bson>,
    /// Its value in the later version.
    pub after: Option<Bson>,
}

/// The versions to compare.
#[derive(Clone, Debug, Default)]
pub struct DiffOptions {
    /// The earlier version: a branch (its working state), a tag, a commit, an ancestor. `None`: the
    /// last commit.
    pub from: Option<String>,
    /// The later version. `None`: the working state; so the default compares what isn't committed.
    pub to: Option<String>,
    /// Only this collection.
    pub collection: Option<String>,
    /// Only the document with this `_id` in it, found without comparing the others.
    pub document: Option<Bson>,
}

impl Database {
    /// Returns how two versions differ: branches (their working states), tags, commits or ancestors
    /// (`main~2`). The cost follows what differs, and it is found as it is asked for.
    ///
    /// ```
    /// use fronddb::{ChangeKind, Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1, "name": "lamp", "price": 30 })?;
    /// shop.commit("first items")?;
    /// items.update_one(doc! { "_id": 1 }, doc! { "$set": { "price": 15 } })?;
    /// shop.commit("half price")?;
    ///
    /// let changes = shop.diff("main~1", "main")?.collect::<fronddb::Result<Vec<_>>>()?;
    /// assert_eq!(changes.len(), 1);
    /// assert_eq!(changes[0].kind, ChangeKind::Modified);
    /// assert_eq!(changes[0].to_string(), "modified items 1: price 30 -> 15");
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `BadValue` if there is no such version.
    pub fn diff(&self, from: impl fmt::Display, to: impl fmt::Display) -> Result<Diff> {
        let (from, to) = (Some(from.to_string()), Some(to.to_string()));
        self.diff_with(DiffOptions { from, to, ..DiffOptions::default() })
    }

    /// As [`Database::diff`], of what `options` name; the default is what isn't committed.
    ///
    /// # Errors
    /// As there.
    pub fn diff_with(&self, options: DiffOptions) -> Result<Diff> {
        let DiffOptions { from, to, collection, document } = options;
        let document = convert::value_any(document.as_ref())?;
        let rows = self.inner.diff_rows(&DiffRequest { from, to, collection, document })?;
        Ok(Diff(rows))
    }
}

/// The differences of two versions: of one collection itself first, then options, indexes,
/// documents by `_id`. Ends after an error.
pub struct Diff(DiffRows);

impl Iterator for Diff {
    type Item = Result<Change>;

    fn next(&mut self) -> Option<Result<Change>> {
        Some(match self.0.next()? {
            Ok(row) => Change::of(row),
            Err(error) => Err(error.into()),
        })
    }
}

impl Change {
    fn of(row: DiffRow) -> Result<Change> {
        let any = |side: &Option<DocumentBuf>| convert::decode_any(side.as_ref());
        let what = match &row.detail {
            DiffDetail::Collection => Changed::Collection,
            DiffDetail::Options { from, to } => {
                Changed::Options { before: convert::decode(from)?, after: convert::decode(to)? }
            }
            DiffDetail::Index { name, from, to } => {
                Changed::Index { name: name.clone(), before: any(from)?, after: any(to)? }
            }
            DiffDetail::Document { from, to } => {
                let id = to.as_ref().or(from.as_ref()).and_then(|document| document.get("_id"));
                Changed::Document {
                    id: id.map_or(Ok(Bson::Null), |id| convert::bson(&id.to_buf()))?,
                    before: any(from)?,
                    after: any(to)?,
                    fields: fields(row.field_changes())?,
                }
            }
        };
        Ok(Change { kind: row.change.into(), collection: row.collection, what })
    }
}

/// The changes of a document, field by field.
pub(crate) fn fields(changes: Vec<InnerFieldChange>) -> Result<Vec<FieldChange>> {
    let field = |change: InnerFieldChange| {
        Ok(FieldChange {
            kind: change.kind.into(),
            path: change.path,
            before: change.from.as_ref().map(convert::bson).transpose()?,
            after: change.to.as_ref().map(convert::bson).transpose()?,
        })
    };
    changes.into_iter().map(field).collect()
}

impl From<CollectionChange> for ChangeKind {
    fn from(change: CollectionChange) -> ChangeKind {
        match change {
            CollectionChange::Added => ChangeKind::Added,
            CollectionChange::Removed => ChangeKind::Removed,
            CollectionChange::Modified => ChangeKind::Modified,
        }
    }
}

impl From<FieldChangeKind> for ChangeKind {
    fn from(change: FieldChangeKind) -> ChangeKind {
        match change {
            FieldChangeKind::Added => ChangeKind::Added,
            FieldChangeKind::Removed => ChangeKind::Removed,
            FieldChangeKind::Modified => ChangeKind::Modified,
            FieldChangeKind::Reordered => ChangeKind::Reordered,
        }
    }
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ChangeKind::Added => "added",
            ChangeKind::Removed => "removed",
            ChangeKind::Reordered => "reordered",
            ChangeKind::Modified => "modified",
        })
    }
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => write!(f, "{} {before} -> {after}", self.path),
            (None, Some(after)) => write!(f, "{} added {after}", self.path),
            _ => write!(f, "{} removed", self.path),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.collection)?;
        match &self.what {
            Changed::Collection => Ok(()),
            Changed::Options { before, after } => write!(f, " options: {before} -> {after}"),
            Changed::Index { name, .. } => write!(f, " index {name}"),
            Changed::Document { id, fields, .. } => {
                write!(f, " {id}")?;
                for (position, field) in fields.iter().enumerate() {
                    write!(f, "{}{field}", if position == 0 { ": " } else { ", " })?;
                }
                Ok(())
            }
        }
    }
}
