//! Goal: a database that moves to another data directory is the same there, to the last branch; at
//! no time can both be changed; a late step does nothing. Method: the steps of a move between two
//! directories, in their order and out of it.

use frond_db::fence::{FenceState, FenceStep};
use frond_db::{ChangeRetention, RetentionBegins};
use frond_doc::extended_json;
use frond_query::Code;
use frond_vcs::remote::{DataRemote, Moved, PushRequest};
use frond_vcs::{BranchPolicy, CommitPolicy, EraseRequest, Handover, Repository};

use super::*;

fn quiet() -> impl FnMut(&Moved) {
    |_: &Moved| {}
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> Code {
    result.expect_err("it is refused").code
}

/// A shop with two branches, a tag, a view, a validator, an index and policies.
fn source() -> Frond {
    let frond = open(&SimDisk::new(1));
    let main = shop(&frond, "");
    let documents: Vec<DocumentBuf> =
        (0..500).map(|id: i32| document! { "_id": id, "a": id % 10 }).collect();
    insert(&main, "things", &documents);
    index(&main, "things", document! { "a": 1_i32 }, false);
    let checked = extended_json::parse(r#"{"validator": {"a": {"$type": "int"}}}"#).unwrap();
    main.create_collection("checked", checked.view()).unwrap();
    let view = extended_json::parse(r#"{"viewOn": "things", "pipeline": []}"#).unwrap();
    main.create_collection("seen", view.view()).unwrap();
    main.commit("first", "Ada").unwrap();
    main.create_branch("side", None).unwrap();
    main.create_branch("gone", None).unwrap();
    main.create_tag("v1", None, None, false).unwrap();
    main.add_remote("hub", "https://hub/shop").unwrap();
    let kept = BranchPolicy { protected: true, ..BranchPolicy::default() };
    main.set_branch_policy("side", kept).unwrap();
    let policy = extended_json::parse(r#"{"everySeconds": 3600}"#).unwrap();
    main.set_commit_policy(Some(&CommitPolicy::parse(policy.view(), 0).unwrap())).unwrap();
    frond
}

fn step(frond: &Frond, generation: i64, step: FenceStep) -> Result<FenceState, Error> {
    frond.step_fence("shop", generation, step, "other").map(|fence| fence.state)
}

fn place(frond: &Frond, generation: i64) -> Repository {
    shop(frond, "").moved_by(generation)
}

/// Returns the remote that the target fetches from.
fn remote(frond: &Frond) -> DataRemote {
    DataRemote::new(frond.clone(), "shop").unwrap()
}

/// All steps from the stop on.
fn hand_over(from: &Frond, to: &Frond, generation: i64) -> Result<Handover, Error> {
    step(to, generation, FenceStep::Receive)?;
    step(from, generation, FenceStep::Leave)?;
    let source = place(from, generation);
    source.commit_all("moved", "Ada")?;
    let handover = Handover::parse(source.handover()?.to_document().view())?;
    place(to, generation).take_after(&handover, "there", &remote(from), &mut quiet())?;
    assert_eq!(place(to, generation).handover()?, source.handover()?);
    step(to, generation, FenceStep::Take)?;
    step(from, generation, FenceStep::Left)?;
    Ok(handover)
}

#[test]
fn a_copy_becomes_what_the_source_is() {
    let (from, to) = (source(), open(&SimDisk::new(2)));
    assert_eq!(shop(&from, "").not_movable().unwrap(), Vec::<String>::new());
    assert_eq!(step(&to, 1, FenceStep::Receive).unwrap(), FenceState::Copy);
    let source = shop(&from, "");
    source.commit_all("before", "Ada").unwrap();
    place(&to, 1).copy_from("there", &remote(&from), &mut quiet()).unwrap();
    // Changes while it is copied.
    put(&source, "things", &document! { "_id": 1_i32, "a": 100_i32 }).unwrap();
    put(&shop(&from, "side"), "things", &document! { "_id": 2_i32, "a": 200_i32 }).unwrap();
    source.delete_branch("gone", true).unwrap();
    source.create_branch("new", None).unwrap();
    source.delete_tag("v1").unwrap();
    source.create_tag("v2", None, None, false).unwrap();
    hand_over(&from, &to, 1).unwrap();
    for branch in ["main", "side", "new"] {
        let (left, right) = (shop(&from, branch), shop(&to, branch));
        assert_eq!(all(&left, "things"), all(&right, "things"), "{branch}");
    }
    let target = shop(&to, "");
    assert_eq!(target.list_indexes("things").unwrap().len(), 2);
    assert_eq!(all(&target, "seen").len(), 500);
    assert_eq!(
        code(put(&target, "checked", &document! { "_id": 1_i32, "a": "no" })),
        Code::DocumentValidationFailure
    );
    assert!(target.remote_branches(None).unwrap().is_empty());
    assert_eq!(target.list_remotes().unwrap().len(), 1);
    assert!(target.branch_policy("side").unwrap().protected);
    put(&target, "things", &document! { "_id": 1_i32, "a": 101_i32 }).unwrap();
    // Nothing changes what stayed behind.
    for refused in [
        code(put(&source, "things", &document! { "_id": 1_i32, "a": 1_i32 })),
        code(source.commit("late", "")),
        code(source.create_branch("late", None)),
        code(source.delete_tag("v2")),
        code(source.drop_database()),
        code(merge(&source, "new")),
        code(source.set_branch_policy("side", BranchPolicy::default())),
        code(source.reset(Some("v2"), true)),
    ] {
        assert_eq!(refused, Code::UserWritesBlocked);
    }
    assert_eq!(code(from.check_used_here("shop")), Code::StaleDbVersion);
    to.check_used_here("shop").unwrap();
    from.check_used_here("other").unwrap();
}

#[test]
fn it_comes_back_over_the_copy_that_stayed() {
    let (from, to) = (source(), open(&SimDisk::new(2)));
    hand_over(&from, &to, 1).unwrap();
    put(&shop(&to, ""), "things", &document! { "_id": 1_i32, "a": 7_i32 }).unwrap();
    shop(&to, "").create_tag("v3", None, None, false).unwrap();
    hand_over(&to, &from, 2).unwrap();
    let back = shop(&from, "");
    assert_eq!(
        find(&back, "things", Some(document! { "_id": 1_i32 }), None),
        [document! { "_id": 1_i32, "a": 7_i32 }]
    );
    put(&back, "things", &document! { "_id": 1_i32, "a": 8_i32 }).unwrap();
    back.commit("eight", "").unwrap();
    // The copy there is behind what was rewritten.
    back.reset(Some("HEAD~1"), true).unwrap();
    put(&back, "things", &document! { "_id": 1_i32, "a": 9_i32 }).unwrap();
    back.commit("nine", "").unwrap();
    hand_over(&from, &to, 3).unwrap();
    let there = shop(&to, "");
    there.reset(Some("HEAD~1"), true).unwrap();
    put(&there, "things", &document! { "_id": 1_i32, "a": 10_i32 }).unwrap();
    assert!(hand_over(&to, &from, 4).is_err(), "the copy here has a commit of its own");
    // It stays where it is.
    step(&to, 5, FenceStep::Stay).unwrap();
    put(&there, "things", &document! { "_id": 1_i32, "a": 11_i32 }).unwrap();
}

#[test]
fn steps_that_come_late_do_nothing() {
    let (from, to) = (source(), open(&SimDisk::new(2)));
    let late = Code::ConflictingOperationInProgress;
    step(&to, 1, FenceStep::Receive).unwrap();
    place(&to, 1).copy_from("there", &remote(&from), &mut quiet()).unwrap();
    step(&from, 1, FenceStep::Leave).unwrap();
    // Another router takes the move back.
    assert_eq!(step(&from, 2, FenceStep::Stay).unwrap(), FenceState::Open);
    step(&to, 2, FenceStep::Receive).unwrap();
    for (frond, step_late) in [
        (&from, FenceStep::Leave),
        (&from, FenceStep::Left),
        (&to, FenceStep::Take),
        (&to, FenceStep::Receive),
    ] {
        assert_eq!(code(step(frond, 1, step_late)), late, "{step_late:?}");
    }
    assert_eq!(code(place(&from, 1).commit_all("late", "")), late);
    let handover = shop(&from, "").handover().unwrap();
    let copied = place(&to, 1).take_after(&handover, "there", &remote(&from), &mut quiet());
    assert_eq!(code(copied), late);
    put(&shop(&from, ""), "things", &document! { "_id": 1_i32, "a": 1_i32 }).unwrap();
    // The copy isn't used, and isn't overwritten by what only has its name.
    assert_eq!(
        code(put(&shop(&to, ""), "things", &document! { "_id": 1_i32 })),
        Code::UserWritesBlocked
    );
    assert_eq!(code(step(&to, 3, FenceStep::Leave)), Code::IllegalOperation);
    assert_eq!(code(step(&from, 3, FenceStep::Receive)), Code::NamespaceExists);
    // A fence outlives the process.
    let disk = SimDisk::new(3);
    let third = open(&disk);
    step(&third, 1, FenceStep::Receive).unwrap();
    third.close().unwrap();
    drop(third);
    let third = open(&disk);
    assert_eq!(
        code(put(&shop(&third, ""), "things", &document! { "_id": 1_i32 })),
        Code::UserWritesBlocked
    );
}

#[test]
fn operations_under_way_when_a_database_leaves_end_or_conflict() {
    let from = source();
    let (early, later) = (from.begin(), from.begin());
    put(&early.database("shop").unwrap(), "things", &document! { "_id": 1_i32 }).unwrap();
    put(&later.database("other").unwrap(), "things", &document! { "_id": 1_i32 }).unwrap();
    step(&from, 1, FenceStep::Leave).unwrap();
    assert_eq!(code(early.commit(Durability::Synced, None)), Code::WriteConflict);
    assert_eq!(code(later.commit(Durability::Synced, None)), Code::WriteConflict);
    // Transactions of now look.
    let (stays, leaves) = (from.begin(), from.begin());
    put(&stays.database("other").unwrap(), "things", &document! { "_id": 1_i32 }).unwrap();
    put(&leaves.database("third").unwrap(), "things", &document! { "_id": 1_i32 }).unwrap();
    from.step_fence("third", 1, FenceStep::Leave, "other").unwrap();
    stays.commit(Durability::Synced, None).unwrap();
    assert_eq!(code(leaves.commit(Durability::Synced, None)), Code::WriteConflict);
}

#[test]
fn unversioned_collections_are_named() {
    let from = source();
    let main = shop(&from, "");
    let capped = extended_json::parse(r#"{"capped": true, "size": 4096}"#).unwrap();
    main.create_collection("last", capped.view()).unwrap();
    put(&main, "things", &document! { "_id": 1_i32, "a": 51_i32 }).unwrap();
    main.commit("one", "").unwrap();
    put(&shop(&from, "gone"), "things", &document! { "_id": 1_i32, "a": 52_i32 }).unwrap();
    shop(&from, "gone").commit("two", "").unwrap();
    merge(&main, "gone").unwrap();
    assert_eq!(
        main.not_movable().unwrap(),
        ["shop@main.last is capped", "shop@main has a merge that waits"]
    );
}

/// Returns where the log is kept, so that moments can be read.
fn open_keeping(seed: u64) -> Frond {
    let changes =
        ChangeRetention { begins: RetentionBegins::AtOnce, seconds: 1 << 20, bytes: 1 << 30 };
    let engine = EngineOptions { changes, ..EngineOptions::default() };
    let options = FrondOptions { engine, ..FrondOptions::default() };
    frond_vcs::open_on(&SimDisk::new(seed).machine(), options).expect("opens")
}

/// `shop` at the moment that is now, by a name that stays.
fn now(frond: &Frond) -> String {
    let time = frond.operation_time().0;
    format!("@{{Timestamp({}, {})}}", time >> 32, time & u64::from(u32::MAX))
}

#[test]
fn a_moment_at_which_another_line_had_it_is_refused() {
    let (from, to) = (open_keeping(1), open_keeping(2));
    let (set, read) = (
        |frond: &Frond, value: i32| {
            put(&shop(frond, ""), "things", &document! { "_id": 1_i32, "a": value }).unwrap();
        },
        |frond: &Frond, moment: &str| {
            let database = Repository::open(frond, &format!("shop{moment}"))?;
            Ok::<_, Error>(find(&database, "things", None, None))
        },
    );
    set(&from, 1);
    shop(&from, "").commit("one", "Ada").unwrap();
    let (before, elsewhere) = (now(&from), now(&to));
    hand_over(&from, &to, 1).unwrap();
    let away = now(&from);
    set(&to, 2);
    let there = now(&to);
    assert_eq!(code(read(&to, &elsewhere)), Code::SnapshotTooOld, "it wasn't there yet");
    hand_over(&to, &from, 2).unwrap();
    set(&from, 3);
    let value = |a: i32| vec![document! { "_id": 1_i32, "a": a }];
    assert_eq!(read(&from, &before).unwrap(), value(1));
    assert_eq!(code(read(&from, &away)), Code::SnapshotTooOld, "another line had it");
    assert_eq!(read(&from, &now(&from)).unwrap(), value(3));
    let working = format!("WORKING{away}");
    let restored = shop(&from, "").reset(Some(&working), true);
    assert_eq!(code(restored), Code::SnapshotTooOld);
    step(&to, 3, FenceStep::Receive).unwrap();
    assert_eq!(read(&to, &there).unwrap(), value(2), "its line had it then");
}

#[test]
fn nothing_before_a_move_is_undone() {
    let (from, to) = (source(), open(&SimDisk::new(2)));
    let branch = |frond: &Frond| shop(frond, "side");
    shop(&from, "").set_branch_policy("side", BranchPolicy::default()).unwrap();
    put(&branch(&from), "things", &document! { "_id": 1_i32, "a": 50_i32 }).unwrap();
    branch(&from).commit("before", "Ada").unwrap();
    let before = branch(&from).reflog(Some("side")).unwrap()[0].change;
    hand_over(&from, &to, 1).unwrap();
    put(&branch(&to), "things", &document! { "_id": 1_i32, "a": 51_i32 }).unwrap();
    branch(&to).commit("there", "Ada").unwrap();
    shop(&to, "").delete_branch("gone", true).unwrap();
    hand_over(&to, &from, 2).unwrap();
    let there = all(&branch(&from), "things");
    for change in [None, Some(before)] {
        let error = branch(&from).undo(None, change).unwrap_err();
        assert!(error.code == Code::NoSuchKey && error.message.contains("another line"), "{error}");
    }
    assert_eq!(all(&branch(&from), "things"), there);
    assert_eq!(code(shop(&from, "").undo(Some("gone"), None)), Code::NoSuchKey);
    // Changes made from now on can be undone.
    branch(&from).reset(Some("HEAD~1"), true).unwrap();
    assert_ne!(all(&branch(&from), "things"), there);
    branch(&from).undo(None, None).unwrap();
    assert_eq!(all(&branch(&from), "things"), there);
    // And the same again moves over the same copy.
    hand_over(&from, &to, 3).unwrap();
}

#[test]
fn garbage_is_collected_beside_a_copy() {
    let (from, to) = (source(), open(&SimDisk::new(2)));
    hand_over(&from, &to, 1).unwrap();
    put(&Repository::open(&from, "other").unwrap(), "things", &document! { "_id": 1_i32 }).unwrap();
    let options = frond_db::ReclaimOptions::default();
    frond_vcs::reclaim(&from, 0, options).unwrap();
    from.engine().check().unwrap();
    hand_over(&to, &from, 2).unwrap();
}

#[test]
fn a_pipeline_of_another_database_does_not_read_a_copy() {
    let (from, to) = (source(), open(&SimDisk::new(2)));
    let other = Repository::open(&from, "other").unwrap();
    put(&other, "things", &document! { "_id": 1_i32 }).unwrap();
    let options = extended_json::parse(
        r#"{"viewOn": "things", "pipeline": [
            {"$unionWith": {"coll": "things", "pipeline": []}},
            {"$lookup": {"from": {"db": "shop", "coll": "things"}, "pipeline": [], "as": "t"}}]}"#,
    );
    let view = options.unwrap();
    other.create_collection("seen", view.view()).unwrap();
    assert_eq!(find(&other, "seen", None, None).len(), 2);
    hand_over(&from, &to, 1).unwrap();
    assert_eq!(code(try_find(&other, "seen", None, None)), Code::StaleDbVersion);
}

#[test]
fn a_branch_without_a_commit_comes_along() {
    let (from, to) = (open(&SimDisk::new(1)), open(&SimDisk::new(2)));
    put(&shop(&from, ""), "things", &document! { "_id": 1_i32 }).unwrap();
    shop(&from, "").create_branch("empty", None).unwrap();
    hand_over(&from, &to, 1).unwrap();
    put(&shop(&to, "empty"), "things", &document! { "_id": 2_i32 }).unwrap();
    hand_over(&to, &from, 2).unwrap();
    assert_eq!(all(&shop(&from, "empty"), "things"), [document! { "_id": 2_i32 }]);
    assert_eq!(all(&shop(&from, ""), "things"), [document! { "_id": 1_i32 }]);
}

#[test]
fn a_remote_may_have_any_name() {
    let (from, to) = (source(), open(&SimDisk::new(2)));
    shop(&from, "").add_remote("moved-from", "https://hub/shop").unwrap();
    assert_eq!(code(shop(&from, "").add_remote("moved~from", "https://hub/shop")), Code::BadValue);
    hand_over(&from, &to, 1).unwrap();
    hand_over(&to, &from, 2).unwrap();
}

/// What was erased before a move doesn't come back to the new line from an older clone.
#[test]
fn the_ids_of_erased_commits_come_along() {
    let (from, to, clone) = (source(), open(&SimDisk::new(2)), open(&SimDisk::new(3)));
    let main = shop(&from, "");
    let old = shop(&clone, "");
    old.clone_from("there", &remote(&from), &mut quiet()).unwrap();
    let request = EraseRequest {
        collection: "things".to_owned(),
        documents: vec![frond_doc::Value::Int32(7).to_buf()],
        ..EraseRequest::default()
    };
    main.erase(&request).unwrap();
    let handed = hand_over(&from, &to, 1).unwrap();
    assert!(!handed.erased.is_empty());
    let pairs = |database: &Repository| {
        let erased = database.erased_commits().unwrap().into_iter();
        erased.map(|it| (it.old, it.new, it.time_millis)).collect::<Vec<_>>()
    };
    let moved = shop(&to, "");
    assert_eq!(pairs(&moved), pairs(&main));
    put(&old, "things", &document! { "_id": 7_i32, "a": 1_i32 }).unwrap();
    old.commit("more", "Ada").unwrap();
    let push = PushRequest { branch: Some("back".to_owned()), ..PushRequest::default() };
    let error = old.push("origin", &remote(&to), &push, &mut quiet()).unwrap_err();
    assert!(error.to_string().contains("holds what was erased"), "{error}");
}
