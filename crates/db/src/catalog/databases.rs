//! Lists the databases.

use crate::catalog::CatalogView;
use crate::database::{Context, Database};
use crate::error::Error;
use crate::frond::Frond;
use crate::name::{DatabaseName, VersionName};
use crate::reader::Reader;
use crate::refs::repositories;

/// The facts about a database for `listDatabases`.
#[derive(Clone, Debug)]
pub struct DatabaseInfo {
    /// Its name; branches are not listed.
    pub name: String,
    /// Bytes of its documents and indexes, uncompressed (from the trees' counts).
    pub bytes: u64,
    /// Whether it has no collections.
    pub empty: bool,
}

impl Frond {
    /// All databases, by name.
    ///
    /// # Errors
    /// `Damaged` or `Unavailable` if a record or a catalog can't be read.
    pub fn list_databases(&self) -> Result<Vec<DatabaseInfo>, Error> {
        let reader = Reader::now(self.engine());
        let mut databases = Vec::new();
        for (name, _) in repositories(&reader)? {
            let name = DatabaseName { name, version: VersionName::Default };
            let database = Database::resolve(self, name, Context::Alone)?;
            databases.push(info(&database, &reader)?);
        }
        Ok(databases)
    }
}

/// Returns the facts about a database for `listDatabases`.
fn info(database: &Database, reader: &Reader<'_>) -> Result<DatabaseInfo, Error> {
    let catalog = CatalogView::open(reader, database)?;
    let mut bytes = 0;
    let names = catalog.names()?;
    for name in &names {
        if let Some(collection) = catalog.collection(name)? {
            for tree in collection.trees() {
                bytes += reader.bytes(tree)?;
            }
        }
    }
    Ok(DatabaseInfo { name: database.repository_name().to_owned(), bytes, empty: names.is_empty() })
}
