//! What an `$expr` implies of single fields, for the planner: it doesn't look into expressions.

use frond_doc::path::Path;

use super::compare::Comparison;
use super::tree::{Condition, Field, Node, Test};
use super::{Filter, Variables};

impl Filter {
    /// This filter with the conditions that its `$expr`s imply, given their variables; `None` if
    /// they imply none. The same documents pass.
    pub fn with_implied(&self) -> Option<Filter> {
        let mut implied = Vec::new();
        add_implied(&self.root, &self.variables, &mut implied);
        if implied.is_empty() {
            return None;
        }
        match &*self.root {
            Node::And(nodes) => implied.extend(nodes.iter().cloned()),
            other => implied.push(other.clone()),
        }
        Some(self.with_root(Node::And(implied)))
    }
}

/// Appends what must hold for `node` to pass a document.
fn add_implied(node: &Node, variables: &Variables, implied: &mut Vec<Node>) {
    match node {
        Node::And(nodes) => {
            nodes.iter().for_each(|inner| add_implied(inner, variables, implied));
        }
        Node::Expression(expression) => {
            let equalities = expression.equalities().iter();
            implied.extend(equalities.filter_map(|equality| {
                let mut comparison = Comparison::equal(equality.value(variables)?.to_buf());
                comparison.collate(variables.collation());
                Some(Node::Field(Field {
                    dotted: equality.path.clone(),
                    path: Path::new(&equality.path),
                    scanned: None,
                    condition: Condition::Test(Test::Compare(comparison)),
                }))
            }));
        }
        _ => {}
    }
}
