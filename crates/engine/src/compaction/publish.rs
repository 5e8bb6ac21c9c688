//! Publishes the results of background work: first for a restart, then for readers.
//!
//! 1. Lay each result over the base of now; put the base chunks, the base map and an engine-state
//!    chunk that names it; sync the log as far as any of these bases reaches, and have the segment
//!    that a restart begins with on the disk.
//! 2. Swap the root `engine`, which syncs everything first. Then give second copies to the chunks
//!    by which all else is found. Where the store's packs live beyond this disk, a flush has a
//!    state that is whole without the log sent there ([`crate::compaction::self_contained`]).
//! 3. Lay the results over the State (again: a version commit may have come between) and, for a
//!    flush, take the flushed memtables out. Their log segments go last: that can fail, and be
//!    tried again.
//!
//! One publication at a time; the work before it needs no lock. The state that a restart finds and
//! the one that readers use need not be the same: both are bases that obey `state::base`, and the
//! log has everything above the published horizon.

use bytes::Bytes;
use frond_store::{Chunk, ChunkHash, ChunkStore, Headroom, StoreError};
use frond_tree::{Edit, TreeError};
use std::collections::{BTreeSet, HashMap};

use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::log::format::SegmentNumber;
use crate::shared::Shared;
use crate::state::format::{EngineState, base_key, base_value, encode_base};
use crate::state::metadata_chunks;
use crate::state::published::Publisher;
use crate::state::{Base, State, VersionEdit};

/// The root that names the engine-state chunk.
pub(crate) const ROOT_NAME: &str = "engine";

/// The part of the disk that the retained log may take.
const KEPT_SHARE: u64 = 10;

/// The result of background work on one tree.
pub(crate) struct Outcome {
    /// The tree.
    pub tree: TreeId,
    /// The time when the generation began whose base it improves.
    pub from: Sequence,
    /// The edit that it made.
    pub edit: VersionEdit,
}

/// The advance of the published state by a flush.
pub(crate) struct Advance {
    /// The Sequence up to which every entry is in the bases then.
    pub horizon: Sequence,
    /// Log segments below this one are not needed then.
    pub segment: SegmentNumber,
    /// The oldest memtables, which go.
    pub sealed_count: usize,
    /// All trees whose published base may not be theirs.
    pub trees: BTreeSet<TreeId>,
}

impl Shared {
    /// Publishes what a fold or merge made.
    ///
    /// # Errors
    /// [`EngineError::Store`] if chunks or the root can't be written, [`EngineError::Closed`] if
    /// they can't be synced: then nothing is published, and the state is as before.
    pub fn publish_work(&self, outcomes: &[Outcome]) -> Result<(), EngineError> {
        let mut publisher = self.publisher();
        let (state, _) = self.current();
        let published = publisher.published;
        let mut bases = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            // A base of an generation that is not the published one's stays unpublished: the log
            // has what made it, or the next flush publishes it.
            let generation = state.generation(outcome.tree, published.horizon);
            if generation.is_some_and(|generation| generation.from == outcome.from)
                && let Some(base) = improved(&state, outcome)
            {
                bases.push((outcome.tree, Some(base)));
            }
        }
        if !bases.is_empty() {
            self.keep_first_state(&publisher);
            self.swap(&mut publisher, &bases, published.horizon, published.segment)?;
        }
        self.change_state(|state, _| install(state, outcomes));
        self.signals.wake();
        Ok(())
    }

    /// Publishes what a flush made. Log segments below `advance.segment` are not needed any more
    /// then.
    ///
    /// # Errors
    /// As `publish_work`.
    pub fn publish_flush(
        &self,
        outcomes: &[Outcome],
        advance: &Advance,
    ) -> Result<(), EngineError> {
        let mut publisher = self.publisher();
        let (state, _) = self.current();
        let horizon = advance.horizon;
        let mut bases = Vec::with_capacity(advance.trees.len());
        let mut later: Vec<TreeId> = Vec::new();
        let mut outcomes_left = outcomes.iter().peekable();
        for tree in &advance.trees {
            let outcome = outcomes_left.next_if(|outcome| outcome.tree == *tree);
            let base = state.generation(*tree, horizon).and_then(|generation| {
                let outcome = outcome.filter(|outcome| outcome.from == generation.from);
                outcome
                    .and_then(|outcome| improved(&state, outcome))
                    .or_else(|| generation.base.clone())
            });
            bases.push((*tree, base));
            later.extend(
                state
                    .trees
                    .get(*tree)
                    .iter()
                    .any(|generation| horizon < generation.from)
                    .then_some(*tree),
            );
        }
        assert!(outcomes_left.peek().is_none(), "outcomes stand in the order of their trees");
        self.swap(&mut publisher, &bases, horizon, advance.segment)?;
        self.change_state(|state, _| {
            state.sealed.drain(..advance.sealed_count);
            install(state, outcomes);
            for tree in &advance.trees {
                state.forget_generations_below(*tree, horizon);
            }
        });
        self.published.unpublished.note(later);
        self.published.unpublished.forget_logged(horizon);
        let whole = publisher.beyond.is_empty().then_some(publisher.published);
        drop(publisher);
        self.signals.wake();
        if let Some(whole) = whole {
            self.publish_self_contained(&whole);
        }
        Ok(())
    }

    /// Points the root at a state with `bases`; `None` takes a tree out.
    fn swap(
        &self,
        publisher: &mut Publisher,
        bases: &[(TreeId, Option<Base>)],
        horizon: Sequence,
        segment: SegmentNumber,
    ) -> Result<(), EngineError> {
        let _essential = Headroom::Essential.enter_at_least();
        let mut chunks: Vec<Chunk> = Vec::new();
        let mut edits: Vec<Result<(Bytes, Edit), TreeError>> = Vec::new();
        let mut newest = horizon;
        let mut beyond = publisher.beyond.clone();
        for (tree, base) in bases {
            beyond.remove(tree);
            let edit = match base {
                Some(base) => {
                    newest = newest.max(base.folded_to);
                    beyond.insert(*tree, base.folded_to);
                    let chunk = encode_base(base);
                    let value = base_value(&chunk);
                    chunks.push(chunk);
                    Edit::Put(value)
                }
                None => Edit::Delete,
            };
            edits.push(Ok((base_key(*tree), edit)));
        }
        let store = &*self.store;
        store.put_many(&chunks)?;
        let published = EngineState {
            bases: publisher.published.bases.apply(store, &mut edits.into_iter())?,
            horizon: horizon.max(publisher.published.horizon),
            segment,
            has_segment: self.begin_segment(segment)?,
            next_tree_id: self.tree_ids.next(),
        };
        self.make_durable(newest)?;
        self.sync_own_log()?;
        self.publish_state(publisher, published)?;
        beyond.retain(|_, folded_to| published.horizon < *folded_to);
        publisher.beyond = beyond;
        Ok(())
    }

    /// Has the published state say that the log has its first segment, and has it, if there is
    /// room: so that an opening misses it.
    ///
    /// # Errors
    /// As `publish_work`.
    pub fn begin_log(&self) -> Result<(), EngineError> {
        let mut publisher = self.publisher();
        let published = publisher.published;
        if published.has_segment || !self.begin_segment(published.segment)? {
            return Ok(());
        }
        match self.publish_state(&mut publisher, EngineState { has_segment: true, ..published }) {
            Err(error) if error.is_full() => Ok(()),
            other => other,
        }
    }

    fn publish_state(
        &self,
        publisher: &mut Publisher,
        published: EngineState,
    ) -> Result<(), EngineError> {
        let store = &*self.store;
        let chunk = published.encode();
        store.put_many(std::slice::from_ref(&chunk))?;
        self.store_synced(swap_root(store, Some(publisher.root), &chunk))?;
        publisher.root = chunk.hash();
        publisher.published = published;
        self.copy_metadata(publisher.root, false);
        Ok(())
    }

    /// Gives each chunk by which the others of the state `root` are found a second copy, unless it
    /// has one; of all of them anew if `anew`, or if it is time. A chunk that can't be read has
    /// none.
    pub fn copy_metadata(&self, root: ChunkHash, anew: bool) {
        let Some(copies) = self.store.maintenance().copies() else { return };
        let anew = anew || copies.is_due();
        let mut get = |hashes: &[ChunkHash]| {
            let mut wanted = hashes.to_vec();
            wanted.retain(|hash| anew || !copies.has(hash));
            let found = match self.store.get_many(&wanted) {
                Ok(found) => found,
                Err(_) => wanted.iter().filter_map(|hash| self.store.get(*hash).ok()).collect(),
            };
            let found: HashMap<ChunkHash, Chunk> =
                found.into_iter().map(|chunk| (chunk.hash(), chunk)).collect();
            Ok::<_, EngineError>(hashes.iter().map(|hash| found.get(hash).cloned()).collect())
        };
        if !anew {
            let mut new = Vec::new();
            let _ = metadata_chunks::walk(root, &mut get, &mut |chunk| new.push(chunk));
            // Those below before those above: what has a copy leads to others that have one.
            new.reverse();
            return copies.add(&new);
        }
        let Some(mut file) = copies.replace() else { return };
        let mut is_written = true;
        let walked = metadata_chunks::walk(root, &mut get, &mut |chunk| {
            is_written = is_written && file.add(std::slice::from_ref(&chunk));
        });
        match walked {
            Ok(()) if is_written => file.finish(),
            _ => file.abandon(),
        }
    }

    /// Gives up log segments that are not needed any more; where it fails, the next call goes on.
    /// One thread at a time.
    ///
    /// # Errors
    /// [`StoreError::Io`] with the name of the segment that can't be renamed or removed.
    pub fn remove_segments(&self) -> Result<(), StoreError> {
        let (mut number, end) = {
            let publisher = self.publisher();
            (publisher.first_segment, publisher.published.segment)
        };
        while number < end {
            let given = self.kept.take(number, self.now_seconds(), &self.recycled);
            given.map_err(|error| StoreError::io(number.file_name(), error))?;
            number = number.next();
            self.publisher().first_segment = number;
        }
        self.end_unread_term();
        self.trim_log()?;
        self.trim_retained_states()
    }

    /// Gives up what is kept of the log and is too old, or too much.
    ///
    /// # Errors
    /// As `remove_segments`.
    pub fn trim_log(&self) -> Result<(), StoreError> {
        if self.kept.bytes() == 0 {
            return Ok(());
        }
        let room = self.space.disk_status();
        let bytes_max = match room {
            _ if !self.kept.is_on() => 0,
            Some(room) if room.is_short() => 0,
            Some(room) => room.disk / KEPT_SHARE,
            None => u64::MAX,
        };
        self.trim_log_to(bytes_max)
    }

    /// As `trim_log`, to so many bytes at most.
    ///
    /// # Errors
    /// As `remove_segments`.
    pub fn trim_log_to(&self, bytes_max: u64) -> Result<(), StoreError> {
        let end = self.horizon.end();
        let end = (end.segment, end.sequence);
        let trimmed = self.kept.trim(self.now_seconds(), bytes_max, end, &self.recycled);
        trimmed.map_err(|error| StoreError::io("a segment of the log that was kept", error))?;
        self.trim_retained_states()
    }

    /// The time, in seconds since 1970.
    pub fn now_seconds(&self) -> u64 {
        u64::try_from(self.machine.clock.now_micros() / 1_000_000).unwrap_or(0)
    }
}

/// The base that `outcome` makes of the one in `state`; the latter if it wins nothing.
fn improved(state: &State, outcome: &Outcome) -> Option<Base> {
    let base = state.base_of(outcome.tree, outcome.from)?;
    Some(base.improved(&outcome.edit).unwrap_or_else(|| base.clone()))
}

fn install(state: &mut State, outcomes: &[Outcome]) {
    for outcome in outcomes {
        state.improve(outcome.tree, outcome.from, &outcome.edit);
    }
}

/// Points the root at `chunk`, which was put before.
pub(crate) fn swap_root(
    store: &dyn ChunkStore,
    expected: Option<ChunkHash>,
    chunk: &Chunk,
) -> Result<(), StoreError> {
    store.swap_root(ROOT_NAME, expected, Some(chunk.hash()))
}
