//! Transactions of several requests.
//!
//! A [`Transaction`] is one transaction of the engine that requests share, one after the other,
//! over any number of collections, databases and branches. A `Database` that came from it reads
//! what the transaction sees (its snapshot and its own writes) and writes into it; no other reader
//! sees that before [`Transaction::commit`].
//!
//! 1. A write is a statement on a savepoint of its own: one that fails is undone, the transaction
//!    goes on. (A server of MongoDB's protocol ends it then.)
//! 2. Keys that a statement writes are locked until the transaction ends
//!    (`frond_engine::LockMode::Interactive`). A write of a document that another transaction has
//!    locked waits for its end, no longer than [`Frond::write_wait_millis_max`]; of those that wait
//!    for one another the youngest fails.
//! 3. A statement that met what was written since the snapshot is undone and runs again at a newer
//!    one, if everything that the statements before have read is unchanged there: all answers are
//!    those of one snapshot. If it isn't, the statement fails with a conflict.
//! 4. The first write to a collection also asks whether it was created, or got an index, since the
//!    snapshot, and moves the snapshot as in 3: none of that conflicts with a transaction that has
//!    read nothing there. From then on an index is published only when the transaction has ended
//!    ([`OpenWriter`]).
//! 5. The commit passes the latches of all that was written (see [`crate::contention`]), so that a
//!    removal of a database either sees what this transaction added or makes it conflict.
//! 6. A statement may be blocked by a commit that has its place in the log and isn't durable yet.
//!    The statement of a writer goes on at a snapshot that shows it
//!    ([`frond_engine::Transaction::refresh_ahead`]), so that updates of one document share syncs.
//!    Its answer leaves at once only if it rests on nothing that may vanish: if the statement, run
//!    before at the durable snapshot that it has left, came to the same. Else it waits until what
//!    it has seen is visible; so does whatever the transaction reads or writes next. The commit
//!    lies behind what was seen; where a full disk refuses that, it is a conflict.
//!
//! Making a collection, and indexes of one that is empty, takes part; whatever else changes the
//! catalog is refused. The commands of versions take no part: they are refused where they would
//! write.
//!
//! *Lock order*: a statement's turn, the transaction, then what it has noted; the transaction isn't
//! locked while a statement waits, so it can be read and ended. A statement passes the latch of its
//! collection, at once, with its turn taken; no latch is taken while one of the others is held, and
//! the commit takes its latches after the transaction was taken out of its lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use frond_engine::{Durability, LockMode, TreeId, Wait};
use frond_query::Code;
use frond_store::budget::Reservation;

use crate::contention::{LatchMode, OpenWriter, Scope};
use crate::error::{Error, ErrorKind};
use crate::event;
use crate::frond::Frond;
use crate::interrupt::Interrupt;
use crate::schema::CatalogEpoch;
use crate::session::{self, RetryKey};
use crate::system;
use crate::transact::{self, HandedCommit, Outcome, RetrySnapshot};

/// A statement runs again so often, because its snapshot moved each time, before it fails.
const STATEMENT_ATTEMPTS_MAX: u32 = 100;

/// A transaction of several requests. Cloning shares it; the last clone to go aborts it.
///
/// *Thread safety*: every method may be called from any number of threads; writes take turns.
#[derive(Clone)]
pub struct Transaction {
    inner: Arc<Inner>,
}

struct Inner {
    frond: Frond,
    /// Held by the statement that runs, also while it waits.
    turn: Mutex<()>,
    /// `None` once it has ended.
    own: RwLock<Option<frond_engine::Transaction>>,
    noted: Mutex<StatementMarks>,
    /// Whether statements have looked, from the first on, for branches that take no direct writes.
    looks_for_closed: bool,
}

/// The marks that are kept from one statement to the next.
#[derive(Default)]
struct StatementMarks {
    /// The scopes that were written.
    scopes: BTreeSet<Scope>,
    /// The collections that may have been written.
    open: Option<OpenWriter>,
    /// Flags that the transaction itself brought into indexes: which of their fields have arrays.
    flags: BTreeMap<TreeId, u8>,
    /// The memory that its writes take, out of what all requests share.
    held: Option<Reservation>,
    /// The moment of the catalog, from before the snapshot was taken; `None` once the transaction
    /// has changed the catalog itself.
    moment: Option<CatalogEpoch>,
    /// The bytes written to branches with a policy.
    written: BTreeMap<(String, String), u64>,
}

/// What is kept until a commit has its end: the mark that its collections are written, the memory,
/// and what policies learn then.
type Kept = (Option<OpenWriter>, Option<Reservation>, WrittenBranches);

/// The branches that were written, which policies look at when it is dropped: what they see is the
/// transaction's, or they find nothing.
pub(crate) struct WrittenBranches {
    frond: Frond,
    bytes: BTreeMap<(String, String), u64>,
}

impl Drop for WrittenBranches {
    fn drop(&mut self) {
        for ((database, branch), bytes) in &self.bytes {
            self.frond.written().note(database, branch, *bytes, || self.frond.time_millis());
        }
    }
}

/// The body of a statement.
type StatementBody<'a> =
    &'a mut dyn FnMut(&mut frond_engine::Transaction, Aim) -> Result<Outcome<()>, Error>;

/// The purpose of running a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aim {
    /// To be answered.
    Answer,
    /// To learn what it would be answered without queued commits.
    Foresee,
}

/// Whether a client is shown the same by two answers.
pub(crate) type IsSame<T> = fn(&T, &T) -> bool;

/// The terms on which a statement is run.
struct Terms<'a> {
    scope: Scope,
    sight: RetrySnapshot,
    /// Whether its answer may be the same without queued commits.
    foresees: bool,
    /// Ends the wait for others.
    interrupt: &'a Interrupt,
}

/// The outcome of an attempt to run a statement.
enum Attempted {
    Done,
    /// Another transaction has locked what it writes.
    Blocked(Wait),
    /// The snapshot has moved.
    Moved,
}

impl Frond {
    /// Begins a transaction of several requests, at what is visible now.
    pub fn begin(&self) -> Transaction {
        Transaction::begin(self)
    }
}

impl Transaction {
    pub(crate) fn begin(frond: &Frond) -> Transaction {
        let moment = frond.catalog_cache().moment();
        let looks_for_closed = frond.written().some_closed();
        let own = RwLock::new(Some(frond.engine().begin_as(LockMode::Interactive)));
        let noted = Mutex::new(StatementMarks { moment, ..StatementMarks::default() });
        let turn = Mutex::default();
        let inner = Inner { frond: frond.clone(), turn, own, noted, looks_for_closed };
        Transaction { inner: Arc::new(inner) }
    }

    /// The moment of the catalog whose records this transaction sees.
    pub(crate) fn moment(&self) -> Option<CatalogEpoch> {
        self.noted().moment
    }

    /// The data directory.
    pub(crate) fn frond(&self) -> &Frond {
        &self.inner.frond
    }

    /// Notes for policies that a statement wrote to a branch.
    pub(crate) fn note_written(&self, database: &str, branch: &str, bytes: u64) {
        if bytes == 0 || !self.inner.frond.written().watches(database) {
            return;
        }
        let key = (database.to_owned(), branch.to_owned());
        *self.noted().written.entry(key).or_default() += bytes;
    }

    /// Makes all writes visible and, if `durability` says so, durable; `remember` has it remembered
    /// with them that this transaction was committed. The transaction has ended, whatever the
    /// answer.
    ///
    /// # Errors
    /// `WriteConflict` if another transaction was first; `NoSuchTransaction` if it had ended;
    /// [`ErrorKind::Unknown`] if only opening the directory again shows whether it was committed.
    pub fn commit(&self, durability: Durability, remember: Option<RetryKey>) -> Result<(), Error> {
        self.commit_unless_interrupted(durability, remember, &Interrupt::default())
    }

    /// As [`Transaction::commit`], where `interrupt` ends the wait for a bucket that has the log.
    ///
    /// # Errors
    /// As `commit`; what `interrupt` says, as [`ErrorKind::Unknown`]: it may have been committed,
    /// or may be yet, and [`Frond::await_line`] waits for that.
    pub fn commit_unless_interrupted(
        &self,
        durability: Durability,
        remember: Option<RetryKey>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        self.commit_by(remember, |own, _| self.inner.frond.commit(own, durability, interrupt))
    }

    /// As [`Transaction::commit_unless_interrupted`], for a caller that has what becomes of it
    /// handed on: `None` if that is known, and all is well.
    ///
    /// # Errors
    /// As there.
    pub fn commit_handed_on(
        &self,
        durability: Durability,
        remember: Option<RetryKey>,
        interrupt: &Interrupt,
    ) -> Result<Option<HandedCommit>, Error> {
        self.commit_by(remember, |own, kept| {
            let placed = self.inner.frond.commit_handed_on(own, durability, interrupt)?;
            Ok(placed.map(|placed| placed.keeping(kept)))
        })
    }

    /// Takes what is written, and has `commit` commit it, if it is anything.
    fn commit_by<T: Default>(
        &self,
        remember: Option<RetryKey>,
        commit: impl FnOnce(frond_engine::Transaction, Kept) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let own = self.inner.own.write().unwrap_or_else(PoisonError::into_inner).take();
        let mut own = own.ok_or_else(ended)?;
        let (scopes, kept) = {
            let mut noted = self.noted();
            let (frond, bytes) = (self.inner.frond.clone(), std::mem::take(&mut noted.written));
            let kept = (noted.open.take(), noted.held.take(), WrittenBranches { frond, bytes });
            (std::mem::take(&mut noted.scopes), kept)
        };
        if scopes.is_empty() {
            return Ok(T::default());
        }
        if let Some(key) = remember {
            session::put_committed(&mut own, key, self.inner.frond.time_millis())?;
            event::record_transaction(&mut own, key);
        }
        let _gates = self.inner.frond.contention().pass(&scopes, own.written_count());
        // Closing a branch waits for all holders of these latches, and no statement has looked.
        if !self.inner.looks_for_closed && self.inner.frond.written().some_closed() {
            return Err(Error::write_conflict());
        }
        commit(own, kept)
    }

    /// Undoes everything; nothing if it has ended.
    pub fn abort(&self) {
        // Letting go of a snapshot may free much: not while the lock is held.
        let own = self.inner.own.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(own);
        let (open, held) = {
            let mut noted = self.noted();
            (noted.open.take(), noted.held.take())
        };
        drop((open, held));
    }

    /// Charges what its writes take.
    ///
    /// # Errors
    /// `TransactionTooLarge` if all requests have no more memory.
    pub(crate) fn hold(&self, bytes: u64) -> Result<(), Error> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut noted = self.noted();
        let held = noted.held.get_or_insert_with(|| {
            Reservation::new(usize::MAX, Some(Arc::clone(self.inner.frond.memory_budget())))
        });
        held.hold(bytes).map_err(|exceeded| {
            let message =
                format!("the transaction's writes take {bytes} bytes, more than {exceeded}");
            Error::invalid(Code::TransactionTooLarge, message)
        })
    }

    /// About how much memory its own writes take.
    pub fn bytes(&self) -> u64 {
        self.own().as_ref().map_or(0, frond_engine::Transaction::bytes)
    }

    /// Calls `read` with the engine's transaction.
    ///
    /// # Errors
    /// `NoSuchTransaction` if it has ended.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&frond_engine::Transaction) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let own = self.own();
        let own = own.as_ref().ok_or_else(ended)?;
        own.await_shown()?;
        read(own)
    }

    /// Runs one statement: what it wrote is undone if it fails or changed nothing. `body` may run
    /// several times.
    pub(crate) fn run<T>(
        &self,
        scope: Scope,
        mode: LatchMode,
        interrupt: &Interrupt,
        mut body: impl FnMut(&mut frond_engine::Transaction) -> Result<Outcome<T>, Error>,
    ) -> Result<T, Error> {
        if mode != LatchMode::Writer {
            return Err(not_in_transaction("this operation changes whole collections, and"));
        }
        let mut answer = None;
        let terms = Terms { scope, sight: RetrySnapshot::Visible, foresees: false, interrupt };
        self.run_until_done(
            &terms,
            &mut |own, _| Ok(body(own)?.map(|given| answer = Some(given))),
        )?;
        Ok(answer.expect("the statement that was done has answered"))
    }

    /// As `run`, for the statement of a writer, which may see queued commits (6): what `body`
    /// comes to must rest on the transaction alone. With `is_same` it is foreseen what the answer
    /// would be without that.
    pub(crate) fn run_statement<T>(
        &self,
        scope: Scope,
        interrupt: &Interrupt,
        is_same: Option<IsSame<T>>,
        mut body: impl FnMut(&mut frond_engine::Transaction) -> Result<Outcome<T>, Error>,
    ) -> Result<T, Error> {
        let (mut answer, mut foreseen) = (None, None);
        let foresees = is_same.is_some();
        let terms = Terms { scope, sight: RetrySnapshot::Ahead, foresees, interrupt };
        let done = self.run_until_done(&terms, &mut |own, aim| {
            let kept = match aim {
                Aim::Answer => &mut answer,
                Aim::Foresee => &mut foreseen,
            };
            Ok(body(own)?.map(|given| *kept = Some(given)))
        });
        let is_foreseen = match (is_same, &answer, &foreseen) {
            (Some(is_same), Some(answer), Some(foreseen)) if done.is_ok() => {
                is_same(answer, foreseen)
            }
            _ => false,
        };
        if !is_foreseen {
            self.read(|_| Ok(()))?;
        }
        done?;
        Ok(answer.expect("the statement that was done has answered"))
    }

    /// Runs until it is done. Not generic: it would be compiled for each of its callers.
    fn run_until_done(&self, terms: &Terms<'_>, body: StatementBody<'_>) -> Result<(), Error> {
        // Its commit would be refused; the client had better know now.
        self.inner.frond.check_writable()?;
        let _turn = self.inner.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.read(|_| Ok(()))?;
        let millis_max = self.inner.frond.write_wait_millis_max();
        let is_first = self.enter(terms.scope);
        for _ in 0..STATEMENT_ATTEMPTS_MAX {
            match self.attempt(terms, is_first, body)? {
                Attempted::Done => return Ok(()),
                Attempted::Moved => {}
                Attempted::Blocked(wait) => {
                    let waited = transact::wait(&wait, millis_max, terms.interrupt);
                    // First: a statement that gives up leaves the queue.
                    let has_its_turn = self.write(|own| Ok(own.unblock()))?;
                    if !(waited? && has_its_turn) {
                        return Err(Error::write_conflict());
                    }
                    self.catch_up(terms, body)?;
                }
            }
        }
        Err(Error::write_conflict())
    }

    /// Has the publication of an index of the collection wait for this transaction; returns whether
    /// this is its first write.
    fn enter(&self, scope: Scope) -> bool {
        let open = self.noted().open.take();
        let mut open = open.unwrap_or_else(|| OpenWriter::new(self.inner.frond.contention()));
        let is_first = open.enter(scope);
        self.noted().open = Some(open);
        is_first
    }

    fn attempt(
        &self,
        terms: &Terms<'_>,
        is_first: bool,
        body: StatementBody<'_>,
    ) -> Result<Attempted, Error> {
        let mut own = self.inner.own.write().unwrap_or_else(PoisonError::into_inner);
        let own = own.as_mut().ok_or_else(ended)?;
        let statement = own.begin_statement();
        let done = body(own, Aim::Answer).and_then(|outcome| {
            if is_first && matches!(outcome, Outcome::Commit(_)) {
                own.check_validated(statement)?;
            }
            Ok(outcome)
        });
        match done {
            Ok(Outcome::Commit(())) => {
                let changes_catalog = system::changes_catalog(own);
                let mut noted = self.noted();
                noted.scopes.insert(terms.scope);
                noted.moment = noted.moment.filter(|_| !changes_catalog);
                // The statement stays: what it replaced isn't needed any more.
                own.forget_savepoints();
                Ok(Attempted::Done)
            }
            Ok(Outcome::Discard(())) => {
                own.rollback_to(statement.savepoint());
                Ok(Attempted::Done)
            }
            Err(error) if error.kind == ErrorKind::Conflict => {
                own.undo_statement(statement);
                if let Some(wait) = own.blocked() {
                    return Ok(Attempted::Blocked(wait));
                }
                let has_moved = self.move_if_stale(own, terms, body)?;
                if has_moved { Ok(Attempted::Moved) } else { Err(error) }
            }
            Err(error) => {
                own.rollback_to(statement.savepoint());
                Err(error)
            }
        }
    }

    /// Has the transaction see, after a wait, what it waited for.
    ///
    /// # Errors
    /// `WriteConflict` if what it has read before has changed.
    fn catch_up(&self, terms: &Terms<'_>, body: StatementBody<'_>) -> Result<(), Error> {
        self.write(|own| {
            if own.is_stale() && !self.move_if_stale(own, terms, body)? {
                return Err(Error::write_conflict());
            }
            Ok(())
        })
    }

    /// Moves the snapshot of a transaction that ran into something newer; returns whether it did.
    fn move_if_stale(
        &self,
        own: &mut frond_engine::Transaction,
        terms: &Terms<'_>,
        body: StatementBody<'_>,
    ) -> Result<bool, Error> {
        if !own.is_stale() {
            return Ok(false);
        }
        let goes_ahead = terms.sight == RetrySnapshot::Ahead && own.is_stale_among_queued();
        if goes_ahead && terms.foresees && !own.is_ahead() {
            // An error in the dry run is ignored.
            let _ = own.dry_run(|own| body(own, Aim::Foresee));
        }
        // Noted first: see the cache. The transaction's own changes stay.
        let moment = self.inner.frond.catalog_cache().moment();
        let has_moved = if goes_ahead { own.refresh_ahead() } else { own.refresh_snapshot() }?;
        if has_moved {
            let mut noted = self.noted();
            noted.moment = noted.moment.and(moment);
        }
        Ok(has_moved)
    }

    fn write<T>(
        &self,
        write: impl FnOnce(&mut frond_engine::Transaction) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut own = self.inner.own.write().unwrap_or_else(PoisonError::into_inner);
        write(own.as_mut().ok_or_else(ended)?)
    }

    /// Notes that the transaction put an entry with these flags into an index.
    pub(crate) fn note_flags(&self, index: TreeId, flags: u8) {
        *self.noted().flags.entry(index).or_default() |= flags;
    }

    /// The flags of the entries that the transaction put into an index.
    pub(crate) fn made_flags(&self, index: TreeId) -> u8 {
        self.noted().flags.get(&index).copied().unwrap_or(0)
    }

    fn own(&self) -> RwLockReadGuard<'_, Option<frond_engine::Transaction>> {
        // A panic in the midst of a statement leaves its savepoint not rolled back: the caller that
        // caught it must abort the transaction. Reading it breaks nothing.
        self.inner.own.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn noted(&self) -> MutexGuard<'_, StatementMarks> {
        self.inner.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ended() -> Error {
    Error::invalid(Code::NoSuchTransaction, "the transaction has been committed or aborted")
}

/// The refusal of what can't be part of a transaction.
pub(crate) fn not_in_transaction(what: &str) -> Error {
    let message = format!("{what} can't be part of a transaction: run it before or after");
    Error::invalid(Code::OperationNotSupportedInTransaction, message)
}
