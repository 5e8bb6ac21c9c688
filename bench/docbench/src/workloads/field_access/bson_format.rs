//! BSON by the `bson` crate: raw (found by walking the bytes), and decoded into a hash map.

use std::hint::black_box;

use bson::{Bson, Document, RawBsonRef, RawDocument};

use super::{Done, Task, Way, repeat};
use crate::target::Failure;

/// Finds fields in the bytes.
pub fn run_raw(task: &Task<'_>) -> Result<Done, Failure> {
    let bytes = task.document.to_vec()?;
    let paths = cut(task.paths);
    let opened = RawDocument::from_bytes(&bytes)?;
    let open = || RawDocument::from_bytes(black_box(bytes.as_slice())).ok();
    Ok(match task.way {
        Way::Opened => repeat(task, bytes.len(), |at| raw_letters(black_box(opened), &paths[at])),
        Way::Bytes => repeat(task, bytes.len(), |at| {
            open().map_or(0, |document| raw_letters(document, &paths[at]))
        }),
        Way::Scan => repeat(task, bytes.len(), |_| raw_scan(black_box(opened))),
    })
}

/// Decodes the document, and finds fields in it.
pub fn run_decoded(task: &Task<'_>) -> Result<Done, Failure> {
    let bytes = task.document.to_vec()?;
    let paths = cut(task.paths);
    let opened = Document::from_reader(bytes.as_slice())?;
    let open = || Document::from_reader(black_box(bytes.as_slice())).ok();
    Ok(match task.way {
        Way::Opened => repeat(task, bytes.len(), |at| letters(black_box(&opened), &paths[at])),
        Way::Bytes => repeat(task, bytes.len(), |at| {
            open().map_or(0, |document| letters(&document, &paths[at]))
        }),
        Way::Scan => repeat(task, bytes.len(), |_| scan(black_box(&opened))),
    })
}

fn cut(paths: &[String]) -> Vec<Vec<&str>> {
    paths.iter().map(|path| path.split('.').collect()).collect()
}

fn raw_letters(document: &RawDocument, path: &[&str]) -> u64 {
    let Some((last, outer)) = path.split_last() else { return 0 };
    let mut document = document;
    for name in outer {
        let Ok(inner) = document.get_document(name) else { return 0 };
        document = inner;
    }
    document.get_str(last).map_or(0, |text| text.len() as u64)
}

fn raw_scan(document: &RawDocument) -> u64 {
    let of = |value: RawBsonRef<'_>| match value {
        RawBsonRef::String(text) => text.len() as u64,
        RawBsonRef::Document(inner) => raw_scan(inner),
        _ => 0,
    };
    document.iter().map(|element| element.map_or(0, |(_, value)| of(value))).sum()
}

fn letters(document: &Document, path: &[&str]) -> u64 {
    let Some((last, outer)) = path.split_last() else { return 0 };
    let mut document = document;
    for name in outer {
        let Ok(inner) = document.get_document(name) else { return 0 };
        document = inner;
    }
    document.get_str(last).map_or(0, |text| text.len() as u64)
}

fn scan(document: &Document) -> u64 {
    let of = |value: &Bson| match value {
        Bson::String(text) => text.len() as u64,
        Bson::Document(inner) => scan(inner),
        _ => 0,
    };
    document.values().map(of).sum()
}
