//! How the documents of a request are found: the planner's choice, a hint's, or a sort's by `_id`.
//!
//! The planner works on facts about indexes and on the sizes of key ranges. What it doesn't know:
//! the documents' own tree *is* the index of `_id`, so a sort by `_id`, in either direction, costs
//! nothing wherever the documents' tree is scanned.

use std::sync::Arc;

use frond_doc::{Document, Value, ValueBuf, key};
use frond_query::planner::{self, IndexFacts, Plan};
use frond_query::{Code, Collation, Filter, SortPattern};
use frond_tree::{Bounds, Direction};

use crate::catalog::view::Index;
use crate::catalog::{Collection, ID_INDEX_NAME};
use crate::error::Error;
use crate::reader::{Reader, TreePlace};

/// Where documents are found, and in which order.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Which tree is scanned.
    pub path: AccessPath,
    /// Disjoint, in the order in which they are scanned.
    pub ranges: Vec<Bounds>,
    /// Within each range.
    pub direction: Direction,
    /// Whether documents come in the order that was asked for.
    pub gives_order: bool,
}

/// Which tree is scanned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AccessPath {
    /// The documents, all of them.
    Collection,
    /// The documents, by their `_id`.
    Id,
    /// The index at this position among the collection's.
    Index {
        /// Counted from 0.
        position: usize,
        /// Whether one document may have several entries.
        multikey: bool,
    },
}

/// What a request asks of the order of its documents.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    /// Nothing.
    Any,
    /// The order in which they lie: `$natural`.
    Natural(Direction),
    /// A sort.
    By(SortPattern),
}

/// A hint that was found to be right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hint {
    /// `$natural`.
    Natural(Direction),
    /// The index of `_id`.
    Id,
    /// The index at this position among the collection's.
    Index(usize),
}

/// What can be asked of a collection besides its trees: what a transaction itself wrote.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnFacts {
    /// For each index, the flags of entries that the transaction itself made.
    pub flags: Vec<u8>,
}

impl Order {
    /// Parses a `sort`; an empty one asks for nothing.
    pub fn parse(sort: Option<Document<'_>>) -> Result<Order, Error> {
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
            None => Ok(Order::By(SortPattern::parse(sort)?)),
        }
    }

    /// Compares strings by `collation`.
    pub fn with_collation(self, collation: &Collation) -> Order {
        match self {
            Order::By(pattern) => Order::By(pattern.with_collation(collation.clone())),
            other => other,
        }
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
        match hint.as_value() {
            Value::String("") => Ok(None),
            Value::String(ID_INDEX_NAME) => Ok(Some(Hint::Id)),
            Value::String(name) => position(&|index| index.spec.name == name).map(Some),
            Value::Document(key) if key.is_empty() => Ok(None),
            Value::Document(key) => {
                if let Some(direction) = key.get("$natural") {
                    return Ok(Some(Hint::Natural(natural_direction(direction)?)));
                }
                if crate::catalog::IndexSpec::of_id().has_key(key) {
                    return Ok(Some(Hint::Id));
                }
                position(&|index| index.spec.has_key(key)).map(Some)
            }
            _ => Err(Error::invalid(Code::FailedToParse, "Hint must be a string or an object")),
        }
    }
}

/// Chooses how to find the documents of `collection` that pass `filter`.
///
/// `collection` is as `reader`'s snapshot has it: its trees are counted. In a transaction that has
/// written, the places of its indexes are the same as in what is then scanned.
pub(crate) fn choose(
    reader: &Reader<'_>,
    collection: &Collection,
    own: &OwnFacts,
    filter: &Filter,
    order: &Order,
    hint: Option<Hint>,
) -> Result<Access, Error> {
    if filter.near().is_some() {
        let message = "error processing query: planner returned error :: caused by :: unable to find \
                       index for $geoNear query";
        return Err(Error::invalid(Code::NoQueryExecutionPlans, message));
    }
    let natural = match (order, hint) {
        (_, Some(Hint::Natural(direction))) => Some(direction),
        (Order::Natural(direction), None) => Some(*direction),
        (Order::Natural(_), Some(_)) => {
            let message = "a hint on an index can't be given together with a $natural sort";
            return Err(Error::invalid(Code::BadValue, message));
        }
        _ => None,
    };
    if let Some(direction) = natural {
        return Ok(Access::scan(AccessPath::Collection, vec![Bounds::all()], direction, order));
    }
    if hint.is_none()
        && let Some(access) = by_one_id(filter, order)
    {
        return Ok(access);
    }
    let candidates: Vec<usize> = match hint {
        Some(Hint::Index(position)) => vec![position],
        Some(Hint::Id) => Vec::new(),
        _ => {
            let is_used = |position: &usize| !collection.indexes[*position].spec.hidden;
            (0..collection.indexes.len()).filter(is_used).collect()
        }
    };
    let mut facts = Vec::with_capacity(candidates.len());
    for position in &candidates {
        let index = &collection.indexes[*position];
        let own_flags = own.flags.get(*position).copied().unwrap_or(0);
        facts.push(IndexFacts {
            name: index.spec.name.clone(),
            shape: Arc::clone(&index.shape),
            flags: own_flags | reader.flags(index.tree)?,
        });
    }
    let mut failure = None;
    let mut range_count = |candidate: Option<usize>, ranges: &[Bounds]| {
        let tree = match candidate.and_then(|candidate| candidates.get(candidate)) {
            Some(position) => collection.indexes[*position].tree,
            None => collection.documents,
        };
        count_ranges(reader, tree, ranges).unwrap_or_else(|error| {
            failure = Some(error);
            u64::MAX
        })
    };
    let plan = planner::plan(filter, order.pattern(), &facts, &mut range_count);
    if let Some(error) = failure {
        return Err(error);
    }
    let access = Access::of_plan(plan, &candidates, &facts, order);
    Ok(match hint {
        Some(Hint::Index(position)) if !access.uses_index(position) => {
            let path = AccessPath::Index { position, multikey: facts[0].flags != 0 };
            Access::scan(path, vec![Bounds::all()], Direction::Ascending, order)
        }
        _ => access,
    })
}

/// The access of a filter that names one `_id`: nothing can be better, so nothing is asked about
/// indexes.
fn by_one_id(filter: &Filter, order: &Order) -> Option<Access> {
    let mut names = filter.outermost_names()?;
    if !names.any(|name| name == b"_id") {
        return None;
    }
    let plan = planner::plan(filter, order.pattern(), &[], &mut |_, _| 0);
    let Plan::IdScan { bounds } = &plan else { return None };
    let [range] = &bounds[..] else { return None };
    let start = range.start.as_ref()?;
    // The beginnings of strings make such ranges too.
    let mut rest = &start[..];
    key::skip(&mut rest, false).ok()?;
    (rest.is_empty() && Bounds::prefix(start) == *range)
        .then(|| Access::of_plan(plan, &[], &[], order))
}

fn count_ranges(reader: &Reader<'_>, tree: TreePlace, ranges: &[Bounds]) -> Result<u64, Error> {
    let mut count = 0u64;
    for range in ranges {
        count = count.saturating_add(reader.estimate_range(tree, range)?);
    }
    Ok(count)
}

impl Access {
    /// All documents, in an order that suits `order` if that is possible.
    pub fn everything(order: &Order) -> Access {
        Access::of_plan(Plan::CollectionScan, &[], &[], order)
    }

    fn scan(path: AccessPath, ranges: Vec<Bounds>, direction: Direction, order: &Order) -> Access {
        let by_id = !matches!(path, AccessPath::Index { .. });
        let gives_order = match order {
            Order::Any | Order::Natural(_) => true,
            Order::By(pattern) => by_id && id_direction(pattern) == Some(direction),
        };
        Access { path, ranges, direction, gives_order }
    }

    fn of_plan(plan: Plan, candidates: &[usize], facts: &[IndexFacts], order: &Order) -> Access {
        let id_direction = order.pattern().and_then(id_direction);
        let direction = id_direction.unwrap_or(Direction::Ascending);
        match plan {
            Plan::CollectionScan => {
                Access::scan(AccessPath::Collection, vec![Bounds::all()], direction, order)
            }
            Plan::IdScan { bounds: mut ranges } => {
                if direction == Direction::Descending {
                    ranges.reverse();
                }
                Access::scan(AccessPath::Id, ranges, direction, order)
            }
            Plan::IndexScan { index, bounds: ranges, descending, sorted } => {
                let multikey = facts[index].flags != 0;
                let path = AccessPath::Index { position: candidates[index], multikey };
                let direction =
                    if descending { Direction::Descending } else { Direction::Ascending };
                let gives_order = sorted || order.pattern().is_none();
                Access { path, ranges, direction, gives_order }
            }
        }
    }

    fn uses_index(&self, wanted: usize) -> bool {
        matches!(self.path, AccessPath::Index { position, .. } if position == wanted)
    }
}

/// The direction in which the documents' own tree has the order of `pattern`: `_id`s are unique and
/// never arrays, so what stands after `_id` in a sort doesn't matter.
fn id_direction(pattern: &SortPattern) -> Option<Direction> {
    let first = pattern.fields.first().filter(|field| field.path == "_id")?;
    if !pattern.collation.is_simple() {
        return None;
    }
    Some(if first.descending { Direction::Descending } else { Direction::Ascending })
}
