//! Change streams of an embedded database: what the background does, and what isn't kept.

use frond_db::catalog::IndexSpec;
use frond_db::{
    ChangeRetention, ChangeStream, ChangeStreamRequest, Database, Frond, FrondOptions, Interrupt,
    Watched,
};
use frond_doc::{Value, document};
use frond_testkit::SimDisk;
use frond_vcs::Repository;

use crate::support::{insert, json, statement, try_insert, update};

fn open() -> Frond {
    let mut options = FrondOptions::default();
    options.engine.changes = ChangeRetention { seconds: 3600, bytes: 64 << 20 };
    frond_vcs::open_on(&SimDisk::new(1).machine(), options).expect("opens")
}

fn watch(database: &Database, collection: &str) -> ChangeStream {
    let watched = Watched::Collection(database.clone(), collection.to_owned());
    database.frond().watch(watched, &ChangeStreamRequest::default()).expect("it is kept")
}

/// What happened up to now, and to which `_id`s.
fn told(frond: &Frond, stream: &mut ChangeStream) -> Vec<String> {
    // What isn't durable yet isn't told.
    frond.flush().expect("the disk works");
    let mut told = Vec::new();
    while let Some(event) = stream.next(&Interrupt::default()).expect("it is kept") {
        let kind = event.get("operationType").and_then(|kind| kind.as_str()).expect("a kind");
        let key = event.get("documentKey").and_then(|key| key.as_document()?.get("_id"));
        let key = key.and_then(|key| key.as_integer()).unwrap_or_default();
        told.push(format!("{kind} {key}"));
    }
    told
}

#[test]
fn what_expires_is_told() {
    let frond = open();
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let mut stream = watch(&shop, "things");
    let documents = [document! { "_id": 1, "at": Value::DateTime(1_000) }, document! { "_id": 2 }];
    try_insert(&shop, "things", &documents);
    shop.create_indexes(
        "things",
        &[IndexSpec::parse(json("{'key': {'at': 1}, 'expireAfterSeconds': 5}").view())
            .expect("right")],
    )
    .expect("made");
    assert_eq!(frond.expire_documents(&Interrupt::default()).expect("done"), 1);
    assert_eq!(told(&frond, &mut stream), ["insert 1", "insert 2", "delete 1"]);
}

#[test]
fn a_relaxed_write_is_told_once_it_is_durable_and_tokens_outlive_the_stream() {
    let frond = open();
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let mut stream = watch(&shop, "things");
    insert(&shop, "things", "[{'_id': 1}, {'_id': 2}]");
    update(&shop, "things", statement("{'_id': 1}", "{'$set': {'v': 1}}"));
    assert_eq!(told(&frond, &mut stream), ["insert 1", "insert 2", "update 1"]);
    let start = frond_db::StreamStart::Resume(stream.token());
    let watched = Watched::Database((*shop).clone());
    insert(&shop, "others", "[{'_id': 3}]");
    let request = ChangeStreamRequest { start, ..ChangeStreamRequest::default() };
    let mut after = frond.watch(watched, &request).expect("it is kept");
    assert_eq!(told(&frond, &mut after), ["insert 3"]);
}

#[test]
fn where_nothing_is_kept_streams_are_refused_and_writes_tell_nothing() {
    let frond = crate::support::open();
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    insert(&shop, "things", "[{'_id': 1}]");
    let watched = Watched::Database((*shop).clone());
    let refused = frond.watch(watched, &ChangeStreamRequest::default()).err().expect("refused");
    assert_eq!(refused.code.number(), 20);
}
