//! `$percentile` and `$median`, by the method that MongoDB calls approximate.
//!
//! A group's numbers are all kept, and the answer exact, up to [`EXACT_COUNT_MAX`]; more are
//! gathered in a [`Digest`], whose size doesn't grow. The order of the numbers decides what is in
//! it, so a part of a group keeps all of them until nothing comes before them.

use super::digest::Digest;
use super::state::{State, Window, of_same_kind};
use crate::error::QueryError;
use crate::expression::Evaluated;
use crate::expression::percentile::{Sorted, answer, number};

/// The number of numbers of a group that are kept.
const EXACT_COUNT_MAX: usize = 65_536;

/// `$percentile` or `$median` of a group.
pub(super) struct Numbers {
    /// `None` for `$median`.
    percentiles: Option<Vec<f64>>,
    /// The numbers, until there are too many.
    numbers: Vec<f64>,
    digest: Option<Box<Digest>>,
    is_part: bool,
}

impl Numbers {
    pub(super) fn new(percentiles: Option<Vec<f64>>) -> Numbers {
        Numbers { percentiles, numbers: Vec::new(), digest: None, is_part: false }
    }

    /// The numbers of a part of a group.
    pub(super) fn of_part(percentiles: Option<Vec<f64>>) -> Numbers {
        Numbers { is_part: true, ..Numbers::new(percentiles) }
    }

    fn add_number(&mut self, number: f64) -> usize {
        if let Some(digest) = &mut self.digest {
            digest.add(number);
            return 0;
        }
        self.numbers.push(number);
        if EXACT_COUNT_MAX < self.numbers.len() && !self.is_part {
            let mut digest = Box::<Digest>::default();
            std::mem::take(&mut self.numbers).into_iter().for_each(|number| digest.add(number));
            self.digest = Some(digest);
        }
        size_of::<f64>()
    }
}

impl State for Numbers {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        Ok(value.value().and_then(number).map_or(0, |number| self.add_number(number)))
    }

    fn append(&mut self, next: Box<dyn State>) -> Result<(), QueryError> {
        for number in of_same_kind::<Self>(next).numbers {
            self.add_number(number);
        }
        Ok(())
    }

    fn settle(&mut self) {
        if std::mem::take(&mut self.is_part) {
            for number in std::mem::take(&mut self.numbers) {
                self.add_number(number);
            }
        }
    }

    fn finish(mut self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.settle();
        if let Some(mut digest) = self.digest {
            return answer(self.percentiles.as_deref(), |percentile| digest.at(percentile));
        }
        let mut numbers = self.numbers;
        numbers.sort_unstable_by(f64::total_cmp);
        Sorted(numbers).at(self.percentiles.as_deref())
    }
}

/// `$percentile` or `$median` of a window: its numbers are always in order.
pub(super) struct WindowNumbers {
    /// `None` for `$median`.
    percentiles: Option<Vec<f64>>,
    numbers: Sorted,
}

impl WindowNumbers {
    pub(super) fn new(percentiles: Option<Vec<f64>>) -> WindowNumbers {
        WindowNumbers { percentiles, numbers: Sorted(Vec::new()) }
    }

    /// Returns where a number is, or would be.
    fn position(&self, number: f64) -> Result<usize, usize> {
        self.numbers.0.binary_search_by(|other| other.total_cmp(&number))
    }
}

impl State for WindowNumbers {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let Some(number) = value.value().and_then(number) else { return Ok(0) };
        let position = self.position(number).unwrap_or_else(|position| position);
        self.numbers.0.insert(position, number);
        Ok(size_of::<f64>())
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.current()
    }
}

impl Window for WindowNumbers {
    fn remove(&mut self, value: Evaluated<'_>) {
        let Some(number) = value.value().and_then(number) else { return };
        if let Ok(position) = self.position(number) {
            self.numbers.0.remove(position);
        }
    }

    fn current(&self) -> Result<Evaluated<'static>, QueryError> {
        self.numbers.at(self.percentiles.as_deref())
    }
}
