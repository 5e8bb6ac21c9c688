//! Restoring a collection or documents as another version has them: into the working state, HEAD
//! stays.
//!
//! A collection gets the version's trees whole, documents and indexes, which costs nothing however
//! large it is; a collection that the version doesn't have is dropped. A document is written as any
//! other is: its indexes follow, and a unique one may refuse.

use frond_db::inside::{
    CatalogView, CollectionWriter, DocumentChange, Error, FetchedDocument, LatchMode, Outcome,
    Reader, Scope, refs,
};
use frond_doc::{DocumentBuf, ValueBuf, key};
use frond_engine::{Durability, Transaction};
use frond_query::Code;

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
    /// As [`Repository::restore_collection`]; `DuplicateKey` if a unique index refuses the
    /// document.
    pub fn restore_document(
        &self,
        collection: &str,
        id: &ValueBuf,
        from: Option<&str>,
    ) -> Result<Restored, Error> {
        let branch = self.writable_branch()?;
        let name = self.repository_name();
        frond_db::inside::name::check_collection(name, collection)?;
        let wanted = self.document_at(branch, collection, id, from.unwrap_or(history::HEAD))?;
        let id_key = key::of_id(id.as_value());
        let scope = Scope::collection(name, branch, collection);
        self.transact_alone(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            self.refuse_closed(transaction)?;
            let now = self.document_now(transaction, collection, &id_key)?;
            if now == wanted && now.is_some() {
                return Ok(Outcome::Discard(Restored::Unchanged));
            }
            let mut writer = CollectionWriter::open(transaction, self, branch, collection)?;
            let id_key = id_key.clone();
            let done = match (now, &wanted) {
                (Some(document), Some(after)) => {
                    writer.replace(
                        &FetchedDocument { id_key, document, large: None },
                        after,
                        DocumentChange::Changed,
                    )?;
                    Restored::Changed
                }
                (Some(document), None) => {
                    writer.remove(&FetchedDocument { id_key, document, large: None })?;
                    Restored::Removed
                }
                (None, Some(after)) => {
                    writer.insert(after)?;
                    Restored::Changed
                }
                (None, None) => {
                    let message = "neither this branch nor that version has the document";
                    return Err(Error::invalid(Code::NoSuchKey, message));
                }
            };
            Ok(Outcome::Commit(done))
        })
    }

    /// The document as the version `from` has it.
    fn document_at(
        &self,
        branch: &str,
        collection: &str,
        id: &ValueBuf,
        from: &str,
    ) -> Result<Option<DocumentBuf>, Error> {
        let name = self.repository_name();
        let reader = self.reader();
        if refs::repository(&reader, name)?.is_none() {
            return Err(history::no_branch(name, branch));
        }
        let source = self.catalog_of(&reader, from)?;
        let store = reader.store();
        PathFilter::new(store, collection, Some(id)).find(&source)?.document(&**store)
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
