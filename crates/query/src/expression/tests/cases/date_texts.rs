//! Dates and texts.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$dateFromString",
        r#"
            {"dateString": "06-15-2018", "format": "%m-%d-%Y"} => date(2018-06-15T00:00:00Z)
            {"dateString": "15-06-2018", "format": "%d-%m-%Y"} => date(2018-06-15T00:00:00Z)
            {"dateString": "2018 7 June", "format": "%Y %d %B"} => date(2018-06-07T00:00:00Z)
            {"dateString": "2018 7 jun", "format": "%Y %d %b"} => date(2018-06-07T00:00:00Z)
            {"dateString": "Day 060 of 2020", "format": "Day %j of %Y"} =>
                date(2020-02-29T00:00:00Z)
            {"dateString": "5, 10, 2012", "format": "%u, %V, %G"} => date(2012-03-09T00:00:00Z)
            {"dateString": "2020-01-02 03:04:05.6+01:00", "format": "%Y-%m-%d %H:%M:%S.%L%z"} =>
                date(2020-01-02T02:04:05.6Z)
            {"dateString": "2020-01-02 03:04:05.81", "format": "%Y-%m-%d %H:%M:%S.%L"} =>
                date(2020-01-02T03:04:05.81Z)
            {"dateString": "2020-01-02 03:04:05.081", "format": "%Y-%m-%d %H:%M:%S.%L"} =>
                date(2020-01-02T03:04:05.081Z)
            {"dateString": "2020-01-02 03:04:05.", "format": "%Y-%m-%d %H:%M:%S.%L"} => !241
            {"dateString": "2020-01-02 03:04:05.0812", "format": "%Y-%m-%d %H:%M:%S.%L"} => !241
            {"dateString": "2020-01-02 03:04 -90", "format": "%Y-%m-%d %H:%M %Z"} =>
                date(2020-01-02T04:34:00Z)
            {"dateString": "100% 2020-01-02", "format": "100%% %Y-%m-%d"} =>
                date(2020-01-02T00:00:00Z)
            {"dateString": "2020-13-01", "format": "%Y-%m-%d"} => !241
            {"dateString": "2020-02-30", "format": "%Y-%m-%d"} => !241
            {"dateString": "2020-02", "format": "%Y-%m"} => !241
            {"dateString": "2020-02-01 10", "format": "%Y-%m-%d %H"} => !241
            {"dateString": "2020-02-01x", "format": "%Y-%m-%d"} => !241
            {"dateString": "", "format": "%Y-%m-%d"} => !241
            {"dateString": "2020", "format": "%Q"} => !18536
            {"dateString": "2020", "format": "%"} => !18535
            {"dateString": "2017-02-08T12:10:40.787", "timezone": "America/New_York"} =>
                date(2017-02-08T17:10:40.787Z)
            {"dateString": "2017-02-08", "timezone": "-05:00"} => date(2017-02-08T05:00:00Z)
            {"dateString": "2017-02-08T00:00Z", "timezone": "Europe/London"} => !241
            {"dateString": "2017-02-08T00:00+01:00", "timezone": "UTC"} =>
                date(2017-02-07T23:00:00Z)
            {"dateString": "2017-02-08", "timezone": "Nowhere"} => !40485
            {"dateString": "$n", "onNull": "-"} => "-"
            {"dateString": "$absent"} => null
            {"dateString": "xyz", "onError": "$s"} => "Straße"
            {"dateString": 7, "onError": "$i"} => 7
            {"dateString": 7} => !241
            {"dateString": "2020-01-01", "format": null} => null
            {"dateString": "2020-01-01", "timezone": null} => null
            {"dateString": "2020-01-01", "format": 1} => !40684
            {"dateString": null, "format": 1} => !40684
            {"format": "%Y"} => !40542
            {"dateString": "x", "y": 1} => !40541
            "x" => !40540
            {"dateString": "2020-02-29"} => date(2020-02-29T00:00:00Z)
            {"dateString": "2020/2/29"} => date(2020-02-29T00:00:00Z)
            {"dateString": "20200229"} => date(2020-02-29T00:00:00Z)
            {"dateString": "20200229T123456"} => date(2020-02-29T12:34:56Z)
            {"dateString": "2020-060"} => date(2020-02-29T00:00:00Z)
            {"dateString": "2020-W09-6"} => date(2020-02-29T00:00:00Z)
            {"dateString": "02/29/2020"} => date(2020-02-29T00:00:00Z)
            {"dateString": "29.02.2020 12:34"} => date(2020-02-29T12:34:00Z)
            {"dateString": "29-02-2020"} => date(2020-02-29T00:00:00Z)
            {"dateString": "29 February 2020"} => date(2020-02-29T00:00:00Z)
            {"dateString": "29-Feb-2020"} => date(2020-02-29T00:00:00Z)
            {"dateString": "February 29th, 2020 1:34 pm"} => date(2020-02-29T13:34:00Z)
            {"dateString": "Sat, 29 Feb 2020 12:34:56 GMT"} => date(2020-02-29T12:34:56Z)
            {"dateString": "Sat Feb 29 2020 12am"} => date(2020-02-29T00:00:00Z)
            {"dateString": "2020-02-29 12:34:56.789123"} => date(2020-02-29T12:34:56.789Z)
            {"dateString": "2020-02-29T12:34:56,5Z"} => date(2020-02-29T12:34:56.5Z)
            {"dateString": "2020-02-29T12:34:56+0530"} => date(2020-02-29T07:04:56Z)
            {"dateString": "2020-02-29 12:34 EST"} => date(2020-02-29T17:34:00Z)
            {"dateString": "2020-02-29 12:34 GMT+2"} => date(2020-02-29T10:34:00Z)
            {"dateString": "tomorrow"} => !241
            {"dateString": "2020"} => !241
            {"dateString": "12:34"} => !241
            {"dateString": "2020-02-30"} => !241
            {"dateString": "2020-13-01"} => !241
            {"dateString": "20-02-2020x"} => !241
            {"dateString": "2020-02-29T25:00"} => !241
            {"dateString": "2020-02-29 12"} => !241
            {"dateString": "2020-02-29T12:60"} => !241
            {"dateString": "2020-02-29 12:34 Europe/Berlin"} => !241
            {"dateString": "29 02 2020"} => !241
            {"dateString": ""} => !241
            {"dateString": "é"} => !241
            {"dateString": "2020-02-29T"} => !241
            {"dateString": "2020-366-"} => !241
            {"dateString": "2020-W54-1"} => !241
            {"dateString": "+"} => !241
            {"dateString": "2020-02-29 12:34 +"} => !241
            {"dateString": "$absent", "onNull": "none"} => "none"
            {"dateString": "$a"} => !241
            {"dateString": "$a", "onError": "no"} => "no"
            {"dateString": "9999-12-31T23:59:59.999Z"} => millis(253402300799999)
            {"dateString": "0001-01-01T00:00:00Z"} => millis(-62135596800000)
            {"dateString": "٢٠٢٠-٠١-٠١"} => !241
            {"dateString": "2020-07-01T12:00", "timezone": "America/New_York"} =>
                date(2020-07-01T16:00:00Z)
            {"dateString": "2020-07-01T12:00", "timezone": "$n"} => null
            {"dateString": "2020-07-01T12:00", "timezone": "$n", "onError": 0} => null
            {"dateString": "2020-07-01T12:00", "timezone": "$absent"} => null
            {"dateString": "2020-07-01T12:00Z", "timezone": "+00:00"} => date(2020-07-01T12:00:00Z)
            {"dateString": "2020-07-01T12:00Z", "timezone": "GMT"} => !241
            {"dateString": "$n", "timezone": "Mars/City"} => !40485
            {"dateString": "$n", "format": "%"} => !18535
            {"dateString": "$n", "format": 1} => !40684
            {"dateString": "x", "format": 1, "onError": 0} => !40684
            {"dateString": "2020-02-29T23:59:59.999"} => date(2020-02-29T23:59:59.999Z)
            {"dateString": "2020-02-29T24:00:00"} => !241
            {"dateString": "2020-02-29 24:00", "format": "%Y-%m-%d %H:%M"} => !241
            {"dateString": "2020-02-29T23:60:00"} => !241
            {"dateString": "2020-02-29T23:59:60"} => !241
        "#,
    ),
    Table(
        "$dateToString",
        r#"
            {"date": "$date"} => "2020-02-29T12:34:56.789Z"
            {"date": "$date", "format": "%d.%m.%Y %H:%M:%S,%L %j %u %w %V %G %U %b %B %%"} =>
                "29.02.2020 12:34:56,789 060 6 7 09 2020 08 Feb February %"
            {"date": "$date", "timezone": "+05:30"} => "2020-02-29T18:04:56.789"
            {"date": "$date", "timezone": "+05:30", "format": "%H:%M %z %Z"} => "18:04 +0530 330"
            {"date": "$date", "timezone": "America/New_York", "format": "%H%z|%Z"} => "07-0500|-300"
            {"date": {"$toDate": "2020-07-01"}, "timezone": "America/New_York", "format": "%d
                %H%z"} => "30 20-0400"
            {"date": "$n", "onNull": "-"} => "-"
            {"date": "$n", "onNull": "$$REMOVE"} => missing
            {"date": "$absent"} => null
            {"date": "$date", "format": "$n", "onNull": 1} => null
            {"date": "$date", "timezone": "$n"} => null
            {"date": "$date", "format": "ü%Y"} => "ü2020"
            {"date": "$date", "format": "%"} => !18535
            {"date": "$date", "format": "%Q"} => !18536
            {"date": "$n", "format": {"$concat": ["%", "Q"]}} => !18536
            {"date": "$date", "format": 1} => !18533
            {"date": "$date", "timezone": "Asia/Nowhere"} => !40485
            {"date": "$date", "timezone": 5} => !40517
            {"date": {"$toDate": long(253402300800000)}} => !18537
            {"format": "%Y"} => !18628
            {"date": "$date", "x": 1} => !18534
            1 => !18629
            {"date": "$absent", "onNull": "none"} => "none"
            {"date": "$n", "onNull": "$absent"} => missing
            {"date": "$s"} => !16006
            {"date": "$a", "onNull": 0} => !16006
            {"date": "$date", "timezone": "+00:00"} => "2020-02-29T12:34:56.789Z"
            {"date": "$date", "timezone": "GMT"} => "2020-02-29T12:34:56.789"
            {"date": "$date", "timezone": "$absent"} => null
            {"date": "$date", "format": "$n"} => null
            {"date": "$date", "format": "$i"} => !18533
            {"date": "$date", "format": "%d.%m. – %H Uhr"} => "29.02. – 12 Uhr"
            {"date": "$date", "format": "%z %Z", "timezone": "Asia/Kolkata"} => "+0530 330"
            {"date": "$date", "format": "%z %Z", "timezone": "-0130"} => "-0130 -90"
            {"date": "$date", "format": "%b %B %%"} => "Feb February %"
            {"date": millis(-62135596800000)} => "0001-01-01T00:00:00.000Z"
            {"date": millis(253402300799999)} => "9999-12-31T23:59:59.999Z"
            {"date": millis(253402300800000)} => !18537
            {"date": millis(-62167219200001)} => !18537
            {"date": millis(9223372036854775807)} => !18537
            {"date": "$oid"} => "2020-02-29T16:06:24.000Z"
        "#,
    ),
];
