//! Resolving one conflict of a merge that waits.
//!
//! The working state has ours on the paths in conflict, and what merged cleanly; since then the
//! document may have been changed by hand.
//! - *Ours* leaves the document as it is now.
//! - *Theirs* takes their values on the paths in conflict and leaves the rest as it is now: a merge of
//!   its own, in which the document as the merge left it is the base, the present one is ours, and
//!   the one that the merge would have left had it preferred theirs is theirs.
//! - *A value* replaces or removes the document.
//!
//! The document is written as any other is: its indexes follow, and a unique one may refuse.

use frond_doc::{DocumentBuf, key, normalise};
use frond_engine::{Durability, Transaction, TreeId};
use frond_query::Code;

use crate::catalog::CatalogView;
use crate::collection::insert::check_document;
use crate::collection::scan::Found;
use crate::collection::write::CollectionWriter;
use crate::contention::{Outcome, Role, Scope};
use crate::database::Database;
use crate::error::Error;
use crate::reader::Reader;
use crate::version::conflict::{self, StoredConflict};
use crate::version::field_merge::{Prefer, merge_documents};
use crate::version::state::BranchState;
use crate::version::{Resolution, history};

impl Database {
    /// Resolves one conflict; answers how many are left.
    ///
    /// # Errors
    /// `NoSuchKey` if there is no such conflict; `IllegalOperation` if no merge waits; `BadValue`
    /// if the value has another `_id`; `BSONObjectTooLarge`; `DuplicateKey` if a unique index refuses the result.
    pub fn resolve_conflict(&self, id: &str, resolution: &Resolution) -> Result<u64, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        let engine = self.frond().engine();
        let scope = Scope::branch(name, branch);
        self.frond().transact(scope, Role::Writer, Durability::Synced, |transaction| {
            let conflicts = {
                let reader = Reader::within(engine, transaction);
                if crate::database::branch_ref(&reader, name, branch)?.is_none() {
                    return Err(history::no_branch(name, branch));
                }
                if BranchState::read(&reader, name, branch)?.merging.is_none() {
                    return Err(conflict::no_merge(branch));
                }
                conflict::list(&reader, name, branch, None)?
            };
            let Some(found) = conflicts.iter().find(|conflict| conflict.id() == id) else {
                let message = format!("no conflict {id} waits in {}", self.name());
                return Err(Error::invalid(Code::NoSuchKey, message));
            };
            transaction.validate(TreeId::SYSTEM, crate::system::merge_key(name, branch));
            let now = self.document_now(transaction, found)?;
            let resolved = resolve(found, now.as_ref(), resolution)?;
            self.write_resolved(transaction, branch, found, now, resolved)?;
            transaction.delete(TreeId::SYSTEM, found.key(name, branch))?;
            Ok(Outcome::Commit(conflicts.len() as u64 - 1))
        })
    }

    /// The document in conflict, as the working state has it.
    fn document_now(
        &self,
        transaction: &Transaction,
        conflict: &StoredConflict,
    ) -> Result<Option<DocumentBuf>, Error> {
        let reader = Reader::within(self.frond().engine(), transaction);
        let catalog = CatalogView::open(&reader, self)?;
        let Some(collection) = catalog.collection(&conflict.collection)? else {
            return Ok(None);
        };
        let value = reader.get(collection.documents, &conflict.id_key)?;
        value.map(|value| reader.document(&value)).transpose()
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
            (Some(document), Some(after)) => {
                writer.replace(&Found { id_key, document, large: None }, &after)
            }
            (Some(document), None) => writer.remove(&Found { id_key, document, large: None }),
            (None, Some(after)) => writer.insert(&after),
            (None, None) => Ok(()),
        }
    }
}

/// What the document in conflict is to be.
fn resolve(
    conflict: &StoredConflict,
    now: Option<&DocumentBuf>,
    resolution: &Resolution,
) -> Result<Option<DocumentBuf>, Error> {
    match resolution {
        Resolution::Ours => Ok(now.cloned()),
        Resolution::Theirs => Ok(take_theirs(conflict, now)),
        Resolution::Value(None) => Ok(None),
        Resolution::Value(Some(document)) => {
            let id = document.get("_id").map(key::of_value);
            if id.as_ref() != Some(&conflict.id_key) {
                let message = "the value must have the _id of the document in conflict";
                return Err(Error::invalid(Code::BadValue, message));
            }
            let no_id = || frond_doc::ObjectId([0; 12]); // Never asked for: there is one.
            let document = normalise::for_insert(document, no_id)?;
            check_document(document.view())?;
            Ok(Some(document))
        }
    }
}

fn take_theirs(conflict: &StoredConflict, now: Option<&DocumentBuf>) -> Option<DocumentBuf> {
    let [base, ours, theirs] = [&conflict.base, &conflict.ours, &conflict.theirs]
        .map(|side| side.as_ref().map(DocumentBuf::view));
    let left = merge_documents(base, ours, theirs, Prefer::Ours).document;
    let wanted = merge_documents(base, ours, theirs, Prefer::Theirs).document;
    let [left, now, wanted] =
        [left.as_ref(), now, wanted.as_ref()].map(|side| side.map(DocumentBuf::view));
    merge_documents(left, now, wanted, Prefer::Theirs).document
}

#[cfg(test)]
mod tests {
    use super::*;
    use frond_doc::document;

    #[test]
    fn theirs_comes_where_the_conflict_is_and_later_edits_stay() {
        let base = document! { "_id": 1_i32, "a": 1_i32, "b": 1_i32 };
        let ours = document! { "_id": 1_i32, "a": 2_i32, "b": 1_i32 };
        let theirs = document! { "_id": 1_i32, "a": 3_i32, "b": 4_i32 };
        let conflict = StoredConflict {
            collection: "things".to_owned(),
            id_key: key::of_value(frond_doc::Value::Int32(1)),
            paths: vec!["a".to_owned()],
            base: Some(base),
            ours: Some(ours),
            theirs: Some(theirs),
        };
        let now = document! { "_id": 1_i32, "a": 2_i32, "b": 4_i32, "c": 5_i32 };
        let expected = document! { "_id": 1_i32, "a": 3_i32, "b": 4_i32, "c": 5_i32 };
        assert_eq!(take_theirs(&conflict, Some(&now)), Some(expected));
        let other = document! { "_id": 2_i32 };
        assert!(resolve(&conflict, Some(&now), &Resolution::Value(Some(other))).is_err());
    }

    #[test]
    fn a_removed_document() {
        let document = document! { "_id": 1_i32, "a": 1_i32 };
        let changed = document! { "_id": 1_i32, "a": 2_i32 };
        let conflict = StoredConflict {
            collection: "things".to_owned(),
            id_key: bytes::Bytes::from_static(b"k"),
            paths: Vec::new(),
            base: Some(document),
            ours: Some(changed.clone()),
            theirs: None,
        };
        assert_eq!(take_theirs(&conflict, Some(&changed)), None);
    }
}
