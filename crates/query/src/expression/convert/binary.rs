//! Conversions between binary data and strings or numbers: `$convert` with `format`, `subtype` and
//! `byteOrder`, and `$toUUID`.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE, HEXUPPER};
use frond_doc::extended_json::base64;
use frond_doc::{Binary, ElementType, Value};

use super::super::evaluated::Evaluated;
use super::super::failure;
use super::super::node::Answer;
use super::failed;
use super::target::Subtype;
use crate::error::QueryError;
use crate::memory::RequestMemory;

/// The subtype of UUIDs.
pub(super) const UUID: u8 = 4;

/// The text format of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    /// A UUID where the subtype says so, base64 otherwise.
    Auto,
    Base64,
    Base64Url,
    Hex,
    Utf8,
    Uuid,
}

impl Format {
    /// The format that `format` names.
    pub(super) fn of(value: &Evaluated<'_>) -> Result<Format, QueryError> {
        let Some(Value::String(name)) = value.value() else {
            let found = value.type_name();
            let message = format!("$convert requires that 'format' be a string, found: {found}");
            return Err(failure(4_341_114, message));
        };
        Ok(match name {
            "auto" => Format::Auto,
            "base64" => Format::Base64,
            "base64url" => Format::Base64Url,
            "hex" => Format::Hex,
            "utf8" => Format::Utf8,
            "uuid" => Format::Uuid,
            _ => {
                let message = format!("Invalid 'format' argument for $convert: {name}");
                return Err(failure(4_341_125, message));
            }
        })
    }

    /// The format for bytes.
    fn chosen(self, value: Binary<'_>) -> Format {
        match self {
            Format::Auto if is_uuid(value) => Format::Uuid,
            Format::Auto => Format::Base64,
            other => other,
        }
    }
}

/// The order of a number's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// The order that `byteOrder` names.
    pub(super) fn of(value: &Evaluated<'_>) -> Result<ByteOrder, QueryError> {
        match value.value() {
            Some(Value::String("little")) => Ok(ByteOrder::Little),
            Some(Value::String("big")) => Ok(ByteOrder::Big),
            _ => {
                let message = "Invalid 'byteOrder' argument for $convert: little or big";
                Err(failure(9_130_001, message))
            }
        }
    }
}

fn is_uuid(value: Binary<'_>) -> bool {
    value.subtype == UUID && value.bytes.len() == 16
}

fn binary(subtype: u8, bytes: &[u8], memory: &RequestMemory) -> Answer<'static> {
    Evaluated::copy(Value::Binary(Binary { subtype, bytes }), memory)
}

/// The bytes that a string stands for.
pub(super) fn from_string(
    text: &str,
    subtype: u8,
    format: Format,
    memory: &RequestMemory,
) -> Answer<'static> {
    if (format == Format::Uuid) != (subtype == UUID) {
        let message = format!(
            "Input string in $convert with no onError value: the uuid format goes with subtype \
             {UUID}, found {subtype}"
        );
        return Err(failed(message));
    }
    let bytes = match format {
        Format::Utf8 => Some(text.as_bytes().to_vec()),
        Format::Hex => from_hex(text),
        Format::Uuid => from_uuid(text),
        Format::Base64Url => base64::decode_of_address(text),
        // The padding must be there.
        Format::Base64 => base64::decode(text).filter(|_| text.len().is_multiple_of(4)),
        // The type of a string isn't guessed.
        Format::Auto => None,
    };
    let bytes = bytes.ok_or_else(|| {
        failed(format!("Input string '{text}' is not valid in $convert with no onError value"))
    })?;
    binary(subtype, &bytes, memory)
}

/// The string that stands for bytes.
pub(super) fn to_string(
    value: Binary<'_>,
    format: Format,
    memory: &RequestMemory,
) -> Answer<'static> {
    let refuse = |why: &str| failed(format!("{why} in $convert with no onError value"));
    let text = match format.chosen(value) {
        Format::Utf8 => std::str::from_utf8(value.bytes)
            .map_err(|_| refuse("BinData does not represent a valid UTF-8 string"))?
            .to_owned(),
        Format::Hex => HEXUPPER.encode(value.bytes),
        Format::Uuid if is_uuid(value) => {
            let digits = HEXLOWER.encode(value.bytes);
            let (a, rest) = digits.split_at(8);
            let (b, rest) = rest.split_at(4);
            let (c, rest) = rest.split_at(4);
            let (d, e) = rest.split_at(4);
            format!("{a}-{b}-{c}-{d}-{e}")
        }
        Format::Uuid => return Err(refuse("BinData is not a UUID")),
        Format::Base64Url => base64::encode_for_address(value.bytes),
        _ => base64::encode(value.bytes),
    };
    Evaluated::string(&text, memory)
}

/// The bytes of a number.
pub(super) fn from_number(
    value: Value<'_>,
    subtype: Subtype,
    order: ByteOrder,
    memory: &RequestMemory,
) -> Answer<'static> {
    // No number is a UUID.
    let subtype = subtype.number()?;
    let mut bytes = match value {
        _ if subtype == UUID => return Err(super::unsupported(value, Some(ElementType::Binary))),
        Value::Int32(number) => number.to_le_bytes().to_vec(),
        Value::Int64(number) => number.to_le_bytes().to_vec(),
        Value::Double(number) => number.to_le_bytes().to_vec(),
        _ => return Err(super::unsupported(value, Some(ElementType::Binary))),
    };
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    binary(subtype, &bytes, memory)
}

/// The number that bytes are.
pub(super) fn to_number(value: Binary<'_>, to: ElementType, order: ByteOrder) -> Answer<'static> {
    let mut bytes = value.bytes.to_vec();
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    // The sign stands in the last byte.
    let integer = |bytes: &[u8]| {
        let fill = if bytes.last().is_some_and(|last| 0x7f < *last) { 0xff } else { 0 };
        let mut whole = [fill; 8];
        for (byte, given) in whole.iter_mut().zip(bytes) {
            *byte = *given;
        }
        i64::from_le_bytes(whole)
    };
    match (to, bytes.as_slice()) {
        (ElementType::Int32, [_] | [_, _] | [_, _, _, _]) => Ok((integer(&bytes) as i32).into()),
        (ElementType::Int64, [_] | [_, _] | [_, _, _, _] | [_, _, _, _, _, _, _, _]) => {
            Ok(integer(&bytes).into())
        }
        (ElementType::Double, [a, b, c, d]) => {
            Ok(f64::from(f32::from_le_bytes([*a, *b, *c, *d])).into())
        }
        (ElementType::Double, [_, _, _, _, _, _, _, _]) => {
            Ok(f64::from_bits(integer(&bytes) as u64).into())
        }
        _ => {
            let (count, to) = (bytes.len(), to.alias());
            Err(failed(format!(
                "Failed to convert binData of {count} bytes to {to} in $convert with no onError \
                 value"
            )))
        }
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()
}

/// Eight digits, three times four, twelve, between dashes.
fn from_uuid(text: &str) -> Option<Vec<u8>> {
    let counts: Vec<usize> = text.split('-').map(str::len).collect();
    if counts != [8, 4, 4, 4, 12] {
        return None;
    }
    from_hex(&text.replace('-', ""))
}
