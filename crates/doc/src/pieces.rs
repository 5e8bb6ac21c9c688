//! Large documents as trees of pieces in the store: equal parts are stored once, one field is read
//! by one path of chunks, and a change rewrites one path.
//!
//! The authority on the bytes is docs/format/document.md. In short:
//!
//! 1. A document above [`LARGE_DOCUMENT_BYTES`] is a *container*: a sequence with one item an
//!    element. So is each nested document or array whose BSON exceeds [`ITEM_VALUE_BYTES_MAX`]; its
//!    item in the container around it refers to it by hash. Any other value longer than that is a
//!    sequence of slices, cut by its content. Shorter values lie in their items as they are in
//!    BSON.
//! 2. An array's items have no names: what is pushed to its front changes no other element. (An
//!    array whose elements aren't named 0, 1, 2, ... keeps its names.)
//! 3. The tree's value, the *head*, is the outermost container's root, with [`HEAD_FLAG`] and the
//!    document's length.
//!
//! Reading order: [`item`](self) (an item's bytes), `build` (from BSON), `read` (back to BSON, some
//! fields, one path), `reach` (a query's path), `long` (what is asked
//! of a value where it lies), `difference` (of two versions), `edit` (elements in
//! and out), `recut` (into another repository); `writer` and `input`, `output`: documents that are
//! never whole in memory.
//!
//! *Invariants*: 1. The same document has the same head, however it was made. 2. Reading what was
//! built gives the same bytes.

mod build;
pub mod cache;
mod cut;
mod difference;
mod edit;
mod input;
mod item;
mod long;
mod names;
mod output;
mod reach;
mod read;
mod recut;
mod shallow;
mod writer;

use frond_store::ChunkHash;
use frond_tree::{Content, Sequence, TreeError, TreeFormat, Value};

pub use build::{build, build_referring};
pub use difference::{Differing, Hunk, Versions};
pub use edit::{Edited, Element, Splice};
pub use input::{read_bson, read_json};
pub use item::Item;
pub use long::{Long, Lying, long};
pub use output::json::JsonWriter;
pub use reach::{ReachedPart, VisitPart, visit_reached};
pub use read::{LocatedElement, Part};
pub use recut::Recut;
pub use shallow::{
    element_count, elements, has_deepened, has_references, open, whole, whole_bytes,
};
pub use writer::Writer;

use crate::error::DocError;
use item::Layout;

/// Documents above this are stored as pieces. A function of the content alone: no hysteresis.
pub const LARGE_DOCUMENT_BYTES: usize = 32 << 10;
/// Values up to this lie in their container's item: an update rewrites the chunk that they lie in.
/// Longer ones are chunks of their own, so that equal ones are stored once.
pub const ITEM_VALUE_BYTES_MAX: usize = 256;
/// The same of values in a document that are neither documents nor arrays: most documents have few
/// fields, and a chunk for each text of some hundred bytes is as many chunks again to hash, to find
/// and to keep track of.
pub const FIELD_VALUE_BYTES_MAX: usize = 1 << 10;
/// A document with a longer name in a container is not stored as pieces; nor is one with two
/// outermost fields of one name.
pub const NAME_BYTES_MAX: usize = 700;
/// Target of a container's chunks: an update rewrites one a level.
const CHUNK_BYTES_TARGET: u32 = 4 << 10;
const ITEM_BYTES_MAX: u32 = CHUNK_BYTES_TARGET / 2;
const _: () = assert!(NAME_BYTES_MAX + FIELD_VALUE_BYTES_MAX + 2 <= ITEM_BYTES_MAX as usize);

/// Says of a tree's value that its chunk is the root of a document's outermost container, and its
/// length the document's: so that sizes of trees count whole documents. Stored: never another.
pub const HEAD_FLAG: u8 = frond_tree::OWN_LENGTH_FLAG;

/// An error of reading or writing a large document.
#[derive(Debug, thiserror::Error)]
pub enum PiecesError {
    /// The pieces are no document.
    #[error("large document: {0}")]
    Document(#[from] DocError),
    /// The sequence can't be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The reader or writer of the document failed.
    #[error(transparent)]
    Input(#[from] std::io::Error),
}

impl PiecesError {
    fn damaged(what: &str) -> PiecesError {
        DocError::Invalid { offset: 0, what: what.to_owned() }.into()
    }
}

/// A document that is stored as pieces: its outermost container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LargeDocument {
    root: Container,
}

/// A nested document or array, or the outermost document, that is a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Container {
    sequence: Sequence,
    layout: Layout,
    /// The length of its BSON.
    bytes: u64,
}

impl LargeDocument {
    /// The document that a tree's value is the head of; `None` if it is none. `format` is that of
    /// the tree. Nothing is read: a reader of the document finds out whether its pieces make one.
    pub fn open(format: TreeFormat, value: &Value) -> Option<LargeDocument> {
        let Content::Chunk { hash, bytes } = value.content else { return None };
        let sequence = Sequence { root: hash, format: piece_format(format) };
        let root = Container { sequence, layout: Layout::Document, bytes };
        (value.flags & HEAD_FLAG != 0).then_some(LargeDocument { root })
    }

    /// The same, to be changed in a tree of that format.
    pub fn in_format(&self, format: TreeFormat) -> LargeDocument {
        let sequence = Sequence { format: piece_format(format), ..self.root.sequence };
        LargeDocument { root: Container { sequence, ..self.root } }
    }

    /// The format of trees that may hold what is made of it.
    pub fn format(&self) -> TreeFormat {
        self.root.sequence.format
    }

    /// Returns how long its BSON is.
    pub fn bytes(&self) -> u64 {
        self.root.bytes
    }

    /// The hash that names it: of its content alone, in one repository.
    pub fn hash(&self) -> ChunkHash {
        self.root.sequence.root
    }

    /// The value that a tree holds.
    pub fn value(&self) -> Value {
        let content = Content::Chunk { hash: self.hash(), bytes: self.bytes() };
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
