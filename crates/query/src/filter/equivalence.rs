//! Checks whether two filters are equivalent, perhaps in other words: `{a: 5}` and `{$and: [{a:
//! {$eq: 5}}]}`.
//!
//! Each is brought into one form: conditions that must hold together are one flat list, in one
//! order and without repetition, and so are alternatives; a list of one is replaced by its only
//! part. Filters of the same form are equivalent; of filters of different forms nothing is known.

use super::Filter;
use super::tree::{Condition, Field, Node, Test};

impl Filter {
    /// Whether both are the same but for their words.
    pub fn is_equivalent(&self, other: &Filter) -> bool {
        form(&self.root) == form(&other.root)
    }
}

/// A list in its one form.
fn listed(kind: &str, mut parts: Vec<String>) -> String {
    parts.sort_unstable();
    parts.dedup();
    match &mut parts[..] {
        [only] if kind != "nor" => std::mem::take(only),
        _ => format!("{kind}({})", parts.join(", ")),
    }
}

/// Recursion is bounded by the depth that parsing allows, here and below.
fn form(node: &Node) -> String {
    match node {
        Node::And(_) | Node::Field(_) => {
            let mut parts = Vec::new();
            add_conjuncts(node, &mut parts);
            listed("and", parts)
        }
        Node::Or(nodes) => listed("or", nodes.iter().map(form).collect()),
        Node::Nor(nodes) => listed("nor", nodes.iter().map(form).collect()),
        other => format!("{other:?}"),
    }
}

fn add_conjuncts(node: &Node, parts: &mut Vec<String>) {
    match node {
        Node::And(nodes) => nodes.iter().for_each(|inner| add_conjuncts(inner, parts)),
        Node::Field(field) => add_conditions(field, &field.condition, parts),
        other => parts.push(form(other)),
    }
}

fn add_conditions(field: &Field, condition: &Condition, parts: &mut Vec<String>) {
    match condition {
        Condition::All(inner) => {
            inner.iter().for_each(|inner| add_conditions(field, inner, parts));
        }
        other => parts.push(format!("{:?}: {}", field.dotted, condition_form(other))),
    }
}

fn condition_form(condition: &Condition) -> String {
    match condition {
        Condition::All(inner) => listed("all", inner.iter().map(condition_form).collect()),
        Condition::Not(inner) => format!("not({})", condition_form(inner)),
        Condition::Test(Test::ElementValue(inner)) => format!("element({})", condition_form(inner)),
        Condition::Test(Test::ElementDocument(inner)) => format!("element({})", form(inner)),
        Condition::Test(test) => format!("{test:?}"),
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json;

    use super::*;

    fn are_same(left: &str, right: &str) -> bool {
        let parse = |text: &str| {
            let document = extended_json::parse(text).expect("a document");
            Filter::parse(document.view()).expect("a filter")
        };
        parse(left).is_equivalent(&parse(right))
    }

    #[test]
    fn words_make_no_difference() {
        for (left, right) in [
            (r#"{"a": 5}"#, r#"{"a": {"$eq": 5}}"#),
            (r#"{"a": 5}"#, r#"{"$and": [{"a": 5}]}"#),
            (
                r#"{"a": {"$gt": 1, "$lt": 9}}"#,
                r#"{"$and": [{"a": {"$lt": 9}}, {"a": {"$gt": 1}}]}"#,
            ),
            (r#"{"a": 1, "b": 2}"#, r#"{"b": 2, "a": 1}"#),
            (r#"{"$or": [{"a": 1}, {"b": 2}]}"#, r#"{"$or": [{"b": 2}, {"a": 1}, {"a": 1}]}"#),
        ] {
            assert!(are_same(left, right), "{left} {right}");
        }
        for (left, right) in [
            (r#"{"a": 5}"#, r#"{"b": 5}"#),
            (r#"{"a": {"$gt": 5}}"#, r#"{"a": {"$gte": 5}}"#),
            (r#"{"$or": [{"a": 1}, {"b": 2}]}"#, r#"{"a": 1, "b": 2}"#),
            (r#"{"a": 1, "b": 2}"#, r#"{"a": 1}"#),
        ] {
            assert!(!are_same(left, right), "{left} {right}");
        }
    }
}
