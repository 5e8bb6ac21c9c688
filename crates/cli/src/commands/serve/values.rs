//! Values of the options of `serve`, read from what a person writes.

use std::ops::RangeInclusive;

use frond_doc::{DocumentBuf, extended_json};
use frond_server::limits::SNAPSHOT_WINDOW_MAX;
use frond_server::{LogRotation, ProfileLevel};

/// The least memory: with less, what isn't in the budget (the program, a few answers) is most of
/// what is taken.
const MEMORY_BYTES_MIN: u64 = 16 << 20;

/// Reads the budget of memory.
pub(super) fn parse_memory(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        bytes if bytes < MEMORY_BYTES_MIN => Err("at least 16MB".to_owned()),
        bytes => Ok(bytes),
    }
}

/// A parameter of mongod's that a server may begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Parameter {
    /// `enableTestCommands`
    TestCommands(bool),
    /// `ttlMonitorSleepSecs`
    ExpireSeconds(u32),
    /// `minSnapshotHistoryWindowInSeconds`
    SnapshotWindowSeconds(u64),
    /// `requireApiVersion`
    RequiresApiVersion(bool),
    /// `acceptApiVersion2`
    AcceptsApiVersion2(bool),
    /// `logLevel`
    LogLevel(i32),
    /// `transactionLifetimeLimitSeconds`
    TransactionSeconds(u64),
    /// `cursorTimeoutMillis`
    CursorMillis(u64),
    /// `enableLocalhostAuthBypass`
    LocalhostException(bool),
    /// One whose value says what is the case.
    Moot,
}

/// Parameters of mongod's, with the values that say what is the case.
const MOOT: &[(&str, [&str; 2])] = &[
    ("diagnosticDataCollectionEnabled", ["false", "0"]),
    ("enableFlowControl", ["false", "0"]),
    ("notablescan", ["false", "0"]),
    ("ttlMonitorEnabled", ["true", "1"]),
];

/// Reads a parameter.
pub(super) fn parse_parameter(text: &str) -> Result<Parameter, String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err("not NAME=VALUE".to_owned());
    };
    let flag = || match value {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err("it is 0 or 1".to_owned()),
    };
    let seconds = |range: RangeInclusive<u64>| {
        let seconds = value.parse().ok().filter(|seconds| range.contains(seconds));
        seconds.ok_or_else(|| format!("it must be {} to {} seconds", range.start(), range.end()))
    };
    if MOOT.iter().any(|(known, values)| *known == name && values.contains(&value)) {
        return Ok(Parameter::Moot);
    }
    match name {
        "cursorTimeoutMillis" => {
            let millis = value.parse().ok().filter(|millis| *millis <= i64::MAX as u64);
            let wrong = || "it must be a number of milliseconds".to_owned();
            millis.map(Parameter::CursorMillis).ok_or_else(wrong)
        }
        "enableLocalhostAuthBypass" => flag().map(Parameter::LocalhostException),
        "transactionLifetimeLimitSeconds" => {
            seconds(1..=i32::MAX as u64).map(Parameter::TransactionSeconds)
        }
        "acceptApiVersion2" => flag().map(Parameter::AcceptsApiVersion2),
        "enableTestCommands" => flag().map(Parameter::TestCommands),
        "requireApiVersion" => flag().map(Parameter::RequiresApiVersion),
        "ttlMonitorSleepSecs" => {
            let seconds = seconds(1..=i32::MAX as u64)?;
            Ok(Parameter::ExpireSeconds(u32::try_from(seconds).unwrap_or(u32::MAX)))
        }
        "minSnapshotHistoryWindowInSeconds" => {
            seconds(0..=SNAPSHOT_WINDOW_MAX).map(Parameter::SnapshotWindowSeconds)
        }
        "logLevel" => {
            let level = value.parse().ok().filter(|level| (0..=5).contains(level));
            level.map(Parameter::LogLevel).ok_or_else(|| "it must be 0 to 5".to_owned())
        }
        _ => Err(format!(
            "there is no parameter {name}, only acceptApiVersion2, cursorTimeoutMillis, \
             enableLocalhostAuthBypass, enableTestCommands, logLevel, \
             minSnapshotHistoryWindowInSeconds, requireApiVersion, \
             transactionLifetimeLimitSeconds and ttlMonitorSleepSecs"
        )),
    }
}

/// What rotating the log is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum LogRotate {
    Rename,
    Reopen,
}

impl LogRotate {
    /// Returns it for the server.
    pub(super) fn rotation(self) -> LogRotation {
        match self {
            LogRotate::Rename => LogRotation::Rename,
            LogRotate::Reopen => LogRotation::Reopen,
        }
    }
}

/// The operations that are profiled, by the names that mongod's files have for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum Profile {
    #[value(name = "off", alias = "0")]
    Off,
    #[value(name = "slowOp", alias = "1")]
    Slow,
    #[value(name = "all", alias = "2")]
    All,
}

impl Profile {
    /// Returns it for the server.
    pub(super) fn level(self) -> ProfileLevel {
        match self {
            Profile::Off => ProfileLevel::Off,
            Profile::Slow => ProfileLevel::Slow,
            Profile::All => ProfileLevel::All,
        }
    }
}

/// Reads a part of all, from 0 to 1.
pub(super) fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.0..=1.0).contains(rate));
    rate.ok_or_else(|| "it must be between 0 and 1".to_owned())
}

/// Reads a query, in MongoDB's extended JSON.
pub(super) fn parse_filter(text: &str) -> Result<DocumentBuf, String> {
    extended_json::parse(text).map_err(|error| error.to_string())
}

/// Reads a number of bytes, `64MB` or the like; units are binary, as everywhere where memory is
/// meant.
///
/// # Errors
/// Says what of it is no size.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let shift = match text[digits.len()..].trim().to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        unit => return Err(format!("unknown unit {unit:?}: B, KB, MB or GB")),
    };
    let count: u64 = digits.parse().map_err(|_| "not a number of bytes".to_owned())?;
    count.checked_mul(1 << shift).ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Parameter, parse_memory, parse_parameter};

    #[test]
    fn parameters_are_read() {
        for (text, expected) in [
            ("enableTestCommands=1", Some(Parameter::TestCommands(true))),
            ("requireApiVersion=false", Some(Parameter::RequiresApiVersion(false))),
            ("acceptApiVersion2=true", Some(Parameter::AcceptsApiVersion2(true))),
            ("ttlMonitorSleepSecs=1", Some(Parameter::ExpireSeconds(1))),
            ("ttlMonitorSleepSecs=0", None),
            ("ttlMonitorSleepSecs=2147483648", None),
            ("minSnapshotHistoryWindowInSeconds=0", Some(Parameter::SnapshotWindowSeconds(0))),
            ("minSnapshotHistoryWindowInSeconds=-1", None),
            ("enableTestCommands=yes", None),
            ("transactionLifetimeLimitSeconds=3", Some(Parameter::TransactionSeconds(3))),
            ("transactionLifetimeLimitSeconds=0", None),
            ("cursorTimeoutMillis=0", Some(Parameter::CursorMillis(0))),
            ("cursorTimeoutMillis=-1", None),
            ("enableLocalhostAuthBypass=0", Some(Parameter::LocalhostException(false))),
            ("enableFlowControl=false", Some(Parameter::Moot)),
            ("logLevel=1", Some(Parameter::LogLevel(1))),
            ("logLevel=6", None),
            ("ttlMonitorEnabled=1", Some(Parameter::Moot)),
            ("ttlMonitorEnabled=0", None),
            ("diagnosticDataCollectionEnabled=false", Some(Parameter::Moot)),
            ("diagnosticDataCollectionEnabled=true", None),
            ("ttlMonitorSleepSecs", None),
        ] {
            assert_eq!(parse_parameter(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn sizes_of_memory_are_read() {
        let cases = [
            ("268435456", Some(256 << 20)),
            ("256MB", Some(256 << 20)),
            ("256 mib", Some(256 << 20)),
            ("1G", Some(1 << 30)),
            ("65536K", Some(64 << 20)),
            ("15MB", None),
            ("MB", None),
            ("1.5GB", None),
            ("-1GB", None),
            ("64 parsecs", None),
            ("99999999999GB", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_memory(text).ok(), expected, "{text}");
        }
    }
}
