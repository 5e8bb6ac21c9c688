//! Collections: what can be reached stays, what can't goes, whatever happens meanwhile.
//!
//! Method: seeded actors build graphs of chunks, move roots, hold sessions, open again and collect;
//! a model that follows references through a map says what must be there. Then the same with the
//! power failing at each operation, with a full disk, and with threads that read and write
//! meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use frond_store::io::Disk;
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::memory::MemoryStore;
use frond_store::{
    Chunk, ChunkHash, ChunkKind, ChunkStore, GarbageCollection, GcOptions, GcReport, Lifetime,
    Maintenance, Session, StoreError,
};
use frond_testkit::random::{assert_met, for_seeds};
use frond_testkit::{Random, SimDisk};

use crate::{assert_stored, blob, hashes, open, pack_bytes};

const THOROUGH: GcOptions = GcOptions { live_percent_min: 50, dry_run: false, pack_history: true };

fn collect_with(
    store: &dyn ChunkStore,
    roots: &[ChunkHash],
    options: GcOptions,
) -> Result<GcReport, StoreError> {
    store.maintenance().collect(&mut GarbageCollection {
        roots: &mut || Ok(roots.to_vec()),
        throttle: &mut |_| ControlFlow::Continue(()),
        options,
    })
}

/// All chunks that were ever put, by name.
type Graph = BTreeMap<ChunkHash, Chunk>;

fn reachable(graph: &Graph, roots: impl IntoIterator<Item = ChunkHash>) -> BTreeSet<ChunkHash> {
    let (mut stack, mut found): (Vec<ChunkHash>, _) =
        (roots.into_iter().collect(), BTreeSet::new());
    while let Some(hash) = stack.pop() {
        if found.insert(hash) {
            stack.extend(graph[&hash].references());
        }
    }
    found
}

/// Chunks that refer to some of those that are `known`, and to each other.
fn grow(random: &mut Random, known: &[ChunkHash]) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    for _ in 0..1 + random.below(6) {
        let mut references: Vec<ChunkHash> = (0..random.below(3))
            .filter(|_| !known.is_empty())
            .map(|_| *random.choose(known))
            .collect();
        references.extend(chunks.iter().take(random.below(3)).map(Chunk::hash));
        let kind = if random.one_in(4) { ChunkKind::Commit } else { ChunkKind::MapNode };
        // Versions of few contents, so that chunks are related and some are put twice.
        let mut payload = vec![random.below(4) as u8; 40 + random.below(3) * 100];
        let changed = random.below(payload.len());
        payload[changed] = random.below(20) as u8;
        chunks.push(Chunk::new(kind, &references, &payload));
    }
    chunks
}

fn lifetime(random: &mut Random) -> Lifetime {
    *random.choose(&[Lifetime::Brief, Lifetime::Working, Lifetime::Lasting])
}

/// The value of a root, before and after the change that is under way.
#[derive(Default)]
struct Model {
    graph: Graph,
    root: Option<ChunkHash>,
    root_wanted: Option<ChunkHash>,
}

impl Model {
    fn put(
        &mut self,
        store: &dyn ChunkStore,
        random: &mut Random,
    ) -> Result<Vec<Chunk>, StoreError> {
        let known: Vec<ChunkHash> = reachable(&self.graph, self.root).into_iter().collect();
        let chunks = grow(random, &known);
        self.graph.extend(chunks.iter().map(|chunk| (chunk.hash(), chunk.clone())));
        store.put_many_for(lifetime(random), &chunks)?;
        Ok(chunks)
    }

    fn swap(&mut self, store: &dyn ChunkStore, new: ChunkHash) -> Result<(), StoreError> {
        self.root_wanted = Some(new);
        store.swap_root("r", self.root, Some(new))?;
        self.root = self.root_wanted.take();
        Ok(())
    }

    fn assert_there(&self, store: &dyn ChunkStore, roots: impl IntoIterator<Item = ChunkHash>) {
        for hash in reachable(&self.graph, roots) {
            assert_eq!(store.get(hash).unwrap(), self.graph[&hash]);
        }
    }
}

#[test]
fn reachable_chunks_stay_and_the_rest_goes() {
    for_seeds(150, |mut random| {
        let disk = SimDisk::new(random.next());
        let mut store = open(&disk).unwrap();
        let mut model = Model::default();
        let mut pinned: Vec<ChunkHash> = Vec::new();
        for _ in 0..25 {
            match random.below(7) {
                0 => {
                    drop(store);
                    store = open(&disk).unwrap();
                }
                1 | 2 => {
                    let options = if random.one_in(2) { THOROUGH } else { GcOptions::default() };
                    let collected = collect_with(&*store, &pinned, options).unwrap();
                    let roots = pinned.iter().copied().chain(model.root);
                    let expected = reachable(&model.graph, roots);
                    assert_eq!(
                        store.chunk_hashes().unwrap(),
                        expected.iter().copied().collect::<Vec<_>>()
                    );
                    assert_eq!(collected.chunks_live, expected.len() as u64);
                    assert!(!collected.stopped);
                }
                3 => pinned = pinned.drain(..).filter(|_| random.one_in(2)).collect(),
                _ => {
                    let session = store.session();
                    let chunks = model.put(&*store, &mut random).unwrap();
                    let new = random.choose(&chunks).hash();
                    if random.one_in(3) {
                        collect_with(&*store, &pinned, THOROUGH).unwrap();
                    }
                    if random.one_in(3) {
                        pinned.push(new);
                    } else {
                        model.swap(&*store, new).unwrap();
                    }
                    drop(session);
                }
            }
            model.assert_there(&*store, pinned.iter().copied().chain(model.root));
            assert!(store.verify(&mut |_| ()).unwrap().is_empty());
        }
        let bytes = pack_bytes(&disk);
        assert_eq!(store.counters().bytes_stored, bytes, "files of packs that went are gone");
    });
}

#[test]
fn a_session_protects_what_it_put_and_what_it_found() {
    for memory in [false, true] {
        let disk = SimDisk::new(0);
        let local = open(&disk).unwrap();
        let other = MemoryStore::new();
        let store: &dyn ChunkStore = if memory { &*other } else { &*local };
        let leaf = blob(b"leaf");
        let parent = Chunk::new(ChunkKind::MapNode, &[leaf.hash()], b"parent");
        store.put_many(&[leaf.clone(), parent.clone()]).unwrap();
        // The cache of the store in packs may answer for chunks that are gone.
        let has = |hash| match memory {
            true => other.get(hash).is_ok(),
            false => local.chunk_hashes().unwrap().contains(&hash),
        };
        let new = blob(b"new");
        let session = store.session();
        store.put_many(std::slice::from_ref(&new)).unwrap();
        assert_eq!(store.has_many(&[parent.hash()]).unwrap(), [true]);
        collect_with(store, &[], THOROUGH).unwrap();
        let later = store.session();
        assert!([&leaf, &parent, &new].into_iter().all(|chunk| has(chunk.hash())));
        drop(session);
        store.put_many(std::slice::from_ref(&leaf)).unwrap();
        collect_with(store, &[], THOROUGH).unwrap();
        assert!(!has(parent.hash()) && !has(new.hash()));
        assert!(has(leaf.hash()), "the later session found it");
        drop(later);
        collect_with(store, &[], THOROUGH).unwrap();
        let left = if memory { other.chunk_count() } else { local.chunk_hashes().unwrap().len() };
        assert_eq!(left, 0);
    }
}

/// Puts, swaps and collects until the end or the first error.
fn script(disk: &SimDisk, mut random: Random, model: &mut Model) -> Result<(), StoreError> {
    let mut store = open(disk)?;
    for _ in 0..8 {
        match random.below(5) {
            0 => {
                drop(store);
                store = open(disk)?;
            }
            1 | 2 => {
                let options = if random.one_in(2) { THOROUGH } else { GcOptions::default() };
                collect_with(&*store, &[], options)?;
            }
            _ => {
                let _session = store.session();
                let chunks = model.put(&*store, &mut random)?;
                model.swap(&*store, random.choose(&chunks).hash())?;
            }
        }
    }
    Ok(())
}

fn check_after_crash(disk: &SimDisk, model: &mut Model, random: &mut Random) {
    let store = open(disk).expect("a power cut needs no repair");
    let root = store.root("r").unwrap();
    assert!(root == model.root || root == model.root_wanted, "old or new, nothing else");
    model.root = root;
    model.root_wanted = None;
    model.assert_there(&*store, root);
    assert!(store.verify(&mut |_| ()).unwrap().is_empty());
    assert_eq!(store.counters().bytes_stored, pack_bytes(disk), "no file is left over");
    // Chunks that a crash left are collected, and those that are put again are there.
    collect_with(&*store, &[], THOROUGH).unwrap();
    let session = store.session();
    let chunks = model.put(&*store, random).unwrap();
    model.swap(&*store, chunks[0].hash()).unwrap();
    drop(session);
    collect_with(&*store, &[], GcOptions::default()).unwrap();
    drop(store);
    let store = open(&disk.crash()).unwrap();
    model.assert_there(&*store, model.root);
}

#[test]
fn a_power_cut_at_every_operation_of_a_collection_loses_nothing() {
    for_seeds(30, |mut random| {
        let seed = random.next();
        let whole = SimDisk::new(seed);
        script(&whole, Random::new(seed), &mut Model::default()).unwrap();
        for crash_point in 0..=whole.operations() {
            let disk = SimDisk::new(seed);
            disk.crash_after(crash_point);
            let mut model = Model::default();
            let _ = script(&disk, Random::new(seed), &mut model);
            let after = if random.one_in(4) { disk.kill() } else { disk.crash() };
            check_after_crash(&after, &mut model, &mut random);
        }
    });
}

#[test]
fn a_failed_sync_during_a_collection_poisons_and_loses_nothing() {
    for_seeds(100, |mut random| {
        let seed = random.next();
        let disk = SimDisk::new(seed);
        let mut model = Model::default();
        let store = open(&disk).unwrap();
        for _ in 0..4 {
            let chunks = model.put(&*store, &mut random).unwrap();
            model.swap(&*store, chunks[0].hash()).unwrap();
        }
        disk.fail_sync_after(random.below(8) as u64);
        let result = collect_with(&*store, &[], THOROUGH);
        model.assert_there(&*store, model.root);
        if result.is_err() {
            let again = collect_with(&*store, &[], THOROUGH).unwrap_err();
            assert!(matches!(again, StoreError::Poisoned { .. }), "{again}");
        }
        drop(store);
        check_after_crash(&disk.crash(), &mut model, &mut random);
    });
}

#[test]
fn a_full_disk_stops_moving_chunks_and_loses_nothing() {
    for_seeds(200, |mut random| {
        let disk = SimDisk::new(random.next());
        let mut model = Model::default();
        let store = open(&disk).unwrap();
        for _ in 0..8 {
            let chunks = model.put(&*store, &mut random).unwrap();
            model.swap(&*store, chunks[0].hash()).unwrap();
        }
        disk.fill_after(random.below(2500) as u64);
        if let Err(error) = collect_with(&*store, &[], THOROUGH) {
            assert!(error.is_full(), "{error}");
        }
        model.assert_there(&*store, model.root);
        assert!(store.verify(&mut |_| ()).unwrap().is_empty());
        disk.make_room();
        collect_with(&*store, &[], THOROUGH).unwrap();
        model.assert_there(&*store, model.root);
        check_after_crash(&disk.crash(), &mut model, &mut random);
    });
}

/// A chunk that a root reaches and that can't be read: nothing is removed, the error says what.
#[test]
fn damage_ends_a_collection_before_anything_goes() {
    let disk = SimDisk::new(0);
    let leaf = blob(&[5; 300]);
    let middle = Chunk::new(ChunkKind::MapNode, &[leaf.hash()], &[6; 300]);
    let top = Chunk::new(ChunkKind::MapNode, &[middle.hash()], &[7; 300]);
    {
        let store = open(&disk).unwrap();
        store.put_many(&[leaf.clone(), middle.clone(), top.clone()]).unwrap();
        store.put_many(&[blob(b"garbage")]).unwrap();
        store.swap_root("r", None, Some(top.hash())).unwrap();
    }
    let store = open(&disk).unwrap();
    let before = store.chunk_hashes().unwrap();
    let contents = disk.contents("00000000.pack").unwrap();
    let place = contents.windows(32).position(|bytes| bytes == middle.hash().0).unwrap();
    disk.flip_bit("00000000.pack", (place as u64 + 40) * 8);
    let error = collect_with(&*store, &[], THOROUGH).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    let mut left = before.clone();
    left.retain(|hash| *hash != middle.hash());
    assert_eq!(store.chunk_hashes().unwrap(), left);
    store.put_many(std::slice::from_ref(&middle)).unwrap();
    collect_with(&*store, &[], THOROUGH).unwrap();
    assert_stored(&*store, &[leaf, middle, top]);
    let absent = ChunkHash([1; 32]);
    let whole = open(&SimDisk::new(1)).unwrap();
    let error = collect_with(&*whole, &[absent], THOROUGH).unwrap_err();
    assert!(matches!(error, StoreError::Missing(hash) if hash == absent), "{error}");
}

/// A bit of what was moved flips on the disk while the old pack still lies there: the chunk is
/// written again from that. Readers miss nothing, neither before nor after.
#[test]
fn moved_chunks_are_reread_before_the_old_frames_go() {
    let mut flipped_count = 0;
    for_seeds(40, |mut random| {
        let disk = SimDisk::new(random.next());
        let store = open(&disk).unwrap();
        let mut model = Model::default();
        for _ in 0..6 {
            let chunks = model.put(&*store, &mut random).unwrap();
            model.swap(&*store, chunks[0].hash()).unwrap();
        }
        let root = model.root;
        let old = packs(&disk);
        let before = store.counters().bytes_moved;
        let reached = reachable(&model.graph, root);
        let mut has_flipped = false;
        let mut throttle = |_: u64| {
            if has_flipped {
                return ControlFlow::Continue(());
            }
            for hash in &reached {
                assert!(store.get(*hash).is_ok(), "{hash}");
            }
            let new = packs(&disk).into_iter().rfind(|name| !old.contains(name));
            if let Some(name) = new.filter(|_| before < store.counters().bytes_moved) {
                has_flipped = true;
                let bits = disk.contents(&name).unwrap().len() * 8;
                disk.flip_bit(&name, random.below(bits) as u64);
                flipped_count += 1;
            }
            ControlFlow::Continue(())
        };
        let options = THOROUGH;
        let mut roots = || Ok(Vec::new());
        let collection =
            &mut GarbageCollection { roots: &mut roots, throttle: &mut throttle, options };
        let collected = store.collect(collection).unwrap();
        assert!(!collected.stopped);
        drop(store);
        model.assert_there(&*open(&disk.kill()).unwrap(), root);
    });
    assert_met("bits that flipped", flipped_count, 10);
}

fn packs(disk: &SimDisk) -> Vec<String> {
    let mut names = disk.list().unwrap();
    names.retain(|name| name.ends_with(".pack"));
    names.sort_unstable();
    names
}

#[test]
fn a_collection_can_be_stopped_at_any_moment() {
    for_seeds(60, |mut random| {
        let disk = SimDisk::new(random.next());
        let store = open(&disk).unwrap();
        let mut model = Model::default();
        for _ in 0..8 {
            let chunks = model.put(&*store, &mut random).unwrap();
            model.swap(&*store, chunks[0].hash()).unwrap();
        }
        let mut left = random.below(12);
        let collected = store
            .collect(&mut GarbageCollection {
                roots: &mut || Ok(Vec::new()),
                throttle: &mut |_| {
                    left = left.saturating_sub(1);
                    if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                },
                options: THOROUGH,
            })
            .unwrap();
        assert!(collected.stopped || left > 0);
        model.assert_there(&*store, model.root);
        check_after_crash(&disk.crash(), &mut model, &mut random);
    });
}

/// Writers move roots of their own within sessions, readers follow them, and collections run
/// without a pause: no reader or writer ever misses a chunk. Sessions are held as a transaction
/// holds one.
#[test]
fn readers_and_writers_go_on_during_collections() {
    for_seeds(4, |mut random| {
        let disk = SimDisk::new(random.next());
        let store = &*open(&disk).unwrap();
        let done = AtomicBool::new(false);
        let seeds: Vec<u64> = (0..3).map(|_| random.next()).collect();
        std::thread::scope(|scope| {
            let writers: Vec<_> =
                seeds.iter().map(|seed| scope.spawn(|| write_alone(store, *seed, &done))).collect();
            let mut removed = 0;
            while removed < 30 {
                removed += collect_with(store, &[], THOROUGH).unwrap().packs_removed;
            }
            done.store(true, Ordering::SeqCst);
            writers.into_iter().for_each(|writer| writer.join().unwrap());
        });
        assert!(store.verify(&mut |_| ()).unwrap().is_empty());
    });
}

fn write_alone(store: &LocalStore, seed: u64, done: &AtomicBool) {
    let mut random = Random::new(seed);
    let name = format!("root {seed}");
    let (mut graph, mut root) = (Graph::new(), None);
    while !done.load(Ordering::SeqCst) {
        let _session: Session = store.session();
        let known: Vec<ChunkHash> = reachable(&graph, root).into_iter().collect();
        let chunks = grow(&mut random, &known);
        for chunk in &chunks {
            store.put_many_for(lifetime(&mut random), std::slice::from_ref(chunk)).unwrap();
        }
        graph.extend(chunks.iter().map(|chunk| (chunk.hash(), chunk.clone())));
        let new = Some(random.choose(&chunks).hash());
        store.swap_root(&name, root, new).unwrap();
        root = new;
        let all: Vec<ChunkHash> = reachable(&graph, root).into_iter().collect();
        let found = store.get_many(&all).unwrap();
        assert_eq!(hashes(&found), all);
    }
}

/// Ten packs, the first `sparse_count` of which have a reachable quarter: how many chunks a
/// collection moves, and what share of the reachable all packs together are then, in hundredths.
fn moved(sparse_count: usize, options: GcOptions) -> (u64, u64) {
    const PACK_CHUNKS: usize = 32;
    let disk = SimDisk::new(0);
    let pack_bytes_target = PACK_CHUNKS as u64 * 4000;
    let store = LocalStore::open(
        &disk.machine(),
        LocalOptions { pack_bytes_target, ..LocalOptions::default() },
    )
    .unwrap();
    let mut random = Random::new(7);
    let chunks: Vec<Chunk> =
        (0..10 * PACK_CHUNKS).map(|_| blob(&random.bytes(4000 - 50))).collect();
    chunks.iter().for_each(|chunk| store.put_many(std::slice::from_ref(chunk)).unwrap());
    let is_live =
        |position: &usize| sparse_count * PACK_CHUNKS <= *position || position.is_multiple_of(4);
    let live: Vec<ChunkHash> =
        (0..chunks.len()).filter(is_live).map(|position| chunks[position].hash()).collect();
    let collected = collect_with(&*store, &live, options).unwrap();
    assert_eq!(store.get_many(&live).unwrap().len(), live.len());
    (collected.chunks_moved, collected.bytes_after * 100 / (live.len() as u64 * 4000))
}

/// Chunks that are moved are written again: no more of them than brings all packs to a third above
/// the reachable size.
#[test]
fn sparse_packs_are_moved_only_as_far_as_space_demands() {
    let (none, share) = moved(2, GcOptions::default());
    assert!(none == 0 && (110..125).contains(&share), "{none} {share}");
    let (some, share) = moved(6, GcOptions::default());
    assert!((25..45).contains(&some) && (115..140).contains(&share), "{some} {share}");
    let (all, share) = moved(6, THOROUGH);
    assert!(60 < all && share < 110, "{all} {share}");
}

/// Commits 60 versions of 30 nodes, each changing one.
fn commit_versions(store: &LocalStore, random: &mut Random) {
    let mut nodes: Vec<Vec<u8>> = (0..30).map(|_| random.bytes(4000)).collect();
    let mut parent = None;
    for version in 0..60 {
        let node = random.below(nodes.len());
        let at = random.below(4000 - 8);
        nodes[node][at..at + 8].copy_from_slice(&random.bytes(8));
        let chunks: Vec<Chunk> = nodes.iter().map(|payload| blob(payload)).collect();
        let tree = Chunk::new(ChunkKind::MapNode, &hashes(&chunks), &[version]);
        let mut references = vec![tree.hash()];
        references.extend(parent);
        let commit = Chunk::new(ChunkKind::Commit, &references, &[version]);
        let new = Some(commit.hash());
        store.put_many_for(Lifetime::Lasting, &chunks).unwrap();
        store.put_many_for(Lifetime::Lasting, &[tree, commit]).unwrap();
        store.swap_root("head", parent, new).unwrap();
        parent = new;
    }
}

/// A collection as the background makes it packs what version commits wrote once most of it is
/// history, and copies the rest.
#[test]
fn history_is_packed_without_being_asked() {
    let disk = SimDisk::new(0);
    let options = LocalOptions { pack_bytes_target: 128 << 10, ..LocalOptions::default() };
    let store = LocalStore::open(&disk.machine(), options).unwrap();
    commit_versions(&store, &mut Random::new(1));
    let before: Vec<Chunk> = store.get_many(&store.chunk_hashes().unwrap()).unwrap();
    let collected = collect_with(&*store, &[], GcOptions::default()).unwrap();
    assert_eq!((collected.chunks_dead, collected.stopped), (0, false));
    assert!(collected.bytes_after < collected.bytes_before * 7 / 10, "{collected:?}");
    let again = collect_with(&*store, &[], GcOptions::default()).unwrap();
    assert_eq!(again.chunks_moved, 0, "{again:?}");
    drop(store);
    let store = LocalStore::open(&disk.machine(), options).unwrap();
    assert_eq!(store.get_many(&hashes(&before)).unwrap(), before);
    assert!(store.verify(&mut |_| ()).unwrap().is_empty());
}

/// They are read at random: in a frame with others each would cost decompressing all.
#[test]
fn roots_themselves_belong_to_the_working_state() {
    let disk = SimDisk::new(0);
    let store = LocalStore::open(&disk.machine(), LocalOptions::default()).unwrap();
    let mut alike = Random::new(1).bytes(4000);
    let one = blob(&alike);
    alike[2000] ^= 1;
    let chunks = [one, blob(&alike)];
    store.put_many_for(Lifetime::Lasting, &chunks).unwrap();
    collect_with(&*store, &hashes(&chunks), GcOptions { live_percent_min: 101, ..THOROUGH })
        .unwrap();
    assert!(pack_bytes(&disk) > 8000, "a frame of both takes half of that");
}

/// Packed, 60 versions take little more than one of each node.
#[test]
fn versions_of_the_same_nodes_are_packed_together() {
    let disk = SimDisk::new(0);
    let store = LocalStore::open(&disk.machine(), LocalOptions::default()).unwrap();
    let mut random = Random::new(1);
    commit_versions(&store, &mut random);
    let collected = collect_with(&*store, &[], THOROUGH).unwrap();
    let least = 30 * 4000;
    assert!(collected.bytes_before > 2 * least, "{collected:?}");
    assert!(collected.bytes_after < least * 13 / 10, "{collected:?}");
    assert_eq!(collected.chunks_dead, 0);
    let again = collect_with(&*store, &[], THOROUGH).unwrap();
    assert_eq!((again.chunks_moved, again.packs_removed), (0, 0), "nothing is left to do");
    let dry_run = GcOptions { dry_run: true, ..THOROUGH };
    store.put_many(&[blob(&random.bytes(50_000))]).unwrap();
    let files = disk.list().unwrap();
    let weighed = collect_with(&*store, &[], dry_run).unwrap();
    assert_eq!(weighed.chunks_live, again.chunks_live);
    let garbage = weighed.bytes_before - weighed.bytes_live;
    assert!((50_000..60_000).contains(&garbage), "{weighed:?}");
    assert_eq!(disk.list().unwrap(), files);
}

/// A chunk that a session finds while a collection runs, in a pack that is younger: what it refers
/// to may lie in an older one, where nothing else keeps it.
#[test]
fn chunks_found_during_a_collection_stay_with_their_references() {
    let disk = SimDisk::new(0);
    let store = open(&disk).unwrap();
    let leaf = blob(b"leaf");
    let parent = Chunk::new(ChunkKind::MapNode, &[leaf.hash()], b"parent");
    store.put_many(&[leaf.clone(), blob(b"garbage")]).unwrap();
    let mut session = None;
    let mut roots = || {
        store.put_many(std::slice::from_ref(&parent))?;
        session = Some(store.session());
        assert_eq!(store.has_many(&[parent.hash()])?, [true]);
        Ok(Vec::new())
    };
    let mut collection = GarbageCollection {
        roots: &mut roots,
        throttle: &mut |_| ControlFlow::Continue(()),
        options: THOROUGH,
    };
    store.collect(&mut collection).unwrap();
    let mut expected = [leaf.hash(), parent.hash()];
    expected.sort();
    assert_eq!(store.chunk_hashes().unwrap(), expected);
    drop(session);
}

/// Two packs: nothing of the first is needed, half of the second, which there is no room to move.
#[test]
fn a_full_disk_gets_back_unneeded_packs() {
    let disk = SimDisk::new(0);
    let store = open(&disk).unwrap();
    let mut random = Random::new(1);
    let chunks: Vec<Chunk> = (0..4).map(|_| blob(&random.bytes(1500))).collect();
    chunks.iter().for_each(|chunk| store.put_many(std::slice::from_ref(chunk)).unwrap());
    store.swap_root("r", None, Some(chunks[3].hash())).unwrap();
    let packs = || disk.list().unwrap().into_iter().filter(|name| name.ends_with(".pack"));
    let before: Vec<String> = packs().collect();
    let bytes = pack_bytes(&disk);
    disk.fill_after(1_000);
    collect_with(&*store, &[], THOROUGH).unwrap();
    assert!(!packs().any(|name| name == before[0]) && packs().any(|name| name == before[1]));
    assert_eq!(store.get(chunks[3].hash()).unwrap(), chunks[3]);
    // So it is where the disk says that it has no room.
    disk.make_room();
    disk.limit_to(Some(0));
    collect_with(&*store, &[], THOROUGH).unwrap();
    assert!(pack_bytes(&disk) < bytes && packs().any(|name| name == before[1]));
    disk.limit_to(None);
    collect_with(&*store, &[], THOROUGH).unwrap();
    assert!(!packs().any(|name| name == before[1]));
    assert_eq!(store.get(chunks[3].hash()).unwrap(), chunks[3]);
}

/// The chunks of a pack that were reported to a session are noted by their positions in its index.
/// Where that can't be read, all of them count as reported, with all chunks they refer to.
#[test]
fn chunks_found_in_a_pack_with_a_damaged_index_stay_with_their_references() {
    let disk = SimDisk::new(0);
    let store = open(&disk).unwrap();
    let leaf = blob(b"leaf");
    let parent = Chunk::new(ChunkKind::MapNode, &[leaf.hash()], b"parent");
    let roots = [leaf.hash(), parent.hash()];
    for chunk in [&leaf, &parent] {
        store.put_many(std::slice::from_ref(chunk)).unwrap();
        collect_with(&*store, &roots[..1 + usize::from(chunk == &parent)], GcOptions::default())
            .unwrap();
    }
    let session = store.session();
    assert_eq!(store.has_many(&[parent.hash()]).unwrap(), [true]);
    let contents = disk.contents("00000001.pack").unwrap();
    let in_index = contents.windows(32).rposition(|window| window == parent.hash().0).unwrap();
    disk.flip_bit("00000001.pack", (in_index as u64 + 33) * 8);
    collect_with(&*store, &[], GcOptions::default()).unwrap();
    assert_eq!(store.has_many(&roots).unwrap(), [true, true]);
    drop(session);
    collect_with(&*store, &[], GcOptions::default()).unwrap();
    assert_eq!(store.has_many(&roots[..1]).unwrap(), [false], "nothing needs it now");
}

/// Damage is found only when the chunk is to be moved: nothing was promised to be gone.
#[test]
fn a_purge_that_meets_damage_as_it_moves_says_so() {
    let disk = SimDisk::new(0);
    let needed = blob(&[5; 300]);
    let store = open(&disk).unwrap();
    store.put_many(&[needed.clone(), blob(&[6; 300])]).unwrap();
    store.swap_root("r", None, Some(needed.hash())).unwrap();
    drop(store);
    let store = open(&disk).unwrap();
    let contents = disk.contents("00000000.pack").unwrap();
    let at = contents.windows(32).position(|window| window == needed.hash().0).unwrap();
    disk.flip_bit("00000000.pack", (at as u64 + 36) * 8);
    let purge = GcOptions { live_percent_min: 101, ..THOROUGH };
    let error = collect_with(&*store, &[], purge).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert!(disk.contents("00000000.pack").is_some());
}
