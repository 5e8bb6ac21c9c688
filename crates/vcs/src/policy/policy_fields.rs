//! The fields of a policy's document, read with errors that name them.

use frond_db::inside::Error;
use frond_doc::{Array, Document, Value};
use frond_query::Code;

/// Rules of a policy, branches, and tiers of thinning, at most.
const PARTS_MAX: usize = 100;

/// Returns the error of a policy that can't be.
pub(super) fn wrong(what: impl std::fmt::Display) -> Error {
    Error::invalid(Code::BadValue, format!("the commit policy: {what}"))
}

/// A positive whole number that a policy has under `name`.
///
/// # Errors
/// `BadValue` if it is none.
pub(super) fn positive(document: Document<'_>, name: &str) -> Result<Option<i64>, Error> {
    match document.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_integer() {
            Some(number) if 0 < number => Ok(Some(number)),
            _ => Err(wrong(format_args!("{name} must be a number above 0"))),
        },
    }
}

/// A text that a policy has under `name`.
///
/// # Errors
/// `BadValue` if it is none.
pub(super) fn text(document: Document<'_>, name: &str) -> Result<Option<String>, Error> {
    match document.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.to_owned())),
        Some(_) => Err(wrong(format_args!("{name} must be a string"))),
    }
}

/// A list that a policy has under `name`.
///
/// # Errors
/// `BadValue` if it is none, or too long.
pub(super) fn list<'a>(document: Document<'a>, name: &str) -> Result<Option<Array<'a>>, Error> {
    match document.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(list)) if list.iter().count() <= PARTS_MAX => Ok(Some(list)),
        Some(_) => Err(wrong(format_args!("{name} must be an array of at most {PARTS_MAX}"))),
    }
}

/// Refuses fields that mean nothing.
///
/// # Errors
/// `BadValue` that names the first.
pub(super) fn check_fields(document: Document<'_>, known: &[&str]) -> Result<(), Error> {
    match document.iter().find(|(name, _)| !known.contains(name)) {
        Some((name, _)) => Err(wrong(format_args!("{name} is none of {}", known.join(", ")))),
        None => Ok(()),
    }
}
