//! Sorting what was found, in memory.
//!
//! With a limit only as many documents are kept as can come out (a heap whose greatest goes when a
//! lesser one comes); without, all of them, up to a bound. Equal documents keep their order.

use std::collections::BinaryHeap;

use bytes::Bytes;
use frond_doc::Document;
use frond_query::Code;

use crate::collection::scan::Found;
use crate::error::Error;

/// Bytes of documents and sort keys kept at most, as MongoDB's default.
const SORT_BYTES_MAX: usize = 100 << 20;

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    key: Bytes,
    position: u64,
}

struct Kept {
    rank: Ranked,
    found: Found,
}

impl PartialEq for Kept {
    fn eq(&self, other: &Kept) -> bool {
        self.rank == other.rank
    }
}

impl Eq for Kept {}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Kept) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kept {
    fn cmp(&self, other: &Kept) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl Kept {
    fn bytes(&self) -> usize {
        self.rank.key.len() + self.found.document.as_bytes().len()
    }
}

/// Returns what `found` gives in the order of its keys; with `keep`, only so many of the first.
///
/// # Errors
/// `QueryExceededMemoryLimitNoDiskUseAllowed` (292) if more than 100 MB would have to be kept.
pub(crate) fn sorted(
    found: impl Iterator<Item = Result<Found, Error>>,
    key_of: &dyn Fn(Document<'_>) -> Bytes,
    keep: Option<usize>,
) -> Result<Vec<Found>, Error> {
    let mut heap = BinaryHeap::new();
    let mut bytes = 0;
    for (position, found) in found.enumerate() {
        let found = found?;
        let key = key_of(found.document.view());
        let kept = Kept { rank: Ranked { key, position: position as u64 }, found };
        bytes += kept.bytes();
        heap.push(kept);
        if keep.is_some_and(|keep| heap.len() > keep) {
            bytes -= heap.pop().map_or(0, |greatest: Kept| greatest.bytes());
        }
        if bytes > SORT_BYTES_MAX {
            let message = format!(
                "Executor error during find command :: caused by :: Sort exceeded memory limit of \
                 {SORT_BYTES_MAX} bytes, but did not opt in to external sorting."
            );
            return Err(Error::invalid(Code::QueryExceededMemoryLimitNoDiskUseAllowed, message));
        }
    }
    Ok(heap.into_sorted_vec().into_iter().map(|kept| kept.found).collect())
}
