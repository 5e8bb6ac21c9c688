//! Pipelines that copy large documents into another collection, by what stands before `$out` or
//! `$merge`.

use std::time::Instant;

use frond_db::{AggregateRequest, FrondOptions};
use frond_doc::{DocumentBuilder, Value, ValueBuf, extended_json};

use crate::large;
use crate::measure::text;

const COUNT: i32 = 30;
const BYTES: usize = 4 << 20;

/// Prints the table.
pub fn run() {
    let directory = std::env::temp_dir().join(format!("frond-bench-copy-{}", std::process::id()));
    let frond = frond_vcs::open(&directory, FrondOptions::default()).expect("a data directory");
    let database = frond.database("bench").expect("a name");
    (0..COUNT).for_each(|id| large::insert(&database, id, BYTES));
    frond.engine().checkpoint().expect("folds");
    println!("\n| {COUNT} documents of 4 MB, copied by | took | put into the store |");
    println!("|---|---|---|");
    for pipeline in [
        "[{$out: copies}]",
        "[{$match: {n: 0}}, {$out: copies}]",
        "[{$sort: {_id: -1}}, {$limit: 20}, {$out: copies}]",
        "[{$sort: {n: 1, _id: -1}}, {$skip: 5}, {$out: copies}]",
        "[{$match: {_id: {$gte: 0}}}, {$set: {n: 1}}, {$out: copies}]",
        "[{$merge: {into: merged}}]",
        "[{$merge: {into: merged, whenMatched: replace}}]",
    ] {
        let (_, before) = frond.counters();
        let begun = Instant::now();
        let request = AggregateRequest {
            pipeline: stages(pipeline),
            collation: None,
            variables: None,
            hint: None,
            in_memory_only: false,
            interrupt: Default::default(),
        };
        let rows = database.aggregate(Some("docs"), &request).expect("a cursor");
        assert_eq!(rows.count(), 0);
        let took = begun.elapsed().as_nanos() as f64;
        let (_, after) = frond.counters();
        let put = (after.bytes_put - before.bytes_put) as f64 / 1048576.0;
        println!("| `{pipeline}` | {} | {put:.2} MB |", text(took));
    }
    drop((database, frond));
    std::fs::remove_dir_all(&directory).expect("its own directory");
}

/// Names without quotes are taken, too.
fn stages(pipeline: &str) -> ValueBuf {
    let mut quoted = String::new();
    let mut is_in_name = false;
    for letter in pipeline.chars() {
        let is_name = letter.is_alphabetic() || letter == '$' || letter == '_';
        if is_name != is_in_name {
            quoted.push('"');
            is_in_name = is_name;
        }
        quoted.push(letter);
    }
    let holder = extended_json::parse(&format!("{{\"stages\": {quoted}}}")).expect("JSON");
    let mut out = DocumentBuilder::new();
    out.append("", holder.get("stages").unwrap_or(Value::Null));
    ValueBuf::from_only_field(out.build())
}
