//! Goal: the cost of counting a range depends on the recent writes to it, not on the documents in
//! it. Method: a collection whose writes are partly folded, and the chunks that a count reads. That
//! counts are right is `equivalence`'s.

use frond_db::FindRequest;
use frond_db::catalog::IndexSpec;
use frond_doc::{DocumentBuf, Value, document};

use crate::support::*;

const COUNT: i32 = 20_000;

#[test]
fn ranges_are_counted_without_being_read() {
    let shop = shop();
    let pad = "x".repeat(100);
    let make = |id: i32| document! { "_id": id, "a": id % 1_000, "pad": &pad };
    for first in (0..COUNT).step_by(2_000) {
        let batch: Vec<DocumentBuf> = (first..first + 2_000).map(make).collect();
        assert_eq!(try_insert(&shop, "things", &batch).count, 2_000);
    }
    let spec = IndexSpec::parse(json("{'key': {'a': 1}}").view()).expect("an index");
    shop.create_indexes("things", &[spec]).expect("made");
    shop.frond().engine().checkpoint().expect("folded");
    // Entries that aren't folded yet: new ones, changed ones and removed ones.
    let batch: Vec<DocumentBuf> = (COUNT..COUNT + 100).map(make).collect();
    assert_eq!(try_insert(&shop, "things", &batch).count, 100);
    assert_eq!(delete(&shop, "things", "{'_id': {'$lt': 30}}"), 30);
    let moved = frond_db::UpdateStatement {
        multi: true,
        ..statement("{'_id': {'$gte': 40, '$lt': 50}}", "{'$set': {'a': -1}}")
    };
    assert_eq!(update(&shop, "things", moved).modified, 10);
    for (filter, expected) in [
        ("{}", i64::from(COUNT) + 100 - 30),
        ("{'a': {'$gte': 100}}", 18_000),
        ("{'a': {'$lt': 100}}", 2_000 + 100 - 30),
        ("{'a': {'$in': [-1, 45, 700]}}", 10 + 20 + 20),
        ("{'_id': {'$gte': 10000}}", 10_100),
    ] {
        let chunks = |shop: &frond_db::Database| shop.frond().counters().1.chunks_read;
        let before = chunks(&shop);
        let count = shop.count("things", &FindRequest::of(json(filter).view())).expect("right");
        assert_eq!(count as i64, expected, "{filter}");
        let read = chunks(&shop) - before;
        assert!(read < 400, "{filter} read {read} chunks");
        let explained = shop
            .explain_as("things", &request(filter), frond_db::Purpose::Count, frond_db::Effort::Run)
            .expect("explained");
        assert_eq!(examined(&explained, "totalDocsExamined"), 0, "{filter}");
        let stats = explained.get("executionStats").and_then(|stats| stats.as_document());
        let stage = stats.and_then(|stats| stats.get("executionStages")?.as_document());
        let counted = stage.and_then(|stage| stage.get("nCounted")?.as_integer());
        assert_eq!(counted, Some(expected), "{filter}");
        assert_eq!(stage.and_then(|stage| stage.get("stage")), Some(Value::String("COUNT")));
        // The same asked of stages.
        for (stages, answer) in worded(filter, expected) {
            let before = chunks(&shop);
            let found = aggregate(&shop, Some("things"), &stages).expect("right");
            assert_eq!(texts(&found), answer, "{stages}");
            let read = chunks(&shop) - before;
            assert!(read < 400, "{stages} read {read} chunks");
        }
    }
}

#[test]
fn written_keys_are_not_looked_up() {
    let shop = shop();
    let make = |id: i32| document! { "_id": id, "a": id % 1_000, "pad": "x" };
    let spec = IndexSpec::parse(json("{'key': {'a': 1}}").view()).expect("an index");
    for first in (0..COUNT).step_by(2_000) {
        let batch: Vec<DocumentBuf> = (first..first + 2_000).map(make).collect();
        assert_eq!(try_insert(&shop, "things", &batch).count, 2_000);
    }
    shop.create_indexes("things", &[spec]).expect("made");
    shop.frond().engine().checkpoint().expect("folded");
    // An eighth of the documents.
    let moved = frond_db::UpdateStatement {
        multi: true,
        ..statement("{'_id': {'$mod': [8, 1]}}", "{'$inc': {'a': 1}}")
    };
    assert_eq!(update(&shop, "things", moved).modified, COUNT as u64 / 8);
    let count = |shop: &frond_db::Database, filter: &str| {
        shop.count("things", &FindRequest::of(json(filter).view())).expect("right") as i64
    };
    let scanned = |shop: &frond_db::Database, filter: &str| {
        let request = FindRequest { hint: Some(value("'_id_'")), ..request(filter) };
        run(shop, "things", &request).expect("found").len() as i64
    };
    let chunks = |shop: &frond_db::Database| shop.frond().counters().1.chunks_read;
    for filter in ["{'a': {'$gte': 100, '$lt': 700}}", "{'a': {'$gt': 900}}", "{}"] {
        let expected = scanned(&shop, filter);
        let before = chunks(&shop);
        assert_eq!(count(&shop, filter), expected, "{filter}");
        let read = chunks(&shop) - before;
        assert!(read < 40, "{filter} read {read} chunks");
    }
    // A transaction's own writes count, and aren't looked up either.
    let transaction = shop.frond().begin();
    let inside = transaction.database("shop").expect("opens");
    insert(&inside, "things", "[{'_id': -1, 'a': 300}, {'_id': -2, 'a': 301}]");
    assert_eq!(delete(&inside, "things", "{'_id': {'$gte': 310, '$lt': 315}}"), 5);
    for filter in ["{'a': {'$gte': 100, '$lt': 700}}", "{'a': {'$gt': 900}}", "{'_id': {'$lt': 9}}"]
    {
        let expected = scanned(&inside, filter);
        let before = chunks(&shop);
        assert_eq!(count(&inside, filter), expected, "{filter}");
        let read = chunks(&shop) - before;
        assert!(read < 40, "{filter} read {read} chunks");
    }
    transaction.abort();
}

/// The wordings of stages that ask how many documents pass `filter`, and their answers where
/// `expected` do.
fn worded(filter: &str, expected: i64) -> Vec<(String, String)> {
    let left = expected - 100;
    [
        ("{'$count': 'n'}", format!("[{{'n':{expected}}}]")),
        ("{'$group': {'_id': 1, 'n': {'$sum': 1}}}", format!("[{{'_id':1,'n':{expected}}}]")),
        (
            "{'$group': {'_id': {'k': [null]}, 'n': {'$count': {}}, 'm': {'$sum': 'a'}}}",
            format!("[{{'_id':{{'k':[null]}},'n':{expected},'m':0}}]"),
        ),
        (
            "{'$group': {'_id': null, 'n': {'$sum': -2.0}, 'm': {'$sum': {'$literal': 3}}}}",
            format!("[{{'_id':null,'n':{}.0,'m':{}}}]", -2 * expected, 3 * expected),
        ),
        (
            "{'$sort': {'pad': 1, 'a': -1}}, {'$skip': 100}, {'$count': 'n'}",
            if 0 < left { format!("[{{'n':{left}}}]") } else { "[]".to_owned() },
        ),
        (
            "{'$limit': 30}, {'$group': {'_id': null, 'n': {'$sum': 1}}}, {'$set': {'m': 1}}",
            format!("[{{'_id':null,'n':{},'m':1}}]", expected.min(30)),
        ),
    ]
    .map(|(stages, answer)| (format!("[{{'$match': {filter}}}, {stages}]"), answer))
    .into()
}

#[test]
fn ranges_without_counts_are_read() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1, 'a': [1, 2]}, {'_id': 2, 'a': 2}, {'_id': 3, 'a': []}]");
    let spec = IndexSpec::parse(json("{'key': {'a': 1}}").view()).expect("an index");
    shop.create_indexes("things", &[spec]).expect("made");
    for (filter, expected) in [("{'a': {'$gte': 1}}", 2), ("{'a': 2}", 2), ("{'a': {'$ne': 2}}", 1)]
    {
        for (stages, answer) in worded(filter, expected) {
            let found = aggregate(&shop, Some("things"), &stages).expect("right");
            assert_eq!(texts(&found), answer, "{stages}");
        }
    }
    // An expression that fails over a document fails, though it is a count that is asked for.
    let failing = "[{'$set': {'b': {'$divide': [1, {'$size': '$a'}]}}}, {'$count': 'n'}]";
    assert!(aggregate(&shop, Some("things"), failing).is_err());
    // Sums that depend on how they are added up: a thousandth thrice, and decimals.
    let sums =
        "[{'$group': {'_id': 1, 'n': {'$sum': 0.001}, 'd': {'$sum': {'$numberDecimal': '0.1'}}}}]";
    let found = aggregate(&shop, Some("things"), sums).expect("right");
    assert_eq!(texts(&found), "[{'_id':1,'n':0.003,'d':{'$numberDecimal':'0.3'}}]");
    assert_eq!(texts(&aggregate(&shop, Some("none"), "[{'$count': 'n'}]").expect("right")), "[]");
    // The transaction's own writes count.
    let transaction = shop.frond().begin();
    let inside = transaction.database("shop").expect("opens");
    insert(&inside, "things", "[{'_id': 4, 'a': 7}, {'_id': 5, 'a': 7}]");
    assert_eq!(delete(&inside, "things", "{'_id': 2}"), 1);
    for (filter, expected) in [("{}", 4), ("{'a': {'$gte': 1}}", 3), ("{'_id': {'$gt': 1}}", 3)] {
        for (stages, answer) in worded(filter, expected) {
            let found = aggregate(&inside, Some("things"), &stages).expect("right");
            assert_eq!(texts(&found), answer, "{stages}");
        }
    }
    transaction.abort();
}

#[test]
fn a_skip_by_counts_is_right_under_writers() {
    let shop = shop();
    let make = |id: i32| document! { "_id": id, "a": id % 100 };
    let all: Vec<DocumentBuf> = (0..4_000).step_by(2).map(make).collect();
    assert_eq!(try_insert(&shop, "things", &all).count, 2_000);
    let spec = IndexSpec::parse(json("{'key': {'a': 1}}").view()).expect("an index");
    shop.create_indexes("things", &[spec]).expect("made");
    shop.frond().engine().checkpoint().expect("folded");
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for id in (1..4_000).step_by(2) {
                insert(&shop, "things", &format!("[{{'_id': {id}, 'a': {}}}]", id % 97));
                delete(&shop, "things", &format!("{{'_id': {}}}", (id * 3 + 1) % 4_000));
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let mut skip = 0;
        while !done.load(std::sync::atomic::Ordering::Relaxed) {
            skip = (skip + 301) % 1_500;
            for (field, rest) in [("_id", ""), ("a", ", '_id': 1")] {
                // Both are of one snapshot; the sort has no index.
                let sorted = format!("{{'$sort': {{'sum': 1, '{field}': 1{rest}}}}}");
                let stages = format!(
                    "[{{'$sort': {{'{field}': 1}}}}, {{'$skip': {skip}}}, {{'$limit': 1}},
                    {{'$unionWith': {{'coll': 'things', 'pipeline': [{sorted}, {{'$group': {{
                        '_id': null, 'all': {{'$push': '${field}'}}}}}}]}}}}]"
                );
                let found = aggregate(&shop, Some("things"), &stages).expect("right");
                let all = found[1].get("all").and_then(|all| all.as_array()).expect("all");
                let expected = all.iter().nth(skip).expect("there are more");
                assert_eq!(found[0].get(field), Some(expected), "{field} {skip}");
            }
        }
    });
    // The transaction's own writes count.
    let transaction = shop.frond().begin();
    let inside = transaction.database("shop").expect("opens");
    insert(&inside, "things", "[{'_id': -2, 'a': -1}, {'_id': -1, 'a': 200}]");
    for (field, skip, expected) in [("_id", 0, -2), ("_id", 1, -1), ("a", 0, -1)] {
        let stages =
            format!("[{{'$sort': {{'{field}': 1}}}}, {{'$skip': {skip}}}, {{'$limit': 1}}]");
        let found = aggregate(&inside, Some("things"), &stages).expect("right");
        assert_eq!(found[0].get(field).and_then(|it| it.as_integer()), Some(expected));
    }
    let last = "[{'$sort': {'a': 1}}, {'$skip': 300}]";
    let found = aggregate(&inside, Some("things"), last).expect("right");
    assert_eq!(found.last().and_then(|it| it.get("a")?.as_integer()), Some(200));
    transaction.abort();
}

/// A plan may use an index's counts at no cost: a filter that most documents pass is counted by the
/// index.
#[test]
fn skipping_by_counts_reads_no_documents() {
    let shop = shop();
    let make = |id: i32| document! { "_id": id, "a": (id * 7) % 1_000, "pad": "x" };
    let spec = IndexSpec::parse(json("{'key': {'a': 1}}").view()).expect("an index");
    for first in (0..4_000).step_by(2_000) {
        let batch: Vec<DocumentBuf> = (first..first + 2_000).map(make).collect();
        assert_eq!(try_insert(&shop, "things", &batch).count, 2_000);
    }
    shop.create_indexes("things", &[spec]).expect("made");
    shop.frond().engine().checkpoint().expect("folded");
    for (filter, skip, found) in [
        ("{'a': {'$gt': 9}}", 3_000, 3),
        ("{'a': {'$gte': 0, '$lt': 2000}}", 3_998, 2),
        ("{'a': {'$gt': 9}}", 3_959, 1),
        ("{'a': {'$gt': 9}}", 3_960, 0),
    ] {
        let request = FindRequest { skip, limit: Some(3), ..request(filter) };
        let explained = shop
            .explain_as("things", &request, frond_db::Purpose::Find, frond_db::Effort::Run)
            .expect("explained");
        assert_eq!(examined(&explained, "totalDocsExamined"), found, "{filter} {skip}");
        let stages = format!("[{{'$match': {filter}}}, {{'$skip': {skip}}}, {{'$limit': 3}}]");
        for documents in [
            run(&shop, "things", &request).expect("found"),
            aggregate(&shop, Some("things"), &stages).expect("found"),
        ] {
            assert_eq!(documents.len() as i64, found, "{filter} {skip}");
        }
    }
    // Where nothing counts, fewer are read without the index.
    let request =
        FindRequest { skip: 2_000, limit: Some(3), ..request("{'a': {'$gt': 9}, 'pad': 'x'}") };
    let explained = shop
        .explain_as("things", &request, frond_db::Purpose::Find, frond_db::Effort::Run)
        .expect("explained");
    assert!(stages(&explained).contains("COLLSCAN"), "{}", stages(&explained));
}
