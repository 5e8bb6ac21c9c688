//! Goal: a collection that both branches renamed, or that one renamed and the other dropped, is
//! resolved as a whole, by either side, and keeps both sides' changes to its documents.

use frond_db::Frond;
use frond_doc::{DocumentBuf, document};
use frond_testkit::Random;
use frond_testkit::random::{assert_met, for_seeds};
use frond_vcs::{
    ConflictKind, MergeOutcome, MergeRequest, MergeRules, MergeSide, PickKind, PickRequest,
    Repository, Resolution,
};

use super::model::naive::{
    COLLECTIONS, IDS, OURS, THEIRS, Whole, merge_wholes, random_fields, to_document,
};
use super::{all, index, insert, merge, new, put, remove, shop};

fn thing(id: i32, a: i32) -> DocumentBuf {
    document! { "_id": id, "a": a }
}

/// Five things, committed, with a branch beside them.
fn two_branches() -> (Frond, Repository, Repository) {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &(0..5).map(|id| thing(id, 0)).collect::<Vec<_>>());
    index(&main, "things", document! { "a": 1_i32 }, false);
    main.commit("first", "").expect("something changed");
    main.create_branch("side", None).expect("a good name");
    let side = shop(&frond, "side");
    (frond, main, side)
}

/// Renames the things, or drops them, and changes one of them.
fn change(database: &Repository, to: Option<&str>, id: i32) {
    match to {
        Some(to) => {
            database.rename_collection("things", to, false).expect("there are things");
            put(database, to, &thing(id, 7)).expect("a good document");
        }
        None => assert!(database.drop_collection("things").expect("there are things")),
    }
    database.commit("a change", "").expect("something changed");
}

fn names(database: &Repository) -> Vec<String> {
    let found = database.list_collections().expect("they can be listed");
    found.into_iter().map(|found| found.name).collect()
}

fn name_of(side: Option<&DocumentBuf>) -> Option<&str> {
    side.and_then(|side| side.get("renamedTo")).and_then(|name| name.as_str())
}

#[test]
fn a_renaming_against_another_or_a_drop_is_decided_by_a_side() {
    for (ours, theirs) in
        [(Some("b"), Some("c")), (Some("c"), Some("b")), (Some("b"), None), (None, Some("c"))]
    {
        for chosen in [MergeSide::Ours, MergeSide::Theirs] {
            let (_frond, main, side) = two_branches();
            change(&main, ours, 1);
            change(&side, theirs, 2);
            let name = if chosen == MergeSide::Ours { ours } else { theirs };
            let both = ours.is_some() && theirs.is_some();
            let expected = |id| {
                thing(
                    id,
                    i32::from(
                        id == 1 && (both || chosen == MergeSide::Ours)
                            || id == 2 && (both || chosen == MergeSide::Theirs),
                    ) * 7,
                )
            };
            let check = || {
                assert_eq!(names(&main), name.into_iter().collect::<Vec<_>>());
                let Some(name) = name else { return };
                assert_eq!(all(&main, name), (0..5).map(expected).collect::<Vec<_>>());
                assert_eq!(main.list_indexes(name).expect("it is there").len(), 2);
            };
            let request = MergeRequest { merge_in: "side".to_owned(), ..MergeRequest::default() };
            let preview = main.preview_merge(&request).expect("it is told");
            let MergeOutcome::Conflicts { counts } = preview else { panic!("{preview:?}") };
            assert_eq!(counts, [("things".to_owned(), 1)]);
            assert_eq!(names(&main), ours.into_iter().collect::<Vec<_>>(), "only told");

            assert!(matches!(merge(&main, "side"), Ok(MergeOutcome::Conflicts { .. })));
            let conflicts = main.conflicts(None).expect("they can be listed");
            assert_eq!(conflicts.len(), 1);
            let conflict = &conflicts[0];
            assert_eq!(
                (&conflict.collection[..], conflict.kind),
                ("things", ConflictKind::Collection)
            );
            assert!(conflict.base.is_some());
            assert_eq!(
                (name_of(conflict.ours.as_ref()), name_of(conflict.theirs.as_ref())),
                (ours, theirs)
            );
            let resolution = match chosen {
                MergeSide::Ours => Resolution::Ours,
                MergeSide::Theirs => Resolution::Theirs,
            };
            assert_eq!(main.resolve_conflict(&conflict.id, &resolution).expect("decided"), 0);
            let outcome = main.merge_continue(None, None).expect("nothing is left");
            assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
            check();

            main.undo(None, None).expect("the merge was the last");
            let rules = MergeRules { on_conflict: Some(chosen), ..MergeRules::default() };
            let outcome = main.merge(&MergeRequest { rules, ..request }).expect("it is decided");
            assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
            check();
        }
    }
}

#[test]
fn a_renaming_to_the_same_name_is_none() {
    let (_frond, main, side) = two_branches();
    change(&main, Some("b"), 1);
    change(&side, Some("b"), 2);
    let outcome = merge(&main, "side").expect("both agree");
    assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
    assert_eq!(names(&main), ["b"]);
    assert_eq!(all(&main, "b")[1..3], [thing(1, 7), thing(2, 7)]);
}

/// A collection that has most of the documents is the renamed one; one that has half of them is
/// another.
#[test]
fn a_collection_with_other_documents_is_another() {
    let (_frond, main, side) = two_branches();
    assert!(main.drop_collection("things").expect("there are things"));
    insert(&main, "b", &[0, 1].map(|id| thing(id, 0)));
    main.commit("dropped, and another one", "").expect("something changed");
    assert!(side.drop_collection("things").expect("there are things"));
    insert(&side, "c", &[0, 1].map(|id| thing(id, 0)));
    side.commit("dropped, and another one", "").expect("something changed");
    let outcome = merge(&main, "side").expect("nothing is in conflict");
    assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
    assert_eq!(names(&main), ["b", "c"]);

    // One that took another's place, as with `dropTarget`.
    let (_frond, main, side) = two_branches();
    insert(&main, "b", &[thing(9, 9)]);
    main.commit("two", "").expect("something changed");
    merge(&side, "main").expect("a fast-forward");
    main.rename_collection("things", "b", true).expect("it takes its place");
    main.commit("renamed", "").expect("something changed");
    change(&side, None, 0);
    assert!(matches!(merge(&main, "side"), Ok(MergeOutcome::Conflicts { .. })));
    let conflicts = main.conflicts(None).expect("they can be listed");
    main.resolve_conflict(&conflicts[0].id, &Resolution::Theirs).expect("decided");
    main.merge_continue(None, None).expect("nothing is left");
    assert_eq!(all(&main, "b"), [thing(9, 9)], "what was there before");
}

/// A copy has most documents of a collection that is still there: it wasn't renamed to that one.
#[test]
fn a_copy_that_both_drop_was_not_renamed() {
    let things = || (0..10).map(|id| thing(id, 1)).collect::<Vec<_>>();
    let expected = |more: &[DocumentBuf]| [&things()[..], more].concat();
    for is_pick in [false, true] {
        let frond = new();
        let main = shop(&frond, "");
        insert(&main, "things", &things());
        insert(&main, "things", &[thing(99, 1)]);
        insert(&main, "copy", &things());
        put(&main, "things", &thing(1, 2)).expect("a good document");
        main.commit("first", "").expect("something changed");
        main.create_branch("side", None).expect("a good name");
        let side = shop(&frond, "side");
        for (branch, id) in [(&side, 50), (&main, 60)] {
            assert!(branch.drop_collection("copy").expect("it is there"));
            insert(branch, "things", &[thing(id, 1)]);
        }
        remove(&side, "things", 99);
        put(&main, "things", &thing(1, 1)).expect("a good document");
        side.commit("on the side", "").expect("something changed");
        main.commit("on main", "").expect("something changed");
        let outcome = match is_pick {
            true => {
                let side = "side".to_owned();
                main.pick(&PickRequest { revision: side, ..PickRequest::default() })
            }
            false => merge(&main, "side"),
        };
        let outcome = outcome.expect("it merges");
        assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
        assert_eq!(all(&main, "things"), expected(&[thing(50, 1), thing(60, 1)]));
    }

    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &things());
    main.commit("first", "").expect("something changed");
    insert(&main, "copy", &things());
    put(&main, "things", &thing(1, 2)).expect("a good document");
    main.commit("copied", "").expect("something changed");
    assert!(main.drop_collection("copy").expect("it is there"));
    insert(&main, "things", &[thing(60, 1)]);
    main.commit("dropped", "").expect("something changed");
    let revert = PickRequest {
        revision: "HEAD~1".to_owned(),
        kind: PickKind::Revert,
        ..PickRequest::default()
    };
    let outcome = main.pick(&revert).expect("it merges");
    assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
    assert_eq!(all(&main, "things"), expected(&[thing(60, 1)]));
    assert_eq!(names(&main), ["things"]);
}

/// An archive that one side gathered isn't the renamed one of those that it was gathered from.
#[test]
fn an_archive_of_several_is_none_of_them() {
    for chosen in [MergeSide::Ours, MergeSide::Theirs] {
        let frond = new();
        let main = shop(&frond, "");
        let orders: Vec<_> = (0..5).map(|id| thing(id, 0)).collect();
        let invoices: Vec<_> = (100..120).map(|id| thing(id, 0)).collect();
        insert(&main, "orders", &orders);
        insert(&main, "invoices", &invoices);
        main.commit("first", "").expect("something changed");
        main.create_branch("side", None).expect("a good name");
        let side = shop(&frond, "side");
        insert(&main, "archive", &[orders, invoices].concat());
        for (branch, names) in [(&main, &["orders", "invoices"][..]), (&side, &["orders"])] {
            for name in names {
                assert!(branch.drop_collection(name).expect("it is there"));
            }
            branch.commit("dropped", "").expect("something changed");
        }
        let rules = MergeRules { on_conflict: Some(chosen), ..MergeRules::default() };
        let request =
            MergeRequest { merge_in: "side".to_owned(), rules, ..MergeRequest::default() };
        main.merge(&request).expect("it is decided");
        assert_eq!(names(&main), ["archive"]);
        assert_eq!(all(&main, "archive").len(), 25);
    }
}

/// A queue that one side emptied into another collection is still the queue that the other side
/// adds to; one without documents is no other collection because documents come.
#[test]
fn of_collections_with_copies_the_most_similar_one_is_followed() {
    // All of `orders` stands in `orders_all`, which sorts before it under their new names.
    let frond = new();
    let main = shop(&frond, "");
    let things = |ids: std::ops::Range<i32>| ids.map(|id| thing(id, 0)).collect::<Vec<_>>();
    insert(&main, "orders", &things(0..10));
    insert(&main, "orders_all", &things(0..18));
    insert(&main, "orders_v2", &things(100..106));
    main.commit("first", "").expect("something changed");
    main.create_branch("side", None).expect("a good name");
    let side = shop(&frond, "side");
    for (from, to) in [("orders", "old"), ("orders_all", "history"), ("orders_v2", "orders")] {
        side.rename_collection(from, to, false).expect("it is there");
    }
    side.commit("other names", "").expect("something changed");
    insert(&main, "orders", &things(200..203));
    main.commit("three new orders", "").expect("something changed");
    merge(&main, "side").expect("no conflict");
    assert_eq!(all(&main, "history"), things(0..18));
    assert_eq!(all(&main, "old"), [things(0..10), things(200..203)].concat());
    assert_eq!(all(&main, "orders"), things(100..106));
}

#[test]
fn moved_documents_do_not_rename_a_collection() {
    for more in [0, 4] {
        let frond = new();
        let main = shop(&frond, "");
        let jobs: Vec<_> = (0..10).map(|id| thing(id, 0)).collect();
        insert(&main, "queue", &jobs);
        main.commit("first", "").expect("something changed");
        main.create_branch("worker", None).expect("a good name");
        let worker = shop(&frond, "worker");
        insert(&worker, "done", &jobs);
        (0..10).for_each(|id| remove(&worker, "queue", id));
        let new_jobs: Vec<_> = (50..50 + more).map(|id| thing(id, 0)).collect();
        insert(&worker, "queue", &new_jobs);
        worker.commit("all done", "").expect("something changed");
        insert(&main, "queue", &[thing(30, 1)]);
        main.commit("another job", "").expect("something changed");
        let outcome = merge(&main, "worker").expect("it merges");
        assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
        assert_eq!(all(&main, "done"), jobs);
        assert_eq!(all(&main, "queue"), [&[thing(30, 1)], &new_jobs[..]].concat());
    }

    let frond = new();
    let main = shop(&frond, "");
    let staged: Vec<_> = (0..10).map(|id| thing(id, 0)).collect();
    insert(&main, "staging", &staged);
    insert(&main, "queue", &[thing(1, 1)]);
    remove(&main, "queue", 1);
    main.commit("first", "").expect("something changed");
    main.create_branch("side", None).expect("a good name");
    let side = shop(&frond, "side");
    insert(&side, "queue", &staged);
    assert!(side.drop_collection("staging").expect("it is there"));
    side.commit("moved", "").expect("something changed");
    insert(&main, "queue", &[thing(30, 1)]);
    main.commit("another job", "").expect("something changed");
    let outcome = merge(&main, "side").expect("it merges");
    assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
    assert_eq!(names(&main), ["queue"]);
    assert_eq!(all(&main, "queue"), [&staged[..], &[thing(30, 1)]].concat());
}

/// A copy of what was doesn't take the name with it, whether a change of all documents comes or is
/// taken back.
#[test]
fn a_copy_before_a_change_of_all_is_a_copy() {
    let things = |a| (0..6).map(|id| thing(id, a)).collect::<Vec<_>>();
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &things(0));
    main.commit("first", "").expect("something changed");
    main.create_branch("side", None).expect("a good name");
    let side = shop(&frond, "side");
    insert(&side, "copy", &things(0));
    things(5).iter().for_each(|it| put(&side, "things", it).expect("a good document"));
    side.commit("all changed", "").expect("something changed");
    insert(&main, "things", &[thing(7, 1)]);
    main.commit("another", "").expect("something changed");
    let outcome = merge(&main, "side").expect("it merges");
    assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
    let seventh = [thing(7, 1)];
    assert_eq!(all(&main, "copy"), things(0));
    assert_eq!(all(&main, "things"), [&things(5)[..], &seventh].concat());

    insert(&side, "things", &seventh);
    side.commit("another", "").expect("something changed");
    let revision = "HEAD~1".to_owned();
    let revert = PickRequest { revision, kind: PickKind::Revert, ..PickRequest::default() };
    let outcome = side.pick(&revert).expect("it merges");
    assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
    assert_eq!(names(&side), ["things"]);
    assert_eq!(all(&side, "things"), [&things(0)[..], &seventh].concat());
}

#[test]
fn a_copy_before_an_import_of_as_much_is_a_copy() {
    for imported in [2, 3, 12] {
        let things = |ids: std::ops::Range<i32>| ids.map(|id| thing(id, 0)).collect::<Vec<_>>();
        let frond = new();
        let main = shop(&frond, "");
        insert(&main, "things", &things(0..3));
        main.commit("first", "").expect("something changed");
        insert(&main, "copy", &things(0..3));
        insert(&main, "things", &things(100..100 + imported));
        main.commit("an import", "").expect("something changed");
        put(&main, "things", &thing(2, 7)).expect("a good document");
        main.commit("an edit", "").expect("something changed");
        let revision = "HEAD~1".to_owned();
        let revert = PickRequest { revision, kind: PickKind::Revert, ..PickRequest::default() };
        let outcome = main.pick(&revert).expect("it merges");
        assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{imported}: {outcome:?}");
        assert_eq!(names(&main), ["things"]);
        assert_eq!(all(&main, "things"), [thing(0, 0), thing(1, 0), thing(2, 7)]);
    }
}

fn swap(database: &Repository, one: &str, two: &str) {
    for (from, to) in [(one, "meanwhile"), (two, one), ("meanwhile", two)] {
        database.rename_collection(from, to, false).expect("it is there");
    }
}

/// A group of things `a`, a larger one `b`, and a branch that has swapped their names.
fn swapped_on_the_side() -> (Frond, Repository, Repository) {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "a", &(0..4).map(|id| thing(id, 0)).collect::<Vec<_>>());
    insert(&main, "b", &(100..120).map(|id| thing(id, 0)).collect::<Vec<_>>());
    main.commit("first", "").expect("something changed");
    main.create_branch("side", None).expect("a good name");
    let side = shop(&frond, "side");
    swap(&side, "a", "b");
    put(&side, "b", &thing(0, 5)).expect("a good document");
    side.commit("swapped, and one changed", "").expect("something changed");
    (frond, main, side)
}

/// What both sides have under some name is there after any merge.
#[test]
fn a_collection_that_changed_names_with_a_dropped_one_stays() {
    for chosen in [MergeSide::Ours, MergeSide::Theirs] {
        let (_frond, main, _side) = swapped_on_the_side();
        put(&main, "a", &thing(1, 7)).expect("a good document");
        assert!(main.drop_collection("b").expect("it is there"));
        main.commit("dropped", "").expect("something changed");
        let merged: Vec<DocumentBuf> =
            [5, 7, 0, 0].into_iter().zip(0..).map(|(a, id)| thing(id, a)).collect();
        let check = || match chosen {
            MergeSide::Ours => {
                assert_eq!(names(&main), ["a"]);
                assert_eq!(all(&main, "a"), merged);
            }
            MergeSide::Theirs => {
                assert_eq!(names(&main), ["a", "b"]);
                assert_eq!((all(&main, "a").len(), all(&main, "b")), (20, merged.clone()));
            }
        };
        let rules = MergeRules { on_conflict: Some(chosen), ..MergeRules::default() };
        let request =
            MergeRequest { merge_in: "side".to_owned(), rules, ..MergeRequest::default() };
        let outcome = main.merge(&request).expect("it is decided");
        assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
        check();
        main.undo(None, None).expect("the merge was the last");

        assert!(matches!(merge(&main, "side"), Ok(MergeOutcome::Conflicts { .. })));
        let conflicts = main.conflicts(None).expect("they can be listed");
        let [conflict] = &conflicts[..] else { panic!("{conflicts:?}") };
        assert_eq!((&conflict.collection[..], conflict.kind), ("b", ConflictKind::Collection));
        assert_eq!(
            (name_of(conflict.ours.as_ref()), name_of(conflict.theirs.as_ref())),
            (None, Some("a"))
        );
        assert!(conflict.base.is_some() && conflict.ours.is_none());
        let resolution = match chosen {
            MergeSide::Ours => Resolution::Ours,
            MergeSide::Theirs => Resolution::Theirs,
        };
        main.resolve_conflict(&conflict.id, &resolution).expect("decided");
        main.merge_continue(None, None).expect("nothing is left");
        check();
    }
}

/// A change goes with its collection, under the name that the other side gave it.
#[test]
fn changes_go_with_collections_that_changed_names() {
    let (_frond, main, _side) = swapped_on_the_side();
    put(&main, "a", &thing(1, 7)).expect("a good document");
    put(&main, "b", &thing(100, 7)).expect("a good document");
    main.commit("changed", "").expect("something changed");
    let outcome = merge(&main, "side").expect("nothing is in conflict");
    assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
    assert_eq!(all(&main, "b")[..2], [thing(0, 5), thing(1, 7)]);
    assert_eq!((all(&main, "b").len(), all(&main, "a").len()), (4, 20));
    assert_eq!(all(&main, "a")[0], thing(100, 7));
}

/// A name that a side has still is the collection's, whatever is under it: the one that was renamed
/// away is taken for a copy, and nothing is lost.
#[test]
fn a_name_that_is_there_still_is_the_collections() {
    let (_frond, main, _side) = swapped_on_the_side();
    main.rename_collection("b", "c", false).expect("it is there");
    insert(&main, "b", &[thing(7, 7)]);
    main.commit("another b", "").expect("something changed");
    let rules = MergeRules { on_conflict: Some(MergeSide::Theirs), ..MergeRules::default() };
    let request = MergeRequest { merge_in: "side".to_owned(), rules, ..MergeRequest::default() };
    main.merge(&request).expect("it is decided");
    assert_eq!(names(&main), ["a", "b", "c"]);
    let things = [(0, 5), (1, 0), (2, 0), (3, 0)].map(|(id, a)| thing(id, a));
    assert_eq!((all(&main, "a"), all(&main, "b")), (vec![thing(7, 7)], things.to_vec()));
    assert_eq!(all(&main, "c").len(), 20);
}

/// Renames, drops and changes at random, in a branch and in its whole copy.
fn change_at_random(random: &mut Random, branch: &Repository, whole: &mut Whole) {
    for _ in 0..1 + random.below(3) {
        let names: Vec<&'static str> = whole.keys().copied().collect();
        if names.is_empty() {
            return;
        }
        let name = *random.choose(&names);
        match random.below(5) {
            3 if 1 < names.len() => {
                let other = *random.choose(&names);
                if other != name {
                    swap(branch, name, other);
                    let [one, two] = [name, other].map(|name| whole.remove(name).expect("there"));
                    whole.extend([(name, two), (other, one)]);
                }
            }
            0 => {
                branch.drop_collection(name).expect("it is there");
                whole.remove(name);
            }
            1 | 2 => {
                let to = *random.choose(&COLLECTIONS);
                if to != name {
                    branch.rename_collection(name, to, true).expect("it is there");
                    let renamed = whole.remove(name).expect("it is there");
                    whole.insert(to, renamed);
                }
            }
            _ => {
                let id = random.below(IDS) as i32;
                let collection = whole.get_mut(name).expect("it is there");
                if random.one_in(3) {
                    remove(branch, name, id);
                    collection.remove(&id);
                } else {
                    let fields = random_fields(random);
                    put(branch, name, &to_document(id, &fields)).expect("a good document");
                    collection.insert(id, fields);
                }
            }
        }
    }
}

/// A merge that was given up, or undone, leaves what was there before, to the byte.
fn check_clean(database: &Repository, whole: &Whole) {
    check_whole(database, whole);
    let changed = database.status().expect("it can be told").collections;
    assert!(changed.is_empty(), "{changed:?}");
}

fn check_whole(database: &Repository, whole: &Whole) {
    assert_eq!(names(database), whole.keys().copied().collect::<Vec<_>>());
    for (name, collection) in whole {
        let documents = collection.iter().map(|(id, fields)| to_document(*id, fields));
        assert_eq!(all(database, name), documents.collect::<Vec<_>>());
    }
}

/// Two branches of up to three collections are merged as the naive model merges whole copies, by
/// either side where that must be decided.
#[test]
fn renamings_at_random_merge_as_whole_copies_do() {
    let (mut differently, mut dropped) = (0, 0);
    for_seeds(1200, |mut random| {
        let frond = new();
        let main = shop(&frond, "");
        let mut base = Whole::new();
        for name in COLLECTIONS.into_iter().take(1 + random.below(3)) {
            let fields = (0..IDS as i32).map(|id| (id, random_fields(&mut random)));
            let documents = base.entry(name).or_insert(fields.collect());
            let documents = documents.iter().map(|(id, fields)| to_document(*id, fields));
            insert(&main, name, &documents.collect::<Vec<_>>());
        }
        main.commit("first", "").expect("something changed");
        main.create_branch("side", None).expect("a good name");
        let side = shop(&frond, "side");
        let (mut ours, mut theirs) = (base.clone(), base.clone());
        change_at_random(&mut random, &main, &mut ours);
        change_at_random(&mut random, &side, &mut theirs);
        // Each has a commit of its own, also where both have the same content.
        for (branch, whole, message) in
            [(&main, &mut ours, "on main"), (&side, &mut theirs, "on the side")]
        {
            if base == *whole {
                put(branch, "x", &to_document(0, &Vec::new())).expect("a good document");
                whole.entry("x").or_default().insert(0, Vec::new());
            }
            if base != *whole {
                branch.commit(message, "").expect("something changed");
            }
        }
        let sides = [&base, &ours, &theirs];
        for (chosen, prefer, resolution) in [
            (MergeSide::Ours, OURS, Resolution::Ours),
            (MergeSide::Theirs, THEIRS, Resolution::Theirs),
        ] {
            if base == ours || base == theirs {
                return;
            }
            let rules = MergeRules { on_conflict: Some(chosen), ..MergeRules::default() };
            let request =
                MergeRequest { merge_in: "side".to_owned(), rules, ..MergeRequest::default() };
            let (expected, _) = merge_wholes(sides, prefer, Some(prefer)).expect("it is decided");
            main.merge(&request).expect("it is decided");
            check_whole(&main, &expected);
            main.undo(None, None).expect("the merge was the last");
            check_clean(&main, &ours);

            let outcome = merge(&main, "side").expect("it is told");
            let waits = matches!(outcome, MergeOutcome::Conflicts { .. });
            let Some((merged, conflicts)) = merge_wholes(sides, OURS, None) else {
                assert!(waits, "{outcome:?}");
                let conflicts = main.conflicts(None).expect("they can be listed");
                assert!(conflicts.iter().all(|found| found.kind == ConflictKind::Collection));
                for found in &conflicts {
                    match (name_of(found.ours.as_ref()), name_of(found.theirs.as_ref())) {
                        (Some(_), Some(_)) => differently += 1,
                        (None, None) => {}
                        _ => dropped += 1,
                    }
                    main.resolve_conflict(&found.id, &resolution).expect("decided");
                }
                main.merge_continue(None, None).expect("nothing is left of the schema");
                let (merged, conflicts) =
                    merge_wholes(sides, OURS, Some(prefer)).expect("it is decided");
                check_whole(&main, &merged);
                match conflicts.is_empty() {
                    true => drop(main.undo(None, None).expect("the merge was the last")),
                    false => drop(main.merge_abort().expect("it waits")),
                }
                check_clean(&main, &ours);
                continue;
            };
            assert_eq!(waits, !conflicts.is_empty(), "{outcome:?}");
            check_whole(&main, &merged);
            match waits {
                true => drop(main.merge_abort().expect("it waits")),
                false => drop(main.undo(None, None).expect("the merge was the last")),
            }
            check_clean(&main, &ours);
        }
    });
    assert_met("collections renamed differently", differently, 1);
    assert_met("collections renamed here and dropped there", dropped, 1);
}
