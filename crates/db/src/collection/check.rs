//! `validate`: whether a collection's documents are BSON with an `_id`, and its indexes file them.
//!
//! 1. Each document is read (the store compares every chunk with its hash), and the entries that
//!    each index should have for it are looked up.
//! 2. Entries that an index has beyond these belong to no document: they are counted.

use bytes::Bytes;
use frond_doc::DocumentBuf;
use frond_tree::{Bounds, Direction};

use crate::catalog::CatalogView;
use crate::catalog::index_entry::entries;
use crate::catalog::indexes::no_collection;
use crate::database::Database;
use crate::definition::view;
use crate::error::Error;
use crate::interrupt::Interrupt;

/// The result of checking a collection.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Documents that were read.
    pub documents: u64,
    /// Those that are no BSON, have no `_id`, or lie under another's key.
    pub invalid: u64,
    /// Its indexes but `_id`'s.
    pub indexes: Vec<CheckedIndex>,
}

/// The result of checking an index.
#[derive(Clone, Debug, Default)]
pub struct CheckedIndex {
    /// Its name.
    pub name: String,
    /// Entries that it has.
    pub keys: u64,
    /// Entries that documents should have and don't, or with another content.
    pub missing: u64,
    /// Entries that no document should have.
    pub extra: u64,
}

/// Reads a whole collection and compares its indexes with its documents. Faults are counted, unless
/// the collection can't be read.
pub(crate) fn check_collection(
    database: &Database,
    name: &str,
    interrupt: &Interrupt,
) -> Result<Checked, Error> {
    let reader = database.reader();
    let found = CatalogView::open(&reader, database)?.collection(name)?;
    let found = found.ok_or_else(|| no_collection(database, name))?;
    let namespace = database.namespace(name);
    view::refuse(found.options.view(), &namespace)?;
    let mut checked = Checked::default();
    for index in &found.indexes {
        let name = index.spec.name.clone();
        checked.indexes.push(CheckedIndex { name, ..CheckedIndex::default() });
    }
    for entry in reader.range(found.documents, Bounds::all(), Direction::Ascending)? {
        interrupt.check()?;
        let entry = entry?;
        let document = reader.document(&entry.value)?;
        checked.documents += 1;
        let bytes = Bytes::copy_from_slice(document.as_bytes());
        if !found.is_key_of(&entry.key, document.view()) || DocumentBuf::validated(bytes).is_err() {
            checked.invalid += 1;
            continue;
        }
        for (index, counted) in found.indexes.iter().zip(&mut checked.indexes) {
            for (key, value) in entries(index, &entry.key, document.view())? {
                let is_there = match reader.get(index.tree, &key)? {
                    Some(there) => {
                        there.flags == value.flags && reader.read(&there)? == reader.read(&value)?
                    }
                    None => false,
                };
                counted.keys += u64::from(is_there);
                counted.missing += u64::from(!is_there);
            }
        }
    }
    for (index, counted) in found.indexes.iter().zip(&mut checked.indexes) {
        let there = reader.count(index.tree)?;
        counted.extra = there.saturating_sub(counted.keys);
        counted.keys = there;
    }
    Ok(checked)
}

impl CheckedIndex {
    /// Whether it files exactly the documents.
    pub fn is_valid(&self) -> bool {
        self.missing == 0 && self.extra == 0
    }
}

impl Checked {
    /// Whether everything is as it should be.
    pub fn is_valid(&self) -> bool {
        self.invalid == 0 && self.indexes.iter().all(CheckedIndex::is_valid)
    }

    /// Returns the faults, in words.
    pub fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        if self.invalid > 0 {
            errors.push(format!("{} documents are not BSON or have no _id", self.invalid));
        }
        for index in self.indexes.iter().filter(|index| !index.is_valid()) {
            let CheckedIndex { name, missing, extra, .. } = index;
            errors.push(format!(
                "index {name} lacks {missing} entries of documents and has {extra} of none"
            ));
        }
        errors
    }
}
