//! Parts of strings by position, in bytes and in code points: `$substrBytes`, `$substrCP`,
//! `$indexOfBytes`, `$indexOfCP`.

use frond_doc::Value;

use super::evaluated::Evaluated;
use super::failure;
use super::node::Answer;
use super::scope::Variables;
use super::string::coerce;
use crate::error::QueryError;
use crate::number::any_type::as_i32;

/// `$substr`, `$substrBytes`
pub(super) fn of_bytes<'a>(arguments: Vec<Evaluated<'a>>, variables: &Variables) -> Answer<'a> {
    let Ok([text, start, count]) = <[Evaluated<'_>; 3]>::try_from(arguments) else {
        return Ok(Evaluated::NULL); // The parser wants three.
    };
    let _charge = variables.memory().charge_of(text.bytes())?;
    let text = coerce(&text)?;
    for (value, code, what) in [(&start, 16034, "starting index"), (&count, 16035, "length")] {
        if !value.or_null().is_number() {
            let name = value.type_name();
            let message =
                format!("$substrBytes:  {what} must be a numeric type (is BSON type {name})");
            return Err(failure(code, message));
        }
    }
    let start = truncated(&start)?;
    let start = usize::try_from(start).map_err(|_| {
        failure(50752, format!("$substrBytes:  starting index must be non-negative (got: {start})"))
    })?;
    let count = truncated(&count)?;
    if text.len() <= start {
        return Evaluated::string("", variables.memory());
    }
    if !text.is_char_boundary(start) {
        let message = "$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte.";
        return Err(failure(28656, message));
    }
    // A negative length means: to the end.
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let end = start.saturating_add(count).min(text.len());
    let Some(part) = text.get(start..end) else {
        let message =
            "$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character.";
        return Err(failure(28657, message));
    };
    Evaluated::string(part, variables.memory())
}

/// A number as an integer of 64 bits.
fn truncated(value: &Evaluated<'_>) -> Result<i64, QueryError> {
    crate::number::rounded(value.or_null()).ok_or_else(|| {
        failure(31109, format!("Can't coerce out of range value {} to long", value.text()))
    })
}

/// `$substrCP`
pub(super) fn of_code_points<'a>(
    arguments: Vec<Evaluated<'a>>,
    variables: &Variables,
) -> Answer<'a> {
    let Ok([text, start, count]) = <[Evaluated<'_>; 3]>::try_from(arguments) else {
        return Ok(Evaluated::NULL); // The parser wants three.
    };
    let _charge = variables.memory().charge_of(text.bytes())?;
    let text = coerce(&text)?;
    let start = whole("starting index", 34450, &start)?;
    let count = whole("length", 34452, &count)?;
    let count = usize::try_from(count)
        .map_err(|_| failure(34454, "$substrCP: length must be a nonnegative integer."))?;
    let start = usize::try_from(start).map_err(|_| {
        failure(34455, "$substrCP: the starting index must be nonnegative integer.")
    })?;
    let mut places = text.char_indices().map(|(place, _)| place).skip(start);
    let from = places.next().unwrap_or(text.len());
    let to = match count {
        0 => from,
        count => places.nth(count - 1).unwrap_or(text.len()),
    };
    Evaluated::string(text.get(from..to).unwrap_or_default(), variables.memory())
}

/// The codes for another type, and (the next one) for a number that is no 32-bit integer.
fn whole(what: &str, code: i32, value: &Evaluated<'_>) -> Result<i32, QueryError> {
    if !value.or_null().is_number() {
        let name = value.type_name();
        let message = format!("$substrCP: {what} must be a numeric type (is BSON type {name})");
        return Err(failure(code, message));
    }
    as_i32(value.or_null()).ok_or_else(|| {
        let text = value.text();
        let message =
            format!("$substrCP: {what} cannot be represented as a 32-bit integral value: {text}");
        failure(code + 1, message)
    })
}

/// `$indexOfBytes`
pub(super) fn index_of_bytes(arguments: Vec<Evaluated<'_>>) -> Answer<'_> {
    index_of("$indexOfBytes", 40091, arguments, |text, wanted, start, end| {
        let end = end.min(text.len());
        let part = text.as_bytes().get(start..end)?;
        if wanted.is_empty() {
            return Some(start);
        }
        let found = part.windows(wanted.len()).position(|window| window == wanted.as_bytes())?;
        Some(start + found)
    })
}

/// `$indexOfCP`: what begins before the end is found, though it may reach beyond it; nothing, not
/// even an empty string, is found at the end of a text that isn't empty.
pub(super) fn index_of_code_points(arguments: Vec<Evaluated<'_>>) -> Answer<'_> {
    index_of("$indexOfCP", 40093, arguments, |text, wanted, start, end| {
        if text.is_empty() {
            return (start == 0 && wanted.is_empty()).then_some(0);
        }
        let places = text.char_indices().enumerate().skip(start).take(end.saturating_sub(start));
        for (position, (offset, _)) in places {
            if text.get(offset..)?.starts_with(wanted) {
                return Some(position);
            }
        }
        None
    })
}

fn index_of<'a>(
    operator: &str,
    code: i32,
    arguments: Vec<Evaluated<'a>>,
    find: impl FnOnce(&str, &str, usize, usize) -> Option<usize>,
) -> Answer<'a> {
    let mut arguments = arguments.into_iter();
    let text = arguments.next().unwrap_or(Evaluated::Missing);
    if text.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(Value::String(text)) = text.value() else {
        let name = text.type_name();
        let message = format!("{operator} requires a string as the first argument, found: {name}");
        return Err(failure(code, message));
    };
    let wanted = arguments.next().unwrap_or(Evaluated::Missing);
    let Some(Value::String(wanted)) = wanted.value() else {
        let name = wanted.type_name();
        let message = format!("{operator} requires a string as the second argument, found: {name}");
        return Err(failure(code + 1, message));
    };
    let start = arguments.next().map(|start| position(operator, "starting", &start)).transpose()?;
    let end = arguments.next().map(|end| position(operator, "ending", &end)).transpose()?;
    let (start, end) = (start.unwrap_or(0), end.unwrap_or(usize::MAX));
    let found = if start <= end { find(text, wanted, start, end) } else { None };
    Ok(found.and_then(|found| i32::try_from(found).ok()).unwrap_or(-1).into())
}

/// A position that bounds a search.
pub(super) fn position(
    operator: &str,
    which: &str,
    value: &Evaluated<'_>,
) -> Result<usize, QueryError> {
    let whole = value.value().and_then(as_i32).ok_or_else(|| {
        let (name, text) = (value.type_name(), value.text());
        let message = format!(
            "{operator} requires an integral {which} index, found a value of type: {name}, \
             with value: \"{text}\""
        );
        failure(40096, message)
    })?;
    usize::try_from(whole).map_err(|_| {
        let message = format!("{operator} requires a nonnegative {which} index, found: {whole}");
        failure(40097, message)
    })
}
