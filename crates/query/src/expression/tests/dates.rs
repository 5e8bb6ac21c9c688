//! Dates: parts, text, counting, in time zones.

use super::check;

/// A date in a table.
fn date(text: &str) -> String {
    format!(r#"{{"$date": "{text}"}}"#)
}

#[test]
fn parts_of_dates() {
    check(&[
        (r#"{"$year": "$date"}"#, "2020"),
        (r#"{"$year": ["$date"]}"#, "2020"),
        (r#"{"$year": ["$date", 1]}"#, "!40536"),
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
        (r#"{"$year": {"$literal": {"$timestamp": {"t": 86400, "i": 1}}}}"#, "1970"),
        (r#"{"$year": "$n"}"#, "null"),
        (r#"{"$year": "x"}"#, "!16006"),
        (r#"{"$hour": {"date": "$date", "timezone": "+02:30"}}"#, "15"),
        (r#"{"$dayOfMonth": {"date": "$date", "timezone": "-13"}}"#, "28"),
        (r#"{"$hour": {"date": "$date", "timezone": "UTC"}}"#, "12"),
        (r#"{"$hour": {"date": "$date", "timezone": "$n"}}"#, "null"),
        (r#"{"$hour": {"date": "$date", "timezone": "Europe/Berlin"}}"#, "13"),
        (r#"{"$hour": {"date": "$date", "timezone": {"$concat": ["Asia/", "Tokyo"]}}}"#, "21"),
        (r#"{"$hour": {"date": "$date", "timezone": "Europe/Nowhere"}}"#, "!40485"),
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
fn dates_are_taken_apart_and_put_together() {
    check(&[
        (
            r#"{"$dateToParts": {"date": "$date"}}"#,
            r#"{"year": 2020, "month": 2, "day": 29, "hour": 12, "minute": 34, "second": 56, "millisecond": 789}"#,
        ),
        (
            r#"{"$dateToParts": {"date": "$date", "timezone": "America/New_York"}}"#,
            r#"{"year": 2020, "month": 2, "day": 29, "hour": 7, "minute": 34, "second": 56, "millisecond": 789}"#,
        ),
        (
            r#"{"$dateToParts": {"date": "$date", "iso8601": true}}"#,
            r#"{"isoWeekYear": 2020, "isoWeek": 9, "isoDayOfWeek": 6, "hour": 12, "minute": 34, "second": 56, "millisecond": 789}"#,
        ),
        (r#"{"$dateToParts": {"date": "$n"}}"#, "null"),
        (r#"{"$dateToParts": {"date": "$date", "timezone": "$n"}}"#, "null"),
        (r#"{"$dateToParts": {"date": "$date", "iso8601": null}}"#, "null"),
        (r#"{"$dateToParts": {"date": "$date", "iso8601": 1}}"#, "!40521"),
        (r#"{"$dateToParts": {"date": 1}}"#, "!16006"),
        (r#"{"$dateToParts": {"iso8601": true}}"#, "!40522"),
        (r#"{"$dateToParts": {"date": "$date", "x": 1}}"#, "!40520"),
        (r#"{"$dateToParts": 1}"#, "!40524"),
        (
            r#"{"$dateFromParts": {"year": 2017, "month": 2, "day": 8, "hour": 12}}"#,
            &date("2017-02-08T12:00:00Z"),
        ),
        (
            r#"{"$dateFromParts": {"isoWeekYear": 2017, "isoWeek": 6, "isoDayOfWeek": 3, "hour": 12}}"#,
            &date("2017-02-08T12:00:00Z"),
        ),
        (
            r#"{"$dateFromParts": {"year": 2016, "month": 12, "day": 31, "hour": 23, "minute": 46, "second": 12, "timezone": "America/New_York"}}"#,
            &date("2017-01-01T04:46:12Z"),
        ),
        // Parts beyond their ranges carry over.
        (
            r#"{"$dateFromParts": {"year": 2017, "month": 14, "day": 1}}"#,
            &date("2018-02-01T00:00:00Z"),
        ),
        (
            r#"{"$dateFromParts": {"year": 2017, "month": 0, "day": 1}}"#,
            &date("2016-12-01T00:00:00Z"),
        ),
        (
            r#"{"$dateFromParts": {"year": 2017, "month": 1, "day": -1}}"#,
            &date("2016-12-30T00:00:00Z"),
        ),
        (r#"{"$dateFromParts": {"year": 2017, "second": 86400}}"#, &date("2017-01-02T00:00:00Z")),
        (
            r#"{"$dateFromParts": {"isoWeekYear": 2020, "isoWeek": 54}}"#,
            &date("2021-01-04T00:00:00Z"),
        ),
        (r#"{"$dateFromParts": {"year": "$n"}}"#, "null"),
        (r#"{"$dateFromParts": {"year": 2017, "day": "$absent"}}"#, "null"),
        (r#"{"$dateFromParts": {"year": 2017, "timezone": null}}"#, "null"),
        (r#"{"$dateFromParts": {"year": 2017.0}}"#, &date("2017-01-01T00:00:00Z")),
        (r#"{"$dateFromParts": {"year": 2017.5}}"#, "!40515"),
        (r#"{"$dateFromParts": {"year": 2017, "month": "x"}}"#, "!40515"),
        (r#"{"$dateFromParts": {"year": 2017, "month": 32768}}"#, "!31034"),
        (r#"{"$dateFromParts": {"year": 10000}}"#, "!40523"),
        (r#"{"$dateFromParts": {"isoWeekYear": 0}}"#, "!31095"),
        (r#"{"$dateFromParts": {"month": 1}}"#, "!40516"),
        (r#"{"$dateFromParts": {"year": 2017, "isoWeek": 1}}"#, "!40489"),
        (r#"{"$dateFromParts": {"isoWeekYear": 2017, "day": 1}}"#, "!40525"),
        (r#"{"$dateFromParts": {"year": 2017, "timezone": 1}}"#, "!40517"),
        (r#"{"$dateFromParts": {"year": 2017, "x": 1}}"#, "!40518"),
        (r#"{"$dateFromParts": 1}"#, "!40519"),
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
        // The default format shows no offset of another zone than UTC.
        (
            r#"{"$dateToString": {"date": "$date", "timezone": "+05:30"}}"#,
            r#""2020-02-29T18:04:56.789""#,
        ),
        (
            r#"{"$dateToString": {"date": "$date", "timezone": "+05:30", "format": "%H:%M %z %Z"}}"#,
            r#""18:04 +0530 330""#,
        ),
        (
            r#"{"$dateToString": {"date": "$date", "timezone": "America/New_York", "format": "%H%z|%Z"}}"#,
            r#""07-0500|-300""#,
        ),
        (
            r#"{"$dateToString": {"date": {"$toDate": "2020-07-01"}, "timezone": "America/New_York", "format": "%d %H%z"}}"#,
            r#""30 20-0400""#,
        ),
        (r#"{"$dateToString": {"date": "$n", "onNull": "-"}}"#, r#""-""#),
        (r#"{"$dateToString": {"date": "$n", "onNull": "$$REMOVE"}}"#, "missing"),
        (r#"{"$dateToString": {"date": "$absent"}}"#, "null"),
        (r#"{"$dateToString": {"date": "$date", "format": "$n", "onNull": 1}}"#, "null"),
        (r#"{"$dateToString": {"date": "$date", "timezone": "$n"}}"#, "null"),
        (r#"{"$dateToString": {"date": "$date", "format": "ü%Y"}}"#, r#""ü2020""#),
        (r#"{"$dateToString": {"date": "$date", "format": "%"}}"#, "!18535"),
        (r#"{"$dateToString": {"date": "$date", "format": "%Q"}}"#, "!18536"),
        (r#"{"$dateToString": {"date": "$n", "format": {"$concat": ["%", "Q"]}}}"#, "!18536"),
        (r#"{"$dateToString": {"date": "$date", "format": 1}}"#, "!18533"),
        (r#"{"$dateToString": {"date": "$date", "timezone": "Asia/Nowhere"}}"#, "!40485"),
        (r#"{"$dateToString": {"date": "$date", "timezone": 5}}"#, "!40517"),
        (
            r#"{"$dateToString": {"date": {"$toDate": {"$numberLong": "253402300800000"}}}}"#,
            "!18537",
        ),
        (r#"{"$dateToString": {"format": "%Y"}}"#, "!18628"),
        (r#"{"$dateToString": {"date": "$date", "x": 1}}"#, "!18534"),
        (r#"{"$dateToString": 1}"#, "!18629"),
    ]);
}

#[test]
fn dates_are_read_by_format() {
    let by = |text: &str, format: &str| {
        format!(r#"{{"$dateFromString": {{"dateString": "{text}", "format": "{format}"}}}}"#)
    };
    let zoned = |text: &str, zone: &str| {
        format!(r#"{{"$dateFromString": {{"dateString": "{text}", "timezone": "{zone}"}}}}"#)
    };
    check(&[
        (&by("06-15-2018", "%m-%d-%Y"), &date("2018-06-15T00:00:00Z")),
        (&by("15-06-2018", "%d-%m-%Y"), &date("2018-06-15T00:00:00Z")),
        (&by("2018 7 June", "%Y %d %B"), &date("2018-06-07T00:00:00Z")),
        (&by("2018 7 jun", "%Y %d %b"), &date("2018-06-07T00:00:00Z")),
        (&by("Day 060 of 2020", "Day %j of %Y"), &date("2020-02-29T00:00:00Z")),
        (&by("5, 10, 2012", "%u, %V, %G"), &date("2012-03-09T00:00:00Z")),
        (
            &by("2020-01-02 03:04:05.6+01:00", "%Y-%m-%d %H:%M:%S.%L%z"),
            &date("2020-01-02T02:04:05.006Z"),
        ),
        (&by("2020-01-02 03:04 -90", "%Y-%m-%d %H:%M %Z"), &date("2020-01-02T04:34:00Z")),
        (&by("100% 2020-01-02", "100%% %Y-%m-%d"), &date("2020-01-02T00:00:00Z")),
        (&by("2020-13-01", "%Y-%m-%d"), "!241"),
        (&by("2020-02-30", "%Y-%m-%d"), "!241"),
        (&by("2020-02", "%Y-%m"), "!241"),
        (&by("2020-02-01 10", "%Y-%m-%d %H"), "!241"),
        (&by("2020-02-01x", "%Y-%m-%d"), "!241"),
        (&by("", "%Y-%m-%d"), "!241"),
        (&by("2020", "%Q"), "!18536"),
        (&by("2020", "%"), "!18535"),
        (&zoned("2017-02-08T12:10:40.787", "America/New_York"), &date("2017-02-08T17:10:40.787Z")),
        (&zoned("2017-02-08", "-05:00"), &date("2017-02-08T05:00:00Z")),
        (&zoned("2017-02-08T00:00Z", "Europe/London"), "!241"),
        (&zoned("2017-02-08T00:00+01:00", "UTC"), &date("2017-02-07T23:00:00Z")),
        (&zoned("2017-02-08", "Nowhere"), "!40485"),
        (r#"{"$dateFromString": {"dateString": "$n", "onNull": "-"}}"#, r#""-""#),
        (r#"{"$dateFromString": {"dateString": "$absent"}}"#, "null"),
        (r#"{"$dateFromString": {"dateString": "xyz", "onError": "$s"}}"#, r#""Straße""#),
        (r#"{"$dateFromString": {"dateString": 7, "onError": "$i"}}"#, "7"),
        (r#"{"$dateFromString": {"dateString": 7}}"#, "!241"),
        (r#"{"$dateFromString": {"dateString": "2020-01-01", "format": null}}"#, "null"),
        (r#"{"$dateFromString": {"dateString": "2020-01-01", "timezone": null}}"#, "null"),
        (r#"{"$dateFromString": {"dateString": "2020-01-01", "format": 1}}"#, "!40684"),
        (r#"{"$dateFromString": {"dateString": null, "format": 1}}"#, "!40684"),
        (r#"{"$dateFromString": {"format": "%Y"}}"#, "!40542"),
        (r#"{"$dateFromString": {"dateString": "x", "y": 1}}"#, "!40541"),
        (r#"{"$dateFromString": "x"}"#, "!40540"),
    ]);
}

#[test]
fn dates_are_read_without_a_format() {
    for (text, expected) in [
        ("2020-02-29", "2020-02-29T00:00:00Z"),
        ("2020/2/29", "2020-02-29T00:00:00Z"),
        ("20200229", "2020-02-29T00:00:00Z"),
        ("20200229T123456", "2020-02-29T12:34:56Z"),
        ("2020-060", "2020-02-29T00:00:00Z"),
        ("2020-W09-6", "2020-02-29T00:00:00Z"),
        ("02/29/2020", "2020-02-29T00:00:00Z"),
        ("29.02.2020 12:34", "2020-02-29T12:34:00Z"),
        ("29-02-2020", "2020-02-29T00:00:00Z"),
        ("29 February 2020", "2020-02-29T00:00:00Z"),
        ("29-Feb-2020", "2020-02-29T00:00:00Z"),
        ("February 29th, 2020 1:34 pm", "2020-02-29T13:34:00Z"),
        ("Sat, 29 Feb 2020 12:34:56 GMT", "2020-02-29T12:34:56Z"),
        ("Sat Feb 29 2020 12am", "2020-02-29T00:00:00Z"),
        ("2020-02-29 12:34:56.789123", "2020-02-29T12:34:56.789Z"),
        ("2020-02-29T12:34:56,5Z", "2020-02-29T12:34:56.5Z"),
        ("2020-02-29T12:34:56+0530", "2020-02-29T07:04:56Z"),
        ("2020-02-29 12:34 EST", "2020-02-29T17:34:00Z"),
        ("2020-02-29 12:34 GMT+2", "2020-02-29T10:34:00Z"),
        ("2020-02-29T24:00:00", "2020-03-01T00:00:00Z"),
    ] {
        let expression = format!(r#"{{"$dateFromString": {{"dateString": "{text}"}}}}"#);
        check(&[(expression.as_str(), date(expected).as_str())]);
    }
    for text in [
        "tomorrow",
        "2020",
        "12:34",
        "2020-02-30",
        "2020-13-01",
        "20-02-2020x",
        "2020-02-29T25:00",
        "2020-02-29 12",
        "2020-02-29T12:60",
        "2020-02-29 12:34 Europe/Berlin",
        "29 02 2020",
        "",
        "é",
        "2020-02-29T",
        "2020-366-",
        "2020-W54-1",
        "+",
        "2020-02-29 12:34 +",
    ] {
        let expression = format!(r#"{{"$dateFromString": {{"dateString": "{text}"}}}}"#);
        check(&[(expression.as_str(), "!241")]);
    }
}

#[test]
fn dates_are_moved() {
    let add = |start: &str, unit: &str, amount: &str, zone: &str| {
        format!(
            r#"{{"$dateAdd": {{"startDate": {}, "unit": "{unit}", "amount": {amount}, "timezone": "{zone}"}}}}"#,
            date(start)
        )
    };
    let utc = |start: &str, unit: &str, amount: &str| add(start, unit, amount, "UTC");
    let paris = "Europe/Paris";
    check(&[
        (&utc("2020-12-31T12:10:05Z", "month", "2"), &date("2021-02-28T12:10:05Z")),
        (&utc("2020-12-31T12:10:05Z", "month", "-1"), &date("2020-11-30T12:10:05Z")),
        (&utc("2020-02-29T00:00:00Z", "year", "1"), &date("2021-02-28T00:00:00Z")),
        (&utc("2020-11-30T00:00:00Z", "quarter", "1"), &date("2021-02-28T00:00:00Z")),
        (&utc("2020-12-31T12:10:05Z", "week", "1"), &date("2021-01-07T12:10:05Z")),
        (&utc("2020-12-31T12:10:05Z", "day", "1.0"), &date("2021-01-01T12:10:05Z")),
        (&utc("2020-12-31T23:59:59.999Z", "millisecond", "1"), &date("2021-01-01T00:00:00Z")),
        (&utc("1969-12-31T23:59:59.999Z", "second", "-1"), &date("1969-12-31T23:59:58.999Z")),
        // A day over the change of the clocks has 25 hours; hours are hours.
        (&add("2021-10-30T12:10:00Z", "day", "1", paris), &date("2021-10-31T13:10:00Z")),
        (&add("2021-10-30T12:10:00Z", "hour", "24", paris), &date("2021-10-31T12:10:00Z")),
        (&add("2021-01-31T23:30:00Z", "month", "1", "+01:00"), &date("2021-02-28T23:30:00Z")),
        (
            &utc("2020-12-31T00:00:00Z", "second", r#"{"$numberLong": "9223372036854775807"}"#),
            "!5976500",
        ),
        (
            &utc(
                "2020-12-31T00:00:00Z",
                "millisecond",
                r#"{"$numberLong": "9223372036854775807"}"#,
            ),
            "!5166406",
        ),
        (&utc("2020-12-31T00:00:00Z", "year", "400000000"), "!5166406"),
        (&utc("2020-12-31T00:00:00Z", "year", "1.5"), "!5166405"),
        (&utc("2020-12-31T00:00:00Z", "eon", "1"), "!9"),
        (&utc("2020-12-31T00:00:00Z", "day", "\"1\""), "!5166405"),
        (&utc("2020-12-31T00:00:00Z", "day", "null"), "null"),
        (&add("2020-12-31T00:00:00Z", "day", "1", "Nowhere"), "!40485"),
        (r#"{"$dateAdd": {"startDate": 1, "unit": "day", "amount": 1}}"#, "!5166403"),
        (r#"{"$dateAdd": {"startDate": "$n", "unit": "day", "amount": 1}}"#, "null"),
        (r#"{"$dateAdd": {"startDate": "$date", "unit": 1, "amount": 1}}"#, "!5166404"),
        (r#"{"$dateAdd": {"startDate": "$date", "unit": "day"}}"#, "!5166402"),
        (r#"{"$dateAdd": {"startDate": "$date", "unit": "day", "amount": 1, "x": 1}}"#, "!5166401"),
        (r#"{"$dateAdd": 1}"#, "!5166400"),
        (
            r#"{"$dateAdd": {"startDate": "$oid", "unit": "day", "amount": 1}}"#,
            &date("2020-03-01T16:06:24Z"),
        ),
        (
            r#"{"$dateSubtract": {"startDate": "$date", "unit": "month", "amount": 1}}"#,
            &date("2020-01-29T12:34:56.789Z"),
        ),
        (
            r#"{"$dateSubtract": {"startDate": "$date", "unit": "day", "amount": {"$numberLong": "-9223372036854775808"}}}"#,
            "!6045000",
        ),
    ]);
}

#[test]
fn boundaries_between_dates_are_counted() {
    let between = |start: &str, end: &str, unit: &str, more: &str| {
        format!(
            r#"{{"$dateDiff": {{"startDate": {}, "endDate": {}, "unit": "{unit}"{more}}}}}"#,
            date(start),
            date(end)
        )
    };
    let long = |number: i64| format!(r#"{{"$numberLong": "{number}"}}"#);
    let ny = r#", "timezone": "America/New_York""#;
    let monday = r#", "startOfWeek": "Monday""#;
    check(&[
        (&between("2010-12-31T23:59:59Z", "2011-01-01T00:00:00Z", "year", ""), &long(1)),
        (&between("2011-01-01T00:00:00Z", "2010-12-31T23:59:59Z", "quarter", ""), &long(-1)),
        (&between("2010-01-31T00:00:00Z", "2011-03-01T00:00:00Z", "month", ""), &long(14)),
        (&between("2021-01-02T00:00:00Z", "2021-01-03T00:00:00Z", "week", ""), &long(1)),
        (&between("2021-01-02T00:00:00Z", "2021-01-03T00:00:00Z", "week", monday), &long(0)),
        (
            &between(
                "2021-01-03T00:00:00Z",
                "2021-01-04T00:00:00Z",
                "week",
                r#", "startOfWeek": "mon""#,
            ),
            &long(1),
        ),
        (&between("2021-01-03T23:00:00Z", "2021-01-04T01:00:00Z", "day", ""), &long(1)),
        (&between("2021-01-03T23:00:00Z", "2021-01-04T01:00:00Z", "day", ny), &long(0)),
        (&between("1969-12-31T23:59:00Z", "1970-01-01T00:01:00Z", "hour", ""), &long(1)),
        // The hour from 1 to 2 came twice.
        (&between("2020-11-01T04:30:00Z", "2020-11-01T07:30:00Z", "hour", ny), &long(3)),
        (&between("2020-11-01T04:30:00Z", "2020-11-01T07:30:00Z", "minute", ny), &long(180)),
        (&between("2020-01-01T00:00:00.900Z", "2020-01-01T00:00:01.100Z", "second", ""), &long(1)),
        (
            &between("2020-01-01T00:00:00.900Z", "2020-01-01T00:00:01.100Z", "millisecond", ""),
            &long(200),
        ),
        (&between("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "eon", ""), "!5439014"),
        (
            &between(
                "2020-01-01T00:00:00Z",
                "2020-01-01T00:00:00Z",
                "week",
                r#", "startOfWeek": "x""#,
            ),
            "!5439016",
        ),
        (
            &between(
                "2020-01-01T00:00:00Z",
                "2020-01-01T00:00:00Z",
                "week",
                r#", "startOfWeek": 1"#,
            ),
            "!5439015",
        ),
        (
            &between(
                "2020-01-01T00:00:00Z",
                "2020-01-01T00:00:00Z",
                "week",
                r#", "startOfWeek": null"#,
            ),
            "null",
        ),
        (
            &between(
                "2020-01-01T00:00:00Z",
                "2020-01-01T00:00:00Z",
                "day",
                r#", "startOfWeek": 1"#,
            ),
            &long(0),
        ),
        (
            &between(
                "2020-01-01T00:00:00Z",
                "2020-01-01T00:00:00Z",
                "day",
                r#", "timezone": null"#,
            ),
            "null",
        ),
        (r#"{"$dateDiff": {"startDate": "$n", "endDate": "$date", "unit": "day"}}"#, "null"),
        (r#"{"$dateDiff": {"startDate": "x", "endDate": "$date", "unit": "day"}}"#, "!5166307"),
        (r#"{"$dateDiff": {"startDate": "$date", "endDate": "$date", "unit": 1}}"#, "!5439013"),
        (r#"{"$dateDiff": {"endDate": "$date", "unit": "day"}}"#, "!5166303"),
        (r#"{"$dateDiff": {"startDate": "$date", "unit": "day"}}"#, "!5166304"),
        (r#"{"$dateDiff": {"startDate": "$date", "endDate": "$date"}}"#, "!5166305"),
        (r#"{"$dateDiff": {"startDate": "$date", "x": 1}}"#, "!5166302"),
        (r#"{"$dateDiff": 1}"#, "!5166301"),
    ]);
}

#[test]
fn dates_are_cut_to_the_beginning_of_a_period() {
    let cut = |at: &str, unit: &str, more: &str| {
        format!(r#"{{"$dateTrunc": {{"date": {}, "unit": "{unit}"{more}}}}}"#, date(at))
    };
    let at = "2021-03-20T11:30:05.123Z";
    let los_angeles =
        r#", "binSize": 2, "timezone": "America/Los_Angeles", "startOfWeek": "Monday""#;
    check(&[
        (&cut(at, "year", ""), &date("2021-01-01T00:00:00Z")),
        (&cut(at, "quarter", ""), &date("2021-01-01T00:00:00Z")),
        (&cut(at, "month", ""), &date("2021-03-01T00:00:00Z")),
        (&cut(at, "week", ""), &date("2021-03-14T00:00:00Z")),
        (&cut(at, "week", r#", "startOfWeek": "FRI""#), &date("2021-03-19T00:00:00Z")),
        (&cut(at, "day", ""), &date("2021-03-20T00:00:00Z")),
        (&cut(at, "hour", ""), &date("2021-03-20T11:00:00Z")),
        (&cut(at, "hour", r#", "binSize": 2"#), &date("2021-03-20T10:00:00Z")),
        (&cut(at, "minute", r#", "binSize": 15"#), &date("2021-03-20T11:30:00Z")),
        (&cut(at, "second", ""), &date("2021-03-20T11:30:05Z")),
        (&cut(at, "millisecond", r#", "binSize": 100"#), &date("2021-03-20T11:30:05.100Z")),
        (&cut(at, "year", r#", "binSize": 10"#), &date("2020-01-01T00:00:00Z")),
        (&cut("1999-06-01T00:00:00Z", "year", r#", "binSize": 10"#), &date("1990-01-01T00:00:00Z")),
        (&cut(at, "month", r#", "binSize": 6"#), &date("2021-01-01T00:00:00Z")),
        (&cut("2020-05-18T14:10:30Z", "week", los_angeles), &date("2020-05-11T07:00:00Z")),
        (&cut("2021-03-20T11:30:05Z", "week", los_angeles), &date("2021-03-15T07:00:00Z")),
        (&cut("2019-01-08T06:12:03Z", "week", los_angeles), &date("2019-01-07T08:00:00Z")),
        (&cut(at, "day", r#", "timezone": "Asia/Kolkata""#), &date("2021-03-19T18:30:00Z")),
        (&cut(at, "day", r#", "binSize": 0"#), "!5439018"),
        (&cut(at, "day", r#", "binSize": -1"#), "!5439018"),
        (&cut(at, "day", r#", "binSize": 1.5"#), "!5439017"),
        (&cut(at, "day", r#", "binSize": "1""#), "!5439017"),
        (&cut(at, "day", r#", "binSize": null"#), "null"),
        (&cut(at, "day", r#", "binSize": 100000000001"#), "!5439006"),
        (&cut(at, "hour", r#", "binSize": {"$numberLong": "9223372036854775807"}"#), "!5439002"),
        (&cut(at, "eon", ""), "!5439014"),
        (&cut(at, "week", r#", "startOfWeek": null"#), "null"),
        (r#"{"$dateTrunc": {"date": "$n", "unit": "day"}}"#, "null"),
        (r#"{"$dateTrunc": {"date": "x", "unit": "day"}}"#, "!5439012"),
        (r#"{"$dateTrunc": {"date": "$date", "unit": 1}}"#, "!5439013"),
        (r#"{"$dateTrunc": {"unit": "day"}}"#, "!5439009"),
        (r#"{"$dateTrunc": {"date": "$date"}}"#, "!5439010"),
        (r#"{"$dateTrunc": {"date": "$date", "x": 1}}"#, "!5439008"),
        (r#"{"$dateTrunc": 1}"#, "!5439007"),
    ]);
}

#[test]
fn timestamps_have_two_halves() {
    let timestamp = r#"{"$literal": {"$timestamp": {"t": 4000000000, "i": 7}}}"#;
    check(&[
        (&format!(r#"{{"$tsSecond": {timestamp}}}"#), r#"{"$numberLong": "4000000000"}"#),
        (&format!(r#"{{"$tsIncrement": {timestamp}}}"#), r#"{"$numberLong": "7"}"#),
        (r#"{"$tsSecond": "$n"}"#, "null"),
        (r#"{"$tsIncrement": "$absent"}"#, "null"),
        (r#"{"$tsSecond": "$date"}"#, "!5687301"),
        (r#"{"$tsIncrement": 1}"#, "!5687302"),
    ]);
}
