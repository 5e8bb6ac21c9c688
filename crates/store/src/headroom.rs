//! How far who may fill the disk, so that a full one is never a trap.
//!
//! What gives space back has to write first: a record of the log, a flush, a manifest. So each kind
//! of work stops writing chunks while a part of the reserve is still free, and what it is needed
//! for goes on below that:
//!
//! | work | stops with so much of the reserve free |
//! |---|---|
//! | ordinary: loads, folds, merges of runs | a half |
//! | a collection, and the folds that it asks for | an eighth |
//! | records of the log that give space back | a sixteenth (`engine::growth`) |
//! | essential: flushes and what publishes | a 32nd |
//! | manifests | nothing |
//!
//! The thread says what it is at ([`Headroom::enter`]): what puts chunks is called through many
//! layers.

use std::cell::Cell;

/// What a thread is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Headroom {
    /// Anything that can be put off.
    #[default]
    Ordinary,
    /// A collection: it gives back more than it takes.
    Collection,
    /// What everything else that gives space back waits for.
    Essential,
}

thread_local! {
    static AT: Cell<Headroom> = const { Cell::new(Headroom::Ordinary) };
}

impl Headroom {
    /// Says what this thread is at until the answer is dropped.
    #[must_use]
    pub fn enter(self) -> Entered {
        Entered(AT.replace(self))
    }

    /// The part of `reserve_bytes` that this thread leaves free.
    pub(crate) fn of_thread(reserve_bytes: u64) -> u64 {
        match AT.get() {
            Headroom::Ordinary => reserve_bytes / 2,
            Headroom::Collection => reserve_bytes / 8,
            Headroom::Essential => reserve_bytes / 32,
        }
    }
}

/// While it lives the thread is at what [`Headroom::enter`] said.
pub struct Entered(Headroom);

impl Drop for Entered {
    fn drop(&mut self) {
        AT.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_left_for_what_gives_space_back() {
        let check = |expected| assert_eq!(Headroom::of_thread(6400), expected);
        check(3200);
        let collection = Headroom::Collection.enter();
        check(800);
        let essential = Headroom::Essential.enter();
        check(200);
        drop(essential);
        check(800);
        drop(collection);
        check(3200);
    }
}
