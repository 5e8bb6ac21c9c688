//! Dates made and counted with.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$dateFromParts",
        r#"
            {"year": 2017, "month": 2, "day": 8, "hour": 12} => date(2017-02-08T12:00:00Z)
            {"isoWeekYear": 2017, "isoWeek": 6, "isoDayOfWeek": 3, "hour": 12} =>
                date(2017-02-08T12:00:00Z)
            {"year": 2016, "month": 12, "day": 31, "hour": 23, "minute": 46, "second": 12,
                "timezone": "America/New_York"} => date(2017-01-01T04:46:12Z)
            {"year": 2017, "month": 14, "day": 1} => date(2018-02-01T00:00:00Z)
            {"year": 2017, "month": 0, "day": 1} => date(2016-12-01T00:00:00Z)
            {"year": 2017, "month": 1, "day": -1} => date(2016-12-30T00:00:00Z)
            {"year": 2017, "second": 86400} => date(2017-01-02T00:00:00Z)
            {"isoWeekYear": 2020, "isoWeek": 54} => date(2021-01-04T00:00:00Z)
            {"year": "$n"} => null
            {"year": 2017, "day": "$absent"} => null
            {"year": 2017, "timezone": null} => null
            {"year": 2017.0} => date(2017-01-01T00:00:00Z)
            {"year": 2017.5} => !40515
            {"year": 2017, "month": "x"} => !40515
            {"year": 2017, "month": 32768} => !31034
            {"year": 10000} => !40523
            {"isoWeekYear": 0} => !31095
            {"month": 1} => !40516
            {"year": 2017, "isoWeek": 1} => !40489
            {"isoWeekYear": 2017, "day": 1} => !40525
            {"year": 2017, "timezone": 1} => !40517
            {"year": 2017, "x": 1} => !40518
            1 => !40519
            {"year": "$absent"} => null
            {"year": 2020, "month": "$n", "day": "x"} => null
            {"year": "x", "timezone": "$n"} => null
            {"year": "x"} => !40515
            {"year": "$a"} => !40515
            {"year": 2020.5} => !40515
            {"year": 2020.0, "month": long(2), "day": decimal(29)} => date(2020-02-29T00:00:00Z)
            {"year": 1} => millis(-62135596800000)
            {"year": 9999, "month": 12, "day": 31, "hour": 23, "minute": 59, "second": 59,
                "millisecond": 999} => millis(253402300799999)
            {"year": 0} => !40523
            {"isoWeekYear": 10000} => !31095
            {"year": 2020, "month": 14} => date(2021-02-01T00:00:00Z)
            {"year": 2020, "month": 0} => date(2019-12-01T00:00:00Z)
            {"year": 2020, "month": -1, "day": 0} => date(2019-10-31T00:00:00Z)
            {"year": 2021, "month": 2, "day": 29} => date(2021-03-01T00:00:00Z)
            {"year": 2020, "hour": 25, "minute": -1, "second": 61} => date(2020-01-02T01:00:01Z)
            {"year": 2020, "millisecond": -1} => date(2019-12-31T23:59:59.999Z)
            {"year": 2020, "second": 86400} => date(2020-01-02T00:00:00Z)
            {"year": 2020, "day": 32767} => date(2109-09-17T00:00:00Z)
            {"year": 2020, "day": 32768} => !31034
            {"year": 2020, "month": -32769} => !31034
            {"isoWeekYear": 2020, "isoWeek": 53, "isoDayOfWeek": 7} => date(2021-01-03T00:00:00Z)
            {"isoWeekYear": 2020, "isoWeek": 0} => date(2019-12-23T00:00:00Z)
            {"year": 2020, "month": 7, "hour": 12, "timezone": "America/New_York"} =>
                date(2020-07-01T16:00:00Z)
            {"year": 2020, "month": 3, "day": 8, "hour": 2, "minute": 30, "timezone":
                "America/New_York"} => date(2020-03-08T07:30:00Z)
            {"year": 2020, "hour": 12, "timezone": "+05:30"} => date(2020-01-01T06:30:00Z)
            {"year": 2020, "timezone": 1} => !40517
            {"year": 2020, "timezone": "Mars/City"} => !40485
            {"isoWeek": 1} => !40516
            {"year": 2020, "isoWeek": 1} => !40489
            {"isoWeekYear": 2020, "day": 1} => !40525
            {"year": 2020, "x": 1} => !40518
        "#,
    ),
    Table(
        "$dateAdd",
        r#"
            {"startDate": date(2020-12-31T12:10:05Z), "unit": "month", "amount": 2, "timezone":
                "UTC"} => date(2021-02-28T12:10:05Z)
            {"startDate": date(2020-12-31T12:10:05Z), "unit": "month", "amount": -1, "timezone":
                "UTC"} => date(2020-11-30T12:10:05Z)
            {"startDate": date(2020-02-29T00:00:00Z), "unit": "year", "amount": 1, "timezone":
                "UTC"} => date(2021-02-28T00:00:00Z)
            {"startDate": date(2020-11-30T00:00:00Z), "unit": "quarter", "amount": 1,
                "timezone": "UTC"} => date(2021-02-28T00:00:00Z)
            {"startDate": date(2020-12-31T12:10:05Z), "unit": "week", "amount": 1, "timezone":
                "UTC"} => date(2021-01-07T12:10:05Z)
            {"startDate": date(2020-12-31T12:10:05Z), "unit": "day", "amount": 1.0, "timezone":
                "UTC"} => date(2021-01-01T12:10:05Z)
            {"startDate": date(2020-12-31T23:59:59.999Z), "unit": "millisecond", "amount": 1,
                "timezone": "UTC"} => date(2021-01-01T00:00:00Z)
            {"startDate": date(1969-12-31T23:59:59.999Z), "unit": "second", "amount": -1,
                "timezone": "UTC"} => date(1969-12-31T23:59:58.999Z)
            {"startDate": date(2021-10-30T12:10:00Z), "unit": "day", "amount": 1, "timezone":
                "Europe/Paris"} => date(2021-10-31T13:10:00Z)
            {"startDate": date(2021-10-30T12:10:00Z), "unit": "hour", "amount": 24, "timezone":
                "Europe/Paris"} => date(2021-10-31T12:10:00Z)
            {"startDate": date(2021-01-31T23:30:00Z), "unit": "month", "amount": 1, "timezone":
                "+01:00"} => date(2021-02-28T23:30:00Z)
            {"startDate": date(2020-12-31T00:00:00Z), "unit": "second", "amount":
                long(9223372036854775807), "timezone": "UTC"} => !5976500
            {"startDate": date(2020-12-31T00:00:00Z), "unit": "millisecond", "amount":
                long(9223372036854775807), "timezone": "UTC"} => !5166406
            {"startDate": date(2020-12-31T00:00:00Z), "unit": "year", "amount": 400000000,
                "timezone": "UTC"} => !5166406
            {"startDate": date(2020-12-31T00:00:00Z), "unit": "year", "amount": 1.5, "timezone":
                "UTC"} => !5166405
            {"startDate": date(2020-12-31T00:00:00Z), "unit": "eon", "amount": 1, "timezone":
                "UTC"} => !9
            {"startDate": date(2020-12-31T00:00:00Z), "unit": "day", "amount": "1", "timezone":
                "UTC"} => !5166405
            {"startDate": date(2020-12-31T00:00:00Z), "unit": "day", "amount": null, "timezone":
                "UTC"} => null
            {"startDate": date(2020-12-31T00:00:00Z), "unit": "day", "amount": 1, "timezone":
                "Nowhere"} => !40485
            {"startDate": 1, "unit": "day", "amount": 1} => !5166403
            {"startDate": "$n", "unit": "day", "amount": 1} => null
            {"startDate": "$date", "unit": 1, "amount": 1} => !5166404
            {"startDate": "$date", "unit": "day"} => !5166402
            {"startDate": "$date", "unit": "day", "amount": 1, "x": 1} => !5166401
            1 => !5166400
            {"startDate": "$oid", "unit": "day", "amount": 1} => date(2020-03-01T16:06:24Z)
            {"startDate": "$absent", "unit": "day", "amount": 1} => null
            {"startDate": "$n", "unit": "$i", "amount": 1} => null
            {"startDate": "$n", "unit": "eon", "amount": 1} => !9
            {"startDate": "$date", "unit": "$n", "amount": 1} => null
            {"startDate": "$date", "unit": "day", "amount": "$absent"} => null
            {"startDate": "$date", "unit": "day", "amount": 1, "timezone": "$n"} => null
            {"startDate": "$a", "unit": "day", "amount": 1} => !5166403
            {"startDate": "$date", "unit": "day", "amount": "$nan"} => !5166405
            {"startDate": "$date", "unit": "day", "amount": 1.0} => date(2020-03-01T12:34:56.789Z)
            {"startDate": "$date", "unit": "day", "amount": decimal(-1)} =>
                date(2020-02-28T12:34:56.789Z)
            {"startDate": "$date", "unit": "year", "amount": 1} => date(2021-02-28T12:34:56.789Z)
            {"startDate": "$date", "unit": "quarter", "amount": -1} =>
                date(2019-11-29T12:34:56.789Z)
            {"startDate": millis(253402300799999), "unit": "millisecond", "amount": 1} =>
                millis(253402300800000)
            {"startDate": "$date", "unit": "day", "amount": 1, "timezone": 1} => !40517
            {"startDate": date(2020-03-07T12:00:00Z), "unit": "day", "amount": 1, "timezone":
                "America/New_York"} => date(2020-03-08T11:00:00Z)
            {"startDate": date(2020-03-07T12:00:00Z), "unit": "hour", "amount": 24, "timezone":
                "America/New_York"} => date(2020-03-08T12:00:00Z)
        "#,
    ),
    Table(
        "$dateSubtract",
        r#"
            {"startDate": "$date", "unit": "month", "amount": 1} => date(2020-01-29T12:34:56.789Z)
            {"startDate": "$date", "unit": "day", "amount": long(-9223372036854775808)} => !6045000
            {"startDate": "$n", "unit": "day", "amount": 1} => null
            {"startDate": "$absent", "unit": "day", "amount": 1} => null
            {"startDate": "$date", "unit": "day", "amount": "$n"} => null
            {"startDate": "$s", "unit": "day", "amount": 1} => !5166403
            {"startDate": "$date", "unit": "day", "amount": 0.5} => !5166405
            {"startDate": "$date", "unit": 1, "amount": 1} => !5166404
            {"startDate": "$date", "unit": "eon", "amount": 1} => !9
            {"startDate": "$date", "unit": "day", "amount": 1, "timezone": "Mars/City"} => !40485
            {"startDate": date(2020-03-09T11:00:00Z), "unit": "day", "amount": 1, "timezone":
                "America/New_York"} => date(2020-03-08T11:00:00Z)
            {"startDate": date(2020-03-08T11:00:00Z), "unit": "day", "amount": 1, "timezone":
                "America/New_York"} => date(2020-03-07T12:00:00Z)
            {"startDate": date(2021-03-31T00:00:00Z), "unit": "month", "amount": 1} =>
                date(2021-02-28T00:00:00Z)
            {"startDate": millis(-62135596800000), "unit": "millisecond", "amount": 1} =>
                millis(-62135596800001)
            {"startDate": "$date", "unit": "day"} => !5166402
            {"startDate": "$date", "unit": "day", "amount": 1, "x": 1} => !5166401
            1 => !5166400
        "#,
    ),
];
