//! Cutting fields from the front of a message's bytes, with every length checked.

use bytes::{Buf, Bytes};
use frond_doc::DocumentBuf;

use crate::wire::error::WireError;

/// The least bytes that a document can have: its length and its final zero.
const DOCUMENT_BYTES_MIN: usize = 5;

/// The part of a message that has not been read yet.
pub struct Reader {
    rest: Bytes,
    /// The number of bytes the whole message has: errors show it.
    end: usize,
    /// Whether documents lie in its documents.
    is_answer: bool,
}

impl Reader {
    /// Reads `bytes`, which are the end of a message whose first `before` bytes were read already.
    pub fn new(bytes: Bytes, before: usize) -> Reader {
        let end = before + bytes.len();
        Reader { rest: bytes, end, is_answer: false }
    }

    /// This reader, of an answer (or, with `false`, not).
    pub fn of_answer(self, is_answer: bool) -> Reader {
        Reader { is_answer, ..self }
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Cuts `count` bytes off the front.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if there are fewer.
    pub fn take(&mut self, count: usize, field: &'static str) -> Result<Bytes, WireError> {
        if count > self.rest.len() {
            return Err(WireError::Truncated { end: self.end, field });
        }
        Ok(self.rest.split_to(count))
    }

    /// Cuts a part of `count` bytes off the front, to be read on its own.
    ///
    /// # Errors
    /// As [`Reader::take`].
    pub fn part(&mut self, count: usize, field: &'static str) -> Result<Reader, WireError> {
        let before = self.end - self.rest.len();
        Ok(Reader::new(self.take(count, field)?, before).of_answer(self.is_answer))
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// As [`Reader::take`].
    pub fn u8(&mut self, field: &'static str) -> Result<u8, WireError> {
        let [byte] = self.number(field)?;
        Ok(byte)
    }

    /// Reads four bytes, little-endian.
    ///
    /// # Errors
    /// As [`Reader::take`].
    pub fn i32(&mut self, field: &'static str) -> Result<i32, WireError> {
        Ok(i32::from_le_bytes(self.number(field)?))
    }

    /// Reads eight bytes, little-endian.
    ///
    /// # Errors
    /// As [`Reader::take`].
    pub fn i64(&mut self, field: &'static str) -> Result<i64, WireError> {
        Ok(i64::from_le_bytes(self.number(field)?))
    }

    /// Cuts a few bytes off, copied: what shares a message's memory costs more than they do.
    fn number<const COUNT: usize>(
        &mut self,
        field: &'static str,
    ) -> Result<[u8; COUNT], WireError> {
        let found = self.rest.first_chunk().copied();
        let found = found.ok_or(WireError::Truncated { end: self.end, field })?;
        self.rest.advance(COUNT);
        Ok(found)
    }

    /// Reads a name that a zero byte ends.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if none ends it; [`WireError::Utf8`].
    pub fn name(&mut self, field: &'static str) -> Result<String, WireError> {
        let zero = self.rest.iter().position(|byte| *byte == 0);
        let Some(length) = zero else {
            return Err(WireError::Truncated { end: self.end, field });
        };
        let bytes = self.take(length + 1, field)?;
        let name = std::str::from_utf8(&bytes[..length]).map_err(|_| WireError::Utf8(field))?;
        Ok(name.to_owned())
    }

    /// Reads one document and validates it. Its bytes are shared with the message's.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if it is cut short; what makes it no document.
    pub fn document(&mut self, field: &'static str) -> Result<DocumentBuf, WireError> {
        self.document_around(field, |_| 0)
    }

    /// As [`Reader::document`], of one in which documents lie as many levels down as `levels` says
    /// of it.
    ///
    /// # Errors
    /// As [`Reader::document`].
    pub fn document_around(
        &mut self,
        field: &'static str,
        levels: impl FnOnce(&[u8]) -> usize,
    ) -> Result<DocumentBuf, WireError> {
        let prefix = self.rest.get(..size_of::<i32>());
        let Some(prefix) = prefix else {
            return Err(WireError::Truncated { end: self.end, field });
        };
        let length = i32::from_le_bytes(prefix.try_into().expect("four bytes were cut"));
        let length = usize::try_from(length).unwrap_or(0).max(DOCUMENT_BYTES_MIN);
        let bytes = self.take(length, field)?;
        Ok(match self.is_answer {
            true => DocumentBuf::validated_answer(bytes)?,
            false => {
                let levels = levels(&bytes);
                DocumentBuf::validated_around(bytes, levels)?
            }
        })
    }
}
