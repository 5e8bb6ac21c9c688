//! Goal: an index never changes the result of a query, for values of all kinds and all conditions
//! that have ranges in an index. Method: documents and filters are put together from tables of
//! values, paths and conditions; what is found by the chosen plan and by each index that is hinted
//! is compared with a matcher that scans a model, outside of a transaction and within one that has
//! changed documents.

use std::collections::BTreeMap;

use frond_db::catalog::IndexSpec;
use frond_db::{Database, DeleteStatement, Durability, FindRequest};
use frond_doc::{DocumentBuf, Value, ValueBuf, extended_json};
use frond_query::{Collation, Filter, Projection};
use frond_testkit::Random;
use frond_testkit::random::for_seeds;

use super::{by_name, check_distinct};
use crate::collation::collation;
use crate::support::*;

/// Numbers come first: they are chosen most often.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "-1",
    "{'$numberLong': '1'}",
    "{'$numberLong': '9007199254740992'}",
    "{'$numberLong': '9007199254740993'}",
    "{'$numberLong': '9223372036854775807'}",
    "{'$numberDouble': '-0.0'}",
    "{'$numberDouble': '1.5'}",
    "{'$numberDouble': '0.1'}",
    "{'$numberDouble': '9007199254740992.0'}",
    "{'$numberDouble': '9223372036854775808.0'}",
    "{'$numberDouble': 'NaN'}",
    "{'$numberDouble': 'Infinity'}",
    "{'$numberDouble': '-Infinity'}",
    "{'$numberDecimal': '1.0'}",
    "{'$numberDecimal': '0.1'}",
    "{'$numberDecimal': '-0'}",
    "{'$numberDecimal': '9007199254740993'}",
    "{'$numberDecimal': '1E+400'}",
    "{'$numberDecimal': 'NaN'}",
    "{'$numberDecimal': 'Infinity'}",
];
const SCALARS: &[&str] = &[
    "null",
    "{'$undefined': true}",
    "true",
    "false",
    "''",
    "'a'",
    "'A'",
    "'ab'",
    "'á'",
    "'a\\u0000'",
    "'a\\u0000b'",
    "'1'",
    "{'$symbol': 'a'}",
    "{'$date': {'$numberLong': '0'}}",
    "{'$date': {'$numberLong': '-1'}}",
    "{'$timestamp': {'t': 0, 'i': 1}}",
    "{'$timestamp': {'t': 1, 'i': 0}}",
    "{'$oid': '000000000000000000000000'}",
    "{'$oid': '0000000000000000000000ff'}",
    "{'$binary': {'base64': '', 'subType': '00'}}",
    "{'$binary': {'base64': 'AA==', 'subType': '00'}}",
    "{'$binary': {'base64': 'AA==', 'subType': '04'}}",
    "{'$regularExpression': {'pattern': '^a', 'options': ''}}",
    "{'$regularExpression': {'pattern': 'A', 'options': 'i'}}",
    "{'$code': 'a'}",
    "{'$minKey': 1}",
    "{'$maxKey': 1}",
];
const DOCUMENTS: &[&str] = &[
    "{}",
    "{'x': 1}",
    "{'x': null}",
    "{'y': 1}",
    "{'x': 1, 'y': 2}",
    "{'x': {'x': 1}}",
    "{'x': {'$numberDouble': '1.0'}}",
    "{'0': 1}",
    "{'0': {'x': 2}}",
];
const ARRAYS: &[&str] = &[
    "[]",
    "[[]]",
    "[null]",
    "[1]",
    "[1, 3]",
    "[[1]]",
    "[[1, 2], 3]",
    "['a', 'b']",
    "[{}]",
    "[{'x': 1}]",
    "[{'x': 1}, {'x': 3}]",
    "[{'x': 1, 'y': 2}, {'x': 3, 'y': 0}]",
    "[{'x': [1, 2]}, {'y': 1}]",
    "[[{'x': 1}]]",
    "[1, {'x': 2}]",
    "[{'x': []}]",
    "[{'$numberDouble': 'NaN'}]",
    "[{'$undefined': true}]",
];
/// The ids of the first documents; those that follow have numbers. No two are equal.
const IDS: &[&str] = &[
    "null",
    "''",
    "'a'",
    "'A'",
    "'ab'",
    "'á'",
    "'a\\u0000'",
    "{'x': 1}",
    "{}",
    "true",
    "{'$date': {'$numberLong': '0'}}",
    "{'$timestamp': {'t': 0, 'i': 1}}",
    "{'$oid': '000000000000000000000000'}",
    "{'$binary': {'base64': 'AA==', 'subType': '04'}}",
    "{'$numberLong': '9007199254740993'}",
    "{'$numberDouble': '9007199254740992.0'}",
    "{'$numberDouble': '0.1'}",
    "{'$numberDecimal': '0.1'}",
    "{'$numberDecimal': '1.0'}",
    "{'$numberDouble': 'NaN'}",
    "{'$numberDouble': '-Infinity'}",
];
/// A `?` stands for a value, a `#` for a number, a `%` for another condition.
const CONDITIONS: &[&str] = &[
    "?",
    "{'$eq': ?}",
    "{'$gt': ?}",
    "{'$gte': ?}",
    "{'$lt': ?}",
    "{'$lte': ?}",
    "{'$gt': #, '$lte': #}",
    "{'$gte': ?, '$lt': ?}",
    "{'$ne': ?}",
    "{'$ne': null}",
    "{'$in': []}",
    "{'$in': [?, ?]}",
    "{'$in': [?, null]}",
    "{'$in': [?, #, #]}",
    "{'$nin': []}",
    "{'$nin': [?, ?]}",
    "{'$nin': [null]}",
    "{'$not': %}",
    "{'$not': {'$in': [?, #]}}",
    "{'$not': {'$gt': #, '$lt': #}}",
    "{'$gte': #, '$ne': #}",
    "{'$exists': true}",
    "{'$exists': false}",
    "{'$exists': true, '$lt': ?}",
    "{'$type': 'number'}",
    "{'$type': ['string', 'null']}",
    "{'$type': 'array'}",
    "{'$type': 'object'}",
    "{'$type': ['undefined', 'double', 'date']}",
    "{'$type': ['symbol', 'binData', 'regex']}",
    "{'$not': {'$type': 'int'}}",
    "{'$regex': '^a'}",
    "{'$regex': '^A', '$options': 'i'}",
    "{'$in': [{'$regularExpression': {'pattern': '^a', 'options': ''}}, #]}",
    "{'$not': {'$regex': '^a'}}",
    "{'$mod': [2, 1]}",
    "{'$size': 2}",
    "{'$bitsAllSet': 1}",
    "{'$all': [?]}",
    "{'$all': [?, ?]}",
    "{'$all': [{'$elemMatch': {'x': #}}, {'$elemMatch': {'y': #}}]}",
    "{'$elemMatch': {'$gte': #, '$lt': #}}",
    "{'$elemMatch': {'$ne': ?}}",
    "{'$elemMatch': {'$in': [?, #]}}",
    "{'$elemMatch': {'$not': {'$gt': #}}}",
    "{'$elemMatch': {'x': %}}",
    "{'$elemMatch': {'x': %, 'y': %}}",
    "{'$elemMatch': {'$or': [{'x': %}, {'y': %}]}}",
    "{'$not': {'$elemMatch': {'x': %}}}",
    "{'$elemMatch': {'0': ?}}",
];
const PATHS: &[&str] =
    &["a", "b", "c", "n", "n.x", "n.y", "n.x.x", "n.0", "n.0.x", "n.x.0", "a.0", "_id"];
/// A `@` stands for a path with a condition.
const FILTERS: &[&str] = &[
    "{@}",
    "{@}",
    "{@}",
    "{@, @}",
    "{@, @}",
    "{@, @, @}",
    "{'$and': [{@}, {@}]}",
    "{'$or': [{@}, {@}]}",
    "{@, '$or': [{@}, {@}]}",
    "{'$nor': [{@}, {@}]}",
    "{@, '$nor': [{@}]}",
    "{'$or': [{'n.x': %}, {'n.x': %}]}",
    "{'n.x': %, '$or': [{'n.x': %}, {'n.x': %}]}",
    "{'a': %, '$or': [{'a': %}, {'a': %, 'b': %}]}",
    "{'n': {'$elemMatch': {'x': %}}, 'n.y': %}",
    "{'n': {'$elemMatch': {'x': %, 'y': %}}, 'n.x': %}",
    "{@, '$expr': {'$gt': ['$a', #]}}",
];
const INDEXES: &[&str] = &[
    "{'key': {'a': 1}}",
    "{'key': {'a': -1}}",
    "{'key': {'n': 1}}",
    "{'key': {'n.x': 1}}",
    "{'key': {'n.x': -1, 'n.y': 1}}",
    "{'key': {'n.x.x': 1}}",
    "{'key': {'n.0': 1}}",
    "{'key': {'n.0.x': 1}}",
    "{'key': {'n.x.0': -1}}",
    "{'key': {'a': 1, 'b': -1, 'c': 1}}",
    "{'key': {'c': 1, 'n.x': 1}, 'include': ['b']}",
    "{'key': {'n.y': 1, 'a': 1}, 'clustering': true}",
    "{'key': {'a': 'hashed'}}",
    "{'key': {'n.x': 'hashed', 'c': 1}}",
    "{'key': {'$**': 1}}",
    "{'key': {'n.$**': 1}}",
    "{'key': {'$**': -1}, 'wildcardProjection': {'n.x.x': 0, 'a': 0}, 'name': '$without'}",
    "{'key': {'$**': 1}, 'wildcardProjection': {'n': 1, 'b': 1}, 'name': '$with'}",
    "{'key': {'c': 1, 'n.$**': 1}}",
    "{'key': {'n.$**': 1, 'c': -1}}",
    "{'key': {'c': 1}, 'sparse': true}",
    "{'key': {'b': 1, 'n.y': -1}, 'sparse': true}",
    "{'key': {'b': 1}, 'partialFilterExpression': {'c': {'$gt': 1}}}",
    "{'key': {'c': -1}, 'partialFilterExpression': {'c': {'$exists': true}}}",
    "{'key': {'b': -1}, 'partialFilterExpression': {'a': {'$type': 'number'}}}",
    "{'key': {'a': 1}, 'name': 'caseless a', 'collation': {'locale': 'en', 'strength': 1}}",
    "{'key': {'n.x': 1, 'a': 1}, 'name': 'caseless', 'collation': {'locale': 'en', 'strength': 1}}",
];

fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    let picked: &&str = random.choose(from);
    picked
}

fn scalar(random: &mut Random) -> &'static str {
    match random.below(5) {
        0 | 1 => pick(random, &NUMBERS[..5]),
        2 => pick(random, NUMBERS),
        _ => pick(random, SCALARS),
    }
}

fn any_value(random: &mut Random) -> String {
    match random.below(9) {
        0..5 => scalar(random).to_owned(),
        5 => pick(random, DOCUMENTS).to_owned(),
        6 => pick(random, ARRAYS).to_owned(),
        7 => format!("[{}, {}]", scalar(random), scalar(random)),
        _ => format!("{{'x': {}, 'y': {}}}", scalar(random), scalar(random)),
    }
}

/// Returns the value of `n`: mostly one with fields.
fn nested(random: &mut Random) -> String {
    match random.below(6) {
        0 => any_value(random),
        1 | 2 => format!("{{'x': {}, 'y': {}}}", any_value(random), scalar(random)),
        3 => format!("{{'x': {}}}", any_value(random)),
        _ => {
            let element = |random: &mut Random| match random.below(4) {
                0 => any_value(random),
                _ => format!("{{'x': {}, 'y': {}}}", any_value(random), scalar(random)),
            };
            let elements: Vec<String> = (0..random.below(3)).map(|_| element(random)).collect();
            format!("[{}]", elements.join(", "))
        }
    }
}

fn id_of(place: usize) -> String {
    IDS.get(place).map_or_else(|| format!("{place}"), |id| (*id).to_owned())
}

/// The document at `place` in the model.
fn random_document(random: &mut Random, place: usize, has_arrays: bool) -> DocumentBuf {
    let mut fields = vec![format!("'_id': {}, 'place': {place}", id_of(place))];
    let array = random.below(3);
    for (place, name) in ["a", "b", "c"].into_iter().enumerate() {
        if random.one_in(5) {
            continue;
        }
        // One of the fields that share an index may be an array.
        let value = match has_arrays && place == array {
            true => any_value(random),
            false => scalar(random).to_owned(),
        };
        fields.push(format!("'{name}': {value}"));
    }
    if !random.one_in(5) {
        let value = match has_arrays {
            true => nested(random),
            false => format!("{{'x': {}, 'y': {}}}", scalar(random), scalar(random)),
        };
        fields.push(format!("'n': {value}"));
    }
    json(&format!("{{{}}}", fields.join(", ")))
}

/// `template` with something in the place of each sign.
fn filled(template: &str, random: &mut Random, depth: usize) -> String {
    let mut text = String::new();
    for letter in template.chars() {
        match letter {
            '?' => text.push_str(&any_value(random)),
            '#' => {
                let count = if random.one_in(3) { NUMBERS.len() } else { 4 };
                text.push_str(pick(random, &NUMBERS[..count]));
            }
            '%' if depth < 3 => text.push_str(&condition(random, depth + 1)),
            '%' => text.push_str("{'$gt': 1}"),
            '@' => {
                let path = pick(random, PATHS);
                text.push_str(&format!("'{path}': {}", condition(random, depth)));
            }
            other => text.push(other),
        }
    }
    text
}

fn condition(random: &mut Random, depth: usize) -> String {
    let template = pick(random, CONDITIONS);
    filled(template, random, depth)
}

/// A filter and its text, by `collation`; filters that aren't allowed are passed over.
fn random_filter(random: &mut Random, collation: Option<&Collation>) -> (DocumentBuf, Filter) {
    loop {
        let template = pick(random, FILTERS);
        let text = filled(template, random, 0).replace('\'', "\"");
        let Ok(document) = extended_json::parse(&text) else { continue };
        if let Ok(filter) = Filter::parse(document.view()) {
            let filter = match collation {
                Some(collation) => filter.with_collation(collation),
                None => filter,
            };
            return (document, filter);
        }
    }
}

/// Some that an index may give alone.
const PROJECTIONS: &[&str] = &[
    "{'a': 1, '_id': 0}",
    "{'n.x': 1}",
    "{'n.y': 1, '_id': 0}",
    "{'c': 1, 'b': 1}",
    "{'_id': 1}",
    "{'n.x': 1, 'c': 1, '_id': 0}",
];

type Model = BTreeMap<usize, DocumentBuf>;

/// Replaces or removes a document, unless an index refuses it.
fn change(database: &Database, model: &mut Model, random: &mut Random, has_arrays: bool) {
    let place = random.below(60);
    let filter = json(&format!("{{'_id': {}}}", id_of(place)));
    if random.one_in(4) {
        let only_first = true;
        let (hint, variables, collation) = (None, None, None);
        let statement = DeleteStatement { filter, only_first, hint, variables, collation };
        let report = database.delete("things", &[statement], true, Durability::Relaxed);
        assert!(report.expect("the request is right").errors.is_empty());
        model.remove(&place);
        return;
    }
    let document = random_document(random, place, has_arrays);
    let replacement = frond_db::UpdateStatement {
        upsert: true,
        ..frond_db::UpdateStatement::new(filter, document.clone())
    };
    if update(database, "things", replacement).errors.is_empty() {
        model.insert(place, document);
    }
}

/// The values of `_id`, in an order that is theirs.
fn ids_of<'d>(documents: impl Iterator<Item = &'d DocumentBuf>) -> Vec<String> {
    let mut ids: Vec<String> = documents.map(|it| format!("{:?}", it.get("_id"))).collect();
    ids.sort_unstable();
    ids
}

fn check(database: &Database, specs: &[IndexSpec], model: &Model, random: &mut Random) {
    let caseless = random.one_in(4).then(|| collation("{'locale': 'en', 'strength': 1}"));
    let (document, filter) = random_filter(random, caseless.as_ref());
    let passing = || model.values().filter(|document| filter.matches(document.view()));
    let expected = ids_of(passing());
    let plain =
        FindRequest { filter: Some(document), collation: caseless, ..FindRequest::default() };
    let check = |request: &FindRequest| {
        let by = || database.explain("things", request).map(|plan| text(&plan));
        let found = run(database, "things", request);
        let found = found.unwrap_or_else(|error| panic!("{error}: {request:?} {:?}", by()));
        assert_eq!(ids_of(found.iter()), expected, "{request:?} by {:?}", by());
    };
    check(&plain);
    let sort = json(pick(random, &["{'a': 1}", "{'n.x': -1}", "{'c': 1, 'b': 1}", "{'_id': -1}"]));
    check(&FindRequest { sort: Some(sort), ..plain.clone() });
    let projection = json(pick(random, PROJECTIONS));
    let parsed = Projection::parse(projection.view()).expect("right");
    let request = FindRequest { projection: Some(projection), ..plain.clone() };
    let project = |document: &DocumentBuf| parsed.apply(document.view(), &filter).expect("right");
    let mut expected_parts: Vec<_> = passing().map(|it| by_name(project(it).view())).collect();
    let found = run(database, "things", &request).expect("right");
    let mut parts: Vec<_> = found.iter().map(|document| by_name(document.view())).collect();
    expected_parts.sort();
    parts.sort();
    assert_eq!(parts, expected_parts, "{request:?}");
    if plain.collation.is_none() {
        let path = pick(random, &["a", "b", "c", "n.y", "_id"]);
        check_distinct(database, &plain, path, &passing().collect::<Vec<_>>());
    }
    let count = database.count("things", &plain);
    assert_eq!(count.expect("right"), expected.len() as u64, "{plain:?}");
    for spec in specs {
        // One that lacks documents answers with those that it has.
        if spec.sparse || spec.partial.is_some() {
            continue;
        }
        let hint = Some(ValueBuf::from(Value::String(&spec.name)));
        let request = FindRequest { hint, ..plain.clone() };
        if !spec.name.contains('$') || run(database, "things", &request).is_ok() {
            check(&request);
        }
    }
}

/// Documents that indexes once hid: an index, a document, and a filter that it passes.
const HIDDEN: &[[&str; 3]] = &[
    [
        "{'a': 'hashed'}",
        "{'a': {'$numberDecimal': '9007199254740993'}}",
        "{'a': {'$numberLong': '9007199254740993'}}",
    ],
    [
        "{'n.x': 1}",
        "{'n': [{'x': 0}, {'x': 5}]}",
        "{'n.x': {'$not': {'$not': {'$gt': 1, '$lt': 3}}}}",
    ],
    [
        "{'$**': 1}",
        "{'n': [{'x': [5, 6]}, {'y': 1}]}",
        "{'n.x': {'$in': [null, 3]}, '$or': [{'n.x': {'$size': 2}}, {'n.x': {'$gt': 9}}]}",
    ],
];

#[test]
fn documents_that_were_missed_once_are_found() {
    for [key, document, filter] in HIDDEN {
        let shop = shop();
        insert(&shop, "things", &format!("[{document}]"));
        assert_eq!(run(&shop, "things", &request(filter)).expect("right").len(), 1, "{filter}");
        let spec = IndexSpec::parse(json(&format!("{{'key': {key}}}")).view());
        shop.create_indexes("things", &[spec.expect("a proper index")]).expect("made");
        assert_eq!(run(&shop, "things", &request(filter)).expect("right").len(), 1, "{filter}");
    }
}

#[test]
fn values_of_all_kinds_are_found_by_indexes_as_without() {
    for_seeds(10, |mut random| {
        let frond = open();
        let shop = frond.database("shop").expect("opens");
        let mut model = Model::new();
        let has_arrays = !random.one_in(3);
        for _ in 0..60 {
            change(&shop, &mut model, &mut random, has_arrays);
        }
        let specs: Vec<IndexSpec> = INDEXES
            .iter()
            .filter(|_| random.one_in(3))
            .map(|spec| IndexSpec::parse(json(spec).view()).expect("a proper index"))
            // Two arrays in one document may stand against it.
            .filter(|spec| shop.create_indexes("things", std::slice::from_ref(spec)).is_ok())
            .collect();
        for round in 0..60 {
            change(&shop, &mut model, &mut random, has_arrays);
            if round == 20 {
                shop.frond().engine().checkpoint().expect("folded");
            }
            check(&shop, &specs, &model, &mut random);
            if round % 4 == 0 {
                let transaction = frond.begin();
                let inside = transaction.database("shop").expect("opens");
                let mut own = model.clone();
                for _ in 0..3 {
                    change(&inside, &mut own, &mut random, has_arrays);
                    check(&inside, &specs, &own, &mut random);
                }
                transaction.abort();
            }
        }
    });
}
