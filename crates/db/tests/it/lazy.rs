//! Goal: a pipeline over large documents, which carries their long values as references, gives the
//! same as over whole ones, stage by stage and expression by expression. Method: the same pipeline
//! in a transaction that has written the documents itself, and reads them whole; what is stored by
//! reference is written again as a whole, and must be the same value.

use frond_db::catalog::IndexSpec;
use frond_db::{Database, Durability, Error, FindAndModify, FrondOptions, Transaction};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_testkit::SimDisk;
use frond_vcs::Repository;

use crate::crud::modify;
use crate::support::*;

/// A database that keeps no documents in memory whole: all that is read is read in pieces.
pub(crate) fn unkept() -> Repository {
    let options = FrondOptions { documents_cache_bytes: Some(64 << 10), ..FrondOptions::default() };
    let frond = frond_vcs::open_on(&SimDisk::new(3).machine(), options).expect("opens");
    Repository::open(&frond, "shop").expect("a proper name")
}

fn integer(number: usize) -> Value<'static> {
    Value::Int32(i32::try_from(number).expect("small"))
}

/// Makes a document of about so many bytes, with whatever may lie in pieces: documents in arrays in
/// documents, long texts in both, arrays in arrays, an array with other names than positions, and
/// missing values.
pub(crate) fn document(id: usize, bytes: usize) -> DocumentBuf {
    let mut out = DocumentBuilder::new();
    out.append("_id", integer(id)).append("level", integer(id * 7 % 5));
    if id != 2 {
        out.append("n", integer(id * 3 % 7));
    }
    out.append("text", Value::String(&format!("text {} ", id % 2).repeat(200)));
    out.append("middle", Value::String(&"m".repeat(600)));
    out.begin_document("meta").begin_document("a");
    out.append("b", integer(id % 3)).append("pad", Value::String(&"pad ".repeat(200))).end();
    out.append("pad", Value::String(&"pad ".repeat(300))).append("x", integer(id)).end();
    out.begin_array("mixed").push(integer(1));
    out.push_begin_document().append("n", integer(id));
    out.append("long", Value::String(&"l".repeat(400))).end();
    out.push_begin_array().push_begin_document().append("n", integer(5));
    out.append("long", Value::String(&"k".repeat(400))).end().end();
    out.push(Value::String(&"s".repeat(700))).push(Value::Null).end();
    let mut named = DocumentBuilder::new();
    for name in ["x", "y", "0"] {
        let inner = frond_doc::document! { "n": 1_i32, "long": &"n".repeat(400) };
        named.append(name, Value::from(&inner));
    }
    let named = named.build();
    out.append("named", Value::Array(frond_doc::Array::from_validated(named.as_bytes())));
    out.begin_array("rows");
    let mut row = 0;
    while out.bytes() < bytes {
        out.push_begin_document().append("n", integer(row % 11)).append("at", integer(row));
        out.begin_document("in").append("v", integer(row % 4));
        out.append("w", Value::String(&"word ".repeat(60))).end();
        out.append("body", Value::String(&format!("body {row} ").repeat(60))).end();
        row += 1;
    }
    out.end().append("last", integer(id));
    out.build()
}

pub(crate) const SIZES: [usize; 6] = [20_000, 34_000, 34_000, 90_000, 300_000, 1_100_000];

fn documents() -> Vec<DocumentBuf> {
    SIZES.iter().enumerate().map(|(id, bytes)| document(id, *bytes)).collect()
}

pub(crate) fn filled() -> Repository {
    let shop = unkept();
    for document in documents() {
        assert_eq!(try_insert(&shop, "docs", &[document]).count, 1);
    }
    insert(&shop, "small", "[{'_id': 1, 'level': 1, 'k': 3}, {'_id': 2, 'level': 4, 'k': 5}]");
    shop
}

/// The same documents, as an open transaction that has written them sees them: whole.
pub(crate) struct Whole {
    pub(crate) _transaction: Transaction,
    pub(crate) inside: Database,
}

impl Whole {
    pub(crate) fn of(shop: &Database) -> Whole {
        let transaction = shop.frond().begin();
        let inside = transaction.database("shop").expect("opens");
        assert_eq!(delete(&inside, "docs", "{}"), SIZES.len() as u64);
        assert_eq!(try_insert(&inside, "docs", &documents()).count, SIZES.len() as u64);
        Whole { _transaction: transaction, inside }
    }

    /// Returns the pipeline's results over them.
    fn give(&self, stages: &str) -> Result<Vec<DocumentBuf>, Error> {
        aggregate(&self.inside, Some("docs"), stages)
    }
}

fn check(shop: &Database, whole: &Whole, stages: &str) -> Option<Vec<DocumentBuf>> {
    let found = aggregate(shop, Some("docs"), stages);
    let expected = whole.give(stages);
    match (found, expected) {
        (Ok(found), Ok(expected)) => {
            assert_eq!(found.len(), expected.len(), "{stages}");
            for (found, expected) in found.iter().zip(&expected) {
                let found = DocumentBuf::validated(found.as_bytes().to_vec().into());
                assert!(found.expect("no reference is left") == *expected, "{stages}");
            }
            Some(expected)
        }
        (Err(found), Err(expected)) => {
            assert_eq!(
                found.code, expected.code,
                "{stages}: {} {}",
                found.message, expected.message
            );
            None
        }
        (found, expected) => panic!(
            "{stages}: {:?}, expected {:?}",
            found.map(|found| found.len()),
            expected.map(|found| found.len())
        ),
    }
}

/// Expressions, to be given as a field's value.
const EXPRESSIONS: &[&str] = &[
    "'$level'",
    "'$meta'",
    "'$meta.a'",
    "'$meta.a.b'",
    "'$meta.a.pad'",
    "'$text'",
    "'$absent.a'",
    "'$rows.n'",
    "'$rows.in.v'",
    "'$rows.in'",
    "'$mixed.n'",
    "'$mixed.long'",
    "'$named.n'",
    "'$rows'",
    "'$mixed'",
    "'$named'",
    "'$$ROOT'",
    "'$$CURRENT.meta'",
    "'$$ROOT.rows.at'",
    "{'$getField': 'level'}",
    "{'$getField': 'meta'}",
    "{'$getField': {'$concat': ['me', 'ta']}}",
    "{'$getField': {'field': 'a', 'input': '$meta'}}",
    "{'$getField': {'field': 'b', 'input': {'$getField': {'field': 'a', 'input': '$meta'}}}}",
    "{'$getField': {'field': 'n', 'input': {'$arrayElemAt': ['$rows', 3]}}}",
    "{'$setField': {'field': 'level', 'input': '$$ROOT', 'value': 1}}",
    "{'$setField': {'field': 'x', 'input': '$meta', 'value': '$rows'}}",
    "{'$setField': {'field': 'a', 'input': '$meta', 'value': '$$REMOVE'}}",
    "{'$unsetField': {'field': 'rows', 'input': '$$ROOT'}}",
    "{'$unsetField': {'field': 'pad', 'input': '$meta.a'}}",
    "{'$mergeObjects': ['$$ROOT', {'level': 9, 'new': '$meta'}]}",
    "{'$mergeObjects': ['$meta', '$meta.a', null]}",
    "{'$mergeObjects': '$rows'}",
    "{'$mergeObjects': ['$rows', {'a': 1}]}",
    "{'$mergeObjects': ['$meta', '$text']}",
    "{'$objectToArray': '$meta'}",
    "{'$objectToArray': '$$ROOT'}",
    "{'$objectToArray': '$text'}",
    "{'$arrayToObject': {'$objectToArray': '$meta'}}",
    "{'$size': '$rows'}",
    "{'$size': '$mixed'}",
    "{'$size': '$text'}",
    "{'$type': '$rows'}",
    "{'$type': '$meta'}",
    "{'$type': '$text'}",
    "{'$type': '$absent'}",
    "{'$isArray': '$rows'}",
    "{'$isArray': '$meta'}",
    "{'$isNumber': '$meta'}",
    "{'$isNumber': '$level'}",
    "{'$ifNull': ['$n', '$meta']}",
    "{'$ifNull': ['$absent', '$rows']}",
    "{'$cond': [{'$gt': ['$level', 2]}, '$meta', '$text']}",
    "{'$switch': {'branches': [{'case': '$rows', 'then': '$mixed'}], 'default': 1}}",
    "{'$let': {'vars': {'m': '$meta', 'r': '$rows'}, 'in': {'$add': ['$$m.a.b', {'$size': '$$r'}]}}}",
    "{'$let': {'vars': {'m': '$meta'}, 'in': ['$$m', '$$m.a', '$level']}}",
    "{'$slice': ['$rows', 2]}",
    "{'$slice': ['$rows', -3, 2]}",
    "{'$slice': ['$rows', 3, 1000000]}",
    "{'$slice': ['$rows', 1000000, 2]}",
    "{'$slice': ['$rows', -1000000, 2]}",
    "{'$slice': ['$rows', 0]}",
    "{'$slice': ['$named', 1, 1]}",
    "{'$slice': ['$text', 1]}",
    "{'$last': {'$slice': ['$rows', -5, 3]}}",
    "{'$size': {'$slice': ['$mixed', 2]}}",
    "{'$arrayElemAt': ['$rows', -1]}",
    "{'$arrayElemAt': ['$rows', -1000000]}",
    "{'$arrayElemAt': ['$rows', 1000000]}",
    "{'$arrayElemAt': ['$rows', '$level']}",
    "{'$arrayElemAt': ['$named', 1]}",
    "{'$arrayElemAt': ['$meta', 1]}",
    "{'$first': '$named'}",
    "{'$last': '$rows'}",
    "{'$isArray': '$text'}",
    "{'$arrayElemAt': ['$mixed', 2]}",
    "{'$first': '$rows'}",
    "{'$last': '$mixed'}",
    "{'$reverseArray': '$mixed'}",
    "{'$concatArrays': ['$mixed', '$named', [{'a': '$meta'}]]}",
    "{'$map': {'input': '$rows', 'as': 'r', 'in': '$$r.n'}}",
    "{'$map': {'input': '$mixed', 'in': {'$type': '$$this'}}}",
    "{'$filter': {'input': '$rows', 'cond': {'$eq': ['$$this.in.v', 1]}, 'limit': 3}}",
    "{'$reduce': {'input': '$rows', 'initialValue': 0, 'in': {'$add': ['$$value', '$$this.n']}}}",
    "{'$sortArray': {'input': '$rows', 'sortBy': {'n': -1, 'at': 1}}}",
    "{'$in': [5, '$rows.at']}",
    "{'$indexOfArray': ['$rows.at', 4]}",
    "{'$sum': '$rows.n'}",
    "{'$max': ['$text', '$meta']}",
    "{'$eq': ['$meta', '$meta']}",
    "{'$cmp': ['$rows', '$mixed']}",
    "{'$concat': ['$text', '-', '$middle']}",
    "{'$strLenCP': '$text'}",
    "{'$setUnion': ['$rows.n', [77]]}",
    "{'$setIsSubset': [[1], '$rows.n']}",
    "{'$zip': {'inputs': ['$rows.n', '$mixed']}}",
    "{'$bsonSize': '$$ROOT'}",
    "{'$bsonSize': '$meta'}",
    "{'$toHashedIndexKey': '$meta'}",
    "{'$firstN': {'n': 2, 'input': '$rows'}}",
    "{'$substrCP': ['$text', 3, 9]}",
    "{'$regexMatch': {'input': '$text', 'regex': 'text 1'}}",
    "{'$add': ['$meta', 1]}",
    "{'$not': ['$rows']}",
    "{'$and': ['$meta', '$level']}",
    "['$meta', {'deep': {'$first': '$rows'}, 'also': '$rows.in'}]",
    "{'a': {'b': '$meta.a'}}",
    "{'$toString': '$level'}",
    "{'$literal': '$$ROOT'}",
    "{'$allElementsTrue': ['$rows']}",
    "{'$map': {'input': {'$objectToArray': '$$ROOT'}, 'in': '$$this.k'}}",
    "{'$map': {'input': {'$objectToArray': '$meta'}, 'in': ['$$this', {'$type': '$$this.v'}]}}",
    "{'$map': {'input': '$named', 'as': 'it', 'in': {'l': '$$it.long', 'it': '$$it'}}}",
    "{'$map': {'input': '$text', 'in': 1}}",
];

/// Stages, several to a pipeline.
const STAGES: &[&str] = &[
    "{'$match': {'n': {'$gt': 3}}}",
    "{'$match': {'meta.a.b': 1}}",
    "{'$match': {'rows.n': 3}}",
    "{'$match': {'rows.4.n': 4}}",
    "{'$match': {'rows': {'$elemMatch': {'n': 4, 'in.v': 3}}}}",
    "{'$match': {'rows': {'$size': 40}}}",
    "{'$match': {'n': {'$exists': false}}}",
    "{'$match': {'mixed': {'$type': 'array'}}}",
    "{'$match': {'mixed': {'$type': 'string'}}}",
    "{'$match': {'rows': {'$type': ['string', 'object']}, 'meta': {'$type': ['object', 'array']}}}",
    "{'$match': {'text': {'$type': ['string', 'array']}, 'rows': {'$exists': true, '$ne': 3}}}",
    "{'$match': {'rows': {'$not': {'$size': 40}}, 'text': {'$not': {'$size': 1}}}}",
    "{'$match': {'$or': [{'mixed': {'$size': 5}}, {'meta': {'$size': 1}}, {'named.x': {'$exists': 1}}]}}",
    "{'$unset': 'text'}, {'$match': {'rows': {'$size': 40}}}, {'$project': {'n': 1}}",
    "{'$graphLookup': {'from': 'docs', 'startWith': '$level', 'connectFromField': 'meta.x', 'connectToField': '_id', 'as': 'it', 'restrictSearchWithMatch': {'mixed': {'$size': 5}}}}, {'$set': {'it': {'$size': '$it'}}}",
    "{'$lookup': {'from': 'docs', 'localField': 'level', 'foreignField': 'level', 'pipeline': [{'$match': {'mixed': {'$size': 5}, 'rows': {'$exists': true}}}, {'$project': {'n': 1}}], 'as': 'it'}}",
    "{'$match': {'text': /1/}}",
    "{'$match': {'$expr': {'$gt': [{'$size': '$rows'}, 50]}}}",
    "{'$match': {'mixed.2.0.n': 5}}",
    "{'$match': {'$or': [{'level': 1}, {'$expr': {'$eq': ['$meta.a.b', 2]}}]}}",
    "{'$match': {'$jsonSchema': {'required': ['n'], 'properties': {'rows': {'minItems': 50}}}}}",
    "{'$project': {'level': 1}}",
    "{'$project': {'rows': 1}}",
    "{'$project': {'rows': 0}}",
    "{'$project': {'meta.a.b': 1, 'rows.n': 1}}",
    "{'$project': {'meta.a': 0, 'mixed.long': 0}}",
    "{'$project': {'rows.in.w': 0, 'named.long': 0}}",
    "{'$project': {'_id': 0, 'm': '$meta'}}",
    "{'$project': {'mixed.n': 1, 'text.a': 1}}",
    "{'$set': {'level': 1}}",
    "{'$set': {'meta.a.b': 7}}",
    "{'$set': {'rows.x': 1}}",
    "{'$set': {'text.x': '$level'}}",
    "{'$set': {'meta.copy': '$meta', 'mixed.y': '$n'}}",
    "{'$set': {'rows': {'$slice': ['$rows', 2]}}}",
    "{'$unset': ['rows', 'meta.pad']}",
    "{'$unset': 'rows.in.w'}",
    "{'$replaceWith': '$meta'}",
    "{'$replaceWith': '$text'}",
    "{'$replaceRoot': {'newRoot': '$$ROOT'}}",
    "{'$replaceWith': {'$mergeObjects': ['$$ROOT', {'level': 2}]}}",
    "{'$replaceWith': {'$setField': {'field': 'level', 'input': '$$ROOT', 'value': 1}}}",
    "{'$replaceWith': {'$first': '$rows'}}",
    "{'$sort': {'level': 1, '_id': 1}}",
    "{'$sort': {'rows.at': -1, '_id': 1}}",
    "{'$sort': {'meta': 1}}, {'$project': {'_id': 1}}",
    "{'$sort': {'text': -1, '_id': -1}}, {'$limit': 2}",
    "{'$sort': {'level': 1}}, {'$project': {'_id': 1}}",
    "{'$skip': 2}",
    "{'$limit': 3}, {'$set': {'a': 1}}",
    "{'$group': {'_id': null, 'sum': {'$sum': '$n'}, 'size': {'$sum': {'$size': '$rows'}}}}",
    "{'$group': {'_id': '$meta.a.b', 'all': {'$push': '$meta'}, 'first': {'$first': '$$ROOT'}}}, {'$sort': {'_id': 1}}",
    "{'$group': {'_id': '$meta.a', 'last': {'$last': '$rows'}, 'max': {'$max': '$meta'}}}, {'$sort': {'_id': 1}}",
    "{'$group': {'_id': 1, 'p': {'$push': '$meta'}, 'm': {'$max': '$meta'}, 's': {'$addToSet': '$meta.a'}}}, {'$unset': 's'}",
    "{'$group': {'_id': 1, 'top': {'$top': {'sortBy': {'rows.at': -1}, 'output': ['$_id', '$meta']}}}}",
    "{'$group': {'_id': 1, 'o': {'$mergeObjects': '$meta'}, 'f': {'$firstN': {'n': 2, 'input': '$rows'}}}}",
    "{'$group': {'_id': 1, 'all': {'$push': '$$ROOT'}}}, {'$project': {'n': {'$size': '$all'}, 'l': '$all.level', 'v': '$all.rows.in.v'}}",
    "{'$facet': {'a': [{'$match': {'n': {'$gt': 3}}}, {'$count': 'c'}], 'b': [{'$project': {'meta': 1}}], 'c': [{'$unwind': '$mixed'}, {'$limit': 3}]}}",
    "{'$facet': {'a': [{'$limit': 1}], 'b': [{'$sort': {'level': 1}}, {'$limit': 1}]}}, {'$project': {'x': {'$first': '$a.rows.n'}}}",
    "{'$unwind': '$rows'}, {'$match': {'rows.n': 2}}, {'$project': {'rows': 1}}",
    "{'$unwind': {'path': '$mixed', 'includeArrayIndex': 'meta.at'}}",
    "{'$unwind': '$named'}, {'$unset': 'rows'}",
    "{'$unwind': {'path': '$absent', 'preserveNullAndEmptyArrays': true}}",
    "{'$unwind': '$meta'}",
    "{'$unwind': {'path': '$text', 'includeArrayIndex': 'i'}}",
    "{'$count': 'c'}",
    "{'$sortByCount': '$meta.a'}",
    "{'$lookup': {'from': 'docs', 'localField': 'level', 'foreignField': 'meta.x', 'as': 'it'}}",
    "{'$lookup': {'from': 'docs', 'localField': 'rows.at', 'foreignField': '_id', 'as': 'meta.it'}}, {'$unset': 'meta.it.rows'}",
    "{'$lookup': {'from': 'docs', 'let': {'m': '$meta'}, 'pipeline': [{'$match': {'$expr': {'$eq': ['$meta', '$$m']}}}, {'$project': {'rows': {'$first': '$rows'}}}], 'as': 'it'}}",
    "{'$lookup': {'from': 'small', 'localField': '_id', 'foreignField': 'level', 'as': 'it'}}, {'$set': {'k': {'$first': '$it.k'}}}",
    "{'$graphLookup': {'from': 'docs', 'startWith': '$level', 'connectFromField': 'meta.x', 'connectToField': '_id', 'as': 'it'}}, {'$set': {'it': {'$size': '$it'}}}",
    "{'$unionWith': 'docs'}, {'$match': {'meta.a.b': 1}}",
    "{'$unionWith': {'coll': 'small', 'pipeline': [{'$set': {'a': 1}}]}}",
    "{'$unionWith': {'coll': 'docs', 'pipeline': [{'$project': {'m': '$meta'}}]}}",
    "{'$bucket': {'groupBy': '$level', 'boundaries': [0, 2, 9], 'output': {'m': {'$push': '$meta'}}}}",
    "{'$bucketAuto': {'groupBy': '$meta.a', 'buckets': 2}}",
    "{'$setWindowFields': {'sortBy': {'level': 1, '_id': 1}, 'output': {'p': {'$push': '$meta', 'window': {'documents': [-1, 0]}}}}}",
    "{'$redact': {'$cond': [{'$eq': ['$n', 1]}, '$$PRUNE', '$$DESCEND']}}",
    "{'$fill': {'sortBy': {'_id': 1}, 'output': {'n': {'method': 'locf'}}}}",
    "{'$redact': {'$cond': [{'$isNumber': '$v'}, '$$PRUNE', {'$cond': [{'$eq': ['$n', 5]}, '$$KEEP', '$$DESCEND']}]}}",
    "{'$redact': {'$cond': [{'$eq': ['$level', 2]}, '$$PRUNE', '$$KEEP']}}, {'$project': {'n': 1}}",
    "{'$bucketAuto': {'groupBy': '$level', 'buckets': 3, 'output': {'r': {'$push': {'$first': '$rows'}}, 'm': {'$max': '$meta'}}}}",
    "{'$setWindowFields': {'partitionBy': '$meta.a.b', 'sortBy': {'level': 1, '_id': 1}, 'output': {'meta.w': {'$sum': '$level', 'window': {'range': [-1, 1]}}, 'before': {'$shift': {'output': '$text', 'by': -1}}}}}",
    "{'$setWindowFields': {'sortBy': {'meta.x': -1}, 'output': {'t': {'$top': {'sortBy': {'rows.at': -1}, 'output': '$_id'}}, 'rows': {'$rank': {}}}}}",
    "{'$graphLookup': {'from': 'docs', 'startWith': '$meta.x', 'connectFromField': 'level', 'connectToField': 'meta.x', 'depthField': 'meta.depth', 'as': 'meta.it', 'restrictSearchWithMatch': {'rows.n': 4}}}",
    "{'$densify': {'field': 'meta.x', 'partitionByFields': ['n'], 'range': {'step': 2, 'bounds': 'partition'}}}",
    "{'$densify': {'field': 'level', 'range': {'step': 1, 'bounds': 'full'}}}",
    "{'$project': {'x': ['$meta', '$rows'], 'y': {'z': '$$ROOT'}}}, {'$project': {'q': '$y.z.meta.a.b', 'r': {'$size': {'$arrayElemAt': ['$x', 1]}}}}",
    "{'$set': {'keep': '$meta'}}, {'$unset': 'meta'}, {'$match': {'keep.a.b': {'$gte': 1}}}, {'$sort': {'keep.x': -1}}, {'$project': {'keep': 1}}",
    "{'$set': {'big': ['$$ROOT', '$$ROOT', '$$ROOT', '$$ROOT', '$$ROOT', '$$ROOT', '$$ROOT', '$$ROOT', '$$ROOT', '$$ROOT', '$$ROOT', '$$ROOT', '$$ROOT', '$$ROOT', '$$ROOT', '$$ROOT']}}, {'$match': {'_id': 5}}",
];

/// Projections of `find`.
const PROJECTIONS: &[&str] = &[
    "{'rows': {'$slice': 2}}",
    "{'rows': {'$slice': -2}}",
    "{'rows': {'$slice': [-1000000, 3]}}",
    "{'rows': {'$slice': [2, 1000000]}, 'text': 0}",
    "{'named': {'$slice': 1}, 'mixed': {'$slice': [1, 2]}, 'meta': {'$slice': 1}}",
    "{'meta.a': 1, 'rows': {'$slice': [7, 1]}}",
    "{'rows': {'$elemMatch': {'n': 4, 'in.v': 3}}}",
    "{'rows': {'$elemMatch': {'at': {'$gt': 700}}}, 'level': 1}",
    "{'rows': {'$elemMatch': {'n': 77}}}",
    "{'mixed': {'$elemMatch': {'long': {'$exists': true}}}, 'named': {'$elemMatch': {'n': 1}}}",
    "{'meta': {'$elemMatch': {'x': 1}}, 'text': {'$elemMatch': {'$eq': 1}}, 'n': 1}",
    "{'size': {'$size': '$rows'}, 'last': {'$last': '$rows.at'}}",
];

#[test]
fn projections_equal_those_over_whole_documents() {
    let shop = filled();
    let Whole { inside, _transaction } = Whole::of(&shop);
    for projection in PROJECTIONS {
        let mut request = request("{}");
        request.projection = Some(json(projection));
        let found = run(&shop, "docs", &request).expect("found");
        let expected = run(&inside, "docs", &request).expect("found");
        assert_eq!(found.len(), SIZES.len());
        assert!(found == expected, "{projection}");
    }
}

/// Filters, and projections to the element that matched.
const POSITIONS: &[(&str, &str)] = &[
    ("{'rows.at': 7}", "{'rows.$': 1}"),
    ("{'rows.n': {'$gt': 4}}", "{'rows.$': 1, 'level': 1}"),
    ("{'rows': {'$elemMatch': {'n': 4, 'in.v': 3}}}", "{'rows.$': 1, 'level': 1}"),
    ("{'mixed.n': {'$gte': 0}}", "{'mixed.$': 1}"),
    ("{'mixed': {'$type': 'string'}}", "{'mixed.$': 1}"),
    ("{'mixed': {'$type': 'string'}, 'rows.at': 2}", "{'rows.$': 1}"),
    ("{'named.n': 1}", "{'named.$': 1}"),
    ("{'rows.at': 2}", "{'named.$': 1, 'meta.a': 1}"),
    ("{'rows': {'$exists': true}}", "{'rows.$': 1}"),
    ("{'rows': {'$size': 40}}", "{'mixed.$': 1}"),
    ("{'mixed': {'$size': 5}}", "{'mixed.$': 1}"),
    ("{'meta.a.b': 1, 'rows.n': 3}", "{'rows.$': 1, 'meta.a': 1}"),
    ("{'rows.n': 3, 'meta.a.b': 1}", "{'rows.in.$': 1}"),
    ("{'$or': [{'rows.n': 3}, {'mixed': 1}]}", "{'mixed.$': 1}"),
    ("{'$and': [{'rows.n': 3}, {'$expr': {'$gt': ['$level', 1]}}]}", "{'rows.$': 1}"),
    ("{'rows.at': 700}", "{'mixed.$': 1}"),
    ("{'level': {'$gte': 0}}", "{'mixed.$': 1}"),
];

#[test]
fn positional_projections_equal_those_over_whole_documents() {
    let shop = filled();
    let Whole { inside, _transaction } = Whole::of(&shop);
    let mut found_count = 0;
    for (filter, projection) in POSITIONS {
        let mut request = request(filter);
        request.projection = Some(json(projection));
        let found = run(&shop, "docs", &request);
        let expected = run(&inside, "docs", &request);
        match (found, expected) {
            (Ok(found), Ok(expected)) => {
                found_count += found.len();
                assert!(found == expected, "{filter} {projection}");
            }
            (found, expected) => {
                let code = |it: Result<_, Error>| it.err().map(|error| error.code);
                assert_eq!(code(found), code(expected), "{filter} {projection}");
            }
        }
    }
    assert!(20 < found_count, "{found_count}");
}

#[test]
fn find_and_modify_shows_pieces_as_it_shows_whole_documents() {
    let shop = filled();
    let whole = unkept();
    for document in documents() {
        assert_eq!(try_insert(&whole, "docs", &[document]).count, 1);
    }
    let projections = ["{'rows': 0}", "{'meta.a': 0, 'rows.in': 0}", "{'t': '$text', 'n': 1}"];
    let more = ["{'rows': {'$slice': -2}}", "{'rows.$': 1}", "{'s': {'$size': '$rows'}}"];
    for (number, projection) in projections.iter().chain(&more).enumerate() {
        for (filter, return_new) in [("{'rows.at': 4}", false), ("{'rows.at': 3}", true)] {
            let sort = ["{'meta.x': 1}", "{'text': -1, 'level': 1}", "{'_id': -1}"][number % 3];
            let modification = FindAndModify {
                sort: Some(json(sort)),
                projection: Some(json(projection)),
                return_new,
                ..modify(filter, Some("{'$inc': {'n': 1}, '$set': {'meta.a.b': 9}}"))
            };
            let found =
                shop.find_and_modify("docs", &modification, Durability::Relaxed).expect("done");
            // In a transaction that has written it, it is whole.
            let transaction = whole.frond().begin();
            let inside = transaction.database("shop").expect("opens");
            let touched = statement("{}", "{'$set': {'touched': 1}}");
            update(&inside, "docs", frond_db::UpdateStatement { multi: true, ..touched });
            let untouched = statement("{}", "{'$unset': {'touched': 1}}");
            update(&inside, "docs", frond_db::UpdateStatement { multi: true, ..untouched });
            let expected = inside.find_and_modify("docs", &modification, Durability::Relaxed);
            assert!(found.value == expected.expect("done").value, "{filter} {projection}");
            transaction.commit(Durability::Relaxed, None).expect("committed");
        }
    }
}

fn unquoted(stages: &str) -> String {
    stages.replace("/1/", "{'$regex': '1'}")
}

#[test]
fn expressions_equal_those_over_whole_documents() {
    let shop = filled();
    let whole = Whole::of(&shop);
    let mut checked = 0;
    for expression in EXPRESSIONS {
        for stages in [
            format!("[{{'$project': {{'v': {expression}}}}}]"),
            format!(
                "[{{'$match': {{'_id': {{'$lt': 5}}}}}}, {{'$set': {{'meta.v': {expression}}}}}]"
            ),
            format!(
                "[{{'$group': {{'_id': {expression}}}}}, {{'$sort': {{'_id': 1}}}}, {{'$limit': 3}}]"
            ),
        ] {
            checked += usize::from(check(&shop, &whole, &stages).is_some());
        }
    }
    assert!(EXPRESSIONS.len() * 2 < checked, "{checked} are no errors");
}

#[test]
fn stages_equal_those_over_whole_documents() {
    let shop = filled();
    for is_indexed in [false, true] {
        if is_indexed {
            for key in ["{'level': 1}", "{'n': 1}", "{'rows.at': 1}", "{'meta.a.b': 1}"] {
                let spec = IndexSpec::parse(json(&format!("{{'key': {key}}}")).view());
                shop.create_indexes("docs", &[spec.expect("proper")]).expect("made");
            }
        }
        let whole = Whole::of(&shop);
        for stages in STAGES {
            let stages = unquoted(stages);
            check(&shop, &whole, &format!("[{stages}]"));
            check(&shop, &whole, &format!("[{{'$sort': {{'_id': -1}}}}, {stages}]"));
            check(
                &shop,
                &whole,
                &format!("[{{'$set': {{'u': '$rows'}}}}, {{'$unset': 'mixed'}}, {stages}]"),
            );
        }
    }
}

/// A filter's expression looks at fields that nothing else names.
#[test]
fn expressions_of_filters_see_all_fields() {
    let shop = filled();
    let whole = Whole::of(&shop);
    for condition in [
        "{'$eq': ['$meta.a.b', 1]}",
        "{'$in': [3, '$rows.n']}",
        "{'$gt': [{'$size': '$rows'}, 50]}",
        "{'$eq': ['$text', {'$arrayElemAt': [['$text'], 0]}]}",
        "{'$gt': [{'$getField': 'level'}, 1]}",
        "{'$eq': ['$$ROOT.meta.x', '$_id']}",
    ] {
        for filter in [
            format!("{{'$expr': {condition}}}"),
            format!("{{'_id': {{'$gte': 0}}, '$or': [{{'last': 77}}, {{'$expr': {condition}}}]}}"),
        ] {
            let expected = whole.give(&format!("[{{'$match': {filter}}}]"));
            let expected = expected.expect("proper");
            assert!(!expected.is_empty(), "{condition}");
            let ids: Vec<String> = expected.iter().map(|it| text(&id_of(it))).collect();
            for stage in [
                "{'$group': {'_id': '$_id'}}, {'$sort': {'_id': 1}}",
                "{'$project': {'_id': 1}}",
                "{'$project': {'n': 1}}, {'$sort': {'_id': 1}}",
                "{'$sort': {'_id': 1}}, {'$group': {'_id': '$_id'}}, {'$sort': {'_id': 1}}",
            ] {
                let stages = format!("[{{'$match': {filter}}}, {stage}]");
                let found = aggregate(&shop, Some("docs"), &stages).expect("proper");
                let found: Vec<String> = found.iter().map(|it| text(&id_of(it))).collect();
                assert_eq!(found, ids, "{stages}");
                let stages = format!("[{{'$match': {filter}}}, {stage}, {{'$out': 'copies'}}]");
                aggregate(&shop, Some("docs"), &stages).expect("proper");
                let copied = run(&shop, "copies", &request("{}")).expect("found");
                assert_eq!(copied.len(), ids.len(), "{stages}");
            }
            assert_eq!(shop.count("docs", &request(&filter)).expect("counted"), ids.len() as u64);
            let distinct = shop.distinct("docs", "_id", &request(&filter)).expect("found");
            assert_eq!(distinct.len(), ids.len(), "{filter}");
            let mut request = request(&filter);
            request.projection = Some(json("{'_id': 1}"));
            assert_eq!(run(&shop, "docs", &request).expect("found").len(), ids.len(), "{filter}");
        }
    }
}

fn id_of(document: &DocumentBuf) -> DocumentBuf {
    frond_doc::document! { "_id": document.get("_id").expect("has one") }
}

/// `$out` stores the same values as it would of whole documents.
#[test]
fn stored_documents_are_those_that_whole_ones_make() {
    let shop = filled();
    insert(&shop, "copies", "[{'_id': 'old'}]");
    for (key, unique) in [("{'meta.a.b': 1}", false), ("{'_id': 1, 'rows.at': 1}", true)] {
        let spec = format!("{{'key': {key}, 'unique': {unique}}}");
        let spec = IndexSpec::parse(json(&spec).view()).expect("proper");
        shop.create_indexes("copies", &[spec]).expect("made");
    }
    for stages in STAGES.iter().chain(&["{'$set': {'_id': '$text'}}, {'$limit': 2}"]) {
        let stages = unquoted(stages);
        let expected = Whole::of(&shop).give(&format!("[{stages}]"));
        let Ok(mut expected) = expected else { continue };
        let has_ids = expected.iter().all(|it| it.get("_id").is_some());
        let copied = aggregate(&shop, Some("docs"), &format!("[{stages}, {{'$out': 'copies'}}]"));
        if copied.is_err() || !has_ids {
            let key = |it: &DocumentBuf| it.get("_id").map(frond_doc::key::of_value);
            let mut ids: Vec<_> = expected.iter().map(key).collect();
            ids.sort();
            ids.dedup();
            assert!(ids.len() < expected.len() || !has_ids, "{stages}: {:?}", copied.err());
            continue;
        }
        // A copy may equal the collection that was there.
        insert(&shop, "marks", "[{}]");
        shop.commit("copied", "test").expect("committed");
        let found = run(&shop, "copies", &request("{}")).expect("found");
        let key = |it: &DocumentBuf| frond_doc::key::of_value(it.get("_id").expect("has one"));
        expected.sort_by_key(key);
        let expected: Vec<DocumentBuf> = expected
            .iter()
            .map(|it| frond_doc::normalise::for_insert(it, || unreachable!("has an _id")))
            .collect::<Result<_, _>>()
            .expect("one _id");
        assert!(found == expected, "{stages}");
        // Written as wholes they are the same values: nothing is there to commit.
        delete(&shop, "copies", "{}");
        for document in &expected {
            assert_eq!(try_insert(&shop, "copies", std::slice::from_ref(document)).count, 1);
        }
        let error = shop.commit("again", "test").expect_err("the content is what it was");
        assert!(error.message.contains("nothing"), "{stages}: {}", error.message);
    }
    shop.frond().engine().check().expect("every invariant holds");
}

/// `$out` onto its own source, with everything collected that nothing names.
#[test]
fn referenced_pieces_are_not_collected() {
    let shop = filled();
    let set = "[{'$replaceWith': {'$setField': {'field': 'level', 'input': '$$ROOT', 'value': 8}}}, {'$out': 'docs'}]";
    for round in 0..3 {
        aggregate(&shop, Some("docs"), set).expect("copied");
        collect(shop.frond());
        let found = run(&shop, "docs", &request("{}")).expect("found");
        for (id, found) in found.iter().enumerate() {
            let expected = document(id, SIZES[id]);
            assert_eq!(found.get("level"), Some(Value::Int32(8)), "{round}");
            assert_eq!(found.get("rows"), expected.get("rows"), "{round}");
        }
        assert_eq!(found.len(), SIZES.len());
    }
    let stages = value("[{'$set': {'meta.a.b': 77, 'rows': {'$slice': ['$rows', 3]}}}]");
    for id in 0..SIZES.len() {
        let mut change = statement(&format!("{{'_id': {id}}}"), "{'$set': {'a': 1}}");
        change.update = stages.clone();
        assert_eq!(update(&shop, "docs", change).modified, 1);
    }
    collect(shop.frond());
    for found in run(&shop, "docs", &request("{'meta.a.b': 77}")).expect("found") {
        assert_eq!(
            found.get("rows").and_then(|it| it.as_array()).map(|it| it.iter().count()),
            Some(3)
        );
    }
    shop.frond().engine().check().expect("every invariant holds");
}

/// The ways of a document whose root isn't seen by anybody else yet, and back below the threshold.
#[test]
fn updates_by_stages_in_transactions_and_across_the_threshold() {
    let shop = filled();
    let transaction = shop.frond().begin();
    let inside = transaction.database("shop").expect("opens");
    for change in
        ["[{'$set': {'level': 30}}]", "[{'$set': {'meta.a.b': 5}}]", "[{'$set': {'u': '$rows'}}]"]
    {
        let mut statement = statement("{'_id': 4}", "{}");
        statement.update = value(change);
        assert_eq!(update(&inside, "docs", statement).modified, 1, "{change}");
    }
    transaction.commit(Durability::Synced, None).expect("no other transaction wrote");
    let found = run(&shop, "docs", &request("{'_id': 4}")).expect("found").pop().expect("there");
    assert_eq!(found.get("u"), found.get("rows"));
    let mut statement = statement("{'_id': 3}", "{}");
    statement.update = value("[{'$project': {'meta': 1}}]");
    assert_eq!(update(&shop, "docs", statement).modified, 1);
    let found = run(&shop, "docs", &request("{'_id': 3}")).expect("found").pop().expect("there");
    assert_eq!(found.get("meta"), document(3, SIZES[3]).get("meta"));
    let modified = shop
        .find_and_modify(
            "docs",
            &FindAndModify {
                filter: json("{'_id': 5}"),
                update: Some(value("[{'$set': {'level': 44}}]")),
                projection: Some(json("{'level': 1, 'n': 1}")),
                return_new: true,
                ..FindAndModify::default()
            },
            Durability::Synced,
        )
        .expect("modified");
    assert_eq!(modified.value.map(|it| text(&it)), Some("{'_id':5,'level':44,'n':1}".to_owned()));
}
