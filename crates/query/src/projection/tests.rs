//! Tables of projections.

mod operators;

use frond_doc::DocumentBuf;
use frond_doc::extended_json::{self, Form};

use super::Projection;
use crate::filter::Filter;

fn json(text: &str) -> DocumentBuf {
    extended_json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn shown(document: &DocumentBuf) -> String {
    let mut out = String::new();
    extended_json::write(document.view(), Form::Relaxed, &mut out);
    out
}

fn check_filtered(filter: &str, projection: &str, document: &str, expected: &str) {
    let filter = Filter::parse(json(filter).view()).expect(filter);
    let parsed = Projection::parse(json(projection).view()).expect(projection);
    let projected = parsed.apply(json(document).view(), &filter).expect(projection);
    assert_eq!(shown(&projected), shown(&json(expected)), "{projection} {document}");
}

fn check(projection: &str, document: &str, expected: &str) {
    check_filtered("{}", projection, document, expected);
}

#[test]
fn many_names_are_found_as_few_are() {
    let fields = |numbers: &mut dyn Iterator<Item = i32>| {
        numbers.map(|number| format!(r#", "f{number}": 1"#)).collect::<String>()
    };
    let document = format!(r#"{{"_id": 1{}}}"#, fields(&mut (0..300)));
    let named = fields(&mut (0..300).step_by(3));
    let others = fields(&mut (0..300).filter(|number| number % 3 != 0));
    check(&format!(r#"{{"x": 1{named}}}"#), &document, &format!(r#"{{"_id": 1{named}}}"#));
    let excluded = format!(r#"{{"x": 0{}}}"#, named.replace(": 1", ": 0"));
    check(&excluded, &document, &format!(r#"{{"_id": 1{others}}}"#));
    let twice = format!(r#"{{"f0.a": 1{named}}}"#);
    assert_eq!(
        Projection::parse(json(&twice).view()).map_err(|error| error.code.number()).err(),
        Some(31250)
    );
}

#[test]
fn inclusion_and_exclusion() {
    let document =
        r#"{"_id": 1, "a": {"b": 1, "c": 2}, "d": [{"b": 1, "c": 2}, 5, [{"b": 3, "c": 4}]]}"#;
    check("{}", document, document);
    check(r#"{"a": 1}"#, document, r#"{"_id": 1, "a": {"b": 1, "c": 2}}"#);
    check(r#"{"a": 1, "_id": 0}"#, document, r#"{"a": {"b": 1, "c": 2}}"#);
    check(r#"{"_id": 1}"#, document, r#"{"_id": 1}"#);
    check(r#"{"_id": 0, "d": 0}"#, document, r#"{"a": {"b": 1, "c": 2}}"#);
    check(r#"{"_id": 0}"#, r#"{"_id": 1, "a": 1}"#, r#"{"a": 1}"#);
    check(r#"{"a.b": 1}"#, document, r#"{"_id": 1, "a": {"b": 1}}"#);
    check(r#"{"a": {"b": 1}, "_id": 0}"#, document, r#"{"a": {"b": 1}}"#);
    check(r#"{"d.b": 1, "_id": 0}"#, document, r#"{"d": [{"b": 1}, [{"b": 3}]]}"#);
    check(r#"{"d.b": 0, "_id": 0, "a": 0}"#, document, r#"{"d": [{"c": 2}, 5, [{"c": 4}]]}"#);
    check(r#"{"x": 1}"#, document, r#"{"_id": 1}"#);
    check(
        r#"{"d": 1, "a": true}"#,
        r#"{"_id": 1, "a": 1, "d": 2}"#,
        r#"{"_id": 1, "a": 1, "d": 2}"#,
    );
}

#[test]
fn arrays() {
    let document = r#"{"_id": 1, "a": [1, 2, 3, 4], "b": 1}"#;
    check(r#"{"a": {"$slice": 2}}"#, document, r#"{"_id": 1, "a": [1, 2], "b": 1}"#);
    check(r#"{"a": {"$slice": -1}}"#, document, r#"{"_id": 1, "a": [4], "b": 1}"#);
    check(r#"{"a": {"$slice": [1, 2]}, "_id": 1}"#, document, r#"{"_id": 1, "a": [2, 3]}"#);
    check(r#"{"a": {"$slice": [-3, 2]}, "b": 0}"#, document, r#"{"_id": 1, "a": [2, 3]}"#);
    let document = r#"{"_id": 1, "a": [{"b": 1}, {"b": 2}, {"b": 2, "c": 1}]}"#;
    check(r#"{"a": {"$elemMatch": {"b": 2}}}"#, document, r#"{"_id": 1, "a": [{"b": 2}]}"#);
    check(r#"{"a": {"$elemMatch": {"b": 9}}}"#, document, r#"{"_id": 1}"#);
    check_filtered(r#"{"a.b": 2}"#, r#"{"a.$": 1}"#, document, r#"{"_id": 1, "a": [{"b": 2}]}"#);
    let filter = Filter::all();
    let parsed = Projection::parse(json(r#"{"a.$": 1}"#).view()).expect("positional");
    let error = parsed.apply(json(document).view(), &filter).expect_err("no position");
    assert_eq!(error.code.number(), 51246);
}

#[test]
fn expressions() {
    let document = r#"{"_id": 1, "a": 3, "b": {"c": 4}}"#;
    check(r#"{"x": "$b.c", "a": 1}"#, document, r#"{"_id": 1, "a": 3, "x": 4}"#);
    check(r#"{"a": {"$add": ["$a", 1]}, "_id": 0}"#, document, r#"{"a": 4}"#);
    check(r#"{"b.d": "$a", "b.c": 1}"#, document, r#"{"_id": 1, "b": {"c": 4, "d": 3}}"#);
    check(r#"{"x": "$absent"}"#, document, r#"{"_id": 1}"#);
}

#[test]
fn literals_come_last() {
    check(
        r#"{"x": "hello", "a": 1}"#,
        r#"{"_id": 1, "x": 2, "a": 3}"#,
        r#"{"_id": 1, "a": 3, "x": "hello"}"#,
    );
    check(r#"{"a.x": "hello"}"#, r#"{"_id": 1, "a": 3}"#, r#"{"_id": 1, "a": {"x": "hello"}}"#);
    check(r#"{"a.x": "hello"}"#, r#"{"_id": 1}"#, r#"{"_id": 1, "a": {"x": "hello"}}"#);
}

#[test]
fn refused() {
    for (projection, code) in [
        (r#"{"a": {"$slice": 1, "$elemMatch": {"b": 1}}}"#, 15983),
        (r#"{"a": {"$elemMatch": {"b": 1}, "b": 1}}"#, 15983),
        (r#"{"a": 1, "b": 0}"#, 31254),
        (r#"{"a": 0, "b": 1}"#, 31253),
        (r#"{"a": 1, "a.b": 1}"#, 31249),
        (r#"{"a.b": 1, "a": 1}"#, 31250),
        (r#"{"a": 0, "b": "x"}"#, 31310),
        (r#"{"a": {}}"#, 51270),
        (r#"{"": 1}"#, 40352),
        (r#"{"a.": 1}"#, 40353),
        (r#"{"$a": 1}"#, 16410),
        (r#"{"$": 1}"#, 16410),
        (r#"{"a.$.b": 1}"#, 31394),
        (r#"{"a": {"$elemMatch": 1}}"#, 31274),
        (r#"{"a": {"$meta": "textScore"}}"#, 40218),
    ] {
        let error = Projection::parse(json(projection).view()).expect_err(projection);
        assert_eq!(error.code.number(), code, "{projection}: {error}");
    }
}
