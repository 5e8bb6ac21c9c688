//! `count`.
//!
//! Where the keys within some ranges of a tree are the documents that pass, the tree counts them:
//! O(log n), and what the overlay holds in the ranges. Where only the keys decide, keys are read
//! and no documents.

use crate::catalog::Catalog;
use crate::collection::FindRequest;
use crate::collection::deferred_errors::DeferredErrors;
use crate::collection::handles::{LazyLargeDocuments, handles};
use crate::collection::parse::parse_request;
use crate::collection::plan::Order;
use crate::collection::scan::{Scan, gathered};
use crate::collection::search::Search;
use crate::collection::view::count_view;
use crate::database::Database;
use crate::error::Error;

/// Counts what a `find` would give. The count of a whole collection is read off its tree.
pub(crate) fn count(
    database: &Database,
    collection: &str,
    request: &FindRequest,
) -> Result<u64, Error> {
    let (skip, limit) = (request.skip, request.limit);
    let reader = database.reader();
    if Catalog::of(&reader, database).is_made(collection)? {
        let count = count_view(database, collection, request)?;
        return Ok(count.saturating_sub(skip).min(limit.unwrap_or(u64::MAX)));
    }
    let found = Catalog::of(&reader, database).collection(collection)?;
    let deferred = DeferredErrors::default();
    let large = handles(&reader, &deferred);
    let (filter, _) = parse_request(database, request, found.as_deref(), &large)?;
    let limit = limit.unwrap_or(u64::MAX);
    let enough = skip.saturating_add(limit);
    let search = Search {
        limit: Some(enough).filter(|enough| *enough < u64::MAX),
        needs: Some(Vec::new()),
        ..Search::of(&filter, request.hint.as_ref())
    };
    let Some((collection, access)) = search.access(database.frond(), &reader, found)? else {
        return Ok(0);
    };
    let is_exact = access.is_exact;
    let mut scan = Scan::new(reader, &collection, access, filter, &Order::Any)
        .interrupted_by(&request.interrupt);
    if is_exact {
        scan = scan.counting();
    } else if large.may_have_references() {
        scan = scan.lazily(LazyLargeDocuments::new(&large, true).only(&[]));
    }
    if let Some(count) = scan.remaining(enough)? {
        return Ok(count.min(enough).saturating_sub(skip));
    }
    if enough == u64::MAX
        && let Some(counts) =
            gathered(database.frond().cores(), &mut scan, |part, _| counted(part, u64::MAX))
    {
        return Ok(counts.into_iter().sum::<u64>().saturating_sub(skip));
    }
    let count = counted(&mut scan, enough).map_err(|error| deferred.restore(error))?;
    Ok(count.min(enough).saturating_sub(skip))
}

/// Returns how many documents a scan finds; `enough` where there are more.
fn counted(scan: &mut Scan<'_>, enough: u64) -> Result<u64, Error> {
    let mut count = 0;
    scan.visit_fields(&mut |_| {
        count += 1;
        Ok(count < enough)
    })?;
    Ok(count)
}
