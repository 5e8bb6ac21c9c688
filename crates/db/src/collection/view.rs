//! Views: collections that are a pipeline over another one.
//!
//! A view is an entry of the catalog like a collection, versioned with it, whose options name
//! `viewOn` and `pipeline` and whose trees stay empty. Reading it runs the pipeline at the reader's
//! snapshot; writing it is refused. A view over a view is one more level; there are at most
//! [`DEPTH_MAX`].

use frond_doc::{DocumentBuilder, Value, ValueBuf};
use frond_query::Code;

use crate::catalog::Catalog;
use crate::collection::aggregate::aggregate;
use crate::collection::{AggregateRequest, Cursor, FindRequest};
use crate::database::Database;
use crate::definition::view::{DEPTH_MAX, too_deep};
use crate::error::Error;

fn refused(message: &str) -> Error {
    Error::invalid(Code::InvalidPipelineOperator, message)
}

/// Appends the stages that a `find` is short for.
///
/// # Errors
/// `InvalidPipelineOperator` (168) for what no pipeline does.
fn append_stages(pipeline: &mut DocumentBuilder, request: &FindRequest) -> Result<(), Error> {
    for (option, is_given) in [
        ("min", request.min.is_some()),
        ("max", request.max.is_some()),
        ("returnKey", request.gives_keys),
        ("showRecordId", request.shows_record_id),
    ] {
        if is_given {
            return Err(refused(&format!("Option {option} not supported in aggregation.")));
        }
    }
    if let Some(message) = request.refused_in_views {
        return Err(refused(message));
    }
    if request.sort.as_ref().is_some_and(|sort| sort.get("$natural").is_some()) {
        return Err(refused("Sort option $natural not supported in aggregation."));
    }
    let mut stage = |name: &str, value: Value<'_>| {
        pipeline.push_begin_document().append(name, value).end();
    };
    if let Some(filter) = &request.filter {
        stage("$match", Value::from(filter));
    }
    if let Some(sort) = &request.sort {
        stage("$sort", Value::from(sort));
    }
    if request.skip > 0 {
        stage("$skip", Value::Int64(i64::try_from(request.skip).unwrap_or(i64::MAX)));
    }
    if let Some(limit) = request.limit {
        stage("$limit", Value::Int64(i64::try_from(limit).unwrap_or(i64::MAX)));
    }
    if let Some(projection) = request.projection.as_ref().filter(|p| !p.as_bytes().is_empty()) {
        stage("$project", Value::from(projection));
    }
    Ok(())
}

/// The collection that a view reads in the end, and the stages that a `find` over the view is
/// short for: the view's own (and those of views below it), then the request's. `None` if it is
/// no view.
pub(crate) fn pipeline_of_view(
    database: &Database,
    name: &str,
    request: &FindRequest,
) -> Result<Option<(String, ValueBuf)>, Error> {
    let reader = database.reader();
    let Some(mut view) = Catalog::of(&reader, database).view(name)? else {
        return Ok(None);
    };
    let mut levels = vec![view.pipeline.clone()];
    while let Some(below) = Catalog::of(&reader, database).view(&view.on)? {
        if levels.len() > DEPTH_MAX {
            return Err(too_deep());
        }
        levels.push(below.pipeline.clone());
        view = below;
    }
    let mut pipeline = DocumentBuilder::new();
    pipeline.begin_array("pipeline");
    for level in levels.iter().rev() {
        for stage in level.as_value().as_array().iter().flat_map(|stages| stages.iter()) {
            pipeline.push(stage);
        }
    }
    append_stages(&mut pipeline, request)?;
    pipeline.end();
    let pipeline = pipeline.build();
    let stages = pipeline.get("pipeline").map_or(Value::Null.to_buf(), |stages| stages.to_buf());
    Ok(Some((view.on, stages)))
}

/// Runs a `find` over a view: as the stages that it is short for.
pub(crate) fn find_in_view(
    database: &Database,
    name: &str,
    request: &FindRequest,
) -> Result<Cursor, Error> {
    run_in_view(database, name, request, &mut |_| {})
}

/// The same with more stages.
fn run_in_view(
    database: &Database,
    name: &str,
    request: &FindRequest,
    append: &mut dyn FnMut(&mut DocumentBuilder),
) -> Result<Cursor, Error> {
    let mut pipeline = DocumentBuilder::new();
    pipeline.begin_array("pipeline");
    append_stages(&mut pipeline, request)?;
    append(&mut pipeline);
    pipeline.end();
    let request = AggregateRequest {
        pipeline: pipeline.build().get("pipeline").map_or(Value::Null.to_buf(), |p| p.to_buf()),
        variables: request.variables.clone(),
        collation: request.collation.clone(),
        hint: request.hint.clone(),
        in_memory_only: request.in_memory_only,
        interrupt: request.interrupt.clone(),
    };
    aggregate(database, Some(name), &request)
}

/// The documents of a view that pass the request's filter, all of them.
pub(crate) fn filter_view(
    database: &Database,
    name: &str,
    request: &FindRequest,
) -> Result<Cursor, Error> {
    find_in_view(database, name, &filtering(request))
}

/// Returns how many documents of a view pass the request's filter.
pub(crate) fn count_view(
    database: &Database,
    name: &str,
    request: &FindRequest,
) -> Result<u64, Error> {
    let mut counted = run_in_view(database, name, &filtering(request), &mut |pipeline| {
        pipeline.push_begin_document().append("$count", Value::String("count")).end();
    })?;
    let counted = counted.next().transpose()?;
    let count = counted.and_then(|counted| counted.get("count")?.as_integer());
    Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
}

/// A request for all that passes another's filter.
fn filtering(request: &FindRequest) -> FindRequest {
    FindRequest {
        filter: request.filter.clone().filter(|filter| !filter.view().is_empty()),
        collation: request.collation.clone(),
        variables: request.variables.clone(),
        interrupt: request.interrupt.clone(),
        ..FindRequest::default()
    }
}
