//! The rows of operators that ask what a value is: types, arrays, bits, texts, places, and those
//! that ask whole documents.

use super::operators::{Table, check};

pub(super) const TABLES: &[Table] = &[
    (
        "$exists",
        &[
            ("plain", r#"{"a": {"$exists": true}}"#, "not missing"),
            ("plain", r#"{"a": {"$exists": 0}}"#, "missing"),
            ("plain", r#"{"a": {"$exists": "no"}}"#, "not missing"),
            ("null", r#"{"a": {"$exists": null}}"#, "missing"),
            ("null", r#"{"a": {"$exists": {"$undefined": true}}}"#, "missing"),
            ("array", r#"{"a": {"$exists": []}}"#, "not missing"),
            ("array", r#"{"a.1": {"$exists": true}}"#, "arr docs"),
            ("nan", r#"{"a": {"$exists": {"$numberDouble": "NaN"}}}"#, "not missing"),
            ("nan", r#"{"a": {"$exists": {"$numberDouble": "-0.0"}}}"#, "missing"),
        ],
    ),
    (
        "$type",
        &[
            ("plain", r#"{"a": {"$type": "string"}}"#, "empty Red red straße 日本"),
            (
                "plain",
                r#"{"a": {"$type": "number"}}"#,
                "nan -inf lmin -1 -0 0 1 1.5 d1.5 7 imax lmax 2^63 d1e40 inf arr",
            ),
            ("plain", r#"{"a": {"$type": "int"}}"#, "-1 0 1 imax arr"),
            ("plain", r#"{"a": {"$type": 18}}"#, "lmin 7 lmax"),
            ("plain", r#"{"a": {"$type": 1.0}}"#, "nan -inf -0 1.5 2^63 inf"),
            ("plain", r#"{"a": {"$type": "object"}}"#, "obj0 obj place docs"),
            ("plain", r#"{"a": {"$type": -1}}"#, "minkey"),
            ("plain", r#"{"a": {"$type": 127}}"#, "maxkey"),
            ("plain", r#"{"a": {"$type": "regex"}}"#, "re"),
            ("null", r#"{"a": {"$type": null}}"#, "!14"),
            ("null", r#"{"a": {"$type": 10}}"#, "null arrnull"),
            ("type", r#"{"a": {"$type": {}}}"#, "!14"),
            ("type", r#"{"a": {"$type": "text"}}"#, "!2"),
            ("type", r#"{"a": {"$type": "missing"}}"#, "!2"),
            ("type", r#"{"a": {"$type": 0}}"#, "!2"),
            ("type", r#"{"a": {"$type": 1.5}}"#, "!2"),
            ("type", r#"{"a": {"$type": 255}}"#, "!2"),
            ("type", r#"{"a": {"$type": {"$numberDouble": "NaN"}}}"#, "!2"),
            ("array", r#"{"a": {"$type": []}}"#, "!9"),
            ("array", r#"{"a": {"$type": "array"}}"#, "arr0 arr nest arrnull docs"),
            ("array", r#"{"a": {"$type": ["null", 16]}}"#, "null -1 0 1 imax arr arrnull"),
        ],
    ),
    (
        "$all",
        &[
            ("plain", r#"{"a": {"$all": [1, 7]}}"#, "arr"),
            ("plain", r#"{"a": {"$all": [1]}}"#, "1 arr"),
            ("plain", r#"{"a": {"$all": []}}"#, ""),
            (
                "plain",
                r#"{"a": {"$all": [{"$elemMatch": {"b": 1}}, {"$elemMatch": {"b": 7}}]}}"#,
                "docs",
            ),
            (
                "plain",
                r#"{"a": {"$all": [{"$regularExpression": {"pattern": "^r", "options": "i"}}]}}"#,
                "Red red",
            ),
            ("null", r#"{"a": {"$all": null}}"#, "!2"),
            ("null", r#"{"a": {"$all": [null]}}"#, "missing null arrnull"),
            ("type", r#"{"a": {"$all": 1}}"#, "!2"),
            ("type", r#"{"a": {"$all": [{"$gt": 1}]}}"#, "!2"),
            ("type", r#"{"a": {"$all": [1, {"$elemMatch": {"b": 1}}]}}"#, "!2"),
            ("type", r#"{"a": {"$all": [{"$elemMatch": {"b": 1}}, 1]}}"#, "!2"),
            ("array", r#"{"a": {"$all": [[1, 7]]}}"#, "arr nest"),
            ("bound", r#"{"a": {"$all": [{"$numberLong": "9223372036854775807"}]}}"#, "lmax"),
            ("nan", r#"{"a": {"$all": [{"$numberDouble": "NaN"}]}}"#, "nan"),
            ("unicode", r#"{"a": {"$all": ["日本"]}}"#, "日本"),
        ],
    ),
    (
        "$elemMatch",
        &[
            ("plain", r#"{"a": {"$elemMatch": {"$gt": 1, "$lt": 9}}}"#, "arr"),
            ("plain", r#"{"a": {"$elemMatch": {"b": 7}}}"#, "docs"),
            ("plain", r#"{"a": {"$elemMatch": {}}}"#, "nest docs"),
            ("plain", r#"{"a": {"$elemMatch": {"$or": [{"b": 7}, {"c": 1}]}}}"#, "docs"),
            ("plain", r#"{"a": {"$elemMatch": {"$not": {"$gt": 1}}}}"#, "arr nest arrnull docs"),
            ("plain", r#"{"a": {"$elemMatch": {"$ref": "x"}}}"#, ""),
            ("null", r#"{"a": {"$elemMatch": null}}"#, "!2"),
            ("null", r#"{"a": {"$elemMatch": {"$eq": null}}}"#, "arrnull"),
            ("type", r#"{"a": {"$elemMatch": 1}}"#, "!2"),
            ("type", r#"{"a": {"$elemMatch": {"$expr": true}}}"#, "!2"),
            ("type", r#"{"a": {"$elemMatch": {"b": 1, "$sampleRate": 1}}}"#, "!2"),
            ("type", r#"{"a": {"$elemMatch": {"$foo": 1}}}"#, "!2"),
            ("array", r#"{"a": {"$elemMatch": [1]}}"#, "!2"),
            ("array", r#"{"a": {"$elemMatch": {"0": 1}}}"#, "nest"),
            ("array", r#"{"a": {"$elemMatch": {"$elemMatch": {"$gt": 1}}}}"#, "nest"),
        ],
    ),
    (
        "$size",
        &[
            ("plain", r#"{"a": {"$size": 2}}"#, "arr docs"),
            ("plain", r#"{"a": {"$size": 1.0}}"#, "nest arrnull"),
            ("plain", r#"{"a": {"$size": {"$numberDecimal": "0"}}}"#, "arr0"),
            ("null", r#"{"a": {"$size": null}}"#, "!2"),
            ("type", r#"{"a": {"$size": "2"}}"#, "!2"),
            ("type", r#"{"a": {"$size": true}}"#, "!2"),
            ("array", r#"{"a": {"$size": [2]}}"#, "!2"),
            ("bound", r#"{"a": {"$size": -1}}"#, "!2"),
            ("bound", r#"{"a": {"$size": 1.5}}"#, "!2"),
            ("bound", r#"{"a": {"$size": 2147483647}}"#, ""),
            ("bound", r#"{"a": {"$size": {"$numberLong": "2147483648"}}}"#, "!2"),
            ("nan", r#"{"a": {"$size": {"$numberDouble": "NaN"}}}"#, "!2"),
        ],
    ),
    (
        "$mod",
        &[
            ("plain", r#"{"a": {"$mod": [3, 1]}}"#, "1 1.5 d1.5 7 imax lmax arr"),
            ("plain", r#"{"a": {"$mod": [3, -1]}}"#, "-1"),
            (
                "plain",
                r#"{"a": {"$mod": [3.9, {"$numberDecimal": "1.9"}]}}"#,
                "1 1.5 d1.5 7 imax lmax arr",
            ),
            ("null", r#"{"a": {"$mod": null}}"#, "!2"),
            ("null", r#"{"a": {"$mod": [null, 1]}}"#, "!2"),
            ("type", r#"{"a": {"$mod": 3}}"#, "!2"),
            ("type", r#"{"a": {"$mod": ["3", 1]}}"#, "!2"),
            ("type", r#"{"a": {"$mod": [3, "1"]}}"#, "!2"),
            ("array", r#"{"a": {"$mod": []}}"#, "!2"),
            ("array", r#"{"a": {"$mod": [3]}}"#, "!2"),
            ("array", r#"{"a": {"$mod": [3, 1, 2]}}"#, "!2"),
            ("bound", r#"{"a": {"$mod": [0, 1]}}"#, "!2"),
            (
                "bound",
                r#"{"a": {"$mod": [{"$numberLong": "9223372036854775807"}, 0]}}"#,
                "-0 0 lmax",
            ),
            ("bound", r#"{"a": {"$mod": [-1, 0]}}"#, "lmin -1 -0 0 1 1.5 d1.5 7 imax lmax arr"),
            ("bound", r#"{"a": {"$mod": [{"$numberDouble": "9223372036854775808"}, 0]}}"#, "!2"),
            ("nan", r#"{"a": {"$mod": [{"$numberDouble": "NaN"}, 0]}}"#, "!2"),
            ("nan", r#"{"a": {"$mod": [3, {"$numberDouble": "Infinity"}]}}"#, "!2"),
        ],
    ),
    (
        "$bitsAllSet",
        &[
            ("plain", r#"{"a": {"$bitsAllSet": 7}}"#, "-1 7 imax lmax arr bin"),
            (
                "plain",
                r#"{"a": {"$bitsAllSet": {"$binary": {"base64": "Bw==", "subType": "00"}}}}"#,
                "-1 7 imax lmax arr bin",
            ),
            ("null", r#"{"a": {"$bitsAllSet": null}}"#, "!2"),
            ("type", r#"{"a": {"$bitsAllSet": "7"}}"#, "!2"),
            ("array", r#"{"a": {"$bitsAllSet": [0, 2.0]}}"#, "-1 7 imax lmax arr bin"),
            ("array", r#"{"a": {"$bitsAllSet": [-1]}}"#, "!2"),
            ("array", r#"{"a": {"$bitsAllSet": ["1"]}}"#, "!2"),
            // Numbers go on with their sign beyond their 64 bits.
            ("bound", r#"{"a": {"$bitsAllSet": [70]}}"#, "lmin -1"),
            ("bound", r#"{"a": {"$bitsAllSet": [{"$numberLong": "2147483648"}]}}"#, "!2"),
            ("bound", r#"{"a": {"$bitsAllSet": -1}}"#, "!9"),
            ("bound", r#"{"a": {"$bitsAllSet": 1.5}}"#, "!9"),
            ("bound", r#"{"a": {"$bitsAllSet": {"$numberDouble": "9223372036854775808"}}}"#, "!9"),
            ("nan", r#"{"a": {"$bitsAllSet": {"$numberDouble": "NaN"}}}"#, "!9"),
        ],
    ),
    (
        "$bitsAnySet",
        &[
            ("plain", r#"{"a": {"$bitsAnySet": 6}}"#, "-1 7 imax lmax arr bin"),
            ("null", r#"{"a": {"$bitsAnySet": null}}"#, "!2"),
            ("type", r#"{"a": {"$bitsAnySet": {}}}"#, "!2"),
            ("array", r#"{"a": {"$bitsAnySet": []}}"#, ""),
            (
                "bound",
                r#"{"a": {"$bitsAnySet": {"$numberLong": "4611686018427387904"}}}"#,
                "-1 lmax",
            ),
            ("bound", r#"{"a": {"$bitsAnySet": -1}}"#, "!9"),
            ("nan", r#"{"a": {"$bitsAnySet": {"$numberDouble": "NaN"}}}"#, "!9"),
        ],
    ),
    (
        "$bitsAllClear",
        &[
            ("plain", r#"{"a": {"$bitsAllClear": 6}}"#, "lmin -0 0 1 arr"),
            ("null", r#"{"a": {"$bitsAllClear": null}}"#, "!2"),
            ("type", r#"{"a": {"$bitsAllClear": true}}"#, "!2"),
            ("array", r#"{"a": {"$bitsAllClear": [1, 200]}}"#, "-0 0 1 arr"),
            ("bound", r#"{"a": {"$bitsAllClear": -1}}"#, "!9"),
            ("nan", r#"{"a": {"$bitsAllClear": {"$numberDouble": "NaN"}}}"#, "!9"),
        ],
    ),
    (
        "$bitsAnyClear",
        &[
            ("plain", r#"{"a": {"$bitsAnyClear": 5}}"#, "lmin -0 0 1 arr"),
            ("null", r#"{"a": {"$bitsAnyClear": null}}"#, "!2"),
            ("type", r#"{"a": {"$bitsAnyClear": "5"}}"#, "!2"),
            ("array", r#"{"a": {"$bitsAnyClear": [0, 3]}}"#, "lmin -0 0 1 7 arr bin"),
            ("bound", r#"{"a": {"$bitsAnyClear": 0.5}}"#, "!9"),
            ("nan", r#"{"a": {"$bitsAnyClear": {"$numberDouble": "NaN"}}}"#, "!9"),
        ],
    ),
    (
        "$regex",
        &[
            ("plain", r#"{"a": {"$regex": "^r"}}"#, "red"),
            ("plain", r#"{"a": {"$regex": "^r", "$exists": true}}"#, "red"),
            ("plain", r#"{"a": {"$regex": "^r", "$options": "i", "$ne": "red"}}"#, "Red"),
            ("plain", r#"{"a": {"$regex": "^r", "$options": "i"}}"#, "Red red"),
            (
                "plain",
                r#"{"a": {"$regex": {"$regularExpression": {"pattern": "red", "options": ""}}}}"#,
                "red re",
            ),
            ("null", r#"{"a": {"$regex": null}}"#, "!2"),
            ("type", r#"{"a": {"$regex": 1}}"#, "!2"),
            ("type", r#"{"a": {"$regex": "(", "$exists": true}}"#, "!51091"),
            ("array", r#"{"a": {"$regex": ["r"]}}"#, "!2"),
            ("unicode", r#"{"a": {"$regex": "^stra.e$"}}"#, "straße"),
            ("unicode", r#"{"a": {"$regex": "^..$"}}"#, "日本"),
        ],
    ),
    (
        "$options",
        &[
            ("plain", r#"{"a": {"$options": "i", "$regex": "^R"}}"#, "Red red"),
            (
                "plain",
                r#"{"a": {"$options": "", "$regex": {"$regularExpression": {"pattern": "^R", "options": "i"}}}}"#,
                "Red red",
            ),
            ("null", r#"{"a": {"$regex": "r", "$options": null}}"#, "!2"),
            ("type", r#"{"a": {"$regex": "r", "$options": 1}}"#, "!2"),
            ("type", r#"{"a": {"$regex": "r", "$options": "q"}}"#, "!51108"),
            ("type", r#"{"a": {"$options": "i"}}"#, "!2"),
            (
                "type",
                r#"{"a": {"$regex": {"$regularExpression": {"pattern": "r", "options": "i"}}, "$options": "s"}}"#,
                "!51075",
            ),
            (
                "type",
                r#"{"a": {"$options": "s", "$regex": {"$regularExpression": {"pattern": "r", "options": "i"}}}}"#,
                "!51074",
            ),
        ],
    ),
    (
        "$expr",
        &[
            ("plain", r#"{"$expr": {"$eq": ["$a", 1]}}"#, "1"),
            ("plain", r#"{"$expr": "$a"}"#, "not missing null undef -0 0 false"),
            ("null", r#"{"$expr": null}"#, ""),
            ("null", r#"{"$expr": {"$eq": ["$a", null]}}"#, "null"),
            ("type", r#"{"$expr": {"$foo": 1}}"#, "!168"),
            ("array", r#"{"$expr": {"$eq": ["$a", [1, 7]]}}"#, "arr"),
            ("array", r#"{"$expr": []}"#, "all"),
            (
                "bound",
                r#"{"$expr": {"$eq": ["$a", {"$numberLong": "9223372036854775807"}]}}"#,
                "lmax",
            ),
            ("nan", r#"{"$expr": {"$eq": ["$a", {"$numberDouble": "NaN"}]}}"#, "nan"),
            ("unicode", r#"{"$expr": {"$eq": ["$a", "straße"]}}"#, "straße"),
        ],
    ),
    (
        "$jsonSchema",
        &[
            (
                "plain",
                r#"{"$jsonSchema": {"properties": {"a": {"type": "number"}}}}"#,
                "missing nan -inf lmin -1 -0 0 1 1.5 d1.5 7 imax lmax 2^63 d1e40 inf",
            ),
            ("null", r#"{"$jsonSchema": null}"#, "!14"),
            ("type", r#"{"$jsonSchema": 1}"#, "!14"),
            ("type", r#"{"$jsonSchema": {"foo": 1}}"#, "!9"),
            (
                "unicode",
                r#"{"$jsonSchema": {"required": ["a"], "properties": {"a": {"type": "string", "maxLength": 2}}}}"#,
                "empty 日本",
            ),
        ],
    ),
    (
        "$sampleRate",
        &[
            ("plain", r#"{"$sampleRate": 1}"#, "all"),
            ("plain", r#"{"$sampleRate": 0}"#, ""),
            ("null", r#"{"$sampleRate": null}"#, "!2"),
            ("type", r#"{"$sampleRate": "1"}"#, "!2"),
            ("bound", r#"{"$sampleRate": 1.5}"#, "!2"),
            ("bound", r#"{"$sampleRate": -0.1}"#, "!2"),
            ("nan", r#"{"$sampleRate": {"$numberDouble": "NaN"}}"#, "!2"),
        ],
    ),
    (
        "$text",
        &[
            ("plain", r#"{"$text": {"$search": "red"}}"#, "all"),
            ("null", r#"{"$text": null}"#, "!2"),
            ("type", r#"{"$text": "red"}"#, "!2"),
            ("type", r#"{"a": {"$elemMatch": {"$text": {"$search": "red"}}}}"#, "!2"),
        ],
    ),
    (
        "$where",
        &[
            ("plain", r#"{"$where": "this.a"}"#, "!2"),
            ("null", r#"{"$where": null}"#, "!2"),
            ("type", r#"{"a": {"$where": "this.a"}}"#, "!2"),
        ],
    ),
    (
        "$geoWithin",
        &[
            ("plain", r#"{"a": {"$geoWithin": {"$box": [[0, 0], [9, 9]]}}}"#, "place arr nest"),
            ("null", r#"{"a": {"$geoWithin": null}}"#, "!2"),
            ("type", r#"{"a": {"$geoWithin": 1}}"#, "!2"),
            ("type", r#"{"a": {"$geoWithin": {"$box": 1}}}"#, "!2"),
        ],
    ),
    (
        "$within",
        &[
            ("plain", r#"{"a": {"$within": {"$center": [[1, 7], 1]}}}"#, "place arr nest"),
            ("null", r#"{"a": {"$within": null}}"#, "!2"),
            ("type", r#"{"a": {"$within": "x"}}"#, "!2"),
        ],
    ),
    (
        "$geoIntersects",
        &[
            (
                "plain",
                r#"{"a": {"$geoIntersects": {"$geometry": {"type": "Point", "coordinates": [1, 7]}}}}"#,
                "place arr nest",
            ),
            ("null", r#"{"a": {"$geoIntersects": null}}"#, "!2"),
            ("type", r#"{"a": {"$geoIntersects": {"$geometry": 1}}}"#, "!2"),
        ],
    ),
    (
        "$near",
        &[
            ("plain", r#"{"a": {"$near": [1, 7], "$maxDistance": 0.5}}"#, "place arr nest"),
            ("null", r#"{"a": {"$near": null}}"#, "!2"),
            ("type", r#"{"a": {"$near": "x"}}"#, "!2"),
            ("type", r#"{"a": {"$near": [1, 7], "$gt": 1}}"#, "!2"),
            ("type", r#"{"a": {"$gt": 1, "$near": [1, 7]}}"#, "!2"),
        ],
    ),
    (
        "$nearSphere",
        &[
            (
                "plain",
                r#"{"a": {"$nearSphere": {"$geometry": {"type": "Point", "coordinates": [1, 7]}, "$maxDistance": 9}}}"#,
                "place arr nest",
            ),
            ("null", r#"{"a": {"$nearSphere": null}}"#, "!2"),
            ("type", r#"{"a": {"$nearSphere": 1}}"#, "!2"),
        ],
    ),
    (
        "$maxDistance",
        &[
            ("plain", r#"{"a": {"$near": [0, 0], "$maxDistance": 1}}"#, ""),
            ("null", r#"{"a": {"$near": [0, 0], "$maxDistance": null}}"#, "!2"),
            ("type", r#"{"a": {"$near": [0, 0], "$maxDistance": "1"}}"#, "!2"),
            ("type", r#"{"a": {"$maxDistance": 1}}"#, "!2"),
        ],
    ),
    (
        "$minDistance",
        &[
            ("plain", r#"{"a": {"$near": [1, 7], "$minDistance": 1}}"#, ""),
            ("null", r#"{"a": {"$near": [1, 7], "$minDistance": null}}"#, "!2"),
            ("type", r#"{"a": {"$near": [1, 7], "$minDistance": "1"}}"#, "!2"),
        ],
    ),
    (
        "$uniqueDocs",
        &[(
            "plain",
            r#"{"a": {"$near": [1, 7], "$maxDistance": 1, "$uniqueDocs": true}}"#,
            "place arr nest",
        )],
    ),
];

#[test]
fn questions_to_shapes_and_documents_are_answered_as_mongodb_does() {
    check(TABLES);
}
