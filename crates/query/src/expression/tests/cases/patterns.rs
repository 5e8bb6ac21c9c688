//! Regular expressions.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$regexFind",
        r#"
            {"input": "$s", "regex": "(ß)(x)?e"} => {"match": "ße", "idx": 4, "captures": ["ß",
                null]}
            {"input": "a", "regex": "b"} => null
            {"input": "$n", "regex": "a"} => null
            {"input": "$absent", "regex": "a"} => null
            {"input": "a", "regex": "$n"} => null
            {"input": "a", "regex": "$absent"} => null
            {"input": 1, "regex": "a"} => !51104
            {"input": 1, "regex": "$i"} => !51104
            {"input": "a", "regex": "$i"} => !51105
            {"input": "$a", "regex": "a"} => !51104
            {"input": "日本語", "regex": "本"} => {"match": "本", "idx": 1, "captures": []}
            {"input": "a.b", "regex": {"$regularExpression": {"pattern": "B", "options": "i"}}}
                => {"match": "b", "idx": 2, "captures": []}
            {"input": "", "regex": "x*"} => {"match": "", "idx": 0, "captures": []}
            {"input": "éa\n", "regex": "(.)$"} => {"match": "a", "idx": 1, "captures": ["a"]}
            {"input": "éab", "regex": "a\\Kb"} => {"match": "b", "idx": 2, "captures": []}
            {"input": "éé", "regex": "(?<=é)(?<x>é)|(y)"} => {"match": "é", "idx": 1,
                "captures": ["é", null]}
            {"input": "é", "regex": "\\C"} => !51156
            {"regex": "a"} => !31022
            {"input": "a"} => !31023
            {"input": "a", "regex": "a", "x": 1} => !31024
            "a" => !51103
        "#,
    ),
    Table(
        "$regexFindAll",
        r#"
            {"input": "ßaßa", "regex": "a"} => [{"match": "a", "idx": 1, "captures": []},
                {"match": "a", "idx": 3, "captures": []}]
            {"input": "$absent", "regex": "a"} => []
            {"input": "$n", "regex": "a"} => []
            {"input": "a", "regex": "$n"} => []
            {"input": true, "regex": "a"} => !51104
            // Nothing is found at the end of a text, not even an empty string.
            {"input": "ab", "regex": "x*"} => [{"match": "", "idx": 0, "captures": []},
                {"match": "", "idx": 1, "captures": []}]
            {"input": "baac", "regex": "a*"} => [{"match": "", "idx": 0, "captures": []},
                {"match": "aa", "idx": 1, "captures": []}, {"match": "", "idx": 3, "captures": []}]
            {"input": "aa", "regex": "a*"} => [{"match": "aa", "idx": 0, "captures": []}]
            {"input": "", "regex": "a*"} => [{"match": "", "idx": 0, "captures": []}]
            {"input": "éa", "regex": "x*"} => [{"match": "", "idx": 0, "captures": []},
                {"match": "", "idx": 1, "captures": []}]
            {"input": "abab", "regex": "(a)|(b)", "options": "i"} => [{"match": "a", "idx": 0,
                "captures": ["a", null]}, {"match": "b", "idx": 1, "captures": [null, "b"]},
                {"match": "a", "idx": 2, "captures": ["a", null]}, {"match": "b", "idx": 3,
                "captures": [null, "b"]}]
        "#,
    ),
    Table(
        "$regexMatch",
        r#"
            {"input": "$s", "regex": "^stra", "options": "i"} => true
            {"input": "$s", "regex": "^stra"} => false
            {"input": "$n", "regex": "a"} => false
            {"input": "a", "regex": "$n"} => false
            {"input": "AB", "regex": {"$concat": ["a", "b"]}, "options": "i"} => true
            {"input": 1, "regex": "a"} => !51104
            {"input": "a", "regex": 1} => !51105
            {"input": "a", "regex": "a", "options": 1} => !51106
            {"input": "a", "regex": "a", "options": "q"} => !51108
            {"input": "a", "regex": "("} => !51111
            {"input": "a", "regex": {"$regularExpression": {"pattern": "A", "options": "i"}}} =>
                true
            {"regex": "a"} => !31022
            {"input": "a"} => !31023
            1 => !51103
            {"input": "$absent", "regex": "a"} => false
            {"input": "$a", "regex": "a"} => !51104
            {"input": "a", "regex": 1, "options": 1} => !51105
            {"input": "a", "regex": null, "options": 1} => !51106
            {"input": "a", "regex": {"$regularExpression": {"pattern": "a", "options": "i"}},
                "options": "i"} => !51107
            {"input": "a", "regex": {"$regularExpression": {"pattern": "A", "options": "i"}},
                "options": null} => true
            {"input": "a", "regex": "a\u0000"} => !51109
            {"input": "a", "regex": "a", "options": "i\u0000"} => !51110
            {"input": "STRASSE", "regex": "straße", "options": "i"} => false
            {"input": "ÄB", "regex": "äb", "options": "i"} => true
            {"input": "ÄB", "regex": "äb", "options": "iu"} => true
            {"input": "a\nb", "regex": "^b", "options": "m"} => true
            {"input": "a\nb", "regex": "a.b"} => false
            {"input": "a\nb", "regex": "a.b", "options": "s"} => true
            {"input": "ab", "regex": "a b # both", "options": "x"} => true
        "#,
    ),
];
