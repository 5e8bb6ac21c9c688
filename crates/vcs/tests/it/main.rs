//! History: what commits, branches, diffs and merges promise. Here is what the tests share.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::missing_errors_doc, reason = "helpers of tests")]

mod basics;
mod concurrency;
mod cost;
mod crash;
mod criss_cross;
mod erase;
mod erase_beside;
mod everything;
mod handover;
mod held_back;
mod history;
mod limits;
mod long_keys;
mod merge_options;
mod merging;
mod model;
mod moments;
mod policies;
mod races;
mod reclaim;
mod remotes;
mod renames;
mod replays;
mod storm;
mod support;
mod unversioned;
mod versions;
mod waiting;

use frond_db::Database;
use frond_db::collection::{DeleteStatement, FindRequest, UpdateStatement};
use frond_db::{Durability, Error, Frond, FrondOptions};
use frond_doc::{DocumentBuf, Value, ValueBuf, document};
use frond_engine::EngineOptions;
use frond_testkit::SimDisk;
use frond_vcs::Repository;
use frond_vcs::{MergeOutcome, MergeRequest};

/// Opens a data directory in which only explicit folds fold: with one thread, runs repeat exactly.
pub fn open(disk: &SimDisk) -> Frond {
    let engine = EngineOptions { relaxed_sync_millis: 3_600_000, ..EngineOptions::default() };
    frond_vcs::open_on(&disk.machine(), FrondOptions { engine, ..FrondOptions::default() })
        .expect("the disk works")
}

/// An empty data directory.
pub fn new() -> Frond {
    open(&SimDisk::new(1))
}

/// A version of the database `shop`.
pub fn shop(frond: &Frond, version: &str) -> Repository {
    let name = if version.is_empty() { "shop".to_owned() } else { format!("shop@{version}") };
    Repository::open(frond, &name).expect("there is such a version")
}

/// Inserts documents.
pub fn insert(database: &Database, collection: &str, documents: &[DocumentBuf]) {
    let report = database.insert(collection, documents, true, Durability::Relaxed);
    let report = report.expect("a good insert");
    assert!(report.errors.is_empty(), "{:?}", report.errors);
}

/// Puts a document in the place of the one with its `_id`, if there is one.
pub fn put(database: &Database, collection: &str, document: &DocumentBuf) -> Result<(), Error> {
    let id = document.get("_id").expect("documents of tests have an _id");
    let statement = UpdateStatement {
        upsert: true,
        ..UpdateStatement::new(document! { "_id": id }, document.clone())
    };
    let report = database.update(collection, &[statement], true, Durability::Relaxed)?;
    match report.errors.into_iter().next() {
        Some(error) => Err(error.error),
        None => Ok(()),
    }
}

/// Removes the document with an `_id`.
pub fn remove(database: &Database, collection: &str, id: i32) {
    let filter = document! { "_id": id };
    let statement =
        DeleteStatement { filter, only_first: true, hint: None, variables: None, collation: None };
    let report = database.delete(collection, &[statement], true, Durability::Relaxed);
    assert!(report.expect("a good delete").errors.is_empty());
}

/// The documents that pass `filter`, by the index called `hint` if one is given.
pub fn find(
    database: &Database,
    collection: &str,
    filter: Option<DocumentBuf>,
    hint: Option<&str>,
) -> Vec<DocumentBuf> {
    try_find(database, collection, filter, hint).expect("every document can be read")
}

/// As `find`, where the disk may fail.
pub fn try_find(
    database: &Database,
    collection: &str,
    filter: Option<DocumentBuf>,
    hint: Option<&str>,
) -> Result<Vec<DocumentBuf>, Error> {
    let hint = hint.map(|hint| ValueBuf::from(Value::from(hint)));
    let request = FindRequest { filter, hint, ..FindRequest::default() };
    database.find(collection, &request)?.collect()
}

/// All documents, in the order of `_id`.
pub fn all(database: &Database, collection: &str) -> Vec<DocumentBuf> {
    find(database, collection, None, None)
}

/// Merges `from` into the branch.
pub fn merge(database: &Repository, from: &str) -> Result<MergeOutcome, Error> {
    let request =
        MergeRequest { merge_in: from.to_owned(), refuse_dirty: true, ..MergeRequest::default() };
    database.merge(&request)
}

/// Makes an index.
pub fn index(database: &Database, collection: &str, key: DocumentBuf, unique: bool) {
    let spec = document! { "key": &key, "unique": unique };
    let spec = frond_db::catalog::IndexSpec::parse(spec.view()).expect("a good index");
    database.create_indexes(collection, &[spec]).expect("the index can be made");
}
