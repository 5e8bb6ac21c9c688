//! `$sum`, `$avg`, `$count`: what is no number doesn't count in the first two.

use frond_doc::Value;

use super::{State, Window};
use crate::error::QueryError;
use crate::expression::Evaluated;
use crate::number::any_type::{Number, Sum};

fn number(value: &Evaluated<'_>) -> Option<Number> {
    value.value().and_then(Number::of)
}

/// `$sum`
#[derive(Default)]
pub(super) struct Total(Sum);

impl Total {
    /// The sum of `count` times `value`, if it doesn't depend on how it is added up.
    pub(super) fn times(value: Value<'_>, count: u64) -> Option<Evaluated<'static>> {
        let mut sum = Sum::default();
        let is_exact = match Number::of(value) {
            Some(number) => sum.add_times(number, count),
            None => true,
        };
        is_exact.then(|| sum.total().into())
    }
}

impl State for Total {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        if let Some(number) = number(&value) {
            self.0.add(number);
        }
        Ok(0)
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.current()
    }
}

impl Window for Total {
    fn remove(&mut self, value: Evaluated<'_>) {
        if let Some(number) = number(&value) {
            self.0.remove(number);
        }
    }

    fn current(&self) -> Result<Evaluated<'static>, QueryError> {
        Ok(self.0.total().into())
    }
}

/// `$avg`
#[derive(Default)]
pub(super) struct Avg(Sum);

impl State for Avg {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        if let Some(number) = number(&value) {
            self.0.add(number);
        }
        Ok(0)
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.current()
    }
}

impl Window for Avg {
    fn remove(&mut self, value: Evaluated<'_>) {
        if let Some(number) = number(&value) {
            self.0.remove(number);
        }
    }

    fn current(&self) -> Result<Evaluated<'static>, QueryError> {
        Ok(self.0.mean().map_or(Evaluated::NULL, Evaluated::from))
    }
}

/// `$count`
#[derive(Default)]
pub(super) struct Count(i64);

impl Count {
    /// The result over `count` documents.
    pub(super) fn of(count: u64) -> Evaluated<'static> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        i32::try_from(count).map_or_else(|_| count.into(), Evaluated::from)
    }
}

impl State for Count {
    fn add(&mut self, _: Evaluated<'_>) -> Result<usize, QueryError> {
        self.0 += 1;
        Ok(0)
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.current()
    }
}

impl Window for Count {
    fn remove(&mut self, _: Evaluated<'_>) {
        self.0 -= 1;
    }

    fn current(&self) -> Result<Evaluated<'static>, QueryError> {
        Ok(Count::of(self.0.unsigned_abs()))
    }
}
