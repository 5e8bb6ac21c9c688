//! The changes of an update, field by field: an event's `updateDescription`.
//!
//! Old and new document are walked side by side. Values that are equal byte for byte are passed
//! over; documents are compared by field, arrays by position. A client that applies the description
//! to the old document has the new one, the order of its fields included: changes that can't be
//! described so (fields that moved, a name that no path has) are described as a whole field, and in
//! the outermost document not at all: the event is a replacement then.
//!
//! A path that could be read in two ways (a name with a dot in it, or one of digits in a document)
//! is there with its parts besides, in `disambiguatedPaths`. Where two of them have one text, the
//! event is a replacement.
//!
//! *Applying*: remove what was removed; cut arrays; set each path in order, a field that isn't
//! there at the end of its document.

mod apply;
mod large;
mod path;

use std::borrow::Cow;
use std::collections::HashSet;

use frond_doc::raw::RawElement;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, ElementType, Value, ValueBuf};

pub use apply::applied;
pub use large::describe_large;
use path::Path;

/// The field that has the parts of those paths that could be read in two ways.
pub const PARTS: &str = "disambiguatedPaths";

/// Deeper than this, what differs is described as a whole.
const DEPTH_MAX: usize = 100;

/// So many names are compared with one another: to hash them takes longer.
const FEW_NAMES: usize = 16;

/// The changes of an update.
#[derive(Default)]
struct Difference<'a> {
    updated: Vec<Updated<'a>>,
    removed: Vec<String>,
    /// An array's path, and how many elements are left.
    truncated: Vec<(String, usize)>,
    /// Paths that could be read in two ways, and their parts.
    ambiguous: Vec<(String, Vec<ValueBuf>)>,
}

/// The new value at a path.
struct Updated<'a> {
    path: String,
    kind: ElementType,
    value: Cow<'a, [u8]>,
}

/// The length of each list, to take back a description that turned out to be impossible.
#[derive(Clone, Copy)]
struct Mark([usize; 4]);

/// Describes what changed from `before` to `after`; `None` if that can't be described, or takes
/// more than `after` itself.
pub fn describe(before: Document<'_>, after: Document<'_>) -> Option<DocumentBuf> {
    let mut difference = Difference::default();
    if !difference.of_documents(&Path::Root, before, after, 0) {
        return None;
    }
    difference.build((after.as_bytes().len() + EMPTY_BYTES) as u64)
}

/// About how many bytes a description has that says nothing.
const EMPTY_BYTES: usize = 70;

impl<'a> Difference<'a> {
    fn mark(&self) -> Mark {
        let Difference { updated, removed, truncated, ambiguous } = self;
        Mark([updated.len(), removed.len(), truncated.len(), ambiguous.len()])
    }

    fn go_back(&mut self, mark: Mark) {
        let Mark([updated, removed, truncated, ambiguous]) = mark;
        self.updated.truncate(updated);
        self.removed.truncate(removed);
        self.truncated.truncate(truncated);
        self.ambiguous.truncate(ambiguous);
    }

    /// Returns a path's text; its parts are noted if that could be read in two ways.
    fn text_of(&mut self, path: &Path<'_>) -> String {
        let text = path.text();
        if path.is_ambiguous() {
            self.ambiguous.push((text.clone(), path.parts()));
        }
        text
    }

    fn update(&mut self, path: &Path<'_>, element: &RawElement<'a>) {
        let (path, value) = (self.text_of(path), Cow::Borrowed(element.value));
        self.updated.push(Updated { path, kind: element.kind, value });
    }

    fn of_documents(
        &mut self,
        path: &Path<'_>,
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
        // Where none was removed and none added, both have the same names.
        let is_same = removed.is_empty() && added.is_empty();
        if !has_names_once(after) || !is_same && !has_names_once(before) {
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
            let Some(path) = path.field(name) else { return false };
            let path = self.text_of(&path);
            self.removed.push(path);
        }
        for (old, new) in changed {
            let Some(path) = path.field(new.name) else { return false };
            self.of_values(&path, old, new, depth);
        }
        for element in added {
            let Some(path) = path.field(element.name) else { return false };
            self.update(&path, &element);
        }
        true
    }

    fn of_values(
        &mut self,
        path: &Path<'_>,
        old: RawElement<'a>,
        new: RawElement<'a>,
        depth: usize,
    ) {
        let mark = self.mark();
        let is_described = depth < DEPTH_MAX
            && match (old.decode(), new.decode()) {
                (Some(Value::Document(old)), Some(Value::Document(new))) => {
                    self.of_documents(path, old, new, depth + 1)
                }
                (Some(Value::Array(old)), Some(Value::Array(new))) => {
                    self.of_arrays(path, old.as_document(), new.as_document(), depth + 1)
                }
                _ => false,
            };
        if !is_described {
            self.go_back(mark);
            self.update(path, &new);
        }
    }

    fn of_arrays(
        &mut self,
        path: &Path<'_>,
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
                        self.of_values(&path.element(position), old, new, depth);
                    }
                }
                (Some(_), None) => {
                    let path = self.text_of(path);
                    self.truncated.push((path, position));
                    break;
                }
                (None, Some(new)) => {
                    if !is_position(new.name, position) {
                        return false;
                    }
                    self.update(&path.element(position), &new);
                }
            }
        }
        true
    }

    /// The description; `None` if it takes more than so many bytes, without the parts of paths, or
    /// two of its paths have one text.
    fn build(self, bytes_max: u64) -> Option<DocumentBuf> {
        if !self.ambiguous.is_empty() && !self.has_texts_once() {
            return None;
        }
        let fields = self.updated.iter().map(|it| 2 + it.path.len() + it.value.len());
        let mut out = DocumentBuilder::with_capacity(2 * EMPTY_BYTES + fields.sum::<usize>());
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
        // And the byte that ends it.
        if bytes_max <= out.bytes() as u64 {
            return None;
        }
        if !self.ambiguous.is_empty() {
            out.begin_document(PARTS);
            for (path, parts) in &self.ambiguous {
                out.begin_array(path);
                for part in parts {
                    out.push(part.as_value());
                }
                out.end();
            }
            out.end();
        }
        Some(out.build())
    }

    /// Whether no two paths have the same text.
    fn has_texts_once(&self) -> bool {
        let updated = self.updated.iter().map(|updated| &updated.path);
        let truncated = self.truncated.iter().map(|(path, _)| path);
        let mut texts = HashSet::new();
        updated.chain(&self.removed).chain(truncated).all(|path| texts.insert(path.as_str()))
            && self.ambiguous.iter().all(|(path, _)| texts.contains(path.as_str()))
    }
}

fn is_equal(left: &RawElement<'_>, right: &RawElement<'_>) -> bool {
    left.kind == right.kind && left.value == right.value
}

/// Whether a path may have the name: no client takes it for an operator, or for nothing.
fn is_sayable(name: &[u8]) -> bool {
    name.first().is_some_and(|first| *first != b'$')
}

fn is_position(name: &[u8], position: usize) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| name == position.to_string())
}

fn has_names_once(document: Document<'_>) -> bool {
    if document.elements().nth(FEW_NAMES).is_none() {
        let is_new = |(position, element): (usize, RawElement<'_>)| {
            document.elements().take(position).all(|earlier| earlier.name != element.name)
        };
        return document.elements().enumerate().all(is_new);
    }
    let mut names = HashSet::new();
    document.elements().all(|element| names.insert(element.name))
}

#[cfg(test)]
mod tests;
