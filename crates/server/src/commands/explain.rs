//! `explain`: how a command would go. The command itself is not run, except that
//! `executionStats` runs the search that it would make.
//!
//! A pipeline is explained as its search (a `$match` that moved to the front, a leading `$sort` and
//! `$limit`) and the stages that follow; a write as the search for the documents that it would
//! change.

use frond_db::{AggregateRequest, Database, Effort, Error, FindRequest, Purpose};
use frond_doc::document::EMPTY;
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value, ValueBuf};
use frond_query::pipeline::{Pipeline, explained};
use frond_query::{Code, Update};
use frond_vcs::Repository;

use crate::authorization::AuthorizationRequest;
use crate::commands::handshake::MONGODB_VERSION;
use crate::commands::{
    self, aggregate, count, delete, distinct, find, find_and_modify, map_reduce, update, write,
};
use crate::fields::{Fields, refuse_duplicates};
use crate::request::{Answer, Request, collection_name};
use crate::tables;

/// The amount of detail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verbosity {
    /// The plan.
    QueryPlanner,
    /// Also the counts of running it.
    ExecutionStats,
    /// Also the counts of trying other plans.
    AllPlansExecution,
}

/// Runs an `explain`.
pub fn run(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let command = request.own_document();
    let verbosity = match fields.string("verbosity")?.unwrap_or("allPlansExecution") {
        "queryPlanner" => Verbosity::QueryPlanner,
        "executionStats" => Verbosity::ExecutionStats,
        // The table takes no other word.
        _ => Verbosity::AllPlansExecution,
    };
    fields.finish()?;
    let explanation = explain(request, command, verbosity)?;
    Ok(answer(request, explanation, command))
}

/// Checks the rights that the explained command needs.
///
/// # Errors
/// `Unauthorized` (13).
pub fn needs(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let Some(body) = request.argument().as_document() else { return Ok(()) };
    let name = body.iter().next().map_or("", |(name, _)| name);
    // One that there is not is refused for that.
    let Some(command) = commands::find(name) else { return Ok(()) };
    refuse_duplicates(command.name, body)?;
    AuthorizationRequest { name: command.name, body, ..*request }.meets(command.needs)
}

fn explain(
    request: &Request<'_>,
    command: Document<'_>,
    verbosity: Verbosity,
) -> Result<DocumentBuf, Error> {
    let (name, argument) = command.iter().next().unwrap_or(("", Value::Null));
    if let Some(table) = commands::find(name).and_then(|known| tables::find(known.name)) {
        tables::check(table, command, &[])?;
    }
    let database = request.database()?;
    let mut purpose = Purpose::Find;
    let mut find = match name {
        "aggregate" => return explain_aggregate(request, &database, command, verbosity),
        "mapReduce" | "mapreduce" => {
            return explain_map_reduce(request, &database, command, verbosity);
        }
        "find" => find::read(Fields::of_command("find", command)?)?.0,
        "count" => {
            purpose = Purpose::Count;
            count::read(Fields::of_command("count", command)?)?
        }
        "distinct" => {
            purpose = Purpose::Distinct;
            distinct_search(command)?
        }
        "update" => {
            purpose = Purpose::Update;
            update_search(command)?
        }
        "delete" => {
            purpose = Purpose::Delete;
            delete_search(command)?
        }
        "findAndModify" | "findandmodify" => {
            let (search, changes) = find_and_modify_search(command)?;
            purpose = changes;
            search
        }
        other if commands::find(other).is_some() => {
            let message = format!("Cannot explain cmd: {other}");
            return Err(Error::invalid(Code::IllegalOperation, message));
        }
        other => {
            let message = format!("Explain failed due to unknown command: {other}");
            return Err(Error::invalid(Code::CommandNotFound, message));
        }
    };
    find.interrupt = request.operation.interrupt();
    let collection = collection_name(request.database_name, argument)?;
    search_explained(&database, collection, &find, purpose, verbosity)
}

fn explain_aggregate(
    request: &Request<'_>,
    database: &Repository,
    command: Document<'_>,
    verbosity: Verbosity,
) -> Result<DocumentBuf, Error> {
    let collection = aggregate::target(request.database_name, argument_of(command))?;
    if command.get("explain").is_some() {
        let message = "The 'explain' option is illegal when an explain verbosity is also provided";
        return Err(Error::invalid(Code::FailedToParse, message));
    }
    let mut command = aggregate::read(Fields::of_command("aggregate", command)?)?;
    command.request.interrupt = request.operation.interrupt();
    aggregate(database, collection, &command.request, verbosity)
}

fn explain_map_reduce(
    request: &Request<'_>,
    database: &Repository,
    command: Document<'_>,
    verbosity: Verbosity,
) -> Result<DocumentBuf, Error> {
    let collection = collection_name(request.database_name, argument_of(command))?;
    map_reduce::refuse_view(request, database, collection)?;
    let (mut pipeline, _) = map_reduce::read(Fields::of_command("mapReduce", command)?, database)?;
    pipeline.interrupt = request.operation.interrupt();
    aggregate(database, Some(collection), &pipeline, verbosity)
}

/// The value of a command's first field.
fn argument_of<'d>(command: Document<'d>) -> Value<'d> {
    command.iter().next().map_or(Value::Null, |(_, argument)| argument)
}

/// The search of a `distinct`, of the field whose values it gives.
///
/// # Errors
/// As [`distinct::read`].
pub fn distinct_search(command: Document<'_>) -> Result<FindRequest, Error> {
    let distinct = distinct::read(Fields::of_command("distinct", command)?)?;
    let mut projection = DocumentBuilder::new();
    projection.append("_id", Value::Int32(0)).append(distinct.path, Value::Int32(1));
    let projection = Some(projection.build()).filter(|_| distinct.path != "_id");
    Ok(FindRequest { projection, ..distinct.search })
}

/// The search of an `update` with one statement.
fn update_search(command: Document<'_>) -> Result<FindRequest, Error> {
    let (statement, variables) = the_statement("update", "updates", command)?;
    let statement = update::read_statement(statement, &variables)?;
    check_update(&statement.update, statement.array_filters.as_ref())?;
    let limit = (!statement.multi).then_some(1);
    let filter = Some(statement.filter);
    let (sort, hint, collation) = (statement.sort, statement.hint, statement.collation);
    Ok(FindRequest { sort, hint, limit, variables, collation, ..search(filter) })
}

/// The search of a `delete` with one statement.
fn delete_search(command: Document<'_>) -> Result<FindRequest, Error> {
    let (statement, variables) = the_statement("delete", "deletes", command)?;
    let statement = delete::read_statement(statement, &variables)?;
    let limit = statement.only_first.then_some(1);
    let filter = Some(statement.filter);
    let (hint, collation) = (statement.hint, statement.collation);
    Ok(FindRequest { hint, limit, variables, collation, ..search(filter) })
}

/// The search of a `findAndModify`, and whether what it finds is updated or deleted.
fn find_and_modify_search(command: Document<'_>) -> Result<(FindRequest, Purpose), Error> {
    let (command, _) = find_and_modify::read(Fields::of_command("findAndModify", command)?)?;
    let purpose = if command.update.is_some() { Purpose::Update } else { Purpose::Delete };
    if let Some(update) = &command.update {
        check_update(update, command.array_filters.as_ref())?;
    }
    let (sort, hint, variables) = (command.sort, command.hint, command.variables);
    let (filter, collation) = (Some(command.filter), command.collation);
    let limit = Some(1);
    Ok((FindRequest { sort, hint, variables, collation, limit, ..search(filter) }, purpose))
}

/// Returns what a search would do and, if that was asked for, the counts of doing it.
fn search_explained(
    database: &Database,
    collection: &str,
    find: &FindRequest,
    purpose: Purpose,
    verbosity: Verbosity,
) -> Result<DocumentBuf, Error> {
    if let Some((on, pipeline)) = database.pipeline_of_view(collection, find)? {
        let request = AggregateRequest {
            pipeline,
            collation: find.collation.clone(),
            variables: find.variables.clone(),
            hint: find.hint.clone(),
            in_memory_only: find.in_memory_only,
            interrupt: find.interrupt.clone(),
        };
        return aggregate(database, Some(&on), &request, verbosity);
    }
    database.explain_as(collection, find, purpose, effort(verbosity))
}

fn effort(verbosity: Verbosity) -> Effort {
    match verbosity {
        Verbosity::QueryPlanner => Effort::Plan,
        Verbosity::ExecutionStats => Effort::Run,
        Verbosity::AllPlansExecution => Effort::RunAll,
    }
}

fn search(filter: Option<DocumentBuf>) -> FindRequest {
    FindRequest { filter, ..FindRequest::default() }
}

/// The one statement of a write and the command's `let`; the other fields are checked as the write
/// would check them.
fn the_statement<'a>(
    command_name: &'static str,
    name: &str,
    command: Document<'a>,
) -> Result<(Document<'a>, Option<DocumentBuf>), Error> {
    let mut fields = Fields::of_command(command_name, command)?;
    let statements = fields.array(name)?.ok_or_else(|| fields.missing(name))?;
    write::read_options(&mut fields)?;
    let variables = fields.document("let")?.map(|variables| variables.to_buf());
    fields.finish()?;
    let first = statements.get(0).and_then(|statement| statement.as_document());
    let first = first.filter(|_| statements.iter().count() == 1).ok_or_else(|| {
        let message = format!("explained write must have one document in '{name}'");
        Error::invalid(Code::FailedToParse, message)
    })?;
    Ok((first, variables))
}

/// Refuses an update that the write itself would refuse.
fn check_update(update: &ValueBuf, array_filters: Option<&ValueBuf>) -> Result<(), Error> {
    let array_filters = array_filters.and_then(|filters| filters.as_value().as_array());
    Update::parse(update.as_value(), array_filters)?;
    Ok(())
}

/// Explains a pipeline: what reads the collection, then the stages.
///
/// # Errors
/// As the pipeline itself: what can't be parsed or, unless it is only planned, run.
pub fn aggregate(
    database: &Database,
    collection: Option<&str>,
    request: &AggregateRequest,
    verbosity: Verbosity,
) -> Result<DocumentBuf, Error> {
    let stages = request.pipeline.as_value().as_array();
    let stages = stages.unwrap_or(Array::from_validated(&EMPTY));
    let collation = request.collation.clone().unwrap_or_default();
    let repository = Repository::from(database.clone());
    if let Some((first, rest)) = repository.explain_source(collection, stages, effort(verbosity))? {
        let rest = rest.as_value().as_array().unwrap_or(Array::from_validated(&EMPTY));
        Pipeline::parse_collated(rest, &collation)?;
        let mut explanation = DocumentBuilder::new();
        explanation.begin_array("stages").push(Value::from(&first));
        for stage in rest.iter() {
            explanation.push(stage);
        }
        explanation.end();
        return Ok(explanation.build());
    }
    // A stage that can't be run can't be explained either.
    Pipeline::parse_collated(stages, &collation)?;
    let mut explanation = DocumentBuilder::new();
    explanation.begin_array("stages");
    let Some(collection) = collection else {
        for stage in explained(stages, &collation)? {
            explanation.push(Value::from(&stage));
        }
        explanation.end();
        return Ok(explanation.build());
    };
    if let Some((on, pipeline)) = database.pipeline_of_view(collection, &FindRequest::default())? {
        let pipeline = concatenated(&pipeline, stages);
        let request = AggregateRequest { pipeline, ..request.clone() };
        return aggregate(database, Some(&on), &request, verbosity);
    }
    let effort = effort(verbosity);
    let (cursor, rest) = database.explain_aggregate(collection, stages, request, effort)?;
    let cursor = frond_doc::document! { "$cursor": &cursor };
    explanation.push(Value::Document(cursor.view()));
    for stage in &rest {
        explanation.push(Value::from(stage));
    }
    explanation.end();
    Ok(explanation.build())
}

/// The stages of a view, and then others.
fn concatenated(view: &ValueBuf, stages: Array<'_>) -> ValueBuf {
    let mut builder = DocumentBuilder::new();
    builder.begin_array("pipeline");
    let first = view.as_value().as_array();
    for stage in first.iter().flat_map(|stages| stages.iter()).chain(stages.iter()) {
        builder.push(stage);
    }
    builder.end();
    builder.build().get("pipeline").map_or(Value::Null.to_buf(), |pipeline| pipeline.to_buf())
}

/// The answer: the explanation, the command that it is of, and the server.
pub fn answer(
    request: &Request<'_>,
    explanation: DocumentBuf,
    command: Document<'_>,
) -> DocumentBuilder {
    let mut answer = DocumentBuilder::new();
    answer.append("explainVersion", Value::String("1"));
    for (name, value) in explanation.iter().filter(|(name, _)| *name != "explainVersion") {
        answer.append(name, value);
    }
    answer.append("command", Value::Document(command));
    answer
        .begin_document("serverInfo")
        .append("host", Value::String(&request.server.address.ip().to_string()))
        .append("port", Value::Int32(i32::from(request.server.address.port())))
        .append("version", Value::String(MONGODB_VERSION))
        .end();
    answer
}
