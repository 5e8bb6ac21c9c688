//! Indexes whose documents changed, in a merge or beside an index build: their entries change as
//! the documents do.
//!
//! Entries derive from documents and are never merged themselves: each document that differs takes
//! the entries it had and brings those it has. Only then is uniqueness judged, so that a key may
//! pass from one document to another; and only of keys that a document brings, since all others
//! were fine before. The cost follows the documents that differ, never the index.
//!
//! 1. The changed documents are read once, for all indexes together.
//! 2. Each index gathers what happens to its keys; a unique one looks up the keys that are brought.
//! 3. All are rewritten at once, if none refuses.
//!
//! Of more changed documents than memory should hold, an index build first takes away the entries
//! that go, part by part, and then brings those that come ([`Step`]): what then has a key in the
//! index's way is a document that keeps it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use frond_doc::DocumentBuf;
use frond_store::ChunkStore;
use frond_tree::{Change, Edit, Edits, Tree, TreeError, Value};

use crate::catalog::duplicate;
use crate::catalog::index_entry::{entries, id_key_of};
use crate::definition::IndexSpec;
use crate::error::{Error, ErrorKind};
use crate::large::read_document;
use crate::schema::{Index, TreeRef};

/// Two documents that a unique index won't have together, or one that an index can't file at all:
/// both are the same then.
pub struct Duplicate {
    /// The index, by its place among those that were changed together.
    pub index: usize,
    /// MongoDB's: with `keyPattern` and `keyValue`, of duplicates.
    pub error: Error,
    /// The key of the `_id` of the one that brought the key of the index.
    pub brought: Bytes,
    /// The same key of the other one, which has it or brought it, too.
    pub other: Bytes,
}

/// An index, and what it won't have.
pub type Refused = (IndexSpec, Duplicate);

/// The change to one key of an index.
#[derive(Default)]
struct Slot {
    /// The document that had it doesn't any more.
    is_freed: bool,
    /// The value it holds then.
    brought: Option<Value>,
    /// The document that brought it to a unique index.
    by: Option<Bringer>,
}

/// A document that brings a key.
struct Bringer {
    document: Arc<DocumentBuf>,
    id_key: Bytes,
}

/// The new values of an index's keys; `None` where the key is removed.
pub(crate) type Edited = BTreeMap<Bytes, Option<Value>>;

/// The part of the changes to make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// All: the changes are all there are.
    Whole,
    /// Entries that go are taken away.
    Free,
    /// Entries that come are brought, once all those that go were taken away.
    Bring,
}

/// An index as it is.
#[derive(Clone, Copy)]
pub(crate) struct ExistingIndex<'a> {
    pub spec: &'a IndexSpec,
    pub tree: Tree,
    /// The edits that lie over the tree.
    pub over: &'a Edited,
}

/// An index on its way.
struct Changing<'a> {
    index: Index,
    /// Its place among the others.
    position: usize,
    tree: Tree,
    over: &'a Edited,
    slots: BTreeMap<Bytes, Slot>,
}

/// Applies the changes of documents to the index `tree`. Returns the new tree and what a unique
/// index refuses; the tree is the old one then.
///
/// # Errors
/// The error of `changes`; what a document can't be filed for, by MongoDB's codes; as a read and
/// a write of the index's tree.
pub fn apply(
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
///
/// # Errors
/// As `apply`.
pub fn apply_all(
    store: &Arc<dyn ChunkStore>,
    indexes: &[(&IndexSpec, Tree)],
    changes: impl Iterator<Item = Result<Change, TreeError>>,
    namespace: &str,
) -> Result<(Vec<Tree>, Vec<Duplicate>), Error> {
    let nothing = Edited::new();
    let filed: Vec<ExistingIndex<'_>> = indexes
        .iter()
        .map(|(spec, tree)| ExistingIndex { spec, tree: *tree, over: &nothing })
        .collect();
    let (edited, duplicates) = edits(store, &filed, changes, Step::Whole, namespace)?;
    if !duplicates.is_empty() {
        return Ok((indexes.iter().map(|(_, tree)| *tree).collect(), duplicates));
    }
    assert_eq!(edited.len(), indexes.len(), "each index has its edits");
    let changed = indexes.iter().zip(edited);
    let changed = changed.map(|((_, tree), edited)| (*tree, as_edits(edited))).collect();
    let trees = Tree::apply_many(&**store, changed)?;
    assert_eq!(trees.len(), indexes.len(), "each index has its tree");
    Ok((trees, duplicates))
}

/// Returns the edits that changes of documents make to each of `indexes`, in their order, and the
/// changes that unique ones refuse.
pub(crate) fn edits<E>(
    store: &Arc<dyn ChunkStore>,
    indexes: &[ExistingIndex<'_>],
    changes: impl Iterator<Item = Result<Change, E>>,
    step: Step,
    namespace: &str,
) -> Result<(Vec<Edited>, Vec<Duplicate>), Error>
where
    Error: From<E>,
{
    let changing = indexes.iter().enumerate().map(|(position, filed)| Changing {
        index: Index::new(filed.spec.clone(), TreeRef::Committed(filed.tree)),
        position,
        tree: filed.tree,
        over: filed.over,
        slots: BTreeMap::new(),
    });
    let mut changing: Vec<Changing<'_>> = changing.collect();
    let mut duplicates = Vec::new();
    for change in changes {
        let change = change?;
        let read =
            |value: Option<Value>| value.map(|value| read_document(&**store, &value)).transpose();
        let (from, to) = (read(change.from)?, read(change.to)?.map(Arc::new));
        for index in &mut changing {
            let documents = (from.as_ref(), to.as_ref());
            index.change(&change.key, documents, step, namespace, &mut duplicates)?;
        }
    }
    for index in changing.iter().filter(|index| index.index.spec.unique) {
        index.check_taken(store, namespace, &mut duplicates)?;
    }
    Ok((changing.into_iter().map(Changing::into_edited).collect(), duplicates))
}

/// As a tree takes them.
pub(crate) fn as_edits(edited: Edited) -> Edits<'static> {
    let edit = |value: Option<Value>| value.map_or(Edit::Delete, Edit::Put);
    Box::new(edited.into_iter().map(move |(key, value)| Ok((key, edit(value)))))
}

impl Changing<'_> {
    /// A document changed.
    fn change(
        &mut self,
        id_key: &Bytes,
        (from, to): (Option<&DocumentBuf>, Option<&Arc<DocumentBuf>>),
        step: Step,
        namespace: &str,
        duplicates: &mut Vec<Duplicate>,
    ) -> Result<(), Error> {
        let entries_of = |document: Option<&DocumentBuf>| match document {
            Some(document) => entries(&self.index, id_key, document.view()),
            None => Ok(BTreeMap::new()),
        };
        let old = entries_of(from)?;
        let new = match entries_of(to.map(|document| &**document)) {
            Err(error) if error.kind == ErrorKind::Invalid => {
                let (brought, other) = (id_key.clone(), id_key.clone());
                duplicates.push(Duplicate { index: self.position, error, brought, other });
                return Ok(());
            }
            new => new?,
        };
        if step != Step::Bring {
            for key in old.keys().filter(|key| !new.contains_key(*key)) {
                self.slots.entry(key.clone()).or_default().is_freed = true;
            }
        }
        let Some(document) = to.filter(|_| step != Step::Free) else { return Ok(()) };
        for (key, value) in new {
            if old.get(&key) == Some(&value) {
                continue;
            }
            let slot = self.slots.entry(key.clone()).or_default();
            // A document that only changed its flags brings what it had.
            slot.is_freed |= old.contains_key(&key);
            slot.brought = Some(value);
            if !self.index.spec.unique {
                continue; // The key of _id is part of the key: no other document brings it.
            }
            if let Some(Bringer { id_key: other, .. }) = &slot.by {
                duplicates.push(Duplicate {
                    index: self.position,
                    error: duplicate::of_index(namespace, &self.index, &key, document.view()),
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
        let brought = not_freed.filter_map(|(key, slot)| Some((key, slot.by.as_ref()?)));
        let (over, below): (Vec<_>, Vec<_>) =
            brought.partition(|(key, _)| self.over.contains_key(*key));
        let over = over.into_iter().map(|(key, by)| (key, by, self.over[key].clone()));
        let keys: Vec<&[u8]> = below.iter().map(|(key, _)| &key[..]).collect();
        let found = self.tree.get_many(&**store, &keys)?;
        let below = below.into_iter().zip(found).map(|((key, by), found)| (key, by, found));
        for (key, by, taken) in over.chain(below) {
            debug_assert!(self.index.spec.unique, "only a unique index refuses what is taken");
            let Some(taken) = taken else { continue };
            duplicates.push(Duplicate {
                index: self.position,
                error: duplicate::of_index(namespace, &self.index, key, by.document.view()),
                brought: Bytes::clone(&by.id_key),
                other: id_key_of(&self.index, key, &taken.read(&**store)?)?,
            });
        }
        Ok(())
    }

    fn into_edited(self) -> Edited {
        self.slots.into_iter().map(|(key, slot)| (key, slot.brought)).collect()
    }
}
