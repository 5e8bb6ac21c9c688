//! `$match`

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf, Value};

use super::Documents;
use super::division::Division;
use super::parse::StageParser;
use super::rows::{Input, Pass, Passed, Rows, Visit};
use super::stage::{Context, Stage, needed_ahead};
use crate::error::QueryError;
use crate::expression::failure;
use crate::filter::{Filter, near_not_allowed};
use crate::large::NeededPaths;

/// `$match`
#[derive(Debug)]
struct Match(Filter);

impl Stage for Match {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let filter = self.0.clone().with_variables(context.variables.clone());
        if filter.runs_scripts() {
            let memory = context.variables.memory().clone();
            let test_or_shape = move |document: &DocumentBuf| {
                let passes = filter.try_matches(document.view())?;
                Ok(passes.then(|| document.clone()))
            };
            return Ok(needed_ahead(input, memory, test_or_shape));
        }
        Ok(Box::new(input.filter_map(move |document| {
            let document = match document {
                Ok(document) => document,
                Err(error) => return Some(Err(error)),
            };
            match filter.try_matches(document.view()) {
                Ok(true) => Some(Ok(document)),
                Ok(false) => None,
                Err(error) => Some(Err(error)),
            }
        })))
    }

    fn run_over<'a>(
        self: Arc<Self>,
        rows: Box<dyn Rows + 'a>,
        context: &Context,
    ) -> Result<Input<'a>, QueryError> {
        if self.0.runs_scripts() {
            return Ok(Input::Documents(self.run(Input::Rows(rows).into_documents(), context)?));
        }
        let stage = self.0.clone().with_variables(context.variables.clone());
        Ok(Input::Rows(Box::new(Passed { rows, stage })))
    }

    fn needed_paths(&self) -> NeededPaths {
        self.0.needed_paths()
    }

    fn division(self: Arc<Self>) -> Division {
        Division::Each
    }

    fn filter(&self) -> Option<&Filter> {
        Some(&self.0)
    }
}

/// The stage of a filter.
pub(super) fn stage(filter: Filter) -> Arc<dyn Stage> {
    Arc::new(Match(filter))
}

impl Pass for Filter {
    fn pass(&self, document: Document<'_>, visit: &mut Visit<'_>) -> Result<bool, QueryError> {
        if self.try_matches(document)? { visit(document) } else { Ok(true) }
    }

    fn next(&self, rows: &mut dyn Rows) -> Result<Option<DocumentBuf>, QueryError> {
        while let Some(document) = rows.next()? {
            if self.try_matches(document.view())? {
                return Ok(Some(document));
            }
        }
        Ok(None)
    }
}

/// `$match`
pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Arc<dyn Stage>, QueryError> {
    let Value::Document(filter) = argument else {
        return Err(failure(15959, "the match filter must be an expression in an object"));
    };
    let filter = Filter::parse_search(filter)?;
    filter.refuse_scripts()?;
    if filter.near().is_some() {
        return Err(near_not_allowed());
    }
    parser.expressions.note_parsed(&filter.constants(), filter.runs_scripts());
    Ok(stage(filter))
}
