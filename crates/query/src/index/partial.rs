//! Partial indexes: which filters they may have, and whether a query asks only for what they hold.
//!
//! [`implies`] proves, for each part of the index's filter, that some part of the query demands at
//! least as much. A condition on a path holds if *any* value there fulfils it, so a proof goes from
//! one condition to one condition: "some value is above 5" implies "some value is above 3",
//! whatever arrays there are. An implication that isn't proved isn't used, so the proof may miss
//! cases but never goes too far.

use frond_doc::{Document, Value, ValueBuf};

use crate::code::Code;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::filter::tree::{Condition, Field, Node, Test};
use crate::filter::{Comparison, Filter, Relation, allowed};
use crate::text;

/// Parses a `partialFilterExpression`.
///
/// # Errors
/// `CannotCreateIndex` for what such a filter can't say, `QueryFeatureNotAllowed` for `$expr` and
/// `$jsonSchema`, 5626500 for `$near`; otherwise as any filter.
pub fn parse(filter: Document<'_>) -> Result<Filter, QueryError> {
    let parsed = Filter::parse_with_functions(filter)?;
    allowed::check(parsed.root())?;
    if !is_allowed(parsed.root()) {
        let message = format!(
            "Expression not supported in partial index: {}",
            text::value(Value::Document(filter))
        );
        return Err(QueryError::new(Code::CannotCreateIndex, message));
    }
    Ok(parsed)
}

fn is_allowed(node: &Node) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) => nodes.iter().all(is_allowed),
        Node::Field(field) => is_condition_allowed(&field.condition),
        Node::Nor(_)
        | Node::Constant(_)
        | Node::Expression(_)
        | Node::Schema(_)
        | Node::Sample(_)
        | Node::Script(_)
        | Node::Text(_) => false,
    }
}

fn is_condition_allowed(condition: &Condition) -> bool {
    match condition {
        Condition::All(inner) => inner.iter().all(is_condition_allowed),
        Condition::Test(test) => {
            matches!(test, Test::Compare(_) | Test::In(_) | Test::Exists | Test::Type(_))
        }
        Condition::Not(_) => false,
    }
}

/// Whether every document that passes `query` passes `partial`.
pub fn implies(query: &Filter, partial: &Filter) -> bool {
    node_implies(query.root(), partial.root())
}

/// As [`implies`], of parsed trees. Recursion follows both trees, whose depth is bounded.
pub(crate) fn node_implies(query: &Node, partial: &Node) -> bool {
    match (query, partial) {
        (_, Node::And(parts)) => parts.iter().all(|part| node_implies(query, part)),
        (Node::Or(branches), _) if !branches.is_empty() => {
            branches.iter().all(|branch| node_implies(branch, partial))
        }
        (_, Node::Or(parts)) if parts.iter().any(|part| node_implies(query, part)) => true,
        (Node::Field(query), Node::Or(_)) => values_imply(query, partial),
        (Node::And(parts), _) => parts.iter().any(|part| node_implies(part, partial)),
        (Node::Field(query), Node::Field(partial)) if query.dotted == partial.dotted => {
            field_implies(query, partial)
        }
        _ => false,
    }
}

/// Whether each value of a `$in` implies some part of `partial`.
fn values_imply(query: &Field, partial: &Node) -> bool {
    let Condition::Test(Test::In(membership)) = &query.condition else { return false };
    let implies = |value: &ValueBuf| {
        let mut equal = Comparison::equal(value.clone());
        equal.collate(membership.collation());
        let (dotted, path) = (query.dotted.clone(), query.path.clone());
        let condition = Condition::Test(Test::Compare(equal));
        node_implies(&Node::Field(Field { dotted, path, scanned: None, condition }), partial)
    };
    membership.patterns().is_empty() && membership.values().iter().all(implies)
}

fn field_implies(query: &Field, partial: &Field) -> bool {
    let is_top_level = !query.dotted.contains('.');
    condition_implies(&query.condition, &partial.condition, is_top_level)
}

fn condition_implies(query: &Condition, partial: &Condition, is_top_level: bool) -> bool {
    let implies = |query, partial| condition_implies(query, partial, is_top_level);
    match (query, partial) {
        (_, Condition::All(parts)) => parts.iter().all(|part| implies(query, part)),
        (Condition::All(parts), _) => parts.iter().any(|part| implies(part, partial)),
        (Condition::Test(query), Condition::Test(partial)) => test_implies(query, partial),
        // Not null, and so on: something is there. Not so below another field: `a.b` reaches
        // nothing in `{a: [1]}`, not even null.
        (Condition::Not(inner), Condition::Test(Test::Exists)) if is_top_level => match &**inner {
            Condition::Test(Test::Compare(comparison)) => {
                comparison.relation() == Relation::Equal && comparison.matches(None)
            }
            Condition::Test(Test::In(membership)) => membership.contains(None),
            _ => false,
        },
        _ => false,
    }
}

fn test_implies(query: &Test, partial: &Test) -> bool {
    if let (Some(query), Some(partial)) = (collation_of(query), collation_of(partial))
        && query != partial
    {
        return false;
    }
    match (query, partial) {
        (Test::Never, _) => true,
        (query, Test::Exists) => demands_presence(query),
        (Test::Compare(query), Test::Compare(partial)) => comparison_implies(query, partial),
        (Test::Compare(query), Test::In(partial)) => {
            query.relation() == Relation::Equal
                && is_simple(query.operand())
                && partial.contains(Some(query.operand()))
                && (!query.matches(None) || partial.contains(None))
        }
        (Test::In(query), Test::Compare(partial)) => {
            let mut values = query.values().iter().map(|value| {
                let mut equal = Comparison::equal(value.clone());
                equal.collate(query.collation());
                equal
            });
            query.patterns().is_empty() && values.all(|equal| comparison_implies(&equal, partial))
        }
        (Test::In(query), Test::In(partial)) => {
            query.patterns().is_empty()
                && query.values().iter().all(|value| {
                    is_simple(value.as_value()) && partial.contains(Some(value.as_value()))
                })
        }
        (Test::Type(query), Test::Type(partial)) => {
            query.types().iter().all(|kind| partial.types().contains(kind))
        }
        _ => false,
    }
}

/// Returns how a test compares strings, if it does.
fn collation_of(test: &Test) -> Option<&Collation> {
    match test {
        Test::Compare(comparison) => Some(comparison.collation()),
        Test::In(membership) => Some(membership.collation()),
        _ => None,
    }
}

/// Whether something must be there for the test to hold.
fn demands_presence(test: &Test) -> bool {
    match test {
        Test::Compare(comparison) => !comparison.matches(None),
        Test::In(membership) => !membership.contains(None),
        _ => true,
    }
}

/// Whether each value that fulfils `query` fulfils `partial`.
fn comparison_implies(query: &Comparison, partial: &Comparison) -> bool {
    let (found, required) = (query.operand(), partial.operand());
    if !is_simple(found) || !is_simple(required) {
        return false;
    }
    if query.matches(None) && !partial.matches(None) {
        return false;
    }
    use Relation::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    let with = |relation| {
        let mut other = Comparison::new(relation, required.to_buf());
        other.collate(partial.collation());
        other
    };
    match (query.relation(), partial.relation()) {
        (Equal, _) => partial.matches(Some(found)),
        // Strictly above `found` is above `asked` if `found` itself is, or is equal to it.
        (Greater, Greater) => with(GreaterOrEqual).matches(Some(found)),
        (Greater | GreaterOrEqual, GreaterOrEqual) | (GreaterOrEqual, Greater) => {
            partial.matches(Some(found))
        }
        (Less, Less) => with(LessOrEqual).matches(Some(found)),
        (Less | LessOrEqual, LessOrEqual) | (LessOrEqual, Less) => partial.matches(Some(found)),
        _ => false,
    }
}

/// Whether comparisons with the value stay within its type and its own value: not so of arrays,
/// which are asked for their elements too, of the ends of the order, and of what is no number.
fn is_simple(value: Value<'_>) -> bool {
    let is_nan = match value {
        Value::Double(number) => number.is_nan(),
        Value::Decimal128(_) => frond_doc::order::equal(value, Value::Double(f64::NAN)),
        _ => false,
    };
    !is_nan && !matches!(value, Value::Array(_) | Value::MinKey | Value::MaxKey | Value::Undefined)
}
