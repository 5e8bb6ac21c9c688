//! `find`.

use frond_db::{Error, FindRequest};
use frond_doc::{Document, Value, ValueBuf};
use frond_query::Code;

use crate::commands::reply::{self, BatchOptions};
use crate::commands::sources;
use crate::cursors::Following;
use crate::fields::Fields;
use crate::operations::CurrentOperation;
use crate::request::{Answer, Request};
use crate::shared::Counter;

/// Runs a `find`.
pub fn run(request: &Request<'_>) -> Answer {
    request.server.count(Counter::Query, 1);
    let collection = request.collection()?;
    let (mut find, mut batch) = read(request.fields()?)?;
    batch.current = CurrentOperation::new(&request.operation);
    find.interrupt = batch.current.interrupt();
    let (database, namespace) = (request.database()?, request.namespace(collection));
    if let Some(documents) = sources::documents_of(request, Some(collection))? {
        let aggregate = sources::search_in(&documents, &find);
        let documents = database.aggregate(None, &aggregate)?;
        return reply::first_batch(request, namespace, Box::new(documents), batch);
    }
    if batch.following == Following::Nothing {
        let documents = database.find(collection, &find)?;
        return reply::first_batch(request, namespace, Box::new(documents), batch);
    }
    request.refuse_moment("A tailable cursor")?;
    let tail = database.tail(collection, &find)?;
    batch.is_over = Some(tail.is_over());
    reply::first_batch(request, namespace, Box::new(tail), batch)
}

/// Reads the fields of a `find`, the collection's name apart.
///
/// # Errors
/// Wrong fields, by MongoDB's codes; unknown fields.
pub fn read(mut fields: Fields<'_>) -> Result<(FindRequest, BatchOptions), Error> {
    let buffer = |document: Option<Document<'_>>| {
        document.filter(|document| !document.is_empty()).map(|document| document.to_buf())
    };
    let mut find = FindRequest {
        filter: buffer(fields.document("filter")?),
        projection: buffer(fields.document("projection")?),
        sort: buffer(fields.document("sort")?),
        skip: fields.count("skip")?.unwrap_or(0),
        limit: fields.count("limit")?.filter(|limit| *limit > 0),
        min: buffer(fields.document("min")?),
        max: buffer(fields.document("max")?),
        hint: read_hint(&mut fields),
        variables: buffer(fields.document("let")?),
        collation: fields.collation()?,
        in_memory_only: fields.optional_boolean("allowDiskUse")? == Some(false),
        shows_record_id: fields.boolean("showRecordId")?,
        gives_keys: fields.boolean("returnKey")?,
        ..FindRequest::default()
    };
    let following = read_following(&mut fields)?;
    let batch = BatchOptions {
        following,
        size: fields.count("batchSize")?,
        is_single: fields.boolean("singleBatch")?,
        no_timeout: fields.boolean("noCursorTimeout")?,
        ..BatchOptions::default()
    };
    if batch.is_single && following != Following::Nothing {
        let message = "Cannot use tailable option with the 'singleBatch' option";
        return Err(Error::invalid(Code::FailedToParse, message));
    }
    // These say how a sharded or replicated server may answer, or how much memory it may use.
    let allows_part = fields.boolean("allowPartialResults")?;
    fields.boolean("oplogReplay")?;
    find.refused_in_views = [
        (batch.no_timeout, "Option noCursorTimeout not supported in aggregation."),
        (allows_part, "Option allowPartialResults not supported in aggregation."),
        (
            batch.is_single && find.limit != Some(1),
            "Option singleBatch not supported in aggregation.",
        ),
    ]
    .into_iter()
    .find_map(|(is_given, message)| is_given.then_some(message));
    fields.ignore(&["ntoreturn"]);
    fields.finish()?;
    Ok((find, batch))
}

/// Takes `tailable` and `awaitData`.
fn read_following(fields: &mut Fields<'_>) -> Result<Following, Error> {
    match (fields.boolean("tailable")?, fields.boolean("awaitData")?) {
        (false, false) => Ok(Following::Nothing),
        (true, false) => Ok(Following::End),
        (true, true) => Ok(Following::EndAwaited),
        (false, true) => {
            let message = "Cannot set 'awaitData' without also setting 'tailable'";
            Err(Error::invalid(Code::FailedToParse, message))
        }
    }
}

/// Takes the hint of a command. Drivers send `{}` where none was given.
pub fn read_hint(fields: &mut Fields<'_>) -> Option<ValueBuf> {
    fields.value("hint").map(|hint| hint.to_buf()).filter(|hint| !is_empty_hint(hint))
}

fn is_empty_hint(hint: &ValueBuf) -> bool {
    matches!(hint.as_value(), Value::Document(document) if document.is_empty())
}
