//! Sorting what was found, in memory.
//!
//! With a limit only as many documents are kept as can come out (a heap whose greatest goes when a
//! lesser one comes); without, all of them, up to a bound. Equal documents keep their order.

use std::collections::BinaryHeap;

use bytes::Bytes;
use frond_doc::Document;
use frond_query::{Code, QueryError};
use frond_store::budget::Reservation;

use crate::collection::scan::{FetchedDocument, Row};
use crate::error::Error;

/// Makes the key by which a document is sorted.
pub(crate) type KeyOf<'a> = dyn Fn(Document<'_>) -> Result<Bytes, QueryError> + 'a;

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    key: Bytes,
    position: u64,
}

/// A thing that is sorted.
pub(crate) trait Sortable {
    /// Returns the document that its key is made of.
    fn document(&self) -> Document<'_>;
}

impl Sortable for FetchedDocument {
    fn document(&self) -> Document<'_> {
        self.document.view()
    }
}

impl Sortable for Row {
    fn document(&self) -> Document<'_> {
        self.fields()
    }
}

struct Kept<T> {
    rank: Ranked,
    found: T,
}

impl<T> PartialEq for Kept<T> {
    fn eq(&self, other: &Kept<T>) -> bool {
        self.rank == other.rank
    }
}

impl<T> Eq for Kept<T> {}

impl<T> PartialOrd for Kept<T> {
    fn partial_cmp(&self, other: &Kept<T>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Kept<T> {
    fn cmp(&self, other: &Kept<T>) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl<T: Sortable> Kept<T> {
    fn bytes(&self) -> usize {
        self.rank.key.len() + self.found.document().as_bytes().len()
    }
}

/// Returns what `found` gives in the order of its keys; with `keep`, only so many of the first.
///
/// # Errors
/// `QueryExceededMemoryLimitNoDiskUseAllowed` (292) if more would have to be kept than
/// `reservation` allows.
pub(crate) fn sorted<T: Sortable>(
    found: impl Iterator<Item = Result<T, Error>>,
    key_of: &KeyOf<'_>,
    keep: Option<usize>,
    mut reservation: Reservation,
) -> Result<Vec<T>, Error> {
    let mut heap = BinaryHeap::new();
    let mut bytes = 0;
    for (position, found) in found.enumerate() {
        let found = found?;
        let key = key_of(found.document())?;
        let kept = Kept { rank: Ranked { key, position: position as u64 }, found };
        bytes += kept.bytes();
        heap.push(kept);
        if keep.is_some_and(|keep| heap.len() > keep) {
            bytes -= heap.pop().map_or(0, |greatest: Kept<T>| greatest.bytes());
        }
        reservation.hold(bytes).map_err(|exceeded| {
            let message = format!(
                "Executor error during find command :: caused by :: Sort exceeded memory limit of \
                 {exceeded}, but did not opt in to external sorting."
            );
            Error::invalid(Code::QueryExceededMemoryLimitNoDiskUseAllowed, message)
        })?;
    }
    Ok(heap.into_sorted_vec().into_iter().map(|kept| kept.found).collect())
}
