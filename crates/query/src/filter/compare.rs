//! `$eq`, `$gt`, `$gte`, `$lt`, `$lte`: comparisons that stay within one type.
//!
//! *Invariants*
//! 1. Values of different types (numbers count as one, strings and symbols too) never fulfil a
//!    comparison, except with MinKey and MaxKey, which are below and above everything.
//! 2. An absent field counts as null. Undefined is of another type than null.
//! 3. NaN equals NaN, and is neither below nor above anything.

use std::cmp::Ordering;

use frond_doc::{ElementType, Value, ValueBuf, order};

use crate::collation::Collation;
pub(crate) use crate::expression::Relation;

/// A relation and its operand.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    relation: Relation,
    operand: ValueBuf,
    plain: Plain,
    collation: Collation,
}

/// An operand that is compared with values as they lie.
#[derive(Clone, Debug)]
enum Plain {
    Text(Box<[u8]>),
    Integer(i64),
    /// Any other.
    None,
}

impl Comparison {
    /// Makes a comparison.
    pub(crate) fn new(relation: Relation, operand: ValueBuf) -> Comparison {
        let plain = match operand.as_value() {
            Value::String(text) => Plain::Text(text.as_bytes().into()),
            Value::Int32(number) => Plain::Integer(number.into()),
            Value::Int64(number) => Plain::Integer(number),
            _ => Plain::None,
        };
        Comparison { relation, operand, plain, collation: Collation::SIMPLE }
    }

    /// Makes an equality.
    pub(crate) fn equal(operand: ValueBuf) -> Comparison {
        Comparison::new(Relation::Equal, operand)
    }

    /// Compares strings by `collation`.
    pub(crate) fn collate(&mut self, collation: &Collation) {
        self.collation = collation.clone();
    }

    /// Returns how strings compare.
    pub(crate) fn collation(&self) -> &Collation {
        &self.collation
    }

    /// The relation.
    pub(crate) fn relation(&self) -> Relation {
        self.relation
    }

    /// Returns the operand.
    pub(crate) fn operand(&self) -> Value<'_> {
        self.operand.as_value()
    }

    /// Whether a value fulfils the comparison, where its bytes decide; `None` if it must be
    /// decoded.
    #[inline]
    pub(crate) fn matches_bytes(&self, kind: ElementType, value: &[u8]) -> Option<bool> {
        let ordering = match (&self.plain, kind) {
            (Plain::None, _) | (_, ElementType::Array) => return None,
            (Plain::Text(operand), ElementType::String) if self.collation.is_simple() => {
                let text = value.get(size_of::<i32>()..value.len().checked_sub(1)?)?;
                if self.relation == Relation::Equal {
                    return Some(text == &**operand); // Mostly their lengths tell.
                }
                text.cmp(operand)
            }
            (Plain::Text(_), ElementType::String | ElementType::Symbol) => return None,
            (Plain::Integer(operand), ElementType::Int32) => {
                i64::from(i32::from_le_bytes(value.try_into().ok()?)).cmp(operand)
            }
            (Plain::Integer(operand), ElementType::Int64) => {
                i64::from_le_bytes(value.try_into().ok()?).cmp(operand)
            }
            (Plain::Integer(_), ElementType::Double | ElementType::Decimal128) => return None,
            _ => return Some(false), // Of another type.
        };
        Some(self.relation.holds(ordering))
    }

    /// Whether `value` (`None`: absent) fulfils the comparison.
    pub(crate) fn matches(&self, value: Option<Value<'_>>) -> bool {
        let operand = self.operand.as_value();
        let value = match (value, operand) {
            (Some(value), _) => value,
            (None, Value::Null) => return self.relation.holds(Ordering::Equal),
            (None, _) => Value::Undefined,
        };
        let type_of = |value: Value<'_>| order::type_order(value.element_type());
        if type_of(value) != type_of(operand) {
            return match operand {
                Value::MinKey => self.relation.holds(Ordering::Greater),
                Value::MaxKey => self.relation.holds(Ordering::Less),
                _ => false,
            };
        }
        match (is_nan(value), is_nan(operand)) {
            (false, false) => self.relation.holds(self.collation.compare(value, operand)),
            (true, true) => self.relation.holds(Ordering::Equal),
            _ => false,
        }
    }
}

fn is_nan(value: Value<'_>) -> bool {
    match value {
        Value::Double(number) => number.is_nan(),
        Value::Decimal128(_) => order::equal(value, Value::Double(f64::NAN)),
        _ => false,
    }
}
