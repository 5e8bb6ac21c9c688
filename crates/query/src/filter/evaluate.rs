//! Whether a document passes.
//!
//! 1. A logical node asks its branches, and stops when the answer is known.
//! 2. A path fans out (`Path::visit_reached`); a test is asked for each value that it reaches, for `None`
//!    where the path ends early, and, where the value is an array, for each of its elements too,
//!    unless the test is about arrays as a whole.

use std::cell::RefCell;

use frond_doc::path::{Path, Reached};
use frond_doc::{Document, Value};

use super::pattern::Pattern;
use super::tree::{Condition, Node, Test};
use crate::error::QueryError;
use crate::expression::{Expression, Variables};

/// One evaluation: what `$expr` sees, and with what it (or a pattern) failed.
pub(super) struct Run<'a> {
    variables: &'a Variables,
    failure: RefCell<Option<QueryError>>,
}

impl<'a> Run<'a> {
    pub(super) fn new(variables: &'a Variables) -> Run<'a> {
        Run { variables, failure: RefCell::new(None) }
    }

    /// The answer, if nothing failed.
    pub(super) fn finish(self, answer: bool) -> Result<bool, QueryError> {
        self.failure.into_inner().map_or(Ok(answer), Err)
    }

    /// The one place where an expression is asked.
    fn is_true(&self, expression: &Expression, document: Document<'_>) -> bool {
        match expression.evaluate(document, self.variables) {
            Ok(value) => value.is_some_and(|value| value.as_value().is_truthy()),
            Err(error) => self.fail(error),
        }
    }

    fn matches(&self, pattern: &Pattern, value: Value<'_>) -> bool {
        pattern.matches(value).unwrap_or_else(|error| self.fail(error))
    }

    /// Keeps the first failure; the answer that then goes on doesn't count.
    fn fail(&self, error: QueryError) -> bool {
        self.failure.borrow_mut().get_or_insert(error);
        false
    }
}

/// Whether `document` passes `node`.
pub(super) fn node(node: &Node, document: Document<'_>, run: &Run<'_>) -> bool {
    match node {
        Node::And(nodes) => nodes.iter().all(|inner| self::node(inner, document, run)),
        Node::Or(nodes) => nodes.iter().any(|inner| self::node(inner, document, run)),
        Node::Nor(nodes) => !nodes.iter().any(|inner| self::node(inner, document, run)),
        Node::Constant(answer) => *answer,
        Node::Field(field) => condition(&field.condition, &field.path, document, run),
        Node::Expression(expression) => run.is_true(expression, document),
    }
}

/// Whether what `path` reaches in `document` fulfils `condition`.
pub(super) fn condition(
    condition: &Condition,
    path: &Path,
    document: Document<'_>,
    run: &Run<'_>,
) -> bool {
    match condition {
        Condition::All(inner) => {
            inner.iter().all(|inner| self::condition(inner, path, document, run))
        }
        Condition::Not(inner) => !self::condition(inner, path, document, run),
        Condition::Test(test) => {
            path.visit_reached(document, &mut |reached| test_reached(test, reached, run))
        }
    }
}

/// Whether one value that a path reached, or an element of it, passes.
fn test_reached(test: &Test, reached: Reached<'_>, run: &Run<'_>) -> bool {
    if self::test(test, reached.value, run) {
        return true;
    }
    match reached.value {
        Some(Value::Array(array)) if reached.is_expandable && !test.is_on_whole_arrays() => {
            array.iter().any(|element| self::test(test, Some(element), run))
        }
        _ => false,
    }
}

/// Whether one value by itself fulfils `condition`.
pub(super) fn condition_on_value(
    condition: &Condition,
    value: Option<Value<'_>>,
    run: &Run<'_>,
) -> bool {
    match condition {
        Condition::All(inner) => inner.iter().all(|inner| condition_on_value(inner, value, run)),
        Condition::Not(inner) => !condition_on_value(inner, value, run),
        Condition::Test(test) => self::test(test, value, run),
    }
}

/// Whether one value by itself (`None`: absent) passes.
pub(super) fn test(test: &Test, value: Option<Value<'_>>, run: &Run<'_>) -> bool {
    match test {
        Test::Compare(comparison) => return comparison.matches(value),
        Test::In(membership) => {
            let is_match =
                |value| membership.patterns().iter().any(|pattern| run.matches(pattern, value));
            return membership.contains(value) || value.is_some_and(is_match);
        }
        _ => {}
    }
    let Some(value) = value else { return false };
    match test {
        Test::Compare(_) | Test::In(_) => unreachable!("asked above"),
        Test::Pattern(pattern) => run.matches(pattern, value),
        Test::Exists => true,
        Test::Type(types) => types.matches(value),
        Test::Remainder(remainder) => remainder.matches(value),
        Test::Bits(bits) => bits.matches(value),
        Test::Size(size) => {
            value.as_array().is_some_and(|array| array.iter().count() as i64 == *size)
        }
        Test::ElementValue(_) | Test::ElementDocument(_) => value
            .as_array()
            .is_some_and(|array| array.iter().any(|element| is_element(test, element, run))),
        Test::Never => false,
    }
}

/// Whether an array's element is one that `$elemMatch` looks for.
pub(super) fn is_element(test: &Test, element: Value<'_>, run: &Run<'_>) -> bool {
    match (test, element) {
        (Test::ElementValue(condition), _) => condition_on_value(condition, Some(element), run),
        (Test::ElementDocument(inner), Value::Document(document)) => node(inner, document, run),
        // A nested array counts as a document whose names are its positions.
        (Test::ElementDocument(inner), Value::Array(array)) => {
            node(inner, array.as_document(), run)
        }
        _ => false,
    }
}
