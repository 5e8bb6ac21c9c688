//! Background work that lets others go first, many times a millisecond.
//!
//! A thread that is woken waits, where all processors are busy, until one that runs has had its slice: a
//! millisecond or more, however low the priority of that one is. A group's leader is woken after each sync, and its
//! members after that, so threads that flush and fold on all processors made every group ten times as long as its
//! sync. A background thread therefore gives its processor up after each bit of work, some 50 µs: a
//! call of the system that does nothing where nobody else wants to run.
//!
//! Whoever does so gets less than its share where others always want to run. So it ends while the work
//! is *urgent*: when much waits to be flushed or folded, and writers would be slowed down for it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use frond_store::io::give_way;

/// Entries of a bit of work.
const ENTRIES: usize = 256;

/// Whether the background works of an engine are urgent.
#[derive(Default)]
pub(crate) struct Courtesy {
    is_urgent: AtomicBool,
}

thread_local! {
    /// That of the engine for which this thread works in the background.
    static OWN: RefCell<Option<Arc<Courtesy>>> = const { RefCell::new(None) };
}

impl Courtesy {
    /// Notes whether the work is urgent.
    pub fn set_urgent(&self, is_urgent: bool) {
        if self.is_urgent.load(Ordering::Relaxed) != is_urgent {
            self.is_urgent.store(is_urgent, Ordering::Relaxed);
        }
    }

    /// Makes the calling thread one that lets others go first.
    pub fn begin(self: &Arc<Courtesy>) {
        give_way();
        OWN.set(Some(Arc::clone(self)));
    }
}

/// Gives the processor up, if this is a background thread and its work isn't urgent: between two bits of work.
pub(crate) fn let_others_go() {
    let lets = |own: &Option<Arc<Courtesy>>| {
        own.as_ref().is_some_and(|own| !own.is_urgent.load(Ordering::Relaxed))
    };
    if OWN.with_borrow(lets) {
        std::thread::yield_now();
    }
}

/// The same `entries`; others may go before each bit of them.
pub(crate) fn in_bits<T>(entries: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    entries.enumerate().map(|(position, entry)| {
        if position.is_multiple_of(ENTRIES) {
            let_others_go();
        }
        entry
    })
}
