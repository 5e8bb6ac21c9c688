//! Pieces back into a document. They come from disk: every step is checked, and the result too.

use std::iter::Peekable;
use std::sync::Arc;

use bytes::Bytes;
use frond_store::ChunkStore;
use frond_tree::{Sequence, TreeError};

use super::tag;
use crate::builder::position_name;
use crate::document::{DEPTH_MAX, DocumentBuf};
use crate::error::DocError;
use crate::raw::split_name;
use crate::value::ElementType;

/// What can go wrong when a large document is read.
#[derive(Debug, thiserror::Error)]
pub enum PiecesError {
    /// The pieces are no document.
    #[error("large document: {0}")]
    Document(#[from] DocError),
    /// The sequence can't be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

/// Reads a whole document from its sequence.
///
/// # Errors
/// As [`from_pieces`].
pub fn read(store: &Arc<dyn ChunkStore>, sequence: &Sequence) -> Result<DocumentBuf, PiecesError> {
    from_pieces(&mut sequence.items(store, 0))
}

/// Puts a document together from its pieces.
///
/// # Errors
/// What `items` says; [`DocError::Invalid`] with the offset in the document that was reached;
/// [`DocError::TooLarge`] from 2 GiB on.
pub fn from_pieces(
    items: &mut dyn Iterator<Item = Result<Bytes, TreeError>>,
) -> Result<DocumentBuf, PiecesError> {
    let mut items = items.peekable();
    let mut writer = Writer { bytes: vec![0; 4], open: vec![Open { offset: 0, next: None }] };
    while let Some(item) = items.next() {
        let item = with_continuations(item?, &mut items)?;
        writer.item(&item)?;
    }
    if writer.open.len() != 1 {
        return Err(writer.invalid("a nested document is not ended").into());
    }
    writer.close()?;
    Ok(DocumentBuf::validated(writer.bytes.into())?)
}

/// Appends the continuations that follow an item.
fn with_continuations(
    item: Bytes,
    items: &mut Peekable<&mut dyn Iterator<Item = Result<Bytes, TreeError>>>,
) -> Result<Bytes, TreeError> {
    let is_continuation = |next: &Result<Bytes, TreeError>| {
        next.as_ref().is_ok_and(|next| next.first() == Some(&tag::CONTINUATION))
    };
    let mut whole: Option<Vec<u8>> = None;
    while let Some(next) = items.next_if(is_continuation) {
        whole.get_or_insert_with(|| item.to_vec()).extend_from_slice(&next?[1..]);
    }
    Ok(whole.map_or(item, Bytes::from))
}

/// The document so far.
struct Writer {
    bytes: Vec<u8>,
    open: Vec<Open>,
}

/// A document or array that is open.
struct Open {
    /// Where its length stands.
    offset: usize,
    /// The position of the next element, if it is an array.
    next: Option<usize>,
}

impl Writer {
    fn item(&mut self, item: &[u8]) -> Result<(), DocError> {
        let (&kind, rest) = item.split_first().ok_or_else(|| self.invalid("an empty piece"))?;
        if kind == tag::END {
            if self.open.len() < 2 || !rest.is_empty() {
                return Err(self.invalid("an end of nothing"));
            }
            return self.close();
        }
        let type_byte = if kind == tag::NAMED_ARRAY { ElementType::Array as u8 } else { kind };
        let element_type = ElementType::from_byte(type_byte)
            .ok_or_else(|| self.invalid(&format!("piece of type 0x{kind:02x}")))?;
        self.bytes.push(type_byte);
        let value = self.name(rest)?;
        match element_type {
            ElementType::Array if kind == tag::NAMED_ARRAY => self.bytes.extend_from_slice(value),
            ElementType::Document | ElementType::Array => {
                if !value.is_empty() || DEPTH_MAX <= self.open.len() {
                    return Err(self.invalid("nested too deep, or a value behind a beginning"));
                }
                let next = (element_type == ElementType::Array).then_some(0);
                self.open.push(Open { offset: self.bytes.len(), next });
                self.bytes.extend_from_slice(&[0; 4]);
            }
            ElementType::String | ElementType::JavaScript | ElementType::Symbol => {
                self.length(value.len() + 1)?;
                self.bytes.extend_from_slice(value);
                self.bytes.push(0);
            }
            ElementType::Binary => {
                let length = value.len().checked_sub(1);
                self.length(length.ok_or_else(|| self.invalid("binary without subtype"))?)?;
                self.bytes.extend_from_slice(value);
            }
            _ => self.bytes.extend_from_slice(value),
        }
        Ok(())
    }

    /// Writes the element's name, which only documents' items have, and returns what follows it.
    fn name<'i>(&mut self, rest: &'i [u8]) -> Result<&'i [u8], DocError> {
        let open = self.open.last_mut().expect("the outermost document is open");
        let (name, value) = match &mut open.next {
            Some(next) => {
                let position = *next;
                *next += 1;
                self.bytes.extend_from_slice(position_name(position, &mut [0; 20]).as_bytes());
                (&rest[..0], rest)
            }
            None => split_name(rest).ok_or_else(|| self.invalid("a piece without a name"))?,
        };
        self.bytes.extend_from_slice(name);
        self.bytes.push(0);
        Ok(value)
    }

    fn length(&mut self, length: usize) -> Result<(), DocError> {
        let length = i32::try_from(length).map_err(|_| self.too_large())?;
        self.bytes.extend_from_slice(&length.to_le_bytes());
        Ok(())
    }

    /// Ends what was opened last.
    fn close(&mut self) -> Result<(), DocError> {
        let open = self.open.pop().expect("the caller has looked that something is open");
        self.bytes.push(0);
        let length = i32::try_from(self.bytes.len() - open.offset).map_err(|_| self.too_large())?;
        self.bytes[open.offset..open.offset + 4].copy_from_slice(&length.to_le_bytes());
        Ok(())
    }

    fn too_large(&self) -> DocError {
        DocError::TooLarge { bytes: self.bytes.len(), max: i32::MAX as usize }
    }

    fn invalid(&self, what: &str) -> DocError {
        DocError::Invalid { offset: self.bytes.len(), what: what.to_owned() }
    }
}
