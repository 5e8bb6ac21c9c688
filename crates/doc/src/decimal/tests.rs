//! Decimals as text and their arithmetic, case by case.

use super::*;

fn decimal(text: &str) -> Decimal128 {
    parse(text).unwrap_or_else(|| panic!("{text} is a decimal"))
}

#[test]
fn text() {
    let check = |text: &str, expected: &str| {
        let number = decimal(text);
        assert_eq!(to_string(number), expected, "{text}");
        assert_eq!(parse(expected), Some(number), "{expected}");
    };
    check("0", "0");
    check("-0", "-0");
    check("0.00", "0.00");
    check("0E+5", "0E+5");
    check("+1", "1");
    check("1.50", "1.50");
    check(".5", "0.5");
    check("5.", "5");
    check("0.001234", "0.001234");
    check("0.000001234", "0.000001234");
    check("0.0000001234", "1.234E-7");
    check("12E2", "1.2E+3");
    check("1e400", "1E+400");
    check("nan", "NaN");
    check("-inf", "-Infinity");
    check("Infinity", "Infinity");
    check("1E-6176", "1E-6176");
    check("9.999999999999999999999999999999999E+6144", "9.999999999999999999999999999999999E+6144");
    check("1E+6144", "1.000000000000000000000000000000000E+6144");
    check("0E+9999", "0E+6111");
    check("0E-9999", "0E-6176");
    // Rounded half to even.
    check("12345678901234567890123456789012345", "1.234567890123456789012345678901234E+34");
    check("12345678901234567890123456789012355", "1.234567890123456789012345678901236E+34");
    check("99999999999999999999999999999999999", "1.000000000000000000000000000000000E+35");
    check("15E-6177", "2E-6176");
    check("1E-9999999999999999999", "0E-6176");
    for text in ["", "-", ".", "e5", "1e", "1e+", "1x", "0x1", "1.2.3", "--1", "1E+6145", " 1"] {
        assert_eq!(parse(text), None, "{text:?}");
    }
}

#[test]
fn arithmetic() {
    let check = |left: &str, operator: char, right: &str, expected: &str| {
        let (a, b) = (decimal(left), decimal(right));
        let result = match operator {
            '+' => add(a, b),
            '-' => subtract(a, b),
            '*' => multiply(a, b),
            '/' => divide(a, b),
            _ => remainder(a, b),
        };
        assert_eq!(to_string(result), expected, "{left} {operator} {right}");
    };
    check("1.20", '+', "1", "2.20");
    check("0.1", '+', "0.2", "0.3");
    check("1", '+', "-1", "0");
    check("-0", '+', "-0", "-0");
    check("1E+6000", '+', "1E-6000", "1.000000000000000000000000000000000E+6000");
    check("Infinity", '+', "-Infinity", "NaN");
    check("Infinity", '+', "1", "Infinity");
    check("1", '-', "Infinity", "-Infinity");
    check("1", '-', "0.9", "0.1");
    check("1.20", '*', "2", "2.40");
    check("-3", '*', "0", "-0");
    check("1E+6000", '*', "1E+6000", "Infinity");
    check("0", '*', "Infinity", "NaN");
    check("-1", '*', "Infinity", "-Infinity");
    check(
        "9999999999999999999999999999999999",
        '*',
        "9999999999999999999999999999999999",
        "9.999999999999999999999999999999998E+67",
    );
    check("6", '/', "2", "3");
    check("1", '/', "8", "0.125");
    check("1", '/', "3", "0.3333333333333333333333333333333333");
    check("2", '/', "3", "0.6666666666666666666666666666666667");
    check("1E+10", '/', "1E-10", "1E+20");
    check("1", '/', "0", "Infinity");
    check("-1", '/', "0", "-Infinity");
    check("0", '/', "0", "NaN");
    check("1", '/', "-Infinity", "-0E-6176");
    check("7", '%', "3", "1");
    check("-7.5", '%', "2", "-1.5");
    check("5", '%', "Infinity", "5");
    check("5", '%', "0", "NaN");
}

#[test]
fn conversions() {
    assert_eq!(to_string(from_f64(5.5)), "5.50000000000000");
    assert_eq!(to_string(from_f64(0.1)), "0.100000000000000");
    assert_eq!(to_string(from_f64(-0.0)), "-0");
    assert_eq!(to_string(from_f64(f64::NEG_INFINITY)), "-Infinity");
    assert_eq!(to_string(from_f64_nearest(0.1)), "0.1000000000000000055511151231257827");
    assert_eq!(to_f64(decimal("0.1")), 0.1);
    assert_eq!(to_f64(decimal("1E+400")), f64::INFINITY);
    assert_eq!(to_f64(decimal("-1E-400")).to_bits(), (-0.0_f64).to_bits());
    assert!(to_f64(NAN).is_nan());
    for (text, expected) in [
        ("-9223372036854775808", Some(i64::MIN)),
        ("9223372036854775808", None),
        ("2.9E+1", Some(29)),
        ("-2.99", Some(-2)),
        ("0E+6000", Some(0)),
        ("1E-6000", Some(0)),
        ("1E+100", None),
        ("NaN", None),
    ] {
        assert_eq!(to_i64(decimal(text)), expected, "{text}");
    }
}

#[test]
fn rounding() {
    let check = |text: &str, places: i32, rounding: Rounding, expected: &str| {
        let result = round_to_places(decimal(text), places, rounding);
        assert_eq!(to_string(result), expected, "{text} to {places}, {rounding:?}");
    };
    check("2.5", 0, Rounding::HalfEven, "2");
    check("3.5", 0, Rounding::HalfEven, "4");
    check("2.51", 0, Rounding::HalfEven, "3");
    check("-2.7", 0, Rounding::Down, "-2");
    check("-2.1", 0, Rounding::Floor, "-3");
    check("2.1", 0, Rounding::Ceiling, "3");
    check("2.19", 1, Rounding::Down, "2.1");
    check("1234", -2, Rounding::HalfEven, "1.2E+3");
    check("5", 3, Rounding::HalfEven, "5");
    check("1E-6000", 0, Rounding::Ceiling, "1");
    check("Infinity", 0, Rounding::Floor, "Infinity");
}
