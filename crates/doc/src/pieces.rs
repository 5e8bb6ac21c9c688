//! Large documents as a list of pieces: the items of a sequence, whose chunks are shared.
//!
//! The authority on the bytes is docs/format/document.md. In short: one item per element, in the
//! order of the document; a nested document or array begins with an item and ends with one. Nothing
//! outside an element shows in its item: no lengths, no positions. So a change rewrites its own
//! items, and equal nested documents are equal items wherever they lie.
//!
//! 1. An item is a tag, the name and a zero (no name inside an array), and the value without its
//!    length.
//! 2. An item above [`PIECE_BYTES_MAX`] is cut where its content says, so that an insertion in the
//!    middle of a long text changes the pieces around it only.
//! 3. An array whose elements aren't named 0, 1, 2, ... stays whole, names included.
//!
//! *Invariant*: `from_pieces(to_pieces(document))` is the document, byte for byte.

mod cut;
mod read;

use bytes::Bytes;
use frond_store::ChunkStore;
use frond_tree::{Sequence, TreeError, TreeFormat};

pub use read::{PiecesError, from_pieces, read};

use crate::builder::position_name;
use crate::document::Document;
use crate::raw::{RawElement, RawElements};
use crate::value::ElementType;

/// Documents above this are stored as pieces. A function of the content alone: no hysteresis.
pub const LARGE_DOCUMENT_BYTES: usize = 64 << 10;
/// Longest piece.
pub const PIECE_BYTES_MAX: usize = 2 << 10;

/// Tags of items besides BSON's type bytes. Stored: never renumber.
mod tag {
    /// Ends a nested document or array.
    pub const END: u8 = 0x00;
    /// More bytes of the item before.
    pub const CONTINUATION: u8 = 0x20;
    /// An array with its elements' names: its BSON follows.
    pub const NAMED_ARRAY: u8 = 0x21;
}

/// Whether a document is stored as pieces.
pub fn is_large(document: Document<'_>) -> bool {
    LARGE_DOCUMENT_BYTES < document.as_bytes().len()
}

/// The pieces of a document, in their order, each at most [`PIECE_BYTES_MAX`] long.
pub fn to_pieces(document: Document<'_>) -> Pieces<'_> {
    Pieces {
        open: vec![Open { elements: document.elements(), is_array: false }],
        item: Vec::new(),
        written: 0,
    }
}

/// Stores a document as a sequence of its pieces. Chunks are put, not synced.
///
/// # Errors
/// As the store's.
pub fn build(
    store: &dyn ChunkStore,
    format: TreeFormat,
    document: Document<'_>,
) -> Result<Sequence, TreeError> {
    Sequence::build(store, format, &mut to_pieces(document).map(Ok))
}

/// An iterator over a document's pieces.
pub struct Pieces<'a> {
    open: Vec<Open<'a>>,
    /// The item that is being cut, whole.
    item: Vec<u8>,
    /// How much of it was returned.
    written: usize,
}

/// A document or array that is being walked over.
struct Open<'a> {
    elements: RawElements<'a>,
    /// Whether its elements have no names.
    is_array: bool,
}

impl Iterator for Pieces<'_> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let is_continued = self.written < self.item.len();
        if !is_continued {
            self.next_item()?;
        }
        let rest = &self.item[self.written..];
        let mut piece = Vec::with_capacity(rest.len().min(PIECE_BYTES_MAX));
        if is_continued {
            piece.push(tag::CONTINUATION);
        }
        let count = cut::first_piece(rest, PIECE_BYTES_MAX - piece.len());
        piece.extend_from_slice(&rest[..count]);
        self.written += count;
        Some(piece.into())
    }
}

impl Pieces<'_> {
    /// Makes the next item; `None` after the last one.
    fn next_item(&mut self) -> Option<()> {
        self.item.clear();
        self.written = 0;
        let open = self.open.last_mut()?;
        let Some(element) = open.elements.next() else {
            self.open.pop();
            if self.open.is_empty() {
                return None; // The outermost document has no end of its own.
            }
            self.item.push(tag::END);
            return Some(());
        };
        let is_plain_array = element.kind == ElementType::Array && is_named_by_position(&element);
        self.item.push(match element.kind {
            ElementType::Array if !is_plain_array => tag::NAMED_ARRAY,
            kind => kind as u8,
        });
        if !open.is_array {
            self.item.extend_from_slice(element.name);
            self.item.push(0);
        }
        if is_plain_array || element.kind == ElementType::Document {
            let elements = RawElements::new(element.value);
            self.open.push(Open { elements, is_array: is_plain_array });
        } else {
            self.item.extend_from_slice(without_length(&element));
        }
        Some(())
    }
}

/// The value's bytes without a length that the item's own length tells, and without a final zero.
fn without_length<'a>(element: &RawElement<'a>) -> &'a [u8] {
    use ElementType::*;
    let value = element.value;
    match element.kind {
        String | JavaScript | Symbol => value.get(4..value.len().saturating_sub(1)),
        Binary => value.get(4..),
        _ => Some(value),
    }
    .unwrap_or(&[])
}

fn is_named_by_position(array: &RawElement<'_>) -> bool {
    let mut digits = [0; 20];
    RawElements::new(array.value)
        .enumerate()
        .all(|(position, it)| it.name == position_name(position, &mut digits).as_bytes())
}

#[cfg(test)]
mod tests;
