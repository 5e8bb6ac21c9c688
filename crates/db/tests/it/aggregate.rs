//! Goal: pipelines read and write collections through the database: by an index, at one snapshot,
//! `$lookup` in other collections, `$out` all at once. Method: small collections.

use frond_db::catalog::IndexSpec;
use frond_query::Code;

use crate::support::*;

const ORDERS: &str = "[{'_id': 1, 'item': 'a', 'n': 2}, {'_id': 2, 'item': 'b', 'n': 3},
    {'_id': 3, 'item': 'a', 'n': 5}]";

#[test]
fn pipelines_read_collections() {
    let shop = shop();
    insert(&shop, "orders", ORDERS);
    insert(&shop, "items", "[{'_id': 'a', 'price': 10}, {'_id': 'b', 'price': 20}]");
    let check = |pipeline: &str, expected: &str| {
        let found = aggregate(&shop, Some("orders"), pipeline).expect("the pipeline is right");
        assert_eq!(texts(&found), expected, "{pipeline}");
    };
    check(
        "[]",
        "[{'_id':1,'item':'a','n':2},{'_id':2,'item':'b','n':3},{'_id':3,'item':'a','n':5}]",
    );
    check(
        "[{'$match': {'n': {'$gt': 2}}}, {'$project': {'n': 1}}]",
        "[{'_id':2,'n':3},{'_id':3,'n':5}]",
    );
    check(
        "[{'$group': {'_id': '$item', 'sum': {'$sum': '$n'}}}, {'$sort': {'_id': 1}}]",
        "[{'_id':'a','sum':7},{'_id':'b','sum':3}]",
    );
    check("[{'$count': 'count'}]", "[{'count':3}]");
    check(
        "[{'$match': {'_id': 2}}, {'$lookup': {'from': 'items', 'localField': 'item',
           'foreignField': '_id', 'as': 'i'}}, {'$project': {'i': 1}}]",
        "[{'_id':2,'i':[{'_id':'b','price':20}]}]",
    );
    let found = aggregate(&shop, Some("nothing"), "[{'$match': {'a': 1}}]").expect("nothing");
    assert!(found.is_empty());
}

#[test]
fn out_replaces_a_collection() {
    let shop = shop();
    insert(&shop, "orders", ORDERS);
    let spec = IndexSpec::parse(json("{'key': {'sum': 1}, 'unique': true}").view());
    shop.create_indexes("sums", &[spec.expect("a proper index")]).expect("made");
    insert(&shop, "sums", "[{'_id': 'old', 'sum': 1}]");
    let pipeline = "[{'$group': {'_id': '$item', 'sum': {'$sum': '$n'}}}, {'$out': 'sums'}]";
    let found = aggregate(&shop, Some("orders"), pipeline).expect("the pipeline is right");
    assert!(found.is_empty());
    assert_eq!(all(&shop, "sums"), "[{'_id':'a','sum':7},{'_id':'b','sum':3}]");
    assert_eq!(shop.list_indexes("sums").expect("listed").len(), 2);
    assert_eq!(find(&shop, "sums", "{'sum': 3}"), "[{'_id':'b','sum':3}]");
    // What would break a unique index changes nothing.
    let wrong = "[{'$project': {'sum': {'$literal': 1}}}, {'$out': 'sums'}]";
    let error = aggregate(&shop, Some("orders"), wrong).unwrap_err();
    assert_eq!(error.code, Code::DuplicateKey);
    assert_eq!(all(&shop, "sums"), "[{'_id':'a','sum':7},{'_id':'b','sum':3}]");
    // A new collection, and the collection that is read itself.
    aggregate(&shop, Some("orders"), "[{'$match': {'n': 5}}, {'$out': 'orders'}]").expect("right");
    assert_eq!(all(&shop, "orders"), "[{'_id':3,'item':'a','n':5}]");
    aggregate(&shop, Some("orders"), "[{'$out': 'copy'}]").expect("right");
    assert_eq!(all(&shop, "copy"), "[{'_id':3,'item':'a','n':5}]");
    insert(&shop, "copy", "[{'_id': 4}]");
    shop.frond().engine().checkpoint().expect("folded");
    shop.frond().engine().check().expect("every invariant holds");
}

#[test]
fn wrong_pipelines_are_refused() {
    let shop = shop();
    for pipeline in ["{}", "[{'$nope': 1}]", "[5]"] {
        assert!(aggregate(&shop, Some("orders"), pipeline).is_err(), "{pipeline}");
    }
    let error = aggregate(&shop, None, "[{'$match': {}}]").unwrap_err();
    assert_eq!(error.code, Code::InvalidNamespace);
}
