//! Moves a database from one line to another while it is used.
//!
//! 1. *Copying.* The entry is claimed ([`database_entry`](super::database_entry)); what can't move
//!    is refused by name. The target is fenced off for the copy. The source commits, the copy
//!    fetches, as often as that brings much. Clients notice nothing.
//! 2. *Stopped.* The entry says so, and routers hold what comes for the database. Once all have
//!    read that, the source's fence is put up: no write is under way then, and none comes, also by
//!    a router that was cut off. The source commits, the copy fetches the rest and becomes what the
//!    source is, to the last branch; records of sessions go along, so that a write whose answer was
//!    lost isn't done again.
//! 3. *Switched.* One write changes the entry's line. It is done if, and only if, this router still
//!    has the entry, and from then on there is no way back. The copy's fence goes, the source's
//!    stays: what lies there is a copy now.
//!
//! **Why nothing is lost or done twice.** Each step carries the claim's generation, which servers
//! compare with the highest that they have seen: one that comes late does nothing. The line is
//! switched by the holder of the claim, after the source was fenced under the same claim; another
//! router that would open the source again has to claim the entry first, and then this one can't
//! switch. No step removes anything but from a copy that is fenced off. A step whose answer is lost
//! ends the attempt, and the next one begins with a claim of its own at the phase that the entry
//! has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use frond_db::Error;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;
use tokio::time::{Instant, sleep};

use super::database_entry::{DatabaseEntry, MoveInProgress, taken_over};
use super::forward::{Refusal, forward_within};
use super::line::Line;
use super::login::Identity;
use super::routed_request::{LEADER_WAIT_MAX, RoutedRequest};
use super::shared::Shared;
use super::table::{Phase, Table};
use super::upstream::{decoded, is_ok};
use crate::wire::Message;

/// All routers have read the table, and so know of the move, after as long.
const KNOWN_AFTER: Duration = Duration::from_millis(1_300);
/// All routers that know of the move have read what changed in it after as long.
const HELD_AFTER: Duration = Duration::from_millis(400);
/// A round that takes no longer isn't followed by another before writers are stopped.
const ROUND_SHORT: Duration = Duration::from_millis(700);
const ROUNDS_MAX: u32 = 6;
/// Attempts whose steps were left without an answer.
const ATTEMPTS_MAX: u32 = 40;
const PAUSE: Duration = Duration::from_millis(500);

/// A move: the database, its destination, and the reports of its steps.
pub(super) struct Mover {
    pub shared: Arc<Shared>,
    pub identity: Option<Identity>,
    pub database: String,
    /// Reports each step.
    pub report: Box<dyn Fn(&str) + Send + Sync>,
    /// Whether it is to end as soon as a line doesn't answer.
    pub is_cancelled: Arc<AtomicBool>,
}

/// The reason why an attempt has ended.
enum MoveStopped {
    /// A line didn't answer: what was asked of it may have been done.
    Lost(Error),
    /// It can't go on.
    Refused(Error),
}

impl From<Error> for MoveStopped {
    fn from(error: Error) -> MoveStopped {
        MoveStopped::Refused(error)
    }
}

/// The two lines of a move.
struct MoveEnds {
    from: Arc<Line>,
    to: Arc<Line>,
}

impl Mover {
    /// Moves the database to a line; goes on with a move that was begun.
    ///
    /// # Errors
    /// `ShardNotFound`, `NamespaceNotFound`, `IllegalOperation` for what can't move;
    /// `ConflictingOperationInProgress` for another move; `HostUnreachable` if a line doesn't
    /// answer for long: the same again goes on.
    pub async fn run(&self, to: &str) -> Result<(), Error> {
        let mut attempts = 0;
        loop {
            match self.attempt(to).await {
                Ok(()) => return Ok(()),
                Err(stop) => self.begin_again(stop, &mut attempts).await?,
            }
        }
    }

    /// Takes back a move that hasn't switched.
    ///
    /// # Errors
    /// `IllegalOperation` if it has; `HostUnreachable`.
    pub async fn abort(&self) -> Result<(), Error> {
        let mut attempts = 0;
        loop {
            match self.give_up().await {
                Ok(()) => return Ok(()),
                Err(stop) => self.begin_again(stop, &mut attempts).await?,
            }
        }
    }

    /// Waits before the next attempt, if there is to be one.
    async fn begin_again(&self, stop: MoveStopped, attempts: &mut u32) -> Result<(), Error> {
        match stop {
            MoveStopped::Lost(_) if self.is_cancelled.load(Ordering::Relaxed) => {
                let message = format!("the move of database {} is taken back", self.database);
                Err(Error::invalid(Code::ConflictingOperationInProgress, message))
            }
            MoveStopped::Lost(error) if *attempts < ATTEMPTS_MAX => {
                (self.report)(&format!("begins again: {}", error.message));
                *attempts += 1;
                sleep(PAUSE).await;
                Ok(())
            }
            MoveStopped::Lost(error) | MoveStopped::Refused(error) => Err(error),
        }
    }

    async fn attempt(&self, to: &str) -> Result<(), MoveStopped> {
        let table = self.table().await?;
        let known = self.entry(&table).await?;
        let from = match &known.journey {
            None if known.line == to => return Ok(()),
            None => known.line.clone(),
            Some(journey) if journey.to == to => journey.from.clone(),
            Some(journey) => {
                let message = format!(
                    "database {} is on its way to the line {}: let it arrive, or frondAbortMove it",
                    self.database, journey.to
                );
                let error = Error::invalid(Code::ConflictingOperationInProgress, message);
                return Err(error.into());
            }
        };
        let ends = self.ends(&table, &from, to)?;
        if known.journey.is_none() {
            self.check_movable(&table, &ends).await?;
        }
        // A move that was begun has a generation above those already.
        let seen = if known.journey.is_none() { self.seen(&ends).await? } else { 0 };
        let entry = self.change(&table, &known, &known.claimed(&from, to, seen)).await?;
        (self.report)(&format!("generation {}: {from} to {to}", entry.generation));
        match self.follow(&table, &ends, entry).await {
            Err(MoveStopped::Refused(error)) if !is_about_claim(&error) => {
                (self.report)(&format!("given up: {}", error.message));
                // A move that can't go on stops no client. If a line can't be reached now, the
                // command frondAbortMove aborts the move later.
                let _ = self.abort().await;
                Err(MoveStopped::Refused(error))
            }
            done => done,
        }
    }

    /// Follows a move from the phase that the entry has.
    async fn follow(
        &self,
        table: &Table,
        ends: &MoveEnds,
        mut entry: DatabaseEntry,
    ) -> Result<(), MoveStopped> {
        let phase = entry.journey.as_ref().map(|journey| journey.phase);
        let generation = entry.generation;
        if phase != Some(Phase::Switched) {
            self.fence(&ends.to, "receive", generation, &ends.from).await?;
            if phase == Some(Phase::Copying) {
                self.copy(ends, generation).await?;
                (self.report)("writers are stopped");
                entry = self.change(table, &entry, &entry.at(Phase::Stopped)).await?;
                sleep(HELD_AFTER).await;
            }
            self.fence(&ends.from, "leave", generation, &ends.to).await?;
            self.copy_rest(ends, generation).await?;
            self.carry_records(ends).await?;
            entry = self.change(table, &entry, &entry.at(Phase::Switched)).await?;
            (self.report)(&format!("the line {} has it", ends.to.name));
        }
        self.fence(&ends.to, "take", generation, &ends.from).await?;
        self.fence(&ends.from, "left", generation, &ends.to).await?;
        self.change(table, &entry, &entry.settled()).await?;
        Ok(())
    }

    /// Brings what there is while the database is written to.
    async fn copy(&self, ends: &MoveEnds, generation: i64) -> Result<(), MoveStopped> {
        let begun = Instant::now();
        for round in 1..=ROUNDS_MAX {
            if self.is_cancelled.load(Ordering::Relaxed) {
                return Err(MoveStopped::Lost(Error::internal("it is to be taken back")));
            }
            let round_begun = Instant::now();
            self.step(&ends.from, "commit", None, Some(&ends.to), &[]).await?;
            let answer = self.copy_from(ends, generation, None).await?;
            let count = |name| answer.get(name).and_then(|count| count.as_integer()).unwrap_or(0);
            let (commits, bytes) = (count("commits"), count("bytes"));
            (self.report)(&format!("round {round}: {commits} commits, {bytes} bytes copied"));
            if round_begun.elapsed() < ROUND_SHORT {
                break;
            }
        }
        sleep(KNOWN_AFTER.saturating_sub(begun.elapsed())).await;
        Ok(())
    }

    /// Brings what the source has now that nothing changes there, and has the copy be the same.
    async fn copy_rest(&self, ends: &MoveEnds, generation: i64) -> Result<(), MoveStopped> {
        let looked = self.step(&ends.from, "look", Some(generation), None, &[]).await?;
        refuse_not_movable(&self.database, looked.view())?;
        let answer = self.step(&ends.from, "commit", Some(generation), Some(&ends.to), &[]).await?;
        let handover = answer.get("handover").and_then(|handover| handover.as_document());
        let handover = handover.ok_or_else(|| no_answer(&ends.from))?;
        self.copy_from(ends, generation, Some(handover)).await?;
        (self.report)("the copy is complete");
        Ok(())
    }

    async fn copy_from(
        &self,
        ends: &MoveEnds,
        generation: i64,
        handover: Option<Document<'_>>,
    ) -> Result<DocumentBuf, MoveStopped> {
        let leader = ends.from.leader(Instant::now() + LEADER_WAIT_MAX).await;
        let leader = leader.ok_or_else(|| {
            let message = format!("the line {}: nobody leads it", ends.from.name);
            MoveStopped::Lost(Error::invalid(Code::HostUnreachable, message))
        })?;
        let by_tls = Value::Boolean(ends.from.tls.is_some());
        let mut more = vec![("from", Value::String(&leader)), ("tls", by_tls)];
        if let Some(handover) = handover {
            more.push(("handover", Value::Document(handover)));
        }
        self.step(&ends.to, "copy", Some(generation), None, &more).await
    }

    async fn carry_records(&self, ends: &MoveEnds) -> Result<(), MoveStopped> {
        let mut after: Option<DocumentBuf> = None;
        let mut count = 0;
        loop {
            let name = after.as_ref().and_then(|last| last.get("name"));
            let more: Vec<_> = name.into_iter().map(|name| ("after", name)).collect();
            let answer = self.step(&ends.from, "records", None, None, &more).await?;
            let records = answer.get("records").and_then(|records| records.as_array());
            let records = records.ok_or_else(|| no_answer(&ends.from))?;
            let last = records.iter().last().and_then(|last| last.as_document());
            let Some(last) = last else { break };
            let more = [("records", Value::Array(records))];
            let adopted = self.step(&ends.to, "records", None, None, &more).await?;
            count += adopted.get("adopted").and_then(|count| count.as_integer()).unwrap_or(0);
            after = Some(last.to_buf());
        }
        (self.report)(&format!("{count} records of sessions are carried"));
        Ok(())
    }

    async fn give_up(&self) -> Result<(), MoveStopped> {
        let table = self.table().await?;
        let known = self.entry(&table).await?;
        let Some(MoveInProgress { from, to, phase }) = known.journey.clone() else {
            let message = format!("database {} isn't being moved", self.database);
            return Err(Error::invalid(Code::NamespaceNotFound, message).into());
        };
        if phase == Phase::Switched {
            let message = format!(
                "the line {to} has database {} by now: movePrimary lets it arrive",
                self.database
            );
            return Err(Error::invalid(Code::IllegalOperation, message).into());
        }
        let ends = self.ends(&table, &from, &to)?;
        let entry = self.change(&table, &known, &known.claimed(&from, &to, 0)).await?;
        self.fence(&ends.from, "stay", entry.generation, &ends.to).await?;
        self.change(&table, &entry, &entry.settled()).await?;
        (self.report)(&format!("the line {from} keeps it"));
        // The data at the target is already a copy. It may be away, or its disk be full, and
        // requests wait for nothing there: the next move has a higher generation anyway.
        let _ = self.fence(&ends.to, "receive", entry.generation, &ends.from).await;
        Ok(())
    }

    /// The highest generation that the two lines know of.
    async fn seen(&self, ends: &MoveEnds) -> Result<i64, MoveStopped> {
        let mut seen = 0;
        for line in [&ends.from, &ends.to] {
            let looked = self.step(line, "look", None, None, &[]).await?;
            let generation = looked.get("generation").and_then(|value| value.as_integer());
            seen = seen.max(generation.unwrap_or(0));
        }
        Ok(seen)
    }

    /// Refuses what can't move before anything is changed.
    async fn check_movable(&self, table: &Table, ends: &MoveEnds) -> Result<(), MoveStopped> {
        for branch in table.branches_of(&self.database) {
            let name = format!("{}@{branch}", self.database);
            if table.line_of(&name)?.name == ends.from.name {
                let message = format!(
                    "database {} can't be moved: config.databases keeps {name} on the line {}",
                    self.database, ends.from.name
                );
                return Err(Error::invalid(Code::IllegalOperation, message).into());
            }
        }
        let looked = self.step(&ends.from, "look", None, None, &[]).await?;
        if looked.get("handover").is_none() {
            let message = format!("database {} doesn't exist", self.database);
            return Err(Error::invalid(Code::NamespaceNotFound, message).into());
        }
        if looked.get("state").and_then(|state| state.as_str()) == Some("copy") {
            let message = format!(
                "the line {} has but a copy of {}: config.databases is wrong",
                ends.from.name, self.database
            );
            return Err(Error::invalid(Code::IllegalOperation, message).into());
        }
        Ok(refuse_not_movable(&self.database, looked.view())?)
    }

    async fn fence(
        &self,
        line: &Arc<Line>,
        step: &str,
        generation: i64,
        other: &Line,
    ) -> Result<(), MoveStopped> {
        self.step(line, step, Some(generation), Some(other), &[]).await.map(drop)
    }

    /// One step at a line, and its answer.
    async fn step(
        &self,
        line: &Arc<Line>,
        step: &str,
        generation: Option<i64>,
        other: Option<&Line>,
        more: &[(&str, Value<'_>)],
    ) -> Result<DocumentBuf, MoveStopped> {
        let mut command = DocumentBuilder::new();
        command.append("frondHandOver", Value::String(&self.database));
        command.append("step", Value::String(step));
        if let Some(generation) = generation {
            command.append("generation", Value::Int64(generation));
        }
        if let Some(other) = other {
            command.append("line", Value::String(&other.name));
        }
        for (name, value) in more {
            command.append(name, *value);
        }
        self.ask(line, "admin", command).await
    }

    async fn entry(&self, table: &Table) -> Result<DatabaseEntry, MoveStopped> {
        let default = table.default_line();
        let mut command = DocumentBuilder::new();
        for (name, value) in DatabaseEntry::find(&self.database).iter() {
            command.append(name, value);
        }
        let answer = self.ask(default, "config", command).await?;
        let batch = answer.get("cursor").and_then(|cursor| cursor.as_document()?.get("firstBatch"));
        let stored = batch.and_then(|batch| batch.as_array()?.iter().next()?.as_document());
        Ok(DatabaseEntry::of(&self.database, stored))
    }

    async fn change(
        &self,
        table: &Table,
        before: &DatabaseEntry,
        after: &DatabaseEntry,
    ) -> Result<DatabaseEntry, MoveStopped> {
        let default = table.default_line();
        let mut command = DocumentBuilder::new();
        for (name, value) in after.change(before).iter() {
            command.append(name, value);
        }
        match self.ask(default, "config", command).await {
            // Two have claimed what wasn't there.
            Err(MoveStopped::Refused(error)) if error.code == Code::DuplicateKey => {
                Err(taken_over(&self.database).into())
            }
            answer => Ok(after.check_changed(answer?.view())?),
        }
    }

    /// Sends a command and returns its answer, if that says that all went well.
    async fn ask(
        &self,
        line: &Arc<Line>,
        database: &str,
        mut command: DocumentBuilder,
    ) -> Result<DocumentBuf, MoveStopped> {
        command.append("$db", Value::String(database));
        let body = command.build();
        let message = Message::new(body.clone()).encode(1, 0);
        let Some(ask) = RoutedRequest::read(body.view()) else {
            return Err(no_answer(line).into());
        };
        let (shared, identity) = (&self.shared, self.identity.as_ref());
        let sent = forward_within(shared, line, identity, &message, &ask, LEADER_WAIT_MAX).await;
        let answer = sent.map_err(|Refusal { error, .. }| match error.code {
            Code::HostUnreachable => MoveStopped::Lost(error),
            _ => MoveStopped::Refused(error),
        })?;
        let answer = decoded(answer.unwrap_or_default());
        let answer =
            answer.map_err(|error| MoveStopped::Lost(Error::internal(error.to_string())))?;
        if is_ok(answer.view()) {
            return Ok(answer);
        }
        let code = answer.get("code").and_then(|code| code.as_integer());
        let code = code.and_then(|code| i32::try_from(code).ok()).unwrap_or(0);
        let why = answer.get("errmsg").and_then(|why| why.as_str()).unwrap_or_default();
        let error = Error::invalid(Code::of(code), format!("the line {}: {why}", line.name));
        match is_passing(error.code) {
            true => Err(MoveStopped::Lost(error)),
            false => Err(MoveStopped::Refused(error)),
        }
    }

    async fn table(&self) -> Result<Arc<Table>, MoveStopped> {
        // As it is now: a line may have been added just before.
        let end = Instant::now() + LEADER_WAIT_MAX;
        let table = match self.shared.table(end).await {
            Some(known) => self.shared.later_table(&known, end).await,
            None => None,
        };
        table.ok_or_else(|| {
            let message = "the table of lines can't be read from the default line";
            MoveStopped::Lost(Error::invalid(Code::HostUnreachable, message))
        })
    }

    fn ends(&self, table: &Table, from: &str, to: &str) -> Result<MoveEnds, MoveStopped> {
        let line = |name: &str| {
            let found = table.lines().find(|line| line.name == name).cloned();
            found.ok_or_else(|| {
                let message = format!("Requested primary shard {name} does not exist");
                MoveStopped::Refused(Error::invalid(Code::ShardNotFound, message))
            })
        };
        Ok(MoveEnds { from: line(from)?, to: line(to)? })
    }
}

fn refuse_not_movable(database: &str, looked: Document<'_>) -> Result<(), Error> {
    let found = looked.get("notMovable").and_then(|found| found.as_array());
    let found: Vec<&str> =
        found.iter().flat_map(|found| found.iter()).filter_map(|what| what.as_str()).collect();
    if found.is_empty() {
        return Ok(());
    }
    let message = format!("database {database} can't be moved: {}", found.join("; "));
    Err(Error::invalid(Code::IllegalOperation, message))
}

/// Whether an error says no more than that the same should be tried again.
fn is_passing(code: Code) -> bool {
    matches!(
        code,
        Code::NotWritablePrimary
            | Code::NotPrimaryNoSecondaryOk
            | Code::PrimarySteppedDown
            | Code::InterruptedDueToReplStateChange
            | Code::InterruptedAtShutdown
            | Code::ShutdownInProgress
            | Code::HostUnreachable
            | Code::NetworkTimeout
            | Code::WriteConflict
    )
}

/// Whether another router has the entry now: then the move isn't this one's to take back.
fn is_about_claim(error: &Error) -> bool {
    error.code == Code::ConflictingOperationInProgress
}

fn no_answer(line: &Line) -> Error {
    Error::internal(format!("the line {} gave no proper answer", line.name))
}
