//! Builds a large map from its entries in order, with all processors.
//!
//! 1. The caller's thread writes leaves: where one ends depends on its entries alone, and what a
//!    parent says of it on its last key, its sums and its name. The first three are known at once.
//! 2. Workers name leaves, a job of many at once: they hash, compress and put them, in any order.
//!    Of what is put, one worker at a time syncs what there is once it has grown to some megabytes:
//!    the disk works while processors do, and little is left for the sync at the end.
//! 3. As names come back, in the order of leaves, the caller's thread writes the levels above,
//!    which are a hundredth of the work.
//!
//! So the tree is the one that `build` makes. *Memory*: a few jobs for each worker. Chunks are put
//! marked as loaded, so that they don't drive all others out of the cache. Nothing is started for a
//! tree that is no larger than a job.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, Scope};

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash, ChunkStore, Lifetime, PutFor, StoreError};

use crate::error::TreeError;
use crate::format::TreeFormat;
use crate::map::build::MapBuilder;
use crate::map::node::MapChild;
use crate::map::writer::EncodedNode;
use crate::map::{Entry, Summary, Tree};

/// A job is sent when its leaves have grown to this.
const JOB_BYTES: usize = 1 << 20;
/// Uncompressed bytes put between two syncs.
const UNSYNCED_BYTES_MAX: usize = 16 << 20;
/// The number of workers above which they would wait for the caller's thread.
const WORKERS_MAX: usize = 4;

impl Tree {
    /// As [`Tree::build`], for many entries: other threads help.
    ///
    /// # Errors
    /// As there.
    pub fn load(
        store: &dyn ChunkStore,
        format: TreeFormat,
        entries: &mut dyn Iterator<Item = Result<Entry, TreeError>>,
    ) -> Result<Tree, TreeError> {
        let store = PutFor::new(store, Lifetime::Loaded);
        let root = thread::scope(|scope| {
            let mut loader = Loader::new(&store, format, scope);
            for entry in entries {
                let Entry { key, value } = entry?;
                if loader.builder.add(&key, &value)? {
                    loader.end_leaf()?;
                }
            }
            loader.finish()
        })?;
        Ok(Tree { root, format })
    }
}

/// Leaves that want names.
struct Job {
    number: u64,
    leaves: Vec<Bytes>,
}

/// The names of a job's leaves.
struct Named {
    number: u64,
    result: Result<Vec<ChunkHash>, StoreError>,
}

/// The chunks that were put and aren't synced yet.
#[derive(Default)]
struct Unsynced {
    bytes: AtomicUsize,
    /// Held by the worker that syncs.
    syncing: Mutex<()>,
}

struct Workers {
    jobs: SyncSender<Job>,
    named: Receiver<Named>,
}

struct Loader<'scope, 'env> {
    builder: MapBuilder<'env>,
    store: &'env dyn ChunkStore,
    scope: &'scope Scope<'scope, 'env>,
    workers: Option<Workers>,
    /// The next job.
    leaves: Vec<Bytes>,
    leaves_bytes: usize,
    next_job: u64,
    /// The leaves that have no names yet, in order, and those of the next job.
    nameless: VecDeque<(Bytes, Summary)>,
    /// The job whose names come next, and names that came too early.
    next_named: u64,
    early: BTreeMap<u64, Vec<ChunkHash>>,
}

impl<'scope, 'env> Loader<'scope, 'env> {
    fn new(
        store: &'env dyn ChunkStore,
        format: TreeFormat,
        scope: &'scope Scope<'scope, 'env>,
    ) -> Loader<'scope, 'env> {
        Loader {
            builder: MapBuilder::new(store, format),
            store,
            scope,
            workers: None,
            leaves: Vec::new(),
            leaves_bytes: 0,
            next_job: 0,
            nameless: VecDeque::new(),
            next_named: 0,
            early: BTreeMap::new(),
        }
    }

    fn end_leaf(&mut self) -> Result<(), TreeError> {
        let EncodedNode { bytes, key, summary } = self.builder.levels.writer(0).encode();
        self.leaves_bytes += bytes.len();
        self.leaves.push(bytes);
        self.nameless.push_back((key, summary));
        if self.leaves_bytes < JOB_BYTES {
            return Ok(());
        }
        let job = self.take_job();
        if self.workers.is_none() {
            self.workers = Some(start_workers(self.store, self.scope));
        }
        if let Some(Workers { jobs, .. }) = &self.workers {
            // Waits while all workers are busy. It fails if they are gone, and then none names it.
            let _ = jobs.send(job);
        }
        while let Some(named) = self.workers.as_ref().and_then(|it| it.named.try_recv().ok()) {
            self.take_names(named)?;
        }
        Ok(())
    }

    fn take_job(&mut self) -> Job {
        let number = self.next_job;
        self.next_job += 1;
        self.leaves_bytes = 0;
        Job { number, leaves: mem::take(&mut self.leaves) }
    }

    /// Takes the names of a job, and writes parents' entries as far as names are known.
    fn take_names(&mut self, named: Named) -> Result<(), TreeError> {
        self.early.insert(named.number, named.result?);
        while let Some(names) = self.early.remove(&self.next_named) {
            self.next_named += 1;
            for hash in names {
                let (key, summary) = self.nameless.pop_front().expect("each leaf is noted here");
                self.builder.levels.add_put(0, &MapChild { key, hash, summary })?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<ChunkHash, TreeError> {
        let last = self.take_job();
        let named = name(self.store, last);
        if let Some(Workers { jobs, named }) = self.workers.take() {
            // They end when there is no job any more.
            drop(jobs);
            for named in named {
                self.take_names(named)?;
            }
        }
        self.take_names(named)?;
        assert!(self.nameless.is_empty(), "no worker ends before its jobs are done");
        self.builder.finish()
    }
}

fn start_workers<'scope, 'env>(
    store: &'env dyn ChunkStore,
    scope: &'scope Scope<'scope, 'env>,
) -> Workers {
    let count = thread::available_parallelism().map_or(1, |count| count.get().min(WORKERS_MAX));
    let (jobs, shared) = sync_channel(count);
    let shared = Arc::new((Mutex::new(shared), Unsynced::default()));
    let (sender, named) = channel();
    for _ in 0..count {
        let (shared, sender) = (Arc::clone(&shared), sender.clone());
        scope.spawn(move || work(store, &shared.0, &shared.1, &sender));
    }
    Workers { jobs, named }
}

fn work(
    store: &dyn ChunkStore,
    jobs: &Mutex<Receiver<Job>>,
    unsynced: &Unsynced,
    named: &Sender<Named>,
) {
    loop {
        let job = jobs.lock().expect("no panic while the lock is held").recv();
        let Ok(job) = job else { return };
        let bytes = job.leaves.iter().map(Bytes::len).sum();
        let mut done = name(store, job);
        if let Err(error) = unsynced.note(store, bytes) {
            done.result = done.result.and(Err(error));
        }
        // The receiver is gone after an error.
        let _ = named.send(done);
    }
}

impl Unsynced {
    /// Notes `bytes` that were put; syncs if that makes it many, and no other worker does already.
    fn note(&self, store: &dyn ChunkStore, bytes: usize) -> Result<(), StoreError> {
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes < UNSYNCED_BYTES_MAX {
            return Ok(());
        }
        let Ok(_one) = self.syncing.try_lock() else { return Ok(()) };
        self.bytes.store(0, Ordering::Relaxed);
        store.sync()
    }
}

/// Names the leaves of a job and puts them.
fn name(store: &dyn ChunkStore, job: Job) -> Named {
    let named = job.leaves.into_iter().map(|leaf| Chunk::from_encoded(leaf, ("a new node", 0)));
    let put = |chunks: Vec<Chunk>| {
        store.put_many(&chunks)?;
        Ok(chunks.iter().map(Chunk::hash).collect())
    };
    Named { number: job.number, result: named.collect::<Result<_, _>>().and_then(put) }
}
