//! The query shape of a filter: what it asks, whatever the values. Queries of the same shape may
//! share a plan.
//!
//! Words make no difference, nor does the order of conditions, as in MongoDB: `{a: 5}` and
//! `{$and: [{a: {$eq: 7}}]}` have one shape.

use super::Filter;
use super::compare::Relation;
use super::tree::{Condition, Node, Test};

impl Filter {
    /// The shape of what it asks, as a text that is equal for filters of one shape.
    pub fn shape(&self) -> String {
        of_node(&self.root)
    }
}

/// Recursion is bounded by the depth that parsing allows, here and below.
fn of_node(node: &Node) -> String {
    match node {
        Node::And(_) | Node::Field(_) => {
            let mut parts = Vec::new();
            add_conjuncts(node, &mut parts);
            listed("and", parts)
        }
        Node::Or(nodes) => listed("or", nodes.iter().map(of_node).collect()),
        Node::Nor(nodes) => listed("nor", nodes.iter().map(of_node).collect()),
        Node::Constant(value) => value.to_string(),
        Node::Expression(_) => "expr".to_owned(),
        Node::Schema(_) => "schema".to_owned(),
        Node::Sample(_) => "sample".to_owned(),
        Node::Script(_) => "where".to_owned(),
        Node::Text(_) => "text".to_owned(),
    }
}

fn listed(kind: &str, mut parts: Vec<String>) -> String {
    parts.sort_unstable();
    match &mut parts[..] {
        [only] if kind == "and" => std::mem::take(only),
        _ => format!("{kind}({})", parts.join(",")),
    }
}

fn add_conjuncts(node: &Node, parts: &mut Vec<String>) {
    match node {
        Node::And(nodes) => nodes.iter().for_each(|inner| add_conjuncts(inner, parts)),
        Node::Field(field) => add_conditions(&field.dotted, &field.condition, parts),
        other => parts.push(of_node(other)),
    }
}

fn add_conditions(path: &str, condition: &Condition, parts: &mut Vec<String>) {
    match condition {
        Condition::All(inner) => inner.iter().for_each(|inner| add_conditions(path, inner, parts)),
        other => parts.push(format!("{path:?}{}", of_condition(other))),
    }
}

fn of_condition(condition: &Condition) -> String {
    match condition {
        Condition::All(inner) => listed("and", inner.iter().map(of_condition).collect()),
        Condition::Not(inner) => format!("not({})", of_condition(inner)),
        Condition::Test(test) => of_test(test),
    }
}

fn of_test(test: &Test) -> String {
    let name = match test {
        Test::ElementValue(inner) => return format!("element({})", of_condition(inner)),
        Test::ElementDocument(inner) => return format!("element({})", of_node(inner)),
        Test::Compare(comparison) => match comparison.relation() {
            Relation::Equal => "eq",
            Relation::Less => "lt",
            Relation::LessOrEqual => "lte",
            Relation::Greater => "gt",
            Relation::GreaterOrEqual => "gte",
        },
        Test::In(_) => "in",
        Test::Pattern(_) => "regex",
        Test::Exists => "exists",
        Test::Type(_) => "type",
        Test::Remainder(_) => "mod",
        Test::Bits(_) => "bits",
        Test::Size(_) => "size",
        Test::Geo(_) => "geo",
        Test::Near(_) => "near",
        Test::Never => "never",
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use frond_doc::extended_json;

    fn shape(text: &str) -> String {
        let document = extended_json::parse(text).expect("a document");
        Filter::parse_search(document.view()).expect("a filter").shape()
    }

    #[test]
    fn values_and_words_make_no_difference() {
        for (left, right) in [
            (r#"{"a": 5}"#, r#"{"a": {"$eq": "x"}}"#),
            (r#"{"a": 5}"#, r#"{"$and": [{"a": null}]}"#),
            (r#"{"a": 1, "b": 2}"#, r#"{"b": 3, "a": 4}"#),
            (
                r#"{"a": {"$gt": 1, "$lt": 9}}"#,
                r#"{"$and": [{"a": {"$lt": 9}}, {"a": {"$gt": 1}}]}"#,
            ),
            (r#"{"a": {"$in": [1, 2]}}"#, r#"{"a": {"$in": [1, 2, 3]}}"#),
            (r#"{"$or": [{"a": 1}, {"b": 2}]}"#, r#"{"$or": [{"b": 2}, {"a": 1}]}"#),
            (r#"{"a": {"$elemMatch": {"b": 1}}}"#, r#"{"a": {"$elemMatch": {"b": {"$eq": 2}}}}"#),
        ] {
            assert_eq!(shape(left), shape(right), "{left} {right}");
        }
        for (left, right) in [
            (r#"{"a": 5}"#, r#"{"b": 5}"#),
            (r#"{"a": 5}"#, r#"{"a": {"$gt": 5}}"#),
            (r#"{"a": {"$gt": 5}}"#, r#"{"a": {"$gte": 5}}"#),
            (r#"{"a": 1, "b": 2}"#, r#"{"$or": [{"a": 1}, {"b": 2}]}"#),
            (r#"{"a": {"$gt": 5}}"#, r#"{"a": {"$not": {"$gt": 5}}}"#),
            (r#"{"a": 1}"#, r#"{}"#),
        ] {
            assert_ne!(shape(left), shape(right), "{left} {right}");
        }
    }
}
