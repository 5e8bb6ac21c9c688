//! `$convert` with all its options; types.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$convert",
        r#"
            {"input": binary(hn3uUsMxSE6S0cVkebjmfg==, 04), "to": "string", "format": "uuid"} =>
                "867dee52-c331-484e-92d1-c56479b8e67e"
            {"input": binary(hn3uUsMxSE6S0cVkebjmfg==, 04), "to": "string", "format": "auto"} =>
                "867dee52-c331-484e-92d1-c56479b8e67e"
            {"input": binary(/+8=, 00), "to": "string", "format": "auto"} => "/+8="
            {"input": binary(/+8=, 00), "to": "string", "format": "base64url"} => "_-8"
            {"input": binary(/+8=, 00), "to": "string", "format": "hex"} => "FFEF"
            {"input": binary(/+8=, 00), "to": "string", "format": "utf8"} => !241
            {"input": binary(/+8=, 00), "to": "string", "format": "uuid"} => !241
            {"input": "ß", "to": "binData", "format": "utf8"} => binary(w58=, 00)
            {"input": "/+8=", "to": "binData", "format": "base64"} => binary(/+8=, 00)
            {"input": "_-8", "to": "binData", "format": "base64url"} => binary(/+8=, 00)
            {"input": "ffEF", "to": "binData", "format": "hex"} => binary(/+8=, 00)
            {"input": "ffE", "to": "binData", "format": "hex"} => !241
            {"input": "/+8", "to": "binData", "format": "base64"} => !241
            {"input": "x", "to": "binData", "format": "rot13"} => !4341125
            {"input": "x", "to": "binData"} => !4341115
            {"input": "zz", "to": {"type": "binData", "subtype": 0}, "format": "hex", "onError":
                0} => 0
            {"input": "x", "to": {"type": "binData", "subtype": 300}, "format": "hex"} => !4341107
            {"input": "x", "to": {"subtype": 0}} => !9
            {"input": binary(hn3uUsMxSE6S0cVkebjmfg==, 04), "to": "binData"} => !241
            {"input": binary(hn3uUsMxSE6S0cVkebjmfg==, 04), "to": "bool"} => true
            {"input": 258, "to": "binData", "byteOrder": "little"} => binary(AgEAAA==, 00)
            {"input": 258, "to": "binData", "byteOrder": "big"} => binary(AAABAg==, 00)
            {"input": binary(AgEAAA==, 00), "to": "int", "byteOrder": "little"} => 258
            {"input": binary(/w==, 00), "to": "long", "byteOrder": "big"} => long(-1)
            {"input": binary(AgEA, 00), "to": "int", "byteOrder": "little"} => !241
            {"input": 2.5, "to": "binData", "byteOrder": "big"} => binary(QAQAAAAAAAA=, 00)
            {"input": binary(QAQAAAAAAAA=, 00), "to": "double", "byteOrder": "big"} => 2.5
            {"input": "x", "to": "int", "onError": "no"} => "no"
            {"input": "$n", "to": "int", "onNull": 0} => 0
            {"input": "7", "to": 16} => 7
            {"input": "7", "to": "$n"} => null
            {"input": "7", "to": "nothing"} => !2
            {"input": "7", "to": true} => !9
            {"input": "7"} => !9
            1 => !9
            {"input": "$absent", "to": "int", "onNull": "none"} => "none"
            {"input": "$n", "to": "$n", "onNull": "none"} => "none"
            {"input": "7", "to": "$absent", "onNull": "none"} => null
            {"input": "$n", "to": "nothing"} => !2
            {"input": "$n", "to": "int", "onNull": "$absent"} => missing
            {"input": "$i", "to": "double", "onError": {"$divide": ["$i", 0]}} => double(7)
            {"input": "x", "to": "int", "onError": {"$divide": ["$i", 0]}} => !2
            {"input": "x", "to": "nothing", "onError": 0} => !2
            {"input": "x", "to": "array"} => !241
            {"input": "$a", "to": "array", "onError": "no"} => "no"
            {"input": 1, "to": "missing", "onError": "no"} => "no"
            {"input": 1, "to": "timestamp", "onError": "no"} => "no"
            {"input": 1, "to": 0, "onError": "no"} => "no"
            {"input": 1, "to": -1, "onError": "no"} => "no"
            {"input": 1, "to": -2} => !9
            {"input": 1, "to": 100} => !9
            {"input": 1, "to": 1.5} => !9
            {"input": 1, "to": {"type": null}} => !9
            {"input": 1, "to": {"type": "int", "subtype": 300}} => 1
            {"input": 1, "to": {"type": "int", "other": 300}} => 1
            {"input": 1, "to": 2} => "1"
            {"input": 1, "to": 1.0} => double(1)
            {"input": "x", "to": {"type": "binData", "subtype": "newUUID"}, "format": "uuid"} =>
                !4341108
            {"input": "x", "to": {"type": "binData", "subtype": 1.5}, "format": "hex"} => !4341106
            {"input": "x", "to": {"type": "binData", "subtype": 9}, "format": "hex"} => !4341107
            {"input": "x", "to": {"type": "binData", "subtype": -1}, "format": "hex"} => !4341107
            {"input": "YWI=", "to": "binData", "format": "auto"} => !241
            {"input": "YWI=", "to": "binData", "format": "$n"} => !4341115
            {"input": "YWI=", "to": "binData", "format": 1} => !4341114
            {"input": binary(YWI=, 00), "to": "string"} => !4341115
            {"input": binary(YWI=, 00), "to": "string", "format": "utf8"} => "ab"
            {"input": binary(w58=, 00), "to": "string", "format": "utf8"} => "ß"
            {"input": "867dee52-c331-484e-92d1-c56479b8e67e", "to": "binData", "format": "uuid"}
                => !241
            {"input": "YWI=", "to": {"type": "binData", "subtype": 4}, "format": "base64"} => !241
            {"input": "$nan", "to": "int", "onError": 0} => 0
            {"input": "$nan", "to": "date"} => !241
            {"input": long(9223372036854775807), "to": "int", "onError": "large"} => "large"
            {"input": "$t", "to": "date"} => !241
            {"input": "$date", "to": "int"} => !241
            {"input": "$oid", "to": "date"} => date(2020-02-29T16:06:24Z)
            {"input": 1, "to": "int", "x": 1} => !9
        "#,
    ),
    Table(
        "$type",
        r#"
            "$absent" => "missing"
            "$dec" => "decimal"
            "$n" => "null"
            "$i" => "int"
            "$l" => "long"
            "$d" => "double"
            "$nan" => "double"
            "$t" => "bool"
            "$date" => "date"
            "$oid" => "objectId"
            "$a" => "array"
            "$o" => "object"
            "$s" => "string"
            {"$literal": {"$timestamp": {"t": 1, "i": 1}}} => "timestamp"
            {"$literal": {"$minKey": 1}} => "minKey"
            {"$literal": {"$maxKey": 1}} => "maxKey"
            {"$literal": {"$symbol": "x"}} => "symbol"
            {"$literal": {"$code": "x"}} => "javascript"
            {"$regularExpression": {"pattern": "a", "options": ""}} => "regex"
            binary(AAEC, 00) => "binData"
            long(9223372036854775807) => "long"
            [1, 2] => !16020
        "#,
    ),
    Table(
        "$isNumber",
        r#"
            "$l" => true
            "x" => false
            "$n" => false
            "$absent" => false
            "$i" => true
            "$nan" => true
            "$dec" => true
            double(Infinity) => true
            long(9223372036854775807) => true
            "$t" => false
            "$a" => false
            ["$a", "$i"] => !16020
        "#,
    ),
];
