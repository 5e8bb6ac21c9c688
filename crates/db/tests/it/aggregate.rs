//! Goal: pipelines read and write collections through the database: by an index, at one snapshot,
//! `$lookup` in other collections, `$out` all at once. Method: small collections.

use frond_db::FindRequest;
use frond_db::catalog::IndexSpec;
use frond_query::Code;

use crate::support::*;

const ORDERS: &str = "[{'_id': 1, 'item': 'a', 'n': 2}, {'_id': 2, 'item': 'b', 'n': 3},
    {'_id': 3, 'item': 'a', 'n': 5}]";

#[test]
fn pipelines_read_collections() {
    let shop = shop();
    insert(&shop, "orders", ORDERS);
    insert(&shop, "items", "[{'_id': 'a', 'price': 10}, {'_id': 'b', 'price': 20}]");
    let check = |pipeline: &str, expected: &str| {
        let found = aggregate(&shop, Some("orders"), pipeline).expect("the pipeline is right");
        assert_eq!(texts(&found), expected, "{pipeline}");
    };
    check(
        "[]",
        "[{'_id':1,'item':'a','n':2},{'_id':2,'item':'b','n':3},{'_id':3,'item':'a','n':5}]",
    );
    check(
        "[{'$match': {'n': {'$gt': 2}}}, {'$project': {'n': 1}}]",
        "[{'_id':2,'n':3},{'_id':3,'n':5}]",
    );
    check(
        "[{'$group': {'_id': '$item', 'sum': {'$sum': '$n'}}}, {'$sort': {'_id': 1}}]",
        "[{'_id':'a','sum':7},{'_id':'b','sum':3}]",
    );
    check("[{'$count': 'count'}]", "[{'count':3}]");
    check(
        "[{'$match': {'_id': 2}}, {'$lookup': {'from': 'items', 'localField': 'item',
           'foreignField': '_id', 'as': 'i'}}, {'$project': {'i': 1}}]",
        "[{'_id':2,'i':[{'_id':'b','price':20}]}]",
    );
    let found = aggregate(&shop, Some("nothing"), "[{'$match': {'a': 1}}]").expect("nothing");
    assert!(found.is_empty());
}

#[test]
fn out_replaces_a_collection() {
    let shop = shop();
    insert(&shop, "orders", ORDERS);
    let spec = IndexSpec::parse(json("{'key': {'sum': 1}, 'unique': true}").view());
    shop.create_indexes("sums", &[spec.expect("a proper index")]).expect("made");
    insert(&shop, "sums", "[{'_id': 'old', 'sum': 1}]");
    let pipeline = "[{'$group': {'_id': '$item', 'sum': {'$sum': '$n'}}}, {'$out': 'sums'}]";
    let found = aggregate(&shop, Some("orders"), pipeline).expect("the pipeline is right");
    assert!(found.is_empty());
    assert_eq!(all(&shop, "sums"), "[{'_id':'a','sum':7},{'_id':'b','sum':3}]");
    assert_eq!(shop.list_indexes("sums").expect("listed").len(), 2);
    assert_eq!(find(&shop, "sums", "{'sum': 3}"), "[{'_id':'b','sum':3}]");
    // Documents that would break a unique index change nothing.
    let wrong = "[{'$project': {'sum': {'$literal': 1}}}, {'$out': 'sums'}]";
    let error = aggregate(&shop, Some("orders"), wrong).unwrap_err();
    assert_eq!(error.code, Code::DuplicateKey);
    assert_eq!(all(&shop, "sums"), "[{'_id':'a','sum':7},{'_id':'b','sum':3}]");
    // A new collection, and the collection that is read itself.
    aggregate(&shop, Some("orders"), "[{'$match': {'n': 5}}, {'$out': 'orders'}]").expect("right");
    assert_eq!(all(&shop, "orders"), "[{'_id':3,'item':'a','n':5}]");
    aggregate(&shop, Some("orders"), "[{'$out': 'copy'}]").expect("right");
    assert_eq!(all(&shop, "copy"), "[{'_id':3,'item':'a','n':5}]");
    insert(&shop, "copy", "[{'_id': 4}]");
    shop.frond().engine().checkpoint().expect("folded");
    shop.frond().engine().check().expect("every invariant holds");
}

#[test]
fn wrong_pipelines_are_refused() {
    let shop = shop();
    for pipeline in ["{}", "[{'$nope': 1}]", "[5]"] {
        assert!(aggregate(&shop, Some("orders"), pipeline).is_err(), "{pipeline}");
    }
    let error = aggregate(&shop, None, "[{'$match': {}}]").unwrap_err();
    assert_eq!(error.code, Code::InvalidNamespace);
}

#[test]
fn merge_writes_into_a_collection() {
    let shop = shop();
    insert(&shop, "orders", ORDERS);
    insert(&shop, "totals", "[{'_id': 'a', 'sum': 1, 'x': 1}, {'_id': 'z', 'sum': 0}]");
    let group = "{'$group': {'_id': '$item', 'sum': {'$sum': '$n'}}}";
    let run = |merge: &str| aggregate(&shop, Some("orders"), &format!("[{group}, {merge}]"));
    run("{'$merge': 'totals'}").expect("right");
    assert_eq!(
        all(&shop, "totals"),
        "[{'_id':'a','sum':7,'x':1},{'_id':'b','sum':3},{'_id':'z','sum':0}]"
    );
    let error = run("{'$merge': {'into': 'totals', 'on': 'sum'}}").unwrap_err();
    assert_eq!(error.code, Code::Location(51183));
    let spec = IndexSpec::parse(json("{'key': {'sum': 1}, 'unique': true}").view());
    shop.create_indexes("totals", &[spec.expect("a proper index")]).expect("made");
    let by_sum =
        "[{'$group': {'_id': null, 'sum': {'$max': '$n'}}}, {'$set': {'_id': 'new', 'sum': 3}},
        {'$unset': '_id'}, {'$merge': {'into': 'totals', 'on': 'sum',
         'whenMatched': [{'$set': {'seen': '$$new.sum'}}]}}]";
    aggregate(&shop, Some("orders"), by_sum).expect("right");
    assert_eq!(find(&shop, "totals", "{'sum': 3}"), "[{'_id':'b','sum':3,'seen':3}]");
    let error = run("{'$merge': {'into': 'totals', 'whenMatched': 'fail'}}").unwrap_err();
    assert_eq!(error.code, Code::DuplicateKey);
    // Into the collection that is read, and into one that isn't there.
    aggregate(&shop, Some("orders"), "[{'$set': {'n': 0}}, {'$merge': 'orders'}]").expect("right");
    assert_eq!(find(&shop, "orders", "{'n': {'$ne': 0}}"), "[]");
    run("{'$merge': {'into': {'db': 'other', 'coll': 'made'}}}").expect("right");
    let other = shop.frond().database("other").expect("a proper name");
    assert_eq!(all(&other, "made"), "[{'_id':'a','sum':0},{'_id':'b','sum':0}]");
}

#[test]
fn sorts_and_groups_go_to_disk_and_leave_nothing_there() {
    let disk = frond_testkit::SimDisk::new(1);
    let options = frond_db::FrondOptions {
        stage_memory_bytes_max: Some(2_000),
        ..frond_db::FrondOptions::default()
    };
    let machine = disk.machine();
    machine.disk.create("spill-left").expect("made"); // As a crash leaves one.
    let frond = frond_vcs::open_on(&machine, options).expect("opens");
    let left =
        || machine.disk.list().expect("listed").into_iter().any(|name| name.contains("spill"));
    assert!(!left());
    let shop = frond.database("shop").expect("a proper name");
    let documents: Vec<String> =
        (0..200).map(|n| format!("{{'_id': {n}, 'k': {}}}", n % 17)).collect();
    insert(&shop, "many", &format!("[{}]", documents.join(",")));
    let sorted = FindRequest { sort: Some(json("{'k': -1, '_id': 1}")), ..FindRequest::default() };
    let mut cursor = shop.find("many", &sorted).expect("right");
    assert_eq!(cursor.next().expect("one").map(|d| text(&d)).expect("read"), "{'_id':16,'k':16}");
    assert!(left());
    let rest: Result<Vec<_>, _> = cursor.collect();
    assert_eq!(rest.expect("read").len(), 199);
    assert!(!left());
    let group = "[{'$group': {'_id': '$k', 'ids': {'$push': '$_id'}}}, {'$sort': {'_id': 1}}, {'$limit': 1}]";
    let found = aggregate(&shop, Some("many"), group).expect("right");
    assert!(texts(&found).starts_with("[{'_id':0,'ids':[0,17,34"), "{found:?}");
    assert_eq!(frond.temporary_disk_bytes(), 0);
    let in_memory = FindRequest { in_memory_only: true, ..sorted };
    let error = shop.find("many", &in_memory).map(|_| ()).unwrap_err();
    assert_eq!(error.code.number(), 292);
    let stopped = FindRequest {
        sort: Some(json("{'k': 1}")),
        interrupt: frond_db::Interrupt::new(|| {
            Err(frond_db::Error::invalid(Code::Interrupted, "stop"))
        }),
        ..FindRequest::default()
    };
    let error = shop.find("many", &stopped).map(|_| ()).unwrap_err();
    assert_eq!(error.code, Code::Interrupted);
    assert!(!left());
}

#[test]
fn temporary_files_take_no_more_than_they_may_together() {
    let options = frond_db::FrondOptions {
        stage_memory_bytes_max: Some(2_000),
        temporary_disk_bytes_max: Some(20_000),
        ..frond_db::FrondOptions::default()
    };
    let machine = frond_testkit::SimDisk::new(2).machine();
    let frond = frond_vcs::open_on(&machine, options).expect("opens");
    let shop = frond.database("shop").expect("a proper name");
    let documents: Vec<String> =
        (0..200).map(|n| format!("{{'_id': {n}, 'k': {}}}", n % 17)).collect();
    insert(&shop, "many", &format!("[{}]", documents.join(",")));
    let sorted = FindRequest { sort: Some(json("{'k': 1}")), ..FindRequest::default() };
    let mut cursors = Vec::new();
    let error = loop {
        let mut cursor = match shop.find("many", &sorted) {
            Ok(cursor) => cursor,
            Err(error) => break error,
        };
        assert!(cursor.next().expect("one").is_ok());
        cursors.push(cursor);
        assert!(frond.temporary_disk_bytes() <= 20_000);
        assert!(cursors.len() < 20, "twenty sorts of 5 KB");
    };
    assert_eq!(error.code, Code::OutOfDiskSpace);
    assert!(cursors.len() > 1);
    drop(cursors);
    assert_eq!(frond.temporary_disk_bytes(), 0);
    assert!(shop.find("many", &sorted).is_ok());
}

#[test]
fn out_is_sorted_on_disk_where_it_is_more_than_memory_holds() {
    let options = frond_db::FrondOptions {
        stage_memory_bytes_max: Some(2_000),
        ..frond_db::FrondOptions::default()
    };
    let machine = frond_testkit::SimDisk::new(3).machine();
    let frond = frond_vcs::open_on(&machine, options).expect("opens");
    let shop = frond.database("shop").expect("a proper name");
    let large = "x".repeat(40_000);
    let document = |n: i32| {
        let text = if n % 50 == 0 { &large[..] } else { "" };
        format!("{{'_id': {}, 'k': {}, 'h': [1, 2, 3], 't': '{text}'}}", n * 7 % 300, n % 17)
    };
    let documents: Vec<String> = (0..300).map(document).collect();
    insert(&shop, "many", &format!("[{}]", documents.join(",")));
    insert(&shop, "copy", "[{'_id': 'old', 'k': 1}]");
    let spec = IndexSpec::parse(json("{'key': {'k': 1}}").view());
    shop.create_indexes("copy", &[spec.expect("a proper index")]).expect("made");
    for stages in [
        "{'$match': {}}",
        "{'$sort': {'k': 1, '_id': 1}}",
        "{'$sort': {'k': 1, '_id': -1}}, {'$limit': 250}",
        "{'$set': {'k': {'$add': ['$k', 1]}}}",
        "{'$project': {'t': 0}}",
        "{'$unwind': '$h'}, {'$set': {'_id': {'$add': [{'$multiply': ['$_id', 4]}, '$h']}}}",
    ] {
        let by_id = format!("[{stages}, {{'$sort': {{'_id': 1}}}}]");
        let expected = aggregate(&shop, Some("many"), &by_id).expect("right");
        let out = format!("[{stages}, {{'$out': 'copy'}}]");
        aggregate(&shop, Some("many"), &out).expect("right");
        assert_eq!(all(&shop, "copy"), texts(&expected), "{stages}");
        let few: Vec<_> =
            expected.into_iter().filter(|it| it.get("k") == Some(3_i32.into())).collect();
        assert!(!few.is_empty());
        let found = aggregate(&shop, Some("copy"), "[{'$match': {'k': 3}}, {'$sort': {'_id': 1}}]");
        assert_eq!(texts(&found.expect("right")), texts(&few), "by the index, {stages}");
        assert_eq!((frond.temporary_disk_bytes(), frond.stages_memory_bytes()), (0, 0));
    }
    let before = all(&shop, "copy");
    let twice = "[{'$set': {'_id': {'$mod': ['$_id', 100]}}}, {'$out': 'copy'}]";
    let error = aggregate(&shop, Some("many"), twice).unwrap_err();
    assert_eq!(error.code, Code::DuplicateKey);
    assert_eq!(all(&shop, "copy"), before);
    shop.frond().engine().checkpoint().expect("folded");
    shop.frond().engine().check().expect("every invariant holds");
}
