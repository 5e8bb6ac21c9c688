//! The error of a key that is there already, in MongoDB's words.

use frond_doc::path::Path;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, ValueBuf, key};
use frond_query::index::IndexShape;
use frond_query::sort::SortField;
use frond_query::{Code, Collation, text};
use frond_tree::format::KEY_BYTES_MAX;

use crate::definition::ID_INDEX_NAME;
use crate::error::Error;
use crate::schema::Index;

/// The error of a second document with the `_id` of `document`, in a collection of this collation.
pub(crate) fn of_id(namespace: &str, collation: &Collation, document: Document<'_>) -> Error {
    let mut pattern = DocumentBuilder::new();
    pattern.append("_id", Value::Int32(1));
    let mut value = DocumentBuilder::new();
    value.append("_id", document.get("_id").unwrap_or(Value::Null));
    error(namespace, (ID_INDEX_NAME, collation), pattern.build(), value.build())
}

/// The error of a second document under `index_key` in a unique index.
pub(crate) fn of_index(
    namespace: &str,
    index: &Index,
    index_key: &[u8],
    document: Document<'_>,
) -> Error {
    let (spec, shape) = (&index.spec, &index.shape);
    let mut values = DocumentBuilder::new();
    let mut rest = index_key;
    if index_key.len() == KEY_BYTES_MAX && !is_whole(index_key, shape) {
        rest = key::known(index_key, true);
    }
    for field in shape.sort_fields() {
        let part = match key::skip(&mut rest, field.descending) {
            Ok(part) => Part::Whole(part),
            Err(_) => Part::Begins(std::mem::take(&mut rest)),
        };
        let value = value_of_key(document, field, shape.collation(), part);
        values.append(&field.path, value.as_ref().map_or(Value::Null, ValueBuf::as_value));
    }
    error(namespace, (&spec.name, shape.collation()), spec.key.clone(), values.build())
}

fn error(
    namespace: &str,
    (name, collation): (&str, &Collation),
    pattern: DocumentBuf,
    value: DocumentBuf,
) -> Error {
    let text = text::value(Value::from(&value));
    let collation = collation.specification();
    let collated = collation.map_or_else(String::new, |specification| {
        format!(" collation: {}", text::value(Value::Document(specification)))
    });
    let message = format!(
        "E11000 duplicate key error collection: {namespace} index: {name}{collated} dup key: {text}"
    );
    let mut details = DocumentBuilder::new();
    details.append("keyPattern", Value::from(&pattern));
    details.append("keyValue", Value::from(&value));
    if let Some(specification) = collation {
        details.append("collation", Value::Document(specification));
    }
    Error::invalid(Code::DuplicateKey, message).with_details(details.build())
}

/// The known bytes of one part of an index's key.
#[derive(Clone, Copy)]
enum Part<'k> {
    Whole(&'k [u8]),
    /// The key was cut: the first bytes, if any.
    Begins(&'k [u8]),
}

/// Whether all parts of a key are in it.
fn is_whole(index_key: &[u8], shape: &IndexShape) -> bool {
    let mut rest = index_key;
    shape.parts().iter().all(|descending| key::skip(&mut rest, *descending).is_ok())
}

/// The value in `document` that `part` of an index's key stands for: keys lose number types, so the
/// document is asked. `None`: the field is absent.
fn value_of_key(
    document: Document<'_>,
    field: &SortField,
    collation: &Collation,
    part: Part<'_>,
) -> Option<ValueBuf> {
    let is_it = |value: Value<'_>| {
        let mut key = Vec::new();
        collation.append_key(&mut key, value, field.descending);
        match part {
            Part::Whole(part) => key == part,
            Part::Begins(part) => key.starts_with(part),
        }
    };
    let mut found = None;
    Path::new(&field.path).visit(document, &mut |value| {
        let elements = value.and_then(|value| value.as_array());
        let candidates = value.into_iter().chain(elements.iter().flat_map(|array| array.iter()));
        found = candidates.into_iter().find(|value| is_it(*value)).map(|value| value.to_buf());
        found.is_some()
    });
    found
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;
    use crate::definition::IndexSpec;
    use crate::schema::TreeRef;

    #[test]
    fn the_error_names_the_value_of_the_document() {
        let spec = document! { "a": 1, "b": -1 };
        let spec = IndexSpec { unique: true, ..IndexSpec::plain("a_1_b_-1".to_owned(), spec) };
        let index = Index::new(spec, TreeRef::Live(frond_engine::TreeId(9)));
        let document = document! { "_id": 1, "a": 2_i64 };
        let mut index_key = Vec::new();
        key::append(&mut index_key, Value::Int32(2), false);
        key::append(&mut index_key, Value::Null, true);
        let error = of_index("shop.things", &index, &index_key, document.view());
        assert_eq!(
            error.message,
            "E11000 duplicate key error collection: shop.things index: a_1_b_-1 dup key: \
             { a: 2, b: null }"
        );
        let details = error.details.expect("a duplicate key has details");
        assert_eq!(details.get("keyPattern"), Some(Value::from(&index.spec.key)));
        let value = details.get("keyValue").and_then(|value| value.as_document());
        assert_eq!(value.and_then(|value| value.get("a")), Some(Value::Int64(2)));
    }
}
