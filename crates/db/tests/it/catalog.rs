//! Goal: collections and databases come, go and are listed as MongoDB's. Method: tables.

use frond_db::catalog::IndexSpec;
use frond_db::{Durability, ErrorKind, WriteReport};
use frond_query::Code;

use crate::support::*;

#[test]
fn collections_are_made_listed_and_dropped() {
    let shop = shop();
    assert!(shop.list_collections().expect("listed").is_empty());
    shop.create_collection("b", json("{}").view()).expect("made");
    insert(&shop, "a", "[{'_id': 1}]");
    let listed = shop.list_collections().expect("listed");
    let names: Vec<&str> = listed.iter().map(|collection| &collection.name[..]).collect();
    assert_eq!(names, ["a", "b"]);
    assert_ne!(listed[0].uuid, listed[1].uuid);
    shop.create_collection("b", json("{}").view()).expect("the same options: nothing happens");
    assert!(shop.drop_collection("a").expect("dropped"));
    assert!(!shop.drop_collection("a").expect("nothing there"));
    assert_eq!(all(&shop, "a"), "[]");
    assert_eq!(shop.list_collections().expect("listed").len(), 1);
    for (name, options, code) in [
        ("c", "{'capped': true}", Code::InvalidOptions),
        ("c", "{'validator': 5}", Code::TypeMismatch),
        ("c", "{'pipeline': []}", Code::InvalidOptions),
        ("", "{}", Code::InvalidNamespace),
        ("a$b", "{}", Code::InvalidNamespace),
        ("system.x", "{}", Code::InvalidNamespace),
        ("b", "{'storageEngine': {}}", Code::NamespaceExists),
    ] {
        let error = shop.create_collection(name, json(options).view()).unwrap_err();
        assert_eq!(error.code, code, "{name} {options}: {}", error.message);
    }
}

#[test]
fn reads_of_what_is_not_there_make_nothing() {
    let frond = open();
    let shop = frond.database("shop").expect("a proper name");
    assert_eq!(find(&shop, "things", "{'a': 1}"), "[]");
    assert_eq!(delete(&shop, "things", "{}"), 0);
    assert_eq!(update(&shop, "things", statement("{}", "{'$set': {'a': 1}}")).matched, 0);
    assert!(frond.list_databases().expect("listed").is_empty());
    assert!(shop.list_collections().expect("listed").is_empty());
}

#[test]
fn collections_are_renamed() {
    let shop = shop();
    let spec = frond_db::catalog::IndexSpec::parse(json("{'key': {'a': 1}}").view());
    shop.create_indexes("a", &[spec.expect("a proper index")]).expect("made");
    insert(&shop, "a", "[{'_id': 1, 'a': 2}]");
    insert(&shop, "b", "[{'_id': 9}]");
    let code = |from, to, drop| shop.rename_collection(from, to, drop).unwrap_err().code;
    assert_eq!(code("a", "b", false), Code::NamespaceExists);
    assert_eq!(code("a", "a", false), Code::IllegalOperation);
    assert_eq!(code("nothing", "c", false), Code::NamespaceNotFound);
    assert_eq!(code("a", "x$", false), Code::InvalidNamespace);
    shop.rename_collection("a", "b", true).expect("renamed");
    assert_eq!(all(&shop, "a"), "[]");
    assert_eq!(find(&shop, "b", "{'a': 2}"), "[{'_id':1,'a':2}]");
    assert_eq!(shop.list_indexes("b").expect("listed").len(), 2);
    insert(&shop, "a", "[{'_id': 5}]");
    assert_eq!(all(&shop, "a"), "[{'_id':5}]");
}

#[test]
fn views_are_not_renamed_and_make_no_room() {
    let shop = shop();
    insert(&shop, "a", "[{'_id': 1}]");
    let view = json("{'viewOn': 'a', 'pipeline': []}");
    shop.create_collection("seen", view.view()).expect("made");
    let error = |from, to| shop.rename_collection(from, to, true).expect_err("refused");
    assert_eq!(error("seen", "b").code, Code::CommandNotSupportedOnView);
    assert_eq!(error("a", "seen").code, Code::NamespaceExists);
    assert_eq!(all(&shop, "seen"), "[{'_id':1}]");
}

#[test]
fn collections_move_between_databases() {
    let frond = open();
    let (shop, archive) = (frond.database("shop"), frond.database("archive"));
    let (shop, archive) = (shop.expect("a proper name"), archive.expect("a proper name"));
    let options = json("{'validator': {'a': {'$lt': 9}}, 'collation': {'locale': 'en'}}");
    shop.create_collection("a", options.view()).expect("made");
    let spec = IndexSpec::parse(json("{'key': {'a': 1}, 'unique': true}").view());
    shop.create_indexes("a", &[spec.expect("a proper index")]).expect("made");
    let large = "x".repeat(100_000);
    insert(&shop, "a", &format!("[{{'_id': 1, 'a': 2}}, {{'_id': 2, 'a': 3, 'b': '{large}'}}]"));
    let code = |from, to, drop| shop.move_collection(from, &archive, to, drop).unwrap_err().code;
    assert_eq!(code("nothing", "c", false), Code::NamespaceNotFound);
    assert_eq!(code("a", "x$", false), Code::InvalidNamespace);
    shop.move_collection("a", &archive, "b", false).expect("moved");
    assert_eq!(all(&shop, "a"), "[]");
    assert!(shop.list_collections().expect("listed").is_empty());
    assert_eq!(find(&archive, "b", "{'a': 2}"), "[{'_id':1,'a':2}]");
    assert_eq!(find(&archive, "b", &format!("{{'b': '{large}', 'a': 2}}")), "[]");
    let found = run(&archive, "b", &request("{'a': 3}")).expect("found");
    assert_eq!(found[0].get("b").and_then(|b| b.as_str()).map(str::len), Some(large.len()));
    let listed = archive.list_collections().expect("listed");
    assert_eq!(listed[0].options.get("validator"), options.get("validator"));
    let explained = archive.explain("b", &request("{'a': 3}")).expect("explained");
    assert_eq!(stages(&explained), "EXPRESS_IXSCAN");
    let report = try_insert(&archive, "b", &jsons("[{'_id': 3, 'a': 2}]"));
    assert_eq!(report.errors[0].error.code, Code::DuplicateKey);
    let report = try_insert(&archive, "b", &jsons("[{'_id': 3, 'a': 10}]"));
    assert_eq!(report.errors[0].error.code, Code::DocumentValidationFailure);
    // A collection that is in the way is replaced only if that is allowed, and a view never.
    insert(&shop, "a", "[{'_id': 7}]");
    assert_eq!(code("a", "b", false), Code::NamespaceExists);
    let view = json("{'viewOn': 'b', 'pipeline': []}");
    archive.create_collection("seen", view.view()).expect("made");
    assert_eq!(code("a", "seen", true), Code::NamespaceExists);
    shop.create_collection("seen", view.view()).expect("made");
    assert_eq!(code("seen", "c", true), Code::CommandNotSupportedOnView);
    shop.move_collection("a", &archive, "b", true).expect("moved");
    assert_eq!(all(&archive, "b"), "[{'_id':7}]");
    assert_eq!(archive.list_indexes("b").expect("listed").len(), 1);
    // A capped collection stays one, in its order.
    let capped = json("{'capped': true, 'size': 4096, 'max': 3}");
    shop.create_collection("log", capped.view()).expect("made");
    insert(&shop, "log", "[{'_id': 5}, {'_id': 4}, {'_id': 9}, {'_id': 1}]");
    shop.move_collection("log", &archive, "log", false).expect("moved");
    assert_eq!(find(&archive, "log", "{}"), "[{'_id':4},{'_id':9},{'_id':1}]");
    shop.create_collection("unlimited", json("{'capped': true, 'size': 4096, 'max': 0}").view())
        .expect("made");
    insert(&shop, "unlimited", "[{'_id': 1}, {'_id': 2}]");
    assert_eq!(find(&shop, "unlimited", "{}"), "[{'_id':1},{'_id':2}]");
    let options = &shop.list_collections().expect("listed").pop().expect("one").options;
    assert_eq!(text(options), "{'capped':true,'size':4096}");
    insert(&archive, "log", "[{'_id': 2}]");
    assert_eq!(find(&archive, "log", "{}"), "[{'_id':9},{'_id':1},{'_id':2}]");
    frond.engine().checkpoint().expect("folded");
    frond.engine().check().expect("every invariant holds");
}

#[test]
fn names_of_databases_differ_in_more_than_case() {
    let frond = open();
    let insert_into = |name: &str| {
        let database = frond.database(name).expect("a proper name");
        let document = frond_doc::document! { "_id": 1 };
        let report = database.insert("things", &[document], true, Durability::Relaxed);
        let failed = |report: WriteReport| report.errors.first().map(|error| error.error.code);
        report.map_or_else(|error| Some(error.code), failed)
    };
    assert_eq!(insert_into("Shop"), None);
    for name in ["shop", "SHOP", "Admin", "LOCAL", "Config"] {
        assert_eq!(insert_into(name), Some(Code::DatabaseDifferCase), "{name}");
    }
    assert_eq!(insert_into("Shop"), Some(Code::DuplicateKey), "the one that is there");
    assert_eq!(insert_into("shops"), None);
    let shop = frond.database("shop").expect("a proper name");
    let error = shop.create_collection("c", json("{}").view()).expect_err("refused");
    assert!(error.message.contains("have: [Shop] trying to create [shop]"), "{}", error.message);
    assert_eq!(all(&shop, "things"), "[]", "reading makes nothing");
    frond.database("Shop").expect("a proper name").drop_database().expect("dropped");
    assert_eq!(insert_into("shop"), None);
    assert_eq!(insert_into("Shop"), Some(Code::DatabaseDifferCase));
    // One of several that are made at once is made.
    for round in 0..20 {
        let names = [format!("Race{round}"), format!("race{round}"), format!("RACE{round}")];
        let barrier = std::sync::Barrier::new(names.len());
        let made: Vec<Option<Code>> = std::thread::scope(|scope| {
            let threads: Vec<_> = names
                .iter()
                .map(|name| {
                    scope.spawn(|| {
                        barrier.wait();
                        insert_into(name)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!(made.iter().filter(|code| code.is_none()).count(), 1, "{made:?}");
    }
}

#[test]
fn databases_are_listed_and_dropped() {
    let frond = open();
    let names = || -> Vec<(String, bool)> {
        let listed = frond.list_databases().expect("listed");
        listed.into_iter().map(|database| (database.name, database.empty)).collect()
    };
    for name in ["shop", "shop2", "archive"] {
        let database = frond.database(name).expect("a proper name");
        insert(&database, "things", "[{'_id': 1, 'text': 'some bytes'}]");
    }
    let kept = |name: &str| (name.to_owned(), false);
    assert_eq!(names(), [kept("archive"), kept("shop"), kept("shop2")]);
    assert!(frond.list_databases().expect("listed")[0].bytes > 20);
    let shop = frond.database("shop").expect("a proper name");
    shop.drop_database().expect("dropped");
    shop.drop_database().expect("nothing there");
    assert_eq!(names(), [kept("archive"), kept("shop2")]);
    assert_eq!(all(&shop, "things"), "[]");
    insert(&shop, "things", "[{'_id': 2}]");
    assert_eq!(all(&shop, "things"), "[{'_id':2}]");
    let other = frond.database("shop2").expect("a proper name");
    assert_eq!(all(&other, "things"), "[{'_id':1,'text':'some bytes'}]");
    frond.engine().checkpoint().expect("folded");
    frond.engine().check().expect("every invariant holds");
}

#[test]
fn a_branch_is_addressed_by_name() {
    let frond = open();
    let shop = frond.database("shop").expect("a proper name");
    let main = frond.database("shop@main").expect("the branch it will begin with");
    assert_eq!(main.branch(), Some("main"));
    assert!(!main.is_read_only());
    insert(&main, "things", "[{'_id': 1}]");
    assert_eq!(all(&shop, "things"), "[{'_id':1}]");
    assert_eq!(main.name().to_string(), "shop@main");
    let error = frond.database("nothing@feature").err().expect("there is no such branch");
    assert_eq!((error.kind, error.code), (ErrorKind::Invalid, Code::NamespaceNotFound));
}

#[test]
fn statistics() {
    let shop = shop();
    let spec = frond_db::catalog::IndexSpec::parse(json("{'key': {'a': 1}}").view());
    shop.create_indexes("things", &[spec.expect("a proper index")]).expect("made");
    insert(&shop, "things", "[{'_id': 1, 'a': 2}, {'_id': 2, 'a': 3}]");
    delete(&shop, "things", "{'_id': 2}");
    let stats = shop.collection_stats("things").expect("counted");
    let number = |name: &str| stats.get(name).and_then(|value| value.as_integer());
    assert_eq!(number("count"), Some(1));
    assert_eq!(number("nindexes"), Some(2));
    assert!(number("size") >= Some(23) && number("size") < Some(60), "{stats:?}");
    assert!(number("totalIndexSize") > Some(0) && number("totalIndexSize") < Some(60));
    let nothing = shop.collection_stats("nothing").expect("zeros");
    assert_eq!(nothing.get("count").and_then(|value| value.as_integer()), Some(0));
}
