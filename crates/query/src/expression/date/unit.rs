//! Units of time, and days on which weeks begin.

use frond_doc::Value;

use super::super::evaluated::Evaluated;
use super::super::failure;
use crate::error::QueryError;

/// A unit of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::expression) enum Unit {
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

const NAMES: [(&str, Unit); 9] = [
    ("day", Unit::Day),
    ("hour", Unit::Hour),
    ("millisecond", Unit::Millisecond),
    ("minute", Unit::Minute),
    ("month", Unit::Month),
    ("quarter", Unit::Quarter),
    ("second", Unit::Second),
    ("week", Unit::Week),
    ("year", Unit::Year),
];

impl Unit {
    /// The unit of a name.
    pub(in crate::expression) fn of(name: &str) -> Option<Unit> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, unit)| *unit)
    }

    /// Its name.
    pub(in crate::expression) fn name(self) -> &'static str {
        NAMES.iter().find(|(_, unit)| *unit == self).map_or("", |(name, _)| name)
    }

    /// Returns how many milliseconds it has, if it is an hour or less.
    pub(in crate::expression) fn millis(self) -> Option<i64> {
        match self {
            Unit::Millisecond => Some(1),
            Unit::Second => Some(1000),
            Unit::Minute => Some(60_000),
            Unit::Hour => Some(3_600_000),
            _ => None,
        }
    }

    /// Returns how many months it has, if it is a month or more.
    pub(in crate::expression) fn months(self) -> Option<i64> {
        match self {
            Unit::Month => Some(1),
            Unit::Quarter => Some(3),
            Unit::Year => Some(12),
            _ => None,
        }
    }
}

/// The unit that `$dateDiff` or `$dateTrunc` is given.
pub(in crate::expression) fn unit(
    operator: &str,
    value: &Evaluated<'_>,
) -> Result<Unit, QueryError> {
    let Some(Value::String(name)) = value.value() else {
        let found = value.type_name();
        let message = format!("{operator} requires 'unit' to be a string, but got {found}");
        return Err(failure(5_439_013, message));
    };
    Unit::of(name).ok_or_else(|| {
        let message = format!(
            "{operator} parameter 'unit' value cannot be recognized as a time unit: {name}"
        );
        failure(5_439_014, message)
    })
}

/// The day on which a week begins: 1 for Monday to 7 for Sunday.
pub(in crate::expression) fn start_of_week(
    operator: &str,
    value: &Evaluated<'_>,
) -> Result<i64, QueryError> {
    const DAYS: [&str; 7] =
        ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let Some(Value::String(name)) = value.value() else {
        let found = value.type_name();
        let message = format!("{operator} requires 'startOfWeek' to be a string, but got {found}");
        return Err(failure(5_439_015, message));
    };
    let wanted = name.to_ascii_lowercase();
    let position = DAYS.iter().position(|day| *day == wanted || day[..3] == wanted);
    position.map(|position| position as i64 + 1).ok_or_else(|| {
        let message = format!(
            "{operator} parameter 'startOfWeek' value cannot be recognized as a day of a week: \
             {name}"
        );
        failure(5_439_016, message)
    })
}
