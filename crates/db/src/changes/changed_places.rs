//! Which collections what is told concerns: for what wakes the streams that wait.

use std::time::Duration;

use frond_engine::Sequence;

use crate::event::EventKind;
use crate::frond::Frond;
use crate::tail::{Next, TailReader};

/// Follows what is told, and notes no more than where.
pub struct ChangedPlaces {
    frond: Frond,
    tail: TailReader,
    after: Sequence,
}

/// Where something happened.
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
    /// Follows what is told from now on.
    pub fn told_places(&self) -> ChangedPlaces {
        let after = self.engine().horizon();
        ChangedPlaces { frond: self.clone(), tail: self.tail().reader(), after }
    }

    /// Ends the waits of all that follow what is told, once.
    pub fn end_waits(&self) {
        self.engine().end_horizon_waits();
    }
}

impl ChangedPlaces {
    /// What is given to [`ChangedPlaces::wait`]: to be asked before it is looked whether to wait.
    pub fn mark(&self) -> u64 {
        self.frond.engine().horizon_waits_ended()
    }

    /// Waits until something was written since, for so long at most, and until waits are ended;
    /// tells whether it was.
    pub fn wait(&self, at_most: Duration, mark: u64) -> bool {
        self.frond.engine().await_horizon_unless(self.after, at_most, mark)
    }

    /// Has `touch` told of each place that what was told since concerns; `None`: of all, since that
    /// can't be read. Tells whether anything was written.
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
