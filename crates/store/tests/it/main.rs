//! The store from outside: one contract on every implementation, then what only packs on a disk can
//! suffer: crashes, damage, a full disk, failing syncs, other versions, random bytes. At last, the
//! bytes themselves, against the documents of the format.

#![allow(clippy::disallowed_methods)]

mod ahead;
mod bucket;
mod collect;
mod contract;
mod copies;
mod crash;
mod damage;
mod faults;
mod golden;
mod heal;
mod many;
mod new_directory;
mod older;
mod reads;
mod rot;
mod scratch;
mod slots;
mod tier_sender;
mod tiered;
mod watched;

use std::sync::Arc;

use frond_store::io::Disk;
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::{Chunk, ChunkHash, ChunkKind, ChunkStore, StoreError};
use frond_testkit::{Random, SimDisk};

/// Small packs, so that tests cross from one to the next, a cache of a few chunks, and keys that
/// mostly lie in their file.
const SMALL: LocalOptions = LocalOptions {
    cache_bytes: 4 << 10,
    index_cache_bytes: 4 << 10,
    keys_memory_max: 200,
    slow_read_micros: 0,
    pack_bytes_target: 2 << 10,
    reserve_bytes: 0,
};

fn open(disk: &SimDisk) -> Result<Arc<LocalStore>, StoreError> {
    LocalStore::open(&disk.machine(), SMALL)
}

fn blob(payload: &[u8]) -> Chunk {
    Chunk::new(ChunkKind::Blob, &[], payload)
}

/// Chunks with random payloads, some compressible, some not, some with references.
fn random_chunks(random: &mut Random, count: usize) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    for _ in 0..count {
        let bytes = random.below(600);
        let payload =
            if random.one_in(2) { random.bytes(bytes) } else { vec![random.next() as u8; bytes] };
        let references: Vec<ChunkHash> =
            chunks.iter().take(random.below(3)).map(Chunk::hash).collect();
        chunks.push(Chunk::new(ChunkKind::MapNode, &references, &payload));
    }
    chunks
}

fn pack_bytes(disk: &SimDisk) -> u64 {
    let names = disk.list().unwrap().into_iter().filter(|name| name.ends_with(".pack"));
    names.map(|name| disk.contents(&name).unwrap().len() as u64).sum()
}

fn hashes(chunks: &[Chunk]) -> Vec<ChunkHash> {
    chunks.iter().map(Chunk::hash).collect()
}

/// Checks that every chunk of `chunks` is there and is what was put.
fn assert_stored(store: &dyn ChunkStore, chunks: &[Chunk]) {
    assert_eq!(store.get_many(&hashes(chunks)).unwrap(), chunks);
    for chunk in chunks {
        assert_eq!(store.get(chunk.hash()).unwrap(), *chunk);
    }
}
