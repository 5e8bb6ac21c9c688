//! Points of a time series that both sides took from where they lay.
//!
//! A point lies by its source, its time and its `_id`. One that gets another source is removed and
//! inserted, as the trees see it: where both sides did that, both removals agree and both
//! insertions are taken, so that the point would be there twice; where one deleted it, the other
//! would bring it back. Neither is what a merge of documents gives, so it is a conflict.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use frond_db::inside::large::read_document;
use frond_db::inside::{Error, Series};
use frond_store::ChunkStore;
use frond_tree::{Tree, TreeError, Value};

/// Checks whether both sides took a point away, and one of them put it elsewhere. Reads the keys
/// that changed, and documents only of points that both sides removed.
///
/// # Errors
/// `Error` if a tree can't be read.
pub(super) fn are_moved_by_both(
    store: &Arc<dyn ChunkStore>,
    series: &Series,
    base: &Tree,
    sides: [&Tree; 2],
) -> Result<bool, Error> {
    let identity = |value: &Value| -> Result<Bytes, TreeError> {
        Ok(series.identity(read_document(&**store, value)?.view()))
    };
    let mut removed = BTreeSet::new();
    for change in base.diff(store, sides[0]) {
        let change = change?;
        if change.to.is_none() && sides[1].get(&**store, &change.key)?.is_none() {
            change.from.as_ref().map(&identity).transpose()?.map(|point| removed.insert(point));
        }
    }
    if removed.is_empty() {
        return Ok(false);
    }
    for side in sides {
        for change in base.diff(store, side) {
            let change = change?;
            let point = change.to.as_ref().filter(|_| change.from.is_none()).map(&identity);
            if point.transpose()?.is_some_and(|point| removed.contains(&point)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
