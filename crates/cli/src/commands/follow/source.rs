//! The requests to the source: nothing that MongoDB 6 to 8 doesn't know.
//!
//! - `hello`, once a connection: whether it is the primary of a replica set, and which MongoDB's.
//! - `listCollections`, `listIndexes`.
//! - `find` at the level `snapshot`, one batch in the order of `_id`: its answer says as of when it
//!   is ([`Batch::time`]).
//! - `aggregate` with `$changeStream` over the database, and its `getMore`.

use std::collections::VecDeque;
use std::time::Duration;

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Timestamp, Value, ValueBuf, document};

use crate::backend::{Backend, Remote, ServerUri};
use crate::commands::follow::event::Event;
use crate::failure::Failure;
use crate::output::{documents_of, text_of};

/// The wire version of MongoDB 6.0, the first that reports collections and indexes in its streams.
const WIRE_VERSION_MIN: i64 = 17;
/// Documents of one batch of a copy; a batch ends at 16 MB too.
const BATCH_DOCUMENTS: i32 = 2_000;
/// A source that says nothing for so long is gone: it is asked to wait for a second.
const ANSWER_MAX: Duration = Duration::from_secs(120);
/// Errors after which the source may be asked again: it stops, begins, or another is primary.
const PASSING: &[i64] = &[6, 7, 43, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436];
/// The log has no more of what is asked for.
const HISTORY_LOST: &[i64] = &[136, 286];
/// The name by which a stream of a database is read.
const STREAM: &str = "$cmd.aggregate";

/// The source.
pub struct Source {
    connection: Remote,
    /// The database that is followed.
    pub database: String,
    stream: i64,
    /// The position of the event up to which all that was read of the stream is applied.
    position: DocumentBuf,
    /// The source's time when the stream was opened.
    pub opened: Timestamp,
}

/// Documents of a collection as they were at one time.
pub struct Batch {
    /// The documents in the order of `_id`.
    pub documents: Vec<DocumentBuf>,
    /// The time of it.
    pub time: Timestamp,
    /// The cursor that has more, if it wasn't closed.
    more: i64,
}

/// A collection of the source.
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its identity, among those that had this name; views have none.
    pub uuid: Option<Vec<u8>>,
    /// The options that `create` takes.
    pub options: DocumentBuf,
    /// `collection`, `view` or `timeseries`.
    pub kind: String,
}

impl Source {
    /// Connects to the primary of the set.
    ///
    /// # Errors
    /// [`Failure::Lost`] if none of its members answers as that; [`Failure::Failed`] if the source
    /// has no change streams.
    pub fn connect(server: &ServerUri) -> Result<Source, Failure> {
        let mut addresses: VecDeque<String> = [server.address.clone()].into();
        addresses.extend(server.others.iter().cloned());
        let mut tried = Vec::new();
        let mut last = Failure::Lost("no member of the source's set is its primary".to_owned());
        while let Some(address) = addresses.pop_front() {
            if tried.contains(&address) {
                continue;
            }
            tried.push(address.clone());
            let (connection, hello) = match greet(&address, server) {
                Ok(greeted) => greeted,
                Err(lost @ Failure::Lost(_)) => {
                    last = lost;
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            check(&address, hello.view(), server.set.as_deref())?;
            if hello.get("isWritablePrimary").is_some_and(|is_primary| is_primary.is_truthy()) {
                let (database, position) = (server.database.clone(), DocumentBuf::empty());
                let opened = Timestamp(0);
                return Ok(Source { connection, database, stream: 0, position, opened });
            }
            let primary = text_of(hello.view(), "primary");
            if !primary.is_empty() {
                addresses.push_front(primary.to_owned());
            }
        }
        Err(last)
    }

    /// The collections, or the one of that name.
    ///
    /// # Errors
    /// As of every question: [`Failure::Lost`], or what the source refuses.
    pub fn collections(&mut self, name: Option<&str>) -> Result<Vec<Listed>, Failure> {
        let mut command = DocumentBuilder::new();
        command.append("listCollections", Value::Int32(1));
        if let Some(name) = name {
            command.begin_document("filter").append("name", Value::String(name)).end();
        }
        let mut listed = Vec::new();
        self.each_of(command.build(), |document| {
            let part = |name: &str| {
                let part = document.get(name).and_then(|part| part.as_document());
                part.unwrap_or(Document::empty())
            };
            let uuid = match part("info").get("uuid") {
                Some(Value::Binary(uuid)) => Some(uuid.bytes.to_vec()),
                _ => None,
            };
            listed.push(Listed {
                name: text_of(document, "name").to_owned(),
                uuid,
                options: part("options").to_buf(),
                kind: text_of(document, "type").to_owned(),
            });
        })?;
        Ok(listed)
    }

    /// The indexes of a collection.
    ///
    /// # Errors
    /// As [`Source::collections`].
    pub fn indexes(&mut self, collection: &str) -> Result<Vec<DocumentBuf>, Failure> {
        let mut indexes = Vec::new();
        let command = document! { "listIndexes": collection };
        self.each_of(command, |index| indexes.push(index.to_buf()))?;
        Ok(indexes)
    }

    /// The documents of a collection behind `after`: one batch, by the index of `_id`.
    ///
    /// # Errors
    /// As [`Source::collections`].
    pub fn batch(&mut self, collection: &str, after: Option<&ValueBuf>) -> Result<Batch, Failure> {
        let mut find = DocumentBuilder::new();
        find.append("find", Value::String(collection));
        find.begin_document("sort").append("_id", Value::Int32(1)).end();
        find.begin_document("hint").append("_id", Value::Int32(1)).end();
        if let Some(after) = after {
            find.begin_document("min").append("_id", after.as_value()).end();
        }
        find.append("limit", Value::Int32(BATCH_DOCUMENTS));
        find.append("batchSize", Value::Int32(BATCH_DOCUMENTS));
        find.append("singleBatch", Value::Boolean(true));
        find.begin_document("readConcern").append("level", Value::String("snapshot")).end();
        let mut batch = Batch::read(&self.ask(&find.build())?)?;
        // `min` has its own document too.
        if let (Some(after), Some(first)) = (after, batch.documents.first())
            && first.get("_id").is_some_and(|id| frond_doc::order::equal(id, after.as_value()))
        {
            batch.documents.remove(0);
        }
        Ok(batch)
    }

    /// The first documents of a whole collection, in any order; [`Source::more`] has the others.
    ///
    /// # Errors
    /// As [`Source::collections`].
    pub fn whole(&mut self, collection: &str) -> Result<Batch, Failure> {
        let mut find = DocumentBuilder::new();
        find.append("find", Value::String(collection));
        find.append("batchSize", Value::Int32(BATCH_DOCUMENTS));
        find.begin_document("readConcern").append("level", Value::String("snapshot")).end();
        Batch::read(&self.ask(&find.build())?)
    }

    /// The documents behind those of `batch`, which then has the next; `false` if there are none.
    ///
    /// # Errors
    /// As [`Source::collections`].
    pub fn more(&mut self, collection: &str, batch: &mut Batch) -> Result<bool, Failure> {
        if batch.more == 0 {
            return Ok(false);
        }
        let more = document! {
            "getMore": batch.more, "collection": collection, "batchSize": BATCH_DOCUMENTS,
        };
        let answer = self.ask(&more)?;
        let cursor = cursor_of(&answer)?;
        batch.documents = documents_of(cursor, "nextBatch").map(|it| it.to_buf()).collect();
        batch.more = cursor.get("id").and_then(|id| id.as_integer()).unwrap_or(0);
        Ok(true)
    }

    /// Opens the stream behind `token`, or at this moment; returns the place where it begins.
    ///
    /// # Errors
    /// As [`Source::collections`]; [`Failure::Failed`] if the source's log doesn't reach so far
    /// back any more.
    pub fn watch(&mut self, token: Option<&DocumentBuf>) -> Result<DocumentBuf, Failure> {
        let mut command = DocumentBuilder::new();
        command.append("aggregate", Value::Int32(1));
        command.begin_array("pipeline").push_begin_document().begin_document("$changeStream");
        command.append("showExpandedEvents", Value::Boolean(true));
        if let Some(token) = token {
            command.append("startAfter", Value::Document(token.view()));
        }
        command.end().end().end().begin_document("cursor");
        // Events that are there already come with the first `getMore`.
        command.append("batchSize", Value::Int32(0)).end();
        let answer = self.ask(&command.build())?;
        let cursor = cursor_of(&answer)?;
        self.stream = cursor.get("id").and_then(|id| id.as_integer()).unwrap_or(0);
        if let Some(Value::Timestamp(time)) = answer.get("operationTime") {
            self.opened = time;
        }
        self.position = match (token, token_of(cursor)) {
            (Some(token), _) => token.clone(),
            (None, Some(token)) => token,
            (None, None) => return Err(Failure::failed("the source sends no resume token")),
        };
        Ok(self.position.clone())
    }

    /// The events that come next, within `millis`, and the place behind them. None mean that there
    /// is nothing more up to a moment after this was asked.
    ///
    /// # Errors
    /// As [`Source::watch`].
    pub fn next(&mut self, millis: i64) -> Result<(Vec<Event>, DocumentBuf), Failure> {
        if self.stream == 0 {
            self.watch(Some(&self.position.clone()))?;
        }
        let more = document! {
            "getMore": self.stream, "collection": STREAM, "maxTimeMS": millis,
        };
        let answer = match self.ask(&more) {
            // A source closes cursors that rest for long.
            Err(Failure::Refused { code: 43, .. }) => {
                self.stream = 0;
                return self.next(millis);
            }
            other => passing(other)?,
        };
        let cursor = cursor_of(&answer)?;
        self.stream = cursor.get("id").and_then(|id| id.as_integer()).unwrap_or(0);
        let events = documents_of(cursor, "nextBatch").map(Event::read);
        let events = events.collect::<Result<Vec<Event>, Failure>>()?;
        let last = events.last().map(|event| event.token.clone());
        if let Some(token) = token_of(cursor).or(last) {
            self.position = token;
        }
        Ok((events, self.position.clone()))
    }

    fn each_of(
        &mut self,
        command: DocumentBuf,
        mut visit: impl FnMut(Document<'_>),
    ) -> Result<(), Failure> {
        let connection: &mut dyn Backend = &mut self.connection;
        let visited = connection.for_each_document(&self.database, &command, &mut |document| {
            visit(document);
            Ok(())
        });
        passing(visited)
    }

    fn ask(&mut self, command: &DocumentBuf) -> Result<DocumentBuf, Failure> {
        let answer = self.connection.execute_with(&self.database, command.view(), Vec::new());
        match answer {
            // That a cursor is gone is for the asker to know.
            Err(Failure::Refused { code: 43, .. }) => answer,
            other => passing(other),
        }
    }
}

impl Batch {
    fn read(answer: &DocumentBuf) -> Result<Batch, Failure> {
        let cursor = cursor_of(answer)?;
        let Some(Value::Timestamp(time)) = cursor.get("atClusterTime") else {
            return Err(Failure::failed("the source doesn't say as of when it was read"));
        };
        let documents = documents_of(cursor, "firstBatch").map(|it| it.to_buf()).collect();
        let more = cursor.get("id").and_then(|id| id.as_integer()).unwrap_or(0);
        Ok(Batch { documents, time, more })
    }
}

fn greet(address: &str, server: &ServerUri) -> Result<(Remote, DocumentBuf), Failure> {
    let mut connection = Remote::connect_to(address, server)?;
    connection.set_read_timeout(ANSWER_MAX)?;
    let hello = connection.execute_with("admin", document! { "hello": 1_i32 }.view(), Vec::new());
    Ok((connection, passing(hello)?))
}

/// Refuses what has no change streams, or none of a whole database's history.
fn check(address: &str, hello: Document<'_>, set: Option<&str>) -> Result<(), Failure> {
    let refuse = |what: String| Err(Failure::failed(format!("{address} {what}")));
    let name = text_of(hello, "setName");
    if text_of(hello, "msg") == "isdbgrid" {
        return refuse(
            "is a router of a sharded cluster: a replica set can be followed".to_owned(),
        );
    }
    if name.is_empty() {
        return refuse("is no member of a replica set: only these have change streams".to_owned());
    }
    if let Some(set) = set.filter(|set| *set != name) {
        return refuse(format!("is a member of the set {name}, not of {set}"));
    }
    let version = hello.get("maxWireVersion").and_then(|version| version.as_integer());
    match version.unwrap_or(0) < WIRE_VERSION_MIN {
        true => {
            refuse("is older than MongoDB 6.0, whose change streams report too little".to_owned())
        }
        false => Ok(()),
    }
}

/// Marks the refusals that pass; says what is to be done of those that don't.
fn passing<T>(answer: Result<T, Failure>) -> Result<T, Failure> {
    match answer {
        Err(Failure::Refused { code, message, .. }) if PASSING.contains(&code) => {
            Err(Failure::Lost(message))
        }
        Err(Failure::Refused { code, message, .. }) if HISTORY_LOST.contains(&code) => {
            Err(Failure::failed(format!(
                "the source's log doesn't reach back to where this copy is ({message}): begin \
                 another one, --into another branch or database"
            )))
        }
        other => other,
    }
}

fn cursor_of(answer: &DocumentBuf) -> Result<Document<'_>, Failure> {
    let cursor = answer.get("cursor").and_then(|cursor| cursor.as_document());
    cursor.ok_or_else(|| Failure::failed("the source's answer holds no cursor"))
}

fn token_of(cursor: Document<'_>) -> Option<DocumentBuf> {
    Some(cursor.get("postBatchResumeToken")?.as_document()?.to_buf())
}

/// Whether an index is one that every collection has.
pub fn is_of_id(index: &DocumentBuf) -> bool {
    let key = index.get("key").and_then(|key| key.as_document());
    text_of(index.view(), "name") == "_id_"
        || key.is_some_and(|key| key.iter().map(|(name, _)| name).eq(["_id"]))
}

/// Whether the batches of a collection can be separated by `_id`: not where it is compared by a
/// language, nor where there is no index of it.
pub fn is_in_order(options: Document<'_>) -> bool {
    options.get("collation").is_none() && options.get("clusteredIndex").is_none()
}
