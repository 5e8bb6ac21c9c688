//! Dates as people write them, in UTC.
//!
//! | text | is |
//! |---|---|
//! | `2026-11-20` | the day's beginning |
//! | `2026-11-20T10:00:03Z`, `…03.250Z`, `…03+01:00` | that second, or that moment |
//! | `now`, `yesterday` | yesterday is 24 hours ago, as with git |
//! | `today`, `tuesday`, `last tuesday` | that day's beginning; a day of the week is before today |
//! | `3 days ago`, `2.weeks.ago`, `an hour ago`, `last week` | seconds to years |
//!
//! Months and years are the calendar's: a month before the 31st of March is the end of February.

use jiff::civil::{Date, DateTime, Weekday};
use jiff::{Span, Timestamp, ToSpan};

/// The longest text that is read: the longest date is shorter.
const TEXT_BYTES_MAX: usize = 64;
/// The greatest number of units that can be counted back: more than there are seconds until the
/// year 1.
const COUNT_MAX: i64 = 1 << 36;
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// A date, as exact as it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrittenDate {
    /// Its first millisecond, since 1970.
    pub first_millis: i64,
    /// Its last: another one where a second was written and no fraction of it.
    pub last_millis: i64,
    /// Whether a day was written: its beginning is before anything that its first second has.
    pub is_day: bool,
}

impl WrittenDate {
    /// All of a second, counted since 1970.
    pub fn of_second(second: u32) -> WrittenDate {
        let first_millis = i64::from(second) * 1_000;
        WrittenDate { first_millis, last_millis: first_millis + 999, is_day: false }
    }

    /// Reads a date; words count from `now_millis`. `None` if it is none.
    pub fn read(text: &str, now_millis: i64) -> Option<WrittenDate> {
        if TEXT_BYTES_MAX < text.len() {
            return None;
        }
        let exact =
            |millis, is_day| WrittenDate { first_millis: millis, last_millis: millis, is_day };
        let now = Timestamp::from_millisecond(now_millis).ok()?;
        let now = jiff::tz::Offset::UTC.to_datetime(now);
        let words = words_of(text);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if words == ["now"] {
            return Some(exact(now_millis, false));
        }
        // A date parses from a moment, too, and would lose its time.
        let day = text.parse::<Date>().ok().filter(|_| !text.contains([':', 'T', 't', ' ']));
        if let Some(day) = day.or_else(|| named_day(&words, now.date())) {
            return millis_of(day.at(0, 0, 0, 0)).map(|millis| exact(millis, true));
        }
        if let Some(back) = time_ago(&words) {
            return millis_of(now.checked_sub(back).ok()?).map(|millis| exact(millis, false));
        }
        // A `Timestamp` ends two days before the year 9999 does.
        let of_utc = text.strip_suffix(['Z', 'z']).and_then(|utc| utc.parse::<DateTime>().ok());
        let millis = match of_utc {
            Some(utc) => millis_of(utc)?,
            None => text.parse::<Timestamp>().ok()?.as_millisecond(),
        };
        let is_second = !text.contains(['.', ',']);
        Some(WrittenDate {
            first_millis: millis,
            last_millis: if is_second { millis.saturating_add(999) } else { millis },
            is_day: false,
        })
    }
}

fn millis_of(utc: DateTime) -> Option<i64> {
    i64::try_from(utc.duration_since(EPOCH).as_millis()).ok()
}

/// The words of a text; what stands between them doesn't matter.
fn words_of(text: &str) -> Vec<String> {
    text.split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect()
}

/// `today`, or the last day before it that has a name.
fn named_day(words: &[&str], today: Date) -> Option<Date> {
    match words {
        ["today"] => Some(today),
        [day] | ["last", day] => today.nth_weekday(-1, weekday(day)?).ok(),
        _ => None,
    }
}

/// The time that lies between now and what the words say.
fn time_ago(words: &[&str]) -> Option<Span> {
    match words {
        ["yesterday"] => Some(24.hours()),
        ["last", unit] => units(1, unit),
        [count, unit, "ago"] => units(count_of(count)?, unit),
        _ => None,
    }
}

/// A day of the week: its name, or the first three letters of it.
fn weekday(word: &str) -> Option<Weekday> {
    const DAYS: [(&str, Weekday); 7] = [
        ("monday", Weekday::Monday),
        ("tuesday", Weekday::Tuesday),
        ("wednesday", Weekday::Wednesday),
        ("thursday", Weekday::Thursday),
        ("friday", Weekday::Friday),
        ("saturday", Weekday::Saturday),
        ("sunday", Weekday::Sunday),
    ];
    let found = DAYS.into_iter().find(|(name, _)| *name == word || &name[..3] == word);
    found.map(|(_, day)| day)
}

fn count_of(word: &str) -> Option<i64> {
    match word {
        "a" | "an" | "one" => Some(1),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok(),
        _ => None,
    }
}

fn units(count: i64, unit: &str) -> Option<Span> {
    if COUNT_MAX < count {
        return None;
    }
    let span = Span::new();
    let span = match unit.strip_suffix('s').unwrap_or(unit) {
        "second" => span.try_seconds(count),
        "minute" => span.try_minutes(count),
        "hour" => span.try_hours(count),
        "day" => span.try_days(count),
        "week" => span.try_weeks(count),
        "month" => span.try_months(count),
        "year" => span.try_years(count),
        _ => return None,
    };
    span.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tuesday, the 31st of March 2026, 12:00:00.
    const NOW: i64 = 1_774_958_400_000;
    const HOUR: i64 = 3_600_000;

    #[test]
    fn dates() {
        let last = 253_402_300_799_000;
        for (text, first, last) in [
            ("1970-01-02", 86_400_000, 86_400_000),
            ("1970-01-01T00:00:01Z", 1_000, 1_999),
            ("1970-01-01T00:00:01.250Z", 1_250, 1_250),
            ("9999-12-31T23:59:59Z", last, last + 999),
            ("9999-12-31", last + 1_000 - 24 * HOUR, last + 1_000 - 24 * HOUR),
            ("1970-01-01T01:00:00+01:00", 0, 999),
            ("now", NOW, NOW),
            ("yesterday", NOW - 24 * HOUR, NOW - 24 * HOUR),
            ("Yesterday", NOW - 24 * HOUR, NOW - 24 * HOUR),
            ("3 hours ago", NOW - 3 * HOUR, NOW - 3 * HOUR),
            ("1.hour.ago", NOW - HOUR, NOW - HOUR),
            ("2_weeks_ago", NOW - 14 * 24 * HOUR, NOW - 14 * 24 * HOUR),
            ("0 seconds ago", NOW, NOW),
            ("1 month ago", NOW - 31 * 24 * HOUR, NOW - 31 * 24 * HOUR),
            ("1 year ago", NOW - 365 * 24 * HOUR, NOW - 365 * 24 * HOUR),
            ("an hour ago", NOW - HOUR, NOW - HOUR),
            ("a week ago", NOW - 7 * 24 * HOUR, NOW - 7 * 24 * HOUR),
            ("last week", NOW - 7 * 24 * HOUR, NOW - 7 * 24 * HOUR),
            ("today", NOW - 12 * HOUR, NOW - 12 * HOUR),
            ("monday", NOW - 36 * HOUR, NOW - 36 * HOUR),
            ("last mon", NOW - 36 * HOUR, NOW - 36 * HOUR),
            ("Tuesday", NOW - (12 + 7 * 24) * HOUR, NOW - (12 + 7 * 24) * HOUR),
            ("wed", NOW - (12 + 6 * 24) * HOUR, NOW - (12 + 6 * 24) * HOUR),
        ] {
            let date = WrittenDate::read(text, NOW);
            let date = date.map(|date| (date.first_millis, date.last_millis));
            assert_eq!(date, Some((first, last)), "{text}");
        }
    }

    /// A span that ends at midnight is no day.
    #[test]
    fn days() {
        let midnight = NOW - 12 * HOUR;
        for (text, is_day) in [
            ("2026-03-31", true),
            ("today", true),
            ("last friday", true),
            ("2026-03-31T00:00:00Z", false),
            ("yesterday", false),
            ("a day ago", false),
            ("now", false),
        ] {
            let date = WrittenDate::read(text, midnight);
            assert_eq!(date.map(|date| date.is_day), Some(is_day), "{text}");
        }
    }

    #[test]
    fn strings_that_are_no_dates_are_refused() {
        let long = "1".repeat(65);
        for text in [
            "",
            "1",
            "-1",
            "tomorrow",
            "ago",
            "days ago",
            "-3 days",
            "3 days",
            "3 parsecs ago",
            "last parsec",
            "last",
            "mo",
            "next monday",
            "99999999999999999999 days ago",
            "99999999 years ago",
            "2026-13-01",
            "2026-11-20T10:00:03",
            &long,
        ] {
            assert_eq!(WrittenDate::read(text, NOW), None, "{text}");
        }
    }
}
