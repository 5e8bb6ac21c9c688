//! Arrays as sets: `$setUnion`, `$setIntersection`, `$setDifference`, `$setEquals`, `$setIsSubset`,
//! `$anyElementTrue`, `$allElementsTrue`.
//!
//! Elements are compared by their keys in the collation, under which equal values (1, 1.0) are the
//! same bytes.
//! Results of several arrays are in ascending order, as MongoDB gives them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bytes::Bytes;
use frond_doc::Value;

use super::evaluated::{Elements, Evaluated, elements};
use super::failure;
use super::node::{Answer, Node};
use super::parse::Parser;
use super::scope::Variables;
use crate::error::QueryError;
use crate::memory::Charge;

/// The memory of an element of a set besides its key's bytes: its entry, and a share of nodes that
/// are half full.
const ENTRY_BYTES: usize = 2 * size_of::<(Bytes, Value<'_>)>();

/// Elements by their keys, charged to the request.
struct Set<'v, 'm> {
    elements: BTreeMap<Bytes, Value<'v>>,
    variables: &'m Variables,
    charge: Charge,
    bytes: usize,
}

impl<'v, 'm> Set<'v, 'm> {
    fn new(variables: &'m Variables) -> Set<'v, 'm> {
        let charge = variables.memory().charge();
        Set { elements: BTreeMap::new(), variables, charge, bytes: 0 }
    }

    /// Adds an element; whether it wasn't in.
    fn insert(&mut self, element: Value<'v>) -> Result<bool, QueryError> {
        let key = self.variables.collation().key_of(element);
        self.charge.work(4 + key.len() / 64)?;
        let bytes = self.bytes + ENTRY_BYTES + key.len();
        self.charge.cover(bytes)?;
        let Entry::Vacant(entry) = self.elements.entry(key) else { return Ok(false) };
        entry.insert(element);
        self.bytes = bytes;
        Ok(true)
    }

    fn extend(&mut self, elements: impl Iterator<Item = Value<'v>>) -> Result<(), QueryError> {
        for element in elements {
            self.insert(element)?;
        }
        Ok(())
    }

    fn contains(&self, element: Value<'_>) -> Result<bool, QueryError> {
        let key = self.variables.collation().key_of(element);
        self.charge.work(4 + key.len() / 64)?;
        Ok(self.elements.contains_key(&key))
    }

    /// Returns the elements in ascending order.
    fn into_array(self) -> Answer<'static> {
        Elements::collect(self.elements.into_values(), self.variables.memory())
    }
}

/// The set of an array.
fn set_of<'v, 'm>(
    operator: &str,
    code: i32,
    which: &str,
    value: &'v Evaluated<'_>,
    variables: &'m Variables,
) -> Result<Set<'v, 'm>, QueryError> {
    let array = elements(value, code, |name| {
        format!("{which} of {operator} must be an array, but is of type: {name}")
    })?;
    let mut set = Set::new(variables);
    set.extend(array.iter())?;
    Ok(set)
}

/// `$setUnion`
pub(super) fn union<'a>(arguments: Vec<Evaluated<'a>>, variables: &Variables) -> Answer<'a> {
    let mut all = Set::new(variables);
    for argument in &arguments {
        if argument.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let array = elements(argument, 17043, |name| {
            format!("All operands of $setUnion must be arrays. One argument is of type: {name}")
        })?;
        all.extend(array.iter())?;
    }
    all.into_array()
}

/// `$setIntersection`
pub(super) fn intersection<'a>(arguments: Vec<Evaluated<'a>>, variables: &Variables) -> Answer<'a> {
    let mut common: Option<Set<'_, '_>> = None;
    for argument in &arguments {
        if argument.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let array = elements(argument, 17047, |name| {
            format!(
                "All operands of $setIntersection must be arrays. One argument is of type: {name}"
            )
        })?;
        let mut next = Set::new(variables);
        for element in array.iter() {
            // Only what all have is kept; of equal elements that of the first array.
            match &common {
                Some(common) if !common.contains(element)? => {}
                _ => {
                    next.insert(element)?;
                }
            }
        }
        if let Some(mut kept) = common.take() {
            kept.elements.retain(|key, _| next.elements.contains_key(key));
            next = kept;
        }
        common = Some(next);
    }
    common.unwrap_or_else(|| Set::new(variables)).into_array()
}

/// `$setDifference`: in the first array's order.
pub(super) fn difference<'a>(
    left: Evaluated<'a>,
    right: Evaluated<'a>,
    variables: &Variables,
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
    let mut seen = Set::new(variables);
    seen.extend(without.iter())?;
    let mut left_over = Elements::new(variables.memory());
    for element in array.iter() {
        if seen.insert(element)? {
            left_over.push(element)?;
        }
    }
    left_over.finish()
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
    Ok(Node::ManyIn(are_equal, nodes))
}

/// The type of a node that is constant, unless that is an array.
fn constant_but_no_array(node: &Node) -> Option<&'static str> {
    let value = node.constant()?;
    (!matches!(value, Value::Array(_))).then(|| value.element_type().alias())
}

fn are_equal<'a>(arguments: Vec<Evaluated<'a>>, variables: &Variables) -> Answer<'a> {
    let mut first: Option<Set<'_, '_>> = None;
    for argument in &arguments {
        let own = set_of("$setEquals", 17044, "All operands", argument, variables)?;
        match &first {
            Some(first) if !first.elements.keys().eq(own.elements.keys()) => {
                return Ok(false.into());
            }
            Some(_) => {}
            None => first = Some(own),
        }
    }
    Ok(true.into())
}

/// `$setIsSubset`: a second argument that is constant and no array is an error of the request, if
/// the first one isn't constant.
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
        _ => Ok(Node::TwoIn(is_within, Box::new((left, right)))),
    }
}

fn is_within<'a>(left: Evaluated<'a>, right: Evaluated<'a>, variables: &Variables) -> Answer<'a> {
    let array = elements(&left, 17046, |name| {
        format!("both operands of $setIsSubset must be an array, but is of type: {name}")
    })?;
    let right = set_of("$setIsSubset", 17042, "both operands", &right, variables)?;
    for element in array.iter() {
        if !right.contains(element)? {
            return Ok(false.into());
        }
    }
    Ok(true.into())
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
