//! Goal: each accumulator's result over a few values, types compared exactly; and that a window's
//! result is always a fresh group's over the values that are in the window.
//!
//! Values are the fields `v` of documents, `missing` where a document has none.

mod operators;

use frond_doc::{Document, DocumentBuf, Value, ValueBuf, extended_json};
use frond_store::budget::Reservation;
use frond_testkit::random::for_seeds;

use super::{Accumulator, Place, Window};
use crate::error::QueryError;
use crate::expression::{Evaluated, Parser, Scope, Variables};
use crate::memory::RequestMemory;

fn json(text: &str) -> DocumentBuf {
    extended_json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn parse(text: &str, place: Place) -> Result<Accumulator, QueryError> {
    let specification = json(text);
    let (name, argument) = specification.iter().next().unwrap();
    Accumulator::parse(name, argument, place, &mut Parser::default())
}

fn group(accumulator: &Accumulator, documents: &[DocumentBuf]) -> Result<ValueBuf, QueryError> {
    let memory = RequestMemory::new(Reservation::new(usize::MAX, None), None);
    let variables = Variables::default().with_memory(memory);
    let mut state = accumulator.start(Document::empty(), &variables)?;
    for document in documents {
        state.add(accumulator.value(&Scope::new(document.view(), &variables))?)?;
    }
    Ok(state.finish()?.or_null().to_buf())
}

fn text(value: Value<'_>) -> String {
    let mut out = String::new();
    extended_json::write_value(value, extended_json::Form::Canonical, &mut out);
    out
}

/// `values` are the documents, `expected` is a value or `!code`.
fn check(table: &[(&str, &str, &str)]) {
    let mut differing = Vec::new();
    for (specification, values, expected) in table {
        let wrapped = json(&format!("{{\"d\": {values}}}"));
        let documents: Vec<DocumentBuf> = wrapped
            .get("d")
            .and_then(|value| value.as_array())
            .unwrap()
            .iter()
            .map(|value| value.as_document().unwrap().to_buf())
            .collect();
        let found = parse(specification, Place::Group)
            .and_then(|accumulator| group(&accumulator, &documents))
            .map_or_else(|error| format!("!{}", error.code.number()), |v| text(v.as_value()));
        let expected = match expected.strip_prefix('!') {
            Some(_) => (*expected).to_owned(),
            None => text(json(&format!("{{\"v\": {expected}}}")).get("v").unwrap()),
        };
        if found != expected {
            differing.push(format!(
                "{specification} over {values}\n  is    {found}\n  wants {expected}"
            ));
        }
    }
    assert!(differing.is_empty(), "{} rows differ:\n{}", differing.len(), differing.join("\n"));
}

/// Scores of players: what most rows are about.
const SCORES: &str = r#"[{"p": "ann", "v": 31}, {"p": "bob", "v": 33}, {"p": "cem", "v": 99},
    {"p": "dov", "v": 1}, {"p": "eve", "v": 33}, {"p": "fay"}, {"p": "gil", "v": null}]"#;

#[test]
fn numbers_are_summed_up() {
    let mixed = r#"[{"v": 1}, {"v": {"$numberLong": "2"}}, {"v": "x"}, {}, {"v": [5]}]"#;
    let nan = r#"[{"v": 1}, {"v": {"$numberDouble": "NaN"}}]"#;
    let infinite =
        r#"[{"v": {"$numberDouble": "Infinity"}}, {"v": {"$numberDouble": "-Infinity"}}]"#;
    check(&[
        (r#"{"$sum": "$v"}"#, "[]", "0"),
        (r#"{"$sum": "$v"}"#, mixed, r#"{"$numberLong": "3"}"#),
        (r#"{"$sum": ["$v"]}"#, "[{\"v\": 2.5}, {\"v\": 1}]", "3.5"),
        (r#"{"$sum": ["$v", 1]}"#, "[]", "!40237"),
        (r#"{"$sum": "$v"}"#, nan, r#"{"$numberDouble": "NaN"}"#),
        (r#"{"$sum": "$v"}"#, infinite, r#"{"$numberDouble": "NaN"}"#),
        (
            r#"{"$sum": "$v"}"#,
            r#"[{"v": {"$numberDecimal": "0.1"}}, {"v": {"$numberDouble": "Infinity"}}]"#,
            r#"{"$numberDecimal": "Infinity"}"#,
        ),
        (
            r#"{"$sum": "$v"}"#,
            r#"[{"v": {"$numberLong": "9223372036854775807"}}, {"v": 1}]"#,
            r#"{"$numberDouble": "9223372036854775808"}"#,
        ),
        (r#"{"$avg": "$v"}"#, mixed, r#"{"$numberDouble": "1.5"}"#),
        (r#"{"$avg": "$v"}"#, "[{\"v\": \"x\"}]", "null"),
        (
            r#"{"$avg": "$v"}"#,
            r#"[{"v": {"$numberDecimal": "1.10"}}, {"v": 2}]"#,
            r#"{"$numberDecimal": "1.55"}"#,
        ),
        (r#"{"$count": {}}"#, SCORES, "7"),
        (r#"{"$count": 1}"#, SCORES, "!14"),
        (r#"{"$stdDevPop": "$v"}"#, "[{\"v\": 2}, {\"v\": 4}]", r#"{"$numberDouble": "1.0"}"#),
        (r#"{"$stdDevSamp": "$v"}"#, "[{\"v\": 2}]", "null"),
        (r#"{"$stdDevPop": "$v"}"#, nan, r#"{"$numberDouble": "NaN"}"#),
    ]);
}

#[test]
fn ends_and_extremes_are_chosen() {
    check(&[
        (r#"{"$first": "$v"}"#, SCORES, "31"),
        (r#"{"$first": "$v"}"#, "[{}, {\"v\": 1}]", "null"),
        (r#"{"$last": "$v"}"#, "[{\"v\": 1}, {}]", "null"),
        (r#"{"$firstN": {"input": "$v", "n": 2}}"#, SCORES, "[31, 33]"),
        (r#"{"$lastN": {"input": "$v", "n": 3}}"#, SCORES, "[33, null, null]"),
        (r#"{"$lastN": {"input": "$v", "n": 1.0}}"#, "[]", "[]"),
        (r#"{"$min": "$v"}"#, SCORES, "1"),
        (r#"{"$max": "$v"}"#, SCORES, "99"),
        (r#"{"$max": "$v"}"#, "[{}, {\"v\": null}]", "null"),
        (r#"{"$max": "$v"}"#, "[{\"v\": [9]}, {\"v\": \"z\"}, {\"v\": {}}]", "[9]"),
        (r#"{"$minN": {"input": "$v", "n": 3}}"#, SCORES, "[1, 31, 33]"),
        (r#"{"$maxN": {"input": "$v", "n": 3}}"#, SCORES, "[99, 33, 33]"),
        (r#"{"$maxN": {"input": "$v", "n": 9}}"#, SCORES, "[99, 33, 33, 31, 1]"),
        (
            r#"{"$minN": {"input": "$v", "n": 1}}"#,
            r#"[{"v": {"$numberLong": "7"}}, {"v": 7}]"#,
            r#"[{"$numberLong": "7"}]"#,
        ),
        (r#"{"$firstN": 1}"#, SCORES, "!5787801"),
        (r#"{"$minN": 1}"#, SCORES, "!5787900"),
        (r#"{"$minN": {"input": "$v", "n": 1, "x": 1}}"#, SCORES, "!5787901"),
        (r#"{"$minN": {"input": "$v", "n": "1"}}"#, SCORES, "!5787902"),
        (r#"{"$minN": {"input": "$v", "n": 1.5}}"#, SCORES, "!5787903"),
        (r#"{"$minN": {"input": "$v"}}"#, SCORES, "!5787906"),
        (r#"{"$minN": {"n": 1}}"#, SCORES, "!5787907"),
        (r#"{"$minN": {"input": "$v", "n": 0}}"#, SCORES, "!5787908"),
    ]);
}

#[test]
fn one_end_of_an_order_is_kept() {
    check(&[
        (r#"{"$top": {"sortBy": {"v": -1}, "output": "$p"}}"#, SCORES, r#""cem""#),
        (r#"{"$bottom": {"sortBy": {"v": -1}, "output": "$p"}}"#, SCORES, r#""fay""#),
        (r#"{"$top": {"sortBy": {"v": 1}, "output": ["$p", "$v"]}}"#, SCORES, r#"["fay", null]"#),
        (
            r#"{"$topN": {"n": 3, "sortBy": {"v": -1, "p": -1}, "output": "$p"}}"#,
            SCORES,
            r#"["cem", "eve", "bob"]"#,
        ),
        (
            r#"{"$bottomN": {"n": 2, "sortBy": {"v": 1, "p": 1}, "output": "$p"}}"#,
            SCORES,
            r#"["eve", "cem"]"#,
        ),
        // The first of equal keys stays.
        (r#"{"$topN": {"n": 1, "sortBy": {"x": 1}, "output": "$p"}}"#, SCORES, r#"["ann"]"#),
        (r#"{"$topN": {"n": 2, "sortBy": {"p": 1}, "output": "$v"}}"#, "[]", "[]"),
        (r#"{"$bottomN": {"n": 1, "sortBy": {"p": 1}, "output": "$absent"}}"#, SCORES, "[null]"),
        (r#"{"$top": 1}"#, SCORES, "!5788001"),
        (r#"{"$top": {"n": 1, "sortBy": {"v": 1}, "output": 1}}"#, SCORES, "!5788002"),
        (r#"{"$topN": {"sortBy": {"v": 1}, "output": 1}}"#, SCORES, "!5788003"),
        (r#"{"$topN": {"n": 1, "sortBy": {"v": 1}}}"#, SCORES, "!5788004"),
        (r#"{"$topN": {"n": 1, "output": 1}}"#, SCORES, "!5788005"),
        (r#"{"$top": {"sortBy": 1, "output": 1}}"#, SCORES, "!10065"),
        (r#"{"$top": {"sortBy": {"v": 2}, "output": 1}}"#, SCORES, "!15975"),
        (r#"{"$topN": {"n": -1, "sortBy": {"v": 1}, "output": 1}}"#, SCORES, "!5787908"),
    ]);
}

#[test]
fn lists_and_percentiles() {
    let p = |p: &str| {
        format!(r#"{{"$percentile": {{"input": "$v", "p": {p}, "method": "approximate"}}}}"#)
    };
    check(&[
        (r#"{"$push": "$v"}"#, SCORES, "[31, 33, 99, 1, 33, null]"),
        (r#"{"$addToSet": "$v"}"#, SCORES, "[31, 33, 99, 1, null]"),
        (r#"{"$addToSet": "$v"}"#, "[{\"v\": 1}, {\"v\": 1.0}, {\"v\": [1]}]", "[1, [1]]"),
        (
            r#"{"$mergeObjects": "$v"}"#,
            r#"[{"v": {"a": 1, "b": 2}}, {}, {"v": null}, {"v": {"c": 3, "a": 4}}]"#,
            r#"{"a": 4, "b": 2, "c": 3}"#,
        ),
        (r#"{"$mergeObjects": "$v"}"#, SCORES, "!40400"),
        (
            &p("[0, 0.5, 0.9, 1]"),
            SCORES,
            r#"[{"$numberDouble": "1.0"}, {"$numberDouble": "33.0"},
            {"$numberDouble": "99.0"}, {"$numberDouble": "99.0"}]"#,
        ),
        (&p("[0.5]"), "[{\"v\": \"x\"}]", "[null]"),
        (&p("[]"), SCORES, "!7750301"),
        (&p("0.5"), SCORES, "!7750301"),
        (&p("[\"x\"]"), SCORES, "!7750302"),
        (&p("[1.5]"), SCORES, "!7750303"),
        (&p("[\"$v\"]"), SCORES, "!7750300"),
        (
            r#"{"$median": {"input": "$v", "method": "approximate"}}"#,
            SCORES,
            r#"{"$numberDouble": "33.0"}"#,
        ),
        (r#"{"$median": {"input": "$v", "method": "exact"}}"#, SCORES, "!2"),
        (r#"{"$median": {"input": "$v", "method": 1}}"#, SCORES, "!14"),
        (r#"{"$median": {"input": "$v"}}"#, SCORES, "!40414"),
        (r#"{"$median": {"input": "$v", "p": [1], "method": "approximate"}}"#, SCORES, "!40415"),
        (r#"{"$percentile": {"input": "$v", "method": "approximate"}}"#, SCORES, "!40414"),
        (r#"{"$percentile": 1}"#, SCORES, "!7429703"),
        (r#"{"$accumulator": {}}"#, SCORES, "!4544707"),
        (r#"{"$rank": {}}"#, SCORES, "!15952"),
        (r#"{"$covariancePop": ["$v", "$v"]}"#, SCORES, "!15952"),
    ]);
}

/// Every accumulator that a window may have.
const WINDOWS: [&str; 26] = [
    r#"{"$addToSet": "$v"}"#,
    r#"{"$avg": "$v"}"#,
    r#"{"$bottom": {"sortBy": {"v": 1, "w": 1}, "output": "$w"}}"#,
    r#"{"$bottomN": {"n": 2, "sortBy": {"v": -1, "w": 1}, "output": ["$w"]}}"#,
    r#"{"$count": {}}"#,
    r#"{"$covariancePop": ["$v", "$w"]}"#,
    r#"{"$covarianceSamp": ["$v", "$w"]}"#,
    r#"{"$first": "$v"}"#,
    r#"{"$firstN": {"n": 2, "input": "$v"}}"#,
    r#"{"$last": "$v"}"#,
    r#"{"$lastN": {"n": 2, "input": "$v"}}"#,
    r#"{"$max": "$v"}"#,
    r#"{"$maxN": {"n": 2, "input": "$v"}}"#,
    r#"{"$median": {"input": "$v", "method": "approximate"}}"#,
    r#"{"$mergeObjects": "$o"}"#,
    r#"{"$min": "$v"}"#,
    r#"{"$minN": {"n": 2, "input": "$v"}}"#,
    r#"{"$percentile": {"input": "$v", "p": [0.1, 0.9], "method": "approximate"}}"#,
    r#"{"$push": "$v"}"#,
    r#"{"$stdDevPop": "$v"}"#,
    r#"{"$stdDevSamp": "$v"}"#,
    r#"{"$sum": "$v"}"#,
    r#"{"$sum": "$w"}"#,
    r#"{"$top": {"sortBy": {"v": -1, "w": 1}, "output": "$w"}}"#,
    r#"{"$topN": {"n": 2, "sortBy": {"v": 1, "w": -1}, "output": "$v"}}"#,
    r#"{"$topN": {"n": 2, "sortBy": {"w": 1}, "output": "$o"}}"#,
];

#[test]
fn a_window_is_a_group_of_what_is_in_it() {
    const VALUES: [&str; 12] = [
        "1",
        "7",
        "2.5",
        "-4",
        r#"{"$numberLong": "5000000000"}"#,
        r#"{"$numberDecimal": "0.25"}"#,
        r#"{"$numberDouble": "NaN"}"#,
        r#"{"$numberDouble": "Infinity"}"#,
        "null",
        r#""x""#,
        r#"{"$numberDouble": "1.5"}"#,
        "[1]",
    ];
    for_seeds(200, |mut random| {
        let documents: Vec<DocumentBuf> = (0..12_i32)
            .map(|position| {
                let (w, o) = (random.below(5), random.below(3));
                let v = random.choose(&VALUES);
                json(&match random.one_in(6) {
                    true => format!(r#"{{"w": {w}}}"#),
                    false => format!(r#"{{"v": {v}, "w": {w}, "o": {{"f{o}": {position}}}}}"#),
                })
            })
            .collect();
        let accumulator = parse(WINDOWS[random.below(WINDOWS.len())], Place::Window).unwrap();
        let variables = Variables::default();
        let mut window = accumulator.start_window(Document::empty(), &variables).unwrap();
        let value = |position: usize| {
            let document: &DocumentBuf = &documents[position];
            accumulator.value(&Scope::new(document.view(), &variables)).unwrap().detach_uncounted()
        };
        let (mut start, mut end) = (0, 0);
        while start < documents.len() {
            if end < documents.len() && (start == end || !random.one_in(3)) {
                window.add(value(end)).unwrap();
                end += 1;
            } else {
                window.remove(value(start));
                start += 1;
            }
            same(window.as_ref(), &accumulator, &documents[start..end]);
        }
    });
}

/// The rounding error that may be left of the products that a covariance sums up, however small
/// that is: 12 of 5e9 and 4.
const LEFT_OF_PRODUCTS: f64 = 12.0 * 5e9 * 4.0 * 4.0 * f64::EPSILON;

/// Compares a window's result with a fresh window's; numbers may differ by what rounding leaves.
fn same(window: &dyn Window, accumulator: &Accumulator, inside: &[DocumentBuf]) {
    let variables = Variables::default();
    let mut fresh = accumulator.start_window(Document::empty(), &variables).unwrap();
    for document in inside {
        fresh.add(accumulator.value(&Scope::new(document.view(), &variables)).unwrap()).unwrap();
    }
    let (found, expected) = (window.current().unwrap(), fresh.current().unwrap());
    let by_group = group(accumulator, inside).unwrap();
    let shown = format!("{accumulator:?}");
    let is_list_of_any_order = shown.contains("AddToSet");
    let left = if shown.contains("Covariance") { LEFT_OF_PRODUCTS } else { 0.0 };
    for expected in [Some(expected.or_null()), (!is_list_of_any_order).then(|| by_group.as_value())]
        .into_iter()
        .flatten()
    {
        let context = || format!("{accumulator:?} over {inside:?}");
        match (found.or_null(), expected) {
            (Value::Double(found), Value::Double(expected)) => {
                let is_near = (found - expected).abs() <= 1e-9 * (1.0 + expected.abs()) + left
                    || found == expected
                    || (found.is_nan() && expected.is_nan());
                assert!(is_near, "{found} {expected} {}", context());
            }
            (found, expected) => assert_eq!(text(found), text(expected), "{}", context()),
        }
    }
}

#[test]
fn n_may_depend_on_the_group() {
    let text = r#"{"$firstN": {"input": "$v", "n": {"$cond": [{"$eq": ["$g", 1]}, 1, 2]}}}"#;
    let accumulator = parse(text, Place::Group).unwrap();
    let variables = Variables::default();
    for (group, expected) in [(1, 1), (2, 2)] {
        let group = json(&format!("{{\"g\": {group}}}"));
        let mut state = accumulator.start(group.view(), &variables).unwrap();
        for _ in 0..3 {
            state.add(Evaluated::from(7)).unwrap();
        }
        let found = state.finish().unwrap();
        assert_eq!(found.or_null().as_array().unwrap().iter().count(), expected);
    }
}
