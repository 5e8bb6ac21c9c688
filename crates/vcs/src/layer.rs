//! The services that databases ask of the layer of versions.

use frond_db::inside::{CommitId, Database, Error, Reader, RepositoryRecord, Rows, Span, Versions};
use frond_doc::Document;
use frond_engine::Transaction;

use crate::merge::waiting;
use crate::repository::Repository;
use crate::source;
use crate::undo::dropped;

/// The layer of versions, as a data directory is opened with it.
pub(crate) struct Layer;

impl Versions for Layer {
    fn is_source(&self, stage: &str) -> bool {
        source::STAGES.contains(&stage)
    }

    fn source(
        &self,
        database: &Database,
        collection: Option<&str>,
        stage: Document<'_>,
    ) -> Result<Rows, Error> {
        Repository::from(database.clone()).source(collection, stage)
    }

    fn span(
        &self,
        database: &Database,
        reader: &Reader<'_>,
        from: &str,
        to: Option<CommitId>,
    ) -> Result<Span, Error> {
        Repository::from(database.clone()).span(reader, from, to)
    }

    fn remember_collection(
        &self,
        database: &Database,
        transaction: &mut Transaction,
        branch: &str,
        collection: &str,
    ) -> Result<(), Error> {
        Repository::from(database.clone()).remember_drop(transaction, branch, collection)
    }

    fn rename_collection(
        &self,
        database: &Database,
        transaction: &mut Transaction,
        branch: &str,
        names: (&str, &str),
    ) -> Result<(), Error> {
        let (engine, name) = (database.frond().engine(), database.repository_name());
        waiting::rename(engine, transaction, (name, branch), names)
    }

    fn remember_database(
        &self,
        database: &Database,
        transaction: &mut Transaction,
        repository: &RepositoryRecord,
    ) -> Result<(), Error> {
        dropped::remember(transaction, &Repository::from(database.clone()), repository)
    }
}
