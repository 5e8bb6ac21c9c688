//! Random values of all types, biased to where things go wrong: numbers that are nearly equal, text
//! that begins alike, zeros in names and strings.

use frond_doc::{
    Array, Binary, Decimal128, Document, DocumentBuf, DocumentBuilder, ObjectId, Regex, Timestamp,
    Value, ValueBuf, decimal,
};
use frond_testkit::Random;

const DOUBLES: [f64; 16] = [
    0.0,
    1.0,
    0.1,
    0.5,
    2.5,
    5e-324,
    2.2250738585072014e-308,
    2.225073858507201e-308,
    f64::MAX,
    f64::INFINITY,
    f64::NAN,
    9_007_199_254_740_992.0,
    9_223_372_036_854_775_808.0,
    18_446_744_073_709_551_616.0,
    2_147_483_648.0,
    1e22,
];

const DECIMALS: [(u128, i32); 14] = [
    (0, 0),
    (0, 6111),
    (1, -1),
    (10, -2),
    (1, -6176),
    (decimal::COEFFICIENT_MAX, 6111),
    (decimal::COEFFICIENT_MAX, -34),
    (9_007_199_254_740_993, 0),
    (9_223_372_036_854_775_808, 0),
    (179_769_313_486_231_580_793, 288),
    (1_797_693_134_862_315_708_145_274_237_317_043, 275),
    (4_940_656_458_412_465_441_765_687_928_682_213, -357),
    (49, -325),
    (25, -1),
];

/// A number near an interesting one.
pub fn number(random: &mut Random) -> Value<'static> {
    let near = random.below(5) as i64 - 2;
    match random.below(4) {
        0 => Value::Int32(*random.choose(&[0, 1, i32::MAX, i32::MIN, 255]) ^ near as i32),
        1 => {
            let power = 1_i64.checked_shl(random.below(64) as u32).unwrap_or(0);
            Value::Int64(if random.one_in(2) { power.wrapping_neg() } else { power } ^ near)
        }
        2 => Value::Double(double(random, near)),
        _ => Value::Decimal128(decimal128(random, near)),
    }
}

fn double(random: &mut Random, near: i64) -> f64 {
    let magnitude = match random.below(4) {
        0 => f64::from_bits(random.next()),
        1 => random.below(1000) as f64 / 8.0,
        2 => (random.below(100_000) as f64) / 1000.0,
        _ => {
            let exact = *random.choose(&DOUBLES);
            if random.one_in(2) {
                exact
            } else {
                f64::from_bits(exact.to_bits().wrapping_add_signed(near))
            }
        }
    };
    if random.one_in(2) { -magnitude } else { magnitude }
}

fn decimal128(random: &mut Random, near: i64) -> Decimal128 {
    let negative = random.one_in(2);
    match random.below(6) {
        0 => Decimal128(random.bytes(16).try_into().expect("sixteen bytes")),
        1 => {
            // The nearest decimals of a double: 34 of its digits.
            let text = format!("{:.33e}", double(random, near));
            decimal::parse(&text).unwrap_or(decimal::from_i64(near))
        }
        2 => decimal::from_parts(negative, random.below(100_000).try_into().expect("small"), -3),
        3 => {
            let (coefficient, exponent) = *random.choose(&DECIMALS);
            let coefficient = coefficient.saturating_add_signed(near.into());
            decimal::from_parts(negative, coefficient.min(decimal::COEFFICIENT_MAX), exponent)
        }
        4 => {
            // An integer's other forms: 5.00, 50E-1.
            let zeros = random.below(15) as u32;
            let coefficient = u128::from(random.next() >> random.below(64)) * 10_u128.pow(zeros);
            let exponent = -(zeros as i32) + random.below(3) as i32;
            decimal::from_parts(negative, coefficient, exponent)
        }
        _ => {
            let exponent = random.below(12_288) as i32 - 6176;
            let coefficient = u128::from(random.next()) * u128::from(random.next() >> 20);
            decimal::from_parts(
                negative,
                coefficient % 10_u128.pow(1 + random.below(34) as u32),
                exponent,
            )
        }
    }
}

/// Short text over few letters, so that two are often equal or begin alike.
pub fn text(random: &mut Random) -> String {
    let letters = ["\0", "\u{1}", "\u{2}", "a", "b", "ß", "\u{7f}", "\u{10ffff}"];
    (0..random.below(4)).map(|_| *random.choose(&letters)).collect()
}

pub fn name(random: &mut Random) -> String {
    text(random).replace('\0', "c")
}

pub fn document(random: &mut Random, depth: usize) -> DocumentBuf {
    let mut builder = DocumentBuilder::new();
    for _ in 0..random.below(4) {
        builder.append(&name(random), value(random, depth).as_value());
    }
    builder.build()
}

fn array(random: &mut Random, depth: usize) -> DocumentBuf {
    if random.one_in(8) {
        return document(random, depth); // Names that aren't positions.
    }
    let mut builder = DocumentBuilder::new();
    for position in 0..random.below(4) {
        builder.append(&position.to_string(), value(random, depth).as_value());
    }
    builder.build()
}

/// A value of any type, nested at most `depth` deep.
pub fn value(random: &mut Random, depth: usize) -> ValueBuf {
    let text = text(random);
    let name = name(random);
    let nested = depth.saturating_sub(1);
    let value = match random.below(if depth == 0 { 24 } else { 30 }) {
        0..8 => number(random),
        8 | 9 => Value::String(&text),
        10 => Value::Symbol(&text),
        11 => Value::Null,
        12 => Value::Undefined,
        13 => Value::Boolean(random.one_in(2)),
        14 => Value::DateTime(random.next() as i64 >> random.below(64)),
        15 => Value::Timestamp(Timestamp(random.next() >> random.below(64))),
        16 => Value::ObjectId(ObjectId(std::array::from_fn(|_| random.below(2) as u8))),
        17 => {
            Value::Regex(Regex { pattern: &name, options: if random.one_in(2) { "i" } else { "" } })
        }
        18 => Value::DbPointer { namespace: &text, id: ObjectId([random.below(2) as u8; 12]) },
        19 => Value::JavaScript(&text),
        20 => {
            let scope = document(random, nested);
            return Value::JavaScriptWithScope { code: &text, scope: scope.view() }.to_buf();
        }
        21 => Value::MinKey,
        22 => Value::MaxKey,
        23 => {
            let count = random.below(3);
            let bytes = random.bytes(count);
            let subtype = *random.choose(&[0, 4, 5, 0x80]);
            return Value::Binary(Binary { subtype, bytes: &bytes }).to_buf();
        }
        24..27 => {
            let array = array(random, nested);
            return Value::Array(Array::from_validated(array.as_bytes())).to_buf();
        }
        _ => {
            let document = document(random, nested);
            return Value::Document(Document::from_validated(document.as_bytes())).to_buf();
        }
    };
    value.to_buf()
}
