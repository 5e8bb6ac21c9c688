//! Chunks that are born, at moments that only a test without background threads can choose.
//!
//! *Method*: a value is a head that refers to two parts. Memtables are closed, flushed and folded
//! one by one, and the packs are collected so that nothing stays in them that isn't kept.

use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use frond_store::ChunkKind;
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::memory::MemoryStore;
use frond_testkit::{Random, SimDisk};
use frond_tree::{Content, Tree, Value};

use super::*;
use crate::gc::reclaim::ReclaimOptions;
use crate::ids::TreeId;
use crate::options::EngineOptions;
use crate::recovery;
use crate::shared::Shared;
use crate::snapshot::KeepGoing;
use crate::transaction::held_locks::LockMode;
use crate::transaction::{Durability, Transaction};

const TREE: TreeId = TreeId(2);
const KEY: &[u8] = b"key";

/// A value by its parts' numbers. Parts are alike, and a patch turns one into another, from 100 on
/// they aren't.
type Parts = [u8; 2];

fn part(number: u8) -> Chunk {
    let mut payload = vec![if number < 100 { 0 } else { number }; 300];
    payload[0] = number;
    Chunk::new(ChunkKind::Blob, &[], &payload)
}

fn head(parts: Parts) -> Chunk {
    Chunk::new(ChunkKind::Blob, &parts.map(|number| part(number).hash()), &[7; 250])
}

fn all(parts: Parts) -> Vec<Chunk> {
    vec![part(parts[0]), part(parts[1]), head(parts)]
}

fn hashes(chunks: &[Chunk]) -> Vec<ChunkHash> {
    chunks.iter().map(Chunk::hash).collect()
}

fn open(disk: &SimDisk) -> Arc<Shared> {
    let machine = disk.machine();
    let store = LocalStore::open(&machine, LocalOptions::default()).unwrap();
    Arc::new(recovery::open(&machine, store, EngineOptions::default()).unwrap())
}

/// An engine with one tree, whose key has the first of `values` in turn.
fn with(disk: &SimDisk, values: &[Parts]) -> Arc<Shared> {
    let shared = open(disk);
    assert_eq!(shared.tree_ids.reserve(), TREE);
    let mut transaction = Transaction::begin(Arc::clone(&shared), LockMode::default());
    let base = Tree::empty(&*shared.store, shared.local_format).unwrap();
    transaction.set_base(TREE, base).unwrap();
    transaction.commit(Durability::Synced).unwrap();
    let mut before = None;
    for parts in values {
        write(&shared, before, *parts);
        before = Some(*parts);
    }
    shared
}

/// Gives the key a value, and brings of it what `before` hasn't.
fn write(shared: &Arc<Shared>, before: Option<Parts>, after: Parts) {
    let mut transaction = Transaction::begin(Arc::clone(shared), LockMode::default());
    let known: Vec<ChunkHash> = before.into_iter().flat_map(|parts| hashes(&all(parts))).collect();
    let chunks: Vec<Chunk> =
        all(after).into_iter().filter(|chunk| !known.contains(&chunk.hash())).collect();
    transaction.put_chunks(&chunks);
    let content = Content::Chunk { hash: head(after).hash(), bytes: 250 };
    let value = Value { flags: 0, content };
    transaction.put_changed(TREE, Bytes::from_static(KEY), value).unwrap();
    transaction.commit(Durability::Synced).unwrap();
}

fn seal(shared: &Shared) {
    shared.seal(&mut shared.queue());
}

fn fold(shared: &Shared) {
    shared.fold(&shared.snapshot(), &[TREE]).unwrap();
}

/// Removes from packs what isn't kept.
fn collect(shared: &Shared) {
    // So much that each pack is worth moving.
    let garbage = (0..100).map(|number| Chunk::new(ChunkKind::Blob, &[], &[number; 900]));
    shared.store.put_many(&garbage.collect::<Vec<_>>()).unwrap();
    let keep_going: Arc<KeepGoing> = Arc::new(|| true);
    shared.reclaim_while(ReclaimOptions::default(), &keep_going).unwrap();
}

/// Checks that all can be read, now and after a power cut.
fn check(disk: &SimDisk, shared: Arc<Shared>, expected: Parts) {
    let read = |shared: &Shared| {
        shared.check().unwrap();
        let value = shared.snapshot().get(TREE, KEY).unwrap().unwrap();
        assert_eq!(value.content, Content::Chunk { hash: head(expected).hash(), bytes: 250 });
        assert_eq!(shared.store.get_many(&hashes(&all(expected))).unwrap(), all(expected));
    };
    read(&shared);
    collect(&shared);
    read(&shared);
    drop(shared);
    let shared = open(&disk.crash());
    read(&shared);
    shared.checkpoint().unwrap();
    assert!(shared.pending.all().is_empty(), "all memtables are gone");
    collect(&shared);
    read(&shared);
}

/// The base is beyond the record that is made of what only the log before it had.
#[test]
fn origins_of_a_record_are_packed_even_after_a_later_fold() {
    let disk = SimDisk::new(1);
    let shared = with(&disk, &[[0, 1]]);
    seal(&shared);
    write(&shared, Some([0, 1]), [2, 1]);
    fold(&shared);
    shared.flush_sealed().unwrap();
    check(&disk, shared, [2, 1]);
}

/// As before, but what the record is made of was packed long ago, and the tree that has it goes
/// while the record stays.
#[test]
fn origins_of_a_record_stay_in_packs() {
    let disk = SimDisk::new(7);
    let shared = with(&disk, &[[0, 1]]);
    shared.flush().unwrap();
    seal(&shared);
    write(&shared, Some([0, 1]), [2, 1]);
    fold(&shared);
    shared.flush_sealed().unwrap();
    check(&disk, shared, [2, 1]);
}

/// A chunk of the second memtable refers to one of the first, which is no part of any other value.
#[test]
fn references_of_a_chunk_are_packed_even_after_a_later_fold() {
    let disk = SimDisk::new(2);
    let shared = with(&disk, &[[0, 100]]);
    seal(&shared);
    write(&shared, Some([0, 100]), [1, 100]);
    write(&shared, Some([1, 100]), [1, 101]);
    fold(&shared);
    shared.flush_sealed().unwrap();
    check(&disk, shared, [1, 101]);
}

#[test]
fn chunks_of_two_memtables_stay_until_both_are_gone() {
    let disk = SimDisk::new(3);
    let shared = with(&disk, &[[0, 1], [2, 1]]);
    seal(&shared);
    write(&shared, Some([2, 1]), [0, 1]);
    shared.flush_sealed().unwrap();
    shared.free_flushed();
    assert!(shared.pending.all().get(part(0).hash()).is_some());
    check(&disk, shared, [0, 1]);
}

/// A chunk was reported to a caller as there, and nothing refers to it for a while.
#[test]
fn packed_chunks_stay_in_packs_while_they_are_pending() {
    let disk = SimDisk::new(4);
    let shared = with(&disk, &[[0, 1], [2, 1], [3, 1]]);
    let names = [part(2).hash()];
    assert_eq!(shared.pending.store.has_many(&names).unwrap(), [false]);
    assert_eq!(shared.store.has_many(&names).unwrap(), [true]);
    collect(&shared);
    assert_eq!(shared.pending.store.has_many(&names).unwrap(), [true]);
    write(&shared, Some([3, 1]), [2, 1]);
    shared.flush().unwrap();
    check(&disk, shared, [2, 1]);
}

#[test]
fn putting_a_chunk_packs_its_references_first() {
    let shared = with(&SimDisk::new(5), &[[0, 1]]);
    let names = hashes(&all([0, 1]));
    assert_eq!(shared.pending.store.has_many(&names).unwrap(), [false; 3]);
    let above = Chunk::new(ChunkKind::Blob, &[head([0, 1]).hash()], b"above");
    shared.store.put_many(&[above]).unwrap();
    assert_eq!(shared.pending.store.has_many(&names).unwrap(), [true; 3]);
}

/// The head is durable, from long ago; what it refers to is born again.
#[test]
fn synced_chunks_are_durable_with_everything_they_reach() {
    for seed in frond_testkit::random::seeds(10) {
        let disk = SimDisk::new(seed);
        let store = LocalStore::open(&disk.machine(), LocalOptions::default()).unwrap();
        store.put_many(&[head([0, 1])]).unwrap();
        store.sync().unwrap();
        let layer = StoreWithPending::new(store);
        let here = MemtableChunks::new(layer.all());
        here.add(&NewChunks { chunks: all([0, 1]), needs: Vec::new() });
        layer.sync_these(&[head([0, 1]).hash()]).unwrap();
        let store = LocalStore::open(&disk.crash().machine(), LocalOptions::default()).unwrap();
        assert_eq!(store.get_many(&hashes(&all([0, 1]))).unwrap(), all([0, 1]));
    }
}

#[test]
fn chunks_put_during_a_collection_are_kept_with_everything_they_reach() {
    let (pending, store): (Arc<PendingChunks>, _) = (Arc::default(), MemoryStore::new());
    let mut view = pending.view(&*store).unwrap();
    let here = MemtableChunks::new(&pending);
    here.add(&NewChunks { chunks: all([0, 1]), needs: Vec::new() });
    view.keep(head([0, 1]).hash()).unwrap();
    assert_eq!(view.into_kept(), HashSet::from([head([0, 1]).hash()]));
    assert_eq!(store.has_many(&hashes(&all([0, 1]))).unwrap(), [true; 3]);
}

fn poisoned() -> StoreError {
    StoreError::Poisoned { reason: "it takes no more".to_owned() }
}

/// A store that takes nothing.
struct Full(Arc<MemoryStore>);

impl StoreLayer for Full {
    fn inner(&self) -> &dyn ChunkStore {
        &*self.0
    }

    fn put(&self, _: Option<Lifetime>, _: &[Chunk]) -> Result<(), StoreError> {
        Err(poisoned())
    }
}

#[test]
fn chunks_that_could_not_be_put_are_not_counted_as_packed() {
    let (pending, store): (Arc<PendingChunks>, _) = (Arc::default(), MemoryStore::new());
    let here = MemtableChunks::new(&pending);
    here.add(&NewChunks { chunks: all([0, 1]), needs: Vec::new() });
    let roots = [head([0, 1]).hash()];
    assert!(pending.pack(&Layered(Full(Arc::clone(&store))), Lifetime::Working, roots).is_err());
    pending.pack(&*store, Lifetime::Working, roots).unwrap();
    assert_eq!(store.has_many(&hashes(&all([0, 1]))).unwrap(), [true; 3]);
}

/// A store that takes so many batches, and then nothing that it doesn't have.
struct Filling(Arc<MemoryStore>, AtomicUsize);

impl StoreLayer for Filling {
    fn inner(&self) -> &dyn ChunkStore {
        &*self.0
    }

    fn put(&self, _: Option<Lifetime>, chunks: &[Chunk]) -> Result<(), StoreError> {
        let has = self.0.has_many(&hashes(chunks))?;
        if has.iter().all(|has| *has) {
            return Ok(());
        }
        let left = self.1.load(Ordering::Relaxed);
        self.1.store(left.checked_sub(1).ok_or_else(poisoned)?, Ordering::Relaxed);
        self.0.put_many(chunks)
    }
}

#[test]
fn a_partial_packing_on_a_full_disk_has_no_dangling_reference() {
    // Two heads share a part, and each chunk fills a batch.
    let large = |number: u8| Chunk::new(ChunkKind::Blob, &[], &vec![number; BATCH_BYTES]);
    let parts = [large(0), large(1), large(2)];
    let refer = |chunks: &[&Chunk], number: u8| {
        let hashes: Vec<ChunkHash> = chunks.iter().map(|chunk| chunk.hash()).collect();
        Chunk::new(ChunkKind::Blob, &hashes, &vec![number; BATCH_BYTES])
    };
    let left = refer(&[&parts[0], &parts[1]], 10);
    let right = refer(&[&parts[1], &parts[2]], 11);
    let top = refer(&[&left, &right, &parts[2]], 12);
    let mut chunks = parts.to_vec();
    chunks.extend([left, right, top.clone()]);
    for batches in 0..chunks.len() {
        let (pending, store): (Arc<PendingChunks>, _) = (Arc::default(), MemoryStore::new());
        let here = MemtableChunks::new(&pending);
        here.add(&NewChunks { chunks: chunks.clone(), needs: Vec::new() });
        let filling = Layered(Filling(Arc::clone(&store), AtomicUsize::new(batches)));
        assert!(pending.pack(&filling, Lifetime::Working, [top.hash()]).is_err());
        assert_eq!(store.chunk_count(), batches);
        for chunk in chunks.iter().filter(|chunk| store.has_many(&[chunk.hash()]).unwrap()[0]) {
            let below: Vec<ChunkHash> = chunk.references().collect();
            let has = store.has_many(&below).unwrap();
            assert!(has.iter().all(|has| *has), "after {batches} batches");
        }
        // So a collection needs no room.
        pending.view(&filling).unwrap();
    }
}

#[test]
fn much_at_once_is_packed_at_once() {
    let store = MemoryStore::new();
    let new_chunks = |count: u32| {
        let chunk = |number: u32| {
            let payload = [number.to_le_bytes(); 256].concat();
            Chunk::new(ChunkKind::Blob, &[], &payload)
        };
        let record = Record { chunks: (0..count).map(chunk).collect(), ..Record::default() };
        NewChunks::of(&record, Vec::new(), &*store).unwrap().chunks.len()
    };
    assert_eq!((new_chunks(200), store.chunk_count()), (200, 0));
    assert_eq!((new_chunks(300), store.chunk_count()), (0, 300));
}

#[test]
fn pending_chunks_count_as_memory() {
    let here = MemtableChunks::default();
    let new_chunks = NewChunks { chunks: all([0, 1]), needs: vec![head([0, 2]).hash()] };
    let bytes: usize = new_chunks.chunks.iter().map(|chunk| chunk.encoded().len()).sum();
    assert!(bytes as u64 + 3 * CHUNK_OVERHEAD_BYTES < here.add(&new_chunks));
}

#[test]
fn a_collection_sees_no_chunk_without_those_it_came_with() {
    let (pending, store): (Arc<PendingChunks>, _) = (Arc::default(), MemoryStore::new());
    let new_chunks = |number: u32| {
        let mut chunks = vec![Chunk::new(ChunkKind::Blob, &[], &number.to_le_bytes())];
        for level in 0..20u8 {
            let below = chunks[chunks.len() - 1].hash();
            chunks.push(Chunk::new(ChunkKind::Blob, &[below], &[level]));
        }
        NewChunks { chunks, needs: Vec::new() }
    };
    let turns = |from: u32| {
        for number in from..from + 2000 {
            MemtableChunks::new(&pending).add(&new_chunks(number));
        }
    };
    thread::scope(|scope| {
        let at_work = [0, 1 << 20].map(|from| scope.spawn(move || turns(from)));
        while at_work.iter().any(|thread| !thread.is_finished()) {
            let kept = pending.view(&*store).unwrap().into_kept();
            assert_eq!(kept, HashSet::new(), "nothing is in packs");
        }
    });
}

#[test]
fn a_value_is_reached_in_its_order_and_each_chunk_behind_what_it_refers_to() {
    let values: [Parts; 2] = [[103, 101], [102, 103]];
    let here: HashMap<ChunkHash, Chunk> =
        values.into_iter().flat_map(all).map(|chunk| (chunk.hash(), chunk)).collect();
    let roots = values.map(|parts| head(parts).hash());
    let found = reached(roots, |hash| here.get(&hash).cloned());
    assert_eq!(found, [part(103), part(101), head(values[0]), part(102), head(values[1])]);
}

/// Else a caller that reads it, or puts the same again, would read each of its chunks by a call of
/// its own.
#[test]
fn a_value_of_many_chunks_lies_in_its_order() {
    let disk = SimDisk::new(1);
    let shared = with(&disk, &[]);
    let mut random = Random::new(1);
    let mut chunks: Vec<Chunk> =
        (0..40).map(|_| Chunk::new(ChunkKind::Blob, &[], &random.bytes(10_000))).collect();
    chunks.push(Chunk::new(ChunkKind::Blob, &hashes(&chunks), b"head"));
    let mut transaction = Transaction::begin(Arc::clone(&shared), LockMode::default());
    transaction.put_chunks(&chunks);
    let content = Content::Chunk { hash: chunks[40].hash(), bytes: 4 };
    transaction.put(TREE, Bytes::from_static(KEY), Value { flags: 0, content }).unwrap();
    transaction.commit(Durability::Synced).unwrap();
    let packs = shared.machine.disk.list().unwrap().into_iter().filter(|it| it.ends_with(".pack"));
    let contents: Vec<u8> = packs.flat_map(|name| disk.contents(&name).unwrap()).collect();
    let place = |chunk: &Chunk| contents.windows(HASH_BYTES).position(|it| it == chunk.hash().0);
    let places: Vec<usize> = chunks.iter().map(|chunk| place(chunk).expect("packed")).collect();
    assert!(places.is_sorted(), "{places:?}");
}
