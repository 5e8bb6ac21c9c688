//! How much of everything: three scales, and the numbers that each workload takes from them.
//!
//! `smoke` shows that all works, and is for continuous integration: its figures mean nothing.
//! `small` is for two cores and half an hour. `full` has the original publications' sizes where a
//! machine can hold them. Whatever was reduced is in the rows' parameters or in the workload's
//! description.

use std::time::Duration;

use clap::ValueEnum;

/// How much.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Scale {
    /// Seconds: shows that all works; its figures mean nothing.
    Smoke,
    /// Two cores, half an hour for five databases.
    Small,
    /// The publications' sizes; hours.
    Full,
}

impl Scale {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Smoke => "smoke",
            Scale::Small => "small",
            Scale::Full => "full",
        }
    }

    /// One of three values.
    pub fn pick<T>(self, smoke: T, small: T, full: T) -> T {
        match self {
            Scale::Smoke => smoke,
            Scale::Small => small,
            Scale::Full => full,
        }
    }

    /// Returns how often each workload runs on each target, if nothing else was asked for.
    pub fn repetitions(self) -> u32 {
        self.pick(1, 3, 5)
    }

    /// Returns after how many minutes repetitions are left out, if nothing else was asked for.
    pub fn minutes(self) -> Option<u64> {
        self.pick(None, Some(33), None)
    }

    /// A time in milliseconds.
    pub fn millis(self, smoke: u64, small: u64, full: u64) -> Duration {
        Duration::from_millis(self.pick(smoke, small, full))
    }
}
