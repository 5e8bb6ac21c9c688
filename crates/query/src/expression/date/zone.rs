//! Time zones: UTC, fixed offsets, and names of the tz database with their history.
//!
//! A local time that a change of the clocks skips counts as the one after it by the old offset; of
//! a local time that comes twice the first is taken. Dates beyond the years that the database
//! reaches have the offset of their like 400 years nearer, or of the earliest time known.

use frond_doc::Value;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::super::evaluated::Evaluated;
use super::super::failure;
use super::super::node::Node;
use super::super::parse::Parser;
use super::super::scope::Scope;
use crate::error::QueryError;

/// 400 years: after that the calendar and its weekdays repeat.
const CYCLE_MILLIS: i64 = 146_097 * 86_400_000;
/// The time from which on times are shifted back: the year 9500.
const LATE_MILLIS: i64 = 237_628_512_000_000;
/// The time before which the earliest offset holds: the year -9900.
const EARLY_MILLIS: i64 = -374_566_464_000_000;

/// A time zone.
#[derive(Clone, Debug)]
pub(in crate::expression) enum Zone {
    Utc,
    /// Milliseconds ahead of UTC.
    Fixed(i64),
    Named(TimeZone),
}

/// A time within the database's reach that has the same offset.
fn within_reach(millis: i64) -> i64 {
    if millis < LATE_MILLIS {
        return millis.max(EARLY_MILLIS);
    }
    LATE_MILLIS - CYCLE_MILLIS + (millis - LATE_MILLIS).rem_euclid(CYCLE_MILLIS)
}

impl Zone {
    /// Finds a zone by its name or offset: `Europe/Oslo`, `+05:30`, `+0530`, `+05`.
    pub(in crate::expression) fn parse(name: &str) -> Result<Zone, QueryError> {
        if name == "UTC" {
            return Ok(Zone::Utc);
        }
        if let Some(minutes) = fixed_offset(name) {
            return Ok(if minutes == 0 { Zone::Utc } else { Zone::Fixed(minutes * 60_000) });
        }
        // The database takes any case of letters, MongoDB only the right one.
        match jiff::tz::db().get(name) {
            Ok(zone) if zone.iana_name() == Some(name) => Ok(Zone::Named(zone)),
            _ => Err(failure(40485, format!("unrecognized time zone identifier: \"{name}\""))),
        }
    }

    /// Whether this is UTC by that name, or without any offset.
    pub(in crate::expression) fn is_utc(&self) -> bool {
        matches!(self, Zone::Utc)
    }

    /// Returns by how many milliseconds the zone is ahead of UTC at a moment.
    pub(in crate::expression) fn offset_millis(&self, utc_millis: i64) -> i64 {
        match self {
            Zone::Utc => 0,
            Zone::Fixed(millis) => *millis,
            Zone::Named(zone) => match Timestamp::from_millisecond(within_reach(utc_millis)) {
                Ok(timestamp) => i64::from(zone.to_offset(timestamp).seconds()) * 1000,
                Err(_) => 0,
            },
        }
    }

    /// The local time of a moment, as milliseconds that count as if the clock never changed.
    pub(in crate::expression) fn local(&self, utc_millis: i64) -> i64 {
        utc_millis.saturating_add(self.offset_millis(utc_millis))
    }

    /// The moment of a local time.
    pub(in crate::expression) fn utc(&self, local_millis: i64) -> i64 {
        let offset = match self {
            Zone::Utc => 0,
            Zone::Fixed(millis) => *millis,
            Zone::Named(zone) => local_offset(zone, local_millis).unwrap_or(0),
        };
        local_millis.saturating_sub(offset)
    }
}

fn local_offset(zone: &TimeZone, local_millis: i64) -> Option<i64> {
    let near = within_reach(local_millis);
    let civil: DateTime = TimeZone::UTC.to_datetime(Timestamp::from_millisecond(near).ok()?);
    let timestamp = zone.to_ambiguous_timestamp(civil).compatible().ok()?;
    Some(near - timestamp.as_millisecond())
}

/// `+hh`, `+hhmm`, `+hh:mm` in minutes.
fn fixed_offset(zone: &str) -> Option<i64> {
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.len() {
        2 => (digits, "00"),
        4 => digits.split_at_checked(2)?,
        5 => digits.split_once(':').filter(|(hours, _)| hours.len() == 2)?,
        _ => return None,
    };
    if !hours.bytes().chain(minutes.bytes()).all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    Some(sign * (hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?))
}

/// The `timezone` of an operator: looked up once where it is constant.
#[derive(Debug)]
pub(in crate::expression) enum ZoneArgument {
    Absent,
    Constant(Zone),
    Computed(Node),
}

impl ZoneArgument {
    /// Parses it. A constant that is no zone is an error when the operator runs, as MongoDB has
    /// it.
    pub(in crate::expression) fn parse(
        value: Option<Value<'_>>,
        parser: &mut Parser,
    ) -> Result<ZoneArgument, QueryError> {
        let Some(value) = value else { return Ok(ZoneArgument::Absent) };
        let node = parser.expression(value)?;
        if let Some(Value::String(name)) = node.constant()
            && let Ok(zone) = Zone::parse(name)
        {
            return Ok(ZoneArgument::Constant(zone));
        }
        Ok(ZoneArgument::Computed(node))
    }

    /// Whether it is the same for all documents.
    pub(in crate::expression) fn is_constant(&self) -> bool {
        match self {
            ZoneArgument::Absent | ZoneArgument::Constant(_) => true,
            ZoneArgument::Computed(node) => node.constant().is_some(),
        }
    }

    /// The zone: UTC where there is none, `None` where it is null. `describe` makes the error for
    /// what is no string.
    pub(in crate::expression) fn evaluate<'a>(
        &'a self,
        scope: &Scope<'a>,
        describe: impl FnOnce(&Evaluated<'_>) -> QueryError,
    ) -> Result<Option<Zone>, QueryError> {
        match self {
            ZoneArgument::Absent => Ok(Some(Zone::Utc)),
            ZoneArgument::Constant(zone) => Ok(Some(zone.clone())),
            ZoneArgument::Computed(node) => {
                let value = node.evaluate(scope)?;
                if value.is_nullish() {
                    return Ok(None);
                }
                match value.value() {
                    Some(Value::String(name)) => Zone::parse(name).map(Some),
                    _ => Err(describe(&value)),
                }
            }
        }
    }
}

/// The error of most operators for a time zone that is no string.
pub(in crate::expression) fn not_a_zone(value: &Evaluated<'_>) -> QueryError {
    let name = value.type_name();
    failure(40517, format!("timezone must evaluate to a string, found {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_times_and_moments_are_turned_into_each_other() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        // The clocks went forward at 2024-03-31T01:00Z, back at 2024-10-27T01:00Z.
        let (spring, autumn) = (1_711_846_800_000, 1_729_990_800_000);
        let hour = 3_600_000;
        assert_eq!(berlin.offset_millis(spring - 1), hour);
        assert_eq!(berlin.offset_millis(spring), 2 * hour);
        // 02:30 never was: it is 03:30. In autumn it came twice: the first counts.
        assert_eq!(berlin.utc(spring + hour + hour / 2), spring + hour / 2);
        assert_eq!(berlin.utc(autumn + hour + hour / 2), autumn - hour / 2);
        for millis in [i64::MIN, -400_000_000_000_000, 0, 300_000_000_000_000, i64::MAX] {
            assert!(berlin.local(millis).abs_diff(millis) <= 2 * hour as u64);
        }
    }

    #[test]
    fn zones_have_names_and_offsets() {
        for name in ["UTC", "GMT", "Etc/UTC", "America/New_York", "+01", "-0130", "+05:45"] {
            assert!(Zone::parse(name).is_ok(), "{name}");
        }
        for name in
            ["", "x", "Z", "europe/berlin", "+1", "+1:00", "+01:0", "+010", "+a1", "Mars/City"]
        {
            assert_eq!(Zone::parse(name).unwrap_err().code.number(), 40485, "{name}");
        }
    }
}
