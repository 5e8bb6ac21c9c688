//! Merges on small histories, each promise by itself.

use frond_db::collection::DeleteStatement;
use frond_db::{Durability, Frond};
use frond_doc::{DocumentBuf, Value, document};
use frond_query::Code;
use frond_vcs::Repository;
use frond_vcs::{ConflictKind, MergeOutcome, MergeRequest, Resolution};

use super::{all, find, index, insert, merge, new, put, remove, shop};

fn thing(id: i32, a: i32, b: i32) -> DocumentBuf {
    document! { "_id": id, "a": a, "b": b }
}

/// Ten things with an index, committed; a branch `side` beside `main`.
fn two_branches() -> (Frond, Repository, Repository) {
    let frond = new();
    let main = shop(&frond, "");
    let documents: Vec<_> = (0..10).map(|id| thing(id, 0, 0)).collect();
    insert(&main, "things", &documents);
    index(&main, "things", document! { "a": 1_i32 }, false);
    main.commit("first", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    (frond, main, side)
}

fn by_index(database: &Repository, a: i32) -> usize {
    find(database, "things", Some(document! { "a": a }), Some("a_1")).len()
}

#[test]
fn fast_forward_and_up_to_date() {
    let (_frond, main, side) = two_branches();
    put(&side, "things", &thing(1, 5, 0)).unwrap();
    insert(&side, "new", &[document! { "_id": 1_i32 }]);
    side.drop_indexes("things", "a_1").unwrap();
    index(&side, "things", document! { "a": 1_i32, "b": 1_i32 }, false);
    let commit = side.commit("side", "").unwrap();
    assert!(
        matches!(merge(&side, "main"), Ok(MergeOutcome::UpToDate { head }) if head == commit.id)
    );

    put(&main, "things", &thing(2, 1, 1)).unwrap();
    let dirty = merge(&main, "side").unwrap_err();
    assert!(dirty.message.contains("commit"), "{dirty}");
    main.reset(None, true).unwrap();
    let outcome = merge(&main, "side").unwrap();
    assert!(matches!(outcome, MergeOutcome::FastForward { head } if head == commit.id));
    assert_eq!(all(&main, "things")[1], thing(1, 5, 0));
    assert_eq!(all(&main, "new").len(), 1);
    let filter = Some(document! { "a": 5_i32 });
    assert_eq!(find(&main, "things", filter, Some("a_1_b_1")), [thing(1, 5, 0)]);
    assert!(main.status().unwrap().collections.is_empty());
    // Later writes build on it.
    put(&main, "things", &thing(1, 6, 0)).unwrap();
    assert_eq!(main.status().unwrap().collections[0].modified, 1);
}

/// Both sides merged the same two commits and decided differently: that is a conflict, whichever of
/// the two is taken for the base.
#[test]
fn a_criss_cross_that_was_decided_differently_is_a_conflict() {
    for other in [false, true] {
        let (frond, main, side) = two_branches();
        put(&main, "things", &thing(1, 1, 0)).unwrap();
        put(&main, "things", &thing(2, 0, 7)).unwrap();
        main.commit("one", "").unwrap();
        put(&side, "things", &thing(1, 2, 0)).unwrap();
        side.commit("two", "").unwrap();
        main.create_branch("one", None).unwrap();
        for (branch, from, resolution) in
            [(&main, "side", Resolution::Theirs), (&side, "one", Resolution::Theirs)]
        {
            merge(branch, from).unwrap();
            let conflicts = branch.conflicts(None).unwrap();
            branch.resolve_conflict(&conflicts[0].id, &resolution).unwrap();
            branch.merge_continue(None, None).unwrap();
        }
        assert_eq!(all(&main, "things")[1], thing(1, 2, 0));
        assert_eq!(all(&side, "things")[1], thing(1, 1, 0));
        let (into, from) = if other { (&side, "main") } else { (&main, "side") };
        let outcome = merge(into, from).unwrap();
        assert!(matches!(outcome, MergeOutcome::Conflicts { .. }), "{outcome:?}");
        let conflicts = into.conflicts(None).unwrap();
        assert_eq!(conflicts.len(), 1);
        assert_eq!(conflicts[0].paths, ["a"]);
        assert_eq!(conflicts[0].base, Some(thing(1, 0, 0)));
        into.merge_abort().unwrap();
        drop(frond);
    }
}

#[test]
fn changes_are_committed_before_a_merge() {
    let (_frond, main, side) = two_branches();
    put(&side, "things", &thing(1, 5, 0)).unwrap();
    side.commit("side", "").unwrap();
    put(&main, "things", &thing(2, 1, 1)).unwrap();
    let request = MergeRequest { merge_in: "side".to_owned(), ..Default::default() };
    let outcome = main.merge(&request).unwrap();
    let MergeOutcome::Merged { commit } = outcome else { panic!("{outcome:?}") };
    assert_eq!(commit.parents.len(), 2);
    assert_eq!(all(&main, "things")[1..3], [thing(1, 5, 0), thing(2, 1, 1)]);
    assert!(main.status().unwrap().collections.is_empty());
    let messages: Vec<String> =
        main.log(None, None).unwrap().into_iter().map(|commit| commit.message).collect();
    assert!(messages.contains(&"Working state of main before merging side".to_owned()));
}

#[test]
fn a_merge_commit_where_a_fast_forward_would_do() {
    let (_frond, main, side) = two_branches();
    put(&side, "things", &thing(1, 5, 0)).unwrap();
    let theirs = side.commit("side", "").unwrap();
    let ours = main.log(Some(1), None).unwrap()[0].id;
    let request = MergeRequest {
        merge_in: "side".to_owned(),
        message: Some("together".to_owned()),
        author: Some("Ada".to_owned()),
        no_fast_forward: true,
        fast_forward_only: false,
        refuse_dirty: true,
        ..MergeRequest::default()
    };
    let Ok(MergeOutcome::Merged { commit }) = main.merge(&request) else { panic!("no commit") };
    assert_eq!(commit.parents, [ours, theirs.id]);
    assert_eq!((commit.message.as_str(), commit.author.as_str()), ("together", "Ada"));
    assert_eq!(all(&main, "things"), all(&side, "things"));
    assert!(main.status().unwrap().collections.is_empty());
}

#[test]
fn both_sides_merge_field_by_field_with_their_indexes() {
    let (frond, main, side) = two_branches();
    put(&main, "things", &thing(1, 7, 0)).unwrap();
    remove(&main, "things", 2);
    insert(&main, "ours", &[document! { "_id": 1_i32 }]);
    index(&main, "things", document! { "b": 1_i32 }, false);
    main.commit("main", "").unwrap();
    put(&side, "things", &thing(1, 0, 8)).unwrap();
    put(&side, "things", &thing(3, 7, 8)).unwrap();
    insert(&side, "things", &[thing(20, 7, 0)]);
    insert(&side, "theirs", &[document! { "_id": 1_i32 }]);
    index(&side, "things", document! { "b": -1_i32, "a": 1_i32 }, false);
    side.commit("side", "").unwrap();
    let only =
        MergeRequest { merge_in: "side".to_owned(), fast_forward_only: true, ..Default::default() };
    assert_eq!(main.merge(&only).unwrap_err().code, Code::IllegalOperation);

    let Ok(MergeOutcome::Merged { commit }) = merge(&main, "side") else { panic!("no commit") };
    assert_eq!(commit.parents.len(), 2);
    assert_eq!(commit.message, "Merge side into main");
    let things = all(&main, "things");
    assert_eq!(things.len(), 10);
    assert_eq!(things[1], thing(1, 7, 8));
    assert_eq!(by_index(&main, 7), 3);
    assert_eq!(by_index(&main, 0), 7);
    for hint in ["b_1", "b_-1_a_1"] {
        let found = find(&main, "things", Some(document! { "b": 8_i32 }), Some(hint));
        assert_eq!(found.len(), 2, "{hint}");
    }
    assert_eq!((all(&main, "ours").len(), all(&main, "theirs").len()), (1, 1));
    assert!(main.status().unwrap().collections.is_empty());
    // A merge of the other direction now moves the branch only; both are the same version.
    assert!(matches!(merge(&side, "main"), Ok(MergeOutcome::FastForward { .. })));
    assert_eq!(all(&side, "things"), things);
    assert_eq!(by_index(&side, 7), 3);
    assert_eq!(all(&shop(&frond, "main~1"), "things").len(), 9);
    assert_eq!(all(&shop(&frond, "main^2"), "things").len(), 11);
}

fn conflicting() -> (Frond, Repository, Repository) {
    let (frond, main, side) = two_branches();
    put(&main, "things", &thing(1, 7, 0)).unwrap();
    put(&main, "things", &thing(2, 7, 0)).unwrap();
    remove(&main, "things", 3);
    main.commit("main", "").unwrap();
    put(&side, "things", &thing(1, 8, 5)).unwrap();
    put(&side, "things", &thing(2, 8, 0)).unwrap();
    put(&side, "things", &thing(3, 8, 0)).unwrap();
    put(&side, "things", &thing(4, 8, 0)).unwrap();
    side.commit("side", "").unwrap();
    let outcome = merge(&main, "side").unwrap();
    let MergeOutcome::Conflicts { counts } = outcome else { panic!("{outcome:?}") };
    assert_eq!(counts, [("things".to_owned(), 3)]);
    (frond, main, side)
}

#[test]
fn conflicts_are_data_and_are_resolved() {
    let (_frond, main, _side) = conflicting();
    let status = main.status().unwrap();
    assert!(status.merging.is_some());
    assert_eq!(status.conflicts, [("things".to_owned(), 3)]);
    // Changes that merged cleanly are there, ours stays in conflict.
    let things = all(&main, "things");
    assert_eq!(things[1..3], [thing(1, 7, 5), thing(2, 7, 0)]);
    assert_eq!(things[3], thing(4, 8, 0));
    let conflicts = main.conflicts(None).unwrap();
    assert_eq!(conflicts.len(), 3);
    assert_eq!(conflicts[0].paths, ["a"]);
    assert_eq!(conflicts[0].base, Some(thing(1, 0, 0)));
    assert_eq!(conflicts[0].ours, Some(thing(1, 7, 0)));
    assert_eq!(conflicts[0].theirs, Some(thing(1, 8, 5)));
    assert!(conflicts[2].paths.is_empty() && conflicts[2].ours.is_none());
    assert_eq!(conflicts[2].document_id.as_value(), Value::Int32(3));
    assert!(main.conflicts(Some("other")).unwrap().is_empty());
    for refused in [main.commit("x", "").map(|_| ()), main.merge_continue(None, None).map(|_| ())] {
        assert_eq!(refused.unwrap_err().code, Code::IllegalOperation);
    }
    assert_eq!(merge(&main, "side").unwrap_err().code, Code::IllegalOperation);
    assert!(main.reset(None, false).is_err());

    assert_eq!(main.resolve_conflict(&conflicts[0].id, &Resolution::Theirs).unwrap(), 2);
    assert_eq!(all(&main, "things")[1], thing(1, 8, 5));
    let again = main.resolve_conflict(&conflicts[0].id, &Resolution::Ours).unwrap_err();
    assert_eq!(again.code, Code::NoSuchKey);
    let wrong = Resolution::Value(Some(thing(9, 1, 1)));
    assert!(main.resolve_conflict(&conflicts[1].id, &wrong).is_err());
    let value = Resolution::Value(Some(document! { "a": 9_i32, "_id": 2_i32 }));
    assert_eq!(main.resolve_conflict(&conflicts[1].id, &value).unwrap(), 1);
    assert_eq!(all(&main, "things")[2], document! { "_id": 2_i32, "a": 9_i32 });
    assert_eq!(main.resolve_conflict(&conflicts[2].id, &Resolution::Ours).unwrap(), 0);
    assert_eq!(all(&main, "things").len(), 9);
    assert_eq!((by_index(&main, 8), by_index(&main, 9), by_index(&main, 7)), (2, 1, 0));
    let commit = main.merge_continue(Some("done"), None).unwrap();
    let MergeOutcome::Merged { commit } = commit else { panic!("{commit:?}") };
    assert_eq!((commit.parents.len(), commit.message.as_str()), (2, "done"));
    let status = main.status().unwrap();
    assert!(status.merging.is_none() && status.collections.is_empty());
    assert!(main.merge_continue(None, None).is_err());
    assert!(matches!(merge(&main, "side"), Ok(MergeOutcome::UpToDate { .. })));
}

#[test]
fn a_merge_is_given_up() {
    for hard_reset in [false, true] {
        let (_frond, main, _side) = conflicting();
        if hard_reset {
            put(&main, "things", &thing(30, 0, 0)).unwrap();
            insert(&main, "new", &[thing(1, 1, 1)]);
            main.reset(None, true).unwrap();
        } else {
            main.merge_abort().unwrap();
        }
        assert!(main.merge_abort().is_err());
        let status = main.status().unwrap();
        assert!(status.merging.is_none() && status.collections.is_empty());
        assert!(main.conflicts(None).unwrap().is_empty());
        assert_eq!(all(&main, "things").len(), 9);
        assert_eq!((by_index(&main, 7), by_index(&main, 8)), (2, 0));
        assert!(matches!(merge(&main, "side"), Ok(MergeOutcome::Conflicts { .. })));
    }
}

#[test]
fn theirs_brings_back_what_we_removed() {
    let (_frond, main, _side) = conflicting();
    let conflicts = main.conflicts(None).unwrap();
    for conflict in &conflicts {
        main.resolve_conflict(&conflict.id, &Resolution::Theirs).unwrap();
    }
    main.merge_continue(None, None).unwrap();
    assert_eq!(
        all(&main, "things")[1..5],
        [thing(1, 8, 5), thing(2, 8, 0), thing(3, 8, 0), thing(4, 8, 0)]
    );
    assert_eq!(by_index(&main, 8), 4);
}

#[test]
fn unique_indexes_hold_after_a_merge() {
    let (_frond, main, side) = two_branches();
    for id in 0..10 {
        put(&main, "things", &thing(id, id, 0)).unwrap();
    }
    index(&main, "things", document! { "a": 1_i32, "b": 1_i32 }, true);
    main.commit("unique", "").unwrap();
    merge(&side, "main").unwrap();
    insert(&main, "things", &[thing(50, 50, 0)]);
    main.commit("main", "").unwrap();
    insert(&side, "things", &[thing(51, 50, 0)]);
    side.commit("side", "").unwrap();
    let before = all(&main, "things");
    assert!(matches!(merge(&main, "side"), Ok(MergeOutcome::Conflicts { .. })));
    assert_eq!(all(&main, "things"), before);
    main.merge_abort().unwrap();
    assert_eq!(all(&main, "things"), before);

    // A key that one document lets go and another takes is fine.
    side.reset(Some("HEAD~1"), true).unwrap();
    put(&side, "things", &thing(1, 60, 0)).unwrap();
    put(&side, "things", &thing(2, 1, 0)).unwrap();
    side.commit("side", "").unwrap();
    assert!(matches!(merge(&main, "side"), Ok(MergeOutcome::Merged { .. })));
    let found = find(&main, "things", Some(document! { "a": 1_i32 }), Some("a_1_b_1"));
    assert_eq!(found, [thing(2, 1, 0)]);
    assert!(put(&main, "things", &thing(70, 1, 0)).is_err());
    assert!(put(&main, "things", &thing(70, 2, 0)).is_ok());
}

#[test]
fn ids_are_unique_by_their_collation_after_a_merge() {
    let frond = new();
    let main = shop(&frond, "");
    let collation = document! { "locale": "en", "strength": 2 };
    let options = document! { "collation": &collation };
    main.create_collection("words", options.view()).unwrap();
    insert(&main, "words", &[document! { "_id": "x" }]);
    main.commit("first", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    insert(&side, "words", &[document! { "_id": "a" }, document! { "_id": "b" }]);
    side.commit("side", "").unwrap();
    let diff = main.diff(None, Some("side")).unwrap();
    assert!(diff.iter().all(|diff| diff.indexes.is_empty()), "the index of `_id` isn't told");
    insert(&main, "words", &[document! { "_id": "A" }]);
    main.commit("main", "").unwrap();
    let before = all(&main, "words");
    assert!(matches!(merge(&main, "side"), Ok(MergeOutcome::Conflicts { .. })));
    // Documents without conflicts are merged meanwhile.
    let ids = ["A", "b", "x"].map(|id| document! { "_id": id });
    assert_eq!(all(&main, "words"), ids);
    main.merge_abort().unwrap();
    assert_eq!(all(&main, "words"), before);

    main.reset(Some("HEAD~1"), true).unwrap();
    insert(&main, "words", &[document! { "_id": "C" }]);
    main.commit("main", "").unwrap();
    assert!(matches!(merge(&main, "side"), Ok(MergeOutcome::Merged { .. })));
    let found = find(&main, "words", Some(document! { "_id": "A" }), None);
    assert_eq!(found, [document! { "_id": "a" }]);
    for there in ["A", "B", "c", "X"] {
        let documents = [document! { "_id": there }];
        let report = main.insert("words", &documents, true, frond_db::Durability::Relaxed).unwrap();
        assert_eq!(report.errors[0].error.code, Code::DuplicateKey, "{there}");
    }
}

#[test]
fn collections_that_compare_otherwise_are_not_mixed() {
    let folding = document! { "locale": "en", "strength": 2 };
    let options = |collated| match collated {
        true => document! { "collation": &folding },
        false => document! {},
    };
    let ids = |ids: &[&str]| -> Vec<DocumentBuf> {
        ids.iter().map(|id| document! { "_id": *id }).collect()
    };
    for (ours_is_collated, had_before) in [(true, true), (false, true), (true, false)] {
        for takes_theirs in [true, false] {
            let (_frond, main, side) = two_branches();
            main.create_collection("words", options(ours_is_collated).view()).unwrap();
            insert(&main, "words", &ids(&["a"]));
            if had_before {
                main.commit("words", "").unwrap();
                merge(&side, "main").unwrap();
                side.drop_collection("words").unwrap();
            }
            side.create_collection("words", options(!ours_is_collated).view()).unwrap();
            insert(&side, "words", &ids(&["a"]));
            let plain = if ours_is_collated { &side } else { &main };
            insert(plain, "words", &ids(&["A"]));
            insert(&main, "words", &ids(&["ours"]));
            main.commit("ours", "").unwrap();
            side.commit("theirs", "").unwrap();
            assert!(matches!(merge(&main, "side"), Ok(MergeOutcome::Conflicts { .. })));
            let conflicts = main.conflicts(None).unwrap();
            let kinds: Vec<_> = conflicts.iter().map(|conflict| conflict.kind).collect();
            assert_eq!(kinds, [ConflictKind::Collection]);
            let choice = if takes_theirs { Resolution::Theirs } else { Resolution::Ours };
            main.resolve_conflict(&conflicts[0].id, &choice).unwrap();
            main.merge_continue(None, None).unwrap();
            let is_collated = ours_is_collated != takes_theirs;
            let report = main.insert("words", &ids(&["A"]), true, Durability::Relaxed).unwrap();
            assert_eq!(report.errors.len(), 1, "it is there, or what is its equal");
            let others = main.insert("words", &ids(&["Aa", "aA"]), false, Durability::Relaxed);
            assert_eq!(others.unwrap().errors.is_empty(), !is_collated);
            let found = find(&main, "words", Some(document! { "_id": "a" }), None);
            assert_eq!(found.len(), 1);
        }
    }
}

#[test]
fn long_documents_merge_field_by_field_too() {
    let (frond, main, side) = two_branches();
    let long = |count: usize| "long ".repeat(count);
    let (text, other) = (long(40_000), long(40_001));
    let report =
        |text: &str, a: i32, b: i32| document! { "_id": 1_i32, "a": a, "text": text, "b": b };
    insert(&main, "reports", &[report(&text, 0, 0)]);
    main.commit("report", "").unwrap();
    merge(&side, "main").unwrap();
    put(&main, "reports", &report(&text, 1, 0)).unwrap();
    main.commit("main", "").unwrap();
    put(&side, "reports", &report(&other, 0, 2)).unwrap();
    side.commit("side", "").unwrap();
    assert!(matches!(merge(&main, "side"), Ok(MergeOutcome::Merged { .. })));
    assert_eq!(all(&main, "reports"), [report(&other, 1, 2)]);
    let paths = |from: &str| -> Vec<String> {
        let diff = main.diff(Some(from), None).unwrap();
        diff[0].modified[0].changes.iter().map(|change| change.path.clone()).collect()
    };
    assert_eq!(paths("main~1"), ["text", "b"]);
    assert_eq!(paths("side"), ["a"]);
    assert_eq!(all(&shop(&frond, "main~2"), "reports"), [report(&text, 0, 0)]);

    // A conflict keeps all three of them.
    put(&main, "reports", &report(&text, 5, 2)).unwrap();
    main.commit("main", "").unwrap();
    put(&side, "reports", &report(&other, 6, 2)).unwrap();
    side.commit("side", "").unwrap();
    assert!(matches!(merge(&main, "side"), Ok(MergeOutcome::Conflicts { .. })));
    let conflicts = main.conflicts(None).unwrap();
    assert_eq!(conflicts[0].paths, ["a"]);
    main.resolve_conflict(&conflicts[0].id, &Resolution::Theirs).unwrap();
    assert_eq!(all(&main, "reports"), [report(&text, 6, 2)]);
}

#[test]
fn collections_come_and_go_on_either_side() {
    let (_frond, main, side) = two_branches();
    insert(&main, "a", &[thing(1, 0, 0)]);
    insert(&main, "b", &[thing(1, 0, 0)]);
    main.commit("main", "").unwrap();
    merge(&side, "main").unwrap();
    main.drop_collection("a").unwrap();
    insert(&main, "both", &[thing(1, 1, 1)]);
    main.commit("main", "").unwrap();
    side.drop_collection("b").unwrap();
    insert(&side, "both", &[thing(2, 2, 2)]);
    side.commit("side", "").unwrap();
    assert!(matches!(merge(&main, "side"), Ok(MergeOutcome::Merged { .. })));
    let names: Vec<_> =
        main.list_collections().unwrap().into_iter().map(|found| found.name).collect();
    assert_eq!(names, ["both", "things"]);
    assert_eq!(all(&main, "both"), [thing(1, 1, 1), thing(2, 2, 2)]);

    // Dropped here, changed there: the merge doesn't decide that in silence.
    merge(&side, "main").unwrap();
    main.drop_collection("both").unwrap();
    main.commit("main", "").unwrap();
    put(&side, "both", &thing(1, 5, 5)).unwrap();
    side.commit("side", "").unwrap();
    for (ours, theirs, resolution, left) in [
        (&main, "side", Resolution::Ours, 0),
        (&side, "main~0", Resolution::Theirs, 0),
        (&main, "side", Resolution::Theirs, 2),
    ] {
        assert!(matches!(merge(ours, theirs), Ok(MergeOutcome::Conflicts { .. })));
        let conflicts = ours.conflicts(None).unwrap();
        assert_eq!(conflicts.len(), 1);
        assert_eq!(conflicts[0].collection, "both");
        assert_eq!(conflicts[0].kind, ConflictKind::Collection);
        assert!(ours.resolve_conflict(&conflicts[0].id, &Resolution::Value(None)).is_err());
        assert_eq!(ours.resolve_conflict(&conflicts[0].id, &resolution).unwrap(), 0);
        let outcome = ours.merge_continue(None, None).unwrap();
        assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
        assert_eq!(all(ours, "both").len(), left);
        ours.undo(None, None).unwrap();
    }
}

#[test]
fn one_index_changed_differently_on_both_sides_is_decided() {
    let (_frond, main, side) = two_branches();
    main.drop_indexes("things", "a_1").unwrap();
    main.commit("main", "").unwrap();
    put(&side, "things", &thing(1, 5, 0)).unwrap();
    side.commit("side", "").unwrap();
    assert!(matches!(merge(&main, "side"), Ok(MergeOutcome::Merged { .. })));
    assert_eq!(main.list_indexes("things").unwrap().len(), 1, "dropped on one side");

    merge(&side, "main").unwrap();
    index(&main, "things", document! { "b": 1_i32 }, false);
    main.commit("main", "").unwrap();
    index(&side, "things", document! { "b": 1_i32 }, false);
    side.commit("side", "").unwrap();
    let outcome = merge(&main, "side").unwrap();
    assert!(matches!(outcome, MergeOutcome::Merged { .. }), "the same index agrees: {outcome:?}");

    merge(&side, "main").unwrap();
    let named = |name: &str, unique| {
        let key = document! { "a": 1_i32 };
        let spec = document! { "name": name, "key": &key, "unique": unique };
        frond_db::catalog::IndexSpec::parse(spec.view()).expect("a good index")
    };
    main.create_indexes("things", &[named("x", false)]).unwrap();
    main.commit("main", "").unwrap();
    for (name, unique) in [("x", true), ("y", false)] {
        side.reset(Some("main~1"), true).unwrap();
        for id in 0..10 {
            put(&side, "things", &thing(id, 100 + id, 0)).unwrap();
        }
        side.create_indexes("things", &[named(name, unique)]).unwrap();
        side.commit("side", "").unwrap();
        for resolution in [Resolution::Theirs, Resolution::Ours] {
            let outcome = merge(&main, "side").unwrap();
            assert!(matches!(outcome, MergeOutcome::Conflicts { .. }), "{outcome:?}");
            let conflicts = main.conflicts(Some("things")).unwrap();
            assert_eq!(conflicts.len(), 1);
            assert_eq!(conflicts[0].kind, ConflictKind::Index);
            main.resolve_conflict(&conflicts[0].id, &resolution).unwrap();
            let outcome = main.merge_continue(None, None).unwrap();
            assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
            let is_theirs = matches!(resolution, Resolution::Theirs);
            let specs = main.list_indexes("things").unwrap();
            let of_a: Vec<_> = specs.iter().filter(|spec| spec.key.get("a").is_some()).collect();
            assert_eq!(of_a.len(), 1);
            assert_eq!(of_a[0].name, if is_theirs { name } else { "x" });
            assert_eq!(of_a[0].unique, is_theirs && unique);
            assert_eq!(by_hint(&main, 105, &of_a[0].name), 1);
            main.undo(None, None).unwrap();
        }
    }
}

fn by_hint(database: &Repository, a: i32, hint: &str) -> usize {
    find(database, "things", Some(document! { "a": a }), Some(hint)).len()
}

/// A point lies by its source: one that gets another is removed here and inserted there.
#[test]
fn points_that_both_sides_moved_are_no_two_points() {
    let point = |id: i32, source: &str| {
        document! { "_id": id, "t": Value::DateTime(1), "m": source, "v": id }
    };
    let change = |database: &Repository, source: Option<&str>, new: i32| {
        let filter = document! { "m": "old" };
        let variables = None;
        let all_of_it =
            DeleteStatement { filter, only_first: false, hint: None, variables, collation: None };
        let done = database.delete("points", &[all_of_it], true, Durability::Relaxed);
        assert!(done.expect("a good delete").errors.is_empty());
        let moved: Vec<_> = source.iter().flat_map(|to| (0..3).map(|id| point(id, to))).collect();
        insert(database, "points", &moved);
        insert(database, "points", &[point(new, "new")]);
        database.commit("a change", "").expect("something changed");
    };
    for (ours, theirs, is_conflict) in [
        (Some("ours"), Some("theirs"), true),
        (None, Some("theirs"), true),
        (Some("ours"), None, true),
        (None, None, false),
    ] {
        let frond = new();
        let main = shop(&frond, "");
        let options = super::support::json("{'timeseries': {'timeField': 't', 'metaField': 'm'}}");
        main.create_collection("points", options.view()).expect("a good series");
        insert(&main, "points", &[0, 1, 2].map(|id| point(id, "old")));
        main.commit("three points", "").expect("something changed");
        main.create_branch("side", None).expect("a good name");
        let side = shop(&frond, "side");
        change(&main, ours, 10);
        change(&side, theirs, 20);
        let outcome = merge(&main, "side").expect("it is told");
        if !is_conflict {
            assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
            assert_eq!(all(&main, "points").len(), 2);
            continue;
        }
        assert!(matches!(outcome, MergeOutcome::Conflicts { .. }), "{outcome:?}");
        let conflicts = main.conflicts(None).expect("they can be listed");
        assert_eq!((conflicts.len(), conflicts[0].kind), (1, ConflictKind::Collection));
        main.resolve_conflict(&conflicts[0].id, &Resolution::Theirs).expect("decided");
        main.merge_continue(None, None).expect("nothing is left");
        assert_eq!(all(&main, "points"), all(&side, "points"));
    }
}
