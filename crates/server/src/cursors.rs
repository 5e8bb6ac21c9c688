//! Cursors that are open between a first batch and the last `getMore`.
//!
//! *Thread safety*: one lock guards the table; no document is read while it is held. A `getMore`
//! checks its cursor out and in again, so that two at a time on one cursor can't happen.
//!
//! *Invariants*
//! 1. A cursor that is checked out has a slot, which a kill marks and the check-in then honours.
//! 2. Dropping a [`CheckedOut`] without checking it in closes the cursor: so an error or a panic
//!    while a batch is read leaves nothing behind.
//! 3. Ids are never 0 (which says "no cursor") and can't be guessed from other ids.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use frond_db::Error;
use frond_doc::DocumentBuf;
use frond_query::Code;

use crate::common::SessionId;
use crate::limits::{BATCH_BYTES_MAX, CURSOR_IDLE_MAX, CURSORS_MAX};
use crate::operations::CurrentOperation;

/// Where a cursor's documents come from.
pub type Documents = Box<dyn Iterator<Item = Result<DocumentBuf, Error>> + Send>;

/// What a cursor is, besides its documents.
#[derive(Clone, Debug, PartialEq)]
pub struct CursorFacts {
    /// `database.collection`, as the client named it.
    pub namespace: String,
    /// The session in which it was opened.
    pub session: Option<SessionId>,
    /// The number of the transaction in which it was opened.
    pub transaction: Option<i64>,
    /// Whether it stays open however long it is not used.
    pub no_timeout: bool,
}

/// Whether a cursor stays open at the end of a capped collection, for what comes later.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Following {
    /// It doesn't.
    #[default]
    Nothing,
    /// It does: `tailable`.
    End,
    /// It does, and a `getMore` waits for something to come: `awaitData`.
    EndAwaited,
}

/// A cursor, taken from the table or not in it yet.
pub struct OpenCursor {
    /// What it is.
    pub facts: CursorFacts,
    /// Which command asks it now.
    pub current: CurrentOperation,
    /// Whether it stays open when it has no more.
    pub following: Following,
    /// What tells of one that stays open that nothing will come any more.
    pub is_over: Option<Arc<AtomicBool>>,
    documents: Documents,
    /// A document that was read but didn't go into the last batch.
    held: Option<DocumentBuf>,
}

/// Documents of one reply.
pub struct Batch {
    /// In their order.
    pub documents: Vec<DocumentBuf>,
    /// Whether the cursor has no more.
    pub is_last: bool,
}

impl OpenCursor {
    /// A cursor over `documents`.
    pub fn new(facts: CursorFacts, documents: Documents) -> OpenCursor {
        OpenCursor {
            facts,
            current: CurrentOperation::default(),
            following: Following::Nothing,
            is_over: None,
            documents,
            held: None,
        }
    }

    /// Whether nothing comes after what there is now.
    fn ends(&self) -> bool {
        self.following == Following::Nothing
            || self.is_over.as_ref().is_some_and(|is_over| is_over.load(Ordering::Relaxed))
    }

    /// Reads at most `documents_max` documents and about 16 MB (one document at least). Looks one
    /// document ahead, so that the last batch says that it is the last. `check` is asked before each
    /// document whether to go on.
    pub fn next_batch(
        &mut self,
        documents_max: Option<u64>,
        check: &dyn Fn() -> Result<(), Error>,
    ) -> Result<Batch, Error> {
        let mut documents = Vec::new();
        let mut bytes = 0;
        if documents_max == Some(0) {
            return Ok(Batch { documents, is_last: false });
        }
        loop {
            check()?;
            let next = match self.held.take() {
                Some(document) => Some(document),
                None => self.documents.next().transpose()?,
            };
            let Some(document) = next else {
                return Ok(Batch { documents, is_last: self.ends() });
            };
            let is_full = documents_max.is_some_and(|max| documents.len() as u64 >= max);
            bytes += document.as_bytes().len();
            if is_full || (bytes > BATCH_BYTES_MAX && !documents.is_empty()) {
                self.held = Some(document);
                return Ok(Batch { documents, is_last: false });
            }
            documents.push(document);
        }
    }
}

enum Slot {
    Idle { cursor: OpenCursor, used: Instant },
    CheckedOut { facts: CursorFacts, is_killed: bool },
}

impl Slot {
    fn facts(&self) -> &CursorFacts {
        match self {
            Slot::Idle { cursor, .. } => &cursor.facts,
            Slot::CheckedOut { facts, .. } => facts,
        }
    }
}

/// How many cursors are open: for `serverStatus`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CursorCounts {
    /// Open now.
    pub open: usize,
    /// Of these, without a timeout.
    pub no_timeout: usize,
    /// Of these, in use by a command.
    pub pinned: usize,
    /// Closed because nobody used them.
    pub timed_out: u64,
}

#[derive(Default)]
struct Table {
    slots: HashMap<i64, Slot>,
    ids_made: u64,
    timed_out: u64,
}

/// The open cursors of a server.
#[derive(Default)]
pub struct Cursors {
    table: Mutex<Table>,
    /// SipHash with random keys over a counter makes ids that can't be guessed.
    id_keys: RandomState,
}

/// A cursor that a `getMore` is reading.
pub struct CheckedOut<'a> {
    cursors: &'a Cursors,
    id: i64,
    /// `Some` until it is checked in.
    cursor: Option<OpenCursor>,
}

impl Cursors {
    /// Keeps a cursor and names it.
    ///
    /// # Errors
    /// When too many are open.
    pub fn open(&self, cursor: OpenCursor, now: Instant) -> Result<i64, Error> {
        let mut table = self.lock();
        if table.slots.len() >= CURSORS_MAX {
            let message = format!("{CURSORS_MAX} cursors are open: close some first");
            return Err(Error::invalid(Code::OperationFailed, message));
        }
        let id = loop {
            table.ids_made += 1;
            let id = i64::try_from(self.id_keys.hash_one(table.ids_made) >> 1)
                .expect("63 bits are left");
            if id != 0 && !table.slots.contains_key(&id) {
                break id;
            }
        };
        table.slots.insert(id, Slot::Idle { cursor, used: now });
        Ok(id)
    }

    /// Takes a cursor to read from it.
    ///
    /// # Errors
    /// `CursorNotFound` (43); others if it belongs to another namespace or session, or is in use.
    pub fn check_out(
        &self,
        id: i64,
        namespace: &str,
        session: Option<SessionId>,
        transaction: Option<i64>,
    ) -> Result<CheckedOut<'_>, Error> {
        let mut table = self.lock();
        let slot = table.slots.get_mut(&id).ok_or_else(|| not_found(id))?;
        check_owner(id, slot.facts(), namespace, session)?;
        check_transaction(id, slot.facts(), transaction)?;
        let facts = slot.facts().clone();
        match std::mem::replace(slot, Slot::CheckedOut { facts, is_killed: false }) {
            Slot::Idle { cursor, .. } => Ok(CheckedOut { cursors: self, id, cursor: Some(cursor) }),
            in_use @ Slot::CheckedOut { .. } => {
                *slot = in_use;
                let message = format!("cursor id {id} is already in use");
                Err(Error::invalid(Code::Location(12051), message))
            }
        }
    }

    /// Closes a cursor of `namespace`; tells whether it was there.
    pub fn kill(&self, id: i64, namespace: &str) -> bool {
        let mut table = self.lock();
        let Some(slot) = table.slots.get_mut(&id) else { return false };
        if slot.facts().namespace != namespace {
            return false;
        }
        let killed = match slot {
            Slot::CheckedOut { is_killed, .. } => {
                *is_killed = true;
                None
            }
            Slot::Idle { .. } => table.slots.remove(&id),
        };
        // Closing a cursor lets go of a snapshot: not while the lock is held.
        drop(table);
        drop(killed);
        true
    }

    /// Closes the cursors of sessions: `None` is all sessions.
    pub fn kill_sessions(&self, sessions: Option<&[SessionId]>) {
        let sessions: Option<HashSet<SessionId>> =
            sessions.map(|sessions| sessions.iter().copied().collect());
        let is_meant = |facts: &CursorFacts| {
            facts.session.is_some_and(|session| {
                sessions.as_ref().is_none_or(|sessions| sessions.contains(&session))
            })
        };
        drop(self.take_where(|slot| is_meant(slot.facts())));
    }

    /// Closes the cursors of a transaction, which has ended.
    pub fn kill_transaction(&self, session: SessionId, number: i64) {
        drop(self.take_where(|slot| {
            slot.facts().session == Some(session) && slot.facts().transaction == Some(number)
        }));
    }

    /// Closes the cursors that nobody used for long.
    pub fn expire(&self, now: Instant) {
        let expired = self.take_where(|slot| match slot {
            Slot::Idle { cursor, used } => {
                !cursor.facts.no_timeout && now.duration_since(*used) >= CURSOR_IDLE_MAX
            }
            Slot::CheckedOut { .. } => false,
        });
        self.lock().timed_out += expired.len() as u64;
    }

    /// Closes all cursors: the server stops.
    pub fn close(&self) {
        drop(self.take_where(|_| true));
    }

    /// How many are open.
    pub fn counts(&self) -> CursorCounts {
        let table = self.lock();
        let mut counts = CursorCounts { timed_out: table.timed_out, ..CursorCounts::default() };
        for slot in table.slots.values() {
            counts.open += 1;
            counts.no_timeout += usize::from(slot.facts().no_timeout);
            counts.pinned += usize::from(matches!(slot, Slot::CheckedOut { .. }));
        }
        counts
    }

    /// Removes the idle cursors that `is_meant` names and marks those checked out; returns the
    /// removed ones, to be dropped without the lock.
    fn take_where(&self, is_meant: impl Fn(&Slot) -> bool) -> Vec<Slot> {
        let mut table = self.lock();
        let mut idle = Vec::new();
        for (id, slot) in &mut table.slots {
            if !is_meant(slot) {
                continue;
            }
            match slot {
                Slot::Idle { .. } => idle.push(*id),
                Slot::CheckedOut { is_killed, .. } => *is_killed = true,
            }
        }
        idle.iter().filter_map(|id| table.slots.remove(id)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // The table is whole after each statement, so a panic elsewhere can't have broken it.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CheckedOut<'_> {
    /// The cursor.
    pub fn cursor(&mut self) -> &mut OpenCursor {
        self.cursor.as_mut().expect("a cursor that is checked out was not checked in yet")
    }

    /// Gives the cursor back, for the next batch. It is closed if it was killed meanwhile.
    pub fn check_in(mut self, now: Instant) {
        let Some(cursor) = self.cursor.take() else { return };
        let mut table = self.cursors.lock();
        match table.slots.get_mut(&self.id) {
            Some(slot @ Slot::CheckedOut { is_killed: false, .. }) => {
                *slot = Slot::Idle { cursor, used: now };
            }
            _ => {
                table.slots.remove(&self.id);
                drop(table);
            }
        }
    }
}

impl Drop for CheckedOut<'_> {
    fn drop(&mut self) {
        if self.cursor.is_some() {
            self.cursors.lock().slots.remove(&self.id);
        }
    }
}

fn not_found(id: i64) -> Error {
    Error::invalid(Code::CursorNotFound, format!("cursor id {id} not found"))
}

fn check_owner(
    id: i64,
    facts: &CursorFacts,
    namespace: &str,
    session: Option<SessionId>,
) -> Result<(), Error> {
    if facts.namespace != namespace {
        let message = format!(
            "Requested getMore on namespace '{namespace}', but cursor belongs to a different \
             namespace {}",
            facts.namespace
        );
        return Err(Error::invalid(Code::Unauthorized, message));
    }
    let (code, reason) = match (facts.session, session) {
        (None, None) => return Ok(()),
        (Some(owner), Some(session)) if owner == session => return Ok(()),
        (None, Some(_)) => (50736, "was not created in a session, in a session"),
        (Some(_), None) => (50737, "was created in a session, without an lsid"),
        (Some(_), Some(_)) => (50738, "was created in another session"),
    };
    let message = format!("Cannot run getMore on cursor {id}, which {reason}");
    Err(Error::invalid(Code::Location(code), message))
}

fn check_transaction(id: i64, facts: &CursorFacts, transaction: Option<i64>) -> Result<(), Error> {
    let (code, reason) = match (facts.transaction, transaction) {
        (owner, transaction) if owner == transaction => return Ok(()),
        (None, _) => (50740, "was created outside of a transaction, in a transaction"),
        (Some(_), None) => (50741, "was created in a transaction, outside of it"),
        (Some(_), Some(_)) => (50739, "was created in another transaction"),
    };
    let message = format!("Cannot run getMore on cursor {id}, which {reason}");
    Err(Error::invalid(Code::Location(code), message))
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;

    fn cursor(count: i32, session: Option<SessionId>) -> OpenCursor {
        let facts = CursorFacts {
            namespace: "test.c".to_owned(),
            session,
            transaction: None,
            no_timeout: false,
        };
        let documents = (0..count).map(|number| Ok(document! { "_id": number }));
        OpenCursor::new(facts, Box::new(documents))
    }

    fn batch(cursor: &mut OpenCursor, max: Option<u64>) -> (usize, bool) {
        let batch = cursor.next_batch(max, &|| Ok(())).expect("no document fails");
        (batch.documents.len(), batch.is_last)
    }

    #[test]
    fn batches_end_where_they_are_told() {
        let mut five = cursor(5, None);
        assert_eq!(batch(&mut five, Some(0)), (0, false));
        assert_eq!(batch(&mut five, Some(2)), (2, false));
        assert_eq!(batch(&mut five, Some(3)), (3, true));
        assert_eq!(batch(&mut cursor(5, None), None), (5, true));
        assert_eq!(batch(&mut cursor(0, None), Some(3)), (0, true));
    }

    #[test]
    fn batches_end_at_sixteen_megabytes() {
        let big = "x".repeat(6 << 20);
        let facts = CursorFacts {
            namespace: "a.b".to_owned(),
            session: None,
            transaction: None,
            no_timeout: false,
        };
        let documents = (0..4).map(move |_| Ok(document! { "big": &big }));
        let mut cursor = OpenCursor::new(facts, Box::new(documents));
        assert_eq!(batch(&mut cursor, None), (2, false));
        assert_eq!(batch(&mut cursor, None), (2, true));
    }

    #[test]
    fn a_cursor_belongs_to_its_session_and_namespace() {
        let cursors = Cursors::default();
        let (one, other) = (Some(SessionId([1; 16])), Some(SessionId([2; 16])));
        let id = cursors.open(cursor(3, one), Instant::now()).expect("room");
        let code = |id, namespace: &str, session| {
            cursors.check_out(id, namespace, session, None).map(|_| ()).map_err(|e| e.code.number())
        };
        assert_eq!(code(id, "test.d", one), Err(13));
        assert_eq!(code(id, "test.c", other), Err(50738));
        assert_eq!(code(id, "test.c", None), Err(50737));
        assert_eq!(code(id + 1, "test.c", one), Err(43));
        let checked_out = cursors.check_out(id, "test.c", one, None).expect("mine");
        assert_eq!(code(id, "test.c", one), Err(12051));
        checked_out.check_in(Instant::now());
        assert_eq!(code(id, "test.c", one), Ok(()));
        // Checked out and dropped above: closed.
        assert_eq!(code(id, "test.c", one), Err(43));
    }

    #[test]
    fn a_kill_reaches_a_cursor_in_use() {
        let cursors = Cursors::default();
        let id = cursors.open(cursor(3, None), Instant::now()).expect("room");
        let checked_out = cursors.check_out(id, "test.c", None, None).expect("there");
        assert!(!cursors.kill(id, "test.other"));
        assert!(cursors.kill(id, "test.c"));
        checked_out.check_in(Instant::now());
        assert_eq!(cursors.counts().open, 0);
        assert!(!cursors.kill(id, "test.c"));
    }

    #[test]
    fn idle_cursors_and_ended_sessions_let_go() {
        let cursors = Cursors::default();
        let start = Instant::now();
        let session = SessionId([1; 16]);
        cursors.open(cursor(3, Some(session)), start).expect("room");
        let mut eternal = cursor(3, None);
        eternal.facts.no_timeout = true;
        cursors.open(eternal, start).expect("room");
        cursors.open(cursor(3, None), start).expect("room");
        cursors.kill_sessions(Some(&[SessionId([9; 16])]));
        assert_eq!(cursors.counts().open, 3);
        cursors.kill_sessions(Some(&[session]));
        assert_eq!(cursors.counts().open, 2);
        cursors.expire(start + CURSOR_IDLE_MAX);
        let expected = CursorCounts { open: 1, no_timeout: 1, pinned: 0, timed_out: 1 };
        assert_eq!(cursors.counts(), expected);
    }

    #[test]
    fn there_is_a_limit() {
        let cursors = Cursors::default();
        for _ in 0..CURSORS_MAX {
            cursors.open(cursor(0, None), Instant::now()).expect("room");
        }
        assert!(cursors.open(cursor(0, None), Instant::now()).is_err());
    }
}
