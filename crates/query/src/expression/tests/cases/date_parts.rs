//! Parts of dates, timestamps.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$dateToParts",
        r#"
            {"date": "$date"} => {"year": 2020, "month": 2, "day": 29, "hour": 12, "minute": 34,
                "second": 56, "millisecond": 789}
            {"date": "$date", "timezone": "America/New_York"} => {"year": 2020, "month": 2,
                "day": 29, "hour": 7, "minute": 34, "second": 56, "millisecond": 789}
            {"date": "$date", "iso8601": true} => {"isoWeekYear": 2020, "isoWeek": 9,
                "isoDayOfWeek": 6, "hour": 12, "minute": 34, "second": 56, "millisecond": 789}
            {"date": "$n"} => null
            {"date": "$date", "timezone": "$n"} => null
            {"date": "$date", "iso8601": null} => null
            {"date": "$date", "iso8601": 1} => !40521
            {"date": 1} => !16006
            {"iso8601": true} => !40522
            {"date": "$date", "x": 1} => !40520
            1 => !40524
            {"date": "$absent"} => null
            {"date": "$s"} => !16006
            {"date": "$a"} => !16006
            {"date": "$date", "timezone": "$n", "iso8601": 1} => null
            {"date": "$date", "timezone": "$absent"} => null
            {"date": "$date", "timezone": "+14:00"} => {"year": 2020, "month": 3, "day": 1,
                "hour": 2, "minute": 34, "second": 56, "millisecond": 789}
            {"date": "$date", "timezone": "+14:00", "iso8601": true} => {"isoWeekYear": 2020,
                "isoWeek": 9, "isoDayOfWeek": 7, "hour": 2, "minute": 34, "second": 56,
                "millisecond": 789}
            {"date": millis(-62135596800000)} => {"year": 1, "month": 1, "day": 1, "hour": 0,
                "minute": 0, "second": 0, "millisecond": 0}
            {"date": millis(253402300799999)} => {"year": 9999, "month": 12, "day": 31, "hour":
                23, "minute": 59, "second": 59, "millisecond": 999}
            {"date": millis(-1)} => {"year": 1969, "month": 12, "day": 31, "hour": 23, "minute":
                59, "second": 59, "millisecond": 999}
            {"date": "$date", "iso8601": "$n"} => null
            {"date": "$date", "timezone": 1} => !40517
            {"date": "$date", "timezone": "Mars/City"} => !40485
            {"timezone": "UTC"} => !40522
        "#,
    ),
    Table(
        "$dayOfMonth",
        r#"
            "$date" => 29
            {"date": "$date", "timezone": "-13"} => 28
            "$n" => null
            "$absent" => null
            "$s" => !16006
            {"date": "$date", "timezone": "+14:00"} => 1
            millis(-62135596800000) => 1
            millis(253402300799999) => 31
            "$oid" => 29
            ["$date", 1] => !40536
            {"date": "$date", "x": 1} => !40535
        "#,
    ),
    Table(
        "$dayOfWeek",
        r#"
            "$date" => 7
            "$n" => null
            "$absent" => null
            "$i" => !16006
            {"date": "$date", "timezone": "+14:00"} => 1
            millis(-62135596800000) => 2
            millis(253402300799999) => 6
            {"timezone": "UTC"} => !40539
        "#,
    ),
    Table(
        "$dayOfYear",
        r#"
            "$date" => 60
            {"$toDate": long(-9223372036854775808)} => 136
            "$n" => null
            "$absent" => null
            "$t" => !16006
            {"date": "$date", "timezone": "+14:00"} => 61
            millis(-62135596800000) => 1
            millis(253402300799999) => 365
            date(2020-12-31T00:00:00Z) => 366
            {} => !40539
        "#,
    ),
    Table(
        "$hour",
        r#"
            "$date" => 12
            {"date": "$date", "timezone": "+02:30"} => 15
            {"date": "$date", "timezone": "UTC"} => 12
            {"date": "$date", "timezone": "$n"} => null
            {"date": "$date", "timezone": "Europe/Berlin"} => 13
            {"date": "$date", "timezone": {"$concat": ["Asia/", "Tokyo"]}} => 21
            {"date": "$date", "timezone": "Europe/Nowhere"} => !40485
            {"date": "$date", "timezone": 1} => !40533
            {"timezone": "UTC"} => !40539
            {"date": "$date", "zone": "UTC"} => !40535
            "$absent" => null
            "$a" => !16006
            {"date": "$n", "timezone": "$i"} => null
            {"date": "$n", "timezone": 1} => !40533
            {"date": "$date", "timezone": "$absent"} => null
            {"date": "$date", "timezone": "$i"} => !40533
            {"date": "$date", "timezone": "utc"} => !40485
            {"date": "$date", "timezone": "+1"} => !40485
            {"date": date(2020-03-08T06:59:59Z), "timezone": "America/New_York"} => 1
            {"date": date(2020-03-08T07:00:00Z), "timezone": "America/New_York"} => 3
            {"date": date(2020-11-01T05:30:00Z), "timezone": "America/New_York"} => 1
            {"date": date(2020-11-01T06:30:00Z), "timezone": "America/New_York"} => 1
            millis(-62135596800000) => 0
            millis(253402300799999) => 23
            {"$literal": {"$timestamp": {"t": 7200, "i": 7}}} => 2
            {"$add": ["$date", 3600000]} => 13
        "#,
    ),
    Table(
        "$isoDayOfWeek",
        r#"
            "$date" => 6
            "$n" => null
            "$absent" => null
            "$i" => !16006
            {"date": "$date", "timezone": "+14:00"} => 7
            millis(-62135596800000) => 1
            millis(253402300799999) => 5
        "#,
    ),
    Table(
        "$isoWeek",
        r#"
            "$date" => 9
            {"$toDate": "2021-01-03"} => 53
            {"$toDate": "2018-12-31"} => 1
            "$n" => null
            "$absent" => null
            "$s" => !16006
            {"date": "$date", "timezone": "+14:00"} => 9
            millis(-62135596800000) => 1
            millis(253402300799999) => 52
            date(2021-01-03T00:00:00Z) => 53
            {"date": date(2021-01-03T23:00:00Z), "timezone": "+01"} => 1
        "#,
    ),
    Table(
        "$isoWeekYear",
        r#"
            "$date" => long(2020)
            {"$toDate": "2021-01-03"} => long(2020)
            "$n" => null
            "$absent" => null
            "$s" => !16006
            {"date": date(2021-01-03T23:00:00Z), "timezone": "+01"} => long(2021)
            millis(-62135596800000) => long(1)
            millis(253402300799999) => long(9999)
        "#,
    ),
    Table(
        "$millisecond",
        r#"
            "$date" => 789
            "$n" => null
            "$absent" => null
            "$i" => !16006
            {"date": "$date", "timezone": "Asia/Kolkata"} => 789
            millis(-1) => 999
            millis(253402300799999) => 999
        "#,
    ),
    Table(
        "$minute",
        r#"
            "$date" => 34
            "$n" => null
            "$absent" => null
            "$s" => !16006
            {"date": "$date", "timezone": "Asia/Kolkata"} => 4
            millis(-62135596800000) => 0
            millis(253402300799999) => 59
        "#,
    ),
    Table(
        "$month",
        r#"
            "$date" => 2
            "$n" => null
            "$absent" => null
            "$a" => !16006
            {"date": "$date", "timezone": "+14:00"} => 3
            millis(-62135596800000) => 1
            millis(253402300799999) => 12
        "#,
    ),
    Table(
        "$second",
        r#"
            "$date" => 56
            "$n" => null
            "$absent" => null
            "$s" => !16006
            {"date": "$date", "timezone": "America/New_York"} => 56
            millis(-62135596800000) => 0
            millis(253402300799999) => 59
        "#,
    ),
    Table(
        "$week",
        r#"
            "$date" => 8
            {"$toDate": "2017-01-01"} => 1
            {"$toDate": "2016-01-01"} => 0
            "$n" => null
            "$absent" => null
            "$s" => !16006
            {"date": "$date", "timezone": "+14:00"} => 9
            millis(-62135596800000) => 0
            millis(253402300799999) => 52
            date(2023-01-01T00:00:00Z) => 1
        "#,
    ),
    Table(
        "$year",
        r#"
            "$date" => 2020
            ["$date"] => 2020
            ["$date", 1] => !40536
            "$oid" => 2020
            {"$literal": {"$timestamp": {"t": 86400, "i": 1}}} => 1970
            "$n" => null
            "x" => !16006
            {"$toDate": long(-62135596800001)} => 0
            "$absent" => null
            "$o" => !16006
            {"date": date(2020-12-31T23:00:00Z), "timezone": "+01"} => 2021
            {"date": date(2020-12-31T23:00:00Z), "timezone": "-0130"} => 2020
            millis(-62135596800000) => 1
            millis(253402300799999) => 9999
            [{"$literal": {"$timestamp": {"t": 0, "i": 0}}}] => 1970
            {} => !40539
        "#,
    ),
    Table(
        "$tsIncrement",
        r#"
            {"$literal": {"$timestamp": {"t": 4000000000, "i": 7}}} => long(7)
            "$absent" => null
            1 => !5687302
            "$n" => null
            "$date" => !5687302
            "$a" => !5687302
            {"$literal": {"$timestamp": {"t": 4294967295, "i": 4294967295}}} => long(4294967295)
            [1, 2] => !16020
        "#,
    ),
    Table(
        "$tsSecond",
        r#"
            {"$literal": {"$timestamp": {"t": 4000000000, "i": 7}}} => long(4000000000)
            "$n" => null
            "$date" => !5687301
            "$absent" => null
            "$i" => !5687301
            "$a" => !5687301
            {"$literal": {"$timestamp": {"t": 4294967295, "i": 4294967295}}} => long(4294967295)
            {"$literal": {"$timestamp": {"t": 0, "i": 7}}} => long(0)
            [1, 2] => !16020
        "#,
    ),
];
