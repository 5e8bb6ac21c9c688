//! Reading ahead: whatever comes along with a chunk is what was asked for, in its order; damage is
//! named; and a scan leaves the cache of others alone.

use std::ops::ControlFlow;

use frond_store::local::{LocalOptions, LocalStore};
use frond_store::memory::MemoryStore;
use frond_store::{
    Chunk, ChunkHash, ChunkStore, GarbageCollection, GcOptions, Maintenance, ReadOptions,
    StoreError,
};
use frond_testkit::SimDisk;
use frond_testkit::random::for_seeds;

use crate::{SMALL, blob, hashes, open, random_chunks};

/// Passes by chunks; also how many came with each reading.
fn pass(
    store: &dyn ChunkStore,
    hashes: &[ChunkHash],
) -> Result<(Vec<Chunk>, Vec<usize>), StoreError> {
    let (mut chunks, mut counts) = (Vec::new(), Vec::new());
    while let Some(left) = hashes.get(chunks.len()..).filter(|left| !left.is_empty()) {
        let ahead = store.prefetch(left)?;
        assert!((1..=left.len()).contains(&ahead.len()));
        counts.push(ahead.len());
        for ahead in ahead {
            chunks.push(store.open_prefetched(ahead, ReadOptions::default())?);
        }
    }
    Ok((chunks, counts))
}

/// Chunks of one pack, put one after the other; nothing stays in memory.
fn lying_together(disk: &SimDisk, count: u32) -> (std::sync::Arc<LocalStore>, Vec<Chunk>) {
    let options = LocalOptions { cache_bytes: 0, pack_bytes_target: 1 << 20, ..SMALL };
    let store = LocalStore::open(&disk.machine(), options).unwrap();
    let chunks: Vec<Chunk> = (0..count).map(|number| blob(&[number as u8 + 50; 300])).collect();
    store.put_many(&chunks).unwrap();
    (store, chunks)
}

#[test]
fn chunks_that_lie_together_come_together() {
    let (store, chunks) = lying_together(&SimDisk::new(1), 20);
    let all = hashes(&chunks);
    assert_eq!(pass(&*store, &all).unwrap(), (chunks.clone(), vec![20]));
    assert_eq!(store.counters().chunks_fetched, 20);
    // Some of them, others between; and backwards, where none lies behind the other.
    let some: Vec<Chunk> = chunks.iter().skip(3).step_by(2).take(4).cloned().collect();
    assert_eq!(pass(&*store, &hashes(&some)).unwrap().0, some);
    let back: Vec<Chunk> = chunks.iter().rev().cloned().collect();
    assert_eq!(pass(&*store, &hashes(&back)).unwrap(), (back, vec![1; 20]));
    assert!(store.prefetch(&[]).unwrap().is_empty());
}

#[test]
fn whatever_is_asked_for_comes_in_its_order() {
    for_seeds(30, |mut random| {
        let disk = SimDisk::new(random.next());
        let chunks = random_chunks(&mut random, 60);
        let mut store = open(&disk).unwrap();
        for some in chunks.chunks(7) {
            store.put_many(some).unwrap();
            let wanted: Vec<Chunk> = (0..40).map(|_| random.choose(&chunks).clone()).collect();
            let there = store.has_many(&hashes(&wanted)).unwrap();
            let wanted: Vec<Chunk> = wanted
                .into_iter()
                .zip(there)
                .filter_map(|(chunk, is)| is.then_some(chunk))
                .collect();
            assert_eq!(pass(&*store, &hashes(&wanted)).unwrap().0, wanted);
            if random.one_in(3) {
                drop(store);
                store = open(&disk).unwrap();
            }
        }
        // Packed: frames of many chunks.
        let roots = hashes(&chunks);
        let mut collection = GarbageCollection {
            roots: &mut || Ok(roots.clone()),
            throttle: &mut |_| ControlFlow::Continue(()),
            options: GcOptions { pack_history: true, ..GcOptions::default() },
        };
        store.collect(&mut collection).unwrap();
        assert_eq!(pass(&*store, &roots).unwrap().0, chunks);
        let memory = MemoryStore::new();
        memory.put_many(&chunks).unwrap();
        assert_eq!(pass(&*memory, &roots).unwrap().0, chunks);
    });
}

#[test]
fn a_damaged_frame_among_many_is_named_and_the_others_can_be_read() {
    const DAMAGED: usize = 7;
    let place = |disk: &SimDisk, chunk: &Chunk| {
        let contents = disk.contents("00000000.pack").unwrap();
        contents.windows(32).position(|name| name == chunk.hash().0).unwrap() as u64 - 24
    };
    // In its header, its name and what is stored.
    for byte in [2, 8, 16, 30, 62, 70] {
        let disk = SimDisk::new(1);
        let (store, chunks) = lying_together(&disk, 20);
        let offset = place(&disk, &chunks[DAMAGED]);
        disk.flip_bit("00000000.pack", (offset + byte) * 8);
        let names_it = |error: &StoreError| matches!(error, StoreError::Damaged { file, offset: at, .. } if file == "00000000.pack" && *at == offset);
        let error = pass(&*store, &hashes(&chunks)).unwrap_err();
        assert!(names_it(&error), "{byte}: {error}");
        for sound in [&chunks[..DAMAGED], &chunks[DAMAGED + 1..]] {
            assert_eq!(pass(&*store, &hashes(sound)).unwrap().0, sound);
        }
        // A file that became shorter: what is there can be read.
        let contents = disk.contents("00000000.pack").unwrap();
        disk.set_contents("00000000.pack", &contents[..offset as usize]);
        let sound = &chunks[..DAMAGED];
        assert_eq!(pass(&*store, &hashes(sound)).unwrap().0, sound);
        let error = pass(&*store, &hashes(&chunks)).unwrap_err();
        assert!(names_it(&error), "{byte}: {error}");
    }
}

#[test]
fn absent_chunks_are_missing() {
    let (store, chunks) = lying_together(&SimDisk::new(1), 3);
    let absent = blob(b"absent").hash();
    let mut wanted = hashes(&chunks);
    wanted.push(absent);
    let missing = pass(&*store, &wanted).unwrap_err();
    assert!(matches!(missing, StoreError::Missing(hash) if hash == absent), "{missing}");
}

#[test]
fn prefetched_chunks_that_will_be_replaced_are_not_cached() {
    let disk = SimDisk::new(1);
    let (_, chunks) = lying_together(&disk, 20);
    let store = LocalStore::open(&disk.machine(), LocalOptions::default()).unwrap();
    // The number of times that the disk was asked by then.
    let replace = || {
        for (ahead, chunk) in store.prefetch(&hashes(&chunks)).unwrap().into_iter().zip(&chunks) {
            assert_eq!(store.open_prefetched(ahead, ReadOptions::TO_REPLACE).unwrap(), *chunk);
        }
        store.counters().chunks_fetched
    };
    assert_eq!([replace(), replace()], [20, 40]);
    assert_eq!(store.get(chunks[7].hash()).unwrap(), chunks[7]);
    assert_eq!([replace(), replace()], [60, 79], "its window ended there, and another began");
}

#[test]
fn scans_leave_the_cache_of_others_alone() {
    let disk = SimDisk::new(1);
    let options = LocalOptions { cache_bytes: 1 << 20, pack_bytes_target: 64 << 20, ..SMALL };
    let payload = |number: u32| {
        let mut payload = [7; 4 << 10];
        payload[..4].copy_from_slice(&number.to_le_bytes());
        blob(&payload)
    };
    let chunks: Vec<Chunk> = (0..2_000).map(payload).collect();
    {
        let store = LocalStore::open(&disk.machine(), options).unwrap();
        store.put_many(&chunks).unwrap();
        store.sync().unwrap();
    }
    let store = LocalStore::open(&disk.machine(), options).unwrap();
    let (theirs, passed) = chunks.split_at(180);
    assert_eq!(store.get_many(&hashes(theirs)).unwrap(), theirs);
    pass(&*store, &hashes(passed)).unwrap();
    let fetched = store.counters().chunks_fetched;
    // Read once each, they would go if what is passed took their place.
    store.get_many(&hashes(theirs)).unwrap();
    assert_eq!(store.counters().chunks_fetched, fetched);
    // Chunks that are wanted again and again stay, except for those that share another's note.
    let again = &passed[..10];
    (0..3).for_each(|_| _ = pass(&*store, &hashes(again)).unwrap());
    let fetched = store.counters().chunks_fetched;
    pass(&*store, &hashes(again)).unwrap();
    assert!(store.counters().chunks_fetched <= fetched + 5);
}
