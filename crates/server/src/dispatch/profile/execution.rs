//! The profiler's `execStats`: what the stages of a search did, of a `find`, `count` or `distinct`
//! that was answered whole. It is left out where the counts of the request don't say it
//! ([`frond_db::ExecutedSearch`]).

use frond_db::{ExecutedSearch, Purpose};
use frond_doc::DocumentBuf;

use super::operation::ProfiledOperation;
use crate::commands::{count, explain, find};
use crate::fields::Fields;
use crate::operations::collection_of;
use crate::shared::Shared;

/// Returns the stages of an operation's search, with what they did.
pub(super) fn stages(server: &Shared, deed: &ProfiledOperation<'_>) -> Option<DocumentBuf> {
    let sent = deed.operation.sent.view();
    let returned = deed.counts.found()?;
    let (search, purpose) = match deed.name {
        "find" => (find::read(Fields::of_command("find", sent).ok()?).ok()?.0, Purpose::Find),
        "count" => (count::read(Fields::of_command("count", sent).ok()?).ok()?, Purpose::Count),
        "distinct" => (explain::distinct_search(sent).ok()?, Purpose::Distinct),
        _ => return None,
    };
    let database = server.frond.database(&deed.operation.database).ok()?;
    let executed = ExecutedSearch {
        plan: deed.plan,
        examined: deed.examined,
        returned,
        millis: i64::try_from(deed.time.as_millis()).unwrap_or(i64::MAX),
    };
    database.executed_stages(collection_of(sent)?, &search, purpose, &executed).ok()?
}
