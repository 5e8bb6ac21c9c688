//! A diff as a stream: one row for each collection that came or went, each index and option that
//! changed, each document that differs.
//!
//! Rows come in the order of collections; of one collection, itself first, then options, indexes by
//! name, documents by `_id`. They are made as they are asked for: a diff of a million documents
//! needs no more memory than one of ten. With a document's `_id` nothing but its two paths is read.

use std::sync::Arc;

use frond_db::inside::large::read_document;
use frond_db::inside::{Error, Reader};
use frond_doc::{DocumentBuf, ValueBuf, key};
use frond_store::{ChunkStore, Session};
use frond_tree::{Change, Tree};

use crate::diff::fields::diff_documents;
use crate::diff::{ChangedCollection, changed_collections};
use crate::history::path_filter::refuse_points;
use crate::repository::Repository;
use crate::{CollectionChange, FieldChange};

/// The versions to compare, and the part of them.
#[derive(Clone, Debug, Default)]
pub struct DiffRequest {
    /// The left side, or both as `a..b` or `a...b` ([`Repository::diff`]); default HEAD.
    pub from: Option<String>,
    /// The right side; default this version: a branch's working state.
    pub to: Option<String>,
    /// Only this collection.
    pub collection: Option<String>,
    /// Only the document with this `_id` in it.
    pub document: Option<ValueBuf>,
}

/// One difference.
#[derive(Clone, Debug)]
pub struct DiffRow {
    /// The collection.
    pub collection: String,
    /// The kind of change.
    pub change: CollectionChange,
    /// The change.
    pub detail: DiffDetail,
}

/// The thing that differs.
#[derive(Clone, Debug)]
pub enum DiffDetail {
    /// The collection came or went; its documents and indexes follow.
    Collection,
    /// Its options changed.
    Options {
        /// The options on the left side.
        from: DocumentBuf,
        /// The options on the right side.
        to: DocumentBuf,
    },
    /// An index.
    Index {
        /// Its name.
        name: String,
        /// As `listIndexes` shows it, on the left side.
        from: Option<DocumentBuf>,
        /// The definition on the right side.
        to: Option<DocumentBuf>,
    },
    /// A document.
    Document {
        /// The document on the left side.
        from: Option<DocumentBuf>,
        /// The document on the right side.
        to: Option<DocumentBuf>,
    },
}

impl DiffRow {
    /// Field by field, what changed in a document that both sides have.
    pub fn field_changes(&self) -> Vec<FieldChange> {
        match &self.detail {
            DiffDetail::Document { from: Some(from), to: Some(to) } => {
                diff_documents(from.view(), to.view())
            }
            _ => Vec::new(),
        }
    }
}

type Changes = Box<dyn Iterator<Item = Result<Change, Error>> + Send>;

/// The rows of a diff, made as they are asked for. Ends after an error.
///
/// It keeps what it compares from being collected: the moment that it reads, and the trees that
/// were made to compare the working state.
pub struct DiffRows {
    store: Arc<dyn ChunkStore>,
    _held: (Reader<'static>, Session),
    collections: std::vec::IntoIter<ChangedCollection>,
    document: Option<ValueBuf>,
    /// The collection whose rows come now: what is left of its own, then its documents.
    name: String,
    own: std::vec::IntoIter<DiffRow>,
    documents: Option<Changes>,
}

impl Repository {
    /// Returns how two versions differ, row by row.
    ///
    /// # Errors
    /// `BadValue` if there is no such version.
    pub fn diff_rows(&self, request: &DiffRequest) -> Result<DiffRows, Error> {
        let session = self.frond().engine().store().session();
        let reader = self.reader();
        let store = reader.store();
        let two = self.two_catalogs(&reader, request.from.as_deref(), request.to.as_deref())?;
        let mut collections = match &two {
            Some((from, to)) => changed_collections(store, from, to)?,
            None => Vec::new(),
        };
        if let Some(wanted) = &request.collection {
            collections.retain(|collection| collection.name == *wanted);
        }
        Ok(DiffRows {
            store: store.clone(),
            _held: (reader.clone(), session),
            collections: collections.into_iter(),
            document: request.document.clone(),
            name: String::new(),
            own: Vec::new().into_iter(),
            documents: None,
        })
    }
}

impl DiffRows {
    fn advance(&mut self) -> Result<Option<DiffRow>, Error> {
        loop {
            if let Some(row) = self.own.next() {
                return Ok(Some(row));
            }
            if let Some(documents) = &mut self.documents {
                match documents.next().transpose()? {
                    Some(change) => return self.document_row(change).map(Some),
                    None => self.documents = None,
                }
            }
            let Some(collection) = self.collections.next() else {
                return Ok(None);
            };
            self.name.clone_from(&collection.name);
            match self.document.clone() {
                Some(id) => {
                    let change = self.change_of(&collection, &id)?;
                    self.documents = Some(Box::new(change.into_iter().map(Ok)));
                }
                None => {
                    self.own = own_rows(&collection).into_iter();
                    self.documents = Some(Box::new(collection.documents(&self.store)?));
                }
            }
        }
    }

    fn document_row(&self, change: Change) -> Result<DiffRow, Error> {
        let read = |value: Option<frond_tree::Value>| {
            value.map(|value| read_document(&*self.store, &value)).transpose()
        };
        let (from, to) = (read(change.from)?, read(change.to)?);
        Ok(DiffRow {
            collection: self.name.clone(),
            change: CollectionChange::between(from.is_some(), to.is_some()),
            detail: DiffDetail::Document { from, to },
        })
    }

    /// Returns how one document differs, found without comparing the trees.
    fn change_of(
        &self,
        collection: &ChangedCollection,
        id: &ValueBuf,
    ) -> Result<Option<Change>, Error> {
        for entry in [&collection.from, &collection.to].into_iter().flatten() {
            refuse_points(entry, &self.name)?;
        }
        let key = key::of_id(id.as_value());
        let get = |entry: &Option<frond_db::inside::CatalogEntry>| match entry {
            Some(entry) => {
                let documents: Tree = entry.documents_tree(collection.format);
                documents.get(&*self.store, &key)
            }
            None => Ok(None),
        };
        let (from, to) = (get(&collection.from)?, get(&collection.to)?);
        Ok((from != to).then_some(Change { key, from, to }))
    }
}

/// Returns the changes to a collection besides its documents.
fn own_rows(collection: &ChangedCollection) -> Vec<DiffRow> {
    let row = |change, detail| DiffRow { collection: collection.name.clone(), change, detail };
    let mut rows = Vec::new();
    if collection.change() != CollectionChange::Modified {
        rows.push(row(collection.change(), DiffDetail::Collection));
    }
    if let Some((from, to)) = collection.options() {
        rows.push(row(CollectionChange::Modified, DiffDetail::Options { from, to }));
    }
    for index in collection.index_changes() {
        let change = CollectionChange::between(index.from.is_some(), index.to.is_some());
        let (name, from, to) = (index.name, index.from, index.to);
        rows.push(row(change, DiffDetail::Index { name, from, to }));
    }
    rows
}

impl Iterator for DiffRows {
    type Item = Result<DiffRow, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.advance();
        if row.is_err() {
            self.collections = Vec::new().into_iter();
            self.documents = None;
        }
        row.transpose()
    }
}
