//! `$diff`, `$log`, `$history`, `$blame`, `$conflicts`, `$reflog`: documents that the history of a
//! database gives, instead of a collection's. Their options are the database's business: it gets
//! the stage as it is.
//!
//! These parse within `$lookup` and `$unionWith` only, where a pipeline's documents come from
//! elsewhere; the database that runs a pipeline takes such a first stage off itself.

use std::sync::Arc;

use frond_doc::{DocumentBuf, DocumentBuilder, Value};

use super::Documents;
use super::stage::{Context, Stage, lazily};
use crate::error::QueryError;

/// Stages of this kind.
pub(super) const NAMES: [&str; 6] =
    ["$blame", "$conflicts", "$diff", "$history", "$log", "$reflog"];

/// The names of these stages.
pub fn history_stages() -> &'static [&'static str] {
    &NAMES
}

/// Any of them.
#[derive(Debug)]
struct History(DocumentBuf);

impl Stage for History {
    fn run<'a>(
        self: Arc<Self>,
        _: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let context = context.clone();
        Ok(lazily(move || context.collections.history(None, None, &self.0)))
    }

    fn is_source(&self) -> bool {
        true
    }

    fn history(&self) -> Option<&DocumentBuf> {
        Some(&self.0)
    }
}

/// The stage `name`, as it was written.
pub(super) fn parse(name: &str, argument: Value<'_>) -> Arc<dyn Stage> {
    let mut stage = DocumentBuilder::new();
    stage.append(name, argument);
    Arc::new(History(stage.build()))
}
