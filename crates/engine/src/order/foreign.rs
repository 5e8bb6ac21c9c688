//! The chunks that a transaction names and doesn't bring, with all that they lead to.

use std::collections::HashSet;

use frond_store::{Chunk, ChunkHash, ChunkStore};
use frond_tree::{Content, Value};

use super::ENTRY_BYTES_MAX;
use crate::error::EngineError;
use crate::ids::TreeId;
use crate::log::record::Record;

/// So many are read at once.
const BATCH: usize = 256;

/// Reads them, each once, those that others refer to after these. `before` gives the value that a
/// key had before the transaction.
///
/// # Errors
/// [`EngineError::TooLargeForSet`] if they are more than an entry carries; what a read fails with.
pub(crate) fn foreign_chunks(
    record: &Record,
    store: &dyn ChunkStore,
    before: impl Fn(TreeId, &[u8]) -> Result<Option<Value>, EngineError>,
) -> Result<Vec<Chunk>, EngineError> {
    let mut known: HashSet<ChunkHash> = record.chunks.iter().map(Chunk::hash).collect();
    known.extend(kept(record, store, before)?);
    let mut open: Vec<ChunkHash> = record.chunks.iter().flat_map(Chunk::references).collect();
    // Of what others don't have, they can make nothing.
    open.extend(record.origins());
    open.extend(record.bases.iter().filter_map(|(_, base)| Some((*base)?.root)));
    let values = record.writes.iter().flat_map(|(_, entries)| entries);
    open.extend(values.filter_map(|(_, value)| chunk_of(value.as_ref()?)));
    let mut chunks = Vec::new();
    let mut bytes = 0;
    while !open.is_empty() {
        let from = open.len().saturating_sub(BATCH);
        let wanted: Vec<ChunkHash> =
            open.drain(from..).filter(|hash| known.insert(*hash)).collect();
        for chunk in store.get_many(&wanted)? {
            bytes += chunk.encoded().len();
            if ENTRY_BYTES_MAX < bytes {
                return Err(EngineError::TooLargeForSet { max: ENTRY_BYTES_MAX as u64 });
            }
            open.extend(chunk.references());
            chunks.push(chunk);
        }
    }
    Ok(chunks)
}

/// What a value lies in.
fn chunk_of(value: &Value) -> Option<ChunkHash> {
    match value.content {
        Content::Inline(_) => None,
        Content::Chunk { hash, .. } | Content::Sequence { root: hash, .. } => Some(hash),
    }
}

/// Of the values before, what chunks refer to of which the record's are made: whoever has the value
/// has it. A chunk may also be made of one that the transaction itself has made and replaced, which
/// no other member has.
fn kept(
    record: &Record,
    store: &dyn ChunkStore,
    before: impl Fn(TreeId, &[u8]) -> Result<Option<Value>, EngineError>,
) -> Result<HashSet<ChunkHash>, EngineError> {
    let origins: HashSet<ChunkHash> = record.origins().into_iter().collect();
    let mut kept = HashSet::new();
    if origins.is_empty() {
        return Ok(kept);
    }
    let mut open = Vec::new();
    for (tree, entries) in &record.writes {
        for (key, value) in entries {
            if value.as_ref().and_then(chunk_of).is_some() {
                open.extend(before(*tree, key)?.as_ref().and_then(chunk_of));
            }
        }
    }
    while !open.is_empty() {
        kept.extend(open.iter().copied());
        open.retain(|hash| origins.contains(hash));
        let chunks = store.get_many(&open)?;
        open = chunks.iter().flat_map(Chunk::references).filter(|it| !kept.contains(it)).collect();
    }
    Ok(kept)
}
