//! Selects the events that concern a stream, and those that end it.

use frond_doc::Value;

use super::request::Watched;
use crate::database::Database;
use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::reader::Reader;
use crate::{refs, system};

impl Watched {
    /// The name of the event's database, if the event concerns what is watched.
    ///
    /// # Errors
    /// `Damaged` if the default branch can't be read.
    pub fn concerned(&self, event: &Event) -> Result<Option<String>, Error> {
        let of = |database: &Database| {
            let is_of = database.repository_name() == event.scope.database
                && database.branch() == Some(&event.scope.branch);
            is_of.then(|| database.name().to_string())
        };
        match self {
            Watched::Collection(database, name) => {
                let target = match event.facts.get("to") {
                    Some(Value::String(to)) if event.facts.get("dropTarget").is_some() => Some(to),
                    _ => None,
                };
                let is_of = event.scope.collection == *name
                    || target == Some(name)
                    || event.kind == EventKind::DropDatabase
                    || event.kind == EventKind::Rewritten && event.scope.collection.is_empty();
                Ok(of(database).filter(|_| is_of))
            }
            Watched::Database(database) => Ok(of(database)),
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
