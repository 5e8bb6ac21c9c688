//! Merged documents that an index or a validator won't have.
//!
//! Merged field by field, each document is fine by itself; but a document of ours and one of theirs
//! may claim one key of a unique index, and a document that both sides changed in part may fail the
//! validator that each side passed, or have no key that an index can file (arrays in two of its
//! fields, a key that is too long, no place of a geo index). Such a document is *held back*: it
//! stays as ours has it (or as the preferred side has), and is a conflict, with all three sides,
//! for the merging client to resolve.
//!
//! 1. Validators look at what both sides changed. Where one side brought or changed the validator,
//!    they look at what the other side changed, too: it was never asked.
//! 2. Unique indexes show which two documents claim a key. The one that brought it is held back; if
//!    it is what the preferred side has already, the other one is.
//! 3. A document that is held back may claim again what it gave up, so 2 is repeated. More and more
//!    documents are as the preferred side has them, and that side has no duplicates: it ends.
//!
//! An index that only theirs has says nothing about our documents: where these have duplicates,
//! nothing can be held back, and the index itself is the conflict.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use frond_db::inside::changed_entries::Refused;
use frond_db::inside::large::read_document;
use frond_db::inside::{CatalogEntry, Error, IndexSpec, Validator};
use frond_doc::DocumentBuf;
use frond_query::Code;
use frond_tree::{Edit, Tree, Value as TreeValue};

use super::CollectionMerge;
use crate::ConflictKind;
use crate::conflict::StoredConflict;
use crate::merge::notes::MergeNotes;
use crate::three_way::Side;

/// The documents of a collection while it is merged: base, ours, theirs, and what they are merged
/// to.
pub(crate) struct Sides {
    pub base: Tree,
    pub ours: Tree,
    pub theirs: Tree,
    pub merged: Tree,
    /// The edits that led from ours to merged.
    pub noted: MergeNotes,
}

/// The trees of indexes, in the order of their specifications; or what can't be helped.
pub(crate) type MergedIndexes = Result<Vec<Tree>, Vec<Refused>>;

/// Options that make a validator what it is.
const VALIDATING: &[&str] = &["validator", "validationLevel", "validationAction"];

impl Sides {
    /// The side whose documents stand where nothing else can.
    fn preferred(&self, prefer: Side) -> &Tree {
        match prefer {
            Side::Ours => &self.ours,
            Side::Theirs => &self.theirs,
            Side::Base => &self.base,
        }
    }
}

impl CollectionMerge<'_> {
    /// Holds back what the merged validator refuses. `both` are the keys of documents that both
    /// sides changed.
    pub fn hold_back_invalid(
        &self,
        sides: &mut Sides,
        options: &DocumentBuf,
        [ours, theirs]: [&CatalogEntry; 2],
        both: BTreeSet<Bytes>,
        conflicts: &mut Vec<StoredConflict>,
    ) -> Result<(), Error> {
        let validator = Validator::of_options(options.view(), || Ok(self.variables.clone()))?;
        let Some(validator) = validator.filter(|_| self.prefer != Side::Base) else {
            return Ok(());
        };
        let mut candidates = both;
        let is_own = |side: &CatalogEntry| {
            VALIDATING.iter().all(|name| side.options.get(name) == options.get(name))
        };
        for (side, documents) in [(ours, &sides.ours), (theirs, &sides.theirs)] {
            if is_own(side) {
                continue;
            }
            for change in sides.base.diff(self.store, documents) {
                candidates.insert(change?.key);
            }
        }
        let candidates: Vec<Bytes> = candidates.into_iter().collect();
        let keys: Vec<&[u8]> = candidates.iter().map(|key| &key[..]).collect();
        let preferred = *sides.preferred(self.prefer);
        let mut held = BTreeMap::new();
        let merged = sides.merged.get_many(&**self.store, &keys)?;
        for (key, value) in candidates.iter().zip(merged) {
            let Some(after) = self.read(value)? else { continue };
            let before = self.read(preferred.get(&**self.store, key)?)?;
            match validator.check(before.as_ref().map(DocumentBuf::view), after.view()) {
                Err(error) if error.code == Code::DocumentValidationFailure => {
                    held.insert(key.clone(), (ConflictKind::Validator, Vec::new()));
                }
                checked => checked?,
            }
        }
        self.hold_back(sides, held, conflicts)
    }

    /// The merged indexes of `specs`, documents held back that one of them won't have together. A
    /// violation that this can't help is reported with its index.
    pub fn merge_indexes(
        &self,
        sides: &mut Sides,
        specs: &[IndexSpec],
        entries: [&CatalogEntry; 2],
        conflicts: &mut Vec<StoredConflict>,
    ) -> Result<MergedIndexes, Error> {
        let mut all_held = BTreeSet::new();
        loop {
            let (trees, duplicates) = self.change_indexes(specs, entries, sides)?;
            if duplicates.is_empty() {
                return Ok(Ok(trees));
            }
            let preferred = *sides.preferred(self.prefer);
            let mut held = BTreeMap::new();
            for (spec, duplicate) in &duplicates {
                for key in [&duplicate.brought, &duplicate.other] {
                    if held.contains_key(key) {
                        break;
                    }
                    let now = sides.merged.get(&**self.store, key)?;
                    if all_held.contains(key) || now == preferred.get(&**self.store, key)? {
                        continue;
                    }
                    let paths = spec.key.iter().map(|(path, _)| path.to_owned()).collect();
                    let kind = match duplicate.error.code {
                        Code::DuplicateKey => ConflictKind::Unique,
                        _ => ConflictKind::IndexKey,
                    };
                    held.insert(key.clone(), (kind, paths));
                    break;
                }
            }
            if held.is_empty() {
                return Ok(Err(duplicates));
            }
            all_held.extend(held.keys().cloned());
            self.hold_back(sides, held, conflicts)?;
        }
    }

    /// Makes documents what the preferred side has, and conflicts.
    fn hold_back(
        &self,
        sides: &mut Sides,
        held: BTreeMap<Bytes, (ConflictKind, Vec<String>)>,
        conflicts: &mut Vec<StoredConflict>,
    ) -> Result<(), Error> {
        let preferred = *sides.preferred(self.prefer);
        let mut edits = Vec::with_capacity(held.len());
        for (key, (kind, paths)) in held {
            let [base, ours, theirs] =
                [&sides.base, &sides.ours, &sides.theirs].map(|side| side.get(&**self.store, &key));
            let edit = preferred.get(&**self.store, &key)?.map_or(Edit::Delete, Edit::Put);
            edits.push(Ok((key.clone(), edit)));
            let known = conflicts.iter_mut().find(|conflict| conflict.id_key == key);
            if let Some(known) = known {
                known.kind = kind;
                known.paths.extend(paths);
                continue;
            }
            let collection = self.collection.to_owned();
            let (base, ours) = (self.read(base?)?, self.read(ours?)?);
            let theirs = self.read(theirs?)?;
            conflicts.push(StoredConflict {
                collection,
                kind,
                id_key: key,
                paths,
                base,
                ours,
                theirs,
            });
        }
        conflicts.sort_by(|left, right| left.id_key.cmp(&right.id_key));
        sides.merged = sides.merged.apply(&**self.store, &mut edits.into_iter())?;
        Ok(())
    }

    fn read(&self, value: Option<TreeValue>) -> Result<Option<DocumentBuf>, Error> {
        Ok(value.map(|value| read_document(&**self.store, &value)).transpose()?)
    }
}
