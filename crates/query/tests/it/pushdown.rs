//! Goal: a `$match` that moves to the front changes nothing. Method: random documents and
//! pipelines, run whole (in which conditions move) and stage by stage (in which there is nowhere to
//! move).

use std::sync::Arc;

use frond_doc::DocumentBuf;
use frond_query::QueryError;
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
    r#"{"$project": {"a": "$b", "c": "$a", "b": "$a.x"}}"#,
    r#"{"$addFields": {"b": "$c", "c": "$b"}}"#,
    r#"{"$group": {"_id": "$b", "n": {"$sum": "$_id"}, "a": {"$min": "$a"}}}"#,
    r#"{"$group": {"_id": {"a": "$a", "b": "$c"}, "n": {"$sum": 1}}}"#,
    r#"{"$group": {"_id": {"a": "$a"}, "n": {"$sum": 1}}}"#,
    r#"{"$project": {"a": "$_id", "b": "$_id.a", "c": "$n"}}"#,
    r#"{"$setWindowFields": {"partitionBy": "$b", "output": {"n": {"$sum": "$n"}}}}"#,
    r#"{"$sort": {"b": 1, "_id": -1}}"#,
    r#"{"$unwind": "$a"}"#,
    r#"{"$unwind": {"path": "$c", "includeArrayIndex": "n", "preserveNullAndEmptyArrays": true}}"#,
    r#"{"$limit": 5}"#,
    r#"{"$match": {"b": {"$gt": 2}, "c": {"$ne": 1}}}"#,
    r#"{"$match": {"a.x": null}}"#,
    r#"{"$match": {"$or": [{"a": {"$exists": false}}, {"a.y": {"$lt": 3}}]}}"#,
    r#"{"$match": {"n": {"$gte": 1}, "_id": {"$lt": 9}, "$expr": {"$gt": ["$b", 1]}}}"#,
    r#"{"$match": {"c": {"$in": [null, 2]}}}"#,
    r#"{"$match": {"_id": {"$gte": 1}}}"#,
    r#"{"$match": {"_id": null}}"#,
    r#"{"$match": {"_id": {"$exists": true, "$type": ["int", "null"]}}}"#,
    r#"{"$match": {"_id.a": {"$in": [null, 2]}, "_id.b": {"$ne": 1}}}"#,
    r#"{"$match": {"_id.a.x": {"$not": {"$gt": 1}}, "_id": {"$not": {"$size": 2}}}}"#,
    r#"{"$match": {"b": {"$lte": {"$maxKey": 1}}}}"#,
    r#"{"$match": {"$nor": [{}]}}"#,
    r#"{"$facet": {"b": [{"$limit": 2}]}}"#,
];

const VALUES: &[&str] = &[
    "1",
    "1.0",
    r#"{"$numberDecimal": "2.0"}"#,
    "2",
    "null",
    "[]",
    "[1, 2]",
    r#"{"x": 1}"#,
    r#"[{"x": 1, "y": 2}, 3]"#,
    r#"[{"y": [1, 5]}, {"x": null}]"#,
    r#"{"x": [1, 2], "y": 2}"#,
];

pub fn documents(random: &mut Random) -> Vec<DocumentBuf> {
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

pub fn run(input: &[DocumentBuf], stages: &[&str]) -> Result<Vec<DocumentBuf>, QueryError> {
    let wrapped = json(&format!(r#"{{"v": [{}]}}"#, stages.join(",")));
    let array = wrapped.get("v").and_then(|value| value.as_array()).expect("an array");
    let input = Box::new(input.iter().cloned().map(Ok));
    let pipeline = Pipeline::parse(array).expect("a proper pipeline");
    let memory = Arc::new(Memory::default());
    pipeline.run(input, Variables::default(), memory)?.collect()
}

#[test]
fn conditions_move_and_change_nothing() {
    let (mut shorter, mut failed, mut renamed) = (0, 0, 0);
    for_seeds(6_000, |mut random| {
        let input = documents(&mut random);
        let count = 2 + random.below(4);
        let stages: Vec<&str> = (0..count).map(|_| *random.choose(STAGES)).collect();
        let by_stage =
            stages.iter().try_fold(input.clone(), |documents, stage| run(&documents, &[*stage]));
        // An error of what a condition leaves out early isn't told.
        let Ok(by_stage) = by_stage else {
            failed += 1;
            return;
        };
        let whole = run(&input, &stages).expect("nothing fails");
        assert_eq!(canonical(&whole), canonical(&by_stage), "{stages:?}");
        let wrapped = json(&format!(r#"{{"v": [{}]}}"#, stages.join(",")));
        let array = wrapped.get("v").and_then(|value| value.as_array()).expect("an array");
        let first_is_match = stages[0].contains("$match");
        let filter = Pipeline::parse(array).expect("a proper pipeline").take_filter();
        shorter += usize::from(!first_is_match && !filter.is_all());
        let groups = stages[0].contains("$group") || stages[0].contains("\"$b\"");
        renamed += usize::from(groups && !filter.is_all());
    });
    assert_met("conditions that come to the front", shorter, 100);
    assert_met("conditions that got other names", renamed, 30);
    assert!(failed < 1_500, "{failed} pipelines failed");
}

/// The filter of a view's reader moves to the front of the view's own stages, if they don't touch
/// its fields.
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
        (r#"[{"$project": {"b": "$a"}}]"#, r#"{"b.x": 1, "a": null}"#, &["a.x"], false),
        (
            r#"[{"$lookup": {"from": "c", "localField": "a", "foreignField": "_id", "as": "b.x"}}]"#,
            r#"{"a": 1, "b.y": 2}"#,
            &["a"],
            false,
        ),
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
