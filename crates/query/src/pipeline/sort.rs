//! `$sort`: stable, in bounded memory, the rest on disk ([`Sorter`]).

use std::sync::Arc;

use frond_doc::Value;

use super::Documents;
use super::parse::{StageParser, one};
use super::sorter::Sorter;
use super::stage::{Context, Rows, Stage, lazily};
use crate::error::QueryError;
use crate::expression::failure;
use crate::sort::SortPattern;

/// `$sort`
#[derive(Debug)]
pub(super) struct Sort(pub(super) SortPattern);

impl Stage for Sort {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let wanted = context.wanted.unwrap_or(usize::MAX);
        let resources = context.resources.clone();
        let collation = context.variables.collation().clone();
        Ok(lazily(move || {
            let mut sorter = Sorter::new("Sort", &resources, wanted);
            for document in input {
                let document = document?;
                sorter.add(self.0.key_by(document.view(), &collation), document)?;
            }
            Ok(Box::new(sorter.finish()?.map(|entry| Ok(entry?.1))))
        }))
    }

    fn order(&self) -> Option<&SortPattern> {
        Some(&self.0)
    }

    fn rows(&self) -> Rows {
        Rows::Other
    }
}

pub(super) fn parse(
    argument: Value<'_>,
    _: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(pattern) = argument else {
        return Err(failure(15973, "the $sort key specification must be an object"));
    };
    if pattern.is_empty() {
        return Err(failure(15976, "$sort stage must have at least one sort key"));
    }
    one(Sort(SortPattern::parse(pattern)?))
}
