//! Shapes: the names of documents' fields, interned, as JavaScript engines do with hidden classes.
//!
//! Documents of a collection mostly have the same names in the same order. A [`ShapeRegistry`]
//! knows each such list of names once, nested documents included (arrays not).
//!
//! 1. A document is walked beside the shapes that were seen last for documents that begin with the
//!    same names. A name that is expected is compared, not looked for, so this costs no more than
//!    any walk over the document.
//! 2. If its names differ from theirs, they are collected (the *signature*) and looked up.
//! 3. A signature becomes a shape when it is seen the second time. Names that are data never are.
//!
//! *Invariants*: 1. A registry never holds more than [`SHAPES_BYTES_MAX`], however documents look;
//! beyond that nothing is added. 2. A shape's table has each path once: with the first field of
//! that name, and nothing of what lies below a later one.

mod registry;
mod signature;

use std::iter::repeat_n;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use self::registry::ShapeRegistry;
use self::signature::{NESTED_END, fields_of};
use crate::element_type::{ElementType, kind_of};
use crate::raw::{array_at, length_at, split_name, value_bytes};
use crate::validate::DEPTH_MAX;

/// The greatest number of fields of a document with a shape, nested ones counted.
pub const FIELD_COUNT_MAX: usize = 4096;
/// The greatest number of bytes of names of a document with a shape, the path to each counted.
pub const NAME_BYTES_MAX: usize = 64 << 10;
/// Most memory of all shapes of a registry.
pub const SHAPES_BYTES_MAX: usize = 16 << 20;

/// Stands between the names of a path, as in a dotted path: a name may have it too, but then no
/// dotted path leads there.
pub(crate) const SEPARATOR: u8 = b'.';
/// A table in which more than so many slots are passed over for each has colliding names, and is
/// none.
const STEPS_MAX: usize = 4;

/// Makes numbers that no two shapes of the process share.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(NO_NUMBER as u64 + 1);
/// The number of all shapes that are made after the others are used up, some billions later: no
/// path remembers anything of them.
pub(crate) const NO_NUMBER: u32 = 0;
/// No shape has this number.
pub(crate) const NUMBER_END: u32 = u32::MAX;

/// The hash of a name, or of a dotted path: sixteen bytes at a time, the last ones perhaps twice,
/// multiplied and folded as wyhash does. Names are that short that a call would cost as much as all
/// of it.
#[inline(always)]
pub(crate) fn hash(name: &[u8]) -> u64 {
    let mut hash = name.len() as u64;
    let mut rest = name;
    while let Some((front, after)) = rest.split_first_chunk::<16>()
        && !after.is_empty()
    {
        let front = u128::from_le_bytes(*front);
        hash = fold(front as u64 ^ hash, (front >> u64::BITS) as u64);
        rest = after;
    }
    let (low, high) = match name.last_chunk::<16>() {
        Some(last) => {
            let last = u128::from_le_bytes(*last);
            (last as u64, (last >> u64::BITS) as u64)
        }
        None => ends(name),
    };
    fold(low ^ hash, high)
}

const ODD: [u64; 2] = [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];

#[inline(always)]
fn fold(low: u64, high: u64) -> u64 {
    let product = u128::from(low ^ ODD[0]) * u128::from(high ^ ODD[1]);
    product as u64 ^ (product >> u64::BITS) as u64
}

/// Returns the eight bytes that, behind `front`, make the hash zero whatever follows, for names of
/// so many bytes.
#[cfg(test)]
pub(super) fn zero_behind(front: &[u8; 16], name_bytes: u64) -> u64 {
    let front = u128::from_le_bytes(*front);
    ODD[0] ^ fold(front as u64 ^ name_bytes, (front >> u64::BITS) as u64)
}

/// Returns a name of less than sixteen bytes as two numbers, which together have each byte.
#[inline(always)]
fn ends(name: &[u8]) -> (u64, u64) {
    let wide = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
    if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        return (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        return (wide(first), wide(last));
    }
    (name.iter().fold(0, |before, byte| before << u8::BITS | u64::from(*byte)), 0)
}

/// One list of names.
#[derive(Debug)]
pub struct Shape {
    number: u32,
    /// The steps of a walk over a document of this shape.
    steps: Box<[Step]>,
    field_count: usize,
    /// Paths, one after the other.
    names: Box<[u8]>,
    /// Open addressing by the path's hash; a power of two, at most a third full.
    table: Box<[Slot]>,
}

/// An element, or the end of a nested document.
#[derive(Debug)]
struct Step {
    kind: StepKind,
    name_bytes: u16,
    /// The name and its zero, as far as they fit, and zeros: compared as one number.
    front: u128,
    /// The bits of the document to compare with `front`.
    mask: u128,
    /// The part of the name and its zero that does not fit into `front`.
    rest: Box<[u8]>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StepKind {
    Field,
    Document,
    /// The end of the nested document that the field of that ordinal is; the step's name is the
    /// field's.
    End(u16),
}

/// The offset of an element in a document: two bytes in documents that are that short.
pub(super) trait Offset: Copy + Default + Into<u32> {
    /// Narrows what is known to fit.
    fn of(offset: usize) -> Self;
}

impl Offset for u16 {
    #[inline(always)]
    fn of(offset: usize) -> u16 {
        offset as u16
    }
}

impl Offset for u32 {
    #[inline(always)]
    fn of(offset: usize) -> u32 {
        offset as u32
    }
}

/// The bytes of a name that are compared as one number.
const FRONT_BYTES: usize = size_of::<u128>();

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Bits of the hash that don't choose the slot.
    tag: u32,
    /// The place of the path in `names`, and its length.
    path_offset: u32,
    path_bytes: u16,
    ordinal: u16,
    /// The length of the path's last name.
    name_bytes: u16,
    /// The number of names the path has; 0 if the slot is empty.
    depth: u8,
    /// Whether no name of the path has a separator in it.
    is_plain: bool,
}
const _: () = assert!(size_of::<Slot>() == 16 && DEPTH_MAX <= u8::MAX as usize);

/// A field of a shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldSlot {
    /// Its position among all fields, a nested document's after it.
    pub(crate) ordinal: u16,
    /// The length of its name.
    pub(crate) name_bytes: u16,
}

impl FieldSlot {
    /// The slot behind the last field of any shape.
    pub(crate) const ABSENT: FieldSlot = FieldSlot { ordinal: u16::MAX, name_bytes: 0 };
}
const _: () = assert!(FIELD_COUNT_MAX < u16::MAX as usize);

/// The field that a path leads to in the shape of that number.
#[derive(Clone, Copy)]
pub(crate) struct Remembered {
    pub(crate) number: u32,
    pub(crate) place: FieldSlot,
}

impl Shape {
    /// A number that no other shape of the process has, or [`NO_NUMBER`].
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Returns how many fields it has.
    pub fn field_count(&self) -> usize {
        self.field_count
    }

    /// The outermost field of that name.
    #[inline]
    pub(crate) fn find_name(&self, name: &[u8]) -> FieldSlot {
        self.find(name, hash(name), |slot| slot.depth == 1)
    }

    /// The field at a dotted path through documents, whose hash that is.
    #[inline]
    pub(crate) fn find_dotted(&self, path: &[u8], hash: u64) -> FieldSlot {
        self.find(path, hash, |slot| slot.is_plain)
    }

    #[inline(always)]
    fn find(&self, path: &[u8], hash: u64, fits: impl Fn(&Slot) -> bool) -> FieldSlot {
        let mask = self.table.len() - 1;
        let mut position = hash as usize & mask;
        loop {
            let Some(slot) = self.table.get(position).filter(|slot| slot.depth != 0) else {
                return FieldSlot::ABSENT;
            };
            if slot.tag == tag(hash) && fits(slot) {
                let offset = slot.path_offset as usize;
                let there = self.names.get(offset..offset + usize::from(slot.path_bytes));
                if there.is_some_and(|there| is_same_name(there, path)) {
                    return FieldSlot { ordinal: slot.ordinal, name_bytes: slot.name_bytes };
                }
            }
            position = (position + 1) & mask;
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Shape>()
            + self.steps.iter().map(Step::bytes).sum::<usize>()
            + self.names.len()
            + size_of_val(&*self.table)
    }

    /// Makes a shape; `None` if its paths are too long, or have equal hashes.
    fn of(signature: &[u8]) -> Option<Shape> {
        let fields = fields_of(signature)?;
        let slot_count = (fields.len() * 3).next_power_of_two().max(2);
        let mut table = vec![Slot::default(); slot_count].into_boxed_slice();
        let mut names = Vec::new();
        let field_count = fields.len();
        let mut steps_left = slot_count * STEPS_MAX;
        for (ordinal, field) in fields.into_iter().enumerate() {
            let Some(path) = field.path else { continue };
            if NAME_BYTES_MAX < names.len() + path.len() {
                return None;
            }
            let hash = hash(&path);
            let mut position = hash as usize & (slot_count - 1);
            let mut is_known = false;
            while table[position].depth != 0 {
                steps_left = steps_left.checked_sub(1)?;
                let slot = &table[position];
                let offset = slot.path_offset as usize;
                is_known |= slot.depth == field.depth
                    && names[offset..offset + usize::from(slot.path_bytes)] == *path;
                position = (position + 1) & (slot_count - 1);
            }
            if !is_known {
                table[position] = Slot {
                    tag: tag(hash),
                    path_offset: names.len() as u32,
                    path_bytes: u16::try_from(path.len()).ok()?,
                    ordinal: ordinal as u16,
                    name_bytes: field.name_bytes,
                    depth: field.depth,
                    is_plain: path.iter().filter(|byte| **byte == SEPARATOR).count() + 1
                        == usize::from(field.depth),
                };
                names.extend_from_slice(&path);
            }
        }
        Some(Shape {
            number: next_number(),
            steps: steps_of(signature)?,
            field_count,
            names: names.into(),
            table,
        })
    }

    /// Walks a document beside the shape: the offsets of its elements if it has exactly these
    /// names.
    pub(super) fn offsets<O: Offset>(&self, bytes: &[u8]) -> Option<Arc<[O]>> {
        let mut offsets: Arc<[O]> = repeat_n(O::default(), self.field_count).collect();
        let places = Arc::get_mut(&mut offsets)?;
        let (mut offset, mut ordinal) = (size_of::<i32>(), 0);
        for step in &self.steps {
            if let StepKind::End(opened) = step.kind {
                // The nested document must end here: behind its last element lies a zero.
                let opened: u32 = (*places.get(usize::from(opened))?).into();
                let value_offset = opened as usize + usize::from(step.name_bytes) + 2;
                let end = value_offset.checked_add(length_at(bytes, value_offset)?)?;
                if bytes.get(offset) != Some(&0) || offset + 1 != end {
                    return None;
                }
                offset = end;
                continue;
            }
            if !step.is_named(bytes, offset + 1) {
                return None;
            }
            let kind = kind_of(*bytes.get(offset)?)?;
            let is_document = kind == ElementType::Document;
            if is_document != (step.kind == StepKind::Document) {
                return None;
            }
            *places.get_mut(ordinal)? = O::of(offset);
            ordinal += 1;
            let value_offset = offset + usize::from(step.name_bytes) + 2;
            offset = match is_document {
                true => value_offset + size_of::<i32>(),
                false => {
                    value_offset.checked_add(value_bytes(kind, bytes.get(value_offset..)?)?)?
                }
            };
        }
        (bytes.get(offset) == Some(&0) && offset + 1 == bytes.len()).then_some(offsets)
    }
}

fn next_number() -> u32 {
    let number = u32::try_from(NEXT_NUMBER.fetch_add(1, Ordering::Relaxed)).unwrap_or(NUMBER_END);
    if number == NUMBER_END { NO_NUMBER } else { number }
}

impl Step {
    /// Whether the name and its zero stand at `offset`.
    #[inline(always)]
    fn is_named(&self, bytes: &[u8], offset: usize) -> bool {
        let Some(front) = array_at::<FRONT_BYTES>(bytes, offset) else {
            return self.is_named_at_end(bytes, offset);
        };
        u128::from_le_bytes(front) & self.mask == self.front
            && (self.rest.is_empty() || self.is_rest_at(bytes, offset + FRONT_BYTES))
    }

    fn is_rest_at(&self, bytes: &[u8], offset: usize) -> bool {
        bytes.get(offset..).unwrap_or(&[]).starts_with(&self.rest)
    }

    /// Whether the name stands at the very end of the document.
    #[cold]
    fn is_named_at_end(&self, bytes: &[u8], offset: usize) -> bool {
        let front = self.front.to_le_bytes();
        let name = &front[..(usize::from(self.name_bytes) + 1).min(FRONT_BYTES)];
        self.rest.is_empty() && bytes.get(offset..).unwrap_or(&[]).starts_with(name)
    }

    fn bytes(&self) -> usize {
        size_of::<Step>() + self.rest.len()
    }
}

/// The steps of a signature, without the outermost document's end.
fn steps_of(signature: &[u8]) -> Option<Box<[Step]>> {
    let mut steps = Vec::new();
    // The ordinal, and the length of the name, of each open document but the outermost.
    let (mut open, mut ordinal) = (Vec::new(), 0_u16);
    let mut rest = signature;
    while let Some((first, after)) = rest.split_first() {
        if *first == NESTED_END {
            if let Some((opened, name_bytes)) = open.pop() {
                let kind = StepKind::End(opened);
                steps.push(Step { kind, name_bytes, front: 0, mask: 0, rest: Box::default() });
            }
            rest = after;
            continue;
        }
        let (name, after) = split_name(rest)?;
        let (is_document, after) = after.split_first()?;
        let with_zero = &rest[..name.len() + 1];
        let (front, behind) = with_zero.split_at(with_zero.len().min(FRONT_BYTES));
        let mut padded = [0; FRONT_BYTES];
        padded[..front.len()].copy_from_slice(front);
        let name_bytes = u16::try_from(name.len()).ok()?;
        let unused = (FRONT_BYTES - front.len()) as u32 * u8::BITS;
        steps.push(Step {
            kind: if *is_document == 1 { StepKind::Document } else { StepKind::Field },
            name_bytes,
            front: u128::from_le_bytes(padded),
            // The lowest bytes are the first ones.
            mask: u128::MAX >> unused,
            rest: behind.into(),
        });
        if *is_document == 1 {
            open.push((ordinal, name_bytes));
        }
        ordinal = ordinal.checked_add(1)?;
        rest = after;
    }
    Some(steps.into())
}

/// Whether two names are equal. Most have some ten bytes, and paths some thirty: two numbers of
/// each, without a call.
#[inline(always)]
fn is_same_name(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    match left.len() {
        8..=16 => {
            left.first_chunk::<8>() == right.first_chunk()
                && left.last_chunk::<8>() == right.last_chunk()
        }
        17..=32 => {
            left.first_chunk::<16>() == right.first_chunk()
                && left.last_chunk::<16>() == right.last_chunk()
        }
        _ => left == right,
    }
}

#[inline]
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}
