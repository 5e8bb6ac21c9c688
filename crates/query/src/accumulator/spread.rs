//! `$stdDevPop`, `$stdDevSamp`, `$covariancePop`, `$covarianceSamp`: what is no number, or no pair
//! of numbers, doesn't count.
//!
//! Taking a number back from a [`Spread`] would lose digits: what is left of a large number's
//! square is rounding. So a window never takes back. It keeps two stacks: the numbers that came
//! since the last turn with their spread, and for each number before that the spread of itself and
//! all younger ones before the turn. A number that leaves is the top of the second stack; when that
//! is empty, the first is turned over into it. The result merges the two spreads. That is a
//! constant number of steps a value.
//!
//! The order of the numbers decides how the result is rounded. So a part of a group keeps them, and
//! they are added once those of the part before are: the result is that of one thread, whatever the
//! parts are. To find them takes long, not to add them.

use frond_doc::Value;

use super::state::{State, Window, of_same_kind};
use crate::error::QueryError;
use crate::expression::Evaluated;
use crate::number::any_type::Number;
use crate::number::spread::Spread;

/// The measure that is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Deviation,
    Covariance,
}

/// The values that a spread is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Range {
    Group,
    /// Pairs leave it.
    Window,
    /// A part of a group, whose pairs are added when nothing comes before them.
    Part,
}

/// The spread of a group or a window.
pub(super) struct Spreading {
    measure: Measure,
    is_sample: bool,
    /// The spread of the pairs that came since the last turn.
    young: Spread,
    young_pairs: Vec<(f64, f64)>,
    /// The spreads of each older pair and all younger ones before the turn, the oldest last.
    old: Vec<Spread>,
    range: Range,
}

impl Spreading {
    /// The spread of a group, which keeps no pairs.
    pub(super) fn of_group(measure: Measure, is_sample: bool) -> Spreading {
        let range = Range::Group;
        Spreading {
            measure,
            is_sample,
            young: Spread::default(),
            young_pairs: Vec::new(),
            old: Vec::new(),
            range,
        }
    }

    /// The spread of a window.
    pub(super) fn of_window(measure: Measure, is_sample: bool) -> Spreading {
        Spreading { range: Range::Window, ..Spreading::of_group(measure, is_sample) }
    }

    /// The spread of a part of a group.
    pub(super) fn of_part(measure: Measure, is_sample: bool) -> Spreading {
        Spreading { range: Range::Part, ..Spreading::of_group(measure, is_sample) }
    }

    /// Returns the numbers that count of a value: a number twice, or the two numbers of an array.
    fn pair(&self, value: &Evaluated<'_>) -> Option<(f64, f64)> {
        let double = |value: Value<'_>| Number::of(value).map(Number::double);
        match (self.measure, value.value()?) {
            (Measure::Deviation, value) => double(value).map(|number| (number, number)),
            (Measure::Covariance, Value::Array(array)) => {
                let mut elements = array.iter();
                let pair = (double(elements.next()?)?, double(elements.next()?)?);
                elements.next().is_none().then_some(pair)
            }
            _ => None,
        }
    }
}

impl State for Spreading {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let Some((left, right)) = self.pair(&value) else { return Ok(0) };
        if self.range != Range::Part {
            self.young.add_pair(left, right);
        }
        if self.range == Range::Group {
            return Ok(0);
        }
        self.young_pairs.push((left, right));
        // A list has room for up to twice as much.
        let is_part = self.range == Range::Part;
        Ok(if is_part { 2 * size_of::<(f64, f64)>() } else { size_of::<Spread>() })
    }

    fn append(&mut self, next: Box<dyn State>) -> Result<(), QueryError> {
        for (left, right) in of_same_kind::<Self>(next).young_pairs {
            self.young.add_pair(left, right);
        }
        Ok(())
    }

    fn settle(&mut self) {
        if self.range == Range::Part {
            for (left, right) in std::mem::take(&mut self.young_pairs) {
                self.young.add_pair(left, right);
            }
        }
    }

    fn finish(mut self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.settle();
        self.current()
    }
}

impl Window for Spreading {
    fn remove(&mut self, value: Evaluated<'_>) {
        if self.pair(&value).is_none() {
            return;
        }
        if self.old.is_empty() {
            let mut spread = Spread::default();
            while let Some((left, right)) = self.young_pairs.pop() {
                spread.add_pair(left, right);
                self.old.push(spread);
            }
            self.young = Spread::default();
        }
        self.old.pop();
    }

    fn current(&self) -> Result<Evaluated<'static>, QueryError> {
        let spread = match self.old.last() {
            Some(old) => old.merge(&self.young),
            None => self.young,
        };
        let measured = match self.measure {
            Measure::Deviation => spread.deviation(self.is_sample),
            Measure::Covariance => spread.covariance(self.is_sample),
        };
        Ok(measured.map_or(Evaluated::NULL, Evaluated::from))
    }
}
