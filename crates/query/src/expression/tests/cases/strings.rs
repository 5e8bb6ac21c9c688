//! Strings, joined, cut and changed.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$concat",
        r#"
            ["a", "$s", "b"] => "aStraßeb"
            [] => ""
            ["a", "$n"] => null
            ["a", 1] => !16702
            ["$absent", 1] => null
            [1, "$n"] => !16702
            ["$a"] => !16702
            ["$t"] => !16702
            "$s" => "Straße"
            ["日", "本"] => "日本"
            [""] => ""
        "#,
    ),
    Table(
        "$binarySize",
        r#"
            "$s" => 7
            "$n" => null
            "$absent" => null
            "$i" => !51276
            "$a" => !51276
            "日本" => 6
            "" => 0
            binary(AAEC, 00) => 3
        "#,
    ),
    Table(
        "$split",
        r#"
            ["a-b--c", "-"] => ["a", "b", "", "c"]
            ["abc", "x"] => ["abc"]
            ["$n", "x"] => null
            ["a", ""] => !40087
            [1, "x"] => !40085
            ["a", 1] => !40086
            ["$absent", 1] => null
            ["a", "$n"] => null
            ["$a", "x"] => !40085
            ["", "x"] => [""]
            ["日-本-", "-"] => ["日", "本", ""]
            ["Straße", "ß"] => ["Stra", "e"]
            ["aaa", "aa"] => ["", "a"]
            ["a"] => !16020
        "#,
    ),
    Table(
        "$strLenBytes",
        r#"
            "$s" => 7
            1 => !34473
            "$n" => !34473
            "$absent" => !34473
            "$a" => !34473
            "" => 0
            "日本" => 6
            "😀" => 4
        "#,
    ),
    Table(
        "$strLenCP",
        r#"
            "$s" => 6
            "$n" => !34471
            "$absent" => !34471
            "$i" => !34471
            "$a" => !34471
            "" => 0
            "日本" => 2
            "😀" => 1
            "é" => 1
        "#,
    ),
    Table(
        "$strcasecmp",
        r#"
            ["abc", "ABD"] => -1
            [null, ""] => 0
            ["$absent", "a"] => -1
            ["a", "$n"] => 1
            ["$n", "$absent"] => 0
            ["STRASSE", "strasse"] => 0
            // Letters beyond ASCII have no other case.
            ["É", "é"] => -1
            ["$i", "7"] => 0
            ["$date", "2020"] => 1
            ["$t", "true"] => !16007
            ["$a", "a"] => !16007
            ["$oid", "a"] => !16007
            ["a"] => !16020
        "#,
    ),
    Table(
        "$toLower",
        r#"
            "ÀB1" => "Àb1"
            "$d" => "2.5"
            "$date" => "2020-02-29t12:34:56.789z"
            true => !16007
            "$n" => ""
            "$absent" => ""
            "ÄÖÜ SS ǅ" => "ÄÖÜ ss ǅ"
            "$i" => "7"
            decimal(1E+10) => "1e+10"
            0.30000000000000004 => "0.3"
            1e21 => "1e+21"
            123456789012345680 => "123456789012345680"
            double(123456789012345680) => "1.23457e+17"
            1000000.0 => "1e+06"
            999999.0 => "999999"
            1234567.5 => "1.23457e+06"
            0.0001 => "0.0001"
            0.00001 => "1e-05"
            100000.0 => "100000"
            "$nan" => "nan"
            double(-Infinity) => "-inf"
            "$a" => !16007
            "$oid" => !16007
            {"$literal": {"$timestamp": {"t": 86400, "i": 7}}} => "jan  2 00:00:00:7"
            ["A", "B"] => !16020
        "#,
    ),
    Table(
        "$toUpper",
        r#"
            "$s" => "STRAßE"
            "$absent" => ""
            "$n" => ""
            "äöü ss" => "äöü SS"
            "$nan" => "NAN"
            1e-7 => "1E-07"
            "$date" => "2020-02-29T12:34:56.789Z"
            "$o" => !16007
            "$t" => !16007
        "#,
    ),
    Table(
        "$trim",
        r#"
            {"input": "  a b\n"} => "a b"
            {"input": "$n"} => null
            {"input": 1} => !50699
            {"input": "a", "chars": 1} => !50700
            {"chars": "a"} => !50695
            "a" => !50696
            {"input": "a", "x": 1} => !50694
            {"input": "$absent"} => null
            {"input": 1, "chars": null} => !50699
            {"input": "a", "chars": "$n"} => null
            {"input": "a", "chars": "$absent"} => null
            {"input": "$n", "chars": 1} => null
            {"input": "$a"} => !50699
            {"input": "\u00a0\u2003a\u1680\u0000"} => "a"
            {"input": "\u3000a\u2028"} => "\u3000a\u2028"
            {"input": "ßaßa", "chars": "ß"} => "aßa"
            {"input": "  a  ", "chars": ""} => "  a  "
            {"input": "日本語日", "chars": "語日"} => "本"
            {} => !50695
        "#,
    ),
    Table(
        "$ltrim",
        r#"
            {"input": "xxaxx", "chars": "x"} => "axx"
            {"input": " \ta "} => "a "
            {"input": "$n"} => null
            {"input": "$absent"} => null
            {"input": "$i"} => !50699
            {"input": "a", "chars": 1} => !50700
            {"input": "ßßa", "chars": "ß"} => "a"
            {"chars": "a"} => !50695
            "a" => !50696
        "#,
    ),
    Table(
        "$rtrim",
        r#"
            {"input": "axyx", "chars": "xy"} => "a"
            {"input": " a \n"} => " a"
            {"input": "$n"} => null
            {"input": "$absent"} => null
            {"input": "$i"} => !50699
            {"input": "aßß", "chars": "ß"} => "a"
            {"input": "a", "x": 1} => !50694
        "#,
    ),
    Table(
        "$replaceAll",
        r#"
            {"input": "aXbX", "find": "X", "replacement": ""} => "ab"
            {"input": "ab", "find": "", "replacement": "-"} => "-a-b-"
            {"input": "$n", "find": "X", "replacement": "y"} => null
            {"input": 1, "find": "X", "replacement": "y"} => !51746
            {"input": "a", "find": 1, "replacement": "y"} => !51745
            {"input": "a", "find": "b", "replacement": 1} => !51744
            {"find": "b", "replacement": 1} => !51749
            {"input": "$absent", "find": "X", "replacement": "y"} => null
            {"input": "a", "find": "$n", "replacement": "y"} => null
            {"input": "a", "find": "b", "replacement": "$absent"} => null
            {"input": "$n", "find": 1, "replacement": "y"} => !51745
            {"input": "aßbß", "find": "ß", "replacement": "ss"} => "assbss"
            {"input": "aaaa", "find": "aa", "replacement": "a"} => "aa"
            {"input": "a.b", "find": ".", "replacement": "$&"} => null
            {"input": "a.b.", "find": ".", "replacement": "-"} => "a-b-"
            {"input": "", "find": "", "replacement": "x"} => "x"
            {"input": "A", "find": "a", "replacement": "x"} => "A"
            {"input": "a", "replacement": "x"} => !51748
            {"input": "a", "find": "x"} => !51747
            {"input": "a", "find": "b", "replacement": "c", "x": 1} => !51750
            1 => !51751
        "#,
    ),
    Table(
        "$replaceOne",
        r#"
            {"input": "aXbX", "find": "X", "replacement": "-"} => "a-bX"
            {"input": "$n", "find": "X", "replacement": "y"} => null
            {"input": "$absent", "find": "X", "replacement": "y"} => null
            {"input": "$i", "find": "X", "replacement": "y"} => !51746
            {"input": "a", "find": "$a", "replacement": "y"} => !51745
            {"input": "a", "find": "b", "replacement": true} => !51744
            {"input": "ßß", "find": "ß", "replacement": "s"} => "sß"
            {"input": "abc", "find": "", "replacement": "-"} => "-abc"
            {"input": "abc", "find": "x", "replacement": "-"} => "abc"
        "#,
    ),
];
