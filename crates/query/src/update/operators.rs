//! The update operators: one sorted table.

use frond_doc::document::DEPTH_MAX;
use frond_doc::{Document, Value};

use super::array_filters::ArrayFilters;
use super::modifier::Modifier;
use super::{Operators, arithmetic, assign, pull, push};
use crate::code::Code;
use crate::error::QueryError;
use crate::feature::Feature;

/// Makes the modifier of one path from its operand.
type Parse = fn(path: &str, operand: Value<'_>) -> Result<Modifier, QueryError>;

/// Sorted by name.
const OPERATORS: &[(&str, Operator)] = &[
    ("$addToSet", Operator::Modifier(push::add_to_set)),
    ("$bit", Operator::Modifier(arithmetic::bit)),
    ("$currentDate", Operator::Modifier(assign::current_date)),
    ("$inc", Operator::Modifier(arithmetic::increment)),
    ("$max", Operator::Modifier(arithmetic::maximum)),
    ("$min", Operator::Modifier(arithmetic::minimum)),
    ("$mul", Operator::Modifier(arithmetic::multiply)),
    ("$pop", Operator::Modifier(pull::pop)),
    ("$pull", Operator::Modifier(pull::pull)),
    ("$pullAll", Operator::Modifier(pull::pull_all)),
    ("$push", Operator::Modifier(push::push)),
    ("$rename", Operator::Rename),
    ("$set", Operator::Modifier(assign::set)),
    ("$setOnInsert", Operator::Modifier(assign::set_on_insert)),
    ("$unset", Operator::Modifier(assign::unset)),
];

#[derive(Clone, Copy)]
enum Operator {
    /// Changes the value at the path.
    Modifier(Parse),
    /// Changes two paths.
    Rename,
}

/// Returns every operator of updates, for the list of what works.
pub(crate) fn features() -> impl Iterator<Item = Feature> {
    OPERATORS.iter().map(|(name, _)| Feature::works(name))
}

/// Parses `{$set: {...}, $inc: {...}}`.
pub(super) fn parse(update: Document<'_>, filters: ArrayFilters) -> Result<Operators, QueryError> {
    let mut operators = Operators { filters, ..Operators::default() };
    for (name, value) in update.iter() {
        let Ok(place) = OPERATORS.binary_search_by_key(&name, |(known, _)| known) else {
            return Err(QueryError::new(
                Code::FailedToParse,
                format!(
                    "Unknown modifier: {name}. Expected a valid update modifier or pipeline-style \
                     update specified as an array"
                ),
            ));
        };
        let Some(fields) = value.as_document() else {
            return Err(QueryError::new(
                Code::FailedToParse,
                format!(
                    "Modifiers operate on fields but we found type {kind} instead. For example: \
                     {{$mod: {{<field>: ...}}}} not {{{name}: {shown}}}",
                    kind = value.element_type().alias(),
                    shown = crate::text::value(value),
                ),
            ));
        };
        for (path, operand) in fields.iter() {
            match OPERATORS[place].1 {
                Operator::Modifier(parse) => {
                    operators.root.insert(path, parse(path, operand)?)?;
                }
                Operator::Rename => assign::rename(&mut operators, path, operand)?,
            }
            // A path of p parts over an operand of d levels ends p + d deep.
            operators.may_be_deep |= path.split('.').count() + depth(operand) > DEPTH_MAX;
        }
    }
    Ok(operators)
}

/// Returns how many levels of documents and arrays a value has.
fn depth(value: Value<'_>) -> usize {
    let inner = match value {
        Value::Document(document) => document,
        Value::Array(array) => array.as_document(),
        Value::JavaScriptWithScope { scope, .. } => scope,
        _ => return 0,
    };
    1 + inner.iter().map(|(_, value)| depth(value)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(OPERATORS.is_sorted_by(|left, right| left.0 < right.0));
    }
}
