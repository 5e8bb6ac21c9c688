//! The steps of an update, path by path, in the order in which an update makes new fields.

use std::borrow::Cow;

use frond_doc::{Document, Value};

use super::{SET, UNSET};
use crate::large::every;

/// Operators that change one value by itself.
const OPERATORS: [&str; 12] = [
    "$addToSet",
    "$bit",
    "$currentDate",
    "$inc",
    "$max",
    "$min",
    "$mul",
    "$pop",
    "$pull",
    "$pullAll",
    "$push",
    SET,
];
/// Paths and operands that are nested deeper together are left to the other way, which checks.
const DEPTH_CHECKED: usize = 90;

/// An operator on one path.
pub(in crate::large) struct Step<'u> {
    pub operator: &'u str,
    pub parts: Vec<Cow<'u, str>>,
    pub operand: Value<'u>,
}

/// The update's steps in the order of their paths, without those of `$[]` and `$[x]`; `position` is
/// what `$` stands for.
pub(super) fn steps(update: Document<'_>, position: Option<usize>) -> Option<Vec<Step<'_>>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut has_positional = false;
    for (operator, paths) in update.iter() {
        if !OPERATORS.contains(&operator) && operator != UNSET {
            return None;
        }
        for (path, operand) in paths.as_document()?.iter() {
            if every::prefix(path).is_some() {
                continue;
            }
            let mut parts: Vec<Cow<'_, str>> = Vec::new();
            for part in path.split('.') {
                has_positional |= part == "$";
                parts.push(match part {
                    "$" => position?.to_string().into(),
                    part => part.into(),
                });
            }
            let step = Step { operator, parts, operand };
            if !is_taken(&step) {
                return None;
            }
            steps.push(step);
        }
    }
    let is_sorted = sort(&mut steps);
    (!has_positional || is_sorted).then_some(steps)
}

/// Whether a step can be taken by itself.
pub(in crate::large) fn is_taken(step: &Step<'_>) -> bool {
    let Step { parts, operand, .. } = step;
    parts.iter().all(|part| !part.is_empty() && !part.starts_with('$'))
        && parts[0] != "_id"
        && is_shallow(*operand, DEPTH_CHECKED - parts.len().min(DEPTH_CHECKED))
}

/// Brings steps into the order of their paths, and returns whether none lies in another. Positions
/// may stand for what another path names too: a conflict that only the document shows.
pub(super) fn sort(steps: &mut [Step<'_>]) -> bool {
    steps.sort_by(|left, right| {
        let (left, right) = (left.parts.iter(), right.parts.iter());
        left.map(|part| order_of(part)).cmp(right.map(|part| order_of(part)))
    });
    let are_apart = |pair: &[Step<'_>]| !pair[1].parts.starts_with(&pair[0].parts);
    steps.windows(2).all(are_apart)
}

/// Numbers come before names, by their value.
fn order_of(part: &str) -> (bool, usize, &str) {
    match position(part) {
        Some(number) => (false, number, ""),
        None => (true, 0, part),
    }
}

/// The position that a part of a path means in an array.
fn position(part: &str) -> Option<usize> {
    let is_position = part == "0" || !part.starts_with(['0', '+']);
    part.parse().ok().filter(|_| is_position)
}

fn is_shallow(value: Value<'_>, depth: usize) -> bool {
    let inner = match value {
        Value::Document(inner) => inner,
        Value::Array(inner) => inner.as_document(),
        Value::JavaScriptWithScope { scope, .. } => scope,
        _ => return true,
    };
    depth > 0 && inner.iter().all(|(_, value)| is_shallow(value, depth - 1))
}
