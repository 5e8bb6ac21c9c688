//! MongoDB's buckets of a time series (`system.buckets.NAME`): read as if they were stored, and
//! inserted as the points that they hold.

use frond_doc::{DocumentBuf, normalise};
use frond_query::pipeline::Documents;
use frond_query::{Code, Collation, Filter};

use crate::catalog::{Catalog, duplicate};
use crate::collection::WriteReport;
use crate::collection::batch::{BATCH_COUNT_MAX, BatchOptions, BatchReport, Statements};
use crate::collection::new_document::check_document;
use crate::collection::write::CollectionWriter;
use crate::database::Database;
use crate::error::Error;
use crate::retry::StatementDone;
use crate::schema::Collection;
use crate::timeseries::{self, Buckets, Series};

/// A transaction holds at most so many bytes of points, or one bucket.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// A bucket and its points.
struct TakenApart {
    bucket: DocumentBuf,
    points: Vec<DocumentBuf>,
}

/// Inserts what these buckets of the time series `name` hold; each is one statement. A bucket
/// whose points are all there is refused as one that is there: so a restore may be repeated.
pub(crate) fn insert_buckets(
    database: &Database,
    name: &str,
    buckets: &[DocumentBuf],
    options: BatchOptions,
) -> Result<WriteReport, Error> {
    let found = Catalog::of(&database.reader(), database).collection(name)?;
    let Some(series) = found.and_then(|found| found.series.clone()) else {
        let message = format!("{} is not a time-series collection", database.namespace(name));
        return Err(Error::invalid(Code::InvalidNamespace, message));
    };
    let prepare = |begun: usize| points_of(database, &series, &buckets[begun..]);
    let insert = |writer: &mut CollectionWriter<'_>, taken_apart: &TakenApart| {
        let TakenApart { bucket, points } = taken_apart;
        if writer.has_points(points)? {
            let namespace = database.namespace(&format!("system.buckets.{name}"));
            return Err(duplicate::of_id(&namespace, &Collation::SIMPLE, bucket.view()));
        }
        let savepoint = writer.savepoint();
        if let Err(error) = points.iter().try_for_each(|point| writer.insert(point)) {
            writer.undo(savepoint);
            return Err(error);
        }
        Ok(StatementDone { count: 1, ..StatementDone::default() })
    };
    let report =
        Statements { database, collection: name, options }.run(buckets.len(), prepare, insert)?;
    let BatchReport { count, errors, retried, each, .. } = report;
    Ok(WriteReport { count, errors, retried, each })
}

/// The points of as many of these buckets as a transaction takes, of the first at least.
fn points_of(
    database: &Database,
    series: &Series,
    buckets: &[DocumentBuf],
) -> Vec<Result<TakenApart, Error>> {
    let (mut prepared, mut count, mut bytes) = (Vec::new(), 0, 0);
    for bucket in buckets {
        let points = timeseries::points(series, bucket.view());
        let points: Result<Vec<DocumentBuf>, Error> = points
            .and_then(|points| points.iter().map(|point| whole_point(database, point)).collect());
        for point in points.iter().flatten() {
            (count, bytes) = (count + 1, bytes + point.as_bytes().len());
        }
        prepared.push(points.map(|points| TakenApart { bucket: bucket.clone(), points }));
        if BATCH_COUNT_MAX <= count || BATCH_BYTES_MAX <= bytes {
            break;
        }
    }
    prepared
}

/// A point with an `_id`; what was stored elsewhere is otherwise left as it is.
fn whole_point(database: &Database, point: &DocumentBuf) -> Result<DocumentBuf, Error> {
    let point = normalise::for_insert(point, || database.frond().new_object_id())?;
    check_document(database, point.view())?;
    Ok(point)
}

/// The buckets of these points that pass the filter.
pub(crate) fn buckets_of(
    collection: &Collection,
    points: Documents<'static>,
    filter: Filter,
) -> Result<Documents<'static>, Error> {
    let Some(series) = &collection.series else { return Ok(points) };
    let buckets = Buckets::of(series, collection.collation()?, points);
    Ok(Box::new(buckets.filter_map(move |bucket| match bucket {
        Ok(bucket) => match filter.try_matches(bucket.view()) {
            Ok(passes) => passes.then_some(Ok(bucket)),
            Err(error) => Some(Err(error)),
        },
        Err(error) => Some(Err(error)),
    })))
}
