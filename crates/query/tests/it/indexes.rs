//! The planner's bounds hold a key of every document that passes, and a sorted scan is sorted.
//!
//! A map from keys to documents stands for the index. Counts that make every index look cheap force
//! the planner to use each one that it may use.

use std::collections::BTreeMap;

use frond_doc::DocumentBuf;
use frond_doc::key::{self, Bounds};
use frond_query::index::IndexShape;
use frond_query::planner::{self, IndexFacts, IndexScan, KeyPlacement, Plan, PlanRequest};
use frond_query::sort::SortField;
use frond_query::{Filter, SortPattern};
use frond_testkit::Random;
use frond_testkit::random::{assert_met, for_seeds};

use crate::model::{self, Model};
use crate::pipelines::json;

struct Collection {
    documents: Vec<(Model, DocumentBuf)>,
    facts: IndexFacts,
    /// Key and position of the document.
    index: BTreeMap<Vec<u8>, Vec<usize>>,
}

fn fields(random: &mut Random) -> Vec<SortField> {
    let mut fields: Vec<SortField> = Vec::new();
    for _ in 0..1 + random.below(3) {
        let path = random.choose(&model::PATHS).to_string();
        if !fields.iter().any(|field| field.path == path) {
            fields.push(SortField { path, descending: random.one_in(2) });
        }
    }
    fields
}

/// Returns the planner's facts about an index, for which only the shape is known.
fn facts_of(shape: IndexShape) -> IndexFacts {
    IndexFacts {
        name: "i".to_owned(),
        shape: shape.into(),
        flags: 0,
        covers: false,
        is_documents: false,
    }
}

/// Random documents; those stay that the index takes.
fn collection(random: &mut Random, depth: usize) -> Collection {
    let shape = IndexShape::of_values(&fields(random), random.one_in(3));
    let mut facts = facts_of(shape);
    let mut documents = Vec::new();
    let mut index: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
    for id in 0..12 {
        let document = model::document(random, depth);
        let stored = model::to_bson(&document, id);
        let Ok(keys) = facts.shape.keys(stored.view()) else { continue };
        assert!(keys.keys.is_sorted_by(|left, right| left.key < right.key));
        facts.flags |= keys.flags;
        for key in keys.keys {
            index.entry(key.key).or_default().push(documents.len());
        }
        documents.push((document, stored));
    }
    Collection { documents, facts, index }
}

fn holds(bounds: &[Bounds], key: &[u8]) -> bool {
    bounds.iter().any(|bounds| {
        bounds.start.as_deref().is_none_or(|start| start <= key)
            && bounds.end.as_deref().is_none_or(|end| key < end)
    })
}

/// Whether the scan reads a key and its checks let it through.
fn scan_holds(scan: &IndexScan, facts: &IndexFacts, key: &[u8]) -> bool {
    let mut rest = key;
    let parts: Vec<&[u8]> = facts
        .shape
        .parts()
        .iter()
        .map(|descending| key::skip(&mut rest, *descending).expect("a whole part"))
        .collect();
    let fits = |check: &frond_query::planner::PartCheck| {
        check.standing(parts[check.place], false) == KeyPlacement::Within
    };
    holds(&scan.ranges, key) && scan.checks.iter().all(fits)
}

fn check_disjoint(bounds: &[Bounds]) {
    for pair in bounds.windows(2) {
        assert!(pair[0].end.is_some() && pair[0].end <= pair[1].start, "{bounds:?}");
    }
}

/// Indexes cost nothing, the collection much.
fn cheap(index: Option<usize>, _bounds: &[Bounds]) -> u64 {
    if index.is_some() { 0 } else { 1_000_000 }
}

#[test]
fn bounds_hold_every_document_that_passes() {
    let (mut used, mut exact) = (0, 0);
    for_seeds(12_000, |mut random| {
        let depth = random.below(4);
        let collection = collection(&mut random, depth);
        // A condition on each of the index's fields, so that bounds are compound, and others.
        let paths = collection.facts.shape.sort_fields().iter().map(|field| field.path.as_str());
        let mut parts: Vec<model::Filter> =
            paths.map(|path| model::filter_on(&mut random, path)).collect();
        if random.one_in(2) {
            parts.push(model::filter(&mut random, 1));
        }
        let filter = model::Filter::Logic("$and", parts);
        let parsed = Filter::parse(filter.to_bson().view()).expect("a filter");
        let facts = std::slice::from_ref(&collection.facts);
        let question = PlanRequest {
            filter: &parsed,
            sort: None,
            limit: None,
            skip: 0,
            distinct: None,
            indexes: facts,
            is_by_id: true,
        };
        let Plan::IndexScan(scan) = planner::plan(question, &mut cheap) else { return };
        used += 1;
        check_disjoint(&scan.ranges);
        for (document, stored) in &collection.documents {
            let facts = &collection.facts;
            let keys = facts.shape.keys(stored.view()).expect("it was indexed before").keys;
            let is_within = keys.iter().any(|key| scan_holds(&scan, facts, &key.key));
            exact += usize::from(scan.is_exact);
            assert!(
                filter.matches(document) || !is_within || !scan.is_exact,
                "exact: {facts:?}\n{:?}\n{stored:?}\n{scan:?}",
                filter.to_bson()
            );
            if !filter.matches(document) {
                continue;
            }
            assert!(is_within, "{facts:?}\n{:?}\n{stored:?}\n{keys:?}\n{scan:?}", filter.to_bson());
        }
    });
    assert_met("plans that use an index", used, 1_000);
    assert_met("documents told by their keys", exact, 100);
}

/// Several parts below one array are bounded by one `$elemMatch`, and never by conditions that
/// different elements may fulfil.
#[test]
fn elements_bound_parts_together() {
    let mut joint = 0;
    for_seeds(6_000, |mut random| {
        let number = |random: &mut Random| random.below(3).to_string();
        let mut paths = vec!["a.b", "a.c", "a.x.b", "a.x.c", "a", "d"];
        while paths.len() > 3 {
            paths.remove(random.below(paths.len()));
        }
        let pattern: Vec<String> = paths.iter().map(|path| format!(r#""{path}": 1"#)).collect();
        let pattern = SortPattern::parse(json(&format!("{{{}}}", pattern.join(","))).view());
        let shape = IndexShape::of_values(&pattern.expect("a pattern").fields, false);
        let mut facts = facts_of(shape);
        let mut stored = Vec::new();
        for id in 0..10 {
            let element = |random: &mut Random| {
                let inner = format!(
                    r#"[{{"b": {}, "c": {}}}, {{"b": {}, "c": {}}}]"#,
                    number(random),
                    number(random),
                    number(random),
                    number(random)
                );
                let (b, c) = (number(random), number(random));
                match random.below(4) {
                    0 => format!(r#"{{"b": [{b}, {c}], "c": {c}}}"#),
                    1 => format!(r#"{{"b": {b}, "x": {inner}}}"#),
                    2 => b,
                    _ => format!(r#"{{"b": {b}, "c": {c}, "x": {{"b": {c}, "c": {b}}}}}"#),
                }
            };
            let elements: Vec<String> =
                (0..random.below(4)).map(|_| element(&mut random)).collect();
            let a = match random.below(5) {
                0 => element(&mut random),
                _ => format!("[{}]", elements.join(",")),
            };
            let document = json(&format!(r#"{{"_id": {id}, "a": {a}, "d": {}}}"#, id % 3));
            let Ok(keys) = facts.shape.keys(document.view()) else { continue };
            facts.flags |= keys.flags;
            stored.push((document, keys.keys));
        }
        let condition = |random: &mut Random| match random.below(3) {
            0 => format!(r#"{{"$gt": {}}}"#, number(random)),
            1 => format!(r#"{{"$in": [{}, null]}}"#, number(random)),
            _ => number(random),
        };
        let names = ["b", "c", "x.b", "x.c"];
        let inner: Vec<String> = (0..1 + random.below(3))
            .map(|_| format!(r#""{}": {}"#, random.choose(&names), condition(&mut random)))
            .collect();
        let mut parts = vec![format!(r#"{{"a": {{"$elemMatch": {{{}}}}}}}"#, inner.join(","))];
        while random.one_in(2) {
            let path = *random.choose(&["a.b", "a.c", "a.x.c", "d"]);
            parts.push(format!(r#"{{"{path}": {}}}"#, condition(&mut random)));
        }
        let filter = json(&format!(r#"{{"$and": [{}]}}"#, parts.join(",")));
        let parsed = Filter::parse(filter.view()).expect("a filter");
        let indexes = std::slice::from_ref(&facts);
        let question = PlanRequest {
            filter: &parsed,
            sort: None,
            limit: None,
            skip: 0,
            distinct: None,
            indexes,
            is_by_id: true,
        };
        let Plan::IndexScan(scan) = planner::plan(question, &mut cheap) else { return };
        joint += usize::from(parts.len() == 1 && !scan.checks.is_empty());
        for (document, keys) in &stored {
            let is_within = keys.iter().any(|key| scan_holds(&scan, &facts, &key.key));
            assert!(
                is_within || !parsed.matches(document.view()),
                "{filter:?}\n{document:?}\n{scan:?}"
            );
        }
    });
    assert_met("scans bounded by several parts", joint, 50);
}

#[test]
fn ids_are_within_the_bounds() {
    for_seeds(500, |mut random| {
        let ids: Vec<Model> = (0..3).map(|_| Model::Int(random.below(20) as i32)).collect();
        let filter = match random.below(3) {
            0 => model::Condition::In(ids),
            1 => model::Condition::Compare("$gt", ids[0].clone()),
            _ => model::Condition::Compare("$eq", ids[0].clone()),
        };
        let filter = model::Filter::Field("_id", vec![filter]);
        let parsed = Filter::parse(filter.to_bson().view()).expect("a filter");
        let mut few = |_: Option<usize>, bounds: &[Bounds]| {
            if bounds == [Bounds::all()] { 100 } else { 1 }
        };
        let question = PlanRequest {
            filter: &parsed,
            sort: None,
            limit: None,
            skip: 0,
            distinct: None,
            indexes: &[],
            is_by_id: true,
        };
        let Plan::IdScan(IndexScan { ranges, .. }) = planner::plan(question, &mut few) else {
            panic!("{parsed:?} should be a scan of ids");
        };
        check_disjoint(&ranges);
        for id in 0..20 {
            let stored = model::to_bson(&Model::Document(Vec::new()), id);
            let id = key::of_value(stored.get("_id").expect("it has one"));
            assert_eq!(parsed.matches(stored.view()), holds(&ranges, &id), "{parsed:?} {stored:?}");
        }
    });
}

#[test]
fn sorted_scans_are_sorted() {
    let mut used = 0;
    for_seeds(12_000, |mut random| {
        let depth = random.below(2);
        let collection = collection(&mut random, depth);
        let filter = model::filter(&mut random, 1);
        let parsed = Filter::parse(filter.to_bson().view()).expect("a filter");
        // Part of the index's fields, forwards or backwards: what it may be able to give.
        let backwards = random.one_in(2);
        let skipped = random.below(collection.facts.shape.sort_fields().len());
        let mut wanted: Vec<SortField> = collection.facts.shape.sort_fields()[skipped..].to_vec();
        wanted.truncate(1 + random.below(wanted.len()));
        wanted.iter_mut().for_each(|field| field.descending ^= backwards);
        let sort = SortPattern { fields: wanted, collation: Default::default() };
        let facts = std::slice::from_ref(&collection.facts);
        let question = PlanRequest {
            filter: &parsed,
            sort: Some(&sort),
            limit: None,
            skip: 0,
            distinct: None,
            indexes: facts,
            is_by_id: true,
        };
        let Plan::IndexScan(scan) = planner::plan(question, &mut cheap) else { return };
        if !scan.sorted || scan.is_merged {
            return;
        }
        used += 1;
        let mut visited = std::collections::HashSet::new();
        let mut scanned: Vec<usize> = collection
            .index
            .iter()
            .filter(|(key, _)| scan_holds(&scan, &collection.facts, key))
            .flat_map(|(_, documents)| documents.iter().copied())
            .collect();
        if scan.descending {
            scanned.reverse();
        }
        let repeats = scanned.iter().any(|position| !visited.insert(*position));
        assert!(!repeats || scan.may_repeat, "{scan:?}");
        visited.clear();
        let found: Vec<&DocumentBuf> = scanned
            .iter()
            .filter(|position| visited.insert(**position))
            .map(|position| &collection.documents[*position].1)
            .filter(|stored| parsed.matches(stored.view()))
            .collect();
        let passing = collection.documents.iter().filter(|(model, _)| filter.matches(model));
        assert_eq!(found.len(), passing.count(), "each document comes once");
        assert!(
            found.is_sorted_by_key(|stored| sort.key(stored.view()).ok()),
            "{:?}\n{:?}\n{sort:?}\n{found:?}",
            collection.facts,
            filter.to_bson()
        );
    });
    assert_met("sorted plans", used, 500);
}
