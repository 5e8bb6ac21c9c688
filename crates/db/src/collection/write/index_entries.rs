//! The entries of a collection's indexes, changed with its documents.
//!
//! An index is changed by the difference of the document's keys before and after. An entry written
//! under a key of a unique index, or of one on the way to being unique, must be the only one there.

use std::collections::BTreeMap;

use bytes::Bytes;
use frond_doc::{Document, key};
use frond_engine::{Transaction, TreeId};
use frond_query::examined;
use frond_tree::{Bounds, Direction};

use super::CollectionWriter;
use crate::catalog::duplicate;
use crate::catalog::index_entry::{self, entries, is_of_document};
use crate::database::Database;
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::{Collection, Index};

impl CollectionWriter<'_> {
    /// Puts the entries of `after` in the place of those of `before`, in all indexes.
    pub(super) fn change_indexes(
        &mut self,
        id_key: &Bytes,
        before: Option<Document<'_>>,
        after: Option<Document<'_>>,
    ) -> Result<(), Error> {
        let live = self.live.as_ref().expect("the collection was adopted before the write");
        assert_eq!(live.collection.indexes.len(), live.indexes.len(), "invariant 2");
        assert_eq!(live.indexes.len(), self.own.flags.len(), "each index has its flags");
        let indexes = live.collection.indexes.iter().zip(&live.indexes);
        // The documents' own tree is the index of `_id`, unless there is one beside it.
        let is_own = live.collection.series.is_none() && live.collection.collated_id().is_none();
        let (is_new, is_gone) = (before.is_none() && is_own, after.is_none() && is_own);
        let (mut inserted, mut deleted) = (u64::from(is_new), u64::from(is_gone));
        for (position, (index, tree)) in indexes.enumerate() {
            if let (Some(before), Some(after)) = (before, after)
                && index.files_alike(before, after)
            {
                continue;
            }
            let entries_of = |document| entries(index, id_key, document);
            let old = before.map_or_else(|| Ok(BTreeMap::new()), entries_of)?;
            let new = after.map_or_else(|| Ok(BTreeMap::new()), entries_of)?;
            for key in old.keys().filter(|key| !new.contains_key(*key)) {
                self.transaction.delete_existing(*tree, key.clone())?;
                deleted += 1;
            }
            let document = after.unwrap_or(Document::empty());
            let (database, collection) = (self.database, self.name);
            let filed =
                ExistingIndex { index, tree: *tree, id_key, document, database, collection };
            for (key, value) in new.iter().filter(|(key, value)| old.get(*key) != Some(*value)) {
                if index.spec.unique {
                    filed.check_alone(self.transaction, key)?;
                }
                if index.spec.prepare_unique {
                    let reader = Reader::within(self.database.frond().engine(), self.transaction);
                    let bare = filed.check_alone_without_id(&reader, &live.collection, key)?;
                    // Nothing lies there. Two that bring one key at once both write it, and
                    // conflict.
                    self.transaction.delete(*tree, key::cut(bare))?;
                }
                if value.flags & !self.own.flags[position] != 0 {
                    self.own.flags[position] |= value.flags;
                    if let Some(transaction) = self.database.transaction() {
                        transaction.note_flags(*tree, value.flags);
                    }
                }
                match old.contains_key(key) {
                    true => self.transaction.put_existing(*tree, key.clone(), value.clone())?,
                    false => {
                        self.transaction.put_new(*tree, key.clone(), value.clone())?;
                        inserted += 1;
                    }
                }
            }
        }
        examined::add_written(inserted, deleted);
        Ok(())
    }
}

/// A document that an index files.
struct ExistingIndex<'a> {
    index: &'a Index,
    tree: TreeId,
    id_key: &'a Bytes,
    document: Document<'a>,
    database: &'a Database,
    /// The collection's name.
    collection: &'a str,
}

impl ExistingIndex<'_> {
    /// Refuses a key of a unique index under which another document lies.
    fn check_alone(&self, transaction: &Transaction, key: &Bytes) -> Result<(), Error> {
        match transaction.get(self.tree, key)? {
            Some(other) if !is_of_document(&transaction.read(&other)?, self.id_key) => {
                Err(self.duplicate(key))
            }
            _ => Ok(()),
        }
    }

    /// The same in an index that isn't unique yet, whose keys end with the `_id`: returns the key
    /// without that.
    fn check_alone_without_id(
        &self,
        reader: &Reader<'_>,
        collection: &Collection,
        key: &Bytes,
    ) -> Result<Vec<u8>, Error> {
        let bare = match index_entry::bare_key(self.index, key)? {
            Some(bare) => bare.to_vec(),
            None => index_entry::whole_key(self.index, key, self.id_key, self.document)?
                .map_or_else(Vec::new, |whole| whole.key),
        };
        match is_first_under(reader, collection, self.index, &bare, self.id_key)? {
            true => Ok(bare),
            false => Err(self.duplicate(key)),
        }
    }

    fn duplicate(&self, key: &[u8]) -> Error {
        let namespace = self.database.namespace(self.collection);
        duplicate::of_index(&namespace, self.index, key, self.document)
    }
}

/// Checks that no other document lies under the key of an index that isn't unique yet.
fn is_first_under(
    reader: &Reader<'_>,
    collection: &Collection,
    index: &Index,
    bare: &[u8],
    id_key: &Bytes,
) -> Result<bool, Error> {
    let shared = &bare[..bare.len().min(key::CUT_PREFIX_BYTES)];
    for entry in reader.range(index.tree, Bounds::prefix(shared), Direction::Ascending)? {
        let entry = entry?;
        let other = index_entry::id_key_of(index, &entry.key, &reader.read(&entry.value)?)?;
        if other != *id_key
            && index_entry::bare_key_of(reader, collection, index, &entry.key, &other)? == bare
        {
            return Ok(false);
        }
    }
    Ok(true)
}
