//! Statements of a transaction: undone and run again on a newer snapshot after a conflict.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use super::{Savepoint, Statement, Transaction, lock};
use crate::error::EngineError;
use crate::ids::TreeId;
use crate::snapshot::Snapshot;
use crate::snapshot::open_transactions::OpenTransaction;
use crate::snapshot::since::TreeState;
use crate::statistics::counters::Counters;
use crate::transaction::held_locks::{LockMode, Wait};

impl Transaction {
    /// Marks this point.
    pub fn savepoint(&mut self) -> Savepoint {
        Savepoint(self.own.savepoint())
    }

    /// Forgets all savepoints, and with them what their writes replaced: it would take memory until
    /// the transaction ends.
    pub fn forget_savepoints(&mut self) {
        self.own.forget_savepoints();
    }

    /// Undoes every write since `savepoint`, which stays valid.
    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        // That what is undone now was possible showed that its tree existed.
        self.note_read();
        self.own.rollback_to(savepoint.0);
    }

    /// Marks the beginning of a statement.
    pub fn begin_statement(&mut self) -> Statement {
        Statement {
            savepoint: self.savepoint(),
            reads: self.reading(|reads| reads.mark()),
            validated: self.own.validated_count(),
        }
    }

    /// Undoes what a statement wrote, and forgets what it read or asked to be unchanged: the client
    /// was shown nothing of it. The transaction keeps what it locked, and its place in a queue.
    pub fn undo_statement(&mut self, statement: Statement) {
        self.own.rollback_to(statement.savepoint.0);
        self.own.forget_validated_since(statement.validated);
        if let Some(mark) = statement.reads {
            self.reading(|reads| reads.forget_since(mark));
        }
    }

    /// The place in the queue of a key that another transaction has locked, if a write of it was
    /// refused for that.
    pub fn blocked(&self) -> Option<Wait> {
        self.held_locks.blocked()
    }

    /// Ends the wait. Returns whether this transaction has the key now; if not, it waited too
    /// short, or it was the youngest of those that waited for one another: it should end then, and
    /// so let the others go on.
    pub fn unblock(&mut self) -> bool {
        let since = self.since();
        self.held_locks.unblock(&self.shared, since)
    }

    /// Whether a write was refused because the key was written since the snapshot: a newer one
    /// shows that.
    pub fn is_stale(&self) -> bool {
        self.held_locks.stale().is_some()
    }

    /// Goes on at what is visible now, with all that was written and locked, if everything that was
    /// read is unchanged; returns whether that is so. An interactive transaction sees the same as
    /// if it had begun now; any other can't do it.
    ///
    /// # Errors
    /// As `commit`: what it has to see is not yet visible, and the engine was closed meanwhile.
    pub fn refresh_snapshot(&mut self) -> Result<bool, EngineError> {
        if let Some(stale) = self.held_locks.stale() {
            self.shared.await_visible(stale)?;
        }
        let newer = self.shared.transactions.begin(&self.shared.current);
        self.move_to(newer)
    }

    /// As [`Transaction::refresh_snapshot`], with no wait: it sees queued commits too
    /// ([`Engine::begin_ahead`](crate::Engine::begin_ahead)), until it moves again. Data that it
    /// finds there may reach a client once [`Transaction::await_shown`] returns, or if the answer
    /// would be the same without them ([`Transaction::dry_run`]).
    ///
    /// # Errors
    /// [`EngineError::Withdrawn`] if what it saw queued until now was refused.
    pub fn refresh_ahead(&mut self) -> Result<bool, EngineError> {
        let newer = self.shared.begin_ahead();
        self.move_to(newer)
    }

    /// Whether a write was refused because of one that is queued: [`Transaction::is_stale`], and
    /// what is visible doesn't show that.
    pub fn is_stale_among_queued(&self) -> bool {
        let visible = self.shared.current.visible();
        self.held_locks.stale().is_some_and(|stale| visible < stale)
    }

    /// Whether it may see what isn't visible.
    pub fn is_ahead(&self) -> bool {
        let visible = self.shared.current.visible();
        self.open.snapshot.as_ahead().is_some_and(|ahead| visible < ahead.sequence)
    }

    /// Waits until all that it can see is visible.
    ///
    /// # Errors
    /// [`EngineError::Withdrawn`] if some of it was refused; [`EngineError::Closed`] if it never
    /// becomes visible in this process.
    pub fn await_shown(&self) -> Result<(), EngineError> {
        self.shared.await_shown(&self.open.snapshot, &|| true)
    }

    /// Runs a statement as if nothing had been written since the snapshot, and undoes it: to learn
    /// what it would have been answered. Keys that it locks stay locked.
    pub fn dry_run<T>(&mut self, run: impl FnOnce(&mut Transaction) -> T) -> T {
        let stale = self.held_locks.ignore_stale();
        let statement = self.begin_statement();
        let found = run(self);
        self.undo_statement(statement);
        if self.blocked().is_some() {
            // Not worth a wait.
            self.unblock();
        }
        self.held_locks.require_visible(stale);
        found
    }

    fn move_to(&mut self, newer: OpenTransaction) -> Result<bool, EngineError> {
        // After the newer snapshot was taken, so that this one's own mark shows every refusal that
        // the newer one doesn't know of.
        let moves = match self.open.snapshot.as_ahead() {
            Some(ahead) if ahead.is_refused() => Err(EngineError::Withdrawn),
            _ => self.may_move_to(&newer.snapshot),
        };
        let ended = match moves {
            Ok(true) => std::mem::replace(&mut self.open, newer),
            _ => newer,
        };
        self.shared.transactions.end(&ended);
        let counters = &self.shared.counters;
        match moves? {
            true => {
                self.held_locks.refreshed();
                Counters::count(&counters.snapshots_refreshed);
                Ok(true)
            }
            false => {
                Counters::count(&counters.snapshots_kept);
                Ok(false)
            }
        }
    }

    fn may_move_to(&self, after: &Snapshot) -> Result<bool, EngineError> {
        let before = &self.open.snapshot;
        let Some(reads) = &self.reads else { return Ok(false) };
        let is_other = |tree: TreeId| {
            let from = |snapshot: &Snapshot| {
                snapshot.generation(tree).ok().map(|(generation, _)| generation.from)
            };
            from(before) != from(after)
        };
        let is_touched = |tree| TreeState::find(before, after, tree) != TreeState::Unchanged;
        let is_changed = |(tree, key): (TreeId, &[u8])| match TreeState::find(before, after, tree) {
            TreeState::Unchanged => false,
            TreeState::Written(window) => after.is_key_written(tree, key, window),
            TreeState::Unknown => true,
        };
        // Keys that it wrote itself are locked, so no other transaction wrote them; but trees may
        // have been replaced.
        Ok(!self.own.written_trees().any(is_other)
            && !self.own.based_trees().chain(self.own.validated_trees()).any(is_touched)
            && !self.own.validated().any(is_changed)
            && lock(reads).are_unchanged(before, after)?)
    }

    /// Begins again, at what is visible now and shows what was in its way; keeps what it has
    /// locked.
    ///
    /// # Errors
    /// As `refresh_snapshot`.
    pub fn restart(&mut self) -> Result<(), EngineError> {
        if let Some(stale) = self.held_locks.stale() {
            self.shared.await_visible(stale)?;
        }
        let newer = self.shared.transactions.begin(&self.shared.current);
        self.restart_at(newer);
        Ok(())
    }

    /// As [`Transaction::restart`], with no wait: it sees queued commits too
    /// ([`Engine::begin_ahead`](crate::Engine::begin_ahead)).
    ///
    /// # Panics
    /// If it is interactive: its statements are answered before it ends.
    pub fn restart_ahead(&mut self) {
        assert!(self.held_locks.lock_mode != LockMode::Interactive);
        let newer = self.shared.begin_ahead();
        self.restart_at(newer);
    }

    fn restart_at(&mut self, newer: OpenTransaction) {
        self.held_locks.refreshed();
        self.give_up_writes();
        self.term = self.shared.kept.term();
        self.has_read = AtomicBool::new(self.reads.is_some());
        self.reads = self.reads.take().map(|_| Mutex::default());
        self.shared.transactions.end(&std::mem::replace(&mut self.open, newer));
    }
}
