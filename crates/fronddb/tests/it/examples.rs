//! Runs every example, as a stranger would: each asserts what it shows. One that is forgotten here
//! fails, and so does a README whose code isn't the tour's.

use std::collections::BTreeSet;
use std::path::Path;

#[path = "../../examples/aggregate.rs"]
mod aggregate;
#[path = "../../examples/branch.rs"]
mod branch;
#[path = "../../examples/clone_and_push.rs"]
mod clone_and_push;
#[path = "../../examples/commit.rs"]
mod commit;
#[path = "../../examples/diff.rs"]
mod diff;
#[path = "../../examples/find.rs"]
mod find;
#[path = "../../examples/history.rs"]
mod history;
#[path = "../../examples/index.rs"]
mod index;
#[path = "../../examples/insert.rs"]
mod insert;
#[expect(dead_code, reason = "its `main` takes names from the command line")]
#[path = "../../examples/load.rs"]
mod load;
#[path = "../../examples/merge.rs"]
mod merge;
#[path = "../../examples/open.rs"]
mod open;
#[expect(dead_code, reason = "its `main` takes the size from the command line")]
#[path = "../../examples/stream.rs"]
mod stream;
#[path = "../../examples/tour.rs"]
mod tour;
#[path = "../../examples/transaction.rs"]
mod transaction;
#[path = "../../examples/update.rs"]
mod update;

type Run = fn() -> fronddb::Result<()>;

const EXAMPLES: &[(&str, Run)] = &[
    ("aggregate", aggregate::main),
    ("branch", branch::main),
    ("clone_and_push", clone_and_push::main),
    ("commit", commit::main),
    ("diff", diff::main),
    ("find", find::main),
    ("history", history::main),
    ("index", index::main),
    ("insert", insert::main),
    ("load", load_and_compare),
    ("merge", merge::main),
    ("open", open::main),
    ("stream", || stream::run(8)),
    ("tour", tour::main),
    ("transaction", transaction::main),
    ("update", update::main),
];

/// Documents come out as they went in.
fn load_and_compare() -> fronddb::Result<()> {
    let data = tempfile::tempdir()?;
    let document = |id: i32| fronddb::doc! { "_id": id, "text": "x".repeat(40_000) };
    let given = (0..3).map(|id| document(id).to_vec().expect("a document"));
    let given: Vec<u8> = given.flatten().collect();
    let mut out = Vec::new();
    load::run(data.path(), ("shop", "scans"), &given[..], &mut out)?;
    assert!(out == given);
    Ok(())
}

#[test]
fn every_example_runs() {
    for (name, run) in EXAMPLES {
        run().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let files = std::fs::read_dir(directory).expect("the directory of the examples");
    let files = files.map(|file| file.expect("an entry").path());
    let files: BTreeSet<String> = files
        .map(|file| file.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    let run: BTreeSet<String> = EXAMPLES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(files, run);
}

/// The code of the README is what the tour runs, but for the directory and the indentation.
#[test]
fn the_readme_shows_the_tour() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("the README");
    let mut blocks = readme.split("```rust\n").skip(1);
    let block = blocks.next().and_then(|rest| rest.split("```").next()).expect("code of Rust");
    assert!(blocks.next().is_none(), "who runs the second one?");
    let code = block.replace("\"data\"", "&data");
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let tour = lines(include_str!("../../examples/tour.rs"));
    let mut left = tour.iter();
    for line in lines(&code) {
        assert!(left.any(|ran| *ran == line), "not in the tour, or not in this order: {line}");
    }
}
