//! The work of a thread for a client.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An answer of more bytes may have to wait for the client to take some.
const SOON_BYTES: usize = 64 << 10;

/// The thread that has a turn.
pub struct Thread<'a> {
    /// Its memory for what comes in.
    pub scratch: &'a mut [u8],
    /// The number of threads that will soon have nothing to do.
    ending: &'a AtomicUsize,
    is_ending: bool,
}

impl<'a> Thread<'a> {
    /// A thread with so much memory, counted in `ending` while it ends its turn.
    pub fn new(scratch: &'a mut [u8], ending: &'a AtomicUsize) -> Thread<'a> {
        Thread { scratch, ending, is_ending: false }
    }

    /// Notes that it has only to send an answer of so many bytes: where the client doesn't take
    /// them at once, it must not wait for that.
    ///
    /// The client may have it, and say more, long before this thread runs again: the system gives
    /// the processor to whom it wakes.
    pub fn answers(&mut self, bytes: usize) {
        if bytes <= SOON_BYTES && !std::mem::replace(&mut self.is_ending, true) {
            self.ending.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Whether it has only to send an answer, which takes no time.
    pub fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Notes that it has something to do.
    pub fn works(&mut self) {
        if std::mem::take(&mut self.is_ending) {
            self.ending.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Thread<'_> {
    fn drop(&mut self) {
        self.works();
    }
}

/// The work for one client: turns of a thread, between which the client is silent.
pub trait Talk: Send {
    /// Talks until there is a pause. Returns itself if the client is silent between two messages,
    /// and another turn is to follow when it speaks.
    fn turn(self: Box<Self>, thread: &mut Thread<'_>) -> Option<Box<dyn Talk>>;

    /// Goes back to where it came from, since the client's silence can't be watched here.
    fn give_back(self: Box<Self>);

    /// The client's socket, watched between the turns.
    fn socket(&self) -> BorrowedFd<'_>;

    /// Whether clients that have a thread may wait for one that has none.
    fn must_go_on(&self) -> bool;
}

/// What a thread does next.
pub enum Work {
    /// A turn for a client.
    Turn(Box<dyn Talk>),
    /// Something once; `true`: others may wait for it.
    Once(Box<dyn FnOnce() + Send>, bool),
}

impl Work {
    /// Whether clients that have a thread may wait for one that has none.
    pub fn must_go_on(&self) -> bool {
        match self {
            Work::Turn(talk) => talk.must_go_on(),
            Work::Once(_, must_go_on) => *must_go_on,
        }
    }
}
