//! A change event as clients get it.

use frond_doc::document::DOCUMENT_BYTES_MAX;
use frond_doc::{DocumentBuf, DocumentBuilder, Timestamp, Value};
use frond_engine::Sequence;
use frond_query::Code;

use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::tail::record::key;

/// An event may be this much larger than a stored document.
const EVENT_BYTES_MAX: usize = DOCUMENT_BYTES_MAX + (16 << 10);

/// What is told of one change.
pub struct Told<'a> {
    /// The database's name as clients know it.
    pub database: &'a str,
    /// What happened.
    pub event: &'a Event,
    /// The client's transaction to which it belongs.
    pub transaction: Option<&'a DocumentBuf>,
    /// The document that the event has.
    pub document: Option<DocumentBuf>,
    /// What an update's document is now, if that is asked for.
    pub looked_up: Option<Option<DocumentBuf>>,
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
pub fn of(told: &Told<'_>, sequence: Sequence, id: &DocumentBuf) -> Result<DocumentBuf, Error> {
    let mut out = DocumentBuilder::new();
    let Told { event, .. } = told;
    out.append("_id", Value::Document(id.view()));
    out.append("operationType", Value::String(name(event.kind)));
    out.append("clusterTime", Value::Timestamp(Timestamp(sequence.0)));
    out.append("wallTime", Value::DateTime(event.scope.wall_millis));
    if let Some(transaction) = told.transaction {
        out.append("txnNumber", transaction.get("n").unwrap_or(Value::Null));
        out.begin_document("lsid").append("id", transaction.get("s").unwrap_or(Value::Null)).end();
    }
    let has_document = matches!(event.kind, EventKind::Insert | EventKind::Replace);
    if has_document {
        let document = told.document.as_ref().ok_or_else(too_large)?;
        out.append("fullDocument", Value::Document(document.view()));
    }
    match &told.looked_up {
        Some(Some(document)) => {
            out.append("fullDocument", Value::Document(document.view()));
        }
        Some(None) => {
            out.append("fullDocument", Value::Null);
        }
        None => {}
    }
    out.begin_document("ns").append("db", Value::String(told.database));
    if !event.scope.collection.is_empty() {
        out.append("coll", Value::String(&event.scope.collection));
    }
    out.end();
    if let Some(Value::String(to)) = event.facts.get("to") {
        out.begin_document("to").append("db", Value::String(told.database));
        out.append("coll", Value::String(to)).end();
    }
    if let Some(key) = key(event, told.document.as_ref()) {
        out.begin_document("documentKey").append("_id", key).end();
    }
    if event.kind == EventKind::Update {
        let description = event.facts.get("description").ok_or_else(too_large)?;
        out.append("updateDescription", description);
    }
    let out = out.build();
    if EVENT_BYTES_MAX < out.as_bytes().len() {
        return Err(too_large());
    }
    Ok(out)
}

fn name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Insert => "insert",
        EventKind::Replace => "replace",
        EventKind::Update => "update",
        EventKind::Delete => "delete",
        EventKind::Drop => "drop",
        EventKind::Rename => "rename",
        EventKind::DropDatabase => "dropDatabase",
        EventKind::Rewritten | EventKind::InTransaction => "invalidate",
    }
}

fn too_large() -> Error {
    let message = "the change event is larger than a document can be (16 MB): the stream can't tell \
                   it; begin another behind it";
    Error::invalid(Code::BSONObjectTooLarge, message)
}
