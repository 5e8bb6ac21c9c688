//! `$unionWith`: the documents of another collection after those that come in.

use std::sync::Arc;

use frond_doc::{Document, Value};

use super::parse::{StageParser, failed_to_parse, one, wrong_type};
use super::stage::{Context, Stage, lazily};
use super::{Documents, Pipeline};
use crate::code::Code;
use crate::error::QueryError;
use crate::known_fields::check_fields;
use crate::large::NeededPaths;

/// `$unionWith`
#[derive(Debug)]
struct UnionWith {
    /// Another database, or another version of this one.
    database: Option<String>,
    /// The collection; none if the pipeline makes its own documents.
    collection: Option<String>,
    pipeline: Pipeline,
}

impl Stage for UnionWith {
    fn needed_paths(&self) -> NeededPaths {
        NeededPaths::default()
    }

    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let context = Context { wanted: None, ..context.clone() };
        Ok(Box::new(input.chain(lazily(move || {
            let mut pipeline = self.pipeline.clone();
            let (database, collection) = (self.database.as_deref(), self.collection.as_deref());
            let history = pipeline.take_history();
            let documents = match (history, &self.collection) {
                (Some(stage), _) => context.collections.history(database, collection, &stage)?,
                (None, Some(collection)) => pipeline.find_first(database, collection, &context)?,
                (None, None) => Box::new(std::iter::empty()),
            };
            pipeline.run_in(documents, &context)
        }))))
    }
}

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let (database, collection, stages) = match argument {
        Value::String(collection) => (None, Some(collection), None),
        Value::Document(specification) => options(specification)?,
        other => {
            let name = other.element_type().alias();
            return Err(failed_to_parse(format!(
                "the $unionWith stage specification must be an object or string, but found {name}"
            )));
        }
    };
    let empty = frond_doc::document! {};
    if collection == Some("") {
        let message = "Invalid $unionWith namespace: the collection's name is empty";
        return Err(QueryError::new(Code::InvalidNamespace, message));
    }
    let stages = match stages {
        Some(Value::Array(stages)) => stages,
        Some(other) => return Err(wrong_type("$unionWith.pipeline", other, "array")),
        None => frond_doc::Array::from_validated(empty.as_bytes()),
    };
    let pipeline = parser.nested("$unionWith", stages, &[])?;
    if collection.is_none() && !pipeline.is_source() {
        return Err(failed_to_parse(
            "$unionWith stage without explicit collection must have a pipeline with $documents \
             as first stage",
        ));
    }
    if database.is_some() && collection.is_none() && !pipeline.is_history() {
        return Err(failed_to_parse("$unionWith.db needs a $unionWith.coll"));
    }
    let (database, collection) = (database.map(str::to_owned), collection.map(str::to_owned));
    one(UnionWith { database, collection, pipeline })
}

/// `db`, `coll` and `pipeline`
type Options<'v> = (Option<&'v str>, Option<&'v str>, Option<Value<'v>>);

fn options(specification: Document<'_>) -> Result<Options<'_>, QueryError> {
    let mut found = (None, None, None);
    check_fields("$unionWith", specification, &["db", "coll", "pipeline"])?;
    for (name, value) in specification.iter() {
        match (name, value) {
            ("db", Value::String(database)) => found.0 = Some(database),
            ("coll", Value::String(collection)) => found.1 = Some(collection),
            ("db" | "coll" | "pipeline", Value::Null | Value::Undefined) => {}
            ("pipeline", stages) => found.2 = Some(stages),
            _ => return Err(wrong_type(&format!("$unionWith.{name}"), value, "string")),
        }
    }
    Ok(found)
}
