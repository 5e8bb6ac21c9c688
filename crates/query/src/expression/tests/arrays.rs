//! Arrays, iteration, sets, pairs.

use super::check;

#[test]
fn arrays_are_measured_and_cut() {
    check(&[
        (r#"{"$size": "$a"}"#, "3"),
        (r#"{"$size": "$absent"}"#, "!17124"),
        (r#"{"$size": {"$literal": [1, 2]}}"#, "2"),
        (r#"{"$isArray": ["$a"]}"#, "true"),
        (r#"{"$isArray": "$i"}"#, "false"),
        (r#"{"$arrayElemAt": ["$a", 0]}"#, "3"),
        (r#"{"$arrayElemAt": ["$a", -1]}"#, "2"),
        (r#"{"$arrayElemAt": ["$a", 9]}"#, "missing"),
        (r#"{"$arrayElemAt": ["$a", -9]}"#, "missing"),
        (r#"{"$arrayElemAt": ["$n", 0]}"#, "null"),
        (r#"{"$arrayElemAt": ["$i", 0]}"#, "!28689"),
        (r#"{"$arrayElemAt": ["$a", "x"]}"#, "!28690"),
        (r#"{"$arrayElemAt": ["$a", 0.5]}"#, "!28691"),
        (r#"{"$arrayElemAt": [[{"k": "$i"}], 0]}"#, r#"{"k": 7}"#),
        (r#"{"$first": "$a"}"#, "3"),
        (r#"{"$last": "$a"}"#, "2"),
        (r#"{"$first": "$empty"}"#, "missing"),
        (r#"{"$last": "$i"}"#, "!28689"),
        (r#"{"$slice": ["$a", 2]}"#, "[3, 1]"),
        (r#"{"$slice": ["$a", -2]}"#, "[1, 2]"),
        (r#"{"$slice": ["$a", -9]}"#, "[3, 1, 2]"),
        (r#"{"$slice": ["$a", 1, 1]}"#, "[1]"),
        (r#"{"$slice": ["$a", -2, 1]}"#, "[1]"),
        (r#"{"$slice": ["$a", 9, 1]}"#, "[]"),
        (r#"{"$slice": ["$a", 0, 0]}"#, "!28729"),
        (r#"{"$slice": ["$i", 1]}"#, "!28724"),
        (r#"{"$slice": ["$a", "x"]}"#, "!28725"),
        (r#"{"$slice": ["$n", 1]}"#, "null"),
        (r#"{"$concatArrays": ["$a", [4], []]}"#, "[3, 1, 2, 4]"),
        (r#"{"$concatArrays": ["$a", "$n"]}"#, "null"),
        (r#"{"$concatArrays": ["$a", 1]}"#, "!28664"),
        (r#"{"$in": [1.0, "$a"]}"#, "true"),
        (r#"{"$in": [[2], "$mixed"]}"#, "true"),
        (r#"{"$in": ["$absent", "$mixed"]}"#, "false"),
        (r#"{"$in": [1, "$n"]}"#, "!40081"),
        (r#"{"$indexOfArray": ["$a", 2]}"#, "2"),
        (r#"{"$indexOfArray": ["$a", 3, 1]}"#, "-1"),
        (r#"{"$indexOfArray": ["$a", 2, 0, 2]}"#, "-1"),
        (r#"{"$indexOfArray": ["$n", 2]}"#, "null"),
        (r#"{"$indexOfArray": ["$i", 2]}"#, "!40090"),
        (r#"{"$reverseArray": "$a"}"#, "[2, 1, 3]"),
        (r#"{"$reverseArray": "$i"}"#, "!34435"),
        (r#"{"$range": [0, 3]}"#, "[0, 1, 2]"),
        (r#"{"$range": [5, 0, -2]}"#, "[5, 3, 1]"),
        (r#"{"$range": [0, -3]}"#, "[]"),
        (r#"{"$range": [0, 1, 0]}"#, "!34449"),
        (r#"{"$range": ["x", 1]}"#, "!34443"),
        (r#"{"$range": [0.5, 1]}"#, "!34444"),
        (r#"{"$range": [0, "x"]}"#, "!34445"),
    ]);
}

#[test]
fn elements_are_mapped_filtered_reduced_sorted() {
    check(&[
        (r#"{"$map": {"input": "$a", "in": {"$multiply": ["$$this", 2]}}}"#, "[6, 2, 4]"),
        (
            r#"{"$map": {"input": "$docs", "as": "d", "in": "$$d.b"}}"#,
            "[1, [2, 3], null, [7], null]",
        ),
        (
            r#"{"$map": {"input": "$a", "as": "x", "in": {"$map": {"input": "$a", "as": "y", "in": {"$subtract": ["$$x", "$$y"]}}}}}"#,
            "[[0, 2, 1], [-2, 0, -1], [-1, 1, 0]]",
        ),
        (r#"{"$map": {"input": "$n", "in": 1}}"#, "null"),
        (r#"{"$map": {"input": 1, "in": 1}}"#, "!16883"),
        (r#"{"$map": {"in": 1}}"#, "!16880"),
        (r#"{"$map": {"input": []}}"#, "!16882"),
        (r#"{"$map": {"input": [], "in": 1, "x": 1}}"#, "!16879"),
        (r#"{"$map": {"input": [], "as": "Big", "in": 1}}"#, "!9"),
        (r#"{"$filter": {"input": "$a", "cond": {"$gt": ["$$this", 1]}}}"#, "[3, 2]"),
        (r#"{"$filter": {"input": "$a", "as": "x", "cond": "$$x", "limit": 1}}"#, "[3]"),
        (r#"{"$filter": {"input": "$a", "cond": 1, "limit": 0}}"#, "!327392"),
        (r#"{"$filter": {"input": 1, "cond": 1}}"#, "!28651"),
        (r#"{"$filter": {"cond": 1}}"#, "!28648"),
        (r#"{"$filter": {"input": []}}"#, "!28650"),
        (
            r#"{"$reduce": {"input": "$a", "initialValue": 10, "in": {"$add": ["$$value", "$$this"]}}}"#,
            "16",
        ),
        (
            r#"{"$reduce": {"input": "$a", "initialValue": [], "in": {"$concatArrays": ["$$value", ["$$this"]]}}}"#,
            "[3, 1, 2]",
        ),
        (r#"{"$reduce": {"input": "$n", "initialValue": 0, "in": 1}}"#, "null"),
        (r#"{"$reduce": {"input": 1, "initialValue": 0, "in": 1}}"#, "!40080"),
        (r#"{"$reduce": {"input": [], "in": 1}}"#, "!40078"),
        (r#"{"$sortArray": {"input": "$a", "sortBy": 1}}"#, "[1, 2, 3]"),
        (r#"{"$sortArray": {"input": "$a", "sortBy": -1}}"#, "[3, 2, 1]"),
        (
            r#"{"$sortArray": {"input": [{"k": 2, "v": 1}, {"k": 1}, {"k": 2, "v": 0}], "sortBy": {"k": -1, "v": 1}}}"#,
            r#"[{"k": 2, "v": 0}, {"k": 2, "v": 1}, {"k": 1}]"#,
        ),
        (r#"{"$sortArray": {"input": "$i", "sortBy": 1}}"#, "!2942504"),
        (r#"{"$sortArray": {"input": [], "sortBy": 2}}"#, "!2942507"),
    ]);
}

#[test]
fn sets_ignore_order_and_repetition() {
    check(&[
        (r#"{"$setUnion": ["$a", [3.0, 5, 1]]}"#, "[1, 2, 3, 5]"),
        (r#"{"$setUnion": ["$a", "$n"]}"#, "null"),
        (r#"{"$setUnion": ["$a", 1]}"#, "!17043"),
        (r#"{"$setIntersection": ["$a", [2, 3, 3, 9]]}"#, "[2, 3]"),
        (r#"{"$setIntersection": [1]}"#, "!17047"),
        (r#"{"$setDifference": [[3, 1, 3, 2], [1]]}"#, "[3, 2]"),
        (r#"{"$setDifference": [1, []]}"#, "!17048"),
        (r#"{"$setDifference": [[], 1]}"#, "!17049"),
        (r#"{"$setEquals": ["$a", [1, 2, 3, 3], [3, 2, 1.0]]}"#, "true"),
        (r#"{"$setEquals": ["$a", [1]]}"#, "false"),
        (r#"{"$setEquals": ["$a", "$n"]}"#, "!17044"),
        (r#"{"$setIsSubset": [[1, 1], "$a"]}"#, "true"),
        (r#"{"$setIsSubset": [1, "$a"]}"#, "!17046"),
        (r#"{"$setIsSubset": ["$a", 1]}"#, "!17042"),
        (r#"{"$anyElementTrue": [[0, null, 1]]}"#, "true"),
        (r#"{"$anyElementTrue": "$i"}"#, "!17041"),
        (r#"{"$allElementsTrue": [[]]}"#, "true"),
        (r#"{"$allElementsTrue": [[1, 0]]}"#, "false"),
        (r#"{"$allElementsTrue": "$i"}"#, "!17040"),
    ]);
}

#[test]
fn documents_become_arrays_and_back() {
    check(&[
        (r#"{"$objectToArray": "$o"}"#, r#"[{"k": "x", "v": 1}, {"k": "y", "v": {"z": "deep"}}]"#),
        (r#"{"$objectToArray": "$n"}"#, "null"),
        (r#"{"$objectToArray": "$i"}"#, "!40390"),
        (r#"{"$arrayToObject": [[["a", 1], ["b", 2], ["a", 3]]]}"#, r#"{"a": 3, "b": 2}"#),
        (r#"{"$arrayToObject": [[{"k": "a", "v": "$i"}]]}"#, r#"{"a": 7}"#),
        (r#"{"$arrayToObject": "$empty"}"#, "{}"),
        (r#"{"$arrayToObject": "$i"}"#, "!40386"),
        (r#"{"$arrayToObject": "$a"}"#, "!40398"),
        (r#"{"$arrayToObject": [[["a"]]]}"#, "!40397"),
        (r#"{"$arrayToObject": [[[1, 2]]]}"#, "!40395"),
        (r#"{"$arrayToObject": [[{"k": 1, "v": 2}]]}"#, "!40394"),
        (r#"{"$arrayToObject": [[{"k": 1}]]}"#, "!40392"),
        (r#"{"$arrayToObject": [[{"k": 1, "x": 1}]]}"#, "!40393"),
        (r#"{"$arrayToObject": [[["a", 1], {"k": "b", "v": 2}]]}"#, "!40391"),
        (r#"{"$arrayToObject": [[{"k": "b", "v": 2}, ["a", 1]]]}"#, "!40396"),
        (r#"{"$arrayToObject": [[["a\u0000b", 1]]]}"#, "!4940400"),
        (r#"{"$zip": {"inputs": ["$a", ["x", "y"]]}}"#, r#"[[3, "x"], [1, "y"]]"#),
        (
            r#"{"$zip": {"inputs": ["$a", ["x"]], "useLongestLength": true, "defaults": [0, "-"]}}"#,
            r#"[[3, "x"], [1, "-"], [2, "-"]]"#,
        ),
        (r#"{"$zip": {"inputs": ["$a", "$n"]}}"#, "null"),
        (r#"{"$zip": {"inputs": []}}"#, "!34465"),
        (r#"{"$zip": {"inputs": ["$a"], "defaults": [1]}}"#, "!34466"),
        (r#"{"$zip": {"inputs": ["$i"]}}"#, "!34468"),
    ]);
}
