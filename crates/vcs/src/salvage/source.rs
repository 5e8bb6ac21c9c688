//! The rest of a damaged directory, opened so that unreadable parts are passed over.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use frond_db::inside::refs::shallow;
use frond_db::inside::{Error, ErrorKind, Frond, FrondOptions, Reader};
use frond_engine::order::SlotOrder;
use frond_engine::{Engine, EngineError, EngineOptions, Image, omit_record};
use frond_store::io::{Disk, Machine, ScratchDisk};
use frond_store::local::examine::rescue;
use frond_store::local::{LocalOptions, LocalStore};
use frond_store::tiered::Slots;
use frond_store::{
    Chunk, ChunkHash, ChunkKind, ChunkStore, Copies, Damage, GarbageCollection, GcReport, Layered,
    Lifetime, Maintenance, ScrubReport, StoreError, StoreLayer, UnreadableRange,
};

use crate::remote::{BackupInfo, PlainRemote, Remote};
use crate::salvage::SalvageReport;

/// The root of a data directory's state.
const ROOT_NAME: &str = "engine";
/// Chunks that are put together.
const BATCH_BYTES: usize = 1 << 20;
/// Bytes that are copied at once.
const COPY_BYTES: u64 = 1 << 20;
const LOG_PREFIX: &str = "log-";
/// The number of records that are left out one by one, each with an opening of its own; behind the
/// next one the log is cut.
const LEFT_OUT_MAX: usize = 100;

/// A store whose readers pass over what can't be read, and whose losses are noted.
struct Forgiving {
    store: Arc<LocalStore>,
    /// The remote from which chunks are read that aren't in the store.
    place: Option<PlainRemote>,
    losses: Mutex<Vec<UnreadableRange>>,
}

impl Forgiving {
    fn new(store: Arc<LocalStore>, place: Option<PlainRemote>) -> Arc<Layered<Forgiving>> {
        Arc::new(Layered(Forgiving { store, place, losses: Mutex::default() }))
    }
}

impl StoreLayer for Forgiving {
    fn inner(&self) -> &dyn ChunkStore {
        &*self.store
    }

    fn own(&self, hash: ChunkHash) -> Option<Chunk> {
        let place = self.place.as_ref()?;
        if self.store.has_many(&[hash]).ok()? == [true] {
            return None;
        }
        // A chunk that isn't there is missing in the store, too.
        place.get_many(&[hash]).ok()?.pop()
    }

    fn has(&self, hashes: &[ChunkHash]) -> Result<Vec<bool>, StoreError> {
        let mut there = self.store.has_many(hashes)?;
        for (there, hash) in there.iter_mut().zip(hashes) {
            *there = *there || self.own(*hash).is_some();
        }
        Ok(there)
    }

    fn upkeep(&self) -> &dyn Maintenance {
        self
    }

    fn note_lost(&self, lost: UnreadableRange) -> bool {
        self.losses.lock().expect("no panic while the lock is held").push(lost);
        true
    }
}

impl Maintenance for Forgiving {
    fn collect(&self, collection: &mut GarbageCollection<'_>) -> Result<GcReport, StoreError> {
        self.store.collect(collection)
    }

    fn damages(&self) -> Vec<Damage> {
        self.store.damages()
    }

    fn take_findings(&self) -> Vec<Damage> {
        self.store.take_findings()
    }

    fn scrub(
        &self,
        first: u64,
        throttle: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ScrubReport, StoreError> {
        self.store.scrub(first, throttle)
    }

    /// Returns none: of what is left nothing is kept.
    fn copies(&self) -> Option<&Copies> {
        None
    }

    fn is_tiered(&self) -> bool {
        self.store.is_tiered()
    }
}

/// The rest of a damaged directory.
pub(super) struct Source {
    pub frond: Frond,
    /// All commits in packs: what named some of them may be lost.
    pub commits: Vec<ChunkHash>,
    forgiving: Arc<Layered<Forgiving>>,
}

impl Source {
    /// Brings what can be read of the first machine's disk to that of the second, which is empty,
    /// and opens it; with what lies in `slots`, where the log does.
    ///
    /// # Errors
    /// `Damaged` with the first reason if no root can be opened; `Unavailable` if a disk doesn't
    /// answer.
    pub fn open(
        (from, left): (&Machine, &Machine),
        slots: Option<&Arc<Slots>>,
        report: &mut SalvageReport,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Source, Error> {
        let Brought { roots, commits, is_last_first } = bring(from, left, report, progress)?;
        copy_log(&*from.disk, &*left.disk, report)?;
        let mut reasons: Vec<String> = Vec::new();
        // Without any state, commits are left.
        let roots = roots.into_iter().map(Some).chain((!commits.is_empty()).then_some(None));
        for root in roots {
            if !reasons.is_empty() {
                // The attempt before may have cut it.
                remove_log(&*left.disk)?;
            }
            if !reasons.is_empty() && root.is_some() {
                copy_log(&*from.disk, &*left.disk, &mut SalvageReport::default())?;
            }
            let mut notes = Vec::new();
            match Source::open_at(left, root, slots, &mut notes) {
                Ok(source) => {
                    if let Some(slots) = slots {
                        let is_last = is_last_first && reasons.is_empty();
                        notes.extend(source.apply(slots, is_last)?);
                    }
                    if let Some(reason) = reasons.first() {
                        let what = match root {
                            Some(_) => "an older one is used",
                            None => "nor any other: what was committed is saved",
                        };
                        let what = format!("the directory's last state can't be opened, {what}");
                        report.notes.push(format!("{what}: {reason}"));
                    }
                    report.notes.append(&mut notes);
                    return Ok(Source { commits, ..source });
                }
                Err(error) => reasons.push(error.message),
            }
        }
        let reason = reasons.into_iter().next();
        Err(Error::damaged(reason.unwrap_or_else(|| "nothing of it can be read".to_owned())))
    }

    /// Opens the backup `backup` of `place`, from which only what is asked for is read; `left` is
    /// an empty disk for what an open directory writes.
    ///
    /// # Errors
    /// As `place`, and as opening the engine.
    pub fn open_backup(
        place: PlainRemote,
        backup: &BackupInfo,
        left: &Machine,
    ) -> Result<Source, Error> {
        let store = LocalStore::open(left, LocalOptions::default())?;
        let root = place.get_many(&[backup.root])?;
        store.put_many_for(Lifetime::Loaded, &root)?;
        store.swap_root(ROOT_NAME, None, Some(backup.root))?;
        shallow::list(&*store, &backup.absent.iter().copied().collect())?;
        let forgiving = Forgiving::new(store, Some(place));
        let engine = Engine::open_over(left, forgiving.clone(), EngineOptions::default())?;
        let frond = crate::open::over(left, engine, FrondOptions::default())?;
        Ok(Source { frond, forgiving, commits: Vec::new() })
    }

    /// Opens a damaged directory as it is, to be looked at. Its writes are kept in memory.
    ///
    /// # Errors
    /// `Damaged` if it can't be opened even so; `Unavailable` if a disk doesn't answer.
    pub fn look_at(machine: &Machine, report: &mut SalvageReport) -> Result<Source, Error> {
        let scratch = ScratchDisk::over(&machine.disk).map_err(|error| io(".", error))?;
        let machine = Machine { disk: Arc::new(scratch), ..machine.clone() };
        Source::open_unchanged(&machine, None, &mut report.notes)
    }

    /// Opens what is left, with `root` as its state; with an empty one where there is none.
    fn open_at(
        left: &Machine,
        root: Option<ChunkHash>,
        slots: Option<&Arc<Slots>>,
        notes: &mut Vec<String>,
    ) -> Result<Source, Error> {
        {
            let store = LocalStore::open(left, LocalOptions::default())?;
            let now = store.root(ROOT_NAME)?;
            store.swap_root(ROOT_NAME, now, root)?;
        }
        Source::open_unchanged(left, slots, notes)
    }

    fn open_unchanged(
        left: &Machine,
        slots: Option<&Arc<Slots>>,
        notes: &mut Vec<String>,
    ) -> Result<Source, Error> {
        let mut left_out = 0;
        loop {
            let store = LocalStore::open(left, LocalOptions::default())?;
            let forgiving = Forgiving::new(store, None);
            // What is folded in the background would be lost for good: nothing is, if nothing is
            // written.
            let (store, options) = (forgiving.clone() as _, EngineOptions::default());
            let engine = match slots {
                Some(slots) => {
                    let order = Arc::new(SlotOrder::new(Arc::clone(slots)));
                    Engine::open_over_in_set(left, store, options, order)
                }
                None => Engine::open_over(left, store, options),
            };
            match engine {
                Ok(engine) => {
                    let frond = crate::open::over(left, engine, FrondOptions::default())?;
                    return Ok(Source { frond, forgiving, commits: Vec::new() });
                }
                Err(error) => {
                    drop(forgiving);
                    if left_out < LEFT_OUT_MAX
                        && let Some(behind) = leave_out(&*left.disk, &error)?
                    {
                        left_out += 1;
                        let what =
                            "a record of the log can't be read and is lost; of those behind it";
                        notes.push(format!("{what} {behind} are whole: {error}"));
                        continue;
                    }
                    if !cut_log(&*left.disk, &error)? {
                        return Err(error.into());
                    }
                    let what = "what was written last is lost: a part of the log can't be read";
                    notes.push(format!("{what}: {error}"));
                }
            }
        }
    }

    /// Applies what lies in the log in a bucket, if what is open `is_last`: an older state lacks
    /// what came between. Returns a note about it.
    ///
    /// # Errors
    /// `Unavailable` if the bucket doesn't answer.
    fn apply(&self, slots: &Slots, is_last: bool) -> Result<Option<String>, Error> {
        let lost = "what was written last is lost";
        if !is_last {
            return Ok(Some(format!("{lost}: the log in the bucket begins behind a later state")));
        }
        match slots.replay(&mut |entry| self.frond.apply_entry(&entry).map(drop)) {
            Err(error) if error.kind == ErrorKind::Damaged => {
                Ok(Some(format!("{lost}: the log in the bucket can't be read: {}", error.message)))
            }
            applied => applied.map(|()| None),
        }
    }

    /// What was visible.
    pub fn reader(&self) -> Reader<'static> {
        Reader::now(self.frond.engine())
    }

    /// Returns where chunks lie.
    pub fn store(&self) -> Arc<dyn ChunkStore> {
        self.forgiving.clone()
    }

    /// Takes the ranges that could not be read since the last call.
    pub fn losses(&self) -> Vec<UnreadableRange> {
        std::mem::take(&mut *self.forgiving.losses.lock().expect("no panic under the lock"))
    }
}

/// Leaves out the record of the log that `error` names. Returns how many are whole behind it;
/// `None` where the log ends with it, or more than a record is damaged.
fn leave_out(left: &dyn Disk, error: &EngineError) -> Result<Option<u64>, Error> {
    match error {
        EngineError::Store(StoreError::Damaged { file, offset, .. })
            if file.starts_with(LOG_PREFIX) && *offset > 0 =>
        {
            match omit_record(left, file, *offset) {
                Err(StoreError::Damaged { .. } | StoreError::Version { .. }) => Ok(None),
                left_out => Ok(left_out?),
            }
        }
        _ => Ok(None),
    }
}

/// Takes from the log what is damaged and all behind it, as `error` says; its last segment where
/// that says nothing of the log. Returns whether there was anything.
fn cut_log(left: &dyn Disk, error: &EngineError) -> Result<bool, Error> {
    let mut names = left.list().map_err(|error| io(".", error))?;
    names.retain(|name| name.starts_with(LOG_PREFIX));
    names.sort();
    let (first, mut end) = match error {
        EngineError::Store(StoreError::Damaged { file, offset, .. })
            if file.starts_with(LOG_PREFIX) =>
        {
            (names.partition_point(|name| name < file), *offset)
        }
        _ => (names.len().saturating_sub(1), 0),
    };
    // A segment that doesn't get shorter by this would fail again.
    let first = first.min(names.len().saturating_sub(1));
    for name in names.iter().skip(first) {
        let file = left.open(name).map_err(|error| io(name, error))?;
        let bytes = file.bytes().map_err(|error| io(name, error))?;
        match std::mem::take(&mut end) {
            0 => left.remove(name),
            end if bytes <= end => left.remove(name),
            end => file.set_bytes(end),
        }
        .map_err(|error| io(name, error))?;
    }
    Ok(!names.is_empty())
}

fn io(name: &str, source: std::io::Error) -> Error {
    StoreError::Io { file: name.to_owned(), source }.into()
}

/// What was brought.
struct Brought {
    /// The states that the directory may have had, the likeliest first.
    roots: Vec<ChunkHash>,
    /// Whether the first of them is its last one.
    is_last_first: bool,
    commits: Vec<ChunkHash>,
}

/// Puts every chunk that is whole into a store on `left`.
fn bring(
    from: &Machine,
    left: &Machine,
    report: &mut SalvageReport,
    progress: &mut dyn FnMut(u64),
) -> Result<Brought, Error> {
    let store = LocalStore::open(left, LocalOptions::default())?;
    let (mut batch, mut bytes) = (Vec::new(), 0);
    let mut states: Vec<(u64, ChunkHash)> = Vec::new();
    let mut commits = Vec::new();
    let mut take = |chunk: Chunk| {
        if chunk.kind() == ChunkKind::Commit {
            commits.push(chunk.hash());
        }
        if chunk.kind() == ChunkKind::EngineState
            && let Some(horizon) = Image::horizon(&chunk)
        {
            states.push((horizon, chunk.hash()));
        }
        bytes += chunk.encoded().len();
        batch.push(chunk);
        if bytes < BATCH_BYTES {
            return Ok(());
        }
        bytes = 0;
        store.put_many_for(Lifetime::Loaded, &std::mem::take(&mut batch))
    };
    let rescued = rescue(from, &mut take, progress)?;
    store.put_many_for(Lifetime::Loaded, &batch)?;
    store.sync()?;
    report.chunks = rescued.examined.chunks;
    report.damages = rescued.examined.damages.iter().map(ToString::to_string).collect();
    let roots = rescued.roots.unwrap_or_default();
    for (name, chunk) in roots.iter().filter(|(name, _)| *name != ROOT_NAME) {
        if store.has_many(&[*chunk])? == [true] {
            store.swap_root(name, None, Some(*chunk))?;
        }
    }
    states.sort_unstable_by(|left, right| right.cmp(left));
    let first = first_state(roots.get(ROOT_NAME), &states, rescued.may_be_older, report);
    let is_first = first.is_some_and(|root| states.iter().any(|(_, state)| *state == root));
    if !is_first {
        report.notes.push("the directory's last state can't be read: an older one is used".into());
    }
    let others = states.iter().map(|(_, state)| *state).filter(|state| Some(*state) != first);
    commits.sort_unstable();
    commits.dedup();
    let is_last_first = is_first && roots.get(ROOT_NAME).copied() == first;
    let roots = first.filter(|_| is_first).into_iter().chain(others).collect();
    Ok(Brought { roots, is_last_first, commits })
}

/// The state to begin with: the one that the manifest names, or the newest of `states` where the
/// manifest may be an older copy of what was there.
fn first_state(
    root: Option<&ChunkHash>,
    states: &[(u64, ChunkHash)],
    may_be_older: bool,
    report: &mut SalvageReport,
) -> Option<ChunkHash> {
    let horizon = |root: &ChunkHash| states.iter().find(|(_, state)| state == root).map(|it| it.0);
    let newest = states.first().map(|(horizon, _)| *horizon);
    match root {
        Some(root) if may_be_older && horizon(root) < newest => {
            let what =
                "a copy of the manifest can't be read, the other is older than what is there";
            report.notes.push(what.to_owned());
            states.first().map(|(_, state)| *state)
        }
        root => root.copied(),
    }
}

/// Removes the segments of the log.
fn remove_log(left: &dyn Disk) -> Result<(), Error> {
    let names = left.list().map_err(|error| io(".", error))?;
    for name in names.iter().filter(|name| name.starts_with(LOG_PREFIX)) {
        left.remove(name).map_err(|error| io(name, error))?;
    }
    Ok(())
}

/// Copies the segments of the log, as far as they can be read.
fn copy_log(from: &dyn Disk, left: &dyn Disk, report: &mut SalvageReport) -> Result<(), Error> {
    let names = from.list().map_err(|error| io(".", error))?;
    for name in names.iter().filter(|name| name.starts_with(LOG_PREFIX)) {
        let source = from.open(name).map_err(|error| io(name, error))?;
        let target = left.create(name).map_err(|error| io(name, error))?;
        let total = source.bytes().map_err(|error| io(name, error))?;
        let mut offset = 0;
        while offset < total {
            let part = COPY_BYTES.min(total - offset);
            let mut buffer = vec![0; usize::try_from(part).unwrap_or(0)];
            if let Err(error) = source.read_exact_at(offset, &mut buffer) {
                report.notes.push(format!("{name}: {error}"));
                break;
            }
            target.write_all_at(offset, &Bytes::from(buffer)).map_err(|error| io(name, error))?;
            offset += part;
        }
    }
    Ok(())
}
