//! Finds and aggregations: builders that read nothing until they are run, and the cursor that they
//! give.

use std::marker::PhantomData;

use bson::Bson;
use frond_db::{AggregateRequest, FindRequest, Interrupt};
use serde::de::DeserializeOwned;

use crate::{Database, Document, Result, convert};

/// The source of a read.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub database: Database,
    /// `None`: the pipeline brings its documents itself.
    pub collection: Option<String>,
}

/// A find that is being put together: nothing is read until it is iterated over, or asked for a
/// result.
///
/// ```
/// use fronddb::{Document, doc};
/// # let data = tempfile::tempdir()?;
/// # let shop = fronddb::open(&data)?.database("shop")?;
///
/// let items = shop.collection::<Document>("items");
/// items.insert_many((0..100).map(|n| doc! { "_id": n, "price": n % 10 }))?;
///
/// for item in items.find(doc! { "price": { "$gte": 8 } }).sort(doc! { "_id": -1 }).limit(3) {
///     println!("{}", item?);
/// }
/// let dearest = items.find(doc! {}).sort(doc! { "price": -1, "_id": 1 }).first()?;
/// assert_eq!(dearest, Some(doc! { "_id": 9, "price": 9 }));
/// assert_eq!(items.find(doc! { "price": 9 }).to_vec()?.len(), 10);
/// # Ok::<(), fronddb::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is read until the find is iterated over, or asked for a result"]
pub struct Find<T> {
    source: Source,
    filter: Document,
    projection: Option<Document>,
    sort: Option<Document>,
    skip: u64,
    limit: Option<u64>,
    hint: Option<Bson>,
    variables: Option<Document>,
    collation: Option<Document>,
    found: PhantomData<fn() -> T>,
}

impl<T> Find<T> {
    pub(crate) fn new(source: Source, filter: Document) -> Find<T> {
        Find {
            source,
            filter,
            projection: None,
            sort: None,
            skip: 0,
            limit: None,
            hint: None,
            variables: None,
            collation: None,
            found: PhantomData,
        }
    }

    /// Sorts in this order: `doc! { "price": -1, "name": 1 }`.
    pub fn sort(self, by: Document) -> Find<T> {
        Find { sort: Some(by), ..self }
    }

    /// Passes over so many first.
    pub fn skip(self, count: u64) -> Find<T> {
        Find { skip: count, ..self }
    }

    /// Returns at most so many.
    pub fn limit(self, count: u64) -> Find<T> {
        Find { limit: Some(count), ..self }
    }

    /// Returns only these fields, or all but those (`doc! { "name": 1 }`, `doc! { "image": 0 }`),
    /// as documents or a type of their own. Of a large document nothing else is read.
    pub fn project<U>(self, fields: Document) -> Find<U> {
        let Find { source, filter, sort, skip, limit, hint, variables, collation, .. } = self;
        let projection = Some(fields);
        let found = PhantomData;
        Find { source, filter, projection, sort, skip, limit, hint, variables, collation, found }
    }

    /// Uses this index: its name or its key. `doc! { "$natural": 1 }` uses none.
    pub fn hint(self, index: impl Into<Bson>) -> Find<T> {
        Find { hint: Some(index.into()), ..self }
    }

    /// Variables for the filter's expressions: MongoDB's `let`.
    pub fn variables(self, variables: Document) -> Find<T> {
        Find { variables: Some(variables), ..self }
    }

    /// Sets how strings compare: `doc! { "locale": "de", "strength": 1 }`.
    pub fn collation(self, collation: Document) -> Find<T> {
        Find { collation: Some(collation), ..self }
    }

    fn request(&self) -> Result<FindRequest> {
        Ok(FindRequest {
            filter: Some(convert::encode(&self.filter)?),
            projection: convert::encode_any(self.projection.as_ref())?,
            sort: convert::encode_any(self.sort.as_ref())?,
            skip: self.skip,
            limit: self.limit,
            hint: convert::value_any(self.hint.as_ref())?,
            variables: convert::encode_any(self.variables.as_ref())?,
            collation: convert::collation(self.collation.as_ref())?,
            ..FindRequest::default()
        })
    }

    fn collection(&self) -> &str {
        self.source.collection.as_deref().unwrap_or_default()
    }

    /// Counts what would be found; where an index or the collection knows, nothing is read.
    ///
    /// # Errors
    /// If the request is wrong.
    pub fn count(self) -> Result<u64> {
        Ok(self.source.database.inner.count(self.collection(), &self.request()?)?)
    }

    /// The distinct values of a field (dotted path) of what would be found, elements of arrays on
    /// their own.
    ///
    /// # Errors
    /// If the request is wrong, or the values are more than 16 MB.
    pub fn distinct(self, field: &str) -> Result<Vec<Bson>> {
        let database = &self.source.database.inner;
        let values = database.distinct(self.collection(), field, &self.request()?)?;
        values.iter().map(convert::bson).collect()
    }
}

impl<T: DeserializeOwned> Find<T> {
    /// Begins to read. A `for` loop over the find does the same, and gives what is wrong with the
    /// request as its only item.
    ///
    /// # Errors
    /// If the request is wrong.
    pub fn run(self) -> Result<Cursor<T>> {
        let found = self.source.database.inner.find(self.collection(), &self.request()?)?;
        Ok(Cursor::over(found))
    }

    /// The first that is found.
    ///
    /// # Errors
    /// As [`Find::run`]; if it isn't a `T`.
    pub fn first(self) -> Result<Option<T>> {
        self.limit(1).run()?.next().transpose()
    }

    /// All that is found.
    ///
    /// # Errors
    /// As [`Find::run`]; if one isn't a `T`.
    pub fn to_vec(self) -> Result<Vec<T>> {
        self.run()?.collect()
    }
}

impl<T: DeserializeOwned> IntoIterator for Find<T> {
    type Item = Result<T>;
    type IntoIter = Cursor<T>;

    fn into_iter(self) -> Cursor<T> {
        self.run().unwrap_or_else(Cursor::failed)
    }
}

/// An aggregation that is being put together: nothing is read until it is iterated over, or asked
/// for a result.
///
/// ```
/// use fronddb::{Document, doc};
/// use serde::Deserialize;
/// # let data = tempfile::tempdir()?;
/// # let shop = fronddb::open(&data)?.database("shop")?;
///
/// let orders = shop.collection::<Document>("orders");
/// orders.insert_many([doc! { "who": "ada", "sum": 3 }, doc! { "who": "ada", "sum": 4 }])?;
///
/// #[derive(Deserialize)]
/// struct Total {
///     _id: String,
///     total: i64,
/// }
/// let totals = orders
///     .aggregate([doc! { "$group": { "_id": "$who", "total": { "$sum": "$sum" } } }])
///     .with_type::<Total>()
///     .to_vec()?;
/// assert_eq!((totals[0]._id.as_str(), totals[0].total), ("ada", 7));
/// # Ok::<(), fronddb::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is read until the aggregation is iterated over, or asked for a result"]
pub struct Aggregate<T> {
    source: Source,
    pipeline: Vec<Document>,
    hint: Option<Bson>,
    variables: Option<Document>,
    collation: Option<Document>,
    found: PhantomData<fn() -> T>,
}

impl<T> Aggregate<T> {
    pub(crate) fn new(
        source: Source,
        pipeline: impl IntoIterator<Item = Document>,
    ) -> Aggregate<T> {
        Aggregate {
            source,
            pipeline: pipeline.into_iter().collect(),
            hint: None,
            variables: None,
            collation: None,
            found: PhantomData,
        }
    }

    /// Reads what the pipeline makes as this type.
    pub fn with_type<U>(self) -> Aggregate<U> {
        let Aggregate { source, pipeline, hint, variables, collation, .. } = self;
        Aggregate { source, pipeline, hint, variables, collation, found: PhantomData }
    }

    /// Uses this index: its name or its key.
    pub fn hint(self, index: impl Into<Bson>) -> Aggregate<T> {
        Aggregate { hint: Some(index.into()), ..self }
    }

    /// Variables for the stages' expressions: MongoDB's `let`.
    pub fn variables(self, variables: Document) -> Aggregate<T> {
        Aggregate { variables: Some(variables), ..self }
    }

    /// Sets how strings compare.
    pub fn collation(self, collation: Document) -> Aggregate<T> {
        Aggregate { collation: Some(collation), ..self }
    }
}

impl<T: DeserializeOwned> Aggregate<T> {
    /// Begins to read; a pipeline that ends with `$out` or `$merge` has written when this returns.
    ///
    /// # Errors
    /// If the pipeline is wrong.
    pub fn run(self) -> Result<Cursor<T>> {
        let request = AggregateRequest {
            pipeline: convert::array(&self.pipeline)?,
            variables: convert::encode_any(self.variables.as_ref())?,
            collation: convert::collation(self.collation.as_ref())?,
            hint: convert::value_any(self.hint.as_ref())?,
            in_memory_only: false,
            interrupt: Interrupt::default(),
        };
        let collection = self.source.collection.as_deref();
        Ok(Cursor::over(self.source.database.inner.aggregate(collection, &request)?))
    }

    /// All that the pipeline makes.
    ///
    /// # Errors
    /// As [`Aggregate::run`]; if one isn't a `T`.
    pub fn to_vec(self) -> Result<Vec<T>> {
        self.run()?.collect()
    }
}

impl<T: DeserializeOwned> IntoIterator for Aggregate<T> {
    type Item = Result<T>;
    type IntoIter = Cursor<T>;

    fn into_iter(self) -> Cursor<T> {
        self.run().unwrap_or_else(Cursor::failed)
    }
}

/// The results of a find or an aggregation, read on demand, all as it was when the cursor
/// began: writers don't disturb it. Ends after an error.
pub struct Cursor<T>(State, PhantomData<fn() -> T>);

enum State {
    Reading(frond_db::Cursor),
    Failed(Option<crate::Error>),
}

impl<T> Cursor<T> {
    fn over(found: frond_db::Cursor) -> Cursor<T> {
        Cursor(State::Reading(found), PhantomData)
    }

    fn failed(error: crate::Error) -> Cursor<T> {
        Cursor(State::Failed(Some(error)), PhantomData)
    }
}

impl<T: DeserializeOwned> Iterator for Cursor<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let item = match &mut self.0 {
            State::Reading(found) => match found.next()? {
                Ok(document) => convert::decode(&document),
                Err(error) => Err(error.into()),
            },
            State::Failed(error) => Err(error.take()?),
        };
        if item.is_err() {
            self.0 = State::Failed(None);
        }
        Some(item)
    }
}

impl<T> std::fmt::Debug for Cursor<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").finish_non_exhaustive()
    }
}
