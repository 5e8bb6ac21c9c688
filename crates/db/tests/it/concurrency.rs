//! Goal: concurrent requests leave the same as some sequence of them. Method: threads on one
//! collection, and sums that every order gives.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use frond_db::catalog::IndexSpec;
use frond_db::{Durability, FindAndModify, FindRequest, UpdateStatement};
use frond_doc::{Value, document};
use frond_query::Code;

use crate::support::*;

/// Stops the threads that look at it when it goes, also by a failed assertion.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_hundred_updaters_of_one_counter() {
    let shop = shop();
    insert(&shop, "counters", "[{'_id': 1, 'n': 0}]");
    thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let report = shop.update(
                        "counters",
                        &[statement("{'_id': 1}", "{'$inc': {'n': 1}}")],
                        true,
                        Durability::Synced,
                    );
                    assert_eq!(report.expect("conflicts are retried").modified, 1);
                }
            });
        }
    });
    assert_eq!(all(&shop, "counters"), "[{'_id':1,'n':1000}]");
}

#[test]
fn find_and_modify_hands_out_each_number_once() {
    let shop = shop();
    let request = FindAndModify {
        filter: json("{'_id': 'next'}"),
        sort: None,
        update: Some(value("{'$inc': {'n': 1}}")),
        upsert: true,
        return_new: true,
        projection: None,
        array_filters: None,
        hint: None,
        variables: None,
        collation: None,
    };
    let mut numbers: Vec<i64> = thread::scope(|scope| {
        let take = || {
            let report = shop.find_and_modify("counters", &request, Durability::Relaxed);
            let document = report.expect("conflicts are retried").value.expect("it was upserted");
            document.get("n").and_then(|n| n.as_integer()).expect("a number")
        };
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(move || (0..25).map(|_| take()).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=200).collect::<Vec<i64>>());
}

#[test]
fn unique_keys_are_given_to_one_of_many() {
    let shop = shop();
    let spec = IndexSpec::parse(json("{'key': {'name': 1}, 'unique': true}").view());
    shop.create_indexes("users", &[spec.expect("a proper index")]).expect("made");
    let inserted: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let shop = &shop;
                scope.spawn(move || {
                    let mut inserted = 0;
                    for number in 0..40 {
                        let document =
                            document! { "_id": thread * 1_000 + number, "name": number % 20 };
                        let report = shop.insert("users", &[document], true, Durability::Relaxed);
                        let report = report.expect("conflicts are retried");
                        inserted += report.count;
                        for error in report.errors {
                            assert_eq!(error.error.code, Code::DuplicateKey);
                        }
                    }
                    inserted
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    assert_eq!(inserted, 20);
    assert_eq!(shop.count("users", &FindRequest::default()).expect("a count"), 20);
    let names = shop.distinct("users", "name", &FindRequest::default()).expect("distinct");
    assert_eq!(names.len(), 20);
}

#[test]
fn upserts_of_one_id_make_one_document() {
    let shop = shop();
    let upserted: usize = thread::scope(|scope| {
        let run = || {
            let statement =
                UpdateStatement { upsert: true, ..statement("{'_id': 'x'}", "{'$inc': {'n': 1}}") };
            let report = update(&shop, "things", statement);
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            report.upserted.len()
        };
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    assert_eq!(upserted, 1);
    assert_eq!(all(&shop, "things"), "[{'_id':'x','n':16}]");
}

#[test]
fn an_index_built_among_writers_misses_nothing() {
    let shop = shop();
    let stop = AtomicBool::new(false);
    let written: usize = thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|thread| {
                let (shop, stop) = (&shop, &stop);
                scope.spawn(move || {
                    let mut number = 0;
                    while !stop.load(Ordering::Relaxed) || number < 10 {
                        let id = thread * 1_000_000 + number;
                        let document = document! { "_id": id, "a": number % 7 };
                        assert_eq!(try_insert(shop, "things", &[document]).count, 1);
                        number += 1;
                    }
                    number as usize
                })
            })
            .collect();
        let at_end = StopAtEnd(&stop);
        for key in ["a", "b", "c"] {
            let spec = frond_doc::document! { "key": &document_of(key) };
            let spec = IndexSpec::parse(spec.view()).expect("a proper index");
            shop.create_indexes("things", &[spec]).expect("built");
        }
        drop(at_end);
        writers.into_iter().map(|writer| writer.join().expect("no panic")).sum()
    });
    assert_eq!(shop.count("things", &FindRequest::default()).expect("a count"), written as u64);
    for name in ["a_1", "b_1", "c_1"] {
        let hint = Some(frond_doc::ValueBuf::from(Value::String(name)));
        let request = FindRequest { hint, ..request("{}") };
        assert_eq!(run(&shop, "things", &request).expect("found").len(), written, "{name}");
    }
}

fn document_of(key: &str) -> frond_doc::DocumentBuf {
    let mut builder = frond_doc::DocumentBuilder::new();
    builder.append(key, Value::Int32(1));
    builder.build()
}

#[test]
fn a_cursor_keeps_its_snapshot() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1}, {'_id': 2}, {'_id': 3}]");
    let mut cursor = shop.find("things", &request("{}")).expect("found");
    assert_eq!(text(&cursor.next().expect("one").expect("read")), "{'_id':1}");
    delete(&shop, "things", "{}");
    shop.frond().engine().checkpoint().expect("folded");
    assert_eq!(text(&cursor.next().expect("two").expect("read")), "{'_id':2}");
    // MongoDB ends it with the collection, so it ends here, too.
    shop.drop_collection("things").expect("dropped");
    let error = cursor.next().expect("an error").map(drop).unwrap_err();
    assert_eq!(error.code, Code::QueryPlanKilled);
}

#[test]
fn replacing_a_tree_gets_its_turn_among_writers() {
    let frond = open();
    let shop = frond.database("shop").expect("a proper name");
    insert(&shop, "source", "[{'_id': 'new'}]");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..3 {
            let (shop, stop) = (&shop, &stop);
            scope.spawn(move || {
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    let document = document! { "_id": thread * 1_000_000 + number, "a": number };
                    assert_eq!(try_insert(shop, "things", &[document]).count, 1);
                    number += 1;
                }
            });
        }
        let at_end = StopAtEnd(&stop);
        for round in 0..5 {
            aggregate(&shop, Some("source"), "[{'$out': 'things'}]").expect("replaced");
            let renamed = shop.rename_collection("things", "renamed", true);
            // Between the two steps a writer need not have come, but `$out` made the collection.
            renamed.expect("renamed");
            shop.drop_collection("renamed").expect("dropped");
            shop.drop_collection("things").expect("dropped, or not there");
            if round == 3 {
                shop.drop_database().expect("dropped");
                insert(&shop, "source", "[{'_id': 'new'}]");
            }
        }
        drop(at_end);
    });
    frond.engine().checkpoint().expect("folded");
    frond.engine().check().expect("every invariant holds");
    let count = shop.count("things", &FindRequest::default()).expect("a count");
    assert_eq!(run(&shop, "things", &request("{}")).expect("found").len() as u64, count);
}
