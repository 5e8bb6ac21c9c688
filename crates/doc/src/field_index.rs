//! Where a document's fields lie: derived data beside it, so that a field is found without a scan.
//!
//! Reading order: [`shape`] (the names of documents, interned), `buckets` (where names don't
//! repeat), [`cache`] (indexes of documents in the store, made on first use). A [`Document`] that
//! carries an index uses it in [`Document::get`] and wherever a [`Path`] is walked, so that whoever
//! asks a document for a field asks the index without knowing.
//!
//! 1. A document whose list of names was seen before has a *shape*: the shape's number and one
//!    offset a field. A path through documents, however deep, is one probe of the shape's table, or
//!    none where the path remembers its ordinal in that shape.
//! 2. Any other document has the names of its outermost fields in hash buckets of one cache line.
//!    Names below are scanned for.
//! 3. Documents below [`INDEXED_BYTES_MIN`] have no index: scanning them costs as much as the way to
//!    the index.
//!
//! *Invariants*: 1. All of this is derived: never stored, never part of a hash, never sent. 2. What
//! is found by an index is what a scan finds; of fields with one name that is the first. 3. Memory
//! is bounded, however documents look ([`shape`], [`cache`]).

mod buckets;
pub mod cache;
pub mod shape;

use std::sync::Arc;

use crate::document::Document;
use crate::path::Path;
use crate::raw::{RawElement, element_at};
use buckets::Buckets;
use cache::LazyIndex;
use shape::{Place, Shape, ShapeRegistry};

/// Documents below are scanned.
pub const INDEXED_BYTES_MIN: usize = 1 << 8;

/// Where one document's fields lie.
#[derive(Clone, Debug)]
pub struct FieldIndex(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// The document has that shape; by ordinal the offset of the element in the document.
    Shaped { shape: Arc<Shape>, offsets: Offsets },
    /// Names of outermost fields.
    Buckets(Buckets),
}

/// Two bytes a field where the document is that short.
#[derive(Clone, Debug)]
enum Offsets {
    Short(Arc<[u16]>),
    Long(Arc<[u32]>),
}

/// A document's index: there already, or made when it is first asked.
#[derive(Clone, Debug)]
pub(crate) enum Attached {
    Ready(FieldIndex),
    Lazy(Arc<LazyIndex>),
}
const _: () = assert!(size_of::<Option<Attached>>() == 32); // With its bytes one cache line.

impl Attached {
    #[inline]
    pub(crate) fn get(&self, document: &[u8]) -> Option<&FieldIndex> {
        match self {
            Attached::Ready(index) => Some(index),
            Attached::Lazy(index) => index.get(document),
        }
    }
}

impl FieldIndex {
    /// Indexes a document. `None` if it has too many fields, or it is no BSON.
    pub fn of(document: Document<'_>, shapes: &ShapeRegistry) -> Option<FieldIndex> {
        let (shape, offsets) = match document.as_bytes().len() <= usize::from(u16::MAX) {
            true => shapes.shape_of(document).map(|(shape, it)| (shape, Offsets::Short(it))),
            false => shapes.shape_of(document).map(|(shape, it)| (shape, Offsets::Long(it))),
        }
        .unzip();
        if let (Some(shape), Some(offsets)) = (shape, offsets) {
            return Some(FieldIndex(Kind::Shaped { shape, offsets }));
        }
        Buckets::of(document).map(|buckets| FieldIndex(Kind::Buckets(buckets)))
    }

    /// Whether the document's names were seen before.
    pub fn is_shaped(&self) -> bool {
        matches!(self.0, Kind::Shaped { .. })
    }

    /// About how much memory it takes, its share in the shape not counted.
    pub fn bytes(&self) -> usize {
        let own = match &self.0 {
            Kind::Shaped { offsets: Offsets::Short(offsets), .. } => offsets.len() * 2,
            Kind::Shaped { offsets: Offsets::Long(offsets), .. } => offsets.len() * 4,
            Kind::Buckets(buckets) => buckets.bytes(),
        };
        own + size_of::<FieldIndex>()
    }

    /// The first of `document`'s outermost fields that has this name.
    #[inline]
    pub(crate) fn field<'a>(&self, document: &'a [u8], name: &[u8]) -> Option<RawElement<'a>> {
        match &self.0 {
            Kind::Shaped { shape, offsets, .. } => {
                offsets.element(document, shape.find_name(name)?)
            }
            Kind::Buckets(buckets) => buckets.find(document, name),
        }
    }

    /// What `path` names through documents alone. `Err` if the index doesn't know: it leads below
    /// the outermost fields and they have no shape.
    #[inline]
    pub(crate) fn at_path<'a>(
        &self,
        document: &'a [u8],
        path: &Path,
    ) -> Result<Option<RawElement<'a>>, Unindexed> {
        match &self.0 {
            Kind::Shaped { shape, offsets } => {
                let place = path.place_in(shape);
                Ok(place.and_then(|place| offsets.element(document, place)))
            }
            Kind::Buckets(buckets) => match path.parts() {
                [name] => Ok(buckets.find(document, name.as_bytes())),
                _ => Err(Unindexed),
            },
        }
    }

    /// As [`FieldIndex::at_path`], of a path that is not compiled.
    #[inline]
    pub(crate) fn at_dotted<'a>(
        &self,
        document: &'a [u8],
        dotted: &str,
    ) -> Result<Option<RawElement<'a>>, Unindexed> {
        let path = dotted.as_bytes();
        match &self.0 {
            Kind::Shaped { shape, offsets } => {
                let place = shape.find_dotted(path, shape::hash(path));
                Ok(place.and_then(|place| offsets.element(document, place)))
            }
            Kind::Buckets(_) if path.contains(&shape::SEPARATOR) => Err(Unindexed),
            Kind::Buckets(buckets) => Ok(buckets.find(document, path)),
        }
    }
}

/// The index doesn't reach that deep.
pub(crate) struct Unindexed;

impl Offsets {
    #[inline]
    fn element<'a>(&self, document: &'a [u8], place: Place) -> Option<RawElement<'a>> {
        let ordinal = place.ordinal as usize;
        let offset = match self {
            Offsets::Short(offsets) => usize::from(*offsets.get(ordinal)?),
            Offsets::Long(offsets) => *offsets.get(ordinal)? as usize,
        };
        element_at(document, offset, usize::from(place.name_bytes))
    }
}
