//! Reads of queued commits: those that have their place in the log and aren't visible yet.
//!
//! A key lock is let go when its holder's commit is queued, so the next holder must see a value
//! that no sync has made durable yet. It begins *ahead*: its snapshot shows everything that has a
//! Sequence, visible or not. Data that it reads there must not reach a client before they are
//! visible.
//!
//! 1. Its commit lies behind all that it read, in the same log. So it is durable only if that is, a
//!    crash that takes that takes it too, and a full disk, which refuses the end of the queue,
//!    refuses it with what it read.
//! 2. A transaction that ends without a commit of its own (nothing matched, a duplicate key, the
//!    answer to a retry) waits until the data it could read are visible.
//! 3. Where a full disk refuses queued commits, those that read ahead and weren't queued behind it
//!    are left with something that will never be. That is marked here *before* the first of these
//!    entries is taken out of the memtables, and each read ahead looks for the mark *after* it has
//!    read: so none is passed on that found half of a transaction. The mark is looked for once more
//!    under the queue's lock when the transaction is queued, and when it ends without a commit; it
//!    runs again then.
//! 4. After any other failure the engine is closed and nothing queued becomes visible: what waits
//!    for that fails, and so does what wants to be queued.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ids::Sequence;

/// The queued commits, from one refusal to the next.
pub(crate) struct QueuedCommits {
    /// Commits with a greater Sequence were refused.
    refused_above: AtomicU64,
}

impl Default for QueuedCommits {
    fn default() -> QueuedCommits {
        QueuedCommits { refused_above: AtomicU64::new(u64::MAX) }
    }
}

impl QueuedCommits {
    /// Marks that all of it above `last` is refused; before any of it is taken back.
    pub fn refuse_above(&self, last: Sequence) {
        self.refused_above.store(last.0, Ordering::SeqCst);
    }
}

/// The part of the queued commits that a snapshot shows.
#[derive(Clone)]
pub(crate) struct QueuedReads {
    /// The last Sequence that it shows.
    pub sequence: Sequence,
    /// The queue that these commits were in.
    pub queued: Arc<QueuedCommits>,
}

impl QueuedReads {
    /// Whether some of what it shows was refused; to be asked after reading.
    pub fn is_refused(&self) -> bool {
        self.queued.refused_above.load(Ordering::Acquire) < self.sequence.0
    }
}
