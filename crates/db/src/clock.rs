//! A clock that is asked, not believed.
//!
//! The believed time is the steady clock (which doesn't leap) plus an offset. A reading of the
//! machine's clock that is near it is taken as it is, and corrects the offset. One that is further
//! off is:
//!
//! | ahead by | is |
//! |---|---|
//! | -1 day to 7 days | believed: a clock that was set, a machine that slept |
//! | up to 400 days | believed after an hour: a directory that was closed for long, or a clock that is wrong at the start and soon corrected |
//! | more, or behind by more than a day | doubted until it is near again, or accepted |
//!
//! An hour is one of the steady clock, or, over a restart, one by the doubted clock itself: it says
//! now what it said then and an hour or more.
//!
//! Where nothing is known (a new directory) any time from 2025 to 2100 is believed. Others are
//! doubted, and time begins with 2025.
//!
//! *Thread safety*: any number of threads. While the clock is believed and hardly moved, a reading
//! takes no lock.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use frond_store::io::Clock;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
const DAY: i64 = 24 * HOUR;
/// A reading that is off by less is taken without correcting anything.
const STEP_MICROS: u64 = 1_000_000;
/// The greatest plausible leap back: a clock that is set back.
const BEHIND_MAX: i64 = DAY;
/// The greatest plausible leap ahead within a run: a clock that is set forward, or a machine that
/// sleeps.
const AHEAD_SOON_MAX: i64 = 7 * DAY;
/// The greatest plausible leap ahead between two runs: a directory that was closed.
const AHEAD_LATE_MAX: i64 = 400 * DAY;
/// A leap that is believed late has stood for so long.
const STOOD: i64 = HOUR;
/// Two readings are of the same leap where they are no further apart.
const SAME_LEAP: u64 = HOUR.unsigned_abs();
/// The first of January 2025: this was written later.
const POSSIBLE_MIN: i64 = 1_735_689_600 * SECOND;
/// The first of January 2100.
const POSSIBLE_MAX: i64 = 4_102_444_800 * SECOND;
/// The end of the year 9999.
const ACCEPTED_MAX: i64 = 253_402_300_800 * SECOND;

/// The knowledge of the time, to be recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Known {
    /// The believed time.
    pub believed_micros: i64,
    /// The clock's reading, when it first appeared, that may be believed later.
    pub doubted_micros: Option<i64>,
}

/// A reading and what to think of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Belief {
    pub wall_micros: i64,
    pub believed_micros: i64,
    pub is_doubted: bool,
}

/// A leap that isn't believed.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// The clock's first reading.
    wall: i64,
    /// The steady clock's reading at that time; `None`: that was another process.
    steady: Option<i64>,
}

#[derive(Debug, Default)]
struct Doubts {
    /// Whether anything is known that a reading can be compared with.
    is_known: bool,
    doubt: Option<Doubt>,
}

/// A clock that is asked, not believed. As a [`Clock`] it says what is believed.
pub(crate) struct BelievedClock {
    clock: Arc<dyn Clock>,
    /// The believed time is the steady clock plus this.
    offset: AtomicI64,
    is_doubted: AtomicBool,
    /// Held while one of the two above changes.
    doubts: Mutex<Doubts>,
}

impl BelievedClock {
    /// A clock about which nothing is known: see [`BelievedClock::begin`].
    pub fn new(clock: Arc<dyn Clock>) -> BelievedClock {
        let offset = POSSIBLE_MIN.saturating_sub(clock.steady_micros());
        BelievedClock {
            clock,
            offset: AtomicI64::new(offset),
            is_doubted: AtomicBool::new(false),
            doubts: Mutex::default(),
        }
    }

    /// Says what processes before have believed.
    pub fn begin(&self, known: Option<Known>) {
        let Some(known) = known else { return };
        let mut doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        doubts.is_known = true;
        doubts.doubt = known.doubted_micros.map(|wall| Doubt { wall, steady: None });
        self.set_offset(known.believed_micros.saturating_sub(self.steady()));
    }

    /// Returns the reading of the machine's clock.
    pub fn wall_micros(&self) -> i64 {
        self.clock.now_micros()
    }

    /// Returns the reading of the steady clock.
    pub fn steady(&self) -> i64 {
        self.clock.steady_micros()
    }

    /// Reads the clock.
    pub fn look(&self) -> Belief {
        let (wall, steady) = (self.clock.now_micros(), self.clock.steady_micros());
        let expected = steady.saturating_add(self.offset.load(Ordering::Relaxed));
        if wall.abs_diff(expected) < STEP_MICROS && !self.is_doubted.load(Ordering::Relaxed) {
            return Belief { wall_micros: wall, believed_micros: wall, is_doubted: false };
        }
        let mut doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        let expected = steady.saturating_add(self.offset.load(Ordering::Relaxed));
        doubts.doubt = doubts.doubt_of(wall, steady, expected);
        let is_doubted = doubts.doubt.is_some();
        self.is_doubted.store(is_doubted, Ordering::Relaxed);
        if !is_doubted {
            doubts.is_known = true;
            self.set_offset(wall.saturating_sub(steady));
        }
        let believed_micros = if is_doubted { expected } else { wall };
        Belief { wall_micros: wall, believed_micros, is_doubted }
    }

    /// Believes what the clock says, if it is a year from 1970 to 9999.
    pub fn accept(&self) -> bool {
        let mut doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        let (wall, steady) = (self.clock.now_micros(), self.clock.steady_micros());
        if !(0..ACCEPTED_MAX).contains(&wall) {
            return false;
        }
        *doubts = Doubts { is_known: true, doubt: None };
        self.is_doubted.store(false, Ordering::Relaxed);
        self.set_offset(wall.saturating_sub(steady));
        true
    }

    /// Returns the knowledge to record; `None` if no clock was believed yet.
    pub fn known(&self) -> Option<Known> {
        let believed_micros = self.look().believed_micros;
        let doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        let doubted_micros = doubts.doubt.map(|doubt| doubt.wall);
        doubts.is_known.then_some(Known { believed_micros, doubted_micros })
    }

    fn set_offset(&self, micros: i64) {
        self.offset.store(micros, Ordering::Relaxed);
    }
}

impl Doubts {
    /// Returns the doubt about a reading, where `expected` was to be read, if there is one.
    fn doubt_of(&self, wall: i64, steady: i64, expected: i64) -> Option<Doubt> {
        let fresh = Doubt { wall, steady: Some(steady) };
        if !self.is_known {
            return (!(POSSIBLE_MIN..POSSIBLE_MAX).contains(&wall)).then_some(fresh);
        }
        let ahead = wall.saturating_sub(expected);
        if (-BEHIND_MAX..=AHEAD_SOON_MAX).contains(&ahead) {
            return None;
        }
        let Some(doubt) = self.doubt else { return Some(fresh) };
        // The time that the doubted clock would show now, and for how long it has been.
        let (is_same, stood) = match doubt.steady {
            Some(since) => {
                let stood = steady.saturating_sub(since);
                (wall.abs_diff(doubt.wall.saturating_add(stood)) <= SAME_LEAP, stood)
            }
            None => {
                let stood = wall.saturating_sub(doubt.wall);
                ((0..=AHEAD_LATE_MAX).contains(&stood), stood)
            }
        };
        if !is_same {
            return Some(fresh);
        }
        let is_late = (0..=AHEAD_LATE_MAX).contains(&ahead);
        (!is_late || stood < STOOD).then_some(doubt)
    }
}

impl Clock for BelievedClock {
    fn now_micros(&self) -> i64 {
        self.look().believed_micros
    }

    fn steady_micros(&self) -> i64 {
        self.steady()
    }
}

/// The clock's records and warnings of this process.
#[derive(Clone, Copy, Default)]
pub(crate) struct ClockRecords {
    /// The last record.
    pub known: Option<Known>,
    /// Whether a doubt was reported to an operator.
    pub reported_doubt: bool,
}

#[cfg(test)]
mod tests;
