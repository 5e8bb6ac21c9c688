//! What databases ask of the layer of versions.

use frond_doc::Document;
use frond_engine::Transaction;

use crate::inside::{Database, Error, Repository, Rows, Versions};
use crate::version::{dropped, source};

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
        database.source(collection, stage)
    }

    fn remember_collection(
        &self,
        database: &Database,
        transaction: &mut Transaction,
        branch: &str,
        collection: &str,
    ) -> Result<(), Error> {
        database.remember_drop(transaction, branch, collection)
    }

    fn remember_database(
        &self,
        database: &Database,
        transaction: &mut Transaction,
        repository: &Repository,
    ) -> Result<(), Error> {
        dropped::remember(transaction, database, repository)
    }
}
