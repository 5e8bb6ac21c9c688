//! `$regexMatch`, `$regexFind`, `$regexFindAll`.
//!
//! A pattern that stands in the expression is compiled once; one that is computed, at each use. A
//! pattern that exceeds its limit on some string is an error, so that it can't hold a server up.

use std::sync::Arc;

use frond_doc::Value;

use super::evaluated::{Elements, Evaluated, Fields};
use super::failure;
use super::node::{Answer, Node, Operation};
use super::parse::{Parser, named};
use super::scope::Scope;
use crate::code::Code;
use crate::error::QueryError;
use crate::memory::{RequestMemory, bytes_of};
use crate::regex::{Compiled, Failure, Groups};

/// The bytes that `$regexFindAll` may find in all.
const FOUND_BYTES_MAX: usize = 64 << 20;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Match,
    Find,
    FindAll,
}

#[derive(Debug)]
struct Search {
    operator: String,
    kind: Kind,
    input: Node,
    regex: Node,
    options: Option<Node>,
    /// The pattern, where it is constant.
    compiled: Option<Arc<Compiled>>,
}

impl Operation for Search {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let input = self.input.evaluate(scope)?;
        if !input.is_nullish() && !matches!(input.value(), Some(Value::String(_))) {
            let message = format!("{} needs 'input' to be of type string", self.operator);
            return Err(failure(51104, message));
        }
        let computed;
        let _charge;
        let regex = match &self.compiled {
            Some(regex) => Some(regex),
            None => {
                let regex = self.regex.evaluate(scope)?;
                let options = self.options.as_ref().map(|node| node.evaluate(scope)).transpose()?;
                scope.memory().check()?;
                computed = compile(&self.operator, &regex, options.as_ref())?;
                if let Some(compiled) = &computed {
                    _charge = compiled.charge(scope.memory())?;
                }
                computed.as_ref()
            }
        };
        match (regex, input.value()) {
            (Some(regex), Some(Value::String(text))) => self.search(regex, text, scope.memory()),
            _ => match self.kind {
                Kind::Match => Ok(false.into()),
                Kind::Find => Ok(Evaluated::NULL),
                Kind::FindAll => Elements::new(scope.memory()).finish(),
            },
        }
    }
}

impl Search {
    fn search(&self, regex: &Compiled, text: &str, memory: &RequestMemory) -> Answer<'static> {
        let failed = |failure: Failure| match failure {
            Failure::Request(error) => error,
            Failure::Limit(reason) => failure_in(&self.operator, &reason),
        };
        let mut points = CodePoints::new(text);
        match self.kind {
            Kind::Match => Ok(regex.is_match(text, memory).map_err(failed)?.into()),
            Kind::Find => match regex.find(text, 0, memory).map_err(failed)? {
                None => Ok(Evaluated::NULL),
                Some(groups) => self.found(text, &groups, &mut points, memory),
            },
            Kind::FindAll => {
                let mut all = Elements::new(memory);
                let (mut from, mut bytes) = (0, 0);
                while let Some(groups) = regex.find(text, from, memory).map_err(failed)? {
                    let found = self.found(text, &groups, &mut points, memory)?;
                    bytes += found.value().map_or(0, bytes_of);
                    if FOUND_BYTES_MAX < bytes {
                        let message = format!(
                            "{}: the size of buffer to store output exceeded the 64MB limit",
                            self.operator
                        );
                        return Err(failure(51151, message));
                    }
                    all.push_evaluated(&found)?;
                    from = after(text, &groups);
                    // At the end of a text nothing more is found, not even an empty string.
                    if text.len() <= from {
                        break;
                    }
                }
                all.finish()
            }
        }
    }

    /// `match`, `idx` and `captures`.
    fn found(
        &self,
        text: &str,
        groups: &Groups,
        points: &mut CodePoints<'_>,
        memory: &RequestMemory,
    ) -> Answer<'static> {
        // `\C` may have ended one within a letter.
        let part = |(from, to): (usize, usize)| {
            text.get(from..to).ok_or_else(|| failure_in(&self.operator, "bad offset value"))
        };
        let mut made = Fields::new(memory);
        let whole = groups.first().copied().flatten().unwrap_or_default();
        made.append("match", Value::String(part(whole)?))?;
        made.append("idx", Value::Int32(points.up_to(whole.0)))?;
        made.begin_array("captures");
        for group in groups.iter().skip(1) {
            made.push(match group {
                Some(place) => Value::String(part(*place)?),
                None => Value::Null,
            })?;
        }
        made.end();
        made.finish()
    }
}

fn failure_in(operator: &str, reason: &str) -> QueryError {
    let message = format!(
        "Error occurred while executing the regular expression in {operator}. Result code: {reason}"
    );
    failure(51156, message)
}

/// Returns where the search goes on: behind what was found, and a letter on where that was empty.
fn after(text: &str, groups: &Groups) -> usize {
    let (from, to) = groups.first().copied().flatten().unwrap_or((text.len(), text.len()));
    let letter = text.get(from..).and_then(|rest| rest.chars().next());
    match to <= from {
        true => from + letter.map_or(1, char::len_utf8),
        false => to,
    }
}

/// Counts code points up to ascending offsets, each part of the text once.
struct CodePoints<'t> {
    text: &'t str,
    offset: usize,
    count: i32,
}

impl<'t> CodePoints<'t> {
    fn new(text: &'t str) -> CodePoints<'t> {
        CodePoints { text, offset: 0, count: 0 }
    }

    fn up_to(&mut self, offset: usize) -> i32 {
        let part = self.text.get(self.offset..offset).unwrap_or_default();
        self.count =
            self.count.saturating_add(i32::try_from(part.chars().count()).unwrap_or(i32::MAX));
        self.offset = offset;
        self.count
    }
}

/// Compiles a pattern; `None` if it is null.
fn compile(
    operator: &str,
    regex: &Evaluated<'_>,
    options: Option<&Evaluated<'_>>,
) -> Result<Option<Arc<Compiled>>, QueryError> {
    let found = match regex.value() {
        None | Some(Value::Null | Value::Undefined) => None,
        Some(Value::String(pattern)) => Some((pattern, "")),
        Some(Value::Regex(regex)) => Some((regex.pattern, regex.options)),
        Some(_) => {
            let message = format!("{operator} needs 'regex' to be of type string or regex");
            return Err(failure(51105, message));
        }
    };
    let options = match options.and_then(Evaluated::value) {
        None | Some(Value::Null | Value::Undefined) => None,
        Some(Value::String(options)) => Some(options),
        Some(_) => {
            let message = format!("{operator} needs 'options' to be of type string");
            return Err(failure(51106, message));
        }
    };
    let Some((pattern, own_options)) = found else { return Ok(None) };
    if options.is_some() && !own_options.is_empty() {
        let message = format!(
            "{operator}: found regex option(s) specified in both 'regex' and 'option' fields"
        );
        return Err(failure(51107, message));
    }
    let flags = options.unwrap_or(own_options);
    for (text, code, what) in [(pattern, 51109, ""), (flags, 51110, " options")] {
        if text.contains('\0') {
            let message = format!(
                "{operator}: regular expression{what} cannot contain an embedded null byte"
            );
            return Err(failure(code, message));
        }
    }
    if let Some(flag) = flags.chars().find(|flag| !"imsxu".contains(*flag)) {
        let message = format!("{operator} invalid flag in regex options: {flag}");
        return Err(failure(51108, message));
    }
    let invalid = |reason: &str| failure(51111, format!("Invalid Regex in {operator}: {reason}"));
    crate::regex::compile(pattern, flags).map(Some).map_err(|reason| invalid(&reason))
}

fn parse(
    kind: Kind,
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(51103), Code::Location(31024));
    let [input, regex, options] = named(operator, argument, ["input", "regex", "options"], codes)?;
    let missing = |code, name| failure(code, format!("{operator} requires '{name}' parameter"));
    let input = parser.expression(input.ok_or_else(|| missing(31022, "input"))?)?;
    let regex = parser.expression(regex.ok_or_else(|| missing(31023, "regex"))?)?;
    let options = parser.optional(options)?;
    let compiled = match (regex.constant(), options.as_ref().map(Node::constant)) {
        (Some(regex), None) => compile(operator, &Evaluated::Borrowed(regex), None)?,
        (Some(regex), Some(Some(options))) => {
            let options = Evaluated::Borrowed(options);
            compile(operator, &Evaluated::Borrowed(regex), Some(&options))?
        }
        _ => None,
    };
    let operator = operator.to_owned();
    Ok(Node::special(Search { operator, kind, input, regex, options, compiled }))
}

/// `$regexMatch`
pub(super) fn matches(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    parse(Kind::Match, operator, argument, parser)
}

/// `$regexFind`
pub(super) fn find(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    parse(Kind::Find, operator, argument, parser)
}

/// `$regexFindAll`
pub(super) fn find_all(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    parse(Kind::FindAll, operator, argument, parser)
}
