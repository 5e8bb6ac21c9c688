//! The operators that can stand at a path: one sorted table, supported or not.

use std::sync::Arc;

use frond_doc::Value;

use super::compare::{Comparison, Relation};
use super::membership::Membership;
use super::operand::{Operand, bad_value};
use super::shape::TypeSet;
use super::tree::{Condition, Test};
use super::{array, geo, number, parse, pattern, shape};
use crate::error::QueryError;
use crate::feature::Feature;

type Parse = fn(Operand<'_>) -> Result<Condition, QueryError>;

#[derive(Clone, Copy)]
enum Operator {
    /// Becomes a condition.
    Condition(Parse),
    /// Belongs to another operator, which reads it; is checked here.
    Companion(fn(Operand<'_>) -> Result<(), QueryError>),
}

use Operator::Companion;

/// Sorted by name.
const OPERATORS: &[(&str, Operator)] = &[
    ("$all", Operator::Condition(array::all)),
    ("$bitsAllClear", Operator::Condition(|it| test(Test::Bits(number::bits(it)?)))),
    ("$bitsAllSet", Operator::Condition(|it| test(Test::Bits(number::bits(it)?)))),
    ("$bitsAnyClear", Operator::Condition(|it| test(Test::Bits(number::bits(it)?)))),
    ("$bitsAnySet", Operator::Condition(|it| test(Test::Bits(number::bits(it)?)))),
    ("$elemMatch", Operator::Condition(array::element)),
    ("$eq", Operator::Condition(equal)),
    ("$exists", Operator::Condition(exists)),
    ("$geoIntersects", Operator::Condition(|it| test(Test::Geo(geo::region(it)?)))),
    ("$geoWithin", Operator::Condition(|it| test(Test::Geo(geo::region(it)?)))),
    ("$gt", Operator::Condition(comparison)),
    ("$gte", Operator::Condition(comparison)),
    ("$in", Operator::Condition(is_in)),
    ("$lt", Operator::Condition(comparison)),
    ("$lte", Operator::Condition(comparison)),
    ("$maxDistance", Companion(geo::limit)),
    ("$minDistance", Companion(geo::limit)),
    ("$mod", Operator::Condition(|it| test(Test::Remainder(number::remainder(it)?)))),
    ("$ne", Operator::Condition(not_equal)),
    ("$near", Operator::Condition(near)),
    ("$nearSphere", Operator::Condition(near)),
    ("$nin", Operator::Condition(is_not_in)),
    ("$not", Operator::Condition(not)),
    ("$options", Companion(pattern::options)),
    ("$regex", Operator::Condition(|it| test(Test::Pattern(pattern::matching(it)?)))),
    ("$size", Operator::Condition(|it| test(Test::Size(shape::size(it)?)))),
    ("$type", Operator::Condition(type_is)),
    ("$uniqueDocs", Companion(geo::limit)),
    ("$within", Operator::Condition(|it| test(Test::Geo(geo::region(it)?)))),
];

/// Returns every operator that may stand at a path, for the list of what works.
pub(super) fn features() -> impl Iterator<Item = Feature> {
    OPERATORS.iter().map(|(name, _)| Feature::works(name))
}

/// Parses one operator; `None` if it says nothing by itself.
pub(super) fn parse(operand: Operand<'_>) -> Result<Option<Condition>, QueryError> {
    let found = OPERATORS.binary_search_by_key(&operand.name, |(name, _)| name);
    let Ok(place) = found else {
        return Err(bad_value(format!("unknown operator: {}", operand.name)));
    };
    match OPERATORS[place].1 {
        Operator::Condition(parse) => parse(operand).map(Some),
        Companion(check) => check(operand).map(|()| None),
    }
}

/// Whether `name` makes a document operators where it could as well be a value (in `$all` and
/// `$pull`): all but `$not`, and what only stands beside others.
pub(super) fn takes_values(name: &str) -> bool {
    let place = OPERATORS.binary_search_by_key(&name, |(known, _)| known);
    match place.map(|place| OPERATORS[place].1) {
        Ok(Operator::Condition(_)) => name != "$not",
        Ok(Companion(_)) => name == "$options",
        Err(_) => false,
    }
}

fn test(test: Test) -> Result<Condition, QueryError> {
    Ok(Condition::Test(test))
}

/// A value that must be equal.
pub(super) fn equality(value: Value<'_>) -> Result<Condition, QueryError> {
    if value == Value::Undefined {
        return Err(bad_value("cannot compare to undefined"));
    }
    Ok(Condition::equal(value.to_buf()))
}

fn equal(operand: Operand<'_>) -> Result<Condition, QueryError> {
    equality(operand.value)
}

fn not_equal(operand: Operand<'_>) -> Result<Condition, QueryError> {
    if matches!(operand.value, Value::Regex(_)) {
        return Err(bad_value("Can't have regex as arg to $ne."));
    }
    Ok(equality(operand.value)?.negated())
}

fn comparison(operand: Operand<'_>) -> Result<Condition, QueryError> {
    if matches!(operand.value, Value::Regex(_)) {
        let path = operand.path;
        return Err(bad_value(format!(
            "Can't have RegEx as arg to predicate over field '{path}'."
        )));
    }
    if operand.value == Value::Undefined {
        return Err(bad_value("cannot compare to undefined"));
    }
    let relation = match operand.name {
        "$gt" => Relation::Greater,
        "$gte" => Relation::GreaterOrEqual,
        "$lt" => Relation::Less,
        _ => Relation::LessOrEqual,
    };
    Ok(Condition::Test(Test::Compare(Comparison::new(relation, operand.value.to_buf()))))
}

fn exists(operand: Operand<'_>) -> Result<Condition, QueryError> {
    let exists = Condition::Test(Test::Exists);
    Ok(if operand.value.is_truthy() { exists } else { exists.negated() })
}

fn is_in(operand: Operand<'_>) -> Result<Condition, QueryError> {
    test(Test::In(Membership::parse(operand)?))
}

fn is_not_in(operand: Operand<'_>) -> Result<Condition, QueryError> {
    Ok(is_in(operand)?.negated())
}

fn type_is(operand: Operand<'_>) -> Result<Condition, QueryError> {
    test(Test::Type(TypeSet::parse(operand.value)?))
}

fn near(operand: Operand<'_>) -> Result<Condition, QueryError> {
    test(Test::Near(Arc::new(geo::near(operand)?)))
}

fn not(operand: Operand<'_>) -> Result<Condition, QueryError> {
    let inner = match operand.value {
        Value::Regex(_) => parse::implicit(operand.value)?,
        Value::Document(document) if document.is_empty() => {
            return Err(bad_value("$not cannot be empty"));
        }
        Value::Document(document) => parse::operators(operand.path, document, operand.depth + 1)?,
        _ => return Err(bad_value("$not needs a regex or a document")),
    };
    Ok(inner.negated())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(OPERATORS.is_sorted_by(|left, right| left.0 < right.0));
    }
}
