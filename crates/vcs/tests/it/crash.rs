//! A power cut at each write and sync of a script: what a restart finds is what was acknowledged,
//! or that and the step under way; never a step by half.

use frond_db::{Durability, Error, Frond, FrondOptions};
use frond_doc::{DocumentBuf, document};
use frond_testkit::SimDisk;
use frond_vcs::Repository;
use frond_vcs::{MergeOutcome, Resolution};

use super::{all, merge, open, shop};

const STEPS: usize = 15;

fn thing(id: i32, a: i32) -> DocumentBuf {
    document! { "_id": id, "a": a }
}

/// Replaces the things of a branch, one transaction a document.
fn write(frond: &Frond, branch: &str, documents: &[DocumentBuf]) -> Result<(), Error> {
    let database = Repository::open(frond, branch)?;
    for document in documents {
        super::put(&database, "things", document)?;
    }
    // The last one is acknowledged only once it is durable, and so all before it.
    database.insert("marks", &[document! {}], true, Durability::Synced).map(|_| ())
}

fn step(frond: &Frond, number: usize) -> Result<(), Error> {
    let main = Repository::open(frond, "shop")?;
    match number {
        0 => write(frond, "shop", &[thing(1, 0), thing(2, 0), thing(3, 0)]),
        1 => main.commit("first", "").map(|_| ()),
        2 => main.create_branch("side", None).map(|_| ()),
        3 => write(frond, "shop@side", &[thing(1, 5), thing(2, 5)]),
        4 => Repository::open(frond, "shop@side")?.commit("side", "").map(|_| ()),
        5 => write(frond, "shop", &[thing(1, 6)]),
        6 => main.commit("main", "").map(|_| ()),
        7 => merge(&main, "side").map(|outcome| {
            assert!(matches!(outcome, MergeOutcome::Conflicts { .. }), "{outcome:?}");
        }),
        8 => {
            let conflicts = main.conflicts(None)?;
            main.resolve_conflict(&conflicts[0].id, &Resolution::Theirs).map(|_| ())
        }
        9 => main.merge_continue(None, None).map(|_| ()),
        10 => merge(&Repository::open(frond, "shop@side")?, "main").map(|_| ()),
        11 => main.reset(Some("HEAD~1"), true).map(|_| ()),
        12 => main.reset(Some("side"), false).map(|_| ()),
        13 => main.delete_branch("side", true),
        _ => main.commit("last", "").map(|_| ()),
    }
}

/// Everything that a client can see. Things with random ids are counted.
fn digest(frond: &Frond) -> Result<String, Error> {
    let mut digest = String::new();
    for branch in Repository::open(frond, "shop")?.list_branches()? {
        let database = shop(frond, &branch.name);
        let messages: Vec<String> =
            database.log(None, None)?.into_iter().map(|commit| commit.message).collect();
        let status = database.status()?;
        digest += &format!(
            "{} {messages:?} {:?} {} {:?} {} {:?}\n",
            branch.name,
            all(&database, "things"),
            all(&database, "marks").len(),
            status.collections.iter().map(|found| &found.collection).collect::<Vec<_>>(),
            status.merging.is_some(),
            status.conflicts,
        );
        for conflict in database.conflicts(None)? {
            digest += &format!("{} {:?} {:?}\n", conflict.id, conflict.paths, conflict.theirs);
        }
    }
    Ok(digest)
}

/// Returns the states before the first step and after each. The transactions within a step that
/// writes documents are steps of their own only there, so those steps may be seen in part.
fn clean_run() -> (Vec<String>, u64) {
    let disk = SimDisk::new(7);
    let frond = open(&disk);
    let mut digests = vec![digest(&frond).unwrap()];
    let begun = disk.operations();
    for number in 0..STEPS {
        step(&frond, number).unwrap();
        digests.push(digest(&frond).unwrap());
    }
    (digests, disk.operations() - begun)
}

fn is_several_transactions(number: usize) -> bool {
    [0, 3, 5].contains(&number)
}

#[test]
fn a_power_cut_at_any_moment() {
    let (digests, operations) = clean_run();
    assert!(
        digests.windows(2).all(|pair| pair[0] != pair[1]),
        "each step can be seen: {digests:?}"
    );
    for operation in 0..operations {
        let disk = SimDisk::new(7);
        let frond = open(&disk);
        disk.crash_after(operation);
        let done = (0..STEPS).take_while(|number| step(&frond, *number).is_ok()).count();
        drop(frond);
        let disk = disk.crash();
        let frond = frond_vcs::open_on(&disk.machine(), FrondOptions::default()).expect("recovers");
        frond.engine().check().expect("nothing is damaged");
        let found = digest(&frond).unwrap();
        let in_part = done < STEPS && is_several_transactions(done);
        let expected = &digests[done..(done + 2).min(digests.len())];
        assert!(in_part || expected.contains(&found), "after {done}: {found}\n{expected:?}");
        // It works on from there.
        let main = shop(&frond, "");
        super::put(&main, "after", &thing(1, 1)).unwrap();
        if main.status().unwrap().merging.is_some() {
            main.merge_abort().unwrap();
        }
        main.commit("after", "").unwrap();
        assert!(main.status().unwrap().collections.is_empty());
    }
}

#[test]
fn data_dropped_by_a_reset_survives_a_power_cut() {
    for seed in frond_testkit::random::seeds(10) {
        let disk = SimDisk::new(seed);
        let frond = open(&disk);
        write(&frond, "shop", &[thing(1, 0)]).unwrap();
        let main = shop(&frond, "");
        main.commit("first", "").unwrap();
        // The reset drops a tree and makes none.
        main.insert("others", &[thing(1, 0)], true, Durability::Synced).unwrap();
        main.reset(None, true).unwrap();
        let frond = open(&disk.crash());
        let main = shop(&frond, "");
        assert_eq!(all(&main, "others"), []);
        main.undo(None, None).unwrap();
        assert_eq!(all(&main, "others"), [thing(1, 0)]);
    }
}

#[test]
fn a_restart_finds_a_waiting_merge() {
    let disk = SimDisk::new(8);
    let frond = open(&disk);
    for number in 0..8 {
        step(&frond, number).unwrap();
    }
    let before = digest(&frond).unwrap();
    frond.close().unwrap();
    drop(frond);
    let frond = open(&disk);
    assert_eq!(digest(&frond).unwrap(), before);
    let main = shop(&frond, "");
    let conflict = &main.conflicts(Some("things")).unwrap()[0];
    main.resolve_conflict(&conflict.id, &Resolution::Value(None)).unwrap();
    main.merge_continue(None, None).unwrap();
    assert_eq!(all(&main, "things"), [thing(2, 5), thing(3, 0)]);
}
