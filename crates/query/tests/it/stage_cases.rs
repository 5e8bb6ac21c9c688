//! Goal: every stage gives MongoDB's documents for values of every kind, and MongoDB's code for
//! values that it doesn't take.
//!
//! Method: each row is a list of documents, stages over them, and what comes out, or `!code`.
//! Stages with many documents, with memory and with other collections have tests of their own:
//! `stages`, `windows`, `lookups`, `spills`.

use frond_query::reference::{STAGES, SupportLevel, families};

use crate::pipelines::check;

/// The kind of value that the row is about, the documents, the stages, and what comes out.
type Row = (&'static str, &'static str, &'static str, &'static str);

const MIXED: &str = r#"[{"a": 1}, {"a": null}, {}, {"a": "x"}, {"a": [1, 2]}]"#;
const NUMBERS: &str = r#"[{"a": 3}, {"a": 1}, {"a": 2}]"#;
const NAN: &str = r#"[{"a": 1}, {"a": {"$numberDouble": "NaN"}}, {"a": {"$numberDouble": "NaN"}}]"#;
const LETTERS: &str = r#"[{"a": "é"}, {"a": "z"}, {"a": "日"}]"#;

const PARALLEL: &str = r#"[{"a": 1, "b": [2], "c": 1}, {"a": [1, 2], "b": [3], "c": 2}]"#;

#[rustfmt::skip]
const TABLES: &[(&str, &[Row])] = &[
    ("$match", &[
        ("plain", NUMBERS, r#"{"$match": {"a": {"$gt": 1}}}"#, r#"[{"a": 3}, {"a": 2}]"#),
        ("null", MIXED, r#"{"$match": {"a": null}}"#, r#"[{"a": null}, {}]"#),
        ("null", MIXED, r#"{"$match": null}"#, "!15959"),
        ("missing", MIXED, r#"{"$match": {"a": {"$exists": false}}}"#, "[{}]"),
        ("type", MIXED, r#"{"$match": "a"}"#, "!15959"),
        ("array", MIXED, r#"{"$match": {"a": 2}}"#, r#"[{"a": [1, 2]}]"#),
    ]),
    ("$project", &[
        ("plain", NUMBERS, r#"{"$project": {"b": {"$add": ["$a", 1]}}}"#, r#"[{"b": 4}, {"b": 2}, {"b": 3}]"#),
        ("null", MIXED, r#"{"$project": {"b": "$a"}}, {"$limit": 3}"#, r#"[{"b": 1}, {"b": null}, {}]"#),
        ("null", MIXED, r#"{"$project": null}"#, "!15969"),
        ("missing", MIXED, r#"{"$project": {"b": 1}}, {"$limit": 1}"#, "[{}]"),
        ("type", MIXED, r#"{"$project": "a"}"#, "!15969"),
        ("type", MIXED, r#"{"$project": {}}"#, "!51272"),
        ("type", MIXED, r#"{"$project": {"a": 1, "b": 0}}"#, "!31254"),
        ("type", MIXED, r#"{"$project": {"a": 0, "b": 1}}"#, "!31253"),
        ("type", MIXED, r#"{"$project": {"a": 0, "b": "$a"}}"#, "!31310"),
        ("type", MIXED, r#"{"$project": {"a": 0, "b": {"$add": [1, 2]}}}"#, "!31252"),
        ("type", MIXED, r#"{"$project": {"b": {"$foo": 1}}}"#, "!31325"),
        ("type", MIXED, r#"{"$project": {"b": {}}}"#, "!51270"),
        ("type", MIXED, r#"{"$project": {"a": 1, "a.b": 1}}"#, "!31249"),
        ("type", MIXED, r#"{"$project": {"a.b": 1, "a": 1}}"#, "!31250"),
        ("array", r#"[{"a": [{"b": 1, "c": 2}, 3]}]"#, r#"{"$project": {"a.b": 1}}"#, r#"[{"a": [{"b": 1}]}]"#),
    ]),
    ("$addFields", &[
        ("plain", NUMBERS, r#"{"$addFields": {"b": {"$multiply": ["$a", 2]}}}, {"$limit": 1}"#, r#"[{"a": 3, "b": 6}]"#),
        ("null", MIXED, r#"{"$addFields": {"b": "$a"}}, {"$limit": 3}"#, r#"[{"a": 1, "b": 1}, {"a": null, "b": null}, {}]"#),
        ("null", MIXED, r#"{"$addFields": null}"#, "!40272"),
        ("missing", MIXED, r#"{"$addFields": {"a": "$none"}}, {"$limit": 1}"#, "[{}]"),
        ("type", MIXED, r#"{"$addFields": 1}"#, "!40272"),
        ("missing", NUMBERS, r#"{"$addFields": {}}, {"$limit": 1}"#, r#"[{"a": 3}]"#),
        ("reference", r#"[{"a": {"$literal": {"$ref": "c", "$id": 7, "$db": "d"}}}]"#, r#"{"$addFields": {"b": "$a.$id", "c": ["$a.$ref", "$$ROOT.a.$db"]}}, {"$project": {"b": 1, "c": 1, "a.$id": 1}}"#, r#"[{"a": {"$id": 7}, "b": 7, "c": ["c", "d"]}]"#),
        ("reference", MIXED, r#"{"$addFields": {"b": "$a.$other"}}"#, "!16410"),
        ("type", MIXED, r#"{"$addFields": {"b": {}}}"#, "!40180"),
        ("type", MIXED, r#"{"$addFields": {"b": 1, "b.c": 1}}"#, "!40176"),
        ("type", MIXED, r#"{"$addFields": {"b": {"$add": [1], "$abs": 1}}}"#, "!40182"),
        ("type", MIXED, r#"{"$addFields": {"b": {"c.d": 1}}}"#, "!40183"),
        ("type", MIXED, r#"{"$addFields": {"b": {"$foo": 1}}}"#, "!168"),
        ("array", r#"[{"a": [{"b": 1}, 2]}]"#, r#"{"$addFields": {"a.c": 5}}"#, r#"[{"a": [{"b": 1, "c": 5}, {"c": 5}]}]"#),
    ]),
    ("$set", &[
        ("plain", NUMBERS, r#"{"$set": {"a": {"$sum": ["$a", 1]}}}, {"$limit": 1}"#, r#"[{"a": 4}]"#),
        ("null", MIXED, r#"{"$set": null}"#, "!40272"),
        ("missing", NUMBERS, r#"{"$set": {}}, {"$limit": 1}"#, r#"[{"a": 3}]"#),
        ("missing", r#"[{"a": 1}]"#, r#"{"$set": {"b.c": "$none"}}"#, r#"[{"a": 1, "b": {}}]"#),
        ("type", MIXED, r#"{"$set": []}"#, "!40272"),
        ("array", r#"[{"a": [1, 2]}]"#, r#"{"$set": {"a": {"$literal": [3]}}}"#, r#"[{"a": [3]}]"#),
    ]),
    ("$unset", &[
        ("plain", r#"[{"a": 1, "b": 2}]"#, r#"{"$unset": "a"}"#, r#"[{"b": 2}]"#),
        ("null", MIXED, r#"{"$unset": null}"#, "!31002"),
        ("missing", r#"[{"a": 1}]"#, r#"{"$unset": ["b", "a.c"]}"#, r#"[{"a": 1}]"#),
        ("type", MIXED, r#"{"$unset": {"a": 1}}"#, "!31002"),
        ("type", MIXED, r#"{"$unset": []}"#, "!31119"),
        ("type", MIXED, r#"{"$unset": ["a", 1]}"#, "!31120"),
        ("array", r#"[{"a": [{"b": 1, "c": 2}, 3]}]"#, r#"{"$unset": "a.b"}"#, r#"[{"a": [{"c": 2}, 3]}]"#),
    ]),
    ("$limit", &[
        ("plain", NUMBERS, r#"{"$limit": 2}"#, r#"[{"a": 3}, {"a": 1}]"#),
        ("null", NUMBERS, r#"{"$limit": null}"#, "!5107201"),
        ("missing", "[]", r#"{"$limit": 2}"#, "[]"),
        ("type", NUMBERS, r#"{"$limit": "2"}"#, "!5107201"),
        ("type", NUMBERS, r#"{"$limit": 1.5}"#, "!5107201"),
        ("type", NUMBERS, r#"{"$limit": -1}"#, "!5107201"),
        ("type", NUMBERS, r#"{"$limit": 0}"#, "!15958"),
        ("array", NUMBERS, r#"{"$limit": [2]}"#, "!5107201"),
        ("bound", NUMBERS, r#"{"$limit": {"$numberLong": "9223372036854775807"}}"#, NUMBERS),
        ("nan", NUMBERS, r#"{"$limit": {"$numberDouble": "NaN"}}"#, "!5107201"),
    ]),
    ("$skip", &[
        ("plain", NUMBERS, r#"{"$skip": 2}"#, r#"[{"a": 2}]"#),
        ("plain", NUMBERS, r#"{"$skip": 0}"#, NUMBERS),
        ("null", NUMBERS, r#"{"$skip": null}"#, "!5107200"),
        ("missing", "[]", r#"{"$skip": 2}"#, "[]"),
        ("type", NUMBERS, r#"{"$skip": "2"}"#, "!5107200"),
        ("type", NUMBERS, r#"{"$skip": -1}"#, "!5107200"),
        ("array", NUMBERS, r#"{"$skip": [2]}"#, "!5107200"),
        ("bound", NUMBERS, r#"{"$skip": {"$numberLong": "9223372036854775807"}}"#, "[]"),
        ("nan", NUMBERS, r#"{"$skip": {"$numberDouble": "NaN"}}"#, "!5107200"),
    ]),
    ("$sort", &[
        ("plain", NUMBERS, r#"{"$sort": {"a": -1}}"#, r#"[{"a": 3}, {"a": 2}, {"a": 1}]"#),
        ("null", r#"[{"a": 1}, {"a": null}]"#, r#"{"$sort": {"a": 1}}"#, r#"[{"a": null}, {"a": 1}]"#),
        ("null", MIXED, r#"{"$sort": null}"#, "!15973"),
        ("missing", r#"[{"a": 0}, {}, {"a": []}]"#, r#"{"$sort": {"a": 1}}"#, r#"[{"a": []}, {}, {"a": 0}]"#),
        ("type", MIXED, r#"{"$sort": "a"}"#, "!15973"),
        ("array", PARALLEL, r#"{"$sort": {"a": 1, "b": 1}}"#, "!2"),
        ("array", PARALLEL, r#"{"$sort": {"a": 1, "b": 1}}, {"$count": "n"}"#, "!2"),
        ("array", PARALLEL, r#"{"$sort": {"a": 1, "b": 1}}, {"$limit": 1}, {"$count": "n"}"#, "!2"),
        ("array", PARALLEL, r#"{"$sort": {"a": 1, "b": 1}}, {"$skip": 1}, {"$group": {"_id": 1, "n": {"$sum": 1}}}"#, "!2"),
        ("array", PARALLEL, r#"{"$sort": {"a": 1, "b": 1}}, {"$skip": 9}, {"$sort": {"c": 1}}, {"$count": "n"}"#, "!2"),
        ("array", PARALLEL, r#"{"$sort": {"c": 1}}, {"$limit": 1}, {"$sort": {"a": 1, "b": 1}}, {"$count": "n"}"#, r#"[{"n": 1}]"#),
        ("array", PARALLEL, r#"{"$sort": {"a": 1, "c": 1}}, {"$skip": 1}, {"$limit": 5}, {"$count": "n"}"#, r#"[{"n": 1}]"#),
        ("array", PARALLEL, r#"{"$sort": {"a.0": 1}}, {"$count": "n"}"#, r#"[{"n": 2}]"#),
        ("array", r#"[{"a": [{"0": 1}]}]"#, r#"{"$sort": {"a.0": 1}}, {"$count": "n"}"#, "!16746"),
        ("array", PARALLEL, r#"{"$sort": {"a": 1, "b": 1}}, {"$sort": {"c": -1}}, {"$project": {"c": 1}}"#, r#"[{"c": 2}, {"c": 1}]"#),
        ("array", PARALLEL, r#"{"$sort": {"a": 1, "b": 1}}, {"$match": {"c": 1}}, {"$sort": {"c": -1}}, {"$count": "n"}"#, r#"[{"n": 1}]"#),
        ("array", PARALLEL, r#"{"$sort": {"a": 1, "b": 1}}, {"$match": {"$expr": {"$eq": ["$c", 1]}}}, {"$count": "n"}"#, r#"[{"n": 1}]"#),
        ("array", PARALLEL, r#"{"$sort": {"a": 1, "b": 1}}, {"$limit": 1}, {"$sort": {"c": -1}}"#, "!2"),
        ("array", PARALLEL, r#"{"$facet": {"f": [{"$sort": {"a": 1, "b": 1}}, {"$count": "n"}]}}"#, "!2"),
        ("type", MIXED, r#"{"$sort": {}}"#, "!15976"),
        ("type", MIXED, r#"{"$sort": {"a": 2}}"#, "!15975"),
        ("type", MIXED, r#"{"$sort": {"a": "up"}}"#, "!15974"),
        ("type", r#"[{"a": {"b": 1}}, {"a": "x"}, {"a": true}, {"a": 5}]"#, r#"{"$sort": {"a": 1}}"#, r#"[{"a": 5}, {"a": "x"}, {"a": {"b": 1}}, {"a": true}]"#),
        ("array", r#"[{"a": [2, 9]}, {"a": 5}, {"a": [7, 1]}]"#, r#"{"$sort": {"a": 1}}"#, r#"[{"a": [7, 1]}, {"a": [2, 9]}, {"a": 5}]"#),
        ("array", r#"[{"a": [2, 9]}, {"a": 8}]"#, r#"{"$sort": {"a": -1}}"#, r#"[{"a": [2, 9]}, {"a": 8}]"#),
        ("bound", r#"[{"a": {"$numberDouble": "9223372036854775808"}}, {"a": {"$numberLong": "9223372036854775807"}}]"#, r#"{"$sort": {"a": 1}}, {"$limit": 1}"#, r#"[{"a": {"$numberLong": "9223372036854775807"}}]"#),
        ("nan", NAN, r#"{"$sort": {"a": 1}}, {"$skip": 2}"#, r#"[{"a": 1}]"#),
        ("unicode", LETTERS, r#"{"$sort": {"a": 1}}"#, r#"[{"a": "z"}, {"a": "é"}, {"a": "日"}]"#),
    ]),
    ("$count", &[
        ("plain", NUMBERS, r#"{"$count": "n"}"#, r#"[{"n": 3}]"#),
        ("null", NUMBERS, r#"{"$count": null}"#, "!40156"),
        ("missing", "[]", r#"{"$count": "n"}"#, "[]"),
        ("type", NUMBERS, r#"{"$count": 1}"#, "!40156"),
        ("type", NUMBERS, r#"{"$count": ""}"#, "!40157"),
        ("type", NUMBERS, r#"{"$count": "$n"}"#, "!40158"),
        ("type", NUMBERS, r#"{"$count": "a.b"}"#, "!40160"),
        ("type", NUMBERS, r#"{"$count": "_id"}"#, "!9039800"),
        ("array", NUMBERS, r#"{"$count": ["n"]}"#, "!40156"),
    ]),
    ("$group", &[
        ("plain", NUMBERS, r#"{"$group": {"_id": {"$gt": ["$a", 1]}, "s": {"$sum": "$a"}}}, {"$sort": {"_id": 1}}"#, r#"[{"_id": false, "s": 1}, {"_id": true, "s": 5}]"#),
        // Null and missing are one group.
        ("null", MIXED, r#"{"$group": {"_id": "$a", "n": {"$sum": 1}}}, {"$match": {"n": 2}}"#, r#"[{"_id": null, "n": 2}]"#),
        // So are they in an object of one field, but not in one of several.
        ("null", MIXED, r#"{"$group": {"_id": {"k": "$a"}, "n": {"$sum": 1}}}, {"$match": {"n": 2}}"#, r#"[{"_id": {"k": null}, "n": 2}]"#),
        ("null", MIXED, r#"{"$group": {"_id": {"k": "$a", "l": "$z"}, "n": {"$sum": 1}}}, {"$match": {"_id.k": null}}"#, r#"[{"_id": {"k": null}, "n": 1}, {"_id": {}, "n": 1}]"#),
        ("null", MIXED, r#"{"$group": {"_id": {"k": {"l": "$a"}}, "n": {"$sum": 1}}}, {"$match": {"_id.k": {}}}"#, r#"[{"_id": {"k": {}}, "n": 1}]"#),
        ("null", MIXED, r#"{"$group": {"_id": null, "n": {"$push": {"k": "$z"}}}}, {"$limit": 1}"#, r#"[{"_id": null, "n": [{}, {}, {}, {}, {}]}]"#),
        ("null", MIXED, r#"{"$group": null}"#, "!15947"),
        ("missing", MIXED, r#"{"$group": {"n": {"$sum": 1}}}"#, "!15955"),
        ("missing", "[]", r#"{"$group": {"_id": null, "n": {"$sum": 1}}}"#, "[]"),
        ("type", MIXED, r#"{"$group": 1}"#, "!15947"),
        ("type", MIXED, r#"{"$group": {"_id": null, "n": 1}}"#, "!40234"),
        ("type", MIXED, r#"{"$group": {"_id": null, "n": {"$foo": 1}}}"#, "!15952"),
        ("type", MIXED, r#"{"$group": {"_id": null, "a.b": {"$sum": 1}}}"#, "!40235"),
        ("type", MIXED, r#"{"$group": {"_id": null, "$a": {"$sum": 1}}}"#, "!40236"),
        ("type", MIXED, r#"{"$group": {"_id": null, "n": {"$sum": 1, "$avg": 1}}}"#, "!40238"),
        ("array", MIXED, r#"{"$group": {"_id": "$a"}}, {"$match": {"_id.0": 1}}"#, r#"[{"_id": [1, 2]}]"#),
        ("bound", r#"[{"a": 1}, {"a": 1.0}, {"a": {"$numberDecimal": "1.0"}}]"#, r#"{"$group": {"_id": "$a", "n": {"$sum": 1}}}"#, r#"[{"_id": 1, "n": 3}]"#),
        ("nan", NAN, r#"{"$group": {"_id": "$a", "n": {"$sum": 1}}}, {"$match": {"n": 2}}"#, r#"[{"_id": {"$numberDouble": "NaN"}, "n": 2}]"#),
        ("unicode", r#"[{"a": "é"}, {"a": "e\u0301"}]"#, r#"{"$group": {"_id": "$a"}}, {"$count": "n"}"#, r#"[{"n": 2}]"#),
    ]),
    ("$sortByCount", &[
        ("plain", r#"[{"a": 1}, {"a": 2}, {"a": 2}]"#, r#"{"$sortByCount": "$a"}"#, r#"[{"_id": 2, "count": 2}, {"_id": 1, "count": 1}]"#),
        ("null", MIXED, r#"{"$sortByCount": "$a"}, {"$limit": 1}"#, r#"[{"_id": null, "count": 2}]"#),
        ("null", MIXED, r#"{"$sortByCount": null}"#, "!40149"),
        ("missing", MIXED, r#"{"$sortByCount": "$none"}"#, r#"[{"_id": null, "count": 5}]"#),
        ("type", MIXED, r#"{"$sortByCount": "a"}"#, "!40148"),
        ("type", MIXED, r#"{"$sortByCount": {"a": 1}}"#, "!40147"),
        ("array", MIXED, r#"{"$sortByCount": ["$a"]}"#, "!40149"),
    ]),
    ("$unwind", &[
        ("plain", r#"[{"a": [1, 2]}]"#, r#"{"$unwind": "$a"}"#, r#"[{"a": 1}, {"a": 2}]"#),
        ("plain", r#"[{"a": [1, 2]}]"#, r#"{"$unwind": {"path": "$a", "includeArrayIndex": "i"}}"#, r#"[{"a": 1, "i": {"$numberLong": "0"}}, {"a": 2, "i": {"$numberLong": "1"}}]"#),
        ("null", MIXED, r#"{"$unwind": "$a"}"#, r#"[{"a": 1}, {"a": "x"}, {"a": 1}, {"a": 2}]"#),
        ("null", r#"[{"a": null}]"#, r#"{"$unwind": {"path": "$a", "preserveNullAndEmptyArrays": true, "includeArrayIndex": "i"}}"#, r#"[{"a": null, "i": null}]"#),
        ("null", MIXED, r#"{"$unwind": null}"#, "!15981"),
        ("missing", "[{}]", r#"{"$unwind": {"path": "$a", "preserveNullAndEmptyArrays": true}}"#, "[{}]"),
        ("type", r#"[{"a": 5}]"#, r#"{"$unwind": {"path": "$a", "includeArrayIndex": "i"}}"#, r#"[{"a": 5, "i": null}]"#),
        ("type", MIXED, r#"{"$unwind": 1}"#, "!15981"),
        ("type", MIXED, r#"{"$unwind": {}}"#, "!28812"),
        ("type", MIXED, r#"{"$unwind": {"path": 1}}"#, "!28808"),
        ("type", MIXED, r#"{"$unwind": {"path": "$a", "preserveNullAndEmptyArrays": 1}}"#, "!28809"),
        ("type", MIXED, r#"{"$unwind": {"path": "$a", "includeArrayIndex": ""}}"#, "!28810"),
        ("type", MIXED, r#"{"$unwind": {"path": "$a", "x": 1}}"#, "!28811"),
        ("type", MIXED, r#"{"$unwind": "a"}"#, "!28818"),
        ("type", MIXED, r#"{"$unwind": {"path": "$a", "includeArrayIndex": "$i"}}"#, "!28822"),
        ("array", r#"[{"a": [[1], []]}, {"a": []}]"#, r#"{"$unwind": "$a"}"#, r#"[{"a": [1]}, {"a": []}]"#),
        ("array", r#"[{"a": []}]"#, r#"{"$unwind": {"path": "$a", "preserveNullAndEmptyArrays": true}}"#, "[{}]"),
    ]),
    ("$replaceRoot", &[
        ("type", "[{}]", r#"{"$replaceRoot": {"newRoot": {}, "newRoot": {}}}"#, "!40413"),
        ("plain", r#"[{"a": {"b": 1}}]"#, r#"{"$replaceRoot": {"newRoot": "$a"}}"#, r#"[{"b": 1}]"#),
        ("null", r#"[{"a": null}]"#, r#"{"$replaceRoot": {"newRoot": "$a"}}"#, "!40228"),
        ("missing", "[{}]", r#"{"$replaceRoot": {"newRoot": "$a"}}"#, "!40228"),
        ("missing", MIXED, r#"{"$replaceRoot": {}}"#, "!40414"),
        ("type", MIXED, r#"{"$replaceRoot": "$a"}"#, "!40229"),
        ("type", MIXED, r#"{"$replaceRoot": {"newRoot": "$a", "x": 1}}"#, "!40415"),
        ("array", r#"[{"a": [{"b": 1}]}]"#, r#"{"$replaceRoot": {"newRoot": "$a"}}"#, "!40228"),
    ]),
    ("$replaceWith", &[
        ("plain", r#"[{"a": {"b": 1}}]"#, r#"{"$replaceWith": {"$mergeObjects": ["$a", {"c": 2}]}}"#, r#"[{"b": 1, "c": 2}]"#),
        ("null", MIXED, r#"{"$replaceWith": null}"#, "!40228"),
        ("missing", "[{}]", r#"{"$replaceWith": "$a"}"#, "!40228"),
        ("type", r#"[{"a": 5}]"#, r#"{"$replaceWith": "$a"}"#, "!40228"),
        ("array", MIXED, r#"{"$replaceWith": []}"#, "!40228"),
    ]),
    ("$sample", &[
        ("plain", NUMBERS, r#"{"$sample": {"size": 2}}, {"$count": "n"}"#, r#"[{"n": 2}]"#),
        ("null", NUMBERS, r#"{"$sample": null}"#, "!28745"),
        ("null", NUMBERS, r#"{"$sample": {"size": null}}"#, "!28746"),
        ("missing", NUMBERS, r#"{"$sample": {}}"#, "!28749"),
        ("type", NUMBERS, r#"{"$sample": 2}"#, "!28745"),
        ("type", NUMBERS, r#"{"$sample": {"size": "2"}}"#, "!28746"),
        ("type", NUMBERS, r#"{"$sample": {"size": 2, "x": 1}}"#, "!28748"),
        ("type", NUMBERS, r#"{"$sample": {"size": 0}}"#, "!28747"),
        ("array", NUMBERS, r#"{"$sample": {"size": [2]}}"#, "!28746"),
        ("bound", NUMBERS, r#"{"$sample": {"size": {"$numberLong": "9223372036854775807"}}}, {"$count": "n"}"#, r#"[{"n": 3}]"#),
        ("nan", NUMBERS, r#"{"$sample": {"size": {"$numberDouble": "NaN"}}}"#, "!28747"),
    ]),
    ("$bucket", &[
        ("plain", NUMBERS, r#"{"$bucket": {"groupBy": "$a", "boundaries": [0, 2, 4]}}"#, r#"[{"_id": 0, "count": 1}, {"_id": 2, "count": 2}]"#),
        ("null", MIXED, r#"{"$bucket": {"groupBy": "$a", "boundaries": [0, 2], "default": "other"}}"#, r#"[{"_id": 0, "count": 1}, {"_id": "other", "count": 4}]"#),
        ("null", MIXED, r#"{"$bucket": null}"#, "!40201"),
        ("missing", "[{}]", r#"{"$bucket": {"groupBy": "$a", "boundaries": [0, 2]}}"#, "!40066"),
        ("missing", MIXED, r#"{"$bucket": {"groupBy": "$a"}}"#, "!40198"),
        ("type", MIXED, r#"{"$bucket": 1}"#, "!40201"),
        ("type", MIXED, r#"{"$bucket": {"groupBy": "a", "boundaries": [0, 2]}}"#, "!40202"),
        ("type", MIXED, r#"{"$bucket": {"groupBy": "$a", "boundaries": 0}}"#, "!40200"),
        ("type", MIXED, r#"{"$bucket": {"groupBy": "$a", "boundaries": [0, "x"]}}"#, "!40193"),
        ("type", MIXED, r#"{"$bucket": {"groupBy": "$a", "boundaries": ["$b", 1]}}"#, "!40191"),
        ("type", MIXED, r#"{"$bucket": {"groupBy": "$a", "boundaries": [0, 2], "default": "$b"}}"#, "!40195"),
        ("type", MIXED, r#"{"$bucket": {"groupBy": "$a", "boundaries": [0, 2], "default": 1}}"#, "!40199"),
        ("type", MIXED, r#"{"$bucket": {"groupBy": "$a", "boundaries": [0, 2], "output": 1}}"#, "!40196"),
        ("type", MIXED, r#"{"$bucket": {"groupBy": "$a", "boundaries": [0, 2], "x": 1}}"#, "!40197"),
        ("array", MIXED, r#"{"$bucket": {"groupBy": "$a", "boundaries": [0]}}"#, "!40192"),
        ("bound", MIXED, r#"{"$bucket": {"groupBy": "$a", "boundaries": [2, 0]}}"#, "!40194"),
        ("bound", r#"[{"a": 2.0}]"#, r#"{"$bucket": {"groupBy": "$a", "boundaries": [0, {"$numberLong": "2"}, 4.5]}}"#, r#"[{"_id": {"$numberLong": "2"}, "count": 1}]"#),
        ("nan", NAN, r#"{"$bucket": {"groupBy": "$a", "boundaries": [{"$numberDouble": "NaN"}, 0, 2]}}"#, r#"[{"_id": {"$numberDouble": "NaN"}, "count": 2}, {"_id": 0, "count": 1}]"#),
        ("unicode", LETTERS, r#"{"$bucket": {"groupBy": "$a", "boundaries": ["a", "é", "本"]}}"#, r#"[{"_id": "a", "count": 1}, {"_id": "é", "count": 2}]"#),
    ]),
    ("$bucketAuto", &[
        ("plain", NUMBERS, r#"{"$bucketAuto": {"groupBy": "$a", "buckets": 1}}"#, r#"[{"_id": {"min": 1, "max": 3}, "count": 3}]"#),
        ("null", r#"[{"a": null}, {"a": 1}]"#, r#"{"$bucketAuto": {"groupBy": "$a", "buckets": 2}}"#, r#"[{"_id": {"min": null, "max": 1}, "count": 1}, {"_id": {"min": 1, "max": 1}, "count": 1}]"#),
        ("null", NUMBERS, r#"{"$bucketAuto": {"groupBy": "$a", "buckets": null}}"#, "!40241"),
        ("missing", "[]", r#"{"$bucketAuto": {"groupBy": "$a", "buckets": 2}}"#, "[]"),
        ("missing", NUMBERS, r#"{"$bucketAuto": {"groupBy": "$a"}}"#, "!40246"),
        ("type", NUMBERS, r#"{"$bucketAuto": 1}"#, "!40240"),
        ("type", NUMBERS, r#"{"$bucketAuto": {"groupBy": "$a", "buckets": "2"}}"#, "!40241"),
        ("type", NUMBERS, r#"{"$bucketAuto": {"groupBy": "$a", "buckets": 2, "output": 1}}"#, "!40244"),
        ("type", NUMBERS, r#"{"$bucketAuto": {"groupBy": "$a", "buckets": 2, "x": 1}}"#, "!40245"),
        ("type", NUMBERS, r#"{"$bucketAuto": {"groupBy": "$a", "buckets": 2, "granularity": 1}}"#, "!40261"),
        ("type", MIXED, r#"{"$bucketAuto": {"groupBy": "$a", "buckets": 2, "granularity": "R5"}}"#, "!40258"),
        ("array", r#"[{"a": [1]}, {"a": 1}]"#, r#"{"$bucketAuto": {"groupBy": "$a", "buckets": 2}}, {"$limit": 1}"#, r#"[{"_id": {"min": 1, "max": [1]}, "count": 1}]"#),
        ("bound", NUMBERS, r#"{"$bucketAuto": {"groupBy": "$a", "buckets": 0}}"#, "!40243"),
        ("bound", NUMBERS, r#"{"$bucketAuto": {"groupBy": "$a", "buckets": {"$numberLong": "2147483648"}}}"#, "!40242"),
        ("bound", r#"[{"a": -1}]"#, r#"{"$bucketAuto": {"groupBy": "$a", "buckets": 1, "granularity": "R5"}}"#, "!40260"),
        ("nan", NAN, r#"{"$bucketAuto": {"groupBy": "$a", "buckets": 1, "granularity": "R5"}}"#, "!40259"),
    ]),
    ("$facet", &[
        ("type", "[{}]", r#"{"$facet": {"x": [{"$changeStreamSplitLargeEvent": {}}]}}"#, "!40600"),
        ("plain", NUMBERS, r#"{"$facet": {"n": [{"$count": "n"}], "m": [{"$match": {"a": 9}}]}}"#, r#"[{"n": [{"n": 3}], "m": []}]"#),
        ("null", NUMBERS, r#"{"$facet": null}"#, "!40169"),
        ("missing", "[]", r#"{"$facet": {"n": [{"$limit": 1}]}}"#, r#"[{"n": []}]"#),
        ("type", NUMBERS, r#"{"$facet": {}}"#, "!40169"),
        ("type", NUMBERS, r#"{"$facet": {"n": 1}}"#, "!40170"),
        ("array", NUMBERS, r#"{"$facet": {"n": []}}"#, "!2"),
    ]),
    ("$redact", &[
        ("plain", r#"[{"l": 1, "b": {"l": 2}}]"#, r#"{"$redact": {"$cond": [{"$eq": ["$l", 1]}, "$$DESCEND", "$$PRUNE"]}}"#, r#"[{"l": 1}]"#),
        ("null", MIXED, r#"{"$redact": null}"#, "!17053"),
        ("missing", r#"[{"a": {"b": 1}}]"#, r#"{"$redact": {"$cond": ["$l", "$$PRUNE", "$$DESCEND"]}}"#, r#"[{"a": {"b": 1}}]"#),
        ("type", MIXED, r#"{"$redact": "stay"}"#, "!17053"),
        ("array", r#"[{"a": [{"l": 1}, 5, [{"l": 1}]]}]"#, r#"{"$redact": {"$cond": ["$l", "$$PRUNE", "$$DESCEND"]}}"#, r#"[{"a": [5, []]}]"#),
    ]),
    ("$documents", &[
        ("plain", NUMBERS, r#"{"$limit": 1}"#, r#"[{"a": 3}]"#),
        ("null", "null", r#"{"$limit": 1}"#, "!5858203"),
        ("missing", r#""$a""#, r#"{"$limit": 1}"#, "!5858203"),
        ("type", "5", r#"{"$limit": 1}"#, "!5858203"),
        ("array", "[1]", r#"{"$limit": 1}"#, "!5858203"),
        ("array", r#"[[{"a": 1}]]"#, r#"{"$limit": 1}"#, "!5858203"),
    ]),
    ("$densify", &[
        ("type", NUMBERS, r#"{"$densify": {"field": "a", "field": "a", "range": {"step": 1, "bounds": "full"}}}"#, "!40413"),
        ("type", NUMBERS, r#"{"$densify": {"field": "a", "range": {"step": 1, "step": 1, "bounds": "full"}}}"#, "!40413"),
        ("plain", r#"[{"a": 1}, {"a": 3}]"#, r#"{"$densify": {"field": "a", "range": {"step": 1, "bounds": "full"}}}"#, r#"[{"a": 1}, {"a": 2}, {"a": 3}]"#),
        ("null", r#"[{"a": null}, {"a": 1}, {"a": 2}]"#, r#"{"$densify": {"field": "a", "range": {"step": 1, "bounds": "full"}}}"#, r#"[{"a": null}, {"a": 1}, {"a": 2}]"#),
        ("null", NUMBERS, r#"{"$densify": {"field": null, "range": {"step": 1, "bounds": "full"}}}"#, "!40414"),
        ("null", r#"[{"a": 1}, {"a": 3}]"#, r#"{"$densify": {"field": "a", "partitionByFields": null, "range": {"step": 2, "unit": null, "bounds": "full"}}}"#, r#"[{"a": 1}, {"a": 3}]"#),
        ("missing", NUMBERS, r#"{"$densify": {"range": {"step": 1, "bounds": "full"}}}"#, "!40414"),
        ("missing", NUMBERS, r#"{"$densify": {"field": "a"}}"#, "!40414"),
        ("type", NUMBERS, r#"{"$densify": 1}"#, "!9"),
        ("type", NUMBERS, r#"{"$densify": {"field": 1, "range": {"step": 1, "bounds": "full"}}}"#, "!14"),
        ("type", NUMBERS, r#"{"$densify": {"field": "a", "range": 1}}"#, "!14"),
        ("type", NUMBERS, r#"{"$densify": {"field": "a", "x": 1, "range": {"step": 1, "bounds": "full"}}}"#, "!40415"),
        ("type", r#"[{"a": "x"}]"#, r#"{"$densify": {"field": "a", "range": {"step": 1, "bounds": "full"}}}"#, "!5733201"),
        ("array", NUMBERS, r#"{"$densify": {"field": "a", "partitionByFields": "b", "range": {"step": 1, "bounds": "full"}}}"#, "!14"),
        ("array", NUMBERS, r#"{"$densify": {"field": "a", "range": {"step": 1, "bounds": [1]}}}"#, "!5733403"),
        ("bound", NUMBERS, r#"{"$densify": {"field": "a", "range": {"step": 0, "bounds": "full"}}}"#, "!5733401"),
        ("bound", NUMBERS, r#"{"$densify": {"field": "a", "range": {"step": 1, "bounds": [2, 1]}}}"#, "!5733402"),
        ("bound", NUMBERS, r#"{"$densify": {"field": "a", "range": {"step": 1, "bounds": "partition"}}}"#, "!5733408"),
        ("nan", NUMBERS, r#"{"$densify": {"field": "a", "range": {"step": {"$numberDouble": "NaN"}, "bounds": "full"}}}"#, "!5733401"),
        ("array", NUMBERS, r#"{"$densify": {"field": "a", "range": {"step": 1, "bounds": {}}}}"#, "!5733404"),
        ("type", NUMBERS, r#"{"$densify": {"field": "a", "range": {"step": 1, "bounds": "all"}}}"#, "!5946802"),
        ("type", NUMBERS, r#"{"$densify": {"field": "a", "range": {"step": 1, "bounds": [1, 2.0]}}}"#, "!5876900"),
        ("type", NUMBERS, r#"{"$densify": {"field": "a", "range": {"step": 1.0, "bounds": [1, 2]}}}"#, "!5876900"),
        ("type", NUMBERS, r#"{"$densify": {"field": "a", "range": {"step": 1, "bounds": [1, "a"]}}}"#, "!5733406"),
        ("type", NUMBERS, r#"{"$densify": {"field": "a", "range": {"step": 1, "bounds": ["a", "b"]}}}"#, "!5946800"),
        ("type", NUMBERS, r#"{"$densify": {"field": "a", "range": {"step": 1, "unit": "day", "bounds": [1, 2]}}}"#, "!5733409"),
        ("type", NUMBERS, r#"{"$densify": {"field": "a", "range": {"step": 1, "bounds": [{"$date": "2021-01-01T00:00:00Z"}, {"$date": "2021-02-01T00:00:00Z"}]}}}"#, "!5733410"),
        ("type", NUMBERS, r#"{"$densify": {"field": "a.b", "partitionByFields": ["a"], "range": {"step": 1, "bounds": "full"}}}"#, "!9554500"),
        ("type", NUMBERS, r#"{"$densify": {"field": "a", "partitionByFields": ["a.b"], "range": {"step": 1, "bounds": "full"}}}"#, "!8993000"),
        // Without documents, too; but a partition is one by a value.
        ("missing", "[]", r#"{"$densify": {"field": "a", "range": {"step": 1, "bounds": [1, 3]}}}"#, r#"[{"a": 1}, {"a": 2}]"#),
        ("missing", "[{}]", r#"{"$densify": {"field": "a", "range": {"step": 1, "bounds": [1, 3]}}}"#, r#"[{}, {"a": 1}, {"a": 2}]"#),
        ("missing", r#"[{"p": 1}, {"p": 2, "a": 1}]"#, r#"{"$densify": {"field": "a", "partitionByFields": ["p"], "range": {"step": 1, "bounds": [1, 3]}}}"#, r#"[{"p": 1}, {"p": 2, "a": 1}, {"p": 2, "a": 2}]"#),
        // Under `full` bounds partitions alternate; what ends them comes last.
        ("plain", r#"[{"p": 2, "a": 1}, {"p": 1, "a": 1}, {"p": 2, "a": 4}, {"p": 1, "a": 2}, {"p": 3}]"#, r#"{"$densify": {"field": "a", "partitionByFields": ["p"], "range": {"step": 1, "bounds": "full"}}}"#, r#"[{"p": 3}, {"p": 2, "a": 1}, {"p": 1, "a": 1}, {"p": 1, "a": 2}, {"p": 2, "a": 2}, {"p": 2, "a": 3}, {"p": 2, "a": 4}, {"p": 1, "a": 3}, {"p": 1, "a": 4}]"#),
        ("bound", r#"[{"p": 2, "a": 1}, {"p": 1, "a": 2}, {"p": 1, "a": 4}]"#, r#"{"$densify": {"field": "a", "partitionByFields": ["p"], "range": {"step": 1, "bounds": [1, 4]}}}"#, r#"[{"p": 1, "a": 1}, {"p": 1, "a": 2}, {"p": 1, "a": 3}, {"p": 1, "a": 4}, {"p": 2, "a": 1}, {"p": 2, "a": 2}, {"p": 2, "a": 3}]"#),
        ("bound", r#"[{"p": 2, "a": 1}, {"p": 1, "a": 3}, {"p": 1, "a": 5}]"#, r#"{"$densify": {"field": "a", "partitionByFields": ["p"], "range": {"step": 1, "bounds": "partition"}}}"#, r#"[{"p": 1, "a": 3}, {"p": 1, "a": 4}, {"p": 1, "a": 5}, {"p": 2, "a": 1}]"#),
        // The end goes on from the partition's last value below the bounds, off their grid.
        ("bound", r#"[{"p": 1, "a": 1}]"#, r#"{"$densify": {"field": "a", "partitionByFields": ["p"], "range": {"step": 2, "bounds": [2, 6]}}}"#, r#"[{"p": 1, "a": 1}, {"p": 1, "a": 3}, {"p": 1, "a": 5}]"#),
        ("bound", r#"[{"a": 1}]"#, r#"{"$densify": {"field": "a", "range": {"step": 2, "bounds": [2, 6]}}}"#, r#"[{"a": 1}, {"a": 2}, {"a": 4}]"#),
        // Null and missing are two partitions, and so are an array's elements together.
        ("null", r#"[{"p": null, "a": 1}, {"a": 3}, {"p": null, "a": 3}]"#, r#"{"$densify": {"field": "a", "partitionByFields": ["p"], "range": {"step": 1, "bounds": "partition"}}}"#, r#"[{"p": null, "a": 1}, {"a": 3}, {"p": null, "a": 2}, {"p": null, "a": 3}]"#),
        ("array", r#"[{"p": [{"q": 1}, {"q": 2}], "a": 1}, {"p": [{"q": 1}, {"q": 2}], "a": 3}]"#, r#"{"$densify": {"field": "a", "partitionByFields": ["p.q"], "range": {"step": 1, "bounds": "partition"}}}, {"$skip": 1}, {"$limit": 1}"#, r#"[{"p": {"q": [1, 2]}, "a": 2}]"#),
        // Documents lead into a grid from the step before its low end.
        ("bound", r#"[{"a": {"$date": "2021-04-30T00:00:00Z"}}]"#, r#"{"$densify": {"field": "a", "range": {"step": 1, "unit": "month", "bounds": [{"$date": "2021-03-31T00:00:00Z"}, {"$date": "2021-04-01T00:00:00Z"}]}}}, {"$limit": 1}"#, r#"[{"a": {"$date": "2021-03-28T00:00:00Z"}}]"#),
        ("missing", "[]", r#"{"$densify": {"field": "a", "range": {"step": 1, "unit": "month", "bounds": [{"$date": "2021-03-31T00:00:00Z"}, {"$date": "2021-04-01T00:00:00Z"}]}}}"#, r#"[{"a": {"$date": "2021-03-31T00:00:00Z"}}]"#),
        // Step by step: a month after February 28 is March 28, and doubles are rounded each time.
        ("bound", r#"[{"a": {"$date": "2021-01-31T00:00:00Z"}}, {"a": {"$date": "2021-04-01T00:00:00Z"}}]"#, r#"{"$densify": {"field": "a", "range": {"step": 1, "unit": "month", "bounds": "full"}}}, {"$skip": 1}, {"$limit": 2}"#, r#"[{"a": {"$date": "2021-02-28T00:00:00Z"}}, {"a": {"$date": "2021-03-28T00:00:00Z"}}]"#),
        ("bound", r#"[{"a": 0.1}, {"a": 0.75}]"#, r#"{"$densify": {"field": "a", "range": {"step": 0.1, "bounds": "full"}}}, {"$skip": 5}, {"$limit": 1}"#, r#"[{"a": 0.6}]"#),
    ]),
    ("$fill", &[
        ("type", "[{}]", r#"{"$fill": {"output": {"a": {"value": 1}}, "output": {"a": {"value": 1}}}}"#, "!40413"),
        ("plain", r#"[{"t": 1, "a": 1}, {"t": 2}, {"t": 3, "a": 3}]"#, r#"{"$fill": {"sortBy": {"t": 1}, "output": {"a": {"method": "linear"}}}}, {"$skip": 1}, {"$limit": 1}"#, r#"[{"t": 2, "a": 2.0}]"#),
        ("null", r#"[{"t": 1, "a": null}]"#, r#"{"$fill": {"sortBy": null, "partitionBy": null, "output": {"a": {"method": null, "value": 9}}}}"#, r#"[{"t": 1, "a": 9}]"#),
        ("null", "[{}]", r#"{"$fill": {"output": null}}"#, "!40414"),
        ("null", r#"[{"t": 1, "a": null}]"#, r#"{"$fill": {"output": {"a": {"value": 9}}}}"#, r#"[{"t": 1, "a": 9}]"#),
        ("null", r#"[{"t": 1, "a": null}]"#, r#"{"$fill": {"sortBy": {"t": 1}, "output": {"a": {"method": "locf"}}}}"#, r#"[{"t": 1, "a": null}]"#),
        ("missing", "[{}]", r#"{"$fill": {"output": {"a": {"value": 9}}}}"#, r#"[{"a": 9}]"#),
        ("missing", "[{}]", r#"{"$fill": {}}"#, "!40414"),
        ("missing", "[{}]", r#"{"$fill": {"output": {}}}"#, "!6050203"),
        ("missing", "[{}]", r#"{"$fill": {"output": {"a": {"method": "linear"}}}}"#, "!605001"),
        ("type", "[{}]", r#"{"$fill": 1}"#, "!9"),
        ("type", "[{}]", r#"{"$fill": {"output": 1}}"#, "!14"),
        ("type", "[{}]", r#"{"$fill": {"output": {"a": 1}}}"#, "!6050200"),
        ("type", "[{}]", r#"{"$fill": {"output": {"a": {"method": "linear", "value": 1}}}}"#, "!6050201"),
        ("type", "[{}]", r#"{"$fill": {"output": {"a": {"method": "cubic"}}}}"#, "!6050202"),
        ("type", "[{}]", r#"{"$fill": {"output": {"a": {"method": 1}}}}"#, "!14"),
        ("type", "[{}]", r#"{"$fill": {"partitionBy": "$b", "partitionByFields": ["b"], "output": {"a": {"value": 1}}}}"#, "!6050204"),
        ("array", "[{}]", r#"{"$fill": {"partitionByFields": "b", "output": {"a": {"value": 1}}}}"#, "!14"),
    ]),
    ("$setWindowFields", &[
        ("type", NUMBERS, r#"{"$setWindowFields": {"output": {}, "output": {}}}"#, "!40413"),
        ("plain", NUMBERS, r#"{"$setWindowFields": {"sortBy": {"a": 1}, "output": {"s": {"$sum": "$a", "window": {"documents": ["unbounded", 0]}}}}}"#, r#"[{"a": 1, "s": 1}, {"a": 2, "s": 3}, {"a": 3, "s": 6}]"#),
        // Null and missing are one partition.
        ("null", r#"[{"p": null, "a": 1}, {"a": 2}]"#, r#"{"$setWindowFields": {"partitionBy": "$p", "output": {"s": {"$sum": "$a"}}}}, {"$project": {"s": 1}}"#, r#"[{"s": 3}, {"s": 3}]"#),
        ("missing", NUMBERS, r#"{"$setWindowFields": {"sortBy": {"a": 1}}}"#, "!40414"),
        ("null", NUMBERS, r#"{"$setWindowFields": {"output": null}}"#, "!40414"),
        ("null", r#"[{"a": 1}]"#, r#"{"$setWindowFields": {"sortBy": null, "output": {"s": {"$sum": 1}}}}"#, r#"[{"a": 1, "s": 1}]"#),
        ("type", NUMBERS, r#"{"$setWindowFields": 1}"#, "!9"),
        ("type", NUMBERS, r#"{"$setWindowFields": {"output": {}, "x": 1}}"#, "!40415"),
        ("type", NUMBERS, r#"{"$setWindowFields": {"sortBy": 1, "output": {}}}"#, "!14"),
        ("type", NUMBERS, r#"{"$setWindowFields": {"output": 1}}"#, "!14"),
        ("type", NUMBERS, r#"{"$setWindowFields": {"output": {"s": 1}}}"#, "!9"),
        ("array", r#"[{"p": [1]}]"#, r#"{"$setWindowFields": {"partitionBy": "$p", "output": {"s": {"$sum": 1}}}}"#, "!14"),
    ]),
    ("$unionWith", &[
        ("type", "[{}]", r#"{"$unionWith": {"coll": "orders", "pipeline": [{"$changeStream": {}}]}}"#, "!31441"),
        ("type", MIXED, r#"{"$unionWith": {"coll": "items", "coll": "items"}}"#, "!40413"),
        ("plain", r#"[{"a": 1}]"#, r#"{"$unionWith": {"pipeline": [{"$documents": [{"a": 2}]}]}}"#, r#"[{"a": 1}, {"a": 2}]"#),
        ("null", MIXED, r#"{"$unionWith": null}"#, "!9"),
        ("null", r#"[{"a": 1}]"#, r#"{"$unionWith": {"coll": "nothing", "pipeline": null}}"#, r#"[{"a": 1}]"#),
        ("missing", MIXED, r#"{"$unionWith": ""}"#, "!73"),
        ("type", MIXED, r#"{"$unionWith": {"coll": 1}}"#, "!14"),
        ("type", MIXED, r#"{"$unionWith": {"coll": "items", "pipeline": 1}}"#, "!14"),
        ("type", MIXED, r#"{"$unionWith": {"coll": "items", "let": {}}}"#, "!40415"),
        ("missing", r#"[{"a": 1}]"#, r#"{"$unionWith": "nothing"}"#, r#"[{"a": 1}]"#),
        ("missing", MIXED, r#"{"$unionWith": {}}"#, "!9"),
        ("type", MIXED, r#"{"$unionWith": 1}"#, "!9"),
        ("array", MIXED, r#"{"$unionWith": ["items"]}"#, "!9"),
    ]),
    ("$lookup", &[
        ("type", "[{}]", r#"{"$lookup": {"from": "orders", "as": "o", "pipeline": [{"$changeStream": {}}]}}"#, "!51047"),
        ("plain", r#"[{"a": "b"}]"#, r#"{"$lookup": {"from": "orders", "localField": "a", "foreignField": "sku", "as": "o"}}"#, r#"[{"a": "b", "o": [{"_id": 2, "sku": "b", "n": 1}]}]"#),
        ("null", r#"[{"a": null}]"#, r#"{"$lookup": {"from": "orders", "localField": "a", "foreignField": "sku", "as": "o", "pipeline": [{"$project": {"_id": 1}}]}}"#, r#"[{"a": null, "o": [{"_id": 4}, {"_id": 5}]}]"#),
        ("missing", "[{}]", r#"{"$lookup": {"from": "orders", "localField": "a", "foreignField": "sku", "as": "o", "pipeline": [{"$project": {"_id": 1}}]}}"#, r#"[{"o": [{"_id": 4}, {"_id": 5}]}]"#),
        ("missing", "[{}]", r#"{"$lookup": {"from": "orders", "localField": "a", "foreignField": "sku"}}"#, "!9"),
        ("type", "[{}]", r#"{"$lookup": 1}"#, "!9"),
        ("type", "[{}]", r#"{"$lookup": {"from": 1, "as": "o", "pipeline": []}}"#, "!9"),
        ("missing", "[{}]", r#"{"$lookup": {"from": "", "as": "o", "pipeline": []}}"#, "!73"),
        ("type", "[{}]", r#"{"$lookup": {"from": "orders", "as": "o", "pipeline": [], "x": 1}}"#, "!9"),
        ("array", r#"[{"a": ["b", "c"]}]"#, r#"{"$lookup": {"from": "orders", "localField": "a", "foreignField": "sku", "as": "o", "pipeline": [{"$project": {"_id": 1}}]}}"#, r#"[{"a": ["b", "c"], "o": [{"_id": 2}, {"_id": 3}]}]"#),
    ]),
    ("$graphLookup", &[
        ("type", r#"[{"a": 1}]"#, r#"{"$graphLookup": {"from": "orders", "startWith": "$a", "connectFromField": "n", "connectToField": "_id", "as": "g", "restrictSearchWithMatch": {"p": {"$near": [0, 0]}}}}"#, "!5626500"),
        ("plain", r#"[{"a": 1}]"#, r#"{"$graphLookup": {"from": "orders", "startWith": "$a", "connectFromField": "n", "connectToField": "_id", "as": "g"}}, {"$project": {"n": {"$size": "$g"}}}"#, r#"[{"n": 2}]"#),
        ("null", r#"[{"a": null}]"#, r#"{"$graphLookup": {"from": "orders", "startWith": "$a", "connectFromField": "n", "connectToField": "_id", "as": "g"}}"#, r#"[{"a": null, "g": []}]"#),
        ("missing", "[{}]", r#"{"$graphLookup": {"from": "orders"}}"#, "!40105"),
        ("type", "[{}]", r#"{"$graphLookup": 1}"#, "!9"),
        ("type", "[{}]", r#"{"$graphLookup": {"from": "orders", "x": 1}}"#, "!40104"),
        ("type", "[{}]", r#"{"$graphLookup": {"from": 1}}"#, "!9"),
        ("type", "[{}]", r#"{"$graphLookup": {"from": {"coll": "orders"}}}"#, "!9"),
        ("type", "[{}]", r#"{"$graphLookup": {"from": "orders", "as": 1}}"#, "!40103"),
        ("missing", "[{}]", r#"{"$graphLookup": {"from": ""}}"#, "!73"),
        ("type", "[{}]", r#"{"$graphLookup": {"from": "orders", "maxDepth": "1"}}"#, "!40100"),
        ("bound", "[{}]", r#"{"$graphLookup": {"from": "orders", "maxDepth": -1}}"#, "!40101"),
        ("bound", "[{}]", r#"{"$graphLookup": {"from": "orders", "maxDepth": 1.5}}"#, "!40102"),
        ("array", r#"[{"a": [3, 4]}]"#, r#"{"$graphLookup": {"from": "orders", "startWith": "$a", "connectFromField": "none", "connectToField": "_id", "as": "g"}}, {"$project": {"n": {"$size": "$g"}}}"#, r#"[{"n": 2}]"#),
    ]),
    ("$out", &[
        ("plain", NUMBERS, r#"{"$out": "made"}"#, "[]"),
        ("null", NUMBERS, r#"{"$out": null}"#, "!16990"),
        ("missing", NUMBERS, r#"{"$out": {"db": "x"}}"#, "!40414"),
        ("type", NUMBERS, r#"{"$out": 1}"#, "!16990"),
        ("array", NUMBERS, r#"{"$out": ["made"]}"#, "!16990"),
    ]),
    ("$merge", &[
        ("type", "[{}]", r#"{"$merge": {"into": "x", "into": "x"}}"#, "!40413"),
        ("plain", r#"[{"_id": 1}]"#, r#"{"$merge": "made"}"#, "[]"),
        ("null", NUMBERS, r#"{"$merge": null}"#, "!51182"),
        ("missing", NUMBERS, r#"{"$merge": {}}"#, "!40414"),
        ("type", NUMBERS, r#"{"$merge": 1}"#, "!51182"),
        ("type", NUMBERS, r#"{"$merge": {"into": "made", "x": 1}}"#, "!40415"),
        ("type", NUMBERS, r#"{"$merge": {"into": {"db": 1, "coll": "made"}}}"#, "!14"),
        ("type", NUMBERS, r#"{"$merge": {"into": "made", "let": 1}}"#, "!14"),
        ("type", NUMBERS, r#"{"$merge": {"into": "made", "whenNotMatched": 1}}"#, "!14"),
        ("type", NUMBERS, r#"{"$merge": {"into": "made", "whenNotMatched": "x"}}"#, "!2"),
        ("array", NUMBERS, r#"{"$merge": ["made"]}"#, "!51182"),
    ]),
];

/// The cases that may be missing: stages, kinds, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "$match $project $addFields $set $unset $replaceRoot $replaceWith $redact $facet $documents $unionWith $lookup $out $merge $unwind $setWindowFields $sortByCount $count",
        "bound nan unicode",
        "told by filters, expressions, accumulators and groups",
    ),
    (
        "$limit $skip $sample $graphLookup $densify $fill $bucketAuto",
        "unicode",
        "they ask numbers, or what filters and sorts ask",
    ),
    ("$graphLookup", "nan", "told by `$limit`"),
    ("$fill", "bound nan", "told by the functions that it is short for"),
    ("$fill $setWindowFields $densify", "null", "told by documents with null"),
    (
        "$geoNear",
        "plain null missing type array bound nan unicode",
        "it needs an index: crate `frond-db` asks it",
    ),
];

const KINDS: [&str; 8] = ["plain", "null", "missing", "type", "array", "bound", "nan", "unicode"];

#[test]
fn stages_answer_as_mongodb_does() {
    let mut differing = Vec::new();
    for (name, rows) in TABLES {
        for (kind, documents, stages, expected) in *rows {
            let pipeline = format!("[{{\"$documents\": {documents}}}, {stages}]");
            let row = std::panic::catch_unwind(|| check(&[(&pipeline, expected)]));
            if row.is_err() {
                differing.push(format!("{name} {kind} {pipeline}"));
            }
        }
    }
    assert!(differing.is_empty(), "{} rows differ:\n{}", differing.len(), differing.join("\n"));
}

#[test]
fn every_stage_has_its_cases() {
    let stages = families().into_iter().find(|family| family.title == STAGES).expect("a family");
    let works = |standing| matches!(standing, SupportLevel::Works | SupportLevel::Differs(_));
    for name in stages.features.iter().filter(|f| works(f.standing)).map(|f| f.name) {
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
