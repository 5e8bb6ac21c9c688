//! Applies committed entries to this member's databases, except those that it has proposed itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use frond_db::set::{EntryChanges, first_moment};
use frond_doc::Timestamp;
use frond_quorum::{Applier, Content, Entry, EntryIndex, Log};
use frond_store::StoreError;

use crate::replica::Replica;
use crate::shared::Shared;

/// Applies what was committed.
pub struct Follower {
    /// This member.
    pub replica: Arc<Replica>,
    /// The server whose databases they are.
    pub server: Arc<Shared>,
}

impl Applier for Follower {
    fn apply(&mut self, entry: Entry) {
        let Content::Data(bytes) = entry.content else { return };
        // Entries proposed in this process are written by its engine. Later entries of another
        // leader are applied when the process has started again.
        if bytes.is_empty() || self.replica.led_term.load(Ordering::Acquire) != 0 {
            return;
        }
        match self.server.frond.apply_entry(&bytes) {
            Ok(changes) => self.note(changes),
            Err(error) => self.replica.log_line(&format!("entry {}: {error}", entry.index.0)),
        }
    }
}

impl Follower {
    /// Lets go of what the process remembers and isn't so any more.
    fn note(&self, changes: EntryChanges) {
        if changes.access {
            self.server.accounts.forget();
        }
        if changes.settings {
            self.server.default_concerns.forget();
            self.replica.note_members(&self.server);
            if let Err(error) = self.replica.read_purges(&self.server.frond) {
                self.replica.log_line(&format!("what is to be purged: {error}"));
            }
        }
    }
}

/// Returns the entry up to which a member has applied all, if its last transaction is that of
/// `moment`. Of the one behind it some may be applied too.
///
/// Sequences ascend over the entries of a log, those too that were never committed: a leader that
/// makes one has applied all before it.
///
/// # Errors
/// An error of the log.
pub fn applied(
    log: &dyn Log,
    last: EntryIndex,
    moment: Timestamp,
) -> Result<EntryIndex, StoreError> {
    // All before `low` is applied, empty or cut; whatever is at `high` or behind it isn't.
    let before = log.before();
    let (mut low, mut high) = (before.next().0, last.next().0);
    let mut found = None;
    while low < high {
        let middle = low + (high - low) / 2;
        match first_data(log, middle, high)? {
            Some((index, begins)) if begins <= moment.0 => {
                found = Some(index);
                low = index + 1;
            }
            _ => high = middle,
        }
    }
    Ok(found.map_or(before, |index| EntryIndex(index - 1)))
}

/// The first entry from `from` on, before `end`, that has transactions, and when the first was.
fn first_data(log: &dyn Log, from: u64, end: u64) -> Result<Option<(u64, u64)>, StoreError> {
    for index in from..end {
        for entry in log.read(EntryIndex(index), EntryIndex(index + 1), u64::MAX)? {
            if let Content::Data(bytes) = &entry.content
                && !bytes.is_empty()
            {
                return Ok(Some((index, first_moment(bytes)?.0)));
            }
        }
    }
    Ok(None)
}
