//! BSON from a reader into a [`Writer`], checked on the way as [`validate`](crate::validate) does.
//!
//! Only one value that is neither a document nor an array is in memory at a time, and nothing is
//! reserved by a length that the input gives. Extended JSON is read likewise (`json`).

mod json;

use std::io::{self, Read};

pub use json::read_json;

use super::{NAME_BYTES_MAX, PiecesError, Writer};
use crate::element_type::ElementType;
use crate::element_type::kind_of;
use crate::error::DocError;
use crate::raw::{RawElement, value_bytes};
use crate::validate;

/// Reads one document, and nothing behind it, and writes its elements.
///
/// # Errors
/// [`PiecesError::Input`] if the reader fails, or ends too early; [`PiecesError::Document`] if it
/// gives no BSON; as [`Writer::element`].
pub fn read_bson(input: &mut dyn Read, writer: &mut Writer<'_>) -> Result<(), PiecesError> {
    let mut input = Input { reader: input, offset: 0 };
    let outermost = input.length()?;
    // The ends of the open documents and arrays.
    let mut ends = vec![outermost];
    let (mut name, mut value) = (Vec::new(), Vec::new());
    while let Some(&end) = ends.last() {
        let kind = input.byte()?;
        if kind == 0 {
            if input.offset != end {
                return Err(input.invalid("a document or array of another length"));
            }
            ends.pop();
            if !ends.is_empty() {
                writer.end()?;
            }
            continue;
        }
        let Some(kind) = kind_of(kind) else {
            return Err(input.invalid(&format!("unknown type 0x{kind:02x}")));
        };
        input.name(&mut name)?;
        if matches!(kind, ElementType::Document | ElementType::Array) {
            let start = input.offset;
            let inner = start.saturating_add(input.length()?);
            if end <= inner {
                return Err(input.invalid("a document or array reaches past the one around it"));
            }
            writer.begin(kind, &name)?;
            ends.push(inner);
            continue;
        }
        input.value(kind, end, &mut value)?;
        validate::check_element(kind, &value, writer.depth())?;
        writer.element(RawElement { kind, name: &name, value: &value })?;
    }
    Ok(())
}

struct Input<'a> {
    reader: &'a mut dyn Read,
    /// The number of bytes that were read.
    offset: u64,
}

impl Input<'_> {
    fn invalid(&self, what: &str) -> PiecesError {
        let offset = usize::try_from(self.offset).unwrap_or(usize::MAX);
        DocError::Invalid { offset, what: what.to_owned() }.into()
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), PiecesError> {
        self.reader.read_exact(bytes)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, PiecesError> {
        let mut byte = [0];
        self.fill(&mut byte)?;
        Ok(byte[0])
    }

    /// The length of a document or array, with which it begins.
    fn length(&mut self) -> Result<u64, PiecesError> {
        let mut length = [0; size_of::<i32>()];
        self.fill(&mut length)?;
        let length = u64::try_from(i32::from_le_bytes(length)).ok().filter(|length| 5 <= *length);
        length.ok_or_else(|| self.invalid("no length of a document"))
    }

    fn name(&mut self, name: &mut Vec<u8>) -> Result<(), PiecesError> {
        name.clear();
        loop {
            match self.byte()? {
                0 => break,
                byte if name.len() <= NAME_BYTES_MAX => name.push(byte),
                _ => return Err(self.invalid("a name that is too long")),
            }
        }
        match std::str::from_utf8(name) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.invalid("text is not UTF-8")),
        }
    }

    /// Reads a value that must end before `end`.
    fn value(
        &mut self,
        kind: ElementType,
        end: u64,
        value: &mut Vec<u8>,
    ) -> Result<(), PiecesError> {
        value.clear();
        if kind == ElementType::Regex {
            let mut texts = 0;
            while texts < 2 {
                let byte = self.byte()?;
                texts += usize::from(byte == 0);
                value.push(byte);
                if end <= self.offset {
                    return Err(self.invalid("a value reaches past its document"));
                }
            }
            return Ok(());
        }
        let bytes = match value_bytes(kind, &[]) {
            Some(bytes) => bytes,
            None => {
                let mut length = [0; size_of::<i32>()];
                self.fill(&mut length)?;
                value.extend_from_slice(&length);
                let bytes = value_bytes(kind, value).filter(|bytes| value.len() <= *bytes);
                bytes.ok_or_else(|| self.invalid("no length of a value"))?
            }
        };
        let rest = (bytes - value.len()) as u64;
        if end <= self.offset.saturating_add(rest) {
            return Err(self.invalid("a value reaches past its document"));
        }
        // Grows as it is read.
        let read = (&mut *self.reader).take(rest).read_to_end(value)?;
        self.offset += read as u64;
        if (read as u64) < rest {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(())
    }
}
