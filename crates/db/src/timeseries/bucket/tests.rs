//! Buckets of points, and the points of these: the same to the byte.

use std::sync::Arc;

use frond_doc::{DocumentBuf, Value, document, extended_json};
use frond_query::Collation;

use super::{Buckets, points};
use crate::timeseries::Series;

fn json(text: &str) -> DocumentBuf {
    extended_json::parse(&text.replace('\'', "\"")).expect("JSON")
}

fn series() -> Arc<Series> {
    let series = document! { "timeField": "t", "metaField": "m" };
    Arc::new(Series::of(document! { "timeseries": &series }.view()).expect("it is one"))
}

fn buckets(points: &[DocumentBuf]) -> Vec<DocumentBuf> {
    let points: Vec<_> = points.iter().cloned().map(Ok).collect();
    let buckets = Buckets::of(&series(), Collation::SIMPLE, Box::new(points.into_iter()));
    buckets.collect::<Result<_, _>>().expect("points")
}

/// Returns how many buckets these points are; as many points, and the same, are in them.
fn check(made: &[DocumentBuf]) -> usize {
    let series = series();
    let buckets = buckets(made);
    let of_bucket = |bucket: &DocumentBuf| points(&series, bucket.view()).expect("a bucket");
    let found: Vec<DocumentBuf> = buckets.iter().flat_map(of_bucket).collect();
    assert_eq!(found, made);
    buckets.len()
}

fn at(seconds: i64) -> DocumentBuf {
    document! { "_id": 1_i32, "t": Value::DateTime(seconds * 1_000), "m": "a", "v": seconds }
}

#[test]
fn points_of_every_shape_come_back() {
    for (shapes, expected) in [
        ("[]", 0),
        ("[{'t': T}]", 1),
        ("[{'_id': 1, 't': T, 'm': 1, 'v': 1}, {'_id': 1, 't': T, 'm': 1, 'v': 'x'}]", 1),
        ("[{'m': 1, 't': T}, {'m': 1, 't': T}]", 1),
        ("[{'t': T, 'v': 1, 'm': 1}, {'t': T, 'm': 1}, {'t': T, 'w': 2, 'm': 1}]", 1),
        ("[{'t': T, 'm': 1}, {'m': 1, 't': T}]", 2),
        ("[{'t': T, 'a': 1, 'b': 1}, {'t': T, 'b': 1, 'a': 1}]", 2),
        ("[{'t': T, 'a': 1}, {'t': T, 'b': 1, 'c': 1}, {'t': T, 'a': 2, 'b': 2}]", 2),
        ("[{'t': T, 'm': 1}, {'t': T, 'm': 1.0}, {'t': T, 'm': null}, {'t': T}]", 4),
        ("[{'t': T, 'v': {}}, {'t': T, 'v': []}, {'t': T, 'v': {'a': [{'b': 1}]}}]", 1),
        ("[{'t': T, 'a.b': 1, '': 2, '$c': 3}]", 1),
    ] {
        let shapes = json(&format!("{{'': {shapes}}}").replace('T', "{'$date': 61000}"));
        let made = shapes.get("").and_then(|made| made.as_array()).expect("an array");
        let made: Vec<DocumentBuf> =
            made.iter().filter_map(|point| point.as_document()).map(|it| it.to_buf()).collect();
        assert_eq!(check(&made), expected, "{shapes:?}");
    }
}

#[test]
fn a_bucket_is_of_bounded_size_and_time() {
    let many: Vec<DocumentBuf> = (0..2_001).map(|_| at(5)).collect();
    assert_eq!(check(&many), 3);
    assert_eq!(check(&[at(59), at(60), at(3_599), at(3_600)]), 2);
    assert_eq!(check(&[at(61), at(3_659), at(3_660)]), 2);
    assert_eq!(check(&[at(-61), at(-1), at(i64::from(i32::MAX) * 90)]), 2);
    let large = |millis| {
        let text = "x".repeat(50 << 10);
        document! { "t": Value::DateTime(millis), "m": "a", "v": text.as_str() }
    };
    assert_eq!(check(&[large(1), large(2), large(3), large(4), large(5)]), 3);
}

#[test]
fn control_has_the_least_and_the_greatest() {
    let made: Vec<DocumentBuf> = [
        "{'t': {'$date': 61000}, 'm': 1, 'v': 5, 'o': {'a': 1, 'b': [3, 4]}, 'w': 1}",
        "{'t': {'$date': 62000}, 'm': 1, 'v': 3, 'o': {'a': 2, 'b': [1]}, 'w': {'x': 1}}",
        "{'t': {'$date': 63000}, 'm': 1, 'v': 4, 'o': {'c': 'x'}, 'w': 'y'}",
    ]
    .map(json)
    .into();
    let [bucket] = &buckets(&made)[..] else { panic!("one bucket") };
    let control = bucket.get("control").and_then(|control| control.as_document());
    let expected = "{'version': 1, 'min': {'t': {'$date': 60000}, 'v': 3, 'o': {'a': 1, 'b': [1, 4], \
                    'c': 'x'}, 'w': 1}, 'max': {'t': {'$date': 63000}, 'v': 5, 'o': {'a': 2, 'b': \
                    [3, 4], 'c': 'x'}, 'w': {'x': 1}}}";
    assert_eq!(control.expect("there").to_buf(), json(expected));
    let Some(Value::ObjectId(id)) = bucket.get("_id") else { panic!("an ObjectId") };
    assert_eq!(&id.0[..4], [0, 0, 0, 60]);
}

#[test]
fn buckets_of_another_server_have_the_source_after_the_time() {
    let bucket = json(
        "{'_id': {'$oid': '60bfdf53764018491c583714'}, 'control': {'version': 1}, 'meta': 7, \
         'data': {'t': {'0': {'$date': 1}, '1': {'$date': 2}}, '_id': {'0': 5, '1': 6}, 'v': \
         {'1': 'x'}}}",
    );
    let found = points(&series(), bucket.view()).expect("a bucket");
    let expected = [
        "{'t': {'$date': 1}, 'm': 7, '_id': 5}",
        "{'t': {'$date': 2}, 'm': 7, '_id': 6, 'v': 'x'}",
    ];
    assert_eq!(found, expected.map(json));
}

#[test]
fn a_point_that_no_bucket_can_hold_is_refused() {
    let mut twice = frond_doc::DocumentBuilder::new();
    twice.append("t", Value::DateTime(1)).append("v", Value::Null).append("v", Value::Null);
    let points = vec![Ok(twice.build())].into_iter();
    let mut buckets = Buckets::of(&series(), Collation::SIMPLE, Box::new(points));
    assert!(buckets.next().expect("an answer").is_err());
}
