//! Trunks: what they find is what their tree has, whatever room there is and whatever the cache
//! drops, and whether it has whole leaves or parts of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use frond_store::chunk::CHUNK_FIELDS_BYTES;
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::{ChunkStore, StoreError};
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};
use frond_tree::{CachedLevels, Edit, Entry, Tree, TreeError, TreeFormat, Value};

const FORMAT: TreeFormat = TreeFormat { chunk_bytes_target: 1024, inline_bytes_max: 512, salt: 1 };
const COUNT: u32 = 3000;

fn key(number: u32) -> Bytes {
    Bytes::from(format!("key {number:06}"))
}

/// Lengths differ, and so does the use of a leaf's heads; some lie out of line.
fn value(number: u32) -> Value {
    let bytes = [3, 40, 300, 700][number as usize / 50 % 4];
    Value::inline(vec![number as u8; bytes])
}

fn build(cache_bytes: u64) -> (Arc<LocalStore>, Tree) {
    build_on(&SimDisk::new(1), cache_bytes)
}

fn build_on(disk: &SimDisk, cache_bytes: u64) -> (Arc<LocalStore>, Tree) {
    build_with(disk, LocalOptions { cache_bytes, slow_read_micros: 0, ..LocalOptions::default() })
}

fn build_with(disk: &SimDisk, options: LocalOptions) -> (Arc<LocalStore>, Tree) {
    let store = LocalStore::open(&disk.machine(), options).unwrap();
    let entries = (0..COUNT).map(|number| Ok(Entry { key: key(number * 2), value: value(number) }));
    let tree = Tree::build(&*store, FORMAT, &mut { entries }).unwrap();
    (store, tree)
}

/// Looks up what is there and what isn't, and returns how many chunks were asked for.
fn check(store: &LocalStore, cached_levels: &CachedLevels) -> u64 {
    let (tree, read_count) = (**cached_levels, || store.counters().chunks_read);
    let before = read_count();
    for number in 0..=COUNT * 2 {
        let expected = tree.get(store, &key(number)).unwrap();
        assert_eq!(expected.is_some(), number % 2 == 0 && number < COUNT * 2);
    }
    let middle = read_count();
    for number in 0..=COUNT * 2 {
        let found = cached_levels.get(store, &key(number)).unwrap();
        assert_eq!(found, tree.get(store, &key(number)).unwrap(), "{number}");
    }
    // Each was looked up in the tree as often as before.
    read_count() - middle - (middle - before)
}

#[test]
fn linked_nodes_are_not_fetched() {
    let (store, tree) = build(64 << 20);
    let cached_levels = CachedLevels::new(tree);
    assert!(!cached_levels.is_grown());
    let chunks = check(&store, &cached_levels) + check(&store, &cached_levels);
    assert!(cached_levels.is_grown());
    let all = store.counters().chunks_written;
    assert!(
        chunks <= 2 * all,
        "each once, and once more to tell the cache of its use: {chunks} of {all}"
    );
    assert_eq!(check(&store, &cached_levels), 0, "all are linked");
    assert_eq!(check(&store, &cached_levels.clone()), 0, "a clone shares the links");
}

#[test]
fn reads_are_right_whatever_room_there_is() {
    for cache_bytes in [0, 20 << 10, 100 << 10, 300 << 10, 1 << 20] {
        let (store, tree) = build(cache_bytes);
        let cached_levels = CachedLevels::new(tree);
        for _ in 0..3 {
            check(&store, &cached_levels);
        }
        assert_eq!(cached_levels.is_grown(), cache_bytes > 0);
    }
}

#[test]
fn a_dropped_trunk_gives_its_room_back() {
    let (store, tree) = build(1 << 20);
    let budget = store.read_cache().unwrap().link_budget();
    assert!(budget.take((1 << 20) / 4).is_some());
    let cached_levels = CachedLevels::new(tree);
    check(&store, &cached_levels);
    assert!(budget.take((1 << 20) / 4).is_none());
    drop(cached_levels);
    assert!(budget.take((1 << 20) / 4).is_some());
}

/// The cache is too small for the leaves, which are linked again and again.
#[test]
fn links_take_room_once() {
    const CACHE_BYTES: u64 = 1 << 20;
    let (store, tree) = build(CACHE_BYTES);
    let budget = store.read_cache().unwrap().link_budget();
    let left = || {
        let fits = |bytes: &u64| budget.take(*bytes).is_some();
        (0..20)
            .rev()
            .map(|bit| 1 << bit)
            .fold(0, |left, bit| if fits(&(left + bit)) { left + bit } else { left })
    };
    let all = left();
    assert_eq!(all, CACHE_BYTES / 4);
    let cached_levels = CachedLevels::new(tree);
    check(&store, &cached_levels);
    let taken = all - left();
    // No leaf is longer than four times the target.
    let leaves_min = u64::from(COUNT) * 50 / (4 * 1024);
    assert!(leaves_min * CHUNK_FIELDS_BYTES < taken && taken < all, "{taken}");
    check(&store, &cached_levels);
    assert_eq!(all - left(), taken);
}

#[test]
fn trees_without_interior_nodes_are_read_too() {
    let (store, _) = build(1 << 20);
    let empty = CachedLevels::new(Tree::empty(&*store, FORMAT).unwrap());
    assert_eq!(empty.get(&*store, b"key").unwrap(), None);
    let entry = Entry { key: key(1), value: value(1) };
    let one =
        CachedLevels::new(Tree::build(&*store, FORMAT, &mut [Ok(entry)].into_iter()).unwrap());
    assert_eq!(one.get(&*store, &key(1)).unwrap(), Some(value(1)));
    assert_eq!(one.get(&*store, &key(2)).unwrap(), None);
    assert!(!one.is_grown());
}

/// The cache has room for a part of the leaves; others are read at no cost.
#[test]
fn leaves_that_are_read_again_and_again_are_pinned() {
    const CACHE_BYTES: u64 = 400 << 10;
    const READS: u32 = 40;
    let options = LocalOptions { cache_bytes: CACHE_BYTES, ..LocalOptions::default() };
    let (store, tree) = build_with(&SimDisk::new(1), options);
    let budget = store.read_cache().unwrap().pin_budget();
    let is_free = || budget.take(CACHE_BYTES / 4).is_some();
    let cached_levels = CachedLevels::new(tree);
    let read = |number| {
        let seen =
            cached_levels.look(&*store, &key(number * 2), |entry| entry.content.owned()).unwrap();
        assert_eq!(seen, tree.get(&*store, &key(number * 2)).unwrap().map(|value| value.content));
        assert_eq!(cached_levels.look(&*store, &key(number * 2 + 1), |_| ()).unwrap(), None);
    };
    let busy = [10, 1010, 2010];
    assert!(is_free());
    (0..READS).for_each(|_| busy.into_iter().for_each(read));
    assert!(!is_free());
    (0..COUNT).for_each(read);
    let read_count = store.counters().chunks_read;
    busy.into_iter()
        .for_each(|number| _ = cached_levels.look(&*store, &key(number * 2), |_| ()).unwrap());
    assert_eq!(
        store.counters().chunks_read,
        read_count,
        "they are there after all others were read"
    );
    for _ in 0..READS {
        (0..COUNT).for_each(read);
    }
    assert!(budget.take_refused(), "not all were pinned");
    drop(cached_levels);
    assert!(is_free());
}

/// Keys that lie apart, in a cache that all of them fit into, but not their leaves.
#[test]
fn entries_are_read_again_without_their_leaves() {
    let options =
        LocalOptions { cache_bytes: 400 << 10, slow_read_micros: 0, ..LocalOptions::default() };
    let store = LocalStore::open(&SimDisk::new(1).machine(), options).unwrap();
    let format = TreeFormat { chunk_bytes_target: 8192, inline_bytes_max: 4096, salt: 1 };
    let entry = |number| Entry { key: key(number), value: Value::inline(vec![7; 500]) };
    let entries = &mut (0..COUNT).map(|number| Ok(entry(number)));
    let cached_levels = CachedLevels::new(Tree::build(&*store, format, entries).unwrap());
    let read = || {
        let before = store.counters().chunks_fetched;
        for number in (0..COUNT).step_by(50) {
            assert!(cached_levels.get(&*store, &key(number)).unwrap().is_some());
        }
        store.counters().chunks_fetched - before
    };
    let first = read();
    (0..20).for_each(|_| _ = read());
    let later = read();
    assert!(later < first / 2, "{first} chunks were fetched, and {later} when all was read before");
    assert!(store.read_cache().unwrap().pin_budget().take(1).is_none(), "nothing is pinned then");
}

/// Several trees that share most leaves, as versions and folds make them; a cache in which leaves
/// and single entries come and go.
#[test]
fn entries_are_those_of_their_tree() {
    for_seeds(20, |mut random| {
        let cache_bytes = *random.choose(&[5 << 10, 30 << 10, 100 << 10, 400 << 10]);
        let (store, tree) = build(cache_bytes);
        let model: BTreeMap<Bytes, Value> =
            (0..COUNT).map(|number| (key(number * 2), value(number))).collect();
        let mut versions = vec![(CachedLevels::new(tree), model)];
        for _ in 0..6_000 {
            let (cached_levels, model) = &versions[random.below(versions.len())];
            // A tenth of the keys are busy.
            let number = random.below(COUNT as usize * 2) as u32;
            let key = key(if random.one_in(4) { number } else { number / 20 * 20 });
            let expected = model.get(&key).map(|value| value.read(&*store).unwrap());
            let found = match random.below(3) {
                0 => cached_levels.get(&*store, &key).unwrap(),
                1 => (**cached_levels).get(&*store, &key).unwrap(),
                _ => cached_levels
                    .look(&*store, &key, |entry| Value {
                        flags: entry.flags,
                        content: entry.content.owned(),
                    })
                    .unwrap(),
            };
            assert_eq!(found.map(|value| value.read(&*store).unwrap()), expected);
            if random.one_in(300) {
                let (tree, mut model) = (**cached_levels, model.clone());
                let edit = |random: &mut Random| {
                    let number = random.below(COUNT as usize * 2) as u32;
                    (self::key(number), (!random.one_in(3)).then(|| value(number ^ 50)))
                };
                let edits: BTreeMap<_, _> = (0..50).map(|_| edit(&mut random)).collect();
                for (key, value) in &edits {
                    match value {
                        Some(value) => drop(model.insert(key.clone(), value.clone())),
                        None => drop(model.remove(key)),
                    }
                }
                let mut edits = edits
                    .into_iter()
                    .map(|(key, value)| Ok((key, value.map_or(Edit::Delete, Edit::Put))));
                let tree = tree.apply(&*store, &mut edits).unwrap();
                if versions.len() > 3 {
                    versions.remove(0);
                }
                versions.push((CachedLevels::new(tree), model));
            }
        }
    });
}

/// A cached entry was checked when it was read; its neighbours are checked when a reader wants
/// them.
#[test]
fn damage_beside_a_kept_entry_is_found() {
    const CACHE_BYTES: u64 = 30 << 10;
    let disk = SimDisk::new(1);
    let (store, tree) = build_on(&disk, CACHE_BYTES);
    let cached_levels = CachedLevels::new(tree);
    let read = |number| cached_levels.get(&*store, &key(number * 2));
    // The cache is full, and the second read is one of a part.
    (0..COUNT).for_each(|number| _ = read(number).unwrap());
    (0..2).for_each(|_| assert_eq!(read(120).unwrap(), Some(value(120))));
    let bytes = disk.contents("00000000.pack").unwrap().len() as u64;
    (100..bytes).step_by(64).for_each(|place| disk.flip_bit("00000000.pack", place * 8));
    let fetched = store.counters().chunks_fetched;
    assert_eq!(read(120).unwrap(), Some(value(120)));
    assert_eq!(store.counters().chunks_fetched, fetched);
    let found = (100..140).filter(|number| *number != 120).map(read);
    assert!(
        found
            .into_iter()
            .any(|found| { matches!(found, Err(TreeError::Store(StoreError::Damaged { .. }))) })
    );
    assert!(!store.verify(&mut |_| ()).unwrap().is_empty());
}
