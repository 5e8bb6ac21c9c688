//! Arrays as sets.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$setDifference",
        r#"
            [[3, 1, 3, 2], [1]] => [3, 2]
            [1, []] => !17048
            [[], 1] => !17049
            ["$n", 1] => null
            [1, "$n"] => null
            ["$absent", "$a"] => null
            ["$a", [1.0, long(2)]] => [3]
            [["$n", "ß", "SS"], ["ß"]] => [null, "SS"]
            [[[1], [1], 1], [1]] => [[1]]
            [["$nan", double(NaN)], []] => [double(NaN)]
            ["$s", "$a"] => !17048
            ["$a", "$s"] => !17049
            ["$a"] => !16020
        "#,
    ),
    Table(
        "$setEquals",
        r#"
            ["$a", [1, 2, 3, 3], [3, 2, 1.0]] => true
            ["$a", [1]] => false
            ["$a", "$n"] => !17044
            ["$a", "$absent"] => !17044
            ["$n", "$a"] => !17044
            ["$a", "$s"] => !17044
            ["$a", 1] => !5887502
            [null, "$a"] => !5887502
            // What decides isn't looked behind.
            ["$a", ["$n"], "$i"] => false
            [["$n", 1], [1, null]] => true
            [["ß"], ["SS"]] => false
            [[[1, 2]], [[2, 1]]] => false
            [[], []] => true
            ["$a"] => !17045
        "#,
    ),
    Table(
        "$setIntersection",
        r#"
            ["$a", [2, 3, 3, 9]] => [2, 3]
            [1] => !17047
            [] => []
            ["$n", 1] => null
            ["$absent", "$a"] => null
            [1, "$n"] => !17047
            ["$a", "$s"] => !17047
            [["$n", 1, "ß"], ["ß", null]] => [null, "ß"]
            [[[1, 2], 3], [[1, 2]]] => [[1, 2]]
            ["$a", "$empty"] => []
            ["$a"] => [1, 2, 3]
        "#,
    ),
    Table(
        "$setIsSubset",
        r#"
            [[1, 1], "$a"] => true
            [1, "$a"] => !17046
                        ["$n", "$a"] => !17046
            ["$a", "$n"] => !17042
            ["$absent", "$a"] => !17046
            ["$a", "$s"] => !17042
            ["$a", null] => !17311
            ["$a", 1] => !17311
            ["$s", 1] => !17311
            [[], "$a"] => true
            [["$n"], "$mixed"] => true
            [["ß"], ["SS"]] => false
            [[1, 2], [[1, 2]]] => false
            ["$a"] => !16020
            // Of constants alone the code is another.
            [[1], 1] => !17042
            [{"$literal": [1]}, 1] => !17042
        "#,
    ),
    Table(
        "$setUnion",
        r#"
            ["$a", [3.0, 5, 1]] => [1, 2, 3, 5]
            ["$a", "$n"] => null
            ["$a", 1] => !17043
            [] => []
            ["$n", 1] => null
            ["$absent", 1] => null
            [1, "$n"] => !17043
            ["$a", "$o"] => !17043
            [["$n", "ß"], ["$nan", "ß", [1]]] => [null, double(NaN), "ß", [1]]
            [[2147483647], [long(2147483647)]] => [2147483647]
        "#,
    ),
    Table(
        "$allElementsTrue",
        r#"
            [[]] => true
            [[1, 0]] => false
            "$i" => !17040
            "$n" => !17040
            "$absent" => !17040
            ["$s"] => !17040
            ["$a"] => true
            ["$mixed"] => false
            [["$nan", "", "$empty"]] => true
            [[double(-0.0)]] => false
            ["$a", "$a"] => !16020
        "#,
    ),
    Table(
        "$anyElementTrue",
        r#"
            [[0, null, 1]] => true
            "$i" => !17041
            "$n" => !17041
            "$absent" => !17041
            ["$o"] => !17041
            ["$empty"] => false
            [["$n", 0, false, "$absent"]] => false
            [[[]]] => true
            [["$nan"]] => true
            ["$a", "$a"] => !16020
        "#,
    ),
];
