//! A pipeline that only asks for documents by their `_id`s, which takes no plan: it is answered as
//! the `find` that asks for the same ([`crate::collection::by_id`],
//! [`crate::collection::by_ids`]).
//!
//! It is a `$match` that either of these answers, a `$limit` at most, and a `$project` of whole
//! outermost fields. All else, and what is wrong, goes the usual way, which finds the same.

use frond_doc::{Array, Document, Value};

use crate::collection::by_id::{self, only_field};
use crate::collection::{AggregateRequest, Cursor, FindRequest, by_ids};
use crate::database::Database;
use crate::error::Error;
use crate::reader::Reader;
use crate::request_profile;

/// Longer lists of fields aren't looked through for one that is there twice.
const FIELDS_MAX: usize = 16;

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

/// The `find` that asks for what the stages do, if they match, limit and show.
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
    let (mut limit, mut projection) = (None, None);
    for stage in stages {
        match stage? {
            ("$limit", Value::Int32(count @ 1..)) if limit.is_none() => {
                limit = Some(u64::from(count.unsigned_abs()));
            }
            ("$project", Value::Document(shown)) if projection.is_none() && is_simple(shown) => {
                projection = Some(shown.to_buf());
            }
            _ => return None,
        }
    }
    let (filter, interrupt) = (Some(filter.to_buf()), interrupt.clone());
    Some(FindRequest { filter, projection, limit, interrupt, ..FindRequest::default() })
}

/// Whether the same projection of a `find` is known to show the same: it names outermost fields,
/// each once, and all but `_id` are shown, or none is.
fn is_simple(shown: Document<'_>) -> bool {
    let mut names: Vec<&str> = Vec::new();
    let mut is_first_shown = None;
    for (name, value) in shown.iter() {
        let is_shown = match value {
            Value::Int32(0) | Value::Boolean(false) => false,
            Value::Int32(1) | Value::Boolean(true) => true,
            _ => return false,
        };
        let is_field = !name.is_empty() && !name.starts_with('$') && !name.contains('.');
        if !is_field || names.contains(&name) || FIELDS_MAX <= names.len() {
            return false;
        }
        names.push(name);
        if name != "_id" && *is_first_shown.get_or_insert(is_shown) != is_shown {
            return false;
        }
    }
    !names.is_empty()
}
