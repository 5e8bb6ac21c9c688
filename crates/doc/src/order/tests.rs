//! The order, as lists whose every pair is compared.

use super::*;
use crate::document;
use crate::document::DocumentBuf;
use crate::document::value::{ObjectId, Regex, Timestamp};

/// Checks that each group's values are equal and that the groups ascend.
fn check(groups: &[Vec<Value<'_>>]) {
    for (left_rank, left_group) in groups.iter().enumerate() {
        for (right_rank, right_group) in groups.iter().enumerate() {
            for left in left_group {
                for right in right_group {
                    let order = compare(*left, *right);
                    assert_eq!(order, left_rank.cmp(&right_rank), "{left:?} and {right:?}");
                }
            }
        }
    }
}

fn decimal(text: &str) -> Value<'static> {
    Value::Decimal128(decimal::parse(text).expect("test data is a decimal"))
}

#[test]
fn types() {
    let empty = DocumentBuf::empty();
    let array = Value::Array(Array::from_validated(empty.as_bytes()));
    check(&[
        vec![Value::MinKey],
        vec![Value::Undefined],
        vec![Value::Null],
        vec![Value::Double(f64::NAN), decimal("NaN")],
        vec![Value::Int32(5), Value::Int64(5), Value::Double(5.0), decimal("5.00")],
        vec![Value::String(""), Value::Symbol("")],
        vec![Value::String("a"), Value::Symbol("a")],
        vec![Value::from(&empty)],
        vec![array],
        vec![Value::Binary(Binary { subtype: 0, bytes: &[] })],
        vec![Value::ObjectId(ObjectId([0; 12]))],
        vec![Value::Boolean(false)],
        vec![Value::Boolean(true)],
        vec![Value::DateTime(i64::MIN)],
        vec![Value::DateTime(-1)],
        vec![Value::DateTime(0)],
        vec![Value::Timestamp(Timestamp(0))],
        vec![Value::Timestamp(Timestamp(u64::MAX))],
        vec![Value::Regex(Regex { pattern: "a", options: "x" })],
        vec![Value::Regex(Regex { pattern: "b", options: "i" })],
        vec![Value::DbPointer { namespace: "z", id: ObjectId([9; 12]) }],
        vec![Value::DbPointer { namespace: "aa", id: ObjectId([0; 12]) }],
        vec![Value::JavaScript("z")],
        vec![Value::JavaScriptWithScope { code: "a", scope: empty.view() }],
        vec![Value::MaxKey],
    ]);
}

#[test]
fn numbers() {
    check(&[
        vec![Value::Double(f64::NAN), Value::Double(-f64::NAN), decimal("NaN")],
        vec![Value::Double(f64::NEG_INFINITY), decimal("-Infinity")],
        vec![decimal("-9.999999999999999999999999999999999E+6144")],
        vec![Value::Double(f64::MIN)],
        vec![decimal("-9223372036854775809")],
        vec![Value::Int64(i64::MIN), Value::Double(-9_223_372_036_854_775_808.0)],
        vec![Value::Int64(-9_007_199_254_740_993), decimal("-9007199254740993")],
        vec![Value::Int64(-9_007_199_254_740_992), Value::Double(-9_007_199_254_740_992.0)],
        vec![Value::Double(-1.5), decimal("-1.50")],
        vec![Value::Double(-f64::from_bits(1))],
        vec![decimal("-1E-6176")],
        vec![
            Value::Int32(0),
            Value::Double(-0.0),
            Value::Int64(0),
            decimal("-0"),
            decimal("0E+500"),
        ],
        vec![decimal("1E-6176")],
        vec![decimal("4.9E-324")],
        vec![Value::Double(f64::from_bits(1))],
        vec![decimal("5E-324")],
        vec![decimal("0.1"), decimal("0.10")],
        vec![Value::Double(0.1)],
        vec![decimal("0.1000000000000000055511151231257828")],
        vec![decimal("0.5"), Value::Double(0.5)],
        vec![Value::Int64(9_007_199_254_740_992), Value::Double(9_007_199_254_740_992.0)],
        vec![Value::Int64(9_007_199_254_740_993), decimal("9007199254740993")],
        vec![Value::Int64(9_007_199_254_740_994), Value::Double(9_007_199_254_740_994.0)],
        vec![Value::Int64(i64::MAX), decimal("9223372036854775807")],
        vec![decimal("9223372036854775807.5")],
        vec![Value::Double(9_223_372_036_854_775_808.0), decimal("9223372036854775808")],
        vec![Value::Double(f64::MAX)],
        vec![decimal("1.797693134862315708145274237317044E+308")],
        vec![decimal("1E+6144"), decimal("1.0E+6144")],
        vec![Value::Double(f64::INFINITY), decimal("Infinity")],
    ]);
}

#[test]
fn strings_and_binaries() {
    check(&[
        vec![Value::String("")],
        vec![Value::String("\0")],
        vec![Value::String("a")],
        vec![Value::String("a\0")],
        vec![Value::String("a\u{1}")],
        vec![Value::String("ab")],
        vec![Value::String("b")],
        vec![Value::String("ß")],
        vec![Value::Binary(Binary { subtype: 9, bytes: &[9] })],
        vec![Value::Binary(Binary { subtype: 0, bytes: &[9, 9] })],
        vec![Value::Binary(Binary { subtype: 1, bytes: &[0, 0] })],
        vec![Value::Binary(Binary { subtype: 1, bytes: &[0, 1] })],
    ]);
}

#[test]
fn documents() {
    let documents = [
        vec![document! {}],
        vec![document! { "b": 1_i32 }, document! { "b": 1.0 }],
        vec![document! { "b": 1_i32, "a": 0_i32 }],
        vec![document! { "b": 2_i64 }],
        vec![document! { "c": 0_i32 }],
        vec![document! { "a": "x" }], // Types come before names.
    ];
    let groups: Vec<Vec<Value<'_>>> =
        documents.iter().map(|group| group.iter().map(Value::from).collect()).collect();
    check(&groups);
    let arrays: Vec<Vec<Value<'_>>> = documents[..4]
        .iter()
        .map(|group| group.iter().map(|it| Value::Array(Array::from_validated(it.as_bytes()))))
        .map(Iterator::collect)
        .collect();
    check(&arrays);
}
