//! Stages that look at many documents at once: windows, buckets, gaps, graphs, merges, levels.
//! Tables: stages over the items of `pipelines`, or over `$documents`, and what comes out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use frond_doc::{DocumentBuf, document};
use frond_query::expression::Variables;
use frond_query::memory::RequestMemory;
use frond_query::pipeline::Pipeline;
use frond_store::budget::Reservation;

use crate::pipelines::{canonical, check, json, list, memory, run_on};

/// `{$documents: ...}` and stages after it, with what comes out.
fn over(documents: &str, table: &[(&str, &str)]) {
    for (stages, expected) in table {
        check(&[(&format!("[{{\"$documents\": {documents}}}, {stages}]"), expected)]);
    }
}

const SALES: &str = r#"[
    {"t": 1, "s": "a", "n": 4}, {"t": 2, "s": "b", "n": 7}, {"t": 3, "s": "a", "n": 2},
    {"t": 4, "s": "a", "n": 2}, {"t": 5, "s": "b", "n": null}
]"#;

#[test]
fn windows_of_documents_and_ranges() {
    over(
        SALES,
        &[
            (
                r#"{"$setWindowFields": {"partitionBy": "$s", "sortBy": {"t": 1}, "output": {
                "sum": {"$sum": "$n", "window": {"documents": ["unbounded", "current"]}}}}},
               {"$project": {"t": 1, "sum": 1}}"#,
                r#"[{"t": 1, "sum": 4}, {"t": 3, "sum": 6}, {"t": 4, "sum": 8}, {"t": 2, "sum": 7}, {"t": 5, "sum": 7}]"#,
            ),
            (
                r#"{"$setWindowFields": {"sortBy": {"t": 1}, "output": {
                "x": {"$push": "$t", "window": {"documents": [-1, 1]}},
                "y": {"$push": "$t", "window": {"documents": [2, 3]}}}}},
               {"$project": {"x": 1, "y": 1}}"#,
                r#"[{"x": [1, 2], "y": [3, 4]}, {"x": [1, 2, 3], "y": [4, 5]}, {"x": [2, 3, 4], "y": [5]},
                {"x": [3, 4, 5], "y": []}, {"x": [4, 5], "y": []}]"#,
            ),
            (
                r#"{"$setWindowFields": {"sortBy": {"n": 1}, "output": {
                "r": {"$rank": {}}, "d": {"$denseRank": {}}, "no": {"$documentNumber": {}}}}},
               {"$project": {"t": 1, "r": 1, "d": 1, "no": 1}}"#,
                r#"[{"t": 5, "r": 1, "d": 1, "no": 1}, {"t": 3, "r": 2, "d": 2, "no": 2}, {"t": 4, "r": 2, "d": 2, "no": 3},
                {"t": 1, "r": 4, "d": 3, "no": 4}, {"t": 2, "r": 5, "d": 4, "no": 5}]"#,
            ),
            (
                r#"{"$setWindowFields": {"sortBy": {"t": 1}, "output": {
                "p": {"$shift": {"output": "$n", "by": -1, "default": "none"}},
                "c": {"$count": {}, "window": {"range": [-1, 1]}}}}},
               {"$project": {"p": 1, "c": 1}}"#,
                r#"[{"p": "none", "c": 2}, {"p": 4, "c": 3}, {"p": 7, "c": 3}, {"p": 2, "c": 3}, {"p": 2, "c": 2}]"#,
            ),
            (
                r#"{"$setWindowFields": {"sortBy": {"t": 1}, "output": {"f": {"$locf": "$n"}, "a.b": {"$max": "$t"}}}},
               {"$project": {"f": 1, "a": 1}}"#,
                r#"[{"f": 4, "a": {"b": 5}}, {"f": 7, "a": {"b": 5}}, {"f": 2, "a": {"b": 5}}, {"f": 2, "a": {"b": 5}}, {"f": 2, "a": {"b": 5}}]"#,
            ),
        ],
    );
}

#[test]
fn series_of_numbers_and_dates() {
    let points = r#"[{"x": 0, "y": 0}, {"x": 2, "y": 4}, {"x": 3, "y": null}, {"x": 4, "y": 8}]"#;
    over(
        points,
        &[
            (
                r#"{"$match": {"y": {"$ne": null}}}, {"$setWindowFields": {"sortBy": {"x": 1}, "output": {
                "d": {"$derivative": {"input": "$y"}, "window": {"documents": [-1, 0]}},
                "i": {"$integral": {"input": "$y"}, "window": {"documents": ["unbounded", "current"]}},
                "e": {"$expMovingAvg": {"input": "$y", "alpha": 0.5}}}}},
               {"$project": {"d": 1, "i": 1, "e": 1}}"#,
                r#"[{"d": null, "i": 0, "e": 0.0}, {"d": 2.0, "i": 4.0, "e": 2.0}, {"d": 2.0, "i": 16.0, "e": 5.0}]"#,
            ),
            (
                r#"{"$fill": {"sortBy": {"x": 1}, "output": {"y": {"method": "linear"}, "z": {"value": "$x"}}}}"#,
                r#"[{"x": 0, "y": 0, "z": 0}, {"x": 2, "y": 4, "z": 2}, {"x": 3, "y": 6.0, "z": 3}, {"x": 4, "y": 8, "z": 4}]"#,
            ),
            (
                r#"{"$fill": {"output": {"y": {"value": 9}}}}, {"$match": {"y": 9}}"#,
                r#"[{"x": 3, "y": 9}]"#,
            ),
            (
                r#"{"$fill": {"output": {"y": {"method": "locf"}}}}, {"$project": {"y": 1}}"#,
                r#"[{"y": 0}, {"y": 4}, {"y": 4}, {"y": 8}]"#,
            ),
            // Values between the ends aren't looked at.
            (
                r#"{"$setWindowFields": {"sortBy": {"x": 1}, "output": {
                "d": {"$derivative": {"input": "$y"}, "window": {"documents": ["unbounded", "unbounded"]}}}}},
               {"$limit": 1}, {"$project": {"d": 1}}"#,
                r#"[{"d": 2.0}]"#,
            ),
        ],
    );
    let days = r#"[{"d": {"$date": "2024-01-31T00:00:00Z"}, "v": 1}, {"d": {"$date": "2024-02-29T00:00:00Z"}, "v": 2},
        {"d": {"$date": "2024-04-01T00:00:00Z"}, "v": 4}]"#;
    over(
        days,
        &[(
            r#"{"$setWindowFields": {"sortBy": {"d": 1}, "output": {
            "s": {"$sum": "$v", "window": {"range": [-1, 0], "unit": "month"}}}}}, {"$project": {"s": 1}}"#,
            r#"[{"s": 1}, {"s": 3}, {"s": 4}]"#,
        )],
    );
}

/// Each step is MongoDB's: a decimal among the numbers makes decimals, and what is an average, is
/// one of decimals throughout.
#[test]
fn series_have_the_types_of_their_numbers() {
    let points = r#"[{"x": 0, "y": {"$numberDecimal": "1.1"}}, {"x": 2, "y": {"$numberDecimal": "1.3"}}, {"x": 3},
        {"x": 5, "y": 2}]"#;
    let series = r#"{"$match": {"y": {"$exists": true}}}, {"$setWindowFields": {"sortBy": {"x": 1}, "output": {
        "d": {"$derivative": {"input": "$y"}, "window": {"documents": [-1, 0]}},
        "i": {"$integral": {"input": "$y"}, "window": {"documents": [-1, 0]}},
        "e": {"$expMovingAvg": {"input": "$y", "alpha": 0.1}}}}},
        {"$project": {"d": 1, "i": 1, "e": 1}}"#;
    over(
        points,
        &[
            (
                series,
                r#"[{"d": null, "i": 0, "e": {"$numberDecimal": "1.1"}},
                {"d": {"$numberDecimal": "0.1"}, "i": {"$numberDecimal": "2.4"}, "e": {"$numberDecimal": "1.1200000000000000"}},
                {"d": {"$numberDecimal": "0.2333333333333333333333333333333333"}, "i": {"$numberDecimal": "4.95"},
                 "e": {"$numberDecimal": "1.2080000000000000000000000000000"}}]"#,
            ),
            (
                r#"{"$fill": {"sortBy": {"x": 1}, "output": {"y": {"method": "linear"}}}}, {"$match": {"x": 3}}"#,
                r#"[{"x": 3, "y": {"$numberDecimal": "1.533333333333333333333333333333333"}}]"#,
            ),
        ],
    );
    // 0.1 and 0.2 have sixteen digits, and decimals fifteen of them.
    over(
        r#"[{"x": 0, "y": 0.1}, {"x": 1, "y": 0.2}, {"x": 2, "y": 10}]"#,
        &[(
            r#"{"$setWindowFields": {"sortBy": {"x": 1}, "output": {"e": {"$expMovingAvg": {"input": "$y", "N": 2}}}}},
            {"$project": {"e": 1}}"#,
            r#"[{"e": 0.1}, {"e": 0.16666666666666666}, {"e": 6.722222222222222}]"#,
        )],
    );
    // Beside NaN there is no area; where it is in, there is nothing else.
    over(
        r#"[{"x": 0, "y": {"$numberDouble": "NaN"}}, {"x": 1, "y": 2}, {"x": 3, "y": 4}]"#,
        &[(
            r#"{"$setWindowFields": {"sortBy": {"x": 1}, "output": {
            "i": {"$integral": {"input": "$y"}, "window": {"documents": [-1, 0]}}}}}, {"$skip": 1}, {"$project": {"i": 1}}"#,
            r#"[{"i": {"$numberDouble": "NaN"}}, {"i": 6.0}]"#,
        )],
    );
    for (points, code) in [
        (r#"[{"x": "a", "y": 1}]"#, "!14"),
        (r#"[{"x": 1, "y": "a"}]"#, "!14"),
        (r#"[{"x": 1, "y": 1}, {"x": {"$date": "2021-01-01T00:00:00Z"}}]"#, "!14"),
        (r#"[{"x": 1, "y": 1}, {"x": 1.0}]"#, "!6050106"),
    ] {
        over(
            points,
            &[(r#"{"$fill": {"sortBy": {"x": 1}, "output": {"y": {"method": "linear"}}}}"#, code)],
        );
    }
}

#[test]
fn wrong_windows_are_refused() {
    for (function, code) in [
        (r#"{"$rank": {}, "window": {"documents": [0, 1]}}"#, "!5371601"),
        (r#"{"$rank": {"a": 1}}"#, "!5371603"),
        (r#"{"$sum": "$n", "window": {"documents": [1, 0]}}"#, "!5339900"),
        (r#"{"$sum": "$n", "window": {"documents": [1]}}"#, "!9"),
        (r#"{"$sum": "$s", "window": {"range": [0, 1], "unit": "day"}}"#, "!5429513"),
        (r#"{"$nope": "$n"}"#, "!9"),
        (r#"{"$derivative": {"input": "$n"}}"#, "!9"),
        (
            r#"{"$derivative": {"input": "$n", "unit": "month"}, "window": {"documents": [0, 1]}}"#,
            "!5490710",
        ),
        (r#"{"$derivative": {"input": "$n"}, "window": {"documents": [0, 1]}}"#, "!5624903"),
        (r#"{"$derivative": {"input": "a"}, "window": {"documents": [0, 1]}}"#, "!14"),
        (r#"{"$integral": {"input": "a"}, "window": {"documents": [0, 1]}}"#, "!5423900"),
        (r#"{"$linearFill": "$n", "window": {"documents": [0, 1]}}"#, "!9"),
        (r#"{"$expMovingAvg": {"input": "$n", "N": 0}}"#, "!9"),
    ] {
        let stage = format!(
            r#"{{"$setWindowFields": {{"sortBy": {{"t": 1}}, "output": {{"x": {function}}}}}}}"#
        );
        over(SALES, &[(&stage, code)]);
    }
    for (value, code) in
        [(r#"{"$date": "2021-01-01T00:00:00Z"}"#, "!5429413"), (r#""x""#, "!5429414")]
    {
        let stage = r#"{"$setWindowFields": {"sortBy": {"t": 1},
            "output": {"x": {"$sum": "$t", "window": {"range": [0, 1]}}}}}"#;
        over(&format!(r#"[{{"t": {value}}}]"#), &[(stage, code)]);
    }
    over(
        SALES,
        &[
            (r#"{"$setWindowFields": {"output": {"x": {"$rank": {}}}}}"#, "!5371602"),
            (
                r#"{"$setWindowFields": {"output": {"x": {"$sum": "$n", "window": {"documents": [0, 0]}}}}}"#,
                "!5339901",
            ),
            (
                r#"{"$setWindowFields": {"sortBy": {"t": -1}, "output": {"x": {"$sum": "$n", "window": {"range": [0, 0]}}}}}"#,
                "!5339902",
            ),
            (r#"{"$setWindowFields": {"partitionBy": [1], "output": {"x": {"$sum": 1}}}}"#, "!14"),
        ],
    );
}

#[test]
fn gaps_are_filled() {
    let numbers = r#"[{"g": "a", "v": 1}, {"g": "a", "v": 4}, {"g": "b", "v": 2}, {"g": "b"}]"#;
    over(
        numbers,
        &[
            (
                r#"{"$densify": {"field": "v", "range": {"step": 1, "bounds": "full"}}}"#,
                r#"[{"g": "b"}, {"g": "a", "v": 1}, {"g": "b", "v": 2}, {"v": 3}, {"g": "a", "v": 4}]"#,
            ),
            (
                r#"{"$densify": {"field": "v", "partitionByFields": ["g"], "range": {"step": 2, "bounds": "partition"}}}"#,
                r#"[{"g": "a", "v": 1}, {"g": "a", "v": 3}, {"g": "a", "v": 4}, {"g": "b"}, {"g": "b", "v": 2}]"#,
            ),
            (
                r#"{"$densify": {"field": "v", "range": {"step": 2, "bounds": [0, 4]}}}"#,
                r#"[{"g": "b"}, {"v": 0}, {"g": "a", "v": 1}, {"g": "b", "v": 2}, {"g": "a", "v": 4}]"#,
            ),
            (r#"{"$densify": {"field": "g", "range": {"step": 2, "bounds": "full"}}}"#, "!5733201"),
            (r#"{"$densify": {"field": "v", "range": {"step": 0, "bounds": "full"}}}"#, "!5733401"),
            (
                r#"{"$densify": {"field": "v", "range": {"step": 1, "bounds": "partition"}}}"#,
                "!5733408",
            ),
            (
                r#"{"$densify": {"field": "v", "range": {"step": 1, "unit": "day", "bounds": "full"}}}"#,
                "!6053600",
            ),
            (
                r#"{"$densify": {"field": "v", "range": {"step": 0.000001, "bounds": [0.0, 4.0]}}}"#,
                "!5897900",
            ),
        ],
    );
    let dates =
        r#"[{"d": {"$date": "2024-01-31T00:00:00Z"}}, {"d": {"$date": "2024-03-31T00:00:00Z"}}]"#;
    over(
        dates,
        &[(
            r#"{"$densify": {"field": "d", "range": {"step": 1, "unit": "month", "bounds": "full"}}}"#,
            r#"[{"d": {"$date": "2024-01-31T00:00:00Z"}}, {"d": {"$date": "2024-02-29T00:00:00Z"}}, {"d": {"$date": "2024-03-29T00:00:00Z"}}, {"d": {"$date": "2024-03-31T00:00:00Z"}}]"#,
        )],
    );
}

#[test]
fn buckets_of_equal_size() {
    let numbers = r#"[{"v": 1}, {"v": 2}, {"v": 2}, {"v": 3}, {"v": 9}]"#;
    over(
        numbers,
        &[
            (
                r#"{"$bucketAuto": {"groupBy": "$v", "buckets": 2}}"#,
                r#"[{"_id": {"min": 1, "max": 3}, "count": 3}, {"_id": {"min": 3, "max": 9}, "count": 2}]"#,
            ),
            (
                r#"{"$bucketAuto": {"groupBy": "$v", "buckets": 2, "granularity": "R5", "output": {"s": {"$sum": "$v"}}}}"#,
                r#"[{"_id": {"min": 0.63, "max": 2.5}, "s": 5}, {"_id": {"min": 2.5, "max": 10.0}, "s": 12}]"#,
            ),
            (
                r#"{"$bucketAuto": {"groupBy": "$v", "buckets": 9, "output": {"all": {"$push": "$v"}}}}"#,
                r#"[{"_id": {"min": 1, "max": 2}, "all": [1]}, {"_id": {"min": 2, "max": 3}, "all": [2, 2]},
                {"_id": {"min": 3, "max": 9}, "all": [3]}, {"_id": {"min": 9, "max": 9}, "all": [9]}]"#,
            ),
            (r#"{"$bucketAuto": {"groupBy": "$v", "buckets": 0}}"#, "!40243"),
            (r#"{"$bucketAuto": {"groupBy": "$v", "buckets": 1.5}}"#, "!40242"),
            (r#"{"$bucketAuto": {"groupBy": "v", "buckets": 1}}"#, "!40239"),
            (r#"{"$bucketAuto": {"groupBy": "$w", "buckets": 1, "granularity": "R5"}}"#, "!40258"),
            (r#"{"$bucketAuto": {"groupBy": "$v", "buckets": 1, "granularity": "R6"}}"#, "!40257"),
        ],
    );
}

#[test]
fn levels_are_kept_or_pruned() {
    let documents =
        r#"[{"l": 1, "in": {"l": 5, "x": 1}, "all": [{"l": 1, "y": 2}, {"l": 9}, 3]}, {"l": 7}]"#;
    over(
        documents,
        &[
            (
                r#"{"$redact": {"$cond": [{"$lt": ["$l", 3]}, "$$DESCEND", "$$PRUNE"]}}"#,
                r#"[{"l": 1, "all": [{"l": 1, "y": 2}, 3]}]"#,
            ),
            (
                r#"{"$redact": {"$cond": [{"$eq": ["$l", 1]}, "$$KEEP", "$$PRUNE"]}}"#,
                r#"[{"l": 1, "in": {"l": 5, "x": 1}, "all": [{"l": 1, "y": 2}, {"l": 9}, 3]}]"#,
            ),
            (
                r#"{"$redact": {"$cond": [{"$eq": ["$$ROOT.l", 7]}, "$$KEEP", "$$PRUNE"]}}"#,
                r#"[{"l": 7}]"#,
            ),
            (r#"{"$redact": "$l"}"#, "!17053"),
            (r#"{"$set": {"x": "$$KEEP"}}"#, "!17276"),
        ],
    );
}

#[test]
fn graphs_are_walked() {
    let memory = memory();
    memory.set(
        "staff",
        list(
            r#"[{"_id": 1, "name": "a"}, {"_id": 2, "name": "b", "boss": "a"}, {"_id": 3, "name": "c", "boss": "b"},
                {"_id": 4, "name": "d", "boss": ["c", "a"]}, {"_id": 5, "name": "e", "boss": "e"}]"#,
        ),
    );
    let check = |options: &str, start: &str, expected: &str| {
        let stages = format!(
            r#"[{{"$limit": 1}}, {{"$graphLookup": {{"from": "staff", "startWith": {start},
                "connectFromField": "boss", "connectToField": "name", "as": "up"{options}}}}},
                {{"$unwind": "$up"}}, {{"$replaceWith": "$up"}}, {{"$unset": ["boss", "name"]}}]"#
        );
        let found = run_on(&memory, &stages).unwrap_or_else(|error| panic!("{stages}: {error}"));
        assert_eq!(canonical(&found), canonical(&list(expected)), "{stages}");
    };
    check("", r#""d""#, r#"[{"_id": 4}, {"_id": 1}, {"_id": 3}, {"_id": 2}]"#);
    check(r#", "maxDepth": 1"#, r#""d""#, r#"[{"_id": 4}, {"_id": 1}, {"_id": 3}]"#);
    check(
        r#", "depthField": "n""#,
        r#"["c", "e"]"#,
        r#"[{"_id": 3, "n": {"$numberLong": "0"}}, {"_id": 5, "n": {"$numberLong": "0"}}, {"_id": 2, "n": {"$numberLong": "1"}}, {"_id": 1, "n": {"$numberLong": "2"}}]"#,
    );
    check(
        r#", "restrictSearchWithMatch": {"_id": {"$ne": 3}}"#,
        r#""d""#,
        r#"[{"_id": 4}, {"_id": 1}]"#,
    );
    for (options, code) in [
        (r#"{"from": "staff"}"#, 40105),
        (r#"{"from": 5}"#, 9),
        (r#"{"maxDepth": -1}"#, 40101),
        (r#"{"nope": 1}"#, 40104),
    ] {
        let error = run_on(&memory, &format!(r#"[{{"$graphLookup": {options}}}]"#)).unwrap_err();
        assert_eq!(error.code.number(), code, "{options}");
    }
}

#[test]
fn documents_are_merged_into_collections() {
    let target = r#"[{"_id": 1, "a": 1, "b": 1}, {"_id": 2, "a": 2}]"#;
    let source =
        r#"[{"$documents": [{"_id": 1, "a": 10, "c": 1}, {"_id": 3, "a": 30}]}, {"$merge": "#;
    let both = r#"{"_id": 2, "a": 2}"#;
    for (options, expected) in [
        (
            r#""t""#,
            format!(r#"[{{"_id": 1, "a": 10, "b": 1, "c": 1}}, {both}, {{"_id": 3, "a": 30}}]"#),
        ),
        (
            r#"{"into": "t", "whenMatched": "replace", "whenNotMatched": "discard"}"#,
            format!(r#"[{{"_id": 1, "a": 10, "c": 1}}, {both}]"#),
        ),
        (
            r#"{"into": "t", "whenMatched": "keepExisting"}"#,
            format!(r#"[{{"_id": 1, "a": 1, "b": 1}}, {both}, {{"_id": 3, "a": 30}}]"#),
        ),
        (
            r#"{"into": "t", "let": {"plus": "$c"}, "whenMatched": [{"$set": {"a": {"$add": ["$a", "$$new.a", "$$plus"]}}}], "whenNotMatched": "discard"}"#,
            format!(r#"[{{"_id": 1, "a": 12, "b": 1, "new": 1}}, {both}]"#)
                .replace(r#", "new": 1"#, ""),
        ),
    ] {
        // `new` is bound by the stage unless `let` says otherwise.
        let memory = memory();
        memory.set("t", list(target));
        let stages = format!("{source}{options}}}]");
        let found = run_on(&memory, &stages).unwrap_or_else(|error| panic!("{stages}: {error}"));
        assert!(found.is_empty());
        assert_eq!(canonical(&memory.all("t")), canonical(&list(&expected)), "{stages}");
    }
    for (options, code) in [
        (r#"{"into": "t", "whenMatched": "fail"}"#, 11000),
        (r#"{"into": "t", "whenNotMatched": "fail"}"#, 13113),
        (r#"{"into": "t", "whenMatched": "fail", "whenNotMatched": "discard"}"#, 51181),
        (r#"{"into": "t", "on": []}"#, 51187),
        (r#"{"into": "t", "on": "zz"}"#, 51132),
        (r#"{"into": "t", "whenMatched": [{"$match": {}}]}"#, 72),
        (r#"{"into": "t", "let": {"x": 1}, "whenMatched": "merge"}"#, 51199),
        (r#"{"into": "t", "nope": 1}"#, 40415),
        (r#"{"into": 5}"#, 51178),
        ("5", 51182),
    ] {
        let memory = memory();
        memory.set("t", list(target));
        let error = run_on(&memory, &format!("{source}{options}}}]")).unwrap_err();
        assert_eq!(error.code.number(), code, "{options}: {error}");
    }
}

/// The results of `$mergeObjects` while documents enter, leave, and enter again.
#[test]
fn objects_are_merged_over_windows() {
    let documents = r#"[{"t": 1, "o": {"a": 1, "b": 1}}, {"t": 2, "o": {"b": 2, "c": 2}},
        {"t": 3}, {"t": 4, "o": {"a": 4}}, {"t": 9, "o": {"c": 9}}]"#;
    let stages = |window: &str| {
        format!(
            r#"{{"$setWindowFields": {{"sortBy": {{"t": 1}}, "output": {{
                "m": {{"$mergeObjects": "$o", "window": {window}}}}}}}}}, {{"$project": {{"m": 1}}}}"#
        )
    };
    for (window, expected) in [
        (
            r#"{"documents": ["unbounded", "current"]}"#,
            r#"[{"m": {"a": 1, "b": 1}}, {"m": {"a": 1, "b": 2, "c": 2}},
                {"m": {"a": 1, "b": 2, "c": 2}}, {"m": {"a": 4, "b": 2, "c": 2}},
                {"m": {"a": 4, "b": 2, "c": 9}}]"#,
        ),
        (
            r#"{"documents": [-1, 0]}"#,
            r#"[{"m": {"a": 1, "b": 1}}, {"m": {"a": 1, "b": 2, "c": 2}},
                {"m": {"b": 2, "c": 2}}, {"m": {"a": 4}}, {"m": {"a": 4, "c": 9}}]"#,
        ),
        (
            r#"{"range": [-1, 0]}"#,
            r#"[{"m": {"a": 1, "b": 1}}, {"m": {"a": 1, "b": 2, "c": 2}},
                {"m": {"b": 2, "c": 2}}, {"m": {"a": 4}}, {"m": {"c": 9}}]"#,
        ),
        (
            r#"{"documents": ["unbounded", "unbounded"]}"#,
            &format!("[{}]", [r#"{"m": {"a": 4, "b": 2, "c": 9}}"#; 5].join(", ")),
        ),
    ] {
        over(documents, &[(&stages(window), expected)]);
    }
}

/// Runs `$mergeObjects` over a window of 3,000 documents; how often it asked whether to go on.
fn checks_over(window: &str) -> usize {
    let checks = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&checks);
    let go_on = move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    };
    let memory = RequestMemory::new(Reservation::new(1 << 30, None), Some(Arc::new(go_on)));
    let variables = Variables::default().with_memory(memory);
    let stages = json(&format!(
        r#"{{"v": [{{"$setWindowFields": {{"sortBy": {{"_id": 1}}, "output": {{
            "m": {{"$mergeObjects": "$$ROOT", "window": {window}}}}}}}}}]}}"#
    ));
    let stages = stages.get("v").and_then(|value| value.as_array()).expect("an array");
    let input: Vec<DocumentBuf> = (0..3_000).map(|number| document! { "_id": number }).collect();
    let made = Pipeline::parse(stages)
        .expect("parses")
        .run(Box::new(input.into_iter().map(Ok)), variables, self::memory())
        .expect("runs")
        .collect::<Result<Vec<_>, _>>()
        .expect("goes on");
    assert_eq!(made.len(), 3_000);
    checks.load(Ordering::Relaxed)
}

/// 4,500,000 merges can be stopped; the same window for each document is merged once.
#[test]
fn a_window_that_is_gone_through_again_can_be_stopped() {
    let (again, once) = (
        checks_over(r#"{"documents": ["current", "unbounded"]}"#),
        checks_over(r#"{"documents": ["unbounded", "unbounded"]}"#),
    );
    assert!(400 < again, "asked {again} times");
    assert!(once < 100, "asked {once} times");
}
