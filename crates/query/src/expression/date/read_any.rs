//! Dates read from text without a format: the forms of ISO 8601, and those that people write.
//!
//! MongoDB hands such texts to a library that also understands `tomorrow noon`; we take dates with
//! a day, a month and a year in the usual orders, then perhaps a time, then perhaps a zone, and
//! refuse the rest:
//! - `2020-02-29`, `2020/2/29`, `20200229`, `2020-060`, `2020-W09-6`, `02/29/2020`, `29.02.2020`,
//!   `29-02-2020`, `29 February 2020`, `Feb 29th, 2020`, any of them after a weekday;
//! - `12:34`, `12:34:56.789`, `T123456`, `1:34 pm`;
//! - `Z`, `UTC`, `+01:00`, `+0100`, `GMT+1`, `EST`.

use super::read::{Cursor, Read, month_by_name, unreadable};
use super::zone::Zone;
use crate::error::QueryError;

/// Zones by their abbreviation, in minutes ahead of UTC.
const ABBREVIATIONS: [(&str, i64); 15] = [
    ("z", 0),
    ("utc", 0),
    ("gmt", 0),
    ("est", -300),
    ("edt", -240),
    ("cst", -360),
    ("cdt", -300),
    ("mst", -420),
    ("mdt", -360),
    ("pst", -480),
    ("pdt", -420),
    ("cet", 60),
    ("cest", 120),
    ("bst", 60),
    ("jst", 540),
];

const WEEKDAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Reads a date; without an own zone it is in `zone`.
///
/// # Errors
/// `ConversionFailure` for a text that is no date, or has a zone of its own beside `zone`.
pub(in crate::expression) fn read_any(text: &str, zone: &Zone) -> Result<i64, QueryError> {
    let mut cursor = Cursor { rest: text.trim_matches([' ', '\t', '\n']) };
    let mut read = Read::default();
    let fits = date(&mut cursor, &mut read).is_some()
        && time(&mut cursor, &mut read).is_some()
        && own_zone(&mut cursor, &mut read).is_some()
        && cursor.rest.is_empty();
    if !fits {
        let position = text.len() - cursor.rest.len();
        return Err(unreadable(text, &format!("{position}: Unexpected character")));
    }
    read.moment(text, zone)
}

fn spaces(cursor: &mut Cursor<'_>) {
    cursor.rest = cursor.rest.trim_start_matches([' ', '\t', ',']);
}

fn date(cursor: &mut Cursor<'_>, read: &mut Read) -> Option<()> {
    let before = cursor.rest;
    let word = cursor.letters().to_ascii_lowercase();
    let is_weekday = WEEKDAYS.iter().any(|day| *day == word || day.get(..3) == Some(word.as_str()));
    if is_weekday {
        cursor.takes(".");
        spaces(cursor);
    } else {
        cursor.rest = before;
    }
    if cursor.rest.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
        return month_first(cursor, read);
    }
    let digit_count = cursor.rest.bytes().take_while(u8::is_ascii_digit).count();
    match digit_count {
        4 => year_first(cursor, read),
        8 => {
            read.year = cursor.digits(4, 4);
            read.month = cursor.digits(2, 2);
            read.day = cursor.digits(2, 2);
            Some(())
        }
        1 | 2 => day_first(cursor, read),
        _ => None,
    }
}

/// `Feb 29th, 2020`
fn month_first(cursor: &mut Cursor<'_>, read: &mut Read) -> Option<()> {
    read.month = Some(month_by_name(cursor.letters())?);
    cursor.takes(".");
    spaces(cursor);
    read.day = Some(cursor.digits(1, 2)?);
    let _ = ["st", "nd", "rd", "th"].iter().any(|suffix| cursor.takes(suffix));
    spaces(cursor);
    read.year = Some(cursor.digits(4, 4)?);
    Some(())
}

/// `2020-02-29`, `2020/02/29`, `2020-060`, `2020-W09-6`
fn year_first(cursor: &mut Cursor<'_>, read: &mut Read) -> Option<()> {
    let year = cursor.digits(4, 4)?;
    let separator = if cursor.takes("/") { "/" } else { "-" };
    if separator == "-" && !cursor.takes("-") {
        return None;
    }
    if cursor.takes("W") {
        read.iso_year = Some(year);
        read.iso_week = Some(cursor.digits(2, 2)?);
        if cursor.takes("-") {
            read.iso_day = Some(cursor.digits(1, 1)?);
        }
        return Some(());
    }
    read.year = Some(year);
    if cursor.rest.bytes().take_while(u8::is_ascii_digit).count() == 3 {
        read.day_of_year = Some(cursor.digits(3, 3)?);
        return Some(());
    }
    read.month = Some(cursor.digits(1, 2)?);
    // A year and a month alone are the month's first day.
    read.day = if cursor.takes(separator) { Some(cursor.digits(1, 2)?) } else { Some(1) };
    Some(())
}

/// `02/29/2020`, `29.02.2020`, `29-02-2020`, `29 February 2020`, `29-Feb-2020`
fn day_first(cursor: &mut Cursor<'_>, read: &mut Read) -> Option<()> {
    let first = cursor.digits(1, 2)?;
    let _ = ["st", "nd", "rd", "th"].iter().any(|suffix| cursor.takes(suffix));
    if cursor.takes("/") {
        read.month = Some(first);
        read.day = Some(cursor.digits(1, 2)?);
        cursor.takes("/").then_some(())?;
        read.year = Some(cursor.digits(4, 4)?);
        return Some(());
    }
    read.day = Some(first);
    let separator = ["-", ".", " "].into_iter().find(|separator| cursor.takes(separator))?;
    spaces(cursor);
    read.month = match cursor.digits(1, 2) {
        Some(month) if separator != " " => Some(month),
        Some(_) => return None,
        None => Some(month_by_name(cursor.letters())?),
    };
    cursor.takes(separator);
    spaces(cursor);
    read.year = Some(cursor.digits(4, 4)?);
    Some(())
}

/// A time, if there is one.
fn time(cursor: &mut Cursor<'_>, read: &mut Read) -> Option<()> {
    let is_marked = cursor.takes("T") || cursor.takes("t");
    if !is_marked {
        spaces(cursor);
        if !cursor.rest.starts_with(|letter: char| letter.is_ascii_digit()) {
            return Some(());
        }
    }
    let mut hour = cursor.digits(1, 2)?;
    let has_colons = cursor.takes(":");
    match has_colons || is_marked {
        true => read.minute = Some(cursor.digits(2, 2)?),
        false => read.minute = Some(0),
    }
    if cursor.takes(":") || (!has_colons && cursor.rest.starts_with(|c: char| c.is_ascii_digit())) {
        read.second = Some(cursor.digits(2, 2)?);
        if cursor.takes(".") || cursor.takes(",") {
            read.millis = Some(cursor.fraction()?);
        }
    }
    let before = cursor.rest;
    spaces(cursor);
    let half = cursor.letters().to_ascii_lowercase();
    match half.as_str() {
        "am" if (1..=12).contains(&hour) => hour %= 12,
        "pm" if (1..=12).contains(&hour) => hour = hour % 12 + 12,
        // An hour alone is no time.
        _ if !has_colons && !is_marked => return None,
        _ => cursor.rest = before,
    }
    read.hour = Some(hour);
    Some(())
}

/// A zone, if there is one.
fn own_zone(cursor: &mut Cursor<'_>, read: &mut Read) -> Option<()> {
    spaces(cursor);
    if cursor.rest.is_empty() {
        return Some(());
    }
    let whole = cursor.rest.to_owned();
    let word = cursor.letters().to_ascii_lowercase();
    let by_name = ABBREVIATIONS.iter().find(|(name, _)| *name == word).map(|(_, minutes)| *minutes);
    let minutes = match by_name {
        Some(0) if word != "z" && !cursor.rest.is_empty() => cursor.offset()?,
        Some(minutes) => minutes,
        None if word.is_empty() => cursor.offset()?,
        None => return None,
    };
    read.zone = Some((minutes, whole));
    Some(())
}
