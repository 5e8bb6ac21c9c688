//! Columns: the values of one field of many documents, compressed, as a binary of subtype 7.
//! MongoDB's buckets of time series have them.
//!
//! 1. A column is a row of parts, each with a control byte in front, and a zero at its end.
//! 2. Most values are one [`mod@stream`]: literals, and differences from the value before.
//! 3. Objects that are alike are taken apart ([`objects`]): each of their fields is a stream.
//!
//! Columns are read, not written. Their values are validated with the document that is made of
//! them: differences can make an invalid text.

mod objects;
mod simple8b;
mod stream;

use bytes::Bytes;

use crate::element_type::ElementType;
use crate::error::DocError;
use crate::raw::RawElement;
use stream::Stream;

/// The subtype of a binary that is a column.
pub const COLUMN_SUBTYPE: u8 = 7;

/// A value of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnValue {
    kind: ElementType,
    value: Bytes,
}

impl ColumnValue {
    /// The value as an element of this name.
    pub fn named<'a>(&'a self, name: &'a [u8]) -> RawElement<'a> {
        RawElement { kind: self.kind, name, value: &self.value }
    }

    fn bytes(&self) -> usize {
        self.value.len() + 1
    }
}

/// The values read from a column so far, and the memory left for more.
struct Reading {
    values: Vec<Option<ColumnValue>>,
    bytes_left: usize,
}

impl Reading {
    /// Charges what a step makes: a column of few bytes can stand for many.
    fn charge(&mut self, bytes: usize) -> Result<(), DocError> {
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.ok_or_else(|| invalid("it holds more than a bucket".to_owned()))?;
        Ok(())
    }

    fn push(&mut self, value: Option<ColumnValue>) -> Result<(), DocError> {
        self.charge(value.as_ref().map_or(1, ColumnValue::bytes))?;
        self.values.push(value);
        Ok(())
    }
}

/// Reads a column's values, `None` where one is missing: `bytes_max` of them at most.
///
/// # Errors
/// [`DocError::Invalid`] for what is no column, or a larger one.
pub fn read(column: &[u8], bytes_max: usize) -> Result<Vec<Option<ColumnValue>>, DocError> {
    let mut reading = Reading { values: Vec::new(), bytes_left: bytes_max };
    let mut stream = Stream::default();
    let mut rest = column;
    loop {
        match rest.first() {
            None => return Err(invalid("it has no end".to_owned())),
            Some(0) if rest.len() == 1 => return Ok(reading.values),
            Some(0) => return Err(invalid("it goes on behind its end".to_owned())),
            Some(0xf0..=0xf2) => {
                rest = objects::read(rest, &mut reading)?;
                stream = Stream::behind_object(reading.values.last().cloned().flatten());
                continue;
            }
            Some(_) => {}
        }
        if let Some((literal, bytes)) = stream::literal(rest)? {
            reading.push(Some(literal.clone()))?;
            stream = Stream::behind(Some(literal));
            rest = &rest[bytes..];
            continue;
        }
        rest = &rest[stream.load(rest)?..];
        while let Some(value) = stream.next()? {
            reading.push(value)?;
        }
    }
}

fn invalid(what: String) -> DocError {
    DocError::Invalid { offset: 0, what: format!("a column: {what}") }
}

#[cfg(test)]
mod tests;
