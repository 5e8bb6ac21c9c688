//! `$percentile` and `$median`, by the method that MongoDB calls approximate.
//!
//! A group's numbers are all kept, and the answer exact, up to [`EXACT_COUNT_MAX`]; more are
//! gathered in a [`Digest`], whose size doesn't grow.

use super::digest::Digest;
use super::state::{State, Window};
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
}

impl Numbers {
    pub(super) fn new(percentiles: Option<Vec<f64>>) -> Numbers {
        Numbers { percentiles, numbers: Vec::new(), digest: None }
    }
}

impl State for Numbers {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let Some(number) = value.value().and_then(number) else { return Ok(0) };
        if let Some(digest) = &mut self.digest {
            digest.add(number);
            return Ok(0);
        }
        self.numbers.push(number);
        if EXACT_COUNT_MAX < self.numbers.len() {
            let mut digest = Box::<Digest>::default();
            std::mem::take(&mut self.numbers).into_iter().for_each(|number| digest.add(number));
            self.digest = Some(digest);
        }
        Ok(size_of::<f64>())
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
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
