//! Periods between dates and of dates.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$dateDiff",
        r#"
            {"startDate": date(2010-12-31T23:59:59Z), "endDate": date(2011-01-01T00:00:00Z),
                "unit": "year"} => long(1)
            {"startDate": date(2011-01-01T00:00:00Z), "endDate": date(2010-12-31T23:59:59Z),
                "unit": "quarter"} => long(-1)
            {"startDate": date(2010-01-31T00:00:00Z), "endDate": date(2011-03-01T00:00:00Z),
                "unit": "month"} => long(14)
            {"startDate": date(2021-01-02T00:00:00Z), "endDate": date(2021-01-03T00:00:00Z),
                "unit": "week"} => long(1)
            {"startDate": date(2021-01-02T00:00:00Z), "endDate": date(2021-01-03T00:00:00Z),
                "unit": "week", "startOfWeek": "Monday"} => long(0)
            {"startDate": date(2021-01-03T00:00:00Z), "endDate": date(2021-01-04T00:00:00Z),
                "unit": "week", "startOfWeek": "mon"} => long(1)
            {"startDate": date(2021-01-03T23:00:00Z), "endDate": date(2021-01-04T01:00:00Z),
                "unit": "day"} => long(1)
            {"startDate": date(2021-01-03T23:00:00Z), "endDate": date(2021-01-04T01:00:00Z),
                "unit": "day", "timezone": "America/New_York"} => long(0)
            {"startDate": date(1969-12-31T23:59:00Z), "endDate": date(1970-01-01T00:01:00Z),
                "unit": "hour"} => long(1)
            {"startDate": date(2020-11-01T04:30:00Z), "endDate": date(2020-11-01T07:30:00Z),
                "unit": "hour", "timezone": "America/New_York"} => long(3)
            {"startDate": date(2020-11-01T04:30:00Z), "endDate": date(2020-11-01T07:30:00Z),
                "unit": "minute", "timezone": "America/New_York"} => long(180)
            {"startDate": date(2020-01-01T00:00:00.900Z), "endDate":
                date(2020-01-01T00:00:01.100Z), "unit": "second"} => long(1)
            {"startDate": date(2020-01-01T00:00:00.900Z), "endDate":
                date(2020-01-01T00:00:01.100Z), "unit": "millisecond"} => long(200)
            {"startDate": date(2020-01-01T00:00:00Z), "endDate": date(2020-01-01T00:00:00Z),
                "unit": "eon"} => !5439014
            {"startDate": date(2020-01-01T00:00:00Z), "endDate": date(2020-01-01T00:00:00Z),
                "unit": "week", "startOfWeek": "x"} => !5439016
            {"startDate": date(2020-01-01T00:00:00Z), "endDate": date(2020-01-01T00:00:00Z),
                "unit": "week", "startOfWeek": 1} => !5439015
            {"startDate": date(2020-01-01T00:00:00Z), "endDate": date(2020-01-01T00:00:00Z),
                "unit": "week", "startOfWeek": null} => null
            {"startDate": date(2020-01-01T00:00:00Z), "endDate": date(2020-01-01T00:00:00Z),
                "unit": "day", "startOfWeek": 1} => long(0)
            {"startDate": date(2020-01-01T00:00:00Z), "endDate": date(2020-01-01T00:00:00Z),
                "unit": "day", "timezone": null} => null
            {"startDate": "$n", "endDate": "$date", "unit": "day"} => null
            {"startDate": "x", "endDate": "$date", "unit": "day"} => !5166307
            {"startDate": "$date", "endDate": "$date", "unit": 1} => !5439013
            {"endDate": "$date", "unit": "day"} => !5166303
            {"startDate": "$date", "unit": "day"} => !5166304
            {"startDate": "$date", "endDate": "$date"} => !5166305
            {"startDate": "$date", "x": 1} => !5166302
            1 => !5166301
            {"startDate": "$absent", "endDate": "$date", "unit": "day"} => null
            {"startDate": "$date", "endDate": "$n", "unit": "day"} => null
            {"startDate": "$date", "endDate": "$date", "unit": "$n"} => null
            {"startDate": "$date", "endDate": "$a", "unit": "day"} => !5166307
            {"startDate": millis(-62135596800000), "endDate": millis(253402300799999), "unit":
                "year"} => long(9998)
            {"startDate": millis(-62135596800000), "endDate": millis(253402300799999), "unit":
                "day"} => long(3652058)
            {"startDate": millis(-9223372036854775808), "endDate": millis(9223372036854775807),
                "unit": "millisecond"} => !5166308
            {"startDate": "$date", "endDate": "$date", "unit": "day", "timezone": 1} => !40517
            {"startDate": "$date", "endDate": "$date", "unit": "day", "timezone": "Mars/City"}
                => !40485
            {"startDate": "$oid", "endDate": "$date", "unit": "hour"} => long(-4)
            {"startDate": date(2021-01-31T00:00:00Z), "endDate": date(2021-02-01T00:00:00Z),
                "unit": "month"} => long(1)
        "#,
    ),
    Table(
        "$dateTrunc",
        r#"
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "year"} => date(2021-01-01T00:00:00Z)
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "quarter"} =>
                date(2021-01-01T00:00:00Z)
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "month"} => date(2021-03-01T00:00:00Z)
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "week"} => date(2021-03-14T00:00:00Z)
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "week", "startOfWeek": "FRI"} =>
                date(2021-03-19T00:00:00Z)
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "day"} => date(2021-03-20T00:00:00Z)
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "hour"} => date(2021-03-20T11:00:00Z)
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "hour", "binSize": 2} =>
                date(2021-03-20T10:00:00Z)
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "minute", "binSize": 15} =>
                date(2021-03-20T11:30:00Z)
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "second"} => date(2021-03-20T11:30:05Z)
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "millisecond", "binSize": 100} =>
                date(2021-03-20T11:30:05.100Z)
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "year", "binSize": 10} =>
                date(2020-01-01T00:00:00Z)
            {"date": date(1999-06-01T00:00:00Z), "unit": "year", "binSize": 10} =>
                date(1990-01-01T00:00:00Z)
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "month", "binSize": 6} =>
                date(2021-01-01T00:00:00Z)
            {"date": date(2020-05-18T14:10:30Z), "unit": "week", "binSize": 2, "timezone":
                "America/Los_Angeles", "startOfWeek": "Monday"} => date(2020-05-11T07:00:00Z)
            {"date": date(2021-03-20T11:30:05Z), "unit": "week", "binSize": 2, "timezone":
                "America/Los_Angeles", "startOfWeek": "Monday"} => date(2021-03-15T07:00:00Z)
            {"date": date(2019-01-08T06:12:03Z), "unit": "week", "binSize": 2, "timezone":
                "America/Los_Angeles", "startOfWeek": "Monday"} => date(2019-01-07T08:00:00Z)
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "day", "timezone": "Asia/Kolkata"}
                => date(2021-03-19T18:30:00Z)
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "day", "binSize": 0} => !5439018
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "day", "binSize": -1} => !5439018
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "day", "binSize": 1.5} => !5439017
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "day", "binSize": "1"} => !5439017
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "day", "binSize": null} => null
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "day", "binSize": 100000000001} =>
                !5439006
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "hour", "binSize":
                long(9223372036854775807)} => !5439002
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "eon"} => !5439014
            {"date": date(2021-03-20T11:30:05.123Z), "unit": "week", "startOfWeek": null} => null
            {"date": "$n", "unit": "day"} => null
            {"date": "x", "unit": "day"} => !5439012
            {"date": "$date", "unit": 1} => !5439013
            {"unit": "day"} => !5439009
            {"date": "$date"} => !5439010
            {"date": "$date", "x": 1} => !5439008
            1 => !5439007
            {"date": "$absent", "unit": "day"} => null
            {"date": "$n", "unit": "day", "binSize": "x"} => null
            {"date": "$date", "unit": "$n"} => null
            {"date": "$date", "unit": "$n", "binSize": 0} => !5439018
            {"date": "$date", "unit": "day", "timezone": "$n"} => null
            {"date": "$a", "unit": "day"} => !5439012
            {"date": "$date", "unit": "day", "timezone": 1} => !40517
            {"date": "$date", "unit": "day", "timezone": "Mars/City"} => !40485
            {"date": "$date", "unit": "week", "startOfWeek": 1} => !5439015
            {"date": "$date", "unit": "week", "startOfWeek": "x"} => !5439016
            {"date": "$date", "unit": "week", "startOfWeek": "SATURDAY"} =>
                date(2020-02-29T00:00:00Z)
            {"date": "$date", "unit": "hour", "timezone": "Asia/Kolkata"} =>
                date(2020-02-29T12:30:00Z)
            {"date": date(2020-11-01T06:30:00Z), "unit": "day", "timezone": "America/New_York"}
                => date(2020-11-01T04:00:00Z)
            {"date": millis(-62135596800000), "unit": "year", "binSize": 100} =>
                millis(-62167219200000)
            {"date": millis(253402300799999), "unit": "day"} => millis(253402214400000)
            {"date": millis(-9223372036854775808), "unit": "hour"} => !5439000
        "#,
    ),
];
