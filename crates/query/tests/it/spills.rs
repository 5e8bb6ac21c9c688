//! Goal: sorting and grouping on disk give the same as in memory. Method: the same random documents
//! with much memory and with almost none, over files that are vectors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_query::QueryError;
use frond_query::expression::Variables;
use frond_query::pipeline::{Documents, Pipeline, Resources, Sorter, Spill, SpillFile};
use frond_store::budget::MemoryBudget;
use frond_testkit::Random;
use frond_testkit::random::{assert_met, for_seeds};

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
    Ok(canonical(&start(input, stages, resources)?.collect::<Result<Vec<_>, _>>()?))
}

fn start<'a>(
    input: &'a [DocumentBuf],
    stages: &str,
    resources: Resources,
) -> Result<Documents<'a>, QueryError> {
    let memory = Arc::new(Memory::default());
    memory.limit(resources);
    let wrapped = json(&format!("{{\"v\": {stages}}}"));
    let array = wrapped.get("v").and_then(|value| value.as_array()).unwrap();
    let input = Box::new(input.iter().cloned().map(Ok));
    Pipeline::parse(array)?.run(input, Variables::default(), memory)
}

#[test]
fn spilled_is_as_in_memory() {
    let files = Arc::new(Files::default());
    for_seeds(60, |mut random| {
        let input = documents(&mut random);
        let bytes = 600 + random.below(4000);
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
    assert_met("files", files.made.load(Ordering::Relaxed), 20);
    assert_eq!(files.open.load(Ordering::Relaxed), 0, "files are left");
}

/// A window on disk refuses the same as one in memory.
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
            r#"{"$derivative": {"input": "$k"}, "window": {"documents": [0, 1]}}"#,
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

/// Each document's window holds all documents, which together fit into memory easily.
#[test]
fn windows_that_are_larger_than_their_partition_are_made_one_by_one() {
    let text = "x".repeat(100);
    let input: Vec<DocumentBuf> =
        (0..300).map(|id| json(&format!(r#"{{"_id": {id}, "k": "{text}{id}"}}"#))).collect();
    for function in ["$push", "$addToSet"] {
        let stages = |window: &str| {
            format!(
                r#"[{{"$setWindowFields": {{"sortBy": {{"_id": 1}}, "output": {{
                    "all": {{"{function}": "$k", "window": {{"documents": {window}}}}}}}}}}}]"#
            )
        };
        let all = stages(r#"["unbounded", "unbounded"]"#);
        let files = Arc::new(Files::default());
        let spill: Option<Arc<dyn Spill>> = Some(files.clone());
        let much = Resources { spill, ..Resources::default() };
        let expected = run(&input, &all, much.clone()).expect("all of them");
        assert_eq!(files.made.load(Ordering::Relaxed), 0, "{function}");
        let little = Resources { memory_bytes_max: 1 << 20, ..much };
        assert_eq!(run(&input, &all, little).expect("all of them"), expected);
        assert!(0 < files.made.load(Ordering::Relaxed), "{function}");
        assert_eq!(files.open.load(Ordering::Relaxed), 0);
        let alone = Resources { memory_bytes_max: 1 << 20, ..Resources::default() };
        assert_eq!(run(&input, &all, alone.clone()).unwrap_err().code.number(), 292);
        assert_eq!(run(&input, &stages("[-1, 1]"), alone).expect("few").len(), 300);
    }
}

/// Sorts documents of together about 800 KB.
fn sorted_large(resources: &Resources) -> Result<frond_query::pipeline::Sorted, QueryError> {
    let mut sorter = Sorter::new("Sort", resources, usize::MAX);
    let mut random = Random::new(5);
    for id in 0..200 {
        let mut document = DocumentBuilder::new();
        document.append("_id", Value::Int32(id)).append("pad", Value::String(&"x".repeat(4_000)));
        sorter.add((random.below(1_000) as u32).to_be_bytes().to_vec().into(), document.build())?;
    }
    sorter.finish()
}

#[test]
fn stages_share_one_budget() {
    let files = Arc::new(Files::default());
    let memory = MemoryBudget::new(3 << 19);
    let spill: Option<Arc<dyn Spill>> = Some(files.clone());
    let resources = Resources { memory: Some(memory.clone()), spill, ..Resources::default() };
    let first = sorted_large(&resources).unwrap();
    assert_eq!(files.made.load(Ordering::Relaxed), 0, "alone it has room");
    assert!(memory.bytes() > 800_000);
    // As long as that cursor is open, another one goes to disk, or fails where it mustn't.
    let second = sorted_large(&resources).unwrap();
    assert!(files.made.load(Ordering::Relaxed) > 1);
    assert!(memory.bytes() <= (3 << 19) + (256 << 10), "{}", memory.bytes());
    let in_memory = Resources { spill: None, ..resources.clone() };
    let error = sorted_large(&in_memory).map(|_| ()).unwrap_err();
    assert_eq!(error.code.number(), 292);
    assert!(error.message.contains("share"), "{}", error.message);
    let ids = |sorted: frond_query::pipeline::Sorted| -> Vec<DocumentBuf> {
        sorted.map(|entry| entry.unwrap().1).collect()
    };
    assert_eq!(ids(first), ids(second));
    assert_eq!(memory.bytes(), 0);
    sorted_large(&in_memory).unwrap();
}

/// Goal: what is ready and waits for a client takes no memory where that is short for all, and
/// comes out the same. Method: many sorts and groups under one small budget, all of them kept open.
#[test]
fn resting_sorts_leave_their_memory_to_others() {
    let files = Arc::new(Files::default());
    let memory = MemoryBudget::new(1 << 20);
    let spill: Option<Arc<dyn Spill>> = Some(files.clone());
    let resources = Resources { memory: Some(memory.clone()), spill, ..Resources::default() };
    let make = |id| json(&format!(r#"{{"_id": {id}, "pad": "{}"}}"#, "x".repeat(1_000)));
    let input: Vec<DocumentBuf> = (0..100).map(make).collect();
    let sort = r#"[{"$sort": {"pad": 1, "_id": -1}}]"#;
    let group = r#"[{"$group": {"_id": "$_id", "all": {"$push": "$pad"}}}]"#;
    for stages in [sort, group] {
        let expected = run(&input, stages, Resources::default()).unwrap();
        let begin = || start(&input, stages, resources.clone()).unwrap();
        let mut open: Vec<_> = std::iter::repeat_with(begin).take(60).collect();
        let first: Vec<_> = open.iter_mut().map(|one| one.next().unwrap().unwrap()).collect();
        assert!(memory.bytes() <= 1 << 20, "{stages}: {}", memory.bytes());
        // One file each, but for those that found room.
        let files = files.open.load(Ordering::Relaxed);
        assert!((40..60).contains(&files), "{stages}: {files}");
        for (first, rest) in first.into_iter().zip(open) {
            let found: Vec<_> = [Ok(first)].into_iter().chain(rest).map(Result::unwrap).collect();
            assert_eq!(canonical(&found), expected);
        }
        assert_eq!(memory.bytes(), 0);
    }
    assert_eq!(files.open.load(Ordering::Relaxed), 0);
}

/// A group that alone takes too much is refused before it is there.
#[test]
fn one_group_is_bounded() {
    let files = Arc::new(Files::default());
    let memory = Some(MemoryBudget::new(1 << 20));
    let spill: Option<Arc<dyn Spill>> = Some(files.clone());
    let resources = Resources { memory, spill, ..Resources::default() };
    let pad = "x".repeat(4_000);
    let make = |id| json(&format!(r#"{{"_id": {id}, "pad": "{pad}"}}"#));
    let input: Vec<DocumentBuf> = (0..500).map(make).collect();
    let all = r#"[{"$group": {"_id": null, "all": {"$push": "$pad"}}}, {"$project": {"_id": 1}}]"#;
    assert_eq!(run(&input, all, resources.clone()).unwrap_err().code.number(), 146);
    let few = r#"[{"$group": {"_id": "$_id", "all": {"$push": "$pad"}}}, {"$count": "n"}]"#;
    assert_eq!(run(&input, few, resources).unwrap().len(), 1);
}

/// Goal: over hostile numbers, too, windows that stream give what windows in memory give. Method:
/// random sort values and inputs (NaN, infinities, bounds of types, decimals, dates), random
/// functions and bounds.
#[test]
fn streamed_windows_of_hostile_numbers() {
    const NUMBERS: [&str; 12] = [
        "0",
        "-1",
        "1.5",
        "7",
        r#"{"$numberDouble": "NaN"}"#,
        r#"{"$numberDouble": "-Infinity"}"#,
        r#"{"$numberDouble": "Infinity"}"#,
        r#"{"$numberDouble": "1e308"}"#,
        r#"{"$numberLong": "9223372036854775807"}"#,
        r#"{"$numberLong": "-9223372036854775808"}"#,
        r#"{"$numberDecimal": "0.1"}"#,
        r#"{"$numberDecimal": "NaN"}"#,
    ];
    const FUNCTIONS: [&str; 9] = [
        r#""$sum": "$v""#,
        r#""$avg": "$v""#,
        r#""$min": "$v""#,
        r#""$push": "$v""#,
        r#""$stdDevPop": "$v""#,
        r#""$derivative": {"input": "$v""#,
        r#""$integral": {"input": "$v""#,
        r#""$expMovingAvg": {"input": "$v", "N": 3}"#,
        r#""$linearFill": "$v""#,
    ];
    let files = Arc::new(Files::default());
    for_seeds(150, |mut random| {
        let has_dates = random.one_in(3);
        let is_tame = random.one_in(2);
        let mut number = || match is_tame {
            true => random.below(30).to_string(),
            false => (*random.choose(&NUMBERS)).to_owned(),
        };
        let make = |id: i32, number: &mut dyn FnMut() -> String| {
            let at = number();
            let at = match has_dates {
                true => format!(
                    r#"{{"$date": {{"$numberLong": "{}"}}}}"#,
                    at.len() * 1_000 + id as usize
                ),
                false => at,
            };
            json(&format!(r#"{{"_id": {id}, "t": {at}, "v": {}}}"#, number()))
        };
        let input: Vec<DocumentBuf> = (0..60).map(|id| make(id, &mut number)).collect();
        let function = *random.choose(&FUNCTIONS);
        let takes_window = !function.contains("expMovingAvg") && !function.contains("linearFill");
        let mut bounds = [random.below(9) as i32 - 4, random.below(9) as i32 - 4];
        bounds.sort_unstable();
        let [low, high] = bounds;
        let window = match (random.below(3), has_dates) {
            (0, _) => format!(r#""documents": [{low}, {high}]"#),
            (1, _) => r#""documents": ["unbounded", "current"]"#.to_owned(),
            (_, true) => format!(r#""range": [{low}, {high}], "unit": "second""#),
            (_, false) => format!(r#""range": [{low}, {high}]"#),
        };
        let closing = match function.contains("derivative") || function.contains("integral") {
            true if has_dates => r#", "unit": "second"}"#,
            true => "}",
            false => "",
        };
        let window =
            if takes_window { format!(r#", "window": {{{window}}}"#) } else { String::new() };
        let stages = format!(
            r#"[{{"$setWindowFields": {{"sortBy": {{"t": 1}}, "output": {{"o": {{{function}{closing}{window}}}}}}}}}]"#
        );
        let spill: Option<Arc<dyn Spill>> = Some(files.clone());
        let small = Resources { memory_bytes_max: 3_000, spill, ..Resources::default() };
        let (streamed, expected) =
            (run(&input, &stages, small), run(&input, &stages, Resources::default()));
        match (streamed, expected) {
            (Ok(streamed), Ok(expected)) => assert_eq!(streamed, expected, "{stages}"),
            (Err(_), Err(_)) => {}
            // A window alone may be too large.
            (Err(error), Ok(_)) if error.code.number() == 5_414_201 => {}
            (streamed, expected) => {
                panic!("{stages}: {:?}, {:?}", streamed.map(|_| ()), expected.map(|_| ()))
            }
        }
    });
    assert_met("files", files.made.load(Ordering::Relaxed), 20);
}
