//! First stages of a pipeline that show the server rather than documents: statistics, sessions,
//! running commands. Shells ask for them this way.
//!
//! The stage's results are put in its place as `$documents`, so that the stages after it run as
//! they do over anything else.

use frond_db::{AggregateRequest, CollectionScans, Database, Error, FindRequest};
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;
use frond_query::pipeline::history_stages;
use frond_query::reference::{Feature, SupportLevel};

use crate::commands::{
    catalog, latencies, operation, reply, session_list, set_configuration, stats, users,
};
use crate::fields::Fields;
use crate::request::{Answer, Request};

/// The stage that begins a change stream.
pub const CHANGE_STREAM: &str = "$changeStream";
/// Stands last in a stream.
const SPLIT: &str = "$changeStreamSplitLargeEvent";

/// Gives the documents of a stage: of a collection or of none, with the stage's options.
type Source = fn(&Request<'_>, Option<&str>, Value<'_>) -> Result<Vec<DocumentBuf>, Error>;

/// Sorted by name.
const SOURCES: &[(&str, Source)] = &[
    ("$collStats", |request, collection, options| {
        Ok(vec![coll_stats(request, collection, options)?.build()])
    }),
    ("$currentOp", current_op),
    ("$indexStats", index_stats),
    ("$listLocalSessions", session_list::local),
    ("$listSessions", session_list::all),
    ("$planCacheStats", plan_cache_stats),
];

/// Marks the stages that are answered here, and adds those of Frond's own, in the list of what
/// works.
pub fn complete(stages: &mut Vec<Feature>) {
    let standing = |name: &str| match name {
        "$planCacheStats" => SupportLevel::Differs("plans aren't cached: it gives nothing"),
        CHANGE_STREAM => {
            SupportLevel::Differs("branches, merges and resets: see docs/change-streams.md")
        }
        _ => SupportLevel::Works,
    };
    for stage in stages.iter_mut() {
        let is_here = SOURCES.iter().any(|(name, _)| *name == stage.name);
        if is_here || [CHANGE_STREAM, SPLIT].contains(&stage.name) {
            stage.standing = standing(stage.name);
        }
    }
    stages.extend(history_stages().iter().map(|name| Feature::new(name, SupportLevel::Own)));
}

/// The documents of a collection that isn't stored as one: users, roles, the set's configuration,
/// views; `None` of any other.
///
/// # Errors
/// An error of reading them.
pub fn documents_of(
    request: &Request<'_>,
    collection: Option<&str>,
) -> Result<Option<Vec<DocumentBuf>>, Error> {
    if let Some(documents) = users::documents_of(request, collection)? {
        return Ok(Some(documents));
    }
    match set_configuration::documents_of(request, collection) {
        None => catalog::views_of(request, collection),
        documents => Ok(documents),
    }
}

/// Replaces a first stage of this kind; `None` if there is none.
///
/// # Errors
/// The reason for which the stage is refused.
pub fn rewrite(
    request: &Request<'_>,
    collection: Option<&str>,
    aggregate: &AggregateRequest,
) -> Result<Option<AggregateRequest>, Error> {
    let stages = aggregate.pipeline.as_value().as_array();
    let stages = stages.unwrap_or(Array::from_validated(&frond_doc::document::EMPTY));
    if let Some(documents) = documents_of(request, collection)? {
        let pipeline = with_documents(&documents, stages.iter());
        return Ok(Some(AggregateRequest { pipeline, hint: None, ..aggregate.clone() }));
    }
    let Some((name, options)) = first_stage(stages) else { return Ok(None) };
    Ok(documents(request, collection, name, options)?.map(|documents| {
        let pipeline = with_documents(&documents, stages.iter().skip(1));
        AggregateRequest { pipeline, hint: None, ..aggregate.clone() }
    }))
}

/// The first stage of a pipeline, and its options.
pub(super) fn first_stage(stages: Array<'_>) -> Option<(&str, Value<'_>)> {
    stages.get(0).and_then(|stage| stage.as_document()?.iter().next())
}

/// The documents that a first stage of this kind gives; `None` of any other.
///
/// # Errors
/// The reason for which the stage is refused.
pub(super) fn documents(
    request: &Request<'_>,
    collection: Option<&str>,
    name: &str,
    options: Value<'_>,
) -> Result<Option<Vec<DocumentBuf>>, Error> {
    let Some((_, source)) = SOURCES.iter().find(|(known, _)| *known == name) else {
        return Ok(None);
    };
    request.refuse_moment(&format!("Aggregation stage {name}"))?;
    if request.current.is_some() {
        let message = format!("{name} cannot be run within a transaction");
        return Err(Error::invalid(Code::OperationNotSupportedInTransaction, message));
    }
    source(request, collection, options).map(Some)
}

/// The options of `$currentOp`. Other things that MongoDB would show don't exist here: idle
/// sessions, users, a cluster.
const CURRENT_OP_OPTIONS: &[&str] = &[
    "allUsers",
    "backtrace",
    "idleConnections",
    "idleCursors",
    "idleSessions",
    "localOps",
    "targetAllNodes",
    "truncateOps",
];

/// A search of these documents, as the pipeline that it is short for.
pub fn search_in(documents: &[DocumentBuf], find: &FindRequest) -> AggregateRequest {
    let stages = stages_of(find);
    let stages = stages.get("stages").and_then(|stages| stages.as_array());
    let stages = stages.iter().flat_map(|stages| stages.iter());
    AggregateRequest {
        pipeline: with_documents(documents, stages),
        variables: find.variables.clone(),
        collation: find.collation.clone(),
        hint: None,
        in_memory_only: find.in_memory_only,
        interrupt: find.interrupt.clone(),
    }
}

/// Returns the stages of a pipeline that does the same as a search.
fn stages_of(find: &FindRequest) -> DocumentBuf {
    let mut stages = DocumentBuilder::new();
    stages.begin_array("stages");
    let mut stage = |name: &str, value: Option<Value<'_>>| {
        if let Some(value) = value {
            stages.push_begin_document().append(name, value).end();
        }
    };
    let long = |count: u64| Value::Int64(i64::try_from(count).unwrap_or(i64::MAX));
    let is_by_fields = |sort: &&DocumentBuf| sort.get("$natural").is_none();
    stage("$match", find.filter.as_ref().map(Value::from));
    stage("$sort", find.sort.as_ref().filter(is_by_fields).map(Value::from));
    stage("$skip", (find.skip > 0).then(|| long(find.skip)));
    stage("$limit", find.limit.map(long));
    stage("$project", find.projection.as_ref().map(Value::from));
    stages.end();
    stages.build()
}

/// A pipeline that begins with these documents.
pub(super) fn with_documents<'a>(
    documents: &[DocumentBuf],
    stages: impl Iterator<Item = Value<'a>>,
) -> frond_doc::ValueBuf {
    let mut pipeline = DocumentBuilder::new();
    pipeline.begin_array("pipeline").push_begin_document().begin_array("$documents");
    for document in documents {
        let document = frond_doc::document! { "$literal": document };
        pipeline.push(Value::Document(document.view()));
    }
    pipeline.end().end();
    for stage in stages {
        pipeline.push(stage);
    }
    pipeline.end();
    pipeline.build().get("pipeline").expect("it was appended").to_buf()
}

fn coll_stats(request: &Request<'_>, collection: Option<&str>, options: Value<'_>) -> Answer {
    let Some(collection) = collection else {
        let message = "$collStats must be run on a collection";
        return Err(Error::invalid(Code::InvalidNamespace, message));
    };
    let Value::Document(options) = options else {
        let found = options.element_type().alias();
        let message = format!("$collStats must take a nested object but found: {found}");
        return Err(Error::invalid(Code::Location(5_447_000), message));
    };
    let mut fields = Fields::of_part("$collStats", options)?;
    let storage = fields.document("storageStats")?;
    let counts = fields.document("count")?.is_some();
    let latency = fields.document("latencyStats")?;
    let executions = fields.document("queryExecStats")?;
    fields.finish()?;
    let database = request.database()?;
    let of_collections = [
        ("storageStats", storage.is_some()),
        ("count", counts),
        ("queryExecStats", executions.is_some()),
    ];
    if let Some((option, _)) = of_collections.into_iter().find(|(_, is_given)| *is_given) {
        check_collection(request, &database, collection, option)?;
    }
    let mut answer = DocumentBuilder::new();
    answer
        .append("ns", Value::String(&request.namespace(collection)))
        .append("host", Value::String(&request.server.address.to_string()))
        .append("localTime", Value::DateTime(request.server.frond.now_millis()));
    if let Some(options) = latency {
        let mut fields = Fields::of_part("$collStats.latencyStats", options)?;
        let histograms = fields.boolean("histograms")?;
        fields.finish()?;
        let usage = request.server.usage.of_namespace(&request.namespace(collection));
        answer.begin_document("latencyStats");
        latencies::append(&mut answer, usage.unwrap_or_default().latencies(), histograms);
        answer.end();
    }
    if let Some(storage) = storage {
        let mut fields = Fields::of_part("$collStats.storageStats", storage)?;
        let scale = stats::read_scale(&mut fields)?;
        fields.finish()?;
        answer.begin_document("storageStats");
        stats::append_stats(&mut answer, &database, collection, scale)?;
        answer.end();
    }
    if counts {
        let count = database.count(collection, &FindRequest::default())?;
        answer.append("count", reply::number(count));
    }
    if let Some(options) = executions {
        Fields::of_part("$collStats.queryExecStats", options)?.finish()?;
        append_scans(&mut answer, &database.collection_scans(collection)?);
    }
    Ok(answer)
}

fn append_scans(answer: &mut DocumentBuilder, scans: &CollectionScans) {
    let CollectionScans { tailable, others } = *scans;
    answer.begin_document("queryExecStats").begin_document("collectionScans");
    answer.append("total", Value::Int64(reply::long(tailable.saturating_add(others))));
    answer.append("nonTailable", Value::Int64(reply::long(others)));
    answer.end().end();
}

/// Sizes and counts are those of a collection that is there, and is no view.
fn check_collection(
    request: &Request<'_>,
    database: &Database,
    collection: &str,
    option: &str,
) -> Result<(), Error> {
    match database.list_indexes(collection) {
        Err(error) if error.code == Code::NamespaceNotFound => {
            let message = format!(
                "Unable to retrieve {option} in $collStats stage :: caused by :: Collection [{}] \
                 not found.",
                request.namespace(collection)
            );
            Err(Error::invalid(Code::NamespaceNotFound, message))
        }
        Err(error) if error.code == Code::CommandNotSupportedOnView => Err(error),
        // A collection that is computed as it is read has no indexes.
        _ => Ok(()),
    }
}

fn index_stats(
    request: &Request<'_>,
    collection: Option<&str>,
    options: Value<'_>,
) -> Result<Vec<DocumentBuf>, Error> {
    let Some(collection) = collection else {
        let message = "$indexStats must be run on a collection";
        return Err(Error::invalid(Code::InvalidNamespace, message));
    };
    if options.as_document().is_none_or(|options| !options.is_empty()) {
        let message = "The $indexStats stage specification must be an empty object";
        return Err(Error::invalid(Code::Location(28803), message));
    }
    let server = request.server;
    let running = i64::try_from(server.started.elapsed().as_millis()).unwrap_or(i64::MAX);
    let since = server.frond.now_millis().saturating_sub(running);
    let uses = match request.database()?.index_uses(collection) {
        Ok(uses) => uses,
        Err(error) if error.code == Code::NamespaceNotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let described = |(spec, uses): &(frond_db::catalog::IndexSpec, u64)| {
        let mut described = DocumentBuilder::new();
        described
            .append("name", Value::String(&spec.name))
            .append("key", Value::from(&spec.key))
            .append("host", Value::String(&server.address.to_string()));
        described
            .begin_document("accesses")
            .append("ops", Value::Int64(i64::try_from(*uses).unwrap_or(i64::MAX)))
            .append("since", Value::DateTime(since))
            .end();
        described.append("spec", Value::from(&spec.to_document()));
        described.build()
    };
    Ok(uses.iter().map(described).collect())
}

fn current_op(
    request: &Request<'_>,
    collection: Option<&str>,
    options: Value<'_>,
) -> Result<Vec<DocumentBuf>, Error> {
    if collection.is_some() || request.database_name != "admin" {
        let message = "$currentOp must be run against the 'admin' database with {aggregate: 1}";
        return Err(Error::invalid(Code::InvalidNamespace, message));
    }
    for (name, value) in document_of("$currentOp", options)?.iter() {
        let refuse = |message: String| Err(Error::invalid(Code::FailedToParse, message));
        if !CURRENT_OP_OPTIONS.contains(&name) {
            return refuse(format!("Unrecognized option '{name}' in $currentOp stage."));
        }
        if !matches!(value, Value::Boolean(_)) {
            return refuse(format!(
                "The '{name}' parameter of the $currentOp stage must be a boolean value, but found: {}",
                value.element_type().alias()
            ));
        }
    }
    let all = document_of("$currentOp", options)?.get("allUsers") == Some(Value::Boolean(true));
    Ok(operation::list(request, request.rights.is_some() && !all))
}

/// There is no cache of plans, so there is nothing to show of it.
fn plan_cache_stats(
    _: &Request<'_>,
    collection: Option<&str>,
    options: Value<'_>,
) -> Result<Vec<DocumentBuf>, Error> {
    if collection.is_none() {
        let message = "$planCacheStats must be run on a collection";
        return Err(Error::invalid(Code::InvalidNamespace, message));
    }
    let mut fields = Fields::of_part("$planCacheStats", document_of("$planCacheStats", options)?)?;
    fields.boolean("allHosts")?;
    fields.finish()?;
    Ok(Vec::new())
}

pub(super) fn document_of<'a>(stage: &str, options: Value<'a>) -> Result<Document<'a>, Error> {
    options.as_document().ok_or_else(|| {
        let found = options.element_type().alias();
        let message = format!("{stage} must take a nested object but found a {found}");
        Error::invalid(Code::TypeMismatch, message)
    })
}
