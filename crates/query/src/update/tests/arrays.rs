//! The rows of operators on arrays.

use super::operators::{Table, check};

pub(super) const TABLES: &[Table] = &[
    (
        "$addToSet",
        &[
            ("plain", r#"{"a": [1]}"#, r#"{"$addToSet": {"a": 2}}"#, r#"{"a": [1, 2]}"#),
            ("plain", r#"{"a": [1]}"#, r#"{"$addToSet": {"a": 1.0}}"#, ""),
            // Other fields, or another order of them, make another element.
            (
                "plain",
                r#"{"a": [{"b": 1, "c": 2}]}"#,
                r#"{"$addToSet": {"a": {"c": 2, "b": 1}}}"#,
                r#"{"a": [{"b": 1, "c": 2}, {"c": 2, "b": 1}]}"#,
            ),
            ("null", r#"{"a": null}"#, r#"{"$addToSet": {"a": 1}}"#, "!2"),
            ("null", r#"{"a": []}"#, r#"{"$addToSet": {"a": null}}"#, r#"{"a": [null]}"#),
            (
                "missing",
                "{}",
                r#"{"$addToSet": {"a": 1, "b": {"$each": []}}}"#,
                r#"{"a": [1], "b": []}"#,
            ),
            ("type", r#"{"a": 1}"#, r#"{"$addToSet": {"a": 1}}"#, "!2"),
            ("type", r#"{"a": []}"#, r#"{"$addToSet": {"a": {"$each": 1}}}"#, "!14"),
            ("type", r#"{"a": []}"#, r#"{"$addToSet": {"a": {"$each": [1], "$slice": 1}}}"#, "!2"),
            ("array", r#"{"a": [1]}"#, r#"{"$addToSet": {"a": [1, 2]}}"#, r#"{"a": [1, [1, 2]]}"#),
            (
                "array",
                r#"{"a": [1]}"#,
                r#"{"$addToSet": {"a": {"$each": [2, 1, 2]}}}"#,
                r#"{"a": [1, 2]}"#,
            ),
            (
                "bound",
                r#"{"a": [{"$numberLong": "9223372036854775807"}]}"#,
                r#"{"$addToSet": {"a": {"$numberDouble": "9223372036854775808"}}}"#,
                r#"{"a": [{"$numberLong": "9223372036854775807"}, {"$numberDouble": "9223372036854775808"}]}"#,
            ),
            (
                "nan",
                r#"{"a": [{"$numberDouble": "NaN"}]}"#,
                r#"{"$addToSet": {"a": {"$numberDouble": "NaN"}}}"#,
                "",
            ),
            (
                "unicode",
                r#"{"a": ["é"]}"#,
                r#"{"$addToSet": {"a": {"$each": ["é", "e\u0301"]}}}"#,
                r#"{"a": ["é", "e\u0301"]}"#,
            ),
        ],
    ),
    (
        "$pop",
        &[
            ("plain", r#"{"a": [1, 2, 3]}"#, r#"{"$pop": {"a": 1}}"#, r#"{"a": [1, 2]}"#),
            ("plain", r#"{"a": [1, 2, 3]}"#, r#"{"$pop": {"a": -1.0}}"#, r#"{"a": [2, 3]}"#),
            ("null", r#"{"a": null}"#, r#"{"$pop": {"a": 1}}"#, "!14"),
            ("null", r#"{"a": [1]}"#, r#"{"$pop": {"a": null}}"#, "!9"),
            ("missing", r#"{"b": 1}"#, r#"{"$pop": {"a": 1, "c.d": 1}}"#, ""),
            ("missing", r#"{"a": "x"}"#, r#"{"$pop": {"a.b": 1}}"#, "!28"),
            ("type", r#"{"a": 1}"#, r#"{"$pop": {"a": 1}}"#, "!14"),
            ("type", r#"{"a": [1]}"#, r#"{"$pop": {"a": "1"}}"#, "!9"),
            ("type", r#"{"a": [1]}"#, r#"{"$pop": {"a": true}}"#, "!9"),
            ("array", r#"{"a": []}"#, r#"{"$pop": {"a": 1}}"#, ""),
            ("array", r#"{"a": [[1, 2]]}"#, r#"{"$pop": {"a.0": 1}}"#, r#"{"a": [[1]]}"#),
            ("bound", r#"{"a": [1]}"#, r#"{"$pop": {"a": 2}}"#, "!9"),
            ("bound", r#"{"a": [1]}"#, r#"{"$pop": {"a": 0}}"#, "!9"),
        ],
    ),
    (
        "$pull",
        &[
            ("plain", r#"{"a": [1, 5, 9, 5]}"#, r#"{"$pull": {"a": 5}}"#, r#"{"a": [1, 9]}"#),
            (
                "plain",
                r#"{"a": [1, 5, 9]}"#,
                r#"{"$pull": {"a": {"$in": [1, 9]}}}"#,
                r#"{"a": [5]}"#,
            ),
            (
                "plain",
                r#"{"a": ["red", "blue"]}"#,
                r#"{"$pull": {"a": {"$regularExpression": {"pattern": "^r", "options": ""}}}}"#,
                r#"{"a": ["blue"]}"#,
            ),
            // A condition on a document is asked of its fields, whatever others it has.
            (
                "plain",
                r#"{"a": [{"b": 1, "c": 2}, {"b": 2}, 1]}"#,
                r#"{"$pull": {"a": {"b": 1}}}"#,
                r#"{"a": [{"b": 2}, 1]}"#,
            ),
            (
                "plain",
                r#"{"a": [{"b": [{"c": 1}]}, {"b": []}]}"#,
                r#"{"$pull": {"a": {"b": {"$elemMatch": {"c": 1}}}}}"#,
                r#"{"a": [{"b": []}]}"#,
            ),
            ("plain", r#"{"a": [{"b": 1}, 1]}"#, r#"{"$pull": {"a": {}}}"#, r#"{"a": [1]}"#),
            ("null", r#"{"a": [1, null]}"#, r#"{"$pull": {"a": null}}"#, r#"{"a": [1]}"#),
            ("null", r#"{"a": null}"#, r#"{"$pull": {"a": 1}}"#, "!2"),
            (
                "null",
                r#"{"a": [{"b": null}, {}, {"b": 1}]}"#,
                r#"{"$pull": {"a": {"b": null}}}"#,
                r#"{"a": [{"b": 1}]}"#,
            ),
            ("missing", "{}", r#"{"$pull": {"a": 1, "b.c": 1}}"#, ""),
            ("missing", r#"{"a": 1}"#, r#"{"$pull": {"a.b": 1}}"#, "!28"),
            ("missing", r#"{"a": [1]}"#, r#"{"$pull": {"a.b": 1}}"#, "!28"),
            ("type", r#"{"a": 1}"#, r#"{"$pull": {"a": 1}}"#, "!2"),
            ("type", r#"{"a": [1]}"#, r#"{"$pull": {"a": {"$foo": 1}}}"#, "!2"),
            ("type", r#"{"a": [1]}"#, r#"{"$pull": {"a": {"$not": {"$gt": 0}}}}"#, "!2"),
            ("type", r#"{"a": [1]}"#, r#"{"$pull": {"a": {"$expr": true}}}"#, "!224"),
            ("type", r#"{"a": [1]}"#, r#"{"$pull": {"a": {"$jsonSchema": {}}}}"#, "!224"),
            ("type", r#"{"a": [1]}"#, r#"{"$pull": {"a": {"$where": "1"}}}"#, "!2"),
            ("type", r#"{"a": [1]}"#, r#"{"$pull": {"a": {"$near": [0, 0]}}}"#, "!5626500"),
            (
                "array",
                r#"{"a": [[1, 2], [2, 1], 1]}"#,
                r#"{"$pull": {"a": [1, 2]}}"#,
                r#"{"a": [[2, 1], 1]}"#,
            ),
            // Operators look into arrays, a plain value doesn't.
            ("array", r#"{"a": [[1, 7], 7]}"#, r#"{"$pull": {"a": 7}}"#, r#"{"a": [[1, 7]]}"#),
            (
                "array",
                r#"{"a": [[1, 7], 7, 1]}"#,
                r#"{"$pull": {"a": {"$eq": 7}}}"#,
                r#"{"a": [1]}"#,
            ),
            (
                "array",
                r#"{"a": [["red"], "x"]}"#,
                r#"{"$pull": {"a": {"$regularExpression": {"pattern": "^r", "options": ""}}}}"#,
                r#"{"a": ["x"]}"#,
            ),
            (
                "bound",
                r#"{"a": [{"$numberLong": "9223372036854775807"}, 1]}"#,
                r#"{"$pull": {"a": {"$numberDouble": "9223372036854775808"}}}"#,
                "",
            ),
            (
                "nan",
                r#"{"a": [{"$numberDouble": "NaN"}, 1]}"#,
                r#"{"$pull": {"a": {"$numberDecimal": "NaN"}}}"#,
                r#"{"a": [1]}"#,
            ),
            ("unicode", r#"{"a": ["é", "e"]}"#, r#"{"$pull": {"a": "é"}}"#, r#"{"a": ["e"]}"#),
        ],
    ),
    (
        "$pullAll",
        &[
            (
                "plain",
                r#"{"a": [1, 2, 1.0, 3]}"#,
                r#"{"$pullAll": {"a": [1, 3]}}"#,
                r#"{"a": [2]}"#,
            ),
            (
                "plain",
                r#"{"a": [{"b": 1, "c": 2}, {"b": 1}]}"#,
                r#"{"$pullAll": {"a": [{"b": 1}]}}"#,
                r#"{"a": [{"b": 1, "c": 2}]}"#,
            ),
            ("null", r#"{"a": [null, 1]}"#, r#"{"$pullAll": {"a": [null]}}"#, r#"{"a": [1]}"#),
            ("null", r#"{"a": [1]}"#, r#"{"$pullAll": {"a": null}}"#, "!2"),
            ("missing", "{}", r#"{"$pullAll": {"a": [1]}}"#, ""),
            ("missing", r#"{"a": 1}"#, r#"{"$pullAll": {"a.b": [1]}}"#, "!28"),
            ("type", r#"{"a": 1}"#, r#"{"$pullAll": {"a": [1]}}"#, "!2"),
            ("type", r#"{"a": [1]}"#, r#"{"$pullAll": {"a": 1}}"#, "!2"),
            ("array", r#"{"a": [[1], 1]}"#, r#"{"$pullAll": {"a": [[1]]}}"#, r#"{"a": [1]}"#),
            ("array", r#"{"a": [1]}"#, r#"{"$pullAll": {"a": []}}"#, ""),
            (
                "bound",
                r#"{"a": [2147483647]}"#,
                r#"{"$pullAll": {"a": [{"$numberLong": "2147483647"}]}}"#,
                r#"{"a": []}"#,
            ),
            (
                "nan",
                r#"{"a": [{"$numberDouble": "NaN"}]}"#,
                r#"{"$pullAll": {"a": [{"$numberDouble": "NaN"}]}}"#,
                r#"{"a": []}"#,
            ),
            (
                "unicode",
                r#"{"a": ["日", "本"]}"#,
                r#"{"$pullAll": {"a": ["本"]}}"#,
                r#"{"a": ["日"]}"#,
            ),
        ],
    ),
    (
        "$push",
        &[
            ("plain", r#"{"a": [1]}"#, r#"{"$push": {"a": 2}}"#, r#"{"a": [1, 2]}"#),
            ("plain", r#"{"a": [1]}"#, r#"{"$push": {"a": {"b": 1}}}"#, r#"{"a": [1, {"b": 1}]}"#),
            ("null", r#"{"a": null}"#, r#"{"$push": {"a": 1}}"#, "!2"),
            ("null", r#"{"a": []}"#, r#"{"$push": {"a": null}}"#, r#"{"a": [null]}"#),
            ("missing", "{}", r#"{"$push": {"a.b": 1}}"#, r#"{"a": {"b": [1]}}"#),
            ("type", r#"{"a": 1}"#, r#"{"$push": {"a": 1}}"#, "!2"),
            ("type", r#"{"a": []}"#, r#"{"$push": {"a": {"$each": [1], "$foo": 1}}}"#, "!2"),
            ("type", r#"{"a": 1}"#, r#"{"$push": {"a.b": 1}}"#, "!28"),
            ("array", r#"{"a": [1]}"#, r#"{"$push": {"a": [2, 3]}}"#, r#"{"a": [1, [2, 3]]}"#),
            (
                "bound",
                r#"{"a": []}"#,
                r#"{"$push": {"a": {"$numberLong": "9223372036854775807"}}}"#,
                r#"{"a": [{"$numberLong": "9223372036854775807"}]}"#,
            ),
            (
                "nan",
                r#"{"a": [1]}"#,
                r#"{"$push": {"a": {"$each": [{"$numberDouble": "NaN"}], "$sort": 1}}}"#,
                r#"{"a": [{"$numberDouble": "NaN"}, 1]}"#,
            ),
            (
                "unicode",
                r#"{"a": ["é"]}"#,
                r#"{"$push": {"a": {"$each": ["z", "日"], "$sort": 1}}}"#,
                r#"{"a": ["z", "é", "日"]}"#,
            ),
        ],
    ),
];

#[test]
fn operators_on_arrays_do_as_mongodb_does() {
    check(TABLES);
}
