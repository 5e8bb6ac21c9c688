//! `$changeStream`, the first stage of an `aggregate`: a cursor that stays open.
//!
//! Its `getMore` waits without a thread ([`crate::commands::cursor`]).

use frond_db::{ChangeStreamRequest, Error, FullDocument, Image, StreamStart, Watched};
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value, ValueBuf};
use frond_query::Code;

use crate::commands::aggregate::{AggregateCommand, NO_COLLECTION};
use crate::commands::reply;
use crate::commands::sources::CHANGE_STREAM;
use crate::common_fields::Level;
use crate::cursors::{Following, OpenStream};
use crate::fields::Fields;
use crate::request::{Answer, Request};

/// Databases whose changes no client sees.
pub const SILENT: &[&str] = &["admin", "config", "local"];

/// The options of a pipeline's `$changeStream`, and the stages behind it; `None` if there is none.
///
/// # Errors
/// `Location40602` if it doesn't stand first.
pub fn split(pipeline: &ValueBuf) -> Result<Option<(DocumentBuf, ValueBuf)>, Error> {
    let Some(stages) = pipeline.as_value().as_array() else { return Ok(None) };
    let options = |stage: Value<'_>| -> Option<ValueBuf> {
        let stage = stage.as_document()?;
        stage.get(CHANGE_STREAM).map(|options| options.to_buf())
    };
    if stages.iter().skip(1).any(|stage| options(stage).is_some()) {
        let message = "$changeStream is only valid as the first stage in a pipeline";
        return Err(Error::invalid(Code::Location(40602), message));
    }
    let Some(first) = stages.get(0).and_then(options) else { return Ok(None) };
    let Value::Document(first) = first.as_value() else {
        let message = "the $changeStream stage specification must be an object";
        return Err(Error::invalid(Code::TypeMismatch, message));
    };
    Ok(Some((first.to_buf(), rest(stages))))
}

fn rest(stages: Array<'_>) -> ValueBuf {
    let mut rest = DocumentBuilder::new();
    rest.begin_array("rest");
    for stage in stages.iter().skip(1) {
        rest.push(stage);
    }
    rest.end();
    rest.build().get("rest").map_or_else(|| Value::Null.to_buf(), |rest| rest.to_buf())
}

/// Opens a stream.
pub fn run(
    request: &Request<'_>,
    collection: Option<&str>,
    command: AggregateCommand,
    (options, stages): (DocumentBuf, ValueBuf),
) -> Answer {
    check_place(request, &command)?;
    let parsed = Options::read(options.view())?;
    let watched = watched(request, collection, parsed.is_of_cluster)?;
    let wanted = ChangeStreamRequest {
        start: parsed.start,
        full_document: parsed.full_document,
        before_change: parsed.before_change,
        is_expanded: parsed.is_expanded,
        stages: Some(stages),
        collation: command.request.collation,
        variables: command.request.variables,
    };
    let (stream, documents, is_over) =
        OpenStream::new(request.server.frond.watch(watched, &wanted)?);
    let mut batch = command.batch;
    batch.following = Following::EndAwaited;
    batch.is_over = Some(is_over);
    batch.stream = Some(stream);
    let namespace = request.namespace(collection.unwrap_or(NO_COLLECTION));
    reply::first_batch(request, namespace, documents, batch)
}

fn check_place(request: &Request<'_>, command: &AggregateCommand) -> Result<(), Error> {
    if request.current.is_some() {
        let message = "Operation not permitted in transaction :: caused by :: Aggregation stage \
                       $changeStream cannot run within a multi-document transaction";
        return Err(Error::invalid(Code::OperationNotSupportedInTransaction, message));
    }
    let level = request.common.level;
    let concern = request.body.get("readConcern").and_then(|concern| concern.as_document());
    let names_level = concern.is_some_and(|concern| concern.get("level").is_some());
    if level != Level::Majority && names_level {
        let message = format!(
            "$changeStream cannot run with a readConcern other than 'majority'. Current \
             readConcern: {}",
            level.name()
        );
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    if command.explains {
        let message = "explain of $changeStream is not supported by Frond";
        return Err(Error::invalid(Code::IllegalOperation, message));
    }
    Ok(())
}

fn watched(
    request: &Request<'_>,
    collection: Option<&str>,
    is_of_cluster: bool,
) -> Result<Watched, Error> {
    let name = request.database_name;
    if is_of_cluster {
        if name != "admin" || collection.is_some() {
            let message = "A $changeStream with 'allChangesForCluster:true' may only be opened on the \
                           'admin' database, and with no collection name";
            return Err(Error::invalid(Code::InvalidOptions, message));
        }
        return Ok(Watched::Deployment(request.server.frond.clone()));
    }
    if SILENT.contains(&name) {
        let message = format!("$changeStream may not be opened on the internal {name} database");
        return Err(Error::invalid(Code::InvalidNamespace, message));
    }
    let database = request.database()?.database().clone();
    if database.is_read_only() {
        let message =
            format!("{name} is a commit, which never changes: $changeStream watches branches");
        return Err(Error::invalid(Code::IllegalOperation, message));
    }
    let Some(collection) = collection else { return Ok(Watched::Database(database)) };
    if collection.starts_with("system.") {
        let namespace = request.namespace(collection);
        let message =
            format!("$changeStream may not be opened on the internal {namespace} collection");
        return Err(Error::invalid(Code::InvalidNamespace, message));
    }
    let infos = database.list_collections()?;
    if infos.iter().any(|info| info.name == collection && info.is_view()) {
        let message = "$changeStream is not supported on views";
        return Err(Error::invalid(Code::CommandNotSupportedOnView, message));
    }
    if infos.iter().any(|info| info.name == collection && info.is_series()) {
        let namespace = request.namespace(collection);
        let message = format!("Namespace {namespace} is a timeseries collection");
        return Err(Error::invalid(Code::CommandNotSupportedOnView, message));
    }
    Ok(Watched::Collection(database, collection.to_owned()))
}

/// The stage's options.
struct Options {
    start: StreamStart,
    full_document: FullDocument,
    before_change: Image,
    is_expanded: bool,
    is_of_cluster: bool,
}

impl Options {
    fn read(options: Document<'_>) -> Result<Options, Error> {
        let mut fields = Fields::of_part(CHANGE_STREAM, options)?;
        let resume = fields.document("resumeAfter")?.map(|token| token.to_buf());
        let after = fields.document("startAfter")?;
        let at = match fields.value("startAtOperationTime") {
            Some(Value::Timestamp(time)) => Some(time),
            Some(other) => {
                return Err(fields.wrong_type("startAtOperationTime", other, "type 'timestamp'"));
            }
            None => None,
        };
        let starts = [resume.is_some(), after.is_some(), at.is_some()];
        if starts.into_iter().filter(|is_there| *is_there).count() > 1 {
            let message = "Only one type of resume option is allowed, but multiple were found.";
            return Err(Error::invalid(Code::Location(40674), message));
        }
        let start = match (resume, after, at) {
            (Some(token), _, _) => StreamStart::Resume(token),
            (_, Some(after), _) => match commit_of(after)? {
                Some(revision) => StreamStart::AfterCommit(revision.to_owned()),
                None => StreamStart::After(after.to_buf()),
            },
            (_, _, Some(time)) => StreamStart::At(time),
            (None, None, None) => StreamStart::Now,
        };
        let full_document = match fields.string("fullDocument")? {
            None | Some("default") => FullDocument::Default,
            Some("updateLookup") => FullDocument::UpdateLookup,
            Some("whenAvailable") => FullDocument::WhenAvailable,
            Some("required") => FullDocument::Required,
            Some(other) => return Err(no_value("fullDocument", other)),
        };
        let before_change = match fields.string("fullDocumentBeforeChange")? {
            None | Some("off") => Image::Off,
            Some("whenAvailable") => Image::WhenAvailable,
            Some("required") => Image::Required,
            Some(other) => return Err(no_value("fullDocumentBeforeChange", other)),
        };
        let is_of_cluster = fields.boolean("allChangesForCluster")?;
        let is_expanded = fields.boolean("showExpandedEvents")?;
        fields.finish()?;
        Ok(Options { start, full_document, before_change, is_expanded, is_of_cluster })
    }
}

/// The revision of `startAfter: {commit: "..."}`, which no token is.
fn commit_of(after: Document<'_>) -> Result<Option<&str>, Error> {
    if after.get("commit").is_none() {
        return Ok(None);
    }
    let mut fields = Fields::of_part("$changeStream.startAfter", after)?;
    let revision = fields.required_string("commit")?;
    fields.finish()?;
    Ok(Some(revision))
}

fn no_value(option: &str, value: &str) -> Error {
    let message = format!(
        "Enumeration value '{value}' for field '$changeStream.{option}' is not a valid value."
    );
    Error::invalid(Code::BadValue, message)
}
