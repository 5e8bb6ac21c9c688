//! `$project`, `$addFields` (also called `$set`), `$unset`.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf, Value};

use super::Documents;
use super::division::Division;
use super::parse::{StageParser, one};
use super::rows::{Input, Pass, Passed, Rows, Visit};
use super::shape::Shape;
use super::shape_parse;
use super::stage::{Cardinality, Context, Origin, Stage, needed_ahead};
use crate::error::QueryError;
use crate::expression::{Variables, failure};
use crate::large::NeededPaths;
use crate::outermost::OutermostNames;

/// A stage that makes one document of one document.
#[derive(Debug)]
struct Project(Shape);

impl Stage for Project {
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let variables = context.variables.clone();
        if self.0.runs_scripts() {
            let memory = variables.memory().clone();
            let test_or_shape =
                move |document: &DocumentBuf| self.0.apply(document.view(), &variables).map(Some);
            return Ok(needed_ahead(input, memory, test_or_shape));
        }
        Ok(Box::new(input.map(move |document| self.0.apply(document?.view(), &variables))))
    }

    fn run_over<'a>(
        self: Arc<Self>,
        rows: Box<dyn Rows + 'a>,
        context: &Context,
    ) -> Result<Input<'a>, QueryError> {
        if self.0.runs_scripts() {
            return Ok(Input::Documents(self.run(Input::Rows(rows).into_documents(), context)?));
        }
        let stage = Shaping { stage: self, variables: context.variables.clone() };
        Ok(Input::Rows(Box::new(Passed { rows, stage })))
    }

    fn keeps(&self, path: &str) -> bool {
        self.0.keeps(path)
    }

    fn origin(&self, path: &str) -> Option<Origin> {
        self.0.origin(path).map(Origin::Document)
    }

    fn needed_paths(&self) -> NeededPaths {
        self.0.needed_paths()
    }

    fn division(self: Arc<Self>) -> Division {
        Division::Each
    }

    fn outermost_names(&self) -> Option<OutermostNames> {
        self.0.outermost.clone()
    }

    fn shape(&self) -> Option<&Shape> {
        Some(&self.0)
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Same
    }
}

/// A run of the stage.
struct Shaping {
    stage: Arc<Project>,
    variables: Variables,
}

impl Pass for Shaping {
    fn pass(&self, document: Document<'_>, visit: &mut Visit<'_>) -> Result<bool, QueryError> {
        visit(self.stage.0.apply(document, &self.variables)?.view())
    }

    fn next(&self, rows: &mut dyn Rows) -> Result<Option<DocumentBuf>, QueryError> {
        let mut made = None;
        rows.visit(&mut |document| {
            made = Some(self.stage.0.apply(document, &self.variables)?);
            Ok(false)
        })?;
        Ok(made)
    }
}

/// `$project`
pub(super) fn project(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(specification) = argument else {
        return Err(failure(15969, "$project specification must be an object"));
    };
    one(Project(shape_parse::parse("$project", specification, false, parser)?))
}

/// `$addFields`
pub(super) fn add_fields(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    add("$addFields", argument, parser)
}

/// `$set`
pub(super) fn set(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    add("$set", argument, parser)
}

fn add(
    stage: &'static str,
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(specification) = argument else {
        let name = argument.element_type().alias();
        let message = format!("{stage} specification stage must be an object, got {name}");
        return Err(failure(40272, message));
    };
    one(Project(shape_parse::parse(stage, specification, true, parser)?))
}

/// `$unset`
pub(super) fn unset(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let mut paths = Vec::new();
    match argument {
        Value::String(path) => paths.push(path),
        Value::Array(array) => {
            for element in array.iter() {
                let Value::String(path) = element else {
                    let message = "$unset specification must be a string or an array \
                                   containing only string values";
                    return Err(failure(31120, message));
                };
                paths.push(path);
            }
        }
        _ => return Err(failure(31002, "$unset specification must be a string or an array")),
    }
    if paths.is_empty() {
        let message = "$unset specification must be a string or an array with at least one field";
        return Err(failure(31119, message));
    }
    one(Project(shape_parse::without(&paths, parser)?))
}
