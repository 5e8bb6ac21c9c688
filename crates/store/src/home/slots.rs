//! The log of a line, as objects: what is acknowledged lies in the depot before it is.
//!
//! 1. An entry of the log is a *slot*: an object that is made if there is none of its name, and
//!    never replaced. Its name says the epoch and the number in it; slots of an epoch are made one
//!    after the other, each only when the one before is known to be there.
//! 2. *Taking over* ([`Slots::replay`]): HEAD has a higher epoch then. Each older epoch is read to
//!    its end and closed there by a *tombstone* in the first slot that isn't there, the oldest
//!    first. So who led before finds its next slot taken, must make exactly that one before it may
//!    acknowledge anything, and stops; of two that take over the one of the higher epoch closes
//!    that of the lower, too.
//! 3. *Unknown* is neither yes nor no: the same bytes are put until it is known whose the slot is.
//!    Until then nothing is acknowledged, and no other slot begun.
//! 4. HEAD names the first slot that is needed besides its manifest ([`Slots::note_root`]). Those
//!    below it go once HEAD was swapped; tombstones stay for good: a put that comes years late
//!    must find its slot taken.
//!
//! *Bytes*: a slot names the checksum of the one before it, so that none is missing unseen. An
//! entry is of its epoch's leader alone, and a tombstone of the epoch that made it, so no two
//! writers put the same bytes under one name.

mod format;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;

use self::format::{Content, NONE_BEFORE, Slot, checksum};
use super::format::{LOG_PREFIX, SlotId};
use super::refusal::{deposed, told};
use crate::chunk::ChunkHash;
use crate::depot::{Depot, DepotError, create_until_known};
use crate::error::StoreError;
use crate::io::steady_now;

/// A depot that refuses is asked so often, some ten seconds each time.
const ROUNDS_MAX: u32 = 360;
/// And none for longer, which takes requests and answers none.
const TIME_MAX: Duration = Duration::from_secs(3600);
/// Reads are tried so often.
const READS_MAX: u32 = 9;
/// So many slots are read at once where there are many.
const AHEAD_MAX: u64 = 16;
/// States of HEAD that may yet be put: the newest count.
const ROOTS_MAX: usize = 8;
/// What the log is called where it fails.
const LOG: &str = "the log in the store";

/// See the module.
///
/// *Thread safety*: `replay` comes before all else, and one thread at a time calls `put`; the
/// others may be called at any time.
pub struct Slots {
    depot: Arc<dyn Depot>,
    /// In which this directory leads.
    epoch: u64,
    /// The first slot that HEAD needed when it was opened.
    first: Option<SlotId>,
    gives_up: AtomicBool,
    state: Mutex<State>,
}

struct State {
    /// The slot to be read next, and behind all that are there to be made next.
    next: SlotId,
    /// The checksum of the one before it.
    before: u64,
    /// Slots with entries that are there, and how far the log is with each.
    held: VecDeque<(SlotId, u64)>,
    /// The first slot that is needed besides what a root leads to.
    roots: VecDeque<(ChunkHash, SlotId)>,
    /// Slots that aren't needed any more, and couldn't be removed yet.
    left: Vec<SlotId>,
}

impl Slots {
    pub(super) fn new(depot: Arc<dyn Depot>, epoch: u64, first: Option<SlotId>) -> Slots {
        let state = State {
            next: SlotId { epoch, number: 0 },
            before: NONE_BEFORE,
            held: VecDeque::new(),
            roots: VecDeque::new(),
            left: Vec::new(),
        };
        let gives_up = AtomicBool::new(false);
        Slots { depot, epoch, first, gives_up, state: Mutex::new(state) }
    }

    /// Hands over all entries that lie there, in their order, and closes the epochs in which they
    /// were made: whatever is acknowledged by then has been handed over.
    ///
    /// # Errors
    /// What `apply` fails with; as an error of the store that the depot doesn't answer, that a slot
    /// is damaged, or that another directory has taken the lead.
    pub fn replay<E: From<StoreError>>(
        &self,
        apply: &mut dyn FnMut(Bytes) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(first) = self.first else { return Ok(()) };
        for epoch in first.epoch..self.epoch {
            let begins = if epoch == first.epoch { first.number } else { 0 };
            self.close(SlotId { epoch, number: begins }, apply)?;
        }
        self.state().next = SlotId { epoch: self.epoch, number: 0 };
        Ok(())
    }

    /// Reads an epoch from the slot `id` on, and closes it.
    fn close<E: From<StoreError>>(
        &self,
        mut id: SlotId,
        apply: &mut dyn FnMut(Bytes) -> Result<(), E>,
    ) -> Result<(), E> {
        // Before the first that is needed there may be others.
        let mut before = (id.number == 0).then_some(NONE_BEFORE);
        let mut ahead = 1;
        loop {
            for found in self.load(id, &mut ahead)? {
                let Some(bytes) = found else {
                    let closed_by = self.epoch;
                    let content = Content::Tombstone { closed_by };
                    let tombstone = Slot { id, before: before.unwrap_or(NONE_BEFORE), content };
                    if self.create(id, &tombstone.encode(), &|_| {})? {
                        return Ok(());
                    }
                    // Its leader was faster, or another that takes over.
                    break;
                };
                let (slot, own) = Slot::parse(&bytes, id)?;
                if before.is_some_and(|before| before != slot.before) {
                    let what = "it isn't the one that the slot before it was followed by";
                    return Err(StoreError::damaged(&id.name(), 0, what).into());
                }
                match slot.content {
                    Content::Tombstone { closed_by } if self.epoch < closed_by => {
                        return Err(deposed().into());
                    }
                    Content::Tombstone { .. } => return Ok(()),
                    Content::Entry { through, entry } => {
                        // What is sent meanwhile doesn't have it.
                        self.state().next = id;
                        apply(entry)?;
                        self.state().held.push_back((id, through));
                    }
                }
                before = Some(own);
                id.number += 1;
            }
        }
    }

    /// The slots from `id` on, `ahead` of them, and more from one time to the next.
    fn load(&self, id: SlotId, ahead: &mut u64) -> Result<Vec<Option<Bytes>>, StoreError> {
        for attempt in 0.. {
            let numbers = id.number..id.number + *ahead;
            let names: Vec<String> = numbers.map(|number| SlotId { number, ..id }.name()).collect();
            match self.depot.load_many(&names) {
                Ok(found) => {
                    *ahead = (*ahead * 2).min(AHEAD_MAX);
                    return Ok(found);
                }
                Err(DepotError::Unavailable { .. }) if attempt < READS_MAX => {
                    self.depot.wait(attempt + 1);
                    *ahead = 1;
                }
                Err(error) => return Err(told(error)),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Makes the next slot, with an entry with which the log is `through`; durable then. `told`
    /// gets why that takes long.
    ///
    /// # Errors
    /// [`StoreError::Io`]: another directory leads, or whether the slot is there is unknown. No
    /// other slot may be made here any more.
    pub fn put(
        &self,
        entry: Bytes,
        through: u64,
        told: &dyn Fn(StoreError),
    ) -> Result<(), StoreError> {
        let slot = {
            let state = self.state();
            let content = Content::Entry { through, entry };
            Slot { id: state.next, before: state.before, content }
        };
        let bytes = slot.encode();
        if !self.create(slot.id, &bytes, told)? {
            return Err(deposed());
        }
        let mut state = self.state();
        state.next.number += 1;
        state.before = checksum(&bytes);
        state.held.push_back((slot.id, through));
        Ok(())
    }

    /// Makes a slot; whether these bytes lie there, and not another's.
    fn create(
        &self,
        id: SlotId,
        bytes: &Bytes,
        told_of: &dyn Fn(StoreError),
    ) -> Result<bool, StoreError> {
        let begun = steady_now();
        let mut round = 0;
        loop {
            round += 1;
            match create_until_known(&*self.depot, &id.name(), bytes) {
                Ok(made) => return Ok(made.is_some()),
                Err(error @ DepotError::Unavailable { .. }) => {
                    let error = StoreError::io(LOG, io::Error::other(error));
                    let is_long = ROUNDS_MAX <= round || TIME_MAX < begun.elapsed();
                    if is_long || self.gives_up.load(Ordering::Relaxed) {
                        return Err(error);
                    }
                    told_of(error);
                }
                Err(refused) => return Err(told(refused)),
            }
        }
    }

    /// Waits no longer for a depot that doesn't answer.
    pub fn give_up(&self) {
        self.gives_up.store(true, Ordering::Relaxed);
    }

    /// Says that a manifest with the root `root` needs no slot with which the log is at most
    /// `through`, which is all there. Before the root is swapped to that.
    pub fn note_root(&self, root: ChunkHash, through: u64) {
        let mut state = self.state();
        let needed = state.held.iter().find(|(_, last)| through < *last);
        let needed = needed.map_or(state.next, |(id, _)| *id);
        state.roots.push_back((root, needed));
        while ROOTS_MAX < state.roots.len() {
            state.roots.pop_front();
        }
    }

    /// The first slot that is needed besides a manifest with these roots, if that is known.
    pub(super) fn needed_with(&self, roots: &BTreeMap<String, ChunkHash>) -> Option<SlotId> {
        let state = self.state();
        let is_among = |(root, _): &&(ChunkHash, SlotId)| roots.values().any(|it| it == root);
        state.roots.iter().rev().find(is_among).map(|(_, needed)| *needed)
    }

    /// Removes the slots below `first`: HEAD needs none of them any more. What can't be removed
    /// now is by the next call.
    pub(super) fn remove_below(&self, first: SlotId) {
        let mut gone: Vec<SlotId> = {
            let mut state = self.state();
            let count = state.held.partition_point(|(id, _)| *id < first);
            let gone = state.held.drain(..count).map(|(id, _)| id).collect::<Vec<_>>();
            std::mem::take(&mut state.left).into_iter().chain(gone).collect()
        };
        let names: Vec<String> = gone.iter().map(|id| id.name()).collect();
        if self.depot.remove_many(&names).is_ok() {
            gone.clear();
        }
        self.state().left = gone;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the lock is held")
    }
}

/// Removes what HEAD, which needs no slot below `first`, says that is left of slots that were to be
/// removed. The highest slot that is listed of an earlier epoch may be its tombstone, and stays.
pub(super) fn remove_left(depot: &dyn Depot, first: SlotId) {
    let mut listed: BTreeMap<u64, Vec<SlotId>> = BTreeMap::new();
    for name in depot.list(LOG_PREFIX).unwrap_or_default() {
        if let Some(id) = SlotId::of_name(&name) {
            listed.entry(id.epoch).or_default().push(id);
        }
    }
    for (epoch, mut ids) in listed.range(..=first.epoch).map(|(epoch, ids)| (*epoch, ids.clone())) {
        ids.sort();
        if epoch < first.epoch {
            ids.pop();
        }
        ids.retain(|id| *id < first);
        let names: Vec<String> = ids.iter().map(|id| id.name()).collect();
        // What can't be removed now is found by a later opening.
        let _ = depot.remove_many(&names);
    }
}
