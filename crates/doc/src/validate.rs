//! Bytes from outside: the one check after which the rest of the crate trusts them.
//!
//! Recursion is bounded, by [`DEPTH_MAX`] for documents, so hostile nesting ends in an error. Names
//! of an array's elements are not checked: MongoDB's clients send what they like there, and it is
//! kept.

use crate::element_type::{ElementType, kind_of};
use crate::error::DocError;
use crate::raw::{is_ascii, length_at, name_at, value_bytes};

/// The depth to which documents and arrays may be nested, the outermost counted.
pub const DEPTH_MAX: usize = 180;
/// The depth of an answer: documents lie in it, in a cursor's batch three levels down. MongoDB's
/// limit.
pub const ANSWER_DEPTH_MAX: usize = 200;

/// Checks that `bytes` are one whole BSON document and nothing else.
///
/// # Errors
/// [`DocError::Invalid`] with the offset of what is wrong; [`DocError::TooDeep`].
pub fn validate(bytes: &[u8]) -> Result<(), DocError> {
    validate_to(bytes, DEPTH_MAX)
}

/// As [`validate`], for so many levels.
pub(crate) fn validate_to(bytes: &[u8], depth_max: usize) -> Result<(), DocError> {
    check_document(bytes, 0, Depth { now: 1, max: depth_max })
}

/// The depth of a value, and the greatest allowed one.
#[derive(Clone, Copy)]
struct Depth {
    now: usize,
    max: usize,
}

impl Depth {
    fn inside(self) -> Depth {
        Depth { now: self.now + 1, ..self }
    }
}

/// Checks a value whose bytes were cut by its type and length; `depth` documents and arrays are
/// open around it.
///
/// # Errors
/// As [`validate`], with offsets in the value.
pub(crate) fn check_element(kind: ElementType, value: &[u8], depth: usize) -> Result<(), DocError> {
    check_value(kind, value, 0, Depth { now: depth, max: DEPTH_MAX })
}

/// Checks one document that begins at `start` of the outermost one.
fn check_document(bytes: &[u8], start: usize, depth: Depth) -> Result<(), DocError> {
    if depth.now > depth.max {
        return Err(DocError::TooDeep { max: depth.max });
    }
    let stated = length_at(bytes, 0).ok_or_else(|| invalid(start, "no length of a document"))?;
    if stated != bytes.len() {
        return Err(invalid(
            start,
            format!("document says {stated} bytes, there are {}", bytes.len()),
        ));
    }
    if bytes.len() < 5 || bytes[bytes.len() - 1] != 0 {
        return Err(invalid(start, "document without its final zero"));
    }
    let content = &bytes[..bytes.len() - 1];
    let mut position = size_of::<i32>();
    while let Some(&kind) = content.get(position) {
        let kind = kind_of(kind)
            .filter(|kind| *kind != ElementType::Reference)
            .ok_or_else(|| invalid(start + position, format!("unknown type 0x{kind:02x}")))?;
        let name_offset = position + 1;
        let name = name_at(content, name_offset)
            .ok_or_else(|| invalid(start + name_offset, "name without its final zero"))?;
        let value_offset = name_offset + name.bytes + 1;
        if !name.is_ascii {
            check_text(&content[name_offset..value_offset - 1], start + name_offset)?;
        }
        let rest = content.get(value_offset..).unwrap_or(&[]);
        let value = value_bytes(kind, rest).and_then(|count| rest.get(..count));
        let value = value.ok_or_else(|| {
            let what = format!("{} reaches past its document", kind.alias());
            invalid(start + value_offset, what)
        })?;
        if kind != ElementType::String || !is_ascii_string(value) {
            check_value(kind, value, start + value_offset, depth)?;
        }
        position = value_offset + value.len();
    }
    Ok(())
}

/// Whether a string, whose length was used to cut it, is as it should be: answers at once for those
/// that are ASCII, as most are.
#[inline]
fn is_ascii_string(value: &[u8]) -> bool {
    value.len() > size_of::<i32>()
        && value[value.len() - 1] == 0
        && is_ascii(&value[size_of::<i32>()..])
}

/// Checks what lies inside a value whose length is right already.
fn check_value(
    kind: ElementType,
    value: &[u8],
    offset: usize,
    depth: Depth,
) -> Result<(), DocError> {
    match kind {
        ElementType::String | ElementType::JavaScript | ElementType::Symbol => {
            check_string(value, offset)
        }
        ElementType::Document | ElementType::Array => check_document(value, offset, depth.inside()),
        ElementType::Boolean => match value[0] {
            0 | 1 => Ok(()),
            other => Err(invalid(offset, format!("boolean of 0x{other:02x}, expected 0 or 1"))),
        },
        ElementType::Regex => check_text(value, offset),
        ElementType::Reference => Err(invalid(offset, "a reference from outside")),
        ElementType::DbPointer => check_string(&value[..value.len() - 12], offset),
        ElementType::JavaScriptWithScope => {
            let scope_offset = length_at(value, 4).and_then(|bytes| bytes.checked_add(8));
            let (code, scope) = scope_offset
                .and_then(|scope_offset| value.split_at_checked(scope_offset))
                .ok_or_else(|| invalid(offset, "code reaches past its element"))?;
            check_string(&code[4..], offset + 4)?;
            check_document(scope, offset + code.len(), depth.inside())
        }
        _ => Ok(()),
    }
}

/// Checks a string: length, text, final zero. The length was used to cut `value` already.
fn check_string(value: &[u8], offset: usize) -> Result<(), DocError> {
    match value.split_last() {
        Some((0, content)) if content.len() >= 4 => check_text(&content[4..], offset + 4),
        _ => Err(invalid(offset, "string without its final zero")),
    }
}

fn check_text(bytes: &[u8], offset: usize) -> Result<(), DocError> {
    match std::str::from_utf8(bytes) {
        Ok(_) => Ok(()),
        Err(error) => Err(invalid(offset + error.valid_up_to(), "text is not UTF-8")),
    }
}

fn invalid(offset: usize, what: impl Into<String>) -> DocError {
    DocError::Invalid { offset, what: what.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: Option<&str>) {
        match (validate(bytes), expected) {
            (Ok(()), None) => {}
            (Err(error), Some(expected)) => {
                assert!(error.to_string().contains(expected), "{error} for {bytes:02x?}");
            }
            (result, _) => panic!("{result:?} for {bytes:02x?}"),
        }
    }

    /// A document around one element.
    fn around(element: &[u8]) -> Vec<u8> {
        let mut bytes = ((element.len() + 5) as u32).to_le_bytes().to_vec();
        bytes.extend(element);
        bytes.push(0);
        bytes
    }

    #[test]
    fn lengths_and_ends() {
        check(&[5, 0, 0, 0, 0], None);
        check(&[], Some("no length"));
        check(&[5, 0, 0], Some("no length"));
        check(&[4, 0, 0, 0], Some("final zero"));
        check(&[5, 0, 0, 0, 1], Some("final zero"));
        check(&[6, 0, 0, 0, 0], Some("says 6 bytes"));
        check(&[5, 0, 0, 0, 0, 0], Some("says 5 bytes"));
        check(&[0xff, 0xff, 0xff, 0xff, 0], Some("no length"));
    }

    #[test]
    fn elements() {
        check(&around(b"\x10a\0\x01\0\0\0"), None);
        check(&around(b"\x10a\0\x01\0\0"), Some("int reaches past"));
        check(&around(b"\x42a\0"), Some("unknown type 0x42"));
        check(&around(b"\x0aabc"), Some("name without"));
        check(&around(b"\x0a\xff\0"), Some("UTF-8"));
        check(&around(b"\x08a\0\x01"), None);
        check(&around(b"\x08a\0\x02"), Some("boolean of 0x02"));
        check(&around(b"\x02a\0\x02\0\0\0x\0"), None);
        check(&around(b"\x02a\0\x02\0\0\0xy"), Some("final zero"));
        check(&around(b"\x02a\0\x02\0\0\0\xc3\0"), Some("UTF-8"));
        check(&around(b"\x02a\0\0\0\0\0"), Some("final zero"));
        check(&around(b"\x02a\0\xff\xff\xff\x7fx\0"), Some("string reaches past"));
        check(&around(b"\x02a\0\xff\xff\xff\xffx\0"), Some("string reaches past"));
        check(&around(b"\x05a\0\x01\0\0\0\0x"), None);
        check(&around(b"\x05a\0\x05\0\0\0\x02\x01\0\0\0x"), None);
        // The inner length of subtype 2 is the client's business.
        check(&around(b"\x05a\0\x05\0\0\0\x02\x02\0\0\0x"), None);
        check(&around(b"\x05a\0\x01\0\0\0\x02x"), None);
        check(&around(b"\x0ba\0x\0i\0"), None);
        check(&around(b"\x0ba\0x\0i"), Some("regex reaches past"));
        check(&around(b"\x0ca\0\x02\0\0\0x\x00123456789012"), None);
        check(&around(b"\x0ca\0\x02\0\0\0xy123456789012"), Some("final zero"));
        check(&around(b"\x0fa\0\x0f\0\0\0\x02\0\0\0x\0\x05\0\0\0\0"), None);
        check(&around(b"\x0fa\0\x0f\0\0\0\x09\0\0\0x\0\x05\0\0\0\0"), Some("code reaches past"));
        check(&around(b"\x0fa\0\x0f\0\0\0\x02\0\0\0x\0\x04\0\0\0\0"), Some("says 4 bytes"));
        check(&around(b"\x0fa\0\x04\0\0\0"), Some("code reaches past"));
        check(&around(b"\x03a\0\x05\0\0\0\0"), None);
        check(&around(b"\x03a\0\x04\0\0\0"), Some("final zero"));
        check(&around(b"\x03a\0\x00\0\0\0"), Some("no length"));
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| {
            (1..depth).fold(vec![5, 0, 0, 0, 0], |inner, _| {
                around(&[b"\x03a\0".as_slice(), &inner].concat())
            })
        };
        check(&nested(DEPTH_MAX), None);
        check(&nested(DEPTH_MAX + 1), Some("deeper than 180"));
        check(&nested(20_000), Some("deeper than 180"));
        assert_eq!(validate_to(&nested(DEPTH_MAX + 3), DEPTH_MAX + 3), Ok(()));
        let error = validate_to(&nested(DEPTH_MAX + 4), DEPTH_MAX + 3);
        assert_eq!(error, Err(DocError::TooDeep { max: DEPTH_MAX + 3 }));
    }
}
