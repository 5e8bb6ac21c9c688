//! The rows of comparisons, membership and logic.

use super::operators::{Table, check};

pub(super) const TABLES: &[Table] = &[
    (
        "$eq",
        &[
            ("plain", r#"{"a": {"$eq": 1}}"#, "1 arr"),
            ("plain", r#"{"a": {"$eq": 1.5}}"#, "1.5 d1.5"),
            ("plain", r#"{"a": {"$eq": 0}}"#, "-0 0"),
            ("plain", r#"{"a": {"$eq": {"b": 1}}}"#, "obj docs"),
            ("plain", r#"{"a": {"$eq": {"$date": "2020-02-29T00:00:00Z"}}}"#, "date"),
            ("plain", r#"{"a": {"$eq": true}}"#, "true"),
            ("plain", r#"{"a": {"$eq": {"$minKey": 1}}}"#, "minkey"),
            ("null", r#"{"a": {"$eq": null}}"#, "missing null arrnull"),
            ("type", r#"{"a": {"$eq": {"$undefined": true}}}"#, "!2"),
            // A pattern is a value here.
            (
                "type",
                r#"{"a": {"$eq": {"$regularExpression": {"pattern": "red", "options": ""}}}}"#,
                "re",
            ),
            ("array", r#"{"a": {"$eq": [1, 7]}}"#, "arr nest"),
            ("array", r#"{"a": {"$eq": []}}"#, "arr0"),
            ("array", r#"{"a.0": {"$eq": 1}}"#, "arr"),
            ("bound", r#"{"a": {"$eq": {"$numberLong": "9223372036854775807"}}}"#, "lmax"),
            ("bound", r#"{"a": {"$eq": {"$numberDouble": "9223372036854775808"}}}"#, "2^63"),
            ("nan", r#"{"a": {"$eq": {"$numberDouble": "NaN"}}}"#, "nan"),
            ("nan", r#"{"a": {"$eq": {"$numberDecimal": "NaN"}}}"#, "nan"),
            ("unicode", r#"{"a": {"$eq": "straße"}}"#, "straße"),
            ("unicode", r#"{"a": {"$eq": "strasse"}}"#, ""),
        ],
    ),
    (
        "$ne",
        &[
            ("plain", r#"{"a": {"$ne": 1}}"#, "not 1 arr"),
            ("null", r#"{"a": {"$ne": null}}"#, "not missing null arrnull"),
            (
                "type",
                r#"{"a": {"$ne": {"$regularExpression": {"pattern": "red", "options": ""}}}}"#,
                "!2",
            ),
            ("type", r#"{"a": {"$ne": {"$undefined": true}}}"#, "!2"),
            ("array", r#"{"a": {"$ne": [1, 7]}}"#, "not arr nest"),
            ("bound", r#"{"a": {"$ne": {"$numberLong": "9223372036854775807"}}}"#, "not lmax"),
            ("nan", r#"{"a": {"$ne": {"$numberDouble": "NaN"}}}"#, "not nan"),
            ("unicode", r#"{"a": {"$ne": "straße"}}"#, "not straße"),
        ],
    ),
    (
        "$gt",
        &[
            ("plain", r#"{"a": {"$gt": 1}}"#, "1.5 d1.5 7 imax lmax 2^63 d1e40 inf arr"),
            ("plain", r#"{"a": {"$gt": {"$minKey": 1}}}"#, "not minkey"),
            ("plain", r#"{"a": {"$gt": {}}}"#, "obj place docs"),
            ("plain", r#"{"a": {"$gt": false}}"#, "true"),
            ("null", r#"{"a": {"$gt": null}}"#, ""),
            (
                "type",
                r#"{"a": {"$gt": {"$regularExpression": {"pattern": "red", "options": ""}}}}"#,
                "!2",
            ),
            ("type", r#"{"a": {"$gt": {"$undefined": true}}}"#, "!2"),
            ("array", r#"{"a": {"$gt": [1]}}"#, "arr nest docs"),
            (
                "bound",
                r#"{"a": {"$gt": {"$numberLong": "9223372036854775807"}}}"#,
                "2^63 d1e40 inf",
            ),
            ("nan", r#"{"a": {"$gt": {"$numberDouble": "NaN"}}}"#, ""),
            ("unicode", r#"{"a": {"$gt": "red"}}"#, "straße 日本"),
        ],
    ),
    (
        "$gte",
        &[
            ("plain", r#"{"a": {"$gte": 7}}"#, "7 imax lmax 2^63 d1e40 inf arr"),
            ("null", r#"{"a": {"$gte": null}}"#, "missing null arrnull"),
            (
                "type",
                r#"{"a": {"$gte": {"$regularExpression": {"pattern": "red", "options": ""}}}}"#,
                "!2",
            ),
            ("array", r#"{"a": {"$gte": [1, 7]}}"#, "arr nest docs"),
            (
                "bound",
                r#"{"a": {"$gte": {"$numberLong": "9223372036854775807"}}}"#,
                "lmax 2^63 d1e40 inf",
            ),
            ("nan", r#"{"a": {"$gte": {"$numberDouble": "NaN"}}}"#, "nan"),
            ("unicode", r#"{"a": {"$gte": "straße"}}"#, "straße 日本"),
        ],
    ),
    (
        "$lt",
        &[
            ("plain", r#"{"a": {"$lt": 0}}"#, "-inf lmin -1"),
            ("plain", r#"{"a": {"$lt": {"$maxKey": 1}}}"#, "not maxkey"),
            ("plain", r#"{"a": {"$lt": {"$timestamp": {"t": 9, "i": 2}}}}"#, "ts"),
            ("null", r#"{"a": {"$lt": null}}"#, ""),
            (
                "type",
                r#"{"a": {"$lt": {"$regularExpression": {"pattern": "red", "options": ""}}}}"#,
                "!2",
            ),
            ("array", r#"{"a": {"$lt": [1, 7]}}"#, "arr0 arrnull"),
            ("bound", r#"{"a": {"$lt": {"$numberLong": "-9223372036854775808"}}}"#, "-inf"),
            ("nan", r#"{"a": {"$lt": {"$numberDouble": "NaN"}}}"#, ""),
            ("unicode", r#"{"a": {"$lt": "straße"}}"#, "empty Red red"),
        ],
    ),
    (
        "$lte",
        &[
            ("plain", r#"{"a": {"$lte": 0}}"#, "-inf lmin -1 -0 0"),
            ("null", r#"{"a": {"$lte": null}}"#, "missing null arrnull"),
            (
                "type",
                r#"{"a": {"$lte": {"$regularExpression": {"pattern": "red", "options": ""}}}}"#,
                "!2",
            ),
            ("array", r#"{"a": {"$lte": [1, 7]}}"#, "arr0 arr nest arrnull"),
            ("bound", r#"{"a": {"$lte": {"$numberLong": "-9223372036854775808"}}}"#, "-inf lmin"),
            ("nan", r#"{"a": {"$lte": {"$numberDouble": "NaN"}}}"#, "nan"),
            ("unicode", r#"{"a": {"$lte": "straße"}}"#, "empty Red red straße"),
        ],
    ),
    (
        "$in",
        &[
            ("plain", r#"{"a": {"$in": [1, "red"]}}"#, "1 red arr"),
            ("plain", r#"{"a": {"$in": []}}"#, ""),
            ("plain", r#"{"a": {"$in": [{"$ref": "x", "$id": 1}]}}"#, ""),
            (
                "plain",
                r#"{"a": {"$in": [{"$regularExpression": {"pattern": "^r", "options": "i"}}]}}"#,
                "Red red",
            ),
            ("null", r#"{"a": {"$in": null}}"#, "!2"),
            ("null", r#"{"a": {"$in": [null]}}"#, "missing null arrnull"),
            ("type", r#"{"a": {"$in": 1}}"#, "!2"),
            ("type", r#"{"a": {"$in": [{"$gt": 1}]}}"#, "!2"),
            ("type", r#"{"a": {"$in": [{"$ref": "x"}]}}"#, "!2"),
            ("type", r#"{"a": {"$in": [{"$undefined": true}]}}"#, "!2"),
            (
                "type",
                r#"{"a": {"$in": [{"$regularExpression": {"pattern": "(", "options": ""}}]}}"#,
                "!51091",
            ),
            ("array", r#"{"a": {"$in": [[1, 7], []]}}"#, "arr0 arr nest"),
            ("bound", r#"{"a": {"$in": [{"$numberLong": "9223372036854775807"}]}}"#, "lmax"),
            ("nan", r#"{"a": {"$in": [{"$numberDouble": "NaN"}, 0]}}"#, "nan -0 0"),
            ("unicode", r#"{"a": {"$in": ["日本", "STRASSE"]}}"#, "日本"),
        ],
    ),
    (
        "$nin",
        &[
            ("plain", r#"{"a": {"$nin": [1, "red"]}}"#, "not 1 red arr"),
            ("plain", r#"{"a": {"$nin": []}}"#, "all"),
            ("null", r#"{"a": {"$nin": null}}"#, "!2"),
            ("null", r#"{"a": {"$nin": [null]}}"#, "not missing null arrnull"),
            ("type", r#"{"a": {"$nin": "red"}}"#, "!2"),
            ("type", r#"{"a": {"$nin": [{"$gt": 1}]}}"#, "!2"),
            ("array", r#"{"a": {"$nin": [[1, 7]]}}"#, "not arr nest"),
            ("bound", r#"{"a": {"$nin": [{"$numberLong": "9223372036854775807"}]}}"#, "not lmax"),
            ("nan", r#"{"a": {"$nin": [{"$numberDouble": "NaN"}]}}"#, "not nan"),
            ("unicode", r#"{"a": {"$nin": ["日本"]}}"#, "not 日本"),
        ],
    ),
    (
        "$and",
        &[
            ("plain", r#"{"$and": [{"a": {"$gt": 1}}, {"a": {"$lt": 7}}]}"#, "1.5 d1.5 arr"),
            ("null", r#"{"$and": null}"#, "!2"),
            ("type", r#"{"$and": {"a": 1}}"#, "!2"),
            ("array", r#"{"$and": []}"#, "!2"),
            ("array", r#"{"$and": [{}, 1]}"#, "!2"),
        ],
    ),
    (
        "$or",
        &[
            ("plain", r#"{"$or": [{"a": 1}, {"a": "red"}]}"#, "1 red arr"),
            ("plain", r#"{"$or": [{}]}"#, "all"),
            ("null", r#"{"$or": null}"#, "!2"),
            ("type", r#"{"$or": 1}"#, "!2"),
            ("array", r#"{"$or": []}"#, "!2"),
            ("array", r#"{"$or": [null]}"#, "!2"),
        ],
    ),
    (
        "$nor",
        &[
            ("plain", r#"{"$nor": [{"a": 1}, {"a": "red"}]}"#, "not 1 red arr"),
            ("null", r#"{"$nor": null}"#, "!2"),
            ("type", r#"{"$nor": "x"}"#, "!2"),
            ("array", r#"{"$nor": []}"#, "!2"),
        ],
    ),
    (
        "$not",
        &[
            (
                "plain",
                r#"{"a": {"$not": {"$gt": 1}}}"#,
                "not 1.5 d1.5 7 imax lmax 2^63 d1e40 inf arr",
            ),
            (
                "plain",
                r#"{"a": {"$not": {"$regularExpression": {"pattern": "^r", "options": ""}}}}"#,
                "not red",
            ),
            ("plain", r#"{"a": {"$not": {"$not": {"$eq": 7}}}}"#, "7 arr"),
            ("null", r#"{"a": {"$not": null}}"#, "!2"),
            ("type", r#"{"a": {"$not": 1}}"#, "!2"),
            ("type", r#"{"a": {"$not": {}}}"#, "!2"),
            ("type", r#"{"a": {"$not": {"b": 1}}}"#, "!2"),
            ("type", r#"{"$not": {"a": 1}}"#, "!2"),
            ("array", r#"{"a": {"$not": [{"$gt": 1}]}}"#, "!2"),
        ],
    ),
    (
        "$alwaysTrue",
        &[
            ("plain", r#"{"$alwaysTrue": 1}"#, "all"),
            ("plain", r#"{"$alwaysTrue": 1.0}"#, "all"),
            ("null", r#"{"$alwaysTrue": null}"#, "!9"),
            ("type", r#"{"$alwaysTrue": true}"#, "!9"),
            ("bound", r#"{"$alwaysTrue": 0}"#, "!9"),
            ("nan", r#"{"$alwaysTrue": {"$numberDouble": "NaN"}}"#, "!9"),
        ],
    ),
    (
        "$alwaysFalse",
        &[
            ("plain", r#"{"$alwaysFalse": 1}"#, ""),
            ("null", r#"{"$alwaysFalse": null}"#, "!9"),
            ("type", r#"{"$alwaysFalse": "1"}"#, "!9"),
            ("bound", r#"{"$alwaysFalse": 2}"#, "!9"),
            ("nan", r#"{"$alwaysFalse": {"$numberDouble": "NaN"}}"#, "!9"),
        ],
    ),
    (
        "$comment",
        &[
            ("plain", r#"{"a": 1, "$comment": "why"}"#, "1 arr"),
            ("plain", r#"{"a": 1, "$comment": {"$gt": 1}}"#, "1 arr"),
            // It stands in the place of a path, not at one.
            ("plain", r#"{"a": {"$comment": "why"}}"#, "!2"),
        ],
    ),
];

#[test]
fn comparisons_and_logic_answer_as_mongodb_does() {
    check(TABLES);
}
