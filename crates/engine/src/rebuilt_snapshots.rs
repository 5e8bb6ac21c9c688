//! Snapshots of any moment that the retained log reaches (point-in-time reads).
//!
//! The moments that [`crate::recent_snapshots`] shows are in memory: those since the last flush or
//! fold, and those that are leased. Where the log is kept ([`crate::log::retained`]), any other
//! moment since is made again, as a recovery would:
//!
//! 1. Each flush keeps the state that it replaces ([`crate::retained_states`]), and notes what
//!    chunks the log's records behind it need and don't bring. The first state is kept before a
//!    fold, too, replaces it: no other one shows what was before that.
//! 2. A request for a moment takes the last retained state before it, and the log's records
//!    from there on, decoded into a memtable of its own, up to the next kept state or the log's
//!    durable end. That takes no more memory than the engine's own memtables do.
//! 3. Memtables have every version of what was written, and no generation of a tree is forgotten:
//!    so one *range* shows every moment between the two. Ranges stay for a while and are shared;
//!    threads that ask for the same one wait for it, and read the log once.
//!
//! *Exactness.* What recovery gives after a crash at that moment is what is shown: the very records
//! that were acknowledged, over the very trees. Nothing is looked up by a clock but the Sequence.
//!
//! *Invariants*
//! 1. A range writes nothing: its chunks lie beside its memtable, in no pack.
//! 2. A range counts only if its kept state, and the log behind it, were kept until it was whole.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash, ChunkStore, Layered, StoreError};
use frond_tree::Content;

use crate::durable_horizon::DurableEnd;
use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::log::decode::{DecodeError, Decoded, PriorValues};
use crate::log::follow::{Follower, Next};
use crate::log::format::{LogOffset, damaged};
use crate::overlay::memtable::Memtable;
use crate::overlay::pending::{NewChunks, StoreWithPending};
use crate::recovery::read_bases;
use crate::retained_states::{List, Range, RetainedState};
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::snapshot::current::View;
use crate::state::format::EngineState;
use crate::state::published::Publisher;
use crate::state::{State, TreeGeneration};

/// The chunks that a record needs are named in chunks of so many.
const NEEDS_BATCH: usize = 1_000;
/// The number of memtables below whose size a range goes on, behind the last kept state, beyond the
/// moment that was asked for: to the log's end at most.
const MEMTABLES_AT_ONCE: u64 = 2;

/// The reason why a moment can't be read.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// The log doesn't reach it.
    #[error("moments are kept from {} on only", .from.0)]
    Gone {
        /// The moment from which on every one can be read.
        from: Sequence,
    },
    /// Showing it takes more than readers may have of the memory.
    #[error("to show that moment takes more than the {max} bytes that readers may have")]
    TooLarge {
        /// The limit.
        max: u64,
    },
    /// The caller was interrupted.
    #[error("the request was told to stop")]
    Interrupted,
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<StoreError> for RebuildError {
    fn from(error: StoreError) -> RebuildError {
        RebuildError::Engine(error.into())
    }
}

impl Shared {
    /// See [`Engine::rebuild_snapshot_at`](crate::Engine::rebuild_snapshot_at).
    ///
    /// # Errors
    /// As there.
    pub fn rebuild_snapshot_at(
        &self,
        moment: Sequence,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Snapshot, RebuildError> {
        // Nothing was kept of what an opening skipped, so it shows what was there before.
        let (first, skipped) = self.skipped;
        let moment = if first < moment && moment <= skipped { first } else { moment };
        self.await_settled(moment)?;
        self.kept.note_followed(self.now_seconds());
        let shown =
            || self.current.view_at(moment).or_else(|| self.retained_states.view_at(moment));
        if let Some(view) = shown() {
            return Ok(Snapshot::new(view, moment));
        }
        let making =
            self.retained_states.begin_making(keep_going).ok_or(RebuildError::Interrupted)?;
        // Another thread may have made it.
        let view = match shown() {
            Some(view) => view,
            None => self.make_range(moment, keep_going)?,
        };
        drop(making);
        Ok(Snapshot::new(view, moment))
    }

    /// See [`Engine::oldest_rebuildable`](crate::Engine::oldest_rebuildable).
    ///
    /// # Errors
    /// As there.
    pub fn oldest_rebuildable(&self) -> Result<Sequence, EngineError> {
        let shown = self.current.shown_from();
        if !self.keeps_states() {
            return Ok(shown);
        }
        let publisher = self.publisher();
        let (first, _) = self.kept.floor();
        let list = self.retained_states.list(&*self.store)?;
        let kept = list.states.iter().find(|state| first <= state.segment);
        let published = self.to_be_kept(&publisher).map(|state| state.from);
        Ok(kept.map(|state| state.from).or(published).map_or(shown, |from| from.min(shown)))
    }

    /// Whether published states are kept. Where entries come from elsewhere, from a set or from a
    /// log in a bucket, they aren't: moments are those that are in memory.
    fn keeps_states(&self) -> bool {
        self.kept.is_on() && self.order.is_none()
    }

    /// Makes the range that shows `moment`, for others too.
    fn make_range(
        &self,
        moment: Sequence,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Arc<View>, RebuildError> {
        let (kept, next) = self.kept_before(moment)?;
        let made = self.replay(&kept, next, moment, keep_going);
        // The log may have been given up meanwhile, with what the state needs.
        let is_kept = {
            let list = self.retained_states.list(&*self.store)?;
            let (first, _) = self.kept.floor();
            let is_kept = self.keeps_states() && first <= kept.segment;
            let is_kept = is_kept && list.states.iter().any(|state| state.root == kept.root);
            if is_kept && let Ok(range) = &made {
                let view = Arc::clone(&range.view);
                let up_to = (range.from, range.up_to);
                let range = Range::new(kept.root, view, up_to, range.bytes);
                self.retained_states.take(range, self.options.snapshots_bytes_max);
            }
            is_kept
        };
        match is_kept {
            true => made.map(|range| range.view),
            false => Err(RebuildError::Gone { from: self.oldest_rebuildable()? }),
        }
    }

    /// The last kept state that isn't behind `moment`, and where the next one begins. The published
    /// state is kept from now on if no other is.
    fn kept_before(
        &self,
        moment: Sequence,
    ) -> Result<(RetainedState, Option<Sequence>), RebuildError> {
        self.trim_retained_states()?;
        let publisher = self.publisher();
        let (first, _) = self.kept.floor();
        let mut list = self.retained_states.list(&*self.store)?;
        let states = &list.states;
        let before = states.iter().rposition(|state| state.from <= moment);
        if let Some(position) = before.filter(|_| self.keeps_states())
            && first <= states[position].segment
        {
            let next = states.get(position + 1).map(|next| next.from);
            return Ok((states[position].clone(), next));
        }
        let is_first = self.keeps_states() && list.states.is_empty();
        let kept = self.to_be_kept(&publisher).filter(|kept| is_first && kept.from <= moment);
        let Some(kept) = kept else {
            drop((list, publisher));
            return Err(RebuildError::Gone { from: self.oldest_rebuildable()? });
        };
        list.states.push(kept.clone());
        list.bytes_since = 0;
        if let Err(error) = list.store(&*self.store) {
            list.states.clear();
            return Err(error.into());
        }
        Ok((kept, None))
    }

    /// Keeps the published state before a flush of `memtables`, which are so large, replaces it,
    /// if that is due; and what their records need. Where there is no room for that, moments
    /// before the flush can't be read: it goes on all the same.
    pub fn keep_state(&self, memtables: &[Arc<Memtable>], bytes: u64) {
        if self.keeps_states() && self.try_keep_state(memtables, bytes).is_err() {
            let _ = self.retained_states.keep_from(&*self.store, None);
        }
    }

    fn try_keep_state(&self, memtables: &[Arc<Memtable>], bytes: u64) -> Result<(), StoreError> {
        let needs = self.needs_in_packs(memtables)?;
        // Those of an earlier term may be there yet.
        self.trim_retained_states()?;
        let publisher = self.publisher();
        let mut list = self.retained_states.list(&*self.store)?;
        let is_due = list.states.is_empty()
            || self.options.memtable_bytes_max < list.bytes_since.saturating_add(bytes);
        let mut is_changed = false;
        if is_due
            && list.states.last().is_none_or(|last| last.root != publisher.root)
            && let Some(kept) = self.to_be_kept(&publisher)
        {
            list.states.push(kept);
            list.bytes_since = 0;
            is_changed = true;
        }
        list.bytes_since = list.bytes_since.saturating_add(bytes);
        let Some(last) = list.states.last_mut() else { return Ok(()) };
        for batch in needs.chunks(NEEDS_BATCH) {
            last.needs.push(List::put_needs(&*self.store, batch)?);
            is_changed = true;
        }
        if is_changed { list.store(&*self.store) } else { Ok(()) }
    }

    /// Publishes what an opening read, where the log is kept from now on: moments begin with a
    /// published state that has all that came before. Where there is no room for that, they begin
    /// with a later one.
    pub fn publish_before_retention(&self) {
        if !self.keeps_states() || self.to_be_kept(&self.publisher()).is_some() {
            return;
        }
        self.seal(&mut self.queue());
        let _ = self.flush_sealed();
    }

    /// Keeps the published state before a fold replaces it, if moments begin with it. Where there
    /// is no room for that, some can't be read later: the fold goes on all the same.
    pub fn keep_first_state(&self, publisher: &Publisher) {
        if !self.keeps_states() || self.trim_retained_states().is_err() {
            return;
        }
        let Ok(mut list) = self.retained_states.list(&*self.store) else { return };
        if list.states.is_empty()
            && let Some(kept) = self.to_be_kept(publisher)
        {
            list.states.push(kept);
            list.bytes_since = 0;
            if list.store(&*self.store).is_err() {
                list.states.clear();
            }
        }
    }

    /// What is published, as a state to be kept; `None` if the log that is kept doesn't have all
    /// that came behind it.
    fn to_be_kept(&self, publisher: &Publisher) -> Option<RetainedState> {
        let (first, floor) = self.kept.floor();
        let EngineState { horizon, segment, .. } = publisher.published;
        // Segments before the first may be gone, and needn't be there if all they had is in it.
        (first <= segment || floor <= horizon).then(|| RetainedState {
            root: publisher.root,
            from: from_of(publisher),
            horizon,
            segment: segment.max(first),
            needs: Vec::new(),
        })
    }

    /// What the records of `memtables` need of what is in packs.
    fn needs_in_packs(&self, memtables: &[Arc<Memtable>]) -> Result<Vec<ChunkHash>, StoreError> {
        let mut needs: HashSet<ChunkHash> =
            self.published.unpublished.logged_roots().into_iter().collect();
        for memtable in memtables {
            needs.extend(memtable.pending().all_needs());
            let brought: HashSet<ChunkHash> = memtable.pending().chunks().into_iter().collect();
            // Chunks that a large transaction brought were packed at once: only its values name
            // them.
            memtable.for_each_value(|value| {
                let (Content::Chunk { hash, .. } | Content::Sequence { root: hash, .. }) =
                    value.content
                else {
                    return;
                };
                if !brought.contains(&hash) {
                    needs.insert(hash);
                }
            });
        }
        let mut needs: Vec<ChunkHash> = needs.into_iter().collect();
        needs.sort_unstable_by_key(|hash| hash.0);
        let mut is_stored = self.pending.store.has_many(&needs)?.into_iter();
        needs.retain(|_| is_stored.next().unwrap_or(false));
        Ok(needs)
    }

    /// Lets go of kept states whose log isn't kept any more. Where the disk is too full for that,
    /// the next call does it.
    ///
    /// # Errors
    /// As the store's.
    pub fn trim_retained_states(&self) -> Result<(), StoreError> {
        let first = self.keeps_states().then(|| self.kept.floor().0);
        match self.retained_states.keep_from(&*self.store, first) {
            Err(error) if error.is_full() => Ok(()),
            other => other,
        }
    }

    /// Reads the log behind `kept` up to `next`, or to its end.
    fn replay(
        &self,
        kept: &RetainedState,
        next: Option<Sequence>,
        moment: Sequence,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Range, RebuildError> {
        let up_to = match next {
            Some(next) => next,
            None => {
                let visible = self.current.visible();
                self.make_durable(visible)?;
                visible
            }
        };
        let mut past = Past::new(self, kept)?;
        let end = self.horizon.end();
        let up_to = past.read_log((kept, next.is_none()), (moment, up_to), &end, keep_going)?;
        let bytes = past.state.active.bytes();
        let view = Arc::new(View::new(past.store, Arc::new(past.state)));
        Ok(Range::new(kept.root, view, (kept.from, up_to), bytes))
    }
}

/// The first moment that what is published, and the log behind it, show.
fn from_of(publisher: &Publisher) -> Sequence {
    let beyond = publisher.beyond.values().max().copied().unwrap_or(Sequence::ZERO);
    publisher.published.horizon.max(beyond)
}

/// A kept state with the records behind it.
struct Past<'a> {
    shared: &'a Shared,
    /// Packs, and what the records brought.
    store: Arc<dyn ChunkStore>,
    state: State,
    /// The Sequence of the record that is being read.
    sequence: Sequence,
}

impl<'a> Past<'a> {
    fn new(shared: &'a Shared, kept: &RetainedState) -> Result<Past<'a>, EngineError> {
        let packs = Arc::clone(&shared.pending.store);
        let pending: Arc<Layered<StoreWithPending>> = StoreWithPending::new(packs);
        let active = Arc::new(Memtable::new(&shared.recycler, pending.all()));
        let store: Arc<dyn ChunkStore> = pending;
        let mut state = State { active, ..State::default() };
        let published = EngineState::decode(&store.get(kept.root)?)?;
        for (tree, base) in read_bases(&store, &published.bases)? {
            let generation = TreeGeneration { from: Sequence::ZERO, base: Some(base) };
            state.trees.modify(tree, |generations| generations.push(generation));
        }
        Ok(Past { shared, store, state, sequence: kept.horizon })
    }

    /// Applies the records behind `kept` up to `up_to`; returns up to where they were.
    fn read_log(
        &mut self,
        (kept, may_end_early): (&RetainedState, bool),
        (moment, up_to): (Sequence, Sequence),
        end: &DurableEnd,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Sequence, RebuildError> {
        let (shared, options) = (self.shared, &self.shared.options);
        let disk = &*shared.machine.disk;
        let enough = options.memtable_bytes_max.saturating_mul(MEMTABLES_AT_ONCE);
        let max = options.snapshots_bytes_max;
        let opened = Follower::open(disk, kept.segment, end.segment, kept.horizon)?;
        let Some(mut follower) = opened else {
            // Only the segment in which the log ends may not be there yet.
            return match kept.segment < end.segment {
                true => Err(damaged(kept.segment, LogOffset(0), "it is missing").into()),
                false => Ok(up_to),
            };
        };
        while let Next::Record(sequence, payload) =
            follower.next(disk, (end.segment, end.offset))?
        {
            if sequence <= kept.horizon {
                continue;
            }
            let bytes = self.state.active.bytes();
            if up_to < sequence || (may_end_early && enough < bytes && moment < sequence) {
                return Ok(up_to.min(sequence.preceding()));
            }
            if !keep_going() {
                return Err(RebuildError::Interrupted);
            }
            if max < bytes {
                return Err(RebuildError::TooLarge { max });
            }
            self.apply(sequence, &payload).map_err(|error| match error {
                DecodeError::Wrong(what) => damaged(follower.segment(), LogOffset(0), what).into(),
                DecodeError::Before(error) => error,
            })?;
        }
        Ok(up_to)
    }

    fn apply(&mut self, sequence: Sequence, payload: &Bytes) -> Result<(), DecodeError> {
        self.sequence = sequence;
        let Decoded { mut record, for_memtable } = Decoded::new(payload, self)?;
        for (tree, base) in record.bases.drain(..) {
            let generation = TreeGeneration::begun(sequence, base);
            // None is forgotten: each may be read.
            self.state.trees.modify(tree, |generations| generations.push(generation));
        }
        // A cache that keeps one of them would keep the record.
        let chunks = record.chunks.iter().map(Chunk::apart).collect();
        self.state.active.add_new_chunks(&NewChunks { chunks, needs: Vec::new() });
        self.state.active.insert(sequence, &for_memtable);
        Ok(())
    }

    fn value_before(&self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let before = self.sequence.preceding();
        let generation = self.state.generation(tree, before);
        let Some(base) = generation.and_then(|generation| generation.base.as_ref()) else {
            return Ok(None);
        };
        if self.sequence <= base.folded_to {
            return Ok(None); // No reader asks the memtable for it.
        }
        let value = self.state.find(&*self.store, (tree, base), key, before)?;
        let Some(value) = value else { return Ok(Some(Bytes::new())) };
        Ok(Some(value.read(&*self.store)?))
    }
}

impl PriorValues for Past<'_> {
    fn value(&mut self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>, DecodeError> {
        self.value_before(tree, key).map_err(DecodeError::Before)
    }

    fn chunk(&mut self, old: ChunkHash) -> Result<Chunk, DecodeError> {
        self.store.get(old).map_err(|error| DecodeError::Before(error.into()))
    }
}
