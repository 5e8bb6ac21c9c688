//! Stages against naive ones: joins by nested loops, sorts of everything, groups in a sorted map.

use std::collections::BTreeMap;
use std::sync::Arc;

use frond_doc::{DocumentBuf, DocumentBuilder, Value, key, order};
use frond_query::expression::Variables;
use frond_query::pipeline::Pipeline;
use frond_query::{Expression, SortPattern};
use frond_testkit::Random;
use frond_testkit::random::for_seeds;

use crate::pipelines::{Memory, json};

/// A field's value: few different ones, so that they often meet.
fn append_value(random: &mut Random, builder: &mut DocumentBuilder, name: &str, depth: usize) {
    let small = random.below(4) as i32;
    match random.below(if depth == 0 { 7 } else { 9 }) {
        0 => {} // Missing.
        1 => {
            builder.append(name, Value::Null);
        }
        2 => {
            builder.append(name, Value::Double(f64::from(small)));
        }
        3 => {
            builder.append(name, Value::Int64(i64::from(small)));
        }
        4 => {
            builder.append(name, Value::String(["a", "b", "c"][small as usize % 3]));
        }
        5 | 6 => {
            builder.append(name, Value::Int32(small));
        }
        7 => {
            builder.begin_document(name);
            append_value(random, builder, "x", depth - 1);
            builder.end();
        }
        _ => {
            builder.begin_array(name);
            for _ in 0..random.below(3) {
                let mut element = DocumentBuilder::new();
                append_value(random, &mut element, "e", depth - 1);
                let element = element.build();
                builder.push(element.get("e").unwrap_or(Value::Null));
            }
            builder.end();
        }
    }
}

fn documents(random: &mut Random, count: usize) -> Vec<DocumentBuf> {
    let make = |id| {
        let mut builder = DocumentBuilder::new();
        builder.append("_id", Value::Int32(id as i32));
        append_value(random, &mut builder, "k", 2);
        append_value(random, &mut builder, "v", 1);
        builder.build()
    };
    (0..count).map(make).collect()
}

fn run(memory: &Arc<Memory>, input: &[DocumentBuf], stages: &str) -> Vec<DocumentBuf> {
    let wrapped = json(&format!("{{\"v\": {stages}}}"));
    let array = wrapped.get("v").and_then(|value| value.as_array()).unwrap();
    let input = Box::new(input.iter().cloned().map(Ok));
    let pipeline = Pipeline::parse(array).unwrap();
    let documents = pipeline.run(input, Variables::default(), memory.clone()).unwrap();
    documents.collect::<Result<_, _>>().unwrap()
}

/// Returns the values that a value joins by: the elements of an array, null for none.
fn join_values(value: Option<Value<'_>>) -> Vec<Value<'_>> {
    match value {
        None => vec![Value::Null],
        Some(Value::Array(array)) if array.is_empty() => vec![Value::Null],
        Some(Value::Array(array)) => array.iter().collect(),
        Some(value) => vec![value],
    }
}

/// Whether a foreign field equals one of the values, itself or by an element.
fn joins(foreign: Option<Value<'_>>, wanted: &[Value<'_>]) -> bool {
    wanted.iter().any(|wanted| match foreign {
        None => matches!(wanted, Value::Null),
        Some(value) => {
            order::equal(value, *wanted)
                || value
                    .as_array()
                    .is_some_and(|array| array.iter().any(|element| order::equal(element, *wanted)))
        }
    })
}

#[test]
fn a_batched_join_finds_what_nested_loops_find() {
    for_seeds(150, |mut random| {
        let count = random.below(40);
        let (local, foreign) = (documents(&mut random, count), documents(&mut random, 12));
        let memory = Arc::new(Memory::default());
        memory.set("foreign", foreign.clone());
        let stages = r#"[{"$lookup": {"from": "foreign", "localField": "k", "foreignField": "k", "as": "found"}}]"#;
        let joined = run(&memory, &local, stages);
        assert_eq!(joined.len(), local.len());
        for (document, joined) in local.iter().zip(&joined) {
            let wanted = join_values(document.get("k"));
            let expected: Vec<Value<'_>> = foreign
                .iter()
                .filter(|foreign| joins(foreign.get("k"), &wanted))
                .map(Value::from)
                .collect();
            let found = joined.get("found").and_then(|found| found.as_array()).unwrap();
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{document:?}");
        }
    });
}

#[test]
fn a_sort_with_a_limit_keeps_the_first_of_the_whole_sort() {
    for_seeds(100, |mut random| {
        let count = random.below(300);
        let mut input = documents(&mut random, count);
        let (skip, limit) = (random.below(20), 1 + random.below(40));
        let stages = format!(
            r#"[{{"$sort": {{"k": 1, "v": -1}}}}, {{"$skip": {skip}}}, {{"$set": {{"n": 1}}}}, {{"$unset": "n"}}, {{"$limit": {limit}}}]"#
        );
        let pattern = SortPattern::parse(json(r#"{"k": 1, "v": -1}"#).view()).unwrap();
        // Arrays in parallel have no order.
        input.retain(|document| pattern.key(document.view()).is_ok());
        let mut expected = input.clone();
        expected.sort_by_key(|document| pattern.key(document.view()).ok());
        let expected: Vec<_> = expected.into_iter().skip(skip).take(limit).collect();
        assert_eq!(run(&Arc::default(), &input, &stages), expected);
    });
}

#[test]
fn groups_are_those_of_equal_keys() {
    for_seeds(100, |mut random| {
        let count = random.below(100);
        let input = documents(&mut random, count);
        let stages = r#"[{"$group": {"_id": "$k", "n": {"$sum": 1}, "ids": {"$push": "$_id"}, "least": {"$min": "$v"}}}]"#;
        let mut expected: BTreeMap<Vec<u8>, (Vec<i64>, Option<Value<'_>>)> = BTreeMap::new();
        for document in &input {
            let key = key::of_value(document.get("k").unwrap_or(Value::Null));
            let (ids, least) = expected.entry(key.to_vec()).or_default();
            ids.push(document.get("_id").and_then(|id| id.as_integer()).unwrap());
            if let Some(value) = document.get("v").filter(|value| *value != Value::Null) {
                let is_less = least.is_none_or(|least| order::compare(value, least).is_lt());
                *least = if is_less { Some(value) } else { *least };
            }
        }
        let found = run(&Arc::default(), &input, stages);
        assert_eq!(found.len(), expected.len());
        for group in &found {
            let (ids, least) = &expected[&key::of_value(group.get("_id").unwrap()).to_vec()];
            let found = group.get("ids").and_then(|ids| ids.as_array()).unwrap();
            let found: Vec<i64> = found.iter().map(|id| id.as_integer().unwrap()).collect();
            assert_eq!(&found, ids);
            assert_eq!(group.get("n").and_then(|n| n.as_integer()), Some(ids.len() as i64));
            assert_eq!(group.get("least"), Some(least.unwrap_or(Value::Null)));
        }
    });
}

#[test]
fn a_projection_of_all_fields_changes_nothing() {
    for_seeds(100, |mut random| {
        let input = documents(&mut random, 20);
        for stages in [
            r#"[{"$project": {"k": 1, "v": 1}}]"#,
            r#"[{"$unset": "absent"}]"#,
            r#"[{"$set": {"k": "$k", "v": "$v"}}]"#,
            r#"[{"$replaceWith": "$$ROOT"}]"#,
            r#"[{"$set": {"z": 1}}, {"$project": {"z": 0}}]"#,
        ] {
            assert_eq!(run(&Arc::default(), &input, stages), input, "{stages}");
        }
    });
}

#[test]
fn sums_of_integers_are_exact() {
    for_seeds(300, |mut random| {
        let mut builder = DocumentBuilder::new();
        builder.begin_array("a");
        let mut exact: i128 = 0;
        let mut has_long = false;
        for _ in 0..random.below(12) {
            let bits = random.next();
            if random.one_in(2) {
                has_long = true;
                let number = (bits as i64) >> random.below(64);
                exact += i128::from(number);
                builder.push(Value::Int64(number));
            } else {
                let number = (bits as i32) >> random.below(32);
                exact += i128::from(number);
                builder.push(Value::Int32(number));
            }
        }
        builder.end();
        let document = builder.build();
        let expression = Expression::parse(json(r#"{"$sum": "$a"}"#).view().into()).unwrap();
        let found = expression.evaluate(document.view(), &Variables::default()).unwrap().unwrap();
        let expected = match (i32::try_from(exact), i64::try_from(exact)) {
            (Ok(small), _) if !has_long => Value::Int32(small),
            (_, Ok(long)) => Value::Int64(long),
            _ => Value::Double(exact as f64),
        };
        assert_eq!(found.as_value(), expected, "{document:?}");
    });
}
