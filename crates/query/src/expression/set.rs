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
use super::node::Answer;
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
    if arguments.iter().any(Evaluated::is_nullish) {
        return Ok(Evaluated::NULL);
    }
    let mut all: BTreeMap<Bytes, Value<'_>> = BTreeMap::new();
    for argument in &arguments {
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
    if arguments.iter().any(Evaluated::is_nullish) {
        return Ok(Evaluated::NULL);
    }
    let mut common: Option<BTreeMap<Bytes, Value<'_>>> = None;
    for argument in &arguments {
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

/// `$setEquals`
pub(super) fn equals<'a>(arguments: Vec<Evaluated<'a>>, by: &Collation) -> Answer<'a> {
    let mut first = None;
    for argument in &arguments {
        let own = keys("$setEquals", 17044, "All operands", argument, by)?;
        if *first.get_or_insert_with(|| own.clone()) != own {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}

/// `$setIsSubset`
pub(super) fn is_subset<'a>(
    left: Evaluated<'a>,
    right: Evaluated<'a>,
    by: &Collation,
) -> Answer<'a> {
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
