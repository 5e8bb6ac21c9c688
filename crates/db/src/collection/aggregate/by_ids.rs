//! A pipeline that only asks for documents by their `_id`s, which takes no plan: it is answered as
//! the `find` that asks for the same ([`crate::collection::by_id`],
//! [`crate::collection::by_ids`]).
//!
//! It is a `$match` that either of these answers, and a `$limit` at most. All else, and what is
//! wrong, goes the usual way, which finds the same.

use frond_doc::{Array, Value};

use crate::collection::by_id::{self, only_field};
use crate::collection::{AggregateRequest, Cursor, FindRequest, by_ids};
use crate::database::Database;
use crate::error::Error;
use crate::reader::Reader;
use crate::request_profile;

/// Finds the documents that `stages` ask for by their `_id`s; `None` if they ask for more.
pub(super) fn find(
    database: &Database,
    reader: &Reader<'static>,
    collection: Option<&str>,
    stages: Array<'_>,
    request: &AggregateRequest,
) -> Result<Option<Cursor>, Error> {
    let (Some(collection), Some(request)) = (collection, as_find(stages, request)) else {
        return Ok(None);
    };
    let mut found = by_id::find(database, reader, collection, &request)?;
    if found.is_none() {
        found = by_ids::find(database, reader, collection, &request)?;
    }
    if found.is_some() {
        request_profile::note_express();
    }
    Ok(found)
}

/// The `find` that asks for what the stages do, if they match and limit.
fn as_find(stages: Array<'_>, request: &AggregateRequest) -> Option<FindRequest> {
    let AggregateRequest {
        pipeline: _,
        variables: None,
        collation: None,
        hint: None,
        in_memory_only: _,
        interrupt,
    } = request
    else {
        return None;
    };
    let mut stages = stages.iter().map(|stage| only_field(stage.as_document()?));
    let ("$match", Value::Document(filter)) = stages.next()?? else { return None };
    let limit = match stages.next() {
        None => None,
        Some(limit) => match limit? {
            ("$limit", Value::Int32(limit)) => {
                Some(u64::try_from(limit).ok().filter(|it| 0 < *it)?)
            }
            _ => return None,
        },
    };
    if stages.next().is_some() {
        return None;
    }
    let (filter, interrupt) = (Some(filter.to_buf()), interrupt.clone());
    Some(FindRequest { filter, limit, interrupt, ..FindRequest::default() })
}
