//! From BSON to the tree.

use std::sync::Arc;

use frond_doc::document::DEPTH_MAX;
use frond_doc::path::Path;
use frond_doc::{Document, Value};

use super::geo;
use super::operand::{Operand, bad_value, is_operators};
use super::operators;
use super::pattern::Pattern;
use super::schema::Schema;
use super::text::TextTest;
use super::tree::{Condition, Field, Node, TREE_DEPTH_MAX, Test};
use crate::code::Code;
use crate::error::QueryError;
use crate::expression::Expression;
use crate::feature::Feature;
use crate::number;
use crate::number::any_type::Number;
use crate::script::Script;
use crate::search::TextSearch;

/// Parses a filter document: paths with conditions, and logical operators.
pub(super) fn document(filter: Document<'_>, depth: usize) -> Result<Node, QueryError> {
    check_depth(depth)?;
    let mut nodes = Vec::new();
    for (name, value) in filter.iter() {
        if name.starts_with('$') {
            nodes.extend(top_level(name, value, depth)?);
        } else {
            if name.split('.').count() > DEPTH_MAX {
                return Err(QueryError::new(Code::Location(5_729_100), "FieldPath is too long"));
            }
            nodes.push(field(name, condition(name, value, depth)?));
        }
    }
    Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::And(nodes) })
}

fn field(path: &str, condition: Condition) -> Node {
    let dotted = path.to_owned();
    Node::Field(Field { dotted, path: Path::new(path), scanned: None, condition })
}

fn check_depth(depth: usize) -> Result<(), QueryError> {
    if depth > TREE_DEPTH_MAX {
        let message = format!("exceeded maximum query tree depth of {TREE_DEPTH_MAX}");
        return Err(bad_value(message));
    }
    Ok(())
}

/// Parses an operator in the place of a path; `None` where it tests nothing (`$comment`).
type TopLevel = fn(&str, Value<'_>, usize) -> Result<Option<Node>, QueryError>;

/// Sorted by name.
const TOP_LEVEL: &[(&str, TopLevel)] = &[
    ("$alwaysFalse", |name, value, _| constant(name, value, Node::Constant(false))),
    ("$alwaysTrue", |name, value, _| constant(name, value, Node::And(Vec::new()))),
    ("$and", |name, value, depth| Ok(Some(Node::And(branches(name, value, depth)?)))),
    ("$comment", |_, _, _| Ok(None)),
    ("$db", reference_field),
    ("$expr", |_, value, _| {
        let parsed = Expression::parse(value)?.with_comparisons(value);
        Ok(Some(Node::Expression(parsed)))
    }),
    ("$id", reference_field),
    ("$jsonSchema", |_, value, depth| schema(value, depth).map(Some)),
    ("$nor", |name, value, depth| Ok(Some(Node::Nor(branches(name, value, depth)?)))),
    ("$or", |name, value, depth| Ok(Some(Node::Or(branches(name, value, depth)?)))),
    ("$ref", reference_field),
    ("$sampleRate", |_, value, _| sample(value).map(Some)),
    ("$text", |_, value, _| text(value).map(Some)),
    ("$where", |_, value, _| script(value).map(Some)),
];

/// The fields of a reference to a document: names, though they begin with a dollar.
const REFERENCE_FIELDS: [&str; 3] = ["$ref", "$id", "$db"];

/// Whether `name` may stand in the place of a path.
pub(super) fn is_top_level(name: &str) -> bool {
    TOP_LEVEL.binary_search_by_key(&name, |(known, _)| known).is_ok()
}

/// Returns every operator that may stand in the place of a path, for the list of what works.
pub(super) fn features() -> impl Iterator<Item = Feature> {
    let operators = TOP_LEVEL.iter().filter(|(name, _)| !REFERENCE_FIELDS.contains(name));
    operators.map(|(name, _)| Feature::works(name))
}

fn top_level(name: &str, value: Value<'_>, depth: usize) -> Result<Option<Node>, QueryError> {
    let Ok(place) = TOP_LEVEL.binary_search_by_key(&name, |(known, _)| known) else {
        return Err(bad_value(format!(
            "unknown top level operator: {name}. If you have a field name that starts with a '$' \
             symbol, consider using $getField or $setField."
        )));
    };
    TOP_LEVEL[place].1(name, value, depth)
}

fn reference_field(
    name: &str,
    value: Value<'_>,
    _depth: usize,
) -> Result<Option<Node>, QueryError> {
    Ok(Some(field(name, operators::equality(value)?)))
}

/// The answer of `$alwaysTrue: 1` and its like.
fn constant(name: &str, operand: Value<'_>, answer: Node) -> Result<Option<Node>, QueryError> {
    match number::whole(operand) {
        Some(1) => Ok(Some(answer)),
        _ => {
            let message = format!("{name} must be an integer value of 1");
            Err(QueryError::new(Code::FailedToParse, message))
        }
    }
}

fn text(operand: Value<'_>) -> Result<Node, QueryError> {
    Ok(Node::Text(TextTest::Search(Arc::new(TextSearch::parse(operand)?))))
}

fn schema(value: Value<'_>, depth: usize) -> Result<Node, QueryError> {
    let Value::Document(schema) = value else {
        return Err(QueryError::new(Code::TypeMismatch, "$jsonSchema must be an object"));
    };
    Ok(Node::Schema(Arc::new(Schema::parse(schema, depth)?)))
}

fn script(value: Value<'_>) -> Result<Node, QueryError> {
    match value {
        Value::String(code) | Value::JavaScript(code) => Ok(Node::Script(Script::new(code))),
        Value::JavaScriptWithScope { .. } => {
            Err(bad_value("$where no longer supports deprecated BSON type CodeWScope"))
        }
        _ => Err(bad_value("$where got bad type")),
    }
}

fn sample(value: Value<'_>) -> Result<Node, QueryError> {
    let Some(rate) = Number::of(value).map(Number::double) else {
        return Err(bad_value("argument to $sampleRate must be a numeric type"));
    };
    if !(0.0..=1.0).contains(&rate) {
        return Err(bad_value("numeric argument to $sampleRate must be in [0, 1]"));
    }
    Ok(Node::Sample(rate))
}

fn branches(name: &str, value: Value<'_>, depth: usize) -> Result<Vec<Node>, QueryError> {
    let Some(array) = value.as_array() else {
        return Err(bad_value(format!("{name} must be an array")));
    };
    let mut nodes = Vec::new();
    for branch in array.iter() {
        let Some(branch) = branch.as_document() else {
            return Err(bad_value("$or/$and/$nor entries need to be full objects"));
        };
        nodes.push(document(branch, depth + 1)?);
    }
    if nodes.is_empty() {
        return Err(bad_value("$and/$or/$nor must be a nonempty array"));
    }
    Ok(nodes)
}

/// The condition that stands at a path: operators, or a value that must be equal.
fn condition(path: &str, value: Value<'_>, depth: usize) -> Result<Condition, QueryError> {
    match value {
        Value::Document(document) if is_operators(document) => {
            self::operators(path, document, depth)
        }
        _ => implicit(value),
    }
}

/// A value in the place of operators: equality, or a pattern.
pub(super) fn implicit(value: Value<'_>) -> Result<Condition, QueryError> {
    match value {
        Value::Regex(regex) => {
            Ok(Condition::Test(Test::Pattern(Pattern::new(regex.pattern, regex.options)?)))
        }
        _ => operators::equality(value),
    }
}

/// Whether some of a document's fields are those of a reference.
pub(super) fn is_part_of_reference(document: Document<'_>) -> bool {
    REFERENCE_FIELDS.iter().any(|name| document.get(name).is_some())
}

/// Parses `{$gt: 5, $lt: 9}`.
pub(super) fn operators(
    path: &str,
    operators: Document<'_>,
    depth: usize,
) -> Result<Condition, QueryError> {
    check_depth(depth)?;
    geo::check_place_of_near(operators)?;
    let mut conditions = Vec::new();
    for (name, value) in operators.iter() {
        let operand = Operand { name, value, path, siblings: operators, depth };
        conditions.extend(operators::parse(operand)?);
    }
    Ok(if conditions.len() == 1 { conditions.remove(0) } else { Condition::All(conditions) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(TOP_LEVEL.is_sorted_by(|left, right| left.0 < right.0));
    }
}
