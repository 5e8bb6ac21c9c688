//! All documents of a collection.

use frond_doc::DocumentBuf;
use frond_query::Filter;
use frond_tree::Direction;

use super::Scan;
use crate::collection::plan::{Access, MinMaxBounds, Order, Request};
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::Collection;

/// Reads all documents of a collection in their natural order, or its reverse, one by one.
pub fn all_documents<'a>(
    reader: &Reader<'a>,
    collection: &Collection,
    direction: Direction,
) -> impl Iterator<Item = Result<DocumentBuf, Error>> + use<'a> {
    let (filter, order) = (Filter::all(), Order::Natural(direction));
    let request = Request {
        filter: &filter,
        order: &order,
        hint: None,
        limit: None,
        skip: 0,
        needs: &None,
        between: MinMaxBounds::default(),
        distinct: None,
        allowed: None,
        is_by_id: collection.series.is_none(),
    };
    let access = Access::natural(collection, direction, request);
    let (reader, tree) = (reader.clone(), collection.documents);
    let scan = Scan::new(reader.clone(), collection, access, filter.clone(), &order);
    scan.map(move |row| Ok(row?.into_whole(&reader, tree)?.document))
}
