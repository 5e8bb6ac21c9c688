//! Tables of updates: before, update, after; and what is refused.

mod arrays;
mod fields;
mod modifiers;
mod operators;

use frond_doc::extended_json::{self, Form};
use frond_doc::{DocumentBuf, DocumentBuilder, ObjectId, Value};

use super::{Update, UpdateContext};
use crate::error::QueryError;
use crate::filter::Filter;

/// The tables of all operators.
fn tables() -> [&'static [operators::Table]; 3] {
    [arrays::TABLES, fields::TABLES, modifiers::TABLES]
}

fn json(text: &str) -> DocumentBuf {
    extended_json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn shown(document: &DocumentBuf) -> String {
    let mut out = String::new();
    extended_json::write(document.view(), Form::Relaxed, &mut out);
    out
}

const CONTEXT: UpdateContext = UpdateContext { now_millis: 5, timestamp: 6, position: Some(1) };

fn apply(before: &str, update: &str, filters: &str) -> Result<Option<DocumentBuf>, QueryError> {
    let filters = json(&format!(r#"{{"filters": {filters}}}"#));
    let filters = filters.get("filters").and_then(|filters| filters.as_array());
    let update = Update::parse(Value::Document(json(update).view()), filters)?;
    update.apply(json(before).view(), &CONTEXT)
}

/// `after` is empty where nothing changes.
fn check_filtered(before: &str, update: &str, filters: &str, after: &str) {
    let result =
        apply(before, update, filters).unwrap_or_else(|error| panic!("{before} {update}: {error}"));
    match result {
        None => assert_eq!(after, "", "{before} {update}"),
        Some(result) => {
            DocumentBuf::validated(result.clone().into_bytes()).expect("an update makes BSON");
            assert_eq!(shown(&result), shown(&json(after)), "{before} {update}");
        }
    }
}

fn check(before: &str, update: &str, after: &str) {
    check_filtered(before, update, "[]", after);
}

fn check_refused(before: &str, update: &str, code: i32, message: &str) {
    let error = apply(before, update, "[]").expect_err(update);
    assert_eq!(error.code.number(), code, "{update}: {error}");
    assert!(error.message.contains(message), "{update}: {error}");
}

#[test]
fn set_and_unset() {
    check(
        r#"{"_id": 1, "a": 1, "b": 2}"#,
        r#"{"$set": {"a": 5}}"#,
        r#"{"_id": 1, "a": 5, "b": 2}"#,
    );
    check(r#"{"a": 1}"#, r#"{"$set": {"a": 1}}"#, "");
    check(
        "{}",
        r#"{"$set": {"z": 1, "b": 2, "10": 3, "9": 4}}"#,
        r#"{"9": 4, "10": 3, "b": 2, "z": 1}"#,
    );
    check("{}", r#"{"$set": {"a.b.c": 1, "a.b.d": 2}}"#, r#"{"a": {"b": {"c": 1, "d": 2}}}"#);
    check(r#"{"a": {"x": 1}}"#, r#"{"$set": {"a.b": 1}}"#, r#"{"a": {"x": 1, "b": 1}}"#);
    check(r#"{"a": [1, 2]}"#, r#"{"$set": {"a.0": 5}}"#, r#"{"a": [5, 2]}"#);
    check(r#"{"a": [1]}"#, r#"{"$set": {"a.3": 5}}"#, r#"{"a": [1, null, null, 5]}"#);
    check(r#"{"a": [1]}"#, r#"{"$set": {"a.1.b": 5}}"#, r#"{"a": [1, {"b": 5}]}"#);
    check(r#"{"a": [{"b": 1}]}"#, r#"{"$set": {"a.0.b": 5}}"#, r#"{"a": [{"b": 5}]}"#);
    check(r#"{"a": 1, "b": 2}"#, r#"{"$unset": {"a": ""}}"#, r#"{"b": 2}"#);
    check(r#"{"a": {"b": 1, "c": 2}}"#, r#"{"$unset": {"a.b": ""}}"#, r#"{"a": {"c": 2}}"#);
    check(r#"{"a": [1, 2]}"#, r#"{"$unset": {"a.0": ""}}"#, r#"{"a": [null, 2]}"#);
    check(r#"{"a": 1}"#, r#"{"$unset": {"b": "", "a.x": "", "c.d": ""}}"#, "");
    check("{}", r#"{"$set": {}}"#, "");
    check("{}", r#"{"$setOnInsert": {"a": 1}}"#, "");
    check("{}", r#"{"$currentDate": {"a": true}}"#, r#"{"a": {"$date": {"$numberLong": "5"}}}"#);
    check(
        "{}",
        r#"{"$currentDate": {"a": {"$type": "timestamp"}}}"#,
        r#"{"a": {"$timestamp": {"t": 0, "i": 6}}}"#,
    );
}

#[test]
fn arithmetic() {
    check(r#"{"a": 1}"#, r#"{"$inc": {"a": 2, "b": 3}}"#, r#"{"a": 3, "b": 3}"#);
    check(r#"{"a": 2147483647}"#, r#"{"$inc": {"a": 1}}"#, r#"{"a": 2147483648}"#);
    check(r#"{"a": 1}"#, r#"{"$inc": {"a": 0}}"#, "");
    check(r#"{"a": 3}"#, r#"{"$mul": {"a": 1.5, "b": 2}}"#, r#"{"a": 4.5, "b": 0}"#);
    check(
        r#"{"a": {"$numberDecimal": "1.1"}}"#,
        r#"{"$inc": {"a": 1}}"#,
        r#"{"a": {"$numberDecimal": "2.1"}}"#,
    );
    check(r#"{"a": 5}"#, r#"{"$min": {"a": 3, "b": 1}}"#, r#"{"a": 3, "b": 1}"#);
    check(r#"{"a": 5}"#, r#"{"$min": {"a": "x"}}"#, "");
    check(r#"{"a": 5}"#, r#"{"$max": {"a": "x"}}"#, r#"{"a": "x"}"#);
    check(r#"{"a": 5}"#, r#"{"$bit": {"a": {"and": 4}, "b": {"xor": 3}}}"#, r#"{"a": 4, "b": 3}"#);
}

#[test]
fn rename() {
    check(r#"{"a": 1, "b": 2}"#, r#"{"$rename": {"a": "c"}}"#, r#"{"b": 2, "c": 1}"#);
    check(r#"{"a": 1, "b": 2}"#, r#"{"$rename": {"a": "b"}}"#, r#"{"b": 1}"#);
    check(r#"{"b": 2}"#, r#"{"$rename": {"a": "b"}}"#, "");
    check(r#"{"a": {"x": 1}}"#, r#"{"$rename": {"a.x": "b.y"}}"#, r#"{"a": {}, "b": {"y": 1}}"#);
    check_refused(
        r#"{"_id": 1, "a": [{"x": 1}]}"#,
        r#"{"$rename": {"a.0.x": "b"}}"#,
        2,
        "source field",
    );
    check_refused(
        r#"{"_id": 1, "a": 1, "b": []}"#,
        r#"{"$rename": {"a": "b.x"}}"#,
        2,
        "destination",
    );
    check_refused("{}", r#"{"$rename": {"a": "a"}}"#, 2, "must differ");
    check_refused("{}", r#"{"$rename": {"a": "a.b"}}"#, 2, "must not be on the same path");
}

#[test]
fn push_and_pull() {
    check(r#"{"a": [1]}"#, r#"{"$push": {"a": 2, "b": [3]}}"#, r#"{"a": [1, 2], "b": [[3]]}"#);
    check(
        r#"{"a": [5, 1]}"#,
        r#"{"$push": {"a": {"$each": [3, 9], "$sort": 1, "$slice": -3}}}"#,
        r#"{"a": [3, 5, 9]}"#,
    );
    check(
        r#"{"a": [1, 2, 3]}"#,
        r#"{"$push": {"a": {"$each": [8, 9], "$position": -1}}}"#,
        r#"{"a": [1, 2, 8, 9, 3]}"#,
    );
    check(
        r#"{"a": [{"x": 2}]}"#,
        r#"{"$push": {"a": {"$each": [{"x": 3}, {"x": 1}], "$sort": {"x": -1}, "$slice": 2}}}"#,
        r#"{"a": [{"x": 3}, {"x": 2}]}"#,
    );
    check(r#"{"a": [1]}"#, r#"{"$addToSet": {"a": {"$each": [1, 2, 2.0]}}}"#, r#"{"a": [1, 2]}"#);
    check(r#"{"a": [1]}"#, r#"{"$addToSet": {"a": 1.0}}"#, "");
    check(r#"{"a": [1, 5, 9, 5]}"#, r#"{"$pull": {"a": 5}}"#, r#"{"a": [1, 9]}"#);
    check(r#"{"a": [1, 5, 9]}"#, r#"{"$pull": {"a": {"$gte": 5}}}"#, r#"{"a": [1]}"#);
    check(
        r#"{"a": [{"b": 1, "c": 1}, {"b": 2}, 7]}"#,
        r#"{"$pull": {"a": {"b": 1}}}"#,
        r#"{"a": [{"b": 2}, 7]}"#,
    );
    check(
        r#"{"a": [{"b": 1}, {"b": 5}]}"#,
        r#"{"$pull": {"a": {"b": {"$gt": 3}}}}"#,
        r#"{"a": [{"b": 1}]}"#,
    );
    check(r#"{"a": [1, 2, 3, 1]}"#, r#"{"$pullAll": {"a": [1, 3]}}"#, r#"{"a": [2]}"#);
    check(r#"{"a": [1, 2, 3]}"#, r#"{"$pop": {"a": 1}}"#, r#"{"a": [1, 2]}"#);
    check(r#"{"a": [1, 2, 3]}"#, r#"{"$pop": {"a": -1}}"#, r#"{"a": [2, 3]}"#);
    check(r#"{"a": []}"#, r#"{"$pop": {"a": -1}, "$pull": {"b": 1}}"#, "");
}

#[test]
fn positional() {
    check(r#"{"a": [1, 2, 3]}"#, r#"{"$set": {"a.$": 9}}"#, r#"{"a": [1, 9, 3]}"#);
    check(
        r#"{"a": [{"b": 1}, {"b": 2}]}"#,
        r#"{"$inc": {"a.$.b": 5}}"#,
        r#"{"a": [{"b": 1}, {"b": 7}]}"#,
    );
    check(r#"{"a": [1, 2]}"#, r#"{"$inc": {"a.$[]": 1}}"#, r#"{"a": [2, 3]}"#);
    check_filtered(
        r#"{"a": [{"b": 1}, {"b": 8}]}"#,
        r#"{"$set": {"a.$[big].c": true}}"#,
        r#"[{"big.b": {"$gt": 5}}]"#,
        r#"{"a": [{"b": 1}, {"b": 8, "c": true}]}"#,
    );
    check_filtered(
        r#"{"a": [[1, 9], [10]]}"#,
        r#"{"$set": {"a.$[].$[x]": 0}}"#,
        r#"[{"x": {"$gte": 9}}]"#,
        r#"{"a": [[1, 0], [0]]}"#,
    );
    check_refused(r#"{"a": 1}"#, r#"{"$set": {"a.$[]": 1}}"#, 2, "non-array element a: 1");
    check_refused("{}", r#"{"$set": {"a.$[]": 1}}"#, 2, "must exist in the document");
    check_refused(
        "{}",
        r#"{"$set": {"a.$[x]": 1}}"#,
        2,
        "No array filter found for identifier 'x'",
    );
    check_refused(r#"{"a": [1, 2]}"#, r#"{"$set": {"a.$": 1, "a.1": 2}}"#, 40, "conflict at 'a.1'");
    let unused = apply("{}", r#"{"$set": {"a": 1}}"#, r#"[{"x": 1}]"#).expect_err("unused");
    assert_eq!(unused.code.number(), 9);
    let update = json(r#"{"$set": {"a.$": 1}}"#);
    let update = Update::parse(Value::Document(update.view()), None).expect("an update");
    assert!(update.needs_position());
    let context = UpdateContext { position: None, ..CONTEXT };
    let error = update.apply(json(r#"{"a": [1]}"#).view(), &context).expect_err("no position");
    assert!(error.message.contains("did not find the match"));
}

#[test]
fn replacement() {
    check(r#"{"_id": 1, "a": 1}"#, r#"{"b": 2}"#, r#"{"_id": 1, "b": 2}"#);
    check(r#"{"_id": 1, "a": 1}"#, r#"{"b": 2, "_id": 1.0}"#, r#"{"_id": 1, "b": 2}"#);
    check(r#"{"_id": 1, "a": 1}"#, r#"{"_id": 1, "a": 1}"#, "");
    // Without `_id` it counts as a change, also where nothing is another.
    check(r#"{"_id": 1}"#, "{}", r#"{"_id": 1}"#);
    check(r#"{"_id": 1, "a": 1}"#, r#"{"a": 1}"#, r#"{"_id": 1, "a": 1}"#);
    check_refused(r#"{"_id": 1}"#, r#"{"_id": 2}"#, 66, "altered to _id: 2");
    check_refused(r#"{"_id": 1}"#, r#"{"a": 1, "$set": {}}"#, 52, "The dollar ($) prefixed field");
}

#[test]
fn refused() {
    for (before, update, code, message) in [
        ("{}", r#"{"$push": {"a": {"$each": 1}}}"#, 2, "of type: int"),
        ("{}", r#"{"$addToSet": {"a": {"$each": 1}}}"#, 14, "of type: int"),
        (
            "{}",
            r#"{"$foo": {"a": 1}}"#,
            9,
            "Unknown modifier: $foo. Expected a valid update modifier",
        ),
        ("{}", r#"{"$set": 5}"#, 9, "Modifiers operate on fields but we found type int instead"),
        (
            "{}",
            r#"{"$set": {"a": 1}, "$inc": {"a": 1}}"#,
            40,
            "Updating the path 'a' would create a conflict at 'a'",
        ),
        (
            "{}",
            r#"{"$set": {"a": 1, "a.b": 1}}"#,
            40,
            "Updating the path 'a.b' would create a conflict at 'a'",
        ),
        (
            "{}",
            r#"{"$set": {"a.b": 1, "a": 1}}"#,
            40,
            "Updating the path 'a' would create a conflict at 'a'",
        ),
        (r#"{"a": 1}"#, r#"{"$set": {"a.b": 1}}"#, 28, "Cannot create field 'b' in element {a: 1}"),
        (
            r#"{"a": [1]}"#,
            r#"{"$set": {"a.b": 1}}"#,
            28,
            "Cannot create field 'b' in element {a: [ 1 ]}",
        ),
        (
            r#"{"_id": 1, "x": "s"}"#,
            r#"{"$inc": {"x": 1}}"#,
            14,
            "Cannot apply $inc to a value of non-numeric type. {_id: 1} has the field 'x' of non-numeric type string",
        ),
        (
            "{}",
            r#"{"$inc": {"x": "s"}}"#,
            14,
            "Cannot increment with non-numeric argument: {x: \"s\"}",
        ),
        (
            r#"{"_id": 1, "a": 9223372036854775807}"#,
            r#"{"$inc": {"a": 1}}"#,
            2,
            "Failed to apply $inc operations to current value ((NumberLong)9223372036854775807) for document {_id: 1}",
        ),
        (r#"{"_id": 1}"#, r#"{"$set": {"_id": 2}}"#, 66, "would modify the immutable field '_id'"),
        (
            r#"{"_id": 1}"#,
            r#"{"$unset": {"_id": ""}}"#,
            66,
            "would modify the immutable field '_id'",
        ),
        (
            r#"{"_id": 1, "a": 1}"#,
            r#"{"$push": {"a": 1}}"#,
            2,
            "The field 'a' must be an array but is of type int in document {_id: 1}",
        ),
        (
            r#"{"a": 1}"#,
            r#"{"$pop": {"a": 1}}"#,
            14,
            "Path 'a' contains an element of non-array type 'int'",
        ),
        (r#"{"a": 1}"#, r#"{"$pull": {"a": 1}}"#, 2, "Cannot apply $pull to a non-array value"),
        ("{}", r#"{"$pop": {"a": 2}}"#, 9, "$pop expects 1 or -1, found: 2"),
        ("{}", r#"{"$set": {"": 1}}"#, 56, "An empty update path is not valid."),
        ("{}", r#"{"$set": {"a..b": 1}}"#, 56, "contains an empty field name"),
        (r#"{"a": []}"#, r#"{"$set": {"a.2000000": 1}}"#, 39, "can't backfill"),
        (
            "{}",
            r#"{"$push": {"a": {"$each": [], "$foo": 1}}}"#,
            2,
            "Unrecognized clause in $push: $foo",
        ),
    ] {
        check_refused(before, update, code, message);
    }
}

fn upsert(filter: &str, update: &str) -> Result<String, QueryError> {
    let filter = Filter::parse(json(filter).view()).expect(filter);
    let update = Update::parse(Value::Document(json(update).view()), None)?;
    let made = update.upsert(&filter, &CONTEXT, &mut || ObjectId([7; 12]))?;
    Ok(shown(&made))
}

#[test]
fn upserts() {
    for (filter, update, expected) in [
        (r#"{"_id": 1, "a": {"$gt": 5}}"#, r#"{"$set": {"b": 1}}"#, r#"{"_id": 1, "b": 1}"#),
        (
            r#"{"b.c": 2, "_id": 1}"#,
            r#"{"$inc": {"b.d": 1}}"#,
            r#"{"_id": 1, "b": {"c": 2, "d": 1}}"#,
        ),
        (r#"{"_id": 1}"#, r#"{"$setOnInsert": {"b": 1}}"#, r#"{"_id": 1, "b": 1}"#),
        (r#"{"_id": 1, "a": 3}"#, r#"{"b": 1}"#, r#"{"_id": 1, "b": 1}"#),
        (r#"{"_id": 1, "a": 3, "$and": [{"a": 4}]}"#, r#"{"b": 1}"#, r#"{"_id": 1, "b": 1}"#),
        ("{}", r#"{"$set": {"b": 1}}"#, r#"{"_id": {"$oid": "070707070707070707070707"}, "b": 1}"#),
        ("{}", r#"{"$set": {"b": 1, "_id": 9}}"#, r#"{"_id": 9, "b": 1}"#),
        (
            r#"{"_id": 1}"#,
            r#"{"$set": {"$b.c": 1}, "$setOnInsert": {"$each": 2}}"#,
            r#"{"_id": 1, "$b": {"c": 1}, "$each": 2}"#,
        ),
    ] {
        assert_eq!(
            upsert(filter, update).as_deref(),
            Ok(shown(&json(expected)).as_str()),
            "{filter}"
        );
    }
    let refused = upsert(r#"{"_id": 1}"#, r#"{"_id": 2}"#).expect_err("another id");
    assert_eq!(refused.code.number(), 66);
    let refused = upsert("{}", r#"{"$set": {"_id": [1]}}"#).expect_err("an array");
    assert_eq!(refused.code.number(), 53);
}

/// A document nested `depth` deep.
fn deep(depth: usize) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    (1..depth).for_each(|_| {
        builder.begin_document("a");
    });
    builder.append("x", Value::Null);
    (1..depth).for_each(|_| {
        builder.end();
    });
    builder.build()
}

#[test]
fn results_are_not_nested_too_deep() {
    let path = ["b"; 20].join(".");
    for (allowed, refused) in [(160, 161), (159, 170)] {
        for (depth, is_allowed) in [(allowed, true), (refused, false)] {
            let mut update = DocumentBuilder::new();
            update.begin_document("$set").append(&path, Value::from(&deep(depth))).end();
            let update = Update::parse(Value::from(&update.build()), None).expect("an update");
            let result = update.apply(json("{}").view(), &CONTEXT);
            assert_eq!(result.is_ok(), is_allowed, "{depth}: {result:?}");
            if let Ok(Some(result)) = result {
                DocumentBuf::validated(result.into_bytes()).expect("not too deep");
            }
        }
    }
    let rename = json(&format!(r#"{{"$rename": {{"a": "{path}"}}}}"#));
    let rename = Update::parse(Value::from(&rename), None).expect("an update");
    let error = rename.apply(deep(170).view(), &CONTEXT).expect_err("too deep");
    assert_eq!(error.code.number(), 15);
}
