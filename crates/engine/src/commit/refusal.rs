//! Takes back commits that could not be written because the disk is full: invariant 2 of
//! [`commit`](super).

use crate::log::record::Record;
use crate::log::writer::PendingRecord;
use crate::queue::group::Outcome;
use crate::queue::{Queue, Refusal};
use crate::shared::Shared;

impl Shared {
    /// Takes back what could not be written because the disk is full, and what was queued behind
    /// it. Transactions that are visible already stay pending: they are written when there is room
    /// again.
    pub(super) fn refuse(
        &self,
        queue: &mut Queue,
        mut records: Vec<PendingRecord>,
        written: usize,
        refusal: Refusal,
    ) {
        let unwritten = records.split_off(written);
        if let Some(last) = records.last() {
            queue.written = last.sequence;
        }
        // Before anything is taken back: a transaction that reads ahead looks for it after reading.
        std::mem::take(&mut queue.queued).refuse_above(queue.written.max(queue.visible));
        let waiting = std::mem::take(&mut queue.pending);
        queue.pending_bytes = 0;
        // Their entries must be there before they can be taken out; members need no lock for that.
        let (next, members) = queue.close_group();
        next.await_members(members.len() as u64);
        for pending in unwritten.into_iter().chain(waiting) {
            if pending.sequence <= queue.visible {
                queue.pending_bytes += pending.payload.len();
                queue.pending.push(pending);
            } else {
                self.take_back(&pending);
                queue.refused.insert(pending.sequence, refusal.clone());
            }
        }
        queue.disk_full = Some(refusal);
        next.notify(Outcome::Recheck);
        queue.uncalled.push(next);
    }

    /// Goes on behind the Sequences that were refused: nothing lies there, and a transaction that
    /// begins now must not conflict with them for ever. All that is not refused is visible, or was
    /// written and synced by now: the leader syncs after a refusal, whatever it leads for.
    pub(super) fn pass_refused(&self, queue: &mut Queue) {
        if queue.pending.is_empty() {
            queue.written = queue.last;
        }
        queue.last_live = queue.last;
        queue.visible = queue.last;
        self.make_visible(queue.last);
    }

    fn take_back(&self, pending: &PendingRecord) {
        let sequence = pending.sequence;
        let based = Record::based_trees(&pending.payload);
        let (state, _) = self.current();
        state.memtables().for_each(|memtable| memtable.remove(sequence));
        if !based.is_empty() {
            self.change_state(|state, _| {
                based.iter().for_each(|tree| state.end_generation(*tree, sequence));
            });
        }
    }
}
