//! The statements of an insert, update or delete: one after the other, in transactions of bounded
//! size.
//!
//! 1. Statements are prepared (normalised, parsed) before the transaction, which may run more than
//!    once: the `_id`s that are made stay the same.
//! 2. A statement that concerns many documents, where it belongs to no transaction of several
//!    requests, ends the transaction before it and is run in parts ([`crate::collection::parts`]).
//! 3. A statement that fails is reported; with `ordered` it is the last one.
//! 4. Where a request takes several transactions, they share a sync ([`Deferred`]): only its end
//!    waits. A statement that is run in parts waits before, since it looks for what is visible.
//! 5. Of a write that may be sent again, what was done the first time is answered and not done
//!    again ([`crate::retry`]); what is done now is remembered in the same transaction.

use std::collections::VecDeque;
use std::sync::Arc;

use frond_doc::ValueBuf;
use frond_engine::{Durability, Transaction};

use crate::collection::write::CollectionWriter;
use crate::collection::{StatementCounts, WriteError};
use crate::contention::Scope;
use crate::database::Database;
use crate::error::Error;
use crate::name;
use crate::request_profile::{Statement, StatementOutcome};
use crate::retry::{Memory, StatementDone};
use crate::schema::CatalogEpoch;
use crate::transact::{Deferred, Outcome};

/// A transaction of a large request holds at most so many documents or statements.
pub(crate) const BATCH_COUNT_MAX: usize = 1_000;
/// One that has so many bytes to write takes no more statements.
const BATCH_BYTES_MAX: u64 = 8 << 20;

/// The options of running statements.
#[derive(Clone, Copy, Debug)]
pub struct BatchOptions {
    /// Stop at the first that fails.
    pub ordered: bool,
    /// Says when a transaction is acknowledged.
    pub durability: Durability,
}

/// The results of statements.
#[derive(Default)]
pub struct BatchReport {
    /// Documents that were inserted, matched or deleted; upserted ones aren't counted.
    pub count: u64,
    /// Documents that updates changed.
    pub modified: u64,
    /// Position of the statement and `_id` of each document that was upserted.
    pub upserted: Vec<(usize, ValueBuf)>,
    /// The errors.
    pub errors: Vec<WriteError>,
    /// The names of the statements that were done before.
    pub retried: Vec<i32>,
    /// The counts of each statement that succeeded.
    pub each: Vec<StatementCounts>,
}

/// The outcome of a statement.
pub(crate) enum StatementRun {
    Done(StatementDone),
    /// It concerns more documents than a transaction takes: what it wrote is undone, and it is run
    /// in parts.
    Many,
}

/// The results of a transaction.
#[derive(Default)]
struct Batch {
    report: BatchReport,
    /// The number of statements that were run.
    count: usize,
    /// Whether the next one is to be run in parts.
    is_many: bool,
}

impl Batch {
    /// Whether a client is shown the same by both; errors aren't compared.
    fn is_same(&self, other: &Batch) -> bool {
        let BatchReport { count, modified, upserted, errors, retried, each } = &self.report;
        let others = &other.report;
        errors.is_empty()
            && others.errors.is_empty()
            && (self.count, self.is_many) == (other.count, other.is_many)
            && (*count, *modified) == (others.count, others.modified)
            && (upserted, retried, each) == (&others.upserted, &others.retried, &others.each)
    }
}

impl BatchReport {
    fn add(&mut self, position: usize, done: &StatementDone) {
        self.count += done.count;
        self.modified += done.modified;
        self.upserted.extend(done.upserted.clone().map(|id| (position, id)));
        let StatementDone { count, modified, .. } = *done;
        self.each.push(StatementCounts { position, count, modified });
    }

    fn append(&mut self, mut more: BatchReport) {
        self.count += more.count;
        self.modified += more.modified;
        self.upserted.append(&mut more.upserted);
        self.errors.append(&mut more.errors);
        self.retried.append(&mut more.retried);
        self.each.append(&mut more.each);
    }
}

/// The statements of one request on a collection.
#[derive(Clone, Copy)]
pub struct Statements<'a> {
    /// The database of the collection.
    pub database: &'a Database,
    /// Its name.
    pub collection: &'a str,
    /// The options of running them.
    pub options: BatchOptions,
}

impl Statements<'_> {
    /// Runs `count` statements, each of which concerns one document. `prepare`
    /// makes those of the transaction that begins with the statement at a position, one at least;
    /// `run` runs one.
    ///
    /// # Errors
    /// Errors of the request as a whole; those of a statement are in the report.
    pub fn run<S>(
        &self,
        count: usize,
        prepare: impl Fn(usize) -> Vec<Result<S, Error>>,
        run: impl Fn(&mut CollectionWriter<'_>, &S) -> Result<StatementDone, Error>,
    ) -> Result<BatchReport, Error> {
        let run =
            |writer: &mut CollectionWriter<'_>, one: &S| run(writer, one).map(StatementRun::Done);
        let never = |_: &S| Err(Error::internal("a statement on one document has no parts"));
        self.run_on_many(count, prepare, run, never)
    }

    /// As [`Statements::run`]; `run_in_parts` runs a statement that concerns many documents.
    pub(crate) fn run_on_many<S>(
        &self,
        count: usize,
        prepare: impl Fn(usize) -> Vec<Result<S, Error>>,
        run: impl Fn(&mut CollectionWriter<'_>, &S) -> Result<StatementRun, Error>,
        run_in_parts: impl Fn(&S) -> Result<StatementDone, Error>,
    ) -> Result<BatchReport, Error> {
        let deferred = self.database.deferred();
        let own = deferred.is_none().then(Arc::<Deferred>::default);
        let deferring = own.as_ref().map(|own| self.database.deferring(own));
        let deferring = deferring.as_ref().unwrap_or(self.database);
        let report = self.run_batches(deferring, count, prepare, run, run_in_parts);
        match own {
            Some(own) => own.wait(self.database.interrupt()).and(report),
            None => report,
        }
    }

    /// As [`Statements::run_on_many`]; where there are several transactions they are `deferring`'s.
    fn run_batches<S>(
        &self,
        deferring: &Database,
        count: usize,
        prepare: impl Fn(usize) -> Vec<Result<S, Error>>,
        run: impl Fn(&mut CollectionWriter<'_>, &S) -> Result<StatementRun, Error>,
        run_in_parts: impl Fn(&S) -> Result<StatementDone, Error>,
    ) -> Result<BatchReport, Error> {
        let Statements { collection, options, .. } = *self;
        let mut database = self.database;
        let branch = database.writable_branch()?;
        name::check_collection(database.repository_name(), collection)?;
        let scope = Scope::collection(database.repository_name(), branch, collection);
        let mut report = BatchReport::default();
        let mut begun = 0;
        let mut batch = VecDeque::new();
        while begun < count && (!options.ordered || report.errors.is_empty()) {
            if batch.is_empty() {
                batch = VecDeque::from(prepare(begun));
                assert!(!batch.is_empty(), "a transaction has a statement");
            }
            if begun + batch.len() < count {
                database = deferring;
            }
            let body = |transaction: &mut Transaction, moment: Option<CatalogEpoch>| {
                let positions = begun..begun + batch.len();
                let memory = database
                    .retry()
                    .map(|write| write.memory(database.frond(), transaction, positions));
                let mut memory = memory.transpose()?;
                let mut writer =
                    CollectionWriter::open_at(moment, transaction, database, branch, collection)?;
                let statements = (begun, &batch);
                let done = self.run_batch(&mut writer, &mut memory, statements, &run)?;
                let changed = writer.changed();
                if let Some(memory) = &memory {
                    memory.store(transaction)?;
                }
                Ok(Outcome::commit_if(changed, done))
            };
            let done =
                database.transact_noted(scope, options.durability, Some(Batch::is_same), body)?;
            assert!(0 < done.count || done.is_many, "a transaction does a statement");
            assert!(done.count <= batch.len(), "a transaction does no statement but its own");
            report.append(done.report);
            begun += done.count;
            batch.drain(..done.count);
            if done.is_many
                && let Some(Ok(statement)) = batch.pop_front()
            {
                if let Some(deferred) = database.deferred() {
                    deferred.wait(database.interrupt())?;
                }
                run_alone(begun, &statement, &mut report, &run_in_parts)?;
                begun += 1;
            }
        }
        Ok(report)
    }

    /// Runs statements, the first of which has this position, until the transaction is full, one
    /// is to be run in parts, or, in order, one failed.
    fn run_batch<S>(
        &self,
        writer: &mut CollectionWriter<'_>,
        memory: &mut Option<Memory<'_>>,
        (begun, statements): (usize, &VecDeque<Result<S, Error>>),
        run: impl Fn(&mut CollectionWriter<'_>, &S) -> Result<StatementRun, Error>,
    ) -> Result<Batch, Error> {
        let mut done = Batch::default();
        for (position, statement) in statements.iter().enumerate() {
            let is_full = BATCH_BYTES_MAX <= writer.bytes();
            if is_full && 0 < position && self.database.transaction().is_none() {
                break;
            }
            let position = begun + position;
            let report = &mut done.report;
            done.is_many =
                !self.run_statement(writer, memory, report, position, statement, &run)?;
            if done.is_many {
                break;
            }
            done.count += 1;
            if self.options.ordered && !done.report.errors.is_empty() {
                break;
            }
        }
        Ok(done)
    }

    /// Returns whether it was run: `false` if it is to be run in parts.
    fn run_statement<S>(
        &self,
        writer: &mut CollectionWriter<'_>,
        memory: &mut Option<Memory<'_>>,
        report: &mut BatchReport,
        position: usize,
        statement: &Result<S, Error>,
        run: impl Fn(&mut CollectionWriter<'_>, &S) -> Result<StatementRun, Error>,
    ) -> Result<bool, Error> {
        let id = self.database.retry().map(|write| write.statements.at(position));
        if let (Some(memory), Some(id)) = (&memory, id)
            && let Some(done) = memory.statement(id)
        {
            report.add(position, done);
            report.retried.push(id);
            return Ok(true);
        }
        let savepoint = writer.savepoint();
        let writes_before = writer.writes();
        let noted = Statement::begin();
        let done = match statement {
            Ok(statement) => run(writer, statement),
            Err(error) => Err(error.clone()),
        };
        match (noted, &done) {
            (Some(noted), Ok(StatementRun::Done(done))) => {
                noted.end(position, || outcome_of(Ok(done)))
            }
            (Some(noted), Ok(StatementRun::Many)) => noted.abandon(),
            (Some(noted), Err(error)) => noted.end(position, || outcome_of(Err(error))),
            (None, _) => {}
        }
        match done {
            Ok(StatementRun::Many) => {
                writer.undo(savepoint);
                Ok(false)
            }
            Ok(StatementRun::Done(done)) => {
                report.add(position, &done);
                if let (Some(memory), Some(id)) = (memory, id)
                    && writes_before < writer.writes()
                {
                    memory.add(id, &done);
                }
                Ok(true)
            }
            Err(error) => {
                report.errors.push(WriteError::of_document(position, error)?);
                Ok(true)
            }
        }
    }
}

/// Runs the statement at `position` in parts, and reports what it did.
fn run_alone<S>(
    position: usize,
    statement: &S,
    report: &mut BatchReport,
    run_in_parts: impl Fn(&S) -> Result<StatementDone, Error>,
) -> Result<(), Error> {
    let noted = Statement::begin();
    let done = run_in_parts(statement);
    if let Some(noted) = noted {
        noted.end(position, || outcome_of(done.as_ref()));
    }
    match done {
        Ok(done) => report.add(position, &done),
        Err(error) => report.errors.push(WriteError::of_document(position, error)?),
    }
    Ok(())
}

fn outcome_of(done: Result<&StatementDone, &Error>) -> Result<StatementOutcome, Error> {
    let done = done.map_err(Error::clone)?;
    let StatementDone { count, modified, .. } = *done;
    Ok(StatementOutcome { count, modified, has_upserted: done.upserted.is_some() })
}
