//! Whatever runs at once with what replaces or removes a whole branch: no record is left behind, no
//! index lacks a document.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use frond_doc::document;
use frond_query::Code;
use frond_vcs::MergeOutcome;
use frond_vcs::Repository;
use frond_vcs::remote::{DataRemote, Remote};

use super::{all, find, index, insert, merge, new, put, shop};

/// Runs both at once.
fn at_once<T: Send>(left: impl FnOnce() -> T + Send, right: impl FnOnce()) -> T {
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        let left = scope.spawn(|| {
            barrier.wait();
            left()
        });
        barrier.wait();
        right();
        left.join().unwrap()
    })
}

/// The index and the collection have the same documents.
fn check_index(database: &Repository, collection: &str, name: &str) {
    let (by_index, documents) =
        (find(database, collection, None, Some(name)), all(database, collection));
    assert_eq!(by_index.len(), documents.len(), "{name}");
}

#[test]
fn a_dropped_database_leaves_nothing_to_the_next_of_its_name() {
    let frond = new();
    for round in 0..60_i32 {
        let main = shop(&frond, "");
        insert(&main, "things", &[document! { "_id": round }]);
        let name = format!("new{round}");
        at_once(
            || main.drop_database().unwrap(),
            || insert(&main, &name, &[document! { "_id": 1_i32 }]),
        );
        let names: Vec<_> =
            main.list_collections().unwrap().into_iter().map(|found| found.name).collect();
        let databases = frond.list_databases().unwrap();
        // Either the drop came first, and the insert made the database anew, or it took all.
        let expected = if databases.is_empty() { vec![] } else { vec![name] };
        assert_eq!(names, expected, "round {round}");
        main.drop_database().unwrap();
    }
}

#[test]
fn a_deleted_branch_leaves_nothing_to_the_next_of_its_name() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 1_i32 }]);
    main.commit("start", "").unwrap();
    for round in 0..60_i32 {
        main.create_branch("side", None).unwrap();
        let side = shop(&frond, "side");
        at_once(
            || main.delete_branch("side", true).unwrap(),
            // It comes too late, or goes with the branch.
            || drop(put(&side, "things", &document! { "_id": 2_i32 })),
        );
        main.create_branch("side", None).unwrap();
        let changed = shop(&frond, "side").status().unwrap().collections;
        assert!(changed.is_empty(), "round {round}: {changed:?}");
        main.delete_branch("side", true).unwrap();
    }
}

#[test]
fn an_index_that_comes_by_a_reset_has_what_is_written_meanwhile() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 0_i32, "a": 0_i32 }]);
    index(&main, "things", document! { "a": 1_i32 }, false);
    main.commit("start", "").unwrap();
    for id in 1_i32..60 {
        main.drop_indexes("things", "a_1").unwrap();
        at_once(
            || main.reset(None, true).unwrap(),
            || {
                for part in 0..20_i32 {
                    insert(&main, "things", &[document! { "_id": id * 100 + part, "a": id }]);
                }
            },
        );
        check_index(&main, "things", "a_1");
        main.reset(None, true).unwrap();
    }
}

#[test]
fn an_index_that_comes_by_a_merge_has_what_is_written_meanwhile() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 0_i32, "a": 0_i32 }]);
    main.commit("start", "").unwrap();
    main.create_branch("next", None).unwrap();
    let next = shop(&frond, "next");
    index(&next, "things", document! { "a": 1_i32 }, false);
    next.commit("index", "").unwrap();
    for round in 0..60_i32 {
        let name = format!("race{round}");
        main.create_branch(&name, None).unwrap();
        let branch = shop(&frond, &name);
        // Makes the collection live without changing it.
        insert(&branch, "things", &[document! { "_id": 1_i32, "a": 1_i32 }]);
        super::remove(&branch, "things", 1);
        let merged = at_once(
            || merge(&branch, "next"),
            || {
                for id in 2_i32..20 {
                    insert(&branch, "things", &[document! { "_id": id, "a": id }]);
                }
            },
        );
        match merged {
            Ok(MergeOutcome::FastForward { .. }) => check_index(&branch, "things", "a_1"),
            Err(error) => assert_eq!(error.code, Code::IllegalOperation, "{error}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_remote_knows_the_commits_that_it_announces() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 1_i32 }]);
    main.commit("start", "").unwrap();
    let remote = DataRemote::new(frond.clone(), "shop").unwrap();
    let is_done = AtomicBool::new(false);
    at_once(
        || {
            while !is_done.load(Ordering::Relaxed) {
                let state = remote.state().expect("all of one moment").expect("it is there");
                assert!(state.branches.contains_key("main"));
            }
        },
        || {
            for round in 0..300_i32 {
                put(&main, "things", &document! { "_id": 1_i32, "round": round }).unwrap();
                main.commit("again", "").unwrap();
                main.reset(Some("HEAD~1"), true).unwrap();
            }
            is_done.store(true, Ordering::Relaxed);
        },
    );
}
