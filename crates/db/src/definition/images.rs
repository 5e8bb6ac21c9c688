//! `changeStreamPreAndPostImages`: whether change streams can show what documents were before they
//! were changed. Each update, replacement and deletion then has the log keep the old document.

use frond_doc::{Document, Value};
use frond_query::Code;

use crate::error::Error;

/// The option of a collection.
pub const OPTION: &str = "changeStreamPreAndPostImages";
const ENABLED: &str = "enabled";

/// Whether the options of a collection say so.
pub fn are_kept(options: Document<'_>) -> bool {
    let option = options.get(OPTION).and_then(|option| option.as_document());
    option.and_then(|option| option.get(ENABLED)) == Some(Value::Boolean(true))
}

/// Checks what options say of it.
///
/// # Errors
/// `InvalidOptions` (72) on a view; what is no such option.
pub fn check(options: Document<'_>) -> Result<(), Error> {
    let Some(option) = options.get(OPTION) else { return Ok(()) };
    let Some(option) = option.as_document() else {
        let message = format!("'{OPTION}' must be a document");
        return Err(Error::invalid(Code::TypeMismatch, message));
    };
    if options.get("viewOn").is_some() {
        let message = format!("option not supported on a view: {OPTION}");
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    for (name, value) in option.iter() {
        if name != ENABLED {
            let message = format!("BSON field '{OPTION}.{name}' is an unknown field.");
            return Err(Error::invalid(Code::Location(40415), message));
        }
        if !matches!(value, Value::Boolean(_)) {
            let found = value.element_type().alias();
            let message = format!(
                "BSON field '{OPTION}.{ENABLED}' is the wrong type '{found}', expected type 'bool'"
            );
            return Err(Error::invalid(Code::TypeMismatch, message));
        }
    }
    if option.is_empty() {
        let message = format!("BSON field '{OPTION}.{ENABLED}' is missing but a required field");
        return Err(Error::invalid(Code::Location(40414), message));
    }
    Ok(())
}
