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
