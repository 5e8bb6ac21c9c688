//! Pins transactions to the lines on which they began.
//!
//! A session's last transaction is noted when its first statement passes. Another router, or this
//! one started again, finds the line in the `recoveryToken` that drivers send back with a commit.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Sessions end on the servers after as long.
const KEPT: Duration = Duration::from_secs(30 * 60);

struct Pin {
    number: i64,
    line: String,
    /// The databases that its statements were on.
    databases: BTreeSet<String>,
    used: Instant,
}

/// The lines of open transactions.
#[derive(Default)]
pub(super) struct Pins(Mutex<HashMap<Vec<u8>, Pin>>);

impl Pins {
    /// Notes that a transaction begins on a line, with a statement on a database.
    pub fn begin(&self, session: &[u8], number: i64, line: &str, database: &str) {
        let databases = BTreeSet::from([database.to_owned()]);
        let pin = Pin { number, line: line.to_owned(), databases, used: Instant::now() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(session.to_vec(), pin);
    }

    /// The line on which a transaction began, if that is known.
    pub fn line(&self, session: &[u8], number: i64) -> Option<String> {
        let mut pins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pin = pins.get_mut(session).filter(|pin| pin.number == number)?;
        pin.used = Instant::now();
        Some(pin.line.clone())
    }

    /// Notes that a transaction has a statement on a database; returns whether it had one before.
    pub fn note(&self, session: &[u8], number: i64, database: &str) -> bool {
        let mut pins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pin = pins.get_mut(session).filter(|pin| pin.number == number);
        pin.is_some_and(|pin| !pin.databases.insert(database.to_owned()))
    }

    /// Forgets those that were not used for long.
    pub fn sweep(&self) {
        let now = Instant::now();
        let mut pins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pins.retain(|_, pin| now.duration_since(pin.used) < KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_of_one_transaction() {
        let pins = Pins::default();
        pins.begin(b"s", 4, "eu", "shop");
        assert_eq!(pins.line(b"s", 4).as_deref(), Some("eu"));
        assert_eq!(pins.line(b"s", 5), None);
        assert_eq!(pins.line(b"t", 4), None);
        assert!(pins.note(b"s", 4, "shop") && !pins.note(b"s", 4, "other"));
        assert!(pins.note(b"s", 4, "other") && !pins.note(b"s", 5, "shop"));
        pins.begin(b"s", 5, "us", "shop");
        assert_eq!(pins.line(b"s", 5).as_deref(), Some("us"));
        assert_eq!(pins.line(b"s", 4), None);
    }
}
