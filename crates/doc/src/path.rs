//! Dotted paths through documents and arrays, with MongoDB's fan-out.
//!
//! How a path walks (MongoDB's element iterator, read from its behaviour):
//!
//! 1. Through documents by name. A name that is absent, or a scalar in the middle of the path, ends
//!    the branch early: `None` is visited.
//! 2. At an array in the middle of the path, each element that is a document is walked with the
//!    rest of the path, its position forgotten. Elements that are no documents give nothing, not
//!    even `None`: `{"a.b": null}` matches neither `{a: []}` nor `{a: [1]}`, but `{a: [{}]}`.
//! 3. There, if the next part is a number and names an element, that element is reached too. This
//!    is the only way into an array that lies directly in an array.
//! 4. At an array at the end of the path, its elements count one by one, and then the array itself;
//!    but not if a number led to it: `{"a.0": 1}` doesn't match `{a: [[1]]}`.

use crate::document::{Array, Document};
use crate::value::{ElementType, Value};

/// A dotted path, cut once: `a.b.0.c`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Path {
    parts: Vec<String>,
}

/// What a path reached on one of its branches.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reached<'a> {
    /// The value; `None` if the path ended early.
    pub value: Option<Value<'a>>,
    /// The position in the outermost array that was walked through without being named: what `$` in
    /// an update stands for.
    pub position: Option<usize>,
    /// Whether this is an array whose elements count too (rule 4).
    pub is_expandable: bool,
}

type Visit<'v, 'a> = &'v mut dyn FnMut(Reached<'a>) -> bool;

impl Path {
    /// Cuts `dotted` at its dots. An empty string is the path of the empty name.
    pub fn new(dotted: &str) -> Path {
        Path { parts: dotted.split('.').map(str::to_owned).collect() }
    }

    /// The names between the dots; at least one.
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// The value at the path through documents only (arrays are not entered): `None` if absent.
    pub fn get<'a>(&self, document: Document<'a>) -> Option<Value<'a>> {
        let (last, before) = self.parts.split_last()?;
        let mut document = document;
        for part in before {
            document = document.get(part)?.as_document()?;
        }
        document.get(last)
    }

    /// Calls `visit` with every value that a query's path reaches, as MongoDB fans out: through
    /// documents, through each element of an array on the way, and, where a part is a number, also
    /// through the array's element at that position. `None` is visited for a branch on which the
    /// path ends early (what `{a: null}` matches). Arrays at the end of the path are visited as
    /// they are: whoever compares them with elements too expands them. Stops when `visit` says
    /// `true` and returns whether it did.
    pub fn visit<'a>(
        &self,
        document: Document<'a>,
        visit: &mut dyn FnMut(Option<Value<'a>>) -> bool,
    ) -> bool {
        walk_document(document, &self.parts, None, &mut |reached| visit(reached.value))
    }

    /// As [`Path::visit`], but tells where and how each value was reached.
    pub fn visit_reached<'a>(
        &self,
        document: Document<'a>,
        visit: &mut dyn FnMut(Reached<'a>) -> bool,
    ) -> bool {
        walk_document(document, &self.parts, None, visit)
    }

    /// As [`Path::visit_reached`], with the elements of arrays at the end of the path visited first
    /// and then the array itself, just as a comparison in a query sees them (rule 4).
    pub fn visit_leaves<'a>(
        &self,
        document: Document<'a>,
        visit: &mut dyn FnMut(Reached<'a>) -> bool,
    ) -> bool {
        walk_document(document, &self.parts, None, &mut |reached| {
            if let (true, Some(Value::Array(array))) = (reached.is_expandable, reached.value) {
                for (position, value) in array.iter().enumerate() {
                    let position = reached.position.or(Some(position));
                    if visit(Reached { value: Some(value), position, is_expandable: false }) {
                        return true;
                    }
                }
            }
            visit(reached)
        })
    }
}

/// Walks the path's `parts` from `document`. Recursion follows the nesting of the document, which
/// validation has bounded.
fn walk_document<'a>(
    mut document: Document<'a>,
    mut parts: &[String],
    position: Option<usize>,
    visit: Visit<'_, 'a>,
) -> bool {
    while let Some((part, rest)) = parts.split_first() {
        match document.get(part) {
            value if rest.is_empty() => {
                let is_expandable = matches!(value, Some(Value::Array(_)));
                return visit(Reached { value, position, is_expandable });
            }
            Some(Value::Document(inner)) => document = inner,
            Some(Value::Array(array)) => return walk_array(array, rest, position, visit),
            _ => return visit(Reached { value: None, position, is_expandable: false }),
        }
        parts = rest;
    }
    false
}

/// Walks the path's `parts`, of which there is at least one, from inside `array`.
fn walk_array<'a>(
    array: Array<'a>,
    parts: &[String],
    position: Option<usize>,
    visit: Visit<'_, 'a>,
) -> bool {
    let Some((part, rest)) = parts.split_first() else { return false };
    let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    for (element_position, element) in array.elements().enumerate() {
        let is_named = is_number && element.name == part.as_bytes();
        if !is_named && element.kind != ElementType::Document {
            continue; // Rule 2: gives nothing. Not decoded either: it may be a long string.
        }
        let Some(value) = element.decode() else { return false };
        if let Value::Document(inner) = value
            && walk_document(inner, parts, position.or(Some(element_position)), visit)
        {
            return true;
        }
        if !is_named {
            continue;
        }
        let stop = match value {
            _ if rest.is_empty() => {
                visit(Reached { value: Some(value), position, is_expandable: false })
            }
            Value::Document(inner) => walk_document(inner, rest, position, visit),
            Value::Array(inner) => walk_array(inner, rest, position, visit),
            _ => false,
        };
        if stop {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests;
