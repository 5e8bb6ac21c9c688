//! Indexes after a merge: their entries change as the documents do.
//!
//! Entries derive from documents and are never merged themselves: each document that differs takes
//! the entries it had and brings those it has. Only then is uniqueness judged, so that a key may pass
//! from one document to another; and only of keys that somebody brings, since all others were fine
//! before. The cost follows the documents that differ, never the index.
//!
//! 1. The changed documents are read once, for all indexes together.
//! 2. Each index gathers what happens to its keys; a unique one looks up the keys that are brought.
//! 3. All are rewritten at once, if none refuses.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use frond_doc::DocumentBuf;
use frond_store::ChunkStore;
use frond_tree::{Change, Edit, Edits, Tree, TreeError, Value};

use crate::catalog::IndexSpec;
use crate::catalog::index_entry::{entries, id_key_of};
use crate::catalog::view::Index;
use crate::collection::duplicate;
use crate::error::Error;
use crate::large::read_document;
use crate::reader::TreePlace;

/// Two documents that a unique index won't have together.
pub(crate) struct Duplicate {
    /// The index, by its place among those that were changed together.
    pub index: usize,
    /// MongoDB's, with `keyPattern` and `keyValue`.
    pub error: Error,
    /// The key of the `_id` of the one that brought the key of the index.
    pub brought: Bytes,
    /// That of the other one, which has it or brought it, too.
    pub other: Bytes,
}

/// A unique index, and two documents that it won't have together.
pub(crate) type Refused = (IndexSpec, Duplicate);

/// What happens to one key of an index.
#[derive(Default)]
struct Slot {
    /// The document that had it doesn't any more.
    is_freed: bool,
    /// What it holds then.
    brought: Option<Value>,
    /// Who brought it to a unique index.
    by: Option<Bringer>,
}

/// A document that brings a key.
struct Bringer {
    document: Arc<DocumentBuf>,
    id_key: Bytes,
}

/// An index on its way.
struct Changing {
    index: Index,
    /// Its place among the others.
    position: usize,
    tree: Tree,
    slots: BTreeMap<Bytes, Slot>,
}

/// Applies the changes of documents to the index `tree`. Returns the new tree and what a unique
/// index refuses; the tree is the old one then.
pub(crate) fn apply(
    store: &Arc<dyn ChunkStore>,
    spec: &IndexSpec,
    tree: &Tree,
    changes: impl Iterator<Item = Result<Change, TreeError>>,
    namespace: &str,
) -> Result<(Tree, Vec<Duplicate>), Error> {
    let (trees, duplicates) = apply_all(store, &[(spec, *tree)], changes, namespace)?;
    Ok((trees[0], duplicates))
}

/// Applies the changes of documents to `indexes`. Returns their new trees, in their order, and what
/// unique ones refuse; the trees are the old ones then.
pub(crate) fn apply_all(
    store: &Arc<dyn ChunkStore>,
    indexes: &[(&IndexSpec, Tree)],
    changes: impl Iterator<Item = Result<Change, TreeError>>,
    namespace: &str,
) -> Result<(Vec<Tree>, Vec<Duplicate>), Error> {
    let changing = indexes.iter().enumerate().map(|(position, (spec, tree))| Changing {
        index: Index::new((*spec).clone(), TreePlace::Committed(*tree)),
        position,
        tree: *tree,
        slots: BTreeMap::new(),
    });
    let mut changing: Vec<Changing> = changing.collect();
    let mut duplicates = Vec::new();
    for change in changes {
        let change = change?;
        let read =
            |value: Option<Value>| value.map(|value| read_document(&**store, &value)).transpose();
        let (from, to) = (read(change.from)?, read(change.to)?.map(Arc::new));
        for index in &mut changing {
            index.change(&change.key, from.as_ref(), to.as_ref(), namespace, &mut duplicates)?;
        }
    }
    for index in changing.iter().filter(|index| index.index.spec.unique) {
        index.check_taken(store, namespace, &mut duplicates)?;
    }
    if !duplicates.is_empty() {
        return Ok((indexes.iter().map(|(_, tree)| *tree).collect(), duplicates));
    }
    let changed = changing.into_iter().map(|index| (index.tree, index.into_edits())).collect();
    Ok((Tree::apply_many(&**store, changed)?, duplicates))
}

impl Changing {
    /// A document changed.
    fn change(
        &mut self,
        id_key: &Bytes,
        from: Option<&DocumentBuf>,
        to: Option<&Arc<DocumentBuf>>,
        namespace: &str,
        duplicates: &mut Vec<Duplicate>,
    ) -> Result<(), Error> {
        let entries_of = |document: Option<&DocumentBuf>| match document {
            Some(document) => entries(&self.index, id_key, document.view(), namespace),
            None => Ok(BTreeMap::new()),
        };
        let (old, new) = (entries_of(from)?, entries_of(to.map(|document| &**document))?);
        for key in old.keys().filter(|key| !new.contains_key(*key)) {
            self.slots.entry(key.clone()).or_default().is_freed = true;
        }
        let Some(document) = to else { return Ok(()) };
        for (key, value) in new {
            if old.get(&key) == Some(&value) {
                continue;
            }
            let slot = self.slots.entry(key.clone()).or_default();
            // A document that only changed its flags brings what it had.
            slot.is_freed |= old.contains_key(&key);
            slot.brought = Some(value);
            if !self.index.spec.unique {
                continue; // The key of _id is part of the key: nobody else brings it.
            }
            if let Some(Bringer { id_key: other, .. }) = &slot.by {
                duplicates.push(Duplicate {
                    index: self.position,
                    error: duplicate_error(&self.index, &key, document, namespace),
                    brought: id_key.clone(),
                    other: other.clone(),
                });
            }
            slot.by = Some(Bringer { document: document.clone(), id_key: id_key.clone() });
        }
        Ok(())
    }

    /// Finds keys that are brought though a document that didn't change has them.
    fn check_taken(
        &self,
        store: &Arc<dyn ChunkStore>,
        namespace: &str,
        duplicates: &mut Vec<Duplicate>,
    ) -> Result<(), Error> {
        let not_freed = self.slots.iter().filter(|(_, slot)| !slot.is_freed);
        let brought: Vec<(&Bytes, &Bringer)> =
            not_freed.filter_map(|(key, slot)| Some((key, slot.by.as_ref()?))).collect();
        let keys: Vec<&[u8]> = brought.iter().map(|(key, _)| &key[..]).collect();
        let taken = self.tree.get_many(&**store, &keys)?;
        for ((key, by), taken) in brought.iter().zip(taken) {
            let Some(taken) = taken else { continue };
            duplicates.push(Duplicate {
                index: self.position,
                error: duplicate_error(&self.index, key, &by.document, namespace),
                brought: Bytes::clone(&by.id_key),
                other: id_key_of(&self.index, key, &taken.read(&**store)?)?,
            });
        }
        Ok(())
    }

    fn into_edits(self) -> Edits<'static> {
        Box::new(self.slots.into_iter().map(|(key, slot)| match slot.brought {
            Some(value) => Ok((key, Edit::Put(value))),
            None => Ok((key, Edit::Delete)),
        }))
    }
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
