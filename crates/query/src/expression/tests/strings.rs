//! Strings, parts of them, patterns.

use super::check;

#[test]
fn strings_are_joined_cut_and_changed() {
    check(&[
        (r#"{"$concat": ["a", "$s", "b"]}"#, r#""aStraßeb""#),
        (r#"{"$concat": []}"#, r#""""#),
        (r#"{"$concat": ["a", "$n"]}"#, "null"),
        (r#"{"$concat": ["a", 1]}"#, "!16702"),
        (r#"{"$toLower": "ÀB1"}"#, r#""Àb1""#),
        (r#"{"$toUpper": "$s"}"#, r#""STRAßE""#),
        (r#"{"$toUpper": "$absent"}"#, r#""""#),
        (r#"{"$toLower": "$d"}"#, r#""2.5""#),
        (r#"{"$toLower": "$date"}"#, r#""2020-02-29t12:34:56.789z""#),
        (r#"{"$toLower": true}"#, "!16007"),
        (r#"{"$strcasecmp": ["abc", "ABD"]}"#, "-1"),
        (r#"{"$strcasecmp": [null, ""]}"#, "0"),
        (r#"{"$strLenBytes": "$s"}"#, "7"),
        (r#"{"$strLenCP": "$s"}"#, "6"),
        (r#"{"$strLenCP": "$n"}"#, "!34471"),
        (r#"{"$strLenBytes": 1}"#, "!34473"),
        (r#"{"$split": ["a-b--c", "-"]}"#, r#"["a", "b", "", "c"]"#),
        (r#"{"$split": ["abc", "x"]}"#, r#"["abc"]"#),
        (r#"{"$split": ["$n", "x"]}"#, "null"),
        (r#"{"$split": ["a", ""]}"#, "!40087"),
        (r#"{"$split": [1, "x"]}"#, "!40085"),
        (r#"{"$split": ["a", 1]}"#, "!40086"),
        (r#"{"$trim": {"input": "  a b\n"}}"#, r#""a b""#),
        (r#"{"$ltrim": {"input": "xxaxx", "chars": "x"}}"#, r#""axx""#),
        (r#"{"$rtrim": {"input": "axyx", "chars": "xy"}}"#, r#""a""#),
        (r#"{"$trim": {"input": "$n"}}"#, "null"),
        (r#"{"$trim": {"input": 1}}"#, "!50699"),
        (r#"{"$trim": {"input": "a", "chars": 1}}"#, "!50700"),
        (r#"{"$trim": {"chars": "a"}}"#, "!50695"),
        (r#"{"$trim": "a"}"#, "!50696"),
        (r#"{"$trim": {"input": "a", "x": 1}}"#, "!50694"),
        (r#"{"$replaceOne": {"input": "aXbX", "find": "X", "replacement": "-"}}"#, r#""a-bX""#),
        (r#"{"$replaceAll": {"input": "aXbX", "find": "X", "replacement": ""}}"#, r#""ab""#),
        (r#"{"$replaceAll": {"input": "ab", "find": "", "replacement": "-"}}"#, r#""-a-b-""#),
        (r#"{"$replaceAll": {"input": "$n", "find": "X", "replacement": "y"}}"#, "null"),
        (r#"{"$replaceAll": {"input": 1, "find": "X", "replacement": "y"}}"#, "!51746"),
        (r#"{"$replaceAll": {"input": "a", "find": 1, "replacement": "y"}}"#, "!51745"),
        (r#"{"$replaceAll": {"input": "a", "find": "b", "replacement": 1}}"#, "!51744"),
        (r#"{"$replaceAll": {"find": "b", "replacement": 1}}"#, "!51749"),
        (r#"{"$binarySize": "$s"}"#, "7"),
    ]);
}

#[test]
fn parts_are_counted_in_bytes_or_code_points() {
    check(&[
        (r#"{"$substrBytes": ["hello", 1, 3]}"#, r#""ell""#),
        (r#"{"$substr": ["hello", 2, -1]}"#, r#""llo""#),
        (r#"{"$substrBytes": ["hello", 9, 1]}"#, r#""""#),
        (r#"{"$substrBytes": ["$s", 5, 1]}"#, "!28656"),
        (r#"{"$substrBytes": ["$s", 4, 1]}"#, "!28657"),
        (r#"{"$substrBytes": ["a", -1, 1]}"#, "!50752"),
        (r#"{"$substrBytes": ["a", "x", 1]}"#, "!16034"),
        (r#"{"$substrBytes": ["a", 0, "x"]}"#, "!16035"),
        (r#"{"$substrBytes": ["$n", 0, 1]}"#, r#""""#),
        (r#"{"$substrCP": ["$s", 4, 2]}"#, r#""ße""#),
        (r#"{"$substrCP": [12345, 1, 2]}"#, r#""23""#),
        (r#"{"$substrCP": ["a", -1, 1]}"#, "!34455"),
        (r#"{"$substrCP": ["a", 0, -1]}"#, "!34454"),
        (r#"{"$substrCP": ["a", "x", 1]}"#, "!34450"),
        (r#"{"$substrCP": ["a", 0.5, 1]}"#, "!34451"),
        (r#"{"$substrCP": ["a", 0]}"#, "!28667"),
        (r#"{"$indexOfBytes": ["$s", "e"]}"#, "6"),
        (r#"{"$indexOfCP": ["$s", "e"]}"#, "5"),
        (r#"{"$indexOfCP": ["abcabc", "c", 3]}"#, "5"),
        (r#"{"$indexOfCP": ["abcabc", "c", 3, 5]}"#, "-1"),
        (r#"{"$indexOfBytes": ["abc", "", 1]}"#, "1"),
        (r#"{"$indexOfBytes": ["abc", "a", 9]}"#, "-1"),
        (r#"{"$indexOfBytes": ["abc", "c", 2, 1]}"#, "-1"),
        (r#"{"$indexOfBytes": ["$n", "c"]}"#, "null"),
        (r#"{"$indexOfBytes": [1, "c"]}"#, "!40091"),
        (r#"{"$indexOfBytes": ["a", 1]}"#, "!40092"),
        (r#"{"$indexOfCP": [1, "c"]}"#, "!40093"),
        (r#"{"$indexOfCP": ["a", "a", "x"]}"#, "!40096"),
        (r#"{"$indexOfCP": ["a", "a", -1]}"#, "!40097"),
    ]);
}

#[test]
fn patterns_are_found() {
    check(&[
        (r#"{"$regexMatch": {"input": "$s", "regex": "^stra", "options": "i"}}"#, "true"),
        (r#"{"$regexMatch": {"input": "$s", "regex": "^stra"}}"#, "false"),
        (r#"{"$regexMatch": {"input": "$n", "regex": "a"}}"#, "false"),
        (r#"{"$regexMatch": {"input": "a", "regex": "$n"}}"#, "false"),
        (
            r#"{"$regexMatch": {"input": "AB", "regex": {"$concat": ["a", "b"]}, "options": "i"}}"#,
            "true",
        ),
        (
            r#"{"$regexFind": {"input": "$s", "regex": "(ß)(x)?e"}}"#,
            r#"{"match": "ße", "idx": 4, "captures": ["ß", null]}"#,
        ),
        (r#"{"$regexFind": {"input": "a", "regex": "b"}}"#, "null"),
        (
            r#"{"$regexFindAll": {"input": "ßaßa", "regex": "a"}}"#,
            r#"[{"match": "a", "idx": 1, "captures": []}, {"match": "a", "idx": 3, "captures": []}]"#,
        ),
        (r#"{"$regexFindAll": {"input": "$absent", "regex": "a"}}"#, "[]"),
        (r#"{"$regexMatch": {"input": 1, "regex": "a"}}"#, "!51104"),
        (r#"{"$regexMatch": {"input": "a", "regex": 1}}"#, "!51105"),
        (r#"{"$regexMatch": {"input": "a", "regex": "a", "options": 1}}"#, "!51106"),
        (r#"{"$regexMatch": {"input": "a", "regex": "a", "options": "q"}}"#, "!51108"),
        (r#"{"$regexMatch": {"input": "a", "regex": "("}}"#, "!51111"),
        (
            r#"{"$regexMatch": {"input": "a", "regex": {"$regularExpression": {"pattern": "A", "options": "i"}}}}"#,
            "true",
        ),
        (r#"{"$regexMatch": {"regex": "a"}}"#, "!31022"),
        (r#"{"$regexMatch": {"input": "a"}}"#, "!31023"),
        (r#"{"$regexMatch": 1}"#, "!51103"),
    ]);
}
