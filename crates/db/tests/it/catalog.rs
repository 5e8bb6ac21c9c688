//! Goal: collections and databases come, go and are listed as MongoDB's. Method: tables.

use frond_db::ErrorKind;
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
