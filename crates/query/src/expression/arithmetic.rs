//! `$add`, `$subtract`, `$multiply`, `$divide`, `$mod`, and the functions of one number.
//!
//! Null where an argument is null or missing, and an error for what is no number: whichever comes
//! first. Dates are added to and subtracted from in whole milliseconds.

use frond_doc::decimal::{Parts, functions};
use frond_doc::{Decimal128, Value, decimal};

use super::evaluated::Evaluated;
use super::failure;
use super::node::Answer;
use super::scope::Variables;
use crate::code::Code;
use crate::error::QueryError;
use crate::number::any_type::Number;

/// `$add`: from left to right, each step rounded. Once a date came, each number is whole
/// milliseconds.
pub(super) fn add(arguments: Vec<Evaluated<'_>>) -> Answer<'_> {
    let (mut sum, mut is_int, mut date) = (Number::Long(0), true, None);
    for argument in &arguments {
        match (argument.value(), date) {
            (None | Some(Value::Null | Value::Undefined), _) => return Ok(Evaluated::NULL),
            (Some(Value::DateTime(_)), Some(_)) => {
                return Err(failure(16612, "only one date allowed in an $add expression"));
            }
            (Some(Value::DateTime(millis)), None) => {
                date = Some(shifted(millis, sum, i64::checked_add)?);
            }
            (Some(value), _) => {
                let number = Number::of(value).ok_or_else(|| {
                    let name = argument.type_name();
                    mismatch(format!("$add only supports numeric or date types, not {name}"))
                })?;
                is_int &= matches!(number, Number::Int(_));
                match date {
                    Some(millis) => date = Some(shifted(millis, number, i64::checked_add)?),
                    None => {
                        let on_doubles = |left, right| left + right;
                        sum = sum.combine(number, i64::checked_add, on_doubles, decimal::add);
                    }
                }
            }
        }
    }
    Ok(match date {
        Some(millis) => Evaluated::Borrowed(Value::DateTime(millis)),
        None => narrowed(sum, is_int).into(),
    })
}

/// Returns a result of ints alone as an int again, where it fits.
fn narrowed(number: Number, is_int: bool) -> Number {
    match number {
        Number::Long(number) if is_int => {
            i32::try_from(number).map_or(Number::Long(number), Number::Int)
        }
        other => other,
    }
}

/// A date moved by so many milliseconds.
fn shifted(millis: i64, by: Number, shift: fn(i64, i64) -> Option<i64>) -> Result<i64, QueryError> {
    let by = match by {
        Number::Double(by) => {
            let by = by.round();
            (-TWO_TO_63..TWO_TO_63).contains(&by).then_some(by as i64)
        }
        Number::Decimal(by) => {
            decimal::to_i64(decimal::round_to_places(by, 0, decimal::Rounding::HalfEven))
        }
        integer => integer.integer(),
    };
    by.and_then(|by| shift(millis, by))
        .ok_or_else(|| QueryError::new(Code::Overflow, "date overflow"))
}

/// `$subtract`
pub(super) fn subtract<'a>(left: Evaluated<'a>, right: Evaluated<'a>) -> Answer<'a> {
    if left.is_nullish() || right.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let (left_value, right_value) = (left.or_null(), right.or_null());
    match (left_value, right_value, Number::of(left_value), Number::of(right_value)) {
        (_, _, Some(left), Some(right)) => {
            let difference = left.combine(
                right,
                i64::checked_sub,
                |left, right| left - right,
                decimal::subtract,
            );
            Ok(difference.into())
        }
        (Value::DateTime(left), Value::DateTime(right), ..) => match left.checked_sub(right) {
            Some(millis) => Ok(Evaluated::Borrowed(Value::Int64(millis))),
            None => Err(QueryError::new(Code::Overflow, "overflow in date subtraction")),
        },
        (Value::DateTime(millis), _, _, Some(by)) => {
            let millis = shifted(millis, by, i64::checked_sub)?;
            Ok(Evaluated::Borrowed(Value::DateTime(millis)))
        }
        _ => Err(mismatch(format!(
            "can't $subtract {} from {}",
            right.type_name(),
            left.type_name()
        ))),
    }
}

/// `$multiply`: a product that no long holds goes on as the product of doubles.
pub(super) fn multiply(arguments: Vec<Evaluated<'_>>) -> Answer<'_> {
    let (mut product, mut is_int, mut double) = (Number::Long(1), true, 1.0);
    for argument in &arguments {
        if argument.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let number = Number::of(argument.or_null()).ok_or_else(|| {
            mismatch(format!("$multiply only supports numeric types, not {}", argument.type_name()))
        })?;
        is_int &= matches!(number, Number::Int(_));
        double *= number.double();
        product = match (product, number.integer()) {
            _ if product.is_decimal() || number.is_decimal() => {
                Number::Decimal(decimal::multiply(product.decimal(), number.decimal()))
            }
            (Number::Long(left), Some(right)) => {
                left.checked_mul(right).map_or(Number::Double(double), Number::Long)
            }
            _ => Number::Double(double),
        };
    }
    Ok(narrowed(product, is_int).into())
}

/// `$divide`
pub(super) fn divide<'a>(left: Evaluated<'a>, right: Evaluated<'a>) -> Answer<'a> {
    let Some((dividend, divisor)) = two_numbers(&left, &right, |left, right| {
        mismatch(format!("$divide only supports numeric types, not {left} and {right}"))
    })?
    else {
        return Ok(Evaluated::NULL);
    };
    if is_zero(divisor) {
        return Err(QueryError::new(Code::BadValue, "can't $divide by zero"));
    }
    if dividend.is_decimal() || divisor.is_decimal() {
        return Ok(decimal::divide(dividend.decimal(), divisor.decimal()).into());
    }
    Ok((dividend.double() / divisor.double()).into())
}

/// `$mod`
pub(super) fn modulo<'a>(left: Evaluated<'a>, right: Evaluated<'a>) -> Answer<'a> {
    let Some((dividend, divisor)) = two_numbers(&left, &right, |left, right| {
        failure(16611, format!("$mod only supports numeric types, not {left} and {right}"))
    })?
    else {
        return Ok(Evaluated::NULL);
    };
    if is_zero(divisor) {
        let is_decimal = [dividend, divisor].iter().any(Number::is_decimal);
        return Err(failure(if is_decimal { 5_733_415 } else { 16610 }, "can't $mod by zero"));
    }
    // The remainder of the least integer by -1 overflows in the processor; it is 0.
    let remainder = dividend.combine(
        divisor,
        |left, right| Some(left.wrapping_rem(right)),
        |left, right| left % right,
        decimal::remainder,
    );
    Ok(remainder.into())
}

fn is_zero(number: Number) -> bool {
    match number {
        Number::Decimal(number) => number.is_zero(),
        other => other.double() == 0.0,
    }
}

/// Two numbers, or `None` where one of the values is null or missing.
fn two_numbers(
    left: &Evaluated<'_>,
    right: &Evaluated<'_>,
    error: impl FnOnce(&str, &str) -> QueryError,
) -> Result<Option<(Number, Number)>, QueryError> {
    if left.is_nullish() || right.is_nullish() {
        return Ok(None);
    }
    match (Number::of(left.or_null()), Number::of(right.or_null())) {
        (Some(left), Some(right)) => Ok(Some((left, right))),
        _ => Err(error(left.type_name(), right.type_name())),
    }
}

/// The one number that an argument is; `None` where it is null or missing.
pub(super) fn one_number(
    operator: &str,
    argument: &Evaluated<'_>,
) -> Result<Option<Number>, QueryError> {
    if argument.is_nullish() {
        return Ok(None);
    }
    Number::of(argument.or_null()).map(Some).ok_or_else(|| {
        let name = argument.type_name();
        failure(28765, format!("{operator} only supports numeric types, not {name}"))
    })
}

/// `$abs`
pub(super) fn abs(argument: Evaluated<'_>) -> Answer<'_> {
    Ok(match one_number("$abs", &argument)? {
        None => Evaluated::NULL,
        Some(Number::Double(number)) => number.abs().into(),
        Some(Number::Decimal(number)) if is_signed(number) => decimal::negate(number).into(),
        Some(Number::Decimal(number)) => number.into(),
        Some(Number::Int(number)) => match number.checked_abs() {
            Some(number) => number.into(),
            None => i64::from(number).abs().into(),
        },
        Some(Number::Long(number)) => match number.checked_abs() {
            Some(number) => number.into(),
            None => return Err(failure(28680, "can't take $abs of long long min")),
        },
    })
}

/// Whether there is a minus before the number, which a zero may have, too.
fn is_signed(number: Decimal128) -> bool {
    match decimal::parts(number) {
        Parts::Finite { negative, .. } | Parts::Infinity { negative } => negative,
        Parts::NaN => false,
    }
}

/// A function of one double, and the same of a decimal with all its digits. `check` is asked first,
/// with the nearest double.
fn of_real(
    operator: &str,
    (argument, variables): (&Evaluated<'_>, &Variables),
    check: impl FnOnce(f64) -> Result<(), QueryError>,
    of_double: fn(f64) -> f64,
    of_decimal: fn(Decimal128) -> Decimal128,
) -> Answer<'static> {
    let Some(number) = one_number(operator, argument)? else { return Ok(Evaluated::NULL) };
    check(sign_of(number))?;
    match number {
        Number::Decimal(number) => slow(variables, || of_decimal(number)),
        number => Ok(of_double(number.double()).into()),
    }
}

/// A function of decimals, which takes from tens of microseconds to some milliseconds: whether to
/// go on is asked each time.
pub(super) fn slow(
    variables: &Variables,
    function: impl FnOnce() -> Decimal128,
) -> Answer<'static> {
    variables.memory().check()?;
    Ok(function().into())
}

/// A double with the sign of `number`, also where that is too small for a double.
fn sign_of(number: Number) -> f64 {
    match number {
        Number::Decimal(number) if !number.is_zero() && decimal::to_f64(number) == 0.0 => {
            if is_signed(number) {
                -f64::MIN_POSITIVE
            } else {
                f64::MIN_POSITIVE
            }
        }
        number => number.double(),
    }
}

/// `$exp`
pub(super) fn exp<'a>(argument: Evaluated<'a>, variables: &Variables) -> Answer<'a> {
    of_real("$exp", (&argument, variables), |_| Ok(()), f64::exp, functions::exp)
}

/// `$ln`
pub(super) fn ln<'a>(argument: Evaluated<'a>, variables: &Variables) -> Answer<'a> {
    let rule = "$ln's argument must be a positive number";
    logarithm("$ln", (28766, rule), (&argument, variables), f64::ln, functions::ln)
}

/// `$log10`
pub(super) fn log10<'a>(argument: Evaluated<'a>, variables: &Variables) -> Answer<'a> {
    let rule = "$log10's argument must be a positive number";
    logarithm("$log10", (28761, rule), (&argument, variables), f64::log10, functions::log10)
}

/// A logarithm of what is positive. Of a decimal that is no number it is a double that is none.
fn logarithm(
    operator: &str,
    (code, rule): (i32, &str),
    (argument, variables): (&Evaluated<'_>, &Variables),
    of_double: fn(f64) -> f64,
    of_decimal: fn(Decimal128) -> Decimal128,
) -> Answer<'static> {
    if matches!(argument.value(), Some(Value::Decimal128(number)) if is_nan(number)) {
        return Ok(f64::NAN.into());
    }
    let check = |number| positive(code, rule, number).map(drop);
    of_real(operator, (argument, variables), check, of_double, of_decimal)
}

fn is_nan(number: Decimal128) -> bool {
    matches!(decimal::parts(number), Parts::NaN)
}

/// `$sqrt`
pub(super) fn sqrt<'a>(argument: Evaluated<'a>, variables: &Variables) -> Answer<'a> {
    let check = |number| {
        if number < 0.0 {
            let message = "$sqrt's argument must be greater than or equal to 0";
            return Err(failure(28714, message));
        }
        Ok(())
    };
    of_real("$sqrt", (&argument, variables), check, f64::sqrt, functions::sqrt)
}

/// NaN passes, as it does in MongoDB.
fn positive(code: i32, rule: &str, number: f64) -> Result<f64, QueryError> {
    if number <= 0.0 {
        return Err(failure(code, format!("{rule}, but is {number}")));
    }
    Ok(number)
}

/// `$log`
pub(super) fn log<'a>(
    argument: Evaluated<'a>,
    base: Evaluated<'a>,
    variables: &Variables,
) -> Answer<'a> {
    if argument.is_nullish() || base.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let number = Number::of(argument.or_null()).ok_or_else(|| {
        let name = argument.type_name();
        failure(28756, format!("$log's argument must be numeric, not {name}"))
    })?;
    let base_number = Number::of(base.or_null()).ok_or_else(|| {
        failure(28757, format!("$log's base must be numeric, not {}", base.type_name()))
    })?;
    let double = positive(28758, "$log's argument must be a positive number", sign_of(number))?;
    let rule = "$log's base must be a positive number not equal to 1";
    let base = positive(28759, rule, sign_of(base_number))?;
    let is_decimal = [number, base_number].iter().any(Number::is_decimal);
    let is_one = match is_decimal {
        true => decimal::compare(base_number.decimal(), decimal::from_i64(1)).is_eq(),
        false => base == 1.0,
    };
    if is_one {
        return Err(failure(28759, format!("{rule}, but is 1")));
    }
    match is_decimal && !double.is_nan() && !base.is_nan() {
        true => slow(variables, || functions::log(number.decimal(), base_number.decimal())),
        false => Ok((double.ln() / base.ln()).into()),
    }
}

/// `$pow`
pub(super) fn pow<'a>(
    base: Evaluated<'a>,
    exponent: Evaluated<'a>,
    variables: &Variables,
) -> Answer<'a> {
    if base.is_nullish() || exponent.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let left = Number::of(base.or_null()).ok_or_else(|| {
        failure(28762, format!("$pow's base must be numeric, not {}", base.type_name()))
    })?;
    let right = Number::of(exponent.or_null()).ok_or_else(|| {
        failure(28763, format!("$pow's exponent must be numeric, not {}", exponent.type_name()))
    })?;
    if is_zero(left) && sign_of(right) < 0.0 {
        let message = "$pow cannot take a base of 0 and a negative exponent";
        return Err(failure(28764, message));
    }
    if left.is_decimal() || right.is_decimal() {
        return slow(variables, || {
            let power = functions::power(left.decimal(), right.decimal());
            super::rounding::with_all_digits(power)
        });
    }
    let double = left.double().powf(right.double());
    let (Some(left_integer), Some(right_integer)) = (left.integer(), right.integer()) else {
        return Ok(double.into());
    };
    let Some(power) = integer_power(left_integer, right_integer) else {
        return Ok(double.into());
    };
    Ok(match (left, right, i32::try_from(power)) {
        (Number::Int(_), Number::Int(_), Ok(power)) => power.into(),
        _ => power.into(),
    })
}

/// The exact power, if it is an integer of 64 bits.
fn integer_power(base: i64, exponent: i64) -> Option<i64> {
    match (base, exponent) {
        (1, _) => Some(1),
        (-1, _) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        _ => base.checked_pow(u32::try_from(exponent).ok()?),
    }
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

fn mismatch(message: String) -> QueryError {
    QueryError::new(Code::TypeMismatch, message)
}
