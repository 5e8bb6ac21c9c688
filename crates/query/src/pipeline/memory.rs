//! One budget for what the stages of all queries keep in memory.
//!
//! A stage takes a [`Lease`] and tells it how much it holds ([`Lease::hold`]): that may be as much as its own limit
//! says, and as the budget has left. Who is refused goes to disk earlier, or fails; nobody waits, because a cursor
//! may keep what it sorted for as long as its client likes.
//!
//! 1. The budget counts in steps, of which a lease takes another one when it has outgrown what it has; so most
//!    calls touch no shared memory.
//! 2. The first [`FLOOR_BYTES`] of a lease are counted and not refused: a sort that could hold nothing would write
//!    a file for each document. Where that has exceeded the budget by as much again, only [`FLOOR_BYTES_MIN`] are.
//! 3. Where most of it is taken, the stages *strain* it: what is ready and waits for a cursor's client goes to disk,
//!    however little it is. So ten thousand cursors leave the others room.
//! 4. A lease gives everything back when it is dropped.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A lease grows by so much, once it is as large.
const STEP_BYTES: usize = 1 << 20;
/// Every lease may hold so much.
const FLOOR_BYTES: usize = 256 << 10;
/// Or so much, where these leases together are too many.
const FLOOR_BYTES_MIN: usize = 16 << 10;

/// What the stages of all queries may keep in memory together.
///
/// *Thread safety*: any number of leases at once.
#[derive(Debug)]
pub struct StageMemory {
    bytes_max: usize,
    bytes: AtomicUsize,
}

impl StageMemory {
    /// A budget of which nothing is taken.
    pub fn new(bytes_max: usize) -> Arc<StageMemory> {
        Arc::new(StageMemory { bytes_max, bytes: AtomicUsize::new(0) })
    }

    /// How much is taken.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether most of it is taken.
    pub fn is_strained(&self) -> bool {
        self.bytes_max / 4 * 3 < self.bytes()
    }

    /// What a lease may hold although nothing is left.
    fn floor_bytes(&self) -> usize {
        let is_crowded = self.bytes_max.saturating_mul(2) <= self.bytes();
        if is_crowded { FLOOR_BYTES_MIN } else { FLOOR_BYTES }
    }

    fn take(&self, bytes: usize) -> bool {
        let after = |held: usize| held.checked_add(bytes).filter(|after| *after <= self.bytes_max);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).is_ok()
    }
}

/// What one stage holds of the budget.
#[derive(Debug)]
pub struct Lease {
    /// The stage's own limit.
    bytes_max: usize,
    /// `None`: nobody counts all stages.
    memory: Option<Arc<StageMemory>>,
    /// What may be held without asking.
    granted: usize,
}

/// Why a stage may hold no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exceeded {
    /// Its own limit, in bytes.
    Stage(usize),
    /// That of all stages.
    All(usize),
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exceeded::Stage(bytes) => write!(f, "{bytes} bytes"),
            Exceeded::All(bytes) => write!(f, "{bytes} bytes that the stages of all queries share"),
        }
    }
}

impl Lease {
    /// Holds nothing yet, and may hold `bytes_max`.
    pub(super) fn new(bytes_max: usize, memory: Option<Arc<StageMemory>>) -> Lease {
        Lease { bytes_max, memory, granted: 0 }
    }

    /// Says that the stage holds `bytes`.
    ///
    /// # Errors
    /// Which limit doesn't allow it. The lease keeps what it had.
    pub fn hold(&mut self, bytes: usize) -> Result<(), Exceeded> {
        if bytes <= self.granted {
            return Ok(());
        }
        if self.bytes_max < bytes {
            return Err(Exceeded::Stage(self.bytes_max));
        }
        let steps = match bytes < STEP_BYTES {
            true => bytes.next_power_of_two(),
            false => bytes.next_multiple_of(STEP_BYTES),
        };
        let wanted = steps.min(self.bytes_max);
        if let Some(memory) = &self.memory {
            let more = wanted - self.granted;
            if bytes <= memory.floor_bytes() {
                memory.bytes.fetch_add(more, Ordering::Relaxed);
            } else if !memory.take(more) {
                return Err(Exceeded::All(memory.bytes_max));
            }
        }
        self.granted = wanted;
        Ok(())
    }

    /// Says that the stage holds nothing.
    pub fn release(&mut self) {
        let bytes = std::mem::take(&mut self.granted);
        if let Some(memory) = &self.memory {
            memory.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_at_its_own_limit() {
        let mut lease = Lease::new(10, None);
        assert_eq!(lease.hold(3), Ok(()));
        assert_eq!(lease.hold(10), Ok(()));
        assert_eq!(lease.hold(11), Err(Exceeded::Stage(10)));
        assert_eq!(lease.hold(10), Ok(()), "what it had it keeps");
    }

    #[test]
    fn leases_share_a_budget_and_give_it_back() {
        let memory = StageMemory::new(4 << 20);
        let mut first = Lease::new(100 << 20, Some(Arc::clone(&memory)));
        let mut second = Lease::new(100 << 20, Some(Arc::clone(&memory)));
        assert_eq!(first.hold((3 << 20) - 5), Ok(()));
        assert_eq!(memory.bytes(), 3 << 20);
        assert_eq!(second.hold((1 << 20) + 1), Err(Exceeded::All(4 << 20)));
        assert_eq!(second.hold(1 << 20), Ok(()));
        assert_eq!(first.hold((3 << 20) + 1), Err(Exceeded::All(4 << 20)));
        first.release();
        assert_eq!(memory.bytes(), 1 << 20);
        assert_eq!(second.hold(4 << 20), Ok(()));
        drop((first, second));
        assert_eq!(memory.bytes(), 0);
    }

    #[test]
    fn a_little_is_never_refused() {
        let all = 2 * FLOOR_BYTES;
        let memory = StageMemory::new(all);
        let lease = || Lease::new(100 << 20, Some(Arc::clone(&memory)));
        let mut leases: Vec<Lease> = std::iter::repeat_with(lease).take(6).collect();
        for lease in &mut leases[..4] {
            assert_eq!(lease.hold(FLOOR_BYTES), Ok(()));
        }
        assert!(memory.is_strained());
        assert_eq!(leases[0].hold(FLOOR_BYTES + 1), Err(Exceeded::All(all)));
        for lease in &mut leases[4..] {
            assert_eq!(lease.hold(FLOOR_BYTES), Err(Exceeded::All(all)));
            assert_eq!(lease.hold(FLOOR_BYTES_MIN), Ok(()));
        }
        assert_eq!(memory.bytes(), 2 * all + 2 * FLOOR_BYTES_MIN);
    }
}
