//! Resolving conflicts of a merge that waits: one by its id, or many at once.
//!
//! The working state has ours on the paths in conflict, and what merged cleanly; since then the
//! document may have been changed by hand.
//! - *Ours* leaves the document as it is now.
//! - *Theirs* takes their values on the paths in conflict and leaves the rest as it is now: a merge
//!   of its own, in which the document as the merge left it is the base, the present one is ours,
//!   and the one that the merge would have left had it preferred theirs is theirs. A document that
//!   is in conflict as a whole is taken as a whole.
//! - *A value* replaces or removes the document; *an update* changes it as it is now.
//!
//! The document is written as any other is: its indexes follow, and a unique one may refuse.
//! Conflicts of the schema are decided by a side; the merge then runs again when it is continued.
//!
//! One conflict costs a look-up, however many wait; many are resolved in one transaction.

use std::collections::BTreeMap;

use frond_db::inside::merge_rules::{DocumentRules, MergeSide};
use frond_db::inside::{
    CatalogView, CollectionWriter, DocumentChange, Error, FetchedDocument, LatchMode, Outcome,
    Reader, Scope, check_id, check_size, is_any_place, parse_update, parse_variables,
};
use frond_doc::{DocumentBuf, key, normalise};
use frond_engine::{Durability, Transaction, TreeId};
use frond_query::{Code, Filter};

use crate::conflict::{self, MergeState, StoredConflict};
use crate::merge::fields::merge_by_rules;
use crate::repository::Repository;
use crate::three_way::{Side, ThreeWay};
use crate::{ConflictKind, Resolution, history};

/// Conflicts to resolve.
#[derive(Clone, Debug)]
pub enum ConflictSelection {
    /// Those with these ids.
    Ids(Vec<String>),
    /// All of a collection.
    Collection(String),
    /// All.
    All,
}

impl Repository {
    /// Resolves one conflict; answers how many are left.
    ///
    /// # Errors
    /// `NoSuchKey` if there is no such conflict; `IllegalOperation` if no merge waits; `BadValue`
    /// if the value has another `_id`; `BSONObjectTooLarge`; `DuplicateKey` if a unique index
    /// refuses the result.
    pub fn resolve_conflict(&self, id: &str, resolution: &Resolution) -> Result<u64, Error> {
        self.resolve_conflicts(&ConflictSelection::Ids(vec![id.to_owned()]), resolution)
    }

    /// Resolves conflicts in the same way, all or none; answers how many are left.
    ///
    /// # Errors
    /// As [`Repository::resolve_conflict`].
    pub fn resolve_conflicts(
        &self,
        selection: &ConflictSelection,
        resolution: &Resolution,
    ) -> Result<u64, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        let engine = self.frond().engine();
        let scope = Scope::branch(name, branch);
        let merge_key = frond_db::inside::system::merge_key(name, branch);
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            let (mut merge, conflicts) = {
                let reader = Reader::within(engine, transaction);
                if frond_db::inside::refs::branch_ref(&reader, name, branch)?.is_none() {
                    return Err(history::no_branch(name, branch));
                }
                let place = frond_db::inside::TreeRef::Live(TreeId::SYSTEM);
                let Some(merge) = reader.get_bytes(place, &merge_key)? else {
                    return Err(conflict::no_merge(branch));
                };
                (MergeState::decode(merge)?, self.selected(&reader, branch, selection)?)
            };
            transaction.validate(TreeId::SYSTEM, merge_key.clone());
            let count = conflicts.len() as u64;
            let mut by_collection: BTreeMap<String, Vec<StoredConflict>> = BTreeMap::new();
            for found in conflicts {
                found.remove(transaction, name, branch)?;
                if found.kind.is_document() {
                    by_collection.entry(found.collection.clone()).or_default().push(found);
                } else {
                    decide(&mut merge, &found, resolution)?;
                }
            }
            for (collection, conflicts) in &by_collection {
                self.resolve_in(transaction, branch, collection, conflicts, &merge, resolution)?;
            }
            merge.remaining = merge.remaining.saturating_sub(count);
            merge.put(transaction, name, branch)?;
            Ok(Outcome::Commit(merge.remaining))
        })
    }

    fn selected(
        &self,
        reader: &Reader<'_>,
        branch: &str,
        selection: &ConflictSelection,
    ) -> Result<Vec<StoredConflict>, Error> {
        let name = self.repository_name();
        let ids = match selection {
            ConflictSelection::All => return conflict::list(reader, name, branch, None),
            ConflictSelection::Collection(collection) => {
                return conflict::list(reader, name, branch, Some(collection));
            }
            ConflictSelection::Ids(ids) => ids,
        };
        let mut found: BTreeMap<&str, StoredConflict> = BTreeMap::new();
        for id in ids {
            let Some(conflict) = conflict::by_id(reader, name, branch, id)? else {
                let message = format!("no conflict {id} waits in {}", self.name());
                return Err(Error::invalid(Code::NoSuchKey, message));
            };
            found.insert(id, conflict);
        }
        Ok(found.into_values().collect())
    }

    /// Resolves conflicts of documents of one collection.
    fn resolve_in(
        &self,
        transaction: &mut Transaction,
        branch: &str,
        collection: &str,
        conflicts: &[StoredConflict],
        merge: &MergeState,
        resolution: &Resolution,
    ) -> Result<(), Error> {
        if matches!(resolution, Resolution::Ours) {
            return Ok(());
        }
        let options = {
            let reader = Reader::within(self.frond().engine(), transaction);
            let catalog = CatalogView::open(&reader, self)?;
            catalog.collection(collection)?.map_or_else(DocumentBuf::empty, |found| found.options)
        };
        let rules = merge.rules.of_collection(collection, &options)?;
        let update = match resolution {
            Resolution::Update(update) => Some(parse_update(
                self,
                update,
                None,
                &parse_variables(self.frond(), None, self.interrupt())?,
                None,
            )?),
            _ => None,
        };
        for found in conflicts {
            let now = self.document_now(transaction, &found.collection, &found.id_key)?;
            let resolved = match (&update, &now) {
                (Some(update), Some(document)) => {
                    let (id_key, document) = (found.id_key.clone(), document.clone());
                    let changed = update.apply(
                        &Filter::all(),
                        &FetchedDocument { id_key, document: document.clone(), large: None },
                    )?;
                    Some(changed.unwrap_or(document))
                }
                (Some(_), None) => {
                    let message = "there is no document to update: resolve by a side or a value";
                    return Err(Error::invalid(Code::BadValue, message));
                }
                _ => resolve(found, now.as_ref(), resolution, &rules)?,
            };
            if let Some(resolved) = &resolved {
                check_size(self, resolved.as_bytes().len() as u64)?;
            }
            self.write_resolved(transaction, branch, found, now, resolved)?;
        }
        Ok(())
    }

    fn write_resolved(
        &self,
        transaction: &mut Transaction,
        branch: &str,
        conflict: &StoredConflict,
        now: Option<DocumentBuf>,
        resolved: Option<DocumentBuf>,
    ) -> Result<(), Error> {
        if now == resolved {
            return Ok(());
        }
        let mut writer = CollectionWriter::open(transaction, self, branch, &conflict.collection)?;
        let id_key = conflict.id_key.clone();
        match (now, resolved) {
            (Some(document), Some(after)) => writer.replace(
                &FetchedDocument { id_key, document, large: None },
                &after,
                DocumentChange::Changed,
            ),
            (Some(document), None) => {
                writer.remove(&FetchedDocument { id_key, document, large: None })
            }
            (None, Some(after)) => writer.insert(&after),
            (None, None) => Ok(()),
        }
    }
}

/// Notes how a conflict of the schema is decided.
fn decide(
    merge: &mut MergeState,
    conflict: &StoredConflict,
    resolution: &Resolution,
) -> Result<(), Error> {
    let side = match resolution {
        Resolution::Ours => MergeSide::Ours,
        Resolution::Theirs => MergeSide::Theirs,
        Resolution::Value(_) | Resolution::Update(_) => {
            let message = format!(
                "a conflict about {} is decided by a side, ours or theirs",
                conflict.kind.name()
            );
            return Err(Error::invalid(Code::BadValue, message));
        }
    };
    let decisions = merge.decisions.get_or_insert_default();
    decisions.insert(conflict.id(), side);
    Ok(())
}

/// Returns the document that resolves the conflict.
fn resolve(
    conflict: &StoredConflict,
    now: Option<&DocumentBuf>,
    resolution: &Resolution,
    rules: &DocumentRules,
) -> Result<Option<DocumentBuf>, Error> {
    match resolution {
        Resolution::Ours | Resolution::Update(_) => Ok(now.cloned()),
        Resolution::Theirs => Ok(take_theirs(conflict, now, rules)),
        Resolution::Value(None) => Ok(None),
        Resolution::Value(Some(document)) => {
            if is_any_place(&conflict.id_key) {
                let message = "a point of a time series is resolved by a side, not by a value";
                return Err(Error::invalid(Code::BadValue, message));
            }
            let id = document.get("_id").map(key::of_id);
            if id.as_ref() != Some(&conflict.id_key) {
                let message = "the value must have the _id of the document in conflict";
                return Err(Error::invalid(Code::BadValue, message));
            }
            let no_id = || frond_doc::ObjectId([0; 12]); // Never asked for: there is one.
            let document = normalise::for_insert(document, no_id)?;
            check_id(document.view())?;
            Ok(Some(document))
        }
    }
}

fn take_theirs(
    conflict: &StoredConflict,
    now: Option<&DocumentBuf>,
    rules: &DocumentRules,
) -> Option<DocumentBuf> {
    if rules.whole {
        return conflict.theirs.clone();
    }
    let sides = ThreeWay::new(&conflict.base, &conflict.ours, &conflict.theirs);
    let sides = sides.map(|side| side.as_ref().map(DocumentBuf::view));
    // A document that is held back is in the working state as ours has it, without the changes that
    // merged cleanly.
    let left = match conflict.kind {
        ConflictKind::Document => merge_by_rules(sides, Side::Ours, rules).document,
        _ => conflict.ours.clone(),
    };
    let wanted = merge_by_rules(sides, Side::Theirs, rules).document;
    let sides = ThreeWay::new(left.as_ref(), now, wanted.as_ref());
    let sides = sides.map(|side| side.map(DocumentBuf::view));
    merge_by_rules(sides, Side::Theirs, &DocumentRules::default()).document
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;

    #[test]
    fn theirs_comes_where_the_conflict_is_and_later_edits_stay() {
        let base = document! { "_id": 1_i32, "a": 1_i32, "b": 1_i32 };
        let ours = document! { "_id": 1_i32, "a": 2_i32, "b": 1_i32 };
        let theirs = document! { "_id": 1_i32, "a": 3_i32, "b": 4_i32 };
        let conflict = StoredConflict {
            collection: "things".to_owned(),
            kind: ConflictKind::Document,
            id_key: key::of_value(frond_doc::Value::Int32(1)),
            paths: vec!["a".to_owned()],
            base: Some(base),
            ours: Some(ours),
            theirs: Some(theirs),
        };
        let now = document! { "_id": 1_i32, "a": 2_i32, "b": 4_i32, "c": 5_i32 };
        let expected = document! { "_id": 1_i32, "a": 3_i32, "b": 4_i32, "c": 5_i32 };
        assert_eq!(take_theirs(&conflict, Some(&now), &DocumentRules::default()), Some(expected));
        let other = document! { "_id": 2_i32 };
        let rules = DocumentRules::default();
        assert!(resolve(&conflict, Some(&now), &Resolution::Value(Some(other)), &rules).is_err());
    }

    #[test]
    fn a_removed_document() {
        let document = document! { "_id": 1_i32, "a": 1_i32 };
        let changed = document! { "_id": 1_i32, "a": 2_i32 };
        let conflict = StoredConflict {
            collection: "things".to_owned(),
            kind: ConflictKind::Document,
            id_key: bytes::Bytes::from_static(b"k"),
            paths: Vec::new(),
            base: Some(document),
            ours: Some(changed.clone()),
            theirs: None,
        };
        assert_eq!(take_theirs(&conflict, Some(&changed), &DocumentRules::default()), None);
    }
}
