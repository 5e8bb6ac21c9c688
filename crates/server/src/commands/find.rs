//! `find`.

use frond_db::{Error, FindRequest};
use frond_doc::{Document, Value};

use crate::commands::reply::{self, BatchOptions};
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
    let documents = request.database()?.find(collection, &find)?;
    reply::first_batch(request, request.namespace(collection), Box::new(documents), batch)
}

/// Reads the fields of a `find`, the collection's name apart.
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
        hint: fields.value("hint").map(|hint| hint.to_buf()),
        variables: buffer(fields.document("let")?),
        collation: fields.collation()?,
        in_memory_only: fields.optional_boolean("allowDiskUse")? == Some(false),
        ..FindRequest::default()
    };
    let batch = BatchOptions {
        size: fields.count("batchSize")?,
        is_single: fields.boolean("singleBatch")?,
        no_timeout: fields.boolean("noCursorTimeout")?,
        ..BatchOptions::default()
    };
    fields.refuse_all(&["tailable", "awaitData", "returnKey", "showRecordId"])?;
    // These say how a sharded or replicated server may answer, or how much memory it may use.
    for name in ["allowPartialResults", "oplogReplay"] {
        fields.boolean(name)?;
    }
    fields.ignore(&["ntoreturn"]);
    fields.finish()?;
    if find.hint.as_ref().is_some_and(is_empty_hint) {
        find.hint = None;
    }
    Ok((find, batch))
}

/// Drivers send `{}` where no hint was given.
pub fn is_empty_hint(hint: &frond_doc::ValueBuf) -> bool {
    matches!(hint.as_value(), Value::Document(document) if document.is_empty())
}
