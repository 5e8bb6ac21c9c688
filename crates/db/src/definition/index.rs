//! The definition of an index.
//!
//! The meaning of a key and its options is `frond_query::index`'s: [`IndexSpec::shape`]. Two
//! options are Frond's own: `include: ["path", ...]` keeps these fields in the index's entries, and
//! `clustering: true` whole documents, so that a query needn't fetch them.

mod parse;
mod refusal;
mod stored;
mod wildcard;

use frond_doc::{Document, DocumentBuf, Value, document, order};
use frond_query::index::{IndexShape, ShapeOptions};
use frond_query::{Code, Collation, Filter, Grid, GridFault};
use frond_store::ChunkHash;
use frond_tree::{Tree, TreeFormat};

use crate::definition::text::TextOptions;
use crate::error::Error;
pub use parse::{UnknownOptions, expire_after};

/// The index that every collection has without asking: the documents' own tree.
pub const ID_INDEX_NAME: &str = "_id_";
/// The options of a 2d index, in the order of [`IndexSpec::grid`].
const GRID_OPTIONS: [&str; 3] = ["bits", "min", "max"];

/// An index as it was asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct IndexSpec {
    /// Its name; made from the key (`a_1_b_-1`) where absent in the request.
    pub name: String,
    /// `{path: 1 | -1 | "hashed", ...}`.
    pub key: DocumentBuf,
    /// Whether no two documents have the same key.
    pub unique: bool,
    /// Documents without the fields are left out.
    pub sparse: bool,
    /// Kept, but not used by queries.
    pub hidden: bool,
    /// Whether no further documents get a key that another has: on the way to `unique`.
    pub prepare_unique: bool,
    /// Seconds after the time in its field when a document is removed.
    pub expire_after_seconds: Option<i64>,
    /// The filter of the documents that are filed.
    pub partial: Option<DocumentBuf>,
    /// The rules by which its keys of strings are ordered; `None` until it is made: as the
    /// collection says.
    pub collation: Option<Collation>,
    /// The leaves that a wildcard index files.
    pub wildcard_projection: Option<DocumentBuf>,
    /// `bits`, `min` and `max` of a 2d index, where they were given.
    pub grid: [Option<f64>; 3],
    /// Paths of fields whose values the entries hold.
    pub include: Vec<String>,
    /// Whether the entries hold whole documents.
    pub clustering: bool,
    /// The texts that a text index files.
    pub text: Option<TextOptions>,
    /// `background`, which says nothing and is shown as it was given.
    pub background: Option<bool>,
}

impl IndexSpec {
    /// The index of `_id`.
    pub fn of_id() -> IndexSpec {
        IndexSpec::plain(ID_INDEX_NAME.to_owned(), document! { "_id": 1 })
    }

    /// The index beside the documents' tree that keeps `_id` unique by `collation`; none where the
    /// tree, whose keys are bytes, does.
    pub(crate) fn of_collated_id(collation: &Collation) -> Option<IndexSpec> {
        let collation = Some(collation.clone()).filter(|collation| !collation.is_simple())?;
        Some(IndexSpec { unique: true, collation: Some(collation), ..IndexSpec::of_id() })
    }

    /// An index with this name and key, and no options.
    pub fn plain(name: String, key: DocumentBuf) -> IndexSpec {
        IndexSpec {
            name,
            key,
            unique: false,
            sparse: false,
            hidden: false,
            prepare_unique: false,
            expire_after_seconds: None,
            partial: None,
            collation: None,
            wildcard_projection: None,
            grid: [None; 3],
            include: Vec::new(),
            clustering: false,
            text: None,
            background: None,
        }
    }

    /// The format of its tree in a repository whose documents' trees have `documents`: of what the
    /// index is alone, so that the same content has the same root. An edit of a document
    /// changes entries far from each other; where they are small, so are the nodes.
    pub(crate) fn tree_format(&self, documents: TreeFormat) -> TreeFormat {
        let holds_documents = self.clustering || !self.include.is_empty();
        if holds_documents { documents } else { documents.for_scattered_edits() }
    }

    /// Its tree with this root.
    #[doc(hidden)]
    pub fn tree(&self, root: ChunkHash, documents: TreeFormat) -> Tree {
        Tree { root, format: self.tree_format(documents) }
    }

    /// Returns the shape of the index's keys.
    ///
    /// # Errors
    /// Keys and options that don't go together, in MongoDB's codes.
    pub fn shape(&self) -> Result<IndexShape, Error> {
        let options = ShapeOptions {
            sparse: self.sparse,
            partial: self.partial.as_ref().map(DocumentBuf::view),
            wildcard_projection: self.wildcard_projection.as_ref().map(DocumentBuf::view),
            text: self.text.as_ref().map(TextOptions::shape),
            grid: self.division()?,
            collation: self.collation.clone().unwrap_or_default(),
        };
        Ok(IndexShape::parse(self.key.view(), options)?)
    }

    /// Returns how a 2d index divides the plane.
    fn division(&self) -> Result<Grid, Error> {
        let [bits, min, max] = self.grid;
        let (bits, min, max) = (bits.unwrap_or(26.0), min.unwrap_or(-180.0), max.unwrap_or(180.0));
        Grid::new(bits.trunc(), min, max).map_err(|fault| {
            let message = match fault {
                GridFault::Bits => {
                    format!("bits for hash must be > 0 and <= 32, but {bits} bits were specified")
                }
                GridFault::Bounds => format!(
                    "region for hash must be valid and have positive area, but [{min}, {max}] was specified"
                ),
            };
            Error::invalid(Code::InvalidOptions, message)
        })
    }

    /// Whether this is the index of `_id` that every collection has.
    pub fn is_id(&self) -> bool {
        self.has_key(document! { "_id": 1 }.view())
    }

    /// Whether a hint means this index, by its name or its key.
    pub(crate) fn is_hinted(&self, hint: Value<'_>) -> bool {
        match hint {
            Value::String(name) => name == self.name,
            Value::Document(key) => self.has_key(key),
            _ => false,
        }
    }

    /// Whether the index has this key, numbers of another type being the same.
    pub(crate) fn has_key(&self, key: Document<'_>) -> bool {
        order::compare_documents(self.key.view(), key).is_eq()
    }

    /// Whether this is the same index under perhaps another name and with perhaps other options.
    /// Two indexes of one key may stand side by side if only one is unique or sparse, or if they
    /// file other documents.
    #[doc(hidden)]
    pub fn is_same_index(&self, other: &IndexSpec) -> bool {
        self.has_key(other.key.view())
            && (self.unique, self.sparse) == (other.unique, other.sparse)
            && self.collation.clone().unwrap_or_default()
                == other.collation.clone().unwrap_or_default()
            && is_same_filter(&self.partial, &other.partial)
            && is_same_document(&self.wildcard_projection, &other.wildcard_projection)
    }

    /// Whether the other options of the same index are the same, too. Whether it is hidden isn't
    /// asked.
    pub(crate) fn has_same_options(&self, other: &IndexSpec) -> bool {
        self.expire_after_seconds == other.expire_after_seconds
            && self.include == other.include
            && self.clustering == other.clustering
            && self.text == other.text
            && self.grid == other.grid
    }

    /// The index as a collection of this collation makes it.
    pub(crate) fn in_collection(&self, collation: &Collation) -> IndexSpec {
        // Hashes of strings know no collation; nor does MongoDB's index of hashes.
        let is_hashed = self.key.iter().any(|(_, kind)| kind == Value::String("hashed"));
        let own = if is_hashed { Collation::SIMPLE } else { collation.clone() };
        IndexSpec { collation: Some(self.collation.clone().unwrap_or(own)), ..self.clone() }
    }
}

/// Whether both filters ask the same in perhaps other words, or nothing.
fn is_same_filter(left: &Option<DocumentBuf>, right: &Option<DocumentBuf>) -> bool {
    let (Some(one), Some(other)) = (left, right) else { return is_same_document(left, right) };
    is_same_document(left, right)
        || match (Filter::parse(one.view()), Filter::parse(other.view())) {
            (Ok(one), Ok(other)) => one.is_equivalent(&other),
            _ => false,
        }
}

/// Whether both say the same, or nothing.
fn is_same_document(left: &Option<DocumentBuf>, right: &Option<DocumentBuf>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => order::compare_documents(left.view(), right.view()).is_eq(),
        (None, None) => true,
        _ => false,
    }
}
