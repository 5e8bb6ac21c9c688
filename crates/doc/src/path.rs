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

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::document::value::Value;
use crate::document::{Array, Document};
use crate::element_type::ElementType;
use crate::field_index::shape::{self, FieldSlot, Remembered, Shape};
use crate::field_index::{Attached, ElementSpot, FieldLookup};
use crate::raw::RawElement;

/// A dotted path, cut once: `a.b.0.c`. It remembers where it leads in the shape that it saw last.
pub struct Path {
    parts: Vec<String>,
    /// The parts with dots between them, and their hash, as shapes file paths.
    joined: Box<[u8]>,
    hash: u64,
    memo: Memo,
}

/// The number of the shape met last, the name's length, and the field's ordinal in the shape. One
/// word, so that threads that share a path never see halves of two.
struct Memo(AtomicU64);

const MEMO_ORDINAL_BITS: u32 = 16;
const MEMO_NAME_BITS: u32 = 16;
const MEMO_NUMBER_SHIFT: u32 = MEMO_ORDINAL_BITS + MEMO_NAME_BITS;
const _: () = assert!(shape::FIELD_COUNT_MAX < 1 << MEMO_ORDINAL_BITS);

impl Memo {
    #[inline(always)]
    fn get(&self) -> Remembered {
        let memo = self.0.load(Ordering::Relaxed);
        let number = (memo >> MEMO_NUMBER_SHIFT) as u32;
        let name_bytes = (memo >> MEMO_ORDINAL_BITS) as u16;
        Remembered { number, place: FieldSlot { ordinal: memo as u16, name_bytes } }
    }

    fn set(&self, Remembered { number, place }: Remembered) {
        let name = u64::from(place.name_bytes) << MEMO_ORDINAL_BITS;
        let memo = u64::from(number) << MEMO_NUMBER_SHIFT | name | u64::from(place.ordinal);
        self.0.store(memo, Ordering::Relaxed);
    }
}

impl Default for Memo {
    /// A memo of no shape.
    fn default() -> Memo {
        let memo = Memo(AtomicU64::new(0));
        memo.set(Remembered { number: shape::NUMBER_END, place: FieldSlot::ABSENT });
        memo
    }
}

/// The value that a path reached on one of its branches.
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
        Path::of_parts(dotted.split('.').map(str::to_owned).collect())
    }

    fn of_parts(parts: Vec<String>) -> Path {
        let joined = parts.join(".").into_bytes().into_boxed_slice();
        Path { hash: shape::hash(&joined), joined, parts, memo: Memo::default() }
    }

    /// The field of `shape` to which the path leads through documents; remembers it.
    fn place_in(&self, shape: &Shape) -> FieldSlot {
        let number = shape.number();
        let place = shape.find_dotted(&self.joined, self.hash);
        if number != shape::NO_NUMBER {
            self.memo.set(Remembered { number, place });
        }
        place
    }

    /// The names between the dots; at least one.
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// The value at the path through documents only (arrays are not entered): `None` if absent.
    #[inline]
    pub fn get<'a>(&self, document: Document<'a>) -> Option<Value<'a>> {
        self.find(document)?.decode()
    }

    /// As [`Path::get`], undecoded. All of the short way is here, and the long one a call that
    /// takes and gives registers alone: an element that is handed on through memory costs more than
    /// the rest.
    #[inline(always)]
    pub fn find<'a>(&self, document: Document<'a>) -> Option<RawElement<'a>> {
        let (bytes, attached) = document.into_parts();
        let spot = match document.at_remembered(self.memo.get()) {
            FieldLookup::At(spot) => spot,
            FieldLookup::Absent => return None,
            FieldLookup::Unindexed => self.look_up(bytes, attached)?,
        };
        spot.element(bytes)
    }

    #[inline(never)]
    fn look_up(&self, bytes: &[u8], attached: Option<&Attached>) -> Option<ElementSpot> {
        let document = Document::from_parts(bytes, attached);
        match document
            .index()
            .map(|index| index.at_path(bytes, &self.parts, |shape| self.place_in(shape)))
        {
            Some(FieldLookup::At(spot)) => Some(spot),
            Some(FieldLookup::Absent) => None,
            Some(FieldLookup::Unindexed) | None => {
                document.walk_to(self.parts.iter().map(String::as_str))
            }
        }
    }

    /// Calls `visit` with every value that a query's path reaches, as MongoDB fans out: through
    /// documents, through each element of an array on the way, and, where a part is a number, also
    /// through the array's element at that position. `None` is visited for a branch on which the
    /// path ends early (what `{a: null}` matches). Arrays at the end of the path are visited as
    /// they are: a caller that compares their elements too expands them. Stops when `visit` says
    /// `true` and returns whether it did.
    pub fn visit<'a>(
        &self,
        document: Document<'a>,
        visit: &mut dyn FnMut(Option<Value<'a>>) -> bool,
    ) -> bool {
        self.visit_reached(document, &mut |reached| visit(reached.value))
    }

    /// As [`Path::visit`], but shows where and how each value was reached.
    pub fn visit_reached<'a>(
        &self,
        document: Document<'a>,
        visit: &mut dyn FnMut(Reached<'a>) -> bool,
    ) -> bool {
        if document.is_indexed()
            && let Some(found) = self.find(document)
        {
            return visit_end(found.decode(), None, visit);
        }
        // Absent, or below an array: only a walk decides.
        walk_document(document, &self.parts, None, visit)
    }

    /// As [`Path::visit_reached`] for a document whose value of the path's first part is known.
    pub fn visit_reached_from<'a>(
        &self,
        first: Option<Value<'a>>,
        visit: &mut dyn FnMut(Reached<'a>) -> bool,
    ) -> bool {
        walk_value(first, &self.parts[1..], None, visit)
    }

    /// As [`Path::visit_reached`], from the value that the path's first `done` parts lead to, by
    /// an element at `position` perhaps.
    pub(crate) fn visit_reached_at<'a>(
        &self,
        value: Value<'a>,
        done: usize,
        position: Option<usize>,
        visit: &mut dyn FnMut(Reached<'a>) -> bool,
    ) -> bool {
        walk_value(Some(value), &self.parts[done..], position, visit)
    }

    /// As [`Path::visit_reached`], from the document that the path's first `done` parts lead
    /// to, by an element at `position` perhaps.
    pub(crate) fn visit_reached_in<'a>(
        &self,
        document: Document<'a>,
        done: usize,
        position: Option<usize>,
        visit: &mut dyn FnMut(Reached<'a>) -> bool,
    ) -> bool {
        walk_document(document, &self.parts[done..], position, visit)
    }

    /// As [`Path::visit_reached`], with the elements of arrays at the end of the path visited first
    /// and then the array itself, just as a comparison in a query sees them (rule 4).
    pub fn visit_leaves<'a>(
        &self,
        document: Document<'a>,
        visit: &mut dyn FnMut(Reached<'a>) -> bool,
    ) -> bool {
        self.visit_reached(document, &mut |reached| reached.visit_leaves(visit))
    }
}

impl<'a> Reached<'a> {
    /// Calls `visit` with the elements of an array that count, and then with this.
    pub fn visit_leaves(self, visit: &mut dyn FnMut(Reached<'a>) -> bool) -> bool {
        if let (true, Some(Value::Array(array))) = (self.is_expandable, self.value) {
            for (position, value) in array.iter().enumerate() {
                let position = self.position.or(Some(position));
                if visit(Reached { value: Some(value), position, is_expandable: false }) {
                    return true;
                }
            }
        }
        visit(self)
    }
}

/// Walks the path's `parts` from `document`. Recursion follows the nesting of the document, which
/// validation has bounded.
fn walk_document<'a>(
    document: Document<'a>,
    parts: &[String],
    position: Option<usize>,
    visit: Visit<'_, 'a>,
) -> bool {
    let Some((part, rest)) = parts.split_first() else { return false };
    walk_value(document.get(part), rest, position, visit)
}

/// Walks the rest of a path, `parts`, from the value that its part before them names.
fn walk_value<'a>(
    mut value: Option<Value<'a>>,
    mut parts: &[String],
    position: Option<usize>,
    visit: Visit<'_, 'a>,
) -> bool {
    while let Some((part, rest)) = parts.split_first() {
        match value {
            Some(Value::Document(inner)) => value = inner.get(part),
            Some(Value::Array(array)) => return walk_array(array, parts, position, visit),
            _ => return visit(Reached { value: None, position, is_expandable: false }),
        }
        parts = rest;
    }
    visit_end(value, position, visit)
}

/// Visits what a path's last part names.
fn visit_end<'a>(value: Option<Value<'a>>, position: Option<usize>, visit: Visit<'_, 'a>) -> bool {
    let is_expandable = match value {
        Some(Value::Reference(reference)) => reference.kind() == ElementType::Array,
        value => matches!(value, Some(Value::Array(_))),
    };
    visit(Reached { value, position, is_expandable })
}

/// Walks the path's `parts`, at least one, from inside `array`.
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

impl Clone for Path {
    fn clone(&self) -> Path {
        Path {
            memo: Memo::default(),
            joined: self.joined.clone(),
            parts: self.parts.clone(),
            ..*self
        }
    }
}

impl PartialEq for Path {
    fn eq(&self, other: &Path) -> bool {
        self.parts == other.parts
    }
}

impl Eq for Path {}

impl Hash for Path {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts.hash(state);
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Path").field("parts", &self.parts).finish()
    }
}

#[cfg(test)]
mod tests;
