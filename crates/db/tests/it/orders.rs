//! Goal: a document without a place in an order is refused in every wording and by every plan where
//! MongoDB sorts, also where documents are only counted then, and nowhere else. Method: two
//! documents, one of which has arrays in two fields; each pipeline over the collection, over views,
//! and within other stages, with and without indexes that serve it.

use frond_db::catalog::IndexSpec;
use frond_db::{Database, FindRequest};

use crate::support::*;

const INDEXES: [&str; 4] =
    ["{'key': {'a': 1}}", "{'key': {'b': -1, 'c': 1}}", "{'key': {'$**': 1}}", "{'key': {'c': 1}}"];

fn filled() -> frond_vcs::Repository {
    let shop = shop();
    let documents =
        "[{'_id': 1, 'a': 1, 'b': [2], 'c': 1}, {'_id': 2, 'a': [1, 2], 'b': [3], 'c': 2}]";
    insert(&shop, "things", documents);
    for (name, pipeline) in [
        ("bare", "[]"),
        ("matched", "[{'$match': {'c': {'$gt': 0}}}]"),
        ("newest", "[{'$sort': {'b': 1, 'a': 1}}]"),
        ("first", "[{'$sort': {'a': 1, 'b': 1}}, {'$limit': 1}]"),
    ] {
        let options = json(&format!("{{'viewOn': 'things', 'pipeline': {pipeline}}}"));
        shop.create_collection(name, options.view()).expect("made");
    }
    shop
}

/// Returns the field `n` of the only document, or the code of the error.
fn counted(database: &Database, collection: &str, pipeline: &str) -> String {
    match aggregate(database, Some(collection), pipeline) {
        Ok(found) => texts(&found),
        Err(error) => format!("!{}", error.code.number()),
    }
}

#[test]
fn what_has_no_place_in_an_order_is_refused_though_it_is_only_counted() {
    let cases = [
        ("{'$sort': {'a': 1, 'b': -1}}, {'$limit': 4}, {'$count': 'n'}", "!2"),
        ("{'$sort': {'a': 1, 'b': -1}}, {'$count': 'n'}", "!2"),
        ("{'$sort': {'a': 1, 'b': -1}}, {'$limit': 1}, {'$count': 'n'}", "!2"),
        ("{'$sort': {'a': 1, 'b': 1}}, {'$group': {'_id': null, 'n': {'$sum': 1}}}", "!2"),
        ("{'$sort': {'b': 1, '_id': 1, 'a': 1}}, {'$skip': 1}, {'$count': 'n'}", "!2"),
        (
            "{'$sort': {'c': 1}}, {'$limit': 1}, {'$sort': {'a': 1, 'b': 1}}, {'$count': 'n'}",
            "[{'n':1}]",
        ),
        ("{'$sort': {'c': -1}}, {'$limit': 1}, {'$sort': {'a': 1, 'b': 1}}, {'$count': 'n'}", "!2"),
        ("{'$sort': {'a': 1, 'b': 1}}, {'$match': {'c': 1}}, {'$count': 'n'}", "[{'n':1}]"),
        ("{'$sort': {'a': 1, 'b': 1}}, {'$sort': {'c': 1}}, {'$count': 'n'}", "[{'n':2}]"),
        ("{'$sort': {'a': 1, 'c': 1}}, {'$count': 'n'}", "[{'n':2}]"),
        ("{'$sort': {'a': 1, '_id': 1}}, {'$skip': 1}, {'$count': 'n'}", "[{'n':1}]"),
    ];
    for indexes in [&INDEXES[..0], &INDEXES] {
        let shop = filled();
        for text in indexes {
            let spec = IndexSpec::parse(json(text).view()).expect("a proper index");
            shop.create_indexes("things", &[spec]).expect("made");
        }
        for (stages, expected) in cases {
            for collection in ["things", "bare", "matched"] {
                for front in ["", "{'$match': {}}, ", "{'$match': {'c': {'$lt': 5}}}, "] {
                    let pipeline = format!("[{front}{stages}]");
                    assert_eq!(counted(&shop, collection, &pipeline), expected, "{pipeline}");
                }
            }
            let (only, facet) = match expected.starts_with('!') {
                true => (expected.to_owned(), expected.to_owned()),
                false => (expected.to_owned(), format!("[{{'f':{expected}}}]")),
            };
            let unioned = format!(
                "[{{'$match': {{'c': 99}}}}, {{'$unionWith': {{'coll': 'things', 'pipeline': [{stages}]}}}}]"
            );
            assert_eq!(counted(&shop, "things", &unioned), only, "{unioned}");
            let facets = format!("[{{'$facet': {{'f': [{stages}]}}}}]");
            assert_eq!(counted(&shop, "things", &facets), facet, "{facets}");
            let looked_up = format!(
                "[{{'$match': {{'c': 1}}}}, {{'$lookup': {{'from': 'things', 'as': 'f', \
                 'pipeline': [{stages}]}}}}, {{'$project': {{'_id': 0, 'f': 1}}}}]"
            );
            assert_eq!(counted(&shop, "things", &looked_up), facet, "{looked_up}");
        }
    }
}

/// What reads a view in an order of its own doesn't have the view's, and whatever else does.
#[test]
fn a_views_order_gives_way_to_its_readers() {
    let shop = filled();
    for (view, pipeline, expected) in [
        (
            "newest",
            "[{'$sort': {'c': -1}}, {'$project': {'c': 1}}]",
            "[{'_id':2,'c':2},{'_id':1,'c':1}]",
        ),
        ("newest", "[{'$match': {'c': 1}}, {'$count': 'n'}]", "[{'n':1}]"),
        ("newest", "[{'$count': 'n'}]", "!2"),
        ("newest", "[{'$limit': 1}, {'$sort': {'c': -1}}]", "!2"),
        ("first", "[{'$sort': {'c': -1}}]", "!2"),
    ] {
        assert_eq!(counted(&shop, view, pipeline), expected, "{view} {pipeline}");
    }
    let sorted = FindRequest { sort: Some(json("{'c': -1}")), ..request("{}") };
    assert_eq!(run(&shop, "newest", &sorted).expect("sorted").len(), 2);
    assert!(shop.count("newest", &FindRequest::default()).is_err());
}

/// An order that refuses nothing costs a count nothing.
#[test]
fn orders_that_refuse_nothing_are_passed_over() {
    for (sort, is_passed_over) in
        [("{'a': 1}", true), ("{'b': 1, '_id': -1}", true), ("{'a': 1, 'b': 1}", false)]
    {
        let pipeline = value(&format!("[{{'$sort': {sort}}}, {{'$count': 'n'}}]"));
        let stages = pipeline.as_value().as_array().expect("stages");
        let parsed = frond_query::pipeline::Pipeline::parse(stages).expect("proper");
        assert_eq!(parsed.counts_only(), is_passed_over, "{sort}");
    }
}
