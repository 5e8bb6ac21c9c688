//! What an `$expr` implies of single fields, for the planner.

use frond_doc::path::Path;

use super::alternatives;
use super::compare::Comparison;
use super::tree::{Condition, Field, Node, Test};
use super::{Filter, Variables};
use crate::expression::{Expression, Implied, KnownComparison, Relation};

impl Filter {
    /// This filter with what its `$expr`s imply, given their variables: equalities as conditions
    /// beside them, other comparisons with them, and an `$or` of such beside them where one of
    /// several holds. `None` if they imply nothing. The same documents pass.
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
            let before = nodes.len();
            let ordered = add_implied(expression.implied(), variables, nodes);
            *implies |= before < nodes.len() || !ordered.is_empty();
            nodes.push(Node::Expression(expression.clone().with_ordered(ordered)));
        }
        other => nodes.push(other.clone()),
    }
}

/// Appends what holds, but for comparisons by order, which are returned.
fn add_implied(
    implied: &Implied,
    variables: &Variables,
    nodes: &mut Vec<Node>,
) -> Vec<KnownComparison> {
    let known = implied.comparisons.iter().filter_map(|noted| noted.known(variables));
    let (equal, ordered): (Vec<_>, Vec<_>) =
        known.partition(|known| known.relation == Relation::Equal);
    nodes.extend(equal.into_iter().map(equality));
    for branches in &implied.alternatives {
        let branches = branches.iter().map(|branch| branch_of(branch, variables));
        if let Some(branches) = branches.collect::<Option<Vec<Node>>>() {
            let mut or = Node::Or(branches);
            alternatives::join(&mut or);
            nodes.push(or);
        }
    }
    ordered
}

/// What holds as one node; `None` if nothing is known.
fn branch_of(implied: &Implied, variables: &Variables) -> Option<Node> {
    let mut nodes = Vec::new();
    let ordered = add_implied(implied, variables, &mut nodes);
    if !ordered.is_empty() {
        nodes.push(Node::Expression(Expression::always(ordered)));
    }
    match nodes.len() {
        0 => None,
        1 => nodes.pop(),
        _ => Some(Node::And(nodes)),
    }
}

fn equality(known: KnownComparison) -> Node {
    let mut comparison = Comparison::equal(known.value);
    comparison.collate(&known.collation);
    Node::Field(Field {
        path: Path::new(&known.path),
        dotted: known.path,
        scanned: None,
        condition: Condition::Test(Test::Compare(comparison)),
    })
}
