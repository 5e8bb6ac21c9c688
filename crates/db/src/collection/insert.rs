//! `insert`.

use frond_doc::DocumentBuf;
use frond_engine::Durability;

use crate::collection::WriteReport;
use crate::collection::batch::{BATCH_COUNT_MAX, BatchOptions, BatchReport, Statements};
use crate::collection::buckets::insert_buckets;
use crate::collection::new_document::normalise;
use crate::collection::write::CollectionWriter;
use crate::database::Database;
use crate::error::Error;
use crate::name;
use crate::retry::StatementDone;

/// A transaction of a large insert holds at most so many bytes of documents (or one document).
const BATCH_BYTES_MAX: usize = 8 << 20;

/// Inserts documents in their order, `_id` made where absent. With `ordered`, stops at the
/// first that fails; the others before it stay.
pub(crate) fn insert(
    database: &Database,
    collection: &str,
    documents: &[DocumentBuf],
    ordered: bool,
    durability: Durability,
) -> Result<WriteReport, Error> {
    let options = BatchOptions { ordered, durability };
    if let Some(series) = name::of_buckets(collection) {
        return insert_buckets(database, series, documents, options);
    }
    let prepare = |begun: usize| {
        let rest = &documents[begun..];
        rest[..batch_count(rest)].iter().map(|document| normalise(database, document)).collect()
    };
    let insert = |writer: &mut CollectionWriter<'_>, document: &DocumentBuf| {
        writer.insert(document)?;
        Ok(StatementDone { count: 1, ..StatementDone::default() })
    };
    let report =
        Statements { database, collection, options }.run(documents.len(), prepare, insert)?;
    let BatchReport { count, errors, retried, each, .. } = report;
    Ok(WriteReport { count, errors, retried, each })
}

fn batch_count(documents: &[DocumentBuf]) -> usize {
    let mut bytes = 0;
    let fits = documents.iter().take(BATCH_COUNT_MAX).take_while(|document| {
        bytes += document.as_bytes().len();
        bytes <= BATCH_BYTES_MAX
    });
    fits.count().max(1)
}
