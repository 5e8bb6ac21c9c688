//! `$where`, `$function` and `$expr`: where they may stand, and what they have.
//!
//! Below `$elemMatch` it is refused when that is parsed; recursion is bounded by the tree's depth.

use super::operand::bad_value;
use super::tree::Node;
use crate::error::{QueryError, failure};
use crate::expression::NotedConstant;

/// Whether there is a `$where`.
pub(super) fn stands_in(node: &Node) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().any(stands_in),
        Node::Script(_) => true,
        _ => false,
    }
}

/// Whether a `$where` or a `$function` may be run.
pub(super) fn are_run(node: &Node) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().any(are_run),
        Node::Script(_) => true,
        Node::Expression(expression) => expression.runs_scripts(),
        _ => false,
    }
}

/// The constants of each `$expr`.
pub(super) fn constants(node: &Node) -> Vec<NotedConstant> {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
            nodes.iter().flat_map(constants).collect()
        }
        Node::Expression(expression) => {
            expression.constants().iter().cloned().map(NotedConstant::of_filter).collect()
        }
        _ => Vec::new(),
    }
}

/// Refuses a `$where` wherever it stands.
pub(super) fn refuse(root: &Node) -> Result<(), QueryError> {
    match stands_in(root) {
        true => Err(bad_value("$where is not allowed in this context")),
        false => Ok(()),
    }
}

/// Refuses a `$function` within an `$expr`: of a validator, say.
pub(super) fn refuse_functions(node: &Node) -> Result<(), QueryError> {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
            nodes.iter().try_for_each(refuse_functions)
        }
        Node::Expression(expression) if expression.runs_scripts() => {
            Err(failure(4_660_800, "$function cannot be used inside a validator."))
        }
        _ => Ok(()),
    }
}
