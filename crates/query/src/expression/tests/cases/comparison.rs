//! Comparison, truth, conditions.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$cmp",
        r#"
            [1] => !16020
            [[1, 2], [1, 3]] => -1
            [2, 1] => 1
            [{"a": 1}, {"a": 1.0}] => 0
            ["$n", "$absent"] => 1
            ["$a", "$empty"] => 1
            ["$nan", double(-Infinity)] => -1
            ["$nan", decimal(NaN)] => 0
            [long(9223372036854775807), double(9223372036854775808)] => -1
            [2147483647, long(2147483647)] => 0
            ["ä", "z"] => 1
            ["$t", "$date"] => -1
            [1, 2, 3] => !16020
            1 => !16020
        "#,
    ),
    Table(
        "$eq",
        r#"
            [{"$toHashedIndexKey": 7}, {"$toHashedIndexKey": 7.5}] => true
            [{"$toHashedIndexKey": "$absent"}, {"$toHashedIndexKey": null}] => true
            [{"$toHashedIndexKey": decimal(9007199254740993)},
                {"$toHashedIndexKey": long(9007199254740993)}] => true
            [1, 1.0] => true
            [decimal(1.0), long(1)] => true
            ["$n", null] => true
            ["$absent", null] => false
            ["$absent", "$other"] => true
            ["$nan", "$nan"] => true
            ["$i", 7.0] => true
            ["$a", [3, 1, 2]] => true
            ["$a", 3] => false
            [[1, 2], [2, 1]] => false
            [{"a": 1, "b": 2}, {"b": 2, "a": 1}] => false
            [0, double(-0.0)] => true
            [long(9007199254740993), double(9007199254740992)] => false
            [long(9223372036854775807), double(9223372036854775808)] => false
            ["ß", "SS"] => false
            ["\u00e9", "e\u0301"] => false
            ["$oid", "5e5a8c000000000000000000"] => false
            ["$t", 1] => false
            [1] => !16020
        "#,
    ),
    Table(
        "$gt",
        r#"
            ["$absent", {"$minKey": 1}] => true
            ["a", 99] => true
            ["$n", "$absent"] => true
            ["$a", 99] => true
            ["$a", [3, 1]] => true
            ["$nan", double(-Infinity)] => false
            [long(9223372036854775807), 9.2e18] => true
            [true, "$a"] => true
            ["ä", "z"] => true
            [1] => !16020
        "#,
    ),
    Table(
        "$gte",
        r#"
            [{"$rand": {}}, 0] => true
            [2, 2] => true
            ["$n", null] => true
            ["$absent", "$n"] => false
            ["$a", "$a"] => true
            ["$nan", "$nan"] => true
            [2147483647, long(2147483648)] => false
            ["é", "é"] => true
            ["x", 5] => true
            [1] => !16020
        "#,
    ),
    Table(
        "$lt",
        r#"
            [{"$rand": {}}, 1] => true
            ["$absent", null] => true
            ["$nan", -1e300] => true
            ["$n", 0] => true
            ["$absent", "$other"] => false
            ["$empty", "$a"] => true
            [double(-Infinity), long(-9223372036854775808)] => true
            ["a", "ä"] => true
            ["$date", "$t"] => false
            [1] => !16020
        "#,
    ),
    Table(
        "$lte",
        r#"
            [3, 2] => false
            ["$n", "$absent"] => false
            ["$absent", "$n"] => true
            ["$a", [3, 1, 2, 0]] => true
            ["$nan", double(-Infinity)] => true
            [2147483647, 2147483647] => true
            ["$o", "$a"] => true
            ["z", "ä"] => true
            [1] => !16020
        "#,
    ),
    Table(
        "$ne",
        r#"
            [{"$toHashedIndexKey": "$o"}, {"$toHashedIndexKey": "$a"}] => true
            ["a", "b"] => true
            [{"$toHashedIndexKey": [1]}, {"$toHashedIndexKey": 1}] => true
            ["$n", "$absent"] => true
            ["$absent", "$other"] => false
            ["$a", [3, 1, 2]] => false
            ["$nan", "$nan"] => false
            [2147483647, long(2147483647)] => false
            ["$t", 1] => true
            [1] => !16020
        "#,
    ),
    Table(
        "$and",
        r#"
            [] => true
            [1, "x", {}] => true
            [0, {"$divide": ["$i", 0]}] => false
            ["$n", {"$divide": ["$i", 0]}] => false
            ["$absent"] => false
            "$t" => true
            ["$nan", "$empty", ""] => true
            [decimal(0), 1] => false
            [double(-0.0)] => false
            ["$o", "$date", "$oid"] => true
        "#,
    ),
    Table(
        "$not",
        r#"
            ["$n"] => true
            [""] => false
            "$t" => false
            "$absent" => true
            "$n" => true
            "$nan" => false
            ["$empty"] => false
            [0] => true
            [decimal(0)] => true
            [1, 2] => !16020
        "#,
    ),
    Table(
        "$or",
        r#"
            [] => false
            ["$absent", null, 0, "$t"] => true
            [1, {"$divide": ["$i", 0]}] => true
            ["$n"] => false
            ["$absent", "$empty"] => true
            ["$nan"] => true
            [decimal(0.0), double(-0.0), false] => false
            "$t" => true
        "#,
    ),
    Table(
        "$cond",
        r#"
            [true, 1, {"$divide": ["$i", 0]}] => 1
            {"if": "$absent", "then": 1, "else": "$$REMOVE"} => missing
            {"then": 1, "else": 2} => !17080
            {"if": 1, "else": 2} => !17081
            {"if": 1, "then": 2} => !17082
            {"if": 1, "then": 2, "else": 3, "or": 4} => !17083
            [1, 2] => !16020
            ["$n", 1, 2] => 2
            ["$absent", 1, 2] => 2
            ["$empty", "yes", "no"] => "yes"
            ["$nan", 1, 2] => 1
            ["", 1, 2] => 1
            [true, "$absent", 2] => missing
            [false, {"$divide": ["$i", 0]}, "$a"] => [3, 1, 2]
            {"if": {"$gt": ["$i", 5]}, "then": "ß", "else": 0} => "ß"
            {"$add": [1, 2]} => !17083
            [] => !16020
        "#,
    ),
    Table(
        "$ifNull",
        r#"
            ["$absent", "$n", "$i"] => 7
            ["$absent", "$other"] => missing
            ["$i"] => !1257300
            ["$i", {"$divide": ["$i", 0]}] => 7
            ["$n", "$absent"] => missing
            ["$absent", null] => null
            ["$n", "$n", "$n", "ß"] => "ß"
            ["$nan", 1] => double(NaN)
            ["$empty", 1] => []
            [false, 1] => false
            [] => !1257300
            1 => !1257300
        "#,
    ),
    Table(
        "$switch",
        r#"
            {"branches": [{"case": 0, "then": 1}, {"case": 1, "then": 2}]} => 2
            {"branches": [{"case": 0, "then": 1}], "default": "d"} => "d"
            {"branches": [{"case": 0, "then": 1}]} => !40069
            {"branches": []} => !40068
            {"branches": 1} => !40061
            {"branches": [1]} => !40062
            {"branches": [{"then": 1}]} => !40064
            {"branches": [{"case": 1}]} => !40065
            {"branches": [{"case": 1, "then": 1, "or": 1}]} => !40063
            {"other": 1} => !40067
            1 => !40060
            {"branches": [{"case": "$n", "then": 1}, {"case": "$absent", "then": 2}]} => !40066
            {"branches": [{"case": "$n", "then": 1}], "default": "$absent"} => missing
            {"branches": [{"case": "$nan", "then": "ß"}]} => "ß"
            {"branches": [{"case": "$empty", "then": "$a"}]} => [3, 1, 2]
            {"branches": [{"case": true, "then": 1}, {"case": {"$divide": ["$i", 0]}, "then":
                2}]} => 1
            {"branches": [{"case": false, "then": 1}]} => !40069
            {"branches": [{"case": null, "then": 1}, {"case": 0, "then": 1}]} => !40069
            {"default": 1} => !40068
        "#,
    ),
];
