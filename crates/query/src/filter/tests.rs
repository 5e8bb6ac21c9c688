//! Tables of filters: what passes, what is refused.

mod comparisons;
mod operators;
mod shapes;

use frond_doc::{DocumentBuf, DocumentBuilder, Value, extended_json};
use frond_store::budget::{MemoryBudget, Reservation};

use super::Filter;
use crate::expression::Variables;
use crate::memory::RequestMemory;

/// The tables of all operators.
fn tables() -> [&'static [operators::Table]; 2] {
    [comparisons::TABLES, shapes::TABLES]
}

fn json(text: &str) -> DocumentBuf {
    extended_json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// As much as any filter wants.
fn unbounded() -> RequestMemory {
    RequestMemory::new(Reservation::new(usize::MAX, None), None)
}

/// The filter passes the documents in `passing` and none of `failing`.
fn check(filter: &str, passing: &[&str], failing: &[&str]) {
    let parsed = Filter::parse(json(filter).view()).unwrap_or_else(|error| {
        panic!("{filter}: {error}");
    });
    for document in passing {
        assert!(parsed.matches(json(document).view()), "{filter} should pass {document}");
    }
    for document in failing {
        assert!(!parsed.matches(json(document).view()), "{filter} should not pass {document}");
    }
}

fn check_refused(filter: &str, code: i32, message: &str) {
    let error = Filter::parse(json(filter).view()).expect_err(filter);
    assert_eq!(error.code.number(), code, "{filter}: {error}");
    assert!(error.message.contains(message), "{filter}: {error}");
}

#[test]
fn equality() {
    check("{}", &["{}", r#"{"a": 1}"#], &[]);
    check(
        r#"{"a": 1}"#,
        &[r#"{"a": 1}"#, r#"{"a": 1.0}"#, r#"{"a": [0, 1]}"#, r#"{"a": {"$numberDecimal": "1"}}"#],
        &["{}", r#"{"a": "1"}"#, r#"{"a": [[1]]}"#, r#"{"a": true}"#, r#"{"a": null}"#],
    );
    check(
        r#"{"a": {"b": 1, "c": 2}}"#,
        &[r#"{"a": {"b": 1, "c": 2}}"#, r#"{"a": [3, {"b": 1, "c": 2}]}"#],
        &[r#"{"a": {"c": 2, "b": 1}}"#, r#"{"a": {"b": 1}}"#],
    );
    check(
        r#"{"a": [1, 2]}"#,
        &[r#"{"a": [1, 2]}"#, r#"{"a": [[1, 2], 3]}"#],
        &[r#"{"a": [2, 1]}"#, r#"{"a": [1, 2, 3]}"#],
    );
    check(
        r#"{"a": null}"#,
        &["{}", r#"{"a": null}"#, r#"{"a": [1, null]}"#],
        &[r#"{"a": 0}"#, r#"{"a": []}"#, r#"{"a": {"$undefined": true}}"#],
    );
    check(r#"{"a": {"$ref": "x", "$id": 1}}"#, &[r#"{"a": {"$ref": "x", "$id": 1}}"#], &["{}"]);
    check(
        r#"{"a": {"$ne": 1}}"#,
        &["{}", r#"{"a": 2}"#, r#"{"a": [2]}"#],
        &[r#"{"a": 1}"#, r#"{"a": [2, 1]}"#],
    );
}

#[test]
fn paths() {
    check(
        r#"{"a.b": 1}"#,
        &[r#"{"a": {"b": 1}}"#, r#"{"a": [{"b": 2}, {"b": [0, 1]}]}"#],
        &[r#"{"a.b": 1}"#, r#"{"a": 1}"#, r#"{"a": [[{"b": 1}]]}"#],
    );
    check(r#"{"a.1": 5}"#, &[r#"{"a": [4, 5]}"#, r#"{"a": {"1": 5}}"#], &[r#"{"a": [5, 4]}"#]);
    check(r#"{"a.0.b": 5}"#, &[r#"{"a": [{"b": 5}]}"#], &[r#"{"a": [1, {"b": 5}]}"#]);
    check(
        r#"{"a.b": null}"#,
        &["{}", r#"{"a": 5}"#, r#"{"a": {}}"#, r#"{"a": [{"b": 1}, {}]}"#],
        &[r#"{"a": []}"#, r#"{"a": [1]}"#, r#"{"a": {"b": 1}}"#],
    );
    check(
        r#"{"a.b": {"$exists": false}}"#,
        &["{}", r#"{"a": []}"#, r#"{"a": [1, {}]}"#],
        &[r#"{"a": [{}, {"b": null}]}"#],
    );
}

#[test]
fn comparisons() {
    check(
        r#"{"a": {"$gt": 5}}"#,
        &[r#"{"a": 6}"#, r#"{"a": 5.5}"#, r#"{"a": [1, 9]}"#],
        &[
            r#"{"a": 5}"#,
            r#"{"a": "6"}"#,
            r#"{"a": null}"#,
            "{}",
            r#"{"a": {"$numberDouble": "NaN"}}"#,
        ],
    );
    check(r#"{"a": {"$gt": 1, "$lt": 5}}"#, &[r#"{"a": [0, 9]}"#, r#"{"a": 3}"#], &[r#"{"a": 0}"#]);
    check(r#"{"a": {"$gte": null}}"#, &["{}", r#"{"a": null}"#], &[r#"{"a": 1}"#]);
    check(r#"{"a": {"$lt": null}}"#, &[], &["{}", r#"{"a": null}"#, r#"{"a": 1}"#]);
    check(r#"{"a": {"$lt": "b"}}"#, &[r#"{"a": "a"}"#], &[r#"{"a": 1}"#, r#"{"a": "b"}"#]);
    check(
        r#"{"a": {"$gt": [1]}}"#,
        &[r#"{"a": [1, 0]}"#, r#"{"a": [[2]]}"#],
        &[r#"{"a": [0, 9]}"#],
    );
    check(
        r#"{"a": {"$gt": {"$minKey": 1}}}"#,
        &["{}", r#"{"a": 1}"#],
        &[r#"{"a": {"$minKey": 1}}"#],
    );
    check(
        r#"{"a": {"$lt": {"$maxKey": 1}}}"#,
        &["{}", r#"{"a": "x"}"#],
        &[r#"{"a": {"$maxKey": 1}}"#],
    );
    let nan = r#"{"a": {"$numberDouble": "NaN"}}"#;
    for operator in ["$eq", "$gte", "$lte"] {
        let filter = format!(r#"{{"a": {{"{operator}": {{"$numberDouble": "NaN"}}}}}}"#);
        check(&filter, &[nan], &[r#"{"a": 1}"#]);
    }
    check(r#"{"a": {"$lt": {"$numberDouble": "NaN"}}}"#, &[], &[nan, r#"{"a": 1}"#]);
}

#[test]
fn membership() {
    check(
        r#"{"a": {"$in": [3, null, {"$regularExpression": {"pattern": "^x", "options": ""}}]}}"#,
        &["{}", r#"{"a": 3}"#, r#"{"a": ["xy"]}"#, r#"{"a": null}"#],
        &[r#"{"a": 4}"#, r#"{"a": "yx"}"#],
    );
    check(r#"{"a": {"$in": []}}"#, &[], &["{}", r#"{"a": 1}"#]);
    check(r#"{"a": {"$nin": [1, 2]}}"#, &["{}", r#"{"a": 3}"#], &[r#"{"a": [3, 2]}"#]);
    check(
        r#"{"a": {"$all": [1, 2]}}"#,
        &[r#"{"a": [2, 3, 1]}"#],
        &[r#"{"a": [1]}"#, r#"{"a": 1}"#],
    );
    check(r#"{"a": {"$all": [1]}}"#, &[r#"{"a": 1}"#, r#"{"a": [1]}"#], &["{}"]);
    check(r#"{"a": {"$all": []}}"#, &[], &["{}", r#"{"a": []}"#]);
    check(
        r#"{"a": {"$all": [{"$elemMatch": {"b": 1}}, {"$elemMatch": {"b": 2}}]}}"#,
        &[r#"{"a": [{"b": 2}, {"b": 1}]}"#],
        &[r#"{"a": [{"b": 2}]}"#],
    );
}

#[test]
fn logic() {
    check(r#"{"$or": [{"a": 1}, {"b": 1}]}"#, &[r#"{"b": 1}"#], &["{}"]);
    check(r#"{"$nor": [{"a": 1}, {"b": 1}]}"#, &["{}"], &[r#"{"b": 1}"#]);
    check(r#"{"$and": [{"a": 1}, {"b": 1}]}"#, &[r#"{"a": 1, "b": 1}"#], &[r#"{"b": 1}"#]);
    check(
        r#"{"a": {"$not": {"$gt": 5}}}"#,
        &["{}", r#"{"a": 5}"#, r#"{"a": "x"}"#],
        &[r#"{"a": 6}"#],
    );
    check(r#"{"$comment": "x", "a": 1}"#, &[r#"{"a": 1}"#], &["{}"]);
}

#[test]
fn shapes() {
    check(r#"{"a": {"$exists": true}}"#, &[r#"{"a": null}"#, r#"{"a": []}"#], &["{}"]);
    check(r#"{"a": {"$exists": 0}}"#, &["{}"], &[r#"{"a": null}"#]);
    check(
        r#"{"a": {"$type": "number"}}"#,
        &[r#"{"a": 1}"#, r#"{"a": ["x", 1.5]}"#],
        &[r#"{"a": "1"}"#],
    );
    check(r#"{"a": {"$type": ["string", 10]}}"#, &[r#"{"a": ""}"#, r#"{"a": null}"#], &["{}"]);
    check(r#"{"a": {"$type": "array"}}"#, &[r#"{"a": []}"#], &[r#"{"a": 1}"#]);
    check(r#"{"a": {"$type": -1}}"#, &[r#"{"a": {"$minKey": 1}}"#], &[r#"{"a": 1}"#]);
    check(r#"{"a": {"$size": 2}}"#, &[r#"{"a": [1, 2]}"#], &[r#"{"a": [[1, 2]]}"#, r#"{"a": 2}"#]);
    check(
        r#"{"a": {"$mod": [4, 1]}}"#,
        &[r#"{"a": 5}"#, r#"{"a": 5.9}"#],
        &[r#"{"a": 4}"#, r#"{"a": "5"}"#],
    );
    check(r#"{"a": {"$bitsAllSet": 5}}"#, &[r#"{"a": 7}"#, r#"{"a": -1}"#], &[r#"{"a": 4}"#]);
    check(
        r#"{"a": {"$bitsAnyClear": [0, 1]}}"#,
        &[r#"{"a": 1}"#],
        &[r#"{"a": 3}"#, r#"{"a": 1.5}"#],
    );
}

#[test]
fn elements() {
    check(
        r#"{"a": {"$elemMatch": {"$gt": 1, "$lt": 5}}}"#,
        &[r#"{"a": [0, 3]}"#],
        &[r#"{"a": [0, 9]}"#, r#"{"a": 3}"#],
    );
    check(
        r#"{"a": {"$elemMatch": {"b": 1, "c": 2}}}"#,
        &[r#"{"a": [{"b": 1, "c": 2}]}"#],
        &[r#"{"a": [{"b": 1}, {"c": 2}]}"#, r#"{"a": {"b": 1, "c": 2}}"#],
    );
    check(
        r#"{"a": {"$elemMatch": {"$or": [{"b": 1}, {"c": 1}]}}}"#,
        &[r#"{"a": [{"c": 1}]}"#],
        &[r#"{"a": [{"c": 2}]}"#],
    );
    check(r#"{"a": {"$elemMatch": {"0": 7}}}"#, &[r#"{"a": [[7]]}"#], &[r#"{"a": [7]}"#]);
}

#[test]
fn patterns() {
    check(
        r#"{"a": {"$regex": "^B", "$options": "i"}}"#,
        &[r#"{"a": ["x", "bc"]}"#],
        &[r#"{"a": "cb"}"#],
    );
    check(
        r#"{"a": {"$regularExpression": {"pattern": "b.d", "options": "s"}}}"#,
        &[
            r#"{"a": "b\nd"}"#,
            r#"{"a": {"$regularExpression": {"pattern": "b.d", "options": "s"}}}"#,
        ],
        &[r#"{"a": 1}"#],
    );
    check(r#"{"a": {"$not": {"$regex": "b"}}}"#, &["{}", r#"{"a": "c"}"#], &[r#"{"a": "abc"}"#]);
    check(r#"{"a": {"$regex": "(?<!x)y"}}"#, &[r#"{"a": "y"}"#], &[r#"{"a": "xy"}"#]);
}

/// Patterns on which PCRE2 and engines in linear time differ.
#[test]
fn patterns_are_those_of_pcre2() {
    for (pattern, matching, other) in [
        // Without Unicode's properties.
        (r"^\\d$", "1", "١"),
        (r"^\\w$", "a", "é"),
        (r"^\\W$", "é", "a"),
        (r"^[[:alpha:]]$", "a", "é"),
        (r"a\\bé", "aé", "é"),
        // `$` also stands before the line feed that ends a text, `\z` doesn't.
        ("a$", r"a\n", r"a\n\n"),
        (r"a\\z", "a", r"a\n"),
        ("(?m)^$", "", r"a\n"),
        // Patterns that only PCRE2 has.
        (r"\\((?:[^()]++|(?R))*+\\)", "(a(b)c)", "(a(b"),
        (r"^(a)?(?(1)b|c)$", "ab", "b"),
        ("a+(*PRUNE)b", "aab", "aac"),
        (r"^\\p{Lu}", "Éa", "éa"),
        (r"^\\X$", "e\u{301}", "ee"),
        (r"^\\Qa.b\\E$", "a.b", "axb"),
        ("(*UCP)^\\\\w$", "é", "!"),
    ] {
        let pattern = format!(r#"{{"a": {{"$regex": "{pattern}"}}}}"#);
        let text = |text: &str| format!(r#"{{"a": "{text}"}}"#);
        check(&pattern, &[&text(matching)], &[&text(other)]);
    }
}

#[test]
fn expressions() {
    check(
        r#"{"$expr": {"$gt": ["$a", "$b"]}}"#,
        &[r#"{"a": 2, "b": 1}"#],
        &[r#"{"a": 1, "b": 2}"#, "{}"],
    );
    check(r#"{"c": 1, "$expr": "$a"}"#, &[r#"{"c": 1, "a": 2}"#], &[r#"{"c": 1, "a": 0}"#]);
    let filter = r#"{"$expr": {"$divide": [1, "$a"]}}"#;
    let filter = Filter::parse(json(filter).view()).expect(filter);
    assert_eq!(filter.try_matches(json(r#"{"a": 2}"#).view()), Ok(true));
    filter.try_matches(json(r#"{"a": 0}"#).view()).expect_err("a division by zero");
    assert!(!filter.matches(json(r#"{"a": 0}"#).view()));
}

#[test]
fn refused() {
    for (filter, code, message) in [
        (r#"{"a": {"$foo": 1}}"#, 2, "unknown operator: $foo"),
        (r#"{"a": {"$gt": 1, "b": 1}}"#, 2, "unknown operator: b"),
        (r#"{"$foo": 1}"#, 2, "unknown top level operator: $foo. If you have"),
        (r#"{"$and": []}"#, 2, "$and/$or/$nor must be a nonempty array"),
        (r#"{"$or": 1}"#, 2, "$or must be an array"),
        (r#"{"$or": [1]}"#, 2, "$or/$and/$nor entries need to be full objects"),
        (r#"{"a": {"$in": 1}}"#, 2, "$in needs an array"),
        (r#"{"a": {"$in": [{"$gt": 1}]}}"#, 2, "cannot nest $ under $in"),
        (r#"{"a": {"$not": 1}}"#, 2, "$not needs a regex or a document"),
        (r#"{"a": {"$size": -1}}"#, 2, "Expected a non-negative number in: $size: -1"),
        (r#"{"a": {"$size": 1.5}}"#, 2, "Expected an integer: $size: 1.5"),
        (r#"{"a": {"$size": "1"}}"#, 2, "Expected a number in: $size: \"1\""),
        (r#"{"a": {"$type": "foo"}}"#, 2, "Unknown type name alias: foo"),
        (r#"{"a": {"$type": []}}"#, 9, "$type must match at least one type"),
        (r#"{"a": {"$mod": [0, 1]}}"#, 2, "divisor cannot be 0"),
        (r#"{"a": {"$mod": [1]}}"#, 2, "malformed mod, not enough elements"),
        (r#"{"a": {"$regex": "("}}"#, 51091, "Regular expression is invalid"),
        (r#"{"a": {"$regex": "a", "$options": "q"}}"#, 51108, "invalid flag in regex options: q"),
        (r#"{"a": {"$options": "i"}}"#, 2, "$options needs a $regex"),
        (r#"{"a": {"$all": 1}}"#, 2, "$all needs an array"),
        (r#"{"a": {"$all": [{"$gt": 1}]}}"#, 2, "no $ expressions in $all"),
        (r#"{"a": {"$elemMatch": 1}}"#, 2, "$elemMatch needs an Object"),
        (r#"{"$where": "1"}"#, 2, "$where is not allowed in this context"),
        (
            r#"{"$and": [{"$expr": {"$function": {"body": "1", "args": [], "lang": "js"}}}]}"#,
            4_660_800,
            "validator",
        ),
        (r#"{"$text": {"$search": "a"}}"#, 2, "$text is not allowed in this context"),
    ] {
        check_refused(filter, code, message);
    }
}

#[test]
fn a_filter_that_only_tests_sorts_no_documents() {
    for near in [r#"{"a": {"$near": [0, 0]}}"#, r#"{"$and": [{"a": {"$nearSphere": [0, 0]}}]}"#] {
        let near = json(near);
        assert!(Filter::parse(near.view()).is_ok());
        let refused = Filter::parse_test(near.view()).expect_err("refused");
        assert_eq!(refused.code.number(), 5_626_500);
    }
}

/// `core` inside `depth` arrays or documents of one field `name`.
fn nested(name: &str, is_array: bool, depth: usize, core: &DocumentBuf) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    for _ in 0..depth {
        match is_array {
            true => builder.begin_array(name).push_begin_document(),
            false => builder.begin_document(name),
        };
    }
    for (name, value) in core.iter() {
        builder.append(name, value);
    }
    for _ in 0..depth * if is_array { 2 } else { 1 } {
        builder.end();
    }
    builder.build()
}

#[test]
fn deep_filters_are_asked_or_refused_and_never_overflow() {
    let one = json(r#"{"a": 1}"#);
    let filter = Filter::parse(nested("$or", true, 80, &one).view()).expect("80 is allowed");
    assert!(filter.matches(one.view()));
    let refused = Filter::parse(nested("$or", true, 110, &one).view()).expect_err("too deep");
    assert_eq!(refused.code.number(), 2);
    let inner = nested("$elemMatch", false, 90, &json(r#"{"$gte": 1}"#));
    let mut filter = DocumentBuilder::new();
    filter.append("a", Value::from(&inner));
    let mut document = DocumentBuilder::new();
    document.begin_array("a");
    (0..89).for_each(|_| {
        document.push_begin_array();
    });
    document.push(Value::from(1_i32));
    (0..90).for_each(|_| {
        document.end();
    });
    let filter = Filter::parse(filter.build().view()).expect("90 is allowed");
    assert!(filter.matches(document.build().view()));
    let deep = nested("$not", false, 110, &json(r#"{"$gte": 1}"#));
    let mut filter = DocumentBuilder::new();
    filter.append("a", Value::from(&deep));
    Filter::parse(filter.build().view()).expect_err("too deep");
}

#[test]
fn hostile_patterns_are_refused_or_give_up() {
    for pattern in ["(".repeat(9000) + &")".repeat(9000), "(a{1000}){1000}".repeat(9)] {
        let mut filter = DocumentBuilder::new();
        filter.begin_document("a").append("$regex", Value::String(&pattern)).end();
        let error = Filter::parse(filter.build().view()).expect_err("too large");
        assert_eq!(error.code.number(), 51091);
    }
    let backtracking = r#"{"a": {"$regex": "^(a|a)*\\1b$"}}"#;
    let text = format!(r#"{{"a": "{}!b"}}"#, "a".repeat(40));
    let filter = Filter::parse(json(backtracking).view()).expect("it is a pattern");
    let error = filter.try_matches(json(&text).view()).expect_err("too much backtracking");
    assert_eq!(error.code.number(), 51156);
    let long = format!(r#"{{"a": {{"$regex": "{}"}}}}"#, "x".repeat(32_765));
    check_refused(&long, 51091, "longer than the limit");
    let long = format!(r#"{{"a": {{"$regex": "{}"}}}}"#, "x".repeat(32_764));
    check(&long, &[&format!(r#"{{"a": "{}"}}"#, "x".repeat(32_765))], &[r#"{"a": "x"}"#]);
}

#[test]
fn positions() {
    for (filter, document, expected) in [
        (r#"{"a": 5}"#, r#"{"a": [1, 5, 5]}"#, Some(1)),
        (r#"{"a.b": 5}"#, r#"{"a": [{"b": 1}, {"b": 5}]}"#, Some(1)),
        (r#"{"a.b": 5}"#, r#"{"a": [{"b": 1}, {"b": [1, 2, 5]}]}"#, Some(1)),
        (r#"{"a": {"$elemMatch": {"b": {"$gt": 1}}}}"#, r#"{"a": [{"b": 1}, {"b": 5}]}"#, Some(1)),
        (r#"{"_id": 1, "a": {"$gt": 2, "$lt": 9}}"#, r#"{"_id": 1, "a": [1, 3]}"#, Some(0)),
        (r#"{"a": 5}"#, r#"{"a": 5}"#, None),
        (r#"{"a": {"$ne": 5}}"#, r#"{"a": [1]}"#, None),
    ] {
        let parsed = Filter::parse(json(filter).view()).expect(filter);
        let (passes, position) = parsed.matches_position(json(document).view());
        assert!(passes, "{filter} {document}");
        assert_eq!(position, expected, "{filter} {document}");
    }
}

#[test]
fn equalities_for_an_upsert() {
    let filter = r#"{"a": 1, "$and": [{"b.c": {"$eq": 2}}, {"d": {"$in": [3]}}], "e": {"$gt": 1}}"#;
    let parsed = Filter::parse(json(filter).view()).expect(filter);
    let equalities = parsed.equalities().expect("no conflict");
    let paths: Vec<&str> = equalities.iter().map(|(path, _)| *path).collect();
    assert_eq!(paths, ["a", "b.c", "d"]);
    for filter in [r#"{"a": 1, "$and": [{"a": 2}]}"#, r#"{"a": 1, "a.b": 2}"#] {
        let parsed = Filter::parse(json(filter).view()).expect(filter);
        assert_eq!(parsed.equalities().expect_err(filter).code.number(), 54);
    }
}

#[test]
fn an_id_for_a_replacement_is_named_whole() {
    let id = |filter: &str| {
        let parsed = Filter::parse(json(filter).view()).expect(filter);
        let id = parsed.id_equality().map(|id| id.map(|id| id.to_buf()));
        id.map_err(|error| error.code.number())
    };
    assert_eq!(id(r#"{"a": 1, "a.b": 2}"#), Ok(None));
    assert_eq!(id(r#"{"a": 1, "_id": 2, "_idx.a": 1}"#), Ok(Some(Value::Int32(2).to_buf())));
    for filter in [r#"{"_id.a": 1}"#, r#"{"$and": [{"_id.a.b": {"$eq": 1}}]}"#] {
        assert_eq!(id(filter), Err(111), "{filter}");
    }
    assert_eq!(id(r#"{"_id.a": {"$gt": 1}}"#), Ok(None));
}

#[test]
fn patterns_are_charged_from_their_first_use_on() {
    let mut filter = DocumentBuilder::new();
    filter.begin_document("a").begin_array("$in");
    for number in 0..300 {
        let pattern = format!(r"\w{{3}}(a|b){number}");
        filter.push(Value::Regex(frond_doc::Regex { pattern: &pattern, options: "i" }));
    }
    filter.end().end();
    let filter = Filter::parse(filter.build().view()).unwrap();
    let charged = |bytes_max: usize| {
        let budget = MemoryBudget::new(bytes_max);
        let reservation = Reservation::new(bytes_max, Some(budget.clone()));
        let memory = RequestMemory::new(reservation, None);
        let variables = Variables::default().with_memory(memory);
        let filter = filter.clone().with_variables(variables);
        let answer = filter.try_matches(json(r#"{"a": "nothing of that"}"#).view());
        (answer.map_err(|error| error.code.number()), budget.bytes())
    };
    let (answer, bytes) = charged(16 << 20);
    assert_eq!(answer, Err(146));
    assert!(bytes <= 16 << 20, "{bytes}");
}
