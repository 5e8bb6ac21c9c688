//! Goal: validators hold for every write, with MongoDB's details; views read as their pipelines
//! say. Method: small collections, each kind of write.

use std::sync::{Arc, Mutex};

use frond_db::{Database, Error, FindAndModify, FindRequest, FrondOptions, UpdateStatement};
use frond_query::Code;
use frond_testkit::SimDisk;
use frond_vcs::Repository;

use crate::support::*;

const SCHEMA: &str = "{'validator': {'$jsonSchema': {'bsonType': 'object', 'required': ['n'],
    'properties': {'n': {'bsonType': 'int', 'minimum': 0, 'description': 'how many'},
                   't': {'type': 'array', 'items': {'enum': ['x', 'y']}}}}}}";

#[test]
fn validators_hold_for_writes() {
    let shop = shop();
    for near in ["{'a': {'$near': [1, 2]}}", "{'$and': [{'a': {'$nearSphere': [1, 2]}}]}"] {
        let options = json(&format!("{{'validator': {near}}}"));
        let refused = shop.create_collection("places", options.view()).expect_err(near);
        assert_eq!(refused.code, Code::Location(5_626_500), "{refused}");
    }
    shop.create_collection("things", json(SCHEMA).view()).expect("made");
    insert(&shop, "things", "[{'_id': 1, 'n': 1, 't': ['x']}]");
    let report = try_insert(&shop, "things", &jsons("[{'_id': 2, 'n': -1, 't': ['x', 'z']}]"));
    let error = &report.errors[0].error;
    assert_eq!(error.code, Code::DocumentValidationFailure);
    assert_eq!(error.message, "Document failed validation");
    let details = error.details.as_ref().expect("there are details");
    assert_eq!(
        text(details),
        "{'errInfo':{'failingDocumentId':2,'details':{'operatorName':'$jsonSchema',\
         'schemaRulesNotSatisfied':[{'operatorName':'properties','propertiesNotSatisfied':[\
         {'propertyName':'n','description':'how many','details':[{'operatorName':'minimum',\
         'specifiedAs':{'minimum':0},'reason':'comparison failed','consideredValue':-1}]},\
         {'propertyName':'t','details':[{'operatorName':'items','reason':\
         'At least one item did not match the sub-schema','itemIndex':1,'details':[\
         {'operatorName':'enum','specifiedAs':{'enum':['x','y']},'reason':\
         'value was not found in enum','consideredValue':'z'}]}]}]}]}}}"
    );
    let missing = try_insert(&shop, "things", &jsons("[{'_id': 2}]"));
    let details = text(missing.errors[0].error.details.as_ref().expect("details"));
    assert!(details.contains("'missingProperties':['n']"), "{details}");
    let report = update(&shop, "things", statement("{'_id': 1}", "{'$set': {'n': 'many'}}"));
    assert_eq!(report.errors[0].error.code, Code::DocumentValidationFailure);
    let upsert = UpdateStatement { upsert: true, ..statement("{'_id': 5}", "{'$set': {'a': 1}}") };
    assert_eq!(update(&shop, "things", upsert).errors.len(), 1);
    let unchecked = shop.without_validation();
    insert(&unchecked, "things", "[{'_id': 3}]");
    // A document that fails already is refused by a strict validator, and left alone by a moderate
    // one.
    let change = || statement("{'_id': 3}", "{'$set': {'a': 1}}");
    assert_eq!(update(&shop, "things", change()).errors.len(), 1);
    shop.change_collection("things", json("{'validationLevel': 'moderate'}").view())
        .expect("changed");
    assert_eq!(update(&shop, "things", change()).modified, 1);
    assert_eq!(
        update(&shop, "things", statement("{'_id': 1}", "{'$unset': {'n': 1}}")).errors.len(),
        1
    );
    shop.change_collection(
        "things",
        json("{'validator': {'n': {'$lt': 5}}, 'validationLevel': 'strict'}").view(),
    )
    .expect("changed");
    let report = try_insert(&shop, "things", &jsons("[{'_id': 7, 'n': 9}]"));
    let details = text(report.errors[0].error.details.as_ref().expect("details"));
    assert_eq!(
        details,
        "{'errInfo':{'failingDocumentId':7,'details':{'operatorName':'$lt','specifiedAs':\
         {'n':{'$lt':5}},'reason':'comparison failed','consideredValue':9}}}"
    );
    shop.change_collection("things", json("{'validationAction': 'warn'}").view()).expect("changed");
    insert(&shop, "things", "[{'_id': 7, 'n': 9}]");
    assert!(shop.change_collection("absent", json("{}").view()).is_err());
    let wrong = json("{'validator': {'$jsonSchema': {'nope': 1}}}");
    assert!(shop.create_collection("other", wrong.view()).is_err());
    shop.frond().engine().check().expect("every invariant holds");
}

#[test]
fn validators_hold_for_large_documents() {
    let shop = shop();
    let options = json("{'validator': {'n': {'$lt': 5}}}");
    shop.create_collection("things", options.view()).expect("made");
    let text_of = "many words ".repeat(30_000);
    insert(&shop, "things", &format!("[{{'_id': 1, 'n': 1, 'text': '{text_of}'}}]"));
    for (change, code) in [
        ("{'$set': {'n': 9}}", Some(Code::DocumentValidationFailure)),
        ("{'$inc': {'n': 4}}", Some(Code::DocumentValidationFailure)),
        ("{'$unset': {'n': 1}}", Some(Code::DocumentValidationFailure)),
        ("{'$set': {'n': 4}}", None),
        ("[{'$set': {'n': {'$add': ['$n', 1]}}}]", Some(Code::DocumentValidationFailure)),
        ("[{'$set': {'n': {'$subtract': ['$n', 1]}}}]", None),
    ] {
        let change = UpdateStatement { update: value(change), ..statement("{'_id': 1}", "{}") };
        let report = update(&shop, "things", change);
        assert_eq!(report.errors.first().map(|error| error.error.code), code);
    }
}

/// A validator's verdict on a large document is the same as when the whole document is read, as on
/// insertion. No more is read than it needs.
#[test]
fn validators_of_large_documents_read_what_they_ask_for() {
    let row = |row: u32| format!("{{'at': {row}, 'text': '{}'}}", format!("{row} ").repeat(60));
    let rows: Vec<String> = (0..1500).map(row).collect();
    let rows = rows.join(",");
    let schema = |more: &str| {
        let properties = "'properties': {'n': {'bsonType': 'int', 'maximum': 4}}";
        format!("{{'$jsonSchema': {{'required': ['n', 'm'], {properties}{more}}}}}")
    };
    for validator in [
        "{'n': {'$lt': 5}}".to_owned(),
        "{'$or': [{'m.a': {'$gt': 7}}, {'n': {'$lte': 4}, 'rows': {'$exists': true}}]}".to_owned(),
        schema(""),
        schema(", 'bsonType': 'object', 'dependencies': {'n': ['m']}"),
        schema(", 'not': {'required': ['z']}, 'anyOf': [{'required': ['m']}]"),
        schema(", 'minProperties': 3"),
        "{'$expr': {'$lt': ['$n', '$m.a']}}".to_owned(),
    ] {
        for level in ["strict", "moderate"] {
            let options =
                FrondOptions { documents_cache_bytes: Some(64 << 10), ..FrondOptions::default() };
            let frond = frond_vcs::open_on(&SimDisk::new(3).machine(), options).expect("opens");
            let shop = Repository::open(&frond, "shop").expect("a proper name");
            let of = |id: i32, n: i32| {
                format!("[{{'_id': {id}, 'n': {n}, 'm': {{'a': 5}}, 'rows': [{rows}]}}]")
            };
            insert(&shop, "things", &of(1, 1));
            // It was there before the validator.
            insert(&shop, "things", &of(2, 9));
            let options = format!("{{'validator': {validator}, 'validationLevel': '{level}'}}");
            shop.change_collection("things", json(&options).view()).expect("changed");
            shop.commit("documents", "test").expect("committed");
            let change = |id: i32, change: &str| {
                let before = frond.counters().1.chunks_read;
                let of_id = statement(&format!("{{'_id': {id}}}"), change);
                let report = update(&shop, "things", of_id);
                (report, frond.counters().1.chunks_read - before)
            };
            let (report, chunks) = change(1, "{'$set': {'n': 3}}");
            assert_eq!(report.modified, 1, "{validator}");
            assert!(chunks < 24, "{validator}: {chunks} chunks");
            let (report, _) = change(1, "{'$set': {'n': 6}}");
            let refused = &report.errors[0].error;
            assert_eq!(refused.code, Code::DocumentValidationFailure, "{validator}");
            let details = |error: &Error| text(error.details.as_ref().expect("it says why"));
            let inserted = try_insert(&shop, "things", &jsons(&of(3, 6)));
            let expected = details(&inserted.errors[0].error).replace("Id':3", "Id':1");
            assert_eq!(details(refused), expected, "{validator}");
            let (report, _) = change(2, "{'$set': {'m.b': 1}}");
            assert_eq!(report.errors.len(), usize::from(level == "strict"), "{validator}");
        }
    }
}

#[test]
fn validators_hold_for_out() {
    let shop = shop();
    let words = "many words ".repeat(30_000);
    insert(&shop, "things", "[{'_id': 1, 'n': 9}, {'_id': 2, 'n': 1}]");
    insert(&shop, "large", &format!("[{{'_id': 3, 'n': 1, 'text': '{words}'}}]"));
    shop.create_collection("few", json("{'validator': {'n': {'$lt': 5}}}").view()).expect("made");
    insert(&shop, "few", "[{'_id': 7, 'n': 0}]");
    let out = |shop: &Database, from: &str, stages: &str| {
        let done = aggregate(shop, Some(from), &format!("[{stages}]"));
        done.map(|_| find(shop, "few", "{'text': null}")).map_err(|error| error.code)
    };
    // By reference, and as a whole.
    for (from, set) in [
        ("things", "{'$set': {'n': 9}}"),
        ("large", "{'$set': {'n': 9}}"),
        ("large", "{'$set': {'text.n': 1, 'n': 9}}"),
    ] {
        for target in ["'few'", "{'db': 'shop', 'coll': 'few'}"] {
            let stages = format!("{set}, {{'$out': {target}}}");
            assert_eq!(out(&shop, from, &stages), Err(Code::DocumentValidationFailure), "{stages}");
            let unchecked = out(&shop.without_validation(), from, &stages);
            assert!(unchecked.is_ok(), "{stages}: {unchecked:?}");
            let again = out(&shop, "few", "{'$set': {'n': 0}}, {'$out': 'few'}");
            assert!(again.is_ok(), "{again:?}");
        }
    }
    let stages = "{'$match': {'n': {'$lt': 5}}}, {'$out': 'few'}";
    assert_eq!(out(&shop, "things", stages).expect("right"), "[{'_id':2,'n':1}]");
    assert_eq!(out(&shop, "large", stages).expect("right"), "[]");
    shop.change_collection("few", json("{'validationAction': 'warn'}").view()).expect("changed");
    let warnings: Arc<Mutex<Vec<String>>> = Arc::default();
    let collected = Arc::clone(&warnings);
    let sink = move |_, line: &str| collected.lock().expect("no panic").push(line.to_owned());
    shop.frond().on_notice(sink);
    assert!(out(&shop, "things", "{'$out': 'few'}").is_ok());
    let warnings = warnings.lock().expect("no panic");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("Document would fail validation: shop.few: "), "{warnings:?}");
    shop.frond().engine().check().expect("every invariant holds");
}

#[test]
fn options_of_a_collection_are_no_part_of_a_transaction() {
    let shop = shop();
    insert(&shop, "things", "[{'_id': 1}]");
    let transaction = shop.frond().begin();
    let within = transaction.database("shop").expect("there");
    let changed = within.change_collection("things", json("{'validator': {'n': 1}}").view());
    let code = changed.expect_err("refused").code;
    assert_eq!(code, Code::OperationNotSupportedInTransaction);
    insert(&shop, "things", "[{'_id': 2}]");
}

#[test]
fn views_read_as_their_pipelines_say() {
    let shop = shop();
    insert(
        &shop,
        "orders",
        "[{'_id': 1, 'k': 'a', 'n': 2}, {'_id': 2, 'k': 'b', 'n': 3}, {'_id': 3, 'k': 'a', 'n': 5}]",
    );
    let make = |name: &str, options: &str| shop.create_collection(name, json(options).view());
    make("sums", "{'viewOn': 'orders', 'pipeline': [{'$group': {'_id': '$k', 'sum': {'$sum': '$n'}}}, {'$sort': {'_id': 1}}]}")
        .expect("made");
    make("large", "{'viewOn': 'sums', 'pipeline': [{'$match': {'sum': {'$gt': 5}}}]}")
        .expect("made");
    assert_eq!(all(&shop, "sums"), "[{'_id':'a','sum':7},{'_id':'b','sum':3}]");
    assert_eq!(find(&shop, "large", "{'_id': {'$in': ['a', 'b']}}"), "[{'_id':'a','sum':7}]");
    assert_eq!(shop.count("sums", &FindRequest::default()).expect("counted"), 2);
    let sums = shop.distinct("sums", "sum", &FindRequest::of(json("{'sum': {'$lt': 5}}").view()));
    assert_eq!(sums.expect("right").len(), 1);
    let joined = aggregate(
        &shop,
        Some("orders"),
        "[{'$match': {'_id': 1}}, {'$lookup': {'from': 'sums', 'localField': 'k', 'foreignField': '_id', 'as': 's'}},
          {'$unionWith': 'large'}]",
    );
    assert_eq!(
        texts(&joined.expect("right")),
        "[{'_id':1,'k':'a','n':2,'s':[{'_id':'a','sum':7}]},{'_id':'a','sum':7}]"
    );
    // A view shows what is there now, on each branch, and can't be written.
    update(&shop, "orders", statement("{'_id': 2}", "{'$set': {'n': 30}}"));
    assert_eq!(find(&shop, "large", "{}"), "[{'_id':'a','sum':7},{'_id':'b','sum':30}]");
    let document = jsons("[{'_id': 1}]");
    let error = shop.insert("sums", &document, true, frond_db::Durability::Relaxed).unwrap_err();
    assert_eq!(error.code.number(), 166);
    let modify = FindAndModify {
        filter: json("{}"),
        sort: None,
        update: None,
        upsert: false,
        return_new: false,
        projection: None,
        array_filters: None,
        hint: None,
        variables: None,
        collation: None,
    };
    let error = shop.find_and_modify("sums", &modify, frond_db::Durability::Relaxed).unwrap_err();
    assert_eq!(error.code.number(), 166);
    for (options, code) in [
        ("{'viewOn': 'a', 'pipeline': [{'$out': 'b'}]}", 167),
        ("{'viewOn': 'a', 'pipeline': [{'$nope': 1}]}", 40324),
        ("{'pipeline': []}", 72),
    ] {
        assert_eq!(make("wrong", options).unwrap_err().code.number(), code, "{options}");
    }
    shop.change_collection("large", json("{'pipeline': [{'$limit': 1}]}").view()).expect("changed");
    assert_eq!(shop.count("large", &FindRequest::default()).expect("counted"), 1);
    make("left", "{'viewOn': 'right', 'pipeline': []}").expect("made");
    let error = make("right", "{'viewOn': 'left', 'pipeline': []}").unwrap_err();
    assert_eq!(error.code.number(), 5, "{error}");
    assert!(shop.drop_collection("large").expect("dropped"));
    shop.frond().engine().check().expect("every invariant holds");
}
