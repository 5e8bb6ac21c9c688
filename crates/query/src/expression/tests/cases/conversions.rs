//! The short forms of `$convert`.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$toBool",
        r#"
            "false" => true
            0 => false
            "$n" => null
            "$absent" => null
            "" => true
            "$a" => true
            "$o" => true
            "$date" => true
            "$oid" => true
            "$nan" => true
            double(-0.0) => false
            double(Infinity) => true
            decimal(0.00) => false
            decimal(NaN) => true
            long(0) => false
            2147483647 => true
            "$t" => true
            binary(AAEC, 00) => true
            {"$literal": {"$minKey": 1}} => true
            [1, 2] => !50723
            [] => !50723
        "#,
    ),
    Table(
        "$toDate",
        r#"
            "2020-01-02" => date(2020-01-02T00:00:00Z)
            "2020-01-02T03:04:05Z" => date(2020-01-02T03:04:05Z)
            "2020-01-02T03:04:05.678" => date(2020-01-02T03:04:05.678Z)
            "2020-01-02 03:04:05+0100" => date(2020-01-02T02:04:05Z)
            "2020-01-02T03:04:05-02:00" => date(2020-01-02T05:04:05Z)
            "tomorrow" => !241
            "$oid" => date(2020-02-29T16:06:24Z)
            {"$toObjectId": "7fffffff0000000000000000"} => date(2038-01-19T03:14:07Z)
            {"$toObjectId": "800000000000000000000000"} => date(1901-12-13T20:45:52Z)
            {"$toObjectId": "ffffffff0000000000000000"} => date(1969-12-31T23:59:59Z)
            86400000.5 => date(1970-01-02T00:00:00Z)
            1 => !241
            "$n" => null
            "$absent" => null
            "$t" => !241
            "$a" => !241
            long(0) => date(1970-01-01T00:00:00Z)
            long(-1) => date(1969-12-31T23:59:59.999Z)
            long(9223372036854775807) => {"$date": {"$numberLong": "9223372036854775807"}}
            double(1e300) => !241
            "$nan" => !241
            double(-1.9) => date(1969-12-31T23:59:59.999Z)
            decimal(1.9) => date(1970-01-01T00:00:00.001Z)
            decimal(NaN) => !241
            decimal(1E+30) => !241
            "$date" => date(2020-02-29T12:34:56.789Z)
            {"$literal": {"$timestamp": {"t": 86400, "i": 7}}} => date(1970-01-02T00:00:00Z)
            "" => !241
            ["$date", 1] => !50723
        "#,
    ),
    Table(
        "$toDecimal",
        r#"
            "1.50" => decimal(1.50)
            "x" => !241
            "$n" => null
            "$absent" => null
            "$t" => decimal(1)
            false => decimal(0)
            "$i" => decimal(7)
            2.5 => decimal(2.50000000000000)
            0.1 => decimal(0.100000000000000)
            long(9223372036854775807) => decimal(9223372036854775807)
            "$nan" => decimal(NaN)
            double(-Infinity) => decimal(-Infinity)
            "$date" => decimal(1582979696789)
            "Infinity" => decimal(Infinity)
            "NaN" => decimal(NaN)
            "-1E+3" => decimal(-1E+3)
            "1E9999" => !241
            "1E-7000" => !241
            "0E-7000" => decimal(0E-6176)
            "" => !241
            " 1" => !241
            "0x1F" => !241
            "$oid" => !241
            "$a" => !241
            [1, 2] => !50723
        "#,
    ),
    Table(
        "$toDouble",
        r#"
            "1e3" => double(1000.0)
            "1e999" => !241
            " 1" => !241
            "$i" => double(7.0)
            "$n" => null
            "$absent" => null
            "$t" => double(1)
            "$l" => double(5000000000)
            long(9223372036854775807) => double(9223372036854775808)
            "$date" => double(1582979696789)
            "$nan" => double(NaN)
            decimal(0.1) => 0.1
            decimal(1E+309) => !241
            decimal(-1E+309) => !241
            decimal(1E-400) => !241
            decimal(0E-400) => double(0)
            decimal(Infinity) => double(Infinity)
            decimal(NaN) => double(NaN)
            "-5.5" => -5.5
            ".5" => 0.5
            "Infinity" => double(Infinity)
            "-inf" => double(-Infinity)
            "NaN" => double(NaN)
            "1e-400" => !241
            "1e-310" => !241
            "0e-400" => double(0)
            "0x1F" => !241
            "1.5x" => !241
            "" => !241
            "١" => !241
            "$a" => !241
            "$oid" => !241
            [1, 2] => !50723
        "#,
    ),
    Table(
        "$toInt",
        r#"
            "42" => 42
            2.9 => 2
            -2.9 => -2
            true => 1
            "$dec" => 1
            "$absent" => null
            "1.5" => !241
            "x" => !241
            "$l" => !241
            "$nan" => !241
            "$a" => !241
            "$date" => !241
            "$n" => null
            "$i" => 7
            false => 0
            "-2147483648" => -2147483648
            "2147483648" => !241
            2147483647.9 => !241
            2147483647.0 => 2147483647
            -2147483648.0 => -2147483648
            long(2147483648) => !241
            long(-2147483648) => -2147483648
            decimal(-2.9) => -2
            decimal(2147483648) => !241
            decimal(NaN) => !241
            decimal(Infinity) => !241
            double(Infinity) => !241
            "+5" => 5
            "" => !241
            " 5" => !241
            "5 " => !241
            "1e3" => !241
            "0x1F" => !241
            "٣" => !241
            "$oid" => !241
            "$o" => !241
            [1, 2] => !50723
        "#,
    ),
    Table(
        "$toLong",
        r#"
            1 => long(1)
            "$date" => long(1582979696789)
            9223372036854775808.0 => !241
            "$n" => null
            "$absent" => null
            "$t" => long(1)
            "9223372036854775807" => long(9223372036854775807)
            "-9223372036854775808" => long(-9223372036854775808)
            "9223372036854775808" => !241
            -9223372036854775808.0 => long(-9223372036854775808)
            decimal(9223372036854775807.9) => long(9223372036854775807)
            decimal(9223372036854775808) => !241
            "$nan" => !241
            double(-Infinity) => !241
            -2.9 => long(-2)
            "2.5" => !241
            "$oid" => !241
            "$a" => !241
            [1, 2] => !50723
        "#,
    ),
    Table(
        "$toObjectId",
        r#"
            "5e5a8c00000000000000000F" => {"$oid": "5e5a8c00000000000000000f"}
            "5e5a" => !241
            "5e5a8c00000000000000000+" => !241
            1 => !241
            "$n" => null
            "$absent" => null
            "$oid" => {"$oid": "5e5a8c000000000000000000"}
            "5e5a8c00000000000000000g" => !241
            "5e5a8c0000000000000000ß" => !241
            "" => !241
            "$date" => !241
            long(9223372036854775807) => !241
            "$nan" => !241
            "$a" => !241
            ["$oid", 1] => !50723
        "#,
    ),
    Table(
        "$toString",
        r#"
            1.0 => "1"
            2.5 => "2.5"
            1e21 => "1e+21"
            1e-7 => "1e-07"
            "$nan" => "NaN"
            "$dec" => "1.10"
            "$oid" => "5e5a8c000000000000000000"
            "$date" => "2020-02-29T12:34:56.789Z"
            true => "true"
            "$a" => !241
            "$n" => null
            "$absent" => null
            "$s" => "Straße"
            7 => "7"
            long(-9223372036854775808) => "-9223372036854775808"
            false => "false"
            0.1 => "0.1"
            0.30000000000000004 => "0.30000000000000004"
            -0.0 => "-0"
            double(Infinity) => "Infinity"
            double(-Infinity) => "-Infinity"
            decimal(1E+3) => "1E+3"
            decimal(-0.00) => "-0.00"
            decimal(NaN) => "NaN"
            decimal(Infinity) => "Infinity"
            date(1970-01-01T00:00:00Z) => "1970-01-01T00:00:00.000Z"
            {"$date": {"$numberLong": "9223372036854775807"}} => !18537
            // Bytes are given in base64, UUIDs as they are written.
            binary(/+8=, 00) => "/+8="
            binary(hn3uUsMxSE6S0cVkebjmfg==, 04) => "867dee52-c331-484e-92d1-c56479b8e67e"
            binary(AAEC, 04) => "AAEC"
            "$o" => !241
            {"$literal": {"$timestamp": {"t": 1, "i": 1}}} => !241
            {"$literal": {"$symbol": "x"}} => !241
            {"$regularExpression": {"pattern": "a", "options": ""}} => !241
            {"$literal": {"$minKey": 1}} => !241
            [1, 2] => !50723
        "#,
    ),
    Table(
        "$toUUID",
        r#"
            "867dee52-c331-484e-92d1-c56479b8e67e" => binary(hn3uUsMxSE6S0cVkebjmfg==, 04)
            "867dee52" => !241
            "$n" => null
            "$absent" => null
            "867DEE52-C331-484E-92D1-C56479B8E67E" => binary(hn3uUsMxSE6S0cVkebjmfg==, 04)
            binary(hn3uUsMxSE6S0cVkebjmfg==, 04) => binary(hn3uUsMxSE6S0cVkebjmfg==, 04)
            binary(AAEC, 00) => !241
            "867dee52c331484e92d1c56479b8e67e" => !241
            "ß67dee52-c331-484e-92d1-c56479b8e67e" => !241
            1 => !241
            "$a" => !241
            double(NaN) => !241
            ["x", 1] => !50723
        "#,
    ),
];
