//! Bits of packs turn over while chunks are put and synced, packs are sealed, and the power fails at any
//! operation: what was synced since the last bit turned over is there.

use frond_store::io::Disk;
use frond_store::{Chunk, ChunkStore, GarbageCollection, GcOptions, StoreError};
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};
use std::ops::ControlFlow;

use crate::{assert_stored, blob, hashes, open};

const STEP_COUNT: usize = 60;

fn rot(disk: &SimDisk, random: &mut Random) {
    let mut names = disk.list().unwrap();
    names.retain(|name| {
        name.ends_with(".pack") && disk.contents(name).is_some_and(|it| it.len() > 0)
    });
    if !names.is_empty() {
        let name = random.choose(&names).clone();
        let bits = disk.contents(&name).unwrap().len() * 8;
        disk.flip_bit(&name, random.below(bits) as u64);
    }
}

/// Keeps all of `chunks`: it seals packs, and moves some chunks.
fn collect(store: &dyn ChunkStore, chunks: &[Chunk]) -> Result<(), StoreError> {
    let collection = &mut GarbageCollection {
        roots: &mut || Ok(hashes(chunks)),
        pace: &mut |_| ControlFlow::Continue(()),
        options: GcOptions { live_percent_min: 50, dry_run: false, pack_history: false },
    };
    store.collect(collection).map(drop)
}

#[test]
fn what_is_synced_after_damage_outlives_any_crash() {
    let (mut crashes, mut sealed) = (0, 0);
    for_seeds(1500, |mut random| {
        let mut disk = SimDisk::new(random.next());
        let mut store = open(&disk).unwrap();
        // What a sync acknowledged since the last bit turned over.
        let mut kept: Vec<Chunk> = Vec::new();
        for _ in 0..STEP_COUNT {
            match random.below(12) {
                0 | 1 => {
                    rot(&disk, &mut random);
                    kept.clear();
                }
                2 | 3 => {
                    // What seals a pack is cut short more often than what puts.
                    if random.one_in(2) {
                        disk.crash_after(random.below(12) as u64);
                    }
                    sealed += usize::from(collect(&*store, &kept).is_ok());
                }
                4 => disk.crash_after(random.below(12) as u64),
                5 => {
                    disk = disk.kill();
                    drop(store);
                    store = open(&disk).unwrap();
                }
                _ => {
                    let count = 1 + random.below(3);
                    let new: Vec<Chunk> = (0..count)
                        .map(|_| {
                            let bytes = 16 + random.below(400);
                            blob(&random.bytes(bytes))
                        })
                        .collect();
                    if store.put_many(&new).and_then(|()| store.sync()).is_ok() {
                        kept.extend(new);
                    }
                }
            }
            if disk.is_dead() {
                crashes += 1;
                disk = disk.crash();
                drop(store);
                store = open(&disk).unwrap();
            }
            if random.one_in(4) {
                assert_stored(&*store, &kept);
            }
        }
        disk = disk.crash();
        drop(store);
        assert_stored(&*open(&disk).unwrap(), &kept);
    });
    let is_whole_run = std::env::var("FROND_SEED").is_err();
    assert!(!is_whole_run || (crashes > 100 && sealed > 10), "{crashes} {sealed}");
}
