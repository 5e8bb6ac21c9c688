//! Merging, and what to do with conflicts.

use std::fmt;

use bson::Bson;
use frond_vcs::{
    CommitId, Conflict as InnerConflict, ConflictKind, ConflictSelection, MergeOutcome,
    MergeRequest, PickKind, PickRequest, Resolution as InnerResolution,
};

use crate::{Database, Document, Result, convert};

/// The outcome of a merge.
#[derive(Debug)]
#[must_use = "conflicts wait until they are resolved"]
pub enum Merge {
    /// The branch has all of the other version, and is at this commit: a new one, the other
    /// version's, or where it was, if there was nothing to merge.
    Merged(CommitId),
    /// Both sides changed the same. Changes that merged cleanly are in the working state; the rest
    /// waits to be resolved.
    Conflicts(Conflicts),
}

/// One of the two sides of a merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The branch that is merged into.
    Ours,
    /// The version that is merged in.
    Theirs,
}

/// The options of a merge.
#[derive(Clone, Debug, Default)]
pub struct MergeOptions {
    /// The merge commit's message; `None`: which version was merged.
    pub message: Option<String>,
    /// Its author, if other than [`Options::author`](crate::Options::author).
    pub author: Option<String>,
    /// Make a merge commit even where moving the branch forward would do.
    pub no_fast_forward: bool,
    /// Refuse if moving the branch forward won't do.
    pub fast_forward_only: bool,
    /// Make a commit of one parent, with all that the other side did.
    pub squash: bool,
}

impl MergeOptions {
    pub(crate) fn request(&self, database: &Database, merge_in: String) -> MergeRequest {
        MergeRequest {
            merge_in,
            message: self.message.clone(),
            author: Some(database.settings.author(&self.author)),
            no_fast_forward: self.no_fast_forward,
            fast_forward_only: self.fast_forward_only,
            squash: self.squash,
            ..MergeRequest::default()
        }
    }
}

impl Database {
    /// Merges another version into this branch, document by document and field by field: changes to
    /// different fields of one document merge. Uncommitted changes here are committed first;
    /// uncommitted changes there are left out.
    ///
    /// ```
    /// use fronddb::{Document, Merge, Side, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1, "name": "lamp", "price": 30 })?;
    /// shop.commit("first items")?;
    ///
    /// let sale = shop.branch("sale")?;
    /// let half = doc! { "$mul": { "price": 0.5 } };
    /// sale.collection::<Document>("items").update_many(doc! {}, half)?;
    /// sale.commit("half price")?;
    /// items.update_many(doc! {}, doc! { "$set": { "name": "big lamp", "price": 40 } })?;
    /// shop.commit("big lamps")?;
    ///
    /// match shop.merge("sale")? {
    ///     Merge::Merged(id) => println!("merged as {id}"),
    ///     Merge::Conflicts(conflicts) => {
    ///         for conflict in conflicts.list()? {
    ///             assert_eq!(conflict.document_id, 1.into());
    ///             assert_eq!(conflict.paths, ["price"]);
    ///         }
    ///         conflicts.resolve_all(Side::Theirs)?;
    ///     }
    /// }
    /// assert_eq!(items.get(1)?, Some(doc! { "_id": 1, "name": "big lamp", "price": 15.0 }));
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `BadValue` if there is no such version; `UserWritesBlocked` if this one can only be read;
    /// `IllegalOperation` if another merge waits; `OperationFailed` if the result can't be, and
    /// then nothing has changed.
    pub fn merge(&self, version: impl fmt::Display) -> Result<Merge> {
        self.merge_with(version, MergeOptions::default())
    }

    /// As [`Database::merge`], as `options` say.
    ///
    /// # Errors
    /// As there; `IllegalOperation` if only moving the branch forward is wanted, and won't do.
    pub fn merge_with(&self, version: impl fmt::Display, options: MergeOptions) -> Result<Merge> {
        Ok(self.merged(self.inner.merge(&options.request(self, version.to_string()))?))
    }

    pub(crate) fn merged(&self, outcome: MergeOutcome) -> Merge {
        match outcome {
            MergeOutcome::UpToDate { head } | MergeOutcome::FastForward { head } => {
                Merge::Merged(head)
            }
            MergeOutcome::Merged { commit } => Merge::Merged(commit.id),
            MergeOutcome::Conflicts { .. } => {
                Merge::Conflicts(Conflicts { database: self.clone() })
            }
        }
    }

    /// The merge that waits for its conflicts to be resolved, if one does: since when doesn't
    /// matter, it is as durable as the branch.
    ///
    /// # Errors
    /// `IllegalOperation` if this version can only be read.
    pub fn conflicts(&self) -> Result<Option<Conflicts>> {
        let waits = self.inner.status()?.merging.is_some();
        Ok(waits.then(|| Conflicts { database: self.clone() }))
    }

    /// Does again on this branch what one commit did.
    ///
    /// ```
    /// use fronddb::{Document, Merge, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1 })?;
    /// shop.commit("first items")?;
    /// let sale = shop.branch("sale")?;
    /// sale.collection::<Document>("items").insert_one(doc! { "_id": 2 })?;
    /// sale.commit("a desk")?;
    /// sale.collection::<Document>("items").delete_many(doc! {})?;
    /// sale.commit("all is sold")?;
    ///
    /// assert!(matches!(shop.cherry_pick("sale~1")?, Merge::Merged(_)));
    /// assert_eq!(items.count(doc! {})?, 2);
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::merge`]; `BadValue` if it is a merge, or would change nothing.
    pub fn cherry_pick(&self, version: impl fmt::Display) -> Result<Merge> {
        self.pick(version.to_string(), PickKind::Pick, None)
    }

    /// Undoes on this branch what one commit did, by another commit.
    ///
    /// ```
    /// use fronddb::{Document, Merge, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1 })?;
    /// shop.commit("first items")?;
    /// items.delete_many(doc! {})?;
    /// shop.commit("a mistake")?;
    /// assert!(matches!(shop.revert("HEAD")?, Merge::Merged(_)));
    /// assert_eq!(items.count(doc! {})?, 1);
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::cherry_pick`].
    pub fn revert(&self, version: impl fmt::Display) -> Result<Merge> {
        self.pick(version.to_string(), PickKind::Revert, Some(self.settings.author(&None)))
    }

    fn pick(&self, revision: String, kind: PickKind, author: Option<String>) -> Result<Merge> {
        let request = PickRequest { revision, kind, author, ..PickRequest::default() };
        Ok(self.merged(self.inner.pick(&request)?))
    }
}

/// The conflicts of a merge that waits. It goes on waiting when this is dropped:
/// [`Database::conflicts`] finds it again.
#[derive(Clone, Debug)]
pub struct Conflicts {
    database: Database,
}

/// Something that both sides changed differently.
#[derive(Clone, PartialEq, Debug)]
pub struct Conflict {
    /// Names it.
    pub id: String,
    /// The collection.
    pub collection: String,
    /// The thing in conflict: mostly a document.
    pub kind: ConflictKind,
    /// The document's `_id`; of an index, its name.
    pub document_id: Bson,
    /// The fields on which the sides differ; empty if one side removed the document.
    pub paths: Vec<String>,
    /// As it was before both.
    pub base: Option<Document>,
    /// As this branch has it.
    pub ours: Option<Document>,
    /// As the version has it that is merged in.
    pub theirs: Option<Document>,
}

/// The resolution of a conflict. A side is one, and a document too.
#[derive(Clone, PartialEq, Debug)]
pub enum Resolution {
    /// That side's values of the fields in conflict; fields that merged cleanly stay.
    Side(Side),
    /// This document.
    Document(Document),
    /// No document.
    Remove,
    /// The document as it is now in the working state, changed by these update operators.
    Update(Document),
}

impl Conflicts {
    /// All that are left.
    ///
    /// # Errors
    /// If the disk fails, or damage.
    pub fn list(&self) -> Result<Vec<Conflict>> {
        self.database.inner.conflicts(None)?.into_iter().map(Conflict::of).collect()
    }

    /// Resolves one; answers how many are left. [`Conflicts::finish`] makes the commit.
    ///
    /// ```
    /// use fronddb::{Document, Merge, Resolution, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1, "price": 30 })?;
    /// shop.commit("first items")?;
    /// let sale = shop.branch("sale")?;
    /// let set = |price: i32| doc! { "$set": { "price": price } };
    /// sale.collection::<Document>("items").update_many(doc! {}, set(15))?;
    /// sale.commit("half price")?;
    /// items.update_many(doc! {}, set(33))?;
    ///
    /// let Merge::Conflicts(conflicts) = shop.merge("sale")? else { panic!("no conflict") };
    /// for conflict in conflicts.list()? {
    ///     conflicts.resolve(&conflict, Resolution::Update(set(16)))?;
    /// }
    /// assert!(matches!(conflicts.finish()?, Merge::Merged(_)));
    /// assert_eq!(items.get(1)?, Some(doc! { "_id": 1, "price": 16 }));
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NoSuchKey` if it was resolved; `BadValue` if the document has another `_id`, or if what is
    /// in conflict isn't a document and no side is taken; `DuplicateKey`.
    pub fn resolve(&self, conflict: &Conflict, resolution: impl Into<Resolution>) -> Result<u64> {
        let resolution = match resolution.into() {
            Resolution::Side(side) => side.resolution(),
            Resolution::Document(document) => {
                InnerResolution::Value(Some(convert::encode(&document)?))
            }
            Resolution::Remove => InnerResolution::Value(None),
            Resolution::Update(update) => InnerResolution::Update(convert::value(update)?),
        };
        Ok(self.database.inner.resolve_conflict(&conflict.id, &resolution)?)
    }

    /// Ends the merge, whose conflicts are all resolved, with its commit. Where collections,
    /// options or indexes were in conflict, those of documents come only now.
    ///
    /// # Errors
    /// `IllegalOperation` if some are left.
    pub fn finish(self) -> Result<Merge> {
        Ok(self.database.merged(self.database.inner.merge_continue(None, None)?))
    }

    /// Resolves all that are left in favour of one side, and ends the merge.
    ///
    /// # Errors
    /// `DuplicateKey` if a unique index refuses the result.
    pub fn resolve_all(self, side: Side) -> Result<CommitId> {
        let mut waiting = self;
        loop {
            let inner = &waiting.database.inner;
            inner.resolve_conflicts(&ConflictSelection::All, &side.resolution())?;
            match waiting.finish()? {
                Merge::Merged(id) => return Ok(id),
                Merge::Conflicts(more) => waiting = more,
            }
        }
    }

    /// Gives the merge up: what it did is taken back, what was written since stays. Answers the
    /// collections in which something was set aside, because it changed the same fields; an undo
    /// brings that back, with the merge.
    ///
    /// # Errors
    /// `IllegalOperation` if it has ended.
    pub fn abort(self) -> Result<Vec<String>> {
        Ok(self.database.inner.merge_abort()?)
    }
}

impl Conflict {
    fn of(conflict: InnerConflict) -> Result<Conflict> {
        Ok(Conflict {
            document_id: convert::bson(&conflict.document_id)?,
            base: convert::decode_any(conflict.base.as_ref())?,
            ours: convert::decode_any(conflict.ours.as_ref())?,
            theirs: convert::decode_any(conflict.theirs.as_ref())?,
            id: conflict.id,
            collection: conflict.collection,
            kind: conflict.kind,
            paths: conflict.paths,
        })
    }
}

impl Side {
    fn resolution(self) -> InnerResolution {
        match self {
            Side::Ours => InnerResolution::Ours,
            Side::Theirs => InnerResolution::Theirs,
        }
    }
}

impl From<Side> for Resolution {
    fn from(side: Side) -> Resolution {
        Resolution::Side(side)
    }
}

impl From<Document> for Resolution {
    fn from(document: Document) -> Resolution {
        Resolution::Document(document)
    }
}
