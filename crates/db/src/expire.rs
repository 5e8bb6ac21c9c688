//! Removing documents that have expired, as TTL indexes say.
//!
//! A document expires some seconds after the earliest date in the indexed field; what is no date there
//! never does, nor does a document that a partial index leaves out. Only the default branch of a database
//! is looked at: what is old on another branch is what that branch is about.
//!
//! Documents are removed in transactions of at most [`BATCH_COUNT_MAX`], like any others: a writer that
//! changes one meanwhile wins or loses as against another writer.

use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_engine::Durability;
use frond_query::Filter;

use crate::catalog::{IndexSpec, clustered};
use crate::collection::Interrupt;
use crate::collection::plan::Order;
use crate::collection::write::CollectionWriter;
use crate::contention::{Outcome, Role, Scope};
use crate::database::Database;
use crate::error::Error;
use crate::frond::Frond;

/// Documents that one transaction removes.
const BATCH_COUNT_MAX: usize = 500;

impl Frond {
    /// Removes the documents of all databases that have expired; answers how many. A collection that
    /// fails (a full disk, say) doesn't keep the others from it: the first error is given at the end.
    ///
    /// # Errors
    /// The first; `interrupt`'s at once.
    pub fn expire_documents(&self, interrupt: &Interrupt) -> Result<u64, Error> {
        let mut removed = 0;
        let mut failure = Ok(());
        for info in self.list_databases()? {
            interrupt.check()?;
            match self.database(&info.name).and_then(|database| database.expire_all(interrupt)) {
                Ok(count) => removed += count,
                Err(error) => failure = failure.and(Err(error)),
            }
        }
        failure.map(|()| removed)
    }
}

impl Database {
    fn expire_all(&self, interrupt: &Interrupt) -> Result<u64, Error> {
        let mut removed = 0;
        for collection in self.list_collections()? {
            if collection.is_view() {
                continue;
            }
            let mut specs = self.list_indexes(&collection.name)?;
            // A clustered collection's documents may expire by their `_id`.
            let by_id = clustered::expires_after(collection.options.view());
            specs.iter_mut().filter(|spec| spec.is_id()).for_each(|spec| {
                spec.expire_after_seconds = by_id;
            });
            for spec in specs {
                let Some(seconds) = spec.expire_after_seconds else { continue };
                let filter = Filter::parse(self.expired(&spec, seconds).view())?;
                loop {
                    interrupt.check()?;
                    let count = self.remove_some(&collection.name, &filter)?;
                    removed += count as u64;
                    if count < BATCH_COUNT_MAX {
                        break;
                    }
                }
            }
        }
        Ok(removed)
    }

    /// The filter that expired documents pass.
    fn expired(&self, spec: &IndexSpec, seconds: i64) -> DocumentBuf {
        let latest = self.frond().now_millis().saturating_sub(seconds.saturating_mul(1000));
        let path = spec.key.iter().next().map_or("_id", |(path, _)| path);
        let mut filter = DocumentBuilder::new();
        filter.begin_document(path).append("$lte", Value::DateTime(latest)).end();
        if let Some(partial) = &spec.partial {
            filter.begin_array("$and").push(Value::from(partial)).end();
        }
        filter.build()
    }

    fn remove_some(&self, collection: &str, filter: &Filter) -> Result<usize, Error> {
        let branch = self.writable_branch()?;
        let scope = Scope::collection(self.repository_name(), branch, collection);
        self.transact(scope, Role::Writer, Durability::Synced, |transaction| {
            let mut writer = CollectionWriter::open(transaction, self, branch, collection)?;
            let found = writer.matching(filter, &Order::Any, None, Some(BATCH_COUNT_MAX))?;
            for document in &found {
                writer.remove(document)?;
            }
            Ok(Outcome::commit_if(writer.changed(), found.len()))
        })
    }
}
