//! Extended JSON both ways, type by type.

use frond_testkit::random::{Random, assert_met, for_seeds};

use super::*;
use crate::document::value::Value;
use crate::{DocumentBuf, document};

fn write_as(document: &DocumentBuf, form: Form) -> String {
    let mut text = String::new();
    write(document.view(), form, &mut text);
    text
}

/// Checks that `text` is `value` in a field "a", and how the value is written.
fn check(text: &str, value: Value<'_>, canonical: &str, relaxed: &str) {
    let parsed = parse(&format!(r#"{{"a": {text}}}"#)).unwrap_or_else(|error| panic!("{error}"));
    let parsed = DocumentBuf::validated(parsed.into_bytes()).expect("valid");
    assert_eq!(parsed, document! { "a": value }, "{text}");
    assert_eq!(write_as(&parsed, Form::Canonical), format!(r#"{{"a":{canonical}}}"#));
    assert_eq!(write_as(&parsed, Form::Relaxed), format!(r#"{{"a":{relaxed}}}"#));
    assert_eq!(parse(&write_as(&parsed, Form::Canonical)).as_ref(), Ok(&parsed), "{canonical}");
}

/// As `check`, for what both forms write alike.
fn check_both(text: &str, value: Value<'_>, expected: &str) {
    check(text, value, expected, expected);
}

#[test]
fn numbers() {
    check("5", Value::Int32(5), r#"{"$numberInt":"5"}"#, "5");
    check(
        "-2147483649",
        Value::Int64(-2_147_483_649),
        r#"{"$numberLong":"-2147483649"}"#,
        "-2147483649",
    );
    check(r#"{"$numberLong":"5"}"#, Value::Int64(5), r#"{"$numberLong":"5"}"#, "5");
    check("1.0", Value::Double(1.0), r#"{"$numberDouble":"1.0"}"#, "1.0");
    check("1e3", Value::Double(1000.0), r#"{"$numberDouble":"1000.0"}"#, "1000.0");
    check("-0.0", Value::Double(-0.0), r#"{"$numberDouble":"-0.0"}"#, "-0.0");
    check(r#"{"$numberDouble":"0.1"}"#, Value::Double(0.1), r#"{"$numberDouble":"0.1"}"#, "0.1");
    check(
        "8.988465674311579e307",
        Value::Double(8.988465674311579e307),
        r#"{"$numberDouble":"8.988465674311579e307"}"#,
        "8.988465674311579e307",
    );
    check(
        "9223372036854775808",
        Value::Double(9223372036854775808.0),
        r#"{"$numberDouble":"9.223372036854776e18"}"#,
        "9.223372036854776e18",
    );
    let infinity = r#"{"$numberDouble":"-Infinity"}"#;
    check_both(infinity, Value::Double(f64::NEG_INFINITY), infinity);
    let decimal = Value::Decimal128(crate::decimal::parse("1.50").expect("a decimal"));
    check_both(r#"{"$numberDecimal":"1.50"}"#, decimal, r#"{"$numberDecimal":"1.50"}"#);
    let nan = parse(r#"{"a": {"$numberDouble":"NaN"}}"#).expect("NaN");
    assert_eq!(write_as(&nan, Form::Relaxed), r#"{"a":{"$numberDouble":"NaN"}}"#);
}

#[test]
fn dates() {
    let canonical = r#"{"$date":{"$numberLong":"1356351330501"}}"#;
    let relaxed = r#"{"$date":"2012-12-24T12:15:30.501Z"}"#;
    for text in [
        canonical,
        relaxed,
        r#"{"$date":1356351330501}"#,
        r#"{"$date":"2012-12-24T13:15:30.501+01:00"}"#,
        r#"{"$date":"2012-12-24T13:15:30.501+0100"}"#,
    ] {
        check(text, Value::DateTime(1_356_351_330_501), canonical, relaxed);
    }
    check(
        r#"{"$date":"1970-01-01T00:00:00Z"}"#,
        Value::DateTime(0),
        r#"{"$date":{"$numberLong":"0"}}"#,
        r#"{"$date":"1970-01-01T00:00:00Z"}"#,
    );
    check(
        r#"{"$date":"1970-01-01T00:00:00.5Z"}"#,
        Value::DateTime(500),
        r#"{"$date":{"$numberLong":"500"}}"#,
        r#"{"$date":"1970-01-01T00:00:00.500Z"}"#,
    );
    check(
        r#"{"$date":"9999-12-31T23:59:59.999Z"}"#,
        Value::DateTime(RELAXED_DATE_MAX),
        &format!(r#"{{"$date":{{"$numberLong":"{RELAXED_DATE_MAX}"}}}}"#),
        r#"{"$date":"9999-12-31T23:59:59.999Z"}"#,
    );
    let last = parse(r#"{"a": {"$date": "9999-12-31T01:00:00+02:00"}}"#).expect("a date");
    assert_eq!(last.get("a"), Some(Value::DateTime(RELAXED_DATE_MAX + 1 - 25 * 3_600_000)));
    assert!(parse(r#"{"a": {"$date": "9999-12-31T01:00:00"}}"#).is_err(), "it has no offset");
    assert!(parse(r#"{"a": {"$date": "9999-12-31"}}"#).is_err(), "it has no time");
    for millis in [-1, RELAXED_DATE_MAX + 1, i64::MIN, i64::MAX] {
        let text = format!(r#"{{"$date":{{"$numberLong":"{millis}"}}}}"#);
        check_both(&text, Value::DateTime(millis), &text);
    }
}

const RELAXED_DATE_MAX: i64 = 253_402_300_799_999;

#[test]
fn other_types() {
    use crate::document::value::{Binary, ObjectId, Regex, Timestamp};
    check_both("null", Value::Null, "null");
    check_both("true", Value::Boolean(true), "true");
    check_both(r#""\u00e9\n\"\\\u0001\/""#, Value::String("é\n\"\\\u{1}/"), r#""é\n\"\\\u0001/""#);
    let id = r#"{"$oid":"0123456789abcdef01234567"}"#;
    let bytes = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67];
    check_both(id, Value::ObjectId(ObjectId(bytes)), id);
    let binary = r#"{"$binary":{"base64":"AQID","subType":"80"}}"#;
    let value = Value::Binary(Binary { subtype: 0x80, bytes: &[1, 2, 3] });
    check_both(binary, value, binary);
    check_both(r#"{"$binary":"AQID","$type":"80"}"#, value, binary);
    check_both(r#"{"$type":128,"$binary":"AQID"}"#, value, binary);
    let old = Value::Binary(Binary { subtype: 2, bytes: &[2, 0, 0, 0, 0xff, 0xff] });
    let text = r#"{"$binary":{"base64":"//8=","subType":"02"}}"#;
    check_both(text, old, text);
    let uuid = Value::Binary(Binary { subtype: 4, bytes: &[0xc8; 16] });
    let text = r#"{"$binary":{"base64":"yMjIyMjIyMjIyMjIyMjIyA==","subType":"04"}}"#;
    check_both(r#"{"$uuid":"c8c8c8c8-c8c8-c8c8-c8c8-c8c8c8c8c8c8"}"#, uuid, text);
    let regex = r#"{"$regularExpression":{"pattern":"^a","options":"im"}}"#;
    let value = Value::Regex(Regex { pattern: "^a", options: "im" });
    check_both(r#"{"$regularExpression":{"pattern":"^a","options":"mi"}}"#, value, regex);
    check_both(r#"{"$options":"mi","$regex":"^a"}"#, value, regex);
    let value = Value::Timestamp(Timestamp(42 << 32 | 1));
    let text = r#"{"$timestamp":{"t":42,"i":1}}"#;
    check_both(text, value, text);
    let text = r#"{"$timestamp":{"t":4294967295,"i":4294967295}}"#;
    check_both(text, Value::Timestamp(Timestamp(u64::MAX)), text);
    check_both(r#"{"$symbol":"s"}"#, Value::Symbol("s"), r#"{"$symbol":"s"}"#);
    check_both(r#"{"$code":"f()"}"#, Value::JavaScript("f()"), r#"{"$code":"f()"}"#);
    let scope = document! { "x": "y" };
    let value = Value::JavaScriptWithScope { code: "f()", scope: scope.view() };
    let text = r#"{"$code":"f()","$scope":{"x":"y"}}"#;
    check_both(text, value, text);
    let text = r#"{"$dbPointer":{"$ref":"a.b","$id":{"$oid":"000000000000000000000000"}}}"#;
    check_both(text, Value::DbPointer { namespace: "a.b", id: ObjectId([0; 12]) }, text);
    check_both(r#"{"$minKey":1}"#, Value::MinKey, r#"{"$minKey":1}"#);
    check_both(r#"{"$maxKey":1}"#, Value::MaxKey, r#"{"$maxKey":1}"#);
    check_both(r#"{"$undefined":true}"#, Value::Undefined, r#"{"$undefined":true}"#);
}

#[test]
fn order_duplicates_and_nesting() {
    let text = r#"{"b":1,"a":[],"b":{"c":[{"d":"x"},[2],{}]},"":null}"#;
    let document = parse(text).expect("JSON");
    assert_eq!(write_as(&document, Form::Relaxed), text);
    DocumentBuf::validated(document.into_bytes()).expect("valid");
    // Operators stay documents, and so does the outermost object.
    for text in [
        r#"{"a":{"$gt":5}}"#,
        r#"{"a":{"$type":"string"}}"#,
        r#"{"a":{"$regex":"x","$ne":"y"}}"#,
        r#"{"a":{"$regex":{"$regularExpression":{"pattern":"x","options":""}}}}"#,
        r#"{"$oid":"x"}"#,
        r#"{"a":{"b":1,"$oid":"x"}}"#,
        r#"{"a":{"$ref":"c","$id":5}}"#,
    ] {
        assert_eq!(write_as(&parse(text).expect("JSON"), Form::Relaxed), text);
    }
}

#[test]
fn errors_name_the_field() {
    let check = |text: &str, expected: &str| {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{error:?} for {text}");
    };
    check(r#"{"when": {"$date": "yesterday"}}"#, r#"field "when": $date: "yesterday" is no date"#);
    check(r#"{"a": {"$oid": "xyz"}}"#, "24 hexadecimal digits");
    check(r#"{"a": {"$oid": "0123456789abcdef01234567", "b": 1}}"#, r#"unexpected field "b""#);
    check(r#"{"a": {"$numberInt": "2147483648"}}"#, "32-bit");
    check(r#"{"a": {"$numberLong": 5}}"#, "expected a string, found int");
    check(r#"{"a": {"$numberDecimal": "x"}}"#, "no decimal");
    check(r#"{"a": {"$binary": {"base64": "x", "subType": "00"}}}"#, "not base64");
    check(r#"{"a": {"$binary": {"base64": "", "subType": "+1"}}}"#, "no hexadecimal byte");
    check(r#"{"a": {"$binary": {"base64": ""}}}"#, r#"field "subType" is missing"#);
    check(r#"{"a": {"$timestamp": {"t": -1, "i": 0}}}"#, r#"field "t""#);
    check(r#"{"a": {"$minKey": 2}}"#, "expected 1");
    check(r#"{"a": {"$regex": "\u0000"}}"#, "NUL");
    check(r#"{"a\u0000": 1}"#, "NUL");
    check(r#"{"a": 1"#, "EOF");
    check(r#"{"a": 1} x"#, "trailing characters");
    check("[1]", "expected a JSON object");
    check("5", "expected a JSON object");
    check(
        &format!(r#"{{"a": {}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000)),
        "deeper than 180",
    );
}

/// A document of the greatest depth is read back from its JSON, with wrappers in the innermost
/// level too.
#[test]
fn as_deep_as_documents_may_be() {
    use crate::document::DEPTH_MAX;
    use crate::document::value::ObjectId;

    let innermost = |depth: usize| {
        let id = Value::DbPointer { namespace: "a.b", id: ObjectId([7; 12]) };
        let mut document = document! { "n": 1_i32, "p": id };
        for _ in 1..depth {
            document = document! { "d": &document };
        }
        document
    };
    let deepest = innermost(DEPTH_MAX);
    DocumentBuf::validated(deepest.clone().into_bytes()).expect("valid");
    let too_deep = innermost(DEPTH_MAX + 1);
    for form in [Form::Relaxed, Form::Canonical] {
        let text = write_as(&deepest, form);
        assert!(parse(&text) == Ok(deepest.clone()), "{form:?}");
        let text = write_as(&too_deep, form);
        let error = parse(&text).expect_err("too deep").to_string();
        assert!(error.contains("deeper than 180"), "{error}");
    }
}

/// JSON text of a value, with the forms that few writers choose.
fn any_value(random: &mut Random, depth: usize, out: &mut String) {
    let white = |random: &mut Random| [" ", "", "", "\n", "\t ", "\r\n"][random.below(6)];
    out.push_str(white(random));
    match random.below(if depth < 5 { 14 } else { 10 }) {
        0 => out.push_str(["null", "true", "false"][random.below(3)]),
        1 => out.push_str(&(random.next() as i64 >> random.below(64)).to_string()),
        2 if random.below(2) == 0 => {
            let point = random.below(24);
            let digits = format!("{:026}", random.next() >> random.below(64));
            out.push_str(&format!("{}.{}", random.below(3), &digits[point..]));
        }
        2 => out.push_str(&format!("{:?}", f64::from_bits(random.next()))),
        3 => out.push_str(
            ["-0", "0", "-0.0", "1E5", "1e+2", "9223372036854775808", "0.1e-7", "1e400", "NaN"]
                [random.below(9)],
        ),
        4..8 => any_text(random, out),
        8 => out.push_str(
            [
                r#"{"$oid":"0123456789abcdef01234567"}"#,
                r#"{ "$date" : {"$numberLong": "-5"} }"#,
                r#"{"$date":"2012-12-24T12:15:30.501Z"}"#,
                r#"{"$oid":"too short"}"#,
                r#"{ "$oid" : "0123456789ABCDEF01234567" }"#,
                r#"{"$date" :"2012-02-29T12:15:30Z" }"#,
                r#"{"$date":"2013-02-29T12:15:30Z"}"#,
                r#"{"$date":"0001-02-28T12:15:30Z"}"#,
                r#"{"$numberInt":"-7"}"#,
                r#"{"$numberInt":"3000000000"}"#,
                r#"{"$numberLong":"+8"}"#,
                r#"{"$numberDouble":"-Infinity"}"#,
                r#"{"$numberLong":"8","x":1}"#,
                r#"{"$gt":5}"#,
                r#"{"$code":"f()","$scope":{"x":{"$numberInt":"7"}}}"#,
                r#"{"$regex":"a","$options":"mi"}"#,
            ][random.below(16)],
        ),
        9 => out.push_str(["{}", "[]", "{ }", "[ ]"][random.below(4)]),
        kind => {
            let [open, close] = if kind < 12 { ['{', '}'] } else { ['[', ']'] };
            out.push(open);
            for number in 0..1 + random.below(5) {
                if number > 0 {
                    out.push(',');
                }
                if open == '{' {
                    any_text(random, out);
                    out.push_str(white(random));
                    out.push(':');
                }
                any_value(random, depth + 1, out);
            }
            out.push_str(white(random));
            out.push(close);
        }
    }
    out.push_str(white(random));
}

fn any_text(random: &mut Random, out: &mut String) {
    out.push('"');
    for _ in 0..random.below(20) {
        out.push_str(
            [
                "a",
                "bc",
                "$oid",
                "é",
                "ß",
                "😀",
                "\\n",
                "\\\"",
                "\\/",
                "\\u00e9",
                "\\u0000",
                "\\ud83d\\ude00",
                "\\ud83d",
                "\u{7f}",
                "plain text, ",
                "text of so many letters that it is copied in another way than what is short, ",
            ][random.below(16)],
        );
    }
    out.push('"');
}

/// The one-pass reader agrees with serde on valid texts and on texts that are broken at one byte;
/// of the valid ones it reads nearly all.
#[test]
fn one_pass_reads_what_serde_reads() {
    let (mut right, mut straight_away) = (0, 0);
    for_seeds(3_000, |mut random| {
        let mut text = String::from("{\"a\":");
        any_value(&mut random, 0, &mut text);
        text.push('}');
        for round in 0..8 {
            let mut bytes = text.clone().into_bytes();
            if round > 0 {
                let at = random.below(bytes.len());
                match random.below(3) {
                    0 => bytes.truncate(at),
                    1 => bytes[at] = b"{}[]\":,0-.eE\\ x\x00\xff"[random.below(17)],
                    _ => drop(bytes.remove(at)),
                }
            }
            let mut out = Vec::new();
            let end = transcode::read(&bytes, &mut out);
            let first = parse_first(&bytes, &mut Vec::new());
            assert_eq!(
                first.as_ref().map(|(document, end)| (document.as_bytes(), *end)),
                end.map(|end| (&out[..], end)),
                "read as serde does"
            );
            let judged = match end {
                Some(end) => std::str::from_utf8(&bytes[..end]).expect("it was read as text"),
                None => match std::str::from_utf8(&bytes) {
                    Ok(text) => text,
                    Err(_) => continue,
                },
            };
            let judged = parse::parse_by_serde(judged);
            if let Some(end) = end {
                let judged = judged.as_ref().unwrap_or_else(|error| {
                    panic!("{error}: {}", String::from_utf8_lossy(&bytes[..end]))
                });
                assert_eq!(judged.as_bytes(), out);
            }
            right += usize::from(judged.is_ok());
            straight_away += usize::from(judged.is_ok() && end.is_some());
        }
    });
    assert_eq!(straight_away, right);
    assert_met("texts that are right", right, 3_000);
}

/// Doubles are written in the standard library's form, and read as they were. Of two texts as
/// short, either will do.
#[test]
fn doubles_have_the_shortest_digits() {
    for_seeds(20_000, |mut random| {
        let bits = f64::from_bits(random.next());
        let near = random.next() as i64 as f64 / 10f64.powi(random.below(24) as i32);
        for number in [bits, near, near.trunc(), near * 1e-3] {
            if number.is_finite() {
                let mut text = String::new();
                write_value(Value::Double(number), Form::Relaxed, &mut text);
                let standard = format!("{number:?}");
                assert_eq!(text.len(), standard.len(), "{text}, {standard}");
                assert_eq!(text.parse().map(f64::to_bits), Ok(number.to_bits()), "{text}");
                assert_eq!(text.find(['.', 'e']), standard.find(['.', 'e']), "{text}");
            }
        }
    });
}
