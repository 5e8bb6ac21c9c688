//! One memory budget for everything that grows with clients' requests.
//!
//! Whatever a request makes larger (what a stage sorts, a value that an expression makes, a set of
//! documents that were seen, what a transaction has written) is charged to a [`Reservation`]
//! ([`Reservation::hold`]): that may be as much as its own limit says, and as the budget has left.
//! A holder that is refused goes to disk earlier, or fails; none waits, because a cursor may keep
//! what it sorted for as long as its client likes.
//!
//! 1. The budget counts in steps: a reservation takes another one when it has outgrown what it has.
//!    So most calls touch no shared memory.
//! 2. The first [`FLOOR_BYTES`] of a reservation are counted and not refused: a sort that could
//!    hold nothing would write a file for each document. Where that has exceeded the budget by as
//!    much again, only [`FLOOR_BYTES_MIN`] are.
//! 3. Where most of it is taken, the reservations *strain* it: what is ready and waits for a
//!    cursor's client goes to disk, however little it is. So ten thousand cursors leave the others
//!    memory.
//! 4. A reservation gives everything back when it is dropped.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A reservation grows by so much, once it is as large.
const STEP_BYTES: usize = 1 << 20;
/// The number of bytes that every reservation may hold.
const FLOOR_BYTES: usize = 256 << 10;
/// Or so much, where these together are too many.
const FLOOR_BYTES_MIN: usize = 16 << 10;

/// The memory that all requests may use together.
///
/// *Thread safety*: any number of reservations at once.
#[derive(Debug)]
pub struct MemoryBudget {
    bytes_max: usize,
    /// The bytes of it that are withheld.
    withheld: AtomicUsize,
    bytes: AtomicUsize,
}

impl MemoryBudget {
    /// A budget from which nothing is taken.
    pub fn new(bytes_max: usize) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget {
            bytes_max,
            withheld: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        })
    }

    /// Returns how much may be taken.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Gives out so much less, until another number is set: what was given stays.
    pub fn withhold(&self, bytes: usize) {
        self.withheld.store(bytes, Ordering::Relaxed);
    }

    /// Returns how much may be taken now.
    fn bytes_max_now(&self) -> usize {
        self.bytes_max - self.withheld()
    }

    fn withheld(&self) -> usize {
        self.withheld.load(Ordering::Relaxed).min(self.bytes_max)
    }

    fn exceeded(&self) -> Exceeded {
        Exceeded::All { bytes: self.bytes_max, withheld: self.withheld() }
    }

    /// Returns how much is taken.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether most of it is taken.
    pub fn is_strained(&self) -> bool {
        self.bytes_max_now() / 4 * 3 < self.bytes()
    }

    /// Returns the bytes that a reservation may hold although nothing is left.
    fn floor_bytes(&self) -> usize {
        let is_crowded = self.bytes_max.saturating_mul(2) <= self.bytes();
        if is_crowded { FLOOR_BYTES_MIN } else { FLOOR_BYTES }
    }

    fn take(&self, bytes: usize) -> bool {
        let most = self.bytes_max_now();
        let after = |held: usize| held.checked_add(bytes).filter(|after| *after <= most);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).is_ok()
    }
}

/// The share of one stage, request or transaction.
#[derive(Debug)]
pub struct Reservation {
    /// Its own limit.
    bytes_max: usize,
    /// `None`: only its own limit holds.
    budget: Option<Arc<MemoryBudget>>,
    /// The bytes that may be held without asking.
    granted: usize,
}

/// The reason why no more memory is granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exceeded {
    /// The reservation's own limit, in bytes.
    Own(usize),
    /// That of all, in bytes.
    All {
        /// The bytes that all may hold together.
        bytes: usize,
        /// The bytes of it that are withheld now.
        withheld: usize,
    },
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exceeded::Own(bytes) => write!(f, "{bytes} bytes"),
            Exceeded::All { bytes, withheld: 0 } => {
                write!(f, "{bytes} bytes that all requests share")
            }
            Exceeded::All { bytes, withheld } => write!(
                f,
                "{bytes} bytes that all requests share, of which {withheld} are held back while \
                 the process is near its memory limit"
            ),
        }
    }
}

impl Reservation {
    /// Holds nothing yet, and may hold `bytes_max`.
    pub fn new(bytes_max: usize, budget: Option<Arc<MemoryBudget>>) -> Reservation {
        Reservation { bytes_max, budget, granted: 0 }
    }

    /// Says that `bytes` are held, in all.
    ///
    /// # Errors
    /// Which limit doesn't allow it. The reservation keeps what it had.
    pub fn hold(&mut self, bytes: usize) -> Result<(), Exceeded> {
        if bytes <= self.granted {
            return Ok(());
        }
        if self.bytes_max < bytes {
            return Err(Exceeded::Own(self.bytes_max));
        }
        let wanted = steps(bytes).min(self.bytes_max);
        if let Some(budget) = &self.budget {
            let more = wanted - self.granted;
            if bytes <= budget.floor_bytes() {
                budget.bytes.fetch_add(more, Ordering::Relaxed);
            } else if !budget.take(more) {
                return Err(budget.exceeded());
            }
        }
        self.granted = wanted;
        Ok(())
    }

    /// The most that it allows.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Returns the budget that it is a part of.
    pub fn budget(&self) -> Option<&Arc<MemoryBudget>> {
        self.budget.as_ref()
    }

    /// Returns the bytes that may be held without asking.
    pub fn granted(&self) -> usize {
        self.granted
    }

    /// Says that no more than `bytes` are held, and gives back what that doesn't need.
    pub fn shrink(&mut self, bytes: usize) {
        let needed = if bytes == 0 { 0 } else { steps(bytes) };
        let back = self.granted.saturating_sub(needed);
        self.granted -= back;
        if let Some(budget) = &self.budget {
            budget.bytes.fetch_sub(back, Ordering::Relaxed);
        }
    }

    /// Says that nothing is held.
    pub fn release(&mut self) {
        self.shrink(0);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release();
    }
}

/// Returns the bytes that are taken where `bytes` are held.
fn steps(bytes: usize) -> usize {
    match bytes < STEP_BYTES {
        true => bytes.next_power_of_two(),
        false => bytes.next_multiple_of(STEP_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: usize, withheld: usize) -> Exceeded {
        Exceeded::All { bytes, withheld }
    }

    #[test]
    fn a_limit_is_shown_as_it_is_set_and_what_is_held_back_beside_it() {
        let budget = MemoryBudget::new(4 << 20);
        let mut reservation = Reservation::new(100 << 20, Some(Arc::clone(&budget)));
        let message = |exceeded: Result<(), Exceeded>| exceeded.unwrap_err().to_string();
        let share = "4194304 bytes that all requests share";
        assert_eq!(message(reservation.hold(5 << 20)), share);
        budget.withhold(usize::MAX);
        let held_back =
            ", of which 4194304 are held back while the process is near its memory limit";
        assert_eq!(message(reservation.hold(1 << 20)), format!("{share}{held_back}"));
    }

    #[test]
    fn a_reservation_ends_at_its_own_limit() {
        let mut reservation = Reservation::new(10, None);
        assert_eq!(reservation.hold(3), Ok(()));
        assert_eq!(reservation.hold(10), Ok(()));
        assert_eq!(reservation.hold(11), Err(Exceeded::Own(10)));
        assert_eq!(reservation.hold(10), Ok(()), "what it had it keeps");
    }

    #[test]
    fn reservations_share_a_budget_and_give_it_back() {
        let budget = MemoryBudget::new(4 << 20);
        let mut first = Reservation::new(100 << 20, Some(Arc::clone(&budget)));
        let mut second = Reservation::new(100 << 20, Some(Arc::clone(&budget)));
        assert_eq!(first.hold((3 << 20) - 5), Ok(()));
        assert_eq!(budget.bytes(), 3 << 20);
        assert_eq!(second.hold((1 << 20) + 1), Err(all(4 << 20, 0)));
        assert_eq!(second.hold(1 << 20), Ok(()));
        assert_eq!(first.hold((3 << 20) + 1), Err(all(4 << 20, 0)));
        first.shrink((1 << 20) + 1);
        assert_eq!(budget.bytes(), 3 << 20);
        first.release();
        assert_eq!(budget.bytes(), 1 << 20);
        assert_eq!(second.hold(4 << 20), Ok(()));
        drop((first, second));
        assert_eq!(budget.bytes(), 0);
    }

    #[test]
    fn withheld_memory_is_refused_and_granted_memory_stays() {
        let budget = MemoryBudget::new(4 << 20);
        let reservation = || Reservation::new(100 << 20, Some(Arc::clone(&budget)));
        let (mut first, mut second) = (reservation(), reservation());
        assert_eq!(first.hold(2 << 20), Ok(()));
        budget.withhold(3 << 20);
        assert!(budget.is_strained());
        assert_eq!(first.hold((2 << 20) + 1), Err(all(4 << 20, 3 << 20)));
        assert_eq!(first.hold(2 << 20), Ok(()));
        assert_eq!(second.hold(1 << 20), Err(all(4 << 20, 3 << 20)));
        assert_eq!(second.hold(FLOOR_BYTES), Ok(()));
        budget.withhold(0);
        assert_eq!(second.hold(1 << 20), Ok(()));
    }

    #[test]
    fn a_little_is_never_refused() {
        let bytes = 2 * FLOOR_BYTES;
        let budget = MemoryBudget::new(bytes);
        let reservation = || Reservation::new(100 << 20, Some(Arc::clone(&budget)));
        let mut reservations: Vec<_> = std::iter::repeat_with(reservation).take(6).collect();
        for reservation in &mut reservations[..4] {
            assert_eq!(reservation.hold(FLOOR_BYTES), Ok(()));
        }
        assert!(budget.is_strained());
        assert_eq!(reservations[0].hold(FLOOR_BYTES + 1), Err(all(bytes, 0)));
        for reservation in &mut reservations[4..] {
            assert_eq!(reservation.hold(FLOOR_BYTES), Err(all(bytes, 0)));
            assert_eq!(reservation.hold(FLOOR_BYTES_MIN), Ok(()));
        }
        assert_eq!(budget.bytes(), 2 * bytes + 2 * FLOOR_BYTES_MIN);
    }
}
