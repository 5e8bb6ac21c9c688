//! Questions to long values where they lie: an array is asked element by element, up to the one
//! that decides, and an element that is a document by what the paths of its filter reach.
//!
//! An answer is `None` where only the value itself decides, put together.

use std::convert::Infallible;

use frond_doc::ElementType;
use frond_doc::path::Path;
use frond_doc::pieces::{Long, Lying, ReachedPart, VisitPart};

use super::evaluate::{self, Run};
use super::pieces;
use super::tree::{Condition, Test};

/// Whether the part that a path reached passes.
pub(super) fn passes(test: &Test, part: ReachedPart<'_>, run: &Run<'_>) -> Option<bool> {
    match part {
        ReachedPart::Value(reached) => Some(evaluate::test_reached(test, reached, run)),
        ReachedPart::Long { value, is_expandable, .. } => {
            long_passes(test, &value, is_expandable, run, &mut None)
        }
    }
}

/// Whether a long value, or, if it `is_expandable`, an element of it passes; notes the position of
/// that.
pub(super) fn long_passes(
    test: &Test,
    value: &Long<'_>,
    is_expandable: bool,
    run: &Run<'_>,
    found: &mut Option<usize>,
) -> Option<bool> {
    if value.kind() != ElementType::Array {
        return match test {
            Test::Size(_) | Test::ElementValue(_) | Test::ElementDocument(_) => Some(false),
            _ => element_passes(test, Lying::Elsewhere(*value), run),
        };
    }
    let is_decided = match test {
        Test::Never => return Some(false),
        Test::Size(size) => return Some(i64::try_from(value.element_count()?).ok()? == *size),
        Test::Exists => {
            *found = (is_expandable && 0 < value.element_count()?).then_some(0);
            return Some(true);
        }
        Test::ElementValue(_) | Test::ElementDocument(_) => true,
        Test::Type(types) => {
            if types.types().contains(&ElementType::Array) {
                return Some(true);
            }
            is_expandable
        }
        _ if test.may_take_containers() => return None,
        _ => is_expandable,
    };
    if !is_decided {
        return Some(false);
    }
    value.elements(&mut |position, element| {
        let passes = match test {
            Test::ElementValue(condition) => condition_holds(condition, element, run),
            Test::ElementDocument(_) => document_passes(test, element, run),
            _ => element_passes(test, element, run),
        }?;
        *found = usize::try_from(position).ok().filter(|_| passes);
        Some(passes)
    })
}

/// Whether an element is a document that passes the filter of an `$elemMatch`.
fn document_passes(test: &Test, element: Lying<'_>, run: &Run<'_>) -> Option<bool> {
    let long = match element {
        Lying::Here(value) => return Some(evaluate::is_element(test, value, run)),
        Lying::Elsewhere(long) => long,
    };
    let Test::ElementDocument(node) = test else { return None };
    match long.kind() {
        ElementType::Document => {
            let reach = &mut |path: &Path, visit: &mut VisitPart<'_>| {
                Ok::<_, Infallible>(long.reach(path, 0, visit))
            };
            let Ok(answer) = pieces::node(node, run, reach);
            answer
        }
        // As a document whose names are its positions.
        ElementType::Array => None,
        _ => Some(false),
    }
}

/// Whether one value by itself fulfils `condition`.
fn condition_holds(condition: &Condition, element: Lying<'_>, run: &Run<'_>) -> Option<bool> {
    match condition {
        Condition::All(inner) => {
            for condition in inner {
                if !condition_holds(condition, element, run)? {
                    return Some(false);
                }
            }
            Some(true)
        }
        Condition::Not(inner) => condition_holds(inner, element, run).map(|holds| !holds),
        Condition::Test(test) => element_passes(test, element, run),
    }
}

/// Whether one value by itself passes.
fn element_passes(test: &Test, element: Lying<'_>, run: &Run<'_>) -> Option<bool> {
    let long = match element {
        Lying::Here(value) => return Some(evaluate::test(test, Some(value), run)),
        Lying::Elsewhere(long) => long,
    };
    match (test, long.kind()) {
        (Test::Exists, _) => Some(true),
        (Test::Type(types), kind) => Some(types.types().contains(&kind)),
        (_, ElementType::Document | ElementType::Array) => {
            (!test.may_take_containers()).then_some(false)
        }
        _ => long.test_value(|value| evaluate::test(test, Some(value), run)),
    }
}
