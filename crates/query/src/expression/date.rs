//! Parts of dates: `$year`, `$month`, `$dayOfMonth`, `$hour`, ..., in UTC or at a fixed offset.
//!
//! Dates are counted by the proleptic Gregorian calendar over the whole range of 64 bits of
//! milliseconds (algorithms: Howard Hinnant, "chrono-compatible low-level date algorithms", 2013).
//! Time zones by name need their history, which isn't built in: they are refused.

use frond_doc::Value;

use super::convert::millis_of;
use super::evaluated::Evaluated;
use super::failure;
use super::node::{Answer, Node, Operation};
use super::parse::{Parser, named};
use super::scope::Scope;
use crate::code::Code;
use crate::error::QueryError;

const DAY_MILLIS: i64 = 86_400_000;

/// A moment in the calendar.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) year: i64,
    /// From 1.
    pub(super) month: i64,
    /// Of the month, from 1.
    pub(super) day: i64,
    /// Of the year, from 1.
    pub(super) day_of_year: i64,
    /// From 0 for Sunday.
    pub(super) weekday: i64,
    /// Within the day.
    pub(super) millis: i64,
}

impl Moment {
    /// The moment so many milliseconds from 1970.
    pub(super) fn new(millis: i64) -> Moment {
        let days = millis.div_euclid(DAY_MILLIS);
        let (year, month, day) = civil_from_days(days);
        Moment {
            year,
            month,
            day,
            day_of_year: days - days_from_civil(year, 1, 1) + 1,
            weekday: (days + 4).rem_euclid(7),
            millis: millis.rem_euclid(DAY_MILLIS),
        }
    }

    /// From 1 for Monday.
    pub(super) fn iso_weekday(&self) -> i64 {
        if self.weekday == 0 { 7 } else { self.weekday }
    }

    /// The week of ISO 8601 and its year.
    pub(super) fn iso_week(&self) -> (i64, i64) {
        let week = (self.day_of_year - self.iso_weekday() + 10) / 7;
        match week {
            0 => (self.year - 1, iso_weeks(self.year - 1)),
            53 if iso_weeks(self.year) == 52 => (self.year + 1, 1),
            week => (self.year, week),
        }
    }

    /// The week of the year, which begins with a Sunday; what is before the first one is week 0.
    pub(super) fn week(&self) -> i64 {
        (self.day_of_year + 6 - self.weekday) / 7
    }

    pub(super) fn hour(&self) -> i64 {
        self.millis / 3_600_000
    }

    pub(super) fn minute(&self) -> i64 {
        self.millis / 60_000 % 60
    }

    pub(super) fn second(&self) -> i64 {
        self.millis / 1000 % 60
    }

    pub(super) fn millisecond(&self) -> i64 {
        self.millis % 1000
    }
}

/// A year has 53 weeks if it begins or ends with a Thursday.
fn iso_weeks(year: i64) -> i64 {
    let weekday = |month, day| (days_from_civil(year, month, day) + 4).rem_euclid(7);
    if weekday(1, 1) == 4 || weekday(12, 31) == 4 { 53 } else { 52 }
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = (month + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The milliseconds of what counts as a date.
pub(super) fn millis(value: &Evaluated<'_>) -> Result<i64, QueryError> {
    match value.or_null() {
        Value::DateTime(millis) => Ok(millis),
        Value::Timestamp(timestamp) => Ok((timestamp.0 >> 32) as i64 * 1000),
        Value::ObjectId(id) => Ok(millis_of(id)),
        _ => {
            let name = value.type_name();
            Err(failure(16006, format!("can't convert from BSON type {name} to Date")))
        }
    }
}

/// The minutes by which a time zone is ahead of UTC.
pub(super) fn offset_minutes(zone: &Evaluated<'_>) -> Result<i64, QueryError> {
    let Some(Value::String(zone)) = zone.value() else {
        let name = zone.type_name();
        let message = format!("timezone must evaluate to a string, found {name}");
        return Err(failure(40533, message));
    };
    if matches!(zone, "UTC" | "GMT" | "Z" | "Etc/UTC" | "Etc/GMT" | "Zulu") {
        return Ok(0);
    }
    fixed_offset(zone).ok_or_else(|| {
        let message = format!(
            "unrecognized time zone identifier: \"{zone}\": Frond supports UTC and offsets \
             like +02:00"
        );
        failure(40485, message)
    })
}

/// `+hh`, `+hhmm`, `+hh:mm`
fn fixed_offset(zone: &str) -> Option<i64> {
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits.replace(':', "")),
        ("-", digits) => (-1, digits.replace(':', "")),
        _ => return None,
    };
    if !matches!(digits.len(), 2 | 4) || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let hours: i64 = digits.get(..2)?.parse().ok()?;
    let minutes: i64 =
        digits.get(2..).filter(|rest| !rest.is_empty()).unwrap_or("0").parse().ok()?;
    Some(sign * (hours * 60 + minutes))
}

/// A date at an offset.
pub(super) fn shifted(millis: i64, minutes: i64) -> i64 {
    millis.saturating_add(minutes * 60_000)
}

#[derive(Debug)]
struct Part {
    name: String,
    date: Node,
    zone: Option<Node>,
}

impl Operation for Part {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let date = self.date.evaluate(scope)?;
        let offset = match &self.zone {
            None => 0,
            Some(zone) => {
                let zone = zone.evaluate(scope)?;
                if zone.is_nullish() {
                    return Ok(Evaluated::NULL);
                }
                offset_minutes(&zone)?
            }
        };
        if date.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let moment = Moment::new(shifted(millis(&date)?, offset));
        let part = match self.name.as_str() {
            "$year" => moment.year,
            "$month" => moment.month,
            "$dayOfMonth" => moment.day,
            "$dayOfWeek" => moment.weekday + 1,
            "$dayOfYear" => moment.day_of_year,
            "$hour" => moment.hour(),
            "$minute" => moment.minute(),
            "$second" => moment.second(),
            "$millisecond" => moment.millisecond(),
            "$week" => moment.week(),
            "$isoWeek" => moment.iso_week().1,
            "$isoWeekYear" => return Ok(moment.iso_week().0.into()),
            _ => moment.iso_weekday(),
        };
        Ok(i32::try_from(part).map_or(Evaluated::from(part), Evaluated::from))
    }
}

/// Any of the parts: a date, or `{date, timezone}`.
pub(super) fn part(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let is_named = argument
        .as_document()
        .is_some_and(|document| document.iter().all(|(name, _)| !name.starts_with('$')));
    let (date, zone) = if is_named {
        let codes = (Code::Location(40535), Code::Location(40535));
        let [date, zone] = named(operator, argument, ["date", "timezone"], codes)?;
        let date =
            date.ok_or_else(|| failure(40539, format!("missing 'date' argument to {operator}")))?;
        (parser.expression(date)?, parser.optional(zone)?)
    } else {
        let [date] = parser.exactly(operator, argument)?;
        (date, None)
    };
    Ok(Node::special(Part { name: operator.to_owned(), date, zone }))
}
