//! The equalities of a filter, each with one certain value: an upsert puts them into the new
//! document.

use frond_doc::Value;

use super::compare::Relation;
use super::tree::{Condition, Node, Test};
use crate::code::Code;
use crate::error::QueryError;

/// The paths and values, in the filter's order.
pub(super) fn of(root: &Node) -> Result<Vec<(&str, Value<'_>)>, QueryError> {
    let mut found = Vec::new();
    collect(root, &|_| true, &mut found)?;
    Ok(found)
}

/// The value of `_id`, whatever is demanded of other paths.
pub(super) fn of_id(root: &Node) -> Result<Option<Value<'_>>, QueryError> {
    let mut found = Vec::new();
    collect(root, &|path| path == "_id" || is_within(path, "_id"), &mut found)?;
    if let Some((path, _)) = found.iter().find(|(path, _)| *path != "_id") {
        let message =
            format!("field at '_id' must be exactly specified, field at sub-path '{path}' found");
        return Err(QueryError::new(Code::NotExactValueField, message));
    }
    Ok(found.first().map(|(_, value)| *value))
}

fn collect<'a>(
    node: &'a Node,
    is_wanted: &dyn Fn(&str) -> bool,
    found: &mut Vec<(&'a str, Value<'a>)>,
) -> Result<(), QueryError> {
    match node {
        Node::And(nodes) => nodes.iter().try_for_each(|inner| collect(inner, is_wanted, found)),
        Node::Or(nodes) if nodes.len() == 1 => collect(&nodes[0], is_wanted, found),
        Node::Field(field) if is_wanted(&field.dotted) => {
            from_condition(&field.dotted, &field.condition, found)
        }
        _ => Ok(()),
    }
}

fn from_condition<'a>(
    path: &'a str,
    condition: &'a Condition,
    found: &mut Vec<(&'a str, Value<'a>)>,
) -> Result<(), QueryError> {
    let value = match condition {
        Condition::All(inner) => {
            return inner.iter().try_for_each(|inner| from_condition(path, inner, found));
        }
        Condition::Test(Test::Compare(comparison)) if comparison.relation() == Relation::Equal => {
            comparison.operand()
        }
        Condition::Test(Test::In(membership))
            if membership.values().len() == 1 && membership.patterns().is_empty() =>
        {
            membership.values()[0].as_value()
        }
        _ => return Ok(()),
    };
    for (other, _) in found.iter() {
        check_apart(other, path)?;
    }
    found.push((path, value));
    Ok(())
}

fn check_apart(left: &str, right: &str) -> Result<(), QueryError> {
    let message = if left == right {
        format!("cannot infer query fields to set, path '{left}' is matched twice")
    } else if is_within(left, right) || is_within(right, left) {
        format!("cannot infer query fields to set, both paths '{left}' and '{right}' are matched")
    } else {
        return Ok(());
    };
    Err(QueryError::new(Code::NotSingleValueField, message))
}

fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'))
}
