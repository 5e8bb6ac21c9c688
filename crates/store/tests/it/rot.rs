//! Bits of packs and of the manifest turn over, and back, while chunks are put, some of them
//! again, packs are sealed,
//! and the power fails at any operation: what was synced since the last bit turned over is there.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use frond_store::io::Disk;
use frond_store::{Chunk, ChunkStore, GarbageCollection, GcOptions, MANIFEST_NAMES, StoreError};
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{Random, SimDisk};

use crate::{assert_stored, blob, hashes, open};

const STEP_COUNT: usize = 60;

/// Bytes whose bits turned over, by file and place: what was written, and what is there now.
type Flips = BTreeMap<(String, usize), (u8, u8)>;

fn rot(disk: &SimDisk, flips: &mut Flips, random: &mut Random) {
    let mut names = disk.list().unwrap();
    names.retain(|name| {
        name.ends_with(".pack") && disk.contents(name).is_some_and(|it| !it.is_empty())
    });
    if !names.is_empty() {
        let name = random.choose(&names).clone();
        let at = random.below(disk.contents(&name).unwrap().len());
        let (now, bit) = (disk.contents(&name).unwrap()[at], random.below(8));
        disk.flip_bit(&name, at as u64 * 8 + bit as u64);
        flips.entry((name, at)).or_insert((now, now)).1 = now ^ (1 << bit);
    }
}

/// Turns a bit of one copy of the manifest over, unless one that turned over in `rotten`, the
/// other,
/// is still there.
fn rot_manifest(disk: &SimDisk, rotten: &mut Option<(String, Vec<u8>)>, random: &mut Random) {
    rotten.take_if(|(name, bytes)| disk.contents(name).as_ref() != Some(bytes));
    let all_there = MANIFEST_NAMES.iter().all(|name| disk.contents(name).is_some());
    if rotten.is_some() || !all_there {
        return;
    }
    let name = *random.choose(&MANIFEST_NAMES);
    disk.flip_bit(name, random.below(disk.contents(name).unwrap().len() * 8) as u64);
    *rotten = Some((name.to_owned(), disk.contents(name).unwrap()));
}

/// Makes all bits right again.
fn mend(disk: &SimDisk, flips: &mut Flips) {
    for ((name, at), (before, _)) in std::mem::take(flips) {
        let mut bytes = disk.contents(&name).unwrap();
        bytes[at] = before;
        disk.set_contents(&name, &bytes);
    }
}

/// Keeps all of `chunks`: it seals packs, and moves some chunks.
fn collect(store: &dyn ChunkStore, chunks: &[Chunk]) -> Result<(), StoreError> {
    let collection = &mut GarbageCollection {
        roots: &mut || Ok(hashes(chunks)),
        throttle: &mut |_| ControlFlow::Continue(()),
        options: GcOptions { live_percent_min: 50, dry_run: false, pack_history: false },
    };
    store.maintenance().collect(collection).map(drop)
}

/// All of `kept` is there, unless the power fails meanwhile.
fn check(store: &dyn ChunkStore, disk: &SimDisk, kept: &[Chunk]) {
    for chunk in kept {
        match store.get(chunk.hash()) {
            Ok(found) => assert_eq!(found, *chunk),
            // Healing writes.
            Err(error) => return assert!(disk.is_dead(), "{error:?}"),
        }
    }
}

#[test]
fn syncs_after_damage_survive_any_crash() {
    let mut counts = Counts::default();
    for_seeds(1500, |random| run(random, &mut counts));
    let Counts { crashes, sealed } = counts;
    assert_met("crashes", crashes, 100);
    assert_met("sealed packs", sealed, 10);
}

/// In these an opening takes the damaged one of two copies that were put after each other, and a
/// collection follows.
#[test]
fn a_collection_keeps_the_whole_one_of_two_copies() {
    for seed in [14_891, 72_735, 2_670_300_446] {
        run(Random::new(seed), &mut Counts::default());
    }
}

/// The counts of events, so that a run in which nothing happens is noticed.
#[derive(Default, Debug)]
struct Counts {
    crashes: usize,
    sealed: usize,
}

fn run(mut random: Random, counts: &mut Counts) {
    let mut disk = SimDisk::new(random.next());
    let mut store = open(&disk).unwrap();
    // The chunks that a sync acknowledged since the last bit was flipped.
    let mut kept: Vec<Chunk> = Vec::new();
    let (mut flips, mut all): (Flips, Vec<Chunk>) = Default::default();
    let mut rotten = None;
    for _ in 0..STEP_COUNT {
        // Bytes that a crash took away, or an opening cut off, aren't repaired.
        flips.retain(|(name, at), (_, now)| {
            disk.contents(name).is_some_and(|bytes| bytes.get(*at) == Some(now))
        });
        match random.below(13) {
            12 => rot_manifest(&disk, &mut rotten, &mut random),
            0 | 1 => {
                rot(&disk, &mut flips, &mut random);
                kept.clear();
            }
            2 | 3 => {
                // Sealing a pack is interrupted more often than putting.
                if random.one_in(2) {
                    disk.crash_after(random.below(12) as u64);
                }
                counts.sealed += usize::from(collect(&*store, &kept).is_ok());
            }
            4 => disk.crash_after(random.below(12) as u64),
            5 => {
                disk = disk.kill();
                if random.one_in(2) {
                    mend(&disk, &mut flips);
                }
                drop(store);
                store = open(&disk).unwrap();
            }
            _ => {
                let count = 1 + random.below(3);
                let new: Vec<Chunk> = (0..count)
                    .map(|_| match random.one_in(3) && !all.is_empty() {
                        true => random.choose(&all).clone(),
                        false => {
                            let bytes = 16 + random.below(400);
                            blob(&random.bytes(bytes))
                        }
                    })
                    .collect();
                all.extend(new.iter().cloned());
                if store.put_many(&new).and_then(|()| store.sync()).is_ok() {
                    kept.extend(new);
                }
            }
        }
        if random.one_in(4) {
            check(&*store, &disk, &kept);
        }
        if disk.is_dead() {
            counts.crashes += 1;
            disk = disk.crash();
            drop(store);
            store = open(&disk).unwrap();
        }
    }
    counts.crashes += 1;
    disk = disk.crash();
    drop(store);
    assert_stored(&*open(&disk).unwrap(), &kept);
}
