//! Variables, literals, and what stands alone.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$const",
        r#"
            "$i" => "$i"
            null => null
            ["$a"] => ["$a"]
            double(NaN) => double(NaN)
            {"$nothing": 1} => {"$nothing": 1}
        "#,
    ),
    Table(
        "$expr",
        r#"
            "$i" => 7
            "$n" => null
            "$absent" => missing
            ["$i", "$absent"] => [7, null]
            {"$add": ["$i", 1]} => 8
            {"$nonsense": 1} => !168
            "$nan" => double(NaN)
        "#,
    ),
    Table(
        "$function",
        r#"
            {"body": "function(a, b) { return a + b; }", "args": ["$i", 1], "lang": "js"} => 8.0
            {"body": {"$code": "(a) => a.x"}, "args": ["$o"], "lang": "js"} => 1.0
            {"body": "function(a) { return {a: a}; }", "args": ["$l"], "lang": "js"} => {"a": long(5000000000)}
            {"body": "function(a) { return a; }", "args": ["$a"], "lang": "js"} => [3, 1, 2]
            {"body": "function(a) { return a; }", "args": ["$n"], "lang": "js"} => null
            {"body": "function(a) { return a; }", "args": ["$absent"], "lang": "js"} => null
            {"body": "function(a) { return a.toUpperCase(); }", "args": ["$s"], "lang": "js"} => "STRASSE"
            {"body": "return a;", "args": [], "lang": "js"} => !139
            {"body": "function() { throw new Error('x'); }", "args": [], "lang": "js"} => !139
            {"body": "function(", "args": [], "lang": "js"} => !139
            {"body": "x", "args": 1, "lang": "js"} => !31266
            {"body": "x", "args": "$n", "lang": "js"} => !31266
            {"body": "x", "args": "$absent", "lang": "js"} => !31266
            {"body": "x", "args": [], "lang": "py"} => !31419
            {"body": "x", "args": [], "lang": 1} => !31419
            {"body": "x", "args": []} => !31418
            {"body": "x", "lang": "js"} => !31263
            {"body": "$s", "args": [], "lang": "js"} => !31432
            {"body": 1, "args": [], "lang": "js"} => !31262
            {} => !31261
            null => !31260
        "#,
    ),
    Table(
        "$let",
        r#"
            {"vars": {"x": "$i"}, "in": {"$add": ["$$x", 1]}} => 8
            {"vars": {"given": 1, "y": "$$given"}, "in": ["$$given", "$$y"]} => [1, 42]
            {"vars": {"x": "$o"}, "in": "$$x.y.z"} => "deep"
            {"vars": {"x": {"q": [{"r": 1}]}}, "in": "$$x.q.r"} => [1]
            {"vars": {"CURRENT": "$o"}, "in": "$x"} => 1
            {"vars": {"x": "$absent"}, "in": "$$x"} => missing
            {"vars": {"X": 1}, "in": 1} => !9
            {"vars": {"x-y": 1}, "in": 1} => !9
            {"in": 1} => !16876
            {"vars": {}} => !16877
            1 => !16874
            {"vars": {}, "in": 1, "out": 2} => !16875
            {"vars": {"x": "$n"}, "in": "$$x"} => null
            {"vars": {"x": "$a"}, "in": {"$size": "$$x"}} => 3
            {"vars": {}, "in": "$$ROOT.i"} => 7
            {"vars": {"ä": "$nan"}, "in": "$$ä"} => double(NaN)
            {"vars": {"x": 1}, "in": "$$y"} => !17276
            {"vars": {"ROOT": 1}, "in": 1} => !9
            {"vars": 1, "in": 1} => !10065
            {"vars": {"": 1}, "in": 1} => !9
            {"vars": {"x": {"$add": [1, "x"]}}, "in": 1} => !14
        "#,
    ),
    Table(
        "$literal",
        r#"
            "$i" => "$i"
            {"$add": [1, 2]} => {"$add": [1, 2]}
            null => null
            [{"$add": [1, "x"]}] => [{"$add": [1, "x"]}]
            double(NaN) => double(NaN)
            "ß" => "ß"
        "#,
    ),
    Table(
        "$meta",
        r#"
            "textScore" => !40218
            "x" => !17308
            1 => !17307
            null => !17307
            ["textScore"] => !17307
            "$absent" => !17308
        "#,
    ),
    Table(
        "$rand",
        r#"
            {"a": 1} => !3040501
            1 => !10065
            null => !10065
            [1] => !3040501
            "$absent" => !10065
        "#,
    ),
    Table(
        "$toHashedIndexKey",
        r#"
            1 => long(5902408780260971510)
            decimal(2.9) => long(848411777775835583)
            "$nan" => long(4854801880128277513)
            null => long(2338878944348059895)
            "$absent" => long(2338878944348059895)
        "#,
    ),
];
