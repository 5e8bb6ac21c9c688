//! Goal: a request for a few fields of a large document reads a few of its chunks. Method: chunks
//! that are read are counted, where no documents are kept in memory.

use frond_db::{Durability, FindAndModify};
use frond_doc::DocumentBuf;

use crate::crud::modify;
use crate::lazy::{document, unkept};
use crate::support::*;

/// A request that names a few fields, in any words, reads a few chunks of a document of a thousand.
#[test]
fn a_request_for_a_few_fields_reads_a_few_chunks() {
    let shop = unkept();
    assert_eq!(try_insert(&shop, "docs", &[document(1, 4_000_000)]).count, 1);
    insert(&shop, "replaced", "[{'_id': 1, 'k': 1}]");
    shop.commit("documents", "test").expect("committed");
    let all = chunks(&shop, || drop(run(&shop, "docs", &request("{}")).expect("found")));
    assert!(1_000 < all, "{all} chunks");
    const MAX: u64 = 24;
    for stages in [
        "{'$match': {'level': 2}}, {'$group': {'_id': 1, 'n': {'$sum': 1}}}",
        "{'$match': {'$expr': {'$gt': ['$meta.a.b', 0]}}}, {'$group': {'_id': 1, 'n': {'$sum': 1}}}",
        "{'$project': {'level': {'$getField': 'level'}}}",
        "{'$project': {'level': 1}}",
        "{'$project': {'level': {'$getField': {'field': 'level', 'input': '$$ROOT'}}}}",
        "{'$project': {'b': '$meta.a.b'}}",
        "{'$sort': {'level': 1}}, {'$project': {'_id': 1}}",
        "{'$group': {'_id': null, 's': {'$sum': '$n'}}}",
        "{'$group': {'_id': '$meta.a.b'}}",
        "{'$facet': {'a': [{'$match': {'n': 1}}, {'$count': 'c'}], 'b': [{'$project': {'n': 1}}]}}",
        "{'$set': {'level': 5}}, {'$project': {'level': 1}}",
        "{'$count': 'c'}",
        "{'$project': {'n': {'$size': '$rows'}, 'a': {'$isArray': '$rows'}}}",
        "{'$project': {'f': {'$first': '$rows'}, 'l': {'$last': '$rows'}, 's': {'$slice': ['$rows', -3, 2]}}}",
        "{'$match': {'$expr': {'$gt': [{'$size': '$rows'}, 9]}}}, {'$project': {'x': {'$arrayElemAt': ['$rows', 700]}}}",
        "{'$bucketAuto': {'groupBy': '$level', 'buckets': 2}}",
        "{'$setWindowFields': {'sortBy': {'n': 1}, 'output': {'s': {'$sum': '$n'}}}}, {'$project': {'s': 1}}",
        "{'$graphLookup': {'from': 'docs', 'startWith': '$level', 'connectFromField': 'n', 'connectToField': 'level', 'as': 'g'}}, {'$project': {'g._id': 1}}",
        "{'$redact': {'$cond': [{'$gt': ['$n', 1000]}, '$$PRUNE', '$$KEEP']}}, {'$project': {'n': 1}}",
        "{'$densify': {'field': 'level', 'range': {'step': 1, 'bounds': 'full'}}}, {'$project': {'n': 1}}",
        "{'$fill': {'sortBy': {'level': 1}, 'output': {'n': {'method': 'locf'}}}}, {'$project': {'n': 1}}",
        "{'$replaceWith': {'$mergeObjects': ['$$ROOT', {'level': 3}]}}, {'$project': {'level': 1, 'n': 1}}",
        "{'$set': {'all': '$$ROOT'}}, {'$project': {'x': '$all.meta.x', 't': {'$type': '$all.rows'}}}",
        "{'$unionWith': 'docs'}, {'$group': {'_id': '$level', 'c': {'$count': {}}}}",
        "{'$lookup': {'from': 'docs', 'localField': 'level', 'foreignField': 'level', 'as': 'it'}}, {'$project': {'x': '$it.n'}}",
        "{'$replaceWith': {'$setField': {'field': 'level', 'input': '$$ROOT', 'value': 1}}}, {'$out': 'copies'}",
        "{'$set': {'level': 1}}, {'$out': 'copies'}",
        "{'$sort': {'level': 1}}, {'$out': 'copies'}",
        "{'$project': {'rows': 1}}, {'$out': 'copies'}",
        "{'$unset': 'text'}, {'$out': 'copies'}",
        "{'$unionWith': 'small'}, {'$out': 'copies'}",
        "{'$set': {'meta.a.b': 4}}, {'$out': 'copies'}",
        "{'$replaceWith': {'$mergeObjects': ['$$ROOT', {'level': 3}]}}, {'$out': 'copies'}",
        "{'$match': {'rows': {'$exists': true}}}, {'$project': {'n': 1}}",
        "{'$match': {'rows': {'$type': ['array', 'int']}}}, {'$count': 'c'}",
        "{'$match': {'rows': {'$not': {'$size': 3}}, 'mixed': {'$exists': 1}}}, {'$count': 'c'}",
        "{'$project': {'k': {'$map': {'input': {'$objectToArray': '$$ROOT'}, 'in': '$$this.k'}}}}",
        "{'$merge': {'into': 'replaced', 'whenMatched': 'replace'}}",
    ] {
        let stages = format!("[{stages}]");
        let read = chunks(&shop, || {
            aggregate(&shop, Some("docs"), &stages).expect("proper");
        });
        assert!(read <= MAX * 3, "{stages}: {read} of {all} chunks");
    }
    for (filter, projection) in [
        ("{'n': 3}", "{'level': 1}"),
        ("{}", "{'rows': 0, 'named': 0, 'mixed': 0}"),
        ("{'meta.a.b': 1}", "{'meta.a.b': 1}"),
        ("{'$expr': {'$eq': ['$meta.a.b', 1]}}", "{'level': 1}"),
        ("{}", "{'v': {'$getField': 'level'}}"),
        ("{}", "{'rows': {'$slice': 2}, 'named': 0, 'mixed': 0, 'text': 0, 'middle': 0}"),
        ("{}", "{'level': 1, 'rows': {'$slice': [-5, 2]}}"),
        ("{}", "{'rows': {'$elemMatch': {'at': 3}}}"),
        ("{'rows.at': 3}", "{'rows.$': 1}"),
        ("{'rows': {'$exists': true, '$type': 'array'}}", "{'level': 1}"),
        ("{'rows': {'$not': {'$size': 3}}}", "{'level': 1}"),
    ] {
        let mut request = request(filter);
        request.projection = Some(json(projection));
        let read = chunks(&shop, || {
            run(&shop, "docs", &request).expect("found");
        });
        assert!(read <= MAX, "{projection}: {read} of {all} chunks");
    }
    let read = chunks(&shop, || {
        shop.distinct("docs", "meta.a.b", &request("{}")).expect("found");
        shop.count("docs", &request("{'n': {'$gt': 3}}")).expect("counted");
    });
    assert!(read <= MAX, "distinct, count: {read} of {all} chunks");
    for pipeline in ["[]", "[{'$match': {'n': {'$gte': 0}}}]", "[{'$set': {'m': '$meta'}}]"] {
        let view = format!("{{'viewOn': 'docs', 'pipeline': {pipeline}}}");
        shop.create_collection("view", json(&view).view()).expect("made");
        let mut request = request("{'level': {'$gte': 0}}");
        request.projection = Some(json("{'level': 1}"));
        let read = chunks(&shop, || {
            assert_eq!(run(&shop, "view", &request).expect("found").len(), 1);
            assert_eq!(shop.count("view", &request).expect("counted"), 1);
        });
        assert!(read <= MAX * 2, "a view of {pipeline}: {read} of {all} chunks");
        shop.drop_collection("view").expect("dropped");
    }
    for (sort, projection) in [("{'n': 1}", "{'n': 1}"), ("{}", "{'rows': 0, 'named': 0}")] {
        let modification = FindAndModify {
            sort: Some(json(sort)).filter(|sort| !sort.view().is_empty()),
            projection: Some(json(projection)),
            ..modify("{'level': {'$gte': 0}}", Some("{'$inc': {'n': 1}}"))
        };
        let read = chunks(&shop, || {
            let report = shop.find_and_modify("docs", &modification, Durability::Relaxed);
            assert!(report.expect("done").value.is_some_and(|it| it.get("rows").is_none()));
        });
        assert!(read <= MAX * 2, "{sort} {projection}: {read} of {all} chunks");
    }
    for (filter, change) in [
        ("{}", "[{'$set': {'meta.a.b': 7}}]"),
        ("{}", "[{'$set': {'level': {'$add': ['$level', 1]}}}]"),
        ("{}", "[{'$replaceWith': {'$mergeObjects': ['$$ROOT', {'n': 30}]}}]"),
        ("{}", "[{'$unset': 'meta.pad'}]"),
        ("{'level': 3}", "{'$set': {'meta.a.b': 8}}"),
        ("{'$expr': {'$eq': ['$meta.a.b', 8]}}", "{'$inc': {'level': 1}}"),
        ("{'$expr': {'$gt': [{'$size': '$rows'}, 60]}}", "{'$inc': {'level': 1}}"),
        ("{'$jsonSchema': {'properties': {'meta': {'required': ['a']}}}}", "{'$inc': {'n': 1}}"),
        ("{'$jsonSchema': {'properties': {'rows': {'minItems': 60}}}}", "{'$inc': {'n': 1}}"),
        ("{'$jsonSchema': {'maxProperties': 20}}", "[{'$set': {'n': 2}}]"),
    ] {
        let mut statement = statement(filter, "{}");
        statement.update = value(change);
        let read = chunks(&shop, || {
            assert_eq!(update(&shop, "docs", statement.clone()).modified, 1, "{change}");
        });
        assert!(read <= MAX * 3, "{change}: {read} of {all} chunks");
    }
}

/// A transaction of several requests reads no more of what it has not written. A cursor goes on
/// over what is undone or changed beneath it, and sees what is written once it comes there.
#[test]
fn transactions_read_a_few_chunks_of_what_they_did_not_write() {
    let shop = unkept();
    let documents = [1, 2, 3].map(|id| document(id, 4_000_000));
    assert_eq!(try_insert(&shop, "docs", &documents).count, 3);
    shop.commit("documents", "test").expect("committed");
    insert(&shop, "docs", "[{'_id': 0}]");
    let transaction = shop.frond().begin();
    let inside = transaction.database("shop").expect("opens");
    for stages in [
        "{'$group': {'_id': null, 's': {'$sum': '$n'}}}",
        "{'$sort': {'level': 1}}, {'$project': {'_id': 1}}",
        "{'$project': {'level': {'$getField': 'level'}}}",
    ] {
        let stages = format!("[{stages}]");
        let read = chunks(&inside, || {
            let inside = aggregate(&inside, Some("docs"), &stages).expect("proper");
            assert!(inside == aggregate(&shop, Some("docs"), &stages).expect("proper"));
        });
        assert!(read <= 120, "{stages}: {read} chunks");
    }
    let mut request = request("{'level': {'$exists': true}}");
    request.projection = Some(json("{'rows': 0}"));
    let mut cursor = inside.find("docs", &request).expect("found");
    let level = |document: DocumentBuf| document.get("level").map(|it| it.to_buf());
    assert_eq!(cursor.next().expect("one").ok().and_then(level), Some(value("2")));
    for _ in 0..2 {
        let change = statement("{'_id': 2}", "{'$set': {'level': 40, 'text': 'other'}}");
        update(&inside, "docs", change);
        // It fails, and is undone.
        let change = statement("{'_id': {'$gte': 2}}", "{'$set': {'level': 50, '_id': 7}}");
        assert_eq!(update(&inside, "docs", change).errors.len(), 1);
    }
    let rest: Vec<DocumentBuf> = cursor.map(|it| it.expect("read")).collect();
    assert_eq!(rest.len(), 2);
    let found = run(&inside, "docs", &request).expect("found");
    assert_eq!(
        found.into_iter().map(level).collect::<Vec<_>>(),
        ["2", "40", "1"].map(|it| Some(value(it)))
    );
    let whole =
        run(&inside, "docs", &super::support::request("{'_id': {'$gt': 1}}")).expect("found");
    assert!(whole[0].get("rows") == documents[1].get("rows"));
    assert!(whole[1] == documents[2]);
}

/// Validators open what they look at, whatever they ask with.
#[test]
fn validators_read_a_few_chunks_of_what_they_let_through() {
    let shop = unkept();
    assert_eq!(try_insert(&shop, "docs", &[document(1, 4_000_000)]).count, 1);
    shop.commit("documents", "test").expect("committed");
    for validator in [
        "{'$expr': {'$lt': ['$level', 1000]}}",
        "{'$expr': {'$and': [{'$gt': [{'$size': '$rows'}, 9]}, {'$lt': ['$meta.x', 1000]}]}}",
        "{'$jsonSchema': {'properties': {'level': {'maximum': 1000}}, 'maxProperties': 20}}",
        "{'$jsonSchema': {'patternProperties': {'^[a-zM]|_id': {'bsonType': ['int', 'string', 'object', 'array']}}, 'additionalProperties': false}}",
        "{'$jsonSchema': {'properties': {'rows': {'minItems': 10}}}, '$expr': {'$gt': ['$last', 0]}}",
    ] {
        let change = json(&format!("{{'validator': {validator}}}"));
        shop.change_collection("docs", change.view()).expect("changed");
        for (operators, modified) in [
            ("{'$inc': {'level': 1}}", 1),
            ("{'$inc': {'meta.a.b': 1}}", 1),
            ("[{'$set': {'n': {'$add': ['$level', 1]}}}]", 1),
            ("{'$set': {'level': 2000, 'last': -1, 'X1': 1, 'meta.x': 5000}}", 0),
        ] {
            let mut statement = statement("{}", "{}");
            statement.update = value(operators);
            let read = chunks(&shop, || {
                let report = update(&shop, "docs", statement.clone());
                assert_eq!(report.modified, modified, "{validator}: {operators}");
                assert_eq!(report.errors.len() as u64, 1 - modified, "{validator}: {operators}");
            });
            assert!(modified == 0 || read <= 72, "{validator} {operators}: {read} chunks");
        }
    }
}
