//! Goal: every accumulator gives MongoDB's answer over values of every kind, and MongoDB's code for
//! values that it doesn't take. Windows give the same (`a_window_is_a_group_of_what_is_in_it`).

use super::check;
use crate::accumulator::{Place, features};

/// The kind of value that the row is about, the accumulator, documents, and the result or `!code`.
type Row = (&'static str, &'static str, &'static str, &'static str);

/// Values of many kinds, one of them a number.
const MIXED: &str =
    r#"[{"v": null}, {}, {"v": "x"}, {"v": 4}, {"v": [9]}, {"v": {"b": 1}}, {"v": true}]"#;
const NULL: &str = r#"[{"v": null}]"#;
const MISSING: &str = "[{}]";
const ARRAYS: &str = r#"[{"v": [5, 1]}, {"v": [2]}]"#;
const NAN: &str = r#"[{"v": 1}, {"v": {"$numberDouble": "NaN"}}]"#;
const INTS: &str = r#"[{"v": 2147483647}, {"v": 1}]"#;
const LONGS: &str =
    r#"[{"v": {"$numberLong": "9223372036854775807"}}, {"v": {"$numberLong": "1"}}]"#;
const LETTERS: &str = r#"[{"v": "é"}, {"v": "z"}, {"v": "日"}]"#;
const NONE: &str = "[]";

#[rustfmt::skip]
const TABLES: &[(&str, &[Row])] = &[
    ("$sum", &[
        ("plain", r#"{"$sum": "$v"}"#, MIXED, "4"),
        ("plain", r#"{"$sum": 1}"#, MIXED, "7"),
        ("null", r#"{"$sum": "$v"}"#, NULL, "0"),
        ("missing", r#"{"$sum": "$v"}"#, MISSING, "0"),
        ("missing", r#"{"$sum": "$v"}"#, NONE, "0"),
        ("type", r#"{"$sum": ["$v", 1]}"#, NULL, "!40237"),
        ("type", r#"{"$sum": {"$foo": 1}}"#, NULL, "!168"),
        ("array", r#"{"$sum": "$v"}"#, ARRAYS, "0"),
        ("bound", r#"{"$sum": "$v"}"#, INTS, r#"{"$numberLong": "2147483648"}"#),
        ("bound", r#"{"$sum": "$v"}"#, LONGS, r#"{"$numberDouble": "9223372036854775808"}"#),
        ("bound", r#"{"$sum": "$v"}"#, r#"[{"v": 0.1}, {"v": 0.2}, {"v": 0.3}]"#, r#"{"$numberDouble": "0.6"}"#),
        ("nan", r#"{"$sum": "$v"}"#, NAN, r#"{"$numberDouble": "NaN"}"#),
    ]),
    ("$avg", &[
        ("plain", r#"{"$avg": "$v"}"#, r#"[{"v": 1}, {"v": 2}, {"v": "x"}]"#, r#"{"$numberDouble": "1.5"}"#),
        ("plain", r#"{"$avg": "$v"}"#, MIXED, r#"{"$numberDouble": "4.0"}"#),
        ("null", r#"{"$avg": "$v"}"#, NULL, "null"),
        ("missing", r#"{"$avg": "$v"}"#, MISSING, "null"),
        ("missing", r#"{"$avg": "$v"}"#, NONE, "null"),
        ("type", r#"{"$avg": []}"#, NULL, "!40237"),
        ("array", r#"{"$avg": "$v"}"#, ARRAYS, "null"),
        ("bound", r#"{"$avg": "$v"}"#, INTS, r#"{"$numberDouble": "1073741824.0"}"#),
        ("nan", r#"{"$avg": "$v"}"#, NAN, r#"{"$numberDouble": "NaN"}"#),
    ]),
    ("$min", &[
        ("plain", r#"{"$min": "$v"}"#, MIXED, "4"),
        ("null", r#"{"$min": "$v"}"#, NULL, "null"),
        ("missing", r#"{"$min": "$v"}"#, MISSING, "null"),
        ("type", r#"{"$min": [1, 2]}"#, NULL, "!40237"),
        ("array", r#"{"$min": "$v"}"#, ARRAYS, "[2]"),
        ("bound", r#"{"$min": "$v"}"#, r#"[{"v": {"$numberDouble": "9223372036854775808"}}, {"v": {"$numberLong": "9223372036854775807"}}]"#, r#"{"$numberLong": "9223372036854775807"}"#),
        ("nan", r#"{"$min": "$v"}"#, NAN, r#"{"$numberDouble": "NaN"}"#),
        ("unicode", r#"{"$min": "$v"}"#, LETTERS, r#""z""#),
    ]),
    ("$max", &[
        ("plain", r#"{"$max": "$v"}"#, MIXED, "true"),
        ("null", r#"{"$max": "$v"}"#, NULL, "null"),
        ("missing", r#"{"$max": "$v"}"#, MISSING, "null"),
        ("type", r#"{"$max": [1, 2]}"#, NULL, "!40237"),
        ("array", r#"{"$max": "$v"}"#, ARRAYS, "[5, 1]"),
        ("bound", r#"{"$max": "$v"}"#, r#"[{"v": {"$numberLong": "9223372036854775807"}}, {"v": {"$numberDouble": "9223372036854775808"}}]"#, r#"{"$numberDouble": "9223372036854775808"}"#),
        ("nan", r#"{"$max": "$v"}"#, NAN, "1"),
        ("unicode", r#"{"$max": "$v"}"#, LETTERS, r#""日""#),
    ]),
    ("$first", &[
        ("plain", r#"{"$first": "$v"}"#, INTS, "2147483647"),
        ("null", r#"{"$first": "$v"}"#, MIXED, "null"),
        ("missing", r#"{"$first": "$v"}"#, r#"[{}, {"v": 1}]"#, "null"),
        ("missing", r#"{"$first": "$v"}"#, NONE, "null"),
        ("type", r#"{"$first": ["$v", 1]}"#, NULL, "!40237"),
        ("array", r#"{"$first": "$v"}"#, ARRAYS, "[5, 1]"),
    ]),
    ("$last", &[
        ("plain", r#"{"$last": "$v"}"#, INTS, "1"),
        ("null", r#"{"$last": "$v"}"#, NULL, "null"),
        ("missing", r#"{"$last": "$v"}"#, r#"[{"v": 1}, {}]"#, "null"),
        ("type", r#"{"$last": ["$v", 1]}"#, NULL, "!40237"),
        ("array", r#"{"$last": "$v"}"#, ARRAYS, "[2]"),
    ]),
    ("$push", &[
        ("plain", r#"{"$push": "$v"}"#, MIXED, r#"[null, "x", 4, [9], {"b": 1}, true]"#),
        ("null", r#"{"$push": "$v"}"#, NULL, "[null]"),
        ("missing", r#"{"$push": "$v"}"#, MISSING, "[]"),
        ("missing", r#"{"$push": {"a": "$v"}}"#, MISSING, "[{}]"),
        ("type", r#"{"$push": ["$v", 1]}"#, NULL, "!40237"),
        ("array", r#"{"$push": "$v"}"#, ARRAYS, "[[5, 1], [2]]"),
    ]),
    ("$addToSet", &[
        ("plain", r#"{"$addToSet": "$v"}"#, r#"[{"v": 1}, {"v": 2}, {"v": 1.0}]"#, "[1, 2]"),
        ("null", r#"{"$addToSet": "$v"}"#, r#"[{"v": null}, {"v": null}]"#, "[null]"),
        ("missing", r#"{"$addToSet": "$v"}"#, MISSING, "[]"),
        ("type", r#"{"$addToSet": [1, 2]}"#, NULL, "!40237"),
        ("array", r#"{"$addToSet": "$v"}"#, r#"[{"v": [1]}, {"v": [1]}, {"v": [1, 2]}]"#, "[[1], [1, 2]]"),
        ("bound", r#"{"$addToSet": "$v"}"#, r#"[{"v": {"$numberLong": "9223372036854775807"}}, {"v": {"$numberDouble": "9223372036854775808"}}]"#, r#"[{"$numberLong": "9223372036854775807"}, {"$numberDouble": "9223372036854775808"}]"#),
        ("nan", r#"{"$addToSet": "$v"}"#, r#"[{"v": {"$numberDouble": "NaN"}}, {"v": {"$numberDecimal": "NaN"}}]"#, r#"[{"$numberDouble": "NaN"}]"#),
        ("unicode", r#"{"$addToSet": "$v"}"#, r#"[{"v": "é"}, {"v": "e\u0301"}, {"v": "é"}]"#, r#"["é", "e\u0301"]"#),
    ]),
    ("$count", &[
        ("plain", r#"{"$count": {}}"#, MIXED, "7"),
        ("null", r#"{"$count": null}"#, NULL, "!14"),
        ("missing", r#"{"$count": {}}"#, NONE, "0"),
        ("type", r#"{"$count": "$v"}"#, NULL, "!14"),
        ("type", r#"{"$count": {"a": 1}}"#, NULL, "!14"),
        ("array", r#"{"$count": []}"#, NULL, "!14"),
    ]),
    ("$mergeObjects", &[
        ("plain", r#"{"$mergeObjects": "$v"}"#, r#"[{"v": {"a": 1, "b": 2}}, {"v": {"c": 3, "a": {"d": 4}}}]"#, r#"{"a": {"d": 4}, "b": 2, "c": 3}"#),
        ("null", r#"{"$mergeObjects": "$v"}"#, r#"[{"v": {"a": 1}}, {"v": null}, {"v": {"a": null}}]"#, r#"{"a": null}"#),
        ("missing", r#"{"$mergeObjects": "$v"}"#, MISSING, "{}"),
        ("missing", r#"{"$mergeObjects": "$v"}"#, NONE, "{}"),
        ("type", r#"{"$mergeObjects": "$v"}"#, INTS, "!40400"),
        ("array", r#"{"$mergeObjects": "$v"}"#, ARRAYS, "!40400"),
        ("unicode", r#"{"$mergeObjects": "$v"}"#, r#"[{"v": {"é": 1}}, {"v": {"e": 2}}]"#, r#"{"é": 1, "e": 2}"#),
    ]),
    ("$stdDevPop", &[
        ("plain", r#"{"$stdDevPop": "$v"}"#, r#"[{"v": 2}, {"v": 4}, {"v": "x"}]"#, r#"{"$numberDouble": "1.0"}"#),
        ("plain", r#"{"$stdDevPop": "$v"}"#, MIXED, r#"{"$numberDouble": "0.0"}"#),
        ("null", r#"{"$stdDevPop": "$v"}"#, NULL, "null"),
        ("missing", r#"{"$stdDevPop": "$v"}"#, NONE, "null"),
        ("type", r#"{"$stdDevPop": ["$v", 1]}"#, NULL, "!40237"),
        ("array", r#"{"$stdDevPop": "$v"}"#, ARRAYS, "null"),
        ("bound", r#"{"$stdDevPop": "$v"}"#, r#"[{"v": {"$numberDecimal": "2"}}, {"v": {"$numberLong": "4"}}]"#, r#"{"$numberDouble": "1.0"}"#),
        ("nan", r#"{"$stdDevPop": "$v"}"#, NAN, r#"{"$numberDouble": "NaN"}"#),
        ("nan", r#"{"$stdDevPop": "$v"}"#, r#"[{"v": {"$numberDouble": "Infinity"}}]"#, r#"{"$numberDouble": "NaN"}"#),
    ]),
    ("$stdDevSamp", &[
        ("plain", r#"{"$stdDevSamp": "$v"}"#, r#"[{"v": 1}, {"v": 3}, {"v": 5}]"#, r#"{"$numberDouble": "2.0"}"#),
        ("plain", r#"{"$stdDevSamp": "$v"}"#, MIXED, "null"),
        ("null", r#"{"$stdDevSamp": "$v"}"#, NULL, "null"),
        ("missing", r#"{"$stdDevSamp": "$v"}"#, NONE, "null"),
        ("type", r#"{"$stdDevSamp": ["$v", 1]}"#, NULL, "!40237"),
        ("array", r#"{"$stdDevSamp": "$v"}"#, ARRAYS, "null"),
        ("bound", r#"{"$stdDevSamp": "$v"}"#, r#"[{"v": {"$numberDecimal": "1"}}, {"v": 3}, {"v": {"$numberLong": "5"}}]"#, r#"{"$numberDouble": "2.0"}"#),
        ("nan", r#"{"$stdDevSamp": "$v"}"#, NAN, r#"{"$numberDouble": "NaN"}"#),
    ]),
    ("$firstN", &[
        ("plain", r#"{"$firstN": {"input": "$v", "n": 3}}"#, MIXED, r#"[null, null, "x"]"#),
        ("null", r#"{"$firstN": {"input": "$v", "n": null}}"#, NULL, "!5787902"),
        ("missing", r#"{"$firstN": {"input": "$v", "n": 3}}"#, MISSING, "[null]"),
        ("missing", r#"{"$firstN": {"input": "$v", "n": "$v"}}"#, MISSING, "!5787902"),
        ("type", r#"{"$firstN": "$v"}"#, NULL, "!5787801"),
        ("type", r#"{"$firstN": {"input": "$v"}}"#, NULL, "!5787906"),
        ("type", r#"{"$firstN": {"n": 1}}"#, NULL, "!5787907"),
        ("type", r#"{"$firstN": {"input": "$v", "n": 1, "sortBy": {"v": 1}}}"#, NULL, "!5787901"),
        ("array", r#"{"$firstN": {"input": "$v", "n": 1}}"#, ARRAYS, "[[5, 1]]"),
        ("bound", r#"{"$firstN": {"input": "$v", "n": 0}}"#, NULL, "!5787908"),
        ("bound", r#"{"$firstN": {"input": "$v", "n": 1.5}}"#, NULL, "!5787903"),
        ("bound", r#"{"$firstN": {"input": "$v", "n": {"$numberDecimal": "1"}}}"#, NULL, "[null]"),
        ("nan", r#"{"$firstN": {"input": "$v", "n": {"$numberDouble": "NaN"}}}"#, NULL, "!5787903"),
    ]),
    ("$lastN", &[
        ("plain", r#"{"$lastN": {"input": "$v", "n": 2}}"#, MIXED, r#"[{"b": 1}, true]"#),
        ("null", r#"{"$lastN": {"input": "$v", "n": 2}}"#, NULL, "[null]"),
        ("missing", r#"{"$lastN": {"input": "$v", "n": 2}}"#, MISSING, "[null]"),
        ("type", r#"{"$lastN": {"input": "$v", "n": "2"}}"#, NULL, "!5787902"),
        ("array", r#"{"$lastN": {"input": "$v", "n": 1}}"#, ARRAYS, "[[2]]"),
        ("bound", r#"{"$lastN": {"input": "$v", "n": -1}}"#, NULL, "!5787908"),
        ("nan", r#"{"$lastN": {"input": "$v", "n": {"$numberDouble": "NaN"}}}"#, NULL, "!5787903"),
    ]),
    ("$minN", &[
        ("plain", r#"{"$minN": {"input": "$v", "n": 2}}"#, MIXED, r#"[4, "x"]"#),
        ("null", r#"{"$minN": {"input": "$v", "n": 2}}"#, NULL, "[]"),
        ("missing", r#"{"$minN": {"input": "$v", "n": 2}}"#, MISSING, "[]"),
        ("type", r#"{"$minN": 1}"#, NULL, "!5787900"),
        ("array", r#"{"$minN": {"input": "$v", "n": 2}}"#, ARRAYS, "[[2], [5, 1]]"),
        ("bound", r#"{"$minN": {"input": "$v", "n": 9}}"#, LONGS, r#"[{"$numberLong": "1"}, {"$numberLong": "9223372036854775807"}]"#),
        ("nan", r#"{"$minN": {"input": "$v", "n": 2}}"#, NAN, r#"[{"$numberDouble": "NaN"}, 1]"#),
        ("unicode", r#"{"$minN": {"input": "$v", "n": 2}}"#, LETTERS, r#"["z", "é"]"#),
    ]),
    ("$maxN", &[
        ("plain", r#"{"$maxN": {"input": "$v", "n": 2}}"#, MIXED, "[true, [9]]"),
        ("null", r#"{"$maxN": {"input": "$v", "n": 2}}"#, NULL, "[]"),
        ("missing", r#"{"$maxN": {"input": "$v", "n": 2}}"#, MISSING, "[]"),
        ("type", r#"{"$maxN": "$v"}"#, NULL, "!5787900"),
        ("array", r#"{"$maxN": {"input": "$v", "n": 1}}"#, ARRAYS, "[[5, 1]]"),
        ("bound", r#"{"$maxN": {"input": "$v", "n": 1}}"#, LONGS, r#"[{"$numberLong": "9223372036854775807"}]"#),
        ("nan", r#"{"$maxN": {"input": "$v", "n": 1}}"#, NAN, "[1]"),
        ("unicode", r#"{"$maxN": {"input": "$v", "n": 2}}"#, LETTERS, r#"["日", "é"]"#),
    ]),
    ("$top", &[
        ("plain", r#"{"$top": {"sortBy": {"v": 1}, "output": "$v"}}"#, INTS, "1"),
        ("null", r#"{"$top": {"sortBy": {"v": 1}, "output": "$v"}}"#, MIXED, "null"),
        ("null", r#"{"$top": {"sortBy": null, "output": "$v"}}"#, NULL, "!10065"),
        ("missing", r#"{"$top": {"sortBy": {"v": 1}, "output": "$w"}}"#, INTS, "null"),
        ("type", r#"{"$top": "$v"}"#, NULL, "!5788001"),
        ("type", r#"{"$top": {"sortBy": {"v": 1}}}"#, NULL, "!5788004"),
        ("type", r#"{"$top": {"output": "$v"}}"#, NULL, "!5788005"),
        ("type", r#"{"$top": {"sortBy": {"v": "up"}, "output": "$v"}}"#, NULL, "!15974"),
        ("array", r#"{"$top": {"sortBy": {"v": 1}, "output": "$v"}}"#, ARRAYS, "[5, 1]"),
        ("nan", r#"{"$top": {"sortBy": {"v": 1}, "output": "$v"}}"#, NAN, r#"{"$numberDouble": "NaN"}"#),
        ("unicode", r#"{"$top": {"sortBy": {"v": 1}, "output": "$v"}}"#, LETTERS, r#""z""#),
    ]),
    ("$bottom", &[
        ("plain", r#"{"$bottom": {"sortBy": {"v": 1}, "output": "$v"}}"#, INTS, "2147483647"),
        ("null", r#"{"$bottom": {"sortBy": {"v": -1}, "output": ["$v"]}}"#, NULL, "[null]"),
        ("missing", r#"{"$bottom": {"sortBy": {"v": 1}, "output": "$w"}}"#, INTS, "null"),
        ("type", r#"{"$bottom": {"n": 1, "sortBy": {"v": 1}, "output": "$v"}}"#, NULL, "!5788002"),
        ("array", r#"{"$bottom": {"sortBy": {"v": 1}, "output": "$v"}}"#, ARRAYS, "[2]"),
        ("nan", r#"{"$bottom": {"sortBy": {"v": 1}, "output": "$v"}}"#, NAN, "1"),
        ("unicode", r#"{"$bottom": {"sortBy": {"v": 1}, "output": "$v"}}"#, LETTERS, r#""日""#),
    ]),
    ("$topN", &[
        ("plain", r#"{"$topN": {"n": 2, "sortBy": {"v": 1}, "output": "$v"}}"#, INTS, "[1, 2147483647]"),
        ("null", r#"{"$topN": {"n": 2, "sortBy": {"v": -1}, "output": "$v"}}"#, NULL, "[null]"),
        ("missing", r#"{"$topN": {"n": 2, "sortBy": {"v": 1}, "output": "$v"}}"#, MISSING, "[null]"),
        ("missing", r#"{"$topN": {"n": 2, "sortBy": {"v": 1}, "output": "$v"}}"#, NONE, "[]"),
        ("type", r#"{"$topN": {"sortBy": {"v": 1}, "output": "$v"}}"#, NULL, "!5788003"),
        ("type", r#"{"$topN": {"n": "2", "sortBy": {"v": 1}, "output": "$v"}}"#, NULL, "!5787902"),
        ("array", r#"{"$topN": {"n": 1, "sortBy": {"v": -1}, "output": "$v"}}"#, ARRAYS, "[[5, 1]]"),
        ("nan", r#"{"$topN": {"n": {"$numberDouble": "NaN"}, "sortBy": {"v": 1}, "output": "$v"}}"#, NULL, "!5787903"),
        ("unicode", r#"{"$topN": {"n": 2, "sortBy": {"v": -1}, "output": "$v"}}"#, LETTERS, r#"["日", "é"]"#),
    ]),
    ("$bottomN", &[
        ("plain", r#"{"$bottomN": {"n": 1, "sortBy": {"v": 1}, "output": "$v"}}"#, INTS, "[2147483647]"),
        ("null", r#"{"$bottomN": {"n": 2, "sortBy": {"v": 1}, "output": "$v"}}"#, NULL, "[null]"),
        ("missing", r#"{"$bottomN": {"n": 2, "sortBy": {"v": 1}, "output": "$v"}}"#, MISSING, "[null]"),
        ("type", r#"{"$bottomN": {"n": 0, "sortBy": {"v": 1}, "output": "$v"}}"#, NULL, "!5787908"),
        ("array", r#"{"$bottomN": {"n": 1, "sortBy": {"v": 1}, "output": "$v"}}"#, ARRAYS, "[[2]]"),
        ("nan", r#"{"$bottomN": {"n": 2, "sortBy": {"v": -1}, "output": "$v"}}"#, NAN, r#"[1, {"$numberDouble": "NaN"}]"#),
        ("unicode", r#"{"$bottomN": {"n": 1, "sortBy": {"v": 1}, "output": "$v"}}"#, LETTERS, r#"["日"]"#),
    ]),
    ("$median", &[
        ("plain", r#"{"$median": {"input": "$v", "method": "approximate"}}"#, r#"[{"v": 5}, {"v": 1}, {"v": 3}, {"v": "x"}]"#, r#"{"$numberDouble": "3.0"}"#),
        ("null", r#"{"$median": {"input": "$v", "method": "approximate"}}"#, NULL, "null"),
        ("missing", r#"{"$median": {"input": "$v", "method": "approximate"}}"#, NONE, "null"),
        ("type", r#"{"$median": "$v"}"#, NULL, "!7436100"),
        ("type", r#"{"$median": {"input": "$v", "method": "exact"}}"#, NULL, "!2"),
        ("type", r#"{"$median": {"input": "$v"}}"#, NULL, "!40414"),
        ("array", r#"{"$median": {"input": "$v", "method": "approximate"}}"#, ARRAYS, "null"),
        ("bound", r#"{"$median": {"input": "$v", "method": "approximate"}}"#, r#"[{"v": {"$numberDecimal": "1.5"}}]"#, r#"{"$numberDouble": "1.5"}"#),
        ("nan", r#"{"$median": {"input": "$v", "method": "approximate"}}"#, r#"[{"v": {"$numberDouble": "Infinity"}}, {"v": {"$numberDouble": "Infinity"}}, {"v": 1}]"#, r#"{"$numberDouble": "Infinity"}"#),
    ]),
    ("$percentile", &[
        ("plain", r#"{"$percentile": {"input": "$v", "p": [0, 1], "method": "approximate"}}"#, r#"[{"v": 5}, {"v": 1}]"#, r#"[{"$numberDouble": "1.0"}, {"$numberDouble": "5.0"}]"#),
        ("null", r#"{"$percentile": {"input": "$v", "p": [0, 1], "method": "approximate"}}"#, NULL, "[null, null]"),
        ("null", r#"{"$percentile": {"input": "$v", "p": null, "method": "approximate"}}"#, NULL, "!7750301"),
        ("missing", r#"{"$percentile": {"input": "$v", "p": [0.5], "method": "approximate"}}"#, MISSING, "[null]"),
        ("type", r#"{"$percentile": "$v"}"#, NULL, "!7429703"),
        ("type", r#"{"$percentile": {"input": "$v", "p": ["x"], "method": "approximate"}}"#, NULL, "!7750302"),
        ("type", r#"{"$percentile": {"input": "$v", "p": [0.5], "method": "approximate", "x": 1}}"#, NULL, "!40415"),
        ("array", r#"{"$percentile": {"input": "$v", "p": [], "method": "approximate"}}"#, NULL, "!7750301"),
        ("bound", r#"{"$percentile": {"input": "$v", "p": [1.1], "method": "approximate"}}"#, NULL, "!7750303"),
        ("bound", r#"{"$percentile": {"input": "$v", "p": [-0.1], "method": "approximate"}}"#, NULL, "!7750303"),
        ("nan", r#"{"$percentile": {"input": "$v", "p": [0], "method": "approximate"}}"#, r#"[{"v": {"$numberDouble": "-Infinity"}}, {"v": 1}]"#, r#"[{"$numberDouble": "-Infinity"}]"#),
    ]),
    ("$accumulator", &[
        ("plain", r#"{"$accumulator": {"init": "function() { return 0; }", "accumulate": "(s, v) => typeof v === 'number' ? s + v : s", "accumulateArgs": ["$v"], "merge": "x", "lang": "js"}}"#, MIXED, r#"{"$numberDouble": "4.0"}"#),
        ("plain", r#"{"$accumulator": {"init": "function(n) { return [n]; }", "initArgs": [7], "accumulate": "function(s, v) { s.push(v); return s; }", "accumulateArgs": ["$v"], "merge": "x", "finalize": "function(s) { return s.length; }", "lang": "js"}}"#, INTS, r#"{"$numberDouble": "3.0"}"#),
        ("missing", r#"{"$accumulator": {"init": "0", "accumulate": "s => s + 1", "accumulateArgs": ["$v"], "merge": "x"}}"#, NONE, r#"{"$numberDouble": "0.0"}"#),
        ("missing", r#"{"$accumulator": {"init": "0", "accumulate": "(s, v) => v === null ? s + 1 : s", "accumulateArgs": ["$v"], "merge": "x"}}"#, MISSING, r#"{"$numberDouble": "1.0"}"#),
        ("null", r#"{"$accumulator": {"init": "0", "accumulate": "(s, v) => v", "accumulateArgs": ["$v"], "merge": "x"}}"#, NULL, "null"),
        ("array", r#"{"$accumulator": {"init": "0", "accumulate": "(s, a, b) => s + a + b", "accumulateArgs": "$v", "merge": "x"}}"#, r#"[{"v": [5, 1]}, {"v": [2, 3]}]"#, r#"{"$numberDouble": "11.0"}"#),
        ("type", r#"{"$accumulator": {"init": "0", "accumulate": "s", "accumulateArgs": "$v", "merge": "x"}}"#, INTS, "!4544712"),
        ("type", r#"{"$accumulator": {"init": "0", "initArgs": 1, "accumulate": "s", "accumulateArgs": [], "merge": "x"}}"#, INTS, "!4544711"),
        ("type", r#"{"$accumulator": {"init": "0", "accumulate": "throw 1", "accumulateArgs": [], "merge": "x"}}"#, INTS, "!139"),
        ("type", r#"{"$accumulator": {"init": 1}}"#, INTS, "!4544702"),
        ("type", r#"{"$accumulator": {"init": "$v"}}"#, INTS, "!4544701"),
        ("type", r#"{"$accumulator": 1}"#, INTS, "!4544703"),
        ("type", r#"{"$accumulator": {"lang": 1}}"#, INTS, "!4544704"),
        ("type", r#"{"$accumulator": {"lang": "py"}}"#, INTS, "!4544705"),
        ("type", r#"{"$accumulator": {"what": 1}}"#, INTS, "!4544706"),
        ("type", r#"{"$accumulator": {"init": "0"}}"#, INTS, "!4544708"),
        ("type", r#"{"$accumulator": {"init": "0", "accumulate": "s"}}"#, INTS, "!4544709"),
        ("type", r#"{"$accumulator": {"init": "0", "accumulate": "s", "merge": "x"}}"#, INTS, "!4544710"),
        ("plain", r#"{"$_internalJsReduce": {"data": "$v", "eval": "(k, all) => k + all.join()"}}"#, r#"[{"v": {"k": "a", "v": 1}}, {"v": {"k": "a", "v": 2}}]"#, r#""a2,1""#),
        ("type", r#"{"$_internalJsReduce": {"data": "$v", "eval": "1"}}"#, INTS, "!31242"),
        ("type", r#"{"$_internalJsReduce": {"data": "$v"}}"#, INTS, "!31245"),
    ]),
];

/// The cases that may be missing: accumulators, kinds, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("$sum $avg $stdDevPop $stdDevSamp $median $percentile", "unicode", "they count numbers only"),
    ("$first $last $push", "bound nan unicode", "they take every value as it is"),
    ("$firstN $lastN", "unicode", "they take every value as it is"),
    ("$count", "bound nan unicode", "it looks at no value"),
    ("$mergeObjects", "bound nan", "it takes documents only"),
    ("$top $bottom $topN $bottomN", "bound", "told by `$minN` and by sorts"),
    ("$accumulator", "bound nan unicode", "told by the tests of scripts"),
];

const KINDS: [&str; 8] = ["plain", "null", "missing", "type", "array", "bound", "nan", "unicode"];

#[test]
fn accumulators_answer_as_mongodb_does() {
    for (_, rows) in TABLES {
        let rows: Vec<(&str, &str, &str)> = rows.iter().map(|row| (row.1, row.2, row.3)).collect();
        check(&rows);
    }
}

#[test]
fn every_accumulator_has_its_cases() {
    for name in features(Place::Group).map(|feature| feature.name) {
        for kind in KINDS {
            let is_exempt = EXCEPTIONS.iter().any(|(names, kinds, _)| {
                names.split(' ').any(|exempt| exempt == name)
                    && kinds.split(' ').any(|exempt| exempt == kind)
            });
            let has_row = TABLES
                .iter()
                .any(|(known, rows)| *known == name && rows.iter().any(|row| row.0 == kind));
            assert!(has_row || is_exempt, "{name} has no row of kind {kind}");
        }
    }
}
