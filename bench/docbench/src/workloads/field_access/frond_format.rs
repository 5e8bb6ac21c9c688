//! Frond's documents: BSON with an index of its fields beside it, which is found by the record's
//! hash.
//!
//! *Bytes* is what a read from the store does: the bytes, whose index is in the cache.

use std::hint::black_box;

use bytes::Bytes;
use frond_doc::field_index::cache::FieldIndexes;
use frond_doc::path::Path;
use frond_doc::{Document, DocumentBuf, Value};

use super::{Done, Task, Way, repeat};
use crate::target::Failure;

const CACHE_BYTES: u64 = 1 << 20;
const HASH: [u8; 32] = [7; 32];

/// Finds fields by the index.
pub fn run(task: &Task<'_>) -> Result<Done, Failure> {
    let bytes = Bytes::from(task.document.to_vec()?);
    let paths: Vec<Path> = task.paths.iter().map(|path| Path::new(path)).collect();
    let indexes = FieldIndexes::new(CACHE_BYTES);
    let buffer = DocumentBuf::validated(bytes.clone()).map_err(Failure::other)?;
    let opened = indexes.attach(HASH, buffer);
    let view = opened.view();
    let size = bytes.len();
    Ok(match task.way {
        Way::Opened => repeat(task, size, |at| letters(paths[at].get(black_box(view)))),
        Way::Bytes => repeat(task, size, |at| {
            let document = DocumentBuf::from_validated(black_box(&bytes).clone());
            letters(paths[at].get(indexes.attach(HASH, document).view()))
        }),
        Way::Scan => repeat(task, size, |_| scan(black_box(view))),
    })
}

fn letters(value: Option<Value<'_>>) -> u64 {
    match value {
        Some(Value::String(text)) => text.len() as u64,
        _ => 0,
    }
}

fn scan(document: Document<'_>) -> u64 {
    let of = |value: Value<'_>| match value {
        Value::Document(inner) => scan(inner),
        value => letters(Some(value)),
    };
    document.iter().map(|(_, value)| of(value)).sum()
}
