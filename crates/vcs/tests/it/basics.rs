//! Commits, branches, log, status, diff and reset on small histories, each promise by itself.

use frond_doc::{Value, ValueBuf, document};
use frond_query::Code;
use frond_vcs::{BranchPolicy, CollectionChange, FieldChangeKind, Repository};

use super::{all, find, index, insert, new, open, put, remove, shop};

#[test]
fn a_commit_is_a_version_that_stays() {
    let frond = new();
    let main = shop(&frond, "");
    assert_eq!(main.commit("empty", "").unwrap_err().message, NOTHING);
    insert(&main, "things", &[document! { "_id": 1_i32, "a": 1_i32 }]);
    let first = main.commit("first", "Ada").expect("there is something to commit");
    assert_eq!((first.author.as_str(), first.message.as_str()), ("Ada", "first"));
    assert!(first.parents.is_empty());
    let error = main.commit("again", "").unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (Code::BadValue, NOTHING));

    put(&main, "things", &document! { "_id": 1_i32, "a": 2_i32 }).unwrap();
    insert(&main, "others", &[document! { "_id": 1_i32 }]);
    let second = main.commit("second", "").expect("there is something to commit");
    assert_eq!((second.author.as_str(), second.parents.as_slice()), ("frond", &[first.id][..]));
    put(&main, "things", &document! { "_id": 1_i32, "a": 3_i32 }).unwrap();

    let check = |version: &str, expected: i32| {
        let version = shop(&frond, version);
        assert!(version.is_read_only());
        assert_eq!(all(&version, "things"), [document! { "_id": 1_i32, "a": expected }]);
    };
    let (first, second) = (first.id.to_string(), second.id.to_string());
    check(&first, 1);
    check(&first[..8], 1);
    check(&second, 2);
    check("HEAD", 2);
    check("main~0", 2);
    check("main~1", 1);
    check("HEAD^", 1);
    check(&format!("{second}~"), 1);
    assert_eq!(all(&main, "things"), [document! { "_id": 1_i32, "a": 3_i32 }]);
    for wrong in ["main~2", "nothing", "HEAD^2", "0000", &first[..3]] {
        assert!(Repository::open(&frond, &format!("shop@{wrong}")).is_err(), "{wrong}");
    }
    let committed = shop(&frond, &first);
    assert!(committed.commit("no", "").is_err());
    assert_eq!(committed.list_collections().unwrap().len(), 1);
    assert_eq!(shop(&frond, &second).list_collections().unwrap().len(), 2);
}

const NOTHING: &str = "nothing to commit, working state clean";

#[test]
fn a_branch_is_by_itself() {
    let frond = new();
    let main = shop(&frond, "");
    assert_eq!(main.create_branch("early", None).unwrap_err().code, Code::NamespaceNotFound);
    insert(&main, "things", &[document! { "_id": 1_i32 }]);
    let commit = main.commit("first", "").unwrap();
    insert(&main, "things", &[document! { "_id": 2_i32 }]);
    let branch = main.create_branch("feature/x", None).expect("a good name");
    assert_eq!(branch.head, Some(commit.id));
    assert_eq!(main.create_branch("feature/x", None).unwrap_err().code, Code::NamespaceExists);
    assert_eq!(main.create_branch("a b", None).unwrap_err().code, Code::BadValue);
    assert_eq!(main.create_branch("b", Some("main~9")).unwrap_err().code, Code::BadValue);
    let feature = shop(&frond, "feature%2Fx");
    assert_eq!(all(&feature, "things"), [document! { "_id": 1_i32 }], "begins at the commit");
    insert(&feature, "things", &[document! { "_id": 3_i32 }]);
    remove(&main, "things", 1);
    assert_eq!(all(&feature, "things"), [document! { "_id": 1_i32 }, document! { "_id": 3_i32 }]);
    assert_eq!(all(&main, "things"), [document! { "_id": 2_i32 }]);
    let names: Vec<String> =
        main.list_branches().unwrap().into_iter().map(|branch| branch.name).collect();
    assert_eq!(names, ["feature/x", "main"]);

    assert_eq!(main.delete_branch("main", true).unwrap_err().code, Code::IllegalOperation);
    assert_eq!(main.delete_branch("nothing", true).unwrap_err().code, Code::NamespaceNotFound);
    let dirty = main.delete_branch("feature/x", false).unwrap_err();
    assert!(dirty.message.contains("not committed"), "{dirty}");
    feature.commit("third", "").unwrap();
    let unmerged = main.delete_branch("feature/x", false).unwrap_err();
    assert!(unmerged.message.contains("not merged"), "{unmerged}");
    main.delete_branch("feature/x", true).unwrap();
    assert!(Repository::open(&frond, "shop@feature%2Fx").is_err());
    assert!(feature.commit("gone", "").is_err());
    assert_eq!(main.list_branches().unwrap().len(), 1);
    main.create_branch("merged", None).unwrap();
    main.delete_branch("merged", false).expect("nothing is lost with it");
}

#[test]
fn a_branch_gets_another_name() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 1_i32 }]);
    main.commit("first", "").unwrap();
    main.create_branch("sale", None).unwrap();
    let sale = shop(&frond, "sale");
    insert(&sale, "things", &[document! { "_id": 2_i32 }]);
    let second = sale.commit("second", "").unwrap();
    insert(&sale, "things", &[document! { "_id": 3_i32 }]);
    let policy = BranchPolicy { closed: true, ..BranchPolicy::default() };
    main.set_branch_policy("sale", policy).unwrap();
    main.create_branch("taken", None).unwrap();
    main.create_tag("v1", None, None, false).unwrap();
    for (old, new, expected) in [
        ("sale", "taken", Code::NamespaceExists),
        ("sale", "v1", Code::NamespaceExists),
        ("sale", "sale", Code::NamespaceExists),
        ("sale", "a b", Code::BadValue),
        ("main", "trunk", Code::IllegalOperation),
        ("nothing", "new", Code::NamespaceNotFound),
    ] {
        assert_eq!(main.rename_branch(old, new).unwrap_err().code, expected, "{old} {new}");
    }
    main.set_branch_policy("taken", BranchPolicy { protected: true, ..policy }).unwrap();
    assert_eq!(main.rename_branch("taken", "x").unwrap_err().code, Code::IllegalOperation);

    let renamed = main.rename_branch("sale", "spring/sale").expect("nothing is in the way");
    assert_eq!((renamed.name.as_str(), renamed.head), ("spring/sale", Some(second.id)));
    assert!(Repository::open(&frond, "shop@sale").is_err());
    assert!(sale.commit("gone", "").is_err());
    let spring = shop(&frond, "spring%2Fsale");
    let three = [1, 2, 3].map(|id: i32| document! { "_id": id });
    assert_eq!(all(&spring, "things"), three, "what isn't committed goes with it");
    assert_eq!(main.branch_policy("spring/sale").unwrap(), policy);
    main.set_branch_policy("spring/sale", BranchPolicy::default()).unwrap();

    // A branch of the old name begins anew, and the renamed one goes on.
    main.create_branch("sale", None).unwrap();
    assert_eq!(main.branch_policy("sale").unwrap(), BranchPolicy::default());
    assert_eq!(all(&shop(&frond, "sale"), "things"), [document! { "_id": 1_i32 }]);
    insert(&spring, "things", &[document! { "_id": 4_i32 }]);
    let third = spring.commit("third", "").unwrap();
    assert_eq!(third.parents, [second.id]);
    let whys = |branch| {
        let changes = main.reflog(Some(branch)).unwrap();
        changes.into_iter().map(|change| change.why).collect::<Vec<_>>()
    };
    assert_eq!(
        whys("spring/sale"),
        [
            "commit: third",
            "branch: renamed from sale to spring/sale",
            "commit: second",
            "branch: created from HEAD"
        ]
    );
    assert_eq!(whys("sale"), ["branch: created from HEAD"]);
    for expected in ["commit: third", "commit: second"] {
        assert_eq!(spring.undo(None, None).unwrap().change.why, expected);
    }
}

#[test]
fn a_branch_that_takes_a_deleted_ones_name_is_undone_by_itself() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 1_i32 }]);
    main.commit("first", "").unwrap();
    let make = |branch: &str, id: i32| {
        main.create_branch(branch, None).unwrap();
        insert(&shop(&frond, branch), "things", &[document! { "_id": id }]);
    };
    make("sale", 2);
    make("plan", 3);
    let planned = shop(&frond, "plan").commit("planned", "").unwrap();
    main.delete_branch("sale", true).unwrap();
    main.rename_branch("plan", "sale").unwrap();

    // What the branch did itself, though the deletion of the other is newer.
    let sale = shop(&frond, "sale");
    assert_eq!(sale.undo(None, None).unwrap().change.why, "commit: planned");
    assert_eq!(sale.undo(None, None).unwrap_err().code, Code::NamespaceExists);
    sale.commit("again", "").unwrap();

    // And under a third name; the deleted one is there again under its own.
    main.rename_branch("sale", "away").unwrap();
    let away = shop(&frond, "away");
    assert_eq!(away.undo(None, None).unwrap().change.why, "commit: again");
    assert_ne!(away.log(None, None).unwrap()[0].id, planned.id);
    assert_eq!(main.undo(Some("sale"), None).unwrap().change.why, "branch: deleted");
    let ids = |branch: &str| all(&shop(&frond, branch), "things");
    assert_eq!(ids("sale"), [1, 2].map(|id: i32| document! { "_id": id }));
    assert_eq!(ids("away"), [1, 3].map(|id: i32| document! { "_id": id }));

    // A deletion that was undone ends nothing: what was before goes along.
    shop(&frond, "sale").commit("second", "").unwrap();
    main.delete_branch("sale", true).unwrap();
    main.undo(Some("sale"), None).unwrap();
    main.rename_branch("sale", "spring").unwrap();
    assert_eq!(shop(&frond, "spring").undo(None, None).unwrap().change.why, "commit: second");
}

#[test]
fn the_log_is_newest_first_and_follows_paths() {
    let frond = new();
    let main = shop(&frond, "");
    assert!(main.log(None, None).unwrap().is_empty());
    let messages = |path: Option<(&str, Option<i32>)>, limit| -> Vec<String> {
        let id = path.and_then(|(_, id)| id).map(|id| ValueBuf::from(Value::Int32(id)));
        let path = path.map(|(collection, _)| (collection, id.as_ref()));
        main.log(limit, path).unwrap().into_iter().map(|commit| commit.message).collect()
    };
    let commit = |message: &str| main.commit(message, "").unwrap();
    insert(&main, "a", &[document! { "_id": 1_i32 }, document! { "_id": 2_i32 }]);
    commit("a: 1 2");
    insert(&main, "b", &[document! { "_id": 1_i32 }]);
    commit("b: 1");
    put(&main, "a", &document! { "_id": 2_i32, "x": 1_i32 }).unwrap();
    commit("a: 2");
    remove(&main, "a", 1);
    commit("a: -1");
    assert_eq!(messages(None, None), ["a: -1", "a: 2", "b: 1", "a: 1 2"]);
    assert_eq!(messages(None, Some(2)), ["a: -1", "a: 2"]);
    assert_eq!(messages(Some(("a", None)), None), ["a: -1", "a: 2", "a: 1 2"]);
    assert_eq!(messages(Some(("b", None)), None), ["b: 1"]);
    assert_eq!(messages(Some(("a", Some(1))), None), ["a: -1", "a: 1 2"]);
    assert_eq!(messages(Some(("a", Some(2))), None), ["a: 2", "a: 1 2"]);
    assert_eq!(messages(Some(("a", Some(2))), Some(1)), ["a: 2"]);
    assert!(messages(Some(("a", Some(3))), None).is_empty());
    assert_eq!(shop(&frond, "main~2").log(None, None).unwrap().len(), 2);
}

#[test]
fn status_and_diff_show_what_changed() {
    let frond = new();
    let main = shop(&frond, "");
    let status = main.status().expect("nothing is there yet");
    assert!(status.head.is_none() && status.collections.is_empty());
    assert!(main.diff(None, None).unwrap().is_empty());
    let documents: Vec<_> = (0..100_i32).map(|id| document! { "_id": id, "a": id }).collect();
    insert(&main, "things", &documents);
    insert(&main, "gone", &documents[..3]);
    let first = main.commit("first", "").unwrap();
    assert!(main.status().unwrap().collections.is_empty());

    put(&main, "things", &document! { "_id": 5_i32, "a": 6_i32, "b": 1_i32 }).unwrap();
    remove(&main, "things", 7);
    insert(&main, "things", &[document! { "_id": 1000_i32 }]);
    index(&main, "things", document! { "a": 1_i32 }, false);
    main.drop_collection("gone").unwrap();
    insert(&main, "new", &documents[..2]);
    let status = main.status().unwrap();
    assert_eq!(status.head, Some(first.id));
    let counted: Vec<_> = status
        .collections
        .iter()
        .map(|found| {
            let counts = [found.added, found.removed, found.modified];
            (found.collection.as_str(), found.change, counts)
        })
        .collect();
    let expected = [
        ("gone", CollectionChange::Removed, [0, 3, 0]),
        ("new", CollectionChange::Added, [2, 0, 0]),
        ("things", CollectionChange::Modified, [1, 1, 1]),
    ];
    assert_eq!(counted, expected);

    let check = |from: Option<&str>, to: Option<&str>| {
        let diff = main.diff(from, to).expect("both are versions");
        assert_eq!(diff.len(), 3);
        let things = &diff[2];
        let names: Vec<_> = things.indexes.iter().map(|index| index.name.as_str()).collect();
        assert_eq!(names, ["a_1"]);
        assert_eq!(things.added, [document! { "_id": 1000_i32 }]);
        assert_eq!(things.removed, [document! { "_id": 7_i32, "a": 7_i32 }]);
        let modified = &things.modified[0];
        assert_eq!(modified.id.as_value(), Value::Int32(5));
        let changes: Vec<_> =
            modified.changes.iter().map(|change| (change.kind, change.path.as_str())).collect();
        let expected = [(FieldChangeKind::Modified, "a"), (FieldChangeKind::Added, "b")];
        assert_eq!(changes, expected);
    };
    check(None, None);
    check(Some("HEAD"), Some("WORKING"));
    check(Some(&first.id.to_string()), Some("WORKING"));
    check(Some("main"), None);
    // A branch's name is its last commit, as in git.
    assert!(main.diff(Some("HEAD"), Some("main")).unwrap().is_empty());
    assert!(main.diff(Some("main..main"), None).unwrap().is_empty());
    let second = main.commit("second", "").unwrap();
    check(Some(&first.id.to_string()), Some("main"));
    check(Some("HEAD~1"), Some("HEAD"));
    check(Some("main~1"), Some(&second.id.to_string()));
    assert!(main.diff(None, None).unwrap().is_empty());
    assert!(main.diff(Some("nothing"), None).is_err());
    let back = main.diff(Some("HEAD"), Some("HEAD~1")).unwrap();
    assert_eq!(back[2].modified[0].changes[1].kind, FieldChangeKind::Removed);
    let old = shop(&frond, "main~1");
    assert!(old.diff(None, None).unwrap().is_empty());
    assert_eq!(old.diff(None, Some("main")).unwrap().len(), 3);
}

#[test]
fn reset_moves_the_branch_and_hard_its_working_state() {
    let frond = new();
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 1_i32, "a": 1_i32 }]);
    index(&main, "things", document! { "a": 1_i32 }, false);
    let first = main.commit("first", "").unwrap();
    put(&main, "things", &document! { "_id": 1_i32, "a": 2_i32 }).unwrap();
    insert(&main, "more", &[document! { "_id": 1_i32 }]);
    let second = main.commit("second", "").unwrap();
    let state = |expected: i32, more: usize| {
        assert_eq!(all(&main, "things"), [document! { "_id": 1_i32, "a": expected }]);
        let filter = Some(document! { "a": expected });
        assert_eq!(find(&main, "things", filter, Some("a_1")).len(), 1);
        assert_eq!(all(&main, "more").len(), more);
    };
    // Soft: only HEAD moves, and the difference is a change.
    assert_eq!(main.reset(Some("HEAD~1"), false).unwrap(), Some(first.id));
    state(2, 1);
    assert_eq!(main.status().unwrap().collections.len(), 2);
    assert_eq!(main.reset(Some(&second.id.to_string()), false).unwrap(), Some(second.id));
    assert!(main.status().unwrap().collections.is_empty(), "the same content, the same root");
    // Hard: all of it.
    put(&main, "things", &document! { "_id": 1_i32, "a": 9_i32 }).unwrap();
    main.drop_collection("more").unwrap();
    assert_eq!(main.reset(None, true).unwrap(), Some(second.id));
    state(2, 1);
    main.reset(Some("HEAD^"), true).unwrap();
    state(1, 0);
    assert!(main.status().unwrap().collections.is_empty());
    assert_eq!(main.log(None, None).unwrap().len(), 1);
    main.reset(Some(&second.id.to_string()), true).unwrap();
    state(2, 1);
    main.drop_indexes("things", "a_1").unwrap();
    main.reset(None, true).unwrap();
    state(2, 1);
    assert!(main.reset(Some("main~7"), true).is_err());
}

#[test]
fn soft_reset_of_an_untouched_branch_keeps_what_it_showed() {
    let disk = frond_testkit::SimDisk::new(3);
    let frond = open(&disk);
    let main = shop(&frond, "");
    insert(&main, "things", &[document! { "_id": 1_i32 }]);
    insert(&main, "gone", &[document! { "_id": 1_i32 }]);
    main.commit("first", "").unwrap();
    insert(&main, "things", &[document! { "_id": 2_i32 }]);
    main.drop_collection("gone").unwrap();
    main.commit("second", "").unwrap();
    main.create_branch("other", None).unwrap();
    let other = shop(&frond, "other");
    other.reset(Some("HEAD~1"), false).unwrap();
    assert_eq!(all(&other, "things").len(), 2);
    assert_eq!(other.list_collections().unwrap().len(), 1);
    assert_eq!(other.status().unwrap().collections.len(), 2);
    other.commit("second again", "").unwrap();
    assert!(other.diff(Some("main"), Some("other")).unwrap().is_empty());
}
