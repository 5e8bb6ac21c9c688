//! Goal: each kind of index has the right keys, is maintained by every way of writing, and is used
//! where it may be. Method: tables of requests with the plan that must answer them, and
//! `check_collection`, which compares indexes with documents, after writes, builds among writers,
//! and merges.

use std::sync::atomic::{AtomicBool, Ordering};

use frond_db::catalog::{IndexChange, IndexSpec};
use frond_db::{Database, Effort, FindRequest, FrondOptions, Interrupt, Purpose};
use frond_doc::{DocumentBuf, Value, document};
use frond_query::Code;
use frond_testkit::SimDisk;
use frond_vcs::MergeRequest;
use frond_vcs::Repository;

use crate::support::*;

fn spec(text: &str) -> IndexSpec {
    IndexSpec::parse(json(text).view()).expect("a proper index")
}

fn with_indexes(specs: &[&str]) -> Repository {
    let shop = shop();
    let documents: Vec<DocumentBuf> = (0..200)
        .map(|n| document! { "_id": n, "a": n % 10, "b": n, "c": &format!("c{}", n % 7), "d": n % 3 })
        .collect();
    assert_eq!(try_insert(&shop, "things", &documents).count, 200);
    let specs: Vec<IndexSpec> = specs.iter().map(|text| spec(text)).collect();
    shop.create_indexes("things", &specs).expect("built");
    shop
}

fn check_valid(database: &Database) {
    let checked = database.check_collection("things", &Interrupt::default()).expect("read");
    assert!(checked.is_valid(), "{:?}", checked.errors());
}

/// The stages, and what was returned and examined.
fn plan(database: &Database, request: &FindRequest) -> (String, [i64; 3]) {
    let explained = database.explain("things", request).expect("the request is right");
    let names = ["nReturned", "totalKeysExamined", "totalDocsExamined"];
    (stages(&explained), names.map(|name| examined(&explained, name)))
}

fn projected(filter: &str, projection: &str) -> FindRequest {
    FindRequest { projection: Some(json(projection)), ..request(filter) }
}

#[test]
fn kinds_are_used_where_they_may_be() {
    let fetched = "FETCH IXSCAN";
    for (index, filter, stages, counters) in [
        ("{'key': {'a': 'hashed'}}", "{'a': 3}", fetched, [20, 20, 20]),
        ("{'key': {'a': 'hashed'}}", "{'a': {'$in': [3, 4]}}", fetched, [40, 40, 40]),
        ("{'key': {'a': 'hashed'}}", "{'a': {'$gt': 8}}", "COLLSCAN", [20, 0, 200]),
        ("{'key': {'$**': 1}}", "{'a': 3}", fetched, [20, 20, 20]),
        ("{'key': {'$**': 1}}", "{'b': {'$gte': 190}}", fetched, [10, 10, 10]),
        ("{'key': {'$**': 1}}", "{'a': null}", "COLLSCAN", [0, 0, 200]),
        (
            "{'key': {'a': 1}, 'partialFilterExpression': {'b': {'$gt': 100}}}",
            "{'a': 3}",
            "COLLSCAN",
            [20, 0, 200],
        ),
        (
            "{'key': {'a': 1}, 'partialFilterExpression': {'b': {'$gt': 100}}}",
            "{'a': 3, 'b': {'$gt': 150}}",
            fetched,
            [5, 10, 10],
        ),
        ("{'key': {'a': 1}, 'hidden': true}", "{'a': 3}", "COLLSCAN", [20, 0, 200]),
        ("{'key': {'a': 1}, 'clustering': true}", "{'a': 3}", "IXSCAN", [20, 20, 0]),
        // The second field's bounds are checked in the keys, and ranges of it are sought.
        ("{'key': {'a': 1, 'b': 1}}", "{'a': {'$gte': 5}, 'b': 7}", fetched, [1, 10, 1]),
        // The key shows that the filter fails.
        ("{'key': {'a': 1, 'b': 1}}", "{'a': 3, 'b': {'$mod': [20, 3]}}", fetched, [10, 20, 10]),
    ] {
        let shop = with_indexes(&[index]);
        check_valid(&shop);
        let (plan, found) = plan(&shop, &request(filter));
        assert_eq!(plan, stages, "{index} {filter}");
        let [returned, keys, documents] = counters;
        assert_eq!((found[0], found[2]), (returned, documents), "{index} {filter}");
        assert!(keys <= found[1] && found[1] <= keys + 90, "{index} {filter} {found:?}");
    }
}

#[test]
fn covered_queries_give_values_back_exactly() {
    let shop = shop();
    shop.create_indexes("things", &[spec("{'key': {'a': 1, 'n.x': -1}}")]).expect("made");
    let decimal = frond_doc::extended_json::parse(
        r#"{"_id": 3.0, "a": {"$numberDecimal": "1.0"}, "n": {"x": {"$numberLong": "7"}}, "z": 1}"#,
    );
    let documents = [
        document! { "_id": 1, "a": 1, "n": &document! { "x": "s" }, "z": 1 },
        document! { "_id": 2_i64, "a": 1.0, "n": &document! { "x": Value::Null }, "z": 1 },
        decimal.expect("proper"),
        document! { "_id": "4", "z": 1 },
        document! { "_id": 5, "a": Value::Null, "n": 5, "z": 1 },
    ];
    assert_eq!(try_insert(&shop, "things", &documents).count, 5);
    for projection in ["{'a': 1, 'n.x': 1}", "{'a': 1, '_id': 0}", "{'_id': 1}", "{'n.x': 1}"] {
        for filter in ["{'a': 1}", "{'a': null}", "{'a': {'$gte': 0}, 'n.x': {'$ne': 's'}}"] {
            let covered =
                FindRequest { hint: Some(value("'a_1_n.x_-1'")), ..projected(filter, projection) };
            let natural = FindRequest { hint: Some(value("{'$natural': 1}")), ..covered.clone() };
            let shown = |request: &FindRequest| {
                let found = run(&shop, "things", request).expect("right");
                let mut shown: Vec<String> =
                    found.iter().map(|document| format!("{document:?}")).collect();
                shown.sort();
                shown
            };
            assert_eq!(shown(&covered), shown(&natural), "{filter} {projection}");
            let (stages, _) = plan(&shop, &covered);
            assert_eq!(stages, "PROJECTION_COVERED IXSCAN", "{filter} {projection}");
        }
    }
    let (_, counters) = plan(&shop, &projected("{'a': 1}", "{'a': 1, '_id': 0}"));
    assert_eq!(counters, [3, 3, 0]);
}

#[test]
fn included_fields_cover_queries() {
    let shop = with_indexes(&["{'key': {'a': 1}, 'include': ['b', 'c']}"]);
    let (stages, counters) = plan(&shop, &projected("{'a': 3, 'c': 'c3'}", "{'b': 1}"));
    assert_eq!(
        (stages.as_str(), counters[1..].to_vec()),
        ("PROJECTION_COVERED IXSCAN", vec![20, 0])
    );
    let (stages, _) = plan(&shop, &projected("{'a': 3}", "{'d': 1}"));
    assert_eq!(stages, "PROJECTION_SIMPLE FETCH IXSCAN");
    update(&shop, "things", statement("{'_id': 3}", "{'$set': {'b': 'new'}}"));
    let found =
        run(&shop, "things", &projected("{'a': 3, 'b': 'new'}", "{'b': 1}")).expect("right");
    assert_eq!(texts(&found), "[{'_id':3,'b':'new'}]");
    check_valid(&shop);
}

#[test]
fn orders_unions_and_counts() {
    let shop = with_indexes(&["{'key': {'a': 1, 'b': -1}}", "{'key': {'d': 1, 'b': 1}}"]);
    let sort = |filter: &str, sort: &str, limit: u64| FindRequest {
        sort: Some(json(sort)),
        limit: Some(limit),
        ..request(filter)
    };
    let (stages, counters) = plan(&shop, &sort("{'a': {'$in': [1, 2, 3]}}", "{'b': -1}", 4));
    assert_eq!(stages, "LIMIT SORT_MERGE");
    assert!(counters[2] <= 7, "one more of each range at most: {counters:?}");
    let found =
        run(&shop, "things", &sort("{'a': {'$in': [1, 2, 3]}}", "{'b': -1}", 4)).expect("right");
    let ids: Vec<_> = found.iter().filter_map(|found| found.get("_id")?.as_integer()).collect();
    assert_eq!(ids, [193, 192, 191, 183]);
    let (stages, counters) =
        plan(&shop, &request("{'$or': [{'a': 1, 'b': 11}, {'d': 1, 'b': 13}]}"));
    assert_eq!((stages.as_str(), counters), ("OR", [2, 2, 2]));
    // Keys are counted, not documents; the tree counts ranges.
    let explained = |filter: &str| {
        let explained = shop.explain_as("things", &request(filter), Purpose::Count, Effort::Run);
        let explained = explained.expect("right");
        (
            stages_of(&explained),
            examined(&explained, "totalKeysExamined"),
            examined(&explained, "totalDocsExamined"),
        )
    };
    assert_eq!(explained("{'a': {'$gte': 3, '$lt': 5}}"), ("COUNT COUNT_SCAN".to_owned(), 0, 0));
    assert_eq!(explained("{'a': 3, 'd': 1}").0, "COUNT FETCH IXSCAN");
    assert_eq!(explained("{}"), ("COUNT RECORD_STORE_FAST_COUNT".to_owned(), 0, 0));
    let (stages, keys, documents) = explained("{'a': {'$gte': 8}, 'b': {'$lt': 50}}");
    assert_eq!((stages.as_str(), documents), ("COUNT COUNT_SCAN", 0));
    assert!((10..60).contains(&keys), "{keys}");
    let counted = json("{'a': {'$gte': 8}, 'b': {'$lt': 50}}");
    assert_eq!(shop.count("things", &FindRequest::of(counted.view())).expect("right"), 10);
}

fn stages_of(explained: &DocumentBuf) -> String {
    stages(explained)
}

#[test]
fn min_and_max_bound_a_hinted_index() {
    let shop = with_indexes(&["{'key': {'a': 1, 'b': 1}}"]);
    let between = |min: &str, max: &str, hint: Option<&str>| FindRequest {
        min: Some(json(min)),
        max: Some(json(max)),
        hint: hint.map(value),
        ..request("{'d': 0}")
    };
    let hint = Some("{'a': 1, 'b': 1}");
    let found = run(&shop, "things", &between("{'a': 3, 'b': 180}", "{'a': 4, 'b': 20}", hint));
    let ids: Vec<_> =
        found.expect("right").iter().filter_map(|found| found.get("_id")?.as_integer()).collect();
    assert_eq!(ids, [183]);
    let ids = run(&shop, "things", &between("{'_id': 3}", "{'_id': 7}", Some("'_id_'")));
    assert_eq!(ids.expect("right").len(), 2);
    for (min, max, hint, code) in [
        ("{'a': 1, 'b': 1}", "{'a': 2, 'b': 1}", None, 51173),
        ("{'a': 1}", "{'a': 2}", hint, 51174),
        ("{'a': 1, 'b': 1}", "{'a': 2}", hint, 51176),
        ("{'a': 1, 'b': 1}", "{'b': 2, 'a': 1}", None, 51176),
        ("{'a': 2, 'b': 1}", "{'a': 1, 'b': 1}", hint, 51175),
    ] {
        let error = run(&shop, "things", &between(min, max, hint)).expect_err("refused");
        assert_eq!(error.code.number(), code, "{min} {max}");
    }
}

#[test]
fn documents_expire() {
    let shop = shop();
    let documents = [
        document! { "_id": 1, "at": Value::DateTime(1_000) },
        document! { "_id": 2, "at": Value::DateTime(i64::MAX / 2) },
        document! { "_id": 3, "at": "yesterday" },
        document! { "_id": 4 },
        document! { "_id": 5, "at": Value::DateTime(1_000), "keep": true },
    ];
    try_insert(&shop, "things", &documents);
    insert(&shop, "others", "[{'_id': 1, 'at': 5}]");
    let partial = "{'key': {'at': 1}, 'expireAfterSeconds': 5, \
                   'partialFilterExpression': {'keep': {'$exists': true}}, 'name': 'kept'}";
    shop.create_indexes("things", &[spec("{'key': {'at': 1}, 'hidden': true}")]).expect("made");
    assert_eq!(shop.frond().expire_documents(&Interrupt::default()).expect("done"), 0);
    let change =
        |seconds| IndexChange { expire_after_seconds: Some(seconds), ..Default::default() };
    shop.create_indexes("things", &[spec(partial)]).expect("made");
    assert_eq!(shop.frond().expire_documents(&Interrupt::default()).expect("done"), 1);
    shop.change_index("things", &value("'at_1'"), &change(60)).expect("changed");
    assert_eq!(shop.frond().expire_documents(&Interrupt::default()).expect("done"), 1);
    assert_eq!(shop.count("things", &FindRequest::default()).expect("right"), 3);
    check_valid(&shop);
    let options =
        json("{'clusteredIndex': {'key': {'_id': 1}, 'unique': true}, 'expireAfterSeconds': 5.5}");
    shop.create_collection("clustered", options.view()).expect("made");
    let documents = [document! { "_id": Value::DateTime(1_000) }, document! { "_id": 5 }];
    try_insert(&shop, "clustered", &documents);
    assert_eq!(shop.frond().expire_documents(&Interrupt::default()).expect("done"), 1);
    let indexes = shop.describe_indexes("clustered").expect("listed");
    assert_eq!(
        text(&indexes[0]),
        "{'v':2,'key':{'_id':1},'name':'_id_','unique':true,'clustered':true}"
    );
}

#[test]
fn indexes_are_changed() {
    let shop = with_indexes(&["{'key': {'a': 1}}", "{'key': {'b': 1, 'a': 1}}"]);
    let change =
        |index: &str, change: IndexChange| shop.change_index("things", &value(index), &change);
    let hidden = |hidden| IndexChange { hidden: Some(hidden), ..Default::default() };
    let (before, after) = change("{'a': 1}", hidden(true)).expect("changed");
    assert_eq!((before.hidden, after.hidden), (false, true));
    assert_eq!(plan(&shop, &request("{'a': 1}")).0, "COLLSCAN");
    change("'a_1'", hidden(false)).expect("changed");
    assert_eq!(plan(&shop, &request("{'a': 1}")).0, "FETCH IXSCAN");
    let renamed = |name: &str| IndexChange { name: Some(name.to_owned()), ..Default::default() };
    change("'a_1'", renamed("by a")).expect("changed");
    let names: Vec<String> =
        shop.list_indexes("things").expect("listed").into_iter().map(|spec| spec.name).collect();
    assert!(names.contains(&"by a".to_owned()) && !names.contains(&"a_1".to_owned()), "{names:?}");
    let expire = IndexChange { expire_after_seconds: Some(5), ..Default::default() };
    for (index, wrong, code) in [
        ("'nope'", hidden(true), Code::IndexNotFound),
        ("'_id_'", hidden(true), Code::BadValue),
        ("'by a'", renamed("b_1_a_1"), Code::IndexKeySpecsConflict),
        ("'b_1_a_1'", expire, Code::CannotCreateIndex),
    ] {
        assert_eq!(change(index, wrong).expect_err("refused").code, code, "{index}");
    }
}

#[test]
fn equivalent_indexes_conflict() {
    let shop = with_indexes(&["{'key': {'a': 1}}"]);
    let create = |text: &str| shop.create_indexes("things", &[spec(text)]).map(|made| made.after);
    for (text, code) in [
        ("{'key': {'a': 1}, 'name': 'other'}", Code::IndexOptionsConflict),
        ("{'key': {'a': 1}, 'expireAfterSeconds': 5}", Code::IndexOptionsConflict),
        ("{'key': {'a': 1}, 'include': ['b'], 'name': 'x'}", Code::IndexOptionsConflict),
        ("{'key': {'b': 1}, 'name': 'a_1'}", Code::IndexKeySpecsConflict),
        ("{'key': {'a': 1}, 'partialFilterExpression': {'b': 1}}", Code::IndexKeySpecsConflict),
    ] {
        assert_eq!(create(text).expect_err("refused").code, code, "{text}");
    }
    assert_eq!(create("{'key': {'a': 1}}").ok(), Some(2));
    let partial = create("{'key': {'a': 1}, 'partialFilterExpression': {'b': 1}, 'name': 'p'}");
    assert_eq!(partial.ok(), Some(3));
}

#[test]
fn versions_carry_all_kinds() {
    let frond = open();
    let main = Repository::open(&frond, "shop").expect("a proper name");
    insert(&main, "things", "[{'_id': 1, 'a': 1, 'b': {'c': 1}, 'h': 5}, {'_id': 2, 'a': 2}]");
    let specs = [
        "{'key': {'a': 1}, 'partialFilterExpression': {'h': {'$gt': 3}}, 'unique': true}",
        "{'key': {'h': 'hashed'}}",
        "{'key': {'$**': 1}, 'wildcardProjection': {'b': 1}}",
        "{'key': {'a': -1}, 'include': ['b.c']}",
        "{'key': {'h': 1, 'a': 1}, 'clustering': true, 'hidden': true}",
    ];
    let specs: Vec<IndexSpec> = specs.iter().map(|text| spec(text)).collect();
    main.create_indexes("things", &specs).expect("built");
    main.commit("first", "").expect("committed");
    main.create_branch("side", None).expect("made");
    let side = Repository::open(&frond, "shop@side").expect("there");
    insert(&side, "things", "[{'_id': 3, 'a': 3, 'b': {'c': [1, 2]}, 'h': 9}]");
    update(&side, "things", statement("{'_id': 1}", "{'$set': {'h': 1}}"));
    side.commit("side", "").expect("committed");
    insert(&main, "things", "[{'_id': 4, 'a': 4, 'h': 7, 'b': {'c': 's'}}]");
    update(&main, "things", statement("{'_id': 1}", "{'$set': {'b.c': 2}}"));
    main.merge(&MergeRequest { merge_in: "side".to_owned(), ..Default::default() })
        .expect("merged");
    for name in ["shop", "shop@side", "shop@HEAD", "shop@HEAD~1"] {
        let version = Repository::open(&frond, name).expect("there");
        check_valid(&version);
        let mut listed = version.list_indexes("things").expect("listed");
        listed.retain(|spec| !spec.is_id());
        listed.sort_by(|left, right| left.name.cmp(&right.name));
        let mut expected = specs.clone();
        expected.sort_by(|left, right| left.name.cmp(&right.name));
        assert_eq!(listed, expected, "{name}");
    }
    let found = find(&main, "things", "{'a': 3, 'h': {'$gt': 4}}");
    assert_eq!(found, "[{'_id':3,'a':3,'b':{'c':[1,2]},'h':9}]");
}

#[test]
fn indexes_are_built_while_writers_go_on_and_in_little_memory() {
    let options = FrondOptions { stage_memory_bytes_max: Some(20_000), ..FrondOptions::default() };
    let frond = frond_vcs::open_on(&SimDisk::new(1).machine(), options).expect("opens");
    let shop = Repository::open(&frond, "shop").expect("a proper name");
    let documents: Vec<DocumentBuf> =
        (0..3_000).map(|n| document! { "_id": n, "a": (n * 7919) % 3_000, "b": "x" }).collect();
    assert_eq!(try_insert(&shop, "things", &documents).count, 3_000);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 3_000;
            while !stop.load(Ordering::Relaxed) {
                try_insert(&shop, "things", &[document! { "_id": n, "a": n, "b": "y" }]);
                let filter = format!("{{'_id': {}}}", n % 500);
                update(&shop, "things", statement(&filter, "{'$set': {'b': 'z'}}"));
                n += 1;
            }
        });
        for text in ["{'key': {'a': 1}, 'unique': true}", "{'key': {'b': 1}, 'include': ['a']}"] {
            shop.create_indexes("things", &[spec(text)]).expect("built");
        }
        stop.store(true, Ordering::Relaxed);
    });
    check_valid(&shop);
    assert!(frond.index_builds().is_empty());
    let refused = Interrupt::new(|| Err(frond_db::Error::invalid(Code::Interrupted, "killed")));
    let error =
        shop.create_indexes_unless("things", &[spec("{'key': {'b': 1, 'a': 1}}")], &refused);
    assert_eq!(error.expect_err("killed").code, Code::Interrupted);
    assert_eq!(shop.list_indexes("things").expect("listed").len(), 3);
    insert(&shop, "things", "[{'_id': 'x', 'a': 'same'}]");
    let again = "{'key': {'b': 1, 'c': 1}, 'unique': true}";
    let error = shop.create_indexes("things", &[spec(again)]).expect_err("refused");
    assert_eq!(error.code, Code::DuplicateKey);
    assert!(error.details.is_some());
}

#[test]
fn uses_are_counted() {
    let shop = with_indexes(&["{'key': {'a': 1}}", "{'key': {'b': 1}}"]);
    for _ in 0..3 {
        run(&shop, "things", &request("{'a': 1}")).expect("right");
    }
    let uses = shop.index_uses("things").expect("there");
    let uses: Vec<(String, u64)> = uses.into_iter().map(|(spec, uses)| (spec.name, uses)).collect();
    let expected = [("_id_", 0), ("a_1", 3), ("b_1", 0)];
    assert_eq!(uses, expected.map(|(name, uses)| (name.to_owned(), uses)));
}

#[test]
fn distinct_passes_over_equal_keys() {
    let shop = with_indexes(&["{'key': {'a': 1, 'b': 1}}"]);
    insert(
        &shop,
        "things",
        "[{'_id': 900}, {'_id': 901, 'a': null}, {'_id': 902, 'a': {'$numberDouble': '3'}}]",
    );
    let explained = |filter: &str| {
        let request = projected(filter, "{'_id': 0, 'a': 1}");
        let explained = shop.explain_as("things", &request, Purpose::Distinct, Effort::Run);
        let explained = explained.expect("right");
        (stages(&explained), examined(&explained, "totalKeysExamined"))
    };
    let (stages, keys) = explained("{}");
    assert_eq!(stages, "PROJECTION_COVERED DISTINCT_SCAN");
    assert!(keys < 100, "{keys} of 203 keys");
    assert_eq!(explained("{'a': {'$gte': 7}}").0, "PROJECTION_COVERED DISTINCT_SCAN");
    let distinct = shop.distinct("things", "a", &FindRequest::default()).expect("right");
    assert_eq!(distinct.len(), 11, "null and ten numbers");
    let filter = json("{'a': {'$gte': 7}}");
    let distinct = shop.distinct("things", "a", &FindRequest::of(filter.view())).expect("right");
    assert_eq!(distinct.len(), 3);
}
