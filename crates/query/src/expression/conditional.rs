//! `$cond`, `$ifNull`, `$switch`: only the branch that is taken is evaluated.

use frond_doc::Value;

use super::constants::Guard;
use super::evaluated::Evaluated;
use super::failure;
use super::node::{Answer, Node, Operation};
use super::parse::{Parser, named};
use super::scope::Scope;
use crate::code::Code;
use crate::error::QueryError;

/// Branches, the first true one of which is taken.
#[derive(Debug)]
struct Branches {
    branches: Vec<(Node, Node)>,
    otherwise: Option<Node>,
}

impl Operation for Branches {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        scope.whole(self.carry(scope)?)
    }

    fn carry<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        for (case, then) in &self.branches {
            if case.evaluate(scope)?.is_truthy() {
                return then.carry(scope);
            }
        }
        match &self.otherwise {
            Some(otherwise) => otherwise.carry(scope),
            None if self.branches.iter().all(|(case, _)| case.is_constant()) => Err(all_false()),
            None => Err(failure(
                40066,
                "$switch could not find a matching branch for an input, \
                 and no default was specified.",
            )),
        }
    }
}

/// `$cond`, as `[if, then, else]` or with names.
pub(super) fn cond(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let [case, then, otherwise] = if matches!(argument, Value::Document(_)) {
        let codes = (Code::Location(17083), Code::Location(17083));
        let [case, then, otherwise] = named(operator, argument, ["if", "then", "else"], codes)?;
        let missing = |code, name| failure(code, format!("Missing '{name}' parameter to $cond"));
        [
            parser.expression(case.ok_or_else(|| missing(17080, "if"))?)?,
            parser.expression(then.ok_or_else(|| missing(17081, "then"))?)?,
            parser.expression(otherwise.ok_or_else(|| missing(17082, "else"))?)?,
        ]
    } else {
        parser.exactly(operator, argument)?
    };
    Ok(Node::special(Branches { branches: vec![(case, then)], otherwise: Some(otherwise) }))
}

/// `$switch`
pub(super) fn switch(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(40060), Code::Location(40067));
    let [branches, default] = named(operator, argument, ["branches", "default"], codes)?;
    let mut parsed = Vec::new();
    if let Some(branches) = branches {
        let Value::Array(branches) = branches else {
            let message = format!(
                "$switch expected an array for 'branches', found: {}",
                branches.element_type().alias()
            );
            return Err(failure(40061, message));
        };
        let before = parser.guard_count();
        for branch in branches.iter() {
            parsed.push(parse_branch(branch, parser)?);
        }
        parser.unguard(before);
    }
    if parsed.is_empty() {
        return Err(failure(40068, "$switch requires at least one branch."));
    }
    let is_never = |(case, _): &(Node, Node)| case.constant().is_some_and(|case| !case.is_truthy());
    if default.is_none() && parsed.iter().all(is_never) {
        return Err(all_false());
    }
    Ok(Node::special(Branches { branches: parsed, otherwise: parser.optional(default)? }))
}

fn all_false() -> QueryError {
    let message = "Cannot execute a switch statement where all the cases evaluate to false \
                   without a default";
    failure(40069, message)
}

/// Parses a branch. Those that follow stand behind its case, if that is constant.
fn parse_branch(branch: Value<'_>, parser: &mut Parser) -> Result<(Node, Node), QueryError> {
    let Value::Document(_) = branch else {
        let message = format!(
            "$switch expected each branch to be an object, found: {}",
            branch.element_type().alias()
        );
        return Err(failure(40062, message));
    };
    let codes = (Code::Location(40062), Code::Location(40063));
    let [case, then] = named("$switch", branch, ["case", "then"], codes)?;
    let case = case
        .ok_or_else(|| failure(40064, "$switch requires each branch have a 'case' expression"))?;
    let then = then
        .ok_or_else(|| failure(40065, "$switch requires each branch have a 'then' expression."))?;
    let case = parser.expression(case)?;
    let Some(guard) = Guard::of(&case) else {
        return Ok((case, parser.expression(then)?));
    };
    let before = parser.guard_count();
    parser.guard(guard.clone());
    let then = parser.expression(then)?;
    parser.unguard(before);
    parser.guard(guard.negated());
    Ok((case, then))
}

/// `$ifNull`: the first argument that isn't null, or the last one.
#[derive(Debug)]
struct FirstNonNull(Vec<Node>);

impl Operation for FirstNonNull {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        scope.whole(self.carry(scope)?)
    }

    fn carry<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let mut last = Evaluated::NULL;
        for argument in &self.0 {
            last = argument.carry(scope)?;
            if !last.is_nullish() {
                break;
            }
        }
        Ok(last)
    }
}

/// `$ifNull`
pub(super) fn if_null(
    _: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let arguments = parser.arguments(argument)?;
    if arguments.len() < 2 {
        let message = format!("$ifNull needs at least two arguments, had: {}", arguments.len());
        return Err(failure(1_257_300, message));
    }
    Ok(Node::special(FirstNonNull(arguments)))
}
