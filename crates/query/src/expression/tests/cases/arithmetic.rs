//! `$add` and its like: types, bounds, null, NaN, dates.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$abs",
        r#"
            [1, 2] => !16020
            -3 => 3
            -2147483648 => long(2147483648)
            long(-9223372036854775808) => !28680
            decimal(-1.5) => decimal(1.5)
            "$n" => null
            "x" => !28765
            "$absent" => null
            -7.25 => 7.25
            [-4] => 4
            "$l" => long(5000000000)
            long(-9223372036854775807) => long(9223372036854775807)
            2147483647 => 2147483647
            decimal(-0) => decimal(0)
            decimal(-Infinity) => decimal(Infinity)
            decimal(NaN) => decimal(NaN)
            double(-Infinity) => double(Infinity)
            double(-0.0) => double(0.0)
            "$nan" => double(NaN)
            "$a" => !28765
            true => !28765
            "$date" => !28765
        "#,
    ),
    Table(
        "$add",
        r#"
            [1], "a": 1 => !15983
            [] => 0
            [1, 2] => 3
            [1, 2.5] => 3.5
            [2147483647, 1] => long(2147483648)
            [2147483647, 1, -1] => 2147483647
            [long(1), 1] => long(2)
            [long(9223372036854775807), 1] => double(9223372036854775808)
            [0.1, 0.2, 0.3, -0.3, -0.2, -0.1] => 8.326672684688674e-17
            ["$dec", 1] => decimal(2.10)
            ["$nan", 1] => double(NaN)
            [1, "$n"] => null
            [1, "$absent"] => null
            [1, "x"] => !14
            [1, [2]] => !14
            ["$date", 1000] => date(2020-02-29T12:34:57.789Z)
            ["$date", 0.6] => date(2020-02-29T12:34:56.790Z)
            ["$date", "$date"] => !16612
            ["$date", 1e300] => !15
            // From left to right, each step rounded: nothing is kept of what rounding loses.
            [0.1, 0.2, 0.3] => 0.6000000000000001
            [1, 1e300, -1e300] => double(0)
            [long(9223372036854775807), long(9223372036854775807), -1] =>
                double(18446744073709551616)
            [long(-9223372036854775808), -1] => double(-9223372036854775808)
            [1.5, decimal(1.1)] => decimal(2.60000000000000)
            [1, decimal(1E+3)] => decimal(1001)
            [double(Infinity), double(-Infinity)] => double(NaN)
            [decimal(Infinity), 1] => decimal(Infinity)
            ["$d"] => 2.5
            "$i" => 7
            [0.4, "$date", 0.4] => date(2020-02-29T12:34:56.789Z)
            ["$date", 0.4, 0.4] => date(2020-02-29T12:34:56.789Z)
            [0.4, 0.4, "$date"] => date(2020-02-29T12:34:56.790Z)
            ["$date", -0.5] => date(2020-02-29T12:34:56.788Z)
            ["$date", decimal(0.5)] => date(2020-02-29T12:34:56.789Z)
            ["$date", decimal(1.5)] => date(2020-02-29T12:34:56.791Z)
            ["$date", "$nan"] => !15
            ["$date", decimal(NaN)] => !15
            ["$date", long(9223372036854775807)] => !15
            ["$absent", "x"] => null
            ["x", "$absent"] => !14
            [true, 1] => !14
            ["$a", 1] => !14
            ["$o", 1] => !14
        "#,
    ),
    Table(
        "$divide",
        r#"
            [6, 2] => double(3.0)
            [1, 0] => !2
            ["$dec", 2] => decimal(0.55)
            ["$dec", decimal(0)] => !2
            ["a", 1] => !14
            [null, 0] => null
            ["$absent", 2] => null
            [7, "$n"] => null
            ["x", "$n"] => null
            [1, "$a"] => !14
            ["$date", 2] => !14
            [7, 2] => 3.5
            [1, 3] => 0.3333333333333333
            [1, double(-0.0)] => !2
            [1, decimal(0.00)] => !2
            [1, double(Infinity)] => double(0)
            [double(Infinity), double(Infinity)] => double(NaN)
            ["$nan", 2] => double(NaN)
            [decimal(1), 3] => decimal(0.3333333333333333333333333333333333)
            [decimal(NaN), 2] => decimal(NaN)
            [long(9223372036854775807), 1] => double(9223372036854775808)
            [-2147483648, -1] => double(2147483648)
            [1] => !16020
        "#,
    ),
    Table(
        "$mod",
        r#"
            [7, 4] => 3
            [-7, 4] => -3
            [7, 2.5] => double(2.0)
            [long(-9223372036854775808), -1] => long(0)
            [1, 0] => !16610
            [1, "x"] => !16611
            ["$n", 2] => null
            ["$absent", 2] => null
            [7, "$n"] => null
            ["x", "$n"] => null
            ["$a", 2] => !16611
            ["$date", 2] => !16611
            [7, -4] => 3
            [-7.5, 2] => double(-1.5)
            [7.5, decimal(2)] => decimal(1.50000000000000)
            ["$dec", 1] => decimal(0.10)
            [1, decimal(0)] => !5733415
            [decimal(1), 0] => !5733415
            [1, double(-0.0)] => !16610
            [7, double(Infinity)] => double(7)
            [double(Infinity), 7] => double(NaN)
            ["$nan", 2] => double(NaN)
            [decimal(Infinity), 2] => decimal(NaN)
            [-2147483648, -1] => 0
            [long(9223372036854775807), 10] => long(7)
            [5, long(3)] => long(2)
        "#,
    ),
    Table(
        "$multiply",
        r#"
            [] => 1
            [3, 4] => 12
            [65536, 65536] => long(4294967296)
            ["$l", "$l"] => double(2.5e19)
            ["$dec", 2] => decimal(2.20)
            [1, "$n"] => null
            [1, true] => !14
            ["$absent", 2] => null
            ["x", null] => !14
            [null, "x"] => null
            ["$a", 2] => !14
            ["$date", 2] => !14
            5 => 5
            // An int that grew too large and came back is an int again.
            [65536, 65536, 0] => 0
            [long(2), 3] => long(6)
            [2, 2.5] => double(5)
            [-2147483648, -1] => long(2147483648)
            [long(9223372036854775807), 2] => double(18446744073709551616)
            [long(9223372036854775807), 2, decimal(1)] => decimal(1.84467440737096E+19)
            [long(9223372036854775807), decimal(2)] => decimal(18446744073709551614)
            [double(Infinity), 0] => double(NaN)
            ["$nan", "$i"] => double(NaN)
            [decimal(Infinity), -1] => decimal(-Infinity)
            [1.1, decimal(1)] => decimal(1.10000000000000)
        "#,
    ),
    Table(
        "$subtract",
        r#"
            [1, 2] => -1
            [-2147483648, 1] => long(-2147483649)
            ["$dec", 0.1] => decimal(1.000000000000000)
            ["$date", "$date"] => long(0)
            ["$date", 789] => date(2020-02-29T12:34:56Z)
            [1, "$date"] => !14
            ["x", 1] => !14
            ["x", "$n"] => null
            ["$n", 1] => null
            [1, "$absent"] => null
            ["$date", "$n"] => null
            ["$a", 1] => !14
            [1, "x"] => !14
            ["$date", "x"] => !14
            [5.5, 2] => 3.5
            [long(-9223372036854775808), 1] => double(-9223372036854775808)
            [long(5), 2] => long(3)
            [2147483647, -1] => long(2147483648)
            ["$nan", 1] => double(NaN)
            [double(Infinity), double(Infinity)] => double(NaN)
            [decimal(Infinity), 1] => decimal(Infinity)
            ["$date", 0.5] => date(2020-02-29T12:34:56.788Z)
            ["$date", decimal(0.5)] => date(2020-02-29T12:34:56.789Z)
            ["$date", date(2020-02-28T12:34:56.789Z)] => long(86400000)
            ["$date", "$nan"] => !15
            ["$date", double(1e300)] => !15
            [date(1970-01-01T00:00:00Z), long(-9223372036854775808)] => !15
            [1] => !16020
        "#,
    ),
];
