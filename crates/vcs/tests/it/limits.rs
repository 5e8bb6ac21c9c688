//! Large documents, many collections, names with odd characters: history has them as they are.

use frond_db::Durability;
use frond_db::catalog::IndexSpec;
use frond_doc::{DocumentBuf, DocumentBuilder, Value, document};
use frond_query::Code;
use frond_testkit::SimDisk;
use frond_vcs::Repository;
use frond_vcs::{MergeOutcome, Resolution};

use super::{all, find, index, insert, merge, new, open, put, remove, shop};

const MEGABYTE: usize = 1 << 20;

fn text(letter: char, bytes: usize) -> String {
    std::iter::repeat_n(letter, bytes).collect()
}

fn large(id: i32, field: &str, letter: char, bytes: usize) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    builder.append("_id", Value::Int32(id));
    builder.append(field, Value::String(&text(letter, bytes)));
    builder.build()
}

fn is_same(found: &[DocumentBuf], expected: &[DocumentBuf]) -> bool {
    found == expected
}

#[test]
fn large_documents_are_committed_merged_and_found_again() {
    let disk = SimDisk::new(1);
    let frond = open(&disk);
    let main = shop(&frond, "");
    let documents: Vec<DocumentBuf> = [100 << 10, MEGABYTE, 15 * MEGABYTE]
        .iter()
        .enumerate()
        .map(|(id, bytes)| large(id as i32, "a", 'x', *bytes))
        .collect();
    insert(&main, "things", &documents);
    main.commit("large", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    let changed = document! { "_id": 2_i32, "a": text('x', 15 * MEGABYTE).as_str(), "b": 1_i32 };
    put(&side, "things", &changed).unwrap();
    side.commit("changed", "").unwrap();
    let other = document! { "_id": 2_i32, "a": text('x', 15 * MEGABYTE).as_str(), "c": 1_i32 };
    put(&main, "things", &other).unwrap();
    main.commit("changed too", "").unwrap();
    assert!(matches!(merge(&main, "side").unwrap(), MergeOutcome::Merged { .. }));
    frond.close().unwrap();
    drop((frond, main, side));
    let frond = open(&disk);
    let main = shop(&frond, "");
    let merged = document! {
        "_id": 2_i32, "a": text('x', 15 * MEGABYTE).as_str(), "b": 1_i32, "c": 1_i32
    };
    let expected = [documents[0].clone(), documents[1].clone(), merged];
    assert!(is_same(&all(&main, "things"), &expected));
    assert!(is_same(&all(&shop(&frond, "main~2"), "things"), &documents));
}

/// The merge of two documents of proper size can be too large to be one: it must not come to be.
#[test]
fn a_merge_does_not_make_a_document_that_is_too_large() {
    let frond = new().with_document_bytes_max(16 << 20);
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 1_i32 }]);
    main.commit("start", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    put(&side, "things", &large(1, "theirs", 'x', 9 * MEGABYTE)).unwrap();
    side.commit("theirs", "").unwrap();
    put(&main, "things", &large(1, "ours", 'x', 9 * MEGABYTE)).unwrap();
    main.commit("ours", "").unwrap();
    let error = merge(&main, "side").unwrap_err();
    assert_eq!(error.code, Code::OperationFailed, "{error}");
    assert!(main.status().unwrap().merging.is_none());
    assert!(is_same(&all(&main, "things"), &[large(1, "ours", 'x', 9 * MEGABYTE)]));
}

#[test]
fn conflicts_of_large_documents_wait_and_are_resolved() {
    let disk = SimDisk::new(1);
    let frond = open(&disk);
    let main = shop(&frond, "");
    insert(&main, "things", &[large(1, "a", 'x', 15 * MEGABYTE)]);
    main.commit("start", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    put(&side, "things", &large(1, "a", 'y', 15 * MEGABYTE)).unwrap();
    side.commit("theirs", "").unwrap();
    put(&main, "things", &large(1, "a", 'z', 15 * MEGABYTE)).unwrap();
    main.commit("ours", "").unwrap();
    assert!(matches!(merge(&main, "side").unwrap(), MergeOutcome::Conflicts { .. }));
    frond.close().unwrap();
    drop((frond, main, side));
    let frond = open(&disk);
    let main = shop(&frond, "");
    let conflicts = main.conflicts(None).unwrap();
    assert!(conflicts[0].theirs == Some(large(1, "a", 'y', 15 * MEGABYTE)));
    assert_eq!(main.resolve_conflict(&conflicts[0].id, &Resolution::Theirs).unwrap(), 0);
    main.merge_continue(None, None).unwrap();
    assert!(is_same(&all(&main, "things"), &[large(1, "a", 'y', 15 * MEGABYTE)]));
}

#[test]
fn two_thousand_collections() {
    let disk = SimDisk::new(1);
    let frond = open(&disk);
    let main = shop(&frond, "");
    for number in 0..2_000_i32 {
        insert(&main, &format!("c{number:04}"), &[document! { "_id": number }]);
    }
    main.commit("many", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    put(&side, "c1000", &document! { "_id": 1_000_i32, "a": 1_i32 }).unwrap();
    side.drop_collection("c0500").unwrap();
    side.create_collection("empty", document! {}.view()).unwrap();
    side.commit("few", "").unwrap();
    put(&main, "c1500", &document! { "_id": 1_500_i32, "a": 1_i32 }).unwrap();
    main.commit("one", "").unwrap();
    assert!(matches!(merge(&main, "side").unwrap(), MergeOutcome::Merged { .. }));
    assert!(main.status().unwrap().collections.is_empty());
    frond.close().unwrap();
    drop((frond, main, side));
    let frond = open(&disk);
    let main = shop(&frond, "");
    let names = main.list_collections().unwrap();
    assert_eq!(names.len(), 2_000);
    assert!(names.iter().any(|found| found.name == "empty"));
    assert!(names.iter().all(|found| found.name != "c0500"));
    assert_eq!(all(&main, "c1000")[0].get("a"), Some(Value::Int32(1)));
    assert_eq!(all(&main, "c1500")[0].get("a"), Some(Value::Int32(1)));
    main.drop_database().unwrap();
    assert!(frond.list_databases().unwrap().is_empty());
}

#[test]
fn a_merge_keeps_to_the_limit_of_indexes() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 1_i32 }]);
    main.commit("start", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    let add = |database: &Repository, letter: char| {
        let spec = |number| {
            let path = format!("{letter}{number}");
            let mut key = DocumentBuilder::new();
            key.append(&path, Value::Int32(1));
            let spec = document! { "key": &key.build() };
            IndexSpec::parse(spec.view()).unwrap()
        };
        let specs: Vec<IndexSpec> = (0..40).map(spec).collect();
        database.create_indexes("things", &specs).unwrap();
        database.commit("indexes", "").unwrap();
    };
    add(&side, 'a');
    add(&main, 'b');
    let error = merge(&main, "side").unwrap_err();
    assert_eq!(error.code, Code::OperationFailed, "{error}");
    assert_eq!(main.list_indexes("things").unwrap().len(), 41);
}

/// The names before it and a long `_id` together are longer than a key may be.
#[test]
fn a_document_with_a_long_id_can_be_in_conflict() {
    let frond = new();
    let main = shop(&frond, "");
    let ids = [text('x', 8_150) + "a", text('x', 8_150) + "b", text('x', 7_005)];
    let with = |a: i32| -> Vec<DocumentBuf> {
        ids.iter().map(|id| document! { "_id": id.as_str(), "a": a }).collect()
    };
    let collection = text('c', 200);
    let put_all = |database: &Repository, a: i32| {
        with(a).iter().for_each(|document| put(database, &collection, document).unwrap());
        database.commit("changed", "").unwrap();
    };
    put_all(&main, 0);
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    put_all(&side, 1);
    put_all(&main, 2);
    assert!(matches!(merge(&main, "side").unwrap(), MergeOutcome::Conflicts { .. }));
    let conflicts = main.conflicts(Some(&collection)).unwrap();
    assert_eq!(conflicts.len(), 3);
    for conflict in conflicts {
        main.resolve_conflict(&conflict.id, &Resolution::Theirs).unwrap();
    }
    main.merge_continue(None, None).unwrap();
    let mut expected = with(1);
    expected.rotate_right(1);
    assert!(is_same(&all(&main, &collection), &expected));
}

/// Two indexes of one key, one of which is unique, are allowed; so they don't stop a merge.
#[test]
fn indexes_of_one_key_are_merged() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 1_i32, "a": 1_i32 }]);
    index(&main, "things", document! { "a": 1_i32 }, false);
    let key = document! { "a": 1_i32 };
    let unique = document! { "key": &key, "name": "only", "unique": true };
    main.create_indexes("things", &[IndexSpec::parse(unique.view()).unwrap()]).unwrap();
    main.commit("start", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    insert(&side, "things", &[document! { "_id": 2_i32, "a": 2_i32 }]);
    side.commit("theirs", "").unwrap();
    insert(&main, "things", &[document! { "_id": 3_i32, "a": 3_i32 }]);
    main.commit("ours", "").unwrap();
    assert!(matches!(merge(&main, "side").unwrap(), MergeOutcome::Merged { .. }));
    for name in ["a_1", "only"] {
        assert_eq!(find(&main, "things", None, Some(name)).len(), 3);
    }
}

/// `_id`s that are equal though their types differ are one document.
#[test]
fn ids_of_other_types_are_one_document() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 1_i32, "a": 1_i32, "b": 1_i32 }]);
    index(&main, "things", document! { "a": 1_i32 }, true);
    main.commit("start", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    remove(&side, "things", 1);
    insert(&side, "things", &[document! { "_id": 1.0_f64, "a": 2_i32, "b": 1_i32 }]);
    side.commit("double", "").unwrap();
    put(&main, "things", &document! { "_id": 1_i32, "a": 1_i32, "b": 2_i32 }).unwrap();
    main.commit("integer", "").unwrap();
    assert!(matches!(merge(&main, "side").unwrap(), MergeOutcome::Merged { .. }));
    let expected = [document! { "_id": 1.0_f64, "a": 2_i32, "b": 2_i32 }];
    assert_eq!(all(&main, "things"), expected);
    assert_eq!(find(&main, "things", Some(document! { "a": 2_i32 }), Some("a_1")), expected);
    assert!(find(&main, "things", Some(document! { "a": 1_i32 }), Some("a_1")).is_empty());
    insert(&main, "things", &[document! { "_id": 2_i32, "a": 1_i32 }]);
}

#[test]
fn a_conflict_resolved_against_a_unique_index_still_waits() {
    let frond = new().with_document_bytes_max(16 << 20);
    let main = shop(&frond, "");
    let start = [document! { "_id": 1_i32, "a": 1_i32 }, document! { "_id": 2_i32, "a": 2_i32 }];
    insert(&main, "things", &start);
    index(&main, "things", document! { "a": 1_i32 }, true);
    main.commit("start", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    put(&side, "things", &document! { "_id": 1_i32, "a": 10_i32 }).unwrap();
    put(&side, "things", &document! { "_id": 2_i32, "a": 20_i32 }).unwrap();
    side.commit("theirs", "").unwrap();
    put(&main, "things", &document! { "_id": 1_i32, "a": 11_i32 }).unwrap();
    put(&main, "things", &document! { "_id": 2_i32, "a": 21_i32 }).unwrap();
    main.commit("ours", "").unwrap();
    merge(&main, "side").unwrap();
    let conflicts = main.conflicts(None).unwrap();
    let value = |id: i32, a: i32| Resolution::Value(Some(document! { "_id": id, "a": a }));
    let error = main.resolve_conflict(&conflicts[0].id, &value(1, 21)).unwrap_err();
    assert_eq!(error.code, Code::DuplicateKey);
    assert_eq!(main.conflicts(None).unwrap().len(), 2);
    let mut wrong = document! { "_id": 1_i32, "a": text('x', 17 * MEGABYTE).as_str() };
    let error = main
        .resolve_conflict(&conflicts[0].id, &Resolution::Value(Some(wrong.clone())))
        .unwrap_err();
    assert_eq!(error.code, Code::BSONObjectTooLarge);
    main.delete(
        "things",
        &[frond_db::DeleteStatement {
            filter: document! { "_id": 1_i32 },
            only_first: true,
            hint: None,
            variables: None,
            collation: None,
        }],
        true,
        Durability::Relaxed,
    )
    .unwrap();
    let resolution = Resolution::Value(Some(wrong.clone()));
    let error = main.resolve_conflict(&conflicts[0].id, &resolution).unwrap_err();
    assert_eq!(error.code, Code::BSONObjectTooLarge, "{error}");
    wrong = document! { "_id": 1_i32, "a": 5_i32 };
    main.resolve_conflict(&conflicts[0].id, &Resolution::Value(Some(wrong))).unwrap();
    main.merge_abort().unwrap();
    let expected =
        [document! { "_id": 1_i32, "a": 11_i32 }, document! { "_id": 2_i32, "a": 21_i32 }];
    assert_eq!(all(&main, "things"), expected);
    for a in [11_i32, 21] {
        assert_eq!(find(&main, "things", Some(document! { "a": a }), Some("a_1")).len(), 1);
    }
    for a in [5_i32, 10, 20] {
        assert!(find(&main, "things", Some(document! { "a": a }), Some("a_1")).is_empty());
    }
    assert!(main.status().unwrap().collections.is_empty());
}
