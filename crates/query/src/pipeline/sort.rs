//! `$sort`: stable, in bounded memory, the rest on disk ([`Sorter`]).
//!
//! A `$sort` behind which documents are only counted orders nothing, but it still refuses documents
//! that have no place in its order, as MongoDB's does.

use std::sync::Arc;

use frond_doc::{DocumentBuf, Value};

use super::Documents;
use super::division::{Division, ParallelStage, PartialResult, of_same_stage};
use super::parse::{StageParser, one};
use super::rows::{Input, Rows};
use super::sorter::{Sorted, Sorter};
use super::stage::{Cardinality, Context, Stage, lazily};
use crate::error::QueryError;
use crate::examined;
use crate::expression::failure;
use crate::large::NeededPaths;
use crate::metadata::{self, MetadataKind};
use crate::outermost::OutermostNames;
use crate::sort::SortPattern;

/// `$sort`
#[derive(Debug)]
pub(super) struct Sort {
    pattern: SortPattern,
    /// Whether all that the stages behind it need is how many documents there are.
    is_counted: bool,
    /// The fields that are read behind it; all if there are none.
    kept: Option<OutermostNames>,
}

impl Stage for Sort {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        Ok(self.over(input.into(), context))
    }

    fn run_over<'a>(
        self: Arc<Self>,
        rows: Box<dyn Rows + 'a>,
        context: &Context,
    ) -> Result<Input<'a>, QueryError> {
        Ok(Input::Documents(self.over(Input::Rows(rows), context)))
    }

    fn needed_paths(&self) -> NeededPaths {
        self.pattern.needed_paths()
    }

    fn order(&self) -> Option<&SortPattern> {
        Some(&self.pattern)
    }

    fn counted(&self) -> Option<Arc<dyn Stage>> {
        let pattern = self.pattern.may_refuse().then(|| self.pattern.clone())?;
        Some(Arc::new(Sort { pattern, is_counted: true, kept: None }))
    }

    fn keeping(&self, names: Option<&OutermostNames>) -> Option<Arc<dyn Stage>> {
        let (pattern, kept) = (self.pattern.clone(), names.cloned());
        Some(Arc::new(Sort { pattern, is_counted: self.is_counted, kept }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Other
    }

    fn division(self: Arc<Self>) -> Division {
        Division::Gathers(self)
    }
}

/// Parts, each in its order.
struct SortedParts {
    parts: Vec<Sorted>,
    wanted: usize,
}

impl ParallelStage for Sort {
    fn gather(
        self: Arc<Self>,
        input: Input<'_>,
        context: &Context,
    ) -> Result<Box<dyn PartialResult>, QueryError> {
        let wanted = context.wanted.unwrap_or(usize::MAX);
        if self.is_counted {
            return Ok(Box::new(CheckedParts { count: self.checked(input, context)?, wanted }));
        }
        let parts = vec![self.sorted(input, context)?];
        Ok(Box::new(SortedParts { parts, wanted }))
    }
}

impl PartialResult for SortedParts {
    fn append(&mut self, next: Box<dyn PartialResult>) -> Result<(), QueryError> {
        self.parts.extend(of_same_stage::<SortedParts>(next).parts);
        Ok(())
    }

    fn documents(self: Box<Self>, _: &Context) -> Result<Documents<'static>, QueryError> {
        let sorted = Sorted::interleaved(self.parts, self.wanted)?;
        Ok(Box::new(sorted.map(|entry| Ok(entry?.1))))
    }
}

/// Parts whose documents all have places in the order.
struct CheckedParts {
    count: usize,
    wanted: usize,
}

impl PartialResult for CheckedParts {
    fn append(&mut self, next: Box<dyn PartialResult>) -> Result<(), QueryError> {
        self.count += of_same_stage::<CheckedParts>(next).count;
        Ok(())
    }

    fn documents(self: Box<Self>, _: &Context) -> Result<Documents<'static>, QueryError> {
        Ok(anonymous(self.count.min(self.wanted)))
    }
}

/// So many documents, to be counted.
fn anonymous(count: usize) -> Documents<'static> {
    Box::new(std::iter::repeat_with(|| Ok(DocumentBuf::empty())).take(count))
}

impl Sort {
    /// A `$sort`.
    pub(super) fn of(pattern: SortPattern) -> Sort {
        Sort { pattern, is_counted: false, kept: None }
    }

    /// Returns how many documents there are, if each has a place in the order.
    fn checked(&self, input: Input<'_>, context: &Context) -> Result<usize, QueryError> {
        let collation = context.variables.collation();
        let (mut count, mut key) = (0, Vec::new());
        input.visit(&mut |document| {
            key.clear();
            self.pattern.append_key(&mut key, document, collation)?;
            count += 1;
            Ok(true)
        })?;
        Ok(count)
    }

    fn sorted(&self, input: Input<'_>, context: &Context) -> Result<Sorted, QueryError> {
        let collation = context.variables.collation();
        let wanted = context.wanted.unwrap_or(usize::MAX);
        examined::note_sort();
        let mut sorter = Sorter::new("Sort", &context.resources, wanted);
        let mut key = Vec::new();
        input.visit(&mut |document| {
            key.clear();
            self.pattern.append_key(&mut key, document, collation)?;
            let cut = self.kept.as_ref().and_then(|kept| kept.cut(document));
            sorter.add_view(&key, cut.as_ref().map_or(document, DocumentBuf::view))?;
            Ok(true)
        })?;
        sorter.finish()
    }

    fn over<'a>(self: Arc<Self>, input: Input<'a>, context: &Context) -> Documents<'a> {
        let context = context.clone();
        let collation = context.variables.collation().clone();
        let is_needed = context.metadata.contains(MetadataKind::SortKey);
        lazily(move || {
            if self.is_counted {
                let count = self.checked(input, &context)?;
                return Ok(anonymous(count.min(context.wanted.unwrap_or(usize::MAX))));
            }
            let sorted = self.sorted(input, &context)?;
            if !is_needed {
                return Ok(Box::new(sorted.map(|entry| Ok(entry?.1))));
            }
            Ok(Box::new(sorted.map(move |entry| {
                let (_, document) = entry?;
                let key = self.pattern.sort_key(document.view(), &collation);
                Ok(metadata::append_sort_key(document.view(), &key))
            })))
        })
    }
}

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(pattern) = argument else {
        return Err(failure(15973, "the $sort key specification must be an object"));
    };
    if pattern.is_empty() {
        return Err(failure(15976, "$sort stage must have at least one sort key"));
    }
    let pattern = SortPattern::parse_search(pattern)?;
    parser.expressions.add_metadata(pattern.metadata());
    one(Sort::of(pattern))
}
