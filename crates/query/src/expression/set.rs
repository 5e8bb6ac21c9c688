//! Arrays as sets: `$setUnion`, `$setIntersection`, `$setDifference`, `$setEquals`, `$setIsSubset`,
//! `$anyElementTrue`, `$allElementsTrue`.
//!
//! Elements are compared by their keys in the collation, under which equal values (1, 1.0) are the
//! same bytes.
//! Results of several arrays are in ascending order, as MongoDB gives them.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use frond_doc::Value;

use super::evaluated::{Elements, Evaluated, elements};
use super::failure;
use super::node::{Answer, Node};
use super::parse::Parser;
use crate::collation::Collation;
use crate::error::QueryError;

fn keys(
    operator: &str,
    code: i32,
    which: &str,
    value: &Evaluated<'_>,
    by: &Collation,
) -> Result<BTreeSet<Bytes>, QueryError> {
    let array = elements(value, code, |name| {
        format!("{which} of {operator} must be an array, but is of type: {name}")
    })?;
    Ok(array.iter().map(|element| by.key_of(element)).collect())
}

/// `$setUnion`
pub(super) fn union<'a>(arguments: Vec<Evaluated<'a>>, by: &Collation) -> Answer<'a> {
    let mut all: BTreeMap<Bytes, Value<'_>> = BTreeMap::new();
    for argument in &arguments {
        if argument.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let array = elements(argument, 17043, |name| {
            format!("All operands of $setUnion must be arrays. One argument is of type: {name}")
        })?;
        for element in array.iter() {
            all.entry(by.key_of(element)).or_insert(element);
        }
    }
    Elements::collect(all.into_values())
}

/// `$setIntersection`
pub(super) fn intersection<'a>(arguments: Vec<Evaluated<'a>>, by: &Collation) -> Answer<'a> {
    let mut common: Option<BTreeMap<Bytes, Value<'_>>> = None;
    for argument in &arguments {
        if argument.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let array = elements(argument, 17047, |name| {
            format!(
                "All operands of $setIntersection must be arrays. One argument is of type: {name}"
            )
        })?;
        let own: BTreeMap<_, _> =
            array.iter().map(|element| (by.key_of(element), element)).collect();
        common = Some(match common {
            None => own,
            Some(mut common) => {
                common.retain(|key, _| own.contains_key(key));
                common
            }
        });
    }
    Elements::collect(common.unwrap_or_default().into_values())
}

/// `$setDifference`: in the first array's order.
pub(super) fn difference<'a>(
    left: Evaluated<'a>,
    right: Evaluated<'a>,
    by: &Collation,
) -> Answer<'a> {
    if left.is_nullish() || right.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let describe = |which, name| {
        format!(
            "both operands of $setDifference must be arrays. {which} argument is of type: {name}"
        )
    };
    let array = elements(&left, 17048, |name| describe("First", name))?;
    let without = elements(&right, 17049, |name| describe("Second", name))?;
    let mut seen: BTreeSet<Bytes> = without.iter().map(|element| by.key_of(element)).collect();
    Elements::collect(array.iter().filter(|element| seen.insert(by.key_of(*element))))
}

/// `$setEquals`: a constant that is no array is an error of the request, with a code of its own.
pub(super) fn equals(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let nodes = parser.arguments(argument)?;
    if nodes.len() < 2 {
        let message = format!("{operator} needs at least two arguments had: {}", nodes.len());
        return Err(failure(17045, message));
    }
    for (node, position) in nodes.iter().zip(1..) {
        if let Some(name) = constant_but_no_array(node) {
            let message = format!(
                "All operands of {operator} must be arrays. {position}-th argument is of type: {name}"
            );
            return Err(failure(5_887_502, message));
        }
    }
    Ok(Node::ManyCollated(are_equal, nodes))
}

/// The type of a node that is constant, unless that is an array.
fn constant_but_no_array(node: &Node) -> Option<&'static str> {
    let value = node.constant()?;
    (!matches!(value, Value::Array(_))).then(|| value.element_type().alias())
}

fn are_equal<'a>(arguments: Vec<Evaluated<'a>>, by: &Collation) -> Answer<'a> {
    let mut first = None;
    for argument in &arguments {
        let own = keys("$setEquals", 17044, "All operands", argument, by)?;
        if *first.get_or_insert_with(|| own.clone()) != own {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}

/// `$setIsSubset`: a second argument that is constant and no array is an error of the request, if the
/// first one isn't constant.
pub(super) fn is_subset(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let [left, right] = parser.exactly(operator, argument)?;
    match constant_but_no_array(&right) {
        Some(name) if !left.is_constant() => {
            let message = format!(
                "both operands of {operator} must be arrays. Second argument is of type: {name}"
            );
            Err(failure(17311, message))
        }
        _ => Ok(Node::TwoCollated(is_within, Box::new((left, right)))),
    }
}

fn is_within<'a>(left: Evaluated<'a>, right: Evaluated<'a>, by: &Collation) -> Answer<'a> {
    let left = keys("$setIsSubset", 17046, "both operands", &left, by)?;
    let right = keys("$setIsSubset", 17042, "both operands", &right, by)?;
    Ok(left.is_subset(&right).into())
}

/// `$anyElementTrue`
pub(super) fn any_element_true(argument: Evaluated<'_>) -> Answer<'_> {
    let array = elements(&argument, 17041, |name| {
        format!("$anyElementTrue's argument must be an array, but is {name}")
    })?;
    Ok(array.iter().any(|element| element.is_truthy()).into())
}

/// `$allElementsTrue`
pub(super) fn all_elements_true(argument: Evaluated<'_>) -> Answer<'_> {
    let array = elements(&argument, 17040, |name| {
        format!("$allElementsTrue's argument must be an array, but is {name}")
    })?;
    Ok(array.iter().all(|element| element.is_truthy()).into())
}
