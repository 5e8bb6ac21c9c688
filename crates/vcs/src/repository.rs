//! A database and its history: what requests about versions work on.

use std::ops::Deref;

use frond_db::inside::Context;
use frond_db::{Database, DatabaseName, Error, Frond, VersionName};

/// One version of one database, with its history. Everything that a [`Database`] can do, it can,
/// too. Cloning is cheap.
///
/// Its methods stand beside what they are about: commits in `commit`, branches in `branch`, and so
/// on.
#[derive(Clone)]
pub struct Repository {
    database: Database,
}

impl Repository {
    /// Opens a version of a database by its name: `shop`, `shop@sale`, `shop@main~2`.
    ///
    /// # Errors
    /// As [`Frond::database`].
    pub fn open(frond: &Frond, name: &str) -> Result<Repository, Error> {
        frond.database(name).map(Repository::from)
    }

    /// The version of a database that `name` names, whatever databases may be called.
    pub(crate) fn resolve(frond: &Frond, name: DatabaseName) -> Result<Repository, Error> {
        Database::resolve(frond, name, Context::Alone).map(Repository::from)
    }

    /// The default branch of the database `name`.
    pub(crate) fn default_branch_of(frond: &Frond, name: String) -> Result<Repository, Error> {
        Repository::resolve(frond, DatabaseName { name, version: VersionName::Default })
    }

    /// The same version for the move of this generation to another line: see [`frond_db::fence`].
    #[must_use]
    pub fn moved_by(self, generation: i64) -> Repository {
        Repository { database: self.database.moved_by(generation) }
    }

    /// The same version, as a database without history.
    pub fn database(&self) -> &Database {
        &self.database
    }
}

impl Deref for Repository {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}

impl From<Database> for Repository {
    fn from(database: Database) -> Repository {
        Repository { database }
    }
}
