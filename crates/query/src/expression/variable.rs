//! `$let`, `$literal`, `$expr`, `$rand`.

use std::sync::atomic::{AtomicU64, Ordering};

use frond_doc::Value;

use super::failure;
use super::node::{Answer, Node, Operation};
use super::parse::{Parser, named};
use super::scope::{Binding, Scope, check_name};
use crate::code::Code;
use crate::error::QueryError;

/// `$let`
#[derive(Debug)]
struct Let {
    names: Vec<String>,
    /// As many as names.
    values: Vec<Node>,
    body: Node,
}

impl Operation for Let {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        scope.whole(self.carry(scope)?)
    }

    fn carry<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        // All values are of the scope outside: `$let` doesn't see its own variables.
        let mut values = Vec::with_capacity(self.values.len());
        for node in &self.values {
            values.push(node.carry(scope)?);
        }
        let binding = Binding { names: &self.names, values: &values, outer: scope.bindings };
        self.body.carry(&scope.bind(&binding))?.detach(scope.memory())
    }
}

/// `$let`
pub(super) fn let_in(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(16874), Code::Location(16875));
    let [vars, body] = named(operator, argument, ["vars", "in"], codes)?;
    let vars = vars.ok_or_else(|| failure(16876, "Missing 'vars' parameter to $let"))?;
    let body = body.ok_or_else(|| failure(16877, "Missing 'in' parameter to $let"))?;
    let Value::Document(vars) = vars else {
        let message = "invalid parameter: expected an object (vars)";
        return Err(failure(10065, message));
    };
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for (name, value) in vars.iter() {
        check_name(name)?;
        names.push(name.to_owned());
        values.push(parser.expression(value)?);
    }
    let body = parser.with_bound(&names, |parser| parser.expression(body))?;
    Ok(Node::special(Let { names, values, body }))
}

/// `$literal`
pub(super) fn literal(_: &str, argument: Value<'_>, _: &mut Parser) -> Result<Node, QueryError> {
    Ok(Node::of_constant(argument))
}

/// `$expr`: an expression in parentheses.
pub(super) fn parentheses(
    _: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    parser.expression(argument)
}

/// `$rand`
#[derive(Debug)]
struct Rand;

impl Operation for Rand {
    fn evaluate<'a>(&'a self, _: &Scope<'a>) -> Answer<'a> {
        Ok(random_share().into())
    }
}

/// `$rand`
pub(super) fn rand(_: &str, argument: Value<'_>, _: &mut Parser) -> Result<Node, QueryError> {
    let is_empty = match argument {
        Value::Document(document) => document.is_empty(),
        Value::Array(array) => array.is_empty(),
        _ => return Err(failure(10065, "invalid parameter: expected an object ($rand)")),
    };
    if !is_empty {
        return Err(failure(3_040_501, "$rand does not currently accept arguments"));
    }
    Ok(Node::special(Rand))
}

/// A random number from 0 to less than 1.
pub(crate) fn random_share() -> f64 {
    // 53 bits: as many as a double holds.
    (random() >> 11) as f64 / (1_u64 << 53) as f64
}

/// The next of a process's sequence of random numbers, for `$rand` and `$sample`: good enough to
/// choose by, no secret. The process's start is the hash map's random seed.
#[expect(clippy::disallowed_methods, reason = "a query has no `Chance`, and nothing is stored")]
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    use std::sync::OnceLock;
    static STATE: OnceLock<AtomicU64> = OnceLock::new();
    let state = STATE.get_or_init(|| AtomicU64::new(RandomState::new().hash_one(0_u64)));
    // SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
    let mut bits = state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
