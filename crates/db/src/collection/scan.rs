//! Running an access: ranges of a tree, documents fetched, filtered.
//!
//! An index's entry leads to its document: a unique index has the key of `_id` in the value, any
//! other at the end of its key. A document with an array on an indexed path has several entries:
//! it comes out at the first, `seen` remembers it.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;
use frond_doc::{DocumentBuf, key};
use frond_query::Filter;
use frond_query::sort::SortField;
use frond_tree::{Bounds, Direction, Entry};

use crate::catalog::Collection;
use crate::collection::plan::{Access, AccessPath};
use crate::error::Error;
use crate::reader::{Entries, Reader, TreePlace};

/// A document that was found, and the key of its `_id`.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Its key in the documents' tree.
    pub id_key: Bytes,
    /// The document.
    pub document: DocumentBuf,
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
    /// Entries of indexes that were read.
    pub keys_examined: u64,
    /// Documents that were read.
    pub documents_examined: u64,
}

struct ScannedIndex {
    tree: TreePlace,
    unique: bool,
    fields: Vec<SortField>,
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
                Some(ScannedIndex {
                    tree: index.tree,
                    unique: index.spec.unique,
                    fields: index.fields.clone(),
                    seen: multikey.then(HashSet::new),
                })
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
            keys_examined: 0,
            documents_examined: 0,
        }
    }

    fn step(&mut self) -> Result<Option<Found>, Error> {
        loop {
            let Some(entry) = self.next_entry()? else {
                return Ok(None);
            };
            let Some(found) = self.document_of(entry)? else {
                continue;
            };
            self.documents_examined += 1;
            if self.filter.is_all() || self.filter.try_matches(found.document.view())? {
                return Ok(Some(found));
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
            let tree = self.index.as_ref().map_or(self.documents, |index| index.tree);
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
            Some(index) if index.unique => skip_fields(&mut rest, &index.fields).ok()?,
            Some(_) => return None,
        }
        rest.is_empty().then(|| start.clone())
    }

    fn document_of(&mut self, entry: Entry) -> Result<Option<Found>, Error> {
        let Some(index) = &mut self.index else {
            let bytes = self.reader.read(&entry.value)?;
            let document = DocumentBuf::from_validated(bytes);
            return Ok(Some(Found { id_key: entry.key, document }));
        };
        self.keys_examined += 1;
        let id_key = if index.unique {
            self.reader.read(&entry.value)?
        } else {
            id_key_of(&entry.key, &index.fields)?
        };
        if let Some(seen) = &mut index.seen
            && !seen.insert(id_key.clone())
        {
            return Ok(None);
        }
        let Some(bytes) = self.reader.get_bytes(self.documents, &id_key)? else {
            // A cursor of a transaction may be read on after the transaction removed the document.
            if self.reader.may_change() {
                return Ok(None);
            }
            return Err(Error::damaged("an index names an absent document"));
        };
        Ok(Some(Found { id_key, document: DocumentBuf::from_validated(bytes) }))
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<Found, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

/// Cuts the fields of an index's key off its front.
pub(crate) fn skip_fields(rest: &mut &[u8], fields: &[SortField]) -> Result<(), Error> {
    for field in fields {
        key::skip(rest, field.descending)
            .map_err(|error| Error::damaged(format!("key of an index: {error}")))?;
    }
    Ok(())
}

/// The key of `_id` at the end of a key of an index that isn't unique.
fn id_key_of(key: &Bytes, fields: &[SortField]) -> Result<Bytes, Error> {
    let mut rest = &key[..];
    skip_fields(&mut rest, fields)?;
    Ok(key.slice(key.len() - rest.len()..))
}
