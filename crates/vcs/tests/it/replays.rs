//! Goal: picks, reverts and rebases that conflict wait, and can be continued, skipped and given up.
//! Method: cases; what stands between two calls is checked too, across an opening and a collection.

use frond_db::{Frond, ReclaimOptions};
use frond_doc::{DocumentBuf, document};
use frond_query::Code;
use frond_testkit::SimDisk;
use frond_vcs::Repository;
use frond_vcs::{ConflictKind, MergeOutcome, MergeRules, PickKind, PickRequest, Resolution};

use super::{all, find, index, insert, open, put, shop};

fn thing(id: i32, a: i32) -> DocumentBuf {
    document! { "_id": id, "a": a }
}

fn rules() -> MergeRules {
    MergeRules::default()
}

fn messages(database: &Repository) -> Vec<String> {
    let log = database.log(None, None).expect("a log");
    log.into_iter().map(|commit| commit.message).collect()
}

/// `main` and `side` both changed thing 2; side's commits are one, two and three.
fn diverged(frond: &Frond) -> (Repository, Repository) {
    let main = shop(frond, "");
    insert(&main, "things", &[thing(1, 0), thing(2, 0), thing(3, 0)]);
    index(&main, "things", document! { "a": 1_i32 }, false);
    main.commit("first", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(frond, "side");
    for (id, message) in [(1, "one"), (2, "two"), (3, "three")] {
        put(&side, "things", &thing(id, id)).unwrap();
        side.commit(message, "Bob").unwrap();
    }
    put(&main, "things", &thing(2, 20)).unwrap();
    main.commit("main", "Ada").unwrap();
    (main, side)
}

#[test]
fn a_rebase_stops_and_goes_on() {
    let disk = SimDisk::new(1);
    let frond = open(&disk);
    let (_, side) = diverged(&frond);
    let before = (messages(&side), all(&side, "things"));
    let rebased = side.rebase("main", &rules()).unwrap();
    assert_eq!(rebased.conflicts, [("things".to_owned(), 1)]);
    assert_eq!(rebased.commits.len(), 1);
    // The branch hasn't moved; its working state has what merged.
    assert_eq!(messages(&side), before.0);
    assert_eq!(all(&side, "things"), [thing(1, 1), thing(2, 20), thing(3, 0)]);
    let error = side.commit("no", "").unwrap_err();
    assert_eq!(error.code, Code::IllegalOperation);
    assert!(side.merge_continue(None, None).is_err(), "a conflict is left");
    // Commits made so far survive a collection and an opening.
    frond_vcs::reclaim(&frond, 0, ReclaimOptions { thorough: true, ..Default::default() }).unwrap();
    frond.close().unwrap();
    drop((side, frond));
    let frond = open(&disk);
    let side = shop(&frond, "side");
    let conflict = side.conflicts(None).unwrap().remove(0);
    side.resolve_conflict(&conflict.id, &Resolution::Theirs).unwrap();
    assert!(matches!(side.merge_continue(None, None), Ok(MergeOutcome::Merged { .. })));
    assert_eq!(messages(&side), ["three", "two", "one", "main", "first"]);
    assert_eq!(all(&side, "things"), [thing(1, 1), thing(2, 2), thing(3, 3)]);
    assert_eq!(all(&shop(&frond, "side~1"), "things")[2], thing(3, 0));
    let authors: Vec<_> = side.log(Some(3), None).unwrap();
    assert!(authors.iter().all(|commit| commit.author == "Bob"));
    let by_index = find(&side, "things", Some(document! { "a": 2_i32 }), Some("a_1"));
    assert_eq!(by_index, [thing(2, 2)]);
    assert!(side.status().unwrap().collections.is_empty());
    side.undo(None, None).unwrap();
    assert_eq!((messages(&side), all(&side, "things")), before);
    frond.engine().check().unwrap();
}

#[test]
fn a_commit_is_skipped_or_all_is_given_up() {
    let disk = SimDisk::new(1);
    let frond = open(&disk);
    let (_, side) = diverged(&frond);
    let before = (messages(&side), all(&side, "things"));
    side.rebase("main", &rules()).unwrap();
    side.merge_abort().unwrap();
    assert_eq!((messages(&side), all(&side, "things")), before);
    assert!(side.status().unwrap().collections.is_empty());
    assert!(side.merge_skip().is_err() && side.merge_continue(None, None).is_err());
    side.rebase("main", &rules()).unwrap();
    side.merge_skip().unwrap();
    assert_eq!(messages(&side), ["three", "one", "main", "first"]);
    assert_eq!(all(&side, "things"), [thing(1, 1), thing(2, 20), thing(3, 3)]);
    assert!(side.status().unwrap().merging.is_none());
}

#[test]
fn a_commit_resolved_to_nothing_is_left_out() {
    let disk = SimDisk::new(1);
    let frond = open(&disk);
    let (_, side) = diverged(&frond);
    side.rebase("main", &rules()).unwrap();
    let conflict = side.conflicts(None).unwrap().remove(0);
    side.resolve_conflict(&conflict.id, &Resolution::Ours).unwrap();
    side.merge_continue(None, None).unwrap();
    assert_eq!(messages(&side), ["three", "one", "main", "first"]);
}

#[test]
fn conflicts_of_the_schema_are_decided() {
    for kind in [PickKind::Pick, PickKind::Revert] {
        for theirs in [false, true] {
            let disk = SimDisk::new(1);
            let frond = open(&disk);
            let (main, side) = diverged(&frond);
            // Done again, or undone, the commit takes a collection away that the branch changed.
            let (branch, revision, collection) = if kind == PickKind::Pick {
                side.drop_collection("things").unwrap();
                insert(&side, "other", &[thing(1, 1)]);
                side.commit("drops", "").unwrap();
                (&main, "side", "things")
            } else {
                insert(&side, "new", &[thing(1, 1)]);
                insert(&side, "other", &[thing(1, 1)]);
                side.commit("makes", "").unwrap();
                put(&side, "new", &thing(1, 2)).unwrap();
                side.commit("changes", "").unwrap();
                (&side, "HEAD~1", "new")
            };
            let revision = revision.to_owned();
            let request = PickRequest { revision, kind, ..PickRequest::default() };
            let outcome = branch.pick(&request).unwrap();
            assert!(matches!(outcome, MergeOutcome::Conflicts { .. }), "{outcome:?}");
            let conflict = branch.conflicts(None).unwrap().remove(0);
            assert_eq!(conflict.kind, ConflictKind::Collection);
            let resolution = if theirs { Resolution::Theirs } else { Resolution::Ours };
            branch.resolve_conflict(&conflict.id, &resolution).unwrap();
            assert!(matches!(branch.merge_continue(None, None), Ok(MergeOutcome::Merged { .. })));
            assert_eq!(all(branch, collection).is_empty(), theirs);
            assert_eq!(all(branch, "other").is_empty(), kind == PickKind::Revert);
            assert_eq!(branch.log(Some(1), None).unwrap()[0].parents.len(), 1);
            assert!(branch.status().unwrap().collections.is_empty());
        }
    }
}
