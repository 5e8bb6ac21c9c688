//! What an `$expr` implies of single fields, for the planner.

use frond_doc::path::Path;

use super::compare::Comparison;
use super::tree::{Condition, Field, Node, Test};
use super::{Filter, Variables};
use crate::expression::Relation;

impl Filter {
    /// This filter with what its `$expr`s imply, given their variables: equalities as conditions
    /// beside them, other comparisons with them. `None` if they imply nothing. The same documents
    /// pass.
    pub fn with_implied(&self) -> Option<Filter> {
        let (mut nodes, mut implies) = (Vec::new(), false);
        add(&self.root, &self.variables, &mut nodes, &mut implies);
        implies.then(|| self.with_root(Node::And(nodes)))
    }
}

/// Appends the conjuncts of `node`, and what they imply.
fn add(node: &Node, variables: &Variables, nodes: &mut Vec<Node>, implies: &mut bool) {
    match node {
        Node::And(inner) => inner.iter().for_each(|node| add(node, variables, nodes, implies)),
        Node::Expression(expression) => {
            let known = expression.known_comparisons(variables);
            *implies |= !known.is_empty();
            let (equal, ordered): (Vec<_>, Vec<_>) =
                known.into_iter().partition(|known| known.relation == Relation::Equal);
            nodes.extend(equal.into_iter().map(|known| {
                let mut comparison = Comparison::equal(known.value);
                comparison.collate(&known.collation);
                Node::Field(Field {
                    path: Path::new(&known.path),
                    dotted: known.path,
                    scanned: None,
                    condition: Condition::Test(Test::Compare(comparison)),
                })
            }));
            nodes.push(Node::Expression(expression.clone().with_ordered(ordered)));
        }
        other => nodes.push(other.clone()),
    }
}
