//! The values that paths reach, case by case.

use super::*;
use crate::document::DocumentBuf;
use crate::extended_json;

fn parse(json: &str) -> DocumentBuf {
    extended_json::parse(json).expect("test data is extended JSON")
}

/// Checks the values that `visit_leaves` reaches, in its order, as JSON with `absent` for `None`.
fn check(path: &str, json: &str, expected: &str) {
    let document = parse(json);
    let mut reached = Vec::new();
    let stopped = Path::new(path).visit_leaves(document.view(), &mut |leaf| {
        reached.push(leaf.value.map_or("absent".to_owned(), |value| {
            let mut text = String::new();
            extended_json::write_value(value, extended_json::Form::Relaxed, &mut text);
            text
        }));
        false
    });
    assert!(!stopped);
    assert_eq!(reached.join(" "), expected, "{path} of {json}");
}

#[test]
fn through_documents() {
    check("a", r#"{"a": 1}"#, "1");
    check("a", r#"{"b": 1}"#, "absent");
    check("a.b", r#"{"a": {"b": 1}}"#, "1");
    check("a.b", r#"{"a": {"c": 1}}"#, "absent");
    check("a.b", r#"{"a": 4}"#, "absent");
    check("a.b", r#"{"a": null}"#, "absent");
    check("a.b", r#"{}"#, "absent");
    check("", r#"{"": 1}"#, "1");
    check("a..b", r#"{"a": {"": {"b": 2}}}"#, "2");
    check("a.0", r#"{"a": {"0": 5}}"#, "5");
}

#[test]
fn arrays_at_the_end() {
    check("a", r#"{"a": []}"#, "[]");
    check("a", r#"{"a": [1,[2]]}"#, "1 [2] [1,[2]]");
    check("a.b", r#"{"a": {"b": [1,2]}}"#, "1 2 [1,2]");
    check("a.0", r#"{"a": [[1]]}"#, "[1]");
}

#[test]
fn arrays_on_the_way() {
    check("a.b", r#"{"a": []}"#, "");
    check("a.b", r#"{"a": [1,null,[]]}"#, "");
    check("a.b", r#"{"a": [{}]}"#, "absent");
    check("a.b", r#"{"a": [{"b":3},{},{"b":null},4]}"#, "3 absent null");
    check("a.b", r#"{"a": [[{"b":1}]]}"#, "");
    check("a.b", r#"{"a": [{"b":[1,2]}]}"#, "1 2 [1,2]");
    check("a.b.c", r#"{"a": [{"b":[{"c":1},{"c":2}]},{"b":{"c":3}},{"b":5}]}"#, "1 2 3 absent");
    check("a.b.c", r#"{"a": [{"b":[]}]}"#, "");
}

#[test]
fn numbers_in_paths() {
    check("a.1", r#"{"a": [5,6]}"#, "6");
    check("a.2", r#"{"a": [5,6]}"#, "");
    check("a.01", r#"{"a": [5,6]}"#, "");
    check("a.0", r#"{"a": [{"x":1}]}"#, r#"absent {"x":1}"#);
    check("a.0", r#"{"a": [{"0":1},{"0":2}]}"#, r#"1 {"0":1} 2"#);
    check("a.0.b", r#"{"a": [{"b":1},{"b":2}]}"#, "absent 1 absent");
    check("a.0.b", r#"{"a": [5]}"#, "");
    check("a.0.b", r#"{"a": [[{"b":1},{"b":2}]]}"#, "1 2");
    check("a.0.1", r#"{"a": [[7,8],9]}"#, "8");
    check("a.0.b", r#"{"a": [{"0":{"b":1},"b":2}]}"#, "1 2");
    check("a.b.1", r#"{"a": [{"b":[1,2]}]}"#, "2");
}

#[test]
fn positions() {
    let check = |path: &str, json: &str, expected: &[Option<usize>]| {
        let mut positions = Vec::new();
        Path::new(path).visit_leaves(parse(json).view(), &mut |leaf| {
            positions.push(leaf.position);
            false
        });
        assert_eq!(positions, expected, "{path} of {json}");
    };
    check("a", r#"{"a": 1}"#, &[None]);
    check("a", r#"{"a": [5,6]}"#, &[Some(0), Some(1), None]);
    check("a.b", r#"{"a": [1,{"b":2}]}"#, &[Some(1)]);
    check("a.b", r#"{"a": [1,{"b":[3,4]}]}"#, &[Some(1), Some(1), Some(1)]);
    check("a.1", r#"{"a": [1,2]}"#, &[None]);
    check("a.1.b", r#"{"a": [1,{"b":[5,6]}]}"#, &[Some(1), Some(0), Some(1), None]);
}

#[test]
fn visiting_stops() {
    let document = parse(r#"{"a": [{"b":1},{"b":2},{"b":3}]}"#);
    let mut count = 0;
    let stopped = Path::new("a.b").visit(document.view(), &mut |value| {
        count += 1;
        value == Some(Value::Int32(2))
    });
    assert!(stopped);
    assert_eq!(count, 2);
}

#[test]
fn get_enters_no_arrays() {
    let check = |path: &str, json: &str, expected: Option<i32>| {
        let document = parse(json);
        assert_eq!(Path::new(path).get(document.view()), expected.map(Value::Int32), "{path}");
    };
    check("a", r#"{"a": 1}"#, Some(1));
    check("a.b", r#"{"a": {"b": 2}}"#, Some(2));
    check("a.c", r#"{"a": {"b": 2}}"#, None);
    check("a.b", r#"{"a": [{"b": 2}]}"#, None);
    check("a.0", r#"{"a": [2]}"#, None);
}
