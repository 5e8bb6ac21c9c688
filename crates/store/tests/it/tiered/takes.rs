//! Goal: a directory that takes over isn't kept from it by what the leader sends meanwhile, and
//! takes that over; but by another directory that was faster. Method: something happens each time
//! before it swaps HEAD.

use std::sync::atomic::AtomicUsize;

use super::*;

/// A bucket at which `hook` is called before HEAD is swapped, with how often it was before.
struct BeforeSwap<F> {
    below: Arc<SimDepot>,
    swaps: AtomicUsize,
    hook: F,
}

impl<F: Fn(usize) + Send + Sync> Bucket for BeforeSwap<F> {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, BucketError> {
        self.below.create(name, bytes)
    }

    fn swap(&self, name: &str, was: &ObjectVersion, bytes: Bytes) -> Result<Swapped, BucketError> {
        assert!(name.ends_with("/HEAD"), "{name}");
        (self.hook)(self.swaps.fetch_add(1, Ordering::SeqCst));
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

/// A leader that has sent something, and what that is.
fn leader(bucket: &SimDepot) -> (Arc<LocalStore>, Vec<Chunk>) {
    let store = Node::new(31, bucket).open().unwrap();
    let chunks = send(&store, 1);
    (store, chunks)
}

fn send(store: &LocalStore, seed: u64) -> Vec<Chunk> {
    let chunks = chunks_of(seed);
    store.put_many(&chunks[..20]).and_then(|()| store.put_many(&chunks[20..])).unwrap();
    swap(store, chunks[20].hash()).unwrap();
    chunks
}

/// Has an empty directory take over, through a bucket with this hook.
fn take(
    bucket: &SimDepot,
    hook: impl Fn(usize) + Send + Sync + 'static,
) -> Result<Arc<LocalStore>, StoreError> {
    let mut node = Node::new(32, bucket);
    node.take_over = true;
    let (below, swaps) = (node.bucket.clone(), AtomicUsize::new(0));
    let machine = node.machine_at(Arc::new(BeforeSwap { below, swaps, hook }))?;
    LocalStore::open(&machine, SMALL)
}

#[test]
fn what_the_leader_sends_meanwhile_is_taken_over() {
    let bucket = SimDepot::new(1);
    let (deposed, mut chunks) = leader(&bucket);
    let store = deposed.clone();
    let taken = take(&bucket, move |swaps| {
        if swaps < 3 {
            send(&store, 2 + swaps as u64);
        }
    });
    let taken = taken.unwrap();
    (2..5).for_each(|seed| chunks.extend(chunks_of(seed)));
    assert_stored(&*taken, &chunks);
    let late = random_chunks(&mut Random::new(9), 20);
    deposed.put_many(&late).unwrap();
    let error = swap(&deposed, late[19].hash()).expect_err("it is deposed").to_string();
    assert!(error.contains("another directory took the lead"), "{error}");
}

/// What `send` puts.
fn chunks_of(seed: u64) -> Vec<Chunk> {
    let mut chunks = random_chunks(&mut Random::new(seed), 20);
    chunks.push(above(&chunks));
    chunks
}

/// Else two that begin at once would depose each other in turns.
#[test]
fn another_directory_that_was_faster_keeps_the_lead() {
    let bucket = SimDepot::new(2);
    let (_deposed, chunks) = leader(&bucket);
    let mut faster = Node::new(33, &bucket);
    faster.take_over = true;
    let other = Arc::new(std::sync::Mutex::new(None));
    let opened = other.clone();
    let error = take(&bucket, move |_| {
        opened.lock().unwrap().get_or_insert_with(|| faster.open().unwrap());
    });
    let error = error.err().expect("another was faster").to_string();
    assert!(error.contains("another directory took the lead just now"), "{error}");
    let other = other.lock().unwrap().take().expect("it was opened");
    assert_stored(&*other, &chunks);
    send(&other, 7);
}

#[test]
fn a_leader_that_sends_all_the_time_is_not_waited_for_without_end() {
    let bucket = SimDepot::new(3);
    let (leader, _) = leader(&bucket);
    let store = leader.clone();
    let error = take(&bucket, move |swaps| drop(send(&store, 2 + swaps as u64)));
    let error = error.err().expect("it is never done").to_string();
    assert!(error.contains("try again"), "{error}");
    send(&leader, 99);
}
