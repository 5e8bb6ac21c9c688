//! Versions of documents whose `_id`s and indexed values have keys above 8 KB and share 9 KB.

use frond_doc::{DocumentBuf, Value, document};
use frond_vcs::{ConflictKind, MergeOutcome, Repository, Resolution};

use super::{all, find, index, insert, merge, new, put, shop};

fn long(end: &str) -> String {
    "x".repeat(9_000) + end
}

fn thing(end: &str, a: &str, b: i32) -> DocumentBuf {
    document! { "_id": long(end).as_str(), "a": long(a).as_str(), "b": b }
}

/// The last letters of the `_id`s that an index on `a` finds.
fn by_index(database: &Repository, a: &str) -> Vec<String> {
    let filter = Some(document! { "a": long(a).as_str() });
    let found = find(database, "things", filter, Some("a_1"));
    let mut ends: Vec<String> = found.iter().map(end_of).collect();
    ends.sort_unstable();
    ends
}

fn end_of(document: &DocumentBuf) -> String {
    match document.get("_id") {
        Some(Value::String(id)) => id.trim_start_matches('x').to_owned(),
        other => panic!("no such _id: {other:?}"),
    }
}

#[test]
fn branches_merge_and_their_indexes_follow() {
    let frond = new();
    let main = shop(&frond, "");
    let documents = ["a", "b", "c", "d"].map(|end| thing(end, end, 0));
    insert(&main, "things", &documents);
    index(&main, "things", document! { "a": 1_i32 }, false);
    index(&main, "things", document! { "_id": 1_i32, "b": 1_i32 }, true);
    main.commit("first", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    put(&main, "things", &thing("a", "m", 1)).unwrap();
    put(&main, "things", &thing("d", "d", 1)).unwrap();
    main.commit("main", "").unwrap();
    put(&side, "things", &thing("b", "m", 2)).unwrap();
    put(&side, "things", &thing("e", "m", 2)).unwrap();
    put(&side, "things", &thing("d", "d", 2)).unwrap();
    side.commit("side", "").unwrap();
    let differing = main.diff(Some("main"), Some("side")).unwrap();
    let counts =
        (differing[0].added.len(), differing[0].removed.len(), differing[0].modified.len());
    assert_eq!(counts, (1, 0, 3));
    let outcome = merge(&main, "side").unwrap();
    assert!(matches!(outcome, MergeOutcome::Conflicts { .. }), "{outcome:?}");
    let conflicts = main.conflicts(None).unwrap();
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0].kind, ConflictKind::Document);
    assert_eq!(conflicts[0].document_id.as_value(), Value::String(&long("d")));
    main.resolve_conflict(&conflicts[0].id, &Resolution::Theirs).unwrap();
    main.merge_continue(None, None).unwrap();
    assert_eq!(by_index(&main, "m"), ["a", "b", "e"]);
    assert_eq!(by_index(&main, "d"), ["d"]);
    assert_eq!(by_index(&main, "a"), Vec::<String>::new());
    let ends: Vec<String> = find(&main, "things", None, Some("_id_")).iter().map(end_of).collect();
    assert_eq!(ends.len(), 5);
    let merged = all(&main, "things").into_iter().find(|it| end_of(it) == "d").unwrap();
    assert_eq!(merged, thing("d", "d", 2));
    let checked = main.check_collection("things", &Default::default()).unwrap();
    assert!(checked.is_valid(), "{:?}", checked.errors());
}

#[test]
fn two_branches_that_bring_one_long_key_to_a_unique_index_conflict() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[thing("a", "a", 0)]);
    index(&main, "things", document! { "a": 1_i32 }, true);
    main.commit("first", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    put(&main, "things", &thing("b", "k", 1)).unwrap();
    main.commit("main", "").unwrap();
    put(&side, "things", &thing("c", "k", 2)).unwrap();
    put(&side, "things", &thing("d", "l", 2)).unwrap();
    side.commit("side", "").unwrap();
    merge(&main, "side").unwrap();
    let conflicts = main.conflicts(None).unwrap();
    assert_eq!(conflicts.len(), 1, "{conflicts:?}");
    assert_eq!(conflicts[0].document_id.as_value(), Value::String(&long("c")));
    assert_eq!(by_index(&main, "k"), ["b"]);
    assert_eq!(by_index(&main, "l"), ["d"]);
}

#[test]
fn a_document_comes_back_by_its_long_id() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[thing("a", "a", 0), thing("b", "b", 0)]);
    main.commit("first", "").unwrap();
    put(&main, "things", &thing("b", "b", 9)).unwrap();
    let id = Value::String(&long("b")).to_buf();
    main.restore_document("things", &id, None).unwrap();
    assert!(all(&main, "things").contains(&thing("b", "b", 0)));
    assert!(main.status().unwrap().collections.is_empty());
}
