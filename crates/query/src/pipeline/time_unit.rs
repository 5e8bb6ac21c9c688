//! Units of time, as `$densify` and windows count in them, in UTC.

use frond_doc::Value;
use jiff::{Span, Timestamp, tz::TimeZone};

use super::parse::failed_to_parse;
use crate::error::QueryError;

/// A unit of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TimeUnit {
    /// Months have no fixed length: 1, 3 (a quarter) or 12 of them.
    Months(i64),
    Millis(i64),
}

impl TimeUnit {
    /// Reads the name of a unit.
    pub(super) fn parse(value: Value<'_>) -> Result<TimeUnit, QueryError> {
        let Value::String(name) = value else {
            let found = value.element_type().alias();
            return Err(failed_to_parse(format!("unit must be a string, but found {found}")));
        };
        Ok(match name {
            "year" => TimeUnit::Months(12),
            "quarter" => TimeUnit::Months(3),
            "month" => TimeUnit::Months(1),
            "week" => TimeUnit::Millis(604_800_000),
            "day" => TimeUnit::Millis(86_400_000),
            "hour" => TimeUnit::Millis(3_600_000),
            "minute" => TimeUnit::Millis(60_000),
            "second" => TimeUnit::Millis(1_000),
            "millisecond" => TimeUnit::Millis(1),
            _ => return Err(failed_to_parse(format!("unknown time unit value: {name}"))),
        })
    }

    /// Returns how many milliseconds it has, if that is always the same.
    pub(super) fn fixed_millis(self) -> Option<i64> {
        match self {
            TimeUnit::Millis(millis) => Some(millis),
            TimeUnit::Months(_) => None,
        }
    }

    /// The date so many units after `date` (milliseconds since 1970), the day brought into the
    /// month; `None` where there is no such date.
    pub(super) fn add(self, date: i64, count: i64) -> Option<i64> {
        match self {
            TimeUnit::Millis(millis) => date.checked_add(millis.checked_mul(count)?),
            TimeUnit::Months(months) => {
                let span = Span::new().try_months(months.checked_mul(count)?).ok()?;
                let moment = Timestamp::from_millisecond(date).ok()?.to_zoned(TimeZone::UTC);
                Some(moment.checked_add(span).ok()?.timestamp().as_millisecond())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_end_where_they_end() {
        let january = 1_706_659_200_000; // 2024-01-31
        let month = TimeUnit::parse(Value::String("month")).expect("a unit");
        assert_eq!(month.add(january, 1), Some(1_709_164_800_000)); // 2024-02-29
        assert_eq!(month.add(january, 2), Some(1_711_843_200_000)); // 2024-03-31
        let day = TimeUnit::parse(Value::String("day")).expect("a unit");
        assert_eq!(day.add(0, -1), Some(-86_400_000));
        assert_eq!(day.add(i64::MAX, 1), None);
        assert!(TimeUnit::parse(Value::String("fortnight")).is_err());
    }
}
