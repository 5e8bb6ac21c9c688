//! Counts how often clients tried to log in, and how often they did, by mechanism.

use std::sync::atomic::{AtomicU64, Ordering};

/// The mechanisms that are counted, as clients call them, sorted.
const MECHANISMS: [&str; 4] = ["FROND-ROUTER", "MONGODB-X509", "SCRAM-SHA-1", "SCRAM-SHA-256"];

/// Logins of one sort.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Logins {
    /// Those that were begun.
    pub received: u64,
    /// Those that went well.
    pub successful: u64,
}

/// Logins by one mechanism.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MechanismLogins {
    /// The mechanism's name for clients.
    pub mechanism: &'static str,
    /// All.
    pub all: Logins,
    /// Those that were begun within a `hello`.
    pub speculative: Logins,
}

#[derive(Default)]
struct Counts {
    received: AtomicU64,
    successful: AtomicU64,
}

/// Logins, counted.
#[derive(Default)]
pub struct LoginCounts {
    /// All, and those begun within a `hello`.
    mechanisms: [[Counts; 2]; MECHANISMS.len()],
    mechanism_queries: AtomicU64,
}

impl LoginCounts {
    /// Counts a login that begins.
    pub fn count_received(&self, mechanism: &str, is_speculative: bool) {
        for counts in self.of(mechanism, is_speculative) {
            counts.received.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a login that went well.
    pub fn count_successful(&self, mechanism: &str, is_speculative: bool) {
        for counts in self.of(mechanism, is_speculative) {
            counts.successful.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a question by which mechanisms a user can log in.
    pub fn count_mechanism_queries(&self) {
        self.mechanism_queries.fetch_add(1, Ordering::Relaxed);
    }

    /// How often it was asked by which mechanisms a user can log in.
    pub fn mechanism_queries(&self) -> u64 {
        self.mechanism_queries.load(Ordering::Relaxed)
    }

    /// Returns the counts, by mechanism.
    pub fn list(&self) -> [MechanismLogins; MECHANISMS.len()] {
        std::array::from_fn(|position| {
            let [all, speculative] = &self.mechanisms[position];
            MechanismLogins {
                mechanism: MECHANISMS[position],
                all: all.read(),
                speculative: speculative.read(),
            }
        })
    }

    fn of(&self, mechanism: &str, is_speculative: bool) -> &[Counts] {
        let kinds = if is_speculative { 2 } else { 1 };
        match MECHANISMS.binary_search(&mechanism) {
            Ok(position) => &self.mechanisms[position][..kinds],
            Err(_) => &[],
        }
    }
}

impl Counts {
    fn read(&self) -> Logins {
        Logins {
            received: self.received.load(Ordering::Relaxed),
            successful: self.successful.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scram::{Mechanism, OF_ROUTERS};

    #[test]
    fn every_mechanism_is_counted_and_speculative_logins_are_twice() {
        assert!(MECHANISMS.is_sorted());
        let counts = LoginCounts::default();
        let names = Mechanism::ALL.map(Mechanism::name);
        for name in names.iter().chain(&[OF_ROUTERS, "MONGODB-X509"]) {
            counts.count_received(name, true);
            counts.count_received(name, false);
            counts.count_successful(name, false);
        }
        counts.count_received("PLAIN", false);
        for of_mechanism in counts.list() {
            assert_eq!(of_mechanism.all, Logins { received: 2, successful: 1 });
            assert_eq!(of_mechanism.speculative, Logins { received: 1, successful: 0 });
        }
    }
}
