//! Tables: under which keys documents are filed, and what partial indexes hold.

use frond_doc::{DocumentBuf, extended_json, key};

use super::{FLAG_INEXACT_KEY, IndexShape, ShapeOptions, decode, partial};
use crate::filter::Filter;
use crate::sort::SortPattern;
use crate::sort_field::SortField;

fn json(text: &str) -> DocumentBuf {
    extended_json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn fields(text: &str) -> Vec<SortField> {
    SortPattern::parse(json(text).view()).expect(text).fields
}

/// The document's keys are those of the arrays in `expected`, in any order.
fn check_keys(pattern: &str, document: &str, expected: &str, multikey: bool) {
    let fields = fields(pattern);
    let shape = IndexShape::of_values(&fields, false);
    let found = shape.keys(json(document).view()).expect(document);
    let has_array = found.flags & FLAG_INEXACT_KEY != 0;
    let found: Vec<Vec<u8>> = found.keys.into_iter().map(|key| key.key).collect();
    let expected = json(&format!(r#"{{"keys": {expected}}}"#));
    let keys = expected.get("keys").and_then(|keys| keys.as_array()).expect("an array");
    let mut keys: Vec<Vec<u8>> = keys
        .iter()
        .map(|values| {
            let mut key = Vec::new();
            let values = values.as_array().expect("one array a key");
            for (value, field) in values.iter().zip(&fields) {
                key::append(&mut key, value, field.descending);
            }
            key
        })
        .collect();
    keys.sort();
    assert_eq!(found, keys, "{pattern} {document}");
    assert_eq!(has_array, multikey, "{pattern} {document}");
}

#[test]
fn keys() {
    let undefined = r#"[[{"$undefined": true}]]"#;
    check_keys(r#"{"a": 1}"#, r#"{"a": 5}"#, "[[5]]", false);
    check_keys(r#"{"a": 1}"#, "{}", "[[null]]", false);
    check_keys(r#"{"a": 1}"#, r#"{"a": [1, 2, 1]}"#, "[[1], [2]]", true);
    check_keys(r#"{"a": 1}"#, r#"{"a": []}"#, undefined, true);
    // Nothing is there below an empty array, so that a sparse index lacks the document.
    check_keys(r#"{"a.b": 1}"#, r#"{"a": []}"#, "[[null]]", true);
    let sparse = IndexShape::of_values(&fields(r#"{"a.b": 1}"#), true);
    assert!(sparse.keys(json(r#"{"a": []}"#).view()).expect("it has keys").keys.is_empty());
    check_keys(r#"{"a": 1}"#, r#"{"a": [[1, 2]]}"#, "[[[1, 2]]]", true);
    check_keys(r#"{"a.b": 1}"#, r#"{"a": [{"b": 1}, {}, 7]}"#, "[[1], [null]]", true);
    check_keys(r#"{"a.b": 1}"#, r#"{"a": [{"b": [1, 2]}]}"#, "[[1], [2]]", true);
    check_keys(r#"{"a.b": 1}"#, r#"{"a": 5}"#, "[[null]]", false);
    check_keys(r#"{"a.1": 1}"#, r#"{"a": [1, 2]}"#, "[[2]]", false);
    check_keys(r#"{"a": 1, "b": -1}"#, r#"{"a": [1, 2], "b": 3}"#, "[[1, 3], [2, 3]]", true);
    check_keys(
        r#"{"a.x": 1, "a.y": 1}"#,
        r#"{"a": [{"x": 1, "y": 2}, {"x": 3}]}"#,
        "[[1, 2], [3, null]]",
        true,
    );
    let sparse = |document: &str| {
        let shape = IndexShape::of_values(&fields(r#"{"a": 1, "b": 1}"#), true);
        shape.keys(json(document).view()).expect(document).keys.len()
    };
    assert_eq!((sparse("{}"), sparse(r#"{"b": null}"#)), (0, 1));
    let pattern = fields(r#"{"a": 1, "b": 1}"#);
    let shape = IndexShape::of_values(&pattern, false);
    let error = shape.keys(json(r#"{"a": [1], "b": [2]}"#).view());
    assert_eq!(error.expect_err("parallel").code.number(), 171);
    let ambiguous = json(r#"{"a": [{"0": 1}]}"#);
    let shape = IndexShape::of_values(&fields(r#"{"a.0": 1}"#), false);
    let error = shape.keys(ambiguous.view());
    assert_eq!(error.expect_err("ambiguous").code.number(), 16746);
}

/// The parts of the document's keys, given back: `[[1], [2]]`.
fn check_parts(pattern: &str, options: &str, document: &str, expected: &str) {
    let options = json(options);
    let option = |name| options.get(name).and_then(|value| value.as_document());
    let options = ShapeOptions {
        sparse: false,
        partial: option("partial"),
        wildcard_projection: option("projection"),
        ..ShapeOptions::default()
    };
    let shape = IndexShape::parse(json(pattern).view(), options).expect(pattern);
    let keys = shape.keys(json(document).view()).expect(document).keys;
    let mut shown = Vec::new();
    for key in &keys {
        let (mut rest, mut bits) = (&key.key[..], &key.bits[..]);
        let mut parts = Vec::new();
        for descending in shape.parts() {
            let part = decode::part(&mut rest, &mut bits, *descending).expect("it was encoded");
            parts
                .push(part.map_or("absent".to_owned(), |part| crate::text::value(part.as_value())));
        }
        assert!(rest.is_empty(), "{pattern} {document}");
        shown.push(parts.join(","));
    }
    assert_eq!(shown.join(" "), expected, "{pattern} {document}");
}

#[test]
fn kinds_of_keys() {
    check_parts(r#"{"a": "hashed"}"#, "{}", r#"{"a": 1}"#, "5902408780260971510");
    check_parts(r#"{"a": "hashed"}"#, "{}", "{}", "2338878944348059895");
    check_parts(
        r#"{"b": -1, "a": "hashed"}"#,
        "{}",
        r#"{"a": 1.9, "b": 2.5}"#,
        "2.5,5902408780260971510",
    );
    check_parts(r#"{"a": -1}"#, "{}", "{}", "absent");
    check_parts(r#"{"a": -1}"#, "{}", r#"{"a": null}"#, "null");
    let everything = r#"{"$**": 1}"#;
    check_parts(everything, "{}", r#"{"_id": 1, "a": 1, "b": {"c": "x"}}"#, r#""a",1 "b.c","x""#);
    check_parts(everything, "{}", r#"{"a": [1, {"b": 2}], "c": {}}"#, r#""a",1 "a.b",2 "c",{}"#);
    check_parts(everything, "{}", r#"{"a": []}"#, r#""a",undefined"#);
    check_parts(r#"{"b.$**": -1}"#, "{}", r#"{"a": 1, "b": {"c": 2}, "bb": 3}"#, r#""b.c",2"#);
    check_parts(
        r#"{"x": 1, "$**": 1}"#,
        r#"{"projection": {"x": false}}"#,
        r#"{"x": 5, "a": 1}"#,
        r#"5,"a",1"#,
    );
    let projection = r#"{"projection": {"a": true, "_id": true}}"#;
    check_parts(
        everything,
        projection,
        r#"{"_id": 7, "a": {"b": 1}, "c": 1}"#,
        r#""_id",7 "a.b",1"#,
    );
    let partial = r#"{"partial": {"b": {"$gt": 5}}}"#;
    check_parts(r#"{"a": 1}"#, partial, r#"{"a": 1, "b": 6}"#, "1");
    check_parts(r#"{"a": 1}"#, partial, r#"{"a": 1, "b": 5}"#, "");
}

#[test]
fn refused_keys() {
    for (pattern, options, code) in [
        (r#"{"a": "hashed", "b": "hashed"}"#, "{}", 31303),
        (r#"{"a": "nonsense"}"#, "{}", 67),
        (r#"{"a": 0}"#, "{}", 67),
        (r#"{"a": true}"#, "{}", 67),
        (r#"{"a": 1}"#, r#"{"projection": {"a": 1}}"#, 2),
        (r#"{"$**": 1, "b.$**": 1}"#, "{}", 67),
        (r#"{"$**": 1}"#, r#"{"projection": {"a": 1, "b": 0}}"#, 31254),
        (r#"{"a": 1}"#, r#"{"partial": {"a": {"$ne": 1}}}"#, 67),
        (r#"{"a": 1}"#, r#"{"partial": {"a": {"$nonsense": 1}}}"#, 2),
    ] {
        let options = json(options);
        let option = |name| options.get(name).and_then(|value| value.as_document());
        let options = ShapeOptions {
            sparse: false,
            partial: option("partial"),
            wildcard_projection: option("projection"),
            ..ShapeOptions::default()
        };
        let error = IndexShape::parse(json(pattern).view(), options).expect_err(pattern);
        assert_eq!(error.code.number(), code, "{pattern} {}", error.message);
    }
    let shape = IndexShape::parse(json(r#"{"a.b": "hashed"}"#).view(), ShapeOptions::default());
    let error = shape.expect("a key").keys(json(r#"{"a": [1]}"#).view()).expect_err("an array");
    assert_eq!(error.code.number(), 16766);
}

#[test]
fn queries_that_imply_partial_filters() {
    for (query, filter, expected) in [
        (r#"{"a": 6}"#, r#"{"a": {"$gt": 5}}"#, true),
        (r#"{"a": 5}"#, r#"{"a": {"$gt": 5}}"#, false),
        (r#"{"a": {"$gt": 5}}"#, r#"{"a": {"$gt": 5}}"#, true),
        (r#"{"a": {"$gt": 5}}"#, r#"{"a": {"$gte": 5}}"#, true),
        (r#"{"a": {"$gte": 5}}"#, r#"{"a": {"$gt": 5}}"#, false),
        (r#"{"a": {"$gt": 5, "$lt": 9}}"#, r#"{"a": {"$lt": 10}}"#, true),
        (r#"{"a": {"$gt": "x"}}"#, r#"{"a": {"$gt": 5}}"#, false),
        (r#"{"a": {"$in": [6, 7]}}"#, r#"{"a": {"$gt": 5}}"#, true),
        (r#"{"a": {"$in": [6, null]}}"#, r#"{"a": {"$gt": 5}}"#, false),
        (r#"{"a": 1}"#, r#"{"a": {"$exists": true}}"#, true),
        (r#"{"a": null}"#, r#"{"a": {"$exists": true}}"#, false),
        (r#"{"a": {"$ne": null}}"#, r#"{"a": {"$exists": true}}"#, true),
        (r#"{"a.b": {"$ne": null}}"#, r#"{"a.b": {"$exists": true}}"#, false),
        (r#"{"a": 1, "b": 2}"#, r#"{"b": 2}"#, true),
        (r#"{"a": 1}"#, r#"{"a": 1, "b": 2}"#, false),
        (r#"{"$or": [{"a": 6}, {"a": 7}]}"#, r#"{"a": {"$gt": 5}}"#, true),
        (r#"{"$or": [{"a": 6}, {"b": 7}]}"#, r#"{"a": {"$gt": 5}}"#, false),
        (r#"{"a": 1}"#, r#"{"$or": [{"a": 1}, {"b": 1}]}"#, true),
        (r#"{"a": {"$in": [1, 9]}}"#, r#"{"$or": [{"a": {"$lt": 3}}, {"a": {"$gt": 5}}]}"#, true),
        (r#"{"a": {"$in": [1, 4]}}"#, r#"{"$or": [{"a": {"$lt": 3}}, {"a": {"$gt": 5}}]}"#, false),
        (r#"{"a": {"$type": "string"}}"#, r#"{"a": {"$type": ["string", "int"]}}"#, true),
        (r#"{"a": "x"}"#, r#"{"a": {"$type": "string"}}"#, false),
        (r#"{}"#, r#"{"a": 1}"#, false),
    ] {
        let parsed = Filter::parse(json(query).view()).expect(query);
        let index = partial::parse(json(filter).view()).expect(filter);
        assert_eq!(partial::implies(&parsed, &index), expected, "{query} {filter}");
    }
}
