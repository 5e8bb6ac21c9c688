//! `$first`, `$last`, `$firstN`, `$lastN`: by the order in which values come. A missing value
//! counts as null.

use std::collections::VecDeque;

use frond_doc::ValueBuf;

use super::state::{State, Window, array_of, cost, of_same_kind, replaced};
use crate::error::QueryError;
use crate::expression::Evaluated;

/// `$first` of a group.
#[derive(Default)]
pub(super) struct First(Option<ValueBuf>);

impl State for First {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        if self.0.is_some() {
            return Ok(0);
        }
        self.0 = Some(value.or_null().to_buf());
        Ok(cost(value.or_null()))
    }

    fn append(&mut self, next: Box<dyn State>) -> Result<(), QueryError> {
        let next = of_same_kind::<Self>(next).0;
        if self.0.is_none() {
            self.0 = next;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        Ok(self.0.map_or(Evaluated::NULL, Evaluated::kept))
    }
}

/// `$last` of a group.
#[derive(Default)]
pub(super) struct Last(Option<ValueBuf>);

impl State for Last {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let cost = replaced(self.0.as_ref().map(ValueBuf::as_value), value.or_null());
        self.0 = Some(value.or_null().to_buf());
        Ok(cost)
    }

    fn append(&mut self, next: Box<dyn State>) -> Result<(), QueryError> {
        let next = of_same_kind::<Self>(next).0;
        if next.is_some() {
            self.0 = next;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        Ok(self.0.map_or(Evaluated::NULL, Evaluated::kept))
    }
}

/// `$firstN` of a group.
pub(super) struct FirstN {
    count_max: usize,
    values: Vec<ValueBuf>,
}

impl FirstN {
    pub(super) fn new(count_max: usize) -> FirstN {
        FirstN { count_max, values: Vec::new() }
    }
}

impl State for FirstN {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        if self.count_max <= self.values.len() {
            return Ok(0);
        }
        self.values.push(value.or_null().to_buf());
        Ok(cost(value.or_null()))
    }

    fn append(&mut self, next: Box<dyn State>) -> Result<(), QueryError> {
        let lacking = self.count_max.saturating_sub(self.values.len());
        self.values.extend(of_same_kind::<Self>(next).values.into_iter().take(lacking));
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        array_of(&self.values)
    }
}

/// `$lastN` of a group.
pub(super) struct LastN {
    count_max: usize,
    values: VecDeque<ValueBuf>,
}

impl LastN {
    pub(super) fn new(count_max: usize) -> LastN {
        LastN { count_max, values: VecDeque::new() }
    }
}

impl State for LastN {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        let oldest =
            if self.count_max <= self.values.len() { self.values.pop_front() } else { None };
        self.values.push_back(value.or_null().to_buf());
        Ok(replaced(oldest.as_ref().map(ValueBuf::as_value), value.or_null()))
    }

    fn append(&mut self, next: Box<dyn State>) -> Result<(), QueryError> {
        self.values.extend(of_same_kind::<Self>(next).values);
        let more = self.values.len().saturating_sub(self.count_max);
        self.values.drain(..more);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        array_of(&self.values)
    }
}

/// An end of a window.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    First,
    Last,
}

/// `$first`, `$last` (no count), `$firstN`, `$lastN` of a window: all its values.
pub(super) struct WindowEnd {
    side: Side,
    count_max: Option<usize>,
    values: VecDeque<ValueBuf>,
}

impl WindowEnd {
    pub(super) fn new(side: Side, count_max: Option<usize>) -> WindowEnd {
        WindowEnd { side, count_max, values: VecDeque::new() }
    }
}

impl State for WindowEnd {
    fn add(&mut self, value: Evaluated<'_>) -> Result<usize, QueryError> {
        self.values.push_back(value.or_null().to_buf());
        Ok(cost(value.or_null()))
    }

    fn finish(self: Box<Self>) -> Result<Evaluated<'static>, QueryError> {
        self.current()
    }
}

impl Window for WindowEnd {
    fn remove(&mut self, _: Evaluated<'_>) {
        self.values.pop_front();
    }

    fn current(&self) -> Result<Evaluated<'static>, QueryError> {
        let Some(count_max) = self.count_max else {
            let end = match self.side {
                Side::First => self.values.front(),
                Side::Last => self.values.back(),
            };
            return Ok(
                end.map_or(Evaluated::NULL, |value| Evaluated::copy_uncounted(value.as_value()))
            );
        };
        let skipped = match self.side {
            Side::First => 0,
            Side::Last => self.values.len().saturating_sub(count_max),
        };
        array_of(self.values.iter().skip(skipped).take(count_max))
    }
}
