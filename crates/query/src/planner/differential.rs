//! Goal: whatever index is taken, the documents that pass are found, once each, and in the order
//! that was asked for. Method: documents and filters are put together from tables; each index's
//! plan is carried out over its sorted keys, as scans do it, and compared with a matcher that looks
//! at all documents. Planted defects ([`Defect`]) are found by it.

use frond_doc::key::{self, Bounds};
use frond_doc::{DocumentBuf, Value, extended_json};
use frond_testkit::Random;
use frond_testkit::random::{for_seeds, seeds};

use super::defect::{Defect, plant};
use super::{IndexFacts, IndexScan, KeyPlacement, Plan, PlanRequest, plan};
use crate::filter::Filter;
use crate::index::{IndexShape, ShapeOptions};
use crate::sort::SortPattern;

const DOCUMENTS: usize = 24;
const REQUESTS: usize = 25;
/// A defect that isn't found in so many rounds is not found. The rarest takes 200 on average.
const ROUNDS_MAX: u64 = 6_000;

/// Key and options: `sparse`, `partial`, `wildcardProjection`.
const INDEXES: &[&str] = &[
    "{'key': {'a': 1}}",
    "{'key': {'b': -1}}",
    "{'key': {'a': 1, 'b': -1}}",
    "{'key': {'c': 1, 'a': -1}}",
    "{'key': {'a': -1, 'c': 1, 'b': -1}}",
    "{'key': {'n.x': 1}}",
    "{'key': {'n.x': 1, 'n.y': -1}}",
    "{'key': {'n.x': -1, 'c': 1}}",
    "{'key': {'n.x.x': 1, 'n.x.y': 1}}",
    "{'key': {'n.0': 1}}",
    "{'key': {'n.0.x': -1}}",
    "{'key': {'n': 1}}",
    "{'key': {'c': 1}, 'sparse': true}",
    "{'key': {'b': 1, 'n.x': 1}, 'sparse': true}",
    "{'key': {'n.x': -1}, 'sparse': true}",
    "{'key': {'a': 1}, 'partial': {'c': {'$gt': 1}}}",
    "{'key': {'b': 1}, 'partial': {'n.x': {'$exists': true}}}",
    "{'key': {'a': 'hashed'}}",
    "{'key': {'$**': 1}}",
    "{'key': {'n.$**': -1}}",
    "{'key': {'$**': 1}, 'wildcardProjection': {'n.x': 0}}",
    "{'key': {'c': 1, 'n.$**': 1}}",
];
const SCALARS: &[&str] = &["0", "1", "2", "3", "1.5", "null", "'p'", "'q'", "true"];
const PATHS: &[&str] = &["a", "b", "c", "n", "n.x", "n.y", "n.x.x", "n.0", "n.0.x", "a.0", "_id"];
/// A `?` stands for a value, a `#` for a scalar.
const CONDITIONS: &[&str] = &[
    "?",
    "#",
    "{'$gt': #}",
    "{'$gte': #, '$lt': #}",
    "{'$gt': #, '$lt': #}",
    "{'$lte': #}",
    "{'$ne': #}",
    "{'$ne': null}",
    "{'$in': [#, #]}",
    "{'$in': [#, null]}",
    "{'$nin': [#, #]}",
    "{'$exists': true}",
    "{'$exists': false}",
    "{'$exists': true, '$in': [null, #]}",
    "{'$type': 'object'}",
    "{'$type': ['number', 'array']}",
    "{'$not': {'$gt': #}}",
    "{'$not': {'$mod': [2, 1]}}",
    "{'$not': {'$size': 2}}",
    "{'$regex': '^p'}",
    "{'$size': 2}",
    "{'$all': [#, #]}",
    "{'$elemMatch': {'$gte': #, '$lt': #}}",
    "{'$elemMatch': {'x': #, 'y': #}}",
    "{'$elemMatch': {'x': {'$gte': #, '$lt': #}}}",
    "{'$elemMatch': {'x.x': {'$gte': #}, 'x.y': #}}",
    "{'$not': {'$elemMatch': {'x': #}}}",
];
const SORTS: &[&str] = &[
    "{'a': 1}",
    "{'b': -1}",
    "{'b': 1}",
    "{'c': 1, 'a': -1}",
    "{'a': -1, 'c': 1}",
    "{'n.x': 1}",
    "{'n.y': 1}",
    "{'c': 1}",
];

fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    let picked: &&str = random.choose(from);
    picked
}

fn json(text: &str) -> Option<DocumentBuf> {
    extended_json::parse(&text.replace('\'', "\"")).ok()
}

fn value(random: &mut Random) -> String {
    let scalar = pick(random, SCALARS);
    match random.below(8) {
        0..4 => scalar.to_owned(),
        4 => format!("[{scalar}, {}]", pick(random, SCALARS)),
        5 => pick(random, &["[]", "[[]]", "[[1, 2]]", "{}", "[{}]"]).to_owned(),
        6 => format!("{{'x': {scalar}}}"),
        _ => format!(
            "[{{'x': {scalar}, 'y': {}}}, {{'x': {}}}]",
            pick(random, SCALARS),
            pick(random, SCALARS)
        ),
    }
}

fn document(random: &mut Random, id: usize) -> DocumentBuf {
    let mut fields = vec![format!("'_id': {id}")];
    // One of the fields that share an index may be an array.
    let free = ["a", "b"][random.below(2)];
    for name in ["a", "b", "c"] {
        if random.one_in(4) {
            continue;
        }
        let value = if name == free { value(random) } else { pick(random, SCALARS).to_owned() };
        fields.push(format!("'{name}': {value}"));
    }
    if !random.one_in(4) {
        let element = |random: &mut Random| match random.below(4) {
            0 => format!("{{'y': {}}}", pick(random, SCALARS)),
            1 => format!("{{'x': {}}}", value(random)),
            _ => format!("{{'x': {}, 'y': {}}}", pick(random, SCALARS), pick(random, SCALARS)),
        };
        let value = match random.below(4) {
            0 => value(random),
            1 => element(random),
            _ => format!("[{}, {}]", element(random), element(random)),
        };
        fields.push(format!("'n': {value}"));
    }
    json(&format!("{{{}}}", fields.join(", "))).expect("a document")
}

fn condition(random: &mut Random) -> String {
    let mut text = String::new();
    for letter in pick(random, CONDITIONS).chars() {
        match letter {
            '?' => text += &value(random),
            '#' => text += pick(random, SCALARS),
            other => text.push(other),
        }
    }
    text
}

fn comparisons(random: &mut Random) -> String {
    let comparison = |random: &mut Random| {
        let operator = pick(random, &["$eq", "$gt", "$gte", "$lt", "$lte"]);
        let (path, value) = (pick(random, PATHS), pick(random, SCALARS));
        match random.below(2) {
            0 => format!("{{'{operator}': ['${path}', {value}]}}"),
            _ => format!("{{'{operator}': [{value}, '${path}']}}"),
        }
    };
    match random.below(5) {
        0 => comparison(random),
        1 => format!("{{'$and': [{}, {}]}}", comparison(random), comparison(random)),
        2 => format!("{{'$or': [{}, {}]}}", comparison(random), comparison(random)),
        3 => {
            let (path, values) = (pick(random, PATHS), [0; 3].map(|_| pick(random, SCALARS)));
            format!("{{'$in': ['${path}', [{}]]}}", values.join(", "))
        }
        _ => {
            let both = format!("{{'$and': [{}, {}]}}", comparison(random), comparison(random));
            format!("{{'$or': [{both}, {}]}}", comparison(random))
        }
    }
}

fn filter(random: &mut Random) -> (DocumentBuf, Filter) {
    loop {
        let mut parts = Vec::new();
        for _ in 0..1 + random.below(3) {
            let path = pick(random, PATHS);
            parts.push(format!("'{path}': {}", condition(random)));
        }
        if random.one_in(6) {
            let branch = |random: &mut Random| {
                let path = pick(random, PATHS);
                format!("{{'{path}': {}}}", condition(random))
            };
            parts.push(format!("'$or': [{}, {}]", branch(random), branch(random)));
        }
        if random.one_in(6) {
            parts.push(format!("'$expr': {}", comparisons(random)));
        }
        let Some(document) = json(&format!("{{{}}}", parts.join(", "))) else { continue };
        if let Ok(filter) = Filter::parse(document.view()) {
            return (document, filter.with_implied().unwrap_or(filter));
        }
    }
}

/// An index, and its entries in their order: each with the place of its document.
struct Filed {
    facts: IndexFacts,
    entries: Vec<(Vec<u8>, usize)>,
}

/// `None` if the index can't file one of the documents.
fn filed(text: &str, documents: &[DocumentBuf]) -> Option<Filed> {
    let spec = json(text).expect("an index");
    let part = |name: &str| spec.get(name).and_then(|value| value.as_document());
    let options = ShapeOptions {
        sparse: spec.get("sparse").is_some(),
        partial: part("partial"),
        wildcard_projection: part("wildcardProjection"),
        ..ShapeOptions::default()
    };
    let shape = IndexShape::parse(part("key").expect("a key"), options).expect("an index");
    let (mut flags, mut entries) = (0, Vec::new());
    for (place, document) in documents.iter().enumerate() {
        let keys = shape.keys(document.view()).ok()?;
        flags |= keys.flags;
        entries.extend(keys.keys.into_iter().map(|filed| (filed.key, place)));
    }
    entries.sort();
    let (name, shape) = (text.to_owned(), shape.into());
    Some(Filed {
        facts: IndexFacts { name, shape, flags, covers: false, is_documents: false },
        entries,
    })
}

fn ids(documents: &[DocumentBuf]) -> Vec<(Vec<u8>, usize)> {
    let key = |id: Value<'_>| key::of_value(id).to_vec();
    (0..).zip(documents).map(|(place, it)| (key(it.get("_id").expect("one")), place)).collect()
}

fn within<'e>(
    entries: &'e [(Vec<u8>, usize)],
    range: &Bounds,
) -> impl DoubleEndedIterator<Item = &'e (Vec<u8>, usize)> {
    let start = entries.partition_point(|(key, _)| range.start.as_ref().is_some_and(|it| key < it));
    let end = entries.partition_point(|(key, _)| range.end.as_ref().is_none_or(|it| key < it));
    entries[start..end.max(start)].iter()
}

/// Whether all checks let a key through.
fn fits(scan: &IndexScan, parts: &[bool], key: &[u8]) -> bool {
    let mut rest = key;
    for (place, descending) in parts.iter().enumerate() {
        let part = key::skip(&mut rest, *descending).expect("a key of the index");
        let mut checks = scan.checks.iter().filter(|check| check.place == place);
        if checks.any(|check| check.standing(part, scan.descending) != KeyPlacement::Within) {
            return false;
        }
    }
    true
}

/// Returns the documents that a scan of ranges finds, by range.
fn carried_out(
    scan: &IndexScan,
    (entries, parts): (&[(Vec<u8>, usize)], &[bool]),
    filter: &Filter,
    documents: &[DocumentBuf],
) -> Vec<Vec<usize>> {
    let mut seen = Vec::new();
    let mut found = Vec::new();
    for range in &scan.ranges {
        let mut entries: Vec<_> = within(entries, range).collect();
        if scan.descending {
            entries.reverse();
        }
        let mut places = Vec::new();
        for (key, place) in entries {
            let passes = || scan.is_exact || filter.matches(documents[*place].view());
            if !fits(scan, parts, key) || scan.may_repeat && seen.contains(place) || !passes() {
                continue;
            }
            seen.push(*place);
            places.push(*place);
        }
        found.push(places);
    }
    found
}

/// Returns the fault in the documents that a plan finds.
fn fault(
    plan: &Plan,
    indexes: &[Filed],
    (filter, sort): (&Filter, Option<&SortPattern>),
    documents: &[DocumentBuf],
) -> Option<String> {
    let by_id = ids(documents);
    let lists = |plan: &Plan| match plan {
        Plan::IndexScan(scan) => {
            let index = &indexes[scan.index];
            let of = (&index.entries[..], index.facts.shape.parts());
            (carried_out(scan, of, filter, documents), scan.sorted, scan.is_merged)
        }
        Plan::IdScan(scan) => {
            (carried_out(scan, (&by_id, &[false]), filter, documents), false, false)
        }
        _ => unreachable!("a scan of ranges"),
    };
    let is_in_order = |places: &[usize], sort: &SortPattern| {
        places.is_sorted_by_key(|place| sort.key(documents[*place].view()).expect("it has one"))
    };
    let (mut found, is_ordered) = match plan {
        Plan::CollectionScan => return None,
        Plan::Union { branches, is_merged } => {
            let mut found = Vec::new();
            let mut is_ordered = true;
            for branch in branches {
                let places = lists(branch).0.concat();
                is_ordered &= !is_merged || sort.is_none_or(|sort| is_in_order(&places, sort));
                found.extend(places);
            }
            found.sort_unstable();
            found.dedup();
            (found, is_ordered)
        }
        scan => {
            let (found, is_sorted, is_merged) = lists(scan);
            let is_ordered = match sort.filter(|_| is_sorted) {
                None => true,
                Some(sort) if is_merged => found.iter().all(|places| is_in_order(places, sort)),
                Some(sort) => is_in_order(&found.concat(), sort),
            };
            (found.concat(), is_ordered)
        }
    };
    found.sort_unstable();
    let passes = |place: &usize| filter.matches(documents[*place].view());
    let expected: Vec<usize> = (0..documents.len()).filter(passes).collect();
    if found != expected {
        return Some(format!("found {found:?}, expected {expected:?}"));
    }
    (!is_ordered).then(|| "not in order".to_owned())
}

/// One round; what is wrong, if anything is.
fn round(random: &mut Random) -> Option<String> {
    let documents: Vec<DocumentBuf> = (0..DOCUMENTS).map(|id| document(random, id)).collect();
    let indexes: Vec<Filed> = INDEXES.iter().filter_map(|text| filed(text, &documents)).collect();
    for _ in 0..REQUESTS {
        let (text, filter) = filter(random);
        let sort = random.one_in(2).then(|| {
            let sort = json(pick(random, SORTS)).expect("a sort");
            SortPattern::parse(sort.view()).expect("a sort")
        });
        let facts: Vec<IndexFacts> = indexes.iter().map(|index| index.facts.clone()).collect();
        // Each index by itself, then all together.
        for places in
            (0..facts.len()).map(|place| place..place + 1).chain(std::iter::once(0..facts.len()))
        {
            let (facts, indexes) = (&facts[places.clone()], &indexes[places]);
            let by_id = ids(&documents);
            let mut count = |index: Option<usize>, ranges: &[Bounds]| {
                let entries = index.map_or(&by_id, |index| &indexes[index].entries);
                ranges.iter().map(|range| within(entries, range).count() as u64).sum()
            };
            let (sort, limit, skip, distinct) = (sort.as_ref(), None, 0, None);
            let question = PlanRequest {
                filter: &filter,
                sort,
                limit,
                skip,
                distinct,
                indexes: facts,
                is_by_id: true,
            };
            let plan = plan(question, &mut count);
            if let Some(what) = fault(&plan, indexes, (&filter, sort), &documents) {
                let names: Vec<&str> = facts.iter().map(|facts| facts.name.as_str()).collect();
                return Some(format!("{text:?} sorted {sort:?} by {names:?}: {what}, {plan:?}"));
            }
        }
    }
    None
}

#[test]
fn every_plan_finds_what_passes() {
    for_seeds(40, |mut random| {
        if let Some(what) = round(&mut random) {
            panic!("{what}");
        }
    });
}

#[test]
fn planted_defects_are_found() {
    let first = seeds(1).start;
    let mut missed = Vec::new();
    for defect in [
        Defect::TwoElements,
        Defect::ManyAsOne,
        Defect::ElementsAsOne,
        Defect::SparseForAll,
        Defect::PartialForAll,
        Defect::NumberAsField,
        Defect::ExactByOne,
        Defect::ArraysInOrder,
        Defect::AbsentElement,
        Defect::WholeDocuments,
        Defect::OnceEach,
        Defect::OppositeOfInexact,
        Defect::ArraysInExpressions,
        Defect::RangesInOrder,
        Defect::AscendingChecks,
    ] {
        plant(Some(defect));
        let found = (1..=ROUNDS_MAX)
            .find(|number| round(&mut Random::new(first.wrapping_add(*number))).is_some());
        plant(None);
        match found {
            Some(rounds) => eprintln!("{defect:?}: found in round {rounds}"),
            None => missed.push(defect),
        }
    }
    assert!(missed.is_empty(), "not found in {ROUNDS_MAX} rounds: {missed:?}");
}
