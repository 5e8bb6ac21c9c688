//! Documents and their fields.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$bsonSize",
        r#"
            {"$literal": {}} => 5
            1 => !31393
            "$n" => null
            "$absent" => null
            "$a" => !31393
            "$s" => !31393
            {"ä": 1} => 13
            {"a": "ß"} => 15
        "#,
    ),
    Table(
        "$getField",
        r#"
            "i" => 7
            {"field": "x", "input": "$o"} => 1
            {"field": "no", "input": "$o"} => missing
            {"field": "x", "input": "$i"} => missing
            {"field": {"$literal": "$x"}, "input": {"$literal": {"$x": 1}}} => 1
            {"field": 1, "input": "$o"} => !3041704
            {"input": "$o"} => !3041702
            {"field": "x"} => !3041703
            {"field": "$n", "input": "$o"} => !3041704
            {"field": "$absent", "input": "$o"} => !3041704
            {"field": "x", "input": "$n"} => null
            {"field": "x", "input": "$absent"} => missing
            {"field": "b", "input": "$docs"} => missing
            {"field": "y.z", "input": "$o"} => missing
            {"field": {"$concat": ["x", ""]}, "input": "$o"} => 1
            {"field": "ä", "input": {"ä": "ß"}} => "ß"
            {"field": "a.b", "input": {"$setField": {"field": "a.b", "input": {}, "value": 1}}} => 1
            {"$literal": "i"} => 7
            {"$concat": ["", "i"]} => 7
            {} => !3041702
            {"field": "x", "input": "$o", "x": 1} => !3041701
            1 => !3041704
            "absent" => missing
        "#,
    ),
    Table(
        "$mergeObjects",
        r#"
            ["$o", {"x": 2, "w": 3}] => {"x": 2, "y": {"z": "deep"}, "w": 3}
            ["$n", "$absent"] => {}
            [] => {}
            [[{"a": 1}, {"b": 2}]] => {"a": 1, "b": 2}
            ["$o", 1] => !40400
            "$o" => {"x": 1, "y": {"z": "deep"}}
            "$n" => {}
            "$absent" => {}
            ["$o", "$n", {"y": "$absent"}] => {"x": 1, "y": {"z": "deep"}}
            ["$o", {"y": null}] => {"x": 1, "y": null}
            [["$o", "$n"]] => {"x": 1, "y": {"z": "deep"}}
            ["$o", ["$o"]] => !40400
            "$s" => !40400
            "$docs" => !40400
            [{"ä": 1}, {"ä": "ß"}] => {"ä": "ß"}
        "#,
    ),
    Table(
        "$setField",
        r#"
            {"field": "x", "input": "$o", "value": "$i"} => {"x": 7, "y": {"z": "deep"}}
            {"field": "a.b", "input": "$o", "value": 1} => {"x": 1, "y": {"z": "deep"}, "a.b": 1}
            {"field": "x", "input": "$o", "value": "$$REMOVE"} => {"y": {"z": "deep"}}
            {"field": "x", "input": "$i", "value": 1} => !4161105
            {"field": "$s", "input": "$o", "value": 1} => !4161108
            {"field": 1, "input": "$o", "value": 1} => !4161107
                        {"field": "x", "input": "$o"} => !4161103
            {"field": "x", "input": "$n", "value": 1} => null
            {"field": "x", "input": "$absent", "value": 1} => null
            {"field": "x", "input": "$n", "value": {"$divide": ["$i", 0]}} => null
            {"field": "x", "input": "$a", "value": 1} => !4161105
            {"field": "x", "input": "$o", "value": "$absent"} => {"y": {"z": "deep"}}
            {"field": "x", "input": "$o", "value": "$n"} => {"x": null, "y": {"z": "deep"}}
            {"field": "ä", "input": {}, "value": "ß"} => {"ä": "ß"}
            {"field": {"$literal": "$x"}, "input": {}, "value": 1} => {"$x": 1}
            {"field": {"$concat": ["a", "b"]}, "input": {}, "value": 1} => !4161106
            {"field": "$x", "input": {}, "value": 1} => !4161108
            {"field": null, "input": {}, "value": 1} => !4161107
            {"field": "a\u0000", "input": {}, "value": 1} => !9534700
            {"input": {}, "value": 1} => !4161102
            {"field": "x", "value": 1} => !4161109
            {"field": "x", "input": {}, "value": 1, "x": 1} => !4161101
            {} => !4161102
            1 => !4161100
        "#,
    ),
    Table(
        "$unsetField",
        r#"
            {"field": "y", "input": "$o"} => {"x": 1}
            {"field": "y", "input": "$n"} => null
            {"field": "ä", "input": {"ä": 1, "b": 2}} => {"b": 2}
            {"field": "no", "input": "$o"} => {"x": 1, "y": {"z": "deep"}}
            {"field": "y", "input": "$absent"} => null
            {"field": "x", "input": "$i"} => !4161105
            {"field": "x", "input": "$a"} => !4161105
            {"field": 1, "input": "$o"} => !4161107
            {"field": "$x", "input": "$o"} => !4161108
            {"field": "x", "input": "$o", "value": 1} => !4161101
            {"field": "x"} => !4161109
            {"input": "$o"} => !4161102
            1 => !4161100
        "#,
    ),
];
