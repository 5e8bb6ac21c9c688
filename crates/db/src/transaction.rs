//! Transactions of several requests.
//!
//! A [`Transaction`] is one transaction of the engine that requests share, one after the other, over
//! any number of collections, databases and branches. A [`Database`] that came from it reads what the
//! transaction sees (its snapshot and its own writes) and writes into it; nobody else sees that before
//! [`Transaction::commit`].
//!
//! 1. A write is a statement on a savepoint of its own: one that fails is undone, the transaction goes
//!    on. (Who speaks MongoDB's protocol ends it then.)
//! 2. The first committer wins. A write of a document that somebody else has changed since the snapshot
//!    fails at once with a conflict; whatever else conflicts is found when the transaction commits.
//! 3. The commit passes the gates of all that was written (see [`crate::contention`]), so that whoever
//!    removes a database either sees what this transaction added or makes it conflict.
//!
//! Making a collection, and indexes of one that is empty, takes part; whatever else changes the catalog
//! is refused. The commands of versions take no part: they are refused where they would write.
//!
//! *Lock order*: the transaction, then what it has noted; never a gate while one of these is held for a
//! statement, and the commit takes its gates after the transaction was taken out of its lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use frond_engine::{Durability, Snapshot, TreeId};
use frond_query::Code;

use crate::contention::{Outcome, Role, Scope};
use crate::database::{Context, Database};
use crate::error::Error;
use crate::frond::Frond;
use crate::name::DatabaseName;
use crate::reader::Reader;
use crate::retry::{self, RetryKey};

/// A transaction of several requests. Cloning shares it; the last clone to go aborts it.
///
/// *Thread safety*: every method may be called from any number of threads; writes take turns.
#[derive(Clone)]
pub struct Transaction {
    inner: Arc<Inner>,
}

struct Inner {
    frond: Frond,
    /// Where it reads, without its own writes.
    snapshot: Snapshot,
    /// `None` once it has ended.
    own: RwLock<Option<frond_engine::Transaction>>,
    noted: Mutex<Noted>,
}

/// What has to be remembered from one statement to the next.
#[derive(Default)]
struct Noted {
    /// What was written.
    scopes: BTreeSet<Scope>,
    /// Flags that the transaction itself brought into indexes: which of their fields have arrays.
    flags: BTreeMap<TreeId, u8>,
}

impl Transaction {
    pub(crate) fn begin(frond: &Frond) -> Transaction {
        let own = frond.engine().begin();
        let snapshot = own.snapshot().clone();
        let own = RwLock::new(Some(own));
        let inner = Inner { frond: frond.clone(), snapshot, own, noted: Mutex::default() };
        Transaction { inner: Arc::new(inner) }
    }

    /// The version of a database that `name` names, as this transaction sees it; what is read and
    /// written through it is read and written in the transaction.
    pub fn database(&self, name: &str) -> Result<Database, Error> {
        let name = DatabaseName::parse(name)?;
        Database::resolve(&self.inner.frond, name, Context::Within(self.clone()))
    }

    /// Makes all writes visible and, if `durability` says so, durable; `remember` has it remembered
    /// with them that this transaction was committed. The transaction has ended, whatever the answer.
    ///
    /// # Errors
    /// `WriteConflict` if another transaction was first; `NoSuchTransaction` if it had ended.
    pub fn commit(&self, durability: Durability, remember: Option<RetryKey>) -> Result<(), Error> {
        let own = self.inner.own.write().unwrap_or_else(PoisonError::into_inner).take();
        let mut own = own.ok_or_else(ended)?;
        let scopes = std::mem::take(&mut self.noted().scopes);
        if scopes.is_empty() {
            return Ok(());
        }
        if let Some(key) = remember {
            retry::put_committed(&self.inner.frond, &mut own, key)?;
        }
        let _gates = self.inner.frond.contention().pass(&scopes);
        self.inner.frond.commit(own, durability)
    }

    /// Undoes everything; nothing if it has ended.
    pub fn abort(&self) {
        // Letting go of a snapshot may free much: not while the lock is held.
        let own = self.inner.own.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(own);
    }

    /// About how much memory its own writes take.
    pub fn bytes(&self) -> u64 {
        self.own().as_ref().map_or(0, frond_engine::Transaction::bytes)
    }

    /// Reads what the transaction sees. The reader follows its later writes.
    pub(crate) fn reader(&self) -> Reader<'static> {
        Reader::shared(self.inner.frond.engine(), self.clone())
    }

    /// Where it reads, without its own writes.
    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.inner.snapshot
    }

    /// Calls `read` with the engine's transaction.
    ///
    /// # Errors
    /// `NoSuchTransaction` if it has ended.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&frond_engine::Transaction) -> Result<T, Error>,
    ) -> Result<T, Error> {
        read(self.own().as_ref().ok_or_else(ended)?)
    }

    /// Runs one statement: what it wrote is undone if it fails or changed nothing.
    pub(crate) fn run<T>(
        &self,
        scope: Scope,
        role: Role,
        mut body: impl FnMut(&mut frond_engine::Transaction) -> Result<Outcome<T>, Error>,
    ) -> Result<T, Error> {
        if role != Role::Writer {
            return Err(not_in_transaction("this operation changes whole collections, and"));
        }
        let mut own = self.inner.own.write().unwrap_or_else(PoisonError::into_inner);
        let own = own.as_mut().ok_or_else(ended)?;
        let savepoint = own.savepoint();
        match body(own) {
            Ok(Outcome::Commit(answer)) => {
                self.noted().scopes.insert(scope);
                // The statement stays: what it replaced isn't needed any more.
                own.forget_savepoints();
                Ok(answer)
            }
            Ok(Outcome::Discard(answer)) => {
                own.rollback_to(savepoint);
                Ok(answer)
            }
            Err(error) => {
                own.rollback_to(savepoint);
                Err(error)
            }
        }
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
        // A panic in the midst of a statement leaves its savepoint not rolled back: whoever caught it
        // must abort the transaction. Reading it breaks nothing.
        self.inner.own.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
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
