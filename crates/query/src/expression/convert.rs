//! `$convert` and its short forms, `$type`, `$isNumber`.

mod binary;
mod target;

use frond_doc::{ElementType, ObjectId, Value, decimal};

use super::date::{millis_of, read_any, utc_text};
use super::evaluated::Evaluated;
use super::node::{Answer, Node, OneIn, Operation};
use super::parse::{Parser, named, required};
use super::scope::Scope;
use crate::code::Code;
use crate::error::QueryError;
use crate::memory::RequestMemory;
use crate::number::any_type::Number;
use binary::{ByteOrder, Format, UUID};
use target::{Subtype, Target, destination};

/// `$type`
pub(super) fn type_of(argument: Evaluated<'_>) -> Answer<'_> {
    Ok(Evaluated::Borrowed(Value::String(argument.type_name())))
}

/// `$isNumber`
pub(super) fn is_number(argument: Evaluated<'_>) -> Answer<'_> {
    Ok(argument.value().is_some_and(|value| value.is_number()).into())
}

/// The text of a value that `$toString` converts.
pub(super) fn to_text(value: Value<'_>) -> Option<String> {
    Some(match value {
        Value::String(text) => text.to_owned(),
        Value::Int32(number) => number.to_string(),
        Value::Int64(number) => number.to_string(),
        Value::Double(number) => double_text(number),
        Value::Decimal128(number) => decimal::to_string(number),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::ObjectId(id) => id.to_string(),
        _ => return None,
    })
}

/// The shortest digits that give the double back; whole numbers without a point, great and small
/// ones with an exponent.
fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-Infinity" } else { "Infinity" }.to_owned();
    }
    let magnitude = number.abs();
    if number == 0.0 || (1e-4..1e16).contains(&magnitude) {
        return format!("{number}");
    }
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => {
            format!("{digits}e+{exponent:0>2}")
        }
        Some((digits, exponent)) => format!("{digits}e-{:0>2}", &exponent[1..]),
        None => text,
    }
}

fn failed(message: String) -> QueryError {
    QueryError::new(Code::ConversionFailure, message)
}

fn unsupported(value: Value<'_>, to: Option<ElementType>) -> QueryError {
    let (from, to) = (value.element_type().alias(), to.map_or("missing", ElementType::alias));
    failed(format!("Unsupported conversion from {from} to {to} in $convert with no onError value"))
}

fn unparsable(what: &str, text: &str, reason: &str) -> QueryError {
    failed(format!("Failed to parse {what} '{text}' in $convert with no onError value: {reason}"))
}

fn overflow(value: Value<'_>) -> QueryError {
    let text = to_text(value).unwrap_or_default();
    failed(format!(
        "Conversion would overflow target type in $convert with no onError value: {text}"
    ))
}

/// Converts to another type.
fn convert_by<'a>(value: Evaluated<'a>, target: &Target, memory: &RequestMemory) -> Answer<'a> {
    // Up to twice the bytes, in a text of its own first.
    let _charge = memory.charge_of(value.bytes() * 2)?;
    let Some(borrowed) = value.value() else { return Ok(Evaluated::NULL) };
    if matches!(borrowed, Value::Null | Value::Undefined) {
        return Ok(Evaluated::NULL);
    }
    let Some(to) = target.convertible() else {
        return Err(unsupported(borrowed, target.kind));
    };
    match borrowed {
        Value::Binary(bytes) => match to {
            ElementType::Binary if bytes.subtype == target.subtype.number()? => return Ok(value),
            ElementType::Binary => {
                let message = "Conversions between different binData subtypes are not supported \
                               in $convert with no onError value";
                return Err(failed(message.to_owned()));
            }
            ElementType::String => return binary::to_string(bytes, target.format()?, memory),
            ElementType::Int32 | ElementType::Int64 | ElementType::Double => {
                return binary::to_number(bytes, to, target.order);
            }
            _ => {}
        },
        _ if borrowed.element_type() == to => return Ok(value),
        _ => {}
    }
    match to {
        ElementType::Binary => match borrowed {
            Value::String(text) => {
                binary::from_string(text, target.subtype.number()?, target.format()?, memory)
            }
            number => binary::from_number(number, target.subtype, target.order, memory),
        },
        ElementType::Double => double(borrowed),
        ElementType::String => match borrowed {
            Value::DateTime(millis) => Evaluated::string(&utc_text(millis)?, memory),
            _ => match to_text(borrowed) {
                Some(text) => Evaluated::string(&text, memory),
                None => Err(unsupported(borrowed, Some(to))),
            },
        },
        ElementType::ObjectId => object_id(borrowed),
        ElementType::Boolean => Ok(borrowed.is_truthy().into()),
        ElementType::DateTime => date(borrowed),
        // 2147483647.9 would be cut to an int, but is refused.
        ElementType::Int32 if matches!(borrowed, Value::Double(number) if is_beyond_int(number)) => {
            Err(overflow(borrowed))
        }
        ElementType::Int32 => {
            let number = integer(borrowed, to)?;
            Ok(i32::try_from(number).map_err(|_| overflow(borrowed))?.into())
        }
        ElementType::Int64 => match borrowed {
            Value::DateTime(millis) => Ok(millis.into()),
            _ => Ok(integer(borrowed, to)?.into()),
        },
        _ => decimal_number(borrowed),
    }
}

fn double(value: Value<'_>) -> Answer<'static> {
    match value {
        Value::Boolean(boolean) => Ok(f64::from(u8::from(boolean)).into()),
        Value::DateTime(millis) => Ok((millis as f64).into()),
        Value::String(text) => parse_double(text).map(Evaluated::from),
        Value::Decimal128(number) => {
            let double = decimal::to_f64(number);
            let is_infinite = matches!(decimal::parts(number), decimal::Parts::Infinity { .. });
            // A value too small for all digits of a double is refused, too.
            let is_lost = !number.is_zero() && double.abs() < f64::MIN_POSITIVE;
            if (double.is_infinite() && !is_infinite) || is_lost {
                Err(overflow(value))
            } else {
                Ok(double.into())
            }
        }
        _ => match Number::of(value) {
            Some(number) => Ok(number.double().into()),
            None => Err(unsupported(value, Some(ElementType::Double))),
        },
    }
}

fn parse_double(text: &str) -> Result<f64, QueryError> {
    if text.is_empty() || text.starts_with(|letter: char| letter.is_whitespace()) {
        return Err(unparsable("number", text, "Did not consume whole string."));
    }
    let number: f64 =
        text.parse().map_err(|_| unparsable("number", text, "Did not consume whole string."))?;
    // A number too great for a double is refused, the word for infinity is not; and one too small
    // for all digits of a double.
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let is_lost = number.abs() < f64::MIN_POSITIVE
        && mantissa.contains(|letter: char| ('1'..='9').contains(&letter));
    if number.is_infinite() && text.contains(|letter: char| letter.is_ascii_digit()) || is_lost {
        return Err(unparsable("number", text, "Out of range"));
    }
    Ok(number)
}

fn decimal_number(value: Value<'_>) -> Answer<'static> {
    let number = match value {
        Value::Boolean(boolean) => decimal::from_i64(i64::from(boolean)),
        Value::DateTime(millis) => decimal::from_i64(millis),
        Value::String(text) => {
            let number = decimal::parse(text);
            let number = number
                .ok_or_else(|| unparsable("number", text, "Failed to parse string to decimal"))?;
            if decimal::underflows(text) {
                let reason = "Conversion from string to decimal would underflow";
                return Err(unparsable("number", text, reason));
            }
            number
        }
        _ => match Number::of(value) {
            Some(number) => number.decimal(),
            None => return Err(unsupported(value, Some(ElementType::Decimal128))),
        },
    };
    Ok(number.into())
}

fn is_nan(value: Value<'_>) -> bool {
    Number::of(value).is_some_and(|number| number.double().is_nan())
}

fn is_infinite(value: Value<'_>) -> bool {
    match value {
        Value::Double(number) => number.is_infinite(),
        Value::Decimal128(number) => {
            matches!(decimal::parts(number), decimal::Parts::Infinity { .. })
        }
        _ => false,
    }
}

fn is_beyond_int(number: f64) -> bool {
    number.is_finite() && !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number)
}

/// A 64-bit integer, cut towards zero.
fn integer(value: Value<'_>, to: ElementType) -> Result<i64, QueryError> {
    match value {
        Value::Boolean(boolean) => Ok(i64::from(boolean)),
        Value::String(text) => {
            let reason = "Did not consume whole string.";
            let number: i64 = text.parse().map_err(|_| unparsable("number", text, reason))?;
            if to == ElementType::Int32 && i32::try_from(number).is_err() {
                return Err(unparsable("number", text, "Overflow"));
            }
            Ok(number)
        }
        Value::Double(_) | Value::Decimal128(_) if is_nan(value) => {
            let message = "Attempt to convert NaN value to integer type in $convert \
                           with no onError value";
            Err(failed(message.to_owned()))
        }
        Value::Double(_) | Value::Decimal128(_) if is_infinite(value) => {
            let message = "Attempt to convert infinity value to integer type in $convert \
                           with no onError value";
            Err(failed(message.to_owned()))
        }
        // 2^63 itself doesn't fit; its negative does.
        Value::Double(number) if (-TWO_TO_63..TWO_TO_63).contains(&number) => Ok(number as i64),
        Value::Double(_) => Err(overflow(value)),
        Value::Decimal128(number) => decimal::to_i64(number).ok_or_else(|| overflow(value)),
        _ => match Number::of(value).and_then(Number::integer) {
            Some(number) => Ok(number),
            None => Err(unsupported(value, Some(to))),
        },
    }
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

fn object_id(value: Value<'_>) -> Answer<'static> {
    let Value::String(text) = value else {
        return Err(unsupported(value, Some(ElementType::ObjectId)));
    };
    if text.len() != 24 {
        let count = text.len();
        let reason =
            format!("Invalid string length for parsing to OID, expected 24 but found {count}");
        return Err(unparsable("objectId", text, &reason));
    }
    let mut bytes = [0; 12];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = std::str::from_utf8(pair)
            .ok()
            .filter(|pair| !pair.starts_with('+'))
            .and_then(|pair| u8::from_str_radix(pair, 16).ok())
            .ok_or_else(|| unparsable("objectId", text, "Invalid character found in hex string"))?;
    }
    Ok(ObjectId(bytes).into())
}

fn date(value: Value<'_>) -> Answer<'static> {
    let millis = match value {
        Value::Int64(millis) => millis,
        Value::Double(_) | Value::Decimal128(_) => integer(value, ElementType::DateTime)?,
        Value::ObjectId(id) => millis_of(id),
        Value::Timestamp(timestamp) => (timestamp.0 >> 32) as i64 * 1000,
        Value::String(text) => read_any(text, &super::date::Zone::Utc)?,
        _ => return Err(unsupported(value, Some(ElementType::DateTime))),
    };
    Ok(Evaluated::Borrowed(Value::DateTime(millis)))
}

/// One argument, converted by `convert`.
fn alias(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
    convert: OneIn,
) -> Result<Node, QueryError> {
    let mut nodes = parser.arguments(argument)?;
    let count = nodes.len();
    match (nodes.pop(), count) {
        (Some(node), 1) => Ok(Node::OneIn(convert, Box::new(node))),
        _ => {
            let message = format!("{operator} requires a single argument, got {count}");
            Err(super::failure(50723, message))
        }
    }
}

macro_rules! aliases {
    ($($function:ident, $name:literal, $kind:ident, $subtype:expr, $format:expr;)*) => {
        $(
            #[doc = concat!("`", $name, "`")]
            pub(super) fn $function(
                operator: &str,
                argument: Value<'_>,
                parser: &mut Parser,
            ) -> Result<Node, QueryError> {
                alias(operator, argument, parser, |argument, variables| {
                    let (subtype, format) = (Subtype::Known($subtype), $format);
                    let (kind, order) = (Some(ElementType::$kind), ByteOrder::Little);
                    convert_by(argument, &Target { kind, subtype, format, order }, variables.memory())
                })
            }
        )*
    };
}

aliases! {
    to_bool, "$toBool", Boolean, 0, None;
    to_date, "$toDate", DateTime, 0, None;
    to_decimal, "$toDecimal", Decimal128, 0, None;
    to_double, "$toDouble", Double, 0, None;
    to_int, "$toInt", Int32, 0, None;
    to_long, "$toLong", Int64, 0, None;
    to_object_id, "$toObjectId", ObjectId, 0, None;
    to_string, "$toString", String, 0, Some(Format::Auto);
    to_uuid, "$toUUID", Binary, UUID, Some(Format::Uuid);
}

/// `$convert`
#[derive(Debug)]
struct Convert {
    input: Node,
    to: Node,
    format: Option<Node>,
    order: Option<Node>,
    on_error: Option<Node>,
    on_null: Option<Node>,
}

impl Operation for Convert {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let (input, to) = (self.input.evaluate(scope)?, self.to.evaluate(scope)?);
        let format = self.format.as_ref().map(|node| node.evaluate(scope)).transpose()?;
        let order = self.order.as_ref().map(|node| node.evaluate(scope)).transpose()?;
        let destination = destination(&to)?;
        if input.is_nullish() {
            return self.on_null.as_ref().map_or(Ok(Evaluated::NULL), |node| node.evaluate(scope));
        }
        let Some((kind, subtype)) = destination else { return Ok(Evaluated::NULL) };
        // A null format or order is as good as none.
        let (format, order) = (
            format.filter(|format| !format.is_nullish()),
            order.filter(|order| !order.is_nullish()),
        );
        let target = Target {
            kind,
            subtype,
            format: format.as_ref().map(Format::of).transpose()?,
            order: order.as_ref().map_or(Ok(ByteOrder::Little), ByteOrder::of)?,
        };
        match (convert_by(input, &target, scope.memory()), &self.on_error) {
            (Err(error), Some(node)) if error.code == Code::ConversionFailure => {
                node.evaluate(scope)
            }
            (answer, _) => answer,
        }
    }
}

/// `$convert`
pub(super) fn convert(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::FailedToParse, Code::FailedToParse);
    let names = ["input", "to", "onError", "onNull", "format", "byteOrder"];
    let [input, to, on_error, on_null, format, order] = named(operator, argument, names, codes)?;
    let input = required(operator, "input", input, Code::FailedToParse)?;
    let to = required(operator, "to", to, Code::FailedToParse)?;
    Ok(Node::special(Convert {
        input: parser.expression(input)?,
        to: parser.expression(to)?,
        format: parser.optional(format)?,
        order: parser.optional(order)?,
        on_error: parser.optional(on_error)?,
        on_null: parser.optional(on_null)?,
    }))
}
