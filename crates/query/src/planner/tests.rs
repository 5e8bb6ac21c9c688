//! Tables: which plan for which filter and sort, and under which keys documents are filed.

use frond_doc::key::Bounds;
use frond_doc::{DocumentBuf, extended_json, key};

use super::{IndexFacts, Plan, plan};
use crate::filter::Filter;
use crate::index::{FLAG_MULTIKEY, IndexShape, field_flag};
use crate::sort::{SortField, SortPattern};

fn json(text: &str) -> DocumentBuf {
    extended_json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn sort(text: &str) -> SortPattern {
    SortPattern::parse(json(text).view()).expect(text)
}

fn fields(text: &str) -> Vec<SortField> {
    sort(text).fields
}

/// An index by its pattern, with `"multikey"` or `"sparse"` behind it.
fn index(text: &str) -> IndexFacts {
    let (pattern, words) = text.split_once('}').expect("a pattern");
    let fields = fields(&format!("{pattern}}}"));
    let multikey = FLAG_MULTIKEY | field_flag(0) | field_flag(1);
    IndexFacts {
        name: text.to_owned(),
        shape: IndexShape::of_values(&fields, words.contains("sparse")).into(),
        flags: if words.contains("multikey") { multikey } else { 0 },
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
    match plan(&filter, Some(&order), &indexes, &mut count) {
        Plan::CollectionScan => "collection".to_owned(),
        Plan::IdScan { bounds } => format!("id {}", bounds.len()),
        Plan::IndexScan { index, bounds, descending, sorted } => {
            let mut text = format!("index {index}: {}", bounds.len());
            text += if descending { ", backwards" } else { "" };
            text += if sorted { ", sorted" } else { "" };
            text
        }
    }
}

#[test]
fn plans() {
    let a = r#"{"a": 1}"#;
    let ab = r#"{"a": 1, "b": -1}"#;
    for (indexes, filter, order, expected) in [
        (&[a][..], "{}", "{}", "collection"),
        (&[a], r#"{"b": 1}"#, "{}", "collection"),
        (&[], r#"{"_id": 1}"#, "{}", "id 1"),
        (&[], r#"{"_id": {"$in": [1, 2, 3]}}"#, "{}", "id 3"),
        (&[], r#"{"$or": [{"_id": 1}, {"_id": 2}]}"#, "{}", "id 2"),
        (&[a], r#"{"a": 1}"#, "{}", "index 0: 1"),
        (&[a], r#"{"a": {"$in": [1, 2]}}"#, "{}", "index 0: 2"),
        (&[a], r#"{"$or": [{"a": 1}, {"a": {"$gt": 5}}]}"#, "{}", "index 0: 2"),
        (&[a], r#"{"$or": [{"a": 1}, {"b": 1}]}"#, "{}", "collection"),
        (&[a], r#"{"a": {"$ne": 1}}"#, "{}", "collection"),
        (&[a], r#"{"a": {"$regex": "^abc"}}"#, "{}", "index 0: 2"),
        (&[ab], r#"{"a": {"$regex": "^abc"}, "b": 5}"#, "{}", "index 0: 2"),
        (&[a], r#"{"a": {"$exists": true}}"#, "{}", "collection"),
        (&[a], "{}", a, "index 0: 1, sorted"),
        (&[a], "{}", r#"{"a": -1}"#, "index 0: 1, backwards, sorted"),
        (&[a], "{}", r#"{"_id": 1}"#, "collection"),
        (&[ab], r#"{"a": 1}"#, r#"{"b": 1}"#, "index 0: 1, backwards, sorted"),
        (&[ab], r#"{"a": 1}"#, r#"{"a": 1, "b": -1}"#, "index 0: 1, sorted"),
        (&[ab], r#"{"a": {"$in": [1, 2]}}"#, r#"{"b": 1}"#, "index 0: 2"),
        (&[ab], r#"{"a": {"$in": [1, 2]}, "b": {"$in": [3, 4]}}"#, "{}", "index 0: 4"),
        (&[ab], "{}", r#"{"a": 1, "b": 1}"#, "collection"),
        (&[ab, a], "{}", r#"{"a": -1, "b": 1}"#, "index 0: 1, backwards, sorted"),
        (&[r#"{"a": 1} multikey"#], "{}", a, "collection"),
        (&[r#"{"a": 1} sparse"#], r#"{"a": null}"#, "{}", "collection"),
        (&[r#"{"a": 1} sparse"#], r#"{"a": {"$gt": 1}}"#, "{}", "index 0: 1"),
        (&[r#"{"a": 1} sparse"#], "{}", a, "collection"),
        (&[a], r#"{"a": {"$in": []}}"#, "{}", "index 0: 0"),
        (&[a], r#"{"a": {"$elemMatch": {"$gt": 1, "$lt": 3}}}"#, "{}", "index 0: 1"),
        (&[r#"{"a.b": 1}"#], r#"{"a": {"$elemMatch": {"b": 3}}}"#, "{}", "index 0: 1"),
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
        let Plan::IndexScan { bounds, .. } = plan(&filter, None, &[index(text)], &mut cheap) else {
            panic!("{text} should be used");
        };
        let [bounds] = bounds.as_slice() else { panic!("{bounds:?} should be one") };
        let holds = |key: &[u8]| {
            bounds.start.as_deref().is_none_or(|start| start <= key)
                && bounds.end.as_deref().is_none_or(|end| key < end)
        };
        assert!(holds(&two), "{text} {bounds:?}");
        assert_eq!(holds(&nine), holds_nine, "{text} {bounds:?}");
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
        (r#"{"a": 1, "b": 1}"#, &[r#"{"a": [1, 9], "b": [2]}"#, r#"{"a": [1], "b": [8, 3]}"#]),
    ] {
        let keys = ascending.iter().map(|document| sort(pattern).key(json(document).view()));
        assert!(keys.is_sorted_by(|left, right| left < right), "{pattern} {ascending:?}");
    }
    for (pattern, code) in [
        (r#"{"a": 2}"#, 15975),
        (r#"{"a": "x"}"#, 15974),
        (r#"{"": 1}"#, 40352),
        (r#"{"$a": 1}"#, 16410),
        (r#"{"a": {"$meta": "textScore"}}"#, 115),
    ] {
        let error = SortPattern::parse(json(pattern).view()).expect_err(pattern);
        assert_eq!(error.code.number(), code, "{pattern}");
    }
}
