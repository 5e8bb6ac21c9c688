//! Memory for messages that come in: how much of it each may hold, and which clients have to make
//! progress.
//!
//! 1. A message's [`MessageReservation`] grows with the bytes that came in, never with what was
//!    announced: a client that announces much and stalls holds up no other.
//! 2. Where it can't grow, it waits for the *turn*. As much memory as the largest message takes is
//!    kept back for the message that has the turn, so one message can always be read to its end,
//!    then the next.
//! 3. What a connection holds for which others wait goes to a file if its client stalls
//!    ([`crate::stalled_bytes`]). Where that can't be, it is closed if it takes longer than a
//!    client that reads and writes all the time.
//!
//! A message that came compressed holds its compressed and its decompressed bytes. The message that
//! has the turn may then hold more than is kept back, as does one that is larger than all the
//! memory: there is only one at a time.
//!
//! *Invariant*: a message that waits for its first share holds nothing, and one that waits for the
//! turn doesn't have it; the one that has it waits for nothing here. So no messages wait in a
//! circle.

use std::time::Instant;

use frond_db::memory_queue::{MemoryQueue, MemoryShare};

use crate::limits::{progress_time, stall_time};
use crate::wire::MESSAGE_BYTES_MAX;

/// The memory of all messages together.
pub struct MessageMemory {
    bytes_max: usize,
    shares: MemoryQueue,
    /// One share of one: the turn.
    turns: MemoryQueue,
}

/// The memory that one message holds, given back when it is dropped.
pub struct MessageReservation {
    share: MemoryShare,
    turn: Option<MemoryShare>,
    /// The time since when its client could send: what it waited for us doesn't count.
    since: Instant,
}

impl MessageMemory {
    /// An intake that holds so many bytes at most (and a message, where one is larger).
    pub fn new(bytes: usize) -> MessageMemory {
        let kept_back = MESSAGE_BYTES_MAX.min(bytes / 2);
        MessageMemory {
            bytes_max: bytes,
            shares: MemoryQueue::new(bytes - kept_back),
            turns: MemoryQueue::new(1),
        }
    }

    /// The bytes that it holds at most.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Makes room for the first `bytes` of a message. `check` is asked now and then whether to go
    /// on waiting.
    ///
    /// # Errors
    /// The error of `check`.
    pub fn take<E>(
        &self,
        bytes: usize,
        check: impl Fn() -> Result<(), E>,
    ) -> Result<MessageReservation, E> {
        let share = self.shares.take(bytes, check)?;
        Ok(MessageReservation { share, turn: None, since: Instant::now() })
    }

    /// Returns the memory that is shared by all messages but the one with the turn.
    pub fn shares(&self) -> &MemoryQueue {
        &self.shares
    }

    /// Whether a message waits for memory or for the turn.
    pub fn is_waited_for(&self) -> bool {
        self.shares.is_waited_for() || self.turns.is_waited_for()
    }

    /// Bytes that are held now, what the one with the turn has grown by not counted.
    pub fn held(&self) -> usize {
        self.shares.held()
    }
}

impl MessageReservation {
    /// Makes room for `bytes` of the message in all, waiting as [`MessageMemory::take`] does.
    ///
    /// # Errors
    /// The error of `check`.
    pub fn grow<E>(
        &mut self,
        intake: &MessageMemory,
        bytes: usize,
        check: impl Fn() -> Result<(), E>,
    ) -> Result<(), E> {
        let fits = self.turn.is_some() || self.share.bytes() >= bytes;
        if !fits && !self.share.try_grow(bytes) {
            self.turn = Some(intake.turns.take(1, check)?);
            self.since = Instant::now();
        }
        Ok(())
    }

    /// Whether another message waits, and this one's client has taken longer for the `received`
    /// bytes than it may.
    pub fn is_too_slow(&self, intake: &MessageMemory, received: usize, now: Instant) -> bool {
        intake.is_waited_for()
            && now.saturating_duration_since(self.since) >= progress_time(received)
    }

    /// Whether another message waits, and this one's client stalls after `received` bytes.
    pub fn should_spill(&self, intake: &MessageMemory, received: usize, now: Instant) -> bool {
        intake.is_waited_for() && now.saturating_duration_since(self.since) >= stall_time(received)
    }

    /// Returns how much it is, the turn not counted.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.share.bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn never() -> Result<(), ()> {
        Ok(())
    }

    #[test]
    fn held_memory_is_that_of_received_messages() {
        let intake = MessageMemory::new(1_000);
        let mut hold = intake.take(100, never).expect("all is free");
        assert_eq!(hold.grow(&intake, 400, never), Ok(()));
        assert_eq!((hold.bytes(), intake.held()), (400, 400));
        // It has more than it needs.
        assert_eq!(hold.grow(&intake, 300, never), Ok(()));
        let other = intake.take(100, never).expect("it just fits");
        assert!(!intake.is_waited_for());
        // There is no more: it has the turn, and needs no share from now on.
        assert_eq!(hold.grow(&intake, 900, never), Ok(()));
        assert_eq!(hold.grow(&intake, MESSAGE_BYTES_MAX, never), Ok(()));
        assert_eq!((hold.bytes(), intake.held()), (400, 500));
        drop((hold, other));
        assert_eq!(intake.held(), 0);
        assert!(intake.take(10_000, never).is_ok(), "all of it, where a message is larger");
    }

    #[test]
    fn all_get_through_though_each_needs_more_than_its_part() {
        let (intake, done) = (MessageMemory::new(1_000), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut hold = intake.take(60, never).expect("nothing ends the wait");
                    for bytes in [120, 240, 480, 960] {
                        std::thread::yield_now();
                        hold.grow(&intake, bytes, never).expect("nothing ends the wait");
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        assert_eq!((done.into_inner(), intake.held()), (8, 0));
    }

    #[test]
    fn a_client_that_keeps_others_waiting_has_to_make_progress() {
        let intake = MessageMemory::new(1_000);
        let mut hold = intake.take(500, never).expect("all is free");
        hold.grow(&intake, 600, never).expect("the turn is free");
        let late = Instant::now() + progress_time(600);
        assert!(!hold.is_too_slow(&intake, 600, late), "no message waits");
        std::thread::scope(|scope| {
            let other = scope.spawn(|| intake.take(1, never).is_ok());
            while !intake.is_waited_for() {
                std::thread::yield_now();
            }
            assert!(hold.is_too_slow(&intake, 600, late));
            assert!(!hold.is_too_slow(&intake, 100 << 20, late), "so much takes longer");
            drop(hold);
            assert!(other.join().expect("it doesn't panic"));
        });
    }
}
