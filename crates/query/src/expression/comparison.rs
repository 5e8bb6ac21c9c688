//! `$cmp`, `$eq`, `$gt`, `$gte`, `$lt`, `$lte`, `$ne`, and `$and`, `$or`, `$not`.
//!
//! Values of all types compare, in MongoDB's order of types. "Missing" comes after MinKey and
//! before everything else. Strings compare by the collation.

use std::cmp::Ordering;

use frond_doc::Value;

use super::evaluated::Evaluated;
use super::node::{Answer, Node, Operation};
use super::parse::Parser;
use super::scope::Scope;
use crate::collation::Collation;
use crate::error::QueryError;

/// Compares two values, either of which may be missing.
fn compare(left: Option<Value<'_>>, right: Option<Value<'_>>, by: &Collation) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => by.compare(left, right),
        (None, None | Some(Value::Undefined)) | (Some(Value::Undefined), None) => Ordering::Equal,
        (None, Some(Value::MinKey)) => Ordering::Greater,
        (Some(Value::MinKey), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
    }
}

fn ordering(left: &Evaluated<'_>, right: &Evaluated<'_>, by: &Collation) -> Ordering {
    compare(left.value(), right.value(), by)
}

/// `$cmp`
pub(super) fn cmp<'a>(left: Evaluated<'a>, right: Evaluated<'a>, by: &Collation) -> Answer<'a> {
    Ok((ordering(&left, &right, by) as i32).into())
}

/// `$eq`
pub(super) fn eq<'a>(left: Evaluated<'a>, right: Evaluated<'a>, by: &Collation) -> Answer<'a> {
    Ok(ordering(&left, &right, by).is_eq().into())
}

/// `$ne`
pub(super) fn ne<'a>(left: Evaluated<'a>, right: Evaluated<'a>, by: &Collation) -> Answer<'a> {
    Ok(ordering(&left, &right, by).is_ne().into())
}

/// `$gt`
pub(super) fn gt<'a>(left: Evaluated<'a>, right: Evaluated<'a>, by: &Collation) -> Answer<'a> {
    Ok(ordering(&left, &right, by).is_gt().into())
}

/// `$gte`
pub(super) fn gte<'a>(left: Evaluated<'a>, right: Evaluated<'a>, by: &Collation) -> Answer<'a> {
    Ok(ordering(&left, &right, by).is_ge().into())
}

/// `$lt`
pub(super) fn lt<'a>(left: Evaluated<'a>, right: Evaluated<'a>, by: &Collation) -> Answer<'a> {
    Ok(ordering(&left, &right, by).is_lt().into())
}

/// `$lte`
pub(super) fn lte<'a>(left: Evaluated<'a>, right: Evaluated<'a>, by: &Collation) -> Answer<'a> {
    Ok(ordering(&left, &right, by).is_le().into())
}

/// `$not`
pub(super) fn not(argument: Evaluated<'_>) -> Answer<'_> {
    Ok((!argument.is_truthy()).into())
}

/// `$and` or `$or`: stops at the first argument that decides.
#[derive(Debug)]
struct Junction {
    arguments: Vec<Node>,
    /// The truth that decides: false for `$and`.
    deciding: bool,
}

impl Operation for Junction {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        for argument in &self.arguments {
            if argument.evaluate(scope)?.is_truthy() == self.deciding {
                return Ok(self.deciding.into());
            }
        }
        Ok((!self.deciding).into())
    }
}

/// `$and`
pub(super) fn and(_: &str, argument: Value<'_>, parser: &mut Parser) -> Result<Node, QueryError> {
    let arguments = parser.arguments(argument)?;
    Ok(Node::special(Junction { arguments, deciding: false }))
}

/// `$or`
pub(super) fn or(_: &str, argument: Value<'_>, parser: &mut Parser) -> Result<Node, QueryError> {
    let arguments = parser.arguments(argument)?;
    Ok(Node::special(Junction { arguments, deciding: true }))
}
