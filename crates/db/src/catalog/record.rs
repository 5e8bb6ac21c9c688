//! Events for change streams about collections and databases themselves.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_engine::Transaction;

use crate::database::Database;
use crate::definition::{IndexSpec, clustered};
use crate::event::{EventKind, EventRecorder};
use crate::schema::entry::CatalogEntry;
use crate::timeseries::Series;

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

/// The facts about a collection that was made with these options.
pub(crate) fn creation(options: Document<'_>) -> DocumentBuf {
    let mut facts = DocumentBuilder::new();
    facts.begin_document("what");
    options.iter().for_each(|(option, value)| {
        facts.append(option, value);
    });
    let has_id_index = ["viewOn", "clusteredIndex"].iter().all(|name| options.get(name).is_none());
    if has_id_index && Series::of(options).is_none() {
        facts.append("idIndex", Value::Document(clustered::id_index(options).view()));
    }
    facts.end();
    facts.build()
}

/// The facts about indexes that were made, or dropped, together.
pub(crate) fn indexes<'s>(specs: impl Iterator<Item = &'s IndexSpec>) -> DocumentBuf {
    let mut facts = DocumentBuilder::new();
    facts.begin_document("what").begin_array("indexes");
    specs.for_each(|spec| {
        facts.push(Value::Document(spec.to_document().view()));
    });
    facts.end().end();
    facts.build()
}

/// Records that a collection becomes another one by a command of versions, before the changes of
/// its documents: that it is there, or which indexes it loses and which options change.
pub fn record_definition(
    recorder: &EventRecorder,
    transaction: &mut Transaction,
    before: Option<&CatalogEntry>,
    after: &CatalogEntry,
) {
    let Some(before) = before else {
        let facts = creation(after.options.view());
        return recorder.record(transaction, EventKind::Create, facts.view());
    };
    record_indexes(recorder, transaction, EventKind::DropIndexes, (before, after));
    let changes = changed_options(before.options.view(), after.options.view());
    if !changes.view().is_empty() {
        let mut facts = DocumentBuilder::new();
        facts.append("what", Value::Document(changes.view()));
        facts.begin_document("was");
        facts.append("collectionOptions", Value::Document(before.options.view())).end();
        recorder.record(transaction, EventKind::Modify, facts.build().view());
    }
}

/// The same behind the changes of its documents: which indexes it gets.
pub fn record_new_indexes(
    recorder: &EventRecorder,
    transaction: &mut Transaction,
    before: Option<&CatalogEntry>,
    after: &CatalogEntry,
) {
    let none = CatalogEntry { indexes: Vec::new(), ..after.clone() };
    let both = (after, before.unwrap_or(&none));
    record_indexes(recorder, transaction, EventKind::CreateIndexes, both);
}

/// Records those indexes of `of` that `other` doesn't have.
fn record_indexes(
    recorder: &EventRecorder,
    transaction: &mut Transaction,
    kind: EventKind,
    (of, other): (&CatalogEntry, &CatalogEntry),
) {
    let is_other = |spec: &&IndexSpec| other.indexes.iter().all(|(theirs, _)| theirs != *spec);
    let mut specs = of.indexes.iter().map(|(spec, _)| spec).filter(is_other).peekable();
    if specs.peek().is_some() {
        recorder.record(transaction, kind, indexes(specs).view());
    }
}

/// The options that differ, as `collMod` would be given them.
fn changed_options(before: Document<'_>, after: Document<'_>) -> DocumentBuf {
    let mut changes = DocumentBuilder::new();
    let differing = after.iter().filter(|(option, value)| before.get(option) != Some(*value));
    differing.for_each(|(option, value)| {
        changes.append(option, value);
    });
    if before.get("validator").is_some() && after.get("validator").is_none() {
        changes.begin_document("validator").end();
    }
    changes.build()
}
