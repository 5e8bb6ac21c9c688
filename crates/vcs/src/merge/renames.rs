//! Collections that one side renamed, and the other renamed too, or dropped.
//!
//! A commit knows a collection by its name only, so a renaming is recognised by the documents: of a
//! collection that a side hasn't any more, more than half stand unchanged in another one that is
//! new there, or took another's place, and are more than half of that one: an archive that was
//! gathered from several is none of them. Of several the most similar one counts.
//!
//! 1. Both gave it the *same* name: it is merged with what it was before, as if it were still
//!    called so.
//! 2. They gave it *different* names, or one of them dropped it: a conflict of the schema, of the
//!    collection under its old name. It gets the name, or goes, as the side has it that is chosen;
//!    the documents are merged.
//! 3. A collection that only one side misses is none of these: the other has it as it was, or
//!    changed it, and that is decided as for one that was dropped.
//! 4. Nor is one whose name has another collection on a side: see [`crate::merge::reused_names`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use frond_db::inside::{CatalogEntry, Error};
use frond_doc::{DocumentBuf, DocumentBuilder};
use frond_store::ChunkStore;
use frond_tree::{Tree, TreeFormat};

use crate::ConflictKind;
use crate::conflict::StoredConflict;
use crate::diff::{ChangedCollection, changed_collections};
use crate::merge::collection::description;
use crate::merge::reused_names::ReusedNames;
use crate::state::catalog_entry;
use crate::three_way::{Side, ThreeWay};

/// So many pairs of collections at most are compared with one another: of more, which takes
/// thousands of almost equal ones, the rest counts as dropped.
const PAIRS_MAX: usize = 1 << 21;

/// The work on a collection.
pub(super) enum Work {
    /// These are merged.
    Merge(Box<ThreeWay<Option<CatalogEntry>>>),
    /// It is this.
    Becomes(Option<CatalogEntry>),
}

/// The works by the names that the collections are to have.
pub(super) type Works = BTreeMap<String, Work>;

/// A collection that neither side has any more under its name, and that a side at least renamed.
pub(super) struct Renamed {
    name: String,
    entry: CatalogEntry,
    ours: Option<NewName>,
    theirs: Option<NewName>,
}

/// The name that a side gave it, what it is there, and what had the name before.
#[derive(Clone)]
pub(super) struct NewName {
    pub name: String,
    entry: CatalogEntry,
    before: Option<CatalogEntry>,
}

/// Finds them, where `changed` is what theirs changed, outside of `reused` names.
///
/// # Errors
/// If a chunk is damaged or missing.
pub(super) fn find(
    store: &Arc<dyn ChunkStore>,
    catalogs: ThreeWay<&Tree>,
    changed: &[ChangedCollection],
    reused: &[ReusedNames],
) -> Result<Vec<Renamed>, Error> {
    let is_reused = |name: &str| reused.iter().any(|names| names.contains(name));
    let mut gone = Vec::new();
    for left in changed.iter().filter(|left| left.to.is_none() && !is_reused(&left.name)) {
        let is_gone = catalog_entry(store, catalogs.ours, &left.name)?.is_none();
        gone.extend(left.from.as_ref().filter(|_| is_gone).map(|entry| (&*left.name, entry)));
    }
    if gone.is_empty() {
        return Ok(Vec::new());
    }
    let by_ours = changed_collections(store, catalogs.base, catalogs.ours)?;
    let changes = |name: &NewName, side: &[ChangedCollection]| {
        side.iter().any(|changed| changed.name == name.name)
    };
    let mut our_names: BTreeSet<String> =
        reused.iter().flat_map(ReusedNames::names).map(str::to_owned).collect();
    let mut their_names = our_names.clone();
    let mut found = Vec::new();
    let format = catalogs.base.format;
    let mut ours = new_names(store, format, &gone, &by_ours, &mut our_names)?;
    let mut theirs = new_names(store, format, &gone, changed, &mut their_names)?;
    for (name, entry) in gone {
        let (ours, theirs) = (ours.remove(name), theirs.remove(name));
        let is_clear = match (&ours, &theirs) {
            (None, None) => false,
            (Some(ours), Some(theirs)) if ours.name == theirs.name => true,
            // The other side's collection of that name has nothing to do with this one.
            (ours, theirs) => {
                !ours.as_ref().is_some_and(|ours| changes(ours, changed))
                    && !theirs.as_ref().is_some_and(|theirs| changes(theirs, &by_ours))
            }
        };
        if is_clear {
            let (name, entry) = (name.to_owned(), entry.clone());
            found.push(Renamed { name, entry, ours, theirs });
        }
    }
    Ok(found)
}

/// The names that a side gave to collections which it has no more, none of those `taken`.
///
/// Of all pairs of what is gone and what is there the most similar come first: one collection may
/// hold copies of another's documents. Among equals options and indexes decide, then names.
///
/// # Errors
/// If a chunk is damaged or missing.
pub(super) fn new_names(
    store: &Arc<dyn ChunkStore>,
    format: TreeFormat,
    gone: &[(&str, &CatalogEntry)],
    side: &[ChangedCollection],
    taken: &mut BTreeSet<String>,
) -> Result<BTreeMap<String, NewName>, Error> {
    let mut pairs = Vec::new();
    for (changed_place, changed) in side.iter().enumerate() {
        let Some(to) = changed.to.as_ref().filter(|_| !taken.contains(&changed.name)) else {
            continue;
        };
        // What is still there under its name may hold the same documents: of a copy, say.
        if let Some(from) = &changed.from
            && is_same(store, format, from, to)?
        {
            continue;
        }
        let to_count = to.documents_tree(format).count(&**store)?;
        for (gone_place, (_, entry)) in gone.iter().enumerate() {
            let Some(kept) = kept_count(store, format, entry, to)? else { continue };
            if to_count / 2 < kept && pairs.len() < PAIRS_MAX {
                let count = entry.documents_tree(format).count(&**store)? + to_count;
                let share_different = 1.0 - (2 * kept) as f64 / count as f64;
                let is_other = description(entry) != description(to);
                pairs.push((share_different, (is_other, gone_place, changed_place)));
            }
        }
    }
    // Both are in the order of their names.
    pairs.sort_by(|one, other| one.0.total_cmp(&other.0).then_with(|| one.1.cmp(&other.1)));
    let mut names = BTreeMap::new();
    for (_, (_, gone_place, changed_place)) in pairs {
        let (name, changed) = (gone[gone_place].0, &side[changed_place]);
        let Some(to) = &changed.to else { continue };
        if !names.contains_key(name) && taken.insert(changed.name.clone()) {
            let before = changed.from.clone();
            let new = NewName { name: changed.name.clone(), entry: to.clone(), before };
            names.insert(name.to_owned(), new);
        }
    }
    Ok(names)
}

/// How many documents of `from` stand unchanged in `to`; `None` unless it is more than half. What
/// had none is kept by whatever has its name.
pub(super) fn kept_count(
    store: &Arc<dyn ChunkStore>,
    format: TreeFormat,
    from: &CatalogEntry,
    to: &CatalogEntry,
) -> Result<Option<u64>, Error> {
    let (from, to) = (from.documents_tree(format), to.documents_tree(format));
    let all = from.count(&**store)?;
    if all == 0 {
        return Ok(Some(0));
    }
    let mut kept = all;
    for change in from.diff(store, &to) {
        if change?.from.is_some() {
            kept -= 1;
            if kept <= all / 2 {
                return Ok(None);
            }
        }
    }
    Ok((all / 2 < kept).then_some(kept))
}

/// Whether `to`, which has the name of `from`, is that collection still, however its documents were
/// changed: they have more than half of the `_id`s of one of them in common, since it may have
/// grown or shrunk to a multiple, or it had none.
pub(super) fn is_same(
    store: &Arc<dyn ChunkStore>,
    format: TreeFormat,
    from: &CatalogEntry,
    to: &CatalogEntry,
) -> Result<bool, Error> {
    let (from, to) = (from.documents_tree(format), to.documents_tree(format));
    let mut left = from.count(&**store)?;
    if left == 0 {
        return Ok(true);
    }
    let half = left.min(to.count(&**store)?) / 2;
    for change in from.diff(store, &to) {
        let change = change?;
        left -= u64::from(change.from.is_some() && change.to.is_none());
        if left <= half {
            return Ok(false);
        }
    }
    Ok(half < left)
}

impl Renamed {
    /// The conflict, unless both gave it the same name.
    pub fn conflict(&self) -> Option<StoredConflict> {
        let is_same = match (&self.ours, &self.theirs) {
            (Some(ours), Some(theirs)) => ours.name == theirs.name,
            _ => false,
        };
        let sides = ThreeWay::new(
            Some(description(&self.entry)),
            self.ours.as_ref().map(NewName::description),
            self.theirs.as_ref().map(NewName::description),
        );
        let kind = ConflictKind::Collection;
        (!is_same).then(|| StoredConflict::of_schema(&self.name, kind, "", sides))
    }

    /// Changes what becomes of the collections, where the renaming of this side counts.
    pub fn apply(self, chosen: Side, works: &mut Works) {
        let Renamed { name, entry, ours, theirs } = self;
        let (counts, other) = match chosen {
            Side::Ours => (ours, theirs),
            Side::Theirs => (theirs, ours),
            Side::Base => {
                works.insert(name, Work::Becomes(Some(entry)));
                for renamed in [ours, theirs].into_iter().flatten() {
                    works.insert(renamed.name, Work::Becomes(renamed.before));
                }
                return;
            }
        };
        if let Some(other) = &other {
            works.insert(other.name.clone(), Work::Becomes(other.before.clone()));
        }
        let Some(counts) = counts else { return };
        let work = match other {
            Some(other) => {
                let (our, their) = match chosen {
                    Side::Theirs => (other.entry, counts.entry),
                    _ => (counts.entry, other.entry),
                };
                Work::Merge(Box::new(ThreeWay::new(Some(entry), Some(our), Some(their))))
            }
            None => Work::Becomes(Some(counts.entry)),
        };
        works.insert(counts.name, work);
    }
}

impl NewName {
    /// Returns its description.
    fn description(&self) -> DocumentBuf {
        renamed_description(&self.name, &self.entry)
    }
}

/// The description of a collection that a side renamed.
pub(super) fn renamed_description(to: &str, entry: &CatalogEntry) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    builder.append("renamedTo", frond_doc::Value::String(to));
    for (name, value) in description(entry).iter() {
        builder.append(name, value);
    }
    builder.build()
}
