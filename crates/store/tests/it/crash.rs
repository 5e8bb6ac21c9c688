//! The power fails at every single operation of a run; what is found afterwards keeps the promises.
//!
//! Method: run a seeded script once to count its operations, then once more for each of them with
//! the power failing there. The script notes what was acknowledged. After the crash the store is
//! opened (with the power failing at a random operation of *that* now and then), compared with the
//! notes, and used again.

use std::collections::BTreeMap;

use frond_store::io::Disk;
use frond_store::{Chunk, ChunkHash, ChunkKind, ChunkStore, MANIFEST_NAMES, StoreError};
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{Random, SimDisk};

use crate::{assert_stored, open, random_chunks};

/// The writes that the store has acknowledged so far.
#[derive(Default)]
struct LiveSet {
    put: Vec<Chunk>,
    durable: Vec<Chunk>,
    root: Option<ChunkHash>,
    /// The root of a swap that has begun and not been answered.
    root_wanted: Option<Option<ChunkHash>>,
}

/// Puts, syncs, swaps and opens again, until the end or the first error.
fn script(disk: &SimDisk, mut random: Random, live_set: &mut LiveSet) -> Result<(), StoreError> {
    let mut store = open(disk)?;
    for _ in 0..10 {
        match random.below(6) {
            0 => {
                drop(store);
                store = open(disk)?;
            }
            1 => {
                store.sync()?;
                live_set.durable = live_set.put.clone();
            }
            2 if !live_set.put.is_empty() => {
                let new = Some(random.choose(&live_set.put).hash());
                live_set.root_wanted = Some(new);
                store.swap_root("r", live_set.root, new)?;
                live_set.root_wanted = None;
                live_set.root = new;
                live_set.durable = live_set.put.clone();
            }
            _ => {
                let count = 1 + random.below(6);
                let chunks = random_chunks(&mut random, count);
                store.put_many(&chunks)?;
                live_set.put.extend(chunks);
            }
        }
    }
    Ok(())
}

/// Damages one of the manifest's copies, if there are both: either has all that was acknowledged,
/// whatever the power cut came between.
fn harm_manifest(disk: &SimDisk, random: &mut Random) {
    let [one, two] = MANIFEST_NAMES.map(|name| disk.contents(name));
    let (Some(one), Some(two)) = (one, two) else { return };
    let position = random.below(2);
    let (name, bytes) = (MANIFEST_NAMES[position], [one, two][position].len());
    match random.below(3) {
        0 => disk.remove(name).unwrap(),
        1 => disk.set_contents(name, &disk.contents(name).unwrap()[..random.below(bytes)]),
        _ => disk.flip_bit(name, random.below(bytes * 8) as u64),
    }
}

/// Compares what a restart finds with the notes, and uses the store.
fn check(disk: &SimDisk, live_set: &LiveSet, random: &mut Random) {
    if random.one_in(2) {
        harm_manifest(disk, random);
    }
    let store = open(disk).expect("a power cut needs no repair");
    let root = store.root("r").unwrap();
    assert!(
        root == live_set.root || Some(root) == live_set.root_wanted,
        "old or new, nothing else"
    );
    if let Some(root) = root {
        store.get(root).expect("a root's chunk is durable");
    }
    assert_stored(&*store, &live_set.durable);
    let by_name: BTreeMap<_, _> = live_set.put.iter().map(|chunk| (chunk.hash(), chunk)).collect();
    for hash in store.chunk_hashes().unwrap() {
        let chunk = store.get(hash).unwrap();
        assert!(by_name.get(&hash).is_none_or(|put| **put == chunk));
    }
    assert!(store.verify(&mut |_| ()).unwrap().is_empty());
    let packs = disk.list().unwrap().into_iter().filter(|name| name.ends_with(".pack"));
    let bytes = packs.map(|name| disk.contents(&name).unwrap().len() as u64).sum();
    assert_eq!(store.counters().bytes_stored, bytes, "nothing torn and nothing unknown is left");
    // Chunks that a crash may have left are put again, so that wrong answers of `has` show.
    let more = random_chunks(random, 3);
    store.put_many(&live_set.put).unwrap();
    store.put_many(&more).unwrap();
    store.sync().unwrap();
    let after = disk.crash();
    let store = open(&after).unwrap();
    assert_stored(&*store, &live_set.put);
    assert_stored(&*store, &more);
}

/// Restarts after a crash, crashing again at a random operation of the opening now and then.
fn restart(disk: &SimDisk, random: &mut Random) -> SimDisk {
    let mut after = disk.crash();
    while random.one_in(3) {
        after.crash_after(random.below(11) as u64);
        let _ = open(&after);
        after = after.crash();
    }
    after
}

#[test]
fn a_power_cut_at_every_operation_keeps_what_was_acknowledged() {
    for_seeds(300, |mut random| {
        let seed = random.next();
        let whole = SimDisk::new(seed);
        script(&whole, Random::new(seed), &mut LiveSet::default()).unwrap();
        for crash_point in 0..=whole.operations() {
            let disk = SimDisk::new(seed);
            disk.crash_after(crash_point);
            let mut live_set = LiveSet::default();
            let result = script(&disk, Random::new(seed), &mut live_set);
            assert!(result.is_ok() || crash_point < whole.operations());
            let after = restart(&disk, &mut random);
            check(&after, &live_set, &mut random);
        }
    });
}

#[test]
fn a_killed_process_loses_nothing_that_was_listed_or_synced() {
    for_seeds(100, |mut random| {
        let seed = random.next();
        let whole = SimDisk::new(seed);
        script(&whole, Random::new(seed), &mut LiveSet::default()).unwrap();
        for kill_point in 0..=whole.operations() {
            let disk = SimDisk::new(seed);
            disk.crash_after(kill_point);
            let mut live_set = LiveSet::default();
            let _ = script(&disk, Random::new(seed), &mut live_set);
            check(&disk.kill(), &live_set, &mut random);
        }
    });
}

/// After a failed sync the page cache shows chunks that the disk doesn't have, and calls them
/// clean. A process started later finds them, learns that it must put them again, and syncs.
#[test]
fn a_failed_sync_before_a_restart_can_not_fool_the_next_process() {
    for_seeds(200, |mut random| {
        let disk = SimDisk::new(random.next());
        let chunks = random_chunks(&mut random, 4);
        {
            let store = open(&disk).unwrap();
            store.put_many(&chunks[..1]).unwrap();
            store.sync().unwrap();
            store.put_many(&chunks[1..]).unwrap();
            disk.fail_sync_after(0);
            store.sync().unwrap_err();
        }
        let disk = disk.kill();
        {
            let store = open(&disk).unwrap();
            store.put_many(&chunks).unwrap();
            store.sync().unwrap();
        }
        assert_stored(&*open(&disk.crash()).unwrap(), &chunks);
    });
}

/// A crash leaves a chunk, and takes what it refers to. Both are put again: the one is durable
/// then, the other isn't.
#[test]
fn a_tree_that_a_crash_tore_is_synced_only_with_what_is_put_again_below_it() {
    let mut incomplete = 0;
    for_seeds(300, |mut random| {
        let disk = SimDisk::new(random.next());
        let store = open(&disk).unwrap();
        store.put_many(&random_chunks(&mut random, 1)).unwrap();
        store.sync().unwrap();
        let below = Chunk::new(ChunkKind::Blob, &[], &random.bytes(300));
        let above = Chunk::new(ChunkKind::Blob, &[below.hash()], b"above");
        for chunk in [&below, &above] {
            store.put_many(std::slice::from_ref(chunk)).unwrap();
        }
        let disk = disk.crash();
        drop(store);
        let store = open(&disk).unwrap();
        let there = store.has_many(&[below.hash(), above.hash()]).unwrap();
        incomplete += u32::from(there == [false, true]);
        for chunk in [&below, &above] {
            store.put_many(std::slice::from_ref(chunk)).unwrap();
        }
        store.sync_these(&[above.hash()]).unwrap();
        assert_stored(&*open(&disk.crash()).unwrap(), &[below, above]);
    });
    assert_met("chunks without what they refer to", incomplete, 1);
}

/// A frame lacks its last bytes, and what is put behind it begins with just these: it isn't taken
/// for whole then, and hides nothing.
#[test]
fn a_torn_frame_is_not_completed_by_later_puts() {
    const PACK: &str = "00000000.pack";
    const FIRST_FRAME: usize = 16;
    let mut random = Random::new(3);
    let behind = Chunk::new(ChunkKind::Blob, &[], &random.bytes(300));
    for count in 1..4 {
        let disk = SimDisk::new(1);
        let store = open(&disk).unwrap();
        store.put_many(std::slice::from_ref(&behind)).unwrap();
        let begins = disk.contents(PACK).unwrap()[FIRST_FRAME..][..count].to_vec();
        drop(store);

        let disk = SimDisk::new(2);
        let store = open(&disk).unwrap();
        let first = Chunk::new(ChunkKind::Blob, &[], b"durable");
        store.put_many(std::slice::from_ref(&first)).unwrap();
        store.sync().unwrap();
        let cut = Chunk::new(ChunkKind::Blob, &[], &[random.bytes(300), begins.clone()].concat());
        store.put_many(&[cut]).unwrap();
        drop(store);
        let whole = disk.contents(PACK).unwrap();
        assert!(whole.ends_with(&begins));
        disk.set_contents(PACK, &whole[..whole.len() - count]);

        let store = open(&disk).unwrap();
        store.put_many(std::slice::from_ref(&behind)).unwrap();
        store.sync().unwrap();
        let disk = disk.crash();
        drop(store);
        for _ in 0..2 {
            let store = open(&disk).unwrap();
            assert_stored(&*store, &[first.clone(), behind.clone()]);
            assert!(store.verify(&mut |_| ()).unwrap().is_empty());
        }
    }
}
