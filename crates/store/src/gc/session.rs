//! Sessions protect chunks that nothing refers to yet from being collected.
//!
//! A writer that puts chunks and later makes a root, a memtable or another lasting thing refer to
//! them holds a [`Session`] from before the first put until then. A collection takes for reachable:
//!
//! 1. every chunk that was written since the oldest open session began. Packs are append-only, so
//!    that is one position a kind of pack (see [`WritePositions`]), however much was written;
//! 2. every chunk that `has_many` or `put_many` found present since then, or since the collection
//!    began: of these there are [`LiveSet`];
//! 3. whatever these refer to.
//!
//! Chunks that a session's holder knew before the session began, from a snapshot for instance, must
//! be kept alive by other means.
//!
//! Notes are of two ages: when there are many young ones, they are added to the old ones. Those of
//! one age are forgotten together, when every session that is open began after the last of them. A
//! chunk that was written after the *youngest* open session began needs no note: 1 protects it from
//! all of them. When a chunk moves to another pack, its note stays behind, and 1 protects it, too.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::chunk::ChunkHash;
pub(crate) use crate::gc::live_set::LiveSet;
use crate::location::{Location, PackedChunk};
use crate::location::{PURPOSE_COUNT, PackNumber, Purpose};

/// Notes are young until so many were made.
const YOUNG_COUNT_MAX: usize = 1024;

/// Protects what is put, or found present, until it is dropped; see [`crate::gc::session`].
#[must_use = "it protects only as long as it lives"]
pub struct Session {
    sessions: Arc<Sessions>,
    number: u64,
}

/// The moment at which a session began, among those of its store.
#[derive(Clone)]
pub struct SessionMoment {
    sessions: Arc<Sessions>,
    number: u64,
}

impl Session {
    /// When it began.
    pub fn moment(&self) -> SessionMoment {
        SessionMoment { sessions: Arc::clone(&self.sessions), number: self.number }
    }
}

impl SessionMoment {
    /// Returns how many sessions are open that began before: what they protect may be older than
    /// this moment.
    pub fn older_count(&self) -> usize {
        self.sessions.state().open.range(..self.number).count()
    }
}

impl fmt::Debug for SessionMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionMoment").field(&self.number).finish()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut state = self.sessions.state();
        state.open.remove(&self.number);
        state.trim();
    }
}

/// The end of each kind of pack: what lies before it was written before.
///
/// *Thread safety*: written under the writer's lock, read by anybody.
#[derive(Default)]
pub(crate) struct WritePositions([AtomicU64; PURPOSE_COUNT]);

/// A moment in the life of the packs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackPositions([u64; PURPOSE_COUNT]);

impl WritePositions {
    /// The next chunk for `purpose` will lie at `offset` in `pack`, or further on, or in a later
    /// pack.
    pub(crate) fn set(&self, purpose: Purpose, pack: PackNumber, offset: u32) {
        self.0[purpose as usize].store(position(pack, offset), Ordering::SeqCst);
    }

    fn now(&self) -> PackPositions {
        PackPositions(std::array::from_fn(|purpose| self.0[purpose].load(Ordering::SeqCst)))
    }
}

impl PackPositions {
    /// Whether the chunk at `location`, in a pack for `purpose`, was written after this moment.
    pub(crate) fn is_before(&self, purpose: Purpose, location: &Location) -> bool {
        self.0[purpose as usize] <= position(location.pack, location.place.offset)
    }

    /// Whether the pack may hold chunks written after this moment.
    pub(crate) fn may_be_before(&self, purpose: Purpose, pack: PackNumber) -> bool {
        self.0[purpose as usize] >> u32::BITS <= u64::from(pack.0)
    }
}

fn position(pack: PackNumber, offset: u32) -> u64 {
    u64::from(pack.0) << u32::BITS | u64::from(offset)
}

/// The open sessions of a store.
///
/// *Locks*: its own is taken last, and held for a few map operations.
#[derive(Default)]
pub(crate) struct Sessions {
    state: Mutex<SessionState>,
    pub(crate) positions: WritePositions,
}

#[derive(Default)]
struct SessionState {
    next_number: u64,
    open: BTreeMap<u64, PackPositions>,
    young: Aged,
    old: Aged,
    /// The chunks that were touched since a running collection last asked.
    fresh: Option<LiveSet>,
}

/// Notes, and the session that would have begun next when the last of them was made.
#[derive(Default)]
struct Aged {
    live_set: LiveSet,
    count: usize,
    number: u64,
}

impl Aged {
    /// Whether they protect from nothing, since `oldest` is the oldest open session.
    fn is_over(&self, oldest: u64) -> bool {
        self.number <= oldest
    }
}

impl SessionState {
    /// Forgets what only sessions that have ended touched.
    fn trim(&mut self) {
        let Some(oldest) = self.open.keys().next().copied() else {
            (self.young, self.old) = (Aged::default(), Aged::default());
            return;
        };
        for aged in [&mut self.young, &mut self.old].into_iter().filter(|aged| aged.is_over(oldest))
        {
            *aged = Aged::default();
        }
        if YOUNG_COUNT_MAX < self.young.count {
            let young = std::mem::take(&mut self.young);
            self.old.live_set.add_all(&young.live_set);
            self.old.number = young.number;
        }
    }
}

impl Sessions {
    pub(crate) fn begin(self: &Arc<Self>) -> Session {
        let mut state = self.state();
        let number = state.next_number;
        state.next_number += 1;
        state.open.insert(number, self.positions.now());
        Session { sessions: Arc::clone(self), number }
    }

    /// Notes that `found` were reported to a caller as there, each in a pack of some purpose. The
    /// caller holds the index's lock, so that a collection, which removes from the index under it,
    /// can't miss this.
    pub(crate) fn touch<'a>(
        &self,
        found: impl IntoIterator<Item = (ChunkHash, &'a Location, Purpose)>,
    ) {
        let mut state = self.state();
        let SessionState { next_number, open, young, fresh, .. } = &mut *state;
        let youngest = open.values().next_back();
        if youngest.is_none() && fresh.is_none() {
            return;
        }
        for (hash, at, purpose) in found {
            if youngest.is_some_and(|moment| !moment.is_before(purpose, at)) {
                young.live_set.add(hash, at);
                young.count += 1;
                young.number = *next_number;
            }
            if let Some(fresh) = fresh {
                fresh.add(hash, at);
            }
        }
        state.trim();
    }

    /// As `touch`, in a store without packs and without collections in the background.
    pub(crate) fn touch_names(&self, found: impl IntoIterator<Item = ChunkHash>) {
        let mut state = self.state();
        if state.open.is_empty() {
            return;
        }
        let names = &mut state.young.live_set.names;
        let before = names.len();
        names.extend(found);
        state.young.count += state.young.live_set.names.len() - before;
        state.young.number = state.next_number;
        state.trim();
    }

    /// Notes that `pack` was sealed, with an index of `chunks`. The caller holds the index's lock.
    pub(crate) fn seal(&self, pack: PackNumber, chunks: &[PackedChunk]) {
        let mut state = self.state();
        let SessionState { young, old, fresh, .. } = &mut *state;
        let all = [&mut young.live_set, &mut old.live_set].into_iter().chain(fresh.as_mut());
        all.for_each(|live_set| live_set.seal(pack, chunks));
    }

    /// Has `take_fresh` return what is touched from now on.
    pub(crate) fn begin_collection(&self) {
        self.state().fresh = Some(LiveSet::default());
    }

    pub(crate) fn end_collection(&self) {
        self.state().fresh = None;
    }

    /// Returns when the oldest open session began, and all that was touched since; perhaps more.
    pub(crate) fn protected(&self) -> (Option<PackPositions>, LiveSet) {
        let state = self.state();
        let Some((oldest, moment)) = state.open.first_key_value() else {
            return (None, LiveSet::default());
        };
        let mut live_set = LiveSet::default();
        for aged in [&state.young, &state.old].into_iter().filter(|aged| !aged.is_over(*oldest)) {
            live_set.add_all(&aged.live_set);
        }
        (Some(*moment), live_set)
    }

    /// Takes the chunks that were touched since the last call.
    pub(crate) fn take_fresh(&self) -> LiveSet {
        self.state().fresh.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().expect("no panic while the lock is held")
    }
}

#[cfg(test)]
mod tests;
