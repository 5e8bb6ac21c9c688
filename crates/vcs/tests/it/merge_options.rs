//! Merges as calls and collections ask for them; picks, reverts, rebases, restores.

use std::collections::BTreeMap;

use frond_db::{Error, Frond};
use frond_doc::{DocumentBuf, Value, ValueBuf, document};
use frond_vcs::Repository;
use frond_vcs::{
    ConflictSelection, EqualChanges, FieldRule, Granularity, MergeOutcome, MergeRequest,
    MergeRules, MergeSide, PickKind, PickRequest, Resolution, Restored,
};

use super::*;

fn thing(id: i32, a: i32, b: i32) -> DocumentBuf {
    document! { "_id": id, "a": a, "b": b }
}

/// Things on two branches, with a unique index.
fn two_branches() -> (Frond, Repository, Repository) {
    let frond = new();
    let main = shop(&frond, "");
    let documents: Vec<_> = (0..10).map(|id| thing(id, 0, id)).collect();
    insert(&main, "things", &documents);
    index(&main, "things", document! { "a": 1_i32 }, false);
    index(&main, "things", document! { "b": 1_i32 }, true);
    main.commit("first", "Ada").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    (frond, main, side)
}

fn merge_by(database: &Repository, from: &str, rules: MergeRules) -> Result<MergeOutcome, Error> {
    database.merge(&MergeRequest { merge_in: from.to_owned(), rules, ..MergeRequest::default() })
}

fn counted(outcome: &MergeOutcome) -> u64 {
    match outcome {
        MergeOutcome::Conflicts { counts } => counts.iter().map(|(_, count)| count).sum(),
        _ => 0,
    }
}

#[test]
fn whole_documents_and_equal_changes_may_conflict() {
    let (_frond, main, side) = two_branches();
    put(&main, "things", &thing(1, 5, 1)).unwrap();
    put(&main, "things", &thing(2, 7, 2)).unwrap();
    main.commit("main", "").unwrap();
    put(&side, "things", &thing(1, 0, 100)).unwrap();
    put(&side, "things", &thing(2, 7, 2)).unwrap();
    side.commit("side", "").unwrap();
    let whole = MergeRules { granularity: Some(Granularity::Document), ..MergeRules::default() };
    assert_eq!(counted(&merge_by(&main, "side", whole.clone()).unwrap()), 1);
    main.resolve_conflicts(&ConflictSelection::All, &Resolution::Theirs).unwrap();
    main.merge_continue(None, None).unwrap();
    assert_eq!(all(&main, "things")[1], thing(1, 0, 100), "theirs, as a whole");
    main.undo(None, None).unwrap();
    let touched =
        MergeRules { equal_changes: Some(EqualChanges::Conflict), ..MergeRules::default() };
    assert_eq!(counted(&merge_by(&main, "side", touched).unwrap()), 1);
    assert_eq!(main.conflicts(None).unwrap()[0].paths, ["a"]);
    main.merge_abort().unwrap();
    // The collection may ask for it, too; the call counts before it.
    let own = document! { "granularity": "document" };
    main.set_merge_rules("things", Some(own.view())).unwrap();
    main.commit("rules", "").unwrap();
    assert_eq!(counted(&merge_by(&main, "side", MergeRules::default()).unwrap()), 1);
    main.merge_abort().unwrap();
    let field = MergeRules { granularity: Some(Granularity::Field), ..MergeRules::default() };
    assert_eq!(counted(&merge_by(&main, "side", field).unwrap()), 0);
    assert_eq!(all(&main, "things")[1], thing(1, 5, 100));
    assert!(main.set_merge_rules("things", Some(document! { "x": 1_i32 }.view())).is_err());
    assert!(main.set_merge_rules("nothing", None).is_err());
}

#[test]
fn numbers_add_up_and_arrays_are_sets_in_both_directions() {
    let tags = |tags: &[&str], stock: i32| {
        let mut builder = frond_doc::DocumentBuilder::new();
        builder.append("_id", Value::Int32(1)).append("stock", Value::Int32(stock));
        builder.begin_array("tags");
        tags.iter().for_each(|tag| {
            builder.push(Value::String(tag));
        });
        builder.end();
        builder.build()
    };
    let mut merged = Vec::new();
    for is_turned in [false, true] {
        let frond = new();
        let main = shop(&frond, "");
        put(&main, "items", &tags(&["old", "kept"], 10)).unwrap();
        main.commit("first", "").unwrap();
        main.create_branch("side", None).unwrap();
        let side = shop(&frond, "side");
        let (left, right) = if is_turned { (&side, &main) } else { (&main, &side) };
        put(left, "items", &tags(&["kept", "x", "old"], 7)).unwrap();
        put(right, "items", &tags(&["a", "kept"], 25)).unwrap();
        left.commit("left", "").unwrap();
        right.commit("right", "").unwrap();
        let rules = BTreeMap::from([
            ("stock".to_owned(), FieldRule::Delta),
            ("tags".to_owned(), FieldRule::Union),
        ]);
        let fields = BTreeMap::from([("items".to_owned(), rules)]);
        let rules = MergeRules { fields, ..MergeRules::default() };
        let outcome = merge_by(&main, "side", rules).unwrap();
        assert!(matches!(outcome, MergeOutcome::Merged { .. }), "{outcome:?}");
        merged.push(all(&main, "items"));
    }
    assert_eq!(merged[0], [tags(&["kept", "a", "x"], 22)]);
    assert_eq!(merged[0], merged[1]);
}

#[test]
fn a_side_may_be_preferred_and_a_merge_squashed() {
    let (_frond, main, side) = two_branches();
    put(&main, "things", &thing(1, 5, 1)).unwrap();
    main.commit("main", "").unwrap();
    put(&side, "things", &thing(1, 6, 50)).unwrap();
    side.commit("side one", "").unwrap();
    put(&side, "things", &thing(3, 8, 3)).unwrap();
    side.commit("side two", "").unwrap();
    for (side, a) in [(MergeSide::Ours, 5), (MergeSide::Theirs, 6)] {
        let rules = MergeRules { on_conflict: Some(side), ..MergeRules::default() };
        assert_eq!(counted(&merge_by(&main, "side", rules).unwrap()), 0);
        assert_eq!(all(&main, "things")[1], thing(1, a, 50));
        main.undo(None, None).unwrap();
    }
    let request = MergeRequest {
        merge_in: "side".to_owned(),
        squash: true,
        rules: MergeRules { on_conflict: Some(MergeSide::Ours), ..MergeRules::default() },
        ..MergeRequest::default()
    };
    let MergeOutcome::Merged { commit } = main.merge(&request).unwrap() else { panic!() };
    assert_eq!(commit.parents.len(), 1);
    assert_eq!(all(&main, "things")[3], thing(3, 8, 3));
}

#[test]
fn many_conflicts_are_resolved_at_once_or_by_updates() {
    let (_frond, main, side) = two_branches();
    for id in 0..10 {
        put(&main, "things", &thing(id, 1, id)).unwrap();
        put(&side, "things", &thing(id, 2, id)).unwrap();
    }
    main.commit("main", "").unwrap();
    side.commit("side", "").unwrap();
    assert_eq!(counted(&merge(&main, "side").unwrap()), 10);
    let ids: Vec<String> =
        main.conflicts(None).unwrap().into_iter().map(|conflict| conflict.id).collect();
    let theirs = Resolution::Theirs;
    let some = ConflictSelection::Ids(ids[..3].to_vec());
    assert_eq!(main.resolve_conflicts(&some, &theirs).unwrap(), 7);
    assert!(main.resolve_conflicts(&some, &theirs).is_err(), "they are resolved");
    let update = ValueBuf::from(document! { "$inc": &document! { "a": 40_i32 } });
    assert_eq!(main.resolve_conflict(&ids[3], &Resolution::Update(update)).unwrap(), 6);
    // An update that a unique index refuses leaves all as it was.
    let twice = ValueBuf::from(document! { "$set": &document! { "b": 77_i32 } });
    let rest = ConflictSelection::Collection("things".to_owned());
    assert!(main.resolve_conflicts(&rest, &Resolution::Update(twice)).is_err());
    assert_eq!(main.conflicts(None).unwrap().len(), 6);
    assert_eq!(main.resolve_conflicts(&rest, &Resolution::Ours).unwrap(), 0);
    main.merge_continue(None, None).unwrap();
    let a: Vec<i64> = all(&main, "things")
        .iter()
        .map(|thing| thing.get("a").and_then(|a| a.as_integer()).unwrap())
        .collect();
    assert_eq!(a.iter().sum::<i64>(), 3 * 2 + 41 + 6, "{a:?}");
}

#[test]
fn commits_are_picked_and_reverted() {
    let (frond, main, side) = two_branches();
    put(&side, "things", &thing(1, 5, 1)).unwrap();
    side.commit("one", "Bob").unwrap();
    put(&side, "things", &thing(2, 6, 2)).unwrap();
    let two = side.commit("two", "Bob").unwrap();
    let pick = |revision: &str, kind| PickRequest {
        revision: revision.to_owned(),
        kind,
        ..PickRequest::default()
    };
    let MergeOutcome::Merged { commit } = main.pick(&pick("side", PickKind::Pick)).unwrap() else {
        panic!()
    };
    assert_eq!((commit.author.as_str(), commit.message.as_str()), ("Bob", "two"));
    assert_eq!(commit.parents.len(), 1);
    assert_eq!(all(&main, "things")[1..3], [thing(1, 0, 1), thing(2, 6, 2)]);
    let again = main.pick(&pick("side", PickKind::Pick)).unwrap_err();
    assert_eq!(again.code.name(), "NoProgressMade", "{again}");
    // A revert gives back what was before, but what came since.
    put(&main, "things", &thing(2, 6, 22)).unwrap();
    let refusing = PickRequest { refuse_dirty: true, ..pick("HEAD", PickKind::Revert) };
    assert!(main.pick(&refusing).is_err(), "not committed");
    // HEAD is what it was before the changes become a commit.
    let MergeOutcome::Merged { commit } = main.pick(&pick("HEAD", PickKind::Revert)).unwrap()
    else {
        panic!()
    };
    let log = main.log(Some(2), None).unwrap();
    assert_eq!(log[1].message, "Working state of main before a revert of HEAD");
    assert_eq!(commit.parents, [log[1].id]);
    assert!(commit.message.starts_with("Revert \"two\""), "{}", commit.message);
    assert_eq!(all(&main, "things")[2], thing(2, 0, 22));
    // A conflict waits, and is a commit of one parent in the end.
    put(&main, "things", &thing(1, 9, 1)).unwrap();
    main.commit("ours", "").unwrap();
    assert_eq!(counted(&main.pick(&pick("side~1", PickKind::Pick)).unwrap()), 1);
    main.resolve_conflicts(&ConflictSelection::All, &Resolution::Theirs).unwrap();
    let MergeOutcome::Merged { commit } = main.merge_continue(None, None).unwrap() else {
        panic!()
    };
    assert_eq!((commit.parents.len(), commit.message.as_str()), (1, "one"));
    assert_eq!(all(&main, "things")[1], thing(1, 5, 1));
    // A merge needs its parent named.
    merge(&main, "side").unwrap();
    assert!(main.pick(&pick("HEAD", PickKind::Revert)).is_err());
    let named = PickRequest { parent: Some(3), ..pick("HEAD", PickKind::Revert) };
    assert!(main.pick(&named).is_err());
    let _ = (frond, two);
}

/// A decision against a picked commit ends it in the same way as conflicts of documents do: by a
/// commit.
#[test]
fn a_pick_may_be_decided_to_change_nothing() {
    let (_frond, main, side) = two_branches();
    assert!(side.drop_collection("things").unwrap());
    side.commit("gone", "Bob").unwrap();
    put(&main, "things", &thing(1, 5, 1)).unwrap();
    let head = main.commit("ours", "").unwrap();
    let before = all(&main, "things");
    let pick = PickRequest { revision: "side".to_owned(), ..PickRequest::default() };
    assert_eq!(counted(&main.pick(&pick).unwrap()), 1);
    main.resolve_conflicts(&ConflictSelection::All, &Resolution::Ours).unwrap();
    let MergeOutcome::Merged { commit } = main.merge_continue(None, None).unwrap() else {
        panic!()
    };
    assert_eq!((commit.parents, commit.message.as_str()), (vec![head.id], "gone"));
    assert_eq!(all(&main, "things"), before);
}

#[test]
fn a_branch_is_rebased() {
    let (_frond, main, side) = two_branches();
    for (id, message) in [(1, "one"), (2, "two")] {
        put(&side, "things", &thing(id, 5, id)).unwrap();
        side.commit(message, "Bob").unwrap();
    }
    put(&main, "things", &thing(2, 5, 2)).unwrap();
    put(&main, "things", &thing(3, 5, 3)).unwrap();
    let top = main.commit("main", "Ada").unwrap();
    let before = all(&side, "things");
    let rebased = side.rebase("main", &MergeRules::default()).unwrap();
    // `two` is on main already, and is left out.
    assert_eq!(rebased.commits.len(), 1);
    assert_eq!(rebased.commits[0].parents, [top.id]);
    assert_eq!(rebased.commits[0].author, "Bob");
    assert_eq!(all(&side, "things")[1..4], [thing(1, 5, 1), thing(2, 5, 2), thing(3, 5, 3)]);
    assert_eq!(find(&side, "things", Some(document! { "a": 5_i32 }), Some("a_1")).len(), 3);
    assert!(side.status().unwrap().collections.is_empty());
    side.undo(None, None).unwrap();
    assert_eq!(all(&side, "things"), before);
    // A conflict waits; given up, nothing has changed.
    put(&main, "things", &thing(1, 9, 1)).unwrap();
    main.commit("conflicts", "").unwrap();
    let rebased = side.rebase("main", &MergeRules::default()).unwrap();
    assert_eq!(rebased.conflicts, [("things".to_owned(), 1)]);
    side.merge_abort().unwrap();
    assert_eq!(all(&side, "things"), before);
    let rules = MergeRules { on_conflict: Some(MergeSide::Theirs), ..MergeRules::default() };
    side.rebase("main", &rules).unwrap();
    assert_eq!(all(&side, "things")[1], thing(1, 5, 1));
    assert!(matches!(merge(&main, "side").unwrap(), MergeOutcome::FastForward { .. }));
}

/// Documents that have exchanged the values of a unique index since: in no order could one after
/// the other be restored. All are, or none is.
#[test]
fn documents_that_exchange_unique_values_are_restored_together() {
    let (_frond, main, _side) = two_branches();
    let old = all(&main, "things");
    let b = |id: usize| match old[id].get("b") {
        Some(Value::Int32(b)) => b,
        other => panic!("{other:?}"),
    };
    // 0 and 1 exchange theirs by way of a third, 2 goes, and 90 is new with what 2 had.
    let (first, second, third) = (b(0), b(1), b(2));
    put(&main, "things", &thing(0, 0, 7_000)).unwrap();
    put(&main, "things", &thing(1, 1, first)).unwrap();
    put(&main, "things", &thing(0, 0, second)).unwrap();
    remove(&main, "things", 2);
    insert(&main, "things", &[thing(90, 1, third)]);
    let id = |number: i32| ValueBuf::from(Value::Int32(number));
    let changed = all(&main, "things");
    let restore = |ids: &[i32]| {
        let ids: Vec<ValueBuf> = ids.iter().map(|number| id(*number)).collect();
        main.restore_documents("things", &ids, None)
    };
    // The one that stays has what the other wants.
    for ids in [&[0][..], &[1], &[2], &[0, 2, 90, 555], &[1, 90]] {
        let code = restore(ids).unwrap_err().code;
        let expected = if ids.contains(&555) { "NoSuchKey" } else { "DuplicateKey" };
        assert_eq!(code.name(), expected, "{ids:?}");
        assert_eq!(all(&main, "things"), changed, "{ids:?}");
    }
    let restored = restore(&[1, 3, 90, 0, 2, 1]).unwrap();
    let [changed, unchanged, removed] = [Restored::Changed, Restored::Unchanged, Restored::Removed];
    assert_eq!(restored, [changed, unchanged, removed, changed, changed, changed]);
    assert_eq!(all(&main, "things"), old);
    assert!(main.status().unwrap().collections.is_empty());
}

#[test]
fn collections_and_documents_are_restored() {
    let (_frond, main, _side) = two_branches();
    let old = all(&main, "things");
    put(&main, "things", &thing(1, 5, 100)).unwrap();
    remove(&main, "things", 2);
    insert(&main, "new", &[thing(1, 1, 1)]);
    main.commit("second", "").unwrap();
    let id = |number: i32| ValueBuf::from(Value::Int32(number));
    let restore = |number: i32| main.restore_document("things", &id(number), Some("HEAD~1"));
    assert_eq!(restore(1).unwrap(), Restored::Changed);
    assert_eq!(restore(1).unwrap(), Restored::Unchanged);
    assert_eq!(restore(2).unwrap(), Restored::Changed);
    assert_eq!(all(&main, "things"), old);
    assert!(restore(99).is_err());
    insert(&main, "things", &[thing(50, 1, 50)]);
    assert_eq!(restore(50).unwrap(), Restored::Removed);
    assert_eq!(main.status().unwrap().collections[0].modified, 1);
    // The unique index has a word.
    main.reset(None, true).unwrap();
    put(&main, "things", &thing(3, 0, 1)).unwrap();
    assert_eq!(restore(1).unwrap_err().code.name(), "DuplicateKey");
    // A collection as a whole, with its indexes; one that wasn't there goes.
    main.drop_indexes("things", "a_1").unwrap();
    assert_eq!(main.restore_collection("things", Some("HEAD~1")).unwrap(), Restored::Changed);
    assert_eq!(all(&main, "things"), old);
    assert_eq!(main.list_indexes("things").unwrap().len(), 3);
    assert_eq!(main.restore_collection("new", Some("HEAD~1")).unwrap(), Restored::Removed);
    assert_eq!(main.restore_collection("new", Some("HEAD~1")).unwrap(), Restored::Unchanged);
    for from in [None, Some("HEAD~1")] {
        let error = main.restore_collection("nwe", from).unwrap_err();
        assert_eq!(error.code.name(), "NamespaceNotFound", "{error}");
    }
    assert_eq!(main.restore_collection("new", None).unwrap(), Restored::Changed);
    assert_eq!(main.restore_collection("new", None).unwrap(), Restored::Unchanged);
    main.undo(None, None).unwrap();
    assert!(all(&main, "new").is_empty());
}

#[test]
fn equal_changes_of_a_sum_add_up() {
    let (_frond, main, side) = two_branches();
    for database in [&main, &side] {
        // One is the same on both sides as a whole, the other in the counter only.
        put(database, "things", &thing(1, 2, 1)).unwrap();
        insert(database, "things", &[thing(70, 5, 71)]);
    }
    put(&main, "things", &thing(2, 2, 70)).unwrap();
    put(&side, "things", &thing(2, 2, 2)).unwrap();
    main.commit("ours", "").unwrap();
    side.commit("theirs", "").unwrap();
    let fields = BTreeMap::from([("a".to_owned(), FieldRule::Delta)]);
    let mut rules = MergeRules::default();
    rules.fields.insert("things".to_owned(), fields);
    let merge_in = "side".to_owned();
    let outcome = main.merge(&MergeRequest { merge_in, rules, ..MergeRequest::default() });
    assert!(matches!(outcome.unwrap(), MergeOutcome::Merged { .. }));
    let found = all(&main, "things");
    assert_eq!(found[1..3], [thing(1, 4, 1), thing(2, 4, 70)]);
    assert_eq!(found.last(), Some(&thing(70, 5, 71)), "a document that both made is one");
    assert_eq!(find(&main, "things", Some(document! { "a": 4_i32 }), Some("a_1")).len(), 2);
}
