//! Goal: what was read of the bucket isn't fetched again after a restart; and whatever became of
//! the files that keep it, only what lies in the bucket is read. Method: the process ends well, is
//! killed, or loses its power; bits turn over, files are cut, come from another directory, or are
//! larger than the cache may be now.

use super::*;

/// Room for all.
const LARGE_CACHE: u64 = 64 << 20;
const FILES: [&str; 2] = ["EXTENTS", "EXTENTS.table"];

fn node(seed: u64, bucket: &SimDepot) -> Node {
    Node { cache_bytes: LARGE_CACHE, ..Node::new(seed, bucket) }
}

/// The directory after its process ended.
fn next(node: &Node, disk: SimDisk, bucket: &SimDepot, cache_bytes: u64) -> Node {
    Node { cache_bytes, ..node.again(disk, bucket) }
}

/// Puts chunks, all of which are in the bucket then.
fn fill(store: &LocalStore, random: &mut Random, count: usize) -> Vec<Chunk> {
    let mut chunks = random_chunks(random, count);
    store.put_many(&chunks).unwrap();
    let root = above(&chunks);
    store.put_many(std::slice::from_ref(&root)).unwrap();
    swap(store, root.hash()).unwrap();
    chunks.push(root);
    chunks
}

#[test]
fn a_restart_fetches_nothing_again() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(1);
    let first = node(2, &bucket);
    let store = first.open().unwrap();
    let chunks = fill(&store, &mut random, 400);
    drop(store);
    // Some of them it had in memory.
    let first = next(&first, first.disk.kill(), &bucket, LARGE_CACHE);
    assert_stored(&*first.open().unwrap(), &chunks);
    let read = bucket.bytes_read();
    assert!(0 < read);
    let second = next(&first, first.disk.kill(), &bucket, LARGE_CACHE);
    let store = second.open().unwrap();
    assert_stored(&*store, &chunks);
    assert_eq!(bucket.bytes_read(), read);
    // What it reads now is kept as well, beside what was kept before.
    let more = fill(&store, &mut random, 50);
    drop(store);
    let third = next(&second, second.disk.kill(), &bucket, LARGE_CACHE);
    assert_stored(&*third.open().unwrap(), &more);
    let read = bucket.bytes_read();
    let store = next(&third, third.disk.kill(), &bucket, LARGE_CACHE).open().unwrap();
    assert_stored(&*store, &chunks);
    assert_stored(&*store, &more);
    assert_eq!(bucket.bytes_read(), read);
}

#[test]
fn a_killed_process_keeps_most_of_what_it_has_read() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(3);
    let first = node(4, &bucket);
    let store = first.open().unwrap();
    let chunks = fill(&store, &mut random, 1500);
    let before = bucket.bytes_read();
    assert_stored(&*store, &chunks);
    let all = bucket.bytes_read() - before;
    let killed = first.disk.kill();
    let store = next(&first, killed, &bucket, LARGE_CACHE).open().unwrap();
    let before = bucket.bytes_read();
    assert_stored(&*store, &chunks);
    let again = bucket.bytes_read() - before;
    assert!(again < all / 2, "{again} of {all} bytes are fetched again");
}

/// What happens to a directory between two processes.
fn end(random: &mut Random, node: &Node, store: Arc<LocalStore>) -> SimDisk {
    let disk = match random.below(3) {
        0 => {
            drop(store);
            node.disk.kill()
        }
        1 => node.disk.kill(),
        _ => node.disk.crash(),
    };
    for name in FILES {
        let Some(mut contents) = disk.contents(name).filter(|bytes| !bytes.is_empty()) else {
            continue;
        };
        match random.below(6) {
            0 => (0..20).for_each(|_| {
                disk.flip_bit(name, random.below(8 * contents.len()) as u64);
            }),
            1 => disk.set_contents(name, &contents[..random.below(contents.len())]),
            2 => {
                let from = random.below(contents.len());
                contents[from..].fill(0);
                disk.set_contents(name, &contents);
            }
            _ => {}
        }
    }
    disk
}

#[test]
fn whatever_became_of_what_was_kept_only_what_is_in_the_bucket_is_read() {
    for_seeds(60, |mut random| {
        let bucket = SimDepot::new(random.next());
        let mut node = node(random.next(), &bucket);
        let mut chunks = Vec::new();
        for _ in 0..5 {
            let store = node.open().unwrap();
            let first = random.below(chunks.len() + 1);
            assert_stored(&*store, &chunks[first..]);
            let count = random.below(120);
            let live = fill(&store, &mut random, count);
            if random.one_in(3) {
                let options =
                    GcOptions { live_percent_min: 101, dry_run: false, pack_history: true };
                let root = live[live.len() - 1].hash();
                store
                    .collect(&mut GarbageCollection {
                        roots: &mut || Ok(vec![root]),
                        throttle: &mut |_| std::ops::ControlFlow::Continue(()),
                        options,
                    })
                    .unwrap();
                chunks.clear();
            }
            chunks.extend(live);
            assert_stored(&*store, &chunks);
            assert!(store.damages().is_empty());
            let disk = end(&mut random, &node, store);
            let cache_bytes = if random.one_in(3) { EXTENTS_BYTES } else { LARGE_CACHE };
            node = next(&node, disk, &bucket, cache_bytes);
        }
    });
}

/// The numbers of packs are the same in both; what lies in the buckets isn't.
#[test]
fn what_another_directory_has_read_is_not_taken_for_its_own() {
    let mut random = Random::fresh();
    let buckets = [SimDepot::new(5), SimDepot::new(6)];
    let nodes = [node(7, &buckets[0]), node(8, &buckets[1])];
    let both = [0, 1].map(|at| {
        let store = nodes[at].open().unwrap();
        let chunks = fill(&store, &mut random, 100);
        assert_stored(&*store, &chunks);
        chunks
    });
    for name in FILES {
        nodes[1].disk.set_contents(name, &nodes[0].disk.contents(name).unwrap());
    }
    let store = next(&nodes[1], nodes[1].disk.kill(), &buckets[1], LARGE_CACHE).open().unwrap();
    assert_stored(&*store, &both[1]);
    assert_eq!(store.has_many(&[both[0][99].hash()]).unwrap(), [false]);
}
