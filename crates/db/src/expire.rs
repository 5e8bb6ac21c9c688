//! Removing documents that have expired, as TTL indexes say.
//!
//! A point of a time series also expires as the collection's own option says, some seconds after
//! its time.
//!
//! A document expires some seconds after the earliest date in the indexed field; what is no date
//! there never does, nor does a document that a partial index leaves out. Only the default branch
//! of a database is looked at: what is old on another branch is what that branch is about. While
//! the clock is doubted nothing expires ([`Frond::expiry_millis`]).
//!
//! Documents are removed in transactions of at most [`BATCH_COUNT_MAX`], like any others: a writer
//! that changes one meanwhile wins or loses as against another writer.

use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_engine::Durability;
use frond_query::Filter;

use crate::catalog::CollectionInfo;
use crate::catalog::collections::list_collections;
use crate::catalog::indexes::list_indexes;
use crate::collection::plan::Order;
use crate::collection::write::CollectionWriter;
use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::definition::{IndexSpec, clustered};
use crate::error::Error;
use crate::frond::Frond;
use crate::interrupt::Interrupt;
use crate::timeseries::Series;
use crate::transact::Outcome;

/// Documents that one transaction removes.
const BATCH_COUNT_MAX: usize = 500;

impl Frond {
    /// Removes the documents of all databases that have expired; answers how many. A collection
    /// that fails (a full disk, say) doesn't keep the others from it: the first error is given at
    /// the end.
    ///
    /// # Errors
    /// The first; `interrupt`'s at once.
    pub fn expire_documents(&self, interrupt: &Interrupt) -> Result<u64, Error> {
        let mut removed = 0;
        self.expire_counted(interrupt, &mut removed).map(|()| removed)
    }

    /// As [`Frond::expire_documents`]; adds to `removed` also what was removed before a failure.
    ///
    /// # Errors
    /// As [`Frond::expire_documents`].
    pub fn expire_counted(&self, interrupt: &Interrupt, removed: &mut u64) -> Result<(), Error> {
        let Some(now_millis) = self.expiry_millis() else { return Ok(()) };
        let mut failure = Ok(());
        for info in self.list_databases()? {
            interrupt.check()?;
            if self.check_used_here(&info.name).is_err() {
                // Another line has it, and removes what expires.
                continue;
            }
            let database = self.database(&info.name);
            let done = database.and_then(|database| {
                Expiry { database: &database, now_millis, interrupt }.run(removed)
            });
            failure = failure.and(done);
        }
        failure
    }
}

/// The removal of what has expired in a database.
struct Expiry<'a> {
    database: &'a Database,
    now_millis: i64,
    interrupt: &'a Interrupt,
}

impl Expiry<'_> {
    fn run(&self, removed: &mut u64) -> Result<(), Error> {
        for collection in list_collections(self.database)? {
            if collection.is_view() {
                continue;
            }
            for filter in self.filters(&collection)? {
                let filter = Filter::parse(filter.view())?;
                loop {
                    self.interrupt.check()?;
                    let count = self.remove_some(&collection.name, &filter)?;
                    *removed += count as u64;
                    if count < BATCH_COUNT_MAX {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// The filters that expired documents of a collection pass.
    fn filters(&self, collection: &CollectionInfo) -> Result<Vec<DocumentBuf>, Error> {
        let options = collection.options.view();
        let mut specs = list_indexes(self.database, &collection.name)?;
        // A clustered collection's documents may expire by their `_id`.
        let by_id = clustered::expires_after(options);
        specs.iter_mut().filter(|spec| spec.is_id()).for_each(|spec| {
            spec.expire_after_seconds = by_id;
        });
        let mut filters = Vec::new();
        for spec in specs {
            let Some(seconds) = spec.expire_after_seconds else { continue };
            filters.push(expired(&spec, self.now_millis, seconds));
        }
        if let (Some(series), Some(seconds)) = (Series::of(options), clustered::seconds_of(options))
        {
            let mut by_time = DocumentBuilder::new();
            by_time.append(&series.time, Value::Int32(1));
            let spec = IndexSpec::plain(series.time, by_time.build());
            filters.push(expired(&spec, self.now_millis, seconds));
        }
        Ok(filters)
    }

    fn remove_some(&self, collection: &str, filter: &Filter) -> Result<usize, Error> {
        let branch = self.database.writable_branch()?;
        let scope = Scope::collection(self.database.repository_name(), branch, collection);
        self.database.transact(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            transaction.give_back();
            let mut writer =
                CollectionWriter::open(transaction, self.database, branch, collection)?;
            let matching =
                writer.matching_or_damaged(filter, &Order::Any, None, Some(BATCH_COUNT_MAX))?;
            let count = matching.len();
            matching.into_iter().try_for_each(|row| writer.remove_matched(row))?;
            Ok(Outcome::commit_if(writer.changed(), count))
        })
    }
}

/// The filter that documents pass that have expired by `now_millis`.
fn expired(spec: &IndexSpec, now_millis: i64, seconds: i64) -> DocumentBuf {
    let latest = now_millis.saturating_sub(seconds.saturating_mul(1000));
    let path = spec.key.iter().next().map_or("_id", |(path, _)| path);
    let mut filter = DocumentBuilder::new();
    filter.begin_document(path).append("$lte", Value::DateTime(latest)).end();
    if let Some(partial) = &spec.partial {
        filter.begin_array("$and").push(Value::from(partial)).end();
    }
    filter.build()
}
