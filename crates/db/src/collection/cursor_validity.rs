//! Checks whether the things that a cursor reads are still there.
//!
//! A cursor reads one snapshot and could be read to its end whatever happens meanwhile. MongoDB
//! ends it (175) once its collection was dropped or renamed, or an index by which it finds its
//! documents was dropped, and applications rely on that. So `$out` ends it, which there renames a
//! collection onto its target; and a branch that is deleted or renamed ends it as a dropped
//! database does.
//!
//! 1. A directory counts such changes, of all its collections ([`Frond::definitions_changed`]).
//! 2. Before each document a cursor compares the count with the one when it began: an atomic load.
//! 3. Where it is another, the collection is looked up as it is now. Mostly another collection was
//!    changed. What has its name and UUID still may be another all the same:
//!    [`ended_cursors`](crate::ended_cursors).
//!
//! Cursors of commits, past moments and transactions are never ended.
//!
//! [`Frond::definitions_changed`]: crate::frond::Frond::definitions_changed

use frond_query::Code;

use crate::catalog::Catalog;
use crate::catalog::collections::list_collections;
use crate::collection::plan::{Access, Source};
use crate::database::Database;
use crate::error::Error;
use crate::name::Target;
use crate::schema::Collection;

/// The things that must be there for a cursor to go on.
pub(crate) struct CursorValidity {
    database: Database,
    collection: String,
    uuid: [u8; 16],
    indexes: Vec<String>,
    /// The count of changes when it began.
    begun: u64,
    /// The count up to which it is known to be there.
    seen: u64,
}

impl CursorValidity {
    /// Returns what a cursor depends on that reads `collection`, called `name`, by `access`; `None`
    /// if no event ends it.
    pub(crate) fn of(
        database: &Database,
        name: &str,
        collection: &Collection,
        access: &Access,
    ) -> Option<CursorValidity> {
        let index = |source: &Source| match source {
            Source::Index(position) => Some(collection.indexes[*position].spec.name.clone()),
            Source::Collection | Source::Natural | Source::Id | Source::Place => None,
        };
        let validity = CursorValidity::of_collection(database, name, collection)?;
        let indexes = access.paths.iter().filter_map(|path| index(&path.source)).collect();
        Some(CursorValidity { indexes, ..validity })
    }

    /// As [`CursorValidity::of`], for one that needs no index.
    pub(crate) fn of_collection(
        database: &Database,
        name: &str,
        collection: &Collection,
    ) -> Option<CursorValidity> {
        let is_branch = matches!(database.target(), Target::Branch(_));
        if !is_branch || database.is_past() || database.transaction().is_some() {
            return None;
        }
        let begun = database.frond().definitions_changed();
        Some(CursorValidity {
            database: database.clone(),
            collection: name.to_owned(),
            uuid: collection.uuid,
            indexes: Vec::new(),
            begun,
            seen: begun,
        })
    }

    /// Fails if something isn't there any more.
    ///
    /// # Errors
    /// `QueryPlanKilled` (175); `Damaged` or `Unavailable` if the catalog can't be read.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        let changed = self.database.frond().definitions_changed();
        if changed == self.seen {
            return Ok(());
        }
        let reader = self.database.reader();
        let found = Catalog::of(&reader, &self.database).collection(&self.collection)?;
        let Some(found) = found.filter(|found| found.uuid == self.uuid && !self.has_ended()) else {
            return Err(self.gone());
        };
        let is_there = |name: &&String| found.indexes.iter().any(|index| index.spec.name == **name);
        if let Some(name) = self.indexes.iter().find(|name| !is_there(name)) {
            return Err(killed(format!("index '{name}' dropped")));
        }
        self.seen = changed;
        Ok(())
    }

    fn has_ended(&self) -> bool {
        let (repository, branch) = (self.database.repository_name(), self.database.branch());
        let branch = branch.unwrap_or_default();
        let ended = self.database.frond().ended_cursors();
        ended.has_ended(repository, branch, &self.collection, self.begun)
    }

    /// The error of a collection that has another name or none, or is another.
    fn gone(&self) -> Error {
        let others = list_collections(&self.database).unwrap_or_default();
        let renamed = others
            .into_iter()
            .find(|other| other.uuid == self.uuid && other.name != self.collection);
        match renamed {
            Some(other) => killed(format!(
                "collection renamed from '{}' to '{}'",
                self.database.namespace(&self.collection),
                self.database.namespace(&other.name)
            )),
            None => {
                killed(format!("collection dropped: {}", self.database.namespace(&self.collection)))
            }
        }
    }
}

fn killed(message: String) -> Error {
    Error::invalid(Code::QueryPlanKilled, message)
}
