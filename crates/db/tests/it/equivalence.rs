//! Goal: an index never changes the result of a query. Method: random documents, random changes to
//! them and random filters; what is found by whatever plan is chosen, and through each index by a
//! hint where it holds every document, is compared with a matcher that scans a model.

mod kinds;
mod long_keys;

use frond_db::catalog::IndexSpec;
use frond_db::{Database, DeleteStatement, Durability, FindRequest, UpdateStatement};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::{Filter, SortPattern};
use frond_testkit::Random;
use frond_testkit::random::for_seeds;
use std::collections::BTreeMap;

use crate::support::*;

const INDEXES: &[&str] = &[
    "{'key': {'a': 1}}",
    "{'key': {'b': -1}}",
    "{'key': {'a': 1, 'b': 1}}",
    "{'key': {'b': 1, 'a': -1}}",
    "{'key': {'n.x': 1}}",
    "{'key': {'c': 1}, 'sparse': true}",
    "{'key': {'h': 'hashed'}}",
    "{'key': {'$**': 1}}",
    "{'key': {'a': 1}, 'partialFilterExpression': {'c': {'$gt': 2}}, 'name': 'partial'}",
    "{'key': {'h': 1, 'c': -1}}",
    "{'key': {'a': 1, 'c': 1}, 'include': ['b']}",
    "{'key': {'c': -1, 'a': 1}, 'clustering': true}",
    "{'key': {'h': -1, 'n.x': 1}}",
];

/// Fields that are asked for, so that an index may give them alone.
const PROJECTIONS: &[&str] = &[
    "{'h': 1, 'c': 1}",
    "{'_id': 0, 'c': 1}",
    "{'a': 1, 'b': 1, 'c': 1}",
    "{'_id': 1}",
    "{'n.x': 1, '_id': 0}",
];

fn scalar(random: &mut Random) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    match random.below(8) {
        0..4 => builder.append("v", Value::Int32(random.below(6) as i32)),
        4 => builder.append("v", Value::Double(random.below(12) as f64 / 2.0)),
        5 => builder.append("v", Value::Null),
        6 => builder.append("v", Value::Boolean(random.one_in(2))),
        _ => builder.append("v", Value::String(["p", "q", "pq"][random.below(3)])),
    };
    builder.build()
}

fn append_scalar(builder: &mut DocumentBuilder, name: &str, random: &mut Random) {
    let scalar = scalar(random);
    builder.append(name, scalar.get("v").expect("it was just appended"));
}

fn random_document(random: &mut Random, id: i32) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    builder.append("_id", Value::Int32(id));
    if random.one_in(3) {
        builder.append("long", Value::String(&"long ".repeat(250)));
    }
    // Only one of two fields that share an index may be an array.
    let array = ["a", "b", ""][random.below(3)];
    for name in ["a", "b", "c"] {
        if random.one_in(4) {
            continue;
        }
        if name == array {
            builder.begin_array(name);
            for _ in 0..random.below(4) {
                let scalar = scalar(random);
                builder.push(scalar.get("v").expect("it was just appended"));
            }
            builder.end();
        } else {
            append_scalar(&mut builder, name, random);
        }
    }
    if random.one_in(2) {
        append_scalar(&mut builder, "h", random);
    }
    match random.below(3) {
        0 => {
            builder.begin_document("n");
            append_scalar(&mut builder, "x", random);
            builder.end();
        }
        1 => {
            builder.begin_array("n");
            for _ in 0..random.below(3) {
                let mut element = DocumentBuilder::new();
                append_scalar(&mut element, "x", random);
                builder.push(Value::from(&element.build()));
            }
            builder.end();
        }
        _ => {}
    }
    builder.build()
}

fn condition(random: &mut Random) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    let operators = ["$eq", "$gt", "$gte", "$lt", "$lte", "$ne"];
    match random.below(9) {
        0..5 => {
            for _ in 0..1 + random.below(2) {
                append_scalar(&mut builder, operators[random.below(6)], random);
            }
        }
        5 => {
            builder.begin_array("$in");
            for _ in 0..random.below(4) {
                let scalar = scalar(random);
                builder.push(scalar.get("v").expect("it was just appended"));
            }
            builder.end();
        }
        6 => {
            builder.append("$exists", Value::Boolean(random.one_in(2)));
        }
        7 => {
            builder.begin_document("$elemMatch");
            append_scalar(&mut builder, "$gte", random);
            append_scalar(&mut builder, "$lt", random);
            builder.end();
        }
        _ => {
            builder.begin_document("$not");
            append_scalar(&mut builder, "$gt", random);
            builder.end();
        }
    }
    builder.build()
}

fn random_filter(random: &mut Random) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    let paths = ["a", "b", "c", "n.x", "h", "_id"];
    for path in paths {
        if random.one_in(3) {
            if random.one_in(2) {
                append_scalar(&mut builder, path, random);
            } else {
                builder.append(path, Value::from(&condition(random)));
            }
        }
    }
    if random.one_in(5) {
        builder.begin_array("$or");
        for _ in 0..2 {
            let mut branch = DocumentBuilder::new();
            branch.append(paths[random.below(5)], Value::from(&condition(random)));
            builder.push(Value::from(&branch.build()));
        }
        builder.end();
    }
    builder.build()
}

fn id_of(document: Document<'_>) -> i32 {
    match document.get("_id") {
        Some(Value::Int32(id)) => id,
        other => panic!("no id: {other:?}"),
    }
}

/// Changes the collection and the model in the same way.
fn change(database: &Database, model: &mut BTreeMap<i32, DocumentBuf>, random: &mut Random) {
    let id = random.below(60) as i32;
    let document = random_document(random, id);
    if random.one_in(4) {
        let filter = frond_doc::document! { "_id": id };
        let statement = DeleteStatement {
            filter,
            only_first: true,
            hint: None,
            variables: None,
            collation: None,
        };
        let report = database.delete("things", &[statement], true, Durability::Relaxed);
        assert!(report.expect("the request is right").errors.is_empty());
        model.remove(&id);
        return;
    }
    let replacement = UpdateStatement {
        upsert: true,
        ..UpdateStatement::new(frond_doc::document! { "_id": id }, document.clone())
    };
    let report = database.update("things", &[replacement], true, Durability::Relaxed);
    let report = report.expect("the request is right");
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    model.insert(id, document);
}

fn check(
    database: &Database,
    request: &FindRequest,
    filter: &Filter,
    sort: Option<&SortPattern>,
    model: &BTreeMap<i32, DocumentBuf>,
) {
    let found = run(database, "things", request).expect("the request is right");
    if let Some(sort) = sort {
        let keys: Vec<_> = found.iter().map(|document| sort.key(document.view()).ok()).collect();
        assert!(keys.is_sorted(), "{request:?}");
    }
    let mut ids: Vec<i32> = found.iter().map(|document| id_of(document.view())).collect();
    ids.sort_unstable();
    let passes = |(_, document): &(&i32, &DocumentBuf)| filter.matches(document.view());
    let expected: Vec<i32> = model.iter().filter(passes).map(|(id, _)| *id).collect();
    let explained = database.explain("things", request).expect("the request is right");
    assert_eq!(ids, expected, "{request:?} by {explained:?}");
    assert_eq!(examined(&explained, "nReturned"), expected.len() as i64, "{request:?}");
}

/// The fields by name, since those that an index gives come in its order.
fn by_name(document: Document<'_>) -> BTreeMap<String, String> {
    document.iter().map(|(name, value)| (name.to_owned(), format!("{value:?}"))).collect()
}

/// Checks that projections, counts and distinct values are the same as without an index.
fn check_parts(
    database: &Database,
    plain: &FindRequest,
    filter: &Filter,
    model: &BTreeMap<i32, DocumentBuf>,
    random: &mut Random,
) {
    let passing: Vec<&DocumentBuf> =
        model.values().filter(|document| filter.matches(document.view())).collect();
    let all = FindRequest { filter: plain.filter.clone(), ..FindRequest::default() };
    let (skip, limit) = (random.below(4) as u64, Some(1 + random.below(9) as u64));
    let count = |skip, limit| {
        database.count("things", &FindRequest { skip, limit, ..all.clone() }).expect("right")
    };
    assert_eq!(count(0, None), passing.len() as u64, "{plain:?}");
    let left = (passing.len() as u64).saturating_sub(skip).min(limit.unwrap_or(0));
    assert_eq!(count(skip, limit), left, "{plain:?}");
    let projection = json(PROJECTIONS[random.below(PROJECTIONS.len())]);
    let parsed = frond_query::Projection::parse(projection.view()).expect("right");
    let sort = [None, Some("{'b': 1}"), Some("{'n.x': -1}")][random.below(3)].map(json);
    let request = FindRequest { projection: Some(projection), sort, ..plain.clone() };
    let found = run(database, "things", &request).expect("the request is right");
    let mut found: Vec<_> = found.iter().map(|document| by_name(document.view())).collect();
    let project = |document: &&DocumentBuf| {
        by_name(parsed.apply(document.view(), filter).expect("right").view())
    };
    let mut expected: Vec<_> = passing.iter().map(project).collect();
    found.sort();
    expected.sort();
    let explained = database.explain("things", &request).map(|plan| stages(&plan));
    assert_eq!(found, expected, "{request:?} by {explained:?}");
    for path in ["c", "h", "a", "n.x"] {
        check_distinct(database, plain, path, &passing);
    }
}

fn check_distinct(database: &Database, plain: &FindRequest, path: &str, passing: &[&DocumentBuf]) {
    let all = FindRequest { filter: plain.filter.clone(), ..FindRequest::default() };
    let distinct = database.distinct("things", path, &all).expect("right");
    let key = |value: &frond_doc::ValueBuf| frond_doc::key::of_value(value.as_value());
    let mut distinct: Vec<_> = distinct.iter().map(key).collect();
    let mut expected: Vec<_> = Vec::new();
    for document in passing {
        frond_doc::path::Path::new(path).visit(document.view(), &mut |value| {
            match value {
                Some(Value::Array(array)) => {
                    expected.extend(array.iter().map(frond_doc::key::of_value));
                }
                Some(value) => expected.push(frond_doc::key::of_value(value)),
                None => {}
            }
            false
        });
    }
    distinct.sort();
    expected.sort();
    expected.dedup();
    assert_eq!(distinct, expected, "{path} {plain:?}");
}

#[test]
fn indexes_never_change_what_is_found() {
    for_seeds(12, |mut random| {
        let shop = shop();
        let mut model = BTreeMap::new();
        for _ in 0..random.below(80) {
            change(&shop, &mut model, &mut random);
        }
        let specs: Vec<IndexSpec> = INDEXES
            .iter()
            .filter(|_| !random.one_in(3))
            .map(|spec| IndexSpec::parse(json(spec).view()).expect("a proper index"))
            .collect();
        shop.create_indexes("things", &specs).expect("built");
        for round in 0..60 {
            change(&shop, &mut model, &mut random);
            if round == 30 {
                shop.frond().engine().checkpoint().expect("folded");
            }
            let document = random_filter(&mut random);
            let filter = Filter::parse(document.view()).expect("the filter is right");
            let plain = FindRequest { filter: Some(document), ..FindRequest::default() };
            check(&shop, &plain, &filter, None, &model);
            check_parts(&shop, &plain, &filter, &model, &mut random);
            let sorts = [
                "{'a': 1}",
                "{'b': -1}",
                "{'a': 1, 'b': 1}",
                "{'_id': -1}",
                "{'c': 1}",
                "{'c': -1, 'a': 1}",
                "{'h': 1}",
            ];
            let sort = json(sorts[random.below(sorts.len())]);
            let pattern = SortPattern::parse(sort.view()).expect("the sort is right");
            let sorted = FindRequest { sort: Some(sort), ..plain.clone() };
            check(&shop, &sorted, &filter, Some(&pattern), &model);
            let is_whole = |spec: &&IndexSpec| {
                !spec.sparse && spec.partial.is_none() && !spec.name.starts_with('$')
            };
            for spec in specs.iter().filter(is_whole) {
                let hint = Some(frond_doc::ValueBuf::from(Value::String(&spec.name)));
                check(&shop, &FindRequest { hint, ..plain.clone() }, &filter, None, &model);
            }
        }
    });
}
