//! Transactions that run again by themselves when another was in the way.
//!
//! 1. A request's transaction runs optimistically. If its commit conflicts, it is run again from
//!    the start, at a new snapshot, and locks from then on what it writes
//!    (`frond_engine::LockMode`): another transaction that wants to write the same waits until it
//!    is done, so that a hundred updaters of one counter take turns instead of all losing to one.
//! 2. For what another transaction has locked, one like it or one of several requests, it waits as
//!    long as its caller does ([`Interrupt`]), and takes its turn in the order of arrival.
//! 3. The statement of a write ([`Frond::transact_statement`]) that runs again sees queued commits
//!    too: the commit it waited for, which let go of its key locks when it had its place in the log
//!    and may not be durable yet. So the updates of one document share syncs. Whatever such an
//!    attempt comes to is answered when all that it could read is visible: with its commit, which
//!    lies behind that in the log, or, if it ends without one (an error, nothing matched), after a
//!    wait. If a full disk refused some of it, the attempt counts for nothing and is run again.
//! 4. A conflict over whole trees, or over what it was found by, has no queue: it runs again after
//!    a short wait that grows.
//! 5. After [`ATTEMPTS_MAX`] the conflict is the caller's.
//! 6. The transactions of a request that has several may share a sync: [`deferred`].
//!
//! *Latches* ([`crate::contention`]) are taken for each attempt, before its transaction begins, and
//! kept until it has ended.

mod deferred;
mod handed_commit;

use std::time::Duration;

use frond_engine::{Durability, EngineError, LockMode, Transaction, Wait};
use frond_query::Code;
use frond_store::io::{pause, steady_now};

use crate::contention::{LatchMode, Scope};
use crate::error::{Error, ErrorKind};
use crate::frond::Frond;
use crate::interrupt::Interrupt;
use crate::schema::CatalogEpoch;
use crate::system;

pub use deferred::Deferred;
pub use handed_commit::HandedCommit;

const ATTEMPTS_MAX: u32 = 2_000;
/// The number of attempts after which a snapshot that expired under one is reported.
const EXPIRED_MAX: u32 = 20;
const WAIT_MICROS_MIN: u64 = 20;
const WAIT_MICROS_MAX: u64 = 2_000;
/// The interval at which a waiting caller checks whether it may go on waiting: it notices an
/// interrupt so late. Asking costs a switch of threads; with hundreds that wait, asking each 10 ms
/// took as much processor time as the work they waited for.
const WAIT_STEP: Duration = Duration::from_millis(100);
/// The time that a request waits for what another transaction has locked, unless its caller ends
/// the wait before.
const WAIT_MILLIS_MAX: u64 = 300_000;

/// Waits until a lock's turn has come, for so long at most; returns whether it has.
///
/// # Errors
/// The error of `interrupt`.
pub(crate) fn wait(wait: &Wait, millis_max: u64, interrupt: &Interrupt) -> Result<bool, Error> {
    let (begun, most) = (steady_now(), Duration::from_millis(millis_max));
    loop {
        let left = most.saturating_sub(begun.elapsed());
        if wait.wait(WAIT_STEP.min(left)) {
            return Ok(true);
        }
        interrupt.check()?;
        if left.is_zero() {
            return Ok(false);
        }
    }
}

/// The decision of a transaction's body about the transaction.
pub enum Outcome<T> {
    /// Commit, then answer.
    Commit(T),
    /// Nothing was changed: answer without a commit.
    Discard(T),
}

impl<T> Outcome<T> {
    /// `Commit` if something was `changed`.
    pub fn commit_if(changed: bool, answer: T) -> Outcome<T> {
        if changed { Outcome::Commit(answer) } else { Outcome::Discard(answer) }
    }

    /// The same, with what `change` makes of the answer.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Outcome::Commit(answer) => Outcome::Commit(change(answer)),
            Outcome::Discard(answer) => Outcome::Discard(change(answer)),
        }
    }
}

/// The body of a transaction, which runs at a moment of the catalog.
type Body<'a> =
    &'a mut dyn FnMut(&mut Transaction, Option<CatalogEpoch>) -> Result<Outcome<()>, Error>;

/// The snapshot that later attempts see.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetrySnapshot {
    /// The visible state.
    Visible,
    /// Queued commits, too: `frond_engine::Engine::begin_ahead`.
    Ahead,
}

/// The terms on which a transaction is run.
struct Terms<'a> {
    scope: Scope,
    /// The other scopes that it concerns.
    more: &'a [Scope],
    mode: LatchMode,
    durability: Durability,
    /// Ends the wait for others.
    interrupt: &'a Interrupt,
    sight: RetrySnapshot,
    /// Takes what isn't to be awaited.
    deferred: Option<&'a Deferred>,
}

impl Terms<'_> {
    /// The stripes of all that it concerns, ascending.
    fn stripes(&self, stripe: fn(&Scope) -> usize) -> Vec<usize> {
        let mut stripes: Vec<usize> = self.more.iter().chain([&self.scope]).map(stripe).collect();
        stripes.sort_unstable();
        stripes.dedup();
        stripes
    }

    /// Ends a transaction that has written nothing, or leaves its end to be awaited.
    fn end(&self, transaction: Transaction) -> Result<(), Error> {
        match self.deferred {
            Some(deferred) => deferred.add(transaction.end_pending(), self.interrupt),
            None => end(transaction, self.interrupt),
        }
    }
}

/// Whether a transaction that met a conflict has what it wanted, after a wait perhaps, and need
/// only begin again.
fn has_its_turn(transaction: &mut Transaction, interrupt: &Interrupt) -> Result<bool, Error> {
    if let Some(blocked) = transaction.blocked() {
        return Ok(wait(&blocked, WAIT_MILLIS_MAX, interrupt)? && transaction.unblock());
    }
    Ok(transaction.is_stale())
}

/// Ends a transaction that has written nothing, once what it rests on is visible.
fn end(transaction: Transaction, interrupt: &Interrupt) -> Result<(), Error> {
    outcome(transaction.end_while(&|| interrupt.check().is_ok()), interrupt)
}

/// Ends a transaction whose attempt failed: it may rest on queued commits. Returns the error of the
/// request; a fold that was interrupted doesn't say by whom.
fn end_failed(transaction: Transaction, interrupt: &Interrupt, error: Error) -> Error {
    let awaited = end(transaction, interrupt);
    let interrupted = match error.code {
        Code::Interrupted => interrupt.check(),
        _ => Ok(()),
    };
    awaited.and(interrupted).err().unwrap_or(error)
}

/// Returns the outcome of a commit or a wait that `interrupt` may have ended.
fn outcome<T>(done: Result<T, EngineError>, interrupt: &Interrupt) -> Result<T, Error> {
    match &done {
        Err(EngineError::Interrupted) => interrupt.check()?,
        Err(EngineError::Unawaited) => interrupt.check().map_err(Error::with_unknown_outcome)?,
        _ => {}
    }
    done.map_err(Error::from)
}

impl Frond {
    /// Runs `body` in a transaction and commits it; both again while commits conflict. `body` must
    /// be harmless to run again: all it changes is the transaction.
    ///
    /// # Errors
    /// The error of `body`; `Conflict` after many attempts; what the commit says.
    #[doc(hidden)]
    pub fn transact<T>(
        &self,
        scope: Scope,
        mode: LatchMode,
        durability: Durability,
        body: impl FnMut(&mut Transaction) -> Result<Outcome<T>, Error>,
    ) -> Result<T, Error> {
        self.transact_over(scope, &[], mode, durability, body)
    }

    /// As `transact`, for what concerns the trees of the scopes `more`, too.
    ///
    /// # Errors
    /// The error of `body`; `Conflict` after many attempts; what the commit says.
    #[doc(hidden)]
    pub fn transact_over<T>(
        &self,
        scope: Scope,
        more: &[Scope],
        mode: LatchMode,
        durability: Durability,
        mut body: impl FnMut(&mut Transaction) -> Result<Outcome<T>, Error>,
    ) -> Result<T, Error> {
        let (interrupt, sight) = (&Interrupt::default(), RetrySnapshot::Visible);
        let terms = Terms { scope, more, mode, durability, interrupt, sight, deferred: None };
        self.attempt(&terms, |transaction, _| body(transaction))
    }

    /// As `transact`, where `interrupt` ends the wait for others, and `body` is given the moment of
    /// the catalog that was noted before the transaction began: what was known of the catalog at
    /// that moment is right in it.
    pub(crate) fn transact_noted<T>(
        &self,
        scope: Scope,
        mode: LatchMode,
        durability: Durability,
        interrupt: &Interrupt,
        body: impl FnMut(&mut Transaction, Option<CatalogEpoch>) -> Result<Outcome<T>, Error>,
    ) -> Result<T, Error> {
        let (more, sight) = (&[][..], RetrySnapshot::Visible);
        let terms = Terms { scope, more, mode, durability, interrupt, sight, deferred: None };
        self.attempt(&terms, body)
    }

    /// As `transact_noted`, for the statement of a write: what `body` comes to must rest on the
    /// transaction alone, and nothing of it may be known to others before this returns. Attempts
    /// may see queued commits. With `deferred`, it may only be known once that was awaited.
    pub(crate) fn transact_statement<T>(
        &self,
        scope: Scope,
        durability: Durability,
        (interrupt, deferred): (&Interrupt, Option<&Deferred>),
        body: impl FnMut(&mut Transaction, Option<CatalogEpoch>) -> Result<Outcome<T>, Error>,
    ) -> Result<T, Error> {
        let (more, mode, sight) = (&[][..], LatchMode::Writer, RetrySnapshot::Ahead);
        self.attempt(&Terms { scope, more, mode, durability, interrupt, sight, deferred }, body)
    }

    /// Waits until it is known what becomes of all that has its place in the log.
    ///
    /// # Errors
    /// The error of `interrupt`; `Closed` if that isn't known before the directory is opened again.
    pub fn await_line(&self, interrupt: &Interrupt) -> Result<(), Error> {
        end(self.engine().begin_ahead(), interrupt)
    }

    fn attempt<T>(
        &self,
        terms: &Terms<'_>,
        mut body: impl FnMut(&mut Transaction, Option<CatalogEpoch>) -> Result<Outcome<T>, Error>,
    ) -> Result<T, Error> {
        let mut answer = None;
        self.attempt_until_done(terms, &mut |transaction, epoch| {
            Ok(body(transaction, epoch)?.map(|given| answer = Some(given)))
        })?;
        Ok(answer.expect("the attempt that was done has answered"))
    }

    /// Attempts until it is done. Not generic: it would be compiled for each of its callers.
    fn attempt_until_done(&self, terms: &Terms<'_>, body: Body<'_>) -> Result<(), Error> {
        let Terms { mode, interrupt, sight, deferred, .. } = *terms;
        let contention = self.contention();
        let stripes = terms.stripes(|scope| scope.collection);
        let databases = terms.stripes(|scope| scope.database);
        let mut kept: Option<Transaction> = None;
        for attempt in 0..ATTEMPTS_MAX {
            if 0 < attempt {
                interrupt.check()?;
            }
            let latches = contention.latches(&databases, &stripes, mode, attempt);
            let moment = self.catalog_cache().moment();
            if mode != LatchMode::Writer {
                // A deferred writer has let go of its latch when it had its place.
                match self.await_line(interrupt) {
                    Err(error) if error.kind == ErrorKind::Conflict => continue,
                    awaited => awaited?,
                }
            }
            let follows_own = deferred.is_some_and(|deferred| deferred.last().is_some());
            let is_first = attempt == 0 && !follows_own;
            let mut transaction = self.begin_attempt(kept.take(), is_first, sight)?;
            transaction.require(deferred.and_then(Deferred::last));
            let mut key_count = 0;
            let result = match body(&mut transaction, moment) {
                Ok(Outcome::Commit(())) => {
                    key_count = transaction.written_count();
                    self.commit_by(transaction, terms)
                }
                Ok(Outcome::Discard(())) => terms.end(transaction),
                Err(error) if error.kind == ErrorKind::Conflict => {
                    drop(latches);
                    kept = self.await_turn(transaction, interrupt, attempt)?;
                    continue;
                }
                // Other transactions have written more than the table of recent writes keeps.
                Err(error) if error.code == Code::SnapshotTooOld && attempt < EXPIRED_MAX => {
                    continue;
                }
                Err(error) => Err(end_failed(transaction, interrupt, error)),
            };
            drop(latches);
            match result {
                Err(error) if error.kind == ErrorKind::Conflict => {
                    // The transaction that was first may not be synced yet: the next attempt sees
                    // it all the same, or its key locks wait for that.
                    if attempt > 0 {
                        pause(self.wait(attempt));
                    }
                }
                result => {
                    if mode == LatchMode::Writer {
                        contention.slow_down(stripes.iter().copied(), key_count);
                    }
                    return result;
                }
            }
        }
        Err(Error::write_conflict())
    }

    /// Waits after a conflict; returns the transaction if its turn has come, to go on with what it
    /// has locked.
    fn await_turn(
        &self,
        mut transaction: Transaction,
        interrupt: &Interrupt,
        attempt: u32,
    ) -> Result<Option<Transaction>, Error> {
        // A transaction that waits for a key mustn't hold memory that others wait for.
        transaction.give_up_writes();
        if has_its_turn(&mut transaction, interrupt)? {
            return Ok(Some(transaction));
        }
        drop(transaction);
        pause(self.wait(attempt));
        Ok(None)
    }

    /// The transaction of an attempt: the one of the last, with what it has locked, or a new one.
    fn begin_attempt(
        &self,
        kept: Option<Transaction>,
        is_first: bool,
        sight: RetrySnapshot,
    ) -> Result<Transaction, Error> {
        Ok(match (kept, sight) {
            (Some(mut transaction), RetrySnapshot::Visible) => {
                transaction.restart()?;
                transaction
            }
            (Some(mut transaction), RetrySnapshot::Ahead) => {
                transaction.restart_ahead();
                transaction
            }
            (None, _) if is_first => self.engine().begin(),
            (None, RetrySnapshot::Visible) => self.engine().begin_as(LockMode::Locking),
            (None, RetrySnapshot::Ahead) => self.engine().begin_ahead(),
        })
    }

    /// Commits an attempt's transaction, or leaves it to be awaited.
    fn commit_by(&self, transaction: Transaction, terms: &Terms<'_>) -> Result<(), Error> {
        let Terms { durability, interrupt, .. } = *terms;
        match terms.deferred {
            Some(deferred) if !system::changes_catalog(&transaction) => {
                let keep_going = || interrupt.check().is_ok();
                let placed = match deferred.hands_on() {
                    true => transaction.commit_handed_on(durability, &keep_going),
                    false => transaction.commit_pending(durability, &keep_going),
                };
                deferred.add(outcome(placed, interrupt)?, interrupt)
            }
            _ => self.commit(transaction, durability, interrupt),
        }
    }

    /// Commits a transaction: the one place where that happens, but for what is deferred.
    pub(crate) fn commit(
        &self,
        transaction: Transaction,
        durability: Durability,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let change =
            system::changes_catalog(&transaction).then(|| self.catalog_cache().begin_change());
        let keep_going = || interrupt.check().is_ok();
        let committed = match change {
            // The known facts about the catalog are right only if this waits for the outcome.
            Some(_) => transaction.commit_while(durability, &keep_going),
            None => transaction.commit_unless_interrupted(durability, &keep_going),
        };
        outcome(committed, interrupt).map(drop)
    }

    /// As [`Frond::commit`], for a caller that has what becomes of it handed on: `None` if that is
    /// known, and all is well.
    pub(crate) fn commit_handed_on(
        &self,
        transaction: Transaction,
        durability: Durability,
        interrupt: &Interrupt,
    ) -> Result<Option<HandedCommit>, Error> {
        if system::changes_catalog(&transaction) {
            return self.commit(transaction, durability, interrupt).map(|()| None);
        }
        let keep_going = || interrupt.check().is_ok();
        let placed = outcome(transaction.commit_handed_on(durability, &keep_going), interrupt)?;
        if placed.can_hand_on() {
            return Ok(Some(HandedCommit::new(placed)));
        }
        outcome(placed.wait(&keep_going), interrupt).map(|()| None)
    }

    /// Returns the time to wait after a lost attempt: the winner becomes visible once its sync is
    /// done, and an attempt before that is lost too.
    fn wait(&self, attempt: u32) -> Duration {
        let most = (WAIT_MICROS_MIN << attempt.min(10)).min(WAIT_MICROS_MAX);
        let mut dice = [0; 8];
        self.chance().fill(&mut dice);
        Duration::from_micros(most / 2 + u64::from_le_bytes(dice) % most)
    }
}
