//! `$fill`: short for a `$setWindowFields` with `$locf` and `$linearFill`, and a `$addFields` that
//! puts values where there are none.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuilder, Value};

use super::parse::{StageParser, failed_to_parse};
use super::stage::Stage;
use super::{project, set_window_fields};
use crate::error::QueryError;
use crate::expression::{failure, parse_path};

/// How one field is filled.
enum Method<'v> {
    Value(Value<'v>),
    Linear,
    Last,
}

fn method<'v>(path: &str, specification: Value<'v>) -> Result<Method<'v>, QueryError> {
    let fields = specification.as_document().map(|document| document.iter().collect::<Vec<_>>());
    match fields.as_deref() {
        Some([("value", value)]) => Ok(Method::Value(*value)),
        Some([("method", Value::String("linear"))]) => Ok(Method::Linear),
        Some([("method", Value::String("locf"))]) => Ok(Method::Last),
        Some([("method", Value::String(other))]) => {
            let message = format!("Method must be either locf or linear, found {other}");
            Err(failure(6_050_202, message))
        }
        _ => {
            let message = format!(
                "Each field of $fill's 'output' must be an object with either 'value' or 'method': \
                 {path}"
            );
            Err(failed_to_parse(message))
        }
    }
}

/// The `partitionBy` of the `$setWindowFields`.
fn append_partition(
    window: &mut DocumentBuilder,
    specification: Document<'_>,
) -> Result<(), QueryError> {
    match (specification.get("partitionBy"), specification.get("partitionByFields")) {
        (Some(_), Some(_)) => {
            let message =
                "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'";
            return Err(failure(6_050_204, message));
        }
        (Some(partition @ (Value::String(_) | Value::Document(_))), None) => {
            window.append("partitionBy", partition);
        }
        (Some(_), None) => {
            return Err(failed_to_parse("$fill 'partitionBy' must be a string or an object"));
        }
        (None, Some(Value::Array(paths))) => {
            window.begin_document("partitionBy");
            for (position, path) in paths.iter().enumerate() {
                let Value::String(path) = path else {
                    return Err(failed_to_parse("$fill 'partitionByFields' must hold strings"));
                };
                parse_path(path)?;
                window.append(&position.to_string(), Value::String(&format!("${path}")));
            }
            window.end();
        }
        (None, Some(_)) => {
            return Err(failed_to_parse("$fill 'partitionByFields' must be an array"));
        }
        (None, None) => {}
    }
    Ok(())
}

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(specification) = argument else {
        return Err(failed_to_parse("The $fill stage specification must be an object"));
    };
    let known = ["sortBy", "partitionBy", "partitionByFields", "output"];
    if let Some((name, _)) = specification.iter().find(|(name, _)| !known.contains(name)) {
        let message = format!("BSON field '$fill.{name}' is an unknown field.");
        return Err(failure(40415, message));
    }
    let Some(Value::Document(output)) = specification.get("output") else {
        let message = "BSON field '$fill.output' is missing but a required field";
        return Err(failure(40414, message));
    };
    if output.is_empty() {
        return Err(failure(6_050_203, "$fill requires at least one output field"));
    }
    let sort = specification.get("sortBy");
    let mut window = DocumentBuilder::new();
    append_partition(&mut window, specification)?;
    if let Some(sort) = sort {
        window.append("sortBy", sort);
    }
    window.begin_document("output");
    let mut values = DocumentBuilder::new();
    let (mut has_window, mut has_values) = (false, false);
    for (path, how) in output.iter() {
        let own = format!("${path}");
        match method(path, how)? {
            Method::Value(value) => {
                has_values = true;
                values.begin_document(path).begin_array("$ifNull");
                values.push(Value::String(&own)).push(value).end().end();
            }
            Method::Linear | Method::Last if sort.is_none() => {
                let message = "$fill with 'linear' or 'locf' requires a sort order ('sortBy')";
                return Err(failure(6_050_202, message));
            }
            Method::Linear => {
                has_window = true;
                window.begin_document(path).append("$linearFill", Value::String(&own)).end();
            }
            Method::Last => {
                has_window = true;
                window.begin_document(path).append("$locf", Value::String(&own)).end();
            }
        }
    }
    window.end();
    let mut stages = Vec::new();
    if has_window {
        let window = window.build();
        stages.append(&mut set_window_fields::parse(Value::Document(window.view()), parser)?);
    }
    if has_values {
        let values = values.build();
        stages.append(&mut project::add_fields(Value::Document(values.view()), parser)?);
    }
    Ok(stages)
}
