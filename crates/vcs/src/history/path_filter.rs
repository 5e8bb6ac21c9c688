//! The state of a path (a collection, a document in it) in one commit, and the commits that changed
//! it.
//!
//! Names of content are compared, never content: equal catalogs, entries and trees are recognised
//! by their hashes, so that a commit that didn't touch the collection costs its chunk and a
//! catalog's path, and one that didn't touch the document a path of the documents' tree more, and
//! only those of its nodes that differ from its neighbour's aren't in the cache.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use frond_db::inside::large::read_document;
use frond_db::inside::{CatalogEntry, Commit, Error, catalog_view};
use frond_doc::{DocumentBuf, ValueBuf, key};
use frond_query::Code;
use frond_store::{ChunkHash, ChunkStore};
use frond_tree::{Tree, Value};

use crate::history;

/// The state of the path in one commit: names of content, compared without reading it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum PathState {
    Nothing,
    Collection(Value),
    Document(Value),
}

impl PathState {
    /// The document, read, if there is one.
    ///
    /// # Errors
    /// `Damaged` if it can't be read.
    pub fn document(&self, store: &dyn ChunkStore) -> Result<Option<DocumentBuf>, Error> {
        match self {
            PathState::Document(value) => Ok(Some(read_document(store, value)?)),
            _ => Ok(None),
        }
    }
}

/// Finds which commits changed what lies at a path.
pub(crate) struct PathFilter {
    store: Arc<dyn ChunkStore>,
    collection: String,
    document: Option<Bytes>,
    /// The states found below a catalog, and in a tree of documents: most commits share these.
    by_catalog: HashMap<ChunkHash, PathState>,
    by_documents: HashMap<ChunkHash, PathState>,
    /// Catalogs of commits that were looked at as another commit's parents.
    catalogs: HashMap<ChunkHash, Tree>,
}

impl PathFilter {
    /// The path of a collection, or of a document in it.
    pub fn new(store: &Arc<dyn ChunkStore>, collection: &str, id: Option<&ValueBuf>) -> PathFilter {
        PathFilter {
            store: store.clone(),
            collection: collection.to_owned(),
            document: id.map(|id| key::of_id(id.as_value())),
            by_catalog: HashMap::new(),
            by_documents: HashMap::new(),
            catalogs: HashMap::new(),
        }
    }

    /// Whether the commit differs at the path from each of its parents; the first one: from
    /// nothing.
    ///
    /// # Errors
    /// `Damaged` if a commit, a catalog or the document's tree can't be read.
    pub fn changed(&mut self, hash: ChunkHash, commit: &Commit) -> Result<bool, Error> {
        self.catalogs.insert(hash, commit.catalog);
        if commit.parents.is_empty() {
            return Ok(self.find(&commit.catalog)? != PathState::Nothing);
        }
        for parent in &commit.parents {
            let catalog = self.catalog_of(*parent)?;
            if catalog.root == commit.catalog.root
                || self.find(&catalog)? == self.find(&commit.catalog)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the state of the path in the commit `hash`.
    ///
    /// # Errors
    /// As [`PathFilter::changed`].
    pub fn find_in(&mut self, hash: ChunkHash) -> Result<PathState, Error> {
        let catalog = self.catalog_of(hash)?;
        self.find(&catalog)
    }

    fn catalog_of(&mut self, hash: ChunkHash) -> Result<Tree, Error> {
        if let Some(catalog) = self.catalogs.get(&hash) {
            return Ok(*catalog);
        }
        let catalog = history::load(&*self.store, hash)?.catalog;
        self.catalogs.insert(hash, catalog);
        Ok(catalog)
    }

    /// Returns the state of the path below a catalog.
    ///
    /// # Errors
    /// `Damaged` if the catalog or the document's tree can't be read.
    pub fn find(&mut self, catalog: &Tree) -> Result<PathState, Error> {
        if let Some(found) = self.by_catalog.get(&catalog.root) {
            return Ok(found.clone());
        }
        let found = match catalog.get(&*self.store, self.collection.as_bytes())? {
            None => PathState::Nothing,
            Some(entry) => match self.document.clone() {
                None => PathState::Collection(entry),
                Some(key) => {
                    let entry = catalog_view::read_entry(&*self.store, &entry)?;
                    refuse_points(&entry, &self.collection)?;
                    self.find_document(&entry.documents_tree(catalog.format), &key)?
                }
            },
        };
        self.by_catalog.insert(catalog.root, found.clone());
        Ok(found)
    }

    fn find_document(&mut self, documents: &Tree, key: &[u8]) -> Result<PathState, Error> {
        if let Some(found) = self.by_documents.get(&documents.root) {
            return Ok(found.clone());
        }
        let value = documents.get(&*self.store, key)?;
        let found = value.map_or(PathState::Nothing, PathState::Document);
        self.by_documents.insert(documents.root, found.clone());
        Ok(found)
    }
}

/// Refuses to find a document of a time series, whose `_id`s don't name points.
pub(crate) fn refuse_points(entry: &CatalogEntry, collection: &str) -> Result<(), Error> {
    if entry.series().is_none() {
        return Ok(());
    }
    let message = format!(
        "{collection} is a time-series collection, whose documents aren't identified by _id"
    );
    Err(Error::invalid(Code::CommandNotSupportedOnView, message))
}
