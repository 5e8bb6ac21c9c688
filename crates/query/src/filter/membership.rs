//! `$in` and `$nin`: one of many values, or patterns.

use frond_doc::{Value, ValueBuf};

use super::operand::{Operand, bad_value, is_operators};
use super::pattern::Pattern;
use crate::collation::Collation;
use crate::error::QueryError;

/// The values and patterns of a `$in`.
///
/// *Invariants*: `values` ascend strictly in the collation's order, so that a lookup is a binary
/// search.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    values: Vec<ValueBuf>,
    collation: Collation,
    patterns: Vec<Pattern>,
    /// Whether null is among the values: an absent field matches then.
    has_null: bool,
}

impl Membership {
    /// Parses the array of a `$in` or `$nin`.
    pub(super) fn parse(operand: Operand<'_>) -> Result<Membership, QueryError> {
        let Some(array) = operand.value.as_array() else {
            return Err(bad_value(format!("{} needs an array", operand.name)));
        };
        let mut values = Vec::new();
        let mut patterns = Vec::new();
        for value in array.iter() {
            match value {
                Value::Regex(regex) => patterns.push(Pattern::new(regex.pattern, regex.options)?),
                Value::Document(document) if is_operators(document) => {
                    return Err(bad_value(format!("cannot nest $ under {}", operand.name)));
                }
                Value::Undefined => return Err(bad_value("cannot compare to undefined")),
                _ => values.push(value.to_buf()),
            }
        }
        Ok(Membership { patterns, ..Membership::of(values) })
    }

    /// A membership of values alone.
    pub(super) fn of(values: Vec<ValueBuf>) -> Membership {
        let has_null = values.iter().any(|value| value.as_value() == Value::Null);
        let patterns = Vec::new();
        let mut membership =
            Membership { values, collation: Collation::SIMPLE, patterns, has_null };
        membership.collate(&Collation::SIMPLE);
        membership
    }

    /// Compares strings by `collation`.
    pub(super) fn collate(&mut self, collation: &Collation) {
        let compare = |left: &ValueBuf, right: &ValueBuf| {
            collation.compare(left.as_value(), right.as_value())
        };
        self.values.sort_by(compare);
        self.values.dedup_by(|left, right| compare(left, right).is_eq());
        self.collation = collation.clone();
    }

    /// Returns how strings compare.
    pub(crate) fn collation(&self) -> &Collation {
        &self.collation
    }

    /// The values, ascending.
    pub(crate) fn values(&self) -> &[ValueBuf] {
        &self.values
    }

    /// The patterns.
    pub(crate) fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// Whether `value` (`None`: absent) is one of the values; patterns are asked by the caller.
    pub(crate) fn contains(&self, value: Option<Value<'_>>) -> bool {
        let Some(value) = value else { return self.has_null };
        let compare = |known: &ValueBuf| self.collation.compare(known.as_value(), value);
        self.values.binary_search_by(compare).is_ok()
    }
}
