//! The chunks that a transaction names and doesn't bring, with all that they lead to.
//!
//! Members put them before they apply the transaction, and what is put must lead to what is there
//! ([`crate::overlay::pending`], invariant 4). So a chunk that the transaction brings is among them
//! too, where one of the others leads to it.

use std::collections::HashSet;

use frond_store::{Chunk, ChunkHash, ChunkStore};
use frond_tree::Content;

use super::ENTRY_BYTES_MAX;
use crate::error::EngineError;
use crate::log::record::Record;

/// So many are read at once.
const BATCH: usize = 256;

/// Reads them, each once.
///
/// # Errors
/// [`EngineError::TooLargeForSet`] if they are more than an entry carries; what a read fails with.
pub(crate) fn foreign_chunks(
    record: &Record,
    store: &dyn ChunkStore,
) -> Result<Vec<Chunk>, EngineError> {
    let own = |hash: ChunkHash| {
        let place = record.chunks.binary_search_by_key(&hash, Chunk::hash).ok();
        place.map(|place| &record.chunks[place])
    };
    let mut open: Vec<ChunkHash> = record.chunks.iter().flat_map(Chunk::references).collect();
    let values = record.writes.iter().flat_map(|(_, entries)| entries);
    open.extend(values.filter_map(|(_, value)| match value.as_ref()?.content {
        Content::Inline(_) => None,
        Content::Chunk { hash, .. } | Content::Sequence { root: hash, .. } => Some(hash),
    }));
    open.retain(|hash| own(*hash).is_none());
    open.extend(record.bases.iter().filter_map(|(_, base)| Some((*base)?.root)));
    // Where a chunk is made of another, all that one refers to is where the value before is.
    let origins = store.get_many(&record.origins())?;
    let mut known: HashSet<ChunkHash> = origins.iter().flat_map(Chunk::references).collect();
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut bytes = 0;
    while !open.is_empty() {
        let from = open.len().saturating_sub(BATCH);
        let mut wanted: Vec<ChunkHash> = open.drain(from..).collect();
        wanted.retain(|hash| known.insert(*hash));
        let mut found: Vec<Chunk> = wanted.iter().filter_map(|hash| own(*hash).cloned()).collect();
        wanted.retain(|hash| own(*hash).is_none());
        found.extend(store.get_many(&wanted)?);
        for chunk in found {
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
