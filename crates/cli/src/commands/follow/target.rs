//! The copy: what is written to it, and in which transactions.
//!
//! *Invariant*: whatever changes documents changes the record in the same transaction, and only if
//! it is what this process has read. So two that follow into one copy don't spoil it.

use std::thread;
use std::time::{Duration, Instant};

use frond_doc::{Binary, Document, DocumentBuf, DocumentBuilder, Value, ValueBuf, document};
use frond_server::scram::random_bytes;
use frond_server::wire::DocumentSequence;

use crate::backend::{Backend, visit_batch};
use crate::commands::follow::record::{COLLECTION, ID, Record};
use crate::failure::Failure;
use crate::output::{array_of, count_of, documents_of, text_of};

const NAMESPACE_NOT_FOUND: i64 = 26;
const INDEX_NOT_FOUND: i64 = 27;
const NAMESPACE_EXISTS: i64 = 48;
const WRITE_CONFLICT: i64 = 112;
/// A transaction that conflicts with others is run again for so long before that is reported: a
/// process that was killed may have left one open, which a server ends after a minute.
const CONFLICTS_FOR: Duration = Duration::from_secs(150);
const PAUSE: Duration = Duration::from_millis(50);
/// Options that are the collection's own.
const NOT_COPIED: &[&str] = &["idIndex", "uuid"];
const UUID: u8 = 4;

/// A database that becomes a copy.
pub struct Target<'a> {
    backend: &'a mut dyn Backend,
    /// `DATABASE` or `DATABASE@BRANCH`.
    pub database: String,
    session: Vec<u8>,
    transactions: i64,
}

/// A transaction of a target.
pub struct Writes<'t, 'a> {
    target: &'t mut Target<'a>,
    is_begun: bool,
}

/// The reason why something wasn't written.
pub enum WriteError {
    /// The copy doesn't take a statement: why.
    Refused(String),
    /// The command failed.
    Failed(Failure),
}

impl From<Failure> for WriteError {
    fn from(failure: Failure) -> WriteError {
        WriteError::Failed(failure)
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Failure {
        match error {
            WriteError::Refused(message) => Failure::failed(message),
            WriteError::Failed(failure) => failure,
        }
    }
}

impl<'a> Target<'a> {
    /// The copy in `database`.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn new(backend: &'a mut dyn Backend, database: String) -> Result<Target<'a>, Failure> {
        Ok(Target { backend, database, session: random_bytes(16)?, transactions: 0 })
    }

    /// Runs a command.
    ///
    /// # Errors
    /// As [`Backend::execute_with`].
    pub fn run(&mut self, command: &DocumentBuf) -> Result<DocumentBuf, Failure> {
        self.backend.execute(&self.database, command)
    }

    /// The record, if a copy was begun here.
    ///
    /// # Errors
    /// As [`Target::run`]; [`Failure::Failed`] if it can't be read.
    pub fn record(&mut self) -> Result<Option<Record>, Failure> {
        let filter = document! { "_id": ID };
        let find = document! { "find": COLLECTION, "filter": &filter };
        let mut found = None;
        self.backend.for_each_document(&self.database, &find, &mut |stored| {
            found = Some(Record::read(stored));
            Ok(())
        })?;
        match found {
            Some(None) => Err(Failure::failed(format!("{COLLECTION} holds no record of a copy"))),
            found => Ok(found.flatten()),
        }
    }

    /// The names of the collections.
    ///
    /// # Errors
    /// As [`Target::run`].
    pub fn names(&mut self) -> Result<Vec<String>, Failure> {
        let mut names = Vec::new();
        let list = document! { "listCollections": 1_i32, "nameOnly": true };
        self.backend.for_each_document(&self.database, &list, &mut |listed| {
            names.push(text_of(listed, "name").to_owned());
            Ok(())
        })?;
        Ok(names)
    }

    /// Runs `work` in a transaction, again where it conflicted with another. An error of `work`
    /// undoes all.
    ///
    /// # Errors
    /// As [`Target::run`]; what `work` fails with.
    pub fn transact(
        &mut self,
        mut work: impl FnMut(&mut Writes<'_, 'a>) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let begun = Instant::now();
        loop {
            self.transactions += 1;
            let mut writes = Writes { target: self, is_begun: false };
            let done = match work(&mut writes) {
                Ok(()) if !writes.is_begun => return Ok(()),
                Ok(()) => writes.end("commitTransaction").map_err(WriteError::Failed),
                Err(error) => {
                    // Its writes are undone already, if the transaction met an error.
                    if writes.is_begun && !matches!(error, WriteError::Failed(Failure::Lost(_))) {
                        let _ = writes.end("abortTransaction");
                    }
                    Err(error)
                }
            };
            match done {
                Err(WriteError::Failed(Failure::Refused { code: WRITE_CONFLICT, .. }))
                    if begun.elapsed() < CONFLICTS_FOR =>
                {
                    thread::sleep(PAUSE);
                }
                other => return other,
            }
        }
    }

    /// Makes a collection or a view; one that is there stays. Returns why its options weren't
    /// taken, if it was made without them.
    ///
    /// # Errors
    /// As [`Target::run`].
    pub fn create(&mut self, name: &str, options: Document<'_>) -> Result<Option<String>, Failure> {
        let mut create = DocumentBuilder::new();
        create.append("create", Value::String(name));
        for (option, value) in options.iter().filter(|(name, _)| !NOT_COPIED.contains(name)) {
            create.append(option, value);
        }
        let refused = match self.run(&create.build()) {
            Ok(_) | Err(Failure::Refused { code: NAMESPACE_EXISTS, .. }) => return Ok(None),
            Err(Failure::Refused { message, .. }) => message,
            Err(failure) => return Err(failure),
        };
        if options.get("viewOn").is_none() {
            unless(NAMESPACE_EXISTS, self.run(&document! { "create": name }))?;
        }
        Ok(Some(refused))
    }

    /// Drops a collection, if it is there.
    ///
    /// # Errors
    /// As [`Target::run`].
    pub fn drop_collection(&mut self, name: &str) -> Result<(), Failure> {
        unless(NAMESPACE_NOT_FOUND, self.run(&document! { "drop": name }))
    }

    /// Gives a collection another name, if it doesn't have that already.
    ///
    /// # Errors
    /// As [`Target::run`].
    pub fn rename(&mut self, from: &str, to: &str, replaces: bool) -> Result<(), Failure> {
        let database = self.database.clone();
        let (from, to) = (format!("{database}.{from}"), format!("{database}.{to}"));
        let command = document! { "renameCollection": &from, "to": &to, "dropTarget": replaces };
        unless(NAMESPACE_NOT_FOUND, self.backend.execute("admin", &command))
    }

    /// Changes a collection's options, but for those that aren't copied. Returns why it couldn't.
    ///
    /// # Errors
    /// As [`Target::run`].
    pub fn modify(
        &mut self,
        collection: &str,
        options: Document<'_>,
    ) -> Result<Option<String>, Failure> {
        let mut command = DocumentBuilder::new();
        command.append("collMod", Value::String(collection));
        let mut is_any = false;
        for (option, value) in options.iter().filter(|(name, _)| !NOT_COPIED.contains(name)) {
            match value.as_document().filter(|_| option == "index") {
                // An index that is only to expire otherwise.
                Some(index) if index.get("expireAfterSeconds").is_some() => continue,
                _ => command.append(option, value),
            };
            is_any = true;
        }
        if !is_any {
            return Ok(None);
        }
        match self.run(&command.build()) {
            Err(Failure::Refused { message, .. }) => Ok(Some(message)),
            other => other.map(|_| None),
        }
    }

    /// Makes an index, without the time after which documents expire: the source's deletions come
    /// by themselves. Returns why it couldn't be made.
    ///
    /// # Errors
    /// As [`Target::run`].
    pub fn create_index(
        &mut self,
        collection: &str,
        index: Document<'_>,
    ) -> Result<Option<String>, Failure> {
        let mut command = DocumentBuilder::new();
        command.append("createIndexes", Value::String(collection));
        command.begin_array("indexes").push_begin_document();
        for (name, value) in index.iter() {
            if !["expireAfterSeconds", "ns"].contains(&name) {
                command.append(name, value);
            }
        }
        command.end().end();
        match self.run(&command.build()) {
            Err(Failure::Refused { message, .. }) => Ok(Some(message)),
            other => other.map(|_| None),
        }
    }

    /// Drops an index, if it is there.
    ///
    /// # Errors
    /// As [`Target::run`].
    pub fn drop_index(&mut self, collection: &str, name: &str) -> Result<(), Failure> {
        let command = document! { "dropIndexes": collection, "index": name };
        match unless(INDEX_NOT_FOUND, self.run(&command)) {
            Err(Failure::Refused { code: NAMESPACE_NOT_FOUND, .. }) => Ok(()),
            other => other,
        }
    }
}

impl Writes<'_, '_> {
    /// The stored documents of these `_id`s, with what this transaction has written.
    ///
    /// # Errors
    /// As [`Target::run`].
    pub fn documents(
        &mut self,
        collection: &str,
        ids: &[&ValueBuf],
    ) -> Result<Vec<DocumentBuf>, Failure> {
        let mut find = DocumentBuilder::new();
        find.append("find", Value::String(collection));
        find.begin_document("filter").begin_document("_id").begin_array("$in");
        for id in ids {
            find.push(id.as_value());
        }
        find.end().end().end();
        self.append_session(&mut find);
        let mut documents = Vec::new();
        let mut next = Some(find.build());
        while let Some(command) = next {
            let answer = self.target.run(&command)?;
            next = visit_batch(&answer, &mut |document| {
                documents.push(document.to_buf());
                Ok(())
            })?
            .map(|more| {
                let mut command = DocumentBuilder::new();
                more.iter().for_each(|(name, value)| {
                    command.append(name, value);
                });
                self.append_session(&mut command);
                command.build()
            });
        }
        Ok(documents)
    }

    /// Writes documents by a command (`insert`, `update` or `delete`) with the statements or
    /// documents `sequence`.
    ///
    /// # Errors
    /// As [`Target::run`]; the first of the statements' errors.
    pub fn write(
        &mut self,
        (verb, list): (&str, &str),
        collection: &str,
        sequence: Vec<DocumentBuf>,
    ) -> Result<DocumentBuf, WriteError> {
        let mut command = DocumentBuilder::new();
        command.append(verb, Value::String(collection));
        if verb != "delete" {
            // Documents that the source accepted are right, whatever validators say now; and so are
            // its times.
            command.append("bypassDocumentValidation", Value::Boolean(true));
            command.append("bypassEmptyTsReplacement", Value::Boolean(true));
        }
        self.append_session(&mut command);
        let documents = DocumentSequence { name: list.to_owned(), documents: sequence };
        let command = command.build();
        let target = &mut self.target;
        let answer =
            target.backend.execute_with(&target.database, command.view(), vec![documents])?;
        let refused = documents_of(answer.view(), "writeErrors").next();
        match refused.map(|error| text_of(error, "errmsg").to_owned()) {
            Some(message) => Err(WriteError::Refused(message)),
            None => Ok(answer),
        }
    }

    /// Replaces the record that was read by the one that is true when all this is written.
    ///
    /// # Errors
    /// As [`Target::run`]; [`Failure::Failed`] if another process has changed it meanwhile.
    pub fn record(&mut self, before: &Record, after: &Record) -> Result<(), Failure> {
        let mut statement = DocumentBuilder::new();
        statement.begin_document("q").append("_id", Value::String(ID));
        statement.begin_document("token").append("$eq", Value::from(&before.token)).end();
        statement.append("changes", Value::Int64(before.changes)).end();
        statement.append("u", Value::Document(after.stored().view()));
        let answer = self.write(("update", "updates"), COLLECTION, vec![statement.build()])?;
        match count_of(answer.view(), "n") {
            1 => Ok(()),
            _ => Err(Failure::failed(
                "another process follows into this copy, or the copy was reset: begin again",
            )),
        }
    }

    /// The first record.
    ///
    /// # Errors
    /// As [`Writes::record`].
    pub fn first_record(&mut self, record: &Record) -> Result<(), Failure> {
        self.write(("insert", "documents"), COLLECTION, vec![record.stored()])?;
        Ok(())
    }

    fn append_session(&mut self, command: &mut DocumentBuilder) {
        let id = Value::Binary(Binary { subtype: UUID, bytes: &self.target.session });
        command.begin_document("lsid").append("id", id).end();
        command.append("txnNumber", Value::Int64(self.target.transactions));
        command.append("autocommit", Value::Boolean(false));
        if !std::mem::replace(&mut self.is_begun, true) {
            command.append("startTransaction", Value::Boolean(true));
        }
    }

    fn end(&mut self, how: &str) -> Result<(), Failure> {
        let mut command = DocumentBuilder::new();
        command.append(how, Value::Int32(1));
        self.append_session(&mut command);
        self.target.backend.execute("admin", &command.build()).map(drop)
    }
}

/// Returns how many documents an update made.
pub fn upserted(answer: &DocumentBuf) -> u64 {
    array_of(answer.view(), "upserted").iter().count() as u64
}

/// Takes a refusal with that code for done.
fn unless(code: i64, answer: Result<DocumentBuf, Failure>) -> Result<(), Failure> {
    match answer {
        Err(Failure::Refused { code: found, .. }) if found == code => Ok(()),
        other => other.map(drop),
    }
}
