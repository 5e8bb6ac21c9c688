//! Which array element matched: what `$` stands for in updates and projections.
//!
//! Found in a second pass over a document that is known to pass, since it is rarely wanted. The
//! *outermost* array on the path counts. Of several conditions that pass through arrays, the last
//! one decides, as in MongoDB (which calls it undefined).

use frond_doc::path::{Path, Reached};
use frond_doc::{Document, Value};

use super::evaluate::{self, Run};
use super::tree::{Condition, Node, Test};

/// The position of the element that made `document` pass `node`.
pub(super) fn node(node: &Node, document: Document<'_>, run: &Run<'_>) -> Option<usize> {
    match node {
        Node::And(nodes) => nodes.iter().rev().find_map(|inner| self::node(inner, document, run)),
        Node::Or(nodes) => nodes
            .iter()
            .filter(|inner| evaluate::node(inner, document, run))
            .find_map(|inner| self::node(inner, document, run)),
        Node::Field(field) => of_condition(&field.condition, &field.path, document, run),
        Node::Nor(_)
        | Node::Constant(_)
        | Node::Expression(_)
        | Node::Schema(_)
        | Node::Sample(_)
        | Node::Script(_)
        | Node::Text(_) => None,
    }
}

fn of_condition(
    condition: &Condition,
    path: &Path,
    document: Document<'_>,
    run: &Run<'_>,
) -> Option<usize> {
    match condition {
        Condition::All(inner) => {
            inner.iter().rev().find_map(|inner| of_condition(inner, path, document, run))
        }
        Condition::Not(_) => None,
        Condition::Test(test) => of_test(test, path, document, run),
    }
}

fn of_test(test: &Test, path: &Path, document: Document<'_>, run: &Run<'_>) -> Option<usize> {
    let mut found = None;
    path.visit_reached(document, &mut |reached| of_reached(test, reached, run, &mut found));
    found
}

/// Whether what a path reached, or an element of it, passes; notes its position.
pub(super) fn of_reached(
    test: &Test,
    reached: Reached<'_>,
    run: &Run<'_>,
    found: &mut Option<usize>,
) -> bool {
    if !matches!(test, Test::ElementValue(_) | Test::ElementDocument(_)) {
        return reached.visit_leaves(&mut |leaf| {
            let passes = evaluate::test(test, leaf.value, run);
            *found = leaf.position.filter(|_| passes);
            passes
        });
    }
    let Some(Value::Array(array)) = reached.value else { return false };
    let place = array.iter().position(|element| evaluate::is_element(test, element, run));
    *found = place.map(|place| reached.position.unwrap_or(place));
    place.is_some()
}
