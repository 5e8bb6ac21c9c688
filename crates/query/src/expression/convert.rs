//! `$convert` and its short forms, `$type`, `$isNumber`.

mod binary;

use frond_doc::{ElementType, ObjectId, Value, decimal};

use super::date::{iso_text, millis_of, read_any};
use super::evaluated::Evaluated;
use super::node::{Answer, Node, Operation};
use super::number::{Number, as_i32};
use super::parse::{Parser, named, required};
use super::scope::Scope;
use crate::code::Code;
use crate::error::QueryError;
use binary::{ByteOrder, Format, UUID};

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
        Value::String(text) | Value::Symbol(text) | Value::JavaScript(text) => text.to_owned(),
        Value::Int32(number) => number.to_string(),
        Value::Int64(number) => number.to_string(),
        Value::Double(number) => double_text(number),
        Value::Decimal128(number) => decimal::to_string(number),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::ObjectId(id) => id.to_string(),
        Value::DateTime(millis) => iso_text(millis),
        Value::Timestamp(timestamp) => {
            format!("Timestamp({}, {})", timestamp.0 >> 32, timestamp.0 as u32)
        }
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

fn unsupported(value: Value<'_>, to: ElementType) -> QueryError {
    let (from, to) = (value.element_type().alias(), to.alias());
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

/// Converts to another type, without any of `$convert`'s options.
fn convert_value<'a>(value: Evaluated<'a>, to: ElementType) -> Answer<'a> {
    convert_by(value, &Target { kind: to, subtype: 0, format: None, order: ByteOrder::Little })
}

/// What to convert to.
struct Target {
    kind: ElementType,
    /// Of binary data.
    subtype: u8,
    format: Option<Format>,
    order: ByteOrder,
}

impl Target {
    /// The format, which conversions between strings and binary data must have.
    fn format(&self) -> Result<Format, QueryError> {
        self.format.ok_or_else(|| {
            let message = "Format must be specified when converting between string and binData";
            super::failure(4_341_115, message)
        })
    }
}

/// Converts to another type.
fn convert_by<'a>(value: Evaluated<'a>, target: &Target) -> Answer<'a> {
    let to = target.kind;
    let Some(borrowed) = value.value() else { return Ok(Evaluated::NULL) };
    if matches!(borrowed, Value::Null | Value::Undefined) {
        return Ok(Evaluated::NULL);
    }
    match borrowed {
        Value::Binary(bytes) if to == ElementType::Binary && bytes.subtype != target.subtype => {
            let message = "Conversions between different binData subtypes are not supported \
                           in $convert with no onError value";
            return Err(failed(message.to_owned()));
        }
        _ if borrowed.element_type() == to => return Ok(value),
        Value::Binary(bytes) if to == ElementType::String => {
            return binary::to_string(bytes, target.format()?);
        }
        Value::Binary(bytes)
            if matches!(to, ElementType::Int32 | ElementType::Int64 | ElementType::Double) =>
        {
            return binary::to_number(bytes, to, target.order);
        }
        _ => {}
    }
    match to {
        ElementType::Binary => match borrowed {
            Value::String(text) => binary::from_string(text, target.subtype, target.format()?),
            number => binary::from_number(number, target.subtype, target.order),
        },
        ElementType::Double => double(borrowed),
        ElementType::String => match borrowed {
            Value::JavaScript(_) | Value::Timestamp(_) => Err(unsupported(borrowed, to)),
            _ => Evaluated::string(to_text(borrowed).ok_or_else(|| unsupported(borrowed, to))?),
        },
        ElementType::ObjectId => object_id(borrowed),
        ElementType::Boolean => Ok(borrowed.is_truthy().into()),
        ElementType::DateTime => date(borrowed),
        ElementType::Int32 => {
            let number = integer(borrowed, to)?;
            Ok(i32::try_from(number).map_err(|_| overflow(borrowed))?.into())
        }
        ElementType::Int64 => match borrowed {
            Value::DateTime(millis) => Ok(millis.into()),
            _ => Ok(integer(borrowed, to)?.into()),
        },
        ElementType::Decimal128 => decimal_number(borrowed),
        _ => Err(unsupported(borrowed, to)),
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
            if double.is_infinite() && !is_infinite {
                Err(overflow(value))
            } else {
                Ok(double.into())
            }
        }
        _ => match Number::of(value) {
            Some(number) => Ok(number.double().into()),
            None => Err(unsupported(value, ElementType::Double)),
        },
    }
}

fn parse_double(text: &str) -> Result<f64, QueryError> {
    if text.is_empty() || text.starts_with(|letter: char| letter.is_whitespace()) {
        return Err(unparsable("number", text, "Did not consume whole string."));
    }
    let number: f64 =
        text.parse().map_err(|_| unparsable("number", text, "Did not consume whole string."))?;
    // A number too great for a double is refused, the word for infinity is not.
    if number.is_infinite() && text.contains(|letter: char| letter.is_ascii_digit()) {
        return Err(unparsable("number", text, "Out of range"));
    }
    Ok(number)
}

fn decimal_number(value: Value<'_>) -> Answer<'static> {
    let number = match value {
        Value::Boolean(boolean) => decimal::from_i64(i64::from(boolean)),
        Value::DateTime(millis) => decimal::from_i64(millis),
        Value::String(text) => decimal::parse(text)
            .ok_or_else(|| unparsable("number", text, "Failed to parse string to decimal"))?,
        _ => match Number::of(value) {
            Some(number) => number.decimal(),
            None => return Err(unsupported(value, ElementType::Decimal128)),
        },
    };
    Ok(number.into())
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
        Value::Double(number) if number.is_nan() => {
            let message = "Attempt to convert NaN value to integer type in $convert \
                           with no onError value";
            Err(failed(message.to_owned()))
        }
        Value::Double(number) if number.is_infinite() => {
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
            None => Err(unsupported(value, to)),
        },
    }
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

fn object_id(value: Value<'_>) -> Answer<'static> {
    let Value::String(text) = value else {
        return Err(unsupported(value, ElementType::ObjectId));
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
        _ => return Err(unsupported(value, ElementType::DateTime)),
    };
    Ok(Evaluated::Borrowed(Value::DateTime(millis)))
}

/// `$toBool`
pub(super) fn to_bool(argument: Evaluated<'_>) -> Answer<'_> {
    convert_value(argument, ElementType::Boolean)
}

/// `$toDate`
pub(super) fn to_date(argument: Evaluated<'_>) -> Answer<'_> {
    convert_value(argument, ElementType::DateTime)
}

/// `$toDecimal`
pub(super) fn to_decimal(argument: Evaluated<'_>) -> Answer<'_> {
    convert_value(argument, ElementType::Decimal128)
}

/// `$toDouble`
pub(super) fn to_double(argument: Evaluated<'_>) -> Answer<'_> {
    convert_value(argument, ElementType::Double)
}

/// `$toInt`
pub(super) fn to_int(argument: Evaluated<'_>) -> Answer<'_> {
    convert_value(argument, ElementType::Int32)
}

/// `$toLong`
pub(super) fn to_long(argument: Evaluated<'_>) -> Answer<'_> {
    convert_value(argument, ElementType::Int64)
}

/// `$toObjectId`
pub(super) fn to_object_id(argument: Evaluated<'_>) -> Answer<'_> {
    convert_value(argument, ElementType::ObjectId)
}

/// `$toString`
pub(super) fn to_string(argument: Evaluated<'_>) -> Answer<'_> {
    convert_value(argument, ElementType::String)
}

/// `$toUUID`
pub(super) fn to_uuid(argument: Evaluated<'_>) -> Answer<'_> {
    let (kind, format) = (ElementType::Binary, Some(Format::Uuid));
    let target = Target { kind, subtype: UUID, format, order: ByteOrder::Little };
    convert_by(argument, &target)
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
        let Some((kind, subtype)) = destination(&to)? else { return Ok(Evaluated::NULL) };
        let format = self.format.as_ref().map(|node| node.evaluate(scope)).transpose()?;
        let order = self.order.as_ref().map(|node| node.evaluate(scope)).transpose()?;
        let is_null =
            |value: &Option<Evaluated<'_>>| value.as_ref().is_some_and(Evaluated::is_nullish);
        if input.is_nullish() {
            return self.on_null.as_ref().map_or(Ok(Evaluated::NULL), |node| node.evaluate(scope));
        }
        if is_null(&format) || is_null(&order) {
            return Ok(Evaluated::NULL);
        }
        let target = Target {
            kind,
            subtype,
            format: format.as_ref().map(Format::of).transpose()?,
            order: order.as_ref().map_or(Ok(ByteOrder::Little), ByteOrder::of)?,
        };
        match (convert_by(input, &target), &self.on_error) {
            (Err(error), Some(node)) if error.code == Code::ConversionFailure => {
                node.evaluate(scope)
            }
            (answer, _) => answer,
        }
    }
}

/// The type, and the subtype of binary data, that `to` asks for: a type, or
/// `{type: "binData", subtype: 4}`. `None` where it is null.
fn destination(to: &Evaluated<'_>) -> Result<Option<(ElementType, u8)>, QueryError> {
    let Some(Value::Document(document)) = to.value() else {
        return Ok(if to.is_nullish() { None } else { Some((target(to)?, 0)) });
    };
    if let Some((name, _)) = document.iter().find(|(name, _)| !matches!(*name, "type" | "subtype"))
    {
        let message = format!("$convert found an unknown argument: to.{name}");
        return Err(QueryError::new(Code::FailedToParse, message));
    }
    let kind = document.get("type").ok_or_else(|| {
        let message = "Missing 'type' parameter to the 'to' argument of $convert";
        QueryError::new(Code::FailedToParse, message)
    })?;
    if matches!(kind, Value::Null | Value::Undefined) {
        return Ok(None);
    }
    let kind = target(&Evaluated::Borrowed(kind))?;
    let subtype = match document.get("subtype") {
        None => 0,
        Some(value) => as_i32(value)
            .and_then(|number| u8::try_from(number).ok())
            .filter(|subtype| matches!(subtype, 0..=9 | 128..))
            .ok_or_else(|| {
                let found = crate::text::value(value);
                let message =
                    format!("In $convert, 'subtype' must be a binData subtype, found: {found}");
                super::failure(4_341_107, message)
            })?,
    };
    Ok(Some((kind, subtype)))
}

/// The type that is told by name or number.
fn target(to: &Evaluated<'_>) -> Result<ElementType, QueryError> {
    const TARGETS: [ElementType; 9] = [
        ElementType::Binary,
        ElementType::Double,
        ElementType::String,
        ElementType::ObjectId,
        ElementType::Boolean,
        ElementType::DateTime,
        ElementType::Int32,
        ElementType::Int64,
        ElementType::Decimal128,
    ];
    let value = to.or_null();
    let found = match value {
        Value::String(name) => TARGETS.into_iter().find(|target| target.alias() == name),
        value if value.is_number() => as_i32(value)
            .and_then(|number| TARGETS.into_iter().find(|target| *target as i32 == number)),
        other => {
            let name = other.element_type().alias();
            let message =
                format!("$convert's 'to' argument must be a string or number, but is {name}");
            return Err(QueryError::new(Code::FailedToParse, message));
        }
    };
    found.ok_or_else(|| {
        let message = format!("Unknown type name: {}", to.text());
        QueryError::new(Code::BadValue, message)
    })
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
