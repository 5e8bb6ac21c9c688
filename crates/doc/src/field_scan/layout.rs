//! The layout that a walk may expect: names, types and lengths of a document's elements, in their
//! order.
//!
//! Documents of a collection mostly have the same outermost fields in the same order. A name that
//! is expected is compared, not looked for. The remaining cost is the chain from one element to the
//! next: where an element begins is known when the length of the one before has come from memory.
//! So lengths are expected too, if those seen before were all the same: the next element is looked
//! for where it should be, and the length that has come meanwhile says whether that was right.
//!
//! 1. Learnt is from a few documents, not from the first one that is asked for some names: it may
//!    be the only one.
//! 2. A walk follows the layout until an element has another name than expected, or the layout
//!    ends. It goes on from there as if it had walked all the way.
//! 3. An element begins so many bytes behind the *base*: where the elements would begin if all
//!    before had the lengths that are expected. An element of another type or length moves the
//!    base.
//!
//! *Invariant*: what is found is what a walk without a layout finds.

use std::sync::{Mutex, OnceLock};

use super::ScannedNames;
use crate::element_type::{ElementType, kind_of};
use crate::name_walk::Walk;
use crate::raw::{ValueSize, array_at, element_value_bytes, size_of_value};

/// No layout knows more fields: what lies behind is walked over.
const FIELD_COUNT_MAX: usize = 64;
/// A type, a name and its zero are compared as one number.
const FRONT_BYTES: usize = size_of::<u128>();
/// Type and zero.
const AROUND_NAME_BYTES: usize = 2;
/// The documents that are learnt from, behind the first one.
const LEARNT_COUNT: usize = 4;
/// The offset of the first element of a document.
const FIRST_OFFSET: usize = size_of::<u32>();

/// The layout of some documents, once it is known. Derived, so that clones begin anew.
#[derive(Default, Debug)]
pub(super) struct LearnedLayout {
    learning: Mutex<Learning>,
    layout: OnceLock<Layout>,
}

#[derive(Default, Debug)]
struct Learning {
    sample_count: usize,
    fields: Vec<Seen>,
}

/// A field of the documents that are learnt from.
#[derive(Debug)]
struct Seen {
    kind: ElementType,
    name: Vec<u8>,
    number: Option<u8>,
    value_bytes: usize,
    is_same: bool,
}

/// The first fields of a document.
#[derive(Debug)]
pub(super) struct Layout {
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    /// The type, the name and its zero.
    front: u128,
    /// The bits of the document to compare with the expected front.
    mask: u128,
    /// Its offset from the base.
    begin: u32,
    /// The offset of the next one, if this is as long as expected.
    next: u32,
    front_bytes: u8,
    kind: ElementType,
    /// Its number among those that are asked for.
    number: Option<u8>,
    length: Length,
}

/// The length of an element's value, or how it is found.
#[derive(Clone, Copy, Debug)]
enum Length {
    /// By its type.
    Fixed,
    /// It mostly begins with this length.
    Same(u32),
    /// It begins with a length, and has so many bytes more.
    Varying(u8),
    /// Otherwise.
    Other,
}

/// The progress of following a layout through a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    passed: usize,
    base: usize,
}

/// A field that is asked for.
pub(super) struct ScannedField<'a> {
    pub(super) number: u8,
    pub(super) offset: usize,
    pub(super) kind: ElementType,
    pub(super) value: &'a [u8],
}

/// The reason why a layout isn't followed further.
pub(super) enum LayoutExit {
    /// The caller that was shown a field said so.
    Stopped,
    /// The element that begins at this offset isn't the expected one.
    Unexpected(usize),
}

impl Progress {
    /// The state before the first field.
    pub(super) const START: Progress = Progress { passed: 0, base: FIRST_OFFSET };
}

impl Clone for LearnedLayout {
    fn clone(&self) -> LearnedLayout {
        LearnedLayout::default()
    }
}

impl LearnedLayout {
    /// The layout to expect of a document; learns from the document while there is none.
    #[inline]
    pub(super) fn layout(&self, document: &[u8], names: &ScannedNames) -> Option<&Layout> {
        self.layout.get().or_else(|| self.learn(document, names))
    }

    #[cold]
    fn learn(&self, document: &[u8], names: &ScannedNames) -> Option<&Layout> {
        // A thread that comes while another learns goes without.
        let mut learning = self.learning.try_lock().ok()?;
        learning.sample_count += 1;
        match learning.sample_count {
            1 => return None,
            2 => learning.fields = seen_in(document, names),
            _ => compare(&mut learning.fields, &seen_in(document, names)),
        }
        if LEARNT_COUNT < learning.sample_count {
            let fields = std::mem::take(&mut learning.fields);
            return Some(self.layout.get_or_init(|| Layout::of(&fields)));
        }
        None
    }
}

/// The fields at a document's front.
fn seen_in(document: &[u8], names: &ScannedNames) -> Vec<Seen> {
    let mut fields = Vec::new();
    let mut walk = Walk::over(document);
    while let Some(scanned) = walk.next() {
        if FIELD_COUNT_MAX == fields.len() || FRONT_BYTES < scanned.name.len() + AROUND_NAME_BYTES {
            break;
        }
        fields.push(Seen {
            kind: scanned.kind,
            name: scanned.name.to_vec(),
            number: names.position(scanned.head, scanned.name).map(|number| number as u8),
            value_bytes: scanned.value.len(),
            is_same: true,
        });
    }
    fields
}

/// Notes which of the fields that are known are not always the same. A document with another name
/// is compared up to that.
fn compare(known: &mut [Seen], others: &[Seen]) {
    for (known, other) in known.iter_mut().zip(others) {
        if known.name != other.name {
            break;
        }
        known.is_same &= known.kind == other.kind && known.value_bytes == other.value_bytes;
    }
}

impl Layout {
    fn of(fields: &[Seen]) -> Layout {
        let mut begin = 0;
        let mut made = Vec::with_capacity(fields.len());
        for field in fields {
            let Some(made_field) = Field::of(field, begin) else { break };
            begin = made_field.next;
            made.push(made_field);
        }
        Layout { fields: made }
    }

    /// Walks on over the elements that are as expected, and shows those that are asked for to
    /// `visit` until it says `true`.
    #[inline(always)]
    pub(super) fn follow<'a>(
        &self,
        document: &'a [u8],
        progress: &mut Progress,
        mut visit: impl FnMut(ScannedField<'a>) -> bool,
    ) -> LayoutExit {
        let Progress { passed, mut base } = *progress;
        let mut next = self.fields.get(passed).map_or(self.end(), |field| field.begin as usize);
        for (position, field) in self.fields.iter().enumerate().skip(passed) {
            let offset = base.wrapping_add(field.begin as usize);
            let Some(front) = front_at(document, offset) else {
                return LayoutExit::Unexpected(offset);
            };
            let differs = (front ^ field.front) & field.mask;
            // More is known of the lowest byte, the type, than that it is another.
            if differs > u128::from(u8::MAX) {
                return LayoutExit::Unexpected(offset);
            }
            let value_offset = offset + usize::from(field.front_bytes);
            next = field.next as usize;
            if !field.is_as_long(document, value_offset, differs == 0) {
                let Some(end) = field.end(document, offset, value_offset, differs == 0) else {
                    return LayoutExit::Unexpected(offset);
                };
                base = end.wrapping_sub(next);
            }
            let Some(number) = field.number else { continue };
            let kind = match differs {
                0 => Some(field.kind),
                _ => kind_of(front as u8),
            };
            let end = base.wrapping_add(next);
            let (Some(kind), Some(value)) = (kind, document.get(value_offset..end)) else {
                return LayoutExit::Unexpected(offset);
            };
            if visit(ScannedField { number, offset, kind, value }) {
                *progress = Progress { passed: position + 1, base };
                return LayoutExit::Stopped;
            }
        }
        LayoutExit::Unexpected(base.wrapping_add(next))
    }

    /// Returns where its last field ends, from the base.
    fn end(&self) -> usize {
        self.fields.last().map_or(0, |field| field.next as usize)
    }
}

impl Field {
    /// `None` of a field that is longer than is expected of any.
    fn of(seen: &Seen, begin: u32) -> Option<Field> {
        let mut front = [0; FRONT_BYTES];
        front[0] = seen.kind as u8;
        front[1..=seen.name.len()].copy_from_slice(&seen.name);
        let front_bytes = seen.name.len() + AROUND_NAME_BYTES;
        let value_bytes = u32::try_from(seen.value_bytes).ok()?;
        let length = match size_of_value(seen.kind) {
            ValueSize::Fixed(_) => Length::Fixed,
            ValueSize::Prefixed(more) if seen.is_same => {
                Length::Same(value_bytes.checked_sub(more.into())?)
            }
            ValueSize::Prefixed(more) => Length::Varying(more),
            ValueSize::Regex => Length::Other,
        };
        Some(Field {
            front: u128::from_le_bytes(front),
            mask: u128::MAX >> ((FRONT_BYTES - front_bytes) as u32 * u8::BITS),
            begin,
            next: begin.checked_add(front_bytes as u32)?.checked_add(value_bytes)?,
            front_bytes: front_bytes as u8,
            kind: seen.kind,
            number: seen.number,
            length,
        })
    }

    /// Whether the value that begins there is as long as expected. That is asked as a branch, which
    /// is foretold: what follows doesn't wait for the length.
    #[inline(always)]
    fn is_as_long(&self, document: &[u8], value_offset: usize, is_of_kind: bool) -> bool {
        match self.length {
            Length::Fixed => is_of_kind,
            Length::Same(stated) => is_of_kind && stated_at(document, value_offset) == Some(stated),
            Length::Varying(_) | Length::Other => false,
        }
    }

    /// Returns where a value ends that isn't as long as expected.
    #[inline(always)]
    fn end(
        &self,
        document: &[u8],
        offset: usize,
        value_offset: usize,
        is_of_kind: bool,
    ) -> Option<usize> {
        match self.length {
            Length::Varying(more) if is_of_kind => {
                let stated = stated_at(document, value_offset)? as usize;
                value_offset.checked_add(stated)?.checked_add(more.into())
            }
            _ => other_end(document, offset, value_offset),
        }
    }
}

#[inline(never)]
fn other_end(document: &[u8], offset: usize, value_offset: usize) -> Option<usize> {
    let bytes = element_value_bytes(*document.get(offset)?, document.get(value_offset..)?)?;
    value_offset.checked_add(bytes)
}

/// A length, as it lies: one below zero is longer than any document.
#[inline(always)]
fn stated_at(document: &[u8], offset: usize) -> Option<u32> {
    array_at(document, offset).map(u32::from_le_bytes)
}

/// Returns the bytes that begin at `offset`, filled with zeros behind the document's end.
#[inline(always)]
fn front_at(document: &[u8], offset: usize) -> Option<u128> {
    match array_at(document, offset) {
        Some(front) => Some(u128::from_le_bytes(front)),
        None => front_at_end(document, offset),
    }
}

fn front_at_end(document: &[u8], offset: usize) -> Option<u128> {
    let last = u128::from_le_bytes(*document.last_chunk()?);
    let there =
        document.len().checked_sub(offset).filter(|there| (1..FRONT_BYTES).contains(there))?;
    Some(last >> ((FRONT_BYTES - there) as u32 * u8::BITS))
}
