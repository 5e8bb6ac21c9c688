//! Goal: a `$match` that moves to the front changes nothing. Method: random documents and
//! pipelines, run whole (in which conditions move) and stage by stage (in which there is nowhere to
//! move).

use std::sync::Arc;

use frond_doc::DocumentBuf;
use frond_query::expression::Variables;
use frond_query::pipeline::Pipeline;
use frond_testkit::Random;
use frond_testkit::random::{assert_met, for_seeds};

use crate::pipelines::{Memory, canonical, json};

const STAGES: &[&str] = &[
    r#"{"$project": {"a": 1, "b": 1, "n": {"$add": ["$_id", 1]}}}"#,
    r#"{"$project": {"_id": 0, "a.x": 1, "b": 1}}"#,
    r#"{"$project": {"b": 0, "a.y": 0}}"#,
    r#"{"$addFields": {"b": {"$ifNull": ["$c", 7]}}}"#,
    r#"{"$addFields": {"a.x": 1, "n": 2}}"#,
    r#"{"$unset": "c"}"#,
    r#"{"$sort": {"b": 1, "_id": -1}}"#,
    r#"{"$unwind": "$a"}"#,
    r#"{"$unwind": {"path": "$c", "includeArrayIndex": "n", "preserveNullAndEmptyArrays": true}}"#,
    r#"{"$limit": 5}"#,
    r#"{"$match": {"b": {"$gt": 2}, "c": {"$ne": 1}}}"#,
    r#"{"$match": {"a.x": null}}"#,
    r#"{"$match": {"$or": [{"a": {"$exists": false}}, {"a.y": {"$lt": 3}}]}}"#,
    r#"{"$match": {"n": {"$gte": 1}, "_id": {"$lt": 9}, "$expr": {"$gt": ["$b", 1]}}}"#,
    r#"{"$match": {"c": {"$in": [null, 2]}}}"#,
];

const VALUES: &[&str] = &[
    "1",
    "2",
    "null",
    "[]",
    "[1, 2]",
    r#"{"x": 1}"#,
    r#"[{"x": 1, "y": 2}, 3]"#,
    r#"[{"y": [1, 5]}, {"x": null}]"#,
    r#"{"x": [1, 2], "y": 2}"#,
];

fn documents(random: &mut Random) -> Vec<DocumentBuf> {
    let make = |id: usize, random: &mut Random| {
        let mut text = format!(r#"{{"_id": {id}"#);
        for name in ["a", "b", "c"] {
            if !random.one_in(4) {
                text += &format!(r#", "{name}": {}"#, random.choose(VALUES));
            }
        }
        json(&(text + "}"))
    };
    (0..12).map(|id| make(id, random)).collect()
}

fn run(input: &[DocumentBuf], stages: &[&str]) -> Vec<DocumentBuf> {
    let wrapped = json(&format!(r#"{{"v": [{}]}}"#, stages.join(",")));
    let array = wrapped.get("v").and_then(|value| value.as_array()).expect("an array");
    let input = Box::new(input.iter().cloned().map(Ok));
    let pipeline = Pipeline::parse(array).expect("a proper pipeline");
    let memory = Arc::new(Memory::default());
    let found = pipeline.run(input, Variables::default(), memory).expect("it runs");
    found.collect::<Result<Vec<_>, _>>().expect("nothing fails")
}

#[test]
fn conditions_move_and_change_nothing() {
    let mut shorter = 0;
    for_seeds(3_000, |mut random| {
        let input = documents(&mut random);
        let count = 2 + random.below(4);
        let stages: Vec<&str> = (0..count).map(|_| *random.choose(STAGES)).collect();
        let whole = run(&input, &stages);
        let by_stage = stages.iter().fold(input, |documents, stage| run(&documents, &[*stage]));
        assert_eq!(canonical(&whole), canonical(&by_stage), "{stages:?}");
        let wrapped = json(&format!(r#"{{"v": [{}]}}"#, stages.join(",")));
        let array = wrapped.get("v").and_then(|value| value.as_array()).expect("an array");
        let first_is_match = stages[0].contains("$match");
        let filter = Pipeline::parse(array).expect("a proper pipeline").take_filter();
        shorter += usize::from(!first_is_match && !filter.is_all());
    });
    assert_met("conditions that come to the front", shorter, 100);
}

/// What a view's reader asks for comes to the front of the view's own stages, if they don't touch
/// it.
#[test]
fn a_filter_goes_through_a_view() {
    for (stages, filter, front, left) in [
        (r#"[]"#, r#"{"a": 1}"#, &["a"][..], false),
        (
            r#"[{"$match": {"b": 1}}, {"$sort": {"c": 1}}, {"$addFields": {"n": {"$add": ["$a", 1]}}}]"#,
            r#"{"a": 1, "n": 2}"#,
            &["b", "a"],
            false,
        ),
        (r#"[{"$project": {"a": 1}}]"#, r#"{"a.x": 1, "b": null}"#, &["a.x"], false),
        (r#"[{"$limit": 3}]"#, r#"{"a": 1}"#, &[], false),
        (r#"[{"$sort": {"a": 1}}]"#, r#"{"a": 1, "$expr": {"$eq": ["$$v", 1]}}"#, &["a"], true),
    ] {
        let wrapped = json(&format!(r#"{{"v": {stages}}}"#));
        let array = wrapped.get("v").and_then(|value| value.as_array()).expect("an array");
        let mut pipeline = Pipeline::parse(array).expect("a proper pipeline");
        let filter = frond_query::Filter::parse(json(filter).view()).expect("a filter");
        assert_eq!(pipeline.append_filter(&filter).is_some(), left, "{stages}");
        assert_eq!(pipeline.take_filter().paths().expect("paths alone"), front, "{stages}");
    }
}
