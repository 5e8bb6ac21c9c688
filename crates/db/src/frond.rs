//! A data directory, open.

use std::any::Any;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use frond_doc::{ObjectId, Timestamp};
use frond_engine::{Engine, EngineCounters, EngineError, Failure, Fault};
use frond_query::cores::Cores;
use frond_query::memory::REQUEST_BYTES_MAX;
use frond_query::pipeline::{MEMORY_BYTES_MAX, Resources, Spill, SpillFile};
use frond_query::{Code, QueryError};
use frond_store::StoreCounters;
use frond_store::budget::{MemoryBudget, Reservation};
use frond_store::io::{Chance, Clock, Machine};

use crate::clock::{BelievedClock, ClockRecords};
use crate::contention::Contention;
use crate::ended_cursors::EndedCursors;
use crate::error::Error;
use crate::schema::{Builds, CatalogCache, IndexBuild, IndexFilters, IndexUsage};
use crate::spill::SpillSpace;
use crate::tail::{TAIL_BYTES, Tail};
use crate::uncommitted_writes::UncommittedWrites;

/// Settings of a data directory.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrondOptions {
    /// The engine's settings.
    pub engine: frond_engine::EngineOptions,
    /// Bytes that a stage of a query keeps in memory at most; what is more goes to disk. `None` is
    /// MongoDB's 100 MB.
    pub stage_memory_bytes_max: Option<usize>,
    /// Bytes that the stages of all queries together keep in memory at most. `None` is 1 GB.
    pub stages_memory_bytes_max: Option<usize>,
    /// Bytes of disk that temporary files of all queries take together at most: sorts and groups
    /// that exceed their memory. `None` is 10 GB.
    pub temporary_disk_bytes_max: Option<u64>,
    /// Bytes of documents that the process keeps as they were put together, and as many again of
    /// indexes of documents. `None` is 32 MB; what the last that is opened says holds for all.
    pub documents_cache_bytes: Option<u64>,
    /// The largest document that is stored, in bytes of BSON. `None` is what BSON can be, 2 GiB: a
    /// program that serves clients has a limit of its own ([`Frond::with_document_bytes_max`]).
    pub document_bytes_max: Option<u64>,
    /// The number of milliseconds a statement of a transaction of several requests waits for what
    /// another transaction has locked, before it fails with `WriteConflict`. `None`: 3,000.
    pub write_wait_millis_max: Option<u64>,
    /// The number of cores on which one query may run that reads much, while no other needs them.
    /// `None`: on all that the process may use.
    pub query_cores_max: Option<usize>,
    /// Whether clients' JavaScript (`$where`, `$function`, `$accumulator`) is refused.
    pub refuses_scripts: bool,
}

/// The part of a budget that a stage keeps in memory at most: several run at once.
const STAGE_SHARE: u64 = 16;
/// The part of it that the stages of all queries keep together.
const STAGES_SHARE: u64 = 8;
/// The least memory: with less no document of 16 MB could be made of another.
const STAGES_BYTES_MIN: u64 = 24 << 20;
/// The memory that they keep together where there is no such budget.
const STAGES_BYTES_MAX: usize = 1 << 30;
/// The most bytes of all temporary files: a sort of so much, or some thousand cursors that were
/// forgotten.
const TEMPORARY_DISK_BYTES_MAX: u64 = 10 << 30;
/// Documents that were put together take this part of it, within these bounds.
const DOCUMENTS_SHARE: u64 = 32;
const DOCUMENTS_BYTES_MIN: u64 = 1 << 20;
const DOCUMENTS_BYTES_MAX: u64 = 32 << 20;
/// The least memory: with less, sorts would write more than they read.
const STAGE_BYTES_MIN: u64 = 1 << 20;

impl FrondOptions {
    /// The default options with one budget of memory, divided by [`EngineOptions::for_memory`]; a
    /// stage of a query keeps a sixteenth of it at most, all stages together an eighth.
    ///
    /// [`EngineOptions::for_memory`]: frond_engine::EngineOptions::for_memory
    pub fn for_memory(bytes: u64) -> FrondOptions {
        let stage = (bytes / STAGE_SHARE).clamp(STAGE_BYTES_MIN, MEMORY_BYTES_MAX as u64);
        let stages = (bytes / STAGES_SHARE).max(stage).max(STAGES_BYTES_MIN);
        FrondOptions {
            engine: frond_engine::EngineOptions::for_memory(bytes),
            stage_memory_bytes_max: Some(stage as usize),
            stages_memory_bytes_max: Some(usize::try_from(stages).unwrap_or(usize::MAX)),
            documents_cache_bytes: Some(
                (bytes / DOCUMENTS_SHARE).clamp(DOCUMENTS_BYTES_MIN, DOCUMENTS_BYTES_MAX),
            ),
            ..FrondOptions::default()
        }
    }

    /// The default options as far as they are within [`FrondOptions::for_memory`].
    pub fn within_memory(bytes: u64) -> FrondOptions {
        let most = FrondOptions::for_memory(bytes);
        let stages = most.stages_memory_bytes_max.map(|bytes| bytes.min(STAGES_BYTES_MAX));
        FrondOptions {
            engine: frond_engine::EngineOptions::within_memory(bytes),
            stages_memory_bytes_max: stages,
            ..most
        }
    }
}

/// A data directory, open: many databases, each a repository. Cloning shares it.
///
/// *Thread safety*: every method may be called from any number of threads at once.
#[derive(Clone)]
pub struct Frond {
    inner: Arc<Inner>,
    /// The size of the largest document that this handle writes.
    document_bytes_max: u64,
}

/// BSON's lengths are signed, of 32 bits.
const DOCUMENT_BYTES_MAX: u64 = i32::MAX as u64;

/// Takes a line for the log.
type NoticeSink = Arc<dyn Fn(Notice, &str) + Send + Sync>;

/// The weight of a line of the log that no request asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// An index build began or ended.
    IndexBuild,
    /// Something that may need looking after.
    Warning,
}

/// The longest wait: longer than a transaction takes that isn't waiting for its client; and short
/// enough that one client with two transactions open, which are in each other's way, gets the
/// error.
const WRITE_WAIT_MILLIS_MAX: u64 = 3_000;

struct Inner {
    engine: Engine,
    machine: Machine,
    /// The machine's clock, too, as more than that.
    clock: Arc<BelievedClock>,
    clock_records: Mutex<ClockRecords>,
    contention: Arc<Contention>,
    catalog: CatalogCache,
    builds: Builds,
    usage: IndexUsage,
    index_filters: IndexFilters,
    /// The number of times a collection or an index went, or got another name.
    definitions_changed: AtomicU64,
    ended_cursors: EndedCursors,
    written: UncommittedWrites,
    /// The last records of transactions' events.
    tail: Arc<Tail>,
    /// The id of the set, for a member of one.
    set_id: OnceLock<u64>,
    /// The layer of versions: see [`crate::hook`].
    layer: Arc<dyn Any + Send + Sync>,
    spill: Arc<SpillSpace>,
    /// Takes the lines that no request asked for.
    notices: OnceLock<NoticeSink>,
    stage_memory_bytes_max: usize,
    /// The store's cache, and those of documents.
    cache_bytes: (u64, u64),
    /// The memory that all requests share.
    memory_budget: Arc<MemoryBudget>,
    runs_scripts: bool,
    cores: Arc<Cores>,
    write_wait_millis_max: u64,
    /// The middle five bytes of every ObjectId made here.
    object_id_process: [u8; 5],
    /// Its low 24 bits are the last three bytes of the next ObjectId.
    object_id_counter: AtomicU32,
    /// The last timestamp that was given out.
    timestamp: AtomicU64,
}

impl Frond {
    /// Opens the content of `engine`, whose log lies on `machine`'s disk, with `clock` in place of
    /// `machine`'s clock.
    ///
    /// # Errors
    /// If temporary files of an earlier process can't be removed.
    pub(crate) fn assemble(
        machine: &Machine,
        clock: Arc<BelievedClock>,
        engine: Engine,
        options: FrondOptions,
        layer: Arc<dyn Any + Send + Sync>,
    ) -> Result<Frond, Error> {
        let temporary = options.temporary_disk_bytes_max.unwrap_or(TEMPORARY_DISK_BYTES_MAX);
        let spill = SpillSpace::open(&machine.disk, &engine, temporary).map_err(|error| {
            let message = format!("temporary files can't be removed: {error}");
            Error::from(QueryError::new(Code::InternalError, message))
        })?;
        let documents_bytes = options.documents_cache_bytes.unwrap_or(DOCUMENTS_BYTES_MAX);
        let mut object_id_process = [0; 5];
        machine.chance.fill(&mut object_id_process);
        let mut counter = [0; 4];
        machine.chance.fill(&mut counter);
        Ok(Frond {
            document_bytes_max: options.document_bytes_max.unwrap_or(DOCUMENT_BYTES_MAX),
            inner: Arc::new(Inner {
                engine,
                machine: machine.clone(),
                clock,
                clock_records: Mutex::default(),
                contention: Arc::new(Contention::new()),
                catalog: CatalogCache::new(),
                builds: Builds::default(),
                usage: IndexUsage::default(),
                index_filters: IndexFilters::default(),
                definitions_changed: AtomicU64::new(0),
                ended_cursors: EndedCursors::default(),
                written: UncommittedWrites::default(),
                tail: Tail::new(documents_bytes.min(TAIL_BYTES)),
                set_id: OnceLock::new(),
                layer,
                spill: Arc::new(spill),
                notices: OnceLock::new(),
                stage_memory_bytes_max: options.stage_memory_bytes_max.unwrap_or(MEMORY_BYTES_MAX),
                cache_bytes: (options.engine.cache_bytes, documents_bytes),
                memory_budget: MemoryBudget::new(
                    options.stages_memory_bytes_max.unwrap_or(STAGES_BYTES_MAX),
                ),
                runs_scripts: !options.refuses_scripts,
                cores: options.query_cores_max.map_or_else(Cores::of_machine, Cores::of_count),
                write_wait_millis_max: options
                    .write_wait_millis_max
                    .unwrap_or(WRITE_WAIT_MILLIS_MAX),
                object_id_process,
                object_id_counter: AtomicU32::new(u32::from_le_bytes(counter)),
                timestamp: AtomicU64::new(0),
            }),
        })
    }

    /// The same data directory, for writers whose documents are at most so large.
    pub fn with_document_bytes_max(self, bytes_max: u64) -> Frond {
        Frond { document_bytes_max: bytes_max.min(DOCUMENT_BYTES_MAX), ..self }
    }

    /// The largest document that is stored by this handle, in bytes of BSON.
    pub fn document_bytes_max(&self) -> u64 {
        self.document_bytes_max
    }

    /// Has `sink` take what an operator may want to read and no request asked for, a line each.
    /// Only the first sink is used.
    pub fn on_notice(&self, sink: impl Fn(Notice, &str) + Send + Sync + 'static) {
        // A second server on one handle isn't worth an error: the lines go where they went.
        let sink: NoticeSink = Arc::new(sink);
        if self.inner.notices.set(Arc::clone(&sink)).is_ok() {
            let turned_back = self.inner.engine.counters().log_bits_turned_back;
            if 0 < turned_back {
                let line = format!(
                    "{turned_back} of the log's last bits had turned over, and were turned back: the \
                     disk doesn't keep what it is given"
                );
                sink(Notice::Warning, &line);
            }
            self.inner.engine.on_failure(move |line| sink(Notice::Warning, line));
        }
    }

    /// Returns the fault that closed the databases for writing, if it wasn't [`Frond::close`]:
    /// reads go on, and only opening the directory again leads back.
    pub fn fault(&self) -> Option<&Fault> {
        self.inner.engine.fault()
    }

    /// Fails if there is such a fault: for what would write only later.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        let closed = |fault: &Fault| EngineError::Closed(fault.message.clone()).into();
        self.fault().map_or(Ok(()), |fault| Err(closed(fault)))
    }

    /// Calls `sink` with that, once; at once where it has happened. Only the first sink counts.
    pub fn on_fault(&self, sink: impl Fn(&Fault) + Send + Sync + 'static) {
        self.inner.engine.on_fault(sink);
    }

    pub(crate) fn notice(&self, notice: Notice, line: &str) {
        if let Some(sink) = self.inner.notices.get() {
            sink(notice, line);
        }
    }

    /// Returns the counters of engine and store: for `serverStatus`.
    pub fn counters(&self) -> (EngineCounters, StoreCounters) {
        (self.inner.engine.counters(), self.inner.engine.store().counters())
    }

    /// Returns the last failure in the background: for `serverStatus`, too.
    pub fn last_failure(&self) -> Option<Failure> {
        self.inner.engine.last_failure()
    }

    /// The moment of the last transaction that is visible: seconds since 1970 and a counter.
    pub fn operation_time(&self) -> Timestamp {
        Timestamp(self.inner.engine.visible().0)
    }

    /// Now as a timestamp, as a Sequence is: the second that is believed and a counter, above
    /// everything that is visible. No two are equal.
    pub fn new_timestamp(&self) -> Timestamp {
        let visible = self.inner.engine.visible();
        let least = visible.following(self.inner.clock.now_micros()).unwrap_or(visible).0;
        let next = |last: u64| Some(last.saturating_add(1).max(least));
        let last = self.inner.timestamp.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        Timestamp(last.unwrap_or_else(|last| last).saturating_add(1).max(least))
    }

    /// A new, unique ObjectId.
    pub fn new_object_id(&self) -> ObjectId {
        // Four bytes of the time, as every driver cuts them: they begin again in 2106.
        let seconds = self.inner.clock.wall_micros().div_euclid(1_000_000) as u32;
        let counter = self.inner.object_id_counter.fetch_add(1, Ordering::Relaxed);
        let mut id = [0; 12];
        id[..4].copy_from_slice(&seconds.to_be_bytes());
        id[4..9].copy_from_slice(&self.inner.object_id_process);
        id[9..].copy_from_slice(&counter.to_be_bytes()[1..]);
        ObjectId(id)
    }

    /// The engine, for maintenance.
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// Writes what is in memory to its files: what was committed is durable, also what wasn't to
    /// wait for it.
    ///
    /// # Errors
    /// `Closed` if a sync failed; `Unavailable` if the disk is full or doesn't answer. Writes in
    /// memory stay there, and in the log.
    pub fn flush(&self) -> Result<(), Error> {
        Ok(self.inner.engine.flush()?)
    }

    /// Returns the last records of transactions' events.
    pub(crate) fn tail(&self) -> &Arc<Tail> {
        &self.inner.tail
    }

    /// Returns the id of the set that this directory is a member's of, once that is known.
    pub(crate) fn set_id(&self) -> &OnceLock<u64> {
        &self.inner.set_id
    }

    pub(crate) fn clock(&self) -> &BelievedClock {
        &self.inner.clock
    }

    pub(crate) fn shared_clock(&self) -> Arc<BelievedClock> {
        Arc::clone(&self.inner.clock)
    }

    pub(crate) fn clock_records(&self) -> &Mutex<ClockRecords> {
        &self.inner.clock_records
    }

    /// Returns the last meanings of names of databases and collections.
    pub(crate) fn catalog_cache(&self) -> &CatalogCache {
        &self.inner.catalog
    }

    /// Returns how much memory the stages of a query may use, and where the rest goes.
    pub(crate) fn resources(&self, in_memory_only: bool) -> Resources {
        let spill = Arc::clone(&self.inner.spill) as Arc<dyn Spill>;
        Resources {
            memory_bytes_max: self.inner.stage_memory_bytes_max,
            memory: Some(Arc::clone(&self.inner.memory_budget)),
            spill: Some(spill).filter(|_| !in_memory_only),
            go_on: None,
            cores: Some(Arc::clone(&self.inner.cores)),
        }
    }

    /// Returns the memory of the store's cache, and that of documents that were put together;
    /// indexes of documents take as much again.
    pub(crate) fn cache_bytes(&self) -> (u64, u64) {
        self.inner.cache_bytes
    }

    /// The memory that all requests share: a caller that keeps more of it the more a client asks
    /// for takes a [`Reservation`] of it.
    pub fn memory_budget(&self) -> &Arc<MemoryBudget> {
        &self.inner.memory_budget
    }

    /// The machine's cores: a server reports to them each request that runs, and what these leave
    /// is for queries that read much.
    pub fn cores(&self) -> &Arc<Cores> {
        &self.inner.cores
    }

    /// Whether clients' JavaScript runs.
    pub(crate) fn runs_scripts(&self) -> bool {
        self.inner.runs_scripts
    }

    /// Returns a reservation for the values of one request: see
    /// [`RequestMemory`](frond_query::memory::RequestMemory).
    pub(crate) fn request_reservation(&self) -> Reservation {
        let budget = &self.inner.memory_budget;
        let bytes_max = REQUEST_BYTES_MAX.min(budget.bytes_max());
        Reservation::new(bytes_max, Some(Arc::clone(budget)))
    }

    /// Bytes that all requests keep in memory now.
    pub fn stages_memory_bytes(&self) -> usize {
        self.inner.memory_budget.bytes()
    }

    /// Makes a temporary file, which is removed when it is dropped: for a server's own bytes. It
    /// counts as those of queries do.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn create_temporary_file(&self) -> Result<Box<dyn SpillFile>, Error> {
        Ok(self.inner.spill.create()?)
    }

    /// Returns how many bytes temporary files have now.
    pub fn temporary_disk_bytes(&self) -> u64 {
        self.inner.spill.bytes()
    }

    /// The index builds that are under way, the oldest first.
    pub fn index_builds(&self) -> Vec<IndexBuild> {
        self.inner.builds.list()
    }

    pub(crate) fn builds(&self) -> &Builds {
        &self.inner.builds
    }

    /// Returns how often a collection or an index went, or got another name, since the directory
    /// was opened.
    pub(crate) fn definitions_changed(&self) -> u64 {
        self.inner.definitions_changed.load(Ordering::Acquire)
    }

    /// Notes that a collection or an index went, or got another name.
    pub(crate) fn note_definitions_changed(&self) {
        self.inner.definitions_changed.fetch_add(1, Ordering::Release);
    }

    /// Returns the number that [`Frond::end_cursors`] takes, before what ends them is visible.
    #[doc(hidden)]
    pub fn begin_to_end(&self) -> u64 {
        self.inner.definitions_changed.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Ends the cursors that began before `number` on a branch, or on one collection of it: what
    /// they read is another now.
    #[doc(hidden)]
    pub fn end_cursors(
        &self,
        repository: &str,
        branch: &str,
        collection: Option<&str>,
        number: u64,
    ) {
        self.inner.ended_cursors.end(repository, branch, collection, number);
        self.note_definitions_changed();
    }

    pub(crate) fn ended_cursors(&self) -> &EndedCursors {
        &self.inner.ended_cursors
    }

    pub(crate) fn usage(&self) -> &IndexUsage {
        &self.inner.usage
    }

    pub(crate) fn index_filters(&self) -> &IndexFilters {
        &self.inner.index_filters
    }

    /// Returns the state of the layer of versions that was given to it.
    pub(crate) fn layer(&self) -> &(dyn Any + Send + Sync) {
        &*self.inner.layer
    }

    /// Returns the writes to branches, for their policies.
    #[doc(hidden)]
    pub fn written(&self) -> &UncommittedWrites {
        &self.inner.written
    }

    pub(crate) fn contention(&self) -> &Arc<Contention> {
        &self.inner.contention
    }

    /// Returns how long a statement of a transaction waits for what another has locked.
    pub fn write_wait_millis_max(&self) -> u64 {
        self.inner.write_wait_millis_max
    }

    pub(crate) fn chance(&self) -> &dyn Chance {
        &*self.inner.machine.chance
    }

    /// Sixteen random bytes in the form of a UUID of version 4.
    #[doc(hidden)]
    pub fn new_uuid(&self) -> [u8; 16] {
        let mut uuid = [0; 16];
        self.chance().fill(&mut uuid);
        uuid[6] = (uuid[6] & 0x0f) | 0x40;
        uuid[8] = (uuid[8] & 0x3f) | 0x80;
        uuid
    }
}

/// The machine whose disk is `directory`, made where it is missing.
///
/// # Errors
/// `BadValue` (2) with what the system says of the directory.
pub fn open_machine(directory: &Path) -> Result<Machine, Error> {
    Machine::system(directory).map_err(|error| {
        let message = format!("data directory {}: {error}", directory.display());
        Error::invalid(Code::BadValue, message)
    })
}
