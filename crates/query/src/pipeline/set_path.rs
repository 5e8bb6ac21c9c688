//! A document with the value at one dotted path changed: what `$unwind` and `$lookup` make.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use crate::large::{Depth, NeededPaths};

/// Has each value on the way to `parts` looked at, the last one too.
pub(super) fn add_on_way<'p>(needed: &mut NeededPaths, parts: impl Iterator<Item = &'p str>) {
    let mut place = needed;
    for part in parts {
        place = place.field(part);
        place.look(Depth::Level);
    }
}

/// Sets the value at `parts`, in its place, or appended where it is absent; `None` removes it.
/// Arrays aren't entered: what is no document on the way is replaced by one.
pub(super) fn set_path(
    document: Document<'_>,
    parts: &[String],
    value: Option<Value<'_>>,
) -> DocumentBuf {
    let mut builder = DocumentBuilder::with_capacity(document.as_bytes().len() + 64);
    write(&mut builder, document, parts, value);
    builder.build()
}

/// Recurses once a part of the path.
fn write(
    builder: &mut DocumentBuilder,
    document: Document<'_>,
    parts: &[String],
    value: Option<Value<'_>>,
) {
    let Some((first, rest)) = parts.split_first() else { return };
    let mut is_found = false;
    for element in document.elements() {
        if element.name != first.as_bytes() {
            builder.append_element(&element);
            continue;
        }
        is_found = true;
        match (rest.is_empty(), element.decode(), value) {
            (true, _, Some(value)) => {
                builder.append(first, value);
            }
            (true, _, None) => {}
            (false, Some(Value::Document(inner)), _) => {
                builder.begin_document(first);
                write(builder, inner, rest, value);
                builder.end();
            }
            (false, _, Some(_)) => append_nested(builder, parts, value),
            (false, _, None) => {
                builder.append_element(&element);
            }
        }
    }
    if !is_found && value.is_some() {
        append_nested(builder, parts, value);
    }
}

fn append_nested(builder: &mut DocumentBuilder, parts: &[String], value: Option<Value<'_>>) {
    let Some((first, rest)) = parts.split_first() else { return };
    match (rest.is_empty(), value) {
        (true, Some(value)) => {
            builder.append(first, value);
        }
        (true, None) => {}
        (false, _) => {
            builder.begin_document(first);
            write(builder, Document::empty(), rest, value);
            builder.end();
        }
    }
}
