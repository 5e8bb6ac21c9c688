//! The log as objects in a bucket: a write lies there before it is acknowledged.
//!
//! 1. An entry of the log is a *slot*: an object that is made if there is none of its name, and
//!    never replaced. Its name says the epoch and the number in it.
//! 2. Entries are *placed* one after the other ([`Slots::place`]), and put side by side
//!    ([`Slots::make`]). The entry in a slot is acknowledged only once all slots before it are
//!    known to be there ([`Slots::await_before`]). So a gap ends the log: what lies behind it was
//!    never acknowledged, and never will be.
//! 3. *Taking over* ([`replay`]): HEAD has a higher epoch then. Each older epoch is read to its
//!    first gap and closed there by a *tombstone*, the oldest first. So who led before finds that
//!    slot taken, which it must make before it may acknowledge that or any later one, and stops; of
//!    two that take over the one of the higher epoch closes that of the lower, too.
//!    A reader beside them goes the same way, up to the first gap, and closes nothing.
//! 4. *Unknown* is neither yes nor no: the same bytes are put until it is known whose the slot is.
//!    Until then neither it nor what lies behind it is acknowledged.
//! 5. HEAD names the first slot that is needed besides its manifest ([`Slots::note_root`]). Those
//!    below it go once HEAD was swapped; tombstones stay for good: a put that comes years late
//!    must find its slot taken.
//!
//! *Bytes*: a slot names the checksum of the one before it, so that none is missing unseen. An
//! entry is of its epoch's leader alone, and a tombstone of the epoch that made it, so no two
//! writers put the same bytes under one name.

mod format;
#[cfg(test)]
mod model;
mod replay;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;

use self::format::{Content, NONE_BEFORE, Slot, checksum};
pub(super) use self::replay::remove_left;
use super::errors::{deposed, store_error};
use super::format::SlotId;
use crate::bucket::{Bucket, BucketError, create_until_known};
use crate::chunk::ChunkHash;
use crate::error::StoreError;
use crate::io::steady_now;

/// A bucket that refuses is asked so often, some ten seconds each time.
const ROUNDS_MAX: u32 = 360;
/// And none for longer, which takes requests and answers none.
const TIME_MAX: Duration = Duration::from_secs(3600);
/// States of HEAD that may yet be put: the newest count.
const ROOTS_MAX: usize = 8;
const NO_PANIC: &str = "no panic while the lock is held";
/// The name of the log in errors.
const LOG: &str = "the log in the store";

/// See the module.
///
/// *Thread safety*: `replay` comes before all else, and one thread at a time calls `place`; the
/// others may be called at any time.
pub struct Slots {
    bucket: Arc<dyn Bucket>,
    /// The epoch in which this directory leads.
    epoch: u64,
    /// The first slot that HEAD needed when it was opened.
    first: Option<SlotId>,
    linger: Duration,
    gives_up: AtomicBool,
    state: Mutex<State>,
    /// A slot is known to be there, or none will be any more.
    changed: Condvar,
}

struct State {
    /// The first slot that isn't known to be there, or wasn't read yet: all before it are.
    open: SlotId,
    /// The checksum of the slot before that, where a reader knows it.
    last_read: Option<u64>,
    /// The slot to be placed next.
    next: SlotId,
    /// The checksum of the one before that.
    before: u64,
    /// The reason why a slot that was placed isn't there, or may not be: nothing behind it is
    /// acknowledged.
    broken: Option<String>,
    /// Slots with entries that are there, and how far the log is with each.
    held: VecDeque<(SlotId, u64)>,
    /// The first slot that is needed besides what a root leads to.
    roots: VecDeque<(ChunkHash, SlotId)>,
    /// Slots that aren't needed any more, since when, and weren't removed yet.
    left: Vec<(i64, SlotId)>,
}

/// Entries that have their slots, which may not be there yet.
pub struct PlacedSlots {
    slots: Vec<PlacedSlot>,
}

struct PlacedSlot {
    id: SlotId,
    through: u64,
    bytes: Bytes,
}

impl Slots {
    pub(super) fn new(
        bucket: Arc<dyn Bucket>,
        epoch: u64,
        first: Option<SlotId>,
        linger: Duration,
    ) -> Slots {
        let begin = SlotId { epoch, number: 0 };
        let state = State {
            open: begin,
            last_read: None,
            next: begin,
            before: NONE_BEFORE,
            broken: None,
            held: VecDeque::new(),
            roots: VecDeque::new(),
            left: Vec::new(),
        };
        let (gives_up, changed) = (AtomicBool::new(false), Condvar::new());
        Slots { bucket, epoch, first, linger, gives_up, state: Mutex::new(state), changed }
    }

    /// What a reader reads next.
    pub(super) fn position(&self) -> SlotId {
        self.state().open
    }

    /// How long entries wait for others, while such as have their slots are on their way.
    pub fn linger(&self) -> Duration {
        self.linger
    }

    /// Gives entries the next slots, in their order. With each comes how far the log is with it.
    pub fn place(&self, entries: Vec<(u64, Bytes)>) -> PlacedSlots {
        let mut state = self.state();
        let mut slots = Vec::with_capacity(entries.len());
        for (through, entry) in entries {
            let id = state.next;
            let content = Content::Entry { through, entry };
            let bytes = Slot { id, before: state.before, content }.encode();
            state.before = checksum(&bytes);
            state.next.number += 1;
            slots.push(PlacedSlot { id, through, bytes });
        }
        PlacedSlots { slots }
    }

    /// Makes slots that have their places. `store_error` gets why that takes long.
    ///
    /// # Errors
    /// [`StoreError::Io`]: another directory leads, or whether they are there is unknown. Nothing
    /// that has a later place is acknowledged here any more.
    pub fn make(
        &self,
        placed: &PlacedSlots,
        report_delay: &dyn Fn(StoreError),
    ) -> Result<(), StoreError> {
        let made = placed.slots.iter().try_for_each(|slot| {
            let is_there = self.create(slot.id, &slot.bytes, report_delay)?;
            is_there.then_some(()).ok_or_else(deposed)
        });
        if let Err(error) = &made {
            self.state().broken.get_or_insert_with(|| error.to_string());
            self.changed.notify_all();
        }
        made
    }

    /// Waits until all slots before those that were made are there, too: what they carry may be
    /// acknowledged then.
    ///
    /// # Errors
    /// [`StoreError::Io`]: that will never be known.
    pub fn await_before(&self, made: PlacedSlots) -> Result<(), StoreError> {
        let Some(first) = made.slots.first() else { return Ok(()) };
        let mut state = self.state();
        while state.open != first.id {
            if let Some(why) = &state.broken {
                // A caller that gets this error may get no other: it says why.
                let what = format!("a slot before it may not be there: {why}");
                return Err(StoreError::io(LOG, io::Error::other(what)));
            }
            state = self.changed.wait(state).expect(NO_PANIC);
        }
        state.open.number += made.slots.len() as u64;
        state.held.extend(made.slots.iter().map(|slot| (slot.id, slot.through)));
        self.changed.notify_all();
        Ok(())
    }

    /// Makes a slot; whether these bytes lie there, and not another's.
    fn create(
        &self,
        id: SlotId,
        bytes: &Bytes,
        report_delay: &dyn Fn(StoreError),
    ) -> Result<bool, StoreError> {
        let begun = steady_now();
        let mut round = 0;
        loop {
            round += 1;
            match create_until_known(&*self.bucket, &id.name(), bytes) {
                Ok(made) => return Ok(made.is_some()),
                Err(error @ BucketError::Unavailable { .. }) => {
                    let error = StoreError::io(LOG, io::Error::other(error));
                    let is_long = ROUNDS_MAX <= round || TIME_MAX < begun.elapsed();
                    if is_long || self.gives_up.load(Ordering::Relaxed) {
                        return Err(error);
                    }
                    report_delay(error);
                }
                Err(refused) => return Err(store_error(refused)),
            }
        }
    }

    /// Waits no longer for a bucket that doesn't answer: what is on its way is unknown.
    pub fn give_up(&self) {
        self.gives_up.store(true, Ordering::Relaxed);
        self.bucket.hang_up();
    }

    /// Says that a manifest with the root `root` needs no slot with which the log is at most
    /// `through`, which is all there. Before the root is swapped to that.
    pub fn note_root(&self, root: ChunkHash, through: u64) {
        let mut state = self.state();
        let needed = state.held.iter().find(|(_, last)| through < *last);
        let needed = needed.map_or(state.open, |(id, _)| *id);
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

    /// Has the slots below `first`, which HEAD needs no more, removed once that has been so for
    /// `keep_micros`. What can't be removed now is by a later call. Returns whether all are gone.
    pub(super) fn remove_below(&self, first: SlotId, now_micros: i64, keep_micros: i64) -> bool {
        let (due, stay): (Vec<_>, Vec<_>) = {
            let mut state = self.state();
            let count = state.held.partition_point(|(id, _)| *id < first);
            let gone = state.held.drain(..count).map(|(id, _)| (now_micros, id));
            let gone = gone.collect::<Vec<_>>();
            let left = std::mem::take(&mut state.left).into_iter().chain(gone);
            left.partition(|(since, _)| keep_micros <= now_micros - since)
        };
        let names: Vec<String> = due.iter().map(|(_, id)| id.name()).collect();
        let are_gone = self.bucket.remove_many(&names).is_ok();
        let is_done = are_gone && stay.is_empty();
        self.state().left.extend(if are_gone {
            stay
        } else {
            due.into_iter().chain(stay).collect()
        });
        is_done
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(NO_PANIC)
    }
}
