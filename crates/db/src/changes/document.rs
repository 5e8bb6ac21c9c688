//! A change event as clients get it.

use frond_doc::document::DOCUMENT_BYTES_MAX;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Timestamp, Value};
use frond_engine::Sequence;
use frond_query::Code;

use crate::error::Error;
use crate::event::{Event, EventKind};

/// An event may be this much larger than a stored document.
const EVENT_BYTES_MAX: usize = DOCUMENT_BYTES_MAX + (16 << 10);

/// What is told of one change.
pub struct Told {
    /// The database's name as clients know it.
    pub database: String,
    /// What happened; `None`: the stream ends.
    pub event: Option<Event>,
    /// The client's transaction to which it belongs.
    pub transaction: Option<DocumentBuf>,
    /// When it happened, in milliseconds since 1970.
    pub wall_millis: i64,
}

impl Told {
    /// The end of a stream.
    pub fn invalidation(wall_millis: i64) -> Told {
        Told { database: String::new(), event: None, transaction: None, wall_millis }
    }
}

/// The document of an event. `looked_up` is what an update's document is now, if that is asked for.
///
/// # Errors
/// `BSONObjectTooLarge` (10334).
pub fn of(
    told: &Told,
    sequence: Sequence,
    id: &DocumentBuf,
    looked_up: Option<Option<DocumentBuf>>,
) -> Result<DocumentBuf, Error> {
    let mut out = DocumentBuilder::new();
    let time = Timestamp(sequence.0);
    out.append("_id", Value::Document(id.view()));
    let Some(event) = &told.event else {
        out.append("operationType", Value::String("invalidate"));
        out.append("clusterTime", Value::Timestamp(time));
        out.append("wallTime", Value::DateTime(told.wall_millis));
        return Ok(out.build());
    };
    out.append("operationType", Value::String(name(event.kind)));
    out.append("clusterTime", Value::Timestamp(time));
    out.append("wallTime", Value::DateTime(told.wall_millis));
    if let Some(transaction) = &told.transaction {
        out.append("txnNumber", transaction.get("n").unwrap_or(Value::Null));
        out.begin_document("lsid").append("id", transaction.get("s").unwrap_or(Value::Null)).end();
    }
    let has_document = matches!(event.kind, EventKind::Insert | EventKind::Replace);
    if has_document {
        let document = event.document.as_ref().ok_or_else(too_large)?;
        out.append("fullDocument", Value::Document(document.view()));
    }
    match &looked_up {
        Some(Some(document)) => {
            out.append("fullDocument", Value::Document(document.view()));
        }
        Some(None) => {
            out.append("fullDocument", Value::Null);
        }
        None => {}
    }
    out.begin_document("ns").append("db", Value::String(&told.database));
    if !event.collection.is_empty() {
        out.append("coll", Value::String(&event.collection));
    }
    out.end();
    if let Some(Value::String(to)) = event.facts.get("to") {
        out.begin_document("to").append("db", Value::String(&told.database));
        out.append("coll", Value::String(to)).end();
    }
    if let Some(key) = key(event) {
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

/// The `_id` of the event's document.
fn key(event: &Event) -> Option<Value<'_>> {
    let of = |document: Document<'_>| document.get("_id").is_some();
    match &event.document {
        Some(document) if of(document.view()) => document.get("_id"),
        _ => event.facts.get("key").and_then(|key| key.as_document()?.get("_id")),
    }
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
