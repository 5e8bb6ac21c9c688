//! `$sum`, `$avg`, `$count`: what is no number doesn't count in the first two.

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
        Ok(i32::try_from(self.0).map_or_else(|_| self.0.into(), Evaluated::from))
    }
}
