//! `$dateTrunc`: the beginning of the period of some units in which a date lies.
//!
//! Periods are counted from 2000-01-01 of the zone, weeks from the first beginning of a week after
//! that. Those of hours and shorter units are of equal length, whatever the clocks do.

use frond_doc::Value;

use super::super::evaluated::Evaluated;
use super::super::failure;
use super::super::node::{Answer, Node, Operation};
use super::super::parse::{Parser, named};
use super::super::scope::Scope;
use super::calendar::{DAY_MILLIS, Moment, days_from_civil, month_of};
use super::difference::week_of;
use super::unit::{Unit, start_of_week, unit};
use super::zone::{Zone, ZoneArgument, not_a_zone};
use super::{as_millis, date};
use crate::code::Code;
use crate::error::QueryError;
use crate::number::any_type::Number;

const OPERATOR: &str = "$dateTrunc";
/// 2000-01-01 in days from 1970.
const REFERENCE_DAY: i64 = 10_957;
/// The most units of a day and longer that a period may have.
const BIN_MAX: i64 = 100_000_000_000;

fn overflowed() -> QueryError {
    failure(5_439_000, "dateTrunc overflowed")
}

/// The beginning of the period of `bin` units.
fn truncated(
    millis: i64,
    unit: Unit,
    bin: i64,
    zone: &Zone,
    first_day: i64,
) -> Result<i64, QueryError> {
    let down = |count: i64| count.checked_sub(count.rem_euclid(bin)).ok_or_else(overflowed);
    if let Some(unit) = unit.millis() {
        let reference = zone.utc(REFERENCE_DAY * DAY_MILLIS);
        let bin =
            bin.checked_mul(unit).ok_or_else(|| failure(5_439_002, "dateTrunc overflowed"))?;
        let distance = millis.checked_sub(reference).ok_or_else(overflowed)?;
        return millis
            .checked_sub(distance.rem_euclid(bin))
            .ok_or_else(|| failure(5_439_001, "dateTrunc overflowed"));
    }
    if BIN_MAX < bin {
        return Err(failure(5_439_006, "dateTrunc unsupported binSize value"));
    }
    let local = zone.local(millis);
    let day = local.div_euclid(DAY_MILLIS);
    let day = match unit.months() {
        Some(months) => {
            let moment = Moment::new(local);
            let since = (moment.year - 2000) * 12 + moment.month - 1;
            let (year, month) = month_of(2000 * 12 + down(since.div_euclid(months))? * months);
            days_from_civil(year, month, 1)
        }
        None if unit == Unit::Week => {
            // The first week that begins on the reference day or after it.
            let reference = week_of(REFERENCE_DAY + 6, first_day);
            let week = down(week_of(day, first_day) - reference)? + reference;
            week * 7 + first_day - 4
        }
        None => down(day - REFERENCE_DAY)? + REFERENCE_DAY,
    };
    Ok(zone.utc(day.checked_mul(DAY_MILLIS).ok_or_else(overflowed)?))
}

#[derive(Debug)]
struct Truncate {
    date: Node,
    unit: Node,
    bin: Option<Node>,
    zone: ZoneArgument,
    first_day: Option<Node>,
}

impl Operation for Truncate {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let value = self.date.evaluate(scope)?;
        let bin = match &self.bin {
            Some(bin) => bin.evaluate(scope)?,
            None => Evaluated::from(1),
        };
        if value.is_nullish() || bin.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let bin = bin_size(&bin)?;
        let unit_value = self.unit.evaluate(scope)?;
        if unit_value.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let unit = unit(OPERATOR, &unit_value)?;
        let first_day = match &self.first_day {
            Some(node) if unit == Unit::Week => {
                let first = node.evaluate(scope)?;
                if first.is_nullish() {
                    return Ok(Evaluated::NULL);
                }
                start_of_week(OPERATOR, &first)?
            }
            _ => 7,
        };
        let Some(zone) = self.zone.evaluate(scope, not_a_zone)? else {
            return Ok(Evaluated::NULL);
        };
        let millis = as_millis(value.or_null()).ok_or_else(|| {
            let found = value.type_name();
            failure(5_439_012, format!("{OPERATOR} requires 'date' to be a date, but got {found}"))
        })?;
        Ok(date(truncated(millis, unit, bin, &zone, first_day)?))
    }
}

fn bin_size(value: &Evaluated<'_>) -> Result<i64, QueryError> {
    let bin = Number::of(value.or_null()).and_then(Number::whole).ok_or_else(|| {
        let (text, found) = (value.text(), value.type_name());
        let message = format!(
            "{OPERATOR} requires 'binSize' to be a 64-bit integer, but got value '{text}' of type \
             {found}"
        );
        failure(5_439_017, message)
    })?;
    if bin <= 0 {
        let message =
            format!("{OPERATOR} requires 'binSize' to be greater than 0, but got value {bin}");
        return Err(failure(5_439_018, message));
    }
    Ok(bin)
}

/// `$dateTrunc`
pub(in crate::expression) fn truncate(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(5_439_007), Code::Location(5_439_008));
    let names = ["date", "unit", "binSize", "timezone", "startOfWeek"];
    let [date, unit, bin, zone, first_day] = named(operator, argument, names, codes)?;
    let missing =
        |code, name: &str| failure(code, format!("Missing '{name}' parameter to $dateTrunc"));
    let date = date.ok_or_else(|| missing(5_439_009, "date"))?;
    let unit = unit.ok_or_else(|| missing(5_439_010, "unit"))?;
    Ok(Node::special(Truncate {
        date: parser.expression(date)?,
        unit: parser.expression(unit)?,
        bin: parser.optional(bin)?,
        zone: ZoneArgument::parse(zone, parser)?,
        first_day: parser.optional(first_day)?,
    }))
}
