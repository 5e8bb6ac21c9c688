//! `$merge`: documents go into a collection, each to the one that it is about ([`Merge`]).

use std::sync::Arc;

use frond_doc::{Array, Document, Value};

use super::merge::{Merge, WhenMatched, WhenNotMatched};
use super::parse::{StageParser, one, typed, wrong_type};
use super::stage::{Context, Stage};
use super::{Documents, Pipeline, of_id, storable};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::{Variables, check_name, failure, parse_path};
use crate::known_fields::check_fields;
use crate::large::{Depth, NeededPaths};

/// `$merge`
#[derive(Debug)]
struct MergeStage {
    database: Option<String>,
    collection: String,
    merge: Merge,
}

impl Stage for MergeStage {
    /// Writes at once, as `$out` does.
    fn run<'a>(
        self: Arc<Self>,
        input: Documents<'a>,
        context: &Context,
    ) -> Result<Documents<'a>, QueryError> {
        let merge = Merge { variables: context.variables.clone(), ..self.merge.clone() };
        let database = self.database.as_deref();
        let documents = storable(input, context.variables.large());
        context.collections.merge(database, &self.collection, &merge, documents)?;
        Ok(Box::new(std::iter::empty()))
    }

    fn needed_paths(&self) -> NeededPaths {
        let mut needed = of_id();
        self.merge.on.iter().for_each(|path| needed.add(path, Depth::Whole));
        needed
    }

    fn output(&self) -> Option<(Option<String>, String)> {
        Some((self.database.clone(), self.collection.clone()))
    }
}

/// Returns where `$merge` writes: as the stage's `into`, or as all of it.
fn target(value: Value<'_>, is_field: bool) -> Result<(Option<String>, String), QueryError> {
    let (database, collection) = match value {
        Value::String("") if is_field => {
            return Err(failure(5_786_800, "$merge 'into' field cannot be an empty string"));
        }
        Value::String(collection) => (None, collection),
        Value::Document(target) => {
            let (mut database, mut collection) = (None, None);
            check_fields("into", target, &["db", "coll"])?;
            for (name, value) in target.iter() {
                match (name, value) {
                    ("db", Value::String(text)) => database = Some(text),
                    ("coll", Value::String(text)) => collection = Some(text),
                    ("db" | "coll", Value::Null | Value::Undefined) => {}
                    _ => return Err(wrong_type(&format!("into.{name}"), value, "string")),
                }
            }
            let collection = collection.filter(|name| !name.is_empty()).ok_or_else(|| {
                let message = "$merge 'into' field must specify a 'coll' that is not empty, null \
                               or undefined";
                failure(5_786_801, message)
            })?;
            (database.filter(|name| !name.is_empty()), collection)
        }
        other => {
            let found = other.element_type().alias();
            let message = format!(
                "$merge 'into' field  must be either a string or an object, but found {found}"
            );
            return Err(failure(51178, message));
        }
    };
    let is_named = |name: &str| !name.is_empty() && !name.contains('\0');
    if collection.starts_with("system.") {
        let message = format!("Cannot $merge to special collection: {collection}");
        return Err(failure(31319, message));
    }
    if !is_named(collection) || !database.is_none_or(is_named) {
        let message = format!("Invalid $merge target namespace: {collection}");
        return Err(QueryError::new(Code::InvalidNamespace, message));
    }
    Ok((database.map(str::to_owned), collection.to_owned()))
}

fn on(value: Option<Value<'_>>) -> Result<Vec<String>, QueryError> {
    let mut paths = Vec::new();
    match value {
        None => paths.push("_id".to_owned()),
        Some(Value::String(path)) => paths.push(path.to_owned()),
        Some(Value::Array(array)) => {
            for element in array.iter() {
                let Value::String(path) = element else {
                    let found = element.element_type().alias();
                    let message =
                        format!("$merge 'on' array elements must be strings, but found {found}");
                    return Err(failure(51134, message));
                };
                if paths.iter().any(|known| known == path) {
                    return Err(failure(31465, format!("Found a duplicate field '{path}'")));
                }
                paths.push(path.to_owned());
            }
            if paths.is_empty() {
                let message = "If explicitly specifying $merge 'on', must include at least one \
                               field";
                return Err(failure(51187, message));
            }
        }
        Some(other) => {
            let found = other.element_type().alias();
            let message = format!(
                "$merge 'on' field  must be either a string or an array, but found {found}"
            );
            return Err(failure(51186, message));
        }
    }
    for path in &paths {
        parse_path(path)?;
    }
    Ok(paths)
}

fn when_matched(
    value: Option<Value<'_>>,
    variables: Option<Document<'_>>,
    parser: &mut StageParser,
) -> Result<WhenMatched, QueryError> {
    let mode = match value {
        None => WhenMatched::Merge,
        Some(Value::String("replace")) => WhenMatched::Replace,
        Some(Value::String("keepExisting")) => WhenMatched::Keep,
        Some(Value::String("merge")) => WhenMatched::Merge,
        Some(Value::String("fail")) => WhenMatched::Fail,
        Some(Value::Array(stages)) => return with_pipeline(stages, variables, parser),
        Some(Value::String(other)) => {
            let message = format!(
                "Enumeration value '{other}' for field 'whenMatched' is not a valid value."
            );
            return Err(QueryError::new(Code::BadValue, message));
        }
        Some(other) => {
            let found = other.element_type().alias();
            let message = format!(
                "$merge 'whenMatched' field  must be either a string or an array, but found {found}"
            );
            return Err(failure(51191, message));
        }
    };
    if variables.is_some() {
        let shown = value.map_or("merge".to_owned(), crate::text::value);
        let message = format!("Cannot use 'let' variables with 'whenMatched: {shown}' mode");
        return Err(failure(51199, message));
    }
    Ok(mode)
}

fn with_pipeline(
    stages: Array<'_>,
    given: Option<Document<'_>>,
    parser: &mut StageParser,
) -> Result<WhenMatched, QueryError> {
    let mut variables = Vec::new();
    for (name, value) in given.iter().flat_map(|given| given.iter()) {
        check_name(name)?;
        if name == "new" && value != Value::String("$$ROOT") {
            let message =
                "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'";
            return Err(failure(51273, message));
        }
        variables.push((name.to_owned(), parser.expression(value)?));
    }
    if !variables.iter().any(|(name, _)| name == "new") {
        variables.push(("new".to_owned(), parser.expression(Value::String("$$ROOT"))?));
    }
    let pipeline = Pipeline::parse_update(stages);
    for name in pipeline.iter().flat_map(Pipeline::free) {
        if !variables.iter().any(|(bound, _)| bound == name) {
            parser.expressions.add_free(name);
        }
    }
    Ok(WhenMatched::Pipeline { pipeline, variables })
}

fn when_not_matched(value: Option<Value<'_>>) -> Result<WhenNotMatched, QueryError> {
    match value {
        None | Some(Value::String("insert")) => Ok(WhenNotMatched::Insert),
        Some(Value::String("discard")) => Ok(WhenNotMatched::Discard),
        Some(Value::String("fail")) => Ok(WhenNotMatched::Fail),
        Some(Value::String(other)) => {
            let message = format!(
                "Enumeration value '{other}' for field 'whenNotMatched' is not a valid value."
            );
            Err(QueryError::new(Code::BadValue, message))
        }
        Some(other) => Err(wrong_type("$merge.whenNotMatched", other, "string")),
    }
}

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let only_target = frond_doc::document! { "into": argument };
    let options = match argument {
        Value::String(_) => only_target.view(),
        Value::Document(options) => options,
        other => {
            let found = other.element_type().alias();
            let message = format!("$merge requires a string or object argument, but found {found}");
            return Err(failure(51182, message));
        }
    };
    let known = ["into", "on", "let", "whenMatched", "whenNotMatched"];
    check_fields("$merge", options, &known)?;
    let into = options.get("into").ok_or_else(|| {
        failure(40414, "BSON field '$merge.into' is missing but a required field")
    })?;
    let (database, collection) = target(into, argument.as_document().is_some())?;
    let variables = match typed(options, "let") {
        None => None,
        Some(Value::Document(variables)) => Some(variables),
        Some(other) => return Err(wrong_type("$merge.let", other, "object")),
    };
    let matched = when_matched(options.get("whenMatched"), variables, parser)?;
    let not_matched = when_not_matched(typed(options, "whenNotMatched"))?;
    let is_plain = matches!(matched, WhenMatched::Keep | WhenMatched::Fail);
    if is_plain && not_matched != WhenNotMatched::Insert {
        let shown = |name: &str| options.get(name).and_then(|value| value.as_str()).unwrap_or("");
        let message = format!(
            "Combination of $merge modes 'whenMatched: {}' and 'whenNotMatched: {}' is not \
             supported",
            shown("whenMatched"),
            shown("whenNotMatched")
        );
        return Err(failure(51181, message));
    }
    let merge = Merge {
        on: on(options.get("on"))?,
        has_on: options.get("on").is_some(),
        when_matched: matched,
        when_not_matched: not_matched,
        variables: Variables::default(),
    };
    one(MergeStage { database, collection, merge })
}
