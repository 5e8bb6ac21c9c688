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
//! 4. Before its time only a cursor is closed whose client is gone ([`Presence`]), and only where
//!    a limit would refuse another one: of those that the limit counts, the one that was idle for
//!    longest. One that is in use, that has no timeout, or that belongs to a transaction stays.
//!
//! [`Presence`]: crate::peer::Presence

mod batch;
mod parked;
mod stream;

use std::collections::hash_map::{Entry, RandomState};
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use frond_db::Error;
use frond_doc::{DocumentBuf, Timestamp};
use frond_query::Code;

use crate::access::Granted;
use crate::common_fields::{SessionId, UserDigest};
use crate::limits::{CURSORS_CROWDED, CURSORS_MAX, CURSORS_OF_CLIENT_MAX, CURSORS_SHARE_MAX};
use crate::operations::Operation;
use crate::stable_api::ApiParameters;

pub use self::batch::{BatchSize, Documents, OpenCursor};
pub use self::parked::{Parked, Parking};
pub use self::stream::OpenStream;

/// The facts about a cursor, besides its documents.
#[derive(Clone, Debug, PartialEq)]
pub struct CursorFacts {
    /// `database.collection`, as the client named it.
    pub namespace: String,
    /// The session in which it was opened.
    pub session: Option<SessionId>,
    /// The user that opened it.
    pub user: UserDigest,
    /// The rights that its user must still have, to read on; `None` where the server doesn't check
    /// that.
    pub granted: Option<Arc<Granted>>,
    /// The connection over which it was opened.
    pub connection: i32,
    /// The client's address.
    pub address: IpAddr,
    /// The number of the transaction in which it was opened.
    pub transaction: Option<i64>,
    /// Whether it stays open however long it is not used.
    pub no_timeout: bool,
    /// The stable API's fields of the command that opened it.
    pub api: ApiParameters,
    /// The time of the moment at which it reads, if that was asked for.
    pub read_time: Option<Timestamp>,
    /// The place where a change stream goes on behind the last batch.
    pub resume_token: Option<DocumentBuf>,
}

/// Says whether a cursor stays open at the end of a capped collection, for documents that come
/// later.
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

enum Slot {
    Idle {
        cursor: Box<OpenCursor>,
        used: Instant,
    },
    CheckedOut {
        facts: Box<CursorFacts>,
        is_killed: bool,
        /// The `getMore` that waits with it for something to come.
        waits: Option<Arc<Operation>>,
    },
}

impl Slot {
    /// Marks one that is in use: it is closed when it comes back, which is soon.
    fn mark_killed(&mut self) {
        if let Slot::CheckedOut { is_killed, waits, .. } = self {
            *is_killed = true;
            waits.iter().for_each(|operation| operation.wake());
        }
    }

    fn facts(&self) -> &CursorFacts {
        match self {
            Slot::Idle { cursor, .. } => &cursor.facts,
            Slot::CheckedOut { facts, .. } => facts,
        }
    }
}

/// The number of cursors that are open: for `serverStatus`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CursorCounts {
    /// Open now.
    pub open: usize,
    /// The number of these without a timeout.
    pub no_timeout: usize,
    /// The number of these in use by a command.
    pub pinned: usize,
    /// Closed because no client used them.
    pub timed_out: u64,
}

/// The cursors that are too many.
#[derive(Clone, Copy)]
enum Full {
    All,
    Of(Owner),
}

/// The owner of cursors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Owner {
    Session(SessionId),
    Connection(i32),
    User(UserDigest),
    Address(IpAddr),
}

impl Owner {
    /// The name in messages, and how many it may own where so many are open.
    fn limit(self, open: usize) -> (&'static str, usize) {
        let share = if open < CURSORS_CROWDED { CURSORS_MAX } else { CURSORS_SHARE_MAX };
        match self {
            Owner::Session(_) => ("this session", CURSORS_OF_CLIENT_MAX),
            Owner::Connection(_) => ("this connection", CURSORS_OF_CLIENT_MAX),
            Owner::User(_) => ("this user", share),
            Owner::Address(_) => ("this client's address", share),
        }
    }
}

impl CursorFacts {
    fn owners(&self) -> impl Iterator<Item = Owner> {
        let session = self.session.map(Owner::Session);
        let user = Some(self.user).filter(|user| *user != UserDigest::ANONYMOUS);
        let both = [Owner::Connection(self.connection), Owner::Address(self.address)];
        session.into_iter().chain(user.map(Owner::User)).chain(both)
    }
}

/// *Invariant*: `counts` has each owner of a slot, and how many slots it owns.
#[derive(Default)]
struct Table {
    slots: HashMap<i64, Slot>,
    counts: HashMap<Owner, usize>,
    ids_made: u64,
    timed_out: u64,
}

impl Table {
    /// Returns whose cursors are too many for one more; of all clients' that is `Full::All`.
    fn full(&self, facts: &CursorFacts) -> Option<Full> {
        if self.slots.len() >= CURSORS_MAX {
            return Some(Full::All);
        }
        let count = |owner: &Owner| self.counts.get(owner).copied().unwrap_or(0);
        let is_full = |owner: &Owner| owner.limit(self.slots.len()).1 <= count(owner);
        facts.owners().find(is_full).map(Full::Of)
    }

    /// The error of one cursor too many.
    fn refused(&self, full: Full) -> Error {
        let message = match full {
            Full::All => format!("{CURSORS_MAX} cursors are open: close some first"),
            Full::Of(owner) => {
                let (name, _) = owner.limit(self.slots.len());
                let count = self.counts.get(&owner).copied().unwrap_or(0);
                format!(
                    "{count} cursors of {name} are open: read them to their end or close some first"
                )
            }
        };
        Error::invalid(Code::OperationFailed, message)
    }

    /// Removes the cursor that gives way to another one (invariant 4).
    fn give_way(&mut self, full: Full, now: Instant) -> Option<Slot> {
        let may_go = |cursor: &OpenCursor| {
            let facts = &cursor.facts;
            let is_counted = match full {
                Full::All => true,
                Full::Of(owner) => facts.owners().any(|each| each == owner),
            };
            let stays = facts.no_timeout || facts.transaction.is_some();
            is_counted && !stays && cursor.client.is_gone(now)
        };
        let idle = self.slots.iter().filter_map(|(id, slot)| match slot {
            Slot::Idle { cursor, used } if may_go(cursor) => Some((*used, *id)),
            _ => None,
        });
        let (_, id) = idle.min()?;
        self.timed_out += 1;
        self.remove(id)
    }

    fn insert(&mut self, id: i64, slot: Slot) {
        for owner in slot.facts().owners() {
            *self.counts.entry(owner).or_default() += 1;
        }
        self.slots.insert(id, slot);
    }

    fn remove(&mut self, id: i64) -> Option<Slot> {
        let slot = self.slots.remove(&id)?;
        for owner in slot.facts().owners() {
            if let Entry::Occupied(mut count) = self.counts.entry(owner) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        }
        Some(slot)
    }
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
    cursor: Option<Box<OpenCursor>>,
}

impl Cursors {
    /// Keeps a cursor and names it.
    ///
    /// # Errors
    /// When too many are open, of all clients or of this one, and none of them gives way.
    pub fn open(&self, cursor: OpenCursor, now: Instant) -> Result<i64, Error> {
        // Closing a cursor lets go of a snapshot: not while the lock is held.
        let mut closed = Vec::new();
        let mut table = self.lock();
        while let Some(full) = table.full(&cursor.facts) {
            match table.give_way(full, now) {
                Some(slot) => closed.push(slot),
                None => return Err(table.refused(full)),
            }
        }
        let id = loop {
            table.ids_made += 1;
            let id = i64::try_from(self.id_keys.hash_one(table.ids_made) >> 1)
                .expect("63 bits are left");
            if id != 0 && !table.slots.contains_key(&id) {
                break id;
            }
        };
        table.insert(id, Slot::Idle { cursor: Box::new(cursor), used: now });
        drop(table);
        drop(closed);
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
        user: UserDigest,
        session: Option<SessionId>,
        transaction: Option<i64>,
    ) -> Result<CheckedOut<'_>, Error> {
        let mut table = self.lock();
        let slot = table.slots.get_mut(&id).ok_or_else(|| not_found(id))?;
        if slot.facts().user != user {
            let message = format!("cursor id {id} was not created by the authenticated user");
            return Err(Error::invalid(Code::Unauthorized, message));
        }
        check_owner(id, slot.facts(), namespace, session)?;
        check_transaction(id, slot.facts(), transaction)?;
        let facts = Box::new(slot.facts().clone());
        match std::mem::replace(slot, Slot::CheckedOut { facts, is_killed: false, waits: None }) {
            Slot::Idle { cursor, .. } => Ok(CheckedOut { cursors: self, id, cursor: Some(cursor) }),
            in_use @ Slot::CheckedOut { .. } => {
                *slot = in_use;
                let message = format!("cursor id {id} is already in use");
                Err(Error::invalid(Code::Location(12051), message))
            }
        }
    }

    /// Goes on with a cursor that waited ([`CheckedOut::park`]).
    pub fn resume(&self, id: i64, cursor: Box<OpenCursor>) -> CheckedOut<'_> {
        if let Some(Slot::CheckedOut { waits, .. }) = self.lock().slots.get_mut(&id) {
            *waits = None;
        }
        CheckedOut { cursors: self, id, cursor: Some(cursor) }
    }

    /// Returns the user that a cursor belongs to.
    pub fn user_of(&self, id: i64) -> Option<UserDigest> {
        self.lock().slots.get(&id).map(|slot| slot.facts().user)
    }

    /// Closes a cursor of `namespace`; returns whether it was there.
    pub fn kill(&self, id: i64, namespace: &str) -> bool {
        let mut table = self.lock();
        let Some(slot) = table.slots.get_mut(&id) else { return false };
        if slot.facts().namespace != namespace {
            return false;
        }
        let killed = match slot {
            Slot::CheckedOut { .. } => {
                slot.mark_killed();
                None
            }
            Slot::Idle { .. } => table.remove(id),
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

    /// Closes the cursors that no client has used for long.
    pub fn expire(&self, now: Instant, idle_max: Duration) {
        let expired = self.take_where(|slot| match slot {
            Slot::Idle { cursor, used } => {
                !cursor.facts.no_timeout && now.duration_since(*used) >= idle_max
            }
            Slot::CheckedOut { .. } => false,
        });
        self.lock().timed_out += expired.len() as u64;
    }

    /// Closes all cursors: the server stops.
    pub fn close(&self) {
        drop(self.take_where(|_| true));
    }

    /// Returns how many are open.
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
                Slot::CheckedOut { .. } => slot.mark_killed(),
            }
        }
        idle.into_iter().filter_map(|id| table.remove(id)).collect()
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

    /// Takes the cursor out of here while `operation` waits for something to come: it stays in use.
    ///
    /// # Errors
    /// `CursorKilled` (237).
    pub fn park(mut self, operation: &Arc<Operation>) -> Result<Box<OpenCursor>, Error> {
        self.check_killed()?;
        if let Some(Slot::CheckedOut { waits, .. }) = self.cursors.lock().slots.get_mut(&self.id) {
            *waits = Some(Arc::clone(operation));
        }
        // One that was killed in between isn't woken.
        self.check_killed()?;
        Ok(self.cursor.take().expect("a cursor that is checked out was not checked in yet"))
    }

    /// Fails if it was killed while it was out.
    ///
    /// # Errors
    /// `CursorKilled` (237).
    pub fn check_killed(&self) -> Result<(), Error> {
        match self.cursors.lock().slots.get(&self.id) {
            Some(Slot::CheckedOut { is_killed: false, .. }) => Ok(()),
            _ => Err(Error::invalid(Code::CursorKilled, "operation was interrupted")),
        }
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
                table.remove(self.id);
                drop(table);
            }
        }
    }
}

impl Drop for CheckedOut<'_> {
    fn drop(&mut self) {
        if self.cursor.is_some() {
            self.cursors.lock().remove(self.id);
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
mod tests;
