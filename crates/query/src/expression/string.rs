//! Strings: joining, cutting, replacing, letter case. Parts by position are in `substring`,
//! patterns in `search`.

use frond_doc::Value;

use super::convert::to_text;
use super::date::{short_text, utc_text};
use super::evaluated::{Elements, Evaluated, Text};
use super::failure;
use super::node::{Answer, Node, Operation};
use super::parse::{Parser, named};
use super::scope::{Scope, Variables};
use crate::code::Code;
use crate::error::QueryError;

/// The text that a value is where MongoDB reads it as a string: numbers and dates printed (doubles
/// with six digits, other than `$toString` does), null empty.
pub(super) fn coerce(value: &Evaluated<'_>) -> Result<String, QueryError> {
    match value.value() {
        None | Some(Value::Null | Value::Undefined) => Ok(String::new()),
        Some(Value::Symbol(text) | Value::JavaScript(text)) => Ok(text.to_owned()),
        Some(Value::Double(number)) => Ok(general_text(number)),
        Some(Value::Timestamp(timestamp)) => {
            let seconds = (timestamp.0 >> 32) as i64;
            Ok(format!("{}:{}", short_text(seconds * 1000), timestamp.0 as u32))
        }
        Some(
            value @ (Value::String(_) | Value::Int32(_) | Value::Int64(_) | Value::Decimal128(_)),
        ) => Ok(to_text(value).unwrap_or_default()),
        Some(Value::DateTime(millis)) => utc_text(millis),
        Some(value) => {
            let name = value.element_type().alias();
            Err(failure(16007, format!("can't convert from BSON type {name} to String")))
        }
    }
}

/// A double as C prints it by `%g`.
fn general_text(number: f64) -> String {
    if !number.is_finite() {
        let sign = if number < 0.0 { "-" } else { "" };
        return format!("{sign}{}", if number.is_nan() { "nan" } else { "inf" });
    }
    let scientific = format!("{number:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match exponent.parse::<i32>() {
        Ok(exponent @ -4..6) => {
            let places = usize::try_from(5 - exponent).unwrap_or(0);
            without_zeros(&format!("{number:.places$}"))
        }
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", without_zeros(digits), exponent.unsigned_abs())
        }
        Err(_) => scientific,
    }
}

/// `$concat`
pub(super) fn concat<'a>(arguments: Vec<Evaluated<'a>>, variables: &Variables) -> Answer<'a> {
    let mut joined = Text::new(variables.memory());
    for argument in &arguments {
        match argument.value() {
            None | Some(Value::Null | Value::Undefined) => return Ok(Evaluated::NULL),
            Some(Value::String(text)) => joined.push(text)?,
            Some(other) => {
                let name = other.element_type().alias();
                return Err(failure(16702, format!("$concat only supports strings, not {name}")));
            }
        }
    }
    joined.finish()
}

/// `$toLower`: of ASCII letters only, as MongoDB does.
pub(super) fn to_lower<'a>(argument: Evaluated<'a>, variables: &Variables) -> Answer<'a> {
    let _charge = variables.memory().charge_of(argument.bytes())?;
    let mut text = coerce(&argument)?;
    text.make_ascii_lowercase();
    Evaluated::string(&text, variables.memory())
}

/// `$toUpper`: of ASCII letters only, as MongoDB does.
pub(super) fn to_upper<'a>(argument: Evaluated<'a>, variables: &Variables) -> Answer<'a> {
    let _charge = variables.memory().charge_of(argument.bytes())?;
    let mut text = coerce(&argument)?;
    text.make_ascii_uppercase();
    Evaluated::string(&text, variables.memory())
}

/// `$strcasecmp`
pub(super) fn compare_ignoring_case<'a>(
    left: Evaluated<'a>,
    right: Evaluated<'a>,
    variables: &Variables,
) -> Answer<'a> {
    let _charge = variables.memory().charge_of((left.bytes() + right.bytes()) * 2)?;
    let left = coerce(&left)?.to_ascii_uppercase();
    let right = coerce(&right)?.to_ascii_uppercase();
    Ok((left.cmp(&right) as i32).into())
}

fn length(value: usize) -> Evaluated<'static> {
    i32::try_from(value).unwrap_or(i32::MAX).into()
}

/// `$strLenBytes`
pub(super) fn length_bytes(argument: Evaluated<'_>) -> Answer<'_> {
    match argument.value() {
        Some(Value::String(text)) => Ok(length(text.len())),
        _ => Err(requires_string(34473, "$strLenBytes", &argument)),
    }
}

/// `$strLenCP`
pub(super) fn length_code_points(argument: Evaluated<'_>) -> Answer<'_> {
    match argument.value() {
        Some(Value::String(text)) => Ok(length(text.chars().count())),
        _ => Err(requires_string(34471, "$strLenCP", &argument)),
    }
}

fn requires_string(code: i32, operator: &str, argument: &Evaluated<'_>) -> QueryError {
    let name = argument.type_name();
    failure(code, format!("{operator} requires a string argument, found: {name}"))
}

/// `$binarySize`
pub(super) fn binary_size(argument: Evaluated<'_>) -> Answer<'_> {
    match argument.value() {
        None | Some(Value::Null | Value::Undefined) => Ok(Evaluated::NULL),
        Some(Value::String(text)) => Ok(length(text.len())),
        Some(Value::Binary(binary)) => Ok(length(binary.bytes.len())),
        Some(other) => {
            let name = other.element_type().alias();
            let message =
                format!("$binarySize requires a string or BinData argument, found: {name}");
            Err(failure(51276, message))
        }
    }
}

/// `$split`
pub(super) fn split<'a>(
    text: Evaluated<'a>,
    separator: Evaluated<'a>,
    variables: &Variables,
) -> Answer<'a> {
    if text.is_nullish() || separator.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let refuse = |code, which, name| {
        let message = format!(
            "$split requires an expression that evaluates to a string as a {which} argument, \
             found: {name}"
        );
        failure(code, message)
    };
    let Value::String(whole) = text.or_null() else {
        return Err(refuse(40085, "first", text.type_name()));
    };
    let Value::String(cut) = separator.or_null() else {
        return Err(refuse(40086, "second", separator.type_name()));
    };
    if cut.is_empty() {
        return Err(failure(40087, "$split requires a non-empty separator"));
    }
    Elements::collect(whole.split(cut).map(Value::String), variables.memory())
}

/// `$trim`, `$ltrim`, `$rtrim`
#[derive(Debug)]
struct Trim {
    operator: String,
    input: Node,
    chars: Option<Node>,
}

impl Operation for Trim {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let input = self.input.evaluate(scope)?;
        if input.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        if !matches!(input.value(), Some(Value::String(_))) {
            return Err(self.requires(50699, "its input", &input));
        }
        let chars = self.chars.as_ref().map(|chars| chars.evaluate(scope)).transpose()?;
        if chars.as_ref().is_some_and(Evaluated::is_nullish) {
            return Ok(Evaluated::NULL);
        }
        let _charge = match &chars {
            Some(chars) => Some(scope.memory().charge_of(chars.bytes() * size_of::<char>())?),
            None => None,
        };
        let letters: Option<Vec<char>> = match &chars {
            None => None,
            Some(chars) => match chars.value() {
                Some(Value::String(letters)) => Some(letters.chars().collect()),
                _ => return Err(self.requires(50700, "'chars'", chars)),
            },
        };
        let is_cut = |letter: char| match &letters {
            Some(letters) => letters.contains(&letter),
            None => is_space(letter),
        };
        let (left, right) = (self.operator != "$rtrim", self.operator != "$ltrim");
        input.part(|value| {
            let mut text = value.as_str()?;
            if left {
                text = text.trim_start_matches(is_cut);
            }
            if right {
                text = text.trim_end_matches(is_cut);
            }
            Some(Value::String(text))
        })
    }
}

impl Trim {
    fn requires(&self, code: i32, what: &str, value: &Evaluated<'_>) -> QueryError {
        let (operator, text, name) = (&self.operator, value.text(), value.type_name());
        let message = format!(
            "{operator} requires {what} to be a string, got {text} (of type {name}) instead."
        );
        failure(code, message)
    }
}

/// Checks whether MongoDB trims the character where the expression doesn't say what to trim.
fn is_space(letter: char) -> bool {
    matches!(
        letter,
        '\0' | '\t'..='\r' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}'
    )
}

/// `$trim`, `$ltrim`, `$rtrim`
pub(super) fn trim(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(50696), Code::Location(50694));
    let [input, chars] = named(operator, argument, ["input", "chars"], codes)?;
    let input =
        input.ok_or_else(|| failure(50695, format!("{operator} requires an 'input' field")))?;
    let (input, chars) = (parser.expression(input)?, parser.optional(chars)?);
    Ok(Node::special(Trim { operator: operator.to_owned(), input, chars }))
}

/// `$replaceOne`, `$replaceAll`
#[derive(Debug)]
struct Replace {
    operator: String,
    /// Input, find, replacement.
    arguments: [Node; 3],
}

const REPLACE_NAMES: [&str; 3] = ["input", "find", "replacement"];

impl Operation for Replace {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Answer<'a> {
        let mut values = [Evaluated::NULL, Evaluated::NULL, Evaluated::NULL];
        for (value, argument) in values.iter_mut().zip(&self.arguments) {
            *value = argument.evaluate(scope)?;
        }
        for (position, value) in values.iter().enumerate() {
            if !value.is_nullish() && !matches!(value.value(), Some(Value::String(_))) {
                let (operator, name) = (&self.operator, REPLACE_NAMES[position]);
                let message = format!(
                    "{operator} requires that '{name}' be a string, found: {}",
                    value.text()
                );
                return Err(failure(51746 - position as i32, message));
            }
        }
        let [input, find, replacement] = &values;
        let (Some(Value::String(text)), Some(Value::String(find)), Some(Value::String(by))) =
            (input.value(), find.value(), replacement.value())
        else {
            return Ok(Evaluated::NULL);
        };
        scope.memory().read(text.len())?;
        let count_max = if self.operator == "$replaceOne" { 1 } else { usize::MAX };
        let (mut replaced, mut from) = (Text::new(scope.memory()), 0);
        for (place, found) in text.match_indices(find).take(count_max) {
            replaced.push(text.get(from..place).unwrap_or_default())?;
            replaced.push(by)?;
            from = place + found.len();
        }
        replaced.push(text.get(from..).unwrap_or_default())?;
        replaced.finish()
    }
}

/// `$replaceOne`, `$replaceAll`
pub(super) fn replace(
    operator: &str,
    argument: Value<'_>,
    parser: &mut Parser,
) -> Result<Node, QueryError> {
    let codes = (Code::Location(51751), Code::Location(51750));
    let found = named(operator, argument, REPLACE_NAMES, codes)?;
    let mut take = |position: usize| {
        let value = found[position].ok_or_else(|| {
            let name = REPLACE_NAMES[position];
            failure(
                51749 - position as i32,
                format!("{operator} requires '{name}' to be specified"),
            )
        })?;
        parser.expression(value)
    };
    let arguments = [take(0)?, take(1)?, take(2)?];
    Ok(Node::special(Replace { operator: operator.to_owned(), arguments }))
}
