//! A filter over documents in memory, and end to end over a collection.

use std::time::Instant;

use frond_db::{FindRequest, FrondOptions};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_engine::Durability;
use frond_query::Filter;
use frond_vcs::Repository;

use crate::documents;
use crate::measure::{nanos, text};

/// Prints the tables.
pub fn run() {
    small_documents();
    wide_documents();
}

/// Documents of 1 KB: 16 fields.
fn small(id: i32) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    builder.append("_id", Value::Int32(id));
    for position in 1..=15 {
        let value = format!("value_{position}_{id:04}_padding_to_ensure_reasonable_field_size");
        builder.append(&documents::field_name(position), Value::String(&value));
    }
    builder.append("number", Value::Int32(id % 100));
    builder.build()
}

fn small_documents() {
    let documents: Vec<DocumentBuf> = (0..1000).map(small).collect();
    let bytes = documents[0].as_bytes().len();
    println!("\n| filter on documents of {bytes} bytes, 17 fields | 1000 in turn | 20 in turn |");
    println!("|---|---|---|");
    let mut first = DocumentBuilder::new();
    first.append("field_001", Value::String("x"));
    let mut last = DocumentBuilder::new();
    last.append("number", Value::Int32(5));
    let mut range = DocumentBuilder::new();
    range.begin_document("number");
    range.append("$gte", Value::Int32(5)).append("$lt", Value::Int32(7)).end();
    let mut four = DocumentBuilder::new();
    four.begin_document("field_012").append("$ne", Value::String("x")).end();
    four.begin_document("field_008").append("$ne", Value::String("x")).end();
    four.begin_document("field_015").append("$exists", Value::Boolean(true)).end();
    four.append("number", Value::Int32(5));
    // A turn passes over all of them, as a scan does, and over a few that the first cache holds.
    let few = &documents[..20];
    let each = |documents: &[DocumentBuf], is_matched: &dyn Fn(Document<'_>) -> bool| {
        let count = |_| documents.iter().filter(|document| is_matched(document.view())).count();
        nanos(count) / documents.len() as f64
    };
    let row = |name: &str, is_matched: &dyn Fn(Document<'_>) -> bool| {
        let (all, few) = (each(&documents, is_matched), each(few, is_matched));
        println!("| {name} | {} | {} |", text(all), text(few));
    };
    row("(the harness alone)", &|document| document.as_bytes().len() == 1);
    row("(a walk over all elements)", &|document| document.elements().count() == 1);
    for (name, filter) in [
        ("first field", first),
        ("last field", last),
        ("range on the last field", range),
        ("four fields, out of order", four),
    ] {
        let filter = Filter::parse(filter.build().view()).expect("a filter");
        row(name, &|document| filter.matches(document));
    }
}

/// `{field_900: x}` over 1,000-field documents that were committed, and one got by `_id`.
fn wide_documents() {
    const COUNT: i32 = 300;
    let directory = std::env::temp_dir().join(format!("frond-bench-doc-{}", std::process::id()));
    let frond = frond_vcs::open(&directory, FrondOptions::default()).expect("a data directory");
    let database = Repository::open(&frond, "bench").expect("a name");
    let documents: Vec<DocumentBuf> = (0..COUNT).map(|id| documents::flat(id, 1000)).collect();
    for batch in documents.chunks(50) {
        database.insert("wide", batch, true, Durability::Relaxed).expect("inserts");
    }
    println!("\n| 1,000-field documents, end to end | a document |");
    println!("|---|---|");
    let scan = |label: &str| {
        for (field, value) in [("field_900", "x"), ("field_010", "x"), ("absent", "x")] {
            let mut filter = DocumentBuilder::new();
            filter.append(field, Value::String(value));
            let filter = filter.build();
            let start = Instant::now();
            let turns = 20;
            for _ in 0..turns {
                let count = database.count("wide", &FindRequest::of(filter.view()));
                assert_eq!(count.expect("counts"), 0);
            }
            let nanos = start.elapsed().as_nanos() as f64 / f64::from(turns * COUNT);
            println!("| {label}, `{{{field}: x}}` | {} |", text(nanos));
        }
        let by_id = nanos(|turn| {
            let mut filter = DocumentBuilder::new();
            filter.append("_id", Value::Int32(turn as i32 % COUNT));
            filter.append("field_900", Value::String("x"));
            let request = FindRequest { filter: Some(filter.build()), ..FindRequest::default() };
            database.find("wide", &request).expect("a cursor").count()
        });
        println!("| {label}, `{{_id: n, field_900: x}}` | {} |", text(by_id));
    };
    scan("not folded");
    database.commit("wide documents", "bench").expect("commits");
    scan("committed");
    drop(frond);
    std::fs::remove_dir_all(&directory).expect("its own directory");
}
