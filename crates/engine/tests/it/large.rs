//! Large values: a head that refers to chunks which each refer to two parts, so that what lies
//! below a chunk that didn't change isn't named by those that did.

use bytes::Bytes;
use frond_engine::Transaction;
use frond_store::{Chunk, ChunkKind, ChunkStore};
use frond_tree::{Content, Value};

/// The parts' content.
pub type Parts = Vec<Bytes>;

/// Bytes of the head's payload.
const HEAD_BYTES: usize = 250;

/// The chunks of a value, its head the last.
pub fn chunks_of(parts: &[Bytes]) -> Vec<Chunk> {
    let above = |chunks: &[Chunk], payload: &[u8]| {
        let names: Vec<_> = chunks.iter().map(Chunk::hash).collect();
        Chunk::new(ChunkKind::Blob, &names, payload)
    };
    let mut chunks: Vec<Chunk> =
        parts.iter().map(|part| Chunk::new(ChunkKind::Blob, &[], part)).collect();
    let pairs: Vec<Chunk> = chunks.chunks(2).map(|pair| above(pair, &[3; 200])).collect();
    let head = above(&pairs, &[7; HEAD_BYTES]);
    chunks.extend(pairs);
    chunks.push(head);
    chunks
}

/// The value, which refers to its head.
pub fn value_of(parts: &[Bytes]) -> Value {
    let hash = chunks_of(parts).pop().unwrap().hash();
    Value { flags: 1, content: Content::Chunk { hash, bytes: HEAD_BYTES as u64 } }
}

/// Has a transaction bring the chunks of a value but for those that `before` has, and returns it.
pub fn brought(transaction: &mut Transaction, parts: &[Bytes], before: Option<&Parts>) -> Value {
    let known: Vec<_> =
        before.iter().flat_map(|parts| chunks_of(parts)).map(|chunk| chunk.hash()).collect();
    let mut new = chunks_of(parts);
    new.retain(|chunk| !known.contains(&chunk.hash()));
    transaction.put_chunks(&new);
    value_of(parts)
}

/// Reads all chunks of a value; `None` if it isn't large.
pub fn read(store: &dyn ChunkStore, value: &Value) -> Option<Parts> {
    let Value { flags: 1, content: Content::Chunk { hash, .. } } = value else { return None };
    let below = |hash| store.get(hash).unwrap().references().collect::<Vec<_>>();
    let parts = below(*hash).into_iter().flat_map(below);
    Some(parts.map(|hash| store.get(hash).unwrap().payload_bytes()).collect())
}
