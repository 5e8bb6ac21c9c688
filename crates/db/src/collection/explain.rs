//! `explain`: how a `find` goes, in MongoDB's form.
//!
//! Stages have MongoDB's names: `COLLSCAN`, `IDHACK`, `FETCH` over `IXSCAN`, `SORT`, `SKIP`, `LIMIT`,
//! `PROJECTION_DEFAULT`, `EOF`. The documents lie in the tree of `_id`, so a scan by `_id` examines
//! documents only; it is told as `FETCH` over `IXSCAN` of `_id_` all the same.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_tree::Direction;

use crate::catalog::{Collection, IndexSpec};
use crate::collection::FindRequest;
use crate::collection::find::Query;
use crate::collection::plan::{Access, AccessPath, Order};
use crate::collection::scan::Scan;
use crate::database::Database;
use crate::error::Error;

/// Whether to run the query, or only to plan it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    Plan,
    Run,
}

/// What running the query did.
#[derive(Default)]
struct Counted {
    returned: u64,
    keys: u64,
    documents: u64,
}

impl Database {
    /// How `find` would go: MongoDB's `explain` with `queryPlanner` and `executionStats`.
    pub fn explain(&self, collection: &str, request: &FindRequest) -> Result<DocumentBuf, Error> {
        self.explained(collection, request, Effort::Run)
    }

    /// As [`Database::explain`], without running the query: `queryPlanner` only.
    pub fn explain_plan(
        &self,
        collection: &str,
        request: &FindRequest,
    ) -> Result<DocumentBuf, Error> {
        self.explained(collection, request, Effort::Plan)
    }

    fn explained(
        &self,
        collection: &str,
        request: &FindRequest,
        effort: Effort,
    ) -> Result<DocumentBuf, Error> {
        let began = self.frond().now_millis();
        let reader = self.reader();
        let query = self.query(&reader, collection, request)?;
        let mut counted = Counted::default();
        let mut plan = stage("EOF");
        if let Some((collection, access)) = &query.collection {
            plan = winning_plan(collection, access, &query, request);
            let enough = match &query.order {
                Order::By(_) if !access.gives_order => None,
                _ => request.limit.map(|limit| request.skip.saturating_add(limit)),
            };
            let filter = query.filter.clone();
            let mut scan = Scan::new(reader, collection, access.clone(), filter);
            while effort == Effort::Run && enough.is_none_or(|enough| counted.returned < enough) {
                match scan.next() {
                    Some(found) => found.map(|_| counted.returned += 1)?,
                    None => break,
                }
            }
            counted.returned = counted.returned.saturating_sub(request.skip);
            counted.returned = counted.returned.min(request.limit.unwrap_or(u64::MAX));
            (counted.keys, counted.documents) = (scan.keys_examined, scan.documents_examined);
        }
        let millis = self.frond().now_millis().saturating_sub(began);
        let counted = (effort == Effort::Run).then_some(&counted);
        let filter = request.filter.as_ref().map_or(Document::empty(), DocumentBuf::view);
        Ok(answer(&self.namespace(collection), filter, plan.build(), counted, millis))
    }
}

fn stage(name: &str) -> DocumentBuilder {
    let mut stage = DocumentBuilder::new();
    stage.append("stage", Value::String(name));
    stage
}

/// `outer`, with `inner` as its input.
fn over(mut outer: DocumentBuilder, inner: DocumentBuilder) -> DocumentBuilder {
    outer.append("inputStage", Value::from(&inner.build()));
    outer
}

fn winning_plan(
    collection: &Collection,
    access: &Access,
    query: &Query,
    request: &FindRequest,
) -> DocumentBuilder {
    let mut plan = access_stage(collection, access, request);
    if let (Order::By(_), Some(sort), false) = (&query.order, &request.sort, access.gives_order) {
        let mut outer = stage("SORT");
        outer.append("sortPattern", Value::from(sort));
        if let Some(limit) = request.limit {
            let kept = request.skip.saturating_add(limit);
            outer.append("limitAmount", Value::Int64(i64::try_from(kept).unwrap_or(i64::MAX)));
        }
        plan = over(outer, plan);
    }
    if request.skip > 0 {
        let mut outer = stage("SKIP");
        outer.append("skipAmount", Value::Int64(i64::try_from(request.skip).unwrap_or(i64::MAX)));
        plan = over(outer, plan);
    }
    if let (Some(_), Some(projection)) = (&query.projection, &request.projection) {
        let mut outer = stage("PROJECTION_DEFAULT");
        outer.append("transformBy", Value::from(projection));
        plan = over(outer, plan);
    }
    if let Some(limit) = request.limit {
        let mut outer = stage("LIMIT");
        outer.append("limitAmount", Value::Int64(i64::try_from(limit).unwrap_or(i64::MAX)));
        plan = over(outer, plan);
    }
    plan
}

fn access_stage(
    collection: &Collection,
    access: &Access,
    request: &FindRequest,
) -> DocumentBuilder {
    let filter = request.filter.as_ref().filter(|filter| !filter.view().is_empty());
    let direction = match access.direction {
        Direction::Ascending => "forward",
        Direction::Descending => "backward",
    };
    let index = match access.path {
        AccessPath::Collection => {
            let mut plan = stage("COLLSCAN");
            if let Some(filter) = filter {
                plan.append("filter", Value::from(filter));
            }
            plan.append("direction", Value::String(direction));
            return plan;
        }
        AccessPath::Id if is_id_equality(filter) => return stage("IDHACK"),
        AccessPath::Id => index_stage(&IndexSpec::of_id(), true, false, direction),
        AccessPath::Index { position, multikey } => {
            let spec = &collection.indexes[position].spec;
            index_stage(spec, spec.unique, multikey, direction)
        }
    };
    let mut fetch = stage("FETCH");
    if let Some(filter) = filter {
        fetch.append("filter", Value::from(filter));
    }
    over(fetch, index)
}

fn index_stage(spec: &IndexSpec, unique: bool, multikey: bool, direction: &str) -> DocumentBuilder {
    let mut scan = stage("IXSCAN");
    scan.append("keyPattern", Value::from(&spec.key));
    scan.append("indexName", Value::String(&spec.name));
    scan.append("isMultiKey", Value::Boolean(multikey));
    scan.append("isUnique", Value::Boolean(unique));
    scan.append("isSparse", Value::Boolean(spec.sparse));
    scan.append("isPartial", Value::Boolean(false));
    scan.append("indexVersion", Value::Int32(2));
    scan.append("direction", Value::String(direction));
    scan
}

/// Whether the filter is `{_id: <value>}`, nothing else.
fn is_id_equality(filter: Option<&DocumentBuf>) -> bool {
    let Some(filter) = filter else {
        return false;
    };
    let operators = |value: Value<'_>| match value {
        Value::Document(value) => value.iter().any(|(name, _)| name.starts_with('$')),
        Value::Regex(_) => true,
        _ => false,
    };
    filter.iter().count() == 1 && filter.get("_id").is_some_and(|value| !operators(value))
}

fn answer(
    namespace: &str,
    filter: Document<'_>,
    plan: DocumentBuf,
    counted: Option<&Counted>,
    millis: i64,
) -> DocumentBuf {
    let number = |number: u64| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX));
    let mut builder = DocumentBuilder::new();
    builder.append("explainVersion", Value::String("1"));
    builder.begin_document("queryPlanner");
    builder.append("namespace", Value::String(namespace));
    builder.append("indexFilterSet", Value::Boolean(false));
    builder.append("parsedQuery", Value::Document(filter));
    builder.append("winningPlan", Value::from(&plan));
    builder.begin_array("rejectedPlans").end();
    builder.end();
    let Some(counted) = counted else { return builder.build() };
    builder.begin_document("executionStats");
    builder.append("executionSuccess", Value::Boolean(true));
    builder.append("nReturned", number(counted.returned));
    builder.append("executionTimeMillis", Value::Int64(millis));
    builder.append("totalKeysExamined", number(counted.keys));
    builder.append("totalDocsExamined", number(counted.documents));
    // The outermost stage tells what the whole query did; that is what tools show.
    builder.begin_document("executionStages");
    for (name, value) in plan.iter() {
        builder.append(name, value);
    }
    builder.append("nReturned", number(counted.returned));
    builder.append("executionTimeMillisEstimate", Value::Int64(millis));
    builder.end().end();
    builder.build()
}
