//! Accumulators that are expressions.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$avg",
        r#"
            "$a" => double(2.0)
            "$empty" => null
            ["$dec", 1] => decimal(1.05)
            "$n" => null
            "$absent" => null
            ["$n", "$absent", 4] => double(4)
            ["x", true, 4] => double(4)
            "$s" => null
            ["$a", 4] => double(4)
            [[1, 2, [30]]] => 1.5
            [1, double(Infinity)] => double(Infinity)
            [double(Infinity), double(-Infinity)] => double(NaN)
            ["$nan", 1] => double(NaN)
            [2147483647, 2147483647] => double(2147483647)
            [long(9223372036854775807), long(9223372036854775807)] => double(9223372036854775807)
            [decimal(1.5), decimal(NaN)] => decimal(NaN)
            [] => null
        "#,
    ),
    Table(
        "$max",
        r#"
            ["$i", "$d", "$n"] => 7
            "$mixed" => [2]
            "$n" => null
            "$absent" => null
            ["$absent", "$n", 3] => 3
            ["$i", "$s", "$t"] => true
            ["$i", "$s"] => "Straße"
            ["$a", 99] => [3, 1, 2]
            [1, long(1), double(1)] => 1
            ["$nan", -1] => -1
            [double(Infinity), long(9223372036854775807)] => double(Infinity)
            [] => null
        "#,
    ),
    Table(
        "$min",
        r#"
            "$a" => 1
            "$empty" => null
            "$n" => null
            "$absent" => null
            ["$absent", "$n", 3] => 3
            ["$i", "$s", "$t"] => 7
            ["$s", "$a"] => "Straße"
            [long(1), 1, double(1)] => long(1)
            ["$nan", double(-Infinity)] => double(NaN)
            [long(-9223372036854775808), -1] => long(-9223372036854775808)
            [] => null
        "#,
    ),
    Table(
        "$stdDevPop",
        r#"
            [[2, 4, 4, 4, 5, 5, 7, 9]] => double(2.0)
            "$s" => null
            "$n" => null
            "$absent" => null
            [1, "$n", "$absent", "x", 3] => double(1)
            "$a" => 0.816496580927726
            5 => double(0)
            [2147483647, 2147483645] => double(1)
            ["$nan", 1] => double(NaN)
            double(Infinity) => double(NaN)
            [decimal(1), 3] => double(1)
        "#,
    ),
    Table(
        "$stdDevSamp",
        r#"
            [[1]] => null
            "$n" => null
            "$absent" => null
            [1, "$n", "x", 3] => 1.4142135623730951
            "$a" => double(1)
            5 => null
            [2147483647, 2147483645] => 1.4142135623730951
            ["$nan", 1] => double(NaN)
            [decimal(1), 3] => 1.4142135623730951
        "#,
    ),
    Table(
        "$sum",
        r#"
            "$a" => 6
            ["$a", 1] => 1
            "$mixed" => 1
            "$absent" => 0
            ["$i", "$l"] => long(5000000007)
            "$n" => 0
            ["$n", "$absent", 4] => 4
            ["x", true, "$date"] => 0
            "$d" => 2.5
            [[1, [2]]] => 1
            [2147483647, 1] => long(2147483648)
            [long(9223372036854775807), 1] => double(9223372036854775808)
            // Here what rounding loses is kept, other than by $add.
            [1, 1e300, -1e300] => double(1)
            [1.5, decimal(1)] => decimal(2.50000000000000)
            ["$nan", 1] => double(NaN)
            [double(Infinity), 1] => double(Infinity)
            [decimal(NaN), 1] => decimal(NaN)
            [] => 0
        "#,
    ),
    Table(
        "$firstN",
        r#"
            {"n": 2, "input": "$a"} => [3, 1]
            {"n": 3, "input": "$mixed"} => [1, "x", null]
            1 => !5787801
            {"n": 1, "input": "$n"} => !5788200
            {"n": 1, "input": "$absent"} => !5788200
            {"n": 1, "input": "$i"} => !5788200
            {"n": "$n", "input": "$a"} => !5787902
            {"n": "2", "input": "$a"} => !5787902
            {"n": 1.5, "input": "$a"} => !5787903
            {"n": 2.0, "input": "$a"} => [3, 1]
            {"n": -1, "input": "$a"} => !5787908
            {"n": "$nan", "input": "$a"} => !5787903
            {"n": long(9223372036854775807), "input": "$a"} => [3, 1, 2]
            {"n": 1, "input": "$empty"} => []
            {"n": 1} => !5787907
            {"input": "$a"} => !5787906
            {"n": 1, "input": "$a", "x": 1} => !5787901
        "#,
    ),
    Table(
        "$lastN",
        r#"
            {"n": 2, "input": "$a"} => [1, 2]
            {"n": 9, "input": "$a"} => [3, 1, 2]
            {"n": 2, "input": "$mixed"} => [[2], {"b": 4}]
            {"n": 1, "input": "$n"} => !5788200
            {"n": 1, "input": "$absent"} => !5788200
            {"n": 1, "input": "$s"} => !5788200
            {"n": 0, "input": "$a"} => !5787908
            {"n": "$absent", "input": "$a"} => !5787902
            {"n": long(9223372036854775807), "input": "$a"} => [3, 1, 2]
            {"n": double(Infinity), "input": "$a"} => !5787903
            {} => !5787906
        "#,
    ),
    Table(
        "$maxN",
        r#"
            {"n": 2, "input": "$a"} => [3, 2]
            {"n": 1} => !5787907
            {"n": 9, "input": "$mixed"} => [[2], {"b": 4}, "x", 1]
            {"n": 2, "input": ["$nan", 1, double(Infinity)]} => [double(Infinity), 1]
            {"n": 1, "input": "$n"} => !5788200
            {"n": 1, "input": "$absent"} => !5788200
            {"n": 1, "input": "$o"} => !5788200
            {"n": 0, "input": "$a"} => !5787908
            {"n": long(9223372036854775807), "input": "$a"} => [3, 2, 1]
            {"n": double(Infinity), "input": "$a"} => !5787903
            1 => !5787900
        "#,
    ),
    Table(
        "$minN",
        r#"
            {"n": {"$add": [1, 1]}, "input": "$a"} => [1, 2]
            {"n": 9, "input": "$mixed"} => [1, "x", {"b": 4}, [2]]
            {"n": 1, "input": "$n"} => !5788200
            {"n": 0, "input": "$a"} => !5787908
            {"n": "$absent", "input": "$a"} => !5787902
            {"n": 2, "input": [1, "$nan", 0]} => [double(NaN), 0]
            {"n": 1, "input": "$absent"} => !5788200
            {"n": 1, "input": "$t"} => !5788200
            {"n": long(9223372036854775807), "input": "$a"} => [1, 2, 3]
            {"n": double(NaN), "input": "$a"} => !5787903
            1 => !5787900
        "#,
    ),
    Table(
        "$median",
        r#"
            {"input": ["$i", "$d", 4], "method": "approximate"} => double(4)
            {"input": "$empty", "method": "approximate"} => null
            1 => !7436201
            {"input": "$n", "method": "approximate"} => null
            {"input": "$absent", "method": "approximate"} => null
            {"input": "$s", "method": "approximate"} => null
            {"input": ["x", true, 4, null], "method": "approximate"} => double(4)
            {"input": 7, "method": "approximate"} => double(7)
            {"input": "$a", "method": "approximate"} => double(2)
            {"input": [1, 2, 3, 4], "method": "approximate"} => double(2)
            {"input": "$nan", "method": "approximate"} => double(NaN)
            {"input": [double(NaN), 5], "method": "approximate"} => double(5)
            {"input": [double(-Infinity), 1, double(Infinity)], "method": "approximate"} =>
                double(1)
            {"input": long(9223372036854775807), "method": "approximate"} =>
                double(9223372036854775807)
            {"input": decimal(1.5), "method": "approximate"} => 1.5
            {"input": "$a", "method": "exact"} => !2
            {"input": "$a", "method": 1} => !14
            {"input": "$a"} => !40414
            {"method": "approximate"} => !40414
            {"input": "$a", "method": "approximate", "p": [0.5]} => !40415
        "#,
    ),
    Table(
        "$percentile",
        r#"
            {"input": "$a", "p": [0.5, 1], "method": "approximate"} => [double(2), double(3)]
            {"input": "$mixed", "p": [0], "method": "approximate"} => [double(1)]
            {"input": "$i", "p": [0.5], "method": "approximate"} => [double(7)]
            {"input": "$s", "p": [0.5], "method": "approximate"} => [null]
            {"input": "$a", "p": "$$list", "method": "approximate"} => !7750303
            1 => !7436200
            {"input": "$n", "p": [0.5, 0.9], "method": "approximate"} => [null, null]
            {"input": "$absent", "p": [0.5], "method": "approximate"} => [null]
            {"input": "$o", "p": [0.5], "method": "approximate"} => [null]
            {"input": "$nan", "p": [0.5], "method": "approximate"} => [double(NaN)]
            {"input": [1, 2, 3, 4], "p": [0, 0.25, 0.26, 1], "method": "approximate"} =>
                [double(1), double(1), double(2), double(4)]
            {"input": "$a", "p": [], "method": "approximate"} => !7750301
            {"input": "$a", "p": 0.5, "method": "approximate"} => !7750301
            {"input": "$a", "p": ["x"], "method": "approximate"} => !7750302
            {"input": "$a", "p": [1.1], "method": "approximate"} => !7750303
            {"input": "$a", "p": [-0.1], "method": "approximate"} => !7750303
            {"input": "$a", "p": "$a", "method": "approximate"} => !7750300
            {"input": "$a", "method": "approximate"} => !40414
            {"input": long(9223372036854775807), "p": [0.5], "method": "approximate"} =>
                [double(9223372036854775807)]
        "#,
    ),
];
