//! Events for change streams about collections and databases themselves.

use frond_doc::Document;
use frond_engine::Transaction;

use crate::database::Database;
use crate::event::{EventKind, EventRecorder};

/// Records an event without further facts, of a collection or with no name of the whole branch.
pub(crate) fn record_branch_event(
    database: &Database,
    transaction: &mut Transaction,
    branch: &str,
    collection: &str,
    kind: EventKind,
) {
    record_event(database, transaction, (branch, collection, None), kind, Document::empty());
}

/// Records an event of a collection that a UUID names.
pub(crate) fn record_event(
    database: &Database,
    transaction: &mut Transaction,
    (branch, collection, uuid): (&str, &str, Option<&[u8; 16]>),
    kind: EventKind,
    facts: Document<'_>,
) {
    let scope = (database.repository_name(), branch, collection);
    if let Some(recorder) = EventRecorder::of_collection(database.frond().engine(), scope, uuid) {
        recorder.record(transaction, kind, facts);
    }
}
