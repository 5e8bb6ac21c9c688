//! The profiler: what a database's clients asked for, as documents of its `system.profile`.
//!
//! A level is a database's, by the name under which clients use it, and is forgotten when the
//! server ends. `system.profile` is a capped collection, so it is in no version.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use frond_db::{Database, Durability, Error};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};
use frond_query::Code;

use crate::log::{SlowOperation, shortened};
use crate::operations::Operation;
use crate::request::Answer;
use crate::shared::Shared;

/// Where a database's operations are told of.
pub const COLLECTION: &str = "system.profile";
/// How much of them is kept: as much as MongoDB keeps.
const COLLECTION_BYTES: i64 = 1 << 20;

/// Which operations of a database are told of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Level {
    /// None.
    #[default]
    Off,
    /// Slow ones.
    Slow,
    /// All.
    All,
}

impl Level {
    /// The level of a number, if it has one.
    pub fn of_number(number: i64) -> Option<Level> {
        match number {
            0 => Some(Level::Off),
            1 => Some(Level::Slow),
            2 => Some(Level::All),
            _ => None,
        }
    }

    /// As `profile` tells it.
    pub fn number(self) -> i32 {
        match self {
            Level::Off => 0,
            Level::Slow => 1,
            Level::All => 2,
        }
    }
}

/// The levels of a server's databases.
///
/// *Thread safety*: any number of threads may ask; where no database has a level, without a lock.
#[derive(Default)]
pub struct Profiler {
    is_on: AtomicBool,
    levels: Mutex<HashMap<String, Level>>,
}

impl Profiler {
    /// The level of a database.
    pub fn level(&self, database: &str) -> Level {
        match self.is_on.load(Ordering::Relaxed) {
            true => self.levels().get(database).copied().unwrap_or_default(),
            false => Level::Off,
        }
    }

    /// Sets the level of a database; returns what it was.
    pub fn set(&self, database: &str, level: Level) -> Level {
        let mut levels = self.levels();
        let before = match level {
            Level::Off => levels.remove(database),
            level => levels.insert(database.to_owned(), level),
        };
        self.is_on.store(!levels.is_empty(), Ordering::Relaxed);
        before.unwrap_or_default()
    }

    fn levels(&self) -> MutexGuard<'_, HashMap<String, Level>> {
        // It is whole after each statement.
        self.levels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the collection that a database's operations are told in, unless it is there.
///
/// # Errors
/// `IllegalOperation` (20) if it is there and isn't capped; what making a collection may meet.
pub fn make_collection(database: &Database) -> Result<(), Error> {
    let found = database.list_collections()?.into_iter().find(|found| found.name == COLLECTION);
    if let Some(found) = found {
        if found.options.get("capped") != Some(Value::Boolean(true)) {
            let message = format!("{COLLECTION} exists but isn't capped");
            return Err(Error::invalid(Code::IllegalOperation, message));
        }
        return Ok(());
    }
    let options = document! { "capped": true, "size": COLLECTION_BYTES };
    match database.create_collection(COLLECTION, options.view()) {
        Err(error) if error.code == Code::NamespaceExists => Ok(()),
        made => made,
    }
}

/// Tells of an operation in its database. What can't be told there (the disk is full, the branch is
/// closed) is told nowhere: the operation is over.
pub fn tell(server: &Shared, operation: &Operation, slow: &SlowOperation<'_>, done: &Answer) {
    let Ok(database) = server.frond.database(&operation.database) else { return };
    // A client's drop of the database may have taken it away.
    if database.list_indexes(COLLECTION).is_err() && make_collection(&database).is_err() {
        return;
    }
    let entry = entry(server, operation, slow, done);
    let _ = database.insert(COLLECTION, &[entry], true, Durability::Relaxed);
}

fn entry(
    server: &Shared,
    operation: &Operation,
    slow: &SlowOperation<'_>,
    done: &Answer,
) -> DocumentBuf {
    let mut entry = DocumentBuilder::new();
    entry
        .append("op", Value::String(operation.kind()))
        .append("ns", Value::String(slow.namespace))
        .append("command", Value::Document(shortened(slow.command).view()));
    match done {
        Ok(answer) => append_counts(&mut entry, operation.command, answer.clone().build().view()),
        Err(error) => {
            entry
                .append("ok", Value::Int32(0))
                .append("errMsg", Value::String(&error.message))
                .append("errName", Value::String(&error.code.name()))
                .append("errCode", Value::Int32(error.code.number()));
        }
    }
    let client = operation.peer.address.ip().to_string();
    let millis = i32::try_from(slow.time.as_millis()).unwrap_or(i32::MAX);
    let bytes = done.as_ref().map_or(0, DocumentBuilder::bytes);
    entry
        .append("responseLength", Value::Int32(i32::try_from(bytes).unwrap_or(i32::MAX)))
        .append("protocol", Value::String("op_msg"))
        .append("millis", Value::Int32(millis))
        .append("ts", Value::DateTime(server.frond.engine().now_millis()))
        .append("client", Value::String(&client));
    if let Some(name) = operation.peer.app_name() {
        entry.append("appName", Value::String(&name));
    }
    let login = operation.peer.login();
    entry.begin_array("allUsers");
    if let Some(login) = &login {
        entry
            .push_begin_document()
            .append("user", Value::String(&login.user.user))
            .append("db", Value::String(&login.user.database))
            .end();
    }
    let user = login.map_or_else(String::new, |login| login.user.to_string());
    entry.end().append("user", Value::String(&user));
    entry.build()
}

/// How many documents an operation was about, as its answer has it.
fn append_counts(entry: &mut DocumentBuilder, command: &str, answer: Document<'_>) {
    let count = |name: &str| answer.get(name).and_then(|value| value.as_integer());
    let mut append = |name: &str, count: Option<i64>| {
        if let Some(count) = count {
            entry.append(name, Value::Int32(i32::try_from(count).unwrap_or(i32::MAX)));
        }
    };
    match command {
        "insert" => append("ninserted", count("n")),
        "delete" => append("ndeleted", count("n")),
        "update" => {
            let upserted = answer.get("upserted").and_then(|upserted| upserted.as_array());
            let upserted = upserted.map_or(0, |upserted| upserted.iter().count() as i64);
            append("nMatched", count("n").map(|matched| matched - upserted));
            append("nModified", count("nModified"));
            append("nUpserted", Some(upserted));
        }
        _ => {
            let Some(cursor) = answer.get("cursor").and_then(|cursor| cursor.as_document()) else {
                return;
            };
            let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"));
            let batch = batch.and_then(|batch| batch.as_array());
            append("nreturned", batch.map(|batch| batch.iter().count() as i64));
            if let Some(id @ 1..) = cursor.get("id").and_then(|id| id.as_integer()) {
                entry.append("cursorid", Value::Int64(id));
            }
        }
    }
}
