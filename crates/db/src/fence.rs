//! Decides which of several lines may use a database: a *fence* stands where it must not be used.
//!
//! A database that moves from one line to another (docs/router.md) lies at both for a while, and
//! its copy stays behind. The fence is a record beside the database, in the log and so with every
//! member of a set.
//!
//! ```text
//! no record, Open     it is used here
//! Leaving             it is about to go to another line, and must not change any more
//! Copy                it comes from another line, or has gone there: this is a copy
//! ```
//!
//! *Invariants*
//! 1. While a fence stands, nothing of the database changes but by its move: writes and commands of
//!    versions look for it in their own transactions, and conflict with one that is put up
//!    meanwhile. Putting it up waits for writes under way.
//! 2. Each attempt to move a database has a *generation* of its own, higher than all before. The
//!    record keeps the highest that was seen, also once it is open again, and what a lower one asks
//!    for is refused: so a step that comes late, from a router that was frozen, does nothing.

use bytes::Bytes;
use frond_doc::{DocumentBuilder, Value};
use frond_engine::{Durability, Snapshot, Transaction, TreeId};
use frond_query::Code;
use frond_tree::{Bounds, Direction, Value as TreeValue};

use crate::contention::{LatchMode, Scope};
use crate::error::Error;
use crate::frond::Frond;
use crate::reader::Reader;
use crate::refs;
use crate::schema::TreeRef;
use crate::system;
use crate::transact::Outcome;

/// The state of a fence: whether a database is used here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FenceState {
    /// It is.
    Open,
    /// It is about to go to another line.
    Leaving,
    /// Another line has it.
    Copy,
}

impl FenceState {
    const ALL: [FenceState; 3] = [FenceState::Open, FenceState::Leaving, FenceState::Copy];

    /// As it is stored and shown.
    pub fn name(self) -> &'static str {
        match self {
            FenceState::Open => "open",
            FenceState::Leaving => "leaving",
            FenceState::Copy => "copy",
        }
    }
}

/// The record of a database that was moved, or is being moved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fence {
    /// The generation of the latest attempt to move it that is known here.
    pub generation: i64,
    /// The state: whether it is used here.
    pub state: FenceState,
    /// The other line.
    pub line: String,
}

/// The steps of a move that change a fence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FenceStep {
    /// At the source: nothing is to change any more.
    Leave,
    /// At the target: a copy is to come, where nothing or an older copy lies.
    Receive,
    /// At the target: the copy is used from now on.
    Take,
    /// At the source: what has stayed is a copy.
    Left,
    /// At the source: it stays here.
    Stay,
}

impl Fence {
    fn encode(&self) -> Bytes {
        let mut builder = DocumentBuilder::new();
        builder.append("generation", Value::Int64(self.generation));
        builder.append("state", Value::String(self.state.name()));
        builder.append("line", Value::String(&self.line));
        builder.build().into_bytes()
    }

    fn decode(bytes: Bytes) -> Result<Fence, Error> {
        let record = system::record(bytes)?;
        let text = |value: Value<'_>| value.as_str().map(str::to_owned);
        let state = system::field(&record, "state", |value| {
            let name = value.as_str()?;
            FenceState::ALL.into_iter().find(|state| state.name() == name)
        })?;
        let generation = system::field(&record, "generation", |value| value.as_integer())?;
        Ok(Fence { generation, state, line: system::field(&record, "line", text)? })
    }

    /// Returns the error of a client that would use the database here.
    fn refusal(&self, database: &str, code: Code) -> Error {
        let line = &self.line;
        let message = match self.state {
            FenceState::Leaving => format!("database {database} is being moved to the line {line}"),
            _ => format!("the line {line} has database {database}, this is a copy: ask a router"),
        };
        Error::invalid(code, message)
    }
}

/// The fence of a database.
///
/// # Errors
/// `Damaged` if the record is none; as [`Reader::get`].
pub(crate) fn read(reader: &Reader<'_>, database: &str) -> Result<Option<Fence>, Error> {
    let record = reader.get_bytes(TreeRef::Live(TreeId::SYSTEM), &system::fence_key(database))?;
    record.map(Fence::decode).transpose()
}

/// Refuses to change a database that isn't used here, unless for its move of this generation; the
/// transaction conflicts with one that changes the fence meanwhile.
///
/// # Errors
/// `UserWritesBlocked`; `ConflictingOperationInProgress` for a move that is over.
pub(crate) fn check(
    frond: &Frond,
    transaction: &mut Transaction,
    database: &str,
    moved_by: Option<i64>,
) -> Result<(), Error> {
    if !frond.written().some_closed() && moved_by.is_none() {
        return Ok(());
    }
    let fence = read(&Reader::within(frond.engine(), transaction), database)?;
    transaction.validate(TreeId::SYSTEM, system::fence_key(database));
    match (fence, moved_by) {
        (Some(fence), Some(generation)) if fence.generation == generation => Ok(()),
        (fence, Some(generation)) => Err(late(database, generation, fence.as_ref())),
        (Some(fence), None) if fence.state != FenceState::Open => {
            Err(fence.refusal(database, Code::UserWritesBlocked))
        }
        _ => Ok(()),
    }
}

fn late(database: &str, generation: i64, fence: Option<&Fence>) -> Error {
    let known = fence.map_or(0, |fence| fence.generation);
    let message = format!(
        "a step of the move {generation} of database {database} comes late: the move {known} is \
         known here"
    );
    Error::invalid(Code::ConflictingOperationInProgress, message)
}

impl Frond {
    /// The fence of a database, if it was ever moved.
    ///
    /// # Errors
    /// `Damaged` if the record is none; `Unavailable` if the disk doesn't answer.
    pub fn fence(&self, database: &str) -> Result<Option<Fence>, Error> {
        read(&Reader::now(self.engine()), database)
    }

    /// Refuses a request on a database that isn't used here, before anything of it is done. Costs
    /// nothing in a directory that has no fence and no closed branch.
    ///
    /// # Errors
    /// `StaleDbVersion` (249): a router reads again where the database is.
    pub fn check_used_here(&self, database: &str) -> Result<(), Error> {
        if !self.written().some_closed() {
            return Ok(());
        }
        match self.fence(database)? {
            Some(fence) if fence.state != FenceState::Open => {
                Err(fence.refusal(database, Code::StaleDbVersion))
            }
            _ => Ok(()),
        }
    }

    /// Refuses to read a database at the moment of a snapshot if another line had it at that
    /// moment: what lay here then doesn't show what it was.
    ///
    /// # Errors
    /// `SnapshotTooOld`; as [`Frond::fence`].
    pub fn check_used_at(&self, database: &str, moment: &Snapshot) -> Result<(), Error> {
        // A database that never moved has no record.
        let Some(now) = self.fence(database)? else { return Ok(()) };
        let then = Reader::at(moment.clone());
        let (what, line) = match read(&then, database)? {
            Some(fence) if fence.state == FenceState::Open => return Ok(()),
            Some(fence) => ("was moving, or at the line", fence.line),
            None if refs::repository(&then, database)?.is_some() => return Ok(()),
            None => ("was not here yet; it has been moved between here and the line", now.line),
        };
        let message = format!("database {database} {what} {line} at that moment");
        Err(Error::invalid(Code::SnapshotTooOld, message))
    }

    /// Whether any database has a fence that stands.
    ///
    /// # Errors
    /// As [`Frond::fence`].
    #[doc(hidden)]
    pub fn some_fenced(&self) -> Result<bool, Error> {
        let reader = Reader::now(self.engine());
        let bounds = Bounds::prefix(&system::fences_prefix());
        let place = TreeRef::Live(TreeId::SYSTEM);
        for entry in reader.range(place, bounds, Direction::Ascending)? {
            let fence = Fence::decode(reader.read(&entry?.value)?)?;
            if fence.state != FenceState::Open {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Does a step of the move `generation` of a database, whose other line is `line`. Once a fence
    /// stands, no write is under way. The same step again does nothing.
    ///
    /// # Errors
    /// `ConflictingOperationInProgress` if a later move is known; `NamespaceExists` if a copy is to
    /// come where the database is used; `IllegalOperation` if the step doesn't follow.
    pub fn step_fence(
        &self,
        database: &str,
        generation: i64,
        step: FenceStep,
        line: &str,
    ) -> Result<Fence, Error> {
        if matches!(step, FenceStep::Leave | FenceStep::Receive | FenceStep::Left) {
            // From now on every write looks.
            self.written().note_closed();
        }
        let scope = Scope::branch(database, "");
        self.transact(scope, LatchMode::Remover, Durability::Synced, |transaction| {
            let (known, exists) = {
                let reader = Reader::within(self.engine(), transaction);
                (read(&reader, database)?, refs::repository(&reader, database)?.is_some())
            };
            if known.as_ref().is_some_and(|known| generation < known.generation) {
                return Err(late(database, generation, known.as_ref()));
            }
            let before = known.as_ref().map_or(FenceState::Open, |known| known.state);
            let state = follow(database, before, step, exists)?;
            let fence = Fence { generation, state, line: line.to_owned() };
            if known.as_ref() == Some(&fence) {
                return Ok(Outcome::Discard(fence));
            }
            let key = system::fence_key(database);
            transaction.validate(TreeId::SYSTEM, system::repository_key(database));
            transaction.put(TreeId::SYSTEM, key, TreeValue::inline(fence.encode()))?;
            Ok(Outcome::Commit(fence))
        })
    }
}

/// Returns the state of a fence after a step.
fn follow(
    database: &str,
    before: FenceState,
    step: FenceStep,
    exists: bool,
) -> Result<FenceState, Error> {
    match (step, before) {
        (FenceStep::Leave, FenceState::Open | FenceState::Leaving) => Ok(FenceState::Leaving),
        (FenceStep::Receive, FenceState::Copy) => Ok(FenceState::Copy),
        (FenceStep::Receive, FenceState::Open) if !exists => Ok(FenceState::Copy),
        (FenceStep::Receive, FenceState::Open) => {
            let message = format!("database {database} exists at the line that it is to go to");
            Err(Error::invalid(Code::NamespaceExists, message))
        }
        (FenceStep::Take, FenceState::Copy | FenceState::Open) => Ok(FenceState::Open),
        (FenceStep::Left, FenceState::Leaving | FenceState::Copy) => Ok(FenceState::Copy),
        (FenceStep::Stay, FenceState::Open | FenceState::Leaving) => Ok(FenceState::Open),
        _ => {
            let message =
                format!("{step:?} of database {database} doesn't follow: it is {}", before.name());
            Err(Error::invalid(Code::IllegalOperation, message))
        }
    }
}
