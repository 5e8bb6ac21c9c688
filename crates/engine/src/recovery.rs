//! Recovery: opens what is published and replays the log that follows. Chunks that the log's
//! transactions brought are pending again, as in the process before.

mod needed;
mod old_values;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use frond_store::io::{Chance, Disk, Machine};
use frond_store::{Chunk, ChunkHash, ChunkStore, Layered, StoreError, UnreadableRange};
use frond_tree::{Bounds, Direction, Edit, Tree, TreeFormat};

use crate::background::Background;
use crate::compaction::publish::{ROOT_NAME, swap_root};
use crate::disk_reserve::DiskReserve;
use crate::durable_horizon::{DurableEnd, DurableHorizon};
use crate::error::EngineError;
use crate::fault::FaultCell;
use crate::ids::{Sequence, TreeId, TreeIds};
use crate::image::Image;
use crate::log::decode::{DecodeError, Decoded, PriorValues};
use crate::log::format::{LogOffset, SegmentNumber, damaged};
use crate::log::recovery::{ExpectedSegments, LogEnd, Replay, replay};
use crate::log::recycled::RecycledSegments;
use crate::log::retained::{RetainedSegments, first_kept};
use crate::log::writer::Writer;
use crate::options::EngineOptions;
use crate::overlay::memtable::Memtable;
use crate::overlay::pending::{NewChunks, StoreWithPending};
use crate::overlay::recycled::Recycler;
use crate::queue::Queue;
use crate::queue::commits::CommitQueue;
use crate::queue::key_locks::KeyLocks;
use crate::retained_states::RetainedStates;
use crate::shared::Shared;
use crate::signals::Signals;
use crate::slow_commits::Slowest;
use crate::snapshot::current::Current;
use crate::snapshot::open_transactions::OpenTransactions;
use crate::state::format::{
    EngineState, base_key, base_value, decode_base, decode_base_key, decode_base_value, encode_base,
};
use crate::state::published::{Published, Publisher};
use crate::state::unpublished::UnpublishedBases;
use crate::state::{Base, State, TreeGeneration};
use crate::statistics::counters::Counters;
use crate::write_memory::WriteMemory;
use needed::needed;
use old_values::OldValues;

/// Base chunks are read in batches of this.
const BASES_BATCH: usize = 256;
/// The number of segments to replay above which they are flushed at once: each opening adds one.
const SEGMENT_COUNT_MAX: u64 = 16;

/// Opens an engine without its background threads.
pub(crate) fn open(
    machine: &Machine,
    store: Arc<dyn ChunkStore>,
    options: EngineOptions,
) -> Result<Shared, EngineError> {
    let (root, published) = match store.root(ROOT_NAME)? {
        Some(root) => (root, EngineState::decode(&store.get(root)?)?),
        None if Image::is_begun(&*store)? => return Err(EngineError::HalfRestored),
        None => create(machine, &*store)?,
    };
    let pending = StoreWithPending::new(store);
    let store: Arc<dyn ChunkStore> = Arc::clone(&pending) as Arc<dyn ChunkStore>;
    let recycler = Arc::new(Recycler::new(options.memtable_bytes_max));
    let active = Arc::new(Memtable::new(&recycler, pending.all()));
    let mut replayed = Replayed::new(&store, active, &published)?;
    let (first, has_first) = (published.segment, published.has_segment);
    let kept = first_kept(&*machine.disk, options.changes, first)?;
    let end = replay(machine, &ExpectedSegments { kept, first, has_first }, &mut replayed)?;
    let mut parts = replayed.parts;
    if store.maintenance().has_doubts() {
        let needed = needed(&parts.state, pending.all(), &parts.unpublished, parts.last);
        store.maintenance().report_lost(&needed)?;
    }
    let segments = (kept, first, end.next);
    let now = u64::try_from(machine.clock.now_micros() / 1_000_000).unwrap_or(0);
    let kept = RetainedSegments::open(&machine.disk, options.changes, segments, parts.last, now);
    let beyond = std::mem::take(&mut parts.beyond);
    let publisher = Publisher { root, published, first_segment: first, beyond };
    Ok(assemble(machine, (pending, recycler, Arc::new(kept)), options, publisher, parts, &end))
}

/// Makes an empty engine: the system tree alone.
fn create(
    machine: &Machine,
    store: &dyn ChunkStore,
) -> Result<(ChunkHash, EngineState), EngineError> {
    check_no_log(&*machine.disk)?;
    let format = TreeFormat::new(random(&*machine.chance));
    let tree = Tree::empty(store, format)?;
    let chunk = encode_base(&Base::whole(tree, Sequence::ZERO));
    let edit = (base_key(TreeId::SYSTEM), Edit::Put(base_value(&chunk)));
    store.put_many(std::slice::from_ref(&chunk))?;
    let published = EngineState {
        bases: tree.apply(store, &mut std::iter::once(Ok(edit)))?,
        horizon: Sequence::ZERO,
        segment: SegmentNumber(1),
        has_segment: false,
        next_tree_id: TreeId(TreeId::SYSTEM.0 + 1),
    };
    let chunk = published.encode();
    store.put_many(std::slice::from_ref(&chunk))?;
    swap_root(store, None, &chunk)?;
    Ok((chunk.hash(), published))
}

/// A log without an engine state means that the store was lost.
fn check_no_log(disk: &dyn Disk) -> Result<(), StoreError> {
    let names = disk.list().map_err(|error| StoreError::io("the directory", error))?;
    match names.iter().find_map(|name| SegmentNumber::of_file_name(name)) {
        Some(number) => Err(damaged(number, LogOffset(0), "a log, but no engine state")),
        None => Ok(()),
    }
}

fn random(chance: &dyn Chance) -> u64 {
    let mut bytes = [0; size_of::<u64>()];
    chance.fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// The result of replaying the log over the published state.
struct Replayed<'a> {
    store: &'a Arc<dyn ChunkStore>,
    parts: ReplayedParts,
    /// The Sequence of the record that is being read.
    sequence: Sequence,
    /// The chunks from which its own are made.
    origins: Vec<ChunkHash>,
    ahead: OldValues,
}

struct ReplayedParts {
    state: State,
    unpublished: BTreeSet<TreeId>,
    beyond: BTreeMap<TreeId, Sequence>,
    logged_bases: Vec<(Sequence, ChunkHash)>,
    next_tree_id: u64,
    last: Sequence,
}

impl<'a> Replayed<'a> {
    fn new(
        store: &'a Arc<dyn ChunkStore>,
        active: Arc<Memtable>,
        published: &EngineState,
    ) -> Result<Self, EngineError> {
        let mut parts = ReplayedParts {
            state: State { active, ..State::default() },
            unpublished: BTreeSet::new(),
            beyond: BTreeMap::new(),
            logged_bases: Vec::new(),
            next_tree_id: published.next_tree_id.0,
            last: published.horizon,
        };
        for (tree, base) in read_bases(store, &published.bases)? {
            parts.last = parts.last.max(base.folded_to);
            if published.horizon < base.folded_to {
                parts.beyond.insert(tree, base.folded_to);
            }
            let generation = TreeGeneration { from: Sequence::ZERO, base: Some(base) };
            parts.state.trees.modify(tree, |generations| generations.push(generation));
        }
        let (sequence, origins, ahead) = (Sequence::ZERO, Vec::new(), OldValues::default());
        Ok(Replayed { store, parts, sequence, origins, ahead })
    }

    /// The bytes of the value that `key` had before the record that is being read.
    fn value_before(&mut self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let wanted = self.ahead.take(&**self.store, &self.parts.state, (self.sequence, tree, key));
        let before = self.sequence.preceding();
        let generation = self.parts.state.generation(tree, before);
        let Some((generation, base)) =
            generation.and_then(|generation| Some((generation, generation.base.as_ref()?)))
        else {
            return Ok(None);
        };
        if self.sequence <= base.folded_to {
            return Ok(None); // No reader asks the memtable for it any more.
        }
        let state = &self.parts.state;
        let written = state.find_recent((tree, base), key, before);
        let value = match (written, wanted) {
            (None, Some(old)) if old.generation == generation.from => return Ok(Some(old.bytes)),
            (None, _) => base.get(&**self.store, key)?,
            (Some(written), _) => written,
        };
        let Some(value) = value else { return Ok(Some(Bytes::new())) };
        Ok(Some(value.read(&**self.store)?))
    }
}

impl Replay for Replayed<'_> {
    fn expect(&mut self, sequence: Sequence, payload: &Bytes) {
        self.ahead.expect(sequence, payload);
    }

    fn apply(&mut self, sequence: Sequence, payload: &Bytes) -> Result<(), DecodeError> {
        self.sequence = sequence;
        let decoded = Decoded::new(payload, self).and_then(|decoded| {
            let origins = std::mem::take(&mut self.origins);
            let new_chunks = NewChunks::of(&decoded.record, origins, &**self.store);
            Ok((new_chunks.map_err(|error| DecodeError::Before(error.into()))?, decoded))
        });
        let (new_chunks, Decoded { record, for_memtable }) = match decoded {
            // The value that it changed can't be read: only a salvage goes on without it.
            Err(DecodeError::Before(error))
                if self.store.skip_unreadable(lost(sequence, &error)) =>
            {
                return Ok(());
            }
            decoded => decoded?,
        };
        let parts = &mut self.parts;
        parts.next_tree_id = parts.next_tree_id.max(record.next_tree_id);
        parts.last = parts.last.max(sequence);
        for (tree, base) in record.bases {
            parts.state.begin_generation(tree, TreeGeneration::begun(sequence, base), sequence);
            parts.logged_bases.extend(base.map(|base| (sequence, base.root)));
            parts.unpublished.insert(tree);
        }
        parts.state.active.add_new_chunks(&new_chunks);
        parts.state.active.insert(sequence, &for_memtable);
        Ok(())
    }

    fn skip_unreadable(&mut self, number: SegmentNumber) -> bool {
        let why = format!("all transactions from {} on: it is missing", number.file_name());
        self.store.skip_unreadable(UnreadableRange {
            chunk: None,
            after: None,
            up_to: None,
            count: None,
            why,
        })
    }
}

impl PriorValues for Replayed<'_> {
    fn value(&mut self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>, DecodeError> {
        self.value_before(tree, key).map_err(DecodeError::Before)
    }

    fn chunk(&mut self, old: ChunkHash) -> Result<Chunk, DecodeError> {
        self.origins.push(old);
        self.store.get(old).map_err(|error| DecodeError::Before(error.into()))
    }
}

/// Reads the published bases of all trees.
///
/// # Errors
/// As the store's.
pub(crate) fn read_bases(
    store: &Arc<dyn ChunkStore>,
    bases: &Tree,
) -> Result<Vec<(TreeId, Base)>, EngineError> {
    let mut named: Vec<(TreeId, ChunkHash)> = Vec::new();
    for entry in bases.range(store, Bounds::all(), Direction::Ascending) {
        let entry = entry?;
        named.push((decode_base_key(&entry.key)?, decode_base_value(&entry.value)?));
    }
    let mut found = Vec::with_capacity(named.len());
    for batch in named.chunks(BASES_BATCH) {
        let hashes: Vec<ChunkHash> = batch.iter().map(|(_, hash)| *hash).collect();
        let chunks = match store.get_many(&hashes) {
            Ok(chunks) => chunks.into_iter().map(Some).collect(),
            Err(_) => readable(&**store, &hashes)?,
        };
        for ((tree, hash), chunk) in batch.iter().zip(chunks) {
            debug_assert!(chunk.as_ref().is_none_or(|chunk| chunk.hash() == *hash));
            if let Some(chunk) = chunk {
                found.push((*tree, decode_base(&chunk)?));
            }
        }
    }
    Ok(found)
}

/// The chunks of `hashes`, and nothing in the place of those that are passed over.
fn readable(
    store: &dyn ChunkStore,
    hashes: &[ChunkHash],
) -> Result<Vec<Option<Chunk>>, EngineError> {
    let mut chunks = Vec::with_capacity(hashes.len());
    for hash in hashes {
        match store.get(*hash) {
            Ok(chunk) => chunks.push(Some(chunk)),
            Err(error) => {
                let why = format!("the base of a tree: {error}");
                let (after, up_to, count) = (None, None, None);
                if !store.skip_unreadable(UnreadableRange {
                    chunk: Some(*hash),
                    after,
                    up_to,
                    count,
                    why,
                }) {
                    return Err(error.into());
                }
                chunks.push(None);
            }
        }
    }
    Ok(chunks)
}

/// A transaction whose record holds changes of what can't be read.
fn lost(sequence: Sequence, error: &EngineError) -> UnreadableRange {
    let why = format!("the transaction {} in the log: {error}", sequence.0);
    UnreadableRange { chunk: None, after: None, up_to: None, count: None, why }
}

fn assemble(
    machine: &Machine,
    (pending, recycler, kept): (
        Arc<Layered<StoreWithPending>>,
        Arc<Recycler>,
        Arc<RetainedSegments>,
    ),
    options: EngineOptions,
    publisher: Publisher,
    parts: ReplayedParts,
    end: &LogEnd,
) -> Shared {
    let recycled = Arc::new(RecycledSegments::new(&machine.disk));
    let writer = Writer::new(machine, &recycled, end.next, end.previous.clone(), &kept);
    let horizon = DurableHorizon::new(durable_end(end, parts.last));
    let active = Arc::clone(&parts.state.active);
    let mut queue = Queue::new(writer, end.next, active, parts.last);
    queue.segment_bytes = end.bytes;
    let store: Arc<dyn ChunkStore> = Arc::clone(&pending) as Arc<dyn ChunkStore>;
    let shared = Shared {
        machine: machine.clone(),
        space: DiskReserve::open(machine, options.reserve),
        local_format: publisher.published.bases.format,
        current: Current::new(Arc::clone(&store), parts.state, parts.last),
        skipped: (parts.last, queue.last),
        store,
        pending,
        options,
        recycled,
        kept,
        horizon,
        tree_ids: TreeIds::from(parts.next_tree_id),
        order: None,
        commits: CommitQueue::new(queue),
        staged: AtomicU64::new(0),
        conflict_seed: random(&*machine.chance),
        transactions: OpenTransactions::default(),
        key_locks: KeyLocks::default(),
        retained_states: RetainedStates::default(),
        recycler,
        published: Published::new(
            publisher,
            UnpublishedBases::found(parts.unpublished, parts.logged_bases),
        ),
        signals: Signals::default(),
        background: Background::default(),
        counters: Counters {
            log_bits_turned_back: end.bits_turned_back.into(),
            ..Counters::default()
        },
        fault: FaultCell::default(),
        slowest: Slowest::default(),
        write_memory: WriteMemory::new(options.writes_bytes_max),
    };
    shared.note_all_runs();
    seal_if_full(&shared, end);
    shared
}

/// The end of a log that was read up to `sequence`.
fn durable_end(end: &LogEnd, sequence: Sequence) -> DurableEnd {
    let (segment, offset) = match end.segment_count {
        0 => (end.next, LogOffset(0)),
        _ => (SegmentNumber(end.next.0 - 1), end.previous.offset),
    };
    DurableEnd { sequence, segment, offset }
}

/// Seals what recovery read, where that fills a memtable or lies in many segments.
fn seal_if_full(shared: &Shared, end: &LogEnd) {
    let mut queue = shared.queue();
    let is_full = queue.active.bytes().max(end.bytes) >= shared.options.memtable_bytes_max;
    if is_full || end.segment_count > SEGMENT_COUNT_MAX {
        shared.seal(&mut queue);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use frond_store::local::{LocalOptions, LocalStore};
    use frond_store::memory::MemoryStore;
    use frond_store::{ChunkKind, StoreLayer};
    use frond_testkit::SimDisk;

    use super::*;
    use crate::Engine;

    /// Readers pass over what is lost, as a salvage has them.
    struct Salvaging {
        store: Arc<dyn ChunkStore>,
        lost: Mutex<Vec<String>>,
    }

    impl Salvaging {
        fn new(store: Arc<dyn ChunkStore>) -> Arc<Layered<Salvaging>> {
            Arc::new(Layered(Salvaging { store, lost: Mutex::default() }))
        }

        fn lost(&self) -> Vec<String> {
            self.lost.lock().expect("no panic while the lock is held").clone()
        }
    }

    impl StoreLayer for Salvaging {
        fn inner(&self) -> &dyn ChunkStore {
            &*self.store
        }

        fn note_lost(&self, lost: UnreadableRange) -> bool {
            self.lost.lock().expect("no panic while the lock is held").push(lost.why);
            true
        }
    }

    #[test]
    fn each_base_that_can_be_read_stays_its_own_trees() {
        let chunks = [1, 2, 3].map(|number| Chunk::new(ChunkKind::Blob, &[], &[number; 50]));
        let store = Salvaging::new(MemoryStore::new());
        store.put_many(&[chunks[0].clone(), chunks[2].clone()]).expect("memory takes all");
        let hashes = chunks.each_ref().map(Chunk::hash);
        let found = readable(&*store, &hashes).expect("what is missing is passed over");
        let found: Vec<_> = found.iter().map(|found| found.as_ref().map(Chunk::hash)).collect();
        assert_eq!(found, [Some(hashes[0]), None, Some(hashes[2])]);
        assert_eq!(store.lost().len(), 1);
        assert!(readable(&*store.store, &hashes).is_err(), "only where they may be passed over");
    }

    #[test]
    fn only_a_salvage_goes_on_without_the_log() {
        let disk = SimDisk::new(1);
        let engine =
            Engine::open(&disk.machine(), EngineOptions::default()).expect("an empty directory");
        let mut transaction = engine.begin();
        let value = frond_tree::Value::inline("folded");
        transaction.put(TreeId::SYSTEM, Bytes::from("a"), value).expect("fits");
        transaction.commit(Default::default()).expect("there is room");
        engine.checkpoint().expect("there is room");
        engine.close().expect("there is room");
        drop(engine);
        let machine = disk.machine();
        let names = disk.list().expect("the disk works");
        for name in names.iter().filter(|name| SegmentNumber::of_file_name(name).is_some()) {
            disk.remove(name).expect("the disk works");
        }
        let local = LocalStore::open(&machine, LocalOptions::default()).expect("whole packs");
        let options = EngineOptions::default();
        assert!(super::open(&machine, Arc::clone(&local) as Arc<dyn ChunkStore>, options).is_err());
        let store = Salvaging::new(local);
        let shared = super::open(&machine, Arc::clone(&store) as Arc<dyn ChunkStore>, options);
        let shared = shared.expect("it goes on without");
        assert!(store.lost()[0].contains("it is missing"), "{:?}", store.lost());
        let found = shared.snapshot().get(TreeId::SYSTEM, b"a").expect("readable");
        assert_eq!(found.map(|value| value.bytes()), Some(6));
    }
}
