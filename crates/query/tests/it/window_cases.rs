//! Goal: every function of `$setWindowFields` answers as MongoDB's, over null and missing values
//! too, with MongoDB's refusals.
//!
//! Method: each row is a list of documents that are sorted by `t`, a function, and its values in
//! the order of `t`; or `!code`. Accumulators over windows are tested beside them: their window's
//! result is a group's.

use frond_query::reference::families;

use crate::pipelines::check;

/// The kind of value that the row is about, the documents, the function, and the field `x` of each
/// document.
type Row = (&'static str, &'static str, &'static str, &'static str);

const VALUES: &str = r#"[{"t": 1, "v": 2}, {"t": 2, "v": null}, {"t": 3}, {"t": 4, "v": 8}]"#;
const TIES: &str =
    r#"[{"t": null, "v": 1}, {"v": 2}, {"t": 5, "v": 3}, {"t": 5, "v": 4}, {"t": 7, "v": 5}]"#;
const SERIES: &str = r#"[{"t": 1, "v": 2}, {"t": 3, "v": 6}, {"t": 4, "v": 7}]"#;
const DAYS: &str = r#"[{"t": {"$date": "2024-02-28T00:00:00Z"}, "v": 0}, {"t": {"$date": "2024-03-01T00:00:00Z"}, "v": 4}]"#;

#[rustfmt::skip]
const TABLES: &[(&str, &[Row])] = &[
    ("$documentNumber", &[
        ("plain", VALUES, r#"{"$documentNumber": {}}"#, "[1, 2, 3, 4]"),
        ("null", TIES, r#"{"$documentNumber": {}}"#, "[1, 2, 3, 4, 5]"),
        ("type", VALUES, r#"{"$documentNumber": null}"#, "!5371603"),
        ("type", VALUES, r#"{"$documentNumber": {"a": 1}}"#, "!5371603"),
        ("window", VALUES, r#"{"$documentNumber": {}, "window": {"documents": [0, 1]}}"#, "!5371601"),
    ]),
    ("$rank", &[
        ("plain", SERIES, r#"{"$rank": {}}"#, "[1, 2, 3]"),
        // Null and missing are one rank.
        ("null", TIES, r#"{"$rank": {}}"#, "[1, 1, 3, 3, 5]"),
        ("type", VALUES, r#"{"$rank": "$t"}"#, "!5371603"),
        ("window", VALUES, r#"{"$rank": {}, "window": {"documents": [0, 1]}}"#, "!5371601"),
    ]),
    ("$denseRank", &[
        ("plain", SERIES, r#"{"$denseRank": {}}"#, "[1, 2, 3]"),
        ("null", TIES, r#"{"$denseRank": {}}"#, "[1, 1, 2, 2, 3]"),
        ("type", VALUES, r#"{"$denseRank": []}"#, "!5371603"),
        ("window", VALUES, r#"{"$denseRank": {}, "window": {"range": [0, 1]}}"#, "!5371601"),
    ]),
    ("$shift", &[
        ("plain", SERIES, r#"{"$shift": {"output": "$v", "by": 1, "default": "end"}}"#, r#"[6, 7, "end"]"#),
        ("plain", SERIES, r#"{"$shift": {"output": "$v", "by": -1}}"#, "[null, 2, 6]"),
        ("null", VALUES, r#"{"$shift": {"output": "$v", "by": -1, "default": 0}}"#, "[0, 2, null, null]"),
        ("type", VALUES, r#"{"$shift": 1}"#, "!9"),
        ("type", VALUES, r#"{"$shift": {"output": "$v", "by": 1.5}}"#, "!9"),
        ("type", VALUES, r#"{"$shift": {"output": "$v"}}"#, "!9"),
        ("type", VALUES, r#"{"$shift": {"by": 1}}"#, "!9"),
        ("type", VALUES, r#"{"$shift": {"output": "$v", "by": 1, "x": 1}}"#, "!9"),
        ("window", VALUES, r#"{"$shift": {"output": "$v", "by": 1}, "window": {"documents": [0, 1]}}"#, "!9"),
    ]),
    ("$locf", &[
        ("plain", VALUES, r#"{"$locf": "$v"}"#, "[2, 2, 2, 8]"),
        ("null", r#"[{"t": 1, "v": null}, {"t": 2, "v": "x"}, {"t": 3}]"#, r#"{"$locf": "$v"}"#, r#"[null, "x", "x"]"#),
        ("type", VALUES, r#"{"$locf": {"$foo": 1}}"#, "!168"),
    ]),
    ("$linearFill", &[
        ("plain", VALUES, r#"{"$linearFill": "$v"}"#, "[2, 4.0, 6.0, 8]"),
        ("null", r#"[{"t": 1, "v": null}, {"t": 2, "v": 1}, {"t": 3}]"#, r#"{"$linearFill": "$v"}"#, "[null, 1, null]"),
        ("type", r#"[{"t": 1, "v": 1}, {"t": 1}, {"t": 2, "v": 3}]"#, r#"{"$linearFill": "$v"}"#, "!6050106"),
        ("window", VALUES, r#"{"$linearFill": "$v", "window": {"documents": [0, 1]}}"#, "!9"),
    ]),
    ("$derivative", &[
        ("plain", SERIES, r#"{"$derivative": {"input": "$v"}, "window": {"documents": [-1, 0]}}"#, "[null, 2.0, 1.0]"),
        ("plain", DAYS, r#"{"$derivative": {"input": "$v", "unit": "day"}, "window": {"documents": [-1, 0]}}"#, "[null, 2.0]"),
        ("type", SERIES, r#"{"$derivative": {"input": "$v"}}"#, "!9"),
        ("type", SERIES, r#"{"$derivative": "$v", "window": {"documents": [-1, 0]}}"#, "!9"),
        ("type", SERIES, r#"{"$derivative": {"input": "$v", "unit": "day"}, "window": {"documents": [-1, 0]}}"#, "!5624900"),
        ("type", DAYS, r#"{"$derivative": {"input": "$v"}, "window": {"documents": [-1, 0]}}"#, "!5624901"),
        ("type", DAYS, r#"{"$derivative": {"input": "$v", "unit": "month"}, "window": {"documents": [-1, 0]}}"#, "!5490710"),
    ]),
    ("$integral", &[
        ("plain", SERIES, r#"{"$integral": {"input": "$v"}, "window": {"documents": ["unbounded", 0]}}"#, "[0, 8.0, 14.5]"),
        ("plain", DAYS, r#"{"$integral": {"input": "$v", "unit": "hour"}, "window": {"documents": ["unbounded", 0]}}"#, "[0.0, 96.0]"),
        ("type", SERIES, r#"{"$integral": 1}"#, "!9"),
        ("type", SERIES, r#"{"$integral": {"input": "x"}}"#, "!5423900"),
        ("type", SERIES, r#"{"$integral": {"input": "$v", "unit": "day"}}"#, "!5423901"),
        ("type", DAYS, r#"{"$integral": {"input": "$v"}}"#, "!5423902"),
    ]),
    ("$expMovingAvg", &[
        ("plain", SERIES, r#"{"$expMovingAvg": {"input": "$v", "N": 3}}"#, "[2.0, 4.0, 5.5]"),
        ("plain", SERIES, r#"{"$expMovingAvg": {"input": "$v", "alpha": 0.5}}"#, "[2.0, 4.0, 5.5]"),
        ("null", VALUES, r#"{"$expMovingAvg": {"input": "$v", "alpha": 0.5}}"#, "[2.0, 2.0, 2.0, 5.0]"),
        ("type", SERIES, r#"{"$expMovingAvg": "$v"}"#, "!9"),
        ("type", SERIES, r#"{"$expMovingAvg": {"input": "$v"}}"#, "!9"),
        ("type", SERIES, r#"{"$expMovingAvg": {"input": "$v", "N": 0}}"#, "!9"),
        ("type", SERIES, r#"{"$expMovingAvg": {"input": "$v", "N": 1, "alpha": 0.5}}"#, "!9"),
        ("type", SERIES, r#"{"$expMovingAvg": {"input": "$v", "alpha": 1}}"#, "!9"),
        ("type", SERIES, r#"{"$expMovingAvg": {"input": "$v", "alpha": "0.5"}}"#, "!9"),
    ]),
    ("$covariancePop", &[
        ("plain", SERIES, r#"{"$covariancePop": ["$t", "$t"], "window": {"documents": [-1, 0]}}"#, "[0.0, 1.0, 0.25]"),
        ("null", VALUES, r#"{"$covariancePop": ["$v", "$t"], "window": {"documents": [0, 0]}}"#, "[0.0, null, null, 0.0]"),
        ("type", SERIES, r#"{"$covariancePop": "$v"}"#, "[null, null, null]"),
    ]),
    ("$covarianceSamp", &[
        ("plain", SERIES, r#"{"$covarianceSamp": ["$t", "$t"], "window": {"documents": [-1, 0]}}"#, "[null, 2.0, 0.5]"),
        ("null", VALUES, r#"{"$covarianceSamp": ["$v", "$t"], "window": {"documents": [0, 0]}}"#, "[null, null, null, null]"),
        ("type", SERIES, r#"{"$covarianceSamp": {"$foo": 1}}"#, "!168"),
    ]),
];

/// Functions without rows of null, and why.
const WITHOUT_NULL: [&str; 2] = ["$derivative", "$integral"]; // A wrong type to them.

fn holds(row: &Row) -> bool {
    let (_, documents, function, expected) = *row;
    let pipeline = format!(
        r#"[{{"$documents": {documents}}}, {{"$setWindowFields": {{"sortBy": {{"t": 1}}, "output": {{"x": {function}}}}}}},
            {{"$group": {{"_id": null, "x": {{"$push": {{"$ifNull": ["$x", null]}}}}}}}}]"#
    );
    let expected = match expected.starts_with('!') {
        true => expected.to_owned(),
        false => format!(r#"[{{"_id": null, "x": {expected}}}]"#),
    };
    std::panic::catch_unwind(|| check(&[(&pipeline, &expected)])).is_ok()
}

#[test]
fn window_functions_answer_as_mongodb_does() {
    let rows = TABLES.iter().flat_map(|(_, rows)| rows.iter());
    let differing: Vec<String> =
        rows.filter(|row| !holds(row)).map(|row| format!("{row:?}")).collect();
    assert!(differing.is_empty(), "{} rows differ:\n{}", differing.len(), differing.join("\n"));
}

#[test]
fn every_window_function_has_its_cases() {
    let families = families();
    let family = |title: &str| {
        let family = families.iter().find(|family| family.title.starts_with(title));
        family.expect("a family").features.iter().map(|feature| feature.name)
    };
    let grouping: Vec<&str> = family("Accumulators").collect();
    for name in family("Functions of `$setWindowFields`").filter(|name| !grouping.contains(name)) {
        for kind in ["plain", "null", "type"] {
            let is_exempt = kind == "null" && WITHOUT_NULL.contains(&name);
            let has_row = TABLES
                .iter()
                .any(|(known, rows)| *known == name && rows.iter().any(|row| row.0 == kind));
            assert!(has_row || is_exempt, "{name} has no row of kind {kind}");
        }
    }
}
