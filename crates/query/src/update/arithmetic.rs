//! `$inc`, `$mul`, `$min`, `$max`, `$bit`.

use frond_doc::Value;

use super::modifier::Modifier;
use super::scope::{Scope, Slot};
use crate::code::Code;
use crate::error::QueryError;
use crate::{number, text};

/// `$inc`
pub(super) fn increment(path: &str, operand: Value<'_>) -> Result<Modifier, QueryError> {
    check_number("increment", path, operand)?;
    Ok(Modifier::Increment(operand.to_buf()))
}

/// `$mul`
pub(super) fn multiply(path: &str, operand: Value<'_>) -> Result<Modifier, QueryError> {
    check_number("multiply", path, operand)?;
    Ok(Modifier::Multiply(operand.to_buf()))
}

/// `$min`
pub(super) fn minimum(_path: &str, operand: Value<'_>) -> Result<Modifier, QueryError> {
    Ok(Modifier::Minimum(operand.to_buf()))
}

/// `$max`
pub(super) fn maximum(_path: &str, operand: Value<'_>) -> Result<Modifier, QueryError> {
    Ok(Modifier::Maximum(operand.to_buf()))
}

fn check_number(verb: &str, path: &str, operand: Value<'_>) -> Result<(), QueryError> {
    if operand.is_number() {
        return Ok(());
    }
    let shown = text::field(path, operand);
    let message = format!("Cannot {verb} with non-numeric argument: {{{shown}}}");
    Err(QueryError::new(Code::TypeMismatch, message))
}

/// Adds; an absent value counts as nothing.
pub(super) fn apply_increment(
    slot: Slot<'_, '_>,
    by: Value<'_>,
    scope: &Scope<'_>,
) -> Result<(), QueryError> {
    let Some(current) = slot.current else {
        slot.put(by);
        return Ok(());
    };
    check_current("$inc", &slot, current, scope)?;
    match number::add(current, by) {
        Some(sum) => slot.put(sum),
        None => return Err(overflow("$inc", current, scope)),
    }
    Ok(())
}

/// Multiplies; an absent value counts as zero of the operand's type.
pub(super) fn apply_multiply(
    slot: Slot<'_, '_>,
    by: Value<'_>,
    scope: &Scope<'_>,
) -> Result<(), QueryError> {
    let current = slot.current.unwrap_or(Value::Int32(0));
    check_current("$mul", &slot, current, scope)?;
    match number::multiply(current, by) {
        Some(product) => slot.put(product),
        None => return Err(overflow("$mul", current, scope)),
    }
    Ok(())
}

fn check_current(
    operator: &str,
    slot: &Slot<'_, '_>,
    current: Value<'_>,
    scope: &Scope<'_>,
) -> Result<(), QueryError> {
    if current.is_number() {
        return Ok(());
    }
    Err(QueryError::new(
        Code::TypeMismatch,
        format!(
            "Cannot apply {operator} to a value of non-numeric type. {id} has the field '{name}' \
             of non-numeric type {kind}",
            id = text::id(scope.document),
            name = slot.name,
            kind = current.element_type().alias(),
        ),
    ))
}

fn overflow(operator: &str, current: Value<'_>, scope: &Scope<'_>) -> QueryError {
    let kind = if matches!(current, Value::Int32(_)) { "NumberInt" } else { "NumberLong" };
    QueryError::new(
        Code::BadValue,
        format!(
            "Failed to apply {operator} operations to current value (({kind}){}) for document {}",
            text::value(current),
            text::id(scope.document)
        ),
    )
}

/// An operation of a `$bit`.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitOperation {
    kind: BitKind,
    /// Sign-extended where it is 32 bits wide.
    mask: i64,
    /// Whether the mask has 64 bits.
    is_long: bool,
}

#[derive(Clone, Copy, Debug)]
enum BitKind {
    And,
    Or,
    Xor,
}

/// `$bit: {path: {and | or | xor: number}}`
pub(super) fn bit(path: &str, operand: Value<'_>) -> Result<Modifier, QueryError> {
    let refuse = |message: String| Err(QueryError::new(Code::BadValue, message));
    let Some(document) = operand.as_document() else {
        return refuse(format!(
            "The $bit modifier is not compatible with a {}. You must pass in an embedded \
             document: {{$bit: {{field: {{and/or/xor: #}}}}",
            operand.element_type().alias()
        ));
    };
    let mut operations = Vec::new();
    for (name, value) in document.iter() {
        let kind = match name {
            "and" => BitKind::And,
            "or" => BitKind::Or,
            "xor" => BitKind::Xor,
            _ => {
                return refuse(format!(
                    "The $bit modifier only supports 'and', 'or', and 'xor', not '{name}' which \
                     is an unknown operator: {{{}}}",
                    text::field(name, value)
                ));
            }
        };
        let (mask, is_long) = match value {
            Value::Int32(mask) => (i64::from(mask), false),
            Value::Int64(mask) => (mask, true),
            _ => {
                return refuse(format!(
                    "The $bit modifier field must be an Integer(32/64 bit); a '{}' is not \
                     supported here: {{{}}}",
                    value.element_type().alias(),
                    text::field(name, value)
                ));
            }
        };
        operations.push(BitOperation { kind, mask, is_long });
    }
    if operations.is_empty() {
        return refuse(format!(
            "You must pass in at least one bitwise operation. The format is: {{$bit: {{field: \
             {{and/or/xor: #}}}} (path '{path}')"
        ));
    }
    Ok(Modifier::Bit(operations))
}

/// Applies the operations in their order; an absent value counts as zero.
pub(super) fn apply_bits(
    slot: Slot<'_, '_>,
    operations: &[BitOperation],
    scope: &Scope<'_>,
) -> Result<(), QueryError> {
    let (mut number, mut is_long) = match slot.current {
        None => (0, false),
        Some(Value::Int32(number)) => (i64::from(number), false),
        Some(Value::Int64(number)) => (number, true),
        Some(other) => {
            return Err(QueryError::new(
                Code::BadValue,
                format!(
                    "Cannot apply $bit to a value of non-integral type.{} has the field {} of \
                     non-integer type {}",
                    text::id(scope.document),
                    slot.name,
                    other.element_type().alias()
                ),
            ));
        }
    };
    for operation in operations {
        number = match operation.kind {
            BitKind::And => number & operation.mask,
            BitKind::Or => number | operation.mask,
            BitKind::Xor => number ^ operation.mask,
        };
        is_long |= operation.is_long;
    }
    // Both sides were sign-extended, so that 32 bits hold the result of 32-bit operands.
    slot.put(if is_long { Value::Int64(number) } else { Value::Int32(number as i32) });
    Ok(())
}
