//! From BSON to stages, and where in pipelines a stage may stand.

use std::sync::Arc;

use frond_doc::{Array, Document, Value};

use super::history;
use super::parsed::Pipeline;
use super::pushdown::optimize;
use super::stage::Stage;
use crate::code::Code;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::{Expression, Parser, failure};
use crate::filter::Filter;

/// MongoDB's limit.
const STAGES_MAX: usize = 1000;
/// The depth to which pipelines may be nested in each other: MongoDB's limit.
const NESTED_MAX: usize = 20;

/// The place of a pipeline that is an update.
const UPDATE: &str = "update";
/// The stages that make one document of one document: what an update may consist of.
const UPDATE_STAGES: [&str; 6] =
    ["$addFields", "$project", "$replaceRoot", "$replaceWith", "$set", "$unset"];

/// Parses the argument of a stage; some are short for several stages.
pub(super) type Parse = fn(Value<'_>, &mut StageParser) -> Result<Vec<Arc<dyn Stage>>, QueryError>;

/// The support for a stage.
#[derive(Clone, Copy)]
pub(super) enum Support {
    Parsed(Parse),
    /// MongoDB has it, Frond doesn't.
    Refused,
    /// Atlas or a sharded cluster has it.
    Elsewhere,
    /// A search server has it: what a MongoDB without one says.
    Search(&'static str),
}

/// One stage.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) support: Support,
}

/// Finds a stage by its name.
pub(super) type Find = fn(&str) -> Option<&'static Row>;

/// Stages that make documents, and so come before all others; `$geoNear` reads some.
const FIRST_ONLY: [&str; 8] = [
    "$changeStream",
    "$collStats",
    "$currentOp",
    "$documents",
    "$indexStats",
    "$listLocalSessions",
    "$listSessions",
    "$planCacheStats",
];

/// Cuts large events of a change stream.
const SPLIT: &str = "$changeStreamSplitLargeEvent";

/// Checks no more of stages than that each is one: that it has one field, with a known name.
pub(super) fn check_names(stages: Array<'_>, find: Find) -> Result<(), QueryError> {
    for stage in stages.iter() {
        let (name, _) = named(stage)?;
        if find(name).is_none() && !history::NAMES.contains(&name) {
            return Err(unrecognized(name));
        }
    }
    Ok(())
}

/// The name of a stage, and its argument.
fn named(stage: Value<'_>) -> Result<(&str, Value<'_>), QueryError> {
    let Value::Document(stage) = stage else {
        let message = "Each element of the 'pipeline' array must be an object";
        return Err(QueryError::new(Code::TypeMismatch, message));
    };
    let mut fields = stage.iter();
    match (fields.next(), fields.next()) {
        (Some(field), None) => Ok(field),
        _ => {
            let message = "A pipeline stage specification object must contain exactly one field.";
            Err(failure(40323, message))
        }
    }
}

fn unrecognized(name: &str) -> QueryError {
    failure(40324, format!("Unrecognized pipeline stage name: '{name}'"))
}

/// Parses the stages of one pipeline.
pub(super) struct StageParser {
    /// The table of all stages: handed in, since stages that have pipelines get this parser.
    find: Find,
    pub(super) expressions: Parser,
    /// The stage within which this pipeline stands.
    inside: Option<&'static str>,
    nested: usize,
    collation: Collation,
}

impl StageParser {
    /// Parses pipelines of the stages that `find` finds, whose strings compare by `collation`.
    pub(super) fn new(find: Find, collation: &Collation) -> StageParser {
        let (expressions, collation) = (Parser::default(), collation.clone());
        StageParser { find, expressions, inside: None, nested: 0, collation }
    }

    /// Parses pipelines that are updates.
    pub(super) fn of_update(find: Find) -> StageParser {
        StageParser { inside: Some(UPDATE), ..StageParser::new(find, &Collation::SIMPLE) }
    }

    /// Returns how strings compare.
    pub(super) fn collation(&self) -> &Collation {
        &self.collation
    }

    /// Parses a pipeline.
    pub(super) fn stages(&mut self, stages: Array<'_>) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
        let mut parsed = Vec::new();
        let count = stages.elements().count();
        if STAGES_MAX < count {
            let message = format!("Pipeline length must be no longer than {STAGES_MAX} stages");
            return Err(failure(7_749_501, message));
        }
        for (position, stage) in stages.iter().enumerate() {
            let (name, argument) = named(stage)?;
            if let Some(known) = history::NAMES.into_iter().find(|known| *known == name)
                && (matches!(self.inside, Some("$lookup" | "$unionWith")) || position != 0)
            {
                self.check_place(known, position, count)?;
                parsed.push(history::parse(name, argument));
                continue;
            }
            let row = (self.find)(name).ok_or_else(|| unrecognized(name))?;
            let parse = match row.support {
                Support::Parsed(parse) => parse,
                Support::Search(message) => {
                    return Err(QueryError::new(Code::SearchNotEnabled, message));
                }
                Support::Refused | Support::Elsewhere => {
                    self.check_place(row.name, position, count)?;
                    let message = format!(
                        "Unrecognized pipeline stage name: '{name}': not supported by Frond yet"
                    );
                    return Err(failure(40324, message));
                }
            };
            if name == "$geoNear" && is_all(&parsed) {
                // A stage that lets every document through is as good as absent.
                parsed.clear();
                self.check_place(row.name, 0, count - position)?;
            } else {
                self.check_place(row.name, position, count)?;
            }
            let mut made = parse(argument, self)?;
            self.check_text(&made, position)?;
            parsed.append(&mut made);
        }
        Ok(parsed)
    }

    /// The pipeline of the stages that were parsed.
    pub(super) fn pipeline(&self, stages: Vec<Arc<dyn Stage>>) -> Pipeline {
        let free = self.expressions.free().clone();
        Pipeline {
            stages,
            free,
            metadata: self.expressions.metadata(),
            constants: self.expressions.constants().to_vec(),
            runs_scripts: self.expressions.runs_any_scripts(),
        }
    }

    /// Refuses a `$text` that no index can answer.
    fn check_text(&self, made: &[Arc<dyn Stage>], position: usize) -> Result<(), QueryError> {
        let has_text =
            |stage: &Arc<dyn Stage>| stage.filter().is_some_and(|filter| filter.text().is_some());
        if !made.iter().any(has_text) {
            return Ok(());
        }
        if self.inside == Some("$facet") {
            let message = "$match is not allowed to be used within a $facet stage";
            return Err(failure(40600, message));
        }
        if position != 0 {
            let message = "$match with $text is only allowed as the first pipeline stage";
            return Err(failure(17313, message));
        }
        Ok(())
    }

    /// Checks that a stage may stand where it does.
    fn check_place(
        &self,
        name: &'static str,
        position: usize,
        count: usize,
    ) -> Result<(), QueryError> {
        if self.inside == Some(UPDATE) && !UPDATE_STAGES.contains(&name) {
            let message = format!("{name} is not allowed to be used within an update");
            return Err(QueryError::new(Code::InvalidOptions, message));
        }
        let refused = match (name, self.inside) {
            (_, Some("$facet"))
                if matches!(name, "$out" | "$merge" | "$facet" | "$geoNear" | SPLIT)
                    || FIRST_ONLY.contains(&name) =>
            {
                Some((40600, "a $facet stage"))
            }
            ("$out" | "$merge" | "$changeStream" | SPLIT, Some("$lookup")) => {
                Some((51047, "a $lookup's sub-pipeline"))
            }
            ("$out" | "$merge" | "$changeStream" | SPLIT, Some(_)) => {
                Some((31441, "a $unionWith's sub-pipeline"))
            }
            _ => None,
        };
        if let Some((code, place)) = refused {
            return Err(failure(code, format!("{name} is not allowed to be used within {place}")));
        }
        if matches!(name, "$out" | "$merge") && position + 1 != count {
            let message = format!("{name} can only be the final stage in the pipeline");
            return Err(failure(40601, message));
        }
        let is_first_only = name == "$geoNear" || FIRST_ONLY.contains(&name);
        if (is_first_only || history::NAMES.contains(&name)) && position != 0 {
            let message = format!("{name} is only valid as the first stage in a pipeline");
            return Err(failure(40602, message));
        }
        Ok(())
    }

    /// Parses a pipeline within a stage, which binds `names` for it.
    pub(super) fn nested(
        &mut self,
        stage: &'static str,
        stages: Array<'_>,
        names: &[&str],
    ) -> Result<Pipeline, QueryError> {
        if NESTED_MAX <= self.nested {
            let message =
                format!("Maximum number of nested sub-pipelines exceeded. Limit is {NESTED_MAX}");
            return Err(QueryError::new(Code::MaxSubPipelineDepthExceeded, message));
        }
        let mut inner = StageParser {
            inside: Some(stage),
            nested: self.nested + 1,
            ..StageParser::new(self.find, &self.collation)
        };
        let mut stages = inner.stages(stages)?;
        optimize(&mut stages);
        let pipeline = inner.pipeline(stages);
        // The pipelines of a $facet get the documents of the one around it, others find their own.
        match stage {
            "$facet" => {
                self.expressions.add_metadata(pipeline.metadata);
                self.expressions.note_parsed(&pipeline.constants, pipeline.runs_scripts);
            }
            _ => pipeline.check_metadata()?,
        }
        for name in pipeline.free() {
            if !names.contains(&name.as_str()) {
                self.expressions.add_free(name);
            }
        }
        Ok(pipeline)
    }

    /// Parses an expression.
    pub(super) fn expression(&mut self, value: Value<'_>) -> Result<Expression, QueryError> {
        Expression::parse_with(value, &mut self.expressions)
    }
}

/// Whether the stages are filters without conditions, if anything.
fn is_all(stages: &[Arc<dyn Stage>]) -> bool {
    stages.iter().all(|stage| stage.filter().is_some_and(Filter::is_all))
}

/// The answer of a stage's parser that makes one stage.
pub(super) fn one(stage: impl Stage + 'static) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    Ok(vec![Arc::new(stage)])
}

/// A field of a stage whose fields are typed: null counts as absent.
pub(super) fn typed<'v>(specification: Document<'v>, name: &str) -> Option<Value<'v>> {
    specification.get(name).filter(|value| !matches!(value, Value::Null | Value::Undefined))
}

/// The error for a field that has another type.
pub(super) fn wrong_type(path: &str, found: Value<'_>, expected: &str) -> QueryError {
    let found = found.element_type().alias();
    let message =
        format!("BSON field '{path}' is the wrong type '{found}', expected type '{expected}'");
    QueryError::new(Code::TypeMismatch, message)
}

/// The error `FailedToParse`, which younger stages give for all that is wrong with them.
pub(super) fn failed_to_parse(message: impl Into<String>) -> QueryError {
    QueryError::new(Code::FailedToParse, message)
}
