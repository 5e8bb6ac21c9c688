//! Extents that are being fetched: two readers that miss the same one fetch it once, and all
//! fetches together hold a bounded amount of memory.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex};

use super::extents::Extent;

/// The number of extents on their way from which on no reader asks for more than it needs: 8 MB.
const UNDERWAY_MAX: usize = 128;
const NO_PANIC: &str = "no panic while the lock is held";

/// The extents that are being fetched.
#[derive(Default)]
pub(super) struct SingleFlight {
    underway: Mutex<HashSet<Extent>>,
    landed: Condvar,
}

/// Extents that one reader fetches; the others are woken when it is dropped.
pub(super) struct FlightGuard<'a> {
    flights: &'a SingleFlight,
    extents: Vec<Extent>,
}

impl SingleFlight {
    /// Begins to fetch `extents`, the first `needed` of which are needed, but for those that others
    /// fetch: where these have the first one, waits until that is there, or is given up, and
    /// returns `None`. So it does without waiting if there is no first one, which is looked at when
    /// nothing lands.
    pub(super) fn begin(
        &self,
        extents: impl Iterator<Item = Extent>,
        needed: usize,
    ) -> Option<FlightGuard<'_>> {
        let mut underway = self.underway.lock().expect(NO_PANIC);
        let extents_max = UNDERWAY_MAX.saturating_sub(underway.len()).max(needed);
        let mut extents = extents.take(extents_max).peekable();
        let first = *extents.peek()?;
        if underway.contains(&first) {
            while underway.contains(&first) {
                underway = self.landed.wait(underway).expect(NO_PANIC);
            }
            return None;
        }
        let extents: Vec<Extent> = extents.take_while(|extent| underway.insert(*extent)).collect();
        Some(FlightGuard { flights: self, extents })
    }
}

impl FlightGuard<'_> {
    /// Returns how many extents are fetched, from the first one on.
    pub(super) fn count(&self) -> u32 {
        self.extents.len() as u32
    }
}

impl Drop for FlightGuard<'_> {
    fn drop(&mut self) {
        if let Ok(mut underway) = self.flights.underway.lock() {
            for extent in &self.extents {
                underway.remove(extent);
            }
        }
        self.flights.landed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::location::PackNumber;

    fn extents(first: u32, count: u32) -> impl Iterator<Item = Extent> {
        (first..first + count).map(|number| (PackNumber(1), number))
    }

    #[test]
    fn all_together_hold_little_more_than_they_need() {
        let flights = SingleFlight::default();
        let count =
            |flight: &Option<FlightGuard<'_>>| flight.as_ref().map_or(0, FlightGuard::count);
        let first = flights.begin(extents(0, 100), 1);
        let second = flights.begin(extents(200, 64), 1);
        let third = flights.begin(extents(300, 64), 2);
        assert_eq!([count(&first), count(&second), count(&third)], [100, 28, 2]);
        drop(first);
        assert_eq!(count(&flights.begin(extents(90, 64), 1)), 64);
        assert_eq!(count(&flights.begin(extents(190, 64), 1)), 10, "what others fetch ends it");
    }

    #[test]
    fn a_waiter_goes_on_when_the_fetching_thread_panics() {
        let flights = SingleFlight::default();
        thread::scope(|scope| {
            let flight = flights.begin(extents(0, 4), 4);
            let waits = scope.spawn(|| flights.begin(extents(2, 1), 1).is_none());
            let panics = scope.spawn(move || {
                let _flight = flight;
                panic!("a reader's panic");
            });
            assert!(panics.join().is_err());
            // It may have come too late to wait.
            let _ = waits.join().unwrap();
        });
        assert!(flights.begin(extents(0, 4), 4).is_some_and(|flight| flight.count() == 4));
    }
}
