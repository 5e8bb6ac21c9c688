//! The indexes that may be used for queries of a shape, as an operator has set with
//! `planCacheSetFilter`: kept until the directory is closed, as in MongoDB.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use frond_doc::{Document, DocumentBuf, Value, ValueBuf};
use frond_query::{Code, Filter};

use crate::definition::IndexSpec;
use crate::error::Error;

/// All that there may be.
const COUNT_MAX: usize = 10_000;

/// An operator's choice for queries of one shape.
#[derive(Clone, Debug)]
pub struct IndexFilter {
    /// A query of that shape.
    pub shape: QueryShape,
    /// Names or keys of the indexes that may be used.
    pub indexes: Vec<ValueBuf>,
}

/// A query by which those of its shape are known.
#[derive(Clone, Debug, Default)]
pub struct QueryShape {
    /// The filter.
    pub query: DocumentBuf,
    /// The sort; empty if there is none.
    pub sort: DocumentBuf,
    /// The projection; empty if there is none.
    pub projection: DocumentBuf,
    /// The collation as it was given; empty if it is the collection's.
    pub collation: DocumentBuf,
}

impl IndexFilter {
    /// Whether an index may be used.
    pub(crate) fn allows(&self, index: &IndexSpec) -> bool {
        self.indexes.iter().any(|allowed| match allowed.as_value() {
            Value::String(name) => index.name == name,
            Value::Document(key) => index.has_key(key),
            _ => false,
        })
    }
}

/// The common part of the queries that one filter holds for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ShapeKey(String);

impl ShapeKey {
    /// That of a query, whose filter has its collation; `order` is the text of the order that it
    /// asks for.
    pub fn of(filter: &Filter, order: &str, projection: Option<Document<'_>>) -> ShapeKey {
        let mut key = format!("{}|{order}|", filter.shape());
        for (name, value) in projection.iter().flat_map(|projection| projection.iter()) {
            key.push_str(&format!("{name:?}{value:?}"));
        }
        ShapeKey(format!("{key}|{:?}", filter.collation()))
    }
}

/// A collection's UUID, and the shape of a query.
type SetQuery = ([u8; 16], ShapeKey);

/// All that were set. Collections are distinguished by their UUIDs.
///
/// *Thread safety*: any number of threads may ask; where there are none, without a lock.
#[derive(Default)]
pub(crate) struct IndexFilters {
    are_any: AtomicBool,
    by_shape: RwLock<BTreeMap<SetQuery, Arc<IndexFilter>>>,
}

impl IndexFilters {
    /// The one of a query of a collection.
    pub fn of(
        &self,
        collection: [u8; 16],
        key: impl FnOnce() -> ShapeKey,
    ) -> Option<Arc<IndexFilter>> {
        if !self.are_any.load(Ordering::Acquire) {
            return None;
        }
        let by_shape = self.by_shape.read().unwrap_or_else(PoisonError::into_inner);
        by_shape.get(&(collection, key())).cloned()
    }

    /// Whether there are none, of any collection.
    pub fn are_none(&self) -> bool {
        !self.are_any.load(Ordering::Acquire)
    }

    /// All of a collection.
    pub fn all(&self, collection: [u8; 16]) -> Vec<Arc<IndexFilter>> {
        let by_shape = self.by_shape.read().unwrap_or_else(PoisonError::into_inner);
        let of_collection = by_shape.iter().filter(|((owner, _), _)| *owner == collection);
        of_collection.map(|(_, filter)| Arc::clone(filter)).collect()
    }

    /// Sets one, in the place of what was set for the shape.
    ///
    /// # Errors
    /// `ExceededMemoryLimit` if there are too many.
    pub fn set(
        &self,
        collection: [u8; 16],
        key: ShapeKey,
        filter: IndexFilter,
    ) -> Result<(), Error> {
        let mut by_shape = self.by_shape.write().unwrap_or_else(PoisonError::into_inner);
        let place = (collection, key);
        if COUNT_MAX <= by_shape.len() && !by_shape.contains_key(&place) {
            let message = format!("there are {COUNT_MAX} index filters: clear those of the past");
            return Err(Error::invalid(Code::ExceededMemoryLimit, message));
        }
        by_shape.insert(place, Arc::new(filter));
        self.are_any.store(true, Ordering::Release);
        Ok(())
    }

    /// Takes away the one of a shape, or all of a collection.
    pub fn clear(&self, collection: [u8; 16], key: Option<&ShapeKey>) {
        let mut by_shape = self.by_shape.write().unwrap_or_else(PoisonError::into_inner);
        by_shape.retain(|(owner, shape), _| {
            *owner != collection || key.is_some_and(|key| key != shape)
        });
        self.are_any.store(!by_shape.is_empty(), Ordering::Release);
    }
}
