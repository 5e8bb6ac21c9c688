//! One field of documents of all sizes, in turns: whatever else the machine does hits all sizes
//! alike.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use frond_db::{Database, Durability, FrondOptions, UpdateStatement};
use frond_doc::{DocumentBuilder, Value};

use crate::large;
use crate::measure::text;

const SIZES: [(&str, usize); 6] = [
    ("10 KB", 10 << 10),
    ("50 KB", 50 << 10),
    ("1 MB", 1 << 20),
    ("15 MB", 15 << 20),
    ("64 MB", 64 << 20),
    ("1 GB", 1 << 30),
];
/// Rounds where the arguments give no number, and updates of each size and kind in each.
const ROUNDS: usize = 400;
const TURNS: usize = 10;
/// The bytes that are written to a file of their own beside the updates, and synced.
const BARE_BYTES: usize = 10 << 10;

/// Prints the table; `names` are the sizes that are wanted, all if there are none, `rounds=N`, and
/// `relaxed` or `synced` if only such updates are to be made: for a profile.
pub fn run(names: &[String]) {
    let (rounds, names): (Vec<&String>, Vec<&String>) =
        names.iter().partition(|name| name.starts_with("rounds="));
    let (only, names): (Vec<&String>, Vec<&String>) =
        names.into_iter().partition(|name| matches!(&***name, "relaxed" | "synced"));
    let turns = |kind: &str| if only.iter().all(|only| *only == kind) { TURNS } else { 0 };
    let (synced_turns, relaxed_turns) = (turns("synced"), turns("relaxed"));
    let rounds = rounds.first().and_then(|rounds| rounds.split_once('=')?.1.parse().ok());
    let rounds = rounds.unwrap_or(ROUNDS);
    let directory = std::env::temp_dir().join(format!("frond-bench-flat-{}", std::process::id()));
    let frond = frond_vcs::open(&directory, FrondOptions::default()).expect("a data directory");
    let database = frond.database("bench").expect("a name");
    let is_wanted =
        |name: &str| names.is_empty() || names.iter().any(|it| **it == name.replace(' ', ""));
    let sizes: Vec<_> = SIZES.into_iter().filter(|(name, _)| is_wanted(name)).collect();
    for (id, (_, bytes)) in (0..).zip(&sizes) {
        large::insert(&database, id, *bytes);
    }
    frond.engine().checkpoint().expect("folds");
    let bare = File::create(directory.join("bare")).expect("a file");
    bare.write_all_at(&vec![0; BARE_BYTES * rounds * TURNS], 0).expect("written");
    bare.sync_all().expect("synced");

    let mut synced: Vec<Vec<f64>> = vec![Vec::new(); sizes.len()];
    let mut relaxed = synced.clone();
    let mut alone = Vec::new();
    for round in 0..rounds {
        for turn in 0..synced_turns {
            let offset = ((round * TURNS + turn) * BARE_BYTES) as u64;
            let begun = Instant::now();
            bare.write_all_at(&vec![turn as u8; BARE_BYTES], offset).expect("written");
            bare.sync_data().expect("synced");
            alone.push(begun.elapsed().as_nanos() as f64);
        }
        for (position, (_, bytes)) in sizes.iter().enumerate() {
            for turn in 0..synced_turns {
                let number = round * TURNS + turn;
                let id = position as i32;
                synced[position].push(set(&database, id, *bytes, number, Durability::Synced));
            }
            for turn in 0..relaxed_turns {
                let (number, id) = (100_000 + round * TURNS + turn, position as i32);
                relaxed[position].push(set(&database, id, *bytes, number, Durability::Relaxed));
            }
        }
    }
    println!("\n| `$set` in the middle of | synced | relaxed |");
    println!("|---|---|---|");
    for (position, (name, _)) in sizes.iter().enumerate() {
        let columns = [&mut synced[position], &mut relaxed[position]].map(|times| median(times));
        println!("| {name} | {} | {} |", text(columns[0]), text(columns[1]));
    }
    println!("| (10 KB to a file) | {} | |", text(median(&mut alone)));
    drop((database, frond));
    std::fs::remove_dir_all(&directory).expect("its own directory");
}

/// Nanoseconds of one update.
fn set(database: &Database, id: i32, bytes: usize, number: usize, durability: Durability) -> f64 {
    let middle = large::section_count(bytes) / 2;
    let mut filter = DocumentBuilder::new();
    filter.append("_id", Value::Int32(id));
    let mut update = DocumentBuilder::new();
    let title = format!("title {number:07}");
    update.begin_document("$set");
    update.append(&format!("sections.{middle}.title"), Value::String(&title)).end();
    let statement = UpdateStatement::new(filter.build(), update.build());
    let begun = Instant::now();
    let report = database.update("docs", &[statement], true, durability).expect("updates");
    let nanos = begun.elapsed().as_nanos() as f64;
    assert_eq!(report.modified, 1);
    nanos
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}
