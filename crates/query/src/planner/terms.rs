//! The demands of a `$text` on the terms of a text index.

use frond_doc::Value;

use super::conditions::PathBounds;
use super::interval::{Interval, Intervals};
use crate::filter::Filter;
use crate::filter::Relation;
use crate::filter::text::TextTest;
use crate::filter::tree::{Condition, Node, Test};
use crate::index::{FieldKind, IndexShape};

/// The terms one of which `node` demands; `None` without a `$text`, or while it isn't known which
/// index it asks.
pub(super) fn of_node(node: &Node) -> Option<PathBounds> {
    match node {
        Node::And(nodes) => nodes.iter().find_map(of_node),
        Node::Text(TextTest::Bound(matcher)) => {
            let points = matcher.filed_terms().map(|term| Interval::point(Value::String(term)));
            let intervals = Intervals::union_of(points.collect());
            Some(PathBounds { intervals, is_present: true, is_exact: false })
        }
        _ => None,
    }
}

/// Whether a filter says of each field before the terms of a text index what it equals: MongoDB
/// searches by no other.
pub fn fixes_fields_before_terms(filter: &Filter, shape: &IndexShape) -> bool {
    let before = shape.fields().iter().take_while(|field| field.kind != FieldKind::Text);
    before.into_iter().all(|field| is_fixed(filter.root(), &field.path))
}

fn is_fixed(node: &Node, path: &str) -> bool {
    match node {
        Node::And(nodes) => nodes.iter().any(|inner| is_fixed(inner, path)),
        Node::Field(field) => {
            field.dotted == path
                && matches!(&field.condition, Condition::Test(Test::Compare(comparison))
                    if comparison.relation() == Relation::Equal)
        }
        _ => false,
    }
}
