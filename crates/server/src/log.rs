//! The server's log: a line of JSON an event, with the fields of mongod's, on standard error or in
//! a file. The last lines stay in memory, for `getLog`.
//!
//! Lines have `t` (when), `s` (severity: F, E, W or I), `c` (component), `id` (which message),
//! `ctx` (which thread or connection), `msg` and `attr`. No line holds what a client stored, but
//! for the commands of slow operations: those are cut off, and those with credentials are left out
//! ([`slow`]). Of clients that come, log in and go it has a bounded number of lines ([`clients`]).

mod allowance;
mod clients;
mod slow;
mod verbosity;

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use frond_db::Notice;
use frond_doc::{DocumentBuilder, Value, extended_json};

use self::clients::ClientLines;
use self::verbosity::Verbosity;
use crate::chance::is_by_chance;
use crate::log_file::{LogFile, LogRotation};
pub use clients::LoginLine;
pub use slow::{SlowOperation, append_failure, shortened};

/// Lines that are kept in memory.
const LINES_MAX: usize = 1_024;
/// The length at which longer lines are cut off.
const LINE_BYTES_MAX: usize = 8 << 10;
/// The milliseconds from which an operation is slow, unless `profile` says otherwise.
pub const SLOW_MILLIS: i64 = 100;

/// The severity of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// The process ends.
    Fatal,
    /// Something failed.
    Error,
    /// Something may fail, or is unsafe.
    Warning,
    /// Something happened.
    Info,
}

/// The component of the server that a line is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Component {
    /// Logins.
    Access,
    /// Starting, stopping, options.
    Control,
    /// Connections.
    Network,
    /// Commands, slow ones above all.
    Command,
    /// Indexes that are built.
    Index,
    /// Being the primary.
    Replication,
    /// The lines behind a router.
    Sharding,
    /// The data directory.
    Storage,
}

impl Severity {
    fn letter(self) -> &'static str {
        match self {
            Severity::Fatal => "F",
            Severity::Error => "E",
            Severity::Warning => "W",
            Severity::Info => "I",
        }
    }
}

impl Component {
    fn name(self) -> &'static str {
        match self {
            Component::Access => "ACCESS",
            Component::Control => "CONTROL",
            Component::Network => "NETWORK",
            Component::Command => "COMMAND",
            Component::Index => "INDEX",
            Component::Replication => "REPL",
            Component::Sharding => "SHARDING",
            Component::Storage => "STORAGE",
        }
    }
}

/// An event.
pub struct Event<'a> {
    /// The severity.
    pub severity: Severity,
    /// The component it is about.
    pub component: Component,
    /// The number of the message: mongod's where mongod has the same, otherwise 0.
    pub id: i32,
    /// The place of the event: a thread, or `conn7`.
    pub context: &'a str,
    /// The event, always in the same words.
    pub message: &'a str,
}

/// The log of a server.
///
/// *Thread safety*: any number of threads may write at once. *Locks*: one, held while a line is
/// written.
pub struct Log {
    now_millis: Box<dyn Fn() -> i64 + Send + Sync>,
    slow_millis: AtomicI64,
    /// The bits of an `f64`.
    sample_rate: AtomicU64,
    pub(crate) verbosity: Verbosity,
    clients: ClientLines,
    state: Mutex<State>,
}

struct State {
    lines: VecDeque<String>,
    shown: Vec<String>,
    written: i64,
    output: Sink,
}

/// The output of the lines, besides memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum LogOutput {
    /// Nowhere else.
    Memory,
    /// Standard error.
    #[default]
    StandardError,
    /// Standard output.
    StandardOutput,
    /// The end of a file.
    File(PathBuf),
}

impl fmt::Display for LogOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogOutput::Memory => f.write_str("memory"),
            LogOutput::StandardError => f.write_str("standard error"),
            LogOutput::StandardOutput => f.write_str("standard output"),
            LogOutput::File(path) => path.display().fmt(f),
        }
    }
}

enum Sink {
    Memory,
    StandardError,
    StandardOutput,
    File(LogFile),
}

/// The answer of `getLog`.
pub struct Lines {
    /// The number of lines that were written since the start.
    pub written: i64,
    /// The last of them, the oldest first.
    pub lines: Vec<String>,
}

impl Log {
    /// A log in memory; `now_millis` gives the time, in milliseconds since 1970.
    pub fn new(now_millis: impl Fn() -> i64 + Send + Sync + 'static) -> Log {
        let state =
            State { lines: VecDeque::new(), shown: Vec::new(), written: 0, output: Sink::Memory };
        Log {
            now_millis: Box::new(now_millis),
            slow_millis: AtomicI64::new(SLOW_MILLIS),
            sample_rate: AtomicU64::new(1.0_f64.to_bits()),
            verbosity: Verbosity::default(),
            clients: ClientLines::default(),
            state: Mutex::new(state),
        }
    }

    /// Says where lines go from now on.
    ///
    /// # Errors
    /// If a file can't be opened.
    pub fn write_to(&self, output: &LogOutput) -> io::Result<()> {
        let output = match output {
            LogOutput::Memory => Sink::Memory,
            LogOutput::StandardError => Sink::StandardError,
            LogOutput::StandardOutput => Sink::StandardOutput,
            LogOutput::File(path) => Sink::File(LogFile::open(path)?),
        };
        self.state().output = output;
        Ok(())
    }

    /// Says what rotating its file is.
    pub fn set_rotation(&self, rotation: LogRotation) {
        if let Sink::File(file) = &mut self.state().output {
            file.set_rotation(rotation);
        }
    }

    /// Renames the file, by appending the time, and begins another. Returns whether there is one:
    /// devices and pipes stay what they are.
    ///
    /// # Errors
    /// If it can't be renamed, or no other made: lines go where they went.
    pub fn rotate(&self) -> io::Result<bool> {
        let mut state = self.state();
        let Sink::File(file) = &mut state.output else { return Ok(false) };
        file.rotate((self.now_millis)())
    }

    /// Returns the milliseconds from which an operation is slow.
    pub fn slow_millis(&self) -> i64 {
        self.slow_millis.load(Ordering::Relaxed)
    }

    /// Changes what is slow.
    pub fn set_slow_millis(&self, millis: i64) {
        self.slow_millis.store(millis, Ordering::Relaxed);
    }

    /// The share of slow operations, between none (0.0) and all (1.0), that is reported.
    pub fn sample_rate(&self) -> f64 {
        f64::from_bits(self.sample_rate.load(Ordering::Relaxed))
    }

    /// Changes the share of slow operations that is reported.
    pub fn set_sample_rate(&self, rate: f64) {
        self.sample_rate.store(rate.to_bits(), Ordering::Relaxed);
    }

    /// The milliseconds that an operation takes at least to be logged.
    pub fn report_millis_min(&self) -> i64 {
        if self.verbosity.reports_all() { 0 } else { self.slow_millis() }
    }

    /// Whether an operation that took so long is reported: all are, or it is slow, and one of those
    /// that are chosen.
    pub fn reports(&self, time: Duration) -> bool {
        self.is_slow(time) && (self.verbosity.reports_all() || is_by_chance(self.sample_rate()))
    }

    /// Whether an operation of so long is one of those that are reported, all of them or some.
    pub fn is_slow(&self, time: Duration) -> bool {
        let slow_millis = u128::try_from(self.slow_millis()).unwrap_or(0);
        self.verbosity.reports_all() || slow_millis <= time.as_millis()
    }

    /// Writes a line; `attributes` appends what there is to say beside the message.
    pub fn write(&self, event: &Event<'_>, attributes: impl FnOnce(&mut DocumentBuilder)) {
        self.write_line(event, attributes, false);
    }

    /// Writes a line that clients are shown when they connect, too (`getLog: "startupWarnings"`).
    pub fn write_shown(&self, event: &Event<'_>, attributes: impl FnOnce(&mut DocumentBuilder)) {
        self.write_line(event, attributes, true);
    }

    fn write_line(
        &self,
        event: &Event<'_>,
        attributes: impl FnOnce(&mut DocumentBuilder),
        is_shown: bool,
    ) {
        let mut line = DocumentBuilder::new();
        line.append("t", Value::DateTime((self.now_millis)()))
            .append("s", Value::String(event.severity.letter()))
            .append("c", Value::String(event.component.name()))
            .append("id", Value::Int32(event.id))
            .append("ctx", Value::String(event.context))
            .append("msg", Value::String(event.message));
        let mut named = DocumentBuilder::new();
        attributes(&mut named);
        let named = named.build();
        if named.view().iter().next().is_some() {
            line.append("attr", Value::Document(named.view()));
        }
        let mut text = String::new();
        extended_json::write(line.build().view(), extended_json::Form::Relaxed, &mut text);
        let mut state = self.state();
        // If the log can't be written, there is no place to report that.
        let _ = match &mut state.output {
            Sink::Memory => Ok(()),
            Sink::StandardError => writeln!(io::stderr(), "{text}"),
            Sink::StandardOutput => writeln!(io::stdout(), "{text}"),
            Sink::File(file) => file.append(&text),
        };
        truncate(&mut text, LINE_BYTES_MAX);
        if is_shown {
            state.shown.push(text.clone());
        }
        if state.lines.len() == LINES_MAX {
            state.lines.pop_front();
        }
        state.lines.push_back(text);
        state.written += 1;
    }

    /// The last lines.
    pub fn lines(&self) -> Lines {
        let state = self.state();
        Lines { written: state.written, lines: state.lines.iter().cloned().collect() }
    }

    /// Returns the lines that clients are shown when they connect.
    pub fn shown(&self) -> Lines {
        let lines = self.state().shown.clone();
        Lines { written: lines.len() as i64, lines }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // It is whole after each statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An event in the data directory.
pub fn storage(severity: Severity, message: &str) -> Event<'_> {
    Event { severity, component: Component::Storage, id: 0, context: "storage", message }
}

/// An event of a router.
pub fn router(severity: Severity, message: &'static str) -> Event<'static> {
    Event { severity, component: Component::Sharding, id: 0, context: "router", message }
}

/// Returns the event for a notice of the databases.
pub fn notice(notice: Notice, message: &str) -> Event<'_> {
    match notice {
        Notice::IndexBuild => Event {
            severity: Severity::Info,
            component: Component::Index,
            id: 0,
            context: "index",
            message,
        },
        Notice::Warning => storage(Severity::Warning, message),
    }
}

/// Returns the event for an audit log that can't be written.
pub fn audit_failed() -> Event<'static> {
    let message = "The audit log can't be written: what it would record is refused until it can be";
    let (component, context) = (Component::Control, "audit");
    Event { severity: Severity::Error, component, id: 0, context, message }
}

/// Says, in mongod's words, that every client may do everything.
pub fn warn_of_open_access(log: &Log) {
    let message = "Access control is not enabled for the database. Read and write access to data and configuration \
                   is unrestricted";
    let (severity, component, context) = (Severity::Warning, Component::Control, "initandlisten");
    log.write_shown(&Event { severity, component, id: 22120, context, message }, |_| {});
}

/// Says, in the words by which programs that start a mongod know it, that clients are served.
pub fn serves(log: &Log, address: SocketAddr) {
    let (severity, component, context) = (Severity::Info, Component::Network, "initandlisten");
    let message = "Waiting for connections";
    log.write(&Event { severity, component, id: 23016, context, message }, |attributes| {
        attributes.append("port", Value::Int32(address.port().into()));
    });
}

/// Says, in mongod's words, that this server takes writes from now on.
pub fn leads(log: &Log) {
    let (severity, component, context) = (Severity::Info, Component::Replication, "repl");
    let message = "Transition to primary complete; database writes are now permitted";
    log.write(&Event { severity, component, id: 21331, context, message }, |_| {});
}

/// Says, in the words by which programs that start a mongod know it, that this server, by itself
/// until now, becomes a member of a set and doesn't lead any more.
pub fn joins_set(log: &Log) {
    let (severity, component, context) = (Severity::Info, Component::Replication, "repl");
    let message = "transition to STARTUP2 from PRIMARY";
    log.write(&Event { severity, component, id: 21358, context, message }, |_| {});
}

/// Says, in mongod's words, that a member of a set became another.
pub fn transition(log: &Log, before: &str, now: &str) {
    let (severity, component, context) = (Severity::Info, Component::Replication, "repl");
    let message = "Replica set state transition";
    log.write(&Event { severity, component, id: 21358, context, message }, |attributes| {
        attributes.append("newState", Value::String(now));
        attributes.append("oldState", Value::String(before));
    });
}

/// Says that other machines may read what is counted.
pub fn warn_of_open_metrics(log: &Log, address: SocketAddr) {
    let message =
        "Metrics are served beyond this machine: any client that reaches the address can read them";
    let (severity, component, context) = (Severity::Warning, Component::Network, "initandlisten");
    log.write(&Event { severity, component, id: 0, context, message }, |attributes| {
        attributes.append("address", Value::String(&address.to_string()));
    });
}

/// Rotates a log by `rotate` and reports it in the server's log. Returns whether there is a file.
///
/// # Errors
/// As [`Log::rotate`].
pub fn rotate(log: &Log, rotate: impl FnOnce() -> io::Result<bool>) -> io::Result<bool> {
    let done = rotate();
    let (severity, message) = match &done {
        Ok(_) => (Severity::Info, "Log file rotated"),
        Err(_) => (Severity::Error, "Log rotation failed"),
    };
    let (component, context) = (Component::Control, "signal");
    log.write(&Event { severity, component, id: 0, context, message }, |attributes| {
        if let Err(error) = &done {
            attributes.append("error", Value::String(&error.to_string()));
        }
    });
    done
}

/// Cuts a text off where a character begins.
fn truncate(text: &mut String, bytes_max: usize) {
    if bytes_max < text.len() {
        let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(message: &str) -> Event<'_> {
        let (severity, component) = (Severity::Info, Component::Network);
        Event { severity, component, id: 7, context: "conn1", message }
    }

    #[test]
    fn lines_are_json_and_the_last_are_kept() {
        let log = Log::new(|| 1_700_000_000_123);
        for number in 0..LINES_MAX as i32 + 3 {
            log.write(&info("counted"), |attributes| {
                attributes.append("number", Value::Int32(number));
            });
        }
        let Lines { written, lines } = log.lines();
        assert_eq!((written, lines.len()), (LINES_MAX as i64 + 3, LINES_MAX));
        let expected = r#"{"t":{"$date":"2023-11-14T22:13:20.123Z"},"s":"I","c":"NETWORK","id":7,"#;
        assert_eq!(
            lines[0],
            format!(r#"{expected}"ctx":"conn1","msg":"counted","attr":{{"number":3}}}}"#)
        );
        log.write_shown(&info("unsafe"), |_| {});
        assert_eq!(log.shown().lines, [log.lines().lines[LINES_MAX - 1].clone()]);
        log.write(&info(&"é".repeat(LINE_BYTES_MAX)), |_| {});
        let last = log.lines().lines.pop().expect("a line");
        assert!((LINE_BYTES_MAX - 1..=LINE_BYTES_MAX).contains(&last.len()));
    }

    #[test]
    fn a_file_is_rotated() {
        let directory = std::env::temp_dir().join(format!("frond-log-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("room");
        let path = directory.join("frond.log");
        let log = Log::new(|| 5);
        assert!(!log.rotate().expect("nothing to do"));
        let link = directory.join("link");
        std::os::unix::fs::symlink(&path, &link).expect("room");
        log.write_to(&LogOutput::File(link)).expect("it leads to a new file");
        assert!(!log.rotate().expect("nothing to do"), "what is no file isn't renamed");
        log.write_to(&LogOutput::File(path.clone())).expect("room");
        log.write(&info("before"), |_| {});
        assert!(log.rotate().expect("room"));
        log.write(&info("after"), |_| {});
        let read = |name: &str| std::fs::read_to_string(directory.join(name)).expect("it is there");
        assert!(read("frond.log.5").contains("before") && read("frond.log").contains("after"));
        assert_eq!(read("frond.log").lines().count(), 1);
        std::fs::remove_dir_all(&directory).expect("it is there");
    }
}
