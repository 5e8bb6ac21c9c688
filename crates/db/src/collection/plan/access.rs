//! The access path to documents: the trees that are scanned, and their ranges.

use frond_doc::{ValueBuf, document};
use frond_query::index::{FLAG_INEXACT_KEY, FieldKind, IndexField};
use frond_query::planner::{FieldBounds, PartCheck};
use frond_query::{Filter, SortPattern};
use frond_tree::{Bounds, Direction};

use super::fit;
use super::request::{Hint, Order, Request};
use crate::collection::capped;
use crate::collection::covered::Cover;
use crate::error::Error;
use crate::schema::{Collection, TreeRef};

/// The paths by which documents are found, and their order.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// The scans, one after the other or merged; each document comes once.
    pub paths: Vec<AccessPath>,
    /// Whether all scans are merged, since each is in the order that was asked for.
    pub is_merged: bool,
    /// Whether documents come in the order that was asked for.
    pub gives_order: bool,
    /// Whether everything that is found passes the filter.
    pub is_exact: bool,
    /// The filter as it is to be asked, if that isn't how it was given.
    pub filter: Option<Filter>,
}

/// Ranges of one tree.
#[derive(Clone, Debug)]
pub(crate) struct AccessPath {
    /// The tree to scan.
    pub source: Source,
    /// Disjoint, in the order in which they are scanned.
    pub ranges: Vec<Bounds>,
    /// The conditions on parts of an index's keys.
    pub checks: Vec<PartCheck>,
    /// Within each range.
    pub direction: Direction,
    /// Whether one document may be found several times.
    pub may_repeat: bool,
    /// The flags of the index's entries.
    pub flags: u8,
    /// The fields of documents that the entries hold.
    pub cover: Cover,
    /// The bounds of each part of a key, for `explain`.
    pub fields: Vec<FieldBounds>,
    /// The bounds of `min` and `max`, where the ranges are wider than these.
    pub between: Option<Bounds>,
}

/// The tree to scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// The documents, all of them.
    Collection,
    /// The documents of a capped collection, in the order of their insertion.
    Natural,
    /// The documents, by their `_id`.
    Id,
    /// The points of a time series, by source and time.
    Place,
    /// The index at this position among the collection's.
    Index(usize),
}

impl AccessPath {
    /// Puts the ranges where entries are, and answers whether they are wider then.
    pub(super) fn fit(&mut self, is_whole: &dyn Fn(&[u8]) -> bool, request: Request<'_>) -> bool {
        let between = self.ranges.first().filter(|_| request.between.is_given()).cloned();
        let is_wider = fit::fit(&mut self.ranges, self.direction, is_whole);
        self.between = between.filter(|_| is_wider);
        // Where one key of a document was within, several may be now.
        self.may_repeat |= is_wider && self.flags != 0;
        is_wider
    }

    /// Whether each entry within the ranges is another document.
    pub fn is_counted_by_ranges(&self) -> bool {
        self.checks.is_empty() && !self.may_repeat
    }

    /// The tree that is scanned.
    pub fn tree(&self, collection: &Collection) -> TreeRef {
        match self.source {
            Source::Index(position) => collection.indexes[position].tree,
            Source::Collection | Source::Id | Source::Place => collection.documents,
            Source::Natural => collection.order.unwrap_or(collection.documents),
        }
    }
}

impl Access {
    /// All documents, in an order that suits `order` if that is possible.
    pub fn everything(request: Request<'_>) -> Access {
        let direction = request.id_direction();
        Access::all(direction.unwrap_or(Direction::Ascending), request)
    }

    /// All documents in the order in which they lie, or its reverse.
    pub fn natural(collection: &Collection, direction: Direction, request: Request<'_>) -> Access {
        Access::all(direction, request).in_order_of(collection)
    }

    /// The same, by the order of insertion where all documents of a capped collection are read.
    pub(super) fn in_order_of(mut self, collection: &Collection) -> Access {
        if let [path] = &mut self.paths[..]
            && path.source == Source::Collection
            && collection.order.is_some()
        {
            path.source = Source::Natural;
            path.ranges = vec![capped::all_places()];
        }
        self
    }

    /// Has all documents in the order of their `_id`s shown as found by the index of `_id`, where
    /// MongoDB would walk that: for a sort by `_id` alone, or a hint.
    ///
    /// # Errors
    /// As [`Hint::parse`].
    pub fn walk_keys_of_id(
        &mut self,
        order: &Order,
        hint: Option<&ValueBuf>,
        collection: &Collection,
    ) -> Result<(), Error> {
        let is_hinted = match hint {
            Some(hint) => Hint::parse(hint, collection)? == Some(Hint::Id),
            None => false,
        };
        let is_sorted = order.pattern().is_some_and(|pattern| pattern.fields.len() == 1);
        if let [path] = &mut self.paths[..]
            && path.source == Source::Collection
            && (is_hinted || hint.is_none() && is_sorted && self.gives_order)
        {
            path.source = Source::Id;
        }
        Ok(())
    }

    /// The order of the keys of the one tree that is read, `None` where that isn't the order of
    /// fields' values. Keys that were cut don't come in it by themselves.
    ///
    /// # Errors
    /// None that is known: `_id` can be sorted by.
    pub fn key_order(&self, collection: &Collection) -> Result<Option<Order>, Error> {
        let [path] = &self.paths[..] else { return Ok(None) };
        if self.is_merged || !self.gives_order {
            return Ok(None);
        }
        let (mut fields, collation) = match path.source {
            Source::Id | Source::Collection if collection.series.is_none() => {
                let pattern = SortPattern::parse(document! { "_id": 1_i32 }.view())?;
                (pattern.fields, pattern.collation)
            }
            Source::Index(position) => {
                let shape = &collection.indexes[position].shape;
                let is_plain = |field: &IndexField| field.kind == FieldKind::Value;
                let has_arrays = path.flags & !FLAG_INEXACT_KEY != 0;
                if has_arrays || !shape.fields().iter().all(is_plain) {
                    return Ok(None);
                }
                (shape.sort_fields().to_vec(), shape.collation().clone())
            }
            Source::Id | Source::Collection | Source::Natural | Source::Place => return Ok(None),
        };
        for field in &mut fields {
            field.descending ^= path.direction == Direction::Descending;
        }
        Ok(Some(Order::By(SortPattern { fields, collation })))
    }

    /// All documents, in this direction.
    pub(super) fn all(direction: Direction, request: Request<'_>) -> Access {
        let gives_order = match request.order {
            Order::Any | Order::Natural(_) => true,
            Order::Near(_) => false,
            Order::By(_) => request.id_direction() == Some(direction),
        };
        let path = AccessPath {
            source: Source::Collection,
            ranges: vec![Bounds::all()],
            checks: Vec::new(),
            direction,
            may_repeat: false,
            flags: 0,
            cover: Cover::Nothing,
            fields: Vec::new(),
            between: None,
        };
        let is_exact = request.filter.is_all();
        Access { paths: vec![path], is_merged: false, gives_order, is_exact, filter: None }
    }
}
