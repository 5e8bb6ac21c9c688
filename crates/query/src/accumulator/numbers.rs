//! `$sum`, `$avg`, `$count`: what is no number doesn't count in the first two.

use frond_doc::{Decimal128, Value};

use super::state::{State, Window, not_divided, of_same_kind};
use crate::error::QueryError;
use crate::expression::Evaluated;
use crate::number::any_type::{Exactness, Number, Sum};

fn number(value: &Evaluated<'_>) -> Option<Number> {
    value.value().and_then(Number::of)
}

/// A sum, parts of which may be added up apart.
#[derive(Default)]
struct Summed {
    sum: Sum,
    /// Whether the order of a part's numbers matters.
    exactness: Option<Exactness>,
    /// A part's decimals, whose order matters: they are added up when nothing comes before them.
    decimals: Vec<Decimal128>,
}

impl Summed {
    fn of_part() -> Summed {
        Summed { exactness: Some(Exactness::default()), ..Summed::default() }
    }

    /// Adds a number; returns how many bytes that took.
    fn add(&mut self, value: &Evaluated<'_>) -> Result<usize, QueryError> {
        let Some(number) = number(value) else { return Ok(0) };
        if let Some(exactness) = &mut self.exactness {
            if let Number::Decimal(number) = number {
                self.decimals.push(number);
                // A list has room for up to twice as much.
                return Ok(2 * size_of::<Decimal128>());
            }
            if !Sum::note(exactness, number) {
                return Err(not_divided());
            }
        }
        self.sum.add(number);
        Ok(0)
    }

    fn settle(&mut self) {
        for number in std::mem::take(&mut self.decimals) {
            self.sum.add(Number::Decimal(number));
        }
    }

    fn append(&mut self, next: Summed) -> Result<(), QueryError> {
        let both = self.exactness.as_mut().zip(next.exactness);
        let is_exact = both.is_some_and(|(own, next)| own.append(next));
        self.sum.append(&next.sum);
        next.decimals.into_iter().for_each(|number| self.sum.add(Number::Decimal(number)));
        let is_exact = is_exact && self.exactness.is_some_and(|it| self.sum.is_exact(it));
        if is_exact { Ok(()) } else { Err(not_divided()) }
    }
}

/// `$sum`
#[derive(Default)]
pub(super) struct Total(Summed);

impl Total {
    /// The total of a part of a group.
    pub(super) fn of_part() -> Total {
        Total(Summed::of_part())
    }

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
        self.0.add(&value)
    }

    fn append(&mut self, next: Box<dyn State>) -> Result<(), QueryError> {
        self.0.append(of_same_kind::<Self>(next).0)
    }

    fn settle(&mut self) {
        self.0.settle();
    }

    fn finish(mut self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.settle();
        self.current()
    }
}

impl Window for Total {
    fn remove(&mut self, value: Evaluated<'_>) {
        if let Some(number) = number(&value) {
            self.0.sum.remove(number);
        }
    }

    fn current(&self) -> Result<Evaluated<'static>, QueryError> {
        Ok(self.0.sum.total().into())
    }
}

/// `$avg`
#[derive(Default)]
pub(super) struct Avg(Summed);

impl Avg {
    /// The average of a part of a group.
    pub(super) fn of_part() -> Avg {
        Avg(Summed::of_part())
    }
}

impl State for Avg {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        self.0.add(&value)
    }

    fn append(&mut self, next: Box<dyn State>) -> Result<(), QueryError> {
        self.0.append(of_same_kind::<Self>(next).0)
    }

    fn settle(&mut self) {
        self.0.settle();
    }

    fn finish(mut self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.settle();
        self.current()
    }
}

impl Window for Avg {
    fn remove(&mut self, value: Evaluated<'_>) {
        if let Some(number) = number(&value) {
            self.0.sum.remove(number);
        }
    }

    fn current(&self) -> Result<Evaluated<'static>, QueryError> {
        Ok(self.0.sum.mean().map_or(Evaluated::NULL, Evaluated::from))
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

    fn append(&mut self, next: Box<dyn State>) -> Result<(), QueryError> {
        self.0 += of_same_kind::<Self>(next).0;
        Ok(())
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
