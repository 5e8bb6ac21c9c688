//! Filters pass just the documents that the naive matcher passes.

use std::sync::Arc;

use frond_query::expression::Variables;
use frond_query::memory::RequestMemory;
use frond_query::{Code, Filter, QueryError};
use frond_store::budget::Reservation;
use frond_testkit::random::{assert_met, for_seeds};

use crate::model;

#[test]
fn filters_match_as_the_model_does() {
    let mut passed = 0;
    for_seeds(6000, |mut random| {
        let filter = model::filter(&mut random, 3);
        let bson = filter.to_bson();
        let parsed = Filter::parse(bson.view()).unwrap_or_else(|error| panic!("{bson:?}: {error}"));
        for id in 0..8 {
            let document = model::document(&mut random, 3);
            let stored = model::to_bson(&document, id);
            let expected = filter.matches(&document);
            assert_eq!(parsed.matches(stored.view()), expected, "{bson:?} {stored:?}");
            passed += usize::from(expected);
        }
    });
    assert_met("documents that pass", passed, 2_400);
}

/// Thousands of branches are work, and whether to go on is asked among them.
#[test]
fn a_filter_of_many_branches_stops_on_request() {
    for operator in ["$or", "$nor", "$and"] {
        let branch = |number: i32| match operator {
            "$and" => format!(r#"{{"a": {{"$ne": {number}}}}}"#),
            _ => format!(r#"{{"a": {number}}}"#),
        };
        let branches: Vec<String> = (1..4_000).map(branch).collect();
        let filter =
            format!(r#"{{"$or": [{{"{operator}": [{}]}}, {{"b": 1}}]}}"#, branches.join(", "));
        let filter = frond_doc::extended_json::parse(&filter).expect("JSON");
        let stop = || Err(QueryError::new(Code::MaxTimeMSExpired, "it is time"));
        let memory = RequestMemory::new(Reservation::new(1 << 30, None), Some(Arc::new(stop)));
        let variables = Variables::default().with_memory(memory);
        let filter = Filter::parse(filter.view()).expect("a filter").with_variables(variables);
        let document = frond_doc::extended_json::parse(r#"{"a": [0, -1]}"#).expect("JSON");
        let error = filter.try_matches(document.view()).expect_err(operator);
        assert_eq!(error.code, Code::MaxTimeMSExpired, "{operator}");
    }
}

/// JSON can't write it: a string with a null byte in the place of a pattern.
#[test]
fn a_pattern_has_no_null_byte() {
    for (pattern, expected) in [("a\0b", Some(Code::BadValue)), ("a.b", None)] {
        let regex = frond_doc::document! { "$regex": pattern };
        let filter = frond_doc::document! { "a": &regex };
        assert_eq!(Filter::parse(filter.view()).err().map(|error| error.code), expected);
    }
}
