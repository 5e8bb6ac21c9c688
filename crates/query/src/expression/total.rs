//! `$sum`, `$avg`, `$min`, `$max`, `$stdDevPop`, `$stdDevSamp` over the arguments of an expression.
//!
//! A single argument that is an array stands for its elements; of several, each stands for itself.
//! The arithmetic is that of `$group`'s accumulators.

use frond_doc::Value;

use super::evaluated::Evaluated;
use super::node::{Answer, Node, Operation};
use super::parse::Parser;
use super::scope::Scope;
use crate::error::QueryError;
use crate::number::any_type::{Number, Sum};
use crate::number::spread::Spread;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Sum,
    Avg,
    Min,
    Max,
    StdDevPop,
    StdDevSamp,
}

#[derive(Debug)]
struct Total {
    kind: Kind,
    arguments: Vec<Node>,
}

impl Operation for Total {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        if let [only] = self.arguments.as_slice() {
            let value = only.evaluate(scope)?;
            if let Some(Value::Array(array)) = value.value() {
                scope.memory().read(value.bytes())?;
                return self.kind.of(array.iter(), scope);
            }
            return self.kind.of(value.value().into_iter(), scope);
        }
        let mut values = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            values.push(argument.evaluate(scope)?);
        }
        self.kind.of(values.iter().filter_map(Evaluated::value), scope)
    }
}

impl Kind {
    fn of<'v>(self, values: impl Iterator<Item = Value<'v>>, scope: &Scope<'_>) -> Answer<'static> {
        let by = scope.collation();
        let not_null = |value: &Value<'_>| !matches!(value, Value::Null | Value::Undefined);
        let extreme = match self {
            Kind::Sum | Kind::Avg => {
                let mut sum = Sum::default();
                values.filter_map(Number::of).for_each(|number| sum.add(number));
                let number = if matches!(self, Kind::Sum) { Some(sum.total()) } else { sum.mean() };
                return Ok(number.map_or(Evaluated::NULL, Evaluated::from));
            }
            Kind::StdDevPop | Kind::StdDevSamp => {
                let mut spread = Spread::default();
                values.filter_map(Number::of).for_each(|number| spread.add(number.double()));
                let is_sample = matches!(self, Kind::StdDevSamp);
                return Ok(spread.deviation(is_sample).map_or(Evaluated::NULL, Evaluated::from));
            }
            Kind::Min => values.filter(not_null).min_by(|a, b| by.compare(*a, *b)),
            // The first of those that are equal, though they may be of several types.
            Kind::Max => values
                .filter(not_null)
                .reduce(|best, next| if by.compare(next, best).is_gt() { next } else { best }),
        };
        extreme.map_or(Ok(Evaluated::NULL), |value| Evaluated::copy(value, scope.memory()))
    }
}

fn total(kind: Kind, argument: Value<'_>, parser: &mut Parser) -> Result<Node, QueryError> {
    Ok(Node::special(Total { kind, arguments: parser.arguments(argument)? }))
}

/// `$sum`
pub(super) fn sum(_: &str, argument: Value<'_>, parser: &mut Parser) -> Result<Node, QueryError> {
    total(Kind::Sum, argument, parser)
}

/// `$avg`
pub(super) fn avg(_: &str, argument: Value<'_>, parser: &mut Parser) -> Result<Node, QueryError> {
    total(Kind::Avg, argument, parser)
}

/// `$min`
pub(super) fn min(_: &str, argument: Value<'_>, parser: &mut Parser) -> Result<Node, QueryError> {
    total(Kind::Min, argument, parser)
}

/// `$max`
pub(super) fn max(_: &str, argument: Value<'_>, parser: &mut Parser) -> Result<Node, QueryError> {
    total(Kind::Max, argument, parser)
}

/// `$stdDevPop`
pub(super) fn std_dev_pop(
    _: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    total(Kind::StdDevPop, argument, parser)
}

/// `$stdDevSamp`
pub(super) fn std_dev_samp(
    _: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    total(Kind::StdDevSamp, argument, parser)
}
