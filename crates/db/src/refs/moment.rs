//! Moments as people name them: `shop@{2026-11-20T10:00:03Z}`, `shop@sale@{1 hour ago}`.
//!
//! A database's name that ends in `@{TIME}` names what a branch held at that moment: each write
//! that was acknowledged by then, committed as a version or not. It is exact or an error, never an
//! older state: what isn't kept any more is refused, with the moment from which on all is, and with
//! the commit that is nearest.
//!
//! | in braces | is the moment |
//! |---|---|
//! | `2026-11-20T10:00:03Z` | when that second was over |
//! | `2026-11-20` | when that day began |
//! | `2 hours ago`, `yesterday` | when the second was over in which it lies |
//! | `now` | now |
//! | `Timestamp(1764583203, 7)` | when the write with that `operationTime` was acknowledged |
//! | `commit by TIME` | none: the last commit by then, as in a revision |
//!
//! A member of a set that follows waits for an `operationTime` that it hasn't come to, as it does
//! for `afterClusterTime`: another member may have acknowledged it.
//!
//! While the clock is behind what it said before, seconds name nothing: writes go on in the order
//! that it had reached.
//!
//! A date behind a tag or a commit, or before steps (`~2`), is a commit's, as in a revision: there
//! is no working state to be read.

use std::time::Duration;

use frond_engine::{RebuildError, Sequence, Snapshot};
use frond_query::Code;
use frond_store::io::{pause, steady_now};
use jiff::Timestamp as Date;

use crate::commit_id;
use crate::date::WrittenDate;
use crate::error::Error;
use crate::frond::Frond;
use crate::interrupt::Interrupt;
use crate::name::{DatabaseName, VersionName};
use crate::reader::Reader;
use crate::refs::erased::EraseCount;
use crate::refs::history::{self, HEAD, WORKING};
use crate::refs::revision::{self, commit_by, timestamp};
use crate::refs::{branch_ref, repository, tag};
use crate::system::DEFAULT_BRANCH;

const MILLIS_PER_SECOND: i64 = 1_000;
/// Clocks of a set's members differ by less.
const SKEW_SECONDS_MAX: i64 = 1;
/// How long a member that follows waits for an `operationTime`.
const APPLIED_WAIT_MAX: Duration = Duration::from_secs(30);
const APPLIED_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// A version's name that names a moment.
#[derive(Clone, PartialEq, Eq, Debug)]
struct MomentName<'a> {
    /// The branch; empty for the default one.
    branch: &'a str,
    /// The text in the braces.
    time: &'a str,
}

impl<'a> MomentName<'a> {
    fn of(revision: &'a str) -> Option<MomentName<'a>> {
        let (branch, time) = revision::lone_date(revision)?;
        commit_by(time).is_none().then_some(MomentName { branch, time })
    }
}

/// The branch at a moment that `name` names, and what was visible then; `None` if it names a
/// branch or a commit.
///
/// # Errors
/// `BadValue` if the moment is none, or is yet to come; `SnapshotTooOld` if it isn't kept any more;
/// `OperationFailed` if this member of a set doesn't come to it; what `interrupt` says.
pub(crate) fn find(
    frond: &Frond,
    reader: &Reader<'_>,
    name: &DatabaseName,
    interrupt: &Interrupt,
) -> Result<Option<(String, Snapshot)>, Error> {
    let VersionName::Named(version) = &name.version else { return Ok(None) };
    let text = revision::of_version(version);
    let Some(moment) = MomentName::of(&text) else { return Ok(None) };
    if branch_ref(reader, &name.name, version)?.is_some() {
        return Ok(None); // A branch may be called `{now}`.
    }
    let branch = if moment.branch == HEAD { "" } else { moment.branch };
    if !branch.is_empty()
        && branch_ref(reader, &name.name, branch)?.is_none()
        && names_a_commit(frond, reader, &name.name, branch)?
    {
        return Ok(None);
    }
    let snapshot = snapshot_of(frond, reader, (&name.name, &text), moment.time, interrupt)?;
    let branch = match branch {
        // The branch of now, by which rights are asked for.
        "" => repository(reader, &name.name)?
            .map_or_else(|| DEFAULT_BRANCH.to_owned(), |repository| repository.default_branch),
        branch => branch.to_owned(),
    };
    Ok(Some((branch, snapshot)))
}

/// Checks whether a name that isn't a branch now is a tag or a commit's id.
fn names_a_commit(
    frond: &Frond,
    reader: &Reader<'_>,
    database: &str,
    start: &str,
) -> Result<bool, Error> {
    if tag::target(reader, database, start)?.is_some() {
        return Ok(true);
    }
    let now = || frond.time_millis();
    Ok(history::resolve(reader, database, start, now)?.is_some())
}

/// Returns a snapshot of the moment that `WORKING@{TIME}` names in a database open at `branch`;
/// `None` if `revision` isn't one.
///
/// # Errors
/// As [`find`].
pub fn working_at(
    frond: &Frond,
    (database, branch): (&str, &str),
    text: &str,
    interrupt: &Interrupt,
) -> Result<Option<Snapshot>, Error> {
    let moment = MomentName::of(text).filter(|moment| moment.branch == WORKING);
    let Some(moment) = moment else { return Ok(None) };
    let reader = Reader::now(frond.engine());
    let text = format!("{branch}@{{{}}}", moment.time);
    snapshot_of(frond, &reader, (database, &text), moment.time, interrupt).map(Some)
}

/// Returns a snapshot of a written moment.
fn snapshot_of(
    frond: &Frond,
    reader: &Reader<'_>,
    (database, revision): (&str, &str),
    time: &str,
    interrupt: &Interrupt,
) -> Result<Snapshot, Error> {
    let engine = frond.engine();
    let sequence = match written(frond, time, interrupt)? {
        Some(sequence) => sequence,
        None => return Ok(engine.snapshot()),
    };
    let mut stopped = Ok(());
    let found = {
        let stop = std::cell::RefCell::new(&mut stopped);
        engine.rebuild_snapshot_at(sequence, &|| {
            let result = interrupt.check();
            let keep_going = result.is_ok();
            **stop.borrow_mut() = result;
            keep_going
        })
    };
    stopped?;
    let found = found.map_err(|error| match error {
        RebuildError::Gone { from } => {
            gone(frond, reader, (database, revision), from).unwrap_or_else(|error| error)
        }
        RebuildError::TooLarge { max } => {
            let message = format!(
                "{database}{revision} can't be read: what was written around that moment takes \
                 more than the {max} bytes of memory that readers may have"
            );
            Error::invalid(Code::ExceededMemoryLimit, message)
        }
        RebuildError::Interrupted => Error::internal("a request was stopped without a reason"),
        RebuildError::Engine(error) => error.into(),
    })?;
    refuse_erased(reader, &found)?;
    Ok(found)
}

/// Refuses a moment before the last erase, which may show what was erased.
fn refuse_erased(reader: &Reader<'_>, moment: &Snapshot) -> Result<(), Error> {
    if EraseCount::at(&Reader::at(moment.clone()))? == EraseCount::at(reader)? {
        return Ok(());
    }
    let message = "something was erased since: moments before that can't be read any more";
    Err(Error::invalid(Code::SnapshotTooOld, message))
}

/// Whether a Sequence is visible here. A member that follows waits for it, unless no clock has come
/// to it.
fn has_come(frond: &Frond, sequence: Sequence, interrupt: &Interrupt) -> Result<bool, Error> {
    let (engine, begun) = (frond.engine(), steady_now());
    let now_seconds = frond.time_millis().div_euclid(MILLIS_PER_SECOND);
    let ahead = i64::from((sequence.0 >> 32) as u32) - now_seconds;
    while engine.visible() < sequence {
        if !engine.follows() || SKEW_SECONDS_MAX < ahead {
            return Ok(sequence <= engine.visible());
        }
        if APPLIED_WAIT_MAX < begun.elapsed() {
            let message = "this member of the set has not come to that operationTime yet";
            return Err(Error::unavailable(message));
        }
        interrupt.check()?;
        pause(APPLIED_CHECK_INTERVAL);
    }
    Ok(true)
}

/// The Sequence of a written moment; `None`: now.
fn written(frond: &Frond, time: &str, interrupt: &Interrupt) -> Result<Option<Sequence>, Error> {
    let refuse = |why: &str| {
        let message = format!("@{{{time}}} names no moment that can be read: {why}");
        Err(Error::invalid(Code::BadValue, message))
    };
    if let Some((seconds, increment)) = timestamp(time) {
        let sequence = Sequence((u64::from(seconds) << 32) | u64::from(increment));
        return match has_come(frond, sequence, interrupt)? {
            true => Ok(Some(sequence)),
            false => refuse("nothing has had that operationTime yet"),
        };
    }
    if time.trim().eq_ignore_ascii_case("now") {
        return Ok(None);
    }
    let now_millis = frond.time_millis();
    let reached = i64::try_from(frond.engine().visible().0 >> 32).unwrap_or(i64::MAX);
    let behind = reached - now_millis.div_euclid(MILLIS_PER_SECOND);
    if SKEW_SECONDS_MAX < behind {
        return refuse(&format!(
            "the clock is {behind} seconds behind what it said before, so what was written since \
             is later than any second that it names: ask for @{{now}}, or by operationTime"
        ));
    }
    let date = WrittenDate::read(time, now_millis);
    let Some(date) = date.filter(|_| !time.trim_start().starts_with('-')) else {
        return refuse(
            "in the braces stands a date (2026-11-20, 2026-11-20T10:00:03Z, tuesday, \
             3.days.ago), a Timestamp(SECONDS, N), or commit by and a date",
        );
    };
    let is_relative = !time.starts_with(|it: char| it.is_ascii_digit()) || time.contains("ago");
    let fraction = date.first_millis.rem_euclid(MILLIS_PER_SECOND);
    if fraction != 0 && !is_relative {
        return refuse("a moment is a whole second, or an operationTime: Timestamp(SECONDS, N)");
    }
    let second = date.first_millis.div_euclid(MILLIS_PER_SECOND);
    let end = if date.is_day { second } else { second + 1 };
    if now_millis.div_euclid(MILLIS_PER_SECOND) < end {
        return refuse(
            "that second isn't over, and more may be written in it: ask for @{now}, or by \
             operationTime",
        );
    }
    let end = u32::try_from(end).unwrap_or_default();
    Ok(Some(Sequence((u64::from(end) << 32).saturating_sub(1))))
}

/// Says that a moment isn't kept any more, and what is there instead.
fn gone(
    frond: &Frond,
    reader: &Reader<'_>,
    (database, revision): (&str, &str),
    from: Sequence,
) -> Result<Error, Error> {
    let date = |millis| {
        Date::from_millisecond(millis).map_or_else(|_| "?".to_owned(), |date| date.to_string())
    };
    let begins = date(i64::try_from(from.0 >> 32).unwrap_or_default() * MILLIS_PER_SECOND);
    let named = match revision.strip_prefix("@{") {
        Some(_) => format!("{database}{revision}"),
        None => format!("{database}@{revision}"),
    };
    let mut message = format!(
        "{named} can't be read: every moment is there from {begins} on, as far back as the log \
         is kept (frond serve --changes)"
    );
    let commit = match repository(reader, database)?.is_some() {
        true => history::resolve(reader, database, revision, || frond.time_millis())?,
        false => None,
    };
    match commit {
        Some((id, chunk)) => {
            let commit = history::load(&**reader.store(), chunk)?;
            let letters = commit_id::PREFIX_LETTERS_MIN.max(8);
            let id = id.to_string();
            let short = &id[..letters.min(id.len())];
            let made = date(commit.timestamp_millis);
            message.push_str(&format!(
                ". The last commit by then is {short} of {made}: read {database}@{short}, or \
                 @{{commit by ...}} instead of @{{...}} (drivers take @{{commit-by-...}})"
            ));
        }
        None => message.push_str(". There is no commit by then"),
    }
    Ok(Error::invalid(Code::SnapshotTooOld, message))
}

#[cfg(test)]
mod tests;
