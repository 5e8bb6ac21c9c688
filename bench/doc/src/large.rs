//! Large documents: pieces by themselves, a gigabyte as a stream, and Von Neumann documents.

use std::io::{self, Write};
use std::time::Instant;

use frond_db::{AggregateRequest, Durability, FindRequest, Frond, FrondOptions, UpdateStatement};
use frond_doc::extended_json::Form;
use frond_doc::pieces::{Element, JsonWriter, PiecesError, Writer, build};
use frond_doc::{DocumentBuf, DocumentBuilder, ElementType, Value, ValueBuf};
use frond_store::ChunkStore;
use frond_store::memory::MemoryStore;
use frond_tree::TreeFormat;
use frond_vcs::Repository;

use crate::measure::{nanos, text};

/// About so many bytes a section has.
const SECTION_BYTES: usize = 1_070;

/// Returns how many sections a document of about so many bytes has.
pub fn section_count(bytes: usize) -> usize {
    bytes.div_ceil(SECTION_BYTES)
}

fn section(number: usize) -> DocumentBuf {
    let mut section = DocumentBuilder::new();
    section.append("title", Value::String(&format!("section {number:07}")));
    section.append("body", Value::String(&format!("{number:07} and some words ").repeat(42)));
    section.build()
}

/// Writes `{_id, n, sections: [{title, body}, ...]}`, never whole in memory.
fn fill(writer: &mut Writer<'_>, id: i32, bytes: usize) -> Result<(), PiecesError> {
    let mut first = DocumentBuilder::new();
    first.append("_id", Value::Int32(id)).append("n", Value::Int32(0));
    for element in first.build().view().elements() {
        writer.element(element)?;
    }
    writer.begin(ElementType::Array, b"sections")?;
    for number in 0..section_count(bytes) {
        let (section, name) = (section(number), number.to_string());
        writer.begin(ElementType::Document, name.as_bytes())?;
        for element in section.view().elements() {
            writer.element(element)?;
        }
        writer.end()?;
    }
    writer.end()
}

/// Inserts such a document.
pub fn insert(database: &frond_db::Database, id: i32, bytes: usize) {
    let mut filled = |writer: &mut Writer<'_>| fill(writer, id, bytes);
    database.insert_streamed("docs", &mut filled, Durability::Synced).expect("inserts");
}

/// The same document in memory.
fn document(bytes: usize) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    out.append("_id", Value::Int32(1)).append("n", Value::Int32(0)).begin_array("sections");
    for number in 0..section_count(bytes) {
        out.push(Value::from(&section(number)));
    }
    out.end();
    out.build()
}

/// One path of pieces.
pub fn read_in_the_middle(bytes: usize) -> f64 {
    let store = MemoryStore::new();
    let store: &dyn ChunkStore = &*store;
    let document = document(bytes);
    let middle = (section_count(bytes) / 2).to_string();
    match build(store, TreeFormat::new(1), document.view()).expect("stored") {
        Some(large) => nanos(|_| large.get(store, &["sections", &middle, "title"]).expect("whole")),
        None => {
            let path = frond_doc::path::Path::new(&format!("sections.{middle}.title"));
            nanos(|_| path.visit(document.view(), &mut |value| value.is_some()))
        }
    }
}

/// Pieces alone, in memory.
pub fn pieces() {
    println!(
        "\n| pieces alone | build | `$set` in the middle | chunks | bytes | read in the middle | read whole |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, bytes) in [("1 MB", 1 << 20), ("16 MB", 16 << 20), ("64 MB", 64 << 20)] {
        let store = MemoryStore::new();
        let store: &dyn ChunkStore = &*store;
        let document = document(bytes);
        let start = Instant::now();
        let large = build(store, TreeFormat::new(1), document.view()).expect("stored");
        let large = large.expect("a large document");
        let built = start.elapsed().as_nanos() as f64;
        let middle = (section_count(bytes) / 2).to_string();
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

/// Counts what is written.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The most memory that this process has had, in MB.
fn memory_max() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// A document of a gigabyte in and out through the embedded database: run by itself.
pub fn stream() {
    let directory = std::env::temp_dir().join(format!("frond-bench-doc-{}", std::process::id()));
    let mut options = FrondOptions::default();
    options.engine.cache_bytes = 8 << 20;
    options.engine.index_cache_bytes = 4 << 20;
    let frond = frond_vcs::open(&directory, options).expect("a data directory");
    let database = Repository::open(&frond, "bench").expect("a name");
    println!("\n| 1 GB as a stream | time | MB | most memory so far |");
    println!("|---|---|---|---|");
    let row = |what: &str, start: Instant, bytes: u64| {
        let (seconds, memory) = (start.elapsed().as_secs_f64(), memory_max());
        println!("| {what} | {seconds:.1} s | {} | {memory} MB |", bytes >> 20);
    };
    let start = Instant::now();
    insert(&database, 1, 1 << 30);
    row("in, element by element", start, 1 << 30);
    for (what, form) in [("out, BSON", None), ("out, JSON", Some(Form::Relaxed))] {
        let (start, mut out) = (Instant::now(), Counted(0));
        let mut json = form.map(JsonWriter::new);
        let shown = database.export("docs", None, &mut |stored| match &mut json {
            None => stored.write_bson(&mut out),
            Some(json) => stored.write_json(json, &mut out),
        });
        shown.expect("exports");
        row(what, start, out.0);
    }
    drop((database, frond));
    std::fs::remove_dir_all(&directory).expect("its own directory");
}

/// Document k holds all earlier ones as values, and `level`: each is twice as long as the one
/// before.
fn von_neumann(bytes_min: usize) -> DocumentBuf {
    let mut documents: Vec<DocumentBuf> = Vec::new();
    loop {
        let level = documents.len() as i32;
        let mut out = DocumentBuilder::new();
        out.append("level", Value::Int32(level));
        out.append("text", Value::String(&format!("the text of level {level} ").repeat(3)));
        for (position, earlier) in documents.iter().enumerate() {
            out.append(&format!("set_{position}"), Value::from(earlier));
        }
        let document = out.build();
        if bytes_min <= document.as_bytes().len() {
            return document;
        }
        documents.push(document);
    }
}

/// 512 MB of Von Neumann documents of each size, through the embedded database, on disk. One copy
/// is a branch on which every document's `level` is changed, the other a collection, by `$set` and
/// `$out`.
pub fn von_neumanns() {
    println!(
        "\n| Von Neumann documents | count | inserted | on disk | branch, `level` changed | more on disk | `$set` and `$out` | more on disk | extract `level` | filter | order |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for (name, bytes) in [
        ("64 KB", 64 << 10),
        ("256 KB", 256 << 10),
        ("1 MB", 1 << 20),
        ("4 MB", 4 << 20),
        ("16 MB", 16 << 20),
    ] {
        let base = von_neumann(bytes);
        let count = (512 << 20) / base.as_bytes().len();
        let directory =
            std::env::temp_dir().join(format!("frond-bench-doc-{}", std::process::id()));
        let frond = frond_vcs::open(&directory, FrondOptions::default()).expect("a data directory");
        let database = Repository::open(&frond, "bench").expect("a name");
        let start = Instant::now();
        for id in 0..count {
            let mut document = DocumentBuilder::with_capacity(base.as_bytes().len() + 16);
            document.append("_id", Value::Int32(id as i32));
            for element in base.view().elements() {
                document.append_element(&element);
            }
            let document = [document.build()];
            let report = database.insert("sets", &document, true, Durability::Relaxed);
            assert_eq!(report.expect("inserts").count, 1);
        }
        database.commit("inserted", "bench").expect("commits");
        let inserted = start.elapsed().as_nanos() as f64;
        let on_disk = directory_bytes(&directory);
        let (copied, copied_bytes) = copied(&frond, &database, &directory, count);
        let (out, out_bytes) = copied_out(&database, &directory);
        let (extract, filter, order) = queries(&database);
        println!(
            "| {name} | {count} | {} | {:.2} MB | {} | {:.2} MB | {} | {:.2} MB | {} | {} | {} |",
            text(inserted),
            on_disk as f64 / 1048576.0,
            text(copied),
            copied_bytes as f64 / 1048576.0,
            text(out),
            out_bytes as f64 / 1048576.0,
            text(extract),
            text(filter),
            text(order),
        );
        drop((database, frond));
        std::fs::remove_dir_all(&directory).expect("its own directory");
    }
}

/// Returns how long the copy takes, and how much longer the data directory is.
fn copied(
    frond: &Frond,
    database: &Repository,
    directory: &std::path::Path,
    count: usize,
) -> (f64, u64) {
    let before = directory_bytes(directory);
    let start = Instant::now();
    database.create_branch("copy", None).expect("a branch");
    let copy = Repository::open(frond, "bench@copy").expect("it was just made");
    let mut update = DocumentBuilder::new();
    update.begin_document("$set").append("level", Value::Int32(-1)).end();
    let statement = UpdateStatement {
        multi: true,
        ..UpdateStatement::new(DocumentBuf::empty(), update.build())
    };
    let report = copy.update("sets", &[statement], true, Durability::Synced).expect("updates");
    let nanos = start.elapsed().as_nanos() as f64;
    assert_eq!(report.modified, count as u64);
    copy.commit("copied", "bench").expect("commits");
    (nanos, directory_bytes(directory).saturating_sub(before))
}

/// As [`copied`], into another collection.
fn copied_out(database: &Repository, directory: &std::path::Path) -> (f64, u64) {
    let before = directory_bytes(directory);
    let mut pipeline = DocumentBuilder::new();
    pipeline.begin_array("").push_begin_document().begin_document("$set");
    pipeline.append("level", Value::Int32(-1)).end().end();
    pipeline.push_begin_document().append("$out", Value::String("copies")).end().end();
    let request = AggregateRequest {
        pipeline: ValueBuf::from_only_field(pipeline.build()),
        collation: None,
        variables: None,
        hint: None,
        in_memory_only: false,
        interrupt: Default::default(),
    };
    let start = Instant::now();
    let made = database.aggregate(Some("sets"), &request).expect("copies");
    assert_eq!(made.count(), 0);
    (start.elapsed().as_nanos() as f64, directory_bytes(directory).saturating_sub(before))
}

/// Extract, filter and order by `level`: each the whole collection.
fn queries(database: &Repository) -> (f64, f64, f64) {
    let one = |name: &str, value: i32| {
        let mut out = DocumentBuilder::new();
        out.append(name, Value::Int32(value));
        Some(out.build())
    };
    let timed = |request: FindRequest| {
        nanos(|_| database.find("sets", &request).expect("a cursor").count())
    };
    (
        timed(FindRequest { projection: one("level", 1), ..FindRequest::default() }),
        timed(FindRequest {
            filter: one("level", -5),
            projection: one("level", 1),
            ..FindRequest::default()
        }),
        timed(FindRequest {
            sort: one("level", 1),
            projection: one("level", 1),
            limit: Some(10),
            ..FindRequest::default()
        }),
    )
}

fn directory_bytes(directory: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => directory_bytes(&entry.path()),
            Ok(metadata) => {
                use std::os::unix::fs::MetadataExt;
                metadata.blocks() * 512
            }
            Err(_) => 0,
        })
        .sum()
}
