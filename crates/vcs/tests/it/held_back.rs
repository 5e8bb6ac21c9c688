//! Goal: documents that a unique index or a validator refuses after a merge are conflicts that can
//! be resolved, and never in the working state. Method: cases, both ways, and each way to resolve
//! them.

use std::collections::BTreeMap;

use frond_db::Frond;
use frond_doc::{DocumentBuf, DocumentBuilder, Value, document};
use frond_query::Code;
use frond_testkit::random::for_seeds;
use frond_vcs::Repository;
use frond_vcs::{ConflictKind, MergeOutcome, MergeRequest, MergeRules, MergeSide, Resolution};

use super::{all, find, index, insert, merge, new, put, remove, shop};

fn user(id: i32, mail: &str) -> DocumentBuf {
    document! { "_id": id, "mail": mail }
}

/// Users with unique mails, committed, and a branch `side`.
fn users() -> (Frond, Repository, Repository) {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "users", &[user(1, "a"), user(2, "b"), user(3, "c")]);
    index(&main, "users", document! { "mail": 1_i32 }, true);
    main.commit("first", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    (frond, main, side)
}

fn waits(outcome: MergeOutcome) -> u64 {
    match outcome {
        MergeOutcome::Conflicts { counts } => counts.iter().map(|(_, count)| count).sum(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_documents_that_claim_one_key() {
    let (_frond, main, side) = users();
    insert(&side, "users", &[user(5, "x"), user(6, "free")]);
    side.commit("theirs", "").unwrap();
    insert(&main, "users", &[user(4, "x")]);
    main.commit("ours", "").unwrap();
    assert_eq!(waits(merge(&main, "side").unwrap()), 1);
    let conflict = main.conflicts(None).unwrap().remove(0);
    assert_eq!(conflict.kind, ConflictKind::Unique);
    assert_eq!((conflict.base, conflict.ours, conflict.theirs), (None, None, Some(user(5, "x"))));
    assert_eq!(conflict.paths, ["mail"]);
    let ours = [user(1, "a"), user(2, "b"), user(3, "c"), user(4, "x"), user(6, "free")];
    assert_eq!(all(&main, "users"), ours, "what merged cleanly is there");
    // As long as ours has the key, theirs can't come as it is.
    let error = main.resolve_conflict(&conflict.id, &Resolution::Theirs).unwrap_err();
    assert_eq!(error.code, Code::DuplicateKey);
    assert!(main.merge_continue(None, None).is_err());
    remove(&main, "users", 4);
    assert_eq!(main.resolve_conflict(&conflict.id, &Resolution::Theirs).unwrap(), 0);
    main.merge_continue(None, None).unwrap();
    assert_eq!(all(&main, "users").len(), 5);
    assert_eq!(
        find(&main, "users", Some(document! { "mail": "x" }), Some("mail_1")),
        [user(5, "x")]
    );
}

#[test]
fn a_document_that_is_held_back_may_claim_what_it_gave_up() {
    let (_frond, main, side) = users();
    // Theirs passes keys on: 1 gives "a" to 2, and 2 gives "b" to 3. Ours takes what 1 wants.
    put(&side, "users", &user(1, "z")).unwrap();
    put(&side, "users", &user(2, "a")).unwrap();
    put(&side, "users", &user(3, "b")).unwrap();
    side.commit("theirs", "").unwrap();
    insert(&main, "users", &[user(9, "z")]);
    main.commit("ours", "").unwrap();
    assert_eq!(waits(merge(&main, "side").unwrap()), 3);
    let expected = [user(1, "a"), user(2, "b"), user(3, "c"), user(9, "z")];
    assert_eq!(all(&main, "users"), expected);
    for id in [("a", 1), ("b", 2), ("c", 3), ("z", 9)] {
        let found = find(&main, "users", Some(document! { "mail": id.0 }), Some("mail_1"));
        assert_eq!(found, [user(id.1, id.0)]);
    }
    let conflicts = main.conflicts(None).unwrap();
    let value = Resolution::Value(Some(user(1, "y")));
    main.resolve_conflict(&conflicts[0].id, &value).unwrap();
    main.resolve_conflict(&conflicts[1].id, &Resolution::Theirs).unwrap();
    main.resolve_conflict(&conflicts[2].id, &Resolution::Theirs).unwrap();
    main.merge_continue(None, None).unwrap();
    let expected = [user(1, "y"), user(2, "a"), user(3, "b"), user(9, "z")];
    assert_eq!(all(&main, "users"), expected);
}

#[test]
fn a_side_that_is_preferred_keeps_its_documents() {
    for (prefers, expected) in [(MergeSide::Ours, user(4, "x")), (MergeSide::Theirs, user(5, "x"))]
    {
        let (_frond, main, side) = users();
        insert(&side, "users", &[user(5, "x")]);
        side.commit("theirs", "").unwrap();
        insert(&main, "users", &[user(4, "x")]);
        main.commit("ours", "").unwrap();
        let rules = MergeRules { on_conflict: Some(prefers), ..MergeRules::default() };
        let merge_in = "side".to_owned();
        let merged = main.merge(&MergeRequest { merge_in, rules, ..MergeRequest::default() });
        assert!(matches!(merged.unwrap(), MergeOutcome::Merged { .. }));
        assert_eq!(all(&main, "users").last(), Some(&expected));
        assert_eq!(all(&main, "users").len(), 4);
    }
}

#[test]
fn a_unique_index_that_our_documents_do_not_fit() {
    for takes in [MergeSide::Ours, MergeSide::Theirs] {
        let frond = new();
        let main = shop(&frond, "");
        insert(&main, "users", &[user(1, "a")]);
        main.commit("first", "").unwrap();
        main.create_branch("side", None).unwrap();
        let side = shop(&frond, "side");
        index(&side, "users", document! { "mail": 1_i32 }, true);
        side.commit("theirs", "").unwrap();
        insert(&main, "users", &[user(2, "b"), user(3, "b")]);
        main.commit("ours", "").unwrap();
        waits(merge(&main, "side").unwrap());
        let conflict = main.conflicts(None).unwrap().remove(0);
        assert_eq!(conflict.kind, ConflictKind::Index);
        let theirs = takes == MergeSide::Theirs;
        let resolution = if theirs { Resolution::Theirs } else { Resolution::Ours };
        main.resolve_conflict(&conflict.id, &resolution).unwrap();
        let continued = main.merge_continue(None, None);
        if theirs {
            assert!(continued.unwrap_err().message.contains("change them first"));
            main.merge_abort().unwrap();
            put(&main, "users", &user(3, "c")).unwrap();
            main.commit("changed", "").unwrap();
            assert!(matches!(merge(&main, "side").unwrap(), MergeOutcome::Merged { .. }));
        } else {
            continued.unwrap();
        }
        assert_eq!(main.list_indexes("users").unwrap().len(), 1 + usize::from(theirs));
    }
}

#[test]
fn validators_hold_after_a_merge() {
    let frond = new();
    let main = shop(&frond, "");
    let rule = r#"{"$expr": {"$lte": ["$low", "$high"]}}"#;
    let rule = frond_doc::extended_json::parse(rule).expect("JSON");
    main.create_collection("ranges", document! { "validator": &rule }.view()).unwrap();
    let range = |low: i32, high: i32| document! { "_id": 1_i32, "low": low, "high": high };
    insert(&main, "ranges", &[range(1, 10)]);
    main.commit("first", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    put(&side, "ranges", &range(9, 10)).unwrap();
    side.commit("theirs", "").unwrap();
    put(&main, "ranges", &range(1, 2)).unwrap();
    main.commit("ours", "").unwrap();
    assert_eq!(waits(merge(&main, "side").unwrap()), 1);
    let conflict = main.conflicts(None).unwrap().remove(0);
    assert_eq!(conflict.kind, ConflictKind::Validator);
    assert_eq!(all(&main, "ranges"), [range(1, 2)]);
    let error = main.resolve_conflict(&conflict.id, &Resolution::Theirs).unwrap_err();
    assert_eq!(error.code, Code::DocumentValidationFailure);
    let value = Resolution::Value(Some(range(2, 9)));
    main.resolve_conflict(&conflict.id, &value).unwrap();
    main.merge_continue(None, None).unwrap();
    // A validator that came on one side asks what the other side changed.
    main.create_branch("strict", None).unwrap();
    let strict = shop(&frond, "strict");
    let rule = document! { "low": &document! { "$gt": 0_i32 } };
    strict.change_collection("ranges", document! { "validator": &rule }.view()).unwrap();
    strict.commit("stricter", "").unwrap();
    put(&main, "ranges", &range(-5, 9)).unwrap();
    main.commit("below", "").unwrap();
    assert_eq!(waits(merge(&main, "strict").unwrap()), 1);
    main.merge_abort().unwrap();
    assert_eq!(waits(merge(&strict, "main").unwrap()), 1);
    let conflict = strict.conflicts(None).unwrap().remove(0);
    strict.resolve_conflict(&conflict.id, &Resolution::Ours).unwrap();
    strict.merge_continue(None, None).unwrap();
    assert_eq!(all(&strict, "ranges"), [range(2, 9)]);
}

#[test]
fn uniqueness_holds_whatever_is_merged() {
    for_seeds(30, |mut random| {
        let (frond, main, side) = users();
        for database in [&main, &side] {
            for _ in 0..random.below(12) {
                let id = random.below(8) as i32;
                let mail = ["a", "b", "c", "d", "e", "f"][random.below(6)];
                match random.below(4) {
                    0 => remove(database, "users", id),
                    // The unique index refuses some.
                    _ => drop(put(database, "users", &user(id, mail))),
                }
            }
            let _ = database.commit("changes", "");
        }
        let before = all(&main, "users");
        let outcome = merge(&main, "side").unwrap();
        let merged = all(&main, "users");
        let mut mails: BTreeMap<String, i64> = BTreeMap::new();
        for document in &merged {
            let mail = document.get("mail").and_then(|mail| mail.as_str()).expect("a mail");
            let id = document.get("_id").and_then(|id| id.as_integer()).expect("an id");
            assert_eq!(mails.insert(mail.to_owned(), id), None, "{merged:?}");
        }
        for (mail, id) in mails {
            let by_index =
                find(&main, "users", Some(document! { "mail": mail.as_str() }), Some("mail_1"));
            assert_eq!(by_index, [user(id as i32, &mail)]);
        }
        if let MergeOutcome::Conflicts { .. } = outcome {
            main.merge_abort().unwrap();
            assert_eq!(all(&main, "users"), before);
        }
        frond.engine().check().unwrap();
    });
}

/// Document 1 with `a` and `b`.
fn pair(a: Value<'_>, b: Value<'_>) -> DocumentBuf {
    let mut document = DocumentBuilder::new();
    document.append("_id", Value::Int32(1)).append("a", a).append("b", b);
    document.build()
}

/// Each side's document can be filed, and what both make of it can't.
#[test]
fn a_merged_document_that_an_index_can_not_file() {
    let mut list = DocumentBuilder::new();
    list.begin_array("list").push(Value::Int32(1)).push(Value::Int32(2)).end();
    let list = list.build();
    let value = list.get("list").unwrap();
    for resolution in [Resolution::Ours, Resolution::Theirs] {
        let none = Value::Int32(0);
        let frond = new();
        let main = shop(&frond, "");
        insert(&main, "things", &[pair(none, none)]);
        index(&main, "things", document! { "a": 1_i32, "b": 1_i32 }, false);
        main.commit("first", "").unwrap();
        main.create_branch("side", None).unwrap();
        let side = shop(&frond, "side");
        put(&side, "things", &pair(none, value)).unwrap();
        insert(&side, "things", &[document! { "_id": 2_i32, "a": 7_i32 }]);
        side.commit("theirs", "").unwrap();
        put(&main, "things", &pair(value, none)).unwrap();
        main.commit("ours", "").unwrap();
        assert_eq!(waits(merge(&main, "side").unwrap()), 1);
        let conflict = main.conflicts(None).unwrap().remove(0);
        assert_eq!(conflict.kind, ConflictKind::IndexKey);
        assert_eq!(conflict.paths, ["a", "b"]);
        assert_eq!(all(&main, "things")[0], pair(value, none));
        assert_eq!(all(&main, "things").len(), 2, "what merged cleanly is there");
        let error = main.resolve_conflict(&conflict.id, &resolution);
        if matches!(resolution, Resolution::Theirs) {
            // Theirs on both paths is what can't be.
            error.unwrap_err();
            let value = Resolution::Value(Some(pair(none, value)));
            main.resolve_conflict(&conflict.id, &value).unwrap();
        }
        main.merge_continue(None, None).unwrap();
        let checked = main.check_collection("things", &Default::default()).unwrap();
        assert!(checked.is_valid());
    }
}

/// Theirs has a new index, and ours a document that it can't file: the index is the conflict.
#[test]
fn an_index_that_can_not_file_our_document() {
    let mut list = DocumentBuilder::new();
    list.begin_array("list").push(Value::Int32(1)).push(Value::Int32(2)).end();
    let list = list.build();
    let list = list.get("list").unwrap();
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[pair(Value::Int32(0), Value::Int32(0))]);
    main.commit("first", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    index(&side, "things", document! { "a": 1_i32, "b": 1_i32 }, false);
    side.commit("theirs", "").unwrap();
    put(&main, "things", &pair(list, list)).unwrap();
    main.commit("ours", "").unwrap();
    assert_eq!(waits(merge(&main, "side").unwrap()), 1);
    let conflict = main.conflicts(None).unwrap().remove(0);
    assert_eq!(conflict.kind, ConflictKind::Index);
    main.resolve_conflict(&conflict.id, &Resolution::Ours).unwrap();
    assert!(matches!(main.merge_continue(None, None).unwrap(), MergeOutcome::Merged { .. }));
}
