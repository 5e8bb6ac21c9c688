//! Tables: which plan for which filter and sort, and under which keys documents are filed.

use frond_doc::key::Bounds;
use frond_doc::{DocumentBuf, extended_json, key};

use super::{IndexFacts, IndexScan, KeyPlacement, PartCheck, Plan, PlanRequest, only_ids, plan};
use crate::filter::Filter;
use crate::index::{FLAG_INEXACT_KEY, FLAG_NESTED, IndexShape, field_flag};
use crate::sort::SortPattern;
use crate::sort_field::SortField;

fn json(text: &str) -> DocumentBuf {
    extended_json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn sort(text: &str) -> SortPattern {
    SortPattern::parse(json(text).view()).expect(text)
}

fn fields(text: &str) -> Vec<SortField> {
    sort(text).fields
}

/// An index by its pattern, with `"multikey"`, `"nested"` or `"sparse"` behind it.
fn index(text: &str) -> IndexFacts {
    let (pattern, words) = text.split_once('}').expect("a pattern");
    let fields = fields(&format!("{pattern}}}"));
    let multikey = FLAG_INEXACT_KEY | field_flag(0) | field_flag(1);
    IndexFacts {
        name: text.to_owned(),
        shape: IndexShape::of_values(&fields, words.contains("sparse")).into(),
        flags: match (words.contains("multikey"), words.contains("nested")) {
            (true, true) => multikey | FLAG_NESTED,
            (true, false) => multikey,
            _ => 0,
        },
        covers: words.contains("covers"),
        is_documents: false,
    }
}

/// A thousand documents, a hundredth in each bounds: `range 2, backwards, sorted`.
fn shown(indexes: &[&str], filter: &str, order: &str) -> String {
    let indexes: Vec<IndexFacts> = indexes.iter().map(|text| index(text)).collect();
    let filter = Filter::parse(json(filter).view()).expect(filter);
    let order = sort(order);
    let mut count = |_: Option<usize>, bounds: &[Bounds]| match bounds {
        [all] if *all == Bounds::all() => 1000,
        _ => bounds.len() as u64 * 10,
    };
    let question = PlanRequest {
        filter: &filter,
        sort: Some(&order),
        limit: None,
        skip: 0,
        distinct: None,
        indexes: &indexes,
        is_by_id: true,
    };
    text_of(&plan(question, &mut count))
}

fn text_of(plan: &Plan) -> String {
    match plan {
        Plan::CollectionScan => "collection".to_owned(),
        Plan::IdScan(scan) => format!("id {}", scan.ranges.len()),
        Plan::IndexScan(scan) => {
            let mut text = format!("index {}: {}", scan.index, scan.ranges.len());
            text += &", checked".repeat(scan.checks.len());
            text += if scan.descending { ", backwards" } else { "" };
            text += if scan.sorted { ", sorted" } else { "" };
            text += if scan.is_merged { ", merged" } else { "" };
            text += if scan.is_exact { ", exact" } else { "" };
            text
        }
        Plan::Union { branches, is_merged } => {
            let branches: Vec<String> = branches.iter().map(text_of).collect();
            format!("{}[{}]", if *is_merged { "merged" } else { "" }, branches.join("; "))
        }
    }
}

#[test]
fn a_list_of_ids_is_scanned_as_the_planner_would() {
    let texts = [
        r#"{"_id": {"$in": [3, 1, 2, 1]}}"#,
        r#"{"_id": {"$in": ["b", "", "a", "ab", 1.5, true]}}"#,
        r#"{"$and": [{"_id": {"$in": [{"$oid": "0102030405060708090a0b0c"}]}}]}"#,
        r#"{"_id": {"$in": [{"$numberDecimal": "1.5"}, 1.5, {"$date": "2020-01-01T00:00:00Z"}]}}"#,
    ];
    let others = [
        r#"{"_id": {"$in": []}}"#,
        r#"{"_id": {"$in": [null, 1]}}"#,
        r#"{"_id": {"$in": [[1], 1]}}"#,
        r#"{"_id": {"$in": [{"a": 1}]}}"#,
        r#"{"_id": {"$in": [{"$numberDouble": "NaN"}]}}"#,
        r#"{"_id": {"$in": [{"$regularExpression": {"pattern": "^a", "options": ""}}]}}"#,
        r#"{"_id": {"$in": [1]}, "a": 1}"#,
        r#"{"_id": {"$nin": [1]}}"#,
        r#"{"a": {"$in": [1]}}"#,
    ];
    for order in ["{}", r#"{"_id": 1}"#, r#"{"_id": -1, "a": 1}"#, r#"{"a": 1}"#] {
        let order = sort(order);
        for text in texts {
            let filter = Filter::parse(json(text).view()).expect(text);
            let question = PlanRequest {
                filter: &filter,
                sort: Some(&order),
                limit: None,
                skip: 0,
                distinct: None,
                indexes: &[],
                is_by_id: true,
            };
            let Plan::IdScan(expected) = plan(question, &mut |_, _| 0) else { panic!("{text}") };
            let found = only_ids(&filter, Some(&order)).expect(text);
            assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{text}");
        }
        for text in others {
            let filter = Filter::parse(json(text).view()).expect(text);
            assert!(only_ids(&filter, Some(&order)).is_none(), "{text}");
        }
    }
    let long = format!(r#"{{"_id": {{"$in": ["{}", 1]}}}}"#, "x".repeat(1 << 16));
    assert!(only_ids(&Filter::parse(json(&long).view()).expect("a filter"), None).is_none());
}

#[test]
fn plans() {
    let a = r#"{"a": 1}"#;
    let ab = r#"{"a": 1, "b": -1}"#;
    let (b, c) = (r#"{"b": 1}"#, r#"{"c": 1}"#);
    let (ac, bc) = (r#"{"a": 1, "c": 1}"#, r#"{"b": 1, "c": 1}"#);
    for (indexes, filter, order, expected) in [
        (&[a][..], "{}", "{}", "collection"),
        (&[a], r#"{"b": 1}"#, "{}", "collection"),
        (&[], r#"{"_id": 1}"#, "{}", "id 1"),
        (&[], r#"{"_id": {"$in": [1, 2, 3]}}"#, "{}", "id 3"),
        (&[], r#"{"$or": [{"_id": 1}, {"_id": 2}]}"#, "{}", "id 2"),
        (&[a], r#"{"a": 1}"#, "{}", "index 0: 1, exact"),
        (&[a], r#"{"a": null}"#, "{}", "index 0: 1"),
        (&[a], r#"{"a": 1, "b": 2}"#, "{}", "index 0: 1"),
        (&[a], r#"{"a": {"$in": [1, 2]}}"#, "{}", "index 0: 2, exact"),
        (&[a], r#"{"$or": [{"a": 1}, {"a": {"$gt": 5}}]}"#, "{}", "index 0: 2, exact"),
        (&[a], r#"{"$or": [{"a": 1}, {"b": 1}]}"#, "{}", "collection"),
        (&[a, b], r#"{"$or": [{"a": 1}, {"b": 1}]}"#, "{}", "[index 0: 1; index 1: 1]"),
        (
            &[ac, bc],
            r#"{"$or": [{"a": 1}, {"b": 1}]}"#,
            c,
            "merged[index 0: 1, sorted; index 1: 1, sorted]",
        ),
        (&[a, b], r#"{"c": 1, "$or": [{"a": 1}, {"b": 1}]}"#, "{}", "[index 0: 1; index 1: 1]"),
        (&[a], r#"{"a": {"$ne": 1}}"#, "{}", "index 0: 2, exact"),
        (&[a], r#"{"a": {"$not": {"$gt": 1}}}"#, "{}", "index 0: 2, exact"),
        (&[a], r#"{"a": {"$not": {"$gt": [2], "$all": [null]}}}"#, "{}", "collection"),
        (&[a], r#"{"a": {"$regex": "^abc"}}"#, "{}", "index 0: 2"),
        (&[ab], r#"{"a": {"$regex": "^abc"}, "b": 5}"#, "{}", "index 0: 2, checked"),
        (&[ab], r#"{"a": {"$gt": 1}, "b": 5}"#, "{}", "index 0: 1, checked, exact"),
        (&[a], r#"{"a": {"$exists": true}}"#, "{}", "collection"),
        (&[a], "{}", a, "index 0: 1, sorted, exact"),
        (&[a], "{}", r#"{"a": -1}"#, "index 0: 1, backwards, sorted, exact"),
        (&[a], "{}", r#"{"_id": 1}"#, "collection"),
        (&[ab], r#"{"a": 1}"#, r#"{"b": 1}"#, "index 0: 1, backwards, sorted, exact"),
        (&[ab], r#"{"a": 1}"#, r#"{"a": 1, "b": -1}"#, "index 0: 1, sorted, exact"),
        (
            &[ab],
            r#"{"a": {"$in": [1, 2]}}"#,
            r#"{"b": 1}"#,
            "index 0: 2, backwards, sorted, merged, exact",
        ),
        (&[ab], r#"{"a": {"$in": [1, 2]}}"#, r#"{"b": 1, "a": 1}"#, "index 0: 2, exact"),
        (&[ab], r#"{"a": {"$in": [1, 2]}, "b": {"$in": [3, 4]}}"#, "{}", "index 0: 4, exact"),
        (&[ab], "{}", r#"{"a": 1, "b": 1}"#, "collection"),
        (&[ab, a], "{}", r#"{"a": -1, "b": 1}"#, "index 0: 1, backwards, sorted, exact"),
        (&[r#"{"a": 1} multikey"#], "{}", a, "collection"),
        (&[r#"{"a": 1} multikey"#], r#"{"a": {"$gt": 1, "$lt": 3}}"#, "{}", "index 0: 1"),
        (
            &[r#"{"a": 1} multikey"#],
            r#"{"a": {"$not": {"$not": {"$gt": 1, "$lt": 3}}}}"#,
            "{}",
            "collection",
        ),
        (&[r#"{"a": 1} multikey"#], r#"{"a": {"$not": {"$gt": 1, "$ne": 3}}}"#, "{}", "index 0: 3"),
        (&[r#"{"a": 1} sparse"#], r#"{"a": null}"#, "{}", "collection"),
        (&[r#"{"a": 1} sparse"#], r#"{"a": {"$gt": 1}}"#, "{}", "index 0: 1, exact"),
        (&[r#"{"a": 1} sparse"#], "{}", a, "collection"),
        (&[r#"{"a": 1} covers"#], "{}", "{}", "collection"),
        (&[a], r#"{"a": {"$in": []}}"#, "{}", "index 0: 0, exact"),
        (&[a], r#"{"a": {"$elemMatch": {"$gt": 1, "$lt": 3}}}"#, "{}", "index 0: 1"),
        (&[r#"{"a.b": 1}"#], r#"{"a": {"$elemMatch": {"b": 3}}}"#, "{}", "index 0: 1"),
        (
            &[r#"{"a.b": 1, "a.c": 1} multikey"#],
            r#"{"a": {"$elemMatch": {"b": {"$gt": 3}, "c": 5}}}"#,
            "{}",
            "index 0: 1, checked",
        ),
        (
            &[r#"{"a.b": 1, "a.c": 1} multikey"#],
            r#"{"a.b": {"$gt": 3}, "a.c": 5}"#,
            "{}",
            "index 0: 1",
        ),
        (
            &[r#"{"a.x.b": 1, "a.x.c": 1} multikey"#],
            r#"{"a": {"$elemMatch": {"x.b": {"$gt": 3}, "x.c": 5}}}"#,
            "{}",
            "index 0: 1, checked",
        ),
        (
            &[r#"{"a.x.b": 1, "a.x.c": 1} multikey nested"#],
            r#"{"a": {"$elemMatch": {"x.b": {"$gt": 3}, "x.c": 5}}}"#,
            "{}",
            "index 0: 1",
        ),
    ] {
        assert_eq!(shown(indexes, filter, order), expected, "{indexes:?} {filter} {order}");
    }
}

#[test]
fn bounds_of_two_conditions_meet_only_without_arrays() {
    let filter = r#"{"a": {"$gt": 1, "$lt": 3}}"#;
    let filter = Filter::parse(json(filter).view()).expect(filter);
    let mut cheap = |index: Option<usize>, _: &[Bounds]| if index.is_some() { 1 } else { 1000 };
    let two = key::of_value(frond_doc::Value::Int32(2));
    let nine = key::of_value(frond_doc::Value::Int32(9));
    for (text, holds_nine) in [(r#"{"a": 1}"#, false), (r#"{"a": 1} multikey"#, true)] {
        let indexes = [index(text)];
        let question = PlanRequest {
            filter: &filter,
            sort: None,
            limit: None,
            skip: 0,
            distinct: None,
            indexes: &indexes,
            is_by_id: true,
        };
        let Plan::IndexScan(IndexScan { ranges, .. }) = plan(question, &mut cheap) else {
            panic!("{text} should be used");
        };
        let [bounds] = ranges.as_slice() else { panic!("{ranges:?} should be one") };
        let holds = |key: &[u8]| {
            bounds.start.as_deref().is_none_or(|start| start <= key)
                && bounds.end.as_deref().is_none_or(|end| key < end)
        };
        assert!(holds(&two), "{text} {bounds:?}");
        assert_eq!(holds(&nine), holds_nine, "{text} {bounds:?}");
    }
}

/// The plan where there is one index, of `pattern`, and it costs less than all documents.
fn plan_by(pattern: &str, filter: &str) -> Plan {
    let indexes = [index(pattern)];
    let parsed = Filter::parse(json(filter).view()).expect(filter);
    let question = PlanRequest {
        filter: &parsed,
        sort: None,
        limit: None,
        skip: 0,
        distinct: None,
        indexes: &indexes,
        is_by_id: true,
    };
    let mut cheap = |index: Option<usize>, _: &[Bounds]| if index.is_some() { 1 } else { 1000 };
    plan(question, &mut cheap)
}

/// The bounds of the first part.
fn first_bounds(pattern: &str, filter: &str) -> String {
    match plan_by(pattern, filter) {
        Plan::IndexScan(scan) => scan.fields[0].texts(false).join(" "),
        other => text_of(&other),
    }
}

#[test]
fn one_element_meets_all_conditions_on_its_value() {
    let (many, nested) = (r#"{"a": 1} multikey"#, r#"{"a": 1} multikey nested"#);
    let (below, below_nested) = (r#"{"a.b": 1} multikey"#, r#"{"a.b": 1} multikey nested"#);
    for (pattern, filter, expected) in [
        (many, r#"{"a": {"$elemMatch": {"$gt": 3, "$lt": 7}}}"#, "(3, 7)"),
        (nested, r#"{"a": {"$elemMatch": {"$gt": 3, "$lt": 7}}}"#, "(3, 7)"),
        (many, r#"{"a": {"$gt": 3, "$lt": 7}}"#, "(3, inf.0]"),
        (below, r#"{"a": {"$elemMatch": {"b": {"$gt": 3, "$lt": 7}}}}"#, "(3, 7)"),
        (
            below,
            r#"{"a": {"$elemMatch": {"$and": [{"b": {"$gt": 3}}, {"b": {"$lt": 7}}]}}}"#,
            "(3, 7)",
        ),
        (below, r#"{"a": {"$elemMatch": {"b": {"$gte": 3, "$not": {"$gt": 7}}}}}"#, "[3, 7]"),
        // `b` may be an array itself: different elements of it may be above and below.
        (below_nested, r#"{"a": {"$elemMatch": {"b": {"$gt": 3, "$lt": 7}}}}"#, "(3, inf.0]"),
        (
            below_nested,
            r#"{"a": {"$elemMatch": {"b": {"$elemMatch": {"$gt": 3, "$lt": 7}}}}}"#,
            "(3, 7)",
        ),
        (below, r#"{"a.b": {"$gt": 3, "$lt": 7}}"#, "(3, inf.0]"),
        (
            below,
            r#"{"a": {"$all": [{"$elemMatch": {"b": {"$gt": 3, "$lt": 7}}}, {"$elemMatch": {"b": 9}}]}}"#,
            "[9, 9]",
        ),
    ] {
        assert_eq!(first_bounds(pattern, filter), expected, "{pattern} {filter}");
    }
}

#[test]
fn sort_keys() {
    for (pattern, ascending) in [
        (
            r#"{"a": 1}"#,
            &[r#"{"a": []}"#, "{}", r#"{"a": 1}"#, r#"{"a": [2, 9]}"#, r#"{"a": 3}"#][..],
        ),
        (r#"{"a": -1}"#, &[r#"{"a": [2, 9]}"#, r#"{"a": 3}"#, r#"{"a": null}"#, r#"{"a": []}"#]),
        (r#"{"a": 1, "b": -1}"#, &[r#"{"a": 1, "b": 2}"#, r#"{"a": 1, "b": 1}"#, r#"{"a": 2}"#]),
        (r#"{"a": 1, "b": 1}"#, &[r#"{"a": [1, 9], "b": 2}"#, r#"{"a": 1, "b": [8, 3]}"#]),
    ] {
        let keys = ascending
            .iter()
            .map(|document| sort(pattern).key(json(document).view()).expect("a key"));
        assert!(keys.is_sorted_by(|left, right| left < right), "{pattern} {ascending:?}");
    }
    for (pattern, descending) in [
        (r#"{"a": 1.9}"#, false),
        (r#"{"a": -1.9}"#, true),
        (r#"{"a": {"$numberDecimal": "1.4"}}"#, false),
        (r#"{"a.$id": 1}"#, false),
    ] {
        assert_eq!(sort(pattern).fields[0].descending, descending, "{pattern}");
    }
    for (pattern, code) in [
        (r#"{"a": 2}"#, 15975),
        (r#"{"a": 0.9}"#, 15975),
        (r#"{"a": {"$numberDecimal": "1.9"}}"#, 15975),
        (r#"{"a": "x"}"#, 15974),
        (r#"{"": 1}"#, 40352),
        (r#"{"$a": 1}"#, 16410),
        (r#"{"a": {"$meta": "textScore"}}"#, 40218),
    ] {
        let error = SortPattern::parse(json(pattern).view()).expect_err(pattern);
        assert_eq!(error.code.number(), code, "{pattern}");
    }
}

#[test]
fn checks_return_where_to_go_on() {
    let bounds = |start: &'static [u8], end: &'static [u8]| Bounds {
        start: Some(start.into()),
        end: Some(end.into()),
    };
    let check = PartCheck::new(1, vec![bounds(b"f", b"h"), bounds(b"b", b"d")]);
    for (part, forwards, backwards) in [
        (&b"a"[..], KeyPlacement::Outside(Some(b"b"[..].into())), KeyPlacement::Outside(None)),
        (b"b", KeyPlacement::Within, KeyPlacement::Within),
        (
            b"d",
            KeyPlacement::Outside(Some(b"f"[..].into())),
            KeyPlacement::Outside(Some(b"d"[..].into())),
        ),
        (b"g", KeyPlacement::Within, KeyPlacement::Within),
        (b"h", KeyPlacement::Outside(None), KeyPlacement::Outside(Some(b"h"[..].into()))),
    ] {
        assert_eq!(check.standing(part, false), forwards, "{part:?}");
        assert_eq!(check.standing(part, true), backwards, "{part:?}");
    }
}

#[test]
fn bounds_are_shown_as_mongodb_shows_them() {
    for (pattern, filter, expected) in [
        (r#"{"a": 1}"#, r#"{"a": 5}"#, "a [5, 5]"),
        (r#"{"a": 1}"#, r#"{"a": {"$gt": 5, "$lte": 9.5}}"#, "a (5, 9.5]"),
        (r#"{"a": 1}"#, r#"{"a": {"$gte": 5}}"#, "a [5, inf.0]"),
        (r#"{"a": 1}"#, r#"{"a": {"$lt": 5}}"#, "a [-inf.0, 5)"),
        (r#"{"a": -1}"#, r#"{"a": {"$lt": 5}}"#, "a (5, -inf.0]"),
        (r#"{"a": 1}"#, r#"{"a": {"$gt": "x"}}"#, "a (\"x\", {})"),
        (r#"{"a": 1, "b": 1}"#, r#"{"a": 5}"#, "a [5, 5]; b [MinKey, MaxKey]"),
        (
            r#"{"a": 1, "b": -1}"#,
            r#"{"a": {"$in": [1, 2]}}"#,
            "a [1, 1] [2, 2]; b [MaxKey, MinKey]",
        ),
        (r#"{"a": 1}"#, r#"{"a": {"$ne": 5}}"#, "a [MinKey, 5) (5, MaxKey]"),
        (r#"{"a": 1}"#, r#"{"a": true}"#, "a [true, true]"),
        (r#"{"a": 1}"#, r#"{"a": null}"#, "a [null, null]"),
        (r#"{"a": 1}"#, r#"{"a": {"$regex": "^ab"}}"#, "a [\"ab\", \"ac\") [/^ab/, /^ab/]"),
    ] {
        let Plan::IndexScan(scan) = plan_by(pattern, filter) else {
            panic!("{pattern} should be used for {filter}");
        };
        let text_of =
            |field: &super::FieldBounds| format!("{} {}", field.name, field.texts(false).join(" "));
        let bounds: Vec<String> = scan.fields.iter().map(text_of).collect();
        assert_eq!(bounds.join("; "), expected, "{pattern} {filter}");
    }
}
