//! Goal: what is sorted or grouped on disk is what is sorted or grouped in memory. Method: the same
//! random documents with much memory and with almost none, over files that are vectors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_query::QueryError;
use frond_query::expression::Variables;
use frond_query::pipeline::{Pipeline, Resources, Spill, SpillFile};
use frond_testkit::Random;
use frond_testkit::random::for_seeds;

use crate::pipelines::{Memory, canonical, json};

#[derive(Default)]
struct Files {
    made: AtomicUsize,
    open: Arc<AtomicUsize>,
}

struct File {
    bytes: Mutex<Vec<u8>>,
    open: Arc<AtomicUsize>,
}

impl Spill for Files {
    fn create(&self) -> Result<Box<dyn SpillFile>, QueryError> {
        self.made.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(File { bytes: Mutex::default(), open: self.open.clone() }))
    }
}

impl SpillFile for File {
    fn append(&mut self, bytes: &[u8]) -> Result<(), QueryError> {
        self.bytes.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), QueryError> {
        let bytes = self.bytes.lock().unwrap();
        buffer.copy_from_slice(&bytes[offset as usize..][..buffer.len()]);
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

fn documents(random: &mut Random) -> Vec<DocumentBuf> {
    let count = random.below(400);
    let make = |id: usize, random: &mut Random| {
        let mut builder = DocumentBuilder::new();
        builder.append("_id", Value::Int32(id as i32));
        builder.append("k", Value::Int32(random.below(20) as i32));
        if random.below(5) > 0 {
            builder.append("v", Value::String(&"x".repeat(random.below(60))));
        }
        builder.build()
    };
    (0..count).map(|id| make(id, random)).collect()
}

fn run(
    input: &[DocumentBuf],
    stages: &str,
    resources: Resources,
) -> Result<Vec<String>, QueryError> {
    let memory = Arc::new(Memory::default());
    memory.limit(resources);
    let wrapped = json(&format!("{{\"v\": {stages}}}"));
    let array = wrapped.get("v").and_then(|value| value.as_array()).unwrap();
    let input = Box::new(input.iter().cloned().map(Ok));
    let found = Pipeline::parse(array)?.run(input, Variables::default(), memory)?;
    Ok(canonical(&found.collect::<Result<Vec<_>, _>>()?))
}

#[test]
fn spilled_is_as_in_memory() {
    let files = Arc::new(Files::default());
    for_seeds(60, |mut random| {
        let input = documents(&mut random);
        let bytes = 200 + random.below(4000);
        for (stages, has_order) in [
            (r#"[{"$sort": {"k": 1, "v": -1}}]"#, true),
            (r#"[{"$sort": {"k": -1}}, {"$limit": 30}]"#, true),
            (
                r#"[{"$group": {"_id": "$k", "n": {"$sum": 1}, "f": {"$first": "$_id"}, "l": {"$last": "$v"}, "all": {"$push": "$v"}}}]"#,
                false,
            ),
            (
                r#"[{"$setWindowFields": {"partitionBy": "$_id", "output": {"n": {"$sum": "$k"}}}}]"#,
                true,
            ),
            (r#"[{"$bucketAuto": {"groupBy": "$k", "buckets": 3}}]"#, true),
            (
                r#"[{"$setWindowFields": {"sortBy": {"k": 1, "_id": 1}, "output": {
                    "sum": {"$sum": "$k", "window": {"documents": [-2, 1]}},
                    "rest": {"$avg": "$_id", "window": {"documents": [1, 3]}},
                    "all": {"$sum": "$k"}, "number": {"$documentNumber": {}},
                    "before": {"$shift": {"output": "$_id", "by": -3, "default": "none"}},
                    "after": {"$shift": {"output": "$_id", "by": 2}},
                    "last": {"$locf": "$v"}, "mean": {"$expMovingAvg": {"input": "$k", "N": 3}}}}}]"#,
                true,
            ),
            (
                r#"[{"$setWindowFields": {"sortBy": {"k": 1}, "output": {
                    "rank": {"$rank": {}}, "dense": {"$denseRank": {}}}}}, {"$sort": {"_id": 1}}]"#,
                true,
            ),
            (
                r#"[{"$setWindowFields": {"sortBy": {"k": 1}, "output": {
                    "near": {"$sum": "$k", "window": {"range": [-2, 1.5]}},
                    "below": {"$sum": "$_id", "window": {"range": ["unbounded", -3]}},
                    "peers": {"$sum": 1, "window": {"range": ["current", "current"]}},
                    "above": {"$avg": "$_id", "window": {"range": [4, "unbounded"]}},
                    "slope": {"$derivative": {"input": "$_id"}, "window": {"documents": [-3, 1]}},
                    "steep": {"$derivative": {"input": "$_id"}, "window": {"range": [-1, 1]}},
                    "later": {"$derivative": {"input": "$_id"}, "window": {"documents": [2, 4]}},
                    "area": {"$integral": {"input": "$_id"}, "window": {"range": [-1, 1]}},
                    "total": {"$integral": {"input": "$k"}, "window": {"documents": ["unbounded", -1]}}}}}]"#,
                true,
            ),
            (
                r#"[{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {
                    "line": {"$linearFill": {"$cond": [{"$lt": ["$k", 5]}, "$k", null]}}}}}]"#,
                true,
            ),
            (
                r#"[{"$set": {"at": {"$toDate": {"$multiply": [{"$toLong": "$_id"}, 1000]}}}},
                    {"$setWindowFields": {"sortBy": {"at": 1}, "output": {
                    "sum": {"$sum": "$k", "window": {"range": [-3, 2], "unit": "second"}},
                    "line": {"$linearFill": {"$cond": [{"$lt": ["$k", 5]}, "$k", null]}},
                    "slope": {"$derivative": {"input": "$k", "unit": "minute"},
                              "window": {"range": [-5, 0], "unit": "second"}}}}}]"#,
                true,
            ),
            (
                r#"[{"$facet": {"a": [{"$group": {"_id": "$k", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}],
                    "b": [{"$limit": 3}], "c": [{"$match": {"k": {"$lt": 3}}}, {"$count": "n"}]}}]"#,
                true,
            ),
            (r#"[{"$densify": {"field": "k", "range": {"step": 3, "bounds": "full"}}}]"#, true),
            (
                r#"[{"$densify": {"field": "_id", "partitionByFields": ["k"],
                    "range": {"step": 7, "bounds": "partition"}}}]"#,
                true,
            ),
        ] {
            let spilling = Resources {
                memory_bytes_max: bytes,
                spill: Some(files.clone()),
                ..Resources::default()
            };
            let mut spilled = run(&input, stages, spilling).unwrap();
            let mut expected = run(&input, stages, Resources::default()).unwrap();
            if !has_order {
                spilled.sort();
                expected.sort();
            }
            assert_eq!(spilled, expected, "{stages}");
        }
    });
    assert!(files.made.load(Ordering::Relaxed) > 20, "nothing was written");
    assert_eq!(files.open.load(Ordering::Relaxed), 0, "files are left");
}

/// What a window refuses, it refuses on disk too.
#[test]
fn streamed_windows_refuse_the_same() {
    let mut input = documents(&mut Random::new(3));
    input.extend((1000..1100).map(|id| json(&format!(r#"{{"_id": {id}, "k": 7}}"#))));
    for (spoilt, sort, function, code) in [
        (
            r#"{"_id": -1, "k": "x"}"#,
            "k",
            r#"{"$sum": "$_id", "window": {"range": [-1, 1]}}"#,
            5_429_414,
        ),
        (
            r#"{"_id": -1}"#,
            "_id",
            r#"{"$sum": "$k", "window": {"range": [-1, 1], "unit": "day"}}"#,
            5_429_513,
        ),
        (
            r#"{"_id": -1, "k": null}"#,
            "_id",
            r#"{"$derivative": {"input": "$k"}, "window": {"documents": [1, 2]}}"#,
            5_624_903,
        ),
        (r#"{"_id": -1, "k": "x"}"#, "_id", r#"{"$linearFill": "$k"}"#, 14),
        (r#"{"_id": -1, "k": 7}"#, "k", r#"{"$linearFill": "$_id"}"#, 6_050_106),
    ] {
        input.push(json(spoilt));
        let stages = format!(
            r#"[{{"$setWindowFields": {{"sortBy": {{"{sort}": 1}}, "output": {{"o": {function}}}}}}}]"#
        );
        for memory_bytes_max in [300, 100 << 20] {
            let spill: Option<Arc<dyn Spill>> = Some(Arc::new(Files::default()));
            let resources = Resources { memory_bytes_max, spill, ..Resources::default() };
            let error = run(&input, &stages, resources).unwrap_err();
            assert_eq!(error.code.number(), code, "{function} {memory_bytes_max}");
        }
        input.pop();
    }
}

#[test]
fn without_files_too_much_is_refused() {
    for_seeds(5, |mut random| {
        let mut input = documents(&mut random);
        input.extend(documents(&mut Random::new(7)));
        let tight = Resources { memory_bytes_max: 10, ..Resources::default() };
        for stages in [
            r#"[{"$sort": {"k": 1}}]"#,
            r#"[{"$group": {"_id": "$k"}}]"#,
            r#"[{"$facet": {"a": [{"$count": "n"}]}}]"#,
            r#"[{"$densify": {"field": "k", "range": {"step": 1, "bounds": "full"}}}]"#,
        ] {
            let error = run(&input, stages, tight.clone()).unwrap_err();
            assert_eq!(error.code.number(), 292);
        }
    });
}
