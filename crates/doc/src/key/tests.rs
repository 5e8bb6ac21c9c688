//! The bytes of keys: these are stored, so that a change here is a change of the format.

use super::*;
use crate::decimal;
use crate::document;
use crate::document::value::{Decimal128, Timestamp};

fn check(value: Value<'_>, expected: &str) {
    let mut key = Vec::new();
    append(&mut key, value, false);
    let hex: Vec<String> = key.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex.join(" "), expected, "{value:?}");
}

fn decimal128(coefficient: u128, exponent: i32) -> Value<'static> {
    Value::Decimal128(decimal::from_parts(false, coefficient, exponent))
}

#[test]
fn numbers() {
    check(Value::Int32(0), "24");
    check(Value::Double(-0.0), "24");
    check(Value::Int32(1), "25 7f f0");
    check(Value::Double(1.0), "25 7f f0");
    check(decimal128(100, -2), "25 7f f0");
    check(Value::Int32(-1), "23 80 0f");
    check(Value::Int32(5), "25 81 14");
    check(Value::Int64(1000), "25 81 8f a0");
    check(Value::Double(0.1), "25 7f b9 cd 67 33 99 cd 67 34");
    check(decimal128(1, -1), "25 7f b9 cd 67 33 99 cd 67 33 99 cd 18 1f 14");
    check(Value::Int64(i64::MAX), "25 87 df ff ff ff ff ff ff ff ff e0");
    check(Value::Double(f64::NAN), "20");
    check(Value::Double(f64::INFINITY), "27");
    check(decimal128(1, 6111), "26 2f ff 14");
}

#[test]
fn others() {
    check(Value::MinKey, "08");
    check(Value::Undefined, "10");
    check(Value::Null, "18");
    check(Value::String("ab"), "30 61 62 00");
    check(Value::Symbol("a\0\u{1}\u{2}"), "30 61 01 01 01 02 02 00");
    check(
        Value::from(&document! { "n": 1_i32, "s": "" }),
        "38 20 6e 00 25 7f f0 30 73 00 30 00 00",
    );
    check(Value::Boolean(false), "58");
    check(Value::DateTime(0), "60 80 00 00 00 00 00 00 00");
    check(Value::Timestamp(Timestamp(1)), "68 00 00 00 00 00 00 00 01");
    check(Value::MaxKey, "f0");
}

#[test]
fn type_bits_are_nearly_always_empty() {
    let check = |value: Value<'_>, expected: &[u8]| {
        let mut bits = Vec::new();
        append_type_bits(&mut bits, value);
        trim_type_bits(&mut bits);
        assert_eq!(bits, expected, "{value:?}");
    };
    check(Value::String("a"), &[]);
    check(Value::Int32(7), &[]);
    check(Value::Double(7.0), &[1]);
    check(Value::Double(-0.0), &[4]);
    check(Value::Int64(7), &[2]);
    check(decimal128(7, 0), &[3, 0x20, 0x18]);
    check(Value::Decimal128(Decimal128([0xff; 16])), &[&[7][..], &[0xff; 16]].concat());
    check(Value::from(&document! { "a": 1_i32, "b": 1_i64, "c": "x" }), &[0, 2]);
}
