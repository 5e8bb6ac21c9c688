//! `$eq`, `$gt`, `$gte`, `$lt`, `$lte`: comparisons that stay within one type.
//!
//! *Invariants*
//! 1. Values of different types (numbers count as one, strings and symbols too) never fulfil a
//!    comparison, except with MinKey and MaxKey, which are below and above everything.
//! 2. An absent field counts as null. Undefined is of another type than null.
//! 3. NaN equals NaN, and is neither below nor above anything.

use std::cmp::Ordering;

use frond_doc::{Value, ValueBuf, order};

/// How a value must stand to the operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Relation {
    /// `$eq`
    Equal,
    /// `$gt`
    Greater,
    /// `$gte`
    GreaterOrEqual,
    /// `$lt`
    Less,
    /// `$lte`
    LessOrEqual,
}

impl Relation {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Relation::Equal => ordering.is_eq(),
            Relation::Greater => ordering.is_gt(),
            Relation::GreaterOrEqual => ordering.is_ge(),
            Relation::Less => ordering.is_lt(),
            Relation::LessOrEqual => ordering.is_le(),
        }
    }

    fn allows_equal(self) -> bool {
        self.holds(Ordering::Equal)
    }
}

/// A relation and its operand.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    relation: Relation,
    operand: ValueBuf,
}

impl Comparison {
    /// Makes a comparison.
    pub(crate) fn new(relation: Relation, operand: ValueBuf) -> Comparison {
        Comparison { relation, operand }
    }

    /// Makes an equality.
    pub(crate) fn equal(operand: ValueBuf) -> Comparison {
        Comparison::new(Relation::Equal, operand)
    }

    /// The relation.
    pub(crate) fn relation(&self) -> Relation {
        self.relation
    }

    /// What is compared with.
    pub(crate) fn operand(&self) -> Value<'_> {
        self.operand.as_value()
    }

    /// Whether `value` (`None`: absent) fulfils the comparison.
    pub(crate) fn matches(&self, value: Option<Value<'_>>) -> bool {
        let operand = self.operand.as_value();
        let value = match (value, operand) {
            (Some(value), _) => value,
            (None, Value::Null) => return self.relation.allows_equal(),
            (None, _) => Value::Undefined,
        };
        if type_class(value) != type_class(operand) {
            return match operand {
                Value::MinKey => self.relation.holds(Ordering::Greater),
                Value::MaxKey => self.relation.holds(Ordering::Less),
                _ => false,
            };
        }
        match (is_nan(value), is_nan(operand)) {
            (false, false) => self.relation.holds(order::compare(value, operand)),
            (true, true) => self.relation.allows_equal(),
            _ => false,
        }
    }
}

/// Values are compared within one class only.
fn type_class(value: Value<'_>) -> u8 {
    match value {
        Value::MinKey => 0,
        Value::Undefined => 1,
        Value::Null => 2,
        Value::Double(_) | Value::Int32(_) | Value::Int64(_) | Value::Decimal128(_) => 3,
        Value::String(_) | Value::Symbol(_) => 4,
        Value::Document(_) => 5,
        Value::Array(_) => 6,
        Value::Binary(_) => 7,
        Value::ObjectId(_) => 8,
        Value::Boolean(_) => 9,
        Value::DateTime(_) => 10,
        Value::Timestamp(_) => 11,
        Value::Regex(_) => 12,
        Value::DbPointer { .. } => 13,
        Value::JavaScript(_) => 14,
        Value::JavaScriptWithScope { .. } => 15,
        Value::MaxKey => 16,
    }
}

fn is_nan(value: Value<'_>) -> bool {
    match value {
        Value::Double(number) => number.is_nan(),
        Value::Decimal128(_) => order::equal(value, Value::Double(f64::NAN)),
        _ => false,
    }
}
