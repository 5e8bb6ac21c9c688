//! JSONB as Databend has it: an object's names and values lie apart, each with its length.

use std::hint::black_box;

use jsonb::{OwnedJsonb, RawJsonb};

use super::{Done, Task, Way, repeat};
use crate::sql::documents::json;
use crate::target::Failure;

/// Finds fields in the bytes; there is nothing to open.
pub fn run(task: &Task<'_>) -> Result<Done, Failure> {
    let text = json(&task.document.clone().into());
    let bytes = jsonb::parse_owned_jsonb(text.as_bytes()).map_err(Failure::other)?.to_vec();
    let paths: Vec<Vec<&str>> = task.paths.iter().map(|path| path.split('.').collect()).collect();
    let opened = RawJsonb::new(&bytes);
    Ok(match task.way {
        Way::Opened => repeat(task, bytes.len(), |at| letters(black_box(opened), &paths[at])),
        Way::Bytes => repeat(task, bytes.len(), |at| {
            letters(RawJsonb::new(black_box(bytes.as_slice())), &paths[at])
        }),
        Way::Scan => repeat(task, bytes.len(), |_| scan(black_box(opened))),
    })
}

fn letters(document: RawJsonb<'_>, path: &[&str]) -> u64 {
    let Some((first, rest)) = path.split_first() else { return text_letters(document) };
    match document.get_by_name(first, false) {
        Ok(Some(found)) => letters(found.as_raw(), rest),
        _ => 0,
    }
}

fn text_letters(value: RawJsonb<'_>) -> u64 {
    value.as_str().ok().flatten().map_or(0, |text| text.len() as u64)
}

fn scan(document: RawJsonb<'_>) -> u64 {
    let of = |value: &OwnedJsonb| match value.as_raw().is_object() {
        Ok(true) => scan(value.as_raw()),
        _ => text_letters(value.as_raw()),
    };
    let fields = document.object_each().ok().flatten().unwrap_or_default();
    fields.iter().map(|(_, value)| of(value)).sum()
}
