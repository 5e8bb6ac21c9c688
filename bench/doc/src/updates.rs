//! Updates of large documents through the embedded database, on disk.

use std::time::Instant;

use frond_db::{Database, Durability, FindRequest, Frond, FrondOptions, UpdateStatement};
use frond_doc::pieces::{Element, build};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_store::ChunkStore;
use frond_store::memory::MemoryStore;
use frond_tree::TreeFormat;

use crate::measure::{nanos, text};

/// Updates of one kind in a run.
const TURNS: usize = 60;

/// Prints the tables.
pub fn run() {
    let directory = std::env::temp_dir().join(format!("frond-bench-doc-{}", std::process::id()));
    let frond = Frond::open(&directory, FrondOptions::default()).expect("a data directory");
    let database = frond.database("bench").expect("a name");
    one_field(&frond, &database);
    arrays(&frond, &database);
    drop((database, frond));
    std::fs::remove_dir_all(&directory).expect("its own directory");
    above_the_wire();
    von_neumann();
}

/// `{_id, n, sections: [{title, body}, ...]}` of about so many bytes.
fn document(id: i32, bytes: usize) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    out.append("_id", Value::Int32(id)).append("n", Value::Int32(0)).begin_array("sections");
    let mut section = 0;
    while section * 1_070 < bytes {
        let mut inner = DocumentBuilder::new();
        inner.append("title", Value::String(&format!("section {section:05}")));
        inner.append("body", Value::String(&format!("{section:05} and some words ").repeat(46)));
        out.push(Value::from(&inner.build()));
        section += 1;
    }
    out.end();
    out.build()
}

fn sizes() -> [(&'static str, usize); 6] {
    let names = ["10 KB", "50 KB", "100 KB", "1 MB", "4 MB", "15 MB"];
    let bytes = [10 << 10, 50 << 10, 100 << 10, 1 << 20, 4 << 20, 15 << 20];
    std::array::from_fn(|position| (names[position], bytes[position]))
}

/// What `TURNS` updates cost each: time, bytes in the log, bytes in packs (before folding).
struct Cost {
    nanos: f64,
    log_bytes: u64,
    pack_bytes: u64,
}

fn cost(
    frond: &Frond,
    database: &Database,
    id: i32,
    durability: Durability,
    make: &dyn Fn(usize) -> DocumentBuf,
) -> Cost {
    let mut filter = DocumentBuilder::new();
    filter.append("_id", Value::Int32(id));
    let filter = filter.build();
    let (engine, store) = frond.counters();
    let mut times: Vec<f64> = (0..TURNS)
        .map(|turn| {
            let update = make(turn);
            let statement = UpdateStatement {
                filter: filter.clone(),
                update: Value::from(&update).to_buf(),
                upsert: false,
                multi: false,
                sort: None,
                array_filters: None,
                constants: None,
                hint: None,
                variables: None, collation: None,
            };
            let start = Instant::now();
            let report = database.update("docs", &[statement], true, durability).expect("updates");
            let nanos = start.elapsed().as_nanos() as f64;
            assert_eq!((report.modified, report.errors.len()), (1, 0));
            nanos
        })
        .collect();
    times.sort_by(f64::total_cmp);
    // What is pending is written, and counted.
    database.insert("marks", &[DocumentBuf::empty()], true, Durability::Synced).expect("synced");
    let (engine_after, store_after) = frond.counters();
    Cost {
        nanos: times[TURNS / 2],
        log_bytes: (engine_after.log_bytes - engine.log_bytes) / TURNS as u64,
        pack_bytes: (store_after.bytes_written - store.bytes_written) / TURNS as u64,
    }
}

/// `{operator: {path: value}}`.
fn update(operator: &str, path: &str, value: Value<'_>) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    out.begin_document(operator).append(path, value).end();
    out.build()
}

fn one_field(frond: &Frond, database: &Database) {
    println!(
        "\n| one field of | `$inc n`, synced | relaxed | `$set` in the middle, synced | relaxed | log | packs | read `n` | read in the middle |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (id, (name, bytes)) in sizes().into_iter().enumerate() {
        let id = id as i32;
        let document = document(id, bytes);
        let report = database.insert("docs", &[document], true, Durability::Synced);
        assert_eq!(report.expect("inserts").count, 1);
        database.commit("inserted", "bench").expect("commits");
        let middle = format!("sections.{}.title", bytes / 1_070 / 2);
        let increment = |_: usize| update("$inc", "n", Value::Int32(1));
        let set = |word: &'static str| {
            let middle = middle.clone();
            move |turn: usize| {
                update("$set", &middle, Value::String(&format!("title {word} {turn:03}")))
            }
        };
        let synced = cost(frond, database, id, Durability::Synced, &increment);
        let relaxed = cost(frond, database, id, Durability::Relaxed, &increment);
        let set_synced = cost(frond, database, id, Durability::Synced, &set("a"));
        let set_relaxed = cost(frond, database, id, Durability::Relaxed, &set("b"));
        println!(
            "| {name} | {} | {} | {} | {} | {:.1} KB | {:.1} KB | {} | {} |",
            text(synced.nanos),
            text(relaxed.nanos),
            text(set_synced.nanos),
            text(set_relaxed.nanos),
            set_synced.log_bytes as f64 / 1024.0,
            set_synced.pack_bytes as f64 / 1024.0,
            text(read(database, id, "n")),
            text(read_in_the_middle(bytes)),
        );
    }
}

/// A find by `_id` of one field.
fn read(database: &Database, id: i32, field: &str) -> f64 {
    nanos(|_| {
        let mut filter = DocumentBuilder::new();
        filter.append("_id", Value::Int32(id));
        let mut projection = DocumentBuilder::new();
        projection.append(field, Value::Int32(1));
        let request = FindRequest {
            filter: Some(filter.build()),
            projection: Some(projection.build()),
            ..FindRequest::default()
        };
        database.find("docs", &request).expect("a cursor").count()
    })
}

/// One path of pieces.
fn read_in_the_middle(bytes: usize) -> f64 {
    let store = MemoryStore::new();
    let store: &dyn ChunkStore = &*store;
    let document = document(1, bytes);
    let middle = (bytes / 1_070 / 2).to_string();
    match build(store, TreeFormat::new(1), document.view()).expect("stored") {
        Some(large) => nanos(|_| large.get(store, &["sections", &middle, "title"]).expect("whole")),
        None => {
            let path = frond_doc::path::Path::new(&format!("sections.{middle}.title"));
            nanos(|_| path.visit(document.view(), &mut |value| value.is_some()))
        }
    }
}

fn arrays(frond: &Frond, database: &Database) {
    println!("\n| array of | push front | middle | end | pop front | pop end | log at the front |");
    println!("|---|---|---|---|---|---|---|");
    for (id, (name, bytes)) in sizes().into_iter().enumerate().skip(2).take(3) {
        let id = id as i32;
        let half = (bytes / 1_070 / 2) as i32;
        let push = |place: Option<i32>| {
            move |turn: usize| {
                let mut out = DocumentBuilder::new();
                out.begin_document("$push").begin_document("sections").begin_array("$each");
                let mut element = DocumentBuilder::new();
                element.append("title", Value::String(&format!("pushed {turn}")));
                out.push(Value::from(&element.build()));
                out.end();
                if let Some(place) = place {
                    out.append("$position", Value::Int32(place));
                }
                out.end().end();
                out.build()
            }
        };
        let relaxed = Durability::Relaxed;
        let front = cost(frond, database, id, relaxed, &push(Some(0)));
        let columns = [
            front.nanos,
            cost(frond, database, id, relaxed, &push(Some(half))).nanos,
            cost(frond, database, id, relaxed, &push(None)).nanos,
            cost(frond, database, id, relaxed, &|_| update("$pop", "sections", Value::Int32(-1)))
                .nanos,
            cost(frond, database, id, relaxed, &|_| update("$pop", "sections", Value::Int32(1)))
                .nanos,
        ];
        let columns: Vec<String> = columns.iter().map(|nanos| text(*nanos)).collect();
        println!(
            "| {name} | {} | {:.1} KB |",
            columns.join(" | "),
            front.log_bytes as f64 / 1024.0
        );
    }
}

/// Pieces alone, in memory: no limit of the wire.
fn above_the_wire() {
    println!(
        "\n| pieces alone | build | `$set` in the middle | chunks | bytes | read in the middle | read whole |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, bytes) in [("1 MB", 1 << 20), ("16 MB", 16 << 20), ("64 MB", 64 << 20)] {
        let store = MemoryStore::new();
        let store: &dyn ChunkStore = &*store;
        let document = document(1, bytes);
        let start = Instant::now();
        let large = build(store, TreeFormat::new(1), document.view()).expect("stored");
        let large = large.expect("a large document");
        let built = start.elapsed().as_nanos() as f64;
        let middle = (bytes / 1_070 / 2).to_string();
        let path = ["sections", middle.as_str(), "title"];
        let mut element = DocumentBuilder::new();
        element.append("title", Value::String("another title"));
        let element = element.build();
        let element: Vec<Element<'_>> = element.view().elements().collect();
        let change = || {
            let found = large.find(store, &path).expect("whole");
            let position = found.item.as_ref().expect("it is there").0;
            large.splice(store, &found, position, 1, &element).expect("whole")
        };
        let before = store.counters();
        change();
        let after = store.counters();
        let set = nanos(|_| change());
        let start = Instant::now();
        assert_eq!(large.read(store).expect("whole").as_bytes(), document.as_bytes());
        let whole = start.elapsed().as_nanos() as f64;
        println!(
            "| {name} | {} | {} | {} | {:.1} KB | {} | {} |",
            text(built),
            text(set),
            after.chunks_written - before.chunks_written,
            (after.bytes_put - before.bytes_put) as f64 / 1024.0,
            text(nanos(|_| large.get(store, &path).expect("whole"))),
            text(whole),
        );
    }
}

/// Document k holds all earlier ones as values, and `level`: each is twice as long as the one before.
fn von_neumann() {
    println!(
        "\n| Von Neumann documents | their BSON | in packs | copy with `level` changed: time | in packs |"
    );
    println!("|---|---|---|---|---|");
    let mut documents: Vec<DocumentBuf> = Vec::new();
    for level in 0..18 {
        let mut out = DocumentBuilder::new();
        out.append("level", Value::Int32(level));
        out.append("text", Value::String(&format!("the text of level {level} ").repeat(3)));
        for (position, earlier) in documents.iter().enumerate() {
            out.append(&format!("set_{position}"), Value::from(earlier));
        }
        documents.push(out.build());
    }
    let store = MemoryStore::new();
    let store: &dyn ChunkStore = &*store;
    let format = TreeFormat::new(1);
    let (mut bytes, mut count) = (0, 0);
    let mut large = Vec::new();
    for document in &documents {
        if let Some(built) = build(store, format, document.view()).expect("stored") {
            bytes += document.as_bytes().len();
            count += 1;
            large.push(built);
        }
    }
    let stored = store.counters().bytes_put;
    let mut level = DocumentBuilder::new();
    level.append("level", Value::Int32(-1));
    let level = level.build();
    let level: Vec<Element<'_>> = level.view().elements().collect();
    let start = Instant::now();
    for large in &large {
        let found = large.find(store, &["level"]).expect("whole");
        large.splice(store, &found, 0, 1, &level).expect("whole");
    }
    let copied = start.elapsed().as_nanos() as f64;
    println!(
        "| {count} above 32 KB | {:.1} MB | {:.0} KB | {} | {:.0} KB |",
        bytes as f64 / 1048576.0,
        stored as f64 / 1024.0,
        text(copied),
        (store.counters().bytes_put - stored) as f64 / 1024.0,
    );
}
