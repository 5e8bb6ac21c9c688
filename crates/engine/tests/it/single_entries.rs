//! Goal: a cache that keeps single entries of leaves never answers with another entry, an old one
//! or none. Method: caches that hold a small part of the data, every read of a chunk taken for one
//! from a disk, and point reads of a few keys again and again, so that most are answered by single
//! entries; compared with maps, and beside them by what readers can check by themselves while
//! others write.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bytes::Bytes;
use frond_engine::{Engine, EngineOptions, Snapshot, Transaction, TreeId};
use frond_store::EntryName;
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};
use frond_tree::{Entry, Tree, TreeFormat, Value};

use crate::rig::{
    Content, QUICK, THOROUGH, churning, content, make_trees, open, quiet, small_nodes,
};

/// The number that xxh3 takes from keys of 16 bytes before it mixes their halves: with one half
/// zero, the sum is known.
const FIRST_HALF: [u8; 8] = [0xb9, 0x39, 0x42, 0xea, 0x7b, 0x73, 0x82, 0x67];
const SECOND_HALF: [u8; 8] = [0x3a, 0x52, 0x96, 0x09, 0x3b, 0xbc, 0x56, 0xaf];

/// Two keys, not far from each other, whose entries have one name.
fn namesakes(number: u64) -> [Bytes; 2] {
    let mixed = |half: [u8; 8], with: [u8; 8]| std::array::from_fn(|at| half[at] ^ with[at]);
    let second: [u8; 8] = mixed(SECOND_HALF, number.to_le_bytes());
    let first: [u8; 8] = mixed(FIRST_HALF, number.to_be_bytes());
    [[FIRST_HALF, second].concat().into(), [first, SECOND_HALF].concat().into()]
}

#[test]
fn namesakes_have_one_name() {
    for number in 1..20 {
        let [one, other] = namesakes(number);
        assert!(one != other && EntryName::of(&one) == EntryName::of(&other));
    }
}

/// Namesakes, keys that begin with each other, and some of the usual kind.
fn all_keys() -> Vec<Bytes> {
    let mut keys: Vec<Bytes> = (1..20).flat_map(namesakes).collect();
    keys.extend((0..12).map(|count| Bytes::from(vec![0; count])));
    keys.extend((1..12).map(|count| Bytes::from(FIRST_HALF.repeat(2)[..count].to_vec())));
    keys.extend((0..300).map(|number| Bytes::from(format!("key {number:03}"))));
    keys
}

/// Few are chosen most often.
fn some_key<'k>(keys: &'k [Bytes], random: &mut Random) -> &'k Bytes {
    let among = if random.one_in(4) { keys.len() } else { keys.len() / 8 };
    // Not one beside the other.
    &keys[random.below(among) * 37 % keys.len()]
}

/// As long as what is kept inline at most, or not quite.
fn new_value(random: &mut Random) -> Bytes {
    let most = small_nodes().inline_bytes_max as usize;
    let count = *random.choose(&[0, 1, 20, 60, most - 1, most, most + 1, 700]);
    Bytes::from(random.bytes(count))
}

fn with_small_cache(random: &mut Random, options: EngineOptions) -> EngineOptions {
    let cache_bytes = *random.choose(&[8, 24, 64, 160]) << 10;
    EngineOptions { cache_bytes, slow_read_micros: 0, ..options }
}

fn check_key(snapshot: &Snapshot, tree: TreeId, key: &[u8], expected: Option<&Bytes>) {
    let value = snapshot.get(tree, key).unwrap();
    let bytes = value.map(|value| snapshot.read(&value).unwrap());
    assert_eq!(bytes.as_ref(), expected, "{key:?}");
    let lent = snapshot.look(tree, key, Bytes::copy_from_slice).unwrap();
    assert_eq!(lent.as_ref(), expected, "{key:?}");
}

fn change(
    transaction: &mut Transaction,
    trees: &[TreeId],
    model: &mut [Content],
    keys: &[Bytes],
    random: &mut Random,
) {
    let place = random.below(trees.len());
    for _ in 0..random.below(30) {
        let key = some_key(keys, random).clone();
        let read = transaction.get(trees[place], &key).unwrap();
        let read = read.map(|value| transaction.read(&value).unwrap());
        assert_eq!(read.as_ref(), model[place].get(&key), "{key:?}");
        if random.one_in(3) {
            transaction.delete(trees[place], key.clone()).unwrap();
            model[place].remove(&key);
        } else {
            let value = new_value(random);
            transaction.put(trees[place], key.clone(), Value::inline(value.clone())).unwrap();
            model[place].insert(key, value);
        }
    }
}

/// A tree is given what another one is at that moment, so that both have the same leaves.
fn switch(engine: &Engine, trees: &[TreeId], model: &mut [Content], random: &mut Random) {
    let (from, to) = (random.below(trees.len()), random.below(trees.len()));
    let base = engine.fold(&engine.snapshot(), &trees[from..=from]).unwrap().remove(0);
    let mut transaction = engine.begin();
    transaction.set_base(trees[to], base).unwrap();
    transaction.commit(Default::default()).unwrap();
    model[to] = model[from].clone();
}

#[test]
fn single_entries_are_those_of_a_map() {
    let keys = all_keys();
    for_seeds(15, |mut random| {
        let mut disk = SimDisk::new(random.next());
        let mut options = with_small_cache(&mut random, quiet());
        if random.one_in(2) {
            options = with_small_cache(&mut random, churning(25));
        }
        let mut engine = open(&disk, options).unwrap();
        let trees = make_trees(&engine, 3).unwrap();
        let mut model = vec![Content::new(); trees.len()];
        let mut held: Vec<(Snapshot, Vec<Content>)> = Vec::new();
        for round in 0..150 {
            match random.below(16) {
                0..8 => {
                    let mut transaction = engine.begin();
                    let mut own = model.clone();
                    change(&mut transaction, &trees, &mut own, &keys, &mut random);
                    if !random.one_in(6) {
                        transaction.commit(Default::default()).unwrap();
                        model = own;
                    }
                }
                8 => engine.checkpoint().unwrap(),
                9 => engine.flush().unwrap(),
                10 => switch(&engine, &trees, &mut model, &mut random),
                11 => _ = engine.reclaim(if random.one_in(2) { QUICK } else { THOROUGH }).unwrap(),
                12 => held.push((engine.snapshot(), model.clone())),
                13 => held.truncate(random.below(2)),
                14 if random.one_in(2) => {
                    held.clear();
                    engine.checkpoint().unwrap();
                    drop(engine);
                    disk = disk.kill();
                    engine = open(&disk, options).unwrap();
                }
                _ => {
                    let place = random.below(trees.len());
                    assert_eq!(content(&engine.snapshot(), trees[place]), model[place]);
                }
            }
            let now = (engine.snapshot(), model.clone());
            for (snapshot, model) in held.iter().chain([&now]) {
                for _ in 0..60 {
                    let (place, key) = (random.below(trees.len()), some_key(&keys, &mut random));
                    check_key(snapshot, trees[place], key, model[place].get(key));
                }
            }
            if round % 50 == 49 {
                engine.check().unwrap();
            }
        }
    });
}

/// Of each leaf one entry is wanted: these fit, their leaves wouldn't by far.
#[test]
fn entries_fit_where_their_leaves_do_not() {
    const LEAF_ENTRIES: u32 = 8;
    let disk = SimDisk::new(1);
    let options =
        |slow_read_micros| EngineOptions { cache_bytes: 2 << 20, slow_read_micros, ..quiet() };
    let key = |number: u32| Bytes::from(number.to_be_bytes().to_vec());
    let engine = open(&disk, options(0)).unwrap();
    let tree = engine.reserve_tree_id();
    let mut random = Random::new(1);
    let mut entries = (0..500 * LEAF_ENTRIES)
        .map(|number| Ok(Entry { key: key(number), value: Value::inline(random.bytes(900)) }));
    let base = Tree::build(&**engine.store(), TreeFormat::new(1), &mut entries).unwrap();
    let mut transaction = engine.begin();
    transaction.set_base(tree, base).unwrap();
    transaction.commit(Default::default()).unwrap();
    engine.checkpoint().unwrap();
    drop(engine);
    let fetched_at_last = |slow_read_micros| {
        let engine = open(&disk, options(slow_read_micros)).unwrap();
        let snapshot = engine.snapshot();
        let mut before = 0;
        for _ in 0..4 {
            before = engine.store().counters().chunks_fetched;
            for number in (0..500).map(|leaf| leaf * LEAF_ENTRIES) {
                assert!(snapshot.get(tree, &key(number)).unwrap().is_some());
            }
        }
        engine.store().counters().chunks_fetched - before
    };
    // A read that takes no time is none from a disk if such a one takes any.
    let (with_entries, with_leaves) = (fetched_at_last(0), fetched_at_last(1));
    assert!(with_entries * 2 < with_leaves, "{with_entries} and {with_leaves} of 500");
}

/// A value holds its key and a number that only grows.
fn number_in(key: &[u8], value: &[u8]) -> u64 {
    let (prefix, number) = value.split_at(key.len());
    assert_eq!(prefix, key);
    u64::from_le_bytes(number[..8].try_into().unwrap())
}

#[test]
fn readers_beside_writers_folds_and_collections_meet_whole_states() {
    let keys = all_keys();
    let mut random = Random::fresh();
    let options = EngineOptions { memtable_bytes_max: 20_000, ..EngineOptions::default() };
    let options = EngineOptions { cache_bytes: 24 << 10, slow_read_micros: 0, ..options };
    let engine = open(&SimDisk::new(5), options).unwrap();
    let trees = make_trees(&engine, 2).unwrap();
    let is_over = AtomicBool::new(false);
    // In both trees a key has the same value always.
    let write = |number: u64, random: &mut Random, keys: &[Bytes]| {
        let mut transaction = engine.begin();
        for key in keys {
            let pad = new_value(random);
            let value = Bytes::from([&key[..], &number.to_le_bytes(), &pad].concat());
            for tree in &trees {
                transaction.put(*tree, key.clone(), Value::inline(value.clone())).unwrap();
            }
        }
        transaction.commit(Default::default()).unwrap();
    };
    write(0, &mut random, &keys);
    thread::scope(|scope| {
        for _ in 0..2 {
            let (engine, trees, keys, is_over) = (&engine, &trees, &keys, &is_over);
            scope.spawn(move || {
                let mut random = Random::fresh();
                let mut least: BTreeMap<&Bytes, u64> = BTreeMap::new();
                while !is_over.load(Ordering::Relaxed) {
                    let snapshot = engine.snapshot();
                    for _ in 0..20 {
                        let key = some_key(keys, &mut random);
                        let look = |tree: TreeId| {
                            snapshot.look(tree, key, <[u8]>::to_vec).unwrap().expect("it is there")
                        };
                        let value = look(trees[0]);
                        assert_eq!(value, look(trees[1]), "{key:?}");
                        let (number, least) =
                            (number_in(key, &value), least.entry(key).or_default());
                        assert!(*least <= number, "{key:?} had {least}, has {number}");
                        *least = number;
                    }
                }
            });
        }
        for number in 1..200 {
            let some: Vec<Bytes> = (0..10).map(|_| some_key(&keys, &mut random).clone()).collect();
            write(number, &mut random, &some);
            match number % 10 {
                3 => engine.checkpoint().unwrap(),
                6 => _ = engine.reclaim(THOROUGH).unwrap(),
                9 => _ = engine.fold(&engine.snapshot(), &trees).unwrap(),
                _ => {}
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(content(&engine.snapshot(), trees[0]), content(&engine.snapshot(), trees[1]));
    engine.check().unwrap();
    engine.close().unwrap();
}
