//! Goal: filters that read large documents piece by piece match the same as on whole ones, on both
//! sides of every size at which the storage changes; and they read no further than needed. Method:
//! the same requests in a transaction that has written the documents itself, and reads them whole;
//! chunks that are read are counted.

use frond_db::{Database, Durability};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_vcs::Repository;

use crate::lazy::{SIZES, Whole, document, unkept};
use crate::support::*;

/// Conditions below an outermost field.
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
    "'ids': 3",
    "'ids': {'$in': [7, 9000]}",
    "'ids': {'$in': [9000, 9001]}",
    "'ids': {'$nin': [9000, {'a': 1}]}",
    "'ids': {'$nin': [7]}",
    "'ids': {'$all': [7, 3]}",
    "'ids': {'$all': [7, 9000]}",
    "'ids': {'$gt': 30, '$lt': 2}",
    "'ids': {'$not': {'$gt': 30}}",
    "'ids': {'$ne': 30}",
    "'ids': {'$mod': [40, 39]}",
    "'ids': {'$type': 'string'}",
    "'ids': {'$type': ['int', 'null']}",
    "'ids': {'$size': 600}",
    "'ids': {'$elemMatch': {'$gt': 30, '$lt': 32}}",
    "'ids': {'$elemMatch': {'$gt': 9000, '$lt': 32}}",
    "'ids': {'$elemMatch': {'$not': {'$gt': 30}}}",
    "'ids': {'$regex': 'x'}",
    "'ids': {'$gt': {'$minKey': 1}}",
    "'ids': null",
    "'ids': {'$in': [null, 9000]}",
    "'ids.3': 3",
    "'ids.3': {'$in': [3, [3]]}",
    "'mixed': {'$in': [1, 'x']}",
    "'mixed': {'$regex': '^sss'}",
    "'mixed': {'$elemMatch': {'n': 3}}",
    "'mixed': {'$elemMatch': {'0.n': 5}}",
    "'mixed': {'$elemMatch': {'$type': 'array'}}",
    "'mixed': {'$elemMatch': {'$size': 1}}",
    "'mixed': {'$type': 'null'}",
    "'mixed': {'$elemMatch': {'long': {'$regex': 'l'}}}",
    "'named': {'$elemMatch': {'n': 1}}",
    "'named': {'$elemMatch': {'n': 2}}",
    "'rows': {'$elemMatch': {'n': 4, 'at': {'$gt': 60}}}",
    "'rows': {'$elemMatch': {'n': 4, 'at': {'$gt': 60, '$lt': 60}}}",
    "'rows': {'$elemMatch': {'body': {'$regex': '^body 70 '}}}",
    "'rows': {'$elemMatch': {'in': {'v': 1}}}",
    "'rows': {'$elemMatch': {'in.v': {'$in': [3, 9]}, '$or': [{'at': 7}, {'at': 70}]}}",
    "'rows': {'$not': {'$elemMatch': {'at': 70}}}",
    "'rows': {'$all': [{'$elemMatch': {'at': 70}}, {'$elemMatch': {'at': 3}}]}",
    "'rows.at': {'$all': [3, 70]}",
    "'rows': {'$in': [5, null]}",
    "'text': {'$in': ['x', {'$regex': 'y'}]}",
    "'text': {'$regex': '^text 1'}",
    "'text': {'$gt': 'text 1'}",
    "'meta.a': {'$gt': 5}",
    "'meta': {'$elemMatch': {'x': 1}}",
    "'meta': {'$in': [1, 'x']}",
    "'big': {'$elemMatch': {'rows': {'$elemMatch': {'at': 9}}, 'n': 1}}",
    "'big': {'$elemMatch': {'rows.at': {'$all': [1, 9]}, 'in.v': {'$gt': 6}}}",
    "'big': {'$elemMatch': {'rows': {'$size': 4}}}",
    "'big': {'$elemMatch': {'rows': {'$exists': false}}}",
    "'big.rows': {'$elemMatch': {'at': 9}}",
    "'big.rows': {'$elemMatch': {'at': {'$in': [9, 10]}, 'text': {'$regex': 'w'}}}",
    "'big.2.rows': {'$elemMatch': {'at': 9}}",
    "'big.rows': {'$type': 'array'}",
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
    "'$jsonSchema': {'properties': {'_id': {}, 'level': {}, 'n': {}, 'text': {}, 'middle': {}, 'meta': {}, 'mixed': {}, 'named': {}, 'rows': {}, 'mark': {}, 'ids': {}, 'big': {}, 'last': {'maximum': 3}}, 'additionalProperties': false}",
    "'$jsonSchema': {'properties': {'meta': {'properties': {'a': {}}, 'additionalProperties': {'oneOf': [{'bsonType': 'string'}, {'maximum': 3}]}}}}",
    "'$jsonSchema': {'properties': {'named': {'items': {'required': ['n']}}, 'meta': {'dependencies': {'a': ['x'], 'x': {'maxProperties': 3}}}}}",
    "'$jsonSchema': {'properties': {'meta': {'enum': [{'x': 1}]}}}",
];

fn ids(documents: &[DocumentBuf]) -> Vec<String> {
    documents.iter().map(|it| format!("{:?}", it.get("_id"))).collect()
}

/// As [`document`], with a long array of numbers and one of large documents besides.
fn rich(id: usize, bytes: usize) -> DocumentBuf {
    let number = |number: usize| Value::Int32(i32::try_from(number).expect("small"));
    let mut out = DocumentBuilder::new();
    for (name, value) in document(id, bytes).iter() {
        out.append(name, value);
    }
    out.begin_array("ids");
    for id in 0..bytes / 500 {
        out.push(number(id));
    }
    out.end().begin_array("big");
    for at in 0..8 {
        out.push_begin_document().append("at", number(at)).append("n", number(at % 3));
        out.begin_document("in").append("v", number(at)).end();
        out.append("pad", Value::String(&"pad ".repeat(80))).begin_array("rows");
        for at in 0..bytes / 20_000 {
            out.push_begin_document().append("at", number(at));
            out.append("text", Value::String(&"w ".repeat(150))).end();
        }
        out.end().end();
    }
    // It is no container.
    out.end().begin_array("short");
    for at in 0..3 {
        out.push_begin_document().append("at", number(at)).append("n", number(7)).end();
    }
    out.end();
    out.build()
}

/// Rich documents of all sizes, and the same as an open transaction that wrote them sees them.
fn rich_and_whole() -> (Repository, Whole) {
    let documents: Vec<DocumentBuf> =
        SIZES.iter().enumerate().map(|(id, bytes)| rich(id, *bytes)).collect();
    let shop = unkept();
    for document in &documents {
        assert_eq!(try_insert(&shop, "docs", std::slice::from_ref(document)).count, 1);
    }
    let transaction = shop.frond().begin();
    let inside = transaction.database("shop").expect("opens");
    assert_eq!(delete(&inside, "docs", "{}"), SIZES.len() as u64);
    assert_eq!(try_insert(&inside, "docs", &documents).count, SIZES.len() as u64);
    (shop, Whole { _transaction: transaction, inside })
}

#[test]
fn filters_find_what_they_find_in_whole_documents() {
    let (shop, Whole { inside, _transaction }) = rich_and_whole();
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
    assert_eq!(try_insert(&shop, "docs", &[rich(1, 4_000_000)]).count, 1);
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
        ("{'ids': 3}", 1, 30),
        ("{'ids': {'$in': [5, 7]}}", 1, 30),
        ("{'ids': {'$nin': [5, 7]}}", 0, 30),
        ("{'ids': {'$all': [5, 7]}}", 1, 30),
        ("{'ids': {'$elemMatch': {'$gt': 3, '$lt': 9}}}", 1, 30),
        ("{'rows': {'$elemMatch': {'at': 3, 'in.v': 3}}}", 1, 30),
        ("{'rows': {'$all': [{'$elemMatch': {'at': 3}}, {'$elemMatch': {'n': 4}}]}}", 1, 40),
        ("{'rows': {'$not': {'$elemMatch': {'at': 3}}}}", 0, 30),
        ("{'rows.at': {'$all': [3, 4]}}", 1, 30),
    ] {
        let mut request = request(filter);
        request.projection = Some(json("{'level': 1}"));
        let read = chunks(&shop, || {
            assert_eq!(run(&shop, "docs", &request).expect("found").len(), matches, "{filter}");
        });
        assert!(read <= chunk_count_max, "{filter}: {read} chunks");
        let read = chunks(&shop, || {
            let stages = format!(
                "[{{'$set': {{'new': 1}}}}, {{'$match': {filter}}}, {{'$project': {{'n': 1}}}}]"
            );
            assert_eq!(aggregate(&shop, Some("docs"), &stages).expect("found").len(), matches);
        });
        let is_below = filter.contains("rows.");
        assert!(is_below || read <= chunk_count_max, "{filter}: {read} chunks in a stage");
        let read = chunks(&shop, || {
            assert_eq!(shop.count("docs", &request).expect("counted"), matches as u64, "{filter}");
        });
        assert!(read <= chunk_count_max, "{filter}: {read} chunks to count");
    }
}

/// The elements that a statement's update filter or its array filters find.
#[test]
fn updates_read_no_more_of_elements_than_their_paths() {
    let shop = unkept();
    assert_eq!(try_insert(&shop, "docs", &[rich(1, 4_000_000)]).count, 1);
    shop.commit("documents", "test").expect("committed");
    for (filter, change, filters, chunk_count_max) in [
        ("{'rows': {'$elemMatch': {'at': 9}}}", "{'$set': {'rows.$.n': 70}}", "[]", 60),
        ("{'ids': {'$in': [9]}}", "{'$set': {'ids.$': 9999}}", "[]", 50),
        ("{'ids': 8, '$expr': {'$lt': ['$level', 9]}}", "{'$inc': {'ids.$': 5000}}", "[]", 50),
        ("{}", "{'$set': {'big.$[x].n': 5}}", "[{'x.at': 4}]", 60),
        ("{}", "{'$inc': {'big.$[x].rows.3.n': 5}}", "[{'x.at': {'$in': [5]}}]", 70),
        (
            "{}",
            "{'$inc': {'big.$[x].in.v': 5}}",
            "[{'x.rows': {'$elemMatch': {'at': 3}}, 'x.at': 3}]",
            90,
        ),
        ("{}", "{'$inc': {'big.$[].n': 1}}", "[]", 100),
        ("{}", "{'$inc': {'short.$[].n': 1}}", "[]", 30),
        ("{}", "{'$set': {'short.$[x].n': -5}}", "[{'x.at': {'$gt': 0}}]", 30),
        (
            "{}",
            "{'$push': {'big.$[x].rows': {'at': -1}}, '$inc': {'big.$[y].n': 5}}",
            "[{'x.at': 6}, {'y.at': 6}]",
            90,
        ),
    ] {
        let mut statement = statement(filter, change);
        statement.array_filters = Some(value(filters)).filter(|_| filters != "[]");
        let read = chunks(&shop, || {
            assert_eq!(update(&shop, "docs", statement).modified, 1, "{change}");
        });
        assert!(read <= chunk_count_max, "{filter} {change}: {read} chunks");
    }
}

/// Statements by positions and array filters change what they change in whole documents.
#[test]
fn elements_change_as_in_whole_documents() {
    for (filter, change, filters) in [
        ("{'ids': {'$in': [9, 30]}}", "{'$set': {'ids.$': -1}}", "[]"),
        ("{'ids': {'$all': [9, 30]}}", "{'$set': {'ids.$': -1}}", "[]"),
        ("{'ids': {'$gt': 30}}", "{'$inc': {'ids.$': 1000}}", "[]"),
        ("{'ids': {'$elemMatch': {'$gt': 30}}}", "{'$inc': {'ids.$': 1000}}", "[]"),
        ("{'ids': {'$exists': true}}", "{'$inc': {'ids.$': 1000}}", "[]"),
        ("{'ids': {'$type': 'int'}}", "{'$inc': {'ids.$': 1000}}", "[]"),
        ("{'mixed': {'$regex': '^s'}}", "{'$set': {'mixed.$': 1}}", "[]"),
        ("{'mixed': {'$type': 'array'}}", "{'$set': {'mixed.$': 1}}", "[]"),
        (
            "{'mixed': {'$elemMatch': {'long': {'$regex': 'l'}}}}",
            "{'$set': {'mixed.$.n': 9}}",
            "[]",
        ),
        ("{'rows': {'$elemMatch': {'at': 9, 'in.v': 1}}}", "{'$set': {'rows.$.in.v': 9}}", "[]"),
        ("{'$or': [{'rows.at': -1}, {'ids': 7}]}", "{'$set': {'rows.$.in.v': 9}}", "[]"),
        (
            "{'rows.at': 3, 'big.rows': {'$elemMatch': {'at': 0}}}",
            "{'$set': {'rows.$.n': -1}}",
            "[]",
        ),
        (
            "{'big': {'$elemMatch': {'n': 2, 'rows.at': 0}}}",
            "{'$push': {'big.$.rows': {'at': -1}}}",
            "[]",
        ),
        ("{}", "{'$set': {'big.$[x].n': 5}}", "[{'x.at': {'$in': [2, 4]}}]"),
        (
            "{}",
            "{'$set': {'big.$[x].n': 5, 'big.$[x].a.b': 1, 'big.$[y].n': 6}}",
            "[{'x.at': 2}, {'y.at': {'$gt': 6}}]",
        ),
        (
            "{}",
            "{'$set': {'big.$[x].n': 5, 'big.$[y].n': 6}}",
            "[{'x.at': 2}, {'y.at': {'$lt': 6}}]",
        ),
        (
            "{}",
            "{'$unset': {'big.$[x]': 1, 'ids.$[i]': 1}}",
            "[{'x.rows': {'$elemMatch': {'at': 0}}}, {'i': {'$lt': 3}}]",
        ),
        ("{}", "{'$inc': {'big.$[].n': 1, 'level': 1}, '$push': {'ids': 1}}", "[]"),
        ("{}", "{'$inc': {'short.$[].n': 1, 'level': 1}, '$push': {'ids': 1}}", "[]"),
        ("{}", "{'$set': {'short.$[x].n': {'long': [1, 2]}}}", "[{'x.at': {'$ne': 1}}]"),
        ("{}", "{'$unset': {'short.$[].n': 1}, '$set': {'short.$[x].m': 1}}", "[{'x.at': 2}]"),
        ("{}", "{'$set': {'short.$[x].n': 1}}", "[{'x.at': 99}]"),
        ("{}", "{'$inc': {'short.$[].at.x': 1}}", "[]"),
        ("{}", "{'$set': {'level.$[]': 1}}", "[]"),
        (
            "{}",
            "{'$inc': {'ids.$[x]': 1}, '$set': {'rows.$[y].in': 1}}",
            "[{'x': {'$mod': [10, 3]}}, {'y.in.v': 2, 'y.at': {'$lt': 100}}]",
        ),
        ("{}", "{'$inc': {'big.$[x].rows.$[y].at': 1}}", "[{'x.at': 2}, {'y.at': {'$lt': 6}}]"),
        ("{}", "{'$mul': {'big.$[x].rows.0.at': 3}}", "[{'x.at': {'$ne': 2}, 'x.n': 0}]"),
        ("{}", "{'$set': {'mixed.$[x].n': 5}}", "[{'x.n': {'$exists': true}}]"),
        ("{}", "{'$set': {'mixed.$[x].n': 5}}", "[{'x': {'$type': 'string'}}]"),
        (
            "{}",
            "{'$pull': {'big.$[x].rows': {'at': {'$gt': 2}}}}",
            "[{'$or': [{'x.at': 1}, {'x.rows.at': 40}]}]",
        ),
        (
            "{}",
            "{'$addToSet': {'big.$[x].rows': 1}, '$max': {'big.$[x].in.v': 6}}",
            "[{'x.in': {'v': 3}}]",
        ),
    ] {
        let (shop, Whole { inside, _transaction }) = rich_and_whole();
        let run_on = |database: &Database| -> Vec<_> {
            let of = |id: usize| {
                let mut change = statement(&format!("{{'_id': {id}, '$and': [{filter}]}}"), change);
                change.array_filters = Some(value(filters)).filter(|_| filters != "[]");
                let report = database.update("docs", &[change], true, Durability::Relaxed);
                report.ok().map(|report| (report.modified, report.errors.len()))
            };
            (0..SIZES.len()).map(of).collect()
        };
        let reported = run_on(&inside);
        let expected = run(&inside, "docs", &request("{}")).expect("found");
        drop((inside, _transaction));
        assert_eq!(run_on(&shop), reported, "{filter} {change} {filters}");
        let found = run(&shop, "docs", &request("{}")).expect("found");
        for (found, expected) in found.iter().zip(&expected) {
            let id = found.get("_id");
            assert!(found == expected, "{filter} {change} {filters} of {id:?}");
        }
    }
}
