//! The promises of every [`ChunkStore`], on chunks in memory, on packs on a simulated disk, and on
//! packs in a real directory.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use frond_store::io::Machine;
use frond_store::local::LocalStore;
use frond_store::memory::MemoryStore;
use frond_store::{
    Admission, Chunk, ChunkKind, ChunkStore, EntryLookup, EntryName, Lifetime, ReadOptions,
    StoreError,
};
use frond_testkit::random::for_seeds;
use frond_testkit::{Random, SimDisk};

use crate::{SMALL, assert_stored, blob, hashes, open, random_chunks};

/// A directory of the real machine that is removed at the end.
struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    fn new() -> TemporaryDirectory {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("frond-store-test-{}-{count}", std::process::id());
        TemporaryDirectory(std::env::temp_dir().join(name))
    }

    fn open(&self) -> Result<Arc<LocalStore>, StoreError> {
        LocalStore::open(&Machine::system(&self.0).unwrap(), SMALL)
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs `property` on an empty store of each kind.
fn on_each(property: impl Fn(&dyn ChunkStore)) {
    property(&*MemoryStore::new());
    property(&*open(&SimDisk::new(1)).unwrap());
    property(&*TemporaryDirectory::new().open().unwrap());
}

/// A reader that has one keeps it unchanged whatever is read afterwards: whether or not the store
/// keeps it too, and also where it was read past the system's cache, as all but the first ones are.
#[test]
fn chunks_that_are_looked_into_stay_what_they_are() {
    on_each(|store| {
        let mut random = Random::fresh();
        let mut chunks = random_chunks(&mut random, 150);
        chunks.extend((0..10).map(|count| blob(&random.bytes(count * 3_000))));
        store.put_many(&chunks).unwrap();
        let look_up_entry = |chunk: &Chunk| {
            let looked_up = store.look_up_entry(chunk.hash(), EntryName::of(b"any")).unwrap();
            let EntryLookup::Chunk(looked_up, _) = looked_up else {
                panic!("nothing was kept of it")
            };
            assert_eq!(looked_up, *chunk);
            looked_up
        };
        let held: Vec<_> = chunks.iter().rev().map(look_up_entry).collect();
        for _ in 0..1_000 {
            look_up_entry(&chunks[random.below(chunks.len())]);
        }
        for (looked_up, chunk) in held.iter().zip(chunks.iter().rev()) {
            assert_eq!(looked_up, chunk);
        }
        assert_stored(store, &chunks);
    });
}

#[test]
fn puts_are_read_at_once() {
    on_each(|store| {
        for_seeds(3, |mut random| {
            let chunks = random_chunks(&mut random, 60);
            for part in chunks.chunks(7) {
                store.put_many(part).unwrap();
                assert_stored(store, part);
            }
            assert_stored(store, &chunks);
            let mut requested = hashes(&chunks);
            requested.extend_from_within(..5);
            requested.reverse();
            let names: Vec<_> =
                store.get_many(&requested).unwrap().iter().map(Chunk::hash).collect();
            assert_eq!(names, requested, "answers come in the order of the questions");
        });
    });
}

#[test]
fn absent_chunks_are_missing() {
    on_each(|store| {
        let (here, absent) = (blob(b"here"), blob(b"absent"));
        store.put_many(std::slice::from_ref(&here)).unwrap();
        let both = [here.hash(), absent.hash()];
        assert_eq!(store.has_many(&both).unwrap(), [true, false]);
        let is_missing =
            |error| matches!(error, StoreError::Missing(name) if name == absent.hash());
        assert!(is_missing(store.get(absent.hash()).unwrap_err()));
        assert!(is_missing(store.get_many(&both).unwrap_err()));
        assert!(is_missing(store.swap_root("r", None, Some(absent.hash())).unwrap_err()));
        assert_eq!(store.root("r").unwrap(), None);
    });
}

#[test]
fn a_chunk_is_written_once() {
    on_each(|store| {
        let chunk = blob(&[7; 100]);
        store.put_many(&[chunk.clone(), chunk.clone()]).unwrap();
        let once = store.counters();
        assert_eq!(once.chunks_written, 1);
        assert_eq!(once.bytes_put, chunk.encoded().len() as u64);
        store.put_many(&[chunk]).unwrap();
        assert_eq!(store.counters(), once);
        store.put_many(&[]).unwrap();
        assert_eq!(store.counters(), once);
    });
}

#[test]
fn roots_are_compared_and_swapped() {
    on_each(|store| {
        let (a, b) = (blob(b"a"), blob(b"b"));
        store.put_many(&[a.clone(), b.clone()]).unwrap();
        let (a, b) = (Some(a.hash()), Some(b.hash()));
        store.swap_root("main", None, a).unwrap();
        store.swap_root("other", None, b).unwrap();
        match store.swap_root("main", b, None).unwrap_err() {
            StoreError::RootChanged { name, expected, found } => {
                assert_eq!((name.as_str(), expected, found), ("main", b, a));
            }
            other => panic!("{other}"),
        }
        assert_eq!(store.root("main").unwrap(), a);
        store.swap_root("main", a, b).unwrap();
        assert_eq!(store.root("main").unwrap(), b);
        store.swap_root("main", b, None).unwrap();
        assert_eq!((store.root("main").unwrap(), store.root("other").unwrap()), (None, b));
    });
}

#[test]
fn threads_put_sync_and_swap_at_once() {
    on_each(|store| {
        let start = blob(b"start");
        store.put_many(std::slice::from_ref(&start)).unwrap();
        store.swap_root("r", None, Some(start.hash())).unwrap();
        let swaps = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|seed| scope.spawn(move || work_and_swap(store, Random::new(seed % 2))))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u32>()
        });
        assert!(swaps > 0);
    });
}

/// Puts the same chunks as another thread does, swaps a shared root to each batch's last chunk, and
/// returns how often that went through.
fn work_and_swap(store: &dyn ChunkStore, mut random: Random) -> u32 {
    let mut swaps = 0;
    for _ in 0..20 {
        let chunks = random_chunks(&mut random, 8);
        store.put_many(&chunks).unwrap();
        assert_stored(store, &chunks);
        store.sync().unwrap();
        let found = store.root("r").unwrap();
        match store.swap_root("r", found, Some(chunks[7].hash())) {
            Ok(()) => swaps += 1,
            Err(StoreError::RootChanged { .. }) => (),
            Err(other) => panic!("{other}"),
        }
    }
    swaps
}

#[test]
fn a_store_in_a_real_directory_is_there_again_and_has_one_owner() {
    let directory = TemporaryDirectory::new();
    let chunks = random_chunks(&mut Random::new(5), 40);
    let root = Some(chunks[39].hash());
    {
        let store = directory.open().unwrap();
        store.put_many(&chunks[..20]).unwrap();
        store.swap_root("r", None, Some(chunks[19].hash())).unwrap();
        store.put_many(&chunks[20..]).unwrap();
        store.swap_root("r", Some(chunks[19].hash()), root).unwrap();
        assert!(matches!(directory.open(), Err(StoreError::InUse)));
    }
    let store = directory.open().unwrap();
    assert_eq!(store.root("r").unwrap(), root);
    let mut expected = hashes(&chunks);
    expected.sort();
    assert_eq!(store.chunk_hashes().unwrap(), expected);
    assert_stored(&*store, &chunks);
    assert!(store.verify(&mut |_| ()).unwrap().is_empty());
    let bytes: u64 = std::fs::read_dir(&directory.0)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name().to_str().unwrap().ends_with(".pack"))
        .map(|entry| entry.metadata().unwrap().len())
        .sum();
    assert_eq!(store.counters().bytes_stored, bytes);
}

#[test]
fn counters_report_what_was_read_and_written() {
    let disk = SimDisk::new(0);
    let chunks = random_chunks(&mut Random::new(5), 10);
    {
        let store = open(&disk).unwrap();
        store.put_many(&chunks).unwrap();
        store.sync().unwrap();
        let synced = store.counters();
        store.sync().unwrap();
        assert_eq!(store.counters(), synced, "nothing to sync, nothing synced");
    }
    let options = frond_store::local::LocalOptions::default();
    let store = LocalStore::open(&disk.machine(), options).unwrap();
    let before = store.counters();
    assert_stored(&*store, &chunks);
    assert_stored(&*store, &chunks);
    let after = store.counters();
    assert_eq!(after.chunks_read - before.chunks_read, 40);
    assert_eq!(after.chunks_fetched - before.chunks_fetched, 10, "then they come from the cache");
    assert_eq!((after.chunks_written, after.bytes_put), (0, 0));
}

#[test]
fn a_chunk_that_is_replaced_is_not_kept_in_memory_unless_it_was() {
    let disk = SimDisk::new(0);
    let chunk = blob(b"to be replaced");
    open(&disk).unwrap().put_many(std::slice::from_ref(&chunk)).unwrap();
    let options = frond_store::local::LocalOptions::default();
    let store = LocalStore::open(&disk.machine(), options).unwrap();
    // The number of times that the disk was asked by then.
    let replace = || {
        assert_eq!(store.read(chunk.hash(), ReadOptions::TO_REPLACE).unwrap(), chunk);
        store.counters().chunks_fetched
    };
    assert_eq!([replace(), replace()], [1, 2]);
    assert_eq!(store.get(chunk.hash()).unwrap(), chunk);
    assert_eq!([replace(), replace()], [3, 3]);
    let absent = blob(b"absent").hash();
    assert!(matches!(store.read(absent, ReadOptions::TO_REPLACE), Err(StoreError::Missing(_))));
}

#[test]
fn looked_up_chunks_are_cached_if_there_is_room_or_they_return_soon() {
    let disk = SimDisk::new(0);
    let content = |number: u32| number.to_le_bytes().repeat(1 << 10);
    let chunks: Vec<Chunk> = (0..512).map(|number| blob(&content(number))).collect();
    open(&disk).unwrap().put_many(&chunks).unwrap();
    let options = frond_store::local::LocalOptions { cache_bytes: 1 << 20, ..Default::default() };
    let store = LocalStore::open(&disk.machine(), options).unwrap();
    // Whether it is kept, and how often the disk was asked by then.
    let look_up_entry = |position: usize| {
        let look_up_entry =
            store.look_up_entry(chunks[position].hash(), EntryName::of(b"a part")).unwrap();
        let EntryLookup::Chunk(chunk, kept) = look_up_entry else { panic!("no part was kept") };
        assert_eq!(chunk, chunks[position]);
        (kept == Admission::InMemory, store.counters().chunks_fetched)
    };
    assert_eq!([look_up_entry(0), look_up_entry(0)], [(true, 1), (true, 1)]);
    // Twice as much as there is room for; what comes first stays.
    store.get_many(&chunks.iter().map(Chunk::hash).collect::<Vec<_>>()).unwrap();
    let mut seldom_count = 0;
    for position in 300..400 {
        let (is_kept, fetched) = look_up_entry(position);
        if !is_kept {
            assert_eq!(look_up_entry(position), (true, fetched + 1));
            seldom_count += 1;
        }
    }
    assert!(seldom_count > 50, "{seldom_count}");
    let absent = blob(b"absent").hash();
    let missing = store.look_up_entry(absent, EntryName::of(b"a part"));
    assert!(matches!(missing, Err(StoreError::Missing(_))));
}

#[test]
fn a_part_that_is_kept_is_read_without_its_chunk() {
    let disk = SimDisk::new(0);
    let chunks: Vec<Chunk> = (0..500u32).map(|it| blob(&it.to_le_bytes().repeat(1_000))).collect();
    open(&disk).unwrap().put_many(&chunks).unwrap();
    // Each read comes from the disk.
    let options = frond_store::local::LocalOptions {
        cache_bytes: 1 << 20,
        slow_read_micros: 0,
        ..Default::default()
    };
    let store = LocalStore::open(&disk.machine(), options).unwrap();
    let (name, other) = (EntryName::of(b"a part"), EntryName::of(b"another"));
    let wanted = chunks.iter().find(|chunk| {
        let look_up_entry = store.look_up_entry(chunk.hash(), name).unwrap();
        look_up_entry == EntryLookup::Chunk((*chunk).clone(), Admission::EntryWanted)
    });
    let chunk = wanted.expect("soon parts are wanted");
    store.read_cache().unwrap().keep_entry(chunk.hash(), name, &[b"a ", b"part"]);
    let before = store.counters();
    assert_eq!(
        store.look_up_entry(chunk.hash(), name).unwrap(),
        EntryLookup::Entry("a part".into())
    );
    let counters = store.counters();
    assert_eq!(counters.chunks_read, before.chunks_read + 1, "a hit like others");
    assert_eq!(counters.chunks_fetched, before.chunks_fetched);
    assert_eq!(store.get(chunk.hash()).unwrap(), *chunk, "who wants all gets all");
    let all = EntryLookup::Chunk(chunk.clone(), Admission::InMemory);
    assert_eq!(store.look_up_entry(chunk.hash(), other).unwrap(), all);
}

#[test]
fn some_chunks_are_synced_unless_they_are_durable() {
    on_each(|store| {
        let (one, other) = (blob(b"one"), blob(b"other"));
        store.put_many(std::slice::from_ref(&one)).unwrap();
        store.sync_these(&[one.hash()]).unwrap();
        let missing = store.sync_these(&[one.hash(), other.hash()]).unwrap_err();
        assert!(matches!(missing, StoreError::Missing(hash) if hash == other.hash()));
    });
    for_seeds(20, |mut random| {
        let disk = SimDisk::new(random.next());
        let store = open(&disk).unwrap();
        let chunks = random_chunks(&mut random, 10);
        store.put_many(&chunks[..5]).unwrap();
        store.sync_these(&hashes(&chunks[..1])).unwrap();
        let syncs = store.counters().syncs;
        store.put_many(&chunks[5..]).unwrap();
        store.sync_these(&hashes(&chunks[..5])).unwrap();
        assert_eq!(store.counters().syncs, syncs, "these are durable");
        store.sync_these(&hashes(&chunks[4..6])).unwrap();
        assert_stored(&*open(&disk.crash()).unwrap(), &chunks);
    });
}

/// Only interior nodes of what is loaded are in memory: they are asked for at each read.
#[test]
fn leaves_that_are_loaded_leave_the_cache_to_others() {
    let leaf = blob(b"leaf");
    let node = Chunk::new(ChunkKind::MapNode, &[leaf.hash()], b"node");
    for (lifetime, expected) in [(Lifetime::Loaded, 1), (Lifetime::Working, 0)] {
        let disk = SimDisk::new(0);
        let options = frond_store::local::LocalOptions::default();
        let store = LocalStore::open(&disk.machine(), options).unwrap();
        store.put_many_for(lifetime, &[leaf.clone(), node.clone()]).unwrap();
        assert_eq!(store.get(node.hash()).unwrap(), node);
        assert_eq!(store.counters().chunks_fetched, 0, "the node is in memory");
        assert_eq!(store.get(leaf.hash()).unwrap(), leaf);
        assert_eq!(store.counters().chunks_fetched, expected);
    }
}
