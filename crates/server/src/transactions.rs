//! Transactions of several commands, as MongoDB's protocol has them.
//!
//! The first command of a transaction says `startTransaction`, each says `autocommit: false` and
//! the transaction's number within its session. A command that fails aborts the transaction.
//! [`crate::concerns`] checks what each command may be; [`crate::sessions`] has the transactions;
//! `frond_db::Transaction` does the work.

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use frond_db::{
    Durability, Error, ErrorKind, Interrupt, RetryKey, Transaction, retry::NumberState,
};
use frond_query::Code;

use crate::common_fields::{Part, SessionId};
use crate::held_commits::{EndOfCommit, HeldCommit, HeldCommits};
use crate::peer::Presence;
use crate::sessions::{Slot, State};
use crate::shared::Shared;
use crate::stable_api::ApiParameters;

/// The description in messages of the command that a statement's API is compared with.
const FIRST_COMMAND: &str = "the transaction's first command";

/// The transaction that a command runs in.
pub struct Current {
    /// Its place in its session.
    pub slot: Arc<Slot>,
    /// The transaction.
    pub transaction: Transaction,
}

/// The fields of a statement that all statements have.
#[derive(Clone, Copy)]
pub struct StatementFields<'a> {
    /// Its command.
    pub command: &'a str,
    /// The fields of the API.
    pub api: ApiParameters,
    /// The connection over which it came.
    pub client: &'a Arc<Presence>,
    /// Whether it begins the transaction.
    pub starts: bool,
}

/// Checks that a command says of the stable API what the first command of its transaction said.
///
/// # Errors
/// `APIMismatchError`, after which the transaction is what it was.
pub fn check_api(
    server: &Shared,
    (session, number): (SessionId, i64),
    command: &str,
    api: ApiParameters,
) -> Result<(), Error> {
    // One that isn't known is reported by a caller that looks for it.
    match server.sessions.find(session, number, Instant::now()) {
        Ok(Some(slot)) => api.check_same(command, FIRST_COMMAND, slot.api),
        _ => Ok(()),
    }
}

/// Runs a command in its transaction, which ends if the command fails: `work` returns its answer,
/// and whether that is a failure.
///
/// # Errors
/// `APIMismatchError`, after which the transaction is what it was; `NoSuchTransaction` (251) and
/// MongoDB's other codes if the session's transaction isn't this one, or has ended; what `work`
/// fails with.
pub fn run_statement<T>(
    server: &Shared,
    (session, number): (SessionId, i64),
    fields: StatementFields<'_>,
    work: impl FnOnce(Current) -> Result<(T, bool), Error>,
) -> Result<T, Error> {
    let now = Instant::now();
    let slot = match fields.starts {
        true => begin(server, (session, number), &fields, now)?,
        false => {
            let slot = server.sessions.find(session, number, now)?;
            let slot = slot.ok_or_else(|| no_transaction(number))?;
            fields.api.check_same(fields.command, FIRST_COMMAND, slot.api)?;
            slot.note_client(fields.client);
            slot
        }
    };
    let mut state = slot.lock();
    let transaction = match &*state {
        State::Open(transaction) => transaction.clone(),
        State::Unknown => return Err(unknown(number)),
        State::Committed => return Err(committed(number)),
        State::Aborted => return Err(aborted(number)),
    };
    if slot.is_expired(now, server.time_limits.transaction()) {
        end(server, &slot, &mut state, State::Aborted);
        return Err(aborted(number));
    }
    // Ends the transaction also if the work panics: a statement would stay half done in it.
    let ended = Some(State::Aborted);
    let mut ending = Ending { server, slot: &slot, state: &mut state, ended };
    let (answer, has_failed) =
        work(Current { slot: Arc::clone(&slot), transaction: transaction.clone() })?;
    server.sessions.note_bytes(&slot, transaction.bytes())?;
    if !has_failed {
        ending.ended = None;
    }
    Ok(answer)
}

/// Ends a transaction when it is dropped, if there is something as which it ends.
struct Ending<'a> {
    server: &'a Shared,
    slot: &'a Arc<Slot>,
    state: &'a mut State,
    ended: Option<State>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if let Some(ended) = self.ended.take() {
            end(self.server, self.slot, self.state, ended);
        }
    }
}

fn begin(
    server: &Shared,
    (session, number): (SessionId, i64),
    fields: &StatementFields<'_>,
    now: Instant,
) -> Result<Arc<Slot>, Error> {
    // A session that this process doesn't know may have been used before it began; in a set any
    // session may have been used elsewhere.
    let is_looked_for = match server.replica {
        Some(_) => server.sessions.is_new(session, number),
        None => server.sessions.is_first(session),
    };
    if is_looked_for {
        match server.frond.number_state(key(session, number))? {
            NumberState::Unused => {}
            NumberState::Passed(last) => {
                let message = format!(
                    "Cannot start transaction {number} on session {session} because a newer \
                     transaction or write with number {last} has already started on this session."
                );
                return Err(Error::invalid(Code::TransactionTooOld, message));
            }
            NumberState::Committed => return Err(committed(number)),
            NumberState::Write => {
                let message = format!("number {number} of this session was a retryable write");
                return Err(Error::invalid(Code::ConflictingOperationInProgress, message));
            }
        }
    }
    server.sessions.in_the_way(now).iter().for_each(|gone| abort_idle(server, gone));
    let of = (fields.api, fields.client);
    let (slot, before) =
        server.sessions.begin((session, number), of, now, || server.frond.begin())?;
    before.iter().for_each(|before| abort_slot(server, before));
    Ok(slot)
}

/// Notes a write that may be sent again. It ends the transaction before it in its session.
///
/// # Errors
/// `TransactionTooOld` (225) if the session has used a higher number; `InvalidOptions` (72) if the
/// number is that of its transaction.
pub fn note_write(server: &Shared, session: SessionId, number: i64) -> Result<(), Error> {
    let before = server.sessions.note_write(session, number, Instant::now())?;
    before.iter().for_each(|before| abort_slot(server, before));
    Ok(())
}

/// Commits a transaction. Committing it again is no error.
///
/// # Errors
/// `NoSuchTransaction` and others after which it is known that nothing was written;
/// `ShutdownInProgress` while the server can't know: the client must not run the transaction again
/// before it has asked again and got an answer.
pub fn commit(
    server: &Shared,
    (session, number): (SessionId, i64),
    durability: Durability,
    (interrupt, commits): (&Interrupt, &HeldCommits),
) -> Result<(), Error> {
    let Some(slot) = server.sessions.find(session, number, Instant::now())? else {
        // It may have been committed before this process began.
        return match server.frond.number_state(key(session, number))? {
            NumberState::Committed => Ok(()),
            _ => Err(no_transaction(number)),
        };
    };
    let mut state = slot.lock();
    let transaction = match &*state {
        State::Open(transaction) => transaction.clone(),
        State::Unknown => return find_outcome(server, &slot, &mut state, interrupt),
        State::Committed => return Ok(()),
        State::Aborted => return Err(aborted(number)),
    };
    if slot.is_expired(Instant::now(), server.time_limits.transaction()) {
        end(server, &slot, &mut state, State::Aborted);
        return Err(aborted(number));
    }
    // A panic leaves it so, as does everything else that doesn't show that nothing was written.
    *state = State::Unknown;
    let ended = Some(State::Unknown);
    let mut ending = Ending { server, slot: &slot, state: &mut state, ended };
    let remember = Some(key(session, number));
    let result = match commits.may_hold() {
        true => transaction.commit_handed_on(durability, remember, interrupt),
        false => {
            transaction.commit_unless_interrupted(durability, remember, interrupt).map(|()| None)
        }
    };
    let result = match result {
        Ok(Some(commit)) => {
            // Until it is known what became of it, it is as if this server didn't know.
            ending.ended = None;
            drop(ending);
            let end = Box::new(EndOfTransaction { slot: Arc::clone(&slot), number });
            commits.hold(HeldCommit { commit, end: Some(end) });
            return Ok(());
        }
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    conclude(server, &mut ending, number, result)
}

/// Ends a transaction whose commit was held.
struct EndOfTransaction {
    slot: Arc<Slot>,
    number: i64,
}

impl EndOfCommit for EndOfTransaction {
    fn end(
        &self,
        server: &Shared,
        done: &Result<(), Error>,
        may_wait: bool,
    ) -> Option<Result<(), Error>> {
        // Another command that asks what became of it has it locked while it waits.
        let mut state = match may_wait {
            true => self.slot.lock(),
            false => self.slot.try_lock()?,
        };
        if !matches!(*state, State::Unknown) {
            // That one has found out.
            return Some(done.clone());
        }
        let ended = Some(State::Unknown);
        let mut ending = Ending { server, slot: &self.slot, state: &mut state, ended };
        Some(conclude(server, &mut ending, self.number, done.clone()))
    }
}

/// Says as what a transaction has ended whose commit came to `result`, and what its client is to
/// know.
fn conclude(
    server: &Shared,
    ending: &mut Ending<'_>,
    number: i64,
    result: Result<(), Error>,
) -> Result<(), Error> {
    match result.as_ref().map_err(|error| error.kind) {
        Ok(()) => ending.ended = Some(State::Committed),
        // Its client no longer waits.
        Err(ErrorKind::Unknown) if server.frond.fault().is_none() => {}
        Err(ErrorKind::Closed | ErrorKind::Unknown) => return Err(unknown(number)),
        Err(ErrorKind::Internal) => {}
        Err(
            ErrorKind::Invalid | ErrorKind::Conflict | ErrorKind::Unavailable | ErrorKind::Damaged,
        ) => ending.ended = Some(State::Aborted),
    }
    result
}

/// Finds out the outcome of a transaction whose commit ended without one.
///
/// # Errors
/// `ShutdownInProgress` where only the next start can show it; `NoSuchTransaction` if it was not
/// committed.
fn find_outcome(
    server: &Shared,
    slot: &Arc<Slot>,
    state: &mut State,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let number = slot.number;
    let awaited = server.frond.await_line(interrupt);
    if server.frond.fault().is_some() {
        return Err(unknown(number));
    }
    awaited?;
    // Whatever goes wrong once it has its place in the log is a fault: so nothing is under way.
    match server.frond.number_state(key(slot.session, number))? {
        NumberState::Committed => {
            end(server, slot, state, State::Committed);
            Ok(())
        }
        _ => {
            end(server, slot, state, State::Aborted);
            Err(aborted(number))
        }
    }
}

/// Aborts a transaction.
///
/// # Errors
/// `NoSuchTransaction` (251); `TransactionCommitted` (256) if it was committed.
pub fn abort(server: &Shared, session: SessionId, number: i64) -> Result<(), Error> {
    let slot = server.sessions.find(session, number, Instant::now())?;
    let slot = slot.ok_or_else(|| no_transaction(number))?;
    let (mut state, has_cut_short) = lock_now(&slot);
    match &*state {
        State::Open(_) => {
            end(server, &slot, &mut state, State::Aborted);
            Ok(())
        }
        State::Unknown => {
            find_outcome(server, &slot, &mut state, &Interrupt::default())?;
            Err(committed(number))
        }
        State::Committed => Err(committed(number)),
        // The statement that failed because of us has ended it.
        State::Aborted if has_cut_short => Ok(()),
        State::Aborted => Err(aborted(number)),
    }
}

/// Aborts a transaction that the server wants to be rid of; a statement of it that runs fails.
pub fn abort_slot(server: &Shared, slot: &Arc<Slot>) {
    abort_open(server, slot, &mut lock_now(slot).0);
}

/// Locks a slot so that the caller can abort its transaction: a statement that waits for another
/// transaction doesn't hold this up, but fails. Returns whether there was a statement.
fn lock_now(slot: &Slot) -> (MutexGuard<'_, State>, bool) {
    match slot.try_lock() {
        Some(state) => (state, false),
        None => {
            slot.cut_short();
            (slot.lock(), true)
        }
    }
}

/// The same, unless one of its statements runs now.
pub fn abort_idle(server: &Shared, slot: &Arc<Slot>) {
    if let Some(mut state) = slot.try_lock() {
        abort_open(server, slot, &mut state);
    }
}

fn abort_open(server: &Shared, slot: &Arc<Slot>, state: &mut State) {
    if matches!(state, State::Open(_)) {
        end(server, slot, state, State::Aborted);
    }
}

fn end(server: &Shared, slot: &Arc<Slot>, state: &mut State, ended: State) {
    // While it is committed its end is unknown.
    if matches!(state, State::Open(_) | State::Unknown) {
        server.usage.count_transaction(slot.age());
    }
    server.sessions.end(slot, state, ended);
    if slot.has_cursors() {
        server.cursors.kill_transaction(slot.session, slot.number);
    }
}

fn key(session: SessionId, number: i64) -> RetryKey {
    RetryKey { session: session.stored(), number }
}

fn no_transaction(number: i64) -> Error {
    let message =
        format!("Given transaction number {number} does not match any in-progress transactions.");
    Error::invalid(Code::NoSuchTransaction, message)
}

fn aborted(number: i64) -> Error {
    let message = format!("Transaction with {{ txnNumber: {number} }} has been aborted.");
    Error::invalid(Code::NoSuchTransaction, message)
}

fn committed(number: i64) -> Error {
    let message = format!("Transaction with {{ txnNumber: {number} }} has been committed.");
    Error::invalid(Code::TransactionCommitted, message)
}

fn unknown(number: i64) -> Error {
    let message = format!(
        "a write or sync of the log failed: whether the transaction with {{ txnNumber: {number} }} \
         was committed will be known once the server has been started again. Send the commit again then."
    );
    Error::unknown_outcome(message)
}

/// Whether an error means that this server takes no writes any more: a client looks for another, or
/// for this one again.
pub fn is_of_topology(code: Code) -> bool {
    matches!(
        code,
        Code::InterruptedAtShutdown
            | Code::InterruptedDueToReplStateChange
            | Code::NotPrimaryNoSecondaryOk
            | Code::NotPrimaryOrSecondary
            | Code::NotWritablePrimary
            | Code::PrimarySteppedDown
            | Code::ShutdownInProgress
    )
}

/// Whether an error means that another server wasn't reached, or not in time. Only fail points give
/// such to clients that write here.
fn is_of_network(code: Code) -> bool {
    matches!(
        code,
        Code::ExceededTimeLimit
            | Code::HostNotFound
            | Code::HostUnreachable
            | Code::NetworkTimeout
            | Code::ReadConcernMajorityNotAvailableYet
            | Code::SocketException
    )
}

/// MongoDB's codes of a read that another member may answer, or another shard: only fail points
/// give such here.
const ELSEWHERE: [i32; 5] = [133, 150, 234, 249, 13_388];

/// Whether a driver is to open a change stream again, at its place, whose `getMore` has failed so.
pub fn is_resumable(code: Code) -> bool {
    is_of_topology(code) || is_of_network(code) || ELSEWHERE.contains(&code.number())
}

/// The label of what may be sent again as it is.
const RETRYABLE: &str = "RetryableWriteError";

/// The labels by which drivers decide what to send again. While the outcome of a transaction is
/// unknown nothing may make them run it again.
pub fn labels(
    part: Option<Part>,
    ends_transaction: bool,
    error: &Error,
) -> &'static [&'static str] {
    if matches!(error.code, Code::ChangeStreamFatalError | Code::ChangeStreamHistoryLost) {
        return &["NonResumableChangeStreamError"];
    }
    let is_gone = is_of_topology(error.code) || is_of_network(error.code);
    let is_transient = match error.code {
        Code::WriteConflict
        | Code::LockTimeout
        | Code::PreparedTransactionInProgress
        | Code::SnapshotUnavailable
        | Code::SnapshotTooOld
        | Code::TemporarilyUnavailable
        | Code::NoSuchTransaction => true,
        _ => is_gone && !ends_transaction && error.kind != ErrorKind::Unknown,
    };
    match part {
        Some(Part::Statement { .. }) if is_transient => &["TransientTransactionError"],
        Some(Part::Statement { .. }) if ends_transaction && is_gone => &[RETRYABLE],
        Some(Part::Write { .. }) if is_gone => &[RETRYABLE],
        _ => &[],
    }
}

/// The labels of an answer whose write concern alone has failed: the write is done, and so its
/// transaction needn't be run again.
pub fn concern_labels(
    part: Option<Part>,
    ends_transaction: bool,
    error: &Error,
) -> &'static [&'static str] {
    match labels(part, ends_transaction, error) {
        [RETRYABLE] => &[RETRYABLE],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_mark_what_drivers_may_send_again() {
        let session = SessionId::anonymous([1; 16]);
        let statement = Some(Part::Statement { session, number: 1, starts: false });
        let write = Some(Part::Write { session, number: 1 });
        let transient = &["TransientTransactionError"][..];
        let retryable = &["RetryableWriteError"][..];
        let none = &[][..] as &[&str];
        let plain = |code| Error::invalid(code, "");
        let unknown = unknown(1);
        assert_eq!(labels(statement, true, &unknown), retryable);
        assert_eq!(labels(statement, false, &unknown), none);
        assert_eq!(labels(write, false, &unknown), retryable);
        for (part, ends, code, expected) in [
            (statement, false, Code::WriteConflict, transient),
            (statement, true, Code::WriteConflict, transient),
            (statement, true, Code::PreparedTransactionInProgress, transient),
            (statement, true, Code::NoSuchTransaction, transient),
            (statement, false, Code::SnapshotTooOld, transient),
            (statement, false, Code::DuplicateKey, &[]),
            (statement, false, Code::InterruptedAtShutdown, transient),
            (statement, true, Code::InterruptedAtShutdown, retryable),
            (write, false, Code::InterruptedAtShutdown, retryable),
            (statement, false, Code::NotWritablePrimary, transient),
            (statement, true, Code::NotWritablePrimary, retryable),
            (write, false, Code::NotWritablePrimary, retryable),
            (None, false, Code::NotWritablePrimary, &[]),
            (write, false, Code::WriteConflict, &[]),
            (None, false, Code::WriteConflict, &[]),
        ] {
            assert_eq!(labels(part, ends, &plain(code)), expected, "{part:?} {code:?}");
            let of_concern = if expected == retryable { retryable } else { none };
            assert_eq!(concern_labels(part, ends, &plain(code)), of_concern, "{part:?} {code:?}");
        }
    }
}
