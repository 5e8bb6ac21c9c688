//! From an element's bytes to its value.

use super::value::{Binary, Decimal128, ObjectId, Regex, Timestamp, Value};
use super::{Array, Document};
use crate::element_type::ElementType;
use crate::raw::{RawElement, array_at, length_at, split_name, text};
use crate::reference::Reference;

impl<'a> RawElement<'a> {
    /// Decodes the value; `None` if the bytes aren't what the type wants.
    #[inline]
    pub fn decode(&self) -> Option<Value<'a>> {
        decode_value(self.kind, self.value)
    }
}

/// Decodes a value whose bytes are exactly `bytes`.
#[inline]
pub(crate) fn decode_value(kind: ElementType, bytes: &[u8]) -> Option<Value<'_>> {
    Some(match kind {
        ElementType::Double => Value::Double(f64::from_le_bytes(array_at(bytes, 0)?)),
        ElementType::String => Value::String(string(bytes)?),
        ElementType::Document => Value::Document(Document::from_validated(bytes)),
        ElementType::Array => Value::Array(Array::from_validated(bytes)),
        ElementType::Binary => {
            Value::Binary(Binary { subtype: *bytes.get(4)?, bytes: bytes.get(5..)? })
        }
        ElementType::Undefined => Value::Undefined,
        ElementType::ObjectId => Value::ObjectId(ObjectId(array_at(bytes, 0)?)),
        ElementType::Boolean => Value::Boolean(*bytes.first()? != 0),
        ElementType::DateTime => Value::DateTime(i64::from_le_bytes(array_at(bytes, 0)?)),
        ElementType::Null => Value::Null,
        ElementType::Regex => {
            let (pattern, rest) = split_name(bytes)?;
            let (options, _) = split_name(rest)?;
            Value::Regex(Regex { pattern: text(pattern)?, options: text(options)? })
        }
        ElementType::DbPointer => {
            let split = bytes.len().checked_sub(12)?;
            let namespace = string(&bytes[..split])?;
            Value::DbPointer { namespace, id: ObjectId(array_at(bytes, split)?) }
        }
        ElementType::JavaScript => Value::JavaScript(string(bytes)?),
        ElementType::Symbol => Value::Symbol(string(bytes)?),
        ElementType::JavaScriptWithScope => {
            let scope_offset = length_at(bytes, 4)?.checked_add(8)?;
            Value::JavaScriptWithScope {
                code: string(bytes.get(4..scope_offset)?)?,
                scope: Document::from_validated(bytes.get(scope_offset..)?),
            }
        }
        ElementType::Int32 => Value::Int32(i32::from_le_bytes(array_at(bytes, 0)?)),
        ElementType::Timestamp => {
            Value::Timestamp(Timestamp(u64::from_le_bytes(array_at(bytes, 0)?)))
        }
        ElementType::Int64 => Value::Int64(i64::from_le_bytes(array_at(bytes, 0)?)),
        ElementType::Decimal128 => Value::Decimal128(Decimal128(array_at(bytes, 0)?)),
        ElementType::MinKey => Value::MinKey,
        ElementType::MaxKey => Value::MaxKey,
        ElementType::Reference => Value::Reference(Reference::decode(bytes)?),
    })
}

/// The text of a string's bytes: length, text, final zero.
#[inline]
fn string(bytes: &[u8]) -> Option<&str> {
    text(bytes.get(4..bytes.len().checked_sub(1)?)?)
}
