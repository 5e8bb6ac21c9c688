//! An index after a merge: its entries change as the documents do.
//!
//! Entries derive from documents and are never merged themselves: each document that differs takes
//! the entries it had and brings those it has. Only then is uniqueness judged, so that a key may pass
//! from one document to another; and only of keys that somebody brings, since all others were fine
//! before. The cost follows the documents that differ, never the index.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use frond_doc::DocumentBuf;
use frond_store::ChunkStore;
use frond_tree::{Change, Edit, Tree, TreeError, Value};

use crate::catalog::IndexSpec;
use crate::catalog::index_entry::{entries, id_key_of};
use crate::catalog::view::Index;
use crate::collection::duplicate;
use crate::error::Error;
use crate::large::read_document;
use crate::reader::TreePlace;

/// What happens to one key of the index.
#[derive(Default)]
struct Slot {
    /// The document that had it doesn't any more.
    is_freed: bool,
    /// What it holds then, the document that says so, and the key of its `_id`.
    brought: Option<(Value, DocumentBuf, Bytes)>,
}

/// Two documents that a unique index won't have together.
pub(crate) struct Duplicate {
    /// MongoDB's, with `keyPattern` and `keyValue`.
    pub error: Error,
    /// The key of the `_id` of the one that brought the key of the index.
    pub brought: Bytes,
    /// That of the other one, which has it or brought it, too.
    pub other: Bytes,
}

/// Applies the changes of documents to the index `tree`. Returns the new tree and what a unique
/// index refuses; the tree is of no use then.
pub(crate) fn apply(
    store: &Arc<dyn ChunkStore>,
    spec: &IndexSpec,
    tree: &Tree,
    changes: impl Iterator<Item = Result<Change, TreeError>>,
    namespace: &str,
) -> Result<(Tree, Vec<Duplicate>), Error> {
    let index = Index::new(spec.clone(), TreePlace::Committed(*tree));
    let mut slots: BTreeMap<Bytes, Slot> = BTreeMap::new();
    let mut duplicates = Vec::new();
    for change in changes {
        let change = change?;
        let read =
            |value: Option<Value>| value.map(|value| read_document(&**store, &value)).transpose();
        let (from, to) = (read(change.from)?, read(change.to)?);
        let entries_of = |document: &Option<DocumentBuf>| match document {
            Some(document) => entries(&index, &change.key, document.view(), namespace),
            None => Ok(BTreeMap::new()),
        };
        let (old, new) = (entries_of(&from)?, entries_of(&to)?);
        for key in old.keys().filter(|key| !new.contains_key(*key)) {
            slots.entry(key.clone()).or_default().is_freed = true;
        }
        let Some(document) = to else { continue };
        for (key, value) in new {
            if old.get(&key) == Some(&value) {
                continue;
            }
            let slot = slots.entry(key.clone()).or_default();
            // A document that only changed its flags brings what it had.
            slot.is_freed |= old.contains_key(&key);
            if let Some((_, _, other)) = &slot.brought {
                duplicates.push(Duplicate {
                    error: duplicate_error(&index, &key, &document, namespace),
                    brought: change.key.clone(),
                    other: other.clone(),
                });
            }
            slot.brought = Some((value, document.clone(), change.key.clone()));
        }
    }
    if spec.unique {
        check_taken(store, &index, tree, &slots, namespace, &mut duplicates)?;
    }
    if !duplicates.is_empty() {
        return Ok((*tree, duplicates));
    }
    let mut edits = slots.into_iter().map(|(key, slot)| match slot.brought {
        Some((value, ..)) => Ok((key, Edit::Put(value))),
        None => Ok((key, Edit::Delete)),
    });
    Ok((tree.apply(&**store, &mut edits)?, duplicates))
}

/// Finds keys that are brought though a document that didn't change has them.
fn check_taken(
    store: &Arc<dyn ChunkStore>,
    index: &Index,
    tree: &Tree,
    slots: &BTreeMap<Bytes, Slot>,
    namespace: &str,
    duplicates: &mut Vec<Duplicate>,
) -> Result<(), Error> {
    let brought: Vec<(&Bytes, &DocumentBuf, &Bytes)> = slots
        .iter()
        .filter(|(_, slot)| !slot.is_freed)
        .filter_map(|(key, slot)| {
            let (_, document, id_key) = slot.brought.as_ref()?;
            Some((key, document, id_key))
        })
        .collect();
    let keys: Vec<&[u8]> = brought.iter().map(|(key, ..)| &key[..]).collect();
    for ((key, document, id_key), taken) in brought.iter().zip(tree.get_many(&**store, &keys)?) {
        let Some(taken) = taken else { continue };
        duplicates.push(Duplicate {
            error: duplicate_error(index, key, document, namespace),
            brought: Bytes::clone(id_key),
            other: id_key_of(index, key, &taken.read(&**store)?)?,
        });
    }
    Ok(())
}

fn duplicate_error(
    index: &Index,
    index_key: &[u8],
    document: &DocumentBuf,
    namespace: &str,
) -> Error {
    let (name, pattern) = (&index.spec.name, &index.spec.key);
    duplicate::of_index(namespace, name, pattern, &index.shape, index_key, document.view())
}
