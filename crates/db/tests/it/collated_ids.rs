//! Goal: `_id` is unique, found and sorted by the collation of its collection. Method: a collection
//! in which case doesn't count, written in every way; searches compared with those that read all.

use frond_db::catalog::IndexSpec;
use frond_db::{Database, Durability, FindRequest, UpdateStatement};
use frond_doc::{DocumentBuf, Value};
use frond_query::{Code, Collation};

use crate::support::*;

const CASELESS: &str = "{'collation': {'locale': 'en', 'strength': 2}}";

fn caseless(database: &Database, name: &str) {
    database.create_collection(name, json(CASELESS).view()).expect("made");
}

/// The error of the only document that isn't inserted.
fn refused(database: &Database, collection: &str, documents: &str) -> frond_db::Error {
    let mut report = try_insert(database, collection, &jsons(documents));
    assert_eq!(report.errors.len(), 1, "{documents}: {:?}", report.errors);
    report.errors.remove(0).error
}

fn names(database: &Database, collection: &str) -> Vec<String> {
    let indexes = database.list_indexes(collection).expect("listed");
    indexes.into_iter().map(|index| index.name).collect()
}

#[test]
fn two_ids_that_compare_equal_are_duplicates_however_they_are_written() {
    let shop = shop();
    caseless(&shop, "words");
    insert(&shop, "words", "[{'_id': 'a'}, {'_id': 1}, {'_id': {'k': 'x'}}]");
    let error = refused(&shop, "words", "[{'_id': 'A'}]");
    assert_eq!(error.code, Code::DuplicateKey);
    let message = "E11000 duplicate key error collection: shop.words index: _id_ collation: { locale: \
                \"en\",";
    assert!(error.message.starts_with(message), "{}", error.message);
    assert!(error.message.ends_with("dup key: { _id: \"A\" }"), "{}", error.message);
    let details = error.details.expect("a duplicate has details");
    assert_eq!(details.get("keyPattern"), Some(Value::from(&json("{'_id': 1}"))));
    assert_eq!(details.get("keyValue"), Some(Value::from(&json("{'_id': 'A'}"))));
    let collation = details.get("collation").and_then(|it| it.as_document()).expect("it is told");
    assert_eq!(collation.get("strength"), Some(Value::Int32(2)));
    // The very same bytes are shown alike, and so are strings within.
    for same in ["[{'_id': 'a'}]", "[{'_id': {'k': 'X'}}]"] {
        let error = refused(&shop, "words", same);
        assert_eq!(error.code, Code::DuplicateKey, "{same}");
        assert!(error.details.expect("details").get("collation").is_some(), "{same}");
    }
    assert_eq!(refused(&shop, "words", "[{'_id': 'b'}, {'_id': 'B'}]").code, Code::DuplicateKey);

    let upsert =
        |filter: &str, change: &str| UpdateStatement { upsert: true, ..statement(filter, change) };
    let report = update(&shop, "words", upsert("{'_id': 'A'}", "{'$set': {'n': 1}}"));
    assert_eq!((report.matched, report.modified), (1, 1), "{:?}", report.errors);
    let report = update(&shop, "words", upsert("{'n': 9}", "{'$set': {'_id': 'A'}}"));
    assert_eq!(report.errors[0].error.code, Code::DuplicateKey);
    let report = update(&shop, "words", upsert("{'_id': 'C'}", "{'n': 2}"));
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    // No replacement changes the bytes of an `_id`.
    let report = update(&shop, "words", statement("{'_id': 'a'}", "{'_id': 'A', 'n': 5}"));
    assert_eq!(report.errors[0].error.code, Code::ImmutableField);

    insert(&shop, "plain", "[{'_id': 'A', 'n': 7}, {'_id': 'd', 'n': 8}]");
    let fails = "[{'$merge': {'into': 'words', 'whenMatched': 'fail'}}]";
    let error = aggregate(&shop, Some("plain"), fails).expect_err("`A` is there as `a`");
    assert_eq!(error.code, Code::DuplicateKey);
    assert_eq!(find(&shop, "words", "{'_id': 'D'}"), "[{'_id':'d','n':8}]");

    insert(&shop, "plain", "[{'_id': 'a'}]");
    let error = aggregate(&shop, Some("plain"), "[{'$out': 'words'}]").expect_err("two of one");
    assert_eq!(error.code, Code::DuplicateKey);
    delete(&shop, "plain", "{'_id': 'a'}");
    aggregate(&shop, Some("plain"), "[{'$out': 'words'}]").expect("written");
    assert_eq!(all(&shop, "words"), "[{'_id':'A','n':7},{'_id':'d','n':8}]");
    assert_eq!(refused(&shop, "words", "[{'_id': 'a'}]").code, Code::DuplicateKey);
    assert_eq!(delete(&shop, "words", "{'_id': 'a'}"), 1);
    insert(&shop, "words", "[{'_id': 'a'}]");
}

#[test]
fn collections_that_are_made_of_others_keep_it() {
    let shop = shop();
    caseless(&shop, "words");
    insert(&shop, "words", "[{'_id': 'a'}, {'_id': 'b'}]");
    shop.rename_collection("words", "renamed", false).expect("renamed");
    assert_eq!(refused(&shop, "renamed", "[{'_id': 'A'}]").code, Code::DuplicateKey);
    shop.copy_capped("renamed", "renamed", 100_000).expect("capped");
    assert_eq!(refused(&shop, "renamed", "[{'_id': 'A'}]").code, Code::DuplicateKey);
    shop.copy_capped("renamed", "cloned", 100_000).expect("cloned");
    assert_eq!(refused(&shop, "cloned", "[{'_id': 'B'}]").code, Code::DuplicateKey);
    caseless(&shop, "other");
    insert(&shop, "other", "[{'_id': 'a'}]");
    shop.commit("other", "").expect("committed");
    assert_eq!(refused(&shop, "other", "[{'_id': 'A'}]").code, Code::DuplicateKey);
}

#[test]
fn it_is_listed_as_the_one_index_of_ids() {
    let shop = shop();
    caseless(&shop, "words");
    insert(&shop, "words", "[{'_id': 'a', 'w': 'x'}]");
    let indexes = shop.describe_indexes("words").expect("listed");
    assert_eq!(indexes.len(), 1);
    assert_eq!(indexes[0].get("name"), Some(Value::String("_id_")));
    assert!(indexes[0].get("unique").is_none(), "{:?}", indexes[0]);
    let collation =
        indexes[0].get("collation").and_then(|it| it.as_document()).expect("it is told");
    assert_eq!(collation.get("strength"), Some(Value::Int32(2)));

    let spec = |text: &str| IndexSpec::parse(json(text).view()).expect("proper");
    let made = shop.create_indexes("words", &[spec("{'key': {'w': 1}}")]).expect("made");
    assert_eq!((made.before, made.after), (1, 2));
    let same = "{'key': {'_id': 1}, 'collation': {'locale': 'en', 'strength': 2}}";
    for there in ["{'key': {'_id': 1}}", same] {
        let made = shop.create_indexes("words", &[spec(there)]).expect("it is there");
        assert_eq!((made.before, made.after), (2, 2), "{there}");
    }
    let other = spec("{'key': {'_id': 1}, 'collation': {'locale': 'simple'}}");
    let error = shop.create_indexes("words", &[other]).expect_err("it is another");
    assert_eq!(error.code, Code::BadValue);
    assert!(error.message.starts_with("The _id index must have the same collation"), "{error}");
    assert_eq!(shop.drop_indexes("words", "_id_").unwrap_err().code, Code::InvalidOptions);
    assert_eq!(shop.drop_indexes("words", "*").expect("dropped"), 2);
    assert_eq!(names(&shop, "words"), ["_id_"]);
    assert_eq!(refused(&shop, "words", "[{'_id': 'A'}]").code, Code::DuplicateKey);
    let stats = shop.collection_stats("words").expect("told");
    assert_eq!(stats.get("nindexes"), Some(Value::Int32(1)));
    let sizes = stats.get("indexSizes").and_then(|it| it.as_document()).expect("sizes");
    assert_eq!(sizes.iter().count(), 1);
    assert_eq!(shop.index_uses("words").expect("told").len(), 1);
}

#[test]
fn searches_by_ids_go_by_it() {
    let shop = shop();
    caseless(&shop, "words");
    let documents: Vec<String> = (0..300).map(|n| format!("{{'_id': 'word {n:03}'}}")).collect();
    insert(&shop, "words", &format!("[{}]", documents.join(",")));
    insert(
        &shop,
        "words",
        "[{'_id': 'b', 'n': 1}, {'_id': 'A', 'n': 2}, {'_id': 'C', 'n': 3},
        {'_id': 7, 'n': 4}]",
    );
    let simple = Some(Collation::SIMPLE);
    for (filter, sort, hint, collation, expected, plan) in [
        ("{'_id': 'a'}", "{}", "''", None, "[2]", "IDHACK"),
        ("{'_id': 7}", "{}", "''", None, "[4]", "IDHACK"),
        ("{'_id': {'$in': ['a', 'B', 'zz']}}", "{'_id': 1}", "''", None, "[2,1]", "FETCH IXSCAN"),
        ("{'_id': {'$gte': 'a', '$lte': 'B'}}", "{'_id': -1}", "''", None, "[1,2]", "FETCH IXSCAN"),
        ("{'_id': {'$lt': 'D'}}", "{'_id': 1}", "'_id_'", None, "[2,1,3]", "FETCH IXSCAN"),
        ("{'n': {'$gt': 1}}", "{'_id': -1}", "{'_id': 1}", None, "[3,2,4]", "FETCH IXSCAN"),
        ("{'_id': 'a'}", "{}", "''", simple.clone(), "[]", "IDHACK"),
        ("{'_id': {'$lt': 'a'}}", "{'_id': 1}", "''", simple, "[2,3]", "FETCH IXSCAN"),
    ] {
        let request = FindRequest {
            sort: Some(json(sort)),
            hint: Some(value(hint)),
            collation,
            ..request(filter)
        };
        let found = run(&shop, "words", &request).expect("the request is right");
        let numbers: Vec<String> = found
            .iter()
            .map(|document| document.get("n").and_then(|n| n.as_integer()).unwrap_or(0).to_string())
            .collect();
        assert_eq!(format!("[{}]", numbers.join(",")), expected, "{filter} {sort}");
        let explained = shop.explain("words", &request).expect("explained");
        let plan_text = stages(&explained).replace("EXPRESS_IXSCAN", "IDHACK");
        assert_eq!(plan_text, plan, "{filter} {sort}");
    }
    let report = update(&shop, "words", statement("{'_id': 'B'}", "{'$set': {'n': 9}}"));
    assert_eq!(report.modified, 1);
    assert_eq!(shop.count("words", &request("{'_id': {'$in': ['B', 'c']}}")).expect("counted"), 2);
    assert_eq!(delete(&shop, "words", "{'_id': {'$lte': 'B'}}"), 2);
}

/// A search by the index and the same that reads all documents find the same in the same order.
#[test]
fn by_ids_or_by_a_scan() {
    const LETTERS: [&str; 10] = ["a", "A", "á", "b", "B", "ß", "ss", "1", "10", " "];
    frond_testkit::random::for_seeds(6, |mut random| {
        let shop = shop();
        let strength = random.below(3) + 1;
        let by = format!(
            "{{'collation': {{'locale': 'de', 'strength': {strength}, 'numericOrdering': true}}}}"
        );
        shop.create_collection("words", json(&by).view()).expect("made");
        let mut word = || {
            let count = random.below(3) + 1;
            (0..count).map(|_| *random.choose(&LETTERS)).collect::<String>()
        };
        let mut documents: Vec<DocumentBuf> =
            (0..150).map(|_| json(&format!("{{'_id': '{}'}}", word()))).collect();
        documents.push(json("{'_id': 5}"));
        let report = shop.insert("words", &documents, false, Durability::Relaxed).expect("tried");
        assert!(0 < report.count, "{strength}");
        for _ in 0..30 {
            let (one, two) = (word(), word());
            for filter in [
                format!("{{'_id': '{one}'}}"),
                format!("{{'_id': {{'$gte': '{one}', '$lt': '{two}'}}}}"),
                format!("{{'_id': {{'$in': ['{one}', '{two}', 5]}}}}"),
                format!("{{'_id': {{'$ne': '{one}'}}}}"),
            ] {
                let of = |hint: &str| {
                    let (hint, sort) = (Some(value(hint)), Some(json("{'_id': -1}")));
                    let request = FindRequest { hint, sort, ..request(&filter) };
                    texts(&run(&shop, "words", &request).expect("the request is right"))
                };
                assert_eq!(of("''"), of("{'$natural': 1}"), "{filter} {by}");
            }
        }
    });
}

/// A `$merge` finds by its request's collation; what it would make of an `_id` in other letters is
/// refused as an update's is.
#[test]
fn a_merge_finds_by_the_collation_of_its_request() {
    let shop = shop();
    caseless(&shop, "from");
    insert(&shop, "from", "[{'_id': 'A', 'v': 2}]");
    for (options, expected) in [
        ("'whenMatched': 'merge'", 66),
        ("'whenMatched': 'replace'", 66),
        ("'whenMatched': 'replace', 'whenNotMatched': 'discard'", 66),
        ("'whenMatched': [{'$replaceWith': '$$new'}]", 66),
        ("'whenMatched': 'fail'", 11000),
        ("'whenMatched': 'keepExisting', 'on': '_id'", 0),
        ("'whenMatched': [{'$set': {'v': '$$new.v'}}]", 0),
    ] {
        caseless(&shop, "to");
        insert(&shop, "to", "[{'_id': 'a', 'v': 1}]");
        let pipeline = format!("[{{'$merge': {{'into': 'to', {options}}}}}]");
        let merged = aggregate(&shop, Some("from"), &pipeline);
        let found = merged.map_or_else(|error| error.code.number(), |_| 0);
        assert_eq!(found, expected, "{options}");
        let becomes = if options.contains("$set") { 2 } else { 1 };
        assert_eq!(all(&shop, "to"), format!("[{{'_id':'a','v':{becomes}}}]"), "{options}");
        shop.drop_collection("to").expect("dropped");
    }
    // Paths that are named need an index of that collation; without one, none is looked for.
    insert(&shop, "plain", "[{'_id': 'a'}]");
    let named = "[{'$merge': {'into': 'plain', 'on': '_id'}}]";
    let error = aggregate(&shop, Some("from"), named).expect_err("no such index");
    assert_eq!(error.code, Code::Location(51183));
    let error = aggregate(&shop, Some("from"), "[{'$merge': 'plain'}]").expect_err("'a' is 'A'");
    assert_eq!(error.code, Code::ImmutableField);
}
