//! Goal: find, count, distinct and explain give MongoDB's answers. Method: tables of requests.

use frond_db::catalog::IndexSpec;
use frond_db::{FindRequest, UpdateStatement};
use frond_doc::{DocumentBuf, document};
use frond_query::Code;

use crate::support::*;

const THINGS: &str = "[{'_id': 1, 'a': 3, 'b': 'x'}, {'_id': 2, 'a': 1, 'b': 'y'},
    {'_id': 3, 'a': 2, 'b': 'x'}, {'_id': 4, 'a': 2, 'b': 'z'}, {'_id': 5, 'a': [5, 0]}]";

fn ids(request: &FindRequest) -> String {
    let shop = shop();
    insert(&shop, "things", THINGS);
    let found = run(&shop, "things", request).expect("the request is right");
    let ids: Vec<i64> = found
        .iter()
        .map(|document| document.get("_id").and_then(|id| id.as_integer()).expect("a number"))
        .collect();
    format!("{ids:?}")
}

fn sorted(filter: &str, sort: &str) -> FindRequest {
    FindRequest { sort: Some(json(sort)), ..request(filter) }
}

#[test]
fn sorts_skips_and_limits() {
    assert_eq!(ids(&sorted("{}", "{'a': 1}")), "[5, 2, 3, 4, 1]");
    assert_eq!(ids(&sorted("{}", "{'a': -1}")), "[5, 1, 3, 4, 2]");
    assert_eq!(ids(&sorted("{}", "{'b': 1, '_id': -1}")), "[5, 3, 1, 2, 4]");
    assert_eq!(ids(&sorted("{}", "{'_id': -1}")), "[5, 4, 3, 2, 1]");
    assert_eq!(ids(&sorted("{'_id': {'$gt': 2}}", "{'_id': -1}")), "[5, 4, 3]");
    assert_eq!(ids(&sorted("{'_id': {'$in': [1, 4, 3]}}", "{'_id': -1}")), "[4, 3, 1]");
    assert_eq!(ids(&sorted("{}", "{'$natural': -1}")), "[5, 4, 3, 2, 1]");
    let limited = FindRequest { skip: 1, limit: Some(2), ..sorted("{}", "{'a': 1}") };
    assert_eq!(ids(&limited), "[2, 3]");
    let limited = FindRequest { skip: 1, limit: Some(2), ..request("{}") };
    assert_eq!(ids(&limited), "[2, 3]");
    let beyond = FindRequest { skip: 9, limit: Some(2), ..sorted("{}", "{'a': 1}") };
    assert_eq!(ids(&beyond), "[]");
}

#[test]
fn projections() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1, 'a': 3, 'b': 'x', 't': [1, 5, 9]}]");
    let projected = |filter: &str, projection: &str| {
        let request = FindRequest { projection: Some(json(projection)), ..request(filter) };
        texts(&run(&shop, "things", &request).expect("the request is right"))
    };
    assert_eq!(projected("{}", "{'a': 1}"), "[{'_id':1,'a':3}]");
    assert_eq!(projected("{}", "{'t': 0, 'b': 0}"), "[{'_id':1,'a':3}]");
    assert_eq!(projected("{'t': {'$gt': 4}}", "{'_id': 0, 't.$': 1}"), "[{'t':[5]}]");
    assert_eq!(projected("{}", "{'_id': 0, 'c': {'$add': ['$a', 1]}}"), "[{'c':4}]");
    assert_eq!(projected("{}", "{}"), "[{'_id':1,'a':3,'b':'x','t':[1,5,9]}]");
}

#[test]
fn a_commands_let_reaches_filter_and_projection() {
    let shop = shop();
    insert(&shop, "things", THINGS);
    let found = FindRequest {
        variables: Some(json("{'least': 2}")),
        projection: Some(json("{'_id': 1, 'l': '$$least'}")),
        ..request("{'$expr': {'$and': [{'$gt': ['$a', '$$least']}, {'$ne': ['$_id', 5]}]}}")
    };
    assert_eq!(texts(&run(&shop, "things", &found).expect("right")), "[{'_id':1,'l':2}]");
    let missing = FindRequest { variables: None, ..found };
    assert!(run(&shop, "things", &missing).is_err(), "the variable is not defined");
}

#[test]
fn counts() {
    let shop = shop();
    insert(&shop, "things", THINGS);
    let count = |filter: Option<&str>, skip, limit| {
        let request =
            FindRequest { filter: filter.map(json), skip, limit, ..FindRequest::default() };
        shop.count("things", &request).expect("the request is right")
    };
    assert_eq!(count(None, 0, None), 5);
    assert_eq!(count(Some("{}"), 2, None), 3);
    assert_eq!(count(None, 2, Some(1)), 1);
    assert_eq!(count(None, 9, None), 0);
    assert_eq!(count(Some("{'a': 2}"), 0, None), 2);
    assert_eq!(count(Some("{'a': 2}"), 1, None), 1);
    assert_eq!(count(Some("{'a': 2}"), 0, Some(1)), 1);
    assert_eq!(shop.count("nothing", &FindRequest::default()).expect("zero"), 0);
}

#[test]
fn distinct_values() {
    let shop = shop();
    insert(&shop, "things", THINGS);
    let distinct = |path: &str, filter: Option<&str>| {
        let request = FindRequest { filter: filter.map(json), ..FindRequest::default() };
        let values = shop.distinct("things", path, &request).expect("the request is right");
        let values: Vec<String> =
            values.iter().map(|value| format!("{:?}", value.as_value())).collect();
        values.join(" ")
    };
    assert_eq!(distinct("a", None), "Int32(0) Int32(1) Int32(2) Int32(3) Int32(5)");
    assert_eq!(distinct("b", Some("{'a': 2}")), "String(\"x\") String(\"z\")");
    assert_eq!(distinct("nope", None), "");
    insert(&shop, "things", "[{'_id': 6, 'a': 2.0}]");
    assert_eq!(distinct("a", Some("{'_id': {'$in': [3, 6]}}")), "Int32(2)");
}

#[test]
fn explain_names_the_stages() {
    let shop = shop();
    let documents: Vec<_> = (0..100).map(|n| document! { "_id": n, "a": n % 10, "b": n }).collect();
    assert_eq!(try_insert(&shop, "things", &documents).count, 100);
    let index = IndexSpec::parse(json("{'key': {'a': 1}}").view());
    shop.create_indexes("things", &[index.expect("a proper index")]).expect("built");
    let explain = |request: &FindRequest| shop.explain("things", request).expect("explained");
    let check = |request: FindRequest, expected: &str, counters: [i64; 3]| {
        let explained = explain(&request);
        assert_eq!(stages(&explained), expected, "{request:?}");
        let names = ["nReturned", "totalKeysExamined", "totalDocsExamined"];
        assert_eq!(names.map(|name| examined(&explained, name)), counters, "{request:?}");
    };
    check(request("{}"), "COLLSCAN", [100, 0, 100]);
    check(request("{'_id': 5}"), "EXPRESS_IXSCAN", [1, 1, 1]);
    check(request("{'_id': {'$eq': 5}}"), "EXPRESS_IXSCAN", [1, 1, 1]);
    check(request("{'_id': 500}"), "EXPRESS_IXSCAN", [0, 0, 0]);
    check(sorted("{'_id': 5}", "{'b': 1}"), "EXPRESS_IXSCAN", [1, 1, 1]);
    check(FindRequest { skip: 1, ..request("{'_id': 5}") }, "SKIP IDHACK", [0, 0, 0]);
    let shown = |projection| Some(json(projection));
    let named = FindRequest { projection: shown("{'a': 1}"), ..request("{'_id': 5}") };
    check(named, "EXPRESS_IXSCAN", [1, 1, 1]);
    let made = FindRequest { projection: shown("{'a': '$b'}"), ..request("{'_id': 5}") };
    check(made, "PROJECTION_DEFAULT IDHACK", [1, 1, 1]);
    check(request("{'_id': {'$gte': 90}}"), "FETCH IXSCAN", [10, 10, 10]);
    check(request("{'a': 3}"), "FETCH IXSCAN", [10, 10, 10]);
    check(request("{'b': 3}"), "COLLSCAN", [1, 0, 100]);
    check(sorted("{'a': 3}", "{'b': 1}"), "SORT FETCH IXSCAN", [10, 10, 10]);
    let limited = FindRequest { limit: Some(3), skip: 1, ..request("{'a': 3}") };
    check(limited, "LIMIT SKIP FETCH IXSCAN", [3, 3, 3]);
    let first = FindRequest { limit: Some(1), ..request("{'a': 3}") };
    check(first, "EXPRESS_IXSCAN", [1, 1, 1]);
    let unique = IndexSpec::parse(json("{'key': {'b': -1}, 'unique': true}").view());
    shop.create_indexes("things", &[unique.expect("a proper index")]).expect("built");
    check(request("{'b': 3}"), "EXPRESS_IXSCAN", [1, 1, 1]);
    check(request("{'b': {'$in': [3]}}"), "FETCH IXSCAN", [1, 1, 1]);
    let hinted = FindRequest { hint: Some(value("'b_-1'")), ..request("{'b': 3}") };
    check(hinted, "FETCH IXSCAN", [1, 1, 1]);
    let explanation = text(&explain(&request("{'b': 3}")));
    let stage =
        "'isCached':false,'stage':'EXPRESS_IXSCAN','keyPattern':'{ b:-1 }','indexName':'b_-1'";
    let counted = format!("{{{stage},'keysExamined':1,'docsExamined':1,'nReturned':1}}");
    assert!(
        explanation.contains(&format!("'winningPlan':{{{stage}}},'rejectedPlans':[]")),
        "{explanation}"
    );
    assert!(explanation.contains(&format!("'executionStages':{counted}")), "{explanation}");
    let explained = shop.explain("nothing", &request("{}")).expect("explained");
    assert_eq!(stages(&explained), "EOF");
}

#[test]
fn hints() {
    let shop = shop();
    insert(&shop, "things", THINGS);
    let index = IndexSpec::parse(json("{'key': {'a': 1}}").view());
    shop.create_indexes("things", &[index.expect("a proper index")]).expect("built");
    let stages_with = |hint: &str, filter: &str| {
        let request = FindRequest { hint: Some(value(hint)), ..request(filter) };
        shop.explain("things", &request).map(|explained| stages(&explained))
    };
    let ok = |hint: &str, filter: &str| stages_with(hint, filter).expect("the hint is right");
    assert_eq!(ok("'a_1'", "{'b': 'x'}"), "FETCH IXSCAN");
    assert_eq!(ok("{'a': 1}", "{}"), "FETCH IXSCAN");
    assert_eq!(ok("{'$natural': 1}", "{'a': 1}"), "COLLSCAN");
    assert_eq!(ok("'_id_'", "{'a': 1}"), "COLLSCAN");
    for wrong in ["'nope'", "{'a': -1}", "{'b': 1}"] {
        assert_eq!(stages_with(wrong, "{}").unwrap_err().code, Code::BadValue, "{wrong}");
    }
    assert_eq!(stages_with("5", "{}").unwrap_err().code, Code::FailedToParse);
    // Every document is found through a hinted index, once.
    let request = FindRequest { hint: Some(value("'a_1'")), ..request("{}") };
    assert_eq!(run(&shop, "things", &request).expect("found").len(), 5);
}

#[test]
fn skipping_by_counts_skips_the_same_documents_as_reading() {
    let frond = open();
    let shop = frond.database("shop").expect("a proper name");
    let documents: Vec<String> =
        (0..700).map(|id| format!("{{'_id': {id}, 'a': {}, 'b': {}}}", id % 90, id % 7)).collect();
    insert(&shop, "things", &format!("[{}]", documents.join(",")));
    let spec = IndexSpec::parse(json("{'key': {'a': 1}, 'name': 'a'}").view());
    shop.create_indexes("things", &[spec.expect("a proper index")]).expect("made");
    let requests = [
        ("{}", "{'_id': 1}"),
        ("{}", "{'_id': -1}"),
        ("{'_id': {'$gte': 100, '$lt': 650}}", "{'_id': -1}"),
        ("{'a': {'$gt': 10, '$lte': 60}}", "{'a': 1}"),
        ("{'a': {'$gt': 10, '$lte': 60}}", "{'a': -1}"),
        ("{'a': {'$in': [3, 5, 88]}}", "{'a': 1}"),
        ("{'a': {'$gt': 10}, 'b': 3}", "{'a': 1}"),
        ("{}", ""),
    ];
    // In the overlay first, then in the tree, then in both.
    for state in 0..3 {
        if state == 1 {
            frond.engine().checkpoint().expect("folded");
        }
        if state == 2 {
            assert_eq!(delete(&shop, "things", "{'_id': {'$gte': 120, '$lt': 150}}"), 30);
            let moved = UpdateStatement {
                multi: true,
                ..statement("{'b': 3, '_id': {'$gt': 80}}", "{'$inc': {'a': 7}}")
            };
            assert!(update(&shop, "things", moved).modified > 50);
            let more: Vec<String> =
                (700..790).map(|id| format!("{{'_id': {id}, 'a': {}}}", id % 90)).collect();
            insert(&shop, "things", &format!("[{}]", more.join(",")));
        }
        for (filter, sort) in requests {
            let request = if sort.is_empty() { request(filter) } else { sorted(filter, sort) };
            let order = if sort.is_empty() { "" } else { &format!("{{'$sort': {sort}}},") };
            let field = if sort.contains("'a'") { "a" } else { "_id" };
            let all = run(&shop, "things", &request).expect("the request is right");
            for skip in [0, 1, 15, 16, 17, 250, 549, 550, 700, 10_000] {
                let skipping = FindRequest { skip, limit: Some(20), ..request.clone() };
                let found = run(&shop, "things", &skipping).expect("the request is right");
                let expected: Vec<_> = all.iter().skip(skip as usize).take(20).cloned().collect();
                assert_eq!(texts(&found), texts(&expected), "{request:?} {skip}");
                // Equal ones may come in another order.
                let stages = format!(
                    "[{{'$match': {filter}}}, {order} {{'$skip': {skip}}}, {{'$limit': 20}}]"
                );
                let found = aggregate(&shop, Some("things"), &stages).expect("right");
                let values = |found: &[DocumentBuf]| -> Vec<Option<i64>> {
                    found.iter().map(|it| it.get(field)?.as_integer()).collect()
                };
                assert_eq!(values(&found), values(&expected), "{stages}");
            }
        }
    }
}

#[test]
fn groups_by_an_index_are_groups_by_a_scan() {
    let frond = open();
    let shop = frond.database("shop").expect("a proper name");
    let documents: Vec<String> = (0..300)
        .map(|id| match id % 5 {
            0 => format!("{{'_id': {id}, 'a': {}}}", id % 40),
            1 => format!("{{'_id': {id}, 'a': {}, 'b': null}}", id % 40),
            _ => format!("{{'_id': {id}, 'a': {}, 'b': {}.5}}", id % 40, id % 9),
        })
        .collect();
    insert(&shop, "things", &format!("[{}]", documents.join(",")));
    let pipelines = [
        "[{'$match': {'a': {'$gte': 7, '$lt': 9}}}, {'$group': {'_id': '$a', 'n': {'$sum': 1},
            'b': {'$sum': '$b'}, 'last': {'$max': '$b'}, 'first': {'$min': '$b'}}}, {'$sort': {'_id': 1}}]",
        "[{'$match': {'a': 5}}, {'$group': {'_id': '$b', 'n': {'$sum': '$a'}}}, {'$sort': {'_id': 1}}]",
        "[{'$match': {'a': {'$lt': 3}}}, {'$sort': {'b': 1}}, {'$limit': 5}, {'$group': {'_id': null,
            'bs': {'$push': {'$ifNull': ['$b', 'none']}}}}]",
        "[{'$match': {'a': 5}}, {'$count': 'n'}]",
        "[{'$match': {'a': 5}}, {'$group': {'_id': '$b', 'all': {'$push': '$$ROOT'}}}, {'$sort': {'_id': 1}}]",
        "[{'$match': {'a': 5}}, {'$group': {'_id': null, 'x': {'$addToSet': {'$getField': 'c'}}}}]",
    ];
    let answers = || -> Vec<String> {
        let run = |pipeline: &&str| aggregate(&shop, Some("things"), pipeline).expect("right");
        pipelines.iter().map(run).map(|found| texts(&found)).collect()
    };
    let by_scan = answers();
    let spec = IndexSpec::parse(json("{'key': {'a': 1, 'b': 1}, 'name': 'ab'}").view());
    shop.create_indexes("things", &[spec.expect("a proper index")]).expect("made");
    assert_eq!(answers(), by_scan);
}

#[test]
fn explain_reports_what_was_rejected() {
    let shop = shop();
    let documents: Vec<String> =
        (0..200).map(|id| format!("{{'_id': {id}, 'a': {}, 'b': {}}}", id % 100, id % 4)).collect();
    insert(&shop, "things", &format!("[{}]", documents.join(",")));
    let spec = |key: &str| IndexSpec::parse(json(key).view()).expect("proper");
    let specs = [spec("{'key': {'b': 1}}"), spec("{'key': {'a': 1}}")];
    shop.create_indexes("things", &specs).expect("built");
    let rejected = |filter: &str| {
        let explained = shop.explain("things", &request(filter)).expect("explained");
        let planner = explained.get("queryPlanner").and_then(|planner| planner.as_document());
        let plans = planner.and_then(|planner| planner.get("rejectedPlans")?.as_array());
        let plans = plans.expect("an array").iter();
        plans.map(|plan| format!("{plan:?}")).collect::<Vec<_>>()
    };
    let others = rejected("{'a': 7, 'b': 3}");
    assert_eq!(others.len(), 1);
    assert!(others[0].contains("IXSCAN") && others[0].contains("b_1"), "{others:?}");
    assert!(rejected("{'a': 7}").is_empty());
    assert!(rejected("{'_id': 7, 'a': 7}").is_empty());
    assert!(rejected("{'c': 7}").is_empty());
}

#[test]
fn a_view_s_filter_finds_what_its_reader_asks_for() {
    let shop = shop();
    insert(
        &shop,
        "things",
        "[{'_id': 1, 'a': 1, 'b': 1}, {'_id': 2, 'a': 1, 'b': 2}, {'_id': 3, 'a': 2, 'b': 1}]",
    );
    let view = "{'viewOn': 'things', 'pipeline': [{'$match': {'a': 1}}, {'$sort': {'b': -1}},
        {'$project': {'a': 1, 'b': 1, 'sum': {'$add': ['$a', '$b']}}}]}";
    shop.create_collection("ones", json(view).view()).expect("made");
    let spec = IndexSpec::parse(json("{'key': {'b': 1}}").view());
    shop.create_indexes("things", &[spec.expect("proper")]).expect("built");
    for (filter, expected) in [
        ("{'b': 1}", "[{'_id':1,'a':1,'b':1,'sum':2}]"),
        ("{'b': {'$gt': 0}, 'sum': 3}", "[{'_id':2,'a':1,'b':2,'sum':3}]"),
        ("{'a': 2}", "[]"),
        ("{'$expr': {'$eq': ['$sum', 3]}, 'b': 2}", "[{'_id':2,'a':1,'b':2,'sum':3}]"),
    ] {
        assert_eq!(find(&shop, "ones", filter), expected, "{filter}");
    }
}

#[test]
fn keys_in_the_place_of_documents() {
    let shop = shop();
    insert(&shop, "things", THINGS);
    for index in [
        "{'key': {'a': 1}}",
        "{'key': {'b': -1, 'a': 1}}",
        "{'key': {'c': 1}, 'collation': {'locale': 'en'}}",
    ] {
        let spec = IndexSpec::parse(json(index).view()).expect("a proper index");
        shop.create_indexes("things", &[spec]).expect("built");
    }
    insert(&shop, "more", "[{'_id': 1, 'w': {'x': {'y': 7}}, 'h': 5, 'a': {'$numberLong': '1'}}]");
    let spec = |index| IndexSpec::parse(json(index).view()).expect("a proper index");
    let specs = ["{'key': {'w.$**': 1}}", "{'key': {'h': 'hashed'}}", "{'key': {'a': 1, 'z': 1}}"];
    shop.create_indexes("more", &specs.map(spec)).expect("built");
    let keys = |collection: &str, find: FindRequest| {
        let find = FindRequest { gives_keys: true, ..find };
        run(&shop, collection, &find).map(|found| texts(&found)).map_err(|error| error.code)
    };
    let check = |collection: &str, find: FindRequest, expected: &str| {
        let found_keys = keys(collection, find.clone());
        assert_eq!(found_keys.as_deref(), Ok(expected), "{find:?}");
    };
    // A document that no index found has no key, and a projection isn't applied.
    check("things", request("{}"), "[{},{},{},{},{}]");
    check("things", request("{'a': 2}"), "[{'a':2},{'a':2}]");
    let shown = FindRequest { projection: Some(json("{'b': 1}")), ..request("{'a': 3}") };
    check("things", shown, "[{'a':3}]");
    // Of an array the key that led to the document first.
    check("things", request("{'a': {'$gte': 0, '$lt': 1}}"), "[{'a':0}]");
    check("things", request("{'a': {'$gt': 2}}"), "[{'a':3},{'a':5}]");
    let by_both = sorted("{}", "{'b': -1, 'a': 1}").hinted("'b_-1_a_1'");
    let expected =
        "[{'b':'z','a':2},{'b':'y','a':1},{'b':'x','a':2},{'b':'x','a':3},{'b':null,'a':0}]";
    check("things", by_both, expected);
    // The documents' own tree is the index of _id.
    check("things", request("{'_id': 3}"), "[{'_id':3}]");
    check("things", request("{'_id': {'$gt': 3}}"), "[{'_id':4},{'_id':5}]");
    let last = FindRequest { limit: Some(2), ..sorted("{}", "{'_id': -1}") };
    check("things", last, "[{'_id':5},{'_id':4}]");
    let first = FindRequest { limit: Some(1), ..request("{}") };
    check("things", first.hinted("'_id_'"), "[{'_id':1}]");
    // After a sort too, and with what was sorted by.
    let some = sorted("{'a': {'$in': [1, 2]}}", "{'b': -1, '_id': 1}");
    check("things", some, "[{'a':2},{'a':1},{'a':2}]");
    let by = "{'k': {'$meta': 'sortKey'}, 'x': 1}";
    let shown = FindRequest { projection: Some(json(by)), ..sorted("{'a': 2}", "{'b': -1}") };
    check("things", shown.hinted("'a_1'"), "[{'a':2,'k':['z']},{'a':2,'k':['x']}]");
    check("things", request("{'$or': [{'a': 1}, {'b': 'z'}]}"), "[{'a':1},{'b':'z','a':2}]");
    // Other kinds of indexes; those that can't be turned back are refused.
    check("more", request("{'w.x.y': 7}"), "[{'$_path':'w.x.y','w.x.y':7}]");
    let hash = "[{'$documents': [{}]}, {'$project': {'h': {'$toHashedIndexKey': 5}}}]";
    let hash = texts(&aggregate(&shop, None, hash).expect("a hash"));
    check("more", request("{'h': 5}"), &hash);
    check("more", request("{'a': 1}"), "[{'a':1,'z':null}]");
    let collated = request("{}").hinted("'c_1'");
    assert_eq!(keys("things", collated), Err(Code::CommandNotSupported));
    let find = FindRequest { gives_keys: true, ..request("{'a': 2}") };
    let explained = shop.explain("things", &find).expect("explained");
    assert_eq!(stages(&explained), "RETURN_KEY FETCH IXSCAN");
    // A view is a pipeline, which has no such option.
    let view = json("{'viewOn': 'things', 'pipeline': []}");
    shop.create_collection("seen", view.view()).expect("made");
    assert_eq!(keys("seen", request("{}")), Err(Code::InvalidPipelineOperator));
    let with_record_id = FindRequest { shows_record_id: true, ..request("{}") };
    let error = run(&shop, "seen", &with_record_id).expect_err("no pipeline tells it");
    assert_eq!(error.code, Code::InvalidPipelineOperator);
}

/// A find with a hint.
trait Hinted {
    fn hinted(self, hint: &str) -> FindRequest;
}

impl Hinted for FindRequest {
    fn hinted(self, hint: &str) -> FindRequest {
        FindRequest { hint: Some(value(hint)), ..self }
    }
}

#[test]
fn a_find_by_id_alone_finds_what_the_usual_way_finds() {
    let shop = shop();
    let all = "[{'_id': 1, 'n': 1}, {'_id': 'x', 'n': 2}, {'_id': true, 'n': 3}, {'_id': null, 'n': 4},
        {'_id': {'$oid': '0123456789abcdef01234567'}, 'n': 5}, {'_id': {'a': 1}, 'n': 6},
        {'_id': {'$numberDouble': '2.5'}, 'n': 7}, {'_id': {'$date': '2026-11-29T00:00:00Z'}, 'n': 8},
        {'_id': {'$binary': {'base64': 'AAEC', 'subType': '00'}}, 'n': 9},
        {'_id': {'$numberLong': '9007199254740993'}, 'n': 10}]";
    insert(&shop, "things", all);
    let long = format!("'{}'", "y".repeat(20_000));
    insert(&shop, "things", &format!("[{{'_id': {long}, 'n': 11}}]"));
    shop.create_collection("cased", json("{'collation': {'locale': 'en', 'strength': 2}}").view())
        .expect("is made");
    insert(&shop, "cased", "[{'_id': 'x', 'n': 12}]");
    shop.create_collection(
        "seen",
        json("{'viewOn': 'things', 'pipeline': [{'$set': {'v': 1}}]}").view(),
    )
    .expect("is made");
    shop.create_collection("points", json("{'timeseries': {'timeField': 't'}}").view())
        .expect("is made");
    insert(&shop, "points", "[{'_id': 1, 't': {'$date': '2026-11-29T00:00:00Z'}}]");
    let ids = [
        "1",
        "{'$numberLong': '1'}",
        "{'$numberDouble': '1.0'}",
        "2",
        "'x'",
        "'X'",
        "true",
        "false",
        "null",
        "{'$oid': '0123456789abcdef01234567'}",
        "{'$oid': '0123456789abcdef01234568'}",
        "{'a': 1}",
        "{'$numberDouble': '2.5'}",
        "{'$date': '2026-11-29T00:00:00Z'}",
        "{'$binary': {'base64': 'AAEC', 'subType': '00'}}",
        "{'$binary': {'base64': 'AAEC', 'subType': '05'}}",
        "{'$numberLong': '9007199254740993'}",
        "{'$numberLong': '9007199254740992'}",
        &long,
    ];
    for collection in ["things", "cased", "seen", "points", "nothing"] {
        let mut count = 0;
        for id in ids {
            let found = find(&shop, collection, &format!("{{'_id': {id}}}"));
            let equal = find(&shop, collection, &format!("{{'_id': {{'$eq': {id}}}}}"));
            let usual = find(&shop, collection, &format!("{{'$and': [{{'_id': {id}}}]}}"));
            assert_eq!((&found, &equal), (&usual, &usual), "{id} in {collection}");
            count += usize::from(found != "[]");
        }
        let least = match collection {
            "things" | "seen" => 11,
            "nothing" => 0,
            _ => 1,
        };
        assert!(least <= count, "{count} found in {collection}");
    }
}

/// A find by `_id` takes no plan, whatever whole fields it shows; a hint has it take one.
#[test]
fn a_projection_shows_the_same_by_an_id_alone_as_by_a_plan() {
    let shop = shop();
    let long = "x".repeat(40_000);
    let large = document! { "_id": 2, "a": 3, "b": &long, "c": "after" };
    let small = document! { "c": 1.5, "_id": 1, "a": 3, "b": "x" };
    assert_eq!(try_insert(&shop, "things", &[small, large]).count, 2);
    shop.frond().engine().checkpoint().expect("folded");
    let transaction = shop.frond().begin();
    let inside = transaction.database("shop").expect("opens");
    let own = document! { "_id": 3, "b": &long, "a": 7, "c": 2 };
    assert_eq!(try_insert(&inside, "things", &[own]).count, 1);
    for projection in [
        "{}",
        "{'a': 1}",
        "{'_id': 0, 'a': 1, 'none': true}",
        "{'b': 0}",
        "{'_id': 0}",
        "{'b': 1}",
        "{'a': false, '_id': 0}",
        "{'a': 1.0, 'c': 1}",
        "{'_id': 1}",
        "{'none': 0}",
        // Refused.
        "{'a': 1, 'b': 0}",
        "{'$a': 1}",
        "{'': 1}",
        // The usual way in any case.
        "{'c': {'$slice': 1}}",
        "{'a.b': 1}",
        "{'d': '$a'}",
    ] {
        for id in [1, 2, 3, 9] {
            let request = FindRequest {
                projection: Some(json(projection)),
                ..request(&format!("{{'_id': {id}}}"))
            };
            let planned = FindRequest { hint: Some(value("'_id_'")), ..request.clone() };
            for database in [&inside, &*shop] {
                let answer = |request: &FindRequest| match run(database, "things", request) {
                    Ok(found) => Ok(texts(&found)),
                    Err(error) => Err((error.code, error.to_string())),
                };
                assert_eq!(answer(&request), answer(&planned), "{projection} of {id}");
            }
        }
    }
    transaction.abort();
}
