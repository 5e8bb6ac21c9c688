//! Pairs of documents and the changes between them; a test for each rule of the head.

use frond_doc::{DocumentBuf, DocumentBuilder, document};

use super::*;

fn array(values: &[i32]) -> ValueBuf {
    let mut builder = DocumentBuilder::new();
    builder.begin_array("a");
    values.iter().for_each(|value| {
        builder.push(Value::Int32(*value));
    });
    builder.end();
    builder.build().get("a").expect("it was just appended").to_buf()
}

/// Changes as `+path=to`, `-path=from`, `path:from>to`.
fn check(from: &DocumentBuf, to: &DocumentBuf, expected: &[&str]) {
    let show = |value: &Option<ValueBuf>| match value {
        Some(value) => format!("{:?}", value.as_value()),
        None => String::new(),
    };
    let found: Vec<String> = diff_documents(from.view(), to.view())
        .iter()
        .map(|change| match change.kind {
            FieldChangeKind::Added => format!("+{}={}", change.path, show(&change.to)),
            FieldChangeKind::Removed => format!("-{}={}", change.path, show(&change.from)),
            FieldChangeKind::Modified | FieldChangeKind::Reordered => {
                format!("{}:{}>{}", change.path, show(&change.from), show(&change.to))
            }
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn fields_are_added_removed_and_modified() {
    let from = document! { "_id": 1_i32, "a": 1_i32, "b": "x" };
    check(&from, &from, &[]);
    let to = document! { "_id": 1_i32, "b": "y", "c": true };
    check(&from, &to, &["-a=Int32(1)", "b:String(\"x\")>String(\"y\")", "+c=Boolean(true)"]);
}

#[test]
fn another_type_of_one_number_is_modified() {
    check(&document! { "a": 1_i32 }, &document! { "a": 1.0 }, &["a:Int32(1)>Double(1.0)"]);
}

#[test]
fn the_order_of_fields_alone_is_a_change() {
    let from = document! { "a": 1_i32, "b": 2_i32 };
    let to = document! { "b": 2_i32, "a": 1_i32 };
    let reordered = r#"Array([String("a"), String("b")])>Array([String("b"), String("a")])"#;
    check(&from, &to, &[&format!(":{reordered}")]);
    assert_eq!(diff_documents(from.view(), to.view())[0].kind, FieldChangeKind::Reordered);
    let (from, to) = (document! { "x": &from }, document! { "x": &to });
    check(&from, &to, &[&format!("x:{reordered}")]);
    // Beside another change it isn't shown.
    let to = document! { "b": 3_i32, "a": 1_i32 };
    check(&document! { "a": 1_i32, "b": 2_i32 }, &to, &["b:Int32(2)>Int32(3)"]);
}

#[test]
fn documents_are_compared_in_turn() {
    let (left, right) = (document! { "x": 1_i32, "y": 2_i32 }, document! { "x": 3_i32 });
    let (from, to) = (document! { "a": &left, "b": &left }, document! { "a": &right, "b": 5_i32 });
    let expected = [
        "a.x:Int32(1)>Int32(3)",
        "-a.y=Int32(2)",
        "b:Document({\"x\": Int32(1), \"y\": Int32(2)})>Int32(5)",
    ];
    check(&from, &to, &expected);
}

#[test]
fn arrays_are_compared_by_position() {
    let (short, long) = (array(&[1, 2]), array(&[1, 3, 4]));
    let (from, to) = (document! { "a": &short }, document! { "a": &long });
    check(&from, &to, &["a.1:Int32(2)>Int32(3)", "+a.2=Int32(4)"]);
    check(&to, &from, &["a.1:Int32(3)>Int32(2)", "-a.2=Int32(4)"]);
}

#[test]
fn a_name_that_occurs_twice() {
    let from = document! { "a": 1_i32, "a": 2_i32, "a": 3_i32 };
    let to = document! { "a": 1_i32, "a": 5_i32 };
    check(&from, &to, &["a:Int32(2)>Int32(5)", "-a=Int32(3)"]);
}
