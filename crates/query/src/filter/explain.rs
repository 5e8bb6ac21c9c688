//! Explains why a document doesn't match, in the form of MongoDB's `errInfo.details` of a failed
//! validation.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use super::compare::Relation;
use super::evaluate::{self, Run};
use super::tree::{Condition, Field, Node, Test};

/// The `details` of a document that doesn't pass. The recursion is as deep as the filter, which
/// parsing has bounded.
pub(super) fn details(node: &Node, document: Document<'_>, run: &Run<'_>) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    match node {
        Node::Schema(schema) => return schema.details(document, run),
        Node::And(nodes) | Node::Or(nodes) => {
            let name = if matches!(node, Node::And(_)) { "$and" } else { "$or" };
            out.append("operatorName", Value::String(name)).begin_array("clausesNotSatisfied");
            for (place, inner) in nodes.iter().enumerate() {
                if !evaluate::node(inner, document, run) {
                    let inner = details(inner, document, run);
                    let place = i32::try_from(place).unwrap_or(i32::MAX);
                    out.push_begin_document().append("index", Value::Int32(place));
                    out.append("details", Value::Document(inner.view())).end();
                }
            }
            out.end();
        }
        Node::Nor(nodes) => {
            out.append("operatorName", Value::String("$nor")).begin_array("clausesSatisfied");
            for (place, inner) in nodes.iter().enumerate() {
                if evaluate::node(inner, document, run) {
                    let place = i32::try_from(place).unwrap_or(i32::MAX);
                    out.push_begin_document().append("index", Value::Int32(place)).end();
                }
            }
            out.end();
        }
        Node::Field(field) => append_field(&mut out, field, document),
        Node::Expression(_) => {
            out.append("operatorName", Value::String("$expr"));
            out.append("reason", Value::String("expression did not match"));
        }
        Node::Script(_) => {
            out.append("operatorName", Value::String("$where"));
        }
        Node::Constant(_) | Node::Sample(_) | Node::Text(_) => {
            out.append("reason", Value::String("expression always evaluates to false"));
        }
    }
    out.build()
}

fn append_field(out: &mut DocumentBuilder, field: &Field, document: Document<'_>) {
    let (condition, is_negated) = match &field.condition {
        Condition::Not(inner) => (&**inner, true),
        condition => (condition, false),
    };
    let (name, reason) = described(condition);
    out.append("operatorName", Value::String(if is_negated { "$not" } else { name }));
    if let Condition::Test(Test::Compare(comparison)) = condition {
        out.begin_document("specifiedAs").begin_document(&field.dotted);
        out.append(name, comparison.operand()).end().end();
    }
    let value = field.path.get(document);
    let is_absence = value.is_none() && !is_negated;
    let reason = match (is_negated, is_absence) {
        (true, _) => "child expression matched",
        (false, true) => "field was missing",
        (false, false) => reason,
    };
    out.append("reason", Value::String(reason));
    if let Some(value) = value {
        out.append("consideredValue", value);
    }
}

/// The operator's name and what it says when it doesn't hold.
fn described(condition: &Condition) -> (&'static str, &'static str) {
    match condition {
        Condition::Test(Test::Compare(comparison)) => match comparison.relation() {
            Relation::Equal => ("$eq", "comparison failed"),
            Relation::Greater => ("$gt", "comparison failed"),
            Relation::GreaterOrEqual => ("$gte", "comparison failed"),
            Relation::Less => ("$lt", "comparison failed"),
            Relation::LessOrEqual => ("$lte", "comparison failed"),
        },
        Condition::Test(Test::In(_)) => ("$in", "no matching value found in array"),
        Condition::Test(Test::Pattern(_)) => ("$regex", "regular expression did not match"),
        Condition::Test(Test::Exists) => ("$exists", "path does not exist"),
        Condition::Test(Test::Type(_)) => ("$type", "type did not match"),
        Condition::Test(Test::Remainder(_)) => {
            ("$mod", "$mod did not evaluate to expected remainder")
        }
        Condition::Test(Test::Bits(_)) => ("$bits", "bitwise operator failed to match"),
        Condition::Test(Test::Size(_)) => ("$size", "array length was not equal to given size"),
        Condition::Test(Test::ElementValue(_) | Test::ElementDocument(_)) => {
            ("$elemMatch", "array did not satisfy the child predicate")
        }
        Condition::Test(Test::Geo(_)) => (
            "$geoWithin",
            "none of the considered geometries were contained within the expression's geometry",
        ),
        Condition::Test(Test::Near(_)) => ("$near", "no geometry was near"),
        Condition::Test(Test::Never) => ("$all", "array did not contain the values"),
        Condition::All(_) => ("$and", "a condition did not hold"),
        Condition::Not(_) => ("$not", "child expression matched"),
    }
}
