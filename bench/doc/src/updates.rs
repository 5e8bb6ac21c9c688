//! Updates of documents of all sizes through the embedded database, on disk.

use std::time::Instant;

use frond_db::{Durability, FindRequest, Frond, FrondOptions, UpdateStatement};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_vcs::Repository;

use crate::large;
use crate::measure::{nanos, text};

/// Updates of one kind in a run.
const TURNS: usize = 60;
/// Synced ones: each waits for the disk.
const SYNCED_TURNS: usize = 30;

/// Prints the tables.
pub fn run() {
    let directory = std::env::temp_dir().join(format!("frond-bench-doc-{}", std::process::id()));
    let frond = frond_vcs::open(&directory, FrondOptions::default()).expect("a data directory");
    let database = Repository::open(&frond, "bench").expect("a name");
    some_fields(&frond, &database);
    one_field(&frond, &database);
    arrays(&frond, &database);
    drop((database, frond));
    std::fs::remove_dir_all(&directory).expect("its own directory");
}

/// Prints the table of pushes with `$sort`.
pub fn run_ordered() {
    let directory = std::env::temp_dir().join(format!("frond-bench-push-{}", std::process::id()));
    let frond = frond_vcs::open(&directory, FrondOptions::default()).expect("a data directory");
    let database = Repository::open(&frond, "bench").expect("a name");
    ordered(&frond, &database);
    drop((database, frond));
    std::fs::remove_dir_all(&directory).expect("its own directory");
}

const MEGABYTE: usize = 1 << 20;
const SIZES: [(&str, usize); 8] = [
    ("10 KB", 10 << 10),
    ("50 KB", 50 << 10),
    ("100 KB", 100 << 10),
    ("1 MB", MEGABYTE),
    ("4 MB", 4 * MEGABYTE),
    ("15 MB", 15 * MEGABYTE),
    ("64 MB", 64 * MEGABYTE),
    ("1 GB", 1024 * MEGABYTE),
];

/// The cost of an update of one kind: the median time, bytes in the log, and bytes in packs after
/// all of them were folded.
struct Cost {
    nanos: f64,
    log_bytes: u64,
    pack_bytes: u64,
}

fn cost(
    frond: &Frond,
    database: &Repository,
    id: i32,
    durability: Durability,
    make: &dyn Fn(usize) -> DocumentBuf,
) -> Cost {
    let mut filter = DocumentBuilder::new();
    filter.append("_id", Value::Int32(id));
    let filter = filter.build();
    // Edits that others left behind are folded first.
    let marked = |turn: &str| {
        let mut mark = DocumentBuilder::new();
        mark.append("turn", Value::String(turn));
        database.insert("marks", &[mark.build()], true, Durability::Synced).expect("synced");
        database.commit(turn, "bench").expect("commits");
    };
    marked("before");
    let (engine, store) = frond.counters();
    let turns = if durability == Durability::Synced { SYNCED_TURNS } else { TURNS };
    let mut times: Vec<f64> = (0..turns)
        .map(|turn| {
            let update = make(turn);
            let statement = UpdateStatement::new(filter.clone(), update);
            let start = Instant::now();
            let report = database.update("docs", &[statement], true, durability).expect("updates");
            let nanos = start.elapsed().as_nanos() as f64;
            assert_eq!((report.modified, report.errors.len()), (1, 0));
            nanos
        })
        .collect();
    times.sort_by(f64::total_cmp);
    marked("after");
    let (engine_after, store_after) = frond.counters();
    Cost {
        nanos: times[turns / 2],
        log_bytes: (engine_after.log_bytes - engine.log_bytes) / turns as u64,
        pack_bytes: (store_after.bytes_written - store.bytes_written) / turns as u64,
    }
}

/// Synced, relaxed, and what the relaxed ones wrote: log and packs, folding included.
fn columns(
    frond: &Frond,
    database: &Repository,
    id: i32,
    make: &dyn Fn(usize, &str) -> DocumentBuf,
) -> String {
    let synced = cost(frond, database, id, Durability::Synced, &|turn| make(turn, "synced"));
    let relaxed = cost(frond, database, id, Durability::Relaxed, &|turn| make(turn, "relaxed"));
    format!(
        "{} | {} | {:.1} KB + {:.1} KB",
        text(synced.nanos),
        text(relaxed.nanos),
        relaxed.log_bytes as f64 / 1024.0,
        relaxed.pack_bytes as f64 / 1024.0
    )
}

fn some_fields(frond: &Frond, database: &Repository) {
    println!("\n| fields | synced | relaxed | log + packs an update |");
    println!("|---|---|---|---|");
    for (id, field_count) in [(1_000, 100), (1_001, 500), (1_002, 1_000)] {
        let document = crate::documents::flat(id, field_count);
        let report = database.insert("docs", &[document], true, Durability::Synced);
        assert_eq!(report.expect("inserts").count, 1);
        for changed in [1, 3, 5, 10] {
            let make = |turn: usize, word: &str| {
                let mut out = DocumentBuilder::new();
                out.begin_document("$set");
                for field in 1..=changed {
                    let name =
                        crate::documents::field_name(field * field_count / (changed + 1) + 1);
                    out.append(&name, Value::String(&format!("{word} value {turn} of {field}")));
                }
                out.end();
                out.build()
            };
            let columns = columns(frond, database, id, &make);
            println!("| {changed} of {field_count} | {columns} |");
        }
    }
}

/// `{operator: {path: value}}`.
fn update(operator: &str, path: &str, value: Value<'_>) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    out.begin_document(operator).append(path, value).end();
    out.build()
}

fn one_field(frond: &Frond, database: &Repository) {
    println!(
        "\n| one field of | `$inc n`: synced | relaxed | log + packs | `$set` in the middle: synced | relaxed | log + packs | read `n` | read in the middle |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (id, (name, bytes)) in SIZES.into_iter().enumerate() {
        let id = id as i32;
        large::insert(database, id, bytes);
        let middle = large::section_count(bytes) / 2;
        let path = format!("sections.{middle}.title");
        let increment = |_: usize, _: &str| update("$inc", "n", Value::Int32(1));
        let set = |turn: usize, word: &str| {
            update("$set", &path, Value::String(&format!("title {word} {turn:03}")))
        };
        let increments = columns(frond, database, id, &increment);
        let sets = columns(frond, database, id, &set);
        println!(
            "| {name} | {increments} | {sets} | {} | {} |",
            text(read(database, id, "n")),
            match bytes <= 64 * MEGABYTE {
                true => text(large::read_in_the_middle(bytes)),
                false => "".to_owned(),
            },
        );
    }
}

/// A find by `_id` of one field.
fn read(database: &Repository, id: i32, field: &str) -> f64 {
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

fn arrays(frond: &Frond, database: &Repository) {
    println!(
        "\n| array of | element | push front | middle | end | pull front | middle | end | log + packs at the front |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (id, (name, bytes)) in SIZES.into_iter().enumerate().skip(2).take(3) {
        let id = id as i32;
        let middle = large::section_count(bytes) as i32 / 2;
        for is_object in [false, true] {
            let push = |word: &'static str, place: Option<i32>| {
                move |turn: usize| {
                    let mut out = DocumentBuilder::new();
                    out.begin_document("$push").begin_document("sections").begin_array("$each");
                    let text = format!("pushed {word} {turn}");
                    let mut element = DocumentBuilder::new();
                    element.append("title", Value::String(&text));
                    let element = element.build();
                    out.push(match is_object {
                        true => Value::from(&element),
                        false => Value::String(&text),
                    });
                    out.end();
                    if let Some(place) = place {
                        out.append("$position", Value::Int32(place));
                    }
                    out.end().end();
                    out.build()
                }
            };
            let pull = |word: &'static str| {
                move |turn: usize| {
                    let text = format!("pushed {word} {turn}");
                    let mut element = DocumentBuilder::new();
                    element.append("title", Value::String(&text));
                    let element = element.build();
                    let value =
                        if is_object { Value::from(&element) } else { Value::String(&text) };
                    update("$pull", "sections", value)
                }
            };
            let run = |make: &dyn Fn(usize) -> DocumentBuf| {
                cost(frond, database, id, Durability::Relaxed, make)
            };
            let front = run(&push("front", Some(0)));
            let columns = [
                front.nanos,
                run(&push("middle", Some(middle))).nanos,
                run(&push("end", None)).nanos,
                run(&pull("front")).nanos,
                run(&pull("middle")).nanos,
                run(&pull("end")).nanos,
            ];
            let columns: Vec<String> = columns.iter().map(|nanos| text(*nanos)).collect();
            println!(
                "| {name} | {} | {} | {:.1} KB + {:.1} KB |",
                if is_object { "object" } else { "scalar" },
                columns.join(" | "),
                front.log_bytes as f64 / 1024.0,
                front.pack_bytes as f64 / 1024.0
            );
        }
    }
}

/// Pushes with `$sort` into arrays that are in order; *turned round*: each into one in the opposite
/// order, which is sorted anew.
fn ordered(frond: &Frond, database: &Repository) {
    println!(
        "\n| `$push` with `$sort`, array of | the first | others | log + packs | turned round |"
    );
    println!("|---|---|---|---|---|");
    let push = |turn: usize, direction: i32| {
        let mut out = DocumentBuilder::new();
        out.begin_document("$push").begin_document("sections").begin_array("$each");
        let mut element = DocumentBuilder::new();
        // In among the others, each elsewhere.
        let title = format!("section {:07} pushed", turn * 7919 % 900);
        element.append("title", Value::String(&title));
        out.push(Value::from(&element.build())).end();
        out.begin_document("$sort").append("title", Value::Int32(direction)).end();
        out.end().end();
        out.build()
    };
    for (id, (name, bytes)) in SIZES.into_iter().enumerate().skip(3).take(2) {
        let id = id as i32;
        large::insert(database, id, bytes);
        let mut filter = DocumentBuilder::new();
        filter.append("_id", Value::Int32(id));
        let statement = UpdateStatement::new(filter.build(), push(1000, 1));
        let start = Instant::now();
        database.update("docs", &[statement], true, Durability::Relaxed).expect("updates");
        let first = start.elapsed().as_nanos() as f64;
        let others = cost(frond, database, id, Durability::Relaxed, &|turn| push(turn, 1));
        let turned = |turn| push(turn, [-1, 1][turn % 2]);
        let turned = cost(frond, database, id, Durability::Relaxed, &turned);
        println!(
            "| {name} | {} | {} | {:.1} KB + {:.1} KB | {} |",
            text(first),
            text(others.nanos),
            others.log_bytes as f64 / 1024.0,
            others.pack_bytes as f64 / 1024.0,
            text(turned.nanos),
        );
    }
}
