//! Stores leaves of similar documents by columns.
//!
//! In a leaf of a collection most documents have the same fields, and a field's values are alike.
//! Compressors for bytes see neither: a document's fields stand side by side, its key repeats
//! values in other bytes, and a step of a clock is seldom the same few bytes. So a frame may hold
//! its leaves by columns: names once, each field's values one after the other in as few bits as
//! they need ([`numbers`], [`doubles`], [`strings`]), and of keys only what can't be derived from
//! their documents ([`keys`]).
//!
//! *Invariants*: 1. Columns are a way to compress: the chunk that comes out is the one that went
//! in, byte by byte, and its name is that of these bytes. Nothing above packs knows of columns, and
//! a better layout of them is only another codec. 2. The knowledge here of leaves and of BSON is a
//! guess about bytes: [`Encoder`] reads back what it wrote and gives up if that isn't the same, so
//! no chunk is refused or changed, whatever it holds. 3. A caller stores columns only where they
//! are shorter than what they stand for ([`super::frames`]). 4. [`decode`] of hostile bytes ends in
//! `None`, and allocates by the content's announced length, which is bounded before.
//!
//! The authority on the bytes is docs/format/columns.md; why a codec and not a format of nodes,
//! docs/decisions/0025-columns-are-a-codec.md.

mod bit_packing;
mod column;
mod cursor;
mod doubles;
mod keys;
mod known_shapes;
mod leaf;
mod numbers;
mod shape;
mod slot;
mod strings;
#[cfg(test)]
mod tests;

use self::cursor::{Reader, write_string};

// The first byte of a chunk. Stored: never renumber.
const FORM_BYTES: u8 = 0;
const FORM_LEAF: u8 = 1;

/// Shorter chunks gain too little.
const CHUNK_BYTES_MIN: usize = 512;

/// Encodes chunks, most of which are packed as the one before was: what that was is known.
#[derive(Default)]
pub(crate) struct Encoder {
    known: leaf::KnownPlans,
    /// Room for a chunk that is read back.
    read_back: Vec<u8>,
}

impl Encoder {
    /// The chunks with these bytes by columns; `None` if none of them is worth it.
    pub(crate) fn encode(&mut self, chunks: &[&[u8]]) -> Option<Vec<u8>> {
        let bytes: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        let (mut out, mut any) = (Vec::with_capacity(bytes / 2), false);
        for chunk in chunks {
            let start = out.len();
            out.push(FORM_LEAF);
            let is_leaf = CHUNK_BYTES_MIN <= chunk.len()
                && leaf::write(&mut out, chunk, &mut self.known).is_some()
                && out.len() - start < chunk.len()
                && self.reads_back(&out[start..], chunk);
            if !is_leaf {
                out.truncate(start);
                out.push(FORM_BYTES);
                write_string(&mut out, chunk);
            }
            any |= is_leaf;
        }
        any.then_some(out)
    }

    /// Whether `columns` are those of `chunk`.
    fn reads_back(&mut self, columns: &[u8], chunk: &[u8]) -> bool {
        self.read_back.clear();
        let mut reader = Reader::new(columns, chunk.len());
        let read = read_chunk(&mut reader, chunk.len(), &mut self.read_back);
        read.is_some() && self.read_back == chunk
    }
}

/// The chunks that `columns` hold, one after the other, if they have exactly `bytes` bytes.
pub(crate) fn decode(columns: &[u8], bytes: usize) -> Option<Vec<u8>> {
    let mut reader = Reader::new(columns, bytes);
    let mut out = Vec::with_capacity(bytes);
    while !reader.is_empty() {
        read_chunk(&mut reader, bytes, &mut out)?;
    }
    (out.len() == bytes).then_some(out)
}

/// Appends the next chunk, unless `out` would get longer than `bytes_max`.
fn read_chunk(reader: &mut Reader<'_>, bytes_max: usize, out: &mut Vec<u8>) -> Option<()> {
    match reader.byte()? {
        FORM_BYTES => {
            out.extend_from_slice(reader.string()?);
            (out.len() <= bytes_max).then_some(())
        }
        FORM_LEAF => leaf::read(reader, bytes_max, out),
        _ => None,
    }
}
