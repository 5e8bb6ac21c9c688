//! The offsets of a document's fields: derived data beside it, so that a field is found without a
//! scan.
//!
//! Reading order: [`shape`] (the names of documents, interned), `buckets` (where names don't
//! repeat), [`cache`] (indexes of documents in the store, made on first use). A document that
//! carries an index uses it in `Document::get` and wherever a `Path` is walked, so that a caller
//! that asks a document for a field asks the index without knowing it.
//!
//! 1. A document whose list of names was seen before has a *shape*: the shape's number and one
//!    offset a field. A path through documents, however deep, is one probe of the shape's table, or
//!    none where the path remembers its ordinal in that shape.
//! 2. Any other document has the names of its outermost fields in hash buckets of one cache line.
//!    Names below are scanned for.
//! 3. Documents below [`INDEXED_BYTES_MIN`] have no index: scanning them costs as much as the way
//!    to the index.
//!
//! *Invariants*: 1. All of this is derived: never stored, never part of a hash, never sent. 2. An
//! index finds the same field as a scan; of fields with one name that is the first. 3. Memory is
//! bounded, however documents look ([`shape`], [`cache`]).

mod buckets;
pub mod cache;
pub mod shape;

use std::sync::Arc;

use crate::raw::{RawElement, element_at};
use buckets::Buckets;
use cache::LazyIndex;
use shape::{FieldSlot, Offset, Remembered, Shape, ShapeRegistry};

/// Documents below are scanned.
pub const INDEXED_BYTES_MIN: usize = 1 << 8;

/// The places of one document's fields.
#[derive(Clone, Debug)]
pub struct FieldIndex(Kind);

/// With the shape's number beside the kind, so that a path that knows its ordinal doesn't touch the
/// shape.
#[derive(Clone, Debug)]
enum Kind {
    /// The document has that shape; by ordinal the offset of the element in the document.
    Long { number: u32, shape: Arc<Shape>, offsets: Arc<[u32]> },
    /// As `Long`, in two bytes a field, where the document is that short.
    Short { number: u32, shape: Arc<Shape>, offsets: Arc<[u16]> },
    /// Names of outermost fields.
    Buckets(Buckets),
}

/// A document's index: there already, or made when it is first asked.
#[derive(Clone, Debug)]
pub(crate) enum Attached {
    Ready(FieldIndex),
    Lazy(Arc<LazyIndex>),
}
const _: () = assert!(size_of::<Option<Attached>>() == 32); // With its bytes one cache line.

impl Attached {
    /// Returns where a field lies whose place in a shape is remembered: [`FieldLookup::Unindexed`]
    /// if the document has another shape, or isn't known to have it.
    #[inline(always)]
    pub(crate) fn at_remembered(&self, remembered: Remembered) -> FieldLookup {
        if let Attached::Ready(FieldIndex(Kind::Short { number, offsets, .. })) = self
            && *number == remembered.number
        {
            return known(offsets, remembered.place);
        }
        if let Attached::Ready(FieldIndex(Kind::Long { number, offsets, .. })) = self
            && *number == remembered.number
        {
            return known(offsets, remembered.place);
        }
        FieldLookup::Unindexed
    }

    #[inline(always)]
    pub(crate) fn get(&self, document: &[u8]) -> Option<&FieldIndex> {
        match self {
            Attached::Ready(index) => Some(index),
            Attached::Lazy(index) => match index.get(document)? {
                Attached::Ready(index) => Some(index),
                Attached::Lazy(_) => None, // Never: what was made is ready.
            },
        }
    }

    /// The attachment that views of the document carry: the index itself once it is made, which
    /// saves a detour.
    #[inline]
    pub(crate) fn for_view(&self) -> &Attached {
        match self {
            Attached::Ready(_) => self,
            Attached::Lazy(index) => index.known().unwrap_or(self),
        }
    }
}

impl FieldIndex {
    /// Indexes a document, given its bytes. `None` if it has too many fields, or it is no BSON.
    pub fn of(document: &[u8], shapes: &ShapeRegistry) -> Option<FieldIndex> {
        let shaped = match document.len() <= usize::from(u16::MAX) {
            true => shapes.shape_of(document).map(|(shape, offsets)| {
                let number = shape.number();
                Kind::Short { number, shape, offsets }
            }),
            false => shapes.shape_of(document).map(|(shape, offsets)| {
                let number = shape.number();
                Kind::Long { number, shape, offsets }
            }),
        };
        let kind = shaped.or_else(|| Buckets::of(document).map(Kind::Buckets));
        kind.map(FieldIndex)
    }

    /// Whether the document's names were seen before.
    pub fn is_shaped(&self) -> bool {
        !matches!(self.0, Kind::Buckets(_))
    }

    /// About how much memory it takes, its share in the shape not counted.
    pub fn bytes(&self) -> usize {
        let own = match &self.0 {
            Kind::Long { offsets, .. } => size_of_val(&**offsets),
            Kind::Short { offsets, .. } => size_of_val(&**offsets),
            Kind::Buckets(buckets) => buckets.bytes(),
        };
        own + size_of::<FieldIndex>()
    }

    /// Returns where the first of `document`'s outermost fields lies that has this name.
    #[inline]
    pub(crate) fn field(&self, document: &[u8], name: &[u8]) -> FieldLookup {
        match self.shape() {
            Ok(shape) => self.at(shape.find_name(name)),
            Err(buckets) => FieldLookup::of(buckets.find(document, name)),
        }
    }

    /// Returns where the field lies to which `parts` lead through documents alone, `place` in its
    /// shape.
    pub(crate) fn at_path(
        &self,
        document: &[u8],
        parts: &[String],
        place: impl FnOnce(&Shape) -> FieldSlot,
    ) -> FieldLookup {
        match (self.shape(), parts) {
            (Ok(shape), _) => self.at(place(shape)),
            (Err(buckets), [name]) => FieldLookup::of(buckets.find(document, name.as_bytes())),
            (Err(_), _) => FieldLookup::Unindexed,
        }
    }

    /// As [`FieldIndex::at_path`], of a path that is not compiled.
    #[inline(always)]
    pub(crate) fn at_dotted(&self, document: &[u8], dotted: &str) -> FieldLookup {
        let path = dotted.as_bytes();
        match self.shape() {
            Ok(shape) => self.at(shape.find_dotted(path, shape::hash(path))),
            Err(_) if path.contains(&shape::SEPARATOR) => FieldLookup::Unindexed,
            Err(buckets) => FieldLookup::of(buckets.find(document, path)),
        }
    }

    /// The document's shape, or what it has instead.
    #[inline(always)]
    fn shape(&self) -> Result<&Shape, &Buckets> {
        match &self.0 {
            Kind::Long { shape, .. } | Kind::Short { shape, .. } => Ok(shape),
            Kind::Buckets(buckets) => Err(buckets),
        }
    }

    /// Returns where the field at a place of the document's shape lies.
    #[inline(always)]
    fn at(&self, place: FieldSlot) -> FieldLookup {
        match &self.0 {
            Kind::Long { offsets, .. } => known(offsets, place),
            Kind::Short { offsets, .. } => known(offsets, place),
            Kind::Buckets(_) => FieldLookup::Unindexed,
        }
    }
}

/// The answer of an index about a field. Numbers alone, which stay in registers: an element that is
/// handed on through memory costs more than all the rest of a look-up.
#[derive(Clone, Copy)]
pub(crate) enum FieldLookup {
    /// It lies there.
    At(ElementSpot),
    /// There is none.
    Absent,
    /// The index doesn't reach that deep: the path leads below the outermost fields, and they have
    /// no shape.
    Unindexed,
}

/// The place of an element in its document, and the length of its name. So narrow that their sum
/// fits into a `usize` without being looked at.
#[derive(Clone, Copy)]
pub(crate) struct ElementSpot {
    offset: u32,
    name_bytes: u32,
}

impl FieldLookup {
    #[inline(always)]
    fn of(spot: Option<ElementSpot>) -> FieldLookup {
        spot.map_or(FieldLookup::Absent, FieldLookup::At)
    }
}

impl ElementSpot {
    /// Returns the spot of an element that lies in `document`, or in a document inside of it.
    pub(crate) fn of(document: &[u8], element: &RawElement<'_>) -> Option<ElementSpot> {
        // Behind the type, which is one byte.
        let name_offset = element.name.as_ptr().addr().checked_sub(document.as_ptr().addr())?;
        let offset = u32::try_from(name_offset.checked_sub(1)?).ok()?;
        Some(ElementSpot { offset, name_bytes: u32::try_from(element.name.len()).ok()? })
    }

    /// The element there.
    #[inline(always)]
    pub(crate) fn element(self, document: &[u8]) -> Option<RawElement<'_>> {
        element_at(document, self.offset as usize, self.name_bytes as usize)
    }
}

/// Returns where the field at a place of the shape lies, given its document's offsets.
#[inline(always)]
fn known<O: Offset>(offsets: &[O], place: FieldSlot) -> FieldLookup {
    let Some(offset) = offsets.get(usize::from(place.ordinal)) else { return FieldLookup::Absent };
    FieldLookup::At(ElementSpot { offset: (*offset).into(), name_bytes: place.name_bytes.into() })
}
