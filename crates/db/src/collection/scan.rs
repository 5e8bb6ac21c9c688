//! Running an access: ranges of a tree, documents fetched, filtered.
//!
//! An index's entry leads to its document: a unique index has the key of `_id` in the value, any
//! other at the end of its key. A document with an array on an indexed path has several entries:
//! it comes out at the first, `seen` remembers it.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;
use frond_doc::pieces::LargeDocument;
use frond_doc::{DocumentBuf, key};
use frond_query::Filter;
use frond_tree::{Bounds, Direction, Entry, Value};

use crate::catalog::Collection;
use crate::catalog::index_entry::id_key_of;
use crate::catalog::view::Index;
use crate::collection::plan::{Access, AccessPath};
use crate::error::Error;
use crate::large;
use crate::reader::{Entries, Reader, TreePlace};

/// A document that was found, and the key of its `_id`.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Its key in the documents' tree.
    pub id_key: Bytes,
    /// The document; of a large one that was asked for in part, the fields that the filter asks for.
    pub document: DocumentBuf,
    /// The document's pieces, if it is large.
    pub large: Option<LargeDocument>,
}

/// The documents of an access that pass a filter. Owns what it needs if its reader does.
pub(crate) struct Scan<'a> {
    reader: Reader<'a>,
    documents: TreePlace,
    index: Option<ScannedIndex>,
    filter: Filter,
    ranges: VecDeque<Bounds>,
    direction: Direction,
    entries: Option<Entries>,
    /// Large documents are read in part: what the filter asks for, and these outermost fields.
    in_part: Option<Vec<Box<[u8]>>>,
    /// Whether what is found will change, so that nobody reads it again.
    for_update: bool,
    /// Entries of indexes that were read.
    pub keys_examined: u64,
    /// Documents that were read.
    pub documents_examined: u64,
}

struct ScannedIndex {
    index: Index,
    /// Keys of the documents that came out, if one may come again.
    seen: Option<HashSet<Bytes>>,
}

impl<'a> Scan<'a> {
    /// Begins to scan `collection` by `access`, which was chosen for it.
    pub fn new(
        reader: Reader<'a>,
        collection: &Collection,
        access: Access,
        filter: Filter,
    ) -> Scan<'a> {
        let index = match access.path {
            AccessPath::Index { position, multikey } => {
                let index = &collection.indexes[position];
                Some(ScannedIndex { index: index.clone(), seen: multikey.then(HashSet::new) })
            }
            AccessPath::Collection | AccessPath::Id => None,
        };
        Scan {
            reader,
            documents: collection.documents,
            index,
            filter,
            ranges: access.ranges.into(),
            direction: access.direction,
            entries: None,
            in_part: None,
            for_update: false,
            keys_examined: 0,
            documents_examined: 0,
        }
    }

    /// Reads of large documents only `_id`, what the filter asks for, and these outermost fields.
    pub fn in_part<'n>(mut self, names: impl Iterator<Item = &'n [u8]>) -> Scan<'a> {
        self.in_part = Some(names.map(Box::from).collect());
        self
    }

    /// Reads of large documents only `_id` and what the filter asks for: they will change.
    pub fn for_update(mut self) -> Scan<'a> {
        self.in_part = Some(Vec::new());
        self.for_update = true;
        self
    }

    fn step(&mut self) -> Result<Option<Found>, Error> {
        loop {
            let Some(entry) = self.next_entry()? else {
                return Ok(None);
            };
            let Some((id_key, value)) = self.value_of(entry)? else {
                continue;
            };
            let found = self.document_of(id_key, &value)?;
            self.documents_examined += 1;
            if self.filter.is_all() || self.filter.try_matches(found.document.view())? {
                let is_part = found.large.is_some() && self.in_part.is_none();
                return match is_part {
                    true => Ok(Some(Found { document: self.reader.document(&value)?, ..found })),
                    false => Ok(Some(found)),
                };
            }
        }
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, Error> {
        loop {
            if let Some(entry) = self.entries.as_mut().and_then(Entries::next) {
                return entry.map(Some);
            }
            self.entries = None;
            let Some(range) = self.ranges.pop_front() else {
                return Ok(None);
            };
            let tree = self.index.as_ref().map_or(self.documents, |scanned| scanned.index.tree);
            if let Some(point) = self.as_point(&range) {
                if let Some(value) = self.reader.get(tree, &point)? {
                    return Ok(Some(Entry { key: point, value }));
                }
                continue;
            }
            self.entries = Some(self.reader.range(tree, range, self.direction)?);
        }
    }

    /// The key, if `range` is that of one whole key of a tree whose keys are no prefixes of one
    /// another: it can be looked up, which is cheaper than opening a cursor.
    fn as_point(&self, range: &Bounds) -> Option<Bytes> {
        let start = range.start.as_ref().filter(|start| Bounds::prefix(start) == *range)?;
        let mut rest = &start[..];
        match &self.index {
            None => {
                key::skip(&mut rest, false).ok()?;
            }
            Some(scanned) if scanned.index.spec.unique => {
                scanned.index.skip_key(&mut rest).ok()?;
            }
            Some(_) => return None,
        }
        rest.is_empty().then(|| start.clone())
    }

    /// The document, or what the filter asks for of a large one.
    fn document_of(&self, id_key: Bytes, value: &Value) -> Result<Found, Error> {
        let large = self.reader.head(value)?;
        // What the cache keeps whole, with an index of its fields, serves the next reader too.
        let is_kept = large.is_some_and(|large| large.bytes() <= large::KEPT_BYTES_MAX);
        let is_asked_in_part = match &self.in_part {
            Some(_) if self.for_update => true,
            Some(_) => !is_kept,
            None => !is_kept && !self.filter.is_all(),
        };
        let names = self.filter.outermost_names().filter(|_| is_asked_in_part);
        let document = match (&large, names) {
            (Some(large), Some(names)) => {
                let mut wanted: Vec<&[u8]> = vec![b"_id"];
                let more = self.in_part.iter().flatten().map(|name| &**name);
                for name in names.chain(more) {
                    if !wanted.contains(&name) {
                        wanted.push(name);
                    }
                }
                self.reader.project(large, &wanted)?
            }
            _ => self.reader.document(value)?,
        };
        Ok(Found { id_key, document, large })
    }

    /// The key and value of the document that an entry leads to.
    fn value_of(&mut self, entry: Entry) -> Result<Option<(Bytes, Value)>, Error> {
        let Some(scanned) = &mut self.index else {
            return Ok(Some((entry.key, entry.value)));
        };
        self.keys_examined += 1;
        let content = match scanned.index.spec.unique {
            true => self.reader.read(&entry.value)?,
            false => Bytes::new(),
        };
        let id_key = id_key_of(&scanned.index, &entry.key, &content)?;
        if let Some(seen) = &mut scanned.seen
            && !seen.insert(id_key.clone())
        {
            return Ok(None);
        }
        let Some(value) = self.reader.get(self.documents, &id_key)? else {
            // A cursor of a transaction may be read on after the transaction removed the document.
            if self.reader.may_change() {
                return Ok(None);
            }
            return Err(Error::damaged("an index names an absent document"));
        };
        Ok(Some((id_key, value)))
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<Found, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}
