//! Goal: filters that ask large documents piece by piece find what they find in whole ones, on both
//! sides of every size at which documents lie otherwise; and they read no further than decides.
//! Method: the same requests in a transaction that has written the documents itself, and reads them
//! whole; chunks that are read are counted.

use frond_doc::DocumentBuf;

use crate::lazy::{Whole, document, filled, unkept};
use crate::support::*;

/// What may be asked for below an outermost field.
const CONDITIONS: &[&str] = &[
    "'rows.n': 3",
    "'rows.n': 77",
    "'rows.at': 0",
    "'rows.at': {'$gt': 100}",
    "'rows.at': {'$gt': 100, '$lt': 3}",
    "'rows.at': {'$not': {'$gt': 100}}",
    "'rows.at': {'$ne': 60}",
    "'rows.at': {'$nin': [60, 900]}",
    "'rows.at': {'$in': [55, {'a': 1}, null]}",
    "'rows.in.v': 3",
    "'rows.in.v': null",
    "'rows.in.w': {'$regex': 'word'}",
    "'rows.in.x': null",
    "'rows.in': {'v': 1}",
    "'rows.body': {'$regex': '^body 70 '}",
    "'rows.body': {'$exists': true}",
    "'rows.none': {'$exists': false}",
    "'rows.none': null",
    "'rows.n': {'$type': 'int'}",
    "'rows.n': {'$mod': [11, 10]}",
    "'rows.3.n': 3",
    "'rows.3': {'$exists': true}",
    "'rows.3.n': {'$ne': 3}",
    "'rows.3.in.v': {'$gte': 0}",
    "'rows.03.n': 3",
    "'rows.70.body': {'$regex': '^body 70 '}",
    "'rows.9999.n': {'$exists': false}",
    "'rows.3.n.x': null",
    "'rows.3.in.v.x': {'$exists': false}",
    "'mixed.2': {'$type': 'array'}",
    "'mixed.2.0': {'$exists': true}",
    "'mixed.0': {'$exists': true}",
    "'mixed.0.x': null",
    "'mixed.1.n': {'$in': [1, 2, 5]}",
    "'mixed.3.n': null",
    "'named.1.n': 1",
    "'named.x.n': 1",
    "'rows.0.at': 0, 'rows.at': {'$gt': 60}",
    "'rows.n.m': null",
    "'mixed.n': 5",
    "'mixed.n': 2",
    "'mixed.long': {'$type': 'string'}",
    "'mixed.2.0.n': 5",
    "'named.n': 1",
    "'named.n': 2",
    "'named.0.n': 1",
    "'named.long': {'$gt': 'm'}",
    "'meta.a.b': 1",
    "'meta.a.pad': {'$regex': 'pad'}",
    "'meta.a': {'$exists': true}",
    "'meta.pad.x': null",
    "'text.x': null",
    "'text.x': {'$exists': false}",
    "'absent.x': null",
    "'absent.x': {'$gt': 1}",
    "'rows': {'$elemMatch': {'n': 4, 'in.v': 3}}",
    "'rows.in': {'$elemMatch': {'v': 3}}",
    "'rows.n': 3, 'n': 3",
    "'n': 3, 'rows.n': 77",
    "'rows.n': 3, 'rows.at': {'$gt': 60}, 'meta.x': {'$lt': 5}",
    "'$or': [{'rows.n': 77}, {'n': 3}, {'rows.at': 200}]",
    "'$nor': [{'rows.at': 200}, {'level': 0}]",
    "'$or': [{'rows.at': 60}, {'rows': {'$size': 40}}]",
    "'$and': [{'rows.at': {'$gt': 60}}, {'$expr': {'$gt': ['$meta.x', 3]}}]",
    "'rows.n': 77, '$expr': {'$divide': ['$level', 0]}",
    "'$expr': {'$gt': [{'$size': '$rows'}, 60]}",
    "'$expr': {'$eq': ['$meta.a.b', 1]}, 'n': {'$lt': 5}",
    "'$jsonSchema': {'required': ['n', 'rows']}",
    "'$jsonSchema': {'minProperties': 5, 'properties': {'meta': {'minProperties': 3, 'maxProperties': 3}}}",
    "'$jsonSchema': {'properties': {'meta': {'properties': {'a': {'properties': {'b': {'enum': [1]}}}}}}}",
    "'$jsonSchema': {'properties': {'rows': {'bsonType': 'array', 'minItems': 60}}}",
    "'$jsonSchema': {'properties': {'rows': {'items': {'properties': {'at': {'maximum': 70}}}}}}",
    "'$jsonSchema': {'properties': {'rows': {'uniqueItems': true}, 'mixed': {'uniqueItems': true}}}",
    "'$jsonSchema': {'properties': {'mixed': {'items': [{'bsonType': 'int'}, {'required': ['long']}], 'additionalItems': {'not': {'bsonType': 'null'}}}}}",
    "'$jsonSchema': {'properties': {'text': {'minLength': 1400, 'pattern': '^text 1'}, 'middle': {'maxLength': 600}}}",
    "'$jsonSchema': {'patternProperties': {'^m': {'anyOf': [{'bsonType': 'string'}, {'required': ['x']}, {'minItems': 5}]}}}",
    "'$jsonSchema': {'properties': {'_id': {}, 'level': {}, 'n': {}, 'text': {}, 'middle': {}, 'meta': {}, 'mixed': {}, 'named': {}, 'rows': {}, 'mark': {}, 'last': {'maximum': 3}}, 'additionalProperties': false}",
    "'$jsonSchema': {'properties': {'meta': {'properties': {'a': {}}, 'additionalProperties': {'oneOf': [{'bsonType': 'string'}, {'maximum': 3}]}}}}",
    "'$jsonSchema': {'properties': {'named': {'items': {'required': ['n']}}, 'meta': {'dependencies': {'a': ['x'], 'x': {'maxProperties': 3}}}}}",
    "'$jsonSchema': {'properties': {'meta': {'enum': [{'x': 1}]}}}",
];

fn ids(documents: &[DocumentBuf]) -> Vec<String> {
    documents.iter().map(|it| format!("{:?}", it.get("_id"))).collect()
}

#[test]
fn filters_find_what_they_find_in_whole_documents() {
    let shop = filled();
    let Whole { inside, _transaction } = Whole::of(&shop);
    let mut counts = Vec::new();
    for condition in CONDITIONS {
        let filter = format!("{{{condition}}}");
        let expected = run(&inside, "docs", &request(&filter));
        let found = run(&shop, "docs", &request(&filter));
        let (expected, found) = match (expected, found) {
            (Ok(expected), Ok(found)) => (expected, found),
            (expected, found) => {
                assert_eq!(expected.err().map(|it| it.code), found.err().map(|it| it.code));
                continue;
            }
        };
        assert!(found == expected, "{filter}");
        for projection in ["{'_id': 1}", "{'rows': 0}", "{'rows.at': 1}", "{'meta.x': 1}"] {
            let mut request = request(&filter);
            request.projection = Some(json(projection));
            let expected = run(&inside, "docs", &request).expect("found");
            assert!(run(&shop, "docs", &request).expect("found") == expected, "{filter}");
        }
        let mut request = request(&filter);
        request.sort = Some(json("{'rows.at': -1, '_id': -1}"));
        let sorted = run(&shop, "docs", &request).expect("found");
        assert_eq!(ids(&sorted), ids(&run(&inside, "docs", &request).expect("found")), "{filter}");
        let count = expected.len() as u64;
        assert_eq!(shop.count("docs", &super::support::request(&filter)).expect("counted"), count);
        let stages = format!("[{{'$match': {filter}}}, {{'$project': {{'last': 1}}}}]");
        let found = aggregate(&shop, Some("docs"), &stages).expect("found");
        assert_eq!(ids(&found), ids(&expected), "{filter}");
        counts.push((filter, count));
    }
    drop((inside, _transaction));
    for (filter, count) in counts {
        let mut change = statement(&filter, "{'$inc': {'mark': 1}}");
        change.multi = true;
        assert_eq!(update(&shop, "docs", change).matched, count, "{filter}");
    }
}

/// Of a document of a thousand chunks.
#[test]
fn filters_read_no_further_than_decides() {
    let shop = unkept();
    assert_eq!(try_insert(&shop, "docs", &[document(1, 4_000_000)]).count, 1);
    shop.commit("documents", "test").expect("committed");
    for (filter, matches, chunk_count_max) in [
        ("{'rows.at': 3}", 1, 30),
        ("{'rows.n': {'$in': [5, 6]}}", 1, 30),
        ("{'rows.at': 3, 'meta.x': 1}", 1, 30),
        ("{'n': 77, 'rows.at': -1}", 0, 10),
        ("{'rows.at': -1, 'n': 77}", 0, 10),
        ("{'$or': [{'rows.at': -1}, {'n': 3}]}", 1, 30),
        ("{'rows.at': {'$not': {'$gte': 0}}}", 0, 30),
        ("{'rows.0.at': 0}", 1, 30),
        ("{'rows.3.n': {'$in': [3, 4]}}", 1, 30),
        ("{'rows.0.at': {'$ne': 0}}", 0, 30),
    ] {
        let mut request = request(filter);
        request.projection = Some(json("{'level': 1}"));
        let read = chunks(&shop, || {
            assert_eq!(run(&shop, "docs", &request).expect("found").len(), matches, "{filter}");
        });
        assert!(read <= chunk_count_max, "{filter}: {read} chunks");
        let read = chunks(&shop, || {
            assert_eq!(shop.count("docs", &request).expect("counted"), matches as u64, "{filter}");
        });
        assert!(read <= chunk_count_max, "{filter}: {read} chunks to count");
    }
}
