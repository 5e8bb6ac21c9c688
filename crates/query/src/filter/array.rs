//! `$elemMatch` and `$all`: conditions on arrays.

use frond_doc::Value;

use super::operand::{Operand, bad_value, first_name, is_operators};
use super::tree::{Condition, Node, Test};
use super::{operators, parse};
use crate::error::QueryError;

/// `$elemMatch`: with operators, one element fulfils all of them; with a filter, one element is a
/// document that passes.
pub(super) fn element(operand: Operand<'_>) -> Result<Condition, QueryError> {
    let Some(document) = operand.value.as_document() else {
        return Err(bad_value("$elemMatch needs an Object"));
    };
    let takes_documents = first_name(document).is_some_and(parse::is_top_level)
        || parse::is_part_of_reference(document);
    let test = if is_operators(document) && !takes_documents {
        let condition = parse::operators(operand.path, document, operand.depth + 1)?;
        Test::ElementValue(Box::new(condition))
    } else {
        let node = parse::document(document, operand.depth + 1)?;
        refuse_questions_to_whole_documents(&node)?;
        Test::ElementDocument(Box::new(node))
    };
    Ok(Condition::Test(test))
}

/// Recursion is bounded by the depth of filters; an inner `$elemMatch` was checked before.
fn refuse_questions_to_whole_documents(node: &Node) -> Result<(), QueryError> {
    let name = match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
            return nodes.iter().try_for_each(refuse_questions_to_whole_documents);
        }
        Node::Expression(_) => "$expr",
        Node::Sample(_) => "$sampleRate",
        Node::Script(_) => "$where",
        _ => return Ok(()),
    };
    Err(bad_value(format!("{name} can only be applied to the top-level document")))
}

/// `$all`: each of the values is found, or each of the `$elemMatch`.
pub(super) fn all(operand: Operand<'_>) -> Result<Condition, QueryError> {
    let Some(array) = operand.value.as_array() else {
        return Err(bad_value("$all needs an array"));
    };
    let is_element_match = |value: Value<'_>| {
        value.as_document().is_some_and(|document| first_name(document) == Some("$elemMatch"))
    };
    let with_elements = array.iter().next().is_some_and(is_element_match);
    let mut conditions = Vec::new();
    for value in array.iter() {
        if with_elements != is_element_match(value) {
            return Err(bad_value(match with_elements {
                true => "$all/$elemMatch has to be consistent",
                false => "no $ expressions in $all",
            }));
        }
        conditions.push(match value {
            Value::Document(document) if with_elements => {
                parse::operators(operand.path, document, operand.depth + 1)?
            }
            Value::Document(document)
                if first_name(document).is_some_and(operators::takes_values) =>
            {
                return Err(bad_value("no $ expressions in $all"));
            }
            _ => parse::implicit(value)?,
        });
    }
    Ok(match conditions.len() {
        0 => Condition::Test(Test::Never),
        1 => conditions.remove(0),
        _ => Condition::All(conditions),
    })
}
