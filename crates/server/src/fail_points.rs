//! Fail points: faults that a client asks for, to test how it bears them. Only with
//! `--enable-test-commands`.
//!
//! `configureFailPoint` turns one on in a mode: always, for so many times, after so many times, or
//! by chance. A fail point is asked only by commands that it is for; only these count.
//!
//! *Thread safety*: everything may be called from any number of threads at once. While none is on,
//! a command pays one relaxed load.

mod fail_command;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use frond_db::Error;
use frond_doc::{DocumentBuf, Value};
use frond_query::Code;

pub use self::fail_command::{FailCommand, FaultedCommand, read_code};
use crate::chance::is_by_chance;
use crate::fields::Fields;

/// The time when a fail point that is asked fails.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Mode {
    /// Never.
    #[default]
    Off,
    /// Always.
    AlwaysOn,
    /// So many times, then never.
    Times(u64),
    /// Not so many times, then always.
    Skip(u64),
    /// With this probability.
    Chance(f64),
}

impl Mode {
    /// Reads `mode`: a name, or a document of one field.
    ///
    /// # Errors
    /// MongoDB's for what is no mode.
    pub fn read(value: Value<'_>) -> Result<Mode, Error> {
        let bad = |message: String| Err(Error::invalid(Code::BadValue, message));
        let document = match value {
            Value::String("off") => return Ok(Mode::Off),
            Value::String("alwaysOn") => return Ok(Mode::AlwaysOn),
            Value::String(other) => return bad(format!("unknown mode: {other}")),
            other => match other.as_document() {
                Some(document) => document,
                None => {
                    let message = "'mode' must be a string or JSON object";
                    return Err(Error::invalid(Code::TypeMismatch, message));
                }
            },
        };
        let mut fields = Fields::of_part("configureFailPoint.mode", document)?;
        let (times, skip) = (fields.count("times")?, fields.count("skip")?);
        let chance = fields.value("activationProbability");
        fields.finish()?;
        match (times, skip, chance) {
            (Some(0), None, None) => Ok(Mode::Off),
            (Some(times), None, None) => Ok(Mode::Times(times)),
            (None, Some(skip), None) => Ok(Mode::Skip(skip)),
            (None, None, Some(chance)) => match chance {
                Value::Double(chance) if (0.0..=1.0).contains(&chance) => Ok(Mode::Chance(chance)),
                Value::Double(chance) => bad(format!(
                    "activationProbability must be between 0.0 and 1.0, found {chance}"
                )),
                _ => {
                    let message = "the 'activationProbability' option to 'mode' must be a double";
                    Err(Error::invalid(Code::TypeMismatch, message))
                }
            },
            _ => bad(
                "'mode' must be one of 'off', 'alwaysOn', {times}, {skip}, {activationProbability}"
                    .to_owned(),
            ),
        }
    }

    /// Whether it fails now.
    fn fires(&mut self) -> bool {
        match self {
            Mode::Off => false,
            Mode::AlwaysOn => true,
            Mode::Times(left) => {
                *left -= 1;
                if *left == 0 {
                    *self = Mode::Off;
                }
                true
            }
            Mode::Skip(0) => true,
            Mode::Skip(left) => {
                *left -= 1;
                false
            }
            Mode::Chance(chance) => is_by_chance(*chance),
        }
    }
}

/// The action of `failGetMoreAfterCursorCheckout`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FailGetMore {
    /// The error.
    pub code: Option<Code>,
}

/// The action of `onPrimaryTransactionalWrite` on writes that may be sent again.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FailWrite {
    /// Fails before anything is written.
    pub code_before: Option<Code>,
    /// Closes the connection instead of an answer, or of that error.
    pub closes: bool,
}

/// What becomes of an operation's `maxTimeMS`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeLimitFault {
    /// It is over at once: `maxTimeAlwaysTimeOut`.
    Always,
    /// It is never over: `maxTimeNeverTimeOut`.
    Never,
}

/// The action of a fail point.
#[derive(Clone, PartialEq, Debug)]
pub enum Fault {
    /// `failCommand`
    Command(FailCommand),
    /// `failGetMoreAfterCursorCheckout`
    GetMore(FailGetMore),
    /// `onPrimaryTransactionalWrite`
    Write(FailWrite),
    /// `maxTimeAlwaysTimeOut` and `maxTimeNeverTimeOut`
    TimeLimit(TimeLimitFault),
}

/// The actions on a command that is hit.
#[derive(Clone, Debug, Default)]
pub struct CommandFault {
    /// Waits first.
    pub block: Option<Duration>,
    /// Closes the connection, and isn't run.
    pub closes: bool,
    /// Fails so, and isn't run.
    pub error: Option<Error>,
    /// Is run, and its answer has this.
    pub concern_error: Option<DocumentBuf>,
    /// The labels of the error, instead of those that it would have.
    pub labels: Option<Vec<String>>,
}

#[derive(Default)]
struct Point<F> {
    mode: Mode,
    fault: F,
    hits: u64,
}

impl<F: Clone> Point<F> {
    /// Turns it on or off; returns how often it has failed.
    fn set(&mut self, mode: Mode, fault: F) -> u64 {
        (self.mode, self.fault) = (mode, fault);
        self.hits
    }

    /// Returns the action if the fail point is on and meant for this command.
    fn ask(&mut self, is_for: impl FnOnce(&F) -> bool) -> Option<F> {
        if self.mode == Mode::Off || !is_for(&self.fault) || !self.mode.fires() {
            return None;
        }
        self.hits += 1;
        Some(self.fault.clone())
    }
}

#[derive(Default)]
struct Points {
    command: Point<FailCommand>,
    get_more: Point<FailGetMore>,
    write: Point<FailWrite>,
    always_late: Point<()>,
    never_late: Point<()>,
}

/// The fail points of a server.
#[derive(Default)]
pub struct FailPoints {
    is_enabled: AtomicBool,
    /// Whether one is on.
    is_any_on: AtomicBool,
    points: Mutex<Points>,
}

impl FailPoints {
    /// Allows clients to turn them on.
    pub fn enable(&self) {
        self.is_enabled.store(true, Ordering::Relaxed);
    }

    /// Whether clients may turn them on.
    pub fn is_enabled(&self) -> bool {
        self.is_enabled.load(Ordering::Relaxed)
    }

    /// Turns one on or off; returns how often it has failed.
    pub fn set(&self, mode: Mode, fault: Fault) -> u64 {
        let mut points = self.lock();
        let hits = match fault {
            Fault::Command(fault) => points.command.set(mode, fault),
            Fault::GetMore(fault) => points.get_more.set(mode, fault),
            Fault::Write(fault) => points.write.set(mode, fault),
            Fault::TimeLimit(TimeLimitFault::Always) => points.always_late.set(mode, ()),
            Fault::TimeLimit(TimeLimitFault::Never) => points.never_late.set(mode, ()),
        };
        let Points { command, get_more, write, always_late, never_late } = &*points;
        let of_time = [always_late.mode, never_late.mode];
        let mut modes = [command.mode, get_more.mode, write.mode].into_iter().chain(of_time);
        let is_any_on = modes.any(|mode| mode != Mode::Off);
        self.is_any_on.store(is_any_on, Ordering::Release);
        hits
    }

    /// Whether a command has to ask at all.
    pub fn are_on(&self) -> bool {
        self.is_any_on.load(Ordering::Acquire)
    }

    /// Returns the actions of `failCommand` on a command.
    pub fn on_command(&self, command: &FaultedCommand<'_>) -> Option<CommandFault> {
        let fault = self.lock().command.ask(|fault| fault.is_for(command))?;
        Some(fault.hit())
    }

    /// Returns what becomes of the time limit of an operation that has one.
    pub fn on_time_limit(&self) -> Option<TimeLimitFault> {
        let mut points = self.lock();
        let never = points.never_late.ask(|()| true).map(|()| TimeLimitFault::Never);
        never.or_else(|| points.always_late.ask(|()| true).map(|()| TimeLimitFault::Always))
    }

    /// Fails a `getMore` that has its cursor.
    ///
    /// # Errors
    /// The error that the fail point has.
    pub fn on_get_more(&self) -> Result<(), Error> {
        if !self.are_on() {
            return Ok(());
        }
        match self.lock().get_more.ask(|_| true).and_then(|fault| fault.code) {
            None => Ok(()),
            Some(code) => {
                let message = "Hit the 'failGetMoreAfterCursorCheckout' failpoint";
                Err(Error::invalid(code, message))
            }
        }
    }

    /// Returns the action of `onPrimaryTransactionalWrite` on a write of so many statements that
    /// may be sent again and isn't to be done. Each counts up to the one that fails.
    pub fn before_write(&self, statements: usize) -> Option<FailWrite> {
        let mut points = self.lock();
        (0..statements).find_map(|_| points.write.ask(|fault| fault.code_before.is_some()))
    }

    /// Whether `onPrimaryTransactionalWrite` closes the connection of a write that may be sent
    /// again and did so many statements, each of which counts.
    pub fn after_write(&self, statements: usize) -> bool {
        let mut points = self.lock();
        let mut closes = || points.write.ask(|fault| fault.code_before.is_none());
        (0..statements).filter_map(|_| closes()).filter(|fault| fault.closes).count() > 0
    }

    fn lock(&self) -> MutexGuard<'_, Points> {
        // They are whole after each statement, so a panic elsewhere can't have broken them.
        self.points.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::{DocumentBuf, document};

    use super::*;

    fn fires(mode: Mode, count: usize) -> Vec<bool> {
        let mut mode = mode;
        (0..count).map(|_| mode.fires()).collect()
    }

    #[test]
    fn modes_say_when() {
        assert_eq!(fires(Mode::Off, 2), [false, false]);
        assert_eq!(fires(Mode::AlwaysOn, 2), [true, true]);
        assert_eq!(fires(Mode::Times(2), 4), [true, true, false, false]);
        assert_eq!(fires(Mode::Skip(2), 4), [false, false, true, true]);
        assert_eq!(fires(Mode::Chance(0.0), 50), [false; 50]);
        assert_eq!(fires(Mode::Chance(1.0), 50), [true; 50]);
        let by_chance = fires(Mode::Chance(0.5), 200);
        assert!(by_chance.contains(&true) && by_chance.contains(&false));
    }

    #[test]
    fn modes_are_read() {
        let read =
            |mode: DocumentBuf| Mode::read(Value::from(&mode)).map_err(|error| error.code.number());
        for (mode, expected) in [
            (document! { "times": 2_i32 }, Ok(Mode::Times(2))),
            (document! { "times": 0_i32 }, Ok(Mode::Off)),
            (document! { "skip": 3_i64 }, Ok(Mode::Skip(3))),
            (document! { "activationProbability": 0.25 }, Ok(Mode::Chance(0.25))),
            (document! { "activationProbability": 1.5 }, Err(2)),
            (document! { "activationProbability": 1_i32 }, Err(14)),
            (document! { "times": 1_i32, "skip": 1_i32 }, Err(2)),
            (document! { "times": "1" }, Err(14)),
            (document! { "often": 1_i32 }, Err(40415)),
            (document! {}, Err(2)),
        ] {
            assert_eq!(read(mode.clone()), expected, "{mode:?}");
        }
        assert_eq!(Mode::read(Value::String("off")).ok(), Some(Mode::Off));
        assert!(Mode::read(Value::String("on")).is_err());
        assert!(Mode::read(Value::Int32(1)).is_err());
    }

    #[test]
    fn only_commands_that_it_is_for_count() {
        let mut point = Point { mode: Mode::Times(1), fault: 7, hits: 0 };
        assert_eq!(point.ask(|_| false), None);
        assert_eq!(point.ask(|_| true), Some(7));
        assert_eq!(point.ask(|_| true), None);
        assert_eq!(point.set(Mode::AlwaysOn, 8), 1);
        assert_eq!(point.ask(|_| true), Some(8));
    }
}
