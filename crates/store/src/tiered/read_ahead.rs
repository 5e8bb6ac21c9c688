//! Decides how much of a pack is read at once: the more, the longer a reader goes on in order.
//!
//! A read that begins where an earlier one of the same pack ended is twice as long, up to
//! [`EXTENTS_MAX`]; any other is no longer than what was asked for. So a scan of a pack of 64 MB
//! costs some twenty requests, not a thousand, and a read of a single document stays small. Several
//! may read a pack at once, each in its order: the last few ends are kept.

use std::sync::{Mutex, MutexGuard};

/// The greatest number of extents of one read: 4 MB.
pub(super) const EXTENTS_MAX: u32 = 64;
/// Readers in order that are distinguished.
const READERS_MAX: usize = 8;

/// The last reads of a pack.
#[derive(Default)]
pub(super) struct ReadAhead(Mutex<Vec<Read>>);

/// A read that ended before `end`, and was of so many extents.
struct Read {
    end: u32,
    extents: u32,
}

impl ReadAhead {
    /// Returns the extent before which a read ends that begins at `first` and is asked to reach
    /// `end`; of `extents_max` at most, if it is asked for no more.
    pub(super) fn end(&self, first: u32, end: u32, extents_max: u32) -> u32 {
        let mut reads = self.reads();
        // The extents between may have been in the cache.
        let follows = |read: &Read| (read.end..=read.end + 1).contains(&first);
        let before = reads.iter().position(follows).map(|at| reads.remove(at));
        let doubled = before.map_or(0, |read| (read.extents * 2).min(EXTENTS_MAX.min(extents_max)));
        first + doubled.max(end - first)
    }

    /// Notes a read: others that are on their way may have made it shorter.
    pub(super) fn note(&self, first: u32, extents: u32) {
        let mut reads = self.reads();
        if reads.len() == READERS_MAX {
            reads.remove(0);
        }
        reads.push(Read { end: first + extents, extents });
    }

    fn reads(&self) -> MutexGuard<'_, Vec<Read>> {
        self.0.lock().expect("no panic while the lock is held")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_order_double_and_others_do_not() {
        let ahead = ReadAhead::default();
        let read = |first: u32, end: u32, extents_max: u32| {
            let end = ahead.end(first, end, extents_max);
            ahead.note(first, end - first);
            end
        };
        let (mut first, mut lengths) = (0, Vec::new());
        for _ in 0..9 {
            let end = read(first, first + 1, 1000);
            lengths.push(end - first);
            // Another reads here and there.
            assert_eq!(read(5000 + 7 * first, 5001 + 7 * first, 1000), 5001 + 7 * first);
            first = end;
        }
        assert_eq!(lengths, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        assert_eq!(read(first, first + 100, 1000), first + 100, "what is asked for");
        assert_eq!(read(first + 100, first + 101, 4), first + 104, "a small cache");
    }
}
