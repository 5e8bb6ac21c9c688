//! The read and write concerns that each command takes, as in MongoDB: one that a command doesn't
//! take is refused, never ignored.
//!
//! - Each command reads at a snapshot of its own, which is newer than all that a client has seen.
//!   So all commands that take a level fulfil the levels `local`, `available` and `majority`, and
//!   `linearizable` where a majority has confirmed that the member leads
//!   ([`crate::member::gate::confirm_leads`]).
//! - `snapshot` promises that commands which name one moment see the same. Outside of transactions
//!   the first one leases the moment at which it reads and answers its time; those that name it
//!   read there, as long as the lease runs ([`frond_db::ReadPoint`]).
//! - `afterClusterTime` and `atClusterTime` are moments that the client got from an answer. Commits
//!   that queue before one are awaited, and nothing is written there later. One that is a little
//!   ahead of the clock here is waited for; one that is far ahead is refused. On a member that
//!   follows, the leader's clock counts.

pub mod transactions;

use std::time::Duration;

use frond_db::{Error, Interrupt, ReadPoint};
use frond_doc::{Document, Timestamp};
use frond_query::Code;

use crate::commands::aggregate::writes_output;
use crate::commands::{Command, Run};
use crate::common_fields::Part;
use crate::common_fields::{Common, Level};
use crate::shared::Shared;
use crate::tables::{self, Reads, Writes};

/// The time by which a moment may be ahead of the clock here to be waited for: that of another
/// server, whose clock is not quite the same.
const CLOCK_AHEAD_MILLIS_MAX: i64 = 10_000;
/// The interval at which a caller that waits for the clock looks at it, and checks whether it may
/// go on waiting.
const CLOCK_STEP: Duration = Duration::from_millis(10);

/// Goes on at the moment of its cursor, whatever it names: drivers name their session's.
pub const GET_MORE: &str = "getMore";

/// Checks the concerns of a command.
///
/// # Errors
/// `InvalidOptions` where it doesn't take one.
pub fn check(command: &Command, body: Document<'_>, common: &Common) -> Result<(), Error> {
    if !matches!(command.run, Run::Handler(_)) {
        return Ok(()); // It says why itself.
    }
    // `transactions` checks the concerns of a transaction's commands.
    if !matches!(common.part, Some(Part::Statement { .. })) {
        check_level(command.name, body, common)?;
        if common.has_write_concern && !takes_write_concern(command.name) {
            let message = format!("Command {} does not support writeConcern", command.name);
            return Err(Error::invalid(Code::InvalidOptions, message));
        }
    } else if common.at_time.is_some() {
        let message = "readConcern 'atClusterTime' is not supported by Frond in a transaction, \
                       which reads at the moment of its first command";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    Ok(())
}

/// Gives a command the write concern that holds where it carries none.
///
/// # Errors
/// As [`crate::default_concerns::Defaults::apply`].
pub fn apply_defaults(server: &Shared, name: &str, common: &mut Common) -> Result<(), Error> {
    let is_statement = matches!(common.part, Some(Part::Statement { .. }));
    match takes_write_concern(name) && !is_statement {
        true => server.default_concerns.apply(&server.frond, common),
        false => Ok(()),
    }
}

fn check_level(name: &str, body: Document<'_>, common: &Common) -> Result<(), Error> {
    let reads = tables::find(name).map_or(Reads::Local, |table| table.reads);
    let takes = match common.level {
        Level::Local => return Ok(()),
        Level::Snapshot => reads == Reads::Moments,
        Level::Available | Level::Majority | Level::Linearizable => reads != Reads::Local,
    };
    let repeats = name == GET_MORE && common.level == Level::Snapshot;
    if !(takes || repeats) {
        let message = format!(
            "Command {name} does not support {{ readConcern: {{ level: \"{}\" }} }} :: caused by \
             :: read concern not supported",
            common.level.name()
        );
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    if common.level == Level::Linearizable && name == "aggregate" && writes_output(body) {
        let message = "$out and $merge cannot be used with a 'linearizable' read concern level";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    Ok(())
}

fn takes_write_concern(name: &str) -> bool {
    tables::find(name).is_some_and(|table| table.writes == Writes::Always)
}

/// Whether a command writes: it takes a write concern always, or its pipeline ends in a collection.
pub fn writes(name: &str, body: Document<'_>) -> bool {
    if name == "aggregate" { writes_output(body) } else { takes_write_concern(name) }
}

/// The moment at which a command reads that asks for the level `snapshot`; it is leased if the
/// client didn't name it.
///
/// # Errors
/// `SnapshotTooOld` if it isn't kept any more; as [`wait_for`].
pub fn moment(
    server: &Shared,
    (name, common): (&str, &Common),
    interrupt: &Interrupt,
) -> Result<Option<ReadPoint>, Error> {
    if name == GET_MORE || matches!(common.part, Some(Part::Statement { .. })) {
        return Ok(None);
    }
    let Some(time) = common.at_time else {
        return Ok(Some(server.frond.lease_moment(server.snapshot_window.get())));
    };
    wait_for_clock(server, "atClusterTime", time, interrupt)?;
    server.frond.moment(time).map(Some)
}

/// Waits until what lies before `after` is visible, and nothing will be written there any more.
///
/// # Errors
/// `InvalidOptions` if no clock here comes to it soon; what `interrupt` says.
pub fn wait_for(server: &Shared, after: Timestamp, interrupt: &Interrupt) -> Result<(), Error> {
    if after.0 <= server.operation_time().0 {
        return Ok(());
    }
    wait_for_clock(server, "afterClusterTime", after, interrupt)?;
    server.frond.await_settled(after)
}

/// Waits until the clock has come to `time`. A member that follows doesn't: what has its place
/// there comes from the leader, whose clock counts.
fn wait_for_clock(
    server: &Shared,
    name: &str,
    time: Timestamp,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let visible = server.operation_time();
    if time.0 <= visible.0 {
        return Ok(());
    }
    if let Some(replica) = server.replica.as_ref().filter(|_| !server.is_primary()) {
        let heard = millis_of(replica.newest_moment());
        return check_ahead(name, time, visible, server.frond.now_millis().max(heard));
    }
    loop {
        let now = server.frond.now_millis();
        if millis_of(time) <= now {
            return Ok(());
        }
        check_ahead(name, time, visible, now)?;
        interrupt.check()?;
        std::thread::sleep(CLOCK_STEP);
    }
}

fn millis_of(time: Timestamp) -> i64 {
    i64::try_from(time.0 >> 32).unwrap_or(i64::MAX).saturating_mul(1_000)
}

/// Checks that a moment is one that this cluster may have come to, or soon does.
fn check_ahead(
    name: &str,
    time: Timestamp,
    visible: Timestamp,
    now_millis: i64,
) -> Result<(), Error> {
    if millis_of(time).saturating_sub(now_millis) <= CLOCK_AHEAD_MILLIS_MAX {
        return Ok(());
    }
    let show = |time: Timestamp| format!("Timestamp({}, {})", time.0 >> 32, time.0 as u32);
    let message = format!(
        "readConcern {name} value must not be greater than the current clusterTime. Requested \
         clusterTime: {}; current clusterTime: {}",
        show(time),
        show(visible)
    );
    Err(Error::invalid(Code::InvalidOptions, message))
}

#[cfg(test)]
mod tests {
    use frond_doc::{DocumentBuf, DocumentBuilder, Value, document};

    use super::*;
    use crate::commands;

    fn check(command: &DocumentBuf) -> Option<i32> {
        let common = match Common::read(command.view()) {
            Ok(common) => common,
            Err(error) => return Some(error.code.number()),
        };
        let (name, _) = command.iter().next().expect("a name");
        let command_of = commands::find(name).expect("a command");
        super::check(command_of, command.view(), &common).err().map(|error| error.code.number())
    }

    fn command_with(name: &str, concern: &str, value: DocumentBuf) -> DocumentBuf {
        let mut command = DocumentBuilder::new();
        command.append(name, Value::String("c")).append(concern, Value::from(&value));
        command.build()
    }

    #[test]
    fn every_command_takes_local_and_only_some_take_more() {
        for command in commands::COMMANDS.iter().filter(|it| matches!(it.run, Run::Handler(_))) {
            for level in ["local", "available", "majority", "linearizable", "snapshot"] {
                let sent = command_with(command.name, "readConcern", document! { "level": level });
                let expected = match level {
                    "local" => None,
                    "snapshot"
                        if ["aggregate", "distinct", "find", GET_MORE].contains(&command.name) =>
                    {
                        None
                    }
                    "snapshot" => Some(72),
                    _ if ["aggregate", "count", "distinct", "explain", "find"]
                        .contains(&command.name) =>
                    {
                        None
                    }
                    _ => Some(72),
                };
                assert_eq!(check(&sent), expected, "{} {level}", command.name);
            }
        }
    }

    #[test]
    fn moments_are_refused() {
        let time = Value::Timestamp(Timestamp(1 << 32));
        for (concern, expected) in [
            (document! { "level": "snapshot", "atClusterTime": time }, None),
            (document! { "level": "majority", "atClusterTime": time }, Some(72)),
            (document! { "atClusterTime": time }, Some(72)),
            (document! { "level": "snapshot", "atClusterTime": 1_i32 }, Some(14)),
            (document! { "afterClusterTime": time }, None),
            (document! { "level": "linearizable", "afterClusterTime": time }, Some(72)),
            (document! { "afterClusterTime": Value::Timestamp(Timestamp(0)) }, Some(72)),
            (document! { "afterClusterTime": 1_i32 }, Some(14)),
        ] {
            let sent = document! { "find": "c", "readConcern": &concern };
            assert_eq!(check(&sent), expected, "{concern:?}");
        }
    }

    #[test]
    fn a_moment_may_be_a_little_ahead_of_the_clock_that_counts() {
        let ahead = |seconds: u64, now_seconds: i64| {
            let time = Timestamp(seconds << 32 | 7);
            let checked = check_ahead("afterClusterTime", time, Timestamp(0), now_seconds * 1_000);
            checked.err().map(|error| error.code.number())
        };
        assert_eq!((ahead(90, 100), ahead(110, 100)), (None, None));
        assert_eq!((ahead(111, 100), ahead(u64::MAX >> 32, 100)), (Some(72), Some(72)));
    }

    #[test]
    fn reads_take_no_write_concern() {
        let concern = document! { "w": 0_i32 };
        for (name, expected) in [
            ("find", Some(72)),
            ("count", Some(72)),
            ("ping", Some(72)),
            ("aggregate", None),
            ("insert", None),
            ("dropIndexes", None),
            ("frondCommit", None),
        ] {
            let sent = command_with(name, "writeConcern", concern.clone());
            assert_eq!(check(&sent), expected, "{name}");
        }
    }
}
