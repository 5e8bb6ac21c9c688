//! The one way from databases up to the layer of versions, a crate above: what requests on a
//! database ask of it.
//!
//! Versions stand on databases and use them; a database reaches them only by [`Versions`], which is
//! given to [`Frond`](crate::frond::Frond) when its directory is opened. There it lies as a value
//! of unknown type, because the trait speaks of databases, which stand above it.

use std::any::Any;
use std::sync::Arc;

use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value, ValueBuf};
use frond_engine::Transaction;
use frond_tree::Tree;

use crate::commit_id::CommitId;
use crate::database::Database;
use crate::error::Error;
use crate::reader::Reader;
use crate::system::RepositoryRecord;

/// A commit of a branch's history, and the branch later.
pub struct Span {
    /// The commit.
    pub from: CommitId,
    /// Its catalog.
    pub before: Tree,
    /// The catalog later.
    pub after: Tree,
    /// The commit that this is of; `None`: it is a working state's, which only its snapshot keeps.
    pub to: Option<CommitId>,
}

/// Documents that a stage makes.
pub type Rows = Box<dyn Iterator<Item = Result<DocumentBuf, Error>> + Send>;

/// The services of the layer of versions for requests on databases.
pub trait Versions: Send + Sync {
    /// Whether a stage of this name, the first of its pipeline, makes documents that show history.
    fn is_source(&self, stage: &str) -> bool;

    /// The documents that such a stage makes.
    ///
    /// # Errors
    /// Those of the stage.
    fn source(
        &self,
        database: &Database,
        collection: Option<&str>,
        stage: Document<'_>,
    ) -> Result<Rows, Error>;

    /// Returns the span between a commit of a branch's history and the branch at the moment of
    /// `reader`, or a later commit, if one is given.
    ///
    /// # Errors
    /// `BadValue` if the branch's history has no such commits.
    fn span(
        &self,
        database: &Database,
        reader: &Reader<'_>,
        from: &str,
        to: Option<CommitId>,
    ) -> Result<Span, Error>;

    /// Remembers a collection that `transaction` drops, so that it can come back.
    ///
    /// # Errors
    /// If what it holds can't be folded or stored.
    fn remember_collection(
        &self,
        database: &Database,
        transaction: &mut Transaction,
        branch: &str,
        collection: &str,
    ) -> Result<(), Error>;

    /// Gives what waits for a collection of a branch to the second of `names`, which it has instead
    /// of the first from `transaction` on.
    ///
    /// # Errors
    /// `Damaged` if what waits can't be read; as the transaction's `put`.
    fn rename_collection(
        &self,
        database: &Database,
        transaction: &mut Transaction,
        branch: &str,
        names: (&str, &str),
    ) -> Result<(), Error>;

    /// Remembers a whole database that `transaction` drops, so that it can come back.
    ///
    /// # Errors
    /// If what it holds can't be folded or stored.
    fn remember_database(
        &self,
        database: &Database,
        transaction: &mut Transaction,
        repository: &RepositoryRecord,
    ) -> Result<(), Error>;
}

/// No layer of versions: what is dropped is gone, and no stage shows history.
pub(crate) struct NoVersions;

impl Versions for NoVersions {
    fn is_source(&self, _: &str) -> bool {
        false
    }

    fn source(&self, _: &Database, _: Option<&str>, _: Document<'_>) -> Result<Rows, Error> {
        Err(Error::internal("a stage of versions without versions"))
    }

    fn span(
        &self,
        _: &Database,
        _: &Reader<'_>,
        _: &str,
        _: Option<CommitId>,
    ) -> Result<Span, Error> {
        Err(Error::internal("a commit without versions"))
    }

    fn remember_collection(
        &self,
        _: &Database,
        _: &mut Transaction,
        _: &str,
        _: &str,
    ) -> Result<(), Error> {
        Ok(())
    }

    fn rename_collection(
        &self,
        _: &Database,
        _: &mut Transaction,
        _: &str,
        _: (&str, &str),
    ) -> Result<(), Error> {
        Ok(())
    }

    fn remember_database(
        &self,
        _: &Database,
        _: &mut Transaction,
        _: &RepositoryRecord,
    ) -> Result<(), Error> {
        Ok(())
    }
}

/// The layer of versions as a data directory keeps it.
struct Layer(Box<dyn Versions>);

/// A layer to open a data directory with.
pub(crate) fn layer(versions: impl Versions + 'static) -> Arc<dyn Any + Send + Sync> {
    Arc::new(Layer(Box::new(versions)))
}

impl Database {
    /// The layer of versions above.
    ///
    /// # Errors
    /// If the data directory was opened with something else: a defect.
    pub(crate) fn versions(&self) -> Result<&dyn Versions, Error> {
        let layer = self.frond().layer().downcast_ref::<Layer>();
        layer.map(|layer| &*layer.0).ok_or_else(|| Error::internal("there is no layer of versions"))
    }

    /// The first stage of a pipeline, if it shows history, and the stages after it.
    ///
    /// # Errors
    /// As [`Database::versions`].
    #[doc(hidden)]
    pub fn split_source(&self, stages: Array<'_>) -> Result<Option<(ValueBuf, ValueBuf)>, Error> {
        let Some(first) = stages.get(0).and_then(|first| first.as_document()) else {
            return Ok(None);
        };
        let mut fields = first.iter();
        let name = fields.next().map(|(name, _)| name);
        let versions = self.versions()?;
        if fields.next().is_some() || !name.is_some_and(|name| versions.is_source(name)) {
            return Ok(None);
        }
        let mut rest = DocumentBuilder::new();
        rest.begin_array("rest");
        for stage in stages.iter().skip(1) {
            rest.push(stage);
        }
        rest.end();
        let rest = rest.build().get("rest").map(|rest| rest.to_buf());
        Ok(rest.map(|rest| (Value::Document(first).to_buf(), rest)))
    }
}
