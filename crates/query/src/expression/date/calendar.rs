//! The calendar: dates as years, months, weeks, and back.
//!
//! Dates are counted by the proleptic Gregorian calendar over the whole range of 64 bits of
//! milliseconds (algorithms: Howard Hinnant, "chrono-compatible low-level date algorithms", 2013).

/// The length of a day.
pub(in crate::expression) const DAY_MILLIS: i64 = 86_400_000;

/// A moment in the calendar.
#[derive(Clone, Copy, Debug)]
pub(in crate::expression) struct Moment {
    pub(in crate::expression) year: i64,
    /// The month from 1.
    pub(in crate::expression) month: i64,
    /// The day of the month, from 1.
    pub(in crate::expression) day: i64,
    /// The day of the year, from 1.
    pub(in crate::expression) day_of_year: i64,
    /// The weekday from 0 for Sunday.
    pub(in crate::expression) weekday: i64,
    /// Within the day.
    pub(in crate::expression) millis: i64,
}

impl Moment {
    /// The moment so many milliseconds from 1970.
    pub(in crate::expression) fn new(millis: i64) -> Moment {
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

    /// Returns the weekday from 1 for Monday.
    pub(in crate::expression) fn iso_weekday(&self) -> i64 {
        if self.weekday == 0 { 7 } else { self.weekday }
    }

    /// The week of ISO 8601 and its year.
    pub(in crate::expression) fn iso_week(&self) -> (i64, i64) {
        let week = (self.day_of_year - self.iso_weekday() + 10) / 7;
        match week {
            0 => (self.year - 1, iso_weeks(self.year - 1)),
            53 if iso_weeks(self.year) == 52 => (self.year + 1, 1),
            week => (self.year, week),
        }
    }

    /// The week of the year, which begins with a Sunday; what is before the first one is week 0.
    pub(in crate::expression) fn week(&self) -> i64 {
        (self.day_of_year + 6 - self.weekday) / 7
    }

    pub(in crate::expression) fn hour(&self) -> i64 {
        self.millis / 3_600_000
    }

    pub(in crate::expression) fn minute(&self) -> i64 {
        self.millis / 60_000 % 60
    }

    pub(in crate::expression) fn second(&self) -> i64 {
        self.millis / 1000 % 60
    }

    pub(in crate::expression) fn millisecond(&self) -> i64 {
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

/// Days from 1970 to a date; `month` is between 1 and 12, `day` may be any number.
pub(in crate::expression) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = (month + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Returns how many days a month has.
pub(in crate::expression) fn days_in_month(year: i64, month: i64) -> i64 {
    let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days_from_civil(next_year, next, 1) - days_from_civil(year, month, 1)
}

/// The month so many months from January of the year 0: (year, month from 1).
pub(in crate::expression) fn month_of(months: i64) -> (i64, i64) {
    (months.div_euclid(12), months.rem_euclid(12) + 1)
}

/// Days from 1970 to a day of an ISO week; `week` and `weekday` may be any numbers.
pub(in crate::expression) fn days_from_iso(year: i64, week: i64, weekday: i64) -> i64 {
    // January 4th is always in the first week.
    let fourth = days_from_civil(year, 1, 4);
    let monday = fourth - (fourth + 3).rem_euclid(7);
    monday + (week - 1) * 7 + (weekday - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_both_ways() {
        for days in (-800_000..800_000).step_by(13) {
            let moment = Moment::new(days * DAY_MILLIS);
            assert_eq!(days_from_civil(moment.year, moment.month, moment.day), days);
            let (year, week) = moment.iso_week();
            assert_eq!(days_from_iso(year, week, moment.iso_weekday()), days);
            assert!(moment.day <= days_in_month(moment.year, moment.month));
        }
    }

    #[test]
    fn months_carry_into_years() {
        assert_eq!(month_of(2020 * 12 + 13), (2021, 2));
        assert_eq!(month_of(-1), (-1, 12));
        assert_eq!(days_in_month(2024, 2), 29);
        assert_eq!(days_in_month(1900, 2), 28);
    }
}
