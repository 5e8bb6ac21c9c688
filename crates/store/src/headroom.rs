//! The part of a disk that each kind of work may fill, so that a full disk can always be cleared.
//!
//! An operation that gives space back has to write first: a record of the log, a flush, a manifest.
//! So each kind of work stops writing chunks while a part of the reserve is still free, and what it
//! is needed for goes on below that:
//!
//! | work | stops with so much of the reserve free |
//! |---|---|
//! | ordinary: loads, folds, merges of runs | a half |
//! | the folds that a collection asks for: it moves what lives in the packs that they leave | a quarter |
//! | flushes; a collection | an eighth |
//! | records of the log that give space back | a sixteenth (`engine::growth`) |
//! | essential: what publishes, and flushes that make room for such records | a 32nd |
//! | manifests; the opening of a directory | nothing |
//!
//! All but the first are parts of [`last_part`]: of no more than a file can hold back for the case
//! that others fill the disk.
//!
//! The thread says what it is at ([`Headroom::enter`]): what puts chunks is called through many
//! layers.

use std::cell::Cell;

/// The size above which nothing is divided: a drop and a collection take some hundred KB.
const LAST_BYTES_MAX: u64 = 64 << 20;

/// The part of a reserve that is left to what gives space back.
#[must_use]
pub fn last_part(reserve_bytes: u64) -> u64 {
    reserve_bytes.min(LAST_BYTES_MAX)
}

/// The kind of work that a thread does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Headroom {
    /// Anything that can be put off.
    #[default]
    Ordinary,
    /// A fold that a collection asks for, which then moves what little lives in the packs that the
    /// fold has emptied.
    FoldForCollection,
    /// A collection: it gives back more than it takes.
    Collection,
    /// The headroom of all other work that gives space back.
    Essential,
    /// The opening of a directory, before which nothing gives space back: what another reserve, or
    /// none, let be written must be replayed.
    Opening,
}

thread_local! {
    static AT: Cell<Headroom> = const { Cell::new(Headroom::Ordinary) };
}

impl Headroom {
    /// Says what this thread is at until the answer is dropped.
    #[must_use]
    pub fn enter(self) -> HeadroomGuard {
        HeadroomGuard(AT.replace(self))
    }

    /// As [`Headroom::enter`], unless the thread is at what may fill more.
    #[must_use]
    pub fn enter_at_least(self) -> HeadroomGuard {
        AT.get().max(self).enter()
    }

    /// Returns the kind of work of this thread.
    #[must_use]
    pub fn now() -> Headroom {
        AT.get()
    }

    /// Returns the headroom for a flush by this thread: it leaves the space that a delete and a
    /// drop need, unless it is for them, since the log has the data that it would write.
    #[must_use]
    pub fn of_flush() -> Headroom {
        match AT.get() {
            Headroom::Ordinary => Headroom::Collection,
            at => at,
        }
    }

    /// The part of `reserve_bytes` that this thread leaves free.
    pub(crate) fn of_thread(reserve_bytes: u64) -> u64 {
        match AT.get() {
            Headroom::Ordinary => reserve_bytes / 2,
            Headroom::FoldForCollection => last_part(reserve_bytes) / 4,
            Headroom::Collection => last_part(reserve_bytes) / 8,
            Headroom::Essential => last_part(reserve_bytes) / 32,
            Headroom::Opening => 0,
        }
    }
}

/// A guard: while it lives the thread is at what [`Headroom::enter`] said.
pub struct HeadroomGuard(Headroom);

impl Drop for HeadroomGuard {
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
        let fold = Headroom::FoldForCollection.enter();
        check(1600);
        drop(fold);
        let collection = Headroom::Collection.enter();
        check(800);
        let essential = Headroom::Essential.enter();
        check(200);
        let opening = Headroom::Opening.enter();
        check(0);
        let publishing = Headroom::Essential.enter_at_least();
        check(0);
        drop(publishing);
        drop(opening);
        check(200);
        drop(essential);
        check(800);
        drop(collection);
        check(3200);
    }

    #[test]
    fn the_reserve_file_suffices_for_deleting_on_a_large_disk() {
        let reserve = 1 << 30;
        let held = last_part(reserve) / 4;
        for headroom in [Headroom::Collection, Headroom::Essential] {
            let _at = headroom.enter();
            assert!(Headroom::of_thread(reserve) <= held / 2, "{headroom:?}");
        }
    }

    #[test]
    fn a_flush_leaves_what_a_delete_needs_unless_it_is_for_one() {
        assert_eq!(Headroom::of_flush(), Headroom::Collection);
        let _essential = Headroom::Essential.enter();
        assert_eq!(Headroom::of_flush(), Headroom::Essential);
    }
}
