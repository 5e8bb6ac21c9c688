//! Types, conversions, dates.

use super::check;

#[test]
fn values_are_converted() {
    check(&[
        (r#"{"$type": "$absent"}"#, r#""missing""#),
        (r#"{"$type": "$dec"}"#, r#""decimal""#),
        (r#"{"$isNumber": "$l"}"#, "true"),
        (r#"{"$isNumber": "x"}"#, "false"),
        (r#"{"$toInt": "42"}"#, "42"),
        (r#"{"$toInt": 2.9}"#, "2"),
        (r#"{"$toInt": -2.9}"#, "-2"),
        (r#"{"$toInt": true}"#, "1"),
        (r#"{"$toInt": "$dec"}"#, "1"),
        (r#"{"$toInt": "$absent"}"#, "null"),
        (r#"{"$toInt": "1.5"}"#, "!241"),
        (r#"{"$toInt": "x"}"#, "!241"),
        (r#"{"$toInt": "$l"}"#, "!241"),
        (r#"{"$toInt": "$nan"}"#, "!241"),
        (r#"{"$toInt": "$a"}"#, "!241"),
        (r#"{"$toInt": "$date"}"#, "!241"),
        (r#"{"$toLong": 1}"#, r#"{"$numberLong": "1"}"#),
        (r#"{"$toLong": "$date"}"#, r#"{"$numberLong": "1582979696789"}"#),
        (r#"{"$toLong": 9223372036854775808.0}"#, "!241"),
        (r#"{"$toDouble": "1e3"}"#, r#"{"$numberDouble": "1000.0"}"#),
        (r#"{"$toDouble": "1e999"}"#, "!241"),
        (r#"{"$toDouble": " 1"}"#, "!241"),
        (r#"{"$toDouble": "$i"}"#, r#"{"$numberDouble": "7.0"}"#),
        (r#"{"$toDecimal": "1.50"}"#, r#"{"$numberDecimal": "1.50"}"#),
        (r#"{"$toDecimal": "x"}"#, "!241"),
        (r#"{"$toBool": "false"}"#, "true"),
        (r#"{"$toBool": 0}"#, "false"),
        (r#"{"$toBool": "$n"}"#, "null"),
        (r#"{"$toString": 1.0}"#, r#""1""#),
        (r#"{"$toString": 2.5}"#, r#""2.5""#),
        (r#"{"$toString": 1e21}"#, r#""1e+21""#),
        (r#"{"$toString": 1e-7}"#, r#""1e-07""#),
        (r#"{"$toString": "$nan"}"#, r#""NaN""#),
        (r#"{"$toString": "$dec"}"#, r#""1.10""#),
        (r#"{"$toString": "$oid"}"#, r#""5e5a8c000000000000000000""#),
        (r#"{"$toString": "$date"}"#, r#""2020-02-29T12:34:56.789Z""#),
        (r#"{"$toString": true}"#, r#""true""#),
        (r#"{"$toString": "$a"}"#, "!241"),
        (
            r#"{"$toObjectId": "5e5a8c00000000000000000F"}"#,
            r#"{"$oid": "5e5a8c00000000000000000f"}"#,
        ),
        (r#"{"$toObjectId": "5e5a"}"#, "!241"),
        (r#"{"$toObjectId": "5e5a8c00000000000000000+"}"#, "!241"),
        (r#"{"$toObjectId": 1}"#, "!241"),
        (r#"{"$convert": {"input": "x", "to": "int", "onError": "no"}}"#, r#""no""#),
        (r#"{"$convert": {"input": "$n", "to": "int", "onNull": 0}}"#, "0"),
        (r#"{"$convert": {"input": "7", "to": 16}}"#, "7"),
        (r#"{"$convert": {"input": "7", "to": "$n"}}"#, "null"),
        (r#"{"$convert": {"input": "7", "to": "nothing"}}"#, "!2"),
        (r#"{"$convert": {"input": "7", "to": true}}"#, "!9"),
        (r#"{"$convert": {"input": "7"}}"#, "!9"),
        (r#"{"$convert": 1}"#, "!9"),
    ]);
}

#[test]
fn dates_are_read_from_text_and_numbers() {
    check(&[
        (r#"{"$toDate": "2020-01-02"}"#, r#"{"$date": "2020-01-02T00:00:00Z"}"#),
        (r#"{"$toDate": "2020-01-02T03:04:05Z"}"#, r#"{"$date": "2020-01-02T03:04:05Z"}"#),
        (r#"{"$toDate": "2020-01-02T03:04:05.678"}"#, r#"{"$date": "2020-01-02T03:04:05.678Z"}"#),
        (r#"{"$toDate": "2020-01-02 03:04:05+0100"}"#, r#"{"$date": "2020-01-02T02:04:05Z"}"#),
        (r#"{"$toDate": "2020-01-02T03:04:05-02:00"}"#, r#"{"$date": "2020-01-02T05:04:05Z"}"#),
        (r#"{"$toDate": "tomorrow"}"#, "!241"),
        (r#"{"$toDate": "$oid"}"#, r#"{"$date": "2020-02-29T16:06:24Z"}"#),
        (r#"{"$toDate": 86400000.5}"#, r#"{"$date": "1970-01-02T00:00:00Z"}"#),
        (r#"{"$toDate": 1}"#, "!241"),
    ]);
}

#[test]
fn binary_data_is_converted() {
    let uuid = "867dee52-c331-484e-92d1-c56479b8e67e";
    let binary = |base64: &str, subtype: &str| {
        format!(r#"{{"$binary": {{"base64": "{base64}", "subType": "{subtype}"}}}}"#)
    };
    let bytes = |input: &str, format: &str| {
        format!(r#"{{"$convert": {{"input": {input}, "to": "binData", "format": "{format}"}}}}"#)
    };
    let string = |input: &str, format: &str| {
        format!(r#"{{"$convert": {{"input": {input}, "to": "string", "format": "{format}"}}}}"#)
    };
    let number = |input: &str, to: &str, order: &str| {
        format!(r#"{{"$convert": {{"input": {input}, "to": {to}, "byteOrder": "{order}"}}}}"#)
    };
    let uuid_bytes = binary("hn3uUsMxSE6S0cVkebjmfg==", "04");
    check(&[
        (&format!(r#"{{"$toUUID": "{uuid}"}}"#), &uuid_bytes),
        (r#"{"$toUUID": "867dee52"}"#, "!241"),
        (r#"{"$toUUID": "$n"}"#, "null"),
        (&string(&uuid_bytes, "uuid"), &format!("\"{uuid}\"")),
        (&string(&uuid_bytes, "auto"), &format!("\"{uuid}\"")),
        (&string(&binary("/+8=", "00"), "auto"), r#""/+8=""#),
        (&string(&binary("/+8=", "00"), "base64url"), r#""_-8""#),
        (&string(&binary("/+8=", "00"), "hex"), r#""FFEF""#),
        (&string(&binary("/+8=", "00"), "utf8"), "!241"),
        (&string(&binary("/+8=", "00"), "uuid"), "!241"),
        (&bytes("\"ß\"", "utf8"), &binary("w58=", "00")),
        (&bytes("\"/+8=\"", "base64"), &binary("/+8=", "00")),
        (&bytes("\"_-8\"", "base64url"), &binary("/+8=", "00")),
        (&bytes("\"ffEF\"", "hex"), &binary("/+8=", "00")),
        (&bytes("\"ffE\"", "hex"), "!241"),
        (&bytes("\"/+8\"", "base64"), "!241"),
        (&bytes("\"x\"", "rot13"), "!4341125"),
        (r#"{"$convert": {"input": "x", "to": "binData"}}"#, "!4341115"),
        (
            r#"{"$convert": {"input": "zz", "to": {"type": "binData", "subtype": 0}, "format": "hex", "onError": 0}}"#,
            "0",
        ),
        (
            r#"{"$convert": {"input": "x", "to": {"type": "binData", "subtype": 300}, "format": "hex"}}"#,
            "!4341107",
        ),
        (r#"{"$convert": {"input": "x", "to": {"subtype": 0}}}"#, "!9"),
        (&format!(r#"{{"$convert": {{"input": {uuid_bytes}, "to": "binData"}}}}"#), "!241"),
        (&format!(r#"{{"$convert": {{"input": {uuid_bytes}, "to": "bool"}}}}"#), "true"),
        (&number("258", r#""binData""#, "little"), &binary("AgEAAA==", "00")),
        (&number("258", r#""binData""#, "big"), &binary("AAABAg==", "00")),
        (&number(&binary("AgEAAA==", "00"), r#""int""#, "little"), "258"),
        (&number(&binary("/w==", "00"), r#""long""#, "big"), r#"{"$numberLong": "-1"}"#),
        (&number(&binary("AgEA", "00"), r#""int""#, "little"), "!241"),
        (&number("2.5", r#""binData""#, "big"), &binary("QAQAAAAAAAA=", "00")),
        (&number(&binary("QAQAAAAAAAA=", "00"), r#""double""#, "big"), "2.5"),
    ]);
}

#[test]
fn keys_of_hashed_indexes() {
    let long = |number: &str| format!(r#"{{"$numberLong": "{number}"}}"#);
    check(&[
        // What hashed indexes of MongoDB are known to hold.
        (r#"{"$toHashedIndexKey": 1}"#, &long("5902408780260971510")),
        (r#"{"$toHashedIndexKey": {"$numberDecimal": "2.9"}}"#, &long("848411777775835583")),
        (r#"{"$toHashedIndexKey": "$nan"}"#, &long("4854801880128277513")),
        (r#"{"$eq": [{"$toHashedIndexKey": 7}, {"$toHashedIndexKey": 7.5}]}"#, "true"),
        (r#"{"$eq": [{"$toHashedIndexKey": "$absent"}, {"$toHashedIndexKey": null}]}"#, "true"),
        (r#"{"$ne": [{"$toHashedIndexKey": "$o"}, {"$toHashedIndexKey": "$a"}]}"#, "true"),
        (r#"{"$meta": "textScore"}"#, "!40218"),
        (r#"{"$meta": "x"}"#, "!17308"),
        (r#"{"$meta": 1}"#, "!17307"),
    ]);
}
