//! `$toHashedIndexKey`: the number under which MongoDB's hashed indexes file a value.
//!
//! The MD5 of a seed (0), and of each value its kind and its bytes, numbers cut to 64-bit integers
//! so that equal ones hash alike; documents and arrays are walked with their names. The first eight
//! bytes of the digest are the key (algorithm: RFC 1321; the layout is what MongoDB's indexes
//! hold).

use frond_doc::{Document, DocumentBuilder, Value, decimal};

use super::evaluated::Evaluated;
use super::node::{Answer, Node};
use super::parse::Parser;
use crate::error::QueryError;
use crate::number::any_type::Number;

/// `$toHashedIndexKey`; a missing value counts as null. The argument is one expression as it
/// stands: `[1]` is an array.
pub(super) fn to_hashed_index_key(
    _: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    Ok(Node::One(of_value, Box::new(parser.expression(argument)?)))
}

fn of_value(argument: Evaluated<'_>) -> Answer<'_> {
    Ok(hashed_key(argument.or_null()).into())
}

/// The number under which a hashed index files `value`.
pub(crate) fn hashed_key(value: Value<'_>) -> i64 {
    let mut bytes = 0_i32.to_le_bytes().to_vec();
    append(&mut bytes, None, value);
    let [a, b, c, d, e, f, g, h, ..] = md5(&bytes);
    i64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// The kind of a value, the same for all that compare with each other.
fn kind(value: Value<'_>) -> i32 {
    match value {
        Value::MinKey => -1,
        Value::Undefined => 0,
        Value::Null => 5,
        Value::Double(_) | Value::Int32(_) | Value::Int64(_) | Value::Decimal128(_) => 10,
        Value::String(_) | Value::Symbol(_) => 15,
        Value::Document(_) => 20,
        Value::Array(_) => 25,
        Value::Binary(_) => 30,
        Value::ObjectId(_) => 35,
        Value::Boolean(_) => 40,
        Value::DateTime(_) => 45,
        Value::Timestamp(_) => 47,
        Value::Regex(_) => 50,
        Value::DbPointer { .. } => 55,
        Value::JavaScript(_) => 60,
        Value::JavaScriptWithScope { .. } => 65,
        Value::MaxKey => 127,
    }
}

/// Appends what is hashed of a value. Recursion follows the nesting, which is bounded.
fn append(bytes: &mut Vec<u8>, name: Option<&str>, value: Value<'_>) {
    bytes.extend_from_slice(&kind(value).to_le_bytes());
    if let Some(name) = name {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
    }
    match value {
        Value::Document(document) => append_fields(bytes, document),
        Value::Array(array) => append_fields(bytes, array.as_document()),
        Value::JavaScriptWithScope { code, scope } => {
            bytes.extend_from_slice(code.as_bytes());
            bytes.push(0);
            append_fields(bytes, scope);
        }
        _ => match Number::of(value) {
            Some(number) => bytes.extend_from_slice(&whole(number).to_le_bytes()),
            None => {
                // A document of this one field: length, type, an empty name, the value, an end.
                let mut builder = DocumentBuilder::new();
                builder.append("", value);
                let document = builder.build();
                let whole = document.as_bytes();
                bytes.extend_from_slice(whole.get(6..whole.len() - 1).unwrap_or_default());
            }
        },
    }
}

fn append_fields(bytes: &mut Vec<u8>, document: Document<'_>) {
    for (name, value) in document.iter() {
        append(bytes, Some(name), value);
    }
    bytes.extend_from_slice(&0_i32.to_le_bytes()); // The end counts as a value of kind 0.
}

/// A number cut to 64 bits; NaN is 0. A decimal isn't taken for a double on the way, which may be
/// another number.
fn whole(number: Number) -> i64 {
    match number {
        Number::Int(number) => i64::from(number),
        Number::Long(number) => number,
        Number::Double(number) => number as i64,
        Number::Decimal(number) => {
            decimal::to_i64(number).unwrap_or_else(|| decimal::to_f64(number) as i64)
        }
    }
}

/// The shifts of each round's four kinds of steps.
const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// MD5, for a layout that is given and no secret.
fn md5(message: &[u8]) -> [u8; 16] {
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&(message.len() as u64 * 8).to_le_bytes());
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in padded.chunks_exact(64) {
        let mut words = [0_u32; 16];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        }
        let [mut a, mut b, mut c, mut d] = state;
        for step in 0..64 {
            let (mixed, position) = match step / 16 {
                0 => ((b & c) | (!b & d), step),
                1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
                2 => (b ^ c ^ d, (3 * step + 5) % 16),
                _ => (c ^ (b | !d), (7 * step) % 16),
            };
            // The constants are the fractions of sines.
            let sine = (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
            let sum = a.wrapping_add(mixed).wrapping_add(sine).wrapping_add(words[position]);
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(SHIFTS[step / 16][step % 4]));
        }
        for (part, more) in state.iter_mut().zip([a, b, c, d]) {
            *part = part.wrapping_add(more);
        }
    }
    let mut digest = [0; 16];
    for (bytes, part) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&part.to_le_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        let hex = |text: &str| {
            md5(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        assert_eq!(hex(""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(hex("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
        let eighty = "1234567890".repeat(8);
        assert_eq!(hex(&eighty), "57edf4a22be3c955ac49da2e2107b67a");
    }
}
