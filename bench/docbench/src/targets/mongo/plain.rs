//! A session without a driver: commands over one connection, as a driver would say them.
//!
//! What the server is asked is the same (sessions, retryable writes, write concern, transactions),
//! what the client does is little: so these figures are the server's, as those of the driver are
//! what an application has.

use bson::{Bson, Document, RawArray, RawDocument, Uuid, doc};
use bytes::Bytes;

use crate::query::{Answer, Change, CollectionSpec, IndexSpec, Query};
use crate::target::{Encoded, Failure, Session};
use crate::targets::mongo::DATABASE;
use crate::targets::mongo::wire::{Connection, Sequence};
use crate::targets::mongo_form;

/// Documents of one message: below what servers take.
const INSERT_BYTES_MAX: usize = 47 << 20;

/// What a command is to its session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    Read,
    /// Numbered, so that it could be sent again.
    Write,
    /// Writes that have no numbers: of the catalog, and of whole collections.
    Definition,
}

/// How far a transaction is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The server hasn't heard of it.
    Begun,
    Open,
}

/// See the module.
pub struct PlainSession {
    connection: Connection,
    id: Document,
    /// Of the last write or transaction.
    number: i64,
    transaction: Option<Stage>,
}

fn write_concern() -> Document {
    doc! { "w": "majority", "j": true }
}

/// The first document of a cursor's first batch.
fn first_of(answer: &RawDocument) -> Result<Option<&RawDocument>, Failure> {
    let cursor = answer.get_document("cursor").map_err(Failure::other)?;
    let batch: &RawArray = cursor.get_array("firstBatch").map_err(Failure::other)?;
    let first = batch.into_iter().next().transpose().map_err(Failure::other)?;
    Ok(first.and_then(|first| first.as_document()))
}

/// What `findAndModify` answers.
fn value_of(answer: &RawDocument) -> Option<Bytes> {
    answer.get_document("value").ok().map(|value| Bytes::copy_from_slice(value.as_bytes()))
}

fn count_of(answer: &RawDocument) -> Result<u64, Failure> {
    let count = match answer.get_i32("n") {
        Ok(count) => i64::from(count),
        Err(_) => answer.get_i64("n").map_err(Failure::other)?,
    };
    u64::try_from(count).map_err(Failure::other)
}

impl PlainSession {
    /// Connects to `HOST:PORT`.
    pub fn connect(address: &str) -> Result<PlainSession, Failure> {
        let id = doc! { "id": Uuid::new() };
        let connection = Connection::open(address)?;
        Ok(PlainSession { connection, id, number: 0, transaction: None })
    }

    fn ask(&mut self, command: Document, manner: Manner) -> Result<&RawDocument, Failure> {
        self.ask_with(command, manner, None)
    }

    fn ask_with(
        &mut self,
        mut command: Document,
        manner: Manner,
        sequence: Option<Sequence<'_>>,
    ) -> Result<&RawDocument, Failure> {
        command.insert("$db", DATABASE);
        command.insert("lsid", self.id.clone());
        match &mut self.transaction {
            Some(stage) => {
                command.insert("txnNumber", self.number);
                command.insert("autocommit", false);
                if *stage == Stage::Begun {
                    command.insert("startTransaction", true);
                    command.insert("readConcern", doc! { "level": "snapshot" });
                    *stage = Stage::Open;
                }
            }
            None if manner == Manner::Read => {}
            None => {
                command.insert("writeConcern", write_concern());
                if manner == Manner::Write {
                    self.number += 1;
                    command.insert("txnNumber", self.number);
                }
            }
        }
        self.connection.ask(&command, sequence)
    }

    /// Ends the transaction by a command, if the server has heard of it.
    fn end(&mut self, command: &str) -> Result<(), Failure> {
        if self.transaction.take() != Some(Stage::Open) {
            return Ok(());
        }
        let command = doc! {
            command: 1,
            "$db": "admin",
            "lsid": self.id.clone(),
            "txnNumber": self.number,
            "autocommit": false,
            "writeConcern": write_concern(),
        };
        self.connection.ask(&command, None).map(drop)
    }

    fn count(&mut self, query: &Query) -> Result<u64, Failure> {
        let group = doc! { "$group": { "_id": 1, "n": { "$sum": 1 } } };
        let filter = mongo_form::filter(&query.conditions);
        let command = doc! {
            "aggregate": &query.collection,
            "pipeline": [{ "$match": filter }, group],
            "cursor": {},
        };
        first_of(self.ask(command, Manner::Read)?)?.map_or(Ok(0), count_of)
    }

    /// Calls `each` with a batch's documents; answers how many, and the cursor if there is more.
    fn batch(
        answer: &RawDocument,
        name: &str,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(u64, i64), Failure> {
        let cursor = answer.get_document("cursor").map_err(Failure::other)?;
        let mut count = 0;
        for document in cursor.get_array(name).map_err(Failure::other)? {
            let document = document.map_err(Failure::other)?;
            let document = document.as_document();
            each(
                document
                    .ok_or_else(|| Failure::Wrong("a batch without documents".into()))?
                    .as_bytes(),
            )?;
            count += 1;
        }
        Ok((count, cursor.get_i64("id").map_err(Failure::other)?))
    }
}

impl Session for PlainSession {
    fn create(&mut self, collection: &CollectionSpec) -> Result<(), Failure> {
        // It may not be there.
        let _ = self.ask(doc! { "drop": &collection.name }, Manner::Definition);
        self.ask(doc! { "create": &collection.name }, Manner::Definition)?;
        match mongo_form::indexes_of(collection) {
            Some(command) => self.ask(command, Manner::Definition).map(drop),
            None => Ok(()),
        }
    }

    fn create_index(&mut self, collection: &str, index: &IndexSpec) -> Result<(), Failure> {
        match mongo_form::create_indexes(collection, std::slice::from_ref(index)) {
            Some(command) => self.ask(command, Manner::Definition).map(drop),
            None => Ok(()),
        }
    }

    fn insert(&mut self, collection: &str, documents: &[Encoded]) -> Result<(), Failure> {
        let mut rest = documents;
        while let Some(first) = rest.first() {
            let mut bytes = first.bytes.len();
            let fits = |one: &&Encoded| {
                bytes += one.bytes.len();
                bytes <= INSERT_BYTES_MAX
            };
            let count = 1 + rest[1..].iter().take_while(fits).count();
            let (batch, others) = rest.split_at(count);
            rest = others;
            let documents: Vec<&[u8]> = batch.iter().map(|one| &one.bytes[..]).collect();
            let sequence = Sequence { name: "documents", documents: &documents };
            let command = doc! { "insert": collection, "ordered": true };
            let done = count_of(self.ask_with(command, Manner::Write, Some(sequence))?)?;
            if done != count as u64 {
                return Err(Failure::Wrong(format!("{done} of {count} were inserted")));
            }
        }
        Ok(())
    }

    fn get(&mut self, collection: &str, id: &Bson) -> Result<Option<Bytes>, Failure> {
        let filter = doc! { "_id": id.clone() };
        let command =
            doc! { "find": collection, "filter": filter, "limit": 1, "singleBatch": true };
        let found = first_of(self.ask(command, Manner::Read)?)?;
        Ok(found.map(|document| Bytes::copy_from_slice(document.as_bytes())))
    }

    fn find(
        &mut self,
        query: &Query,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        if matches!(query.answer, Answer::Count) {
            return self.count(query);
        }
        let filter = mongo_form::filter(&query.conditions);
        let mut command = doc! { "find": &query.collection, "filter": filter };
        if let Some(sort) = mongo_form::sort(query) {
            command.insert("sort", sort);
        }
        if let Some(projection) = mongo_form::projection(query) {
            command.insert("projection", projection);
        }
        if let Some(limit) = query.limit {
            command.insert("limit", limit as i64);
            // One batch, where it fits.
            command.insert("batchSize", (limit as i64).saturating_add(1));
        }
        let answer = self.ask(command, Manner::Read)?;
        let (mut count, mut cursor) = PlainSession::batch(answer, "firstBatch", each)?;
        while cursor != 0 {
            let command = doc! { "getMore": cursor, "collection": &query.collection };
            let answer = self.ask(command, Manner::Read)?;
            let (more, next) = PlainSession::batch(answer, "nextBatch", each)?;
            (count, cursor) = (count + more, next);
        }
        Ok(count)
    }

    fn update(&mut self, collection: &str, id: &Bson, changes: &[Change]) -> Result<u64, Failure> {
        let statement = mongo_form::update_statement(id, changes);
        let command = doc! { "update": collection, "updates": [statement] };
        count_of(self.ask(command, Manner::Write)?)
    }

    fn update_each(
        &mut self,
        collection: &str,
        changes: &[(Bson, Vec<Change>)],
    ) -> Result<u64, Failure> {
        count_of(self.ask(mongo_form::update_each(collection, changes), Manner::Write)?)
    }

    fn modify(
        &mut self,
        collection: &str,
        id: &Bson,
        changes: &[Change],
    ) -> Result<Option<Bytes>, Failure> {
        let (query, update) = (doc! { "_id": id.clone() }, mongo_form::update(changes));
        let command = doc! { "findAndModify": collection, "query": query, "update": update };
        Ok(value_of(self.ask(command, Manner::Write)?))
    }

    fn remove_first(&mut self, query: &Query) -> Result<Option<Bytes>, Failure> {
        let filter = mongo_form::filter(&query.conditions);
        let mut command =
            doc! { "findAndModify": &query.collection, "query": filter, "remove": true };
        if let Some(sort) = mongo_form::sort(query) {
            command.insert("sort", sort);
        }
        Ok(value_of(self.ask(command, Manner::Write)?))
    }

    fn copy(&mut self, from: &str, to: &str, change: &Change) -> Result<(), Failure> {
        let pipeline = mongo_form::copy(to, change)?;
        let command = doc! { "aggregate": from, "pipeline": pipeline, "cursor": {} };
        self.ask(command, Manner::Definition).map(drop)
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.number += 1;
        self.transaction = Some(Stage::Begun);
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
