//! Expressions and their values.
//!
//! `cases` has a table for each operator; the rest is what has no operator, and what wants too
//! much. The expected side is a value, `missing`, or `!code` for an error; types are compared
//! exactly.

mod cases;
mod constants;
mod core;
mod hostile;

use frond_doc::{DocumentBuf, ValueBuf, extended_json};

use super::{Expression, Variables, compute};
use crate::error::QueryError;
use crate::memory::RequestMemory;
use frond_store::budget::Reservation;

/// The document of all tables.
const DOCUMENT: &str = r#"{
    "_id": 1, "i": 7, "l": {"$numberLong": "5000000000"}, "d": 2.5, "s": "Straße", "e": "",
    "t": true, "n": null, "nan": {"$numberDouble": "NaN"}, "dec": {"$numberDecimal": "1.10"},
    "date": {"$date": "2020-02-29T12:34:56.789Z"}, "oid": {"$oid": "5e5a8c000000000000000000"},
    "a": [3, 1, 2], "empty": [], "mixed": [1, "x", null, [2], {"b": 4}],
    "docs": [{"b": 1, "c": {"d": 9}}, {"b": [2, 3]}, {"c": 5}, [{"b": 7}], 8],
    "o": {"x": 1, "y": {"z": "deep"}}, "many": {"b": {"c": 3}}
}"#;

fn json(text: &str) -> DocumentBuf {
    extended_json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn evaluate(expression: &str, document: &DocumentBuf) -> Result<Option<ValueBuf>, QueryError> {
    let wrapped = json(&format!("{{\"v\": {expression}}}"));
    let parsed = Expression::parse(wrapped.get("v").unwrap())?;
    let let_values = json(r#"{"given": 42, "list": [1, 2]}"#);
    let variables = Variables::new(86_400_000, Some(let_values.view())).unwrap();
    let memory = RequestMemory::new(Reservation::new(usize::MAX, None), None);
    let variables = variables.with_memory(memory);
    let found = parsed.evaluate(document.view(), &variables);
    // A value that was computed ahead is the same.
    if compute(parsed.constants(), &variables).is_ok() && !is_random(expression) {
        assert_eq!(parsed.evaluate(document.view(), &variables), found, "{expression}");
    }
    found
}

fn is_random(expression: &str) -> bool {
    expression.contains("$rand")
}

fn check(table: &[(&str, &str)]) {
    let document = json(DOCUMENT);
    for (expression, expected) in table {
        let found = match evaluate(expression, &document) {
            Ok(None) => "missing".to_owned(),
            Ok(Some(value)) => {
                let mut text = String::new();
                let form = extended_json::Form::Canonical;
                extended_json::write_value(value.as_value(), form, &mut text);
                text
            }
            Err(error) => format!("!{}", error.code.number()),
        };
        let expected = if *expected == "missing" || expected.starts_with('!') {
            (*expected).to_owned()
        } else {
            let wrapped = json(&format!("{{\"v\": {expected}}}"));
            let mut text = String::new();
            let form = extended_json::Form::Canonical;
            extended_json::write_value(wrapped.get("v").unwrap(), form, &mut text);
            text
        };
        assert_eq!(found, expected, "{expression}");
    }
}
