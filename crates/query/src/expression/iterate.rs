//! `$map`, `$filter`, `$reduce`, `$sortArray`: an expression for each element.

use frond_doc::{Document, Value};

use super::check_depth;
use super::evaluated::{Elements, Evaluated, elements};
use super::failure;
use super::node::{Answer, Node, Operation};
use super::parse::{Parser, named, required};
use super::scope::{Binding, Scope, check_name};
use crate::code::Code;
use crate::error::QueryError;
use crate::memory::sort_by;
use crate::number::any_type::as_i32;

/// The name under which an element is bound: `as`, or `this`.
fn element_name(name: Option<Value<'_>>, operator: &str) -> Result<String, QueryError> {
    let name = match name {
        None => "this",
        Some(Value::String(name)) => name,
        Some(_) => {
            let message = format!("{operator} requires 'as' to be a string");
            return Err(QueryError::new(Code::FailedToParse, message));
        }
    };
    check_name(name)?;
    Ok(name.to_owned())
}

/// A binding of one variable.
fn one<'a>(name: &'a String, value: &'a Evaluated<'a>, scope: &Scope<'a>) -> Binding<'a> {
    let (names, values) = (std::slice::from_ref(name), std::slice::from_ref(value));
    Binding { names, values, outer: scope.bindings }
}

/// `$map`
#[derive(Debug)]
struct Map {
    input: Node,
    name: String,
    body: Node,
}

impl Operation for Map {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let input = scope.variables.opened(self.input.carry(scope)?, false)?;
        if input.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let array =
            elements(&input, 16883, |name| format!("input to $map must be an array not {name}"))?;
        let mut mapped = Elements::new(scope.memory());
        for element in array.iter() {
            let value = Evaluated::Borrowed(element);
            let binding = one(&self.name, &value, scope);
            mapped.push_evaluated(&self.body.evaluate(&scope.bind(&binding))?)?;
        }
        mapped.finish()
    }
}

/// `$map`
pub(super) fn map(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(16878), Code::Location(16879));
    let [input, name, body] = named(operator, argument, ["input", "as", "in"], codes)?;
    let input = required(operator, "input", input, Code::Location(16880))?;
    let body = required(operator, "in", body, Code::Location(16882))?;
    let (input, name) = (parser.expression(input)?, element_name(name, operator)?);
    let body = parser.with_bound(std::slice::from_ref(&name), |parser| parser.expression(body))?;
    Ok(Node::special(Map { input, name, body }))
}

/// `$filter`
#[derive(Debug)]
struct Filter {
    input: Node,
    name: String,
    condition: Node,
    limit: Option<Node>,
}

impl Operation for Filter {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let input = self.input.evaluate(scope)?;
        if input.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let array = elements(&input, 28651, |name| {
            format!("input to $filter must be an array not {name}")
        })?;
        let mut left = match &self.limit {
            // For an empty array the limit isn't evaluated.
            Some(limit) if !array.is_empty() => checked_limit(&limit.evaluate(scope)?)?,
            _ => usize::MAX,
        };
        let mut kept = Elements::new(scope.memory());
        for element in array.iter() {
            scope.memory().work(1)?;
            if left == 0 {
                break;
            }
            let value = Evaluated::Borrowed(element);
            let binding = one(&self.name, &value, scope);
            if self.condition.evaluate(&scope.bind(&binding))?.is_truthy() {
                kept.push(element)?;
                left -= 1;
            }
        }
        kept.finish()
    }
}

fn checked_limit(limit: &Evaluated<'_>) -> Result<usize, QueryError> {
    if limit.is_nullish() {
        return Ok(usize::MAX);
    }
    let whole = limit.value().and_then(as_i32).ok_or_else(|| {
        let text = limit.text();
        let message =
            format!("$filter: limit must be represented as a 32-bit integral value: {text}");
        failure(327_391, message)
    })?;
    usize::try_from(whole)
        .ok()
        .filter(|limit| 0 < *limit)
        .ok_or_else(|| failure(327_392, format!("$filter: limit must be greater than 0: {whole}")))
}

/// `$filter`
pub(super) fn filter(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(28646), Code::Location(28647));
    let names = ["input", "as", "cond", "limit"];
    let [input, name, condition, limit] = named(operator, argument, names, codes)?;
    let input = required(operator, "input", input, Code::Location(28648))?;
    let condition = required(operator, "cond", condition, Code::Location(28650))?;
    let (input, name) = (parser.expression(input)?, element_name(name, operator)?);
    let limit = parser.optional(limit)?;
    let condition =
        parser.with_bound(std::slice::from_ref(&name), |parser| parser.expression(condition))?;
    Ok(Node::special(Filter { input, name, condition, limit }))
}

/// `$reduce`
#[derive(Debug)]
struct Reduce {
    input: Node,
    initial: Node,
    body: Node,
    /// `this` and `value`.
    names: [String; 2],
}

impl Operation for Reduce {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let input = self.input.evaluate(scope)?;
        if input.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let array = elements(&input, 40080, |name| {
            format!("$reduce requires that 'input' be an array, found: {name}")
        })?;
        let mut value = self.initial.evaluate(scope)?.detach(scope.memory())?;
        for element in array.iter() {
            scope.memory().work(1)?;
            let values = [Evaluated::Borrowed(element), value];
            let binding = Binding { names: &self.names, values: &values, outer: scope.bindings };
            let next = self.body.evaluate(&scope.bind(&binding))?.detach(scope.memory())?;
            // Each round may wrap the value in one level more.
            check_depth(next.or_null(), 2)?;
            value = next;
        }
        Ok(value)
    }
}

/// `$reduce`
pub(super) fn reduce(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(40075), Code::Location(40076));
    let [input, initial, body] = named(operator, argument, ["input", "initialValue", "in"], codes)?;
    let input = required(operator, "input", input, Code::Location(40077))?;
    let initial = required(operator, "initialValue", initial, Code::Location(40078))?;
    let body = required(operator, "in", body, Code::Location(40079))?;
    let (input, initial) = (parser.expression(input)?, parser.expression(initial)?);
    let names = ["this".to_owned(), "value".to_owned()];
    let body = parser.with_bound(&names, |parser| parser.expression(body))?;
    Ok(Node::special(Reduce { input, initial, body, names }))
}

/// The order of `$sortArray`.
#[derive(Debug)]
enum SortBy {
    /// Paths, each with whether it descends.
    Fields(Vec<(String, bool)>),
    Whole {
        descending: bool,
    },
}

/// `$sortArray`
#[derive(Debug)]
struct SortArray {
    input: Node,
    by: SortBy,
}

impl Operation for SortArray {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let input = self.input.evaluate(scope)?;
        if input.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let array = elements(&input, 2_942_504, |name| {
            format!("The input argument to $sortArray must be an array, but was of type: {name}")
        })?;
        let (by, memory) = (scope.collation(), scope.memory());
        let count = array.elements().count();
        // The list, and the one that its parts are merged into.
        let mut charge = memory.charge_of(count * size_of::<Value<'_>>() * 2)?;
        let mut values: Vec<Value<'_>> = array.iter().collect();
        match &self.by {
            SortBy::Whole { descending: false } => {
                sort_by(&mut values, memory, |a, b| by.compare(*a, *b))?;
            }
            SortBy::Whole { descending: true } => {
                sort_by(&mut values, memory, |a, b| by.compare(*b, *a))?;
            }
            SortBy::Fields(fields) => {
                // All keys, one behind the other, and where each ends.
                let mut keys = Vec::new();
                let mut keyed = Vec::with_capacity(count);
                for value in values {
                    let start = keys.len();
                    for (path, descending) in fields {
                        by.append_key(&mut keys, at_path(value, path), *descending);
                    }
                    keyed.push((start, keys.len(), value));
                    memory.work(1 + (keys.len() - start) / 16)?;
                    let lists = count * size_of::<(usize, usize, Value<'_>)>() * 2;
                    charge.cover(lists + keys.len() * 2)?;
                }
                sort_by(&mut keyed, memory, |a, b| keys[a.0..a.1].cmp(&keys[b.0..b.1]))?;
                return Elements::collect(keyed.into_iter().map(|(_, _, value)| value), memory);
            }
        }
        Elements::collect(values, memory)
    }
}

/// Returns an element's value at a path, an array as a whole: null where there is none, as in an
/// element that is no document. In an array on the way a number is a position.
fn at_path<'v>(element: Value<'v>, path: &str) -> Value<'v> {
    let mut value = element;
    for (depth, part) in path.split('.').enumerate() {
        let next = match value {
            Value::Document(document) => document.get(part),
            Value::Array(array) if 0 < depth => array.as_document().get(part),
            _ => None,
        };
        let Some(next) = next else { return Value::Null };
        value = next;
    }
    value
}

/// The fields of a `sortBy` that is a document.
fn sort_fields(pattern: Document<'_>) -> Result<Vec<(String, bool)>, QueryError> {
    let refuse = |why: &str| Err(failure(2_942_505, format!("$sortArray: {why}")));
    let mut fields = Vec::new();
    for (path, order) in pattern.iter() {
        if path.split('.').any(str::is_empty) {
            return refuse("the sort field holds an empty path component");
        }
        match order.is_number().then(|| as_i32(order)).flatten() {
            Some(1) => fields.push((path.to_owned(), false)),
            Some(-1) => fields.push((path.to_owned(), true)),
            _ => return refuse("the sort element value must be either 1 or -1"),
        }
    }
    if fields.is_empty() {
        return refuse("the sort pattern is empty when it should be a set of fields");
    }
    Ok(fields)
}

/// `$sortArray`
pub(super) fn sort_array(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(2_942_500), Code::Location(2_942_501));
    let [input, by] = named(operator, argument, ["input", "sortBy"], codes)?;
    let input = required(operator, "input", input, Code::Location(2_942_502))?;
    let by = required(operator, "sortBy", by, Code::Location(2_942_503))?;
    let by = match by {
        Value::Document(pattern) => SortBy::Fields(sort_fields(pattern)?),
        other => match as_i32(other) {
            Some(1) => SortBy::Whole { descending: false },
            Some(-1) => SortBy::Whole { descending: true },
            _ => {
                let code = if other.is_number() { 2_942_506 } else { 2_942_507 };
                let message = "$sortArray sortBy must be 1, -1 or an object of fields";
                return Err(failure(code, message));
            }
        },
    };
    Ok(Node::special(SortArray { input: parser.expression(input)?, by }))
}
