//! `$dateDiff`: how many boundaries of a unit lie between two dates, by the local calendar.
//!
//! Of hours and shorter units it is the boundaries that really passed: an hour that the clocks
//! skipped doesn't count, one that came twice counts twice.

use frond_doc::Value;

use super::super::evaluated::Evaluated;
use super::super::failure;
use super::super::node::{Answer, Node, Operation};
use super::super::parse::{Parser, named};
use super::super::scope::Scope;
use super::as_millis;
use super::calendar::{DAY_MILLIS, Moment};
use super::unit::{Unit, start_of_week, unit};
use super::zone::{Zone, ZoneArgument, not_a_zone};
use crate::code::Code;
use crate::error::QueryError;

const OPERATOR: &str = "$dateDiff";

/// The week in which a local day lies: 1970-01-01, day 0, was a Thursday.
pub(super) fn week_of(day: i64, first_day: i64) -> i64 {
    (day + 4 - first_day).div_euclid(7)
}

/// Counts the boundaries; `first_day` is the day on which weeks begin.
fn between(start: i64, end: i64, unit: Unit, zone: &Zone, first_day: i64) -> Option<i64> {
    let (local_start, local_end) = (zone.local(start), zone.local(end));
    if let Some(months) = unit.months() {
        let period = |local: i64| {
            let moment = Moment::new(local);
            (moment.year * 12 + moment.month - 1).div_euclid(months)
        };
        return Some(period(local_end) - period(local_start));
    }
    let (start_day, end_day) =
        (local_start.div_euclid(DAY_MILLIS), local_end.div_euclid(DAY_MILLIS));
    match unit.millis() {
        None if unit == Unit::Week => {
            Some(week_of(end_day, first_day) - week_of(start_day, first_day))
        }
        None => Some(end_day - start_day),
        Some(1) => end.checked_sub(start),
        Some(millis) => {
            let clock_change = zone.offset_millis(start) - zone.offset_millis(end);
            let passed = local_end.div_euclid(millis) - local_start.div_euclid(millis);
            Some(passed + clock_change / millis)
        }
    }
}

#[derive(Debug)]
struct Difference {
    start: Node,
    end: Node,
    unit: Node,
    zone: ZoneArgument,
    first_day: Option<Node>,
}

impl Operation for Difference {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let start = self.start.evaluate(scope)?;
        let end = self.end.evaluate(scope)?;
        let unit_value = self.unit.evaluate(scope)?;
        if start.is_nullish() || end.is_nullish() || unit_value.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let unit = unit(OPERATOR, &unit_value)?;
        let first_day = match &self.first_day {
            Some(node) if unit == Unit::Week => {
                let value = node.evaluate(scope)?;
                if value.is_nullish() {
                    return Ok(Evaluated::NULL);
                }
                start_of_week(OPERATOR, &value)?
            }
            _ => 7,
        };
        let Some(zone) = self.zone.evaluate(scope, not_a_zone)? else {
            return Ok(Evaluated::NULL);
        };
        let millis = |name: &str, value: &Evaluated<'_>| {
            as_millis(value.or_null()).ok_or_else(|| {
                let found = value.type_name();
                let message = format!("{OPERATOR} requires '{name}' to be a date, but got {found}");
                failure(5_166_307, message)
            })
        };
        let (start, end) = (millis("startDate", &start)?, millis("endDate", &end)?);
        let count = between(start, end, unit, &zone, first_day);
        Ok(count.ok_or_else(|| failure(5_166_308, "dateDiff overflowed"))?.into())
    }
}

/// `$dateDiff`
pub(in crate::expression) fn difference(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(5_166_301), Code::Location(5_166_302));
    let names = ["startDate", "endDate", "unit", "timezone", "startOfWeek"];
    let [start, end, unit, zone, first_day] = named(operator, argument, names, codes)?;
    let missing =
        |code, name: &str| failure(code, format!("Missing '{name}' parameter to $dateDiff"));
    let start = start.ok_or_else(|| missing(5_166_303, "startDate"))?;
    let end = end.ok_or_else(|| missing(5_166_304, "endDate"))?;
    let unit = unit.ok_or_else(|| missing(5_166_305, "unit"))?;
    Ok(Node::special(Difference {
        start: parser.expression(start)?,
        end: parser.expression(end)?,
        unit: parser.expression(unit)?,
        zone: ZoneArgument::parse(zone, parser)?,
        first_day: parser.optional(first_day)?,
    }))
}
