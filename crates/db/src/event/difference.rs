//! The changes of an update, field by field: an event's `updateDescription`.
//!
//! Old and new document are walked side by side. Values that are equal byte for byte are passed
//! over; documents are compared by field, arrays by position. A client that applies the description
//! to the old document has the new one, the order of its fields included: changes that can't be
//! described so (fields that moved, a name that a path can't say) is described as a whole field,
//! and in the outermost document not at all: the event is a replacement then.
//!
//! *Applying*: remove what was removed; cut arrays; set each path in order, a field that isn't
//! there at the end of its document.

mod apply;
mod large;

use std::borrow::Cow;
use std::collections::HashSet;

use frond_doc::raw::RawElement;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, ElementType, Value};

pub use apply::applied;
pub use large::describe_large;

/// Deeper than this, what differs is described as a whole.
const DEPTH_MAX: usize = 100;

/// The changes of an update.
#[derive(Default)]
struct Difference<'a> {
    updated: Vec<Updated<'a>>,
    removed: Vec<String>,
    /// An array's path, and how many elements are left.
    truncated: Vec<(String, usize)>,
}

/// The new value at a path.
struct Updated<'a> {
    path: String,
    kind: ElementType,
    value: Cow<'a, [u8]>,
}

impl<'a> Updated<'a> {
    fn new(path: String, element: &RawElement<'a>) -> Updated<'a> {
        Updated { path, kind: element.kind, value: Cow::Borrowed(element.value) }
    }
}

/// The length of each list, to take back a description that turned out to be impossible.
#[derive(Clone, Copy)]
struct Mark(usize, usize, usize);

/// Describes what changed from `before` to `after`; `None` if that can't be described, or takes
/// more than `after` itself.
pub fn describe(before: Document<'_>, after: Document<'_>) -> Option<DocumentBuf> {
    let mut difference = Difference::default();
    if !difference.of_documents("", before, after, 0) {
        return None;
    }
    let description = difference.build();
    (description.as_bytes().len() <= after.as_bytes().len() + EMPTY_BYTES).then_some(description)
}

/// About how many bytes a description has that says nothing.
const EMPTY_BYTES: usize = 70;

impl<'a> Difference<'a> {
    fn mark(&self) -> Mark {
        Mark(self.updated.len(), self.removed.len(), self.truncated.len())
    }

    fn go_back(&mut self, mark: Mark) {
        self.updated.truncate(mark.0);
        self.removed.truncate(mark.1);
        self.truncated.truncate(mark.2);
    }

    fn of_documents(
        &mut self,
        path: &str,
        before: Document<'a>,
        after: Document<'a>,
        depth: usize,
    ) -> bool {
        let (mut old, mut new) = (before.elements().peekable(), after.elements().peekable());
        let mut removed: Vec<&[u8]> = Vec::new();
        let mut changed: Vec<(RawElement<'a>, RawElement<'a>)> = Vec::new();
        while let (Some(left), Some(right)) = (old.peek(), new.peek()) {
            if left.name != right.name {
                removed.push(left.name);
                old.next();
                continue;
            }
            if !is_equal(left, right) {
                changed.push((*left, *right));
            }
            old.next();
            new.next();
        }
        removed.extend(old.map(|element| element.name));
        let added: Vec<RawElement<'a>> = new.collect();
        if changed.is_empty() && removed.is_empty() && added.is_empty() {
            return true;
        }
        if !(has_names_once(before) && has_names_once(after)) {
            return false;
        }
        let gone: HashSet<&[u8]> = removed.iter().copied().collect();
        // One that is among both has moved.
        if added.iter().any(|element| gone.contains(element.name)) {
            return false;
        }
        let names = removed.iter().copied().chain(added.iter().map(|element| element.name));
        if !names.chain(changed.iter().map(|(_, new)| new.name)).all(is_sayable) {
            return false;
        }
        for name in removed {
            let Some(path) = joined(path, name) else { return false };
            self.removed.push(path);
        }
        for (old, new) in changed {
            let Some(path) = joined(path, new.name) else { return false };
            self.of_values(path, old, new, depth);
        }
        for element in added {
            let Some(path) = joined(path, element.name) else { return false };
            self.updated.push(Updated::new(path, &element));
        }
        true
    }

    fn of_values(&mut self, path: String, old: RawElement<'a>, new: RawElement<'a>, depth: usize) {
        let mark = self.mark();
        let is_described = depth < DEPTH_MAX
            && match (old.decode(), new.decode()) {
                (Some(Value::Document(old)), Some(Value::Document(new))) => {
                    self.of_documents(&path, old, new, depth + 1)
                }
                (Some(Value::Array(old)), Some(Value::Array(new))) => {
                    self.of_arrays(&path, old.as_document(), new.as_document(), depth + 1)
                }
                _ => false,
            };
        if !is_described {
            self.go_back(mark);
            self.updated.push(Updated::new(path, &new));
        }
    }

    fn of_arrays(
        &mut self,
        path: &str,
        before: Document<'a>,
        after: Document<'a>,
        depth: usize,
    ) -> bool {
        let (mut old, mut new) = (before.elements(), after.elements());
        for position in 0.. {
            match (old.next(), new.next()) {
                (None, None) => break,
                (Some(old), Some(new)) => {
                    if !is_position(old.name, position) || !is_position(new.name, position) {
                        return false;
                    }
                    if !is_equal(&old, &new) {
                        self.of_values(format!("{path}.{position}"), old, new, depth);
                    }
                }
                (Some(_), None) => {
                    self.truncated.push((path.to_owned(), position));
                    break;
                }
                (None, Some(new)) => {
                    if !is_position(new.name, position) {
                        return false;
                    }
                    self.updated.push(Updated::new(format!("{path}.{position}"), &new));
                }
            }
        }
        true
    }

    fn build(self) -> DocumentBuf {
        let mut out = DocumentBuilder::new();
        out.begin_document("updatedFields");
        for Updated { path, kind, value } in &self.updated {
            out.append_element(&RawElement { kind: *kind, name: path.as_bytes(), value });
        }
        out.end().begin_array("removedFields");
        for path in &self.removed {
            out.push(Value::String(path));
        }
        out.end().begin_array("truncatedArrays");
        for (path, count) in &self.truncated {
            out.push_begin_document().append("field", Value::String(path));
            out.append("newSize", Value::Int32(i32::try_from(*count).unwrap_or(i32::MAX))).end();
        }
        out.end();
        out.build()
    }
}

fn is_equal(left: &RawElement<'_>, right: &RawElement<'_>) -> bool {
    left.kind == right.kind && left.value == right.value
}

/// Whether a path can say the name: no client takes it for two names, a position or an operator.
fn is_sayable(name: &[u8]) -> bool {
    !name.is_empty()
        && !name.contains(&b'.')
        && name[0] != b'$'
        && !name.iter().all(u8::is_ascii_digit)
}

fn joined(path: &str, name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    Some(if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") })
}

fn is_position(name: &[u8], position: usize) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| name == position.to_string())
}

fn has_names_once(document: Document<'_>) -> bool {
    let mut names = HashSet::new();
    document.elements().all(|element| names.insert(element.name))
}

#[cfg(test)]
mod tests;
