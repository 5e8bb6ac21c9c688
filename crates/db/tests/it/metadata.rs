//! Goal: `{$meta: ...}` gives the metadata that a search, a sort or a sample left with a document,
//! in every command that may ask. Method: tables; nothing of it may ever be stored.

use frond_db::catalog::IndexSpec;
use frond_db::{Database, Durability, FindAndModify, FindRequest, UpdateStatement};
use frond_doc::Value;
use frond_vcs::Repository;

use crate::support::*;

fn things() -> Repository {
    let shop = shop();
    insert(
        &shop,
        "things",
        "[{'_id': 1, 'a': 5, 'b': 'x'}, {'_id': 2, 'a': [7, 3], 'b': 'y'}, {'_id': 3, 'b': 'X'}]",
    );
    shop
}

fn keys(shop: &Database, sort: &str) -> String {
    let request = FindRequest {
        sort: Some(json(sort)),
        projection: Some(json("{'k': {'$meta': 'sortKey'}, '_id': 1, 'a': 1}")),
        ..request("{}")
    };
    texts(&run(shop, "things", &request).unwrap_or_else(|error| panic!("{sort}: {error}")))
}

#[test]
fn sort_keys_of_a_find() {
    let shop = things();
    let ascending = "[{'_id':3,'k':[null]},{'_id':2,'a':[7,3],'k':[3]},{'_id':1,'a':5,'k':[5]}]";
    assert_eq!(keys(&shop, "{'a': 1}"), ascending);
    let descending =
        "[{'_id':2,'a':[7,3],'k':[7,2]},{'_id':1,'a':5,'k':[5,1]},{'_id':3,'k':[null,3]}]";
    assert_eq!(keys(&shop, "{'a': -1, '_id': 1}"), descending);
    // An index that gives the order changes nothing.
    let spec = IndexSpec::parse(json("{'key': {'a': 1}}").view()).expect("an index");
    shop.create_indexes("things", &[spec]).expect("made");
    assert_eq!(keys(&shop, "{'a': 1}"), ascending);
    let unsorted =
        FindRequest { projection: Some(json("{'k': {'$meta': 'sortKey'}}")), ..request("{}") };
    assert_eq!(run(&shop, "things", &unsorted).unwrap_err().code.number(), 2);
}

#[test]
fn metadata_of_pipelines() {
    let shop = things();
    for (stages, expected) in [
        (
            "[{'$sort': {'_id': -1}}, {'$limit': 2}, {'$project': {'k': {'$meta': 'sortKey'}}}]",
            "[{'_id':3,'k':[3]},{'_id':2,'k':[2]}]",
        ),
        (
            "[{'$sort': {'_id': -1}}, {'$limit': 1}, {'$project': {'_id': 0, 'k': {'$meta': 'sortKey'}}}]",
            "[{'k':[3]}]",
        ),
        // It goes with an exclusion, too, which then keeps what it doesn't name.
        (
            "[{'$sort': {'_id': -1}}, {'$limit': 1}, {'$project': {'b': 0, 'k': {'$meta': 'sortKey'}}}]",
            "[{'_id':3,'k':[3]}]",
        ),
        (
            "[{'$sort': {'b': 1, '_id': 1}}, {'$set': {'b': 0, 'a': 0}}, {'$match': {'_id': 1}}, {'$set': {'k': {'$meta': 'sortKey'}}}]",
            "[{'_id':1,'a':0,'b':0,'k':['x',1]}]",
        ),
        (
            "[{'$sort': {'_id': 1}}, {'$facet': {'f': [{'$limit': 1}, {'$project': {'k': {'$meta': 'sortKey'}}}]}}]",
            "[{'f':[{'_id':1,'k':[1]}]}]",
        ),
        (
            "[{'$sort': {'_id': 1}}, {'$group': {'_id': null, 'k': {'$push': {'$meta': 'sortKey'}}}}]",
            "[{'_id':null,'k':[[1],[2],[3]]}]",
        ),
        // Without a sort or a sample there is none.
        (
            "[{'$match': {'_id': 1}}, {'$project': {'k': {'$meta': 'sortKey'}, 'r': {'$meta': 'randVal'}}}]",
            "[{'_id':1}]",
        ),
        (
            "[{'$sample': {'size': 3}}, {'$sort': {'r': {'$meta': 'randVal'}}}, {'$group': {'_id': null, 'r': {'$push': {'$meta': 'randVal'}}}},
              {'$project': {'n': {'$size': '$r'}, 'sorted': {'$eq': ['$r', {'$sortArray': {'input': '$r', 'sortBy': -1}}]},
                'shares': {'$and': [{'$gte': [{'$min': '$r'}, 0]}, {'$lt': [{'$max': '$r'}, 1]}]}, '_id': 0}}]",
            "[{'n':3,'sorted':true,'shares':true}]",
        ),
    ] {
        let made = aggregate(&shop, Some("things"), stages);
        assert_eq!(texts(&made.unwrap_or_else(|error| panic!("{stages}: {error}"))), expected);
    }
    insert(
        &shop,
        "places",
        "[{'_id': 1, 'p': [0, 0]}, {'_id': 2, 'p': [0, 9]}, {'_id': 3, 'p': [0, 3]}]",
    );
    let spec = IndexSpec::parse(json("{'key': {'p': '2d'}}").view()).expect("an index");
    shop.create_indexes("places", &[spec]).expect("made");
    let nearest = "[{'$geoNear': {'near': [0, 9]}}, {'$sort': {'d': {'$meta': 'geoNearDistance'}, '_id': 1}}, {'$project': {'_id': 1}}]";
    let made = aggregate(&shop, Some("places"), nearest).expect("right");
    assert_eq!(texts(&made), "[{'_id':2},{'_id':3},{'_id':1}]");
}

fn best(update: Option<&str>, fields: &str) -> FindAndModify {
    FindAndModify {
        filter: json("{'$text': {'$search': 'x'}}"),
        sort: Some(json("{'s': {'$meta': 'textScore'}}")),
        update: update.map(value),
        upsert: false,
        return_new: update.is_some(),
        projection: Some(json(fields)),
        array_filters: None,
        hint: None,
        variables: None,
        collation: None,
    }
}

#[test]
fn writes_sort_by_scores_and_show_them() {
    let shop = shop();
    insert(
        &shop,
        "texts",
        "[{'_id': 1, 't': 'x y z'}, {'_id': 2, 't': 'x'}, {'_id': 3, 't': 'y'}]",
    );
    let spec = IndexSpec::parse(json("{'key': {'t': 'text'}}").view()).expect("an index");
    shop.create_indexes("texts", &[spec]).expect("made");
    let shown = |request: &FindAndModify| {
        shop.find_and_modify("texts", request, Durability::Relaxed)
            .map(|report| text(&report.value.expect("found")))
    };
    let scored = "{'n': 1, 's': {'$meta': 'textScore'}}";
    let found = shown(&best(Some("{'$set': {'n': 1}}"), scored)).expect("right");
    assert_eq!(found, "{'_id':2,'n':1,'s':1.1}");
    assert_eq!(find(&shop, "texts", "{'_id': 2}"), "[{'_id':2,'t':'x','n':1}]");
    let keyed = best(None, "{'k': {'$meta': 'sortKey'}}");
    assert_eq!(shown(&keyed).unwrap_err().code.number(), 2);
    let plain = FindAndModify { filter: json("{}"), ..best(None, "{}") };
    assert_eq!(shown(&plain).unwrap_err().code.number(), 40218);
    let first = UpdateStatement {
        sort: Some(json("{'s': {'$meta': 'textScore'}}")),
        ..statement("{'$text': {'$search': 'x'}}", "{'$set': {'first': true}}")
    };
    assert_eq!(update(&shop, "texts", first).modified, 1);
    assert_eq!(find(&shop, "texts", "{'first': true}"), "[{'_id':2,'t':'x','n':1,'first':true}]");
    assert_eq!(shown(&best(None, scored)).expect("right"), "{'_id':2,'n':1,'s':1.1}");
    assert_eq!(shop.count("texts", &FindRequest::default()).expect("counted"), 2);
    let stored = run(&shop, "texts", &request("{}")).expect("found");
    assert!(
        stored.iter().all(|document| document.iter().all(|(name, _)| !name.starts_with('\u{1}')))
    );
    assert_eq!(stored[0].get("_id"), Some(Value::Int32(1)));
}
