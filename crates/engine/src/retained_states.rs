//! Published states that are retained together with the log that follows them, so that any moment
//! since can be rebuilt ([`crate::rebuilt_snapshots`]).
//!
//! A flush publishes a state that takes the place of the one before. Where the log is kept, the one
//! before is kept too, once the log behind the last kept one has grown by a memtable's size. It
//! stays in the store by the root [`ROOT_NAME`], which names a list of them.
//!
//! *Invariants*
//! 1. The log's segments from a kept state's own on are there, or the state is passed over.
//! 2. All chunks that the records behind a kept state need, and don't bring, are in packs and named
//!    by the list: what a record refers to may be in no tree any more when it is read again.
//! 3. Kept states are in the order of their moments, and there is no gap between them: the log goes
//!    on behind each.
//! 4. A *range* of moments that was made of a kept state expires before the state goes.

mod format;

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use frond_store::io::steady_now;
use frond_store::{ChunkHash, ChunkStore, StoreError};

use crate::ids::Sequence;
use crate::log::format::SegmentNumber;
use crate::snapshot::current::View;

/// The root that names the list.
const ROOT_NAME: &str = "moments";
/// The number of kept states, or of chunks that name what records need, above which the oldest
/// goes.
const STATES_MAX: usize = 1_000;
const NEEDS_MAX: usize = 10_000;
/// A range that no request has asked for so long goes.
const IDLE: Duration = Duration::from_secs(60);
/// The interval at which a caller that waits for another's range checks whether to go on.
const CHECK_EVERY: Duration = Duration::from_millis(20);
const NO_PANIC: &str = "no panic while the lock is held";

/// The retained states, and the ranges that were rebuilt of them.
#[derive(Default)]
pub(crate) struct RetainedStates {
    list: Mutex<List>,
    ranges: Mutex<Vec<Range>>,
    /// Whether a range is being made.
    is_making: Mutex<bool>,
    made: Condvar,
}

/// A published state that is retained.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RetainedState {
    /// Its chunk.
    pub root: ChunkHash,
    /// It and the log show every moment from this on.
    pub from: Sequence,
    /// The Sequence up to which every entry is in its bases.
    pub horizon: Sequence,
    /// The first segment of the log behind it.
    pub segment: SegmentNumber,
    /// Chunks that name what the records behind it need, up to the next kept state.
    pub needs: Vec<ChunkHash>,
}

/// The list, and what is known of it.
#[derive(Default)]
pub(crate) struct List {
    pub states: Vec<RetainedState>,
    /// The bytes of the memtables that were flushed since the last one.
    pub bytes_since: u64,
    is_read: bool,
    stored: Option<ChunkHash>,
}

/// A view of all moments between two.
pub(crate) struct Range {
    /// The chunk of the kept state that it was made of.
    pub root: ChunkHash,
    pub view: Arc<View>,
    pub from: Sequence,
    pub up_to: Sequence,
    /// The memory that it takes.
    pub bytes: u64,
    used: Instant,
}

impl Range {
    /// One that was asked for now.
    pub fn new(
        root: ChunkHash,
        view: Arc<View>,
        (from, up_to): (Sequence, Sequence),
        bytes: u64,
    ) -> Range {
        Range { root, view, from, up_to, bytes, used: steady_now() }
    }

    fn expire(&self) {
        self.view.state.expiry.expire();
    }

    /// Whether a snapshot has it: then it must be here, to be notified when it expires.
    fn is_read(&self) -> bool {
        1 < Arc::strong_count(&self.view)
    }
}

impl List {
    /// Stores what it says now, so that the chunks it names stay.
    ///
    /// # Errors
    /// As the store's.
    pub fn store(&mut self, store: &dyn ChunkStore) -> Result<(), StoreError> {
        while STATES_MAX < self.states.len()
            || NEEDS_MAX < self.states.iter().map(|state| state.needs.len()).sum()
        {
            self.states.remove(0);
        }
        let new = match self.states.is_empty() {
            true => None,
            false => {
                let chunk = format::encode(&self.states);
                store.put_many(std::slice::from_ref(&chunk))?;
                Some(chunk.hash())
            }
        };
        if new != self.stored {
            store.swap_root(ROOT_NAME, self.stored, new)?;
            self.stored = new;
        }
        Ok(())
    }

    /// The chunk that names these, for [`RetainedState::needs`].
    ///
    /// # Errors
    /// As the store's.
    pub fn put_needs(store: &dyn ChunkStore, needs: &[ChunkHash]) -> Result<ChunkHash, StoreError> {
        let chunk = format::encode_needs(needs);
        store.put_many(std::slice::from_ref(&chunk))?;
        Ok(chunk.hash())
    }
}

impl RetainedStates {
    /// Locks the list, which is read from the store the first time. One that can't be read is
    /// empty: moments before now are refused then, and the next kept state takes its place.
    ///
    /// # Errors
    /// As the store's, if it can't be asked.
    pub fn list(&self, store: &dyn ChunkStore) -> Result<MutexGuard<'_, List>, StoreError> {
        let mut list = self.list.lock().expect(NO_PANIC);
        if !list.is_read {
            list.stored = store.root(ROOT_NAME)?;
            let chunk = list.stored.and_then(|root| store.get(root).ok());
            list.states = chunk.and_then(|it| format::decode(&it).ok()).unwrap_or_default();
            list.is_read = true;
        }
        Ok(list)
    }

    /// Keeps only the states whose segment isn't before `first`; none if `first` is `None`.
    ///
    /// # Errors
    /// As the store's: what can't be read any more is forgotten all the same.
    pub fn keep_from(
        &self,
        store: &dyn ChunkStore,
        first: Option<SegmentNumber>,
    ) -> Result<(), StoreError> {
        let mut list = self.list(store)?;
        let is_kept = |state: &RetainedState| first.is_some_and(|first| first <= state.segment);
        if list.states.iter().all(is_kept) && (!list.states.is_empty() || list.stored.is_none()) {
            return Ok(());
        }
        list.states.retain(is_kept);
        let roots: Vec<ChunkHash> = list.states.iter().map(|state| state.root).collect();
        self.forget_ranges(|range| roots.contains(&range.root));
        list.store(store)
    }

    /// Lets go of the ranges that `stays` doesn't name; snapshots of them read no more.
    pub fn forget_ranges(&self, stays: impl Fn(&Range) -> bool) {
        let mut gone = Vec::new();
        self.ranges().retain_mut(|range| {
            let stays = stays(range);
            if !stays {
                range.expire();
                gone.push(Arc::clone(&range.view));
            }
            stays
        });
        drop(gone);
    }

    /// Lets go of ranges that no request has asked for lately, and that no snapshot has.
    pub fn end_idle(&self) {
        let mut ranges = self.ranges();
        let is_idle = |range: &mut Range| IDLE <= range.used.elapsed() && !range.is_read();
        let idle: Vec<Range> = ranges.extract_if(.., is_idle).collect();
        drop(ranges);
        drop(idle);
    }

    /// Returns the view that shows `moment`, if it was made before.
    pub fn view_at(&self, moment: Sequence) -> Option<Arc<View>> {
        let mut ranges = self.ranges();
        let shows = |range: &&mut Range| range.from <= moment && moment <= range.up_to;
        let range = ranges.iter_mut().find(shows)?;
        range.used = steady_now();
        Some(Arc::clone(&range.view))
    }

    /// Takes a range; the ones that were asked for longest ago expire while all take more than
    /// `bytes_max`.
    pub fn take(&self, range: Range, bytes_max: u64) {
        let mut ranges = self.ranges();
        ranges.retain(|it| it.from != range.from || range.up_to < it.up_to || it.is_read());
        ranges.push(range);
        ranges.sort_by_key(|range| std::cmp::Reverse(range.used));
        let mut bytes = 0;
        let mut fits = |range: &Range| {
            bytes += range.bytes;
            bytes <= bytes_max
        };
        let fitting = ranges.iter().take_while(|range| fits(range)).count().max(1);
        let gone: Vec<Range> = ranges.drain(fitting..).collect();
        drop(ranges);
        gone.iter().for_each(Range::expire);
    }

    /// Waits until no other thread makes a range; `None` if `keep_going` said no before that.
    pub fn begin_making(&self, keep_going: &dyn Fn() -> bool) -> Option<Making<'_>> {
        let mut is_making = self.is_making.lock().expect(NO_PANIC);
        while *is_making {
            if !keep_going() {
                return None;
            }
            is_making = self.made.wait_timeout(is_making, CHECK_EVERY).expect(NO_PANIC).0;
        }
        *is_making = true;
        Some(Making(self))
    }

    fn ranges(&self) -> MutexGuard<'_, Vec<Range>> {
        self.ranges.lock().expect(NO_PANIC)
    }
}

/// A guard: while it is held, no other thread makes a range.
pub(crate) struct Making<'a>(&'a RetainedStates);

impl Drop for Making<'_> {
    fn drop(&mut self) {
        *self.0.is_making.lock().expect(NO_PANIC) = false;
        self.0.made.notify_all();
    }
}
