//! Goal: a pack that is put takes little memory, which the cache leaves to it before. Method:
//! chunks that don't compress fill the cache; at each put it is seen what both take.

use std::sync::{Mutex, OnceLock, Weak};

use super::*;

const CACHE_BYTES: u64 = 26 << 20;
/// The chunks of a put, and what each has.
const CHUNK_COUNT: usize = 170;
const CHUNK_BYTES: usize = 90_000;
/// The last frame of a pack and its index are beyond its size.
const MORE_BYTES: u64 = CHUNK_BYTES as u64 + (64 << 10);

/// A bucket that sees what the store's cache has while a pack is put.
struct Looking {
    below: Arc<SimDepot>,
    store: OnceLock<Weak<LocalStore>>,
    /// The bytes of each pack that was put, and those of the cache then.
    seen: Mutex<Vec<(u64, u64)>>,
}

impl Bucket for Looking {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, BucketError> {
        let store = self.store.get().and_then(Weak::upgrade);
        if let Some(store) = store.filter(|_| name.starts_with("packs/")) {
            let cached = store.counters().cache_bytes;
            self.seen.lock().unwrap().push((bytes.len() as u64, cached));
        }
        self.below.create(name, bytes)
    }

    fn swap(&self, name: &str, was: &ObjectVersion, bytes: Bytes) -> Result<Swapped, BucketError> {
        self.below.swap(name, was, bytes)
    }

    fn load(&self, name: &str) -> Result<Option<(Bytes, ObjectVersion)>, BucketError> {
        self.below.load(name)
    }

    fn read_many(&self, parts: &[ObjectPart]) -> Result<Vec<Option<Bytes>>, BucketError> {
        self.below.read_many(parts)
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        self.below.remove(name)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, BucketError> {
        self.below.list(prefix)
    }
}

#[test]
fn a_pack_on_its_way_is_small_and_the_cache_gives_way_to_it() {
    let (mut random, below) = (Random::fresh(), SimDepot::new(5));
    let options = LocalOptions { cache_bytes: CACHE_BYTES, ..LocalOptions::default() };
    let node = Node { options, ..Node::new(6, &below) };
    let bucket = Arc::new(Looking {
        below: Arc::new(below.other_client()),
        store: OnceLock::new(),
        seen: Mutex::default(),
    });
    let machine = node.machine_at(Arc::clone(&bucket) as Arc<dyn Bucket>).unwrap();
    let store = LocalStore::open(&machine, node.options).unwrap();
    bucket.store.set(Arc::downgrade(&store)).unwrap();
    let mut most_cached = 0;
    for _ in 0..5 {
        let blob = |_| Chunk::new(ChunkKind::Blob, &[], &random.bytes(CHUNK_BYTES));
        let chunks: Vec<Chunk> = (0..CHUNK_COUNT).map(blob).collect();
        // The cache has what was put, and then is what it may be.
        store.put_many(&chunks).unwrap();
        assert_stored(&*store, &chunks);
        most_cached = most_cached.max(store.counters().cache_bytes);
    }
    let seen = bucket.seen.lock().unwrap();
    let sent: u64 = seen.iter().map(|(bytes, _)| bytes).sum();
    assert!((4 * CHUNK_COUNT * CHUNK_BYTES) as u64 <= sent, "{sent} bytes were sent");
    assert!(CACHE_BYTES / 8 * 7 < most_cached, "the cache was never full: {most_cached}");
    for (bytes, cached) in &*seen {
        assert!(*bytes <= CACHE_BYTES / 4 + MORE_BYTES, "a pack of {bytes} bytes");
        assert!(bytes + cached <= CACHE_BYTES + MORE_BYTES, "{bytes} bytes beside {cached}");
    }
}
