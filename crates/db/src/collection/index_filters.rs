//! Index filters: which indexes the planner may choose from for queries of a shape.
//!
//! A filter that was set counts for `find`, `count`, `distinct`, `aggregate`, and for what is
//! updated or deleted; a hint doesn't, then. What names one `_id` takes no plan, and is found so
//! all the same.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf};
use frond_query::{Collation, Filter};

use crate::collection::find::collation_of;
use crate::collection::plan::Order;
use crate::database::Database;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::schema::{Collection, IndexFilter, QueryShape, ShapeKey};

impl Database {
    /// Sets which indexes queries of a shape may use. Answers whether there is the collection.
    ///
    /// # Errors
    /// What can't be a query; if there are too many filters.
    pub fn set_index_filter(&self, collection: &str, filter: IndexFilter) -> Result<bool, Error> {
        let Some(found) = self.find_collection(&self.reader(), collection)? else {
            return Ok(false);
        };
        let key = self.shape_key(&found, &filter.shape)?;
        self.frond().index_filters().set(found.uuid, key, filter)?;
        Ok(true)
    }

    /// Forgets what was set for queries of a shape, or for all of a collection.
    ///
    /// # Errors
    /// What can't be a query.
    pub fn clear_index_filters(
        &self,
        collection: &str,
        shape: Option<&QueryShape>,
    ) -> Result<(), Error> {
        let Some(found) = self.find_collection(&self.reader(), collection)? else {
            return Ok(());
        };
        let key = shape.map(|shape| self.shape_key(&found, shape)).transpose()?;
        self.frond().index_filters().clear(found.uuid, key.as_ref());
        Ok(())
    }

    /// What was set for queries of a collection.
    ///
    /// # Errors
    /// If the catalog can't be read.
    pub fn index_filters(&self, collection: &str) -> Result<Vec<Arc<IndexFilter>>, Error> {
        let found = self.find_collection(&self.reader(), collection)?;
        Ok(found.map_or_else(Vec::new, |found| self.frond().index_filters().all(found.uuid)))
    }

    /// What was set for queries that ask this.
    pub(crate) fn index_filter(
        &self,
        collection: &Collection,
        (filter, order): (&Filter, &Order),
        projection: Option<Document<'_>>,
    ) -> Option<Arc<IndexFilter>> {
        let key = || ShapeKey::of(filter, &told(order), projection);
        self.frond().index_filters().of(collection.uuid, key)
    }

    fn shape_key(&self, collection: &Collection, shape: &QueryShape) -> Result<ShapeKey, Error> {
        let given = match shape.collation.view().is_empty() {
            true => None,
            false => Some(Collation::parse(shape.collation.view())?),
        };
        let collation = collation_of(given.as_ref(), Some(collection))?;
        let variables = self.parse_variables(None, &Interrupt::default())?;
        let variables = variables.with_collation(collation.clone());
        let filter = self.parse_filter(Some(shape.query.view()), &variables)?;
        let order = Order::parse_search(Some(shape.sort.view()))?.with_collation(&collation);
        let given = |document: &DocumentBuf| !document.view().is_empty();
        let projection = Some(&shape.projection).filter(|it| given(it)).map(DocumentBuf::view);
        Ok(ShapeKey::of(&filter, &told(&order), projection))
    }
}

/// The order that is asked for.
fn told(order: &Order) -> String {
    order.pattern().map_or_else(String::new, |pattern| format!("{:?}", pattern.fields))
}
