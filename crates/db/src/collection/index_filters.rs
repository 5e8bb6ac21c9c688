//! Index filters: which indexes the planner may choose from for queries of a shape.
//!
//! A filter that was set counts for `find`, `count`, `distinct`, `aggregate`, and for what is
//! updated or deleted; a hint doesn't, then. A query for one `_id` takes no plan, and is found so
//! all the same.

use std::sync::Arc;

use frond_doc::{Document, DocumentBuf};
use frond_query::{Collation, Filter};

use crate::catalog::Catalog;
use crate::collection::parse::{collation_of, parse_filter, variables_in};
use crate::collection::plan::Order;
use crate::database::Database;
use crate::error::Error;
use crate::frond::Frond;
use crate::interrupt::Interrupt;
use crate::schema::{Collection, IndexFilter, QueryShape, ShapeKey};

/// Sets which indexes queries of a shape may use. Answers whether there is the collection.
pub(crate) fn set_index_filter(
    database: &Database,
    collection: &str,
    filter: IndexFilter,
) -> Result<bool, Error> {
    let Some(found) = Catalog::of(&database.reader(), database).collection(collection)? else {
        return Ok(false);
    };
    let key = shape_key(database, &found, &filter.shape)?;
    database.frond().index_filters().set(found.uuid, key, filter)?;
    Ok(true)
}

/// Forgets what was set for queries of a shape, or for all of a collection.
pub(crate) fn clear_index_filters(
    database: &Database,
    collection: &str,
    shape: Option<&QueryShape>,
) -> Result<(), Error> {
    let Some(found) = Catalog::of(&database.reader(), database).collection(collection)? else {
        return Ok(());
    };
    let key = shape.map(|shape| shape_key(database, &found, shape)).transpose()?;
    database.frond().index_filters().clear(found.uuid, key.as_ref());
    Ok(())
}

/// Returns the index filters that were set for queries of a collection.
pub(crate) fn index_filters(
    database: &Database,
    collection: &str,
) -> Result<Vec<Arc<IndexFilter>>, Error> {
    let found = Catalog::of(&database.reader(), database).collection(collection)?;
    Ok(found.map_or_else(Vec::new, |found| database.frond().index_filters().all(found.uuid)))
}

/// Returns the indexes that were set for queries of this shape.
pub(super) fn allowed(
    frond: &Frond,
    collection: &Collection,
    (filter, order): (&Filter, &Order),
    projection: Option<Document<'_>>,
) -> Option<Arc<IndexFilter>> {
    let key = || ShapeKey::of(filter, &order_text(order), projection);
    frond.index_filters().of(collection.uuid, key)
}

fn shape_key(
    database: &Database,
    collection: &Collection,
    shape: &QueryShape,
) -> Result<ShapeKey, Error> {
    let given = match shape.collation.view().is_empty() {
        true => None,
        false => Some(Collation::parse(shape.collation.view())?),
    };
    let collation = collation_of(given.as_ref(), Some(collection))?;
    let variables = variables_in(database, None, &Interrupt::default())?;
    let variables = variables.with_collation(collation.clone());
    let filter = parse_filter(Some(shape.query.view()), &variables)?;
    filter.check_scripts()?;
    let order = Order::parse_search(Some(shape.sort.view()))?.with_collation(&collation);
    let given = |document: &DocumentBuf| !document.view().is_empty();
    let projection = Some(&shape.projection).filter(|it| given(it)).map(DocumentBuf::view);
    Ok(ShapeKey::of(&filter, &order_text(&order), projection))
}

/// The order that is asked for.
fn order_text(order: &Order) -> String {
    order.pattern().map_or_else(String::new, |pattern| format!("{:?}", pattern.fields))
}
