//! `$top`, `$topN`, `$bottom`, `$bottomN`: by a sort pattern of their own.
//!
//! The input is an array of a sort key's bytes and the value, made by [`entry`]. Of entries with
//! equal keys a group keeps those that came first.

use std::collections::BTreeMap;

use bytes::Bytes;
use frond_doc::{Binary, Value, ValueBuf};

use super::extremes::remove_oldest;
use super::state::{State, Window, array_of, cost, of_same_kind};
use crate::error::QueryError;
use crate::expression::{Elements, Evaluated};

/// Makes an entry of the key and the value.
pub(super) fn entry(key: &[u8], value: Value<'_>) -> Result<Evaluated<'static>, QueryError> {
    let mut elements = Elements::uncounted();
    elements.push(Value::Binary(Binary { subtype: 0, bytes: key }))?;
    elements.push(value)?;
    elements.finish()
}

/// The two parts of an entry.
fn parts<'v>(entry: &'v Evaluated<'_>) -> (Bytes, Value<'v>) {
    let Some(Value::Array(array)) = entry.value() else { return (Bytes::new(), Value::Null) };
    let mut elements = array.iter();
    let key = match elements.next() {
        Some(Value::Binary(key)) => Bytes::copy_from_slice(key.bytes),
        _ => Bytes::new(),
    };
    (key, elements.next().unwrap_or(Value::Null))
}

/// An end of the order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Top,
    Bottom,
}

type Ordered = BTreeMap<(Bytes, u64), ValueBuf>;

/// The values at one end of `values`, in the order of the sort pattern.
fn at_end(
    values: &Ordered,
    end: End,
    count_max: Option<usize>,
) -> Result<Evaluated<'static>, QueryError> {
    let Some(count_max) = count_max else {
        let best = match end {
            End::Top => values.values().next(),
            End::Bottom => values.values().next_back(),
        };
        return Ok(
            best.map_or(Evaluated::NULL, |value| Evaluated::copy_uncounted(value.as_value()))
        );
    };
    let skipped = match end {
        End::Top => 0,
        End::Bottom => values.len().saturating_sub(count_max),
    };
    array_of(values.values().skip(skipped).take(count_max))
}

/// The best values of a group; without a count, one value that stands by itself.
pub(super) struct Best {
    end: End,
    count_max: Option<usize>,
    next: u64,
    values: Ordered,
}

impl Best {
    pub(super) fn new(end: End, count_max: Option<usize>) -> Best {
        Best { end, count_max, next: 0, values: Ordered::new() }
    }
}

impl Best {
    fn take(&mut self, key: Bytes, value: Value<'_>) -> usize {
        let mut bytes = key.len() + cost(value);
        if self.count_max.unwrap_or(1) <= self.values.len() {
            let (worst, is_better) = match self.end {
                End::Top => (self.values.keys().next_back(), std::cmp::Ordering::Less),
                End::Bottom => (self.values.keys().next(), std::cmp::Ordering::Greater),
            };
            let Some(worst) = worst.cloned() else { return 0 };
            if key.cmp(&worst.0) != is_better {
                return 0;
            }
            if let Some(old) = self.values.remove(&worst) {
                bytes = bytes.saturating_sub(worst.0.len() + cost(old.as_value()));
            }
        }
        self.values.insert((key, self.next), value.to_buf());
        self.next += 1;
        bytes
    }
}

impl State for Best {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let (key, value) = parts(&value);
        Ok(self.take(key, value))
    }

    fn append(&mut self, next: Box<dyn State>) -> Result<(), QueryError> {
        // As with the least values: only at the top is what came first kept.
        debug_assert!(self.end == End::Top);
        let mut values: Vec<_> = of_same_kind::<Self>(next).values.into_iter().collect();
        values.sort_by_key(|((_, place), _)| *place);
        for ((key, _), value) in values {
            self.take(key, value.as_value());
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        at_end(&self.values, self.end, self.count_max)
    }
}

/// The best values of a window: all its values.
pub(super) struct WindowBest {
    end: End,
    count_max: Option<usize>,
    next: u64,
    values: Ordered,
}

impl WindowBest {
    pub(super) fn new(end: End, count_max: Option<usize>) -> WindowBest {
        WindowBest { end, count_max, next: 0, values: Ordered::new() }
    }
}

impl State for WindowBest {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let (key, value) = parts(&value);
        let bytes = key.len() + cost(value);
        self.values.insert((key, self.next), value.to_buf());
        self.next += 1;
        Ok(bytes)
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.current()
    }
}

impl Window for WindowBest {
    fn remove(&mut self, value: Evaluated<'_>) {
        let (key, _) = parts(&value);
        remove_oldest(&mut self.values, key);
    }

    fn current(&self) -> Result<Evaluated<'static>, QueryError> {
        at_end(&self.values, self.end, self.count_max)
    }
}
