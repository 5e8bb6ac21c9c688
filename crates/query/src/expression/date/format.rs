//! `$dateToString`: dates as text.

use std::fmt::Write;

use frond_doc::Value;

use super::super::evaluated::{Evaluated, check_bytes};
use super::super::failure;
use super::super::node::{Answer, Node, Operation};
use super::super::parse::{Parser, named};
use super::super::scope::Scope;
use super::calendar::Moment;
use super::millis;
use super::zone::{Zone, ZoneArgument, not_a_zone};
use crate::code::Code;
use crate::error::QueryError;

const ISO_FORMAT: &str = "%Y-%m-%dT%H:%M:%S.%LZ";
/// The format for other zones than UTC, whose offset MongoDB doesn't print.
const LOCAL_FORMAT: &str = "%Y-%m-%dT%H:%M:%S.%L";

/// A date as C's `ctime` prints it, without its weekday and year.
pub(in crate::expression) fn short_text(millis: i64) -> String {
    let moment = Moment::new(millis);
    format!(
        "{} {:2} {:02}:{:02}:{:02}",
        short_month(&moment),
        moment.day,
        moment.hour(),
        moment.minute(),
        moment.second()
    )
}

/// A date as `$toString` prints it.
///
/// # Errors
/// 18537 beyond the years 0 to 9999.
pub(in crate::expression) fn utc_text(millis: i64) -> Result<String, QueryError> {
    format_with(None, millis, &Zone::Utc)
}

/// Prints a date as `$dateToString` does.
///
/// # Errors
/// 18537 beyond the years 0 to 9999, and for a wrong format.
pub(in crate::expression) fn format_with(
    format: Option<&str>,
    millis: i64,
    zone: &Zone,
) -> Result<String, QueryError> {
    let offset = zone.offset_millis(millis);
    let moment = Moment::new(millis.saturating_add(offset));
    if !(0..=9999).contains(&moment.year) {
        let year = moment.year;
        let message =
            format!("$dateToString is only defined on year 0-9999, tried to use year {year}");
        return Err(failure(18537, message));
    }
    let default = if zone.is_utc() { ISO_FORMAT } else { LOCAL_FORMAT };
    write_date(format.unwrap_or(default), &moment, offset / 60_000)
}

#[derive(Debug)]
struct DateToString {
    date: Node,
    format: Option<Node>,
    zone: ZoneArgument,
    on_null: Option<Node>,
}

impl Operation for DateToString {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let date = self.date.evaluate(scope)?;
        let format = self.format.as_ref().map(|format| format.evaluate(scope)).transpose()?;
        // A wrong format or zone is an error also where the date is null.
        let text = match format.as_ref().map(Evaluated::value) {
            None | Some(None | Some(Value::Null | Value::Undefined)) => None,
            Some(Some(Value::String(text))) => Some(text),
            Some(Some(value)) => {
                let (name, text) = (value.element_type().alias(), crate::text::value(value));
                let message = format!(
                    "$dateToString requires that 'format' be a string, found: {name} \
                     with value {text}"
                );
                return Err(failure(18533, message));
            }
        };
        if let Some(text) = text.filter(|_| date.is_nullish()) {
            write_date(text, &Moment::new(0), 0)?;
        }
        let zone = self.zone.evaluate(scope, not_a_zone)?;
        if date.is_nullish() {
            return self.on_null.as_ref().map_or(Ok(Evaluated::NULL), |node| node.evaluate(scope));
        }
        let (Some(zone), true) = (zone, text.is_some() == format.is_some()) else {
            return Ok(Evaluated::NULL);
        };
        Evaluated::string(&format_with(text, millis(&date)?, &zone)?, scope.memory())
    }
}

/// Their names in English.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn write_date(format: &str, moment: &Moment, offset: i64) -> Result<String, QueryError> {
    let mut out = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        let Some(specifier) = letters.next() else {
            return Err(failure(18535, "Unmatched '%' at end of format string"));
        };
        write_part(&mut out, specifier, moment, offset)?;
        check_bytes(out.len())?;
    }
    Ok(out)
}

fn month(moment: &Moment) -> &'static str {
    let position = usize::try_from(moment.month - 1).ok();
    position.and_then(|position| MONTHS.get(position)).copied().unwrap_or_default()
}

fn short_month(moment: &Moment) -> &'static str {
    month(moment).get(..3).unwrap_or_default()
}

fn write_part(
    out: &mut String,
    specifier: char,
    moment: &Moment,
    offset: i64,
) -> Result<(), QueryError> {
    let (number, width) = match specifier {
        'Y' => (moment.year, 4),
        'm' => (moment.month, 2),
        'd' => (moment.day, 2),
        'H' => (moment.hour(), 2),
        'M' => (moment.minute(), 2),
        'S' => (moment.second(), 2),
        'L' => (moment.millisecond(), 3),
        'j' => (moment.day_of_year, 3),
        'w' => (moment.weekday + 1, 1),
        'u' => (moment.iso_weekday(), 1),
        'U' => (moment.week(), 2),
        'V' => (moment.iso_week().1, 2),
        'G' => (moment.iso_week().0, 4),
        'Z' => (offset, 1),
        'z' => {
            let sign = if offset < 0 { '-' } else { '+' };
            let minutes = offset.abs();
            write!(out, "{sign}{:02}{:02}", minutes / 60, minutes % 60)
                .expect("writing to a string can't fail");
            return Ok(());
        }
        'b' => {
            out.push_str(short_month(moment));
            return Ok(());
        }
        'B' => {
            out.push_str(month(moment));
            return Ok(());
        }
        '%' => {
            out.push('%');
            return Ok(());
        }
        other => {
            let message = format!("Invalid format character '%{other}' in format string");
            return Err(failure(18536, message));
        }
    };
    write!(out, "{number:0width$}").expect("writing to a string can't fail");
    Ok(())
}

/// `$dateToString`
pub(in crate::expression) fn date_to_string(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(18629), Code::Location(18534));
    let names = ["date", "format", "timezone", "onNull"];
    let [date, format, zone, on_null] = named(operator, argument, names, codes)?;
    let date = date.ok_or_else(|| failure(18628, "Missing 'date' parameter to $dateToString"))?;
    let format = parser.optional(format)?;
    if let Some(Value::String(constant)) = format.as_ref().and_then(Node::constant) {
        write_date(constant, &Moment::new(0), 0)?; // A wrong format is an error of the request.
    }
    Ok(Node::special(DateToString {
        date: parser.expression(date)?,
        format,
        zone: ZoneArgument::parse(zone, parser)?,
        on_null: parser.optional(on_null)?,
    }))
}
