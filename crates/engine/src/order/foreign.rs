//! The chunks that a transaction names and doesn't bring, with all that they lead to.

use std::collections::HashSet;

use frond_store::{Chunk, ChunkHash, ChunkStore};
use frond_tree::Content;

use super::ENTRY_BYTES_MAX;
use crate::error::EngineError;
use crate::log::record::Record;

/// So many are read at once.
const BATCH: usize = 256;

/// Reads them, each once, those that others refer to after these.
///
/// # Errors
/// [`EngineError::TooLargeForSet`] if they are more than an entry carries; what a read fails with.
pub(crate) fn foreign_chunks(
    record: &Record,
    store: &dyn ChunkStore,
) -> Result<Vec<Chunk>, EngineError> {
    let mut known: HashSet<ChunkHash> = record.chunks.iter().map(Chunk::hash).collect();
    // Where a chunk is made of another, all that one refers to is where the value before is.
    for origin in store.get_many(&record.origins())? {
        known.extend(origin.references());
    }
    let mut open: Vec<ChunkHash> = record.chunks.iter().flat_map(Chunk::references).collect();
    open.extend(record.bases.iter().filter_map(|(_, base)| Some((*base)?.root)));
    let values = record.writes.iter().flat_map(|(_, entries)| entries);
    open.extend(values.filter_map(|(_, value)| match value.as_ref()?.content {
        Content::Inline(_) => None,
        Content::Chunk { hash, .. } | Content::Sequence { root: hash, .. } => Some(hash),
    }));
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
