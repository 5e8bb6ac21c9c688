//! A session of MongoDB's protocol without a driver: a socket, a message out, a message in.
//!
//! MongoDB's drivers do much besides for each operation: a pool, sessions, events, monitors, records for retries.
//! Where clients and server share processors, that is measured as if it were the server. Beside the same
//! server by its driver this session tells which part is whose. It sends what the driver sends but for
//! retryable writes and cluster times, waits for each answer, and knows neither TLS nor authentication.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

use bson::raw::RawBsonRef;
use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use bytes::Bytes;

use super::{DATABASE, PATIENCE, WRITE_CONFLICT};
use crate::query::{Answer, Change, CollectionSpec, IndexSpec, Query};
use crate::target::{Encoded, Failure, Session};
use crate::targets::mongo_form;

const HEADER_BYTES: usize = 16;
/// The operation code of `OP_MSG`.
const OP_MSG: i32 = 2013;
/// Documents of one message end at about this; a server takes 48 MB.
const MESSAGE_BYTES_MAX: usize = 32 << 20;
/// MongoDB's NamespaceNotFound.
const NAMESPACE_NOT_FOUND: i64 = 26;
const TRANSIENT_TRANSACTION_ERROR: &str = "TransientTransactionError";

/// One connection.
pub struct PlainSession {
    stream: BufReader<TcpStream>,
    request_id: i32,
    session_id: bson::Uuid,
    transaction_number: i64,
    transaction: Transaction,
}

/// Where the session's transaction stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transaction {
    None,
    /// The next command begins it.
    Due,
    Open,
}

/// The write concern of everything that writes.
fn write_concern() -> Document {
    doc! { "w": "majority", "j": true }
}

/// A field of an answer that is a number of any kind.
fn number(answer: &RawDocument, name: &str) -> Option<i64> {
    match answer.get(name).ok()?? {
        RawBsonRef::Int32(value) => Some(value.into()),
        RawBsonRef::Int64(value) => Some(value),
        RawBsonRef::Double(value) => Some(value as i64),
        _ => None,
    }
}

fn is_success(answer: &RawDocument) -> bool {
    let is_absent = |name| answer.get(name).is_ok_and(|field| field.is_none());
    number(answer, "ok") == Some(1) && is_absent("writeErrors") && is_absent("writeConcernError")
}

/// What an answer says that isn't a success.
fn failure(answer: &RawDocument) -> Failure {
    let text =
        Document::try_from(answer).map_or_else(|error| error.to_string(), |it| it.to_string());
    let labels = answer.get_array("errorLabels").ok();
    let is_transient = labels.is_some_and(|labels| {
        labels.into_iter().flatten().any(|one| one.as_str() == Some(TRANSIENT_TRANSACTION_ERROR))
    });
    if is_transient || number(answer, "code") == Some(WRITE_CONFLICT.into()) {
        return Failure::Conflict(text);
    }
    Failure::Other(text)
}

impl PlainSession {
    /// Connects to `address`.
    pub fn connect(address: &str) -> Result<PlainSession, Failure> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(PlainSession {
            stream: BufReader::with_capacity(64 << 10, stream),
            request_id: 0,
            session_id: bson::Uuid::new(),
            transaction_number: 0,
            transaction: Transaction::None,
        })
    }

    /// As [`PlainSession::exchange`]; what isn't a success is a failure.
    fn ask(
        &mut self,
        database: &str,
        command: Document,
        documents: &[Encoded],
    ) -> Result<RawDocumentBuf, Failure> {
        let answer = self.exchange(database, command, documents)?;
        if is_success(&answer) { Ok(answer) } else { Err(failure(&answer)) }
    }

    /// Sends a command with the documents of its sequence, if it has one, and waits for the answer.
    fn exchange(
        &mut self,
        database: &str,
        mut command: Document,
        documents: &[Encoded],
    ) -> Result<RawDocumentBuf, Failure> {
        command.insert("$db", database);
        command.insert("lsid", doc! { "id": self.session_id });
        if self.transaction != Transaction::None {
            command.insert("txnNumber", self.transaction_number);
            command.insert("autocommit", false);
        }
        if self.transaction == Transaction::Due {
            command.insert("startTransaction", true);
            command.insert("readConcern", doc! { "level": "snapshot" });
            self.transaction = Transaction::Open;
        }
        self.send(&command, documents)?;
        self.receive()
    }

    fn send(&mut self, command: &Document, documents: &[Encoded]) -> Result<(), Failure> {
        self.request_id = self.request_id.wrapping_add(1);
        let mut message = vec![0; HEADER_BYTES];
        message[4..8].copy_from_slice(&self.request_id.to_le_bytes());
        message[12..16].copy_from_slice(&OP_MSG.to_le_bytes());
        // No flags, and a section of one document.
        message.extend_from_slice(&[0; 5]);
        command.to_writer(&mut message)?;
        if !documents.is_empty() {
            const NAME: &[u8] = b"documents\0";
            let bytes: usize = documents.iter().map(|one| one.bytes.len()).sum();
            message.push(1);
            message.extend_from_slice(&length(4 + NAME.len() + bytes)?);
            message.extend_from_slice(NAME);
            for document in documents {
                message.extend_from_slice(&document.bytes);
            }
        }
        let whole = length(message.len())?;
        message[..4].copy_from_slice(&whole);
        Ok(self.stream.get_mut().write_all(&message)?)
    }

    fn receive(&mut self) -> Result<RawDocumentBuf, Failure> {
        // Length, request, answered request, code, flags, kind of the section.
        let mut head = [0; HEADER_BYTES + 5];
        self.stream.read_exact(&mut head)?;
        let word =
            |at: usize| i32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let body = usize::try_from(word(0)).ok().and_then(|all| all.checked_sub(head.len()));
        let (Some(body), OP_MSG, 0) = (body, word(12), head[HEADER_BYTES + 4]) else {
            return Err(Failure::Wrong("the answer isn't a message of one document".into()));
        };
        if word(8) != self.request_id {
            return Err(Failure::Wrong("the answer is to another message".into()));
        }
        let mut bytes = vec![0; body];
        self.stream.read_exact(&mut bytes)?;
        RawDocumentBuf::from_bytes(bytes).map_err(Failure::other)
    }

    fn command(&mut self, command: Document) -> Result<RawDocumentBuf, Failure> {
        self.ask(DATABASE, command, &[])
    }

    /// A command that writes: outside of a transaction with the write concern.
    fn write(
        &mut self,
        mut command: Document,
        documents: &[Encoded],
    ) -> Result<RawDocumentBuf, Failure> {
        if self.transaction == Transaction::None {
            command.insert("writeConcern", write_concern());
        }
        self.ask(DATABASE, command, documents)
    }

    /// Calls `each` with all that a command's cursor has; answers how many.
    fn read(
        &mut self,
        collection: &str,
        command: Document,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let (mut command, mut batch, mut count) = (command, "firstBatch", 0);
        loop {
            let answer = self.command(command)?;
            let cursor = answer.get_document("cursor").map_err(Failure::other)?;
            for document in cursor.get_array(batch).map_err(Failure::other)? {
                let document = document.map_err(Failure::other)?;
                let document = document.as_document();
                let document = document.ok_or_else(|| Failure::Wrong("no document".into()))?;
                count += 1;
                each(document.as_bytes())?;
            }
            match number(cursor, "id") {
                Some(0) => return Ok(count),
                Some(id) => command = doc! { "getMore": id, "collection": collection },
                None => return Err(Failure::Wrong("a cursor without a number".into())),
            }
            batch = "nextBatch";
        }
    }

    fn update_all(&mut self, collection: &str, statements: Vec<Document>) -> Result<u64, Failure> {
        let answer = self.write(doc! { "update": collection, "updates": statements }, &[])?;
        let count = number(&answer, "n").and_then(|count| u64::try_from(count).ok());
        count.ok_or_else(|| Failure::Wrong("an update doesn't tell what it matched".into()))
    }

    /// `findAndModify`: the document as it was.
    fn find_and(&mut self, command: Document) -> Result<Option<Bytes>, Failure> {
        let answer = self.write(command, &[])?;
        Ok(match answer.get("value").map_err(Failure::other)? {
            Some(RawBsonRef::Document(document)) => {
                Some(Bytes::copy_from_slice(document.as_bytes()))
            }
            _ => None,
        })
    }

    /// Ends the transaction by a command that says how.
    fn end(&mut self, command: &str) -> Result<(), Failure> {
        let was_open = self.transaction == Transaction::Open;
        let command = doc! { command: 1, "writeConcern": write_concern() };
        let answer = if was_open { Some(self.ask("admin", command, &[])) } else { None };
        self.transaction = Transaction::None;
        answer.transpose().map(drop)
    }
}

/// A length as the protocol writes it.
fn length(bytes: usize) -> Result<[u8; 4], Failure> {
    Ok(i32::try_from(bytes).map_err(Failure::other)?.to_le_bytes())
}

fn statement(id: &Bson, changes: &[Change]) -> Document {
    doc! { "q": { "_id": id.clone() }, "u": mongo_form::update(changes) }
}

/// How many of `documents` go into the next message: one at least.
fn fitting(documents: &[Encoded]) -> usize {
    let mut bytes = 0;
    let fits = |document: &&Encoded| {
        bytes += document.bytes.len();
        bytes <= MESSAGE_BYTES_MAX
    };
    documents.iter().take_while(fits).count().max(1)
}

impl Session for PlainSession {
    fn create(&mut self, collection: &CollectionSpec) -> Result<(), Failure> {
        let dropped = self.exchange(DATABASE, doc! { "drop": &collection.name }, &[])?;
        if !is_success(&dropped) && number(&dropped, "code") != Some(NAMESPACE_NOT_FOUND) {
            return Err(failure(&dropped));
        }
        self.command(doc! { "create": &collection.name })?;
        mongo_form::indexes_of(collection).map_or(Ok(()), |it| self.command(it).map(drop))
    }

    fn create_index(&mut self, collection: &str, index: &IndexSpec) -> Result<(), Failure> {
        let command = mongo_form::create_indexes(collection, std::slice::from_ref(index));
        command.map_or(Ok(()), |command| self.command(command).map(drop))
    }

    fn insert(&mut self, collection: &str, documents: &[Encoded]) -> Result<(), Failure> {
        let mut left = documents;
        while !left.is_empty() {
            let (now, later) = left.split_at(fitting(left));
            self.write(doc! { "insert": collection, "ordered": true }, now)?;
            left = later;
        }
        Ok(())
    }

    fn get(&mut self, collection: &str, id: &Bson) -> Result<Option<Bytes>, Failure> {
        let mut found = None;
        let filter = doc! { "_id": id.clone() };
        let command =
            doc! { "find": collection, "filter": filter, "limit": 1, "singleBatch": true };
        self.read(collection, command, &mut |document| {
            found = Some(Bytes::copy_from_slice(document));
            Ok(())
        })?;
        Ok(found)
    }

    fn find(
        &mut self,
        query: &Query,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let collection = query.collection.as_str();
        let filter = mongo_form::filter(&query.conditions);
        if matches!(query.answer, Answer::Count) {
            let pipeline = vec![
                doc! { "$match": filter },
                doc! { "$group": { "_id": 1, "n": { "$sum": 1 } } },
            ];
            let command = doc! { "aggregate": collection, "pipeline": pipeline, "cursor": {} };
            let mut count = 0;
            self.read(collection, command, &mut |group| {
                let group = RawDocument::from_bytes(group).map_err(Failure::other)?;
                count = number(group, "n").and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
                Ok(())
            })?;
            return Ok(count);
        }
        let mut command = doc! { "find": collection, "filter": filter };
        if let Some(sort) = mongo_form::sort(query) {
            command.insert("sort", sort);
        }
        if let Some(projection) = mongo_form::projection(query) {
            command.insert("projection", projection);
        }
        if let Some(limit) = query.limit {
            let limit = i64::try_from(limit).map_err(Failure::other)?;
            command.insert("limit", limit);
            // One batch, where it fits.
            command.insert("batchSize", limit.saturating_add(1));
        }
        self.read(collection, command, each)
    }

    fn update(&mut self, collection: &str, id: &Bson, changes: &[Change]) -> Result<u64, Failure> {
        self.update_all(collection, vec![statement(id, changes)])
    }

    fn update_each(
        &mut self,
        collection: &str,
        changes: &[(Bson, Vec<Change>)],
    ) -> Result<u64, Failure> {
        let statements = changes.iter().map(|(id, changes)| statement(id, changes));
        self.update_all(collection, statements.collect())
    }

    fn modify(
        &mut self,
        collection: &str,
        id: &Bson,
        changes: &[Change],
    ) -> Result<Option<Bytes>, Failure> {
        let query = doc! { "_id": id.clone() };
        let update = mongo_form::update(changes);
        self.find_and(doc! { "findAndModify": collection, "query": query, "update": update })
    }

    fn remove_first(&mut self, query: &Query) -> Result<Option<Bytes>, Failure> {
        let filter = mongo_form::filter(&query.conditions);
        let mut command =
            doc! { "findAndModify": &query.collection, "query": filter, "remove": true };
        if let Some(sort) = mongo_form::sort(query) {
            command.insert("sort", sort);
        }
        self.find_and(command)
    }

    fn copy(&mut self, from: &str, to: &str, change: &Change) -> Result<(), Failure> {
        let pipeline = mongo_form::copy(to, change)
            .ok_or_else(|| Failure::Unsupported("a copy can only set a field".into()))?;
        self.write(doc! { "aggregate": from, "pipeline": pipeline, "cursor": {} }, &[]).map(drop)
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.transaction_number += 1;
        self.transaction = Transaction::Due;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.end("commitTransaction")
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        // The server may have ended it by itself, when it told of a conflict.
        let _ = self.end("abortTransaction");
        Ok(())
    }
}
