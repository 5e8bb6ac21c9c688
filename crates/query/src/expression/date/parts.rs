//! Parts of dates: `$year`, `$month`, `$dayOfMonth`, `$hour`, ..., `$dateToParts`, and
//! `$dateFromParts`, whose parts may be beyond their ranges and carry over.

use frond_doc::Value;

use super::super::evaluated::{Evaluated, Fields};
use super::super::failure;
use super::super::node::{Answer, Node, Operation};
use super::super::parse::{Parser, has_names, named};
use super::super::scope::Scope;
use super::calendar::{DAY_MILLIS, Moment, days_from_civil, days_from_iso, month_of};
use super::zone::{ZoneArgument, not_a_zone};
use super::{date, millis};
use crate::code::Code;
use crate::error::QueryError;
use crate::number::any_type::Number;

#[derive(Debug)]
struct Part {
    name: String,
    date: Node,
    zone: ZoneArgument,
}

impl Operation for Part {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let date = self.date.evaluate(scope)?;
        if date.is_nullish() && !self.zone.is_constant() {
            return Ok(Evaluated::NULL);
        }
        let moment = if date.is_nullish() { None } else { Some(millis(&date)?) };
        let zone = self.zone.evaluate(scope, |value| {
            let (name, type_name, text) = (&self.name, value.type_name(), value.text());
            let message = format!(
                "{name} requires a string for the timezone argument, \
                 but was given a {type_name} ({text})"
            );
            failure(40533, message)
        })?;
        let (Some(zone), Some(millis)) = (zone, moment) else { return Ok(Evaluated::NULL) };
        let moment = Moment::new(zone.local(millis));
        let part = match self.name.as_str() {
            "$year" => moment.year,
            "$month" => moment.month,
            "$dayOfMonth" => moment.day,
            "$dayOfWeek" => moment.weekday + 1,
            "$dayOfYear" => moment.day_of_year,
            "$hour" => moment.hour(),
            "$minute" => moment.minute(),
            "$second" => moment.second(),
            "$millisecond" => moment.millisecond(),
            "$week" => moment.week(),
            "$isoWeek" => moment.iso_week().1,
            "$isoWeekYear" => return Ok(moment.iso_week().0.into()),
            _ => moment.iso_weekday(),
        };
        Ok(i32::try_from(part).map_or(Evaluated::from(part), Evaluated::from))
    }
}

/// Parses any of the parts: of a date, or `{date, timezone}`.
pub(in crate::expression) fn part(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let (date, zone) = if has_names(argument) {
        let codes = (Code::Location(40535), Code::Location(40535));
        let [date, zone] = named(operator, argument, ["date", "timezone"], codes)?;
        let date =
            date.ok_or_else(|| failure(40539, format!("missing 'date' argument to {operator}")))?;
        (parser.expression(date)?, ZoneArgument::parse(zone, parser)?)
    } else {
        let mut nodes = parser.arguments(argument)?;
        let (Some(date), true) = (nodes.pop(), nodes.is_empty()) else {
            let message = format!("{operator} accepts exactly one argument if given an array");
            return Err(failure(40536, message));
        };
        (date, ZoneArgument::Absent)
    };
    Ok(Node::special(Part { name: operator.to_owned(), date, zone }))
}

/// `$dateToParts`
#[derive(Debug)]
struct ToParts {
    date: Node,
    zone: ZoneArgument,
    iso: Option<Node>,
}

impl Operation for ToParts {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let date = self.date.evaluate(scope)?;
        let Some(zone) = self.zone.evaluate(scope, not_a_zone)? else {
            return Ok(Evaluated::NULL);
        };
        let iso = match &self.iso {
            None => Some(false),
            Some(iso) => {
                let iso = iso.evaluate(scope)?;
                match iso.value() {
                    None | Some(Value::Null | Value::Undefined) => None,
                    Some(Value::Boolean(iso)) => Some(iso),
                    Some(_) => {
                        let name = iso.type_name();
                        let message = format!("iso8601 must evaluate to a bool, found {name}");
                        return Err(failure(40521, message));
                    }
                }
            }
        };
        let (Some(iso), false) = (iso, date.is_nullish()) else { return Ok(Evaluated::NULL) };
        let moment = Moment::new(zone.local(millis(&date)?));
        let (names, parts) = if iso {
            let (year, week) = moment.iso_week();
            (["isoWeekYear", "isoWeek", "isoDayOfWeek"], [year, week, moment.iso_weekday()])
        } else {
            (["year", "month", "day"], [moment.year, moment.month, moment.day])
        };
        let times = [
            ("hour", moment.hour()),
            ("minute", moment.minute()),
            ("second", moment.second()),
            ("millisecond", moment.millisecond()),
        ];
        let mut made = Fields::new(scope.memory());
        for (name, part) in names.into_iter().zip(parts).chain(times) {
            made.append(name, i32::try_from(part).map_or(Value::Int64(part), Value::Int32))?;
        }
        made.finish()
    }
}

/// `$dateToParts`
pub(in crate::expression) fn to_parts(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(40524), Code::Location(40520));
    let [date, zone, iso] = named(operator, argument, ["date", "timezone", "iso8601"], codes)?;
    let date = date.ok_or_else(|| failure(40522, "Missing 'date' parameter to $dateToParts"))?;
    let date = parser.expression(date)?;
    let zone = ZoneArgument::parse(zone, parser)?;
    Ok(Node::special(ToParts { date, zone, iso: parser.optional(iso)? }))
}

/// A part of `$dateFromParts`: its name, what it is where it is absent, and whether it has bounds.
struct PartRule {
    name: &'static str,
    default: i64,
    is_bounded: bool,
}

const fn rule(name: &'static str, default: i64, is_bounded: bool) -> PartRule {
    PartRule { name, default, is_bounded }
}

const CIVIL: [PartRule; 3] =
    [rule("year", 1970, false), rule("month", 1, true), rule("day", 1, true)];
const ISO: [PartRule; 3] =
    [rule("isoWeekYear", 1970, false), rule("isoWeek", 1, true), rule("isoDayOfWeek", 1, true)];
const TIMES: [PartRule; 4] = [
    rule("hour", 0, true),
    rule("minute", 0, true),
    rule("second", 0, false),
    rule("millisecond", 0, false),
];

/// `$dateFromParts`
#[derive(Debug)]
struct FromParts {
    is_iso: bool,
    /// As [`CIVIL`] or [`ISO`], then as [`TIMES`].
    parts: [Option<Node>; 7],
    zone: ZoneArgument,
}

impl FromParts {
    /// The number that a part is; `None` where it is null.
    fn number<'a>(
        &'a self,
        position: usize,
        rule: &PartRule,
        scope: &Scope<'a>,
    ) -> Result<Option<i64>, QueryError> {
        let Some(node) = self.parts.get(position).and_then(Option::as_ref) else {
            return Ok(Some(rule.default));
        };
        let value = node.evaluate(scope)?;
        if value.is_nullish() {
            return Ok(None);
        }
        let name = rule.name;
        let whole =
            value.value().and_then(Number::of).and_then(Number::whole).ok_or_else(|| {
                let (found, text) = (value.type_name(), value.text());
                let message = format!(
                    "'{name}' must evaluate to an integer, found {found} with value {text}"
                );
                failure(40515, message)
            })?;
        if rule.is_bounded && i16::try_from(whole).is_err() {
            let message = format!(
                "'{name}' must evaluate to a value in the range [-32768, 32767]; value {whole} \
                 is not in range"
            );
            return Err(failure(31034, message));
        }
        Ok(Some(whole))
    }
}

impl Operation for FromParts {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let rules = if self.is_iso { &ISO } else { &CIVIL };
        let mut numbers = [0; 7];
        // In the order in which errors and nulls are found: times, zone, date.
        for (rule, position) in TIMES.iter().zip(3..) {
            match self.number(position, rule, scope)? {
                Some(number) => numbers[position] = number,
                None => return Ok(Evaluated::NULL),
            }
        }
        let Some(zone) = self.zone.evaluate(scope, not_a_zone)? else {
            return Ok(Evaluated::NULL);
        };
        for (position, rule) in rules.iter().enumerate() {
            match self.number(position, rule, scope)? {
                Some(number) => numbers[position] = number,
                None => return Ok(Evaluated::NULL),
            }
        }
        let [year, second, third, hours, minutes, seconds, millis] = numbers;
        if !(1..=9999).contains(&year) {
            let (name, code) = if self.is_iso { ("isoWeekYear", 31095) } else { ("year", 40523) };
            let message = format!(
                "'{name}' must evaluate to an integer in the range 1 to 9999, found {year}"
            );
            return Err(failure(code, message));
        }
        let days = if self.is_iso {
            days_from_iso(year, second, third)
        } else {
            let (year, month) = month_of(year * 12 + second - 1);
            days_from_civil(year, month, 1) + third - 1
        };
        let local = i128::from(days) * i128::from(DAY_MILLIS)
            + i128::from(hours) * 3_600_000
            + i128::from(minutes) * 60_000
            + i128::from(seconds) * 1000
            + i128::from(millis);
        let local = i64::try_from(local)
            .map_err(|_| QueryError::new(Code::Overflow, "$dateFromParts overflowed"))?;
        Ok(date(zone.utc(local)))
    }
}

/// `$dateFromParts`
pub(in crate::expression) fn from_parts(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(40519), Code::Location(40518));
    let names = [
        "year",
        "month",
        "day",
        "isoWeekYear",
        "isoWeek",
        "isoDayOfWeek",
        "hour",
        "minute",
        "second",
        "millisecond",
        "timezone",
    ];
    let [year, month, day, iso_year, iso_week, iso_day, times @ .., zone] =
        named(operator, argument, names, codes)?;
    let (is_iso, parts) = match (year, iso_year) {
        (None, None) => {
            let message = "$dateFromParts requires either 'year' or 'isoWeekYear' to be present";
            return Err(failure(40516, message));
        }
        (Some(_), _) if iso_year.or(iso_week).or(iso_day).is_some() => {
            let message = "$dateFromParts does not allow mixing natural dates with ISO dates";
            return Err(failure(40489, message));
        }
        (None, _) if month.or(day).is_some() => {
            let message = "$dateFromParts does not allow mixing ISO dates with natural dates";
            return Err(failure(40525, message));
        }
        (Some(_), _) => (false, [year, month, day]),
        (None, _) => (true, [iso_year, iso_week, iso_day]),
    };
    let mut nodes: [Option<Node>; 7] = Default::default();
    for (node, value) in nodes.iter_mut().zip(parts.into_iter().chain(times)) {
        *node = parser.optional(value)?;
    }
    let zone = ZoneArgument::parse(zone, parser)?;
    Ok(Node::special(FromParts { is_iso, parts: nodes, zone }))
}
