//! Goal: writes while a merge waits, or before a change is undone, are never lost silently. Method:
//! each way to end a merge, with writes meanwhile into documents that the merge touched and others,
//! and each undone.

use frond_db::{Frond, ReclaimOptions};
use frond_doc::{DocumentBuf, document, extended_json};
use frond_vcs::Repository;
use frond_vcs::{MergeOutcome, PickKind, PickRequest, Resolution};

use super::{all, index, insert, merge, new, put, remove, shop};

fn doc(id: i32, a: i32, b: i32) -> DocumentBuf {
    document! { "_id": id, "a": a, "b": b }
}

fn order(id: i32) -> DocumentBuf {
    document! { "_id": id }
}

/// Document 1 conflicts on `a`, 2 merges cleanly, and 9 comes from the side.
fn branches() -> (Frond, Repository, Repository) {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[doc(1, 0, 0), doc(2, 0, 0), doc(3, 0, 0)]);
    insert(&main, "orders", &[order(0)]);
    index(&main, "things", document! { "b": 1_i32 }, false);
    main.commit("first", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    put(&side, "things", &doc(1, 2, 0)).unwrap();
    put(&side, "things", &doc(2, 2, 0)).unwrap();
    insert(&side, "things", &[doc(9, 9, 9)]);
    insert(&side, "theirs", &[order(1)]);
    side.commit("side", "").unwrap();
    put(&main, "things", &doc(1, 1, 0)).unwrap();
    put(&main, "things", &doc(2, 0, 1)).unwrap();
    main.commit("main", "").unwrap();
    (frond, main, side)
}

/// Makes a client's writes meanwhile: in collections and documents that the merge didn't touch, and
/// in others of a document's fields.
fn write(main: &Repository) {
    insert(main, "orders", &[order(5)]);
    insert(main, "new", &[order(1)]);
    insert(main, "things", &[doc(6, 6, 6)]);
    let document = document! { "_id": 3_i32, "a": 3_i32, "b": 0_i32 };
    put(main, "things", &document).unwrap();
    index(main, "orders", document! { "k": 1_i32 }, false);
}

fn check_written(main: &Repository) {
    assert_eq!(all(main, "orders"), [order(0), order(5)]);
    assert_eq!(all(main, "new"), [order(1)]);
    let indexes = main.list_indexes("orders").unwrap();
    assert!(indexes.iter().any(|spec| spec.name == "k_1"));
    let things = all(main, "things");
    assert!(things.contains(&doc(6, 6, 6)) && things.contains(&doc(3, 3, 0)), "{things:?}");
    let checked = main.check_collection("things", &Default::default()).unwrap();
    assert!(checked.is_valid());
}

fn whys(main: &Repository) -> Vec<String> {
    main.reflog(Some("main")).unwrap().into_iter().map(|change| change.why).collect()
}

#[test]
fn writes_since_a_change_stay_when_it_is_undone() {
    for how in ["merge", "reset", "revert"] {
        let (_frond, main, _side) = branches();
        match how {
            "merge" => merge_with_theirs(&main),
            "reset" => drop(main.reset(Some("main~1"), true).unwrap()),
            _ => {
                let (revision, kind) = ("main".to_owned(), PickKind::Revert);
                main.pick(&PickRequest { revision, kind, ..PickRequest::default() }).unwrap();
            }
        }
        let before = [doc(1, 1, 0), doc(2, 0, 1), doc(3, 3, 0), doc(6, 6, 6)];
        write(&main);
        assert_ne!(all(&main, "things"), before, "{how}");
        let undone = main.undo(None, None).unwrap();
        assert!(undone.set_aside.is_empty(), "{how}: {:?}", undone.set_aside);
        check_written(&main);
        assert_eq!(all(&main, "things"), before, "{how}");
        assert_eq!(all(&main, "theirs").len(), 0, "{how}");
    }
}

#[test]
fn writes_to_undone_fields_are_set_aside_and_reported() {
    let (_frond, main, _side) = branches();
    merge_with_theirs(&main);
    put(&main, "things", &doc(2, 7, 1)).unwrap();
    insert(&main, "orders", &[order(5)]);
    assert_eq!(main.undo(None, None).unwrap().set_aside, ["things"]);
    assert_eq!(all(&main, "things"), [doc(1, 1, 0), doc(2, 0, 1), doc(3, 0, 0)]);
    assert_eq!(all(&main, "orders"), [order(0), order(5)]);
    insert(&main, "orders", &[order(6)]);
    let undoing = main.reflog(Some("main")).unwrap()[0].change;
    main.undo(None, Some(undoing)).unwrap();
    let things = all(&main, "things");
    assert_eq!(things, [doc(1, 2, 0), doc(2, 7, 1), doc(3, 0, 0), doc(9, 9, 9)]);
    assert_eq!(all(&main, "orders"), [order(0), order(5), order(6)]);
}

/// Merges the side; what is in conflict is as it is there.
#[test]
fn a_reset_between_an_undo_and_its_undo_stays() {
    let (_frond, main, _side) = branches();
    merge_with_theirs(&main);
    let newest = || main.reflog(Some("main")).unwrap()[0].change;
    let mut merged = true;
    for round in 0..5 {
        // Written before the one, and back as it was before the other, time after time.
        let (c, orders) =
            if round % 2 == 0 { (3, vec![order(0), order(5)]) } else { (0, vec![order(0)]) };
        put(&main, "things", &doc(3, c, 0)).unwrap();
        match round % 2 {
            0 => insert(&main, "orders", &[order(5)]),
            _ => remove(&main, "orders", 5),
        }
        let undone = main.undo(None, Some(newest())).unwrap();
        assert!(undone.set_aside.is_empty(), "{:?}", undone.set_aside);
        merged = !merged;
        let things = all(&main, "things");
        assert_eq!(things.contains(&doc(9, 9, 9)), merged);
        assert!(things.contains(&doc(3, c, 0)), "{things:?}");
        assert_eq!(all(&main, "orders"), orders);
    }
}

#[test]
fn changed_definitions_are_set_aside_and_reported() {
    let (_frond, main, side) = branches();
    let define = |database: &Repository, below: i32| {
        let limit = document! { "$lt": below };
        let rule = document! { "a": &limit };
        database.change_collection("things", document! { "validator": &rule }.view()).unwrap();
    };
    define(&side, 100);
    index(&side, "orders", document! { "k": 1_i32 }, false);
    side.commit("strict", "").unwrap();
    merge_with_theirs(&main);
    define(&main, 200);
    assert_eq!(main.undo(None, None).unwrap().set_aside, ["things"]);
    let undoing = main.reflog(Some("main")).unwrap()[0].change;
    // The collections that were set aside are there again, and no definition changed since.
    assert!(main.undo(None, Some(undoing)).unwrap().set_aside.is_empty());
}

#[test]
fn a_view_in_the_place_of_a_dropped_collection_is_set_aside_and_reported() {
    let (_frond, main, side) = branches();
    side.drop_collection("orders").unwrap();
    side.commit("no orders", "").unwrap();
    merge_with_theirs(&main);
    let view = document! { "viewOn": "things" };
    main.create_collection("orders", view.view()).unwrap();
    assert_eq!(main.undo(None, None).unwrap().set_aside, ["orders"]);
    assert_eq!(all(&main, "orders"), [order(0)]);
}

#[test]
fn an_index_that_can_not_be_sets_aside_its_collection_alone() {
    let (_frond, main, _side) = branches();
    let arrays = extended_json::parse(r#"{"_id": 7, "x": [1], "y": [1]}"#).unwrap();
    insert(&main, "things", &[arrays]);
    main.commit("arrays", "").unwrap();
    main.reset(Some("main~1"), true).unwrap();
    index(&main, "things", document! { "x": 1, "y": 1 }, false);
    insert(&main, "orders", &[order(5)]);
    insert(&main, "new", &[order(1)]);
    assert_eq!(main.undo(None, None).unwrap().set_aside, ["things"]);
    assert_eq!(all(&main, "things").len(), 4);
    assert_eq!(all(&main, "orders"), [order(0), order(5)]);
    assert_eq!(all(&main, "new"), [order(1)]);
}

#[test]
fn changes_of_later_steps_are_set_aside_by_a_skip_and_reported() {
    let (_frond, main, _side) = branches();
    put(&main, "things", &doc(3, 0, 7)).unwrap();
    main.commit("main again", "").unwrap();
    main.rebase("side", &Default::default()).unwrap();
    put(&main, "things", &doc(3, 0, 99)).unwrap();
    insert(&main, "orders", &[order(5)]);
    let (outcome, set_aside) = main.merge_skip().unwrap();
    assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
    assert_eq!(set_aside, ["things"]);
    assert!(all(&main, "things").contains(&doc(3, 0, 7)));
    assert_eq!(all(&main, "orders"), [order(0), order(5)]);
}

#[test]
fn a_branch_that_was_made_again_is_not_replaced_by_the_one_that_was_deleted() {
    let (frond, main, side) = branches();
    drop(side);
    main.delete_branch("side", true).unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    insert(&side, "new", &[order(1)]);
    let error = main.undo(Some("side"), None).unwrap_err();
    assert!(error.message.contains("was made again"), "{error:?}");
    assert_eq!(all(&side, "new"), [order(1)]);
}

#[test]
fn the_undo_of_a_drop_is_not_undone() {
    let (_frond, main, _side) = branches();
    main.drop_collection("orders").unwrap();
    main.undo(None, None).unwrap();
    let undoing = main.reflog(Some("main")).unwrap()[0].change;
    let error = main.undo(None, Some(undoing)).unwrap_err();
    assert!(error.message.contains("drop it again"), "{error:?}");
    assert_eq!(all(&main, "orders"), [order(0)]);
}

fn merge_with_theirs(main: &Repository) {
    merge(main, "side").unwrap();
    let conflict = main.conflicts(None).unwrap().remove(0);
    main.resolve_conflict(&conflict.id, &Resolution::Theirs).unwrap();
    main.merge_continue(None, None).unwrap();
}

#[test]
fn an_abort_takes_back_what_the_merge_did_and_nothing_else() {
    for resolves in [false, true] {
        let (_frond, main, _side) = branches();
        merge(&main, "side").unwrap();
        assert_eq!(all(&main, "theirs").len(), 1);
        write(&main);
        if resolves {
            let conflict = main.conflicts(None).unwrap().remove(0);
            main.resolve_conflict(&conflict.id, &Resolution::Theirs).unwrap();
        }
        let during = all(&main, "things");
        assert!(main.merge_abort().unwrap().is_empty());
        check_written(&main);
        let expected = [doc(1, 1, 0), doc(2, 0, 1), doc(3, 3, 0), doc(6, 6, 6)];
        assert_eq!(all(&main, "things"), expected);
        assert_eq!(all(&main, "theirs").len(), 0);
        assert!(main.status().unwrap().merging.is_none());
        // Undone, the merge waits as it did.
        assert_eq!(main.undo(None, None).unwrap().change.why, "merge: aborted");
        check_written(&main);
        assert_eq!(all(&main, "things"), during);
        assert!(main.status().unwrap().merging.is_some());
        let left = main.conflicts(None).unwrap();
        assert_eq!(left.len(), usize::from(!resolves));
        for conflict in left {
            main.resolve_conflict(&conflict.id, &Resolution::Theirs).unwrap();
        }
        let outcome = main.merge_continue(None, None).unwrap();
        let MergeOutcome::Merged { commit } = outcome else { panic!("{outcome:?}") };
        assert_eq!(commit.parents.len(), 2);
        check_written(&main);
        assert_eq!(all(&main, "things")[0], doc(1, 2, 0));
    }
}

/// The merge takes `n` away, which ours had moved behind `s`.
#[test]
fn an_abort_brings_the_order_of_fields_back() {
    for resolution in [Resolution::Ours, Resolution::Theirs] {
        let frond = new();
        let main = shop(&frond, "");
        let (zero, one, two) = (0_i32, 1_i32, 2_i32);
        let base = document! { "_id": 1_i32, "n": zero, "s": zero, "z": zero };
        let ours = document! { "_id": 1_i32, "c": one, "s": zero, "n": zero, "z": zero };
        let theirs = document! { "_id": 1_i32, "c": two, "s": zero, "z": zero };
        insert(&main, "things", &[base]);
        main.commit("first", "").unwrap();
        main.create_branch("side", None).unwrap();
        let side = shop(&frond, "side");
        put(&side, "things", &theirs).unwrap();
        side.commit("side", "").unwrap();
        put(&main, "things", &ours).unwrap();
        main.commit("main", "").unwrap();
        merge(&main, "side").unwrap();
        let conflict = main.conflicts(None).unwrap().remove(0);
        assert_eq!(conflict.paths, ["c"]);
        main.resolve_conflict(&conflict.id, &resolution).unwrap();
        assert!(main.merge_abort().unwrap().is_empty());
        assert_eq!(all(&main, "things"), [ours]);
        assert!(main.status().unwrap().collections.is_empty());
    }
}

#[test]
fn changes_that_overlap_the_merge_are_set_aside_and_reported() {
    let (_frond, main, _side) = branches();
    merge(&main, "side").unwrap();
    // The merge made a to 2 there; b it left alone.
    put(&main, "things", &doc(2, 7, 1)).unwrap();
    put(&main, "things", &doc(9, 9, 7)).unwrap();
    insert(&main, "theirs", &[order(2)]);
    insert(&main, "orders", &[order(5)]);
    assert_eq!(main.merge_abort().unwrap(), ["theirs", "things"]);
    assert_eq!(all(&main, "things"), [doc(1, 1, 0), doc(2, 0, 1), doc(3, 0, 0)]);
    assert_eq!(all(&main, "orders"), [order(0), order(5)]);
    main.undo(None, None).unwrap();
    assert_eq!(all(&main, "things")[1..], [doc(2, 7, 1), doc(3, 0, 0), doc(9, 9, 7)]);
    assert_eq!(all(&main, "theirs"), [order(1), order(2)]);
    assert_eq!(main.merge_abort().unwrap(), ["theirs", "things"]);
}

#[test]
fn a_merge_that_waits_for_a_decision_has_done_nothing() {
    let (_frond, main, side) = branches();
    side.drop_collection("orders").unwrap();
    side.commit("dropped", "").unwrap();
    put(&main, "orders", &document! { "_id": 0_i32, "x": 1_i32 }).unwrap();
    main.commit("changed", "").unwrap();
    for commits in [false, true] {
        let outcome = merge(&main, "side").unwrap();
        assert!(matches!(outcome, MergeOutcome::Conflicts { .. }), "{outcome:?}");
        insert(&main, "new", &[order(i32::from(commits))]);
        remove(&main, "things", 2 + i32::from(commits));
        if commits {
            main.commit("meanwhile", "").unwrap();
        }
        let before = (all(&main, "new"), all(&main, "things"));
        assert!(main.merge_abort().unwrap().is_empty());
        assert_eq!((all(&main, "new"), all(&main, "things")), before);
        // The abort is undone, not the commit before it.
        assert_eq!(whys(&main)[0], "merge: aborted");
        let head = main.status().unwrap().head;
        assert_eq!(main.undo(None, None).unwrap().change.why, "merge: aborted");
        assert_eq!((all(&main, "new"), all(&main, "things")), before);
        let status = main.status().unwrap();
        assert!(status.merging.is_some() && status.head == head);
        assert!(main.merge_abort().unwrap().is_empty());
        if !commits {
            main.commit("after", "").unwrap();
        }
    }
    assert_eq!(all(&main, "new").len(), 2);
    assert_eq!(all(&main, "things").len(), 1);
}

#[test]
fn picks_reverts_and_rebases_that_are_aborted() {
    for kind in ["pick", "revert", "rebase"] {
        let (_frond, main, _side) = branches();
        let pick = |revision: &str, kind| {
            let revision = revision.to_owned();
            main.pick(&PickRequest { revision, kind, ..PickRequest::default() })
        };
        let committed = all(&main, "things");
        match kind {
            "pick" => drop(pick("side", PickKind::Pick).unwrap()),
            "revert" => {
                put(&main, "things", &doc(1, 5, 0)).unwrap();
                main.commit("again", "").unwrap();
                pick("main~1", PickKind::Revert).unwrap();
            }
            _ => drop(main.rebase("side", &Default::default()).unwrap()),
        }
        assert!(main.status().unwrap().merging.is_some(), "{kind}");
        write(&main);
        assert!(main.merge_abort().unwrap().is_empty(), "{kind}");
        check_written(&main);
        let a = if kind == "revert" { 5 } else { 1 };
        assert_eq!(all(&main, "things")[..2], [doc(1, a, 0), committed[1].clone()], "{kind}");
        main.undo(None, None).unwrap();
        assert!(main.status().unwrap().merging.is_some(), "{kind}");
        check_written(&main);
    }
}

/// Rebases two commits that both conflict: writes while the first waits are in its commit if it is
/// continued; an abort at the second one must not lose them, nor must leaving one of them out.
#[test]
fn a_rebase_that_waits_twice() {
    for (skips, aborts) in [(false, true), (true, true), (true, false), (false, false)] {
        let (_frond, main, side) = branches();
        put(&main, "things", &doc(3, 1, 1)).unwrap();
        main.commit("main again", "").unwrap();
        put(&side, "things", &doc(3, 2, 1)).unwrap();
        side.commit("side again", "").unwrap();
        main.rebase("side", &Default::default()).unwrap();
        insert(&main, "orders", &[order(5)]);
        let go_on = |skips: bool| {
            if skips {
                return main.merge_skip().unwrap().0;
            }
            for conflict in main.conflicts(None).unwrap() {
                main.resolve_conflict(&conflict.id, &Resolution::Theirs).unwrap();
            }
            main.merge_continue(None, None).unwrap()
        };
        let outcome = go_on(skips);
        assert!(matches!(outcome, MergeOutcome::Conflicts { .. }), "{outcome:?}");
        assert_eq!(whys(&main).contains(&"rebase: skipped".to_owned()), skips);
        assert_eq!(all(&main, "orders"), [order(0), order(5)]);
        insert(&main, "orders", &[order(6)]);
        if aborts {
            assert!(main.merge_abort().unwrap().is_empty());
            let expected = [doc(1, 1, 0), doc(2, 0, 1), doc(3, 1, 1)];
            assert_eq!(all(&main, "things"), expected);
        } else {
            go_on(skips);
            let expected = if skips { doc(3, 2, 1) } else { doc(3, 1, 1) };
            assert!(all(&main, "things").contains(&expected));
        }
        assert_eq!(all(&main, "orders"), [order(0), order(5), order(6)], "{skips} {aborts}");
        assert!(main.status().unwrap().merging.is_none());
        main.undo(None, None).unwrap();
        let is_undone_skip = skips || aborts;
        assert_eq!(main.status().unwrap().merging.is_some(), is_undone_skip);
        assert_eq!(all(&main, "orders"), [order(0), order(5), order(6)], "{skips} {aborts}");
    }
}

#[test]
fn a_reset_or_a_deletion_while_a_merge_waits_is_undone_with_the_merge() {
    let (frond, main, side) = branches();
    merge(&side, "main").unwrap();
    insert(&side, "orders", &[order(5)]);
    let before = all(&side, "things");
    for deletes in [false, true] {
        if deletes {
            main.delete_branch("side", true).unwrap();
            main.undo(Some("side"), None).unwrap();
        } else {
            side.reset(None, true).unwrap();
            assert!(side.status().unwrap().merging.is_none());
            side.undo(None, None).unwrap();
        }
        let side = shop(&frond, "side");
        assert!(side.status().unwrap().merging.is_some());
        assert_eq!(side.conflicts(None).unwrap().len(), 1);
        assert_eq!(all(&side, "things"), before);
        assert_eq!(all(&side, "orders").len(), 2);
    }
    side.merge_abort().unwrap();
    assert_eq!(all(&side, "things").len(), 4);
    assert_eq!(all(&side, "orders").len(), 2);
}

#[test]
fn no_pick_and_no_merge_comes_while_a_merge_waits() {
    let (_frond, main, _side) = branches();
    assert!(matches!(merge(&main, "side").unwrap(), MergeOutcome::Conflicts { .. }));
    let things = all(&main, "things");
    for kind in [PickKind::Pick, PickKind::Revert] {
        let request = PickRequest { revision: "side".to_owned(), kind, ..PickRequest::default() };
        let refused = main.pick(&request).expect_err("a merge waits");
        let expected = "a pick or a revert is not possible while a merge into main waits";
        assert!(refused.message.starts_with(expected), "{}", refused.message);
    }
    assert!(merge(&main, "side").is_err());
    assert_eq!(all(&main, "things"), things);
}

/// Its branch is gone, and so is all that could be undone: nothing else names what is merged.
#[test]
fn chunks_of_a_waiting_merge_survive_a_collection() {
    let (frond, main, side) = branches();
    let theirs = side.status().unwrap().head.expect("it was committed");
    assert!(matches!(merge(&main, "side").unwrap(), MergeOutcome::Conflicts { .. }));
    drop(side);
    main.delete_branch("side", true).unwrap();
    let options = ReclaimOptions { thorough: true, bytes_a_second: None, purge: false };
    let reclaimed = frond_vcs::reclaim(&frond, 0, options).unwrap();
    assert_eq!(reclaimed.commits_forgotten, 0);
    let conflict = main.conflicts(None).unwrap().remove(0);
    main.resolve_conflict(&conflict.id, &Resolution::Theirs).unwrap();
    main.merge_continue(None, None).unwrap();
    assert!(main.log(None, None).unwrap().iter().any(|commit| commit.id == theirs));
    let merged = Repository::open(&frond, &format!("shop@{theirs}")).unwrap();
    assert_eq!(all(&merged, "things").len(), 4);
    assert_eq!(all(&main, "things")[0], doc(1, 2, 0));
    frond.engine().check().unwrap();
}

/// Two conflicts of which one is resolved, writes meanwhile, and theirs in no branch any more. The
/// database comes back under another name, so nothing may go by the old one.
#[test]
fn a_dropped_database_comes_back_with_the_merge_that_waits() {
    let (frond, main, side) = branches();
    put(&side, "things", &doc(3, 71, 0)).unwrap();
    side.commit("more", "").unwrap();
    put(&main, "things", &doc(3, 72, 0)).unwrap();
    main.commit("more", "").unwrap();
    let theirs = side.status().unwrap().head.expect("it was committed");
    merge(&main, "side").unwrap();
    drop(side);
    main.delete_branch("side", true).unwrap();
    let conflicts = main.conflicts(None).unwrap();
    assert_eq!(conflicts.len(), 2);
    assert_eq!(main.resolve_conflict(&conflicts[1].id, &Resolution::Theirs).unwrap(), 1);
    insert(&main, "orders", &[order(5)]);
    let (things, orders) = (all(&main, "things"), all(&main, "orders"));
    let waits = main.status().unwrap().merging;

    main.drop_database().unwrap();
    let options = ReclaimOptions { thorough: true, bytes_a_second: None, purge: false };
    frond_vcs::reclaim(&frond, 86_400_000, options).unwrap();
    let back = Repository::open(&frond, "found").unwrap();
    back.undrop("shop").unwrap();
    assert_eq!(back.status().unwrap().merging, waits);
    assert_eq!(back.conflicts(None).unwrap(), conflicts[..1]);
    assert_eq!((all(&back, "things"), all(&back, "orders")), (things, orders));
    assert!(back.merge_continue(None, None).is_err(), "a conflict is left");
    assert_eq!(back.resolve_conflict(&conflicts[0].id, &Resolution::Theirs).unwrap(), 0);
    back.merge_continue(None, None).unwrap();
    assert!(back.log(None, None).unwrap().iter().any(|commit| commit.id == theirs));
    let merged = [doc(1, 2, 0), doc(2, 2, 1), doc(3, 71, 0), doc(9, 9, 9)];
    assert_eq!(all(&back, "things"), merged);
    frond.engine().check().unwrap();
}

/// As above, but the merge is given up once the database is back: only what it did goes.
#[test]
fn a_merge_that_came_back_with_its_database_is_aborted() {
    let (frond, main, _side) = branches();
    merge(&main, "side").unwrap();
    write(&main);
    main.drop_database().unwrap();
    main.undrop("shop").unwrap();
    assert!(main.merge_abort().unwrap().is_empty(), "nothing is set aside");
    check_written(&main);
    let things = [doc(1, 1, 0), doc(2, 0, 1), doc(3, 3, 0), doc(6, 6, 6)];
    assert_eq!(all(&main, "things"), things);
    frond.engine().check().unwrap();
}

#[test]
fn an_abort_is_undone_under_the_new_name_of_its_branch() {
    let (frond, main, side) = branches();
    merge(&side, "main").unwrap();
    let conflicts = side.conflicts(None).unwrap();
    side.merge_abort().unwrap();
    main.rename_branch("side", "aside").unwrap();
    let aside = shop(&frond, "aside");
    aside.undo(None, None).unwrap();
    assert_eq!(aside.conflicts(None).unwrap(), conflicts);
    assert_eq!(aside.resolve_conflict(&conflicts[0].id, &Resolution::Theirs).unwrap(), 0);
    aside.merge_continue(None, None).unwrap();
    assert!(all(&aside, "things").contains(&doc(1, 1, 0)));
}

#[test]
fn conflicts_go_with_their_collection_when_it_is_renamed() {
    for aborts in [false, true] {
        let (frond, main, _side) = branches();
        merge(&main, "side").unwrap();
        main.rename_collection("things", "goods", false).unwrap();
        insert(&main, "goods", &[doc(6, 6, 6)]);
        let conflicts = main.conflicts(None).unwrap();
        let named: Vec<_> = conflicts.iter().map(|each| &each.collection[..]).collect();
        assert_eq!(named, ["goods"]);
        assert_eq!(main.conflicts(Some("goods")).unwrap(), conflicts);
        let goods = if aborts {
            assert!(main.merge_abort().unwrap().is_empty(), "nothing is set aside");
            vec![doc(1, 1, 0), doc(2, 0, 1), doc(3, 0, 0), doc(6, 6, 6)]
        } else {
            assert_eq!(main.resolve_conflict(&conflicts[0].id, &Resolution::Theirs).unwrap(), 0);
            main.merge_continue(None, None).unwrap();
            vec![doc(1, 2, 0), doc(2, 2, 1), doc(3, 0, 0), doc(6, 6, 6), doc(9, 9, 9)]
        };
        assert_eq!(all(&main, "goods"), goods, "{aborts}");
        assert!(all(&main, "things").is_empty(), "{aborts}: no other one was made");
        frond.engine().check().unwrap();
    }
}

/// What takes the place of a collection isn't what conflicted.
#[test]
fn conflicts_go_with_the_collection_that_a_renaming_drops() {
    let (_frond, main, _side) = branches();
    merge(&main, "side").unwrap();
    insert(&main, "fresh", &[doc(1, 40, 40)]);
    main.rename_collection("fresh", "things", true).unwrap();
    assert!(main.conflicts(None).unwrap().is_empty());
    main.merge_continue(None, None).unwrap();
    assert_eq!(all(&main, "things"), [doc(1, 40, 40)]);
}
