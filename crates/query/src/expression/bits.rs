//! `$bitAnd`, `$bitOr`, `$bitXor`, `$bitNot` of ints and longs. A long among the operands makes a
//! long.

use frond_doc::Value;

use super::arithmetic::one_number;
use super::evaluated::Evaluated;
use super::node::Answer;
use crate::code::Code;
use crate::error::QueryError;
use crate::number::any_type::Number;

fn combine(
    operator: &str,
    arguments: &[Evaluated<'_>],
    neutral: i64,
    function: fn(i64, i64) -> i64,
) -> Answer<'static> {
    let (mut bits, mut is_long, mut is_null) = (neutral, false, false);
    for argument in arguments {
        match argument.value() {
            None | Some(Value::Null | Value::Undefined) => is_null = true,
            Some(Value::Int32(number)) => bits = function(bits, i64::from(number)),
            Some(Value::Int64(number)) => {
                is_long = true;
                bits = function(bits, number);
            }
            Some(_) => {
                let message = format!("{operator} only supports int and long operands.");
                return Err(QueryError::new(Code::TypeMismatch, message));
            }
        }
        if is_null {
            return Ok(Evaluated::NULL);
        }
    }
    // The upper half of ints alone repeats the sign, so that nothing is lost.
    Ok(if is_long { bits.into() } else { (bits as i32).into() })
}

/// `$bitAnd`
pub(super) fn and(arguments: Vec<Evaluated<'_>>) -> Answer<'_> {
    combine("$bitAnd", &arguments, -1, |left, right| left & right)
}

/// `$bitOr`
pub(super) fn or(arguments: Vec<Evaluated<'_>>) -> Answer<'_> {
    combine("$bitOr", &arguments, 0, |left, right| left | right)
}

/// `$bitXor`
pub(super) fn xor(arguments: Vec<Evaluated<'_>>) -> Answer<'_> {
    combine("$bitXor", &arguments, 0, |left, right| left ^ right)
}

/// `$bitNot`
pub(super) fn not(argument: Evaluated<'_>) -> Answer<'_> {
    match one_number("$bitNot", &argument)? {
        None => Ok(Evaluated::NULL),
        Some(Number::Int(number)) => Ok((!number).into()),
        Some(Number::Long(number)) => Ok((!number).into()),
        Some(_) => {
            let name = argument.type_name();
            let message = format!("$bitNot only supports int and long, not: {name}.");
            Err(QueryError::new(Code::TypeMismatch, message))
        }
    }
}
