//! Wakes a `getMore` that waits for a write: without a thread each, and without polling.
//!
//! 1. A `getMore` that finds nothing *enters* with the place that it watches, looks once more, and
//!    gives its thread back ([`crate::cursors::Parked`]).
//! 2. One thread follows the events of transactions. For each it looks up the `getMore`s that wait
//!    for that place, and wakes those. Where none waits it sleeps, and reads nothing.
//! 3. Every write wakes those whose place has no events: one in `local`, any where the log isn't
//!    kept.
//!
//! *Nothing is missed*: it follows from what was durable when the first one entered. Whatever comes
//! after that finds the waiting in the table, or was there when they looked for the second time.
//!
//! *Locks*: the table's own, held for a few look-ups; none other is taken meanwhile.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use frond_db::{ChangedPlaces, Frond, TouchedPlace};

use crate::operations::Operation;

/// The thread sees after so long that it waits for nothing any more; it is woken before.
const LONG: Duration = Duration::from_secs(600);

/// The writes that are waited for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WatchTarget {
    /// A collection of a branch of a database.
    Collection(String, String, String),
    /// All of a branch of a database.
    Branch(String, String),
    /// Any event.
    All,
    /// Writes of which no events are recorded: any write may be one.
    Unrecorded,
}

/// The operations that wait, by their ids.
type Operations = HashMap<i32, Arc<Operation>>;

/// See the module.
#[derive(Default)]
pub struct Waiting {
    table: Mutex<Table>,
    changed: Condvar,
}

/// *Invariant*: no list is empty.
#[derive(Default)]
struct Table {
    by_branch: HashMap<(String, String), OfBranch>,
    all: Operations,
    unrecorded: Operations,
    count: usize,
    /// The places from where on the thread has to follow.
    from: Option<ChangedPlaces>,
    is_closed: bool,
}

#[derive(Default)]
struct OfBranch {
    all: Operations,
    by_collection: HashMap<String, Operations>,
}

impl Waiting {
    /// Enters an operation: it is woken for what is written from now on.
    pub fn enter(&self, frond: &Frond, place: &WatchTarget, operation: &Arc<Operation>) {
        let mut table = self.table();
        let is_first = table.count == 0;
        if is_first {
            table.from = Some(frond.changed_places());
        }
        table.count += 1;
        table.list_of(place).insert(operation.id, Arc::clone(operation));
        drop(table);
        if is_first {
            self.changed.notify_all();
        }
    }

    /// Takes an operation out.
    pub fn leave(&self, place: &WatchTarget, operation: &Operation) {
        self.table().remove(place, operation.id);
    }

    /// Returns the number of operations that wait.
    pub fn count(&self) -> usize {
        self.table().count
    }

    /// Wakes waiting operations, until it is closed: the thread's work.
    pub fn run(&self) {
        while let Some(mut places) = self.next() {
            loop {
                // Read first: whatever ends this after the look below ends the wait, too.
                let mark = places.mark();
                if !self.is_waited_for() {
                    break;
                }
                if places.advance(&mut |touched| self.touch(touched)) {
                    wake(&self.table().unrecorded);
                }
                places.wait(LONG, mark);
            }
        }
    }

    /// Ends that.
    pub fn close(&self, frond: &Frond) {
        self.table().is_closed = true;
        self.changed.notify_all();
        frond.end_waits();
    }

    fn is_waited_for(&self) -> bool {
        let table = self.table();
        0 < table.count && !table.is_closed
    }

    /// Waits for the first that waits; `None` if it is closed.
    fn next(&self) -> Option<ChangedPlaces> {
        let mut table = self.table();
        loop {
            if table.is_closed {
                return None;
            }
            if let Some(places) = table.from.take().filter(|_| 0 < table.count) {
                return Some(places);
            }
            table = self.changed.wait(table).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn touch(&self, touched: Option<TouchedPlace<'_>>) {
        let table = self.table();
        wake(&table.all);
        let Some(touched) = touched else {
            table.by_branch.values().for_each(OfBranch::wake_all);
            return;
        };
        let key = (touched.database.to_owned(), touched.branch.to_owned());
        let Some(branch) = table.by_branch.get(&key) else { return };
        match touched.collection {
            Some(collection) => {
                wake(&branch.all);
                branch.by_collection.get(collection).into_iter().for_each(wake);
            }
            None => branch.wake_all(),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // It is whole after each statement, so a panic elsewhere can't have broken it.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(operations: &Operations) {
    operations.values().for_each(|operation| operation.wake());
}

impl OfBranch {
    fn wake_all(&self) {
        wake(&self.all);
        self.by_collection.values().for_each(wake);
    }
}

impl Table {
    fn list_of(&mut self, place: &WatchTarget) -> &mut Operations {
        match place {
            WatchTarget::Collection(database, branch, name) => {
                let of = self.by_branch.entry((database.clone(), branch.clone())).or_default();
                of.by_collection.entry(name.clone()).or_default()
            }
            WatchTarget::Branch(database, branch) => {
                let of = self.by_branch.entry((database.clone(), branch.clone())).or_default();
                &mut of.all
            }
            WatchTarget::All => &mut self.all,
            WatchTarget::Unrecorded => &mut self.unrecorded,
        }
    }

    fn remove(&mut self, place: &WatchTarget, id: i32) {
        self.count -= usize::from(self.list_of(place).remove(&id).is_some());
        let (key, name) = match place {
            WatchTarget::Collection(database, branch, name) => ((database, branch), Some(name)),
            WatchTarget::Branch(database, branch) => ((database, branch), None),
            WatchTarget::All | WatchTarget::Unrecorded => return,
        };
        let Entry::Occupied(mut of) = self.by_branch.entry((key.0.clone(), key.1.clone())) else {
            return;
        };
        let branch = of.get_mut();
        if let Some(name) = name.filter(|name| branch.by_collection[*name].is_empty()) {
            branch.by_collection.remove(name);
        }
        if branch.all.is_empty() && branch.by_collection.is_empty() {
            of.remove();
        }
    }
}

#[cfg(test)]
mod tests;
