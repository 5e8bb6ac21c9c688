//! A table: schema, a value that keeps it, one that doesn't; and schemas that are refused.

use frond_doc::{DocumentBuf, extended_json};

use crate::filter::Filter;

fn json(text: &str) -> DocumentBuf {
    extended_json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn filter(schema: &str) -> Result<Filter, i32> {
    let filter = json(&format!("{{\"$jsonSchema\": {schema}}}"));
    Filter::parse(filter.view()).map_err(|error| error.code.number())
}

/// `of` is a schema of the field `v`; the values are those of `v`, or documents without it.
fn check(of: &str, kept: &[&str], broken: &[&str]) {
    let schema = format!("{{\"properties\": {{\"v\": {of}}}}}");
    let filter = filter(&schema).unwrap_or_else(|code| panic!("{schema}: {code}"));
    for (values, expected) in [(kept, true), (broken, false)] {
        for value in values {
            let document = json(&format!("{{\"v\": {value}}}"));
            assert_eq!(filter.matches(document.view()), expected, "{of} {value}");
            if !expected {
                let details = filter.failure_details(document.view());
                DocumentBuf::validated(details.into_bytes()).expect("details are BSON");
            }
        }
    }
    assert!(filter.matches(json("{}").view()), "{of}");
}

#[test]
fn rules() {
    check(r#"{"bsonType": "int"}"#, &["1"], &["1.5", "\"1\""]);
    check(r#"{"bsonType": ["string", "null"]}"#, &["\"a\"", "null"], &["1"]);
    check(r#"{"type": "number"}"#, &["1", "1.5", "{\"$numberLong\": \"1\"}"], &["\"1\""]);
    check(r#"{"type": ["object", "boolean"]}"#, &["{}", "true"], &["[]"]);
    check(r#"{"enum": [1, {"a": 1}, "x"]}"#, &["1", "1.0", "{\"a\": 1}"], &["2", "[1]"]);
    check(
        r#"{"enum": [{"a": 1, "b": [{"c": 1, "d": 2}]}]}"#,
        &[r#"{"b": [{"d": 2, "c": 1}], "a": 1}"#],
        &[r#"{"b": [{"d": 1, "c": 2}], "a": 1}"#, r#"[1]"#],
    );
    check(
        r#"{"uniqueItems": true}"#,
        &[r#"[{"a": 1, "b": 2}, {"a": 2, "b": 1}]"#, "[[1, 2], [2, 1]]"],
        &[r#"[{"a": 1, "b": 2}, {"b": 2, "a": 1}]"#, "[1, 1.0]"],
    );
    check(r#"{"minimum": 2, "maximum": 4}"#, &["2", "4", "\"9\""], &["1", "4.5"]);
    let nan = r#"{"$numberDouble": "NaN"}"#;
    let decimal_nan = r#"{"$numberDecimal": "NaN"}"#;
    for bound in [r#"{"maximum": 4}"#, r#"{"minimum": 2}"#] {
        check(bound, &["3"], &[nan, decimal_nan]);
    }
    check(&format!(r#"{{"maximum": {nan}}}"#), &[nan, decimal_nan], &["1"]);
    check(&format!(r#"{{"maximum": {nan}, "exclusiveMaximum": true}}"#), &[], &["1", nan]);
    check(r#"{"minimum": 2, "exclusiveMinimum": true}"#, &["2.1"], &["2"]);
    check(r#"{"maximum": 2, "exclusiveMaximum": true}"#, &["1"], &["2"]);
    check(r#"{"multipleOf": 3}"#, &["0", "-9", "6.0", "\"a\""], &["4"]);
    check(
        r#"{"minLength": 2, "maxLength": 3}"#,
        &["\"äö\"", "\"abc\"", "5"],
        &["\"a\"", "\"abcd\""],
    );
    check(r#"{"pattern": "^a"}"#, &["\"ab\"", "5"], &["\"ba\""]);
    check(r#"{"required": ["x"]}"#, &["{\"x\": null}", "5"], &["{}"]);
    check(
        r#"{"minProperties": 1, "maxProperties": 2}"#,
        &["{\"a\": 1}"],
        &["{}", "{\"a\": 1, \"b\": 1, \"c\": 1}"],
    );
    check(
        r#"{"properties": {"x": {"type": "string"}}}"#,
        &["{}", "{\"x\": \"\"}", "[]"],
        &["{\"x\": 1}"],
    );
    check(
        r#"{"properties": {"x": {}}, "patternProperties": {"^p": {"type": "string"}}, "additionalProperties": false}"#,
        &["{\"x\": 1, \"pa\": \"\"}"],
        &["{\"y\": 1}", "{\"pa\": 1}"],
    );
    check(r#"{"additionalProperties": {"type": "string"}}"#, &["{\"a\": \"\"}"], &["{\"a\": 1}"]);
    check(r#"{"dependencies": {"a": ["b"]}}"#, &["{}", "{\"a\": 1, \"b\": 1}"], &["{\"a\": 1}"]);
    check(r#"{"dependencies": {"a": {"required": ["b"]}}}"#, &["{\"b\": 1}"], &["{\"a\": 1}"]);
    check(r#"{"items": {"type": "string"}}"#, &["[]", "[\"a\"]", "5"], &["[1]"]);
    check(
        r#"{"items": [{"type": "string"}], "additionalItems": false}"#,
        &["[]", "[\"a\"]"],
        &["[1]", "[\"a\", 1]"],
    );
    check(
        r#"{"items": [{}], "additionalItems": {"type": "string"}}"#,
        &["[1, \"a\"]"],
        &["[1, 2]"],
    );
    check(r#"{"minItems": 1, "maxItems": 2}"#, &["[1]"], &["[]", "[1, 2, 3]"]);
    check(r#"{"uniqueItems": true}"#, &["[1, 2]", "[]"], &["[1, 1.0]"]);
    check(r#"{"allOf": [{"minimum": 1}, {"maximum": 3}]}"#, &["2"], &["0", "4"]);
    check(r#"{"anyOf": [{"type": "string"}, {"minimum": 3}]}"#, &["\"a\"", "3"], &["2"]);
    check(r#"{"oneOf": [{"minimum": 1}, {"maximum": 3}]}"#, &["0", "4"], &["2"]);
    check(r#"{"not": {"type": "string"}}"#, &["1"], &["\"a\""]);
    check(r#"{"title": "t", "description": "d"}"#, &["1"], &[]);
}

#[test]
fn wrong_schemas_are_refused() {
    for (schema, code) in [
        ("5", 14),
        (r#"{"nope": 1}"#, 9),
        (r#"{"$ref": "x"}"#, 9),
        (r#"{"format": "x"}"#, 9),
        (r#"{"type": "integer"}"#, 9),
        (r#"{"type": "int"}"#, 2),
        (r#"{"type": "string", "bsonType": "string"}"#, 9),
        (r#"{"bsonType": 2}"#, 14),
        (r#"{"enum": []}"#, 9),
        (r#"{"enum": [1, 1.0]}"#, 9),
        (r#"{"required": "a"}"#, 14),
        (r#"{"required": ["a", "a"]}"#, 9),
        (r#"{"minimum": "a"}"#, 14),
        (r#"{"exclusiveMinimum": true}"#, 9),
        (r#"{"multipleOf": 0}"#, 9),
        (r#"{"minLength": -1}"#, 9),
        (r#"{"maxLength": "a"}"#, 9),
        (r#"{"minItems": null}"#, 9),
        (r#"{"maxProperties": [1]}"#, 9),
        (r#"{"multipleOf": "a"}"#, 14),
        (r#"{"pattern": "("}"#, 51091),
        (r#"{"properties": {"a": 1}}"#, 14),
        (r#"{"items": 1}"#, 14),
        (r#"{"allOf": []}"#, 2),
        (r#"{"oneOf": []}"#, 2),
        (r#"{"uniqueItems": 1}"#, 14),
    ] {
        assert_eq!(filter(schema).err(), Some(code), "{schema}");
    }
    let deep = format!("{}{}{}", "{\"not\": ".repeat(110), "{}", "}".repeat(110));
    assert_eq!(filter(&deep).err(), Some(2));
}

#[test]
fn samples_are_of_about_the_size() {
    let rate = |rate: &str| {
        let parsed = Filter::parse(json(&format!("{{\"$sampleRate\": {rate}}}")).view());
        parsed
            .map_err(|error| error.code.number())
            .map(|filter| (0..2000).filter(|_| filter.matches(json("{}").view())).count())
    };
    assert_eq!(rate("0"), Ok(0));
    assert_eq!(rate("1"), Ok(2000));
    assert!((700..1300).contains(&rate("0.5").expect("a rate")));
    assert_eq!(rate("1.5"), Err(2));
    assert_eq!(rate("\"a\""), Err(2));
}
