//! What the request of a thread has examined: keys, documents, and what that took besides. The
//! profiler tells of it.
//!
//! It is counted by thread, without a lock or an allocation: a request runs on one thread, and the
//! workers that it has besides hand over what they counted ([`crate::cores::Workers`]).

use std::cell::Cell;

/// What was examined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Examined {
    /// Entries of indexes.
    pub keys: u64,
    /// Documents.
    pub documents: u64,
    /// Whether documents were sorted that no index gave in order.
    pub has_sorted: bool,
    /// Whether what didn't fit into memory was written to files.
    pub used_disk: bool,
}

thread_local! {
    static EXAMINED: Cell<Examined> = const { Cell::new(Examined::NOTHING) };
}

impl Examined {
    const NOTHING: Examined =
        Examined { keys: 0, documents: 0, has_sorted: false, used_disk: false };

    /// Both together.
    pub fn and(self, other: Examined) -> Examined {
        Examined {
            keys: self.keys + other.keys,
            documents: self.documents + other.documents,
            has_sorted: self.has_sorted || other.has_sorted,
            used_disk: self.used_disk || other.used_disk,
        }
    }
}

/// Counts what was examined on this thread.
pub fn add(more: Examined) {
    EXAMINED.set(EXAMINED.get().and(more));
}

/// Counts keys and documents.
pub fn add_counts(keys: u64, documents: u64) {
    add(Examined { keys, documents, ..Examined::NOTHING });
}

/// Notes that documents are sorted.
pub fn note_sort() {
    add(Examined { has_sorted: true, ..Examined::NOTHING });
}

/// Notes that files are used.
pub(crate) fn note_disk() {
    add(Examined { used_disk: true, ..Examined::NOTHING });
}

/// What was examined on this thread since the last time that this was asked.
pub fn take() -> Examined {
    EXAMINED.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_counted_once() {
        take();
        add_counts(2, 3);
        note_sort();
        add_counts(1, 0);
        let taken = take();
        assert_eq!(taken, Examined { keys: 3, documents: 3, has_sorted: true, used_disk: false });
        assert_eq!(take(), Examined::default());
        let disk = Examined { used_disk: true, ..Examined::default() };
        assert_eq!(taken.and(disk), Examined { used_disk: true, ..taken });
    }
}
