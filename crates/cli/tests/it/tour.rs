//! Goal: the tour, which is the first thing that a user sees, succeeds and tells the truth. Method:
//! run it into a directory, look at what it printed, then use the database that it left.

use crate::{Directory, frond};

#[test]
fn the_tour_ends_well_and_leaves_a_database() {
    let directory = Directory::new();
    let begun = std::time::Instant::now();
    let out = frond(&directory, "tour --keep world").ok();
    let elapsed = begun.elapsed();
    // It takes a second; a machine that does much else is given as much as a person would wait.
    assert!(elapsed.as_secs() < 120, "{elapsed:?}");
    for part in [
        "Import 202 countries",
        "3 documents were read",
        "Côte d’Ivoire (from main), population 29,988,000 (from census)",
        "ok: 0, conflicts: 1",
        "theirs  83600000",
        "Germany's population is 83,600,000",
        "Germany's population was 84,500,000",
        "frond serve --data world",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!out.contains('\x1b'), "no colours where the output is no terminal");
    let widest = out.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 80, "{widest} columns: {out}");

    let log = frond(&directory, "log world --data world --oneline").ok();
    assert_eq!(log.lines().count(), 7, "{log}");
    let export = frond(&directory, "export -d world@main~4 -c countries --data world").ok();
    assert_eq!(export.lines().count(), 202);
    assert!(export.contains("Ivory Coast"));
    let error = frond(&directory, "tour --keep world").fails(1);
    assert!(error.contains("not empty"), "{error}");
}
