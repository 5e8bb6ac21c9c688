//! Taking back a merge that waits, and remembering it.
//!
//! While a merge waits, clients go on writing: only what the merge itself did is taken back. That
//! is a merge of its own: the base is the merged catalog, ours is the working state now, theirs is
//! what it was before. Changes that merged cleanly go, those that were written meanwhile stay, and
//! where these changed the same field as the merge they are *set aside*: reported, and remembered
//! with the rest. Where a conflict was resolved, the base must not be what was there before, or the
//! resolution would seem to be a client's: so it is done twice, with what ours has there and with
//! what theirs has. A document that is just what theirs has there has that as its base the first
//! time, too: one that no client changed comes back as it was, to the order of its fields.
//!
//! *Renamed*: a collection takes its conflicts along, and in the merge's catalogs it has the new
//! name, too: renaming it is no change that the merge could be in the way of.
//!
//! *Remembered*: the reflog's record of an abort, a skip, a hard reset or a deletion, and that of a
//! dropped database, hold the working state, the merge's record and a tree of its conflicts, so
//! that undoing it lets the merge wait again: on the branch that it is then, whose name, and that
//! of its database, may be others than those in the tree's keys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use frond_db::inside::merge_rules::{EqualChanges, MergeRules, MergeSide};
use frond_db::inside::{CatalogEntry, Error, ErrorKind, IndexSpec, Reader, TreeRef, system};
use frond_doc::Value as FieldValue;
use frond_engine::{Engine, Transaction, TreeId};
use frond_store::{ChunkHash, ChunkStore, Lifetime, PutFor};
use frond_tree::{Bounds, Direction, Edit, Tree, TreeError, TreeFormat, Value};

use crate::conflict::{self, MergeState, StoredConflict};
use crate::diff::changed_collections;
use crate::merge::catalogs::CatalogMerge;
use crate::refs::reflog::RememberedMerge;
use crate::repository::Repository;
use crate::state::{BranchState, catalog_entry, with_entry};
use crate::three_way::ThreeWay;

/// A working state, with what was written meanwhile.
pub(crate) struct CarriedState {
    pub catalog: Tree,
    /// Collections in which something was written that this doesn't have.
    pub set_aside: Vec<String>,
}

impl Repository {
    /// The working state `now` of a branch, without what the merge did that waits there.
    pub(crate) fn without_merge(
        &self,
        merge: &MergeState,
        now: Tree,
    ) -> Result<CarriedState, Error> {
        let before = Tree { root: merge.before, format: now.format };
        self.carry(merge, now, before)
    }

    /// `onto` with what was written since the merge stopped that waits, up to `now`.
    pub(crate) fn carry(
        &self,
        merge: &MergeState,
        now: Tree,
        onto: Tree,
    ) -> Result<CarriedState, Error> {
        let tree = |root: &ChunkHash| Tree { root: *root, format: now.format };
        let mut bases: Vec<Tree> = merge.merged.iter().map(tree).collect();
        if let [ours, theirs] = &mut bases[..] {
            *ours = as_resolved(self.frond().engine().store(), ours, theirs, &now)?;
        }
        self.carry_since(bases, now, onto)
    }

    /// `onto` with what was written since `bases`, up to `now`; without a base nothing is. Of a
    /// collection that can't be both all is set aside.
    ///
    /// # Errors
    /// `Damaged` or `Unavailable` if documents can't be read.
    pub(crate) fn carry_since(
        &self,
        bases: Vec<Tree>,
        now: Tree,
        onto: Tree,
    ) -> Result<CarriedState, Error> {
        if let Some(carried) = self.carry_together(&bases, now, onto)? {
            return Ok(carried);
        }
        let store = self.frond().engine().store();
        let base = bases.first().unwrap_or(&onto);
        let (mut catalog, mut set_aside) = (onto, BTreeSet::new());
        for changed in changed_collections(store, base, &now)? {
            let name = changed.name;
            let alone = with_entry(&**store, base, &name, changed.to.as_ref())?;
            let Some(carried) = self.carry_together(&bases, alone, onto)? else {
                set_aside.insert(name);
                continue;
            };
            let entry = catalog_entry(store, &carried.catalog, &name)?;
            catalog = with_entry(&**store, &catalog, &name, entry.as_ref())?;
            set_aside.extend(carried.set_aside);
        }
        Ok(CarriedState { catalog, set_aside: set_aside.into_iter().collect() })
    }

    /// As [`Repository::carry_since`]; `None` if what was written and `onto` can't be together, or
    /// there is no base.
    fn carry_together(
        &self,
        bases: &[Tree],
        now: Tree,
        onto: Tree,
    ) -> Result<Option<CarriedState>, Error> {
        let rules = MergeRules {
            on_conflict: Some(MergeSide::Theirs),
            equal_changes: Some(EqualChanges::Agree),
            ..MergeRules::default()
        };
        let carry = CatalogMerge {
            database: self,
            format: now.format,
            rules: &rules,
            decisions: &BTreeMap::new(),
            by_rules: false,
        };
        let store = self.frond().engine().store();
        let (mut catalog, mut set_aside) = (now, BTreeSet::new());
        for base in bases {
            let merged = match carry.merge(ThreeWay::new(base, &catalog, &onto)) {
                Ok(merged) => merged,
                Err(error) if error.kind == ErrorKind::Invalid => return Ok(None),
                Err(error) => return Err(error),
            };
            set_aside.extend(merged.conflicts.into_iter().map(|conflict| conflict.collection));
            set_aside.extend(redefined(store, base, &catalog, &merged.catalog)?);
            catalog = merged.catalog;
        }
        let set_aside = set_aside.into_iter().collect();
        Ok((!bases.is_empty()).then_some(CarriedState { catalog, set_aside }))
    }
}

/// The collections that had an option or an index defined between `base` and `now` otherwise than
/// `result` has it, and those that were changed and that it lacks.
fn redefined(
    store: &Arc<dyn ChunkStore>,
    base: &Tree,
    now: &Tree,
    result: &Tree,
) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for changed in changed_collections(store, base, now)? {
        let Some(to) = changed.to else { continue };
        let result = catalog_entry(store, result, &changed.name)?;
        if result.is_none_or(|result| lacks_definition(changed.from.as_ref(), &to, &result)) {
            names.push(changed.name);
        }
    }
    Ok(names)
}

fn lacks_definition(from: Option<&CatalogEntry>, to: &CatalogEntry, result: &CatalogEntry) -> bool {
    fn options(entry: &CatalogEntry) -> BTreeMap<&str, FieldValue<'_>> {
        entry.options.iter().collect()
    }
    fn indexes(entry: &CatalogEntry) -> BTreeMap<&str, &IndexSpec> {
        entry.indexes.iter().map(|(spec, _)| (&*spec.name, spec)).collect()
    }
    let (options_from, indexes_from) =
        from.map_or_else(Default::default, |from| (options(from), indexes(from)));
    lacks(&options_from, &options(to), &options(result))
        || lacks(&indexes_from, &indexes(to), &indexes(result))
}

/// Whether something that changed is otherwise in `result`.
fn lacks<V: PartialEq>(
    from: &BTreeMap<&str, V>,
    to: &BTreeMap<&str, V>,
    result: &BTreeMap<&str, V>,
) -> bool {
    let mut names = from.keys().chain(to.keys());
    names.any(|name| from.get(name) != to.get(name) && result.get(name) != to.get(name))
}

/// The catalog `ours`, with what `theirs` has for each document that is so `now`.
fn as_resolved(
    store: &Arc<dyn ChunkStore>,
    ours: &Tree,
    theirs: &Tree,
    now: &Tree,
) -> Result<Tree, Error> {
    let mut resolved = *ours;
    for changed in changed_collections(store, ours, theirs)? {
        let name = &changed.name;
        let now = catalog_entry(store, now, name)?;
        let (Some(ours), Some(theirs), Some(now)) = (changed.from, changed.to, now) else {
            continue; // One side dropped it, or a client did.
        };
        let [ours_tree, theirs, now] =
            [&ours, &theirs, &now].map(|entry| entry.documents_tree(changed.format));
        let mut edits: Vec<Result<(Bytes, Edit), TreeError>> = Vec::new();
        for change in ours_tree.diff(store, &theirs) {
            let change = change?;
            if now.get(&**store, &change.key)? == change.to {
                edits.push(Ok((change.key, change.to.map_or(Edit::Delete, Edit::Put))));
            }
        }
        let documents = ours_tree.apply(&**store, &mut edits.into_iter())?.root;
        let entry = CatalogEntry { documents, ..ours };
        resolved = with_entry(&**store, &resolved, name, Some(&entry))?;
    }
    Ok(resolved)
}

/// Gives what waits for the documents of a collection to the name that it has from `transaction`
/// on; the conflicts of a collection that had this name go with it. Where the schema is to be
/// decided nothing is merged yet, and the merge that runs again looks at the names of then.
pub(crate) fn rename(
    engine: &Engine,
    transaction: &mut Transaction,
    (database, branch): (&str, &str),
    (from, to): (&str, &str),
) -> Result<(), Error> {
    transaction.validate(TreeId::SYSTEM, system::merge_key(database, branch));
    let (state, moved, gone) = {
        let reader = Reader::within(engine, transaction);
        let key = system::merge_key(database, branch);
        if reader.get(TreeRef::Live(TreeId::SYSTEM), &key)?.is_none() {
            return Ok(());
        }
        let of = |collection| conflict::list(&reader, database, branch, Some(collection));
        (BranchState::read(&reader, database, branch)?, of(from)?, of(to)?)
    };
    let Some(mut merge) = state.merging.filter(|merge| merge.decisions.is_none()) else {
        return Ok(());
    };
    for conflict in moved.iter().chain(&gone) {
        conflict.remove(transaction, database, branch)?;
    }
    merge.remaining = merge.remaining.saturating_sub(gone.len() as u64);
    if let Some(rules) = merge.rules.fields.get(from).cloned() {
        // Commits of a replay that come later may have the old name.
        merge.rules.fields.insert(to.to_owned(), rules);
    }
    let store = PutFor::new(&**engine.store(), Lifetime::Lasting);
    for root in std::iter::once(&mut merge.before).chain(&mut merge.merged) {
        let catalog = Tree { root: *root, format: state.repository.format() };
        let entry = catalog_entry(engine.store(), &catalog, from)?;
        let catalog = with_entry(&store, &catalog, to, entry.as_ref())?;
        *root = with_entry(&store, &catalog, from, None)?.root;
    }
    engine.store().sync()?;
    let renamed =
        |conflict: StoredConflict| StoredConflict { collection: to.to_owned(), ..conflict };
    let moved: Vec<StoredConflict> = moved.into_iter().map(renamed).collect();
    conflict::store(transaction, database, branch, &merge, &moved)
}

/// The merge that waits on a branch, as it is remembered.
pub(crate) fn remember(
    engine: &Engine,
    transaction: &Transaction,
    state: &BranchState,
) -> Result<Option<RememberedMerge>, Error> {
    let Some(merge) = &state.merging else { return Ok(None) };
    let (database, branch) = (&state.database, &state.branch);
    let found = conflict::list(&Reader::within(engine, transaction), database, branch, None)?;
    let mut edits = found.into_iter().map(|conflict| {
        Ok((conflict.key(database, branch), Edit::Put(Value::inline(conflict.encode()))))
    });
    let store = PutFor::new(&**engine.store(), Lifetime::Lasting);
    let conflicts = Tree::empty(&store, state.repository.format())?.apply(&store, &mut edits)?;
    engine.store().sync()?;
    let mut references = vec![conflicts.root];
    references.extend(merge.catalogs());
    Ok(Some(RememberedMerge { record: merge.encode(), references }))
}

/// The number of chunks to which a merge that is remembered refers.
pub(crate) fn references_count(merge: &MergeState) -> usize {
    1 + merge.catalogs().count()
}

/// The merge that was remembered.
///
/// # Errors
/// `Damaged` if the record isn't one.
pub(crate) fn state_of(remembered: &RememberedMerge) -> Result<MergeState, Error> {
    MergeState::decode(remembered.record.clone())
}

/// Lets a merge that was remembered wait again.
pub(crate) fn restore(
    engine: &Engine,
    transaction: &mut Transaction,
    state: &BranchState,
    remembered: &RememberedMerge,
) -> Result<(), Error> {
    let (database, branch) = (&state.database, &state.branch);
    let merge = state_of(remembered)?;
    let conflicts = conflicts_of(engine, state, remembered.references.first().copied())?;
    conflict::store(transaction, database, branch, &merge, &conflicts)
}

fn conflicts_of(
    engine: &Engine,
    state: &BranchState,
    root: Option<ChunkHash>,
) -> Result<Vec<StoredConflict>, Error> {
    let store = engine.store();
    let format: TreeFormat = state.repository.format();
    let root = root.ok_or_else(|| Error::damaged("a remembered merge refers to no conflicts"))?;
    let mut conflicts = Vec::new();
    let tree = Tree { root, format };
    for entry in tree.range(store, Bounds::all(), Direction::Ascending) {
        let entry = entry?;
        let prefix = conflict::prefix_of(&entry.key);
        conflicts.push(conflict::read(prefix, &entry.key, entry.value.read(&**store)?)?);
    }
    Ok(conflicts)
}
