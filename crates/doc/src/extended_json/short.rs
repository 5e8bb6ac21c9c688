//! The commonest objects that stand for values, each of one short text: `{"$oid": "..."}`,
//! `{"$date": "..."}` and numbers in their canonical form. They become the value without a
//! document between. What isn't exactly so, or is wrong, is left to [`wrapper`](super::wrapper).

use data_encoding::HEXLOWER_PERMISSIVE;

use super::date;
use super::transcode::is_white;
use crate::element_type::ElementType;

/// Longer texts are read the long way.
const TEXT_BYTES_MAX: usize = 32;

/// Appends a value, from its text.
type Append = fn(&[u8], &mut Vec<u8>) -> Option<ElementType>;

/// Appends the value of the object that `text` begins with; returns its type and how long the
/// object is. `None`, and nothing is appended, if it isn't of that kind.
pub(super) fn read(text: &[u8], out: &mut Vec<u8>) -> Option<(ElementType, usize)> {
    let (name, append): (&[u8], Append) = match (text.get(3)?, text.get(9)?) {
        (b'o', _) => (b"{\"$oid\"", object_id),
        (b'd', _) => (b"{\"$date\"", written_date),
        (b'n', b'I') => (b"{\"$numberInt\"", int),
        (b'n', b'L') => (b"{\"$numberLong\"", long),
        (b'n', b'D') => (b"{\"$numberDouble\"", double),
        _ => return None,
    };
    let rest = solid(text.strip_prefix(name)?).strip_prefix(b":")?;
    let rest = solid(rest).strip_prefix(b"\"")?;
    let end = rest.iter().take(TEXT_BYTES_MAX).position(|byte| *byte == b'"')?;
    let behind = solid(&rest[end + 1..]).strip_prefix(b"}")?;
    Some((append(&rest[..end], out)?, text.len() - behind.len()))
}

/// Behind white space.
fn solid(mut text: &[u8]) -> &[u8] {
    while let Some((first, rest)) = text.split_first()
        && is_white(*first)
    {
        text = rest;
    }
    text
}

fn object_id(digits: &[u8], out: &mut Vec<u8>) -> Option<ElementType> {
    let mut id = [0; 12];
    if digits.len() != 2 * id.len() {
        return None;
    }
    HEXLOWER_PERMISSIVE.decode_mut(digits, &mut id).ok()?;
    out.extend_from_slice(&id);
    Some(ElementType::ObjectId)
}

fn written_date(text: &[u8], out: &mut Vec<u8>) -> Option<ElementType> {
    out.extend_from_slice(&date::read(text)?.to_le_bytes());
    Some(ElementType::DateTime)
}

fn int(digits: &[u8], out: &mut Vec<u8>) -> Option<ElementType> {
    out.extend_from_slice(&number::<i32>(digits)?.to_le_bytes());
    Some(ElementType::Int32)
}

fn long(digits: &[u8], out: &mut Vec<u8>) -> Option<ElementType> {
    out.extend_from_slice(&number::<i64>(digits)?.to_le_bytes());
    Some(ElementType::Int64)
}

fn double(digits: &[u8], out: &mut Vec<u8>) -> Option<ElementType> {
    out.extend_from_slice(&number::<f64>(digits)?.to_le_bytes());
    Some(ElementType::Double)
}

fn number<N: std::str::FromStr>(digits: &[u8]) -> Option<N> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}
