//! `$skip`

use std::sync::Arc;

use frond_doc::Value;

use super::Documents;
use super::limit::count;
use super::parse::{StageParser, one};
use super::stage::{Cardinality, Context, Stage};
use crate::error::QueryError;
use crate::large::NeededPaths;

/// `$skip`
#[derive(Debug)]
struct Skip(usize);

impl Stage for Skip {
    fn run<'a>(
        self: Arc<Self>,
        mut input: Documents<'a>,
        _: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let mut left = self.0;
        Ok(Box::new(std::iter::from_fn(move || {
            while 0 < left {
                left -= 1;
                // An error is never skipped.
                if let Err(error) = input.next()? {
                    return Some(Err(error));
                }
            }
            input.next()
        })))
    }

    fn needed_paths(&self) -> NeededPaths {
        NeededPaths::default()
    }

    fn skipping(&self, count: usize) -> Option<Arc<dyn Stage>> {
        Some(Arc::new(Skip(count)))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Skip(self.0)
    }
}

pub(super) fn parse(
    argument: Value<'_>,
    _: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    one(Skip(count("$skip", 5_107_200, argument)?))
}
