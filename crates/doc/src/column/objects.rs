//! Objects of a column, taken apart: one that has every field that any has stands in front, and
//! each of its fields is a stream, whose parts lie in the order in which they are needed.
//!
//! An object inside that has none of its fields isn't there, unless it is empty in front; nor is
//! the whole object. Control byte `f0`: arrays are values, not taken apart; `f1`: they are, too;
//! `f2`: what is taken apart is an array.

use bytes::Bytes;

use super::stream::{self, Stream};
use super::{ColumnValue, Reading, invalid};
use crate::document::Document;
use crate::element_type::ElementType;
use crate::error::DocError;
use crate::raw::{RawElement, length_at};

/// The control byte of objects whose arrays are values.
const WITHOUT_ARRAYS: u8 = 0xf0;
/// The control byte of arrays.
const ARRAYS: u8 = 0xf2;

/// A part of an object, in the object's order.
enum Part<'a> {
    Begin(Head<'a>),
    /// The next field that has a stream.
    Field(&'a [u8]),
    End,
}

/// The beginning of an object or array.
#[derive(Clone, Copy)]
struct Head<'a> {
    kind: ElementType,
    name: &'a [u8],
    /// Whether it stays though it has no fields.
    may_be_empty: bool,
}

/// Objects, some of which were read.
struct Objects<'a> {
    parts: Vec<Part<'a>>,
    streams: Vec<Stream>,
    rest: &'a [u8],
    with_arrays: bool,
}

/// Reads the objects whose control byte `column` begins with, and gives what stands behind them.
///
/// # Errors
/// [`DocError::Invalid`] for what no column has there.
pub fn read<'a>(column: &'a [u8], reading: &mut Reading) -> Result<&'a [u8], DocError> {
    let cut = || invalid("its objects are cut".to_owned());
    let bytes = length_at(column, 1).ok_or_else(cut)?;
    let first = column.get(1..).and_then(|rest| rest.get(..bytes)).ok_or_else(cut)?;
    crate::validate::validate(first)?;
    let kind = if column[0] == ARRAYS { ElementType::Array } else { ElementType::Document };
    let with_arrays = column[0] != WITHOUT_ARRAYS;
    let (parts, streams, rest) = (Vec::new(), Vec::new(), &column[1 + bytes..]);
    let mut objects = Objects { parts, streams, rest, with_arrays };
    objects.take_apart(&RawElement { kind, name: b"", value: first });
    if objects.streams.is_empty() {
        return Err(invalid("objects without fields".to_owned()));
    }
    while let Some(object) = objects.next(reading)? {
        let is_there = !object.is_empty();
        reading.push(is_there.then(|| ColumnValue { kind, value: Bytes::from(object) }))?;
    }
    Ok(objects.rest)
}

impl<'a> Objects<'a> {
    /// Recursion follows the nesting, which validation has bounded.
    fn take_apart(&mut self, element: &RawElement<'a>) {
        let inside = Document::from_validated(element.value);
        let may_be_empty = inside.is_empty();
        let head = Head { kind: element.kind, name: element.name, may_be_empty };
        self.parts.push(Part::Begin(head));
        for field in inside.elements() {
            match field.kind {
                ElementType::Document => self.take_apart(&field),
                ElementType::Array if self.with_arrays => self.take_apart(&field),
                kind => {
                    let value = Bytes::copy_from_slice(field.value);
                    self.parts.push(Part::Field(field.name));
                    self.streams.push(Stream::behind(Some(ColumnValue { kind, value })));
                }
            }
        }
        self.parts.push(Part::End);
    }

    /// The next object's bytes, none if it is missing; `None` at their end.
    fn next(&mut self, reading: &mut Reading) -> Result<Option<Vec<u8>>, DocError> {
        reading.charge(self.parts.len())?;
        let (mut open, mut bytes) = (Vec::new(), Vec::new());
        let count = self.streams.len();
        let mut streams = self.streams.iter_mut();
        for part in &self.parts {
            match part {
                Part::Begin(head) => {
                    if !open.is_empty() {
                        begin_element(&mut bytes, head.kind, head.name);
                    }
                    open.push((*head, bytes.len()));
                    bytes.extend_from_slice(&[0; size_of::<i32>()]);
                }
                Part::Field(name) => {
                    let stream = streams.next().expect("each field has a stream");
                    let value = match field(stream, &mut self.rest)? {
                        Some(value) => value,
                        None if streams.len() + 1 == count => return Ok(None),
                        None => return Err(invalid("an object ends within".to_owned())),
                    };
                    if let Some(value) = value {
                        begin_element(&mut bytes, value.kind, name);
                        bytes.extend_from_slice(&value.value);
                        reading.charge(value.bytes())?;
                    }
                }
                Part::End => end(&mut open, &mut bytes),
            }
        }
        Ok(Some(bytes))
    }
}

/// Ends the object that was begun last.
fn end(open: &mut Vec<(Head<'_>, usize)>, bytes: &mut Vec<u8>) {
    let (head, start) = open.pop().expect("what ends has begun");
    if bytes.len() == start + size_of::<i32>() && !head.may_be_empty {
        let head_bytes = if open.is_empty() { 0 } else { head.name.len() + 2 };
        bytes.truncate(start - head_bytes);
        return;
    }
    bytes.push(0);
    let length = i32::try_from(bytes.len() - start).expect("what is charged stays below 2 GiB");
    bytes[start..start + size_of::<i32>()].copy_from_slice(&length.to_le_bytes());
}

fn begin_element(bytes: &mut Vec<u8>, kind: ElementType, name: &[u8]) {
    bytes.push(kind as u8);
    bytes.extend_from_slice(name);
    bytes.push(0);
}

/// A field's next value, `Some(None)` if it is missing; `None` at the objects' end.
fn field(stream: &mut Stream, rest: &mut &[u8]) -> Result<Option<Option<ColumnValue>>, DocError> {
    if let Some(value) = stream.next()? {
        return Ok(Some(value));
    }
    if let [0, behind @ ..] = rest {
        *rest = behind;
        return Ok(None);
    }
    if let Some((literal, bytes)) = stream::literal(rest)? {
        *rest = &rest[bytes..];
        *stream = Stream::behind(Some(literal.clone()));
        return Ok(Some(Some(literal)));
    }
    *rest = &rest[stream.load(rest)?..];
    stream.next()
}
