//! Goal: `explain` of a pipeline shows the search that runs and the remaining stages. Method: a
//! table of pipelines, what they become, and how many documents and keys their search looks at.

use frond_db::catalog::IndexSpec;
use frond_db::{AggregateRequest, Database, Effort, FindRequest};
use frond_doc::DocumentBuf;

use crate::support::*;

fn explained(shop: &Database, pipeline: &str) -> (DocumentBuf, String) {
    let request = AggregateRequest {
        pipeline: value(pipeline),
        variables: None,
        collation: None,
        hint: None,
        in_memory_only: false,
        interrupt: Default::default(),
    };
    let written = request.pipeline.as_value().as_array().expect("an array");
    let (cursor, rest) = shop
        .explain_aggregate("things", written, &request, Effort::Run)
        .unwrap_or_else(|error| panic!("{pipeline}: {error}"));
    let names: Vec<&str> =
        rest.iter().filter_map(|stage| stage.iter().next().map(|(name, _)| name)).collect();
    let text = format!("{} | {}", stages(&cursor), names.join(" "));
    (cursor, text)
}

#[test]
fn pipelines_are_explained_as_they_run() {
    let shop = shop();
    let documents: Vec<String> =
        (0..100).map(|id| format!("{{'_id': {id}, 'a': {}, 'b': {}}}", id % 10, id % 7)).collect();
    insert(&shop, "things", &format!("[{}]", documents.join(",")));
    let spec = IndexSpec::parse(json("{'key': {'a': 1, 'b': 1}}").view()).expect("an index");
    shop.create_indexes("things", &[spec]).expect("made");
    for (pipeline, expected, keys, documents) in [
        ("[{'$match': {'a': 3}}]", "FETCH IXSCAN | ", 10, 10),
        // A covered group reads no documents.
        (
            "[{'$match': {'a': {'$lt': 2}}}, {'$group': {'_id': '$a', 'n': {'$sum': '$b'}}}]",
            "PROJECTION_COVERED IXSCAN | $group",
            20,
            0,
        ),
        (
            "[{'$match': {'a': 3}}, {'$group': {'_id': '$a', 'n': {'$sum': '$c'}}}]",
            "FETCH IXSCAN | $group",
            10,
            10,
        ),
        // Conditions move to the front, as far as they may.
        (
            "[{'$set': {'x': 1}}, {'$match': {'a': 3, 'x': 1}}, {'$limit': 5}]",
            "FETCH IXSCAN | $set $match $limit",
            10,
            10,
        ),
        ("[{'$sort': {'c': 1}}, {'$match': {'a': 3}}]", "SORT FETCH IXSCAN | ", 10, 10),
        ("[{'$sort': {'a': 1, 'b': 1}}, {'$limit': 3}]", "LIMIT FETCH IXSCAN | ", 3, 3),
        ("[{'$limit': 3}, {'$match': {'a': 3}}]", "LIMIT COLLSCAN | $match", 0, 3),
        (
            "[{'$sort': {'a': 1, 'b': 1}}, {'$limit': 3}, {'$project': {'k': {'$meta': 'sortKey'}}}]",
            "COLLSCAN | $sort $limit $project",
            0,
            100,
        ),
        ("[{'$group': {'_id': '$c'}}]", "COLLSCAN | $group", 0, 100),
    ] {
        let (cursor, explained_text) = explained(&shop, pipeline);
        assert_eq!(explained_text, expected, "{pipeline}");
        assert_eq!(examined(&cursor, "totalKeysExamined"), keys, "{pipeline}");
        assert_eq!(examined(&cursor, "totalDocsExamined"), documents, "{pipeline}");
    }
    let (cursor, _) = explained(&shop, "[{'$set': {'x': 1}}, {'$match': {'a': 3, 'x': 1}}]");
    let planner = cursor.get("queryPlanner").and_then(|planner| planner.as_document());
    let parsed = planner.and_then(|planner| planner.get("parsedQuery")?.as_document());
    assert_eq!(parsed.map(|parsed| text(&parsed.to_buf())), Some("{'a':{'$eq':3}}".to_owned()));
}

#[test]
fn a_leading_geo_near_is_explained_as_a_search_for_the_nearest() {
    let shop = shop();
    let documents: Vec<String> = (0..2000)
        .map(|id| format!("{{'_id': {id}, 'p': [{}, {}], 'a': {}}}", id % 50 * 3, id / 50, id % 2))
        .collect();
    insert(&shop, "things", &format!("[{}]", documents.join(",")));
    let spec = IndexSpec::parse(json("{'key': {'p': '2d'}}").view()).expect("an index");
    shop.create_indexes("things", &[spec]).expect("made");
    let near = "{'$geoNear': {'near': [30, 20], 'distanceField': 'd', 'query': {'a': 1}}}";
    for (stages, rest) in [("", ""), (", {'$match': {'a': 0}}", "$match"), (", {'$limit': 3}", "")]
    {
        let (cursor, explained_text) = explained(&shop, &format!("[{near}{stages}]"));
        let (search, left) = explained_text.split_once(" | ").expect("both are told");
        assert!(search.contains("GEO_NEAR_2D") && search.ends_with("IXSCAN"), "{explained_text}");
        assert_eq!(left, rest, "{stages}");
        assert_eq!(search.starts_with("LIMIT"), stages.contains("$limit"), "{explained_text}");
        if stages.contains("$limit") {
            assert!(examined(&cursor, "totalDocsExamined") < 1000, "{cursor:?}");
        }
    }
}

#[test]
fn queries_of_one_shape_have_one_hash() {
    let shop = shop();
    insert(&shop, "things", "[{'a': 1, 'b': 2}]");
    let hashes = |filter: &str, sort: &str| {
        let request = FindRequest { sort: Some(json(sort)), ..request(filter) };
        let plan = shop.explain_plan("things", &request).expect("right");
        let planner = plan.get("queryPlanner").and_then(|planner| planner.as_document());
        ["queryHash", "planCacheShapeHash", "planCacheKey"].map(|name| {
            let hash = planner.and_then(|planner| planner.get(name)?.as_str());
            hash.expect("told").to_owned()
        })
    };
    let one = hashes("{'a': {'$gt': 1}, '$or': [{'b': 1}, {'b': {'c': 2}}]}", "{'a': 1}");
    assert!(one[0] == one[1] && one[0].len() == 8, "{one:?}");
    let other = "{'a': {'$gt': 'x'}, '$or': [{'b': null}, {'b': [1]}]}";
    assert_eq!(hashes(other, "{'a': 1}"), one);
    for (filter, sort) in [
        ("{'a': {'$lt': 1}, '$or': [{'b': 1}, {'b': {'c': 2}}]}", "{'a': 1}"),
        ("{'a': {'$gt': 1}, '$or': [{'b': 1}]}", "{'a': 1}"),
        ("{'a': {'$gt': 1}, '$or': [{'b': 1}, {'b': {'c': 2}}]}", "{'a': -1}"),
        ("{}", "{}"),
    ] {
        assert_ne!(hashes(filter, sort)[0], one[0], "{filter} {sort}");
    }
    let spec = IndexSpec::parse(json("{'key': {'b': 1}}").view()).expect("an index");
    shop.create_indexes("things", &[spec]).expect("made");
    let indexed = hashes(other, "{'a': 1}");
    assert!(indexed[0] == one[0] && indexed[2] != one[2], "{indexed:?}");
}

#[test]
fn a_skip_that_counts_do_is_explained_as_such() {
    let shop = shop();
    let documents: Vec<String> =
        (0..1000).map(|id| format!("{{'_id': {id}, 'a': {}}}", id % 100)).collect();
    insert(&shop, "things", &format!("[{}]", documents.join(",")));
    let spec = IndexSpec::parse(json("{'key': {'a': 1}}").view()).expect("an index");
    shop.create_indexes("things", &[spec]).expect("made");
    for (pipeline, expected, passed, documents) in [
        ("[{'$skip': 900}, {'$limit': 5}]", "LIMIT SKIP COLLSCAN | ", Some(900), 5),
        (
            "[{'$sort': {'a': 1}}, {'$skip': 600}, {'$limit': 5}]",
            "LIMIT SKIP FETCH IXSCAN | ",
            Some(600),
            5,
        ),
        ("[{'$match': {'a': {'$lt': 50}}}, {'$skip': 490}]", "SKIP FETCH IXSCAN | ", Some(490), 10),
        // A filter or a sort decides which of these are passed over.
        ("[{'$match': {'b': null}}, {'$skip': 990}]", "SKIP COLLSCAN | ", None, 1000),
        ("[{'$sort': {'b': 1}}, {'$skip': 990}]", "SKIP SORT COLLSCAN | ", None, 1000),
        ("[{'$skip': 990}, {'$count': 'n'}]", "RECORD_STORE_FAST_COUNT | $skip $count", None, 0),
    ] {
        let (cursor, names) = explained(&shop, pipeline);
        assert_eq!(names, expected, "{pipeline}");
        let plan = texts(std::slice::from_ref(&cursor));
        match passed {
            Some(count) => {
                assert!(plan.contains(&format!("'skippedByCounts':{count}")), "{pipeline}: {plan}");
            }
            None => assert!(!plan.contains("skippedByCounts"), "{pipeline}: {plan}"),
        }
        assert_eq!(examined(&cursor, "totalDocsExamined"), documents, "{pipeline}");
    }
}
