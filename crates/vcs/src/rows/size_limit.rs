//! Rows of bounded size: for a value that has no room in a row, the row has its number of bytes.
//!
//! 1. A row within the bound stays as it is.
//! 2. Of another one the values that were stored (documents, and both sides of changed fields) are
//!    left out, largest first, until the rest fits; equally large ones together. For a value
//!    `after` there stands `afterBytes`, how large it is.
//! 3. Where that isn't enough, as with a million changed elements, `changes` is left out whole.

use frond_doc::raw::RawElement;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

/// Fields of rows that hold a document as it was stored.
const DOCUMENTS: [&[u8]; 6] = [b"after", b"base", b"before", b"document", b"ours", b"theirs"];
/// The list of changed fields.
const CHANGES: &[u8] = b"changes";
/// The fields of an entry that hold parts of a document.
const SIDES: [&[u8]; 2] = [b"from", b"to"];
/// The suffix that turns a value's name into the name of its size.
const BYTES: &str = "Bytes";
/// Smaller values stay: leaving them out gives little room.
const LEFT_OUT_BYTES_MIN: usize = 64;

/// The parts left out of a row.
struct LeftOut {
    /// Values of so many bytes, and larger ones.
    bytes_min: usize,
    changes: bool,
}

/// The row, with so much left out that it has at most `bytes_max`, as far as that is possible.
pub(crate) fn fit(row: DocumentBuf, bytes_max: usize) -> DocumentBuf {
    let bytes = row.as_bytes().len();
    if bytes <= bytes_max {
        return row;
    }
    let excess = bytes - bytes_max;
    let left_out = match bytes_min(values(row.view(), true), excess) {
        Some(bytes_min) => LeftOut { bytes_min, changes: false },
        None => {
            let changes = row.view().field(CHANGES).map_or(0, |changes| freed(changes.value.len()));
            let bytes_min = bytes_min(values(row.view(), false), excess.saturating_sub(changes));
            LeftOut { bytes_min: bytes_min.unwrap_or(LEFT_OUT_BYTES_MIN), changes: true }
        }
    };
    without(row.view(), &left_out)
}

/// Bytes of each value that can be left out, those of changed fields too if they are shown.
fn values(row: Document<'_>, has_changes: bool) -> Vec<usize> {
    let mut values = Vec::new();
    for field in row.elements() {
        if DOCUMENTS.contains(&field.name) {
            values.push(field.value.len());
        }
        if field.name == CHANGES && has_changes {
            for change in entries(&field) {
                let sides = change.elements().filter(|side| SIDES.contains(&side.name));
                values.extend(sides.map(|side| side.value.len()));
            }
        }
    }
    values
}

/// Returns how large the smallest value is that is left out, so that `excess` bytes less remain;
/// `None` if all together are too little.
fn bytes_min(mut values: Vec<usize>, excess: usize) -> Option<usize> {
    if excess == 0 {
        return Some(usize::MAX);
    }
    values.retain(|bytes| LEFT_OUT_BYTES_MIN <= *bytes);
    values.sort_unstable_by(|one, other| other.cmp(one));
    let mut left_out = 0;
    values.into_iter().find(|bytes| {
        left_out += freed(*bytes);
        excess <= left_out
    })
}

/// Bytes that a row loses with a value of so many.
fn freed(bytes: usize) -> usize {
    bytes.saturating_sub(size_of::<i64>() + BYTES.len())
}

fn without(row: Document<'_>, left_out: &LeftOut) -> DocumentBuf {
    let mut rest = DocumentBuilder::new();
    for field in row.elements() {
        match field.name {
            CHANGES if left_out.changes => append_bytes(&mut rest, &field),
            CHANGES => {
                rest.begin_array("changes");
                for change in entries(&field) {
                    rest.push_begin_document();
                    for side in change.elements() {
                        append(&mut rest, &side, &SIDES, left_out);
                    }
                    rest.end();
                }
                rest.end();
            }
            _ => append(&mut rest, &field, &DOCUMENTS, left_out),
        }
    }
    rest.build()
}

fn append(
    rest: &mut DocumentBuilder,
    field: &RawElement<'_>,
    can_be_left_out: &[&[u8]],
    left_out: &LeftOut,
) {
    if can_be_left_out.contains(&field.name) && left_out.bytes_min <= field.value.len() {
        append_bytes(rest, field);
    } else {
        rest.append_element(field);
    }
}

fn append_bytes(rest: &mut DocumentBuilder, field: &RawElement<'_>) {
    let name = format!("{}{BYTES}", field.name().unwrap_or_default());
    rest.append(&name, Value::Int64(field.value.len() as i64));
}

/// The documents of the list of changed fields.
fn entries<'a>(changes: &RawElement<'a>) -> impl Iterator<Item = Document<'a>> + use<'a> {
    let list = changes.decode().and_then(|list| list.as_array());
    list.into_iter()
        .flat_map(|list| list.elements())
        .filter_map(|entry| entry.decode()?.as_document())
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;

    fn text(bytes: usize) -> String {
        "x".repeat(bytes)
    }

    fn modified(before: usize, after: usize) -> DocumentBuf {
        let (from, to) = (text(before), text(after));
        let change = document! { "type": "modified", "path": "a", "from": &*from, "to": &*to };
        let mut row = DocumentBuilder::new();
        row.append("_id", Value::Int32(1)).begin_array("changes");
        row.push(Value::from(&change)).end();
        for (name, side) in [("before", &from), ("after", &to)] {
            row.append(name, Value::from(&document! { "_id": 1_i32, "a": &**side }));
        }
        row.build()
    }

    /// Names of what is left out of a row that may have so many bytes.
    fn left_out(row: DocumentBuf, bytes_max: usize) -> Vec<String> {
        let row = fit(row, bytes_max);
        assert!(row.as_bytes().len() <= bytes_max, "{} bytes", row.as_bytes().len());
        DocumentBuf::validated(row.as_bytes().to_vec().into()).expect("a document");
        let mut names = Vec::new();
        let changes = row.view().field(CHANGES);
        let entries = changes.iter().flat_map(entries).flat_map(|entry| entry.elements());
        for field in row.view().elements().chain(entries) {
            names.extend(field.name().and_then(|name| name.strip_suffix(BYTES)).map(str::to_owned));
        }
        names
    }

    #[test]
    fn the_largest_values_are_left_out_until_the_rest_fits() {
        for (sides, bytes_max, expected) in [
            ((1000, 900), 5000, vec![]),
            ((1000, 900), 3800, vec!["before"]),
            ((1000, 900), 2800, vec!["before", "from"]),
            ((1000, 900), 1800, vec!["before", "after", "from"]),
            ((1000, 900), 900, vec!["before", "after", "from", "to"]),
            ((900, 900), 2800, vec!["before", "after"]),
        ] {
            assert_eq!(left_out(modified(sides.0, sides.1), bytes_max), expected, "{bytes_max}");
        }
        let row = fit(modified(1000, 900), 3800);
        assert_eq!(row.get("beforeBytes"), Some(Value::Int64(1000 + 22)));
        assert!(row.get("before").is_none() && row.get("after").is_some());
    }

    #[test]
    fn a_list_of_many_small_changes_is_left_out_whole() {
        let mut row = DocumentBuilder::new();
        row.append("_id", Value::Int32(1)).begin_array("changes");
        for number in 0..100 {
            row.push(Value::from(&document! { "path": "a", "from": number, "to": 0_i32 }));
        }
        row.end().append("after", Value::from(&document! { "a": &*text(500) }));
        let row = row.build();
        assert_eq!(left_out(row.clone(), 1000), ["changes"]);
        assert_eq!(left_out(row, 200), ["changes", "after"]);
    }
}
