//! Marking: which chunks can be reached.
//!
//! 1. References are followed from the roots, many chunks at a time, past the cache's insertion, so
//!    that readers keep what they have there. A chunk that refers to nothing is marked and not read.
//! 2. *Current* is what can be reached without passing a commit: the working state. Commits wait
//!    until that is done; what only they reach is *history*.
//! 3. Marks are bits at a chunk's slot in its pack: exact, and a bit or two a chunk.
//!
//! From the roots, everything must be there: a missing or damaged chunk ends the collection before
//! anything is removed. What a session touched may be garbage that was being looked at, whose parts
//! are gone already: there, what is missing is passed over.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use super::LocalStore;
use crate::chunk::{ChunkHash, ChunkKind};
use crate::error::StoreError;
use crate::index::{Index, Location, NameHasherBuilder};
use crate::pack::PackNumber;
use crate::pack::reader::Naming;

/// Chunks that are read together. Bounds memory: each may push as many as it refers to.
const BATCH_COUNT: usize = 1024;

/// A bit for each chunk of each pack.
#[derive(Default)]
struct Bits(BTreeMap<PackNumber, Vec<u64>>);

impl Bits {
    /// Sets the bit. Returns whether it was clear.
    fn set(&mut self, at: &Location) -> bool {
        let (word, bit) = place(at);
        let words = self.0.entry(at.pack).or_default();
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        let was_clear = words[word] & bit == 0;
        words[word] |= bit;
        was_clear
    }

    fn get(&self, at: &Location) -> bool {
        let (word, bit) = place(at);
        let words = self.0.get(&at.pack);
        words.and_then(|words| words.get(word)).is_some_and(|found| found & bit != 0)
    }

    fn count(&self) -> u64 {
        self.0.values().flatten().map(|word| u64::from(word.count_ones())).sum()
    }
}

fn place(at: &Location) -> (usize, u64) {
    let ordinal = at.slot.ordinal();
    ((ordinal / u64::BITS) as usize, 1 << (ordinal % u64::BITS))
}

/// What is done with a reference to a chunk that isn't there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absent {
    Refused,
    PassedOver,
    Noted,
}

/// Why a collection ends early.
pub(super) enum Halt {
    /// Whoever paces it said so.
    Stopped,
    Failed(StoreError),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Halt {
        Halt::Failed(error)
    }
}

/// Tells whoever paces the collection of `bytes`.
pub(super) fn pace(tell: &mut dyn FnMut(u64) -> ControlFlow<()>, bytes: u64) -> Result<(), Halt> {
    match tell(bytes) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Halt::Stopped),
    }
}

/// What is reachable, as far as it has been followed.
pub(super) struct Marks<'a> {
    store: &'a LocalStore,
    live: Bits,
    current: Bits,
    /// Marked, refer to others, and were not read yet.
    stack: Vec<ChunkHash>,
    /// Commits that wait until the working state is marked.
    commits: Vec<ChunkHash>,
    /// Of which absence was to be noted.
    missing: Vec<ChunkHash>,
}

/// See [`LocalStore::missing_parts`].
pub(super) fn missing_parts(store: &LocalStore) -> Result<Vec<ChunkHash>, StoreError> {
    let mut marks = Marks::new(store);
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
    pub(super) fn new(store: &'a LocalStore) -> Marks<'a> {
        let (live, current) = (Bits::default(), Bits::default());
        let (stack, commits, missing) = (Vec::new(), Vec::new(), Vec::new());
        Marks { store, live, current, stack, commits, missing }
    }

    pub(super) fn is_live(&self, at: &Location) -> bool {
        self.live.get(at)
    }

    /// Whether the chunk belongs to the working state, not to history alone.
    pub(super) fn is_current(&self, at: &Location) -> bool {
        self.current.get(at)
    }

    pub(super) fn count(&self) -> u64 {
        self.live.count()
    }

    /// Marks what `roots` reach.
    pub(super) fn mark_roots(
        &mut self,
        roots: &[ChunkHash],
        tell: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), Halt> {
        self.push(roots, Absent::Refused, true)?;
        self.follow(Absent::Refused, true, tell)?;
        self.stack = std::mem::take(&mut self.commits);
        self.follow(Absent::Refused, false, tell)
    }

    /// Marks what `touched` reach, as far as it is there.
    pub(super) fn mark_touched(
        &mut self,
        touched: &[ChunkHash],
        tell: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), Halt> {
        self.push(touched, Absent::PassedOver, false)?;
        self.follow(Absent::PassedOver, false, tell)
    }

    /// Marks those of `touched` that nothing needs to be read for, with the index locked. Returns the
    /// others.
    pub(super) fn mark_at_once(
        &mut self,
        touched: Vec<ChunkHash>,
        index: &Index,
    ) -> Vec<ChunkHash> {
        let mut others = touched;
        others.retain(|hash| match index.chunks.get(hash) {
            Some(at) if !at.slot.refers() => {
                self.live.set(at);
                false
            }
            Some(at) => !self.live.get(at),
            None => false,
        });
        others
    }

    fn push(&mut self, hashes: &[ChunkHash], absent: Absent, current: bool) -> Result<(), Halt> {
        let store = self.store;
        store.index(|index| {
            for hash in hashes {
                let Some(at) = index.chunks.get(hash) else {
                    match absent {
                        Absent::Refused => return Err(StoreError::Missing(*hash).into()),
                        Absent::PassedOver => {}
                        Absent::Noted => self.missing.push(*hash),
                    }
                    continue;
                };
                if current {
                    self.current.set(at);
                }
                if self.live.set(at) && at.slot.refers() {
                    self.stack.push(*hash);
                }
            }
            Ok(())
        })
    }

    fn follow(
        &mut self,
        absent: Absent,
        current: bool,
        tell: &mut dyn FnMut(u64) -> ControlFlow<()>,
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
            // A shallow clone lacks the parents of its oldest commits. One that is lost is missed all
            // the same: whoever keeps commits refers to each of them, not only to the last.
            let absent = if absent == Absent::Refused { Absent::PassedOver } else { absent };
            self.push(&parents, absent, current)?;
            pace(tell, bytes)?;
        }
        Ok(())
    }
}
