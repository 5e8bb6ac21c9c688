//! `$firstN`, `$lastN`, `$maxN`, `$minN`, `$median`, `$percentile` over an array: accumulators that
//! are expressions too.

use frond_doc::Value;

use super::Expression;
use super::evaluated::{Elements, elements};
use super::node::{Answer, Node, Operation};
use super::number::Number;
use super::parse::Parser;
use super::scope::Scope;
use crate::accumulator::{
    Extreme, Sorted, count_from, parameter_names, percentiles_from, percentiles_node,
};
use crate::error::QueryError;

#[derive(Clone, Copy, Debug)]
enum Kind {
    First,
    Last,
    Extreme(Extreme),
}

#[derive(Debug)]
struct Several {
    kind: Kind,
    count: Node,
    input: Node,
}

impl Operation for Several {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let count = count_from(&self.count.evaluate(scope)?)?;
        let input = self.input.evaluate(scope)?;
        let array = elements(&input, 5_788_200, |_| "Input must be an array".to_owned())?;
        match self.kind {
            Kind::First => Elements::collect(array.iter().take(count)),
            Kind::Last => {
                let skipped = array.elements().count().saturating_sub(count);
                Elements::collect(array.iter().skip(skipped))
            }
            Kind::Extreme(extreme) => {
                Elements::collect(extreme.several(array.iter(), count, scope.collation()))
            }
        }
    }
}

fn several(
    kind: Kind,
    code: i32,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let (count, input) = parameter_names(code, argument)?;
    let (count, input) = (parser.expression(count)?, parser.expression(input)?);
    Ok(Node::special(Several { kind, count, input }))
}

/// `$firstN`
pub(super) fn first(_: &str, argument: Value<'_>, parser: &mut Parser) -> Result<Node, QueryError> {
    several(Kind::First, 5_787_801, argument, parser)
}

/// `$lastN`
pub(super) fn last(_: &str, argument: Value<'_>, parser: &mut Parser) -> Result<Node, QueryError> {
    several(Kind::Last, 5_787_801, argument, parser)
}

/// `$maxN`
pub(super) fn max(_: &str, argument: Value<'_>, parser: &mut Parser) -> Result<Node, QueryError> {
    several(Kind::Extreme(Extreme::Max), 5_787_900, argument, parser)
}

/// `$minN`
pub(super) fn min(_: &str, argument: Value<'_>, parser: &mut Parser) -> Result<Node, QueryError> {
    several(Kind::Extreme(Extreme::Min), 5_787_900, argument, parser)
}

/// `$percentile`, or `$median` without percentiles.
#[derive(Debug)]
struct Percentile {
    input: Node,
    percentiles: Option<Expression>,
}

impl Operation for Percentile {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let percentiles = match &self.percentiles {
            Some(percentiles) => Some(percentiles_from(&percentiles.evaluate_in(scope)?)?),
            None => None,
        };
        let input = self.input.evaluate(scope)?;
        let numbers = match (input.value(), input.value().and_then(Number::of)) {
            (Some(Value::Array(array)), _) => Sorted::of(array.iter()),
            // All percentiles of one number are this number, NaN too.
            (_, Some(number)) => Sorted::of_one(number.double()),
            _ => Sorted::of(std::iter::empty()),
        };
        numbers.at(percentiles.as_deref())
    }
}

/// `$median`, `$percentile`
pub(super) fn percentile(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let code = if operator == "$median" { 7_436_201 } else { 7_436_200 };
    let (input, percentiles) = percentiles_node(code, operator, argument, parser)?;
    Ok(Node::special(Percentile { input: parser.expression(input)?, percentiles }))
}
