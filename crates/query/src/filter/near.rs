//! The place of the `$near` of a filter: at most one, and where it can order what is found.

use std::sync::Arc;

use super::operand::bad_value;
use super::tree::{Condition, Field, Node, Test};
use crate::error::QueryError;
use crate::geometry::near::Near;

/// The `$near` of a filter: its path and itself.
///
/// # Errors
/// `BadValue` if there are two, or one stands where it can't order what is found.
pub(super) fn find(root: &Node) -> Result<Option<(&str, &Arc<Near>)>, QueryError> {
    let mut found = None;
    let nodes = match root {
        Node::And(nodes) => nodes.as_slice(),
        other => std::slice::from_ref(other),
    };
    for node in nodes {
        let direct = match node {
            Node::Field(field) => near_of(field),
            Node::And(_) => find(node)?,
            _ => None,
        };
        if direct.is_some() && found.is_some() {
            return Err(bad_value("Too many geoNear expressions"));
        }
        if direct.is_none() && holds(node) {
            return Err(bad_value("geo $near must be top-level expr"));
        }
        found = found.or(direct);
    }
    Ok(found)
}

/// Puts another `$near` where one is. Recursion is bounded by the depth of filters.
pub(super) fn replace(node: &mut Node, near: &Arc<Near>) {
    match node {
        Node::And(nodes) => nodes.iter_mut().for_each(|inner| replace(inner, near)),
        Node::Field(field) => {
            let conditions = match &mut field.condition {
                Condition::All(conditions) => conditions.as_mut_slice(),
                condition => std::slice::from_mut(condition),
            };
            for condition in conditions {
                if let Condition::Test(test @ Test::Near(_)) = condition {
                    *test = Test::Near(Arc::clone(near));
                }
            }
        }
        _ => {}
    }
}

fn near_of(field: &Field) -> Option<(&str, &Arc<Near>)> {
    let test = |condition| match condition {
        &Condition::Test(Test::Near(ref near)) => Some((field.dotted.as_str(), near)),
        _ => None,
    };
    match &field.condition {
        Condition::All(conditions) => conditions.iter().find_map(test),
        condition => test(condition),
    }
}

/// Recursion is bounded by the depth of filters.
fn holds(node: &Node) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().any(holds),
        Node::Field(field) => condition_holds(&field.condition),
        _ => false,
    }
}

fn condition_holds(condition: &Condition) -> bool {
    match condition {
        Condition::All(conditions) => conditions.iter().any(condition_holds),
        Condition::Not(inner) => condition_holds(inner),
        Condition::Test(Test::Near(_)) => true,
        Condition::Test(Test::ElementValue(inner)) => condition_holds(inner),
        Condition::Test(Test::ElementDocument(inner)) => holds(inner),
        Condition::Test(_) => false,
    }
}
