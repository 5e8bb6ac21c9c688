//! A `getMore` that waits for something to come, and has no thread meanwhile.
//!
//! Its cursor stays checked out, and its operation among those that run, so that both can be
//! killed: that wakes it.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::cursors::{Cursors, OpenCursor};
use crate::operations::{Operation, Operations};
use crate::waiting::{Waiting, WatchTarget};

/// See the module.
pub struct Parked {
    /// The command, which is woken when there is something to look at.
    pub operation: Arc<Operation>,
    /// The time when it ends with nothing.
    pub until: Instant,
    /// The time since when it waits.
    pub since: Instant,
    /// The writes it waits for.
    pub place: WatchTarget,
    /// The cursor's id.
    pub id: i64,
    /// The cursor: what it reads from is for one thread at a time.
    pub cursor: Mutex<Box<OpenCursor>>,
}

/// Lets a command wait without a thread: handed to its handler.
#[derive(Default)]
pub struct Parking {
    /// Whether its caller goes on with it later.
    pub may_park: bool,
    /// It has waited, and goes on.
    resumed: RefCell<Option<Parked>>,
    /// It is to wait.
    parked: RefCell<Option<Parked>>,
}

impl Parking {
    /// Makes one for a command that may wait so, or goes on after it did.
    pub fn new(resumed: Option<Parked>) -> Parking {
        Parking { may_park: true, resumed: RefCell::new(resumed), parked: RefCell::new(None) }
    }

    /// The operation that goes on, and since when it has waited.
    pub fn resumed(&self) -> Option<(Arc<Operation>, Instant)> {
        self.resumed.borrow().as_ref().map(|it| (Arc::clone(&it.operation), it.since))
    }

    /// Takes what goes on.
    pub fn take_resumed(&self) -> Option<Parked> {
        self.resumed.take()
    }

    /// Has it wait once its handler has returned.
    pub fn park(&self, parked: Parked) {
        self.parked.replace(Some(parked));
    }

    /// Whether it is to wait.
    pub fn is_parked(&self) -> bool {
        self.parked.borrow().is_some()
    }

    /// Takes what is to wait.
    pub fn take_parked(&self) -> Option<Parked> {
        self.parked.take()
    }
}

impl Parked {
    /// Takes the cursor out.
    pub fn into_cursor(self) -> Box<OpenCursor> {
        self.cursor.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it: no client waits for it any more. The cursor is closed.
    pub fn abandon(self, waiting: &Waiting, operations: &Operations, cursors: &Cursors) {
        waiting.leave(&self.place, &self.operation);
        drop(operations.resume(&self.operation, self.since));
        drop(cursors.resume(self.id, self.into_cursor()));
    }
}
