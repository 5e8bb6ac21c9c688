//! Goal: `load` makes the tree that `build` makes, whichever worker is first, and ends with the
//! error of whichever worker fails. Method: a few megabytes of random entries, so that there are
//! several jobs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use frond_store::memory::MemoryStore;
use frond_store::{Chunk, ChunkStore, Layered, Lifetime, StoreError, StoreLayer};
use frond_testkit::Random;
use frond_testkit::random::for_seeds;
use frond_tree::{Entry, Tree, TreeError, TreeFormat, Value};

fn random_entries(random: &mut Random, count: usize) -> Vec<Entry> {
    let mut entries = BTreeMap::new();
    for _ in 0..count {
        // Now and then a value that lies out of line, as one chunk or as several.
        let bytes = match random.below(500) {
            0 => 100_000,
            1..4 => 6_000,
            _ => 120,
        };
        let value = random.bytes(bytes);
        entries.insert(random.bytes(12), Value::inline(value));
    }
    let entry = |(key, value): (Vec<u8>, Value)| Entry { key: Bytes::from(key), value };
    entries.into_iter().map(entry).collect()
}

#[test]
fn a_load_makes_the_tree_of_a_build() {
    for_seeds(6, |mut random| {
        let format = TreeFormat {
            chunk_bytes_target: *random.choose(&[512, 4 << 10, 16 << 10]),
            inline_bytes_max: 4 << 10,
            salt: random.next(),
        };
        let count = *random.choose(&[0, 1, 300, 20_000]);
        let entries = random_entries(&mut random, count);
        let (built, loaded) = (MemoryStore::new(), MemoryStore::new());
        let mut iter = entries.iter().cloned().map(Ok);
        let expected = Tree::build(&*built, format, &mut iter).unwrap();
        let mut iter = entries.iter().cloned().map(Ok);
        let tree = Tree::load(&*loaded, format, &mut iter).unwrap();
        assert_eq!(tree, expected);
        assert_eq!(loaded.chunk_count(), built.chunk_count());
        tree.check(&*loaded).unwrap();
    });
}

/// A store that is full after some calls.
struct Bounded<'a> {
    store: &'a MemoryStore,
    calls_left: AtomicUsize,
}

impl StoreLayer for Bounded<'_> {
    fn inner(&self) -> &dyn ChunkStore {
        self.store
    }

    fn put(&self, _: Option<Lifetime>, chunks: &[Chunk]) -> Result<(), StoreError> {
        let take = |left: usize| left.checked_sub(1);
        match self.calls_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take) {
            Ok(_) => self.store.put_many(chunks),
            Err(_) => Err(StoreError::Poisoned { reason: "it is the test's".to_owned() }),
        }
    }
}

#[test]
fn a_load_ends_with_the_error_of_a_worker_or_of_the_entries() {
    let entries = random_entries(&mut Random::new(1), 30_000);
    let format = TreeFormat::new(5);
    let store = MemoryStore::new();
    for calls in 0..4 {
        let bounded = Layered(Bounded { store: &store, calls_left: calls.into() });
        let mut iter = entries.iter().cloned().map(Ok);
        let error = Tree::load(&bounded, format, &mut iter).unwrap_err();
        assert!(matches!(error, TreeError::Store(StoreError::Poisoned { .. })), "{error}");
    }
    let failing = || Err(TreeError::KeyTooLong { bytes: 1, max: 0 });
    let mut iter = entries.iter().cloned().map(Ok).chain(std::iter::once_with(failing));
    let error = Tree::load(&*store, format, &mut iter).unwrap_err();
    assert!(matches!(error, TreeError::KeyTooLong { bytes: 1, .. }), "{error}");
}
