//! A change event as clients get it.

use frond_doc::document::DOCUMENT_BYTES_MAX;
use frond_doc::{Binary, DocumentBuf, DocumentBuilder, Timestamp, Value};
use frond_engine::Sequence;
use frond_query::Code;

use crate::error::Error;
use crate::event::difference::PARTS;
use crate::event::{Event, EventKind};
use crate::tail::record::key;

/// The most bytes of an event: a little more than a stored document may have.
pub const EVENT_BYTES_MAX: usize = DOCUMENT_BYTES_MAX + (16 << 10);

/// The parts that the document of one event is made of.
pub struct EventSource<'a> {
    /// The database's name as clients know it.
    pub database: &'a str,
    /// The event.
    pub event: &'a Event,
    /// The client's transaction to which it belongs.
    pub transaction: Option<&'a DocumentBuf>,
    /// The document that the event has.
    pub document: Option<DocumentBuf>,
    /// The document before the change, if it is wanted.
    pub before: Option<Option<DocumentBuf>>,
    /// The updated document, if it is wanted.
    pub looked_up: Option<Option<DocumentBuf>>,
    /// Whether it has the fields that only expanded events have.
    pub is_expanded: bool,
    /// Whether it says what differs between a commit and a moment, whatever lay between.
    pub is_net: bool,
}

/// The document that says that a stream ends.
pub fn of_invalidation(sequence: Sequence, id: &DocumentBuf, wall_millis: i64) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    out.append("_id", Value::Document(id.view()));
    out.append("operationType", Value::String("invalidate"));
    out.append("clusterTime", Value::Timestamp(Timestamp(sequence.0)));
    out.append("wallTime", Value::DateTime(wall_millis));
    out.build()
}

/// The document of an event.
///
/// # Errors
/// `BSONObjectTooLarge` (10334).
pub fn of(
    source: &EventSource<'_>,
    sequence: Sequence,
    id: &DocumentBuf,
) -> Result<DocumentBuf, Error> {
    let mut out = DocumentBuilder::new();
    let EventSource { event, .. } = source;
    out.append("_id", Value::Document(id.view()));
    out.append("operationType", Value::String(name(event.kind)));
    out.append("clusterTime", Value::Timestamp(Timestamp(sequence.0)));
    if let Some(uuid) = event.scope.uuid.as_ref().filter(|_| source.is_expanded) {
        out.append("collectionUUID", Value::Binary(Binary { subtype: 4, bytes: uuid }));
    }
    out.append("wallTime", Value::DateTime(event.scope.wall_millis));
    if let Some(transaction) = source.transaction {
        out.append("txnNumber", transaction.get("n").unwrap_or(Value::Null));
        out.begin_document("lsid").append("id", transaction.get("s").unwrap_or(Value::Null)).end();
    }
    let has_document = matches!(event.kind, EventKind::Insert | EventKind::Replace);
    if has_document {
        let document = source.document.as_ref().ok_or_else(too_large)?;
        out.append("fullDocument", Value::Document(document.view()));
    }
    out.begin_document("ns").append("db", Value::String(source.database));
    if !event.scope.collection.is_empty() {
        out.append("coll", Value::String(&event.scope.collection));
    }
    out.end();
    if let Some(Value::String(to)) = event.facts.get("to") {
        out.begin_document("to").append("db", Value::String(source.database));
        out.append("coll", Value::String(to)).end();
    }
    if let Some(key) = key(event, source.document.as_ref()) {
        out.begin_document("documentKey").append("_id", key).end();
    }
    if event.kind == EventKind::Update {
        describe_update(source, &mut out)?;
    }
    if source.is_expanded {
        describe_operation(source, &mut out);
    }
    for (name, image) in
        [("fullDocumentBeforeChange", &source.before), ("fullDocument", &source.looked_up)]
    {
        match image {
            Some(Some(document)) => {
                out.append(name, Value::Document(document.view()));
            }
            Some(None) => {
                out.append(name, Value::Null);
            }
            None => {}
        }
    }
    if source.is_net {
        out.begin_document("frond").append("net", Value::Boolean(true)).end();
    }
    Ok(out.build())
}

/// Appends the description of an update.
///
/// # Errors
/// `BSONObjectTooLarge` (10334) if that was too large.
fn describe_update(source: &EventSource<'_>, out: &mut DocumentBuilder) -> Result<(), Error> {
    let description = source.event.facts.get("description").ok_or_else(too_large)?;
    let Value::Document(description) = description else { return Err(too_large()) };
    out.begin_document("updateDescription");
    let parts = description.field(PARTS.as_bytes());
    for field in description.elements().filter(|field| field.name != PARTS.as_bytes()) {
        out.append_element(&field);
    }
    match parts {
        _ if !source.is_expanded => {}
        Some(parts) => {
            out.append_element(&parts);
        }
        None => {
            out.begin_document(PARTS).end();
        }
    }
    out.end();
    Ok(())
}

/// Appends the description of a command to an expanded event.
fn describe_operation(source: &EventSource<'_>, out: &mut DocumentBuilder) {
    let facts = &source.event.facts;
    if let Some(Value::String(to)) = facts.get("to") {
        out.begin_document("operationDescription");
        out.begin_document("to").append("db", Value::String(source.database));
        out.append("coll", Value::String(to)).end();
        if let Some(target) = facts.get("dropTarget") {
            out.append("dropTarget", target);
        }
        out.end();
    }
    if let Some(what) = facts.get("what") {
        out.append("operationDescription", what);
    }
    if let Some(was) = facts.get("was") {
        out.append("stateBeforeChange", was);
    }
}

/// The `operationType`.
pub fn name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Insert => "insert",
        EventKind::Replace => "replace",
        EventKind::Update => "update",
        EventKind::Delete => "delete",
        EventKind::Drop => "drop",
        EventKind::Rename => "rename",
        EventKind::DropDatabase => "dropDatabase",
        EventKind::Create => "create",
        EventKind::CreateIndexes => "createIndexes",
        EventKind::DropIndexes => "dropIndexes",
        EventKind::Modify => "modify",
        EventKind::Rewritten | EventKind::PreImage | EventKind::InTransaction => "invalidate",
    }
}

/// The error of an event that no reply has room for.
pub fn too_large() -> Error {
    let message = "the change event is larger than a document can be (16 MB): the stream can't \
                   report it; begin another one after it";
    Error::invalid(Code::BSONObjectTooLarge, message)
}
