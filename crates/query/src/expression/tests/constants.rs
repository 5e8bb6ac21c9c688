//! Goal: expressions are computed ahead exactly where MongoDB's optimizer does so. Method: the
//! errors of constants show what was computed; a document that would not reach them shows that they
//! are reported all the same.

use frond_doc::Document;

use super::{Expression, compute, json};
use crate::expression::Variables;

/// The code of what fails before there is a document; 0 if nothing does.
fn ahead(expression: &str) -> i32 {
    let wrapped = json(&format!("{{\"v\": {expression}}}"));
    let parsed = Expression::parse(wrapped.get("v").unwrap()).unwrap();
    let let_values = json(r#"{"given": "x"}"#);
    let variables = Variables::new(86_400_000, Some(let_values.view())).unwrap();
    let computed = compute(parsed.constants(), &variables);
    computed.map_or_else(|error| error.code.number(), |()| 0)
}

#[test]
fn errors_of_constants_come_before_documents() {
    for (expression, code) in [
        (r#"{"$divide": [1, 0]}"#, 2),
        (r#"{"$divide": ["$a", 0]}"#, 0),
        (r#"{"$divide": [{"$literal": 1}, {"$subtract": [1, 1]}]}"#, 2),
        (r#"{"a": [{"$toInt": "x"}, "$b"]}"#, 241),
        (r#"{"$size": {"a": 1}}"#, 17124),
        (r#"{"$size": "$$NOW"}"#, 17124),
        (r#"{"$size": "$$given"}"#, 17124),
        (r#"{"$size": "$$ROOT"}"#, 0),
        (r#"{"$size": "$$CURRENT"}"#, 0),
        (r#"{"$size": "$$REMOVE"}"#, 17124),
        (r#"{"$concat": ["$a", 1]}"#, 0),
        // Those of several arguments that stand together are one.
        (r#"{"$concat": ["$a", 1, "b"]}"#, 16702),
        (r#"{"$concat": [1, "$a", "b"]}"#, 0),
        (r#"{"$concatArrays": ["$a", [1], 2]}"#, 28664),
        (r#"{"$add": [1, "x", "$a"]}"#, 14),
        (r#"{"$add": ["$a", 1, "x"]}"#, 0),
        (r#"{"$multiply": [2, [1], "$a"]}"#, 14),
        (r#"{"$subtract": ["$a", {"$add": [1, "x"]}]}"#, 14),
        // Branches that no document reaches.
        (r#"{"$cond": [true, 1, {"$divide": [1, 0]}]}"#, 2),
        (r#"{"$cond": ["$a", 1, {"$divide": [1, 0]}]}"#, 2),
        (r#"{"$and": [false, {"$divide": [1, 0]}]}"#, 2),
        (r#"{"$or": ["$a", {"$divide": [1, 0]}]}"#, 2),
        (r#"{"$ifNull": [1, {"$divide": [1, 0]}]}"#, 2),
        // A `$switch` hides them.
        (
            r#"{"$switch": {"branches": [{"case": false, "then": {"$divide": [1, 0]}}], "default": 1}}"#,
            0,
        ),
        (
            r#"{"$switch": {"branches": [{"case": {"$eq": [1, 2]}, "then": {"$divide": [1, 0]}}], "default": 1}}"#,
            0,
        ),
        (
            r#"{"$switch": {"branches": [{"case": {"$eq": [1, 1]}, "then": {"$divide": [1, 0]}}], "default": 1}}"#,
            2,
        ),
        (
            r#"{"$switch": {"branches": [{"case": "$a", "then": {"$divide": [1, 0]}}], "default": 1}}"#,
            2,
        ),
        (
            r#"{"$switch": {"branches": [{"case": true, "then": 1}, {"case": {"$divide": [1, 0]}, "then": 1}]}}"#,
            0,
        ),
        (
            r#"{"$switch": {"branches": [{"case": false, "then": {"$switch": {"branches": [
                {"case": true, "then": {"$divide": [1, 0]}}]}}}], "default": "$a"}}"#,
            0,
        ),
        (
            r#"{"$switch": {"branches": [{"case": "$a", "then": 1}], "default": {"$divide": [1, 0]}}}"#,
            2,
        ),
        (r#"{"$switch": {"branches": [{"case": {"$eq": [1, 2]}, "then": 1}]}}"#, 40069),
        // Operators that bind variables.
        (r#"{"$let": {"vars": {"x": "$a"}, "in": {"$divide": [1, 0]}}}"#, 2),
        (r#"{"$let": {"vars": {"x": 0}, "in": {"$divide": [1, "$$x"]}}}"#, 2),
        (r#"{"$let": {"vars": {"x": 0, "y": "$a"}, "in": {"$divide": ["$$y", "$$x"]}}}"#, 0),
        (
            r#"{"$let": {"vars": {"x": "$a"}, "in": {"$let": {"vars": {"y": 0}, "in": {"$divide": ["$$x", "$$y"]}}}}}"#,
            0,
        ),
        (r#"{"$map": {"input": "$a", "in": {"$divide": [1, 0]}}}"#, 2),
        (r#"{"$map": {"input": [0], "in": {"$divide": [1, "$$this"]}}}"#, 0),
        (r#"{"$filter": {"input": 1, "cond": true}}"#, 0),
        (r#"{"$reduce": {"input": 1, "initialValue": 0, "in": 1}}"#, 0),
        (r#"{"$size": {"$map": {"input": "x", "in": 1}}}"#, 0),
        (r#"{"$zip": {"inputs": ["x"]}}"#, 0),
        (r#"{"$add": ["x", {"$rand": {}}]}"#, 0),
    ] {
        assert_eq!(ahead(expression), code, "{expression}");
    }
}

#[test]
fn a_constant_of_strings_is_computed_by_each_collation() {
    let wrapped = json(r#"{"v": {"$eq": ["a", "A"]}}"#);
    let parsed = Expression::parse(wrapped.get("v").unwrap()).unwrap();
    let specification = json(r#"{"locale": "en", "strength": 2}"#);
    let collation = crate::collation::Collation::parse(specification.view()).unwrap();
    let simple = Variables::default();
    let collated = Variables::default().with_collation(collation);
    compute(parsed.constants(), &simple).unwrap();
    for (variables, expected) in [(&simple, "false"), (&collated, "true"), (&simple, "false")] {
        let found = parsed.evaluate(Document::empty(), variables).unwrap();
        let found = found.map(|found| crate::text::value(found.as_value()));
        assert_eq!(found.as_deref(), Some(expected));
    }
}
