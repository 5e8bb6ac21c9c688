//! Keys: bytes that sort as MongoDB orders values.

use bytes::Bytes;
pub use frond_tree::Bounds;

use crate::error::DocError;
use crate::value::{Value, ValueBuf};

/// Appends `value` to `key` so that keys compare as bytes just as values compare under
/// [`crate::order`]; values that are equal give equal bytes (1, 1.0 and Decimal128 1 alike).
/// Self-delimiting: several values one after the other make a compound key. With `descending`
/// every byte is inverted, so that the order is reversed.
pub fn append(_key: &mut Vec<u8>, _value: Value<'_>, _descending: bool) {
    todo!()
}

/// What of a value its key doesn't tell (number types, symbols, ...), so that `decode` can give the
/// value back exactly. Empty for most values.
pub fn append_type_bits(_bits: &mut Vec<u8>, _value: Value<'_>) {
    todo!()
}

/// Reads one value back from the front of `key` and its type bits, and cuts both.
pub fn decode(
    _key: &mut &[u8],
    _type_bits: &mut &[u8],
    _descending: bool,
) -> Result<ValueBuf, DocError> {
    todo!()
}

/// Cuts the bytes of one value from the front of `key` without decoding it.
pub fn skip<'a>(_key: &mut &'a [u8], _descending: bool) -> Result<&'a [u8], DocError> {
    todo!()
}

/// The key of one value: of an `_id` in its collection's tree.
pub fn of_value(value: Value<'_>) -> Bytes {
    let mut key = Vec::with_capacity(16);
    append(&mut key, value, false);
    key.into()
}

/// The first key of the type bracket in which `value` lies, and the first key after it: what range
/// comparisons of MongoDB don't leave. Numbers share a bracket, so do strings and symbols.
pub fn bracket(_value: Value<'_>) -> (Bytes, Bytes) {
    todo!()
}
