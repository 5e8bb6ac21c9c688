//! Goes beyond the examples: values of all types go in and out unchanged, errors keep their facts,
//! and half-finished work says so.

use bson::spec::BinarySubtype;
use fronddb::{
    Bson, Code, Collection, CommitOptions, DateTime, Document, Error, ErrorKind, Frond, Merge,
    ObjectId, Side, UpdateOptions, bson, doc,
};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

fn opened() -> (TempDir, Frond) {
    let data = tempfile::tempdir().expect("a directory");
    let frond = fronddb::open(&data).expect("an empty directory opens");
    (data, frond)
}

fn things(frond: &Frond) -> Collection<Document> {
    frond.database("shop").expect("a proper name").collection("things")
}

#[test]
fn values_of_every_type_come_back() {
    let (_data, frond) = opened();
    let values: Vec<Bson> = vec![
        1.5.into(),
        "text".into(),
        doc! { "a": [1, { "b": Bson::Null }] }.into(),
        true.into(),
        Bson::Null,
        ObjectId::from_bytes([7; 12]).into(),
        DateTime::from_millis(-1).into(),
        i32::MIN.into(),
        i64::MAX.into(),
        Bson::MinKey,
        Bson::MaxKey,
        Bson::Timestamp(bson::Timestamp { time: 3, increment: 4 }),
        Bson::Decimal128("1.50".parse().expect("a decimal")),
        bson::Binary { subtype: BinarySubtype::Generic, bytes: vec![0, 255] }.into(),
        Bson::JavaScriptCode("f()".to_owned()),
    ];
    let things = things(&frond);
    for (position, value) in (0i32..).zip(values) {
        let document = doc! { "_id": position, "value": &value };
        things.insert_one(&document).expect("inserted");
        assert_eq!(things.get(position).expect("read"), Some(document), "{value:?}");
        // As a value that is converted on its own, too.
        let distinct = things.distinct("value", doc! { "_id": position }).expect("read");
        assert!(distinct == [value.clone()] || matches!(value, Bson::Document(_)), "{value:?}");
    }
}

#[test]
fn documents_that_are_something_else_are_reported_by_name() {
    #[derive(Serialize, Deserialize, Debug)]
    struct Priced {
        price: i32,
    }
    let (_data, frond) = opened();
    let things = things(&frond);
    things.insert_many([doc! { "_id": "lamp", "price": "dear" }]).expect("inserted");
    let error = things.with_type::<Priced>().get("lamp").expect_err("its price is no number");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.to_string().contains("\"lamp\"") && error.to_string().contains("Priced"),
        "{error}"
    );
    // A value that isn't a document.
    let error = things.with_type::<i32>().insert_one(5).expect_err("five is no document");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let mut all = things.with_type::<Priced>().find(doc! {}).into_iter();
    assert!(all.next().is_some_and(|first| first.is_err()) && all.next().is_none());
}

#[test]
fn a_long_insert_stops_at_the_document_that_fails() {
    let (_data, frond) = opened();
    let things = things(&frond);
    let with_a_duplicate = (0..5_000).map(|n| doc! { "_id": if n == 3_500 { 7 } else { n } });
    let error = things.insert_many(with_a_duplicate).expect_err("7 is there");
    assert_eq!((error.code(), error.position()), (Code::DuplicateKey, Some(3_500)));
    assert_eq!(things.count(doc! {}).expect("counted"), 3_500);
    // One that can't be encoded.
    let named = |name: &str| doc! { name: 1 };
    let error = things.insert_many([named("a"), named("b"), named("\0"), named("c")]);
    assert_eq!(error.expect_err("a name holds no NUL").position(), Some(2));
    assert_eq!(things.count(doc! {}).expect("counted"), 3_502);
}

#[test]
fn a_transaction_that_loses_runs_again_on_what_it_finds() {
    let (_data, frond) = opened();
    things(&frond).insert_one(doc! { "_id": 1, "n": 0 }).expect("inserted");
    let (mut runs, mut kept) = (0, None);
    let read = frond.transaction(|transaction| {
        runs += 1;
        let inside = transaction.database("shop")?.collection::<Document>("things");
        let n = inside.get(1)?.expect("it was inserted").get_i32("n").expect("a number");
        if runs == 1 {
            // Another writer is first.
            things(&frond).update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 10 } })?;
        }
        inside.update_one(doc! { "_id": 1 }, doc! { "$set": { "n": n + 1 } })?;
        kept = Some(inside);
        Ok(n)
    });
    assert_eq!((read.expect("the second run wins"), runs), (10, 2));
    let after = things(&frond).get(1).expect("read");
    assert_eq!(after, Some(doc! { "_id": 1, "n": 11 }));
    // A handle kept from a transaction is of no use after it.
    let late = kept.expect("it ran").count(doc! {}).expect_err("it has ended");
    assert_eq!(late.code(), Code::NoSuchTransaction);

    let versions = frond.transaction(|transaction| transaction.database("shop")?.commit("no"));
    let code = versions.expect_err("versions take no part").code();
    assert_eq!(code, Code::OperationNotSupportedInTransaction);

    let own = frond.transaction(|_| Err::<(), _>(Error::other(std::fmt::Error)));
    let own = own.expect_err("it is the application's");
    let source = std::error::Error::source(&own).expect("it is kept");
    assert!(source.is::<std::fmt::Error>());
}

#[test]
fn branches_have_any_name_that_git_gives() {
    let (_data, frond) = opened();
    let shop = frond.database("shop").expect("a proper name");
    assert_eq!(shop.branch("early").expect_err("no database yet").code(), Code::NamespaceNotFound);
    things(&frond).insert_one(doc! { "_id": 1 }).expect("inserted");
    let same = CommitOptions { allow_empty: true, ..CommitOptions::default() };
    let head = shop.commit_with("first", same).expect("committed");
    for name in ["feature/login", "größe", "100%25", "a@b"] {
        let branch = shop.branch(name).expect("made");
        assert_eq!((branch.branch_name(), branch.head().expect("read")), (Some(name), Some(head)));
        assert_eq!(branch.branch(name).expect("found").branch_name(), Some(name));
    }
    shop.tag("v1").expect("tagged");
    assert_eq!(shop.branch("v1").expect_err("a tag is no branch").code(), Code::NamespaceExists);
    assert_eq!(shop.checkout("v2").expect_err("no such tag").code(), Code::NamespaceNotFound);
}

#[test]
fn conflicts_of_indexes_come_before_those_of_documents() {
    let (_data, frond) = opened();
    let shop = frond.database("shop").expect("a proper name");
    let ours = things(&frond);
    ours.insert_one(doc! { "_id": 1, "n": 0 }).expect("inserted");
    shop.commit("first").expect("committed");
    let side = shop.branch("side").expect("made");
    let theirs = side.collection::<Document>("things");
    for (collection, database, direction) in [(&ours, &shop, 1), (&theirs, &side, -1)] {
        let named = fronddb::IndexOptions { name: Some("by_n".to_owned()), ..Default::default() };
        collection.create_index_with(doc! { "n": direction }, named).expect("made");
        collection.update_one(doc! {}, doc! { "$set": { "n": direction } }).expect("changed");
        database.commit("both changed").expect("committed");
    }
    let Merge::Conflicts(waiting) = shop.merge("side").expect("merged") else {
        panic!("two indexes of one name are a conflict");
    };
    assert_eq!(waiting.list().expect("listed")[0].document_id, Bson::from("by_n"));
    waiting.resolve_all(Side::Theirs).expect("resolved, twice");
    assert_eq!(ours.get(1).expect("read"), Some(doc! { "_id": 1, "n": -1 }));
    assert_eq!(
        ours.list_indexes().expect("listed")[1].get_document("key").unwrap(),
        &doc! { "n": -1 }
    );
}

#[test]
fn a_stream_that_ends_too_early_leaves_nothing() {
    let (_data, frond) = opened();
    let things = things(&frond);
    let whole = doc! { "_id": 1, "text": "x".repeat(100_000) }.to_vec().expect("a document");
    let error = things.insert_bson(&whole[..50_000]).expect_err("half of it is missing");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(
        things.insert_json(&b"{\"_id\": 1"[..]).expect_err("no end").kind(),
        ErrorKind::Invalid
    );
    assert_eq!(things.count(doc! {}).expect("counted"), 0);
    assert!(!things.write_bson(1, Vec::new()).expect("nothing to write"));
    // The bytes behind a document are the next one.
    let mut two = [&whole[..], &doc! { "_id": 2 }.to_vec().expect("a document")].concat();
    let mut reader = &two[..];
    assert_eq!(things.insert_bson(&mut reader).expect("the first"), Bson::from(1));
    assert_eq!(things.insert_bson(&mut reader).expect("the second"), Bson::from(2));
    assert!(reader.is_empty());
    let mut out = Vec::new();
    assert!(things.write_bson(1, &mut out).expect("written"));
    two.truncate(whole.len());
    assert!(out == two);
}

#[test]
fn a_replacement_is_no_update() {
    let (_data, frond) = opened();
    let things = things(&frond);
    let upsert = UpdateOptions { upsert: true, ..UpdateOptions::default() };
    let set = doc! { "$set": { "n": 1 } };
    let error = things.replace_one_with(doc! { "_id": 1 }, &set, upsert.clone());
    assert_eq!(error.expect_err("operators update").code(), Code::BadValue);
    let error = things.update_one(doc! { "_id": 1 }, 5).expect_err("five is no update");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    things.update_one_with(doc! { "_id": 1 }, set, upsert).expect("upserted");
    assert_eq!(things.get(1).expect("read"), Some(doc! { "_id": 1, "n": 1 }));
}

#[test]
fn a_directory_in_use_is_known_by_its_code() {
    let (data, _frond) = opened();
    let Err(error) = fronddb::open(&data) else { panic!("it is open already") };
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unavailable, Code::DBPathInUse));
    let nowhere = data.path().join("file");
    std::fs::write(&nowhere, "no directory").expect("written");
    let Err(error) = fronddb::open(&nowhere) else { panic!("it is no directory") };
    assert_ne!(error.code(), Code::DBPathInUse, "{error}");
}

#[test]
fn serde_attributes_are_respected() {
    let (_data, frond) = opened();
    things(&frond).insert_one(doc! { "_id": "one" }).expect("inserted");
    let numbered = things(&frond).with_type::<Numbered>();
    let error = numbered.get("one").expect_err("a number is expected");
    let source = std::error::Error::source(&error).expect("it has a cause");
    assert!(source.is::<bson::error::Error>(), "{source}");
}

#[derive(Debug, Deserialize)]
struct Numbered {
    #[serde(rename = "_id")]
    _id: i32,
}
