//! The functions of angles.

use super::Table;

pub(super) const TABLES: &[Table] = &[
    Table(
        "$acos",
        r#"
            -1 => 3.141592653589793
            1.1 => !50989
            "$n" => null
            "$absent" => null
            "x" => !28765
            "$a" => !28765
            0.5 => 1.0471975511965979
            1 => double(0)
            -1.1 => !50989
            long(9223372036854775807) => !50989
            "$nan" => double(NaN)
            double(Infinity) => !50989
            decimal(1) => decimal(0)
            decimal(1.000000000000000000000000000000001) => !50989
            decimal(NaN) => decimal(NaN)
        "#,
    ),
    Table(
        "$acosh",
        r#"
            1 => double(0)
            0.9 => !50989
            "$n" => null
            "$absent" => null
            "x" => !28765
            "$a" => !28765
            2 => 1.3169578969248166
            long(9223372036854775807) => 44.3614195558365
            "$nan" => double(NaN)
            double(Infinity) => double(Infinity)
            double(-Infinity) => !50989
            decimal(1) => decimal(0)
            decimal(0.99) => !50989
            decimal(NaN) => decimal(NaN)
        "#,
    ),
    Table(
        "$asin",
        r#"
            1 => 1.5707963267948966
            "$n" => null
            "$absent" => null
            "x" => !28765
            true => !28765
            0 => double(0)
            -1 => -1.5707963267948966
            2 => !50989
            -2147483648 => !50989
            "$nan" => double(NaN)
            double(-Infinity) => !50989
            decimal(0) => decimal(0)
            decimal(2) => !50989
            decimal(NaN) => decimal(NaN)
        "#,
    ),
    Table(
        "$asinh",
        r#"
            0 => double(0)
            "$n" => null
            "$absent" => null
            "x" => !28765
            "$date" => !28765
            1 => 0.881373587019543
            long(9223372036854775807) => 44.3614195558365
            "$nan" => double(NaN)
            double(-Infinity) => double(-Infinity)
            decimal(0) => decimal(0)
            decimal(NaN) => decimal(NaN)
        "#,
    ),
    Table(
        "$atan",
        r#"
            1 => 0.7853981633974483
            "$n" => null
            "$absent" => null
            "x" => !28765
            "$a" => !28765
            0 => double(0)
            long(9223372036854775807) => 1.5707963267948966
            "$nan" => double(NaN)
            double(Infinity) => 1.5707963267948966
            decimal(0) => decimal(0)
            decimal(NaN) => decimal(NaN)
        "#,
    ),
    Table(
        "$atan2",
        r#"
            [1, -1] => 2.356194490192345
            ["$n", 1] => null
            ["x", 1] => !51044
            [1, "x"] => !51045
            ["$absent", 1] => null
            [1, "$n"] => null
            ["$n", "x"] => null
            ["x", "$n"] => !51044
            ["$a", 1] => !51044
            [1, "$a"] => !51045
            [0, -1] => 3.141592653589793
            [double(-0.0), -1] => -3.141592653589793
            ["$nan", 1] => double(NaN)
            [1, double(Infinity)] => double(0)
            [long(9223372036854775807), 1] => 1.5707963267948966
            [decimal(0), 1] => decimal(0E-6176)
            [1] => !16020
        "#,
    ),
    Table(
        "$atanh",
        r#"
            1 => double(Infinity)
            -2 => !50989
            "$n" => null
            "$absent" => null
            "x" => !28765
            "$a" => !28765
            0.5 => 0.5493061443340548
            -1 => double(-Infinity)
            1.1 => !50989
            long(9223372036854775807) => !50989
            "$nan" => double(NaN)
            double(Infinity) => !50989
            decimal(0) => decimal(0)
            decimal(NaN) => decimal(NaN)
        "#,
    ),
    Table(
        "$cos",
        r#"
            0 => double(1)
            decimal(0) => decimal(1)
            "$n" => null
            "$absent" => null
            "x" => !28765
            "$a" => !28765
            1 => 0.5403023058681398
            long(9223372036854775807) => 0.011800076512800236
            "$nan" => double(NaN)
            double(Infinity) => !50989
            decimal(Infinity) => !50989
            decimal(NaN) => decimal(NaN)
        "#,
    ),
    Table(
        "$cosh",
        r#"
            0 => double(1)
            "$n" => null
            "$absent" => null
            "x" => !28765
            "$a" => !28765
            1 => 1.5430806348152437
            long(9223372036854775807) => double(Infinity)
            "$nan" => double(NaN)
            double(-Infinity) => double(Infinity)
            decimal(0) => decimal(1)
            decimal(-Infinity) => decimal(Infinity)
        "#,
    ),
    Table(
        "$sin",
        r#"
            0 => double(0)
            "$nan" => double(NaN)
            "$n" => null
            double(Infinity) => !50989
            "x" => !28765
            [1, 2] => !16020
            "$absent" => null
            "$a" => !28765
            1 => 0.8414709848078965
            long(9223372036854775807) => 0.9999303766734422
            double(-Infinity) => !50989
            decimal(0) => decimal(0)
            decimal(-Infinity) => !50989
            decimal(NaN) => decimal(NaN)
        "#,
    ),
    Table(
        "$sinh",
        r#"
            0 => double(0)
            "$n" => null
            "$absent" => null
            "x" => !28765
            "$a" => !28765
            1 => 1.1752011936438014
            long(-9223372036854775808) => double(-Infinity)
            "$nan" => double(NaN)
            double(Infinity) => double(Infinity)
            decimal(0) => decimal(0)
            decimal(NaN) => decimal(NaN)
        "#,
    ),
    Table(
        "$tan",
        r#"
            0 => double(0)
            "$n" => null
            "$absent" => null
            "x" => !28765
            "$a" => !28765
            1 => 1.5574077246549023
            2147483647 => 1.0523779637351338
            "$nan" => double(NaN)
            double(Infinity) => !50989
            decimal(0) => decimal(0)
            decimal(NaN) => decimal(NaN)
        "#,
    ),
    Table(
        "$tanh",
        r#"
            double(Infinity) => double(1)
            "$n" => null
            "$absent" => null
            "x" => !28765
            "$a" => !28765
            1 => 0.7615941559557649
            long(9223372036854775807) => double(1)
            "$nan" => double(NaN)
            double(-Infinity) => double(-1)
            decimal(0) => decimal(0)
            decimal(Infinity) => decimal(1)
        "#,
    ),
];
