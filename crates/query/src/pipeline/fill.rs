//! `$fill`: short for a `$setWindowFields` with `$locf` and `$linearFill`, and a `$addFields` that
//! puts values where there are none.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuilder, Value};

use super::parse::{StageParser, failed_to_parse, typed, wrong_type};
use super::stage::Stage;
use super::{project, set_window_fields};
use crate::error::QueryError;
use crate::expression::{failure, parse_path};
use crate::known_fields::check_fields;

/// The method that fills a field.
enum Method<'v> {
    Value(Value<'v>),
    Linear,
    Last,
}

/// Returns the method that fills a field; `None` if none is given.
fn method<'v>(path: &str, specification: Value<'v>) -> Result<Option<Method<'v>>, QueryError> {
    let Value::Document(specification) = specification else {
        let message = "Each fill output specification must be an object with exactly one field";
        return Err(failure(6_050_200, format!("{message}: {path}")));
    };
    let (mut method, mut value) = (None, None);
    check_fields("$fill", specification, &["value", "method"])?;
    for (name, given) in specification.iter() {
        match (name, given) {
            ("value", _) => value = Some(Method::Value(given)),
            ("method", Value::String("linear")) => method = Some(Method::Linear),
            ("method", Value::String("locf")) => method = Some(Method::Last),
            ("method", Value::String(other)) => {
                let message = format!("Method must be either locf or linear, found {other}");
                return Err(failure(6_050_202, message));
            }
            ("method", Value::Null | Value::Undefined) => {}
            _ => return Err(wrong_type("$fill.method", given, "string")),
        }
    }
    if method.is_some() && value.is_some() {
        let message = "Each fill output specification must have exactly one of 'method' or 'value' \
                       fields, not both";
        return Err(failure(6_050_201, message));
    }
    Ok(method.or(value))
}

/// The `partitionBy` of the `$setWindowFields`.
fn append_partition(
    window: &mut DocumentBuilder,
    specification: Document<'_>,
) -> Result<(), QueryError> {
    match (typed(specification, "partitionBy"), typed(specification, "partitionByFields")) {
        (Some(_), Some(_)) => {
            let message =
                "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'";
            return Err(failure(6_050_204, message));
        }
        (Some(partition @ (Value::String(_) | Value::Document(_))), None) => {
            window.append("partitionBy", partition);
        }
        (Some(other), None) => {
            return Err(wrong_type("$fill.partitionBy", other, "string, object"));
        }
        (None, Some(Value::Array(paths))) => {
            window.begin_document("partitionBy");
            for (position, path) in paths.iter().enumerate() {
                let Value::String(path) = path else {
                    return Err(wrong_type("$fill.partitionByFields", path, "string"));
                };
                parse_path(path)?;
                window.append(&position.to_string(), Value::String(&format!("${path}")));
            }
            window.end();
        }
        (None, Some(other)) => return Err(wrong_type("$fill.partitionByFields", other, "array")),
        (None, None) => {}
    }
    Ok(())
}

fn parse_output(specification: Document<'_>) -> Result<Document<'_>, QueryError> {
    let output = typed(specification, "output").ok_or_else(|| {
        failure(40414, "BSON field '$fill.output' is missing but a required field")
    })?;
    let Value::Document(output) = output else {
        return Err(wrong_type("$fill.output", output, "object"));
    };
    if output.is_empty() {
        return Err(failure(6_050_203, "$fill requires at least one output field"));
    }
    Ok(output)
}

pub(super) fn parse(
    argument: Value<'_>,
    parser: &mut StageParser,
) -> Result<Vec<Arc<dyn Stage>>, QueryError> {
    let Value::Document(specification) = argument else {
        return Err(failed_to_parse("The $fill stage specification must be an object"));
    };
    let known = ["sortBy", "partitionBy", "partitionByFields", "output"];
    check_fields("$fill", specification, &known)?;
    let output = parse_output(specification)?;
    let sort = typed(specification, "sortBy");
    if let Some(other) = sort.filter(|sort| sort.as_document().is_none()) {
        return Err(wrong_type("$fill.sortBy", other, "object"));
    }
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
        let filled = method(path, how)?;
        match filled {
            None => {}
            Some(Method::Value(value)) => {
                has_values = true;
                values.begin_document(path).begin_array("$ifNull");
                values.push(Value::String(&own)).push(value).end().end();
            }
            Some(Method::Linear) => {
                has_window = true;
                window.begin_document(path).append("$linearFill", Value::String(&own)).end();
            }
            Some(Method::Last) => {
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
