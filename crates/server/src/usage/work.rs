//! Counts the work of operations: documents that they returned and changed, the entries they
//! examined for that, and documents that expired. `serverStatus.metrics` shows the counts.

use frond_db::request_profile::{Plan, RequestProfile};
use frond_query::examined::Latches;

use super::Counters;

/// An action on a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DocumentEvent {
    /// They were deleted.
    Deleted,
    /// They were inserted; not by an upsert.
    Inserted,
    /// They were sent in a cursor's batch.
    Returned,
    /// They were found by an update, whether or not it changed them.
    Updated,
}

impl DocumentEvent {
    /// All, with their names in `metrics.document`.
    pub const ALL: [(DocumentEvent, &'static str); 4] = [
        (DocumentEvent::Deleted, "deleted"),
        (DocumentEvent::Inserted, "inserted"),
        (DocumentEvent::Returned, "returned"),
        (DocumentEvent::Updated, "updated"),
    ];
}

/// The work of commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Examined {
    /// Entries of indexes that they examined.
    pub keys: u64,
    /// Documents.
    pub documents: u64,
    /// Commands that went through a collection.
    pub collection_scans: u64,
    /// Those of them that a tailable cursor asked for.
    pub tailable_scans: u64,
    /// Commands that sorted what no index gave in order.
    pub sorts: u64,
    /// Commands that took longer than their `maxTimeMS`.
    pub out_of_time: u64,
}

/// The documents that expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Expired {
    /// The number of searches for them.
    pub passes: u64,
    /// Documents that were removed.
    pub documents: u64,
}

/// Counters of what operations did.
#[derive(Default)]
pub struct Work {
    documents: Counters<4>,
    examined: Counters<6>,
    latches: Counters<4>,
    expired: Counters<2>,
}

impl Work {
    /// Counts documents.
    pub fn count_documents(&self, event: DocumentEvent, count: u64) {
        if 0 < count {
            self.documents.add(event as usize, count);
        }
    }

    /// Returns how many documents there were.
    pub fn documents(&self, event: DocumentEvent) -> u64 {
        self.documents.read()[event as usize]
    }

    /// Counts what a command did. One that reads a cursor on has the plan of the one that opened
    /// it (`goes_on`), which is counted already.
    pub fn count_command(&self, work: &RequestProfile, goes_on: bool, is_tailable: bool) {
        let is_scan = !goes_on && scans_collection(&work.plan);
        let counts = [
            work.examined.keys,
            work.examined.documents,
            is_scan.into(),
            (is_scan && is_tailable).into(),
            work.examined.has_sorted.into(),
        ];
        for (position, count) in counts.into_iter().enumerate().filter(|(_, count)| 0 < *count) {
            self.examined.add(position, count);
        }
        let Latches { databases_shared, databases_exclusive, .. } = work.examined.latches;
        let Latches { collections_shared, collections_exclusive, .. } = work.examined.latches;
        let counts =
            [databases_shared, databases_exclusive, collections_shared, collections_exclusive];
        for (position, count) in counts.into_iter().enumerate().filter(|(_, count)| 0 < *count) {
            self.latches.add(position, count);
        }
    }

    /// Returns the latches that commands have taken.
    pub fn latches(&self) -> Latches {
        let [databases_shared, databases_exclusive, collections_shared, collections_exclusive] =
            self.latches.read();
        Latches { databases_shared, databases_exclusive, collections_shared, collections_exclusive }
    }

    /// Counts a command that took longer than its `maxTimeMS`.
    pub fn count_out_of_time(&self) {
        self.examined.add(5, 1);
    }

    /// Returns the work of commands.
    pub fn examined(&self) -> Examined {
        let [keys, documents, collection_scans, tailable_scans, sorts, out_of_time] =
            self.examined.read();
        Examined { keys, documents, collection_scans, tailable_scans, sorts, out_of_time }
    }

    /// Counts a search for what has expired, and what it removed.
    pub fn count_expired(&self, documents: u64) {
        self.expired.add(0, 1);
        self.expired.add(1, documents);
    }

    /// Returns the documents that expired.
    pub fn expired(&self) -> Expired {
        let [passes, documents] = self.expired.read();
        Expired { passes, documents }
    }
}

fn scans_collection(plan: &Plan) -> bool {
    match plan {
        Plan::Scans(scans) => scans.iter().any(|scan| scan.stage == "COLLSCAN"),
        _ => false,
    }
}
