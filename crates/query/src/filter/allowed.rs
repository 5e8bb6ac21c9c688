//! Filters within an update or a projection (`$pull`, `arrayFilters`, `$elemMatch`): what they may
//! not ask.
//!
//! Recursion is bounded by the depth of filters.

use super::operand::near_not_allowed;
use super::tree::{Condition, Node, Test};
use crate::code::Code;
use crate::error::QueryError;

/// Refuses `$expr`, `$jsonSchema` and `$near`.
pub(crate) fn check(node: &Node) -> Result<(), QueryError> {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().try_for_each(check),
        Node::Field(field) => check_condition(&field.condition),
        Node::Expression(_) => Err(not_allowed("$expr")),
        Node::Schema(_) => Err(not_allowed("$jsonSchema")),
        // `Filter::parse` took no script.
        Node::Constant(_) | Node::Sample(_) | Node::Script(_) | Node::Text(_) => Ok(()),
    }
}

/// As [`check`].
pub(super) fn check_condition(condition: &Condition) -> Result<(), QueryError> {
    match condition {
        Condition::All(inner) => inner.iter().try_for_each(check_condition),
        Condition::Not(inner) => check_condition(inner),
        Condition::Test(Test::ElementDocument(node)) => check(node),
        Condition::Test(Test::ElementValue(inner)) => check_condition(inner),
        Condition::Test(Test::Near(_)) => Err(near_not_allowed()),
        Condition::Test(_) => Ok(()),
    }
}

fn not_allowed(name: &str) -> QueryError {
    let message = format!("{name} is not allowed in this context");
    QueryError::new(Code::QueryFeatureNotAllowed, message)
}
