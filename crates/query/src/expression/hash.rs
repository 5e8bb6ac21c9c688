//! `$toHashedIndexKey`: the number under which MongoDB's hashed indexes file a value.
//!
//! The MD5 of a seed (0), and of each value its kind and its bytes, numbers cut to 64-bit integers
//! so that equal ones hash alike; documents and arrays are walked with their names. The first eight
//! bytes of the digest are the key (algorithm: RFC 1321; the layout is what MongoDB's indexes
//! hold).

use frond_doc::{Document, DocumentBuilder, Value, decimal};
use md5::{Digest, Md5};

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
    let digest: [u8; 16] = Md5::digest(&bytes).into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
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
        Value::Reference(_) => unreachable!("what is hashed was read"),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The hashes that MongoDB's `convertShardKeyToHashed` returns.
    #[test]
    fn keys_are_those_of_hashed_indexes() {
        for (value, key) in [
            (Value::Int32(1), 5_902_408_780_260_971_510),
            (Value::Double(1.5), 5_902_408_780_260_971_510),
            (Value::Null, 2_338_878_944_348_059_895),
        ] {
            assert_eq!(hashed_key(value), key, "{value:?}");
        }
    }
}
