//! `$dateAdd`, `$dateSubtract`.
//!
//! Days and longer units are added to the local time, so that the clock shows the same hour after
//! the clocks were changed; a month that is too short gives its last day. Hours and shorter units
//! are added to the moment.

use frond_doc::Value;

use super::super::evaluated::Evaluated;
use super::super::failure;
use super::super::node::{Answer, Node, Operation};
use super::super::parse::Parser;
use super::super::scope::Scope;
use super::calendar::{DAY_MILLIS, Moment, days_from_civil, days_in_month, month_of};
use super::unit::Unit;
use super::zone::{Zone, ZoneArgument, not_a_zone};
use super::{as_millis, date};
use crate::code::Code;
use crate::error::QueryError;
use crate::number::any_type::Number;

/// As many days as 64 bits of milliseconds hold, and one more.
const DAYS_MAX: i64 = 213_503_982_335;

/// The bound of an amount.
fn amount_max(unit: Unit) -> i64 {
    let years = DAYS_MAX / 365 + 1;
    match unit {
        Unit::Year => years,
        Unit::Quarter => years * 4,
        Unit::Month => years * 12,
        Unit::Week => DAYS_MAX / 7,
        Unit::Day => DAYS_MAX,
        Unit::Hour => DAYS_MAX * 24,
        Unit::Minute => DAYS_MAX * 24 * 60,
        Unit::Second => DAYS_MAX * 24 * 60 * 60,
        Unit::Millisecond => i64::MAX,
    }
}

/// A date so many units later.
pub(super) fn shifted(
    millis: i64,
    unit: Unit,
    amount: i64,
    zone: &Zone,
) -> Result<i64, QueryError> {
    let bound = amount_max(unit);
    if unit != Unit::Millisecond && !(-bound < amount && amount < bound) {
        let name = unit.name();
        let message = format!("invalid dateAdd 'amount' parameter value: {amount} {name}");
        return Err(failure(5_976_500, message));
    }
    let overflowed = || failure(5_166_406, "dateAdd overflowed");
    if let Some(unit) = unit.millis() {
        let sum = i128::from(millis) + i128::from(unit) * i128::from(amount);
        return i64::try_from(sum).map_err(|_| overflowed());
    }
    let local = zone.local(millis);
    let days = match unit.months() {
        None => {
            let per_unit = if unit == Unit::Week { 7 } else { 1 };
            local.div_euclid(DAY_MILLIS) + amount * per_unit
        }
        Some(months) => {
            let moment = Moment::new(local);
            let (year, month) = month_of(moment.year * 12 + moment.month - 1 + amount * months);
            let day = moment.day.min(days_in_month(year, month));
            days_from_civil(year, month, day)
        }
    };
    let sum = i128::from(days) * i128::from(DAY_MILLIS) + i128::from(local.rem_euclid(DAY_MILLIS));
    Ok(zone.utc(i64::try_from(sum).map_err(|_| overflowed())?))
}

#[derive(Debug)]
struct Shift {
    operator: String,
    start: Node,
    unit: Node,
    amount: Node,
    zone: ZoneArgument,
    subtracts: bool,
}

impl Operation for Shift {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let operator = &self.operator;
        let start = self.start.evaluate(scope)?;
        // A constant that is no unit is an error, whatever the date is.
        if start.is_nullish() && self.unit.constant().is_none() {
            return Ok(Evaluated::NULL);
        }
        let unit = self.unit.evaluate(scope)?;
        let unit = match unit.value() {
            None | Some(Value::Null | Value::Undefined) => return Ok(Evaluated::NULL),
            Some(Value::String(name)) => Unit::of(name).ok_or_else(|| {
                let message = format!("unknown time unit value: {name}");
                QueryError::new(Code::FailedToParse, message)
            })?,
            Some(_) => {
                let message = format!("{operator} expects string defining the time unit");
                return Err(failure(5_166_404, message));
            }
        };
        let amount = self.amount.evaluate(scope)?;
        if start.is_nullish() || amount.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let Some(zone) = self.zone.evaluate(scope, not_a_zone)? else {
            return Ok(Evaluated::NULL);
        };
        let amount = Number::of(amount.or_null()).and_then(Number::whole).ok_or_else(|| {
            failure(5_166_405, format!("{operator} expects integer amount of time units"))
        })?;
        let millis = as_millis(start.or_null()).ok_or_else(|| {
            failure(5_166_403, format!("{operator} requires startDate to be convertible to a date"))
        })?;
        let amount = if self.subtracts {
            amount.checked_neg().ok_or_else(|| {
                let name = unit.name();
                let message =
                    format!("invalid {operator} 'amount' parameter value: {amount} {name}");
                failure(6_045_000, message)
            })?
        } else {
            amount
        };
        Ok(date(shifted(millis, unit, amount, &zone)?))
    }
}

fn parse(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
    subtracts: bool,
) -> Result<Node, QueryError> {
    let Value::Document(document) = argument else {
        let message = format!("{operator} expects an object as its argument");
        return Err(failure(5_166_400, message));
    };
    let names = ["startDate", "unit", "amount", "timezone"];
    if let Some((name, _)) = document.iter().find(|(name, _)| !names.contains(name)) {
        let message = format!(
            "Unrecognized argument to {operator}: {name}. Expected arguments are startDate, unit, \
             amount, and optionally timezone."
        );
        return Err(failure(5_166_401, message));
    }
    let (Some(start), Some(unit), Some(amount)) =
        (document.get("startDate"), document.get("unit"), document.get("amount"))
    else {
        let message = format!("{operator} requires startDate, unit, and amount to be present");
        return Err(failure(5_166_402, message));
    };
    Ok(Node::special(Shift {
        operator: operator.to_owned(),
        start: parser.expression(start)?,
        unit: parser.expression(unit)?,
        amount: parser.expression(amount)?,
        zone: ZoneArgument::parse(document.get("timezone"), parser)?,
        subtracts,
    }))
}

/// `$dateAdd`
pub(in crate::expression) fn add(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    parse(operator, argument, parser, false)
}

/// `$dateSubtract`
pub(in crate::expression) fn subtract(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    parse(operator, argument, parser, true)
}
