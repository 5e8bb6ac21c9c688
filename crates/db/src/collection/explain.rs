//! `explain`: how a command goes, in MongoDB's form.
//!
//! Stages have MongoDB's names. Stages that read: `COLLSCAN`, `IDHACK`, `IXSCAN` (below `FETCH`,
//! unless the index covers the query), `COUNT_SCAN` (keys or ranges are counted), `EOF`. Stages
//! that combine: `OR`, `SORT_MERGE`. Stages that follow: `GEO_NEAR_*`, `SORT`, `SKIP`,
//! `PROJECTION_*`, `LIMIT`, and over all of them the command's use of the documents (`COUNT`,
//! `UPDATE`, `DELETE`). The documents lie in the tree of `_id`, so a scan by `_id` examines
//! documents only; it is shown as `FETCH` over `IXSCAN` of `_id_` all the same, with a key for each
//! document. A search that MongoDB 8.0 answers without its planner is shown as `EXPRESS_IXSCAN`
//! ([`express`]).
//!
//! A search by a text index is shown as `TEXT_MATCH` ([`text`]).
//!
//! The plan that is shown is the one that runs: both come from one call of the planner, and the
//! counters are those of the very scan.

mod executed;
mod express;
mod hashes;
pub(crate) mod pipeline;
mod planned;
mod stage;
mod text;

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::index::{FLAG_INEXACT_KEY, FieldKind, TERMS_SECOND};
use frond_tree::Direction;

use crate::catalog::Catalog;
use crate::collection::covered::Cover;
use crate::collection::express::{is_id_equality, is_of_id, is_simple};
use crate::collection::plan::{Access, AccessPath, Order, Source};
use crate::collection::query::{Detail, Query, query_for};
use crate::collection::{FindRequest, Purpose};
use crate::database::Database;
use crate::definition::IndexSpec;
use crate::error::Error;
use crate::reader::Reader;
use crate::schema::{Collection, Index};
pub use executed::ExecutedSearch;
pub(crate) use executed::executed_stages;
use hashes::Hashes;
use planned::PlannedQuery;
use stage::{Stage, number, parsed_query};

/// The effort: whether to run the query, or only to plan it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// Only to plan it.
    Plan,
    /// To run it, too; nothing is written.
    Run,
    /// The same; what was tried is shown, too, which is nothing: plans are chosen by the sizes of
    /// their ranges.
    RunAll,
}

/// The facts about a query that are shown besides its plans.
struct QueryFacts<'a> {
    filter: Document<'a>,
    hashes: Hashes,
    has_index_filter: bool,
}

/// The counts of a scan, a walk at a time.
#[derive(Clone, Copy, Default)]
struct Done {
    keys: u64,
    documents: u64,
    returned: u64,
    /// Documents that counts passed over.
    passed: u64,
}

/// Returns how `find` would go: MongoDB's `explain` with `queryPlanner` and `executionStats`.
pub(crate) fn explain(
    database: &Database,
    collection: &str,
    request: &FindRequest,
) -> Result<DocumentBuf, Error> {
    explain_as(database, collection, request, Purpose::Find, Effort::Run)
}

/// As [`Database::explain`], without running the query: `queryPlanner` only.
pub(crate) fn explain_plan(
    database: &Database,
    collection: &str,
    request: &FindRequest,
) -> Result<DocumentBuf, Error> {
    explain_as(database, collection, request, Purpose::Find, Effort::Plan)
}

/// Returns how a command would go that finds what `request` says.
pub(crate) fn explain_as(
    database: &Database,
    collection: &str,
    request: &FindRequest,
    purpose: Purpose,
    effort: Effort,
) -> Result<DocumentBuf, Error> {
    let reader = database.reader();
    let query = query_for(database, &reader, collection, request, purpose, Detail::Considered)?;
    explain_query(database, &reader, collection, (request, &query), purpose, effort)
}

/// The hashes of a query's shape and of its plan's key; `None` where there is no collection of that
/// name.
pub(crate) fn query_hashes(
    database: &Database,
    collection: &str,
    request: &FindRequest,
) -> Result<Option<[String; 2]>, Error> {
    let reader = database.reader();
    let catalog = Catalog::of(&reader, database);
    if catalog.is_made(collection)? {
        return Ok(None);
    }
    let found = catalog.collection(collection)?;
    Ok(found.map(|found| Hashes::of(request, Some(&found)).texts()))
}

/// Explains a query whose plan was chosen; `request` is the one that is shown.
pub(super) fn explain_query(
    database: &Database,
    reader: &Reader<'static>,
    collection: &str,
    (request, query): (&FindRequest, &Query),
    purpose: Purpose,
    effort: Effort,
) -> Result<DocumentBuf, Error> {
    let namespace = database.namespace(collection);
    let filter = request.filter.as_ref().map_or(Document::empty(), DocumentBuf::view);
    let found = query.collection.as_ref().map(|(collection, _)| &**collection);
    let hashes = Hashes::of(request, found);
    let facts = QueryFacts { filter, hashes, has_index_filter: query.has_index_filter };
    let Some((collection, access)) = &query.collection else {
        let plan = purposed(Stage::leaf("EOF", DocumentBuf::empty(), 0), purpose);
        let nothing = Done::default();
        return Ok(answer(&namespace, facts, (&plan, &[], 1), effort, nothing, 0));
    };
    let planned = PlannedQuery { database, reader, request, query, collection, access, purpose };
    planned.explain(&namespace, facts, effort)
}

/// The number of keys that a walk is shown to have examined: one for each document by its `_id`.
fn keys_of(path: &AccessPath, done: Done) -> u64 {
    match path.source {
        Source::Id | Source::Place => done.documents,
        Source::Collection | Source::Natural | Source::Index(_) => done.keys,
    }
}

/// The stage that does with documents what the command does.
fn purposed(plan: Stage, purpose: Purpose) -> Stage {
    let found = plan.returned();
    let over = |name| Stage::over(name, DocumentBuf::empty(), plan.clone()).returning(0);
    match purpose {
        Purpose::Find | Purpose::Distinct => plan,
        Purpose::Stages | Purpose::DividedStages | Purpose::CountedStages => plan,
        Purpose::Count => over("COUNT").counting("nCounted", found).counting("nSkipped", 0),
        Purpose::Update => over("UPDATE")
            .counting("nMatched", found)
            .counting("nWouldModify", found)
            .counting("nWouldUpsert", 0),
        Purpose::Delete => over("DELETE").counting("nWouldDelete", found),
    }
}

fn details(fields: &[(&str, Value<'_>)]) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    for (name, value) in fields {
        builder.append(name, *value);
    }
    builder.build()
}

fn plan_stages(
    collection: &Collection,
    access: &Access,
    query: &Query,
    request: &FindRequest,
    purpose: Purpose,
    done: &[Done],
) -> Stage {
    if let Some(stage) = express::stage(collection, access, request, purpose, done) {
        let returned = stage.returned().min(request.limit.unwrap_or(u64::MAX));
        return stage.returning(returned);
    }
    let long = |number: u64| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX));
    let mut plan = access_stage(collection, access, request, purpose, done);
    if let (Order::By(_), Some(sort), false) = (&query.order, &request.sort, access.gives_order) {
        let mut fields = vec![("sortPattern", Value::from(sort))];
        let kept = request.limit.map(|limit| request.skip.saturating_add(limit));
        fields.extend(kept.map(|kept| ("limitAmount", long(kept))));
        fields.push(("type", Value::String("simple")));
        let returned = plan.returned().min(kept.unwrap_or(u64::MAX));
        plan = Stage::over("SORT", details(&fields), plan).returning(returned);
    }
    if let (Order::Near(_), [path]) = (&query.order, &access.paths[..])
        && let Source::Index(position) = path.source
    {
        plan = near_stage(&collection.indexes[position], plan, request);
    }
    if request.skip > 0 {
        let passed: u64 = done.iter().map(|done| done.passed).sum();
        let returned = plan.returned().saturating_sub(request.skip - passed);
        let mut fields = vec![("skipAmount", long(request.skip))];
        fields.extend((0 < passed).then(|| ("skippedByCounts", long(passed))));
        plan = Stage::over("SKIP", details(&fields), plan).returning(returned);
    }
    let is_covered =
        !access.paths.is_empty() && access.paths.iter().all(|path| path.cover != Cover::Nothing);
    if request.gives_keys {
        plan = Stage::over("RETURN_KEY", DocumentBuf::empty(), plan);
    }
    let projects = !request.gives_keys && query.projection.is_some()
        || matches!(purpose, Purpose::Stages | Purpose::DividedStages) && is_covered;
    if let Some(projection) = request.projection.as_ref().filter(|_| projects) {
        let name = match (is_covered, is_simple(projection)) {
            (true, _) => "PROJECTION_COVERED",
            (false, true) => "PROJECTION_SIMPLE",
            (false, false) => "PROJECTION_DEFAULT",
        };
        plan = Stage::over(name, details(&[("transformBy", Value::from(projection))]), plan);
    }
    if let Some(limit) = request.limit {
        let returned = plan.returned().min(limit);
        plan = Stage::over("LIMIT", details(&[("limitAmount", long(limit))]), plan)
            .returning(returned);
    }
    plan
}

/// Returns the stage that measures and sorts the places that an index finds.
fn near_stage(index: &Index, plan: Stage, request: &FindRequest) -> Stage {
    let is_plane = index.shape.has_kind(FieldKind::Plane);
    let name = if is_plane { "GEO_NEAR_2D" } else { "GEO_NEAR_2DSPHERE" };
    let fields = [
        ("keyPattern", Value::from(&index.spec.key)),
        ("indexName", Value::String(&index.spec.name)),
        ("indexVersion", Value::Int32(2)),
    ];
    let kept = request.limit.map(|limit| request.skip.saturating_add(limit));
    let returned = plan.returned().min(kept.unwrap_or(u64::MAX));
    Stage::over(name, details(&fields), plan).returning(returned)
}

/// Returns the stage that reads: one scan, or several together.
fn access_stage(
    collection: &Collection,
    access: &Access,
    request: &FindRequest,
    purpose: Purpose,
    done: &[Done],
) -> Stage {
    let filter = request.filter.as_ref().filter(|filter| !filter.view().is_empty());
    let filter = filter.filter(|_| !access.is_exact);
    let counts = purpose.counts() && access.is_exact;
    let path_stage = |(path, done): (&AccessPath, &Done)| {
        if let Some(stage) = text::stage(collection, access, path, request, *done) {
            return stage;
        }
        scan_stage(collection, path, request.filter.as_ref(), filter, counts, *done)
    };
    let mut stages: Vec<Stage> = access.paths.iter().zip(done).map(path_stage).collect();
    if stages.len() == 1 {
        return stages.remove(0);
    }
    let returned = stages.iter().map(Stage::returned).sum();
    let name = if access.is_merged { "SORT_MERGE" } else { "OR" };
    let mut stage = Stage::over_all(name, stages, returned);
    if access.is_merged
        && let Some(sort) = &request.sort
    {
        stage = stage.detailed(details(&[("sortPattern", Value::from(sort))]));
    }
    stage
}

fn scan_stage(
    collection: &Collection,
    path: &AccessPath,
    whole_filter: Option<&DocumentBuf>,
    filter: Option<&DocumentBuf>,
    counts: bool,
    done: Done,
) -> Stage {
    let direction = match path.direction {
        Direction::Ascending => "forward",
        Direction::Descending => "backward",
    };
    let filter_field = filter.map(|filter| ("filter", Value::from(filter)));
    let id = match (&collection.series, path.source) {
        (Some(series), Source::Place) => series.index.clone(),
        _ => IndexSpec::of_id(),
    };
    let spec = match path.source {
        Source::Collection | Source::Natural if counts => {
            return Stage::leaf("RECORD_STORE_FAST_COUNT", DocumentBuf::empty(), done.returned);
        }
        Source::Collection | Source::Natural => {
            let mut fields: Vec<_> = filter_field.into_iter().collect();
            fields.push(("direction", Value::String(direction)));
            return Stage::leaf("COLLSCAN", details(&fields), done.returned)
                .counting("docsExamined", done.documents);
        }
        source if !counts && is_of_id(collection, source) && is_id_equality(whole_filter) => {
            return id_stage(&id, done);
        }
        Source::Id | Source::Place => &id,
        Source::Index(position) => &collection.indexes[position].spec,
    };
    let index = index_details(spec, path, direction);
    if counts {
        return Stage::leaf("COUNT_SCAN", index, done.returned).counting("keysExamined", done.keys);
    }
    let is_covered = path.cover != Cover::Nothing;
    let entries = keys_of(path, done);
    let passed = if is_covered { done.returned } else { entries };
    let mut index = Stage::leaf("IXSCAN", index, passed).counting("keysExamined", entries);
    if is_covered {
        if let Some(filter) = filter {
            index = index.detailed(details(&[("filter", Value::from(filter))]));
        }
        return index;
    }
    let fields: Vec<_> = filter_field.into_iter().collect();
    Stage::over("FETCH", details(&fields), index)
        .returning(done.returned)
        .counting("docsExamined", done.documents)
}

/// The look-up of one document by its `_id`.
fn id_stage(id: &IndexSpec, done: Done) -> Stage {
    let index = [("keyPattern", Value::from(&id.key)), ("indexName", Value::String(&id.name))];
    Stage::leaf("IDHACK", details(&index), done.returned)
        .counting("keysExamined", done.documents)
        .counting("docsExamined", done.documents)
}

fn index_details(spec: &IndexSpec, path: &AccessPath, direction: &str) -> DocumentBuf {
    let mut scan = DocumentBuilder::new();
    scan.append("keyPattern", Value::from(&spec.key));
    scan.append("indexName", Value::String(&spec.name));
    scan.append("isMultiKey", Value::Boolean(path.flags & !FLAG_INEXACT_KEY != 0));
    scan.begin_document("multiKeyPaths");
    let mut place = 0;
    for (name, _) in spec.key.iter() {
        scan.begin_array(name);
        // The two parts of a text index's terms are one field.
        if name == TERMS_SECOND {
            scan.end();
            continue;
        }
        if path.flags & frond_query::index::field_flag(place) != 0 {
            scan.push(Value::String(name));
        }
        place += 1;
        scan.end();
    }
    scan.end();
    scan.append("isUnique", Value::Boolean(spec.unique || spec.is_id()));
    scan.append("isSparse", Value::Boolean(spec.sparse));
    scan.append("isPartial", Value::Boolean(spec.partial.is_some()));
    scan.append("indexVersion", Value::Int32(2));
    scan.append("direction", Value::String(direction));
    scan.begin_document("indexBounds");
    for field in &path.fields {
        scan.begin_array(&field.name);
        for text in field.texts(path.direction == Direction::Descending) {
            scan.push(Value::String(&text));
        }
        scan.end();
    }
    scan.end();
    scan.build()
}

/// A plan, marked as not from a cache: there is none.
fn uncached(plan: &DocumentBuf) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    builder.append("isCached", Value::Boolean(false));
    for (name, value) in plan.iter() {
        builder.append(name, value);
    }
    builder.build()
}

/// Answers for plans of which the first runs, in so many parts at once, and the others were
/// rejected.
fn answer(
    namespace: &str,
    facts: QueryFacts<'_>,
    (plan, rejected, parts): (&Stage, &[Stage], usize),
    effort: Effort,
    total: Done,
    millis: i64,
) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    builder.append("explainVersion", Value::String("1"));
    builder.begin_document("queryPlanner");
    builder.append("namespace", Value::String(namespace));
    builder.append("parsedQuery", Value::from(&parsed_query(facts.filter)));
    builder.append("indexFilterSet", Value::Boolean(facts.has_index_filter));
    facts.hashes.append_to(&mut builder);
    builder.append("maxIndexedOrSolutionsReached", Value::Boolean(false));
    builder.append("maxIndexedAndSolutionsReached", Value::Boolean(false));
    builder.append("maxScansToExplodeReached", Value::Boolean(false));
    builder.append("prunedSimilarIndexes", Value::Boolean(false));
    builder.append("winningPlan", Value::from(&uncached(&plan.plan())));
    builder.begin_array("rejectedPlans");
    for plan in rejected {
        builder.push(Value::from(&uncached(&plan.plan())));
    }
    builder.end();
    if 1 < parts {
        builder.append("parts", number(parts as u64));
    }
    builder.end();
    if effort == Effort::Plan {
        return builder.build();
    }
    builder.begin_document("executionStats");
    builder.append("executionSuccess", Value::Boolean(true));
    builder.append("nReturned", number(plan.returned()));
    builder.append("executionTimeMillis", Value::Int64(millis));
    builder.append("totalKeysExamined", number(total.keys));
    builder.append("totalDocsExamined", number(total.documents));
    builder.append("executionStages", Value::from(&uncached(&plan.execution(millis))));
    if effort == Effort::RunAll {
        builder.begin_array("allPlansExecution").end();
    }
    builder.end();
    builder.build()
}
