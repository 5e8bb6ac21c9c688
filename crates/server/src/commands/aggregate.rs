//! `aggregate`.

use frond_db::{AggregateRequest, Error, Interrupt};
use frond_doc::{Document, Value};
use frond_query::Code;

use crate::commands::reply::{self, BatchOptions};
use crate::commands::{change_stream, explain, find, nested_sources, sources, write};
use crate::common_fields::Level;
use crate::fields::Fields;
use crate::operations::CurrentOperation;
use crate::request::{Answer, Request, collection_name};

/// The name that stands for a collection in the namespace of a cursor over `aggregate: 1`.
pub const NO_COLLECTION: &str = "$cmd.aggregate";

/// An `aggregate`, read.
pub struct AggregateCommand {
    /// The request to the database.
    pub request: AggregateRequest,
    /// Whether to explain it instead.
    pub explains: bool,
    /// Whether a cursor is asked for, as it must be.
    pub has_cursor: bool,
    /// The options of the first batch.
    pub batch: BatchOptions,
}

/// Runs an `aggregate`.
pub fn run(request: &Request<'_>) -> Answer {
    let collection = target(request.database_name, request.argument())?;
    let mut command = read(request.fields()?)?;
    command.batch.current = CurrentOperation::new(&request.operation);
    command.request.interrupt = command.batch.current.interrupt();
    if command.has_cursor
        && let Some(stream) = change_stream::split(&command.request.pipeline)?
    {
        return change_stream::run(request, collection, command, stream);
    }
    check_level(request, &command)?;
    if command.explains && request.common.has_write_concern {
        let message = "Aggregation explain does not support the'writeConcern' option";
        return Err(Error::invalid(Code::FailedToParse, message));
    }
    let database = write::as_validated(request, request.database()?.database().clone());
    if command.explains {
        let verbosity = explain::Verbosity::QueryPlanner;
        let explanation = explain::aggregate(&database, collection, &command.request, verbosity)?;
        return Ok(explain::answer(request, explanation, request.body));
    }
    if !command.has_cursor {
        let message = "The 'cursor' option is required, except for aggregate with the explain \
                       argument";
        return Err(Error::invalid(Code::FailedToParse, message));
    }
    let stages = command.request.pipeline.as_value().as_array();
    let nested = stages.map(|stages| nested_sources::rewrite(request, stages)).transpose()?;
    if let Some(pipeline) = nested.flatten() {
        command.request.pipeline = pipeline;
    }
    let documents = match sources::rewrite(request, collection, &command.request)? {
        Some(rewritten) => database.aggregate(None, &rewritten)?,
        None => database.aggregate(collection, &command.request)?,
    };
    command.batch.has_written = writes_output(request.body) && command.batch.size != Some(0);
    let namespace = request.namespace(collection.unwrap_or(NO_COLLECTION));
    reply::first_batch(request, namespace, Box::new(documents), command.batch)
}

/// Whether the pipeline of an `aggregate` ends in a collection.
pub fn writes_output(body: Document<'_>) -> bool {
    let stages = body.get("pipeline").and_then(|stages| stages.as_array());
    let last = stages.and_then(|stages| stages.iter().last());
    let last = last.and_then(|stage| stage.as_document()).and_then(|stage| stage.iter().next());
    last.is_some_and(|(name, _)| ["$merge", "$out"].contains(&name))
}

/// Checks that what is explained is read at the level `local`, as MongoDB does.
fn check_level(request: &Request<'_>, command: &AggregateCommand) -> Result<(), Error> {
    let level = request.common.level;
    if command.explains && level != Level::Local {
        let message = format!(
            "Explain for the aggregate command cannot run with a readConcern other than 'local'. \
             Current readConcern level: {}",
            level.name()
        );
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    Ok(())
}

/// The collection that is read; `None` for `aggregate: 1`.
///
/// # Errors
/// `FailedToParse` (9) for another number; `InvalidNamespace` (73).
pub fn target<'a>(database: &str, argument: Value<'a>) -> Result<Option<&'a str>, Error> {
    if argument.as_integer() == Some(1) {
        return Ok(None);
    }
    if argument.is_number() {
        let message = "Invalid command format: the 'aggregate' field must specify a collection \
                       name or 1";
        return Err(Error::invalid(Code::FailedToParse, message));
    }
    collection_name(database, argument).map(Some)
}

/// Reads the fields of an `aggregate`, the collection's name apart.
///
/// # Errors
/// Wrong fields, by MongoDB's codes; unknown fields.
pub fn read(mut fields: Fields<'_>) -> Result<AggregateCommand, Error> {
    let pipeline = fields.array("pipeline")?.ok_or_else(|| fields.missing("pipeline"))?;
    let cursor = fields.document("cursor")?;
    let explains = fields.boolean("explain")?;
    let size = reply::cursor_batch_size("aggregate.cursor", cursor)?;
    let hint = find::read_hint(&mut fields);
    let mut request = AggregateRequest {
        pipeline: Value::Array(pipeline).to_buf(),
        variables: fields.document("let")?.map(|variables| variables.to_buf()),
        collation: fields.collation()?,
        hint,
        in_memory_only: false,
        interrupt: Interrupt::default(),
    };
    request.in_memory_only = fields.optional_boolean("allowDiskUse")? == Some(false);
    fields.boolean("bypassDocumentValidation")?;
    let is_of_router = fields.boolean("fromMongos")?;
    if fields.boolean("needsMerge")? && !is_of_router {
        let message = "Cannot specify 'needsMerge' without 'fromMongos'";
        return Err(Error::invalid(Code::FailedToParse, message));
    }
    fields.finish()?;
    let batch = BatchOptions { size, ..BatchOptions::default() };
    Ok(AggregateCommand { request, explains, has_cursor: cursor.is_some(), batch })
}
