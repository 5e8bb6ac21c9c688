//! Goal: a write that found its collection one way doesn't commit once the collection is another.
//! Method: a transaction writes, then something changes the catalog, then the transaction commits.

use frond_doc::document;
use frond_engine::{Durability, EngineError};
use frond_query::Filter;
use frond_query::pipeline::Documents;
use frond_testkit::SimDisk;

use super::*;
use crate::collection::FindRequest;
use crate::collection::plan::Order;
use crate::collection::reference_translator::Referring;
use crate::collection::replace::replace_collection;
use crate::definition::IndexSpec;
use crate::frond::{Frond, FrondOptions};
use crate::refs::erased::EraseCount;

type Change = fn(&Database);

fn open() -> Database {
    let frond = Frond::open_bare(&SimDisk::new(1).machine(), FrondOptions::default());
    frond.and_then(|frond| frond.database("shop")).expect("opens")
}

fn insert(database: &Database, id: i32) {
    let documents = [document! { "_id": id, "a": id }];
    let report = database.insert("things", &documents, true, Durability::Relaxed);
    assert_eq!(report.expect("the request is right").count, 1);
}

/// Writes a document, lets `change` happen, and returns whether the commit then conflicts.
fn conflicts(database: &Database, change: Change) -> bool {
    let mut transaction = database.frond().engine().begin();
    let mut writer = CollectionWriter::open(&mut transaction, database, "main", "things")
        .expect("the branch is there");
    writer.insert(&document! { "_id": 100, "a": 1 }).expect("nothing is in its way");
    change(database);
    match transaction.commit(Durability::Relaxed) {
        Ok(_) => false,
        Err(EngineError::Conflict { .. }) => true,
        Err(error) => panic!("{error}"),
    }
}

fn create_index(database: &Database) {
    let spec =
        IndexSpec { key: document! { "a": 1 }, name: "a_1".to_owned(), ..IndexSpec::of_id() };
    database.create_indexes("things", &[spec]).expect("made");
}

const CHANGES: &[(&str, Change)] = &[
    ("index", create_index),
    ("drop", |database| {
        assert!(database.drop_collection("things").expect("dropped"));
    }),
    ("rename", |database| {
        database.rename_collection("things", "others", false).expect("renamed");
    }),
    ("out", |database| {
        let nothing: Documents<'static> = Box::new(std::iter::empty());
        let erases = EraseCount::at(&database.reader()).expect("none");
        let nothing = (nothing, Referring::Here, erases);
        replace_collection(database, "things", None, nothing, Durability::Relaxed)
            .expect("replaced");
    }),
    ("drop database", |database| database.drop_database().expect("dropped")),
];

#[test]
fn a_write_conflicts_with_what_changes_its_collection() {
    for (name, change) in CHANGES {
        let database = open();
        insert(&database, 1);
        assert!(conflicts(&database, *change), "{name}");
    }
}

#[test]
fn a_write_conflicts_with_what_drops_an_index_under_it() {
    let database = open();
    create_index(&database);
    assert!(conflicts(&database, |database| {
        database.drop_indexes("things", "a_1").expect("dropped");
    }));
}

#[test]
fn a_write_that_creates_its_collection_conflicts_with_another_that_does() {
    assert!(conflicts(&open(), |database| insert(database, 1)));
    assert!(conflicts(&open(), create_index));
    let database = open();
    database.create_collection("others", Document::empty()).expect("made");
    assert!(conflicts(&database, |database| insert(database, 1)));
}

#[test]
fn writes_of_different_documents_do_not_conflict() {
    let database = open();
    insert(&database, 1);
    assert!(!conflicts(&database, |database| insert(database, 2)));
    assert_eq!(database.count("things", &FindRequest::default()).expect("a count"), 3);
}

#[test]
fn a_write_that_fails_in_the_middle_leaves_nothing() {
    let database = open();
    let spec = IndexSpec {
        key: document! { "a": 1 },
        name: "a_1".to_owned(),
        unique: true,
        ..IndexSpec::of_id()
    };
    database.create_indexes("things", &[spec]).expect("made");
    insert(&database, 1);
    let mut transaction = database.frond().engine().begin();
    let mut writer = CollectionWriter::open(&mut transaction, &database, "main", "things")
        .expect("the branch is there");
    let error = writer.insert(&document! { "_id": 2, "a": 1 }).expect_err("a duplicate");
    assert_eq!(error.code, Code::DuplicateKey);
    assert!(!writer.changed());
    let found = writer.matching(&Filter::all(), &Order::Any, None, None).expect("read");
    assert_eq!(found.len(), 1);
}
