//! Counts what a request examines: keys, documents, the time besides, and the keys that it writes;
//! also the documents that its scans give out, and the latches that it takes. The profiler and
//! `currentOp` report it.
//!
//! It is counted by thread, without a lock or an allocation: a request runs on one thread, and the
//! workers that it has besides hand over what they counted ([`crate::cores::Workers`]).

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of what a request has examined.
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
    /// Entries of indexes that were made, those of `_id` too.
    pub keys_inserted: u64,
    /// Entries of indexes that were taken away.
    pub keys_deleted: u64,
    /// Documents that scans of collections and indexes gave out.
    pub found: i64,
    /// Latches that were taken.
    pub latches: Latches,
}

/// Counts of the latches that a request has taken: shared, by what writes, or exclusively, by what
/// replaces whole trees.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Latches {
    /// Databases' latches that were shared.
    pub databases_shared: u64,
    /// Databases' latches that were held exclusively.
    pub databases_exclusive: u64,
    /// Collections' latches that were shared.
    pub collections_shared: u64,
    /// Collections' latches that were held exclusively.
    pub collections_exclusive: u64,
}

impl Latches {
    const NONE: Latches = Latches {
        databases_shared: 0,
        databases_exclusive: 0,
        collections_shared: 0,
        collections_exclusive: 0,
    };

    /// Both together.
    pub fn and(self, other: Latches) -> Latches {
        Latches {
            databases_shared: self.databases_shared + other.databases_shared,
            databases_exclusive: self.databases_exclusive + other.databases_exclusive,
            collections_shared: self.collections_shared + other.collections_shared,
            collections_exclusive: self.collections_exclusive + other.collections_exclusive,
        }
    }
}

/// The counts of a running request, for other threads to read.
#[derive(Default, Debug)]
pub struct Live {
    keys: AtomicU64,
    documents: AtomicU64,
}

impl Live {
    /// Returns the approximate numbers of keys and documents: small amounts are added now and then.
    pub fn counts(&self) -> (u64, u64) {
        (self.keys.load(Ordering::Relaxed), self.documents.load(Ordering::Relaxed))
    }
}

/// Counts that other threads don't see yet.
#[derive(Default)]
struct Unreported {
    live: RefCell<Option<Arc<Live>>>,
    keys: Cell<u64>,
    documents: Cell<u64>,
}

/// The count that is reported at once: an atomic write for each document would be felt.
const REPORTED_COUNT: u64 = 64;

thread_local! {
    static EXAMINED: Cell<Examined> = const { Cell::new(Examined::NOTHING) };
    static UNREPORTED: Unreported = const {
        Unreported { live: RefCell::new(None), keys: Cell::new(0), documents: Cell::new(0) }
    };
}

/// Has what this thread examines from now on reported to `live`, or to no other thread.
pub fn report_to(live: Option<Arc<Live>>) {
    UNREPORTED.with(|unreported| {
        unreported.live.replace(live);
        unreported.keys.set(0);
        unreported.documents.set(0);
    });
}

impl Unreported {
    fn add(&self, keys: u64, documents: u64) {
        let (keys, documents) = (self.keys.get() + keys, self.documents.get() + documents);
        if keys + documents < REPORTED_COUNT {
            self.keys.set(keys);
            self.documents.set(documents);
            return;
        }
        if let Some(live) = &*self.live.borrow() {
            live.keys.fetch_add(keys, Ordering::Relaxed);
            live.documents.fetch_add(documents, Ordering::Relaxed);
        }
        self.keys.set(0);
        self.documents.set(0);
    }
}

impl Examined {
    const NOTHING: Examined = Examined {
        keys: 0,
        documents: 0,
        has_sorted: false,
        used_disk: false,
        keys_inserted: 0,
        keys_deleted: 0,
        found: 0,
        latches: Latches::NONE,
    };

    /// Both together.
    pub fn and(self, other: Examined) -> Examined {
        Examined {
            keys: self.keys + other.keys,
            documents: self.documents + other.documents,
            has_sorted: self.has_sorted || other.has_sorted,
            used_disk: self.used_disk || other.used_disk,
            keys_inserted: self.keys_inserted + other.keys_inserted,
            keys_deleted: self.keys_deleted + other.keys_deleted,
            found: self.found + other.found,
            latches: self.latches.and(other.latches),
        }
    }
}

/// Counts what was examined on this thread.
pub fn add(more: Examined) {
    EXAMINED.set(EXAMINED.get().and(more));
}

/// Reports to other threads the keys and documents that are examined now, and counted later.
pub fn report(keys: u64, documents: u64) {
    UNREPORTED.with(|unreported| unreported.add(keys, documents));
}

/// Counts entries of indexes that were made and taken away.
pub fn add_written(keys_inserted: u64, keys_deleted: u64) {
    add(Examined { keys_inserted, keys_deleted, ..Examined::NOTHING });
}

/// Counts keys, documents, and those of them that a scan gave out.
pub fn add_scanned(keys: u64, documents: u64, found: u64) {
    let found = i64::try_from(found).unwrap_or(i64::MAX);
    add(Examined { keys, documents, found, ..Examined::NOTHING });
}

/// Counts one less that a scan gave out: a script refused it later.
pub fn take_back() {
    add(Examined { found: -1, ..Examined::NOTHING });
}

/// Counts latches that were taken.
pub fn add_latches(latches: Latches) {
    add(Examined { latches, ..Examined::NOTHING });
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

/// Takes the counts of this thread since they were taken last.
pub fn take() -> Examined {
    EXAMINED.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_counts_start_again_at_zero() {
        take();
        add_counts(2, 3);
        note_sort();
        add_counts(1, 0);
        let taken = take();
        let counted = Examined { keys: 3, documents: 3, has_sorted: true, ..Examined::default() };
        assert_eq!(taken, counted);
        assert_eq!(take(), Examined::default());
        let disk = Examined { used_disk: true, ..Examined::default() };
        assert_eq!(taken.and(disk), Examined { used_disk: true, ..taken });
        add_written(2, 1);
        add_written(1, 0);
        add_latches(Latches { collections_shared: 2, ..Latches::default() });
        add_latches(Latches {
            collections_shared: 1,
            databases_exclusive: 1,
            ..Latches::default()
        });
        add_scanned(0, 0, 4);
        take_back();
        let written = take();
        let expected =
            Latches { collections_shared: 3, databases_exclusive: 1, ..Latches::default() };
        assert_eq!((written.latches, written.found), (expected, 3));
        assert_eq!((written.keys_inserted, written.keys_deleted, written.keys), (3, 1, 0));
    }

    #[test]
    fn another_thread_reads_what_is_examined_now() {
        let live = Arc::new(Live::default());
        report_to(Some(Arc::clone(&live)));
        for _ in 0..REPORTED_COUNT {
            report(1, 1);
        }
        assert_eq!(live.counts(), (REPORTED_COUNT, REPORTED_COUNT));
        report_to(None);
        report(REPORTED_COUNT, 0);
        assert_eq!(live.counts(), (REPORTED_COUNT, REPORTED_COUNT), "it is another request's");
    }
}
