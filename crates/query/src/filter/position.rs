//! Which array element matched: what `$` stands for in updates and projections.
//!
//! Found in a second pass over a document that is known to pass, since it is rarely wanted. The
//! *outermost* array on the path counts. Of several conditions that pass through arrays, the last
//! one decides, as in MongoDB (which calls it undefined).

use frond_doc::path::Path;
use frond_doc::{Array, Document, Value};

use super::evaluate::{self, Run};
use super::tree::{Condition, Field, Node, Test};

/// The position of the element that made `document` pass `node`.
pub(super) fn node(node: &Node, document: Document<'_>, run: &Run<'_>) -> Option<usize> {
    match node {
        Node::And(nodes) => {
            nodes.iter().rev().find_map(|inner| self::node(inner, document, run))
        }
        Node::Or(nodes) => nodes
            .iter()
            .filter(|inner| evaluate::node(inner, document, run))
            .find_map(|inner| self::node(inner, document, run)),
        Node::Field(field) => of_field(field, document, run),
        Node::Nor(_) | Node::Constant(_) | Node::Expression(_) => None,
    }
}

fn of_field(field: &Field, document: Document<'_>, run: &Run<'_>) -> Option<usize> {
    let (array, rest) = first_array(&field.path, document)?;
    of_condition(&field.condition, array, rest, run)
}

/// The first array on the path, and the part of the path that is left there.
fn first_array<'a, 'p>(
    path: &'p Path,
    document: Document<'a>,
) -> Option<(Array<'a>, &'p [String])> {
    let mut current = document;
    for (place, part) in path.parts().iter().enumerate() {
        match current.get(part)? {
            Value::Document(inner) => current = inner,
            Value::Array(array) => return Some((array, &path.parts()[place + 1..])),
            _ => return None,
        }
    }
    None
}

fn of_condition(
    condition: &Condition,
    array: Array<'_>,
    rest: &[String],
    run: &Run<'_>,
) -> Option<usize> {
    match condition {
        Condition::All(inner) => {
            inner.iter().rev().find_map(|inner| of_condition(inner, array, rest, run))
        }
        Condition::Not(_) => None,
        Condition::Test(test) => of_test(test, array, rest, run),
    }
}

fn of_test(test: &Test, array: Array<'_>, rest: &[String], run: &Run<'_>) -> Option<usize> {
    if rest.is_empty() {
        return match test {
            Test::ElementValue(_) | Test::ElementDocument(_) => {
                array.iter().position(|element| evaluate::is_element(test, element, run))
            }
            _ if test.is_on_whole_arrays() => None,
            _ => array.iter().position(|element| evaluate::test(test, Some(element), run)),
        };
    }
    let path = Path::new(&rest.join("."));
    array.iter().position(|element| {
        element.as_document().is_some_and(|document| {
            path.visit(document, &mut |value| evaluate::test_with_elements(test, value, run))
        })
    })
}
