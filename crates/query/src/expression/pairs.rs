//! Arrays and documents turned into each other, and arrays side by side: `$arrayToObject`,
//! `$objectToArray`, `$zip`.

use frond_doc::{Array, Value};

use super::evaluated::{Elements, Evaluated, elements};
use super::failure;
use super::node::{Answer, Node, Operation};
use super::object::Merged;
use super::parse::{Parser, named};
use super::scope::{Scope, Variables};
use crate::code::Code;
use crate::error::QueryError;
use crate::memory::bytes_of;

/// `$objectToArray`
pub(super) fn object_to_array<'a>(argument: Evaluated<'a>, variables: &Variables) -> Answer<'a> {
    if argument.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(Value::Document(document)) = argument.value() else {
        let name = argument.type_name();
        let message = format!("$objectToArray requires a document input, found: {name}");
        return Err(failure(40390, message));
    };
    let mut pairs = Elements::new(variables.memory());
    for (name, value) in document.iter() {
        pairs.push_document(name.len() + bytes_of(value), |pair| {
            pair.append("k", Value::String(name)).append("v", value);
        })?;
    }
    pairs.finish()
}

/// `$arrayToObject`
pub(super) fn array_to_object<'a>(argument: Evaluated<'a>, variables: &Variables) -> Answer<'a> {
    if argument.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let array = elements(&argument, 40386, |name| {
        format!("$arrayToObject requires an array input, found: {name}")
    })?;
    let mut fields = Merged::new(variables.memory());
    // The first element decides for all.
    let has_arrays = match array.iter().next() {
        None | Some(Value::Document(_)) => false,
        Some(Value::Array(_)) => true,
        Some(other) => {
            let name = other.element_type().alias();
            let message = format!("Unrecognised input type format for $arrayToObject: {name}");
            return Err(failure(40398, message));
        }
    };
    for element in array.iter() {
        let (name, value) = match element {
            Value::Array(pair) if has_arrays => pair_of_array(pair)?,
            Value::Document(pair) if !has_arrays => pair_of_document(pair)?,
            other => {
                let name = other.element_type().alias();
                let message = format!(
                    "$arrayToObject requires a consistent input format. Elements must all be \
                     arrays or all be objects. Now found: {name}"
                );
                return Err(failure(if has_arrays { 40396 } else { 40391 }, message));
            }
        };
        if name.contains('\0') {
            let message = "Key field cannot contain an embedded null byte";
            return Err(failure(if has_arrays { 4_940_400 } else { 4_940_401 }, message));
        }
        fields.set(name, value)?;
    }
    fields.finish()
}

fn pair_of_array(pair: Array<'_>) -> Result<(&str, Value<'_>), QueryError> {
    let mut parts = pair.iter();
    let (Some(name), Some(value), None) = (parts.next(), parts.next(), parts.next()) else {
        let count = pair.elements().count();
        let message = format!(
            "$arrayToObject requires an array of size 2 arrays,found array of size: {count}"
        );
        return Err(failure(40397, message));
    };
    Ok((key(name, 40395)?, value))
}

fn pair_of_document(pair: frond_doc::Document<'_>) -> Result<(&str, Value<'_>), QueryError> {
    let count = pair.iter().count();
    if count != 2 {
        let message = format!(
            "$arrayToObject requires an object keys of 'k' and 'v'. \
             Found incorrect number of keys:{count}"
        );
        return Err(failure(40392, message));
    }
    let (Some(name), Some(value)) = (pair.get("k"), pair.get("v")) else {
        let message = "$arrayToObject requires an object with keys 'k' and 'v'. \
                       Missing either or both keys";
        return Err(failure(40393, message));
    };
    Ok((key(name, 40394)?, value))
}

fn key(name: Value<'_>, code: i32) -> Result<&str, QueryError> {
    name.as_str().ok_or_else(|| {
        let found = name.element_type().alias();
        let message = format!(
            "$arrayToObject requires an array of key-value pairs, where the key must be of type \
             string. Found key type: {found}"
        );
        failure(code, message)
    })
}

/// `$zip`
#[derive(Debug)]
struct Zip {
    inputs: Vec<Node>,
    defaults: Vec<Node>,
    longest: bool,
}

impl Operation for Zip {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            let input = input.evaluate(scope)?;
            if input.is_nullish() {
                return Ok(Evaluated::NULL);
            }
            elements(&input, 34468, |name| {
                format!("$zip found a non-array expression in input: {name}")
            })?;
            inputs.push(input);
        }
        let arrays = || inputs.iter().filter_map(|input| input.or_null().as_array());
        let least = arrays().map(|array| array.elements().count()).min().unwrap_or(0);
        let most = arrays().map(|array| array.elements().count()).max().unwrap_or(0);
        let mut columns: Vec<_> = arrays().map(|array| array.iter()).collect();
        let mut defaults = Vec::with_capacity(self.defaults.len());
        // A default that fills no gap isn't evaluated.
        for default in self.defaults.iter().filter(|_| least < most) {
            defaults.push(default.evaluate(scope)?);
        }
        let mut zipped = Elements::new(scope.memory());
        for _ in 0..if self.longest { most } else { least } {
            let mut tuple = Elements::new(scope.memory());
            for (position, column) in columns.iter_mut().enumerate() {
                let default = || defaults.get(position).map_or(Value::Null, Evaluated::or_null);
                tuple.push(column.next().unwrap_or_else(default))?;
            }
            zipped.push_evaluated(&tuple.finish()?)?;
        }
        zipped.finish()
    }
}

/// `$zip`
pub(super) fn zip(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(34460), Code::Location(34464));
    let names = ["inputs", "defaults", "useLongestLength"];
    let [inputs, defaults, longest] = named(operator, argument, names, codes)?;
    let list = |value: Option<Value<'_>>, code, parser: &mut Parser| match value {
        None => Ok(Vec::new()),
        Some(Value::Array(array)) => {
            array.iter().map(|element| parser.expression(element)).collect()
        }
        Some(other) => {
            let name = other.element_type().alias();
            Err(failure(code, format!("$zip wants an array of expressions, found {name}")))
        }
    };
    let inputs = list(inputs, 34461, parser)?;
    let defaults = list(defaults, 34462, parser)?;
    let longest = match longest {
        None => false,
        Some(Value::Boolean(longest)) => longest,
        Some(other) => {
            let name = other.element_type().alias();
            return Err(failure(34463, format!("useLongestLength must be a bool, found {name}")));
        }
    };
    if inputs.is_empty() {
        return Err(failure(34465, "$zip requires at least one input array"));
    }
    if !defaults.is_empty() && !longest {
        let message = "cannot specify defaults unless useLongestLength is true";
        return Err(failure(34466, message));
    }
    if !defaults.is_empty() && defaults.len() != inputs.len() {
        return Err(failure(34467, "defaults and inputs must have the same length"));
    }
    Ok(Node::special(Zip { inputs, defaults, longest }))
}
