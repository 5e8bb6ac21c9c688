//! Pieces of one repository in another, whose trees are cut otherwise.
//!
//! Items are taken over as they are, one by one; only what an item refers to has another hash
//! there. So no document is put together, and nothing of it is looked at.

use std::collections::HashMap;

use frond_store::chunk::HASH_BYTES;
use frond_store::{ChunkHash, ChunkStore};
use frond_tree::{GrowingSequence, Refers, Sequence, TreeFormat};

use super::item::{BodyRef, ItemRef, Layout, refers};
use super::shallow::{item_of, reading_format};
use super::{PiecesError, piece_format};
use crate::document::{DEPTH_MAX, Document, DocumentBuf};
use crate::element_type::ElementType;
use crate::raw::RawElements;
use crate::reference::{OFFSET_ROOT, Reference};

/// The number of containers that were made and are remembered: documents that are much alike share
/// them.
const KNOWN_COUNT_MAX: usize = 1 << 16;

/// Makes the pieces of another repository.
#[derive(Debug)]
pub struct Recut {
    format: TreeFormat,
    /// The new chunk for each old one.
    known: HashMap<ChunkHash, ChunkHash>,
}

impl Recut {
    /// Makes one for trees of `format`.
    pub fn new(format: TreeFormat) -> Recut {
        Recut { format: piece_format(format), known: HashMap::new() }
    }

    /// The document with references to pieces of the other repository, which are put into `store`,
    /// not synced. The pieces below them lie there, too.
    ///
    /// # Errors
    /// As [`LargeDocument::read`](super::LargeDocument::read); if the store takes no chunks.
    pub fn document(
        &mut self,
        store: &dyn ChunkStore,
        document: Document<'_>,
    ) -> Result<DocumentBuf, PiecesError> {
        let mut bytes = document.as_bytes().to_vec();
        self.references(store, &mut bytes, document.as_bytes(), 0)?;
        Ok(DocumentBuf::from_validated(bytes.into()))
    }

    /// Gives the references in `document`, which lies in `bytes` from `start` on, other roots. The
    /// recursion is as deep as the document.
    fn references(
        &mut self,
        store: &dyn ChunkStore,
        bytes: &mut [u8],
        document: &[u8],
        start: usize,
    ) -> Result<(), PiecesError> {
        let mut at = start + size_of::<i32>();
        for element in RawElements::new(document) {
            at += 1 + element.name.len() + 1;
            match element.kind {
                ElementType::Document | ElementType::Array => {
                    self.references(store, bytes, element.value, at)?;
                }
                ElementType::Reference => {
                    if let Some(reference) = Reference::decode(element.value)
                        && let BodyRef::Elsewhere { layout, root, .. } = item_of(reference)?.body
                    {
                        let root = self.sequence(store, layout, root, 1)?;
                        let place = at + OFFSET_ROOT;
                        bytes[place..place + HASH_BYTES].copy_from_slice(&root.0);
                    }
                }
                _ => {}
            }
            at += element.value.len();
        }
        Ok(())
    }

    /// Makes a container, or slices. `depth` are open, it counted.
    fn sequence(
        &mut self,
        store: &dyn ChunkStore,
        layout: Option<Layout>,
        root: ChunkHash,
        depth: usize,
    ) -> Result<ChunkHash, PiecesError> {
        if let Some(known) = self.known.get(&root) {
            return Ok(*known);
        }
        if DEPTH_MAX < depth {
            return Err(PiecesError::damaged("nested too deep"));
        }
        let from = Sequence { root, format: reading_format() };
        let (mut changed, mut failure) = (Vec::new(), None);
        let is_referring: Refers = if layout.is_some() { refers } else { |_| false };
        let mut made = GrowingSequence::new(store, self.format, is_referring);
        from.visit(store, 0, &mut |_, item| {
            let pushed = match layout.filter(|_| refers(item)) {
                Some(layout) => self
                    .item(store, item, layout, depth, &mut changed)
                    .and_then(|()| Ok(made.push(&changed)?)),
                None => made.push(item).map_err(PiecesError::from),
            };
            failure = pushed.err();
            failure.is_some()
        })?;
        failure.map_or(Ok(()), Err)?;
        let made = made.finish()?.root;
        if KNOWN_COUNT_MAX <= self.known.len() {
            self.known.clear();
        }
        self.known.insert(root, made);
        Ok(made)
    }

    /// Writes the item with what it refers to in the other repository.
    fn item(
        &mut self,
        store: &dyn ChunkStore,
        item: &[u8],
        around: Layout,
        depth: usize,
        changed: &mut Vec<u8>,
    ) -> Result<(), PiecesError> {
        if let BodyRef::Elsewhere { layout, root, .. } = ItemRef::decode(item, around)?.body {
            let root = self.sequence(store, layout, root, depth + 1)?;
            changed.clear();
            changed.extend_from_slice(&item[..item.len() - HASH_BYTES]);
            changed.extend_from_slice(&root.0);
        }
        Ok(())
    }
}
