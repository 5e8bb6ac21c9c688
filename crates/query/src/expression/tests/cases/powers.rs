//! Powers, logarithms, bits.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$exp",
        r#"
            0 => double(1.0)
            "$n" => null
            "$absent" => null
            "x" => !28765
            "$a" => !28765
            1 => 2.718281828459045
            1000 => double(Infinity)
            -1000 => double(0)
            long(9223372036854775807) => double(Infinity)
            "$nan" => double(NaN)
            double(-Infinity) => double(0)
            decimal(0) => decimal(1)
            decimal(1) => decimal(2.718281828459045235360287471352662)
            decimal(NaN) => decimal(NaN)
        "#,
    ),
    Table(
        "$ln",
        r#"
            1 => double(0.0)
            0 => !28766
            "$n" => null
            "$absent" => null
            "x" => !28765
            -1 => !28766
            decimal(0) => !28766
            decimal(-1) => !28766
            10 => 2.302585092994046
            long(9223372036854775807) => 43.66827237527655
            "$nan" => double(NaN)
            decimal(NaN) => double(NaN)
            double(Infinity) => double(Infinity)
            double(-Infinity) => !28766
            decimal(1E-400) => decimal(-921.0340371976182736071965818737457)
            decimal(2) => decimal(0.6931471805599453094172321214581766)
            "$a" => !28765
        "#,
    ),
    Table(
        "$log",
        r#"
            [8, 2] => double(3.0)
            [8, 1] => !28759
            [0, 2] => !28758
            ["x", 2] => !28756
            [8, "x"] => !28757
            ["$n", 10] => null
            [10, "$absent"] => null
            ["x", "$n"] => null
            ["x", "y"] => !28756
            ["$a", 2] => !28756
            [10, "$t"] => !28757
            [100, 10] => double(2)
            [8, -2] => !28759
            [8, 0] => !28759
            [-8, -2] => !28758
            ["$nan", 10] => double(NaN)
            [10, "$nan"] => double(NaN)
            [decimal(NaN), 10] => double(NaN)
            [decimal(NaN), 1] => !28759
            [double(Infinity), 10] => double(Infinity)
            [decimal(100), 10] => decimal(2)
            [10, decimal(1.0)] => !28759
            [long(9223372036854775807), 2] => double(63)
            [8] => !16020
        "#,
    ),
    Table(
        "$log10",
        r#"
            1000 => double(3.0)
            -1 => !28761
            "$n" => null
            "$absent" => null
            "x" => !28765
            "$o" => !28765
            0 => !28761
            "$nan" => double(NaN)
            decimal(NaN) => double(NaN)
            double(Infinity) => double(Infinity)
            decimal(1E-300) => decimal(-300)
            2147483647 => 9.331929865381182
            "$a" => !28765
        "#,
    ),
    Table(
        "$pow",
        r#"
            [2, 10] => 1024
            [2, 40] => long(1099511627776)
            [2, 64] => double(18446744073709551616)
            [2, -1] => 0.5
            [-1, 3] => -1
            [0, -1] => !28764
            ["$dec", 2] => decimal(1.210000000000000000000000000000000)
            ["x", 2] => !28762
            [2, "x"] => !28763
            ["$n", 2] => null
            [2, "$absent"] => null
            ["$n", "x"] => null
            ["$a", 2] => !28762
            [2, "$t"] => !28763
            [0, 0] => 1
            [0, 5] => 0
            [0, decimal(-1)] => !28764
            [decimal(0), -1] => !28764
            [-2, 3] => -8
            [-2, 31] => -2147483648
            [2, 31] => long(2147483648)
            [-2, 63] => long(-9223372036854775808)
            [2, 63] => double(9223372036854775808)
            [long(2), 3] => long(8)
            [1, long(9223372036854775807)] => long(1)
            [-1, long(9223372036854775807)] => long(-1)
            [long(9223372036854775807), 2] => double(8.507059173023462e37)
            [2.5, 2] => 6.25
            [4, 0.5] => double(2)
            [-8, 0.5] => double(NaN)
            ["$nan", 0] => double(1)
            ["$nan", 1] => double(NaN)
            [double(Infinity), -1] => double(0)
            [decimal(NaN), 2] => decimal(NaN)
            [decimal(2), 3] => decimal(8.000000000000000000000000000000000)
            [2] => !16020
        "#,
    ),
    Table(
        "$sqrt",
        r#"
            16 => double(4.0)
            -1 => !28714
            "$nan" => double(NaN)
            "$n" => null
            "$absent" => null
            "x" => !28765
            "$a" => !28765
            2 => 1.4142135623730951
            double(Infinity) => double(Infinity)
            double(-Infinity) => !28714
            double(-0.0) => double(-0.0)
            decimal(-1) => !28714
            decimal(16) => decimal(4)
            decimal(2) => decimal(1.414213562373095048801688724209698)
            decimal(NaN) => decimal(NaN)
            long(9223372036854775807) => 3037000499.97605
        "#,
    ),
    Table(
        "$bitAnd",
        r#"
            [3, 5] => 1
            [] => -1
            [-1, long(4294967296)] => long(4294967296)
            [1, "$n"] => null
            [1, 2.5] => !14
            "$i" => 7
            ["$absent", "x"] => null
            ["x", "$n"] => !14
            ["$a", 1] => !14
            [decimal(1), 1] => !14
            [2147483647, -2147483648] => 0
            [long(9223372036854775807), -1] => long(9223372036854775807)
        "#,
    ),
    Table(
        "$bitNot",
        r#"
            5 => -6
            long(0) => long(-1)
            "$absent" => null
            1.5 => !14
            "x" => !28765
            "$n" => null
            -2147483648 => 2147483647
            long(9223372036854775807) => long(-9223372036854775808)
            decimal(1) => !14
            true => !28765
            "$a" => !28765
            [1, 2] => !16020
        "#,
    ),
    Table(
        "$bitOr",
        r#"
            [3, 5] => 7
            [] => 0
            ["x", 1] => !14
            "$i" => 7
            ["$n", 1] => null
            [1, "$absent"] => null
            [1, true] => !14
            ["$a", 1] => !14
            [-2147483648, 2147483647] => -1
            [1, long(4294967296)] => long(4294967297)
        "#,
    ),
    Table(
        "$bitXor",
        r#"
            [3, 5, 1] => 7
            [-2147483648, -1] => 2147483647
            [] => 0
            ["$n", 1] => null
            [1, "$absent"] => null
            [1, "x"] => !14
            [1.0, 1] => !14
            ["$a", 1] => !14
            [long(9223372036854775807), long(-9223372036854775808)] => long(-1)
        "#,
    ),
];
