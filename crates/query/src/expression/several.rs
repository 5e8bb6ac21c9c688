//! `$firstN`, `$lastN`, `$maxN`, `$minN`, `$median`, `$percentile` over an array: accumulators that
//! are expressions too.

use frond_doc::Value;

use super::Expression;
use super::evaluated::{Elements, elements};
use super::extreme::Extreme;
use super::node::{Answer, Node, Operation};
use super::parameters::{count_from, parameter_names, percentiles_from, percentiles_node};
use super::parse::Parser;
use super::percentile::Sorted;
use super::scope::Scope;
use crate::error::QueryError;
use crate::number::any_type::Number;

/// The memory of an element in a list that is sorted, and in the one that it is merged into.
const VALUE_BYTES: usize = 2 * size_of::<Value<'_>>();

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
        let memory = scope.memory();
        memory.read(input.bytes())?;
        match self.kind {
            Kind::First => Elements::collect(array.iter().take(count), memory),
            Kind::Last => {
                let skipped = array.elements().count().saturating_sub(count);
                Elements::collect(array.iter().skip(skipped), memory)
            }
            Kind::Extreme(extreme) => {
                let _charge = memory.charge_of(array.elements().count() * VALUE_BYTES)?;
                let chosen = extreme.several(array.iter(), count, scope.variables)?;
                Elements::collect(chosen, memory)
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
        scope.memory().read(input.bytes())?;
        let count = input
            .value()
            .and_then(|value| value.as_array())
            .map_or(0, |array| array.elements().count());
        let _charge = scope.memory().charge_of(count * size_of::<f64>() * 2)?;
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
