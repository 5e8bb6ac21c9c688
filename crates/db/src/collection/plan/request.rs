//! Requests to a collection: the documents, their order, and the indexes to use.

use bytes::Bytes;
use frond_doc::{Document, DocumentBuf, Value, ValueBuf};
use frond_query::index::IndexShape;
use frond_query::{Code, Collation, Distance, Filter, SortPattern, text};
use frond_tree::{Bounds, Direction};

use crate::collection::covered::NeededPaths;
use crate::definition::{ID_INDEX_NAME, IndexSpec};
use crate::error::Error;
use crate::schema::{Collection, Index, IndexFilter};

/// A request to a collection.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The filter of the documents.
    pub filter: &'a Filter,
    /// The order.
    pub order: &'a Order,
    /// The index to use.
    pub hint: Option<Hint>,
    /// The greatest number, those that are passed over counted.
    pub limit: Option<u64>,
    /// The number of documents that are passed over first.
    pub skip: u64,
    /// The parts of them that are needed.
    pub needs: &'a NeededPaths,
    /// The keys of the hinted index between which it searches.
    pub between: MinMaxBounds<'a>,
    /// The field whose distinct values alone are wanted.
    pub distinct: Option<&'a str>,
    /// Whether documents lie by `_id`.
    pub is_by_id: bool,
    /// The indexes that may be used, if an operator has said so.
    pub allowed: Option<&'a IndexFilter>,
}

impl<'a> Request<'a> {
    /// The same, which may use no other indexes than these if there are any: a hint doesn't count,
    /// then.
    pub fn among(self, allowed: Option<&'a IndexFilter>) -> Request<'a> {
        if allowed.is_none() || self.between.is_given() {
            return self;
        }
        let may_use_ids = allowed.is_some_and(|allowed| allowed.allows(&IndexSpec::of_id()));
        Request { allowed, hint: None, is_by_id: self.is_by_id && may_use_ids, ..self }
    }
}

impl Request<'_> {
    /// The direction in which the documents' own tree has the order that is asked for.
    pub(super) fn id_direction(&self) -> Option<Direction> {
        let first = self.order.pattern().filter(|_| self.is_by_id)?.id_field()?;
        Some(if first.descending { Direction::Descending } else { Direction::Ascending })
    }
}

/// The `min` and `max` of a `find`: the first key of the hinted index that is read, and the first
/// that isn't any more.
#[derive(Clone, Copy, Default, Debug)]
pub struct MinMaxBounds<'a> {
    /// The first.
    pub min: Option<Document<'a>>,
    /// The first behind.
    pub max: Option<Document<'a>>,
}

impl<'a> MinMaxBounds<'a> {
    /// These; what has no fields is none.
    ///
    /// # Errors
    /// 51176 if they have different fields.
    pub fn of(
        min: Option<&'a DocumentBuf>,
        max: Option<&'a DocumentBuf>,
    ) -> Result<MinMaxBounds<'a>, Error> {
        let given = |values: Option<&'a DocumentBuf>| {
            values.map(DocumentBuf::view).filter(|values| !values.is_empty())
        };
        let (min, max) = (given(min), given(max));
        if let (Some(min), Some(max)) = (min, max)
            && !min.iter().map(|(name, _)| name).eq(max.iter().map(|(name, _)| name))
        {
            let message = "min and max must have the same field names";
            return Err(Error::invalid(Code::Location(51176), message));
        }
        Ok(MinMaxBounds { min, max })
    }

    pub(super) fn is_given(self) -> bool {
        self.min.is_some() || self.max.is_some()
    }

    /// The range of `shape`'s keys.
    pub(super) fn range(self, shape: &IndexShape) -> Result<Bounds, Error> {
        let key_of = |values: Document<'_>| {
            let fields = shape.sort_fields();
            let names = values.iter().map(|(name, _)| name);
            if !shape.is_of_values() || !names.eq(fields.iter().map(|field| field.path.as_str())) {
                let message = "The index chosen is not compatible with min/max";
                return Err(Error::invalid(Code::Location(51174), message));
            }
            let mut bytes = Vec::new();
            for (field, (_, value)) in fields.iter().zip(values.iter()) {
                shape.collation().append_key(&mut bytes, value, field.descending);
            }
            Ok(Bytes::from(bytes))
        };
        let range = Bounds {
            start: self.min.map(key_of).transpose()?,
            end: self.max.map(key_of).transpose()?,
        };
        if let (Some(start), Some(end)) = (&range.start, &range.end)
            && start >= end
        {
            let message = "The value provided for min() does not come before the value provided for max() in \
                           the hinted index's ordering";
            return Err(Error::invalid(Code::Location(51175), message));
        }
        Ok(range)
    }
}

/// The order of documents that a request asks for.
#[derive(Clone, Debug)]
pub enum Order {
    /// Nothing.
    Any,
    /// The order in which they lie: `$natural`.
    Natural(Direction),
    /// A sort.
    By(SortPattern),
    /// The nearest first: what is found is always sorted.
    Near(Distance),
}

/// A hint that was found to be right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hint {
    /// `$natural`.
    Natural(Direction),
    /// The index of `_id`.
    Id,
    /// The index of source and time that a time series' own tree is.
    Place,
    /// The index at this position among the collection's.
    Index(usize),
}

/// The facts about documents that a transaction itself wrote, besides those in the collection's
/// trees.
#[derive(Clone, Debug, Default)]
pub struct OwnFacts {
    /// For each index, the flags of entries that the transaction itself made.
    pub flags: Vec<u8>,
}

impl Order {
    /// Parses a `sort`; an empty one asks for nothing.
    ///
    /// # Errors
    /// `BadValue` (2) and MongoDB's other codes for what no sort can be.
    pub fn parse(sort: Option<Document<'_>>) -> Result<Order, Error> {
        if let Some(sort) = sort.filter(|sort| sort.get("$natural").is_none()) {
            SortPattern::parse(sort)?;
        }
        Order::parse_search(sort)
    }

    /// As [`Order::parse`], by what a search knows of documents, too.
    ///
    /// # Errors
    /// As [`Order::parse`].
    pub fn parse_search(sort: Option<Document<'_>>) -> Result<Order, Error> {
        let Some(sort) = sort.filter(|sort| !sort.is_empty()) else {
            return Ok(Order::Any);
        };
        match sort.get("$natural") {
            Some(direction) => {
                if sort.iter().count() > 1 {
                    let message = "Cannot include '$natural' in compound sort";
                    return Err(Error::invalid(Code::BadValue, message));
                }
                Ok(Order::Natural(natural_direction(direction)?))
            }
            None => Ok(Order::By(SortPattern::parse_search(sort)?)),
        }
    }

    /// Compares strings by `collation`.
    pub fn with_collation(self, collation: &Collation) -> Order {
        match self {
            Order::By(pattern) => Order::By(pattern.with_collation(collation.clone())),
            other => other,
        }
    }

    /// The outermost fields that decide the order; `None` if others may.
    pub fn outermost_names(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let fields = match self {
            Order::Any | Order::Natural(_) => &[][..],
            Order::By(pattern) => &pattern.fields,
            Order::Near(_) => return None,
        };
        Some(fields.iter().map(|field| match field.path.split_once('.') {
            Some((first, _)) => first.as_bytes(),
            None => field.path.as_bytes(),
        }))
    }

    /// The pattern, if there is one.
    pub fn pattern(&self) -> Option<&SortPattern> {
        match self {
            Order::By(pattern) => Some(pattern),
            _ => None,
        }
    }
}

fn natural_direction(value: Value<'_>) -> Result<Direction, Error> {
    match value.as_integer() {
        Some(1) => Ok(Direction::Ascending),
        Some(-1) => Ok(Direction::Descending),
        _ => Err(Error::invalid(Code::BadValue, "$natural must be 1 or -1")),
    }
}

impl Hint {
    /// Finds what `hint`, a name or a key, stands for.
    ///
    /// # Errors
    /// `BadValue` (2) if there is no such index, or it is hidden; `FailedToParse` (9) for another
    /// type.
    pub fn parse(hint: &ValueBuf, collection: &Collection) -> Result<Option<Hint>, Error> {
        let wrong = || {
            let message = "error processing query: planner returned error :: caused by :: bad \
                           hint: hint provided does not correspond to an existing index";
            Error::invalid(Code::BadValue, message)
        };
        let position = |wanted: &dyn Fn(&Index) -> bool| {
            let is_wanted = |index: &Index| !index.spec.hidden && wanted(index);
            collection.indexes.iter().position(is_wanted).map(Hint::Index).ok_or_else(wrong)
        };
        let own = collection.series.as_ref().and_then(|series| series.listed_index());
        if own.is_some_and(|own| own.is_hinted(hint.as_value())) {
            return Ok(Some(Hint::Place));
        }
        let is_by_id = collection.series.is_none();
        let of_id = || collection.collated_id().map_or(Hint::Id, Hint::Index);
        match hint.as_value() {
            Value::String("") => Ok(None),
            Value::String(ID_INDEX_NAME) if is_by_id => Ok(Some(of_id())),
            Value::String(name) => position(&|index| index.spec.name == name).map(Some),
            Value::Document(key) if key.is_empty() => Ok(None),
            Value::Document(key) => {
                if let Some(direction) = key.get("$natural") {
                    if key.iter().nth(1).is_some() {
                        let message = "$natural hint can't stand beside other fields";
                        return Err(Error::invalid(Code::BadValue, message));
                    }
                    return Ok(Some(Hint::Natural(natural_direction(direction)?)));
                }
                if is_by_id && IndexSpec::of_id().has_key(key) {
                    return Ok(Some(of_id()));
                }
                let is_it = |index: &Index| !index.spec.hidden && index.spec.has_key(key);
                let mut found = (0..).zip(&collection.indexes).filter(|(_, index)| is_it(index));
                match (found.next(), found.next()) {
                    (Some((position, _)), None) => Ok(Some(Hint::Index(position))),
                    (Some((_, one)), Some((_, other))) => {
                        let shown =
                            |index: &Index| text::value(Value::from(&index.spec.to_document()));
                        let message = format!(
                            "error processing query: planner returned error :: caused by :: Hint \
                             matched multiple indexes, must hint by index name. Matched: {} and {}",
                            shown(one),
                            shown(other)
                        );
                        Err(Error::invalid(Code::IndexNotFound, message))
                    }
                    (None, _) => Err(wrong()),
                }
            }
            _ => Err(Error::invalid(Code::FailedToParse, "Hint must be a string or an object")),
        }
    }
}
