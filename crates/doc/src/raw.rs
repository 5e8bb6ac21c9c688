//! Walking over the elements of a document without decoding them: the one place that knows how
//! long each type's bytes are.
//!
//! Bytes were validated when they came in, so names and strings are UTF-8. Safe Rust still has to
//! be shown that, which `text` does; a scan that looks for one name compares bytes and pays it
//! for the value found alone. Bytes that aren't BSON end a scan early; nothing here panics.

use crate::element_type::{ElementType, kind_of};
use crate::reference::REFERENCE_BYTES;

/// One element: its type, its name, and the bytes of its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawElement<'a> {
    /// The type byte.
    pub kind: ElementType,
    /// The name without its final zero.
    pub name: &'a [u8],
    /// The value's bytes, with the length in front where the type has one.
    pub value: &'a [u8],
}

/// An iterator over the elements of a document, undecoded.
#[derive(Clone)]
pub struct RawElements<'a> {
    rest: &'a [u8],
}

impl<'a> RawElements<'a> {
    /// Walks over a whole document: length, elements, final zero.
    pub fn new(document: &'a [u8]) -> RawElements<'a> {
        RawElements { rest: document.get(4..).unwrap_or(&[]) }
    }

    /// Returns the bytes that are still to be walked over, the document's final zero included.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for RawElements<'a> {
    type Item = RawElement<'a>;

    #[inline]
    fn next(&mut self) -> Option<RawElement<'a>> {
        let (&kind, rest) = self.rest.split_first()?;
        let kind = kind_of(kind)?;
        let (name, rest) = split_name(rest)?;
        let (value, rest) = rest.split_at_checked(value_bytes(kind, rest)?)?;
        self.rest = rest;
        Some(RawElement { kind, name, value })
    }
}

impl<'a> RawElement<'a> {
    /// The name as text.
    pub fn name(&self) -> Option<&'a str> {
        text(self.name)
    }
}

/// The element at `offset` of a document, whose name is known to have so many bytes.
#[inline(always)]
pub(crate) fn element_at(
    document: &[u8],
    offset: usize,
    name_bytes: usize,
) -> Option<RawElement<'_>> {
    // Both are of things in memory: their sum doesn't overflow. In this order, one look at the
    // length is enough.
    let name_end = offset + (name_bytes + 1);
    let rest = document.get(name_end + 1..)?;
    let (&kind, name) = document.get(offset..name_end)?.split_first()?;
    // A branch that is foretold doesn't wait for the tables, and most values are strings.
    let (kind, bytes) = match kind == ElementType::String as u8 {
        // A length below zero is longer than any document.
        true => {
            let stated = u32::from_le_bytes(array_at(rest, 0)?) as usize;
            (ElementType::String, stated.saturating_add(size_of::<i32>()))
        }
        false => {
            let kind = kind_of(kind)?;
            (kind, value_bytes(kind, rest)?)
        }
    };
    Some(RawElement { kind, name, value: rest.get(..bytes)? })
}

/// Splits a zero-terminated name from the front.
#[inline]
pub(crate) fn split_name(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = name_at(bytes, 0)?.bytes;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// A zero-terminated name, as far as a walk wants to know it.
pub(crate) struct Name {
    /// The length of its bytes.
    pub(crate) bytes: usize,
    /// Whether it is ASCII, and so UTF-8.
    pub(crate) is_ascii: bool,
}

/// The name at `offset`: eight bytes at a time, since names are mostly that short.
#[inline(always)]
pub(crate) fn name_at(bytes: &[u8], offset: usize) -> Option<Name> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let (mut end, mut bits_of_all) = (offset, 0);
    while let Some(word) = array_at(bytes, end) {
        let word = u64::from_le_bytes(word);
        // The lowest of these bits is at the first byte that is zero (Mycroft's test).
        let zeros = word.wrapping_sub(ONES) & !word & HIGHS;
        if zeros != 0 {
            let bits = zeros.trailing_zeros() & !7;
            bits_of_all |= word & ((1 << bits) - 1);
            return Some(Name {
                bytes: end - offset + bits as usize / 8,
                is_ascii: bits_of_all & HIGHS == 0,
            });
        }
        bits_of_all |= word;
        end += size_of::<u64>();
    }
    let rest = bytes.get(end..)?;
    let count = rest.iter().position(|byte| *byte == 0)?;
    let is_ascii = bits_of_all & HIGHS == 0 && rest[..count].is_ascii();
    Some(Name { bytes: end - offset + count, is_ascii })
}

/// Whether bytes are ASCII: by words, the last of which may overlap the one before. Texts are
/// mostly some tens of bytes, many of which the standard library looks at one by one.
#[inline(always)]
pub(crate) fn is_ascii(bytes: &[u8]) -> bool {
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let (words, rest) = bytes.as_chunks::<8>();
    let bits_of_all =
        words.iter().fold(0, |bits_of_all, word| bits_of_all | u64::from_le_bytes(*word));
    let last = match bytes.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last),
        None => rest.iter().fold(0, |bits_of_all, byte| bits_of_all | u64::from(*byte)),
    };
    (bits_of_all | last) & HIGHS == 0
}

/// Shows safe Rust that bytes are UTF-8.
#[inline]
pub(crate) fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// The `COUNT` bytes at `offset`.
#[inline]
pub(crate) fn array_at<const COUNT: usize>(bytes: &[u8], offset: usize) -> Option<[u8; COUNT]> {
    bytes.get(offset..)?.first_chunk().copied()
}

/// A length: BSON's are signed, and never negative.
#[inline]
pub(crate) fn length_at(bytes: &[u8], offset: usize) -> Option<usize> {
    usize::try_from(i32::from_le_bytes(array_at(bytes, offset)?)).ok()
}

/// The length of a type's values, or how it is found.
#[derive(Clone, Copy)]
pub(crate) enum ValueSize {
    /// All are that long.
    Fixed(u8),
    /// A length in front, and that many bytes more than it says.
    Prefixed(u8),
    /// Two texts that end with a zero.
    Regex,
}

/// The sizes by type byte: a load instead of a jump, which scans feel.
static SIZES: [ValueSize; 256] = sizes();

const fn sizes() -> [ValueSize; 256] {
    let mut sizes = [ValueSize::Fixed(0); 256]; // Undefined, null, and the smallest and largest key.
    let mut byte = 0;
    while byte < sizes.len() {
        use ElementType::*;
        if let Some(kind) = ElementType::from_byte(byte as u8) {
            sizes[byte] = match kind {
                Double | DateTime | Timestamp | Int64 => ValueSize::Fixed(8),
                Int32 => ValueSize::Fixed(4),
                ObjectId => ValueSize::Fixed(12),
                Boolean => ValueSize::Fixed(1),
                Decimal128 => ValueSize::Fixed(16),
                Reference => ValueSize::Fixed(REFERENCE_BYTES as u8),
                Undefined | Null | MinKey | MaxKey => ValueSize::Fixed(0),
                String | JavaScript | Symbol => ValueSize::Prefixed(4),
                Document | Array | JavaScriptWithScope => ValueSize::Prefixed(0),
                Binary => ValueSize::Prefixed(5),
                DbPointer => ValueSize::Prefixed(16),
                Regex => ValueSize::Regex,
            };
        }
        byte += 1;
    }
    sizes
}

/// Returns how many bytes a value takes that begins at the front of `rest`. They need not all be
/// there.
#[inline(always)]
pub(crate) fn value_bytes(kind: ElementType, rest: &[u8]) -> Option<usize> {
    // As in `element_at`.
    if kind == ElementType::String {
        return string_bytes(rest);
    }
    match size_of_value(kind) {
        ValueSize::Fixed(bytes) => Some(usize::from(bytes)),
        ValueSize::Prefixed(more) => length_at(rest, 0)?.checked_add(usize::from(more)),
        ValueSize::Regex => regex_bytes(rest),
    }
}

/// Returns how the length of a value of that type is found.
#[inline(always)]
pub(crate) fn size_of_value(kind: ElementType) -> ValueSize {
    SIZES[usize::from(kind as u8)]
}

/// As [`value_bytes`], of a type byte.
#[inline(always)]
pub(crate) fn element_value_bytes(kind: u8, rest: &[u8]) -> Option<usize> {
    // As in `element_at`.
    if kind == ElementType::String as u8 {
        return string_bytes(rest);
    }
    value_bytes(kind_of(kind)?, rest)
}

/// Returns how many bytes a string takes.
#[inline(always)]
fn string_bytes(rest: &[u8]) -> Option<usize> {
    length_at(rest, 0)?.checked_add(size_of::<i32>())
}

#[cold]
fn regex_bytes(rest: &[u8]) -> Option<usize> {
    let (pattern, rest) = split_name(rest)?;
    let (options, _) = split_name(rest)?;
    Some(pattern.len() + options.len() + 2)
}
