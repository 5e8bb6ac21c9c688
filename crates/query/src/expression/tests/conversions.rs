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
fn parts_of_dates() {
    check(&[
        (r#"{"$year": "$date"}"#, "2020"),
        (r#"{"$month": "$date"}"#, "2"),
        (r#"{"$dayOfMonth": "$date"}"#, "29"),
        (r#"{"$dayOfYear": "$date"}"#, "60"),
        (r#"{"$dayOfWeek": "$date"}"#, "7"),
        (r#"{"$isoDayOfWeek": "$date"}"#, "6"),
        (r#"{"$week": "$date"}"#, "8"),
        (r#"{"$isoWeek": "$date"}"#, "9"),
        (r#"{"$isoWeekYear": "$date"}"#, r#"{"$numberLong": "2020"}"#),
        (r#"{"$hour": "$date"}"#, "12"),
        (r#"{"$minute": "$date"}"#, "34"),
        (r#"{"$second": "$date"}"#, "56"),
        (r#"{"$millisecond": "$date"}"#, "789"),
        (r#"{"$year": "$oid"}"#, "2020"),
        (r#"{"$year": "$n"}"#, "null"),
        (r#"{"$year": "x"}"#, "!16006"),
        (r#"{"$hour": {"date": "$date", "timezone": "+02:30"}}"#, "15"),
        (r#"{"$dayOfMonth": {"date": "$date", "timezone": "-13"}}"#, "28"),
        (r#"{"$hour": {"date": "$date", "timezone": "UTC"}}"#, "12"),
        (r#"{"$hour": {"date": "$date", "timezone": "$n"}}"#, "null"),
        (r#"{"$hour": {"date": "$date", "timezone": "Europe/Berlin"}}"#, "!40485"),
        (r#"{"$hour": {"date": "$date", "timezone": 1}}"#, "!40533"),
        (r#"{"$hour": {"timezone": "UTC"}}"#, "!40539"),
        (r#"{"$hour": {"date": "$date", "zone": "UTC"}}"#, "!40535"),
        (r#"{"$isoWeek": {"$toDate": "2021-01-03"}}"#, "53"),
        (r#"{"$isoWeekYear": {"$toDate": "2021-01-03"}}"#, r#"{"$numberLong": "2020"}"#),
        (r#"{"$isoWeek": {"$toDate": "2018-12-31"}}"#, "1"),
        (r#"{"$week": {"$toDate": "2017-01-01"}}"#, "1"),
        (r#"{"$week": {"$toDate": "2016-01-01"}}"#, "0"),
        (r#"{"$year": {"$toDate": {"$numberLong": "-62135596800001"}}}"#, "0"),
        (r#"{"$dayOfYear": {"$toDate": {"$numberLong": "-9223372036854775808"}}}"#, "136"),
    ]);
}

#[test]
fn dates_are_printed() {
    check(&[
        (r#"{"$dateToString": {"date": "$date"}}"#, r#""2020-02-29T12:34:56.789Z""#),
        (
            r#"{"$dateToString": {"date": "$date", "format": "%d.%m.%Y %H:%M:%S,%L %j %u %w %V %G %U %b %B %%"}}"#,
            r#""29.02.2020 12:34:56,789 060 6 7 09 2020 08 Feb February %""#,
        ),
        (
            r#"{"$dateToString": {"date": "$date", "timezone": "+05:30"}}"#,
            r#""2020-02-29T18:04:56.789+0530""#,
        ),
        (r#"{"$dateToString": {"date": "$n", "onNull": "-"}}"#, r#""-""#),
        (r#"{"$dateToString": {"date": "$absent"}}"#, "null"),
        (r#"{"$dateToString": {"date": "$date", "format": "%"}}"#, "!18535"),
        (r#"{"$dateToString": {"date": "$date", "format": "%Q"}}"#, "!18536"),
        (r#"{"$dateToString": {"date": "$date", "format": 1}}"#, "!18533"),
        (r#"{"$dateToString": {"date": "$date", "timezone": "Asia/Tokyo"}}"#, "!40485"),
        (r#"{"$dateToString": {"format": "%Y"}}"#, "!18628"),
        (r#"{"$dateToString": {"date": "$date", "x": 1}}"#, "!18534"),
        (r#"{"$dateToString": 1}"#, "!18629"),
    ]);
}
