//! Goal: constant expressions fail before documents are read, as MongoDB's optimizer has them.
//! Method: requests on a collection that isn't there, and on one with a document that doesn't reach
//! the constant.

use frond_db::Database;

use crate::support::*;

const FAILS: &str = "{'$divide': [1, 0]}";
const PROBLEM: &str = "can't $divide by zero";
const IN_FILTER: &str = "Failed to optimize expression :: caused by :: ";
const IN_PIPELINE: &str = "Failed to optimize pipeline :: caused by :: ";

fn aggregated(database: &Database, collection: &str, stages: &str) -> String {
    let documents = aggregate(database, Some(collection), stages);
    documents.map_or_else(|error| error.message, |found| texts(&found))
}

fn found(database: &Database, collection: &str, filter: &str, projection: &str) -> String {
    let projection = Some(json(projection));
    let request = frond_db::FindRequest { projection, ..request(filter) };
    let documents = run(database, collection, &request);
    documents.map_or_else(|error| error.message, |found| texts(&found))
}

#[test]
fn constants_fail_whether_or_not_there_are_documents() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1, 'a': 1}]");
    for collection in ["things", "none"] {
        for (stages, message) in [
            ("[{'$project': {'x': FAILS}}]", format!("{IN_PIPELINE}{PROBLEM}")),
            (
                "[{'$match': {'a': 9}}, {'$set': {'x': ['$a', FAILS]}}]",
                format!("{IN_PIPELINE}{PROBLEM}"),
            ),
            (
                "[{'$group': {'_id': '$a', 'n': {'$sum': FAILS}}}]",
                format!("{IN_PIPELINE}{PROBLEM}"),
            ),
            ("[{'$group': {'_id': FAILS}}]", format!("{IN_PIPELINE}{PROBLEM}")),
            ("[{'$match': {'$expr': FAILS}}]", format!("{IN_PIPELINE}{IN_FILTER}{PROBLEM}")),
            ("[{'$facet': {'f': [{'$set': {'x': FAILS}}]}}]", format!("{IN_PIPELINE}{PROBLEM}")),
            (
                "[{'$redact': {'$cond': ['$a', '$$KEEP', FAILS]}}]",
                format!("{IN_PIPELINE}{PROBLEM}"),
            ),
        ] {
            let stages = stages.replace("FAILS", FAILS);
            assert_eq!(aggregated(&shop, collection, &stages), message, "{collection}: {stages}");
        }
        let filter = format!("{{'a': 9, '$or': [{{'a': 1}}, {{'$expr': {FAILS}}}]}}");
        let expected = format!("{IN_FILTER}{PROBLEM}");
        assert_eq!(found(&shop, collection, &filter, "{}"), expected);
        let projection = format!("{{'x': {{'$cond': [true, 1, {FAILS}]}}}}");
        assert_eq!(found(&shop, collection, "{}", &projection), PROBLEM);
    }
}

#[test]
fn a_pipeline_of_a_lookup_is_computed_for_each_document() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1}, {'_id': 2}]");
    insert(&shop, "names", "[{'_id': 1, 'n': 1}]");
    let stages = "[{'$lookup': {'from': 'names', 'let': {'id': '$_id'}, 'as': 'found', 'pipeline': \
                  [{'$project': {'_id': 0, 'x': {'$add': ['$$id', 1]}}}]}}]";
    let expected = "[{'_id': 1, 'found': [{'x': 2}]}, {'_id': 2, 'found': [{'x': 3}]}]";
    assert_eq!(aggregated(&shop, "things", stages), texts(&jsons(expected)));
    // Nothing is looked up for no document.
    let stages = "[{'$lookup': {'from': 'names', 'as': 'found', 'pipeline': \
                  [{'$project': {'x': {'$divide': [1, 0]}}}]}}]";
    assert_eq!(aggregated(&shop, "none", stages), texts(&[]));
}
