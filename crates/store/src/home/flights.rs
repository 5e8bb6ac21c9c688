//! Which extents are on their way, so that two readers that miss one fetch it once.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex};

use super::extents::Extent;

const NO_PANIC: &str = "no panic while the lock is held";

/// The extents that are being fetched.
#[derive(Default)]
pub(super) struct Flights {
    underway: Mutex<HashSet<Extent>>,
    landed: Condvar,
}

/// Extents that one reader fetches; the others are told when it is dropped.
pub(super) struct Flight<'a> {
    flights: &'a Flights,
    extents: Vec<Extent>,
}

impl Flights {
    /// Begins to fetch `extents`, but for those that others fetch: where these have the first one,
    /// waits until that is there, or is given up, and returns `None`.
    pub(super) fn begin(&self, extents: impl Iterator<Item = Extent>) -> Option<Flight<'_>> {
        let mut extents = extents.peekable();
        let mut underway = self.underway.lock().expect(NO_PANIC);
        let first = *extents.peek()?;
        if underway.contains(&first) {
            while underway.contains(&first) {
                underway = self.landed.wait(underway).expect(NO_PANIC);
            }
            return None;
        }
        let extents: Vec<Extent> = extents.take_while(|extent| underway.insert(*extent)).collect();
        Some(Flight { flights: self, extents })
    }
}

impl Flight<'_> {
    /// How many extents are fetched, from the first one on.
    pub(super) fn count(&self) -> u32 {
        self.extents.len() as u32
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if let Ok(mut underway) = self.flights.underway.lock() {
            for extent in &self.extents {
                underway.remove(extent);
            }
        }
        self.flights.landed.notify_all();
    }
}
