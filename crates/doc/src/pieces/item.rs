//! The items of a container: an element with its value, or with the hash of what its value became.
//!
//! A type byte with bit 6 says that the value lies elsewhere: its length in BSON and a hash follow
//! the name. (The largest key's type byte has that bit too; it has no value.)

use bytes::Bytes;
use frond_store::ChunkHash;
use frond_store::chunk::HASH_BYTES;

use super::{FIELD_VALUE_BYTES_MAX, ITEM_VALUE_BYTES_MAX, PiecesError};
use crate::builder::position_name;
use crate::element_type::ElementType;
use crate::element_type::kind_of;
use crate::raw::{RawElement, array_at, split_name, value_bytes};

/// Stored: never renumber.
const TAG_ELSEWHERE: u8 = 0x40;
/// An array that lies elsewhere and whose elements aren't named by their positions.
const TAG_NAMED_ARRAY: u8 = 0x60 | ElementType::Array as u8;
const TAG_LARGEST_KEY: u8 = ElementType::MaxKey as u8;

/// The length of a value that lies elsewhere.
const LENGTH_BYTES: usize = size_of::<u32>();

/// Whether an item that has a name has this one: of many that are passed over nothing else is
/// looked at.
pub(super) fn has_name(item: &[u8], name: &[u8]) -> bool {
    let rest = item.get(1..).and_then(|rest| rest.strip_prefix(name));
    rest.is_some_and(|rest| rest.first() == Some(&0))
}

/// The layout of a container's items.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Layout {
    /// With names.
    Document,
    /// Without: positions are the names.
    Array,
    /// With names, though it is an array.
    NamedArray,
}

impl Layout {
    pub(super) fn has_names(self) -> bool {
        self != Layout::Array
    }

    /// The longest value of that type that lies in the item itself.
    pub(super) fn value_bytes_max(self, kind: ElementType) -> usize {
        match (self, kind) {
            (_, ElementType::Document | ElementType::Array) => ITEM_VALUE_BYTES_MAX,
            (Layout::Document, _) => FIELD_VALUE_BYTES_MAX,
            (Layout::Array | Layout::NamedArray, _) => ITEM_VALUE_BYTES_MAX,
        }
    }
}

/// A container's item, taken apart.
#[derive(Clone, Debug)]
pub struct Item {
    /// The value's type.
    pub kind: ElementType,
    /// The element's name; empty in an array.
    pub name: Bytes,
    /// The value.
    pub(super) body: Body,
}

/// A container's item, borrowed from its leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct ItemRef<'a> {
    pub(super) kind: ElementType,
    pub(super) name: &'a [u8],
    pub(super) body: BodyRef<'a>,
}

/// The place of a borrowed item's value.
#[derive(Clone, Copy, Debug)]
pub(super) enum BodyRef<'a> {
    /// Here, as in BSON.
    Here(&'a [u8]),
    /// As in [`Body`].
    Elsewhere { layout: Option<Layout>, bytes: u64, root: ChunkHash },
}

/// The place of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Body {
    /// Here, as in BSON.
    Here(Bytes),
    /// A container, or (without a layout) slices.
    Elsewhere { layout: Option<Layout>, bytes: u64, root: ChunkHash },
}

/// Whether an item ends with a hash: what a sequence of items is built with.
pub(super) fn refers(item: &[u8]) -> bool {
    item.first().is_some_and(|tag| *tag & 0xc0 == TAG_ELSEWHERE && *tag != TAG_LARGEST_KEY)
}

impl<'a> ItemRef<'a> {
    /// Takes an item of a container apart.
    pub(super) fn decode(item: &'a [u8], layout: Layout) -> Result<ItemRef<'a>, PiecesError> {
        let damaged = |what| PiecesError::damaged(what);
        let (&tag, rest) = item.split_first().ok_or_else(|| damaged("an empty piece"))?;
        let (name, rest) = match layout.has_names() {
            true => split_name(rest).ok_or_else(|| damaged("a piece without a name"))?,
            false => (&rest[..0], rest),
        };
        if !refers(item) {
            let kind = kind_of(tag).ok_or_else(|| damaged("a piece of an unknown type"))?;
            if value_bytes(kind, rest) != Some(rest.len()) {
                return Err(damaged("a piece whose value has another length"));
            }
            return Ok(ItemRef { kind, name, body: BodyRef::Here(rest) });
        }
        let is_named_array = tag == TAG_NAMED_ARRAY;
        let type_byte =
            if is_named_array { ElementType::Array as u8 } else { tag & !TAG_ELSEWHERE };
        let kind = kind_of(type_byte).ok_or_else(|| damaged("a piece of an unknown type"))?;
        let layout = match kind {
            ElementType::Document => Some(Layout::Document),
            ElementType::Array if is_named_array => Some(Layout::NamedArray),
            ElementType::Array => Some(Layout::Array),
            _ => None,
        };
        let length = array_at(rest, 0).filter(|_| rest.len() == LENGTH_BYTES + HASH_BYTES);
        let bytes = length.map(|length| u64::from(u32::from_le_bytes(length)));
        let bytes = bytes.ok_or_else(|| damaged("a reference of another length"))?;
        let root = array_at(rest, LENGTH_BYTES).map(ChunkHash);
        let root = root.ok_or_else(|| damaged("a reference of another length"))?;
        Ok(ItemRef { kind, name, body: BodyRef::Elsewhere { layout, bytes, root } })
    }

    /// A copy that owns its bytes.
    pub(super) fn to_item(self) -> Item {
        let body = match self.body {
            BodyRef::Here(value) => Body::Here(Bytes::copy_from_slice(value)),
            BodyRef::Elsewhere { layout, bytes, root } => Body::Elsewhere { layout, bytes, root },
        };
        Item { kind: self.kind, name: Bytes::copy_from_slice(self.name), body }
    }

    /// Returns how long the element is in the BSON of its container, without the digits that an
    /// array names it by.
    pub(super) fn element_bytes(&self) -> u64 {
        let value = match self.body {
            BodyRef::Here(value) => value.len() as u64,
            BodyRef::Elsewhere { bytes, .. } => bytes,
        };
        (self.name.len() as u64).saturating_add(value).saturating_add(2)
    }
}

impl Item {
    /// Borrows it.
    pub(super) fn view(&self) -> ItemRef<'_> {
        let body = match &self.body {
            Body::Here(value) => BodyRef::Here(value),
            Body::Elsewhere { layout, bytes, root } => {
                BodyRef::Elsewhere { layout: *layout, bytes: *bytes, root: *root }
            }
        };
        ItemRef { kind: self.kind, name: &self.name, body }
    }

    /// The item's bytes, in a container of that layout.
    pub(super) fn encode(&self, layout: Layout) -> Bytes {
        let mut item = Vec::with_capacity(self.name.len() + 64);
        let named_array = Some(Layout::NamedArray);
        item.push(match &self.body {
            Body::Here(_) => self.kind as u8,
            Body::Elsewhere { layout, .. } if *layout == named_array => TAG_NAMED_ARRAY,
            Body::Elsewhere { .. } => self.kind as u8 | TAG_ELSEWHERE,
        });
        if layout.has_names() {
            item.extend_from_slice(&self.name);
            item.push(0);
        }
        match &self.body {
            Body::Here(value) => item.extend_from_slice(value),
            Body::Elsewhere { bytes, root, .. } => {
                // BSON ends at 2 GiB: a document that has one that says more is refused.
                let bytes = u32::try_from(*bytes).unwrap_or(u32::MAX);
                item.extend_from_slice(&bytes.to_le_bytes());
                item.extend_from_slice(&root.0);
            }
        }
        item.into()
    }

    /// Whether it has the same value, of the same type.
    pub fn is_equal(&self, other: &Item) -> bool {
        self.kind == other.kind && self.body == other.body
    }

    /// Whether it surely has that value: it is short, and the same.
    pub fn has_value(&self, element: &RawElement<'_>) -> bool {
        let is_same = |value: &[u8]| self.kind == element.kind && value == element.value;
        matches!(&self.body, Body::Here(value) if is_same(value))
    }

    /// Whether the value is a document or array that lies elsewhere.
    pub fn is_container(&self) -> bool {
        matches!(self.body, Body::Elsewhere { layout: Some(_), .. })
    }
}

/// Returns how many digits the names of so many elements have, all together.
pub(super) fn digits_of_names(count: u64) -> u64 {
    let (mut digits, mut from, mut width) = (0_u64, 0_u64, 1_u64);
    let mut end = 10_u64;
    while from < count {
        digits = digits.saturating_add((count.min(end) - from).saturating_mul(width));
        from = end;
        end = end.saturating_mul(10);
        width += 1;
    }
    digits
}

/// Whether an array's elements are named 0, 1, 2, ...
pub(super) fn is_named_by_position(array: &[u8]) -> bool {
    let mut digits = [0; 20];
    crate::raw::RawElements::new(array)
        .enumerate()
        .all(|(position, it)| it.name == position_name(position, &mut digits).as_bytes())
}
