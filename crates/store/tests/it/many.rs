//! More chunks than an open pack may hold: indexes of many pages, searched on disk.

use std::collections::{BTreeSet, HashMap};

use frond_store::io::Disk;
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::{Chunk, ChunkStore, GarbageCollection, GcOptions, Maintenance, StoreError};
use frond_testkit::SimDisk;

use crate::{assert_stored, blob, hashes};

const CHUNK_COUNT: u32 = 40_000;
const KEPT_EACH: usize = 10;

fn chunks() -> Vec<Chunk> {
    (0..CHUNK_COUNT).map(|number| blob(&number.to_le_bytes())).collect()
}

/// No chunk stays in memory, and few pages do.
const OPTIONS: LocalOptions = LocalOptions {
    cache_bytes: 0,
    index_cache_bytes: 20 << 10,
    keys_memory_max: u64::MAX,
    slow_read_micros: 0,
    pack_bytes_target: 256 << 20,
    reserve_bytes: 0,
};

fn pack_count(disk: &SimDisk) -> usize {
    disk.list().unwrap().iter().filter(|name| name.ends_with(".pack")).count()
}

#[test]
fn chunks_of_many_pages_are_found_and_what_is_removed_is_not() {
    let disk = SimDisk::new(1);
    let all = chunks();
    let store = LocalStore::open(&disk.machine(), OPTIONS).unwrap();
    all.chunks(1_000).for_each(|some| store.put_many(some).unwrap());
    assert_eq!(pack_count(&disk), 3, "packs end by their number of chunks, too");
    let written = store.counters().chunks_written;
    store.put_many(&all).unwrap();
    assert_eq!(store.counters().chunks_written, written, "all are found");
    drop(store);

    let store = LocalStore::open(&disk.machine(), OPTIONS).unwrap();
    assert_stored(&*store, &all[..300]);
    assert_eq!(store.get_many(&hashes(&all)).unwrap(), all);
    let absent = blob(b"absent").hash();
    assert!(matches!(store.get(absent), Err(StoreError::Missing(hash)) if hash == absent));

    let kept: Vec<Chunk> = all.iter().step_by(KEPT_EACH).cloned().collect();
    let roots = hashes(&kept);
    let collected = store
        .collect(&mut GarbageCollection {
            roots: &mut || Ok(roots.clone()),
            throttle: &mut |_| std::ops::ControlFlow::Continue(()),
            options: GcOptions::default(),
        })
        .unwrap();
    assert_eq!(collected.chunks_live, kept.len() as u64);
    assert_eq!(collected.chunks_dead, all.len() as u64 - collected.chunks_live);
    let expected: BTreeSet<_> = roots.iter().copied().collect();
    let is_kept: Vec<bool> = all.iter().map(|chunk| expected.contains(&chunk.hash())).collect();
    assert_eq!(store.has_many(&hashes(&all)).unwrap(), is_kept);
    store.put_many(&all).unwrap();
    drop(store);
    let store = LocalStore::open(&disk.machine(), OPTIONS).unwrap();
    assert_eq!(store.get_many(&hashes(&all)).unwrap(), all);
    assert!(store.verify(&mut |_| ()).unwrap().is_empty());
}

/// Two chunks whose names begin with the same four bytes.
fn alike() -> [Chunk; 2] {
    let mut seen = HashMap::new();
    let mut numbers = 0u64..;
    let number = numbers.find_map(|number| {
        let beginning: [u8; 4] = blob(&number.to_le_bytes()).hash().0[..4].try_into().unwrap();
        seen.insert(beginning, number).map(|other| [number, other])
    });
    number.expect("the numbers don't end").map(|number| blob(&number.to_le_bytes()))
}

/// Finds chunks of one pack, and of two, whose indexes are read together.
#[test]
fn chunks_whose_names_begin_alike_are_found_again() {
    for other in [1, 20_000] {
        let disk = SimDisk::new(1);
        let mut all = chunks();
        [all[0], all[other]] = alike();
        let open = || LocalStore::open(&disk.machine(), OPTIONS).unwrap();
        for chunks in all.chunks(20_000) {
            open().put_many(chunks).unwrap();
        }
        let packs = pack_count(&disk);
        for _ in 0..2 {
            let store = open();
            assert_eq!(store.get_many(&hashes(&all)).unwrap(), all);
            store.put_many(&[all[0].clone(), all[other].clone()]).unwrap();
            assert_eq!((store.counters().chunks_written, pack_count(&disk)), (0, packs));
        }
    }
}

/// A page of an index that is torn while the store is open: frames show what it held, and the next
/// opening makes another.
#[test]
fn a_damaged_page_hides_nothing_and_is_made_again() {
    let disk = SimDisk::new(1);
    let all = chunks();
    let store = LocalStore::open(&disk.machine(), OPTIONS).unwrap();
    all.chunks(1_000).for_each(|some| store.put_many(some).unwrap());
    let name = "00000000.pack";
    let bytes = disk.contents(name).unwrap().len() as u64;
    // The last page but a few: pages are 4,088 bytes long, and end 16 bytes before the file does.
    let damaged_at = bytes - 16 - 5 * 4088;
    disk.flip_bit(name, damaged_at * 8);
    for chunk in &all {
        assert_eq!(store.get(chunk.hash()).unwrap(), *chunk);
    }
    let found = store.verify(&mut |_| ()).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(matches!(&found[0], StoreError::Damaged { file, offset, .. }
        if file == name && damaged_at - 4088 < *offset && *offset <= damaged_at));
    drop(store);
    let store = LocalStore::open(&disk.machine(), OPTIONS).unwrap();
    let findings = store.take_findings();
    assert!(findings.len() == 1 && findings[0].file == name, "{findings:?}");
    assert_eq!(store.get_many(&hashes(&all)).unwrap(), all);
    drop(store);
    let store = LocalStore::open(&disk.machine(), OPTIONS).unwrap();
    assert!(store.take_findings().is_empty() && store.verify(&mut |_| ()).unwrap().is_empty());
    assert_eq!(store.get_many(&hashes(&all)).unwrap(), all);
}
