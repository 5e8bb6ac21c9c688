//! Logins that failed: a client that goes on trying gets each answer later.
//!
//! Failures are counted by address and user, so that no client elsewhere can lock out a user. From
//! the fifth on, the answers to that address's logins as that user are late, good ones too:
//! otherwise a prompt answer would show that the password was right. The wait is a task's, not a
//! thread's.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::UserName;

/// The number of failures that cost nothing.
const FREE: u32 = 5;
/// The first wait; each further failure doubles it.
const DELAY_MIN: Duration = Duration::from_millis(500);
/// The longest.
const DELAY_MAX: Duration = Duration::from_secs(8);
/// The time without another after which failures are forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15 * 60);
/// The number of pairs that are remembered: above, the one that failed longest ago is forgotten.
const REMEMBERED_MAX: usize = 4_000;

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

/// The failures of a server.
#[derive(Default)]
pub struct LoginFailures(Mutex<HashMap<(IpAddr, UserName), Failures>>);

impl LoginFailures {
    /// Returns how long an answer to a login as `user` from `address` waits.
    pub fn delay(&self, address: IpAddr, user: &UserName, now: Instant) -> Duration {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nearly always.
        if known.is_empty() {
            return Duration::ZERO;
        }
        match known.get(&(address, user.clone())) {
            Some(failures) if !failures.is_forgotten(now) && failures.count >= FREE => {
                let doublings = (failures.count - FREE).min(16);
                DELAY_MIN.saturating_mul(1 << doublings).min(DELAY_MAX)
            }
            _ => Duration::ZERO,
        }
    }

    /// Notes a failure.
    pub fn failed(&self, address: IpAddr, user: &UserName, now: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (address, user.clone());
        if known.len() >= REMEMBERED_MAX && !known.contains_key(&key) {
            known.retain(|_, failures| !failures.is_forgotten(now));
            let oldest = known.iter().min_by_key(|(_, failures)| failures.last);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone())
                && known.len() >= REMEMBERED_MAX
            {
                known.remove(&oldest);
            }
        }
        let failures = known.entry(key).or_insert(Failures { count: 0, last: now });
        if failures.is_forgotten(now) {
            failures.count = 0;
        }
        failures.count = failures.count.saturating_add(1);
        failures.last = now;
    }

    /// Forgets the failures before a login that went well.
    pub fn succeeded(&self, address: IpAddr, user: &UserName) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.is_empty() {
            known.remove(&(address, user.clone()));
        }
    }
}

impl Failures {
    fn is_forgotten(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= FORGOTTEN_AFTER
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn user(name: &str) -> UserName {
        UserName { database: "admin".to_owned(), user: name.to_owned() }
    }

    #[test]
    fn answers_wait_after_five_failures_and_longer_after_more() {
        let (failures, now) = (LoginFailures::default(), Instant::now());
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        for _ in 0..4 {
            failures.failed(here, &user("ann"), now);
        }
        assert_eq!(failures.delay(here, &user("ann"), now), Duration::ZERO);
        let mut delays = Vec::new();
        for _ in 0..8 {
            failures.failed(here, &user("ann"), now);
            delays.push(failures.delay(here, &user("ann"), now).as_millis());
        }
        assert_eq!(delays, [500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000, 8_000]);
        let elsewhere = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(failures.delay(elsewhere, &user("ann"), now), Duration::ZERO);
        assert_eq!(failures.delay(here, &user("bob"), now), Duration::ZERO);
        assert_eq!(failures.delay(here, &user("ann"), now + FORGOTTEN_AFTER), Duration::ZERO);
        failures.succeeded(here, &user("ann"));
        assert_eq!(failures.delay(here, &user("ann"), now), Duration::ZERO);
    }

    #[test]
    fn so_many_are_remembered_and_no_more() {
        let (failures, now) = (LoginFailures::default(), Instant::now());
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        for number in 0..REMEMBERED_MAX + 10 {
            let at = now + Duration::from_nanos(number as u64);
            failures.failed(here, &user(&number.to_string()), at);
        }
        let known = failures.0.lock().expect("no panic");
        assert_eq!(known.len(), REMEMBERED_MAX);
        assert!(!known.contains_key(&(here, user("0"))));
    }
}
