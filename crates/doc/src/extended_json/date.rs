//! Dates as text, in the form that nearly all have: `2026-01-31T23:59:59.999Z`, milliseconds only
//! if there are any, between 1970 and 9999. Days are counted as Howard Hinnant has it
//! (`chrono`-Compatible Low-Level Date Algorithms, `civil_from_days` and `days_from_civil`): years
//! that begin in March, so that the day that some years have more comes last.

const DAY_MILLIS: i64 = 86_400_000;

/// 9999-12-31T23:59:59.999Z.
const MILLIS_MAX: i64 = 253_402_300_799_999;

/// Days of 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;

/// From the first of March of the year 0 to 1970.
const EPOCH_DAYS: i64 = 719_468;

const SHORT: &[u8; 20] = b"0000-00-00T00:00:00Z";
const LONG: &[u8; 24] = b"0000-00-00T00:00:00.000Z";

/// Appends a date; `false`, and nothing is appended, if it doesn't lie between those years.
pub(super) fn append(millis: i64, out: &mut Vec<u8>) -> bool {
    if !(0..=MILLIS_MAX).contains(&millis) {
        return false;
    }
    let (year, month, day) = civil(millis / DAY_MILLIS);
    let of_day = millis % DAY_MILLIS;
    let mut text = *LONG;
    for (at, number) in [
        (0, year / 100),
        (2, year % 100),
        (5, month),
        (8, day),
        (11, of_day / 3_600_000),
        (14, of_day / 60_000 % 60),
        (17, of_day / 1_000 % 60),
        (21, of_day % 100),
    ] {
        (text[at], text[at + 1]) = (digit(number / 10), digit(number % 10));
    }
    text[20] = digit(of_day / 100 % 10);
    out.extend_from_slice(&text);
    if of_day % 1_000 == 0 {
        out.truncate(out.len() - LONG.len() + SHORT.len() - 1);
        out.push(b'Z');
    }
    true
}

/// Reads a date of that form; `None` for any other, and of what no calendar has.
pub(super) fn read(text: &[u8]) -> Option<i64> {
    let form: &[u8] = if text.len() == SHORT.len() { SHORT } else { LONG };
    let is_so = |(found, wanted): (&u8, &u8)| match wanted {
        b'0' => found.is_ascii_digit(),
        _ => found == wanted,
    };
    if text.len() != form.len() || !text.iter().zip(form).all(is_so) {
        return None;
    }
    let number = |at: usize| 10 * i64::from(text[at] - b'0') + i64::from(text[at + 1] - b'0');
    let (year, month, day) = (100 * number(0) + number(2), number(5), number(8));
    let (hour, minute, second) = (number(11), number(14), number(17));
    let millis =
        if text.len() == LONG.len() { 100 * i64::from(text[20] - b'0') + number(21) } else { 0 };
    let days = days(year, month, day);
    // What isn't there, as the 30th of February, is another day.
    let is_there = 1970 <= year && civil(days) == (year, month, day);
    if !is_there || 23 < hour || 59 < minute || 59 < second {
        return None;
    }
    Some(days * DAY_MILLIS + ((hour * 60 + minute) * 60 + second) * 1_000 + millis)
}

fn digit(number: i64) -> u8 {
    b'0' + number as u8
}

/// Year, month and day of a day since 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let (era, of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march_months = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_months + 2) / 5 + 1;
    let month = if march_months < 10 { march_months + 3 } else { march_months - 9 };
    (400 * era + year + i64::from(month <= 2), month, day)
}

/// The day since 1970.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year / 400, year % 400);
    let march_months = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * march_months + 2) / 5 + day - 1;
    era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH_DAYS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(millis: i64) -> Option<String> {
        let mut text = Vec::new();
        append(millis, &mut text).then(|| String::from_utf8(text).expect("ASCII"))
    }

    /// Each day of these years, at its ends and in between, is what another calendar has.
    #[test]
    fn all_days() {
        let epoch = jiff::civil::datetime(1970, 1, 1, 0, 0, 0, 0);
        // Behind the year 2189 days are like those before.
        let later = (80_000..=MILLIS_MAX / DAY_MILLIS).step_by(37);
        for day in (0..80_000).chain(later) {
            for of_day in [0, day * 7_919 % DAY_MILLIS, DAY_MILLIS - 1, day % 86_400 * 1_000] {
                let millis = day * DAY_MILLIS + of_day;
                let date = epoch + jiff::SignedDuration::from_millis(millis);
                let expected = match millis % 1_000 {
                    0 => format!("{date}Z"),
                    _ => format!("{date:.3}Z"),
                };
                assert_eq!(written(millis).as_ref(), Some(&expected));
                assert_eq!(read(expected.as_bytes()), Some(millis), "{expected}");
            }
        }
        for millis in [i64::MIN, -1, MILLIS_MAX + 1, i64::MAX] {
            assert_eq!(written(millis), None);
        }
    }

    #[test]
    fn other_texts_are_no_such_dates() {
        for text in [
            "",
            "2026-02-29T00:00:00Z",
            "2026-02-30T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "2026-00-10T00:00:00Z",
            "2026-13-10T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-32T00:00:00Z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T00:60:00Z",
            "2026-01-31T00:00:60Z",
            "1969-12-31T00:00:00Z",
            "2026-01-31T00:00:00z",
            "2026-01-31 00:00:00Z",
            "2026-01-31T00:00:00.00Z",
            "2026-01-31T00:00:00,000Z",
            "2026-01-31T00:00:0:Z",
            "+026-01-31T00:00:00Z",
        ] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
        assert!(read(b"2096-02-29T23:59:59.999Z").is_some());
    }
}
