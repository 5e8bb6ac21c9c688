//! The key locks that a transaction holds, and the one for which it waits.

use std::sync::Arc;
use std::time::Duration;

use crate::error::EngineError;
use crate::ids::{Sequence, TreeId};
use crate::queue::key_locks::{Acquired, Owner, WaitState, Waiter};
use crate::shared::Shared;
use crate::statistics::counters::Counters;

/// The way a transaction deals with others that write the same keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LockMode {
    /// It finds out when it commits that another was first; only for a key that another holds it
    /// waits. For those of a single statement, which can run again.
    #[default]
    Optimistic,
    /// It locks each key that it writes. For those that have lost once.
    Locking,
    /// It locks each key that it writes, and remembers what it reads, so that its snapshot may
    /// move. For transactions of several statements, each of which is answered before the next.
    Interactive,
}

/// A place in a key's queue.
#[derive(Clone)]
pub struct Wait {
    waiter: Arc<Waiter>,
}

impl Wait {
    /// Waits for the key's holders to end, no longer than `at_most`; returns whether the wait is
    /// over.
    pub fn wait(&self, at_most: Duration) -> bool {
        self.waiter.wait(at_most) != WaitState::Waiting
    }
}

/// The key locks of a transaction.
pub(crate) struct HeldLocks {
    pub lock_mode: LockMode,
    pub owner: Owner,
    /// Fingerprints.
    held: Vec<u64>,
    blocked: Option<Arc<Waiter>>,
    /// It was the youngest of those that waited for one another.
    is_deadlocked: bool,
    /// The last that wrote a key which this transaction wants to write, if that was after its
    /// snapshot.
    stale: Option<Sequence>,
}

impl HeldLocks {
    /// Begins with none.
    pub fn new(lock_mode: LockMode, owner: Owner) -> HeldLocks {
        HeldLocks {
            lock_mode,
            owner,
            held: Vec::new(),
            blocked: None,
            is_deadlocked: false,
            stale: None,
        }
    }

    /// Locks a key before it is written, by one whose snapshot is `since`; `None`: it has read
    /// nothing.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] if another holds it, or has written it since the snapshot.
    pub fn lock(
        &mut self,
        shared: &Shared,
        tree: TreeId,
        key: &[u8],
        since: Option<Sequence>,
    ) -> Result<(), EngineError> {
        let conflict = || EngineError::Conflict { tree, key: key.to_vec() };
        if self.has_lost() {
            // The caller went on in spite of it.
            return Err(conflict());
        }
        let key_locks = &shared.key_locks;
        let fingerprint = shared.fingerprint(tree, key);
        if self.lock_mode == LockMode::Optimistic && !key_locks.may_be_held(fingerprint) {
            return Ok(());
        }
        match key_locks.take(self.owner, fingerprint) {
            Acquired::Held => return Ok(()),
            Acquired::New => self.held.push(fingerprint),
            Acquired::Queued(waiter) => {
                Counters::count(&shared.counters.key_lock_waits);
                self.blocked = Some(waiter);
                return Err(conflict());
            }
            Acquired::Deadlock => {
                Counters::count(&shared.counters.deadlocks);
                self.is_deadlocked = true;
                return Err(conflict());
            }
        }
        // A key that is held can't change any more: it is enough to look once.
        self.stale =
            since.and_then(|since| shared.queue().conflicts.changed_at(fingerprint, since));
        if self.stale.is_some() { Err(conflict()) } else { Ok(()) }
    }

    /// Notes that a key which the transaction wants unchanged was written since its snapshot, if it
    /// was.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] then.
    pub fn check_unchanged(
        &mut self,
        shared: &Shared,
        tree: TreeId,
        key: &[u8],
        since: Sequence,
    ) -> Result<(), EngineError> {
        let fingerprint = shared.fingerprint(tree, key);
        let Some(changed) = shared.queue().conflicts.changed_at(fingerprint, since) else {
            return Ok(());
        };
        self.stale = self.stale.max(Some(changed));
        Err(EngineError::Conflict { tree, key: key.to_vec() })
    }

    fn has_lost(&self) -> bool {
        self.blocked.is_some() || self.stale.is_some() || self.is_deadlocked
    }

    /// The place in the queue of the key that another holds.
    pub fn blocked(&self) -> Option<Wait> {
        self.blocked.as_ref().map(|waiter| Wait { waiter: Arc::clone(waiter) })
    }

    /// Returns the transaction whose writes a snapshot must show before this one can go on.
    pub fn stale(&self) -> Option<Sequence> {
        self.stale
    }

    /// The snapshot shows it now.
    pub fn refreshed(&mut self) {
        self.stale = None;
    }

    /// Goes on in spite of what was written since the snapshot, until `require_visible` is given
    /// that.
    pub fn ignore_stale(&mut self) -> Option<Sequence> {
        self.stale.take()
    }

    /// Adds a transaction whose writes a snapshot must show, besides those that are known already.
    pub fn require_visible(&mut self, stale: Option<Sequence>) {
        self.stale = self.stale.max(stale);
    }

    /// Waits no more for the key that another holds; returns whether this one holds it now.
    pub fn unblock(&mut self, shared: &Shared, since: Option<Sequence>) -> bool {
        let Some(waiter) = self.blocked.take() else { return !self.is_deadlocked };
        let fingerprint = waiter.fingerprint();
        match shared.key_locks.leave(&waiter) {
            WaitState::Granted => {
                self.held.push(fingerprint);
                self.stale =
                    since.and_then(|since| shared.queue().conflicts.changed_at(fingerprint, since));
                true
            }
            WaitState::Deadlock => {
                Counters::count(&shared.counters.deadlocks);
                self.is_deadlocked = true;
                false
            }
            WaitState::Waiting | WaitState::Ended => false,
        }
    }

    /// Lets go of everything.
    pub fn release(&mut self, shared: &Shared) {
        if self.blocked.is_some() {
            self.unblock(shared, None);
        }
        for fingerprint in self.held.drain(..) {
            shared.key_locks.release(self.owner, fingerprint);
        }
    }
}
