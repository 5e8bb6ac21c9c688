//! `$min`, `$max`, `$minN`, `$maxN`: by MongoDB's order of values. Null and missing don't count. Of
//! equal values those that came first are kept.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use bytes::Bytes;
use frond_doc::{Value, ValueBuf};

use super::state::{State, Window, array_of, cost, of_same_kind, replaced};
use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::{Evaluated, Extreme};

/// `$min` or `$max` of a group.
pub(super) struct One {
    extreme: Extreme,
    collation: Collation,
    best: Option<Evaluated<'static>>,
}

impl One {
    pub(super) fn new(extreme: Extreme, collation: &Collation) -> One {
        One { extreme, collation: collation.clone(), best: None }
    }

    /// Most values are numbers of one type.
    #[inline]
    fn compare(&self, left: Value<'_>, right: Value<'_>) -> Ordering {
        match (left, right) {
            (Value::Int32(left), Value::Int32(right)) => left.cmp(&right),
            (Value::Double(left), Value::Double(right)) if left < right => Ordering::Less,
            (Value::Double(left), Value::Double(right)) if left > right => Ordering::Greater,
            _ => self.collation.compare(left, right),
        }
    }
}

impl State for One {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        if value.is_nullish() {
            return Ok(0);
        }
        let best = self.best.as_ref().and_then(Evaluated::value);
        let new = value.or_null();
        if best.is_some_and(|best| self.compare(new, best) != self.extreme.better()) {
            return Ok(0);
        }
        let cost = replaced(best, new);
        self.best = Some(value.detach_uncounted());
        Ok(cost)
    }

    fn append(&mut self, next: Box<dyn State>) -> Result<(), QueryError> {
        let next = of_same_kind::<Self>(next).best;
        next.map_or(Ok(()), |best| self.add(best).map(drop))
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        Ok(self.best.unwrap_or(Evaluated::NULL))
    }
}

/// Values in their order; the second part of a key is the order in which they came.
type Ordered = BTreeMap<(Bytes, u64), ValueBuf>;

/// `$minN` or `$maxN` of a group: never more than `n` values.
pub(super) struct Several {
    extreme: Extreme,
    collation: Collation,
    count_max: usize,
    next: u64,
    values: Ordered,
}

impl Several {
    pub(super) fn new(extreme: Extreme, count_max: usize, collation: &Collation) -> Several {
        let collation = collation.clone();
        Several { extreme, collation, count_max, next: 0, values: Ordered::new() }
    }

    /// The value that goes when a better one comes.
    fn worst(&self) -> Option<&(Bytes, u64)> {
        match self.extreme {
            Extreme::Min => self.values.keys().next_back(),
            Extreme::Max => self.values.keys().next(),
        }
    }
}

impl State for Several {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        if value.is_nullish() {
            return Ok(0);
        }
        let key = self.collation.key_of(value.or_null());
        let mut bytes = key.len() + cost(value.or_null());
        if self.count_max <= self.values.len() {
            let Some(worst) = self.worst().cloned() else { return Ok(0) };
            if key.cmp(&worst.0) != self.extreme.better() {
                return Ok(0);
            }
            if let Some(old) = self.values.remove(&worst) {
                bytes = bytes.saturating_sub(worst.0.len() + cost(old.as_value()));
            }
        }
        self.values.extend(value.into_buf().map(|value| ((key, self.next), value)));
        self.next += 1;
        Ok(bytes)
    }

    fn append(&mut self, next: Box<dyn State>) -> Result<(), QueryError> {
        // The one of equal values that came first is kept: only so does it not matter where the
        // parts end. Of the greatest it is the one that came last.
        debug_assert_eq!(self.extreme, Extreme::Min);
        let mut values: Vec<_> = of_same_kind::<Self>(next).values.into_iter().collect();
        values.sort_by_key(|((_, place), _)| *place);
        for (_, value) in values {
            self.add(Evaluated::kept(value))?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        match self.extreme {
            Extreme::Min => array_of(self.values.values()),
            Extreme::Max => array_of(self.values.values().rev()),
        }
    }
}

/// `$min`, `$max` (no count), `$minN`, `$maxN` of a window: all its values.
pub(super) struct WindowExtreme {
    extreme: Extreme,
    collation: Collation,
    count_max: Option<usize>,
    next: u64,
    values: Ordered,
}

impl WindowExtreme {
    pub(super) fn new(
        extreme: Extreme,
        count_max: Option<usize>,
        collation: &Collation,
    ) -> WindowExtreme {
        let collation = collation.clone();
        WindowExtreme { extreme, collation, count_max, next: 0, values: Ordered::new() }
    }
}

impl State for WindowExtreme {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        if value.is_nullish() {
            return Ok(0);
        }
        let key = self.collation.key_of(value.or_null());
        let bytes = key.len() + cost(value.or_null());
        self.values.extend(value.into_buf().map(|value| ((key, self.next), value)));
        self.next += 1;
        Ok(bytes)
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.current()
    }
}

impl Window for WindowExtreme {
    fn remove(&mut self, value: Evaluated<'_>) {
        if value.is_nullish() {
            return;
        }
        let key = self.collation.key_of(value.or_null());
        remove_oldest(&mut self.values, key);
    }

    fn current(&self) -> Result<Evaluated<'static>, QueryError> {
        let Some(count_max) = self.count_max else {
            let best = match self.extreme {
                Extreme::Min => self.values.values().next(),
                Extreme::Max => self.values.values().next_back(),
            };
            return Ok(
                best.map_or(Evaluated::NULL, |value| Evaluated::copy_uncounted(value.as_value()))
            );
        };
        match self.extreme {
            Extreme::Min => array_of(self.values.values().take(count_max)),
            Extreme::Max => array_of(self.values.values().rev().take(count_max)),
        }
    }
}

/// Removes the entry of `key` that came first.
pub(super) fn remove_oldest(values: &mut Ordered, key: Bytes) {
    let oldest = values.range((key.clone(), 0)..).next().map(|(oldest, _)| oldest.clone());
    if let Some(oldest) = oldest.filter(|oldest| oldest.0 == key) {
        values.remove(&oldest);
    }
}
