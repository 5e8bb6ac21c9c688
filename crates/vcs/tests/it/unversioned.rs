//! Goal: a collection that is in no version (capped, or `versioned: false`) and a versioned one of
//! its name never hide each other, and such a collection comes back whole, or not at all.

use frond_doc::{DocumentBuf, Value, document};
use frond_query::Code;
use frond_vcs::MergeOutcome;
use frond_vcs::Repository;

use super::{all, find, insert, merge, new, shop, try_find};

fn documents(ids: &[i32]) -> Vec<DocumentBuf> {
    ids.iter().map(|id| document! { "_id": *id }).collect()
}

fn unversioned() -> [DocumentBuf; 2] {
    [document! { "capped": true, "size": 4096_i32 }, document! { "versioned": false }]
}

#[test]
fn a_dropped_collection_does_not_come_back_behind_an_unversioned_one() {
    for options in unversioned() {
        let frond = new();
        let main = shop(&frond, "");
        insert(&main, "x", &documents(&[1, 2, 3]));
        main.commit("first", "").unwrap();
        main.drop_collection("x").unwrap();
        main.create_collection("x", options.view()).unwrap();
        insert(&main, "x", &documents(&[7]));
        assert_eq!(main.undo(None, None).unwrap_err().code, Code::NamespaceExists);
        let restored = main.restore_collection("x", None);
        assert_eq!(restored.unwrap_err().code, Code::NamespaceExists);
        assert_eq!(main.reset(None, true).unwrap_err().code, Code::NamespaceExists);
        assert_eq!(all(&main, "x"), documents(&[7]));
        main.rename_collection("x", "y", false).unwrap();
        assert_eq!(main.undo(None, None).unwrap().change.why, "drop: collection x");
        assert_eq!(all(&main, "x"), documents(&[1, 2, 3]));
        assert_eq!(all(&main, "y"), documents(&[7]));
    }
}

#[test]
fn a_merge_does_not_bring_what_could_not_be_seen() {
    for options in unversioned() {
        let frond = new();
        let main = shop(&frond, "");
        insert(&main, "other", &documents(&[1]));
        main.commit("first", "").unwrap();
        main.create_branch("side", None).unwrap();
        let side = shop(&frond, "side");
        insert(&side, "x", &documents(&[1, 2]));
        side.commit("side", "").unwrap();
        main.create_collection("x", options.view()).unwrap();
        let head = main.log(Some(1), None).unwrap()[0].id;
        for changes in [false, true] {
            if changes {
                insert(&main, "other", &documents(&[2]));
                main.commit("main", "").unwrap();
            }
            assert_eq!(merge(&main, "side").unwrap_err().code, Code::NamespaceExists);
        }
        assert!(main.log(Some(2), None).unwrap().iter().any(|commit| commit.id == head));
        main.rename_collection("x", "y", false).unwrap();
        assert!(matches!(merge(&main, "side").unwrap(), MergeOutcome::Merged { .. }));
        assert_eq!(all(&main, "x"), documents(&[1, 2]));
        assert!(matches!(merge(&side, "main").unwrap(), MergeOutcome::FastForward { .. }));
        assert_eq!(all(&side, "x"), documents(&[1, 2]));
    }
}

fn natural(database: &Repository) -> Vec<DocumentBuf> {
    let request = frond_db::collection::FindRequest {
        sort: Some(document! { "$natural": 1_i32 }),
        ..Default::default()
    };
    database.find("cap", &request).unwrap().collect::<Result<_, _>>().unwrap()
}

/// A capped collection of five documents at most, in an order that isn't that of `_id`.
fn capped(main: &Repository) {
    let options = document! { "capped": true, "size": 4096_i32, "max": 5_i32 };
    main.create_collection("cap", options.view()).unwrap();
    insert(main, "cap", &documents(&[9, 3, 7, 1, 5]));
    insert(main, "things", &documents(&[1]));
    let options = document! { "versioned": false };
    main.create_collection("loose", options.view()).unwrap();
    insert(main, "loose", &documents(&[4]));
}

fn check_capped(main: &Repository) {
    assert_eq!(natural(main), documents(&[9, 3, 7, 1, 5]));
    insert(main, "cap", &documents(&[100, 101]));
    assert_eq!(natural(main), documents(&[7, 1, 5, 100, 101]));
    let filter = Some(document! { "_id": Value::Int32(9) });
    assert!(find(main, "cap", filter, None).is_empty());
    assert!(main.check_collection("cap", &Default::default()).unwrap().is_valid());
}

#[test]
fn a_capped_collection_comes_back_with_its_order() {
    let frond = new();
    let main = shop(&frond, "");
    capped(&main);
    main.commit("first", "").unwrap();
    main.drop_collection("cap").unwrap();
    assert!(try_find(&main, "cap", None, None).unwrap().is_empty());
    assert_eq!(main.undo(None, None).unwrap().change.why, "drop: collection cap");
    check_capped(&main);
    main.drop_collection("loose").unwrap();
    main.undo(None, None).unwrap();
    assert_eq!(all(&main, "loose"), documents(&[4]));
    assert!(main.status().unwrap().collections.is_empty());
    frond.engine().check().expect("whole");
}

#[test]
fn a_database_comes_back_with_what_is_in_no_commit() {
    let frond = new();
    let main = shop(&frond, "");
    capped(&main);
    main.commit("first", "").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    side.create_collection("loose", document! { "versioned": false }.view()).unwrap();
    insert(&side, "loose", &documents(&[8]));
    assert!(main.delete_branch("side", false).is_err(), "what is in no commit would be lost");
    main.drop_database().unwrap();
    frond_vcs::reclaim(&frond, 1_000_000, Default::default()).unwrap();
    main.undrop("shop").unwrap();
    check_capped(&main);
    assert_eq!(all(&main, "loose"), documents(&[4]));
    assert_eq!(all(&shop(&frond, "side"), "loose"), documents(&[8]));
    frond.engine().check().expect("whole");
}
