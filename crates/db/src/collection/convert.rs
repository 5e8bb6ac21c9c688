//! `convertToCapped` and `cloneCollectionAsCapped`: a capped collection of another's last
//! documents.
//!
//! Indexes are not taken over, as in MongoDB; the collation and the validator are. The documents
//! are read backwards as long as they fit the size, so that the copy costs what stays. It is one
//! transaction.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};
use frond_engine::{Durability, Transaction};
use frond_query::Code;
use frond_tree::Direction;

use crate::catalog::{adopt, collections};
use crate::collection::scan::all_documents;
use crate::collection::write::CollectionWriter;
use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::definition::{capped, view};
use crate::error::Error;
use crate::event::EventKind;
use crate::name;
use crate::reader::Reader;
use crate::schema::Collection;
use crate::transact::Outcome;

/// The options of a collection that becomes capped: how it compares strings and what its documents
/// must be stays as it was.
fn with_limits(options: Document<'_>, limits: Document<'_>) -> Result<DocumentBuf, Error> {
    const KEPT: [&str; 4] = ["collation", "validator", "validationLevel", "validationAction"];
    let mut all = DocumentBuilder::new();
    for (option, value) in limits.iter() {
        all.append(option, value);
    }
    for (option, value) in options.iter().filter(|(option, _)| KEPT.contains(option)) {
        all.append(option, value);
    }
    collections::kept_options(all.build().view())
}

impl Database {
    /// Makes the collection `to` a capped one of `size` bytes with the last documents of `from`;
    /// `to` may be `from`.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26); `NamespaceExists` (48) if `to` is there and another.
    pub fn copy_capped(&self, from: &str, to: &str, size: i64) -> Result<(), Error> {
        let branch = self.writable_branch()?;
        name::check_collection(self.repository_name(), to)?;
        let options = document! { "capped": true, "size": size };
        capped::check(options.view())?;
        let scope = Scope::collection(self.repository_name(), branch, from);
        self.transact(scope, LatchMode::Replacer, Durability::Synced, |transaction| {
            let Some(found) = adopt::find(transaction, self, branch, from)? else {
                let message = format!("source collection {} does not exist", self.namespace(from));
                return Err(Error::invalid(Code::NamespaceNotFound, message));
            };
            view::refuse(found.options.view(), &self.namespace(from))?;
            self.refuse_series(&found, from)?;
            let options = with_limits(found.options.view(), options.view())?;
            let documents = self.last_of(transaction, &found, capped::rounded(size))?;
            if from == to {
                self.versions()?.remember_collection(self, transaction, branch, from)?;
                collections::drop_trees(transaction, &found)?;
                self.tell_of(transaction, branch, from, EventKind::Drop, Document::empty());
            } else if adopt::find(transaction, self, branch, to)?.is_some() {
                let message = format!("target collection {} already exists", self.namespace(to));
                return Err(Error::invalid(Code::NamespaceExists, message));
            }
            adopt::create(transaction, self, branch, to, options)?;
            // They were there before: what they must be is asked of what is written from now on.
            let unchecked = self.without_validation();
            let mut writer = CollectionWriter::open(transaction, &unchecked, branch, to)?;
            for document in documents.iter().rev() {
                writer.insert(document)?;
            }
            Ok(Outcome::Commit(()))
        })
    }

    /// The last documents of a collection in its natural order, backwards, as far as they fit.
    fn last_of(
        &self,
        transaction: &Transaction,
        collection: &Collection,
        size: i64,
    ) -> Result<Vec<DocumentBuf>, Error> {
        let reader = Reader::within(self.frond().engine(), transaction);
        let (mut documents, mut bytes) = (Vec::new(), 0);
        for document in all_documents(&reader, collection, Direction::Descending) {
            let document = document?;
            bytes += i64::try_from(document.as_bytes().len()).unwrap_or(i64::MAX);
            if bytes > size {
                break;
            }
            documents.push(document);
        }
        Ok(documents)
    }

    /// Changes the limits of a capped collection. What is too much goes with the next insertion.
    ///
    /// # Errors
    /// `InvalidOptions` (72) if the collection isn't capped.
    pub fn change_limits(
        &self,
        collection: &str,
        size: Option<i64>,
        max: Option<i64>,
    ) -> Result<(), Error> {
        let mut changes = DocumentBuilder::new();
        if let Some(size) = size {
            changes.append("size", Value::Int64(capped::rounded(size)));
        }
        if let Some(max) = max {
            changes.append("max", Value::Int64(max));
        }
        self.change_collection(collection, changes.build().view())
    }
}
