//! Rounding, and angles.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$ceil",
        r#"
            1.2 => double(2.0)
            "$dec" => decimal(2)
            "$n" => null
            "$absent" => null
            "x" => !28765
            "$a" => !28765
            -1.5 => double(-1)
            -0.5 => double(-0.0)
            2147483647 => 2147483647
            long(-9223372036854775808) => long(-9223372036854775808)
            double(1.7976931348623157e308) => double(1.7976931348623157e308)
            "$nan" => double(NaN)
            double(-Infinity) => double(-Infinity)
            decimal(-1.5) => decimal(-1)
            decimal(0.001) => decimal(1)
            decimal(1E+3) => decimal(1000)
            decimal(1E+40) => decimal(NaN)
            decimal(Infinity) => decimal(NaN)
            decimal(NaN) => decimal(NaN)
        "#,
    ),
    Table(
        "$floor",
        r#"
            -1.2 => double(-2.0)
            5 => 5
            "$n" => null
            "$absent" => null
            "x" => !28765
            true => !28765
            1.9 => double(1)
            -2147483648 => -2147483648
            long(9223372036854775807) => long(9223372036854775807)
            "$nan" => double(NaN)
            double(Infinity) => double(Infinity)
            decimal(-1.5) => decimal(-2)
            decimal(-0.001) => decimal(-1)
            decimal(2.5E+1) => decimal(25)
            decimal(-Infinity) => decimal(NaN)
            "$a" => !28765
        "#,
    ),
    Table(
        "$round",
        r#"
            [] => !28667
            2.5 => double(2.0)
            [3.5, 0] => double(4.0)
            [1.25, 1] => 1.2
            [1234.567, 2] => 1234.57
            [1250, -2] => 1200
            [1350, -2] => 1400
            [-1350, -2] => -1400
            [2147483647, -1] => long(2147483650)
            [-2147483648, -1] => 2147483646
            [long(9223372036854775807), -1] => !51080
            [5, 3] => 5
            ["$dec", 1] => decimal(1.1)
            ["$nan", 1] => double(NaN)
            [1, "$n"] => null
            "x" => !51081
            [1.5, 0.5] => !51082
            [1.5, 101] => !51083
            "$n" => null
            "$absent" => null
            ["$absent", "x"] => null
            ["x", "$n"] => !51081
            ["$a", 1] => !51081
            ["$date", 1] => !51081
            // The number of places is read as a long first.
            [1.5, "x"] => !16004
            [1.5, "$nan"] => !31109
            [1.5, 1e300] => !31109
            [1.5, long(4294967296)] => !51082
            [1.5, 2.0] => 1.5
            [1.5, -21] => !51083
            -2.5 => double(-2)
            -0.4 => double(-0.0)
            [1.005, 2] => double(1)
            [1.45, 1] => 1.4
            [15, -1] => 20
            [25, -1] => 20
            [5, -20] => 0
            [1e300, 2] => double(1e300)
            double(Infinity) => double(Infinity)
            long(9223372036854775807) => long(9223372036854775807)
            [long(-9223372036854775808), -1] => !51080
            decimal(2.5) => decimal(2)
            decimal(-0.5) => decimal(-0)
            [decimal(1.1), 3] => decimal(1.100)
            [decimal(1234), -2] => decimal(1.2E+3)
            [decimal(0), 2] => decimal(0.00)
            [decimal(1E+40), 0] => decimal(1.000000000000000000000000000000000E+40)
            decimal(Infinity) => decimal(Infinity)
            decimal(NaN) => decimal(NaN)
            [1, 2, 3] => !28667
        "#,
    ),
    Table(
        "$trunc",
        r#"
            -2.7 => double(-2.0)
            [1.999, 2] => 1.99
            [1299, -2] => 1200
            "$n" => null
            "$absent" => null
            [1.5, "$n"] => null
            "x" => !51081
            ["$a", 1] => !51081
            [1.5, "x"] => !16004
            [1.5, 0.5] => !51082
            [1.5, 101] => !51083
            2.7 => double(2)
            -0.7 => double(-0.0)
            [-1.999, 2] => -1.99
            [-1299, -2] => -1200
            2147483647 => 2147483647
            [long(9223372036854775807), -1] => long(9223372036854775800)
            "$nan" => double(NaN)
            double(-Infinity) => double(-Infinity)
            decimal(-2.7) => decimal(-2)
            [decimal(1.999), 2] => decimal(1.99)
            [decimal(1.1), 3] => decimal(1.100)
            decimal(NaN) => decimal(NaN)
        "#,
    ),
    Table(
        "$degreesToRadians",
        r#"
            180 => 3.141592653589793
            decimal(1) => decimal(0.01745329251994329576923690768488613)
            "$n" => null
            "$absent" => null
            "x" => !28765
            "$a" => !28765
            90 => 1.5707963267948966
            long(9223372036854775807) => 1.6097821017949162e17
            "$nan" => double(NaN)
            double(Infinity) => double(Infinity)
            decimal(NaN) => decimal(NaN)
        "#,
    ),
    Table(
        "$radiansToDegrees",
        r#"
            3.141592653589793 => double(180)
            decimal(1) => decimal(57.29577951308232087679815481410517)
            "$n" => null
            "$absent" => null
            "x" => !28765
            "$a" => !28765
            1 => 57.29577951308232
            -2147483648 => -123041749603.75769
            "$nan" => double(NaN)
            double(-Infinity) => double(-Infinity)
            decimal(-Infinity) => decimal(-Infinity)
        "#,
    ),
];
