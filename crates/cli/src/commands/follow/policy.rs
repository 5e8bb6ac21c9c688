//! The times when versions are recorded.

use std::time::Duration;

use crate::commands::follow::record::Record;

/// The condition that makes a version due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitTrigger {
    /// So much time since the last one, if anything changed.
    Time(Duration),
    /// So many changes.
    Changes(u64),
}

impl CommitTrigger {
    /// Whether a version is due at that time, in milliseconds since 1970.
    pub fn is_due(self, record: &Record, now_millis: i64) -> bool {
        let changes = u64::try_from(record.uncommitted).unwrap_or(0);
        match self {
            CommitTrigger::Changes(count) => changes >= count,
            CommitTrigger::Time(time) => {
                let since = now_millis.saturating_sub(record.committed_millis);
                changes > 0 && u128::try_from(since).is_ok_and(|since| since >= time.as_millis())
            }
        }
    }
}

/// Reads `30s`, `15m`, `1h`, `1d`, or a count of changes.
///
/// # Errors
/// Says what is expected.
pub fn parse(text: &str) -> Result<CommitTrigger, String> {
    let wrong = || "expected a time (30s, 15m, 1h, 1d) or a count of changes".to_owned();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let count: u64 = digits.parse().ok().filter(|count| *count > 0).ok_or_else(wrong)?;
    let seconds = match &text[digits.len()..] {
        "" => return Ok(CommitTrigger::Changes(count)),
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    count.checked_mul(seconds).map(Duration::from_secs).map(CommitTrigger::Time).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_counts() {
        let time = |seconds| Some(CommitTrigger::Time(Duration::from_secs(seconds)));
        for (text, expected) in [
            ("30s", time(30)),
            ("15m", time(900)),
            ("1h", time(3_600)),
            ("2d", time(172_800)),
            ("500", Some(CommitTrigger::Changes(500))),
            ("0", None),
            ("h", None),
            ("1w", None),
            ("-1", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(parse(text).ok(), expected, "{text}");
        }
    }
}
