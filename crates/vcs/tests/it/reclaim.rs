//! States that can't be undone any more are forgotten and collected; everything else stays, and
//! concurrent writers, committers and branchers notice nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use frond_db::{Interrupt, ReclaimOptions};
use frond_doc::document;
use frond_query::Code;
use frond_store::io::Clock;
use frond_testkit::SimClock;
use frond_testkit::machine::machine;
use frond_vcs::Repository;
use frond_vcs::remote::DataRemote;

use super::*;

const THOROUGH: ReclaimOptions =
    ReclaimOptions { thorough: true, bytes_a_second: None, purge: false };
const FOR_EVER: u64 = u64::MAX;

#[test]
fn a_deleted_branch_is_kept_for_a_while_and_then_forgotten() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 1_i32 }]);
    let first = main.commit("one", "Ada").expect("a change").id.to_string();
    main.create_branch("side", None).expect("a good name");
    let side = shop(&frond, "side");
    insert(&side, "things", &[document! { "_id": 2_i32 }]);
    let lost = side.commit("two", "Ada").expect("a change").id.to_string();
    insert(&side, "things", &[document! { "_id": 3_i32 }]);
    let tagged = side.commit("three", "Ada").expect("a change").id.to_string();
    main.create_tag("kept", Some(&lost), None, false).expect("a good name");
    drop(side);
    main.delete_branch("side", true).expect("there is such a branch");
    let read = |id: &str| {
        Repository::open(&frond, &format!("shop@{id}"))
            .map(|database| all(&database, "things").len())
    };

    let reclaimed = frond_vcs::reclaim(&frond, FOR_EVER, THOROUGH).expect("nothing is damaged");
    assert_eq!((reclaimed.commits_forgotten, reclaimed.changes_forgotten), (0, 0));
    assert_eq!(read(&tagged).expect("the reflog has it"), 3);
    let reclaimed = frond_vcs::reclaim(&frond, 0, THOROUGH).expect("nothing is damaged");
    assert_eq!(reclaimed.commits_forgotten, 1);
    assert!(read(&tagged).is_err());
    assert_eq!(read(&lost).expect("a tag names it"), 2);
    assert_eq!(read(&first).expect("main has it"), 1);
    main.delete_tag("kept").expect("there is such a tag");
    assert_eq!(
        frond_vcs::reclaim(&frond, 0, THOROUGH).expect("nothing is damaged").commits_forgotten,
        1
    );
    assert!(read(&lost).is_err());
    assert_eq!(read(&first).expect("main has it"), 1);
    assert_eq!(all(&main, "things").len(), 1);
    frond.engine().check().expect("whole");
}

#[test]
fn a_dropped_database_gives_its_space_back_once_forgotten() {
    let frond = new();
    let main = shop(&frond, "");
    let noise = |n: i32| format!("{:x}", (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let documents: Vec<DocumentBuf> =
        (0..3000_i32).map(|n| document! { "_id": n, "noise": noise(n).as_str() }).collect();
    insert(&main, "things", &documents);
    main.commit("much", "Ada").expect("a change");
    let other = Repository::open(&frond, "other").expect("a good name");
    insert(&other, "things", &documents[..10]);
    main.drop_database().expect("it was there");
    let after = |undo| {
        frond_vcs::reclaim(&frond, undo, THOROUGH)
            .expect("nothing is damaged")
            .collected
            .bytes_after
    };
    assert!(40_000 < after(FOR_EVER), "it can come back");
    // A fold in the background may keep what it just worked on.
    assert!((0..100).any(|_| after(0) < 10_000), "{}", after(0));
    assert_eq!(all(&other, "things").len(), 10);
}

/// Stopped at any of the moments at which it asks, a collection has lost nothing, and the next one
/// comes to its end.
#[test]
fn a_collection_may_be_interrupted() {
    let frond = new();
    let main = shop(&frond, "");
    let mut ends = 0;
    for checks_max in (0..12).map(|power| (1_u64 << power) - 1) {
        let documents: Vec<DocumentBuf> = (0..300_i32)
            .map(|n| document! { "_id": n, "noise": format!("{checks_max} {n}").as_str() })
            .collect();
        insert(&main, "things", &documents);
        insert(&main, "gone", &documents);
        main.commit("much", "Ada").expect("a change");
        main.drop_collection("gone").expect("it was there");
        let checks = AtomicU64::new(0);
        let interrupt = Interrupt::new(move || match checks.fetch_add(1, Ordering::Relaxed) {
            number if number < checks_max => Ok(()),
            _ => Err(Error::invalid(Code::Interrupted, "enough")),
        });
        match frond_vcs::reclaim_until(&frond, 0, THOROUGH, &interrupt) {
            Ok(_) => ends += 1,
            Err(error) => assert_eq!(error.code, Code::Interrupted, "{checks_max}"),
        }
        assert!(ends == 0 || 0 < checks_max, "it asks before anything else");
        frond.engine().check().expect("whole");
        assert_eq!(all(&main, "things").len(), 300, "{checks_max}");
        main.drop_collection("things").expect("it was there");
    }
    assert!((1..11).contains(&ends), "{ends} came to their ends");
    frond_vcs::reclaim(&frond, 0, THOROUGH).expect("nothing is damaged");
}

#[test]
fn commits_and_drops_may_be_interrupted_while_they_fold() {
    let frond = new();
    let main = shop(&frond, "");
    let write = |from: i32| {
        let documents: Vec<DocumentBuf> =
            (from..from + 5_000).map(|n| document! { "_id": n, "noise": "x" }).collect();
        insert(&main, "things", &documents);
    };
    write(0);
    let mut stops = [0_u64; 2];
    for (stopped, is_drop) in stops.iter_mut().zip([false, true]) {
        loop {
            let (checks, checks_max) = (AtomicU64::new(0), *stopped);
            let late = Database::clone(main.database()).interruptible(Interrupt::new(move || {
                match checks.fetch_add(1, Ordering::Relaxed) < checks_max {
                    true => Ok(()),
                    false => Err(Error::invalid(Code::MaxTimeMSExpired, "late")),
                }
            }));
            let late = Repository::from(late);
            let done = match is_drop {
                true => late.drop_collection("things").map(|was_there| assert!(was_there)),
                false => late.commit("late", "Ada").map(|_| ()),
            };
            match done {
                Ok(()) => break,
                Err(error) => assert_eq!(error.code, Code::MaxTimeMSExpired, "{error}"),
            }
            assert_eq!(all(&main, "things").len(), 5_000 * (1 + usize::from(is_drop)));
            let log = main.log(None, None).expect("it can be read");
            assert_eq!(log.len(), usize::from(is_drop));
            *stopped += 1;
        }
        write(5_000);
    }
    assert!(stops.iter().all(|count| (5..40).contains(count)), "{stops:?}");
    frond.engine().check().expect("whole");
}

/// A comparison asks while it folds, and again between the documents that differ.
#[test]
fn comparisons_may_be_interrupted() {
    let frond = new();
    let main = shop(&frond, "");
    let documents: Vec<DocumentBuf> =
        (0..5_000).map(|n| document! { "_id": n, "noise": "x" }).collect();
    for is_diff in [false, true] {
        main.drop_collection("things").expect("no damage");
        insert(&main, "things", &documents);
        let mut stopped = 0_u64;
        loop {
            let (checks, checks_max) = (AtomicU64::new(0), stopped);
            let late = Database::clone(main.database()).interruptible(Interrupt::new(move || {
                match checks.fetch_add(1, Ordering::Relaxed) < checks_max {
                    true => Ok(()),
                    false => Err(Error::invalid(Code::MaxTimeMSExpired, "late")),
                }
            }));
            let late = Repository::from(late);
            let found = match is_diff {
                true => late.diff(None, None).map(|diff| diff[0].added.len() as u64),
                false => late.status().map(|status| status.collections[0].added),
            };
            match found {
                Ok(added) => break assert_eq!(added, 5_000),
                Err(error) => assert_eq!(error.code, Code::MaxTimeMSExpired, "{error}"),
            }
            stopped += 1;
        }
        // At each 64th document that differs; the fold asked, too, until it was done once.
        assert!((79..160).contains(&stopped), "{stopped}");
    }
    frond.engine().check().expect("whole");
}

#[test]
fn undoable_changes_are_listed_with_their_times() {
    const HOUR_MICROS: i64 = 3_600_000_000;
    let clock = SimClock::new();
    let frond = frond_vcs::open_on(&machine(&SimDisk::new(1), &clock, 1), FrondOptions::default());
    let frond = frond.expect("the disk works");
    assert_eq!(
        frond_vcs::undoable(&frond).expect("all can be read"),
        frond_vcs::Undoable::default()
    );
    let began = clock.now_micros() / 1_000;
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 1_i32 }]);
    main.commit("one", "Ada").expect("a change");
    for hour in 1..=3_i32 {
        clock.step(HOUR_MICROS);
        insert(&main, "things", &[document! { "_id": 1 + hour }]);
        main.commit("more", "Ada").expect("a change");
    }
    let kept = frond_vcs::undoable(&frond).expect("all can be read");
    assert_eq!((kept.changes, kept.collections, kept.databases, kept.bytes), (4, 0, 0, 0));
    assert_eq!(kept.times_millis, Some((began, began + 3 * HOUR_MICROS / 1_000)));
    insert(&main, "others", &[document! { "_id": 1_i32, "text": "dropped".repeat(100).as_str() }]);
    main.drop_collection("others").expect("it was there");
    clock.step(HOUR_MICROS);
    main.drop_database().expect("it was there");
    let kept = frond_vcs::undoable(&frond).expect("all can be read");
    assert_eq!((kept.databases, kept.collections), (1, 1));
    assert!(kept.bytes > 0);
    let dropped = began + 4 * HOUR_MICROS / 1_000;
    assert_eq!(kept.times_millis, Some((dropped, dropped)));
}

#[test]
fn fetched_commits_stay_though_no_branch_has_them() {
    let there = new();
    let theirs = shop(&there, "");
    insert(&theirs, "things", &[document! { "_id": 1_i32 }]);
    theirs.commit("one", "Ada").expect("a change");
    theirs.create_branch("side", None).expect("a good name");
    let side = shop(&there, "side");
    insert(&side, "things", &[document! { "_id": 2_i32 }]);
    let fetched = side.commit("two", "Ada").expect("a change").id.to_string();
    let frond = new();
    let main = shop(&frond, "");
    let remote = DataRemote::new(there.clone(), "shop").expect("a database's name");
    main.clone_from("elsewhere", &remote, &mut |_| {}).expect("the clone comes");
    frond_vcs::reclaim(&frond, 0, THOROUGH).expect("nothing is damaged");
    for version in [&fetched, "origin/side"] {
        let found = Repository::open(&frond, &format!("shop@{version}")).expect("it is kept");
        assert_eq!(all(&found, "things").len(), 2);
    }
    main.create_branch("mine", Some("origin/side")).expect("it is there");
}

/// Branches are made at commits that nothing names, written to and deleted while collections that
/// forget everything run.
#[test]
fn forgetting_and_branching_at_once_never_lose_a_commit() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 0_i32 }]);
    main.commit("root", "Ada").expect("a change");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let branchers = ["a", "b"].map(|name| scope.spawn(|| branch_until(&frond, name, &done)));
        let mut forgotten = 0;
        // A brancher that fails ends, and then nothing more is forgotten.
        while forgotten < 10 && branchers.iter().any(|brancher| !brancher.is_finished()) {
            forgotten +=
                frond_vcs::reclaim(&frond, 0, THOROUGH).expect("nothing is lost").commits_forgotten;
        }
        done.store(true, Ordering::SeqCst);
        branchers.into_iter().for_each(|brancher| brancher.join().expect("nothing is lost"));
    });
    frond.engine().check().expect("whole");
    assert_eq!(all(&main, "things").len(), 1);
}

fn branch_until(frond: &Frond, name: &str, done: &AtomicBool) {
    let main = shop(frond, "");
    let again = format!("{name}-again");
    for round in 1_i32.. {
        if done.load(Ordering::SeqCst) {
            return;
        }
        main.create_branch(name, None).expect("a good name");
        let branch = shop(frond, name);
        insert(&branch, "things", &[document! { "_id": round, "of": name }]);
        let commit = branch.commit("more", "Ada").expect("a change").id.to_string();
        main.delete_branch(name, true).expect("it was there");
        // Nothing names the commit now but, perhaps, the reflog: either it is gone, or it is whole.
        if main.create_branch(&again, Some(&commit)).is_ok() {
            let branch = shop(frond, &again);
            assert_eq!(all(&branch, "things").len(), 2);
            assert_eq!(branch.log(None, None).expect("it is whole").len(), 2);
            main.delete_branch(&again, true).expect("it was there");
        }
    }
}
