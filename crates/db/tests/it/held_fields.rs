//! Goal: what an index holds of documents beside its key answers as the documents do. Method: every
//! shape of a path with documents, arrays and other values on the way to it; every predicate, order
//! and stage that may be answered by such an index, compared with what a plain collection answers.

use frond_db::catalog::IndexSpec;
use frond_db::{AggregateRequest, Database, FindRequest, Interrupt};

use crate::support::*;

const INDEXES: [&str; 4] = [
    "{'key': {'a': 1}, 'include': ['b', 'n.x'], 'name': 'held'}",
    "{'key': {'a': 1, 'n.x': 1}, 'include': ['n.y'], 'name': 'held'}",
    "{'key': {'a': 1}, 'include': ['n'], 'name': 'held'}",
    "{'key': {'a': 1}, 'include': ['n.x.z', 'n.y'], 'name': 'held'}",
];
/// What may lie at `n`, in an array there, and at `n.x`.
const VALUES: [&str; 9] = [
    "3",
    "null",
    "'s'",
    "{}",
    "{'x': 1}",
    "{'x': {'z': 2}, 'y': 0}",
    "{'x': []}",
    "{'x': [5, {'z': 1}, [{'z': 0}]], 'y': 1}",
    "[]",
];
const CONDITIONS: [&str; 24] = [
    "1",
    "null",
    "[]",
    "[5]",
    "{'$ne': 4}",
    "{'$ne': null}",
    "{'$exists': true}",
    "{'$exists': false}",
    "{'$size': 0}",
    "{'$size': 1}",
    "{'$size': 3}",
    "{'$type': 'array'}",
    "{'$type': 'object'}",
    "{'$type': ['int', 'null']}",
    "{'$in': [null, 2]}",
    "{'$nin': [null, 2]}",
    "{'$not': {'$gt': 1}}",
    "{'$not': {'$exists': true}}",
    "{'$all': [1]}",
    "{'$elemMatch': {'$gte': 1}}",
    "{'$elemMatch': {'z': 1}}",
    "{'$gt': {}}",
    "{'$lte': 2}",
    "{'$mod': [2, 1]}",
];

/// Every value at `n` and at `n.x`, and every pair of them in an array.
fn documents() -> String {
    let mut shapes: Vec<String> = vec!["'q': 1".to_owned()];
    for one in VALUES {
        shapes.push(format!("'n': {one}"));
        shapes.push(format!("'n': {{'x': {one}}}"));
        shapes.push(format!("'n': [{one}]"));
        shapes.extend(VALUES.map(|other| format!("'n': [{one}, {other}]")));
    }
    let numbered = shapes.iter().enumerate();
    let documents = numbered.map(|(number, shape)| format!("{{'_id': {number}, 'a': 1, {shape}}}"));
    format!("[{}]", documents.collect::<Vec<_>>().join(", "))
}

fn answer(database: &Database, request: &FindRequest, hint: &str) -> String {
    let request = FindRequest { hint: Some(value(hint)), ..request.clone() };
    run(database, "things", &request).map_or_else(|error| error.to_string(), |found| texts(&found))
}

fn result_of(database: &Database, pipeline: &str, hint: &str) -> String {
    let request = AggregateRequest {
        pipeline: value(pipeline),
        variables: None,
        collation: None,
        hint: Some(value(hint)),
        in_memory_only: false,
        interrupt: Interrupt::default(),
    };
    let found = database.aggregate(Some("things"), &request);
    let found = found.and_then(|documents| documents.collect::<Result<Vec<_>, _>>());
    found.map_or_else(|error| error.to_string(), |found| texts(&found))
}

#[test]
fn fields_that_an_index_holds_answer_as_documents() {
    let mut covered = 0;
    for index in INDEXES {
        let shop = shop();
        insert(&shop, "things", &documents());
        let spec = IndexSpec::parse(json(index).view()).expect("a proper index");
        shop.create_indexes("things", &[spec]).expect("built");
        for path in ["n.x", "n.x.z", "n.y"] {
            for condition in CONDITIONS {
                let filter = format!("{{'a': 1, '{path}': {condition}}}");
                for order in ["n.x", "n.x.z", "n.y"] {
                    let sort = Some(json(&format!("{{'{order}': 1, '_id': -1}}")));
                    let projection = Some(json(&format!("{{'{path}': 1}}")));
                    let find = FindRequest { sort, projection, ..request(&filter) };
                    let plain = answer(&shop, &find, "{'$natural': 1}");
                    assert_eq!(answer(&shop, &find, "'held'"), plain, "{index} {filter} {order}");
                    let held = FindRequest { hint: Some(value("'held'")), ..find };
                    let plan = stages(&shop.explain("things", &held).expect("explained"));
                    covered += usize::from(plan.contains("COVERED"));
                }
            }
        }
        for rest in [
            "{'$limit': 500}, {'$sort': {'n.x': 1, '_id': 1}}, {'$group': {'_id': null, 'n': {'$push': '$n.x'}}}",
            "{'$sort': {'n.x': -1, '_id': 1}}, {'$group': {'_id': null, 'n': {'$push': '$_id'}}}",
            "{'$group': {'_id': null, 'n': {'$topN': {'n': 200, 'sortBy': {'n.x': 1, '_id': 1}, 'output': '$_id'}}}}",
            "{'$group': {'_id': null, 'n': {'$bottom': {'sortBy': {'n.x.z': 1, '_id': 1}, 'output': '$n.y'}}}}",
            "{'$group': {'_id': '$n.x', 'n': {'$sum': 1}}}, {'$group': {'_id': '$n', 'k': {'$sum': 1}}}, {'$sort': {'_id': 1}}",
        ] {
            let pipeline = format!("[{{'$match': {{'a': 1}}}}, {rest}]");
            let plain = result_of(&shop, &pipeline, "{'$natural': 1}");
            assert_eq!(result_of(&shop, &pipeline, "'held'"), plain, "{index} {pipeline}");
        }
    }
    assert!(100 < covered, "an index answers: {covered}");
}
