//! The log: commits, newest first.
//!
//! The walk keeps the commits whose children were all visited or that a tip named, and visits the
//! one with the latest time; of one time, the one of the greatest generation. No commit is older
//! than its parents, so a commit always comes before them. Nothing is read beyond the limit.
//!
//! *With a path* a commit is told if what lies at the path differs from what each of its parents
//! has there (a merge that took one side's version is not). Equal catalogs, entries and trees are told
//! by their hashes, so that a commit that didn't touch the collection costs its chunk and a catalog's
//! path, and one that didn't touch the document a path of the documents' tree more.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use frond_doc::{ValueBuf, key};
use frond_store::{ChunkHash, ChunkStore};
use frond_tree::{Tree, Value};

use crate::catalog::view;
use crate::database::Database;
use crate::error::Error;
use crate::version::format::Commit;
use crate::version::{CommitInfo, history};

/// Where a commit stands in the order of visits: the last is visited first.
type Turn = (i64, u64, Reverse<ChunkHash>);

impl Database {
    /// The commits reachable from this version, newest first, at most `limit`; with `path`
    /// (a collection, and a document's `_id` in it) those that changed it.
    pub fn log(
        &self,
        limit: Option<u64>,
        path: Option<(&str, Option<&ValueBuf>)>,
    ) -> Result<Vec<CommitInfo>, Error> {
        let reader = self.reader();
        let Some(head) = self.head(&reader)? else {
            return Ok(Vec::new());
        };
        let store = &**reader.store();
        let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let mut filter = path.map(|(collection, id)| PathFilter::new(store, collection, id));
        let mut walk = Walk::begin(store, head)?;
        let mut commits = Vec::new();
        while commits.len() < limit
            && let Some((hash, commit)) = walk.next()?
        {
            let is_told = match &mut filter {
                Some(filter) => filter.changed(hash, &commit)?,
                None => true,
            };
            if is_told {
                commits.push(history::info(hash, &commit));
            }
        }
        Ok(commits)
    }
}

/// Visits commits, newest first, each once.
struct Walk<'a> {
    store: &'a dyn ChunkStore,
    waiting: BTreeMap<Turn, Commit>,
    seen: HashSet<ChunkHash>,
}

impl<'a> Walk<'a> {
    fn begin(store: &'a dyn ChunkStore, tip: ChunkHash) -> Result<Walk<'a>, Error> {
        let mut walk = Walk { store, waiting: BTreeMap::new(), seen: HashSet::new() };
        walk.add(tip)?;
        Ok(walk)
    }

    fn add(&mut self, hash: ChunkHash) -> Result<(), Error> {
        if self.seen.insert(hash) {
            let commit = history::load(self.store, hash)?;
            let turn = (commit.timestamp_millis, commit.generation, Reverse(hash));
            self.waiting.insert(turn, commit);
        }
        Ok(())
    }

    /// The commit that was visited last is behind: only now its parents are looked at.
    fn next(&mut self) -> Result<Option<(ChunkHash, Commit)>, Error> {
        let Some(((_, _, Reverse(hash)), commit)) = self.waiting.pop_last() else {
            return Ok(None);
        };
        for parent in &commit.parents {
            self.add(*parent)?;
        }
        Ok(Some((hash, commit)))
    }
}

/// What lies at the path in one commit: names of content, compared without reading it.
#[derive(Clone, PartialEq)]
enum Found {
    Nothing,
    Collection(Value),
    Document(Value),
}

/// Tells which commits changed what lies at a path.
struct PathFilter<'a> {
    store: &'a dyn ChunkStore,
    collection: &'a str,
    document: Option<bytes::Bytes>,
    /// What was found below a catalog, and in a tree of documents: most commits share these.
    by_catalog: HashMap<ChunkHash, Found>,
    by_documents: HashMap<ChunkHash, Found>,
    /// Catalogs of commits that were looked at as somebody's parents.
    catalogs: HashMap<ChunkHash, Tree>,
}

impl<'a> PathFilter<'a> {
    fn new(
        store: &'a dyn ChunkStore,
        collection: &'a str,
        id: Option<&ValueBuf>,
    ) -> PathFilter<'a> {
        PathFilter {
            store,
            collection,
            document: id.map(|id| key::of_value(id.as_value())),
            by_catalog: HashMap::new(),
            by_documents: HashMap::new(),
            catalogs: HashMap::new(),
        }
    }

    /// Whether the commit differs at the path from each of its parents; the first one: from nothing.
    fn changed(&mut self, hash: ChunkHash, commit: &Commit) -> Result<bool, Error> {
        self.catalogs.insert(hash, commit.catalog);
        if commit.parents.is_empty() {
            return Ok(self.find(&commit.catalog)? != Found::Nothing);
        }
        for parent in &commit.parents {
            let catalog = match self.catalogs.get(parent) {
                Some(catalog) => *catalog,
                None => history::load(self.store, *parent)?.catalog,
            };
            self.catalogs.insert(*parent, catalog);
            if catalog.root == commit.catalog.root
                || self.find(&catalog)? == self.find(&commit.catalog)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn find(&mut self, catalog: &Tree) -> Result<Found, Error> {
        if let Some(found) = self.by_catalog.get(&catalog.root) {
            return Ok(found.clone());
        }
        let found = match catalog.get(self.store, self.collection.as_bytes())? {
            None => Found::Nothing,
            Some(entry) => match self.document.clone() {
                None => Found::Collection(entry),
                Some(key) => {
                    let entry = view::read_entry(self.store, &entry)?;
                    self.find_document(&entry.documents_tree(catalog.format), &key)?
                }
            },
        };
        self.by_catalog.insert(catalog.root, found.clone());
        Ok(found)
    }

    fn find_document(&mut self, documents: &Tree, key: &[u8]) -> Result<Found, Error> {
        if let Some(found) = self.by_documents.get(&documents.root) {
            return Ok(found.clone());
        }
        let value = documents.get(self.store, key)?;
        let found = value.map_or(Found::Nothing, Found::Document);
        self.by_documents.insert(documents.root, found.clone());
        Ok(found)
    }
}
