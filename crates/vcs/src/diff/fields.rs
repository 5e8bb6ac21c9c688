//! Compares two documents, field by field.
//!
//! 1. Fields of the same name belong together, wherever they stand; what is equal byte for byte is
//!    skipped. Two documents are compared in turn, two arrays element by element by position, so a
//!    longer array has added positions at its end.
//! 2. Anything else whose type or bytes differ is modified: 1 and 1.0 differ.
//! 3. Changes come in the order of the left side's fields; what only the right side has comes after
//!    them, in its order.
//!
//! Two documents that differ in nothing but the order of their fields give one change, `reordered`,
//! with the names in their orders; beside other changes of the same document the order isn't shown.

use frond_doc::raw::RawElement;
use frond_doc::{Array, Document, DocumentBuilder, Value, ValueBuf};

use crate::fields::{self, Fields};
use crate::{FieldChange, FieldChangeKind};

/// Returns how `to` differs from `from`. Nesting is bounded by what was accepted on insert.
pub(crate) fn diff_documents(from: Document<'_>, to: Document<'_>) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    compare_documents("", from, to, &mut changes);
    changes
}

fn compare_documents(
    path: &str,
    from: Document<'_>,
    to: Document<'_>,
    changes: &mut Vec<FieldChange>,
) {
    if from == to {
        return;
    }
    let before = changes.len();
    let (left, right) = (Fields::of(from), Fields::of(to));
    for (label, element) in left.iter() {
        compare_elements(path, Some(element), right.get(&label), changes);
    }
    for (label, element) in right.iter() {
        if left.get(&label).is_none() {
            compare_elements(path, None, Some(element), changes);
        }
    }
    if changes.len() == before {
        let (from, to) = (Some(names(from)), Some(names(to)));
        let kind = FieldChangeKind::Reordered;
        changes.push(FieldChange { kind, path: path.to_owned(), from, to });
    }
}

/// The names of the fields, as an array.
fn names(document: Document<'_>) -> ValueBuf {
    let mut builder = DocumentBuilder::new();
    builder.begin_array("names");
    for (name, _) in document.iter() {
        builder.push(Value::String(name));
    }
    builder.end();
    let names = builder.build();
    Value::to_buf(&names.get("names").unwrap_or(Value::Null))
}

/// Compares what stands on both sides in one place below `path`.
fn compare_elements(
    path: &str,
    from: Option<RawElement<'_>>,
    to: Option<RawElement<'_>>,
    changes: &mut Vec<FieldChange>,
) {
    let Some(named) = from.or(to) else { return };
    if let (Some(from), Some(to)) = (&from, &to)
        && fields::same(from, to)
    {
        return;
    }
    let path = fields::join(path, fields::name(&named));
    let (from, to) =
        (from.map(|field| fields::value(&field)), to.map(|field| fields::value(&field)));
    match (from, to) {
        (Some(Value::Document(from)), Some(Value::Document(to))) => {
            compare_documents(&path, from, to, changes);
        }
        (Some(Value::Array(from)), Some(Value::Array(to))) => {
            compare_arrays(&path, from, to, changes);
        }
        (from, to) => changes.push(change(path, from, to)),
    }
}

fn compare_arrays(path: &str, from: Array<'_>, to: Array<'_>, changes: &mut Vec<FieldChange>) {
    let (mut left, mut right) = (from.elements(), to.elements());
    for position in 0.. {
        let (from, to) = (left.next(), right.next());
        if from.is_none() && to.is_none() {
            return;
        }
        // Elements are named by where they stand, whatever name the client stored.
        let name = position.to_string();
        let (from, to) = (renamed(from, &name), renamed(to, &name));
        compare_elements(path, from, to, changes);
    }
}

fn renamed<'a>(element: Option<RawElement<'a>>, name: &'a str) -> Option<RawElement<'a>> {
    element.map(|element| RawElement { name: name.as_bytes(), ..element })
}

fn change(path: String, from: Option<Value<'_>>, to: Option<Value<'_>>) -> FieldChange {
    let kind = match (&from, &to) {
        (None, _) => FieldChangeKind::Added,
        (_, None) => FieldChangeKind::Removed,
        _ => FieldChangeKind::Modified,
    };
    let own = |value: Option<Value<'_>>| value.map(ValueBuf::from);
    FieldChange { kind, path, from: own(from), to: own(to) }
}

#[cfg(test)]
mod tests;
