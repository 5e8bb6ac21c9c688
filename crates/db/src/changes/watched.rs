//! Selects the events that concern a stream, and those that end it.

use frond_doc::Value;

use super::request::Watched;
use crate::database::Database;
use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::reader::Reader;
use crate::{refs, system};

impl Watched {
    /// Whether the event may concern what is watched: seen without reading anything.
    pub fn may_be_concerned(&self, event: &Event) -> bool {
        let is_of = |database: &Database| {
            database.repository_name() == event.scope.database
                && database.branch() == Some(&event.scope.branch)
        };
        match self {
            Watched::Collection(database, name) => {
                is_of(database) && concerns_collection(event, name)
            }
            Watched::Database(database) => is_of(database),
            Watched::Deployment(_) => true,
        }
    }

    /// The name of the event's database, if the event concerns what is watched.
    ///
    /// # Errors
    /// `Damaged` if the default branch can't be read.
    pub fn concerned(&self, event: &Event) -> Result<Option<String>, Error> {
        match self {
            Watched::Collection(database, _) | Watched::Database(database) => {
                Ok(self.may_be_concerned(event).then(|| database.name().to_string()))
            }
            Watched::Deployment(frond) => {
                let name = &event.scope.database;
                let repository = refs::repository(&Reader::now(frond.engine()), name)?;
                let default = repository.map(|repository| repository.default_branch);
                let default = default.as_deref().unwrap_or(system::DEFAULT_BRANCH);
                Ok((event.scope.branch == default).then(|| name.clone()))
            }
        }
    }

    /// Whether its stream ends behind the event.
    pub fn is_ended_by(&self, event: &Event) -> bool {
        match self {
            Watched::Collection(..) => {
                matches!(event.kind, EventKind::Drop | EventKind::Rename | EventKind::DropDatabase)
            }
            Watched::Database(_) => event.kind == EventKind::DropDatabase,
            Watched::Deployment(_) => false,
        }
    }
}

/// Whether an event of a collection's branch is of the collection, or of what has it.
fn concerns_collection(event: &Event, name: &str) -> bool {
    let target = match event.facts.get("to") {
        Some(Value::String(to)) if event.facts.get("dropTarget").is_some() => Some(to),
        _ => None,
    };
    event.scope.collection == name
        || target == Some(name)
        || event.kind == EventKind::DropDatabase
        || event.kind == EventKind::Rewritten && event.scope.collection.is_empty()
}
