//! Making, dropping and listing indexes.
//!
//! 1. *Prepare*: the indexes are built, and caught up with writers, while these go on
//!    ([`Prepared`]).
//! 2. *Publish*, in one transaction with the collection's latch closed: what was written since the
//!    last round is filed, and the working entry names the indexes. The transaction wants the
//!    documents unchanged until it commits.
//! 3. If more was written than writers should wait for, the latch opens again and 1 goes on.
//! 4. A transaction of several requests that has written to the collection would lose to the new
//!    definition: the build waits for its end, for a while ([`WriterWait`]).
//!
//! So an index is never seen unfinished, a version commit has it whole or not at all, and a build
//! that is killed or crashes leaves nothing: until it is published no other transaction knows it.

use std::time::{Duration, Instant};

use frond_doc::{DocumentBuf, Value};
use frond_engine::{Durability, Transaction};
use frond_query::{Code, Collation, text};
use frond_store::io::{pause, steady_now};
use frond_tree::{Bounds, Direction, Tree};

use crate::catalog::prepared::{Prepared, in_collection, refuse_other_id_collation};
use crate::catalog::record::record_event;
use crate::catalog::{CatalogView, adopt, record};
use crate::contention::{LatchMode, Scope};
use crate::database::Database;
use crate::definition::{IndexSpec, clustered, view};
use crate::error::Error;
use crate::event::EventKind;
use crate::interrupt::Interrupt;
use crate::name;
use crate::schema::{
    COLLECTION_SCANS, Collection, CollectionScans, Index, TAILABLE_SCANS, TreeRef,
};
use crate::system::{LiveCollection, LiveIndex, WorkingEntry};
use crate::transact::Outcome;
use crate::transaction::not_in_transaction;

/// Indexes of a collection at most, `_id`'s counted.
pub const INDEXES_MAX: usize = 64;

/// The answer of `createIndexes`.
#[derive(Clone, Copy, Debug)]
pub struct IndexesCreated {
    /// Indexes before, `_id` counted.
    pub before: u32,
    /// Indexes after.
    pub after: u32,
    /// Whether the collection was made by this.
    pub created_collection: bool,
}

/// The outcome of an attempt to publish.
enum Published {
    Done(IndexesCreated),
    /// Too much was written since the last round.
    Behind,
    /// A transaction that may have written to the collection is open.
    Later,
}

/// The time that a build waits for transactions of several requests that have written to its
/// collection; new ones begin all the time, so after that they lose.
#[derive(Default)]
struct WriterWait {
    begun: Option<Instant>,
}

/// The wait: longer than most transactions take; one may take a minute.
const WRITER_WAIT_MAX: Duration = Duration::from_secs(5);
/// The interval of checks whether they have ended.
const WRITER_WAIT_STEP: Duration = Duration::from_millis(2);

impl WriterWait {
    fn is_over(&self) -> bool {
        self.begun.is_some_and(|begun| begun.elapsed() >= WRITER_WAIT_MAX)
    }

    fn wait(&mut self) {
        self.begun.get_or_insert_with(steady_now);
        pause(WRITER_WAIT_STEP);
    }
}

/// Makes indexes, all or none, filled from the documents that are there.
pub(crate) fn create_indexes(
    database: &Database,
    collection: &str,
    specs: &[IndexSpec],
) -> Result<IndexesCreated, Error> {
    create_indexes_unless(database, collection, specs, &Interrupt::default())
}

/// As [`Database::create_indexes`]; `interrupt` may stop it.
pub(crate) fn create_indexes_unless(
    database: &Database,
    collection: &str,
    specs: &[IndexSpec],
    interrupt: &Interrupt,
) -> Result<IndexesCreated, Error> {
    let branch = database.writable_branch()?;
    name::check_collection(database.repository_name(), collection)?;
    for spec in specs {
        spec.shape()?;
    }
    let scope = Scope::collection(database.repository_name(), branch, collection);
    if database.transaction().is_some() {
        return database.transact(scope, LatchMode::Writer, Durability::Synced, |transaction| {
            create_within(database, transaction, branch, collection, specs)
        });
    }
    // Nothing refers yet to what is built: a collection of garbage mustn't take it.
    let _session = database.frond().engine().store().session();
    let contention = database.frond().contention();
    let mut throttle = contention.throttle(scope);
    let mut writer_wait = WriterWait::default();
    let mut prepared = None;
    loop {
        interrupt.check()?;
        let of = (database, collection);
        prepared = Prepared::caught_up(of, specs, prepared, &mut throttle, interrupt)?;
        if prepared.is_some() && contention.has_open_writers(scope) && !writer_wait.is_over() {
            // Not with the latch closed, and writers waiting at it each time.
            writer_wait.wait();
            continue;
        }
        let mode = if prepared.is_some() { LatchMode::Finisher } else { LatchMode::Replacer };
        let published = database.transact(scope, mode, Durability::Synced, |transaction| {
            if prepared.is_some() && contention.has_open_writers(scope) && !writer_wait.is_over() {
                return Ok(Outcome::Discard(Published::Later));
            }
            publish(database, transaction, branch, collection, specs, &mut prepared)
        })?;
        match published {
            Published::Done(answer) => return Ok(answer),
            Published::Behind => throttle.tighten(),
            Published::Later => writer_wait.wait(),
        }
    }
}

/// Publishes indexes that were prepared; makes the collection if there is none.
fn publish(
    database: &Database,
    transaction: &mut Transaction,
    branch: &str,
    name: &str,
    specs: &[IndexSpec],
    prepared: &mut Option<Prepared<'_>>,
) -> Result<Outcome<Published>, Error> {
    let Some(found) = adopt::find(transaction, database, branch, name)? else {
        let answer = create_with(database, transaction, branch, name, specs)?;
        return Ok(Outcome::Commit(Published::Done(answer)));
    };
    view::refuse(found.options.view(), &database.namespace(name))?;
    let wanted = missing_indexes(&found.indexes, &in_collection(specs, &found)?)?;
    let answer = created(found.secondary_indexes().count(), wanted.len(), false);
    if wanted.is_empty() {
        return Ok(Outcome::Discard(Published::Done(answer)));
    }
    let snapshot = transaction.snapshot().clone();
    let Some(prepared) = prepared.as_mut().filter(|prepared| prepared.is_of(&found, &wanted))
    else {
        return Ok(Outcome::Discard(Published::Behind));
    };
    if !prepared.last_round(&snapshot, found.documents)? {
        return Ok(Outcome::Discard(Published::Behind));
    }
    assert!(prepared.is_durable(), "an index is durable before a transaction names it");
    let mut live = adopt::adopt(transaction, database, branch, name, &found)?;
    // A transaction that writes a document after this snapshot and before the commit doesn't
    // know the indexes.
    transaction.validate_tree(live.documents);
    let of = (branch, name, &live.uuid);
    record_index_event(database, transaction, of, EventKind::CreateIndexes, wanted.iter());
    for spec in wanted {
        let growing = prepared.index(&spec).expect("all that is wanted was prepared");
        let id = database.frond().engine().reserve_tree_id();
        transaction.set_synced_base(id, growing.tree)?;
        for (key, value) in &growing.over {
            match value {
                Some(value) => transaction.put(id, key.clone(), value.clone())?,
                None => transaction.delete(id, key.clone())?,
            }
        }
        live.indexes.push(LiveIndex { spec, tree: id });
    }
    assert!(live.indexes.len() <= INDEXES_MAX, "too many are refused before they are built");
    adopt::put_entry(transaction, database, branch, name, &WorkingEntry::Live(live))?;
    Ok(Outcome::Commit(Published::Done(answer)))
}

/// Makes indexes in a transaction of several requests, of a collection that it has made itself.
fn create_within(
    database: &Database,
    transaction: &mut Transaction,
    branch: &str,
    name: &str,
    specs: &[IndexSpec],
) -> Result<Outcome<IndexesCreated>, Error> {
    let Some(found) = adopt::find(transaction, database, branch, name)? else {
        return Ok(Outcome::Commit(create_with(database, transaction, branch, name, specs)?));
    };
    view::refuse(found.options.view(), &database.namespace(name))?;
    check_own_and_empty(transaction, &found)?;
    let wanted = missing_indexes(&found.indexes, &in_collection(specs, &found)?)?;
    let answer = created(found.secondary_indexes().count(), wanted.len(), false);
    if wanted.is_empty() {
        return Ok(Outcome::Discard(answer));
    }
    let mut live = adopt::adopt(transaction, database, branch, name, &found)?;
    add_empty(database, transaction, (branch, name), &mut live, wanted)?;
    adopt::put_entry(transaction, database, branch, name, &WorkingEntry::Live(live))?;
    Ok(Outcome::Commit(answer))
}

/// Makes a collection with indexes.
fn create_with(
    database: &Database,
    transaction: &mut Transaction,
    branch: &str,
    name: &str,
    specs: &[IndexSpec],
) -> Result<IndexesCreated, Error> {
    let specs: Vec<IndexSpec> =
        specs.iter().map(|spec| spec.in_collection(&Collation::SIMPLE)).collect();
    for spec in &specs {
        refuse_other_id_collation(spec, &Collation::SIMPLE)?;
    }
    let wanted = missing_indexes(&[], &specs)?;
    let answer = created(0, wanted.len(), true);
    let mut live = adopt::create(transaction, database, branch, name, DocumentBuf::empty())?;
    add_empty(database, transaction, (branch, name), &mut live, wanted)?;
    adopt::put_entry(transaction, database, branch, name, &WorkingEntry::Live(live))?;
    Ok(answer)
}

/// Adds indexes to a collection without documents.
fn add_empty(
    database: &Database,
    transaction: &mut Transaction,
    (branch, name): (&str, &str),
    live: &mut LiveCollection,
    specs: Vec<IndexSpec>,
) -> Result<(), Error> {
    let engine = database.frond().engine();
    let format = adopt::ensure_repository(transaction, database, branch)?.format();
    for spec in specs {
        let (of, spec_alone) = ((branch, name, &live.uuid), std::iter::once(&spec));
        record_index_event(database, transaction, of, EventKind::CreateIndexes, spec_alone);
        let id = engine.reserve_tree_id();
        let format = spec.tree_format(format);
        transaction.set_base(id, Tree::empty(&**engine.store(), format)?)?;
        live.indexes.push(LiveIndex { spec, tree: id });
    }
    assert!(live.indexes.len() <= INDEXES_MAX, "too many are refused before they are made");
    Ok(())
}

/// Drops the index called `index` (`*`: all but `_id`'s); answers how many there were.
pub(crate) fn drop_indexes(
    database: &Database,
    collection: &str,
    index: &str,
) -> Result<u32, Error> {
    let branch = database.writable_branch()?;
    let scope = Scope::collection(database.repository_name(), branch, collection);
    let done = database.transact(scope, LatchMode::Replacer, Durability::Synced, |transaction| {
        let Some(found) = adopt::find(transaction, database, branch, collection)? else {
            return Err(no_collection(database, collection));
        };
        view::refuse(found.options.view(), &database.namespace(collection))?;
        if let Some(own) = own_index(&found)
            && own.name == index
        {
            let message = match own.is_id() {
                true => "cannot drop _id index".to_owned(),
                false => format!("cannot drop {index}: points lie in its order"),
            };
            return Err(Error::invalid(Code::InvalidOptions, message));
        }
        transaction.give_back();
        let count = found.secondary_indexes().count() as u32 + 1;
        let goes = |candidate: &LiveIndex| {
            !candidate.spec.is_id() && (index == "*" || candidate.spec.name == index)
        };
        let live = adopt::adopt(transaction, database, branch, collection, &found)?;
        let (gone, kept): (Vec<_>, Vec<_>) = live.indexes.into_iter().partition(goes);
        if gone.is_empty() {
            if index == "*" {
                return Ok(Outcome::Discard(count));
            }
            let message = format!("index not found with name [{index}]");
            return Err(Error::invalid(Code::IndexNotFound, message));
        }
        for index in &gone {
            transaction.drop_tree(index.tree)?;
            let (of, spec) = ((branch, collection, &live.uuid), std::iter::once(&index.spec));
            record_index_event(database, transaction, of, EventKind::DropIndexes, spec);
        }
        let entry = WorkingEntry::Live(LiveCollection { indexes: kept, ..live });
        adopt::put_entry(transaction, database, branch, collection, &entry)?;
        Ok(Outcome::Commit(count))
    });
    database.frond().note_definitions_changed();
    done
}

/// Records the event of indexes that were made, or dropped, together.
fn record_index_event<'s>(
    database: &Database,
    transaction: &mut Transaction,
    (branch, name, uuid): (&str, &str, &[u8; 16]),
    kind: EventKind,
    specs: impl Iterator<Item = &'s IndexSpec>,
) {
    let of = (branch, name, Some(uuid));
    record_event(database, transaction, of, kind, record::indexes(specs).view());
}

/// The indexes of a collection, its own tree first: `_id`'s, or that of source and time.
pub(crate) fn list_indexes(database: &Database, collection: &str) -> Result<Vec<IndexSpec>, Error> {
    let found = indexed(database, collection)?;
    let own = own_index(&found);
    let others = found.secondary_indexes().map(|index| index.spec.clone());
    Ok(own.into_iter().chain(others).collect())
}

/// The indexes of a collection as `listIndexes` shows them.
pub(crate) fn describe_indexes(
    database: &Database,
    collection: &str,
) -> Result<Vec<DocumentBuf>, Error> {
    let found = indexed(database, collection)?;
    let own = match &found.series {
        Some(series) => series.listed_index().map(IndexSpec::to_document),
        None => Some(clustered::id_index(found.options.view())),
    };
    let others = found.secondary_indexes().map(|index| index.spec.to_document());
    Ok(own.into_iter().chain(others).collect())
}

/// The indexes of a collection, and how often each was used since it was used first, or since
/// the data directory was opened.
pub(crate) fn index_uses(
    database: &Database,
    collection: &str,
) -> Result<Vec<(IndexSpec, u64)>, Error> {
    let found = indexed(database, collection)?;
    let own = own_index(&found);
    let others = found.secondary_indexes().map(|index| index.spec.clone());
    let specs = own.into_iter().chain(others);
    let usage = database.frond().usage();
    Ok(specs
        .map(|spec| {
            let uses = usage.of(found.uuid, &spec.name);
            (spec, uses)
        })
        .collect())
}

/// How often a collection was read whole, and how often by a tailable cursor, since it was first,
/// or since the data directory was opened.
pub(crate) fn collection_scans(
    database: &Database,
    collection: &str,
) -> Result<CollectionScans, Error> {
    let found = indexed(database, collection)?;
    let usage = database.frond().usage();
    Ok(CollectionScans {
        others: usage.of(found.uuid, COLLECTION_SCANS),
        tailable: usage.of(found.uuid, TAILABLE_SCANS),
    })
}

fn indexed(database: &Database, collection: &str) -> Result<Collection, Error> {
    let reader = database.reader();
    let found = CatalogView::open(&reader, database)?.collection(collection)?;
    let found = found.ok_or_else(|| no_collection(database, collection))?;
    view::refuse(found.options.view(), &database.namespace(collection))?;
    Ok(found)
}

pub(crate) fn no_collection(database: &Database, collection: &str) -> Error {
    let message = format!("ns does not exist: {}", database.namespace(collection));
    Error::invalid(Code::NamespaceNotFound, message)
}

/// The index that the documents' own tree is, as it is listed.
pub(super) fn own_index(collection: &Collection) -> Option<IndexSpec> {
    match &collection.series {
        Some(series) => series.listed_index().cloned(),
        None => Some(collection.id_index()),
    }
}

/// Refuses indexes of a collection that a transaction of several requests has not made itself, or
/// has put documents into: they could not be built within a statement.
fn check_own_and_empty(transaction: &Transaction, found: &Collection) -> Result<(), Error> {
    if let TreeRef::Live(documents) = found.documents
        && transaction.own_base(documents).is_some()
        && transaction.range(documents, Bounds::all(), Direction::Ascending)?.next().is_none()
    {
        return Ok(());
    }
    Err(not_in_transaction("indexes of a collection that it has not made, or that has documents,"))
}

/// Returns the answer where `count` indexes were made besides `before` ones and that of `_id`.
fn created(before: usize, count: usize, created_collection: bool) -> IndexesCreated {
    let before = before as u32 + 1;
    IndexesCreated { before, after: before + count as u32, created_collection }
}

/// Those of `specs` that aren't there yet.
pub(super) fn missing_indexes(
    there: &[Index],
    specs: &[IndexSpec],
) -> Result<Vec<IndexSpec>, Error> {
    let mut wanted: Vec<IndexSpec> = Vec::new();
    for spec in specs {
        let known: Vec<&IndexSpec> =
            there.iter().map(|index| &index.spec).chain(wanted.iter()).collect();
        if !spec.is_id() && !is_known(&known, spec)? {
            check_only_text(&known, spec)?;
            wanted.push(spec.clone());
        }
    }
    let count = there.iter().filter(|index| !index.spec.is_id()).count();
    if count + wanted.len() + 1 > INDEXES_MAX {
        let message = format!("a collection has at most {INDEXES_MAX} indexes");
        return Err(Error::invalid(Code::CannotCreateIndex, message));
    }
    Ok(wanted)
}

/// Refuses a second text index: a `$text` doesn't say which it asks.
fn check_only_text(known: &[&IndexSpec], spec: &IndexSpec) -> Result<(), Error> {
    let other = known.iter().find(|other| other.text.is_some());
    match other.filter(|_| spec.text.is_some()) {
        None => Ok(()),
        Some(other) => {
            let message = format!(
                "only one text index per collection allowed, found existing text index \"{}\"",
                other.name
            );
            Err(Error::invalid(Code::CannotCreateIndex, message))
        }
    }
}

/// Whether `spec` is among `known` already.
pub(super) fn is_known(known: &[&IndexSpec], spec: &IndexSpec) -> Result<bool, Error> {
    let matches_other = |other: &IndexSpec| {
        format!(
            "Requested index: {}, existing index: {}",
            text::value(Value::from(&spec.to_document())),
            text::value(Value::from(&other.to_document()))
        )
    };
    for other in known {
        let is_named = other.name == spec.name;
        let is_same = other.is_same_index(spec);
        let has_same_options = other.has_same_options(spec);
        let (code, message) = match (is_named, is_same, has_same_options) {
            (true, true, true) => return Ok(true),
            (true, true, false) => (
                Code::IndexOptionsConflict,
                format!(
                    "An equivalent index already exists with the same name but different options. {}",
                    matches_other(other)
                ),
            ),
            (true, false, _) => (
                Code::IndexKeySpecsConflict,
                format!(
                    "An existing index has the same name as the requested index. When index names \
                     are not specified, they are auto generated and can cause conflicts. Please \
                     refer to our documentation. {}",
                    matches_other(other)
                ),
            ),
            (false, true, true) => (
                Code::IndexOptionsConflict,
                format!("Index already exists with a different name: {}", other.name),
            ),
            (false, true, false) => (
                Code::IndexOptionsConflict,
                format!(
                    "An equivalent index already exists with a different name and options. {}",
                    matches_other(other)
                ),
            ),
            (false, false, _) => continue,
        };
        return Err(Error::invalid(code, message));
    }
    Ok(false)
}
