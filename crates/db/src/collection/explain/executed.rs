//! What a search that has run did, as `executionStages` of `explain` shows one: the profiler's
//! `execStats`.
//!
//! 1. The plan is chosen once more, as the search chose it. It is shown if it is the plan that ran,
//!    and has one scan: the counts of several aren't known apart.
//! 2. The counts of that scan are the request's.
//! 3. Documents come out of the stages above it by their numbers (`limit`, `skip`). If as many come
//!    out as the answer had, that is what happened; if not (the collection has changed since, or
//!    the scan was begun anew) nothing is shown.

use frond_doc::DocumentBuf;
use frond_query::examined::Examined;

use super::planned::PlannedQuery;
use super::stage::Stage;
use super::{Done, purposed, uncached};
use crate::catalog::Catalog;
use crate::collection::query::{Detail, query_for};
use crate::collection::walk::Walk;
use crate::collection::{FindRequest, Purpose};
use crate::database::Database;
use crate::error::Error;
use crate::request_profile::Plan;

/// The facts about a search that has run to its end.
#[derive(Clone, Copy, Debug)]
pub struct ExecutedSearch<'a> {
    /// The plan by which it found documents.
    pub plan: &'a Plan,
    /// The counts of what it examined.
    pub examined: Examined,
    /// The number of documents that it answered with, or counted.
    pub returned: u64,
    /// The time that it took.
    pub millis: i64,
}

/// See [`Database::executed_stages`].
pub(crate) fn executed_stages(
    database: &Database,
    collection: &str,
    request: &FindRequest,
    purpose: Purpose,
    executed: &ExecutedSearch<'_>,
) -> Result<Option<DocumentBuf>, Error> {
    let reader = database.reader();
    if Catalog::of(&reader, database).is_made(collection)? {
        return Ok(None);
    }
    let query = query_for(database, &reader, collection, request, purpose, Detail::Executed)?;
    let Some((collection, access)) = &query.collection else {
        let stage = purposed(Stage::leaf("EOF", DocumentBuf::empty(), 0), purpose);
        let is_it = matches!(executed.plan, Plan::Nothing);
        return Ok(is_it.then(|| uncached(&stage.execution(executed.millis))));
    };
    let [path] = &access.paths[..] else { return Ok(None) };
    let scan = Walk::new(collection, path.clone()).summary(collection);
    let is_it = match executed.plan {
        Plan::ById | Plan::ExpressById | Plan::ByIds => scan.key.as_ref().is_some_and(is_of_id),
        Plan::Scans(scans) => matches!(&scans[..], [only] if only.key == scan.key),
        Plan::Nothing | Plan::Unknown => false,
    };
    if !is_it {
        return Ok(None);
    }
    let planned = PlannedQuery {
        database,
        reader: &reader,
        request,
        query: &query,
        collection,
        access,
        purpose,
    };
    let stage = planned.executed(executed)?;
    Ok(stage.map(|stage| uncached(&purposed(stage, purpose).execution(executed.millis))))
}

fn is_of_id(key: &DocumentBuf) -> bool {
    key.iter().map(|(name, _)| name).eq(["_id"])
}

impl PlannedQuery<'_> {
    /// The stages of the query, which has run so; `None` if other documents come out of them than
    /// the answer had.
    fn executed(self, executed: &ExecutedSearch<'_>) -> Result<Option<Stage>, Error> {
        let PlannedQuery { request, access, purpose, .. } = self;
        let Examined { keys, documents, found, .. } = executed.examined;
        let returned = match purpose.counts() && access.is_exact {
            // Keys that a tree has counted came out of no scan. Those that were skipped weren't all
            // there if nothing is left.
            true if executed.returned == 0 && 0 < request.skip => return Ok(None),
            true => executed.returned.saturating_add(request.skip),
            false => u64::try_from(found).unwrap_or(0),
        };
        let (_, passed) = self.passed_over()?;
        let stage = self.stages_done(&[Done { keys, documents, returned, passed }]);
        let is_it = purpose == Purpose::Distinct || stage.returned() == executed.returned;
        Ok(is_it.then_some(stage))
    }
}
