//! Turns log retention on for change streams, and off once none has read for long.
//!
//! A term begins and ends between two segments, under the queue's lock ([`crate::log::retained`]).

use crate::error::EngineError;
use crate::ids::Sequence;
use crate::queue::commit_wait::CommitWait;
use crate::queue::conflicts::TransactionStart;
use crate::shared::Shared;
use crate::transaction::Durability;
use crate::transaction::held_locks::{HeldLocks, LockMode};
use crate::transaction::write_set::WriteSet;

impl Shared {
    /// See [`Engine::keep_changes`](crate::Engine::keep_changes).
    ///
    /// # Errors
    /// As there.
    pub fn keep_changes(&self) -> Result<bool, EngineError> {
        if !self.kept.may_be_on() {
            return Ok(false);
        }
        let mut queue = self.queue();
        queue.check_open()?;
        let begins = !self.kept.is_on();
        if begins {
            self.seal(&mut queue);
            self.kept.begin_term(queue.segment, queue.last, self.now_seconds());
        }
        let floor = queue.last;
        drop(queue);
        self.make_durable(floor)?;
        if begins {
            // Something must lie in the new segment: a restart looks there for whether it has
            // events.
            self.commit_nothing()?;
        }
        Ok(true)
    }

    fn commit_nothing(&self) -> Result<(), EngineError> {
        let beginning = TransactionStart {
            sequence: Sequence::ZERO,
            has_read: false,
            without_claims: None,
            gives_back: true,
            ahead: None,
            term: self.kept.term(),
            requires: None,
        };
        let mut locks = HeldLocks::new(LockMode::Optimistic, self.key_locks.owner());
        self.commit(
            beginning,
            WriteSet::default(),
            Durability::Synced,
            &mut locks,
            CommitWait::ENDLESS,
        )?;
        Ok(())
    }

    /// Ends the keeping that was asked for, once no client has read for as long as it lasts.
    pub fn end_unread_term(&self) {
        if !self.kept.is_abandoned(self.now_seconds()) {
            return;
        }
        let mut queue = self.queue();
        self.kept.end_term();
        self.seal(&mut queue);
    }
}
