//! The sessions that clients have, and the transactions that are open in them.
//!
//! A client makes its sessions' ids itself; the server learns of a session by the first command in
//! it and forgets one that was not used for 30 minutes. Most sessions are implicit (drivers put one
//! around each command), so what every command does is one look into one of several tables.
//!
//! *Thread safety*: a session's table is locked for moments only. A transaction has a lock of its
//! own, held while one of its statements runs: a second statement waits.
//!
//! *Lock order*: a transaction's slot, then a session's table, then the table of what is open.
//! A thread that holds a table waits for no slot.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use frond_db::{Error, Transaction};
use frond_query::Code;

use crate::common_fields::SessionId;
use crate::limits::{
    OPEN_TRANSACTIONS_BYTES_MAX, OPEN_TRANSACTIONS_MAX, SESSION_IDLE_MAX, SESSIONS_MAX,
};
use crate::peer::Presence;
use crate::stable_api::ApiParameters;

/// Sessions are spread over so many tables.
const TABLES: usize = 16;

/// The server's record of a session.
struct Session {
    used: Instant,
    /// The last number of a write or transaction in it.
    number: Option<i64>,
    /// The transaction of that number.
    slot: Option<Arc<Slot>>,
}

/// A transaction, or what is left of it: how it ended.
pub struct Slot {
    /// Its session.
    pub session: SessionId,
    /// Its number.
    pub number: i64,
    /// The stable API's fields of its first command.
    pub api: ApiParameters,
    began: Instant,
    has_cursors: AtomicBool,
    /// The connection of the last statement.
    client: Mutex<Arc<Presence>>,
    /// The memory of its writes, as far as it was added to the sum of all.
    bytes: AtomicU64,
    /// The transaction, for a thread that ends it while one of its statements holds the state.
    transaction: Transaction,
    state: Mutex<State>,
}

/// The state of a transaction.
///
/// `begin` -> `Open` -> `Unknown` when `commit` begins -> `Committed` or `Aborted` as soon as the
/// outcome is known; or `Open` -> `Aborted` by `abort`, by a statement that fails, by time, by a
/// newer transaction in the session, or with its session. Nothing leads back. After a failed write
/// or sync of the log it stays `Unknown` while the process lives; the next one finds in the log
/// what became of it.
pub enum State {
    /// In progress.
    Open(Transaction),
    /// Its commit has begun, and whether it is kept isn't known.
    Unknown,
    /// It was committed.
    Committed,
    /// It was aborted.
    Aborted,
}

impl Slot {
    /// Waits for the statement that runs, if one does, and holds others up.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        // The state changes in single assignments, so a panic can't have broken it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, but `None` instead of waiting.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Ends the transaction under a statement that waits for another transaction, or as soon as the
    /// statement does anything: it fails then. A transaction that has ended stays as it is.
    pub fn cut_short(&self) {
        self.transaction.abort();
    }

    /// Remembers that a cursor was opened in it.
    pub fn note_cursor(&self) {
        self.has_cursors.store(true, Ordering::Relaxed);
    }

    /// Whether cursors were opened in it.
    pub fn has_cursors(&self) -> bool {
        self.has_cursors.load(Ordering::Relaxed)
    }

    /// Notes over which connection a statement came.
    pub fn note_client(&self, client: &Arc<Presence>) {
        *lock(&self.client) = Arc::clone(client);
    }

    /// How long it has been open.
    pub fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Whether it is open for too long.
    pub fn is_expired(&self, now: Instant, lifetime: Duration) -> bool {
        now.duration_since(self.began) >= lifetime
    }
}

/// Counts for `serverStatus`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SessionCounts {
    /// Sessions that are known.
    pub sessions: usize,
    /// Transactions in progress.
    pub open: usize,
    /// Transactions since the server began.
    pub started: u64,
    /// The number of these that were committed.
    pub committed: u64,
    /// The number of these that were aborted.
    pub aborted: u64,
}

/// The sessions of a server.
pub struct Sessions {
    tables: [Mutex<HashMap<SessionId, Session>>; TABLES],
    keys: RandomState,
    /// Transactions in progress.
    open: Mutex<HashMap<SessionId, Arc<Slot>>>,
    /// The bytes that the writes of all of these take.
    bytes: AtomicU64,
    started: AtomicU64,
    committed: AtomicU64,
    aborted: AtomicU64,
}

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions {
            tables: Default::default(),
            keys: RandomState::new(),
            open: Mutex::default(),
            bytes: AtomicU64::new(0),
            started: AtomicU64::new(0),
            committed: AtomicU64::new(0),
            aborted: AtomicU64::new(0),
        }
    }
}

impl Sessions {
    /// Notes that a session is used.
    ///
    /// # Errors
    /// `TooManyLogicalSessions`.
    pub fn touch(&self, id: SessionId, now: Instant) -> Result<(), Error> {
        self.with(id, now, |_| ()).map(|_| ())
    }

    /// Notes the number of a write that may be sent again. Returns the transaction that this ends.
    ///
    /// # Errors
    /// `TransactionTooOld` if the session has gone on; others if the number is a transaction's.
    pub fn note_write(
        &self,
        id: SessionId,
        number: i64,
        now: Instant,
    ) -> Result<Option<Arc<Slot>>, Error> {
        self.with(id, now, |session| {
            check_not_too_old(session, id, number, "retryable write")?;
            if session.number == Some(number) && session.slot.is_some() {
                let message = "must specify autocommit=false on all operations of a \
                               multi-statement transaction.";
                return Err(Error::invalid(Code::InvalidOptions, message));
            }
            session.number = Some(number);
            Ok(session.slot.take())
        })?
    }

    /// The sessions that are known, each with when it was used last, in the order of their ids.
    pub fn list(&self) -> Vec<(SessionId, Instant)> {
        let mut all = Vec::new();
        for table in &self.tables {
            all.extend(lock(table).iter().map(|(id, session)| (*id, session.used)));
        }
        all.sort_by_key(|(id, _)| (id.id, id.user));
        all
    }

    /// Whether the server has seen no number of a session yet.
    pub fn is_first(&self, id: SessionId) -> bool {
        self.table(id).get(&id).is_none_or(|session| session.number.is_none())
    }

    /// Whether the number of a session is above all that the server has seen of it.
    pub fn is_new(&self, id: SessionId, number: i64) -> bool {
        let table = self.table(id);
        table.get(&id).is_none_or(|session| session.number.is_none())
            || table.get(&id).is_some_and(|session| session.number < Some(number))
    }

    /// The transaction that is to be aborted before another one can begin: where no more may be
    /// open, the oldest of those whose client is gone. A driver that has lost the connection in a
    /// statement runs the whole transaction again.
    pub fn in_the_way(&self, now: Instant) -> Option<Arc<Slot>> {
        let open = lock(&self.open);
        if open.len() < OPEN_TRANSACTIONS_MAX {
            return None;
        }
        let gone = open.values().filter(|slot| lock(&slot.client).is_gone(now));
        gone.min_by_key(|slot| slot.began).map(Arc::clone)
    }

    /// Enters a transaction that was begun, by a statement that came over the connection of
    /// `client`. Returns its slot, and that of the one before in its session.
    ///
    /// # Errors
    /// `TransactionTooOld`; `ConflictingOperationInProgress` if there is one of this number
    /// already; `TemporarilyUnavailable` if too many are open.
    pub fn begin(
        &self,
        (id, number): (SessionId, i64),
        (api, client): (ApiParameters, &Arc<Presence>),
        now: Instant,
        begin: impl FnOnce() -> Transaction,
    ) -> Result<(Arc<Slot>, Option<Arc<Slot>>), Error> {
        if lock(&self.open).len() >= OPEN_TRANSACTIONS_MAX {
            let message = format!("{OPEN_TRANSACTIONS_MAX} transactions are open: try again later");
            return Err(Error::invalid(Code::TemporarilyUnavailable, message));
        }
        let entered = self.with(id, now, |session| {
            check_not_too_old(session, id, number, "transaction")?;
            if session.number == Some(number) {
                let message = format!(
                    "Cannot start a transaction at given transaction number {number}: a \
                     transaction or write with the same number has been started"
                );
                return Err(Error::invalid(Code::ConflictingOperationInProgress, message));
            }
            let transaction = begin();
            let slot = Arc::new(Slot {
                session: id,
                number,
                api,
                began: now,
                has_cursors: AtomicBool::new(false),
                client: Mutex::new(Arc::clone(client)),
                bytes: AtomicU64::new(0),
                transaction: transaction.clone(),
                state: Mutex::new(State::Open(transaction)),
            });
            session.number = Some(number);
            let before = session.slot.replace(Arc::clone(&slot));
            // Before another request can find the slot: one that ended first, or a later one of the
            // session, would be entered wrongly and stay, or never be found by the sweep that ends
            // old ones.
            lock(&self.open).insert(id, Arc::clone(&slot));
            Ok((slot, before))
        })??;
        self.started.fetch_add(1, Ordering::Relaxed);
        Ok(entered)
    }

    /// Finds the transaction that a command says it belongs to; `None` if the server doesn't know
    /// the number.
    ///
    /// # Errors
    /// `TransactionTooOld` if the session has gone on.
    pub fn find(
        &self,
        id: SessionId,
        number: i64,
        now: Instant,
    ) -> Result<Option<Arc<Slot>>, Error> {
        self.with(id, now, |session| {
            check_not_too_old(session, id, number, "transaction")?;
            Ok(session.slot.as_ref().filter(|slot| slot.number == number).map(Arc::clone))
        })?
    }

    /// Notes what the writes of a transaction take now.
    ///
    /// # Errors
    /// `TransactionTooLarge` if all that are open take too much.
    pub fn note_bytes(&self, slot: &Slot, bytes: u64) -> Result<(), Error> {
        let before = slot.bytes.swap(bytes, Ordering::Relaxed);
        let sum = self.bytes.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
        let sum = sum.wrapping_add(bytes.wrapping_sub(before));
        if sum > OPEN_TRANSACTIONS_BYTES_MAX {
            let message = format!(
                "the open transactions take {sum} bytes, at most {OPEN_TRANSACTIONS_BYTES_MAX} \
                 are allowed"
            );
            return Err(Error::invalid(Code::TransactionTooLarge, message));
        }
        Ok(())
    }

    /// Ends a transaction whose lock the caller holds: `ended` is what is known of its outcome.
    pub fn end(&self, slot: &Arc<Slot>, state: &mut State, ended: State) {
        let counter = match ended {
            State::Committed => Some(&self.committed),
            State::Aborted => Some(&self.aborted),
            State::Open(_) | State::Unknown => None,
        };
        let before = std::mem::replace(state, ended);
        if let (State::Open(_) | State::Unknown, Some(counter)) = (&before, counter) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        if let State::Open(transaction) = before {
            transaction.abort();
        }
        self.bytes.fetch_sub(slot.bytes.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        let mut open = lock(&self.open);
        if open.get(&slot.session).is_some_and(|found| Arc::ptr_eq(found, slot)) {
            open.remove(&slot.session);
        }
    }

    /// Whether a transaction is open.
    pub fn has_open(&self) -> bool {
        !lock(&self.open).is_empty()
    }

    /// The transactions that are open for too long.
    pub fn expired(&self, now: Instant, lifetime: Duration) -> Vec<Arc<Slot>> {
        let open = lock(&self.open);
        open.values().filter(|slot| slot.is_expired(now, lifetime)).map(Arc::clone).collect()
    }

    /// The transactions that are open in sessions; `None`: in all.
    pub fn open_in(&self, sessions: Option<&[SessionId]>) -> Vec<Arc<Slot>> {
        let sessions: Option<HashSet<SessionId>> =
            sessions.map(|sessions| sessions.iter().copied().collect());
        let is_meant = |slot: &&Arc<Slot>| {
            sessions.as_ref().is_none_or(|sessions| sessions.contains(&slot.session))
        };
        lock(&self.open).values().filter(is_meant).map(Arc::clone).collect()
    }

    /// Forgets the sessions that no client has used for long, and returns them.
    pub fn expire(&self, now: Instant) -> Vec<SessionId> {
        let mut expired = Vec::new();
        for table in &self.tables {
            lock(table).retain(|id, session| {
                let is_old = now.duration_since(session.used) >= SESSION_IDLE_MAX;
                if is_old {
                    expired.push(*id);
                }
                !is_old
            });
        }
        expired
    }

    /// Counts for `serverStatus`.
    pub fn counts(&self) -> SessionCounts {
        SessionCounts {
            sessions: self.tables.iter().map(|table| lock(table).len()).sum(),
            open: lock(&self.open).len(),
            started: self.started.load(Ordering::Relaxed),
            committed: self.committed.load(Ordering::Relaxed),
            aborted: self.aborted.load(Ordering::Relaxed),
        }
    }

    fn table(&self, id: SessionId) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        let position = self.keys.hash_one(id) as usize % TABLES;
        lock(&self.tables[position])
    }

    fn with<T>(
        &self,
        id: SessionId,
        now: Instant,
        work: impl FnOnce(&mut Session) -> T,
    ) -> Result<T, Error> {
        let mut table = self.table(id);
        if let Some(session) = table.get_mut(&id) {
            session.used = now;
            return Ok(work(session));
        }
        if table.len() >= SESSIONS_MAX / TABLES {
            let message = format!("{SESSIONS_MAX} sessions are known: end some first");
            return Err(Error::invalid(Code::TooManyLogicalSessions, message));
        }
        let mut session = Session { used: now, number: None, slot: None };
        let result = work(&mut session);
        table.insert(id, session);
        Ok(result)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The tables are whole after each statement, so a panic elsewhere can't have broken them.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn check_not_too_old(
    session: &Session,
    id: SessionId,
    number: i64,
    what: &str,
) -> Result<(), Error> {
    match session.number {
        Some(last) if number < last => {
            let message = format!(
                "Cannot start {what} {number} on session {id} because a newer transaction or \
                 write with number {last} has already started on this session."
            );
            Err(Error::invalid(Code::TransactionTooOld, message))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use frond_db::FrondOptions;
    use frond_testkit::SimDisk;

    use super::*;
    use crate::limits::CLIENT_GONE_AFTER;

    const ONE: SessionId = SessionId::anonymous([1; 16]);

    fn code<T>(result: Result<T, Error>) -> Option<i32> {
        result.err().map(|error| error.code.number())
    }

    #[test]
    fn numbers_of_a_session_rise() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        assert!(sessions.is_new(ONE, 1) && sessions.is_first(ONE));
        sessions.touch(ONE, now).expect("room");
        assert!(sessions.is_first(ONE), "it has no number yet");
        for (number, expected) in [(5, None), (5, None), (4, Some(225)), (6, None), (5, Some(225))]
        {
            assert_eq!(code(sessions.note_write(ONE, number, now)), expected, "{number}");
        }
        assert!(sessions.is_new(ONE, 7) && !sessions.is_first(ONE));
        assert!(!sessions.is_new(ONE, 6));
        assert_eq!(code(sessions.find(ONE, 5, now)), Some(225));
        assert!(sessions.find(ONE, 6, now).expect("not too old").is_none());
    }

    /// Every third client is gone, but one of these goes on over another connection.
    #[test]
    fn the_oldest_transaction_whose_client_is_gone_is_in_the_way() {
        let frond = frond_vcs::open_on(&SimDisk::new(1).machine(), FrondOptions::default());
        let frond = frond.expect("an empty disk opens");
        let (sessions, start) = (Sessions::default(), Instant::now());
        let clients: [Arc<Presence>; 3] = Default::default();
        clients[2].end(start);
        let now = start + CLIENT_GONE_AFTER;
        let begin = |number: usize| {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&number.to_le_bytes());
            let of = (SessionId::anonymous(id), 1);
            // The later one is entered, the older it is.
            let began = now - Duration::from_millis(number as u64);
            let with = (ApiParameters::default(), &clients[number % 3]);
            sessions.begin(of, with, began, || frond.begin()).map(|(slot, _)| slot)
        };
        let slots: Vec<_> =
            (0..OPEN_TRANSACTIONS_MAX).map(|number| begin(number).expect("room")).collect();
        assert_eq!(code(begin(2_000)), Some(365));
        let expected = OPEN_TRANSACTIONS_MAX - 2;
        assert_eq!(expected % 3, 2, "the last one whose client is gone");
        assert!(sessions.in_the_way(start).is_none(), "none is gone for long enough");
        let found = sessions.in_the_way(now).expect("one is gone");
        assert!(Arc::ptr_eq(&found, &slots[expected]));
        found.note_client(&clients[0]);
        let found = sessions.in_the_way(now).expect("another one is gone");
        assert!(Arc::ptr_eq(&found, &slots[expected - 3]));
        sessions.end(&found, &mut found.lock(), State::Aborted);
        assert!(sessions.in_the_way(now).is_none(), "there is room");
        begin(2_000).expect("room");
        slots.iter().for_each(|slot| sessions.end(slot, &mut slot.lock(), State::Aborted));
    }

    #[test]
    fn unused_sessions_are_forgotten() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        sessions.touch(ONE, now).expect("room");
        sessions.touch(SessionId::anonymous([2; 16]), now + Duration::from_secs(60)).expect("room");
        assert_eq!(sessions.expire(now + SESSION_IDLE_MAX), [ONE]);
        assert_eq!(sessions.counts().sessions, 1);
    }
}
