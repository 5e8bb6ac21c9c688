//! Counts and sizes, from the trees' summaries.

use frond_doc::{DocumentBuf, DocumentBuilder, Value};

use crate::catalog::CatalogView;
use crate::catalog::indexes::own_index;
use crate::database::Database;
use crate::definition::{capped, view};
use crate::error::Error;
use crate::timeseries;

/// Counts and sizes, as `collStats` has them: count, size, avgObjSize, nindexes, indexSizes...
pub(crate) fn collection_stats(
    database: &Database,
    collection: &str,
) -> Result<DocumentBuf, Error> {
    let reader = database.reader();
    let found = CatalogView::open(&reader, database)?.collection(collection)?;
    let (mut count, mut bytes, mut index_bytes) = (0, 0, 0);
    let mut sizes = DocumentBuilder::new();
    let mut index_count = 0;
    if let Some(found) = &found {
        view::refuse(found.options.view(), &database.namespace(collection))?;
        count = reader.count(found.documents)?;
        bytes = reader.bytes(found.documents)?;
        let own = own_index(found);
        if let Some(own) = &own {
            let beside = found.collated_id().map(|position| found.indexes[position].tree);
            let bytes = beside.map_or(Ok(0), |tree| reader.bytes(tree))?;
            sizes.append(&own.name, number(bytes));
            index_bytes += bytes;
        }
        for index in found.secondary_indexes() {
            let bytes = reader.bytes(index.tree)?;
            sizes.append(&index.spec.name, number(bytes));
            index_bytes += bytes;
        }
        index_count = found.secondary_indexes().count() + usize::from(own.is_some());
    }
    let mut stats = DocumentBuilder::new();
    stats.append("ns", Value::String(&database.namespace(collection)));
    stats.append("size", number(bytes));
    stats.append("count", number(count));
    if let Some(mean) = bytes.checked_div(count) {
        stats.append("avgObjSize", number(mean));
    }
    stats.append("storageSize", number(bytes));
    stats.append("freeStorageSize", Value::Int64(0));
    let limits = found.as_ref().and_then(|found| capped::limits(found.options.view()));
    stats.append("capped", Value::Boolean(limits.is_some()));
    if let Some(limits) = limits {
        stats.append("max", number(limits.documents));
        stats.append("maxSize", number(limits.bytes));
    }
    if found.as_ref().is_some_and(|found| found.series.is_some()) {
        let namespace = database.namespace(&format!("system.buckets.{collection}"));
        let timeseries_stats = timeseries::statistics(&namespace);
        stats.append("timeseries", Value::from(&timeseries_stats));
    }
    stats.append("nindexes", Value::Int32(index_count as i32));
    stats.append("totalIndexSize", number(index_bytes));
    stats.append("totalSize", number(bytes + index_bytes));
    stats.append("indexSizes", Value::from(&sizes.build()));
    stats.append("scaleFactor", Value::Int32(1));
    Ok(stats.build())
}

fn number(number: u64) -> Value<'static> {
    Value::Int64(i64::try_from(number).unwrap_or(i64::MAX))
}
