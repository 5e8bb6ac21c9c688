//! The ids of trees, and Sequences.

use std::sync::atomic::{AtomicU64, Ordering};

/// A tree of this data directory. Local: never hashed, cloned or sent. Never reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TreeId(pub u64);

impl TreeId {
    /// The one tree that exists in every engine from the start: local state of the layer above.
    pub const SYSTEM: TreeId = TreeId(1);
}

/// Gives out the ids of trees.
pub(crate) struct TreeIds {
    /// The next id: every reserved one is less.
    next: AtomicU64,
}

impl TreeIds {
    /// Begins with `next`: every id below it was reserved once.
    pub fn from(next: u64) -> TreeIds {
        TreeIds { next: AtomicU64::new(next) }
    }

    /// Reserves an id.
    pub fn reserve(&self) -> TreeId {
        TreeId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether an id was reserved once.
    pub fn is_reserved(&self, tree: TreeId) -> bool {
        TreeId::SYSTEM <= tree && tree < self.next()
    }

    /// The id that is reserved next.
    pub fn next(&self) -> TreeId {
        TreeId(self.next.load(Ordering::Relaxed))
    }

    /// Takes over that every id below `next` was reserved elsewhere.
    pub fn advance_to(&self, next: u64) {
        self.next.fetch_max(next, Ordering::Relaxed);
    }
}

/// A moment in the life of a data directory: a transaction's place in the one order of all.
///
/// A hybrid clock and MongoDB's cluster time: seconds since 1970 in the high 32 bits, a counter in
/// the low ones. Never goes back, not even over restarts and clock changes.
///
/// A clock, however wrong, brings it to [`CLOCK_SECONDS_MAX`] at most: above that are 2^58 more;
/// each transaction takes one of them and each opening 2^20.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Sequence(pub u64);

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_SHIFT: u32 = 32;
/// The last second that a clock brings: in 2103, two years before the bits end.
const CLOCK_SECONDS_MAX: u64 = u32::MAX as u64 - (1 << 26);

impl Sequence {
    /// The Sequence before every transaction.
    pub(crate) const ZERO: Sequence = Sequence(0);
    /// The last one that a transaction gets.
    pub(crate) const LAST: Sequence = Sequence(u64::MAX - 1);

    /// The Sequence of the transaction after this one: the clock's second if that is later. `None`
    /// if all were given out.
    pub fn following(self, now_micros: i64) -> Option<Sequence> {
        let seconds = u64::try_from(now_micros / MICROS_PER_SECOND).unwrap_or(0);
        let clock = seconds.min(CLOCK_SECONDS_MAX) << SECONDS_SHIFT;
        let next = self.0.checked_add(1).map(|next| Sequence(next.max(clock)));
        next.filter(|next| *next <= Sequence::LAST)
    }

    /// The second since 1970 that it has in its high bits: that of the clock, or a later one.
    pub fn seconds(self) -> u64 {
        self.0 >> SECONDS_SHIFT
    }

    /// The moment just before this one.
    pub(crate) fn preceding(self) -> Sequence {
        Sequence(self.0.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_rise_whatever_the_clock_says() {
        let cases = [
            // (last, clock in seconds, expected)
            (0, 0, 1),
            (0, 7, 7 << 32),
            (7 << 32, 7, (7 << 32) + 1),
            ((9 << 32) + 5, 7, (9 << 32) + 6),
            (5, -3, 6),
        ];
        for (last, seconds, expected) in cases {
            let found = Sequence(last).following(seconds * MICROS_PER_SECOND);
            assert_eq!(found, Some(Sequence(expected)), "after {last} at {seconds} s");
            assert_eq!(Sequence(expected).seconds(), expected >> 32);
        }
    }

    #[test]
    fn no_clock_takes_the_sequences_that_are_left() {
        let now = Sequence(1_767_225_600 << SECONDS_SHIFT);
        for micros in [i64::MIN, -1, 0, 1, u32::MAX as i64 * MICROS_PER_SECOND, i64::MAX] {
            let first = now.following(micros).expect("far from the end");
            let second = first.following(micros).expect("far from the end");
            assert!(now < first && first < second, "at {micros}");
            assert!(second.seconds() <= CLOCK_SECONDS_MAX, "at {micros}");
        }
        const { assert!((1 << 58) - 1 <= u64::MAX - ((CLOCK_SECONDS_MAX + 1) << SECONDS_SHIFT)) };
    }

    #[test]
    fn the_end_is_an_answer_not_a_panic() {
        for micros in [i64::MIN, 0, i64::MAX] {
            let last = Sequence(Sequence::LAST.0 - 1).following(micros);
            assert_eq!(last, Some(Sequence::LAST));
            assert_eq!(Sequence::LAST.following(micros), None);
            assert_eq!(Sequence(u64::MAX).following(micros), None);
        }
    }
}
