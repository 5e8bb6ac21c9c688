//! Goal: every reader of documents gets them whole. A scan reads only the needed parts of a large
//! document, so each way of reading, and of writing what was read, is tried with documents around
//! the sizes at which their storage in trees and in memory changes. Method: a new collection for
//! each, since a document that was read once is kept whole for a while and would hide the fault.

use frond_db::catalog::IndexSpec;
use frond_db::{Database, Durability, FindAndModify, FrondOptions};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_testkit::SimDisk;

use crate::support::*;

/// Around 32 KB (trees of pieces), 1 MiB (not kept in memory), and well between and beyond.
const SIZES: [usize; 9] =
    [900, 32_767, 32_768, 32_769, 200_000, 1_048_575, 1_048_576, 1_048_577, 1_700_000];

/// `{_id, n, k, words, place, inner: {x}, rest}` of exactly so many bytes. `k` makes it its
/// collection's own.
fn document(id: usize, collection: usize, bytes: usize) -> DocumentBuf {
    let number = |number: usize| i32::try_from(number).expect("small");
    let build = |rest: &str| {
        let mut out = DocumentBuilder::new();
        out.append("_id", Value::Int32(number(id))).append("n", Value::Int32(number(id * 7 % 10)));
        out.append("k", Value::Int32(number(collection)));
        out.append("words", Value::String("a frond unfolds"));
        out.begin_array("place").push(Value::Double(id as f64)).push(Value::Double(1.0)).end();
        out.begin_document("inner").append("x", Value::Int32(-number(id))).end();
        out.begin_array("list");
        for row in 0..9 {
            out.push(Value::Int32(row));
        }
        out.end().append("rest", Value::String(rest));
        out.build()
    };
    let empty = build("").as_bytes().len();
    let document = build(&"rest ".repeat(bytes / 5 + 1)[..bytes - empty]);
    assert_eq!(document.as_bytes().len(), bytes);
    document
}

/// A database with collections of one document of each size, none of which was read.
struct Unread {
    shop: Database,
    count: usize,
}

impl Unread {
    fn new() -> Unread {
        let options = FrondOptions::default();
        let frond = frond_vcs::open_on(&SimDisk::new(7).machine(), options).expect("opens");
        Unread { shop: frond.database("shop").expect("a proper name"), count: 0 }
    }

    /// The collection's name, and its documents by `_id`.
    fn next(&mut self) -> (String, Vec<DocumentBuf>) {
        self.count += 1;
        let name = format!("c{}", self.count);
        let all = SIZES.iter().enumerate();
        let documents: Vec<DocumentBuf> =
            all.map(|(id, bytes)| document(id, self.count, *bytes)).collect();
        let done = try_insert(&self.shop, &name, &documents);
        assert_eq!(done.count, SIZES.len() as u64, "{:?}", done.errors);
        (name, documents)
    }

    fn index(&self, collection: &str, key: &str) {
        let spec = IndexSpec::parse(json(&format!("{{'key': {key}}}")).view()).expect("proper");
        self.shop.create_indexes(collection, &[spec]).expect("made");
    }
}

fn by_id(mut documents: Vec<DocumentBuf>) -> Vec<DocumentBuf> {
    documents.sort_by_key(|document| document.get("_id").and_then(|id| id.as_integer()));
    documents
}

/// Documents that differ are too long to be shown.
fn assert_same(what: &str, found: Vec<DocumentBuf>, expected: &[DocumentBuf]) {
    let found = by_id(found);
    let bytes = |all: &[DocumentBuf]| all.iter().map(|it| it.as_bytes().len()).collect::<Vec<_>>();
    assert_eq!(bytes(&found), bytes(expected), "{what}");
    assert!(found == expected, "{what}: bytes differ");
}

#[test]
fn exports() {
    let mut unread = Unread::new();
    let mut filters = vec![None];
    for filter in [
        "{}",
        "{'_id': {'$gte': 0}}",
        "{'n': {'$gte': 0}}",
        "{'inner.x': {'$lte': 0}}",
        "{'$or': [{'n': 3}, {'words': /frond/}, {'k': {'$exists': 1}}]}",
        "{'rest': {'$exists': true}}",
        "{'$expr': {'$gte': ['$n', 0]}}",
        "{'$expr': {'$ne': ['$$ROOT', 0]}}",
    ] {
        filters.push(Some(json(&filter.replace("/frond/", "{'$regex': 'frond'}"))));
    }
    for is_indexed in [false, true] {
        for filter in &filters {
            let (name, documents) = unread.next();
            if is_indexed {
                unread.index(&name, "{'n': 1}");
            }
            let mut found = Vec::new();
            let filter = filter.as_ref();
            let mut visit = |stored: &frond_db::StoredDocument<'_>| {
                let mut bson = Vec::new();
                stored.write_bson(&mut bson)?;
                assert_eq!(stored.bytes(), bson.len() as u64, "{filter:?}");
                found.push(DocumentBuf::validated(bson.into()).expect("BSON"));
                Ok::<(), frond_db::Error>(())
            };
            let view = filter.map(DocumentBuf::view);
            unread.shop.export(&name, view, &mut visit).expect("exported");
            assert_same(&format!("{filter:?}"), found, &documents);
        }
    }
}

#[test]
fn finds() {
    let mut unread = Unread::new();
    for (filter, sort, index) in [
        ("{}", "", ""),
        ("{'n': {'$gte': 0}}", "", ""),
        ("{'n': {'$gte': 0}}", "", "{'n': 1}"),
        ("{'n': {'$gte': 0}}", "{'n': 1}", "{'n': 1}"),
        ("{'n': {'$gte': 0}}", "{'inner.x': 1}", ""),
        ("{'n': {'$in': [0,1,2,3,4,5,6,7,8,9]}}", "{'k': -1}", "{'n': 1, 'k': 1}"),
        ("{'list': {'$gte': 3}}", "", "{'list': 1}"),
        ("{'$or': [{'n': {'$gte': 4}}, {'inner.x': {'$lte': 0}}]}", "", "{'n': 1}"),
        ("{'$text': {'$search': 'frond'}}", "", "{'words': 'text'}"),
        ("{'$text': {'$search': 'frond'}}", "{'s': {'$meta': 'textScore'}}", "{'words': 'text'}"),
        ("{'place': {'$near': [1, 1]}}", "", "{'place': '2d'}"),
    ] {
        let (name, documents) = unread.next();
        if !index.is_empty() {
            unread.index(&name, index);
        }
        let mut request = request(filter);
        request.sort = (!sort.is_empty()).then(|| json(sort));
        request.limit = (!sort.is_empty()).then_some(90);
        let found = run(&unread.shop, &name, &request).expect("found");
        assert_same(&format!("{filter} by {sort}"), found, &documents);
    }
}

/// A projection of a large document gives the same as of a whole one; scores are computed of whole
/// ones.
#[test]
fn projections() {
    let mut unread = Unread::new();
    for (filter, projection, expected) in [
        ("{}", "{'_id': 1}", "{'_id': 4}"),
        ("{'n': 8}", "{'inner': 1}", "{'_id': 4, 'inner': {'x': -4}}"),
        (
            "{'n': 8}",
            "{'rest': 0, 'words': 0, 'place': 0, 'list': 0}",
            "{'_id': 4, 'n': 8, 'k': K, 'inner': {'x': -4}}",
        ),
        ("{'list': 7}", "{'list.$': 1}", "{'_id': 4, 'list': [7]}"),
        ("{}", "{'_id': 1, 'b': {'$strLenCP': '$rest'}}", "{'_id': 4, 'b': 199807}"),
        ("{}", "{'_id': 0, 'b': {'$bsonSize': '$$ROOT'}}", "{'b': 200000}"),
        (
            "{'$text': {'$search': 'frond'}}",
            "{'_id': 1, 's': {'$meta': 'textScore'}}",
            "{'_id': 4, 's': 0.75}",
        ),
        (
            "{'n': 8}",
            "{'list': {'$slice': 1}, 'rest': 0, 'words': 0, 'place': 0}",
            "{'_id': 4, 'n': 8, 'k': K, 'inner': {'x': -4}, 'list': [0]}",
        ),
    ] {
        let (name, _) = unread.next();
        unread.index(&name, "{'words': 'text'}");
        let mut request = request(filter);
        request.projection = Some(json(projection));
        let found = run(&unread.shop, &name, &request).expect("found");
        let expected = expected.replace('K', &unread.count.to_string());
        assert!(found.contains(&json(&expected)), "{filter} {projection}: {}", texts(&found));
    }
}

#[test]
fn pipelines() {
    let mut unread = Unread::new();
    for stages in [
        "",
        "{'$match': {'n': {'$gte': 0}}}",
        "{'$match': {'n': {'$gte': 0}}}, {'$match': {'rest': {'$exists': 1}}}",
        "{'$sort': {'n': 1}}",
        "{'$sort': {'n': 1}}, {'$limit': 50}",
        "{'$group': {'_id': null, 'all': {'$push': '$$ROOT'}}}, {'$unwind': '$all'}, {'$replaceWith': '$all'}",
        "{'$sample': {'size': 50}}",
        "{'$project': {'same': '$$ROOT', 'n': 1}}, {'$replaceWith': '$same'}",
        "{'$lookup': {'from': 'SELF', 'localField': '_id', 'foreignField': '_id', 'as': 'it'}}, {'$replaceWith': {'$first': '$it'}}",
        "{'$limit': 1}, {'$unionWith': 'SELF'}, {'$skip': 1}",
        "{'$graphLookup': {'from': 'SELF', 'startWith': '$_id', 'connectFromField': 'no', 'connectToField': '_id', 'as': 'it'}}, {'$replaceWith': {'$first': '$it'}}",
        "{'$facet': {'a': [{'$match': {'n': {'$gte': 0}}}]}}, {'$unwind': '$a'}, {'$replaceWith': '$a'}",
        "{'$geoNear': {'near': [1, 1], 'distanceField': 'd'}}, {'$unset': 'd'}",
    ] {
        let (name, documents) = unread.next();
        if stages.contains("geoNear") {
            unread.index(&name, "{'place': '2d'}");
        }
        let stages = format!("[{}]", stages.replace("SELF", &name));
        let found = aggregate(&unread.shop, Some(&name), &stages).expect("proper");
        assert_same(&stages, found, &documents);
    }
}

/// `$out` and `$merge`, into collections with indexes and validators, and a capped copy.
#[test]
fn copies() {
    let mut unread = Unread::new();
    for stages in [
        "{'$out': 'COPY'}",
        "{'$match': {'n': {'$gte': 0}}}, {'$out': 'COPY'}",
        "{'$match': {'$expr': {'$gte': ['$n', 0]}}}, {'$out': 'COPY'}",
        "{'$sort': {'inner.x': 1}}, {'$skip': 0}, {'$limit': 50}, {'$out': 'COPY'}",
        "{'$set': {'n': '$n'}}, {'$out': 'COPY'}",
        "{'$project': {'no': 0}}, {'$out': 'COPY'}",
        "{'$out': {'db': 'elsewhere', 'coll': 'COPY'}}",
        "{'$merge': 'COPY'}",
        "{'$merge': {'into': 'COPY', 'whenMatched': 'replace'}}",
        "{'$merge': {'into': 'COPY', 'whenMatched': 'merge'}}",
        "{'$merge': {'into': 'COPY', 'whenMatched': [{'$replaceWith': '$$new'}]}}",
    ] {
        let (name, documents) = unread.next();
        let copy = format!("{name}copy");
        let elsewhere = unread.shop.frond().database("elsewhere").expect("a proper name");
        let target = if stages.contains("elsewhere") { &elsewhere } else { &unread.shop };
        let validator = "{'validator': {'rest': {'$ne': 1}, 'inner.x': {'$not': {'$gt': 0}}}}";
        target.create_collection(&copy, json(validator).view()).expect("made");
        insert(target, &copy, "[{'_id': 3}]");
        let spec =
            IndexSpec::parse(json("{'key': {'inner.x': 1, 'k': 1}}").view()).expect("proper");
        target.create_indexes(&copy, &[spec]).expect("made");
        let stages = format!("[{}]", stages.replace("COPY", &copy));
        aggregate(&unread.shop, Some(&name), &stages).expect("proper");
        let found = run(target, &copy, &request("{}")).expect("found");
        assert_same(&stages, found, &documents);
        let found = run(target, &copy, &request("{'inner.x': {'$lte': 0}}")).expect("found");
        assert_eq!(found.len(), documents.len(), "{stages}");
    }
    let (name, documents) = unread.next();
    unread.shop.copy_capped(&name, "capped", 64 << 20).expect("copied");
    assert_same("capped", run(&unread.shop, "capped", &request("{}")).expect("found"), &documents);
}

/// Updates of every kind change what they name and nothing else; the index finds what is there.
#[test]
fn changes() {
    let mut unread = Unread::new();
    for (filter, update) in [
        ("{}", "{'$set': {'n': 77}}"),
        ("{'n': {'$gte': 0}}", "{'$set': {'n': 77}}"),
        ("{'n': {'$gte': 0}}", "[{'$set': {'n': 77}}]"),
        ("{'n': {'$gte': 0}}", "[{'$set': {'n': {'$add': [77, {'$multiply': [0, '$n']}]}}}]"),
        ("{'n': {'$gte': 0}}", "[{'$replaceWith': {'$mergeObjects': ['$$ROOT', {'n': 77}]}}]"),
        ("{'n': {'$gte': 0}}", "{'$max': {'n': 77}, '$unset': {'absent.x': 1}}"),
        ("{'n': {'$gte': 0}}", "{'$set': {'n': 77}, '$rename': {'absent': 'other'}}"),
    ] {
        for validator in ["{}", "{'validator': {'rest': {'$type': 'string'}}}"] {
            let (source, documents) = unread.next();
            let name = format!("{source}changed");
            unread.shop.create_collection(&name, json(validator).view()).expect("made");
            unread.index(&name, "{'n': 1}");
            assert!(try_insert(&unread.shop, &name, &documents).errors.is_empty());
            let mut changed = statement(filter, update);
            changed.multi = true;
            let done = self::update(&unread.shop, &name, changed);
            assert_eq!(done.modified, SIZES.len() as u64, "{update}: {:?}", done.errors);
            let expected: Vec<DocumentBuf> = documents.iter().map(with_n).collect();
            let found = run(&unread.shop, &name, &request("{'n': 77}")).expect("found");
            assert_same(&format!("{filter} {update} {validator}"), found, &expected);
            let checked = unread.shop.check_collection(&name, &Default::default());
            assert!(checked.expect("checked").is_valid(), "{update}");
            assert_eq!(delete(&unread.shop, &name, "{'n': 77}"), SIZES.len() as u64);
            assert_eq!(find(&unread.shop, &name, "{'n': {'$gte': 0}}"), "[]");
        }
    }
}

fn with_n(document: &DocumentBuf) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    for element in document.view().elements() {
        match element.name {
            b"n" => out.append("n", Value::Int32(77)),
            _ => out.append_element(&element),
        };
    }
    out.build()
}

/// `findAndModify` answers whole documents: before, after, and what it removed.
#[test]
fn modified_ones() {
    let mut unread = Unread::new();
    let shows = [None, Some(false), Some(true)];
    for sort in [None, Some("{'n': 1}"), Some("{'_id': -1}")] {
        for shown in shows {
            let (name, documents) = unread.next();
            for document in &documents {
                let id = document.get("_id").and_then(|id| id.as_integer()).expect("a number");
                let report = unread.shop.find_and_modify(
                    &name,
                    &FindAndModify {
                        filter: json(&format!("{{'_id': {id}, 'n': {{'$gte': 0}}}}")),
                        sort: sort.map(json),
                        update: shown.map(|_| value("{'$set': {'n': 77}}")),
                        upsert: false,
                        return_new: shown == Some(true),
                        projection: None,
                        array_filters: None,
                        hint: None,
                        variables: None,
                        collation: None,
                    },
                    Durability::Relaxed,
                );
                let value = report.expect("proper").value.expect("found");
                let expected =
                    if shown == Some(true) { with_n(document) } else { document.clone() };
                assert!(value == expected, "{id} {sort:?} {shown:?}");
            }
        }
    }
}
