//! `$elemMatch` and `$all`: conditions on arrays.

use frond_doc::{Document, Value};

use super::operators::{self, Operand};
use super::parse::{self, bad_value, is_operators};
use super::tree::{Condition, Test};
use crate::error::QueryError;

/// `$elemMatch`: with operators, one element fulfils all of them; with a filter, one element is a
/// document that passes.
pub(super) fn element(operand: Operand<'_>) -> Result<Condition, QueryError> {
    let Some(document) = operand.value.as_document() else {
        return Err(bad_value("$elemMatch needs an Object"));
    };
    let first = document.iter().next().map(|(name, _)| name);
    let is_logical = matches!(first, Some("$and" | "$or" | "$nor" | "$where" | "$expr"));
    let test = if is_operators(document) && !is_logical {
        let condition = parse::operators(operand.path, document, operand.depth + 1)?;
        Test::ElementValue(Box::new(condition))
    } else {
        Test::ElementDocument(Box::new(parse::document(document, operand.depth + 1)?))
    };
    Ok(Condition::Test(test))
}

/// `$all`: each of the values is found, or each of the `$elemMatch`.
pub(super) fn all(operand: Operand<'_>) -> Result<Condition, QueryError> {
    let Some(array) = operand.value.as_array() else {
        return Err(bad_value("$all needs an array"));
    };
    let is_element_match = |value: Value<'_>| {
        value.as_document().is_some_and(|document| first_name(document) == Some("$elemMatch"))
    };
    let with_elements = array.iter().next().is_some_and(is_element_match);
    let mut conditions = Vec::new();
    for value in array.iter() {
        if with_elements != is_element_match(value) {
            return Err(bad_value(match with_elements {
                true => "$all/$elemMatch has to be consistent",
                false => "no $ expressions in $all",
            }));
        }
        conditions.push(match value {
            Value::Document(document) if with_elements => {
                parse::operators(operand.path, document, operand.depth + 1)?
            }
            Value::Document(document) if is_operators(document) => {
                return Err(bad_value("no $ expressions in $all"));
            }
            Value::Regex(_) => parse::implicit(operand.path, value)?,
            _ => operators::equality(operand.path, value)?,
        });
    }
    Ok(match conditions.len() {
        0 => Condition::Test(Test::Never),
        1 => conditions.remove(0),
        _ => Condition::All(conditions),
    })
}

fn first_name(document: Document<'_>) -> Option<&str> {
    document.iter().next().map(|(name, _)| name)
}
