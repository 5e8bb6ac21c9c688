//! Transactions of several commands, as MongoDB's protocol has them.
//!
//! The first command of a transaction says `startTransaction`, each says `autocommit: false` and the
//! transaction's number within its session. A command that fails aborts the transaction. What is true of
//! each command's fields is checked here; what a transaction is, in [`crate::sessions`]; how it works,
//! in `frond_db::Transaction`.

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use frond_db::{Durability, Error, RetryKey, Transaction, retry::NumberState};
use frond_query::Code;

use crate::commands::Command;
use crate::common::{Common, SessionId};
use crate::sessions::{Slot, State};
use crate::shared::Shared;

/// What a command says of the transaction, or retryable write, that it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// A write that may be sent again.
    Write {
        /// Its session.
        session: SessionId,
        /// Its number.
        number: i64,
    },
    /// A command of a transaction.
    Statement {
        /// Its session.
        session: SessionId,
        /// Its number.
        number: i64,
        /// Whether it is the first.
        starts: bool,
    },
}

/// Fields of a command that say which transaction it belongs to.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartFields {
    /// `txnNumber`.
    pub number: Option<i64>,
    /// `autocommit`.
    pub autocommit: Option<bool>,
    /// `startTransaction`.
    pub starts: Option<bool>,
}

impl PartFields {
    /// What they say together.
    ///
    /// # Errors
    /// `InvalidOptions` where they contradict one another.
    pub fn read(&self, session: Option<SessionId>) -> Result<Option<Part>, Error> {
        let refuse = |message: &str| Err(Error::invalid(Code::InvalidOptions, message));
        let Some(number) = self.number else {
            return match (self.autocommit, self.starts) {
                (None, None) => Ok(None),
                (Some(_), _) => {
                    refuse("'autocommit' field requires a transaction number to also be specified")
                }
                (None, Some(_)) => refuse(
                    "'startTransaction' field requires 'autocommit' field to also be specified",
                ),
            };
        };
        let Some(session) = session else {
            return refuse("Transaction number requires a session ID to also be specified");
        };
        if number < 0 {
            return refuse("Transaction number cannot be negative");
        }
        match (self.autocommit, self.starts) {
            (Some(true), _) => refuse("Specifying autocommit=true is not allowed."),
            (_, Some(false)) => refuse("Specifying startTransaction=false is not allowed."),
            (None, Some(true)) => {
                refuse("'startTransaction' field requires 'autocommit' field to also be specified")
            }
            (None, None) => Ok(Some(Part::Write { session, number })),
            (Some(false), starts) => {
                Ok(Some(Part::Statement { session, number, starts: starts.is_some() }))
            }
        }
    }
}

/// Checks that a command may be what it says it is.
pub fn check(command: &Command, database: &str, common: &Common) -> Result<(), Error> {
    match common.part {
        None => Ok(()),
        Some(Part::Write { .. }) if command.retryable => Ok(()),
        Some(Part::Write { .. }) => {
            let message = format!(
                "txnNumber may only be provided for multi-document transactions and retryable \
                 write commands. autocommit:false was not provided, and {} is not a retryable \
                 write command.",
                command.name
            );
            Err(Error::invalid(Code::NotARetryableWriteCommand, message))
        }
        Some(Part::Statement { starts, .. }) => check_statement(command, database, common, starts),
    }
}

fn check_statement(
    command: &Command,
    database: &str,
    common: &Common,
    starts: bool,
) -> Result<(), Error> {
    let refuse =
        |message: String| Err(Error::invalid(Code::OperationNotSupportedInTransaction, message));
    if command.ends_transaction {
        if starts {
            let message = format!("{} cannot be the first command of a transaction", command.name);
            return refuse(message);
        }
        return Ok(());
    }
    if !command.in_transaction {
        let why = if command.name.starts_with("frond") {
            ": versions are made and changed outside of transactions, commit or abort it first"
        } else {
            "."
        };
        return refuse(format!(
            "Cannot run '{}' in a multi-document transaction{why}",
            command.name
        ));
    }
    let is_of_no_database = ["bulkWrite", "killCursors"].contains(&command.name);
    if ["admin", "config", "local"].contains(&database) && !is_of_no_database {
        return refuse(format!(
            "Cannot run command against the '{database}' database in a transaction."
        ));
    }
    if common.has_write_concern {
        let message = "writeConcern is not allowed within a multi-statement transaction";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    if common.has_read_concern && !starts {
        let message = "Only the first command in a transaction may specify a readConcern";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    if !common.is_concern_of_transactions {
        let message = "The readConcern level must be either 'local' (default), 'majority' or \
                       'snapshot' in order to run in a transaction";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    Ok(())
}

/// The transaction that a command runs in.
pub struct Current {
    /// Its place in its session.
    pub slot: Arc<Slot>,
    /// The transaction.
    pub transaction: Transaction,
}

/// Runs a command in its transaction, which ends if the command fails: `work` tells its answer, and
/// whether that tells of a failure.
pub fn run_statement<T>(
    server: &Shared,
    (session, number): (SessionId, i64),
    starts: bool,
    work: impl FnOnce(Current) -> Result<(T, bool), Error>,
) -> Result<T, Error> {
    let now = Instant::now();
    let slot = if starts {
        begin(server, session, number, now)?
    } else {
        server.sessions.find(session, number, now)?.ok_or_else(|| no_transaction(number))?
    };
    let mut state = slot.lock();
    let transaction = match &*state {
        State::Open(transaction) => transaction.clone(),
        State::Committed => return Err(committed(number)),
        State::Aborted => return Err(aborted(number)),
    };
    if slot.is_expired(now) {
        end(server, &slot, &mut state, State::Aborted);
        return Err(aborted(number));
    }
    // Ends the transaction also if the work panics: a statement would stay half done in it.
    let mut ending = Ending { server, slot: &slot, state: &mut state, is_needed: true };
    let (answer, has_failed) =
        work(Current { slot: Arc::clone(&slot), transaction: transaction.clone() })?;
    server.sessions.note_bytes(&slot, transaction.bytes())?;
    ending.is_needed = has_failed;
    Ok(answer)
}

/// Aborts a transaction when it is dropped, if that is needed.
struct Ending<'a> {
    server: &'a Shared,
    slot: &'a Arc<Slot>,
    state: &'a mut State,
    is_needed: bool,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if self.is_needed {
            end(self.server, self.slot, self.state, State::Aborted);
        }
    }
}

fn begin(
    server: &Shared,
    session: SessionId,
    number: i64,
    now: Instant,
) -> Result<Arc<Slot>, Error> {
    // A session that this process doesn't know may have been used before it began.
    if server.sessions.is_new(session, number) {
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
    let (slot, before) = server.sessions.begin(session, number, now, || server.frond.begin())?;
    before.iter().for_each(|before| abort_slot(server, before));
    Ok(slot)
}

/// Notes a write that may be sent again. It ends the transaction before it in its session.
pub fn note_write(server: &Shared, session: SessionId, number: i64) -> Result<(), Error> {
    let before = server.sessions.note_write(session, number, Instant::now())?;
    before.iter().for_each(|before| abort_slot(server, before));
    Ok(())
}

/// Commits a transaction. Committing it again is no error.
pub fn commit(
    server: &Shared,
    session: SessionId,
    number: i64,
    durability: Durability,
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
        State::Committed => return Ok(()),
        State::Aborted => return Err(aborted(number)),
    };
    if slot.is_expired(Instant::now()) {
        end(server, &slot, &mut state, State::Aborted);
        return Err(aborted(number));
    }
    let result = transaction.commit(durability, Some(key(session, number)));
    let ended = if result.is_ok() { State::Committed } else { State::Aborted };
    end(server, &slot, &mut state, ended);
    result
}

/// Aborts a transaction.
pub fn abort(server: &Shared, session: SessionId, number: i64) -> Result<(), Error> {
    let slot = server.sessions.find(session, number, Instant::now())?;
    let slot = slot.ok_or_else(|| no_transaction(number))?;
    let (mut state, has_cut_short) = lock_now(&slot);
    match &*state {
        State::Open(_) => {
            end(server, &slot, &mut state, State::Aborted);
            Ok(())
        }
        State::Committed => Err(committed(number)),
        // The statement that failed because of us has ended it.
        State::Aborted if has_cut_short => Ok(()),
        State::Aborted => Err(aborted(number)),
    }
}

/// Aborts a transaction of which the server wants to be rid; a statement of it that runs fails.
pub fn abort_slot(server: &Shared, slot: &Arc<Slot>) {
    abort_open(server, slot, &mut lock_now(slot).0);
}

/// Locks a slot for whoever aborts its transaction: a statement that waits for another transaction doesn't hold this up,
/// but fails. Tells whether there was a statement.
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
    server.sessions.end(slot, state, ended);
    if slot.has_cursors() {
        server.cursors.kill_transaction(slot.session, slot.number);
    }
}

fn key(session: SessionId, number: i64) -> RetryKey {
    RetryKey { session: session.0, number }
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

/// The labels by which drivers decide what to send again.
pub fn labels(part: Option<Part>, ends_transaction: bool, code: Code) -> &'static [&'static str] {
    let is_transient = match code {
        Code::WriteConflict
        | Code::LockTimeout
        | Code::SnapshotUnavailable
        | Code::SnapshotTooOld
        | Code::TemporarilyUnavailable
        | Code::NoSuchTransaction => true,
        Code::InterruptedAtShutdown => !ends_transaction,
        _ => false,
    };
    match part {
        Some(Part::Statement { .. }) if is_transient => &["TransientTransactionError"],
        Some(Part::Statement { .. }) if ends_transaction && code == Code::InterruptedAtShutdown => {
            &["RetryableWriteError"]
        }
        Some(Part::Write { .. }) if code == Code::InterruptedAtShutdown => &["RetryableWriteError"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_say_what_a_command_is() {
        let session = SessionId([1; 16]);
        let statement = |starts| Some(Part::Statement { session, number: 3, starts });
        for (number, autocommit, starts, expected) in [
            (None, None, None, Ok(None)),
            (Some(3), None, None, Ok(Some(Part::Write { session, number: 3 }))),
            (Some(3), Some(false), Some(true), Ok(statement(true))),
            (Some(3), Some(false), None, Ok(statement(false))),
            (Some(3), Some(true), None, Err(72)),
            (Some(3), None, Some(true), Err(72)),
            (Some(3), Some(false), Some(false), Err(72)),
            (None, Some(false), None, Err(72)),
            (None, None, Some(true), Err(72)),
            (Some(-1), None, None, Err(72)),
        ] {
            let fields = PartFields { number, autocommit, starts };
            let found = fields.read(Some(session)).map_err(|error| error.code.number());
            assert_eq!(found, expected, "{fields:?}");
        }
        let fields = PartFields { number: Some(3), ..PartFields::default() };
        assert!(fields.read(None).is_err());
    }

    #[test]
    fn labels_tell_drivers_what_to_send_again() {
        let session = SessionId([1; 16]);
        let statement = Some(Part::Statement { session, number: 1, starts: false });
        let write = Some(Part::Write { session, number: 1 });
        let transient = &["TransientTransactionError"][..];
        let retryable = &["RetryableWriteError"][..];
        for (part, ends, code, expected) in [
            (statement, false, Code::WriteConflict, transient),
            (statement, true, Code::WriteConflict, transient),
            (statement, true, Code::NoSuchTransaction, transient),
            (statement, false, Code::SnapshotTooOld, transient),
            (statement, false, Code::DuplicateKey, &[]),
            (statement, false, Code::InterruptedAtShutdown, transient),
            (statement, true, Code::InterruptedAtShutdown, retryable),
            (write, false, Code::InterruptedAtShutdown, retryable),
            (write, false, Code::WriteConflict, &[]),
            (None, false, Code::WriteConflict, &[]),
        ] {
            assert_eq!(labels(part, ends, code), expected, "{part:?} {code:?}");
        }
    }
}
