//! A sort, a group and a window over far more documents than may be held in memory.
//!
//! Each request runs in a process of its own (this program, called with `one`), whose largest
//! resident size the kernel reports; the limit of [`LIMIT_BYTES`] is for the whole process.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::Failure;
use crate::frond::{Embedded, options};

const LIMIT_BYTES: u64 = 256 << 20;
const CACHE_BYTES: u64 = 32 << 20;
const STAGE_BYTES: usize = 64 << 20;
/// About 1 KB a document.
const NOTE_WORDS: u64 = 116;
const DOCUMENT_BYTES: u64 = 1_000;

const REQUESTS: [(&str, &str); 9] = [
    ("sort", r#"[{"$sort":{"value":1,"_id":1}}]"#),
    (
        "group by 1,000 strings",
        r#"[{"$group":{"_id":"$station","n":{"$sum":1},"total":{"$sum":"$value"}}}]"#,
    ),
    (
        "group by every _id",
        r#"[{"$group":{"_id":"$_id","n":{"$sum":1},"first":{"$first":"$note"}}}]"#,
    ),
    (
        "window by station",
        r#"[{"$setWindowFields":{"partitionBy":"$station","sortBy":{"at":1},"output":{
           "total":{"$sum":"$value","window":{"documents":["unbounded","current"]}}}}}]"#,
    ),
    (
        "window in one partition",
        r#"[{"$setWindowFields":{"sortBy":{"at":1},"output":{
           "total":{"$sum":"$value","window":{"documents":[-10,0]}}}}}]"#,
    ),
    (
        "window by range in one partition",
        r#"[{"$setWindowFields":{"sortBy":{"at":1},"output":{
           "total":{"$sum":"$value","window":{"range":[-10,0],"unit":"minute"}}}}}]"#,
    ),
    (
        "derivative in one partition",
        r#"[{"$setWindowFields":{"sortBy":{"at":1},"output":{
           "slope":{"$derivative":{"input":"$value","unit":"hour"},"window":{"range":[-10,10],"unit":"minute"}}}}}]"#,
    ),
    (
        "linear fill in one partition",
        r#"[{"$setWindowFields":{"sortBy":{"_id":1},"output":{
           "line":{"$linearFill":{"$cond":[{"$gt":["$value",50]},"$value",null]}}}}}]"#,
    ),
    ("facet", r#"[{"$facet":{"count":[{"$count":"n"}],"by":[{"$sortByCount":"$region"}]}}]"#),
];

/// Measures over so many megabytes of documents; all requests, or those whose name holds `CASE`.
pub fn run(arguments: &[&str]) -> Result<(), Failure> {
    let settings = frond_db::FrondOptions {
        stage_memory_bytes_max: Some(STAGE_BYTES),
        ..options(CACHE_BYTES)
    };
    if let ["one", directory, stages] = arguments {
        let frond = Embedded::open(Path::new(directory), settings)?;
        let begin = Instant::now();
        let (count, bytes) = frond.aggregate(stages, true)?;
        let seconds = begin.elapsed().as_secs_f64();
        println!("{count} {bytes} {seconds:.1} {}", peak_bytes()?);
        return Ok(());
    }
    let megabytes: u64 = arguments.first().map_or(Ok(2_048), |megabytes| megabytes.parse())?;
    let wanted = arguments.get(1).copied().unwrap_or("");
    let base = std::env::temp_dir().join(format!("frond-bench-query-{}", std::process::id()));
    fs::create_dir_all(&base)?;
    let done = table(&base, megabytes, wanted, settings);
    fs::remove_dir_all(&base)?;
    done
}

fn table(
    base: &Path,
    megabytes: u64,
    wanted: &str,
    settings: frond_db::FrondOptions,
) -> Result<(), Failure> {
    let count = u32::try_from((megabytes << 20) / DOCUMENT_BYTES)?;
    drop(Embedded::load(base, count, NOTE_WORDS, settings)?);
    println!(
        "{count} documents, {megabytes} MB; cache {CACHE_BYTES}, a stage {STAGE_BYTES} bytes\n"
    );
    println!("| request | documents | seconds | peak MB | within {} MB |", LIMIT_BYTES >> 20);
    println!("|---|---:|---:|---:|---|");
    for (name, stages) in REQUESTS.iter().filter(|(name, _)| name.contains(wanted)) {
        let output = Command::new(std::env::current_exe()?)
            .args(["memory", "one"])
            .arg(base)
            .arg(stages)
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match text.split_whitespace().collect::<Vec<_>>().as_slice() {
            [count, _, seconds, peak] => {
                let peak: u64 = peak.parse()?;
                let fits = if peak <= LIMIT_BYTES { "yes" } else { "no" };
                println!("| {name} | {count} | {seconds} | {} | {fits} |", peak >> 20);
            }
            _ => {
                let error = String::from_utf8_lossy(&output.stderr).into_owned();
                println!("| {name} | | | | failed: {} |", error.trim());
            }
        }
    }
    Ok(())
}

/// The largest resident size of this process so far.
fn peak_bytes() -> Result<u64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).ok_or("no VmHWM")?;
    let kilobytes: u64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(kilobytes << 10)
}
