//! The mark phase of a garbage collection: which chunks can be reached.
//!
//! 1. References are followed from the roots, many chunks at a time, past the cache's insertion, so
//!    that readers keep what they have there. A chunk that refers to nothing is marked and not
//!    read.
//! 2. *Current* is what can be reached without passing a commit: the working state. Commits wait
//!    until that is done; what only they reach is *history*.
//! 3. Marks are bits at a chunk's position in its pack's index: exact, and a bit or two a chunk.
//!    Chunks of packs that were open when marking began are few, and marked by name.
//!
//! From the roots, everything must be there: a missing chunk ends the collection before anything is
//! removed, and a damaged one does if it refers to others, since what is below it isn't known. A
//! damaged one that refers to nothing is noted as needed. A chunk that a session touched may be
//! garbage that was being looked at, whose parts are gone already: there, missing chunks are passed
//! over.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use super::LocalStore;
use super::find::PackLocation;
use crate::chunk::{ChunkHash, ChunkKind};
use crate::damage::FrameDamage;
use crate::error::StoreError;
use crate::gc::bitmap::PackBitmap;
use crate::gc::session::LiveSet;
use crate::hash::NameHasherBuilder;
use crate::index::Index;
use crate::location::PackNumber;
use crate::location::{FrameOffset, Location};
use crate::pack::Pack;
use crate::pack::reader::{Naming, read_index};

/// Chunks that are read together. Bounds memory: each may push as many as it refers to.
const BATCH_COUNT: usize = 256;
/// Chunks that are searched together: what is known of each takes some hundred bytes meanwhile, and
/// with fewer a page of an index is read more often.
const SEARCHED_COUNT: usize = 8 << 10;

/// The treatment of a reference to a missing chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absent {
    Refused,
    PassedOver,
    Noted,
}

/// The reason why a collection ends early.
pub(super) enum Halt {
    /// The caller that paces it said so.
    Stopped,
    Failed(StoreError),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Halt {
        Halt::Failed(error)
    }
}

/// A name for the type of `throttle`, so that it is written once.
pub(super) type ThrottleCheck<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

/// Reports `bytes` to the caller that paces the collection.
pub(super) fn throttle(
    limiter: &mut dyn FnMut(u64) -> ControlFlow<()>,
    bytes: u64,
) -> Result<(), Halt> {
    match limiter(bytes) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Halt::Stopped),
    }
}

/// The marked chunks.
pub(super) struct Marks<'a> {
    store: &'a LocalStore,
    /// The packs that were sealed when marking began, and their lengths. Of their chunks there are
    /// bits.
    sealed: BTreeMap<PackNumber, (Arc<Pack>, u64)>,
    live: PackBitmap,
    current: PackBitmap,
    /// The marked chunks of other packs.
    young: HashMap<ChunkHash, Young, NameHasherBuilder>,
    /// Marked, refer to others, and were not read yet.
    stack: Vec<ChunkHash>,
    /// Commits that wait until the working state is marked.
    commits: Vec<ChunkHash>,
    /// The absent chunks that were to be noted.
    missing: Vec<ChunkHash>,
    /// Reachable, and lost by damage until they are put again.
    lost: HashSet<ChunkHash, NameHasherBuilder>,
}

/// A marked chunk that lay in an open pack.
#[derive(Clone, Copy)]
struct Young {
    pack: PackNumber,
    place: FrameOffset,
}

/// See [`LocalStore::missing_parts`].
pub(super) fn missing_parts(store: &LocalStore) -> Result<Vec<ChunkHash>, StoreError> {
    let mut marks = Marks::new(store, &store.sealed_packs());
    let roots: Vec<ChunkHash> =
        store.roots.read().expect("no panic while the lock is held").values().copied().collect();
    let followed = marks
        .push(&roots, Absent::Noted, false)
        .and_then(|()| marks.follow(Absent::Noted, false, &mut |_| ControlFlow::Continue(())));
    match followed {
        Err(Halt::Failed(error)) => Err(error),
        Err(Halt::Stopped) | Ok(()) => Ok(marks.missing),
    }
}

impl<'a> Marks<'a> {
    pub(super) fn new(store: &'a LocalStore, sealed: &[(Arc<Pack>, u64)]) -> Marks<'a> {
        let by_number = |(pack, bytes): &(Arc<Pack>, u64)| (pack.number, (pack.clone(), *bytes));
        Marks {
            store,
            sealed: sealed.iter().map(by_number).collect(),
            live: PackBitmap::default(),
            current: PackBitmap::default(),
            young: HashMap::default(),
            stack: Vec::new(),
            commits: Vec::new(),
            missing: Vec::new(),
            lost: HashSet::default(),
        }
    }

    /// Whether the chunk at `position` in the index of `pack`, sealed when marking began, is
    /// marked.
    pub(super) fn is_live(&self, pack: PackNumber, position: u32) -> bool {
        self.live.get(pack, position)
    }

    /// Whether it belongs to the working state, not to history alone.
    pub(super) fn is_current(&self, pack: PackNumber, position: u32) -> bool {
        self.current.get(pack, position)
    }

    /// Whether a chunk that was lost by `damage` is needed.
    pub(super) fn needs(&self, hash: ChunkHash, damage: &FrameDamage) -> bool {
        let at = damage.at;
        self.lost.contains(&hash)
            || at.position.is_some_and(|position| self.is_live(at.pack, position))
    }

    pub(super) fn count(&self) -> u64 {
        self.live.count() + self.young.len() as u64
    }

    /// The bytes of frames that hold marked chunks.
    pub(super) fn bytes_live(&self) -> Result<u64, StoreError> {
        let sum = |places: HashSet<FrameOffset>| -> u64 {
            places.iter().map(|place| u64::from(place.bytes)).sum()
        };
        let mut bytes = 0;
        for (number, (pack, pack_bytes)) in &self.sealed {
            let entries = read_index(pack, *pack_bytes)?;
            let live = (0..).zip(&entries).filter(|(position, _)| self.is_live(*number, *position));
            bytes += sum(live.map(|(_, entry)| entry.place).collect());
        }
        let mut young: BTreeMap<PackNumber, HashSet<FrameOffset>> = BTreeMap::new();
        for Young { pack, place } in self.young.values() {
            young.entry(*pack).or_default().insert(*place);
        }
        Ok(bytes + young.into_values().map(sum).sum::<u64>())
    }

    /// Marks the chunk. Returns whether it wasn't.
    fn set(&mut self, hash: ChunkHash, at: &Location, current: bool) -> bool {
        match at.position.filter(|_| self.sealed.contains_key(&at.pack)) {
            Some(position) => {
                if current {
                    self.current.set(at.pack, position);
                }
                self.live.set(at.pack, position)
            }
            None => self.young.insert(hash, Young { pack: at.pack, place: at.place }).is_none(),
        }
    }

    /// Marks what `roots` reach.
    pub(super) fn mark_roots(
        &mut self,
        roots: &[ChunkHash],
        limiter: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), Halt> {
        self.push(roots, Absent::Refused, true)?;
        self.follow(Absent::Refused, true, limiter)?;
        self.stack = std::mem::take(&mut self.commits);
        self.follow(Absent::Refused, false, limiter)
    }

    /// Marks what `touched` reach, as far as it is there.
    pub(super) fn mark_touched(
        &mut self,
        touched: &LiveSet,
        limiter: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), Halt> {
        let names: Vec<ChunkHash> = touched.names.iter().copied().collect();
        self.mark_names(&names, limiter)?;
        let known: Vec<(Arc<Pack>, u64)> = self.store.sealed_packs();
        for number in touched.bits.packs() {
            // Chunks of a pack that is gone were moved after the session began: they are young.
            let Some((pack, bytes)) = known.iter().find(|(pack, _)| pack.number == number) else {
                continue;
            };
            let entries = match read_index(pack, *bytes) {
                // Which of them were touched isn't known: all are taken for touched.
                Err(StoreError::Damaged { .. }) => {
                    let all: Vec<ChunkHash> = pack.rescued()?.iter().map(|it| it.hash).collect();
                    self.mark_names(&all, limiter)?;
                    continue;
                }
                entries => entries?,
            };
            let noted = (0..).zip(&entries).filter(|(at, _)| touched.bits.get(number, *at));
            let names: Vec<ChunkHash> = noted.map(|(_, entry)| entry.hash).collect();
            self.mark_names(&names, limiter)?;
        }
        Ok(())
    }

    /// As `mark_touched`, for chunks by name.
    pub(super) fn mark_names(
        &mut self,
        names: &[ChunkHash],
        limiter: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), Halt> {
        self.push(names, Absent::PassedOver, false)?;
        self.follow(Absent::PassedOver, false, limiter)
    }

    /// Marks those of `touched` that nothing needs to be read for, with the index locked. Returns
    /// the others.
    pub(super) fn mark_at_once(&mut self, touched: LiveSet, index: &Index) -> LiveSet {
        let mut others = touched;
        others.bits.clear_all(&self.live);
        others.names.retain(|hash| match index.open_place(*hash) {
            Some(at) if !at.refers => {
                self.set(*hash, at, false);
                false
            }
            _ => !self.young.contains_key(hash),
        });
        others
    }

    fn push(&mut self, hashes: &[ChunkHash], absent: Absent, current: bool) -> Result<(), Halt> {
        hashes.chunks(SEARCHED_COUNT).try_for_each(|some| self.push_some(some, absent, current))
    }

    fn push_some(
        &mut self,
        hashes: &[ChunkHash],
        absent: Absent,
        current: bool,
    ) -> Result<(), Halt> {
        let found: Vec<Option<PackLocation>> = self.store.find_many(hashes)?;
        for (hash, found) in hashes.iter().zip(found) {
            let Some((_, at)) = found else {
                let damage = self.store.index(|index| index.damage(*hash).cloned());
                if damage.is_some() {
                    self.lost.insert(*hash);
                }
                if damage.is_some_and(|damage| !damage.at.refers) {
                    continue;
                }
                match absent {
                    Absent::Refused => return Err(self.store.absent(*hash).into()),
                    Absent::PassedOver => {
                        // Its references are needed, and aren't known.
                        if let Some(error) = self.store.damaged_index_of(*hash) {
                            return Err(error.into());
                        }
                    }
                    Absent::Noted => self.missing.push(*hash),
                }
                continue;
            };
            if self.set(*hash, &at, current) && at.refers {
                self.stack.push(*hash);
            }
        }
        Ok(())
    }

    fn follow(
        &mut self,
        absent: Absent,
        current: bool,
        limiter: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), Halt> {
        while !self.stack.is_empty() {
            let batch = self.stack.split_off(self.stack.len().saturating_sub(BATCH_COUNT));
            let mut wanted: HashSet<ChunkHash, NameHasherBuilder> = batch.iter().copied().collect();
            let (mut bytes, mut found, mut commits) = (0, Vec::new(), Vec::new());
            let mut parents = Vec::new();
            self.store.fetch_many(&batch, Naming::ByChecksum, &mut |chunk| {
                if !wanted.remove(&chunk.hash()) {
                    return;
                }
                bytes += chunk.encoded().len() as u64;
                if current && chunk.kind() == ChunkKind::Commit {
                    commits.push(chunk.hash());
                } else if chunk.kind() == ChunkKind::Commit {
                    let mut references = chunk.references();
                    found.extend(references.next());
                    parents.extend(references);
                } else {
                    found.extend(chunk.references());
                }
            })?;
            self.commits.extend(commits);
            self.push(&found, absent, current)?;
            // A shallow clone lacks the parents of its oldest commits. One that is lost is missed
            // all the same: a database refers to each of its commits, not only to the last.
            let absent = if absent == Absent::Refused { Absent::PassedOver } else { absent };
            self.push(&parents, absent, current)?;
            throttle(limiter, bytes)?;
        }
        Ok(())
    }
}

impl LocalStore {
    /// Follows references from the named roots, and returns chunks that should be there and aren't.
    /// Garbage is not looked at: parts of it may be gone.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if a chunk on the way can't be read; [`StoreError::Io`].
    pub fn missing_parts(&self) -> Result<Vec<ChunkHash>, StoreError> {
        missing_parts(self)
    }
}
