//! The values that `$densify` wants to be there: from a low end by steps.
//!
//! A step goes on from the value before, as `$add` and `$dateAdd` do: a month after January 31 is
//! February 28, and the next one March 28. Sums of doubles are rounded at each step.

use frond_doc::{Value, ValueBuf, order};

use crate::number;
use crate::pipeline::time_unit::TimeUnit;

/// The step from a value of the grid to another one.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Number(ValueBuf),
    Time(i64, TimeUnit),
}

/// The values between which there are no gaps.
#[derive(Clone, Debug)]
pub(super) enum Range {
    /// Those of all documents, in each partition.
    Full,
    /// Those of the partition.
    Partition,
    /// From the first to before the second.
    Explicit(ValueBuf, ValueBuf),
}

impl Step {
    /// The grid's value after one; `None` where numbers or dates end.
    pub(super) fn after(&self, point: Value<'_>) -> Option<ValueBuf> {
        match (self, point) {
            (Step::Number(step), point) => {
                number::add(point, step.as_value()).map(|next| next.to_buf())
            }
            (Step::Time(count, unit), Value::DateTime(date)) => {
                unit.add(date, *count).map(|date| ValueBuf::from(Value::DateTime(date)))
            }
            _ => None,
        }
    }

    /// Returns where a grid begins that is entered from the step before `low`, as MongoDB does
    /// where documents lead to it: a month before March 31 is February 28, and a month later March
    /// 28.
    pub(super) fn into(&self, low: Value<'_>) -> Option<ValueBuf> {
        let back = match self {
            Step::Number(step) => {
                Step::Number(number::multiply(step.as_value(), Value::Int32(-1))?.to_buf())
            }
            Step::Time(count, unit) => Step::Time(count.checked_neg()?, *unit),
        };
        self.after(back.after(low)?.as_value())
    }
}

/// The place of a partition in its grid.
#[derive(Debug)]
pub(super) struct Grid {
    /// The first value that no document was seen at or made for; `None` at the end of numbers.
    pub(super) next: Option<ValueBuf>,
    /// The last value of the partition, if all lie below explicit bounds.
    pub(super) below: Option<ValueBuf>,
}

impl Grid {
    /// The grid of the `position`th partition, whose first document has `value`.
    pub(super) fn new(
        range: &Range,
        step: &Step,
        low: Value<'_>,
        value: Value<'_>,
        position: usize,
    ) -> Grid {
        let next = match range {
            Range::Partition => Some(value.to_buf()),
            Range::Full if position == 0 => Some(low.to_buf()),
            Range::Explicit(low, _) if order::compare(value, low.as_value()).is_eq() => {
                Some(low.clone())
            }
            Range::Explicit(low, _) => step.into(low.as_value()),
            Range::Full => step.into(low),
        };
        Grid { next, below: None }
    }

    /// Moves to the next value; returns this one.
    pub(super) fn advance(&mut self, step: &Step) -> Option<ValueBuf> {
        let point = self.next.take()?;
        self.next = step.after(point.as_value());
        Some(point)
    }

    /// Goes to where the partition's end is filled from: MongoDB steps on from a partition's
    /// last value below explicit bounds.
    pub(super) fn begin_end(&mut self, range: &Range, step: &Step) {
        let (Range::Explicit(low, _), Some(below)) = (range, self.below.take()) else { return };
        self.next = step.after(below.as_value()).map(|next| {
            let is_below = order::compare(next.as_value(), low.as_value()).is_lt();
            if is_below { low.clone() } else { next }
        });
    }
}
