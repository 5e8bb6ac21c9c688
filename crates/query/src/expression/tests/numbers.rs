//! Arithmetic: types, bounds, null, NaN.

use super::check;

#[test]
fn sums_and_products_take_the_widest_type() {
    check(&[
        (r#"{"$add": []}"#, "0"),
        (r#"{"$add": [1, 2]}"#, "3"),
        (r#"{"$add": [1, 2.5]}"#, "3.5"),
        (r#"{"$add": [2147483647, 1]}"#, r#"{"$numberLong": "2147483648"}"#),
        (r#"{"$add": [2147483647, 1, -1]}"#, "2147483647"),
        (r#"{"$add": [{"$numberLong": "1"}, 1]}"#, r#"{"$numberLong": "2"}"#),
        (
            r#"{"$add": [{"$numberLong": "9223372036854775807"}, 1]}"#,
            r#"{"$numberDouble": "9223372036854775808"}"#,
        ),
        (r#"{"$add": [0.1, 0.2, 0.3, -0.3, -0.2, -0.1]}"#, r#"{"$numberDouble": "0.0"}"#),
        (r#"{"$add": ["$dec", 1]}"#, r#"{"$numberDecimal": "2.10"}"#),
        (r#"{"$add": ["$nan", 1]}"#, r#"{"$numberDouble": "NaN"}"#),
        (r#"{"$add": [1, "$n"]}"#, "null"),
        (r#"{"$add": [1, "$absent"]}"#, "null"),
        (r#"{"$add": [1, "x"]}"#, "!14"),
        (r#"{"$add": [1, [2]]}"#, "!14"),
        (r#"{"$add": ["$date", 1000]}"#, r#"{"$date": "2020-02-29T12:34:57.789Z"}"#),
        (r#"{"$add": ["$date", 0.6]}"#, r#"{"$date": "2020-02-29T12:34:56.790Z"}"#),
        (r#"{"$add": ["$date", "$date"]}"#, "!16612"),
        (r#"{"$add": ["$date", 1e300]}"#, "!15"),
        (r#"{"$multiply": []}"#, "1"),
        (r#"{"$multiply": [3, 4]}"#, "12"),
        (r#"{"$multiply": [65536, 65536]}"#, r#"{"$numberLong": "4294967296"}"#),
        (r#"{"$multiply": ["$l", "$l"]}"#, r#"{"$numberDouble": "2.5e19"}"#),
        (r#"{"$multiply": ["$dec", 2]}"#, r#"{"$numberDecimal": "2.20"}"#),
        (r#"{"$multiply": [1, "$n"]}"#, "null"),
        (r#"{"$multiply": [1, true]}"#, "!14"),
    ]);
}

#[test]
fn differences_quotients_and_remainders() {
    check(&[
        (r#"{"$subtract": [1, 2]}"#, "-1"),
        (r#"{"$subtract": [-2147483648, 1]}"#, r#"{"$numberLong": "-2147483649"}"#),
        (r#"{"$subtract": ["$dec", 0.1]}"#, r#"{"$numberDecimal": "1.000000000000000"}"#),
        (r#"{"$subtract": ["$date", "$date"]}"#, r#"{"$numberLong": "0"}"#),
        (r#"{"$subtract": ["$date", 789]}"#, r#"{"$date": "2020-02-29T12:34:56Z"}"#),
        (r#"{"$subtract": [1, "$date"]}"#, "!14"),
        (r#"{"$subtract": ["x", 1]}"#, "!14"),
        (r#"{"$subtract": ["x", "$n"]}"#, "null"),
        (r#"{"$divide": [6, 2]}"#, r#"{"$numberDouble": "3.0"}"#),
        (r#"{"$divide": [1, 0]}"#, "!2"),
        (r#"{"$divide": ["$dec", 2]}"#, r#"{"$numberDecimal": "0.55"}"#),
        (r#"{"$divide": ["$dec", {"$numberDecimal": "0"}]}"#, "!2"),
        (r#"{"$divide": ["a", 1]}"#, "!14"),
        (r#"{"$divide": [null, 0]}"#, "null"),
        (r#"{"$mod": [7, 4]}"#, "3"),
        (r#"{"$mod": [-7, 4]}"#, "-3"),
        (r#"{"$mod": [7, 2.5]}"#, r#"{"$numberDouble": "2.0"}"#),
        (r#"{"$mod": [{"$numberLong": "-9223372036854775808"}, -1]}"#, r#"{"$numberLong": "0"}"#),
        (r#"{"$mod": [1, 0]}"#, "!16610"),
        (r#"{"$mod": [1, "x"]}"#, "!16611"),
    ]);
}

#[test]
fn functions_of_one_number() {
    check(&[
        (r#"{"$abs": -3}"#, "3"),
        (r#"{"$abs": -2147483648}"#, r#"{"$numberLong": "2147483648"}"#),
        (r#"{"$abs": {"$numberLong": "-9223372036854775808"}}"#, "!28680"),
        (r#"{"$abs": {"$numberDecimal": "-1.5"}}"#, r#"{"$numberDecimal": "1.5"}"#),
        (r#"{"$abs": "$n"}"#, "null"),
        (r#"{"$abs": "x"}"#, "!28765"),
        (r#"{"$ceil": 1.2}"#, r#"{"$numberDouble": "2.0"}"#),
        (r#"{"$floor": -1.2}"#, r#"{"$numberDouble": "-2.0"}"#),
        (r#"{"$floor": 5}"#, "5"),
        (r#"{"$ceil": "$dec"}"#, r#"{"$numberDecimal": "2"}"#),
        (r#"{"$sqrt": 16}"#, r#"{"$numberDouble": "4.0"}"#),
        (r#"{"$sqrt": -1}"#, "!28714"),
        (r#"{"$sqrt": "$nan"}"#, r#"{"$numberDouble": "NaN"}"#),
        (r#"{"$exp": 0}"#, r#"{"$numberDouble": "1.0"}"#),
        (r#"{"$ln": 1}"#, r#"{"$numberDouble": "0.0"}"#),
        (r#"{"$ln": 0}"#, "!28766"),
        (r#"{"$log10": 1000}"#, r#"{"$numberDouble": "3.0"}"#),
        (r#"{"$log10": -1}"#, "!28761"),
        (r#"{"$log": [8, 2]}"#, r#"{"$numberDouble": "3.0"}"#),
        (r#"{"$log": [8, 1]}"#, "!28759"),
        (r#"{"$log": [0, 2]}"#, "!28758"),
        (r#"{"$log": ["x", 2]}"#, "!28756"),
        (r#"{"$log": [8, "x"]}"#, "!28757"),
        (r#"{"$pow": [2, 10]}"#, "1024"),
        (r#"{"$pow": [2, 40]}"#, r#"{"$numberLong": "1099511627776"}"#),
        (r#"{"$pow": [2, 64]}"#, r#"{"$numberDouble": "18446744073709551616"}"#),
        (r#"{"$pow": [2, -1]}"#, "0.5"),
        (r#"{"$pow": [-1, 3]}"#, "-1"),
        (r#"{"$pow": [0, -1]}"#, "!28764"),
        (r#"{"$pow": ["$dec", 2]}"#, r#"{"$numberDecimal": "1.2100"}"#),
        (r#"{"$pow": ["x", 2]}"#, "!28762"),
        (r#"{"$pow": [2, "x"]}"#, "!28763"),
    ]);
}

#[test]
fn rounding_is_half_to_even() {
    check(&[
        (r#"{"$round": 2.5}"#, r#"{"$numberDouble": "2.0"}"#),
        (r#"{"$round": [3.5, 0]}"#, r#"{"$numberDouble": "4.0"}"#),
        (r#"{"$round": [1.25, 1]}"#, "1.2"),
        (r#"{"$round": [1234.567, 2]}"#, "1234.57"),
        (r#"{"$round": [1250, -2]}"#, "1200"),
        (r#"{"$round": [1350, -2]}"#, "1400"),
        (r#"{"$round": [-1350, -2]}"#, "-1400"),
        (r#"{"$round": [2147483647, -1]}"#, r#"{"$numberLong": "2147483650"}"#),
        (r#"{"$round": [{"$numberLong": "9223372036854775807"}, -1]}"#, "!51080"),
        (r#"{"$round": [5, 3]}"#, "5"),
        (r#"{"$round": ["$dec", 1]}"#, r#"{"$numberDecimal": "1.1"}"#),
        (r#"{"$round": ["$nan", 1]}"#, r#"{"$numberDouble": "NaN"}"#),
        (r#"{"$trunc": -2.7}"#, r#"{"$numberDouble": "-2.0"}"#),
        (r#"{"$trunc": [1.999, 2]}"#, "1.99"),
        (r#"{"$trunc": [1299, -2]}"#, "1200"),
        (r#"{"$round": [1, "$n"]}"#, "null"),
        (r#"{"$round": "x"}"#, "!51081"),
        (r#"{"$round": [1.5, 0.5]}"#, "!51082"),
        (r#"{"$round": [1.5, 101]}"#, "!51083"),
    ]);
}

#[test]
fn totals_ignore_what_is_no_number() {
    check(&[
        (r#"{"$sum": "$a"}"#, "6"),
        (r#"{"$sum": ["$a", 1]}"#, "1"),
        (r#"{"$sum": "$mixed"}"#, "1"),
        (r#"{"$sum": "$absent"}"#, "0"),
        (r#"{"$sum": ["$i", "$l"]}"#, r#"{"$numberLong": "5000000007"}"#),
        (r#"{"$avg": "$a"}"#, r#"{"$numberDouble": "2.0"}"#),
        (r#"{"$avg": "$empty"}"#, "null"),
        (r#"{"$avg": ["$dec", 1]}"#, r#"{"$numberDecimal": "1.05"}"#),
        (r#"{"$min": "$a"}"#, "1"),
        (r#"{"$max": ["$i", "$d", "$n"]}"#, "7"),
        (r#"{"$max": "$mixed"}"#, "[2]"),
        (r#"{"$min": "$empty"}"#, "null"),
        (r#"{"$stdDevPop": [[2, 4, 4, 4, 5, 5, 7, 9]]}"#, r#"{"$numberDouble": "2.0"}"#),
        (r#"{"$stdDevSamp": [[1]]}"#, "null"),
        (r#"{"$stdDevPop": "$s"}"#, "null"),
    ]);
}

#[test]
fn angles_and_their_functions() {
    let double = |text: &str| format!(r#"{{"$numberDouble": "{text}"}}"#);
    let decimal = |text: &str| format!(r#"{{"$numberDecimal": "{text}"}}"#);
    check(&[
        (r#"{"$sin": 0}"#, &double("0")),
        (r#"{"$cos": 0}"#, &double("1")),
        (r#"{"$tan": 0}"#, &double("0")),
        (r#"{"$asin": 1}"#, "1.5707963267948966"),
        (r#"{"$acos": -1}"#, "3.141592653589793"),
        (r#"{"$atan": 1}"#, "0.7853981633974483"),
        (r#"{"$atan2": [1, -1]}"#, "2.356194490192345"),
        (r#"{"$sinh": 0}"#, &double("0")),
        (r#"{"$cosh": 0}"#, &double("1")),
        (r#"{"$tanh": {"$numberDouble": "Infinity"}}"#, &double("1")),
        (r#"{"$asinh": 0}"#, &double("0")),
        (r#"{"$acosh": 1}"#, &double("0")),
        (r#"{"$atanh": 1}"#, &double("Infinity")),
        (r#"{"$sin": "$nan"}"#, &double("NaN")),
        (r#"{"$sin": "$n"}"#, "null"),
        (r#"{"$atan2": ["$n", 1]}"#, "null"),
        (r#"{"$cos": {"$numberDecimal": "0"}}"#, &decimal("1")),
        (r#"{"$degreesToRadians": 180}"#, "3.141592653589793"),
        (r#"{"$radiansToDegrees": 3.141592653589793}"#, &double("180")),
        (
            r#"{"$degreesToRadians": {"$numberDecimal": "1"}}"#,
            &decimal("0.01745329251994329576923690768488613"),
        ),
        (
            r#"{"$radiansToDegrees": {"$numberDecimal": "1"}}"#,
            &decimal("57.29577951308232087679815481410517"),
        ),
        (r#"{"$sin": {"$numberDouble": "Infinity"}}"#, "!50989"),
        (r#"{"$acos": 1.1}"#, "!50989"),
        (r#"{"$acosh": 0.9}"#, "!50989"),
        (r#"{"$atanh": -2}"#, "!50989"),
        (r#"{"$sin": "x"}"#, "!28765"),
        (r#"{"$atan2": ["x", 1]}"#, "!51044"),
        (r#"{"$atan2": [1, "x"]}"#, "!51045"),
        (r#"{"$sin": [1, 2]}"#, "!16020"),
    ]);
}

#[test]
fn bits_are_combined() {
    check(&[
        (r#"{"$bitAnd": [3, 5]}"#, "1"),
        (r#"{"$bitOr": [3, 5]}"#, "7"),
        (r#"{"$bitXor": [3, 5, 1]}"#, "7"),
        (r#"{"$bitAnd": []}"#, "-1"),
        (r#"{"$bitOr": []}"#, "0"),
        (r#"{"$bitAnd": [-1, {"$numberLong": "4294967296"}]}"#, r#"{"$numberLong": "4294967296"}"#),
        (r#"{"$bitXor": [-2147483648, -1]}"#, "2147483647"),
        (r#"{"$bitNot": 5}"#, "-6"),
        (r#"{"$bitNot": {"$numberLong": "0"}}"#, r#"{"$numberLong": "-1"}"#),
        (r#"{"$bitAnd": [1, "$n"]}"#, "null"),
        (r#"{"$bitNot": "$absent"}"#, "null"),
        (r#"{"$bitAnd": [1, 2.5]}"#, "!14"),
        (r#"{"$bitOr": ["x", 1]}"#, "!14"),
        (r#"{"$bitNot": 1.5}"#, "!14"),
        (r#"{"$bitNot": "x"}"#, "!28765"),
    ]);
}

#[test]
fn several_of_an_array_and_percentiles() {
    let p = |input: &str, p: &str| {
        format!(r#"{{"$percentile": {{"input": {input}, "p": {p}, "method": "approximate"}}}}"#)
    };
    check(&[
        (r#"{"$firstN": {"n": 2, "input": "$a"}}"#, "[3, 1]"),
        (r#"{"$lastN": {"n": 2, "input": "$a"}}"#, "[1, 2]"),
        (r#"{"$lastN": {"n": 9, "input": "$a"}}"#, "[3, 1, 2]"),
        (r#"{"$firstN": {"n": 3, "input": "$mixed"}}"#, r#"[1, "x", null]"#),
        (r#"{"$maxN": {"n": 2, "input": "$a"}}"#, "[3, 2]"),
        (r#"{"$minN": {"n": {"$add": [1, 1]}, "input": "$a"}}"#, "[1, 2]"),
        (r#"{"$minN": {"n": 9, "input": "$mixed"}}"#, r#"[1, "x", {"b": 4}, [2]]"#),
        (r#"{"$minN": {"n": 1, "input": "$n"}}"#, "!5788200"),
        (r#"{"$minN": {"n": 0, "input": "$a"}}"#, "!5787908"),
        (r#"{"$minN": {"n": "$absent", "input": "$a"}}"#, "!5787902"),
        (r#"{"$firstN": 1}"#, "!5787801"),
        (r#"{"$maxN": {"n": 1}}"#, "!5787907"),
        (&p("\"$a\"", "[0.5, 1]"), r#"[{"$numberDouble": "2"}, {"$numberDouble": "3"}]"#),
        (&p("\"$mixed\"", "[0]"), r#"[{"$numberDouble": "1"}]"#),
        (&p("\"$i\"", "[0.5]"), r#"[{"$numberDouble": "7"}]"#),
        (&p("\"$s\"", "[0.5]"), "[null]"),
        (&p("\"$a\"", "\"$$list\""), "!7750303"),
        (
            r#"{"$median": {"input": ["$i", "$d", 4], "method": "approximate"}}"#,
            r#"{"$numberDouble": "4"}"#,
        ),
        (r#"{"$median": {"input": "$empty", "method": "approximate"}}"#, "null"),
        (r#"{"$median": 1}"#, "!7436201"),
        (r#"{"$percentile": 1}"#, "!7436200"),
    ]);
}
