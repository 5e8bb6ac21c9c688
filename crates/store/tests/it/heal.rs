//! Damaged chunks are healed by the next put of the same content, and stay healed: after a restart,
//! after a pack is sealed, after a collection. No good copy is thrown away for a damaged one.

use std::sync::Arc;

use frond_store::local::{LocalOptions, LocalStore};
use frond_store::{
    Chunk, ChunkStore, GarbageCollection, GcOptions, GcReport, Maintenance, StoreError,
};
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};

use crate::{SMALL, assert_stored, blob, open, random_chunks};

/// Turns over a bit of the frame of `chunk`, wherever it lies first; returns its file and the
/// frame's offset.
fn damage(disk: &SimDisk, chunk: &Chunk, random: &mut Random) -> (String, u64) {
    use frond_store::io::Disk;
    let names = disk.list().unwrap();
    for name in names.into_iter().filter(|name| name.ends_with(".pack")) {
        let contents = disk.contents(&name).unwrap();
        let Some(at) = contents.windows(32).position(|window| window == chunk.hash().0) else {
            continue;
        };
        let offset = at as u64 - 24;
        // In the stored bytes, or in the checksum.
        let bit = if random.one_in(2) { 16 * 8 } else { (24 + 36) * 8 };
        disk.flip_bit(&name, offset * 8 + bit + random.below(8) as u64);
        return (name, offset);
    }
    panic!("the chunk lies nowhere");
}

fn sealed(disk: &SimDisk, chunks: &[Chunk]) -> Arc<LocalStore> {
    let store = open(disk).unwrap();
    store.put_many(chunks).unwrap();
    let roots: Vec<_> = chunks.iter().map(Chunk::hash).collect();
    collect(&store, &roots, false);
    store
}

fn collect(store: &LocalStore, roots: &[frond_store::ChunkHash], purge: bool) -> GcReport {
    let options = GcOptions {
        pack_history: purge,
        live_percent_min: if purge { 101 } else { 50 },
        ..GcOptions::default()
    };
    let mut collection = GarbageCollection {
        roots: &mut || Ok(roots.to_vec()),
        throttle: &mut |_| std::ops::ControlFlow::Continue(()),
        options,
    };
    store.collect(&mut collection).unwrap()
}

#[test]
fn a_put_of_what_is_damaged_heals_it_for_good() {
    for_seeds(200, |mut random| {
        let disk = SimDisk::new(random.next());
        let chunks = random_chunks(&mut random, 12);
        let hashes: Vec<_> = chunks.iter().map(Chunk::hash).collect();
        let is_sealed = random.one_in(2);
        let mut store = match is_sealed {
            true => sealed(&disk, &chunks),
            false => {
                let store = open(&disk).unwrap();
                store.put_many(&chunks).unwrap();
                store.sync().unwrap();
                store
            }
        };
        if is_sealed && random.one_in(2) {
            drop(store);
            store = open(&disk).unwrap();
        }
        let victim = random.choose(&chunks).clone();
        damage(&disk, &victim, &mut random);
        // The writer that puts it learns that it is there: so it must be.
        store.put_many(std::slice::from_ref(&victim)).unwrap();
        store.sync().unwrap();
        drop(store);
        let disk = disk.crash();
        let store = open(&disk).unwrap();
        assert_stored(&*store, &chunks);
        assert!(store.damages().is_empty());
        for purge in [false, true] {
            collect(&store, &hashes, purge);
            assert_stored(&*store, &chunks);
        }
        drop(store);
        let store = open(&disk).unwrap();
        assert_stored(&*store, &chunks);
        assert!(store.verify(&mut |_| ()).unwrap().is_empty());
    });
}

/// Its pack still has the damaged copy, which is none that the collection took.
#[test]
fn a_chunk_that_was_put_again_is_not_counted_as_dead() {
    let (disk, mut random) = (SimDisk::new(1), Random::new(1));
    let chunks: Vec<Chunk> = (0..3u8).map(|byte| blob(&[byte; 300])).collect();
    let hashes: Vec<_> = chunks.iter().map(Chunk::hash).collect();
    let store = sealed(&disk, &chunks);
    damage(&disk, &chunks[1], &mut random);
    store.put_many(&chunks).unwrap();
    let collected = collect(&store, &hashes, false);
    assert_eq!((collected.chunks_live, collected.chunks_dead), (3, 0));
    assert_stored(&*store, &chunks);
}

#[test]
fn damaged_chunks_are_absent_until_they_are_put_again() {
    for_seeds(100, |mut random| {
        let disk = SimDisk::new(random.next());
        let chunks: Vec<Chunk> = (0..9u8).map(|byte| blob(&[byte; 300])).collect();
        drop(sealed(&disk, &chunks));
        let store = open(&disk).unwrap();
        let victim = random.choose(&chunks).clone();
        let (file, offset) = damage(&disk, &victim, &mut random);
        let whole = store.has_intact(&chunks.iter().map(Chunk::hash).collect::<Vec<_>>()).unwrap();
        for (chunk, whole) in chunks.iter().zip(whole) {
            assert_eq!(whole, *chunk != victim);
        }
        assert_eq!(store.has_many(&[victim.hash()]).unwrap(), [false]);
        assert_eq!(store.counters().damages_found, 1);
        let check = |store: &LocalStore| {
            let damages = store.damages();
            assert_eq!(damages.len(), 1);
            assert_eq!((&damages[0].file, damages[0].offset), (&file, offset));
            assert_eq!(damages[0].chunk, Some(victim.hash()));
            match store.get(victim.hash()).unwrap_err() {
                StoreError::Damaged { file: named, offset: at, .. } => {
                    assert_eq!((named, at), (file.clone(), offset));
                }
                other => panic!("{other}"),
            }
        };
        check(&store);
        store.sync().unwrap();
        drop(store);
        // It is reported at each opening, and a bit that comes back heals it, too.
        check(&open(&disk).unwrap());
        let store = open(&disk).unwrap();
        assert_eq!(store.has_many(&[victim.hash()]).unwrap(), [false]);
        store.put_many(std::slice::from_ref(&victim)).unwrap();
        assert!(store.damages().is_empty());
        assert_stored(&*store, &chunks);
    });
}

/// The open pack is full, and all that it holds is damaged.
#[test]
fn a_full_pack_of_nothing_but_damage_is_no_end() {
    let disk = SimDisk::new(0);
    let large: Vec<Chunk> = (0..2u64).map(|seed| blob(&Random::new(seed).bytes(3000))).collect();
    let store = open(&disk).unwrap();
    store.put_many(&large[..1]).unwrap();
    store.sync().unwrap();
    drop(store);
    damage(&disk, &large[0], &mut Random::new(1));
    let store = open(&disk).unwrap();
    store.put_many(&large).unwrap();
    assert_stored(&*store, &large);
    drop(store);
    assert_stored(&*open(&disk).unwrap(), &large);
}

#[test]
fn a_scrub_finds_all_damage_once() {
    for_seeds(40, |mut random| {
        let disk = SimDisk::new(random.next());
        let chunks: Vec<Chunk> = (0..60u8).map(|byte| blob(&[byte; 300])).collect();
        drop(sealed(&disk, &chunks));
        let store = open(&disk).unwrap();
        let victims = [random.below(20), 20 + random.below(20), 40 + random.below(20)];
        let places = victims.map(|victim| damage(&disk, &chunks[victim], &mut random));
        let mut bytes = 0;
        let mut throttle = |read| {
            bytes += read;
            std::ops::ControlFlow::Continue(())
        };
        let scrubbed = store.scrub(random.next(), &mut throttle).unwrap();
        assert_eq!((scrubbed.chunks, scrubbed.damaged, scrubbed.stopped), (60, 3, false));
        assert_eq!(scrubbed.bytes, bytes);
        let findings = store.take_findings();
        assert!(places.iter().all(|(file, offset)| {
            findings.iter().any(|it| it.file == *file && it.offset == *offset)
        }));
        assert_eq!(
            store.scrub(0, &mut |_| std::ops::ControlFlow::Continue(())).unwrap().damaged,
            0
        );
        let stopped = store.scrub(0, &mut |_| std::ops::ControlFlow::Break(())).unwrap();
        assert!(stopped.stopped && stopped.chunks < 60);
        store.put_many(&chunks).unwrap();
        assert_stored(&*store, &chunks);
    });
}

#[test]
fn the_cache_heals_at_once() {
    let disk = SimDisk::new(0);
    let chunks: Vec<Chunk> = (0..3u8).map(|byte| blob(&[byte; 300])).collect();
    let store = sealed(&disk, &chunks);
    assert_eq!(store.get(chunks[1].hash()).unwrap(), chunks[1]);
    damage(&disk, &chunks[1], &mut Random::new(1));
    assert_eq!(store.has_intact(&[chunks[1].hash()]).unwrap(), [true]);
    assert_eq!(store.counters().damages_found, 1);
    let findings = store.take_findings();
    assert!(findings[0].what.ends_with("; it is healed, from memory"), "{findings:?}");
    store.sync().unwrap();
    drop(store);
    assert_stored(&*open(&disk).unwrap(), &chunks);
}

/// By steps of some size, in which each byte is counted once.
#[test]
fn a_scrub_reports_how_much_it_has_read_as_it_goes() {
    let disk = SimDisk::new(0);
    let mut random = Random::new(1);
    let chunks: Vec<Chunk> = (0..40).map(|_| blob(&random.bytes(30_000))).collect();
    drop(sealed(&disk, &chunks));
    let store = open(&disk).unwrap();
    let (mut bytes, mut steps) = (0, 0);
    let mut throttle = |read| {
        (bytes, steps) = (bytes + read, steps + 1);
        std::ops::ControlFlow::Continue(())
    };
    let scrubbed = store.scrub(0, &mut throttle).unwrap();
    assert_eq!((scrubbed.chunks, scrubbed.bytes), (40, bytes));
    assert!(1 < steps && steps < 200, "{steps} steps");
}

/// Each step is a pause, so small frames share one.
#[test]
fn a_scrub_pauses_after_many_frames() {
    let (disk, mut random) = (SimDisk::new(0), Random::new(1));
    let options = LocalOptions { pack_bytes_target: 1 << 20, ..SMALL };
    let store = LocalStore::open(&disk.machine(), options).unwrap();
    let chunks: Vec<Chunk> = (0..30).map(|_| blob(&random.bytes(20_000))).collect();
    store.put_many(&chunks).unwrap();
    let mut steps = Vec::new();
    let mut pace = |read| {
        steps.push(read);
        std::ops::ControlFlow::Continue(())
    };
    assert_eq!(store.scrub(0, &mut pace).unwrap().chunks, 30);
    let (last, steps) = steps.split_last().unwrap();
    assert_eq!(steps.len(), 2, "{steps:?} {last}");
    assert!(steps.iter().all(|read| (256 << 10..300 << 10).contains(read)), "{steps:?}");
}

/// On a full disk garbage would stay until the scrub came to an end, after weeks.
#[test]
fn a_scrub_keeps_no_file_that_a_collection_removes_meanwhile() {
    let disk = SimDisk::new(0);
    let mut random = Random::new(2);
    let chunks: Vec<Chunk> = (0..40).map(|_| blob(&random.bytes(30_000))).collect();
    drop(sealed(&disk, &chunks));
    // The file of keys has no name either.
    let options = LocalOptions { keys_memory_max: u64::MAX, ..SMALL };
    let store = LocalStore::open(&disk.machine(), options).unwrap();
    let (mut steps, mut open) = (0, Vec::new());
    let mut throttle = |_| {
        steps += 1;
        if steps == 1 {
            collect(&store, &[], true);
        }
        open.push(disk.removed_but_open());
        std::ops::ControlFlow::Continue(())
    };
    let scrubbed = store.scrub(0, &mut throttle).unwrap();
    assert!(scrubbed.chunks < 40, "{} chunks were garbage when they were read", scrubbed.chunks);
    assert!(!open.is_empty() && open.iter().all(|open| *open == 0), "{open:?}");
}

#[test]
fn a_scrub_reports_a_header_that_changed() {
    let disk = SimDisk::new(0);
    let store = open(&disk).unwrap();
    store.put_many(&[blob(b"in the open pack")]).unwrap();
    store.sync().unwrap();
    disk.flip_bit("00000000.pack", 9 * 8);
    store.scrub(0, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    let findings = store.take_findings();
    assert!(findings.len() == 1 && findings[0].offset == 0, "{findings:?}");
}

#[test]
fn damage_that_hides_its_names_is_reported_of_a_sealed_pack_too() {
    let disk = SimDisk::new(0);
    let chunks: Vec<Chunk> = (0..3u8).map(|byte| blob(&[byte; 300])).collect();
    let packs = || -> Vec<String> {
        use frond_store::io::Disk;
        disk.list().unwrap().into_iter().filter(|name| name.ends_with(".pack")).collect()
    };
    let store = open(&disk).unwrap();
    store.put_many(&chunks).unwrap();
    store.sync().unwrap();
    drop(store);
    let name = packs().remove(0);
    let contents = disk.contents(&name).unwrap();
    let hash = contents.windows(32).position(|window| window == chunks[1].hash().0).unwrap();
    // With another codec nothing shows that a frame begins there.
    let frame = hash as u64 - 24;
    disk.flip_bit(&name, frame * 8 + 7);
    let check = |store: &dyn ChunkStore| {
        let reported: Vec<_> =
            store.maintenance().damages().into_iter().map(|it| (it.file, it.offset)).collect();
        assert_eq!(reported, [(name.clone(), frame)]);
        let error = store.get(chunks[1].hash()).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    };
    let store = open(&disk).unwrap();
    check(&*store);
    store.put_many(&random_chunks(&mut Random::new(1), 20)).unwrap();
    store.sync().unwrap();
    drop(store);
    assert!(packs().len() > 1, "the first is sealed");
    check(&*open(&disk).unwrap());
}

/// Damage in an open pack, put again in the same pack: the index that seals it names the second.
#[test]
fn an_index_names_no_frame_that_was_set_aside_before() {
    let disk = SimDisk::new(0);
    let chunks: Vec<Chunk> = (0..3u8).map(|byte| blob(&[byte; 300])).collect();
    let store = open(&disk).unwrap();
    store.put_many(&chunks).unwrap();
    damage(&disk, &chunks[1], &mut Random::new(1));
    store.put_many(&chunks).unwrap();
    let hashes: Vec<_> = chunks.iter().map(Chunk::hash).collect();
    collect(&store, &hashes, false);
    assert_eq!(store.has_intact(&hashes).unwrap(), [true; 3]);
    assert_eq!(store.counters().damages_found, 1, "{:?}", store.take_findings());
}

/// A collection took a chunk for dead, and it was put again: two packs hold it.
#[test]
fn another_pack_heals_at_once() {
    let disk = SimDisk::new(0);
    let chunks: Vec<Chunk> = (0..3u8).map(|byte| blob(&[byte; 300])).collect();
    let hashes: Vec<_> = chunks.iter().map(Chunk::hash).collect();
    let store = sealed(&disk, &chunks);
    collect(&store, &[hashes[0], hashes[2]], false);
    assert_eq!(store.has_many(&hashes).unwrap(), [true, false, true]);
    store.put_many(&chunks).unwrap();
    collect(&store, &hashes, false);
    drop(store);
    // An opening takes the first that it meets.
    let store = open(&disk).unwrap();
    assert_eq!(damage(&disk, &chunks[1], &mut Random::new(1)).0, "00000000.pack");
    assert_eq!(store.has_intact(&hashes).unwrap(), [true; 3]);
    let findings = store.take_findings();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].what.ends_with("; it is healed, from another copy"), "{findings:?}");
    assert_stored(&*store, &chunks);
}

/// Turns over a bit of the entry of `chunk` in the index of the pack that has it.
fn damage_index(disk: &SimDisk, chunk: &Chunk) -> String {
    use frond_store::io::Disk;
    for name in disk.list().unwrap().into_iter().filter(|name| name.ends_with(".pack")) {
        let contents = disk.contents(&name).unwrap();
        let all = contents.windows(32).enumerate().filter(|(_, it)| *it == chunk.hash().0);
        if let [_, .., (at, _)] = all.collect::<Vec<_>>()[..] {
            disk.flip_bit(&name, (at as u64 + 33) * 8);
            return name;
        }
    }
    panic!("no index names the chunk");
}

#[test]
fn a_scrub_reports_an_index_that_changed_and_goes_on() {
    let disk = SimDisk::new(0);
    let chunks: Vec<Chunk> = (0..3u8).map(|byte| blob(&[byte; 300])).collect();
    let store = sealed(&disk, &chunks);
    let name = damage_index(&disk, &chunks[1]);
    let scrubbed = store.scrub(0, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    assert_eq!((scrubbed.chunks, scrubbed.damaged), (3, 1));
    let findings = store.take_findings();
    assert!(findings.len() == 1 && findings[0].file == name, "{findings:?}");
}

/// Neither the index of a pack names the chunk, nor its frame: it may have lain there.
#[test]
fn a_chunk_that_a_damaged_index_hides_is_not_said_to_be_missing() {
    let disk = SimDisk::new(0);
    let chunks: Vec<Chunk> = (0..3u8).map(|byte| blob(&[byte; 300])).collect();
    drop(sealed(&disk, &chunks));
    let store = open(&disk).unwrap();
    let name = damage_index(&disk, &chunks[1]);
    let contents = disk.contents(&name).unwrap();
    let at = contents.windows(32).position(|window| window == chunks[1].hash().0).unwrap();
    // With another codec nothing shows that a frame begins there.
    disk.flip_bit(&name, (at as u64 - 24) * 8 + 7);
    let error = store.get(chunks[1].hash()).unwrap_err();
    assert!(error.to_string().contains("may have lain here"), "{error}");
    let error = store.get(blob(b"never put").hash()).unwrap_err();
    assert!(matches!(error, StoreError::Missing(_)), "{error}");
}

#[test]
fn a_verification_reports_nothing_of_what_a_collection_took_away() {
    let disk = SimDisk::new(0);
    let chunks: Vec<Chunk> = (0..3u8).map(|byte| blob(&[byte; 300])).collect();
    let store = sealed(&disk, &chunks);
    collect(&store, &[chunks[0].hash(), chunks[2].hash()], false);
    assert_eq!(damage(&disk, &chunks[1], &mut Random::new(1)).0, "00000000.pack", "it lies there");
    assert_eq!(store.verify(&mut |_| ()).unwrap().len(), 0);
}
