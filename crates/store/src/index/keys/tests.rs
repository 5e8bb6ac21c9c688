//! The keys of chunks, in memory and in a file, find what a map of them finds.

use std::collections::BTreeMap;

use super::*;
use crate::io::Machine;
use crate::location::{FrameOffset, PackedChunk};

fn name(number: u32) -> ChunkHash {
    let mut hash = ChunkHash([7; 32]);
    hash.0[..4].copy_from_slice(&number.wrapping_mul(0x9e37_79b9).to_be_bytes());
    hash
}

/// A directory of its own for a test, which goes with it.
struct Directory(std::path::PathBuf, Machine);

impl Directory {
    fn new(test: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("frond-keys-{test}-{}", std::process::id()));
        let machine = Machine::system(&path).unwrap();
        Directory(path, machine)
    }

    fn disk(&self) -> &dyn Disk {
        &*self.1.disk
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn read(keys: &Keys, hash: ChunkHash) -> KeysRead {
    KeysRead::of(keys.spilled(), std::iter::once(hash)).unwrap()
}

/// Names, some of which begin alike, in few packs; with how often each pair is there.
type Model = BTreeMap<(u32, u32), u32>;

fn check(keys: &Keys, model: &Model, numbers: std::ops::Range<u32>) {
    // All of them are read at once, and then one by one.
    let all = KeysRead::of(keys.spilled(), numbers.clone().map(name)).unwrap();
    for number in numbers {
        let is_there = |pack: &u32| model.get(&(number, *pack)).is_some_and(|count| *count > 0);
        let expected: Vec<PackNumber> = (0..5).filter(is_there).map(PackNumber).collect();
        for read in [&all, &read(keys, name(number))] {
            assert_eq!(keys.packs(name(number), read), expected, "{number}");
            for pack in (0..6).map(PackNumber) {
                assert_eq!(keys.contains(name(number), pack, read), expected.contains(&pack));
            }
        }
    }
}

/// However often they go to the file, and while they do, pairs are there as often as they were
/// inserted and not removed.
#[test]
fn pairs_are_there_as_often_as_they_were_inserted() {
    let directory = Directory::new("counts");
    let (mut keys, mut model) = (Keys::default(), Model::new());
    let mut merging: Option<(Frozen, Spilled)> = None;
    for round in 0..40_000u32 {
        let (number, pack) = (round.wrapping_mul(7919) % 9_001, round % 5);
        let pack_number = PackNumber(pack);
        if round % 3 == 2 {
            let read = read(&keys, name(number));
            keys.remove(name(number), pack_number, &read);
            if let Some(count) = model.get_mut(&(number, pack)) {
                *count = count.saturating_sub(1);
            }
        } else {
            keys.insert(name(number), pack_number);
            *model.entry((number, pack)).or_default() += 1;
        }
        match round % 5_000 {
            3_000 => {
                let frozen = keys.freeze();
                // One that failed is begun anew.
                let frozen = if round < 10_000 { keys.freeze() } else { frozen };
                let merged = frozen.merge(directory.disk()).unwrap();
                merging = Some((frozen, merged));
            }
            4_500 => {
                check(&keys, &model, 0..2_000);
                let (frozen, merged) = merging.take().expect("it was begun before");
                keys.thaw(&frozen, merged);
                check(&keys, &model, 0..2_000);
            }
            _ => {}
        }
    }
    check(&keys, &model, 0..9_100);
    let frozen = keys.freeze();
    let merged = frozen.merge(directory.disk()).unwrap();
    keys.thaw(&frozen, merged);
    assert_eq!(keys.memory(), 0, "all of it lies in the file");
    check(&keys, &model, 0..9_100);
    let count: u32 = model.values().sum();
    assert_eq!(keys.spilled().map(|file| file.count()), Some(count as usize));
    assert_eq!(directory.disk().list().unwrap(), Vec::<String>::new(), "the file has no name");
}

/// In memory pairs lie in many buckets.
#[test]
fn pairs_in_memory_are_found() {
    let (mut keys, mut model) = (Keys::default(), Model::new());
    for round in 0..40_000u32 {
        let (number, pack) = (round.wrapping_mul(7919) % 9_001, round % 5);
        keys.insert(name(number), PackNumber(pack));
        *model.entry((number, pack)).or_default() += 1;
    }
    check(&keys, &model, 0..9_100);
    assert_eq!(keys.resident.count(), 40_000);
}

/// Keys that come in order are as those that are inserted one by one.
#[test]
fn keys_that_are_built_are_as_one_by_one() {
    let directory = Directory::new("built");
    let place = FrameOffset { offset: 16, bytes: 10 };
    let mut chunks: Vec<PackedChunk> = (0..20_000)
        .map(|number| PackedChunk { hash: name(number % 9_973), place, refers: false })
        .collect();
    chunks.sort_unstable();
    let mut one_by_one = Keys::default();
    chunks.iter().for_each(|chunk| one_by_one.insert(chunk.hash, PackNumber(3)));
    for memory_max in [0, u64::MAX] {
        let mut builder = KeysBuilder::new(directory.disk(), chunks.len(), memory_max).unwrap();
        for chunk in &chunks {
            builder.push(pair(chunk.hash, PackNumber(3))).unwrap();
        }
        let built = builder.finish().unwrap();
        assert_eq!(built.spilled().is_some(), memory_max == 0);
        match built.spilled() {
            None => assert_eq!(built.resident, one_by_one.resident),
            Some(file) => {
                let pairs: Vec<Pair> = file.iter().map(|pair| pair.unwrap()).collect();
                assert!(pairs.into_iter().eq(one_by_one.resident.iter()));
            }
        }
    }
}

/// What can't be read as it was written is an error, never an absent pair.
#[test]
fn damage_in_the_file_is_an_error() {
    let directory = Directory::new("damage");
    let mut keys = Keys::default();
    (0..5_000).for_each(|number| keys.insert(name(number), PackNumber(1)));
    let frozen = keys.freeze();
    let merged = frozen.merge(directory.disk()).unwrap();
    keys.thaw(&frozen, merged);
    let file = keys.spilled().expect("they went there");
    let is_readable = || {
        (0..5_000)
            .filter(|number| KeysRead::of(keys.spilled(), std::iter::once(name(*number))).is_ok())
            .count()
    };
    assert_eq!(is_readable(), 5_000);
    file.damage(4_096 + 100);
    let left = is_readable();
    assert!((4_000..5_000).contains(&left), "{left} are readable: all but those of a page");
    assert!(keys.freeze().merge(directory.disk()).is_err());
}

/// A search whose keys weren't read is a defect, and shows.
#[test]
#[should_panic(expected = "its keys were read before")]
fn a_search_that_was_not_prepared_panics() {
    let directory = Directory::new("unread");
    let mut keys = Keys::default();
    keys.insert(name(1), PackNumber(1));
    let frozen = keys.freeze();
    let merged = frozen.merge(directory.disk()).unwrap();
    keys.thaw(&frozen, merged);
    let read = read(&keys, name(2));
    keys.contains(name(1), PackNumber(1), &read);
}
