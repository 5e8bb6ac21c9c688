//! Goal: reads from a bucket take few requests: larger ones for sequential readers, one for two
//! readers that miss the same part, one more for a damaged reply, and packs' indexes together.
//! Method: requests to a simulated bucket are counted.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use frond_store::local::{LocalOptions, LocalStore};
use frond_store::{Chunk, ChunkKind, ChunkStore, Maintenance};
use frond_testkit::{Random, SimDepot, SimDisk};

use crate::tiered::{Node, swap};
use crate::{SMALL, assert_stored, hashes, open, random_chunks};

/// Chunks in the order in which they lie in a pack: some megabytes that don't compress.
fn large_chunks(random: &mut Random, count: usize) -> Vec<Chunk> {
    let chunk = |_| {
        let payload: Vec<u8> = (0..1024).flat_map(|_| random.next().to_le_bytes()).collect();
        Chunk::new(ChunkKind::Blob, &[], &payload)
    };
    (0..count).map(chunk).collect()
}

/// A store whose packs lie in the bucket, in one pack if `options` say so.
fn sent(node: &Node, chunks: &[Chunk]) -> Arc<LocalStore> {
    let store = node.open().unwrap();
    store.put_many(chunks).unwrap();
    swap(&store, chunks[0].hash()).unwrap();
    store
}

fn gets(store: &LocalStore) -> u64 {
    store.tier_state().unwrap().requests.gets
}

fn one_pack(seed: u64, bucket: &SimDepot) -> Node {
    let options = LocalOptions { pack_bytes_target: 64 << 20, ..SMALL };
    Node { options, cache_bytes: 64 << 20, ..Node::new(seed, bucket) }
}

#[test]
fn sequential_readers_read_ahead() {
    let bucket = SimDepot::new(1);
    let chunks = large_chunks(&mut Random::fresh(), 800);
    let store = sent(&one_pack(2, &bucket), &chunks);
    let (before, bytes) = (gets(&store), bucket.bytes_read());
    for chunk in &chunks {
        assert_stored(&*store, std::slice::from_ref(chunk));
    }
    let (requests, read) = (gets(&store) - before, bucket.bytes_read() - bytes);
    // 6.4 MB are a hundred extents.
    assert!((5..=14).contains(&requests), "{requests} requests for {read} bytes");
    assert!(read < 7 << 20, "{read} bytes were read");
}

#[test]
fn two_who_miss_the_same_part_fetch_it_once() {
    let bucket = SimDepot::new(3);
    let chunks = large_chunks(&mut Random::fresh(), 20);
    let store = sent(&one_pack(4, &bucket), &chunks);
    let before = gets(&store);
    bucket.set_silent(true);
    thread::scope(|scope| {
        for chunk in &chunks[..6] {
            let store = &store;
            scope.spawn(move || assert_stored(&**store, std::slice::from_ref(chunk)));
        }
        thread::sleep(Duration::from_millis(300));
        bucket.set_silent(false);
    });
    assert!(gets(&store) - before <= 2, "{} requests", gets(&store) - before);
}

#[test]
fn damaged_replies_are_fetched_again_before_they_count_as_damage() {
    let bucket = SimDepot::new(5);
    let chunks = large_chunks(&mut Random::fresh(), 4);
    let store = sent(&one_pack(6, &bucket), &chunks);
    bucket.garble(1);
    assert_stored(&*store, &chunks);
    // A put of a chunk that is there looks at it, too.
    let bucket = SimDepot::new(7);
    let looked_at = sent(&one_pack(8, &bucket), &chunks);
    bucket.garble(1);
    looked_at.put_many(&chunks).unwrap();
    let found = [&store, &looked_at].map(|store| store.counters().damages_found);
    assert_eq!(found, [0, 0]);
    // Chunks that are damaged there stay so.
    let bucket = SimDepot::new(9);
    let store = sent(&one_pack(10, &bucket), &chunks);
    let name = bucket.objects().into_keys().find(|name| name.starts_with("packs/")).unwrap();
    for byte in (100..30_000).step_by(1000) {
        bucket.flip_bit(&name, 8 * byte);
    }
    assert!(chunks.iter().any(|chunk| store.get(chunk.hash()).is_err()));
    assert!(!store.damages().is_empty());
}

#[test]
fn a_takeover_fetches_indexes_together() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(11);
    let node = Node::new(12, &bucket);
    let store = node.open().unwrap();
    let mut chunks = Vec::new();
    for _ in 0..60 {
        let some = random_chunks(&mut random, 8);
        store.put_many(&some).unwrap();
        swap(&store, some[0].hash()).unwrap();
        chunks.extend(some);
    }
    let packs = bucket.objects().keys().filter(|name| name.starts_with("packs/")).count();
    let mut other = Node::new(13, &bucket);
    other.take_over = true;
    let taken = other.open().unwrap();
    let calls = other.bucket.calls();
    assert!(packs > 20 && calls <= 8, "{calls} calls for {packs} packs");
    assert_stored(&*taken, &chunks);
}

#[test]
fn concurrent_reads_of_one_extent_fetch_it_once() {
    let disk = SimDisk::new(0);
    let chunks = random_chunks(&mut Random::new(1), 3);
    let store = open(&disk).unwrap();
    store.put_many(&chunks).unwrap();
    store.sync().unwrap();
    drop(store);
    let store = open(&disk).unwrap();
    let twice = [chunks.clone(), chunks].concat();
    assert_eq!(store.get_many(&hashes(&twice)).unwrap(), twice);
    assert_eq!(store.counters().chunks_fetched, 3);
}
