//! An expression for each element; arrays and documents turned into each other.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$filter",
        r#"
            {"input": "$a", "cond": {"$gt": ["$$this", 1]}} => [3, 2]
            {"input": "$a", "as": "x", "cond": "$$x", "limit": 1} => [3]
            {"input": "$a", "cond": 1, "limit": 0} => !327392
            {"input": 1, "cond": 1} => !28651
            {"cond": 1} => !28648
            {"input": []} => !28650
            {"input": "$n", "cond": true} => null
            {"input": "$absent", "cond": true} => null
            {"input": "$s", "cond": true} => !28651
            {"input": "$o", "cond": true} => !28651
            {"input": "$mixed", "cond": "$$this"} => [1, "x", [2], {"b": 4}]
            {"input": "$a", "cond": {"$divide": [1, {"$subtract": ["$$this", 1]}]}} => !2
            {"input": "$a", "cond": true, "limit": "$n"} => [3, 1, 2]
            {"input": "$a", "cond": true, "limit": 2.0} => [3, 1]
            {"input": "$a", "cond": true, "limit": 1.5} => !327391
            {"input": "$a", "cond": true, "limit": "x"} => !327391
            {"input": "$a", "cond": true, "limit": long(4294967296)} => !327391
            {"input": "$a", "cond": true, "limit": 2147483647} => [3, 1, 2]
            {"input": [], "cond": true, "limit": 0} => []
            {"input": "$a", "as": "ä", "cond": {"$eq": ["$$ä", 1]}} => [1]
            {"input": "$a", "as": 1, "cond": true} => !9
            {"input": "$a", "as": "", "cond": true} => !9
            {"input": "$a", "cond": true, "x": 1} => !28647
            1 => !28646
        "#,
    ),
    Table(
        "$map",
        r#"
            {"input": "$a", "in": {"$multiply": ["$$this", 2]}} => [6, 2, 4]
            {"input": "$docs", "as": "d", "in": "$$d.b"} => [1, [2, 3], null, [7], null]
            {"input": "$a", "as": "x", "in": {"$map": {"input": "$a", "as": "y", "in":
                {"$subtract": ["$$x", "$$y"]}}}} => [[0, 2, 1], [-2, 0, -1], [-1, 1, 0]]
            {"input": "$n", "in": 1} => null
            {"input": 1, "in": 1} => !16883
            {"in": 1} => !16880
            {"input": []} => !16882
            {"input": [], "in": 1, "x": 1} => !16879
            {"input": [], "as": "Big", "in": 1} => !9
            {"input": "$absent", "in": 1} => null
            {"input": "$s", "in": 1} => !16883
            {"input": "$empty", "in": {"$divide": ["$i", 0]}} => []
            {"input": "$a", "in": "$absent"} => [null, null, null]
            {"input": "$mixed", "in": {"$type": "$$this"}} => ["int", "string", "null", "array",
                "object"]
            {"input": "$a", "as": "a", "in": ["$$a", "$i"]} => [[3, 7], [1, 7], [2, 7]]
            {"input": "$a", "as": 1, "in": 1} => !9
            1 => !16878
        "#,
    ),
    Table(
        "$reduce",
        r#"
            {"input": "$a", "initialValue": 10, "in": {"$add": ["$$value", "$$this"]}} => 16
            {"input": "$a", "initialValue": [], "in": {"$concatArrays": ["$$value",
                ["$$this"]]}} => [3, 1, 2]
            {"input": "$n", "initialValue": 0, "in": 1} => null
            {"input": 1, "initialValue": 0, "in": 1} => !40080
            {"input": [], "in": 1} => !40078
            {"input": "$absent", "initialValue": 0, "in": 1} => null
            {"input": "$s", "initialValue": 0, "in": 1} => !40080
            {"input": "$empty", "initialValue": "$absent", "in": 1} => missing
            {"input": "$a", "initialValue": "ß", "in": {"$concat": ["$$value", {"$toString":
                "$$this"}]}} => "ß312"
            {"input": "$a", "initialValue": {"sum": 0}, "in": {"sum": {"$add": ["$$value.sum",
                "$$this"]}}} => {"sum": 6}
            {"input": [[1], [2, 3]], "initialValue": [], "in": {"$concatArrays": ["$$value",
                "$$this"]}} => [1, 2, 3]
            {"initialValue": 0, "in": 1} => !40077
            {"input": [], "initialValue": 0} => !40079
            {"input": [], "initialValue": 0, "in": 1, "x": 1} => !40076
            1 => !40075
        "#,
    ),
    Table(
        "$sortArray",
        r#"
            {"input": "$a", "sortBy": 1} => [1, 2, 3]
            {"input": "$a", "sortBy": -1} => [3, 2, 1]
            {"input": [{"k": 2, "v": 1}, {"k": 1}, {"k": 2, "v": 0}], "sortBy": {"k": -1, "v":
                1}} => [{"k": 2, "v": 0}, {"k": 2, "v": 1}, {"k": 1}]
            {"input": "$i", "sortBy": 1} => !2942504
            {"input": [], "sortBy": 2} => !2942506
            {"input": "$n", "sortBy": 1} => null
            {"input": "$absent", "sortBy": 1} => null
            {"input": "$s", "sortBy": 1} => !2942504
            {"input": "$mixed", "sortBy": 1} => [null, 1, "x", {"b": 4}, [2]]
            {"input": "$mixed", "sortBy": -1.0} => [[2], {"b": 4}, "x", 1, null]
            {"input": ["z", "ä", "a", "Z"], "sortBy": 1} => ["Z", "a", "z", "ä"]
            {"input": [double(NaN), 1, -1], "sortBy": 1} => [double(NaN), -1, 1]
            // Arrays are compared as wholes, other than $sort does.
            {"input": [{"k": [3, 1]}, {"k": [2]}], "sortBy": {"k": 1}} => [{"k": [2]}, {"k": [3,
                1]}]
            {"input": [{"k": {"l": 2}}, {"k": {"l": 1}}, {}], "sortBy": {"k.l": 1}} => [{},
                {"k": {"l": 1}}, {"k": {"l": 2}}]
            {"input": [{"k": [9, 2]}, {"k": [0, 1]}], "sortBy": {"k.1": 1}} => [{"k": [0, 1]},
                {"k": [9, 2]}]
            {"input": "$a", "sortBy": 0} => !2942506
            {"input": "$a", "sortBy": "x"} => !2942507
            {"input": "$a", "sortBy": {}} => !2942505
            {"input": "$a", "sortBy": {"k": 2}} => !2942505
            {"input": "$a", "sortBy": {"k..l": 1}} => !2942505
            {"input": "$a"} => !2942503
            {"sortBy": 1} => !2942502
            {"input": "$a", "sortBy": 1, "x": 1} => !2942501
            1 => !2942500
        "#,
    ),
    Table(
        "$zip",
        r#"
            {"inputs": ["$a", ["x", "y"]]} => [[3, "x"], [1, "y"]]
            {"inputs": ["$a", ["x"]], "useLongestLength": true, "defaults": [0, "-"]} => [[3,
                "x"], [1, "-"], [2, "-"]]
            {"inputs": ["$a", "$n"]} => null
            {"inputs": []} => !34465
            {"inputs": ["$a"], "defaults": [1]} => !34466
            {"inputs": ["$i"]} => !34468
            {"inputs": ["$absent", "$i"]} => null
            {"inputs": ["$i", "$n"]} => !34468
            {"inputs": ["$s"]} => !34468
            {"inputs": ["$a"]} => [[3], [1], [2]]
            {"inputs": ["$empty", "$a"]} => []
            {"inputs": ["$a", "$empty"], "useLongestLength": true} => [[3, null], [1, null], [2,
                null]]
            {"inputs": [["ß"], ["$absent"]]} => [["ß", null]]
            {"inputs": ["$a", "$a"], "useLongestLength": true, "defaults": [{"$divide": ["$i",
                0]}, 0]} => [[3, 3], [1, 1], [2, 2]]
            {"inputs": ["$a", ["x"]], "useLongestLength": true, "defaults": [0]} => !34467
            {"inputs": ["$a"], "useLongestLength": 1} => !34463
            {"inputs": "$a"} => !34461
            {"inputs": ["$a"], "defaults": 1} => !34462
            {"inputs": ["$a"], "x": 1} => !34464
            {} => !34465
            "$a" => !34460
        "#,
    ),
    Table(
        "$arrayToObject",
        r#"
            [[["a", 1], ["b", 2], ["a", 3]]] => {"a": 3, "b": 2}
            [[{"k": "a", "v": "$i"}]] => {"a": 7}
            "$empty" => {}
            "$i" => !40386
            "$a" => !40398
            [[["a"]]] => !40397
            [[[1, 2]]] => !40395
            [[{"k": 1, "v": 2}]] => !40394
            [[{"k": 1}]] => !40392
            [[{"k": 1, "x": 1}]] => !40393
            [[["a", 1], {"k": "b", "v": 2}]] => !40396
            [[{"k": "b", "v": 2}, ["a", 1]]] => !40391
            [[["a\u0000b", 1]]] => !4940400
            "$n" => null
            "$absent" => null
            "$s" => !40386
            "$o" => !40386
            [[["ß", 1], ["", "$n"]]] => {"ß": 1, "": null}
            [[{"k": "a", "v": "$absent"}]] => !40392
            [[{"v": 1, "k": "a"}]] => {"a": 1}
            [[["a", 1], 5]] => !40396
            [[{"k": "a", "v": 1}, 5]] => !40391
            [[{"k": "a", "v": 1}, {"k": "a", "v": 2}]] => {"a": 2}
            [[["a", 1, 2]]] => !40397
            [[{"k": "a\u0000", "v": 1}]] => !4940401
            [["a", 1]] => !40398
            [[["a.b", 1], [{"$literal": "$c"}, 2]]] => {"a.b": 1, "$c": 2}
        "#,
    ),
    Table(
        "$objectToArray",
        r#"
            "$o" => [{"k": "x", "v": 1}, {"k": "y", "v": {"z": "deep"}}]
            "$n" => null
            "$i" => !40390
            "$absent" => null
            "$a" => !40390
            "$s" => !40390
            {} => []
            {"ß": ["$n"]} => [{"k": "ß", "v": [null]}]
            ["$o", "$o"] => !16020
        "#,
    ),
];
