//! Goal: a bucket that takes requests and answers none holds up no writer until the disk holds as
//! much as it may; then puts fail, and succeed again once the bucket answers. Method: a simulated
//! bucket that falls silent or refuses, and a thread that sends, as the engine's does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use frond_store::local::LocalStore;
use frond_store::{ChunkStore, Maintenance, StoreError};
use frond_testkit::{DepotFaults, Random, SimDepot};

use crate::tiered::{LOCAL_BYTES_MAX, Node, swap};
use crate::{assert_stored, random_chunks};

/// Runs `body` beside a thread that sends; returns how many attempts failed.
fn beside_sender(store: &Arc<LocalStore>, body: impl FnOnce()) -> u64 {
    struct Stop<'a>(&'a LocalStore);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.stop_sending();
        }
    }
    let (attempts, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            store.send_until_stopped(&mut |sent| {
                attempts.fetch_add(1, Ordering::SeqCst);
                failed.fetch_add(u64::from(sent.is_err()), Ordering::SeqCst);
            });
        });
        let _stop = Stop(store);
        wait_until("sent", || {
            let root = random_chunks(&mut Random::fresh(), 1);
            store.put_many(&root).and_then(|()| swap(store, root[0].hash())).unwrap();
            attempts.load(Ordering::SeqCst) > 0
        });
        body();
    });
    failed.into_inner()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Puts until that fails; how often it did not, and why it failed.
fn fill(store: &LocalStore, random: &mut Random) -> (usize, StoreError) {
    for count in 0..10_000 {
        if let Err(error) = store.put_many(&random_chunks(random, 8)) {
            return (count, error);
        }
    }
    panic!("the disk takes everything");
}

#[test]
fn a_silent_bucket_holds_up_nothing_until_the_disk_is_full() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(1);
    let node = Node::new(2, &bucket);
    let store = node.open().unwrap();
    beside_sender(&store, || {
        bucket.set_silent(true);
        let mut chunks = Vec::new();
        // More than is due, and a put is on its way then, which nothing waits for.
        while (node.pack_bytes() as u64) < LOCAL_BYTES_MAX * 3 / 2 {
            let some = random_chunks(&mut random, 8);
            store.put_many(&some).unwrap();
            store.sync().unwrap();
            chunks.extend(some);
        }
        // A put of more than the disk may have waits, until there is an answer.
        thread::scope(|scope| {
            let more = scope
                .spawn(|| (0..40).try_for_each(|_| store.put_many(&random_chunks(&mut random, 8))));
            thread::sleep(Duration::from_millis(200));
            assert!(!more.is_finished(), "it should wait");
            assert!(node.pack_bytes() as u64 <= 3 * LOCAL_BYTES_MAX, "{}", node.pack_bytes());
            bucket.set_silent(false);
            more.join().unwrap().unwrap();
        });
        assert_stored(&*store, &chunks);
        assert_eq!(store.send_failure(), None);
    });
}

#[test]
fn a_refusing_bucket_is_reported_with_its_time_until_it_answers() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(3);
    let node = Node::new(4, &bucket);
    let store = node.open().unwrap();
    let failed = beside_sender(&store, || {
        // Before the first attempt more may have been put than one takes, on a busy machine.
        wait_until("all sent", || store.tier_state().unwrap().bytes_waiting == 0);
        bucket.set_faults(DepotFaults { busy_one_in: 1, ..DepotFaults::default() });
        let (count, error) = fill(&store, &mut random);
        assert!(count > 4, "it failed after {count} puts: {error}");
        assert!(error.to_string().contains("as many new packs"), "{error}");
        let failure = store.send_failure().expect("it failed");
        assert!(failure.is_full && failure.since_micros > 0, "{failure:?}");
        assert!(node.pack_bytes() as u64 <= 3 * LOCAL_BYTES_MAX, "{}", node.pack_bytes());
        // Now it fails at once, and nothing is added to the disk.
        let before = (Instant::now(), node.pack_bytes());
        store.put_many(&random_chunks(&mut random, 8)).expect_err("there is no room");
        assert!(before.0.elapsed() < Duration::from_millis(500));
        assert_eq!(before.1, node.pack_bytes());

        bucket.set_faults(DepotFaults::default());
        wait_until("sent again", || store.send_failure().is_none());
        let some = random_chunks(&mut random, 8);
        store.put_many(&some).unwrap();
        assert_stored(&*store, &some);
        let requests = store.tier_state().unwrap().requests;
        assert!(requests.puts > 1 && requests.bytes_put > LOCAL_BYTES_MAX, "{requests:?}");
    });
    assert!(failed > 0);
}

#[test]
fn closing_waits_for_no_answer() {
    let mut random = Random::fresh();
    let bucket = SimDepot::new(5);
    let node = Node::new(6, &bucket);
    let store = node.open().unwrap();
    let mut before = 0;
    beside_sender(&store, || {
        wait_until("quiet", || store.tier_state().unwrap().bytes_waiting == 0);
        bucket.set_silent(true);
        before = bucket.objects().len();
        let puts = || store.tier_state().unwrap().requests.puts;
        let puts_before = puts();
        let root = random_chunks(&mut random, 1);
        store.put_many(&root).and_then(|()| swap(&store, root[0].hash())).unwrap();
        wait_until("asked", || puts() > puts_before);
    });
    assert_eq!(bucket.objects().len(), before);
}

/// A put that waits for room sends by itself once the thread that did so is gone.
#[test]
fn a_put_goes_on_when_the_thread_that_sends_has_ended() {
    let mut random = Random::fresh();
    let node = Node::new(8, &SimDepot::new(7));
    let store = node.open().unwrap();
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            store.send_until_stopped(&mut |_| {
                let mut before = 0;
                wait_until("waited for", || {
                    thread::sleep(Duration::from_millis(100));
                    let bytes = node.pack_bytes() as u64;
                    LOCAL_BYTES_MAX < bytes && std::mem::replace(&mut before, bytes) == bytes
                });
                panic!("it ends, in this test");
            });
        });
        for _ in 0..100 {
            store.put_many(&random_chunks(&mut random, 8)).unwrap();
        }
        sender.join().expect_err("it has ended");
    });
}
