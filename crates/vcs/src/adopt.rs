//! Making a branch's working state what a catalog says.
//!
//! Fast-forward, merge and reset all end here: they know the commit that HEAD will be and the
//! catalog that the working state will have; this finds the least that makes it so, in one
//! transaction.
//! 1. A live collection gets the catalog's trees as new bases, where they differ from what it
//!    holds; indexes are matched by their whole specification, others get trees of their own or
//!    lose them.
//! 2. A live collection that the catalog doesn't have is removed with its trees.
//! 3. A collection without trees is what HEAD says. Where the new HEAD and the catalog differ it is
//!    adopted, or marked as dropped. If they are the same tree, as after everything but a merge
//!    with conflicts, nothing is looked at.
//!
//! A collection that isn't versioned stays as it is in all of that. Where the catalog has one of
//! its name, all of it is refused: it would be there and not there.
//!
//! *Conflicts*: a new base conflicts with every write to its tree since the snapshot, so that no
//! write is lost. Working entries were validated when they were read; where HEAD changes, or is not
//! what the working state will be, the absence of one is validated too.

use std::collections::BTreeMap;
use std::sync::Arc;

use frond_db::inside::{
    CatalogEntry, Collection, Error, EventKind, EventRecorder, LiveCollection, LiveIndex,
    Rewriting, TreeRef, WorkingEntry, catalog_view, keeps_images, record_definition,
    record_new_indexes, record_rewrite, system,
};
use frond_doc::Document;
use frond_engine::{Engine, Transaction, TreeId};
use frond_query::Code;
use frond_store::ChunkStore;
use frond_tree::{Tree, Value};

use crate::state::{self, BranchState};

/// The change of a working state.
#[derive(Clone, Copy)]
pub(crate) struct Adoption {
    /// The catalog of HEAD once the transaction has committed.
    pub head: Tree,
    /// The working state at the transaction's snapshot: folded.
    pub before: Tree,
    /// The state that it is to have.
    pub after: Tree,
}

impl BranchState {
    /// Makes the working state of this branch `adoption.after`.
    ///
    /// # Errors
    /// `NamespaceExists` (48) if a collection that isn't versioned stands in the way of one of
    /// `after`; as the transaction's `set_base` and `put`; `Damaged` if a catalog can't be read.
    pub fn adopt(
        &self,
        engine: &Engine,
        transaction: &mut Transaction,
        adoption: &Adoption,
    ) -> Result<(), Error> {
        let store = engine.store();
        self.record_adoption(engine, transaction, adoption)?;
        for (name, entry) in &self.entries {
            let after = state::catalog_entry(store, &adoption.after, name)?;
            match (entry, after) {
                // An unversioned collection is no part of the replaced state, and nothing can take
                // its place.
                (WorkingEntry::Live(live), Some(_)) if !live.is_versioned() => {
                    return Err(stands_in_the_way(&self.database, name));
                }
                (WorkingEntry::Live(live), None) if !live.is_versioned() => {}
                (WorkingEntry::Live(live), Some(after)) => {
                    let before = state::catalog_entry(store, &adoption.before, name)?;
                    if before.as_ref() != Some(&after) {
                        self.rebase(engine, transaction, name, live, before.as_ref(), &after)?;
                    }
                }
                (WorkingEntry::Live(live), None) => {
                    drop_trees(transaction, live)?;
                    self.leave(transaction, store, name, &adoption.head)?;
                }
                (WorkingEntry::Dropped, Some(after)) => {
                    let as_head =
                        state::catalog_entry(store, &adoption.head, name)?.as_ref() == Some(&after);
                    if as_head {
                        self.delete_entry(transaction, name)?;
                    } else {
                        self.go_live(engine, transaction, name, &after, None)?;
                    }
                }
                (WorkingEntry::Dropped, None) => {
                    self.leave(transaction, store, name, &adoption.head)?;
                }
            }
        }
        // A transaction that adopts one of these meanwhile would bring back what the old HEAD said.
        for change in self.head_catalog(&**store)?.diff(store, &adoption.head) {
            self.validate_absence(transaction, &catalog_view::collection_name(&change?.key)?);
        }
        self.part(engine, transaction, &adoption.head, &adoption.after)
    }

    /// Records for change streams what becomes of each collection.
    fn record_adoption(
        &self,
        engine: &Engine,
        transaction: &mut Transaction,
        adoption: &Adoption,
    ) -> Result<(), Error> {
        if !engine.records_events() {
            return Ok(());
        }
        let store = engine.store();
        for change in adoption.before.diff(store, &adoption.after) {
            let change = change?;
            let name = catalog_view::collection_name(&change.key)?;
            let read = |entry: &Option<Value>| {
                entry.as_ref().map(|it| catalog_view::read_entry(&**store, it)).transpose()
            };
            let (before, after) = (read(&change.from)?, read(&change.to)?);
            match (before, after) {
                (before, Some(after)) => {
                    self.record_change(engine, transaction, &name, before.as_ref(), &after)?;
                }
                (Some(_), None) => {
                    let scope = (self.database.as_str(), self.branch.as_str(), name.as_str());
                    if let Some(recorder) = EventRecorder::new(engine, scope) {
                        recorder.record(transaction, EventKind::Drop, Document::empty());
                    }
                }
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Records for change streams that a collection becomes `after`: indexes that it loses before
    /// the changes of its documents, those that it gets behind them.
    fn record_change(
        &self,
        engine: &Engine,
        transaction: &mut Transaction,
        name: &str,
        before: Option<&CatalogEntry>,
        after: &CatalogEntry,
    ) -> Result<(), Error> {
        let scope = (self.database.as_str(), self.branch.as_str(), name);
        let Some(recorder) = EventRecorder::new(engine, scope) else { return Ok(()) };
        record_definition(&recorder, transaction, before, after);
        // Streams tell nothing of the points of a time series, however they were changed.
        if after.series().is_none() {
            let tree = |entry: &CatalogEntry| entry.documents_tree(self.repository.format());
            let rewriting = Rewriting {
                before: before.map(tree),
                after: Some(tree(after)),
                keeps_images: before.is_some_and(|entry| keeps_images(entry.options.view())),
            };
            record_rewrite(engine, transaction, scope, rewriting)?;
        }
        record_new_indexes(&recorder, transaction, before, after);
        Ok(())
    }

    /// Records for change streams that a collection is there again.
    ///
    /// # Errors
    /// `Damaged` if a document can't be read.
    pub fn record_return(
        &self,
        engine: &Engine,
        transaction: &mut Transaction,
        name: &str,
        entry: &CatalogEntry,
    ) -> Result<(), Error> {
        self.record_change(engine, transaction, name, None, entry)
    }

    /// Records for change streams that all collections may be others.
    pub fn record_unread(&self, engine: &Engine, transaction: &mut Transaction, kind: EventKind) {
        let scope = (self.database.as_str(), self.branch.as_str(), "");
        if let Some(recorder) = EventRecorder::new(engine, scope) {
            recorder.record(transaction, kind, Document::empty());
        }
    }

    /// Keeps the working state as it is while HEAD's catalog becomes another one: what had no
    /// entry, because it was HEAD's, gets one where the two differ.
    ///
    /// # Errors
    /// As [`BranchState::adopt`].
    pub fn keep(
        &self,
        engine: &Engine,
        transaction: &mut Transaction,
        new_head: &Tree,
    ) -> Result<(), Error> {
        let old_head = self.head_catalog(&**engine.store())?;
        self.part(engine, transaction, new_head, &old_head)
    }

    /// Gives each collection without an entry one, where the catalogs `head` and `working` differ.
    fn part(
        &self,
        engine: &Engine,
        transaction: &mut Transaction,
        head: &Tree,
        working: &Tree,
    ) -> Result<(), Error> {
        let store = engine.store();
        for change in head.diff(store, working) {
            let change = change?;
            let name = catalog_view::collection_name(&change.key)?;
            if self.entry(&name).is_some() {
                continue;
            }
            self.validate_absence(transaction, &name);
            match change.to {
                Some(entry) => {
                    let entry = catalog_view::read_entry(&**store, &entry)?;
                    self.go_live(engine, transaction, &name, &entry, None)?;
                }
                None => self.put_entry(transaction, &name, &WorkingEntry::Dropped)?,
            }
        }
        Ok(())
    }

    /// Gives a live collection the trees of `after`.
    ///
    /// # Errors
    /// As the transaction's `set_base` and `put`.
    pub fn rebase(
        &self,
        engine: &Engine,
        transaction: &mut Transaction,
        name: &str,
        live: &LiveCollection,
        before: Option<&CatalogEntry>,
        after: &CatalogEntry,
    ) -> Result<(), Error> {
        let format = self.repository.format();
        let old_roots: BTreeMap<&str, _> = before
            .iter()
            .flat_map(|before| &before.indexes)
            .map(|(spec, root)| (spec.name.as_str(), *root))
            .collect();
        let mut indexes = Vec::with_capacity(after.indexes.len());
        let mut gives_index = false;
        for (spec, root) in &after.indexes {
            let kept = live.indexes.iter().find(|index| index.spec == *spec);
            let tree = match kept {
                Some(kept) if old_roots.get(spec.name.as_str()) == Some(root) => kept.tree,
                kept => {
                    let tree = kept.map_or_else(|| engine.reserve_tree_id(), |kept| kept.tree);
                    transaction.set_base(tree, spec.tree(*root, format))?;
                    gives_index = true;
                    tree
                }
            };
            indexes.push(LiveIndex { spec: spec.clone(), tree });
        }
        // A new index files the documents of `after`. A transaction that writes one meanwhile
        // doesn't know the index, so that must conflict even where the documents stay as they are.
        if gives_index || before.is_none_or(|before| before.documents != after.documents) {
            transaction.set_base(live.documents, after.documents_tree(format))?;
        }
        for index in &live.indexes {
            if !indexes.iter().any(|kept| kept.tree == index.tree) {
                transaction.drop_tree(index.tree)?;
            }
        }
        let rebased = LiveCollection {
            uuid: live.uuid,
            options: after.options.clone(),
            documents: live.documents,
            indexes,
            order: live.order,
        };
        if rebased == *live {
            return Ok(());
        }
        self.put_entry(transaction, name, &WorkingEntry::Live(rebased))
    }

    /// Gives a collection that has no trees of the engine those of `after`, and a capped one its
    /// `order`.
    ///
    /// # Errors
    /// As the transaction's `set_base` and `put`.
    pub fn go_live(
        &self,
        engine: &Engine,
        transaction: &mut Transaction,
        name: &str,
        after: &CatalogEntry,
        order: Option<Tree>,
    ) -> Result<(), Error> {
        let collection = Collection::committed(after, &self.repository, name);
        let mut live = |place: TreeRef| -> Result<TreeId, Error> {
            match place {
                TreeRef::Live(id) => Ok(id),
                TreeRef::Committed(tree) => {
                    let id = engine.reserve_tree_id();
                    transaction.set_base(id, tree)?;
                    Ok(id)
                }
            }
        };
        let documents = live(collection.documents)?;
        let mut indexes = Vec::with_capacity(collection.indexes.len());
        for index in collection.indexes {
            indexes.push(LiveIndex { spec: index.spec, tree: live(index.tree)? });
        }
        let order = order.map(|order| live(TreeRef::Committed(order))).transpose()?;
        let (uuid, options) = (collection.uuid, collection.options);
        let live = LiveCollection { uuid, options, documents, indexes, order };
        self.put_entry(transaction, name, &WorkingEntry::Live(live))
    }

    /// Marks a collection that is in no tree of the engine as dropped, if HEAD has it.
    fn leave(
        &self,
        transaction: &mut Transaction,
        store: &Arc<dyn ChunkStore>,
        name: &str,
        head: &Tree,
    ) -> Result<(), Error> {
        if head.get(&**store, name.as_bytes())?.is_some() {
            self.put_entry(transaction, name, &WorkingEntry::Dropped)
        } else {
            self.delete_entry(transaction, name)
        }
    }

    /// Conflicts with a transaction that gives the collection a working entry, where it has none.
    pub fn validate_absence(&self, transaction: &mut Transaction, name: &str) {
        transaction.validate(TreeId::SYSTEM, self.entry_key(name));
    }

    fn entry_key(&self, name: &str) -> bytes::Bytes {
        system::working_key(&self.database, &self.branch, name)
    }

    /// Puts a working entry.
    ///
    /// # Errors
    /// As the transaction's `put`.
    pub fn put_entry(
        &self,
        transaction: &mut Transaction,
        name: &str,
        entry: &WorkingEntry,
    ) -> Result<(), Error> {
        let record = Value::inline(entry.encode());
        Ok(transaction.put(TreeId::SYSTEM, self.entry_key(name), record)?)
    }

    /// Removes a working entry.
    ///
    /// # Errors
    /// As the transaction's `delete`.
    pub fn delete_entry(&self, transaction: &mut Transaction, name: &str) -> Result<(), Error> {
        Ok(transaction.delete(TreeId::SYSTEM, self.entry_key(name))?)
    }
}

fn stands_in_the_way(database: &str, collection: &str) -> Error {
    let message = format!(
        "collection {database}.{collection} is not versioned, and a versioned one of that name would \
         come: rename or drop it first"
    );
    Error::invalid(Code::NamespaceExists, message)
}

/// Removes the trees of a live collection.
pub(crate) fn drop_trees(
    transaction: &mut Transaction,
    live: &LiveCollection,
) -> Result<(), Error> {
    for tree in live.trees() {
        transaction.drop_tree(tree)?;
    }
    Ok(())
}
