//! Goal: every operator of filters gives MongoDB's answer for values of every kind, and MongoDB's
//! code for operands that it doesn't take.
//!
//! Method: each row asks one filter of all of [`VALUES`] and names those that pass. So null,
//! missing, arrays, the bounds of numbers, NaN and Unicode are asked of each operator as values; a
//! row's kind says what its *operand* is.

use super::{Filter, json, unbounded};

/// The values at `a`, by name; there is none where the text is empty.
const VALUES: &[(&str, &str)] = &[
    ("missing", ""),
    ("null", "null"),
    ("undef", r#"{"$undefined": true}"#),
    ("nan", r#"{"$numberDouble": "NaN"}"#),
    ("-inf", r#"{"$numberDouble": "-Infinity"}"#),
    ("lmin", r#"{"$numberLong": "-9223372036854775808"}"#),
    ("-1", "-1"),
    ("-0", r#"{"$numberDouble": "-0.0"}"#),
    ("0", "0"),
    ("1", "1"),
    ("1.5", "1.5"),
    ("d1.5", r#"{"$numberDecimal": "1.50"}"#),
    ("7", r#"{"$numberLong": "7"}"#),
    ("imax", "2147483647"),
    ("lmax", r#"{"$numberLong": "9223372036854775807"}"#),
    ("2^63", r#"{"$numberDouble": "9223372036854775808"}"#),
    ("d1e40", r#"{"$numberDecimal": "1E+40"}"#),
    ("inf", r#"{"$numberDouble": "Infinity"}"#),
    ("empty", r#""""#),
    ("Red", r#""Red""#),
    ("red", r#""red""#),
    ("straße", r#""straße""#),
    ("日本", r#""日本""#),
    ("obj0", "{}"),
    ("obj", r#"{"b": 1}"#),
    ("place", r#"{"type": "Point", "coordinates": [1, 7]}"#),
    ("arr0", "[]"),
    ("arr", "[1, 7]"),
    ("nest", "[[1, 7]]"),
    ("arrnull", "[null]"),
    ("docs", r#"[{"b": 1}, {"b": 7}]"#),
    ("bin", r#"{"$binary": {"base64": "Bw==", "subType": "00"}}"#),
    ("oid", r#"{"$oid": "5e5a8c000000000000000000"}"#),
    ("false", "false"),
    ("true", "true"),
    ("date", r#"{"$date": "2020-02-29T00:00:00Z"}"#),
    ("ts", r#"{"$timestamp": {"t": 9, "i": 1}}"#),
    ("re", r#"{"$regularExpression": {"pattern": "red", "options": ""}}"#),
    ("minkey", r#"{"$minKey": 1}"#),
    ("maxkey", r#"{"$maxKey": 1}"#),
];

/// A row: the kind of operand, the filter, and the names of the values that pass: all others after
/// `not`, all after `all`; or `!code`.
pub(super) type Row = (&'static str, &'static str, &'static str);

/// The rows of one operator.
pub(super) type Table = (&'static str, &'static [Row]);

fn names_passing(filter: &Filter) -> Vec<&'static str> {
    let passes = |value: &str| {
        let document =
            if value.is_empty() { "{}".to_owned() } else { format!(r#"{{"a": {value}}}"#) };
        filter.try_matches(json(&document).view()).expect("nothing fails on a value")
    };
    VALUES.iter().filter(|(_, value)| passes(value)).map(|(name, _)| *name).collect()
}

fn expected_names(text: &str) -> Vec<&'static str> {
    let listed: Vec<&str> = text.split(' ').filter(|name| !name.is_empty()).collect();
    let (is_wanted, listed) = match listed.as_slice() {
        ["all"] => (false, &[][..]),
        ["not", others @ ..] => (false, others),
        names => (true, names),
    };
    for name in listed {
        assert!(VALUES.iter().any(|(known, _)| known == name), "no value is called {name}");
    }
    let known = VALUES.iter().map(|(name, _)| *name);
    known.filter(|name| listed.contains(name) == is_wanted).collect()
}

/// Asks all rows and reports all that differ.
pub(super) fn check(tables: &[Table]) {
    let mut differing = Vec::new();
    for (operator, kind, filter, expected) in tables
        .iter()
        .flat_map(|(name, rows)| rows.iter().map(move |row| (name, row.0, row.1, row.2)))
    {
        let found = match Filter::parse_search(json(filter).view()) {
            Ok(filter) => names_passing(&filter.with_memory(unbounded())).join(" "),
            Err(error) => format!("!{}", error.code.number()),
        };
        let expected = match expected.starts_with('!') {
            true => expected.to_owned(),
            false => expected_names(expected).join(" "),
        };
        if found != expected {
            differing
                .push(format!("{operator} {kind} {filter}\n  is    {found}\n  wants {expected}"));
        }
    }
    assert!(differing.is_empty(), "{} rows differ:\n{}", differing.len(), differing.join("\n"));
}

/// The kinds of operands that each operator must have a row for.
const KINDS: [&str; 7] = ["plain", "null", "type", "array", "bound", "nan", "unicode"];

/// The cases that may be missing: operators, kinds, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("$and $nor $not $or $elemMatch", "bound nan unicode", "they take filters, not values"),
    (
        "$alwaysFalse $alwaysTrue $exists $sampleRate $size",
        "unicode",
        "they take a number or a truth value",
    ),
    (
        "$comment $where $text",
        "array bound nan unicode",
        "they say nothing of values, or have tests of their own",
    ),
    ("$comment", "null type", "anything is a comment"),
    ("$exists", "type bound", "anything is a truth value"),
    ("$alwaysFalse $alwaysTrue $sampleRate", "array", "told by the wrong types"),
    (
        "$bitsAllClear $bitsAllSet $bitsAnyClear $bitsAnySet $mod",
        "unicode",
        "they ask numbers and bytes",
    ),
    ("$regex $options $type", "bound nan", "they take texts, or the number of a type"),
    ("$options", "array unicode", "letters of a fixed set"),
    (
        "$geoIntersects $geoWithin $within $near $nearSphere",
        "bound nan unicode array",
        "the tables of geometry ask these",
    ),
    (
        "$maxDistance $minDistance $uniqueDocs",
        "bound nan unicode array",
        "the tables of geometry ask these",
    ),
    ("$uniqueDocs", "null type", "it is read and has no effect"),
    ("$jsonSchema", "array bound nan", "the tables of schemas ask these"),
    ("$type", "unicode", "names of a fixed set"),
];

#[test]
fn every_operator_has_its_cases() {
    let tables: Vec<&Table> = super::tables().into_iter().flatten().collect();
    for feature in super::super::features() {
        for kind in KINDS {
            let is_exempt = EXCEPTIONS.iter().any(|(names, kinds, _)| {
                names.split(' ').any(|name| name == feature.name)
                    && kinds.split(' ').any(|exempt| exempt == kind)
            });
            let has_row = tables
                .iter()
                .any(|(name, rows)| *name == feature.name && rows.iter().any(|row| row.0 == kind));
            assert!(has_row || is_exempt, "{} has no row of kind {kind}", feature.name);
        }
    }
    for (name, rows) in tables {
        assert!(
            super::super::features().any(|feature| feature.name == *name),
            "{name} is no operator"
        );
        assert!(rows.iter().all(|row| row.1.contains(name)), "a row of {name} asks something else");
    }
}
