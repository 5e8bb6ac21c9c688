//! A database's entry in `config.databases`, which also keeps two routers from moving it at once.
//!
//! ```text
//! {_id: "shop", line: "eu", generation: 7,
//!  move: {from: "eu", to: "us", phase: "copying", since: …}}
//! ```
//!
//! A router that moves the database *claims* the entry: the generation rises by one, and from then
//! on only the router that has that generation changes the entry. So of two routers the later one
//! goes on, and where the database is changes once.

use frond_db::Error;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};
use frond_query::Code;
use frond_store::io::{Clock, SystemClock};

use super::table::{DEFAULT, Phase};

/// A database's entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct DatabaseEntry {
    pub database: String,
    /// The line that has it.
    pub line: String,
    /// The generation of the latest claim; 0 if there was none.
    pub generation: i64,
    /// The move that it is under way with.
    pub journey: Option<MoveInProgress>,
    /// Whether it is in the collection.
    is_stored: bool,
}

/// A move that isn't finished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct MoveInProgress {
    pub from: String,
    pub to: String,
    pub phase: Phase,
}

impl DatabaseEntry {
    /// The entry of a database, as it was read; one that isn't there lies on the default line.
    pub fn of(database: &str, stored: Option<Document<'_>>) -> DatabaseEntry {
        let text = |document: Option<Document<'_>>, name: &str| {
            Some(document?.get(name)?.as_str()?.to_owned())
        };
        let moving = stored.and_then(|stored| stored.get("move")?.as_document());
        let journey = moving.and_then(|moving| {
            let phase = Phase::of(moving.get("phase")?.as_str()?)?;
            Some(MoveInProgress {
                from: text(Some(moving), "from")?,
                to: text(Some(moving), "to")?,
                phase,
            })
        });
        let generation = stored.and_then(|stored| stored.get("generation")?.as_integer());
        DatabaseEntry {
            database: database.to_owned(),
            line: text(stored, "line").unwrap_or_else(|| DEFAULT.to_owned()),
            generation: generation.unwrap_or(0),
            journey,
            is_stored: stored.is_some(),
        }
    }

    /// Reads it.
    pub fn find(database: &str) -> DocumentBuf {
        let filter = document! { "_id": database };
        let concern = document! { "level": "majority" };
        document! {
            "find": "databases", "filter": &filter, "limit": 1_i32, "singleBatch": true,
            "readConcern": &concern,
        }
    }

    /// The entry after this router has claimed it for a move between two lines, which have `seen`
    /// this generation: an entry that was deleted and made anew begins below it.
    pub fn claimed(&self, from: &str, to: &str, seen: i64) -> DatabaseEntry {
        let phase = self.journey.as_ref().map_or(Phase::Copying, |journey| journey.phase);
        let journey = MoveInProgress { from: from.to_owned(), to: to.to_owned(), phase };
        let generation = self.generation.max(seen) + 1;
        DatabaseEntry { generation, journey: Some(journey), ..self.clone() }
    }

    /// The entry in another phase of its move; once it is switched the other line has it.
    pub fn at(&self, phase: Phase) -> DatabaseEntry {
        let mut entry = self.clone();
        if let Some(journey) = &mut entry.journey {
            journey.phase = phase;
            if phase == Phase::Switched {
                entry.line.clone_from(&journey.to);
            }
        }
        entry
    }

    /// The entry without its move.
    pub fn settled(&self) -> DatabaseEntry {
        DatabaseEntry { journey: None, ..self.clone() }
    }

    /// The command that makes this of `before`, if that is still so.
    pub fn change(&self, before: &DatabaseEntry) -> DocumentBuf {
        let mut query = DocumentBuilder::new();
        query.append("_id", Value::String(&self.database));
        match before.generation {
            0 => {
                let absent = document! { "$exists": false };
                query.append("generation", Value::Document(absent.view()));
            }
            generation => {
                query.append("generation", Value::Int64(generation));
            }
        }
        if before.is_stored {
            query.append("line", Value::String(&before.line));
        }
        let mut update = DocumentBuilder::new();
        update.begin_document("$set").append("line", Value::String(&self.line));
        update.append("generation", Value::Int64(self.generation));
        if let Some(journey) = &self.journey {
            let since = SystemClock.now_micros().div_euclid(1_000);
            update
                .begin_document("move")
                .append("from", Value::String(&journey.from))
                .append("to", Value::String(&journey.to))
                .append("phase", Value::String(journey.phase.name()))
                .append("since", Value::DateTime(since))
                .end();
        }
        update.end();
        if self.journey.is_none() {
            let nothing = document! { "move": "" };
            update.append("$unset", Value::Document(nothing.view()));
        }
        let concern = document! { "w": "majority" };
        document! {
            "findAndModify": "databases", "query": &query.build(), "update": &update.build(),
            "new": true, "upsert": !before.is_stored, "writeConcern": &concern,
        }
    }

    /// Checks that the answer to [`DatabaseEntry::change`] says that the change was made.
    ///
    /// # Errors
    /// `ConflictingOperationInProgress` if another router was first; what the server refused.
    pub fn check_changed(&self, answer: Document<'_>) -> Result<DatabaseEntry, Error> {
        let value = answer.get("value").and_then(|value| value.as_document());
        match value {
            Some(value) => Ok(DatabaseEntry::of(&self.database, Some(value))),
            None => Err(taken_over(&self.database)),
        }
    }
}

/// Returns the error that another router has claimed the move.
pub(super) fn taken_over(database: &str) -> Error {
    let message = format!("another router has taken over the move of {database}, or has ended it");
    Error::invalid(Code::ConflictingOperationInProgress, message)
}

#[cfg(test)]
mod tests {
    //! Goal: an entry is read as it was written, and a change names what it rests on.

    use super::*;

    /// Returns the document that `change` stores.
    fn stored(change: &DocumentBuf, database: &str) -> DocumentBuf {
        let update = change.get("update").and_then(|update| update.as_document()).expect("one");
        let set = update.get("$set").and_then(|set| set.as_document()).expect("fields");
        let mut stored = DocumentBuilder::new();
        stored.append("_id", Value::String(database));
        for (name, value) in set.iter() {
            stored.append(name, value);
        }
        stored.build()
    }

    #[test]
    fn a_move_goes_through_its_phases() {
        let first = DatabaseEntry::of("shop", None);
        assert_eq!((first.line.as_str(), first.generation), (DEFAULT, 0));
        let claimed = first.claimed(DEFAULT, "eu", 0);
        let change = claimed.change(&first);
        assert!(change.get("upsert").is_some_and(|upsert| upsert.is_truthy()));
        let read = DatabaseEntry::of("shop", Some(stored(&change, "shop").view()));
        assert_eq!(read, DatabaseEntry { is_stored: true, ..claimed });
        let switched = read.at(Phase::Stopped).at(Phase::Switched);
        assert_eq!((switched.line.as_str(), switched.generation), ("eu", 1));
        let change = switched.change(&read);
        let query = change.get("query").and_then(|query| query.as_document()).expect("one");
        assert_eq!(query.get("generation").and_then(|value| value.as_integer()), Some(1));
        assert_eq!(query.get("line").and_then(|line| line.as_str()), Some(DEFAULT));
        let again = switched.claimed(DEFAULT, "eu", 1);
        assert_eq!(first.claimed(DEFAULT, "eu", 7).generation, 8);
        assert_eq!(again.journey.as_ref().map(|journey| journey.phase), Some(Phase::Switched));
        let settled = again.settled();
        let change = settled.change(&again);
        let update = change.get("update").and_then(|update| update.as_document()).expect("one");
        assert!(update.get("$unset").is_some());
        assert_eq!(DatabaseEntry::of("shop", Some(stored(&change, "shop").view())), settled);
    }
}
