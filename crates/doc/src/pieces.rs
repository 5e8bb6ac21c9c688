//! Large documents as trees of pieces in the store: equal parts are stored once, one field is read by
//! one path of chunks, and a change rewrites one path.
//!
//! The authority on the bytes is docs/format/document.md. In short:
//!
//! 1. A document above [`LARGE_DOCUMENT_BYTES`] is a *container*: a sequence with one item an
//!    element. So is each nested document or array whose BSON exceeds [`ITEM_VALUE_BYTES_MAX`]; its
//!    item in the container around it refers to it by hash. Any other value longer than that is a
//!    sequence of slices, cut by its content. What is shorter lies in its item as it is in BSON.
//! 2. An array's items have no names: what is pushed to its front changes no other element. (An array
//!    whose elements aren't named 0, 1, 2, ... keeps its names.)
//! 3. A *head* names the outermost container, and is the tree's value: a chunk whose payload begins
//!    with a length that no BSON has. The value has [`HEAD_FLAG`] and the document's length.
//!
//! Reading order: [`item`](self) (an item's bytes), `build` (from BSON), `read` (back to BSON, some
//! fields, one path), `edit` (elements in and out); `writer` and `input`, `output`: documents that are
//! never whole in memory.
//!
//! *Invariants*: 1. The same document has the same head, however it was made. 2. Reading what was
//! built gives the same bytes.

mod build;
pub mod cache;
mod cut;
mod edit;
mod input;
mod item;
mod output;
mod read;
mod writer;

use frond_store::{ChunkHash, ChunkStore};
use frond_tree::{Content, Sequence, TreeError, TreeFormat, Value};

pub use build::build;
pub use edit::{Edited, Element, Splice};
pub use input::read_bson;
pub use item::Item;
pub use read::Found;
pub use writer::Writer;

use crate::error::DocError;
use item::Layout;

/// Documents above this are stored as pieces. A function of the content alone: no hysteresis.
pub const LARGE_DOCUMENT_BYTES: usize = 32 << 10;
/// Values up to this lie in their container's item: an update rewrites the chunk that they lie in. Longer ones are
/// chunks of their own, so that equal ones are stored once.
pub const ITEM_VALUE_BYTES_MAX: usize = 256;
/// The same of values in a document that are neither documents nor arrays: most documents have few fields, and a
/// chunk for each text of some hundred bytes is as many chunks again to hash, to find and to keep track of.
pub const FIELD_VALUE_BYTES_MAX: usize = 1 << 10;
/// A document with a longer name in a container is not stored as pieces; nor is one with two
/// outermost fields of one name.
pub const NAME_BYTES_MAX: usize = 700;
/// Target of a container's chunks: an update rewrites one a level.
const CHUNK_BYTES_TARGET: u32 = 4 << 10;
const ITEM_BYTES_MAX: u32 = CHUNK_BYTES_TARGET / 2;
const _: () = assert!(NAME_BYTES_MAX + FIELD_VALUE_BYTES_MAX + 2 <= ITEM_BYTES_MAX as usize);

/// Says of a tree's value that its chunk is a head, and its length the document's: so that sizes of
/// trees count whole documents. Stored: never another.
pub const HEAD_FLAG: u8 = frond_tree::OWN_LENGTH_FLAG;

/// The form of a head: four zeros, where BSON has a length; a version; the BSON's length.
const HEAD_BYTES: usize = 16;
const HEAD_OFFSET_BYTES: usize = 8;

/// What can go wrong when a large document is read.
#[derive(Debug, thiserror::Error)]
pub enum PiecesError {
    /// The pieces are no document.
    #[error("large document: {0}")]
    Document(#[from] DocError),
    /// The sequence can't be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// What a document is read from, or written to, fails.
    #[error(transparent)]
    Input(#[from] std::io::Error),
}

impl PiecesError {
    fn damaged(what: &str) -> PiecesError {
        DocError::Invalid { offset: 0, what: what.to_owned() }.into()
    }
}

/// A document that is stored as pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LargeDocument {
    root: Container,
    head: ChunkHash,
}

/// A nested document or array, or the outermost document, that is a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Container {
    sequence: Sequence,
    layout: Layout,
    /// How long its BSON is.
    bytes: u64,
}

impl LargeDocument {
    /// The document that a tree's value is the head of; `None` if it is none. `format` is that of
    /// the tree.
    ///
    /// # Errors
    /// As the store; [`PiecesError::Document`] if the head is of another version.
    pub fn open(
        store: &dyn ChunkStore,
        format: TreeFormat,
        value: &Value,
    ) -> Result<Option<LargeDocument>, PiecesError> {
        let Content::Chunk { hash, bytes: stated } = &value.content else { return Ok(None) };
        if value.flags & HEAD_FLAG == 0 {
            return Ok(None);
        }
        let chunk = store.get(*hash).map_err(TreeError::from)?;
        let payload = chunk.payload_bytes();
        let is_head = payload.len() == HEAD_BYTES && chunk.reference_count() == 1;
        if !is_head || payload[..HEAD_OFFSET_BYTES] != [0; HEAD_OFFSET_BYTES] {
            return Err(PiecesError::damaged("a head of another version"));
        }
        let mut length = [0; size_of::<u64>()];
        length.copy_from_slice(&payload[HEAD_OFFSET_BYTES..]);
        let bytes = u64::from_le_bytes(length);
        if bytes != *stated {
            return Err(PiecesError::damaged("a head of another length than its value says"));
        }
        let sequence = Sequence { root: chunk.reference(0), format: piece_format(format) };
        let root = Container { sequence, layout: Layout::Document, bytes };
        Ok(Some(LargeDocument { root, head: *hash }))
    }

    /// How long its BSON is.
    pub fn bytes(&self) -> u64 {
        self.root.bytes
    }

    /// The hash that names it: of its content alone, in one repository.
    pub fn hash(&self) -> ChunkHash {
        self.head
    }

    /// The value that a tree holds.
    pub fn value(&self) -> Value {
        let content = Content::Chunk { hash: self.head, bytes: self.root.bytes };
        Value { flags: HEAD_FLAG, content }
    }
}

/// The parameters of containers in a repository whose trees have `format`: its salt.
fn piece_format(format: TreeFormat) -> TreeFormat {
    TreeFormat {
        chunk_bytes_target: CHUNK_BYTES_TARGET,
        inline_bytes_max: ITEM_BYTES_MAX,
        salt: format.salt,
    }
}
