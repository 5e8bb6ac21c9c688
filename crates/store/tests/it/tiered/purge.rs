//! Goal: what a purge has removed is in no object of the bucket and in no file of the directory,
//! while readers go on. Method: chunks with bytes that are searched for are sent, read, and made
//! garbage; then the store purges, where the bucket is busy and its replies are lost, too.

use std::thread;

use super::*;

/// So often a purge is tried.
const ATTEMPTS_MAX: usize = 100;

/// Where these bytes lie.
fn places(node: &Node, bucket: &SimDepot, marker: &[u8]) -> Vec<String> {
    let has = |bytes: &[u8]| bytes.windows(marker.len()).any(|window| window == marker);
    let objects = bucket.objects().into_iter().filter(|(_, bytes)| has(bytes));
    let mut places: Vec<String> = objects.map(|(name, _)| name).collect();
    let mut files = node.disk.list().unwrap();
    files.retain(|name| has(&node.disk.contents(name).unwrap()));
    places.extend(files);
    places
}

/// Collects all but what `root` reaches, and purges.
fn purge(store: &LocalStore, root: ChunkHash) -> Result<(), StoreError> {
    let options = GcOptions { live_percent_min: 101, dry_run: false, pack_history: true };
    store.collect(&mut GarbageCollection {
        roots: &mut || Ok(vec![root]),
        throttle: &mut |_| std::ops::ControlFlow::Continue(()),
        options,
    })?;
    store.purge_tier()
}

fn put_below_root(store: &LocalStore, chunks: &[Chunk]) -> Result<Chunk, StoreError> {
    store.put_many(chunks)?;
    let root = above(chunks);
    store.put_many(std::slice::from_ref(&root))?;
    swap(store, root.hash())?;
    Ok(root)
}

#[test]
fn purged_data_is_in_no_object_and_no_file() {
    for_seeds(30, |mut random| {
        let bucket = SimDepot::new(random.next());
        let node = Node::new(random.next(), &bucket);
        let store = node.open().unwrap();
        let marker = random.bytes(100);
        let mut chunks = random_chunks(&mut random, 60);
        chunks.push(crate::blob(&[random.bytes(70), marker.clone()].concat()));
        put_below_root(&store, &chunks).unwrap();
        assert_stored(&*store, &chunks);
        let found = places(&node, &bucket, &marker);
        for part in ["packs/", "EXTENTS"] {
            assert!(found.iter().any(|place| place.starts_with(part)), "{found:?}");
        }
        chunks.pop();
        if random.one_in(2) {
            bucket.set_faults(DepotFaults {
                busy_one_in: 40,
                lost_one_in: 4,
                ..DepotFaults::default()
            });
        }
        let root = above(&chunks);
        store.put_many(std::slice::from_ref(&root)).unwrap();
        assert!((0..ATTEMPTS_MAX).any(|_| swap(&store, root.hash()).is_ok()));
        assert!((0..ATTEMPTS_MAX).any(|_| purge(&store, root.hash()).is_ok()));
        bucket.set_faults(DepotFaults::default());
        assert_eq!(places(&node, &bucket, &marker), Vec::<String>::new());
        assert_stored(&*store, &chunks);
        drop(store);
        let store = node.again(node.disk.kill(), &bucket).open().unwrap();
        assert_stored(&*store, &chunks);
    });
}

#[test]
fn readers_go_on_while_what_they_hold_is_purged() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(1);
    let node = Node::new(2, &bucket);
    let store = node.open().unwrap();
    let chunks = random_chunks(&mut random, 200);
    let mut root = put_below_root(&store, &chunks).unwrap();
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    assert_stored(&*store, &chunks);
                }
            });
        }
        for round in 0..20u8 {
            // Something is dead each time, so that packs go.
            store.put_many(&[crate::blob(&[round; 300])]).unwrap();
            root = put_below_root(&store, &chunks).unwrap();
            purge(&store, root.hash()).unwrap();
        }
        ends.store(true, Ordering::Relaxed);
    });
    assert!(store.damages().is_empty(), "{:?}", store.damages());
    assert_stored(&*store, &chunks);
}

#[test]
fn a_deposed_directory_purges_nothing() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(3);
    let (first, mut second) = (Node::new(4, &bucket), Node::new(5, &bucket));
    let store = first.open().unwrap();
    let chunks = random_chunks(&mut random, 40);
    let root = put_below_root(&store, &chunks).unwrap();
    second.take_over = true;
    let taken = second.open().unwrap();
    purge(&store, root.hash()).expect_err("another directory leads");
    purge(&store, root.hash()).expect_err("and it knows that now");
    assert_stored(&*taken, &chunks);
}
