//! The common parts of the tests: a database on a simulated disk, documents written as JSON.

use frond_db::{
    AggregateRequest, ChangeRetention, Database, DeleteStatement, Durability, Error, FindRequest,
    Frond, FrondOptions, UpdateReport, UpdateStatement, WriteReport,
};
use frond_doc::{DocumentBuf, Value, ValueBuf, extended_json};
use frond_engine::ReclaimOptions;
use frond_testkit::SimDisk;
use frond_vcs::Repository;

/// Opens a data directory on a disk of its own.
pub fn open() -> Frond {
    frond_vcs::open_on(&SimDisk::new(1).machine(), FrondOptions::default()).expect("opens")
}

/// As [`open`], with a log that is kept for change streams.
pub fn open_with_changes() -> Frond {
    frond_vcs::open_on(&SimDisk::new(1).machine(), options_with_changes()).expect("opens")
}

/// The options of a data directory that keeps the log for streams.
pub fn options_with_changes() -> FrondOptions {
    let mut options = FrondOptions::default();
    options.engine.changes =
        ChangeRetention { seconds: 3600, bytes: 1 << 30, ..ChangeRetention::default() };
    options
}

/// Opens the database `shop` of a new data directory.
pub fn shop() -> Repository {
    Repository::open(&open(), "shop").expect("a proper name")
}

/// Reads a document; quotes may be single ones.
pub fn json(text: &str) -> DocumentBuf {
    extended_json::parse(&text.replace('\'', "\"")).expect("the test's JSON is right")
}

/// Reads several documents: the elements of an array.
pub fn jsons(text: &str) -> Vec<DocumentBuf> {
    let wrapped = json(&format!("{{'a': {text}}}"));
    let array = wrapped.get("a").and_then(|value| value.as_array()).expect("an array");
    array.iter().map(|value| value.as_document().expect("a document").to_buf()).collect()
}

/// Reads any value.
pub fn value(text: &str) -> ValueBuf {
    json(&format!("{{'v': {text}}}")).get("v").expect("it is there").to_buf()
}

/// Writes a document as relaxed JSON without spaces, with single quotes.
pub fn text(document: &DocumentBuf) -> String {
    let mut out = String::new();
    extended_json::write(document.view(), extended_json::Form::Relaxed, &mut out);
    out.replace('"', "'").replace(": ", ":").replace(", ", ",")
}

/// Writes documents as `text` does, as an array.
pub fn texts(documents: &[DocumentBuf]) -> String {
    format!("[{}]", documents.iter().map(text).collect::<Vec<_>>().join(","))
}

/// Inserts documents; all must succeed.
pub fn insert(database: &Database, collection: &str, documents: &str) {
    let documents = jsons(documents);
    let report = try_insert(database, collection, &documents);
    assert_eq!(report.count, documents.len() as u64, "{:?}", report.errors);
}

/// Inserts documents in order.
pub fn try_insert(database: &Database, collection: &str, documents: &[DocumentBuf]) -> WriteReport {
    database.insert(collection, documents, true, Durability::Relaxed).expect("the request is right")
}

/// An update statement from JSON.
pub fn statement(filter: &str, update: &str) -> UpdateStatement {
    UpdateStatement::new(json(filter), value(update))
}

/// Runs one update statement.
pub fn update(database: &Database, collection: &str, statement: UpdateStatement) -> UpdateReport {
    let report = database.update(collection, &[statement], true, Durability::Relaxed);
    report.expect("the request is right")
}

/// Deletes all documents that pass the filter; how many there were.
pub fn delete(database: &Database, collection: &str, filter: &str) -> u64 {
    let statement = DeleteStatement {
        filter: json(filter),
        only_first: false,
        hint: None,
        variables: None,
        collation: None,
    };
    let report = database.delete(collection, &[statement], true, Durability::Relaxed);
    let report = report.expect("the request is right");
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    report.count
}

/// A `find` for documents that pass the filter.
pub fn request(filter: &str) -> FindRequest {
    FindRequest { filter: Some(json(filter)), ..FindRequest::default() }
}

/// Runs a `find` to its end.
pub fn run(
    database: &Database,
    collection: &str,
    request: &FindRequest,
) -> Result<Vec<DocumentBuf>, Error> {
    database.find(collection, request)?.collect()
}

/// The documents that pass the filter, as text.
pub fn find(database: &Database, collection: &str, filter: &str) -> String {
    texts(&run(database, collection, &request(filter)).expect("the request is right"))
}

/// Everything in a collection, in the order of `_id`.
pub fn all(database: &Database, collection: &str) -> String {
    let mut request = request("{}");
    request.sort = Some(json("{'_id': 1}"));
    texts(&run(database, collection, &request).expect("the request is right"))
}

/// Runs a pipeline to its end.
pub fn aggregate(
    database: &Database,
    collection: Option<&str>,
    pipeline: &str,
) -> Result<Vec<DocumentBuf>, Error> {
    let request = AggregateRequest {
        pipeline: value(pipeline),
        variables: None,
        collation: None,
        hint: None,
        in_memory_only: false,
        interrupt: Default::default(),
    };
    database.aggregate(collection, &request)?.collect()
}

/// The stages of an explained plan, outermost first: `FETCH IXSCAN`.
pub fn stages(explained: &DocumentBuf) -> String {
    let planner = explained.get("queryPlanner").and_then(|planner| planner.as_document());
    let mut stage = planner.and_then(|planner| planner.get("winningPlan"));
    let mut names = Vec::new();
    while let Some(Value::Document(plan)) = stage {
        names.push(plan.get("stage").and_then(|name| name.as_str()).expect("a stage has a name"));
        stage = plan.get("inputStage");
    }
    names.join(" ")
}

/// A counter of an explained plan's `executionStats`.
pub fn examined(explained: &DocumentBuf, counter: &str) -> i64 {
    let stats = explained.get("executionStats").and_then(|stats| stats.as_document());
    stats.and_then(|stats| stats.get(counter)?.as_integer()).expect("the counter is there")
}

/// Flushes, and removes what nothing names.
pub fn collect(frond: &Frond) {
    frond.engine().flush().expect("flushed");
    frond_vcs::reclaim(frond, 0, ReclaimOptions::default()).expect("collected");
}

/// Returns how many chunks `ask` reads.
pub fn chunks(shop: &Database, ask: impl FnOnce()) -> u64 {
    let (_, before) = shop.frond().counters();
    ask();
    let (_, after) = shop.frond().counters();
    after.chunks_read - before.chunks_read
}
