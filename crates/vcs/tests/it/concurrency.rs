//! Commits, merges and writes at once, from threads: nothing is lost, nothing is seen by half.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use frond_db::Frond;
use frond_doc::document;
use frond_query::Code;
use frond_vcs::MergeOutcome;
use frond_vcs::Repository;

use super::{all, find, index, insert, merge, new, put, shop};

fn ids(database: &Repository, collection: &str) -> BTreeSet<i64> {
    let id = |document: frond_doc::DocumentBuf| document.get("_id").and_then(|id| id.as_integer());
    all(database, collection).into_iter().map(|document| id(document).expect("a number")).collect()
}

/// Each insert brings two documents in one transaction: a commit has both or none. A commit has
/// all that its parent has, and the branch all that was acknowledged.
#[test]
fn writers_go_on_while_a_branch_is_committed() {
    const INSERTS: i64 = 150;
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": -1_i64, "a": -1_i64 }]);
    index(&main, "things", document! { "a": 1_i32 }, false);
    let is_done = AtomicBool::new(false);
    let commits = thread::scope(|scope| {
        let writers: Vec<_> = (0..2_i64)
            .map(|writer| {
                let main = &main;
                scope.spawn(move || {
                    for number in 0..INSERTS {
                        let id = (writer * INSERTS + number) * 2;
                        let half = |id: i64| document! { "_id": id, "a": id / 2 };
                        insert(main, "things", &[half(id), half(id + 1)]);
                    }
                })
            })
            .collect();
        let committer = scope.spawn(|| {
            let mut count = 0;
            while !is_done.load(Ordering::SeqCst) {
                match main.commit("while others write", "") {
                    Ok(_) => count += 1,
                    Err(error) => assert_eq!(error.code, Code::BadValue, "{error}"),
                }
            }
            count
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_done.store(true, Ordering::SeqCst);
        committer.join().unwrap()
    });
    let log = main.log(None, None).unwrap();
    assert_eq!(log.len(), commits);
    assert_eq!(ids(&main, "things").len() as i64, INSERTS * 4 + 1);
    let mut later = ids(&main, "things");
    for commit in log {
        let version = shop(&frond, &commit.id.to_string());
        let found = ids(&version, "things");
        assert!(found.is_subset(&later));
        assert!(found.iter().all(|id| *id < 0 || found.contains(&(id ^ 1))), "half an insert");
        for id in found.iter().filter(|id| **id >= 0).take(20) {
            let filter = Some(document! { "a": id / 2 });
            assert_eq!(find(&version, "things", filter, Some("a_1")).len(), 2);
        }
        later = found;
    }
}

/// Every commit that was acknowledged is in the history of the branch, by one line of parents.
#[test]
fn commits_of_one_branch_do_not_lose_one_another() {
    const COMMITS: i32 = 25;
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "start", &[document! { "_id": 1_i32 }]);
    main.commit("start", "").unwrap();
    let acknowledged: Vec<BTreeSet<String>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..3_i32)
            .map(|thread| {
                let main = &main;
                scope.spawn(move || {
                    let mut made = BTreeSet::new();
                    for number in 0..COMMITS {
                        let collection = format!("c{thread}");
                        insert(main, &collection, &[document! { "_id": number }]);
                        match main.commit(&format!("{thread} {number}"), "") {
                            Ok(commit) => _ = made.insert(commit.id.to_string()),
                            // Another thread's commit took the insert with it.
                            Err(error) => assert_eq!(error.code, Code::BadValue, "{error}"),
                        }
                    }
                    made
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let log = main.log(None, None).unwrap();
    let known: BTreeSet<String> = log.iter().map(|commit| commit.id.to_string()).collect();
    assert!(acknowledged.iter().all(|made| made.is_subset(&known)));
    assert_eq!(acknowledged.iter().map(BTreeSet::len).sum::<usize>() + 1, log.len());
    assert!(log.iter().rev().skip(1).all(|commit| commit.parents.len() == 1));
    assert!(main.status().unwrap().collections.is_empty());
    for thread in 0..3 {
        assert_eq!(ids(&main, &format!("c{thread}")).len() as i32, COMMITS);
    }
}

/// One writer a branch commits what it writes; a third thread merges. At the end all is there.
#[test]
fn merges_and_writes_lose_nothing() {
    const WRITES: i32 = 60;
    let frond = new();
    let main = shop(&frond, "");
    let documents: Vec<_> = (0..200_i32).map(|id| document! { "_id": id, "a": 0_i32 }).collect();
    insert(&main, "things", &documents);
    index(&main, "things", document! { "a": 1_i32 }, false);
    main.commit("start", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    let is_done = AtomicBool::new(false);
    let merged = thread::scope(|scope| {
        let write = |database: &Repository, first: i32| {
            for number in 0..WRITES {
                let id = first + number;
                put(database, "things", &document! { "_id": id, "a": 1_i32 }).unwrap();
                let _ = database.commit("a write", ""); // A merge may have come between.
            }
        };
        let (ours, theirs) = (&main, &side);
        let writers =
            [scope.spawn(move || write(ours, 0)), scope.spawn(move || write(theirs, 100))];
        let merger = scope.spawn(|| {
            let mut merged = 0;
            while !is_done.load(Ordering::SeqCst) {
                match merge(&main, "side") {
                    Ok(MergeOutcome::Conflicts { counts }) => panic!("{counts:?}"),
                    Ok(MergeOutcome::UpToDate { .. }) => {}
                    Ok(_) => merged += 1,
                    Err(error) => assert_eq!(error.code, Code::IllegalOperation, "{error}"),
                }
                thread::yield_now();
            }
            merged
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_done.store(true, Ordering::SeqCst);
        merger.join().unwrap()
    });
    for branch in [&main, &side] {
        let _ = branch.commit("the rest", "");
    }
    merge(&main, "side").unwrap();
    let changed = find(&main, "things", Some(document! { "a": 1_i32 }), Some("a_1"));
    assert_eq!(changed.len() as i32, 2 * WRITES, "after {merged} merges");
    assert_eq!(all(&main, "things").len(), 200);
    assert!(main.status().unwrap().collections.is_empty());
}

/// A hard reset replaces trees that a client writes all the time: it comes through.
#[test]
fn a_hard_reset_is_not_kept_waiting_for_ever() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 0_i32 }]);
    main.commit("start", "").unwrap();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for id in 1_i32.. {
                insert(&main, "things", &[document! { "_id": id }]);
                if is_done.load(Ordering::SeqCst) {
                    return id;
                }
            }
            unreachable!("it ends before the numbers do")
        });
        for _ in 0..10 {
            main.reset(None, true).unwrap();
        }
        is_done.store(true, Ordering::SeqCst);
        let written = writer.join().unwrap();
        let left = ids(&main, "things");
        assert!(left.contains(&0) && left.len() as i32 <= written + 1);
        // The rest was written after the last reset, without a gap.
        let later: Vec<i64> = left.into_iter().skip(1).collect();
        assert!(later.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{later:?}");
    });
}

/// A writer that adopts a collection while the branch is fast-forwarded must not bring the old
/// version of the collection back.
#[test]
fn a_first_write_does_not_undo_a_merge() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 1_i32, "a": 0_i32 }]);
    main.commit("start", "").unwrap();
    main.create_branch("next", None).unwrap();
    let next = shop(&frond, "next");
    put(&next, "things", &document! { "_id": 1_i32, "a": 1_i32 }).unwrap();
    next.commit("next", "").unwrap();
    for round in 0..60 {
        race(&frond, &format!("race{round}"));
    }
}

/// The merge comes through, or the write was first and it is refused; what the branch shows fits.
fn race(frond: &Frond, name: &str) {
    shop(frond, "").create_branch(name, None).unwrap();
    let branch = shop(frond, name);
    let barrier = Barrier::new(2);
    let outcome = thread::scope(|scope| {
        let merger = scope.spawn(|| {
            barrier.wait();
            merge(&branch, "next")
        });
        barrier.wait();
        insert(&branch, "things", &[document! { "_id": 2_i32 }]);
        merger.join().unwrap()
    });
    let merged = match outcome {
        Ok(MergeOutcome::FastForward { .. }) => true,
        Err(error) if error.code == Code::IllegalOperation => false,
        other => panic!("{other:?}"),
    };
    let expected = document! { "_id": 1_i32, "a": i32::from(merged) };
    assert_eq!(all(&branch, "things"), [expected, document! { "_id": 2_i32 }]);
    let status = branch.status().unwrap();
    let counts: Vec<_> = status
        .collections
        .iter()
        .map(|found| [found.added, found.removed, found.modified])
        .collect();
    assert_eq!(counts, [[1, 0, 0]]);
}
