//! Parts of an index's key back into values.
//!
//! An entry keeps the type bits of its parts beside the key. Before those of `frond_doc::key` there
//! is one byte more for a part whose key is that of null: `00` if the field is absent, `01` if it
//! is null. Bits past the end are `00`, so zeros at the end needn't be stored.

use frond_doc::error::DocError;
use frond_doc::{Value, ValueBuf, key};

/// Stored: never renumber.
const ABSENT: u8 = 0;
const NULL: u8 = 1;

/// Appends the type bits of a part.
pub fn append_bits(bits: &mut Vec<u8>, value: Option<Value<'_>>) {
    match value {
        None => bits.push(ABSENT),
        Some(Value::Null) => bits.push(NULL),
        Some(value) => key::append_type_bits(bits, value),
    }
}

/// Reads one part back from the front of `rest` and of its type bits, and cuts both; `None` where
/// the field is absent.
///
/// # Errors
/// [`DocError::Key`] if these are not bytes that an index wrote.
pub fn part(
    rest: &mut &[u8],
    bits: &mut &[u8],
    descending: bool,
) -> Result<Option<ValueBuf>, DocError> {
    let mut ahead = *rest;
    let part = key::skip(&mut ahead, descending)?;
    let mut null = Vec::new();
    key::append(&mut null, Value::Null, descending);
    if part == null {
        let (code, later) = bits.split_first().unwrap_or((&ABSENT, &[]));
        *bits = later;
        *rest = ahead;
        return Ok((*code != ABSENT).then(|| Value::Null.to_buf()));
    }
    key::decode(rest, bits, descending).map(Some)
}
