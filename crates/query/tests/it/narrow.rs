//! Goal: what a `$sort` doesn't keep changes no answer. Method: random long documents and pipelines
//! with a `$sort`, run whole and stage by stage, where the `$sort` knows of no reader and keeps
//! all.

use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_query::pipeline::Pipeline;
use frond_testkit::Random;
use frond_testkit::random::{assert_met, for_seeds};

use crate::pipelines::{canonical, json};
use crate::pushdown::{documents, run};

const SORTS: &[&str] = &[
    r#"{"$sort": {"b": 1, "_id": -1}}"#,
    r#"{"$sort": {"a.x": -1, "_id": 1}}"#,
    r#"{"$sort": {"long": 1, "a": 1, "_id": 1}}"#,
    r#"{"$sort": {"_id": -1}}"#,
];

const READERS: &[&str] = &[
    r#"{"$project": {"_id": 1}}"#,
    r#"{"$project": {"_id": 0, "a.x": 1, "c": {"y": 1}}}"#,
    r#"{"$project": {"n": {"$add": ["$_id", 1]}, "c": "$b.y"}}"#,
    r#"{"$project": {"b": "$$ROOT"}}"#,
    r#"{"$project": {"b": "$$CURRENT.a"}}"#,
    r#"{"$project": {"c": {"$getField": "long"}}}"#,
    r#"{"$project": {"c": {"$getField": {"field": {"$concat": ["lo", "ng"]}, "input": "$$ROOT"}}}}"#,
    r#"{"$project": {"b": {"$map": {"input": ["$a"], "as": "v", "in": {"x": "$$v.x", "c": "$c"}}}}}"#,
    r#"{"$project": {"b": {"$let": {"vars": {"r": "$$ROOT"}, "in": "$$r.c"}}}}"#,
    r#"{"$project": {"b": 0}}"#,
    r#"{"$addFields": {"b": "$c"}}"#,
    r#"{"$unset": "a"}"#,
    r#"{"$replaceRoot": {"newRoot": {"a": "$a", "c": "$long"}}}"#,
    r#"{"$replaceWith": {"$mergeObjects": ["$$ROOT", {"n": 1}]}}"#,
    r#"{"$group": {"_id": "$b", "first": {"$first": "$c"}, "all": {"$push": "$a"}}}"#,
    r#"{"$group": {"_id": null, "all": {"$push": "$$ROOT"}}}"#,
    r#"{"$group": {"_id": null, "top": {"$top": {"sortBy": {"c": 1, "_id": 1}, "output": "$_id"}}}}"#,
    r#"{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"n": {"$push": "$c", "window": {"documents": [-1, 0]}}}}}"#,
    r#"{"$bucketAuto": {"groupBy": "$_id", "buckets": 3, "output": {"n": {"$push": "$a"}}}}"#,
    r#"{"$sortByCount": "$b"}"#,
    r#"{"$count": "n"}"#,
    r#"{"$unwind": {"path": "$a", "preserveNullAndEmptyArrays": true}}"#,
    r#"{"$facet": {"b": [{"$sort": {"a": 1, "_id": 1}}, {"$project": {"c": 1}}], "c": [{"$limit": 2}]}}"#,
    r#"{"$redact": {"$cond": [{"$eq": ["$c", 2]}, "$$PRUNE", "$$KEEP"]}}"#,
    r#"{"$match": {"c": {"$ne": 1}}}"#,
    r#"{"$match": {"$expr": {"$gt": ["$b", "$a"]}}}"#,
    r#"{"$match": {"$jsonSchema": {"required": ["a", "long"]}}}"#,
    r#"{"$limit": 5}"#,
    r#"{"$skip": 2}"#,
];

/// Puts a long field somewhere, of one of a few lengths.
fn lengthened(document: &DocumentBuf, random: &mut Random) -> DocumentBuf {
    let place = random.below(4);
    let long = "long ".repeat(*random.choose(&[1, 150, 210, 400]));
    let mut builder = DocumentBuilder::new();
    let mut elements = document.view().elements();
    for position in 0..5 {
        if position == place {
            builder.append("long", Value::String(&long));
        }
        if let Some(element) = elements.next() {
            builder.append_element(&element);
        }
    }
    builder.build()
}

#[test]
fn orders_keep_all_that_is_read_behind_them() {
    let mut cut = 0;
    for_seeds(6_000, |mut random| {
        let short = documents(&mut random);
        let input: Vec<DocumentBuf> =
            short.iter().map(|document| lengthened(document, &mut random)).collect();
        let count = 1 + random.below(3);
        let mut stages: Vec<&str> = (0..count).map(|_| *random.choose(READERS)).collect();
        stages.insert(0, *random.choose(SORTS));
        let by_stage =
            stages.iter().try_fold(input.clone(), |documents, stage| run(&documents, &[*stage]));
        let Ok(by_stage) = by_stage else { return };
        let whole = run(&input, &stages).expect("nothing fails");
        assert_eq!(canonical(&whole), canonical(&by_stage), "{stages:?}");
        let wrapped = json(&format!(r#"{{"v": [{}]}}"#, stages.join(",")));
        let array = wrapped.get("v").and_then(|value| value.as_array()).expect("an array");
        let pipeline = Pipeline::parse(array).expect("a proper pipeline");
        cut += usize::from(format!("{pipeline:?}").contains("kept: Some"));
    });
    assert_met("orders that keep a part", cut, 1_000);
}
