//! `$limit`

use std::sync::Arc;

use frond_doc::Value;

use super::Documents;
use super::parse::{StageParser, one};
use super::stage::{Cardinality, Context, Stage};
use crate::error::QueryError;
use crate::expression::failure;
use crate::large::NeededPaths;
use crate::number::any_type::Number;

/// `$limit`
#[derive(Debug)]
struct Limit(usize);

impl Stage for Limit {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        _: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        Ok(Box::new(input.take(self.0)))
    }

    fn needed_paths(&self) -> NeededPaths {
        NeededPaths::default()
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Limit(self.0)
    }
}

/// Reads the argument of `$limit` or `$skip`.
pub(super) fn count(stage: &str, code: i32, argument: Value<'_>) -> Result<usize, QueryError> {
    let refuse = |what: &str| {
        let text = crate::text::field(stage, argument);
        failure(code, format!("invalid argument to {stage} stage: Expected {what} in: {text}"))
    };
    let number = Number::of(argument).ok_or_else(|| refuse("a number"))?;
    let whole = number.whole().ok_or_else(|| refuse("an integer"))?;
    usize::try_from(whole).map_err(|_| refuse("a non-negative number"))
}

pub(super) fn parse(
    argument: Value<'_>,
    _: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    match count("$limit", 5_107_201, argument)? {
        0 => Err(failure(15958, "the limit must be positive")),
        limit => one(Limit(limit)),
    }
}
