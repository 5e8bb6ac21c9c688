//! Names that a side gave to other collections: it swapped two, or renamed one onto another.
//!
//! A commit knows a collection by its name only. Merged by such a name, what both sides have would
//! be taken for a change of something else, and deciding for a side that dropped that would drop
//! both.
//!
//! 1. What both sides changed under one name is looked at: whether a side has other documents
//!    there, of the base's less than half unchanged. Mostly the first few tell.
//! 2. If so, each side's *renamings* are found as in [`crate::merge::renames`]: of a collection
//!    that isn't under its name any more, more than half of the documents stand unchanged under
//!    another one. Its name must be gone, or have another collection of the base: one that was
//!    emptied into an archive, and filled anew, is the same collection, and so is one whose
//!    documents all changed while a copy has them as they were.
//! 3. Names that renamings connect are merged together: each collection with what it was in the
//!    base, wherever it is now. It gets the name that one side gave it.
//! 4. If the sides gave it different names, or one renamed it and the other dropped it, or two
//!    would get one name, this is one conflict of the schema about all these names. The collections
//!    get the names that the chosen side gave them, with both sides' changes to their documents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use frond_db::inside::{CatalogEntry, Error};
use frond_doc::DocumentBuf;
use frond_store::ChunkStore;
use frond_tree::{Bounds, Direction, Tree, TreeFormat};

use crate::ConflictKind;
use crate::conflict::StoredConflict;
use crate::diff::{ChangedCollection, changed_collections};
use crate::merge::collection::description;
use crate::merge::renames::{Work, Works, is_same, kept_count, new_names, renamed_description};
use crate::state::catalog_entry;
use crate::three_way::{Side, ThreeWay};

/// How many documents are looked at before all that differ are counted.
const SAMPLE_COUNT: usize = 16;

/// Names that are merged together, and the collections that had or have them.
pub(super) struct ReusedNames {
    names: Names,
    /// In the order of their names in the base.
    origins: Vec<Origin>,
}

/// A collection of the base, or one that a side made.
struct Origin {
    /// In the base, or else where it is.
    name: String,
    sides: ThreeWay<Option<Named>>,
}

/// Names with what the base has there.
type Names = BTreeMap<String, Option<CatalogEntry>>;

/// A collection and its name on one side.
#[derive(Clone, PartialEq)]
struct Named {
    name: String,
    entry: CatalogEntry,
}

/// What a side changed.
struct SideChanges<'a> {
    changed: BTreeMap<&'a str, &'a ChangedCollection>,
    /// Names that have another collection of the base, and not the `_id`s of their own.
    reused: BTreeSet<String>,
    /// The new names of the base's collections.
    renamings: BTreeMap<String, String>,
}

/// Finds them, where `by_theirs` is what theirs changed.
///
/// # Errors
/// If a chunk is damaged or missing.
pub(super) fn find(
    store: &Arc<dyn ChunkStore>,
    catalogs: ThreeWay<&Tree>,
    by_theirs: &[ChangedCollection],
) -> Result<Vec<ReusedNames>, Error> {
    let format = catalogs.base.format;
    let mut suspects = BTreeSet::new();
    for changed in by_theirs {
        let ours = catalog_entry(store, catalogs.ours, &changed.name)?;
        let Some(from) = &changed.from else { continue };
        if ours.as_ref() == Some(from) || ours == changed.to {
            continue;
        }
        for to in [&ours, &changed.to].into_iter().flatten() {
            if !is_kept(store, format, from, to)? {
                suspects.insert(changed.name.as_str());
            }
        }
    }
    if suspects.is_empty() {
        return Ok(Vec::new());
    }
    let by_ours = changed_collections(store, catalogs.base, catalogs.ours)?;
    let ours = SideChanges::find(store, format, &by_ours)?;
    let theirs = SideChanges::find(store, format, by_theirs)?;
    let mut found: Vec<ReusedNames> = Vec::new();
    for name in suspects {
        let is_known = found.iter().any(|known| known.names.contains_key(name));
        if !is_known && (ours.has_reused(name) || theirs.has_reused(name)) {
            found.push(ReusedNames::around(name, &ours, &theirs));
        }
    }
    Ok(found)
}

/// Whether more than half of the documents of `from` stand unchanged in `to`.
fn is_kept(
    store: &Arc<dyn ChunkStore>,
    format: TreeFormat,
    from: &CatalogEntry,
    to: &CatalogEntry,
) -> Result<bool, Error> {
    if from.documents == to.documents {
        return Ok(true);
    }
    let (before, now) = (from.documents_tree(format), to.documents_tree(format));
    let (mut seen, mut kept) = (0, 0);
    let mut documents = before.range(store, Bounds::all(), Direction::Ascending);
    while seen < SAMPLE_COUNT && documents.step()? {
        let Some(entry) = documents.entry() else { break };
        seen += 1;
        kept += usize::from(now.get(&**store, &entry.key)? == Some(entry.value));
    }
    Ok(seen < kept * 2 || kept_count(store, format, from, to)?.is_some())
}

/// Leaves the renamings of collections whose name is gone, or has another one of the base now.
/// Returns those of the `replaced` names that have.
fn retain_real(
    renamings: &mut BTreeMap<String, String>,
    replaced: &BTreeSet<String>,
) -> BTreeSet<String> {
    loop {
        let targets: BTreeSet<&String> = renamings.values().collect();
        let reused: BTreeSet<String> =
            replaced.iter().filter(|name| targets.contains(name)).cloned().collect();
        let count = renamings.len();
        renamings.retain(|name, _| !replaced.contains(name) || reused.contains(name));
        if renamings.len() == count {
            return reused;
        }
    }
}

impl<'a> SideChanges<'a> {
    fn find(
        store: &Arc<dyn ChunkStore>,
        format: TreeFormat,
        changed: &'a [ChangedCollection],
    ) -> Result<SideChanges<'a>, Error> {
        let mut gone = Vec::new();
        let (mut replaced, mut taken) = (BTreeSet::new(), BTreeSet::new());
        for collection in changed {
            let Some(from) = &collection.from else { continue };
            match &collection.to {
                Some(to) if is_same(store, format, from, to)? => {
                    taken.insert(collection.name.clone());
                    continue;
                }
                Some(_) => drop(replaced.insert(collection.name.clone())),
                None => {}
            }
            gone.push((&*collection.name, from));
        }
        let names = new_names(store, format, &gone, changed, &mut taken)?;
        let mut renamings = names.into_iter().map(|(name, new)| (name, new.name)).collect();
        let reused = retain_real(&mut renamings, &replaced);
        let changed = changed.iter().map(|changed| (changed.name.as_str(), changed)).collect();
        Ok(SideChanges { changed, reused, renamings })
    }

    /// Whether it has given this name to another collection.
    fn has_reused(&self, name: &str) -> bool {
        self.reused.contains(name)
    }

    fn is_target(&self, name: &str) -> bool {
        self.renamings.values().any(|to| to == name)
    }

    /// What has a name here, where the base has `base`.
    fn entry(&self, name: &str, base: &Option<CatalogEntry>) -> Option<CatalogEntry> {
        self.changed.get(name).map_or_else(|| base.clone(), |changed| changed.to.clone())
    }

    /// The collection that is `base` in the base, under the name that it has here.
    fn renamed(&self, name: &str, base: &Option<CatalogEntry>, names: &Names) -> Option<Named> {
        let to = match self.renamings.get(name) {
            Some(to) => to,
            None if self.is_target(name) || base.is_none() => return None,
            None => name,
        };
        let entry = self.entry(to, names.get(to)?)?;
        Some(Named { name: to.to_owned(), entry })
    }

    /// A collection that was made here, under a name of the base's or another one.
    fn made(&self, name: &str, base: &Option<CatalogEntry>) -> Option<Named> {
        let is_of_base = base.is_some() && !self.renamings.contains_key(name);
        if is_of_base || self.is_target(name) {
            return None;
        }
        let entry = self.entry(name, base)?;
        Some(Named { name: name.to_owned(), entry })
    }
}

impl ReusedNames {
    /// All names that renamings connect with this one.
    fn around(name: &str, ours: &SideChanges<'_>, theirs: &SideChanges<'_>) -> ReusedNames {
        let mut connected = BTreeSet::from([name.to_owned()]);
        let mut count = 0;
        while count < connected.len() {
            count = connected.len();
            for (from, to) in ours.renamings.iter().chain(&theirs.renamings) {
                if connected.contains(from) || connected.contains(to) {
                    connected.extend([from.clone(), to.clone()]);
                }
            }
        }
        let in_base = |name: String| {
            let changed = ours.changed.get(&*name).or_else(|| theirs.changed.get(&*name));
            let from = changed.and_then(|changed| changed.from.clone());
            (name, from)
        };
        let names: Names = connected.into_iter().map(in_base).collect();
        let mut origins = Vec::new();
        for (name, base) in &names {
            let renamed = [ours, theirs].map(|side| side.renamed(name, base, &names));
            let made = [ours, theirs].map(|side| side.made(name, base));
            let of_base = base.clone().map(|entry| Named { name: name.clone(), entry });
            for (base, [ours, theirs]) in [(of_base, renamed), (None, made)] {
                origins
                    .push(Origin { name: name.clone(), sides: ThreeWay::new(base, ours, theirs) });
            }
        }
        ReusedNames { names, origins }
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// Whether this is one of the names.
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// The conflict, if the sides don't agree on the names.
    pub fn conflict(&self) -> Option<StoredConflict> {
        let mut taken = BTreeSet::new();
        for origin in &self.origins {
            let is_free = match origin.merged_name() {
                Ok(Some(name)) => taken.insert(name),
                Ok(None) => true,
                Err(Disagreement) => false,
            };
            if !is_free {
                let kind = ConflictKind::Collection;
                return Some(StoredConflict::of_schema(
                    &origin.name,
                    kind,
                    "",
                    origin.descriptions(),
                ));
            }
        }
        None
    }

    /// Changes what becomes of the collections: as the sides agree, or else as `chosen` has them.
    pub fn apply(self, chosen: Option<Side>, works: &mut Works) {
        for (name, base) in &self.names {
            let becomes = if chosen == Some(Side::Base) { base.clone() } else { None };
            works.insert(name.clone(), Work::Becomes(becomes));
        }
        let mut made_by_other = Vec::new();
        for origin in self.origins {
            let name = match chosen {
                Some(Side::Base) => return,
                None => origin.merged_name().unwrap_or_default().map(str::to_owned),
                Some(side) => origin.sides.as_ref().on(side).map(|named| named.name.clone()),
            };
            let sides = origin.sides.map(|named| named.map(|named| named.entry));
            match (name, sides) {
                (Some(name), ThreeWay { ours: Some(ours), theirs: Some(theirs), base }) => {
                    let sides = ThreeWay::new(base, Some(ours), Some(theirs));
                    works.insert(name, Work::Merge(Box::new(sides)));
                }
                // What the other side dropped, or never had, may have been changed here.
                (Some(name), sides) if chosen.is_none() => {
                    works.insert(name, Work::Merge(Box::new(sides)));
                }
                (Some(name), ThreeWay { ours, theirs, .. }) => {
                    works.insert(name, Work::Becomes(ours.or(theirs)));
                }
                (None, ThreeWay { base: None, ours, theirs }) => {
                    made_by_other.extend(ours.or(theirs).map(|entry| (origin.name, entry)));
                }
                (None, _) => {}
            }
        }
        for (name, other) in made_by_other {
            keep_other(works, chosen, name, other);
        }
    }
}

/// Keeps a collection that only the side that wasn't chosen made: it is merged with what the chosen
/// one has under that name.
fn keep_other(works: &mut Works, chosen: Option<Side>, name: String, other: CatalogEntry) {
    let before = match works.remove(&name) {
        Some(Work::Becomes(entry)) => entry,
        Some(Work::Merge(sides)) => sides.on(chosen.unwrap_or(Side::Ours)),
        None => None,
    };
    let work = match (before, chosen) {
        (None, _) => Work::Becomes(Some(other)),
        (before, Some(Side::Theirs)) => {
            Work::Merge(Box::new(ThreeWay::new(None, Some(other), before)))
        }
        (before, _) => Work::Merge(Box::new(ThreeWay::new(None, before, Some(other)))),
    };
    works.insert(name, work);
}

impl Origin {
    /// The name that both sides agree on; `None` if it is dropped.
    fn merged_name(&self) -> Result<Option<&str>, Disagreement> {
        let sides = self.sides.as_ref();
        let names = sides.map(|named| named.map(|named| named.name.as_str()));
        match names.agreed() {
            Some(Some(name)) => Ok(Some(name)),
            // One that the other side changed under its name is decided about there.
            Some(None) => {
                let changed = [sides.ours, sides.theirs].into_iter().flatten();
                let mut changed = changed.filter(|named| sides.base != Some(*named));
                Ok(changed.next().map(|named| named.name.as_str()))
            }
            None => Err(Disagreement),
        }
    }

    /// The text that describes it.
    fn descriptions(&self) -> ThreeWay<Option<DocumentBuf>> {
        self.sides.as_ref().map(|named| {
            let Named { name, entry } = named?;
            if *name == self.name {
                return Some(description(entry));
            }
            Some(renamed_description(name, entry))
        })
    }
}

/// The sides gave a collection different names, or one renamed it and the other dropped it.
struct Disagreement;
