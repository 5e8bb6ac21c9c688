//! The values of a `$addToSet` or `$pullAll`, looked up by binary search: with MongoDB's equality
//! (1 and 1.0 are one value, -0 is 0, NaN is NaN, the order of a document's fields counts), by a
//! collation.

use frond_doc::{Value, ValueBuf};

use crate::collation::Collation;
use crate::error::QueryError;
use crate::memory::{Charge, RequestMemory, bytes_of};

/// Units of work of looking one value up.
const LOOKUP_UNITS: usize = 16;

/// Values as they came, and their order.
///
/// *Invariants*: `sorted` holds the first position of each value, in the strictly ascending order
/// of `collation`.
#[derive(Clone, Debug)]
pub(super) struct ValueSet {
    values: Vec<ValueBuf>,
    sorted: Vec<usize>,
    collation: Collation,
}

impl ValueSet {
    pub(super) fn of(values: Vec<ValueBuf>) -> ValueSet {
        let mut set = ValueSet { values, sorted: Vec::new(), collation: Collation::SIMPLE };
        set.sort();
        set
    }

    /// Compares strings by `collation`.
    pub(super) fn collate(&mut self, collation: &Collation) {
        if *collation != self.collation {
            self.collation = collation.clone();
            self.sort();
        }
    }

    fn sort(&mut self) {
        let value = |position: &usize| self.values[*position].as_value();
        let mut sorted: Vec<usize> = (0..self.values.len()).collect();
        // Stable, so that of equal values the first stays.
        sorted.sort_by(|left, right| self.collation.compare(value(left), value(right)));
        sorted.dedup_by(|later, first| self.collation.equal(value(later), value(first)));
        self.sorted = sorted;
    }

    /// The values as they came.
    pub(super) fn values(&self) -> impl Iterator<Item = Value<'_>> {
        self.values.iter().map(ValueBuf::as_value)
    }

    /// Whether a value is one of them.
    pub(super) fn contains(&self, value: Value<'_>) -> bool {
        self.place(value).is_some()
    }

    fn place(&self, value: Value<'_>) -> Option<usize> {
        let compare = |known: &usize| self.collation.compare(self.values[*known].as_value(), value);
        self.sorted.binary_search_by(compare).ok()
    }

    /// Begins to be shown what is there already.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`.
    pub(super) fn missing(&self, memory: &RequestMemory) -> Result<Missing<'_>, QueryError> {
        let count = self.sorted.len();
        let _charge = memory.charge_of(count)?;
        Ok(Missing {
            set: self,
            is_matched: vec![false; count],
            count,
            memory: memory.clone(),
            _charge,
        })
    }
}

/// Counts looking `value` up as work.
///
/// # Errors
/// The error of the request, if it is to stop.
pub(super) fn count_lookup(value: Value<'_>, memory: &RequestMemory) -> Result<(), QueryError> {
    memory.work(LOOKUP_UNITS)?;
    memory.read(bytes_of(value))
}

/// The values of a `$addToSet` that weren't found in the array.
pub struct Missing<'s> {
    set: &'s ValueSet,
    /// For each in the set's order, whether it was struck out.
    is_matched: Vec<bool>,
    /// Those that weren't.
    count: usize,
    memory: RequestMemory,
    _charge: Charge,
}

impl<'s> Missing<'s> {
    /// Says that `value` is there; whether all of them are now.
    ///
    /// # Errors
    /// The error of the request, if it is to stop.
    pub fn strike_out(&mut self, value: Value<'_>) -> Result<bool, QueryError> {
        count_lookup(value, &self.memory)?;
        if let Some(place) = self.set.place(value)
            && !std::mem::replace(&mut self.is_matched[place], true)
        {
            self.count -= 1;
        }
        Ok(self.count == 0)
    }

    /// The values that weren't struck out, each once, as they came.
    pub fn into_values(self) -> impl Iterator<Item = Value<'s>> {
        let missing =
            self.set.sorted.iter().zip(&self.is_matched).filter(|(_, is_matched)| !**is_matched);
        let mut positions: Vec<usize> = missing.map(|(position, _)| *position).collect();
        positions.sort_unstable();
        let values = &self.set.values;
        positions.into_iter().map(|position| values[position].as_value())
    }
}
