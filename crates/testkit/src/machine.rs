//! A clock that tests set, and dice that a seed decides.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use frond_store::io::{Chance, Clock, Machine};

use crate::disk::SimDisk;
use crate::random::Random;

/// The start time of a new [`SimClock`]: 2026-01-01, so that dates in tests look like dates.
const START_MICROS: i64 = 1_767_225_600_000_000;

/// A clock that stands still until a test moves it. Cloning shares it.
#[derive(Clone, Debug)]
pub struct SimClock(Arc<Times>);

#[derive(Debug)]
struct Times {
    now: AtomicI64,
    steady: AtomicI64,
}

impl SimClock {
    /// A clock at the first of January 2026.
    pub fn new() -> SimClock {
        SimClock(Arc::new(Times { now: AtomicI64::new(START_MICROS), steady: AtomicI64::new(0) }))
    }

    /// Sets the time, backwards too: no time goes by.
    pub fn set(&self, micros: i64) {
        self.0.now.store(micros, Ordering::SeqCst);
    }

    /// Lets `micros` go by; a negative number sets the time back.
    pub fn step(&self, micros: i64) {
        self.0.now.fetch_add(micros, Ordering::SeqCst);
        self.0.steady.fetch_add(micros.max(0), Ordering::SeqCst);
    }
}

impl Default for SimClock {
    fn default() -> Self {
        SimClock::new()
    }
}

impl Clock for SimClock {
    fn now_micros(&self) -> i64 {
        self.0.now.load(Ordering::SeqCst)
    }

    fn steady_micros(&self) -> i64 {
        self.0.steady.load(Ordering::SeqCst)
    }
}

/// Random bytes that a seed decides.
#[derive(Debug)]
pub struct SimChance(Mutex<Random>);

impl SimChance {
    /// The same seed gives the same bytes.
    pub fn new(seed: u64) -> SimChance {
        SimChance(Mutex::new(Random::new(seed)))
    }
}

impl Chance for SimChance {
    fn fill(&self, buffer: &mut [u8]) {
        let mut random = self.0.lock().expect("no panic while the lock is held");
        buffer.iter_mut().for_each(|byte| *byte = random.next() as u8);
    }
}

/// Bundles a simulated disk with a clock and a seed.
pub fn machine(disk: &SimDisk, clock: &SimClock, seed: u64) -> Machine {
    Machine {
        disk: Arc::new(disk.clone()),
        clock: Arc::new(clock.clone()),
        chance: Arc::new(SimChance::new(seed)),
    }
}
