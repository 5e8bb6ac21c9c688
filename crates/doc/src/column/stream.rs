//! The values of one field: literals, and differences from the value before.
//!
//! 1. A literal is an element with an empty name.
//! 2. Behind it stand words of numbers ([`super::simple8b`]): each the difference of a value from
//!    the one before, its sign in the lowest bit. Of dates, timestamps and ObjectIds it is the
//!    difference of differences. 0 repeats a value of any type.
//! 3. Values of 16 bytes (texts, binaries, decimals) are numbers of 128 bits, others of 64.
//! 4. Doubles are whole numbers once they are multiplied by the scale in the words' control byte,
//!    or their bits are.

use std::collections::VecDeque;

use bytes::Bytes;

use super::simple8b::{self, Slot};
use super::{ColumnValue, invalid};
use crate::element_type::{ElementType, kind_of};
use crate::error::DocError;
use crate::raw::value_bytes;

/// Bytes of values that are numbers of 128 bits.
const WIDE_BYTES_MAX: usize = 16;
const WORD_BYTES: usize = 8;
/// Whole numbers up to here are doubles exactly.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
/// The scales of control bytes from `0x90` on.
const SCALES: [f64; 5] = [1.0, 10.0, 100.0, 10_000.0, 100_000_000.0];

/// The meaning of the numbers in words, by their control byte.
#[derive(Clone, Copy)]
enum Scale {
    /// Numbers as they are.
    Plain,
    /// Doubles, multiplied.
    Times(f64),
}

/// The state of reading one field's values.
#[derive(Default)]
pub struct Stream {
    last: Option<ColumnValue>,
    /// The last value as a number, and how far it was from the one before it.
    number: u128,
    step: u64,
    scale: Option<Scale>,
    slots: VecDeque<Slot>,
    /// The last number of the words before; none of the literal's.
    previous: Option<Slot>,
}

impl Stream {
    /// Begins behind `last`.
    pub fn behind(last: Option<ColumnValue>) -> Stream {
        let number = last.as_ref().map_or(0, number_of);
        Stream { last, number, ..Stream::default() }
    }

    /// Begins behind an object that several streams made: nothing but its repetition follows.
    pub fn behind_object(last: Option<ColumnValue>) -> Stream {
        Stream { last, ..Stream::default() }
    }

    /// The next value whose words were read; `None` if the next control byte has to be.
    ///
    /// # Errors
    /// [`DocError::Invalid`] for a difference from what has none.
    pub fn next(&mut self) -> Result<Option<Option<ColumnValue>>, DocError> {
        let Some(slot) = self.slots.pop_front() else { return Ok(None) };
        self.previous = Some(slot);
        let Some((number, last)) = slot.zip(self.last.clone()) else { return Ok(Some(None)) };
        let is_stepped = is_stepped(last.kind);
        if number == 0 && !is_stepped {
            return Ok(Some(Some(last)));
        }
        if is_wide(last.kind) {
            let difference = number >> 1 ^ (number & 1).wrapping_neg();
            self.number = self.number.wrapping_add(difference);
        } else {
            let number = number as u64;
            let difference = number >> 1 ^ (number & 1).wrapping_neg();
            let now = self.number as u64;
            self.step = if is_stepped { self.step.wrapping_add(difference) } else { difference };
            self.number = u128::from(now.wrapping_add(self.step));
        }
        let value = self.value_like(&last)?;
        self.last = Some(value.clone());
        Ok(Some(Some(value)))
    }

    /// Reads what begins with a control byte, and returns its length.
    ///
    /// # Errors
    /// [`DocError::Invalid`] for what no column has there.
    pub fn load(&mut self, rest: &[u8]) -> Result<usize, DocError> {
        let control = *rest.first().ok_or_else(cut)?;
        let count = usize::from(control & 15) + 1;
        let scale = match control >> 4 {
            8 => Scale::Plain,
            high @ 9..=13 => Scale::Times(SCALES[usize::from(high) - 9]),
            _ => return Err(invalid(format!("no control byte {control:02x}"))),
        };
        self.set_scale(scale)?;
        let words = rest.get(1..1 + count * WORD_BYTES).ok_or_else(cut)?;
        let mut slots = Vec::new();
        let mut previous = self.previous.unwrap_or(Some(0));
        for word in words.chunks_exact(WORD_BYTES) {
            let word = u64::from_le_bytes(word.try_into().expect("a word has eight bytes"));
            simple8b::read(word, previous, &mut slots)?;
            previous = slots.last().copied().unwrap_or(previous);
        }
        self.slots.extend(slots);
        Ok(1 + words.len())
    }

    fn set_scale(&mut self, scale: Scale) -> Result<(), DocError> {
        let double = match &self.last {
            Some(last) if last.kind == ElementType::Double => f64::from_bits(integer_of(last)),
            _ if matches!(scale, Scale::Plain) => return Ok(()),
            _ => return Err(invalid("a scale of what is no double".to_owned())),
        };
        self.number = match scale {
            Scale::Plain => u128::from(double.to_bits()),
            Scale::Times(scale) => {
                let scaled = double * scale;
                if !(-EXACT_MAX..=EXACT_MAX).contains(&scaled) {
                    return Err(invalid("a double that its scale makes no number".to_owned()));
                }
                u128::from(scaled.round() as i64 as u64)
            }
        };
        self.scale = Some(scale);
        Ok(())
    }

    /// The value that the number is now, of the type that the last one has.
    fn value_like(&self, last: &ColumnValue) -> Result<ColumnValue, DocError> {
        use ElementType::*;
        let number = self.number as u64;
        let value = match last.kind {
            Double => {
                let double = match self.scale {
                    Some(Scale::Times(scale)) => number as i64 as f64 / scale,
                    _ => f64::from_bits(number),
                };
                double.to_le_bytes().to_vec()
            }
            ObjectId => object_id(number, &last.value)?,
            DateTime | Int64 | Timestamp => number.to_le_bytes().to_vec(),
            Boolean => vec![u8::from(number != 0)],
            Int32 => (number as u32).to_le_bytes().to_vec(),
            Decimal128 => self.number.to_le_bytes().to_vec(),
            String | JavaScript => text(self.number),
            Binary => {
                let bytes = last.value.len().saturating_sub(5);
                if WIDE_BYTES_MAX < bytes {
                    return Err(invalid("a difference of long binaries".to_owned()));
                }
                [&last.value[..5], &self.number.to_le_bytes()[..bytes]].concat()
            }
            kind => return Err(invalid(format!("a difference of values of type {kind:?}"))),
        };
        Ok(ColumnValue { kind: last.kind, value: Bytes::from(value) })
    }
}

/// Reads a literal, if one begins here, and returns its length.
///
/// # Errors
/// [`DocError::Invalid`] if it is cut.
pub fn literal(rest: &[u8]) -> Result<Option<(ColumnValue, usize)>, DocError> {
    let control = *rest.first().ok_or_else(cut)?;
    if 0x20 <= control && !matches!(control, 0x7f | 0xff) {
        return Ok(None);
    }
    let kind = kind_of(control).ok_or_else(|| invalid(format!("no type {control:02x}")))?;
    let value = rest.get(2..).filter(|_| rest[1] == 0).ok_or_else(cut)?;
    let bytes = value_bytes(kind, value).ok_or_else(cut)?;
    let value = value.get(..bytes).ok_or_else(cut)?;
    crate::validate::check_element(kind, value, 1)?;
    Ok(Some((ColumnValue { kind, value: Bytes::copy_from_slice(value) }, 2 + bytes)))
}

fn cut() -> DocError {
    invalid("it is cut".to_owned())
}

fn is_stepped(kind: ElementType) -> bool {
    matches!(kind, ElementType::ObjectId | ElementType::DateTime | ElementType::Timestamp)
}

fn is_wide(kind: ElementType) -> bool {
    use ElementType::*;
    matches!(kind, String | JavaScript | Binary | Decimal128)
}

/// A literal as a number; doubles get theirs with a scale.
fn number_of(literal: &ColumnValue) -> u128 {
    use ElementType::*;
    let value = &literal.value;
    match literal.kind {
        ObjectId => u128::from(number_of_id(value)),
        Int32 => u128::from(i32_of(value) as i64 as u64),
        DateTime | Int64 | Timestamp => u128::from(integer_of(literal)),
        Boolean => value.first().map_or(0, |byte| u128::from(*byte)),
        Decimal128 => wide(value),
        Binary => wide(value.get(5..).unwrap_or(&[])),
        // The end of a text changes most, so it has the low bits.
        String | JavaScript => {
            let text = value.get(4..value.len().saturating_sub(1)).unwrap_or(&[]);
            let reversed: Vec<u8> = text.iter().rev().copied().take(WIDE_BYTES_MAX + 1).collect();
            if text.first() == Some(&0) { 0 } else { wide(&reversed) }
        }
        _ => 0,
    }
}

/// Returns up to 16 bytes as a number; 0 for more.
fn wide(bytes: &[u8]) -> u128 {
    let mut whole = [0; WIDE_BYTES_MAX];
    match whole.get_mut(..bytes.len()) {
        Some(place) => place.copy_from_slice(bytes),
        None => return 0,
    }
    u128::from_le_bytes(whole)
}

fn integer_of(value: &ColumnValue) -> u64 {
    value.value.as_ref().try_into().map_or(0, u64::from_le_bytes)
}

fn i32_of(value: &[u8]) -> i32 {
    value.try_into().map_or(0, i32::from_le_bytes)
}

/// The bytes of an ObjectId from the one that changes most to the one that changes least: of its
/// counter and its seconds by turns. The bytes between are those of the literal.
const ID_ORDER: [usize; 7] = [11, 3, 10, 2, 9, 1, 0];

fn number_of_id(id: &[u8]) -> u64 {
    let byte = |(place, from): (usize, &usize)| {
        u64::from(id.get(*from).copied().unwrap_or(0)) << (8 * place)
    };
    ID_ORDER.iter().enumerate().map(byte).sum()
}

fn object_id(number: u64, last: &[u8]) -> Result<Vec<u8>, DocError> {
    let mut id = last.to_vec();
    for (place, to) in ID_ORDER.into_iter().enumerate() {
        *id.get_mut(to).ok_or_else(cut)? = (number >> (8 * place)) as u8;
    }
    Ok(id)
}

/// The text that a number is, as a value's bytes.
fn text(number: u128) -> Vec<u8> {
    let bytes = number.to_le_bytes();
    let count = WIDE_BYTES_MAX - (number.leading_zeros() / 8) as usize;
    let mut value = (count as u32 + 1).to_le_bytes().to_vec();
    value.extend(bytes[..count].iter().rev());
    value.push(0);
    value
}
