//! The changes an insert makes to a document: `_id` comes first.
//!
//! The messages are MongoDB's own, since drivers' users search for them.

use crate::builder::DocumentBuilder;
use crate::document::value::{ObjectId, Value};
use crate::document::{Document, DocumentBuf};
use crate::error::DocError;

/// Returns the document with `_id` as its first field, made by `new_id` where it is absent; the
/// other bytes stay as the client sent them, in its order. Top-level timestamps of 0 are the
/// caller's business. Returns a shared copy if nothing changes.
///
/// # Errors
/// [`DocError::Invalid`] if there is more than one `_id`.
pub fn for_insert(
    document: &DocumentBuf,
    new_id: impl FnOnce() -> ObjectId,
) -> Result<DocumentBuf, DocError> {
    let mut ids = document.view().elements().filter(|element| element.name == b"_id");
    let id = ids.next();
    if ids.next().is_some() {
        let what = "can't have multiple _id fields in one document".to_owned();
        return Err(DocError::Invalid { offset: 0, what });
    }
    let first = document.view().elements().next();
    if id.is_some() && first.is_some_and(|first| first.name == b"_id") {
        return Ok(document.clone());
    }
    let mut result = DocumentBuilder::with_capacity(document.as_bytes().len() + 17);
    match id.and_then(|id| id.decode()) {
        Some(id) => result.append("_id", id),
        None => result.append("_id", Value::ObjectId(new_id())),
    };
    for element in document.view().elements().filter(|element| element.name != b"_id") {
        result.append_element(&element);
    }
    Ok(result.build())
}

/// Checks what MongoDB demands of an `_id`: no array, no regex, no undefined; no field in it begins
/// with a dollar. Returns the reason in MongoDB's words otherwise.
///
/// # Errors
/// That reason.
pub fn check_id(document: Document<'_>) -> Result<(), String> {
    match document.get("_id") {
        Some(Value::Array(_)) => Err("can't use an array for _id".to_owned()),
        Some(Value::Regex(_)) => Err("can't use a regex for _id".to_owned()),
        Some(Value::Undefined) => Err("can't use a undefined for _id".to_owned()),
        Some(Value::Document(id)) => check_no_dollar(id),
        _ => Ok(()),
    }
}

/// Documents inside an `_id` are checked at every depth; validation has bounded it.
fn check_no_dollar(id: Document<'_>) -> Result<(), String> {
    for (name, value) in id.iter() {
        if name.starts_with('$') {
            return Err(format!(
                "_id fields may not contain '$'-prefixed fields: {name} is not valid for storage."
            ));
        }
        match value {
            Value::Document(inner) => check_no_dollar(inner)?,
            Value::Array(inner) => check_no_dollar(inner.as_document())?,
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;
    use crate::document::value::Regex;

    fn check(before: &DocumentBuf, expected: &str) {
        let after = for_insert(before, || ObjectId([0xab; 12])).expect("one _id at most");
        let after = DocumentBuf::validated(after.into_bytes()).expect("valid");
        assert_eq!(format!("{after:?}"), expected);
    }

    #[test]
    fn id_comes_first() {
        check(&document! { "_id": 1_i32, "a": 2_i32 }, r#"{"_id": Int32(1), "a": Int32(2)}"#);
        check(
            &document! { "b": "x", "_id": 1_i32, "a": 2_i32, "a": 3_i32 },
            r#"{"_id": Int32(1), "b": String("x"), "a": Int32(2), "a": Int32(3)}"#,
        );
        check(
            &document! { "a": 2_i32 },
            r#"{"_id": ObjectId(ObjectId(abababababababababababab)), "a": Int32(2)}"#,
        );
        check(&document! {}, r#"{"_id": ObjectId(ObjectId(abababababababababababab))}"#);
        let twice = document! { "_id": 1_i32, "_id": 2_i32 };
        assert!(for_insert(&twice, || ObjectId([0; 12])).is_err());
    }

    #[test]
    fn ids_that_are_refused() {
        let reason = |id: Value<'_>| check_id(document! { "_id": id }.view()).err();
        assert_eq!(reason(Value::Int32(1)), None);
        assert_eq!(reason(Value::Null), None);
        let inner = document! { "a": 1_i32 };
        assert_eq!(reason(Value::from(&inner)), None);
        let array = DocumentBuf::empty();
        let array = Value::Array(crate::Array::from_validated(array.as_bytes()));
        assert!(reason(array).is_some_and(|reason| reason.contains("array")));
        assert!(reason(Value::Undefined).is_some());
        assert!(reason(Value::Regex(Regex { pattern: "", options: "" })).is_some());
        let deep = document! { "$a": 1_i32 };
        let deep = document! { "b": &deep };
        assert!(reason(Value::from(&deep)).is_some_and(|reason| reason.contains("$a")));
    }
}
