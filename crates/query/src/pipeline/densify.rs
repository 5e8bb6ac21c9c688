//! `$densify`: documents for the values that a sequence of numbers or dates lacks.
//!
//! 1. Documents are sorted on disk where they are many: by the partition's fields and then by the
//!    field, with `full` bounds by the field alone. Those without a value stay as they are.
//! 2. Each partition has a place in its grid (the low end, and steps from there), kept in memory
//!    as long as documents may follow, or its end is to be filled.
//!    Before a document, those are made that its partition lacks up to its value, each with the
//!    partition's fields and the grid's value.
//! 3. Behind the last document, each partition is filled up to the end of the bounds.
//!
//! So partitions alternate under `full` bounds, and their ends come last, as in MongoDB, which
//! keeps no order of partitions there; here it is that of their values.
//!
//! Explicit bounds are filled where there is no document at all, but a partition is one by a value.

mod grid;
mod parse;

use std::collections::BTreeMap;
use std::sync::Arc;

use frond_doc::path::Path;
use frond_doc::{Document, DocumentBuf, Value, ValueBuf, key, order};
use frond_store::budget::Reservation;

use self::grid::{Grid, Range, Step};
pub(super) use self::parse::parse;
use super::Documents;
use super::set_path::set_path;
use super::sorter::{Sorted, Sorter};
use super::spill::Resources;
use super::stage::{Context, Stage, lazily};
use crate::error::QueryError;
use crate::expression::{Expression, Scope, Variables, failure};
use crate::large::{Depth, NeededPaths};
use crate::sort::SortPattern;

/// The number of documents that are made at most: MongoDB's limit.
const MADE_MAX: usize = 500_000;
/// The steps between two checks whether to stop.
const CHECK_COUNT: usize = 1024;
/// The memory of a partition besides its fields.
const PARTITION_BYTES: usize = 256;

/// `$densify`
#[derive(Debug)]
struct Densify {
    field: Vec<String>,
    /// An object of the partition's fields; `None`: there is one partition.
    partition: Option<Expression>,
    partition_paths: Vec<String>,
    sort: SortPattern,
    step: Step,
    bounds: Range,
}

/// The least and the greatest value of all documents.
type Span = Option<(ValueBuf, ValueBuf)>;

/// Makes the documents that lack, one after the other.
struct Filler {
    stage: Arc<Densify>,
    variables: Variables,
    resources: Resources,
    sorted: Sorted,
    span: Span,
    /// The document before which others are made.
    waiting: Option<Waiting>,
    /// The grids by the partition's key.
    grids: BTreeMap<Vec<u8>, (DocumentBuf, Grid)>,
    /// The key by which the partitions of `grids` were sorted, where others follow them.
    sorted_by: Vec<u8>,
    /// The memory of the grids.
    reservation: Reservation,
    bytes: usize,
    /// Whether all documents were seen, and the grid that comes first has noted it.
    is_at_end: bool,
    is_end_begun: bool,
    made: usize,
    steps: usize,
}

/// A document that has a value.
struct Waiting {
    key: Vec<u8>,
    partition: DocumentBuf,
    document: DocumentBuf,
}

impl Stage for Densify {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let resources = context.resources.clone();
        let variables = context.variables.clone();
        Ok(lazily(move || {
            let (sorted, span) = self.sort(input, &resources, &variables)?;
            let mut filler = Filler {
                stage: self,
                variables,
                reservation: resources.reservation(),
                resources,
                sorted,
                span,
                waiting: None,
                grids: BTreeMap::new(),
                sorted_by: Vec::new(),
                bytes: 0,
                is_at_end: false,
                is_end_begun: false,
                made: 0,
                steps: 0,
            };
            let mut has_failed = false;
            Ok(Box::new(std::iter::from_fn(move || {
                let next = (!has_failed).then(|| filler.next().transpose())?;
                has_failed = matches!(next, Some(Err(_)));
                next
            })))
        }))
    }

    fn needed_paths(&self) -> NeededPaths {
        let mut needed = self.sort.needed_paths();
        needed.add(&self.field.join("."), Depth::Whole);
        self.partition_paths.iter().for_each(|path| needed.add(path, Depth::Whole));
        needed
    }
}

impl Densify {
    /// Sorts the documents, whose values are checked.
    fn sort(
        &self,
        input: Documents<'_>,
        resources: &Resources,
        variables: &Variables,
    ) -> Result<(Sorted, Span), QueryError> {
        let mut sorter = Sorter::new("$densify", resources, usize::MAX);
        let mut span: Span = None;
        let mut key = Vec::new();
        for document in input {
            let document = document?;
            if let Some(value) = self.value(document.view()) {
                self.check(value)?;
                let (least, greatest) =
                    span.get_or_insert_with(|| (value.to_buf(), value.to_buf()));
                if order::compare(value, least.as_value()).is_lt() {
                    *least = value.to_buf();
                }
                if order::compare(value, greatest.as_value()).is_gt() {
                    *greatest = value.to_buf();
                }
            }
            key.clear();
            self.sort.append_key(&mut key, document.view(), variables.collation())?;
            sorter.add_view(&key, document.view())?;
        }
        Ok((sorter.finish()?, span))
    }

    /// The value of the field, if there is one.
    fn value<'d>(&self, document: Document<'d>) -> Option<Value<'d>> {
        let value = Path::new(&self.field.join(".")).get(document);
        value.filter(|value| !matches!(value, Value::Null | Value::Undefined))
    }

    fn check(&self, value: Value<'_>) -> Result<(), QueryError> {
        match (&self.step, value) {
            (Step::Time(..), Value::DateTime(_)) => Ok(()),
            (Step::Number(_), value) if value.is_number() => Ok(()),
            (Step::Number(_), Value::DateTime(_)) => {
                let message =
                    "Encountered date densify value in collection when step does not have a unit.";
                Err(failure(6_053_600, message))
            }
            (Step::Time(..), value) if value.is_number() => {
                let message =
                    "Encountered numeric densify value in collection when step has a date unit.";
                Err(failure(6_053_600, message))
            }
            _ => Err(failure(5_733_201, "Densify field type must be numeric or a date")),
        }
    }

    /// Whether a grid has `point` before a document with `value`; behind the last one `None`.
    fn is_wanted(&self, point: Value<'_>, value: Option<Value<'_>>, span: &Span) -> bool {
        let is_before_value = value.is_none_or(|value| order::compare(point, value).is_lt());
        is_before_value
            && match (&self.bounds, span) {
                (Range::Explicit(_, high), _) => order::compare(point, high.as_value()).is_lt(),
                (Range::Full, Some((_, high))) => order::compare(point, high.as_value()).is_le(),
                (Range::Full, None) => false,
                (Range::Partition, _) => value.is_some(),
            }
    }
}

impl Filler {
    /// The next document.
    fn next(&mut self) -> Result<Option<DocumentBuf>, QueryError> {
        loop {
            self.steps += 1;
            if self.steps.is_multiple_of(CHECK_COUNT) {
                self.resources.check()?;
            }
            if self.is_at_end {
                return self.next_at_end();
            }
            if let Some(waiting) = self.waiting.take() {
                return self.before(waiting).map(Some);
            }
            match self.sorted.next().transpose()? {
                None => self.begin_end()?,
                Some((_, document)) if self.stage.value(document.view()).is_none() => {
                    return Ok(Some(document));
                }
                Some((sort_key, document)) => {
                    self.forget(&sort_key);
                    self.waiting = Some(self.wait(document)?);
                }
            }
        }
    }

    /// Forgets the partitions that no document follows of, if their ends aren't filled.
    fn forget(&mut self, sort_key: &[u8]) {
        if !matches!(self.stage.bounds, Range::Partition) {
            return;
        }
        let mut rest = sort_key;
        for _ in &self.stage.partition_paths {
            key::skip(&mut rest, false).expect("the keys were made here");
        }
        let sorted_by = &sort_key[..sort_key.len() - rest.len()];
        if sorted_by != self.sorted_by {
            self.sorted_by = sorted_by.to_vec();
            self.grids.clear();
            self.bytes = 0;
        }
    }

    /// Finds a document's partition, or makes it known.
    fn wait(&mut self, document: DocumentBuf) -> Result<Waiting, QueryError> {
        let stage = Arc::clone(&self.stage);
        let partition = match &stage.partition {
            None => DocumentBuf::empty(),
            Some(expression) => {
                let scope = Scope::new(document.view(), &self.variables);
                match expression.evaluate_in(&scope)?.or_null() {
                    Value::Document(partition) => partition.to_buf(),
                    _ => DocumentBuf::empty(),
                }
            }
        };
        let mut key = Vec::new();
        let collation = self.variables.collation();
        collation.append_key(&mut key, Value::Document(partition.view()), false);
        let value = stage.value(document.view()).expect("documents without one don't wait");
        if !self.grids.contains_key(&key) {
            let low = self.span.as_ref().map_or(value, |(low, _)| low.as_value());
            let grid = Grid::new(&stage.bounds, &stage.step, low, value, self.grids.len());
            self.hold(PARTITION_BYTES + key.len() + partition.as_bytes().len())?;
            self.grids.insert(key.clone(), (partition.clone(), grid));
        }
        Ok(Waiting { key, partition, document })
    }

    /// The document, or one that its partition lacks before it.
    fn before(&mut self, waiting: Waiting) -> Result<DocumentBuf, QueryError> {
        let stage = Arc::clone(&self.stage);
        let (_, grid) = self.grids.get_mut(&waiting.key).expect("its partition is known");
        let value = stage.value(waiting.document.view()).expect("documents without one don't wait");
        if let Some(point) = &grid.next {
            if stage.is_wanted(point.as_value(), Some(value), &self.span) {
                let point = grid.advance(&stage.step).expect("it was seen");
                let made = self.make(&waiting.partition, point.as_value())?;
                self.waiting = Some(waiting);
                return Ok(made);
            }
            if order::compare(point.as_value(), value).is_eq() {
                grid.advance(&stage.step);
            }
        }
        grid.below = match &stage.bounds {
            Range::Explicit(low, _) if order::compare(value, low.as_value()).is_lt() => {
                Some(value.to_buf())
            }
            _ => None,
        };
        Ok(waiting.document)
    }

    /// Explicit bounds are filled without documents, too, but for partitions.
    fn begin_end(&mut self) -> Result<(), QueryError> {
        self.is_at_end = true;
        if let (Range::Explicit(low, _), None) = (&self.stage.bounds, &self.stage.partition)
            && self.grids.is_empty()
        {
            let grid = Grid { next: Some(low.clone()), below: None };
            self.grids.insert(Vec::new(), (DocumentBuf::empty(), grid));
        }
        Ok(())
    }

    /// The next document of the partitions' ends, the first partition's first.
    fn next_at_end(&mut self) -> Result<Option<DocumentBuf>, QueryError> {
        let stage = Arc::clone(&self.stage);
        while let Some(mut entry) = self.grids.first_entry() {
            let (partition, grid) = entry.get_mut();
            // Without partitions MongoDB goes on from the grid.
            if !std::mem::replace(&mut self.is_end_begun, true) && stage.partition.is_some() {
                grid.begin_end(&stage.bounds, &stage.step);
            }
            if let Some(point) = &grid.next
                && stage.is_wanted(point.as_value(), None, &self.span)
            {
                let point = grid.advance(&stage.step).expect("it was seen");
                let partition = partition.clone();
                return self.make(&partition, point.as_value()).map(Some);
            }
            self.is_end_begun = false;
            entry.remove();
        }
        Ok(None)
    }

    /// A document of the partition.
    fn make(
        &mut self,
        partition: &DocumentBuf,
        point: Value<'_>,
    ) -> Result<DocumentBuf, QueryError> {
        self.made += 1;
        if MADE_MAX < self.made {
            let message = format!(
                "Generated {} documents in $densify, which is over the limit of {MADE_MAX}. \
                 Increase the 'internalQueryMaxAllowedDensifyDocs' parameter to allow more \
                 generated documents",
                self.made
            );
            return Err(failure(5_897_900, message));
        }
        Ok(set_path(partition.view(), &self.stage.field, Some(point)))
    }

    fn hold(&mut self, bytes: usize) -> Result<(), QueryError> {
        self.bytes += bytes;
        let allowed = self.reservation.hold(self.bytes);
        allowed.map_err(|exceeded| {
            failure(6_007_200, format!("$densify exceeded memory limit of {exceeded}"))
        })
    }
}
