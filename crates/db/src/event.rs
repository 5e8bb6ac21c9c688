//! The events that a transaction records of its changes, for change streams, and their form in the
//! log.
//!
//! The engine keeps them (`frond_engine::ChangeEvent`): a *scope* (which collection, when), a
//! *head* (what happened) and content (the document of an insertion or a replacement, which the log
//! has once). The bytes are docs/format/log.md's "Events".
//!
//! Nothing is recorded where the engine doesn't keep events, and nothing of `system.` collections
//! and of `admin`, `config` and `local`.

pub(crate) mod difference;

use std::sync::Arc;

use bytes::Bytes;
use frond_doc::{Binary, Document, DocumentBuf, DocumentBuilder, Value};
use frond_engine::{ChangeEvent, Engine, EventContent, LoggedContent, LoggedEvent, Transaction};

use crate::error::Error;
use crate::session::RetryKey;

/// Databases whose changes have no events.
const SILENT_DATABASES: &[&str] = &["admin", "config", "local"];
/// The prefix of the names of collections whose changes have no events.
const SILENT_PREFIX: &str = "system.";

/// About how many bytes a scope takes.
const SCOPE_BYTES: usize = 128;

/// The kind of event. Stored: never renumber.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// A document was inserted: the content, or without it one that is too large for an event.
    Insert = b'i' as isize,
    /// A document was replaced, likewise.
    Replace = b'r' as isize,
    /// A document was changed.
    Update = b'u' as isize,
    /// A document was removed.
    Delete = b'd' as isize,
    /// A collection was dropped.
    Drop = b'D' as isize,
    /// A collection was renamed.
    Rename = b'M' as isize,
    /// A database, or a branch of it, was dropped.
    DropDatabase = b'X' as isize,
    /// A collection, or a view, was made.
    Create = b'c' as isize,
    /// Indexes were made.
    CreateIndexes = b'x' as isize,
    /// Indexes were dropped.
    DropIndexes = b'y' as isize,
    /// Options of a collection, or of an index, were changed.
    Modify = b'm' as isize,
    /// A collection's documents are others now, without a list of which; without a collection's
    /// name, those of all.
    Rewritten = b'W' as isize,
    /// The document of the next event as it was before: the content.
    PreImage = b'p' as isize,
    /// All of the record belongs to a client's transaction.
    InTransaction = b'T' as isize,
}

const KINDS: &[EventKind] = &[
    EventKind::Insert,
    EventKind::Replace,
    EventKind::Update,
    EventKind::Delete,
    EventKind::Drop,
    EventKind::Rename,
    EventKind::DropDatabase,
    EventKind::Create,
    EventKind::CreateIndexes,
    EventKind::DropIndexes,
    EventKind::Modify,
    EventKind::Rewritten,
    EventKind::PreImage,
    EventKind::InTransaction,
];

/// The place and time of an event: the common part of many events in a row.
#[derive(Clone, Debug, Default)]
pub struct EventScope {
    /// The database, its branch, and the collection; empty where it concerns all.
    pub database: String,
    pub branch: String,
    pub collection: String,
    /// Milliseconds since 1970.
    pub wall_millis: i64,
    /// The id of the collection, whatever its name.
    pub uuid: Option<[u8; 16]>,
}

/// An event, as it is read back.
#[derive(Clone, Debug)]
pub struct Event {
    /// The kind of event.
    pub kind: EventKind,
    /// The place and time.
    pub scope: Arc<EventScope>,
    /// The fields of the head: `key`, `description`, `to` and others by kind.
    pub facts: DocumentBuf,
    /// The document.
    pub content: LoggedContent,
    /// The former document, where its collection keeps that.
    pub before: LoggedContent,
}

/// Records the events of one collection, or of a whole branch.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    scope: Bytes,
}

impl EventRecorder {
    /// Returns the recorder for a collection of a branch (with no name: all of it), if a change
    /// stream may ask for it.
    pub fn new(engine: &Engine, scope: (&str, &str, &str)) -> Option<EventRecorder> {
        EventRecorder::of_collection(engine, scope, None)
    }

    /// The same, of a collection that `uuid` names.
    pub fn of_collection(
        engine: &Engine,
        (database, branch, collection): (&str, &str, &str),
        uuid: Option<&[u8; 16]>,
    ) -> Option<EventRecorder> {
        let is_silent =
            SILENT_DATABASES.contains(&database) || collection.starts_with(SILENT_PREFIX);
        if !engine.records_events() || is_silent {
            return None;
        }
        // Most fit: it is made for each write.
        let mut scope = DocumentBuilder::with_capacity(SCOPE_BYTES);
        scope.append("d", Value::String(database)).append("b", Value::String(branch));
        scope
            .append("c", Value::String(collection))
            .append("w", Value::DateTime(engine.now_millis()));
        if let Some(uuid) = uuid {
            scope.append("u", Value::Binary(Binary { subtype: 4, bytes: uuid }));
        }
        Some(EventRecorder { scope: scope.build().into_bytes() })
    }

    /// Records an event without a document.
    pub fn record(&self, transaction: &mut Transaction, kind: EventKind, facts: Document<'_>) {
        self.record_with(transaction, kind, facts, EventContent::None);
    }

    /// Records an event with the content of a document, or without.
    pub fn record_with(
        &self,
        transaction: &mut Transaction,
        kind: EventKind,
        facts: Document<'_>,
        content: EventContent,
    ) {
        transaction.record_event(self.event(kind, facts, content));
    }

    /// The event of a document that is inserted: the content.
    pub fn insertion(&self, content: EventContent) -> ChangeEvent {
        self.event(EventKind::Insert, Document::empty(), content)
    }

    fn event(&self, kind: EventKind, facts: Document<'_>, content: EventContent) -> ChangeEvent {
        let letter = kind.letter();
        let head = match facts.is_empty() {
            true => Bytes::from_static(letter),
            false => [letter, facts.as_bytes()].concat().into(),
        };
        ChangeEvent { scope: self.scope.clone(), head, content }
    }
}

impl EventKind {
    /// The head of an event without facts. Each letter as it is stored, so that no memory is asked
    /// for by an insertion.
    fn letter(self) -> &'static [u8] {
        const LETTERS: &[u8; 1 << u8::BITS] = &{
            let mut letters = [0; 1 << u8::BITS];
            let mut letter = 0;
            while letter < letters.len() {
                letters[letter] = letter as u8;
                letter += 1;
            }
            letters
        };
        &LETTERS[self as usize..][..1]
    }

    /// Whether only clients that ask for expanded events get it.
    pub fn is_expanded(self) -> bool {
        matches!(
            self,
            EventKind::Create
                | EventKind::CreateIndexes
                | EventKind::DropIndexes
                | EventKind::Modify
        )
    }
}

/// Records that a transaction with any events is all a client's.
pub(crate) fn record_transaction(transaction: &mut Transaction, key: RetryKey) {
    if transaction.events().is_empty() {
        return;
    }
    let mut head = vec![EventKind::InTransaction as u8];
    let mut facts = DocumentBuilder::new();
    let session = Binary { subtype: 4, bytes: &key.session };
    facts.append("s", Value::Binary(session)).append("n", Value::Int64(key.number));
    head.extend_from_slice(facts.build().as_bytes());
    let scope = DocumentBuf::empty().into_bytes();
    transaction.record_event(ChangeEvent { scope, head: head.into(), content: EventContent::None });
}

impl EventScope {
    fn decode(scope: &Bytes) -> Result<EventScope, Error> {
        let scope = DocumentBuf::validated(scope.clone()).map_err(|_| damaged())?;
        let text = |name: &str| match scope.get(name) {
            Some(Value::String(text)) => text.to_owned(),
            _ => String::new(),
        };
        let wall_millis = match scope.get("w") {
            Some(Value::DateTime(millis)) => millis,
            _ => 0,
        };
        let uuid = match scope.get("u") {
            Some(Value::Binary(uuid)) => uuid.bytes.first_chunk().copied(),
            _ => None,
        };
        Ok(EventScope {
            uuid,
            database: text("d"),
            branch: text("b"),
            collection: text("c"),
            wall_millis,
        })
    }
}

impl Event {
    /// Reads the events that one transaction recorded.
    ///
    /// # Errors
    /// `Damaged` if it isn't what this module writes.
    pub fn decode_all(logged: &[LoggedEvent]) -> Result<Vec<Event>, Error> {
        let mut last: Option<(&Bytes, Arc<EventScope>)> = None;
        let events = logged.iter().map(|logged| {
            let scope = match &last {
                Some((bytes, scope)) if **bytes == logged.scope => Arc::clone(scope),
                _ => Arc::new(EventScope::decode(&logged.scope)?),
            };
            last = Some((&logged.scope, Arc::clone(&scope)));
            Event::decode(logged, scope)
        });
        events.collect()
    }

    fn decode(logged: &LoggedEvent, scope: Arc<EventScope>) -> Result<Event, Error> {
        let (kind, facts) = logged.head.split_first().ok_or_else(damaged)?;
        let kind = KINDS.iter().find(|known| **known as u8 == *kind).ok_or_else(damaged)?;
        let facts = match facts.is_empty() {
            true => DocumentBuf::empty(),
            false => DocumentBuf::validated(logged.head.slice(1..)).map_err(|_| damaged())?,
        };
        let (content, before) = (logged.content.clone(), LoggedContent::None);
        Ok(Event { kind: *kind, scope, facts, content, before })
    }
}

fn damaged() -> Error {
    Error::damaged("what a transaction recorded can't be read")
}
