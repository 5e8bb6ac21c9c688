//! Goal: policies hold. Automatic commits come when they are due and are thinned as asked; rules
//! let no commit or merge pass that breaks them; closed branches take no direct writes; collections
//! that aren't versioned are in no commit. Method: cases, on a clock that the test moves.

use frond_db::inside::{LatchMode, Outcome, Scope};
use frond_db::{Durability, Error, Frond, FrondOptions};
use frond_doc::{DocumentBuf, document, extended_json};
use frond_query::Code;
use frond_testkit::{SimClock, SimDisk};
use frond_vcs::Repository;
use frond_vcs::{BranchPolicy, CommitInfo, CommitPolicy, MergeOutcome, MergeRules, PickRequest};

use super::{all, find, index, insert, merge, put, remove, shop};

/// A data directory and the clock that it goes by.
fn timed() -> (SimDisk, SimClock, Frond) {
    let (disk, clock) = (SimDisk::new(1), SimClock::new());
    let frond = open_at(&disk, &clock);
    (disk, clock, frond)
}

fn open_at(disk: &SimDisk, clock: &SimClock) -> Frond {
    let machine = frond_testkit::machine::machine(disk, clock, 1);
    frond_vcs::open_on(&machine, FrondOptions::default()).expect("the disk works")
}

/// The last commits of a version, newest first.
fn log(database: &Repository, limit: Option<u64>) -> Vec<CommitInfo> {
    database.log(limit, None).expect("a log")
}

fn set(database: &Repository, policy: &str) {
    let document = extended_json::parse(policy).expect("JSON");
    let policy = CommitPolicy::parse(document.view(), 0).expect("a policy");
    database.set_commit_policy(Some(&policy)).expect("the database is there");
}

fn messages(database: &Repository) -> Vec<String> {
    let log = database.log_of(Default::default()).expect("a log");
    log.map(|commit| commit.expect("a commit").message).collect()
}

fn item(id: i32, price: i32) -> DocumentBuf {
    document! { "_id": id, "price": price }
}

fn refused<T: std::fmt::Debug>(result: Result<T, Error>, code: Code) {
    assert_eq!(result.expect_err("it is refused").code, code);
}

#[test]
fn automatic_commits_come_by_interval_and_by_size() {
    let (disk, clock, frond) = timed();
    let main = shop(&frond, "");
    insert(&main, "items", &[item(1, 1)]);
    main.commit("first", "").unwrap();
    assert!(frond_vcs::run_policies(&frond).commits.is_empty());
    set(
        &main,
        r#"{"everySeconds": 60, "changedBytes": 5000, "author": "robot", "branches": ["main"],
            "message": "{reason} of {database}@{branch}: {changes} in {collections}"}"#,
    );
    main.create_branch("other", None).unwrap();
    let passes = |seconds: i64| {
        clock.step(seconds * 1_000_000);
        let run = frond_vcs::run_policies(&frond);
        assert!(run.failed.is_empty(), "{:?}", run.failed);
        run.commits.len()
    };
    assert_eq!(passes(0) + passes(61), 0, "nothing changed");
    put(&main, "items", &item(1, 2)).unwrap();
    put(&shop(&frond, "other"), "items", &item(1, 9)).unwrap();
    assert_eq!(passes(30), 0);
    put(&main, "items", &item(2, 2)).unwrap();
    assert_eq!(passes(31), 1, "the first change counts");
    assert_eq!(messages(&main), ["interval of shop@main: 2 in items", "first"]);
    let info = log(&main, Some(1)).remove(0);
    assert!(info.automatic && info.author == "robot");
    let large: Vec<DocumentBuf> = (10..20)
        .map(|id| {
            let mut text = String::new();
            text.extend(std::iter::repeat_n('x', 600));
            document! { "_id": id, "text": text.as_str() }
        })
        .collect();
    insert(&main, "items", &large);
    assert_eq!(passes(0), 1);
    assert_eq!(messages(&main)[0], "size of shop@main: 10 in items");
    // Writes that weren't committed when it closed are found after an opening.
    put(&main, "items", &item(3, 3)).unwrap();
    frond.close().unwrap();
    drop((main, frond));
    let frond = open_at(&disk, &clock);
    assert!(frond_vcs::run_policies(&frond).commits.is_empty());
    clock.step(61_000_000);
    assert_eq!(frond_vcs::run_policies(&frond).commits.len(), 1);
    let main = shop(&frond, "");
    main.set_commit_policy(None).unwrap();
    put(&main, "items", &item(3, 4)).unwrap();
    clock.step(100_000_000);
    assert!(frond_vcs::run_policies(&frond).commits.is_empty());
    assert!(main.commit_policy().unwrap().is_none());
}

#[test]
fn what_takes_longer_than_the_interval_is_committed_once_it_is_there() {
    let (_disk, clock, frond) = timed();
    let main = shop(&frond, "");
    insert(&main, "items", &[item(1, 1)]);
    main.commit("first", "").unwrap();
    set(&main, r#"{"everySeconds": 1, "message": "{reason}"}"#);
    let passes = |seconds: i64| {
        clock.step(seconds * 1_000_000);
        frond_vcs::run_policies(&frond).commits.len()
    };
    assert_eq!(passes(0) + passes(2), 0, "nothing changed");
    let transaction = frond.begin();
    put(&transaction.database("shop").unwrap(), "items", &item(1, 2)).unwrap();
    assert_eq!(passes(4) + passes(4), 0, "nothing is visible");
    transaction.commit(Durability::Synced, None).unwrap();
    assert_eq!(passes(0) + passes(2), 1);
    let aborted = frond.begin();
    put(&aborted.database("shop").unwrap(), "items", &item(1, 3)).unwrap();
    aborted.abort();
    assert_eq!(passes(0) + passes(2), 0);
    main.reset(Some("main~1"), false).unwrap();
    assert_eq!(passes(0) + passes(2), 1, "a soft reset leaves a difference");
    let other = frond_vcs::Repository::open(&frond, "other").unwrap();
    insert(&other, "from", &[item(7, 7)]);
    other.move_collection("from", &main, "to", false).unwrap();
    assert_eq!(passes(0) + passes(2), 1, "a collection came from elsewhere");
}

/// Also what was written before, and isn't committed yet.
#[test]
fn a_policy_that_lists_a_branch_goes_with_its_renaming() {
    let (_, clock, frond) = timed();
    let main = shop(&frond, "");
    insert(&main, "items", &[item(1, 1)]);
    main.commit("first", "").unwrap();
    main.create_branch("plan", None).unwrap();
    main.create_branch("other", None).unwrap();
    set(&main, r#"{"everySeconds": 60, "branches": ["main", "plan"], "author": "robot"}"#);
    assert!(frond_vcs::run_policies(&frond).commits.is_empty());
    let passes = |seconds: i64| {
        clock.step(seconds * 1_000_000);
        frond_vcs::run_policies(&frond).commits.len()
    };
    assert_eq!(passes(61), 0);
    put(&shop(&frond, "plan"), "items", &item(1, 70)).unwrap();
    assert_eq!(passes(40), 0);
    main.rename_branch("plan", "sale").unwrap();
    main.rename_branch("other", "plan").unwrap();
    put(&shop(&frond, "plan"), "items", &item(1, 80)).unwrap();
    assert_eq!(passes(21), 1, "the time counts from before");
    let sale = shop(&frond, "sale");
    assert_eq!(messages(&sale).len(), 2);
    put(&sale, "items", &item(1, 71)).unwrap();
    assert_eq!(passes(61), 1, "not of what is called plan now");
    assert_eq!((messages(&sale).len(), messages(&main).len()), (3, 1));
    let policy = main.commit_policy().unwrap().expect("it is there");
    let expected = r#"{"everySeconds": 60, "branches": ["main", "sale"], "author": "robot"}"#;
    assert_eq!(policy.to_document(), &extended_json::parse(expected).unwrap());
}

/// A rule holds on the branches that its patterns name, however a branch comes to what breaks it or
/// to such a name; and on no other.
#[test]
fn rules_hold_on_the_branches_that_they_name() {
    let (_, _, frond) = timed();
    let main = shop(&frond, "");
    insert(&main, "items", &[item(1, 1)]);
    main.commit("first", "").unwrap();
    set(
        &main,
        r#"{"rules": [{"name": "priced", "collection": "items", "branches": ["release/*", "live"],
                       "documents": {"price": {"$gt": 0}}}]}"#,
    );
    let cheap = || item(2, -1);
    put(&main, "items", &cheap()).unwrap();
    main.commit("cheap", "").expect("it isn't ruled");
    for name in ["release/1", "live"] {
        refused(main.create_branch(name, None), Code::DocumentValidationFailure);
        main.create_branch(name, Some("main~1")).expect("it was right then");
        let ruled = shop(&frond, name);
        refused(merge(&ruled, "main"), Code::DocumentValidationFailure);
        refused(ruled.reset(Some("main"), true), Code::DocumentValidationFailure);
        let pick = PickRequest { revision: "main".to_owned(), ..PickRequest::default() };
        refused(ruled.pick(&pick), Code::DocumentValidationFailure);
        put(&ruled, "items", &cheap()).unwrap();
        refused(ruled.commit("cheap", ""), Code::DocumentValidationFailure);
        ruled.reset(None, true).unwrap();
        put(&ruled, "items", &item(2, 3)).unwrap();
        ruled.commit("dear", "").unwrap();
        // What is below its own commits comes to it, too.
        refused(ruled.rebase("main", &MergeRules::default()), Code::DocumentValidationFailure);
    }
    // Names that no pattern names; and one that comes to be named.
    main.create_branch("release/1/fix", None).unwrap();
    main.create_branch("work", None).unwrap();
    refused(main.rename_branch("work", "release/2"), Code::DocumentValidationFailure);
    main.rename_branch("work", "liver").unwrap();
    // A rule goes with a branch that it names by its own name, and a pattern stays.
    main.rename_branch("live", "shown").unwrap();
    main.rename_branch("release/1", "release/3").unwrap();
    let policy = main.commit_policy().unwrap().expect("it is there");
    let mut shown = String::new();
    extended_json::write(policy.to_document().view(), extended_json::Form::Relaxed, &mut shown);
    assert!(shown.contains(r#""branches":["release/*","shown"]"#), "{shown}");
    let shown = shop(&frond, "shown");
    put(&shown, "items", &cheap()).unwrap();
    refused(shown.commit("cheap", ""), Code::DocumentValidationFailure);
    main.create_branch("live", None).expect("the name is free of it");
}

#[test]
fn automatic_commits_are_thinned_and_others_keep_their_ids() {
    let (_, clock, frond) = timed();
    let main = shop(&frond, "");
    insert(&main, "items", &[item(0, 0)]);
    let by_hand = main.commit("by hand", "").unwrap().id;
    let past = shop(&frond, &by_hand.to_string());
    refused(past.thin_automatic_commits(), Code::UserWritesBlocked);
    assert_eq!(main.thin_automatic_commits().unwrap(), 0, "no policy asks for it");
    set(
        &main,
        r#"{"everySeconds": 10, "thin": [{"olderThanSeconds": 1000, "keepEverySeconds": 100}]}"#,
    );
    let automatic = |count: i32| {
        for number in 0..count {
            put(&main, "items", &item(0, number + 1)).unwrap();
            frond_vcs::run_policies(&frond);
            clock.step(10_000_000);
            assert!(frond_vcs::run_policies(&frond).failed.is_empty());
        }
    };
    automatic(30);
    main.create_tag("named", None, None, false).unwrap();
    let named = log(&main, Some(1))[0].id;
    automatic(100);
    let before = all(&main, "items");
    main.thin_automatic_commits().unwrap();
    assert_eq!(main.thin_automatic_commits().unwrap(), 0, "once is enough");
    let commits = log(&main, None);
    // A hundred after the tag are 1,000 seconds: those that were thinned while they came.
    assert!((95..=105).contains(&(commits.len() - 31)), "{}", commits.len());
    clock.step(1_000_000_000);
    let thinned = main.thin_automatic_commits().unwrap();
    assert!((85..=92).contains(&thinned), "{thinned}");
    let commits = log(&main, None);
    assert!(commits.iter().any(|commit| commit.id == named));
    assert_eq!(commits.last().unwrap().id, by_hand);
    assert_eq!(all(&main, "items"), before);
    assert!(main.status().unwrap().collections.is_empty());
    assert!(commits.is_sorted_by(|newer, older| newer.timestamp_millis >= older.timestamp_millis));
    // It is a change of the ref like any other.
    main.undo(None, None).unwrap();
    assert_eq!(log(&main, None).len() as u64, commits.len() as u64 + thinned);
    // A protected branch only moves forward.
    let policy = BranchPolicy { protected: true, ..BranchPolicy::default() };
    main.set_branch_policy("main", policy).unwrap();
    assert_eq!(main.thin_automatic_commits().unwrap(), 0);
}

#[test]
fn rules_hold_for_commits_and_merges() {
    let (_, _, frond) = timed();
    let main = shop(&frond, "");
    insert(&main, "items", &[item(1, 1), item(2, -5)]);
    main.commit("before there were rules", "").unwrap();
    set(
        &main,
        r#"{"rules": [{"name": "prices", "collection": "items", "documents": {"price": {"$gt": 0}}},
                      {"name": "stay", "collection": "items", "changes": {"change": {"$ne": "removed"}}}]}"#,
    );
    put(&main, "items", &item(1, 2)).unwrap();
    main.commit("what didn't change isn't asked", "").unwrap();
    put(&main, "items", &item(3, 0)).unwrap();
    let error = main.commit("free", "").unwrap_err();
    assert_eq!(error.code, Code::DocumentValidationFailure);
    assert!(error.message.contains("rule prices"), "{}", error.message);
    assert!(error.message.contains(": 1 documents of "), "{}", error.message);
    assert!(error.message.ends_with("the first with _id 3"), "{}", error.message);
    assert!(error.details.is_some());
    put(&main, "items", &item(3, 3)).unwrap();
    main.commit("dear", "").unwrap();
    remove(&main, "items", 3);
    refused(main.commit("gone", ""), Code::DocumentValidationFailure);
    main.reset(None, true).unwrap();
    // Made where there was no rule, merged where there is one.
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    main.set_commit_policy(None).unwrap();
    put(&side, "items", &item(4, -1)).unwrap();
    side.commit("cheap", "").unwrap();
    put(&main, "items", &item(5, 5)).unwrap();
    main.commit("more", "").unwrap();
    set(
        &main,
        r#"{"rules": [{"name": "prices", "collection": "items", "documents": {"price": {"$gt": 0}}}]}"#,
    );
    let head = log(&main, Some(1))[0].id;
    refused(merge(&main, "side"), Code::DocumentValidationFailure);
    assert_eq!(log(&main, Some(1))[0].id, head);
    assert!(main.status().unwrap().collections.is_empty());
}

#[test]
fn a_closed_branch_changes_by_merges() {
    let (disk, clock, frond) = timed();
    let main = shop(&frond, "");
    insert(&main, "items", &[item(1, 1)]);
    main.commit("first", "").unwrap();
    main.create_branch("side", None).unwrap();
    let policy = BranchPolicy { closed: true, ..BranchPolicy::default() };
    main.set_branch_policy("main", policy).unwrap();
    let no = Code::UserWritesBlocked;
    let report = main.insert("items", &[item(2, 2)], true, Durability::Relaxed);
    refused(report, no);
    refused(put(&main, "items", &item(1, 2)), no);
    refused(main.create_collection("new", document! {}.view()), no);
    refused(main.drop_collection("items"), no);
    refused(main.pick(&PickRequest { revision: "main".to_owned(), ..PickRequest::default() }), no);
    {
        let other = Repository::open(&frond, "other").unwrap();
        insert(&other, "parts", &[item(1, 1)]);
        refused(main.move_collection("items", &other, "items", false), no);
        refused(other.move_collection("parts", &main, "parts", false), no);
    }
    let transaction = frond.begin();
    refused(put(&transaction.database("shop").unwrap(), "items", &item(1, 2)), no);
    let side = shop(&frond, "side");
    put(&side, "items", &item(1, 2)).unwrap();
    side.commit("second", "").unwrap();
    assert!(matches!(merge(&main, "side").unwrap(), MergeOutcome::FastForward { .. }));
    drop((main, side, transaction));
    frond.close().unwrap();
    drop(frond);
    let frond = open_at(&disk, &clock);
    let main = shop(&frond, "");
    refused(put(&main, "items", &item(1, 3)), no);
    main.set_branch_policy("main", BranchPolicy::default()).unwrap();
    put(&main, "items", &item(1, 3)).unwrap();
}

/// A transaction of several requests whose statements didn't look, since no branch was closed then.
#[test]
fn a_transaction_that_began_before_a_branch_was_closed_conflicts() {
    let (_disk, _clock, frond) = timed();
    let main = shop(&frond, "");
    insert(&main, "items", &[item(1, 1)]);
    let begun = frond.begin();
    put(&begun.database("shop").unwrap(), "items", &item(1, 2)).unwrap();
    let reader = frond.begin();
    assert_eq!(all(&reader.database("shop").unwrap(), "items"), [item(1, 1)]);
    let policy = BranchPolicy { closed: true, ..BranchPolicy::default() };
    main.set_branch_policy("main", policy).unwrap();
    refused(begun.commit(Durability::Synced, None), Code::WriteConflict);
    reader.commit(Durability::Synced, None).unwrap();
    assert_eq!(all(&main, "items"), [item(1, 1)]);
    // One that begins now looks: what it writes elsewhere is committed.
    let later = frond.begin();
    put(&later.database("other").unwrap(), "items", &item(1, 1)).unwrap();
    later.commit(Durability::Synced, None).unwrap();
}

/// A write that has looked before any branch was closed, and takes its time.
#[test]
fn a_branch_is_closed_once_writes_under_way_are_over() {
    let (_disk, _clock, frond) = timed();
    let main = shop(&frond, "");
    insert(&main, "items", &[item(1, 1)]);
    let scope = Scope::collection(main.repository_name(), "main", "items");
    let (sender, received) = std::sync::mpsc::channel();
    std::thread::scope(|threads| {
        let mut closing = None;
        main.transact_alone(scope, LatchMode::Writer, Durability::Synced, |_| {
            let (frond, sender) = (frond.clone(), sender.clone());
            closing.get_or_insert_with(|| {
                threads.spawn(move || {
                    let policy = BranchPolicy { closed: true, ..BranchPolicy::default() };
                    shop(&frond, "").set_branch_policy("main", policy).unwrap();
                    sender.send(()).unwrap();
                })
            });
            let early = received.recv_timeout(std::time::Duration::from_millis(300));
            assert!(early.is_err(), "it was closed beside a write");
            Ok(Outcome::Commit(()))
        })
        .unwrap();
        closing.expect("it was begun").join().unwrap();
    });
    refused(put(&main, "items", &item(1, 2)), Code::UserWritesBlocked);
}

/// Writers and index builds go on while the branch is closed: nothing changes from then on.
#[test]
fn operations_under_way_end_or_are_refused_when_a_branch_is_closed() {
    let (_disk, _clock, frond) = timed();
    for round in 0..20 {
        let name = format!("shop{round}");
        let open = || Repository::open(&frond, &name).unwrap();
        let documents: Vec<DocumentBuf> = (0..400).map(|id| item(id, id)).collect();
        insert(&open(), "items", &documents);
        let (sender, received) = std::sync::mpsc::channel();
        std::thread::scope(|threads| {
            let begun = sender.clone();
            let writer = threads.spawn(move || {
                let database = open();
                for first in (1_000..).step_by(3_000) {
                    let documents: Vec<DocumentBuf> =
                        (first..first + 3_000).map(|id| item(id, id)).collect();
                    let report = database.insert("items", &documents, true, Durability::Relaxed);
                    let _ = begun.send(());
                    let error = match report {
                        Ok(report) => report.errors.into_iter().next().map(|failed| failed.error),
                        Err(error) => Some(error),
                    };
                    if let Some(error) = error {
                        return assert_eq!(error.code, Code::UserWritesBlocked, "{error}");
                    }
                }
            });
            let builder = threads.spawn(move || {
                let database = open();
                for number in 0_u32.. {
                    let name = format!("a{number}");
                    let key = document! { "price": 1_i32 };
                    let spec = document! { "key": &key, "name": &*name };
                    let spec = frond_db::catalog::IndexSpec::parse(spec.view()).unwrap();
                    let _ = sender.send(());
                    if let Err(error) = database.create_indexes("items", &[spec]) {
                        return assert_eq!(error.code, Code::UserWritesBlocked, "{error}");
                    }
                    if let Err(error) = database.drop_indexes("items", &name) {
                        return assert_eq!(error.code, Code::UserWritesBlocked, "{error}");
                    }
                }
            });
            // Some of each are done, the next are under way.
            (0..2 + round % 5).for_each(|_| received.recv().unwrap());
            let database = open();
            let policy = BranchPolicy { closed: true, ..BranchPolicy::default() };
            database.set_branch_policy("main", policy).unwrap();
            let seen = || {
                let indexes = database.list_indexes("items").unwrap().len();
                (all(&database, "items").len(), indexes)
            };
            let before = seen();
            writer.join().unwrap();
            builder.join().unwrap();
            assert_eq!(seen(), before, "round {round}");
        });
    }
}

#[test]
fn a_branch_goes_when_its_time_is_over() {
    let (_, clock, frond) = timed();
    let main = shop(&frond, "");
    insert(&main, "items", &[item(1, 1)]);
    main.commit("first", "").unwrap();
    let expires_millis = Some(frond.now_millis() + 5_000);
    for name in ["try", "kept"] {
        main.create_branch(name, None).unwrap();
        let policy = BranchPolicy { expires_millis, ..BranchPolicy::default() };
        let policy = BranchPolicy { protected: name == "kept", ..policy };
        main.set_branch_policy(name, policy).unwrap();
    }
    let policy = BranchPolicy { expires_millis, ..BranchPolicy::default() };
    refused(main.set_branch_policy("main", policy), Code::IllegalOperation);
    assert!(frond_vcs::run_policies(&frond).removed.is_empty());
    clock.step(5_000_000);
    let run = frond_vcs::run_policies(&frond);
    assert_eq!(run.removed, ["shop@try"]);
    assert!(run.failed.is_empty());
    assert_eq!(main.list_branches().unwrap().len(), 2);
}

#[test]
fn policies_come_back_with_what_had_them() {
    let (disk, clock, frond) = timed();
    let main = shop(&frond, "");
    insert(&main, "items", &[item(1, 1)]);
    main.commit("first", "").unwrap();
    let soon = Some(frond.now_millis() + 5_000);
    let side = BranchPolicy { closed: true, expires_millis: soon, ..BranchPolicy::default() };
    main.create_branch("side", None).unwrap();
    main.set_branch_policy("side", side).unwrap();
    main.delete_branch("side", true).unwrap();
    main.undo(Some("side"), None).unwrap();
    assert_eq!(main.branch_policy("side").unwrap(), side);
    // A database with a protected branch isn't dropped.
    let kept = BranchPolicy { protected: true, ..BranchPolicy::default() };
    main.create_branch("kept", None).unwrap();
    main.set_branch_policy("kept", kept).unwrap();
    refused(main.delete_branch("kept", true), Code::IllegalOperation);
    let error = main.drop_database().expect_err("kept is protected");
    assert_eq!(error.code, Code::IllegalOperation);
    assert!(error.message.contains("branch kept is protected"), "{}", error.message);
    assert!(error.message.contains("--unprotect"), "{}", error.message);
    main.set_branch_policy("kept", BranchPolicy::default()).unwrap();
    let policy = r#"{"everySeconds": 60, "rules": [{"name": "prices", "collection": "items",
                     "documents": {"price": {"$gt": 0}}}]}"#;
    set(&main, policy);
    main.drop_database().unwrap();
    drop(main);
    frond.close().unwrap();
    drop(frond);
    let frond = open_at(&disk, &clock);
    let main = shop(&frond, "");
    main.undrop("shop").unwrap();
    assert_eq!(main.branch_policy("side").unwrap(), side);
    refused(put(&shop(&frond, "side"), "items", &item(1, 2)), Code::UserWritesBlocked);
    let document = main.commit_policy().unwrap().expect("it came back").to_document().clone();
    assert_eq!(document, extended_json::parse(policy).unwrap());
    put(&main, "items", &item(2, 2)).unwrap();
    frond_vcs::run_policies(&frond);
    clock.step(61_000_000);
    let run = frond_vcs::run_policies(&frond);
    assert_eq!(run.commits.len(), 1, "automatic commits go on");
    assert_eq!(run.removed, ["shop@side"]);
    // A time to live that is over doesn't take the branch away again.
    main.undo(Some("side"), None).unwrap();
    let closed = BranchPolicy { closed: true, ..BranchPolicy::default() };
    assert_eq!(main.branch_policy("side").unwrap(), closed);
    assert!(frond_vcs::run_policies(&frond).removed.is_empty());
}

#[test]
fn rules_hold_for_what_a_fast_forward_brings() {
    let (_, _, frond) = timed();
    let main = shop(&frond, "");
    insert(&main, "items", &[item(1, 1)]);
    main.commit("first", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    put(&side, "items", &item(4, -1)).unwrap();
    let cheap = side.commit("cheap", "").unwrap().id.to_string();
    let rules = r#"{"rules": [{"name": "prices", "collection": "items",
                    "documents": {"price": {"$gt": 0}}}]}"#;
    set(&main, rules);
    let head = log(&main, Some(1))[0].id;
    let error = merge(&main, "side").expect_err("side breaks the rule");
    assert_eq!(error.code, Code::DocumentValidationFailure);
    assert!(error.message.contains("rule prices"), "{}", error.message);
    refused(main.rebase("side", &MergeRules::default()), Code::DocumentValidationFailure);
    for hard in [true, false] {
        refused(main.reset(Some("side"), hard), Code::DocumentValidationFailure);
    }
    assert_eq!(log(&main, Some(1))[0].id, head);
    assert!(main.status().unwrap().collections.is_empty());
    // The branch may go back to its own commits, whatever rules came since.
    side.reset(Some("main"), true).unwrap();
    refused(side.reset(Some(&cheap), true), Code::DocumentValidationFailure);
    side.undo(None, None).unwrap();
    put(&side, "items", &item(4, 4)).unwrap();
    side.commit("dear", "").unwrap();
    assert!(matches!(merge(&main, "side").unwrap(), MergeOutcome::FastForward { .. }));
}

fn cached(frond: &Frond, version: &str) -> Vec<DocumentBuf> {
    all(&shop(frond, version), "cache")
}

#[test]
fn a_collection_that_is_not_versioned_is_in_no_commit() {
    let (disk, clock, frond) = timed();
    let main = shop(&frond, "");
    main.create_collection("cache", document! { "versioned": false }.view()).unwrap();
    refused(
        main.create_collection("no", document! { "versioned": 0_i32 }.view()),
        Code::InvalidOptions,
    );
    index(&main, "cache", document! { "price": 1_i32 }, false);
    insert(&main, "cache", &[item(1, 1)]);
    assert!(main.commit("nothing", "").is_err(), "there is nothing to commit");
    insert(&main, "items", &[item(1, 1)]);
    let first = main.commit("first", "").unwrap();
    assert!(shop(&frond, &first.id.to_string()).list_collections().unwrap().len() == 1);
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    assert!(all(&side, "cache").is_empty());
    put(&side, "items", &item(2, 2)).unwrap();
    side.commit("second", "").unwrap();
    put(&main, "cache", &item(2, 2)).unwrap();
    assert!(main.status().unwrap().collections.is_empty());
    // Merges, resets and the collections of the other side leave it alone.
    merge(&main, "side").unwrap();
    main.reset(Some("main~1"), true).unwrap();
    assert_eq!(cached(&frond, ""), [item(1, 1), item(2, 2)]);
    let by_price = find(&main, "cache", Some(document! { "price": 2_i32 }), Some("price_1"));
    assert_eq!(by_price, [item(2, 2)]);
    frond.close().unwrap();
    drop((main, side, frond));
    let frond = open_at(&disk, &clock);
    assert_eq!(cached(&frond, ""), [item(1, 1), item(2, 2)]);
    let main = shop(&frond, "");
    // From now on it is versioned, and then not any more.
    main.change_collection("cache", document! { "versioned": true }.view()).unwrap();
    main.commit("with the cache", "").unwrap();
    assert_eq!(cached(&frond, "HEAD").len(), 2);
    main.change_collection("cache", document! { "versioned": false }.view()).unwrap();
    main.commit("without", "").unwrap();
    assert!(cached(&frond, "HEAD").is_empty());
    assert_eq!(cached(&frond, "").len(), 2);
    assert!(main.drop_collection("cache").unwrap());
    assert!(cached(&frond, "").is_empty());
    assert!(main.status().unwrap().collections.is_empty());
}
