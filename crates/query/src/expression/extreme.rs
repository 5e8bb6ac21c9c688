//! The least and the greatest of values, by MongoDB's order. Null and missing don't count.

use std::cmp::Ordering;

use frond_doc::Value;

use super::scope::Variables;
use crate::error::QueryError;
use crate::memory::sort_by;

/// The least or the greatest values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extreme {
    Min,
    Max,
}

impl Extreme {
    /// Returns how a better value compares with a worse one.
    pub(crate) fn better(self) -> Ordering {
        match self {
            Extreme::Min => Ordering::Less,
            Extreme::Max => Ordering::Greater,
        }
    }

    /// The best `count_max` of values, the best one first.
    pub(crate) fn several<'v>(
        self,
        values: impl Iterator<Item = Value<'v>>,
        count_max: usize,
        variables: &Variables,
    ) -> Result<Vec<Value<'v>>, QueryError> {
        let (by, memory) = (variables.collation(), variables.memory());
        let is_there = |value: &Value<'_>| !matches!(value, Value::Null | Value::Undefined);
        let mut values: Vec<Value<'v>> = values.filter(is_there).collect();
        match self {
            Extreme::Min => sort_by(&mut values, memory, |a, b| by.compare(*a, *b))?,
            Extreme::Max => sort_by(&mut values, memory, |a, b| by.compare(*b, *a))?,
        }
        values.truncate(count_max);
        Ok(values)
    }
}
