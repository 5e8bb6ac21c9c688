//! Goal: every update operator and modifier has MongoDB's effect on each kind of value, and
//! MongoDB's refusals.
//!
//! Method: each row is a document, an update of it, and the document after it: nothing where it
//! stays as it is, or `!code`. Types are compared exactly. Array filters stand behind the update,
//! where a row needs them.

use frond_doc::Value;
use frond_doc::extended_json::{self, Form};

use super::{CONTEXT, Update, json};
use crate::error::QueryError;

/// The kind of value that the row is about, the document, the update, and the document after it.
pub(super) type Row = (&'static str, &'static str, &'static str, &'static str);

/// The rows of one operator.
pub(super) type Table = (&'static str, &'static [Row]);

fn canonical(document: &frond_doc::DocumentBuf) -> String {
    let mut out = String::new();
    extended_json::write(document.view(), Form::Canonical, &mut out);
    out
}

fn outcome(before: &str, update: &str) -> Result<String, QueryError> {
    let wrapped = json(&format!(r#"{{"all": [{update}]}}"#));
    let mut parts = wrapped.get("all").and_then(|all| all.as_array()).expect("an array").iter();
    let update =
        Update::parse(parts.next().expect("an update"), parts.next().and_then(|f| f.as_array()))?;
    let changed = update.apply(json(before).view(), &CONTEXT)?;
    Ok(changed.as_ref().map_or_else(String::new, canonical))
}

/// Does all rows and reports all that differ.
pub(super) fn check(tables: &[Table]) {
    let mut differing = Vec::new();
    for (name, rows) in tables {
        for (kind, before, update, after) in *rows {
            let found =
                outcome(before, update).unwrap_or_else(|error| format!("!{}", error.code.number()));
            let expected = match after.starts_with('{') {
                true => canonical(&json(after)),
                false => (*after).to_owned(),
            };
            if found != expected {
                differing.push(format!(
                    "{name} {kind} {before} {update}\n  is    {found}\n  wants {expected}"
                ));
            }
        }
    }
    assert!(differing.is_empty(), "{} rows differ:\n{}", differing.len(), differing.join("\n"));
}

/// The names within operators and paths that have rows, too.
const MODIFIERS: [&str; 7] = ["$each", "$position", "$slice", "$sort", "$", "$[]", "$[name]"];

const KINDS: [&str; 8] = ["plain", "null", "missing", "type", "array", "bound", "nan", "unicode"];

/// The cases that may be missing: operators, kinds, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("$set $setOnInsert $unset $currentDate", "type", "no value is wrong, or told by other rows"),
    ("$unset $rename $currentDate", "nan bound", "they ask nothing of values"),
    ("$setOnInsert", "null array bound nan unicode", "it is `$set` on other occasions"),
    ("$bit", "unicode", "it takes integers"),
    ("$inc $mul", "unicode", "they take numbers; names are told by `$set`"),
    ("$pop", "unicode nan", "it takes 1 or -1"),
    (
        "$each $position $slice $sort",
        "missing null nan unicode",
        "told by the operators that they belong to",
    ),
    ("$each", "bound", "it takes an array"),
    ("$ $[] $[name]", "bound nan unicode", "they stand for places"),
    ("$currentDate", "array unicode", "any value gives way to the time"),
    ("$rename", "type", "told by its own rows of paths"),
];

#[test]
fn every_operator_has_its_cases() {
    let tables: Vec<&Table> = super::tables().into_iter().flatten().collect();
    let operators = super::super::features().map(|feature| feature.name);
    for name in operators.chain(MODIFIERS) {
        for kind in KINDS {
            let is_exempt = EXCEPTIONS.iter().any(|(names, kinds, _)| {
                names.split(' ').any(|exempt| exempt == name)
                    && kinds.split(' ').any(|exempt| exempt == kind)
            });
            let has_row = tables
                .iter()
                .any(|(known, rows)| *known == name && rows.iter().any(|row| row.0 == kind));
            assert!(has_row || is_exempt, "{name} has no row of kind {kind}");
        }
    }
}

/// Returns the document that an upsert inserts, or its code.
fn upserted(filter: &str, update: &str) -> String {
    let filter = crate::filter::Filter::parse(json(filter).view()).expect(filter);
    let made = Update::parse(Value::Document(json(update).view()), None).and_then(|update| {
        let context = super::UpdateContext { position: None, ..CONTEXT };
        update.upsert(&filter, &context, &mut || frond_doc::ObjectId([7; 12]))
    });
    made.map_or_else(|error| format!("!{}", error.code.number()), |made| canonical(&made))
}

#[test]
fn documents_that_upserts_insert() {
    for (filter, update, expected) in [
        (r#"{"_id": 1}"#, r#"{"$setOnInsert": {"a": null}}"#, r#"{"_id": 1, "a": null}"#),
        (r#"{"_id": 1, "a": {"$exists": true}}"#, r#"{"$inc": {"n": 2}}"#, r#"{"_id": 1, "n": 2}"#),
        (r#"{"_id": 1, "a": {"$in": [5]}}"#, r#"{"$inc": {"a": 2}}"#, r#"{"_id": 1, "a": 7}"#),
        (r#"{"_id": 1, "a": {"$all": [5]}}"#, r#"{"$mul": {"a": 2}}"#, r#"{"_id": 1, "a": 10}"#),
        (
            r#"{"_id": 1, "$or": [{"a": 5}]}"#,
            r#"{"$set": {"b": 1}}"#,
            r#"{"_id": 1, "a": 5, "b": 1}"#,
        ),
        (
            r#"{"_id": 1, "$or": [{"a": 5}, {"a": 6}]}"#,
            r#"{"$set": {"b": 1}}"#,
            r#"{"_id": 1, "b": 1}"#,
        ),
        (
            r#"{"_id": 1, "a.b": 5}"#,
            r#"{"$set": {"a.c": 6}}"#,
            r#"{"_id": 1, "a": {"b": 5, "c": 6}}"#,
        ),
        (r#"{"a": 1, "$and": [{"a": 2}]}"#, r#"{"$set": {"b": 1}}"#, "!54"),
        (r#"{"a": 1, "a.b": 2}"#, r#"{"$set": {"b": 1}}"#, "!54"),
        (r#"{"_id": 1}"#, r#"{"$set": {"_id": 2}}"#, "!66"),
        (r#"{"_id": 1}"#, r#"{"_id": 2}"#, "!66"),
        ("{}", r#"{"$set": {"_id": [1]}}"#, "!53"),
        (
            "{}",
            r#"{"$set": {"_id": {"$regularExpression": {"pattern": "a", "options": ""}}}}"#,
            "!53",
        ),
        ("{}", r#"{"$set": {"_id": {"$a": 1}}}"#, "!52"),
        (r#"{"_id": 1, "l": 5}"#, r#"{"$set": {"l.$": 1}}"#, "!2"),
        (r#"{"_id": 1}"#, r#"{"$unset": {"l.$.v": 1}}"#, "!2"),
        (r#"{"_id": 1}"#, r#"{"$setOnInsert": {"l.$[]": 1}}"#, "!2"),
        (r#"{"_id": 1, "l": [5]}"#, r#"{"$setOnInsert": {"l.$[]": 1}}"#, r#"{"_id": 1, "l": [1]}"#),
    ] {
        let expected = match expected.starts_with('{') {
            true => canonical(&json(expected)),
            false => expected.to_owned(),
        };
        assert_eq!(upserted(filter, update), expected, "{filter} {update}");
    }
}

#[test]
fn a_position_that_nothing_matched_is_refused_wherever_it_stands() {
    let context = super::UpdateContext { position: None, ..CONTEXT };
    for update in [
        r#"{"$unset": {"l.$.v": 1}}"#,
        r#"{"$set": {"l.$": 1}}"#,
        r#"{"$pull": {"l.$.v": 1}}"#,
        r#"{"$setOnInsert": {"l.$": 1}}"#,
    ] {
        let parsed = Update::parse(Value::Document(json(update).view()), None).expect(update);
        for before in ["{}", r#"{"l": 1}"#, r#"{"l": [{"v": 1}]}"#] {
            let error = parsed.apply(json(before).view(), &context).expect_err(update);
            assert_eq!(error.code.number(), 2, "{update} {before}");
        }
    }
}
