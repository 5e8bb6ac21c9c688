//! Restoring a collection or documents as another version has them: into the working state, HEAD
//! stays.
//!
//! A collection gets the version's trees whole, documents and indexes, which costs nothing however
//! large it is; a collection that the version doesn't have is dropped. Documents are written as any
//! other are: their indexes follow, and a unique one may refuse. Several are restored in one
//! transaction, and may exchange unique values.

use std::collections::HashSet;

use bytes::Bytes;
use frond_db::inside::{
    CatalogView, CollectionWriter, DocumentChange, Error, FetchedDocument, LatchMode, Outcome,
    Reader, Scope, refs,
};
use frond_doc::{DocumentBuf, ValueBuf, key};
use frond_engine::{Durability, Transaction};
use frond_query::Code;
use frond_tree::Tree;

use crate::adopt::Adoption;
use crate::history;
use crate::history::path_filter::PathFilter;
use crate::refs::reflog::{RefChange, RefWhy};
use crate::repository::Repository;
use crate::state::{self, BranchState};

/// The result of a restore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restored {
    /// It is as that version has it.
    Changed,
    /// It was so already.
    Unchanged,
    /// That version doesn't have it: it was removed.
    Removed,
}

impl Repository {
    /// Makes a collection of this branch what `from` (default HEAD) has; the change can be undone.
    ///
    /// # Errors
    /// `BadValue` if there is no such version; `NamespaceNotFound` if neither it nor this branch
    /// has the collection; `UserWritesBlocked` if this is a commit.
    pub fn restore_collection(
        &self,
        collection: &str,
        from: Option<&str>,
    ) -> Result<Restored, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        let engine = self.frond().engine();
        let store = engine.store();
        self.replace_working_state(branch, |transaction| {
            self.refuse_closed(transaction)?;
            let from = from.unwrap_or(history::HEAD);
            let source = {
                let reader = Reader::within(engine, transaction);
                if refs::repository(&reader, name)?.is_none() {
                    return Err(history::no_branch(name, branch));
                }
                self.catalog_of(&reader, from)?
            };
            let state = BranchState::validated(self.frond(), transaction, name, branch)?;
            state.refuse_while_merging("a restore")?;
            let before = state.working_catalog(engine, transaction.snapshot())?;
            let head = state.head_catalog(&**store)?;
            let wanted = state::catalog_entry(store, &source, collection)?;
            if wanted == state::catalog_entry(store, &before, collection)? {
                // A removed collection may be removed again; an unknown name is a mistake.
                if wanted.is_none() && state::catalog_entry(store, &head, collection)?.is_none() {
                    let message = format!(
                        "neither {branch} nor {from} has a versioned collection {collection}"
                    );
                    return Err(Error::invalid(Code::NamespaceNotFound, message));
                }
                return Ok(Outcome::Discard(Restored::Unchanged));
            }
            let after = state::with_entry(&**store, &before, collection, wanted.as_ref())?;
            state.adopt(engine, transaction, &Adoption { head, before, after })?;
            let why = format!("restore: collection {collection}");
            let why = RefWhy {
                left: Some(after),
                ..RefWhy::replacing(&why, self.frond().time_millis(), before)
            };
            let (from, to) = (state.head_id(), state.head_id());
            RefChange { from, to, why }.log(transaction, name, branch)?;
            let done = if wanted.is_some() { Restored::Changed } else { Restored::Removed };
            Ok(Outcome::Commit(done))
        })
    }

    /// Makes a document of this branch what `from` (default HEAD) has.
    ///
    /// # Errors
    /// As [`Repository::restore_documents`].
    pub fn restore_document(
        &self,
        collection: &str,
        id: &ValueBuf,
        from: Option<&str>,
    ) -> Result<Restored, Error> {
        let restored = self.restore_documents(collection, std::slice::from_ref(id), from)?;
        Ok(restored[0])
    }

    /// Makes documents of this branch what `from` (default HEAD) has, all of them or none. They may
    /// exchange values of unique indexes.
    ///
    /// # Errors
    /// As [`Repository::restore_collection`]; `NoSuchKey` if neither this branch nor that version
    /// has one of them; `DuplicateKey` if a unique index refuses one.
    pub fn restore_documents(
        &self,
        collection: &str,
        ids: &[ValueBuf],
        from: Option<&str>,
    ) -> Result<Vec<Restored>, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        frond_db::inside::name::check_collection(name, collection)?;
        let from = from.unwrap_or(history::HEAD);
        let scope = Scope::collection(name, branch, collection);
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            self.refuse_closed(transaction)?;
            // Both sides are looked at in the transaction: neither has what was erased before.
            let source = {
                let reader = Reader::within(self.frond().engine(), transaction);
                if refs::repository(&reader, name)?.is_none() {
                    return Err(history::no_branch(name, branch));
                }
                self.catalog_of(&reader, from)?
            };
            let mut changes = Vec::with_capacity(ids.len());
            for id in ids {
                self.interrupt().check()?;
                changes.push(self.change_to(transaction, collection, id, &source)?);
            }
            let restored =
                changes.iter().map(Change::restored).collect::<Result<Vec<_>, Error>>()?;
            let mut seen = HashSet::new();
            changes.retain(|change| change.is_one() && seen.insert(change.id_key.clone()));
            if changes.is_empty() {
                return Ok(Outcome::Discard(restored));
            }
            let savepoint = transaction.savepoint();
            let writer = CollectionWriter::open(transaction, self, branch, collection)?;
            match write_each(writer, &changes) {
                Err(error) if error.code == Code::DuplicateKey && 1 < changes.len() => {
                    transaction.rollback_to(savepoint);
                    let writer = CollectionWriter::open(transaction, self, branch, collection)?;
                    write_anew(writer, &changes)?;
                }
                written => written?,
            }
            Ok(Outcome::Commit(restored))
        })
    }

    /// A document as the transaction finds it, and as the catalog `source` has it.
    fn change_to(
        &self,
        transaction: &Transaction,
        collection: &str,
        id: &ValueBuf,
        source: &Tree,
    ) -> Result<Change, Error> {
        let store = self.frond().engine().store();
        let wanted = PathFilter::new(store, collection, Some(id)).find(source)?;
        let wanted = wanted.document(&**store)?;
        let id_key = key::of_id(id.as_value());
        let now = self.document_now(transaction, collection, &id_key)?;
        Ok(Change { id_key, now, wanted })
    }

    /// The document as a transaction on this branch finds it.
    pub(crate) fn document_now(
        &self,
        transaction: &Transaction,
        collection: &str,
        id_key: &[u8],
    ) -> Result<Option<DocumentBuf>, Error> {
        let reader = Reader::within(self.frond().engine(), transaction);
        let Some(found) = CatalogView::open(&reader, self)?.collection(collection)? else {
            return Ok(None);
        };
        let value = reader.get(found.documents, id_key)?;
        value.map(|value| reader.document(&value)).transpose()
    }
}

/// What becomes of a document.
struct Change {
    id_key: Bytes,
    now: Option<DocumentBuf>,
    wanted: Option<DocumentBuf>,
}

impl Change {
    fn is_one(&self) -> bool {
        self.now != self.wanted
    }

    fn restored(&self) -> Result<Restored, Error> {
        match (&self.now, &self.wanted) {
            (None, None) => {
                let message = "neither this branch nor that version has the document";
                Err(Error::invalid(Code::NoSuchKey, message))
            }
            (_, None) => Ok(Restored::Removed),
            _ if self.is_one() => Ok(Restored::Changed),
            _ => Ok(Restored::Unchanged),
        }
    }

    fn found(&self) -> Option<FetchedDocument> {
        let document = self.now.clone()?;
        Some(FetchedDocument { id_key: self.id_key.clone(), document, large: None })
    }
}

/// Writes each document in the place of what is there, those that go first: their unique values are
/// free then.
fn write_each(mut writer: CollectionWriter<'_>, changes: &[Change]) -> Result<(), Error> {
    let (stay, go): (Vec<_>, Vec<_>) = changes.iter().partition(|it| it.wanted.is_some());
    for change in go.into_iter().chain(stay) {
        match (change.found(), &change.wanted) {
            (Some(found), Some(wanted)) => {
                writer.replace(&found, wanted, DocumentChange::Changed)?;
            }
            (Some(found), None) => writer.remove(&found)?,
            (None, Some(wanted)) => writer.insert(wanted)?,
            (None, None) => {}
        }
    }
    Ok(())
}

/// Removes all documents before it writes any: they may exchange values of unique indexes, and then
/// there is no order in which each could be written alone.
fn write_anew(mut writer: CollectionWriter<'_>, changes: &[Change]) -> Result<(), Error> {
    for found in changes.iter().filter_map(Change::found) {
        writer.remove(&found)?;
    }
    changes.iter().filter_map(|change| change.wanted.as_ref()).try_for_each(|it| writer.insert(it))
}
