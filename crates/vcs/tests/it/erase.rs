//! Goal: erased data is in no version, no working state and on no disk; everything else is
//! unchanged. Method: histories with branches, merges, tags and indexes in which a marker stands
//! that nothing compresses; after erasing, every version is compared with what it was less the
//! erased, and every file of the disk is searched for the marker.

use frond_db::{Frond, ReclaimOptions};
use frond_doc::{DocumentBuf, Value, document};
use frond_query::Code;
use frond_testkit::SimDisk;
use frond_vcs::Repository;
use frond_vcs::{CommitRequest, EraseRequest, MergeOutcome};

use super::{all, find, index, insert, merge, open, put, remove, shop};

const MARKER: &str = "qX7vK2mZ9pLw4TfRb8Yc1NsHd6Gj3Ue0";
const PURGE: ReclaimOptions = ReclaimOptions { thorough: true, bytes_a_second: None, purge: true };

fn person(id: i32, name: &str, age: i32) -> DocumentBuf {
    document! { "_id": id, "name": name, "age": age }
}

/// Files of the disk that hold the marker.
fn files_with_marker(disk: &SimDisk) -> Vec<String> {
    let names = disk.machine().disk.list().expect("the disk works");
    let holds = |name: &String| {
        let bytes = disk.contents(name).unwrap_or_default();
        bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes())
    };
    names.into_iter().filter(holds).collect()
}

/// Three commits on main, two on a branch, a merge, a tag, and changes that aren't committed.
fn history(frond: &Frond) -> Repository {
    let main = shop(frond, "");
    let people: Vec<_> = (0..50).map(|id| person(id, "someone", id)).collect();
    insert(&main, "people", &people);
    index(&main, "people", document! { "name": 1_i32 }, false);
    index(&main, "people", document! { "age": 1_i32 }, true);
    main.commit("before", "ada").unwrap();
    put(&main, "people", &person(7, MARKER, 7)).unwrap();
    insert(&main, "other", &[document! { "_id": 1_i32 }]);
    main.commit("it comes", "ada").unwrap();
    main.create_tag("v1", None, None, false).unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(frond, "side");
    put(&side, "people", &person(7, MARKER, 700)).unwrap();
    side.commit("it changes", "bob").unwrap();
    put(&main, "people", &person(8, "else", 8)).unwrap();
    main.commit("else", "ada").unwrap();
    assert!(matches!(merge(&main, "side").unwrap(), MergeOutcome::Merged { .. }));
    put(&main, "people", &person(9, "not committed", 9)).unwrap();
    put(&side, "people", &document! { "_id": 7_i32, "age": 701_i32, "name": MARKER, "b": 1_i32 })
        .unwrap();
    main
}

/// Returns the documents in every version of main, newest first.
fn versions(frond: &Frond, count: usize) -> Vec<Vec<DocumentBuf>> {
    let version = |back: usize| all(&shop(frond, &format!("main~{back}")), "people");
    (0..count).map(version).collect()
}

#[test]
fn a_document_is_erased_from_all_history() {
    let disk = SimDisk::new(1);
    let frond = open(&disk);
    let main = history(&frond);
    frond.engine().checkpoint().unwrap();
    assert!(!files_with_marker(&disk).is_empty(), "the search finds what is there");
    let without = |documents: Vec<DocumentBuf>| -> Vec<DocumentBuf> {
        let keeps = |document: &DocumentBuf| document.get("_id") != Some(Value::Int32(7));
        documents.into_iter().filter(keeps).collect()
    };
    let expected: Vec<_> = versions(&frond, 4).into_iter().map(without).collect();
    let (working, log) = (without(all(&main, "people")), main.log(None, None).unwrap());
    let request = EraseRequest {
        collection: "people".to_owned(),
        documents: vec![Value::Int32(7).to_buf()],
        ..EraseRequest::default()
    };
    let dry = EraseRequest { dry_run: true, ..request.clone() };
    let estimate = main.erase(&dry).unwrap();
    assert_eq!(main.log(None, None).unwrap()[0].id, log[0].id, "a dry run changes nothing");
    let erased = main.erase(&request).unwrap();
    assert_eq!(erased.commits, estimate.commits);
    assert_eq!(erased.commits.len(), 5);
    assert_eq!(
        (&erased.branches[..], &erased.tags[..]),
        (&["main".to_owned(), "side".to_owned()][..], &["v1".to_owned()][..])
    );
    assert_eq!(versions(&frond, 4), expected);
    assert_eq!(all(&main, "people"), working);
    assert!(all(&shop(&frond, "side"), "people").iter().all(|each| each.get("b").is_none()));
    let after = main.log(None, None).unwrap();
    // Two commits are as old and as far from the first: their ids, which change, order them.
    let words = |log: &[frond_vcs::CommitInfo]| {
        let one =
            |commit: &frond_vcs::CommitInfo| (commit.message.clone(), commit.timestamp_millis);
        let mut words: Vec<_> = log.iter().map(one).collect();
        words.sort();
        words
    };
    assert_eq!(words(&after), words(&log));
    // Old ids lead to the new commits.
    for (old, new) in &erased.commits {
        let by_old = shop(&frond, &old.to_string());
        assert_eq!(by_old.log(Some(1), None).unwrap()[0].id, *new);
    }
    assert_eq!(main.erased_commits().unwrap().len(), 5);
    // The indexes are right, the unique one's key is free.
    assert!(find(&main, "people", Some(document! { "name": MARKER }), Some("name_1")).is_empty());
    put(&main, "people", &person(700, "new", 700)).unwrap();
    assert!(main.undo(None, None).is_err() || all(&main, "people").len() >= 49);

    let reclaimed = frond_vcs::reclaim(&frond, 14 * 24 * 3600 * 1000, PURGE).unwrap();
    assert!(!reclaimed.collected.stopped);
    assert_eq!(main.erased_left(&erased).unwrap(), 0);
    assert_eq!(files_with_marker(&disk), Vec::<String>::new());
    frond.engine().check().unwrap();
    frond.close().unwrap();
    drop((frond, main));
    // An opening would find dead chunks again that lie in packs still.
    let frond = open(&disk);
    assert_eq!(shop(&frond, "").erased_left(&erased).unwrap(), 0);
    assert_eq!(versions(&frond, 4), expected);
    assert_eq!(files_with_marker(&disk), Vec::<String>::new());
}

#[test]
fn a_field_is_erased_from_all_documents_or_one() {
    for whole in [true, false] {
        let disk = SimDisk::new(2);
        let frond = open(&disk);
        let main = history(&frond);
        let documents = if whole { Vec::new() } else { vec![Value::Int32(7).to_buf()] };
        let without = |documents: Vec<DocumentBuf>| -> Vec<DocumentBuf> {
            let strip = |document: &DocumentBuf| {
                let is_meant = whole || document.get("_id") == Some(Value::Int32(7));
                let mut builder = frond_doc::DocumentBuilder::new();
                for (name, value) in document.iter() {
                    if !is_meant || name != "name" {
                        builder.append(name, value);
                    }
                }
                builder.build()
            };
            documents.iter().map(strip).collect()
        };
        let expected: Vec<_> = versions(&frond, 4).into_iter().map(without).collect();
        let request = EraseRequest {
            collection: "people".to_owned(),
            documents,
            fields: vec!["name".to_owned()],
            dry_run: false,
        };
        let erased = main.erase(&request).unwrap();
        assert_eq!(erased.commits.len(), 5);
        assert_eq!(versions(&frond, 4), expected);
        let main = shop(&frond, "");
        // An index over nothing but nulls goes with the field.
        assert_eq!(main.list_indexes("people").unwrap().len(), if whole { 2 } else { 3 });
        let by_age = find(&main, "people", Some(document! { "age": 8_i32 }), Some("age_1"));
        assert_eq!(by_age.len(), 1);
        frond_vcs::reclaim(&frond, 0, PURGE).unwrap();
        assert_eq!(main.erased_left(&erased).unwrap(), 0);
        assert_eq!(files_with_marker(&disk), Vec::<String>::new());
        frond.engine().check().unwrap();
        // Once more there is nothing to erase.
        assert_eq!(main.erase(&request).unwrap_err().code, Code::NoSuchKey);
    }
}

#[test]
fn a_branch_that_never_had_it_holds_nothing_back() {
    let disk = SimDisk::new(4);
    let frond = open(&disk);
    let main = shop(&frond, "");
    insert(&main, "people", &[person(1, "a", 1)]);
    main.commit("before", "").unwrap();
    main.create_branch("aside", None).unwrap();
    put(&main, "people", &person(2, MARKER, 2)).unwrap();
    main.commit("it comes", "").unwrap();
    let request = EraseRequest {
        collection: "people".to_owned(),
        documents: vec![Value::Int32(2).to_buf()],
        fields: Vec::new(),
        dry_run: false,
    };
    let erased = main.erase(&request).unwrap();
    assert_eq!(erased.branches, ["main"]);
    frond_vcs::reclaim(&frond, 0, PURGE).unwrap();
    assert_eq!(main.erased_left(&erased).unwrap(), 0);
    assert_eq!(all(&shop(&frond, "aside"), "people"), [person(1, "a", 1)]);
}

#[test]
fn large_documents_collections_without_versions_and_what_cursors_hold() {
    let disk = SimDisk::new(3);
    let frond = open(&disk);
    let main = shop(&frond, "");
    let mut text = String::new();
    for number in 0..4_000 {
        text.push_str(&format!("{MARKER}{number}"));
    }
    let large = document! { "_id": 1_i32, "text": text.as_str(), "a": 1_i32 };
    insert(&main, "people", &[large, person(2, "b", 2)]);
    main.commit("large", "").unwrap();
    let request = EraseRequest {
        collection: "people".to_owned(),
        documents: vec![Value::Int32(1).to_buf()],
        fields: vec!["text".to_owned()],
        dry_run: false,
    };
    let mut cursor = main.find("people", &Default::default()).unwrap();
    let erased = main.erase(&request).unwrap();
    frond_vcs::reclaim(&frond, 0, PURGE).unwrap();
    assert!(main.erased_left(&erased).unwrap() > 0, "a cursor reads it still");
    assert!(cursor.next().unwrap().unwrap().get("text").is_some());
    drop(cursor);
    frond_vcs::reclaim(&frond, 0, PURGE).unwrap();
    assert_eq!(main.erased_left(&erased).unwrap(), 0);
    assert_eq!(files_with_marker(&disk), Vec::<String>::new());
    let expected = [document! { "_id": 1_i32, "a": 1_i32 }, person(2, "b", 2)];
    assert_eq!(all(&shop(&frond, "HEAD"), "people"), expected);

    main.create_collection("cache", document! { "versioned": false }.view()).unwrap();
    insert(&main, "cache", &[person(1, MARKER, 1), person(2, "b", 2)]);
    let request = EraseRequest {
        collection: "cache".to_owned(),
        documents: vec![Value::Int32(1).to_buf()],
        ..EraseRequest::default()
    };
    let erased = main.erase(&request).unwrap();
    assert!(erased.commits.is_empty());
    assert_eq!(all(&main, "cache"), [person(2, "b", 2)]);
    frond_vcs::reclaim(&frond, 0, PURGE).unwrap();
    assert_eq!(files_with_marker(&disk), Vec::<String>::new());
}

/// Commands are recorded with what they carry, on any branch. The profiler goes on there.
#[test]
fn profiled_commands_are_erased() {
    let disk = SimDisk::new(4);
    let frond = open(&disk);
    let main = shop(&frond, "");
    insert(&main, "people", &[person(1, MARKER, 1), person(2, "b", 2)]);
    main.commit("it comes", "ada").unwrap();
    main.create_branch("side", None).unwrap();
    let side = shop(&frond, "side");
    let entry = |id: i32, name: &str| document! { "_id": id, "find": "people", "name": name };
    for branch in [&main, &side] {
        let options = document! { "capped": true, "size": 256_i32 };
        branch.create_collection("system.profile", options.view()).unwrap();
        insert(branch, "system.profile", &[entry(1, MARKER), entry(2, MARKER)]);
        index(branch, "system.profile", document! { "name": 1_i32 }, false);
    }
    let request = EraseRequest {
        collection: "people".to_owned(),
        documents: vec![Value::Int32(1).to_buf()],
        ..EraseRequest::default()
    };
    main.erase(&EraseRequest { dry_run: true, ..request.clone() }).unwrap();
    let absent = EraseRequest { documents: vec![Value::Int32(3).to_buf()], ..request.clone() };
    assert_eq!(main.erase(&absent).unwrap_err().code, Code::NoSuchKey);
    assert_eq!(all(&main, "system.profile").len(), 2, "nothing was erased yet");
    main.erase(&request).unwrap();
    frond_vcs::reclaim(&frond, 0, PURGE).unwrap();
    assert_eq!(files_with_marker(&disk), Vec::<String>::new());
    for branch in [&main, &side] {
        assert_eq!(all(branch, "system.profile"), Vec::<DocumentBuf>::new());
        for id in 3..20 {
            insert(branch, "system.profile", &[entry(id, "x")]);
        }
        let left = all(branch, "system.profile");
        assert!((2..10).contains(&left.len()), "{left:?}");
        let found = find(branch, "system.profile", Some(document! { "name": "x" }), Some("name_1"));
        assert_eq!(found, left);
    }
    frond.engine().check().unwrap();
}

/// A client that erases has often deleted, dropped or reset before: what only undoing would bring
/// back goes, too.
#[test]
fn data_kept_only_for_undo_is_erased() {
    let request = |id: i32| EraseRequest {
        collection: "people".to_owned(),
        documents: vec![Value::Int32(id).to_buf()],
        ..EraseRequest::default()
    };
    for way in ["reset", "branch", "collection", "database", "amend"] {
        let disk = SimDisk::new(2);
        let frond = open(&disk);
        let main = shop(&frond, "");
        insert(&main, "people", &[person(1, "someone", 1)]);
        main.commit("first", "ada").unwrap();
        let holder = match way {
            "branch" => {
                main.create_branch("side", None).unwrap();
                shop(&frond, "side")
            }
            _ => shop(&frond, ""),
        };
        insert(&holder, "people", &[person(7, MARKER, 7)]);
        if way != "collection" {
            holder.commit("it comes", "ada").unwrap();
        }
        match way {
            "reset" => drop(main.reset(Some("main~1"), true).unwrap()),
            "branch" => main.delete_branch("side", true).unwrap(),
            "collection" => drop(main.drop_collection("people").unwrap()),
            "database" => {
                main.drop_database().unwrap();
                insert(&main, "people", &[person(1, "other", 1)]);
            }
            _ => {
                remove(&main, "people", 7);
                let request = CommitRequest { amend: true, ..CommitRequest::default() };
                main.commit_as(&request).unwrap();
            }
        }
        frond.engine().checkpoint().unwrap();
        assert!(!files_with_marker(&disk).is_empty(), "{way}");
        let error = main.erase(&request(8)).unwrap_err();
        assert_eq!(error.code, Code::NoSuchKey, "{way}: {error}");
        let dry = EraseRequest { dry_run: true, ..request(7) };
        assert!(main.erase(&dry).unwrap().documents > 0, "{way}");
        assert!(!files_with_marker(&disk).is_empty(), "{way}");
        let erased = main.erase(&request(7)).unwrap();
        assert!(erased.documents > 0 && erased.commits.is_empty(), "{way}: {erased:?}");
        frond_vcs::reclaim(&frond, 14 * 24 * 3600 * 1000, PURGE).unwrap();
        assert_eq!(main.erased_left(&erased).unwrap(), 0, "{way}");
        assert_eq!(files_with_marker(&disk), Vec::<String>::new(), "{way}");
        let error = main.erase(&request(7)).unwrap_err();
        assert_eq!(error.code, Code::NoSuchKey, "{way}: {error}");
        frond.engine().check().unwrap();
    }
}

#[test]
fn erasures_that_are_refused() {
    let frond = super::new();
    let main = history(&frond);
    let request = |documents: &[i32], fields: &[&str]| EraseRequest {
        collection: "people".to_owned(),
        documents: documents.iter().map(|id| Value::Int32(*id).to_buf()).collect(),
        fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        dry_run: false,
    };
    for wrong in [request(&[], &[]), request(&[], &["_id"]), request(&[1], &["a..b"])] {
        assert!(main.erase(&wrong).is_err(), "{wrong:?}");
    }
    // Two documents without the field of a unique index.
    let error = main.erase(&request(&[1, 2], &["age"])).unwrap_err();
    assert_eq!(error.code, Code::DuplicateKey);
    main.commit("all", "").unwrap();
    let side = shop(&frond, "side");
    put(&side, "people", &person(9, "theirs", 9)).unwrap();
    side.commit("a conflict", "").unwrap();
    assert!(matches!(merge(&main, "side").unwrap(), MergeOutcome::Conflicts { .. }));
    let error = main.erase(&request(&[1], &[])).unwrap_err();
    assert_eq!(error.code, Code::IllegalOperation, "{error}");
    main.merge_abort().unwrap();
    main.erase(&request(&[1], &[])).unwrap();
}
