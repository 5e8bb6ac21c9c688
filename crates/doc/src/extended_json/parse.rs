//! JSON text into a document.
//!
//! Valid text is read by [`straight`](super::straight), in one pass. It gives up on the rest
//! without a word: that is read again as serde has it ([`visit`](super::visit)), which says what is
//! wrong and where, and is the judge.

use serde::Deserializer as _;

use super::transcode;
use super::visit::Outermost;
use crate::builder::DocumentBuilder;
use crate::document::{DEPTH_MAX, DocumentBuf};
use crate::error::DocError;
use crate::validate::validate;

/// Reads one JSON object with the type wrappers of extended JSON v2 (`$oid`, `$date`,
/// `$numberLong`, ...), both forms, and the legacy forms that mongoimport takes. Order and
/// duplicates are kept.
///
/// # Errors
/// [`DocError::Json`] with the field, the line and the column; [`DocError::TooDeep`].
pub fn parse(text: &str) -> Result<DocumentBuf, DocError> {
    let mut out = Vec::with_capacity(text.len());
    match transcode::read(text.as_bytes(), &mut out) {
        Some(end) if text[end..].bytes().all(transcode::is_white) => {
            Ok(DocumentBuf::from_validated(out.into()))
        }
        _ => parse_by_serde(text),
    }
}

/// Reads the JSON object that `text` begins with, as [`parse`] does; returns how many bytes it
/// took. `None` where none ends in these bytes, or it isn't right: [`parse`] says why. `scratch` is
/// memory to use again.
pub fn parse_first(text: &[u8], scratch: &mut Vec<u8>) -> Option<(DocumentBuf, usize)> {
    scratch.clear();
    let end = transcode::read(text, scratch)?;
    Some((DocumentBuf::from_validated(bytes::Bytes::copy_from_slice(scratch)), end))
}

pub(super) fn parse_by_serde(text: &str) -> Result<DocumentBuf, DocError> {
    let mut builder = DocumentBuilder::with_capacity(text.len());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.disable_recursion_limit();
    deserializer
        .deserialize_any(Outermost { builder: &mut builder })
        .and_then(|()| deserializer.end())
        .map_err(|error| DocError::Json(error.to_string()))?;
    let document = builder.build();
    // A wrapper's levels are none of the document's: only what has many can have too many.
    if text.bytes().filter(|byte| matches!(byte, b'{' | b'[')).nth(DEPTH_MAX).is_some() {
        validate(document.as_bytes())?;
    }
    Ok(document)
}
