//! `$exists`, `$type` and `$size`: what a value is, not what it says.

use frond_doc::{ElementType, Value};

use super::operand::{Operand, bad_value};
use crate::code::Code;
use crate::error::QueryError;
use crate::number::whole;
use crate::text;

/// A set of types.
#[derive(Clone, Debug)]
pub(crate) struct TypeSet(Vec<ElementType>);

const NUMBERS: [ElementType; 4] =
    [ElementType::Double, ElementType::Int32, ElementType::Int64, ElementType::Decimal128];

/// Every type byte that a value can have.
const TYPE_BYTES: [u8; 21] = [
    0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10,
    0x11, 0x12, 0x13, 0x7f, 0xff,
];

impl TypeSet {
    /// Parses an alias, a number, or an array of them.
    pub(super) fn parse(value: Value<'_>) -> Result<TypeSet, QueryError> {
        let mut types = Vec::new();
        match value {
            Value::Array(array) => {
                for value in array.iter() {
                    TypeSet::add(&mut types, value)?;
                }
            }
            _ => TypeSet::add(&mut types, value)?,
        }
        if types.is_empty() {
            return Err(QueryError::new(Code::FailedToParse, "$type must match at least one type"));
        }
        Ok(TypeSet(types))
    }

    fn add(types: &mut Vec<ElementType>, value: Value<'_>) -> Result<(), QueryError> {
        match value {
            Value::String("number") => types.extend(NUMBERS),
            Value::String(alias) => {
                let known = TYPE_BYTES.iter().filter_map(|byte| ElementType::from_byte(*byte));
                match known.into_iter().find(|known| known.alias() == alias) {
                    Some(known) => types.push(known),
                    None => return Err(bad_value(format!("Unknown type name alias: {alias}"))),
                }
            }
            _ if value.is_number() => types.push(type_of_number(value)?),
            _ => {
                return Err(QueryError::new(
                    Code::TypeMismatch,
                    "type must be represented as a number or a string",
                ));
            }
        }
        Ok(())
    }

    /// The types.
    pub(crate) fn types(&self) -> &[ElementType] {
        &self.0
    }

    /// Whether the value's type is one of them.
    pub(crate) fn matches(&self, value: Value<'_>) -> bool {
        let kind = match value {
            Value::Reference(reference) => reference.kind(),
            other => other.element_type(),
        };
        self.0.contains(&kind)
    }
}

fn type_of_number(value: Value<'_>) -> Result<ElementType, QueryError> {
    let byte = match whole(value) {
        Some(-1) => Some(0xff),
        Some(number) => u8::try_from(number).ok().filter(|byte| *byte != 0xff),
        None => None,
    };
    byte.and_then(ElementType::from_byte)
        .ok_or_else(|| bad_value(format!("Invalid numerical type code: {}", text::value(value))))
}

/// `$size`
pub(super) fn size(operand: Operand<'_>) -> Result<i64, QueryError> {
    let value = operand.value;
    let shown = text::field("$size", value);
    if !value.is_number() {
        return Err(bad_value(format!("Failed to parse $size. Expected a number in: {shown}")));
    }
    match whole(value) {
        None => Err(bad_value(format!("Failed to parse $size. Expected an integer: {shown}"))),
        Some(size) if size < 0 => Err(bad_value(format!(
            "Failed to parse $size. Expected a non-negative number in: {shown}"
        ))),
        Some(size) if size > i64::from(i32::MAX) => {
            Err(bad_value(format!("Failed to parse $size. Cannot represent {shown} in an int")))
        }
        Some(size) => Ok(size),
    }
}
