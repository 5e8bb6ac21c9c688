//! `$dateFromString`: dates read from text, by a format or (see `read_any`) without one.

use frond_doc::Value;

use super::super::evaluated::Evaluated;
use super::super::failure;
use super::super::node::{Answer, Node, Operation};
use super::super::parse::{Parser, named};
use super::super::scope::Scope;
use super::calendar::{DAY_MILLIS, days_from_civil, days_from_iso, days_in_month};
use super::format::MONTHS;
use super::zone::{Zone, ZoneArgument, not_a_zone};
use super::{date, read_any};
use crate::code::Code;
use crate::error::QueryError;

/// The parts of a date that a text contains.
#[derive(Default)]
pub(super) struct Read {
    pub(super) year: Option<i64>,
    pub(super) month: Option<i64>,
    pub(super) day: Option<i64>,
    pub(super) day_of_year: Option<i64>,
    pub(super) iso_year: Option<i64>,
    pub(super) iso_week: Option<i64>,
    pub(super) iso_day: Option<i64>,
    pub(super) hour: Option<i64>,
    pub(super) minute: Option<i64>,
    pub(super) second: Option<i64>,
    pub(super) millis: Option<i64>,
    /// Minutes ahead of UTC, and the zone as it stood in the text.
    pub(super) zone: Option<(i64, String)>,
}

/// The error for a text that is no date.
pub(super) fn unreadable(text: &str, why: &str) -> QueryError {
    let message = format!("Error parsing date string '{text}'; {why}");
    QueryError::new(Code::ConversionFailure, message)
}

impl Read {
    /// The moment, if the text gave enough of it.
    pub(super) fn moment(self, text: &str, zone: &Zone) -> Result<i64, QueryError> {
        let incomplete = || {
            let message = format!(
                "an incomplete date/time string has been found, with elements missing: \"{text}\""
            );
            QueryError::new(Code::ConversionFailure, message)
        };
        let has_time = self.hour.is_some() || self.minute.is_some() || self.second.is_some();
        let (hour, minute, second) = match (self.hour, self.minute, self.second) {
            (Some(hour), Some(minute), second) => (hour, minute, second.unwrap_or(0)),
            _ if has_time => return Err(incomplete()),
            _ => (0, 0, 0),
        };
        if 23 < hour || 59 < minute || 59 < second {
            return Err(unreadable(text, "the time is out of range"));
        }
        let day = self.date(text)?.ok_or_else(incomplete)?;
        let local = day * DAY_MILLIS
            + hour * 3_600_000
            + minute * 60_000
            + second * 1000
            + self.millis.unwrap_or(0);
        match self.zone {
            None => Ok(zone.utc(local)),
            Some((minutes, _)) if zone.is_utc() => Ok(local - minutes * 60_000),
            Some((_, name)) => {
                let message = format!(
                    "you cannot pass in a date/time string with time zone information ('{name}') \
                     together with a timezone argument"
                );
                Err(QueryError::new(Code::ConversionFailure, message))
            }
        }
    }

    /// The days from 1970; `None` if the text didn't give them.
    fn date(&self, text: &str) -> Result<Option<i64>, QueryError> {
        let checked = |is_inside: bool, day: i64| match is_inside {
            true => Ok(Some(day)),
            false => Err(unreadable(text, "the parsed date was invalid")),
        };
        if let (Some(year), Some(month), Some(day)) = (self.year, self.month, self.day) {
            let is_inside = (1..=12).contains(&month)
                && 1 <= day
                && day <= days_in_month(year, month.clamp(1, 12));
            return checked(is_inside, days_from_civil(year, month.clamp(1, 12), day));
        }
        if let (Some(year), Some(day)) = (self.year, self.day_of_year) {
            return checked((1..=366).contains(&day), days_from_civil(year, 1, 1) + day - 1);
        }
        if let (Some(year), Some(week)) = (self.iso_year, self.iso_week) {
            let day = self.iso_day.unwrap_or(1);
            let is_inside = (1..=53).contains(&week) && (1..=7).contains(&day);
            return checked(is_inside, days_from_iso(year, week, day));
        }
        Ok(None)
    }
}

/// A text that is read from its beginning.
pub(super) struct Cursor<'t> {
    pub(super) rest: &'t str,
}

impl<'t> Cursor<'t> {
    /// The number of `least` to `most` digits that comes next.
    pub(super) fn digits(&mut self, least: usize, most: usize) -> Option<i64> {
        let count = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if count < least {
            return None;
        }
        let (digits, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        digits.parse().ok()
    }

    /// Whether `text` comes next, which is taken then.
    pub(super) fn takes(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// The letters that come next.
    pub(super) fn letters(&mut self) -> &'t str {
        let count = self.rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (letters, rest) = self.rest.split_at(count);
        self.rest = rest;
        letters
    }

    /// `+hh`, `+hhmm`, `+hh:mm` in minutes.
    pub(super) fn offset(&mut self) -> Option<i64> {
        let sign = match () {
            () if self.takes("+") => 1,
            () if self.takes("-") => -1,
            () => return None,
        };
        let hours = self.digits(1, 2)?;
        self.takes(":");
        let minutes = self.digits(2, 2).unwrap_or(0);
        Some(sign * (hours * 60 + minutes))
    }

    /// A fraction of a second of one to three digits, in milliseconds: `81` is 810.
    fn milliseconds(&mut self) -> Option<i64> {
        let before = self.rest.len();
        let number = self.digits(1, 3)?;
        let digits = (before - self.rest.len()) as u32;
        Some(number * 10_i64.pow(3 - digits))
    }

    /// A fraction of a second in milliseconds; more digits than three are cut off.
    pub(super) fn fraction(&mut self) -> Option<i64> {
        let count = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at_checked(count).filter(|(d, _)| !d.is_empty())?;
        self.rest = rest;
        format!("{digits:0<3}").get(..3)?.parse().ok()
    }
}

/// The number of a month by its name, whole or of three letters, in any case.
pub(super) fn month_by_name(name: &str) -> Option<i64> {
    let is_it = |month: &&str| {
        month.eq_ignore_ascii_case(name)
            || month.get(..3).is_some_and(|short| short.eq_ignore_ascii_case(name))
    };
    MONTHS.iter().position(is_it).map(|position| position as i64 + 1)
}

/// Reads what one specifier stands for.
fn specified(cursor: &mut Cursor<'_>, specifier: char, read: &mut Read) -> Option<()> {
    match specifier {
        'Y' => read.year = Some(cursor.digits(4, 4)?),
        'G' => read.iso_year = Some(cursor.digits(4, 4)?),
        'm' => read.month = Some(cursor.digits(1, 2)?),
        'd' => read.day = Some(cursor.digits(1, 2)?),
        'j' => read.day_of_year = Some(cursor.digits(1, 3)?),
        'H' => read.hour = Some(cursor.digits(1, 2)?),
        'M' => read.minute = Some(cursor.digits(2, 2)?),
        'S' => read.second = Some(cursor.digits(2, 2)?),
        'L' => read.millis = Some(cursor.milliseconds()?),
        'V' => read.iso_week = Some(cursor.digits(1, 2)?),
        'u' => read.iso_day = Some(cursor.digits(1, 1)?),
        'b' | 'B' => read.month = Some(month_by_name(cursor.letters())?),
        'z' => {
            let before = cursor.rest;
            let is_utc = cursor.takes("Z") || cursor.takes("UTC") || cursor.takes("GMT");
            let minutes = if is_utc { 0 } else { cursor.offset()? };
            read.zone = Some((minutes, before.to_owned()));
        }
        'Z' => {
            let before = cursor.rest;
            let sign = if cursor.takes("-") { -1 } else { 1 };
            cursor.takes("+");
            read.zone = Some((sign * cursor.digits(1, 4)?, before.to_owned()));
        }
        _ => cursor.takes("%").then_some(())?,
    }
    Some(())
}

/// Checks a format: 18535 for a `%` at its end, 18536 for a specifier that isn't there.
fn check_format(format: &str) -> Result<(), QueryError> {
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            continue;
        }
        match letters.next() {
            None => return Err(failure(18535, "Unmatched '%' at end of format string")),
            Some(specifier) if "%BbdGHjLmMSuVYzZ".contains(specifier) => {}
            Some(other) => {
                let message = format!("Invalid format character '%{other}' in format string");
                return Err(failure(18536, message));
            }
        }
    }
    Ok(())
}

/// Reads a date by a format.
///
/// # Errors
/// `ConversionFailure` for a text that doesn't follow it.
pub(in crate::expression) fn read_with_format(
    text: &str,
    format: &str,
    zone: &Zone,
) -> Result<i64, QueryError> {
    check_format(format)?;
    let mut cursor = Cursor { rest: text };
    let mut read = Read::default();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        let fits = match (letter, letter == '%') {
            (_, true) => specified(&mut cursor, letters.next().unwrap_or('%'), &mut read).is_some(),
            _ => cursor.takes(letter.encode_utf8(&mut [0; 4])),
        };
        if !fits {
            let position = text.len() - cursor.rest.len();
            return Err(unreadable(text, &format!("{position}: the text doesn't fit the format")));
        }
    }
    if !cursor.rest.is_empty() {
        let position = text.len() - cursor.rest.len();
        return Err(unreadable(text, &format!("{position}: Trailing data")));
    }
    read.moment(text, zone)
}

#[derive(Debug)]
struct DateFromString {
    text: Node,
    format: Option<Node>,
    zone: ZoneArgument,
    on_null: Option<Node>,
    on_error: Option<Node>,
}

impl Operation for DateFromString {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let text = self.text.evaluate(scope)?;
        let format = self.format.as_ref().map(|format| format.evaluate(scope)).transpose()?;
        // A wrong format or zone is an error also where the text is null.
        let by = match format.as_ref().map(Evaluated::value) {
            None | Some(None | Some(Value::Null | Value::Undefined)) => None,
            Some(Some(Value::String(by))) => {
                check_format(by)?;
                Some(by)
            }
            Some(Some(value)) => {
                let (name, text) = (value.element_type().alias(), crate::text::value(value));
                let message = format!(
                    "$dateFromString requires that 'format' be a string, found: {name} \
                     with value {text}"
                );
                return Err(failure(40684, message));
            }
        };
        let zone = self.zone.evaluate(scope, not_a_zone)?;
        if text.is_nullish() {
            return self.on_null.as_ref().map_or(Ok(Evaluated::NULL), |node| node.evaluate(scope));
        }
        let moment = match text.value() {
            Some(Value::String(text)) => {
                let (Some(zone), true) = (&zone, by.is_some() == format.is_some()) else {
                    return Ok(Evaluated::NULL);
                };
                match by {
                    Some(by) => read_with_format(text, by, zone),
                    None => read_any(text, zone),
                }
            }
            _ => {
                let (name, found) = (text.type_name(), text.text());
                let message = format!(
                    "$dateFromString requires that 'dateString' be a string, found: {name} \
                     with value {found}"
                );
                Err(QueryError::new(Code::ConversionFailure, message))
            }
        };
        match (moment, &self.on_error) {
            (Ok(moment), _) => Ok(date(moment)),
            (Err(error), Some(node)) if error.code == Code::ConversionFailure => {
                node.evaluate(scope)
            }
            (Err(error), _) => Err(error),
        }
    }
}

/// `$dateFromString`
pub(in crate::expression) fn date_from_string(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(40540), Code::Location(40541));
    let names = ["dateString", "format", "timezone", "onNull", "onError"];
    let [text, format, zone, on_null, on_error] = named(operator, argument, names, codes)?;
    let text =
        text.ok_or_else(|| failure(40542, "Missing 'dateString' parameter to $dateFromString"))?;
    Ok(Node::special(DateFromString {
        text: parser.expression(text)?,
        format: parser.optional(format)?,
        zone: ZoneArgument::parse(zone, parser)?,
        on_null: parser.optional(on_null)?,
        on_error: parser.optional(on_error)?,
    }))
}
