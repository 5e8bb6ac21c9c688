//! Dates: their parts, their text, and counting with them.
//!
//! Reading order: `calendar` (years, months, weeks), `zone` (time zones), `unit` (units of time),
//! then the operators: `parts` (`$year`, `$dateToParts`, `$dateFromParts`, ...), `add` (`$dateAdd`,
//! `$dateSubtract`), `difference` (`$dateDiff`), `truncate` (`$dateTrunc`), `format`
//! (`$dateToString`), `read` and `read_any` (`$dateFromString`, and the texts that `$toDate`
//! takes), `timestamp` (`$tsSecond`, `$tsIncrement`).

mod add;
mod calendar;
mod difference;
mod format;
mod parts;
mod read;
mod read_any;
mod timestamp;
mod truncate;
mod unit;
mod zone;

use frond_doc::{ObjectId, Value};

use super::evaluated::Evaluated;
use super::failure;
use crate::error::QueryError;

pub(super) use add::{add, subtract};
pub(super) use difference::difference;
pub(super) use format::{date_to_string, short_text, utc_text};
pub(super) use parts::{from_parts, part, to_parts};
pub(super) use read::date_from_string;
pub(super) use read_any::read_any;
pub(super) use timestamp::{increment, second};
pub(super) use truncate::truncate;
pub(super) use zone::Zone;

/// Returns when an ObjectId was made: its seconds have a sign, so that half of them lie before
/// 1970.
pub(super) fn millis_of(id: ObjectId) -> i64 {
    let [a, b, c, d, ..] = id.0;
    i64::from(i32::from_be_bytes([a, b, c, d])) * 1000
}

/// The milliseconds of what counts as a date; `None` for other types.
pub(super) fn as_millis(value: Value<'_>) -> Option<i64> {
    match value {
        Value::DateTime(millis) => Some(millis),
        Value::Timestamp(timestamp) => Some((timestamp.0 >> 32) as i64 * 1000),
        Value::ObjectId(id) => Some(millis_of(id)),
        _ => None,
    }
}

/// The milliseconds of what counts as a date.
fn millis(value: &Evaluated<'_>) -> Result<i64, QueryError> {
    as_millis(value.or_null()).ok_or_else(|| {
        let name = value.type_name();
        failure(16006, format!("can't convert from BSON type {name} to Date"))
    })
}

fn date(millis: i64) -> Evaluated<'static> {
    Evaluated::Borrowed(Value::DateTime(millis))
}
