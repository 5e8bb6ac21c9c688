//! A walk over a document's elements that reads names as numbers.
//!
//! A name is read as two numbers: finding its end and comparing it with those that are wanted costs
//! a few instructions for names of less than sixteen bytes, which most are.

use crate::element_type::{ElementType, kind_of};
use crate::raw::{RawElement, array_at, split_name, value_bytes};

/// The first of a document's outermost fields that has this name, by a scan.
pub(crate) fn find<'a>(document: &'a [u8], name: &[u8]) -> Option<RawElement<'a>> {
    let head = Head::of(name);
    let mut walk = Walk::over(document);
    while let Some(field) = walk.next() {
        // A name that is asked for with a zero in it is no field's.
        if field.head == head && field.name == name {
            return Some(RawElement { kind: field.kind, name: field.name, value: field.value });
        }
    }
    None
}

/// A name's first sixteen bytes, padded with zeros. A name has no zero, so that this is all of one
/// that is shorter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    low: u64,
    high: u64,
}

/// A walk over elements that reads names as numbers.
#[derive(Clone)]
pub(crate) struct Walk<'a> {
    pub(crate) bytes: &'a [u8],
    /// The offset of the next element.
    pub(crate) offset: usize,
}

/// One element.
pub(crate) struct WalkedElement<'a> {
    pub(crate) kind: ElementType,
    pub(crate) head: Head,
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl<'a> Walk<'a> {
    pub(crate) fn over(bytes: &'a [u8]) -> Walk<'a> {
        Walk { bytes, offset: size_of::<u32>() }
    }

    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<WalkedElement<'a>> {
        let rest = self.bytes.get(self.offset..)?;
        let (&kind, rest) = rest.split_first()?;
        let kind = kind_of(kind)?;
        let (head, name_bytes) = match rest.first_chunk::<16>() {
            Some(front) => Head::cut(front),
            None => {
                let mut front = [0; 16];
                front[..rest.len()].copy_from_slice(rest);
                Head::cut(&front)
            }
        };
        let name_bytes = match name_bytes {
            Some(name_bytes) => name_bytes,
            None => split_name(rest)?.0.len(),
        };
        let (name, rest) = rest.split_at_checked(name_bytes)?;
        let (_, rest) = rest.split_first()?;
        let value = rest.get(..value_bytes(kind, rest)?)?;
        self.offset += 2 + name_bytes + value.len();
        Some(WalkedElement { kind, head, name, value })
    }
}

impl Head {
    pub(crate) fn of(name: &[u8]) -> Head {
        let mut front = [0; 16];
        let count = name.len().min(front.len());
        front[..count].copy_from_slice(&name[..count]);
        Head::cut(&front).0
    }

    /// The head of a name that begins there, and how long the name is, if it ends there too.
    #[inline]
    fn cut(front: &[u8; 16]) -> (Head, Option<usize>) {
        let word = |offset| u64::from_le_bytes(array_at(front, offset).unwrap_or_default());
        let (low, high) = (word(0), word(8));
        if let Some(bits) = zero_bits(low) {
            return (Head { low: below(low, bits), high: 0 }, Some(bits as usize / 8));
        }
        match zero_bits(high) {
            Some(bits) => (Head { low, high: below(high, bits) }, Some(8 + bits as usize / 8)),
            None => (Head { low, high }, None),
        }
    }

    /// Whether the name ends in it.
    pub(crate) fn is_whole(self) -> bool {
        self.high >> 56 == 0
    }
}

/// Returns how many bits lie before the first byte that is zero: Mycroft's test, whose lowest bit
/// is exact.
#[inline]
fn zero_bits(word: u64) -> Option<u32> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let zeros = word.wrapping_sub(ONES) & !word & HIGHS;
    (zeros != 0).then(|| zeros.trailing_zeros() & !7)
}

/// The lowest bits of a word, less than all.
#[inline]
fn below(word: u64, bits: u32) -> u64 {
    word & ((1 << bits) - 1)
}
