//! The memory of large writes, from their preparation until they are in the log.
//!
//! A large document that is written is there several times for a while: as it was, as it is to be,
//! as its chunks, and as the log's record. So a transaction that writes much takes room for all of
//! it ([`WriteMemory::grow`]) before it is made, and waits where there is none; small ones
//! ([`FREE_BYTES`]) take none.
//!
//! 1. A [`WriteReservation`] grows with what its transaction has to write. Where it can't grow, it
//!    waits for the *turn*: the transaction that has it needs no more room. So one large
//!    transaction can always be brought to its end, then the next.
//! 2. A transaction that has room waits for no other transaction's locks: if it meets one, it gives
//!    its room back first ([`crate::Transaction::blocked`]). Transactions of several requests take
//!    none, since they last as long as their clients like.
//!
//! *Invariant*: a transaction that waits for a first share holds nothing, one that waits for the
//! turn doesn't have it, and the one that has it waits for nothing here. So no transactions wait in
//! a circle.

use frond_store::memory_queue::{MemoryQueue, MemoryShare};

/// The bytes that a transaction may have to write without a reservation.
pub(crate) const FREE_BYTES: u64 = 256 << 10;

/// The memory of all large writes together.
pub(crate) struct WriteMemory {
    shares: MemoryQueue,
    /// One share of one: the turn.
    turns: MemoryQueue,
}

/// One transaction's share, given back when it is dropped.
#[derive(Default)]
pub(crate) struct WriteReservation {
    share: Option<MemoryShare>,
    turn: Option<MemoryShare>,
    /// The bytes that were reserved so far.
    bytes: u64,
}

impl WriteMemory {
    /// Makes one for so many bytes.
    pub fn new(bytes: u64) -> WriteMemory {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        WriteMemory { shares: MemoryQueue::new(bytes), turns: MemoryQueue::new(1) }
    }

    /// Makes room for `bytes` more. `check` is asked now and then whether to go on waiting.
    ///
    /// # Errors
    /// The error of `check`.
    pub fn grow<E>(
        &self,
        reservation: &mut WriteReservation,
        bytes: u64,
        check: impl Fn() -> Result<(), E>,
    ) -> Result<(), E> {
        reservation.bytes = reservation.bytes.saturating_add(bytes);
        if reservation.bytes <= FREE_BYTES || reservation.turn.is_some() {
            return Ok(());
        }
        let wanted = usize::try_from(reservation.bytes).unwrap_or(usize::MAX);
        match &mut reservation.share {
            // It may have all there is.
            Some(share) => {
                let most = wanted.min(self.shares.bytes());
                if share.bytes() < most && !share.try_grow(most) {
                    reservation.turn = Some(self.turns.take(1, check)?);
                }
            }
            none => *none = Some(self.shares.take(wanted, check)?),
        }
        Ok(())
    }

    /// Gives out so much less until another number is set.
    pub fn withhold(&self, bytes: u64) {
        self.shares.withhold(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    /// Returns all bytes, and the held ones, without those by which the transaction with the turn
    /// has grown.
    pub fn bytes(&self) -> (u64, u64) {
        (self.shares.bytes() as u64, self.shares.held() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never() -> Result<(), ()> {
        Ok(())
    }

    #[test]
    fn small_writes_take_no_memory_and_the_largest_may_take_all() {
        let memory = WriteMemory::new(4 * FREE_BYTES);
        let mut small = WriteReservation::default();
        assert_eq!(memory.grow(&mut small, FREE_BYTES, never), Ok(()));
        assert_eq!(memory.bytes().1, 0);
        let mut large = WriteReservation::default();
        assert_eq!(memory.grow(&mut large, 100 * FREE_BYTES, never), Ok(()));
        assert_eq!(memory.bytes().1, 4 * FREE_BYTES);
        assert_eq!(memory.grow(&mut large, FREE_BYTES, never), Ok(()), "it has all there is");
        assert_eq!(memory.grow(&mut small, FREE_BYTES, || Err(())), Err(()), "it has to wait");
        drop(large);
        assert_eq!(memory.grow(&mut small, FREE_BYTES, never), Ok(()));
        assert_eq!(memory.bytes().1, 3 * FREE_BYTES, "all that was asked for so far");
        drop(small);
        assert_eq!(memory.bytes().1, 0);
    }

    #[test]
    fn all_get_through_though_each_needs_more_than_its_part() {
        let (memory, done) = (WriteMemory::new(8 * FREE_BYTES), std::sync::Mutex::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut reservation = WriteReservation::default();
                    for _ in 0..6 {
                        std::thread::yield_now();
                        assert_eq!(memory.grow(&mut reservation, FREE_BYTES, never), Ok(()));
                    }
                    *done.lock().expect("no thread panics") += 1;
                });
            }
        });
        assert_eq!((done.into_inner().expect("no thread panics"), memory.bytes().1), (8, 0));
    }
}
