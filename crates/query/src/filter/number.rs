//! `$mod` and the `$bits...` operators: arithmetic on whole numbers.

use frond_doc::Value;

use super::operand::{Operand, bad_value};
use crate::code::Code;
use crate::error::QueryError;
use crate::number::{truncate, whole};
use crate::text;

/// `$mod`: what a division leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remainder {
    divisor: i64,
    remainder: i64,
}

impl Remainder {
    /// Whether the value is a number that leaves the remainder; fractions are cut off first.
    pub(crate) fn matches(&self, value: Value<'_>) -> bool {
        truncate(value).is_some_and(|number| number.wrapping_rem(self.divisor) == self.remainder)
    }
}

/// `$mod: [divisor, remainder]`
pub(super) fn remainder(operand: Operand<'_>) -> Result<Remainder, QueryError> {
    let Some(array) = operand.value.as_array() else {
        return Err(bad_value("malformed mod, needs to be an array"));
    };
    let numbers: Vec<Value<'_>> = array.iter().collect();
    let (divisor, remainder) = match numbers.as_slice() {
        [divisor, remainder] => (*divisor, *remainder),
        [] | [_] => return Err(bad_value("malformed mod, not enough elements")),
        _ => return Err(bad_value("malformed mod, too many elements")),
    };
    let cut = |value: Value<'_>, what: &str| {
        if !value.is_number() {
            return Err(bad_value(format!("malformed mod, {what} not a number")));
        }
        truncate(value).ok_or_else(|| {
            bad_value(format!(
                "malformed mod, {what} value is invalid :: caused by :: out of range"
            ))
        })
    };
    let divisor = cut(divisor, "divisor")?;
    let remainder = cut(remainder, "remainder")?;
    if divisor == 0 {
        return Err(bad_value("divisor cannot be 0"));
    }
    Ok(Remainder { divisor, remainder })
}

/// A test of bits.
#[derive(Clone, Debug)]
pub(crate) struct BitTest {
    /// Bit positions, ascending.
    positions: Vec<u32>,
    /// Whether set bits are wanted, or clear ones.
    set: bool,
    /// Whether all of them, or any.
    all: bool,
}

impl BitTest {
    /// Whether the value is a whole number or binary whose bits are as wanted.
    pub(crate) fn matches(&self, value: Value<'_>) -> bool {
        let is_wanted: &dyn Fn(u32) -> bool = match value {
            Value::Binary(binary) => &|position: u32| {
                let byte = binary.bytes.get((position / 8) as usize).copied().unwrap_or(0);
                ((byte >> (position % 8)) & 1 == 1) == self.set
            },
            _ => match whole(value) {
                // Numbers are extended by their sign.
                Some(number) => {
                    return self
                        .decide(&|position| ((number >> position.min(63)) & 1 == 1) == self.set);
                }
                None => return false,
            },
        };
        self.decide(is_wanted)
    }

    fn decide(&self, is_wanted: &dyn Fn(u32) -> bool) -> bool {
        let mut positions = self.positions.iter().copied();
        if self.all { positions.all(is_wanted) } else { positions.any(is_wanted) }
    }
}

/// `$bitsAllSet`, `$bitsAllClear`, `$bitsAnySet`, `$bitsAnyClear`
pub(super) fn bits(operand: Operand<'_>) -> Result<BitTest, QueryError> {
    let name = operand.name;
    let positions = match operand.value {
        Value::Array(array) => {
            let mut positions = Vec::new();
            for value in array.iter() {
                let position = whole(value).and_then(|number| i32::try_from(number).ok());
                let position = position.and_then(|number| u32::try_from(number).ok());
                positions.push(position.ok_or_else(|| {
                    bad_value(format!(
                        "bit positions must be an integer >= 0 but got: {}",
                        text::value(value)
                    ))
                })?);
            }
            positions.sort_unstable();
            positions.dedup();
            positions
        }
        Value::Binary(binary) => (0..binary.bytes.len() as u32 * 8)
            .filter(|position| (binary.bytes[(position / 8) as usize] >> (position % 8)) & 1 == 1)
            .collect(),
        value if value.is_number() => match whole(value) {
            Some(mask) if mask >= 0 => (0..63).filter(|bit| (mask >> bit) & 1 == 1).collect(),
            _ => {
                let shown = text::field(name, value);
                return Err(QueryError::new(
                    Code::FailedToParse,
                    format!("Expected a non-negative integer in: {shown}"),
                ));
            }
        },
        _ => {
            return Err(bad_value(format!(
                "{name} takes an Array, a number, or a BinData but received: {}",
                text::field(name, operand.value)
            )));
        }
    };
    Ok(BitTest { positions, set: name.ends_with("Set"), all: name.contains("All") })
}
