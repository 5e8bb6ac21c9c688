//! Dates as text: `$dateToString`, and the texts that `$toDate` reads.

use std::fmt::Write;

use frond_doc::Value;

use super::date::{Moment, millis, offset_minutes, shifted};
use super::evaluated::{Evaluated, check_bytes};
use super::failure;
use super::node::{Answer, Node, Operation};
use super::parse::{Parser, named};
use super::scope::Scope;
use crate::code::Code;
use crate::error::QueryError;

const ISO_FORMAT: &str = "%Y-%m-%dT%H:%M:%S.%LZ";

/// A date as `$toString` prints it.
pub(super) fn iso_text(millis: i64) -> String {
    let moment = Moment::new(millis);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        moment.year,
        moment.month,
        moment.day,
        moment.hour(),
        moment.minute(),
        moment.second(),
        moment.millisecond()
    )
}

/// Reads a date, with or without time and offset (UTC without).
pub(super) fn parse_text(text: &str) -> Option<i64> {
    if let Ok(timestamp) = text.parse::<jiff::Timestamp>() {
        return Some(timestamp.as_millisecond());
    }
    // `+0100` and a missing offset, which the strict reader doesn't take.
    for format in ["%Y-%m-%dT%H:%M:%S%.f%z", "%Y-%m-%d %H:%M:%S%.f%z"] {
        if let Ok(timestamp) = jiff::Timestamp::strptime(format, text) {
            return Some(timestamp.as_millisecond());
        }
    }
    let local = text.strip_suffix('Z').unwrap_or(text);
    let civil = match local.parse::<jiff::civil::DateTime>() {
        Ok(civil) => civil,
        Err(_) => local.parse::<jiff::civil::Date>().ok()?.at(0, 0, 0, 0),
    };
    let zoned = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(zoned.timestamp().as_millisecond())
}

#[derive(Debug)]
struct DateToString {
    date: Node,
    format: Option<Node>,
    zone: Option<Node>,
    on_null: Option<Node>,
}

impl Operation for DateToString {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let date = self.date.evaluate(scope)?;
        let format = self.format.as_ref().map(|format| format.evaluate(scope)).transpose()?;
        let zone = self.zone.as_ref().map(|zone| zone.evaluate(scope)).transpose()?;
        let has_null = [&format, &zone].into_iter().flatten().any(Evaluated::is_nullish);
        if date.is_nullish() || has_null {
            return self.on_null.as_ref().map_or(Ok(Evaluated::NULL), |node| node.evaluate(scope));
        }
        let offset = zone.as_ref().map_or(Ok(0), offset_minutes)?;
        let moment = Moment::new(shifted(millis(&date)?, offset));
        if !(0..=9999).contains(&moment.year) {
            let message = format!(
                "$dateToString is only defined on year 0-9999, tried to use year {}",
                moment.year
            );
            return Err(failure(18537, message));
        }
        let with_offset = "%Y-%m-%dT%H:%M:%S.%L%z";
        let text = match &format {
            Some(format) => match format.value() {
                Some(Value::String(format)) => write_date(format, &moment, offset)?,
                _ => {
                    let name = format.type_name();
                    let message =
                        format!("$dateToString requires that 'format' be a string, found: {name}");
                    return Err(failure(18533, message));
                }
            },
            None if offset == 0 => write_date(ISO_FORMAT, &moment, 0)?,
            None => write_date(with_offset, &moment, offset)?,
        };
        Evaluated::string(text)
    }
}

const MONTHS: [&str; 12] = [
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

fn write_part(
    out: &mut String,
    specifier: char,
    moment: &Moment,
    offset: i64,
) -> Result<(), QueryError> {
    let month = usize::try_from(moment.month - 1).ok().and_then(|month| MONTHS.get(month));
    let month = month.copied().unwrap_or_default();
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
            out.push_str(&month[..3.min(month.len())]);
            return Ok(());
        }
        'B' => {
            out.push_str(month);
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
pub(super) fn date_to_string(
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
        zone: parser.optional(zone)?,
        on_null: parser.optional(on_null)?,
    }))
}
