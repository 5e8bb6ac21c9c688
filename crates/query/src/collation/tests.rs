//! Specifications, refused and filled in, and what they mean for values. The facts about
//! strengths, accents and numbers are the Unicode Collation Algorithm's and MongoDB's manual's.

use std::cmp::Ordering;

use frond_doc::{DocumentBuf, Value, extended_json};

use super::Collation;

fn json(text: &str) -> DocumentBuf {
    extended_json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn collation(text: &str) -> Collation {
    Collation::parse(json(text).view()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn omitted_options_get_their_defaults() {
    let full = collation(r#"{"locale": "fr_CA", "strength": 2.9}"#);
    let expected = json(
        r#"{"locale": "fr_CA", "caseLevel": false, "caseFirst": "off", "strength": 2,
            "numericOrdering": false, "alternate": "non-ignorable", "maxVariable": "punct",
            "normalization": false, "backwards": true, "version": "57.1"}"#,
    );
    assert_eq!(full.specification(), Some(expected.view()));
    assert_eq!(full, Collation::parse(expected.view()).expect("what it gives it takes"));
    assert!(collation(r#"{"locale": "simple"}"#).is_simple());
    assert!(collation(r#"{"locale": "simple", "strength": 1}"#).is_simple());
    assert_ne!(full, collation(r#"{"locale": "fr_CA"}"#));
}

#[test]
fn wrong_specifications_have_mongodb_s_codes() {
    for (specification, code, message) in [
        (r#"{}"#, 40414, "BSON field 'collation.locale' is missing but a required field"),
        (r#"{"locale": null}"#, 40414, "missing"),
        (r#"{"strength": 2}"#, 40414, "missing"),
        (
            r#"{"locale": 5}"#,
            14,
            "'collation.locale' is the wrong type 'int', expected type 'string'",
        ),
        (r#"{"locale": "en", "level": 1}"#, 40415, "'collation.level' is an unknown field."),
        (r#"{"locale": "en", "locale": "en"}"#, 40413, "'collation.locale' is a duplicate field"),
        (
            r#"{"locale": "en", "strength": "1"}"#,
            14,
            "expected types '[int, decimal, double, long']",
        ),
        (r#"{"locale": "en", "strength": 6}"#, 2, "value must be <= 5, actual value '6'"),
        (r#"{"locale": "en", "strength": 0}"#, 2, "Enumeration value '0'"),
        (r#"{"locale": "en", "strength": -1}"#, 2, "value must be >= 0, actual value '-1'"),
        (r#"{"locale": "en", "strength": 1e300}"#, 2, "actual value '2147483647'"),
        (r#"{"locale": "en", "caseLevel": 1}"#, 14, "expected type 'bool'"),
        (r#"{"locale": "en", "caseFirst": "Upper"}"#, 2, "Enumeration value 'Upper' for field"),
        (r#"{"locale": "en", "alternate": "x"}"#, 2, "is not a valid value."),
        (r#"{"locale": "en", "maxVariable": "symbol"}"#, 2, "is not a valid value."),
        (r#"{"locale": "en", "backwards": 1}"#, 14, "should be a boolean value, but found: int"),
        (r#"{"locale": "en", "backwards": true, "strength": 1}"#, 2, "with 'strength' of 1"),
        (r#"{"locale": "en", "caseFirst": "upper", "strength": 2}"#, 2, "'caseFirst' is invalid"),
        (r#"{"locale": "en", "version": "58.2"}"#, 161, "only available collator version"),
        (r#"{"locale": ""}"#, 2, "cannot be the empty string"),
        (r#"{"locale": "xx"}"#, 2, r#"Field 'locale' is invalid in: { locale: "xx" }"#),
        (r#"{"locale": "en-us"}"#, 2, "Did you mean 'en_US'?"),
        (r#"{"locale": "fr@collation=phonebook"}"#, 2, "Did you mean 'fr'?"),
    ] {
        let error = Collation::parse(json(specification).view()).expect_err(specification);
        assert_eq!(error.code.number(), code, "{specification}: {error}");
        assert!(error.message.contains(message), "{specification}: {error}");
    }
}

#[test]
fn strings_compare_by_the_rules() {
    use Ordering::{Equal, Greater, Less};
    for (specification, left, right, expected) in [
        (r#"{"locale": "simple"}"#, "a", "B", Greater),
        (r#"{"locale": "en"}"#, "a", "B", Less),
        (r#"{"locale": "en"}"#, "a", "A", Less),
        (r#"{"locale": "en", "caseFirst": "upper"}"#, "a", "A", Greater),
        (r#"{"locale": "en", "strength": 2}"#, "a", "A", Equal),
        (r#"{"locale": "en", "strength": 2}"#, "a", "á", Less),
        (r#"{"locale": "en", "strength": 1}"#, "a", "Á", Equal),
        (r#"{"locale": "en", "strength": 1, "caseLevel": true}"#, "a", "á", Equal),
        (r#"{"locale": "en", "strength": 1, "caseLevel": true}"#, "a", "A", Less),
        (r#"{"locale": "en", "strength": 1}"#, "straße", "STRASSE", Equal),
        (r#"{"locale": "en"}"#, "10", "9", Less),
        (r#"{"locale": "en", "numericOrdering": true}"#, "10", "9", Greater),
        (r#"{"locale": "en", "numericOrdering": true}"#, "a007", "a7", Equal),
        (r#"{"locale": "en"}"#, "a b", "ab", Less),
        (r#"{"locale": "en", "alternate": "shifted"}"#, "a-b", "ab", Equal),
        (r#"{"locale": "en", "alternate": "shifted", "maxVariable": "space"}"#, "a-b", "ab", Less),
        (r#"{"locale": "en", "alternate": "shifted", "maxVariable": "space"}"#, "a b", "ab", Equal),
        (r#"{"locale": "en", "alternate": "shifted", "strength": 4}"#, "a b", "ab", Less),
        (r#"{"locale": "fr"}"#, "coté", "côte", Less),
        (r#"{"locale": "fr_CA"}"#, "coté", "côte", Greater),
        (r#"{"locale": "fr_CA", "backwards": false}"#, "coté", "côte", Less),
        (r#"{"locale": "fr", "backwards": true}"#, "coté", "côte", Greater),
        (r#"{"locale": "sv"}"#, "ö", "z", Greater),
        (r#"{"locale": "de"}"#, "ö", "z", Less),
        (r#"{"locale": "de@collation=phonebook"}"#, "ö", "of", Less),
        (r#"{"locale": "de"}"#, "ö", "of", Less),
        (r#"{"locale": "de@collation=phonebook", "strength": 1}"#, "ö", "oe", Equal),
        (r#"{"locale": "es"}"#, "ñ", "nz", Greater),
        (r#"{"locale": "en"}"#, "e\u{301}", "é", Equal),
        (r#"{"locale": "en", "strength": 5}"#, "\u{0}a", "a", Less),
    ] {
        let collation = collation(specification);
        let (one, other) = (Value::String(left), Value::String(right));
        assert_eq!(collation.compare(one, other), expected, "{specification} {left:?} {right:?}");
        let keys = collation.key_of(one).cmp(&collation.key_of(other));
        assert_eq!(keys, expected, "keys: {specification} {left:?} {right:?}");
    }
}

#[test]
fn strings_within_values_count_and_names_do_not() {
    let collation = collation(r#"{"locale": "en", "strength": 2}"#);
    for (left, right, expected) in [
        (r#"{"v": ["a", {"b": "C"}]}"#, r#"{"v": ["A", {"b": "c"}]}"#, Ordering::Equal),
        (r#"{"v": {"a": "x"}}"#, r#"{"v": {"A": "x"}}"#, Ordering::Greater),
        (r#"{"v": {"a": "x"}}"#, r#"{"v": {"a": "X", "b": 1}}"#, Ordering::Less),
        (r#"{"v": ["a"]}"#, r#"{"v": ["A", null]}"#, Ordering::Less),
        (r#"{"v": {"$symbol": "a"}}"#, r#"{"v": "A"}"#, Ordering::Equal),
        (r#"{"v": {"$code": "a"}}"#, r#"{"v": {"$code": "A"}}"#, Ordering::Greater),
        (r#"{"v": 5}"#, r#"{"v": "a"}"#, Ordering::Less),
        (r#"{"v": {}}"#, r#"{"v": []}"#, Ordering::Less),
    ] {
        let (one, other) = (json(left), json(right));
        let value = |document: &DocumentBuf| document.get("v").expect("there").to_buf();
        let (one, other) = (value(&one), value(&other));
        let (one, other) = (one.as_value(), other.as_value());
        assert_eq!(collation.compare(one, other), expected, "{left} {right}");
        let keys = collation.key_of(one).cmp(&collation.key_of(other));
        assert_eq!(keys, expected, "keys: {left} {right}");
    }
}
