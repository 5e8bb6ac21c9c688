//! The collections that a transaction's events concern: to wake the streams that wait.

use std::time::Duration;

use frond_engine::Sequence;

use crate::event::EventKind;
use crate::frond::Frond;
use crate::tail::{Next, TailReader};

/// Follows the recorded events, and notes no more than where they were.
pub struct ChangedPlaces {
    frond: Frond,
    tail: TailReader,
    after: Sequence,
}

/// The place of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TouchedPlace<'a> {
    /// The database, without its branch.
    pub database: &'a str,
    /// The branch.
    pub branch: &'a str,
    /// The collection; `None`: it may concern any.
    pub collection: Option<&'a str>,
}

impl Frond {
    /// Follows the events that are recorded from now on.
    pub fn changed_places(&self) -> ChangedPlaces {
        let after = self.engine().horizon();
        ChangedPlaces { frond: self.clone(), tail: self.tail().reader(), after }
    }

    /// Ends the waits of all that follow the events, once.
    pub fn end_waits(&self) {
        self.engine().end_horizon_waits();
    }
}

impl ChangedPlaces {
    /// Returns a mark for [`ChangedPlaces::wait`]; it must be taken before looking whether to wait.
    pub fn mark(&self) -> u64 {
        self.frond.engine().horizon_waits_ended()
    }

    /// Waits until something was written since, for so long at most, and until waits are ended;
    /// returns whether it was.
    pub fn wait(&self, at_most: Duration, mark: u64) -> bool {
        self.frond.engine().await_horizon_unless(self.after, at_most, mark)
    }

    /// Calls `touch` with each place that the events recorded since concern; `None`: with all,
    /// since they can't be read. Returns whether anything was written.
    pub fn advance(&mut self, touch: &mut dyn FnMut(Option<TouchedPlace<'_>>)) -> bool {
        let before = self.after;
        let end = self.frond.engine().horizon();
        if !self.frond.engine().records_events() {
            touch(None);
            self.after = end;
        }
        while self.after < end {
            match self.tail.next(self.frond.engine(), self.after) {
                Ok(Next::Nothing(after)) => self.after = after.max(self.after),
                Ok(Next::Record(record)) => {
                    for event in &record.events {
                        let is_of_all = event.scope.collection.is_empty()
                            || matches!(event.kind, EventKind::Rename | EventKind::Rewritten);
                        touch(Some(TouchedPlace {
                            database: &event.scope.database,
                            branch: &event.scope.branch,
                            collection: (!is_of_all).then_some(&event.scope.collection),
                        }));
                    }
                    self.after = record.sequence;
                }
                Ok(Next::Behind) | Err(_) => {
                    touch(None);
                    self.after = end;
                }
            }
        }
        before < self.after
    }
}
