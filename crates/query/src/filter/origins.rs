//! Filters with other paths: tested on documents that have the values there.

use frond_doc::Value;
use frond_doc::path::Path;

use super::Filter;
use super::tree::{Condition, Node, Test};

impl Filter {
    /// Whether the filter tells no two values apart that compare as equal, nor null from missing.
    pub(crate) fn only_compares(&self) -> bool {
        node_compares(&self.root)
    }

    /// The same filter with each of its paths replaced by what `origin` gives for it.
    pub(crate) fn renamed(&self, origin: &dyn Fn(&str) -> String) -> Filter {
        let mut root = (*self.root).clone();
        rename(&mut root, origin);
        self.with_root(root)
    }
}

/// Recursion is bounded by [`TREE_DEPTH_MAX`](super::tree::TREE_DEPTH_MAX).
fn node_compares(node: &Node) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().all(node_compares),
        Node::Field(field) => condition_compares(&field.condition),
        Node::Constant(_) => true,
        Node::Expression(_)
        | Node::Schema(_)
        | Node::Sample(_)
        | Node::Script(_)
        | Node::Text(_) => false,
    }
}

fn condition_compares(condition: &Condition) -> bool {
    match condition {
        Condition::All(conditions) => conditions.iter().all(condition_compares),
        Condition::Not(inner) => condition_compares(inner),
        // What is missing is neither below nor above everything, but null is.
        Condition::Test(Test::Compare(comparison)) => {
            !matches!(comparison.operand(), Value::MinKey | Value::MaxKey)
        }
        Condition::Test(Test::In(membership)) => {
            let is_end = |value| matches!(value, Value::MinKey | Value::MaxKey);
            membership.patterns().is_empty()
                && !membership.values().iter().any(|value| is_end(value.as_value()))
        }
        Condition::Test(test) => matches!(test, Test::Never),
    }
}

/// Recursion is bounded by [`TREE_DEPTH_MAX`](super::tree::TREE_DEPTH_MAX).
fn rename(node: &mut Node, origin: &dyn Fn(&str) -> String) {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
            nodes.iter_mut().for_each(|node| rename(node, origin));
        }
        Node::Field(field) => {
            field.dotted = origin(&field.dotted);
            field.path = Path::new(&field.dotted);
        }
        Node::Constant(_)
        | Node::Expression(_)
        | Node::Schema(_)
        | Node::Sample(_)
        | Node::Script(_)
        | Node::Text(_) => {}
    }
}
