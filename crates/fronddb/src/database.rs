//! A database at a branch or version: its collections. Its methods for versions are in the modules
//! beside this one.

use std::fmt;
use std::sync::Arc;

use crate::convert;
use crate::find::{Aggregate, Source};
use crate::frond::Settings;
use crate::{Collection, Document, Result};

/// A database at one version: the working state of a branch, read and written, or a commit, read
/// only.
///
/// ```
/// use fronddb::{Document, doc};
/// # let data = tempfile::tempdir()?;
///
/// let frond = fronddb::open(&data)?;
/// let shop = frond.database("shop")?;
/// shop.collection::<Document>("items").insert_one(doc! { "_id": 1, "name": "lamp" })?;
/// shop.commit("first items")?;
///
/// assert_eq!(frond.list_databases()?, ["shop"]);
/// assert_eq!(shop.list_collections()?, ["items"]);
/// assert!(frond.database("shop@main~0")?.is_read_only());
/// # Ok::<(), fronddb::Error>(())
/// ```
///
/// Cloning is cheap. Each call sees what is committed, in the database's sense, when it begins.
#[derive(Clone)]
pub struct Database {
    pub(crate) inner: frond_vcs::Repository,
    pub(crate) settings: Arc<Settings>,
}

impl Database {
    pub(crate) fn new(inner: frond_vcs::Repository, settings: &Arc<Settings>) -> Database {
        Database { inner, settings: Arc::clone(settings) }
    }

    /// The name by which it was opened: `shop` or `shop@sale`.
    pub fn name(&self) -> String {
        self.inner.name().to_string()
    }

    /// The branch whose working state this is; `None` if it is a commit.
    pub fn branch_name(&self) -> Option<&str> {
        self.inner.branch()
    }

    /// Whether it is a commit, or a moment that has gone by, rather than a branch.
    pub fn is_read_only(&self) -> bool {
        self.inner.is_read_only()
    }

    /// A collection of documents that are read and written as `T`: a type with serde's two derives,
    /// or [`Document`] for any. It begins to exist with the first document.
    pub fn collection<T>(&self, name: &str) -> Collection<T> {
        Collection::new(self.clone(), name)
    }

    /// Makes a collection before there is a document in it.
    ///
    /// # Errors
    /// `NamespaceExists` if it is there with options.
    pub fn create_collection(&self, name: &str) -> Result<()> {
        self.create_collection_with(name, Document::new())
    }

    /// Makes a collection or a view with the options of MongoDB's `create`: `validator`, `capped`,
    /// `viewOn` and so on.
    ///
    /// ```
    /// use fronddb::{Code, Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// shop.create_collection_with("items", doc! { "validator": { "price": { "$gt": 0 } } })?;
    /// let items = shop.collection::<Document>("items");
    /// let error = items.insert_one(doc! { "price": -1 }).unwrap_err();
    /// assert_eq!(error.code(), Code::DocumentValidationFailure);
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NamespaceExists` if it is there with others; options that aren't supported, by name.
    pub fn create_collection_with(&self, name: &str, options: Document) -> Result<()> {
        Ok(self.inner.create_collection(name, convert::encode(&options)?.view())?)
    }

    /// The names of the collections and views, sorted.
    ///
    /// # Errors
    /// If the disk fails, or damage.
    pub fn list_collections(&self) -> Result<Vec<String>> {
        Ok(self.inner.list_collections()?.into_iter().map(|info| info.name).collect())
    }

    /// Runs a pipeline that brings its own documents: its first stage is `$documents` or one about
    /// history, as `$diff`, `$log` and `$history` are.
    pub fn aggregate(&self, pipeline: impl IntoIterator<Item = Document>) -> Aggregate<Document> {
        Aggregate::new(Source { database: self.clone(), collection: None }, pipeline)
    }

    /// Removes the database with all its branches and its history.
    ///
    /// # Errors
    /// `UserWritesBlocked` if this is a commit; if a branch is protected.
    pub fn drop(self) -> Result<()> {
        Ok(self.inner.drop_database()?)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Database").field(&self.name()).finish()
    }
}
