//! `$tsSecond`, `$tsIncrement`: the two halves of a timestamp.

use frond_doc::{Timestamp, Value};

use super::super::evaluated::Evaluated;
use super::super::failure;
use super::super::node::Answer;
use crate::error::QueryError;

fn timestamp(
    operator: &str,
    code: i32,
    argument: &Evaluated<'_>,
) -> Result<Option<Timestamp>, QueryError> {
    match argument.value() {
        None | Some(Value::Null | Value::Undefined) => Ok(None),
        Some(Value::Timestamp(timestamp)) => Ok(Some(timestamp)),
        Some(_) => {
            let name = argument.type_name();
            let message = format!("Argument to {operator} must be a timestamp, but is {name}");
            Err(failure(code, message))
        }
    }
}

/// `$tsSecond`
pub(in crate::expression) fn second(argument: Evaluated<'_>) -> Answer<'_> {
    let timestamp = timestamp("$tsSecond", 5_687_301, &argument)?;
    Ok(timestamp.map_or(Evaluated::NULL, |timestamp| ((timestamp.0 >> 32) as i64).into()))
}

/// `$tsIncrement`
pub(in crate::expression) fn increment(argument: Evaluated<'_>) -> Answer<'_> {
    let timestamp = timestamp("$tsIncrement", 5_687_302, &argument)?;
    Ok(timestamp.map_or(Evaluated::NULL, |timestamp| i64::from(timestamp.0 as u32).into()))
}
