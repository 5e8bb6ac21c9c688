//! Takes over a log: see [`slots`](super), 3.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::Slots;
use super::format::{Content, NONE_BEFORE, Slot};
use crate::bucket::{Bucket, BucketError};
use crate::error::StoreError;
use crate::tiered::errors::{ATTEMPTS_MAX, deposed, store_error};
use crate::tiered::format::{LOG_PREFIX, SlotId};

/// Reads are tried so often.
const READS_MAX: u32 = 9;
/// The number of slots that are read at once where there are many.
const AHEAD_MAX: u64 = 16;

impl Slots {
    /// Hands over all entries that lie there, in their order, and closes the epochs in which they
    /// were made: whatever is acknowledged by then has been handed over.
    ///
    /// # Errors
    /// The error of `apply`; as an error of the store that the bucket doesn't answer, that a
    /// slot is damaged, or that another directory has taken the lead.
    pub fn replay<E: From<StoreError>>(
        &self,
        apply: &mut dyn FnMut(Bytes) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(first) = self.first else { return Ok(()) };
        for epoch in first.epoch..self.epoch {
            let begins = if epoch == first.epoch { first.number } else { 0 };
            self.close(SlotId { epoch, number: begins }, apply)?;
        }
        self.state().open = SlotId { epoch: self.epoch, number: 0 };
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
                let (slot, own) = self.parse(&bytes, id)?;
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
                        // A record sent meanwhile doesn't have it.
                        self.state().open = id;
                        apply(entry)?;
                        self.state().held.push_back((id, through));
                    }
                }
                before = Some(own);
                id.number += 1;
            }
        }
    }

    /// Begins to read at the first slot that HEAD needs, for [`Slots::read_on`].
    pub fn begin_to_read(&self) {
        if let Some(first) = self.first {
            let mut state = self.state();
            (state.open, state.last_read) = (first, (first.number == 0).then_some(NONE_BEFORE));
        }
    }

    /// Hands over the entries behind those that were read before, in their order, up to the first
    /// slot that isn't there; and closes nothing: for a reader beside who leads. What was handed
    /// over is a beginning of what is acknowledged, or about to be.
    ///
    /// # Errors
    /// What `apply` fails with; as an error of the store that the bucket doesn't answer, or that a
    /// slot is damaged.
    pub fn read_on<E: From<StoreError>>(
        &self,
        apply: &mut dyn FnMut(Bytes) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.first.is_none() {
            return Ok(());
        }
        let mut ahead = 1;
        loop {
            let first = self.state().open;
            for found in self.load(first, &mut ahead)? {
                let id = self.state().open;
                let Some(bytes) = found else { return Ok(()) };
                let (slot, own) = self.parse(&bytes, id)?;
                let Content::Entry { entry, .. } = slot.content else {
                    // The next epoch begins only when this one is closed.
                    let mut state = self.state();
                    state.open = SlotId { epoch: id.epoch + 1, number: 0 };
                    state.last_read = Some(NONE_BEFORE);
                    break;
                };
                if self.state().last_read.is_some_and(|before| before != slot.before) {
                    let what = "it isn't the one that the slot before it was followed by";
                    return Err(StoreError::damaged(&id.name(), 0, what).into());
                }
                apply(entry)?;
                let mut state = self.state();
                state.open.number += 1;
                state.last_read = Some(own);
            }
        }
    }

    /// Reads the slot `id`. One that is damaged is fetched again first.
    fn parse(&self, bytes: &Bytes, id: SlotId) -> Result<(Slot, u64), StoreError> {
        let mut parsed = Slot::parse(bytes, id);
        for _ in 1..ATTEMPTS_MAX {
            if parsed.is_ok() {
                break;
            }
            let found = self.load(id, &mut 1)?.into_iter().flatten().next();
            let Some(bytes) = found else { break };
            parsed = Slot::parse(&bytes, id);
        }
        parsed
    }

    /// The slots from `id` on, `ahead` of them, and more from one time to the next.
    fn load(&self, id: SlotId, ahead: &mut u64) -> Result<Vec<Option<Bytes>>, StoreError> {
        for attempt in 0.. {
            let numbers = id.number..id.number + *ahead;
            let names: Vec<String> = numbers.map(|number| SlotId { number, ..id }.name()).collect();
            match self.bucket.load_many(&names) {
                Ok(found) => {
                    *ahead = (*ahead * 2).min(AHEAD_MAX);
                    return Ok(found);
                }
                Err(BucketError::Unavailable { .. }) if attempt < READS_MAX => {
                    self.bucket.wait(attempt + 1);
                    *ahead = 1;
                }
                Err(error) => return Err(store_error(error)),
            }
        }
        unreachable!("the last attempt returns")
    }
}

/// Removes what HEAD, which needs no slot below `first`, says that is left of slots that were to be
/// removed. Of an epoch that ended one slot is its tombstone, and stays: the only one that is
/// listed may be it, and of several each is looked at, since what lies behind a gap is listed too.
pub(in crate::tiered) fn remove_left(bucket: &dyn Bucket, first: SlotId) {
    let mut listed: BTreeMap<u64, Vec<SlotId>> = BTreeMap::new();
    for name in bucket.list(LOG_PREFIX).unwrap_or_default() {
        if let Some(id) = SlotId::of_name(&name).filter(|id| *id < first) {
            listed.entry(id.epoch).or_default().push(id);
        }
    }
    for (epoch, ids) in listed {
        let names: Vec<String> = match epoch < first.epoch {
            true if ids.len() == 1 => continue,
            true => entries_among(bucket, &ids),
            false => ids.iter().map(|id| id.name()).collect(),
        };
        // A slot that can't be removed now is found by a later opening.
        let _ = bucket.remove_many(&names);
    }
}

/// Those of slots that are known to have an entry.
fn entries_among(bucket: &dyn Bucket, ids: &[SlotId]) -> Vec<String> {
    let mut entries = Vec::new();
    for some in ids.chunks(AHEAD_MAX as usize) {
        let names: Vec<String> = some.iter().map(|id| id.name()).collect();
        let Ok(found) = bucket.load_many(&names) else { return entries };
        for ((id, name), bytes) in some.iter().zip(names).zip(found) {
            let slot = bytes.and_then(|bytes| Slot::parse(&bytes, *id).ok());
            if slot.is_some_and(|(slot, _)| matches!(slot.content, Content::Entry { .. })) {
                entries.push(name);
            }
        }
    }
    entries
}
