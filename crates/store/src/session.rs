//! Sessions: what protects chunks that nothing refers to yet from being collected.
//!
//! Whoever puts chunks and later makes a root, a memtable or another lasting thing refer to them
//! holds a [`Session`] from before the first put until then. A collection takes for reachable:
//!
//! 1. every chunk that was written since the oldest open session began. Packs are append-only, so
//!    that is one position a kind of pack (see [`Births`]), however much was written;
//! 2. every chunk that `has_many` or `put_many` found present since then, or since the collection
//!    began: these are noted one by one ([`SessionState::touched`]);
//! 3. whatever these refer to.
//!
//! What a session's holder learnt before the session began, from a snapshot for instance, must be
//! kept alive by other means. Notes are forgotten when the oldest session has ended.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::chunk::ChunkHash;
use crate::index::{Location, NameHasherBuilder};
use crate::pack::{PURPOSE_COUNT, PackNumber, Purpose};

/// So many notes are kept before old ones are looked for.
const TOUCHED_COUNT_MIN: usize = 1024;

/// Protects what is put, or found present, until it is dropped; see [`crate::session`].
#[must_use = "it protects only as long as it lives"]
pub struct Session {
    sessions: Arc<Sessions>,
    number: u64,
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut state = self.sessions.state();
        state.open.remove(&self.number);
        state.trim();
    }
}

/// Where the next chunk of each kind of pack will lie: what lies before was written before.
///
/// *Thread safety*: written under the writer's lock, read by anybody.
#[derive(Default)]
pub(crate) struct Births([AtomicU64; PURPOSE_COUNT]);

/// A moment in the life of the packs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment([u64; PURPOSE_COUNT]);

impl Births {
    /// The next chunk for `purpose` will have `ordinal` in `pack`, or lie in a later pack.
    pub(crate) fn set(&self, purpose: Purpose, pack: PackNumber, ordinal: u32) {
        self.0[purpose as usize].store(position(pack, ordinal), Ordering::SeqCst);
    }

    fn now(&self) -> Moment {
        Moment(std::array::from_fn(|purpose| self.0[purpose].load(Ordering::SeqCst)))
    }
}

impl Moment {
    /// Whether the chunk at `location`, in a pack for `purpose`, was written after this moment.
    pub(crate) fn is_before(&self, purpose: Purpose, location: &Location) -> bool {
        self.0[purpose as usize] <= position(location.pack, location.slot.ordinal())
    }

    /// Whether the pack may hold chunks written after this moment.
    pub(crate) fn may_be_before(&self, purpose: Purpose, pack: PackNumber) -> bool {
        self.0[purpose as usize] >> u32::BITS <= u64::from(pack.0)
    }
}

fn position(pack: PackNumber, ordinal: u32) -> u64 {
    u64::from(pack.0) << u32::BITS | u64::from(ordinal)
}

/// The open sessions of a store.
///
/// *Locks*: its own is taken last, and held for a few map operations.
#[derive(Default)]
pub(crate) struct Sessions {
    state: Mutex<SessionState>,
    pub(crate) births: Births,
}

#[derive(Default)]
struct SessionState {
    next_number: u64,
    open: BTreeMap<u64, Moment>,
    /// Chunks found present, and the session that would have begun next when that was.
    touched: HashMap<ChunkHash, u64, NameHasherBuilder>,
    touched_count_max: usize,
    /// While a collection runs: what was touched since it last asked.
    fresh: Option<Vec<ChunkHash>>,
}

impl SessionState {
    /// Forgets what only sessions that have ended touched.
    fn trim(&mut self) {
        let Some(oldest) = self.open.keys().next().copied() else {
            self.touched.clear();
            return;
        };
        if self.touched.len() > self.touched_count_max.max(TOUCHED_COUNT_MIN) {
            self.touched.retain(|_, number| oldest < *number);
            self.touched_count_max = self.touched.len() * 2;
        }
    }
}

impl Sessions {
    pub(crate) fn begin(self: &Arc<Self>) -> Session {
        let mut state = self.state();
        let number = state.next_number;
        state.next_number += 1;
        state.open.insert(number, self.births.now());
        Session { sessions: Arc::clone(self), number }
    }

    /// Notes that somebody was told that `hashes` are there. The caller holds the index's lock, so
    /// that a collection, which removes from the index under it, can't miss this.
    pub(crate) fn touch(&self, hashes: impl IntoIterator<Item = ChunkHash>) {
        let mut state = self.state();
        if state.open.is_empty() && state.fresh.is_none() {
            return;
        }
        let number = state.next_number;
        for hash in hashes {
            if !state.open.is_empty() {
                state.touched.insert(hash, number);
            }
            if let Some(fresh) = &mut state.fresh {
                fresh.push(hash);
            }
        }
        state.trim();
    }

    /// From now on, `take_fresh` tells what is touched.
    pub(crate) fn begin_collection(&self) {
        self.state().fresh = Some(Vec::new());
    }

    pub(crate) fn end_collection(&self) {
        self.state().fresh = None;
    }

    /// When the oldest open session began, and all that was touched since.
    pub(crate) fn protected(&self) -> (Option<Moment>, Vec<ChunkHash>) {
        let state = self.state();
        let Some((oldest, moment)) = state.open.first_key_value() else {
            return (None, Vec::new());
        };
        let touched = state.touched.iter().filter(|(_, number)| oldest < *number);
        (Some(*moment), touched.map(|(hash, _)| *hash).collect())
    }

    /// What was touched since the last call.
    pub(crate) fn take_fresh(&self) -> Vec<ChunkHash> {
        self.state().fresh.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().expect("no panic while the lock is held")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(byte: u8) -> ChunkHash {
        ChunkHash([byte; 32])
    }

    fn touched(sessions: &Sessions) -> Vec<ChunkHash> {
        let mut touched = sessions.protected().1;
        touched.sort_unstable();
        touched
    }

    #[test]
    fn notes_last_as_long_as_the_oldest_session() {
        let sessions = Arc::new(Sessions::default());
        sessions.touch([hash(1)]);
        assert_eq!(touched(&sessions), []);
        let first = sessions.begin();
        sessions.touch([hash(2)]);
        let second = sessions.begin();
        sessions.touch([hash(3)]);
        drop(first);
        assert!(touched(&sessions).contains(&hash(3)));
        drop(second);
        assert_eq!(touched(&sessions), []);
        assert!(sessions.protected().0.is_none());
    }

    #[test]
    fn many_notes_of_ended_sessions_are_forgotten_while_one_is_open() {
        let sessions = Arc::new(Sessions::default());
        for round in 0..10_000u32 {
            let session = sessions.begin();
            let mut name = [0; 32];
            name[..4].copy_from_slice(&round.to_le_bytes());
            sessions.touch([ChunkHash(name)]);
            let next = sessions.begin();
            drop(session);
            sessions.touch([hash(255)]);
            drop(next);
        }
        assert!(touched(&sessions).len() <= 2 * TOUCHED_COUNT_MIN);
    }

    #[test]
    fn a_collection_hears_of_every_touch_once() {
        let sessions = Arc::new(Sessions::default());
        sessions.begin_collection();
        sessions.touch([hash(1), hash(2)]);
        assert_eq!(sessions.take_fresh(), [hash(1), hash(2)]);
        assert_eq!(sessions.take_fresh(), []);
        sessions.end_collection();
        sessions.touch([hash(3)]);
        assert_eq!(sessions.take_fresh(), []);
    }
}
