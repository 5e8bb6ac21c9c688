//! Trunks: what they find is what their tree has, whatever room there is and whatever the cache drops.

use std::sync::Arc;

use bytes::Bytes;
use frond_store::ChunkStore;
use frond_store::chunk::CHUNK_FIELDS_BYTES;
use frond_store::local::{LocalOptions, LocalStore};
use frond_testkit::SimDisk;
use frond_tree::{Entry, Tree, TreeFormat, Trunk, Value};

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
    let options = LocalOptions { cache_bytes, ..LocalOptions::default() };
    let store = LocalStore::open(&SimDisk::new(1).machine(), options).unwrap();
    let entries = (0..COUNT).map(|number| Ok(Entry { key: key(number * 2), value: value(number) }));
    let tree = Tree::build(&*store, FORMAT, &mut { entries }).unwrap();
    (store, tree)
}

/// Looks up what is there and what isn't, and returns how many chunks were asked for.
fn check(store: &LocalStore, trunk: &Trunk) -> u64 {
    let (tree, asked) = (**trunk, || store.counters().chunks_read);
    let before = asked();
    for number in 0..=COUNT * 2 {
        let expected = tree.get(store, &key(number)).unwrap();
        assert_eq!(expected.is_some(), number % 2 == 0 && number < COUNT * 2);
    }
    let middle = asked();
    for number in 0..=COUNT * 2 {
        let found = trunk.get(store, &key(number)).unwrap();
        assert_eq!(found, tree.get(store, &key(number)).unwrap(), "{number}");
    }
    // Each was looked up in the tree as often as before.
    asked() - middle - (middle - before)
}

#[test]
fn what_is_linked_isnt_asked_for() {
    let (store, tree) = build(64 << 20);
    let trunk = Trunk::new(tree);
    assert!(!trunk.is_grown());
    let chunks = check(&store, &trunk) + check(&store, &trunk);
    assert!(trunk.is_grown());
    let all = store.counters().chunks_written;
    assert!(
        chunks <= 2 * all,
        "each once, and once more to tell the cache of its use: {chunks} of {all}"
    );
    assert_eq!(check(&store, &trunk), 0, "all are linked");
    assert_eq!(check(&store, &trunk.clone()), 0, "a clone shares the links");
}

#[test]
fn reads_are_right_whatever_room_there_is() {
    for cache_bytes in [0, 20 << 10, 100 << 10, 300 << 10, 1 << 20] {
        let (store, tree) = build(cache_bytes);
        let trunk = Trunk::new(tree);
        for _ in 0..3 {
            check(&store, &trunk);
        }
        assert_eq!(trunk.is_grown(), cache_bytes > 0);
    }
}

#[test]
fn a_dropped_trunk_gives_its_room_back() {
    let (store, tree) = build(1 << 20);
    let room = store.room().unwrap();
    let all = room.take((1 << 20) / 16).unwrap();
    drop(all);
    let trunk = Trunk::new(tree);
    check(&store, &trunk);
    assert!(room.take((1 << 20) / 16).is_none());
    drop(trunk);
    assert!(room.take((1 << 20) / 16).is_some());
}

/// The cache is too small for the leaves, which are linked again and again.
#[test]
fn links_take_room_once() {
    const CACHE_BYTES: u64 = 1 << 20;
    let (store, tree) = build(CACHE_BYTES);
    let room = store.room().unwrap();
    let left = || {
        let fits = |bytes: &u64| room.take(*bytes).is_some();
        (0..20)
            .rev()
            .map(|bit| 1 << bit)
            .fold(0, |left, bit| if fits(&(left + bit)) { left + bit } else { left })
    };
    let all = left();
    assert_eq!(all, CACHE_BYTES / 16);
    let trunk = Trunk::new(tree);
    check(&store, &trunk);
    let taken = all - left();
    // No leaf is longer than four times the target.
    let leaves_min = u64::from(COUNT) * 50 / (4 * 1024);
    assert!(leaves_min * CHUNK_FIELDS_BYTES < taken && taken < all, "{taken}");
    check(&store, &trunk);
    assert_eq!(all - left(), taken);
}

#[test]
fn trees_without_interior_nodes_are_read_too() {
    let (store, _) = build(1 << 20);
    let empty = Trunk::new(Tree::empty(&*store, FORMAT).unwrap());
    assert_eq!(empty.get(&*store, b"key").unwrap(), None);
    let entry = Entry { key: key(1), value: value(1) };
    let one = Trunk::new(Tree::build(&*store, FORMAT, &mut [Ok(entry)].into_iter()).unwrap());
    assert_eq!(one.get(&*store, &key(1)).unwrap(), Some(value(1)));
    assert_eq!(one.get(&*store, &key(2)).unwrap(), None);
    assert!(!one.is_grown());
}

/// The cache has room for a part of the leaves.
#[test]
fn leaves_that_are_read_again_and_again_are_pinned() {
    const CACHE_BYTES: u64 = 400 << 10;
    const READS: u32 = 40;
    let (store, tree) = build(CACHE_BYTES);
    let room = store.leaf_room().unwrap();
    let is_free = || room.take(CACHE_BYTES / 4).is_some();
    let trunk = Trunk::new(tree);
    let read = |number| {
        let seen = trunk.look(&*store, &key(number * 2), |entry| entry.content.owned()).unwrap();
        assert_eq!(seen, tree.get(&*store, &key(number * 2)).unwrap().map(|value| value.content));
        assert_eq!(trunk.look(&*store, &key(number * 2 + 1), |_| ()).unwrap(), None);
    };
    let busy = [10, 1010, 2010];
    assert!(is_free());
    (0..READS).for_each(|_| busy.into_iter().for_each(read));
    assert!(!is_free());
    (0..COUNT).for_each(read);
    let asked = store.counters().chunks_read;
    busy.into_iter().for_each(|number| _ = trunk.look(&*store, &key(number * 2), |_| ()).unwrap());
    assert_eq!(store.counters().chunks_read, asked, "they are there after all others were read");
    for _ in 0..READS {
        (0..COUNT).for_each(read);
    }
    assert!(room.take_refused(), "not all were pinned");
    drop(trunk);
    assert!(is_free());
}
