//! Documents and their fields.

use super::check;

#[test]
fn documents_are_merged_and_changed() {
    check(&[
        (
            r#"{"$mergeObjects": ["$o", {"x": 2, "w": 3}]}"#,
            r#"{"x": 2, "y": {"z": "deep"}, "w": 3}"#,
        ),
        (r#"{"$mergeObjects": ["$n", "$absent"]}"#, "{}"),
        (r#"{"$mergeObjects": []}"#, "{}"),
        (r#"{"$mergeObjects": [[{"a": 1}, {"b": 2}]]}"#, r#"{"a": 1, "b": 2}"#),
        (r#"{"$mergeObjects": ["$o", 1]}"#, "!40400"),
        (r#"{"$getField": "i"}"#, "7"),
        (r#"{"$getField": {"field": "x", "input": "$o"}}"#, "1"),
        (r#"{"$getField": {"field": "no", "input": "$o"}}"#, "missing"),
        (r#"{"$getField": {"field": "x", "input": "$i"}}"#, "missing"),
        (r#"{"$getField": {"field": {"$literal": "$x"}, "input": {"$literal": {"$x": 1}}}}"#, "1"),
        (r#"{"$getField": {"field": 1, "input": "$o"}}"#, "!3041704"),
        (r#"{"$getField": {"input": "$o"}}"#, "!3041702"),
        (r#"{"$getField": {"field": "x"}}"#, "!3041703"),
        (
            r#"{"$setField": {"field": "x", "input": "$o", "value": "$i"}}"#,
            r#"{"x": 7, "y": {"z": "deep"}}"#,
        ),
        (
            r#"{"$setField": {"field": "a.b", "input": "$o", "value": 1}}"#,
            r#"{"x": 1, "y": {"z": "deep"}, "a.b": 1}"#,
        ),
        (
            r#"{"$setField": {"field": "x", "input": "$o", "value": "$$REMOVE"}}"#,
            r#"{"y": {"z": "deep"}}"#,
        ),
        (r#"{"$unsetField": {"field": "y", "input": "$o"}}"#, r#"{"x": 1}"#),
        (r#"{"$unsetField": {"field": "y", "input": "$n"}}"#, "null"),
        (r#"{"$setField": {"field": "x", "input": "$i", "value": 1}}"#, "!4161105"),
        (r#"{"$setField": {"field": "$s", "input": "$o", "value": 1}}"#, "!4161106"),
        (r#"{"$setField": {"field": 1, "input": "$o", "value": 1}}"#, "!4161107"),
        (r#"{"$setField": {"field": "a\u0000", "input": "$o", "value": 1}}"#, "!4161108"),
        (r#"{"$setField": {"field": "x", "input": "$o"}}"#, "!4161103"),
        (r#"{"$bsonSize": {"$literal": {}}}"#, "5"),
        (r#"{"$bsonSize": 1}"#, "!31393"),
    ]);
}
