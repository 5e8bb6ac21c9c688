//! Committed entries on their way to the [`Applier`]: some wait in memory, the others are read from
//! the log, where they have just been written. So a member that catches up takes no more memory
//! than one that is up to date.

use std::collections::VecDeque;

use super::{Answer, Applier, NO_PANIC, Shared, answer_once};
use crate::entry::Entry;
use crate::ids::EntryIndex;

/// Entries that wait hold so many bytes at most.
const UNAPPLIED_BYTES_MAX: usize = if cfg!(test) { 256 } else { 8 << 20 };
/// The bytes that are applied, or read of the log, at once.
const READ_BYTES: u64 = 4 << 20;

#[derive(Default)]
pub(super) struct Unapplied {
    /// The next entries, as far as they fit.
    entries: VecDeque<Entry>,
    bytes: usize,
    /// The entry up to which entries are to be applied.
    up_to: EntryIndex,
    /// The entry up to which they were handed to the applier, or are no more to be read for it.
    pub applied: EntryIndex,
    pub reads: Vec<(EntryIndex, Answer)>,
    pub stopped: bool,
}

impl Unapplied {
    /// Begins with nothing that waits behind `applied`.
    pub fn behind(applied: EntryIndex) -> Unapplied {
        Unapplied { up_to: applied, applied, ..Unapplied::default() }
    }

    /// Has one more entry be applied, the next one.
    pub fn add(&mut self, entry: Entry) {
        let follows = self.entries.back().map_or(self.up_to, |last| last.index);
        let fits = self.bytes + entry.bytes() <= UNAPPLIED_BYTES_MAX;
        self.up_to = entry.index;
        if fits && follows.next() == entry.index {
            self.bytes += entry.bytes();
            self.entries.push_back(entry);
        }
    }

    /// The next entries, in memory or yet to be read: none, and before which one.
    fn take(&mut self) -> (Vec<Entry>, EntryIndex) {
        let applied = self.applied;
        while self.entries.front().is_some_and(|entry| entry.index <= applied) {
            let old = self.entries.pop_front().expect("one was found");
            self.bytes -= old.bytes();
        }
        let end = self.entries.front().map_or(self.up_to.next(), |entry| entry.index);
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while end == applied.next() && bytes < READ_BYTES as usize {
            let Some(entry) = self.entries.pop_front() else { break };
            bytes += entry.bytes();
            taken.push(entry);
        }
        self.bytes -= bytes;
        (taken, end)
    }
}

/// Applies what is committed until the member stops.
pub(super) fn apply_entries(
    shared: &Shared,
    mut applied: EntryIndex,
    mut applier: Box<dyn Applier>,
) {
    loop {
        let mut unapplied = shared.unapplied.lock().expect(NO_PANIC);
        loop {
            let ready = unapplied.reads.extract_if(.., |(index, _)| *index <= applied);
            ready.for_each(|(index, answer)| answer_once(&answer, Ok(index)));
            unapplied.applied = applied;
            if unapplied.stopped {
                return;
            }
            if applied < unapplied.up_to {
                break;
            }
            unapplied = shared.committed.wait(unapplied).expect(NO_PANIC);
        }
        let (mut entries, end) = unapplied.take();
        drop(unapplied);
        if entries.is_empty() {
            entries = match shared.log.read(applied.next(), end, READ_BYTES) {
                Ok(entries) => entries,
                Err(error) => return shared.stop(Some(&format!("the quorum's log: {error}"))),
            };
        }
        for entry in entries {
            applied = entry.index;
            applier.apply(entry);
        }
    }
}
