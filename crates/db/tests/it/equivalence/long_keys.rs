//! Goal: keys above 8 KB, which indexes and documents' trees have cut, change no answer. Method:
//! documents whose values and `_id`s share thousands of bytes, some as long as where keys are cut,
//! lie in a collection with one index and in one without; both are changed and asked alike, in
//! memory and folded. Sorted documents are compared by their keys, since ties may come in any
//! order.

use frond_db::catalog::IndexSpec;
use frond_db::{Database, Durability, FindRequest, UpdateStatement};
use frond_doc::{DocumentBuf, DocumentBuilder, Value, ValueBuf, document};
use frond_query::SortPattern;
use frond_testkit::Random;
use frond_testkit::random::for_seeds;

use crate::support::*;

const INDEXES: &[&str] = &[
    "{'key': {'a': 1}}",
    "{'key': {'a': -1}}",
    "{'key': {'a': 1, 'b': 1}}",
    "{'key': {'a': -1, 'b': 1}}",
    "{'key': {'b': 1, 'a': -1, 'c': 1}}",
    "{'key': {'c': 1, 'a': 1, 'b': -1}}",
    "{'key': {'u': 1}, 'unique': true}",
    "{'key': {'u': -1, 'c': 1}, 'unique': true}",
    "{'key': {'t': 1, 'c': 1}}",
    "{'key': {'c': 1, 't': -1}}",
    "{'key': {'$**': 1}}",
    "{'key': {'a': 1}, 'include': ['b']}",
    "{'key': {'a': 1, 'c': 1}, 'clustering': true}",
    "{'key': {'a': 1, 'c': 1}, 'collation': {'locale': 'en', 'strength': 2}}",
    "{'key': {'a': 1}, 'sparse': true}",
    "{'key': {'_id': 1, 'a': 1}}",
    "{'key': {'c': 1}}",
];
const SORTS: &[&str] = &[
    "{'a': 1}",
    "{'a': -1}",
    "{'a': 1, 'b': 1}",
    "{'b': 1, 'a': -1}",
    "{'b': 1}",
    "{'c': 1, 'a': 1}",
    "{'u': -1}",
    "{'c': 1}",
    "{'_id': 1}",
];
const PATHS: &[&str] = &["a", "b", "c", "t", "u", "_id"];

fn long(random: &mut Random) -> String {
    let many = [8_100, 8_120, 8_127, 8_128, 8_129, 8_150, 8_180, 8_188, 8_192, 9_000, 9_000, 9_000];
    let ends = ["", "a", "b", "c", "\0", "\u{1}"];
    "x".repeat(many[random.below(many.len())]) + ends[random.below(ends.len())]
}

fn scalar(random: &mut Random) -> ValueBuf {
    match random.below(9) {
        0 => Value::Int32(random.below(3) as i32).to_buf(),
        1 => Value::Null.to_buf(),
        2 => Value::String(["", "a", "x", "xx", "y"][random.below(5)]).to_buf(),
        3 => Value::from(&document! { "x": long(random).as_str() }).to_buf(),
        _ => Value::String(&long(random)).to_buf(),
    }
}

fn short(random: &mut Random) -> ValueBuf {
    Value::Int32(random.below(3) as i32).to_buf()
}

/// A document; its `u` is its own.
fn random_document(random: &mut Random, number: i32) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    builder.append("_id", id(number).as_value());
    for name in ["a", "b"] {
        if !random.one_in(5) {
            builder.append(name, scalar(random).as_value());
        }
    }
    builder.append("c", short(random).as_value());
    let unique = format!("{}{number}", "x".repeat([10, 8_126, 9_000][random.below(3)]));
    builder.append("u", Value::String(&unique));
    builder.begin_array("t");
    for _ in 0..random.below(4) {
        builder.push(scalar(random).as_value());
    }
    builder.end();
    builder.build()
}

fn id(number: i32) -> ValueBuf {
    let padded =
        |bytes: usize| Value::String(&format!("{}{number:03}", "x".repeat(bytes))).to_buf();
    match number % 4 {
        0 => Value::Int32(number).to_buf(),
        1 => padded(9_000),
        2 => padded(8_187),
        _ => padded(8_130),
    }
}

fn condition(random: &mut Random) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    let operators = ["$eq", "$gt", "$gte", "$lt", "$lte", "$ne"];
    match random.below(6) {
        0..3 => {
            for _ in 0..1 + random.below(2) {
                builder.append(operators[random.below(6)], scalar(random).as_value());
            }
        }
        3 => {
            builder.begin_array(["$in", "$nin"][random.below(2)]);
            for _ in 0..1 + random.below(3) {
                builder.push(scalar(random).as_value());
            }
            builder.end();
        }
        4 => {
            builder.append("$regex", Value::String("^xxx"));
        }
        _ => {
            builder.append("$type", Value::String("string"));
        }
    }
    builder.build()
}

fn random_filter(random: &mut Random) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    for path in PATHS {
        if !random.one_in(4) {
            continue;
        }
        match (*path, random.below(3)) {
            ("c", _) => builder.append(path, short(random).as_value()),
            ("_id", 0..2) => builder.append(path, id(random.below(24) as i32).as_value()),
            (_, 0) => builder.append(path, scalar(random).as_value()),
            _ => builder.append(path, Value::from(&condition(random))),
        };
    }
    if random.one_in(5) {
        builder.begin_array("$or");
        for _ in 0..2 {
            let mut branch = DocumentBuilder::new();
            branch.append(PATHS[random.below(5)], Value::from(&condition(random)));
            builder.push(Value::from(&branch.build()));
        }
        builder.end();
    }
    builder.build()
}

/// Changes both collections alike; what an index refuses isn't drawn.
fn change(shop: &Database, random: &mut Random) {
    let number = random.below(24) as i32;
    let by_id = document! { "_id": id(number).as_value() };
    let statement = match random.below(4) {
        0 => {
            let gone = ["plain", "indexed"].map(|name| remove(shop, name, &by_id));
            assert_eq!(gone[0], gone[1]);
            return;
        }
        1 => {
            let mut set = DocumentBuilder::new();
            set.begin_document("$set").append("a", scalar(random).as_value()).end();
            UpdateStatement::new(random_filter(random), Value::from(&set.build()).to_buf())
        }
        _ => UpdateStatement {
            upsert: true,
            ..UpdateStatement::new(by_id, random_document(random, number))
        },
    };
    let statement = UpdateStatement { multi: !statement.upsert, ..statement };
    let reports = ["plain", "indexed"].map(|name| update(shop, name, statement.clone()));
    for report in &reports {
        assert!(report.errors.is_empty(), "{:?}", report.errors);
    }
    assert_eq!(reports[0].matched, reports[1].matched);
}

fn remove(shop: &Database, name: &str, filter: &DocumentBuf) -> u64 {
    let statement = frond_db::DeleteStatement {
        filter: filter.clone(),
        only_first: false,
        hint: None,
        variables: None,
        collation: None,
    };
    let report = shop.delete(name, &[statement], true, Durability::Relaxed);
    report.expect("the request is right").count
}

/// The `_id`s that are found, in the order of their keys.
fn ids(found: &[DocumentBuf]) -> Vec<bytes::Bytes> {
    let id = |it: &DocumentBuf| frond_doc::key::of_value(it.get("_id").expect("it has one"));
    let mut ids: Vec<_> = found.iter().map(id).collect();
    ids.sort();
    ids
}

fn shown(request: &FindRequest) -> String {
    format!("{request:?}").replace(&"x".repeat(100), "X")
}

fn check(shop: &Database, request: &FindRequest, random: &mut Random) {
    let natural = document! { "$natural": 1 };
    let plain = FindRequest { hint: Some(Value::from(&natural).to_buf()), ..request.clone() };
    let plain = FindRequest { sort: None, ..plain };
    let expected = run(shop, "plain", &plain).expect("right");
    let found = run(shop, "indexed", request).expect("right");
    assert_eq!(ids(&found), ids(&expected), "{}", shown(request));
    let counted = FindRequest { skip: random.below(4) as u64, limit: Some(3), ..request.clone() };
    let count = shop.count("indexed", &FindRequest { sort: None, ..request.clone() });
    assert_eq!(count.expect("right"), expected.len() as u64, "{}", shown(request));
    let left = (expected.len() as u64).saturating_sub(counted.skip).min(3);
    assert_eq!(shop.count("indexed", &counted).expect("right"), left, "{}", shown(&counted));
    for path in PATHS {
        let keys = |name: &str, request: &FindRequest| {
            let values = shop.distinct(name, path, request).expect("right");
            values
                .iter()
                .map(|value| frond_doc::key::of_value(value.as_value()))
                .collect::<Vec<_>>()
        };
        let unsorted = FindRequest { sort: None, ..request.clone() };
        assert_eq!(keys("indexed", &unsorted), keys("plain", &plain), "{path} {}", shown(request));
    }
}

/// Checks that sorted documents come in order, also without the first and up to a limit.
fn check_sorted(shop: &Database, filter: &DocumentBuf, random: &mut Random) {
    let sort = json(SORTS[random.below(SORTS.len())]);
    let pattern = SortPattern::parse(sort.view()).expect("right");
    let sorted = FindRequest {
        filter: Some(filter.clone()),
        sort: Some(sort),
        skip: random.below(3) as u64 * 2,
        limit: [None, Some(1), Some(5)][random.below(3)],
        ..FindRequest::default()
    };
    let keys = |name: &str| -> Vec<_> {
        let found = run(shop, name, &sorted).expect("right");
        found.iter().map(|it| pattern.key(it.view()).expect("it has one")).collect()
    };
    let all = FindRequest { skip: 0, limit: None, sort: None, ..sorted.clone() };
    let mut expected: Vec<_> = run(shop, "plain", &all)
        .expect("right")
        .iter()
        .map(|it| pattern.key(it.view()).expect("it has one"))
        .collect();
    expected.sort();
    let expected: Vec<_> = expected
        .into_iter()
        .skip(sorted.skip as usize)
        .take(sorted.limit.unwrap_or(1_000) as usize)
        .collect();
    let explained = shop.explain("indexed", &sorted).expect("right");
    for name in ["indexed", "plain"] {
        assert!(keys(name) == expected, "{name} {} by {}", shown(&sorted), stages(&explained));
    }
}

#[test]
fn keys_that_are_cut_change_no_answer() {
    for_seeds(24, |mut random| {
        let shop = shop();
        for number in 0..24 {
            let document = random_document(&mut random, number);
            for name in ["plain", "indexed"] {
                assert_eq!(try_insert(&shop, name, std::slice::from_ref(&document)).count, 1);
            }
        }
        let index = json(INDEXES[random.below(INDEXES.len())]);
        let spec = IndexSpec::parse(index.view()).expect("a proper index");
        shop.create_indexes("indexed", std::slice::from_ref(&spec)).expect("built");
        let may_be_hinted = !spec.sparse && !spec.name.starts_with('$') && spec.collation.is_none();
        for round in 0..20 {
            change(&shop, &mut random);
            if round == 10 {
                shop.frond().engine().checkpoint().expect("folded");
            }
            let filter = random_filter(&mut random);
            let request = FindRequest { filter: Some(filter.clone()), ..FindRequest::default() };
            check(&shop, &request, &mut random);
            if may_be_hinted {
                let hint = Some(Value::String(&spec.name).to_buf());
                check(&shop, &FindRequest { hint, ..request }, &mut random);
            }
            check_sorted(&shop, &filter, &mut random);
            check_sorted(&shop, &DocumentBuf::empty(), &mut random);
        }
        let checked = shop.check_collection("indexed", &Default::default()).expect("readable");
        assert!(checked.is_valid(), "{:?}", checked.errors());
    });
}
