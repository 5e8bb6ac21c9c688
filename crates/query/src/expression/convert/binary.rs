//! Conversions between binary data and strings or numbers: `$convert` with `format`, `subtype` and
//! `byteOrder`, and `$toUUID`.

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

/// How a string stands for bytes.
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
        Format::Base64Url => from_base64(text, b"-_", false),
        Format::Base64 => from_base64(text, b"+/", true),
        // What a string may be isn't guessed.
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
        Format::Hex => hex(value.bytes).to_uppercase(),
        Format::Uuid if is_uuid(value) => {
            let digits = hex(value.bytes);
            let (a, rest) = digits.split_at(8);
            let (b, rest) = rest.split_at(4);
            let (c, rest) = rest.split_at(4);
            let (d, e) = rest.split_at(4);
            format!("{a}-{b}-{c}-{d}-{e}")
        }
        Format::Uuid => return Err(refuse("BinData is not a UUID")),
        Format::Base64Url => to_base64(value.bytes, b"-_", false),
        _ => to_base64(value.bytes, b"+/", true),
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let pairs = text.as_bytes().chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs
        .map(|pair| match pair {
            [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
            _ => None,
        })
        .collect()
}

/// Eight digits, three times four, twelve, between dashes.
fn from_uuid(text: &str) -> Option<Vec<u8>> {
    let counts: Vec<usize> = text.split('-').map(str::len).collect();
    if counts != [8, 4, 4, 4, 12] {
        return None;
    }
    from_hex(&text.replace('-', ""))
}

/// The letters of base64; the last two differ between the forms.
fn letter(sextet: u32, last: &[u8; 2]) -> char {
    char::from(match sextet {
        0..26 => b'A' + sextet as u8,
        26..52 => b'a' + (sextet - 26) as u8,
        52..62 => b'0' + (sextet - 52) as u8,
        62 => last[0],
        _ => last[1],
    })
}

fn to_base64(bytes: &[u8], last: &[u8; 2], is_padded: bool) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte));
        let group = group << (8 * (3 - chunk.len()));
        for position in 0..4 {
            if position <= chunk.len() {
                text.push(letter(group >> (18 - 6 * position) & 0x3f, last));
            } else if is_padded {
                text.push('=');
            }
        }
    }
    text
}

fn from_base64(text: &str, last: &[u8; 2], is_padded: bool) -> Option<Vec<u8>> {
    if is_padded && !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.strip_suffix("==").or(text.strip_suffix('=')).unwrap_or(text);
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for chunk in digits.as_bytes().chunks(4) {
        if chunk.len() == 1 {
            return None;
        }
        let mut group = 0_u32;
        for byte in chunk {
            let sextet = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                other if *other == last[0] => 62,
                other if *other == last[1] => 63,
                _ => return None,
            };
            group = group << 6 | u32::from(sextet);
        }
        let group = group << (6 * (4 - chunk.len()));
        bytes.extend_from_slice(&group.to_be_bytes()[1..chunk.len()]);
    }
    Some(bytes)
}
