//! The hashes by which the profiler identifies queries of one shape: those of `explain`.

use frond_db::{AggregateRequest, Effort, FindRequest, Interrupt};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Collation;

use super::operation::ProfiledOperation;
use crate::operations::collection_of;
use crate::shared::Shared;

/// The hashes of a query's shape and of its plan's key; `None` where the planner had no choice, or
/// they can't be found any more.
pub(super) fn hashes(server: &Shared, deed: &ProfiledOperation<'_>) -> Option<[String; 2]> {
    if !deed.plan.is_planned() {
        return None;
    }
    let operation = deed.operation;
    let database = server.frond.database(&operation.database).ok()?;
    let (command, body) = match operation.origin() {
        Some(origin) => (origin.command.view(), origin.command.view()),
        None => (operation.sent.view(), deed.command.view()),
    };
    let collection = collection_of(command)?;
    let (name, _) = command.iter().next()?;
    if name != "aggregate" {
        return database.query_hashes(collection, &search(name, body)?).ok()?;
    }
    let request = AggregateRequest {
        pipeline: body.get("pipeline")?.to_buf(),
        variables: document(body, "let"),
        collation: collation(body),
        hint: body.get("hint").map(|hint| hint.to_buf()),
        in_memory_only: true,
        interrupt: Interrupt::default(),
    };
    let stages = request.pipeline.as_value().as_array()?;
    let (explained, _) =
        database.explain_aggregate(collection, stages, &request, Effort::Plan).ok()?;
    let planner = explained.get("queryPlanner")?.as_document()?;
    let hash = |name: &str| planner.get(name)?.as_str().map(str::to_owned);
    Some([hash("planCacheShapeHash")?, hash("planCacheKey")?])
}

/// The search of a command, or of a statement of one, as far as its shape goes.
fn search(name: &str, body: Document<'_>) -> Option<FindRequest> {
    let (filter, projection) = match name {
        "find" => ("filter", document(body, "projection")),
        "distinct" => ("query", body.get("key")?.as_str().and_then(projection_of)),
        "count" | "findAndModify" | "findandmodify" => ("query", None),
        "update" | "delete" => ("q", None),
        _ => return None,
    };
    Some(FindRequest {
        filter: document(body, filter),
        sort: document(body, "sort"),
        projection,
        collation: collation(body),
        ..FindRequest::default()
    })
}

/// Returns the projection of a `distinct`, as `explain` shows it.
fn projection_of(path: &str) -> Option<DocumentBuf> {
    let mut projection = DocumentBuilder::new();
    projection.append("_id", Value::Int32(0)).append(path, Value::Int32(1));
    Some(projection.build()).filter(|_| path != "_id")
}

fn document(body: Document<'_>, name: &str) -> Option<DocumentBuf> {
    let found = body.get(name)?.as_document()?;
    (!found.is_empty()).then(|| found.to_buf())
}

fn collation(body: Document<'_>) -> Option<Collation> {
    Collation::parse(body.get("collation")?.as_document()?).ok()
}
