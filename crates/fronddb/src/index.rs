//! Indexes of a collection.

use std::time::Duration;

use bson::Bson;
use frond_db::catalog::IndexSpec;

use crate::{Collection, Document, Result, convert};

/// The options of an index.
#[derive(Clone, Debug, Default)]
pub struct IndexOptions {
    /// Its name; `None`: made of its key, `price_1`.
    pub name: Option<String>,
    /// No two documents have the same key.
    pub unique: bool,
    /// Documents without any of the fields aren't in it.
    pub sparse: bool,
    /// Only documents that match this filter are in it.
    pub partial_filter: Option<Document>,
    /// The time after the date in its field at which a document expires; see
    /// [`Frond::expire_documents`](crate::Frond::expire_documents).
    pub expire_after: Option<Duration>,
    /// Further fields that its entries hold, so that a find of them reads no document.
    pub include: Vec<String>,
    /// Its entries hold whole documents: ranges of it are read as fast as ranges of `_id`.
    pub clustering: bool,
    /// The rules by which strings compare.
    pub collation: Option<Document>,
    /// Any other option of MongoDB's `createIndexes`: `weights`, `wildcardProjection` and so on.
    pub other: Document,
}

impl<T> Collection<T> {
    /// Makes an index and answers with its name; nothing if it is there. Writers go on while it is
    /// built. It is versioned with the documents.
    ///
    /// ```
    /// use fronddb::{Document, IndexOptions, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.create_index(doc! { "price": -1, "name": 1 })?;
    /// let unique = IndexOptions { unique: true, ..IndexOptions::default() };
    /// assert_eq!(items.create_index_with(doc! { "sku": 1 }, unique)?, "sku_1");
    ///
    /// items.insert_one(doc! { "sku": "a" })?;
    /// assert!(items.insert_one(doc! { "sku": "a" }).is_err());
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `IndexOptionsConflict` or `IndexKeySpecsConflict` if there is another one of that key or
    /// name.
    pub fn create_index(&self, key: Document) -> Result<String> {
        self.create_index_with(key, IndexOptions::default())
    }

    /// As [`Collection::create_index`], as `options` say.
    ///
    /// # Errors
    /// As there; `DuplicateKey` if it is to be unique and the documents aren't; options that don't
    /// go together.
    pub fn create_index_with(&self, key: Document, options: IndexOptions) -> Result<String> {
        let spec = IndexSpec::parse(convert::encode(&options.into_document(key))?.view())?;
        self.inner().create_indexes(&self.name, std::slice::from_ref(&spec))?;
        Ok(spec.name)
    }

    /// The indexes, `_id`'s first, each as MongoDB's `listIndexes` shows it: `key`, `name` and its
    /// options.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such collection.
    pub fn list_indexes(&self) -> Result<Vec<Document>> {
        let indexes = self.inner().list_indexes(&self.name)?;
        indexes.iter().map(|index| convert::decode(&index.to_document())).collect()
    }

    /// Drops an index.
    ///
    /// # Errors
    /// `IndexNotFound` if there is no index of that name.
    pub fn drop_index(&self, name: &str) -> Result<()> {
        self.inner().drop_indexes(&self.name, name)?;
        Ok(())
    }
}

impl IndexOptions {
    /// As an element of `createIndexes`' `indexes`.
    fn into_document(self, key: Document) -> Document {
        let mut spec = self.other;
        spec.insert("key", key);
        let mut say = |option: &str, value: Option<Bson>| {
            if let Some(value) = value {
                spec.insert(option, value);
            }
        };
        let yes = |is_wanted: bool| is_wanted.then_some(Bson::Boolean(true));
        say("name", self.name.map(Bson::from));
        say("unique", yes(self.unique));
        say("sparse", yes(self.sparse));
        say("clustering", yes(self.clustering));
        say("partialFilterExpression", self.partial_filter.map(Bson::from));
        say("collation", self.collation.map(Bson::from));
        let seconds = |after: Duration| i64::try_from(after.as_secs()).unwrap_or(i64::MAX);
        say("expireAfterSeconds", self.expire_after.map(seconds).map(Bson::from));
        say("include", Some(self.include).filter(|include| !include.is_empty()).map(Bson::from));
        spec
    }
}
