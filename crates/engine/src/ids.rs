//! Names of trees and of moments.

/// A tree of this data directory. Local: never hashed, cloned or sent. Never reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TreeId(pub u64);

impl TreeId {
    /// The one tree that exists in every engine from the start: local state of the layer above.
    pub const SYSTEM: TreeId = TreeId(1);
}

/// A moment in the life of a data directory: a transaction's place in the one order of all.
///
/// A hybrid clock and MongoDB's cluster time: seconds since 1970 in the high 32 bits, a counter in
/// the low ones. Never goes back, not even over restarts and clock changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Sequence(pub u64);

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_SHIFT: u32 = 32;

impl Sequence {
    /// Before every transaction.
    pub(crate) const ZERO: Sequence = Sequence(0);

    /// The Sequence of the transaction after this one: the clock's second if that is later.
    pub(crate) fn following(self, now_micros: i64) -> Sequence {
        let seconds = u64::try_from(now_micros / MICROS_PER_SECOND).unwrap_or(0);
        let clock = seconds.min(u64::from(u32::MAX)) << SECONDS_SHIFT;
        let next = self.0.checked_add(1).expect("2^64 transactions are never reached");
        Sequence(clock.max(next))
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
            assert_eq!(found, Sequence(expected), "after {last} at {seconds} s");
        }
    }
}
