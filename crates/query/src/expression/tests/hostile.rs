//! Expressions that want too much: nesting, memory.

use std::sync::Arc;

use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value};
use frond_store::budget::{MemoryBudget, Reservation};

use super::super::{Expression, Variables};
use super::{check, evaluate, json};
use crate::code::Code;
use crate::error::QueryError;
use crate::memory::RequestMemory;

#[test]
fn a_small_expression_makes_no_large_value() {
    check(&[
        (r#"{"$range": [0, 2147483647]}"#, "!146"),
        (r#"{"$range": [-2147483648, 2147483647]}"#, "!146"),
    ]);
    // Doubles a string, or an array, forty times over.
    let mut text = r#""$$x""#.to_owned();
    let mut array = r#""$$x""#.to_owned();
    for _ in 0..40 {
        text = format!(
            r#"{{"$let": {{"vars": {{"x": {{"$concat": ["$$x", "$$x"]}}}}, "in": {text}}}}}"#
        );
        array = format!(r#"{{"$let": {{"vars": {{"x": ["$$x", "$$x"]}}, "in": {array}}}}}"#);
    }
    for (inner, seed) in [(text, r#""0123456789abcdef""#), (array, "1")] {
        let expression = format!(r#"{{"$let": {{"vars": {{"x": {seed}}}, "in": {inner}}}}}"#);
        let error = evaluate(&expression, &json("{}")).unwrap_err();
        assert_eq!(error.code.number(), 10334, "{error}");
    }
}

#[test]
fn values_nest_no_deeper_than_documents() {
    let wrap = |times: usize| {
        format!(
            r#"{{"$reduce": {{"input": {{"$range": [0, {times}]}}, "initialValue": 1, "in": {{"a": "$$value"}}}}}}"#
        )
    };
    let deep = evaluate(&wrap(150), &json("{}")).unwrap().unwrap();
    assert!(matches!(deep.as_value(), Value::Document(_)));
    assert_eq!(evaluate(&wrap(100_000), &json("{}")).unwrap_err().code.number(), 15);
}

#[test]
fn a_deep_expression_is_refused_and_not_recursed_into() {
    // Made here, since such a document would not be taken in.
    let mut inner = DocumentBuf::empty();
    for _ in 0..100_000 {
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(b"\x03$not\0");
        bytes.extend_from_slice(inner.as_bytes());
        bytes.push(0);
        let length = i32::try_from(bytes.len()).unwrap();
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        inner = DocumentBuf::from_validated(bytes.into());
        if inner.as_bytes().len() > 30_000 {
            break;
        }
    }
    let error = Expression::parse(Value::Document(inner.view())).unwrap_err();
    assert_eq!(error.code.number(), 15);
}

#[test]
fn damaged_documents_are_read_without_panic() {
    let whole = json(super::DOCUMENT);
    let bytes = whole.as_bytes();
    let expression = json(r#"{"v": ["$o.y.z", "$docs.c.d", {"$size": "$a"}, "$$ROOT"]}"#);
    let expression = Expression::parse(expression.get("v").unwrap()).unwrap();
    for cut in 0..bytes.len() {
        let document = Document::from_validated(&bytes[..cut]);
        let _ = expression.evaluate(document, &Variables::default());
        let _ = Array::from_validated(&bytes[..cut]).iter().count();
    }
    let mut builder = DocumentBuilder::new();
    builder.append("a", Value::Null);
    assert!(expression.evaluate(builder.build().view(), &Variables::default()).is_err());
}

/// `template` with `inner` in the place of "HOLE": JSON's reader doesn't go deep enough.
fn fill(builder: &mut DocumentBuilder, name: &str, template: Value<'_>, inner: Value<'_>) {
    match template {
        Value::String("HOLE") => {
            builder.append(name, inner);
        }
        Value::Document(document) => {
            builder.begin_document(name);
            document.iter().for_each(|(name, value)| fill(builder, name, value, inner));
            builder.end();
        }
        Value::Array(array) => {
            builder.begin_array(name);
            let fields = array.as_document();
            fields.iter().for_each(|(name, value)| fill(builder, name, value, inner));
            builder.end();
        }
        other => {
            builder.append(name, other);
        }
    }
}

#[test]
fn the_deepest_expressions_fit_a_threads_stack() {
    let many: Vec<String> = (0..300).map(|number| format!(r#""v{number}": 1"#)).collect();
    let let_many = format!(r#"{{"$let": {{"vars": {{{}}}, "in": "HOLE"}}}}"#, many.join(","));
    for (times, template) in [
        (175, r#"{"$not": "HOLE"}"#),
        (87, r#"{"$abs": ["HOLE"]}"#),
        (87, r#"{"$and": [1, "HOLE"]}"#),
        (87, r#"{"$cond": [1, "HOLE", 0]}"#),
        (43, r#"{"$switch": {"branches": [{"case": 1, "then": "HOLE"}]}}"#),
        (87, r#"{"$map": {"input": [1], "in": "HOLE"}}"#),
        (87, r#"{"$reduce": {"input": [1], "initialValue": 0, "in": "HOLE"}}"#),
        (87, let_many.as_str()),
        (175, r#"{"x": "HOLE"}"#),
        (175, r#"["HOLE"]"#),
    ] {
        let wrapped = json(&format!("{{\"v\": {template}}}"));
        let mut expression = json(r#"{"v": 1}"#);
        for _ in 0..times {
            let mut builder = DocumentBuilder::new();
            let inner = expression.get("v").unwrap();
            fill(&mut builder, "v", wrapped.get("v").unwrap(), inner);
            expression = builder.build();
        }
        DocumentBuf::validated(expression.clone().into_bytes()).expect("clients may send it");
        let parsed = Expression::parse(expression.get("v").unwrap()).unwrap();
        let answer = parsed.evaluate(Document::empty(), &Variables::default());
        assert!(answer.is_ok(), "{template}: {answer:?}");
    }
}

#[test]
fn texts_that_are_no_dates_are_refused_and_never_panic() {
    use frond_testkit::random::for_seeds;
    const PARTS: [&str; 24] = [
        "2020",
        "-",
        "02",
        "/",
        "29",
        "T",
        "12",
        ":",
        "34",
        ".",
        "5",
        "Z",
        "+",
        "pm",
        "Feb",
        "W",
        "é",
        " ",
        ",",
        "%",
        "GMT",
        "Mon",
        "th",
        "999999999999999999999",
    ];
    const FORMATS: [&str; 6] =
        ["%Y-%m-%d", "%G-W%V-%u", "%j %Y %H:%M:%S.%L%z", "%d %B %Y", "%b%%%Y%Z", "é%d%m%Y"];
    let document = json("{}");
    for_seeds(400, |mut random| {
        let text: String = (0..random.below(9)).map(|_| *random.choose(&PARTS)).collect();
        let format = random.choose(&FORMATS);
        for format in ["".to_owned(), format!(r#", "format": "{format}""#)] {
            let expression =
                format!(r#"{{"$dateFromString": {{"dateString": "{text}"{format}}}}}"#);
            if let Err(error) = evaluate(&expression, &document) {
                assert_eq!(error.code.number(), 241, "{expression}");
            }
        }
    });
}

/// Evaluates in `memory`.
fn evaluate_in(expression: &str, memory: &RequestMemory) -> Result<(), i32> {
    let document = json(&format!(r#"{{"v": {expression}}}"#));
    let parsed = Expression::parse(document.get("v").unwrap()).unwrap();
    let variables = Variables::default().with_memory(memory.clone());
    match parsed.evaluate(Document::empty(), &variables) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.code.number()),
    }
}

const RANGE: &str = r#"{"$range": [0, 100000]}"#;

#[test]
fn all_values_of_a_request_are_charged_while_they_live() {
    let budget = MemoryBudget::new(16 << 20);
    let memory = RequestMemory::new(Reservation::new(16 << 20, Some(budget.clone())), None);
    let texts = format!(r#"{{"$map": {{"input": {RANGE}, "in": {{"$toString": "$$this"}}}}}}"#);
    let pairs = format!(
        r#"{{"$map": {{"input": {RANGE}, "in": {{"k": {{"$toString": "$$this"}}, "v": 1}}}}}}"#
    );
    let doubled = |seed: &str, operator: &str, times: usize| {
        format!(
            r#"{{"$reduce": {{"input": {{"$range": [0, {times}]}}, "initialValue": {seed},
                "in": {{"{operator}": ["$$value", "$$value"]}}}}}}"#
        )
    };
    let many = |count: usize| vec![RANGE; count].join(", ");
    let vars: Vec<String> = (0..30).map(|n| format!(r#""v{n}": {RANGE}"#)).collect();
    for (expression, expected) in [
        (RANGE.to_owned(), Ok(())),
        // One after the other they fit, side by side they don't.
        (
            r#"{"$map": {"input": {"$range": [0, 50]}, "in": {"$size": {"$range": [0, 90000]}}}}"#
                .to_owned(),
            Ok(()),
        ),
        (format!(r#"{{"$zip": {{"inputs": [{}]}}}}"#, many(30)), Err(146)),
        (format!(r#"{{"$let": {{"vars": {{{}}}, "in": 1}}}}"#, vars.join(",")), Err(146)),
        (format!(r#"{{"$concatArrays": [{}]}}"#, many(20)), Err(146)),
        (format!("[{}]", many(20)), Err(146)),
        (format!(r#"{{"a": [{}], "b": [{}]}}"#, many(5), many(5)), Err(146)),
        (format!(r#"{{"$setUnion": [{RANGE}]}}"#), Err(146)),
        (format!(r#"{{"$setDifference": [{RANGE}, []]}}"#), Err(146)),
        (format!(r#"{{"$setEquals": [{RANGE}, {RANGE}]}}"#), Err(146)),
        (format!(r#"{{"$arrayToObject": {pairs}}}"#), Err(146)),
        (format!(r#"{{"$sortArray": {{"input": {texts}, "sortBy": 1}}}}"#), Ok(())),
        (
            format!(
                r#"{{"$sortArray": {{"input": {{"$concatArrays": [{}]}}, "sortBy": 1}}}}"#,
                many(3)
            ),
            Err(146),
        ),
        (format!(r#"{{"$reverseArray": {{"$concatArrays": [{}]}}}}"#, many(3)), Err(146)),
        (doubled("[1]", "$concatArrays", 40), Err(146)),
        (doubled(r#""ab""#, "$concat", 40), Err(146)),
        (format!(r#"{{"$split": [{}, "a"]}}"#, doubled(r#""ab""#, "$concat", 20)), Err(146)),
        (
            format!(
                r#"{{"$regexFindAll": {{"input": {}, "regex": "a"}}}}"#,
                doubled(r#""ab""#, "$concat", 18)
            ),
            Err(146),
        ),
        (
            format!(
                r#"{{"$replaceAll": {{"input": {0}, "find": "a", "replacement": {0}}}}}"#,
                doubled(r#""ab""#, "$concat", 12)
            ),
            Err(146),
        ),
    ] {
        assert_eq!(evaluate_in(&expression, &memory), expected, "{expression}");
        assert_eq!(memory.bytes(), 0, "{expression}");
        assert!(budget.bytes() <= 1 << 18, "{expression}: {}", budget.bytes());
    }
    drop(memory);
    assert_eq!(budget.bytes(), 0);
}

#[test]
fn evaluating_stops_on_request() {
    let stop = || Err(QueryError::new(Code::MaxTimeMSExpired, "it is time"));
    let array = r#"{"$range": [0, 7000]}"#;
    let many = vec!["1"; 4_000].join(", ");
    for expression in [
        format!(r#"{{"$map": {{"input": {array}, "in": {{"$add": ["$$this", 1]}}}}}}"#),
        format!(r#"{{"$filter": {{"input": {array}, "cond": {{"$in": ["$$this", {array}]}}}}}}"#),
        format!(
            r#"{{"$reduce": {{"input": {array}, "initialValue": 0,
                "in": {{"$reduce": {{"input": [1, 2], "initialValue": 0, "in": 1}}}}}}}}"#
        ),
        format!(r#"{{"$setUnion": [{array}, {array}]}}"#),
        format!(r#"{{"$setIntersection": [{array}, {array}]}}"#),
        format!(r#"{{"$setIsSubset": [{array}, {array}]}}"#),
        format!(r#"{{"$sortArray": {{"input": {array}, "sortBy": -1}}}}"#),
        format!(r#"{{"$maxN": {{"input": {array}, "n": 3}}}}"#),
        format!(r#"{{"$zip": {{"inputs": [{array}, {array}]}}}}"#),
        r#"{"$map": {"input": [1, 2, 3], "in": {"$regexMatch": {"input": "aab", "regex": "(?=(a+))b"}}}}"#
            .to_owned(),
        format!(r#"{{"$map": {{"input": [1, 2, 3], "in": {{"$add": [{many}]}}}}}}"#),
        r#"{"$pow": [{"$numberDecimal": "1.5"}, {"$numberDecimal": "0.3"}]}"#.to_owned(),
        r#"{"$log": [{"$numberDecimal": "1.5"}, 3]}"#.to_owned(),
        r#"{"$ln": {"$numberDecimal": "1.5"}}"#.to_owned(),
        r#"{"$sqrt": {"$numberDecimal": "1.5"}}"#.to_owned(),
        r#"{"$sinh": {"$numberDecimal": "1.5"}}"#.to_owned(),
        r#"{"$atan2": [1, {"$numberDecimal": "1.5"}]}"#.to_owned(),
    ] {
        let memory = RequestMemory::new(Reservation::new(1 << 30, None), Some(Arc::new(stop)));
        assert_eq!(evaluate_in(&expression, &memory), Err(50), "{expression}");
    }
}
