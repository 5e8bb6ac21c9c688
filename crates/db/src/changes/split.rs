//! `$changeStreamSplitLargeEvent`, the last stage of a stream: an event that is too large comes in
//! fragments, which the client puts together again.
//!
//! Each fragment has some of the outermost fields, the shortest first, as many as it can hold, its
//! own token, and `splitEvent`: which one it is, of how many.

use frond_doc::raw::RawElement;
use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value, ValueBuf};
use frond_query::Code;

use super::document::EVENT_BYTES_MAX;
use crate::error::Error;

const STAGE: &str = "$changeStreamSplitLargeEvent";
/// The bytes of a fragment besides its token and its fields: `splitEvent`, and the surrounding
/// document.
const FRAME_BYTES: usize = 100;

/// The stages without that one, if it stands at their end.
///
/// # Errors
/// `Location7182800` if it isn't an empty object; `Location7182802` if it isn't the last.
pub fn without_stage(stages: Array<'_>) -> Result<(ValueBuf, bool), Error> {
    let mut others = DocumentBuilder::new();
    others.begin_array("stages");
    let mut is_there = false;
    for stage in stages.iter() {
        if is_there {
            let message = format!("{STAGE} must be the last stage in the pipeline");
            return Err(Error::invalid(Code::Location(7182802), message));
        }
        match stage.as_document().and_then(|stage| stage.get(STAGE)) {
            None => {
                others.push(stage);
            }
            Some(Value::Document(specification)) if specification.is_empty() => is_there = true,
            Some(_) => {
                let message = format!("{STAGE} spec should be an empty object");
                return Err(Error::invalid(Code::Location(7182800), message));
            }
        }
    }
    others.end();
    let others = others.build();
    Ok((others.get("stages").map_or_else(|| Value::Null.to_buf(), |it| it.to_buf()), is_there))
}

/// The fragments of an event; `token` makes that of a fragment by its number.
///
/// # Errors
/// `Location7182500` if a field is too large for any fragment.
pub fn fragments(
    event: Document<'_>,
    token: impl Fn(u32) -> DocumentBuf,
) -> Result<Vec<DocumentBuf>, Error> {
    let mut fields: Vec<RawElement<'_>> =
        event.elements().filter(|field| field.name != b"_id").collect();
    let bytes = |field: &RawElement<'_>| field.name.len() + field.value.len() + 2;
    fields.sort_by_key(|field| (bytes(field), field.name));
    let room = EVENT_BYTES_MAX - token(0).as_bytes().len() - FRAME_BYTES;
    let mut groups: Vec<Vec<RawElement<'_>>> = Vec::new();
    let mut taken = 0;
    for field in fields {
        let field_bytes = bytes(&field);
        if room < field_bytes {
            let message = format!(
                "Splitting change event failed: fragment size {field_bytes} is greater than \
                 maximum allowed fragment size {room}"
            );
            return Err(Error::invalid(Code::Location(7182500), message));
        }
        match groups.last_mut() {
            Some(group) if taken + field_bytes <= room => group.push(field),
            _ => {
                groups.push(vec![field]);
                taken = 0;
            }
        }
        taken += field_bytes;
    }
    let count = i32::try_from(groups.len()).unwrap_or(i32::MAX);
    let fragments = (0..).zip(groups).map(|(number, group)| {
        let mut out = DocumentBuilder::new();
        out.append("_id", Value::Document(token(number).view()));
        out.begin_document("splitEvent");
        out.append("fragment", Value::Int32(number as i32 + 1)).append("of", Value::Int32(count));
        out.end();
        group.iter().for_each(|field| {
            out.append_element(field);
        });
        out.build()
    });
    Ok(fragments.collect())
}
