//! A collection: documents in, out and changed.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use bson::Bson;
use frond_db::{DeleteStatement, Durability, FindAndModify, UpdateStatement};
use frond_doc::{DocumentBuf, Value, normalise};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::find::{Aggregate, Find, Source};
use crate::{Database, Document, Error, Result, convert, doc};

/// Documents of an insert that are held at once; what is behind them hasn't been asked for yet.
const BATCH_COUNT_MAX: usize = 1_000;
/// Bytes of them, but for the last document.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// A collection of documents that are read and written as `T`.
///
/// ```
/// use fronddb::doc;
/// use serde::{Deserialize, Serialize};
/// # let data = tempfile::tempdir()?;
///
/// #[derive(Serialize, Deserialize)]
/// struct Item {
///     #[serde(rename = "_id")]
///     id: i32,
///     name: String,
///     price: f64,
/// }
///
/// let shop = fronddb::open(&data)?.database("shop")?;
/// let items = shop.collection::<Item>("items");
/// items.insert_one(Item { id: 1, name: "lamp".to_owned(), price: 30.0 })?;
/// items.update_one(doc! { "_id": 1 }, doc! { "$inc": { "price": 5 } })?;
/// assert_eq!(items.get(1)?.unwrap().price, 35.0);
/// # Ok::<(), fronddb::Error>(())
/// ```
///
/// It is a name: it costs nothing to make one, and the collection begins to exist with its first
/// document.
///
/// Of several documents or statements in one call each is written on its own: what was written
/// before one that fails stays. A [transaction](crate::Frond::transaction) makes it all or nothing.
pub struct Collection<T> {
    pub(crate) database: Database,
    pub(crate) name: String,
    documents: PhantomData<fn(T) -> T>,
}

/// The options of updates and replacements.
#[derive(Clone, Debug, Default)]
pub struct UpdateOptions {
    /// Insert a document, made of filter and update, if none matches.
    pub upsert: bool,
    /// The order in which the first match is chosen; not for `update_many`.
    pub sort: Option<Document>,
    /// Conditions on the elements that `$[name]` in the update means: MongoDB's `arrayFilters`.
    pub array_filters: Vec<Document>,
    /// The index to use: its name or its key.
    pub hint: Option<Bson>,
    /// Variables for expressions in filter and update: MongoDB's `let`.
    pub variables: Option<Document>,
    /// The rules by which strings compare.
    pub collation: Option<Document>,
}

/// The options of changing or removing one document and returning it.
#[derive(Clone, Debug, Default)]
pub struct FindOneAndOptions {
    /// Answer with the document as it is after the change, not before.
    pub return_new: bool,
    /// Insert a document, made of filter and update, if none matches.
    pub upsert: bool,
    /// The order in which the first match is chosen.
    pub sort: Option<Document>,
    /// The fields of it that are answered; the others aren't.
    pub projection: Option<Document>,
    /// Conditions on the elements that `$[name]` in the update means: MongoDB's `arrayFilters`.
    pub array_filters: Vec<Document>,
    /// The index to use: its name or its key.
    pub hint: Option<Bson>,
    /// Variables for expressions in filter and update: MongoDB's `let`.
    pub variables: Option<Document>,
    /// The rules by which strings compare.
    pub collation: Option<Document>,
}

/// The result of an update.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct UpdateResult {
    /// Documents that matched; one that was upserted isn't counted.
    pub matched_count: u64,
    /// Documents that are different now.
    pub modified_count: u64,
    /// The `_id` of the document that was upserted.
    pub upserted_id: Option<Bson>,
}

impl<T> Collection<T> {
    pub(crate) fn new(database: Database, name: &str) -> Collection<T> {
        Collection { database, name: name.to_owned(), documents: PhantomData }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The database that it is in.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The same collection, its documents read and written as another type.
    pub fn with_type<U>(&self) -> Collection<U> {
        Collection::new(self.database.clone(), &self.name)
    }

    pub(crate) fn inner(&self) -> &frond_vcs::Repository {
        &self.database.inner
    }

    pub(crate) fn durability(&self) -> Durability {
        self.database.settings.durability
    }

    pub(crate) fn source(&self) -> Source {
        Source { database: self.database.clone(), collection: Some(self.name.clone()) }
    }

    /// Finds the documents that match `filter`: put the find together, then iterate over it.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_many([doc! { "_id": 1, "price": 30 }, doc! { "_id": 2, "price": 240 }])?;
    /// for item in items.find(doc! { "price": { "$lt": 100 } }) {
    ///     assert_eq!(item?, doc! { "_id": 1, "price": 30 });
    /// }
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    pub fn find(&self, filter: Document) -> Find<T> {
        Find::new(self.source(), filter)
    }

    /// Returns how many documents match `filter`; with `doc! {}` the collection knows, and nothing
    /// is read.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_many((0..10).map(|n| doc! { "price": n }))?;
    /// assert_eq!(items.count(doc! { "price": { "$gte": 7 } })?, 3);
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the filter is wrong.
    pub fn count(&self, filter: Document) -> Result<u64> {
        self.find(filter).count()
    }

    /// The distinct values of a field of the documents that match `filter`.
    ///
    /// ```
    /// use fronddb::{Bson, Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_many([doc! { "tags": ["wood", "sale"] }, doc! { "tags": ["wood"] }])?;
    /// assert_eq!(items.distinct("tags", doc! {})?, [Bson::from("sale"), Bson::from("wood")]);
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Find::distinct`].
    pub fn distinct(&self, field: &str, filter: Document) -> Result<Vec<Bson>> {
        self.find(filter).distinct(field)
    }

    /// Runs an aggregation pipeline over the documents.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_many([doc! { "price": 30 }, doc! { "price": 240 }])?;
    /// let sum = doc! { "$group": { "_id": null, "sum": { "$sum": "$price" } } };
    /// assert_eq!(items.aggregate([sum]).to_vec()?[0].get_i32("sum").unwrap(), 270);
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    pub fn aggregate(&self, pipeline: impl IntoIterator<Item = Document>) -> Aggregate<Document> {
        Aggregate::new(self.source(), pipeline)
    }

    /// Changes the first document that matches, by update operators (`doc! { "$set": { .. } }`) or
    /// a pipeline (`vec![doc! { .. }, ..]`).
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1, "price": 30 })?;
    /// let result = items.update_one(doc! { "_id": 1 }, doc! { "$inc": { "price": 5 } })?;
    /// assert_eq!((result.matched_count, result.modified_count), (1, 1));
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// If filter or update are wrong; `DuplicateKey`.
    pub fn update_one(&self, filter: Document, update: impl Into<Bson>) -> Result<UpdateResult> {
        self.update_one_with(filter, update, UpdateOptions::default())
    }

    /// As [`Collection::update_one`], as `options` say.
    ///
    /// # Errors
    /// As there.
    pub fn update_one_with(
        &self,
        filter: Document,
        update: impl Into<Bson>,
        options: UpdateOptions,
    ) -> Result<UpdateResult> {
        self.update(statement(&filter, convert::value(update)?, &options)?)
    }

    /// Changes all documents that match.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_many([doc! { "_id": 1, "price": 30 }, doc! { "_id": 2, "price": 240 }])?;
    /// let cheap = doc! { "price": { "$lt": 100 } };
    /// let result = items.update_many(cheap, doc! { "$mul": { "price": 2 } })?;
    /// assert_eq!((result.matched_count, result.modified_count), (1, 1));
    /// assert_eq!(items.get(1)?, Some(doc! { "_id": 1, "price": 60 }));
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Collection::update_one`]; what was changed before one that fails stays.
    pub fn update_many(&self, filter: Document, update: impl Into<Bson>) -> Result<UpdateResult> {
        self.update_many_with(filter, update, UpdateOptions::default())
    }

    /// As [`Collection::update_many`], as `options` say.
    ///
    /// # Errors
    /// As there.
    pub fn update_many_with(
        &self,
        filter: Document,
        update: impl Into<Bson>,
        options: UpdateOptions,
    ) -> Result<UpdateResult> {
        let statement = statement(&filter, convert::value(update)?, &options)?;
        self.update(UpdateStatement { multi: true, ..statement })
    }

    fn update(&self, statement: UpdateStatement) -> Result<UpdateResult> {
        let report = self.inner().update(&self.name, &[statement], true, self.durability())?;
        if let Some(failed) = report.errors.into_iter().next() {
            return Err(failed.error.into());
        }
        let upserted = report.upserted.first().map(|(_, id)| convert::bson(id));
        Ok(UpdateResult {
            matched_count: report.matched,
            modified_count: report.modified,
            upserted_id: upserted.transpose()?,
        })
    }

    /// Deletes the first document that matches; answers how many: 0 or 1.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1 })?;
    /// assert_eq!(items.delete_one(doc! { "_id": 1 })?, 1);
    /// assert_eq!(items.delete_one(doc! { "_id": 1 })?, 0);
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the filter is wrong.
    pub fn delete_one(&self, filter: Document) -> Result<u64> {
        self.delete(filter, true)
    }

    /// Deletes all documents that match; answers how many.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_many([doc! { "sold": true }, doc! { "sold": false }, doc! { "sold": true }])?;
    /// assert_eq!(items.delete_many(doc! { "sold": true })?, 2);
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the filter is wrong.
    pub fn delete_many(&self, filter: Document) -> Result<u64> {
        self.delete(filter, false)
    }

    fn delete(&self, filter: Document, only_first: bool) -> Result<u64> {
        let filter = convert::encode(&filter)?;
        let statement = DeleteStatement { filter, only_first, ..DeleteStatement::default() };
        let report = self.inner().delete(&self.name, &[statement], true, self.durability())?;
        match report.errors.into_iter().next() {
            Some(failed) => Err(failed.error.into()),
            None => Ok(report.count),
        }
    }

    /// Gives the collection another name; its history follows.
    ///
    /// # Errors
    /// `NamespaceNotFound` if there is no such collection; `NamespaceExists` if there is one of
    /// that name.
    pub fn rename(&self, to: &str) -> Result<Collection<T>> {
        self.inner().rename_collection(&self.name, to, false)?;
        Ok(Collection::new(self.database.clone(), to))
    }

    /// Drops the collection; answers whether there was one. Commits keep what they have of it, and
    /// [`Database::undo`] brings it back.
    ///
    /// # Errors
    /// `UserWritesBlocked` if the version can only be read.
    pub fn drop(self) -> Result<bool> {
        Ok(self.inner().drop_collection(&self.name)?)
    }

    /// Inserts documents that are encoded, the last of `count` that there are so far, until one
    /// fails.
    fn insert_batch(&self, batch: &mut Vec<DocumentBuf>, count: usize) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let before = count - batch.len();
        let report = self.inner().insert(&self.name, batch, true, self.durability())?;
        batch.clear();
        match report.errors.into_iter().next() {
            Some(failed) => Err(Error::at(before + failed.position, failed.error)),
            None => Ok(()),
        }
    }
}

impl<T: Serialize> Collection<T> {
    /// Inserts a document and answers with its `_id`, which is made where it has none.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// let id = items.insert_one(doc! { "name": "lamp" })?;
    /// assert_eq!(items.get(id)?.unwrap().get_str("name").unwrap(), "lamp");
    /// items.insert_one(doc! { "_id": 1 })?;
    /// assert!(items.insert_one(doc! { "_id": 1 }).is_err());
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// `DuplicateKey` if a unique index, `_id`'s first of all, has it already; what the
    /// collection's validator refuses.
    pub fn insert_one(&self, document: impl Borrow<T>) -> Result<Bson> {
        let (document, id) = self.with_id(document.borrow())?;
        self.insert_batch(&mut vec![document], 1)?;
        Ok(id)
    }

    /// Inserts documents in their order and answers with their `_id`s. Many are several
    /// transactions: any number can be inserted, from an iterator that makes them as they are asked
    /// for.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let squares = (0..2_500).map(|root| doc! { "_id": root, "square": root * root });
    /// let numbers = shop.collection::<Document>("numbers");
    /// numbers.insert_many(squares)?;
    /// assert_eq!(numbers.get(50)?, Some(doc! { "_id": 50, "square": 2_500 }));
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Collection::insert_one`]; [`Error::position`] says which one failed. Those before it
    /// are inserted, those behind it aren't.
    pub fn insert_many(
        &self,
        documents: impl IntoIterator<Item = impl Borrow<T>>,
    ) -> Result<Vec<Bson>> {
        let (mut ids, mut batch, mut bytes) = (Vec::new(), Vec::new(), 0);
        for document in documents {
            let (document, id) = match self.with_id(document.borrow()) {
                Ok(encoded) => encoded,
                Err(error) => {
                    // Those before the one that can't be encoded are inserted, as promised.
                    self.insert_batch(&mut batch, ids.len())?;
                    return Err(error.with_position(ids.len()));
                }
            };
            bytes += document.as_bytes().len();
            batch.push(document);
            ids.push(id);
            if batch.len() == BATCH_COUNT_MAX || BATCH_BYTES_MAX <= bytes {
                self.insert_batch(&mut batch, ids.len())?;
                bytes = 0;
            }
        }
        self.insert_batch(&mut batch, ids.len())?;
        Ok(ids)
    }

    /// Puts `replacement` in the place of the first document that matches, whose `_id` stays.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1, "price": 30 })?;
    /// items.replace_one(doc! { "_id": 1 }, doc! { "name": "lamp" })?;
    /// assert_eq!(items.get(1)?, Some(doc! { "_id": 1, "name": "lamp" }));
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the filter is wrong; if the replacement has another `_id`; `DuplicateKey`.
    pub fn replace_one(
        &self,
        filter: Document,
        replacement: impl Borrow<T>,
    ) -> Result<UpdateResult> {
        self.replace_one_with(filter, replacement, UpdateOptions::default())
    }

    /// As [`Collection::replace_one`], as `options` say.
    ///
    /// # Errors
    /// As there.
    pub fn replace_one_with(
        &self,
        filter: Document,
        replacement: impl Borrow<T>,
        options: UpdateOptions,
    ) -> Result<UpdateResult> {
        let replacement = convert::encode(replacement.borrow())?;
        if replacement.iter().any(|(name, _)| name.starts_with('$')) {
            let message = "a replacement has no update operators: update_one takes them";
            return Err(frond_db::Error::bad_value(message).into());
        }
        self.update(statement(&filter, replacement.into(), &options)?)
    }

    /// The encoded document with an `_id`, and that.
    fn with_id(&self, document: &T) -> Result<(DocumentBuf, Bson)> {
        let document = convert::encode(document)?;
        let document = normalise::for_insert(&document, || self.inner().frond().new_object_id())?;
        let id = document.get("_id").unwrap_or(Value::Null).to_buf();
        Ok((document, convert::bson(&id)?))
    }
}

impl<T: DeserializeOwned> Collection<T> {
    /// The document with this `_id`.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1, "name": "lamp" })?;
    /// assert_eq!(items.get(1)?, Some(doc! { "_id": 1, "name": "lamp" }));
    /// assert_eq!(items.get(2)?, None);
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// If it isn't a `T`.
    pub fn get(&self, id: impl Into<Bson>) -> Result<Option<T>> {
        self.find_one(by_id(id))
    }

    /// The first document that matches.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let items = shop.collection::<Document>("items");
    /// items.insert_one(doc! { "_id": 1, "name": "lamp" })?;
    /// assert!(items.find_one(doc! { "name": "lamp" })?.is_some());
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the filter is wrong; if the document isn't a `T`.
    pub fn find_one(&self, filter: Document) -> Result<Option<T>> {
        self.find(filter).first()
    }

    /// Changes the first document that matches and answers with it as it was before.
    ///
    /// ```
    /// use fronddb::{Document, doc};
    /// # let data = tempfile::tempdir()?;
    /// # let shop = fronddb::open(&data)?.database("shop")?;
    ///
    /// let jobs = shop.collection::<Document>("jobs");
    /// jobs.insert_one(doc! { "_id": 1, "state": "waits" })?;
    /// let start = doc! { "$set": { "state": "runs" } };
    /// let job = jobs.find_one_and_update(doc! { "state": "waits" }, start)?;
    /// assert_eq!(job, Some(doc! { "_id": 1, "state": "waits" }));
    /// assert_eq!(jobs.get(1)?, Some(doc! { "_id": 1, "state": "runs" }));
    /// # Ok::<(), fronddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Collection::update_one`]; if the document isn't a `T`.
    pub fn find_one_and_update(
        &self,
        filter: Document,
        update: impl Into<Bson>,
    ) -> Result<Option<T>> {
        self.find_one_and_update_with(filter, update, FindOneAndOptions::default())
    }

    /// As [`Collection::find_one_and_update`], as `options` say.
    ///
    /// # Errors
    /// As there.
    pub fn find_one_and_update_with(
        &self,
        filter: Document,
        update: impl Into<Bson>,
        options: FindOneAndOptions,
    ) -> Result<Option<T>> {
        self.find_one_and(filter, Some(update.into()), options)
    }

    /// Deletes the first document that matches and answers with it.
    ///
    /// # Errors
    /// If the filter is wrong; if the document isn't a `T`.
    pub fn find_one_and_delete(&self, filter: Document) -> Result<Option<T>> {
        self.find_one_and_delete_with(filter, FindOneAndOptions::default())
    }

    /// As [`Collection::find_one_and_delete`], as `options` say.
    ///
    /// # Errors
    /// As there; if the options are those of an update.
    pub fn find_one_and_delete_with(
        &self,
        filter: Document,
        options: FindOneAndOptions,
    ) -> Result<Option<T>> {
        self.find_one_and(filter, None, options)
    }

    fn find_one_and(
        &self,
        filter: Document,
        update: Option<Bson>,
        options: FindOneAndOptions,
    ) -> Result<Option<T>> {
        let request = FindAndModify {
            filter: convert::encode(&filter)?,
            update: convert::value_any(update.as_ref())?,
            return_new: options.return_new,
            upsert: options.upsert,
            sort: convert::encode_any(options.sort.as_ref())?,
            projection: convert::encode_any(options.projection.as_ref())?,
            array_filters: array_filters(&options.array_filters)?,
            hint: convert::value_any(options.hint.as_ref())?,
            variables: convert::encode_any(options.variables.as_ref())?,
            collation: convert::collation(options.collation.as_ref())?,
        };
        let report = self.inner().find_and_modify(&self.name, &request, self.durability())?;
        convert::decode_any(report.value.as_ref())
    }
}

/// The filter that one document passes; its `_id` may be a document with any names.
pub(crate) fn by_id(id: impl Into<Bson>) -> Document {
    doc! { "_id": { "$eq": id.into() } }
}

fn statement(
    filter: &Document,
    update: frond_doc::ValueBuf,
    options: &UpdateOptions,
) -> Result<UpdateStatement> {
    Ok(UpdateStatement {
        upsert: options.upsert,
        sort: convert::encode_any(options.sort.as_ref())?,
        array_filters: array_filters(&options.array_filters)?,
        hint: convert::value_any(options.hint.as_ref())?,
        variables: convert::encode_any(options.variables.as_ref())?,
        collation: convert::collation(options.collation.as_ref())?,
        ..UpdateStatement::new(convert::encode(filter)?, update)
    })
}

fn array_filters(filters: &[Document]) -> Result<Option<frond_doc::ValueBuf>> {
    (!filters.is_empty()).then(|| convert::array(filters)).transpose()
}

impl<T> Clone for Collection<T> {
    fn clone(&self) -> Collection<T> {
        Collection::new(self.database.clone(), &self.name)
    }
}

impl<T> fmt::Debug for Collection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collection({:?})", format!("{}.{}", self.database.name(), self.name))
    }
}
