//! The cost of history, in chunks: in proportion to the differences, never to the data.

use frond_db::Frond;
use frond_doc::{Value, ValueBuf, document};
use frond_store::StoreCounters;
use frond_vcs::Repository;

use super::{index, insert, merge, new, put, shop};

const SMALL: i32 = 2_000;
const LARGE: i32 = 20_000;

/// A collection with two indexes, committed, and a branch beside it.
fn begin(count: i32) -> (Frond, Repository) {
    let frond = new();
    let main = shop(&frond, "");
    index(&main, "things", document! { "a": 1_i32 }, false);
    index(&main, "things", document! { "b": 1_i32 }, false);
    let filler = "x".repeat(80);
    let thing = |id: i32| document! { "_id": id, "a": id, "b": id % 97, "filler": &filler };
    let ids: Vec<i32> = (0..count).collect();
    for batch in ids.chunks(2_000) {
        let documents: Vec<_> = batch.iter().map(|id| thing(*id)).collect();
        insert(&main, "things", &documents);
    }
    main.commit("all", "").unwrap();
    main.create_branch("side", None).unwrap();
    (frond, main)
}

fn counted<T>(frond: &Frond, work: impl FnOnce() -> T) -> (T, StoreCounters) {
    let before = frond.counters().1;
    let result = work();
    let after = frond.counters().1;
    let counters = StoreCounters {
        chunks_read: after.chunks_read - before.chunks_read,
        chunks_written: after.chunks_written - before.chunks_written,
        bytes_put: after.bytes_put - before.bytes_put,
        ..after
    };
    (result, counters)
}

/// Chunks read and written by: a commit of three documents, a branch, a diff, a merge, a log.
fn costs(count: i32) -> Vec<(&'static str, u64)> {
    let (frond, main) = begin(count);
    let side = shop(&frond, "side");
    let change = |database: &Repository, shift: i32| {
        for part in 0..3 {
            let id = (count / 4) * part + shift;
            put(database, "things", &document! { "_id": id, "a": -1_i32, "b": 5_i32 }).unwrap();
        }
    };
    change(&main, 10);
    let (_, commit) = counted(&frond, || main.commit("three", "").unwrap());
    let (_, branch) = counted(&frond, || main.create_branch("more", None).unwrap());
    let (diff, diffed) = counted(&frond, || main.diff(Some("HEAD~1"), Some("HEAD")).unwrap());
    assert_eq!(diff[0].modified.len(), 3);
    change(&side, 20);
    side.commit("three others", "").unwrap();
    let (_, merged) = counted(&frond, || merge(&main, "side").unwrap());
    assert_eq!(main.diff(Some("HEAD~1"), Some("HEAD")).unwrap()[0].modified.len(), 3);
    let id = ValueBuf::from(Value::Int32(10));
    let (log, logged) = counted(&frond, || main.log(None, Some(("things", Some(&id)))).unwrap());
    assert_eq!(log.len(), 2);
    vec![
        ("commit reads", commit.chunks_read),
        ("commit writes", commit.chunks_written),
        ("branch reads", branch.chunks_read),
        ("branch writes", branch.chunks_written),
        ("diff reads", diffed.chunks_read),
        ("merge reads", merged.chunks_read),
        ("merge writes", merged.chunks_written),
        ("log reads", logged.chunks_read),
    ]
}

#[test]
fn costs_follow_the_change() {
    let (small, large) = (costs(SMALL), costs(LARGE));
    for ((what, small), (_, large)) in small.iter().zip(&large) {
        println!("{what}: {small} chunks of {SMALL} documents, {large} of {LARGE}");
    }
    for ((what, small), (_, large)) in small.iter().zip(&large) {
        // One more level, or a node split by chance, but never more with ten times the data.
        assert!(*large <= small * 2 + 12, "{what}: {small} chunks, {large} in ten times the data");
        assert!(*large < 200, "{what}: {large}");
    }
}
