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
