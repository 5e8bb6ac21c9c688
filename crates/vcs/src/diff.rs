//! Compares two versions: their catalogs, the collections that differ in them, their documents.
//!
//! Equal subtrees are not read, in any of these, so the cost follows the difference. The working
//! state is a version like any other once its changes are folded.

pub(crate) mod fields;
pub(crate) mod rows;
mod span;
pub(crate) mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use frond_db::Interrupt;
use frond_db::inside::large::read_document;
use frond_db::inside::{CatalogEntry, Error, Reader, catalog_view, refs};
use frond_doc::{DocumentBuf, DocumentBuilder, Value as DocumentValue, ValueBuf};
use frond_query::Code;
use frond_store::{ChunkHash, ChunkStore};
use frond_tree::{Change, Tree, TreeFormat, Value};

use crate::diff::fields::diff_documents;
use crate::history::base;
use crate::history::range::Range;
use crate::repository::Repository;
use crate::state::BranchState;
use crate::{CollectionChange, CollectionDiff, DocumentDiff, FieldChange, IndexChange, history};

/// The changed documents between two checks whether to stop.
pub(crate) const CHECK_EVERY_CHANGES: usize = 64;

/// A collection that differs between two catalogs.
pub(crate) struct ChangedCollection {
    pub name: String,
    pub from: Option<CatalogEntry>,
    pub to: Option<CatalogEntry>,
    pub format: TreeFormat,
}

impl Repository {
    /// Returns how two versions differ: revisions or `WORKING`; `from` defaults to HEAD, `to` to
    /// this version (a branch's working state). `from` alone may also be `a..b`, the two sides, or
    /// `a...b`: from where the two parted (their merge base) to `b`. Cost follows the difference.
    ///
    /// # Errors
    /// `BadValue` if there is no such version, or the two have no commit in common.
    pub fn diff(&self, from: Option<&str>, to: Option<&str>) -> Result<Vec<CollectionDiff>, Error> {
        self.diff_within(from, to, u64::MAX)
    }

    /// As [`Repository::diff`], if its changes of documents are at most about `bytes_max`.
    ///
    /// # Errors
    /// As there; `BSONObjectTooLarge` if it is more: [`Repository::diff_rows`] returns it row by
    /// row.
    pub fn diff_within(
        &self,
        from: Option<&str>,
        to: Option<&str>,
        bytes_max: u64,
    ) -> Result<Vec<CollectionDiff>, Error> {
        let mut bytes_left = bytes_max;
        let reader = self.reader();
        let Some((from, to)) = self.two_catalogs(&reader, from, to)? else {
            return Ok(Vec::new());
        };
        let store = reader.store();
        let mut diffs = Vec::new();
        for collection in changed_collections(store, &from, &to)? {
            diffs.push(collection.diff(store, &mut bytes_left, self.interrupt())?);
        }
        Ok(diffs)
    }

    /// The catalogs of two versions, as `diff` takes them; `None` if the database doesn't exist
    /// yet.
    pub(crate) fn two_catalogs(
        &self,
        reader: &Reader<'_>,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<Option<(Tree, Tree)>, Error> {
        if refs::repository(reader, self.repository_name())?.is_none() {
            // A database that doesn't exist yet has no versions; two versions that are named are an
            // error all the same.
            for name in [from, to].into_iter().flatten() {
                self.revision(reader, name)?;
            }
            return Ok(None);
        }
        if let (Some(range), None) = (from.and_then(Range::of), to) {
            let left = match range.is_from_base {
                true => self.catalog_of_base(reader, range)?,
                false => self.catalog_of(reader, range.left)?,
            };
            return Ok(Some((left, self.catalog_of(reader, range.right)?)));
        }
        let from = self.catalog_of(reader, from.unwrap_or(history::HEAD))?;
        let to = match to {
            Some(to) => self.catalog_of(reader, to)?,
            None => self.catalog(reader)?,
        };
        Ok(Some((from, to)))
    }

    /// The catalog of the commit where two versions parted. In a history with several such commits
    /// it is the one that a merge begins with.
    fn catalog_of_base(&self, reader: &Reader<'_>, range: Range<'_>) -> Result<Tree, Error> {
        let left = self.revision(reader, range.left)?;
        let right = self.revision(reader, range.right)?;
        let store = reader.store();
        let bases = base::merge_bases(&[left], right, &mut |hash| history::load(&**store, hash))?;
        let base = bases.first().ok_or_else(|| {
            let message = format!("{} and {} have no commit in common", range.left, range.right);
            Error::invalid(Code::BadValue, message)
        })?;
        Ok(history::load(&**store, *base)?.catalog)
    }

    /// The catalog of this version: of a branch, its working state's.
    pub(crate) fn catalog(&self, reader: &Reader<'_>) -> Result<Tree, Error> {
        match self.branch() {
            Some(branch) => self.working_catalog(reader, branch),
            None => self.catalog_of(reader, history::HEAD),
        }
    }

    fn working_catalog(&self, reader: &Reader<'_>, branch: &str) -> Result<Tree, Error> {
        // It is folded at the snapshot, so that a transaction's own writes would be missing.
        self.refuse_in_transaction("comparing a working state")?;
        let state = BranchState::read(reader, self.repository_name(), branch)?;
        let (engine, interrupt) = (self.frond().engine(), self.interrupt());
        state.working_catalog_while(engine, reader.snapshot()?, interrupt)
    }

    /// The catalog of what `text` names: `WORKING`, `WORKING@{TIME}`, `NOTHING`, or a revision; a
    /// branch's name is its last commit.
    pub(crate) fn catalog_of(&self, reader: &Reader<'_>, text: &str) -> Result<Tree, Error> {
        if text == history::WORKING {
            return self.working_catalog(reader, self.working_branch()?);
        }
        if let Some(past) = self.working_past(text)? {
            return Ok(past.catalog);
        }
        if text == history::NOTHING {
            let repository = refs::repository(reader, self.repository_name())?;
            let format =
                repository.ok_or_else(|| history::no_branch(self.repository_name(), text))?;
            return Ok(Tree::empty(&**reader.store(), format.format())?);
        }
        if text == history::HEAD && self.head(reader)?.is_none() {
            return self.branch_state(reader)?.head_catalog(&**reader.store());
        }
        let branch = refs::branch_ref(reader, self.repository_name(), text)?;
        if branch.is_some_and(|branch| branch.commit.is_none()) {
            return self.catalog_of(reader, history::NOTHING);
        }
        let commit = self.revision(reader, text)?;
        Ok(history::load(&**reader.store(), commit)?.catalog)
    }
}

/// The collections that differ between two catalogs, by name.
pub(crate) fn changed_collections(
    store: &Arc<dyn ChunkStore>,
    from: &Tree,
    to: &Tree,
) -> Result<Vec<ChangedCollection>, Error> {
    let mut changed = Vec::new();
    for change in from.diff(store, to) {
        let change = change?;
        let read = |value: &Option<Value>| {
            value.as_ref().map(|value| catalog_view::read_entry(&**store, value)).transpose()
        };
        changed.push(ChangedCollection {
            name: catalog_view::collection_name(&change.key)?,
            from: read(&change.from)?,
            to: read(&change.to)?,
            format: from.format,
        });
    }
    Ok(changed)
}

impl ChangedCollection {
    /// Returns the change to the collection itself.
    pub fn change(&self) -> CollectionChange {
        match (&self.from, &self.to) {
            (None, _) => CollectionChange::Added,
            (_, None) => CollectionChange::Removed,
            _ => CollectionChange::Modified,
        }
    }

    /// The documents that differ, by key.
    ///
    /// # Errors
    /// `Unavailable` if the store takes no empty tree. Changes fail one by one.
    pub fn documents(
        &self,
        store: &Arc<dyn ChunkStore>,
    ) -> Result<impl Iterator<Item = Result<Change, Error>> + use<>, Error> {
        let tree = |entry: &Option<CatalogEntry>| match entry {
            Some(entry) => Ok(entry.documents_tree(self.format)),
            None => Tree::empty(&**store, self.format),
        };
        let (from, to) = (tree(&self.from)?, tree(&self.to)?);
        Ok(from.diff(store, &to).map(|change| change.map_err(Error::from)))
    }

    /// Indexes that are not the same on both sides, in the order of names.
    pub fn index_changes(&self) -> Vec<IndexChange> {
        let spec = |entry: &Option<CatalogEntry>, name: &str| {
            let indexes = entry.iter().flat_map(|entry| &entry.indexes);
            let mut named = indexes.filter(|(spec, _): &&(_, ChunkHash)| spec.name == name);
            named.next().map(|(spec, _)| spec.to_document())
        };
        let change = |name: String| {
            let (from, to) = (spec(&self.from, &name), spec(&self.to, &name));
            IndexChange { name, from, to }
        };
        self.indexes().into_iter().map(change).collect()
    }

    /// The options on both sides, if both have the collection and they differ.
    pub fn options(&self) -> Option<(DocumentBuf, DocumentBuf)> {
        let (from, to) = (self.from.as_ref()?, self.to.as_ref()?);
        (from.options != to.options).then(|| (from.options.clone(), to.options.clone()))
    }

    /// Names of indexes that are not the same on both sides, in the order of names.
    pub fn indexes(&self) -> Vec<String> {
        let specs =
            |entry: &Option<CatalogEntry>| -> BTreeMap<String, frond_db::inside::IndexSpec> {
                let indexes = entry.iter().flat_map(|entry| &entry.indexes);
                // That of `_id` goes without saying.
                let secondary = indexes.filter(|(spec, _): &&(_, ChunkHash)| !spec.is_id());
                secondary
                    .map(|(spec, _): &(_, ChunkHash)| (spec.name.clone(), spec.clone()))
                    .collect()
            };
        let (from, to) = (specs(&self.from), specs(&self.to));
        let mut names: Vec<String> = from
            .keys()
            .chain(to.keys().filter(|name| !from.contains_key(*name)))
            .filter(|name| from.get(*name) != to.get(*name))
            .cloned()
            .collect();
        names.sort();
        names
    }

    /// Gathers the whole of it, and takes what that has off `bytes_left`.
    fn diff(
        &self,
        store: &Arc<dyn ChunkStore>,
        bytes_left: &mut u64,
        interrupt: &Interrupt,
    ) -> Result<CollectionDiff, Error> {
        let mut take = |bytes: usize| match bytes_left.checked_sub(bytes as u64) {
            Some(left) => {
                *bytes_left = left;
                Ok(())
            }
            None => Err(too_large()),
        };
        let mut diff = CollectionDiff {
            collection: self.name.clone(),
            change: self.change(),
            added: Vec::new(),
            removed: Vec::new(),
            modified: Vec::new(),
            indexes: self.index_changes(),
            options: self.options(),
        };
        for (position, change) in self.documents(store)?.enumerate() {
            if position.is_multiple_of(CHECK_EVERY_CHANGES) {
                interrupt.check()?;
            }
            let change = change?;
            let read = |value: Option<Value>| {
                value.map(|value| read_document(&**store, &value)).transpose()
            };
            match (read(change.from)?, read(change.to)?) {
                (Some(from), Some(to)) => {
                    let id = from.get("_id").unwrap_or(DocumentValue::Null).to_buf();
                    let changes = diff_documents(from.view(), to.view());
                    take(shown_bytes(&id, &changes))?;
                    diff.modified.push(DocumentDiff { id, changes });
                }
                (Some(from), None) => {
                    take(from.as_bytes().len())?;
                    diff.removed.push(from);
                }
                (None, Some(to)) => {
                    take(to.as_bytes().len())?;
                    diff.added.push(to);
                }
                (None, None) => {}
            }
        }
        Ok(diff)
    }
}

/// Bytes that a change of a document takes in an answer, about.
fn shown_bytes(id: &ValueBuf, changes: &[FieldChange]) -> usize {
    let mut shown = DocumentBuilder::new();
    shown.append("_id", id.as_value());
    for change in changes {
        for side in [&change.from, &change.to].into_iter().flatten() {
            shown.append(&change.path, side.as_value());
        }
    }
    shown.build().as_bytes().len()
}

fn too_large() -> Error {
    let message = "the difference is too large for one answer: the stage $diff streams it, as in \
                   {aggregate: 1, pipeline: [{$diff: {from: ..., to: ...}}], cursor: {}}";
    Error::invalid(Code::BSONObjectTooLarge, message)
}
