//! `{$or: [{a: 1}, {a: 2}, ...]}` is `{a: {$in: [1, 2, ...]}}`, as MongoDB's planner makes it: a
//! value is looked up among the others instead of being compared with each. 2,000 branches over
//! 20,000 documents with eight values each took 3.7 s of comparisons.
//!
//! Only in filters that search: a validator reports its branches one by one. Only values that a
//! lookup finds wherever a comparison does, so that nothing else passes.

use std::collections::BTreeMap;

use frond_doc::{Value, ValueBuf};

use super::compare::Relation;
use super::membership::Membership;
use super::tree::{Condition, Node, Test};

/// The number of alternatives below which they are compared one by one, where they lie in a
/// document: a lookup decodes its value.
const JOINED_COUNT_MIN: usize = 16;

/// Joins the equalities on one path among the branches of each `$or` and `$nor`. The recursion is
/// bounded by [`TREE_DEPTH_MAX`](super::tree::TREE_DEPTH_MAX).
pub(super) fn join(node: &mut Node) {
    match node {
        Node::And(nodes) => nodes.iter_mut().for_each(join),
        Node::Or(nodes) | Node::Nor(nodes) => {
            nodes.iter_mut().for_each(join);
            if JOINED_COUNT_MIN <= nodes.len() {
                join_branches(nodes);
            }
        }
        Node::Field(_)
        | Node::Constant(_)
        | Node::Expression(_)
        | Node::Schema(_)
        | Node::Sample(_)
        | Node::Script(_)
        | Node::Text(_) => {}
    }
}

/// The first branch of a path takes the values of all; the others go.
fn join_branches(branches: &mut Vec<Node>) {
    let mut paths: BTreeMap<String, Vec<ValueBuf>> = BTreeMap::new();
    for (path, value) in branches.iter().filter_map(equality) {
        match paths.get_mut(path) {
            Some(values) => values.push(value.to_buf()),
            None => drop(paths.insert(path.to_owned(), vec![value.to_buf()])),
        }
    }
    paths.retain(|_, values| JOINED_COUNT_MIN <= values.len());
    if paths.is_empty() {
        return;
    }
    let mut memberships: BTreeMap<String, Option<Membership>> =
        paths.into_iter().map(|(path, values)| (path, Some(Membership::of(values)))).collect();
    branches.retain_mut(|branch| {
        let Some((path, _)) = equality(branch) else { return true };
        let Some(joined) = memberships.get_mut(path) else { return true };
        match (joined.take(), branch) {
            (Some(membership), Node::Field(field)) => {
                field.condition = Condition::Test(Test::In(membership));
                true
            }
            _ => false,
        }
    });
}

/// The path and value of an equality that may be joined with others.
fn equality(node: &Node) -> Option<(&str, Value<'_>)> {
    match node {
        Node::Field(field) => match &field.condition {
            Condition::Test(Test::Compare(comparison))
                if comparison.relation() == Relation::Equal && is_plain(comparison.operand()) =>
            {
                Some((&field.dotted, comparison.operand()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether a value equals others of its type alone, and never what is absent.
fn is_plain(value: Value<'_>) -> bool {
    match value {
        Value::Double(number) => !number.is_nan(),
        Value::Int32(_)
        | Value::Int64(_)
        | Value::String(_)
        | Value::ObjectId(_)
        | Value::Boolean(_)
        | Value::DateTime(_)
        | Value::Timestamp(_)
        | Value::Binary(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::{DocumentBuf, extended_json};

    use super::*;
    use crate::collation::Collation;
    use crate::error::QueryError;
    use crate::filter::Filter;

    fn json(text: &str) -> DocumentBuf {
        extended_json::parse(text).expect("a document")
    }

    /// Values of every type, some of which are equal.
    const VALUES: [&str; 21] = [
        "1",
        "1.0",
        "2",
        "2.5",
        r#"{"$numberLong": "3"}"#,
        r#"{"$numberDouble": "NaN"}"#,
        r#"{"$numberDecimal": "2.5"}"#,
        r#""a""#,
        r#""A""#,
        r#""é""#,
        r#""""#,
        "null",
        "true",
        "false",
        r#"{"$date": {"$numberLong": "5"}}"#,
        r#"{"$timestamp": {"t": 1, "i": 1}}"#,
        r#"{"$oid": "0123456789abcdef01234567"}"#,
        "[1, 7]",
        "[]",
        r#"{"b": 1}"#,
        r#"{"$minKey": 1}"#,
    ];

    /// Every value is asked for in branches that are joined and in the same ones that aren't, since
    /// [`Filter::parse`] joins none.
    #[test]
    fn joined_alternatives_match_the_same_documents() {
        let collated = json(r#"{"locale": "en", "strength": 1}"#);
        let collation = Collation::parse(collated.view()).expect("a collation");
        let mut documents: Vec<DocumentBuf> = vec![json("{}"), json(r#"{"a": [{"b": 2}]}"#)];
        for value in VALUES {
            documents.push(json(&format!(r#"{{"a": {value}}}"#)));
            documents.push(json(&format!(r#"{{"a": [{value}, 99]}}"#)));
            documents.push(json(&format!(r#"{{"a": {{"b": {value}}}}}"#)));
        }
        for operator in ["$or", "$nor"] {
            for path in ["a", "a.b", "a.0"] {
                for left_out in 0..VALUES.len() {
                    // Twenty of its own, so that there are enough to be joined whatever is left
                    // out.
                    let own = (0..20).map(|number| format!("{}", 1000 + number));
                    let others = VALUES.iter().enumerate();
                    let some = others.filter(|(position, _)| position % 5 != left_out % 5);
                    let values = own.chain(some.map(|(_, value)| (*value).to_owned()));
                    let branches: Vec<String> =
                        values.map(|value| format!(r#"{{"{path}": {value}}}"#)).collect();
                    let filter = json(&format!(r#"{{"{operator}": [{}]}}"#, branches.join(",")));
                    for collation in [&Collation::SIMPLE, &collation] {
                        let of = |parsed: Result<Filter, QueryError>| {
                            parsed.expect("a filter").with_collation(collation)
                        };
                        let joined = of(Filter::parse_search(filter.view()));
                        let apart = of(Filter::parse(filter.view()));
                        assert!(count(joined.root()) < count(apart.root()) / 2);
                        for document in &documents {
                            assert_eq!(
                                joined.matches(document.view()),
                                apart.matches(document.view()),
                                "{filter:?} {document:?}"
                            );
                        }
                    }
                }
            }
        }
    }

    fn count(node: &Node) -> usize {
        match node {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().map(count).sum(),
            _ => 1,
        }
    }

    #[test]
    fn inequalities_stay_and_few_alternatives_are_not_joined() {
        let of = |count: usize, more: &str| {
            let equal = (0..count).map(|number| format!(r#"{{"a": {number}}}"#));
            let branches: Vec<String> =
                equal.chain([r#"{"a": {"$gt": 5}}"#, more].map(str::to_owned)).collect();
            let filter = json(&format!(r#"{{"$or": [{}]}}"#, branches.join(",")));
            self::count(Filter::parse_search(filter.view()).expect("a filter").root())
        };
        assert_eq!(of(JOINED_COUNT_MIN, r#"{"b": 1}"#), 3);
        assert_eq!(of(JOINED_COUNT_MIN - 1, r#"{"b": 1}"#), JOINED_COUNT_MIN + 1);
        assert_eq!(of(JOINED_COUNT_MIN, r#"{"a": 1, "b": 1}"#), 4);
    }
}
