//! Goal: a directory that takes over, or reads, opens by the outlines of packs' indexes, and finds
//! every chunk and no other; an outline that is missing or damaged costs requests and nothing else;
//! and the objects with outlines stay few. Method: a leader sends many packs; other directories of
//! the same simulated bucket open them, and what they read is counted.

use std::collections::{BTreeSet, HashMap};

use frond_store::io::Requests;

use super::*;

/// Packs of some hundred chunks.
const PACKS: LocalOptions =
    LocalOptions { pack_bytes_target: 24 << 10, index_cache_bytes: 1 << 20, ..SMALL };
/// Bytes of a chunk's entry in an index.
const ENTRY_BYTES: u64 = 40;

fn objects(bucket: &SimDepot, prefix: &str) -> BTreeSet<String> {
    bucket.objects().into_keys().filter(|name| name.starts_with(prefix)).collect()
}

fn tiny(random: &mut Random, count: usize) -> Vec<Chunk> {
    (0..count).map(|_| crate::blob(&random.bytes(24))).collect()
}

/// Has a leader send packs of tiny chunks, and of `some`, a few in each; until there are
/// `packs_min`, and the last sending put outlines. Returns all chunks.
fn lead(node: &Node, bucket: &SimDepot, some: &[Chunk], packs_min: usize) -> Vec<Chunk> {
    let mut random = Random::new(7);
    let store = node.open().unwrap();
    let root = above(&[]);
    store.put_many(std::slice::from_ref(&root)).unwrap();
    swap(&store, root.hash()).unwrap();
    let (mut chunks, mut some) = (vec![root], some.chunks(4));
    loop {
        let before = objects(bucket, "locations/");
        let mut more = tiny(&mut random, 300);
        more.extend_from_slice(some.next().unwrap_or_default());
        store.put_many(&more).unwrap();
        chunks.extend(more);
        let is_enough = packs_min <= objects(bucket, "packs/").len();
        if is_enough && objects(bucket, "locations/") != before {
            break;
        }
    }
    assert!(some.next().is_none(), "all were put");
    drop(store);
    chunks
}

/// Some of `chunks`, of all packs.
fn sample(chunks: &[Chunk]) -> Vec<Chunk> {
    chunks.iter().step_by(11).cloned().collect()
}

/// Opens a directory, as its leader. Returns what that requested, too.
fn open_counted(node: &Node) -> (Arc<LocalStore>, Requests) {
    let machine = node.machine().unwrap();
    let store = LocalStore::open(&machine, PACKS).unwrap();
    (store, machine.disk.tier().unwrap().state().requests)
}

fn taker(bucket: &SimDepot) -> Node {
    let mut node = Node::new(11, bucket);
    node.options = PACKS;
    node.take_over = true;
    node.cache_bytes = 64 << 20;
    node
}

/// Pairs of chunks whose names agree in four bytes.
fn alike() -> Vec<[Chunk; 2]> {
    let (mut seen, mut pairs) = (HashMap::new(), Vec::new());
    for number in 0..400_000u32 {
        let chunk = crate::blob(&number.to_le_bytes());
        let beginning: [u8; 4] = *chunk.hash().0.first_chunk().unwrap();
        if let Some(other) = seen.insert(beginning, number) {
            pairs.push([crate::blob(&u32::to_le_bytes(other)), chunk]);
        }
    }
    assert!(3 < pairs.len(), "{} pairs", pairs.len());
    pairs
}

#[test]
fn a_take_over_reads_outlines_and_finds_what_is_there() {
    let bucket = SimDepot::new(1);
    let mut leader = Node::new(2, &bucket);
    leader.options = PACKS;
    let pairs = alike();
    let some: Vec<Chunk> =
        [0, 1].into_iter().flat_map(|at| pairs.iter().map(move |it| it[at].clone())).collect();
    let absent = &pairs[0][1];
    let some: Vec<Chunk> = some.into_iter().filter(|chunk| chunk != absent).collect();
    let chunks = lead(&leader, &bucket, &some, 150);
    let taker = taker(&bucket);
    let (store, requests) = open_counted(&taker);
    let index_bytes = chunks.len() as u64 * ENTRY_BYTES;
    assert!(requests.bytes_got < index_bytes / 3, "{requests:?}, indexes of {index_bytes}");
    assert!(requests.gets < 40, "{requests:?}");
    assert_stored(&*store, &sample(&chunks));
    assert_stored(&*store, &some);
    // Its name begins as that of one which is there.
    assert_eq!(store.has_many(&[absent.hash()]).unwrap(), [false]);
    assert_eq!(store.has_many(&[pairs[0][0].hash()]).unwrap(), [true]);
    // A collection reads indexes as a whole, and they stay.
    collect(&store, chunks[0].hash(), true);
    let requests = |store: &LocalStore| store.tier_state().unwrap().requests;
    let before = requests(&store);
    collect(&store, chunks[0].hash(), true);
    assert_eq!(requests(&store).gets, before.gets);
    drop(store);
    // It goes on with what it has.
    let again = taker.again(taker.disk.kill(), &bucket);
    let (store, requests) = open_counted(&again);
    assert!(requests.bytes_got < index_bytes / 6, "{requests:?}");
    assert_stored(&*store, &sample(&chunks));
}

/// One object is removed, a bit of another is turned over: the indexes have it all.
#[test]
fn a_take_over_does_without_outlines() {
    let bucket = SimDepot::new(3);
    let mut leader = Node::new(4, &bucket);
    leader.options = PACKS;
    let chunks = lead(&leader, &bucket, &[], 150);
    for round in 0..2 {
        for name in objects(&bucket, "locations/") {
            match round {
                0 => bucket.flip_bit(&name, 1_000),
                _ => bucket.remove(&name).unwrap(),
            }
        }
        let (store, requests) = open_counted(&taker(&bucket));
        assert!(chunks.len() as u64 * ENTRY_BYTES < requests.bytes_got, "{requests:?}");
        assert_stored(&*store, &sample(&chunks));
    }
}

/// A new pack has no outline. Where its index is damaged its frames are read, and it gets another
/// in the directory; if a frame is damaged, too, what is whole is there.
#[test]
fn a_take_over_makes_a_damaged_index_anew() {
    for_seeds(6, |mut random| {
        let bucket = SimDepot::new(random.next());
        let leader = Node::new(random.next(), &bucket);
        let store = leader.open().unwrap();
        let chunks = random_chunks(&mut random, 100);
        let root = above(&chunks);
        store.put_many(&chunks).unwrap();
        store.put_many(std::slice::from_ref(&root)).unwrap();
        swap(&store, root.hash()).unwrap();
        drop(store);
        assert!(objects(&bucket, "locations/").is_empty());
        let packs = objects(&bucket, "packs/");
        let bytes = bucket.objects();
        for name in &packs {
            let bits = 8 * bytes[name].len();
            // An index has an entry, of 40 bytes, and more behind it.
            bucket.flip_bit(name, bits - 1 - random.below(8 * 40));
        }
        let taker = taker(&bucket);
        let store = taker.open().unwrap();
        assert_stored(&*store, &chunks);
        let found: BTreeSet<String> = store.take_findings().into_iter().map(|it| it.file).collect();
        // An object that HEAD lists no more is never read.
        assert!(packs.len() < 2 * found.len(), "{found:?}");
        drop(store);
        // The next opening, and a collection that rewrites all, find it right.
        let again = taker.again(taker.disk.kill(), &bucket);
        let store = again.open().unwrap();
        assert!(store.take_findings().is_empty());
        collect(&store, root.hash(), false);
        assert_stored(&*store, &chunks);
        drop(store);
        // A frame of each goes as well: the rest opens.
        for name in &packs {
            bucket.flip_bit(name, 8 * 40 + random.below(8 * 20));
        }
        let store = self::taker(&bucket).open();
        assert!(store.is_ok(), "{:?}", store.err());
    });
}

/// Files with outlines in a directory: one for each object that HEAD lists.
fn files(node: &Node) -> usize {
    let names = node.disk.list().unwrap();
    names.iter().filter(|name| name.ends_with(".locations")).count()
}

fn collect(store: &LocalStore, root: ChunkHash, dry_run: bool) {
    store
        .collect(&mut GarbageCollection {
            roots: &mut || Ok(vec![root]),
            throttle: &mut |_| std::ops::ControlFlow::Continue(()),
            options: GcOptions { live_percent_min: 101, dry_run, pack_history: true },
        })
        .unwrap();
}

/// Objects with outlines are merged, and go as packs do when what they name is gone.
#[test]
fn objects_with_outlines_stay_few() {
    let bucket = SimDepot::new(5);
    let mut leader = Node::new(6, &bucket);
    leader.options = PACKS;
    lead(&leader, &bucket, &[], 300);
    assert!((1..=3).contains(&files(&leader)), "{}", files(&leader));
    let store = leader.open().unwrap();
    let some = random_chunks(&mut Random::new(8), 30);
    store.put_many(&some).unwrap();
    let root = above(&some);
    store.put_many(std::slice::from_ref(&root)).unwrap();
    swap(&store, root.hash()).unwrap();
    collect(&store, root.hash(), false);
    store.purge_tier().unwrap();
    assert_eq!(objects(&bucket, "locations/"), BTreeSet::new(), "none of their packs is left");
    assert_eq!(files(&leader), 0);
    drop(store);
    assert_stored(&*taker(&bucket).open().unwrap(), &some);
}
