//! Goal: a directory whose packs live in a bucket reads what it wrote, keeps little on the disk,
//! loses nothing wherever it is interrupted, and is fenced when another takes the lead. Method: a
//! simulated disk and a simulated bucket; the power fails at each operation of the disk, and the
//! process is cut off at each call to the bucket.

mod cache;
mod leases;
mod locations;
mod memory;
mod pins;
mod purge;
mod reader;
mod takes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use frond_store::bucket::{Bucket, BucketError, Created, ObjectPart, ObjectVersion, Swapped};
use frond_store::io::{Disk, Machine};
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::tiered::{LogPlace, TieredDisk, TieredOptions};
use frond_store::{
    Chunk, ChunkHash, ChunkKind, ChunkStore, GarbageCollection, GcOptions, Maintenance, StoreError,
};
use frond_testkit::random::for_seeds;
use frond_testkit::{DepotFaults, Random, SimClock, SimDepot, SimDisk};

use crate::{SMALL, assert_stored, random_chunks};

const ROOT: &str = "engine";
const WHOLE: &str = "engine.whole";
/// New packs of so many bytes may stay on the disk.
pub(crate) const LOCAL_BYTES_MAX: u64 = 16 << 10;
/// The bytes that stay in any case: manifests, indexes, the file of extents.
const EXTENTS_BYTES: u64 = 1 << 20;

/// A directory and its way to the bucket.
pub(crate) struct Node {
    pub(crate) disk: SimDisk,
    pub(crate) bucket: Arc<SimDepot>,
    pub(crate) clock: SimClock,
    pub(crate) take_over: bool,
    pub(crate) options: LocalOptions,
    pub(crate) cache_bytes: u64,
}

impl Node {
    pub(crate) fn new(seed: u64, bucket: &SimDepot) -> Node {
        let (disk, bucket) = (SimDisk::new(seed), Arc::new(bucket.other_client()));
        Node {
            disk,
            bucket,
            clock: SimClock::new(),
            take_over: false,
            options: SMALL,
            cache_bytes: EXTENTS_BYTES,
        }
    }

    /// The same directory after its process ended, which `disk` is what is left of.
    fn again(&self, disk: SimDisk, bucket: &SimDepot) -> Node {
        Node { disk, clock: self.clock.clone(), ..Node::new(0, bucket) }
    }

    pub(crate) fn open(&self) -> Result<Arc<LocalStore>, StoreError> {
        LocalStore::open(&self.machine()?, self.options)
    }

    /// The directory, whose disk reaches the bucket.
    fn machine(&self) -> Result<Machine, StoreError> {
        self.machine_at(self.bucket.clone())
    }

    fn machine_at(&self, bucket: Arc<dyn Bucket>) -> Result<Machine, StoreError> {
        // Chance is another at each opening: ids and nonces are drawn.
        let machine = Machine { clock: Arc::new(self.clock.clone()), ..self.disk.machine() };
        let tiered = TieredDisk::open(&machine, bucket, self.tiered_options())?;
        Ok(Machine { disk: Arc::new(tiered), ..machine })
    }

    fn tiered_options(&self) -> TieredOptions {
        TieredOptions {
            place: "sim://bucket".to_owned(),
            cache_bytes: self.cache_bytes,
            local_bytes_max: LOCAL_BYTES_MAX,
            take_over: self.take_over,
            clone_of: None,
            pin_lease: Some(Duration::from_secs(30 * 24 * 60 * 60)),
            log: LogPlace::Local,
            linger: Duration::ZERO,
            keep_slots: Duration::ZERO,
        }
    }

    /// Bytes of packs on the disk.
    pub(crate) fn pack_bytes(&self) -> usize {
        let names = self.disk.list().unwrap();
        let packs = names.iter().filter(|name| name.ends_with(".pack"));
        packs.map(|name| self.disk.contents(name).unwrap().len()).sum()
    }
}

/// Points both roots at `new`, as an engine does that has flushed everything.
pub(crate) fn swap(store: &LocalStore, new: ChunkHash) -> Result<(), StoreError> {
    store.swap_root(ROOT, store.root(ROOT)?, Some(new))?;
    store.swap_root(WHOLE, store.root(WHOLE)?, Some(new))
}

/// A chunk that refers to all of `chunks`.
fn above(chunks: &[Chunk]) -> Chunk {
    let names: Vec<ChunkHash> = chunks.iter().map(Chunk::hash).collect();
    Chunk::new(ChunkKind::MapNode, &names, b"a root")
}

#[test]
fn a_directory_keeps_little_of_what_it_holds() {
    for_seeds(4, |mut random| {
        let bucket = SimDepot::new(random.next());
        let mut node = Node::new(random.next(), &bucket);
        let store = node.open().unwrap();
        let mut chunks = Vec::new();
        for _ in 0..300 {
            let some = random_chunks(&mut random, 8);
            store.put_many(&some).unwrap();
            chunks.extend(some);
            assert!(node.pack_bytes() as u64 <= 4 * LOCAL_BYTES_MAX, "{}", node.pack_bytes());
        }
        assert_stored(&*store, &chunks);
        store.sync().unwrap();
        drop(store);
        node = node.again(node.disk.kill(), &bucket);
        let before = bucket.bytes_read();
        let store = node.open().unwrap();
        assert_eq!(bucket.bytes_read(), before, "the indexes are on the disk");
        assert_stored(&*store, &chunks);
        assert!(before < bucket.bytes_read());
        // From the extents from now on.
        assert_stored(&*store, &chunks[..4]);
        let read = bucket.bytes_read();
        assert_stored(&*store, &chunks[..4]);
        assert_eq!(bucket.bytes_read(), read);
    });
}

/// A store removes what it finds and doesn't know.
#[test]
fn a_store_sees_packs_and_none_of_the_files_that_lead_to_them() {
    let bucket = SimDepot::new(1);
    let node = Node::new(1, &bucket);
    let store = node.open().unwrap();
    let chunks: Vec<Chunk> = (0..60u8).map(|byte| crate::blob(&[byte; 900])).collect();
    store.put_many(&chunks).unwrap();
    let root = above(&chunks);
    store.put_many(std::slice::from_ref(&root)).unwrap();
    swap(&store, root.hash()).unwrap();
    drop(store);
    let machine = node.machine().unwrap();
    node.disk.set_contents("DEPOT.new", b"");
    let (below, seen) = (node.disk.list().unwrap(), machine.disk.list().unwrap());
    for own in ["DEPOT", "DEPOT.new", "EXTENTS"] {
        assert!(below.iter().any(|name| name == own), "{below:?}");
    }
    assert!(below.iter().any(|name| name.ends_with(".index")), "{below:?}");
    let hidden: Vec<&String> = below.iter().filter(|name| !seen.contains(name)).collect();
    let is_own = |name: &str| {
        name.starts_with("DEPOT") || name.starts_with("EXTENTS") || name.ends_with(".index")
    };
    assert!(hidden.iter().all(|name| is_own(name)), "{hidden:?}");
    assert!(!seen.iter().any(|name| is_own(name)), "{seen:?}");
}

#[test]
fn a_collection_that_moves_all_keeps_little_on_the_disk() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(1);
    let node = Node::new(2, &bucket);
    let store = node.open().unwrap();
    let mut chunks = Vec::new();
    for _ in 0..100 {
        let some = random_chunks(&mut random, 8);
        store.put_many(&some).unwrap();
        chunks.extend(some);
    }
    let root = above(&chunks);
    store.put_many(std::slice::from_ref(&root)).unwrap();
    swap(&store, root.hash()).unwrap();
    let mut most = 0;
    let options = GcOptions { live_percent_min: 101, dry_run: false, pack_history: true };
    let collected = store
        .collect(&mut GarbageCollection {
            roots: &mut || Ok(vec![root.hash()]),
            throttle: &mut |_| {
                most = most.max(node.pack_bytes() as u64);
                std::ops::ControlFlow::Continue(())
            },
            options,
        })
        .unwrap();
    assert!(8 * LOCAL_BYTES_MAX < collected.bytes_after, "{}", collected.bytes_after);
    assert!(most <= 4 * LOCAL_BYTES_MAX, "{most} bytes of packs on the disk");
    assert_stored(&*store, &chunks);
}

#[test]
fn damaged_extents_are_fetched_again() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(1);
    let node = Node::new(2, &bucket);
    let store = node.open().unwrap();
    let chunks = random_chunks(&mut random, 200);
    store.put_many(&chunks).unwrap();
    let root = above(&chunks);
    store.put_many(std::slice::from_ref(&root)).unwrap();
    swap(&store, root.hash()).unwrap();
    assert_eq!(node.pack_bytes(), 0);
    assert_stored(&*store, &chunks);
    let read = bucket.bytes_read();
    let extents = node.disk.contents("EXTENTS").unwrap().len() as u64;
    for bit in (0..8 * extents).step_by(4001) {
        node.disk.flip_bit("EXTENTS", bit);
    }
    assert_stored(&*store, &chunks);
    assert!(read < bucket.bytes_read() && store.damages().is_empty());
}

#[test]
fn a_takeover_fences_the_previous_directory() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(3);
    let (first, mut second) = (Node::new(4, &bucket), Node::new(5, &bucket));
    let store = first.open().unwrap();
    let chunks = random_chunks(&mut random, 50);
    store.put_many(&chunks).unwrap();
    let root = above(&chunks);
    store.put_many(std::slice::from_ref(&root)).unwrap();
    swap(&store, root.hash()).unwrap();
    // Chunks acknowledged here from now on lie in this directory alone.
    let late = random_chunks(&mut random, 5);
    store.put_many(&late).unwrap();
    store.sync().unwrap();

    let error = second.open().err().expect("its operator didn't say so").to_string();
    assert!(error.contains("another directory leads"), "{error}");
    second.take_over = true;
    let taken = second.open().unwrap();
    assert_eq!(taken.root(ROOT).unwrap(), Some(root.hash()));
    assert_stored(&*taken, &chunks);

    let error = swap(&store, late[0].hash()).expect_err("it is deposed").to_string();
    assert!(error.contains("another directory took the lead"), "{error}");
    // The next writer learns why, not of an earlier failure alone.
    let error = store.put_many(&random_chunks(&mut random, 3)).expect_err("it is deposed");
    assert!(matches!(error, StoreError::Poisoned { .. }), "{error}");
    assert!(error.to_string().contains("another directory took the lead"), "{error}");
    assert_stored(&*store, &chunks);
    drop(store);
    let error = first.again(first.disk.kill(), &bucket).open().err().expect("it lost the line");
    assert!(error.to_string().contains("has data of its own"), "{error}");
    // The one that leads goes on.
    taken.put_many(&late).unwrap();
    swap(&taken, late[0].hash()).unwrap();
}

#[test]
fn an_opening_reports_which_packs_the_bucket_has_lost() {
    for_seeds(10, |mut random| {
        let bucket = SimDepot::new(random.next());
        bucket.set_faults(DepotFaults { stale_one_in: 2, ..DepotFaults::default() });
        let node = Node::new(random.next(), &bucket);
        let store = node.open().unwrap();
        for _ in 0..4 {
            let chunks = random_chunks(&mut random, 20);
            store.put_many(&chunks).unwrap();
            swap(&store, chunks[19].hash()).unwrap();
        }
        drop(store);
        let mut node = node.again(node.disk.kill(), &bucket);
        let store = node.open().unwrap();
        assert!(store.take_findings().is_empty(), "a list that is old is none");
        drop(store);
        let packs = bucket.objects().into_keys().filter(|name| name.starts_with("packs/"));
        let lost = random.choose(&packs.collect::<Vec<_>>()).clone();
        bucket.remove(&lost).unwrap();
        node = node.again(node.disk.kill(), &bucket);
        // A list may have it yet.
        let found = (0..20).find_map(|_| {
            let found = node.open().unwrap().take_findings();
            (!found.is_empty()).then_some(found)
        });
        let found = found.expect("a list that is new lacks it");
        assert_eq!(found.len(), 1);
        assert!(found[0].what.contains("isn't in the store any more"), "{found:?}");
    });
}

/// As where a disk has lost the file of a pack.
#[test]
fn a_takeover_opens_without_a_pack_that_the_bucket_has_lost() {
    for_seeds(6, |mut random| {
        let bucket = SimDepot::new(random.next());
        let node = Node::new(random.next(), &bucket);
        let store = node.open().unwrap();
        let all: Vec<Vec<Chunk>> = (0..4)
            .map(|_| {
                let chunks = random_chunks(&mut random, 20);
                store.put_many(&chunks).unwrap();
                swap(&store, chunks[19].hash()).unwrap();
                chunks
            })
            .collect();
        drop(store);
        let packs = bucket.objects().into_keys().filter(|name| name.starts_with("packs/"));
        let packs: Vec<String> = packs.collect();
        let lost: &String = random.choose(&packs);
        bucket.remove(lost).unwrap();
        let mut other = Node::new(random.next(), &bucket);
        other.take_over = true;
        let store = other.open().expect("damage keeps no store closed");
        assert!(!store.take_findings().is_empty(), "it tells which one is lost");
        let is_lost = |chunk: &Chunk| store.get(chunk.hash()).is_err();
        let lost = all.iter().filter(|chunks| chunks.iter().any(is_lost)).count();
        assert_eq!(lost, 1, "what the others hold is there");
        // What was lost is put again, from a backup say, and the next one has it.
        all.iter().for_each(|chunks| store.put_many(chunks).unwrap());
        swap(&store, all[0][19].hash()).unwrap();
        drop(store);
        let mut last = Node::new(random.next(), &bucket);
        last.take_over = true;
        let store = last.open().expect("damage keeps no store closed");
        all.iter().for_each(|chunks| assert_stored(&*store, chunks));
    });
}

/// As by a snapshot of its disk: its next packs would have the numbers of others.
#[test]
fn a_directory_that_was_put_back_does_not_go_on() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(21);
    let node = Node::new(22, &bucket);
    let store = node.open().unwrap();
    let put = |random: &mut Random| {
        let chunks = random_chunks(random, 20);
        store.put_many(&chunks).unwrap();
        swap(&store, chunks[19].hash()).unwrap();
        chunks
    };
    put(&mut random);
    let before = node.disk.copy(24);
    let last = put(&mut random);
    let now = node.disk.kill();
    drop(store);
    node.again(now, &bucket).open().expect("it is as it was");
    let error = node.again(before, &bucket).open().err().expect("it is older").to_string();
    assert!(error.contains("in an earlier state"), "{error}");
    let mut other = Node::new(23, &bucket);
    other.take_over = true;
    assert_stored(&*other.open().unwrap(), &last[19..]);
}

#[test]
fn without_its_bucket_a_directory_stays_closed() {
    let bucket = SimDepot::new(6);
    let node = Node::new(7, &bucket);
    drop(node.open().unwrap());
    let error = crate::open(&node.disk).err().expect("its packs are elsewhere").to_string();
    assert!(error.contains("frond serve --store"), "{error}");
}

/// The writes that a run has acknowledged.
#[derive(Default)]
struct Acknowledged {
    durable: Vec<Chunk>,
    root: Option<ChunkHash>,
    /// All that a root may name, with what each refers to.
    roots: BTreeMap<ChunkHash, Vec<Chunk>>,
}

/// Puts, syncs, collects and swaps, until the end or the first error.
fn script(node: &Node, mut random: Random, seen: &mut Acknowledged) -> Result<(), StoreError> {
    let store = node.open()?;
    for _ in 0..8 {
        let chunks = random_chunks(&mut random, 6);
        let root = above(&chunks);
        store.put_many(&chunks)?;
        store.put_many(std::slice::from_ref(&root))?;
        seen.roots.insert(root.hash(), chunks.clone());
        match random.below(4) {
            0 => {
                store.sync()?;
                seen.durable = chunks;
            }
            1 => {
                let options =
                    GcOptions { live_percent_min: 50, dry_run: false, pack_history: true };
                let keep: Vec<ChunkHash> = seen.durable.iter().map(Chunk::hash).collect();
                store.collect(&mut GarbageCollection {
                    roots: &mut || Ok(keep.clone()),
                    throttle: &mut |_| std::ops::ControlFlow::Continue(()),
                    options,
                })?;
                node.clock.step(80 * 60 * 1_000_000);
            }
            _ => {
                swap(&store, root.hash())?;
                seen.root = Some(root.hash());
                seen.durable = chunks;
            }
        }
    }
    Ok(())
}

/// Checks the state that a restart finds, and the one of a directory that takes over.
fn check(node: &Node, bucket: &SimDepot, seen: &Acknowledged) {
    bucket.settle();
    let store = node.open().expect("a cut needs no repair");
    if let Some(root) = store.root(WHOLE).unwrap() {
        assert_stored(&*store, &seen.roots[&root]);
    }
    assert!(seen.root.is_none() || store.root(WHOLE).unwrap().is_some());
    assert_stored(&*store, &seen.durable);
    store.put_many(&random_chunks(&mut Random::new(1), 20)).expect("it is written to again");
    drop(store);
    let mut other = Node::new(9, bucket);
    other.take_over = true;
    match other.open() {
        Ok(store) => {
            let root = store.root(ROOT).unwrap().expect("it began with what was whole");
            assert_stored(&*store, &seen.roots[&root]);
        }
        Err(error) => assert!(seen.root.is_none(), "{error}"),
    }
}

#[test]
fn cut_off_at_each_call_to_the_bucket_nothing_is_lost() {
    for_seeds(3, |mut random| {
        let seed = random.next();
        let run = |cut: Option<u64>| {
            let bucket = SimDepot::new(seed);
            let node = Node::new(seed, &bucket);
            if let Some(calls) = cut {
                node.bucket.cut_after(calls);
            }
            let mut seen = Acknowledged::default();
            let ended = script(&node, Random::new(seed), &mut seen);
            assert!(ended.is_ok() || node.bucket.is_cut(), "{ended:?}");
            let calls = node.bucket.calls();
            check(&node.again(node.disk.kill(), &bucket), &bucket, &seen);
            calls
        };
        let calls = run(None);
        for cut in 0..calls {
            run(Some(cut));
        }
    });
}

#[test]
fn when_the_power_fails_at_each_operation_nothing_is_lost() {
    for_seeds(1, |mut random| {
        let seed = random.next();
        let run = |cut: Option<u64>| {
            let bucket = SimDepot::new(seed);
            let node = Node::new(seed, &bucket);
            if let Some(operations) = cut {
                node.disk.crash_after(operations);
            }
            let mut seen = Acknowledged::default();
            let ended = script(&node, Random::new(seed), &mut seen);
            assert!(ended.is_ok() || node.disk.is_dead(), "{ended:?}");
            let operations = node.disk.operations();
            check(&node.again(node.disk.crash(), &bucket), &bucket, &seen);
            operations
        };
        let operations = run(None);
        for cut in 0..operations {
            run(Some(cut));
        }
    });
}

#[test]
fn a_bucket_that_answers_badly_loses_nothing() {
    for_seeds(40, |mut random| {
        let bucket = SimDepot::new(random.next());
        let mut node = Node::new(random.next(), &bucket);
        bucket.set_faults(DepotFaults::MANY);
        let mut seen = Acknowledged::default();
        for _ in 0..4 {
            let seed = Random::new(random.next());
            let mut now = Acknowledged::default();
            // It may fail, and the next run goes on from what is there.
            let _ = script(&node, seed, &mut now);
            seen.roots.extend(now.roots);
            if now.root.is_some() {
                (seen.root, seen.durable) = (now.root, Vec::new());
            }
            node = node.again(node.disk.kill(), &bucket);
        }
        bucket.set_faults(DepotFaults::default());
        check(&node, &bucket, &seen);
    });
}

#[test]
fn objects_that_nothing_needs_go() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(8);
    let node = Node::new(10, &bucket);
    let store = node.open().unwrap();
    let packs = || bucket.objects().keys().filter(|name| name.starts_with("packs/")).count();
    let put = |random: &mut Random| {
        let chunks = random_chunks(random, 30);
        store.put_many(&chunks).unwrap();
        swap(&store, chunks[29].hash()).unwrap();
        chunks
    };
    put(&mut random);
    let before = packs();
    put(&mut random);
    let options = GcOptions { live_percent_min: 50, dry_run: false, pack_history: true };
    store
        .collect(&mut GarbageCollection {
            roots: &mut || Ok(Vec::new()),
            throttle: &mut |_| std::ops::ControlFlow::Continue(()),
            options,
        })
        .unwrap();
    put(&mut random);
    let doomed = packs();
    node.clock.step(80 * 60 * 1_000_000);
    let last = put(&mut random);
    assert!(before > 0 && packs() < doomed, "{} of {doomed} packs are left", packs());
    assert_stored(&*store, &last[29..]);
    // One of an epoch that is over, which HEAD doesn't list.
    let orphan = format!("packs/ab/main-1-{}", "ab".repeat(16));
    bucket.create(&orphan, b"an orphan"[..].into()).unwrap();
    drop(store);
    let node = node.again(node.disk.kill(), &bucket);
    let store = node.open().unwrap();
    assert!(bucket.objects().contains_key(&orphan), "a reader may hold it yet");
    node.clock.step(80 * 60 * 1_000_000);
    store.put_many(&random_chunks(&mut random, 30)).unwrap();
    swap(&store, last[29].hash()).unwrap();
    assert!(!bucket.objects().contains_key(&orphan));
    assert_stored(&*store, &last[29..]);
}

#[test]
fn a_directory_goes_on_without_a_head_if_it_has_all_packs() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(11);
    let mut node = Node::new(12, &bucket);
    let chunks = random_chunks(&mut random, 5);
    let store = node.open().unwrap();
    store.put_many(&chunks).unwrap();
    store.sync().unwrap();
    drop(store);
    bucket.remove("lines/main/HEAD").unwrap();
    node = node.again(node.disk.kill(), &bucket);
    let store = node.open().expect("all that it acknowledged lies here");
    assert_stored(&*store, &chunks);
    swap(&store, chunks[0].hash()).unwrap();
    assert_eq!(node.pack_bytes(), 0);
    drop(store);
    bucket.remove("lines/main/HEAD").unwrap();
    let error = node.again(node.disk.kill(), &bucket).open().err().expect("packs are elsewhere");
    assert!(error.to_string().contains("has no HEAD any more"), "{error}");
}

/// A chunk was set aside in one of several packs: a server that takes over doesn't take it for
/// there.
#[test]
fn a_takeover_knows_what_was_damaged_when_it_was_sent() {
    let mut random = Random::new(13);
    let bucket = SimDepot::new(13);
    let (first, mut second) = (Node::new(14, &bucket), Node::new(15, &bucket));
    let store = first.open().unwrap();
    let mut chunks = Vec::new();
    for _ in 0..4 {
        let some = random_chunks(&mut random, 8);
        store.put_many(&some).unwrap();
        chunks.extend(some);
    }
    store.sync().unwrap();
    let lost = chunks[2].hash();
    let contents = first.disk.contents("00000000.pack").unwrap();
    let at = contents.windows(32).position(|window| window == lost.0).unwrap();
    first.disk.flip_bit("00000000.pack", (at as u64 + 36) * 8);
    assert_eq!(store.has_intact(&[lost]).unwrap(), [false]);
    swap(&store, chunks[31].hash()).unwrap();
    second.take_over = true;
    let taken = second.open().unwrap();
    assert_eq!(taken.has_many(&[lost]).unwrap(), [false]);
    assert_eq!(taken.damages().iter().map(|it| it.chunk).collect::<Vec<_>>(), [Some(lost)]);
}

#[test]
fn a_disk_whose_store_was_closed_may_be_opened_again() {
    let node = Node::new(16, &SimDepot::new(16));
    let machine = node.machine().unwrap();
    let store = LocalStore::open(&machine, SMALL).unwrap();
    assert!(LocalStore::open(&machine, SMALL).is_err(), "it is open");
    drop(store);
    LocalStore::open(&machine, SMALL).unwrap();
}

/// A bucket that takes everything but packs: their size exceeds what its owner may store, say.
struct WithoutPacks {
    below: Arc<SimDepot>,
    refuses: AtomicBool,
}

impl Bucket for WithoutPacks {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, BucketError> {
        if name.starts_with("packs/") && self.refuses.load(Ordering::SeqCst) {
            return Err(BucketError::Refused { name: name.to_owned(), what: "403".to_owned() });
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

/// Packs that aren't in the bucket stay on the disk.
#[test]
fn a_pack_that_the_bucket_refuses_is_not_listed_there() {
    let mut random = Random::fresh();
    let node = Node::new(17, &SimDepot::new(17));
    let bucket =
        Arc::new(WithoutPacks { below: node.bucket.clone(), refuses: AtomicBool::new(true) });
    let machine = node.machine_at(bucket.clone()).unwrap();
    let store = LocalStore::open(&machine, SMALL).unwrap();
    let chunks = random_chunks(&mut random, 5);
    store.put_many(&chunks).unwrap();
    let error = swap(&store, chunks[4].hash()).expect_err("it can't be sent").to_string();
    assert!(error.contains("403") && node.pack_bytes() > 0, "{error}");
    assert_stored(&*store, &chunks);
    bucket.refuses.store(false, Ordering::SeqCst);
    swap(&store, chunks[4].hash()).unwrap();
    assert_eq!(node.pack_bytes(), 0);
    assert_stored(&*store, &chunks);
}
